"""The pages of trials on a channel's past payments."""

from __future__ import annotations

import pytest

from gateway.core import clock
from gateway.models import BackgroundWork, Role
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("kind", "page"),
    [("routing", "routingrule/tried"), ("exemptions", "channel/exemptions")],
)
def test_a_result_is_shown_to_who_still_sees_its_channel(shop: Shop, stranger: Shop, kind: str, page: str) -> None:
    boss = person("boss", Role.MANAGER, shop.merchant)
    for channel, status in ((shop.channel, 200), (stranger.channel, 403)):
        work = BackgroundWork.objects.create(
            kind=kind, title="A trial", owner=boss, asked_at=clock.real_now(), parameters={"channel": channel.pk.hex}
        )
        assert signed_in(boss).get(f"/admin/gateway/{page}/{work.pk}/").status_code == status

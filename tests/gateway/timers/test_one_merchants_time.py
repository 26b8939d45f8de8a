"""A merchant's clock that is moved changes nothing of another merchant, however much of theirs is due.

Each timer's own conditions are asked in test_claims.py; here they all run, beside rows that they have to leave.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from chargebacks import cases
from chargebacks.models import Contact
from gateway.models import Merchant
from tests.gateway.payments.test_mandate_mails import debit
from tests.gateway.payments.test_rows_of_others import SHARED, Place, live_there, open_place
from tests.support.clock import jump
from tests.support.database import others_stay, read_rows
from tests.support.fixtures import open_division, open_shop
from tests.support.subscriptions import store_card

pytestmark = pytest.mark.django_db
DAY_S = 86_400
ID = re.compile(r"(?<![0-9a-fx])[0-9a-f]{32}(?![0-9a-f])")
"""No fingerprint, which begins with an x: one card is known to both merchants."""


def live_on(place: Place) -> None:
    """What is due some day: on top of everything else a dispute, a mandate's mail and a card with a retention."""
    live_there(place)
    Contact.objects.create(merchant=place.shop.merchant, email=f"{place.shop.merchant.pk.hex}@shop.example")
    place.plain.follow(place.plain.pay().id, "CB", "92.00")
    cases.adopt_recent_payments(place.shop.merchant)
    place.plain.follow(place.plain.pay().id, "CB", "92.00")
    debit(place.plain)
    place.shop.channel.registration_days = 10
    place.shop.channel.save()
    store_card(place.plain)


def list_ids(merchant: Merchant) -> set[str]:
    """The ids in rows that name the merchant, in rows that name those, and so on."""
    rows = [(row, set(ID.findall(row))) for _, row in read_rows()]
    found, more = set[str](), {merchant.pk.hex}
    while more:
        found |= more
        more = {one for _, named in rows if named & more for one in named} - found
        more -= {merchant.division_id.hex, merchant.division.psp_id.hex}
    return found


@pytest.mark.timeout(120)
def test_what_is_due_of_one_merchant_is_done_and_of_another_is_left() -> None:
    division = open_division()
    own, other = (open_place(open_shop(division, name)) for name in ("Own", "Other"))
    live_on(other)
    live_on(own)
    assert not list_ids(own.shop.merchant) & list_ids(other.shop.merchant)
    # By the other merchant's clock all of it is due, and no timer has run yet.
    jump(40 * DAY_S)
    Merchant.objects.filter(pk=own.shop.merchant.pk).update(clock_offset=timedelta(0))
    with others_stay(apart_from=(*SHARED, "gateway_fanoutposition")) as ids:
        moved = own.plain.post("/v1/test/clock", {"advance": str(35 * DAY_S)})
        ids |= list_ids(own.shop.merchant)
    assert (moved.status, moved.body["complete"]) == (200, True), moved
    assert moved.body["ran"].keys() >= {"mandate mails", "dispute cases", "shopper deadlines", "jobs"}
    assert len(moved.body["ran"]) > 6

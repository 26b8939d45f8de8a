"""Two concurrent requests that save the same unique value: one is saved, the other form shows an error."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.http import HttpResponse

from checkout.models import OfferRule
from gateway.models import Role
from tests.support.database import until_somebody_waits_for_a_lock
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.threads import InThread

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = "The same was saved at this moment by another request: nothing was saved here."


def test_a_name_that_is_taken_while_the_form_is_saved_is_told_in_the_form(committed: Shop) -> None:
    """The form had looked, and the name was free. It was a page that says that something went wrong."""
    client = signed_in(person("boss", Role.MANAGER, committed.merchant))
    form = {
        "merchant": str(committed.merchant.pk), "channel": "", "name": "No wallets", "position": "1", "action": "hide",
        "brands": "WALLET1", "reason": "", "active": "on",
    }  # fmt: skip
    second = InThread(lambda: client.post("/admin/checkout/offerrule/add/", form))
    with transaction.atomic():
        OfferRule.objects.create(merchant=committed.merchant, name="No wallets", position=1, brands=["WALLET2"])
        second.start()
        until_somebody_waits_for_a_lock()
    answer = second.end()
    assert isinstance(answer, HttpResponse), answer
    page = answer.content.decode()
    assert (answer.status_code, WORDS in page) == (200, True)
    assert 'value="No wallets"' in page, "what was typed is kept"
    assert OfferRule.objects.get().brands == ["WALLET2"]
    assert client.post("/admin/checkout/offerrule/add/", form | {"name": "None"}).status_code == 302

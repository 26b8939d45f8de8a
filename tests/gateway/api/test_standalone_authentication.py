"""The endpoints of an authentication without a payment: whose it is, what is answered with it, and what is ignored.

Source: Part A, Endpoints; Part B, 3D Secure.
"""

from __future__ import annotations

import pytest

from gateway.core import result_codes
from gateway.models import Authentication, Merchant
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.threeds import FRICTIONLESS, NOT_ENROLLED, fields

pytestmark = pytest.mark.django_db


def begin(api: Api, card: str = FRICTIONLESS, **more: str | None) -> Answer:
    return api.post("/v1/threeDSecure", fields(card, paymentType=None, card__cvv=None, **more))


@pytest.fixture
def api(shop: Shop) -> Api:
    channel = shop.open_channel(
        "authenticating", three_d_secure=True, limits={"*": {"limit": 50, "window_s": 1_000_000}}
    )
    return shop.api_of(channel)


@pytest.mark.parametrize("card", [FRICTIONLESS, NOT_ENROLLED])
def test_an_authentication_is_answered_in_the_envelope_with_the_status_of_its_code(api: Api, card: str) -> None:
    made = begin(api, card, colour="red")
    read = api.get(f"/v1/threeDSecure/{made.id}", {"colour": "red"})
    for answer in (made, read):
        assert answer.status == result_codes.http_status(answer.code)
        assert (answer.body["paymentType"], answer.id, answer.code) == ("3D", made.id, made.code)
        assert {"buildNumber", "timestamp", "ndc"} <= answer.body.keys()
        assert answer.headers["RateLimit-Limit"] == "50"
        assert "colour" in answer.text
    assert made.body["ndc"] != read.body["ndc"]


def test_an_authentication_is_of_its_request_merchant_and_channel(shop: Shop, api: Api) -> None:
    made = begin(api)
    row = Authentication.objects.get()
    assert (row.id.hex, row.merchant, row.channel.entity_id) == (made.id, shop.merchant, api.entity)
    assert row.payment is None


def test_it_is_read_by_whoever_it_belongs_to(shop: Shop, stranger: Shop, api: Api) -> None:
    made = begin(api)
    beside = shop.open_channel("beside", three_d_secure=True)
    for other in (stranger.api, shop.api_of(beside)):
        refused = other.get(f"/v1/threeDSecure/{made.id}")
        assert (refused.status, refused.code) == (404, "700.400.580")
    for ident in ("0" * 32, "nonsense"):
        assert api.get(f"/v1/threeDSecure/{ident}").status == 404
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    assert shop.api.as_entity(shop.merchant.entity_id).get(f"/v1/threeDSecure/{made.id}").id == made.id

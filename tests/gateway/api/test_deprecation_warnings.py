"""The Warning header: what is deprecated works and says so, what is recommended may be missing and is named.

Source: Part B, Asynchronous payment parameters, Recurring migration, Custom parameters and scheme data.
"""

from __future__ import annotations

import pytest

from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.threeds import FRICTIONLESS, fields

pytestmark = pytest.mark.django_db

STORED = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
ITEMS, SCORE = "threeDSecure.schemeData[CB-ITEMSNB]", "threeDSecure.schemeData[CB-SCORE_MERCHANT]"


def regional(api: Api, **more: str) -> Answer:
    use_case = {"threeDSecure.schemeData[CB-USECASE]": "01"}
    return api.post("/v1/payments", fields(FRICTIONLESS) | {"paymentBrand": "CARTEBANCAIRE"} | use_case | more)


def said(answer: Answer) -> str:
    assert answer.status == 200, answer
    return answer.headers.get("Warning", "")


def test_whoever_brings_an_agreement_along_is_told_that_this_way_is_deprecated(api: Api) -> None:
    """B10.3."""
    moved = {"recurringMigration.paymentType": "DB", "recurringMigration.connectorTxId1": "380912345678901"}
    assert "recurringMigration is deprecated" in said(api.post("/v1/registrations", STORED | moved))
    both = api.pay(notificationUrl="http://localhost:9999/", createRegistration="true", **moved)
    assert said(both).count("is deprecated") == 2
    assert said(api.post("/v1/registrations", STORED)) == ""


def test_scheme_data_that_is_recommended_and_missing_is_a_remark_and_no_error(shop: Shop) -> None:
    """B12.2: C, recommended; for the regional scheme alone, and where an authentication starts."""
    assert said(regional(shop.api)) == ""
    api = shop.api_of(shop.open_channel("authenticating", three_d_secure=True))
    told = said(regional(api))
    assert f"{ITEMS} is recommended" in told
    assert f"{SCORE} is recommended" in told
    assert said(regional(api, **{ITEMS: "02"})).count("is recommended") == 1
    assert said(regional(api, **{ITEMS: "02", SCORE: "SCORE-80"})) == ""
    assert said(api.post("/v1/payments", fields(FRICTIONLESS))) == ""

"""What the test data page tells of acquirers' answers is what payments answer.

Source: Part A, What the service does, 5.
"""

from __future__ import annotations

import pytest

from gateway.portal.testdata import build_test_data
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("row", build_test_data()["cards"], ids=lambda row: row["number"])
def test_the_acquirers_code_of_a_card_is_the_one_that_is_promised(shop: Shop, row: dict[str, str]) -> None:
    if row["behaviour"] == "silence":
        pytest.skip("nobody answers")
    answer = shop.api.pay(paymentBrand=row["brand"], card__number=row["number"], card__cvv=None)
    assert answer.code == row["resultCode"]
    assert answer.body.get("resultDetails", {}).get("AcquirerResponse") == row["acquirerResponse"]

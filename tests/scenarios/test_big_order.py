"""A wholesaler whose carts have a thousand lines.

Source: Part B, Cart items; rulings D17, D31, D41.
"""

from __future__ import annotations

import pytest

from tests.support.client import Api, payment

pytestmark = pytest.mark.django_db
LINES = 1000


def cart(lines: int) -> dict[str, str]:
    fields = {}
    for at in range(lines):
        fields |= {
            f"cart.items[{at}].name": f"Shirt, size {at}",
            f"cart.items[{at}].sku": f"SKU-{at:05}",
            f"cart.items[{at}].quantity": "3",
            f"cart.items[{at}].price": "12.00",
            f"cart.items[{at}].currency": "EUR",
            f"cart.items[{at}].description": "A shirt of cotton, in the colour of the sea",
        }
    return fields


def test_a_cart_of_a_thousand_lines_is_paid_and_comes_back_in_order(api: Api) -> None:
    """D17, D31, D41."""
    paid = api.post("/v1/payments", payment() | cart(LINES))
    assert paid.status == 200, paid.errors
    items = paid.body["cart"]["items"]
    assert [item["sku"] for item in items] == [f"SKU-{at:05}" for at in range(LINES)]
    assert api.read(paid.id).body["cart"] == paid.body["cart"]
    sent = api.get("/v1/test/acquirer/messages", {"id": paid.id}).body["messages"][0]["sent"]
    assert len(sent["cart"]["items"]) == LINES


def test_line_1000_is_one_too_many_and_the_only_fault(api: Api) -> None:
    """D31: 0 to 999."""
    answer = api.post("/v1/payments", payment() | cart(LINES) | {"cart.items[1000].name": "One too many"})
    assert (answer.status, list(answer.errors)) == (400, ["cart.items[1000].name"])
    assert "999" in answer.errors["cart.items[1000].name"]


def test_a_thousand_faults_are_a_thousand_errors(api: Api) -> None:
    """D10: all errors at once."""
    broken = {f"cart.items[{at}].price": "12.1" for at in range(LINES)}
    answer = api.post("/v1/payments", payment() | broken)
    assert answer.status == 400
    assert broken.keys() <= answer.errors.keys()

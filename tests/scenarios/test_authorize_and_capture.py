"""A shop that authorizes when the order comes and captures when it ships.

Source: decisions, section 4; Part A, Basic payment (sequence, numberOfCaptures), States and transitions.
"""

from __future__ import annotations

import pytest

from tests.support.client import Api

pytestmark = pytest.mark.django_db


def test_an_order_shipped_in_two_parcels_one_of_which_comes_back(api: Api) -> None:
    """PA → CP → CP → RF."""
    held = api.pay(paymentType="PA", amount="100.00")
    one, two = api.follow(held.id, "CP", "60.00"), api.follow(held.id, "CP", "40.00")
    assert (one.status, two.status) == (200, 200)
    assert api.follow(held.id, "CP", "0.01").code == "700.400.100"
    back = api.follow(two.id, "RF", "40.00")
    assert (back.status, back.body["referencedId"]) == (200, two.id)
    assert api.follow(two.id, "RF", "0.01").code == "700.400.200"
    assert api.follow(one.id, "RF", "60.00").status == 200
    assert api.follow(held.id, "RF", "1.00").code == "700.300.100"


def test_an_order_that_is_cancelled_before_it_ships(api: Api) -> None:
    """PA → RV."""
    held = api.pay(paymentType="PA")
    cancelled = api.follow(held.id, "RV")
    assert (cancelled.status, cancelled.body["amount"], cancelled.body["currency"]) == (200, "92.00", "EUR")
    assert api.follow(held.id, "CP", "1.00").code == "700.400.100"
    assert api.follow(held.id, "RV").code == "700.400.300"


def test_an_order_of_which_the_rest_is_released(api: Api) -> None:
    """PA → CP → RV of what is left."""
    held = api.pay(paymentType="PA")
    assert api.follow(held.id, "CP", "30.00").status == 200
    assert api.follow(held.id, "RV").body["amount"] == "62.00"
    assert api.follow(held.id, "CP", "0.01").code == "700.400.100"


def test_the_last_capture_of_an_order_releases_the_rest(api: Api) -> None:
    """A13.15: CP with sequence=FINAL."""
    held = api.pay(paymentType="PA")
    assert api.follow(held.id, "CP", "30.00", sequence="FINAL").status == 200
    assert api.follow(held.id, "CP", "1.00").code == "700.400.100"
    assert api.follow(held.id, "RV").code == "700.400.300"


def test_an_order_with_two_captures_at_most(api: Api) -> None:
    """A13.16."""
    held = api.pay(paymentType="PA", numberOfCaptures="2")
    codes = [api.follow(held.id, "CP", "10.00").code for _ in range(3)]
    assert codes == ["000.100.110", "000.100.110", "700.400.100"]


def test_a_debit_is_taken_back_before_it_settles(api: Api) -> None:
    """DB → RV."""
    paid = api.pay()
    assert api.follow(paid.id, "RV", "92.00").status == 200
    assert api.follow(paid.id, "RF", "1.00").code == "700.400.200"


def test_a_credit_is_given_and_taken_back(api: Api) -> None:
    """CD → RV; nothing else follows a credit."""
    given = api.pay(paymentType="CD")
    assert given.status == 200
    assert api.follow(given.id, "RF", "1.00").code == "700.300.100"
    assert api.follow(given.id, "CP", "1.00").code == "700.300.100"
    assert api.follow(given.id, "RV").status == 200


def test_a_follow_up_in_another_currency_is_refused(api: Api) -> None:
    """Decisions, section 4: 700.100.500."""
    held = api.pay(paymentType="PA")
    assert api.follow(held.id, "CP", "10.00", currency="USD").code == "700.100.500"


def test_a_follow_up_needs_an_amount_but_for_a_reversal(api: Api) -> None:
    """D2."""
    held = api.pay(paymentType="PA")
    for kind in ("CP", "RF"):
        answer = api.follow(held.id, kind)
        assert (answer.status, list(answer.errors)) == (400, ["amount"])
    assert api.follow(held.id, "RV").status == 200


def test_texts_that_clients_match_stay(api: Api) -> None:
    """Decisions, section 3: fragments."""
    nothing = "0" * 32
    texts = {kind: api.follow(nothing, kind, "1.00").description for kind in ("CP", "RF", "RV")}
    assert "capture needs at least one successful transaction" in texts["CP"].lower()
    assert "invalid payment data" in texts["RF"].lower()
    assert "reversal needs at least one successful transaction" in texts["RV"].lower()
    assert "cannot find transaction" in api.read(nothing).description.lower()
    assert "invalid creditcard" in api.pay(card__number="4444444444444444").description.lower()

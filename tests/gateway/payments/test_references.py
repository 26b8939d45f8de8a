"""What ties later transactions to an authorization: referenceUuid and lifecycleId.

Source: Part A, Basic payment; Errors, 3; checks A13.23 to A13.26.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.models import Payment
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

PRACTICE = "standingInstruction.industryPractice"


def raised(api: Api, held: str, amount: str = "20.00", **more: str) -> Answer:
    """An increment of the authorization ``held`` names."""
    fields = {"paymentType": "PA", "amount": amount, "currency": "EUR", "referenceUuid": held}
    return api.post("/v1/payments", fields | {PRACTICE: "INCREMENTAL_AUTH"} | more)


def sent_on(api: Api, payment: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/test/acquirer/messages", {"id": payment}).body["messages"][0]["sent"]
    return found


def test_an_increment_by_reference_raises_what_can_be_captured(api: Api) -> None:
    """A13.24, A13.25: linked to the authorization it names, and to no more than both together."""
    held = api.pay(paymentType="PA", amount="100.00").id
    more = raised(api, held)
    assert (more.status, more.body["referencedId"]) == (200, held), more
    assert Payment.objects.get(pk=more.id).chain == Payment.objects.get(pk=held).chain
    assert api.follow(held, "CP", "120.00").status == 200
    assert api.follow(held, "CP", "0.01").code == "700.400.100"


@pytest.mark.parametrize("reference", ["f" * 32, "x", "zz" * 16, "upper", "foreign"])
def test_a_reference_that_names_no_payment_of_the_entity_is_a_validation_error(
    api: Api, stranger: Shop, reference: str
) -> None:
    """A13.26, A30.9: no transaction is made."""
    if reference == "upper":
        reference = api.pay(paymentType="PA").id.upper()
    if reference == "foreign":
        reference = stranger.api.pay(paymentType="PA").id
    before = Payment.objects.count()
    refused = raised(api, reference)
    assert (refused.status, refused.code, list(refused.errors)) == (400, "200.300.404", ["referenceUuid"])
    assert "id" not in refused.body
    assert Payment.objects.count() == before


@pytest.mark.parametrize("kind", ["DB", "CD", "RI", "RG"])
def test_an_unknown_reference_is_told_before_what_may_follow(api: Api, kind: str) -> None:
    """A13.26: a validation error whatever paymentType comes with it; of a known payment, the type is at fault."""
    refused = raised(api, "f" * 32, paymentType=kind)
    assert (refused.status, refused.code, list(refused.errors)) == (400, "200.300.404", ["referenceUuid"])
    known = raised(api, api.pay(paymentType="PA").id, paymentType=kind)
    assert (known.status, list(known.errors)) == (400, [])
    assert known.code in ("700.300.100", "600.200.400")


def test_a_reference_without_a_practice_is_named_with_it(api: Api) -> None:
    """A13.24, A13.26: either of the two may be what was not meant."""
    for reference in ("f" * 32, api.pay(paymentType="PA").id):
        refused = raised(api, reference, **{PRACTICE: "NO_SHOW"})
        assert (refused.status, refused.code) == (400, "200.300.404")
        assert set(refused.errors) == {"referenceUuid", PRACTICE}


@pytest.mark.parametrize("kind", ["PA", "CP"])
def test_a_reference_beside_a_path_names_the_same_payment(api: Api, kind: str) -> None:
    """A13.25: a follow-up that names two payments is linked to neither."""
    held, other = api.pay(paymentType="PA").id, api.pay(paymentType="PA").id
    more = {"referenceUuid": held, **({PRACTICE: "INCREMENTAL_AUTH"} if kind == "PA" else {})}
    for named in (other, "f" * 32):
        refused = api.follow(held, kind, "5.00", **more | {"referenceUuid": named})
        assert (refused.status, list(refused.errors)) == (400, ["referenceUuid"])
    assert api.follow(held, kind, "5.00", **more).status == 200


def test_a_card_beside_a_reference_is_not_charged_and_told_as_ignored(api: Api) -> None:
    """A13.25, D2: the means comes from the chain, whatever else is sent."""
    held = api.pay(paymentType="PA").id
    card = {"card.number": "5454545454545454", "card.expiryMonth": "05", "card.expiryYear": "2034"}
    answer = raised(api, held, **card)
    assert (answer.status, answer.body["paymentBrand"]) == (200, "VISA"), answer
    assert sorted(answer.body["ignoredParameters"]) == sorted(card)
    assert "card" not in answer.body
    assert "5454545454" not in str(sent_on(api, answer.id))


def test_a_lifecycle_id_goes_with_every_transaction_that_carries_it(api: Api) -> None:
    """A13.23: kept, answered and sent on with the authorization, its increment, its capture and its reversal; without
    one the acquirer's own reference ties them."""
    lifecycle = {"lifecycleId": "MDS-2026-11-22-0000000000000000001"}
    held = api.pay(paymentType="PA", amount="100.00", **lifecycle).id
    plain = api.follow(held, "CP", "1.00")
    made = [
        held,
        raised(api, held, **lifecycle).id,
        api.follow(held, "CP", "60.00", **lifecycle).id,
        api.follow(held, "RV", **lifecycle).id,
    ]
    for one in made:
        assert api.read(one).body["lifecycleId"] == lifecycle["lifecycleId"]
        assert sent_on(api, one)["lifecycleId"] == lifecycle["lifecycleId"]
    assert "lifecycleId" not in plain.body
    assert sent_on(api, plain.id)["reference"] == Payment.objects.get(pk=held).connector_tx_id
    assert list(api.pay(lifecycleId="x" * 36).errors) == ["lifecycleId"]

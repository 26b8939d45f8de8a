"""What a payment keeps for itself is read as it was written, each fact by itself."""

from __future__ import annotations

import json
from dataclasses import fields
from decimal import Decimal

import pytest

from gateway.models import Payment
from gateway.payments import stored_answer
from gateway.payments.stored_answer import (
    ApprovalPolicy,
    EarlierDecline,
    HeldPart,
    PrivateFacts,
    ReportedDispute,
    TokenUse,
    read_private_facts,
)
from tests.support.fixtures import Shop

WHOLE = PrivateFacts(
    agreement_references={"initialTransactionId": "1"},
    approval_policy=ApprovalPolicy(review="000.400.000", avs={"N": "refuse"}, cvv={"U": "review"}),
    network_reference="MCC123",
    transaction_link="AbCdEfGhIjKlMnOpQrStUv",
    refused_code="800.100.152",
    refused_details={"AcquirerResponse": "05"},
    whole_amount_only=True,
    renews_card=True,
    attempt=2,
    exemption="lowValue",
    earlier_decline=EarlierDecline(code="800.100.155", details={"MerchantAdviceCode": "02"}),
    network_token=TokenUse.DECLINED,
    collect_until="2026-11-29T05:45:00+00:00",
    earlier_parts=("0" * 32,),
    held_part=HeldPart(
        amount="46.00",
        granted_at="2026-11-29T00:00:00+00:00",
        code="000.100.112",
        network_reference="MCC1",
        valid_for_s=60.0,
        trace_number=7,
    ),
    dispute=ReportedDispute(answer_by="2026-12-09T17:00:00+00:00", scheme_reason="10.4"),
)
"""A fact that is new stands here, too: the tests say so."""
NAMES = [one.name for one in fields(PrivateFacts)]


def read_again(facts: PrivateFacts) -> PrivateFacts:
    return read_private_facts(json.loads(json.dumps(facts.as_json())))


def test_all_facts_together_are_read_as_they_were_written() -> None:
    assert read_again(WHOLE) == WHOLE


@pytest.mark.parametrize("name", NAMES)
def test_each_fact_is_read_as_it_was_written_and_brings_no_other(name: str) -> None:
    alone = PrivateFacts(**{name: getattr(WHOLE, name)})
    assert alone != PrivateFacts(), "the example is what is there without it"
    assert len(alone.as_json()) == 1
    assert read_again(alone) == alone


def test_what_is_not_there_takes_no_room() -> None:
    assert PrivateFacts().as_json() == {}
    assert read_private_facts({}) == PrivateFacts()


@pytest.mark.parametrize(
    "policy",
    [ApprovalPolicy(review="000.400.000"), ApprovalPolicy(avs={"N": "x"}), ApprovalPolicy(cvv={"U": "x"})],
)
def test_a_policy_is_read_as_it_was_written(policy: ApprovalPolicy) -> None:
    assert read_again(PrivateFacts(approval_policy=policy)).approval_policy == policy


# What is read, written or dropped by itself.

HELD = HeldPart(amount="46.00", granted_at="2026-11-29T00:00:00+00:00", code="000.100.112")
COLLECTING = PrivateFacts(held_part=HELD, collect_until="2026-11-29T05:45:00+00:00", network_token="USED")
ANSWER = {"facts": {"threeDSecure": {"eci": "05"}, "risk": {"score": "+00001"}}, "descriptor": "Shop"}


def test_each_fact_that_is_read_alone_is_read_as_with_the_others() -> None:
    answer = WHOLE.as_json()
    assert stored_answer.read_held_part(answer) == WHOLE.held_part
    assert stored_answer.read_earlier_parts(answer) == WHOLE.earlier_parts
    assert stored_answer.read_collection_end(answer) == WHOLE.collect_until
    assert stored_answer.read_token_use(answer) == WHOLE.network_token
    assert stored_answer.read_transaction_link(answer) == WHOLE.transaction_link
    nothing: dict[str, str] = {}
    assert (stored_answer.read_held_part(nothing), stored_answer.read_earlier_parts(nothing)) == (None, ())
    assert stored_answer.read_collection_end(nothing) == stored_answer.read_token_use(nothing) == ""
    assert stored_answer.read_transaction_link(nothing) == stored_answer.read_return_reason(nothing) == ""


def test_a_part_is_dropped_when_the_whole_is_there_and_kept_when_it_is_given_back() -> None:
    answer = {"descriptor": "Shop", **COLLECTING.as_json()}
    dropped, ended = stored_answer.drop_held_part(answer), stored_answer.end_collection(answer)
    assert dropped == {"descriptor": "Shop", "networkToken": "USED"}
    facts = read_private_facts(ended)
    assert (facts.held_part, facts.collect_until, facts.network_token) == (HELD, "", "USED")
    assert ended["descriptor"] == "Shop"
    assert "collectUntil" in answer, "what is given is not changed"


@pytest.mark.parametrize(
    ("route", "facts", "number"),
    [
        (None, PrivateFacts(), 1),
        ({}, PrivateFacts(), 1),
        ({"cascades": 2}, PrivateFacts(), 3),
        (None, PrivateFacts(attempt=2), 2),
        (None, PrivateFacts(network_token=TokenUse.DECLINED), 2),
        (None, PrivateFacts(network_token=TokenUse.USED), 1),
        (None, PrivateFacts(network_token=TokenUse.UNAVAILABLE), 1),
        ({"cascades": 3}, PrivateFacts(attempt=2, network_token=TokenUse.DECLINED), 6),
    ],
)
def test_each_step_up_cascade_and_declined_token_is_an_attempt(
    route: dict[str, int] | None, facts: PrivateFacts, number: int
) -> None:
    assert stored_answer.get_attempt_number(Payment(route=route, answer=facts.as_json())) == number


@pytest.mark.parametrize("use", [*TokenUse, None])
def test_a_tokens_use_takes_the_place_of_the_one_before(use: TokenUse | None) -> None:
    for before in ({}, PrivateFacts(network_token=TokenUse.DECLINED, exemption="x").as_json()):
        found = stored_answer.set_token_use({"descriptor": "Shop", **before}, use)
        assert stored_answer.read_token_use(found) == (use or "")
        assert ("networkToken" in found) is (use is not None)
        assert (found["descriptor"], found.get("exemption")) == ("Shop", before.get("exemption"))
        assert stored_answer.was_sent_with_token(found) is (use is TokenUse.USED)


def test_what_is_shown_is_merged_and_read_again() -> None:
    found = stored_answer.merge_shown_facts(ANSWER, {"threeDSecure": {"flow": "c"}, "a": "b"})
    shown = {"threeDSecure": {"eci": "05", "flow": "c"}, "risk": {"score": "+00001"}, "a": "b"}
    assert found == {"facts": shown, "descriptor": "Shop"}
    assert stored_answer.get_shown_facts(Payment(answer=found)) == shown
    assert stored_answer.merge_shown_facts({}, {"a": "b"}) == {"facts": {"a": "b"}}
    assert stored_answer.get_shown_facts(Payment(answer={})) == {}


def test_the_next_attempt_shows_nothing_of_the_authentication_before() -> None:
    found = stored_answer.begin_next_attempt(ANSWER | PrivateFacts(exemption="x").as_json())
    assert found == {
        "facts": {"risk": {"score": "+00001"}}, "descriptor": "Shop", "exemption": "x", "attempt": 2,
    }  # fmt: skip
    assert stored_answer.begin_next_attempt({"descriptor": "Shop"}) == {"descriptor": "Shop", "attempt": 2}
    assert stored_answer.begin_next_attempt({"attempt": 2}) == {"attempt": 3}


@pytest.mark.parametrize(("reason", "kept"), [("AC04", {"a": "b", "returnReason": "AC04"}), ("", {"a": "b"})])
def test_a_banks_reason_is_kept_where_it_gave_one(reason: str, kept: dict[str, str]) -> None:
    found = stored_answer.add_return_reason({"a": "b"}, reason)
    assert found == kept
    assert stored_answer.read_return_reason(found) == reason


@pytest.mark.django_db
def test_the_amount_of_a_held_part_is_read_in_a_query(shop: Shop) -> None:
    held, other = (Payment.objects.get(pk=shop.api.pay().id) for _ in range(2))
    Payment.objects.filter(pk=held.pk).update(answer=COLLECTING.as_json())
    found = dict(Payment.objects.values_list("pk", stored_answer.build_held_amount_column()))
    assert found == {held.pk: Decimal("46.00"), other.pk: None}

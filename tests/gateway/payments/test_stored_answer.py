"""What a payment keeps for itself is read as it was written, each fact by itself."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from gateway.payments.stored_answer import (
    ApprovalPolicy,
    EarlierDecline,
    HeldPart,
    PrivateFacts,
    ReportedDispute,
    TokenUse,
    read_private_facts,
)

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

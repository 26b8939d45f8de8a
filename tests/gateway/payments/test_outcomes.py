"""How a payment leaves its line: what an answer or a silence makes of it, and how long it may wait. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import override_settings

from gateway.connectors.port import AcquirerReply, OutcomeUnknownError, Redirect
from gateway.core.money import Money
from gateway.models import Suspension
from gateway.payments.outcomes import (
    Approved,
    Booked,
    Declined,
    OutcomeUnknown,
    PaymentOutcome,
    Suspended,
    describe_silence,
    outcome_from_reply,
    outcome_without_answer,
    resolve_event,
)
from gateway.payments.states import LifecycleEvent

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
ONE = Money.parse("1.00", "EUR")
PENDING = "000.200.000"


@pytest.mark.parametrize(
    ("code", "approved", "kind"),
    [
        ("000.100.110", ONE, Approved),
        ("000.100.110", None, Approved),
        ("000.400.000", ONE, Approved),
        # A chargeback's code is of an approved chargeback, or of a payment that its bank gave back instead.
        ("000.100.221", ONE, Approved),
        ("000.100.221", None, Declined),
        (PENDING, None, Suspended),
        (PENDING, ONE, Suspended),
        ("800.400.500", None, Suspended),
        ("800.100.155", None, Declined),
        ("800.100.155", ONE, Declined),
        ("900.100.301", None, Declined),
        ("300.100.100", None, Declined),
    ],
)
def test_an_answer_is_an_outcome_by_its_code(code: str, approved: Money | None, kind: type[PaymentOutcome]) -> None:
    reply = AcquirerReply(code=code, approved=approved)
    found = outcome_from_reply(reply, at=NOW, duration_ms=17)
    assert type(found) is kind
    assert (found.reply, found.at, found.duration_ms) == (reply, NOW, 17)
    assert resolve_event(reply) is kind.event
    assert outcome_from_reply(reply, at=NOW).duration_ms == 0


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        (Approved, LifecycleEvent.APPROVE),
        (Booked, LifecycleEvent.BOOK),
        (Declined, LifecycleEvent.DECLINE),
        (Suspended, LifecycleEvent.SUSPEND),
        (OutcomeUnknown, LifecycleEvent.LOSE),
    ],
)
def test_each_outcome_is_its_event(kind: type[PaymentOutcome], event: LifecycleEvent) -> None:
    assert kind.event is event


@pytest.mark.parametrize(
    ("redirect", "until", "wait"),
    [
        (Redirect(url="https://bank.example"), None, timedelta(seconds=600)),
        (None, None, timedelta(seconds=7000)),
        (None, NOW + timedelta(seconds=6999), timedelta(seconds=7000)),
        (None, NOW + timedelta(seconds=7001), timedelta(seconds=7001)),
        (Redirect(url="https://bank.example"), NOW + timedelta(days=9), timedelta(days=9)),
    ],
)
def test_a_pending_payment_waits_for_its_shopper_or_a_bank_or_longer_where_the_answer_says_so(
    redirect: Redirect | None, until: datetime | None, wait: timedelta
) -> None:
    reply = AcquirerReply(code=PENDING, redirect=redirect, pending_until=until)
    with override_settings(GATEWAY_SHOPPER_DEADLINE_S=600, GATEWAY_TRANSFER_DEADLINE_S=7000):
        found = outcome_from_reply(reply, at=NOW)
    assert isinstance(found, Suspended)
    assert (found.deadline, found.stage, found.secrets_sealed) == (NOW + wait, Suspension.Stage.REDIRECT, None)


def test_a_silence_keeps_what_was_sent_and_the_id_that_is_known_there_and_no_card_number() -> None:
    unknown = OutcomeUnknownError("cut off after 4200000000000000", {"a": 1}, connector_tx_id="there")
    found = outcome_without_answer(unknown, at=NOW, duration_ms=17)
    assert (found.at, found.duration_ms, found.reply.code) == (NOW, 17, "000.200.001")
    assert (found.reply.sent, found.reply.connector_tx_id) == ({"a": 1}, "there")
    assert found.reply.received == describe_silence(unknown)
    [(name, words)] = describe_silence(unknown).items()
    assert name == "silence"
    assert words.startswith("cut off after")
    assert "4200000000000000" not in words

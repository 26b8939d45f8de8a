"""What every connector promises (gateway/connectors/port.py), one sentence a test."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import wraps
from typing import Any, Final, TypeVar, cast
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.test import override_settings

from gateway.connectors import means as kinds
from gateway.connectors.acquirer_message import external_success_code, parse_scheme_reference
from gateway.connectors.circuit import GuardedConnector
from gateway.connectors.port import AcquirerReply, AcquirerRequest, NotFoundAtAcquirer, OutcomeUnknownError
from gateway.connectors.routing import CONNECTORS
from gateway.connectors.simulator.cards import AVS_MEANING, CVV_MEANING
from gateway.core import result_codes
from gateway.core.money import Money
from gateway.payments.operation_table import OPERATIONS
from tests.connectors.rig import FAULTS, Processor, Rig
from tests.support.database import leaves
from tests.support.threads import at_once

AT_ONCE: Final = 12
MARGIN_S: Final = 20.0
"""Beyond the timeout, for a busy machine: a connector without an end of its own would wait for ever."""
SILENCE_S: Final = 1.0
"""What an acquirer may take that gives no answer: every such silence is waited for to its end."""
LONGEST_ID: Final = 64


def build_request(rig: Rig, processor: Processor, operation: str = "", **changes: Any) -> AcquirerRequest:
    """A request of the rig, with a new payment each time."""
    request = AcquirerRequest(
        payment=uuid4(),
        trace_number=next(_NUMBERS),
        operation=operation or first_operation(rig),
        money=rig.money,
        brand=rig.brand,
        at=datetime.now(UTC).replace(microsecond=0),
        means=rig.means,
        account=processor.account,
        parameters=dict(rig.parameters),
        return_url="https://shop.example/back",
    )
    request = replace(request, **changes)
    _MADE.append(request.payment)
    if rig.insert_payment is not None:
        rig.insert_payment(request)
    return request


_NUMBERS = itertools.count(1, 2)
"""Trace numbers, for connectors whose messages have one."""
_MADE: list[UUID] = []
"""Every payment that a request was built for."""
_Check = TypeVar("_Check", bound=Callable[..., None])


def books_agree(check: _Check) -> _Check:
    """Check after ``check`` that all that was booked meanwhile belongs to the payments of this test: nothing was booked
    under another id."""

    @wraps(check)
    def checked(rig: Rig, processor: Processor, *args: Any, **names: Any) -> None:
        before, first = sum_booked(processor), len(_MADE)
        check(rig, processor, *args, **names)
        ours = sum((processor.booked_amount(payment) for payment in _MADE[first:]), Decimal(0))
        assert sum_booked(processor) - before == ours, "money is booked that is no payment's"

    return cast(_Check, checked)


def sum_booked(processor: Processor) -> Decimal:
    return sum(processor.booked_amounts().values(), Decimal(0))


def first_operation(rig: Rig) -> str:
    """How it takes money in one step; by authorisation where it knows no other way."""
    return "DB" if "DB" in rig.connector.operations else "PA"


def assert_granted(rig: Rig, reply: AcquirerReply) -> None:
    """Check that a reply granted the whole amount, or will when the bank has booked it."""
    if rig.answers_later:
        assert result_codes.is_pending(reply.code), reply
        assert reply.approved is None
    else:
        assert reply.code == external_success_code(), reply
        assert reply.approved == rig.money


def assert_sound_reply(rig: Rig, request: AcquirerRequest, reply: AcquirerReply) -> None:
    """Check what holds for every reply."""
    assert reply.code in result_codes.RESULT_CODES
    if reply.approved is None:
        assert not result_codes.is_approved(reply.code)
    else:
        assert result_codes.is_approved(reply.code)
        assert (reply.approved.currency, reply.approved <= request.money) == (request.money.currency, True)
        assert not reply.retryable_elsewhere
    assert len(reply.connector_tx_id) <= LONGEST_ID
    assert reply.network_reference == parse_scheme_reference(reply.network_reference)
    assert all(isinstance(value, str) and value for value in reply.details.values())
    assert reply.avs in ("", *AVS_MEANING)
    assert reply.cvv in ("", *CVV_MEANING)
    kept_safely(rig, processor_secrets(request), reply.sent, reply.received)


def kept_safely(rig: Rig, secrets: tuple[str, ...], *messages: Any) -> None:
    """Messages that can be written down: JSON, and no secret in them, alone or inside a longer text."""
    for message in messages:
        json.dumps(message)
        for leaf in leaves(message):
            for secret in (*rig.secrets, *secrets):
                hidden = secret in leaf if len(secret) > len("9999") else leaf == secret
                assert not hidden, f"{secret!r} stands in {message!r}"


def processor_secrets(request: AcquirerRequest) -> tuple[str, ...]:
    return tuple(secret.reveal() for secret in request.account.secrets.values())


def lost(rig: Rig, request: AcquirerRequest, fault: str) -> OutcomeUnknownError:
    """Submit what gets no answer: in bounded time it is OutcomeUnknownError, whose message can be kept. Who hangs up is
    heard at once; else the time that an acquirer may take is waited for."""
    within = settings.GATEWAY_ACQUIRER_TIMEOUT_S if fault.startswith("hangs_up") else SILENCE_S
    began = time.monotonic()
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=within), pytest.raises(OutcomeUnknownError) as caught:
        rig.connector.submit(request)
    assert time.monotonic() - began < within + MARGIN_S
    kept_safely(rig, processor_secrets(request), caught.value.sent)
    assert len(caught.value.connector_tx_id) <= LONGEST_ID
    return caught.value


def until(ask: Callable[[], Any]) -> Any:
    """Ask as recovery does, again after each silence, while the processor collects itself."""
    deadline = time.monotonic() + MARGIN_S * 4
    while True:
        try:
            return ask()
        except OutcomeUnknownError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_it_says_what_it_is(rig: Rig) -> None:
    """Names, capability sets, parameters and settings that exist."""
    connector = rig.connector
    registered = CONNECTORS[connector.name]
    assert connector in (registered, registered.inner if isinstance(registered, GuardedConnector) else None)
    assert re.fullmatch(r"[a-z][a-z0-9_]{1,31}", connector.name)
    assert connector.operations <= set(OPERATIONS) | {"RG"}
    assert connector.operations & {"PA", "DB", "CD"}
    assert connector.takes <= kinds.ANY_MEANS
    assert rig.means.kind in connector.takes
    for one in connector.settings:
        assert re.fullmatch(r"[a-z][A-Za-z0-9_]{0,31}", one.name)
        assert one.about
        assert one.allowed
        assert not (one.secret and one.default)
        assert not one.default or re.fullmatch(one.pattern, one.default)
    assert len({one.name for one in connector.settings}) == len(connector.settings)


@books_agree
def test_a_processor_grants_what_it_booked(rig: Rig, processor: Processor) -> None:
    request = build_request(rig, processor)
    reply = rig.connector.submit(request)
    assert_granted(rig, reply)
    assert_sound_reply(rig, request, reply)
    assert reply.connector_tx_id
    assert processor.booked_amount(request.payment) == rig.money.amount


@books_agree
def test_a_decline_grants_nothing_and_says_why(rig: Rig, processor: Processor) -> None:
    declined, code = rig.declined
    changes = {"money": declined} if isinstance(declined, Money) else {"means": declined}
    request = build_request(rig, processor, **changes)
    reply = rig.connector.submit(request)
    assert_sound_reply(rig, request, reply)
    assert (reply.code, reply.approved, reply.retryable_elsewhere) == (code, None, False)
    assert processor.booked_amount(request.payment) == Decimal(0)


@books_agree
def test_a_follow_up_that_it_cannot_do_is_declined(rig: Rig, processor: Processor) -> None:
    """Follow-ups go where the money is, whatever is done there: routing passes nobody over for them."""
    others = sorted({one.code for one in OPERATIONS.values() if one.follows} - rig.connector.operations)
    if not others:
        pytest.skip(f"{rig.connector.name} does them all")
    for operation in others:
        request = build_request(rig, processor, operation, reference="1", means=without_cvv(rig))
        reply = rig.connector.submit(request)
        assert_sound_reply(rig, request, reply)
        assert (reply.approved, result_codes.is_pending(reply.code)) == (None, False)
        assert processor.booked_amount(request.payment) == Decimal(0)


@books_agree
def test_an_authorisation_is_captured_and_refunded(rig: Rig, processor: Processor) -> None:
    if not {"PA", "CP", "RF"} <= rig.connector.operations:
        pytest.skip(f"{rig.connector.name} does not authorise, capture and refund apart")
    first = build_request(rig, processor, "PA")
    granted = rig.connector.submit(first)
    assert_granted(rig, granted)
    capture = build_request(rig, processor, "CP", reference=granted.connector_tx_id, means=without_cvv(rig))
    captured = rig.connector.submit(capture)
    assert_sound_reply(rig, capture, captured)
    if rig.present_capture is not None:
        assert (result_codes.is_pending(captured.code), captured.approved) == (True, None)
        rig.present_capture(capture)
        captured = rig.connector.inquire(capture)
        assert isinstance(captured, AcquirerReply)
        assert_sound_reply(rig, capture, captured)
    assert captured.approved == rig.money
    part = Money(rig.money.amount / 4, rig.money.currency)
    refund = build_request(rig, processor, "RF", reference=captured.connector_tx_id, means=without_cvv(rig), money=part)
    refunded = rig.connector.submit(refund)
    assert_sound_reply(rig, refund, refunded)
    assert refunded.approved == part


@books_agree
def test_an_authorisation_is_reversed(rig: Rig, processor: Processor) -> None:
    if not {"PA", "RV"} <= rig.connector.operations:
        pytest.skip(f"{rig.connector.name} does not authorise and reverse")
    granted = rig.connector.submit(first := build_request(rig, processor, "PA"))
    assert_granted(rig, granted)
    reversal = build_request(rig, processor, "RV", reference=granted.connector_tx_id, means=without_cvv(rig))
    reply = rig.connector.submit(reversal)
    assert_sound_reply(rig, reversal, reply)
    assert reply.code == external_success_code()
    assert first.payment != reversal.payment


@books_agree
def test_the_same_question_twice_is_booked_once(rig: Rig, processor: Processor) -> None:
    request = build_request(rig, processor)
    assert_granted(rig, rig.connector.submit(request))
    again = rig.connector.submit(request)
    assert again.code in result_codes.RESULT_CODES
    assert processor.booked_amount(request.payment) == rig.money.amount


@books_agree
def test_many_at_once_are_not_mixed_up(rig: Rig, processor: Processor) -> None:
    requests = [
        build_request(rig, processor, money=Money(rig.money.amount + number, rig.money.currency))
        for number in range(AT_ONCE)
    ]
    replies = at_once(*[lambda one=one: rig.connector.submit(one) for one in requests])
    for request, reply in zip(requests, replies, strict=True):
        assert_sound_reply(rig, request, reply)
        assert rig.answers_later or reply.approved == request.money
        assert processor.booked_amount(request.payment) == request.money.amount


def test_nobody_there_is_a_decline_that_may_go_elsewhere(rig: Rig, processor: Processor) -> None:
    """Never OutcomeUnknownError: nothing was sent, so nobody can have accepted it."""
    if rig.answers_later:
        pytest.skip(f"{rig.connector.name} files what it is asked for and sends it later")
    processor.go_down()
    request = build_request(rig, processor)
    reply = rig.connector.submit(request)
    assert_sound_reply(rig, request, reply)
    assert (reply.approved, reply.retryable_elsewhere) == (None, True)


@pytest.mark.parametrize("fault", FAULTS)
@books_agree
def test_an_answer_that_was_lost_is_silence_and_found_out_afterwards(
    rig: Rig, processor: Processor, fault: str
) -> None:
    """Whatever asking and taking back come to, what we say and what stands at the processor agree."""
    if fault not in rig.faults:
        pytest.skip(f"{fault} cannot happen between us and {rig.connector.name}")
    request = build_request(rig, processor)
    processor.inject_fault(fault)
    silence = lost(rig, request, fault)
    later = replace(request, known_transaction_id=silence.connector_tx_id)
    if not rig.connector.asks_with_means:
        later = replace(later, means=None, parameters={})
    else:
        later = replace(later, means=without_cvv(rig))
    found = until(lambda: rig.connector.inquire(later))
    if isinstance(found, NotFoundAtAcquirer):
        kept_safely(rig, processor_secrets(request), found.sent, found.received)
        word = until(lambda: rig.connector.void(later))
        kept_safely(rig, processor_secrets(request), word.sent, word.received)
        assert processor.booked_amount(request.payment) == Decimal(0)
        return
    assert_sound_reply(rig, request, found)
    assert processor.booked_amount(request.payment) == (
        found.approved.amount if found.approved is not None else Decimal(0)
    )


@pytest.mark.parametrize("fault", ["", "silent_after", "silent_before"])
@books_agree
def test_what_was_taken_back_does_not_stand_however_often_it_is_said(
    rig: Rig, processor: Processor, fault: str
) -> None:
    if fault and fault not in rig.faults:
        pytest.skip(f"{fault} cannot happen between us and {rig.connector.name}")
    request = build_request(rig, processor)
    known_transaction_id = ""
    if fault:
        processor.inject_fault(fault)
        known_transaction_id = lost(rig, request, fault).connector_tx_id
    else:
        known_transaction_id = rig.connector.submit(request).connector_tx_id
    later = replace(
        request,
        known_transaction_id=known_transaction_id,
        means=without_cvv(rig) if rig.connector.asks_with_means else None,
    )
    for _ in range(2):
        word = until(lambda: rig.connector.void(later))
        assert word.approved is None
        kept_safely(rig, processor_secrets(request), word.sent, word.received)
    assert processor.booked_amount(request.payment) == Decimal(0)


def test_a_forked_process_has_links_of_its_own(rig: Rig, processor: Processor) -> None:
    """Web servers and workers fork: two that read one connection would take each other's answers."""
    assert_granted(rig, rig.connector.submit(build_request(rig, processor)))
    request = build_request(rig, processor)  # the new process may have a session of the database of its own
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            reply = rig.connector.submit(request) if not rig.answers_later else None
            os.write(writing, (reply.code if reply is not None else external_success_code()).encode())
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    assert told == external_success_code()
    assert_granted(rig, rig.connector.submit(build_request(rig, processor)))


def without_cvv(rig: Rig) -> kinds.Means:
    """The means as the vault gives it back: what proves one use is gone."""
    names = [name for name in ("cvv", "cryptogram", "dtvc", "pin") if getattr(rig.means, name, None) is not None]
    return replace(rig.means, **dict.fromkeys(names))

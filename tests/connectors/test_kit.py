"""The kit can fail: each connector here breaks one promise of the port, and the kit's sentence about it finds it.

They are the stub's connector with one thing changed, in front of the stub's own process. A check has to fail at the
line that says so: one that fails for another reason does not count.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Final
from uuid import UUID, uuid4

import pytest
from django.test import override_settings

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.port import AcquirerReply, AcquirerRequest, NotFoundAtAcquirer, OutcomeUnknownError
from gateway.connectors.stub.connector import StubConnector
from gateway.core.money import Money
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE
from tests.connectors import test_conformance as kit
from tests.connectors.conftest import PATIENCE_S
from tests.connectors.rig import Processor, Rig
from tests.connectors.stub import STUB_RIG

Failed: Final = pytest.fail.Exception


class GrantsMore(StubConnector):
    """Says that more was granted than was asked for."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        reply = super().submit(request)
        assert reply.approved is not None
        return replace(reply, approved=Money(reply.approved.amount + 1, reply.approved.currency))


class GrantsAnotherCurrency(StubConnector):
    """Reads the amount and forgets the currency."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        reply = super().submit(request)
        assert reply.approved is not None
        return replace(reply, approved=Money(reply.approved.amount, "USD"))


class GrantsDeclines(StubConnector):
    """Takes a decline for an approval."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        return replace(super().submit(request), code=external_success_code(), approved=request.money)


class MakesCodesUp(StubConnector):
    """Hands the processor's own code on."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        return replace(super().submit(request), code="51")


class KeepsTheCard(StubConnector):
    """Keeps the message as it was sent."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        assert request.card is not None
        reply = super().submit(request)
        return replace(reply, sent={"raw": f"02004{request.card.number.reveal()}=34051"})


class KeepsTheCardInSilence(StubConnector):
    """The same, where it gets no answer."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        assert request.card is not None
        try:
            return super().submit(request)
        except OutcomeUnknownError as silence:
            raise OutcomeUnknownError(str(silence), {"number": request.card.number.reveal()}) from None


class SilentWhenUnreachable(StubConnector):
    """Cannot tell "not sent" from "not answered"."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        reply = super().submit(request)
        if reply.retryable_elsewhere:
            raise OutcomeUnknownError("nobody there", reply.sent)
        return reply


class StaysWhenUnreachable(StubConnector):
    """Declines, and does not say that another acquirer may be asked."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        return replace(super().submit(request), retryable_elsewhere=False)


class GoesElsewhereAfterDeclines(StubConnector):
    """Lets every refusal go to the next acquirer."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        reply = super().submit(request)
        return replace(reply, retryable_elsewhere=reply.approved is None)


class ApprovesWhatItCannotRead(StubConnector):
    """An answer is an answer."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        try:
            return super().submit(request)
        except OutcomeUnknownError as silence:
            return AcquirerReply(
                code=external_success_code(), approved=request.money, connector_tx_id="?", sent=silence.sent
            )


class DeclinesWhatItCannotRead(StubConnector):
    """No answer in time is a no."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        try:
            return super().submit(request)
        except OutcomeUnknownError as silence:
            return AcquirerReply(code="900.100.300", sent=silence.sent)


class MixesUp(StubConnector):
    """Hands out the answer that came before, as one does that reads a shared line without looking whose it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: AcquirerReply | None = None

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        reply = super().submit(request)
        with self._lock:
            before, self._before = self._before, reply
        return before or reply


class SendsIdsOfItsOwn(StubConnector):
    """Sends an id that is new each time, so that nobody can ask by ours."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        return super().submit(replace(request, payment=uuid4()))


class BooksBesides(StubConnector):
    """Asks once more under an id of its own, as one does that tries again with a new number."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        reply = super().submit(request)
        super().submit(replace(request, payment=uuid4()))
        return reply


class TriesAgainInSilence(StubConnector):
    """The same, where it gets no answer."""

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        try:
            return super().submit(request)
        except OutcomeUnknownError:
            super().submit(replace(request, payment=uuid4()))
            raise


class CancelsRepetitions(StubConnector):
    """Takes a question that it knows already for a mistake, and cancels it."""

    def __init__(self) -> None:
        self._seen: set[UUID] = set()

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        if request.payment in self._seen:
            return super().void(request)
        self._seen.add(request.payment)
        return super().submit(request)


class DoesAnything(StubConnector):
    """Takes what it has no word for as something that it knows."""

    operations = StubConnector.operations - {"CB"}

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        return super().submit(replace(request, operation="DB", reference=""))


class DoesNotTakeBack(StubConnector):
    """Says that it did."""

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent={"void": request.payment.hex})


class AsksNobody(DoesNotTakeBack):
    """Neither asks nor takes back."""

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        return NotFoundAtAcquirer()


class FindsWhatNeverCame(StubConnector):
    """Asked about a payment that never arrived, it says yes."""

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        found = super().inquire(request)
        if isinstance(found, NotFoundAtAcquirer):
            return AcquirerReply(code=external_success_code(), approved=request.money, connector_tx_id="?")
        return found


class DeniesWhatCame(StubConnector):
    """Asked about a payment that was accepted, it says no; the money stands."""

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        found = super().inquire(request)
        return found if isinstance(found, NotFoundAtAcquirer) else AcquirerReply(code="800.100.152", sent=found.sent)


def _lost(rig: Rig, processor: Processor, fault: str) -> None:
    kit.test_an_answer_that_was_lost_is_silence_and_found_out_afterwards(rig, processor, fault)


def garbled(rig: Rig, processor: Processor) -> None:
    _lost(rig, processor, "garbled")


def silent_before(rig: Rig, processor: Processor) -> None:
    _lost(rig, processor, "silent_before")


def silent_after(rig: Rig, processor: Processor) -> None:
    _lost(rig, processor, "silent_after")


def void_attempted(rig: Rig, processor: Processor) -> None:
    kit.test_what_was_taken_back_does_not_stand_however_often_it_is_said(rig, processor, "")


Check = Callable[[Rig, Processor], None]
BESIDES: Final = "assert sum_booked(processor) - before == ours"
BOOKS: Final = "assert processor.booked_amount(request.payment) =="
BROKEN: Final[tuple[tuple[type[StubConnector], Check, type[BaseException], str], ...]] = (
    (GrantsMore, kit.test_a_processor_grants_what_it_booked, AssertionError, "assert reply.approved == rig.money"),
    (GrantsMore, kit.test_many_at_once_are_not_mixed_up, AssertionError, "reply.approved <= request.money"),
    (GrantsAnotherCurrency, kit.test_a_processor_grants_what_it_booked, AssertionError, "reply.approved == rig.money"),
    (GrantsDeclines, kit.test_a_decline_grants_nothing_and_says_why, AssertionError, "== (code, None, False)"),
    (MakesCodesUp, kit.test_a_decline_grants_nothing_and_says_why, AssertionError, "in result_codes.RESULT_CODES"),
    (KeepsTheCard, kit.test_a_processor_grants_what_it_booked, AssertionError, "assert not hidden"),
    (KeepsTheCardInSilence, silent_before, AssertionError, "assert not hidden"),
    (
        SilentWhenUnreachable,
        kit.test_nobody_there_is_a_decline_that_may_go_elsewhere,
        OutcomeUnknownError,
        "submit(request)",
    ),
    (StaysWhenUnreachable, kit.test_nobody_there_is_a_decline_that_may_go_elsewhere, AssertionError, "(None, True)"),
    (GoesElsewhereAfterDeclines, kit.test_a_decline_grants_nothing_and_says_why, AssertionError, "(code, None, False)"),
    (ApprovesWhatItCannotRead, garbled, Failed, "pytest.raises(OutcomeUnknownError)"),
    (DeclinesWhatItCannotRead, silent_after, Failed, "pytest.raises(OutcomeUnknownError)"),
    (MixesUp, kit.test_many_at_once_are_not_mixed_up, AssertionError, "request.money"),
    (SendsIdsOfItsOwn, kit.test_a_processor_grants_what_it_booked, AssertionError, BOOKS),
    (BooksBesides, kit.test_a_processor_grants_what_it_booked, AssertionError, BESIDES),
    (BooksBesides, kit.test_many_at_once_are_not_mixed_up, AssertionError, BESIDES),
    (TriesAgainInSilence, silent_before, AssertionError, BESIDES),
    (CancelsRepetitions, kit.test_the_same_question_twice_is_booked_once, AssertionError, BOOKS),
    (DoesAnything, kit.test_a_follow_up_that_it_cannot_do_is_declined, AssertionError, "== (None, False)"),
    (DoesNotTakeBack, void_attempted, AssertionError, BOOKS),
    (AsksNobody, silent_after, AssertionError, BOOKS),
    (FindsWhatNeverCame, silent_before, AssertionError, BOOKS),
    (DeniesWhatCame, silent_after, AssertionError, BOOKS),
)
"""What is broken, the check that finds it, how that fails, and the line of the kit where it does."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Processor]:
    """One stub for all that leave it alive."""
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=PATIENCE_S), STUB_RIG.start() as running:
        yield running


@pytest.fixture
def stub(request: pytest.FixtureRequest) -> Iterator[Processor]:
    """The shared stub; one of its own for the check that ends it."""
    check = request.node.callspec.params["check"]
    with ExitStack() as open_ones:
        if check is kit.test_nobody_there_is_a_decline_that_may_go_elsewhere:
            open_ones.enter_context(override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=PATIENCE_S))
            yield open_ones.enter_context(STUB_RIG.start())
        else:
            yield request.getfixturevalue("shared")


@pytest.mark.parametrize(
    ("broken", "check", "how", "line"), BROKEN, ids=[f"{row[0].__name__}-{row[1].__name__}" for row in BROKEN]
)
def test_a_broken_connector_is_found_out(
    broken: type[StubConnector], check: Check, how: type[BaseException], line: str, stub: Processor, db: None
) -> None:
    with pytest.raises(how) as caught:
        check(replace(STUB_RIG, connector=broken()), stub)
    of_the_kit = [one for one in traceback.extract_tb(caught.value.__traceback__) if one.filename == kit.__file__]
    assert line in (of_the_kit[-1].line or "")


NOTHING_TO_SAY: Final = kit.test_a_follow_up_that_it_cannot_do_is_declined
"""The stub can do everything."""
CHECKS: Final = tuple(dict.fromkeys(row[1] for row in BROKEN if row[1] is not NOTHING_TO_SAY))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_same_check_is_content_with_the_connector_that_keeps_its_promises(
    check: Check, stub: Processor, db: None
) -> None:
    check(STUB_RIG, stub)

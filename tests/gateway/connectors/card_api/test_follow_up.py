"""Follow-ups against a processor of a few lines: what is asked, and what each state of an intent leads to."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.connectors.card_api.follow_up import capture_intent, refund_charge, reverse_intent
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse
from gateway.connectors.port import AcquirerReply, OutcomeUnknownError
from tests.gateway.connectors.card_api.asking import PAYMENT, asked
from tests.gateway.connectors.card_api.scripted import ScriptedSession, calls_of, operation_of

INTENT = "/v1/payment_intents/pi_1"
READ, CAPTURE, CANCEL, REFUND = f"GET {INTENT}", f"POST {INTENT}/capture", f"POST {INTENT}/cancel", "POST /v1/refunds"
APPROVED = "000.100.110"


def intent(status: str = "requires_capture", **more: Any) -> dict[str, Any]:
    return {"id": "pi_1", "status": status, "amount": 9200, "capture_method": "manual", **more}


def refund(**more: Any) -> dict[str, Any]:
    marked = {"tollhouse_payment": PAYMENT.hex}
    return {"id": "re_1", "status": "succeeded", "amount": 9200, "metadata": marked, **more}


# --- captures ---------------------------------------------------------------------------------------------------------


def capture(
    script: dict[str, Any], *, full: bool = True, multicapture: bool = False, **changes: Any
) -> tuple[AcquirerReply, ScriptedSession]:
    request = asked("CP", amount="40.00", reference="pi_1", **changes)
    question = operation_of(request, script, full=full, multicapture=multicapture)
    return capture_intent(question), calls_of(question)


@pytest.mark.parametrize(
    ("available", "clearing", "looks", "final"),
    [
        ("available", (1, 3), 1, "false"),
        ("unavailable", (1, 3), 1, None),
        ("available", (3, 3), 0, "true"),
        ("unavailable", (3, 3), 0, "true"),
    ],
)
def test_another_capture_is_announced_where_the_card_allows_it(
    available: str, clearing: tuple[int, int], looks: int, final: str | None
) -> None:
    charge = {"id": "ch_1", "payment_method_details": {"card": {"multicapture": {"status": available}}}}
    script = {READ: intent(latest_charge=charge), CAPTURE: intent("succeeded", latest_charge=charge)}
    reply, calls = capture(script, multicapture=True, clearing=clearing)
    assert (reply.approved, reply.connector_tx_id) == (asked(amount="40.00").money, "ch_1")
    assert len(calls.asked(READ)) == looks
    assert [sent.get("final_capture") for sent in calls.asked(CAPTURE)] == [final]


@pytest.mark.parametrize("status", ["processing", "requires_action", "canceled", "a_word_of_tomorrow"])
def test_what_is_not_captured_yet_is_not_known(status: str) -> None:
    with pytest.raises(OutcomeUnknownError):
        capture({CAPTURE: intent(status)})


@pytest.mark.parametrize("status", ["succeeded", "canceled", "requires_action"])
def test_a_server_of_the_core_profile_is_not_asked_to_capture_what_it_does_not_hold(status: str) -> None:
    """It knows no keys: a capture of what was captured would be another one."""
    reply, calls = capture({READ: intent(status)}, full=False)
    assert (reply.code, reply.approved) == ("700.400.100", None)
    assert [name for name, _ in calls.calls] == [READ]


def test_a_server_of_the_core_profile_gets_the_mark_before_the_capture() -> None:
    reply, calls = capture({READ: intent(), f"POST {INTENT}": intent(), CAPTURE: intent("succeeded")}, full=False)
    assert reply.approved is not None
    assert [name for name, _ in calls.calls] == [READ, f"POST {INTENT}", CAPTURE]
    assert calls.asked(f"POST {INTENT}") == [{f"metadata[capture_{PAYMENT.hex}]": "4000"}]
    reply, calls = capture({READ: intent()}, full=False)
    assert (reply.approved, [name for name, _ in calls.calls]) == (None, [READ, f"POST {INTENT}"])


# --- refunds ----------------------------------------------------------------------------------------------------------


def give_back(answer: dict[str, Any], reference: str = "pi_1") -> AcquirerReply:
    return refund_charge(operation_of(asked("RF", reference=reference), {REFUND: answer}))


@pytest.mark.parametrize("status", ["succeeded", "pending"])
def test_a_refund_that_is_made_or_on_its_way_is_approved(status: str) -> None:
    reply = give_back(refund(status=status))
    assert (reply.approved, reply.connector_tx_id) == (asked().money, "re_1")
    assert reply.details["AcquirerResponse"] == status


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": "failed"}, "failed"),
        ({"status": "canceled"}, "canceled"),
        ({"status": "failed", "failure_reason": "lost_or_stolen_card"}, "lost_or_stolen_card"),
    ],
)
def test_a_refund_that_failed_is_declined_in_the_processors_words(answer: dict[str, str], words: str) -> None:
    reply = give_back(refund(**answer))
    assert (reply.code, reply.approved, reply.details["AcquirerResponse"]) == ("800.100.152", None, words)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "requires_action"},
        {"metadata": {"tollhouse_payment": "f" * 32}},
        {"metadata": {}},
        {"amount": 9199},
        {"amount": 9201},
        {"amount": None},
    ],
)
def test_a_refund_that_is_another_is_not_known(answer: dict[str, Any]) -> None:
    with pytest.raises(OutcomeUnknownError):
        give_back(refund(**answer))


# --- reversals --------------------------------------------------------------------------------------------------------


def reverse(script: dict[str, Any], amount: str = "92.00") -> tuple[AcquirerReply, list[str]]:
    question = operation_of(asked("RV", amount=amount, reference="pi_1"), script)
    return reverse_intent(question), [name for name, _ in calls_of(question).calls]


@pytest.mark.parametrize(
    ("found", "calls"),
    [
        (intent("canceled"), [READ]),
        (intent("succeeded", amount=18_400, amount_received=9200), [READ]),
        (intent("succeeded", amount=18_401, amount_received=9200), [READ]),
        (intent("succeeded", amount_received=9200, capture_method="automatic"), [READ, REFUND]),
        (intent("succeeded", amount=18_400, amount_received=9200, capture_method="automatic"), [READ, REFUND]),
        (intent(), [READ, CANCEL]),
        (intent("requires_action"), [READ, CANCEL]),
        (intent("requires_payment_method"), [READ, CANCEL]),
        (intent("requires_confirmation"), [READ, CANCEL]),
        (intent(amount=20_000, amount_capturable=9200), [READ, CANCEL]),
        (intent(amount=18_400, amount_capturable=9200, amount_received=9200), [READ, CAPTURE]),
    ],
)
def test_a_reversal_gives_up_what_is_held_in_the_way_of_its_state(found: dict[str, Any], calls: list[str]) -> None:
    gone = intent("succeeded", amount=18_400, amount_received=9200)
    reply, made = reverse({READ: found, CANCEL: intent("canceled"), CAPTURE: gone, REFUND: refund()})
    assert (reply.approved, made) == (asked().money, calls)


@pytest.mark.parametrize(
    ("found", "amount", "code"),
    [
        (intent("succeeded", amount_received=9200), "92.00", "700.400.300"),
        (intent("succeeded", amount=18_399, amount_received=9200), "92.00", "700.400.300"),
        (intent("processing"), "92.00", "700.400.570"),
        (intent("a_word_of_tomorrow"), "92.00", "700.400.570"),
        (intent(), "91.99", "700.400.300"),
        (intent(amount=18_400, amount_capturable=9200), "91.99", "700.400.300"),
        (intent(amount=None), "92.00", "700.400.300"),
    ],
)
def test_a_reversal_that_cannot_be_made_whole_asks_for_nothing(found: dict[str, Any], amount: str, code: str) -> None:
    reply, made = reverse({READ: found}, amount)
    assert (reply.code, reply.approved, made) == (code, None, [READ])


def test_a_reversal_of_more_than_is_held_gives_up_what_is_held() -> None:
    """What was captured of it before is not held any more."""
    reply, made = reverse({READ: intent(amount=9100), CANCEL: intent("canceled")})
    assert (reply.approved, made) == (asked().money, [READ, CANCEL])


def test_a_final_capture_of_nothing_gives_up_the_rest() -> None:
    held = intent(amount=18_400, amount_capturable=9200, amount_received=9200)
    script = {READ: held, CAPTURE: intent("succeeded", amount=18_400, amount_received=9200)}
    question = operation_of(asked("RV", reference="pi_1"), script)
    reverse_intent(question)
    assert calls_of(question).asked(CAPTURE) == [{"amount_to_capture": "0", "final_capture": "true"}]


@pytest.mark.parametrize("status", ["requires_capture", "processing"])
def test_what_is_still_held_after_the_call_is_not_known(status: str) -> None:
    with pytest.raises(OutcomeUnknownError):
        reverse({READ: intent(), CANCEL: intent(status)})


def test_a_captured_charge_is_reversed_by_a_refund() -> None:
    question = operation_of(asked("RV", reference="ch_1"), {REFUND: refund()})
    assert reverse_intent(question).approved == asked().money
    assert calls_of(question).asked(REFUND)[0]["charge"] == "ch_1"


def test_a_read_that_failed_has_moved_nothing() -> None:
    reply, made = reverse({READ: CardApiResponse(kind=CallVerdict.UNCLEAR)})
    assert (reply.approved, reply.code, made) == (None, "900.100.600", [READ])

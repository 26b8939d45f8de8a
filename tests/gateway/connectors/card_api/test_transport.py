"""What an outcome proves: accepted, refused, never sent, or nothing. docs/decisions/0034-a-card-api.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.connectors.card_api.transport import CallVerdict, classify_outcome
from gateway.outbound import CallFailure, CallOutcome

ERROR = {"error": {"type": "invalid_request_error", "code": "something"}}


def outcome(status: int, body: Any, **more: Any) -> CallOutcome:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return CallOutcome(status=status, body=text, sent=True, **more)


@pytest.mark.parametrize(
    ("failure", "sent", "kind"),
    [
        (CallFailure.UNREACHABLE, False, CallVerdict.UNSENT),
        (CallFailure.TLS, False, CallVerdict.UNSENT),
        (CallFailure.TIMED_OUT, False, CallVerdict.UNSENT),
        (CallFailure.FORBIDDEN, False, CallVerdict.UNSENT),
        (CallFailure.TLS, True, CallVerdict.UNCLEAR),
        (CallFailure.TIMED_OUT, True, CallVerdict.UNCLEAR),
        (CallFailure.BROKEN, True, CallVerdict.UNCLEAR),
        (CallFailure.UNREACHABLE, True, CallVerdict.UNCLEAR),
    ],
)
def test_without_an_answer_it_counts_whether_a_part_of_it_left(
    failure: CallFailure, sent: bool, kind: CallVerdict
) -> None:
    assert classify_outcome(CallOutcome(failure=failure, sent=sent)).kind is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, CallVerdict.REFUSED),
        (401, CallVerdict.SHUT),
        (402, CallVerdict.DECLINED),
        (403, CallVerdict.SHUT),
        (404, CallVerdict.REFUSED),
        (409, CallVerdict.UNCLEAR),
        (424, CallVerdict.UNCLEAR),
        (429, CallVerdict.SHUT),
        (500, CallVerdict.UNCLEAR),
        (502, CallVerdict.UNCLEAR),
        (503, CallVerdict.UNCLEAR),
        (504, CallVerdict.UNCLEAR),
        (302, CallVerdict.UNCLEAR),
        (307, CallVerdict.UNCLEAR),
        (408, CallVerdict.UNCLEAR),
        (418, CallVerdict.UNCLEAR),
    ],
)
def test_an_error_in_the_processors_form_is_judged_by_its_status(status: int, kind: CallVerdict) -> None:
    assert classify_outcome(outcome(status, ERROR)).kind is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, CallVerdict.UNCLEAR),
        (401, CallVerdict.SHUT),
        (402, CallVerdict.UNCLEAR),
        (403, CallVerdict.SHUT),
        (404, CallVerdict.SHUT),
        (409, CallVerdict.UNCLEAR),
        (429, CallVerdict.SHUT),
        (500, CallVerdict.UNCLEAR),
        (503, CallVerdict.UNCLEAR),
    ],
)
def test_an_error_in_another_form_proves_less(status: int, kind: CallVerdict) -> None:
    assert classify_outcome(outcome(status, b"<html>no</html>")).kind is kind


@pytest.mark.parametrize("error", [{"type": "idempotency_error"}, {"code": "idempotency_key_in_use"}])
@pytest.mark.parametrize("status", [400, 409])
def test_a_key_that_is_taken_says_that_something_arrived(error: dict[str, str], status: int) -> None:
    assert classify_outcome(outcome(status, {"error": error})).kind is CallVerdict.TAKEN


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'{"id": "pi_1"}', b'{"object": 7}', b"\xff\xfe", b"[" * 100_000, b'{"object": "x"']
)
def test_a_success_that_cannot_be_read_is_unclear(body: bytes) -> None:
    assert classify_outcome(outcome(200, body)).kind is CallVerdict.UNCLEAR


def test_an_answer_that_was_cut_is_unclear() -> None:
    assert classify_outcome(outcome(200, {"object": "payment_intent"}, truncated=True)).kind is CallVerdict.UNCLEAR
    assert classify_outcome(outcome(200, {"object": "payment_intent"})).kind is CallVerdict.DONE

"""What an outcome proves: accepted, refused, never sent, or nothing. docs/decisions/0034-a-card-api.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.connectors.stripe.wire import Kind, heard
from gateway.outbound import Failure, Outcome

ERROR = {"error": {"type": "invalid_request_error", "code": "something"}}


def outcome(status: int, body: Any, **more: Any) -> Outcome:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Outcome(status=status, body=text, sent=True, **more)


@pytest.mark.parametrize(
    ("failure", "sent", "kind"),
    [
        (Failure.UNREACHABLE, False, Kind.UNSENT),
        (Failure.TLS, False, Kind.UNSENT),
        (Failure.TIMED_OUT, False, Kind.UNSENT),
        (Failure.FORBIDDEN, False, Kind.UNSENT),
        (Failure.TLS, True, Kind.UNCLEAR),
        (Failure.TIMED_OUT, True, Kind.UNCLEAR),
        (Failure.BROKEN, True, Kind.UNCLEAR),
        (Failure.UNREACHABLE, True, Kind.UNCLEAR),
    ],
)
def test_without_an_answer_it_counts_whether_a_part_of_it_left(failure: Failure, sent: bool, kind: Kind) -> None:
    assert heard(Outcome(failure=failure, sent=sent)).kind is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Kind.REFUSED), (401, Kind.SHUT), (402, Kind.DECLINED), (403, Kind.SHUT), (404, Kind.REFUSED),
        (409, Kind.UNCLEAR), (424, Kind.UNCLEAR), (429, Kind.SHUT), (500, Kind.UNCLEAR), (502, Kind.UNCLEAR),
        (503, Kind.UNCLEAR), (504, Kind.UNCLEAR), (302, Kind.UNCLEAR), (307, Kind.UNCLEAR), (408, Kind.UNCLEAR),
        (418, Kind.UNCLEAR),
    ],
)  # fmt: skip
def test_an_error_in_the_processors_form_is_judged_by_its_status(status: int, kind: Kind) -> None:
    assert heard(outcome(status, ERROR)).kind is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Kind.UNCLEAR), (401, Kind.SHUT), (402, Kind.UNCLEAR), (403, Kind.SHUT), (404, Kind.SHUT),
        (409, Kind.UNCLEAR), (429, Kind.SHUT), (500, Kind.UNCLEAR), (503, Kind.UNCLEAR),
    ],
)  # fmt: skip
def test_an_error_in_another_form_proves_less(status: int, kind: Kind) -> None:
    assert heard(outcome(status, b"<html>no</html>")).kind is kind


@pytest.mark.parametrize("error", [{"type": "idempotency_error"}, {"code": "idempotency_key_in_use"}])
@pytest.mark.parametrize("status", [400, 409])
def test_a_key_that_is_taken_says_that_something_arrived(error: dict[str, str], status: int) -> None:
    assert heard(outcome(status, {"error": error})).kind is Kind.TAKEN


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'{"id": "pi_1"}', b'{"object": 7}', b"\xff\xfe", b"[" * 100_000, b'{"object": "x"']
)
def test_a_success_that_cannot_be_read_is_unclear(body: bytes) -> None:
    assert heard(outcome(200, body)).kind is Kind.UNCLEAR


def test_an_answer_that_was_cut_is_unclear() -> None:
    assert heard(outcome(200, {"object": "payment_intent"}, cut=True)).kind is Kind.UNCLEAR
    assert heard(outcome(200, {"object": "payment_intent"})).kind is Kind.DONE

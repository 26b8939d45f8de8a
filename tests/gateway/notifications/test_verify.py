"""What "verify this body" says of a message. Source: design, J3, step 9."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from gateway.notifications import verify
from gateway.notifications.signing import Keys, sealed
from gateway.notifications.verify import Kind
from gateway.secret import SecretBytes

NOW = datetime(2026, 5, 14, 10, 2, tzinfo=UTC)
IDENT = UUID(int=7)
TEXT = '{"type":"PAYMENT","action":"CREATED","payload":{"holder":"Jürgen","amount":"92.00"}}'
MINE, OLD, THEIRS = (SecretBytes(bytes([number]) * 32) for number in (1, 2, 3))
KEYS = Keys(current=MINE)


def sent(mode: str, wrapper: str = "none", keys: Keys = KEYS, at: datetime = NOW) -> tuple[dict[str, str], str]:
    headers, body = sealed(mode, wrapper, keys, IDENT, TEXT, at)
    return {name.lower(): value for name, value in headers.items()}, body.decode()


@pytest.mark.parametrize(("mode", "wrapper"), [("signed", "none"), ("encrypted", "none"), ("encrypted", "json")])
def test_what_was_sent_is_right_and_is_read(mode: str, wrapper: str) -> None:
    verdict = verify.verify(KEYS, *sent(mode, wrapper), NOW)
    assert (verdict.kind, verdict.text, verdict.previous) == (Kind.RIGHT, TEXT, False)


@pytest.mark.parametrize("mode", ["signed", "encrypted"])
def test_another_secret_is_the_wrong_key_and_the_one_before_is_told(mode: str) -> None:
    assert verify.verify(Keys(current=THEIRS), *sent(mode), NOW).kind == Kind.WRONG_KEY
    verdict = verify.verify(Keys(current=MINE, previous=OLD), *sent(mode, keys=Keys(current=OLD)), NOW)
    assert (verdict.kind, verdict.previous) == (Kind.RIGHT, True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda body: body + "\n", "white space"),
        (lambda body: json.dumps(json.loads(body), indent=2), "written again"),
        (lambda body: json.dumps(json.loads(body)), "written again"),
        (json.dumps, "quoted"),
    ],
)
def test_a_signed_body_that_was_written_anew_is_wrong_encoding(change, why: str) -> None:  # type: ignore[no-untyped-def]
    headers, body = sent("signed")
    verdict = verify.verify(KEYS, headers, change(body), NOW)
    assert (verdict.kind, verdict.why) == (Kind.WRONG_ENCODING, why)


def test_another_amount_is_no_encoding() -> None:
    headers, body = sent("signed")
    assert verify.verify(KEYS, headers, body.replace("92.00", "1.00"), NOW).kind == Kind.WRONG_KEY


def test_an_old_or_early_timestamp_is_told_with_its_minutes() -> None:
    old = verify.verify(KEYS, *sent("signed", at=NOW - timedelta(minutes=13)), NOW)
    assert (old.kind, old.why, old.more) == (Kind.OLD, "old", "13")
    early = verify.verify(KEYS, *sent("signed", at=NOW + timedelta(minutes=9)), NOW)
    assert (early.kind, early.why) == (Kind.OLD, "early")


def test_an_encrypted_body_in_base64_is_wrong_encoding() -> None:

    headers, body = sent("encrypted")
    verdict = verify.verify(KEYS, headers, base64.b64encode(bytes.fromhex(body)).decode(), NOW)
    assert (verdict.kind, verdict.why) == (Kind.WRONG_ENCODING, "body in base64")
    assert verify.verify(KEYS, headers, "not hex at all!", NOW).why == "body is no hex"
    assert verify.verify(KEYS, headers, '{"body": "00"}', NOW).why == "no encryptedBody"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp"])
def test_a_header_that_is_missing_is_named(name: str) -> None:
    headers, body = sent("signed")
    del headers[name]
    verdict = verify.verify(KEYS, headers, body, NOW)
    assert (verdict.kind, verdict.more) == (Kind.MISSING, name)


@pytest.mark.parametrize(
    "headers",
    [
        {"webhook-signature": "v1,###", "webhook-id": "msg_1", "webhook-timestamp": "1"},
        {"webhook-signature": "v1,AAAA", "webhook-id": "msg_1", "webhook-timestamp": "soon"},
        {"webhook-signature": "", "webhook-id": "msg_1", "webhook-timestamp": "1"},
        {"x-initialization-vector": "zz", "x-authentication-tag": "00"},
        {},
    ],
)
@pytest.mark.parametrize("body", ["", "{", "null", "\x00", "🦊" * 10, "1" * 5000])
def test_nothing_that_is_pasted_breaks_it(headers: dict[str, str], body: str) -> None:
    assert verify.verify(KEYS, headers, body, NOW).kind in (Kind.WRONG_ENCODING, Kind.MISSING)


def test_headers_are_read_as_people_paste_them() -> None:
    pasted = 'POST /hooks HTTP/1.1\nWebhook-Id: msg_1\n"webhook-timestamp": "17",\nhost : shop.example\n\nrubbish'
    found = verify.headers_of(pasted)
    assert found["webhook-id"] == "msg_1"
    assert found["webhook-timestamp"] == "17"
    assert found["host"] == "shop.example"


@pytest.mark.parametrize(
    "pasted",
    [
        f"a: x{' ' * (verify.MOST_PASTED - 10)}x",
        f"a:{'x ' * (verify.MOST_PASTED // 2 - 10)}x",
        f"{' ' * (verify.MOST_PASTED - 10)}a",
        ":" * verify.MOST_PASTED,
    ],
)
@pytest.mark.timeout(60)
def test_the_longest_line_that_may_be_pasted_is_read_once(pasted: str) -> None:
    """A pattern that tried every blank as the end of the value took half an hour."""
    assert set(verify.headers_of(pasted)) <= {"a"}


@pytest.mark.parametrize("line", ['"a": "b",', "'a': 'b' ,", "a:b", "  a : b  ", '"a": "b'])
def test_quotes_and_commas_around_a_header_are_left_out(line: str) -> None:
    assert verify.headers_of(line) == {"a": "b"}

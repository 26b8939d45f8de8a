"""What "verify this body" says of a message."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.core.secret import SecretBytes
from gateway.notifications import message_verification
from gateway.notifications.message_verification import VerificationResult
from gateway.notifications.signing import SigningKeys, sign_or_encrypt

NOW = datetime(2026, 5, 14, 10, 2, tzinfo=UTC)
IDENT = UUID(int=7)
TEXT = '{"type":"PAYMENT","action":"CREATED","payload":{"holder":"Jürgen","amount":"92.00"}}'
MINE, OLD, THEIRS = (SecretBytes(bytes([number]) * 32) for number in (1, 2, 3))
KEYS = SigningKeys(current=MINE)


def sent(mode: str, wrapper: str = "none", keys: SigningKeys = KEYS, at: datetime = NOW) -> tuple[dict[str, str], str]:
    headers, body = sign_or_encrypt(mode, wrapper, keys, IDENT, TEXT, at)
    return {name.lower(): value for name, value in headers.items()}, body.decode()


@pytest.mark.parametrize(("mode", "wrapper"), [("signed", "none"), ("encrypted", "none"), ("encrypted", "json")])
def test_what_was_sent_is_right_and_is_read(mode: str, wrapper: str) -> None:
    verdict = message_verification.verify_message(KEYS, *sent(mode, wrapper), NOW)
    assert (verdict.kind, verdict.text, verdict.previous) == (VerificationResult.RIGHT, TEXT, False)


@pytest.mark.parametrize("mode", ["signed", "encrypted"])
def test_another_secret_is_the_wrong_key_and_the_one_before_is_told(mode: str) -> None:
    assert (
        message_verification.verify_message(SigningKeys(current=THEIRS), *sent(mode), NOW).kind
        == VerificationResult.WRONG_KEY
    )
    verdict = message_verification.verify_message(
        SigningKeys(current=MINE, previous=OLD), *sent(mode, keys=SigningKeys(current=OLD)), NOW
    )
    assert (verdict.kind, verdict.previous) == (VerificationResult.RIGHT, True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda body: body + "\n", "white space"),
        (lambda body: f" {body}", "white space"),
        (lambda body: f"\ufeff{body}", "white space"),
        (lambda body: f"\ufeff{body}\r\n", "white space"),
        (lambda body: json.dumps(json.loads(body), indent=2), "written again"),
        (lambda body: json.dumps(json.loads(body)), "written again"),
        (json.dumps, "quoted"),
    ],
)
def test_a_signed_body_that_was_written_anew_is_wrong_encoding(change, why: str) -> None:  # type: ignore[no-untyped-def]
    headers, body = sent("signed")
    verdict = message_verification.verify_message(KEYS, headers, change(body), NOW)
    assert (verdict.kind, verdict.why) == (VerificationResult.WRONG_ENCODING, why)


def test_another_amount_is_no_encoding() -> None:
    headers, body = sent("signed")
    assert (
        message_verification.verify_message(KEYS, headers, body.replace("92.00", "1.00"), NOW).kind
        == VerificationResult.WRONG_KEY
    )


def test_an_old_or_early_timestamp_is_told_with_its_minutes() -> None:
    old = message_verification.verify_message(KEYS, *sent("signed", at=NOW - timedelta(minutes=13)), NOW)
    assert (old.kind, old.why, old.more) == (VerificationResult.OLD, "old", "13")
    early = message_verification.verify_message(KEYS, *sent("signed", at=NOW + timedelta(minutes=9)), NOW)
    assert (early.kind, early.why) == (VerificationResult.OLD, "early")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_timestamp_at_the_end_of_the_tolerance_is_right(sign: int) -> None:
    at = NOW + sign * message_verification.TIMESTAMP_TOLERANCE
    assert message_verification.verify_message(KEYS, *sent("signed", at=at), NOW).kind == VerificationResult.RIGHT
    late = at + sign * timedelta(seconds=1)
    assert message_verification.verify_message(KEYS, *sent("signed", at=late), NOW).kind == VerificationResult.OLD


@pytest.mark.parametrize("at", ["soon", "1778752920.5", "-5", "1" * 13, "٣", "²", ""])
def test_a_timestamp_is_up_to_twelve_digits_although_it_is_signed(at: str) -> None:
    """Whoever has the secret may sign anything."""
    headers, body = sent("signed")
    made = hmac.digest(MINE.reveal(), f"{headers['webhook-id']}.{at}.{body}".encode(), hashlib.sha256)
    signed = {"webhook-timestamp": at, "webhook-signature": f"v1,{base64.b64encode(made).decode()}"}
    verdict = message_verification.verify_message(KEYS, headers | signed, body, NOW)
    kind = VerificationResult.WRONG_ENCODING if at else VerificationResult.MISSING
    assert (verdict.kind, verdict.more) == (kind, "webhook-timestamp")


def test_an_encrypted_body_in_base64_is_wrong_encoding() -> None:

    headers, body = sent("encrypted")
    verdict = message_verification.verify_message(KEYS, headers, base64.b64encode(bytes.fromhex(body)).decode(), NOW)
    assert (verdict.kind, verdict.why) == (VerificationResult.WRONG_ENCODING, "body in base64")
    assert message_verification.verify_message(KEYS, headers, "not hex at all!", NOW).why == "body is no hex"
    assert message_verification.verify_message(KEYS, headers, '{"body": "00"}', NOW).why == "no encryptedBody"


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("signed", "webhook-id"),
        ("signed", "webhook-timestamp"),
        ("encrypted", "x-initialization-vector"),
        ("encrypted", "x-authentication-tag"),
    ],
)
def test_a_header_that_is_missing_is_named(mode: str, name: str) -> None:
    headers, body = sent(mode)
    del headers[name]
    verdict = message_verification.verify_message(KEYS, headers, body, NOW)
    assert (verdict.kind, verdict.why, verdict.more) == (VerificationResult.MISSING, "header", name)


@pytest.mark.parametrize("value", ["v1,", "v1,AAAA", "v1,!!", "v2,AAAA"])
def test_a_signature_that_is_none_is_named(value: str) -> None:
    headers, body = sent("signed")
    verdict = message_verification.verify_message(KEYS, headers | {"webhook-signature": value}, body, NOW)
    expected = (VerificationResult.WRONG_ENCODING, "signature", "webhook-signature")
    assert (verdict.kind, verdict.why, verdict.more) == expected


@pytest.mark.parametrize("value", ["zz", "00", "0" * 33])
@pytest.mark.parametrize("name", ["x-initialization-vector", "x-authentication-tag"])
def test_a_header_that_is_no_hex_of_its_length_is_named(name: str, value: str) -> None:
    headers, body = sent("encrypted")
    verdict = message_verification.verify_message(KEYS, headers | {name: value}, body, NOW)
    assert (verdict.kind, verdict.why) == (VerificationResult.WRONG_ENCODING, "hex header")
    digits = {"x-initialization-vector": 24, "x-authentication-tag": 32}[name]
    assert verdict.more == f"{name}: {digits}", "which is how many it has to have"


@pytest.mark.parametrize("name", ["x-initialization-vector", "x-authentication-tag"])
@pytest.mark.parametrize("space", ["  ", "\t\n", "\u2003 "])
def test_digits_with_a_space_between_them_are_no_hex(name: str, space: str) -> None:
    """Python reads them, other languages do not, and the merchant's code is what is looked at."""
    headers, body = sent("encrypted")
    verdict = message_verification.verify_message(
        KEYS, headers | {name: headers[name][:2] + space + headers[name][2:]}, body, NOW
    )
    assert (verdict.kind, verdict.why) == (VerificationResult.WRONG_ENCODING, "hex header")


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
    assert message_verification.verify_message(KEYS, headers, body, NOW).kind in (
        VerificationResult.WRONG_ENCODING,
        VerificationResult.MISSING,
    )


def test_headers_are_read_as_people_paste_them() -> None:
    pasted = 'POST /hooks HTTP/1.1\nWebhook-Id: msg_1\n"webhook-timestamp": "17",\nhost : shop.example\n\nrubbish'
    found = message_verification.parse_pasted_headers(pasted)
    assert found["webhook-id"] == "msg_1"
    assert found["webhook-timestamp"] == "17"
    assert found["host"] == "shop.example"


@pytest.mark.parametrize(
    "pasted",
    [
        f"a: x{' ' * (message_verification.MAX_PASTED_CHARS - 10)}x",
        f"a:{'x ' * (message_verification.MAX_PASTED_CHARS // 2 - 10)}x",
        f"{' ' * (message_verification.MAX_PASTED_CHARS - 10)}a",
        ":" * message_verification.MAX_PASTED_CHARS,
    ],
)
@pytest.mark.timeout(60)
def test_the_longest_line_that_may_be_pasted_is_read_once(pasted: str) -> None:
    """A pattern that tried every blank as the end of the value took half an hour."""
    assert set(message_verification.parse_pasted_headers(pasted)) <= {"a"}


@pytest.mark.parametrize("line", ['"a": "b",', "'a': 'b' ,", "a:b", "  a : b  ", '"a": "b'])
def test_quotes_and_commas_around_a_header_are_left_out(line: str) -> None:
    assert message_verification.parse_pasted_headers(line) == {"a": "b"}


def test_of_two_headers_of_one_name_the_first_is_read() -> None:
    """What a proxy of the receiver added stands below ours."""
    assert message_verification.parse_pasted_headers("Webhook-Id: ours\nwebhook-id: another") == {"webhook-id": "ours"}


@pytest.mark.parametrize("mode", ["signed", "encrypted"])
def test_where_no_key_fits_the_one_before_is_not_named(mode: str) -> None:
    keys = SigningKeys(current=THEIRS, previous=OLD)
    assert not message_verification.verify_message(keys, *sent(mode), NOW).previous


def test_what_opens_and_is_no_text_is_no_message_of_ours() -> None:
    """A message that was encrypted with the right key, but not by the product."""
    vector = bytes(12)
    sealed = AESGCM(MINE.reveal()).encrypt(vector, b"\xff\xfe", None)
    headers = {"x-initialization-vector": vector.hex(), "x-authentication-tag": sealed[-16:].hex()}
    verdict = message_verification.verify_message(KEYS, headers, sealed[:-16].hex(), NOW)
    assert (verdict.kind, verdict.why) == (VerificationResult.WRONG_KEY, "does not open")


@pytest.mark.parametrize(("seconds", "minutes"), [(301, "5"), (359, "5"), (360, "6"), (781, "13")])
@pytest.mark.parametrize(("sign", "why"), [(-1, "old"), (1, "early")])
def test_what_is_out_of_time_is_told_with_whole_minutes_its_text_and_its_key(
    seconds: int, minutes: str, sign: int, why: str
) -> None:
    keys = SigningKeys(current=MINE, previous=OLD)
    message = sent("signed", keys=SigningKeys(current=OLD), at=NOW + sign * timedelta(seconds=seconds))
    verdict = message_verification.verify_message(keys, *message, NOW)
    assert (verdict.kind, verdict.why, verdict.more, verdict.text, verdict.previous) == (
        VerificationResult.OLD, why, minutes, TEXT, True,
    )  # fmt: skip


@pytest.mark.parametrize("previous", [False, True])
def test_what_was_changed_on_the_way_is_shown_as_it_was_sent(previous: bool) -> None:
    keys = SigningKeys(current=MINE, previous=OLD)
    headers, body = sent("signed", keys=SigningKeys(current=OLD if previous else MINE))
    verdict = message_verification.verify_message(keys, headers, f"{body} ", NOW)
    assert (verdict.kind, verdict.text, verdict.previous) == (VerificationResult.WRONG_ENCODING, TEXT, previous)


@pytest.mark.parametrize("other", ["v1,AAAA", "v2,x", "rubbish", "v1"])
@pytest.mark.parametrize("first", [True, False])
def test_of_several_signatures_one_that_fits_is_enough(other: str, first: bool) -> None:
    """While a rotation overlaps there are two, and later versions may stand beside ours."""
    headers, body = sent("signed")
    own = headers["webhook-signature"]
    both = f"{other} {own}" if first else f"{own} {other}"
    verdict = message_verification.verify_message(KEYS, headers | {"webhook-signature": both}, body, NOW)
    assert verdict.kind == VerificationResult.RIGHT
    padded = headers | {
        "webhook-id": f" {headers['webhook-id']} ",
        "webhook-timestamp": f"{headers['webhook-timestamp']} ",
    }
    assert message_verification.verify_message(KEYS, padded, body, NOW).kind == VerificationResult.RIGHT


def test_a_signature_of_our_length_in_another_version_is_none() -> None:
    headers, body = sent("signed")
    other = headers["webhook-signature"].replace("v1,", "v2,")
    verdict = message_verification.verify_message(KEYS, headers | {"webhook-signature": other}, body, NOW)
    assert (verdict.kind, verdict.why) == (VerificationResult.WRONG_ENCODING, "signature")


@pytest.mark.parametrize(
    ("change", "kind", "why"),
    [
        (lambda body, tag: body, VerificationResult.RIGHT, "right"),
        (lambda body, tag: f" {body}\n", VerificationResult.RIGHT, "right"),
        (lambda body, tag: f'"{body}"', VerificationResult.RIGHT, "right"),
        (lambda body, tag: body.upper(), VerificationResult.RIGHT, "right"),
        (lambda body, tag: f'{{"encryptedBody": "{body}"}}', VerificationResult.RIGHT, "right"),
        (lambda body, tag: body + tag, VerificationResult.WRONG_ENCODING, "tag inside"),
        (
            lambda body, tag: base64.b64encode(bytes.fromhex(body + tag)).decode(),
            VerificationResult.WRONG_ENCODING,
            "body in base64",
        ),
        (lambda body, tag: body[:-2], VerificationResult.WRONG_KEY, "does not open"),
        (lambda body, tag: body[:-1] + "!", VerificationResult.WRONG_ENCODING, "body is no hex"),
        (lambda body, tag: "", VerificationResult.WRONG_ENCODING, "body is no hex"),
        (lambda body, tag: "{", VerificationResult.WRONG_ENCODING, "no encryptedBody"),
        (lambda body, tag: '{"body": 1}', VerificationResult.WRONG_ENCODING, "no encryptedBody"),
    ],
)
@pytest.mark.parametrize("previous", [False, True])
def test_an_encrypted_body_is_opened_in_the_forms_that_it_takes_on_the_way(
    change: Callable[[str, str], str], kind: VerificationResult, why: str, previous: bool
) -> None:
    keys = SigningKeys(current=MINE, previous=OLD)
    headers, body = sent("encrypted", keys=SigningKeys(current=OLD if previous else MINE))
    verdict = message_verification.verify_message(keys, headers, change(body, headers["x-authentication-tag"]), NOW)
    read = verdict.text == TEXT
    assert (verdict.kind, verdict.why) == (kind, why)
    assert read is (why in ("right", "tag inside", "body in base64"))
    assert verdict.previous is (previous and read)


@pytest.mark.parametrize("name", ["x-initialization-vector", "x-authentication-tag"])
def test_one_header_of_two_is_an_encrypted_message_that_lacks_the_other(name: str) -> None:
    headers, body = sent("encrypted")
    verdict = message_verification.verify_message(KEYS, {name: headers[name]}, body, NOW)
    assert (verdict.kind, verdict.why) == (VerificationResult.MISSING, "header")
    assert message_verification.verify_message(KEYS, {}, body, NOW).why == "no headers"


@pytest.mark.parametrize(
    "body",
    ["[" * 60_000, '{"a":' * 20_000, '{"encryptedBody":' * 10_000, r'"\ud800"', r'{"encryptedBody": "\ud800"}', "🦊"],
    ids=["lists", "objects", "encrypted", "half a character", "half a character within", "no ASCII"],
)
@pytest.mark.parametrize("mode", ["signed", "encrypted"])
def test_what_nests_too_deep_or_is_no_character_is_no_message_of_ours(mode: str, body: str) -> None:
    """And no error: people paste what they find."""
    headers, _ = sent(mode)
    verdict = message_verification.verify_message(KEYS, headers, body, NOW)
    wrong = VerificationResult.WRONG_KEY if mode == "signed" else VerificationResult.WRONG_ENCODING
    assert (verdict.kind, verdict.text) == (wrong, "")


@pytest.mark.parametrize("prefix", ["x", "!", "\uffff"])
def test_no_other_character_at_the_beginning_is_left_out(prefix: str) -> None:
    headers, body = sent("signed")
    verdict = message_verification.verify_message(KEYS, headers, prefix + body, NOW)
    assert verdict.kind == VerificationResult.WRONG_KEY


@pytest.mark.parametrize("foreign", ["!", " ", "\n", "-"])
def test_base64_with_any_foreign_character_is_none(foreign: str) -> None:
    """Python leaves them out unless it is told not to."""
    headers, body = sent("encrypted")
    text = base64.b64encode(bytes.fromhex(body)).decode()
    verdict = message_verification.verify_message(KEYS, headers, text[:4] + foreign * 4 + text[4:], NOW)
    assert (verdict.kind, verdict.why) == (VerificationResult.WRONG_ENCODING, "body is no hex")
    headers, body = sent("signed")
    signature = headers["webhook-signature"].removeprefix("v1,")
    changed = headers | {"webhook-signature": f"v1,{signature[:4]}!!!!{signature[4:]}"}
    assert message_verification.verify_message(KEYS, changed, body, NOW).why == "signature"


@pytest.mark.parametrize(("digits", "read"), [(1, True), (11, True), (12, True), (13, False)])
def test_a_timestamp_has_up_to_twelve_digits(digits: int, read: bool) -> None:
    headers, body = sent("signed")
    at = "1" * digits
    made = hmac.digest(MINE.reveal(), f"{headers['webhook-id']}.{at}.{body}".encode(), hashlib.sha256)
    signed = {"webhook-timestamp": at, "webhook-signature": f"v1,{base64.b64encode(made).decode()}"}
    verdict = message_verification.verify_message(KEYS, headers | signed, body, NOW)
    assert verdict.kind == (VerificationResult.OLD if read else VerificationResult.WRONG_ENCODING)


@pytest.mark.parametrize("line", ["a", "a b: c", "é: c", ": c", f"{'a' * 129}: c", "a_b: c"])
def test_a_line_without_a_headers_name_is_skipped(line: str) -> None:
    assert message_verification.parse_pasted_headers(f"{line}\n{'b' * 128}: c") == {"b" * 128: "c"}


@pytest.mark.parametrize("header", ["webhook-signature", "x-initialization-vector"])
def test_the_signature_decides_how_a_message_is_read(header: str) -> None:
    headers, body = sent("signed")
    encrypted, _ = sent("encrypted")
    both = headers | encrypted
    verdict = message_verification.verify_message(KEYS, both if header == "webhook-signature" else encrypted, body, NOW)
    right = header == "webhook-signature"
    assert (verdict.kind == VerificationResult.RIGHT) is right

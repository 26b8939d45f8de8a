"""Sealing of messages: no two under one key share a nonce; during a rotation each mode uses the keys it should.

Source: decisions, section 6; NIST SP 800-38D, 8: a repeated nonce gives the authentication key away.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.core.secret import SecretBytes
from gateway.notifications import signing
from gateway.notifications.signing import SigningKeys, sign_or_encrypt

NOW = datetime(2026, 5, 14, 10, 2, 3, 999_999, tzinfo=UTC)
IDENT, TEXT = UUID(int=0xA7), '{"type":"PAYMENT","holder":"Jürgen"}'
NEW, OLD = (SecretBytes(bytes([number]) * 32) for number in (1, 2))


def opened(key: SecretBytes, headers: dict[str, str], body: bytes) -> str:
    text = json.loads(body)["encryptedBody"] if headers["Content-Type"].startswith("application/json") else body
    octets = bytes.fromhex(text if isinstance(text, str) else text.decode())
    tag = bytes.fromhex(headers["X-Authentication-Tag"])
    return AESGCM(key.reveal()).decrypt(bytes.fromhex(headers["X-Initialization-Vector"]), octets + tag, None).decode()


@pytest.mark.parametrize("wrapper", ["none", "json"])
def test_no_two_messages_under_one_key_have_the_same_nonce(wrapper: str) -> None:
    """The same message sent again, too."""
    keys = SigningKeys(current=NEW)
    sent = [sign_or_encrypt("encrypted", wrapper, keys, IDENT, TEXT, NOW) for _ in range(50)]
    nonces = {headers["X-Initialization-Vector"] for headers, _ in sent}
    assert len(nonces) == 50
    assert {len(bytes.fromhex(each)) for each in nonces} == {12}
    assert len({body for _, body in sent}) == 50
    assert {opened(NEW, *each) for each in sent} == {TEXT}


@pytest.mark.parametrize("wrapper", ["none", "json"])
def test_while_a_rotation_overlaps_a_body_is_sealed_for_the_key_before_and_then_for_the_new_one(wrapper: str) -> None:
    both = sign_or_encrypt("encrypted", wrapper, SigningKeys(current=NEW, previous=OLD), IDENT, TEXT, NOW)
    assert opened(OLD, *both) == TEXT
    with pytest.raises(InvalidTag):
        opened(NEW, *both)
    assert opened(NEW, *sign_or_encrypt("encrypted", wrapper, SigningKeys(current=NEW), IDENT, TEXT, NOW)) == TEXT


@pytest.mark.parametrize("previous", [None, OLD])
def test_a_signature_covers_id_moment_and_body_by_every_key_the_new_one_first(previous: SecretBytes | None) -> None:
    """Standard Webhooks: v1 of id.timestamp.body; the moment is cut to whole seconds."""
    headers, body = sign_or_encrypt("signed", "none", SigningKeys(current=NEW, previous=previous), IDENT, TEXT, NOW)
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == (f"msg_{IDENT.hex}", str(int(NOW.timestamp())))
    signed = f"msg_{IDENT.hex}.{int(NOW.timestamp())}.{TEXT}".encode()
    made = [
        "v1," + base64.b64encode(hmac.digest(key.reveal(), signed, hashlib.sha256)).decode()
        for key in (NEW, previous)
        if key is not None
    ]
    assert headers["webhook-signature"].split(" ") == made
    assert body == TEXT.encode()
    later, _ = sign_or_encrypt("signed", "none", SigningKeys(current=NEW), IDENT, TEXT, NOW + timedelta(seconds=1))
    assert later["webhook-signature"] not in headers["webhook-signature"]


def test_a_secret_is_64_hex_digits_or_32_bytes_in_base64_and_nothing_near_it() -> None:
    octets = bytes(range(32))
    text = base64.b64encode(octets).decode()
    for right in (octets.hex(), octets.hex().upper(), f" {octets.hex()}\n", f"whsec_{text}"):
        assert signing.parse_webhook_secret(right).reveal() == octets.hex()
    assert signing.format_standard_secret(signing.parse_webhook_secret(octets.hex())).reveal() == f"whsec_{text}"
    short, long = (base64.b64encode(bytes(number)).decode() for number in (31, 33))
    for wrong in (
        "",
        octets.hex()[:-2],
        octets.hex() + "00",
        octets.hex()[:-1] + "g",
        text,
        f"whsec_{short}",
        f"whsec_{long}",
        f"whsec_{text[:-1]}!",
        f"whsec_{text[:20]}!{text[20:]}",
        f"whsec_{text[:20]} {text[20:]}",
        f"WHSEC_{text}",
    ):
        with pytest.raises(ValueError, match="64 hex digits"):
            signing.parse_webhook_secret(wrong)
    assert len({signing.generate_webhook_secret().reveal() for _ in range(20)}) == 20


@pytest.mark.parametrize("wrapper", ["none", "json"])
def test_an_encrypted_body_is_hex_or_an_object_of_it_as_its_type_says(wrapper: str) -> None:
    """Of the endpoint's setting, read from its row: any text that says it."""
    headers, body = sign_or_encrypt("encrypted", wrapper, SigningKeys(current=NEW), IDENT, TEXT, NOW)
    digits = json.loads(body)["encryptedBody"] if wrapper == "json" else body.decode()
    assert len(bytes.fromhex(digits)) == len(TEXT.encode())
    kind = {"none": "text/plain; charset=utf-8", "json": "application/json; charset=utf-8"}[wrapper]
    assert headers["Content-Type"] == kind
    assert set(headers) == {"Content-Type", "X-Initialization-Vector", "X-Authentication-Tag"}
    assert body == (f'{{"encryptedBody":"{digits}"}}' if wrapper == "json" else digits).encode()


def test_a_signed_message_says_that_it_is_json() -> None:
    headers, _ = sign_or_encrypt("signed", "none", SigningKeys(current=NEW), IDENT, TEXT, NOW)
    assert headers["Content-Type"] == "application/json; charset=utf-8"

"""The docs' receiver of webhooks: what strangers send is refused in the promised way."""

from __future__ import annotations

import time

import pytest

from gateway.portal.webhook_receiver import read_encrypted, read_signed

SECRET = "ab" * 32
NOW = str(int(time.time()))
SIGNED = {"webhook-id": "1", "webhook-timestamp": NOW, "webhook-signature": "v1,x"}
BODIES = (b"{}", b"", b"00", b"xx", b"\xff", b'{"encryptedBody": 1}', b'{"encryptedBody": "0"}', b"{")
SEALED = {"x-initialization-vector": "00" * 12, "x-authentication-tag": "00" * 16}


@pytest.mark.parametrize("lacking", [*SIGNED, None])
@pytest.mark.parametrize("stamp", [NOW, "9" * 400, "-1", "x", ""], ids=["now", "long", "negative", "text", "empty"])
def test_a_webhook_without_or_with_a_wrong_signature_is_a_value_error(lacking: str | None, stamp: str) -> None:
    headers = {name: text for name, text in {**SIGNED, "webhook-timestamp": stamp}.items() if name != lacking}
    with pytest.raises(ValueError):
        read_signed(headers, b"{}", [SECRET])


def test_a_signature_of_other_letters_is_a_value_error() -> None:
    with pytest.raises(ValueError):
        read_signed({**SIGNED, "webhook-signature": "v1,é"}, b"{}", [SECRET])


@pytest.mark.parametrize("lacking", [*SEALED, None])
@pytest.mark.parametrize(
    "body", [b"{}", b"", b"00", b"xx", b"\xff", b'{"encryptedBody": 1}', b'{"encryptedBody": "0"}', b"{"]
)
def test_an_encrypted_webhook_that_is_none_is_a_value_error(lacking: str | None, body: bytes) -> None:
    headers = {name: text for name, text in SEALED.items() if name != lacking}
    with pytest.raises(ValueError):
        read_encrypted(headers, body, [SECRET])

"""Tokens and keys that others published open here as they do elsewhere. Each file names where it comes from."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.core import clock
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.wallets import cms, wallet1, wallet2, wallet3
from gateway.wallets.formats import decrypt_wallet_token
from gateway.wallets.keys import WalletKeys, parse_p256_key, parse_wallet_keys
from gateway.wallets.token import DecryptedToken, TokenRefusalReason, WalletTokenRefusedError

VECTORS = Path(__file__).parent / "vectors"


def vector(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text())
    return found


def key_of(name: str, **facts: Any) -> WalletKeys:
    found = vector(name)
    return parse_wallet_keys(name.partition("-")[0], Secret(found["private"]), found["facts"] | facts, check=True)


def opened(name: str, **changes: Any) -> DecryptedToken:
    found = vector(name)
    token = json.dumps(found["token"] | changes)
    return decrypt_wallet_token(name.partition("-")[0], token, [key_of(name)], now=datetime.fromisoformat(found["now"]))


def told(token: DecryptedToken) -> dict[str, Any]:
    return {
        "number": token.number.reveal(),
        "expiry_month": token.expiry_month,
        "expiry_year": token.expiry_year,
        "kind": token.kind,
        "cryptogram": token.cryptogram.reveal() if token.cryptogram is not None else None,
        "eci": token.eci,
        "money": str(token.money) if token.money is not None else None,
    }


@pytest.mark.parametrize("name", ["wallet1-ec_v1", "wallet2-ecv2"])
def test_a_published_token_opens_to_what_was_published_with_it(name: str) -> None:
    """Mobile wallets: the service decrypts the token."""
    assert told(opened(name)) == vector(name)["opened"]


def test_the_secrets_on_the_way_are_the_published_ones() -> None:
    """Mobile wallets, EC_v1: shared secret and data key."""
    found, key = vector("wallet1-ec_v1"), key_of("wallet1-ec_v1")
    assert isinstance(key.private, ec.EllipticCurvePrivateKey)
    theirs = parse_p256_key(b64decode(found["token"]["header"]["ephemeralPublicKey"]))
    shared = key.private.exchange(ec.ECDH(), theirs)
    assert b64encode(shared).decode() == found["shared_secret"]
    assert b64encode(wallet1.derive_data_key(shared, key.merchant)).decode() == found["data_key"]


def test_a_published_rsa_signature_holds_up_to_its_root() -> None:
    """Mobile wallets, RSA_v1: signature, chain and signing time."""
    found = vector("wallet1-rsa_v1-signature")
    token, roots = found["token"], key_of("wallet1-ec_v1").roots
    parts = [b64decode(token["header"]["wrappedKey"]), b64decode(token["data"])]
    content = b"".join(parts) + bytes.fromhex(token["header"]["transactionId"])
    signature = b64decode(token["signature"])
    assert cms.verify_cms_signature(signature, content, roots).isoformat() == found["signed_at"]
    with pytest.raises(WalletTokenRefusedError) as refused:
        cms.verify_cms_signature(signature, content + b"\0", roots)
    assert refused.value.reason is TokenRefusalReason.TAMPERED
    with pytest.raises(WalletTokenRefusedError) as refused:
        cms.verify_cms_signature(signature, content, [])
    assert refused.value.reason is TokenRefusalReason.UNTRUSTED


def test_a_published_token_signed_by_a_root_key_opens() -> None:
    """Mobile wallets, ECv1."""
    found, key = vector("wallet2-ecv1"), key_of("wallet2-ecv1")
    sealed = wallet2.verify_wallet2(json.dumps(found["token"]), [key], now=clock.real_now())
    assert wallet2.decrypt_signed_message(sealed.protocol, sealed.message, [key]).decode() == found["plain"]


def test_a_published_jwe_opens() -> None:
    """Mobile wallets, JWE: RFC 7516, Appendix A.1."""
    found = vector("wallet3-jwe")
    compact = wallet3.extract_compact_jwe(found["token"])
    assert wallet3.decrypt_compact_jwe(compact, [key_of("wallet3-jwe")]).decode() == found["plain"]


def test_a_published_token_is_too_old_today_and_was_of_the_future_before() -> None:
    """Mobile wallets, EC_v1: the signing time is near the present."""
    found, key = vector("wallet1-ec_v1"), key_of("wallet1-ec_v1")
    made = datetime.fromisoformat(found["now"])
    for now, reason in (
        (clock.real_now(), TokenRefusalReason.EXPIRED),
        (made + timedelta(minutes=16), TokenRefusalReason.EXPIRED),
        (made - timedelta(minutes=10), TokenRefusalReason.FROM_THE_FUTURE),
    ):
        with pytest.raises(WalletTokenRefusedError) as refused:
            decrypt_wallet_token("wallet1", json.dumps(found["token"]), [key], now=now)
        assert refused.value.reason is reason


def test_a_published_token_is_for_its_recipient_its_merchant_and_its_amount_only() -> None:
    """Mobile wallets: recipientId, merchant identifier, amount."""
    found = vector("wallet2-ecv2")
    token, now = json.dumps(found["token"]), datetime.fromisoformat(found["now"])
    for facts, reason in (
        ({"recipients": ["notSomeRecipient"]}, TokenRefusalReason.TAMPERED),
        ({"gatewayMerchantId": "ours"}, TokenRefusalReason.OTHER_RECIPIENT),
        ({"senders": vector("wallet2-ecv1")["facts"]["senders"]}, TokenRefusalReason.UNTRUSTED),
    ):
        with pytest.raises(WalletTokenRefusedError) as refused:
            decrypt_wallet_token("wallet2", token, [key_of("wallet2-ecv2", **facts)], now=now)
        assert refused.value.reason is reason
    found = vector("wallet1-ec_v1")
    token, now = json.dumps(found["token"]), datetime.fromisoformat(found["now"])
    with pytest.raises(WalletTokenRefusedError) as refused:
        decrypt_wallet_token("wallet1", token, [key_of("wallet1-ec_v1", merchantId="another")], now=now)
    assert refused.value.reason is TokenRefusalReason.UNDECIPHERABLE
    for text, currency in (("1.01", "USD"), ("1.00", "EUR")):
        with pytest.raises(WalletTokenRefusedError) as refused:
            decrypt_wallet_token(
                "wallet1", token, [key_of("wallet1-ec_v1")], now=now, money=Money.parse(text, currency)
            )
        assert refused.value.reason is TokenRefusalReason.AMOUNT_DIFFERS


def test_an_intermediate_key_ends_when_it_says() -> None:
    """Mobile wallets, ECv2: keyExpiration of the intermediate key."""
    found = vector("wallet2-ecv2")
    with pytest.raises(WalletTokenRefusedError) as refused:
        decrypt_wallet_token(
            "wallet2",
            json.dumps(found["token"]),
            [key_of("wallet2-ecv2")],
            now=datetime.fromisoformat("2030-01-01T00:00:00+00:00"),
        )
    assert (refused.value.reason, "intermediateSigningKey" in str(refused.value)) == (TokenRefusalReason.EXPIRED, True)

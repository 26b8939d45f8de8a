"""The code in a shopper's URL: it is valid for one payment, and the addresses that carry it."""

from __future__ import annotations

import re
from uuid import UUID

import pytest

from gateway.payments.shopper_tokens import (
    build_challenge_return_url,
    build_return_url,
    build_shopper_redirect,
    build_shopper_token,
    is_shopper_token,
)
from gateway.vault.sealing import current_vault

PAYMENT, OTHER = UUID(int=1), UUID(int=2)


def test_a_token_is_of_one_payment_and_the_same_each_time() -> None:
    token = build_shopper_token(PAYMENT)
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert token == build_shopper_token(PAYMENT)
    assert is_shopper_token(PAYMENT, token)
    assert not is_shopper_token(OTHER, token)
    assert not is_shopper_token(PAYMENT, build_shopper_token(OTHER))


@pytest.mark.parametrize("sent", ["", "0", "0" * 32, "x" * 32, "upper", "longer"])
def test_what_is_no_token_opens_nothing(sent: str) -> None:
    token = build_shopper_token(PAYMENT)
    assert not is_shopper_token(PAYMENT, {"upper": token.upper(), "longer": f"{token}0"}.get(sent, sent))


def test_the_same_key_over_the_payment_alone_is_no_token() -> None:
    """Fingerprints of other things are made under the same keys."""
    assert not is_shopper_token(PAYMENT, current_vault().fingerprint(PAYMENT.hex).hex())


def test_the_addresses_name_the_payment_and_its_token() -> None:
    token, base = build_shopper_token(PAYMENT), f"http://testserver/shopper/{PAYMENT.hex}"
    redirect = build_shopper_redirect(PAYMENT)
    assert (redirect.url, redirect.parameters) == (base, (("token", token),))
    assert build_return_url(PAYMENT) == f"{base}/return?token={token}"
    assert build_challenge_return_url(PAYMENT) == f"{base}/challenged?token={token}"

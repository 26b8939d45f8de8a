"""Which stored cards have a network token, when it can be paid with, and what is shown of it. docs/decisions/0126."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.models import Channel, NetworkToken, Registration
from gateway.payments import stored_tokens
from gateway.payments.stored_tokens import (
    build_token_row,
    get_network_token,
    has_usable_token,
    is_token_usable,
    is_tokenizable,
    render_stored_token,
    wants_network_tokens,
)

NOW = datetime(2035, 11, 15, tzinfo=UTC)
ACTIVE: dict[str, Any] = {
    "status": "ACTIVE", "number_sealed": b"sealed", "expiry_month": "11", "expiry_year": "2035",
}  # fmt: skip


@pytest.mark.parametrize(
    ("brand", "card", "wallet", "expected"),
    [
        ("VISA", {}, False, True),
        ("VISA", {"numberType": "PAN"}, False, True),
        ("VISA", {"numberType": "DPAN"}, False, False),
        ("VISA", {}, True, False),
        ("DIRECTDEBIT_SEPA", {}, False, False),
        ("WALLET1", {}, False, False),
    ],
)
def test_a_card_of_no_wallet_may_have_a_token(brand: str, card: dict[str, str], wallet: bool, expected: bool) -> None:
    assert is_tokenizable(brand, card, wallet=wallet) is expected


@pytest.mark.parametrize("service", [None, object()], ids=["without", "with"])
@pytest.mark.parametrize("wanted", [False, True])
def test_a_channel_gets_tokens_where_it_wants_them_and_somebody_gives_them(
    monkeypatch: pytest.MonkeyPatch, service: object, wanted: bool
) -> None:
    monkeypatch.setattr(stored_tokens, "load_token_service", lambda: service)
    assert wants_network_tokens(Channel(network_tokens=wanted)) is (wanted and service is not None)


@pytest.mark.parametrize(
    ("values", "usable"),
    [
        ({}, True),
        ({"expiry_month": "12"}, True),
        ({"expiry_month": "10"}, False),
        ({"expiry_year": "2034", "expiry_month": "12"}, False),
        ({"number_sealed": None}, False),
        *(({"status": status}, False) for status in ("REQUESTED", "SUSPENDED", "REFUSED", "DELETED")),
    ],
    ids=str,
)
def test_a_token_is_paid_with_while_it_is_active_and_until_the_end_of_its_month(
    values: dict[str, Any], usable: bool
) -> None:
    row = NetworkToken(**{**ACTIVE, **values})
    assert is_token_usable(row, NOW) is usable
    owner = Registration(channel=Channel(network_tokens=True))
    owner.network_token = row
    assert has_usable_token(owner, NOW) is usable
    owner.channel.network_tokens = False
    assert not has_usable_token(owner, NOW)


def test_a_card_without_a_token_has_none_to_pay_with_or_to_show() -> None:
    row = Registration(channel=Channel(network_tokens=True))
    row._state.fields_cache["network_token"] = None  # type: ignore[attr-defined]
    assert get_network_token(row) is None
    assert not is_token_usable(None, NOW)
    assert not has_usable_token(row, NOW)
    assert render_stored_token(row) == {}


def test_a_token_that_is_asked_for_is_due_at_once_by_real_time() -> None:
    before = clock.real_now()
    row = NetworkToken(**build_token_row(UUID(int=7), NOW))
    assert (row.registration_id, row.status, row.changed_at, row.number_sealed) == (UUID(int=7), "REQUESTED", NOW, None)
    assert row.due_at is not None
    assert before <= row.due_at < before + timedelta(minutes=1)
    assert row.id != NetworkToken(**build_token_row(UUID(int=7), NOW)).id


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"status": "REQUESTED"}, {"status": "REQUESTED"}),
        (
            {**ACTIVE, "last4": "4242"},
            {"status": "ACTIVE", "last4Digits": "4242", "expiryMonth": "11", "expiryYear": "2035"},
        ),
    ],
    ids=["asked for", "given"],
)
def test_a_token_is_shown_by_its_state_and_last_digits(values: dict[str, Any], shown: dict[str, str]) -> None:
    owner = Registration()
    owner.network_token = NetworkToken(**values)
    assert render_stored_token(owner) == {"networkToken": shown}

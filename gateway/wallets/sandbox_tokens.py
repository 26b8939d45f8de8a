"""Generated keys of a channel, and test tokens for them. Not available in live."""

from __future__ import annotations

from django.conf import settings

from gateway.core import clock
from gateway.models import Channel, WalletKey
from gateway.vault.sealing import VaultError
from gateway.wallets import token_factory
from gateway.wallets.channel_tokens import store_wallet_key, unseal_wallet_key
from gateway.wallets.formats import WALLET_FORMATS
from gateway.wallets.keys import parse_wallet_keys


class SampleTokenUnavailableError(Exception):
    """No test token can be made: the text says why and what to do."""


def generate_channel_keys(channel: Channel, *wanted: str) -> list[WalletKey]:
    """Generate a key for every format (of ``wanted``, if any) for which the channel has none. Returns the new ones."""
    _require_test_environment()
    made = []
    for wallet, forms in WALLET_FORMATS.items():
        for form in forms:
            if (not wanted or form in wanted) and _find_generated_key(channel, form) is None:
                key = token_factory.generate_wallet_key(form, now=clock.real_now())
                name = f"Test key, {', '.join(key.facts['makes'])}"
                made.append(store_wallet_key(channel, wallet, key.private, key.facts, name=name, maker=key.maker))
    return made


def build_channel_token(
    channel: Channel, wallet: str, form: str, sheet: token_factory.PaymentSheet, *, expired: bool = False
) -> str:
    """Build a token for the channel's generated key. Raises SampleTokenUnavailableError."""
    _require_test_environment()
    if form not in WALLET_FORMATS[wallet]:
        raise SampleTokenUnavailableError(f"{wallet} has no format {form}; it has {', '.join(WALLET_FORMATS[wallet])}.")
    row = _find_generated_key(channel, form)
    if row is None:
        raise SampleTokenUnavailableError(f"Channel {channel.entity_id} has no test key for {form}: add --make-keys.")
    try:
        held = unseal_wallet_key(row)
    except VaultError as fault:
        raise SampleTokenUnavailableError(str(fault)) from None
    keys = parse_wallet_keys(wallet, held["private"], row.facts)
    return token_factory.build_wallet_token(form, sheet, keys, held["maker"], now=clock.real_now(), expired=expired)


def _find_generated_key(channel: Channel, form: str) -> WalletKey | None:
    """The newest active generated key for a format."""
    rows = WalletKey.objects.filter(channel=channel, is_test_key=True, active=True, facts__makes__contains=[form])
    return rows.order_by("-created_at").first()


def _require_test_environment() -> None:
    if settings.IS_LIVE:
        raise SampleTokenUnavailableError("The live environment makes no keys and no tokens.")

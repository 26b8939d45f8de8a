"""Made keys of a channel, and test tokens that they open. The live environment has neither."""

from __future__ import annotations

from django.conf import settings

from gateway import clock
from gateway.models import Channel, WalletKey
from gateway.vault import VaultError
from gateway.wallets import making
from gateway.wallets.channels import add_key, opened_key
from gateway.wallets.formats import FORMATS
from gateway.wallets.keys import keys_of


class NotHere(Exception):
    """No test token can be made: the text says why and what to do."""


def make_keys(channel: Channel, *wanted: str) -> list[WalletKey]:
    """A made key for every format (of ``wanted``, if any) that the channel has none for; the new ones."""
    _only_in_test()
    made = []
    for wallet, forms in FORMATS.items():
        for form in forms:
            if (not wanted or form in wanted) and _made(channel, form) is None:
                key = making.make_key(form, now=clock.real())
                name = f"Test key, {', '.join(key.facts['makes'])}"
                made.append(add_key(channel, wallet, key.private, key.facts, name=name, maker=key.maker))
    return made


def make_token(channel: Channel, wallet: str, form: str, sheet: making.Sheet, *, expired: bool = False) -> str:
    """A token that the channel's made key opens. Raises NotHere."""
    _only_in_test()
    if form not in FORMATS[wallet]:
        raise NotHere(f"{wallet} has no format {form}; it has {', '.join(FORMATS[wallet])}.")
    row = _made(channel, form)
    if row is None:
        raise NotHere(f"Channel {channel.entity_id} has no test key for {form}: add --make-keys.")
    try:
        held = opened_key(row)
    except VaultError as fault:
        raise NotHere(str(fault)) from None
    keys = keys_of(wallet, held["private"], row.facts)
    return making.make_token(form, sheet, keys, held["maker"], now=clock.real(), expired=expired)


def _made(channel: Channel, form: str) -> WalletKey | None:
    """The newest active made key for a format."""
    rows = WalletKey.objects.filter(channel=channel, made=True, active=True, facts__makes__contains=[form])
    return rows.order_by("-created_at").first()


def _only_in_test() -> None:
    if settings.IS_LIVE:
        raise NotHere("The live environment makes no keys and no tokens.")

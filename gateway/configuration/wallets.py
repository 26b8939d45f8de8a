"""The section wallets: the keys that open a channel's wallet tokens. Private keys stand in files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gateway import document as d
from gateway.configuration.section import Section, Target
from gateway.models import WalletKey
from gateway.secret import Secret
from gateway.wallets.channels import add_key
from gateway.wallets.keys import WALLETS, UnusableKey, keys_of

MAX_KEYS: Final = 20
MAX_FILE_BYTES: Final = 65_536
_FILES: Final = d.list_of(d.text(1, 1024), most=10)


def _pem(value: Any, path: str, faults: d.Faults) -> Any:
    if not isinstance(value, str) or not value.startswith("-----BEGIN "):
        faults.add(path, "must be a certificate in PEM")
    return value


def _object(value: Any, path: str, faults: d.Faults) -> Any:
    if not isinstance(value, Mapping):
        faults.add(path, "must be an object, as the provider publishes it")
    return value


_FACTS: Final = d.record(
    merchantId=d.may(d.text(1, 255)), roots=d.may(d.list_of(_pem, most=10)),
    senders=d.may(d.list_of(_object, most=20)), recipients=d.may(d.list_of(d.text(1, 255), most=20)),
    gatewayMerchantId=d.may(d.text(1, 255)), kid=d.may(d.text(1, 255)),
)  # fmt: skip
_ENTRY: Final = d.record(
    keyFile=d.may(d.text(1, 1024)), keyHash=d.may(d.text(1, 44)), name=d.may(d.text(0, 128), ""),
    active=d.may(d.flag, True), made=d.may(d.flag), rootFiles=d.may(_FILES, ()), facts=d.may(_FACTS),
)  # fmt: skip


def _entry(value: Any, path: str, faults: d.Faults) -> Any:
    found = _ENTRY(value, path, faults)
    if (found["keyFile"] is None) == (found["keyHash"] is None):
        faults.add(path, "give either keyFile, the file of a private key in PEM, or keyHash, of a key that is here")
    return found


_SHAPE: Final = d.record(**{wallet: d.may(d.list_of(_entry, most=MAX_KEYS), ()) for wallet in WALLETS})


def _text(target: Target, name: str, path: str, faults: d.Faults) -> str:
    """A file beside the document; its content is never shown."""
    try:
        text = Path(target.folder, name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        faults.add(path, f"{d.shown(name)} cannot be read as text; it is looked for in {d.shown(str(target.folder))}")
        return ""
    if len(text) > MAX_FILE_BYTES:
        faults.add(path, f"{d.shown(name)} is larger than {MAX_FILE_BYTES:,} bytes")
    return text


def _facts(target: Target, entry: Mapping[str, Any], path: str, faults: d.Faults) -> dict[str, Any]:
    found = {name: value for name, value in (entry["facts"] or {}).items() if value}
    files = [_text(target, name, f"{path}.rootFiles[{n}]", faults) for n, name in enumerate(entry["rootFiles"])]
    if files:
        found["roots"] = files
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def _check(target: Target, value: Mapping[str, Any], path: str, faults: d.Faults) -> None:
    there = set(WalletKey.objects.filter(channel=target.channel_there).values_list("wallet", "key_hash"))
    for wallet in WALLETS:
        for place, entry in enumerate(value[wallet]):
            where = f"{path}.{wallet}[{place}]"
            if entry["keyFile"] is None:
                if (wallet, entry["keyHash"]) not in there:
                    faults.add(d.within(where, "keyHash"), "is no key of this channel and wallet")
                continue
            before = len(faults)
            key = Secret(_text(target, entry["keyFile"], d.within(where, "keyFile"), faults))
            facts = _facts(target, entry, where, faults)
            if len(faults) == before:
                try:
                    keys_of(wallet, key, facts, check=True)
                except UnusableKey as fault:
                    faults.add(where, str(fault))


def _apply(target: Target, value: Mapping[str, Any]) -> None:
    channel = target.channel_there
    for wallet in WALLETS:
        for entry in value[wallet]:
            if entry["keyFile"] is None:
                row = WalletKey.objects.get(channel=channel, wallet=wallet, key_hash=entry["keyHash"])
                row.name = entry["name"] or row.name
            else:
                faults = d.Faults()
                key = Secret(_text(target, entry["keyFile"], "", faults))
                row = add_key(channel, wallet, key, _facts(target, entry, "", faults), name=entry["name"])
            row.active = entry["active"]
            row.save(update_fields=["name", "active"])


def _show(target: Target) -> dict[str, Any]:
    shown: dict[str, list[Any]] = {wallet: [] for wallet in WALLETS}
    for row in WalletKey.objects.filter(channel=target.channel_there).order_by("created_at", "id"):
        shown[row.wallet].append(
            {"keyHash": row.key_hash, "name": row.name, "active": row.active, "made": row.made, "facts": row.facts}
        )
    return shown


WALLET_KEYS: Final = Section(
    name="wallets", shape=_SHAPE, check=_check, apply=_apply, show=_show,
    about="Keys that open wallet tokens. A key comes from a file (keyFile), beside the document; one that is here is "
    "named by its keyHash, to rename it or switch it off. Keys that are not named stay.",
)  # fmt: skip

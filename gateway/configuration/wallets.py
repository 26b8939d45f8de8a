"""Section ``wallets``: the keys that decrypt a channel's wallet tokens. Private keys are in files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.core import document as d
from gateway.core.secret import Secret
from gateway.models import WalletKey
from gateway.wallets.channel_tokens import store_wallet_key
from gateway.wallets.keys import WALLET_NAMES, UnusableKeyError, parse_wallet_keys

MAX_WALLET_KEYS: Final = 20
MAX_WALLET_KEY_BYTES: Final = 65_536
_FILES: Final = d.list_shape(d.text_shape(1, 1024), most=10)


def _pem(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, str) or not value.startswith("-----BEGIN "):
        faults.add(path, "must be a certificate in PEM")
    return value


def _object(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, Mapping):
        faults.add(path, "must be an object, as the provider publishes it")
    return value


_FACTS: Final = d.object_shape(
    merchantId=d.optional_member(d.text_shape(1, 255)),
    roots=d.optional_member(d.list_shape(_pem, most=10)),
    senders=d.optional_member(d.list_shape(_object, most=20)),
    recipients=d.optional_member(d.list_shape(d.text_shape(1, 255), most=20)),
    gatewayMerchantId=d.optional_member(d.text_shape(1, 255)),
    kid=d.optional_member(d.text_shape(1, 255)),
)
_ENTRY: Final = d.object_shape(
    keyFile=d.optional_member(d.text_shape(1, 1024)),
    keyHash=d.optional_member(d.text_shape(1, 44)),
    name=d.optional_member(d.text_shape(0, 128), ""),
    active=d.optional_member(d.boolean_shape, True),
    made=d.optional_member(d.boolean_shape),
    rootFiles=d.optional_member(_FILES, ()),
    facts=d.optional_member(_FACTS),
)


def _entry(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    entry = _ENTRY(value, path, faults)
    if (entry["keyFile"] is None) == (entry["keyHash"] is None):
        faults.add(path, "give either keyFile, the file of a private key in PEM, or keyHash, of a key that is here")
    return entry


_SHAPE: Final = d.object_shape(
    **{wallet: d.optional_member(d.list_shape(_entry, most=MAX_WALLET_KEYS), ()) for wallet in WALLET_NAMES}
)


def _read_file(target: ConfigurationTarget, name: str, path: str, faults: d.DocumentFaults) -> str:
    """The content of a file next to the document; it is never shown."""
    try:
        text = Path(target.folder, name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        faults.add(
            path,
            f"{d.abbreviate_value(name)} cannot be read as text; "
            f"it is looked for in {d.abbreviate_value(str(target.folder))}",
        )
        return ""
    if len(text) > MAX_WALLET_KEY_BYTES:
        faults.add(path, f"{d.abbreviate_value(name)} is larger than {MAX_WALLET_KEY_BYTES:,} bytes")
    return text


def _key_facts(
    target: ConfigurationTarget, entry: Mapping[str, Any], path: str, faults: d.DocumentFaults
) -> dict[str, Any]:
    facts = {name: value for name, value in (entry["facts"] or {}).items() if value}
    files = [_read_file(target, name, f"{path}.rootFiles[{n}]", faults) for n, name in enumerate(entry["rootFiles"])]
    if files:
        facts["roots"] = files
    return {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}


def _check(target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    there = set(WalletKey.objects.filter(channel=target.channel_there).values_list("wallet", "key_hash"))
    for wallet in WALLET_NAMES:
        for place, entry in enumerate(value[wallet]):
            where = f"{path}.{wallet}[{place}]"
            if entry["keyFile"] is None:
                if (wallet, entry["keyHash"]) not in there:
                    faults.add(d.member_path(where, "keyHash"), "is no key of this channel and wallet")
                continue
            before = len(faults)
            key = Secret(_read_file(target, entry["keyFile"], d.member_path(where, "keyFile"), faults))
            facts = _key_facts(target, entry, where, faults)
            if len(faults) == before:
                try:
                    parse_wallet_keys(wallet, key, facts, check=True)
                except UnusableKeyError as fault:
                    faults.add(where, str(fault))


def _apply(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    channel = target.channel_there
    for wallet in WALLET_NAMES:
        for entry in value[wallet]:
            if entry["keyFile"] is None:
                row = WalletKey.objects.get(channel=channel, wallet=wallet, key_hash=entry["keyHash"])
                row.name = entry["name"] or row.name
            else:
                faults = d.DocumentFaults()
                key = Secret(_read_file(target, entry["keyFile"], "", faults))
                row = store_wallet_key(channel, wallet, key, _key_facts(target, entry, "", faults), name=entry["name"])
            row.active = entry["active"]
            row.save(update_fields=["name", "active"])


def _show(target: ConfigurationTarget) -> dict[str, Any]:
    shown: dict[str, list[Any]] = {wallet: [] for wallet in WALLET_NAMES}
    for row in WalletKey.objects.filter(channel=target.channel_there).order_by("created_at", "id"):
        shown[row.wallet].append(
            {
                "keyHash": row.key_hash,
                "name": row.name,
                "active": row.active,
                "made": row.is_test_key,
                "facts": row.facts,
            }
        )
    return shown


WALLETS_SECTION: Final = ConfigurationSection(
    name="wallets",
    shape=_SHAPE,
    check=_check,
    apply=_apply,
    show=_show,
    about="Keys that open wallet tokens. A key comes from a file (keyFile), beside the document; one that is here is "
    "named by its keyHash, to rename it or switch it off. Keys that are not named stay.",
)

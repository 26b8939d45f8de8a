"""Section ``acquirers``: a channel's accounts at processors. Secrets are in files of their own, and are stored sealed.

{"acquirers": {"accounts": [{"connector": "stub", "merchant": "M-1", "settings": {}, "secretFiles": {}}]}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.db import transaction

from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.connectors import account_ownership, accounts
from gateway.connectors.port import Connector, ConnectorSetting
from gateway.connectors.routing import list_acquirers
from gateway.core import clock
from gateway.core import document as d
from gateway.core.brands import PAYMENT_BRANDS
from gateway.models import AcquirerAccount

MAX_ACQUIRER_ACCOUNTS: Final = 200
MAX_SETTING_CHARS: Final = 65_536
"""Most characters of one setting: certificates in PEM are long."""
MAX_ACCOUNT_SECRET_BYTES: Final = 65_536
_NAMED: Final = {"brands", "currencies", "name", "settings"}
"""Keys that stay unchanged where the document does not name them."""


# --- settings and secrets -----------------------------------------------------------------------------------------


def parse_account_settings(connector: Connector, given: Any, path: str, faults: d.DocumentFaults) -> dict[str, str]:
    """The non-secret settings of an account, validated by the connector's own list; empty ones are left out. The
    connector may also judge their combination (``faults_of``: setting → fault)."""
    before = len(faults)
    plain = {setting.name: setting for setting in connector.settings if not setting.secret}
    if not isinstance(given, Mapping):
        faults.add(
            path, f"must be an object with {', '.join(plain) or 'nothing in it'}, not {d.abbreviate_value(given)}"
        )
        return {}
    d.refuse_unknown_members(given, plain, path, faults)
    settings = {name: value for name, value in given.items() if name in plain and value not in ("", None)}
    for name, setting in plain.items():
        where = d.member_path(path, name)
        if name in settings:
            if not isinstance(settings[name], str) or not fits_setting(setting, settings[name]):
                faults.add(where, f"must be {setting.allowed}, not {d.abbreviate_value(settings[name])}")
        elif setting.required and not setting.default:
            faults.add(where, f"is required: {setting.about}")
    judge = getattr(connector, "faults_of", None)
    if judge is not None and len(faults) == before:
        for name, why in judge(settings):
            faults.add(d.member_path(path, name), why)
    return settings


def check_account_secrets(
    connector: Connector, given: Mapping[str, str], stored: Mapping[str, Any], path: str, faults: d.DocumentFaults
) -> None:
    """Report what is wrong with an account's secrets. ``given``: new texts; ``stored``: names of those already stored.
    A value is never repeated."""
    secret = {setting.name: setting for setting in connector.settings if setting.secret}
    d.refuse_unknown_members(given, secret, path, faults)
    for name, setting in secret.items():
        if name in given and not fits_setting(setting, given[name]):
            faults.add(d.member_path(path, name), f"must be {setting.allowed}")
        elif name not in given and name not in stored and setting.required:
            faults.add(d.member_path(path, name), f"is required: {setting.about}")


def refuse_moved_account(
    connector: Connector, row: AcquirerAccount, given: Mapping[str, str], path: str, faults: d.DocumentFaults
) -> None:
    """Report changes to settings that identify the account (host, ids) while it has undecided payments. ``given``: all
    new settings. Recovery would ask another host, which does not know the payments, and believe its answer."""
    moved = [
        setting
        for setting in connector.settings
        if setting.place
        and not setting.secret
        and given.get(setting.name, setting.default) != row.settings.get(setting.name, setting.default)
    ]
    if not moved or not (undecided := accounts.count_undecided_payments(row)):
        return
    why = (
        f"must stay {{}}, not {{}}: {undecided} payments of this account have no answer yet, and are asked about there"
    )
    for setting in moved:
        old, new = (
            d.abbreviate_value(settings.get(setting.name, setting.default)) for settings in (row.settings, given)
        )
        faults.add(d.member_path(path, setting.name), f"{why.format(old, new)}. Another place is another account.")


def refuse_foreign_secrets(
    connector: Connector, row: AcquirerAccount, given: Mapping[str, str], path: str, faults: d.DocumentFaults
) -> None:
    """Report new secrets that belong to another account at the processor while this one has undecided payments.
    ``given``: the new ones; their owner was looked up before (gateway.connectors.account_ownership)."""
    if not account_ownership.needs_ownership_check(connector, given) or not (
        undecided := accounts.count_undecided_payments(row)
    ):
        return
    ownership = account_ownership.find_ownership(row, given)
    if ownership is account_ownership.AccountOwnership.SAME:
        return
    about = f"{undecided} payments of this account have no answer yet, and are asked about with it"
    why = {
        account_ownership.AccountOwnership.OTHER: f"is of another account at the processor: {about}. "
        "Another account there is another here.",
        account_ownership.AccountOwnership.UNKNOWN: f"may be of another account, the processor could not tell: "
        f"{about}. Try again.",
    }[ownership]
    for setting in connector.settings:
        if setting.secret and setting.place and setting.name in given:
            faults.add(d.member_path(path, setting.name), why)


def fits_setting(setting: ConnectorSetting, text: str) -> bool:
    """True if the setting accepts this text."""
    most = MAX_ACCOUNT_SECRET_BYTES if setting.secret else MAX_SETTING_CHARS
    return 0 < len(text) <= most and re.fullmatch(setting.pattern, text) is not None


def seal_account_secrets(row: AcquirerAccount, given: Mapping[str, str]) -> None:
    """Add new secrets to the sealed ones of ``row``; the row is not saved here. Raises VaultError."""
    if not given:
        return
    secrets = {name: secret.reveal() for name, secret in accounts.open_connector_secrets(row).items()}
    row.secrets_sealed = accounts.seal_connector_secrets({**secrets, **given}, row.id)
    at = clock.real_now().isoformat(timespec="seconds")
    row.secrets_set = {**row.secrets_set, **dict.fromkeys(given, at)}


def clear_account_cache_after_commit() -> None:
    """After the commit, reload the accounts in this process; other processes do so within a few seconds."""
    transaction.on_commit(accounts.clear_account_cache)


# --- the section --------------------------------------------------------------------------------------------------

_ACCOUNT: Final = d.object_shape(
    connector=d.required_member(d.text_shape(1, 32)),
    merchant=d.required_member(d.text_shape(1, 64)),
    name=d.optional_member(d.text_shape(0, 128)),
    brands=d.optional_member(d.list_shape(d.choice_shape(*PAYMENT_BRANDS), most=len(PAYMENT_BRANDS), distinct=True)),
    currencies=d.optional_member(d.list_shape(d.currency_shape, most=200, distinct=True)),
    settings=d.optional_member(lambda value, _path, _faults: value),
    secretFiles=d.optional_member(lambda value, _path, _faults: value, {}),
    active=d.optional_member(d.boolean_shape, True),
)


def _account(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    found = _ACCOUNT(value, path, faults)
    known = list_acquirers()
    connector = known.get(found["connector"]) if isinstance(found["connector"], str) else None
    if connector is None:
        where = d.member_path(path, "connector")
        if not any(fault.path == where for fault in faults):
            hint = d.suggest_name(str(found["connector"]), known)
            faults.add(where, f"must be one of {', '.join(known)}, not {d.abbreviate_value(found['connector'])}{hint}")
        return found
    if found["settings"] is not None:
        found["settings"] = parse_account_settings(
            connector, found["settings"], d.member_path(path, "settings"), faults
        )
    files, where = found["secretFiles"], d.member_path(path, "secretFiles")
    if not isinstance(files, Mapping) or not all(isinstance(name, str) and name for name in files.values()):
        faults.add(where, "must be an object: the name of a secret → the file it stands in")
        found["secretFiles"] = {}
    else:
        d.refuse_unknown_members(files, [one.name for one in connector.settings if one.secret], where, faults)
    return found


_LIST: Final = d.object_shape(accounts=d.required_member(d.list_shape(_account, most=MAX_ACQUIRER_ACCOUNTS)))


def _shape(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    found = _LIST(value, path, faults)
    seen: set[tuple[Any, Any]] = set()
    for place, one in enumerate(found["accounts"] or ()):
        key = (str(one["connector"]), str(one["merchant"]))
        if key in seen:
            faults.add(f"{path}.accounts[{place}]", "is the same account as one before: connector and merchant")
        seen.add(key)
    return found


def _accounts_of_channel(target: ConfigurationTarget) -> dict[tuple[str, str], AcquirerAccount]:
    rows = AcquirerAccount.objects.filter(channel=target.channel_there)
    return {(row.connector, row.acquirer_merchant_id): row for row in rows}


def _read_secret_files(
    target: ConfigurationTarget, files: Mapping[str, str], path: str, faults: d.DocumentFaults
) -> dict[str, str]:
    """The secrets read from files next to the document, without a trailing newline."""
    texts: dict[str, str] = {}
    for name, file in files.items():
        try:
            text = Path(target.folder, file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            folder = d.abbreviate_value(str(target.folder))
            faults.add(
                d.member_path(path, name),
                f"{d.abbreviate_value(file)} cannot be read as text; it is looked for in {folder}",
            )
        else:
            texts[name] = text.rstrip("\r\n")
    return texts


def _check(target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    there = _accounts_of_channel(target)
    for place, account in enumerate(value["accounts"]):
        where = f"{path}.accounts[{place}]"
        row, connector = there.get((account["connector"], account["merchant"])), list_acquirers()[account["connector"]]
        if account["settings"] is None and row is None:
            parse_account_settings(connector, {}, d.member_path(where, "settings"), faults)
        if account["settings"] is not None and row is not None:
            refuse_moved_account(connector, row, account["settings"], d.member_path(where, "settings"), faults)
        before = len(faults)
        texts = _read_secret_files(target, account["secretFiles"], d.member_path(where, "secretFiles"), faults)
        if len(faults) == before:
            stored = row.secrets_set if row is not None else {}
            check_account_secrets(connector, texts, stored, d.member_path(where, "secretFiles"), faults)
        if len(faults) == before and row is not None:
            refuse_foreign_secrets(connector, row, texts, d.member_path(where, "secretFiles"), faults)


def _check_ownership(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    there = _accounts_of_channel(target)
    for account in value["accounts"]:
        row = there.get((account["connector"], account["merchant"]))
        if row is not None:
            texts = _read_secret_files(target, account["secretFiles"], "", d.DocumentFaults())
            account_ownership.check_ownership(list_acquirers()[account["connector"]], row, texts)


def _apply(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    there = _accounts_of_channel(target)
    for account in value["accounts"]:
        key = (account["connector"], account["merchant"])
        row = there.get(key) or AcquirerAccount(
            channel=target.channel_there, connector=account["connector"], acquirer_merchant_id=account["merchant"]
        )
        for name in _NAMED:
            if account[name] is not None:
                setattr(row, name, list(account[name]) if isinstance(account[name], tuple) else account[name])
        row.active = account["active"]
        seal_account_secrets(row, _read_secret_files(target, account["secretFiles"], "", d.DocumentFaults()))
        row.save()
    clear_account_cache_after_commit()


def _show(target: ConfigurationTarget) -> dict[str, Any]:
    rows = sorted(_accounts_of_channel(target).values(), key=lambda row: row.id)
    return {
        "accounts": [
            {
                "connector": row.connector,
                "merchant": row.acquirer_merchant_id,
                "name": row.name,
                "brands": row.brands,
                "currencies": row.currencies,
                "settings": row.settings,
                "active": row.active,
            }
            for row in rows
        ]
    }


def _show_for_audit(target: ConfigurationTarget) -> dict[str, Any]:
    """Includes when secrets were set, so that a new key shows as a change."""
    rows = sorted(_accounts_of_channel(target).values(), key=lambda row: row.id)
    shown = _show(target)["accounts"]
    return {
        "accounts": [
            one | ({"secretsSet": row.secrets_set} if row.secrets_set else {})
            for one, row in zip(shown, rows, strict=True)
        ]
    }


ACQUIRERS_SECTION: Final = ConfigurationSection(
    name="acquirers",
    shape=_shape,
    check=_check,
    ask=_check_ownership,
    apply=_apply,
    show=_show,
    brief=_show_for_audit,
    about="Accounts at processors, each named by connector and merchant. A secret comes from a file beside the "
    "document. Accounts that are not named stay.",
)

"""Manage the vault's keys: create, show, rotate, rewrap, retire. docs/vault.md explains when and why."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from gateway.access import audit_log
from gateway.core import clock
from gateway.models import IdempotencyKey
from gateway.payments.idempotency import IDEMPOTENCY_RETENTION
from gateway.vault import keysets, rewrap
from gateway.vault.keysets import KeyPair, KeysetDocument
from gateway.vault.sealing import KEYSET_CHECK_INTERVAL_S, VaultError, configured_keyset, load_vault

KEYSET_PROPAGATION_TIME: Final = timedelta(seconds=KEYSET_CHECK_INTERVAL_S + 2)
"""Wait after a key became primary: every process has reloaded, and values sealed with the old key are written."""


NO_SEALED_VALUES: Final[Counter[str]] = Counter()


class Command(BaseCommand):
    help = "Make, show, rotate, retire the vault's keys, or seal anew what older keys hold. Without an option: show."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        act = parser.add_mutually_exclusive_group()
        act.add_argument("--create", action="store_true", help="make a new keyset; never replaces one")
        act.add_argument(
            "--show",
            action="store_true",
            help="key ids, which one is primary, how many sealed values of which kind each holds",
        )
        act.add_argument("--rotate", action="store_true", help="add a key and use it from now on")
        act.add_argument("--add", action="store_true", help="add a key only: several web nodes get it before its use")
        act.add_argument("--promote", type=int, metavar="KEY_ID", help="use this added key from now on")
        act.add_argument("--reseal", action="store_true", help="seal anew, under the primary key, what others hold")
        act.add_argument("--retire", type=int, metavar="KEY_ID", help="take a key out for ever")
        parser.add_argument("--force", action="store_true", help="with --retire: although rows need it; they are lost")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["create"]:
                keysets.create_keyset_file(configured_keyset())
                load_vault(configured_keyset())
                self.stdout.write(f"The vault keyset {configured_keyset()} was made.")
            elif options["rotate"]:
                self._rotate()
            elif options["add"]:
                self._add()
            elif options["promote"] is not None:
                self._promote(options["promote"])
            elif options["reseal"]:
                self._reseal()
            elif options["retire"] is not None:
                self._retire(options["retire"], force=options["force"])
            else:
                self._show()
        except VaultError as fault:
            raise CommandError(str(fault)) from None

    def _show(self) -> None:
        document, held = configured_keyset().read(), rewrap.count_sealed_by_key_and_kind()
        keysets.open_keyset(document)
        self.stdout.write(f"The vault keyset {configured_keyset()} opens.")
        for key in keysets.list_key_pairs(document):
            role = "primary" if key.primary else "older" if key.since else "added"
            since = f"since {key.since:%Y-%m-%d %H:%M:%S}" if key.since else "since -" + " " * 18
            self.stdout.write(
                f"  key {key.id:>10}  {role:<8} {since}  {_format_kinds(held.pop(key.id, NO_SEALED_VALUES))}"
            )
        if foreign := held.pop(None, NO_SEALED_VALUES):
            self.stdout.write(f"  {_format_kinds(foreign)} sealed by no vault: altered, they are lost")
        for lost, kinds in held.items():
            self.stdout.write(
                f"  key {lost:>10}  MISSING: {_format_kinds(kinds)} cannot be opened. Restore the keyset that has"
                " this key: until then rebills and increments of such payments are answered 900.100.205;"
                " the rest does not work."
            )

    def _rotate(self) -> None:
        before = keysets.list_key_pairs(configured_keyset().read())
        document = keysets.change_keyset_file(
            configured_keyset(), lambda now: keysets.promote_key_pair(*keysets.add_key_pair(now))
        )
        self._print_primary(document)
        _record_key_change("rotate", _primary(document).id, before, document)

    def _add(self) -> None:
        before = keysets.list_key_pairs(configured_keyset().read())
        document = keysets.change_keyset_file(configured_keyset(), lambda now: keysets.add_key_pair(now)[0])
        known = {key.id for key in before}
        for key in keysets.list_key_pairs(document):
            if key.id not in known:
                self.stdout.write(
                    f"Key {key.id} was added. Bring the keyset to every node, then: vault_key --promote {key.id}"
                )
                _record_key_change("add", key.id, before, document)

    def _promote(self, key: int) -> None:
        before = keysets.list_key_pairs(configured_keyset().read())
        document = keysets.change_keyset_file(configured_keyset(), lambda now: keysets.promote_key_pair(now, key))
        self._print_primary(document)
        _record_key_change("promote", key, before, document)

    def _print_primary(self, document: KeysetDocument) -> None:
        self.stdout.write(
            f"Key {_primary(document).id} seals from now on; "
            f"processes that run use it within {KEYSET_CHECK_INTERVAL_S:.0f} s."
            " Older keys still open: --reseal seals anew what they hold, --retire takes one out."
        )

    def _reseal(self) -> None:
        # Its own Vault object: one key to the end, even when somebody rotates meanwhile.
        document = configured_keyset().read()
        _wait_until_seen(document)
        progress = rewrap.RewrapProgress(resealed=0, unopened=0)
        started = reported = time.monotonic()
        try:
            for progress in rewrap.rewrap_sealed_values(load_vault(configured_keyset())):
                if time.monotonic() - reported > 1:
                    reported = time.monotonic()
                    rate = progress.resealed / (reported - started)
                    self.stdout.write(f"{progress.resealed:,} values sealed anew, {rate:,.0f}/s")
        except rewrap.RewrapRunningError:
            raise CommandError("Another --reseal is running.") from None
        self.stdout.write(f"{_describe_count(progress.resealed)} sealed anew under key {_primary(document).id}.")
        if progress.unopened:
            raise CommandError(f"{_describe_count(progress.unopened)} did not open: see --show.")

    def _retire(self, key: int, *, force: bool) -> None:
        document = configured_keyset().read()
        keysets.remove_key_pair(document, key)  # raises for an unknown key and for the primary one
        _wait_until_seen(document)
        cards, until = rewrap.count_sealed_by_key()[key], _needed_for_replays(document, key)
        if not force:
            if cards:
                raise CommandError(
                    f"Key {key} still holds {_describe_count(cards)}: run --reseal first. With --force they are lost."
                )
            if until is not None:
                raise CommandError(
                    f"Key {key} is needed until {until:%Y-%m-%d %H:%M:%S} UTC: bodies of idempotency keys are compared"
                    " with it. With --force their repeats are refused as another body."
                )
        before = keysets.list_key_pairs(document)
        document = keysets.change_keyset_file(configured_keyset(), lambda now: keysets.remove_key_pair(now, key))
        self.stdout.write(f"Key {key} is retired." + (f" Lost with it: {_describe_count(cards)}." if cards else ""))
        _record_key_change("retire", key, before, document, forced=force, lost=cards)


def _record_key_change(
    action: str, key: int, before: Iterable[KeyPair], document: KeysetDocument, **more: object
) -> None:
    """Write the audit entry of a change of keys that has happened. It names keys by their ids."""
    after = {**_format_keys(keysets.list_key_pairs(document)), **more}
    try:
        audit_log.record_audit_entry_for(
            audit_log.COMMAND_LINE_ACTOR, action, "vaultkey", str(key), before=_format_keys(before), after=after
        )
    except DatabaseError as fault:
        raise CommandError(f"This is done, but the audit trail could not be written: {type(fault).__name__}.") from None


def _format_keys(keys: Iterable[KeyPair]) -> dict[str, object]:
    listed = list(keys)
    return {"primary": next(key.id for key in listed if key.primary), "keys": sorted(key.id for key in listed)}


def _primary(document: KeysetDocument) -> KeyPair:
    return next(key for key in keysets.list_key_pairs(document) if key.primary)


def _wait_until_seen(document: KeysetDocument) -> None:
    """Wait until no process seals with an older key any more."""
    if since := _primary(document).since:
        time.sleep(max(0.0, (since + KEYSET_PROPAGATION_TIME - clock.real_now()).total_seconds()))


def _needed_for_replays(document: KeysetDocument, key: int) -> datetime | None:
    """The time until which fingerprints of idempotency keys need this key; None if none does."""
    replaced = keysets.find_superseded_at(document, key)
    if replaced is None:
        return None
    claimed = IdempotencyKey.objects.filter(
        created_at__gt=clock.real_now() - IDEMPOTENCY_RETENTION, created_at__lt=replaced + KEYSET_PROPAGATION_TIME
    ).order_by("-created_at")
    last = claimed.values_list("created_at", flat=True).first()
    return last + IDEMPOTENCY_RETENTION if last is not None else None


def _describe_count(number: int) -> str:
    return f"{number:,} value" if number == 1 else f"{number:,} values"


def _format_kinds(held: Counter[str]) -> str:
    """Number and kinds of values: "3 values (payments 2, wallet keys 1)"."""
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in held.most_common())
    return _describe_count(held.total()) + (f" ({kinds})" if kinds else "")

"""Erase what is stored of one shopper, or export it. What stays is listed with the reason."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.access import audit_log
from gateway.core import identifiers
from gateway.models import Merchant
from gateway.personal_data.erasure import (
    REPEATED_MODELS,
    ErasureConflictError,
    PersonStillActiveError,
    forget_again,
    forget_person,
)
from gateway.personal_data.export import dump_export, export_person
from gateway.personal_data.people import (
    PersonKind,
    PersonNotFoundError,
    PersonSelector,
    mask_person_value,
    parse_person,
)


class Command(BaseCommand):
    help = "Erase or export what is stored of one shopper of a merchant. docs/personal-data.md"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--merchant", required=True, help="id of the merchant: 32 lower-case hex digits")
        by = parser.add_mutually_exclusive_group(required=True)
        for kind in PersonKind:
            by.add_argument(f"--{kind.value}", help=f"{kind.label}; '-' reads it from standard input")
        by.add_argument(
            "--again", type=Path, metavar="REPORT", help="erase the rows of an earlier report, after a restore"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be erased; erase nothing")
        parser.add_argument("--export", action="store_true", help="print the person's data as JSON; erase nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        merchant = _find_merchant(options["merchant"])
        try:
            self.stdout.write(_act(merchant, options))
        except PersonNotFoundError as fault:
            raise CommandError(str(fault)) from None
        except PersonStillActiveError as fault:
            raise CommandError(f"Nothing was erased, because something is open. {fault}") from None
        except ErasureConflictError as fault:
            raise CommandError(f"Nothing was erased: {fault}. Try again.") from None


def _act(merchant: Merchant, options: dict[str, Any]) -> str:
    by = audit_log.COMMAND_LINE_ACTOR
    if options["again"] is not None:
        if options["export"] or options["dry_run"]:
            raise CommandError("--again takes neither --export nor --dry-run.")
        return json.dumps(forget_again(merchant, _read_report(merchant, options["again"]), by=by), indent=2)
    selector = _read_selector(merchant, options)
    if options["export"]:
        if options["dry_run"]:
            raise CommandError("--export erases nothing: leave --dry-run out.")
        document = export_person(selector)
        shown = {"kind": selector.kind, "shown": mask_person_value(selector.value)}
        audit_log.record_audit_entry(by, "export shopper", merchant, after=shown)
        return dump_export(document)
    return json.dumps(forget_person(selector, by=by, dry_run=options["dry_run"]), indent=2)


def _read_selector(merchant: Merchant, options: dict[str, Any]) -> PersonSelector:
    kind = next(kind for kind in PersonKind if options[kind.value] is not None)
    value = options[kind.value]
    return parse_person(merchant, kind.value, sys.stdin.readline() if value == "-" else value)


def _find_merchant(text: str) -> Merchant:
    ident = identifiers.parse_id(text)
    merchant = Merchant.objects.filter(pk=ident).first() if ident is not None else None
    if merchant is None:
        raise CommandError("--merchant must name a merchant: 32 lower-case hex digits.")
    return merchant


def _read_report(merchant: Merchant, path: Path) -> dict[str, list[str]]:
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError) as fault:
        raise CommandError(f"--again: {path} cannot be read: {fault}") from None
    ids = report.get("ids") if isinstance(report, dict) else None
    if not isinstance(ids, dict) or not all(_is_id_list(label, keys) for label, keys in ids.items()):
        raise CommandError(f"--again: {path} is no report of forget_shopper.")
    if report.get("merchant") != merchant.pk.hex:
        raise CommandError(f"--again: {path} is a report of another merchant.")
    return ids


def _is_id_list(label: str, keys: object) -> bool:
    return (
        label in REPEATED_MODELS
        and isinstance(keys, list)
        and all(isinstance(key, str) and identifiers.parse_id(key) is not None for key in keys)
    )

"""Erase what is stored of one shopper, or export it. What stays is listed with the reason."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.access import audit_log
from gateway.backoffice.personal_data.erasure_requests import (
    MAX_ERASURE_REASON_CHARS,
    ErasureRefusedError,
    carry_out_erasure,
)
from gateway.core import identifiers
from gateway.core.masking import mask_note
from gateway.management.option_rows import find_option_row
from gateway.models import ErasureRequest, Merchant
from gateway.personal_data.erasure import (
    REPEATED_MODELS,
    ErasureConflictError,
    PersonStillActiveError,
    erase_person,
    is_report_sealed,
    repeat_erasure,
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
        parser.add_argument("--merchant", help="id of the merchant: 32 lower-case hex digits; not with --request")
        by = parser.add_mutually_exclusive_group(required=True)
        for kind in PersonKind:
            by.add_argument(f"--{kind.value}", help=f"{kind.label}; '-' reads it from standard input")
        by.add_argument(
            "--again", type=Path, metavar="REPORT", help="erase the rows of an earlier report, after a restore"
        )
        by.add_argument(
            "--request", metavar="ID", help="erase what two people asked for and approved in the back office"
        )
        parser.add_argument(
            "--alone",
            metavar="REASON",
            default="",
            help="erase without a second person; the audit trail has the reason",
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be erased; erase nothing")
        parser.add_argument("--export", action="store_true", help="print the person's data as JSON; erase nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(_act(options))
        except ErasureRefusedError as fault:
            raise CommandError(f"--request: {fault}.") from None
        except PersonNotFoundError as fault:
            raise CommandError(str(fault)) from None
        except PersonStillActiveError as fault:
            raise CommandError(f"Nothing was erased, because something is open. {fault}") from None
        except ErasureConflictError as fault:
            raise CommandError(f"Nothing was erased: {fault}. Try again.") from None


def _act(options: dict[str, Any]) -> str:
    by, alone = audit_log.COMMAND_LINE_ACTOR, mask_note(options["alone"], MAX_ERASURE_REASON_CHARS)
    if options["request"] is not None:
        if options["export"] or options["dry_run"] or options["merchant"] or alone:
            raise CommandError("--request stands alone: it names an approved request.")
        return json.dumps(carry_out_erasure(_find_request(options["request"])), indent=2)
    merchant = _find_merchant(options["merchant"] or "")
    if options["again"] is not None:
        if options["export"] or options["dry_run"]:
            raise CommandError("--again takes neither --export nor --dry-run.")
        keys = _read_report(merchant, options["again"], may_be_changed=bool(alone))
        return json.dumps(repeat_erasure(merchant, keys, by=by, alone=alone), indent=2)
    selector = _read_selector(merchant, options)
    if options["export"]:
        if options["dry_run"]:
            raise CommandError("--export erases nothing: leave --dry-run out.")
        document = export_person(selector)
        shown = {"kind": selector.kind, "shown": mask_person_value(selector.value)}
        audit_log.record_audit_entry(by, "export shopper", merchant, after=shown)
        return dump_export(document)
    if not options["dry_run"] and not alone:
        raise CommandError(
            "Erasing cannot be undone and takes two people: ask for it and approve it in the back office (Shoppers' "
            "data), which erases, or names --request. Where there is no second person: --alone with the reason."
        )
    return json.dumps(erase_person(selector, by=by, dry_run=options["dry_run"], alone=alone), indent=2)


def _find_request(text: str) -> ErasureRequest:
    fault = "--request must name a request: 32 lower-case hex digits, as its page shows them."
    return find_option_row(ErasureRequest.objects.select_related("merchant"), text, fault)


def _read_selector(merchant: Merchant, options: dict[str, Any]) -> PersonSelector:
    kind = next(kind for kind in PersonKind if options[kind.value] is not None)
    value = options[kind.value]
    return parse_person(merchant, kind.value, sys.stdin.readline() if value == "-" else value)


def _find_merchant(text: str) -> Merchant:
    return find_option_row(Merchant.objects.all(), text, "--merchant must name a merchant: 32 lower-case hex digits.")


def _read_report(merchant: Merchant, path: Path, *, may_be_changed: bool) -> dict[str, list[str]]:
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError) as fault:
        raise CommandError(f"--again: {path} cannot be read: {fault}") from None
    ids = report.get("ids") if isinstance(report, dict) else None
    if not isinstance(ids, dict) or not all(_is_id_list(label, keys) for label, keys in ids.items()):
        raise CommandError(f"--again: {path} is no report of forget_shopper.")
    if report.get("merchant") != merchant.pk.hex:
        raise CommandError(f"--again: {path} is a report of another merchant.")
    if not may_be_changed and not is_report_sealed(merchant, ids, str(report.get("seal"))):
        raise CommandError(f"--again: {path} is not as it was written here; --alone with a reason erases all the same.")
    return ids


def _is_id_list(label: str, keys: object) -> bool:
    return (
        label in REPEATED_MODELS
        and isinstance(keys, list)
        and all(isinstance(key, str) and identifiers.parse_id(key) is not None for key in keys)
    )

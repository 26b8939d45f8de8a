"""Configure a channel or a merchant from a JSON file: `manage.py configure --entity <entityId> file.json`.

The file is validated as a whole before anything changes; every fault is reported with its path. docs/configuration.md.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.access import audit_log
from gateway.configuration import apply
from gateway.configuration.section import ConfigurationTarget
from gateway.core import identifiers
from gateway.core.document import InvalidDocumentError

MAX_CONFIGURATION_BYTES = 8 * 1024 * 1024


class Command(BaseCommand):
    help = "Configure a channel or a merchant from a JSON file, or show what is configured."
    # What a start-up check refuses of a channel is mended here.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--entity", required=True, help="entityId of a channel or a merchant, 32 hex digits")
        parser.add_argument("file", nargs="?", help="the JSON file; - reads standard input")
        parser.add_argument("--show", action="store_true", help="print what is configured now, without secrets")
        parser.add_argument("--dry-run", action="store_true", help="validate and say what would change")

    def handle(self, *args: Any, **options: Any) -> None:
        target = _find_target(options["entity"])
        if options["show"] == bool(options["file"]):
            raise CommandError("Give a file to apply, or --show.")
        if options["show"]:
            self.stdout.write(json.dumps(apply.export_configuration(target), indent=2, ensure_ascii=False))
            return
        document, folder = _read_document(options["file"])
        try:
            changes = apply.apply_configuration(
                replace(target, folder=folder), document, by=audit_log.COMMAND_LINE_ACTOR, dry_run=options["dry_run"]
            )
        except InvalidDocumentError as fault:
            lines = "\n".join(f"  {one}" for one in fault.faults)
            raise CommandError(f"Nothing was changed. {len(fault.faults)} fault(s):\n{lines}") from None
        would = "Would change" if options["dry_run"] else "Changed"
        names = ", ".join(change.section for change in changes)
        self.stdout.write(f"{would}: {names}." if changes else "Everything is as the file says already.")


def _find_target(entity: str) -> ConfigurationTarget:
    ident = identifiers.parse_id(entity)
    target = apply.find_configuration_target(ident) if ident is not None else None
    if target is None:
        raise CommandError("--entity must name a channel or a merchant: 32 lower-case hex digits.")
    return target


def _read_document(name: str) -> tuple[Any, Path]:
    """The document, and the folder that file names in it are relative to."""
    try:
        text = sys.stdin.read(MAX_CONFIGURATION_BYTES + 1) if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise CommandError(f"{name} cannot be read: {fault}") from None
    if len(text) > MAX_CONFIGURATION_BYTES:
        raise CommandError(f"{name} is larger than {MAX_CONFIGURATION_BYTES:,} bytes.")
    try:
        return json.loads(text, object_pairs_hook=_refuse_duplicates), Path(name).parent if name != "-" else Path()
    except ValueError as fault:
        raise CommandError(f"{name} is no JSON: {fault}") from None


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)} is there twice in one object")
    return found

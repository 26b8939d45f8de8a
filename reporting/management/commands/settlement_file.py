"""manage.py settlement_file: take in a settlement file, or preview it."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.access import audit_log
from reporting.models import SettlementFile
from reporting.settlement import files, institutes, intake
from reporting.settlement.formats.port import UnreadableFileError


class Command(BaseCommand):
    help = "Take in an acquirer's settlement file: read, match, enter its chargebacks. Says what it did."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the file")
        parser.add_argument("--institute", help="its key; not needed when there is one only")
        parser.add_argument("--preview", action="store_true", help="show the first lines and all errors; write nothing")
        parser.add_argument("--later", action="store_true", help="leave the reading to the worker")

    def handle(self, *args: Any, path: Path, institute: str | None, preview: bool, later: bool, **options: Any) -> None:
        try:
            of = institutes.find_institute(institute)
            with path.open("rb") as stream:
                if preview:
                    self._show(files.preview_file(stream, of))
                    return
                file = files.receive_file(
                    stream,
                    name=path.name,
                    institute=of,
                    by=audit_log.COMMAND_LINE_ACTOR,
                    source=SettlementFile.Source.COMMAND,
                )
        except (institutes.UnknownInstituteError, UnreadableFileError, files.DuplicateFileError) as fault:
            raise CommandError(f"{path.name}: {fault}") from None
        except OSError as fault:
            raise CommandError(f"{path}: {fault.strerror}") from None
        if later:
            self.stdout.write(f"{file.name} is received, id {file.id.hex}")
            return
        intake.process_file(file.pk)
        file.refresh_from_db()
        if file.state == SettlementFile.State.FAILED:
            raise CommandError(f"{file.name}: {file.why}")
        self.stdout.write(
            f"{file.name}: {file.state}, {file.lines:,} lines, {file.records:,} records, {file.faults:,} faulty lines;"
            f" {file.matched:,} matched, {file.multiple:,} ambiguous, {file.unmatched:,} not matched; id {file.id.hex}"
        )
        if file.why:
            self.stdout.write(f"{file.name}: {file.why}")

    def _show(self, found: files.FilePreview) -> None:
        self.stdout.write(f"{found.format}, {found.lines:,} lines, {found.faults:,} of them faulty; nothing is written")
        if found.unused:
            self.stdout.write(f"columns that are not read: {', '.join(found.unused)}")
        if "said" in found.totals and found.totals["said"] != found.totals.get("read"):
            self.stdout.write(f"the file says {found.totals['said']:,} lines and has {found.totals['read']:,}")
        for one in found.first:
            values = "  ".join(f"{name}={value}" for name, value in one.values.items())
            self.stdout.write(f"{one.number:>8}  {values}")
        for one in found.first_faults:
            for fault in one.faults:
                said = f" {fault.value!r}" if fault.value else ""
                self.stdout.write(f"{one.number:>8}! {fault.column}{said} {fault.message}".replace("!  ", "! "))

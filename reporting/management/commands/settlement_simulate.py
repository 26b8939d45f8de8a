"""manage.py settlement_simulate: write the file of the simulated clearing institute (test environment only)."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from reporting.settlement import institutes
from reporting.simulator import settlement_files


class Command(BaseCommand):
    help = "Write a settlement file of what the simulator approved on some days (test environment only)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)
        parser.add_argument("--institute", help="its key; not needed when there is one only")
        parser.add_argument("--from", dest="first", type=date.fromisoformat, required=True, help="yyyy-MM-dd")
        parser.add_argument("--to", dest="last", type=date.fromisoformat, help="yyyy-MM-dd; without it the same day")
        parser.add_argument("--paid-on", type=date.fromisoformat, help="yyyy-MM-dd; without it the last day")

    def handle(
        self,
        *args: Any,
        path: Path,
        institute: str | None,
        first: date,
        last: date | None,
        paid_on: date | None,
        **options: Any,
    ) -> None:
        if settings.IS_LIVE:
            raise CommandError("settlement_simulate refuses the live environment.")
        try:
            of = institutes.find_institute(institute)
        except institutes.UnknownInstituteError as fault:
            raise CommandError(str(fault)) from None
        last = last or first
        book = settlement_files.build_settlement_file(
            of, settlement_files.list_institute_payments(of, first, last), paid_on or last
        )
        path.write_bytes(book.text())
        self.stdout.write(f"{path}: {len(book.lines):,} lines of {of.name}, {first} to {last}")

"""manage.py settlement_simulate: write the file of the simulated clearing institute (test environment only)."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from gateway.management.option_values import parse_option_day
from reporting.settlement import institutes
from reporting.simulator import settlement_files


class Command(BaseCommand):
    help = "Write a settlement file of what the simulator approved on some days (test environment only)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the file to write")
        parser.add_argument("--institute", help="its key; not needed when there is one only")
        parser.add_argument("--from", dest="first", type=parse_option_day, required=True, help="yyyy-MM-dd")
        parser.add_argument("--to", dest="last", type=parse_option_day, help="yyyy-MM-dd; without it the same day")
        parser.add_argument("--paid-on", type=parse_option_day, help="yyyy-MM-dd; without it the last day")

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
        if last < first:
            raise CommandError("--to is before --from.")
        book = settlement_files.build_settlement_file(
            of, settlement_files.list_institute_payments(of, first, last), paid_on or last
        )
        try:
            path.write_bytes(book.text())
        except OSError as fault:
            raise CommandError(f"{path} cannot be written: {fault.strerror}.") from None
        self.stdout.write(f"{path}: {len(book.lines):,} lines of {of.name}, {first} to {last}")

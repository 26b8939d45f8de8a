"""manage.py reconciliation_file: write a merchant's reconciliation file of one day, or write it again."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.management.option_rows import find_option_row
from gateway.models import Merchant
from reporting.reconciliation import daily_files


class Command(BaseCommand):
    help = "Write a merchant's reconciliation file of a past day; one that was written is made again, byte for byte."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--merchant", required=True, help="the merchant's entity id")
        parser.add_argument("--date", required=True, help="a day of the merchant's, yyyy-MM-dd")
        parser.add_argument("--output", help="where to put it; - is standard output; without it the outbox")

    def handle(self, *args: Any, merchant: str, date: str, output: str | None, **options: Any) -> None:
        day = _parse_day(date)
        found = find_option_row(Merchant.objects.all(), merchant, f"There is no merchant {merchant}.")
        try:
            file = daily_files.get_daily_file(found, day)
        except daily_files.DayNotOverError as fault:
            raise CommandError(f"There is no file: {fault}.") from None
        try:
            if output == "-":
                with daily_files.ensure_outbox_file(file).open(encoding="utf-8", newline="") as opened:
                    for line in opened:
                        self.stdout.write(line, ending="")
                return
            path = daily_files.rewrite_daily_file(file, Path(output) if output else None)
        except daily_files.FileContentChangedError as fault:
            raise CommandError(f"The file would not be what it was: {fault}.") from None
        except OSError as fault:
            raise CommandError(f"{output or 'the outbox'} cannot be written: {fault.strerror}.") from None
        self.stdout.write(f"{path}: {file.lines} lines, {file.size} bytes, SHA-256 {file.sha256}")


def _parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise CommandError(f"--date must be a day yyyy-MM-dd, e.g. 2026-05-14, not {text}.") from None

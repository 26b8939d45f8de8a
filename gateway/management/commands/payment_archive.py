"""The archive of payments: move what is due, write files of it, bring a chain back. See docs/running.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from gateway.access import audit_log
from gateway.core import identifiers
from gateway.payments.payment_archive import bring_chain_back, find_archived_payment
from gateway.personal_data import archive_files, payment_archiving
from gateway.timers.registry import run_timer_now

_MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")


class Command(BaseCommand):
    help = (
        "Move payments past GATEWAY_PAYMENT_HOT_DAYS into the archive, as the timer does; with --export write each"
        " month of the archive as a file; with --bring-back move a chain back among the other payments."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        wanted = parser.add_mutually_exclusive_group()
        wanted.add_argument("--export", metavar="FOLDER", help="write CSV files, compressed, with checksums")
        wanted.add_argument("--bring-back", metavar="PAYMENT", help="the id of an archived payment")
        parser.add_argument("--month", metavar="YYYY-MM", help="with --export: only payments made in this month (UTC)")

    def handle(self, *args: Any, **options: Any) -> None:
        month = options["month"]
        if month is not None and options["export"] is None:
            raise CommandError("--month is for --export.")
        if month is not None and not _MONTH.fullmatch(month):
            raise CommandError(f"--month {month}: it must be YYYY-MM, such as 2027-01.")
        if options["export"] is not None:
            self._export(Path(options["export"]), month)
        elif options["bring_back"] is not None:
            self._bring_back(options["bring_back"])
        else:
            self._move()

    def _export(self, folder: Path, month: str | None) -> None:
        if not folder.is_dir():
            raise CommandError(f"--export {folder}: no such folder.")
        written = archive_files.export_archive(folder, month)
        for one in written:
            self.stdout.write(f"{one.path}: {one.payments} payments, SHA-256 {one.digest}")
        if not written:
            self.stdout.write("No payments are archived." if month is None else f"None of {month} are archived.")

    def _bring_back(self, text: str) -> None:
        ident = identifiers.parse_id(text)
        payment = find_archived_payment(ident, None)
        if payment is None:
            raise CommandError(f"--bring-back {text}: no archived payment has this id.")
        with transaction.atomic():
            bring_chain_back(payment.pk, payment.merchant_id)
            audit_log.record_audit_entry(audit_log.COMMAND_LINE_ACTOR, "bring back", payment)
        self.stdout.write(f"The chain {payment.chain.hex} is among the payments again.")

    def _move(self) -> None:
        if not settings.GATEWAY_PAYMENT_HOT_DAYS:
            raise CommandError("GATEWAY_PAYMENT_HOT_DAYS is 0: payments are not archived.")
        done = run_timer_now(payment_archiving.TIMER.name)
        if done is None:
            raise CommandError(
                "Nothing was done: it runs elsewhere, a clock is wrong, or it failed; see the log above."
            )
        self.stdout.write(f"{done} payments archived.")

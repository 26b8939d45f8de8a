"""``manage.py sepa_status_file FILE …``: import files from a bank. docs/connectors/sepa.md."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.connectors.sepa import bank_message_intake
from gateway.connectors.sepa.bank_message_parser import UnreadableBankMessageError
from gateway.models import BankMessage
from gateway.payments import bank_order_outcomes


class Command(BaseCommand):
    help = "Take in a bank's message (pain.002, camt.052 to 054, pacs.004) and tell payments what it says."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, nargs="+", help="the bank's file; more than one may be given")

    def handle(self, *args: Any, path: list[Path], **options: Any) -> None:
        failed = 0
        for one in path:
            name = bank_message_intake.printable_file_name(one.name)
            try:
                with one.open("rb") as stream:
                    row = bank_message_intake.import_bank_message(stream, one.name, BankMessage.Source.COMMAND)
            except (UnreadableBankMessageError, bank_message_intake.DuplicateBankMessageError) as fault:
                self.stderr.write(f"{name}: {fault}")
                failed += 1
                continue
            except OSError as fault:
                self.stderr.write(f"{bank_message_intake.printable_file_name(str(one))}: {fault.strerror}")
                failed += 1
                continue
            self.stdout.write(f"{name}: {row.kind} {row.message_id}, orders moved: {row.orders_changed}")
            for finding in row.findings:
                self.stdout.write(f"  {finding}")
        applied = bank_order_outcomes.apply_bank_order_events()
        self.stdout.write(f"payments told: {applied}")
        if failed:
            raise CommandError(f"{failed} of {len(path)} files were not taken in")

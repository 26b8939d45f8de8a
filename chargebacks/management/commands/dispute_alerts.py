"""Records the alerts and inquiries of a provider's file, or raises one as a simulated provider (test environment)."""

from __future__ import annotations

import csv
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chargebacks.alert_intake import AlertFieldError, find_alerted_payment, read_alert_facts
from chargebacks.alerts import AlertFacts, AlertNotPossibleError, record_alert
from chargebacks.models import DisputeAlert
from gateway.access import audit_log
from gateway.core import identifiers
from gateway.core.masking import mask_text

ALERT_FILE_COLUMNS: Final = ("PaymentId", "Provider", "AlertId", "Amount", "Currency")
"""Columns that a file has to have; Kind, ReasonCode (ours or the scheme's) and RespondBy may be there."""
SIMULATED_PROVIDER: Final = "simulator"
_BY: Final = audit_log.Actor(name="dispute_alerts")


class Command(BaseCommand):
    """``manage.py dispute_alerts FILE`` or ``--payment ID``."""

    help = "Record the alerts and inquiries of a CSV file, or raise one about a payment (test environment)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help=f"CSV with {', '.join(ALERT_FILE_COLUMNS)}")
        parser.add_argument("--payment", default="", help="test environment: raise an alert about this payment")
        parser.add_argument("--inquiry", action="store_true", help="with --payment: an inquiry instead of an alert")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["file"]) == bool(options["payment"]):
            raise CommandError("Say which: a file, or --payment with a payment's id.")
        if options["payment"]:
            self._raise_one(options["payment"], inquiry=options["inquiry"])
            return
        try:
            with options["file"].open(newline="", encoding="utf-8-sig") as opened:
                reader = csv.DictReader(opened)
                missing = [name for name in ALERT_FILE_COLUMNS if name not in (reader.fieldnames or ())]
                if missing:
                    raise CommandError(f"The file has no column {', '.join(missing)}.")
                failed = sum(not self._record_line(number, row) for number, row in enumerate(reader, 2))
        except (OSError, UnicodeDecodeError, csv.Error) as fault:
            raise CommandError(f"The file cannot be read: {fault}") from None
        if failed:
            raise CommandError(f"{failed} lines were not recorded; the others were.")

    def _raise_one(self, ident: str, *, inquiry: bool) -> None:
        if settings.IS_LIVE:
            raise CommandError("--payment raises a simulated alert: that is for the test environment.")
        try:
            payment = find_alerted_payment({"PaymentId": ident.strip()})
        except AlertFieldError as fault:
            raise CommandError(str(fault)) from None
        facts = AlertFacts(
            provider=SIMULATED_PROVIDER,
            reference=identifiers.row_id().hex,
            amount=payment.approved_amount or payment.amount,
            currency=payment.currency,
            kind=DisputeAlert.Kind.INQUIRY if inquiry else DisputeAlert.Kind.ALERT,
        )
        try:
            alert, _ = record_alert(payment, facts, _BY)
        except AlertNotPossibleError as fault:
            raise CommandError(str(fault)) from None
        self.stdout.write(f"{alert.pk.hex} {alert.kind} {alert.state}")

    def _record_line(self, number: int, row: dict[str, str]) -> bool:
        sent = {name: (value or "").strip() for name, value in row.items() if isinstance(name, str)}
        try:
            if not sent.get("Provider"):
                raise AlertFieldError("Provider", "is missing")
            facts = read_alert_facts(sent, sent["Provider"][:32])
            alert, made = record_alert(find_alerted_payment(sent), facts, _BY)
        except (AlertNotPossibleError, AlertFieldError) as fault:
            self.stderr.write(f"line {number}: {mask_text(str(fault))}")
            return False
        self.stdout.write(f"line {number}: {alert.pk.hex} {alert.state}{'' if made else ' (known)'}")
        return True

"""Records the alerts and inquiries of a provider's file, or raises one as a simulated provider (test environment)."""

from __future__ import annotations

import csv
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chargebacks.alerts import AlertFacts, AlertNotPossibleError, record_alert
from chargebacks.evidence_checklist import OTHER_CHARGEBACK_REASON
from chargebacks.models import DisputeAlert
from chargebacks.stages import SCHEME_REASONS
from gateway.access import audit_log
from gateway.core import identifiers
from gateway.core.masking import mask_text
from gateway.core.money import parse_amount
from gateway.models import Payment

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
        payment = _find_payment(ident)
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
        try:
            payment, facts = _find_payment(row["PaymentId"]), _read_facts(row)
            alert, made = record_alert(payment, facts, _BY)
        except (CommandError, AlertNotPossibleError, ValueError) as fault:
            self.stderr.write(f"line {number}: {mask_text(str(fault))}")
            return False
        self.stdout.write(f"line {number}: {alert.pk.hex} {alert.state}{'' if made else ' (known)'}")
        return True


def _find_payment(ident: str) -> Payment:
    key = identifiers.parse_id((ident or "").strip())
    found = Payment.objects.select_related("merchant", "channel").filter(pk=key).first() if key is not None else None
    if found is None:
        raise CommandError("PaymentId: no payment has this id (32 lower-case hex digits).")
    return found


def _read_facts(row: dict[str, str]) -> AlertFacts:
    """Raises ValueError, which names the column."""
    sent = {name: (value or "").strip() for name, value in row.items() if isinstance(name, str)}
    if (kind := sent.get("Kind") or "ALERT") not in DisputeAlert.Kind.values:
        raise ValueError("Kind: ALERT or INQUIRY")
    code = sent.get("ReasonCode", "")
    known = SCHEME_REASONS.get(code)
    try:
        amount = parse_amount(sent["Amount"])
    except ValueError:
        raise ValueError("Amount: a number with a dot and two decimals, e.g. 92.00") from None
    respond_by = None
    if sent.get("RespondBy"):
        try:
            respond_by = datetime.fromisoformat(sent["RespondBy"])
        except ValueError:
            raise ValueError("RespondBy: a time with its zone, e.g. 2030-01-31T12:00:00+00:00") from None
        respond_by = respond_by if respond_by.tzinfo is not None else respond_by.replace(tzinfo=UTC)
    return AlertFacts(
        provider=sent["Provider"][:32],
        reference=mask_text(sent["AlertId"])[:64],
        amount=amount,
        currency=sent["Currency"],
        kind=DisputeAlert.Kind(kind),
        reason=known.result if known is not None else code if code.startswith("000.") else OTHER_CHARGEBACK_REASON,
        scheme_reason="" if code.startswith("000.") else code[:16],
        respond_by=respond_by,
    )

"""manage.py decide_payout PAYMENT --paid | --not-paid: what the acquirer says of a payment in doubt.

Source: docs/decisions/0138, 0152, 0166.
"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.access import audit_log
from gateway.core import identifiers
from gateway.payments.payout_decisions import PayoutNotDecidableError, decide_payout


class Command(BaseCommand):
    help = (
        "Record what the acquirer says of a payout, credit, refund, capture or reversal in doubt; the merchant is told "
        "by a webhook."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("payment", help="the id of the payout, credit, refund, capture or reversal")
        answer = parser.add_mutually_exclusive_group(required=True)
        answer.add_argument("--paid", action="store_true", help="it reached the card, or was carried out")
        answer.add_argument("--not-paid", action="store_true", help="it was never made, and never will be")

    def handle(self, *args: Any, **options: Any) -> None:
        ident = identifiers.parse_id(options["payment"])
        if ident is None:
            raise CommandError(f"payment {options['payment']}: an id has 32 lower-case hex digits.")
        try:
            payment = decide_payout(ident, paid=options["paid"], by=audit_log.COMMAND_LINE_ACTOR)
        except PayoutNotDecidableError as fault:
            raise CommandError(f"payment {options['payment']}: {fault}.") from None
        self.stdout.write(f"{payment.result_code} {payment.status}")

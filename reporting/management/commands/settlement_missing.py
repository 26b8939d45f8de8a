"""manage.py settlement_missing: list days without a settlement file and payments that no record has settled."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.models import Merchant
from reporting.models import ClearingInstitute
from reporting.settlement import institutes, missing_settlements


class Command(BaseCommand):
    help = "List what institutes owe: expected files, and lines of payments that are overdue. Exits 1 if there is any."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--institute", help="its key; without it all active ones")

    def handle(self, *args: Any, institute: str | None, **options: Any) -> None:
        try:
            asked = (
                [institutes.find_institute(institute)]
                if institute
                else list(ClearingInstitute.objects.filter(active=True))
            )
        except institutes.UnknownInstituteError as fault:
            raise CommandError(str(fault)) from None
        found = 0
        for one in asked:
            for day in missing_settlements.list_recent_days_without_file(one):
                found += 1
                self.stdout.write(f"{one.key}: no file came on {day:%A, %Y-%m-%d}")
            for merchant in Merchant.objects.order_by("name", "id").iterator():
                for payment in missing_settlements.list_overdue_payments(one, merchant):
                    found += 1
                    self.stdout.write(
                        f"{one.key}: {payment.id.hex} {payment.payment_type} {payment.approved_amount}"
                        f" {payment.currency} of {payment.created_at:%Y-%m-%d %H:%M} UTC, {merchant.name},"
                        " is not settled"
                    )
        if found:
            raise CommandError(f"{found:,} missing", returncode=1)
        self.stdout.write("nothing is missing")

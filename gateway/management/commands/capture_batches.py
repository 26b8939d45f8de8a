"""``manage.py capture_batches``: show, send or accept open capture batches. docs/connectors/iso8583.md."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Count, Min, Sum

from gateway.access import audit_log
from gateway.connectors.iso8583 import batch_close, batch_planning, batch_run
from gateway.core.money import format_amount
from gateway.management.option_rows import find_option_row
from gateway.models import AcquirerAccount, BatchedCapture, CaptureBatch

MAX_LISTED_BATCHES: Final = 200


class Command(BaseCommand):
    help = "Show captures that wait for a batch and batches that are open; send them now, or end one on a word."

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--send", metavar="ACCOUNT", help="send what waits at this acquirer account (its id here) now"
        )
        what.add_argument("--again", metavar="BATCH", help="go on with a batch at once; upload one that differs again")
        what.add_argument("--accept", metavar="BATCH", help="take the captures of a batch whose sums differ as granted")
        parser.add_argument("--because", default="", help="with --accept: who at the acquirer said what")

    def handle(
        self, *args: Any, send: str | None, again: str | None, accept: str | None, because: str, **options: Any
    ) -> None:
        if send is not None:
            return self._send(send)
        if again is not None:
            if not batch_run.retry_batch(_batch(again)):
                raise CommandError("the batch has ended, or is being sent at this moment")
            return self.stdout.write("it goes on with the next tick")
        if accept is not None:
            return self._accept(_batch(accept), because.strip())
        return self._show()

    def _send(self, account: str) -> None:
        fault = f"there is no acquirer account {account!r}: its id stands in the address of its page"
        rows = AcquirerAccount.objects.select_related("channel__merchant")
        row = find_option_row(rows, account.replace("-", "").lower(), fault)
        moved = batch_planning.release_captures_now(row.channel, row.acquirer_merchant_id)
        self.stdout.write(f"captures that go with the next tick: {moved}")

    def _accept(self, batch: CaptureBatch, because: str) -> None:
        if not because:
            raise CommandError("--because is needed: who at the acquirer said that these captures stand")
        with transaction.atomic():
            taken = batch_close.accept_unbalanced_batch(batch, because)
            if not taken:
                raise CommandError(f"the batch is not one whose sums differ: {batch.get_state_display()}")
            after = {"number": batch.number, "captures": taken, "because": because}
            audit_log.record_audit_entry(
                audit_log.COMMAND_LINE_ACTOR, "accept sums", batch, merchant=batch.merchant_id, after=after
            )
        self.stdout.write(f"captures taken: {taken}")

    def _show(self) -> None:
        waiting = BatchedCapture.objects.filter(state=BatchedCapture.State.WAITING)
        rows = waiting.values("channel__name", "acquirer_merchant_id", "currency").annotate(
            count=Count("payment"), total=Sum("amount"), first=Min("present_at")
        )
        for row in rows.order_by("channel__name", "acquirer_merchant_id", "currency")[:MAX_LISTED_BATCHES]:
            total = f"{format_amount(row['total'])} {row['currency']}"
            at = f"{row['first']:%Y-%m-%d %H:%M} UTC" if row["first"] else ""
            account = f"{row['channel__name']} {row['acquirer_merchant_id']}"
            self.stdout.write(f"{account}: {row['count']} wait, {total}, from {at} on")
        for batch in CaptureBatch.objects.exclude(state=CaptureBatch.State.BALANCED).order_by("id")[
            :MAX_LISTED_BATCHES
        ]:
            sums = batch_close.sum_granted_captures(batch)
            stopped = "; stopped, somebody has to look" if batch.due_at is None else ""
            self.stdout.write(
                f"{batch.pk.hex} {batch.acquirer_merchant_id} {batch.number}: {batch.get_state_display()},"
                f" {sums.count} of {batch.count} granted, {sums.total.text()} {batch.currency}{stopped}"
            )
            for line in (*batch.findings, batch.failure):
                if line:
                    self.stdout.write(f"  {line}")


def _batch(text: str) -> CaptureBatch:
    return find_option_row(CaptureBatch.objects.all(), text.replace("-", "").lower(), f"there is no batch {text!r}")

"""The timers of direct debits and transfers by bank files."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from gateway.connectors.sepa import (
    bank_message_intake,
    collection_finality,
    file_delivery,
    file_planning,
    order_records,
)
from gateway.connectors.sepa.connector import SEPA
from gateway.models import Merchant
from gateway.timers.registry import MerchantTimer, Timer


def _make_and_deliver_files(merchant: Merchant | None = None) -> int:
    return file_planning.plan_due_bank_files(SEPA, merchant) + file_delivery.deliver_due_bank_files(SEPA, merchant)


FILE_TIMER: Final = MerchantTimer(
    name=order_records.BANK_FILE_TIMER,
    run=_make_and_deliver_files,
    next_at=file_planning.next_bank_file_run,
    every_s=5.0,
    about="Make and deliver the day's files of direct debits and transfers.",
    earliest_due="""
        SELECT least((SELECT min(file_at) FROM gateway_bankorder WHERE state = 'WAITING'),
            (SELECT min(due_at) FROM gateway_bankfile WHERE state IN ('DECIDED', 'WRITTEN')))""",
)
BANK_TIMERS: Final = (
    Timer(
        name="bank inbox",
        is_off=lambda: not settings.GATEWAY_SEPA_INBOX,
        run=bank_message_intake.import_watched_folder,
        every_s=10.0,
        about="Take in what banks answered.",
    ),
    MerchantTimer(
        name="bank days",
        run=collection_finality.finalize_due_collections,
        next_at=collection_finality.next_collection_finality,
        every_s=60.0,
        # Due while any order may become final: the earliest of all merchants is in no index.
        earliest_due="""
            SELECT statement_timestamp() FROM gateway_bankorder WHERE state = 'FILED' AND final_at IS NOT NULL
            ORDER BY merchant_id, final_at LIMIT 1""",
        about="Count collections as paid that no bank rejected in time, where the account says so.",
    ),
    Timer(
        name="bank outbox",
        run=file_delivery.delete_old_bank_files,
        every_s=3600.0,
        about="Remove delivered files after GATEWAY_SEPA_OUTBOX_DAYS.",
    ),
)

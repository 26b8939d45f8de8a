"""The gateway's timers, one row each: what it does, how often, and when a merchant's next run is due."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings

from gateway.connectors.iso8583 import batch_planning, batch_run
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.sepa import bank_message_intake, collection_finality, file_delivery, file_planning
from gateway.connectors.sepa.connector import SEPA
from gateway.connectors.simulator import orders
from gateway.core import clock
from gateway.models import CardDecline, CardTestingCount, Merchant, RequestLog, RiskObservation, ThrottleWindow
from gateway.payments import idempotency, recovery, shopper_return
from gateway.risk.conditions import MAX_VELOCITY_WINDOW
from gateway.risk.retry_rules import MAX_RULE_DAYS
from gateway.threeds import authentications
from gateway.timers.registry import Timer
from gateway.wallets import channel_tokens

_CARD_TESTING_RETENTION: Final = timedelta(hours=2)
_THROTTLE_WINDOW_RETENTION: Final = timedelta(minutes=10)
_BATCH: Final = 10_000
"""Most rows that one clean-up run deletes; the next run continues."""
SWEEP_INTERVAL_S: Final = 60.0


def _recover(merchant: Merchant | None) -> int:
    """Real time: a merchant's clock has no effect on an acquirer that does not answer."""
    return recovery.recover_due_payments().claimed if merchant is None else 0


def _expire(merchant: Merchant | None) -> int:
    return shopper_return.expire_due_suspensions(merchant=merchant)


def _authenticate(merchant: Merchant | None) -> int:
    return shopper_return.complete_due_authentications(merchant=merchant)


def _throttle_windows(merchant: Merchant | None) -> int:
    old = (clock.real_now() - _THROTTLE_WINDOW_RETENTION).timestamp()
    return ThrottleWindow.objects.extra(where=['"window" * window_s + window_s < %s'], params=[old]).delete()[0]


def _request_log(merchant: Merchant | None) -> int:
    limit = clock.real_now() - timedelta(days=settings.GATEWAY_REQUEST_LOG_DAYS)
    stale = list(RequestLog.objects.filter(at__lt=limit).order_by("at").values_list("pk", flat=True)[:_BATCH])
    return RequestLog.objects.filter(pk__in=stale).delete()[0] if stale else 0


def _idempotency_keys(merchant: Merchant | None) -> int:
    return idempotency.delete_expired_idempotency_keys(clock.real_now(), limit=_BATCH)


def _wallet_tokens(merchant: Merchant | None) -> int:
    return channel_tokens.delete_expired_token_uses(clock.real_now(), limit=_BATCH)


def _card_testing(merchant: Merchant | None) -> int:
    return CardTestingCount.objects.filter(at__lt=clock.real_now() - _CARD_TESTING_RETENTION).delete()[0]


def _risk(merchant: Merchant | None) -> int:
    """Ids are in time order, so only the oldest are looked at."""
    oldest = list(RiskObservation.objects.order_by("id").values_list("pk", flat=True)[:_BATCH])
    observed = RiskObservation.objects.filter(pk__in=oldest, at__lt=clock.real_now() - MAX_VELOCITY_WINDOW).delete()[0]
    declines = list(CardDecline.objects.order_by("id").values_list("pk", flat=True)[:_BATCH])
    kept = clock.real_now() - timedelta(days=MAX_RULE_DAYS)
    return observed + CardDecline.objects.filter(pk__in=declines, at__lt=kept).delete()[0]


def _bank_files(merchant: Merchant | None) -> int:
    return file_planning.plan_due_bank_files(SEPA, merchant) + file_delivery.deliver_due_bank_files(SEPA, merchant)


def _capture_batches(merchant: Merchant | None) -> int:
    return batch_planning.plan_due_batches(merchant) + batch_run.send_due_batches(ISO8583, merchant)


def _bank_inbox(merchant: Merchant | None) -> int:
    return bank_message_intake.import_watched_folder() if merchant is None else 0


def _simulated_orders(merchant: Merchant | None) -> int:
    return orders.delete_old_simulated_orders(limit=_BATCH) if merchant is None else 0


def _bank_outbox(merchant: Merchant | None) -> int:
    return file_delivery.delete_old_bank_files()


TIMERS: Final = (
    Timer(name="recovery", run=_recover, about="Ask the acquirer about payments without an answer."),
    Timer(
        name="shopper deadlines",
        run=_expire,
        next_at=shopper_return.find_next_suspension_deadline,
        about="End payments whose shopper never came back, on the word of whoever they were sent to.",
    ),
    Timer(
        name="authentications",
        run=_authenticate,
        next_at=authentications.next_authentication_due,
        about="Decoupled 3-D Secure answers, and authentications alone that ran out of time.",
    ),
    Timer(
        name="throttle windows",
        run=_throttle_windows,
        every_s=SWEEP_INTERVAL_S,
        about="Forget counters of past windows.",
    ),
    Timer(
        name="request log",
        run=_request_log,
        every_s=SWEEP_INTERVAL_S,
        about="Forget requests older than GATEWAY_REQUEST_LOG_DAYS.",
    ),
    Timer(
        name="idempotency keys", run=_idempotency_keys, every_s=SWEEP_INTERVAL_S, about="Forget keys after 24 hours."
    ),
    Timer(
        name="wallet tokens",
        run=_wallet_tokens,
        every_s=SWEEP_INTERVAL_S,
        about="Forget tokens that are too old to be used again.",
    ),
    Timer(name="card testing", run=_card_testing, every_s=SWEEP_INTERVAL_S, about="Forget the guard's counters."),
    Timer(
        name="risk observations",
        run=_risk,
        every_s=SWEEP_INTERVAL_S,
        about="Forget what no velocity rule counts any more.",
    ),
    Timer(
        name="bank files",
        run=_bank_files,
        next_at=file_planning.next_bank_file_run,
        every_s=5.0,
        about="Make and deliver the day's files of direct debits and transfers.",
    ),
    Timer(
        name=batch_planning.CAPTURE_BATCH_TIMER,
        run=_capture_batches,
        next_at=batch_planning.next_batch_run,
        every_s=5.0,
        at_once=2,
        about="Send the day's captures of card accounts that present them by batch, and compare sums.",
    ),
    Timer(name="bank inbox", run=_bank_inbox, every_s=10.0, about="Take in what banks answered."),
    Timer(
        name="bank days",
        run=collection_finality.finalize_due_collections,
        next_at=collection_finality.next_collection_finality,
        every_s=60.0,
        about="Count collections as paid that no bank rejected in time, where the account says so.",
    ),
    Timer(
        name="bank outbox",
        run=_bank_outbox,
        every_s=3600.0,
        about="Remove delivered files after GATEWAY_SEPA_OUTBOX_DAYS.",
    ),
    Timer(
        name="simulated orders",
        run=_simulated_orders,
        every_s=3600.0,
        about="Forget orders at the simulator 90 days after they were decided.",
    ),
)

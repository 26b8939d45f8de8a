"""The list of all timers and kinds of background work. Source: Part A, Events; Part B, Scheduling."""

from __future__ import annotations

from typing import Final

from chargebacks import packet_job
from chargebacks import timers as chargebacks
from checkout import timers as checkout
from gateway.access import rate_limits, signin, tokens, unused_accounts
from gateway.background import queue
from gateway.backoffice.access import audit_seals, audit_work
from gateway.backoffice.entities import exemption_trial
from gateway.backoffice.follow_ups import approval_notice, approvals, bulk_follow_ups
from gateway.backoffice.payments import payment_export
from gateway.backoffice.personal_data import erasure_requests
from gateway.backoffice.risk import rule_trials
from gateway.backoffice.routing import dry_run
from gateway.backoffice.schedules import retry_trial
from gateway.connectors.iso8583 import timers as iso8583
from gateway.connectors.sepa import timers as sepa
from gateway.connectors.simulator import orders
from gateway.notifications import bulk_replay
from gateway.payments import (
    account_update_batch,
    authorization_expiry,
    authorization_releases,
    bank_order_outcomes,
    batched_captures,
    idempotency,
    mandate_mails,
    network_tokens,
    recovery,
    registration_retention,
    shopper_return,
    webhook_payloads,
)
from gateway.personal_data import account_retention, payment_archiving
from gateway.portal import self_test
from gateway.processor_events import event_processing as processor_events
from gateway.risk import card_testing, risk_store
from gateway.scheduling import job_timer as scheduling
from gateway.scheduling import retry_statistics
from gateway.timers import registry, table_partitions
from gateway.wallets import channel_tokens
from reporting import timers as reporting
from reporting.month_end import bulk_closing
from reporting.month_end import package as month_package
from reporting.reconciliation import period_files

TIMERS: Final[tuple[registry.Timer, ...]] = (
    recovery.TIMER,
    authorization_expiry.TIMER,
    authorization_releases.TIMER,
    authorization_releases.RELEASE_SWEEP_TIMER,
    *shopper_return.TIMERS,
    rate_limits.TIMER,
    table_partitions.TIMER,
    idempotency.TIMER,
    channel_tokens.TIMER,
    card_testing.TIMER,
    risk_store.TIMER,
    sepa.FILE_TIMER,
    iso8583.TIMER,
    *sepa.BANK_TIMERS,
    orders.TIMER,
    *checkout.TIMERS,
    webhook_payloads.TIMER,
    webhook_payloads.SWEEP_TIMER,
    mandate_mails.TIMER,
    *processor_events.TIMERS,
    bank_order_outcomes.TIMER,
    batched_captures.TIMER,
    registration_retention.TIMER,
    network_tokens.TIMER,
    *account_update_batch.TIMERS,
    account_retention.TIMER,
    payment_archiving.TIMER,
    erasure_requests.TIMER,
    *scheduling.TIMERS,
    retry_statistics.TIMER,
    *chargebacks.TIMERS,
    *reporting.TIMERS,
    approvals.TIMER,
    approval_notice.TIMER,
    audit_seals.TIMER,
    audit_seals.LATE_SEAL_TIMER,
    signin.TIMER,
    tokens.TIMER,
    unused_accounts.TIMER,
    queue.TIMER,
    self_test.TIMER,
)
BACKGROUND_WORK_KINDS: Final[tuple[queue.WorkKind, ...]] = (
    payment_export.PAYMENT_EXPORT,
    bulk_follow_ups.BULK_CHECK,
    bulk_follow_ups.BULK_SEND,
    bulk_replay.REPLAY_JOB_KIND,
    packet_job.PACKET_JOB_KIND,
    audit_work.AUDIT_CHECK,
    audit_work.AUDIT_EXPORT,
    rule_trials.RISK_TRIAL,
    dry_run.ROUTING_DRY_RUN,
    exemption_trial.EXEMPTION_TRIAL,
    retry_trial.RETRY_TRIAL,
    month_package.MONTH_PACKAGE,
    bulk_closing.MONTHS_CLOSING,
    period_files.PERIOD_FILE,
)


def register_timers_and_work() -> None:
    """Register all timers (for beat and the test environment's clock) and all kinds of background work."""
    for timer in TIMERS:
        registry.register_timer(timer)
    for kind in BACKGROUND_WORK_KINDS:
        queue.register_work_kind(kind)

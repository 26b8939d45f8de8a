"""Releases at the acquirer what a FINAL capture or reversal left of an authorization, and what has expired.

The row that asks for it is written with the approval (gateway.payments.side_effects) or the expiry. A timer sends a
reversal of the rest: a follow-up of the chain like any other, so its answer, recovery, exchange and webhook are those
of every reversal. It is sent again until one is approved or nothing is left, at most MAX_RELEASE_TRIES times. Ended
rows are kept for the back office.
Source: rulings, section 4 (FINAL closes and releases the rest); docs/decisions/0068, 0069.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import structlog

from gateway.connectors.accounts import holds_renewals_apart, load_connector_account
from gateway.connectors.acquirer_message import flatten_body, forwardable_parameters
from gateway.connectors.port import AcquirerReply, AcquirerRequest, OutcomeUnknownError
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock, identifiers
from gateway.core.money import format_amount
from gateway.db.statement import execute_sql
from gateway.models import AuthorizationRelease, Merchant, Payment, Status
from gateway.payments import store
from gateway.payments.chain_amounts import Chain, Hold, has_open_reversal
from gateway.payments.follow_ups import (
    GATEWAY_FOLLOW_UP_PARAMETERS,
    FollowUpRequest,
    find_authorizing_payment,
    load_chain_means,
    load_chain_members,
    process_follow_up,
)
from gateway.payments.operation_table import RELEASE_OPERATION
from gateway.payments.outcomes import describe_silence
from gateway.payments.payment_request import RequestTrace
from gateway.payments.points_of_service import find_point_of_service
from gateway.payments.refusal import RequestRefusedError
from gateway.timers.registry import MAX_SWEPT_ROWS, SWEEP_INTERVAL_S, Timer, interval_sql

MAX_RELEASES_PER_TICK: Final = 50
RELEASE_RETRIES: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 360))
"""Delays after a release that was not approved; the last repeats."""
MAX_RELEASE_TRIES: Final = 8
"""A day and some hours: each try is a reversal that the merchant sees, and a hold ends by itself after days."""
RELEASE_LEASE: Final = timedelta(minutes=2)
RELEASE_RETENTION: Final = timedelta(days=90)
"""How long an ended release is shown."""

log = structlog.get_logger(__name__)

_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT id FROM gateway_authorizationrelease WHERE due_at <= statement_timestamp()
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE gateway_authorizationrelease r SET due_at = clock_timestamp() + %(lease)s::interval
FROM due WHERE r.id = due.id RETURNING r.id
"""
_POSTPONE: Final = """
UPDATE gateway_authorizationrelease SET due_at = clock_timestamp() + %(pause)s::interval, tries = %(tries)s::smallint,
    result_code = %(code)s, payment = %(payment)s::uuid
WHERE id = %(id)s RETURNING 1
"""


def release_authorizations() -> int:
    """Release what is due; returns how many were looked at."""
    claimed = [row[0] for row in execute_sql(_CLAIM, {"limit": MAX_RELEASES_PER_TICK, "lease": RELEASE_LEASE})]
    for row in AuthorizationRelease.objects.filter(pk__in=claimed).order_by("pk"):
        tries = row.tries
        try:
            _release_authorization(row)
        except Exception:  # one authorization must not keep the others waiting; it is due again, not for ever
            log.exception("authorization_not_released", payment=row.authorization.hex)
            row.tries = tries + 1
            _postpone_release(row)
    return len(claimed)


def _release_authorization(row: AuthorizationRelease) -> None:
    chain = Chain(load_chain_members(row.authorization))
    held = chain.authorization
    if has_open_reversal(chain, chain.first) or held.has_pending_increment or held.has_pending_capture:
        return  # it may still be declined, or raise the rest: due again after the lease
    if row.cause == AuthorizationRelease.Cause.RENEWAL:
        _release_renewed(row, chain)
        return
    if chain.first.payment_type != "PA" or held.uncaptured <= 0 or _is_renewed(row, chain):
        _end_release(
            row,
            AuthorizationRelease.State.RELEASED if row.payment is not None else AuthorizationRelease.State.NOTHING_LEFT,
        )
        return
    rest = held.uncaptured
    released = _submit_release(chain)
    row.tries += 1
    if released is not None:
        row.payment, row.result_code = released.id, released.result_code
    if released is not None and released.status == Status.APPROVED:
        row.amount = rest
        _end_release(row, AuthorizationRelease.State.RELEASED)
        return
    _postpone_release(row)
    if released is not None and released.status == Status.DECLINED:
        log.error("authorization_release_declined", payment=row.authorization.hex, code=released.result_code)


def _is_renewed(row: AuthorizationRelease, chain: Chain) -> bool:
    """Whether a late capture has renewed what was to be released since it had expired: the renewal has an end of its
    own."""
    held = chain.authorization
    if row.cause != AuthorizationRelease.Cause.EXPIRY or held.expires_at is None:
        return False
    return not held.is_expired(clock.merchant_now(chain.first.merchant))


def _postpone_release(row: AuthorizationRelease) -> None:
    """Try again later, or give up."""
    if row.tries >= MAX_RELEASE_TRIES:
        log.error("authorization_release_given_up", payment=row.authorization.hex, tries=row.tries)
        _end_release(row, AuthorizationRelease.State.GIVEN_UP)
        return
    pause = RELEASE_RETRIES[min(row.tries, len(RELEASE_RETRIES)) - 1]
    values = {"pause": pause, "tries": row.tries, "code": row.result_code, "payment": row.payment, "id": row.pk}
    execute_sql(_POSTPONE, values)


def _release_renewed(row: AuthorizationRelease, chain: Chain) -> None:
    """Void at the acquirer what is left of the authorization that a renewal has replaced. That is no follow-up of the
    chain: its ledger has the amount once, and the renewal holds it."""
    held = chain.authorization
    renewal = chain.find(row.payment) if row.payment is not None else None
    assert renewal is not None  # written with the row
    replaced = held.find_current(before=renewal)
    hold = held.compute_hold(replaced, until=renewal)
    rest = hold.authorized - hold.captured - hold.reversed
    connector = CONNECTORS[replaced.connector]
    if rest <= 0 or not holds_renewals_apart(connector, replaced.channel_id, replaced.acquirer_merchant_id):
        _end_release(row, AuthorizationRelease.State.NOTHING_LEFT)
        return
    row.tries += 1
    started = clock.real_now()
    try:
        reply: AcquirerReply | OutcomeUnknownError = connector.void(_build_void(chain, replaced, hold, row))
    except OutcomeUnknownError as unknown:
        reply = unknown
    received = reply.received if isinstance(reply, AcquirerReply) else describe_silence(reply)
    now = clock.real_now()
    at, duration_ms = now + chain.first.merchant.clock_offset, int((now - started).total_seconds() * 1000)
    store.record_exchange(replaced, "void", reply.sent, received, at=at, duration_ms=duration_ms)
    if isinstance(reply, OutcomeUnknownError):
        _postpone_release(row)
        return
    row.amount = rest
    _end_release(row, AuthorizationRelease.State.RELEASED)


def _build_void(chain: Chain, replaced: Payment, hold: Hold, row: AuthorizationRelease) -> AcquirerRequest:
    """The void of an authorization that a renewal has replaced, less what of it was captured. It began with the row, so
    that a repeat has the same time; days may lie between it and the authorization."""
    first, connector = chain.first, CONNECTORS[replaced.connector]
    return AcquirerRequest(
        payment=replaced.id,
        operation=replaced.payment_type,
        money=replaced.money,
        brand=replaced.brand,
        at=row.created_at,
        means=load_chain_means(first.id, find_authorizing_payment(chain, replaced).id),
        reference=first.connector_tx_id if replaced.practice else "",
        known_transaction_id=replaced.connector_tx_id,
        parameters=forwardable_parameters(flatten_body(replaced.request)),
        account=load_connector_account(connector, replaced.channel_id, replaced.acquirer_merchant_id),
        original=find_point_of_service(chain, replaced),
        authorized_amount=hold.authorized,
        kept_amount=hold.captured,
    )


def _end_release(row: AuthorizationRelease, state: AuthorizationRelease.State) -> None:
    """Close the row. A try whose answer came later has released what it asked for."""
    if state == AuthorizationRelease.State.RELEASED and row.amount is None and row.payment is not None:
        sent = Payment.objects.filter(pk=row.payment, status=Status.APPROVED)
        row.amount = sent.values_list("approved_amount", flat=True).first()
        if row.amount is None:
            state = AuthorizationRelease.State.NOTHING_LEFT
    row.state, row.due_at, row.ended_at = state, None, clock.real_now()
    row.save(update_fields=["state", "due_at", "ended_at", "amount", "payment", "result_code", "tries"])


def _submit_release(chain: Chain) -> Payment | None:
    """Send the reversal of the rest; None if the chain does not allow it now."""
    first = chain.first
    merchant = Merchant.objects.get(pk=first.merchant_id)
    rest = chain.authorization.uncaptured
    pairs = [("paymentType", "RV"), ("amount", format_amount(rest)), ("currency", first.currency)]
    request = FollowUpRequest(
        payment=identifiers.row_id(),
        target=first.id,
        merchant=merchant,
        channel=None,
        parameters=GATEWAY_FOLLOW_UP_PARAMETERS.parse(pairs),
        now=clock.merchant_now(merchant),
        trace=RequestTrace(method="RELEASE", path="REST", entity=first.channel_id),
        operation=RELEASE_OPERATION,
    )
    try:
        return process_follow_up(request)
    except RequestRefusedError as refused:
        log.warning("authorization_release_refused", payment=first.id.hex, code=refused.code)
        return None


def _forget_releases() -> int:
    old = AuthorizationRelease.objects.filter(ended_at__lt=clock.real_now() - RELEASE_RETENTION).order_by("ended_at")
    return AuthorizationRelease.objects.filter(pk__in=old.values("pk")[:MAX_SWEPT_ROWS]).delete()[0]


TIMER: Final = Timer(
    name="authorization releases",
    run=release_authorizations,
    about="Reverse what a FINAL capture or reversal left of an authorization, and what has expired.",
    earliest_due="SELECT min(due_at) FROM gateway_authorizationrelease",
)
RELEASE_SWEEP_TIMER: Final = Timer(
    name="authorization releases, old",
    run=_forget_releases,
    every_s=SWEEP_INTERVAL_S,
    about="Forget releases that ended 90 days ago.",
    earliest_due=f"SELECT min(ended_at) + {interval_sql(RELEASE_RETENTION)} FROM gateway_authorizationrelease",  # noqa: S608 - a constant
)

"""Releases at the acquirer what a FINAL capture or reversal left of an authorization.

The row that asks for it is written with the approval (gateway.payments.side_effects). A timer sends a reversal of the
rest: a follow-up of the chain like any other, so its answer, recovery, exchange and webhook are those of every
reversal. It is sent again until one is approved or nothing is left, at most MAX_RELEASE_TRIES times.
Source: rulings, section 4 (FINAL closes and releases the rest); docs/decisions/0068.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from gateway.catalogue import structures
from gateway.catalogue.endpoints import FOLLOW_UP_ENDPOINT
from gateway.catalogue.parse import Catalogue
from gateway.core import clock, identifiers
from gateway.core.money import format_amount
from gateway.db.statement import execute_sql
from gateway.models import AuthorizationRelease, Merchant, Payment, Status
from gateway.payments.chain import Chain, compute_uncaptured_amount, has_open_reversal, has_pending_increment
from gateway.payments.follow_ups import FollowUpRequest, load_chain_members, process_follow_up
from gateway.payments.operations import RELEASE_OPERATION
from gateway.payments.payment_request import RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.timers.registry import Timer

MAX_RELEASES_PER_TICK: Final = 50
RELEASE_RETRIES: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 360))
"""Delays after a release that was not approved; the last repeats."""
MAX_RELEASE_TRIES: Final = 8
"""A day and some hours: each try is a reversal that the merchant sees, and a hold ends by itself after days."""
RELEASE_LEASE: Final = timedelta(minutes=2)

_RELEASE_PARAMETERS: Final = Catalogue(
    FOLLOW_UP_ENDPOINT.structures[1:], FOLLOW_UP_ENDPOINT.rules, elsewhere=structures.KNOWN_STRUCTURES
)

log = structlog.get_logger(__name__)

_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT id FROM gateway_authorizationrelease WHERE due_at <= clock_timestamp()
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE gateway_authorizationrelease r SET due_at = clock_timestamp() + %(lease)s::interval,
    tries = least(r.tries + 1, 32000)::smallint
FROM due WHERE r.id = due.id RETURNING r."authorization", r.tries
"""
_POSTPONE: Final = """
UPDATE gateway_authorizationrelease SET due_at = clock_timestamp() + %(pause)s::interval
WHERE "authorization" = %(authorization)s::uuid RETURNING 1
"""


def release_authorizations() -> int:
    """Release what is due; returns how many were tried."""
    claimed = execute_sql(_CLAIM, {"limit": MAX_RELEASES_PER_TICK, "lease": RELEASE_LEASE})
    for authorization, tries in claimed:
        try:
            _release_authorization(authorization, tries)
        except Exception:  # one authorization must not keep the others waiting; it is due again
            log.exception("authorization_not_released", payment=authorization.hex)
    return len(claimed)


def _release_authorization(authorization: UUID, tries: int) -> None:
    chain = Chain(load_chain_members(authorization))
    if has_open_reversal(chain, chain.first) or has_pending_increment(chain):
        return  # it may still be declined, or raise the rest: due again after the lease
    if chain.first.payment_type != "PA" or compute_uncaptured_amount(chain) <= 0:
        AuthorizationRelease.objects.filter(authorization=authorization).delete()
        return
    released = _submit_release(chain)
    if released is not None and released.status == Status.APPROVED:
        AuthorizationRelease.objects.filter(authorization=authorization).delete()
        return
    if tries >= MAX_RELEASE_TRIES:
        log.error("authorization_release_given_up", payment=authorization.hex, tries=tries)
        AuthorizationRelease.objects.filter(authorization=authorization).delete()
        return
    pause = RELEASE_RETRIES[min(tries, len(RELEASE_RETRIES)) - 1]
    execute_sql(_POSTPONE, {"pause": pause, "authorization": authorization})
    if released is not None and released.status == Status.DECLINED:
        log.error("authorization_release_declined", payment=authorization.hex, code=released.result_code)


def _submit_release(chain: Chain) -> Payment | None:
    """Send the reversal of the rest; None if the chain does not allow it now."""
    first = chain.first
    merchant = Merchant.objects.get(pk=first.merchant_id)
    rest = compute_uncaptured_amount(chain)
    pairs = [("paymentType", "RV"), ("amount", format_amount(rest)), ("currency", first.currency)]
    request = FollowUpRequest(
        payment=identifiers.row_id(),
        target=first.id,
        merchant=merchant,
        channel=None,
        parameters=_RELEASE_PARAMETERS.parse(pairs),
        now=clock.merchant_now(merchant),
        trace=RequestTrace(
            request=identifiers.row_id(), method="RELEASE", path="FINAL", at=clock.real_now(), entity=first.channel_id
        ),
        operation=RELEASE_OPERATION,
    )
    try:
        return process_follow_up(request)
    except RequestRefusedError as refused:
        log.warning("authorization_release_refused", payment=first.id.hex, code=refused.code)
        return None


def _run_releases(merchant: Merchant | None) -> int:
    """Real time: what is blocked at an issuer does not follow a merchant's clock."""
    return release_authorizations() if merchant is None else 0


TIMER: Final = Timer(
    name="authorization releases",
    run=_run_releases,
    about="Reverse what a FINAL capture or reversal left of an authorization.",
    earliest_due="SELECT min(due_at) FROM gateway_authorizationrelease",
)

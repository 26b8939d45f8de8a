"""Chargebacks that end the consent behind stored credentials: they stop subscription jobs and merchant-initiated use.

The case is opened with ``stops_pending``; what follows is done at once and, if a worker died before, by a timer. Jobs
of the registration are SUSPENDED (DO_NOT_RETRY), with the record and the notification of every suspension; neither the
registration nor the agreement, by which payments without a registration are named (initialTransactionId), takes a
merchant-initiated payment until its holder agrees again (an INITIAL payment).
Source: docs/decisions/0065.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db.models import Q

from chargebacks.models import Chargeback
from chargebacks.stages import CARDHOLDER_DISPUTE_CODES
from gateway.core import clock, identifiers
from gateway.models import Agreement, Payment, Registration
from gateway.scheduling.job_runs import LIVE_JOB_STATES, suspend_job
from gateway.scheduling.models import Job

FRAUD_STOP_CODE: Final = "700.601.003"
REVOKED_STOP_CODE: Final = "800.100.500"
CUSTOMER_DISPUTED: Final = "000.100.206"
STOP_CODE_BY_CHARGEBACK_REASON: Final[Mapping[str, str]] = MappingProxyType(
    {
        # EPC rulebooks: the debtor's bank returns for want of a valid mandate (MD01, MD02).
        "000.100.204": REVOKED_STOP_CODE,
        # Visa 13.2, Mastercard 4853 (cancelled recurring): no charge after the cardholder withdrew the permission.
        "000.100.205": REVOKED_STOP_CODE,
        # EPC rulebook Core, 4.3.4: a refund that the debtor asked for (MD06) disputes the charges to come as well.
        CUSTOMER_DISPUTED: REVOKED_STOP_CODE,
        # Visa 10.1-10.5, Mastercard 4837, 4870, 4871: the account is compromised, and the issuer closes it.
        "000.100.220": FRAUD_STOP_CODE,
        # Mastercard 4863 (now under 4837): a charge that the cardholder does not recognise is treated as fraud.
        "000.100.222": FRAUD_STOP_CODE,
        # Amex F24, F29; bank debits without authority: the cardholder took no part.
        "000.100.230": FRAUD_STOP_CODE,
    }
)
"""Reason of a chargeback → the result code that declines merchant-initiated payments with its registration."""
MAX_STOPS_PER_RUN: Final = 200
MAX_SUSPENSION_TRIES: Final = 20
"""How often a job that changes meanwhile is read again."""


def stops_stored_credentials(reason: str, chain: UUID, scheme_reason: str) -> bool:
    """Whether a chargeback for ``reason`` has to stop what is charged like the payment that ``chain`` began with. A
    card scheme's code that joins many conditions does not say that the permission is withdrawn."""
    joined = reason == CUSTOMER_DISPUTED and scheme_reason in CARDHOLDER_DISPUTE_CODES
    if joined or reason not in STOP_CODE_BY_CHARGEBACK_REASON:
        return False
    return find_disputed_registration(chain) is not None or bool(_list_disputed_agreements(chain))


def stop_pending_credentials() -> int:
    """Do what chargebacks of the last seconds left open. Returns for how many."""
    waiting = Chargeback.objects.filter(stops_pending=True)
    found = list(waiting.select_related("merchant").order_by("id")[:MAX_STOPS_PER_RUN])
    for case in found:
        stop_stored_credentials(case)
    return len(found)


def stop_stored_credentials(case: Chargeback) -> None:
    """Block the agreement and the registration behind the disputed payment, then suspend its jobs: no run can begin in
    between and be approved. Repeating it changes nothing."""
    registration = find_disputed_registration(case.chain)
    now = clock.merchant_now(case.merchant)
    block = {"merchant_use_blocked_at": now, "merchant_use_code": STOP_CODE_BY_CHARGEBACK_REASON[case.reason_code]}
    Agreement.objects.filter(pk__in=_list_disputed_agreements(case.chain)).update(**block)
    if registration is not None:
        Registration.objects.filter(pk=registration).update(**block)
        for ident in Job.objects.filter(registration=registration, state__in=LIVE_JOB_STATES).values_list("pk"):
            _suspend(ident[0])
    Chargeback.objects.filter(pk=case.pk, stops_pending=True).update(stops_pending=False)


def find_disputed_registration(chain: UUID) -> UUID | None:
    """The stored means that a chain was paid with, or that its first payment stored."""
    found: UUID | None = Payment.objects.filter(pk=chain).values_list("registration", flat=True).first()
    return found


def _list_disputed_agreements(chain: UUID) -> list[UUID]:
    """The agreements that the first payment of a chain began, or was made under, and all others of its stored means."""
    first = Payment.objects.filter(pk=chain).only("agreement", "registration", "channel", "request").first()
    if first is None:
        return []
    named: Mapping[str, str] = first.request.get("standingInstruction", {})
    which = Q(pk__in=[one for one in (first.id, first.agreement) if one is not None])
    if first.registration is not None:
        which |= Q(registration=first.registration)
    if reference := named.get("initialTransactionId"):
        payment = identifiers.parse_id(reference)
        which |= Q(channel=first.channel_id) & (Q(reference=reference) | Q(pk=payment))
    elif linking := named.get("agreementId"):
        which |= Q(channel=first.channel_id, agreement_id=linking)
    return list(Agreement.objects.filter(which).values_list("pk", flat=True))


def _suspend(ident: UUID) -> None:
    for _ in range(MAX_SUSPENSION_TRIES):
        job = Job.objects.select_related("merchant", "channel").get(pk=ident)
        job.channel.merchant = job.merchant
        if job.state not in LIVE_JOB_STATES:
            return
        if suspend_job(job, Job.Reason.DO_NOT_RETRY, clock.merchant_now(job.merchant)):
            return
    raise RuntimeError(f"job {ident.hex} changed {MAX_SUSPENSION_TRIES} times while it was suspended")

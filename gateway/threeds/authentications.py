"""Queries on stored authentications: which are due, and what their outcome is.

Source: Part B, 3D Secure; rulings D31 to D35.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import DateTimeField, Exists, ExpressionWrapper, F, Min, OuterRef, Q, Value

from gateway.core.secret import Secret
from gateway.models import Authentication, AuthenticationStep, Merchant, Payment, Status
from gateway.threeds.outcome import (
    AuthenticationOutcome,
    AuthenticationPassed,
    AuthenticationPending,
    AuthenticationRejected,
)
from gateway.threeds_protocol import messages
from gateway.vault.sealing import current_vault

_PASSING_STATUSES: Final = frozenset({"Y", "A", "U", "I", "N"})
"""transStatus of payments that go on; N where it accepts an exemption (gateway.threeds_protocol.networks)."""
_EXEMPTING_STATUSES: Final = frozenset({"I", "N"})


def find_standalone_authentication(ident: UUID) -> Authentication | None:
    """A standalone authentication by its id."""
    rows = Authentication.objects.select_related("merchant", "channel")
    return rows.filter(pk=ident, payment__isnull=True).first()


def find_authentication_of_payment(payment: UUID) -> Authentication | None:
    """The authentication of a payment; the second, where a soft decline led to one."""
    rows = Authentication.objects.select_related("merchant", "channel").filter(payment=payment)
    return rows.order_by("-attempt").first()


def find_ended_authentication(payment: UUID, attempt: int) -> Authentication | None:
    """The authentication of a payment's first or second authorization attempt, if it has ended."""
    rows = Authentication.objects.filter(payment=payment, attempt=attempt, step=AuthenticationStep.DONE)
    return rows.first()


def list_due_authentications(now: datetime, limit: int, merchant: Merchant | None = None) -> list[Authentication]:
    """Open authentications that are due: decoupled ones that the cardholder has answered, those alone that are past
    their deadline, and those whose payment has ended.

    ``now`` is real time; the rows' times are their merchants'. Of a waiting payment, only the payment's own deadline
    counts, so its authentication is left out. ``merchant``: only this one's.
    """
    there = ExpressionWrapper(
        Value(now, output_field=DateTimeField()) + F("merchant__clock_offset"), output_field=DateTimeField()
    )
    answered = Q(step=AuthenticationStep.DECOUPLED, due_at__lte=there, deadline__gt=there)
    # A worker may have died between storing the authentication and suspending its payment, which recovery then ended;
    # or the shopper gave the payment up. Nobody comes back to it: it keeps no sealed number until a deadline.
    over = Exists(Payment.objects.filter(pk=OuterRef("payment"), status__in=(Status.APPROVED, Status.DECLINED)))
    late = Q(deadline__lte=there, payment__isnull=True)
    rows = Authentication.objects.exclude(step=AuthenticationStep.DONE).filter(answered | late | Q(over))
    if merchant is not None:
        rows = rows.filter(merchant=merchant)
    return list(rows.select_related("merchant").order_by("deadline")[:limit])


# Of the payment of an open authentication only the deadline counts that the payment itself has; once it has ended, the
# authentication is due at once.
EARLIEST_DUE_AUTHENTICATION: Final = """
SELECT least(
    (SELECT min(due_at) FROM gateway_authentication WHERE step = 'decoupled' AND due_at < deadline),
    (SELECT min(deadline) FROM gateway_authentication WHERE step <> 'done' AND payment IS NULL),
    (SELECT min(a.created_at) FROM gateway_authentication a JOIN gateway_payment p ON p.id = a.payment
     WHERE a.step <> 'done' AND p.status IN ('APPROVED', 'DECLINED')))
"""


def has_cardholder_answered(row: Authentication, now: datetime) -> bool:
    """Whether the cardholder of a decoupled authentication answered within its deadline. ``now``: real time."""
    if row.step != AuthenticationStep.DECOUPLED or row.due_at is None or row.deadline is None:
        return False
    return row.due_at <= now + row.merchant.clock_offset and row.due_at < row.deadline


def next_authentication_due(merchant: Merchant) -> datetime | None:
    """When this merchant's next open authentication is due, by the merchant's clock."""
    rows = Authentication.objects.exclude(step=AuthenticationStep.DONE).filter(merchant=merchant)
    answered = Q(step=AuthenticationStep.DECOUPLED, due_at__lt=F("deadline"))
    found = rows.aggregate(answer=Min("due_at", filter=answered), late=Min("deadline", filter=Q(payment__isnull=True)))
    return min((moment for moment in found.values() if moment is not None), default=None)


def build_method_data(ident: UUID, notification_url: str) -> str:
    """threeDSMethodData for the issuer's method page, base64url. ``notification_url``: where the page reports its end;
    the simulated one does not."""
    data = {"threeDSServerTransID": str(ident)}
    if notification_url:
        data["threeDSMethodNotificationURL"] = notification_url
    return encode_base64url(data)


def build_creq(row: Authentication) -> str:
    """The CReq that the browser takes to the issuer's challenge page, base64url."""
    return encode_base64url(
        {
            "messageType": "CReq",
            "messageVersion": row.version,
            "threeDSServerTransID": str(row.id),
            "acsTransID": row.acs_transaction,
            "challengeWindowSize": row.window,
        }
    )


def encode_base64url(message: Mapping[str, str]) -> str:
    """A message as JSON in base64url, without padding."""
    text = json.dumps(message, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def outcome_from_authentication(row: Authentication) -> AuthenticationOutcome:
    """The outcome of an authentication row."""
    shown = build_authentication_facts(row)
    facts = {"threeDSecure": shown} if shown else {}
    if row.step != AuthenticationStep.DONE:
        assert row.deadline is not None
        shopper = row.device_channel != messages.REQUESTOR_CHANNEL
        return AuthenticationPending(
            authentication=row.id,
            step=row.step,
            deadline=row.deadline,
            shopper=shopper,
            method_url=row.method_url,
            facts=facts,
        )
    if row.code:
        return AuthenticationRejected(code=row.code, facts=facts, attempt=row.attempt)
    return AuthenticationPassed(proof=build_authentication_proof(row), facts=facts, attempt=row.attempt)


def build_authentication_proof(row: Authentication) -> dict[str, str | Secret]:
    """The proof as forwardable parameters; empty if no authentication took place, or only its challenge was missing."""
    if row.trans_status not in _PASSING_STATUSES:
        return {}
    sealed = row.proof_sealed
    values: dict[str, str | Secret] = {
        "eci": row.eci,
        "verificationId": current_vault().open(sealed, row.id) if sealed is not None else "",
        "dsTransactionId": row.ds_transaction,
        "acsTransactionId": row.acs_transaction,
        "version": row.version if row.ds_transaction else "",
        "authenticationStatus": row.trans_status,
        "transactionStatusReason": row.trans_status_reason,
        "challengeIndicator": find_accepted_indicator(row),
    }
    return {f"threeDSecure.{name}": value for name, value in values.items() if value}


def find_accepted_indicator(row: Authentication) -> str:
    """The challenge indicator, of the request or the channel, whose exemption the issuer accepted; '' for none."""
    accepted = row.step == AuthenticationStep.DONE and row.trans_status in _EXEMPTING_STATUSES
    return row.challenge_indicator if accepted else ""


def build_authentication_facts(row: Authentication) -> dict[str, Any]:
    """The authentication's part of an API answer, without the cryptogram."""
    status = (
        row.trans_status
        if row.step == AuthenticationStep.DONE
        else {"challenge": "C", "decoupled": "D"}.get(row.step, "")
    )
    facts = {
        "flow": row.flow,
        "version": row.version,
        "authenticationStatus": status,
        "transactionStatusReason": row.trans_status_reason,
        "eci": row.eci,
        "dsTransactionId": row.ds_transaction,
        "acsTransactionId": row.acs_transaction,
        "threeDSServerTransactionId": str(row.id) if row.version else "",
        "challengeIndicator": find_accepted_indicator(row),
    }
    return {name: value for name, value in facts.items() if value}

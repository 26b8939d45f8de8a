"""The operation table: which payment type may follow which, up to what amount, and the result code of each refusal.

A row is a payment type, a column a condition of the chain, a cell the result code. :func:`evaluate_operation` decides
for one follow-up on one chain and checks the columns in their order. Source: decisions, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from gateway.connectors.reply_codes import REVERSAL_TOO_LATE
from gateway.core.authorization_validity import FINAL_AUTHORIZATION
from gateway.models import Payment, Status
from gateway.payments.chain_amounts import (
    OPEN_STATUSES,
    Chain,
    can_be_charged_back,
    compute_capturable_amount,
    compute_disputable_amount,
    compute_receivable_amount,
    compute_refundable_amount,
    compute_representable_amount,
    compute_reversible_amount,
    compute_standing_amount,
    has_open_reversal,
    is_closed,
    resolve_payment_amount,
)

AUTHORIZATION_EXPIRED: Final = "700.300.400"
AmountCeiling = Callable[[Chain, Payment], Decimal]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentOperation:
    """One payment type. ``follows``: the types it may follow; empty for first payments.

    Result codes of refusals:

    - ``unknown``: no payment with that id (404).
    - ``wrong_type``: the followed payment has another type.
    - ``not_final``: it, or a reversal of it, has no final result yet, or the follow-up would reverse or end an
      authorization whose increment or renewal has none, or capture one whose renewal has none.
    - ``failed``: it was not approved.
    - ``other_currency``: its currency is another one.
    - ``expired``: the authorization's time has passed.
    - ``settled``: the acquirer clears the payment.
    - ``closed``: a FINAL follow-up ended it.
    - ``disputed``: unreversed chargebacks take what it asks for.
    - ``exhausted``: fully captured or reversed.
    - ``exceeded``: above the ceiling, or nothing left.
    - ``second_chargeback``: the chargeback is a second one.

    What it moves, and who may ask for it:

    - ``ceiling``: the largest amount it may move (None: no limit).
    - ``takes_remainder``: without an amount it takes all that remains.
    - ``counts_captures``: numberOfCaptures limits it.
    - ``needs_card``: the acquirer needs the card data again.
    - ``raises``: it raises an authorized amount, and so follows none that was said to be final (``wrong_type``).
    - ``test_only``: by API in the test environment only; live answers 700.400.402.
    """

    code: str
    title: str
    follows: frozenset[str] = frozenset()
    unknown: str = ""
    wrong_type: str = "700.300.100"
    not_final: str = "700.400.570"
    failed: str = ""
    other_currency: str = "700.100.500"
    expired: str = ""
    settled: str = ""
    closed: str = ""
    disputed: str = ""
    exhausted: str = ""
    exceeded: str = ""
    second_chargeback: str = ""
    ceiling: AmountCeiling | None = None
    takes_remainder: bool = False
    counts_captures: bool = False
    needs_card: bool = False
    raises: bool = False
    test_only: bool = False


def _types(text: str) -> frozenset[str]:
    return frozenset(text.split())


# An incremental or renewed authorization is a PA that follows a PA (Part A, referenceUuid): see
# INDUSTRY_PRACTICE_OPERATIONS.
_TABLE: Final = (
    PaymentOperation(code="PA", title="Preauthorization"),
    PaymentOperation(code="DB", title="Debit"),
    PaymentOperation(code="CD", title="Credit"),
    PaymentOperation(
        code="CP",
        title="Capture",
        follows=_types("PA"),
        ceiling=compute_capturable_amount,
        counts_captures=True,
        unknown="700.400.510",
        failed="700.400.510",
        expired=AUTHORIZATION_EXPIRED,
        closed="700.400.100",
        exceeded="700.400.100",
    ),
    PaymentOperation(
        code="RF",
        title="Refund",
        follows=_types("DB CP RB RC"),
        ceiling=compute_refundable_amount,
        unknown="600.200.500",
        failed="700.400.520",
        closed="700.400.200",
        disputed="700.300.600",
        exceeded="700.400.200",
    ),
    PaymentOperation(
        code="RV",
        title="Reversal",
        follows=_types("PA DB CP RB CD"),
        ceiling=compute_reversible_amount,
        takes_remainder=True,
        unknown="700.400.530",
        failed="700.400.530",
        settled=REVERSAL_TOO_LATE,
        closed="700.400.300",
        disputed="700.300.600",
        exceeded="700.400.300",
    ),
    PaymentOperation(
        code="RB",
        title="Rebill",
        follows=_types("DB CP"),
        needs_card=True,
        unknown="700.400.580",
        failed="700.300.200",
        disputed="700.300.600",
    ),
    PaymentOperation(
        code="RC",
        title="Receipt",
        follows=_types("PA DB CP"),
        ceiling=compute_receivable_amount,
        unknown="700.400.560",
        failed="700.400.560",
        expired=AUTHORIZATION_EXPIRED,
        closed="700.400.560",
        exceeded="700.100.300",
    ),
    PaymentOperation(
        code="CB",
        title="Chargeback",
        follows=_types("DB CP RB CR"),
        ceiling=compute_disputable_amount,
        test_only=True,
        unknown="700.400.550",
        failed="700.400.550",
        exceeded="700.400.400",
    ),
    PaymentOperation(
        code="CR",
        title="Chargeback reversal",
        follows=_types("CB"),
        ceiling=compute_representable_amount,
        test_only=True,
        unknown="700.400.420",
        wrong_type="700.400.420",
        failed="700.400.420",
        exceeded="700.400.410",
        second_chargeback="700.400.411",
    ),
)

OPERATIONS: Mapping[str, PaymentOperation] = MappingProxyType({operation.code: operation for operation in _TABLE})

INCREMENT_OPERATION: Final = PaymentOperation(
    code="PA",
    title="Incremental authorization",
    follows=_types("PA"),
    needs_card=True,
    raises=True,
    unknown="700.400.510",
    failed="700.400.510",
    expired=AUTHORIZATION_EXPIRED,
    closed="700.400.100",
    exhausted="700.400.510",
)
REAUTHORIZATION_OPERATION: Final = PaymentOperation(
    code="PA",
    title="Renewed authorization",
    follows=_types("PA"),
    needs_card=True,
    ceiling=compute_capturable_amount,
    unknown="700.400.510",
    failed="700.400.510",
    expired=AUTHORIZATION_EXPIRED,
    closed="700.400.100",
    exhausted="700.400.100",
    exceeded="700.400.100",
)
LATE_REAUTHORIZATION_OPERATION: Final = replace(REAUTHORIZATION_OPERATION, expired="")
"""A renewal of what has expired, where the channel renews it (``Channel.expired_captures``)."""
INDUSTRY_PRACTICE_OPERATIONS: Mapping[str, PaymentOperation] = MappingProxyType(
    {"INCREMENTAL_AUTH": INCREMENT_OPERATION, "REAUTHORIZATION": REAUTHORIZATION_OPERATION}
)
"""The operation by standingInstruction.industryPractice."""

RELEASE_OPERATION: Final = PaymentOperation(
    code="RV",
    title="Release",
    follows=_types("PA"),
    ceiling=lambda chain, _authorization: chain.authorization.uncaptured,
    unknown="700.400.530",
    failed="700.400.530",
    exceeded="700.400.300",
)
"""The gateway's own reversal of what a FINAL follow-up left: it may follow a closed authorization."""

REFUSAL_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        AUTHORIZATION_EXPIRED: "The authorization has expired: authorize anew.",
        REVERSAL_TOO_LATE: "It is settled, or its acquirer has cleared the day: refund it (paymentType=RF).",
    }
)
"""Result code → ``resultDetails.ExtendedDescription`` of a follow-up that comes too late: what to send instead."""
BATCH_AFTER_END_TEXT: Final = (
    "The acquirer would have it with its batch of {at:%Y-%m-%d %H:%M} UTC, and the authorization ends before that: "
    "renew it, or authorize anew."
)
FINAL_CREDIT_TEXT: Final = "It is settled, or pushed to a card: a credit is final then."
FINAL_AMOUNT_TEXT: Final = "It was authorized as final: only an estimated amount is raised."


def find_refusal_text(operation: PaymentOperation, code: str, target: Payment) -> str:
    """The ExtendedDescription of a follow-up of ``target`` that is refused with ``code``; '' for none."""
    if operation.raises and code == operation.wrong_type and target.payment_type in operation.follows:
        return FINAL_AMOUNT_TEXT
    if code == REVERSAL_TOO_LATE and target.payment_type == "CD":  # there is nothing to refund
        return FINAL_CREDIT_TEXT
    return REFUSAL_TEXTS.get(code, "")


LOCALLY_QUEUED_TYPES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"sepa": _types("DB RB CD RF"), "iso8583": _types("CP")}
)
"""Connector → the payment types that are queued here before they are sent in a file or batch: an RV may follow one
that is PENDING, and withdraws it (docs/connectors/sepa.md, docs/connectors/iso8583.md)."""

RELEASED_BY_REVERSAL: Final = frozenset({"iso8583", "simulator", "stub"})
"""Connectors whose acquirer holds what a FINAL follow-up or an expiry leaves of an authorization until it is reversed;
the simulator shows the same. The card API's processor releases it by itself (docs/connectors/card-api.md)."""


REVERSED_BY_REFUND: Final = frozenset({"stripe"})
"""Connectors whose processor makes a refund of the reversal of a debit: it settles both, as a debit and a refund."""


def is_locally_queued(payment: Payment) -> bool:
    """Whether a PENDING payment of this type and connector is queued here, and does not wait for its shopper."""
    return payment.payment_type in LOCALLY_QUEUED_TYPES.get(payment.connector, ())


CHAIN_START_TYPES: Final = frozenset(operation.code for operation in _TABLE if not operation.follows) | {"RI"}
"""The types a chain may begin with; RI is a standalone risk check, which has no follow-ups."""
PLATFORM_ONLY_CODE: Final = "700.400.402"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpDecision:
    """Whether a follow-up may begin with ``amount``: ``code`` is empty if so, else the result code of the refusal, and
    ``text`` its ExtendedDescription where that depends on more than the code."""

    amount: Decimal
    code: str = ""
    text: str = ""


def evaluate_operation(
    operation: PaymentOperation,
    chain: Chain,
    target: Payment,
    amount: Decimal | None,
    currency: str | None,
    *,
    final: bool = False,
    reported: bool = False,
    at: datetime | None = None,
    settled: bool = False,
) -> FollowUpDecision:
    """Decide whether ``operation`` may follow ``target`` with ``amount``, for API calls and clerks alike. ``final``: it
    is marked sequence=FINAL. ``reported``: its acquirer reports what has happened, so a chargeback has no ceiling, and
    a second one can be reversed (docs/decisions/0065). ``at``: when it reaches the acquirer, by the merchant's clock,
    None where time does not count;
    ``settled``: the target is beyond its reversal (gateway.payments.reversal_border)."""
    requested = amount if amount is not None else Decimal(0)
    if code := _find_refusal_code(operation, chain, target, currency, reported=reported, at=at, settled=settled):
        return FollowUpDecision(amount=requested, code=code)
    if operation.code == "CB" and reported:
        possible = requested > 0 and can_be_charged_back(chain, target)
        return FollowUpDecision(amount=requested, code="" if possible else operation.exceeded)
    standing = compute_standing_amount(chain, target) if operation.disputed else Decimal(0)
    if operation.ceiling is None:
        left = resolve_payment_amount(target) - standing
        return FollowUpDecision(amount=requested, code=operation.disputed if standing > 0 and requested > left else "")
    remaining = operation.ceiling(chain, target)
    if amount is None and operation.takes_remainder:
        requested = max(remaining, Decimal(0))
    if requested > remaining or requested <= 0:
        # Only the disputed part is blocked, and named as such where the chargeback alone is in the way.
        stopped = standing > 0 and requested <= remaining + standing
        return FollowUpDecision(amount=requested, code=operation.disputed if stopped else operation.exceeded)
    if operation.code == "RV" and has_open_reversal(chain, target):
        # Each says what is left, so the later to arrive would decide.
        return FollowUpDecision(amount=requested, code=operation.not_final)
    if operation.code == "CP" and chain.authorization.has_pending_renewal:
        # It names the authorization that it clears, which the renewal replaces where it is approved.
        return FollowUpDecision(amount=requested, code=operation.not_final)
    changes_hold = final or operation.code == "RV"
    if changes_hold and target.payment_type == "PA" and chain.authorization.has_pending_increment:
        # A reversal says what is left of the authorization, so the increment has to be known. One approved after the
        # end would be held at the issuer and reopen the authorization here.
        return FollowUpDecision(amount=requested, code=operation.not_final)
    return FollowUpDecision(amount=requested)


def _find_refusal_code(
    operation: PaymentOperation,
    chain: Chain,
    target: Payment,
    currency: str | None,
    *,
    reported: bool,
    at: datetime | None,
    settled: bool,
) -> str:
    """The result code of a refusal that does not depend on the amount, or ''."""
    if target.payment_type not in operation.follows:
        return operation.wrong_type
    if operation.raises and chain.first.authorization_kind == FINAL_AUTHORIZATION:
        # https://www.checkout.com/docs/payments/manage-payments/authorize-a-payment/adjust-an-estimated-authorization
        return operation.wrong_type
    withdraws = operation.code == "RV" and target.status == Status.PENDING and is_locally_queued(target)
    if target.status in OPEN_STATUSES and not withdraws:
        return operation.not_final
    if target.status != Status.APPROVED and not withdraws:
        return operation.failed
    if currency is not None and currency != target.currency:
        return operation.other_currency
    if operation.closed and is_closed(chain, target):
        return operation.closed
    if code := _find_late_code(operation, chain, target, at=None if reported else at, settled=settled):
        return code
    if operation.exhausted and chain.authorization.is_exhausted:
        return operation.exhausted
    if operation.code == "PA" and has_open_reversal(chain, target):
        # A reversal says what is left: one on its way could undo an increment.
        return operation.not_final
    if operation.second_chargeback and not reported and _is_second_chargeback(chain, target):
        return operation.second_chargeback
    left = chain.authorization.remaining_captures if operation.counts_captures else None
    return operation.exceeded if left is not None and left <= 0 else ""


def _find_late_code(
    operation: PaymentOperation, chain: Chain, target: Payment, *, at: datetime | None, settled: bool
) -> str:
    """The result code where the time of the authorization, or of a debit's reversal, has passed; else ''."""
    if operation.expired and at is not None and target.payment_type == "PA" and chain.authorization.is_expired(at):
        return operation.expired
    return operation.settled if settled and target.payment_type != "PA" and target.status == Status.APPROVED else ""


def _is_second_chargeback(chain: Chain, dispute: Payment) -> bool:
    """Whether the chargeback follows a chargeback reversal: it is the second one, and final."""
    behind = chain.find(dispute.referenced) if dispute.referenced is not None else None
    return behind is not None and behind.payment_type == "CR"

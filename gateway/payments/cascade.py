"""Cascade: a payment that its issuer declined is authorized again at the next account of its route.

Also known as a retry with a second acquirer. Where the payment's routing rule allows it (``max_cascades``), and only
after a definite decline that another acquirer may be approved for (CASCADABLE_DECLINES), without a merchant advice code
and within the schemes' retry rules. One payment, one idempotency key: each attempt is an exchange with a reference of
its own, and the next one is written before it is sent, so that recovery inquires about the right one after a crash.
Follow-ups go to the account that approved. Source: docs/decisions/0108; docs/routing.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import structlog

from gateway import metrics
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector
from gateway.connectors.routing import list_acquirers
from gateway.models import Payment, Status
from gateway.payments import failover, store
from gateway.payments.outcomes import Declined, PaymentOutcome
from gateway.payments.risk_screening import ScreeningPlan
from gateway.risk.retry_rules import find_issuer_stop, resolve_network

log = structlog.get_logger(__name__)

NO_ADVICE: Final = frozenset({"", "00"})
"""Merchant advice codes that say nothing; after any other one the card is not sent again at once."""
CASCADED_TYPES: Final = frozenset({"DB", "PA"})
_DEVICE_NUMBER: Final = "DPAN"


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadableDecline:
    """A decline after which another acquirer may be approved. ``result``: our result code; ``responses``: what the
    acquirer itself said, since several of its codes may share a result code; ``why``: why it may."""

    result: str
    responses: frozenset[str]
    why: str
    source: str


_VISA_CATEGORIES: Final = (
    "Visa, decline categories: 05 is of the last, 03 of the second, and both may be tried again, 15 times in 30 days; "
    "quoted by https://developers.getevolved.com/enterprise/docs/visas-processing-integrity-fee-program"
)
_CARD_API: Final = "the card API's public reference of decline and error codes (docs/connectors/card-api.md)"

CASCADABLE_DECLINES: Final = (
    CascadableDecline(
        result="800.100.152", responses=frozenset({"05"}), source=_VISA_CATEGORIES,
        why="Do not honour: the issuer gives no reason, and weighs the acquirer, its country and the data it sends.",
    ),
    CascadableDecline(
        result="800.100.183", responses=frozenset({"05", "do_not_honor"}), source=_CARD_API,
        why="Do not honour: the issuer gives no reason, and weighs the acquirer, its country and the data it sends.",
    ),
    CascadableDecline(
        result="800.100.190", responses=frozenset({"03"}), source=_VISA_CATEGORIES,
        why="Invalid merchant: this acquirer's set-up of the merchant is not accepted, another's may be.",
    ),
    CascadableDecline(
        result="800.100.169", responses=frozenset({"31"}), source="ISO 8583:1987, data element 39, 31",
        why="The bank is not supported by this acquirer's switch; another switch may reach it.",
    ),
    CascadableDecline(
        result="800.100.164", source=_CARD_API,
        responses=frozenset({"charge_exceeds_source_limit", "charge_exceeds_transaction_limit"}),
        why="The amount is over the merchant's limit at this acquirer.",
    ),
)  # fmt: skip
"""Whatever is not here is not tried again: cards that are lost, stolen, to be retained, suspected of fraud, closed, not
valid or expired, too little money, limits of the card, wrong CVV, a challenge that is wanted (a step-up), payments that
the card may not make, faults of a system, declines without a code."""
_RESPONSES: Final = {row.result: row.responses for row in CASCADABLE_DECLINES}


def next_after_decline(
    payment: Payment,
    outcome: PaymentOutcome,
    asked: AcquirerRequest,
    plan: ScreeningPlan | None,
    *,
    since: float,
) -> Connector | None:
    """Record the decline and move ``payment`` to the next account of its route; returns the connector of the next
    authorization attempt, None where the outcome stands.

    ``asked``: the request that was declined; ``since``: time.perf_counter() when the first acquirer was called.
    """
    if not isinstance(outcome, Declined) or not _may_cascade(payment, outcome, asked, plan):
        return None
    if failover.is_time_over(since):
        return None
    route = dict(payment.route or {})
    connectors = list_acquirers()
    alternatives = [row for row in route.pop("next", ()) if row[0] in connectors]
    if not alternatives:
        return None
    (name, account, title), later = alternatives[0], alternatives[1:]
    route["tried"] = [*route.get("tried", ()), _render_attempt(payment, outcome.reply, outcome.at)]
    route["cascades"] = route.get("cascades", 0) + 1
    route |= {"name": title} | ({"next": later} if later else {})
    before = payment.connector
    if not store.record_cascade(payment, outcome, connector=name, account=account, route=route, plan=plan):
        log.warning("cascade_overtaken", payment=payment.id.hex)
        return None
    metrics.count_cascade(before, name)
    return connectors[name]


def restore_decline(declined: Declined, outcome: PaymentOutcome) -> PaymentOutcome:
    """The outcome of a declined payment whose next acquirer certainly did not judge it: the decline, with the exchange
    of the last attempt."""
    said = declined.reply
    reply = replace(outcome.reply, code=said.code, details=said.details, avs=said.avs, cvv=said.cvv, facts=said.facts)
    return Declined(reply=reply, at=outcome.at, duration_ms=outcome.duration_ms)


def is_cascadable(code: str, response: str) -> bool:
    """Whether another acquirer may be approved after a decline, by our result code and the acquirer's own code."""
    return response in _RESPONSES.get(code, frozenset())


def _may_cascade(payment: Payment, declined: Declined, asked: AcquirerRequest, plan: ScreeningPlan | None) -> bool:
    """Whether the payment's rule, the decline and the schemes' retry rules allow another attempt."""
    route, reply = payment.route or {}, declined.reply
    if payment.status != Status.STARTED or payment.referenced is not None or not reply.sent:
        return False
    if payment.payment_type not in CASCADED_TYPES or not _can_be_sent_again(asked):
        return False
    if route.get("cascades", 0) >= route.get("maxCascades", 0):
        return False
    return is_cascadable(reply.code, reply.details.get("AcquirerResponse", "")) and not is_next_attempt_forbidden(
        reply, asked, plan
    )


def _can_be_sent_again(asked: AcquirerRequest) -> bool:
    """True for a card. A wallet's device number comes with a cryptogram that its network accepts once."""
    card = asked.card
    return card is not None and not card.wallet and card.number_type != _DEVICE_NUMBER


def is_next_attempt_forbidden(reply: AcquirerReply, asked: AcquirerRequest, plan: ScreeningPlan | None) -> bool:
    """Whether the issuer's advice or the schemes' retry rules forbid another attempt now."""
    advice = reply.details.get("MerchantAdviceCode", "")
    if (
        reply.has_own_advice
        or advice not in NO_ADVICE
        or find_issuer_stop(resolve_network(asked.network_brand), reply.code, advice)
    ):
        return True
    watch = plan.retries if plan is not None else None
    return watch is not None and watch.verdict_after_decline() is not None


def _render_attempt(payment: Payment, reply: AcquirerReply, at: datetime) -> Mapping[str, Any]:
    """One declined attempt as ``Payment.route["tried"]`` stores it; ``why``: the acquirer's own code."""
    return {
        "name": (payment.route or {}).get("name", payment.acquirer_merchant_id),
        "connector": payment.connector,
        "account": payment.acquirer_merchant_id,
        "code": reply.code,
        "why": reply.details.get("AcquirerResponse", ""),
        "at": at.isoformat(timespec="seconds"),
        "sent": True,
        "declined": True,
    }

"""What cards use of the limits of low value payments: counted before a payment is sent, given back where the exemption
was not applied, and back to nothing by a strong authentication.

The count is raised and the request recorded in one statement, under the lock of the card's row, so that parallel
payments cannot pass a limit together. The statement that completes the payment moves the count again. Source: EU
2018/389, article 16; docs/decisions/0105.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from gateway.connectors.means import Card
from gateway.db.statement import WriteStatement, execute_sql
from gateway.models import ExemptionCount, ExemptionRequest, Payment, Status
from gateway.payments.stored_answer import get_shown_facts, read_private_facts
from gateway.threeds.exemption_rules import (
    LOW_VALUE_LIMIT,
    CardCount,
    Exemption,
    ExemptionDecision,
    ExemptionStage,
    StageChoice,
    StageOutcome,
    parse_exemption_rules,
)

MAX_JUDGED_REQUESTS: Final = 500
"""The newest requests of a channel, exemption and stage that are judged by their outcome."""
_CHALLENGED_FLOWS: Final = ("challenge", "decoupled")

# ``used_at`` has an index: it moves once a day at most, so that the other updates stay HOT.
# The payment's row first, then the card's: the order of the statement that completes a payment.
_COUNT: Final = """
WITH found AS (
    SELECT id FROM gateway_payment WHERE id = %(payment)s::uuid AND status = 'STARTED'
        AND sequence = %(sequence)s::integer FOR NO KEY UPDATE
), counted AS (
    INSERT INTO gateway_exemptioncount AS c (merchant_id, key, payments, amount, authentications)
    SELECT %(merchant)s::uuid, %(key)s::bytea, 1, %(euros)s::numeric, 0 FROM found
    ON CONFLICT (merchant_id, key) DO UPDATE SET payments = c.payments + 1, amount = c.amount + EXCLUDED.amount,
        used_at = CASE WHEN c.used_at < statement_timestamp() - interval '1 day' THEN statement_timestamp()
            ELSE c.used_at END
        WHERE c.payments < %(most)s::integer AND c.amount + EXCLUDED.amount <= %(together)s::numeric
    RETURNING payments, amount, authentications
), moved AS (
    UPDATE gateway_payment SET answer = %(answer)s::jsonb WHERE id = %(payment)s::uuid
        AND EXISTS (SELECT 1 FROM counted) RETURNING 1
)
INSERT INTO gateway_exemptionrequest (payment_id, channel_id, exemption, stage, stage_why, euros, amount_limit, score,
    payments, amount, authentications, at)
SELECT %(payment)s::uuid, %(channel)s::uuid, %(exemption)s::varchar, %(stage)s::varchar, %(why)s::varchar,
    %(euros)s::numeric, %(limit)s::numeric, NULL, payments, amount, authentications, %(at)s::timestamptz FROM counted
RETURNING payments
"""
_GIVE_BACK: Final = """
UPDATE gateway_exemptioncount c SET payments = c.payments - 1, amount = c.amount - r.euros
FROM gateway_exemptionrequest r WHERE r.payment_id = %s::uuid AND r.payments IS NOT NULL
    AND c.merchant_id = %s::uuid AND c.key = %s::bytea AND c.authentications = r.authentications
    AND EXISTS (SELECT 1 FROM moved)
"""
_RESET: Final = """
INSERT INTO gateway_exemptioncount AS c (merchant_id, key, payments, amount, authentications)
SELECT %s::uuid, %s::bytea, 0, 0, 1 FROM moved
ON CONFLICT (merchant_id, key) DO UPDATE SET payments = 0, amount = 0, authentications = c.authentications + 1,
    used_at = CASE WHEN c.used_at < statement_timestamp() - interval '1 day' THEN statement_timestamp()
        ELSE c.used_at END
"""
_RESET_COUNTED: Final = """
UPDATE gateway_exemptioncount SET payments = 0, amount = 0, authentications = authentications + 1,
    used_at = CASE WHEN used_at < statement_timestamp() - interval '1 day' THEN statement_timestamp()
        ELSE used_at END
WHERE merchant_id = %s::uuid AND key = %s::bytea AND EXISTS (SELECT 1 FROM moved)
"""
_OUTCOMES: Final = """
SELECT count(*), count(*) FILTER (WHERE p.status = 'APPROVED' AND NOT EXISTS (
    SELECT 1 FROM gateway_authentication a WHERE a.payment = p.id AND a.flow IN ('challenge', 'decoupled')))
FROM (SELECT payment_id FROM gateway_exemptionrequest WHERE channel_id = %s::uuid AND exemption = %s::varchar
    AND stage = %s::varchar ORDER BY at DESC LIMIT %s::integer) r
JOIN gateway_payment p ON p.id = r.payment_id WHERE p.status IN ('APPROVED', 'DECLINED')
"""


def read_card_count(merchant: UUID, key: bytes) -> CardCount:
    """What the card has used at the merchant; nothing for a card that was never counted."""
    row = ExemptionCount.objects.filter(merchant=merchant, key=key).first()
    if row is None:
        return CardCount()
    return CardCount(payments=row.payments, amount=row.amount, authentications=row.authentications)


def record_counted_request(
    payment: Payment,
    decision: ExemptionDecision,
    choice: StageChoice,
    *,
    answer: Mapping[str, Any],
    key: bytes,
    at: datetime,
) -> bool:
    """Count a payment against its card's limits and record the request with ``answer``. False where a limit would be
    passed by now, or the payment changed since it was read: nothing was written."""
    limit = LOW_VALUE_LIMIT
    values = {
        "payment": payment.id,
        "sequence": payment.sequence,
        "merchant": payment.merchant_id,
        "key": key,
        "euros": decision.euros,
        "most": limit.payments,
        "together": limit.together,
        "answer": Jsonb(dict(answer)),
        "channel": payment.channel_id,
        "exemption": decision.exemption,
        "stage": choice.stage,
        "why": choice.why,
        "limit": decision.limit,
        "at": at,
    }
    return bool(execute_sql(_COUNT, values))


def record_request(
    payment: Payment,
    decision: ExemptionDecision,
    choice: StageChoice,
    *,
    answer: Mapping[str, Any],
    score: int | None,
    at: datetime,
) -> bool:
    """Record a request for an exemption that no limit of the card counts. False as :func:`record_counted_request`."""
    write = WriteStatement()
    unmoved = {"status": payment.status, "sequence": payment.sequence}
    write.update(payment, {"answer": dict(answer)}, expecting=unmoved)
    write.insert(
        ExemptionRequest,
        payment_id=payment.id,
        channel_id=payment.channel_id,
        exemption=decision.exemption,
        stage=choice.stage,
        stage_why=choice.why,
        euros=decision.euros,
        amount_limit=decision.limit,
        score=score,
        at=at,
    )
    return write.run()


def add_completion_writes(write: WriteStatement, payment: Payment) -> None:
    """Move the card's count in the statement that completes ``payment``: back to nothing after a strong authentication
    of its shopper, one payment less where the low value exemption was not applied after all."""
    if payment.status not in (Status.APPROVED, Status.DECLINED):
        return
    if _was_challenged(payment):
        rules = parse_exemption_rules(payment.channel.exemptions)
        if rules is not None and rules.trusted:
            write.add_part(_RESET, _list_card_columns(payment))
        elif rules is not None and rules.low_value:  # a card that was never counted has nothing to set back
            write.add_part(_RESET_COUNTED, _list_card_columns(payment))
    elif read_private_facts(payment.answer).exemption == Exemption.LOW_VALUE and not _is_applied(payment):
        write.add_part(_GIVE_BACK, (payment.id, *_list_card_columns(payment)))


def _list_card_columns(payment: Payment) -> tuple[UUID, bytes]:
    assert payment.means_fingerprint is not None  # it has a card
    return payment.merchant_id, bytes(payment.means_fingerprint)


def _was_challenged(payment: Payment) -> bool:
    """Whether the shopper of this card payment passed a challenge, which is a strong authentication."""
    shown = get_shown_facts(payment).get("threeDSecure", {})
    passed = shown.get("flow") in _CHALLENGED_FLOWS and shown.get("authenticationStatus") == "Y"
    return passed and payment.means == Card.kind


def _is_applied(payment: Payment) -> bool:
    """Whether an approval rests on the exemption: the issuer did not authenticate instead."""
    shown = get_shown_facts(payment).get("threeDSecure", {})
    if payment.status != Status.APPROVED or "exemptionFlag" not in shown:
        return False
    return shown.get("authenticationStatus") not in ("Y", "A")


def find_request(payment: UUID, stage: ExemptionStage) -> ExemptionRequest | None:
    """The request for an exemption of a payment at this stage."""
    return ExemptionRequest.objects.filter(pk=payment, stage=stage).first()


def read_stage_outcomes(channel: UUID, exemption: Exemption) -> dict[ExemptionStage, StageOutcome]:
    """How the newest requests for an exemption on a channel ended, by stage."""
    found = {}
    for stage in ExemptionStage:
        asked, won = execute_sql(_OUTCOMES, (channel, exemption, stage, MAX_JUDGED_REQUESTS))[0]
        found[stage] = StageOutcome(asked=asked, won=won)
    return found

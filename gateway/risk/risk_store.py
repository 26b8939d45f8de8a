"""Database access of risk: loads rule sets with list matches, counts velocities, records observations and decisions.

One statement loads a rule set with its lists, one counts all of its velocities. A payment is observed in the statement
that begins it and counted in a later one, so the last of several parallel payments sees all of them: a limit is never
exceeded, though near it two at once may both be refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog

from gateway.core import clock
from gateway.core import document as d
from gateway.db.statement import WriteStatement, execute_sql
from gateway.models import CardDecline, Merchant, Notification, Payment, RiskDecision, RiskObservation
from gateway.risk import fields
from gateway.risk.conditions import MAX_VELOCITY_WINDOW, RiskSignals, Velocity, VelocityCounts
from gateway.risk.evaluation import RiskVerdict
from gateway.risk.fields import RiskSubject
from gateway.risk.retry_rules import MAX_RULE_DAYS, RETRY_LIMITS
from gateway.risk.rule_sets import EMPTY_RULE_SET, RuleSet, compile_rule_set
from gateway.timers import wakeup
from gateway.timers.registry import MAX_SWEPT_ROWS, SWEEP_INTERVAL_S, Timer, interval_sql
from gateway.vault.sealing import current_vault

log = structlog.get_logger(__name__)

MAX_MACHINE_CLOCK_SKEW: Final = timedelta(seconds=1)
"""The largest difference between the clocks of two machines that counting allows for."""
_LISTS: Final = """ARRAY(
    SELECT l.name::text FROM gateway_risklist l
    JOIN unnest(%(fields)s::text[], %(values)s::text[]) AS k(field, value) ON l.field = k.field
    CROSS JOIN LATERAL (
        SELECT 1 FROM gateway_risklistentry e WHERE e.list_id = l.id AND e.value = k.value LIMIT 1
    ) found
    WHERE l.merchant_id = %(merchant)s
    UNION
    SELECT l.name::text FROM gateway_risklistentry e JOIN gateway_risklist l ON l.id = e.list_id
    WHERE e.fingerprint = ANY (%(accounts)s::bytea[]) AND l.merchant_id = %(merchant)s
)"""
_LOAD: Final = f"""
SELECT s.document::text, s.version, {_LISTS}
FROM gateway_riskset s WHERE s.merchant_id = %(merchant)s AND s.key = %(key)s AND s.active
"""  # noqa: S608 - put together out of the constant above
_COUNTED: Final = """
SELECT v.place, count(o.id), count(*) FILTER (WHERE {declined}),
    coalesce(sum(o.amount) FILTER (WHERE o.currency = v.currency AND NOT coalesce({declined}, false)), 0)
FROM unnest(%(places)s::int[], %(keys)s::bytea[], %(since)s::timestamptz[], %(currencies)s::text[])
    AS v(place, key, since, currency)
LEFT JOIN {observations} AND o.key = v.key AND o.at > v.since
LEFT JOIN gateway_payment p ON p.id = o.payment
GROUP BY v.place, v.key
"""
_COUNT: Final = _COUNTED.format(
    declined="p.status = 'DECLINED'",
    observations="gateway_riskobservation o ON o.merchant_id = %(owner)s AND o.at <= %(until)s",
)
_COUNT_PAST: Final = _COUNTED.format(
    declined="p.status = 'DECLINED' AND p.completed_at <= %(until)s",
    observations="gateway_risktrialobservation o ON o.trial_id = %(owner)s AND o.at <= %(until)s",
)
"""In a risk trial: counts and declines as of the time of the payment."""
_KEYS: Final = "SELECT key FROM gateway_riskset WHERE merchant_id = %(merchant)s AND active ORDER BY key LIMIT 20"


class UnknownRuleSetError(Exception):
    """The merchant has no active rule set with that key. ``known``: the keys there are, at most 20."""

    def __init__(self, known: list[str]) -> None:
        super().__init__("no such rule set")
        self.known = known


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRuleSet:
    """A rule set, and the names of the lists that the subject is on."""

    rules: RuleSet
    lists: frozenset[str] = frozenset()


def load_rule_set(merchant: UUID, key: str, subject: RiskSubject) -> LoadedRuleSet:
    """Load the merchant's active rule set ``key`` with its list matches. Raises UnknownRuleSetError."""
    rows = execute_sql(_LOAD, {"key": key, **_build_list_lookup(merchant, subject)})
    if not rows:
        raise UnknownRuleSetError([row[0] for row in execute_sql(_KEYS, {"merchant": merchant})])
    text, version, lists = rows[0]
    try:
        found = compile_rule_set(text)
    except d.InvalidDocumentError as fault:
        # Written by another version of this program: a document that cannot be parsed screens nothing, with an error.
        log.error("risk_set_unreadable", merchant=merchant.hex, set=key, why=str(fault)[:500])
        found = EMPTY_RULE_SET
    return LoadedRuleSet(rules=found.numbered(key, version), lists=frozenset(lists))


def find_matching_lists(merchant: UUID, subject: RiskSubject) -> frozenset[str]:
    """The names of the merchant's lists that the subject is on."""
    return frozenset(execute_sql(f"SELECT {_LISTS}", _build_list_lookup(merchant, subject))[0][0])


def _build_list_lookup(merchant: UUID, subject: RiskSubject) -> dict[str, Any]:
    """The values of the _LISTS query: every field value with the entries that would match it, and the accounts."""
    candidates = [
        (name, candidate)
        for name, values in subject.values.items()
        for value in values
        for candidate in fields.list_entry_candidates(name, value)
    ]
    return {
        "merchant": merchant,
        "fields": [name for name, _ in candidates],
        "values": [value for _, value in candidates],
        "accounts": [bytes.fromhex(text) for text in subject.of("account")],
    }


def record_observations(
    write: WriteStatement, rules: RuleSet, subject: RiskSubject, *, merchant: UUID, payment: UUID, at: datetime
) -> None:
    """Insert a payment's observations, one per key that the set's velocities count by, in its begin statement."""
    for key in list_observation_keys(rules, subject):
        write.insert(
            RiskObservation,
            merchant_id=merchant,
            key=key,
            at=at,
            payment=payment,
            amount=subject.money.amount,
            currency=subject.money.currency,
        )


def list_observation_keys(rules: RuleSet, subject: RiskSubject) -> list[bytes]:
    """The keys a payment is counted by: one per value of each field that the set's velocities count by."""
    return [
        key
        for name in sorted({counting.per for counting in rules.countings})
        for key in _fingerprint_values(name, subject)
    ]


def load_signals(
    loaded: LoadedRuleSet, subject: RiskSubject, *, merchant: Merchant, at: datetime, observed: bool
) -> RiskSignals:
    """Count the velocities of a rule set; no statement without velocities. ``at``: the payment's time on the merchant's
    clock, at which windows end. ``observed``: the payment itself has been observed; a standalone check has not and is
    added here."""
    # Parallel payments have to see each other, so the window extends to the moment of counting.
    until = max(at, clock.merchant_now(merchant)) + MAX_MACHINE_CLOCK_SKEW
    return _count_signals(_COUNT, loaded, subject, owner=merchant.id, at=at, until=until, observed=observed)


def load_past_signals(
    loaded: LoadedRuleSet, subject: RiskSubject, *, trial: UUID, at: datetime, observed: bool
) -> RiskSignals:
    """As :func:`load_signals` for a risk trial: counts what the trial has observed up to ``at``."""
    return _count_signals(_COUNT_PAST, loaded, subject, owner=trial, at=at, until=at, observed=observed)


def _count_signals(
    sql: str, loaded: LoadedRuleSet, subject: RiskSubject, *, owner: UUID, at: datetime, until: datetime, observed: bool
) -> RiskSignals:
    countings = list(loaded.rules.countings)
    lookups = [
        (place, counting, key)
        for place, counting in enumerate(countings)
        for key in _fingerprint_values(counting.per, subject)
    ]
    if not lookups:
        return RiskSignals(lists=loaded.lists)
    rows = execute_sql(
        sql,
        {
            "owner": owner,
            "until": until,
            "places": [place for place, _, _ in lookups],
            "keys": [key for _, _, key in lookups],
            "since": [at - counting.within for _, counting, _ in lookups],
            "currencies": [counting.currency for _, counting, _ in lookups],
        },
    )
    counts: dict[Velocity, VelocityCounts] = {}
    for place, payments, declines, volume in rows:
        counting, own = countings[place], 0 if observed else 1
        if not observed and subject.money.currency == counting.currency:
            volume += subject.money.amount
        before = counts.get(counting, VelocityCounts())
        # Of several values (a shopper with two phone numbers) the highest count applies.
        counts[counting] = VelocityCounts(
            payments=max(before.payments, payments + own),
            declines=max(before.declines, declines),
            volume=max(before.volume, volume),
        )
    return RiskSignals(lists=loaded.lists, counts=counts)


def record_decision(
    payment: Payment, verdict: RiskVerdict, rules: RuleSet | None, *, answer: Mapping[str, Any], at: datetime
) -> bool:
    """Record a risk decision and merge ``answer`` into the payment's answer, before the acquirer is called.

    False when the payment changed since it was read: then nothing was written.
    """
    write = WriteStatement()
    changes = {"answer": {**payment.answer, **answer}}
    write.update(payment, changes, expecting={"status": payment.status, "sequence": payment.sequence})
    write.insert(
        RiskDecision,
        payment_id=payment.id,
        set_key=rules.key if rules else "",
        version=rules.version if rules else 0,
        outcome=verdict.outcome,
        code=verdict.code,
        score=verdict.score,
        at=at,
        reasons=[{name: value for name, value in asdict(reason).items() if value} for reason in verdict.reasons],
    )
    if payment.payment_type != "RI":
        write.insert(
            Notification,
            merchant_id=payment.merchant_id,
            channel_id=payment.channel_id,
            kind="RISK",
            action="CREATED",
            payment_id=payment.id,
            sequence=payment.sequence,
            created_at=at,
        )
    recorded = write.run()
    if recorded:
        payment.answer = changes["answer"]
        if payment.payment_type != "RI":
            wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
    return recorded


def _fingerprint_values(name: str, subject: RiskSubject) -> tuple[bytes, ...]:
    """The fingerprints a subject is counted by; of an account, which has one per vault key, only the primary key's."""
    values = subject.of(name)[:1] if name == "account" else subject.of(name)
    return tuple(current_vault().fingerprint(f"risk:{name}:{value}") for value in values)


EXEMPTION_COUNT_RETENTION: Final = timedelta(days=1_100)
"""How long a card's count of exemptions is stored after it was used last: three years, in which most cards are renewed.
A card that comes back later begins at nothing, as after a new vault key; its issuer counts, too, and decides."""
# Of a row that is used meanwhile the condition is looked at again, under its lock.
_FORGET_EXEMPTIONS: Final = """
WITH old AS MATERIALIZED (
    SELECT merchant_id, key FROM gateway_exemptioncount WHERE used_at < statement_timestamp() - %s::interval
    ORDER BY used_at LIMIT %s::integer FOR UPDATE SKIP LOCKED
)
DELETE FROM gateway_exemptioncount c USING old WHERE c.merchant_id = old.merchant_id AND c.key = old.key RETURNING 1
"""


def _delete_old_observations() -> int:
    """Ids are in time order, so only the oldest are looked at."""
    oldest = list(RiskObservation.objects.order_by("id").values_list("pk", flat=True)[:MAX_SWEPT_ROWS])
    observed = RiskObservation.objects.filter(pk__in=oldest, at__lt=clock.real_now() - MAX_VELOCITY_WINDOW).delete()[0]
    declines = list(CardDecline.objects.order_by("id").values_list("pk", flat=True)[:MAX_SWEPT_ROWS])
    forgotten = clock.real_now() - timedelta(days=MAX_RULE_DAYS)
    declined = CardDecline.objects.filter(pk__in=declines, at__lt=forgotten).delete()[0]
    return observed + declined + len(execute_sql(_FORGET_EXEMPTIONS, (EXEMPTION_COUNT_RETENTION, MAX_SWEPT_ROWS)))


def find_earliest_retry(merchant: UUID, key: bytes, network: str, now: datetime) -> datetime:
    """The time from which the schemes' retry rules allow a merchant-initiated attempt with a card (``key``: its
    fingerprint) that was declined before: ``now`` where nothing forbids one at once. What forbids it for good is not
    looked at."""
    since = now - timedelta(days=MAX_RULE_DAYS)
    rows = CardDecline.objects.filter(merchant=merchant, key=key, at__gt=since, at__lte=now).order_by("-at")
    declines = list(rows.values_list("at", "retry_after")[: max(limit.declines for limit in RETRY_LIMITS)])
    found = [now, *(after for _, after in declines if after is not None)]
    for limit in RETRY_LIMITS:
        if limit.network == network and len(declines) >= limit.declines:
            found.append(declines[limit.declines - 1][0] + limit.window)
    return max(found)


TIMER: Final = Timer(
    name="risk observations",
    run=_delete_old_observations,
    every_s=SWEEP_INTERVAL_S,
    about="Forget what no velocity, retry rule or exemption limit counts any more.",
    # The times of the first two are those of merchants' clocks, and in no index: due while there is any.
    earliest_due=f"""
        SELECT least((SELECT statement_timestamp() FROM gateway_riskobservation ORDER BY id LIMIT 1),
            (SELECT statement_timestamp() FROM gateway_carddecline ORDER BY id LIMIT 1),
            (SELECT min(used_at) + {interval_sql(EXEMPTION_COUNT_RETENTION)} FROM gateway_exemptioncount))""",  # noqa: S608 - a constant
)

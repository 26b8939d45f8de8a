"""Risk trials: what a rule set or list would have decided about past payments. The payments are not changed.

A trial is background work. It walks the merchant's first payments in order of time, beginning before the period by as
much as its velocities look back. Each is judged by the function that judges live payments (gateway.risk.evaluation),
with lists as they are now or as in the trial, and velocities counted among the payments it walked. Fields that were not
stored are reported rule by rule (gateway.backoffice.risk.replay_subject). Source: docs/decisions/0039.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F, Q, QuerySet

from gateway.access import audit_log, permissions
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.backoffice.risk import trial_figures
from gateway.backoffice.risk.replay_subject import (
    ACQUIRER_NOT_ASKED,
    ReplaySubject,
    choose_stricter_outcome,
    explain_unscreened,
    find_original_outcome,
    rebuild_risk_subject,
)
from gateway.core import clock, identifiers
from gateway.models import (
    BackgroundWork,
    Merchant,
    Payment,
    RiskTrial,
    RiskTrialObservation,
    RiskTrialPayment,
)
from gateway.payments.risk_screening import STANDALONE_RISK_CHECK_TYPE
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.risk import evaluation as risk
from gateway.risk import fields, risk_store
from gateway.risk.conditions import RiskSignals
from gateway.risk.evaluation import RiskOutcome, RiskVerdict
from gateway.risk.fields import RiskSubject
from gateway.risk.risk_store import LoadedRuleSet
from gateway.risk.rule_sets import RuleSet, rule_set_from_document

VIEW_RISK_TRIAL_PERMISSION: Final = "gateway.view_risktrial"
MAX_TRIAL_PAYMENTS: Final = 200_000
"""Payments that one trial walks, including those before its period that only velocities count."""
MAX_TRIAL_DAYS: Final = 92
MAX_TRIALS_PER_MERCHANT: Final = 50
"""Trials kept per merchant; a new one deletes the oldest."""
TRIAL_SLICE_PAYMENTS: Final = 200
_READ: Final = (
    "id", "merchant_id", "channel__risk_set", "payment_type", "brand", "status", "amount", "currency", "result_code",
    "request", "answer", "means", "means_sealed", "means_fingerprint", "created_at",
    "risk_decision__outcome", "risk_decision__code", "risk_decision__set_key",
)  # fmt: skip


class TrialTooLongError(ValueError):
    """The period holds more payments than MAX_TRIAL_PAYMENTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """The input of a trial. ``document``: a valid rule set. ``lists``: lists that differ from the saved ones: name →
    {field, entries}. ``since``/``until``: the merchant's clock. ``whole``: all payments, not only those the set
    screens."""

    merchant: Merchant
    document: Mapping[str, Any]
    since: datetime
    until: datetime
    whole: bool = False
    lists: Mapping[str, Mapping[str, Any]] | None = None


def start_risk_trial(wanted: TrialRequest, title: str, *, owner: int, by: audit_log.Actor) -> RiskTrial:
    """Start a trial; ``title`` is its name among background work. Raises TrialTooLongError and TooMuchOpenWorkError."""
    rules = rule_set_from_document(wanted.document)
    warm = wanted.since - compute_velocity_lookback(rules)
    among = Payment.objects.filter(merchant=wanted.merchant, created_at__gte=warm, created_at__lt=wanted.until)
    if len(among.values_list("pk")[: MAX_TRIAL_PAYMENTS + 1]) > MAX_TRIAL_PAYMENTS:
        raise TrialTooLongError
    with transaction.atomic():
        trial = RiskTrial.objects.create(
            merchant=wanted.merchant,
            set_key=rules.key,
            document=dict(wanted.document),
            lists=dict(wanted.lists or {}),
            whole=wanted.whole,
            since=wanted.since,
            until=wanted.until,
            asked_by=by.name,
            asked_at=clock.real_now(),
        )
        trial.work = queue.enqueue_work(RISK_TRIAL, title, {"trial": trial.pk.hex}, owner=owner, by=by)
        trial.save(update_fields=["work"])
        old = RiskTrial.objects.filter(merchant=wanted.merchant).order_by("-asked_at").values_list("pk", flat=True)
        RiskTrial.objects.filter(pk__in=list(old[MAX_TRIALS_PER_MERCHANT : MAX_TRIALS_PER_MERCHANT + 10])).delete()
    return trial


def compute_velocity_lookback(rules: RuleSet) -> timedelta:
    """How far back the set's velocities count."""
    return max((counting.within for counting in rules.countings), default=timedelta(0))


def try_rules_slice(row: BackgroundWork, _folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Process the next TRIAL_SLICE_PAYMENTS payments. Running a slice twice writes its rows once: their key is the
    payment."""
    trial = RiskTrial.objects.filter(pk=UUID(row.parameters["trial"])).select_related("merchant").first()
    if trial is None:
        raise queue.WorkFailedError("The trial is not there any more.")
    owner = get_user_model().objects.get(pk=row.owner_id)
    if not permissions.has_permission(owner, VIEW_RISK_TRIAL_PERMISSION, trial):
        raise queue.WorkFailedError("Your right to try rules was taken away.")
    rules = rule_set_from_document(trial.document)
    cursor: dict[str, Any] = dict(row.cursor) or {"after": None, "walked": 0, "judged": 0, "guard": 0, "fault": 0}
    meant = _select_trial_payments(trial, rules)
    total = meant.count() if not row.cursor else None
    if cursor["after"]:
        at, last = datetime.fromisoformat(cursor["after"][0]), UUID(cursor["after"][1])
        meant = meant.filter(Q(created_at__gt=at) | Q(created_at=at, pk__gt=last), created_at__gte=at)
    found = list(meant.order_by("created_at", "pk")[:TRIAL_SLICE_PAYMENTS])
    with transaction.atomic():
        # alive() locks the work until the commit: nobody takes it over, and a worker that lost it is rolled back.
        alive()
        counted = _process_payments(trial, rules, found)
    cursor = {name: cursor[name] + counted.get(name, 0) for name in ("walked", "judged", "guard", "fault")} | {
        "after": [found[-1].created_at.isoformat(), found[-1].pk.hex] if found else cursor["after"]
    }
    if len(found) == TRIAL_SLICE_PAYMENTS:
        return queue.SliceResult(done=cursor["walked"], total=total, cursor=cursor)
    _finish_trial(trial, rules, cursor, alive)
    return queue.SliceResult(
        done=cursor["walked"], total=cursor["walked"], cursor=cursor, finished=True, message="Finished: see the trial."
    )


def _select_trial_payments(trial: RiskTrial, rules: RuleSet) -> QuerySet[Payment]:
    rows = Payment.objects.filter(
        merchant=trial.merchant,
        created_at__gte=trial.since - compute_velocity_lookback(rules),
        created_at__lt=trial.until,
        chain=F("id"),
    ).exclude(payment_type=REGISTRATION_PAYMENT_TYPE)
    if not trial.whole:
        names_it = Q(request__risk__channelId=trial.set_key)
        by_channel = Q(channel__risk_set=trial.set_key, request__risk__channelId__isnull=True)
        rows = rows.filter(names_it | by_channel)
    return rows.select_related("channel", "risk_decision").only(*_READ)


def _process_payments(trial: RiskTrial, rules: RuleSet, payments: Sequence[Payment]) -> dict[str, int]:
    """Observe and judge these payments; returns how many were walked, judged, and not reached by rules."""
    counted = {"walked": len(payments), "judged": 0, "guard": 0, "fault": 0}
    looked = [(payment, explain_unscreened(payment), rebuild_risk_subject(payment)) for payment in payments]
    _observe_payments(trial, rules, [(payment, one) for payment, why, one in looked if why != "fault"])
    tried = TrialLists(trial)
    touched: list[RiskTrialPayment] = []
    for payment, why, one in looked:
        if payment.created_at < trial.since:
            continue
        if why:
            counted[why] += 1
            continue
        counted["judged"] += 1
        row = _judge_payment(trial, rules, payment, one, tried)
        if row.matching_rules or row.undecided_rules or row.original_outcome != row.trial_outcome:
            touched.append(row)
    RiskTrialPayment.objects.bulk_create(touched, ignore_conflicts=True)
    return counted


def _observe_payments(trial: RiskTrial, rules: RuleSet, payments: Iterable[tuple[Payment, ReplaySubject]]) -> None:
    """Count the payment for velocities as a live payment is when it begins; a standalone check is not."""
    RiskTrialObservation.objects.bulk_create(
        [
            RiskTrialObservation(
                trial=trial,
                key=key,
                at=payment.created_at,
                payment=payment.pk,
                amount=one.subject.money.amount,
                currency=one.subject.money.currency,
            )
            for payment, one in payments
            if payment.payment_type != STANDALONE_RISK_CHECK_TYPE
            for key in risk_store.list_observation_keys(rules, one.subject)
        ],
        ignore_conflicts=True,
    )


def _judge_payment(
    trial: RiskTrial, rules: RuleSet, payment: Payment, one: ReplaySubject, tried: TrialLists
) -> RiskTrialPayment:
    loaded = LoadedRuleSet(rules=rules, lists=tried.named(one.subject))
    found = risk_store.load_past_signals(
        loaded,
        one.subject,
        trial=trial.pk,
        at=payment.created_at,
        observed=payment.payment_type != STANDALONE_RISK_CHECK_TYPE,
    )
    verdict = risk.evaluate_rules(rules, one.subject, found)
    undecided_rules = _list_unjudged_rules(rules, one, found)
    then = RiskVerdict(outcome=RiskOutcome.ACCEPT)
    if verdict.outcome is not RiskOutcome.DECLINE and (rules.avs or rules.cvv):
        if one.approved:
            then = risk.evaluate_acquirer_checks(rules, payment.answer.get("avs", ""), payment.answer.get("cvv", ""))
        elif payment.payment_type != STANDALONE_RISK_CHECK_TYPE:
            undecided_rules.append([trial_figures.AVS_CVV_CHECK_PLACE, ACQUIRER_NOT_ASKED])
    names = [rule.name for rule in rules.rules]
    held: list[int] = [names.index(reason.rule) for reason in verdict.reasons]
    if then.reasons:
        held.append(trial_figures.AVS_CVV_CHECK_PLACE)
    would = choose_stricter_outcome(verdict.outcome, then.outcome)
    return RiskTrialPayment(
        trial=trial,
        payment=payment.pk,
        at=payment.created_at,
        amount=payment.amount,
        currency=payment.currency,
        status=payment.status,
        original_outcome=find_original_outcome(payment),
        trial_outcome=would,
        score=verdict.score,
        matching_rules=held,
        code=then.code if would is then.outcome and then.code else verdict.code,
        undecided_rules=undecided_rules,
    )


def _list_unjudged_rules(rules: RuleSet, one: ReplaySubject, found: RiskSignals) -> list[list[Any]]:
    """Rules that may match: all their conditions hold but those on fields that were not stored."""
    undecided_rules: list[list[Any]] = []
    if not one.lost:
        return undecided_rules
    for place, rule in enumerate(rules.rules):
        missing = [
            name for condition in rule.when for name in condition.kind.looks_at(condition.options) if name in one.lost
        ]
        others = (
            condition
            for condition in rule.when
            if not any(name in one.lost for name in condition.kind.looks_at(condition.options))
        )
        if missing and all(condition.holds(one.subject, found) is not None for condition in others):
            undecided_rules.append([place, one.lost[missing[0]]])
    return undecided_rules


class TrialLists:
    """The merchant's lists, some replaced by those of the trial."""

    def __init__(self, trial: RiskTrial) -> None:
        self._merchant = trial.merchant_id
        self._tried = {
            name: (one["field"], self._normalize_entries(one["field"], one["entries"]))
            for name, one in trial.lists.items()
        }

    def _normalize_entries(self, field: str, entries: Sequence[str]) -> frozenset[str]:
        if field != "account":
            return frozenset(fields.normalize_entry(field, each) for each in entries)
        keys = [key for each in entries if (key := identifiers.parse_id(each)) is not None]
        named = Payment.objects.filter(pk__in=keys, merchant=self._merchant, means_fingerprint__isnull=False)
        return frozenset(bytes(one).hex() for one in named.values_list("means_fingerprint", flat=True) if one)

    def named(self, subject: RiskSubject) -> frozenset[str]:
        """The lists that contain the subject."""
        on = {name for name in risk_store.find_matching_lists(self._merchant, subject) if name not in self._tried}
        for name, (field, entries) in self._tried.items():
            values = (entry for value in subject.of(field) for entry in fields.list_entry_candidates(field, value))
            if not entries.isdisjoint(values):
                on.add(name)
        return frozenset(on)


def _finish_trial(trial: RiskTrial, rules: RuleSet, cursor: Mapping[str, Any], alive: Callable[[], None]) -> None:
    trial.figures = trial_figures.compute_trial_figures(trial, rules) | {
        name: cursor[name] for name in ("judged", "guard", "fault")
    }
    trial.finished_at = clock.real_now()
    with transaction.atomic():
        alive()
        trial.save(update_fields=["figures", "finished_at"])
        RiskTrialObservation.objects.filter(trial=trial).delete()


RISK_TRIAL: Final = queue.WorkKind(
    name="risk trial",
    about="a rule set tried over past payments",
    right=VIEW_RISK_TRIAL_PERMISSION,
    step=try_rules_slice,
)

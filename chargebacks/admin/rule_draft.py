"""A risk rule drafted from chosen chargebacks: what they have in common, and how many good payments have it, too.

No set is changed: the draft stands in the form of a rule set, where it can be tried over past payments first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.sessions.backends.base import SessionBase
from django.db.models import Exists, F, OuterRef, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from chargebacks.models import Chargeback
from gateway.access import permissions
from gateway.backoffice.risk.drafted_rules import store_draft
from gateway.backoffice.risk.replay_subject import rebuild_risk_subject
from gateway.backoffice.risk.rule_sentences import describe_rule
from gateway.core import clock
from gateway.models import Merchant, Payment, RiskSet, Status

MAX_DRAFT_CASES: Final = 50
MAX_GOOD_PAYMENTS: Final = 1_000
"""The merchant's newest undisputed payments that a draft is compared with."""
MAX_TRAITS: Final = 12
MAX_TRAIT_VALUES: Final = 10
MIN_SHARED: Final = 2
"""Chosen chargebacks that have a value in common; one alone is no pattern."""
_SENSITIVE: Final = frozenset({"account", "customer.browserFingerprint"})
"""Fields whose values are fingerprints: a list of payments names them, not a rule."""
_COMMON: Final = frozenset({"currency", "paymentType", "brand"})
"""Fields that most payments share: they draft nothing by themselves."""


class DraftError(ValueError):
    """No draft can be made; the text says why."""


def build_draft_context(user: Any, session: SessionBase, cases: Sequence[Chargeback]) -> dict[str, Any]:
    """The page of a draft; its rules are kept in the session. Raises DraftError."""
    if not cases:
        raise DraftError(_("Choose chargebacks of the list first."))
    if len({case.merchant_id for case in cases}) > 1:
        raise DraftError(_("Choose chargebacks of one merchant: a rule set belongs to one."))
    merchant = cases[0].merchant
    chosen = list(Payment.objects.filter(pk__in={case.chain for case in cases}))
    if not permissions.has_permission(user, "gateway.view_payment", merchant):
        raise DraftError(_("You do not see this merchant's payments."))
    good = list(_select_good_payments(merchant))
    traits = [_render_trait(one, len(chosen), len(good)) for one in find_traits(chosen, good)]
    for one in traits:
        one["links"] = list_draft_links(user, merchant, store_draft(session, one["rule"]))
    return {
        "merchant": merchant,
        "chosen": len(chosen),
        "good": len(good),
        "traits": traits,
    }


def find_traits(chosen: Sequence[Payment], good: Sequence[Payment]) -> list[dict[str, Any]]:
    """Fields with the values that at least MIN_SHARED of the chosen payments share: field, values, how many of the
    chosen and of the good payments have one; what tells the two apart most comes first."""
    hits, counts = _read_values(chosen), _read_values(good)
    found: list[dict[str, Any]] = []
    for field in sorted({name for values in hits for name in values} - _SENSITIVE - _COMMON):
        shared = Counter(value for values in hits for value in values.get(field, ()))
        values = [value for value, count in shared.most_common(MAX_TRAIT_VALUES) if count >= MIN_SHARED]
        if values:
            found.append(
                {
                    "field": field,
                    "values": values,
                    "chosen": _count_having(hits, field, values),
                    "good": _count_having(counts, field, values),
                }
            )
    total, others = max(1, len(chosen)), max(1, len(good))
    found.sort(key=lambda one: (one["good"] / others - one["chosen"] / total, one["field"]))
    return found[:MAX_TRAITS]


def _read_values(payments: Iterable[Payment]) -> list[dict[str, tuple[str, ...]]]:
    read = ((rebuild_risk_subject(one)) for one in payments)
    return [
        {name: values for name, values in one.subject.values.items() if name not in one.lost and len(values[0]) <= 100}
        for one in read
    ]


def _count_having(rows: Iterable[dict[str, tuple[str, ...]]], field: str, values: Sequence[str]) -> int:
    return sum(not set(row.get(field, ())).isdisjoint(values) for row in rows)


def _select_good_payments(merchant: Merchant) -> QuerySet[Payment]:
    disputed = Chargeback.objects.filter(chain=OuterRef("pk"))
    found = Payment.objects.filter(
        ~Exists(disputed), merchant=merchant, payment_type__in=("DB", "PA"), status=Status.APPROVED, chain=F("id")
    )
    return found.order_by("-created_at")[:MAX_GOOD_PAYMENTS]


def _render_trait(trait: dict[str, Any], chosen: int, good: int) -> dict[str, Any]:
    rule = {
        "name": f"{_('Chargebacks')} {clock.real_now():%Y-%m}: {trait['field']}"[:100],
        "when": {"kind": "field", "field": trait["field"], "is": trait["values"]},
        "then": {"verdict": "review"},
    }
    return {
        **trait,
        "rule": rule,
        "sentence": describe_rule(rule),
        "chosen_share": round(100 * trait["chosen"] / max(1, chosen)),
        "good_share": round(100 * trait["good"] / good, 1) if good else None,
    }


def list_draft_links(user: Any, merchant: Merchant, draft: str) -> list[tuple[str, str]]:
    """(rule set, address of its form with the draft of this name at the end), of the sets that the user may change."""
    links = []
    if permissions.has_permission(user, "gateway.change_riskset", merchant):
        for row in RiskSet.objects.filter(merchant=merchant).order_by("key"):
            address = reverse("admin:gateway_riskset_change", args=[row.pk])
            links.append((row.key, f"{address}?{urlencode({'draft': draft})}"))
    if permissions.has_permission(user, "gateway.add_riskset", merchant):
        address = reverse("admin:gateway_riskset_add")
        links.append((_("a new rule set"), f"{address}?{urlencode({'merchant': merchant.pk.hex, 'draft': draft})}"))
    return links

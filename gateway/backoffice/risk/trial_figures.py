"""Figures of a risk trial: payments and sums by original and new decision, and by rule."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from gateway.backoffice.risk.threshold_figures import compute_score_figures
from gateway.db.statement import execute_sql
from gateway.models import RiskTrial
from gateway.risk.rule_sets import RuleSet

AVS_CVV_CHECK_PLACE: Final = -1
"""Place of the AVS/CVV check, which is no rule of the list."""

# One row for each (original outcome, outcome in the trial, approved, currency).
_CHANGES: Final = """
SELECT original_outcome, trial_outcome, status = 'APPROVED', currency, count(*), sum(amount)
FROM gateway_risktrialpayment WHERE trial_id = %(trial)s AND original_outcome <> trial_outcome
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
"""
_MATCHING: Final = """
SELECT (place)::int, currency, count(*), sum(amount), count(*) FILTER (WHERE original_outcome <> trial_outcome)
FROM gateway_risktrialpayment, jsonb_array_elements_text(matching_rules) AS h(place)
WHERE trial_id = %(trial)s GROUP BY 1, 2 ORDER BY 1, 2
"""
_UNJUDGED: Final = """
SELECT (pair ->> 0)::int, pair ->> 1, count(*)
FROM gateway_risktrialpayment, jsonb_array_elements(undecided_rules) AS u(pair)
WHERE trial_id = %(trial)s GROUP BY 1, 2 ORDER BY 1, 2
"""


def compute_trial_figures(trial: RiskTrial, rules: RuleSet) -> dict[str, Any]:
    """``changes``: [{was, would, payments, approved, sums, approvedSums}], ``rules``: [{place, name, payments, changed,
    sums, undecided_rules: [[reason, payments]]}], ``scores``: rows of compute_score_figures; sums are
    {currency: amount as text}."""
    asked = {"trial": trial.pk}
    changes: dict[tuple[str, str], dict[str, Any]] = {}
    for was, would, approved, currency, count, total in execute_sql(_CHANGES, asked):
        one = changes.setdefault(
            (was, would),
            {"was": was, "would": would, "payments": 0, "approved": 0, "sums": {}, "approvedSums": {}},
        )
        one["payments"] += count
        _add_amount(one["sums"], currency, total)
        if approved:
            one["approved"] += count
            _add_amount(one["approvedSums"], currency, total)
    named = [(place, rule.name) for place, rule in enumerate(rules.rules)]
    if rules.avs or rules.cvv:
        named.append((AVS_CVV_CHECK_PLACE, ""))
    by_rule: dict[int, dict[str, Any]] = {
        place: {"place": place, "name": name, "payments": 0, "changed": 0, "sums": {}, "undecided_rules": []}
        for place, name in named
    }
    for place, currency, count, total, changed in execute_sql(_MATCHING, asked):
        by_rule[place]["payments"] += count
        by_rule[place]["changed"] += changed
        _add_amount(by_rule[place]["sums"], currency, total)
    for place, why, count in execute_sql(_UNJUDGED, asked):
        by_rule[place]["undecided_rules"].append([why, count])
    return {
        "changes": list(changes.values()),
        "rules": list(by_rule.values()),
        "scores": compute_score_figures(trial),
    }


def _add_amount(sums: dict[str, str], currency: str, total: Any) -> None:
    sums[currency] = f"{Decimal(sums.get(currency, '0')) + total:.2f}"

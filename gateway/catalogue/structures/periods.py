"""The one condition that reports and queries share: a period must not end before it begins."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule


def _check(sent: RuleInput) -> Iterator[RuleBreach]:
    start, end = sent.get("date.from"), sent.get("date.to")
    # Both have the same shape, so text compares as time does.
    if start is not None and end is not None and end < start:
        yield "date.to", "must not be before date.from"


def build_period_rule(start: str, end: str) -> ParameterRule:
    """``date.from`` ≤ ``date.to``; ``start`` and ``end`` are an example of a good period."""
    return build_rule(
        "date.from must not be after date.to",
        ("date.from", "date.to"),
        _check,
        keeps={"date.from": start, "date.to": end},
        breaks={"date.from": end, "date.to": start},
    )

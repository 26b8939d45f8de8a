"""Why a declined charge is tried again when it is, in words: the figures that a run keeps (JobRun.retry_choices)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import format_labelled
from gateway.backoffice.kit.result_words import describe_result
from gateway.scheduling.retry_choice import RetryChooser
from gateway.scheduling.retry_rates import RateCell


def describe_retry_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    """The newest choice of a run for its page: a sentence, the chances, and a line for each figure; empty where the
    channel goes by the table."""
    by = choice.get("by", "")
    if by == RetryChooser.TOO_FEW:
        return {"sentence": _("By the table: too few retries after this decline were counted."), "lines": []}
    if by == RetryChooser.NO_TIME:
        return {"sentence": _("By the table: nothing is left to choose before the next run."), "lines": []}
    if by != RetryChooser.OUTCOMES:
        return {}
    at, by_table = datetime.fromisoformat(choice["at"]), datetime.fromisoformat(choice["table"]["at"])
    sentence = _(
        "Likely approved in %(chance)s of 100 cases on %(at)s UTC; by the table, on %(table_at)s, in %(table)s."
    )
    return {
        "sentence": sentence
        % {
            "chance": _percent(choice["chance"]),
            "at": f"{at:%Y-%m-%d %H:%M}",
            "table_at": f"{by_table:%Y-%m-%d %H:%M}",
            "table": _percent(choice["table"]["chance"]),
        },
        "lines": [_describe_factor(one, choice) for one in choice["factors"]],
    }


def _describe_factor(factor: Mapping[str, Any], choice: Mapping[str, Any]) -> dict[str, str]:
    issuer = choice["issuer"] or _("unknown issuer")
    value, figure = factor["value"], factor["figure"]
    counted = _("%(approved)d of %(tries)d approved") % {"approved": factor["approved"], "tries": factor["tries"]}
    if factor["cell"] == RateCell.RATE:
        code, advice = choice["code"], choice["advice"]
        reason = describe_result(code)
        name = format_labelled(issuer, reason) + (f" ({_('advice')} {advice})" if advice else "")
        return {"name": name, "counted": counted, "figure": f"{_percent(figure)} %"}
    names = {
        RateCell.DAY: _("on day %d of the month") % value,
        RateCell.WEEKDAY: str(WEEKDAYS[(value - 1) % len(WEEKDAYS)]),
        RateCell.HOUR: _("at %02d hours UTC, all payments with this issuer") % value,
    }
    return {"name": names[RateCell(factor["cell"])], "counted": counted, "figure": f"× {figure:.2f}"}


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"

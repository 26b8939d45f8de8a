"""Subscription jobs: when they run, their period, and the notice period of an end.

Source: Part B, Scheduling; ruling D39. All rows are optional.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.formats import AN, DATE_TIME, Format, N, one_of, value_list
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import NEVER, O, structure
from gateway.catalogue.structures import cron_notation
from gateway.catalogue.structures.cron_notation import CronField


def _cron(words: str, one: CronField, expects: str, example: str, bad: str, *, empty: bool = False) -> Format:
    return Format(
        words=words,
        expects=f"must be {expects}",
        fits=(lambda value: not value or one.fits(value)) if empty else one.fits,
        example=example,
        counterexample=bad,
        schema={"type": "string", "maxLength": cron_notation.MAX_EXPRESSION_CHARS},
        empty_is_value=empty,
    )


# The single fields accept what the table says, job.expression all that Quartz does (month names, any minutes).
_MONTH = CronField(low=1, high=12, symbols=",-*/")
_MINUTE = CronField(low=0, high=59, symbols="")

_UNITS = value_list("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND").eg("MONTH")
CRON_EXPRESSION = Format(
    words="AN up to 256; cron expression of seven fields (year may be left out)",
    expects="must be six or seven cron fields: second minute hour dayOfMonth month dayOfWeek [year], "
    "with ? for one of the two days",
    fits=cron_notation.is_cron_expression,
    example="0 0 12 1 * ?",
    counterexample="0 0 12 1 *",
    schema={"type": "string", "maxLength": cron_notation.MAX_EXPRESSION_CHARS},
)


def _days(sent: RuleInput) -> Iterator[RuleBreach]:
    day_of_month, day_of_week = sent.get("dayOfMonth"), sent.get("dayOfWeek")
    if day_of_month is None or day_of_week is None or "expression" in sent:
        return
    if not cron_notation.do_days_agree(day_of_month, day_of_week):
        yield "dayOfWeek", "and dayOfMonth: exactly one of them must name days, the other is ?"


def _period(sent: RuleInput) -> Iterator[RuleBreach]:
    start, end = sent.get("startDate"), sent.get("endDate")
    if start is not None and end is not None and end < start:
        yield "endDate", "must not be before startDate"


JOB = structure(
    "Scheduling (subscription jobs)", "Part B", "job",
    ("name", AN(1, 64).eg("Monthly plan"), O),
    ("year", _cron("empty, 1970-2099, and the symbols , - * /", cron_notation.CRON_YEAR,
                   "years 1970 to 2099 with , - * / or empty", "*", "1969", empty=True), O, "",
     {"default": "*"}),
    ("month", _cron("1-12 and , - * /", _MONTH, "months 1 to 12 with , - * /", "*/3", "13"), O, "",
     {"default": "1"}),
    ("dayOfMonth", _cron("1-31 and , - * ? / L W", cron_notation.CRON_DAY_OF_MONTH,
                         "days 1 to 31 with , - * ? / L W", "15", "32"), O, "", {"default": "1"}),
    ("dayOfWeek", _cron("1-7 or SUN-SAT and , - * ? / L #", cron_notation.CRON_DAY_OF_WEEK,
                        "days 1 (SUN) to 7 (SAT) with , - * ? / L #", "MON-FRI", "8"), O, "1 = SUN.",
     {"default": "1"}),
    ("hour", _cron("0-23 and , - * /", cron_notation.CRON_HOUR, "hours 0 to 23 with , - * /", "12", "24"), O, "",
     {"default": "0"}),
    ("minute", _cron("0-59", _MINUTE, "a minute 0 to 59", "30", "60"), O, "", {"default": "0"}),
    ("second", _cron("0-59 and , - * /", cron_notation.CRON_SECOND, "seconds 0 to 59 with , - * /", "0", "60"), O, "",
     {"default": "0"}),
    ("startDate", DATE_TIME.eg("2026-06-01 00:00:00"), O),
    ("endDate", DATE_TIME.eg("2027-06-01 00:00:00"), O),
    ("noticeUnit", _UNITS, O),
    ("noticeNumber", N(1, 16, words="N up to 16").eg("1", "one"), O),
    ("noticeCallable", one_of("ANYTIME", "DURATION_END"), O),
    ("durationUnit", _UNITS.eg("YEAR"), O),
    ("durationNumber", N(1, 16, words="N up to 16").eg("1", "one"), O),
    ("expression", CRON_EXPRESSION, O, "Overwrites second, minute, hour, dayOfMonth, month, dayOfWeek, year."),
    rules=[
        build_rule(
            "dayOfMonth and dayOfWeek must not both name days", ("dayOfMonth", "dayOfWeek"), _days,
            keeps={"dayOfMonth": "1", "dayOfWeek": "?"}, breaks={"dayOfMonth": "1", "dayOfWeek": "MON"},
        ),
        build_rule(
            "endDate must not be before startDate", ("startDate", "endDate"), _period,
            keeps={"startDate": "2026-06-01 00:00:00", "endDate": "2027-06-01 00:00:00"},
            breaks={"startDate": "2027-06-01 00:00:00", "endDate": "2026-06-01 00:00:00"},
        ),
    ],
    demand=NEVER,
)  # fmt: skip

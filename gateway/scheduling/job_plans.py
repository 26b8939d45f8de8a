"""The plan of a subscription job: run times, start, end, duration and notice period. Pure, no database.

Terms of ``duration`` count from the plan's start. Without ``noticeCallable=DURATION_END`` the plan ends with its first
term; with it, terms repeat until notice is given.
Source: Part B, Scheduling; ruling D39; docs/decisions/0022.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any, Final
from zoneinfo import ZoneInfo

from gateway.catalogue.parse import ParameterError, mask_reported_value
from gateway.catalogue.structures import cron_notation as notation
from gateway.core import clock
from gateway.scheduling.cron import compile_cron
from gateway.scheduling.models import Job

PLAN_HORIZON: Final = datetime(2100, 1, 1, tzinfo=UTC)
"""The latest end of a plan; longer periods are cut off here."""
TIMING_PARAMETERS: Final = ("second", "minute", "hour", "dayOfMonth", "month", "dayOfWeek", "year", "expression")
NO_JOB_CODE, NEVER_RUNS_CODE, BAD_DURATION_CODE, BAD_NOTICE_CODE = (
    "100.250.250",
    "100.250.120",
    "100.250.106",
    "100.250.107",
)
_TIME: Final = "%Y-%m-%d %H:%M:%S"
_SECOND: Final = timedelta(seconds=1)
_MONTHS: Final[Mapping[str, int]] = {"YEAR": 12, "MONTH": 1}
_DAYS: Final[Mapping[str, int]] = {"WEEK": 7, "DAY": 1}
_SECONDS: Final[Mapping[str, int]] = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_MAX_PERIOD_YEARS: Final = 150
_MAX_PERIOD_DAYS: Final = _MAX_PERIOD_YEARS * 366


class InvalidJobPlanError(Exception):
    """The job's parameters are no valid plan; ``errors``: each parameter at fault with its result code."""

    def __init__(self, errors: list[ParameterError]) -> None:
        super().__init__(errors[0].message)
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarPeriod:
    """A period of ``number`` units, e.g. 3 MONTH. Months and days are calendar units in the plan's time zone."""

    unit: str
    number: int

    def after(self, moment: datetime, zone: ZoneInfo, times: int = 1) -> datetime:
        """``moment`` plus ``times`` periods, at most PLAN_HORIZON. In a shorter month the day is its last one."""
        number = self.number * times
        if self.unit in _SECONDS:
            seconds = number * _SECONDS[self.unit]
            return (
                min(PLAN_HORIZON, moment + timedelta(seconds=seconds))
                if seconds < _MAX_PERIOD_DAYS * 86_400
                else PLAN_HORIZON
            )
        wall = moment.astimezone(zone).replace(tzinfo=None)
        if self.unit in _DAYS:
            days = number * _DAYS[self.unit]
            if days >= _MAX_PERIOD_DAYS:
                return PLAN_HORIZON
            wall += timedelta(days=days)
        else:
            months = number * _MONTHS[self.unit]
            if months >= _MAX_PERIOD_YEARS * 12:
                return PLAN_HORIZON
            years, month = divmod(wall.month - 1 + months, 12)
            year = wall.year + years
            day = min(wall.day, calendar.monthrange(year, month + 1)[1])
            wall = wall.replace(year=year, month=month + 1, day=day)
        return min(PLAN_HORIZON, wall.replace(tzinfo=zone).astimezone(UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """The plan of a job. The fields are those of gateway.scheduling.models.Job."""

    expression: str
    zone: ZoneInfo
    starts_at: datetime
    ends_at: datetime | None
    duration: CalendarPeriod | None = None
    notice: CalendarPeriod | None = None
    notice_callable: str = ""

    def next_run(self, after: datetime) -> datetime | None:
        """The first run after ``after`` and before the plan's end; None when there is none."""
        found = compile_cron(self.expression).next_after(max(after, self.starts_at - _SECOND), self.zone)
        return found if found is not None and (self.ends_at is None or found < self.ends_at) else None

    def runs(self, after: datetime, most: int) -> list[datetime]:
        """The next runs, at most ``most``."""
        found = compile_cron(self.expression).runs(max(after, self.starts_at - _SECOND), self.zone)
        within = takewhile(lambda at: self.ends_at is None or at < self.ends_at, found)
        return list(islice(within, most))

    def following(self, after: datetime) -> tuple[datetime, datetime | None]:
        """(next_at, ends_at) of a job after ``after``: the next run, or the end if there is none. A plan without
        further runs and without an end of its own ends one second later."""
        run = self.next_run(after)
        if run is not None:
            return run, self.ends_at
        end = self.ends_at or after + _SECOND
        return end, end

    def end_by_notice(self, now: datetime) -> datetime:
        """The end of the plan if notice is given ``now``, never later than its present end."""
        end = self.notice.after(now, self.zone) if self.notice is not None else now
        if self.notice_callable == Job.Callable.DURATION_END and self.duration is not None:
            end = self._end_of_term(end)
        return min(end, self.ends_at or PLAN_HORIZON)

    def _end_of_term(self, moment: datetime) -> datetime:
        """The end of the first term that does not end before ``moment``."""
        assert self.duration is not None
        low, high = 0, 1
        while self.duration.after(self.starts_at, self.zone, high) < min(moment, PLAN_HORIZON):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            if self.duration.after(self.starts_at, self.zone, middle) < moment:
                low = middle
            else:
                high = middle
        return self.duration.after(self.starts_at, self.zone, high)

    def columns(self) -> dict[str, Any]:
        """The plan as columns of gateway.scheduling.models.Job."""
        return {
            "expression": self.expression,
            "zone": self.zone.key,
            "starts_at": self.starts_at,
            "ends_at": self.ends_at,
            "duration_unit": self.duration.unit if self.duration else "",
            "duration_number": self.duration.number if self.duration else 0,
            "notice_unit": self.notice.unit if self.notice else "",
            "notice_number": self.notice.number if self.notice else 0,
            "notice_callable": self.notice_callable,
        }


def plan_from_job(job: Job) -> JobPlan:
    """The plan stored in a job's columns."""
    return JobPlan(
        expression=job.expression,
        zone=ZoneInfo(job.zone),
        starts_at=job.starts_at,
        ends_at=job.ends_at,
        duration=CalendarPeriod(unit=job.duration_unit, number=job.duration_number) if job.duration_unit else None,
        notice=CalendarPeriod(unit=job.notice_unit, number=job.notice_number) if job.notice_unit else None,
        notice_callable=job.notice_callable,
    )


def plan_from_parameters(
    sent: Mapping[str, str], zone: ZoneInfo, now: datetime, *, began: datetime | None = None
) -> JobPlan:
    """Parse ``job.*`` parameters (names without ``job.``) into a plan. It starts at ``startDate``, else at ``began``
    (the start of a job that is changed), else ``now``. Raises InvalidJobPlanError."""
    errors: list[ParameterError] = []
    if not sent:
        raise InvalidJobPlanError([_error("expression", "or another of the job parameters is required", NO_JOB_CODE)])
    expression = build_cron_expression(sent)
    duration = _parse_period(sent, "duration", BAD_DURATION_CODE, errors)
    notice = _parse_period(sent, "notice", BAD_NOTICE_CODE, errors)
    called = sent.get("noticeCallable") or (Job.Callable.ANYTIME if notice is not None else "")
    if called == Job.Callable.DURATION_END and duration is None:
        errors.append(
            _error("noticeCallable", "needs durationUnit and durationNumber with DURATION_END", BAD_NOTICE_CODE)
        )
    if not notation.is_cron_expression(expression):
        message = f"make {len(expression)} characters together; a plan has {notation.MAX_EXPRESSION_CHARS} at most"
        errors.append(_error("expression", message, NEVER_RUNS_CODE))
    if errors:
        raise InvalidJobPlanError(errors)
    start, end = (_parse_time(sent.get(name), zone) for name in ("startDate", "endDate"))
    starts_at = start if start is not None and (began is not None or start > now) else began or now
    ends = [end + _SECOND] if end is not None else []
    if duration is not None and called != Job.Callable.DURATION_END:
        ends.append(duration.after(starts_at, zone))
    plan = JobPlan(
        expression=expression,
        zone=zone,
        starts_at=starts_at,
        ends_at=min(ends, default=None),
        duration=duration,
        notice=notice,
        notice_callable=called,
    )
    if plan.next_run(now) is None:
        raise InvalidJobPlanError([_build_never_runs_error(sent, expression, plan)])
    return plan


def build_cron_expression(sent: Mapping[str, str]) -> str:
    """The cron expression of seven fields: ``expression`` if sent, else from the single parameters with their defaults
    (ruling D39)."""
    if text := sent.get("expression"):
        return " ".join(text.upper().split())
    day_of_month, day_of_week = sent.get("dayOfMonth"), sent.get("dayOfWeek")
    if day_of_month is None:
        day_of_month = "?" if day_of_week not in (None, "?") else "1"
    if day_of_week is None:
        day_of_week = "?" if day_of_month != "?" else "1"
    single = (
        sent.get("second", "0"),
        sent.get("minute", "0"),
        sent.get("hour", "0"),
        day_of_month,
        sent.get("month", "1"),
        day_of_week,
        sent.get("year") or "*",
    )
    return " ".join(single).upper()


def _parse_period(sent: Mapping[str, str], name: str, code: str, errors: list[ParameterError]) -> CalendarPeriod | None:
    unit, number = sent.get(f"{name}Unit"), sent.get(f"{name}Number")
    if unit is None and number is None:
        return None
    if unit is None or number is None:
        missing, other = ("Unit", "Number") if unit is None else ("Number", "Unit")
        errors.append(_error(f"{name}{missing}", f"is required with {name}{other}", code))
        return None
    if name == "duration" and not int(number):
        errors.append(_error("durationNumber", "must be 1 or more", code, number))
        return None
    return CalendarPeriod(unit=unit, number=int(number))


def _parse_time(text: str | None, zone: ZoneInfo) -> datetime | None:
    return datetime.strptime(text, _TIME).replace(tzinfo=zone).astimezone(UTC) if text else None


def _build_never_runs_error(sent: Mapping[str, str], expression: str, plan: JobPlan) -> ParameterError:
    """The error of a plan without any run: its end is too early, or its times never occur."""
    if (
        plan.ends_at is not None
        and compile_cron(expression).next_after(plan.starts_at - _SECOND, plan.zone) is not None
    ):
        name = "endDate" if "endDate" in sent else "durationNumber"
        return _error(
            name, f"leaves no run: {expression} does not come true before then", NEVER_RUNS_CODE, sent.get(name)
        )
    name = next((name for name in reversed(TIMING_PARAMETERS) if name in sent), "expression")
    return _error(name, f"never comes true: {expression} has no run any more", NEVER_RUNS_CODE, sent.get(name))


def _error(name: str, message: str, code: str, value: str | None = None) -> ParameterError:
    shown = mask_reported_value(value) if value else None
    return ParameterError(name=f"job.{name}", value=shown, message=message, code=code, known=True)


def render_plan(plan: JobPlan, job: Job, now: datetime, most: int) -> Iterator[tuple[str, Any]]:
    """The members of a response's ``plan``, with at most ``most`` next runs after ``now``."""
    live = job.state in (Job.State.ACTIVE, Job.State.ENDING)
    yield "active", live
    yield "state", job.state
    if job.reason:
        yield "reason", job.reason
    yield "expression", plan.expression
    yield "timeZone", plan.zone.key
    if job.ends_at is not None and job.ends_at < PLAN_HORIZON:
        yield "endsAt", clock.format_timestamp(job.ends_at)
    yield "nextRuns", [clock.format_timestamp(at) for at in plan.runs(now, most)] if live else []

"""Contents of the schedule pages: next runs, notice, cancellation preview, runs, and the reschedule form."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.formatting import build_state_pill, mask_registered_account
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.schedules.plan_words import describe_plan
from gateway.backoffice.schedules.retry_words import describe_retry_choice
from gateway.core import clock, identifiers
from gateway.core.masking import mask_text
from gateway.core.money import format_amount
from gateway.models import Payment, Registration
from gateway.scheduling import job_plans as plans
from gateway.scheduling import schedules
from gateway.scheduling.models import Job, JobRun

SCHEDULE_PAGE_ROWS: Final = 50
MAX_LISTED_NEXT_RUNS: Final = 10
MAX_NOTICE_RUNS: Final = 24
"""Runs of a notice period that are listed one by one."""
SCHEDULE_ACTIONS: Final = {
    "pause": gettext_lazy("Pause"),
    "resume": gettext_lazy("Resume"),
    "cancel": gettext_lazy("Cancel"),
    "reschedule": gettext_lazy("Reschedule"),
}
_FIELDS: Final = ("amount", "expression", "endDate", "name", "registrationId")
"""Fields of the reschedule form."""
_SENT: Final = {"expression": "job.expression", "endDate": "job.endDate", "name": "job.name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CancellationPreview:
    """The effect of cancelling now: the end date, and the charges until then."""

    at: datetime
    at_once: bool
    runs: list[datetime]
    more: bool
    total: Decimal


class ScheduleChangeError(Exception):
    """Nothing was changed. ``wrong``: field → error, '' for the whole form."""

    def __init__(self, wrong: dict[str, str]) -> None:
        super().__init__("; ".join(wrong.values()))
        self.wrong = wrong


# --- what the pages are given -------------------------------------------------------------------------------------


def list_next_runs(job: Job, now: datetime) -> list[dict[str, Any]]:
    """The next runs, by the job's own clock and in UTC."""
    if job.state not in (Job.State.ACTIVE, Job.State.ENDING):
        return []
    plan = plans.plan_from_job(job)
    # A run that is due at this moment and not made yet counts as a next one.
    after = min(now, (job.next_at or now) - timedelta(seconds=1))
    runs = plan.runs(after, MAX_LISTED_NEXT_RUNS)
    return [{"utc": at, "local": f"{at.astimezone(plan.zone):%Y-%m-%d %H:%M:%S}"} for at in runs]


def preview_cancellation(job: Job, now: datetime) -> CancellationPreview:
    """The effect of cancelling, computed by the real verb on a copy."""
    trial = copy.copy(job)
    schedules.give_job_notice(trial, now)
    if trial.state == Job.State.ENDED:
        return CancellationPreview(at=now, at_once=True, runs=[], more=False, total=Decimal(0))
    runs = plans.plan_from_job(trial).runs(now, MAX_NOTICE_RUNS + 1)
    ends = trial.ends_at or now
    return CancellationPreview(
        at=ends,
        at_once=False,
        runs=runs[:MAX_NOTICE_RUNS],
        more=len(runs) > MAX_NOTICE_RUNS,
        total=job.amount * len(runs[:MAX_NOTICE_RUNS]),
    )


def describe_notice(job: Job) -> str:
    """The notice period of a job as text."""
    if job.state == Job.State.ENDED:
        return _("It has ended; nothing is charged any more.")
    if job.state == Job.State.ENDING:
        return _("Notice was given. It runs until its end, and what falls due before is charged.")
    if not job.notice_unit:
        return _("No notice period: when it is cancelled it ends at once.")
    period = f"{job.notice_number} {_format_unit(job.notice_unit)}"
    if job.notice_callable == Job.Callable.DURATION_END:
        return _("%s of notice to the end of a term. Runs until then are charged.") % period
    return _("%s of notice, at any time. Runs until then are charged.") % period


def _format_unit(unit: str) -> str:
    names = {
        "YEAR": _("year(s)"),
        "MONTH": _("month(s)"),
        "WEEK": _("week(s)"),
        "DAY": _("day(s)"),
        "HOUR": _("hour(s)"),
        "MINUTE": _("minute(s)"),
        "SECOND": _("second(s)"),
    }
    return names.get(unit, unit.lower())


def build_schedule_pill(job: Job) -> dict[str, Any]:
    """A job's state for its pill."""
    return build_state_pill("PAUSED" if job.reason == Job.Reason.PAUSED else job.state)


def _build_run_pill(run: JobRun) -> dict[str, Any]:
    return {"tone": "bad", "text": _("Failed")} if run.state == JobRun.State.FAILED else build_state_pill(run.state)


def name_schedule(job: Job) -> str:
    """A schedule's name; without one its times in words, else the expression."""
    return job.name or describe_plan(job.expression) or job.expression


def describe_schedule_means(registration: Registration | None) -> str:
    """The card or account that a schedule charges: brand, masked number and holder; '' if it is gone."""
    if registration is None:
        return ""
    holder = mask_text(str(registration.details.get(registration.means, {}).get("holder", "")))
    return f"{registration.brand} {mask_registered_account(registration)}" + (f", {holder}" if holder else "")


def render_schedules(rows: list[Job]) -> list[dict[str, Any]]:
    """Jobs for the template, each with its last run and what it charges."""
    means = Registration.objects.defer("means_sealed", "request").in_bulk({row.registration for row in rows})
    last: dict[UUID, JobRun] = {}
    for run in JobRun.objects.filter(job__in=[row.pk for row in rows]).order_by("job", "-due_at").distinct("job"):
        last[run.job_id] = run
    return [
        {
            "row": row,
            "name": name_schedule(row),
            "times": describe_plan(row.expression) if row.name else "",
            "means": describe_schedule_means(means.get(row.registration)),
            "pill": build_schedule_pill(row),
            "last": (latest := last.get(row.pk)),
            "run": _build_run_pill(latest) if latest else None,
            "words": describe_result(latest.code) if latest else "",
            "local": row.next_at,
            "address": reverse("admin:scheduling_job_change", args=[row.pk]),
        }
        for row in rows
    ]


def render_schedule_runs(runs: list[JobRun], job: Job) -> list[dict[str, Any]]:
    """Runs of a job for the template, each with its payments."""
    keys = [key for run in runs for key in (run.payment, *run.earlier) if key is not None]
    made = Payment.objects.filter(pk__in=keys, merchant=job.merchant_id).defer("request", "answer").in_bulk()
    return [
        {
            "row": run,
            "pill": _build_run_pill(run),
            "text": describe_result(run.code),
            "retry": describe_retry_choice(run.retry_choices[-1]) if run.retry_choices else {},
            "payments": [
                {"row": made[key], "address": build_payment_page_url(key), "pill": build_state_pill(made[key].status)}
                for key in (*run.earlier, run.payment)
                if key is not None and key in made
            ],
        }
        for run in runs
    ]


def list_schedule_records(job: Job) -> list[Payment]:
    """Records of the job: created, changed, ended."""
    rows = Payment.objects.filter(chain=job.pk, payment_type__in=("SD", "RS", "DS")).defer("request", "answer")
    return list(rows.order_by("-id")[:MAX_LISTED_NEXT_RUNS])


def list_possible_actions(job: Job) -> list[tuple[str, str]]:
    """Actions that the job's state allows."""
    of_state = {
        Job.State.ACTIVE: ("reschedule", "pause", "cancel"),
        Job.State.SUSPENDED: ("resume", "reschedule", "cancel"),
        Job.State.ENDING: ("reschedule",),
        Job.State.ENDED: (),
    }
    return [(verb, str(SCHEDULE_ACTIONS[verb])) for verb in of_state[Job.State(job.state)]]


def list_runs_if_resumed(job: Job, now: datetime) -> list[datetime]:
    """The next three runs of a suspended schedule if it were resumed now."""
    return plans.plan_from_job(job).runs(now, 3)


def describe_schedule_change(job: Job) -> str:
    """What the change that was just made to a schedule means."""
    if job.state == Job.State.ENDED:
        return _("Cancelled: it has ended.")
    if job.state == Job.State.ENDING:
        return _("Cancelled: it ends at %s UTC.") % f"{job.ends_at:%Y-%m-%d %H:%M:%S}"
    if job.state == Job.State.SUSPENDED:
        return _("Paused. Nothing is charged until it is resumed.")
    return _("Done. The next run is at %s UTC.") % f"{job.next_at:%Y-%m-%d %H:%M:%S}"


def collect_schedule_audit_values(job: Job) -> dict[str, Any]:
    """A job's values as an audit entry stores them."""
    return {
        "state": job.state,
        "reason": job.reason,
        "amount": format_amount(job.amount),
        "currency": job.currency,
        "expression": job.expression,
        "next_at": clock.format_timestamp(job.next_at) if job.next_at else None,
        "ends_at": clock.format_timestamp(job.ends_at) if job.ends_at else None,
        "registration": job.registration.hex,
    }


# --- the form of a reschedule -------------------------------------------------------------------------------------


def _read_current_values(job: Job) -> dict[str, str]:
    sent = job.request.get("job", {})
    return {
        "amount": format_amount(job.amount),
        "expression": job.expression,
        "endDate": sent.get("endDate", ""),
        "name": job.name,
        "registrationId": job.registration.hex,
    }


def build_schedule_fields(request: HttpRequest, job: Job, wrong: dict[str, str]) -> list[dict[str, str]]:
    """Inputs of the reschedule form with the job's current values."""
    stands = _read_current_values(job)
    labels = {
        "amount": (_("Amount in %s") % job.currency, _("Of every run from now on.")),
        "expression": (
            _("Times"),
            _(
                "Seven fields: second minute hour day-of-month month day-of-week year, in %s. "
                "0 0 6 1 * ? * is 06:00 on the first of every month."
            )
            % job.zone,
        ),
        "endDate": (_("Last day"), _("As 2026-12-31 23:59:59; empty: as the plan says.")),
        "name": (_("Name"), ""),
        "registrationId": (_("Registration"), _("The stored means that is charged, by its id.")),
    }
    return [
        {
            "name": name,
            "label": labels[name][0],
            "help": labels[name][1],
            "wrong": wrong.get(name, ""),
            "value": request.POST.get(name, stands[name]) if request.method == "POST" else stands[name],
        }
        for name in _FIELDS
    ]


def read_schedule_changes(request: HttpRequest, job: Job) -> list[tuple[str, str]]:
    """Fields of the form that differ from the job, as API parameters."""
    stands = _read_current_values(job)
    sent = {name: request.POST.get(name, stands[name]).strip()[:256] for name in _FIELDS}
    changed = [name for name in _FIELDS if sent[name] != stands[name] and sent[name]]
    if "amount" in changed:
        try:
            sent["amount"] = format_amount(Decimal(sent["amount"].replace(",", ".")))
        except (InvalidOperation, ValueError):
            raise ScheduleChangeError({"amount": _("Give the amount with none or two decimals, e.g. 92.00.")}) from None
        if sent["amount"] == stands["amount"]:
            changed.remove("amount")
    pairs = [(_SENT.get(name, name), sent[name]) for name in changed]
    return [*pairs, ("currency", job.currency)] if "amount" in changed else pairs


def field_from_parameter(parameter: str) -> str:
    """The form field of an API parameter."""
    name = parameter.removeprefix("job.")
    return name if name in _FIELDS else ""


def find_schedules(term: str) -> list[UUID]:
    """Jobs by an id: the job's own, its registration's, or that of a payment it made."""
    ident = identifiers.parse_id(term.replace("-", "").lower())
    if ident is None:
        return []
    of_runs = JobRun.objects.filter(payment=ident).values_list("job", flat=True)[:SCHEDULE_PAGE_ROWS]
    return [ident, *Job.objects.filter(registration=ident).values_list("pk", flat=True)[:SCHEDULE_PAGE_ROWS], *of_runs]


def parse_resume_time(text: str) -> datetime | None:
    """An ISO 8601 time, in UTC unless it names an offset; None for anything else."""
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)

"""Subscription schedules: next runs, past charges; pausing, resuming, rescheduling and cancelling by the API's verbs.

Source: docs/schedules.md; Part B, Scheduling; docs/decisions/0029.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from gateway.access.permissions import find_row_owner
from gateway.backoffice.access.independence import is_unlimited_person
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.formatting import build_state_pill, format_labelled
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.list_columns import read_list_look
from gateway.backoffice.kit.list_sums import sum_listed_amounts
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.kit.time_limit import SearchTooBroadError, limit_search_time
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.schedules import schedule_details
from gateway.backoffice.schedules.plan_words import describe_plan
from gateway.backoffice.schedules.retry_trial_pages import RetryTrial
from gateway.backoffice.schedules.schedule_columns import SCHEDULE_COLUMNS, USUAL_SCHEDULE_COLUMNS
from gateway.backoffice.schedules.schedule_details import SCHEDULE_ACTIONS, SCHEDULE_PAGE_ROWS, ScheduleChangeError
from gateway.backoffice.sign_in import session
from gateway.catalogue.endpoints import CANCEL_SCHEDULE_ENDPOINT, RESCHEDULE_ENDPOINT, Endpoint
from gateway.catalogue.parse import InvalidParametersError
from gateway.core import clock
from gateway.models import Registration
from gateway.payments.payment_request import RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.registrations import ChangeRequest
from gateway.payments.request_builder import build_condition_facts
from gateway.scheduling import job_plans as plans
from gateway.scheduling import schedules
from gateway.scheduling.models import Job, JobRun

MAX_SHOWN_RUNS: Final = 50


@admin.register(Job)
class JobAdmin(ReadOnlyPage):
    is_named_in_trail = True
    columns = SCHEDULE_COLUMNS
    usual_columns = USUAL_SCHEDULE_COLUMNS

    def get_urls(self) -> list[URLPattern]:
        own = [path("<uuid:job>/do/<str:verb>/", self.admin_site.admin_view(self.do_view), name="scheduling_job_do")]
        return [*own, *RetryTrial(self).build_urls("retries/", "retries/<uuid:work>/"), *super().get_urls()]

    def name_row(self, row: Job) -> str:
        return schedule_details.name_schedule(row)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = request.GET.get("state", "")
        term = request.GET.get("q", "").strip()
        found = self.get_queryset(request).select_related("merchant", "channel").order_by("-created_at", "-pk")
        if chosen in Job.State.values:
            found = found.filter(state=chosen)
        if term:
            found = found.filter(pk__in=schedule_details.find_schedules(term))
        before = schedule_details.parse_resume_time(request.GET.get("before", ""))
        rows, totals, too_much = [], [], False
        listed = found
        try:
            with limit_search_time():
                found = found.filter(created_at__lt=before) if before is not None else found
                rows = list(found[: SCHEDULE_PAGE_ROWS + 1])
        except SearchTooBroadError:
            too_much = True
        # A list whose sums take too long stands without them.
        with suppress(SearchTooBroadError), limit_search_time():
            totals = sum_listed_amounts(listed)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Schedules"),
            "opts": self.opts,
            "rows": rows,
            "q": term,
            "chosen": chosen,
            "totals": totals,
            "too_much": too_much,
            **self.build_own_list(request, schedule_details.render_schedules(rows[:SCHEDULE_PAGE_ROWS])),
            "shown": read_list_look(request.GET),
            "states": [(value, build_state_pill(value)["text"]) for value in Job.State.values],
            "next": rows[SCHEDULE_PAGE_ROWS - 1].created_at.isoformat() if len(rows) > SCHEDULE_PAGE_ROWS else "",
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/office/schedules.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        job = self._find_job(request, object_id)
        if request.method != "GET":
            raise PermissionDenied
        now = clock.merchant_now(job.merchant)
        runs = list(JobRun.objects.filter(job=job.pk).order_by("-due_at")[: MAX_SHOWN_RUNS + 1])
        context = {
            **self.admin_site.each_context(request),
            "title": schedule_details.name_schedule(job),
            "opts": self.opts,
            "original": job,
            "job": job,
            "times": describe_plan(job.expression),
            "means": schedule_details.describe_schedule_means(Registration.objects.filter(pk=job.registration).first()),
            "pill": schedule_details.build_schedule_pill(job),
            "reason": job.get_reason_display() if job.reason else "",
            "next_runs": schedule_details.list_next_runs(job, now),
            "runs": schedule_details.render_schedule_runs(runs[:MAX_SHOWN_RUNS], job),
            "most": MAX_SHOWN_RUNS if len(runs) > MAX_SHOWN_RUNS else 0,
            "notice": schedule_details.describe_notice(job),
            "records": [
                {"row": row, "title": format_payment_title(row), "address": build_payment_page_url(row.pk)}
                for row in schedule_details.list_schedule_records(job)
            ],
            "registration": reverse("admin:gateway_registration_change", args=[job.registration]),
            "verbs": schedule_details.list_possible_actions(job) if self.may(request, "change", job) else [],
            "ends_at": job.ends_at if job.ends_at is not None and job.ends_at < plans.PLAN_HORIZON else None,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/office/schedule.html", context)

    # --- what is done to it --------------------------------------------------------------------------------------

    def do_view(self, request: HttpRequest, job: Any, verb: str) -> HttpResponse:
        row = self._find_job(request, job)
        if verb not in SCHEDULE_ACTIONS:
            raise Http404
        if not self.may(request, "change", row):
            raise PermissionDenied
        if (ask := session.require_reauthentication(request)) is not None:
            return ask
        back = reverse("admin:scheduling_job_change", args=[row.pk])
        wrong: dict[str, str] = {}
        if request.method == "POST":
            try:
                self._execute_action(request, row, verb)
                return redirect(back)
            except ScheduleChangeError as fault:
                wrong = fault.wrong
        now = clock.merchant_now(row.merchant)
        context = {
            **self.admin_site.each_context(request),
            "title": format_labelled(SCHEDULE_ACTIONS[verb], schedule_details.name_schedule(row)),
            "opts": self.opts,
            "original": row,
            "job": row,
            "name": schedule_details.name_schedule(row),
            "verb": verb,
            "word": SCHEDULE_ACTIONS[verb],
            "back": back,
            "possible": verb in dict(schedule_details.list_possible_actions(row)),
            "wrong": wrong,
            "notice": schedule_details.describe_notice(row),
            "pill": schedule_details.build_schedule_pill(row),
            "ending": schedule_details.preview_cancellation(row, now)
            if verb == "cancel" and row.state != Job.State.ENDED
            else None,
            "coming": schedule_details.list_runs_if_resumed(row, now) if verb == "resume" else [],
            "fields": schedule_details.build_schedule_fields(request, row, wrong) if verb == "reschedule" else [],
        }
        return TemplateResponse(request, "admin/office/schedule_do.html", context)

    def _execute_action(self, request: HttpRequest, job: Job, verb: str) -> None:
        """Carry out an action as the API does, with an audit entry. Raises ScheduleChangeError."""
        pairs = schedule_details.read_schedule_changes(request, job) if verb == "reschedule" else []
        if verb == "reschedule" and not can_change_schedule(request.user, job):
            raise ScheduleChangeError(
                {"": _("A changed schedule goes on charging: somebody without a limit has to change it.")}
            )
        if verb == "reschedule" and not pairs:
            raise ScheduleChangeError({"": _("Nothing was changed in the form.")})
        endpoint = CANCEL_SCHEDULE_ENDPOINT if verb in ("cancel", "pause") else RESCHEDULE_ENDPOINT
        act = {"cancel": schedules.deschedule_job, "pause": schedules.pause_job}.get(verb, schedules.reschedule_job)
        try:
            with transaction.atomic():
                made = act(job.pk, self._build_change(request, job, endpoint, pairs), job.channel)
                after = Job.objects.get(pk=job.pk)
                self.record(
                    request,
                    verb,
                    job,
                    before=schedule_details.collect_schedule_audit_values(job),
                    after={**schedule_details.collect_schedule_audit_values(after), "payment": made.pk.hex},
                )
        except RequestRefusedError as fault:
            wrong = {
                schedule_details.field_from_parameter(error.name): f"{error.name} {error.message}"
                for error in fault.errors
            }
            text = f"{describe_result(fault.code)} {fault.more}".strip()
            raise ScheduleChangeError(wrong or {"": f"{text} ({fault.code})"}) from None
        except InvalidParametersError as fault:
            raise ScheduleChangeError(
                {
                    schedule_details.field_from_parameter(error.name): f"{error.name} {error.message}"
                    for error in fault.errors
                }
            ) from None
        messages.success(request, schedule_details.describe_schedule_change(after))

    def _build_change(
        self, request: HttpRequest, job: Job, endpoint: Endpoint, pairs: list[tuple[str, str]]
    ) -> ChangeRequest:
        by, now = actor_from_request(request), clock.merchant_now(job.merchant)
        trace = RequestTrace(method="POST", path=f"/admin/schedule/{job.pk.hex}", ip=by.ip, entity=job.channel_id)
        kind = "DS" if endpoint is CANCEL_SCHEDULE_ENDPOINT else "RS"
        sent = [("entityId", job.channel.entity_id), ("paymentType", kind), *pairs]
        parameters = endpoint.catalogue.parse(
            sent,
            facts=build_condition_facts(job.channel, now),
            policy=job.channel.parameters,
            masks=job.channel.mask_card_data,
        )
        return ChangeRequest(merchant=job.merchant, now=now, trace=trace, parameters=parameters)

    def _find_job(self, request: HttpRequest, ident: object) -> Job:
        job: Job = self.find_row(request, ident, "merchant", "channel")
        job.channel.merchant = job.merchant
        return job


def can_change_schedule(user: Any, job: Job) -> bool:
    """Whether ``user`` may change what a job charges; only people without limits, as clerk limits do not count its
    charges."""
    return isinstance(user, User) and is_unlimited_person(user, find_row_owner(job))

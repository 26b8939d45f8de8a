"""Subscription schedules: what comes next, what was charged, and pause, resume, reschedule and cancel by the verbs of
the API.

Source: issue "back office"; Part B, Scheduling; docs/decisions/0029.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from gateway import clock, identifiers, results
from gateway.admin import schedule_facts as told
from gateway.admin import session
from gateway.admin.kit import ReadOnly, actor
from gateway.admin.schedule_facts import SIZE, VERBS, NotDone
from gateway.admin.showing import pill
from gateway.catalogue.endpoints import DESCHEDULE, RESCHEDULE, Endpoint
from gateway.catalogue.parse import Invalid
from gateway.desk.independence import is_unlimited_person
from gateway.desk.search import TooMuch, patience
from gateway.desk.story import title_of
from gateway.payments import schedules
from gateway.payments.intake import facts_of
from gateway.payments.refusal import Refused
from gateway.payments.registrations import Change
from gateway.payments.request import Trace
from gateway.rights import place_of
from gateway.scheduling import plan as plans
from gateway.scheduling.models import Job, JobRun

RUNS_SHOWN: Final = 50


@admin.register(Job)
class JobAdmin(ReadOnly):
    def get_urls(self) -> list[URLPattern]:
        own = [path("<uuid:job>/do/<str:verb>/", self.admin_site.admin_view(self.do_view), name="scheduling_job_do")]
        return own + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        chosen = request.GET.get("state", "")
        term = request.GET.get("q", "").strip()
        found = self.get_queryset(request).select_related("merchant").order_by("-created_at", "-pk")
        if chosen in Job.State.values:
            found = found.filter(state=chosen)
        if term:
            found = found.filter(pk__in=told.named(term))
        before = told.moment(request.GET.get("before", ""))
        found = found.filter(created_at__lt=before) if before is not None else found
        rows, too_much = [], False
        try:
            with patience():
                rows = list(found[: SIZE + 1])
        except TooMuch:
            too_much = True
        context = {
            **self.admin_site.each_context(request), "title": _("Schedules"), "opts": self.opts,
            "rows": told.listed(rows[:SIZE]), "q": term, "chosen": chosen, "too_much": too_much,
            "states": [(value, pill(value)["text"]) for value in Job.State.values],
            "next": rows[SIZE - 1].created_at.isoformat() if len(rows) > SIZE else "", **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/office/schedules.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        job = self._one(request, unquote(object_id))
        if request.method != "GET":
            raise PermissionDenied
        now = clock.now(job.merchant)
        runs = list(JobRun.objects.filter(job=job.pk).order_by("-due_at")[:RUNS_SHOWN])
        context = {
            **self.admin_site.each_context(request), "title": job.name or _("Schedule"), "opts": self.opts,
            "original": job, "job": job, "pill": told.pill_of(job),
            "reason": job.get_reason_display() if job.reason else "",
            "next_runs": told.next_runs(job, now), "runs": told.runs_of(runs, job), "notice": told.notice_of(job),
            "records": [
                {"row": row, "title": title_of(row), "address": told.address(row.pk)} for row in told.records_of(job)
            ],
            "registration": reverse("admin:gateway_registration_change", args=[job.registration]),
            "verbs": told.possible(job) if self.may(request, "change", job) else [],
            "ends_at": job.ends_at if job.ends_at is not None and job.ends_at < plans.LAST else None,
            **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/office/schedule.html", context)

    # --- what is done to it --------------------------------------------------------------------------------------

    def do_view(self, request: HttpRequest, job: Any, verb: str) -> HttpResponse:
        row = self._one(request, str(job))
        if verb not in VERBS:
            raise Http404
        if not self.may(request, "change", row):
            raise PermissionDenied
        if (ask := session.ask_again(request)) is not None:
            return ask
        back = reverse("admin:scheduling_job_change", args=[row.pk])
        wrong: dict[str, str] = {}
        if request.method == "POST":
            try:
                self._do(request, row, verb)
                return redirect(back)
            except NotDone as fault:
                wrong = fault.wrong
        now = clock.now(row.merchant)
        context = {
            **self.admin_site.each_context(request), "title": f"{VERBS[verb]}: {row.name or _('Schedule')}",
            "opts": self.opts, "original": row, "job": row, "verb": verb, "word": VERBS[verb], "back": back,
            "possible": verb in dict(told.possible(row)), "wrong": wrong, "notice": told.notice_of(row),
            "pill": told.pill_of(row),
            "ending": told.ending_of(row, now) if verb == "cancel" and row.state != Job.State.ENDED else None,
            "coming": told.resumed(row, now) if verb == "resume" else [],
            "fields": told.form_fields(request, row, wrong) if verb == "reschedule" else [],
        }  # fmt: skip
        return TemplateResponse(request, "admin/office/schedule_do.html", context)

    def _do(self, request: HttpRequest, job: Job, verb: str) -> None:
        """Carry it out as the API would, with an audit entry. Raises NotDone."""
        pairs = told.changes(request, job) if verb == "reschedule" else []
        if verb == "reschedule" and not may_change(request.user, job):
            raise NotDone({"": _("A changed schedule goes on charging: somebody without a limit has to change it.")})
        if verb == "reschedule" and not pairs:
            raise NotDone({"": _("Nothing was changed in the form.")})
        endpoint = DESCHEDULE if verb in ("cancel", "pause") else RESCHEDULE
        act = {"cancel": schedules.deschedule, "pause": schedules.pause}.get(verb, schedules.reschedule)
        try:
            with transaction.atomic():
                made = act(job.pk, self._change(request, job, endpoint, pairs), job.channel)
                after = Job.objects.get(pk=job.pk)
                self.record(
                    request, verb, job, before=told.facts(job), after={**told.facts(after), "payment": made.pk.hex}
                )  # fmt: skip
        except Refused as fault:
            wrong = {told.field_of(error.name): f"{error.name} {error.message}" for error in fault.errors}
            text = f"{results.result(fault.code).description} {fault.more}".strip()
            raise NotDone(wrong or {"": f"{text} ({fault.code})"}) from None
        except Invalid as fault:
            raise NotDone(
                {told.field_of(error.name): f"{error.name} {error.message}" for error in fault.errors}
            ) from None
        messages.success(request, told.done(after))

    def _change(self, request: HttpRequest, job: Job, endpoint: Endpoint, pairs: list[tuple[str, str]]) -> Change:
        by, now = actor(request), clock.now(job.merchant)
        trace = Trace(
            request=identifiers.row_id(), method="POST", path=f"/admin/schedule/{job.pk.hex}", at=clock.real(),
            ip=by.ip, entity=job.channel_id,
        )  # fmt: skip
        kind = "DS" if endpoint is DESCHEDULE else "RS"
        sent = [("entityId", job.channel.entity_id), ("paymentType", kind), *pairs]
        parameters = endpoint.catalogue.parse(
            sent, facts=facts_of(job.channel, now), policy=job.channel.parameters, masks=job.channel.mask_card_data
        )
        return Change(merchant=job.merchant, now=now, trace=trace, parameters=parameters)

    def _one(self, request: HttpRequest, ident: str) -> Job:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.get_object(request, ident)
        if found is None:
            raise Http404
        job: Job = Job.objects.select_related("merchant", "channel").get(pk=found.pk)
        job.channel.merchant = job.merchant
        return job


def may_change(user: Any, job: Job) -> bool:
    """Whether ``user`` may change what a job charges: its charges are not counted towards anybody's limits."""
    return isinstance(user, User) and is_unlimited_person(user, place_of(job))

"""The docs' Run button: a sample is sent for a user of the back office who may issue tokens for the channel.

Test environment only. A run sends nothing but the samples of this gateway, each after the samples it builds on, or a
row of the test data page ("Try it now"); the user chooses the sample or row, and the channel. The token is made for the
run, shown to no one, and deleted after it. Source: docs/decisions/0084, 0122.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.utils import timezone, translation
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from gateway.access import audit_log, permissions
from gateway.access.tokens import lend_token
from gateway.api.errors import ApiError
from gateway.api.in_process import call_own_api
from gateway.api.token_admission import throttle_sample_run
from gateway.core import clock, identifiers
from gateway.core.client_address import resolve_client_ip
from gateway.core.curl import ENTITY_VARIABLE, TOKEN_VARIABLE
from gateway.core.secret import Secret
from gateway.models import Channel, Payment, RequestLog, WebhookEndpoint
from gateway.notifications.endpoints import InvalidEndpointError, open_inspector
from gateway.portal import testdata
from gateway.portal.highlight import highlight_json
from gateway.portal.sample_code import find_sample_endpoint
from gateway.portal.samples import API_SAMPLES, PAYMENT_VARIABLE, ApiSample
from gateway.portal.self_test_checks import CheckRow, SelfCheck, build_checks

SAMPLE_RUN_PERMISSION: Final = "gateway.issue_accesstoken"
MAX_READER_CHANNELS: Final = 50
"""Channels that a reader can choose from."""
SAMPLES_NOT_RUN: Final = frozenset({"throttled"})
"""Samples whose answer cannot be brought about by one request."""

_ALSO_BEFORE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"draw": ("agree",), "query-records": ("reverse",)}
)
"""Samples whose answer also depends on others than the one whose id they name."""
_KEEPING: Final = ("/v1/payments", "/v1/paymentLinks", "/v1/registrations", "/v1/threeDSecure", "/v1/schedules")
"""Paths whose answer has the id that later samples name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRun:
    """One sample as it was sent, and its answer."""

    sample: ApiSample
    path: str
    status: int
    answer: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisedResult:
    """What the test data page promises of a row's answer: ``value`` as ``name`` of its ``result``."""

    name: str
    value: str

    def is_kept_by(self, answer: Mapping[str, Any]) -> bool:
        return bool(answer.get("result", {}).get(self.name) == self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestDataRun:
    """A row of the test data page as requests. ``steps``: its payment, and what a bank reports of it."""

    title: str
    steps: Sequence[ApiSample]
    promise: PromisedResult


@cache
def list_test_data_runs(base_url: str) -> Mapping[str, TestDataRun]:
    """Every row of the test data page that the self-test sends, by the self-test's key. Shoppers come back to the
    docs' result page below ``base_url``."""
    return {check.key: _build_test_data_run(check, base_url) for check in build_checks(testdata.build_test_data())}


def _build_test_data_run(check: SelfCheck, base_url: str) -> TestDataRun:
    row = check.row
    title = str(row.get("title") or row.get("meaning") or f"{row['brand']}, {row['outcome']}")
    fields = dict(check.fields)
    if "shopperResultUrl" in fields:
        fields["shopperResultUrl"] = f"{base_url}/docs/result"
    paid = ApiSample("try", title, "/v1/payments", fields=fields)
    promise = _find_promise(row)
    if not check.key.startswith("transfers "):
        return TestDataRun(title=title, steps=(paid,), promise=promise)
    reported = ApiSample(
        "try-outcome",
        title,
        f"/v1/test/transfers/{PAYMENT_VARIABLE}",
        fields={"outcome": row["outcome"]},
        after=paid.name,
    )
    return TestDataRun(
        title=title, steps=(paid, reported), promise=PromisedResult(name="code", value=row["resultCode"])
    )


def _find_promise(row: CheckRow) -> PromisedResult:
    for name in ("cvvResponse", "avsResponse"):
        if name in row:
            return PromisedResult(name=name, value=row[name])
    return PromisedResult(name="code", value=row.get("firstResultCode") or row["resultCode"])


def list_sample_steps(sample: ApiSample) -> list[ApiSample]:
    """The samples that a run of ``sample`` sends, in their order; itself last."""
    before = [name for name in (sample.after, *_ALSO_BEFORE.get(sample.name, ())) if name]
    steps: list[ApiSample] = []
    for name in before:
        steps += [step for step in list_sample_steps(API_SAMPLES[name]) if step not in steps]
    return [*steps, sample]


def run_steps(steps: Sequence[ApiSample], channel: Channel, *, name: str, by: audit_log.Actor) -> list[SampleRun]:
    """Send ``steps`` in their order, as ``channel``. A refused step ends the run. ``name``: for the audit trail."""
    scopes = sorted({find_sample_endpoint(step).scope for step in steps})
    audit_log.record_audit_entry(by, "run sample", channel, after={"sample": name})
    ids: dict[str, str] = {}
    done: list[SampleRun] = []
    # The API speaks English and UTC, whatever the reader's back office does.
    with (
        timezone.override(UTC),
        translation.override("en"),
        lend_token(channel, name="Docs: Run", by=by, scopes=scopes) as token,
    ):
        for step in steps:
            run = _send_sample(step, channel, token, ids.get(step.after, ""), by.ip)
            done.append(run)
            if step is not steps[-1] and run.status >= 400:
                break
            if run.status == 200 and step.path.startswith(_KEEPING):
                ids[step.name] = str(run.answer.get("id", ""))
            elif run.status == 200 and step.path.startswith("/v1/checkouts"):
                # What follows a sent form still names the checkout.
                ids[step.name] = ids[step.after] if step.after else str(run.answer.get("id", ""))
    return done


def _send_sample(sample: ApiSample, channel: Channel, token: Secret, ident: str, ip: str | None) -> SampleRun:
    def fill_in(text: str) -> str:
        return ident if text.startswith("$") and text != ENTITY_VARIABLE else text

    path = "/".join(fill_in(part) for part in sample.path.split("/"))
    fields = {"entityId": channel.entity_id, **{name: fill_in(value) for name, value in sample.fields.items()}}
    used = token if sample.token == TOKEN_VARIABLE else Secret(sample.token) if sample.token is not None else None
    answer = call_own_api(sample.method, path, fields, token=used, headers=sample.headers, ip=ip or "127.0.0.1")
    return SampleRun(sample=sample, path=path, status=answer.status, answer=answer.body)


def find_run_payment(run: SampleRun) -> Payment | None:
    """The payment that a run made, or that it read."""
    ndc = identifiers.parse_ndc(str(run.answer.get("ndc", "")))
    logged = RequestLog.objects.filter(pk=ndc).values_list("payment", flat=True).first() if ndc else None
    named = logged or identifiers.parse_id(str(run.answer.get("id", "")))
    return Payment.objects.filter(pk=named).only("pk", "merchant", "channel").first() if named else None


def list_reader_channels(user: Any) -> list[Channel]:
    """The channels for which ``user`` may run samples, the oldest first."""
    rows = permissions.list_permitted_channels(user, SAMPLE_RUN_PERMISSION).filter(active=True, merchant__active=True)
    return list(rows.select_related("merchant").order_by("created_at", "id")[:MAX_READER_CHANNELS])


@require_safe
@never_cache
def docs_reader_view(request: HttpRequest) -> HttpResponse:
    """GET /admin/docs/reader: who reads the docs, for the Run buttons. A visitor is led to the sign-in."""
    _refuse_live()
    if not admin.site.has_permission(request):
        return redirect_to_login(request.path, "/admin/login/")
    channels = [
        {"entityId": row.entity_id, "name": f"{row.merchant.name}: {row.name}"}
        for row in list_reader_channels(request.user)
    ]
    return JsonResponse({"channels": channels, "csrf": get_token(request), "notRun": sorted(SAMPLES_NOT_RUN)})


@require_POST
@never_cache
def run_sample_view(request: HttpRequest) -> JsonResponse:
    """POST /admin/docs/run: ``sample``, or ``row`` of the test data, and ``entityId``. Answers what was sent and what
    came back."""
    _refuse_live()
    if not admin.site.has_permission(request):
        return _build_fault("Sign in to the back office to run samples.", 403)
    user = request.user
    assert isinstance(user, User)
    row = list_test_data_runs(settings.GATEWAY_BASE_URL).get(request.POST.get("row", ""))
    sample = API_SAMPLES.get(request.POST.get("sample", ""))
    if row is None and "row" in request.POST:
        return _build_fault("row: no row of the test data has this name.", 400)
    if row is None and (sample is None or sample.name in SAMPLES_NOT_RUN):
        return _build_fault("sample: no sample that can be run has this name.", 400)
    entity = identifiers.parse_id(request.POST.get("entityId", ""))
    reached = permissions.list_permitted_channels(user, SAMPLE_RUN_PERMISSION).filter(active=True)
    channel = reached.filter(pk=entity).select_related("merchant").first() if entity else None
    if channel is None:
        return _build_fault("entityId: choose a channel for which you may issue access tokens.", 403)
    try:
        throttle_sample_run(user.pk, clock.real_now())
    except ApiError as fault:
        refused = _build_fault("That were many runs: wait a minute.", 429)
        refused["Retry-After"] = fault.headers["Retry-After"]
        return refused
    by = audit_log.Actor(name=user.get_username(), ip=resolve_client_ip(request))
    open_run_inspector(channel, by)
    steps = row.steps if row is not None else list_sample_steps(sample) if sample is not None else ()
    runs = run_steps(steps, channel, name=f"test data: {row.title}" if row is not None else steps[-1].name, by=by)
    last = runs[-1]
    payment = find_run_payment(last)
    return JsonResponse(
        {
            "runs": [_render_run(run) for run in runs],
            "complete": last.sample is steps[-1],
            "payment": str(payment.pk) if payment is not None else "",
            "promise": _render_promise(row.promise, last) if row is not None else None,
            "redirect": last.answer.get("redirect", {}).get("url", "") if row is not None else "",
        }
    )


def open_run_inspector(channel: Channel, by: audit_log.Actor) -> None:
    """Have the built-in inspector take the channel's webhooks, so that a run can show them. A channel with the highest
    number of endpoints goes without."""
    try:
        open_inspector(channel.merchant, channel, WebhookEndpoint.Mode.SIGNED, by=by)
    except InvalidEndpointError:
        return


def _render_run(run: SampleRun) -> dict[str, Any]:
    return {
        "title": run.sample.title,
        "request": f"{run.sample.method} {run.path}",
        "status": run.status,
        "code": run.answer.get("result", {}).get("code", ""),
        "answer": highlight_json(run.answer),
        "ndc": run.answer.get("ndc", ""),
    }


def _render_promise(promise: PromisedResult, run: SampleRun) -> dict[str, Any]:
    return {"name": f"result.{promise.name}", "value": promise.value, "kept": promise.is_kept_by(run.answer)}


def _build_fault(words: str, status: int) -> JsonResponse:
    return JsonResponse({"fault": words}, status=status)


def _refuse_live() -> None:
    if settings.IS_LIVE:
        raise Http404

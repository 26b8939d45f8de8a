"""The webhook inspector, sample webhooks, and verification of pasted bodies. Test environment only, but for
verification."""

from __future__ import annotations

import json
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.backoffice.kit.base import MerchantPage, actor_from_request
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.waiting_calls import tell_of_too_many_calls
from gateway.backoffice.webhooks import webhook_samples
from gateway.backoffice.webhooks.webhook_forms import (
    VERIFICATION_TITLES,
    OfferedOwners,
    VerifyWebhookForm,
    explain_verification,
    find_endpoints,
)
from gateway.core import clock, identifiers
from gateway.core.masking import mask_text
from gateway.core.peer_json import make_storable, parse_peer_json
from gateway.models import InspectedWebhook, WebhookDelivery, WebhookEndpoint
from gateway.models.webhooks import WEBHOOK_KINDS
from gateway.notifications import claims, endpoints, message_verification
from gateway.notifications.endpoints import InvalidEndpointError
from gateway.notifications.message_verification import VerificationResult, VerificationVerdict
from gateway.notifications.signing import SigningKeys

MAX_SHOWN_MESSAGES: Final = 50


def open_inspector_view(page: MerchantPage, request: HttpRequest, offered: OfferedOwners) -> HttpResponse:
    """Open the inspector of a merchant or channel; create it if there is none."""
    back = redirect(reverse("admin:gateway_webhookendpoint_changelist"))
    if settings.IS_LIVE:
        raise Http404
    chosen = {key: whose for key, _name, whose in offered.rows}
    if request.method != "POST":
        context = {
            **page.admin_site.each_context(request),
            "title": _("Use the built-in inspector"),
            "opts": page.opts,
            "offered": offered.rows,
            "owners": offered,
        }
        return TemplateResponse(request, "admin/office/inspector_new.html", context)
    whose, mode = chosen.get(request.POST.get("place", "")), request.POST.get("mode", "signed")
    if whose is None or mode not in ("signed", "encrypted"):
        messages.error(request, _("Choose a merchant or a channel, and a mode."))
        return redirect(request.get_full_path())
    try:
        row = endpoints.open_inspector(whose.merchant, whose.channel, mode, by=actor_from_request(request))
    except InvalidEndpointError as fault:
        messages.error(request, str(fault))
        return back
    return redirect(reverse("admin:gateway_webhookendpoint_inspect", args=[row.pk]))


def show_inspector(page: MerchantPage, request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    """The inspector's page."""
    if not row.is_inspector or settings.IS_LIVE:
        raise Http404
    events = render_inspected_webhooks(row)
    context = {
        **page.admin_site.each_context(request),
        "title": _("Inspector"),
        "opts": page.opts,
        "original": row,
        "endpoint": row,
        "events": events,
        "kinds": WEBHOOK_KINDS,
        "newest": events[0]["row"].pk if events else 0,
        "may_change": page.has_change_permission(request, row),
        "live": row.state == WebhookEndpoint.State.ACTIVE,
    }
    return TemplateResponse(request, "admin/office/inspect.html", context)


def show_newer_messages(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    """Messages after ``?after=`` as HTML fragments; an open page asks every two seconds."""
    if not row.is_inspector or settings.IS_LIVE:
        raise Http404
    after = request.GET.get("after", "0")
    number = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
    answer = render(request, "admin/office/inspected.html", {"events": render_inspected_webhooks(row, number)})
    answer["Cache-Control"] = "no-store"
    return answer


def render_inspected_webhooks(row: WebhookEndpoint, after: int = 0) -> list[dict[str, Any]]:
    """The newest messages of an inspector for the template, each with the result of its verification."""
    rows = list(InspectedWebhook.objects.filter(endpoint=row, pk__gt=after).order_by("-id")[:MAX_SHOWN_MESSAGES])
    if not rows:
        return []
    deliveries = WebhookDelivery.objects.filter(pk__in=[one.delivery for one in rows]).in_bulk()
    keys = load_verification_keys(row)
    return [_render_message(one, deliveries.get(one.delivery), keys) for one in rows]


def _render_message(
    one: InspectedWebhook, delivery: WebhookDelivery | None, keys: SigningKeys | None
) -> dict[str, Any]:
    headers = {name.lower(): value for name, value in one.headers.items()}
    # Verified as of its arrival: the page may be viewed much later.
    verdict = message_verification.verify_message(keys, headers, one.body, one.at) if keys is not None else None
    return {
        "row": one,
        "delivery": delivery,
        "headers": sorted(one.headers.items()),
        "body": one.body if "x-initialization-vector" in headers else mask_text(one.body),
        "text": format_webhook_body(verdict.text if verdict is not None and verdict.text else ""),
        "summary": _summarize_payload(verdict.text if verdict is not None else ""),
        **_render_verdict(verdict),
        "payment": build_payment_page_url(delivery.payment) if delivery and delivery.payment else "",
    }


def _summarize_payload(text: str) -> str:
    """What a webhook is about, on one line: ``DB 92.00 EUR · VISA •••• 0000 · 000.100.110``. Empty if it cannot be
    read."""
    try:
        payload = json.loads(text)["payload"]
    except (ValueError, TypeError, LookupError):
        return ""
    if not isinstance(payload, dict):
        return ""

    def member(*names: str) -> str:
        found: Any = payload
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, str) else ""

    last4 = member("card", "last4Digits")
    parts = (
        (member("paymentType"), member("amount"), member("currency")),
        (member("paymentBrand"), last4 and f"•••• {last4}"),
        (member("result", "code"),),
        (member("merchantTransactionId"),),
    )
    return " · ".join(filter(None, (" ".join(filter(None, part)) for part in parts)))


def send_sample(request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
    """Send a sample of a kind to this endpoint, whether or not it is an inspector."""
    if settings.IS_LIVE or row.mode == WebhookEndpoint.Mode.RETURN:
        raise Http404
    name = "inspect" if row.is_inspector else "change"
    back = redirect(reverse(f"admin:gateway_webhookendpoint_{name}", args=[row.pk]))
    kind = request.POST.get("kind", "")
    if request.method != "POST" or kind not in WEBHOOK_KINDS:
        return back
    with tell_of_too_many_calls(request):
        _send_sample(request, row, kind)
    return back


def _send_sample(request: HttpRequest, row: WebhookEndpoint, kind: str) -> None:
    outcome = endpoints.send_single_message(row, f"sample {kind}", webhook_samples.build_sample_webhook(row, kind))
    words = endpoints.ActivationResult(active=outcome.is_success, outcome=outcome).words
    if outcome.is_success:
        messages.success(request, _("Sample of %(kind)s: it %(words)s.") % {"kind": kind, "words": words})
    else:
        why = f"{outcome.failure}: {outcome.reason}" if outcome.failure else f"{outcome.status}"
        messages.error(request, _("Sample of %(kind)s: %(words)s.") % {"kind": kind, "words": why})


# --- verify this body ---------------------------------------------------------------------------------------------


def verify_webhook_body(page: MerchantPage, request: HttpRequest, permitted: QuerySet[WebhookEndpoint]) -> HttpResponse:
    """Verify a pasted body with the secret of one of the ``permitted`` endpoints. Nothing of it is stored."""
    found = find_endpoints(request, permitted)
    named = identifiers.parse_id(request.GET.get("endpoint", ""))
    rows = found.rows
    if named is not None and all(row.pk != named for row in rows):
        # An endpoint's own page leads here, wherever it stands in the list.
        rows = [*permitted.filter(pk=named).select_related("merchant"), *rows]
    offered = [
        (row.pk.hex, f"{row.merchant.name}: {row.url if not row.is_inspector else _('Inspector')} ({_(row.mode)})")
        for row in rows
    ]
    initial = {"endpoint": request.GET.get("endpoint", "")}
    form = VerifyWebhookForm(request.POST if request.method == "POST" else None, offered=offered, initial=initial)
    pasted: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        pasted = _judge_pasted_body(form, {row.pk.hex: row for row in rows})
    context = {
        **page.admin_site.each_context(request),
        "title": _("Verify this body"),
        "opts": page.opts,
        "form": form,
        "found": found,
        "none": not offered and not found.name,
        **pasted,
    }
    answer = TemplateResponse(request, "admin/office/verify.html", context)
    answer["Cache-Control"] = "no-store"
    return answer


def _judge_pasted_body(form: VerifyWebhookForm, rows: dict[str, WebhookEndpoint]) -> dict[str, Any]:
    chosen = rows[form.cleaned_data["endpoint"]]
    headers = message_verification.parse_pasted_headers(form.cleaned_data["headers"])
    # A browser sends line ends as CR LF, whatever was pasted.
    body = form.cleaned_data["body"].replace("\r\n", "\n")
    keys = load_verification_keys(chosen)
    if keys is None:
        return {"verdict": {"tone": "bad", "text": _("The secret of this endpoint cannot be opened.")}}
    verdict, fits = message_verification.verify_message(keys, headers, body, clock.real_now()), None
    if verdict.kind == VerificationResult.WRONG_KEY:
        fits = next((row for row in rows.values() if row.pk != chosen.pk and _can_decrypt(row, headers, body)), None)
    return {
        **_render_verdict(verdict),
        "text": format_webhook_body(verdict.text),
        "fits": fits,
        "previous": verdict.previous,
    }


def _can_decrypt(row: WebhookEndpoint, headers: dict[str, str], body: str) -> bool:
    keys = load_verification_keys(row)
    return keys is not None and bool(message_verification.verify_message(keys, headers, body, clock.real_now()).text)


def _render_verdict(verdict: VerificationVerdict | None) -> dict[str, Any]:
    if verdict is None:
        return {"verdict": {"tone": "bad", "text": _("The secret of this endpoint cannot be opened.")}, "why": ""}
    tone, title = VERIFICATION_TITLES[verdict.kind]
    return {"verdict": {"tone": tone, "text": title}, "why": explain_verification(verdict)}


def load_verification_keys(row: WebhookEndpoint) -> SigningKeys | None:
    """The endpoint's keys that open its webhooks."""
    honoured = row.previous_until is not None and row.previous_until > clock.real_now()
    return claims.unseal_signing_keys(row.pk, row.secret_sealed, row.previous_sealed if honoured else None)


def format_webhook_body(text: str) -> str:
    """JSON indented, other text as is; what looks like a secret or a card number is masked. Whoever has the secret can
    sign what is no message of ours."""
    if not text:
        return ""
    try:
        return mask_text(json.dumps(parse_peer_json(text), indent=2, ensure_ascii=False))
    except ValueError:
        return mask_text(make_storable(text))

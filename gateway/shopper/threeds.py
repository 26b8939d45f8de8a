"""Shopper pages of 3-D Secure: the issuer's method page, the simulated bank's challenge, its banking app.

A page is rendered from the authentication's row, so reloading, going back or a second tab show the current step; every
move is a POST that ends in a redirect to the page. The address carries the token of its payment (or of a standalone
authentication), and no page needs a cookie or a script. The simulated bank exists in the test environment only, with
the simulated directory server. Source: Part B, 3D Secure; decisions, section 5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from gateway.catalogue.formats import is_openable_address
from gateway.connectors.simulator import acs as simulated_acs
from gateway.core import brands, clock, identifiers, languages
from gateway.models import Authentication, AuthenticationStep, Payment, Status
from gateway.payments import shopper_return, shopper_tokens
from gateway.shopper.page_language import build_language_context
from gateway.shopper.views import build_shopper_trace, find_shopper_payment, redirect_to_merchant
from gateway.threeds import authentications, server
from gateway.threeds.outcome import AuthenticationOutcome
from gateway.threeds_protocol.messages import ThreeDSMessage
from gateway.threeds_protocol.networks import THREEDS_NETWORK_BY_KEY

CREQ_BY_BUTTON: Final[Mapping[str, ThreeDSMessage]] = {
    "resend": {"resendChallenge": "Y"},
    "cancel": {"challengeCancel": "01"},
    "pass": {"simulate": "Y"},
    "fail": {"simulate": "N"},
    "unavailable": {"simulate": "U"},
}
"""What each button sends to the bank; ``code`` sends what was typed."""
CHALLENGE_NOTICES: Final = ("wrong", "resent", "resends", "empty")
MAX_CREQ_BYTES: Final = 8_192
_SDK_NAMES: Final = frozenset({"challengeDataEntry", "challengeCancel", "resendChallenge", "oobContinue"})
_SDK_VALUE: Final = re.compile("[ -~]{0,64}").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeVisit:
    """One shopper at one authentication. ``payment``: None for a standalone authentication."""

    row: Authentication
    payment: Payment | None
    token: str


@csrf_exempt
@xframe_options_exempt
@require_http_methods(["GET", "POST"])
def authentication_view(request: HttpRequest, target: str) -> HttpResponse:
    """GET /shopper/{id}: the page of the authentication's current step, or the redirect to the merchant. POST: a move
    of the shopper, or of an app's SDK (JSON)."""
    visit = _find_visit(request, target)
    if visit is None:
        return redirect_to_merchant(request, find_shopper_payment(request, target))
    deadline = visit.row.deadline if visit.row.step != AuthenticationStep.DONE else None
    if deadline is not None and clock.merchant_now(visit.row.merchant) >= deadline:
        _continue_payment(request, visit, server.expire_authentication(visit.row.id))
        visit.row.refresh_from_db()
    if request.method == "POST" and request.content_type == "application/json":
        return _answer_sdk(request, visit)
    if request.method == "POST":
        info = _apply_move(request, visit)
        more = {"info": info} if info else {}
        if request.POST.get("embedded"):
            more["embedded"] = "true"
        if code := languages.resolve_language(request.POST.get("locale", "")):
            more["locale"] = code
        return _forbid_storing(
            HttpResponse(status=303, headers={"Location": _build_step_address(target, visit.token, **more)})
        )
    return _render_step(request, visit)


@csrf_exempt
@xframe_options_exempt
@require_http_methods(["GET", "POST"])
def method_page_view(request: HttpRequest) -> HttpResponse:
    """GET /shopper/method: the simulated issuer's method page, loaded in a hidden frame. It collects nothing."""
    return _allow_framing(render(request, "shopper/method_page.html"))


@csrf_exempt
@xframe_options_exempt
@require_http_methods(["GET", "POST"])
def challenge_return_view(request: HttpRequest, target: str) -> HttpResponse:
    """POST /shopper/{id}/challenged (notificationURL): the browser is back from the issuer's challenge page. What it
    brings proves nothing; the result comes from the 3DS server."""
    visit = _find_visit(request, target)
    if visit is not None and visit.row.server_url:
        _continue_payment(request, visit, server.collect_server_result(visit.row.id))
    token = request.GET.get("token") or request.POST.get("token") or ""
    location = _build_step_address(target, token, waiting="true")
    return _forbid_storing(HttpResponse(status=303, headers={"Location": location}))


def _find_visit(request: HttpRequest, target: str) -> ChallengeVisit | None:
    """The visit for a valid token; None for a payment without an authentication. Raises Http404 without the right
    token."""
    ident = identifiers.parse_id(target)
    token = request.GET.get("token") or request.POST.get("token") or ""
    if ident is None or not shopper_tokens.is_shopper_token(ident, token):
        raise Http404
    payment = shopper_return.find_payment_by_token(ident, token)
    if payment is not None:
        row = authentications.find_authentication_of_payment(payment.id)
        return ChallengeVisit(row=row, payment=payment, token=token) if row is not None else None
    alone = authentications.find_standalone_authentication(ident)
    if alone is None:
        raise Http404
    return ChallengeVisit(row=alone, payment=None, token=token)


def _apply_move(request: HttpRequest, visit: ChallengeVisit) -> str:
    """Apply the shopper's button. Returns a message for the page, or ''.

    A form of the authentication before the present one, sent again or by another tab, moves nothing: the answer leads
    to the present step.
    """
    move, present = request.POST.get("move", ""), str(visit.row.attempt)
    if request.POST.get("attempt", present) != present:
        return ""
    if visit.row.step in (AuthenticationStep.METHOD, AuthenticationStep.ASKING):
        _continue_payment(
            request, visit, server.complete_method(visit.row.id, completed=request.POST.get("completed") != "N")
        )
        return ""
    creq = CREQ_BY_BUTTON.get(move) or {"challengeDataEntry": request.POST.get("code", "")[:64]}
    cres, outcome = server.continue_challenge(visit.row.id, creq)
    _continue_payment(request, visit, outcome)
    info = str(cres.get("challengeInfo", ""))
    return info if info in CHALLENGE_NOTICES else ""


def _answer_sdk(request: HttpRequest, visit: ChallengeVisit) -> HttpResponse:
    """A CReq of an app's SDK as plain JSON by EMV names, answered with the CRes; with Erro if it is no CReq (101) or a
    value has the wrong format (203)."""
    try:
        sent = json.loads(request.body[:MAX_CREQ_BYTES])
        creq = {name: value for name, value in sent.items() if name in _SDK_NAMES}
    except (ValueError, AttributeError, RecursionError):
        return _build_erro("101")
    if not all(isinstance(value, str) and _SDK_VALUE(value) for value in creq.values()):
        return _build_erro("203")
    if visit.row.server_url:
        return _build_erro("101")
    cres, outcome = server.continue_challenge(visit.row.id, creq)
    _continue_payment(request, visit, outcome)
    return _forbid_storing(JsonResponse(cres))


def _build_erro(code: str) -> HttpResponse:
    return _forbid_storing(JsonResponse({"messageType": "Erro", "errorCode": code}, status=400))


def _continue_payment(request: HttpRequest, visit: ChallengeVisit, outcome: AuthenticationOutcome) -> None:
    if visit.payment is not None:
        shopper_return.apply_authentication_outcome(visit.payment, outcome, build_shopper_trace(request, visit.payment))


def _render_step(request: HttpRequest, visit: ChallengeVisit) -> HttpResponse:
    row = visit.row
    if row.step == AuthenticationStep.DONE:
        return _finish_authentication(request, visit)
    if row.server_url:
        return _render_issuer_step(request, visit)
    template = {
        AuthenticationStep.METHOD: "shopper/method.html",
        AuthenticationStep.ASKING: "shopper/method.html",
        AuthenticationStep.CHALLENGE: "shopper/challenge.html",
        AuthenticationStep.DECOUPLED: "shopper/decoupled.html",
    }[AuthenticationStep(row.step)]
    info = request.GET.get("info", "")
    words = _choose_texts(request, visit)
    t = words["t"]
    context = words | {
        "row": row,
        "token": visit.token,
        "embedded": request.GET.get("embedded") == "true",
        "asking": row.step == AuthenticationStep.ASKING,
        "bank": _get_bank(row),
        "network": THREEDS_NETWORK_BY_KEY[row.network].title,
        "merchant": row.merchant.name,
        "info": info if info in CHALLENGE_NOTICES else "",
        "left": t["triesLeft"].format(n=simulated_acs.MAX_CODE_ATTEMPTS - row.attempts),
        "no_more": row.resends >= simulated_acs.MAX_CODE_RESENDS,
        "code": t["codeHint"].format(code=simulated_acs.ONE_TIME_CODE),
        "until": t["until"].format(time=f"{row.deadline:%H:%M}"),
        "hints": _list_hints(row),
        "window": row.window,
    }
    return _allow_framing(render(request, template, context), _build_return_url(visit))


def _render_issuer_step(request: HttpRequest, visit: ChallengeVisit) -> HttpResponse:
    """The page of an external 3DS server's step: it leads to the issuer's own pages, or waits for the result."""
    row = visit.row
    challenge = row.step == AuthenticationStep.CHALLENGE
    waiting = request.GET.get("waiting") == "true" or row.step in (
        AuthenticationStep.ASKING,
        AuthenticationStep.DECOUPLED,
    )
    if challenge and waiting and request.GET.get("token"):
        _continue_payment(request, visit, server.collect_server_result(row.id))
        row.refresh_from_db()
        if row.step == AuthenticationStep.DONE:
            return _finish_authentication(request, visit)
    context = _choose_texts(request, visit) | {
        "row": row,
        "token": visit.token,
        "embedded": request.GET.get("embedded") == "true",
        "bank": row.merchant.name,
        "network": THREEDS_NETWORK_BY_KEY[row.network].title,
        "merchant": row.merchant.name,
        "window": row.window,
        "waiting": waiting,
        "challenge": challenge,
        "creq": authentications.build_creq(row),
        "method_data": authentications.build_method_data(row.id, f"{settings.GATEWAY_BASE_URL}/shopper/method"),
    }
    page = row.acs_url if challenge else row.method_url
    return _allow_framing(render(request, "shopper/issuer.html", context), _build_return_url(visit), page)


def _finish_authentication(request: HttpRequest, visit: ChallengeVisit) -> HttpResponse:
    """Redirect at the end. A payment that is still waiting is continued first: the shopper may have left in between."""
    payment = visit.payment
    if payment is not None:
        payment = shopper_return.apply_authentication_outcome(
            payment, authentications.outcome_from_authentication(visit.row), build_shopper_trace(request, payment)
        )
        if payment.status == Status.PENDING and _has_further_step(visit):
            more = {name: request.GET[name] for name in ("embedded", "locale") if name in request.GET}
            location = _build_step_address(payment.id.hex, visit.token, **more)
            return _forbid_storing(HttpResponse(status=303, headers={"Location": location}))
    if request.GET.get("embedded") == "true":
        ident = payment.id if payment is not None else visit.row.id
        return _allow_framing(
            render(request, "shopper/done.html", {"ident": ident.hex} | _choose_texts(request, visit))
        )
    if payment is not None:
        return _allow_framing(redirect_to_merchant(request, payment), _build_return_url(visit))
    url = _build_return_url(visit)
    if not url:
        return _allow_framing(
            render(request, "shopper/authenticated.html", {"row": visit.row} | _choose_texts(request, visit))
        )
    return _forbid_storing(HttpResponse(status=303, headers={"Location": url}))


def _has_further_step(visit: ChallengeVisit) -> bool:
    """Whether the payment waits for an authentication after that of the visit: its bank declined it without one."""
    assert visit.payment is not None
    newest = authentications.find_authentication_of_payment(visit.payment.id)
    return newest is not None and newest.id != visit.row.id and newest.step != AuthenticationStep.DONE


def _choose_texts(request: HttpRequest, visit: ChallengeVisit) -> dict[str, Any]:
    payment = visit.payment
    return build_language_context(request, str(payment.request.get("locale", "")) if payment is not None else "")


def _build_return_url(visit: ChallengeVisit) -> str:
    """shopperResultUrl with id and resourcePath; '' if there is none, or a browser must not be sent to it."""
    if visit.payment is not None:
        url = shopper_return.build_result_url(visit.payment) or ""
    elif visit.row.return_url:
        url = shopper_return.build_shopper_return_url(visit.row.return_url, f"/v1/threeDSecure/{visit.row.id.hex}")
    else:
        url = ""
    return url if is_openable_address(url) else ""


def _build_step_address(target: str, token: str, **more: str) -> str:
    return f"/shopper/{target}?{urlencode({'token': token, **more})}"


def _get_bank(row: Authentication) -> str:
    issuer = brands.find_issuer(row.card[: brands.ISSUER_BIN_DIGITS])
    return (issuer.bank if issuer is not None else "") or "Test Bank"


def _list_hints(row: Authentication) -> list[tuple[str, str]]:
    """The merchant's hints to the bank, for the test panel (ruling B11.12)."""
    areq: dict[str, Any] = next((said for said in row.messages if said.get("messageType") == "AReq"), {})
    names = (
        "messageCategory",
        "threeDSRequestorAuthenticationInd",
        "threeRIInd",
        "threeDSRequestorChallengeInd",
        "threeDSCompInd",
        "recurringExpiry",
        "recurringFrequency",
        "purchaseInstalData",
    )
    return [(name, str(areq[name])) for name in names if name in areq]


def _allow_framing(response: HttpResponse, form_target: str = "", issuer_page: str = "") -> HttpResponse:
    """A page that a merchant's page may frame: a challenge is shown in its window. The response to a form may redirect
    to the merchant, which browsers count as the form's target. ``issuer_page``: of an external ACS, which is framed or
    gets a form, and may lead to further pages of its own."""
    csp: dict[str, list[str]] = {"frame-ancestors": ["*"], "frame-src": ["'self'"]}
    if form_target:
        parts = urlsplit(form_target)
        web = parts.scheme in ("http", "https")
        csp["form-action"] = [
            "'self'",
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if web else f"{parts.scheme}:",
        ]
    if issuer_page:
        # The hosts that issuers lead the browser over are not known beforehand.
        csp |= {"frame-src": ["'self'", "https:", "http:"], "form-action": ["'self'", "https:", "http:"]}
    response._csp_config = _POLICY | csp  # type: ignore[attr-defined]
    return _forbid_storing(response)


_POLICY: Final[dict[str, list[str]]] = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'"],
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "report-uri": [settings.POLICY_REPORTS_PATH],
}


def _forbid_storing(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    return response

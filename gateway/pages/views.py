"""The pages that people read: start page, docs, test data, and the OpenAPI document for their tools.

All of them are public. What they tell comes from the catalogue and the simulator's tables; only the test-data page
reads the database, for the results of its self-test.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified, JsonResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.utils.http import parse_etags, quote_etag
from django.views.decorators.http import require_safe

from gateway.api.envelope import plain_answer
from gateway.api.errors import WRONG_METHOD
from gateway.brands import BRANDS
from gateway.catalogue.clients_names import CLIENTS_NAMES
from gateway.catalogue.openapi import document
from gateway.connectors.simulator.cards import AVS_MEANING, CVV_MEANING
from gateway.pages import clients, codes, navigation, reference, self_test, testdata
from gateway.pages.highlight import curl_html, json_html
from gateway.pages.promises import key_of
from gateway.pages.samples import ANSWERED_AT, OF_ENDPOINTS, SAMPLES, Sample
from gateway.pages.search import search
from gateway.payments.methods import types_of
from gateway.payments.operations import OPERATIONS
from gateway.threeds.acs import ONE_TIME_CODE

_RECEIVER: Final = Path(__file__).parent / "webhook_receiver.py"
_STATIC: Final = Path(__file__).resolve().parents[2] / "static"


@require_safe
def start(request: HttpRequest) -> HttpResponse:
    """The start page: what this is, and the ways in."""
    return _page(request, "pages/start.html", sample=shown(SAMPLES["pay"]))


@require_safe
def guide(request: HttpRequest, name: str = navigation.QUICK_START.name) -> HttpResponse:
    """One guide of the docs."""
    page = navigation.PAGES.get(name)
    if page is None or not page.template or (settings.IS_LIVE and page.test_only):
        raise Http404
    samples = {key.replace("-", "_"): shown(sample) for key, sample in SAMPLES.items()}
    return docs_page(
        request, page.template, page.name, page=page, samples=samples,
        operations=[(operation, sorted(operation.follows)) for operation in OPERATIONS.values() if operation.follows],
        methods=[(brand, types_of(brand.code)) for brand in BRANDS.values()],
        one_time_code=ONE_TIME_CODE, limit=settings.GATEWAY_THROTTLE_LIMIT,
        window_s=settings.GATEWAY_THROTTLE_WINDOW_S,
        receiver=_RECEIVER.read_text(encoding="utf-8") if page.name == "webhooks" else "",
        clients=list(clients.LANGUAGES.values()) if page.name == "clients" else [],
        clients_names=CLIENTS_NAMES, max_body_mib=settings.GATEWAY_MAX_BODY_BYTES // (1024 * 1024),
    )  # fmt: skip


@require_safe
def endpoint(request: HttpRequest, name: str) -> HttpResponse:
    """One endpoint of the reference. ``?q=`` keeps only the parameters that speak of it."""
    if name not in {one.name for one in reference.endpoints(settings.IS_LIVE)}:
        raise Http404
    whole = reference.endpoint_doc(name)
    wanted = request.GET.get("q", "")
    doc = reference.filtered(whole, wanted) if wanted else whole
    samples = [shown(SAMPLES[sample]) for sample in OF_ENDPOINTS[name]]
    return docs_page(
        request, "docs/endpoint.html", name, groups=whole.groups, doc=doc, endpoint=doc.endpoint, wanted=wanted,
        statuses=sorted({*doc.endpoint.answers, 405}),
        samples=samples, brands=list(BRANDS.values()) if name == "payment" else [],
    )  # fmt: skip


@require_safe
def result_codes(request: HttpRequest) -> HttpResponse:
    """Every result code. ``?q=`` keeps only those that speak of it."""
    wanted = request.GET.get("q", "")
    families = tuple(codes.matching(wanted)) if wanted else codes.families()
    return docs_page(
        request, "docs/result-codes.html", navigation.CODES.name, page=navigation.CODES, families=families,
        wanted=wanted, all_families=codes.families(),
    )  # fmt: skip


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """The search as a page."""
    query = request.GET.get("q", "")
    return docs_page(request, "docs/search.html", "search", query=query, found=search(query, live=settings.IS_LIVE))


@require_safe
def find_json(request: HttpRequest) -> HttpResponse:
    """The search as data, for the page's script."""
    found = search(request.GET.get("q", ""), live=settings.IS_LIVE)
    hits = [{"title": e.title, "kind": e.kind, "text": e.text, "url": e.url} for e in found]
    return JsonResponse({"found": hits})


@require_safe
def test_data(request: HttpRequest) -> HttpResponse:
    """The simulator's cards, accounts, shoppers' decisions, security codes and postcodes. Not in live."""
    if settings.IS_LIVE:
        raise Http404
    results = self_test.last_results()

    def tested(group: str, found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{**row, "tested": results.get(key_of(group, row))} for row in found]

    tables = [
        {"group": group, "cards": tested("cards", map(testdata.card_row, group.cards))}
        for group in testdata.card_groups()
    ]
    accounts = [
        {"anchor": group.anchor, "title": group.title, "about": group.about, "rows": tested(group.anchor, group.rows)}
        for group in testdata.account_groups()
    ]
    rows = testdata.rows()
    return docs_page(
        request, "docs/testdata.html", "testdata", page=navigation.PAGES["testdata"], tables=tables, accounts=accounts,
        redirects=tested("redirects", testdata.redirect_rows()),
        transfers=tested("transfers", testdata.transfer_rows()), cvv=tested("cvv", rows["cvv"]),
        postcodes=tested("postcodes", rows["postcodes"]), avs_meaning=AVS_MEANING, cvv_meaning=CVV_MEANING,
        wallets=rows["wallets"],
    )  # fmt: skip


@require_safe
def test_data_json(request: HttpRequest) -> HttpResponse:
    """The same rows as data. Not in live."""
    if settings.IS_LIVE:
        raise Http404
    return JsonResponse(testdata.rows())


@cache
def _document(base_url: str, environment: str) -> tuple[bytes, str]:
    body = json.dumps(document(base_url, environment), ensure_ascii=False, separators=(",", ":")).encode()
    return body, quote_etag(hashlib.sha256(body).hexdigest()[:32])


def openapi(request: HttpRequest) -> HttpResponse:
    """The API as OpenAPI 3.1: one string of bytes for everybody, with an ETag."""
    if request.method not in ("GET", "HEAD"):
        answer = plain_answer(405, WRONG_METHOD, "this path takes GET")
        answer["Allow"] = "GET"
        return answer
    body, etag = _document(settings.GATEWAY_BASE_URL, settings.GATEWAY_ENVIRONMENT)
    response = HttpResponse(body, content_type="application/json; charset=utf-8")
    response["ETag"] = etag
    response["Cache-Control"] = "public, no-cache"
    return response if not _unchanged(request, etag) else _not_modified(etag)


@require_safe
def client_file(request: HttpRequest, file: str) -> HttpResponse:
    """A ready client, made out of the OpenAPI document: a download with an ETag."""
    language = clients.LANGUAGES.get(file)
    if language is None:
        raise Http404
    body, etag = _client(file, settings.GATEWAY_BASE_URL, settings.GATEWAY_ENVIRONMENT)
    if _unchanged(request, etag):
        return _not_modified(etag)
    response = HttpResponse(body, content_type=f"{language.media_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{file}"'
    response["ETag"] = etag
    response["Cache-Control"] = "public, no-cache"
    return response


@cache
def _client(file: str, base_url: str, environment: str) -> tuple[bytes, str]:
    body = clients.client(clients.LANGUAGES[file], document(base_url, environment)).encode()
    return body, quote_etag(hashlib.sha256(body).hexdigest()[:32])


def _unchanged(request: HttpRequest, etag: str) -> bool:
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or any(one.removeprefix("W/") == etag for one in known)


def _not_modified(etag: str) -> HttpResponse:
    response = HttpResponseNotModified()
    response["ETag"] = etag
    return response


def shown(sample: Sample) -> dict[str, Any]:
    """A sample as its template walks it."""
    return {
        "sample": sample,
        "curl": curl_html(sample.curl(settings.GATEWAY_BASE_URL)),
        "answer": json_html(_here(sample.answer)),
        "brief": json_html(_here(sample.brief)),
        "good": sample.status < 400,
    }


def _here(answer: Any) -> Any:
    """An answer as this installation gives it: addresses of its own begin with its own base address."""
    if isinstance(answer, dict):
        return {key: _here(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_here(one) for one in answer]
    ours = isinstance(answer, str) and answer.startswith(ANSWERED_AT)
    return settings.GATEWAY_BASE_URL + answer.removeprefix(ANSWERED_AT) if ours else answer


def docs_page(
    request: HttpRequest, template: str, current: str, *, groups: tuple[reference.Group, ...] = (),
    **context: Any,
) -> HttpResponse:  # fmt: skip
    """A page of the docs with its menu; ``current`` names it there."""
    menu = navigation.menu(current, live=settings.IS_LIVE, groups=groups)
    return _page(request, template, menu=menu, section="docs", **context)


def _page(request: HttpRequest, template: str, **context: Any) -> HttpResponse:
    build = settings.GATEWAY_BUILD_NUMBER
    response = render(
        request,
        template,
        {
            "base_url": settings.GATEWAY_BASE_URL,
            "environment": settings.GATEWAY_ENVIRONMENT,
            "live": settings.IS_LIVE,
            "build": build,
            "commit": build[:7],
            "assets": {name.replace(".", "_"): _asset(name) for name in ("tollhouse.css", "docs.css", "docs.js")},
            **context,
        },
    )
    response["Cache-Control"] = "no-cache"
    return response


@cache
def _asset(name: str) -> str:
    """A static file's address with a mark of its content, so that a new one is fetched at once."""
    mark = hashlib.sha256((_STATIC / name).read_bytes()).hexdigest()[:8]
    return f"{static(name)}?v={mark}"

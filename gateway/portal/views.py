"""Views of the portal: start page, docs, test data, and the OpenAPI document.

All of them are public. Their content comes from the files of docs/, the catalogue and the simulator's tables; only the
test data page reads the database, for its self-test results.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.http import parse_etags, quote_etag
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from gateway.api.envelope import build_plain_response
from gateway.api.errors import WRONG_METHOD_CODE
from gateway.catalogue.openapi import build_openapi
from gateway.connectors.simulator.cards import AVS_MEANING, CVV_MEANING
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.curl import format_curl_command
from gateway.portal import documents, navigation, reference, result_code_docs, self_test, testdata
from gateway.portal.client_packages import list_client_packages, list_plug_ins
from gateway.portal.compression import compress_response
from gateway.portal.highlight import highlight_json, highlight_sample
from gateway.portal.openapi_examples import add_answer_examples
from gateway.portal.page_frame import build_page_frame
from gateway.portal.sample_code import format_sample, list_sample_languages
from gateway.portal.samples import API_SAMPLES, SAMPLE_BASE_URL, SAMPLES_BY_ENDPOINT, ApiSample
from gateway.portal.search import find_request_page, search_docs, wait_for_search_index
from gateway.portal.search_budget import SEARCH_RETRY_AFTER_S, spend_search
from gateway.portal.self_test_checks import build_check_key

RESOURCE_PATH: Final = re.compile(
    r"/v1/(?:checkouts/[0-9A-F]{32}-[0-9A-Za-z]{1,15}/(?:payment|registration)|payments/[0-9a-f]{32})"
)
"""The resourcePath that a shopper comes back with."""
SHOWN_ID: Final = re.compile(r"[0-9A-Za-z-]{32,48}")
_ASSETS: Final = {
    "tollhouse_css": "tollhouse.css", "docs_css": "docs.css", "docs_js": "docs.js", "runs_js": "runs.js",
}  # fmt: skip


@require_safe
def start_page_view(request: HttpRequest) -> HttpResponse:
    """The start page: what the gateway is, with links to everything."""
    return _render_page(request, "pages/start.html", sample=render_sample(API_SAMPLES["pay"]))


@require_safe
def document_view(request: HttpRequest, name: str = documents.QUICK_START_DOCUMENT) -> HttpResponse:
    """One document of docs/."""
    if name not in documents.list_documents() or (settings.IS_LIVE and name in documents.TEST_ONLY_DOCUMENTS):
        raise Http404
    return render_document(
        request,
        name,
        limit=settings.GATEWAY_THROTTLE_LIMIT,
        window_s=settings.GATEWAY_THROTTLE_WINDOW_S,
        max_body_mib=settings.GATEWAY_MAX_BODY_BYTES // (1024 * 1024),
    )


def render_document(request: HttpRequest, name: str, **context: Any) -> HttpResponse:
    """A document as a page. ``context``: what the templates of its parts (docs/parts/) want."""
    document = documents.load_document(name, live=settings.IS_LIVE)

    def render_part(kind: str, part: str) -> str:
        if kind == "site":
            return render_to_string(f"docs/parts/{part}.html", context)
        return render_to_string(f"docs/{kind}.html", {"item": render_sample(API_SAMPLES[part])})

    def fill_in(html: str) -> SafeString:
        return documents.fill_in(html, render_part)

    return render_docs_page(
        request,
        "docs/document.html",
        name,
        sections=document.menu_sections,
        page={"title": document.plain_title, "about": document.summary},
        heading=fill_in(document.title),
        lead=fill_in(document.lead),
        intro=fill_in(document.intro),
        parts=[
            {
                "anchor": section.anchor,
                "aliases": section.aliases,
                "title": fill_in(section.title),
                "html": fill_in(section.html),
                "panel": fill_in(section.panel),
            }
            for section in document.sections
        ],
    )


@require_safe
def result_view(request: HttpRequest) -> HttpResponse:
    """Where the docs' sample page leads a shopper: what came back, and the command that reads it. Not in live."""
    if settings.IS_LIVE:
        raise Http404
    ident, path = request.GET.get("id", ""), request.GET.get("resourcePath", "")
    known = RESOURCE_PATH.fullmatch(path) is not None and SHOWN_ID.fullmatch(ident) is not None
    curl = format_curl_command("GET", f"{settings.GATEWAY_BASE_URL}{path}", {}) if known else ""
    return render_docs_page(
        request,
        "docs/result.html",
        "widget",
        page={"title": "The shopper is back", "about": "What your shop gets, and what it asks next."},
        ident=ident if known else "",
        resource_path=path if known else "",
        curl=highlight_sample(curl, "curl") if known else "",
        sent=bool(ident or path),
    )


@require_safe
def endpoint_view(request: HttpRequest, name: str) -> HttpResponse:
    """One endpoint of the reference. ``?q=`` keeps only the parameters that mention it."""
    if name not in {one.name for one in reference.list_endpoints(settings.IS_LIVE)}:
        raise Http404
    whole = reference.build_endpoint_doc(name)
    wanted = request.GET.get("q", "")
    doc = reference.filter_endpoint_doc(whole, wanted) if wanted else whole
    samples = [render_sample(API_SAMPLES[sample]) for sample in SAMPLES_BY_ENDPOINT[name]]
    return render_docs_page(
        request,
        "docs/endpoint.html",
        name,
        groups=whole.groups,
        doc=doc,
        endpoint=doc.endpoint,
        wanted=wanted,
        statuses=sorted({*doc.endpoint.answers, 405}),
        samples=samples,
        brands=list(PAYMENT_BRANDS.values()) if name == "payment" else [],
    )


@require_safe
def result_codes_view(request: HttpRequest) -> HttpResponse:
    """Every result code. ``?q=`` keeps only those that mention it."""
    wanted = request.GET.get("q", "")
    families = tuple(result_code_docs.filter_families(wanted)) if wanted else result_code_docs.list_families()
    return render_docs_page(
        request,
        "docs/result-codes.html",
        navigation.RESULT_CODES_PAGE,
        page={"title": "Result codes", "about": "Every code: what it means and what to do next."},
        families=families,
        wanted=wanted,
        all_families=result_code_docs.list_families(),
    )


@require_safe
def search_view(request: HttpRequest) -> HttpResponse:
    """The search as a page."""
    query = request.GET.get("q", "")
    if address := find_request_page(query):
        return HttpResponseRedirect(address)
    if not _may_search(query):
        page = render_docs_page(request, "docs/search.html", "search", query=query, busy=True)
        page["Refresh"] = str(SEARCH_RETRY_AFTER_S)
        return _refuse_search(page)
    return render_docs_page(
        request, "docs/search.html", "search", query=query, found=search_docs(query, live=settings.IS_LIVE)
    )


def _may_search(query: str) -> bool:
    """False while this process has searched as much as it may, or makes its index and enough wait for that."""
    return not query.strip() or (spend_search() and wait_for_search_index(settings.IS_LIVE))


def _refuse_search(refusal: HttpResponse) -> HttpResponse:
    refusal.status_code = 429
    refusal["Retry-After"] = str(SEARCH_RETRY_AFTER_S)
    return refusal


@require_safe
def search_json_view(request: HttpRequest) -> HttpResponse:
    """The search as data, for the page's script."""
    query = request.GET.get("q", "")
    if address := find_request_page(query):
        hit = {
            "title": "Open this request",
            "kind": "ndc",
            "text": "In the back office, for who may see it",
            "url": address,
        }
        return JsonResponse({"found": [hit]})
    if not _may_search(query):
        return _refuse_search(JsonResponse({"found": [], "message": "Too many searches at a time: try again."}))
    found = search_docs(query, live=settings.IS_LIVE)
    hits = [{"title": e.title, "kind": e.kind, "text": e.text, "url": e.url} for e in found]
    return JsonResponse({"found": hits})


@require_safe
def testdata_view(request: HttpRequest) -> HttpResponse:
    """The simulator's cards, accounts, shoppers' decisions, security codes and postcodes. Not in live."""
    if settings.IS_LIVE:
        raise Http404
    results = self_test.load_last_results()

    def tested(group: str, found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        keyed = [(row, build_check_key(group, row)) for row in found]
        return [{**row, "key": key, "tested": results.get(key)} for row, key in keyed]

    tables = [
        {"group": group, "cards": tested("cards", map(testdata.render_card_row, group.cards))}
        for group in testdata.list_card_groups()
    ]
    accounts = [
        {"anchor": group.anchor, "title": group.title, "about": group.about, "rows": tested(group.anchor, group.rows)}
        for group in testdata.list_account_groups()
    ]
    rows = testdata.build_test_data()
    return render_docs_page(
        request,
        "docs/testdata.html",
        navigation.TESTDATA_PAGE,
        page=navigation.list_docs_pages()[navigation.TESTDATA_PAGE],
        tables=tables,
        accounts=accounts,
        redirects=tested("redirects", testdata.list_redirect_rows()),
        transfers=tested("transfers", testdata.list_transfer_rows()),
        cvv=tested("cvv", rows["cvv"]),
        postcodes=tested("postcodes", rows["postcodes"]),
        avs_meaning=AVS_MEANING,
        cvv_meaning=CVV_MEANING,
        wallets=rows["wallets"],
    )


@require_safe
def testdata_json_view(_request: HttpRequest) -> HttpResponse:
    """GET /testdata.json: the rows of the test data page as data. Not in live."""
    if settings.IS_LIVE:
        raise Http404
    return JsonResponse(testdata.build_test_data())


@cache
def _build_document(base_url: str, environment: str) -> tuple[bytes, str]:
    document = add_answer_examples(build_openapi(base_url, environment), base_url)
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    # Weak: the same for the plain and the compressed form.
    return body, f"W/{quote_etag(hashlib.sha256(body).hexdigest()[:32])}"


def openapi_view(request: HttpRequest) -> HttpResponse:
    """The API as OpenAPI 3.1: the same bytes for everyone, with an ETag."""
    if request.method not in ("GET", "HEAD"):
        answer = build_plain_response(405, WRONG_METHOD_CODE, "this path takes GET, HEAD")
        answer["Allow"] = "GET, HEAD"
        return answer
    body, etag = _build_document(settings.GATEWAY_BASE_URL, settings.GATEWAY_ENVIRONMENT)
    response = HttpResponse(body, content_type="application/json; charset=utf-8")
    response["ETag"] = etag
    response["Cache-Control"] = "public, no-cache"
    if _is_unchanged(request, etag):
        response = _build_not_modified(etag)
        response["Cache-Control"] = "public, no-cache"
    return compress_response(request, response)


@require_safe
def client_package_view(request: HttpRequest, file: str) -> HttpResponse:
    """A client package or plug-in: a download with an ETag."""
    package = list_client_packages().get(file) or list_plug_ins().get(file)
    if package is None:
        raise Http404
    body = package.build()
    etag = quote_etag(hashlib.sha256(body).hexdigest()[:32])
    if _is_unchanged(request, etag):
        return _build_not_modified(etag)
    response = HttpResponse(body, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{file}"'
    response["ETag"] = etag
    response["Cache-Control"] = "public, no-cache"
    return response


def _is_unchanged(request: HttpRequest, etag: str) -> bool:
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or any(one.removeprefix("W/") == etag.removeprefix("W/") for one in known)


def _build_not_modified(etag: str) -> HttpResponse:
    response = HttpResponseNotModified()
    response["ETag"] = etag
    return response


def render_sample(sample: ApiSample) -> dict[str, Any]:
    """A sample for its template."""
    return {
        "sample": sample,
        "curl": _render_sample_code(sample.name, "curl", settings.GATEWAY_BASE_URL),
        "languages": " ".join(list_sample_languages(sample)),
        "answer": highlight_json(_localize_addresses(sample.answer)),
        "brief": highlight_json(_localize_addresses(sample.brief)),
        "good": sample.status < 400,
    }


@require_safe
def sample_code_view(request: HttpRequest, name: str, language: str) -> HttpResponse:
    """A sample in one of its languages: highlighted HTML that the docs' script puts into the page."""
    sample = API_SAMPLES.get(name)
    if sample is None or language not in list_sample_languages(sample):
        raise Http404
    body = _render_sample_code(name, language, settings.GATEWAY_BASE_URL).encode()
    etag = quote_etag(hashlib.sha256(body).hexdigest()[:32])
    response = HttpResponse(body) if not _is_unchanged(request, etag) else HttpResponseNotModified()
    response["ETag"] = etag
    response["Cache-Control"] = "public, no-cache"
    return response


@cache
def _render_sample_code(name: str, language: str, base_url: str) -> SafeString:
    return highlight_sample(format_sample(API_SAMPLES[name], language, base_url), language)


def _localize_addresses(answer: Any) -> Any:
    """An answer with this installation's base address in place of the samples' one."""
    if isinstance(answer, dict):
        return {key: _localize_addresses(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_localize_addresses(one) for one in answer]
    ours = isinstance(answer, str) and answer.startswith(SAMPLE_BASE_URL)
    return settings.GATEWAY_BASE_URL + answer.removeprefix(SAMPLE_BASE_URL) if ours else answer


def render_docs_page(
    request: HttpRequest,
    template: str,
    current: str,
    *,
    groups: tuple[reference.ParamGroupDoc, ...] = (),
    sections: tuple[tuple[str, str], ...] = (),
    **context: Any,
) -> HttpResponse:
    """A page of the docs with its menu; ``current`` names it there."""
    menu = navigation.build_menu(current, live=settings.IS_LIVE, groups=groups, sections=sections)
    return _render_page(request, template, menu=menu, section="docs", **context)


def _render_page(request: HttpRequest, template: str, **context: Any) -> HttpResponse:
    response = render(request, template, {**build_page_frame(_ASSETS), **context})
    response["Cache-Control"] = "no-cache"
    return compress_response(request, response)

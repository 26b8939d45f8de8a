"""The docs for machines: llms.txt, pages as Markdown, a result code as data, a collection of requests.

llms.txt: the form of llmstxt.org. The collection: the Postman Collection Format 2.1, which Bruno imports as well, made
from the OpenAPI document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from gateway.catalogue.openapi import build_openapi
from gateway.portal import documents, navigation, result_code_docs

COLLECTION_SCHEMA: Final = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
COLLECTION_VARIABLES: Final = ("base", "token", "entityId", "id")
"""Variables of the collection, to be filled in by its user."""
FORM_TYPE: Final = "application/x-www-form-urlencoded"

_MARKER: Final = re.compile(r"^<!-- (?!only|end only).*? -->\n|<a id=\"[^\"]*\"></a>\n?", re.MULTILINE)
_ONLY: Final = re.compile(r"^<!-- only: (test|live) -->\n(.*?)^<!-- end only -->\n?", re.MULTILINE | re.DOTALL)


@require_safe
def llms_view(_request: HttpRequest) -> HttpResponse:
    """GET /llms.txt: what there is to read, as Markdown."""
    base = settings.GATEWAY_BASE_URL
    lines = [
        "# Tollhouse",
        "",
        "> A payment gateway: a REST API (form parameters in, JSON out, a Bearer token), a payment form for merchants' "
        "pages, webhooks, a back office.",
        "",
        "Requests are form-encoded with an entityId; amounts are texts with two decimals. Decide by result.code and "
        "its family, never by the description. Each page below is Markdown. A read-only MCP server is `tollhouse mcp` "
        f"({base}/docs/clients.md).",
    ]
    for group in navigation.list_menu_groups():
        pages = [page for page in group.pages if not (settings.IS_LIVE and page.test_only)]
        lines += ["", f"## {group.title}", ""]
        lines += [f"- [{page.title}]({_build_text_address(base, page)}): {page.about}" for page in pages]
    lines += [
        "",
        "## Data",
        "",
        f"- [OpenAPI 3.1]({base}/v1/openapi.json): Every path, parameter, answer and webhook.",
        f"- [Result codes]({base}/v1/resultcodes): Every code and its description.",
        f"- [Collection of requests]({base}/docs/collection.json): For Bruno and Postman.",
    ]
    if not settings.IS_LIVE:
        lines.append(f"- [Test data]({base}/testdata.json): Cards and accounts with their promised results.")
    return HttpResponse("\n".join([*lines, ""]), content_type="text/plain; charset=utf-8")


def _build_text_address(base: str, page: navigation.DocsPage) -> str:
    """A page's Markdown, or its address where it is no document."""
    return f"{base}/docs/{page.name}.md" if page.name in documents.list_documents() else f"{base}{page.url}"


@require_safe
def document_text_view(_request: HttpRequest, name: str) -> HttpResponse:
    """GET /docs/{name}.md: a document as Markdown, for this environment."""
    found = documents.list_documents().get(name)
    if found is None or (settings.IS_LIVE and name in documents.TEST_ONLY_DOCUMENTS):
        raise Http404
    environment = "live" if settings.IS_LIVE else "test"
    text = _ONLY.sub(lambda part: part[2] if part[1] == environment else "", found.read_text(encoding="utf-8"))
    text = _MARKER.sub("", text).replace(documents.SITE_ADDRESS, settings.GATEWAY_BASE_URL)
    return HttpResponse(text, content_type="text/markdown; charset=utf-8")


@require_safe
def result_code_view(request: HttpRequest) -> JsonResponse:
    """GET /docs/result-codes.json?code=: one result code with its family, advice, and what a shopper may be told."""
    wanted = request.GET.get("code", "")
    for family in result_code_docs.list_families():
        for row in family.codes:
            if row.code == wanted:
                body = {
                    "code": row.code,
                    "meaning": row.meaning,
                    "family": family.title,
                    "httpStatus": row.status,
                    "whatToDo": row.advice or family.advice,
                    "forTheShopper": row.shopper,
                }
                return JsonResponse(body)
    raise Http404


@require_safe
def collection_view(_request: HttpRequest) -> HttpResponse:
    """GET /docs/collection.json: the collection of requests, as a download."""
    body = _write_collection(settings.GATEWAY_BASE_URL, settings.GATEWAY_ENVIRONMENT)
    response = HttpResponse(body, content_type="application/json; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="tollhouse.postman_collection.json"'
    return response


@cache
def _write_collection(base_url: str, environment: str) -> bytes:
    return json.dumps(build_collection(build_openapi(base_url, environment)), ensure_ascii=False, indent=1).encode()


def build_collection(document: Mapping[str, Any]) -> dict[str, Any]:
    """An OpenAPI document as a collection: a folder for each tag, a request for each operation, with the parameters of
    its example filled in and the other ones switched off."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method in ("get", "post", "delete"):
                folder = folders.setdefault((operation.get("tags") or ["Others"])[0], [])
                folder.append(_build_item(path, method.upper(), operation))
    return {
        "info": {
            "name": f"Tollhouse, {document['servers'][0]['description'].lower()}",
            "description": "Fill in the variables token and entityId. Ids of earlier answers go into the variable id.",
            "schema": COLLECTION_SCHEMA,
        },
        "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{token}}", "type": "string"}]},
        "variable": [
            {"key": name, "value": document["servers"][0]["url"] if name == "base" else ""}
            for name in COLLECTION_VARIABLES
        ],
        "item": [{"name": name, "item": items} for name, items in folders.items()],
    }


def _build_item(path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    address = "{{base}}" + re.sub(r"\{[^}]+\}", "{{id}}", path)
    query = [
        _build_pair(one["name"], one.get("example", ""), one.get("description", ""), used=bool(one.get("required")))
        for one in operation.get("parameters", [])
        if one.get("in") == "query"
    ]
    used = [one for one in query if not one.get("disabled")]
    request: dict[str, Any] = {
        "method": method,
        "header": [],
        "description": operation.get("description", ""),
        "url": {
            "raw": address + ("?" + "&".join(f"{one['key']}={one['value']}" for one in used) if used else ""),
            "host": ["{{base}}"],
            "path": address.removeprefix("{{base}}/").split("/"),
            "query": query,
        },
    }
    content = operation.get("requestBody", {}).get("content", {}).get(FORM_TYPE)
    if content is not None:
        request["body"] = {"mode": "urlencoded", "urlencoded": _list_fields(content)}
    return {"name": operation["summary"], "request": request, "response": []}


def _list_fields(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of the example, then those that can be added."""
    first: Mapping[str, Any] = content.get("example") or {}
    properties: Mapping[str, Any] = content["schema"].get("properties", {})
    fields = {"entityId": "", **first} if "entityId" in properties else dict(first)
    found = [
        _build_pair(name, value, properties.get(name, {}).get("description", "")) for name, value in fields.items()
    ]
    for name, schema in properties.items():
        if name not in fields:
            example = next(iter(schema.get("examples", [])), "")
            found.append(_build_pair(name, example, schema.get("description", ""), used=False))
    return found


def _build_pair(name: str, value: Any, about: str, *, used: bool = True) -> dict[str, Any]:
    shown = "{{entityId}}" if name == "entityId" else str(value)
    pair = {"key": name, "value": shown, "description": about}
    return pair if used or name == "entityId" else {**pair, "disabled": True}

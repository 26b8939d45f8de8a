"""Table of contents of the docs: the lists of docs/README.md, and the menu beside the current page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from gateway.portal.documents import (
    CONTENTS_DOCUMENT,
    DOCS_DIR,
    QUICK_START_DOCUMENT,
    TEST_ONLY_DOCUMENTS,
    build_document_url,
    list_documents,
    resolve_link,
)
from gateway.portal.reference import ParamGroupDoc, list_endpoints

MERCHANT_GROUPS: Final = ("Start", "Guides")
"""Headings of docs/README.md whose pages are for merchants' developers; the others are for operators."""
TESTDATA_PAGE: Final = "testdata"
RESULT_CODES_PAGE: Final = "result-codes"

_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_ITEM: Final = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", re.MULTILINE)
_KEYWORDS: Final[Mapping[str, str]] = MappingProxyType({
    "quick-start": "curl first payment getting started token entityId",
    "testdata": "test cards numbers iban accounts tokens gift redirect simulator decline",
    "requests": "form encoding json utf-8 envelope ndc timestamp buildNumber ignoredParameters true false strict "
    "lenient",
    "authentication": "bearer authorization header scope",
    "errors": "parameterErrors 400 401 403 404 405 429 500",
    "widget": "paymentWidgets.js checkout form iframe CSP integrity SRI widgetOptions createCheckout",
    "follow-ups": "CP RF RV RB RC PA DB refund capture void cancel chain",
    "three-d-secure": "3DS SCA challenge frictionless redirect exemption 3RI decoupled authentication ACS",
    "means": "SEPA direct debit IBAN mandate redirect shopperResultUrl resourcePath wallet invoice "
    "merchant.bankAccount network token cryptogram dtvc PIN asynchronous",
    "registrations": "createRegistration registrationId one-click card on file standingInstruction MIT CIT recurring "
    "instalment initialTransactionId agreementId overrideHolder recurringMigration",
    "schedules": "schedule job cron expression subscription recurring dunning notice duration 100.250.120 100.360.300 "
    "reschedule deschedule plan.active",
    "webhooks": "notification event signature Standard Webhooks AES-GCM secret retry notificationUrl "
    "X-Initialization-Vector X-Authentication-Tag encryptedBody referencedId sequence callback",
    "reporting": "query search list shortId merchantTransactionId includeLinkedTransactions paymentTypes "
    "paymentMethods pageNo pages settlement reconciliation aggregations report CSV SFTP fees",
    "idempotency": "Idempotency-Key retry timeout duplicate",
    "clients": "SDK library package client Python PHP JavaScript Node OpenAPI download command line CLI listen migrate",
    "limits": "throttling rate limit 429 Retry-After RateLimit 800.120.100",
    "test-tools": "time travel clock simulator messages",
    "versioning": "backwards compatible new fields",
    "not-yet": "query reports",
})  # fmt: skip
"""What the search finds a page by, besides its title and its line in docs/README.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsPage:
    """A page of the docs, as docs/README.md lists it. ``name``: of its document, or of the view that renders it."""

    name: str
    title: str
    about: str
    url: str

    @property
    def keywords(self) -> str:
        return _KEYWORDS.get(self.name, "")

    @property
    def test_only(self) -> bool:
        return self.name == TESTDATA_PAGE or self.name in TEST_ONLY_DOCUMENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuGroup:
    """A group of pages in the menu."""

    title: str
    pages: tuple[DocsPage, ...]

    @property
    def for_merchants(self) -> bool:
        return self.title in MERCHANT_GROUPS


@cache
def list_menu_groups() -> tuple[MenuGroup, ...]:
    """The groups of docs/README.md in their order."""
    contents = list_documents()[CONTENTS_DOCUMENT].read_text(encoding="utf-8")
    _, *parts = _HEADING.split(contents)
    return tuple(
        MenuGroup(title=title, pages=tuple(_read_page(*found.groups()) for found in _ITEM.finditer(items)))
        for title, items in zip(parts[::2], parts[1::2], strict=True)
    )


def _read_page(title: str, target: str, about: str) -> DocsPage:
    url = resolve_link(target, DOCS_DIR / "README.md", live=False)
    if url is None:
        raise ValueError(f"docs/README.md lists {target}, which is no page")
    name = url.removeprefix("/docs/").removeprefix("/") or QUICK_START_DOCUMENT
    return DocsPage(name=name, title=title, about=about, url=url)


@cache
def list_docs_pages() -> Mapping[str, DocsPage]:
    """The pages of all groups by their names."""
    return MappingProxyType({page.name: page for group in list_menu_groups() for page in group.pages})


def build_menu(
    current: str, *, live: bool, groups: tuple[ParamGroupDoc, ...] = (), sections: tuple[tuple[str, str], ...] = ()
) -> list[dict[str, Any]]:
    """The menu for the template: of the merchants' pages and the reference, or of the operators' pages.

    ``groups``: sections of the current endpoint; ``sections``: anchor and title of those of the current document.
    """
    place = current.split("/")[0] if current.startswith("decisions/") else current
    mine = next((group for group in list_menu_groups() for page in group.pages if page.name == place), None)
    for_operators = current == CONTENTS_DOCUMENT or (mine is not None and not mine.for_merchants)
    found = [
        {
            "title": group.title,
            "pages": [
                _build_item(page.title, page.url, page.name == place, sections if page.name == current else ())
                for page in group.pages
                if not (live and page.test_only)
            ],
        }
        for group in list_menu_groups()
        if group.for_merchants != for_operators
    ]
    contents = _build_item("All documents", build_document_url(CONTENTS_DOCUMENT), current == CONTENTS_DOCUMENT, ())
    if for_operators:
        return [{"title": "Docs", "pages": [_build_item("For merchants", "/docs/", False, ()), contents]}, *found]
    running = list_docs_pages()["running"]
    others = [_build_item(running.title, running.url, False, ()), contents]
    return [*found, _build_reference(current, live, groups), {"title": "For operators", "pages": others}]


def _build_reference(current: str, live: bool, groups: tuple[ParamGroupDoc, ...]) -> dict[str, Any]:
    pages = [
        _build_item(
            endpoint.title,
            f"/docs/reference/{endpoint.name}",
            endpoint.name == current,
            tuple((group.anchor, group.title) for group in groups),
            method=endpoint.method,
        )
        for endpoint in list_endpoints(live)
    ]
    pages.append(_build_item("Result codes", "/docs/result-codes", current == RESULT_CODES_PAGE, ()))
    return {"title": "Reference", "pages": pages}


def _build_item(
    title: str, url: str, current: bool, sections: tuple[tuple[str, str], ...], method: str = ""
) -> dict[str, Any]:
    shown = [{"anchor": anchor, "title": heading} for anchor, heading in sections] if current else []
    return {"title": title, "url": url, "current": current, "sections": shown, "method": method}

"""Table of contents of the docs: its pages, their order, and the menu beside the current one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gateway.portal.reference import ParamGroupDoc, list_endpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsPage:
    """A page of the docs. ``template``: '' if another view renders it. ``sections``: (anchor, title) of its
    headings."""

    name: str
    title: str
    about: str
    url: str
    template: str = ""
    sections: tuple[tuple[str, str], ...] = ()
    keywords: str = ""
    test_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuGroup:
    """A group of pages in the menu."""

    title: str
    pages: tuple[DocsPage, ...]


def _build_guide(
    name: str, title: str, about: str, *sections: tuple[str, str], keywords: str = "", test: bool = False
) -> DocsPage:
    return DocsPage(
        name=name,
        title=title,
        about=about,
        url=f"/docs/{name}",
        template=f"docs/{name}.html",
        sections=sections,
        keywords=keywords,
        test_only=test,
    )


QUICK_START_PAGE: Final = DocsPage(
    name="quick-start",
    title="Quick start",
    about="Your first payment in five minutes, with curl.",
    url="/docs/",
    template="docs/quick-start.html",
    sections=(
        ("ready", "Get ready"),
        ("pay", "Make a payment"),
        ("answer", "Read the answer"),
        ("refund", "Give money back"),
        ("decline", "See a decline"),
        ("next", "Where to go next"),
    ),
    keywords="curl first payment getting started token entityId",
)
DOCS_MENU: Final[tuple[MenuGroup, ...]] = (
    MenuGroup(
        title="Start",
        pages=(
            QUICK_START_PAGE,
            DocsPage(name="testdata", title="Test data", about="Cards, accounts, tokens and shoppers for every answer.",
                 url="/testdata", keywords="test cards numbers iban accounts tokens gift redirect simulator decline",
                 test_only=True),
        ),
    ),
    MenuGroup(
        title="Guides",
        pages=(
            _build_guide("requests", "Requests and answers", "How to send fields, and what comes back.",
                   ("sending", "Sending"), ("names", "Names"), ("booleans", "Booleans"), ("answers", "Answers"),
                   ("unknown", "Unknown names"),
                   keywords="form encoding json utf-8 envelope ndc timestamp buildNumber ignoredParameters true false "
                   "strict lenient"),
            _build_guide("authentication", "Authentication", "Access tokens and entityId, 401 and 403.",
                   ("token", "Access tokens"), ("entity", "entityId"), ("refused", "When it is refused"),
                   keywords="bearer authorization header scope"),
            _build_guide("errors", "Errors", "Every fault at once, and what each status means.",
                   ("faults", "Faults in a request"), ("declines", "Declines"), ("statuses", "HTTP statuses"),
                   keywords="parameterErrors 400 401 403 404 405 429 500"),
            DocsPage(name="widget", title="The widget", about="The payment form in your page, in 15 lines.",
                 url="/docs/widget",
                 sections=(("form", "A page with a form"), ("result", "The result"), ("options", "Options"),
                           ("fast", "Fast checkout"), ("csp", "Content security policy"), ("errors", "When it fails")),
                 keywords="paymentWidgets.js checkout form iframe CSP integrity SRI widgetOptions createCheckout"),
            _build_guide("follow-ups", "Follow-ups", "Capture, refund, reverse.",
                   ("authorise", "Authorise first"), ("capture", "Capture"), ("refund", "Refund"),
                   ("reverse", "Reverse"), ("what-follows", "What may follow what"),
                   keywords="CP RF RV RB RC PA DB refund capture void cancel chain"),
            _build_guide("3d-secure", "3-D Secure", "When the bank asks the shopper, and how it goes.",
                   ("when", "When it starts"), ("ways", "How it goes"), ("more", "Other ways"),
                   ("alone", "Without a payment"),
                   keywords="3DS SCA challenge frictionless redirect exemption 3RI decoupled authentication ACS"),
            _build_guide("means", "Means of payment", "Bank accounts, tokens, gift cards; shoppers who go away to pay.",
                   ("accounts", "Bank accounts"), ("away", "Online transfer, wallets, invoice"),
                   ("prepayment", "Prepayment"), ("tokens", "Token accounts"), ("gift-cards", "Gift cards"),
                   ("types", "Which types a brand takes"),
                   keywords="SEPA direct debit IBAN mandate redirect shopperResultUrl resourcePath wallet invoice "
                   "merchant.bankAccount network token cryptogram dtvc PIN asynchronous"),
            _build_guide("registrations", "Registrations", "Store a means of payment, pay with it again.",
                   ("store", "Store"), ("pay", "Pay by a click"), ("agree", "Payments of your own"),
                   ("limits", "What an agreement limits"), ("end", "Change and forget"),
                   keywords="createRegistration registrationId one-click card on file standingInstruction MIT CIT "
                   "recurring instalment initialTransactionId agreementId overrideHolder recurringMigration"),
            _build_guide("schedules", "Subscriptions", "A plan that charges a stored card: runs, retries, notice.",
                   ("plan", "Make a plan"), ("times", "When it runs"), ("runs", "What a run does"),
                   ("declined", "When a run is declined"), ("change", "Change it"), ("end", "End it"),
                   keywords="schedule job cron expression subscription recurring dunning notice duration "
                   "100.250.120 100.360.300 reschedule deschedule plan.active"),
            _build_guide("webhooks", "Webhooks", "Your server is told what happened, and how to believe it.",
                   ("told", "What you are told"), ("endpoint", "Have an endpoint"), ("verify", "Read one"),
                   ("answer", "Answer"),
                   keywords="notification event signature Standard Webhooks AES-GCM secret retry notificationUrl "
                   "X-Initialization-Vector X-Authentication-Tag encryptedBody referencedId sequence callback"),
            _build_guide("queries", "Queries and reports", "Find payments again; what was settled.",
                   ("find", "Find a transaction"), ("lists", "Lists"), ("pages", "Read a period whole"),
                   ("settled", "What was settled"), ("file", "The reconciliation file"),
                   keywords="query search list shortId merchantTransactionId includeLinkedTransactions paymentTypes "
                   "paymentMethods pageNo pages settlement reconciliation aggregations report CSV SFTP fees"),
            _build_guide("idempotency", "Repeating safely", "The same key twice makes one payment.",
                   ("key", "Send a key"), ("without", "Without a key"),
                   keywords="Idempotency-Key retry timeout duplicate"),
            _build_guide("clients", "Ready clients", "One file for Python, JavaScript or PHP.",
                   ("download", "Download"), ("use", "Use one"), ("again", "What they do for you"),
                   keywords="SDK library client Python PHP JavaScript Node OpenAPI download"),
            _build_guide("limits", "Limits", "How many requests, how large.", ("rates", "Requests per window"),
                   ("sizes", "Sizes"), keywords="throttling rate limit 429 Retry-After RateLimit 800.120.100"),
            _build_guide("test-tools", "Test tools", "Move the clock; see what the acquirer was told.",
                   ("clock", "The movable clock"), ("messages", "Acquirer messages"),
                   ("transfers", "Money that arrives"),
                   keywords="time travel clock simulator messages", test=True),
            _build_guide("versioning", "Versioning", "What may change, and what will not.",
                   ("path", "The version is in the path"), ("yours", "What your client must do"),
                   keywords="backwards compatible new fields"),
            _build_guide("not-yet", "Not offered yet", "Paths that come later.", ("paths", "Paths that come later"),
                   keywords="query reports"),
        ),
    ),
)  # fmt: skip
RESULT_CODES_PAGE: Final = DocsPage(
    name="result-codes",
    title="Result codes",
    about="Every code: what it means and what to do next.",
    url="/docs/result-codes",
    keywords="decline codes meaning",
)
DOCS_PAGES: Final = {page.name: page for group in DOCS_MENU for page in group.pages}


def build_menu(current: str, *, live: bool, groups: tuple[ParamGroupDoc, ...] = ()) -> list[dict[str, Any]]:
    """The menu for the template. ``groups``: sections of the current endpoint."""
    found: list[dict[str, Any]] = []
    for group in DOCS_MENU:
        pages = [
            _build_item(page.title, page.url, page.name == current, page.sections)
            for page in group.pages
            if not (live and page.test_only)
        ]
        found.append({"title": group.title, "pages": pages})
    reference = [
        _build_item(
            endpoint.title,
            f"/docs/reference/{endpoint.name}",
            endpoint.name == current,
            tuple((group.anchor, group.title) for group in groups),
            method=endpoint.method,
        )
        for endpoint in list_endpoints(live)
    ]
    reference.append(_build_item(RESULT_CODES_PAGE.title, RESULT_CODES_PAGE.url, current == RESULT_CODES_PAGE.name, ()))
    found.append({"title": "Reference", "pages": reference})
    return found


def _build_item(
    title: str, url: str, current: bool, sections: tuple[tuple[str, str], ...], method: str = ""
) -> dict[str, Any]:
    shown = [{"anchor": anchor, "title": heading} for anchor, heading in sections] if current else []
    return {"title": title, "url": url, "current": current, "sections": shown, "method": method}

"""Sample requests, shown as curl, and this gateway's real answers to them.

A sample is data; its answer is in ``answers/<name>.json``, written and compared by a test that sends every sample as
shown. ``$TOKEN``, ``$ENTITY_ID`` and ``$PAYMENT_ID`` are the reader's shell variables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gateway.catalogue.openapi import REQUEST_EXAMPLES
from gateway.connectors.simulator.accounts import GOOD_CRYPTOGRAM, build_test_token
from gateway.core.curl import TOKEN_VARIABLE, format_curl_command

SAMPLE_ANSWERS_DIR: Final = Path(__file__).parent / "answers"
PAYMENT_VARIABLE, CAPTURE_VARIABLE, CHECKOUT_VARIABLE = "$PAYMENT_ID", "$CAPTURE_ID", "$CHECKOUT_ID"
REGISTRATION_VARIABLE: Final = "$REGISTRATION_ID"
SCHEDULE_VARIABLE: Final = "$SCHEDULE_ID"
PAYMENT_LINK_VARIABLE: Final = "$PAYMENT_LINK_ID"
INVALID_TOKEN: Final = "not-a-token"  # noqa: S105 - a name or a mask, no password
SAMPLE_BASE_URL: Final = "http://testserver"
"""Base address of the gateway that gave the stored answers. A page shows its own instead."""
BRIEF_FIELDS: Final = ("id", "amount", "currency", "result")


@dataclass(frozen=True, slots=True)
class ApiSample:
    """One sample request. ``token``: None leaves the header out. ``after``: the sample whose payment the path's
    variable names. ``about``: explains the answer."""

    name: str
    title: str
    path: str
    _: KW_ONLY
    method: str = "POST"
    status: int = 200
    fields: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str | None = TOKEN_VARIABLE
    after: str = ""
    about: str = ""

    @property
    def status_words(self) -> str:
        return f"{self.status} {HTTPStatus(self.status).phrase}"

    @property
    def answer(self) -> dict[str, Any]:
        return _load_answer(self.name)

    @property
    def brief(self) -> dict[str, Any]:
        """The most important fields of the answer."""
        return {name: value for name, value in self.answer.items() if name in BRIEF_FIELDS}

    def curl(self, base_url: str) -> str:
        """The request as a curl command; see :func:`gateway.core.curl.format_curl_command`."""
        return format_curl_command(
            self.method, f"{base_url}{self.path}", self.fields, token=self.token, headers=self.headers
        )


@cache
def _load_answer(name: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((SAMPLE_ANSWERS_DIR / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


_CARD: Final = REQUEST_EXAMPLES["payment"]
_ONE: Final = f"/v1/payments/{PAYMENT_VARIABLE}"
_NO_CHANGES: Final[Mapping[str, str | None]] = {}
_NO_CARD: Final[Mapping[str, str | None]] = {
    name.replace(".", "__"): None for name in _CARD if name.startswith("card.")
}
_ACCOUNT: Final[Mapping[str, str | None]] = {
    "bankAccount__holder": "Jane Jones", "bankAccount__iban": "DE23100000001234567890",
    "bankAccount__bic": "MARKDEF1100",
}  # fmt: skip
_STORED: Final = f"/v1/registrations/{REGISTRATION_VARIABLE}"
_JOB: Final = f"/v1/schedules/{SCHEDULE_VARIABLE}"
_PLAN: Final = {"amount": "9.90", "currency": "EUR", "paymentType": "DB"}
_INITIAL: Final = {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}
_REPEATED: Final = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}


def _payment_sample(
    name: str,
    title: str,
    status: int = 200,
    *,
    about: str = "",
    means: Mapping[str, str | None] = _NO_CHANGES,
    **changes: str | None,
) -> ApiSample:
    changed = {**_CARD, **_with_dots(means), **_with_dots(changes)}
    fields = {key: value for key, value in changed.items() if value is not None}
    return ApiSample(name, title, "/v1/payments", status=status, fields=fields, about=about)


def _with_dots(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name.replace("__", "."): value for name, value in changes.items()}


def _follow_up_sample(
    name: str, title: str, after: str, about: str = "", *, path: str = _ONE, **fields: str
) -> ApiSample:
    return ApiSample(name, title, path, after=after, fields=fields, about=about)


def _clock_sample(name: str, title: str, method: str, **fields: str) -> ApiSample:
    return ApiSample(name, title, "/v1/test/clock", method=method, fields=fields)


SAMPLE_SETTLEMENT_ID: Final = "01a1fe2c5f1e7c0b9d3a4e5f60718293"
_SUMS, _OTHER, _AGGREGATED = "/v1/reports/reconciliations", "/reports", "reconciliations/aggregations"
_TWO_DAYS: Final = {"date__from": "2026-05-14", "date__to": "2026-05-15"}


def _report_sample(name: str, title: str, path: str, about: str, **fields: str) -> ApiSample:
    """A report in testMode=INTERNAL: the same settlements for every reader."""
    asked = {key.replace("__", "."): value for key, value in fields.items()}
    return ApiSample(name, title, path, method="GET", about=about, fields={**asked, "testMode": "INTERNAL"})


_TABLE: Final = (
    _payment_sample("pay", "Pay 92.00 euros", about="000.100.110: paid. Keep the id."),
    _payment_sample("authorise", "Authorise 92.00 euros", paymentType="PA", about="The money is reserved, not taken."),
    _payment_sample(
        "declined",
        "A declined card",
        400,
        card__number="4000015500000005",
        about="800.100.155: the card has not enough credit. There is a payment, and it was declined.",
    ),
    _payment_sample(
        "faults",
        "Three faults at once",
        400,
        amount="92.1",
        paymentBrand=None,
        paymentBrnad="VISA",
        card__expiryMonth="13",
        about="Nothing was made. Each fault names its field and what is allowed.",
    ),
    _payment_sample(
        "direct-debit",
        "Debit a bank account",
        paymentBrand="DIRECTDEBIT_SEPA",
        means={**_NO_CARD, **_ACCOUNT},
        bankAccount__mandate__id="MANDATE-ABC",
        bankAccount__mandate__dateOfSignature="2026-01-15",
        transactionDueDate="2034-05-02",
        customer__givenName="Jane",
        customer__surname="Jones",
        customer__email="jane@mail.example",
        about="000.100.110: the bank takes the debit. Jane gets her mandate by mail.",
    ),
    _payment_sample(
        "online-transfer",
        "Send the shopper to the bank",
        paymentBrand="ONLINETRANSFER",
        means=_NO_CARD,
        shopperResultUrl="https://shop.example/result",
        about="000.200.000: nothing is paid yet. Send the shopper to redirect.url.",
    ),
    _payment_sample(
        "prepayment",
        "Ask for a transfer in advance",
        paymentBrand="PREPAYMENT",
        means=_NO_CARD,
        about="800.400.500: open until the money is there. Show the shopper merchant.bankAccount.",
    ),
    ApiSample(
        "arrived",
        "The money arrives",
        f"/v1/test/transfers/{PAYMENT_VARIABLE}",
        after="prepayment",
        fields=REQUEST_EXAMPLES["decide-transfer"],
        about="000.100.110: now it is paid.",
    ),
    _payment_sample(
        "gift-card",
        "Pay with a gift card",
        paymentBrand="GIFTCARD",
        means=_NO_CARD,
        giftCard__number="GC-10020",
        giftCard__pin="4711",
        about="Approved for the 20.00 that it holds: amount says so.",
    ),
    _payment_sample(
        "network-token",
        "Pay with a network token",
        means=_NO_CARD,
        tokenAccount__number=build_test_token("000.100.110"),
        tokenAccount__type="NETWORK",
        tokenAccount__expiryMonth="05",
        tokenAccount__expiryYear="2034",
        tokenAccount__cryptogram=GOOD_CRYPTOGRAM,
        about="The cryptogram proves one use of the token.",
    ),
    _follow_up_sample(
        "capture",
        "Capture a part",
        "authorise",
        "Now 50.00 are taken; 42.00 are still reserved.",
        paymentType="CP",
        amount="50.00",
        currency="EUR",
    ),
    _follow_up_sample(
        "refund-capture",
        "Refund some of it",
        "capture",
        path=f"/v1/payments/{CAPTURE_VARIABLE}",
        **REQUEST_EXAMPLES["follow-up"],
    ),
    _follow_up_sample("reverse", "Reverse what is left", "authorise", "The reservation is gone.", paymentType="RV"),
    _follow_up_sample(
        "refund", "Refund a part", "pay", "10.00 go back; 82.00 may still follow.", **REQUEST_EXAMPLES["follow-up"]
    ),
    ApiSample("read", "Read a payment", _ONE, method="GET", after="pay"),
    ApiSample(
        "no-token",
        "No token",
        "/v1/payments",
        status=401,
        token=None,
        fields={"paymentType": "DB"},
        about="The header is missing or malformed.",
    ),
    ApiSample(
        "wrong-token",
        "A token that is not valid",
        "/v1/payments",
        status=403,
        token=INVALID_TOKEN,
        fields={"paymentType": "DB"},
        about="The header is fine, the token is not.",
    ),
    ApiSample(
        "throttled",
        "Too many requests",
        _ONE,
        method="GET",
        status=429,
        after="pay",
        about="Wait as many seconds as Retry-After says.",
    ),
    ApiSample(
        "idempotent",
        "The same key again",
        "/v1/payments",
        fields=_CARD,
        headers={"Idempotency-Key": "order-4711"},
        about="Run it twice: one payment, one id.",
    ),
    ApiSample(
        "authenticate",
        "Authenticate a cardholder",
        "/v1/threeDSecure",
        fields=REQUEST_EXAMPLES["three-d-secure"],
        about="000.400.110: authenticated without a challenge. Send the three values of the proof with a payment.",
    ),
    ApiSample(
        "challenge",
        "A card that is challenged",
        "/v1/threeDSecure",
        fields={**REQUEST_EXAMPLES["three-d-secure"], "card.number": "4200000000000042"},
        about="000.200.000: send the shopper to redirect.url.",
    ),
    ApiSample(
        "read-authentication", "Read it", f"/v1/threeDSecure/{PAYMENT_VARIABLE}", method="GET", after="authenticate"
    ),
    ApiSample(
        "register",
        "Store a card",
        "/v1/registrations",
        fields=REQUEST_EXAMPLES["registration"],
        about="Keep the id: payments name it.",
    ),
    ApiSample(
        "one-click",
        "Pay with it",
        f"{_STORED}/payments",
        after="register",
        fields=REQUEST_EXAMPLES["one-click"],
        about="No card number is sent.",
    ),
    ApiSample(
        "agree",
        "The shopper agrees to later payments",
        f"{_STORED}/payments",
        after="register",
        fields={
            **REQUEST_EXAMPLES["one-click"],
            "standingInstruction.type": "RECURRING",
            **_INITIAL,
            "standingInstruction.frequency": "28",
        },
        about="The answer carries initialTransactionId.",
    ),
    ApiSample(
        "draw",
        "Charge again, 28 days later",
        f"{_STORED}/payments",
        status=400,
        after="register",
        fields={**REQUEST_EXAMPLES["one-click"], "standingInstruction.type": "RECURRING", **_REPEATED},
        about="700.500.001: too early. Move the clock on by 28 days, and it is paid.",
    ),
    ApiSample(
        "schedule",
        "Charge a card every month",
        "/v1/schedules",
        after="register",
        fields={**REQUEST_EXAMPLES["schedule"], "registrationId": REGISTRATION_VARIABLE},
        about="plan.nextRuns shows when. Keep the id.",
    ),
    ApiSample(
        "no-plan",
        "A plan that never runs",
        "/v1/schedules",
        status=400,
        after="register",
        about="100.250.120: 31 February. Nothing was made.",
        fields={**_PLAN, "registrationId": REGISTRATION_VARIABLE, "job.expression": "0 0 6 31 2 ?"},
    ),
    ApiSample(
        "job-with-payment",
        "Begin with a payment",
        f"{_STORED}/payments",
        after="register",
        fields={**_PLAN, "job.expression": "0 0 6 L * ? 2035"},
        about="schedule.id names the job that the payment started.",
    ),
    ApiSample(
        "read-schedule", "Read it", _JOB, method="GET", after="schedule", about="runs tells how the last ones went."
    ),
    ApiSample(
        "reschedule",
        "The price has changed",
        f"{_JOB}/reschedule",
        after="schedule",
        fields=REQUEST_EXAMPLES["reschedule"],
        about="What is not sent stays.",
    ),
    ApiSample(
        "deschedule", "Give notice", f"{_JOB}/deschedule", after="schedule", about="ENDING: it runs until plan.endsAt."
    ),
    ApiSample(
        "delete-schedule",
        "Give notice, by DELETE",
        _JOB,
        method="DELETE",
        after="schedule",
        about="The same once more changes nothing.",
    ),
    ApiSample("read-registration", "Read what is stored", _STORED, method="GET", after="register"),
    ApiSample(
        "update-registration",
        "The card has a new expiry",
        _STORED,
        after="register",
        fields=REQUEST_EXAMPLES["update-registration"],
    ),
    ApiSample("extend-registration", "Keep it longer", f"{_STORED}/extend", after="register"),
    ApiSample("delete-registration", "Forget the card", _STORED, method="DELETE", after="register"),
    _payment_sample(
        "order", "Pay for an order", merchantTransactionId="order-4712", about="Your own number goes along."
    ),
    _follow_up_sample(
        "refund-order", "Refund some of it", "order", "Linked to the payment.", **REQUEST_EXAMPLES["follow-up"]
    ),
    ApiSample(
        "query",
        "Find an order",
        "/v1/query",
        method="GET",
        after="refund-order",
        fields={"merchantTransactionId": "order-4712", "includeLinkedTransactions": "true"},
        about="The payment, and the refund that is linked to it.",
    ),
    ApiSample(
        "query-one",
        "Look one up",
        f"/v1/query/{PAYMENT_VARIABLE}",
        method="GET",
        after="order",
        about="200 whatever its result was.",
    ),
    ApiSample(
        "query-records",
        "A month, page by page",
        "/v3/query",
        method="GET",
        after="refund-order",
        fields={
            "date.from": "2026-05-01 00:00:00",
            "date.to": "2099-05-31 23:59:59",
            "paymentTypes": "RV,CB",
            "pageNo": "1",
        },
        about="pages says how many there are. The oldest comes first.",
    ),
    ApiSample(
        "query-record",
        "Look one up",
        f"/v3/query/{PAYMENT_VARIABLE}",
        method="GET",
        after="order",
        about="The same, as a list.",
    ),
    ApiSample(
        "query-nothing",
        "Nothing is found",
        "/v1/query",
        method="GET",
        status=400,
        fields={"merchantTransactionId": "no-such-order"},
        about="700.400.580: nothing of yours fits.",
    ),
    _report_sample("settlements", "Two days to try with", _SUMS, "Each settlement with its sums.", **_TWO_DAYS),
    _report_sample(
        "settlement",
        "One settlement's records",
        f"{_SUMS}/{SAMPLE_SETTLEMENT_ID}",
        "With testMode=INTERNAL any id will do.",
        sortValue="SettlementTxDate",
        sortOrder="DESC",
    ),
    _report_sample("aggregations", "Two days to try with", f"{_OTHER}/v1/{_AGGREGATED}", "The same.", **_TWO_DAYS),
    _report_sample(
        "aggregation", "One settlement's records", f"{_OTHER}/v1/{_AGGREGATED}/{SAMPLE_SETTLEMENT_ID}", "The same."
    ),
    _report_sample(
        "aggregations-page",
        "Page by page",
        f"{_OTHER}/v2/{_AGGREGATED}",
        "pages says how many.",
        pageNo="1",
        **_TWO_DAYS,
    ),
    _report_sample(
        "aggregation-page",
        "Only the fees",
        f"{_OTHER}/v2/{_AGGREGATED}/{SAMPLE_SETTLEMENT_ID}",
        "Pages hold 100 records.",
        reconciliationType="FEE",
        pageNo="1",
    ),
    ApiSample("card-facts", "By six digits", "/v1/cardFacts", method="GET", fields={"card.bin": "400005"}),
    ApiSample(
        "approvals",
        "By brand",
        "/v1/reports/approvals",
        method="GET",
        fields={"date.from": "2026-05-01", "date.to": "2026-07-31", "groupBy": "brand"},
        about="Your own payments: none in this period yet, or those that you have made.",
    ),
    ApiSample(
        "approvals-waterfall",
        "Of three months",
        "/v1/reports/approvals/waterfall",
        method="GET",
        fields={"date.from": "2026-05-01", "date.to": "2026-07-31"},
        about="Your own purchases: none in this period yet, or those that you have made.",
    ),
    ApiSample(
        "approvals-gains",
        "Of three months",
        "/v1/reports/approvals/gains",
        method="GET",
        fields={"date.from": "2026-05-01", "date.to": "2026-07-31"},
        about="What was lost of your own payments: nothing in this period yet, or what you have made.",
    ),
    _clock_sample("clock", "Read the clock", "GET"),
    _clock_sample("move-clock", "Move it on by a day", "POST", **REQUEST_EXAMPLES["move-clock"]),
    _clock_sample("reset-clock", "Put it back", "DELETE"),
    ApiSample(
        "mails",
        "The mandate's mail",
        "/v1/test/mails",
        method="GET",
        fields={"id": PAYMENT_VARIABLE},
        after="direct-debit",
    ),
    ApiSample(
        "messages",
        "What the acquirer was told",
        "/v1/test/acquirer/messages",
        method="GET",
        fields={"id": PAYMENT_VARIABLE},
        after="pay",
    ),
)
_LED_BY_THE_FORM: Final = {
    name: value for name, value in REQUEST_EXAMPLES["checkout"].items() if name != "shopperResultUrl"
}
"""Without an address of the shop's: the page's form has one, which exists while the docs are tried."""
_OPEN: Final = f"/v1/checkouts/{CHECKOUT_VARIABLE}"


def _checkout_sample(name: str, title: str, path: str, about: str, *, after: str = "", **more: Any) -> ApiSample:
    method = "GET" if name.endswith(("status", "registration")) else "POST"
    fields = REQUEST_EXAMPLES.get(name, {})
    return ApiSample(name, title, path, method=method, after=after, about=about, **{"fields": fields, **more})


_CHECKOUTS: Final = (
    _checkout_sample("checkout", "Create a checkout", "/v1/checkouts", "000.200.100: give the id to the page.",
              fields=_LED_BY_THE_FORM),
    _checkout_sample("update-checkout", "The cart has changed", _OPEN, "000.200.101: what was sent is replaced.",
              after="checkout"),
    _checkout_sample("pay-checkout", "What the form sends", f"{_OPEN}/payment", "The widget does this for you.",
              after="checkout"),
    _checkout_sample("checkout-status", "Read the result", f"{_OPEN}/payment", "The payment, with its id.",
              after="pay-checkout"),
    _checkout_sample("register-checkout", "Only store a card", "/v1/checkouts", "No paymentType: no money moves.",
              fields={"createRegistration": "true"}),
    _checkout_sample("store-checkout", "What the form sends", f"{_OPEN}/registration", "The widget does this for you.",
              after="register-checkout"),
    _checkout_sample("checkout-registration", "Read what was stored", f"{_OPEN}/registration", "Keep the id.",
              after="store-checkout"),
)  # fmt: skip
_LINK: Final = f"/v1/paymentLinks/{PAYMENT_LINK_VARIABLE}"


def _link_sample(
    name: str, title: str, method: str, path: str, about: str, *, after: str = "", **fields: str
) -> ApiSample:
    return ApiSample(name, title, path, method=method, after=after, about=about, fields=fields)


_PAYMENT_LINKS: Final = (
    _link_sample("payment-link", "A link that is paid once", "POST", "/v1/paymentLinks",
                 "Give the url to the shopper.", **REQUEST_EXAMPLES["payment-link"]),
    _link_sample("open-payment-link", "A link for any amount, as often as it is wanted", "POST", "/v1/paymentLinks",
                 "The shopper enters the amount.",
                 **{"currency": "EUR", "paymentType": "DB", "link.openAmount": "true", "link.minAmount": "5.00",
                    "link.maxAmount": "500.00", "link.reusable": "true", "link.description": "Donation"}),
    _link_sample("read-payment-link", "How often was it paid?", "GET", _LINK, "paidCount and paidAmount.",
                 after="payment-link"),
    _link_sample("deactivate-payment-link", "Close it", "POST", f"{_LINK}/deactivate", "It is not opened any more.",
                 after="payment-link"),
    _link_sample("payment-links", "The newest links", "GET", "/v1/paymentLinks", "Page by page.", limit="1"),
    _link_sample("delete-payment-link", "Close it, by DELETE", "DELETE", _LINK, "The same.", after="payment-link"),
)  # fmt: skip
API_SAMPLES: Final[Mapping[str, ApiSample]] = MappingProxyType(
    {sample.name: sample for sample in (*_TABLE, *_CHECKOUTS, *_PAYMENT_LINKS)}
)

SAMPLES_BY_ENDPOINT: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "payment": ("pay", "declined", "faults"),
        "follow-up": ("refund", "capture", "reverse"),
        "status": ("read",),
        "checkout": ("checkout", "register-checkout"),
        "update-checkout": ("update-checkout",),
        "pay-checkout": ("pay-checkout",),
        "checkout-status": ("checkout-status",),
        "store-checkout": ("store-checkout",),
        "checkout-registration": ("checkout-registration",),
        "payment-link": ("payment-link", "open-payment-link"),
        "payment-links": ("payment-links",),
        "read-payment-link": ("read-payment-link",),
        "deactivate-payment-link": ("deactivate-payment-link",),
        "delete-payment-link": ("delete-payment-link",),
        "three-d-secure": ("authenticate", "challenge"),
        "read-three-d-secure": ("read-authentication",),
        "registration": ("register",),
        "read-registration": ("read-registration",),
        "update-registration": ("update-registration",),
        "delete-registration": ("delete-registration",),
        "extend-registration": ("extend-registration",),
        "one-click": ("one-click", "agree", "draw"),
        "schedule": ("schedule", "no-plan"),
        "read-schedule": ("read-schedule",),
        "reschedule": ("reschedule",),
        "deschedule": ("deschedule",),
        "delete-schedule": ("delete-schedule",),
        "query": ("order", "refund-order", "query", "query-nothing"),
        "query-one": ("query-one",),
        "query-records": ("query-records",),
        "query-record": ("query-record",),
        "settlements": ("settlements",),
        "settlement": ("settlement",),
        "aggregations": ("aggregations",),
        "aggregation": ("aggregation",),
        "aggregations-page": ("aggregations-page",),
        "aggregation-page": ("aggregation-page",),
        "approvals": ("approvals",),
        "approvals-waterfall": ("approvals-waterfall",),
        "approvals-gains": ("approvals-gains",),
        "card-facts": ("card-facts",),
        "read-clock": ("clock",),
        "move-clock": ("move-clock",),
        "reset-clock": ("reset-clock",),
        "acquirer-messages": ("messages",),
        "mails": ("direct-debit", "mails"),
        # Only on a channel with network tokens: docs/network-tokens.md.
        "change-network-token": (),
        # A token differs each time, and is some thousand characters long.
        "make-wallet-token": (),
        "decide-transfer": ("prepayment", "arrived"),
        # Read by the command line: docs/clients.md.
        "open-inspector": (),
        "read-webhooks": (),
        "read-requests": (),
    }
)
"""The samples shown with each endpoint of the reference."""

"""Every endpoint × another merchant's id: the answer is the one for an id that names nothing.

The routes come from the URL resolver: one that is not classified here fails the test. Source: goals, R11; ruling D11.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from gateway.catalogue.openapi import REQUEST_EXAMPLES
from gateway.core import identifiers
from gateway.models import AcquirerExchange, Division, Payment
from tests.support.client import Answer, Api, payment
from tests.support.fixtures import Shop, open_division, open_shop

pytestmark = pytest.mark.django_db

METHODS = ("GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS")
FOLLOW_UPS = ("CP", "RF", "RV", "RB", "RC", "CB", "CR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """One request that names an entity and a payment. ``{payment}`` and ``{entity}`` are put in."""

    method: str
    what: str
    path: str
    fields: dict[str, str] = field(default_factory=dict)


def _reads(path: str, **fields: str) -> Naming:
    return Naming(method="GET", what="", path=path, fields=fields)


def _posts(path: str, what: str = "", **fields: str) -> Naming:
    return Naming(method="POST", what=what, path=path, fields={k.replace("__", "."): v for k, v in fields.items()})


_PA_AGAIN = {"paymentType": "PA", "amount": "1.00", "currency": "EUR", "referenceUuid": "{payment}"}
STORED = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
_AGAIN = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}
_REFERENCE = "standingInstruction.initialTransactionId"
_MAY = {"date.from": "2026-05-01", "date.to": "2026-05-31"}
_MONEY = {"amount": "1.00", "currency": "EUR"}
_PLAN = {**_MONEY, "paymentType": "DB", "job.expression": "0 0 6 1 * ?"}

ROUTES: dict[str, tuple[Naming, ...]] = {
    "payments": (
        _posts("payments", "a payment", **payment()),
        _posts("payments", "increment", **_PA_AGAIN, standingInstruction__industryPractice="INCREMENTAL_AUTH"),
        _posts("payments", "renewal", **_PA_AGAIN, standingInstruction__industryPractice="REAUTHORIZATION"),
        _posts("payments", "reference without practice", **payment(referenceUuid="{payment}")),
        _posts("payments", "an agreement", **payment(), **_AGAIN, **{_REFERENCE: "{payment}"}),
    ),
    "payments/<str:target>": (
        _reads("payments/{payment}"),
        *(_posts("payments/{payment}", kind, paymentType=kind, **_MONEY) for kind in FOLLOW_UPS),
        _posts("payments/{payment}", "RV, all that remains", paymentType="RV"),
        _posts("payments/{payment}", "another currency", paymentType="RF", amount="1.00", currency="USD"),
        _posts("payments/{payment}", "too much", paymentType="RF", amount="9999.00", currency="EUR"),
        _posts("payments/{payment}", "refused value", paymentType="RF", amount="1.50", currency="JPY"),
        _posts("payments/{payment}", "not offered", paymentType="DB", **_MONEY),
        _posts("payments/{payment}", "not valid", paymentType="RF", amount="1"),
        _posts(
            "payments/{payment}", "increment", paymentType="PA", **_MONEY,
            standingInstruction__industryPractice="INCREMENTAL_AUTH",
        ),
        _posts(
            "payments/{payment}", "both ids", paymentType="PA", **_MONEY, referenceUuid="{payment}",
            standingInstruction__industryPractice="REAUTHORIZATION",
        ),
    ),
    "threeDSecure": (_posts("threeDSecure", "an authentication", **REQUEST_EXAMPLES["three-d-secure"]),),
    "threeDSecure/<str:target>": (_reads("threeDSecure/{payment}"),),
    "registrations": (_posts("registrations", "a registration", **STORED),),
    "registrations/<str:target>": (
        _reads("registrations/{payment}"),
        _posts("registrations/{payment}", "update", card__holder="Jane Jones"),
        Naming(method="DELETE", what="", path="registrations/{payment}"),
    ),
    "registrations/<str:target>/extend": (_posts("registrations/{payment}/extend"),),
    "registrations/<str:target>/payments": (
        _posts("registrations/{payment}/payments", "a payment", paymentType="DB", **_MONEY),
        _posts("registrations/{payment}/payments", "by an agreement", paymentType="DB", **_MONEY, **_AGAIN),
        _posts("registrations/{payment}/payments", "not valid", paymentType="DB", amount="1", currency="EUR"),
    ),
    "schedules": (
        _posts("schedules", "a plan", **_PLAN, registrationId="{payment}"),
        _posts("schedules", "not valid", registrationId="{payment}", amount="1"),
    ),
    "schedules/<str:target>": (
        _reads("schedules/{payment}"),
        Naming(method="DELETE", what="", path="schedules/{payment}"),
    ),
    "schedules/<str:target>/reschedule": (
        _posts("schedules/{payment}/reschedule", "a new amount", amount="2.00"),
        _posts("schedules/{payment}/reschedule", "not valid", amount="1"),
    ),
    "schedules/<str:target>/deschedule": (_posts("schedules/{payment}/deschedule"),),
    "query": (
        _reads("query"),
        _reads("query", merchantTransactionId="order-4711", includeLinkedTransactions="true"),
        _reads("query", paymentTypes="DB"),
    ),
    "query/<str:target>": (
        _reads("query/{payment}"),
        _reads("query/{payment}", includeLinkedTransactions="true"),
    ),
    "reports/approvals": (_reads("reports/approvals", **_MAY),),
    "reports/approvals/waterfall": (_reads("reports/approvals/waterfall", **_MAY),),
    "reports/approvals/gains": (_reads("reports/approvals/gains", **_MAY),),
    "reports/reconciliations": (_reads("reports/reconciliations", **_MAY),),
    "reports/reconciliations/<str:target>": (_reads("reports/reconciliations/{payment}"),),
    "resultcodes": (),
    "cardFacts": (_reads("cardFacts", **{"card.bin": "420000"}),),
    "checkouts": (
        _posts("checkouts", "a checkout", **_MONEY, paymentType="DB"),
        _posts("checkouts", "not valid", amount="1"),
    ),
    "checkouts/<str:target>": (_posts("checkouts/{payment}", "an update", amount="2.00"),),
    "checkouts/<str:target>/payment": (
        _reads("checkouts/{payment}/payment"),
        _posts("checkouts/{payment}/payment", "a form", paymentBrand="VISA"),
    ),
    "checkouts/<str:target>/registration": (
        _reads("checkouts/{payment}/registration"),
        _posts("checkouts/{payment}/registration", "a form", paymentBrand="VISA"),
    ),
    "paymentLinks": (
        _posts("paymentLinks", "a link", **_MONEY, paymentType="DB"),
        _posts("paymentLinks", "not valid", amount="1"),
        _reads("paymentLinks"),
    ),
    "paymentLinks/<str:target>": (
        _reads("paymentLinks/{payment}"),
        Naming(method="DELETE", what="", path="paymentLinks/{payment}"),
    ),
    "paymentLinks/<str:target>/deactivate": (_posts("paymentLinks/{payment}/deactivate"),),
    "checkouts/<str:target>/config": (),
    "checkouts/<str:target>/card-brands": (),
    "checkouts/<str:target>/state": (),
    "checkouts/<str:target>/release": (),
    "checkouts/<str:target>/wallet-session": (),
    "paymentWidgets.js": (),
    "paymentWidgets/<str:digest>.js": (),
    "fastcheckout/integrity": (),
    "widget/texts/<str:locale>.json": (),
    "widget/brands.json": (),
    "widget/frame.html": (),
    "widget/policy-reports": (),
    "test/clock": (
        _reads("test/clock"),
        _posts("test/clock", advance="60"),
        Naming(method="DELETE", what="", path="test/clock"),
    ),
    "test/transfers/<str:target>": (
        _posts("test/transfers/{payment}", outcome="arrived"),
        _posts("test/transfers/{payment}", "not valid", outcome="lost"),
    ),
    "test/network-tokens/<str:target>": (
        _posts("test/network-tokens/{payment}", event="SUSPENDED"),
        _posts("test/network-tokens/{payment}", "not valid", event="LOST"),
    ),
    "test/mails": (_reads("test/mails", id="{payment}"),),
    "test/webhooks": (_reads("test/webhooks"), _posts("test/webhooks", mode="signed")),
    "test/requests": (_reads("test/requests"),),
    "test/acquirer/messages": (_reads("test/acquirer/messages", id="{payment}"),),
    "test/wallet-token": (_posts("test/wallet-token", wallet="wallet2", amount="92.00", currency="EUR"),),
}  # fmt: skip
"""Route → requests that name ids; none for a route that is the same for everybody."""

FILES = ("fastcheckout/integrity", "widget/brands.json", "paymentWidgets.js")
"""The same bytes for everybody, without an envelope."""

CASES = [
    pytest.param(naming, id=f"{naming.method} {naming.path} {naming.what}")
    for each in ROUTES.values()
    for naming in each
]
each_request = pytest.mark.parametrize("naming", CASES)
each_that_names_a_payment = pytest.mark.parametrize(
    "naming",
    [case for case in CASES if "{payment}" in case.values[0].path + "".join(case.values[0].fields.values())],
)


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(route below /v1/, view class) of everything that the resolver knows there."""
    for entry in resolver.url_patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from routes(entry, route)
        elif isinstance(entry, URLPattern) and re.match(r"\^?/?v[0-9]+/", route):
            yield route.partition("/")[2], getattr(entry.callback, "view_class", getattr(entry.callback, "cls", None))


def test_every_route_below_v1_is_classified() -> None:
    """R11: a new route has to say here by what it can be asked for another's data."""
    known = dict(routes(get_resolver()))
    known.pop("openapi.json", None)  # the same for everybody, without a token
    assert set(known) == set(ROUTES)
    for route, view in known.items():
        asked = {naming.method for naming in ROUTES[route]}
        assert asked == set(getattr(view, "endpoints", {})), f"{route}: a request for each of its methods"


def ask(api: Api, naming: Naming, *, payment: str, entity: str | None) -> Answer:
    def put_in(text: str) -> str:
        return text.replace("{payment}", payment)

    caller = api.as_entity(entity)
    fields = {name: put_in(value) for name, value in naming.fields.items()}
    path = f"/v1/{put_in(naming.path)}"
    if naming.method == "POST":
        return caller.post(path, fields)
    return (caller.get if naming.method == "GET" else caller.delete)(path, fields)


def told(answer: Answer, *ids: str) -> tuple[int, dict[str, str], str]:
    """The answer without what differs for any two requests: ndc, timestamp, and the id that was sent."""
    headers = {name: value for name, value in answer.headers.items() if name != "Content-Length"}
    text = answer.text
    for ident in ids:
        text = text.replace(ident, "<id>")
    body = json.loads(text)
    assert body.pop("ndc")
    assert body.pop("timestamp")
    return answer.status, headers, json.dumps(body)


CARD = ("card__number", "card__expiryMonth", "card__expiryYear", "card__cvv", "card__holder")


def payments_of(shop: Shop) -> dict[str, str]:
    """One payment of each kind, so that what may follow may follow."""
    held = shop.api.pay(paymentType="PA", amount="50.00")
    paid = shop.api.pay()
    disputed = shop.api.pay()
    stored = shop.api.post("/v1/registrations", STORED).id
    return {
        "PA": held.id,
        "DB": paid.id,
        "CD": shop.api.pay(paymentType="CD").id,
        "CP": shop.api.follow(held.id, "CP", "10.00").id,
        "RF": shop.api.follow(paid.id, "RF", "1.00").id,
        "CB": shop.api.follow(disputed.id, "CB", "92.00").id,
        "declined": shop.api.pay(card__number="4000015500000005").id,
        "prepayment": shop.api.pay(paymentBrand="PREPAYMENT", **dict.fromkeys(CARD, None)).id,
        "in doubt": shop.api.pay(card__number="4000090003000000").id,
        "registration": stored,
        "schedule": shop.api.post("/v1/schedules", {**_PLAN, "registrationId": stored}).id,
        "registration with a payment": shop.api.pay(createRegistration="true").body["registrationId"],
    }


@pytest.fixture(scope="module")
def division(module_db: None) -> Division:
    return open_division()


@pytest.fixture(scope="module")
def stranger(division: Division) -> Shop:
    """Another merchant, the same for all tests of this file."""
    return open_shop(division, "Stranger")


@pytest.fixture(scope="module")
def theirs(stranger: Shop) -> dict[str, str]:
    return payments_of(stranger)


@each_that_names_a_payment
def test_another_merchants_payment_is_answered_like_none(
    shop: Shop, stranger: Shop, theirs: dict[str, str], naming: Naming
) -> None:
    """R11, D11: with a token and an entity of one's own."""
    before = Payment.objects.filter(merchant=stranger.merchant).count(), AcquirerExchange.objects.count()
    nothing = identifiers.row_id().hex
    expected = told(ask(shop.api, naming, payment=nothing, entity=shop.channel.entity_id), nothing)
    assert expected[0] in (400, 404)
    for kind, ident in theirs.items():
        assert told(ask(shop.api, naming, payment=ident, entity=shop.channel.entity_id), ident) == expected, kind
    assert before == (Payment.objects.filter(merchant=stranger.merchant).count(), AcquirerExchange.objects.count())
    assert not Payment.objects.filter(merchant=shop.merchant).exists()


@each_request
def test_another_merchants_entity_is_answered_like_none(
    shop: Shop, stranger: Shop, theirs: dict[str, str], naming: Naming
) -> None:
    """R11, D11: a channel and a merchant of somebody else, with their payment or one of one's own."""
    own, nothing = shop.api.pay().id, identifiers.row_id().hex
    unknown = secrets.token_hex(16)
    before = Payment.objects.count()
    for ident in (theirs["PA"], own, nothing):
        expected = told(ask(shop.api, naming, payment=ident, entity=unknown), unknown)
        assert expected[0] == 403
        for dispatching in (False, True):
            type(stranger.merchant).objects.filter(pk=stranger.merchant.pk).update(dispatching=dispatching)
            for entity in (stranger.channel.entity_id, stranger.merchant.entity_id):
                assert told(ask(shop.api, naming, payment=ident, entity=entity), entity) == expected
    assert Payment.objects.count() == before


@each_request
def test_another_merchants_token_is_no_key_to_ones_own_entity(shop: Shop, stranger: Shop, naming: Naming) -> None:
    """R11: what counts is whom the token speaks for."""
    own, unknown = shop.api.pay(paymentType="PA").id, secrets.token_hex(16)
    expected = told(ask(stranger.api, naming, payment=own, entity=unknown), unknown)
    entity = shop.channel.entity_id
    assert told(ask(stranger.api, naming, payment=own, entity=entity), entity) == expected
    assert expected[0] == 403


@each_that_names_a_payment
def test_another_channels_payment_is_answered_like_none(shop: Shop, naming: Naming) -> None:
    """R11: a token that is bound to one channel of a merchant sees nothing of the others."""
    other = shop.open_channel()
    _, secret = shop.issue(channel=other)
    api = shop.api.with_token(secret)
    own, nothing = shop.api.pay(paymentType="PA").id, identifiers.row_id().hex
    expected = told(ask(api, naming, payment=nothing, entity=other.entity_id), nothing)
    assert told(ask(api, naming, payment=own, entity=other.entity_id), own) == expected
    unknown = secrets.token_hex(16)
    refused = told(ask(api, naming, payment=own, entity=unknown), unknown)
    for entity in (shop.channel.entity_id, shop.merchant.entity_id):
        assert told(ask(api, naming, payment=own, entity=entity), entity) == refused


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("route", ROUTES)
def test_no_method_tells_another_merchants_payment_from_none(
    shop: Shop, theirs: dict[str, str], route: str, method: str
) -> None:
    """R11: methods that a route does not take, too; ids in the path and in the query string."""
    nothing = identifiers.row_id().hex

    def call(ident: str) -> tuple[int, dict[str, str], str]:
        fields = {"entityId": shop.channel.entity_id, "id": ident, "referenceUuid": ident}
        answer = shop.api.call(method, "/v1/" + route.replace("<str:target>", ident), fields)
        if not answer.http.content or (route in FILES and answer.status == 200):
            return answer.status, dict(answer.headers), answer.text
        return told(answer, ident)

    assert call(theirs["DB"]) == call(nothing)


def test_the_comparison_would_see_a_difference(shop: Shop) -> None:
    """The tests above can fail."""
    own, nothing = shop.api.pay().id, identifiers.row_id().hex
    naming = ROUTES["payments/<str:target>"][0]
    entity = shop.channel.entity_id
    assert told(ask(shop.api, naming, payment=own, entity=entity), own) != told(
        ask(shop.api, naming, payment=nothing, entity=entity), nothing
    )

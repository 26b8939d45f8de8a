"""Payment links: addresses of the hosted payment page that a merchant sends to shoppers. Source: decision 0083."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue import conditions as c
from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import NO_TEST_MODE_IN_LIVE, REQUIRED_ENTITY, Endpoint
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import ALWAYS, C, R, structure
from gateway.core import money

LINK_PAYMENT_TYPES = ("DB", "PA")
PAYMENT_LINK_ID_PARAMETER = "paymentLinkId"
"""The custom parameter by which a payment, its answers and its webhooks name their link."""
_RESERVED = f"customParameters[{PAYMENT_LINK_ID_PARAMETER}]"


def _amount_or_open(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("link.openAmount") == "true":
        if "amount" in sent:
            yield "amount", "is not sent with link.openAmount=true: the shopper enters it"
    elif "amount" not in sent:
        yield "amount", "is required, unless link.openAmount=true lets the shopper enter it"
    elif sent.amount("amount") == 0:
        yield "amount", "must be above 0"


def _bounds_fit_currency(sent: RuleInput) -> Iterator[RuleBreach]:
    currency = sent.get("currency")
    for name in ("link.minAmount", "link.maxAmount"):
        amount = sent.amount(name)
        if amount is not None and currency is not None and not money.fits_currency(amount, currency):
            yield name, f"must be a whole number in {currency}, e.g. 92 or 92.00"


def _type_of_links(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("paymentType") not in (None, *LINK_PAYMENT_TYPES):
        yield "paymentType", f"must be {' or '.join(LINK_PAYMENT_TYPES)} here"


def _reserved_name(sent: RuleInput) -> Iterator[RuleBreach]:
    if _RESERVED in sent:
        yield _RESERVED, "is set by the gateway: it names the link"


_RULES = (
    build_rule(
        "amount is required, unless link.openAmount=true", ("amount", "link.openAmount"), _amount_or_open,
        keeps={"link.openAmount": "true"}, breaks={"link.openAmount": "true", "amount": "92.00"},
    ),
    build_rule(
        "link.minAmount and link.maxAmount are whole in a currency without decimals",
        ("link.minAmount", "link.maxAmount", "currency"), _bounds_fit_currency,
        keeps={"link.maxAmount": "500.00", "currency": "JPY"}, breaks={"link.maxAmount": "500.50", "currency": "JPY"},
    ),
    build_rule(
        "paymentType is DB or PA", ("paymentType",), _type_of_links,
        keeps={"paymentType": "DB"}, breaks={"paymentType": "CD"},
    ),
    build_rule(
        f"customParameters[{PAYMENT_LINK_ID_PARAMETER}] is set by the gateway", ("customParameters[name]",),
        _reserved_name, keeps={"customParameters[order]": "7"}, breaks={_RESERVED: "7"},
    ),
)  # fmt: skip
_BASIC = structure(
    "Basic payment", "Part A", "",
    *(s.BASIC_PAYMENT.needing(amount=C, currency=R, paymentType=R).names[name] for name in (
        "amount", "taxAmount", "discountAmount", "currency", "paymentType", "descriptor", "merchantTransactionId",
        "merchantInvoiceId", "merchantMemo", "transactionCategory", "locale",
    )), demand=ALWAYS,
)  # fmt: skip
_ENTITY_ONLY = (REQUIRED_ENTITY,)

CREATE_PAYMENT_LINK_ENDPOINT = Endpoint(
    name="payment-link",
    method="POST",
    path="/v1/paymentLinks",
    title="Create a payment link",
    about="An address that shoppers pay at, once or several times, an amount of yours or one of their own. Each "
    "opening makes a checkout of 30 minutes. The payments name the link in customParameters[paymentLinkId].",
    operation="checkout",
    scope="payments",
    structures=(
        REQUIRED_ENTITY,
        _BASIC,
        s.LINK,
        s.TEST_MODE,
        s.LINK_CUSTOMER,
        s.BILLING,
        s.SHIPPING,
        s.LINK_CART_ITEMS,
        s.CUSTOM_PARAMETERS,
        s.ASYNCHRONOUS,
    ),
    rules=(NO_TEST_MODE_IN_LIVE, *_RULES, *c.NO_MAIL_OR_TELEPHONE, *c.CURRENCY_FITS),
)
READ_PAYMENT_LINK_ENDPOINT = Endpoint(
    name="read-payment-link",
    method="GET",
    path="/v1/paymentLinks/{id}",
    title="Read a payment link",
    about="The link as it stands: its state, how often it was paid, and how much.",
    operation="status",
    scope="read",
    structures=_ENTITY_ONLY,
)
LIST_PAYMENT_LINKS_ENDPOINT = Endpoint(
    name="payment-links",
    method="GET",
    path="/v1/paymentLinks",
    title="List payment links",
    about="The links of the entity, the newest first, page by page.",
    operation="query",
    scope="read",
    structures=(REQUIRED_ENTITY, s.LINK_PAGING),
    answers=(200, 400, 401, 403, 429),
)
DEACTIVATE_PAYMENT_LINK_ENDPOINT = Endpoint(
    name="deactivate-payment-link",
    method="POST",
    path="/v1/paymentLinks/{id}/deactivate",
    title="Close a payment link",
    about="It is neither opened nor paid any more; payments that have begun go on. Closing it again changes nothing.",
    operation="checkout",
    scope="payments",
    structures=_ENTITY_ONLY,
    keyed=False,
)
DELETE_PAYMENT_LINK_ENDPOINT = Endpoint(
    name="delete-payment-link",
    method="DELETE",
    path="/v1/paymentLinks/{id}",
    title="Close a payment link, by DELETE",
    about="The same as deactivate: the link stays, with its payments.",
    operation="checkout",
    scope="payments",
    structures=_ENTITY_ONLY,
)

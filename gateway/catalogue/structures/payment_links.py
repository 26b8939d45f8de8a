"""What the hosted payment page and payment links add to the tables of the specification. Source: decision 0083."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.formats import AMOUNT, AN, BOOLEAN, DATE_TIME, number_between
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import NEVER, C, O, structure
from gateway.catalogue.structures.cart import CART_ITEMS
from gateway.catalogue.structures.checkout import select_rows
from gateway.catalogue.structures.people import CUSTOMER
from gateway.catalogue.structures.query import MAX_PAGE_NUMBER

MAX_LINK_PAYMENTS = 1_000_000

PAYMENT_PAGE = structure(
    "Payment page", "decision 0083", "",
    ("paymentPage", BOOLEAN, O, "true returns the address of a page of this gateway that has the form."),
    demand=NEVER,
)  # fmt: skip


def _payments_of_reusable(sent: RuleInput) -> Iterator[RuleBreach]:
    if "maxPayments" in sent and sent.get("reusable") != "true":
        yield "maxPayments", "goes with link.reusable=true: any other link is paid once"


def _bounds_of_open_amount(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("openAmount") != "true":
        for name in ("minAmount", "maxAmount"):
            if name in sent:
                yield name, "goes with link.openAmount=true: the shopper chooses no amount otherwise"
        return
    if "maxAmount" not in sent:
        yield "maxAmount", "is required with link.openAmount=true"
    least, most = sent.amount("minAmount"), sent.amount("maxAmount")
    for name, amount in (("minAmount", least), ("maxAmount", most)):
        if amount == 0:
            yield name, "must be above 0"
    if least is not None and most is not None and least > most:
        yield "maxAmount", "must not be below link.minAmount"


LINK = structure(
    "Payment link", "decision 0083", "link",
    ("description", AN(1, 200).eg("Deposit for your stay"), O, "What the shopper reads above the amount."),
    ("reusable", BOOLEAN, O, "true: it is paid several times, by different shoppers. Any other link is paid once."),
    ("maxPayments", number_between(1, MAX_LINK_PAYMENTS, words=f"integer 1 to {MAX_LINK_PAYMENTS}"), O,
     "How often a reusable link is paid at most; without it there is no limit."),
    ("openAmount", BOOLEAN, O, "true: the shopper enters the amount, so none is sent."),
    ("minAmount", AMOUNT.eg("5.00"), O, "The least open amount; without it the currency's smallest unit."),
    ("maxAmount", AMOUNT.eg("500.00"), C, "The greatest open amount. Required with link.openAmount=true."),
    ("expiresAt", DATE_TIME.eg("2036-05-14 17:00:00"), O, "Until when it can be paid, UTC by the merchant's clock."),
    rules=[
        build_rule(
            "link.maxPayments goes with link.reusable=true", ("reusable", "maxPayments"), _payments_of_reusable,
            keeps={"reusable": "true", "maxPayments": "20"}, breaks={"maxPayments": "20"},
        ),
        build_rule(
            "link.minAmount and link.maxAmount are the bounds of link.openAmount=true",
            ("openAmount", "minAmount", "maxAmount"), _bounds_of_open_amount,
            keeps={"openAmount": "true", "maxAmount": "500.00"}, breaks={"openAmount": "true"},
        ),
    ],
    demand=NEVER,
)  # fmt: skip

LINK_CART_ITEMS = select_rows(
    CART_ITEMS, "name", "merchantItemId", "quantity", "sku", "currency", "description", "price", "totalAmount",
    "taxAmount", "tax",
)  # fmt: skip
"""The order lines of a link, which each of its shoppers reads."""
LINK_CUSTOMER = select_rows(
    CUSTOMER, "merchantCustomerId", "givenName", "surname", "phone", "email", "companyName", "status"
)

LINK_PAGING = structure(
    "Pages of payment links", "decision 0083", "",
    ("limit", number_between(1, 100, words="integer 1 to 100"), O, "How many a page lists.",
     {"default": "50", "filled": True}),
    ("pageNo", number_between(1, MAX_PAGE_NUMBER, words=f"integer 1 to {MAX_PAGE_NUMBER}"), O,
     "Which page, the newest links first.", {"default": "1", "filled": True}),
    demand=NEVER,
)  # fmt: skip

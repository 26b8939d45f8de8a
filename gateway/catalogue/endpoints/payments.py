"""First payments, follow-ups, and reading one. Source: Part A, Endpoints; rulings D2, D12."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue import conditions as c
from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import NO_TEST_MODE_IN_LIVE, REQUIRED_ENTITY, Endpoint
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import ALWAYS, C, O

FOLLOW_UP_TYPES = frozenset({"CP", "RV", "RF", "RB", "RC", "CB", "CR"})


def _follow_ups_need_an_id(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("paymentType") in FOLLOW_UP_TYPES:
        yield "paymentType", f"{sent['paymentType']} follows an earlier payment: send it to POST /v1/payments/{{id}}"


REFUSE_FOLLOW_UP_TYPES = build_rule(
    "CP, RV, RF, RB, RC, CB and CR follow an earlier payment and are sent to POST /v1/payments/{id}",
    ("paymentType",),
    _follow_ups_need_an_id,
    when=("paymentType",),
    keeps={"paymentType": "DB"},
    breaks={"paymentType": "CP"},
)


def _amount_unless_reversal(sent: RuleInput) -> Iterator[RuleBreach]:
    kind = sent.get("paymentType")
    if kind is not None and kind != "RV" and "amount" not in sent:
        yield "amount", f"is required with paymentType {kind}, e.g. 92.00"


FOLLOW_UP_AMOUNT = build_rule(
    "amount is required, except with RV, which then reverses all that remains",
    ("amount", "paymentType"),
    _amount_unless_reversal,
    keeps={"paymentType": "RV"},
    breaks={"paymentType": "CP"},
)

PAYMENT_ENDPOINT = Endpoint(
    name="payment",
    method="POST",
    path="/v1/payments",
    title="Make a payment",
    about="Pay (DB), authorise (PA) or credit (CD) in one request, or check the risk alone (RI).",
    operation="payment",
    scope="payments",
    structures=(
        REQUIRED_ENTITY,
        s.BASIC_PAYMENT.without("overridePaymentType[brand]").demanding(ALWAYS),
        s.TEST_MODE,
        *s.REQUEST_STRUCTURES_OF_PAYMENTS,
        s.ACCOUNT_UPDATER,
    ),
    rules=(NO_TEST_MODE_IN_LIVE, REFUSE_FOLLOW_UP_TYPES, *c.FOR_PAYMENTS),
)

FOLLOW_UP_ENDPOINT = Endpoint(
    name="follow-up",
    method="POST",
    path="/v1/payments/{id}",
    title="Follow up on a payment",
    about="Capture (CP), refund (RF) or reverse (RV) an earlier payment; brand, means and currency come from it.",
    operation="follow-up",
    scope="payments",
    structures=(
        REQUIRED_ENTITY,
        s.BASIC_PAYMENT.without("overridePaymentType[brand]")
        .needing(amount=C, currency=C, paymentBrand=O)
        .demanding(ALWAYS),
        s.TEST_MODE,
        *s.REQUEST_STRUCTURES_OF_FOLLOW_UPS,
    ),
    rules=(NO_TEST_MODE_IN_LIVE, FOLLOW_UP_AMOUNT, *c.FOR_FOLLOW_UPS),
)

STATUS_ENDPOINT = Endpoint(
    name="status",
    method="GET",
    path="/v1/payments/{id}",
    title="Read a payment",
    about="The payment object as it stands. A declined payment answers 400 with the same object.",
    operation="status",
    scope="read",
    structures=(REQUIRED_ENTITY,),
)

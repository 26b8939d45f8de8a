"""3-D Secure without a payment. Source: Part B, 3D Secure; rulings, section 4."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue import conditions as c
from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import NO_TEST_MODE_IN_LIVE, REQUIRED_ENTITY, Endpoint
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import ALWAYS, O

_PAYMENT_ONLY = (
    "taxAmount", "discountAmount", "integrity", "overridePaymentType[brand]", "descriptor", "merchantInvoiceId",
    "merchantMemo", "transactionCategory", "sequence", "numberOfCaptures", "promotionCode", "locale",
    "transactionPurposeCode", "integrationType", "transactionBai", "transactionTti", "transactionProcessingCode",
    "lifecycleId", "referenceUuid",
)  # fmt: skip


def _only_3d(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("paymentType") not in (None, "3D"):
        yield "paymentType", "must be 3D, or left out: no money moves here"


ONLY_3D = build_rule(
    "paymentType is 3D, or left out", ("paymentType",), _only_3d,
    keeps={"paymentType": "3D"}, breaks={"paymentType": "DB"},
)  # fmt: skip

STANDALONE_AUTHENTICATION_ENDPOINT = Endpoint(
    name="three-d-secure",
    method="POST",
    path="/v1/threeDSecure",
    title="Authenticate a cardholder",
    about="3-D Secure without a payment: the proof can be sent with a payment later, to whichever acquirer.",
    operation="payment",
    scope="payments",
    keyed=False,
    structures=(
        REQUIRED_ENTITY,
        s.BASIC_PAYMENT.without(*_PAYMENT_ONLY).needing(paymentType=O, merchantTransactionId=O).demanding(ALWAYS),
        s.TEST_MODE,
        s.CARD.demanding(ALWAYS),
        s.CUSTOMER,
        s.BILLING,
        s.SHIPPING,
        s.MERCHANT,
        s.THREE_D_SECURE[0].without("disable"),
        s.EXEMPTION,
        s.CUSTOM_PARAMETERS,
        s.SCHEME_DATA,
        s.ASYNCHRONOUS,
        s.RISK,
        s.STANDING_INSTRUCTION,
    ),
    rules=(NO_TEST_MODE_IN_LIVE, ONLY_3D, *c.FOR_AUTHENTICATIONS),
)

READ_AUTHENTICATION_ENDPOINT = Endpoint(
    name="read-three-d-secure",
    method="GET",
    path="/v1/threeDSecure/{id}",
    title="Read an authentication",
    about="The authentication as it stands, with its proof once there is one.",
    operation="status",
    scope="read",
    structures=(REQUIRED_ENTITY,),
)

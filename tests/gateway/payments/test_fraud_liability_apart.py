"""Who carries the loss of a payment, each condition by itself and beside another one. No database."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.models import Payment
from gateway.payments.fraud_liability import FraudLiability, resolve_fraud_liability

ISSUER, EXEMPTED, INITIATED, ORDER, PLAIN = (
    FraudLiability.ISSUER, FraudLiability.MERCHANT_EXEMPTED, FraudLiability.MERCHANT_INITIATED,
    FraudLiability.MERCHANT_ORDER, FraudLiability.MERCHANT_UNAUTHENTICATED,
)  # fmt: skip


def payment(sent: dict[str, Any] | None = None, shown: dict[str, Any] | None = None, **values: Any) -> Payment:
    """``sent``, ``shown``: threeDSecure.* of the request and of the answer."""
    request = {"threeDSecure": sent or {}, **values.pop("request", {})}
    return Payment(**{
        "payment_type": "DB", "status": "APPROVED", "means": "card", "brand": "VISA", "request": request,
        "answer": {"facts": {"threeDSecure": shown}} if shown is not None else {}, **values,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("values", "liability"),
    [
        ({}, ISSUER),
        ({"payment_type": "PA"}, ISSUER),
        ({"payment_type": "CD"}, None),
        ({"payment_type": "RG"}, None),
        ({"payment_type": "CP"}, None),
        ({"referenced": UUID(int=1)}, None),
        ({"means": "bankAccount"}, None),
        ({"means": "tokenAccount"}, None),
        ({"status": "DECLINED"}, None),
        ({"status": "PENDING"}, None),
        ({"brand": "DIRECTDEBIT_SEPA"}, None),
        ({"brand": "WALLET1", "answer": {"card": {"bin": "420000"}}}, ISSUER),
        ({"brand": "WALLET1", "answer": {"card": {"bin": "545454"}}}, PLAIN),
        ({"brand": "WALLET1"}, None),
    ],
    ids=str,
)
def test_an_approved_first_card_payment_has_a_liability(
    values: dict[str, Any], liability: FraudLiability | None
) -> None:
    assert resolve_fraud_liability(payment({"eci": "05"}, **values)) is liability


@pytest.mark.parametrize(
    ("sent", "shown", "liability"),
    [
        ({"eci": "05"}, None, ISSUER),
        ({"eci": "07"}, {"eci": "05"}, ISSUER),
        ({"eci": "05"}, {"eci": "07"}, PLAIN),
        ({"eci": "05"}, {"eci": ""}, PLAIN),
        ({"eci": "05"}, {"flow": "challenge"}, ISSUER),
        ({}, {"eci": "06"}, ISSUER),
        ({}, None, PLAIN),
        ({"eci": ""}, None, PLAIN),
        ({"eci": "00"}, None, PLAIN),
    ],
    ids=str,
)
def test_what_our_authentication_showed_goes_before_what_was_sent(
    sent: dict[str, str], shown: dict[str, str] | None, liability: FraudLiability
) -> None:
    assert resolve_fraud_liability(payment(sent, shown)) is liability


@pytest.mark.parametrize(
    ("version", "liability"), [("1.0.2", PLAIN), ("1.", PLAIN), ("2.1.0", ISSUER), ("11.0", ISSUER), ("", ISSUER)]
)
def test_only_the_first_protocol_moves_nothing(version: str, liability: FraudLiability) -> None:
    assert resolve_fraud_liability(payment({"eci": "05", "version": version})) is liability


MIT = {"standingInstruction": {"mode": "REPEATED", "source": "MIT", "type": "RECURRING"}}
MAIL = {"transactionCategory": "MO"}
ALONE = {"channel": "03"}
EXEMPT = {"exemptionFlag": "01", "challengeIndicator": "05"}


@pytest.mark.parametrize(
    ("sent", "request_", "liability"),
    [
        ({"eci": "05", **ALONE}, MIT, ISSUER),
        ({"eci": "05"}, MIT, INITIATED),
        ({"eci": "07", **ALONE}, MIT, INITIATED),
        ({"eci": "05", **ALONE}, {}, ISSUER),
        ({"eci": "05"}, MIT | MAIL, INITIATED),
        ({"eci": "05"}, MAIL, ORDER),
        ({"eci": "05", **ALONE}, MAIL, ORDER),
        ({"eci": "07"}, MAIL, ORDER),
        ({"eci": "05", **EXEMPT}, {}, ISSUER),
        ({"eci": "07", **EXEMPT}, {}, EXEMPTED),
        (EXEMPT, {}, EXEMPTED),
        ({"eci": "06", "version": "1.0.2", **EXEMPT}, {}, PLAIN),
        (EXEMPT, MAIL, ORDER),
        (EXEMPT, MIT, INITIATED),
    ],
    ids=str,
)
def test_what_lacks_its_shopper_goes_before_how_it_was_authenticated(
    sent: dict[str, str], request_: dict[str, Any], liability: FraudLiability
) -> None:
    assert resolve_fraud_liability(payment(sent, request=request_)) is liability


@pytest.mark.parametrize(
    ("sent", "request_", "liability"),
    [
        ({}, {}, PLAIN),
        ({}, {"standingInstruction": {"mode": "INITIAL", "type": "RECURRING"}}, ISSUER),
        ({}, {"standingInstruction": {"type": "RECURRING"}}, PLAIN),
        (ALONE, {}, ISSUER),
        ({"threeRIInd": "RECURRING"}, {}, ISSUER),
        ({"deviceInfo": "app"}, {}, PLAIN),
    ],
    ids=str,
)
def test_at_mastercard_the_eci_of_an_agreement_is_one_of_its_payments_only(
    sent: dict[str, str], request_: dict[str, Any], liability: FraudLiability
) -> None:
    assert resolve_fraud_liability(payment({"eci": "07", **sent}, request=request_, brand="MASTER")) is liability

"""Refusals before a payment exists: each condition by itself, its code, the parameter at fault, and what was sent.
No database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parameters import Parameters
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.secret import Secret
from gateway.models import Channel
from gateway.payments import refusal
from gateway.payments.payment_methods import is_type_supported
from gateway.payments.refusal import (
    RequestRefusedError,
    build_unsendable_refusal,
    check_brand_known,
    check_brand_takes_type,
    check_currency,
    check_first_payment_type,
    resolve_brand,
)

VISA, MASTER = Secret("4200000000000000"), Secret("5454545454545454")
IBAN = Secret("DE89370400440532013000")


def refused(act: Callable[[], object]) -> tuple[str, list[ParameterError]]:
    """The code of the refusal and the parameters at fault; ('', []) without one."""
    try:
        act()
    except RequestRefusedError as fault:
        return fault.code, list(fault.errors)
    return "", []


def test_a_refusal_is_a_bad_request_unless_it_says_otherwise() -> None:
    plain = RequestRefusedError("800.110.100")
    assert (plain.code, plain.errors, plain.status, plain.more, str(plain)) == (
        "800.110.100",
        (),
        400,
        "",
        "800.110.100",
    )
    error = ParameterError(name="a", message="b")
    full = RequestRefusedError("700.400.510", [error], status=404, more="words")
    assert (full.errors, full.status, full.more) == ((error,), 404, "words")


FIRST = ["PA", "DB", "CD", "RI"]


@pytest.mark.parametrize("kind", [*FIRST, "RG", "CP", "RF", "RV", "RB", "RC", "CB", "CR", "XX"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_chain_begins_with_a_first_payment_or_a_registration_of_what_is_not_stored_yet(
    kind: str, stored: bool
) -> None:
    code, errors = refused(lambda: check_first_payment_type(kind, stored=stored, name="kind"))
    begins = kind in FIRST or (kind == "RG" and not stored)
    assert code == ("" if begins else "600.200.400")
    if not begins:
        assert [(one.name, one.value, one.code) for one in errors] == [("kind", kind, "600.200.400")]
        assert all(offered in errors[0].message for offered in FIRST)
        assert ("RG" in errors[0].message) is not stored


def brand_of(channel: dict[str, Any] | None = None, **sent: str | Secret) -> tuple[str, bool]:
    named = {name.replace("__", "."): value for name, value in sent.items()}
    parameters = Parameters(
        values={name: value for name, value in named.items() if isinstance(value, str)},
        secrets={name: value for name, value in named.items() if isinstance(value, Secret)},
    )
    return resolve_brand(parameters, Channel(**(channel or {})))


@pytest.mark.parametrize(
    ("channel", "sent", "found"),
    [
        ({}, {"paymentBrand": "VISA", "card__number": VISA}, ("VISA", False)),
        ({}, {"card__number": VISA}, ("VISA", True)),
        ({}, {"card__number": MASTER}, ("MASTER", True)),
        ({}, {"paymentBrand": "DIRECTDEBIT_SEPA", "bankAccount__iban": IBAN}, ("DIRECTDEBIT_SEPA", False)),
        ({"brands": ["MASTER", "VISA"]}, {"paymentBrand": "VISA"}, ("VISA", False)),
        ({}, {"paymentBrand": "WALLET1", "card__number": VISA, "wallet1__source": "web"}, ("WALLET1", False)),
    ],
)
def test_a_brand_is_the_one_sent_else_the_numbers(
    channel: dict[str, Any], sent: dict[str, str | Secret], found: tuple[str, bool]
) -> None:
    assert brand_of(channel, **sent) == found


@pytest.mark.parametrize(
    ("channel", "sent", "code", "value"),
    [
        ({}, {}, "200.300.404", None),
        ({}, {"card__number": Secret("9999999999999999")}, "200.300.404", None),
        ({}, {"paymentBrand": "VIZA", "card__number": VISA}, "600.200.200", "VIZA"),
        ({}, {"paymentBrand": "VISA", "bankAccount__iban": IBAN}, "600.200.100", "VISA"),
        ({}, {"paymentBrand": "DIRECTDEBIT_SEPA", "card__number": VISA}, "600.200.100", "DIRECTDEBIT_SEPA"),
        # A wallet's brand takes cards from that wallet only.
        ({}, {"paymentBrand": "WALLET1", "card__number": VISA}, "600.200.100", "WALLET1"),
        ({}, {"paymentBrand": "WALLET1", "card__number": VISA, "wallet2__source": "web"}, "600.200.100", "WALLET1"),
        ({"brands": ["MASTER"]}, {"paymentBrand": "VISA", "card__number": VISA}, "600.200.201", "VISA"),
    ],
)
def test_a_brand_that_cannot_be_is_refused_by_name(
    channel: dict[str, Any], sent: dict[str, str | Secret], code: str, value: str | None
) -> None:
    found, errors = refused(lambda: brand_of(channel, **sent))
    assert found == code
    assert [(one.name, one.value, one.code) for one in errors] == [("paymentBrand", value, code)]


def test_a_brand_that_is_nearly_one_is_told_the_one_that_was_meant() -> None:
    assert refused(lambda: check_brand_known("VISA")) == ("", [])
    for brand, words in (("viza", "did you mean VISA?"), ("SOMETHING_ELSE_ALTOGETHER", "which takes VISA, MASTER")):
        code, [error] = refused(lambda brand=brand: check_brand_known(brand, "here"))  # type: ignore[misc]
        assert (code, error.name, error.value, error.code) == ("600.200.200", "here", brand, "600.200.200")
        assert words in error.message


def test_a_brand_is_asked_whether_it_takes_the_type_but_of_a_registration() -> None:
    lacking = next(code for code in PAYMENT_BRANDS if not is_type_supported(code, "CD"))
    code, [error] = refused(lambda: check_brand_takes_type("CD", lacking, "kind"))
    assert (code, error.name, error.value, error.code) == ("600.200.310", "kind", "CD", "600.200.310")
    assert lacking in error.message
    assert refused(lambda: check_brand_takes_type("DB", lacking)) == ("", [])
    assert refused(lambda: check_brand_takes_type("CD", "VISA")) == ("", [])
    assert refused(lambda: check_brand_takes_type("RG", lacking)) == ("", [])


@pytest.mark.parametrize(
    ("taken", "currency", "code"),
    [
        ([], "EUR", ""),
        (["EUR"], "EUR", ""),
        (["CHF", "EUR"], "EUR", ""),
        (["CHF"], "EUR", "600.200.500"),
        (["CHF"], None, ""),
    ],
)
def test_a_currency_is_one_of_the_channels(taken: list[str], currency: str | None, code: str) -> None:
    parameters = Parameters(values={"currency": currency} if currency else {})
    found, errors = refused(lambda: check_currency(parameters, Channel(currencies=taken)))
    assert found == code
    assert [(one.name, one.value, one.code) for one in errors] == [("currency", currency, code)] * bool(code)


def test_what_cannot_be_sent_is_named_with_its_value() -> None:
    fault = build_unsendable_refusal(["merchant.payFacId", "lifecycleId"], Parameters(values={"lifecycleId": "x"}))
    assert fault.code == "600.200.400"
    assert [(one.name, one.value, one.code, one.known) for one in fault.errors] == [
        ("merchant.payFacId", None, "600.200.400", True), ("lifecycleId", "x", "600.200.400", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: brand_of(paymentBrand="VISA", bankAccount__iban=IBAN), "is not paid with bankAccount.iban, which"),
        (
            lambda: brand_of({"brands": ["MASTER", "JCB"]}, paymentBrand="VISA"),
            "is not set up for this channel, which takes MASTER, JCB",
        ),
        (lambda: brand_of(), "is required: no card brand is known for this number"),
        (
            lambda: check_currency(Parameters(values={"currency": "EUR"}), Channel(currencies=["CHF", "USD"])),
            "is not set up for this channel, which takes CHF, USD",
        ),
        (lambda: check_first_payment_type("CP", stored=True), "is not offered here; CD, DB, PA, RI are"),
        (lambda: check_first_payment_type("CP", stored=False), "is not offered here; CD, DB, PA, RG, RI are"),
    ],
)
def test_a_refusal_says_what_is_taken_instead(act: Callable[[], object], words: str) -> None:
    _, [error] = refused(act)
    assert error.message.startswith(words)


def test_a_number_is_looked_at_by_the_order_and_the_brands_of_its_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(refusal, "detect_brand_of_number", lambda *each: (asked.append(each), "JCB")[1])
    channel = {"brand_order": ["VISA", "JCB"], "brands": ["JCB", "MASTER"]}
    assert brand_of(channel, card__number=VISA) == ("JCB", True)
    assert asked == [(VISA, ["JCB"], ["JCB", "MASTER"])]

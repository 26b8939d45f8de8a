"""A request of a first payment from its parameters: where each part of it comes from, and what is left out of it.
No database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.catalogue.parameters import Parameters
from gateway.connectors.means import BankAccount, Card
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Agreement, Channel, Merchant
from gateway.payments import request_builder
from gateway.payments.payment_methods import is_type_supported
from gateway.payments.payment_request import PaymentRequest, RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.request_builder import (
    StoredMeans,
    build_condition_facts,
    build_payment_request,
    resolve_test_mode,
)

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
TRACE = RequestTrace(request=UUID(int=7), method="POST", path="/v1/payments", at=NOW)
CARD = Card(number=Secret("5454545454545454"), expiry_month="05", expiry_year="2034")
STORED = StoredMeans(
    registration=UUID(int=4), brand="MASTER", means=CARD, details={"card": {"holder": "Jane"}}, renewed=True
)
SENT = {"paymentType": "DB", "paymentBrand": "VISA", "amount": "92.00", "currency": "EUR"}


def build(
    sent: dict[str, str] | None = None,
    secrets: dict[str, str] | None = None,
    channel: dict[str, Any] | None = None,
    **more: Any,
) -> PaymentRequest:
    own = {"card.number": "4200000000000000"} if "stored" not in more else {}
    sealed = {name: Secret(value) for name, value in (own | (secrets or {})).items()}
    parameters = Parameters(values=dict(SENT if sent is None else sent), secrets=sealed)
    return build_payment_request(
        parameters, merchant=Merchant(id=UUID(int=1)), channel=Channel(id=UUID(int=2), **(channel or {})), now=NOW,
        trace=TRACE, **more,
    )  # fmt: skip


def test_a_request_has_what_was_sent_and_who_asked() -> None:
    made = build(resource_path="/v1/x")
    assert (made.payment_type, made.brand, made.detected) == ("DB", "VISA", False)
    assert (made.money, made.test_mode) == (Money(Decimal("92.00"), "EUR"), "INTERNAL")
    assert isinstance(made.means, Card)
    assert made.means.number.reveal() == "4200000000000000"
    assert (made.registration, made.stored, made.renews_card) == (None, {}, False)
    assert (made.now, made.trace, made.resource_path) == (NOW, TRACE, "/v1/x")
    assert (made.merchant.id, made.channel.id) == (UUID(int=1), UUID(int=2))
    assert (made.idempotency, made.wallet_token, made.agreement_use) == (None, None, None)
    assert made.payment != build().payment


def test_a_brand_that_was_not_sent_is_detected() -> None:
    made = build({name: value for name, value in SENT.items() if name != "paymentBrand"})
    assert (made.brand, made.detected) == ("VISA", True)


def test_a_stored_means_brings_its_brand_its_details_and_the_code_that_was_sent_with_it() -> None:
    made = build(secrets={"card.cvv": "123"}, stored=STORED)
    assert (made.brand, made.detected, made.registration) == ("MASTER", False, UUID(int=4))
    assert (made.stored, made.renews_card) == ({"card": {"holder": "Jane"}}, True)
    assert made.means == replace(CARD, cvv=Secret("123"))
    assert build(stored=STORED).means == CARD
    assert build(stored=replace(STORED, renewed=False)).renews_card is False
    account = BankAccount(account=Secret("DE89370400440532013000"), is_iban=True)
    debit = replace(STORED, brand="DIRECTDEBIT_SEPA", means=account)
    assert build(secrets={"card.cvv": "123"}, stored=debit).means == account


@pytest.mark.parametrize(
    ("sent", "currencies", "currency"),
    [({}, [], "EUR"), ({}, ["CHF", "USD"], "CHF"), ({"currency": "USD"}, ["CHF", "USD"], "USD")],
)
def test_a_registration_has_the_amount_zero_in_a_currency_of_its_channel(
    sent: dict[str, str], currencies: list[str], currency: str
) -> None:
    made = build({"paymentBrand": "VISA", "amount": "5.00", **sent}, channel={"currencies": currencies})
    assert (made.payment_type, made.money) == ("RG", Money.zero(currency))


@pytest.mark.parametrize(
    ("sent", "stored", "code"),
    [
        ({"paymentType": "CP"}, None, "600.200.400"),
        ({"paymentType": "RG"}, STORED, "600.200.400"),
        ({"currency": "USD"}, None, "600.200.500"),
        ({"paymentBrand": "MASTER"}, None, "600.200.201"),
    ],
)
def test_what_is_not_offered_is_refused_before_a_payment_exists(
    sent: dict[str, str], stored: StoredMeans | None, code: str
) -> None:
    more = {"stored": stored} if stored else {}
    with pytest.raises(RequestRefusedError) as refused:
        build(SENT | sent, channel={"currencies": ["EUR"], "brands": ["VISA"]}, **more)
    assert refused.value.code == code


@pytest.mark.parametrize(("kind", "captures"), [("PA", "2"), ("DB", None)])
def test_what_only_follow_ups_use_is_told_to_be_ignored(kind: str, captures: str | None) -> None:
    sent = SENT | {
        "paymentType": kind, "sequence": "FINAL", "chargebackResultCode": "000.100.221", "numberOfCaptures": "2",
    }  # fmt: skip
    parameters = build(sent).parameters
    ignored = {"sequence", "chargebackResultCode", *([] if captures else ["numberOfCaptures"])}
    assert set(parameters.ignored) == ignored
    assert parameters.get("numberOfCaptures") == captures
    assert parameters.get("sequence") is None


MIT = {"standingInstruction.source": "MIT"}


@pytest.mark.parametrize("policy", ["normal", "strict", "lenient"])
@pytest.mark.parametrize("by_merchant", [True, False])
def test_a_security_code_of_a_merchants_own_payment_goes_nowhere(
    by_merchant: bool, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PCI DSS 4.0, 3.3.1: none may be kept after authorization, so none can be sent again."""
    monkeypatch.setattr(request_builder, "resolve_agreement", lambda *_: None)
    sent = SENT | (MIT if by_merchant else {})
    secrets = {"card.cvv": "123", "tokenAccount.dtvc": "817"}
    if by_merchant and policy == "strict":
        with pytest.raises(RequestRefusedError) as refused:
            build(sent, secrets, {"parameters": policy})
        errors = refused.value.errors
        assert [(one.name, one.known, one.value) for one in errors] == [(name, True, None) for name in secrets]
        assert build(sent, {}, {"parameters": policy}).parameters.ignored == ()
        return
    made = build(sent, secrets, {"parameters": policy})
    assert isinstance(made.means, Card)
    assert (made.means.cvv is None) is by_merchant
    assert set(made.parameters.ignored) == (set(secrets) if by_merchant else set())
    assert ("tokenAccount.dtvc" in made.parameters.secrets) is not by_merchant


def test_an_agreement_is_the_callers_else_the_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(request_builder, "resolve_agreement", lambda *each: asked.append(each[1:]))
    build(channel={"name": "x"})
    assert [(kind, channel.name, registration) for kind, channel, registration in asked] == [("DB", "x", None)]
    build(stored=STORED)
    assert asked[1][2] == UUID(int=4)
    own = Agreement(id=UUID(int=9), brand="VISA", reference="r")
    made = build(agreement=own)
    assert made.agreement_use is not None
    assert (made.agreement_use.agreement, len(asked)) == (own, 2)


@pytest.mark.parametrize(
    ("sent", "stored", "storable"),
    [({}, False, False), ({"createRegistration": "true"}, False, True), ({"createRegistration": "false"}, False, False),
     ({}, True, True)],
)  # fmt: skip
def test_a_job_needs_a_means_that_is_or_will_be_stored(
    sent: dict[str, str], stored: bool, storable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    class Hooks:
        def check_parameters(self, parameters: object, channel: object, now: datetime, *, storable: bool) -> None:
            assert now == NOW
            asked.append(storable)

    monkeypatch.setattr(request_builder.JOB_HOOKS, "get", Hooks)
    more = {"stored": STORED} if stored else {}
    build(SENT | sent, **more)
    assert asked == []
    build(SENT | sent | {"job.expression": "0 0 6 1 * ?"}, **more)
    assert asked == [storable]


@pytest.mark.parametrize(
    ("is_live", "channel", "facts"),
    [
        (False, None, set()),
        (True, None, {"live"}),
        (False, {}, set()),
        (False, {"three_d_secure": True}, {"threeds"}),
        (False, {"cvv_required": True}, {"cvv"}),
        (True, {"three_d_secure": True, "cvv_required": True}, {"live", "threeds", "cvv"}),
    ],
)
def test_conditions_know_the_month_the_environment_and_the_channels_switches(
    is_live: bool, channel: dict[str, Any] | None, facts: set[str]
) -> None:
    with override_settings(IS_LIVE=is_live):
        found = build_condition_facts(Channel(**channel) if channel is not None else None, NOW)
    assert found == facts | {"today:2026-11"}


@pytest.mark.parametrize(
    ("is_live", "sent", "mode"),
    [(False, {}, "INTERNAL"), (False, {"testMode": "EXTERNAL"}, "EXTERNAL"), (True, {"testMode": "EXTERNAL"}, ""),
     (True, {}, "")],
)  # fmt: skip
def test_a_test_mode_is_of_the_test_environment_alone(is_live: bool, sent: dict[str, str], mode: str) -> None:
    with override_settings(IS_LIVE=is_live):
        assert resolve_test_mode(Parameters(values=sent)) == mode


# What is asked of the others, with what.


def test_a_wallets_token_is_opened_for_the_channel_and_by_its_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    token: Any = object()

    def unwrap(parameters: Parameters, channel: Channel, build_facts: Any) -> Any:
        asked.append((dict(parameters.values), channel, build_facts()))
        return token

    monkeypatch.setattr(request_builder, "unwrap_wallet_token", unwrap)
    made = build(channel={"three_d_secure": True})
    assert asked == [(SENT, made.channel, frozenset({"today:2026-11", "threeds"}))]
    assert made.wallet_token is token
    assert build(stored=STORED).wallet_token is None
    assert len(asked) == 1


def test_a_request_has_its_idempotency_key_and_an_agreement_of_its_cards_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key: Any = object()
    used: list[Any] = []
    asked: list[Any] = []
    use: Any = object()
    monkeypatch.setattr(request_builder, "resolve_agreement", lambda *each: (asked.append(each), "resolved")[1])
    monkeypatch.setattr(request_builder, "use_agreement", lambda *each: (asked.append(each), "used")[1])
    monkeypatch.setattr(request_builder, "drop_references_of_other_network", lambda *each: (used.append(each), use)[1])
    made = build(idempotency=key)
    assert (made.idempotency, made.agreement_use) == (key, use)
    assert used == [("resolved", "VISA")]
    assert asked[0] == (made.parameters, "DB", made.channel, None)
    # A wallet's brand is not the network of the card in it.
    paid = {"paymentBrand": "WALLET1", "wallet1.source": "web"}
    build(SENT | paid, {"card.number": "5454545454545454"})
    assert used[1] == ("resolved", "MASTER")
    own = Agreement(id=UUID(int=9))
    made = build(agreement=own)
    assert used[2] == ("used", "VISA")
    assert asked[2] == (own, made.parameters)


def test_a_jobs_parameters_are_checked_for_the_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    hooks: Any = SimpleNamespace(check_parameters=lambda *each, **named: asked.append((each, named)))
    monkeypatch.setattr(request_builder.JOB_HOOKS, "get", lambda: hooks)
    made = build(SENT | {"job.expression": "0 0 6 1 * ?"})
    assert asked == [((made.parameters, made.channel, NOW), {"storable": False})]


VISA = "4200000000000000"
NO_CREDITS = next(
    code for code, brand in PAYMENT_BRANDS.items() if brand.redirect and not is_type_supported(code, "CD")
)


@pytest.mark.parametrize(
    ("sent", "secrets", "name"),
    [
        ({"paymentType": "CP", "currency": "USD"}, {"card.number": VISA}, "paymentType"),
        ({"currency": "USD", "paymentBrand": "VIZA"}, {"card.number": VISA}, "currency"),
        ({"paymentType": "CD", "paymentBrand": "VIZA"}, {"card.number": VISA}, "paymentBrand"),
        ({"paymentType": "CD", "paymentBrand": NO_CREDITS}, {}, "paymentType"),
    ],
)
def test_what_is_refused_is_refused_in_order(sent: dict[str, str], secrets: dict[str, str], name: str) -> None:
    """The type, the currency, the brand, and what the brand takes."""
    parameters = Parameters(values=SENT | sent, secrets={each: Secret(value) for each, value in secrets.items()})
    with pytest.raises(RequestRefusedError) as refused:
        build_payment_request(
            parameters, merchant=Merchant(id=UUID(int=1)), channel=Channel(currencies=["EUR"]), now=NOW, trace=TRACE
        )
    assert [one.name for one in refused.value.errors] == [name]


def test_a_stored_brand_is_asked_whether_it_takes_the_type() -> None:
    with pytest.raises(RequestRefusedError) as refused:
        build(SENT | {"paymentType": "CD"}, stored=replace(STORED, brand=NO_CREDITS))
    assert [(one.name, one.value) for one in refused.value.errors] == [("paymentType", "CD")]


def test_a_means_of_a_stored_payment_is_not_read_from_the_request() -> None:
    made = build(SENT, {"card.number": "4200000000000000", "card.cvv": "123"}, stored=STORED)
    assert isinstance(made.means, Card)
    assert made.means.number.reveal() == "5454545454545454"

"""Each condition of a follow-up on its way: what is refused before anybody is asked, and what an acquirer is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import Card
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock
from gateway.core.result_codes import VAULT_ERROR_CODE
from gateway.core.secret import Secret
from gateway.models import Channel, Payment, Status
from gateway.payments import follow_ups
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import (
    GATEWAY_FOLLOW_UP_PARAMETERS,
    FollowUpRequest,
    load_chain,
    load_chain_means,
    process_follow_up,
)
from gateway.payments.operation_table import LATE_REAUTHORIZATION_OPERATION, OPERATIONS
from gateway.payments.points_of_service import find_point_of_service
from gateway.payments.refusal import ACCOUNT_ERASED_CODE, RequestRefusedError
from gateway.vault.sealing import VaultError
from tests.gateway.payments.test_follow_ups import refund, request_of, sent
from tests.support.chains import after, first
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
CARD = Card(number=Secret("4200000000000000"), expiry_month="05", expiry_year="2034")


# References.


@pytest.mark.parametrize(("reference", "refused"), [(UUID(int=71).hex, False), (UUID(int=72).hex, True), ("x", True)])
def test_a_reference_names_the_payment_of_the_path(reference: str, refused: bool) -> None:
    request = request_of(sent(paymentType="RF", referenceUuid=reference))
    if not refused:
        follow_ups._check_reference(request)
        return
    with pytest.raises(RequestRefusedError) as told:
        follow_ups._check_reference(request)
    [error] = told.value.errors
    assert (told.value.code, told.value.status) == ("200.300.404", 400)
    assert (error.name, error.value) == ("referenceUuid", reference)
    assert error.message == "names another payment than the path does"


@pytest.mark.parametrize(
    ("values", "code", "status", "names"),
    [({}, "600.200.500", 404, []), ({"referenceUuid": "a"}, "200.300.404", 400, [("referenceUuid", "a")])],
)
def test_an_unknown_payment_is_told_by_the_path_or_by_the_reference(
    values: dict[str, str], code: str, status: int, names: list[Any]
) -> None:
    refused = follow_ups._build_not_found_refusal(OPERATIONS["RF"], sent(**values))
    assert (refused.code, refused.status) == (code, status)
    assert [(error.name, error.value) for error in refused.errors] == names
    assert all(error.message == "names no payment of this entity" for error in refused.errors)


# Accounts and cards that do not open.


def fail(*_: Any) -> Any:
    raise VaultError("shut")


def test_an_account_that_does_not_open_refuses_its_follow_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    target = Payment.objects.get(pk=shop.api.pay().id)
    target.acquirer_merchant_id = "M-1"
    monkeypatch.setattr(follow_ups, "load_connector_account", lambda *call: seen.append(call))
    follow_ups._check_account_opens(target)
    assert seen == [(CONNECTORS["simulator"], shop.channel.pk, "M-1")]
    monkeypatch.setattr(follow_ups, "load_connector_account", fail)
    with pytest.raises(RequestRefusedError) as told:
        process_follow_up(refund(shop, target.id.hex))
    assert told.value.code == VAULT_ERROR_CODE
    assert Payment.objects.count() == 1


@pytest.mark.parametrize(("failures", "opens"), [(0, True), (1, True), (2, False)])
def test_a_card_that_does_not_open_is_read_once_more(
    monkeypatch: pytest.MonkeyPatch, failures: int, opens: bool
) -> None:
    calls: list[Any] = []

    def load(*call: Any) -> Card:
        calls.append(call)
        if len(calls) <= failures:
            raise VaultError("shut")
        return CARD

    monkeypatch.setattr(follow_ups, "load_chain_means", load)
    named = (UUID(int=1), UUID(int=2))
    if opens:
        assert follow_ups._open_chain_means(*named) is CARD
        assert calls == [named] * (failures + 1)
    else:
        with pytest.raises(RequestRefusedError) as told:
            follow_ups._open_chain_means(*named)
        assert (told.value.code, calls) == (VAULT_ERROR_CODE, [named, named])


@pytest.mark.parametrize("authorizing", [UUID(int=2), None])
def test_a_chains_card_is_replaced_by_what_its_authorization_was_sent_with(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, authorizing: UUID | None
) -> None:
    ident = UUID(shop.api.pay().id)
    shop.api.pay(card__number="4000015500000005")
    monkeypatch.setattr(follow_ups, "replace_sent_means", lambda means, one: (means, one))
    found: Any = load_chain_means(ident, authorizing)
    card = found[0] if authorizing is not None else found
    assert card.number.reveal() == "4200000000000000"
    assert authorizing is None or found[1] == authorizing


def test_an_erased_card_refuses_what_needs_it_and_nothing_else(shop: Shop) -> None:
    paid = shop.api.pay().id
    Payment.objects.update(means_sealed=None)
    assert shop.api.follow(paid, "RB", "1.00").code == ACCOUNT_ERASED_CODE
    assert shop.api.follow(paid, "RF", "1.00").status == 200


# The retry rules, and expired authorizations.


@pytest.mark.parametrize("kind", ["RB", "RF"])
@pytest.mark.parametrize("source", ["MIT", "CIT"])
def test_what_asks_the_issuer_anew_is_watched(monkeypatch: pytest.MonkeyPatch, kind: str, source: str) -> None:
    seen: list[Any] = []

    def plan(*call: Any, **names: Any) -> str:
        seen.append((call, names))
        return "a plan"

    monkeypatch.setattr(follow_ups, "plan_follow_up_screening", plan)
    row = Payment()
    request = request_of(sent(standingInstruction__source=source))
    found: Any = follow_ups._plan_retries(OPERATIONS[kind], row, CARD, request)
    if kind == "RF":
        assert (found, seen) == (None, [])
        return
    [((payment, means), names)] = seen
    assert (found, payment, means) == ("a plan", row, CARD)
    assert names == {"merchant_initiated": source == "MIT"}


@pytest.mark.parametrize("mode", Channel.ExpiredCaptures)
def test_only_the_channel_that_says_so_renews_what_expired(mode: Channel.ExpiredCaptures) -> None:
    target = Payment(channel=Channel(expired_captures=mode))
    assert follow_ups._renews_expired(target) is (mode == Channel.ExpiredCaptures.RENEW)


def test_a_renewal_before_a_late_capture_is_of_all_that_is_left(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ident = UUID(shop.api.pay(paymentType="PA", amount="100.00").id)
    shop.api.follow(ident.hex, "CP", "30.00")
    asked: list[FollowUpRequest] = []
    monkeypatch.setattr(follow_ups, "process_follow_up", asked.append)
    chain = load_chain(ident, shop.merchant, None)
    assert chain is not None
    request = refund(shop, ident.hex, channel=shop.channel, now=NOW)
    follow_ups._renew_authorization(request, chain)
    [renewal] = asked
    assert (renewal.target, renewal.merchant, renewal.channel, renewal.now) == (ident, shop.merchant, None, NOW)
    assert renewal.operation is LATE_REAUTHORIZATION_OPERATION
    values = {
        "paymentType": "PA", "amount": "70.00", "currency": "EUR",
        "standingInstruction.industryPractice": "REAUTHORIZATION",
    }  # fmt: skip
    assert {name: renewal.parameters.get(name) for name in values} == values
    trace = renewal.trace
    assert (trace.method, trace.path, trace.entity) == ("RENEW", "CP", shop.channel.pk)
    assert abs(trace.at - clock.real_now()) < timedelta(minutes=1)
    assert len({renewal.payment, trace.request, ident, request.payment}) == 4

    def refuse(request: FollowUpRequest) -> Payment:
        raise RequestRefusedError("700.400.530")

    monkeypatch.setattr(follow_ups, "process_follow_up", refuse)
    follow_ups._renew_authorization(request, chain)


# What an acquirer is told.


def test_an_acquirer_is_told_of_the_follow_up_and_what_it_follows() -> None:
    held = first("PA", connector_tx_id="first", request={}, answer={})
    target = after(held, "PA", "10.00", practice="INCREMENTAL_AUTH", connector_tx_id="raised", request={}, answer={})
    row = after(
        target, "CP", "7.00", brand="MASTER", authorization_kind="FINAL", request={"descriptor": "Shop"}, answer={}
    )
    request = replace(request_of(sent(descriptor="Shop", merchantMemo="not for banks")), now=NOW)
    chain = Chain([held, target, row])
    asked = follow_ups._build_follow_up_acquirer_request(row, chain, target, CARD, request)
    assert (asked.payment, asked.operation, asked.money, asked.brand) == (row.id, "CP", row.money, "MASTER")
    assert (asked.at, asked.means, asked.reference) == (NOW, CARD, "raised")
    assert (asked.authorization_kind, asked.original) == ("FINAL", find_point_of_service(chain, row))
    assert asked.parameters["descriptor"] == "Shop"
    assert "merchantMemo" not in asked.parameters


@pytest.mark.parametrize("stopped", [True, False])
def test_what_the_retry_rules_stop_is_not_submitted(shop: Shop, monkeypatch: pytest.MonkeyPatch, stopped: bool) -> None:
    paid = shop.api.pay().id
    said: list[str] = []
    decline = SimpleNamespace() if stopped else None
    monkeypatch.setattr(follow_ups, "screen_follow_up", lambda row, plan, request: decline)
    monkeypatch.setattr(follow_ups, "submit_payment", lambda *call: said.append("submitted"))
    monkeypatch.setattr(
        follow_ups, "complete_unless_recovered", lambda row, outcome, request, **more: said.append("completed")
    )
    row = process_follow_up(refund(shop, paid))
    assert row.status == Status.STARTED
    assert said == (["completed"] if stopped else ["submitted", "completed"])


def test_a_follow_up_that_is_refused_is_neither_asked_about_nor_counted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its card is not opened either."""
    paid = shop.api.pay().id
    for name in ("screen_follow_up", "submit_payment", "load_chain_means", "_plan_retries", "_check_account_opens"):
        monkeypatch.setattr(follow_ups, name, fail)
    pairs = [("paymentType", "RB"), ("amount", "10.00"), ("currency", "USD")]
    row = process_follow_up(replace(refund(shop, paid), parameters=GATEWAY_FOLLOW_UP_PARAMETERS.parse(pairs)))
    assert (row.status, row.amount) == (Status.DECLINED, Decimal("10.00"))
    assert Payment.objects.get(pk=paid).follow_ups == 0

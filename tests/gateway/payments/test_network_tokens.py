"""Network tokens of stored cards: how they come, when a payment is sent with one, and what becomes of one that fails.

Source: docs/decisions/0126; docs/network-tokens.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.urls import reverse

from gateway.backoffice.payments import explanation
from gateway.configuration.channel import CHANNEL_SECTION
from gateway.connectors.means import Card, TokenAccount
from gateway.connectors.port import AcquirerReply, AcquirerRequest
from gateway.connectors.simulator import token_service as simulated
from gateway.connectors.simulator.accounts import BANK_ACCOUNTS
from gateway.connectors.simulator.cards import SIMULATED_CARDS
from gateway.connectors.simulator.issuers import (
    SIMULATED_ISSUERS,
    IssuerQuestion,
    build_issuer_card,
    simulate_issuer_answer,
)
from gateway.connectors.simulator.token_service import (
    SIMULATED_REQUESTOR,
    build_simulated_cryptogram,
    build_simulated_token,
)
from gateway.connectors.token_service import TokenEvent, TokenServiceUnavailableError
from gateway.connectors.token_services import load_token_service
from gateway.core import clock
from gateway.core import document as d
from gateway.core.luhn import is_luhn_valid
from gateway.core.result_codes import RESULT_CODES, find_result_code
from gateway.core.secret import Secret
from gateway.models import (
    AcquirerExchange,
    Channel,
    NetworkToken,
    Notification,
    Payment,
    PaymentEvent,
    PaymentToken,
    Registration,
    Role,
    RoutingRule,
    RoutingTarget,
    Status,
)
from gateway.payments import (
    follow_ups,
    network_tokens,
    process,
    registration_retention,
    registrations,
    webhook_payloads,
)
from gateway.payments.chain_amounts import Chain
from gateway.payments.network_tokens import (
    MAX_TOKEN_HISTORY,
    TOKEN_DECLINES,
    apply_token_event,
    call_token_service_when_due,
)
from gateway.payments.points_of_service import find_point_of_service
from gateway.payments.stored_answer import get_attempt_number
from gateway.personal_data import account_retention
from gateway.vault.sealing import current_vault
from tests.support.acquirers import APPROVED, DECLINED, Acquirer, Killed, account, known
from tests.support.client import Answer, Api
from tests.support.clock import pass_time
from tests.support.database import places_of
from tests.support.doc_blocks import read_block
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.recovery import recover_after

pytestmark = pytest.mark.django_db

PAN, TOKEN = "4200000000000000", build_simulated_token("4200000000000000")
DECLINED_TOKEN, REFUSED, SILENT, SUSPENDED = (
    next(card.number for card in SIMULATED_CARDS if card.tokenization == how)
    for how in ("declined", "refused", "silent", "suspended")
)
CLICK = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
INITIAL = {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}
MIT = {
    "standingInstruction.mode": "REPEATED",
    "standingInstruction.source": "MIT",
    "standingInstruction.type": "UNSCHEDULED",
}
TOKEN_REFUSED = "800.100.307"


@pytest.fixture
def tokens(shop: Shop) -> Shop:
    """A shop whose channel has network tokens."""
    Channel.objects.filter(pk=shop.channel.pk).update(network_tokens=True)
    return shop


def store(api: Api, number: str = PAN, year: str = "2034", **more: str) -> str:
    """A stored card whose token is there."""
    fields = {"card.number": number, "card.expiryMonth": "05", "card.expiryYear": year, "card.holder": "Jane Jones"}
    stored = api.post("/v1/registrations", {"paymentBrand": "VISA", **fields, **more})
    assert stored.status == 200, stored
    call_token_service_when_due()
    return stored.id


def click(api: Api, registration: str, **more: str) -> Answer:
    fields = CLICK | {name.replace("__", "."): value for name, value in more.items()}
    return api.post(f"/v1/registrations/{registration}/payments", fields)


def token_of(registration: str) -> NetworkToken:
    return NetworkToken.objects.get(registration=registration)


def told(answer: Answer) -> str | None:
    value: str | None = answer.body.get("resultDetails", {}).get("NetworkToken")
    return value


def sent(payment: str) -> list[dict[str, Any]]:
    rows = AcquirerExchange.objects.filter(payment=payment).order_by("id")
    return [row.sent.get("differs", row.sent) for row in rows]


def events(payment: str) -> list[str]:
    return list(PaymentEvent.objects.filter(payment=payment).order_by("sequence").values_list("event", flat=True))


# --- how a token comes ----------------------------------------------------------------------------------------------


def test_a_stored_card_gets_a_token_that_is_sealed_and_shown_by_its_last_digits(tokens: Shop) -> None:
    stored = store(tokens.api)
    row = token_of(stored)
    assert (row.status, row.due_at, row.requestor) == ("ACTIVE", None, SIMULATED_REQUESTOR)
    assert current_vault().open(row.number_sealed or b"", row.id).reveal() == TOKEN
    assert places_of(TOKEN) == set()
    shown = tokens.api.get(f"/v1/registrations/{stored}").body["networkToken"]
    assert shown == {"status": "ACTIVE", "last4Digits": TOKEN[-4:], "expiryMonth": "05", "expiryYear": "2037"}


def test_without_the_channels_setting_nothing_is_asked_for(shop: Shop) -> None:
    stored = store(shop.api)
    assert not NetworkToken.objects.exists()
    assert "networkToken" not in shop.api.get(f"/v1/registrations/{stored}").body
    assert told(click(shop.api, stored)) is None


def test_a_card_that_was_stored_before_gets_its_token_by_its_next_payment(shop: Shop) -> None:
    stored = store(shop.api)
    Channel.objects.filter(pk=shop.channel.pk).update(network_tokens=True)
    assert told(click(shop.api, stored)) is None
    call_token_service_when_due()
    assert told(click(shop.api, stored)) == "USED"


def test_a_card_stored_with_its_payment_gets_a_token_too(tokens: Shop) -> None:
    tokens.api.pay(createRegistration="true")
    call_token_service_when_due()
    assert NetworkToken.objects.get().status == "ACTIVE"


def test_a_bank_account_gets_no_token(tokens: Shop) -> None:
    row = next(row for row in BANK_ACCOUNTS if row.code == "000.100.110")
    stored = tokens.api.post("/v1/registrations", dict(row.fields))
    assert stored.status == 200, stored
    assert not NetworkToken.objects.exists()


def test_a_card_that_the_network_gives_no_token_for_is_charged_by_its_number(tokens: Shop) -> None:
    stored = store(tokens.api, REFUSED)
    assert token_of(stored).status == "REFUSED"
    assert token_of(stored).due_at is None
    paid = click(tokens.api, stored)
    assert (paid.code, told(paid)) == ("000.100.110", None)


def test_a_service_without_an_answer_is_asked_again_later_and_in_the_end_by_a_payment(
    tokens: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(simulated.SimulatedTokenService):
        def provision(self, request: Any) -> Any:
            raise TokenServiceUnavailableError("nobody")

    monkeypatch.setattr(network_tokens, "load_token_service", Silent)
    stored = store(tokens.api)
    for tries in range(1, len(network_tokens.PROVISION_RETRIES) + 1):
        row = token_of(stored)
        assert (row.status, row.tries) == ("REQUESTED", tries)
        assert row.due_at is not None
        assert row.due_at > clock.real_now()
        NetworkToken.objects.update(due_at=clock.real_now())
        assert call_token_service_when_due() == 0
    assert token_of(stored).due_at is None
    monkeypatch.undo()
    assert told(click(tokens.api, stored)) is None
    call_token_service_when_due()
    assert token_of(stored).status == "ACTIVE"


def test_a_service_that_fails_stops_neither_the_others_nor_a_payment(
    tokens: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = store(tokens.api)

    class Broken(simulated.SimulatedTokenService):
        def provision(self, request: Any) -> Any:
            raise ValueError("broken")

        def fetch_cryptogram(self, request: Any) -> Any:
            raise ValueError("broken")

    monkeypatch.setattr(network_tokens, "load_token_service", Broken)
    paid = click(tokens.api, stored)
    assert (paid.code, told(paid)) == ("000.100.110", "UNAVAILABLE")
    other = store(tokens.api, "4111111111111111")
    assert token_of(other).status == "REQUESTED"


def test_a_new_number_gets_a_new_token_and_the_old_one_is_deleted(
    tokens: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []
    monkeypatch.setattr(simulated.SimulatedTokenService, "delete", lambda _self, reference: deleted.append(reference))
    stored = store(tokens.api)
    old = token_of(stored).reference
    tokens.api.post(f"/v1/registrations/{stored}", {"card.number": "4111111111111111"})
    assert token_of(stored).number_sealed is None
    assert told(click(tokens.api, stored)) is None
    call_token_service_when_due()
    row = token_of(stored)
    assert (deleted, row.status, row.last4) == ([old], "ACTIVE", build_simulated_token("4111111111111111")[-4:])
    assert [one["status"] for one in row.history] == ["ACTIVE", "DELETED", "ACTIVE"]
    assert told(click(tokens.api, stored)) == "USED"


def test_deleting_the_card_erases_the_token_at_once_and_deletes_it_at_the_network(
    tokens: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []
    monkeypatch.setattr(simulated.SimulatedTokenService, "delete", lambda _self, reference: deleted.append(reference))
    stored = store(tokens.api)
    reference = token_of(stored).reference
    tokens.api.delete(f"/v1/registrations/{stored}")
    row = token_of(stored)
    assert (row.status, row.number_sealed) == ("DELETED", None)
    call_token_service_when_due()
    row = token_of(stored)
    assert (deleted, row.reference, row.due_at) == ([reference], "", None)
    assert [(one["status"], one["expiry"]) for one in row.history] == [("ACTIVE", "05/2037"), ("DELETED", "")]
    call_token_service_when_due()
    assert len(token_of(stored).history) == 2


def test_a_card_that_was_erased_otherwise_loses_its_token_with_the_retention_timer(tokens: Shop) -> None:
    stored = store(tokens.api)
    Registration.objects.update(means_sealed=None)
    registration_retention.erase_expired_registrations()
    assert (token_of(stored).status, token_of(stored).number_sealed) == ("DELETED", None)
    call_token_service_when_due()
    assert [one["status"] for one in token_of(stored).history] == ["ACTIVE", "DELETED"]


def test_a_token_that_comes_after_its_card_was_deleted_is_kept_by_nobody(
    tokens: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[str] = []
    provision = simulated.SimulatedTokenService.provision

    def while_deleted(self: Any, request: Any) -> Any:
        tokens.api.delete(f"/v1/registrations/{Registration.objects.get().id.hex}")
        return provision(self, request)

    monkeypatch.setattr(simulated.SimulatedTokenService, "provision", while_deleted)
    monkeypatch.setattr(simulated.SimulatedTokenService, "delete", lambda _self, reference: deleted.append(reference))
    stored = store(tokens.api)
    row = token_of(stored)
    assert (row.status, row.number_sealed, row.reference) == ("DELETED", None, "")
    assert len(deleted) == 1


def test_it_is_deleted_later_where_the_service_does_not_answer(tokens: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[str] = []
    provision = simulated.SimulatedTokenService.provision

    def while_deleted(self: Any, request: Any) -> Any:
        tokens.api.delete(f"/v1/registrations/{Registration.objects.get().id.hex}")
        return provision(self, request)

    def unavailable(_self: Any, _reference: str) -> None:
        raise TokenServiceUnavailableError("nobody")

    with monkeypatch.context() as first:
        first.setattr(simulated.SimulatedTokenService, "provision", while_deleted)
        first.setattr(simulated.SimulatedTokenService, "delete", unavailable)
        stored = store(tokens.api)
    reference = token_of(stored).reference
    assert reference
    monkeypatch.setattr(simulated.SimulatedTokenService, "delete", lambda _self, name: deleted.append(name))
    call_token_service_when_due()
    row = token_of(stored)
    assert (deleted, row.reference, row.due_at) == ([reference], "", None)
    assert [one["status"] for one in row.history] == ["DELETED"]


def test_a_repeated_request_has_the_key_of_the_first_one(tokens: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[UUID] = []
    provision = simulated.SimulatedTokenService.provision

    def lost_at_first(self: Any, request: Any) -> Any:
        keys.append(request.key)
        if len(keys) == 1:
            raise TokenServiceUnavailableError("lost")
        return provision(self, request)

    monkeypatch.setattr(simulated.SimulatedTokenService, "provision", lost_at_first)
    stored = store(tokens.api)
    NetworkToken.objects.update(due_at=clock.real_now())
    call_token_service_when_due()
    assert token_of(stored).status == "ACTIVE"
    tokens.api.post(f"/v1/registrations/{stored}", {"card.number": "4111111111111111"})
    click(tokens.api, stored)
    call_token_service_when_due()
    assert keys[0] == keys[1] != keys[2]


# --- paying ---------------------------------------------------------------------------------------------------------


def test_a_shoppers_payment_is_sent_with_the_token_and_its_cryptogram(tokens: Shop) -> None:
    stored = store(tokens.api)
    paid = click(tokens.api, stored, card__cvv="123")
    assert (paid.code, told(paid)) == ("000.100.110", "USED")
    assert paid.body["card"]["last4Digits"] == PAN[-4:], "the shopper knows the card"
    [message] = sent(paid.id)
    assert message["tokenAccount"] == {
        "number": f"{TOKEN[:6]}******{TOKEN[-4:]}", "type": "NETWORK", "expiryMonth": "05", "expiryYear": "2037",
        "cryptogramPresent": True, "dtvcPresent": False, "requestor": SIMULATED_REQUESTOR,
    }  # fmt: skip
    assert places_of(TOKEN) == set()
    kept = PaymentToken.objects.get()
    assert current_vault().open(kept.number_sealed, kept.payment_id).reveal() == TOKEN


def test_a_merchants_payment_is_sent_with_the_token_without_a_cryptogram(tokens: Shop) -> None:
    stored = store(tokens.api)
    click(tokens.api, stored, **{name.replace(".", "__"): value for name, value in INITIAL.items()})
    paid = click(tokens.api, stored, **{name.replace(".", "__"): value for name, value in MIT.items()})
    assert (paid.code, told(paid)) == ("000.100.110", "USED")
    assert sent(paid.id)[0]["tokenAccount"]["cryptogramPresent"] is False


def test_a_merchants_payment_needs_no_answer_of_the_token_service(tokens: Shop) -> None:
    stored = store(tokens.api, SILENT)
    click(tokens.api, stored, **{name.replace(".", "__"): value for name, value in INITIAL.items()})
    paid = click(tokens.api, stored, **{name.replace(".", "__"): value for name, value in MIT.items()})
    assert told(paid) == "USED"


def test_without_a_cryptogram_the_card_number_is_sent(tokens: Shop) -> None:
    stored = store(tokens.api, SILENT)
    paid = click(tokens.api, stored)
    assert (paid.code, told(paid), events(paid.id)) == ("000.100.110", "UNAVAILABLE", ["begin", "approve"])
    assert "tokenAccount" not in sent(paid.id)[0]
    assert not PaymentToken.objects.exists()


def test_a_token_that_the_service_calls_suspended_is_not_used_again(tokens: Shop) -> None:
    stored = store(tokens.api, SUSPENDED)
    assert told(click(tokens.api, stored)) == "UNAVAILABLE"
    assert token_of(stored).status == "SUSPENDED"
    assert told(click(tokens.api, stored)) is None


def test_an_event_that_cannot_be_written_costs_no_payment(tokens: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> bool:
        raise ValueError("broken")

    stored = store(tokens.api, SUSPENDED)
    monkeypatch.setattr(network_tokens, "apply_token_event", broken)
    paid = click(tokens.api, stored)
    assert (paid.code, told(paid)) == ("000.100.110", "UNAVAILABLE")


def test_a_payout_is_sent_with_the_card_number(tokens: Shop) -> None:
    stored = store(tokens.api)
    paid = click(tokens.api, stored, paymentType="CD")
    assert (paid.code, told(paid)) == ("000.100.110", None)


@pytest.mark.parametrize("payment_type", ["DB", "PA"])
def test_a_token_that_its_issuer_declines_is_followed_once_by_the_card_number(tokens: Shop, payment_type: str) -> None:
    stored = store(tokens.api, DECLINED_TOKEN)
    Notification.objects.all().delete()
    paid = click(tokens.api, stored, paymentType=payment_type)
    assert (paid.code, told(paid)) == ("000.100.110", "DECLINED")
    assert events(paid.id) == ["begin", "token_fallback", "approve"]
    first, second = sent(paid.id)
    assert "tokenAccount" in first
    assert "tokenAccount" not in second
    payment = Payment.objects.get(pk=paid.id)
    assert get_attempt_number(payment) == 2
    assert payment.approved_amount == payment.amount
    assert Notification.objects.filter(payment=paid.id).count() == 1
    assert PaymentEvent.objects.get(payment=paid.id, event="token_fallback").result_code == TOKEN_REFUSED
    assert not PaymentToken.objects.exists()


def test_a_decline_of_the_card_is_no_reason_to_send_its_number(tokens: Shop) -> None:
    """A decline is said of the card behind the token: the number would be declined too."""
    stored = store(tokens.api)
    broke = tokens.api.pay(card__number="4000015500000005")
    assert broke.code == "800.100.155"
    row = token_of(stored)
    sealed = current_vault().seal(Secret(build_simulated_token("4000015500000005")), row.id)
    NetworkToken.objects.filter(pk=row.pk).update(number_sealed=sealed)
    paid = click(tokens.api, stored)
    assert (paid.code, told(paid), events(paid.id)) == ("800.100.155", "USED", ["begin", "decline"])


def test_an_expired_card_is_charged_by_its_token(tokens: Shop) -> None:
    """A network renews a token's date with the card's; the date that was typed once says nothing then."""
    stored = store(tokens.api, year=f"{clock.real_now().year + 1}")
    pass_time(tokens.api, days=700)
    paid = click(tokens.api, stored)
    assert (paid.code, told(paid)) == ("000.100.110", "USED")
    apply_token_event(token_of(stored).reference, TokenEvent.SUSPENDED)
    assert click(tokens.api, stored).code == "100.100.303"


def test_the_number_of_an_expired_card_does_not_follow_its_declined_token(tokens: Shop) -> None:
    stored = store(tokens.api, DECLINED_TOKEN, year=f"{clock.real_now().year + 1}")
    pass_time(tokens.api, days=700)
    paid = click(tokens.api, stored)
    assert (paid.code, told(paid), events(paid.id)) == (TOKEN_REFUSED, "USED", ["begin", "decline"])


def test_captures_and_refunds_name_the_token_and_rebills_the_card(tokens: Shop) -> None:
    stored = store(tokens.api)
    paid = click(tokens.api, stored, paymentType="PA")
    assert tokens.api.follow(paid.id, "CP", "92.00").code == "000.100.110"
    rebilled = tokens.api.follow(click(tokens.api, stored).id, "RB", "10.00")
    assert rebilled.code == "000.100.110"
    assert "tokenAccount" not in sent(rebilled.id)[0]


def test_another_payments_cryptogram_does_not_verify(tokens: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = store(tokens.api)
    monkeypatch.setattr(
        simulated.SimulatedTokenService,
        "fetch_cryptogram",
        lambda _self, _request: Secret(build_simulated_cryptogram(TOKEN, "0" * 32)),
    )
    paid = click(tokens.api, stored)
    assert (told(paid), events(paid.id)) == ("DECLINED", ["begin", "token_fallback", "approve"])
    assert PaymentEvent.objects.get(payment=paid.id, event="token_fallback").result_code == "800.100.308"


def test_every_decline_of_a_token_is_a_code_of_the_catalogue() -> None:
    assert set(TOKEN_DECLINES) <= set(RESULT_CODES)
    named = {code for code in RESULT_CODES if find_result_code(code).description.startswith("Network token")}
    assert named - set(TOKEN_DECLINES) == {
        "800.100.301", "800.100.302", "800.100.305", "800.100.310", "800.100.314",
    }  # fmt: skip


# --- at an acquirer that can be killed ------------------------------------------------------------------------------


class TokenAcquirer(Acquirer):
    """Declines tokens for their state, and approves card numbers."""

    token_code = TOKEN_REFUSED

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        self.behaviour = "declines" if isinstance(request.means, TokenAccount) else "approves"
        self.decline_code = self.token_code
        return super().submit(request)


@pytest.fixture
def acquirer(tokens: Shop, monkeypatch: pytest.MonkeyPatch) -> TokenAcquirer:
    found = TokenAcquirer("first")
    known(monkeypatch, found)
    rule = RoutingRule.objects.create(channel=tokens.channel, name="all")
    RoutingTarget.objects.create(rule=rule, account=account(tokens.channel, "first"), weight=1, position=0)
    return found


def external(api: Api, registration: str, **more: str) -> Answer:
    return click(api, registration, testMode="EXTERNAL", **more)


def kill() -> None:
    raise Killed


def test_the_number_follows_the_token_under_a_key_of_its_own(tokens: Shop, acquirer: TokenAcquirer) -> None:
    paid = external(tokens.api, store(tokens.api))
    assert (paid.code, told(paid)) == (APPROVED, "DECLINED")
    first, second = acquirer.requests
    assert isinstance(first.means, TokenAccount)
    assert first.means.cryptogram is not None
    assert isinstance(second.means, Card)
    assert (first.attempt_key, second.attempt_key) == (Payment.objects.get(pk=paid.id).id.hex, f"{paid.id}-2")
    assert len(acquirer.booked) == 1


@pytest.mark.parametrize("code", [DECLINED, "800.100.302"])
def test_any_other_decline_of_the_token_stands(tokens: Shop, acquirer: TokenAcquirer, code: str) -> None:
    acquirer.token_code = code
    paid = external(tokens.api, store(tokens.api))
    assert (paid.code, told(paid), len(acquirer.requests)) == (code, "USED", 1)


def test_the_issuers_advice_ends_the_payment(tokens: Shop, acquirer: TokenAcquirer) -> None:
    acquirer.decline_details = {"AcquirerResponse": "N7", "MerchantAdviceCode": "03"}
    paid = external(tokens.api, store(tokens.api))
    assert (paid.code, len(acquirer.requests)) == (TOKEN_REFUSED, 1)


def test_a_worker_that_dies_with_the_token_leaves_it_to_recovery(tokens: Shop, acquirer: TokenAcquirer) -> None:
    stored = store(tokens.api)
    acquirer.token_code = APPROVED
    acquirer.before = kill
    with pytest.raises(Killed):
        external(tokens.api, stored)
    payment = Payment.objects.get(payment_type="DB")
    assert PaymentToken.objects.filter(payment=payment.pk).exists()
    acquirer.before = lambda: None
    recover_after(60)
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, "900.100.301")
    assert payment.answer["networkToken"] == "USED"


def test_a_worker_that_dies_before_the_number_leaves_the_tokens_decline(tokens: Shop, acquirer: TokenAcquirer) -> None:
    """Nothing was approved: the second attempt is written, and recovery asks about it."""
    stored = store(tokens.api)
    acquirer.before = lambda: kill() if len(acquirer.requests) > 1 else None
    with pytest.raises(Killed):
        external(tokens.api, stored)
    payment = Payment.objects.get(payment_type="DB")
    assert (payment.status, get_attempt_number(payment)) == (Status.STARTED, 2)
    assert not PaymentToken.objects.filter(payment=payment.pk).exists()
    acquirer.before = lambda: None
    recover_after(60)
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, TOKEN_REFUSED)
    assert not acquirer.booked


def test_a_worker_that_dies_after_the_number_was_approved_leaves_an_approved_payment(
    tokens: Shop, acquirer: TokenAcquirer
) -> None:
    stored = store(tokens.api)
    acquirer.after = kill
    with pytest.raises(Killed):
        external(tokens.api, stored)
    acquirer.after = lambda: None
    recover_after(60)
    payment = Payment.objects.get(payment_type="DB")
    assert (payment.status, payment.result_code) == (Status.APPROVED, APPROVED)
    assert payment.answer["networkToken"] == "DECLINED"


def test_an_acquirer_without_tokens_is_sent_the_number(tokens: Shop, acquirer: TokenAcquirer) -> None:
    acquirer.takes = frozenset({"", Card.kind})
    paid = external(tokens.api, store(tokens.api))
    assert (paid.code, told(paid)) == (APPROVED, None)
    assert isinstance(acquirer.requests[0].means, Card)


def test_an_attempt_after_tokens_were_switched_off_is_the_numbers(tokens: Shop, acquirer: TokenAcquirer) -> None:
    acquirer.token_code = DECLINED
    paid = external(tokens.api, store(tokens.api))
    payment = Payment.objects.get(pk=paid.id)
    assert PaymentToken.objects.filter(pk=payment.pk).exists()
    payment.channel.network_tokens = False
    card = Card(number=Secret(PAN), expiry_month="05", expiry_year="2034")
    asked = replace(acquirer.requests[0], means=card)
    assert network_tokens.attach_network_token(payment, acquirer, asked) is asked
    assert "networkToken" not in payment.answer
    assert not PaymentToken.objects.filter(pk=payment.pk).exists()


def test_recovery_and_follow_ups_repeat_the_token_to_a_connector_that_needs_it(tokens: Shop) -> None:
    paid = Payment.objects.get(pk=click(tokens.api, store(tokens.api), paymentType="PA").id)
    held = follow_ups.load_chain_means(paid.chain, paid.id)
    assert isinstance(held, TokenAccount)
    assert (held.account.reveal(), held.requestor, held.cryptogram) == (TOKEN, SIMULATED_REQUESTOR, None)
    assert find_point_of_service(Chain([paid]), paid).token
    rebilled = Payment.objects.get(pk=tokens.api.follow(click(tokens.api, paid.registration.hex).id, "RB", "10.00").id)
    assert isinstance(follow_ups.load_chain_means(rebilled.chain, rebilled.id), Card)


def test_a_payments_token_goes_with_its_card_number(tokens: Shop) -> None:
    click(tokens.api, store(tokens.api))
    with override_settings(GATEWAY_PAYMENT_ACCOUNT_DAYS=-1):
        account_retention.erase_old_accounts()
    assert not PaymentToken.objects.exists()


# --- what the network tells -----------------------------------------------------------------------------------------


def tell(api: Api, registration: str, event: str) -> Answer:
    return api.post(f"/v1/test/network-tokens/{registration}", {"event": event})


def test_what_happens_to_a_token_is_shown_and_told(tokens: Shop) -> None:
    stored = store(tokens.api)
    before = set(Notification.objects.values_list("pk", flat=True))
    answer = tell(tokens.api, stored, "SUSPENDED")
    assert (answer.status, answer.body["networkToken"]["status"]) == (200, "SUSPENDED")
    [row] = Notification.objects.exclude(pk__in=before)
    assert (row.kind, row.action, row.registration) == ("REGISTRATION", "UPDATED", UUID(stored))
    payload = json.loads(webhook_payloads.build_webhook_payloads([row], {row.pk})[row.pk].text)["payload"]
    assert payload["networkToken"]["status"] == "SUSPENDED"
    assert payload["id"] == UUID(stored).hex
    assert told(click(tokens.api, stored)) is None
    assert tell(tokens.api, stored, "RESUMED").body["networkToken"]["status"] == "ACTIVE"
    assert told(click(tokens.api, stored)) == "USED"
    assert tell(tokens.api, stored, "REPLACED").body["networkToken"]["expiryYear"] == "2040"
    assert tell(tokens.api, stored, "DELETED").body["networkToken"]["status"] == "DELETED"
    assert token_of(stored).number_sealed is None
    assert told(click(tokens.api, stored)) is None


def test_the_samples_of_the_page_are_what_is_taken_and_shown(tokens: Shop) -> None:
    page = "network-tokens.md"
    sent = read_block(page, "What the network tells", "bash")
    shown = json.loads("{" + read_block(page, "Switch it on", "json") + "}")["networkToken"]
    stored = store(tokens.api)
    assert tokens.api.get(f"/v1/registrations/{stored}").body["networkToken"].keys() == shown.keys()
    path = sent.partition("gateway.example")[2].partition('"')[0].replace("$REGISTRATION_ID", stored)
    [event] = [part.split("=")[1].strip() for part in sent.split("-d ") if part.startswith("event=")]
    assert tokens.api.post(path, {"event": event}).body["networkToken"] == shown | {
        "status": "SUSPENDED", "last4Digits": TOKEN[-4:], "expiryYear": token_of(stored).expiry_year,
    }  # fmt: skip


def test_an_event_that_was_told_before_changes_nothing(tokens: Shop) -> None:
    reference = token_of(store(tokens.api)).reference
    assert apply_token_event(reference, TokenEvent.SUSPENDED)
    told_before = Notification.objects.count()
    assert not apply_token_event(reference, TokenEvent.SUSPENDED)
    for month, year in (("", ""), ("", "2039"), ("07", "")):
        assert not apply_token_event(reference, TokenEvent.REPLACED, expiry_month=month, expiry_year=year)
    assert not apply_token_event("SIMTX", TokenEvent.DELETED)
    assert not apply_token_event("", TokenEvent.DELETED)
    assert Notification.objects.count() == told_before


def test_two_events_at_once_both_stand_in_the_tokens_history(tokens: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = token_of(store(tokens.api)).reference
    decide = network_tokens._list_event_changes

    def overtaken(*read: Any) -> dict[str, Any]:
        monkeypatch.setattr(network_tokens, "_list_event_changes", decide)
        assert apply_token_event(reference, TokenEvent.REPLACED, expiry_month="05", expiry_year="2040")
        return decide(*read)

    monkeypatch.setattr(network_tokens, "_list_event_changes", overtaken)
    assert apply_token_event(reference, TokenEvent.SUSPENDED)
    row = NetworkToken.objects.get(reference=reference)
    assert [one["status"] for one in row.history[-2:]] == ["ACTIVE", "SUSPENDED"]
    assert {one["expiry"] for one in row.history[-2:]} == {"05/2040"}


@pytest.mark.parametrize("wrong", ["another's", "without a token", "unknown"])
def test_only_the_token_of_an_own_registration_is_changed(tokens: Shop, stranger: Shop, wrong: str) -> None:
    stored = store(tokens.api)
    if wrong == "another's":
        answer = tell(stranger.api, stored, "DELETED")
        assert (answer.status, answer.code) == (404, "100.150.200")
    elif wrong == "unknown":
        assert tell(tokens.api, "0" * 32, "DELETED").status == 404
    else:
        NetworkToken.objects.all().delete()
        answer = tell(tokens.api, stored, "DELETED")
        assert (answer.status, answer.body["result"]["parameterErrors"][0]["name"]) == (400, "id")
        return
    assert token_of(stored).status == "ACTIVE"


def test_an_event_without_a_known_name_is_refused_by_its_field(tokens: Shop) -> None:
    answer = tell(tokens.api, store(tokens.api), "LOST")
    assert (answer.status, answer.body["result"]["parameterErrors"][0]["name"]) == (400, "event")


def test_the_command_applies_an_event() -> None:
    with pytest.raises(CommandError, match="--expiry goes with REPLACED"):
        call_command("network_token_event", "R", "REPLACED")
    with pytest.raises(CommandError, match="MM/YYYY"):
        call_command("network_token_event", "R", "REPLACED", expiry="13/2030")


def test_the_command_tells_whether_anything_changed(tokens: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    stored = store(tokens.api)
    reference = token_of(stored).reference
    call_command("network_token_event", reference, "REPLACED", expiry="07/2039")
    assert (token_of(stored).expiry_month, token_of(stored).expiry_year) == ("07", "2039")
    call_command("network_token_event", reference, "REPLACED", expiry="07/2039")
    assert capsys.readouterr().out == "Applied.\nNothing changed: no such token, or it was told before.\n"


# --- setting up -----------------------------------------------------------------------------------------------------


def test_live_needs_a_token_service(live: None) -> None:
    faults = d.DocumentFaults()
    CHANNEL_SECTION.shape({"networkTokens": True}, "channel", faults)
    assert [(fault.path, fault.message) for fault in faults] == [
        ("channel.networkTokens", "needs a token service: GATEWAY_TOKEN_SERVICE names none")
    ]


def test_a_token_service_that_is_not_there_is_named() -> None:
    with (
        override_settings(GATEWAY_TOKEN_SERVICE="nowhere:SERVICE"),
        pytest.raises(ImproperlyConfigured, match="nowhere"),
    ):
        load_token_service()
    name = "gateway.connectors.simulator.token_service:SIMULATED_TOKEN_SERVICE"
    with override_settings(GATEWAY_TOKEN_SERVICE=name):
        assert load_token_service() is simulated.SIMULATED_TOKEN_SERVICE


def test_a_payments_page_says_what_was_sent(tokens: Shop) -> None:
    payment = Payment.objects.get(pk=click(tokens.api, store(tokens.api, DECLINED_TOKEN)).id)
    assert "Network token: declined, the card number was sent after it" in explanation.list_acquirer_messages(payment)


def test_a_registrations_page_shows_its_token_and_never_the_number(tokens: Shop) -> None:
    stored = store(tokens.api)
    page = signed_in(person("clerk", Role.CLERK, tokens.merchant)).get(
        reverse("admin:gateway_registration_change", args=[UUID(stored)])
    )
    text = page.content.decode()
    assert f"•••• {TOKEN[-4:]}" in text
    assert TOKEN not in text


def test_a_registrations_page_shows_what_became_of_its_token(tokens: Shop) -> None:
    """Given, suspended, up again, with another date, and gone; newest first, with the time of each."""
    stored = store(tokens.api)
    for event in ("SUSPENDED", "RESUMED", "REPLACED", "DELETED"):
        tell(tokens.api, stored, event)
    text = (
        signed_in(person("clerk", Role.CLERK, tokens.merchant))
        .get(reverse("admin:gateway_registration_change", args=[UUID(stored)]))
        .content.decode()
    )
    history = text.partition("<h2>Network token</h2>")[2].partition("</table>")[0]
    assert re.findall(r"<td>([^<]*)</td><td>([^<]*)</td></tr>", history) == [
        ("deleted", "–"), ("active", "05/2040"), ("active", "05/2037"), ("suspended", "05/2037"), ("active", "05/2037"),
    ]  # fmt: skip
    made = token_of(stored).history
    assert [datetime.fromisoformat(one["at"]) for one in made] == sorted(
        datetime.fromisoformat(one["at"]) for one in made
    )


def test_a_token_keeps_the_newest_of_its_history(tokens: Shop) -> None:
    reference = token_of(stored := store(tokens.api)).reference
    for n in range(MAX_TOKEN_HISTORY + 1):
        apply_token_event(reference, TokenEvent.SUSPENDED if n % 2 == 0 else TokenEvent.RESUMED)
    history = token_of(stored).history
    assert len(history) == MAX_TOKEN_HISTORY
    assert history[-1]["status"] == "SUSPENDED"


def test_a_refusal_is_in_the_tokens_history(tokens: Shop) -> None:
    (entry,) = token_of(store(tokens.api, REFUSED)).history
    assert (entry["status"], entry["expiry"]) == ("REFUSED", "")


# --- the simulated tokens -------------------------------------------------------------------------------------------


def test_every_simulated_token_leads_to_its_card_and_to_no_other() -> None:
    numbers = [card.number for card in SIMULATED_CARDS if is_luhn_valid(card.number)]
    numbers += [build_issuer_card(issuer, place) for issuer in SIMULATED_ISSUERS for place in (0, 7, 12_345)]
    made = {build_simulated_token(number): number for number in numbers}
    assert len(made) == len(numbers)
    assert not set(made) & set(numbers)
    for token, number in made.items():
        found = simulated.find_tokenized_card(token)
        assert found is not None
        assert found.number == number
        assert is_luhn_valid(token)
        assert len(token) == len(number)
    assert simulated.find_tokenized_card(build_simulated_token("4222220000012342")) == simulated.TokenizedCard()
    assert simulated.find_tokenized_card(PAN) is None


def test_an_issuer_approves_tokens_by_its_points_more() -> None:
    issuer = SIMULATED_ISSUERS[1]
    at = datetime(2030, 1, 8, 9, tzinfo=UTC)
    asked = [
        IssuerQuestion(number=build_issuer_card(issuer, place), amount=Decimal(20), at=at, merchant_initiated=True)
        for place in range(4_000)
    ]
    by_number = sum(simulate_issuer_answer(issuer, one).code == "000.100.110" for one in asked)
    by_token = sum(simulate_issuer_answer(issuer, replace(one, token=True)).code == "000.100.110" for one in asked)
    assert 40 < by_token - by_number < 120


def test_an_event_is_applied_although_the_registration_changes_at_the_same_moment(
    tokens: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = store(tokens.api)
    original, lost = registrations.record_registration_change, []

    def overtaken(owner: Registration, *given: Any, **more: Any) -> bool:
        if not lost:
            Registration.objects.filter(pk=owner.pk).update(sequence=owner.sequence + 1)
        done = original(owner, *given, **more)
        lost.append(not done)
        return done

    monkeypatch.setattr(registrations, "record_registration_change", overtaken)
    assert apply_token_event(token_of(stored).reference, TokenEvent.SUSPENDED)
    assert lost == [True, False]
    assert token_of(stored).status == "SUSPENDED"


def test_the_time_of_the_token_service_is_not_counted_as_the_acquirers(
    tokens: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an order of calls, not by a clock: the acquirer's time begins after the token service has answered."""
    stored = store(tokens.api)
    order: list[str] = []
    fetch = simulated.SimulatedTokenService.fetch_cryptogram

    def fetching(self: Any, request: Any) -> Secret:
        order.append("service")
        return fetch(self, request)

    def reading() -> float:
        order.append("clock")
        return 0.0

    monkeypatch.setattr(simulated.SimulatedTokenService, "fetch_cryptogram", fetching)
    monkeypatch.setattr(process, "time", SimpleNamespace(perf_counter=reading))
    assert told(click(tokens.api, stored)) == "USED"
    # Of the whole submission, before the service; of the acquirer's call, around it.
    assert order == ["clock", "service", "clock", "clock"]

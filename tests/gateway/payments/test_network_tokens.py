"""Network tokens of stored cards: how they come, when a payment is sent with one, and what becomes of one that fails.

Source: docs/decisions/0126; docs/network-tokens.md.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gateway.connectors.simulator import token_service as simulated
from gateway.connectors.simulator.accounts import BANK_ACCOUNTS
from gateway.connectors.simulator.cards import SIMULATED_CARDS
from gateway.connectors.simulator.token_service import (
    SIMULATED_REQUESTOR,
    build_simulated_cryptogram,
    build_simulated_token,
)
from gateway.connectors.token_service import TokenEvent, TokenServiceUnavailableError
from gateway.core import clock
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
)
from gateway.payments import network_tokens, registration_retention
from gateway.payments.network_tokens import TOKEN_DECLINES, apply_token_event, call_token_service_when_due
from gateway.payments.stored_answer import get_attempt_number
from gateway.vault.sealing import current_vault
from tests.support.client import Answer, Api
from tests.support.clock import pass_time
from tests.support.database import places_of
from tests.support.fixtures import Shop

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
    assert (deleted, token_of(stored).reference, token_of(stored).due_at) == ([reference], "", None)


def test_a_card_that_was_erased_otherwise_loses_its_token_with_the_retention_timer(tokens: Shop) -> None:
    stored = store(tokens.api)
    Registration.objects.update(means_sealed=None)
    registration_retention.erase_expired_registrations()
    assert (token_of(stored).status, token_of(stored).number_sealed) == ("DELETED", None)


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
    Registration.objects.all()
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
    pass_time(timedelta(days=700))
    paid = click(tokens.api, stored)
    assert (paid.code, told(paid)) == ("000.100.110", "USED")
    apply_token_event(token_of(stored).reference, TokenEvent.SUSPENDED)
    assert click(tokens.api, stored).code == "100.100.303"


def test_the_number_of_an_expired_card_does_not_follow_its_declined_token(tokens: Shop) -> None:
    stored = store(tokens.api, DECLINED_TOKEN, year=f"{clock.real_now().year + 1}")
    pass_time(timedelta(days=700))
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

"""Wallet payments over HTTP, both ways: the token that we open, and the data that the merchant opened."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from gateway.connectors.iso8583.private_field import split_parts
from gateway.connectors.simulator.cards import CARDS_BY_NUMBER
from gateway.core import clock
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import AcquirerExchange, Channel, Payment, RequestLog, UsedWalletToken, WalletKey
from gateway.payments.acquirer_message_store import restore_message
from gateway.timers import registry
from gateway.wallets import channel_tokens, sandbox_tokens, token_factory
from gateway.wallets.formats import WALLET_FORMATS
from tests.support.client import Answer, Api
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host
from tests.support.threads import at_once
from tests.support.threeds import BILLING, BROWSER, RESULT_URL

pytestmark = pytest.mark.django_db

FORMS = [(wallet, form) for wallet, forms in WALLET_FORMATS.items() for form in forms]
PROOF = {"threeDSecure.eci": "05", "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA="}
DECRYPTED = {"card.number": "4200000000000000", "card.expiryMonth": "12", "card.expiryYear": "2030"}
_MADE: dict[str, token_factory.GeneratedKey] = {}


@pytest.fixture
def keyed(shop: Shop) -> Shop:
    """The shop, with test keys for every format; RSA keys are made once for all tests."""
    return with_keys(shop)


def with_keys(shop: Shop) -> Shop:
    for wallet, form in FORMS:
        made = _MADE.setdefault(form, _MADE.get(form) or token_factory.generate_wallet_key(form, now=clock.real_now()))
        channel_tokens.store_wallet_key(shop.channel, wallet, made.private, made.facts, maker=made.maker)
    return shop


def token_of(channel: Channel, wallet: str, form: str = "", *, expired: bool = False, **sheet: Any) -> str:
    agreed = {"number": Secret("4200000000000000"), "money": Money.parse("92.00", "EUR"), **sheet}
    return sandbox_tokens.build_channel_token(
        channel, wallet, form or WALLET_FORMATS[wallet][0], token_factory.PaymentSheet(**agreed), expired=expired
    )


def pay(api: Api, wallet: str, token: str, **changes: str) -> Answer:
    fields = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": wallet.upper(),
        f"{wallet}.paymentToken": token,
    }
    return api.post("/v1/payments", fields | {name.replace("__", "."): value for name, value in changes.items()})


def refused(answer: Answer, wallet: str, code: str, words: str) -> None:
    """400 that names the parameter and the reason; no payment was begun."""
    assert (answer.status, answer.code) == (400, code), answer
    assert words in answer.errors[f"{wallet}.paymentToken"]
    assert "id" not in answer.body


@pytest.mark.parametrize(("wallet", "form"), FORMS)
def test_a_token_pays(keyed: Shop, wallet: str, form: str) -> None:
    """A16.1; mobile wallets: the encrypted way."""
    token = token_of(keyed.channel, wallet, form)
    answer = pay(keyed.api, wallet, token)
    assert (answer.status, answer.code) == (200, "000.100.110"), answer
    card = answer.body["card"]
    assert (card["bin"], card["last4Digits"], card["expiryYear"]) == ("420000", "0000", "2030")
    assert (card["expiryMonth"], card["numberType"]) == ("12", "DPAN")
    assert answer.body["paymentBrand"] == wallet.upper()
    assert keyed.api.read(answer.id).body["card"] == card
    payment = Payment.objects.get()
    sent = restore_message(AcquirerExchange.objects.get(payment=payment), payment)
    assert sent["card"]["number"].endswith("0000")
    assert sent["threeDSecure"]["eci"] == answer.body["threeDSecure"]["eci"] == "05"
    assert not places_of(token, "4200000000000000", token[-40:])
    assert token not in answer.text


def test_what_a_token_paid_is_refunded_and_charged_again(keyed: Shop) -> None:
    """Mobile wallets; Endpoints: follow-ups of a wallet payment."""
    answer = pay(keyed.api, "wallet1", token_of(keyed.channel, "wallet1"))
    assert keyed.api.follow(answer.id, "RF", "10.00").status == 200
    again = keyed.api.follow(answer.id, "RB", "5.00")
    assert again.status == 200, again
    charged = Payment.objects.get(payment_type="RB")
    assert restore_message(AcquirerExchange.objects.get(payment=charged), charged)["card"]["expiryYear"] == "2030"


@pytest.mark.parametrize(("wallet", "form"), FORMS)
def test_a_token_pays_once(committed: Shop, wallet: str, form: str) -> None:
    """Mobile wallets: a replay is refused, on another channel of the merchant too."""
    keyed = with_keys(committed)
    token = token_of(keyed.channel, wallet, form)
    assert pay(keyed.api, wallet, token).status == 200
    refused(pay(keyed.api, wallet, token), wallet, "200.100.602", "was used already")
    other = keyed.open_channel()
    for row in WalletKey.objects.filter(channel=keyed.channel, wallet=wallet):
        channel_tokens.store_wallet_key(other, wallet, channel_tokens.unseal_wallet_key(row)["private"], row.facts)
    refused(pay(keyed.api_of(other), wallet, token), wallet, "200.100.602", "was used already")
    assert Payment.objects.count() == 1


def test_a_token_with_another_spelling_is_the_same_token(committed: Shop) -> None:
    """Mobile wallets: replay."""
    keyed = with_keys(committed)
    token = token_of(keyed.channel, "wallet1")
    assert pay(keyed.api, "wallet1", token).status == 200
    sent = json.loads(token)
    sent["header"]["transactionId"] = sent["header"]["transactionId"].upper()
    refused(pay(keyed.api, "wallet1", json.dumps({"paymentData": sent})), "wallet1", "200.100.602", "was used already")


def test_a_repeated_request_with_its_key_is_answered_as_before(keyed: Shop) -> None:
    """Idempotency: the same request is no replay of the token."""
    token = token_of(keyed.channel, "wallet2")
    fields = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": "WALLET2",
        "wallet2.paymentToken": token,
    }
    first = keyed.api.post("/v1/payments", fields, Idempotency_Key="one")
    again = keyed.api.post("/v1/payments", fields, Idempotency_Key="one")
    assert (first.status, first.text) == (200, again.text)


@pytest.mark.parametrize(("wallet", "form"), FORMS)
def test_an_expired_token_is_refused(keyed: Shop, wallet: str, form: str) -> None:
    """Mobile wallets."""
    token = token_of(keyed.channel, wallet, form, expired=True)
    refused(pay(keyed.api, wallet, token), wallet, "200.100.602", "has expired")
    assert not Payment.objects.exists()


@pytest.mark.parametrize(
    ("wallet", "code", "words"),
    [
        ("wallet1", "200.100.602", "was altered"),
        ("wallet2", "200.100.602", "was altered"),
        ("wallet3", "200.100.603", "cannot be decrypted"),
    ],
)
def test_a_tampered_token_is_refused(keyed: Shop, wallet: str, code: str, words: str) -> None:
    """Mobile wallets."""
    refused(pay(keyed.api, wallet, token_factory.tamper_token(token_of(keyed.channel, wallet))), wallet, code, words)


@pytest.mark.parametrize("wallet", WALLET_FORMATS)
def test_garbage_is_refused_as_a_parameter_error(keyed: Shop, wallet: str) -> None:
    """A7.3; errors: a clear 400 that names the parameter; what was sent is kept nowhere."""
    for garbage in ("garbage-4711", "{}", '{"version":1}', "[[[["):
        refused(pay(keyed.api, wallet, garbage), wallet, "200.300.404", "is not a token of this wallet")
    assert not places_of("garbage-4711")
    assert RequestLog.objects.count() == 4


def test_a_token_for_another_amount_or_currency_is_refused(keyed: Shop) -> None:
    """Mobile wallets: before money moves."""
    for changes in ({"amount": "92.01"}, {"currency": "USD"}):
        token = token_of(keyed.channel, "wallet1")
        refused(pay(keyed.api, "wallet1", token, **changes), "wallet1", "200.100.602", "another amount")


def test_a_channel_without_keys_and_a_token_for_another_channel_are_refused(keyed: Shop, stranger: Shop) -> None:
    """Mobile wallets: keys per channel."""
    token = token_of(keyed.channel, "wallet1")
    refused(pay(stranger.api, "wallet1", token), "wallet1", "600.200.500", "no keys")
    sandbox_tokens.generate_channel_keys(stranger.channel)
    refused(pay(stranger.api, "wallet1", token), "wallet1", "200.100.603", "a key that this channel does not have")


def test_made_keys_open_nothing_in_live(keyed: Shop) -> None:
    """Two environments (D21)."""
    token = token_of(keyed.channel, "wallet1")
    with override_settings(IS_LIVE=True):
        assert channel_tokens.load_usable_keys(keyed.channel, "wallet1") == []
        with pytest.raises(sandbox_tokens.SampleTokenUnavailableError):
            sandbox_tokens.build_channel_token(
                keyed.channel,
                "wallet1",
                "ec_v1",
                token_factory.PaymentSheet(number=Secret("4200000000000000"), money=Money.parse("1.00", "EUR")),
            )
    assert pay(keyed.api, "wallet1", token).status == 200


def test_an_expired_card_in_a_token_declines_the_payment(keyed: Shop) -> None:
    """D10: well-formed card data that is refused has its own code."""
    answer = pay(keyed.api, "wallet2", token_of(keyed.channel, "wallet2", expiry_year="2020"))
    assert (answer.status, answer.code) == (400, "100.100.303"), answer
    assert "expiry" in answer.errors["wallet2.paymentToken"]
    answer = pay(keyed.api, "wallet2", token_of(keyed.channel, "wallet2", number=Secret("4200000000000001")))
    assert answer.code == "100.100.101"


def test_a_declined_card_in_a_token_is_declined(keyed: Shop) -> None:
    """Mobile wallets: the simulator's cards work in tokens."""
    card = next(card for card in CARDS_BY_NUMBER.values() if card.code == "800.100.155")
    answer = pay(keyed.api, "wallet1", token_of(keyed.channel, "wallet1", number=Secret(card.number)))
    assert (answer.status, answer.code) == (400, card.code)


def test_the_brand_is_the_wallets(keyed: Shop) -> None:
    """Basic payment: paymentBrand."""
    answer = pay(keyed.api, "wallet1", token_of(keyed.channel, "wallet1"), paymentBrand="WALLET2")
    assert (answer.status, "paymentBrand" in answer.errors) == (400, True), answer
    # A wallet's card may also be called by its own brand.
    assert pay(keyed.api, "wallet1", token_of(keyed.channel, "wallet1"), paymentBrand="VISA").status == 200
    answer = pay(keyed.api, "wallet1", token_of(keyed.channel, "wallet1"), paymentBrand="AMEX")
    assert answer.code == "100.100.700"


def test_a_wallets_proof_is_enough_for_a_channel_with_3d_secure(keyed: Shop) -> None:
    """3D Secure; D32: the device authenticated the shopper."""
    Channel.objects.filter(pk=keyed.channel.pk).update(three_d_secure=True)
    assert pay(keyed.api, "wallet1", token_of(keyed.channel, "wallet1")).status == 200


@pytest.mark.parametrize("opened_by", ["gateway", "merchant"])
def test_follow_ups_of_a_wallet_payment_repeat_its_eci(keyed: Shop, iso_host: IsoHost, opened_by: str) -> None:
    """Clearing and reversals say of the authentication what the authorization said, whoever decrypted the token.
    Source: docs/decisions/0067."""
    account_at_host(keyed.channel, iso_host)
    number, wanted = "5400000000000005", {"paymentType": "PA", "testMode": "EXTERNAL"}
    if opened_by == "gateway":
        token = token_of(keyed.channel, "wallet1", number=Secret(number), eci="02")
        answer = pay(keyed.api, "wallet1", token, **wanted)
    else:
        proof = {**DECRYPTED, **PROOF, "card.number": number, "threeDSecure.eci": "02"}
        sent = {"amount": "92.00", "currency": "EUR", "paymentBrand": "WALLET1", "wallet1.source": "web", **proof}
        answer = keyed.api.post("/v1/payments", sent | wanted)
    assert answer.code == "000.100.112", answer
    assert keyed.api.follow(answer.id, "CP", "50.00").status == 200
    assert keyed.api.follow(answer.id, "RV", "42.00").status == 200
    messages = [iso_host.seen(mti)[0] for mti in ("0100", "0220", "0400")]
    assert [dict(split_parts(message["48"])).get("42") for message in messages] == ["02"] * 3


@pytest.mark.parametrize("wallet", WALLET_FORMATS)
@pytest.mark.parametrize("source", ["web", "app"])
def test_decrypted_data_pays(shop: Shop, wallet: str, source: str) -> None:
    """Mobile wallets: the decrypted way needs no keys."""
    fields = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": wallet.upper(),
        f"{wallet}.source": source,
        **DECRYPTED,
        **PROOF,
    }
    answer = shop.api.post("/v1/payments", fields)
    assert (answer.status, answer.code) == (200, "000.100.110"), answer
    assert answer.body[wallet] == {"source": source}
    assert answer.body["card"]["last4Digits"] == "0000"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"wallet1.source": "tv"}, "wallet1.source"),
        ({"wallet1.source": ""}, "wallet1.source"),
        ({"threeDSecure.eci": ""}, "threeDSecure.eci"),
        ({"card.expiryYear": ""}, "card.expiryYear"),
    ],
)
def test_decrypted_data_that_is_not_whole_is_refused(shop: Shop, change: dict[str, str], name: str) -> None:
    """Mobile wallets: source, card data and proof are all required."""
    fields = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": "WALLET1",
        "wallet1.source": "web",
        **DECRYPTED,
        **PROOF,
    }
    answer = shop.api.post("/v1/payments", fields | change)
    assert (answer.status, name in answer.errors) == (400, True), answer


def test_tokens_are_forgotten_when_they_are_too_old_to_be_taken(keyed: Shop) -> None:
    """Mobile wallets: what remembers a token goes when the token's age refuses it."""
    pay(keyed.api, "wallet1", token_of(keyed.channel, "wallet1"))
    pay(keyed.api, "wallet2", token_of(keyed.channel, "wallet2"))
    assert registry.run_timer_now("wallet tokens") == 0
    UsedWalletToken.objects.update(until=clock.real_now() - timedelta(seconds=1))
    assert registry.run_timer_now("wallet tokens") == 2
    assert not UsedWalletToken.objects.exists()


def test_the_command_makes_a_token_that_pays(shop: Shop) -> None:
    """Mobile wallets: a merchant can try."""
    out = StringIO()
    call_command("wallet_token", entity=shop.channel.entity_id, wallet=2, amount="92.00", make_keys=True, stdout=out)
    assert pay(shop.api, "wallet2", out.getvalue().strip()).status == 200
    for options, words in (
        ({"expired": True}, "has expired"),
        ({"tampered": True}, "was altered"),
    ):
        out = StringIO()
        call_command("wallet_token", entity=shop.channel.entity_id, wallet=2, stdout=out, **options)
        refused(pay(shop.api, "wallet2", out.getvalue().strip()), "wallet2", "200.100.602", words)
    before = WalletKey.objects.count()
    call_command("wallet_token", entity=shop.channel.entity_id, wallet=2, make_keys=True, stdout=StringIO())
    assert WalletKey.objects.count() == before == 1


def test_the_command_says_what_it_cannot_do(shop: Shop) -> None:
    """Mobile wallets: a merchant can try."""
    entity = shop.channel.entity_id
    for options, words in (
        ({"entity": "nobody"}, "--entity"),
        ({"entity": entity}, "--make-keys"),
        ({"entity": entity, "format": "jwe"}, "has no format"),
        ({"entity": entity, "amount": "1e3"}, "--amount"),
        ({"entity": entity, "amount": "1.50", "currency": "JPY"}, "--amount"),
        ({"entity": entity, "expiry": "1230"}, "--expiry"),
        ({"entity": entity, "card": "4200 0000"}, "--card"),
    ):
        with pytest.raises(CommandError, match=words):
            call_command("wallet_token", stdout=StringIO(), **options)


def test_a_merchants_key_is_kept_sealed_listed_and_switched_off(shop: Shop, tmp_path: Any) -> None:
    """Mobile wallets: keys per channel; R8."""
    made = token_factory.generate_wallet_key("ec_v1", now=clock.real_now())
    (tmp_path / "key.pem").write_text(made.private.reveal())
    (tmp_path / "root.pem").write_text(made.facts["roots"][0])
    out = StringIO()
    call_command(
        "wallet_key",
        entity=shop.channel.entity_id,
        wallet=1,
        private_key=tmp_path / "key.pem",
        merchant_id=token_factory.SAMPLE_MERCHANT_ID,
        root=[tmp_path / "root.pem"],
        name="Ours",
        stdout=out,
    )
    listed = json.loads(out.getvalue())
    assert (listed["name"], listed["active"], listed["made"]) == ("Ours", True, False)
    assert not places_of(made.private.reveal().splitlines()[1])
    keys = channel_tokens.load_usable_keys(shop.channel, "wallet1")[0]
    sheet = token_factory.PaymentSheet(number=Secret("4200000000000000"), money=Money.parse("92.00", "EUR"))
    token = token_factory.build_wallet_token("ec_v1", sheet, keys, made.maker, now=clock.real_now())
    assert pay(shop.api, "wallet1", token).status == 200
    call_command("wallet_key", deactivate=listed["id"], stdout=StringIO())
    token = token_factory.build_wallet_token("ec_v1", sheet, keys, made.maker, now=clock.real_now())
    refused(pay(shop.api, "wallet1", token), "wallet1", "600.200.500", "no keys")


def test_two_requests_with_one_token_make_one_payment(committed: Shop) -> None:
    """Mobile wallets: replay, at the same moment."""
    with_keys(committed)
    token = token_of(committed.channel, "wallet2")
    # A client of its own for each thread.
    apis = [Api(token=committed.api.token, entity=committed.api.entity) for _ in range(2)]
    answers = at_once(*(partial(pay, api, "wallet2", token) for api in apis))
    assert sorted(answer.status for answer in answers) == [200, 400]
    assert Payment.objects.count() == 1


@pytest.mark.parametrize(("wallet", "form"), FORMS)
def test_a_merchant_makes_a_token_over_http(shop: Shop, wallet: str, form: str) -> None:
    """Test environment: the test data page names this endpoint."""
    fields = {"wallet": wallet, "format": form, "amount": "92.00", "currency": "EUR"}
    made = shop.api.post("/v1/test/wallet-token", fields)
    assert (made.status, made.body["format"]) == (200, form), made
    assert pay(shop.api, wallet, made.body["paymentToken"]).status == 200
    for defect in ("expired", "tampered"):
        made = shop.api.post("/v1/test/wallet-token", fields | {"defect": defect})
        assert pay(shop.api, wallet, made.body["paymentToken"]).status == 400


def test_a_test_token_is_asked_for_rightly(shop: Shop) -> None:
    """Errors; test environment."""
    fields = {"wallet": "wallet1", "format": "jwe", "amount": "92.00", "currency": "EUR"}
    answer = shop.api.post("/v1/test/wallet-token", fields)
    assert (answer.status, list(answer.errors)) == (400, ["format"])
    fields = {"wallet": "wallet1", "amount": "92.50", "currency": "JPY"}
    assert list(shop.api.post("/v1/test/wallet-token", fields).errors) == ["amount"]
    fields = {"wallet": "wallet4", "amount": "92", "currency": "eur"}
    assert set(shop.api.post("/v1/test/wallet-token", fields).errors) == {"wallet", "currency"}


def test_a_token_with_a_card_of_the_table_is_answered_by_the_table(shop: Shop) -> None:
    """Test environment: any card of the test data page."""
    fields = {"wallet": "wallet2", "amount": "92.00", "currency": "EUR", "number": "4000015500000005", "proof": "none"}
    answer = pay(shop.api, "wallet2", shop.api.post("/v1/test/wallet-token", fields).body["paymentToken"])
    assert answer.code == "800.100.155"
    assert answer.body["card"]["numberType"] == "PAN"


def test_a_wallets_card_without_a_proof_is_authenticated_like_any_card(keyed: Shop) -> None:
    """3D Secure: wallet 2's PAN_ONLY carries no proof, and only an opened token tells so."""
    Channel.objects.filter(pk=keyed.channel.pk).update(three_d_secure=True)
    number = next(card.number for card in CARDS_BY_NUMBER.values() if card.threeds == "challenge_pass")

    def token() -> str:
        return token_of(keyed.channel, "wallet2", number=Secret(number), card_only=True)

    answer = pay(keyed.api, "wallet2", token())
    assert (answer.status, answer.code) == (400, "200.300.404"), answer
    assert {*BROWSER, *BILLING} <= set(answer.errors)
    answer = pay(keyed.api, "wallet2", token(), shopperResultUrl=RESULT_URL, **BROWSER, **BILLING)
    assert (answer.status, answer.code) == (200, "000.200.000"), answer
    assert answer.body["redirect"]["url"].endswith(answer.id)
    assert not AcquirerExchange.objects.exists()

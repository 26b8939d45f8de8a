"""Means that are no cards: validated, kept sealed, echoed masked, sent on; nothing secret anywhere in clear.

Source: Part A, Virtual account, Bank account, Token account; Part B, Gift card, Payment response; checks A7.2, A7.5,
A7.13, A13.5, A17–A19, B15, B18.10; rulings D17, D29, D40.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.connectors.simulator.accounts import (
    GOOD_CRYPTOGRAM,
    SIMULATED_ACCOUNTS,
    SimulatedAccount,
    build_iban,
    build_test_token,
)
from gateway.core.brands import PAYMENT_BRANDS, PAYMENT_METHODS
from gateway.models import AcquirerExchange, Payment, Status
from gateway.payments import recovery
from gateway.payments.operation_table import OPERATIONS
from gateway.payments.payment_methods import METHOD_PAYMENT_TYPES, is_type_supported, list_payment_types
from tests.support.client import Answer, Api
from tests.support.database import leaves, places_of, recover_at
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

FACE = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
IBAN = "DE23100000001234567890"
BANK = {
    "paymentBrand": "DIRECTDEBIT_SEPA",
    "bankAccount.holder": "Jane Jones",
    "bankAccount.iban": IBAN,
    "bankAccount.bic": "MARKDEF1100",
}
LOCAL = {
    "paymentBrand": "DIRECTDEBIT",
    "bankAccount.holder": "Jane Jones",
    "bankAccount.number": "1234567890",
    "bankAccount.bankCode": "37040044",
}
VIRTUAL = {"paymentBrand": "VIRTUALACCOUNT", "virtualAccount.accountId": "shopper-4711@mail.example"}
TOKEN = {"paymentBrand": "VISA", "tokenAccount.number": build_test_token("000.100.110"), "tokenAccount.type": "NETWORK",
         "tokenAccount.expiryMonth": "05", "tokenAccount.expiryYear": "2034",
         "tokenAccount.cryptogram": GOOD_CRYPTOGRAM, "tokenAccount.dtvc": "817"}  # fmt: skip
GIFT = {
    "paymentBrand": "GIFTCARD",
    "giftCard.number": "GIFT-900817263545",
    "giftCard.pin": "secret-pin-8172",
    "giftCard.holder": "Jane Jones",
    "giftCard.type": "SEASONS_GREETINGS",
}
MEANS = {
    "bank account": BANK,
    "local account": LOCAL,
    "virtual account": VIRTUAL,
    "token account": TOKEN,
    "gift card": GIFT,
}
SECRETS = {
    "bank account": (IBAN,), "local account": (), "virtual account": (),
    "token account": (TOKEN["tokenAccount.number"], GOOD_CRYPTOGRAM),
    "gift card": (GIFT["giftCard.number"], GIFT["giftCard.pin"]),
}  # fmt: skip
each_means = pytest.mark.parametrize("name", MEANS)


def pay(api: Api, *parts: dict[str, str], **changes: str) -> Answer:
    fields = dict(FACE)
    for part in parts:
        fields |= part
    return api.post("/v1/payments", fields | {name.replace("__", "."): value for name, value in changes.items()})


def sent_on(api: Api, payment: str) -> dict[str, Any]:
    messages = api.get("/v1/test/acquirer/messages", {"id": payment}).body["messages"]
    found: dict[str, Any] = messages[0]["sent"]
    return found


@each_means
def test_every_means_pays(api: Api, name: str) -> None:
    """A7.2, A7.5, A7.13, A18.5."""
    answer = pay(api, MEANS[name])
    assert (answer.status, answer.code) == (200, "000.100.110")


@each_means
def test_no_secret_of_a_means_stands_anywhere_in_clear(api: Api, name: str) -> None:
    """D17; house rule 9: not in the answer, the exchange, the log, the database."""
    answer = pay(api, MEANS[name])
    told = api.get("/v1/test/acquirer/messages", {"id": answer.id})
    for secret in SECRETS[name]:
        assert secret not in answer.text
        assert secret not in api.read(answer.id).text
        assert secret not in told.text
        assert places_of(secret) == set()
    for short in ("817",) if name == "token account" else ():
        assert short not in leaves(answer.body)
        assert short not in leaves(told.body)


def test_a_bank_account_comes_back_masked_and_goes_on_with_its_mandate(api: Api) -> None:
    """A18.7, D17."""
    mandate = {
        "bankAccount.mandate.id": "MANDATE-ABC",
        "bankAccount.mandate.dateOfSignature": "2026-01-15",
        "bankAccount.bankName": "Example Bank",
        "bankAccount.country": "DE",
        "transactionDueDate": "2026-12-01",
    }
    answer = pay(api, BANK, mandate)
    assert answer.body["bankAccount"] == {
        "holder": "Jane Jones",
        "iban": "*" * 18 + "7890",
        "bic": "MARKDEF1100",
        "bankName": "Example Bank",
        "country": "DE",
        "mandate": {"id": "MANDATE-ABC", "dateOfSignature": "2026-01-15"},
    }
    sent = sent_on(api, answer.id)
    assert sent["bankAccount"]["iban"] == "DE23" + "*" * 14 + "7890"
    assert sent["bankAccount"]["mandate"] == {"id": "MANDATE-ABC", "dateOfSignature": "2026-01-15"}
    assert sent["transactionDueDate"] == "2026-12-01"
    payment = Payment.objects.get(pk=answer.id)
    assert payment.means == "bankAccount"
    assert payment.means_sealed is not None
    assert payment.method == "DD"


def test_a_token_account_shows_no_token(api: Api) -> None:
    """D17."""
    answer = pay(api, TOKEN)
    assert answer.body["tokenAccount"] == {"type": "NETWORK", "expiryMonth": "05", "expiryYear": "2034"}
    sent = sent_on(api, answer.id)["tokenAccount"]
    assert sent["cryptogramPresent"] is True
    assert sent["dtvcPresent"] is True
    assert "cryptogram" not in sent
    assert sent["number"][6:-4].strip("*") == ""


def test_a_gift_card_beside_a_card_goes_on_and_pays_nothing(api: Api) -> None:
    """B15.1."""
    answer = api.pay(giftCard__number="GC-10000", giftCard__message="Many happy returns", giftCard__pin="4711")
    assert answer.code == "000.100.110"
    assert answer.body["giftCard"] == {"number": "****0000", "message": "Many happy returns"}
    assert sent_on(api, answer.id)["giftCard"] == {"number": "****0000", "message": "Many happy returns"}
    assert Payment.objects.get(pk=answer.id).means == "card"


@pytest.mark.parametrize(
    "missing, part",
    [
        ("bankAccount.holder", BANK),
        ("bankAccount.iban", BANK),
        ("bankAccount.number", LOCAL),
        ("bankAccount.bic", BANK),
        ("bankAccount.bankCode", LOCAL),
        ("virtualAccount.accountId", VIRTUAL),
        ("tokenAccount.type", TOKEN),
        ("tokenAccount.number", TOKEN),
        ("giftCard.number", GIFT),
        ("paymentBrand", BANK),
    ],
)
def test_what_a_means_cannot_do_without_is_asked_for(api: Api, missing: str, part: dict[str, str]) -> None:
    """A13.5, A17.1, A18.2, A18.3, A18.4, A19.1."""
    answer = pay(api, {name: value for name, value in part.items() if name != missing})
    assert answer.status == 400
    assert missing in answer.errors
    assert "id" not in answer.body


@pytest.mark.parametrize("path", ["/v1/payments", "/v1/registrations"])
@pytest.mark.parametrize(
    "sent, missing",
    [
        ({"paymentBrand": "VISA"}, {"card.number", "card.expiryMonth", "card.expiryYear"}),
        ({"paymentBrand": "VISA", "card.holder": "Jane Jones"}, {"card.number", "card.expiryMonth", "card.expiryYear"}),
        (
            {"paymentBrand": "DIRECTDEBIT_SEPA"},
            {"bankAccount.holder", "bankAccount.iban", "bankAccount.number", "bankAccount.bic", "bankAccount.bankCode"},
        ),
        (
            {"paymentBrand": "DIRECTDEBIT_SEPA", "bankAccount.holder": "Jane Jones"},
            {"bankAccount.iban", "bankAccount.number", "bankAccount.bic", "bankAccount.bankCode"},
        ),
        ({"paymentBrand": "VIRTUALACCOUNT"}, {"virtualAccount.accountId"}),
    ],
)
def test_who_sends_no_means_is_told_all_of_it_at_once(
    api: Api, sent: dict[str, str], missing: set[str], path: str
) -> None:
    """A15.2, A18.3; D10: every error at once, not one a try."""
    answer = api.post(path, (FACE if path == "/v1/payments" else {}) | sent)
    assert (answer.status, set(answer.errors)) == (400, missing), answer


def test_a_network_token_without_proof_is_refused_when_the_shopper_pays(api: Api) -> None:
    """A19.2."""
    bare = {name: value for name, value in TOKEN.items() if not name.endswith(("cryptogram", "dtvc"))}
    assert "tokenAccount.cryptogram" in pay(api, bare).errors
    assert pay(api, bare, {"tokenAccount.type": "EXTERNAL"}).code == "000.100.110"


def test_wrong_check_digits_of_an_iban_decide_the_payment(api: Api) -> None:
    """D40: no error of format; nobody is asked, and no account is kept."""
    answer = pay(api, BANK | {"bankAccount.iban": "DE24100000001234567890"})
    assert (answer.status, answer.code) == (400, "100.100.101")
    assert "bankAccount.iban" in answer.errors
    payment = Payment.objects.get(pk=answer.id)
    assert payment.status == Status.DECLINED
    assert payment.means_sealed is None
    assert not AcquirerExchange.objects.filter(payment=payment).exists()
    assert places_of("DE24100000001234567890") == set()


@pytest.mark.parametrize(
    "brand, part",
    [
        ("VISA", BANK),
        ("DIRECTDEBIT_SEPA", VIRTUAL),
        ("GIFTCARD", BANK),
        ("CASHONDELIVERY", BANK),
        ("VIRTUALACCOUNT", TOKEN),
        ("WEBWALLET", BANK),
    ],
)
def test_a_means_that_does_not_go_with_the_brand_is_refused(api: Api, brand: str, part: dict[str, str]) -> None:
    """600.200.100."""
    answer = pay(
        api,
        part | {"paymentBrand": brand},
        shopperResultUrl="https://shop.example/result",
        **({"giftCard.number": "GC-1"} if brand == "GIFTCARD" else {}),
    )
    assert answer.status == 400
    # A card brand asks for its card first.
    assert answer.code in ("600.200.100", "200.300.404")
    assert answer.errors


def test_two_means_at_once_are_refused(api: Api) -> None:
    """D29."""
    answer = pay(api, BANK, VIRTUAL, {"paymentBrand": "DIRECTDEBIT_SEPA"})
    assert {"bankAccount.iban", "virtualAccount.accountId"} <= set(answer.errors)


@pytest.mark.parametrize(
    "brand", [code for code, one in PAYMENT_BRANDS.items() if one.means is None and not one.redirect]
)
def test_brands_without_a_means_need_none(api: Api, brand: str) -> None:
    """D29."""
    answer = pay(api, {"paymentBrand": brand})
    assert answer.status == 200
    assert Payment.objects.get(pk=answer.id).means == ""


def test_a_prepayment_names_the_account_to_pay_into(api: Api) -> None:
    """B18.10."""
    answer = pay(api, {"paymentBrand": "PREPAYMENT"})
    assert (answer.status, answer.code) == (200, "800.400.500")
    account = answer.body["merchant"]["bankAccount"]
    assert set(account) == {"holder", "number", "bic", "country"}
    assert api.read(answer.id).body["merchant"]["bankAccount"] == account
    assert "redirect" not in answer.body


def test_money_that_never_arrives_ends_the_prepayment_at_its_deadline(shop: Shop) -> None:
    """Decisions, section 5: with the bank's word for it."""
    answer = pay(shop.api, {"paymentBrand": "PREPAYMENT"})
    shop.api.post("/v1/test/clock", {"advance": str(13 * 86_400)})
    assert shop.api.read(answer.id).code == "800.400.500"
    shop.api.post("/v1/test/clock", {"advance": str(86_401)})
    assert shop.api.read(answer.id).code == "100.396.103"
    late = shop.api.post(f"/v1/test/transfers/{answer.id}", {"outcome": "arrived"})
    assert late.code == "100.396.103"


def test_only_what_waits_for_a_transfer_gets_one(api: Api) -> None:
    """POST /v1/test/transfers/{id}."""
    for ident in (api.pay().id, pay(api, {"paymentBrand": "WEBWALLET", "shopperResultUrl": "https://s.example/r"}).id):
        answer = api.post(f"/v1/test/transfers/{ident}", {"outcome": "arrived"})
        assert (answer.status, answer.code) == (400, "200.300.404")
        assert "id" in answer.errors
    waiting = pay(api, {"paymentBrand": "PREPAYMENT"})
    assert "outcome" in api.post(f"/v1/test/transfers/{waiting.id}", {"outcome": "lost"}).errors
    assert api.post(f"/v1/test/transfers/{waiting.id}", {"outcome": "arrived"}).code == "000.100.110"
    assert api.post(f"/v1/test/transfers/{waiting.id}", {"outcome": "returned"}).code == "000.100.110"


def _silent() -> SimulatedAccount:
    return next(row for row in SIMULATED_ACCOUNTS if row.behaviour == "silence")


def test_a_bank_that_does_not_answer_leaves_the_payment_in_doubt_until_it_is_asked(api: Api) -> None:
    """House rule 4."""
    answer = pay(api, dict(_silent().fields))
    assert (answer.status, answer.code) == (200, "000.200.001")
    payment = Payment.objects.get(pk=answer.id)
    assert recover_at(payment) is not None
    from gateway.connectors.simulator.connector import SIMULATOR

    request = recovery.build_inquiry(payment, SIMULATOR)
    finding = recovery.resolve_outcome(SIMULATOR, request, payment)
    assert [one.kind for one in finding.exchanges] == ["inquire", "void"]
    assert finding.reply is not None
    assert finding.reply.code == "900.100.301"


# --- which types a brand takes --------------------------------------------------------------------------------------


def test_every_method_says_which_types_it_takes() -> None:
    assert set(METHOD_PAYMENT_TYPES) == set(PAYMENT_METHODS)
    for brand in PAYMENT_BRANDS:
        assert {"PA", "DB", "RF", "RV"} <= set(list_payment_types(brand)), brand


REFUSED = [
    (brand, code)
    for brand in PAYMENT_BRANDS
    if PAYMENT_BRANDS[brand].means != "card"
    for code in ("PA", "DB", "CD")
    if not is_type_supported(brand, code)
]


@pytest.mark.parametrize("brand, kind", REFUSED)
def test_a_type_that_does_not_go_with_a_brand_is_refused(api: Api, brand: str, kind: str) -> None:
    """600.200.310."""
    answer = pay(api, {"paymentBrand": brand, "shopperResultUrl": "https://shop.example/r"}, paymentType=kind)
    assert (answer.status, answer.code) == (400, "600.200.310")
    assert ("paymentType", kind) in [(one["name"], one["value"]) for one in answer.body["result"]["parameterErrors"]]


@pytest.mark.parametrize("kind", ["RB", "CB"])
@pytest.mark.parametrize("brand", ["CREDITTRANSFER_SEPA", "PREPAYMENT"])
def test_a_follow_up_that_does_not_go_with_a_brand_is_declined_here(api: Api, brand: str, kind: str) -> None:
    """600.200.310: it can be read, and no acquirer is asked."""
    first = pay(api, BANK if brand == "CREDITTRANSFER_SEPA" else {}, {"paymentBrand": brand})
    assert first.status == 200, first
    asked = AcquirerExchange.objects.count()
    answer = api.follow(first.id, kind, "10.00")
    assert (answer.status, answer.code, answer.body["amount"]) == (400, "600.200.310", "10.00")
    assert (api.read(answer.id).status, api.read(answer.id).code) == (400, "600.200.310")
    assert Payment.objects.get(pk=answer.id).status == Status.DECLINED
    assert AcquirerExchange.objects.count() == asked


@each_means
@pytest.mark.parametrize("kind", ["RF", "RV", "RB"])
def test_follow_ups_take_the_means_of_their_chain(api: Api, name: str, kind: str) -> None:
    """A27.3; decisions, section 4."""
    first = pay(api, MEANS[name])
    answer = api.follow(first.id, kind, "10.00")
    assert answer.code == "000.100.110"
    assert answer.body["paymentBrand"] == MEANS[name]["paymentBrand"]
    sent = sent_on(api, answer.id)
    kinds = {"bankAccount", "virtualAccount", "tokenAccount", "giftCard"} & set(sent)
    assert len(kinds) == (1 if OPERATIONS[kind].needs_card else 0)


def test_a_rebill_from_an_account_asks_the_account_again(api: Api) -> None:
    """RB of a debit whose account has no funds by then is declined by the account, not approved blindly."""
    first = pay(api, BANK)
    again = sent_on(api, api.follow(first.id, "RB", "10.00").id)["bankAccount"]
    assert again["iban"] == "DE23" + "*" * 14 + "7890"
    assert again["holder"] == "Jane Jones"


def test_test_ibans_have_right_check_digits() -> None:
    """ISO 13616, as an independent library sees it."""
    import schwifty

    assert build_iban("DE", "100000001234567890") == IBAN
    for row in SIMULATED_ACCOUNTS:
        iban = row.fields.get("bankAccount.iban")
        if iban is not None:
            assert schwifty.IBAN(iban, allow_invalid=True).is_valid is (row.code != "100.100.101")


def test_the_fields_of_a_means_are_no_free_text_in_the_echo(api: Api) -> None:
    """D17: what comes back of every means, leaf by leaf."""
    for part in MEANS.values():
        told = json.dumps(pay(api, part).body)
        assert "cvvPresent" not in told
        assert "means_sealed" not in told

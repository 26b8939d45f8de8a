"""Card data where it does not belong: refused, masked before it is stored, or kept where an id must stay what it is.

Source: PCI DSS 4.0.1, 3.3.1 and 3.5.1; docs/decisions/0052-card-data-in-free-text.md.
"""

from __future__ import annotations

import pytest

from gateway.catalogue import structures
from gateway.catalogue.free_text_masking import find_min_masked_digits
from gateway.core.luhn import compute_check_digit
from gateway.models import Payment, RequestLog
from tests.support.client import payment
from tests.support.database import places_of
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

OWN = "4200000000000000"
OTHER = "492912345678901"
OTHER += compute_check_digit(OTHER)
HIDDEN = f"{OTHER[:6]}******{OTHER[-4:]}"


def spaced(number: str, sign: str, size: int = 4) -> str:
    return sign.join(number[at : at + size] for at in range(0, len(number), size))


OWN_WRITINGS = {
    "plain": OWN, "blanks": spaced(OWN, " "), "thin blanks": spaced(OWN, "\u2009"), "dots": spaced(OWN, "."),
    "dashes": spaced(OWN, "\u2013"), "slashes": spaced(OWN, "/"), "pairs": spaced(OWN, " ", 2),
    "words": spaced(OWN, " and then "), "full-width": "".join(chr(ord(char) + 0xFEE0) for char in OWN),
    "arabic": "".join(chr(0x660 + int(char)) for char in OWN),
}  # fmt: skip


@pytest.mark.parametrize("text", OWN_WRITINGS.values(), ids=OWN_WRITINGS)
@pytest.mark.parametrize("name", ["descriptor", "merchantMemo", "merchantTransactionId", "customParameters[note]"])
def test_the_requests_own_number_in_another_field_is_refused_and_not_repeated(shop: Shop, name: str, text: str) -> None:
    """docs/decisions/0052."""
    answer = shop.api.post("/v1/payments", payment() | {name: f"card {text}"})
    assert (answer.status, answer.code, list(answer.errors)) == (400, "200.300.404", [name])
    assert "value" not in answer.body["result"]["parameterErrors"][0]
    assert text not in answer.text
    kept = dict(RequestLog.objects.get().parameters)
    assert kept[name] == "•••"


def test_a_number_cut_over_two_fields_is_refused_in_both(shop: Shop) -> None:
    """docs/decisions/0052."""
    number = "4929123456789" + "01"
    number += compute_check_digit(number)
    fields = payment(card__number=number) | {"descriptor": f"half {number[:8]}", "merchantMemo": f"{number[8:]} rest"}
    answer = shop.api.post("/v1/payments", fields)
    assert (answer.status, set(answer.errors)) == (400, {"descriptor", "merchantMemo"})


def test_another_number_is_masked_before_it_is_stored_and_the_header_says_so(shop: Shop) -> None:
    """docs/decisions/0052."""
    texts = {
        "descriptor": f"as with {spaced(OTHER, '.')}",
        "merchantMemo": f"{OTHER} and cvv 737",
        "customParameters[note]": spaced(OTHER, "\u00a0"),
        "cart.items[0].name": spaced(OTHER, "/"),
    }
    answer = shop.api.post("/v1/payments", payment() | {"cart.items[0].price": "92.00"} | texts)
    assert answer.status == 200, answer
    for name in texts:
        assert f'299 Tollhouse "{name} held card data, which is masked"' in answer.headers["Warning"]
    row = Payment.objects.get(pk=answer.id)
    assert row.merchant_memo == f"{HIDDEN} and cvv ***"
    assert answer.body["descriptor"] == f"as with {spaced(HIDDEN, '.')}"
    assert places_of(OTHER) == set()
    assert OTHER[6:12] not in "".join(char for char in f"{row.request}{row.answer}" if char.isdigit())


@pytest.mark.parametrize(("fields", "more"), [(10, 0), (12, 2)])
def test_the_header_names_ten_masked_fields_and_counts_the_others(shop: Shop, fields: int, more: int) -> None:
    texts = {f"customParameters[note{number}]": f"{OTHER} {number}" for number in range(fields)}
    answer = shop.api.post("/v1/payments", payment() | texts)
    assert answer.status == 200, answer
    warning = answer.headers["Warning"]
    assert warning.count("] held card data") == 10
    assert ("more parameters held" in warning) == bool(more)
    assert (f'"{more} more parameters held card data, which is masked"' in warning) == bool(more)


def test_halves_of_another_number_in_two_fields_are_masked(shop: Shop) -> None:
    """docs/decisions/0052."""
    halves = {"customParameters[first]": OTHER[:8], "customParameters[second]": OTHER[8:]}
    answer = shop.api.post("/v1/payments", payment() | halves)
    assert answer.body["customParameters"] == {"first": f"{OTHER[:6]}**", "second": f"****{OTHER[-4:]}"}
    assert "customParameters[second]" in answer.headers["Warning"]


def test_a_key_that_is_a_card_number_is_refused(shop: Shop) -> None:
    """docs/decisions/0052: a key is a name, and is not altered."""
    answer = shop.api.post("/v1/payments", payment() | {f"customParameters[{OTHER}]": "x"})
    assert (answer.status, OTHER in answer.text) == (400, False)
    assert places_of(OTHER) == set()


def test_a_channel_may_switch_it_off(shop: Shop) -> None:
    """docs/decisions/0052: the request's own number is refused all the same."""
    api = shop.api_of(shop.open_channel("as sent", mask_card_data=False))
    answer = api.post("/v1/payments", payment() | {"descriptor": OTHER})
    assert (answer.body["descriptor"], "Warning" in answer.headers) == (OTHER, False)
    assert api.post("/v1/payments", payment() | {"descriptor": OWN}).status == 400


def test_what_is_sent_with_the_merchants_own_id_is_masked_too(shop: Shop) -> None:
    """A follow-up by it has no channel that could switch the masking off."""
    type(shop.merchant).objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    api = shop.api.as_entity(shop.merchant.entity_id)
    paid = api.pay(merchantMemo=f"first {OTHER}")
    refunded = api.follow(paid.id, "RF", "1.00", merchantMemo=f"then {OTHER}")
    for answer, words in ((paid, "first"), (refunded, "then")):
        assert answer.status == 200, answer
        assert Payment.objects.get(pk=answer.id).merchant_memo == f"{words} {HIDDEN}"
    assert places_of(OTHER) == set()


def test_an_id_is_kept_as_it_was_sent_and_found_by_it(shop: Shop) -> None:
    """docs/decisions/0052: reconciliation goes by it."""
    answer = shop.api.post("/v1/payments", payment() | {"merchantTransactionId": OTHER, "merchantInvoiceId": OTHER})
    assert answer.body["merchantTransactionId"] == OTHER
    assert "Warning" not in answer.headers
    found = shop.api.get("/v1/query", {"merchantTransactionId": OTHER})
    assert [one["id"] for one in found.body["payments"]] == [answer.id]
    assert places_of(OTHER) <= {
        "gateway_payment.merchant_transaction_id",
        "gateway_payment.merchant_invoice_id",
        "gateway_payment.request",
        "gateway_payment.duplicate_guard",
        "gateway_exchange.sent",
    }


def test_a_repeat_with_its_key_is_answered_again_although_its_text_was_masked(shop: Shop) -> None:
    """The fingerprint is of what was sent."""
    fields = payment() | {"descriptor": OTHER}
    first, second = (shop.api.post("/v1/payments", fields, Idempotency_Key="once") for _ in range(2))
    assert first.id == second.id
    assert OTHER not in first.text + second.text


def test_an_ordinary_payment_has_no_warning(shop: Shop) -> None:
    fields = {
        "descriptor": "Order 4711",
        "customer.phone": "+49 170 12345678",
        "merchantMemo": "2026-11-22 16:00:00",
        "customer.givenName": "Jane",
        "customer.surname": "Jones",
    }
    assert "Warning" not in shop.api.post("/v1/payments", payment() | fields).headers


def test_every_parameter_of_free_text_is_searched() -> None:
    """What a merchant may write a number into, and what is left alone on purpose."""
    alone = set()
    for structure in structures.KNOWN_STRUCTURES:
        for row in structure.rows:
            full = structure.full(row.name)
            if not row.secret and row.format.problem(OTHER) is None and not find_min_masked_digits(full, row):
                alone.add(full.rpartition(".")[2])
    assert alone == {
        "merchantTransactionId",
        "merchantInvoiceId",
        "lifecycleId",
        "referenceUuid",
        "merchantCustomerId",
        "id",
        "value",
        "deviceId",
        "connectorTxId1",
        "connectorTxId2",
        "connectorTxId3",
        "deviceInfo",
        "requestorId",
        "initialTransactionId",
        "agreementId",
        "url",
        "schemeUrl",
        "merchantWebsite",
    }


@pytest.mark.parametrize("name", ["authentication.password", "authentication.secret", "sharedSecret", "user.passwd"])
def test_a_password_of_an_old_client_is_kept_in_no_log(shop: Shop, name: str) -> None:
    """Clients that move here still send what their former gateway signed in with."""
    answer = shop.api.post("/v1/payments", payment(amount="92.1") | {name: "h7Rk2mQz"})
    assert answer.status == 400
    assert "h7Rk2mQz" not in answer.text
    assert places_of("h7Rk2mQz") == set()

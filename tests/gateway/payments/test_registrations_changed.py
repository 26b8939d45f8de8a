"""What a change of a stored means writes, and what it is refused for: each column and each row by itself. No database.

Source: Part B, Tokenization and registration; ruling D5.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parameters import Parameters
from gateway.connectors.means import BankAccount, Card
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, NetworkToken, Payment, Registration, SepaMandate
from gateway.payments import registrations
from gateway.payments.payment_request import RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.registrations import (
    ChangeRequest,
    delete_registration,
    delete_registration_by_hand,
    extend_registration,
    load_stored_means,
    record_registration_change,
    set_account_updates_by_hand,
    update_registration,
)
from gateway.vault.sealing import VaultError, current_vault

NOW, DAY, SECOND = datetime(2035, 11, 15, 12, tzinfo=UTC), timedelta(days=1), timedelta(seconds=1)
STORED, CHANNEL = UUID(int=4), UUID(int=2)
VISA, MASTER = "4200000000000000", "5454545454545454"
MERCHANT = Merchant(id=UUID(int=1), name="Shop")
TRACE = RequestTrace(request=UUID(int=7), method="POST", path="/v1/registrations", at=NOW)
CARD = {"bin": "420000", "last4Digits": "0000", "holder": "Jane", "expiryMonth": "05", "expiryYear": "2036"}


def stored(**values: Any) -> Registration:
    channel = Channel(id=CHANNEL, merchant=MERCHANT, active=True, **values.pop("channel", {}))
    return Registration(**{
        "id": STORED, "merchant": MERCHANT, "channel": channel, "brand": "VISA", "method": "CC", "means": "card",
        "means_sealed": current_vault().seal(Secret(VISA), STORED), "details": {"card": dict(CARD)},
        "request": {"customer": {"email": "a@b.c"}}, "test_mode": "EXTERNAL", "sequence": 3, "payment": UUID(int=9),
        **values,
    })  # fmt: skip


def account() -> Registration:
    return stored(
        means="bankAccount", brand="DIRECTDEBIT_SEPA", method="DD", details={"bankAccount": {"holder": "Jane"}},
        means_sealed=current_vault().seal(Secret("DE89370400440532013000"), STORED),
    )  # fmt: skip


class Sent(Parameters):
    """Parameters that are echoed as they are named, whatever the catalogue says of them."""

    def echo(self) -> dict[str, Any]:
        nested: dict[str, Any] = {}
        for name, value in self.values.items():
            *path, last = name.split(".")
            place = nested
            for one in path:
                place = place.setdefault(one, {})
            place[last] = value
        return nested


def sent(values: dict[str, str] | None = None, secrets: dict[str, str] | None = None, **more: Any) -> Parameters:
    sealed = {name: Secret(value) for name, value in (secrets or {}).items()}
    return Sent(values=dict(values or {}), secrets=sealed, **more)


def change(parameters: Parameters | None = None, **values: Any) -> ChangeRequest:
    given = {"merchant": MERCHANT, "now": NOW, "trace": TRACE, "parameters": parameters or sent(), **values}
    return ChangeRequest(**given)


class Written:
    """A statement that remembers what was added to it."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.related: list[Any] = []
        self.inserts: list[Any] = []

    def update(self, row: Any, changes: Any, *, expecting: Any) -> None:
        self.updates.append((row, dict(changes), dict(expecting)))

    def update_related(self, model: Any, changes: Any, where: Any) -> None:
        self.related.append((model, dict(changes), dict(where)))

    def insert(self, model: Any, **values: Any) -> None:
        self.inserts.append((model, values))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A store that takes a change, or finds that another one was faster."""
    found = SimpleNamespace(takes=True, written=Written(), payment=None, told=None, named=None)

    def insert(payment: Payment, changing: Any, notification: Any, **named: Any) -> bool:
        found.payment, found.told, found.named = payment, notification, named
        changing(found.written)
        return bool(found.takes)

    monkeypatch.setattr(registrations.store, "insert_record_only_payment", insert)
    monkeypatch.setattr(registrations, "resolve_success_code", lambda mode: f"success {mode}")
    return found


def columns(store: SimpleNamespace) -> dict[str, Any]:
    """The columns that were written, without the sealed account."""
    [(_, changes, _)] = store.written.updates
    return {name: value for name, value in changes.items() if name != "means_sealed"}


def refused(act: Any) -> tuple[str, int, list[ParameterError]]:
    with pytest.raises(RequestRefusedError) as caught:
        act()
    return caught.value.code, caught.value.status, list(caught.value.errors)


# --- each change ----------------------------------------------------------------------------------------------------


def test_a_deletion_erases_the_account_and_withdraws_the_token_of_its_card(store: SimpleNamespace) -> None:
    row, key = stored(), object()
    payment = delete_registration(row, change(idempotency=key))
    assert payment is store.payment
    expected = {"status": "DELETED", "means_sealed": None, "deleted_at": NOW}
    assert store.written.updates == [(row, {**expected, "sequence": 4}, {"sequence": 3})]
    assert {name: getattr(row, name) for name in expected} == expected
    [(model, token, where)] = store.written.related
    assert (model, token["status"], where) == (NetworkToken, "DELETED", {"registration_id": STORED})
    assert store.told == {
        "merchant_id": MERCHANT.id, "channel_id": CHANNEL, "kind": "REGISTRATION", "action": "DELETED",
        "payment_id": payment.id, "registration": STORED, "sequence": 2, "created_at": NOW,
    }  # fmt: skip
    assert store.named == {"trace": TRACE, "idempotency": key}


def test_a_deletion_of_a_bank_account_ends_its_mandate_and_no_token(store: SimpleNamespace) -> None:
    row = account()
    delete_registration(row, change())
    [(model, changes, where)] = store.written.related
    assert model is SepaMandate
    assert (changes, where) == registrations.end_stored_mandate_write(row, NOW)


@pytest.mark.parametrize(("days", "end"), [(30, NOW + 30 * DAY), (None, None)])
def test_an_extension_begins_the_retention_anew(store: SimpleNamespace, days: int | None, end: datetime | None) -> None:
    row = stored(retain_until=NOW, channel={"registration_days": days})
    extend_registration(row, change())
    assert columns(store) == {"retain_until": end, "sequence": 4}
    assert (store.payment.payment_type, store.told["action"], store.written.related) == ("TE", "UPDATED", [])


@pytest.mark.parametrize("act", [extend_registration, update_registration])
def test_nothing_is_changed_after_the_retention(store: SimpleNamespace, act: Any) -> None:
    row = stored(retain_until=NOW - SECOND)
    assert refused(lambda: act(row, change(sent({"card.holder": "J"}))))[0] == "100.150.206"
    assert store.payment is None


def test_one_that_was_changed_since_it_was_read_is_a_conflict(store: SimpleNamespace) -> None:
    store.takes = False
    assert refused(lambda: delete_registration(stored(), change())) == ("800.120.402", 409, [])


FORGOTTEN = {"account_update": "", "account_updated_at": None, "account_update_due_at": None}


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        ({"card.holder": "John"}, {"details": {"card": {**CARD, "holder": "John"}}}),
        ({"card.expiryYear": "2040"}, {"details": {"card": {**CARD, "expiryYear": "2040"}}, **FORGOTTEN}),
        ({"card.expiryMonth": "12"}, {"details": {"card": {**CARD, "expiryMonth": "12"}}, **FORGOTTEN}),
        (
            {"customer.surname": "Jones", "paymentBrand": "VISA", "entityId": "e"},
            {"request": {"customer": {"email": "a@b.c", "surname": "Jones"}}},
        ),
        (
            {"accountUpdater": "false"},
            {"request": {"customer": {"email": "a@b.c"}, "accountUpdater": "false"}, "account_update_due_at": None},
        ),
        ({}, {}),
    ],
)
def test_an_update_changes_what_was_sent_and_nothing_else(
    store: SimpleNamespace, values: dict[str, str], changes: dict[str, Any]
) -> None:
    row = stored()
    update_registration(row, change(sent(values)))
    unchanged = {"details": {"card": CARD}, "request": {"customer": {"email": "a@b.c"}}, "brand": "VISA"}
    assert columns(store) == {**unchanged, **changes, "updated_at": NOW, "sequence": 4}
    assert (store.payment.payment_type, store.told["action"], store.written.related) == ("RR", "UPDATED", [])
    assert "means_sealed" not in store.written.updates[0][1]


@pytest.mark.parametrize(
    ("values", "number", "brand"),
    [
        ({}, "4111111111111111", "VISA"),
        ({}, MASTER, "MASTER"),
        ({"paymentBrand": "MASTER"}, MASTER, "MASTER"),
        ({"paymentBrand": "VISAELECTRON"}, "4111111111111111", "VISAELECTRON"),
    ],
)
def test_a_new_number_is_sealed_for_the_registration_and_its_token_asked_for_anew(
    store: SimpleNamespace, values: dict[str, str], number: str, brand: str
) -> None:
    row = stored(details={"card": {**CARD, "numberType": "DPAN"}, "wallet1": {"source": "web"}})
    update_registration(row, change(sent(values, {"card.number": number})))
    [(_, changes, _)] = store.written.updates
    assert current_vault().open(changes["means_sealed"], STORED).reveal() == number
    card = {**CARD, "bin": number[:6], "last4Digits": number[-4:]}
    assert (changes["details"], changes["brand"]) == ({"card": card}, brand)
    assert {name: changes[name] for name in FORGOTTEN} == FORGOTTEN
    [(model, token, where)] = store.written.related
    assert (model, token["status"], where) == (NetworkToken, "REQUESTED", {"registration_id": STORED})
    assert (store.payment.brand, store.payment.answer["card"]) == (brand, card)


def test_a_new_bank_account_is_sealed_and_no_token_is_asked_for(store: SimpleNamespace) -> None:
    update_registration(account(), change(sent({}, {"bankAccount.iban": "DE02120300000000202051"})))
    [(_, changes, _)] = store.written.updates
    assert current_vault().open(changes["means_sealed"], STORED).reveal() == "DE02120300000000202051"
    assert (changes["brand"], store.written.related) == ("DIRECTDEBIT_SEPA", [])
    assert changes["details"] == {"bankAccount": {"holder": "Jane"}}


REFUSAL = ParameterError(name="card.number", message="m", code="100.100.101")


@pytest.mark.parametrize(
    ("parameters", "code", "name", "value", "words"),
    [
        (sent({"bankAccount.holder": "J"}), "200.300.404", "bankAccount.holder", None, "the registration holds a card"),
        (sent({}, {"bankAccount.iban": "DE1"}), "200.300.404", "bankAccount.iban", None, "holds a card"),
        (sent({"paymentBrand": "MASTER"}), "600.200.800", "paymentBrand", "MASTER", "it is VISA"),
        (
            sent({"paymentBrand": "VISA"}, {"card.number": MASTER}), "100.100.700", "card.number", None,
            "is not a number of VISA",
        ),
        (
            sent({"paymentBrand": "DIRECTDEBIT_SEPA"}, {"card.number": VISA}), "100.100.700", "card.number", None,
            "is not a number of DIRECTDEBIT_SEPA",
        ),
        (sent({"card.expiryYear": "2034"}), "100.100.303", "card.expiryMonth", None, "the card is past its expiry"),
        (sent({"card.holder": "J"}, refusals=(REFUSAL,)), "100.100.101", "card.number", None, "m"),
    ],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused_by_its_parameter(
    store: SimpleNamespace, parameters: Parameters, code: str, name: str, value: str | None, words: str
) -> None:
    found, status, [error] = refused(lambda: update_registration(stored(), change(parameters)))
    assert (found, status, error.name, error.value) == (code, 400, name, value)
    assert error.message.endswith(words)
    assert store.payment is None


def test_the_record_of_a_change_is_a_payment_of_nothing(store: SimpleNamespace) -> None:
    row = stored(details={"card": CARD, "wallet1": {"source": "web"}}, channel={"currencies": ["USD", "EUR"]})
    payment = update_registration(row, change(sent({"customer.surname": "Jones"})))
    assert payment.id == payment.chain
    found = {name: getattr(payment, name) for name in (
        "merchant_id", "channel_id", "referenced", "payment_type", "brand", "method", "amount", "approved_amount",
        "currency", "test_mode", "result_code", "request", "answer", "means", "registration", "request_id",
        "created_at", "completed_at",
    )}  # fmt: skip
    assert found == {
        "merchant_id": MERCHANT.id, "channel_id": CHANNEL, "referenced": STORED, "payment_type": "RR", "brand": "VISA",
        "method": "CC", "amount": Decimal(0), "approved_amount": Decimal(0), "currency": "USD",
        "test_mode": "EXTERNAL", "result_code": "success EXTERNAL", "request": {"customer": {"surname": "Jones"}},
        "answer": {"card": CARD, "descriptor": "Shop"}, "means": "card", "registration": STORED,
        "request_id": UUID(int=7), "created_at": NOW, "completed_at": NOW,
    }  # fmt: skip
    other = delete_registration(stored(), change(sent({"customer.surname": "Jones"})))
    assert (other.request, other.currency) == ({}, "EUR")
    assert other.id != payment.id


# --- by hand --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "kind", "values"),
    [
        (lambda row: delete_registration_by_hand(row, path="/page", ip="192.0.2.1"), "DR", {"paymentType": "RV"}),
        (
            lambda row: set_account_updates_by_hand(row, wanted=True, path="/page", ip="192.0.2.1"), "RR",
            {"accountUpdater": "true"},
        ),
        (
            lambda row: set_account_updates_by_hand(row, wanted=False, path="/page", ip="192.0.2.1"), "RR",
            {"accountUpdater": "false"},
        ),
    ],
)  # fmt: skip
def test_a_clerks_change_is_that_of_the_api_of_the_registration_as_it_is_now(
    store: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, act: Any, kind: str, values: dict[str, str]
) -> None:
    fresh, asked = stored(sequence=8), []  # type: ignore[var-annotated]
    monkeypatch.setattr(registrations, "find_registration", lambda *each: (asked.append(each), fresh)[1])
    monkeypatch.setattr(clock, "merchant_now", lambda merchant: NOW if merchant is MERCHANT else None)
    row = stored()
    before = clock.real_now()
    payment = act(row)
    assert asked == [(STORED, MERCHANT, row.channel)]
    assert store.written.updates[0][0] is fresh
    assert store.written.updates[0][2] == {"sequence": 8}
    assert (payment.payment_type, payment.created_at) == (kind, NOW)
    trace = store.named["trace"]
    assert (trace.method, trace.path, trace.ip, trace.entity) == ("POST", "/page", "192.0.2.1", CHANNEL)
    assert before <= trace.at <= clock.real_now()
    assert payment.request_id == trace.request
    expected = {name: value for name, value in values.items() if name == "accountUpdater"}
    assert {name: value for name, value in payment.request.items() if name in values} == expected


# --- by the card network --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("takes", [True, False])
def test_what_a_network_reported_is_written_told_and_shown(store: SimpleNamespace, takes: bool) -> None:
    store.takes = takes
    row = stored()
    assert record_registration_change(row, {"brand": "MASTER"}, NOW, shown={"networkToken": {"a": "b"}}) is takes
    expected = {"brand": "MASTER", "updated_at": NOW, "sequence": 4}
    assert store.written.updates == [(row, expected, {"sequence": 3})]
    assert {name: getattr(row, name) for name in expected} == expected
    payment = store.payment
    assert (payment.payment_type, payment.brand, payment.request, payment.created_at) == ("RR", "MASTER", {}, NOW)
    assert payment.answer["facts"] == {"networkToken": {"a": "b"}}
    assert (store.told["action"], store.told["sequence"], store.told["payment_id"]) == ("UPDATED", 2, payment.id)
    assert (store.told["registration"], store.told["created_at"]) == (STORED, NOW)
    assert store.named == {"trace": None}


@pytest.mark.parametrize("changes", [{"details": {}}, {"brand": "MASTER"}])
def test_a_card_of_another_network_has_a_token_of_that_network(store: SimpleNamespace, changes: dict[str, Any]) -> None:
    record_registration_change(stored(), changes, NOW, shown={})
    related = [(model, token["status"], token["changed_at"], where) for model, token, where in store.written.related]
    assert related == [(NetworkToken, "REQUESTED", NOW, {"registration_id": STORED})] * ("brand" in changes)


def test_other_rows_change_and_begin_with_the_card(store: SimpleNamespace) -> None:
    token = NetworkToken(registration_id=STORED, status="ACTIVE", last4="1234")
    added = NetworkToken(registration_id=UUID(int=8), status="REQUESTED", last4="5678")
    record_registration_change(
        stored(), {}, NOW, shown={}, related_change=(token, {"last4": "4242"}, {"status": "ACTIVE"}), added=added
    )
    assert store.written.updates[1] == (token, {"last4": "4242"}, {"status": "ACTIVE"})
    [(model, values)] = store.written.inserts
    assert (model, values["registration_id"], values["last4"]) == (NetworkToken, UUID(int=8), "5678")
    assert values.keys() == {field.attname for field in NetworkToken._meta.concrete_fields}


# --- paying ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("details", "values", "holder", "ignored"),
    [
        (CARD, {"card.holder": "John", "overrideHolder": "true"}, "Jane", ("card.holder",)),
        (CARD, {}, "Jane", ()),
        ({**CARD, "holder": ""}, {"card.holder": "John", "overrideHolder": "true"}, "John", ()),
        ({**CARD, "holder": ""}, {"card.holder": "John"}, "", ("card.holder",)),
    ],
)
def test_a_stored_means_is_paid_with_as_it_is_stored(
    details: dict[str, str], values: dict[str, str], holder: str, ignored: tuple[str, ...]
) -> None:
    parameters = sent({**values, "billing.city": "Rome"})
    found = load_stored_means(stored(details={"card": details}), parameters, NOW)
    assert isinstance(found.means, Card)
    assert (found.means.holder, found.means.number.reveal(), parameters.ignored) == (holder, VISA, ignored)
    assert (found.registration, found.brand, found.details, found.renewed) == (STORED, "VISA", {"card": details}, False)
    bank = load_stored_means(account(), sent(), NOW)
    assert isinstance(bank.means, BankAccount)


def test_nothing_is_paid_with_a_means_whose_retention_has_ended() -> None:
    row = stored(retain_until=NOW)
    load_stored_means(row, sent(), NOW)
    assert refused(lambda: load_stored_means(row, sent(), NOW + SECOND))[0] == "100.150.206"


def test_the_value_of_a_brand_is_told_in_part() -> None:
    code, _, [error] = refused(lambda: load_stored_means(stored(), sent({"paymentBrand": "X" * 33}), NOW))
    assert (code, error.value) == ("600.200.800", "X" * 32)
    assert error.message == "is not the brand of this registration, which is VISA"


def test_an_account_that_does_not_open_is_read_once_more_and_only_it(monkeypatch: pytest.MonkeyPatch) -> None:
    row, read = stored(means_sealed=b"retired"), []  # type: ignore[var-annotated]

    def refresh(self: Registration, *, fields: list[str]) -> None:
        read.append(fields)
        self.means_sealed = current_vault().seal(Secret(MASTER), STORED) if len(read) == 1 else b"gone"

    monkeypatch.setattr(Registration, "refresh_from_db", refresh)
    means = registrations.open_registration_means(row, {})
    assert isinstance(means, Card)
    assert (means.number.reveal(), read) == (MASTER, [["means_sealed"]])
    row.means_sealed = b"retired"
    assert refused(lambda: registrations.open_registration_means(row, {}))[0] == registrations.VAULT_ERROR_CODE
    with pytest.raises(VaultError):
        current_vault().open(b"gone", STORED)

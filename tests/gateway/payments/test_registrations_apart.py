"""Each refusal and each change of a stored means by itself.

Source: Part B, Tokenization and registration; ruling D5.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.parse import Parameters
from gateway.connectors.means import Card
from gateway.connectors.simulator.accounts import BANK_ACCOUNTS
from gateway.core import clock, identifiers
from gateway.core.secret import Secret
from gateway.models import Agreement, NetworkToken, Payment, Registration
from gateway.payments import registrations
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.registrations import (
    _drop_wallet,
    _list_block_refusals,
    _list_card_refusals,
    _list_token_changes,
    _resolve_holder,
    find_registration,
    load_stored_means,
    record_registration_change,
)
from tests.support.fixtures import Shop
from tests.support.subscriptions import store_card

NOW = datetime(2035, 11, 15, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MIT = {"standingInstruction.source": "MIT", "standingInstruction.mode": "REPEATED"}


def parameters(values: dict[str, str] | None = None, **secrets: str) -> Parameters:
    return Parameters(
        values=dict(values or {}),
        secrets={name.replace("__", "."): Secret(text) for name, text in secrets.items()},
    )


def read(ident: Any) -> Registration:
    return Registration.objects.select_related("channel", "merchant", "network_token").get(pk=ident)


# --- finding --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_registration_is_found_by_its_merchant_and_channel(shop: Shop, stranger: Shop) -> None:
    ident = UUID(store_card(shop.api))
    for channel in (None, shop.channel):
        found = find_registration(ident, shop.merchant, channel)
        assert (found.pk, found.merchant, found.channel.merchant) == (ident, shop.merchant, shop.merchant)
    for merchant, channel in (
        (stranger.merchant, None), (stranger.merchant, stranger.channel), (shop.merchant, shop.open_channel()),
    ):  # fmt: skip
        with pytest.raises(RequestRefusedError) as refused:
            find_registration(ident, merchant, channel)
        assert (refused.value.code, refused.value.status) == ("100.150.200", 404)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("payment_type", "status", "code"),
    [
        ("DB", "APPROVED", "100.150.204"),
        ("DB", "DECLINED", "100.150.204"),
        ("RG", "DECLINED", "100.150.203"),
        ("RG", "PENDING", "100.150.201"),
        ("RG", "IN_DOUBT", "100.150.201"),
    ],
)
def test_a_payment_that_is_no_registration_says_what_it_is(
    shop: Shop, stranger: Shop, payment_type: str, status: str, code: str
) -> None:
    """To its merchant and channel; to others it is not there."""
    paid = UUID(shop.api.pay().id)
    Payment.objects.filter(pk=paid).update(payment_type=payment_type, status=status)
    for merchant, channel, told, http in (
        (shop.merchant, None, code, 400),
        (shop.merchant, shop.channel, code, 400),
        (stranger.merchant, None, "100.150.200", 404),
        (shop.merchant, shop.open_channel(), "100.150.200", 404),
    ):
        with pytest.raises(RequestRefusedError) as refused:
            find_registration(paid, merchant, channel)
        assert (refused.value.code, refused.value.status) == (told, http)


@pytest.mark.django_db
def test_an_id_of_nothing_is_not_found_and_a_deleted_registration_is_deleted(shop: Shop) -> None:
    for nothing in (None, identifiers.row_id()):
        with pytest.raises(RequestRefusedError) as refused:
            find_registration(nothing, shop.merchant, None)
        assert (refused.value.code, refused.value.status) == ("100.150.200", 404)
    ident = UUID(store_card(shop.api))
    Registration.objects.update(status="DELETED", means_sealed=None, deleted_at=NOW)
    with pytest.raises(RequestRefusedError) as refused:
        find_registration(ident, shop.merchant, None)
    assert (refused.value.code, refused.value.status) == ("100.150.202", 400)


# --- paying ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("details", "sent", "kept", "ignored"),
    [
        ({"card": {}}, {"card.holder": "J", "overrideHolder": "true"}, True, ()),
        ({"card": {"holder": ""}}, {"card.holder": "J", "overrideHolder": "true"}, True, ()),
        ({"card": {"holder": "S"}}, {"card.holder": "J", "overrideHolder": "true"}, False, ("card.holder",)),
        ({"card": {}}, {"card.holder": "J", "overrideHolder": "false"}, False, ("card.holder",)),
        ({"card": {}}, {"card.holder": "J"}, False, ("card.holder",)),
        ({"bankAccount": {}}, {"card.holder": "J", "overrideHolder": "true"}, False, ("card.holder",)),
        ({"bankAccount": {}}, {"bankAccount.holder": "J", "overrideHolder": "true"}, True, ()),
        ({"card": {}}, {"overrideHolder": "true"}, False, ()),
    ],
)
def test_a_sent_holder_counts_where_none_is_stored_and_it_is_asked_for(
    details: dict[str, Any], sent: dict[str, str], kept: bool, ignored: tuple[str, ...]
) -> None:
    asked = parameters(sent)
    asked.ignored = ("before",)
    _resolve_holder(details, asked)
    assert any(name.endswith(".holder") for name in asked.values) is kept
    assert asked.ignored == ("before", *ignored)


@pytest.mark.parametrize(
    ("card", "cvv", "usable", "codes"),
    [
        ({"expiryMonth": "11", "expiryYear": "2035"}, None, False, []),
        ({"expiryMonth": "10", "expiryYear": "2035"}, None, False, ["100.100.303"]),
        ({"expiryMonth": "10", "expiryYear": "2035"}, None, True, []),
        ({"expiryMonth": "11", "expiryYear": "2035"}, "123", False, []),
        ({"expiryMonth": "11", "expiryYear": "2035"}, "1234", False, ["100.100.601"]),
        ({"expiryMonth": "12", "expiryYear": "2034"}, "1234", False, ["100.100.303", "100.100.601"]),
        ({}, None, False, []),
        (None, "1234", False, []),
    ],
)
def test_a_stored_card_is_refused_past_its_month_and_with_a_security_code_of_another_length(
    monkeypatch: pytest.MonkeyPatch, card: dict[str, str] | None, cvv: str | None, usable: bool, codes: list[str]
) -> None:
    """A network token that can be paid with outlives the card's date."""
    monkeypatch.setattr(registrations, "has_usable_token", lambda row, now: usable and now == NOW)
    row, asked = Registration(brand="VISA"), parameters(**({"card__cvv": cvv} if cvv else {}))
    found = _list_card_refusals(row, {"card": card} if card is not None else {}, asked, NOW)
    assert [error.code for error in found] == codes
    for error in found:
        assert error.name == {"100.100.303": "card.expiryMonth", "100.100.601": "card.cvv"}[error.code]
        assert error.value in (None, "•••")


BLOCK = {"merchant_use_blocked_at": NOW, "merchant_use_code": "000.100.203"}
CLOSED = {"account_update": "CLOSED", "account_updated_at": NOW}
CONTACT = {"account_update": "CONTACT_HOLDER", "account_updated_at": NOW}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "sent", "code"),
    [
        ({}, MIT, None),
        (BLOCK, MIT, "000.100.203"),
        (BLOCK, {}, None),
        (BLOCK, MIT | {"standingInstruction.source": "CIT"}, None),
        (BLOCK, MIT | {"standingInstruction.industryPractice": "NO_SHOW"}, "000.100.203"),
        (CLOSED, MIT, "700.601.003"),
        (CONTACT, MIT, "700.601.001"),
        (CONTACT, {}, None),
        ({"account_update": "NEW_EXPIRY", "account_updated_at": NOW}, MIT, None),
        (BLOCK | CLOSED, MIT, "000.100.203"),
    ],
)
@pytest.mark.parametrize(("again", "lifts"), [(None, False), (SECOND, True), (timedelta(0), False), (-SECOND, False)])
def test_a_merchant_charges_no_blocked_means_until_its_holder_agrees_again(
    shop: Shop, values: dict[str, Any], sent: dict[str, str], code: str | None, again: timedelta | None, lifts: bool
) -> None:
    row, other = UUID(int=1), UUID(int=2)
    made = [(other, NOW + SECOND)] + ([(row, NOW + again)] if again is not None else [])
    for number, (registration, at) in enumerate(made):
        Agreement.objects.create(
            id=UUID(int=10 + number), merchant=shop.merchant, channel=shop.channel, reference="r", created_at=at,
            registration=registration,
        )  # fmt: skip
    found = _list_block_refusals(Registration(id=row, **values), parameters(sent))
    assert [error.code for error in found] == ([code] if code and not lifts else [])
    assert all((error.name, error.known) == ("registrationId", True) for error in found)


@pytest.mark.django_db
def test_a_holder_who_agreed_between_two_blocks_lifted_the_first_only(shop: Shop) -> None:
    values = {**BLOCK, "account_update": "CLOSED", "account_updated_at": NOW + 2 * SECOND}
    Agreement.objects.create(
        id=UUID(int=10), merchant=shop.merchant, channel=shop.channel, reference="r", created_at=NOW + SECOND,
        registration=UUID(int=1),
    )  # fmt: skip
    [error] = _list_block_refusals(Registration(id=UUID(int=1), **values), parameters(MIT))
    assert error.code == "700.601.003"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("brand", "active", "code"),
    [(None, True, None), ("VISA", True, None), ("MASTER", True, "600.200.800"), (None, False, "600.200.500")],
)
def test_a_stored_means_is_paid_with_by_its_own_brand_on_a_channel_that_is_active(
    shop: Shop, brand: str | None, active: bool, code: str | None
) -> None:
    row = read(store_card(shop.api))
    row.channel.active = active
    asked = parameters({"paymentBrand": brand} if brand else {})
    if code is None:
        found = load_stored_means(row, asked, NOW)
        assert (found.registration, found.brand, found.renewed) == (row.pk, "VISA", False)
        return
    with pytest.raises(RequestRefusedError) as refused:
        load_stored_means(row, asked, NOW)
    assert refused.value.code == code
    assert [(error.name, error.value) for error in refused.value.errors] == ([("paymentBrand", brand)] if brand else [])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("renewed", "expiry", "changed"),
    [
        (None, ("05", "2094"), False),
        ({}, ("05", "2094"), False),
        ({"expiryMonth": "06", "expiryYear": "2095"}, ("06", "2095"), True),
        ({"expiryMonth": "05", "expiryYear": "2094"}, ("05", "2094"), False),
    ],
)
def test_a_card_is_paid_with_its_new_date(
    shop: Shop, renewed: dict[str, str] | None, expiry: tuple[str, str], changed: bool
) -> None:
    """What refused the payment before stays beside what refuses the card."""
    row, asked = read(store_card(shop.api)), parameters({"overrideHolder": "true", "card.holder": "Jane"})
    asked.refusals = ("before",)  # type: ignore[assignment]
    found = load_stored_means(row, asked, NOW, renewed)
    assert isinstance(found.means, Card)
    assert (found.means.expiry_month, found.means.expiry_year) == expiry
    assert (found.means.holder, found.renewed) == ("Jane", changed)
    assert asked.refusals == ("before",)  # type: ignore[comparison-overlap]
    row.channel.active = True
    late = datetime(2096, 1, 1, tzinfo=UTC)
    load_stored_means(row, asked, late, renewed)
    assert [getattr(one, "code", one) for one in asked.refusals] == ["before", "100.100.303"]


# --- changing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("details", "kept"),
    [
        ({"card": {"bin": "4"}}, {"card": {"bin": "4"}}),
        ({"card": {"bin": "4", "numberType": "DPAN"}, "wallet1": {}}, {"card": {"bin": "4"}}),
        ({"wallet3": {}, "customer": {"ip": "1"}}, {"customer": {"ip": "1"}, "card": {}}),
    ],
)
def test_a_new_number_is_no_wallets(details: dict[str, Any], kept: dict[str, Any]) -> None:
    assert _drop_wallet(details) == kept


@pytest.mark.parametrize(("kind", "status"), [("DR", "DELETED"), ("RR", "REQUESTED")])
def test_the_token_of_a_number_that_is_gone_is_deleted_or_asked_for_anew(kind: str, status: str) -> None:
    changes = _list_token_changes(kind, NOW)
    assert (changes["status"], changes["number_sealed"], changes["tries"], changes["changed_at"]) == (
        status, None, 0, NOW,
    )  # fmt: skip
    assert changes["due_at"] is not None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "status", "kept"),
    [
        ({"card.expiryYear": "2095"}, "ACTIVE", True),
        ({"card.number": "4111111111111111"}, "REQUESTED", False),
        (None, "DELETED", False),
    ],
    ids=str,
)
def test_the_token_of_this_card_alone_follows_its_number(
    shop: Shop, change: dict[str, str] | None, status: str, kept: bool
) -> None:
    rows = [read(store_card(shop.api)) for _ in range(2)]
    for row in rows:
        NetworkToken.objects.create(
            registration=row, status="ACTIVE", number_sealed=b"sealed", changed_at=NOW, tries=3, due_at=None
        )
    path, before = f"/v1/registrations/{rows[0].pk.hex}", clock.real_now()
    answer = shop.api.post(path, change) if change is not None else shop.api.delete(path)
    assert answer.status == 200, answer
    own, other = (NetworkToken.objects.get(registration=row) for row in rows)
    assert (own.status, own.number_sealed is not None, own.tries) == (status, kept, 3 if kept else 0)
    assert (other.status, other.tries, other.due_at) == ("ACTIVE", 3, None)
    if not kept:
        assert own.due_at is not None
        assert before - 60 * SECOND < own.due_at < before + 60 * SECOND


@pytest.mark.django_db
def test_a_card_that_changed_since_it_was_read_is_not_changed_by_its_network(shop: Shop) -> None:
    row, other = read(store_card(shop.api)), read(store_card(shop.api))
    stale = read(row.pk)
    count = Payment.objects.count()
    assert record_registration_change(row, {"details": {"card": {"bin": "1"}}}, NOW, shown={"a": {"b": "c"}})
    found = read(row.pk)
    assert (found.details, found.updated_at, found.sequence) == ({"card": {"bin": "1"}}, NOW, stale.sequence + 1)
    record = Payment.objects.latest("number")
    assert (record.payment_type, record.referenced, record.request) == ("RR", row.pk, {})
    assert (record.answer["facts"], record.answer["card"]) == ({"a": {"b": "c"}}, {"bin": "1"})
    assert (record.created_at, record.amount, record.status) == (NOW, 0, "APPROVED")
    assert not record_registration_change(stale, {"details": {}}, NOW, shown={})
    assert (read(row.pk).details, Payment.objects.count()) == ({"card": {"bin": "1"}}, count + 1)
    assert read(other.pk).details == other.details


@pytest.mark.django_db
def test_another_row_changes_with_the_card_or_neither_does(shop: Shop) -> None:
    row = read(store_card(shop.api))
    token = NetworkToken.objects.create(registration=row, status="ACTIVE", changed_at=NOW)
    for expected, written in (({"status": "SUSPENDED"}, False), ({"status": "ACTIVE"}, True)):
        fresh = read(row.pk)
        changed = record_registration_change(
            fresh, {}, NOW, shown={}, related_change=(token, {"last4": "4242"}, expected)
        )
        assert changed is written
        assert (NetworkToken.objects.get().last4, read(row.pk).sequence) == (
            ("4242", row.sequence + 1) if written else ("", row.sequence)
        )


# --- changing -------------------------------------------------------------------------------------------------------


def store_account(shop: Shop) -> str:
    account = next(row for row in BANK_ACCOUNTS if row.code == "000.100.110")
    return shop.api.post("/v1/registrations", dict(account.fields)).id


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("means", "verb", "ended"),
    [("bank", "delete", True), ("bank", "extend", False), ("card", "delete", False)],
)
def test_the_mandate_of_a_deleted_account_ends_with_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, means: str, verb: str, ended: bool
) -> None:
    asked: list[tuple[Any, datetime]] = []
    end = registrations.end_stored_mandate_write

    def ending(row: Registration, now: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
        asked.append((row.pk, now))
        return end(row, now)

    monkeypatch.setattr(registrations, "end_stored_mandate_write", ending)
    ident = store_account(shop) if means == "bank" else store_card(shop.api)
    path = f"/v1/registrations/{ident}"
    answer = shop.api.delete(path) if verb == "delete" else shop.api.post(f"{path}/extend")
    assert answer.status == 200, answer
    row = read(ident)
    assert asked == ([(row.pk, row.deleted_at)] if ended else [])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"card.holder": "Jane Miller"}, "100.100.303"),
        ({"accountUpdater": "false"}, ""),
        ({"card.holder": "Jane Miller", "card.expiryYear": "2094"}, ""),
    ],
    ids=str,
)
def test_nothing_of_an_expired_card_is_changed_but_with_its_date(shop: Shop, sent: dict[str, str], code: str) -> None:
    ident = store_card(shop.api)
    row = read(ident)
    row.details["card"] |= {"expiryMonth": "01", "expiryYear": "2020"}
    Registration.objects.filter(pk=ident).update(details=row.details)
    answer = shop.api.post(f"/v1/registrations/{ident}", sent)
    if not code:
        assert answer.status == 200, answer
        return
    [error] = answer.body["result"]["parameterErrors"]
    assert (answer.status, answer.code, error["name"]) == (400, code, "card.expiryMonth")
    assert error["message"] == "the card is past its expiry"
    assert read(ident).sequence == row.sequence

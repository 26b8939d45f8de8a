"""What an approval brings with it: registration, agreement, token, releases and ends of authorizations, each condition
by itself. No database but where a registration is renewed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import models

from gateway.connectors.accounts import ConnectorAccount
from gateway.connectors.port import AcquirerReply
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import (
    Agreement,
    AuthorizationExpiry,
    AuthorizationRelease,
    Channel,
    MandateMail,
    NetworkToken,
    Notification,
    Payment,
    Registration,
    Status,
)
from gateway.payments import side_effects
from gateway.payments.chain_amounts import INCREMENTAL_AUTHORIZATION, REAUTHORIZATION
from gateway.payments.job_hooks import StartedJob
from gateway.payments.side_effects import (
    CompletionEffects,
    build_completion_effects,
    build_registration_details,
    creates_registration,
    resolve_retention_end,
)
from gateway.payments.stored_answer import PrivateFacts
from gateway.vault.sealing import VaultError, current_vault
from tests.support.fixtures import Shop

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MERCHANT, CHANNEL, CHAIN, STORED = UUID(int=1), UUID(int=2), UUID(int=3), UUID(int=4)
IDENT = UUID(int=5)
LINK = "AbCdEfGhIjKlMnOpQrStUv"
NUMBER = Secret("4200000000000000")
Cause = AuthorizationRelease.Cause


def pay(kind: str = "DB", **values: Any) -> Payment:
    """A payment that is being completed."""
    channel = Channel(id=CHANNEL, **values.pop("channel", {}))
    base: dict[str, Any] = {
        "id": IDENT, "chain": IDENT, "merchant_id": MERCHANT, "channel": channel, "payment_type": kind, "brand": "VISA",
        "method": "CC", "amount": Decimal("92.00"), "currency": "EUR", "status": Status.STARTED, "means": "card",
        "authorization_kind": "ESTIMATED" if kind == "PA" else "",
        "test_mode": "INTERNAL", "connector": "simulator", "acquirer_merchant_id": "M-1", "created_at": NOW,
    }  # fmt: skip
    return Payment(**base | values)


def follow(kind: str, **values: Any) -> Payment:
    return pay(kind, **{"chain": CHAIN, "referenced": CHAIN, **values})


def approve(payment: Payment, status: Status = Status.APPROVED, **reply: Any) -> CompletionEffects:
    said: dict[str, Any] = {"code": "000.100.110", "approved": Money(payment.amount, payment.currency)}
    return build_completion_effects(payment, status, AcquirerReply(**said | reply), at=NOW, sequence=7)


def rows(effects: CompletionEffects, model: type[models.Model]) -> list[Mapping[str, Any]]:
    return [row for kind, row in effects.rows if kind is model]


def register(kind: str = "DB", **values: Any) -> Payment:
    base: dict[str, Any] = {
        "request": {"createRegistration": "true"}, "means_sealed": current_vault().seal(NUMBER, IDENT),
        "answer": {"card": {"bin": "420000", "last4Digits": "0000"}},
    }  # fmt: skip
    return pay(kind, **base | values)


# Releases and ends of authorizations.


@pytest.mark.parametrize(
    ("kind", "final", "connector", "released"),
    [
        ("CP", True, "iso8583", True),
        ("RV", True, "iso8583", True),
        ("CP", True, "simulator", True),
        ("CP", True, "stub", True),
        ("RF", True, "iso8583", False),
        ("CP", False, "iso8583", False),
        ("CP", True, "stripe", False),
    ],
)
def test_a_final_capture_or_reversal_has_the_rest_released_where_the_acquirer_holds_it(
    kind: str, final: bool, connector: str, released: bool
) -> None:
    found = rows(approve(follow(kind, final=final, connector=connector)), AuthorizationRelease)
    assert [row["cause"] for row in found] == [Cause.FINAL] * released
    if released:
        [row] = found
        assert (row["authorization"], row["merchant_id"], row["channel_id"]) == (CHAIN, MERCHANT, CHANNEL)
        assert (row["currency"], row["created_at"], row["state"]) == ("EUR", NOW, AuthorizationRelease.State.OPEN)
        assert "payment" not in row


@pytest.mark.parametrize("status", [Status.DECLINED, Status.PENDING, Status.IN_DOUBT])
def test_only_an_approval_has_effects(status: Status) -> None:
    final = follow("CP", final=True)
    assert approve(final, status) is side_effects.NO_EFFECTS
    assert approve(register(), status) is side_effects.NO_EFFECTS
    held = pay("PA", request={"standingInstruction": {"mode": "INITIAL"}}, channel={"authorization_days": {"*": 3}})
    assert approve(held, status) is side_effects.NO_EFFECTS
    assert approve(pay()) is side_effects.NO_EFFECTS


@pytest.mark.parametrize(
    ("practice", "apart", "released"),
    [
        (REAUTHORIZATION, True, True),
        (REAUTHORIZATION, False, False),
        (REAUTHORIZATION, VaultError("shut"), True),
        (INCREMENTAL_AUTHORIZATION, True, False),
        ("", True, False),
    ],
)
def test_what_a_renewal_replaces_is_released_where_its_acquirer_holds_both(
    practice: str, apart: bool | VaultError, released: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    def hold(connector: Any, channel: UUID, account: str) -> bool:
        asked.append((connector.name, channel, account))
        if isinstance(apart, VaultError):
            raise apart
        return apart

    monkeypatch.setattr(side_effects, "holds_renewals_apart", hold)
    row = follow("PA", practice=practice, authorization_kind="ESTIMATED", channel={"authorization_days": {"*": 3}})
    found = rows(approve(row), AuthorizationRelease)
    assert [(one["cause"], one["payment"], one["authorization"]) for one in found] == [
        (Cause.RENEWAL, IDENT, CHAIN)
    ] * released
    assert asked == [("simulator", CHANNEL, "M-1")] * (practice == REAUTHORIZATION)


@pytest.mark.parametrize(("kind", "reopens", "looked"), [("RV", True, True), ("RV", False, False), ("RF", True, False)])
def test_a_reversal_that_reopens_its_authorization_has_it_looked_at_now(kind: str, reopens: bool, looked: bool) -> None:
    effects = approve(follow(kind), reopens_authorization=reopens)
    expected = {"authorization": CHAIN, "merchant_id": MERCHANT, "due_at": NOW}
    assert rows(effects, AuthorizationExpiry) == [expected] * looked
    assert effects.changes == ({"reopens_authorization": True} if looked else {})


DAYS = {"authorization_days": {"*": 9}}


@pytest.mark.parametrize(
    ("payment", "reply", "after"),
    [
        (pay("PA", channel=DAYS), {}, timedelta(days=9)),
        (pay("PA", channel=DAYS), {"valid_for": timedelta(days=2)}, timedelta(days=2)),
        (pay("PA", channel=DAYS), {"valid_for": timedelta(days=20)}, timedelta(days=9)),
        (pay("PA", channel={"authorization_days": {"*": None}}), {}, None),
        (pay("PA", channel={"authorization_days": {"*": None}}), {"valid_for": timedelta(hours=5)}, timedelta(hours=5)),
        (pay("PA", channel={"authorization_days": {"VISA": 3, "*": 9}}), {}, timedelta(days=3)),
        (pay("PA", channel={"authorization_days": {"MASTER": 3, "*": 9}}), {}, timedelta(days=9)),
        (pay("DB", channel=DAYS), {}, None),
        (pay("PA", channel=DAYS), {"approved": None}, None),
        (pay("PA", channel=DAYS), {"approved": Money.zero("EUR")}, None),
        # A wallet's own days go before those of the card in it.
        (
            pay("PA", brand="WALLET1", channel={"authorization_days": {"WALLET1": 2, "VISA": 3}},
                answer={"card": {"bin": "420000"}}),
            {},
            timedelta(days=2),
        ),
        (
            pay("PA", brand="WALLET1", channel={"authorization_days": {"MASTER": 2, "VISA": 3}},
                answer={"card": {"bin": "420000"}}),
            {},
            timedelta(days=3),
        ),
        # By the table: travel of an estimated amount, the merchant's own, anything else.
        (pay("PA", authorization_kind="ESTIMATED"), {}, timedelta(days=10)),
        (pay("PA", authorization_kind="ESTIMATED", request={"merchant": {"mcc": "7011"}}), {}, timedelta(days=30)),
        (pay("PA", authorization_kind="FINAL", request={"merchant": {"mcc": "7011"}}), {}, timedelta(days=10)),
        (pay("PA", authorization_kind="FINAL", brand="MASTER"), {}, timedelta(days=7)),
        (
            pay("PA", authorization_kind="FINAL", brand="MASTER", request={"merchant": {"country": "IN"}}),
            {},
            timedelta(days=4),
        ),
        (
            pay("PA", authorization_kind="ESTIMATED", request={"standingInstruction": {
                "source": "MIT", "mode": "REPEATED"}}),
            {},
            timedelta(days=5),
        ),
        # A renewal is the merchant's, unless its source says otherwise.
        (follow("PA", practice=REAUTHORIZATION, authorization_kind="ESTIMATED"), {}, timedelta(days=5)),
        (
            follow("PA", practice=REAUTHORIZATION, authorization_kind="ESTIMATED",
                   request={"standingInstruction": {"source": "CIT"}}),
            {},
            timedelta(days=10),
        ),
        # Of increments, only one of an estimated amount at Mastercard begins the days anew.
        (follow("PA", practice=INCREMENTAL_AUTHORIZATION, authorization_kind="ESTIMATED", channel=DAYS), {}, None),
        (
            follow("PA", practice=INCREMENTAL_AUTHORIZATION, authorization_kind="ESTIMATED", channel=DAYS,
                   brand="MASTER"),
            {},
            timedelta(days=9),
        ),
        (
            follow("PA", practice=INCREMENTAL_AUTHORIZATION, authorization_kind="FINAL", channel=DAYS, brand="MASTER"),
            {},
            None,
        ),
    ],
)  # fmt: skip
def test_an_authorization_ends_by_its_channel_the_table_or_its_acquirer(
    payment: Payment, reply: dict[str, Any], after: timedelta | None
) -> None:
    effects = approve(payment, **reply)
    end = NOW + after if after is not None else None
    assert effects.changes == ({"expires_at": end} if end is not None else {})
    expected = {"authorization": payment.chain, "merchant_id": MERCHANT, "due_at": end}
    assert rows(effects, AuthorizationExpiry) == [expected] * (end is not None)


@pytest.mark.parametrize(
    ("sent", "account", "days"),
    [
        ({}, {"country": "IN", "mcc": "1"}, 4),
        ({"mcc": "5555"}, {"country": "IN", "mcc": "1"}, 4),
        ({"country": "DE"}, {"country": "IN"}, 7),
        ({"country": "IN", "mcc": "5555"}, {"country": "DE"}, 4),
        ({}, {}, 7),
        ({}, VaultError("shut"), 7),
        ({"country": "IN"}, VaultError("shut"), 4),
    ],
)
def test_the_merchants_country_is_that_of_the_request_else_that_of_the_account(
    sent: dict[str, str], account: dict[str, str] | VaultError, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(connector: Any, channel: UUID, merchant: str) -> ConnectorAccount:
        assert (connector.name, channel, merchant) == ("simulator", CHANNEL, "M-1")
        if isinstance(account, VaultError):
            raise account
        return ConnectorAccount(merchant=merchant, settings=account)

    monkeypatch.setattr(side_effects, "load_connector_account", load)
    held = pay("PA", authorization_kind="FINAL", brand="MASTER", request={"merchant": sent})
    assert approve(held).changes == {"expires_at": NOW + timedelta(days=days)}


@pytest.mark.parametrize(("sent", "days"), [({"country": "DE"}, 30), ({"mcc": "5555", "country": "DE"}, 10)])
def test_the_merchants_category_is_that_of_the_request_else_that_of_the_account(
    sent: dict[str, str], days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = ConnectorAccount(settings={"mcc": "7011"})
    monkeypatch.setattr(side_effects, "load_connector_account", lambda *_: account)
    held = pay("PA", authorization_kind="ESTIMATED", request={"merchant": sent})
    assert approve(held).changes == {"expires_at": NOW + timedelta(days=days)}


def test_an_authorization_of_a_connector_that_is_gone_ends_by_the_table() -> None:
    assert approve(pay("PA", connector="gone", authorization_kind="ESTIMATED")).changes == {
        "expires_at": NOW + timedelta(days=10)
    }


@pytest.mark.django_db
@pytest.mark.parametrize(("kept", "days"), [("FINAL", 7), ("", 30)])
def test_a_renewal_that_has_no_kind_is_of_that_of_its_chains_first_else_of_its_channels(
    shop: Shop, kept: str, days: int
) -> None:
    """The channel may have another one by now."""
    held = Payment.objects.filter(pk=shop.api.pay(paymentType="PA").id)
    shop.api.pay(paymentType="PA")
    held.update(authorization_kind=kept)
    renewal = follow(
        "PA", chain=held.get().pk, practice=REAUTHORIZATION, authorization_kind="", brand="MASTER",
        channel={"authorization_kind": "ESTIMATED"},
    )  # fmt: skip
    assert approve(renewal).changes == {"expires_at": NOW + timedelta(days=days)}


# Registrations and their tokens.


@pytest.mark.parametrize(
    ("kind", "request_", "registration", "creates"),
    [
        ("DB", {"createRegistration": "true"}, None, True),
        ("DB", {"createRegistration": "false"}, None, False),
        ("DB", {}, None, False),
        ("DB", {"createRegistration": "true"}, STORED, False),
        ("RG", {}, None, True),
        ("RG", {"createRegistration": "false"}, STORED, True),
    ],
)
def test_a_registration_is_made_where_it_is_asked_for_and_not_there_yet(
    kind: str, request_: dict[str, str], registration: UUID | None, creates: bool
) -> None:
    payment = register(kind, request=request_, registration=registration)
    assert creates_registration(payment) is creates
    assert len(rows(approve(payment), Registration)) == creates


def test_a_registration_has_the_account_sealed_for_itself_and_the_payments_facts() -> None:
    card = {"holder": "Jane Jones", "expiryMonth": "05"}
    payment = register(
        request={"createRegistration": "true", "card": card, "accountUpdater": "false", "customer": {"email": "a@b.c"}},
        channel={"registration_days": 30}, brand="MASTER", method="DC",
    )  # fmt: skip
    effects = approve(payment)
    [row] = rows(effects, Registration)
    assert row["id"] not in (IDENT, None)
    assert current_vault().open(row["means_sealed"], row["id"]).reveal() == NUMBER.reveal()
    assert {name: row[name] for name in row if name not in ("id", "means_sealed")} == {
        "merchant_id": MERCHANT, "channel_id": CHANNEL, "status": Registration.Status.ACTIVE, "brand": "MASTER",
        "method": "DC", "means": "card", "details": {"card": {"bin": "420000", "last4Digits": "0000", **card}},
        "request": {"accountUpdater": "false"}, "payment": IDENT, "test_mode": "INTERNAL", "sequence": 1,
        "retain_until": NOW + timedelta(days=30), "created_at": NOW,
    }  # fmt: skip
    assert effects.changes == {"registration": row["id"]}
    assert rows(effects, Notification) == [
        {
            "merchant_id": MERCHANT, "channel_id": CHANNEL, "kind": "REGISTRATION", "action": "CREATED",
            "payment_id": IDENT, "registration": row["id"], "sequence": 7, "created_at": NOW,
        }
    ]  # fmt: skip


def test_a_direct_registration_is_its_payment_and_keeps_what_was_sent_with_it() -> None:
    sent = {
        "card": {"holder": "Jane"}, "paymentType": "RG", "paymentBrand": "VISA", "amount": "1", "currency": "EUR",
        "testMode": "INTERNAL", "createRegistration": "true", "transactionProcessingCode": "x",
        "customer": {"email": "a@b.c"}, "merchantMemo": "memo",
    }  # fmt: skip
    effects = approve(register("RG", request=sent))
    [row] = rows(effects, Registration)
    assert row["id"] == IDENT
    assert row["request"] == {"customer": {"email": "a@b.c"}, "merchantMemo": "memo"}
    assert effects.changes == {"means_sealed": None, "registration": IDENT}


@pytest.mark.parametrize("status", list(Status))
def test_the_account_of_a_direct_registration_goes_with_its_result(status: Status) -> None:
    """It is kept in the registration, or nowhere."""
    final = status in (Status.APPROVED, Status.DECLINED)
    assert ("means_sealed" in approve(register("RG", means=""), status).changes) is final
    assert "means_sealed" not in approve(register("DB"), status).changes


@pytest.mark.parametrize("changes", [{"means": "giftCard"}, {"means_sealed": None}, {"means": ""}])
def test_what_cannot_be_stored_makes_no_registration(changes: dict[str, Any]) -> None:
    assert rows(approve(register(**changes)), Registration) == []


def test_an_approval_is_written_although_its_account_does_not_open() -> None:
    other = current_vault().seal(NUMBER, UUID(int=99))
    assert approve(register(means_sealed=other)) is side_effects.NO_EFFECTS


def test_details_of_a_means_are_those_of_the_answer_and_the_request_and_of_its_wallet() -> None:
    payment = pay(
        answer={"card": {"bin": "420000", "holder": "old"}, "bankAccount": {}, "resultDetails": {"a": "b"}},
        request={"card": {"holder": "new"}, "wallet2": {"source": "web"}, "wallet4": {"a": "b"}, "customer": {"a": 1}},
    )  # fmt: skip
    assert build_registration_details(payment) == {
        "card": {"bin": "420000", "holder": "new"}, "wallet2": {"source": "web"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "wanted", "made"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"answer": {"card": {"numberType": "DPAN"}}}, True, False),
        ({"request": {"createRegistration": "true", "wallet1": {"source": "web"}}}, True, False),
        ({"brand": "WALLET1"}, True, False),
        ({"means": "bankAccount", "brand": "DIRECTDEBIT_SEPA"}, True, False),
    ],
)
def test_a_stored_card_gets_a_token_where_the_channel_wants_one(
    changes: dict[str, Any], wanted: bool, made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(side_effects, "wants_network_tokens", lambda channel: wanted and channel.id == CHANNEL)
    effects = approve(register(**changes))
    [registered] = rows(effects, Registration)
    found = rows(effects, NetworkToken)
    assert [row["registration_id"] for row in found] == [registered["id"]] * made
    assert [row["changed_at"] for row in found] == [NOW] * made


@pytest.mark.parametrize(("days", "end"), [(None, None), (0, NOW), (30, NOW + timedelta(days=30))])
def test_a_registration_is_kept_as_long_as_its_channel_says(days: int | None, end: datetime | None) -> None:
    assert resolve_retention_end(Channel(registration_days=days), NOW) == end


# A card that is paid with under a new date.


@pytest.fixture
def stored(shop: Shop) -> Registration:
    made = Registration.objects.create(
        merchant=shop.merchant, channel=shop.channel, status=Registration.Status.ACTIVE, brand="VISA", method="CC",
        means="card", means_sealed=b"x", payment=IDENT, test_mode="", created_at=NOW, sequence=3,
        details={"card": {"holder": "Jane", "expiryMonth": "01", "expiryYear": "2030"}},
    )  # fmt: skip
    return made


RENEWED = {"renewsCard": True, "card": {"expiryMonth": "02", "expiryYear": "2033", "holder": "Other", "bin": "4"}}


@pytest.mark.django_db
@pytest.mark.parametrize("renews", [True, False])
def test_an_approval_writes_the_new_date_of_its_stored_card(stored: Registration, renews: bool) -> None:
    payment = pay(registration=stored.id, answer=RENEWED | {"renewsCard": renews})
    effects = approve(payment)
    updates = [(model, changes, where) for model, changes, where in effects.updates if model is Registration]
    assert len(updates) == renews
    told = rows(effects, Notification)
    assert [(one["action"], one["registration"], one["sequence"]) for one in told] == [
        ("UPDATED", stored.id, 7)
    ] * renews
    if renews:
        [(_, changes, where)] = updates
        assert changes == {
            "details": {"card": {"holder": "Jane", "expiryMonth": "02", "expiryYear": "2033"}}, "updated_at": NOW,
            "sequence": 4, "account_update": "", "account_updated_at": None, "account_update_due_at": None,
        }  # fmt: skip
        assert where == {"id": stored.id, "sequence": 3}


@pytest.mark.django_db
def test_a_registration_that_is_gone_or_another_is_not_renewed(stored: Registration) -> None:
    assert approve(pay(registration=None, answer=RENEWED)) is side_effects.NO_EFFECTS
    assert approve(pay(registration=UUID(int=50), answer=RENEWED)) is side_effects.NO_EFFECTS
    Registration.objects.update(status=Registration.Status.DELETED, means_sealed=None)
    assert approve(pay(registration=stored.id, answer=RENEWED)) is side_effects.NO_EFFECTS


# Agreements.

CIT = {"mode": "INITIAL", "source": "CIT"}


@pytest.mark.parametrize(
    ("payment", "makes"),
    [
        (pay("DB", request={"standingInstruction": CIT}), True),
        (pay("PA", request={"standingInstruction": CIT}, channel={"authorization_days": {"*": None}}), True),
        (pay("RG", request={"standingInstruction": CIT}), True),
        (pay("CD", request={"standingInstruction": CIT}), False),
        (pay("DB", request={"standingInstruction": {"mode": "INITIAL"}}), True),
        (pay("DB", request={"standingInstruction": {"mode": "INITIAL", "source": "MIT"}}), False),
        (pay("DB", request={"standingInstruction": {"mode": "REPEATED", "source": "CIT"}}), False),
        (pay("DB", request={}), False),
        (follow("DB", request={"standingInstruction": CIT}), False),
        # A migration brings its agreement with the registration that it makes, and none without.
        (pay("DB", registration=STORED, request={"recurringMigration": {"connectorTxId1": "a"}}), True),
        (pay("DB", request={"recurringMigration": {"connectorTxId1": "a"}}), False),
    ],
)
def test_an_agreement_is_made_by_an_initial_payment_or_a_migration(payment: Payment, makes: bool) -> None:
    assert len(rows(approve(payment), Agreement)) == makes


INSTRUCTION = {
    **CIT, "type": "RECURRING", "expiry": "2030-01-02", "frequency": "0030", "numberOfInstallments": "12",
}  # fmt: skip


def agree(payment: Payment, **reply: Any) -> Mapping[str, Any]:
    [row] = rows(approve(payment, **reply), Agreement)
    return row


def test_an_agreement_has_the_terms_that_were_sent() -> None:
    row = agree(
        pay(request={"standingInstruction": INSTRUCTION}, registration=STORED, brand="MASTER"),
        connector_tx_id="there", network_reference=" MCC 123456789 ", transaction_link=LINK,
    )  # fmt: skip
    assert row == {
        "id": IDENT, "merchant_id": MERCHANT, "channel_id": CHANNEL, "reference": "there",
        "network_reference": "MCC123456789", "agreement_id": "", "transaction_link": LINK, "registration": STORED,
        "brand": "MASTER", "type": "RECURRING", "expiry": date(2030, 1, 2), "frequency": 30, "max_payments": 12,
        "first_at": NOW, "follow_ups": 0, "created_at": NOW,
    }  # fmt: skip


def test_an_agreement_without_terms_has_no_bounds_and_is_named_by_its_payment() -> None:
    row = agree(pay(request={"standingInstruction": CIT}))
    assert (row["expiry"], row["frequency"], row["max_payments"], row["type"]) == (None, None, None, "")
    assert (row["reference"], row["network_reference"], row["registration"]) == (IDENT.hex, "", None)


@pytest.mark.parametrize(
    ("kind", "amount", "at"), [("DB", "0.01", NOW), ("DB", "0.00", None), ("RG", "5.00", None), ("RG", "0.00", None)]
)
def test_the_first_payment_of_an_agreement_is_the_one_that_moves_money(
    kind: str, amount: str, at: datetime | None
) -> None:
    assert agree(pay(kind, amount=Decimal(amount), request={"standingInstruction": CIT}))["first_at"] == at


@pytest.mark.parametrize(
    ("migration", "reference"),
    [
        ({"connectorTxId1": "one", "connectorTxId2": "two", "connectorTxId3": "three"}, "one"),
        ({"connectorTxId2": "two", "connectorTxId3": "three"}, "two"),
        ({"connectorTxId3": "three"}, "three"),
        ({"requestTimestamp": "2020-01-02 03:04:05"}, ""),
    ],
)
def test_a_migrated_agreement_has_the_reference_it_came_with_and_no_other(
    migration: dict[str, str], reference: str
) -> None:
    payment = pay(registration=STORED, request={"recurringMigration": migration, "standingInstruction": CIT})
    row = agree(payment, connector_tx_id="ours", network_reference="MCC123456789", transaction_link=LINK)
    assert (row["reference"], row["network_reference"]) == (reference or IDENT.hex, reference)
    assert row["transaction_link"] == ""
    began = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC) if "requestTimestamp" in migration else NOW
    assert row["first_at"] == began


@pytest.mark.parametrize(
    ("ids", "sent", "link", "expected"),
    [
        ("none", "", LINK, ""),
        ("none", "mine", LINK, "mine"),
        ("both", "", LINK, LINK),
        ("both", "", "", f"A{IDENT.hex.upper()}"),
        ("both", "mine", LINK, "mine"),
        ("only", "", "", f"A{IDENT.hex.upper()}"),
    ],
)
def test_an_agreements_id_is_the_one_sent_else_the_networks_else_ours(
    ids: str, sent: str, link: str, expected: str
) -> None:
    """AN35: only on channels that use them."""
    instruction = CIT | ({"agreementId": sent} if sent else {})
    payment = pay(request={"standingInstruction": instruction}, channel={"agreement_ids": ids})
    effects = approve(payment, transaction_link=link, connector_tx_id="there")
    [row] = rows(effects, Agreement)
    assert row["agreement_id"] == expected
    shown = {} if ids == "only" else {"initialTransactionId": "there"}
    assert effects.answer["facts"]["standingInstruction"] == shown | ({"agreementId": expected} if expected else {})
    details = {} if ids == "only" else {"CardholderInitiatedTransactionID": "there"}
    assert effects.answer["resultDetails"] == details


# What is kept of the network's names.


@pytest.mark.parametrize(
    ("request_", "kept"),
    [
        ({"createRegistration": "true"}, {"networkReference": "MCC123456789", "transactionLink": LINK}),
        ({}, {"transactionLink": LINK}),
        ({"createRegistration": "true", "standingInstruction": CIT}, {"transactionLink": LINK}),
    ],
)
def test_the_networks_reference_is_kept_where_a_means_is_stored_without_an_agreement(
    request_: dict[str, Any], kept: dict[str, str]
) -> None:
    effects = approve(register(request=request_), network_reference="MCC123456789", transaction_link=LINK)
    found = effects.answer
    assert {name: found[name] for name in ("networkReference", "transactionLink") if name in found} == kept


@pytest.mark.parametrize(("reply", "kept"), [({"network_reference": "MCC123456789"}, True), ({}, False)])
def test_a_reference_is_kept_without_a_link(reply: dict[str, str], kept: bool) -> None:
    assert ("networkReference" in approve(register(), **reply).answer) is kept


def agreed(link: str) -> dict[str, Any]:
    return PrivateFacts(agreement_references={"standingInstruction.agreementId": link}).as_json() if link else {}


@pytest.mark.parametrize(
    ("agreement", "named", "link", "linked"),
    [
        (STORED, "", LINK, True),
        (STORED, "no link", LINK, True),
        (STORED, LINK, LINK, False),
        (STORED, "", "", False),
        (None, "", LINK, False),
    ],
)
def test_an_agreement_without_a_link_gets_that_of_the_payment_after(
    agreement: UUID | None, named: str, link: str, linked: bool
) -> None:
    effects = approve(pay(agreement=agreement, answer=agreed(named)), transaction_link=link)
    expected = (Agreement, {"transaction_link": LINK}, {"id": STORED, "transaction_link": ""})
    assert list(effects.updates) == [expected] * linked


# Mandate mails and jobs.

SEPA: dict[str, Any] = {
    "brand": "DIRECTDEBIT_SEPA", "method": "DD", "means": "bankAccount", "connector": "sepa",
    "request": {"customer": {"email": "jane@mail.example"}},
}  # fmt: skip


@pytest.mark.parametrize("status", list(Status))
def test_a_mandate_is_mailed_as_its_bank_accepts_it(status: Status) -> None:
    effects = approve(pay(**SEPA), status)
    assert len(rows(effects, MandateMail)) == (status in (Status.PENDING, Status.APPROVED))


@pytest.mark.parametrize(
    ("request_", "registration", "started"),
    [
        ({"job": {"cron": "x"}}, STORED, True),
        ({"job": {"cron": "x"}}, None, False),
        ({}, STORED, False),
    ],
)
def test_a_job_is_started_with_the_registration_and_the_agreement_of_its_payment(
    request_: dict[str, Any], registration: UUID | None, started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []

    class Hooks:
        def start(self, *arguments: Any) -> StartedJob:
            asked.append(arguments)
            return StartedJob(rows=[(Payment, {"id": 1})], answer={"facts": {"job": {"id": "x"}}})

    monkeypatch.setattr(side_effects.JOB_HOOKS, "get", Hooks)
    for instruction, agreement in (({"standingInstruction": CIT}, IDENT), ({}, None)):
        asked.clear()
        payment = pay(request=request_ | instruction, registration=registration)
        effects = approve(payment)
        assert [(one[0], one[2:]) for one in asked] == [(payment, (registration, agreement, NOW))] * started
        assert rows(effects, Payment) == [{"id": 1}] * started
        assert ("job" in effects.answer.get("facts", {})) is started
        assert ("standingInstruction" in effects.answer.get("facts", {})) is (agreement is not None)


# What is asked of others, with what.


def test_an_authorization_ends_by_the_days_of_its_acquirers_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    zone: Any = object()
    end = NOW + timedelta(days=4)

    def compute(at: datetime, validity: Any, where: Any) -> datetime:
        asked.append((at, validity.days, where))
        return end

    monkeypatch.setattr(side_effects, "find_day_zone", lambda *each: (asked.append(each), zone)[1])
    monkeypatch.setattr(side_effects, "compute_authorization_end", compute)
    assert approve(pay("PA", channel=DAYS)).changes == {"expires_at": end}
    assert asked == [(side_effects.CONNECTORS["simulator"], CHANNEL, "M-1"), (NOW, 9, zone)]


def test_a_job_is_started_by_what_the_acquirer_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it adds to the answer stands beside the agreement's ids."""
    asked: list[AcquirerReply] = []

    class Hooks:
        def start(self, payment: Payment, reply: AcquirerReply, *_: Any) -> StartedJob:
            asked.append(reply)
            return StartedJob(
                rows=[], answer={"facts": {"standingInstruction": {"a": "b"}}, "resultDetails": {"c": "d"}}
            )

    monkeypatch.setattr(side_effects.JOB_HOOKS, "get", Hooks)
    effects = approve(
        pay(request={"job": {"cron": "x"}, "standingInstruction": CIT}, registration=STORED), connector_tx_id="there"
    )
    assert [reply.connector_tx_id for reply in asked] == ["there"]
    assert effects.answer["facts"]["standingInstruction"] == {"initialTransactionId": "there", "a": "b"}
    assert effects.answer["resultDetails"] == {"CardholderInitiatedTransactionID": "there", "c": "d"}


def test_a_mandate_is_mailed_for_its_payment_at_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        side_effects.mandate_mails, "build_mandate_mail_row", lambda *each: (asked.append(each), {"m": 1})[1]
    )
    used: list[tuple[Any, ...]] = []
    monkeypatch.setattr(side_effects.mandate_mails, "is_mandate_used", lambda *each: (used.append(each), True)[1])
    payment = pay("RG", means="", request={})
    declined = approve(payment, Status.DECLINED)
    assert (used, asked) == ([(payment, Status.DECLINED)], [(payment, NOW)])
    assert (declined.changes, declined.rows) == ({"means_sealed": None}, [(MandateMail, {"m": 1})])
    monkeypatch.setattr(side_effects.mandate_mails, "build_mandate_mail_row", lambda *_: None)
    assert approve(pay(), Status.PENDING) is side_effects.NO_EFFECTS


@pytest.mark.django_db
def test_a_renewed_card_of_an_agreement_is_updated_and_linked_at_once(stored: Registration) -> None:
    payment = pay(registration=stored.id, agreement=STORED, answer=RENEWED)
    effects = approve(payment, transaction_link=LINK)
    assert [model for model, _, _ in effects.updates] == [Registration, Agreement]
    assert effects.answer == {"transactionLink": LINK}


@pytest.mark.django_db
def test_a_renewal_without_a_date_changes_nothing_of_the_card(stored: Registration) -> None:
    effects = approve(pay(registration=stored.id, answer={"renewsCard": True}))
    [(_, changes, _)] = effects.updates
    assert changes["details"] == stored.details


def test_a_token_is_asked_for_by_the_details_of_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(side_effects, "wants_network_tokens", lambda channel: True)
    monkeypatch.setattr(side_effects, "is_tokenizable", lambda *each, wallet: (asked.append((*each, wallet)), False)[1])
    approve(register())
    approve(register(request={"createRegistration": "true", "wallet3": {"source": "app"}}, brand="MASTER"))
    card = {"bin": "420000", "last4Digits": "0000"}
    assert asked == [("VISA", card, False), ("MASTER", card, True)]


def test_an_account_opens_for_its_own_payment_alone() -> None:
    """An account that is sealed for another payment is not opened."""
    sealed = current_vault().seal(NUMBER, STORED)
    assert rows(approve(register(means_sealed=sealed)), Registration) == []
    assert len(rows(approve(register(id=STORED, chain=STORED, means_sealed=sealed)), Registration)) == 1

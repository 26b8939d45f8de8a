"""A first payment's row and its message to an acquirer: each column and field from where it belongs; what each phase
hands on. No database but where it is said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parameters import Parameters
from gateway.connectors.accounts import ConnectorAccount
from gateway.connectors.means import BankAccount, Card, Means
from gateway.connectors.port import AcquirerReply, AcquirerRequest, ApprovalNotVoidedError, OutcomeUnknownError
from gateway.connectors.routing import CONNECTORS, NoRouteError, Route
from gateway.core import identifiers
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import AcquirerExchange, Agreement, Channel, Merchant, OpenPayment, Payment, Status
from gateway.payments import process
from gateway.payments.agreements import AgreementUse
from gateway.payments.outcomes import Approved, Declined, OutcomeUnknown, PaymentOutcome
from gateway.payments.payment_request import PartCollection, PaymentRequest, RequestTrace
from gateway.payments.process import (
    ConcurrentPaymentUpdateError,
    begin_payment,
    build_acquirer_request,
    build_payment,
    complete_unless_recovered,
    process_payment,
    render_means_facts,
    resolve_route,
)
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.search_keys import build_name_keys
from gateway.payments.stored_answer import PrivateFacts, read_private_facts
from gateway.vault.sealing import VaultError, current_vault
from gateway.wallets.channel_tokens import WalletTokenUse
from tests.support.fixtures import Shop

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
IDENT = UUID(int=5)
CARD = Card(
    number=Secret("4200000000000000"), expiry_month="05", expiry_year="2034", holder="Jane Jones", number_type="PAN"
)
ACCOUNT = BankAccount(account=Secret("DE89370400440532013000"), is_iban=True, holder="Jane Jones")
SIMULATOR = CONNECTORS["simulator"]
ROUTE = Route(connector=SIMULATOR, account="M-1")
WALLET: Any = SimpleNamespace(wallet="wallet1")
REDIRECTED = next(code for code, brand in PAYMENT_BRANDS.items() if brand.redirect)


def request_of(**values: Any) -> PaymentRequest:
    parameters = Parameters(values=values.pop("sent", {}), refusals=values.pop("refused", ()))
    channel = values.pop("channel", {})
    merchant = values.pop("merchant", None) or Merchant(id=UUID(int=1), name="Shop")
    base: dict[str, Any] = {
        "payment": IDENT, "merchant": merchant, "payment_type": "DB", "money": Money.parse("92.00", "EUR"),
        "channel": channel if isinstance(channel, Channel) else Channel(id=UUID(int=2), **channel), "brand": "VISA",
        "detected": False, "means": CARD, "parameters": parameters, "test_mode": "INTERNAL", "now": NOW,
        "trace": RequestTrace(request=UUID(int=7), method="POST", path="/v1/payments", at=NOW),
    }  # fmt: skip
    return PaymentRequest(**base | values)


def build(refusals: tuple[ParameterError, ...] = (), route: Route = ROUTE, **values: Any) -> Payment:
    return build_payment(request_of(**values), route, refusals)


def test_a_payments_row_has_what_was_asked_for_and_where_it_goes() -> None:
    sent = {
        "merchantTransactionId": "tx", "merchantInvoiceId": "invoice", "merchantMemo": "memo",
        "numberOfCaptures": "3", "customer.email": "jane@mail.example", "card.holder": "Jane Jones",
    }  # fmt: skip
    route = replace(ROUTE, audit={"name": "rule"})
    row = build(
        sent=sent, route=route, payment_type="PA", brand="MASTERDEBIT", test_mode="EXTERNAL", resource_path="/v1/x",
        registration=UUID(int=4), channel={"authorization_kind": "FINAL"},
    )  # fmt: skip
    assert (row.id, row.chain, row.referenced, row.payment_type) == (IDENT, IDENT, None, "PA")
    assert (row.merchant_id, row.channel_id) == (UUID(int=1), UUID(int=2))
    assert (row.brand, row.method, row.amount, row.currency) == ("MASTERDEBIT", "DC", Decimal("92.00"), "EUR")
    assert (row.merchant_transaction_id, row.merchant_invoice_id, row.merchant_memo) == ("tx", "invoice", "memo")
    assert (row.test_mode, row.resource_path, row.registration) == ("EXTERNAL", "/v1/x", UUID(int=4))
    assert (row.connector, row.acquirer_merchant_id, row.route) == ("simulator", "M-1", {"name": "rule"})
    assert (row.authorization_kind, row.max_captures, row.means) == ("FINAL", 3, "card")
    assert (row.request_id, row.created_at, row.refusals) == (UUID(int=7), NOW, ())
    assert current_vault().open(row.means_sealed or b"", IDENT).reveal() == CARD.number.reveal()
    assert current_vault().matches(CARD.number, row.means_fingerprint or b"")
    assert None not in (row.email_key, row.last4_key, row.name_keys)


def test_a_payment_without_any_of_it_has_none() -> None:
    row = build(means=None, brand=REDIRECTED)
    assert (row.merchant_transaction_id, row.merchant_invoice_id, row.merchant_memo) == ("", "", "")
    assert (row.means, row.means_sealed, row.means_fingerprint, row.last4_key) == ("", None, None, None)
    assert (row.email_key, row.name_keys, row.route, row.max_captures) == (None, None, None, None)
    assert (row.registration, row.duplicate_guard, row.resource_path) == (None, None, "")
    assert build(means=CARD).name_keys is not None, "the holder's name is searched, whoever sent it"


@pytest.mark.parametrize(("kind", "stored"), [("PA", "FINAL"), ("DB", ""), ("CD", "")])
def test_only_an_authorization_says_of_what_kind_it_is(kind: str, stored: str) -> None:
    assert build(payment_type=kind, channel={"authorization_kind": "FINAL"}).authorization_kind == stored


def test_a_refused_payment_keeps_no_account_but_is_found_by_it() -> None:
    refusal = ParameterError(name="card.expiryYear", message="no", code="100.100.303")
    row = build((refusal,))
    assert row.means_sealed is None
    assert current_vault().matches(CARD.number, row.means_fingerprint or b"")
    assert row.last4_key is not None
    assert (row.refusals, row.means) == ((refusal,), "card")


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, False),
        ({"registration": UUID(int=4)}, True),
        ({"wallet_token": WALLET}, True),
    ],
)
def test_of_a_card_that_was_not_sent_the_holder_and_the_date_are_shown(changes: dict[str, Any], shown: bool) -> None:
    facts = {"bin": "420000", "last4Digits": "0000"}
    more = {"holder": "Jane Jones", "expiryMonth": "05", "expiryYear": "2034", "numberType": "PAN"}
    assert build(**changes).answer["card"] == facts | (more if shown else {})
    assert render_means_facts(CARD, stored=shown) == {"card": facts | (more if shown else {})}
    assert render_means_facts(ACCOUNT, stored=shown) == {}


def test_a_registrations_details_are_shown_over_those_of_the_means() -> None:
    stored = {"card": {"holder": "As stored"}, "bankAccount": {"holder": "x"}}
    answer = build(registration=UUID(int=4), stored=stored).answer
    assert (answer["card"]["holder"], answer["card"]["bin"]) == ("As stored", "420000")
    assert answer["bankAccount"] == {"holder": "x"}
    assert "bankAccount" not in build(means=None, stored=stored, brand=REDIRECTED).answer


@pytest.mark.parametrize(("token", "eci", "shown"), [(WALLET, "05", True), (WALLET, "", False), (None, "05", False)])
def test_the_indicator_of_a_wallets_token_is_shown_since_the_echo_lacks_it(
    token: WalletTokenUse | None, eci: str, shown: bool
) -> None:
    answer = build(wallet_token=token, sent={"threeDSecure.eci": eci} if eci else {}).answer
    assert answer.get("facts") == ({"threeDSecure": {"eci": "05"}} if shown else None)


@pytest.mark.parametrize("detected", [True, False])
def test_a_brand_that_was_detected_is_told(detected: bool) -> None:
    assert build(detected=detected).answer.get("brandResult") == ("VISA" if detected else None)


LAST_PART = PartCollection(until=NOW, takes_part=False)
PART = PartCollection(until=NOW + timedelta(hours=1), earlier=(UUID(int=8),))


@pytest.mark.parametrize(
    ("kind", "channel", "collection", "whole"),
    [
        ("DB", "accept", None, False),
        ("DB", "decline", None, True),
        ("PA", "decline", None, True),
        ("CD", "decline", None, False),
        ("DB", "collect", PART, False),
        ("DB", "collect", LAST_PART, True),
        ("CD", "collect", LAST_PART, False),
    ],
)
def test_a_part_is_refused_where_the_channel_or_the_form_takes_none(
    kind: str, channel: str, collection: PartCollection | None, whole: bool
) -> None:
    row = build(payment_type=kind, channel={"partial_approvals": channel}, collection=collection)
    assert read_private_facts(row.answer).whole_amount_only is whole


def test_what_a_payment_keeps_for_itself_is_its_own() -> None:
    use = AgreementUse(agreement=None, counts_towards_limits=False, expiry=None, scheme_references={"a": "b"})
    facts = read_private_facts(build(agreement_use=use, renews_card=True).answer)
    assert (facts.agreement_references, facts.renews_card) == ({"a": "b"}, True)
    assert read_private_facts(build().answer) == PrivateFacts()
    held = read_private_facts(build(collection=PART, channel={"partial_approvals": "collect"}).answer)
    assert (held.collect_until, held.earlier_parts) == (PART.until.isoformat(), (UUID(int=8).hex,))


@pytest.mark.parametrize(
    ("kind", "channel", "shown", "sent_on"),
    [
        ("DB", "Channel's", None, {"descriptor": "Channel's"}),
        ("DB", "", "Shop", {}),
        # A registration charges nothing: the descriptor is that of the payments made with it.
        ("RG", "Channel's", "Channel's", {}),
    ],
)
def test_a_payment_has_the_descriptor_of_its_channel_else_shows_the_merchants_name(
    kind: str, channel: str, shown: str | None, sent_on: dict[str, str]
) -> None:
    row = build(payment_type=kind, channel={"descriptor": channel})
    assert (row.answer.get("descriptor"), row.request) == (shown, sent_on)


@pytest.mark.parametrize(
    ("refuses", "allowed", "sent", "guard"),
    [(True, False, "tx", "tx"), (False, False, "tx", None), (True, True, "tx", None), (True, False, None, None)],
)
def test_a_second_payment_of_one_name_is_refused_where_the_channel_does_and_the_caller_does_not_allow_it(
    refuses: bool, allowed: bool, sent: str | None, guard: str | None
) -> None:
    values = {"merchantTransactionId": sent} if sent else {}
    row = build(channel={"refuse_duplicates": refuses}, allow_duplicate=allowed, sent=values)
    assert row.duplicate_guard == guard


@pytest.mark.parametrize("name", ["customer.givenName", "customer.surname", "customer.companyName", "card.holder"])
def test_a_payment_is_found_by_each_name_that_was_sent(name: str) -> None:
    keys = build(means=None, brand=REDIRECTED, sent={name: "Wilhelmina"}).name_keys
    assert keys == build_name_keys(UUID(int=1), ["Wilhelmina"])


# The message.


def acquirer_request(payment: Payment, means: Means | None = CARD, **values: str | Secret) -> AcquirerRequest:
    return build_acquirer_request(payment, means, {name.replace("__", "."): value for name, value in values.items()})


def test_an_acquirer_is_sent_the_payment_as_its_row_has_it() -> None:
    row = build(payment_type="PA", channel={"authorization_kind": "FINAL", "descriptor": "Channel's"})
    proof = {"threeDSecure__verificationId": Secret("proof"), "recipient__accountNumber": Secret("account")}
    sent = acquirer_request(row, customer__givenName="Jane", **proof)
    assert (sent.payment, sent.operation, sent.authorization_kind) == (IDENT, "PA", "FINAL")
    assert (sent.money, sent.brand, sent.at, sent.means) == (Money.parse("92.00", "EUR"), "VISA", NOW, CARD)
    assert sent.parameters["customer.givenName"] == "Jane"
    assert sent.parameters["descriptor"] == "Channel's"
    assert (sent.return_url, sent.stored, sent.stores, sent.attempt) == ("", False, False, 1)
    assert acquirer_request(row).cryptogram is None


def test_only_a_proof_that_is_sealed_is_sent_on() -> None:
    sealed = acquirer_request(build(), threeDSecure__verificationId=Secret("proof"))
    assert sealed.cryptogram is not None
    assert sealed.cryptogram.reveal() == "proof"
    assert acquirer_request(build(), threeDSecure__verificationId="in clear").cryptogram is None
    assert acquirer_request(build(), other=Secret("x")).cryptogram is None


def test_the_accounts_of_a_transfer_are_sent_by_name_and_no_other_secret() -> None:
    [name, *_] = sorted(process.PARTY_ACCOUNTS)
    sent = build_acquirer_request(build(), CARD, {name: Secret("x"), "card.cvv": Secret("123")})
    assert {key: value.reveal() for key, value in sent.party_accounts.items()} == {name: "x"}
    assert build_acquirer_request(build(), CARD, {name: "in clear"}).party_accounts == {}


@pytest.mark.parametrize(("means", "returns"), [(CARD, False), (ACCOUNT, True), (None, True)])
def test_a_shopper_comes_back_to_us_from_all_but_a_cards_acquirer(means: Means | None, returns: bool) -> None:
    sent = acquirer_request(build(), means)
    assert bool(sent.return_url) is returns
    assert (IDENT.hex in sent.return_url) is returns


@pytest.mark.parametrize(
    ("changes", "stored", "stores"),
    [
        ({}, False, False),
        ({"registration": UUID(int=4)}, True, False),
        ({"payment_type": "RG"}, False, True),
    ],
)
def test_an_acquirer_is_told_whether_the_card_is_on_file_or_goes_there(
    changes: dict[str, Any], stored: bool, stores: bool
) -> None:
    sent = acquirer_request(build(**changes))
    assert (sent.stored, sent.stores) == (stored, stores)


def test_a_later_attempt_says_so() -> None:
    row = build()
    row.route = {"cascades": 2}
    assert acquirer_request(row).attempt == 3


def test_an_attempt_has_its_account_its_time_its_border_and_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    row = build()
    row.called_at, row.send_by, row.trace_number = NOW + timedelta(hours=1), SimpleNamespace(), 17  # type: ignore[assignment]
    asked: list[tuple[Any, ...]] = []
    account = ConnectorAccount(merchant="M-1")
    monkeypatch.setattr(process, "load_connector_account", lambda *each: (asked.append(each), account)[1])
    prepared = process._prepare_attempt(row, SIMULATOR, acquirer_request(row))
    assert isinstance(prepared, AcquirerRequest)
    assert asked == [(SIMULATOR, UUID(int=2), "M-1")]
    assert (prepared.account, prepared.at, prepared.not_after, prepared.trace_number) == (
        account, NOW + timedelta(hours=1), row.send_by, 17
    )  # fmt: skip
    row.called_at = None
    again = process._prepare_attempt(row, SIMULATOR, acquirer_request(row))
    assert isinstance(again, AcquirerRequest)
    assert again.at == NOW


def test_an_account_whose_secrets_do_not_open_is_an_acquirer_that_was_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shut(*_: object) -> ConnectorAccount:
        raise VaultError("shut")

    monkeypatch.setattr(process, "load_connector_account", shut)
    row = build()
    reply = process._prepare_attempt(row, SIMULATOR, acquirer_request(row))
    assert isinstance(reply, AcquirerReply)
    assert (reply.code, reply.retryable_elsewhere, bool(reply.sent), bool(reply.received)) == (
        "900.100.600", True, False, True
    )  # fmt: skip


def test_an_approval_that_was_to_be_voided_and_may_not_be_is_remembered() -> None:
    approval = AcquirerReply(code="000.100.110", connector_tx_id="there", transaction_link="AbCdEfGhIjKlMnOpQrStUv")
    silence = OutcomeUnknownError("no answer", {"void": 1})

    class Acquirer:
        def __init__(self, fault: OutcomeUnknownError) -> None:
            self.fault = fault

        def submit(self, _: AcquirerRequest) -> AcquirerReply:
            raise self.fault

    row = build()
    row.answer = {"kept": 1}
    lost: Any = Acquirer(silence)
    assert process._call_acquirer(row, lost, acquirer_request(row)) is silence
    assert row.answer == {"kept": 1}
    unvoided = ApprovalNotVoidedError(silence, "100.400.500", {"a": "b"}, approval)
    kept: Any = Acquirer(unvoided)
    assert process._call_acquirer(row, kept, acquirer_request(row)) is unvoided
    facts = read_private_facts(row.answer)
    assert (facts.refused_code, facts.refused_details, facts.transaction_link) == (
        "100.400.500", {"a": "b"}, "AbCdEfGhIjKlMnOpQrStUv"
    )  # fmt: skip
    assert row.answer["kept"] == 1


# Where it goes.


def test_what_rules_are_matched_against_is_the_payments_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(process, "route_payment", lambda *each: (asked.append(each), ROUTE)[1])
    request = request_of(sent={"billing.country": "DE", "amount": "92.00"}, test_mode="EXTERNAL", payment_type="PA")
    request.parameters.secrets["card.cvv"] = Secret("123")
    assert resolve_route(request) is ROUTE
    [(mode, channel, facts)] = asked
    assert (mode, channel) == ("EXTERNAL", UUID(int=2))
    assert (facts.brand, facts.currency, facts.payment, facts.amount) == ("VISA", "EUR", IDENT, Decimal("92.00"))
    assert (facts.country, facts.payment_type, facts.means, facts.card_brand) == ("DE", "PA", "card", "")
    assert "4200000000000000".startswith(facts.digits)
    assert len(facts.digits) == process.ROUTING_BIN_DIGITS
    assert set(facts.sent) == {"billing.country", "amount", "card.cvv"}
    resolve_route(request_of(payment_type="RG"))
    assert asked[1][2].currency == "", "a registration moves no money"
    resolve_route(request_of(brand="WALLET1"))
    assert asked[2][2].card_brand == "VISA"
    resolve_route(request_of(means=ACCOUNT, brand="DIRECTDEBIT_SEPA"))
    assert (asked[3][2].digits, asked[3][2].means, asked[3][2].card_brand) == ("", "bankAccount", "")
    resolve_route(request_of(means=None, brand=REDIRECTED))
    assert (asked[4][2].digits, asked[4][2].means, asked[4][2].country) == ("", "", "")


def test_a_risk_check_goes_to_no_acquirer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "route_payment", None)
    assert resolve_route(request_of(payment_type="RI")).connector.name == process.NO_ACQUIRER.name


@pytest.mark.parametrize(
    ("fault", "code", "names"),
    [
        ({"missing": ("billing.city", "customer.email")}, "200.300.404", ["billing.city", "customer.email"]),
        ({"unsendable": ("merchant.payFacId",)}, "600.200.400", ["merchant.payFacId"]),
        ({}, "600.200.700", []),
    ],
)
def test_a_payment_without_a_route_is_refused_by_what_keeps_it_from_one(
    fault: dict[str, Any], code: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Route:
        raise NoRouteError("none", **fault)

    monkeypatch.setattr(process, "route_payment", refuse)
    with pytest.raises(RequestRefusedError) as refused:
        resolve_route(request_of())
    assert (refused.value.code, [one.name for one in refused.value.errors]) == (code, names)


# Beginning and ending, with the store in between.

PLAN: Any = SimpleNamespace(retries=None)
LIMITED = Agreement(id=UUID(int=30), max_payments=3)
FREE = Agreement(id=UUID(int=31))


def use(agreement: Agreement | None, *, counts: bool = True) -> AgreementUse:
    return AgreementUse(agreement=agreement, counts_towards_limits=counts, expiry=None, scheme_references={})


class Store:
    """Takes what is inserted. ``answers``: whether it is written, or the error; the last one repeats."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[Payment, dict[str, Any]]] = []

    def insert_payment(self, payment: Payment, **named: Any) -> bool:
        self.calls.append((payment, dict(named, agreement=payment.agreement, guard=payment.duplicate_guard)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(process, "find_agreement_violation", lambda *_: None)
    monkeypatch.setattr(process, "reload_agreement_use", lambda one: one)
    return monkeypatch


@pytest.mark.parametrize(
    ("agreement", "counts", "refused", "counted", "guarded"),
    [
        (LIMITED, True, False, True, True),
        (FREE, True, False, True, False),
        (LIMITED, False, False, False, False),
        (LIMITED, True, True, False, False),
        (None, True, False, False, False),
    ],
)
def test_a_payment_counts_on_its_agreement_where_it_does_and_is_not_refused(
    agreement: Agreement | None, counts: bool, refused: bool, counted: bool, guarded: bool, patched: pytest.MonkeyPatch
) -> None:
    store = Store(True)
    patched.setattr(process.store, "insert_payment", store.insert_payment)
    refusal = ParameterError(name="a", message="b", code="100.100.303")
    request = request_of(agreement_use=use(agreement, counts=counts), refused=(refusal,) if refused else ())
    payment = begin_payment(request, ROUTE, PLAN)
    [(inserted, named)] = store.calls
    assert inserted is payment
    assert payment.agreement == (agreement.id if counted and agreement is not None else None)
    assert named["parent"] is (agreement if guarded else None)
    assert (named["refusal"], named["plan"], named["trace"]) == (
        "100.100.303" if refused else "", PLAN, request.trace
    )  # fmt: skip
    assert payment.refusals == ((refusal,) if refused else ())


def test_a_limit_of_its_agreement_declines_a_payment_by_the_clock_of_its_request(patched: pytest.MonkeyPatch) -> None:
    violation = ParameterError(name="x", message="y", code="600.400.100")
    asked: list[tuple[Any, ...]] = []
    patched.setattr(process, "find_agreement_violation", lambda *each: (asked.append(each), violation)[1])
    store = Store(True)
    patched.setattr(process.store, "insert_payment", store.insert_payment)
    used = use(LIMITED)
    request = request_of(agreement_use=used)
    assert begin_payment(request, ROUTE, PLAN).refusals == (violation,)
    assert store.calls[0][1]["refusal"] == "600.400.100"
    assert asked == [(used, request.merchant, NOW)]


@pytest.mark.parametrize(("kind", "taken"), [("DB", True), ("PA", True), ("RI", False)])
def test_a_risk_check_does_not_use_up_a_wallets_token(kind: str, taken: bool, patched: pytest.MonkeyPatch) -> None:
    store = Store(True)
    patched.setattr(process.store, "insert_payment", store.insert_payment)
    begin_payment(request_of(payment_type=kind, wallet_token=WALLET), ROUTE, PLAN)
    assert store.calls[0][1]["wallet_token"] is (WALLET if taken else None)


def test_a_second_payment_of_one_name_is_declined_and_counts_on_nothing(patched: pytest.MonkeyPatch) -> None:
    store = Store(process.store.DuplicatePaymentError(), True)
    patched.setattr(process.store, "insert_payment", store.insert_payment)
    request = request_of(
        agreement_use=use(LIMITED), sent={"merchantTransactionId": "tx"}, channel={"refuse_duplicates": True}
    )
    begin_payment(request, ROUTE, PLAN)
    first, second = (named for _, named in store.calls)
    assert (first["guard"], first["agreement"]) == ("tx", LIMITED.id)
    assert (second["guard"], second["agreement"], second["refusal"]) == (None, None, "800.110.100")
    assert "parent" not in second
    assert "plan" not in second


@pytest.mark.parametrize("locked", [True, False])
def test_a_caller_whose_row_changed_is_told_unless_it_holds_its_row(locked: bool, patched: pytest.MonkeyPatch) -> None:
    """One that holds its row has lost to another payment of the agreement, which is read again."""
    reread: list[AgreementUse] = []
    patched.setattr(process, "reload_agreement_use", lambda one: (reread.append(one), one)[1])
    store = Store(False, True)
    patched.setattr(process.store, "insert_payment", store.insert_payment)
    used = use(LIMITED)
    request = request_of(agreement_use=used, extra_writes=lambda write: None, row_locked=locked)
    if locked:
        begin_payment(request, ROUTE, PLAN)
        assert (reread, len(store.calls)) == ([used], 2)
    else:
        with pytest.raises(ConcurrentPaymentUpdateError):
            begin_payment(request, ROUTE, PLAN)
        assert (reread, len(store.calls)) == ([], 1)


def test_an_agreement_that_is_never_free_refuses_the_payment(patched: pytest.MonkeyPatch) -> None:
    store = Store(False)
    patched.setattr(process.store, "insert_payment", store.insert_payment)
    patched.setattr(process, "MAX_AGREEMENT_TRIES", 3)
    with pytest.raises(RequestRefusedError) as refused:
        begin_payment(request_of(agreement_use=use(LIMITED)), ROUTE, PLAN)
    assert (refused.value.code, len(store.calls)) == ("800.120.402", 3)


@pytest.mark.parametrize("status", [Status.STARTED, Status.DECLINED])
def test_only_a_payment_that_has_begun_goes_on(status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    payment, advanced = Payment(status=status), []
    monkeypatch.setattr(process, "resolve_route", lambda request: ROUTE)
    monkeypatch.setattr(process.risk_screening, "plan_payment_screening", lambda request: PLAN)
    monkeypatch.setattr(process, "begin_payment", lambda *each: payment)
    monkeypatch.setattr(process, "advance_payment", lambda *each: advanced.append(each))
    request = request_of()
    assert process_payment(request) is payment
    assert advanced == [(payment, SIMULATOR, request, PLAN)] * (status == Status.STARTED)


def approved_at(payment: Payment, code: str = "000.100.110", kind: type = Approved) -> PaymentOutcome:
    reply = AcquirerReply(
        code=code, approved=payment.money if kind is Approved else None, connector_tx_id="late", sent={"a": 1}
    )
    found: PaymentOutcome = kind(reply=reply, at=payment.created_at, duration_ms=17)
    return found


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "status", "void_attempted", "completes"),
    [
        (Approved, Status.IN_DOUBT, False, True),
        (Approved, Status.IN_DOUBT, True, False),
        (Declined, Status.IN_DOUBT, True, True),
        (Declined, Status.IN_DOUBT, False, True),
        (OutcomeUnknown, Status.IN_DOUBT, False, False),
        (Approved, Status.APPROVED, None, False),
        (Declined, Status.APPROVED, None, False),
        (Declined, Status.DECLINED, None, False),
    ],
)
def test_an_answer_decides_while_recovery_asks_unless_a_void_may_undo_it(
    shop: Shop, kind: type, status: Status, void_attempted: bool | None, completes: bool
) -> None:
    """Where recovery was first, only the exchange is kept."""
    ident = shop.api.pay(card__number="4000090003000000").id
    row = Payment.objects.select_related("merchant").get(pk=ident)
    assert row.status == Status.IN_DOUBT
    if void_attempted is None:
        OpenPayment.objects.filter(pk=ident).delete()
        values = {"status": status, "approved_amount": row.amount, "result_code": "000.100.110", "sequence": 3}
        Payment.objects.filter(pk=ident).update(**values)
    else:
        OpenPayment.objects.filter(pk=ident).update(void_attempted=void_attempted)
    stale = Payment.objects.select_related("merchant").get(pk=ident)
    stale.status, stale.sequence = Status.STARTED, 1
    code = {Approved: "000.100.110", Declined: "800.100.155", OutcomeUnknown: "000.200.001"}[kind]
    before = AcquirerExchange.objects.filter(payment=ident).count()
    complete_unless_recovered(stale, approved_at(stale, code, kind), request_of(merchant=row.merchant))
    kept = Payment.objects.get(pk=ident)
    expected = {Approved: Status.APPROVED, Declined: Status.DECLINED}.get(kind, status) if completes else status
    assert kept.status == expected
    assert AcquirerExchange.objects.filter(payment=ident).count() == before + 1
    last = AcquirerExchange.objects.filter(payment=ident).order_by("id").last()
    assert last is not None
    assert (last.kind, last.duration_ms, last.at) == ("submit", 17, stale.created_at)


@pytest.mark.django_db
def test_an_approval_of_what_recovery_declined_is_kept_and_voided(shop: Shop) -> None:
    ident = shop.api.pay(card__number="4000015500000005").id
    stale = Payment.objects.select_related("merchant").get(pk=ident)
    stale.status, stale.sequence = Status.STARTED, 1
    complete_unless_recovered(
        stale, approved_at(stale), request_of(merchant=stale.merchant, payment=identifiers.row_id())
    )
    kept = Payment.objects.get(pk=ident)
    assert (kept.status, kept.connector_tx_id) == (Status.DECLINED, "late")
    assert OpenPayment.objects.get(pk=ident).void_attempted


def test_a_payment_that_nobody_moved_is_completed_once_with_all_that_belongs_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    monkeypatch.setattr(process.store, "complete_payment", lambda *each, **named: done.append((each, named)))
    payment, request = build(), request_of()
    outcome = approved_at(payment)
    complete_unless_recovered(payment, outcome, request, plan=PLAN)
    assert done == [((payment, outcome), {"trace": request.trace, "idempotency": None, "plan": PLAN})]

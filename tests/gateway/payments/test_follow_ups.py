"""Follow-ups: what they are made of, what they tell an acquirer of their chain, and whose chains are found."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parameters import Parameters
from gateway.connectors.point_of_service import PointOfService
from gateway.connectors.port import AcquirerRequest
from gateway.core import identifiers
from gateway.core.brands import PAYMENT_BRANDS
from gateway.models import Channel, Merchant, Payment, Status
from gateway.payments import follow_ups
from gateway.payments.chain_amounts import INCREMENTAL_AUTHORIZATION, REAUTHORIZATION, Chain
from gateway.payments.follow_ups import (
    GATEWAY_FOLLOW_UP_PARAMETERS,
    FollowUpRequest,
    build_follow_up,
    decide_follow_up,
    find_authorizing_payment,
    load_chain,
    load_chain_members,
    name_authorization,
    process_follow_up,
    resolve_operation,
)
from gateway.payments.operation_table import (
    INCREMENT_OPERATION,
    OPERATIONS,
    REAUTHORIZATION_OPERATION,
    FollowUpDecision,
    PaymentOperation,
)
from gateway.payments.payment_methods import is_type_supported
from gateway.payments.payment_request import RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.stored_answer import PrivateFacts, read_private_facts
from tests.support.chains import after, chain, first
from tests.support.fixtures import Shop

D = Decimal
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
OK = "000.100.110"
LINKS = {name: f"{name:A<22}" for name in ("first", "renewal", "own")}


def ask(row: Payment, **values: Any) -> AcquirerRequest:
    named: dict[str, Any] = {"reference": "as the path names it", "original": PointOfService(practice=row.practice)}
    return AcquirerRequest(
        payment=row.id, operation=row.payment_type, money=row.money, brand="VISA", at=NOW, **named | values
    )


def linked(name: str) -> dict[str, Any]:
    """The answer of an authorization that was told a transaction link."""
    return PrivateFacts(transaction_link=LINKS[name]).as_json()


class Renewed:
    """An authorization of 100 that was captured, raised, reversed, renewed, raised, captured and reversed again."""

    def __init__(self) -> None:
        self.held = first("PA", number=10, connector_tx_id="first", answer=linked("first"), max_captures=5)
        held = self.held
        raised = {"practice": INCREMENTAL_AUTHORIZATION}
        self.capture = after(held, "CP", "11.00", number=20)
        self.increment = after(held, "PA", "20.00", number=30, connector_tx_id="raised", **raised)
        self.reversal = after(held, "RV", "3.00", number=40)
        self.renewal = after(
            held, "PA", "106.00", number=50, connector_tx_id="renewal", practice=REAUTHORIZATION,
            answer=linked("renewal"),
        )  # fmt: skip
        self.later = after(self.renewal, "PA", "7.00", number=60, **raised)
        self.later_capture = after(self.renewal, "CP", "13.00", number=70)
        self.later_reversal = after(self.renewal, "RV", "5.00", number=80)
        self.members = [
            self.held, self.capture, self.increment, self.reversal, self.renewal, self.later, self.later_capture,
            self.later_reversal,
        ]  # fmt: skip


@pytest.mark.parametrize("begun", [False, True], ids=["not begun", "begun"])
def test_a_reversal_tells_of_its_authorization_all_that_others_did_and_what_was_since_its_renewal(begun: bool) -> None:
    whole = Renewed()
    row = after(whole.held, "RV", "30.00", number=90, status=Status.STARTED)
    sent = name_authorization(ask(row), chain(*whole.members, *([row] if begun else [])), whole.held)
    assert (sent.amount_already_reversed, sent.authorized_amount) == (D("8.00"), D("127.00"))
    assert (sent.renewed_amount, sent.reversed_since_renewal) == (D("113.00"), D("5.00"))
    assert sent.reference == "renewal"
    assert sent.original is not None
    assert sent.original.link == LINKS["renewal"]


def test_a_reversal_that_began_before_the_renewal_names_what_it_named_then() -> None:
    whole = Renewed()
    row = after(whole.held, "RV", "30.00", number=45, status=Status.IN_DOUBT)
    sent = name_authorization(ask(row), chain(*whole.members, row), whole.held)
    assert (sent.reference, sent.renewed_amount, sent.authorized_amount) == ("first", D(0), D("127.00"))
    assert sent.original is not None
    assert sent.original.link == LINKS["first"]


@pytest.mark.parametrize(("number", "reference"), [(45, "first"), (90, "renewal")])
def test_a_capture_names_the_authorization_of_its_time_and_says_which_capture_it_is(
    number: int, reference: str
) -> None:
    whole = Renewed()
    row = after(whole.increment, "CP", "1.00", number=number, status=Status.STARTED)
    sent = name_authorization(ask(row), chain(*whole.members, row), whole.increment)
    assert (sent.reference, sent.clearing) == (reference, (3, 5))
    assert sent.original is not None
    assert sent.original.link == LINKS[reference]
    assert sent.authorized_amount == sent.renewable_amount == D(0)


def test_a_connector_that_asks_without_means_is_told_no_point_of_service() -> None:
    whole = Renewed()
    for kind in ("CP", "RV"):
        row = after(whole.held, kind, "1.00", number=90)
        sent = name_authorization(ask(row, original=None), chain(*whole.members), whole.held)
        assert (sent.reference, sent.original) == ("renewal", None)
    row = after(whole.held, "PA", "1.00", number=90, practice=INCREMENTAL_AUTHORIZATION)
    sent = name_authorization(ask(row, original=None), chain(*whole.members), whole.held)
    assert (sent.reference, sent.original) == ("renewal", None)


def test_a_renewal_names_the_first_authorization_and_all_that_is_left_without_itself() -> None:
    whole = Renewed()
    row = after(whole.renewal, "PA", "50.00", number=90, practice=REAUTHORIZATION, status=Status.STARTED)
    sent = name_authorization(ask(row), chain(*whole.members, row), whole.renewal)
    assert (sent.reference, sent.renewable_amount) == ("first", D("95.00"))  # 127 - 11 - 13 - 3 - 5
    assert sent.authorized_amount == D(0)


@pytest.mark.parametrize(("own", "link"), [({}, "renewal"), (linked("own"), "own")])
def test_an_increment_names_the_newest_authorization_unless_it_was_told_a_link_of_its_own(
    own: dict[str, Any], link: str
) -> None:
    whole = Renewed()
    row = after(whole.held, "PA", "9.00", number=90, practice=INCREMENTAL_AUTHORIZATION, answer=own)
    sent = name_authorization(ask(row), chain(*whole.members, row), whole.held)
    assert (sent.reference, sent.renewable_amount) == ("renewal", D(0))
    assert sent.original is not None
    assert sent.original.link == LINKS[link]
    unwritten = name_authorization(ask(row), chain(*whole.members), whole.held)
    assert unwritten.original is not None
    assert unwritten.original.link == LINKS["renewal"]


def test_a_receipt_of_an_authorization_is_sent_as_it_is() -> None:
    whole = Renewed()
    asked = ask(after(whole.held, "RC", "1.00", number=90))
    assert name_authorization(asked, chain(*whole.members), whole.held) == asked


@pytest.mark.parametrize(("kind", "reversed_before"), [("RV", "12.00"), ("RF", "0.00")])
def test_of_a_debit_only_a_reversal_tells_what_others_took_back(kind: str, reversed_before: str) -> None:
    debit = first("DB", connector_tx_id="debit")
    others = [after(debit, "RV", "12.00"), after(debit, "RV", "40.00", status=Status.DECLINED)]
    others.append(after(debit, "RF", "5.00"))
    row = after(debit, kind, "30.00", status=Status.STARTED)
    sent = name_authorization(ask(row), chain(debit, *others, row), debit)
    assert sent.amount_already_reversed == D(reversed_before)
    assert sent.reference == "as the path names it"


def test_a_payment_is_authorized_by_the_first_of_its_chain_or_by_its_rebill() -> None:
    held = first("PA")
    capture = after(held, "CP")
    refund, rebill = after(capture, "RF"), after(capture, "RB")
    refund_of_rebill = after(rebill, "RF")
    whole = chain(held, capture, refund, rebill, refund_of_rebill)
    found = [find_authorizing_payment(whole, one) for one in whole.members]
    assert found == [held, held, held, rebill, rebill]


def sent(**values: str) -> Parameters:
    return Parameters(values={name.replace("__", "."): value for name, value in values.items()})


@pytest.mark.parametrize(
    ("values", "operation"),
    [
        *[({"paymentType": kind}, OPERATIONS[kind]) for kind in ("CP", "RF", "RV", "RB", "RC", "CB", "CR")],
        ({"paymentType": "PA", "standingInstruction__industryPractice": "INCREMENTAL_AUTH"}, INCREMENT_OPERATION),
        ({"paymentType": "PA", "standingInstruction__industryPractice": "REAUTHORIZATION"}, REAUTHORIZATION_OPERATION),
        ({"paymentType": "CP", "standingInstruction__industryPractice": "REAUTHORIZATION"}, OPERATIONS["CP"]),
        ({"paymentType": "PA", "standingInstruction__industryPractice": "RESUBMISSION"}, "600.200.400"),
        ({"paymentType": "PA"}, "600.200.400"),
        ({"paymentType": "XX"}, "600.200.400"),
        ({"paymentType": "DB"}, "700.300.100"),
        ({"paymentType": "CD"}, "700.300.100"),
    ],
)
def test_each_type_and_practice_is_its_operation_or_refused(
    values: dict[str, str], operation: PaymentOperation | str
) -> None:
    if isinstance(operation, str):
        with pytest.raises(RequestRefusedError) as refused:
            resolve_operation(sent(**values))
        assert refused.value.code == operation
    else:
        assert resolve_operation(sent(**values)) is operation


@pytest.mark.parametrize("kind", ["CP", "RF", "RV", "RB", "RC", "CB", "CR"])
def test_in_live_a_merchant_makes_no_chargeback_and_no_reversal_of_one(kind: str) -> None:
    with override_settings(IS_LIVE=True):
        if kind in ("CB", "CR"):
            with pytest.raises(RequestRefusedError) as refused:
                resolve_operation(sent(paymentType=kind))
            assert refused.value.code == "700.400.402"
        else:
            assert resolve_operation(sent(paymentType=kind)) is OPERATIONS[kind]


def decide(operation: str | PaymentOperation, members: Chain, target: Payment, **more: Any) -> FollowUpDecision:
    values = more.pop("values", {"amount": "10.00", "currency": "EUR"})
    parameters = Parameters(values=values, refusals=more.pop("refusals", ()))
    found = OPERATIONS[operation] if isinstance(operation, str) else operation
    return decide_follow_up(found, members, target, parameters, **{"at": NOW, **more})


def test_the_amount_and_the_currency_of_a_follow_up_are_those_that_were_sent() -> None:
    debit = first("DB")
    assert decide("RF", chain(debit), debit) == FollowUpDecision(amount=D("10.00"))
    assert decide("RF", chain(debit), debit, values={"amount": "100.01"}).code == "700.400.200"
    assert decide("RF", chain(debit), debit, values={"amount": "9.00", "currency": "USD"}).code == "700.100.500"
    # Without an amount a reversal takes the rest, and a refund nothing.
    held = first("PA")
    whole = chain(held, after(held, "CP", "30.00"))
    assert decide("RV", whole, held, values={}) == FollowUpDecision(amount=D("70.00"))
    assert decide("RF", chain(debit), debit, values={}).code == "700.400.200"


@pytest.mark.parametrize("values", [{}, {"amount": "12.00"}])
def test_a_method_without_the_type_is_refused_with_the_amount_that_was_sent(values: dict[str, str]) -> None:
    pushed = next(code for code in PAYMENT_BRANDS if not is_type_supported(code, "RB"))
    paid = first("DB", brand=pushed)
    expected = FollowUpDecision(amount=D(values.get("amount", "0")), code="600.200.310")
    assert decide("RB", chain(paid), paid, values=values) == expected
    assert decide("RF", chain(paid), paid).code == ""


@pytest.mark.parametrize(("sequence", "code"), [({}, ""), ({"sequence": "LAST"}, ""), ({"sequence": "FINAL"}, "x")])
def test_only_a_final_capture_waits_for_an_increment(sequence: dict[str, str], code: str) -> None:
    held = first("PA")
    raised = after(held, "PA", "5.00", practice=INCREMENTAL_AUTHORIZATION, status=Status.PENDING)
    values = {"amount": "10.00", **sequence}
    assert decide("CP", chain(held, raised), held, values=values).code == ("700.400.570" if code else "")


@pytest.mark.parametrize(
    ("at", "reported", "code"),
    [
        (NOW - timedelta(microseconds=1), False, ""),
        (NOW, False, "700.300.400"),
        (NOW + timedelta(days=9), False, "700.300.400"),
        (NOW + timedelta(days=9), True, ""),
    ],
)
def test_an_authorization_is_captured_before_its_end_and_reported_whenever(
    at: datetime, reported: bool, code: str
) -> None:
    held = first("PA", expires_at=NOW)
    assert decide("CP", chain(held), held, at=at, reported=reported).code == code


@pytest.mark.parametrize(
    ("kind", "settled", "reported", "code"),
    [
        ("RV", False, False, ""),
        ("RV", True, False, "700.300.700"),
        ("RV", True, True, ""),
        ("RF", True, False, ""),
    ],
)
def test_what_is_settled_is_reversed_no_more_but_refunded_and_reported(
    kind: str, settled: bool, reported: bool, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    debit = first("DB")
    asked: list[tuple[Payment, datetime]] = []

    def find(payment: Payment, at: datetime) -> bool:
        asked.append((payment, at))
        return settled

    monkeypatch.setattr(follow_ups, "is_beyond_reversal", find)
    assert decide(kind, chain(debit), debit, reported=reported).code == code
    assert asked == ([(debit, NOW)] if kind == "RV" and not reported else [])


def test_a_reported_chargeback_may_be_of_what_was_refunded() -> None:
    debit = first("DB")
    whole = chain(debit, after(debit, "RF", "95.00"))
    assert decide("CB", whole, debit).code == "700.400.400"
    assert decide("CB", whole, debit, reported=True).code == ""


def test_a_refused_parameter_declines_only_what_could_have_followed() -> None:
    debit = first("DB")
    refusal = ParameterError(name="descriptor", message="no", code="100.900.500")
    later = ParameterError(name="x", message="no", code="200.300.404")
    found = decide("RF", chain(debit), debit, refusals=(refusal, later))
    assert found == FollowUpDecision(amount=D("10.00"), code="100.900.500")
    values = {"amount": "500.00"}
    assert decide("RF", chain(debit), debit, values=values, refusals=(refusal,)).code == "700.400.200"


def request_of(parameters: Parameters, **values: Any) -> FollowUpRequest:
    trace = RequestTrace(request=UUID(int=77), method="POST", path="/v1/payments/x", at=NOW)
    return FollowUpRequest(
        payment=UUID(int=70), target=UUID(int=71), merchant=Merchant(), channel=values.pop("channel", None),
        parameters=parameters, now=NOW, trace=trace, **values,
    )  # fmt: skip


TARGET: dict[str, Any] = {
    "merchant_id": UUID(int=1), "channel_id": UUID(int=2), "brand": "MASTER", "method": "DC", "currency": "CHF",
    "test_mode": "EXTERNAL", "connector": "stub", "acquirer_merchant_id": "M-7", "means": "card",
    "authorization_kind": "FINAL", "merchant_transaction_id": "the first's", "merchant_invoice_id": "the first's",
    "merchant_memo": "the first's", "request": {"descriptor": "the first's"}, "practice": "",
    "answer": {"descriptor": "Shown"}, "connector_tx_id": "there",
}  # fmt: skip
OF_ITS_CHAIN = (
    "merchant_id", "channel_id", "brand", "method", "currency", "test_mode", "connector", "acquirer_merchant_id",
    "means",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["CP", "RF", "RV", "RC", "CB", "CR", "PA"])
@pytest.mark.parametrize("sequence", ["", "FINAL", "LAST"])
def test_a_follow_ups_row_has_the_columns_of_its_chain_and_those_of_its_request(kind: str, sequence: str) -> None:
    target = after(first("PA"), "CP", **TARGET)
    values = {
        "merchantTransactionId": "tx", "merchantInvoiceId": "invoice", "merchantMemo": "memo",
        "standingInstruction.industryPractice": "INCREMENTAL_AUTH", "sequence": sequence,
    }  # fmt: skip
    operation = INCREMENT_OPERATION if kind == "PA" else OPERATIONS[kind]
    decision = FollowUpDecision(amount=D("12.34"))
    row = build_follow_up(operation, target, decision, request_of(Parameters(values=values)))
    assert {name: getattr(row, name) for name in OF_ITS_CHAIN} == {name: TARGET[name] for name in OF_ITS_CHAIN}
    assert (row.id, row.referenced, row.chain) == (UUID(int=70), target.id, target.chain)
    assert (row.payment_type, row.amount, row.final) == (kind, D("12.34"), sequence == "FINAL")
    named = (row.merchant_transaction_id, row.merchant_invoice_id, row.merchant_memo)
    assert named == ("tx", "invoice", "memo")
    raises = kind == "PA"
    assert (row.practice, row.authorization_kind) == (("INCREMENTAL_AUTH", "FINAL") if raises else ("", ""))
    assert (row.request_id, row.created_at) == (UUID(int=77), NOW)
    assert row.answer == {"descriptor": "Shown"}
    assert (row.connector_tx_id, row.registration, row.means_sealed) == ("", None, None)


def test_what_was_not_sent_with_a_follow_up_is_not_that_of_its_chain() -> None:
    row = build_follow_up(OPERATIONS["RF"], first("DB", **TARGET), FollowUpDecision(amount=D(1)), request_of(sent()))
    assert (row.merchant_transaction_id, row.merchant_invoice_id, row.merchant_memo, row.practice) == ("",) * 4


@pytest.mark.parametrize("of_request", ["", "accept", "decline"])
@pytest.mark.parametrize("of_payment", ["accept", "decline"])
@pytest.mark.parametrize("kind", ["RB", "RF"])
def test_a_rebill_takes_a_part_where_the_channel_does_that_asks_for_it(
    kind: str, of_payment: str, of_request: str
) -> None:
    """For a merchant's entity that is the channel of the payment."""
    target = first("DB", **TARGET)
    target.channel = Channel(id=UUID(int=2), partial_approvals=of_payment)
    asking = Channel(id=UUID(int=3), partial_approvals=of_request) if of_request else None
    row = build_follow_up(OPERATIONS[kind], target, FollowUpDecision(amount=D(1)), request_of(sent(), channel=asking))
    refuses = (of_request or of_payment) == "decline"
    assert read_private_facts(row.answer).whole_amount_only is (kind == "RB" and refuses)


def test_a_follow_up_that_comes_too_late_says_what_to_send_instead() -> None:
    late = FollowUpDecision(amount=D(1), code="700.300.400")
    row = build_follow_up(OPERATIONS["CP"], first("PA", **TARGET), late, request_of(sent()))
    assert "authorize anew" in row.answer["resultDetails"]["ExtendedDescription"]
    assert row.answer["descriptor"] == "Shown"


@pytest.mark.django_db
def test_a_chain_is_found_by_its_own_merchant_and_channel_from_each_of_its_payments(shop: Shop, stranger: Shop) -> None:
    other = shop.open_channel()
    held = shop.api.pay(paymentType="PA").id
    capture = shop.api.follow(held, "CP", "30.00").id
    refund = shop.api.follow(capture, "RF", "10.00").id
    shop.api.pay(paymentType="PA")
    stranger.api.pay()
    for ident in (held, capture, refund):
        for channel in (None, shop.channel):
            found = load_chain(UUID(ident), shop.merchant, channel)
            assert found is not None
            assert [one.id.hex for one in found.members] == [held, capture, refund]
        assert load_chain(UUID(ident), shop.merchant, other) is None
        assert load_chain(UUID(ident), stranger.merchant, None) is None
        assert load_chain(UUID(ident), stranger.merchant, shop.channel) is None
    assert load_chain(None, shop.merchant, None) is None
    assert load_chain(identifiers.row_id(), shop.merchant, None) is None
    assert [one.id.hex for one in load_chain_members(UUID(held))] == [held, capture, refund]
    assert load_chain_members(UUID(capture)) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("CP", {"chargebackResultCode"}),
        ("RF", {"chargebackResultCode"}),
        ("RC", {"chargebackResultCode", "sequence"}),
        ("CB", {"sequence"}),
    ],
)
def test_what_has_no_effect_on_a_follow_up_is_told(shop: Shop, kind: str, names: set[str]) -> None:
    paid = shop.api.pay(paymentType="PA" if kind == "CP" else "DB").id
    made = shop.api.follow(
        paid, kind, "10.00", sequence="FINAL", numberOfCaptures="2", chargebackResultCode="000.100.221"
    )
    assert made.status == 200, made
    assert set(made.body["ignoredParameters"]) == {*names, "numberOfCaptures"}
    row = Payment.objects.get(pk=made.id)
    assert row.final is ("sequence" not in names)
    assert row.max_captures is None
    assert "numberOfCaptures" not in row.request


def refund(shop: Shop, target: str, **values: Any) -> FollowUpRequest:
    pairs = [("paymentType", "RF"), ("amount", "10.00"), ("currency", "EUR")]
    trace = RequestTrace(request=identifiers.row_id(), method="POST", path="/x", at=NOW)
    base: dict[str, Any] = {
        "payment": identifiers.row_id(), "target": UUID(target), "merchant": shop.merchant, "channel": None,
        "parameters": GATEWAY_FOLLOW_UP_PARAMETERS.parse(pairs), "now": NOW, "trace": trace,
    }  # fmt: skip
    return FollowUpRequest(**base | values)


@pytest.mark.django_db
def test_a_follow_up_raises_its_chains_counter_and_one_that_is_refused_does_not(shop: Shop) -> None:
    paid = shop.api.pay().id
    process_follow_up(refund(shop, paid))
    assert Payment.objects.get(pk=paid).follow_ups == 1
    declined = replace(refund(shop, paid), parameters=GATEWAY_FOLLOW_UP_PARAMETERS.parse([
        ("paymentType", "RF"), ("amount", "500.00"), ("currency", "EUR")]))  # fmt: skip
    assert process_follow_up(declined).status == Status.DECLINED
    assert Payment.objects.get(pk=paid).follow_ups == 1


@pytest.mark.django_db
def test_a_chain_that_the_caller_read_is_read_again_when_it_has_changed(shop: Shop) -> None:
    paid = shop.api.pay().id
    stale = load_chain(UUID(paid), shop.merchant, None)
    assert stale is not None
    shop.api.follow(paid, "RF", "90.00")
    seen: list[int] = []

    def look(whole: Chain) -> Any:
        seen.append(len(whole.members))
        return lambda write: None

    made = process_follow_up(refund(shop, paid, chain=stale, extra_writes=look))
    assert (made.status, made.result_code) == (Status.DECLINED, "700.400.200")
    assert seen == [1, 2]


@pytest.mark.django_db
def test_a_follow_up_is_tried_a_bounded_number_of_times(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = shop.api.pay().id
    tries: list[UUID] = []

    def lose(row: Payment, **_: Any) -> bool:
        tries.append(row.id)
        return False

    monkeypatch.setattr(follow_ups, "MAX_FOLLOW_UP_TRIES", 3)
    monkeypatch.setattr(follow_ups.store, "insert_payment", lose)
    with pytest.raises(RequestRefusedError) as refused:
        process_follow_up(refund(shop, paid))
    assert (refused.value.code, len(tries)) == ("800.120.402", 3)


@pytest.mark.django_db
def test_an_unknown_payment_has_the_code_of_its_operation_and_404(shop: Shop, stranger: Shop) -> None:
    theirs = stranger.api.pay().id
    for kind, code in (("CP", "700.400.510"), ("RF", "600.200.500"), ("RV", "700.400.530"), ("RC", "700.400.560")):
        found = shop.api.follow(theirs, kind, "1.00")
        assert (found.status, found.code) == (404, code)
    assert Payment.objects.count() == 1

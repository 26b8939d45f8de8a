"""The steps of a follow-up in their order: what is opened, renewed, inserted, asked and completed, and what is left out
for one that is refused. Nobody is asked; no database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.errors import InvalidParametersError
from gateway.connectors.means import Card
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, Payment
from gateway.payments import follow_ups
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import (
    GATEWAY_FOLLOW_UP_PARAMETERS,
    FollowUpRequest,
    find_follow_up_arrival,
    process_follow_up,
)
from gateway.payments.operation_table import OPERATIONS, RELEASE_OPERATION
from gateway.payments.refusal import ACCOUNT_ERASED_CODE, RequestRefusedError
from gateway.payments.stored_answer import TokenUse, set_token_use
from tests.gateway.payments.test_follow_ups import request_of, sent
from tests.support.chains import after, first

NOW = datetime(2033, 5, 6, 7, tzinfo=UTC)
HOUR = timedelta(hours=1)
CARD = Card(number=Secret("4200000000000000"), expiry_month="05", expiry_year="2034")
TARGET_ID = UUID(int=71)
EXPIRED, CLOSED, ABOVE = "700.300.400", "700.400.300", "700.400.100"
RENEWS, REFUSES = Channel.ExpiredCaptures.RENEW, Channel.ExpiredCaptures.REFUSE


class Steps:
    """What was done, in order. ``inserts``: whether each try to begin it succeeds; ``means``: what the chain's open to;
    ``stopped``: the decline of the retry rules."""

    def __init__(self, patch: pytest.MonkeyPatch, *members: Payment, asks_with_means: bool = False) -> None:
        self.members = list(members)
        self.done: list[str] = []
        self.calls: dict[str, list[Any]] = {}
        self.inserts: list[bool] = []
        self.means: Card | None = CARD
        self.stopped: Any = None
        self.connector = SimpleNamespace(asks_with_means=asks_with_means, sends=None)
        patch.setattr(follow_ups, "CONNECTORS", {"simulator": self.connector})
        for name, answer in {
            "load_chain": lambda: Chain(self.members) if self.members else None,
            "_check_sendable": lambda: None,
            "find_follow_up_arrival": lambda: NOW,
            "is_beyond_reversal": lambda: False,
            "_open_chain_means": lambda: self.means,
            "_check_account_opens": lambda: None,
            "plan_follow_up_screening": lambda: "a plan",
            "_renew_authorization": lambda: None,
            "screen_follow_up": lambda: self.stopped,
            "_build_follow_up_acquirer_request": lambda: "built",
            "name_authorization": lambda: "named",
            "submit_payment": lambda: "an outcome",
            "complete_unless_recovered": lambda: None,
        }.items():
            patch.setattr(follow_ups, name, self.step(name, answer))
        patch.setattr(follow_ups.store, "insert_payment", self.insert)

    def step(self, name: str, answer: Any) -> Any:
        def take(*call: Any, **names: Any) -> Any:
            self.done.append(name)
            self.calls.setdefault(name, []).append((call, names))
            return answer()

        return take

    def insert(self, row: Payment, **names: Any) -> bool:
        self.step("insert", lambda: None)(row, **names)
        row.status = "DECLINED" if names["refusal"] else "STARTED"
        return self.inserts.pop(0) if self.inserts else True

    def call(self, name: str) -> Any:
        [found] = self.calls[name]
        return found


def paid(kind: str = "DB", mode: str = REFUSES, **values: Any) -> Payment:
    return first(kind, **{
        "channel": Channel(expired_captures=mode), "connector": "simulator", "means": "card", "request": {},
        "answer": {"descriptor": "Shop"}, **values,
    })  # fmt: skip


def request(kind: str, target: Payment, amount: str = "10.00", **values: Any) -> FollowUpRequest:
    practice = {"standingInstruction.industryPractice": "REAUTHORIZATION"} if kind == "PA" else {}
    parameters = sent(paymentType=kind, amount=amount, currency="EUR")
    parameters.values.update(practice)
    return FollowUpRequest(**fields(request_of(parameters)) | {"target": target.id, **values})


def fields(asked: FollowUpRequest) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in ("payment", "merchant", "channel", "parameters", "now", "trace")}


def test_a_follow_up_is_inserted_submitted_and_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    target = paid()
    steps = Steps(monkeypatch, target)
    asked = request("RF", target, merchant=Merchant(name="x"), channel=Channel(name="y"), idempotency="a key")
    row = process_follow_up(asked)
    assert (row.id, row.payment_type, row.status) == (asked.payment, "RF", "STARTED")
    assert steps.call("load_chain") == ((target.id, asked.merchant, asked.channel), {})
    assert steps.call("_check_sendable") == ((asked.parameters, OPERATIONS["RF"], target), {})
    [((inserted,), names)] = steps.calls["insert"]
    assert inserted is row
    assert names == {
        "trace": asked.trace, "refusal": "", "parent": target, "idempotency": "a key", "plan": None,
        "extra_writes": None,
    }  # fmt: skip
    [((built, whole, of, means, asking), _)] = steps.calls["_build_follow_up_acquirer_request"]
    assert (built, whole.members, of, means, asking) == (row, [target], target, None, asked)
    assert steps.call("name_authorization")[0] == ("built", whole, target)
    assert steps.call("submit_payment") == ((row, steps.connector, "named", asked), {})
    assert steps.call("complete_unless_recovered") == ((row, "an outcome", asked), {"plan": None})
    assert steps.done[-5:] == [
        "screen_follow_up", "_build_follow_up_acquirer_request", "name_authorization", "submit_payment",
        "complete_unless_recovered",
    ]  # fmt: skip


def test_a_refused_follow_up_is_inserted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    target = paid()
    steps = Steps(monkeypatch, target)
    row = process_follow_up(request("CP", target))
    assert row.status == "DECLINED"
    names = steps.calls["insert"][0][1]
    assert (names["refusal"], names["parent"], names["plan"]) == ("700.300.100", None, None)
    assert steps.done[-1] == "insert"
    assert "_check_account_opens" not in steps.done


@pytest.mark.parametrize("stopped", [None, "a decline"])
def test_the_retry_rules_stop_a_rebill_before_it_is_sent(monkeypatch: pytest.MonkeyPatch, stopped: str | None) -> None:
    target = paid()
    steps = Steps(monkeypatch, target)
    steps.stopped = stopped
    asked = request("RB", target)
    row = process_follow_up(asked)
    assert steps.calls["insert"][0][1]["plan"] == "a plan"
    assert steps.call("plan_follow_up_screening") == ((row, CARD), {"merchant_initiated": True})
    assert steps.call("screen_follow_up") == ((row, "a plan", asked), {})
    told = ((row, stopped, asked), {}) if stopped else ((row, "an outcome", asked), {"plan": "a plan"})
    assert steps.call("complete_unless_recovered") == told
    assert ("submit_payment" in steps.done) is (stopped is None)


@pytest.mark.parametrize("found", [False, True], ids=["no chain", "not in it"])
def test_a_payment_that_is_not_there_is_unknown(monkeypatch: pytest.MonkeyPatch, found: bool) -> None:
    steps = Steps(monkeypatch, *([paid()] if found else []))
    with pytest.raises(RequestRefusedError) as told:
        process_follow_up(request("RF", paid()))
    assert (told.value.code, told.value.status) == ("600.200.500", 404)
    assert steps.done == ["load_chain"]


def test_a_reference_to_another_payment_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    target = paid()
    steps = Steps(monkeypatch, target)
    asked = request("RF", target)
    asked.parameters.values["referenceUuid"] = TARGET_ID.hex
    with pytest.raises(RequestRefusedError) as told:
        process_follow_up(asked)
    assert [error.name for error in told.value.errors] == ["referenceUuid"]
    assert steps.done == []


def test_an_operation_goes_before_that_of_the_payment_type(monkeypatch: pytest.MonkeyPatch) -> None:
    held = paid("PA")
    ended = after(held, "CP", "30.00", final=True)
    for operation, code in ((RELEASE_OPERATION, ""), (None, CLOSED)):
        steps = Steps(monkeypatch, held, ended)
        process_follow_up(request("RV", held, "70.00", operation=operation))
        assert steps.calls["insert"][0][1]["refusal"] == code


def test_what_is_written_with_it_is_asked_of_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    target = paid()
    steps = Steps(monkeypatch, target)
    seen: list[Chain] = []
    process_follow_up(request("RF", target, extra_writes=lambda chain: seen.append(chain) or print))
    assert [one.members for one in seen] == [[target]]
    assert steps.calls["insert"][0][1]["extra_writes"] is print


# --- means ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "asks_with_means", "with_token", "opened"),
    [
        ("RF", False, False, None),
        ("RF", False, True, None),
        ("RF", True, False, "card"),
        ("RF", True, True, "token"),
        ("RB", False, False, "card"),
        ("RB", False, True, "card"),
        ("RB", True, True, "card"),
        ("CP", True, True, None),
    ],
)
def test_what_its_authorization_was_sent_with_is_opened_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, kind: str, asks_with_means: bool, with_token: bool, opened: str | None
) -> None:
    """A rebill authorizes anew, with the card number; a capture of a debit is refused, and opens nothing."""
    target = paid(answer=set_token_use({}, TokenUse.USED) if with_token else {})
    target.answer["descriptor"] = "Shop"
    steps = Steps(monkeypatch, target, asks_with_means=asks_with_means)
    process_follow_up(request(kind, target))
    if opened is None:
        assert "_open_chain_means" not in steps.done
        return
    assert steps.call("_open_chain_means") == ((target.id, target.id if opened == "token" else None), {})
    if "_build_follow_up_acquirer_request" in steps.done:
        assert steps.calls["_build_follow_up_acquirer_request"][0][0][3] is CARD


def test_the_refund_of_a_rebill_is_of_the_rebills_own_authorization(monkeypatch: pytest.MonkeyPatch) -> None:
    began = paid()
    shown = {"descriptor": "Shop"}
    rebill = after(began, "RB", "20.00", channel=began.channel, connector="simulator", means="card", request={},
                   answer=set_token_use(shown, TokenUse.USED))  # fmt: skip
    steps = Steps(monkeypatch, began, rebill, asks_with_means=True)
    process_follow_up(request("RF", rebill))
    assert steps.call("_open_chain_means") == ((began.id, rebill.id), {})
    assert steps.calls["insert"][0][1]["parent"] is began


@pytest.mark.parametrize("means", ["card", ""])
def test_an_erased_account_refuses_what_needs_it_and_a_payment_without_any_goes_on(
    monkeypatch: pytest.MonkeyPatch, means: str
) -> None:
    target = paid(means=means)
    steps = Steps(monkeypatch, target, asks_with_means=True)
    steps.means = None
    if not means:
        assert process_follow_up(request("RF", target)).status == "STARTED"
        return
    with pytest.raises(RequestRefusedError) as told:
        process_follow_up(request("RF", target))
    assert told.value.code == ACCOUNT_ERASED_CODE
    assert "insert" not in steps.done


def test_means_are_opened_once_however_often_the_chain_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    target = paid()
    steps = Steps(monkeypatch, target, asks_with_means=True)
    steps.inserts = [False, False, True]
    process_follow_up(request("RF", target, chain=Chain([target])))
    assert len(steps.calls["insert"]) == 3
    assert len(steps.calls["_open_chain_means"]) == 1
    assert len(steps.calls["load_chain"]) == 2, "the first time it is the caller's"


# --- expired authorizations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "amount", "mode", "late", "renews", "code"),
    [
        ("CP", "10.00", RENEWS, True, True, EXPIRED),
        ("CP", "100.00", RENEWS, True, True, EXPIRED),
        ("CP", "100.01", RENEWS, True, False, EXPIRED),
        ("CP", "10.00", REFUSES, True, False, EXPIRED),
        ("CP", "10.00", RENEWS, False, False, ""),
        ("CP", "100.01", RENEWS, False, False, ABOVE),
        ("RC", "10.00", RENEWS, True, False, EXPIRED),
        ("PA", "10.00", RENEWS, True, False, ""),
        ("PA", "100.01", RENEWS, True, False, ABOVE),
        ("PA", "10.00", REFUSES, True, False, EXPIRED),
        ("PA", "10.00", REFUSES, False, False, ""),
    ],
)
def test_what_expired_is_renewed_once_before_a_capture_that_is_possible_otherwise(
    monkeypatch: pytest.MonkeyPatch, kind: str, amount: str, mode: str, late: bool, renews: bool, code: str
) -> None:
    """The renewal here changed nothing: the capture is declined. A renewal that is asked for itself is made late."""
    held = paid("PA", mode, expires_at=NOW - HOUR if late else NOW + HOUR)
    steps = Steps(monkeypatch, held)
    asked = request(kind, held, amount, now=NOW)
    process_follow_up(asked)
    assert len(steps.calls.get("_renew_authorization", [])) == renews
    if renews:
        [((of, whole), _)] = steps.calls["_renew_authorization"]
        assert (of, whole.members) == (asked, [held])
        assert steps.done.index("_renew_authorization") < steps.done.index("insert")
    assert [names["refusal"] for _, names in steps.calls["insert"]] == [code]


@pytest.mark.parametrize("kind", [kind for kind in OPERATIONS if OPERATIONS[kind].follows])
def test_only_a_capture_waits_for_the_batch_of_its_account(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    seen: list[Any] = []
    arrives = NOW + HOUR
    monkeypatch.setattr(follow_ups, "find_capture_arrival", lambda *call: seen.append(call) or arrives)
    target = Payment(connector="simulator", channel_id=None, acquirer_merchant_id="M-1")
    found = find_follow_up_arrival(OPERATIONS[kind], target, NOW)
    assert found == (arrives if kind == "CP" else NOW)
    assert seen == [(follow_ups.CONNECTORS["simulator"], None, "M-1", NOW)] * (kind == "CP")


def test_the_account_of_a_connector_that_is_gone_collects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_ups, "find_capture_arrival", lambda *call: call)
    target = Payment(connector="gone", acquirer_merchant_id="M-1")
    found: Any = find_follow_up_arrival(OPERATIONS["CP"], target, NOW)
    assert found == (None, target.channel_id, "M-1", NOW)


def test_amounts_are_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    target = paid()
    Steps(monkeypatch, target)
    assert process_follow_up(request("RF", target, "12.34")).amount == Decimal("12.34")


# --- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
def test_what_does_not_belong_to_a_follow_up_is_dropped_where_the_payment_is_named_by_its_reference(
    named: bool,
) -> None:
    """Its card comes from the chain; what belongs to both stays as it was sent."""
    pairs = [
        ("entityId", "8a8294174b7ecb28014b9699220015ca"), ("paymentType", "DB"), ("amount", "10.00"),
        ("currency", "EUR"), ("paymentBrand", "VISA"), ("card.number", "4200000000000000"),
        ("card.expiryMonth", "05"), ("card.expiryYear", "2034"), ("card.holder", "Jane Jones"),
        ("merchantTransactionId", "order-4711"),
    ]  # fmt: skip
    parameters = PAYMENT_ENDPOINT.catalogue.parse(pairs)
    parameters.ignored = ("unknown",)
    if named:
        parameters.values["referenceUuid"] = TARGET_ID.hex
    before = set(parameters.names)
    follow_ups._check_reference(FollowUpRequest(**{**fields(request_of(parameters)), "target": TARGET_ID}))
    card = {"card.number", "card.expiryMonth", "card.expiryYear", "card.holder"}
    dropped = card if named else set()
    assert before - set(parameters.names) == dropped
    assert (set(parameters.ignored), parameters.ignored[0]) == ({"unknown", *dropped}, "unknown")
    assert len(parameters.ignored) == 1 + len(dropped)
    assert ("card.number" in parameters.secrets) is not named
    titles = {item[0].structure.title for item in parameters.items}
    assert ("Card account" in titles) is not named
    assert "Basic payment" in titles
    assert parameters.get("merchantTransactionId") == "order-4711"


@pytest.mark.parametrize(
    ("name", "value"), [("card.number", "4200000000000000"), ("entityId", "8a8294174b7ecb28014b9699220015ca")]
)
def test_a_follow_up_of_the_gateways_own_takes_no_card_and_no_entity(name: str, value: str) -> None:
    pairs = [("paymentType", "RF"), ("amount", "10.00"), ("currency", "EUR")]
    assert GATEWAY_FOLLOW_UP_PARAMETERS.parse(pairs)["paymentType"] == "RF"
    with pytest.raises(InvalidParametersError) as told:
        GATEWAY_FOLLOW_UP_PARAMETERS.parse([*pairs, (name, value)])
    [error] = told.value.errors
    assert error.name == name
    assert "another endpoint takes it" in error.message


@pytest.mark.parametrize(
    ("kind", "values", "ignored"),
    [
        ("CP", {"sequence": "FINAL"}, ()),
        ("RF", {"sequence": "FINAL"}, ()),
        ("RV", {"sequence": "FINAL"}, ()),
        ("RB", {"sequence": "FINAL"}, ("sequence",)),
        ("CB", {"chargebackResultCode": "000.100.221"}, ()),
        ("CR", {"chargebackResultCode": "000.100.221"}, ("chargebackResultCode",)),
        ("CP", {"numberOfCaptures": "2"}, ("numberOfCaptures",)),
        ("CP", {"transactionProcessingCode": "PAYMENT"}, ("transactionProcessingCode",)),
        ("CP", {"transactionProcessingCode": "FUNDING"}, ("transactionProcessingCode",)),
        ("CP", {"transactionProcessingCode": "PURCHASE"}, ()),
        ("RF", {"merchantMemo": "x"}, ()),
    ],
    ids=str,
)
def test_a_parameter_without_effect_is_ignored(kind: str, values: dict[str, str], ignored: tuple[str, ...]) -> None:
    parameters = sent(**values)
    follow_ups._ignore_parameters_without_effect(OPERATIONS[kind], parameters)
    assert parameters.ignored == ignored
    assert set(parameters.values) == set(values) - set(ignored)


@pytest.mark.parametrize("names", [(), ("descriptor",)])
def test_what_an_acquirer_cannot_be_sent_refuses_its_follow_up(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(follow_ups, "find_unsendable", lambda *call: seen.append(call) or names)
    monkeypatch.setattr(follow_ups, "CONNECTORS", {"simulator": SimpleNamespace(sends="a table")})
    parameters = sent(descriptor="Shop")
    target = paid(brand="MASTER")
    if not names:
        follow_ups._check_sendable(parameters, OPERATIONS["RF"], target)
    else:
        with pytest.raises(RequestRefusedError) as told:
            follow_ups._check_sendable(parameters, OPERATIONS["RF"], target)
        assert told.value.code == "600.200.400"
        assert [(one.name, one.value) for one in told.value.errors] == [("descriptor", "Shop")]
    assert seen == [("a table", "MASTER", "RF", parameters.values)]


# --- chains that were archived ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reads", "brought", "back", "members"),
    [
        ([["first", "later"]], None, None, ["first", "later"]),
        ([[], ["first"]], True, "target", ["first"]),
        ([[], ["first"]], False, "target", ["first"]),
        ([[], []], False, "target", None),
        ([["later"], ["first", "later"]], True, "first", ["first", "later"]),
        ([["later"]], False, "first", ["later"]),
    ],
    ids=["there", "brought back", "by another request", "nowhere", "the rest of it", "the rest is nowhere"],
)
@pytest.mark.parametrize("of_channel", [True, False])
def test_a_chain_is_brought_back_where_its_first_payment_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
    reads: list[list[str]],
    brought: bool | None,
    back: str | None,
    members: list[str] | None,
    of_channel: bool,
) -> None:
    began = paid()
    rows = {"first": began, "later": after(began, "RF")}
    left = list(reads)
    looked: list[Any] = []
    asked: list[Any] = []
    monkeypatch.setattr(
        follow_ups, "_load_target_chain", lambda *call: looked.append(call) or [rows[one] for one in left.pop(0)]
    )
    monkeypatch.setattr(follow_ups, "bring_chain_back", lambda *call: asked.append(call) or brought)
    merchant, channel = Merchant(), Channel() if of_channel else None
    found = follow_ups.load_chain(TARGET_ID, merchant, channel)
    assert (list(found.members) if found is not None else None) == (
        [rows[one] for one in members] if members is not None else None
    )
    assert looked == [(TARGET_ID, merchant, channel)] * len(reads)
    ident = TARGET_ID if back == "target" else began.id
    assert asked == ([(ident, merchant.pk, channel.pk if channel is not None else None)] if back else [])

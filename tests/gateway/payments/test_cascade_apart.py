"""Each condition of a cascade by itself: which decline leads on, whereto, and what of the payment's route is kept.

No database. Source: docs/decisions/0108.
"""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.models import Payment, Status
from gateway.payments import cascade
from gateway.payments.outcomes import Approved, Declined, PaymentOutcome

AT = datetime(2033, 11, 15, 12, 30, 45, 678_000, tzinfo=UTC)
NOT_HONOURED = "800.100.152"
FIRST, SECOND, GONE, THIRD = (
    ("first", "at first", "The first"), ("second", "at second", "The second"), ("gone", "at gone", "The gone"),
    ("third", "at third", "The third"),
)  # fmt: skip
CARD = SimpleNamespace(wallet="", number_type="")
PLAN = SimpleNamespace(retries=None)


def declined(**values: Any) -> Declined:
    details = {"AcquirerResponse": "05"} | values.pop("details", {})
    reply = AcquirerReply(**{"code": NOT_HONOURED, "details": details, "sent": {"operation": "DB"}, **values})
    return Declined(reply=reply, at=AT)


def request_of(**values: Any) -> Any:
    return SimpleNamespace(**{"card": CARD, "network_brand": "VISA", **values})


def payment_of(**values: Any) -> Payment:
    route = {"name": "The first", "maxCascades": 1, "next": [list(SECOND)], "rule": "all"} | values.pop("route", {})
    return Payment(**{
        "id": UUID(int=1), "status": Status.STARTED, "payment_type": "DB", "connector": "first",
        "acquirer_merchant_id": "at first", "route": route, **values,
    })  # fmt: skip


class Move:
    """A cascade whose writing is kept here: ``written``; ``counted``: from where to where."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, taken: bool = True) -> None:
        self.written: list[tuple[Any, ...]] = []
        self.counted: list[tuple[str, str]] = []
        self.taken = taken
        self.over = False
        self.connectors = {name: f"connector of {name}" for name in ("first", "second", "third")}
        monkeypatch.setattr(cascade, "list_acquirers", lambda: self.connectors)
        monkeypatch.setattr(cascade.store, "record_cascade", self._write)
        monkeypatch.setattr(cascade.metrics, "count_cascade", lambda *names: self.counted.append(names))
        monkeypatch.setattr(cascade.failover, "is_time_over", lambda since: self.over or since != 12.5)

    def _write(self, payment: Payment, outcome: Declined, **values: Any) -> bool:
        self.written.append((payment, outcome, values))
        payment.connector = values["connector"]
        return self.taken

    def __call__(
        self, payment: Payment | None = None, outcome: PaymentOutcome | None = None, asked: Any = None, plan: Any = PLAN
    ) -> Any:
        payment, outcome = payment or payment_of(), outcome or declined()
        return cascade.next_after_decline(payment, outcome, asked or request_of(), plan, since=12.5)


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch) -> Move:
    return Move(monkeypatch)


# --- whereto ---------------------------------------------------------------------------------------------------------


def test_a_decline_is_written_with_its_attempt_before_the_next_account_is_asked(move: Move) -> None:
    payment, outcome = payment_of(), declined()
    assert move(payment, outcome) == "connector of second"
    [(moved, kept, values)] = move.written
    assert (moved is payment, kept is outcome) == (True, True)
    tried = {
        "name": "The first", "connector": "first", "account": "at first", "code": NOT_HONOURED, "why": "05",
        "at": "2033-11-15T12:30:45+00:00", "sent": True, "declined": True,
    }  # fmt: skip
    assert values == {
        "connector": "second", "account": "at second", "plan": PLAN,
        "route": {"name": "The second", "maxCascades": 1, "cascades": 1, "rule": "all", "tried": [tried]},
    }  # fmt: skip
    assert move.counted == [("first", "second")]


@pytest.mark.parametrize(
    ("alternatives", "to", "later"),
    [
        ([SECOND, THIRD], "second", [THIRD]),
        ([GONE, SECOND, THIRD], "second", [THIRD]),
        ([SECOND, GONE, THIRD], "second", [THIRD]),
        ([GONE, THIRD], "third", []),
        ([FIRST, SECOND], "first", [SECOND]),
    ],
)
def test_the_first_account_goes_first_whose_connector_there_is(
    move: Move, alternatives: list[tuple[str, ...]], to: str, later: list[tuple[str, ...]]
) -> None:
    payment = payment_of(route={"next": alternatives})
    assert move(payment) == f"connector of {to}"
    [(_, _, values)] = move.written
    assert (values["connector"], values["account"]) == (to, f"at {to}")
    assert values["route"]["name"] == f"The {to}"
    assert values["route"].get("next", []) == later
    assert payment.route is not None
    assert payment.route["next"] == alternatives, "what is stored is what was written alone"


@pytest.mark.parametrize("alternatives", [[], [GONE]])
def test_without_another_account_the_decline_stands(move: Move, alternatives: list[tuple[str, ...]]) -> None:
    assert move(payment_of(route={"next": alternatives})) is None
    assert (move.written, move.counted) == ([], [])
    payment = payment_of()
    assert payment.route is not None
    del payment.route["next"]
    assert move(payment) is None


@pytest.mark.parametrize(
    ("route", "cascades"), [({}, 1), ({"cascades": 1, "maxCascades": 3, "tried": [{"name": "before"}]}, 2)]
)
def test_each_cascade_is_counted_and_what_was_tried_before_is_kept(
    move: Move, route: dict[str, Any], cascades: int
) -> None:
    assert move(payment_of(route=route)) is not None
    [(_, _, values)] = move.written
    assert values["route"]["cascades"] == cascades
    assert [one["name"] for one in values["route"]["tried"]] == ["before", "The first"][2 - cascades :]


def test_a_payment_that_another_worker_took_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    move = Move(monkeypatch, taken=False)
    assert move() is None
    assert (len(move.written), move.counted) == (1, [])


def test_after_its_time_no_other_account_is_asked(move: Move) -> None:
    move.over = True
    assert move() is None
    assert move.written == []


def test_an_attempt_without_a_named_account_has_its_number(move: Move) -> None:
    payment = payment_of(acquirer_merchant_id="4711")
    assert payment.route is not None
    del payment.route["name"]
    attempt = cascade._render_attempt(payment, AcquirerReply(code="800.100.171"), AT)
    assert (attempt["name"], attempt["account"], attempt["why"]) == ("4711", "4711", "")
    payment.route = None
    assert cascade._render_attempt(payment, AcquirerReply(code="800.100.171"), AT)["name"] == "4711"


# --- which payment, and which decline --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "may"),
    [
        ({}, True),
        ({"payment_type": "PA"}, True),
        *(({"payment_type": kind}, False) for kind in ("CD", "CP", "RF", "RB")),
        *(({"status": status}, status == Status.STARTED) for status in Status),
        ({"referenced": UUID(int=9)}, False),
        ({"route": {"maxCascades": 0}}, False),
        ({"route": {"maxCascades": 1, "cascades": 1}}, False),
        ({"route": {"maxCascades": 1, "cascades": 2}}, False),
        ({"route": {"maxCascades": 2, "cascades": 1}}, True),
    ],
    ids=str,
)
def test_a_payment_goes_on_by_its_type_its_state_and_its_rule(move: Move, values: dict[str, Any], may: bool) -> None:
    assert (move(payment_of(**values)) is not None) is may
    assert len(move.written) == int(may)


@pytest.mark.parametrize("route", [None, {}, {"next": [list(SECOND)]}])
def test_a_payment_without_a_rule_that_allows_it_goes_nowhere(move: Move, route: dict[str, Any] | None) -> None:
    payment = payment_of()
    payment.route = route
    assert move(payment) is None


@pytest.mark.parametrize(
    ("values", "may"),
    [
        ({}, True),
        ({"sent": {}}, False),
        ({"code": "800.100.155"}, False),
        ({"details": {"AcquirerResponse": "51"}}, False),
        ({"details": {"AcquirerResponse": ""}}, False),
        ({"code": "800.100.190"}, False),
        ({"code": "800.100.190", "details": {"AcquirerResponse": "03"}}, True),
        ({"details": {"MerchantAdviceCode": "00"}}, True),
        ({"details": {"MerchantAdviceCode": ""}}, True),
        ({"details": {"MerchantAdviceCode": "02"}}, False),
        ({"has_own_advice": True}, False),
    ],
    ids=str,
)
def test_a_decline_leads_on_by_its_codes_and_without_an_advice(move: Move, values: dict[str, Any], may: bool) -> None:
    assert (move(outcome=declined(**values)) is not None) is may


def test_a_decline_without_a_code_of_its_acquirer_stands(move: Move) -> None:
    reply = AcquirerReply(code=NOT_HONOURED, sent={"operation": "DB"})
    assert move(outcome=Declined(reply=reply, at=AT)) is None


def test_what_is_no_decline_stands(move: Move) -> None:
    assert move(outcome=Approved(reply=declined().reply, at=AT)) is None
    assert move.written == []


@pytest.mark.parametrize(
    ("card", "may"),
    [
        (CARD, True),
        (SimpleNamespace(wallet="", number_type="PAN"), True),
        (SimpleNamespace(wallet="", number_type="DPAN"), False),
        (SimpleNamespace(wallet="APPLEPAY", number_type="PAN"), False),
        (SimpleNamespace(wallet="APPLEPAY", number_type=""), False),
        (None, False),
    ],
    ids=str,
)
def test_only_the_number_of_a_card_is_sent_again(move: Move, card: Any, may: bool) -> None:
    asked = request_of()
    asked.card = card
    assert (move(asked=asked) is not None) is may


@pytest.mark.parametrize(
    ("code", "response", "cascadable"),
    [
        ("800.100.152", "05", True), ("800.100.152", "do_not_honor", False), ("800.100.183", "05", True),
        ("800.100.183", "do_not_honor", True), ("800.100.190", "03", True), ("800.100.190", "05", False),
        ("800.100.169", "31", True), ("800.100.164", "charge_exceeds_source_limit", True),
        ("800.100.164", "charge_exceeds_transaction_limit", True), ("800.100.164", "61", False),
        ("000.000.000", "05", False),
    ],
)  # fmt: skip
def test_a_decline_is_one_of_the_table_by_both_of_its_codes(code: str, response: str, cascadable: bool) -> None:
    assert cascade.is_cascadable(code, response) is cascadable


@pytest.mark.parametrize(
    ("values", "brand", "watched", "forbidden"),
    [
        ({}, "VISA", None, False),
        ({}, "VISA", False, False),
        ({}, "VISA", True, True),
        ({"has_own_advice": True}, "VISA", None, True),
        ({"details": {"MerchantAdviceCode": "01"}}, "VISA", None, True),
        ({"details": {"MerchantAdviceCode": "00"}}, "VISA", False, False),
        # A stop of Visa is none of another network.
        ({"code": "800.100.165"}, "VISA", None, True),
        ({"code": "800.100.165"}, "VISADEBIT", None, True),
        ({"code": "800.100.165"}, "MASTER", None, False),
        ({"code": "800.100.500"}, "AMEX", None, True),
    ],
)
def test_the_issuers_advice_its_stop_or_the_schemes_limit_forbid_another_attempt(
    values: dict[str, Any], brand: str, watched: bool | None, forbidden: bool
) -> None:
    """``watched``: whether the schemes' limit is reached by this decline; None for a card that is not watched."""
    watch = SimpleNamespace(verdict_after_decline=lambda: "declined" if watched else None)
    plan: Any = SimpleNamespace(retries=watch if watched is not None else None)
    asked = request_of(network_brand=brand)
    assert cascade.is_next_attempt_forbidden(declined(**values).reply, asked, plan) is forbidden
    if watched is None:
        assert cascade.is_next_attempt_forbidden(declined(**values).reply, asked, None) is forbidden


# --- where the next account did not judge it -------------------------------------------------------------------------


def test_a_decline_that_stands_has_the_exchange_of_the_last_attempt() -> None:
    said = AcquirerReply(
        code=NOT_HONOURED, details={"AcquirerResponse": "05"}, avs="N", cvv="M", facts={"card": {"a": "b"}},
        connector_tx_id="first", sent={"to": "first"}, received={"from": "first"},
    )  # fmt: skip
    last = AcquirerReply(
        code="900.100.600", details={"AcquirerResponse": "none"}, avs="X", cvv="X", facts={"x": "y"},
        connector_tx_id="second", sent={"to": "second"}, received={"from": "nobody"}, retryable_elsewhere=True,
    )  # fmt: skip
    later = AT.replace(hour=13)
    found = cascade.restore_decline(
        Declined(reply=said, at=AT, duration_ms=7), Declined(reply=last, at=later, duration_ms=9)
    )
    assert isinstance(found, Declined)
    assert (found.at, found.duration_ms) == (later, 9)
    reply = found.reply
    assert (reply.code, reply.details, reply.avs, reply.cvv, reply.facts) == (
        NOT_HONOURED, {"AcquirerResponse": "05"}, "N", "M", {"card": {"a": "b"}},
    )  # fmt: skip
    assert (reply.connector_tx_id, reply.sent, reply.received) == (
        "second", {"to": "second"}, {"from": "nobody"},
    )  # fmt: skip

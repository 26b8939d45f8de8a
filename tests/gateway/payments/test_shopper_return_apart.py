"""What a resumed payment is submitted with, who ends a payment whose shopper did not come back, and what is kept of the
exchanges: each argument by itself. No database but where it is said.

Source: decisions, section 5; Part A, States.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.accounts import ConnectorAccount
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply, AcquirerRequest, OutcomeUnknownError, Redirect
from gateway.connectors.simulator.connector import SIMULATOR
from gateway.core import clock
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import AuthenticationStep, Channel, Merchant, Payment, Status, Suspension
from gateway.payments import shopper_return
from gateway.payments.outcomes import Approved, Declined
from gateway.payments.payment_means import pack_one_time_secrets
from gateway.payments.shopper_return import TIMERS, AskingTime, ShopperReturnOrigin, decline_unauthenticated_payment
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import PrivateFacts
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationRejected
from gateway.vault.sealing import VaultError, current_vault
from tests.gateway.payments.test_shopper_return import challenged, redirected
from tests.support.fixtures import Shop

NOW, SECOND, DAY = datetime(2026, 11, 29, 12, 0, tzinfo=UTC), timedelta(seconds=1), timedelta(days=1)
IDENT = UUID(int=5)
TRACE: Any = object()
PLAN: Any = object()
MERCHANT = Merchant(id=UUID(int=1), name="Shop")


def pending(**values: Any) -> Payment:
    """A payment that waits, in memory only."""
    return Payment(**{
        "id": IDENT, "chain": IDENT, "merchant": MERCHANT, "channel": Channel(id=UUID(int=2)), "payment_type": "DB",
        "brand": "VISA", "amount": Decimal("92.00"), "currency": "EUR", "status": Status.PENDING, "means": "card",
        "connector": "simulator", "acquirer_merchant_id": "M-1", "created_at": NOW, "answer": {}, "request": {},
        **values,
    })  # fmt: skip


@pytest.fixture
def at_noon(monkeypatch: pytest.MonkeyPatch) -> list[Merchant]:
    """It is noon by every merchant's clock: whose was asked."""
    asked: list[Merchant] = []
    monkeypatch.setattr(clock, "merchant_now", lambda merchant: (asked.append(merchant), NOW)[1])
    return asked


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the store was asked to complete."""
    calls: list[Any] = []
    monkeypatch.setattr(shopper_return.store, "complete_payment", lambda *each, **named: calls.append((each, named)))
    return calls


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What screening was asked to plan."""
    asked: list[Any] = []
    monkeypatch.setattr(
        shopper_return.risk_screening, "plan_resumed_screening", lambda *each: (asked.append(each), PLAN)[1]
    )
    return asked


# --- back from authentication ---------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_payment_is_resumed_with_what_was_sent_what_is_sealed_and_the_proof(
    shop: Shop, planned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The security code and the accounts of a transfer are kept sealed while the shopper is away; the references of the
    agreement go before what was sent under their names."""
    row, other = challenged(shop), challenged(shop)
    card = Card(number=Secret("4"), expiry_month="05", expiry_year="2034", cvv=Secret("817"))
    sealed = pack_one_time_secrets(card, {"sender.accountNumber": Secret("4711")})
    assert sealed is not None
    Suspension.objects.filter(pk=row.pk).update(secrets_sealed=current_vault().seal(sealed, row.pk))
    facts = PrivateFacts(agreement_references={"billing.city": "agreed", "a": "b"}, exemption="LOW_VALUE")
    row.answer = row.answer | facts.as_json() | {"facts": {"threeDSecure": {"exemptionFlag": "01"}}}
    submitted: list[Any] = []
    done: list[Any] = []
    monkeypatch.setattr(shopper_return, "submit_with_step_up", lambda *each: (submitted.append(each), "outcome")[1])
    monkeypatch.setattr(shopper_return, "complete_unless_recovered", lambda *each, **named: done.append((each, named)))
    resumed: list[Any] = []
    resume = shopper_return.store.resume_payment
    monkeypatch.setattr(
        shopper_return.store,
        "resume_payment",
        lambda *each, at, plan: (resumed.append((each, at, plan)), resume(*each, at=at))[1],
    )
    began = clock.merchant_now(row.merchant)
    proof = {"threeDSecure.eci": "05"}
    assert shopper_return.resume_authenticated_payment(row, proof, TRACE) is row
    [(payment, connector, means, values, given, origin, plan)] = submitted
    assert (payment, connector, given.parameters, plan) == (row, SIMULATOR, proof, PLAN)
    assert isinstance(means, Card)
    assert (means.number.reveal(), means.cvv) == ("4200000000000042", Secret("817"))
    assert (values["customer.browser.language"], values["billing.city"], values["a"]) == ("en-GB", "agreed", "b")
    assert (values["threeDSecure.exemptionFlag"], values["sender.accountNumber"]) == ("01", Secret("4711"))
    assert origin == ShopperReturnOrigin(merchant=row.merchant, trace=TRACE)
    assert done == [((row, "outcome", origin), {"plan": PLAN})]
    [(asked, sent)] = planned
    assert (asked, sent["billing.city"]) == (row, "Berlin")
    [(each, at, its_plan)] = resumed
    assert (each, its_plan) == ((row,), PLAN)
    assert began <= at <= clock.merchant_now(row.merchant)
    assert list(Suspension.objects.values_list("pk", flat=True)) == [other.pk]


@pytest.mark.django_db
def test_of_two_that_resume_only_the_first_submits(
    shop: Shop, planned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = challenged(shop)
    monkeypatch.setattr(shopper_return, "submit_with_step_up", None)
    monkeypatch.setattr(shopper_return.store, "resume_payment", lambda *each, **named: False)
    Payment.objects.filter(pk=row.pk).update(connector_tx_id="READ")
    found = shopper_return.resume_authenticated_payment(row, {}, None)
    assert (found.connector_tx_id, found.status) == ("READ", "PENDING")


@pytest.mark.parametrize("facts", [None, {"x": {"y": "z"}}])
def test_who_did_not_authenticate_is_declined_with_what_the_issuer_said(
    at_noon: list[Merchant], completed: list[Any], planned: list[Any], facts: dict[str, Any] | None
) -> None:
    row = pending(request={"billing": {"city": "Rome"}})
    assert decline_unauthenticated_payment(row, "100.380.401", TRACE, facts) is row
    [((payment, outcome), named)] = completed
    assert (payment, named) == (row, {"trace": TRACE, "plan": PLAN})
    assert isinstance(outcome, Declined)
    assert (outcome.reply.code, outcome.reply.facts, outcome.at) == ("100.380.401", facts or {}, NOW)
    assert (at_noon, planned) == ([MERCHANT], [(row, {"billing.city": "Rome"})])


@pytest.mark.parametrize("passed", [True, False])
def test_an_outcome_goes_on_with_the_request_of_the_shopper_and_what_it_showed(
    monkeypatch: pytest.MonkeyPatch, passed: bool
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(
        shopper_return, "resume_authenticated_payment", lambda *each: (calls.append(("resume", *each)), "r")[1]
    )
    monkeypatch.setattr(
        shopper_return, "decline_unauthenticated_payment", lambda *each: (calls.append(("decline", *each)), "d")[1]
    )
    row, facts = pending(answer={"facts": {"a": "b"}}), {"threeDSecure": {"eci": "05"}}
    outcome: Any = (
        AuthenticationPassed(proof={"threeDSecure.eci": "05"}, facts=facts, attempt=1)
        if passed
        else AuthenticationRejected(code="100.380.401", facts=facts, attempt=1)
    )
    found: Any = shopper_return.apply_authentication_outcome(row, outcome, TRACE)
    if passed:
        assert (found, calls) == ("r", [("resume", row, {"threeDSecure.eci": "05"}, TRACE)])
        assert row.answer == {"facts": {"a": "b", **facts}}
    else:
        assert (found, calls) == ("d", [("decline", row, "100.380.401", TRACE, facts)])


def test_a_second_authentication_without_a_proof_leaves_the_soft_decline_and_what_it_showed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(shopper_return, "decline_unauthenticated_payment", lambda *each: calls.append(each))
    row, facts = pending(answer=PrivateFacts(attempt=2).as_json()), {"threeDSecure": {"eci": "07"}}
    outcome = AuthenticationPassed(proof={}, facts=facts, attempt=2)
    shopper_return.apply_authentication_outcome(row, outcome, TRACE)
    assert calls == [(row, "300.100.100", TRACE, facts)]


# --- authentications that are due -----------------------------------------------------------------------------------


def authentication(number: int, payment: UUID | None = None, **values: Any) -> Any:
    return SimpleNamespace(id=UUID(int=number), payment=payment, **{"server_url": "", **values})


@pytest.mark.django_db
def test_those_that_are_answered_go_on_and_the_others_expire(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails does not keep the others."""
    paid = challenged(shop)
    rows = [authentication(1, paid.pk), authentication(2), authentication(3), authentication(4, paid.pk)]
    asked: list[Any] = []
    monkeypatch.setattr(
        shopper_return.authentications, "list_due_authentications", lambda *each: (asked.append(each), rows)[1]
    )
    monkeypatch.setattr(
        shopper_return.authentications,
        "has_cardholder_answered",
        lambda row, now: (asked.append(now), row.id.int in (1, 2))[1],
    )

    def expire(ident: UUID) -> str:
        if ident.int == 3:
            raise RuntimeError
        return f"expired {ident.int}"

    monkeypatch.setattr(shopper_return.server, "complete_decoupled", lambda ident: f"answered {ident.int}")
    monkeypatch.setattr(shopper_return.server, "expire_authentication", expire)
    applied: list[Any] = []
    monkeypatch.setattr(shopper_return, "apply_authentication_outcome", lambda *each: applied.append(each))
    count = shopper_return.complete_due_authentications(limit=7, now=NOW, merchant=shop.merchant)
    assert count == 3
    assert asked == [(NOW, 7, shop.merchant), *[NOW] * 4]
    assert applied == [(paid, "answered 1", None), (paid, "expired 4", None)]
    before = clock.real_now()
    shopper_return.complete_due_authentications()
    now, limit, merchant = asked[5]
    assert before <= now <= clock.real_now()
    assert (limit, merchant) == (100, None)


class Servers:
    """External 3-D Secure servers: which authentications they were asked about, and how long each question takes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[int] = []
        self.takes_s: dict[int, float] = {}
        self.now = 100.0
        patch.setattr(shopper_return.time, "monotonic", lambda: self.now)
        patch.setattr(shopper_return.server, "expire_authentication", self.expire)

    def expire(self, ident: UUID) -> str:
        self.asked.append(ident.int)
        self.now += self.takes_s.get(ident.int, 0.0)
        return f"expired {ident.int}"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    return Servers(monkeypatch)


def test_a_server_that_hangs_keeps_only_its_own_authentications_waiting(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own server is asked nothing over a network, so it has no limit."""
    urls = ["https://hangs", "https://well", "https://hangs", "https://well", "", ""]
    rows = [authentication(number, server_url=url) for number, url in enumerate(urls)]
    monkeypatch.setattr(shopper_return.authentications, "list_due_authentications", lambda *each: rows)
    monkeypatch.setattr(shopper_return.authentications, "has_cardholder_answered", lambda row, now: False)
    servers.takes_s = {0: 5.0, 1: 4.9, 4: 60.0}
    assert shopper_return.complete_due_authentications() == 5
    assert servers.asked == [0, 1, 3, 4, 5]
    assert shopper_return.complete_due_authentications() == 5, "each run asks anew"


@pytest.mark.parametrize("status", [Status.DECLINED, Status.PENDING])
def test_payments_at_a_server_that_hangs_wait_for_the_next_run(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    rows = [overdue(Suspension.Stage.AUTHENTICATE) for _ in range(3)]
    found = [authentication(n, step="challenge", server_url=url) for n, url in enumerate(["h", "h", "w"])]
    monkeypatch.setattr(shopper_return, "claim_due_suspensions", lambda *each: rows)
    monkeypatch.setattr(shopper_return.authentications, "find_authentication_of_payment", lambda ident: found.pop(0))
    monkeypatch.setattr(shopper_return, "apply_authentication_outcome", lambda *each: Payment(status=status))
    servers.takes_s = {0: 5.0}
    assert shopper_return.expire_due_suspensions() == (2 if status == Status.DECLINED else 0)
    assert servers.asked == [0, 2]


# --- payments whose deadline has passed -----------------------------------------------------------------------------


@pytest.mark.parametrize(("final", "counted"), [((True, True, True), 3), ((True, False, True), 2), ((), 0)])
def test_those_that_are_final_are_counted(
    monkeypatch: pytest.MonkeyPatch, final: tuple[bool, ...], counted: int
) -> None:
    asked: list[Any] = []
    ends = list(final)
    claimed = [pending() for _ in final]
    monkeypatch.setattr(shopper_return, "claim_due_suspensions", lambda *each: (asked.append(each), claimed)[1])
    monkeypatch.setattr(shopper_return, "_expire_payment", lambda payment, asking: ends.pop(0))
    assert shopper_return.expire_due_suspensions(limit=7, now=NOW, merchant=MERCHANT) == counted
    assert asked == [(7, NOW, MERCHANT)]
    ends += final
    before = clock.real_now()
    shopper_return.expire_due_suspensions()
    limit, now, merchant = asked[1]
    assert (limit, merchant) == (100, None)
    assert before <= now <= clock.real_now()


def overdue(stage: Suspension.Stage) -> Payment:
    row = pending()
    row.suspension = Suspension(payment=row, stage=stage)
    return row


@pytest.mark.parametrize("ends", [True, False])
def test_a_part_that_is_held_too_long_is_given_back(monkeypatch: pytest.MonkeyPatch, ends: bool) -> None:
    row = overdue(Suspension.Stage.PART)
    asked: list[Any] = []
    monkeypatch.setattr(shopper_return.PART_EXPIRY, "get", lambda: lambda payment: (asked.append(payment), ends)[1])
    assert shopper_return._expire_payment(row, AskingTime()) is ends
    assert asked == [row]


@pytest.mark.parametrize("status", [Status.DECLINED, Status.PENDING, Status.APPROVED])
def test_an_authentication_that_is_not_there_never_succeeded(monkeypatch: pytest.MonkeyPatch, status: Status) -> None:
    row = overdue(Suspension.Stage.AUTHENTICATE)
    asked: list[Any] = []
    monkeypatch.setattr(
        shopper_return.authentications, "find_authentication_of_payment", lambda ident: asked.append(ident)
    )
    monkeypatch.setattr(
        shopper_return,
        "decline_unauthenticated_payment",
        lambda *each: (asked.append(each), Payment(status=status))[1],
    )
    assert shopper_return._expire_payment(row, AskingTime()) is (status == Status.DECLINED)
    assert asked == [IDENT, (row, "100.380.501", None)]


@pytest.mark.parametrize("status", [Status.DECLINED, Status.PENDING, Status.APPROVED])
@pytest.mark.parametrize(
    ("step", "deadline"),
    [
        (AuthenticationStep.CHALLENGE, NOW + DAY),
        (AuthenticationStep.DECOUPLED, NOW),
        (AuthenticationStep.DECOUPLED, NOW - SECOND),
        (AuthenticationStep.DECOUPLED, None),
    ],
)
def test_an_authentication_past_its_payments_deadline_expires(
    monkeypatch: pytest.MonkeyPatch, at_noon: list[Merchant], step: str, deadline: datetime | None, status: Status
) -> None:
    row = overdue(Suspension.Stage.AUTHENTICATE)
    found = authentication(9, step=step, deadline=deadline)
    monkeypatch.setattr(shopper_return.authentications, "find_authentication_of_payment", lambda ident: found)
    monkeypatch.setattr(shopper_return.server, "expire_authentication", lambda ident: f"expired {ident.int}")
    applied: list[Any] = []
    monkeypatch.setattr(
        shopper_return,
        "apply_authentication_outcome",
        lambda *each: (applied.append(each), Payment(status=status))[1],
    )
    assert shopper_return._expire_payment(row, AskingTime()) is (status != Status.PENDING)
    assert applied == [(row, "expired 9", None)]


@pytest.mark.django_db
def test_a_payment_waits_as_long_as_its_decoupled_authentication(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    row, other = challenged(shop), challenged(shop)
    Suspension.objects.update(lease_until=clock.real_now() + DAY)
    before = Suspension.objects.get(pk=other.pk).deadline
    later = clock.merchant_now(row.merchant) + DAY
    found = authentication(9, step=AuthenticationStep.DECOUPLED, deadline=later)
    monkeypatch.setattr(shopper_return.authentications, "find_authentication_of_payment", lambda ident: found)
    monkeypatch.setattr(shopper_return.server, "expire_authentication", None)
    assert (
        shopper_return._expire_payment(Payment.objects.select_related("suspension").get(pk=row.pk), AskingTime())
        is False
    )
    own, their = Suspension.objects.get(pk=row.pk), Suspension.objects.get(pk=other.pk)
    assert (own.deadline, own.lease_until) == (later, None)
    assert (their.deadline, their.lease_until is None) == (before, False)


@pytest.mark.parametrize("status", [Status.DECLINED, Status.PENDING, Status.APPROVED])
def test_an_order_elsewhere_is_taken_back_at_its_deadline(monkeypatch: pytest.MonkeyPatch, status: Status) -> None:
    row = overdue(Suspension.Stage.REDIRECT)
    asked: list[Any] = []
    monkeypatch.setattr(
        shopper_return, "_void_abandoned_order", lambda *each: (asked.append(each), Payment(status=status))[1]
    )
    assert shopper_return._expire_payment(row, AskingTime()) is (status != Status.PENDING)
    assert asked == [(row, "100.396.103", None)]


# --- asked at the bank or wallet ------------------------------------------------------------------------------------


class Acquirer:
    """Answers an inquiry and a void, or raises."""

    def __init__(self, found: Any = None, voided: Any = None) -> None:
        self.found, self.voided = found, voided
        self.asked: list[tuple[str, AcquirerRequest]] = []

    def inquire(self, request: AcquirerRequest) -> Any:
        return self._answer("inquire", request, self.found)

    def void(self, request: AcquirerRequest) -> Any:
        return self._answer("void", request, self.voided)

    def _answer(self, name: str, request: AcquirerRequest, answer: Any) -> Any:
        self.asked.append((name, request))
        if isinstance(answer, Exception):
            raise answer
        return answer


ACCOUNT = ConnectorAccount(merchant="M-1", settings={"a": "b"})
OPEN = AcquirerReply(code="000.200.000", redirect=Redirect(url="https://w.example"), sent={"ask": 1}, received={"o": 2})
PAID = AcquirerReply(code="000.100.110", approved=Money.parse("92.00", "EUR"), sent={"ask": 1}, received={"p": 2})
VOIDED = AcquirerReply(
    code="000.100.110", approved=Money.parse("92.00", "EUR"), connector_tx_id="V-1", details={"d": "e"},
    sent={"void": 1}, received={"v": 2}, avs="A", facts={"f": "g"},
)  # fmt: skip
SILENCE = OutcomeUnknownError("nobody answers", {"ask": 1})


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, at_noon: list[Merchant]) -> list[Any]:
    """The exchanges that were recorded; the clock of durations ticks a second each time it is read."""
    calls: list[Any] = []
    ticks = iter(range(1_000, 2_000))
    monkeypatch.setattr(shopper_return.store, "record_exchange", lambda *each, **named: calls.append((each, named)))
    monkeypatch.setattr(shopper_return, "load_connector_account", lambda *each: ACCOUNT)
    monkeypatch.setattr(shopper_return.time, "perf_counter", lambda: float(next(ticks)))
    return calls


def use(monkeypatch: pytest.MonkeyPatch, acquirer: Acquirer) -> Acquirer:
    monkeypatch.setattr(shopper_return, "CONNECTORS", {"simulator": acquirer})
    return acquirer


@pytest.mark.parametrize(
    ("found", "sent", "received"),
    [
        (OPEN, {"ask": 1}, {"o": 2}),
        (SILENCE, {"ask": 1}, {"silence": "nobody answers"}),
    ],
)
def test_an_order_that_is_open_there_stays_open_here(
    monkeypatch: pytest.MonkeyPatch, kept: list[Any], completed: list[Any], found: Any, sent: Any, received: Any
) -> None:
    use(monkeypatch, Acquirer(found))
    row = pending()
    assert shopper_return.complete_shopper_return(row, TRACE) is row
    assert kept == [((row, "inquire", sent, received), {"at": NOW, "duration_ms": 1_000})]
    assert completed == []


def test_an_order_that_was_paid_there_is_paid_here(
    monkeypatch: pytest.MonkeyPatch, kept: list[Any], completed: list[Any], at_noon: list[Merchant]
) -> None:
    acquirer = use(monkeypatch, Acquirer(PAID))
    row = pending()
    assert shopper_return.complete_shopper_return(row, TRACE) is row
    [(name, asked)] = acquirer.asked
    assert (name, asked.payment, asked.means, asked.account) == ("inquire", IDENT, None, ACCOUNT)
    [((payment, outcome), named)] = completed
    assert isinstance(outcome, Approved)
    assert (payment, named) == (row, {"trace": TRACE, "kind": "inquire"})
    assert (outcome.reply, outcome.at, outcome.duration_ms) == (PAID, NOW, 1_000)
    assert (kept, at_noon) == ([], [MERCHANT])


@pytest.mark.django_db
def test_who_learns_it_second_reads_how_it_ended(shop: Shop, monkeypatch: pytest.MonkeyPatch, kept: list[Any]) -> None:
    row = redirected(shop)
    use(monkeypatch, Acquirer(PAID))

    def overtaken(payment: Payment, *_: Any, **__: Any) -> None:
        Payment.objects.filter(pk=payment.pk).update(status=Status.DECLINED, result_code="100.396.101")
        raise PaymentTransitionError

    monkeypatch.setattr(shopper_return.store, "complete_payment", overtaken)
    found = shopper_return.complete_shopper_return(row, None)
    assert (found.status, found.result_code) == ("DECLINED", "100.396.101")


def test_an_order_that_was_taken_back_is_declined_with_what_the_void_said(
    monkeypatch: pytest.MonkeyPatch, kept: list[Any], completed: list[Any]
) -> None:
    """Nothing of it is an approval."""
    acquirer = use(monkeypatch, Acquirer(OPEN, VOIDED))
    row = pending()
    assert shopper_return._void_abandoned_order(row, "100.396.103", TRACE) is row
    assert [name for name, _ in acquirer.asked] == ["inquire", "void"]
    assert acquirer.asked[1][1].account is ACCOUNT
    [((payment, outcome), named)] = completed
    assert (payment, named) == (row, {"trace": TRACE, "kind": "void"})
    assert isinstance(outcome, Declined)
    assert outcome.duration_ms == 1_000
    assert outcome.reply == AcquirerReply(
        code="100.396.103", connector_tx_id="V-1", details={"d": "e"}, sent={"void": 1}, received={"v": 2}
    )


def test_an_order_that_was_paid_meanwhile_is_not_taken_back(monkeypatch: pytest.MonkeyPatch, kept: list[Any]) -> None:
    acquirer = use(monkeypatch, Acquirer(PAID, VOIDED))

    def complete(payment: Payment, *_: Any, **__: Any) -> None:
        payment.status = Status.APPROVED

    monkeypatch.setattr(shopper_return.store, "complete_payment", complete)
    row = pending()
    assert shopper_return._void_abandoned_order(row, "100.396.103", None) is row
    assert [name for name, _ in acquirer.asked] == ["inquire"]


def test_a_void_without_an_answer_is_kept(
    monkeypatch: pytest.MonkeyPatch, kept: list[Any], completed: list[Any]
) -> None:
    use(monkeypatch, Acquirer(OPEN, OutcomeUnknownError("no void", {"void": 1})))
    monkeypatch.setattr(shopper_return, "is_locally_queued", lambda payment: False)
    row = pending()
    assert shopper_return._void_abandoned_order(row, "100.396.103", TRACE) is row
    assert kept[1] == ((row, "void", {"void": 1}, {"silence": "no void"}), {"at": NOW, "duration_ms": 1_000})
    assert completed == []


def test_an_account_whose_secrets_do_not_open_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, kept: list[Any], completed: list[Any]
) -> None:
    acquirer = use(monkeypatch, Acquirer(PAID))
    asked: list[Any] = []

    def shut(*each: Any) -> Any:
        asked.append(each)
        raise VaultError("shut")

    monkeypatch.setattr(shopper_return, "load_connector_account", shut)
    row = pending()
    assert shopper_return.complete_shopper_return(row, TRACE) is row
    assert asked == [(acquirer, UUID(int=2), "M-1")]
    assert kept[0][0] == (row, "inquire", {}, {"silence": "the account's secrets do not open"})
    assert (acquirer.asked, completed) == ([], [])


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (Suspension.Stage.AUTHENTICATE, "decline"),
        (Suspension.Stage.REDIRECT, "void"),
    ],
)
@pytest.mark.django_db
def test_a_payment_that_is_given_up_ends_by_what_it_waits_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, stage: Suspension.Stage, expected: str
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(
        shopper_return, "decline_unauthenticated_payment", lambda *each: (calls.append(("decline", *each)), "d")[1]
    )
    monkeypatch.setattr(shopper_return, "_void_abandoned_order", lambda *each: (calls.append(("void", *each)), "v")[1])
    row, _ = redirected(shop), challenged(shop)
    Suspension.objects.filter(pk=row.pk).update(stage=stage)
    found: Any = shopper_return.withdraw_payment(row, TRACE)
    assert (found, calls) == (expected[0], [(expected, row, "100.396.101", TRACE)])


# --- the timers -----------------------------------------------------------------------------------------------------


def test_each_timer_runs_what_it_knows_the_next_of() -> None:
    deadlines, authenticated = TIMERS
    assert deadlines.run is shopper_return.expire_due_suspensions
    assert authenticated.run is shopper_return.complete_due_authentications
    assert deadlines.next_at is shopper_return.find_next_suspension_deadline
    assert authenticated.next_at is shopper_return.authentications.next_authentication_due

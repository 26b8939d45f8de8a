"""What is released of an authorization and when it is tried again, condition by condition. The acquirer answers by a
script; chains are in memory where nothing of them is read again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.db.models.functions import Now

from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply, AcquirerRequest, ConnectorAccount, OutcomeUnknownError
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.db.statement import execute_sql
from gateway.models import AuthorizationRelease, Merchant, Payment, Status
from gateway.payments import authorization_releases
from gateway.payments.authorization_releases import (
    MAX_RELEASE_TRIES,
    RELEASE_RETENTION,
    RELEASE_SWEEP_TIMER,
    TIMER,
    release_authorizations,
)
from gateway.payments.chain_amounts import Chain, Hold
from gateway.payments.follow_ups import FollowUpRequest, load_chain_members
from gateway.payments.operation_table import RELEASE_OPERATION
from gateway.payments.points_of_service import find_point_of_service
from gateway.payments.refusal import RequestRefusedError
from gateway.timers.registry import SWEEP_INTERVAL_S
from tests.support.chains import after, first
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
STARTED, DECLINED = {"status": Status.STARTED}, {"status": Status.DECLINED}
RENEWAL = {"practice": "REAUTHORIZATION"}
State, Cause = AuthorizationRelease.State, AuthorizationRelease.Cause


def insert_row(shop: Shop, authorization: UUID | None = None, **values: Any) -> AuthorizationRelease:
    return AuthorizationRelease.objects.create(
        authorization=authorization or identifiers.row_id(), merchant=shop.merchant, channel=shop.channel,
        **{"cause": Cause.FINAL, "currency": "EUR", "created_at": NOW, "due_at": NOW, **values},
    )  # fmt: skip


def is_about(at: datetime | None, delay: timedelta) -> bool:
    return at is not None and abs(at - clock.real_now() - delay) < MINUTE


# Which rows are looked at.


@pytest.fixture
def due(shop: Shop) -> dict[int | None, int]:
    """Due in so many seconds → the row's key."""
    return {
        delay: insert_row(shop, due_at=Now() + timedelta(seconds=delay) if delay is not None else None).pk
        for delay in (-1, -2, -3, 60, None)
    }


@pytest.mark.parametrize(("limit", "claimed"), [(1, [-3]), (2, [-2, -3]), (3, [-1, -2, -3]), (4, [-1, -2, -3])])
def test_the_longest_due_are_looked_at_under_a_lease(
    due: dict[int | None, int], monkeypatch: pytest.MonkeyPatch, limit: int, claimed: list[int]
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(authorization_releases, "_release_authorization", lambda row: seen.append(row.pk))
    monkeypatch.setattr(authorization_releases, "MAX_RELEASES_PER_TICK", limit)
    monkeypatch.setattr(authorization_releases, "RELEASE_LEASE", timedelta(seconds=5_000))
    before = dict(AuthorizationRelease.objects.values_list("pk", "due_at"))
    assert release_authorizations() == len(claimed)
    assert seen == [due[delay] for delay in claimed]
    for row in AuthorizationRelease.objects.all():
        assert is_about(row.due_at, timedelta(seconds=5_000)) if row.pk in seen else row.due_at == before[row.pk]


def test_one_that_fails_counts_as_one_try_whatever_it_had_counted(
    due: dict[int | None, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(row: AuthorizationRelease) -> None:
        row.tries += 5
        raise RuntimeError

    monkeypatch.setattr(authorization_releases, "_release_authorization", fail)
    monkeypatch.setattr(authorization_releases, "RELEASE_RETRIES", (timedelta(seconds=1_000), timedelta(seconds=2_000)))
    AuthorizationRelease.objects.filter(pk=due[-1]).update(tries=1)
    assert release_authorizations() == 3
    rows = AuthorizationRelease.objects.in_bulk()
    assert [rows[due[delay]].tries for delay in due] == [2, 1, 1, 0, 0]
    assert is_about(rows[due[-1]].due_at, timedelta(seconds=2_000))
    assert is_about(rows[due[-2]].due_at, timedelta(seconds=1_000))


# What becomes of one.


class Release:
    """One row of a chain in memory; ``answer``: what the reversal became. ``submitted``, ``renewed``: what was asked
    for."""

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch, members: list[Payment], **values: Any) -> None:
        self.row = insert_row(shop, members[0].id, tries=2, **values)
        self.other = insert_row(shop)
        self.answer: Payment | None = None
        self.submitted = self.renewed = 0
        monkeypatch.setattr(
            authorization_releases, "load_chain_members", lambda ident: members if ident == members[0].id else None
        )
        monkeypatch.setattr(authorization_releases, "_submit_release", self.submit)
        monkeypatch.setattr(authorization_releases, "_release_renewed", self.release_renewed)

    def submit(self, chain: Chain) -> Payment | None:
        self.submitted += 1
        return self.answer

    def release_renewed(self, row: AuthorizationRelease, chain: Chain) -> None:
        assert (row, chain.first.id) == (self.row, row.authorization)
        self.renewed += 1

    def run(self) -> AuthorizationRelease:
        authorization_releases._release_authorization(self.row)
        other = AuthorizationRelease.objects.get(pk=self.other.pk)
        assert (other.state, other.due_at, other.tries) == (State.OPEN, NOW, 0)
        return AuthorizationRelease.objects.get(pk=self.row.pk)


def held(**values: Any) -> Payment:
    return first("PA", **values)


@pytest.mark.parametrize("cause", [Cause.FINAL, Cause.RENEWAL])
@pytest.mark.parametrize(
    ("kind", "values"),
    [("RV", STARTED), ("CP", STARTED), ("RC", STARTED), ("PA", {**STARTED, "practice": "INCREMENTAL_AUTH"})],
)
def test_a_follow_up_without_a_result_is_waited_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, cause: str, kind: str, values: dict[str, Any]
) -> None:
    authorization = held()
    release = Release(shop, monkeypatch, [authorization, after(authorization, kind, "10.00", **values)], cause=cause)
    row = release.run()
    assert (release.submitted, release.renewed, row.state, row.tries, row.due_at) == (0, 0, State.OPEN, 2, NOW)
    release = Release(shop, monkeypatch, [authorization, after(authorization, kind, "10.00", **DECLINED)], cause=cause)
    release.run()
    assert release.submitted + release.renewed == 1


def test_what_a_renewal_replaced_is_released_in_its_own_way(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    release = Release(shop, monkeypatch, [held()], cause=Cause.RENEWAL)
    release.run()
    assert (release.submitted, release.renewed) == (0, 1)
    release = Release(shop, monkeypatch, [held()], cause=Cause.EXPIRY)
    release.run()
    assert (release.submitted, release.renewed) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "captured", "submitted"),
    [("PA", "100.00", False), ("PA", "100.01", False), ("PA", "99.99", True), ("DB", "0.01", False)],
)
def test_only_the_rest_of_an_authorization_is_released(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, kind: str, captured: str, submitted: bool
) -> None:
    authorization = first(kind)
    release = Release(shop, monkeypatch, [authorization, after(authorization, "CP", captured)])
    row = release.run()
    assert release.submitted == submitted
    assert row.state == (State.OPEN if submitted else State.NOTHING_LEFT)
    assert row.tries == 2 + submitted


def test_where_nothing_is_left_an_earlier_try_has_released_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Payment.objects.get(pk=shop.api.pay(amount="17.00").id)
    authorization = held()
    members = [authorization, after(authorization, "CP", "100.00")]
    row = Release(shop, monkeypatch, members, payment=tried.pk, result_code="000.100.110").run()
    assert (row.state, row.amount, row.due_at) == (State.RELEASED, Decimal("17.00"), None)


@pytest.mark.parametrize(
    ("status", "state", "amount"),
    [
        (Status.APPROVED, State.RELEASED, Decimal("60.00")),
        (Status.DECLINED, State.OPEN, None),
        (Status.IN_DOUBT, State.OPEN, None),
        (None, State.OPEN, None),
    ],
)
def test_a_try_is_counted_with_its_answer(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, status: Status | None, state: str, amount: Decimal | None
) -> None:
    """``status``: of the reversal, None where the chain did not allow it."""
    authorization = held()
    monkeypatch.setattr(authorization_releases, "RELEASE_RETRIES", tuple(timedelta(hours=one) for one in range(1, 9)))
    before = identifiers.row_id()
    release = Release(
        shop, monkeypatch, [authorization, after(authorization, "CP", "40.00")], payment=before, result_code="1"
    )
    if status is not None:
        release.answer = after(authorization, "RV", "1.00", status=status, result_code="2")
    row = release.run()
    assert (row.state, row.amount, row.tries) == (state, amount, 3)
    told = (release.answer.id, "2") if release.answer is not None else (before, "1")
    assert (row.payment, row.result_code) == told
    if state == State.OPEN:
        assert is_about(row.due_at, timedelta(hours=3))
    else:
        assert (row.due_at, row.ended_at is None) == (None, False)


@pytest.mark.parametrize(("tries", "delay_h"), [(1, 10), (2, 20), (3, 30), (4, 30), (7, 30), (8, None), (9, None)])
def test_each_try_waits_longer_until_it_is_given_up(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tries: int, delay_h: int | None
) -> None:
    assert MAX_RELEASE_TRIES == 8
    monkeypatch.setattr(
        authorization_releases, "RELEASE_RETRIES", tuple(timedelta(hours=hours) for hours in (10, 20, 30))
    )
    row, other = insert_row(shop), insert_row(shop)
    row.tries, row.result_code, row.payment = tries, "800.100.155", identifiers.row_id()
    authorization_releases._postpone_release(row)
    kept = AuthorizationRelease.objects.get(pk=row.pk)
    assert (kept.tries, kept.result_code, kept.payment) == (tries, "800.100.155", row.payment)
    if delay_h is None:
        assert (kept.state, kept.due_at) == (State.GIVEN_UP, None)
    else:
        assert kept.state == State.OPEN
        assert is_about(kept.due_at, timedelta(hours=delay_h))
    assert AuthorizationRelease.objects.get(pk=other.pk).due_at == NOW


@pytest.mark.parametrize(
    ("state", "amount", "paid", "ends", "shown"),
    [
        (State.RELEASED, Decimal(5), "APPROVED", State.RELEASED, Decimal(5)),
        (State.RELEASED, None, "APPROVED", State.RELEASED, Decimal("92.00")),
        (State.RELEASED, None, "DECLINED", State.NOTHING_LEFT, None),
        (State.RELEASED, None, "", State.RELEASED, None),
        (State.NOTHING_LEFT, None, "APPROVED", State.NOTHING_LEFT, None),
        (State.GIVEN_UP, None, "APPROVED", State.GIVEN_UP, None),
        (State.GIVEN_UP, None, "DECLINED", State.GIVEN_UP, None),
    ],
)
def test_a_row_ends_with_what_was_released(
    shop: Shop, state: AuthorizationRelease.State, amount: Decimal | None, paid: str, ends: str, shown: Decimal | None
) -> None:
    """``paid``: the status of its reversal, '' for none."""
    row, other = insert_row(shop, amount=amount), insert_row(shop)
    shop.api.pay(amount="3.00")
    if paid:
        numbers = {"card__number": "4000015500000005"} if paid == "DECLINED" else {}
        row.payment = UUID(shop.api.pay(**numbers).id)
    row.tries, row.result_code = 6, "3"
    authorization_releases._end_release(row, state)
    kept = AuthorizationRelease.objects.get(pk=row.pk)
    assert (kept.state, kept.amount, kept.due_at) == (ends, shown, None)
    assert (kept.tries, kept.result_code, kept.payment) == (6, "3", row.payment)
    assert is_about(kept.ended_at, timedelta(0))
    assert AuthorizationRelease.objects.get(pk=other.pk).state == State.OPEN


# The reversal of the rest.


def test_a_release_is_a_reversal_of_the_rest_of_the_chain(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ident = shop.api.pay(paymentType="PA", amount="100.00").id
    shop.api.follow(ident, "CP", "40.00", sequence="FINAL")
    shop.merchant.clock_offset = timedelta(days=40)
    shop.merchant.save()
    chain = Chain(load_chain_members(UUID(ident)))
    asked: list[FollowUpRequest] = []
    answer = Payment()

    def process(request: FollowUpRequest) -> Payment:
        asked.append(request)
        return answer

    monkeypatch.setattr(authorization_releases, "process_follow_up", process)
    assert authorization_releases._submit_release(chain) is answer
    [request] = asked
    assert (request.target, request.merchant, request.channel) == (UUID(ident), shop.merchant, None)
    assert request.operation is RELEASE_OPERATION
    sent = {"paymentType": "RV", "amount": "60.00", "currency": "EUR"}
    assert {name: request.parameters.get(name) for name in sent} == sent
    assert is_about(request.now, timedelta(days=40))
    trace = request.trace
    assert (trace.method, trace.path, trace.entity) == ("RELEASE", "REST", shop.channel.pk)
    assert is_about(trace.at, timedelta(0))
    assert len({request.payment, trace.request, UUID(ident)}) == 3


def test_a_release_that_the_chain_does_not_allow_is_none(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: FollowUpRequest) -> Payment:
        raise RequestRefusedError("700.400.530")

    monkeypatch.setattr(authorization_releases, "process_follow_up", refuse)
    ident = shop.api.pay(paymentType="PA").id
    assert authorization_releases._submit_release(Chain(load_chain_members(UUID(ident)))) is None


# The void of what a renewal replaced.


class Voiding:
    def __init__(self, answer: AcquirerReply | OutcomeUnknownError) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    def void(self, request: Any) -> AcquirerReply:
        self.asked.append(request)
        if isinstance(self.answer, OutcomeUnknownError):
            raise self.answer
        return self.answer


VOIDED = AcquirerReply(code="000.100.110", sent={"void": "a"}, received={"said": "b"})
SILENCE = OutcomeUnknownError("no line", {"void": "c"})
AUTHORIZED = held(number=1, connector="card host", acquirer_merchant_id="M-1", channel_id=UUID(int=5))
CAPTURED = after(AUTHORIZED, "CP", "30.00", number=2)
REVERSED = after(AUTHORIZED, "RV", "20.00", number=3)
FIRST_RENEWAL = after(AUTHORIZED, "PA", "50.00", number=4, connector="card host", **RENEWAL)
LATE_CAPTURE = after(AUTHORIZED, "CP", "10.00", number=5)
SECOND_RENEWAL = after(AUTHORIZED, "PA", "40.00", number=6, connector="card host", **RENEWAL)
NEARLY_ALL_CAPTURED = after(AUTHORIZED, "CP", "99.50", number=2)
ALL_CAPTURED = after(AUTHORIZED, "CP", "80.00", number=2)
TOO_MUCH_CAPTURED = after(AUTHORIZED, "CP", "90.00", number=2)


@pytest.mark.parametrize(
    ("members", "renewal", "replaced", "hold"),
    [
        ([AUTHORIZED, FIRST_RENEWAL], FIRST_RENEWAL, AUTHORIZED, (100, 0, 0)),
        ([AUTHORIZED, CAPTURED, REVERSED, FIRST_RENEWAL], FIRST_RENEWAL, AUTHORIZED, (100, 30, 20)),
        ([AUTHORIZED, NEARLY_ALL_CAPTURED, FIRST_RENEWAL], FIRST_RENEWAL, AUTHORIZED, (100, "99.50", 0)),
        ([AUTHORIZED, CAPTURED, FIRST_RENEWAL, LATE_CAPTURE, SECOND_RENEWAL], FIRST_RENEWAL, AUTHORIZED, (100, 30, 0)),
        ([AUTHORIZED, CAPTURED, FIRST_RENEWAL, LATE_CAPTURE, SECOND_RENEWAL], SECOND_RENEWAL, FIRST_RENEWAL,
         (50, 10, 0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("answer", [VOIDED, SILENCE], ids=["answered", "silent"])
def test_what_a_renewal_replaced_is_voided_but_for_what_was_taken_of_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, members: list[Payment], renewal: Payment, replaced: Payment,
    hold: tuple[Any, ...], answer: Any,
) -> None:  # fmt: skip
    row, exchanges, acquirer = prepare_renewed(shop, monkeypatch, members, renewal, answer)
    authorization_releases._release_renewed(row, Chain(members))
    authorized, captured, reversed_ = map(Decimal, hold)
    held_then = Hold(authorized=authorized, captured=captured, reversed=reversed_)
    assert acquirer.asked == [(replaced, held_then, row)]
    kept = AuthorizationRelease.objects.get(pk=row.pk)
    assert kept.tries == 3
    if answer is VOIDED:
        assert (kept.state, kept.amount) == (State.RELEASED, authorized - captured - reversed_)
        sent, received = {"void": "a"}, {"said": "b"}
    else:
        assert (kept.state, kept.amount) == (State.OPEN, None)
        sent, received = {"void": "c"}, {"silence": "no line"}
    at = NOW + timedelta(days=9, seconds=2.5)
    assert exchanges == [((replaced, "void", sent, received), {"at": at, "duration_ms": 2_500})]


@pytest.mark.parametrize(
    ("members", "apart"),
    [
        ([AUTHORIZED, ALL_CAPTURED, REVERSED, FIRST_RENEWAL], True),
        ([AUTHORIZED, TOO_MUCH_CAPTURED, REVERSED, FIRST_RENEWAL], True),
        ([AUTHORIZED, FIRST_RENEWAL], False),
    ],
)
def test_of_what_a_renewal_replaced_nothing_is_voided_where_nothing_is_held(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, members: list[Payment], apart: bool
) -> None:
    row, exchanges, acquirer = prepare_renewed(shop, monkeypatch, members, FIRST_RENEWAL, VOIDED, apart=apart)
    authorization_releases._release_renewed(row, Chain(members))
    assert (acquirer.asked, exchanges) == ([], [])
    kept = AuthorizationRelease.objects.get(pk=row.pk)
    assert (kept.state, kept.tries, kept.amount) == (State.NOTHING_LEFT, 2, None)


def prepare_renewed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, members: list[Payment], renewal: Payment, answer: Any, *,
    apart: bool = True,
) -> tuple[AuthorizationRelease, list[Any], Voiding]:  # fmt: skip
    acquirer = Voiding(answer)
    exchanges: list[Any] = []
    members[0].merchant = Merchant(clock_offset=timedelta(days=9))
    row = insert_row(shop, members[0].id, cause=Cause.RENEWAL, payment=renewal.id, tries=2)

    def is_apart(connector: Any, channel: UUID | None, merchant: str) -> bool:
        assert connector is acquirer
        assert (channel, merchant) in ((UUID(int=5), "M-1"), (None, ""))
        return apart

    def record(*call: Any, **names: Any) -> None:
        exchanges.append((call, names))

    def build(chain: Chain, replaced: Payment, hold: Hold, asked: AuthorizationRelease) -> Any:
        assert chain.members is members
        return replaced, hold, asked

    times = iter([NOW, NOW + timedelta(seconds=2.5), NOW, NOW])
    monkeypatch.setattr(clock, "real_now", lambda: next(times))
    for name, value in (
        ("CONNECTORS", {"card host": acquirer}), ("holds_renewals_apart", is_apart), ("_build_void", build),
        ("store", SimpleNamespace(record_exchange=record)),
    ):  # fmt: skip
        monkeypatch.setattr(authorization_releases, name, value)
    return row, exchanges, acquirer


def test_a_void_names_what_was_replaced_and_began_with_its_row(shop: Shop) -> None:
    practice = {"standingInstruction.industryPractice": "REAUTHORIZATION"}
    ident = shop.api.pay(paymentType="PA", amount="100.00", descriptor="Shop of Jane").id
    renewal = shop.api.follow(ident, "PA", "70.00", **practice).id
    Payment.objects.filter(pk=ident).update(acquirer_merchant_id="M-1")
    Payment.objects.filter(pk=renewal).update(acquirer_merchant_id="M-2", brand="MASTER")
    chain = Chain(load_chain_members(UUID(ident)))
    replaced, renewed = chain.members
    hold = Hold(authorized=Decimal(110), captured=Decimal(30), reversed=Decimal(20))
    row = insert_row(shop, UUID(ident))
    request = authorization_releases._build_void(chain, replaced, hold, row)
    assert isinstance(request.means, Card)
    assert request.means.number.reveal() == "4200000000000000"
    assert request.parameters["descriptor"] == "Shop of Jane"
    expected = AcquirerRequest(
        payment=replaced.id,
        operation="PA",
        money=Money(Decimal("100.00"), "EUR"),
        brand="VISA",
        at=NOW,
        known_transaction_id=replaced.connector_tx_id,
        account=ConnectorAccount(merchant="M-1", channel=shop.channel.pk),
        original=find_point_of_service(chain, replaced),
        authorized_amount=Decimal(110),
        kept_amount=Decimal(30),
    )
    assert replace(request, means=None, parameters={}) == expected
    request = authorization_releases._build_void(chain, renewed, hold, row)
    assert replace(request, means=None, parameters={}) == replace(
        expected,
        payment=renewed.id,
        money=Money(Decimal("70.00"), "EUR"),
        brand="MASTER",
        reference=replaced.connector_tx_id,
        known_transaction_id=renewed.connector_tx_id,
        account=ConnectorAccount(merchant="M-2", channel=shop.channel.pk),
        original=find_point_of_service(chain, renewed),
    )


def test_the_oldest_of_what_ended_long_ago_is_forgotten_first(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization_releases, "MAX_SWEPT_ROWS", 1)
    old = clock.real_now() - RELEASE_RETENTION
    later, oldest, recent = (
        insert_row(shop, due_at=None, ended_at=old - days * timedelta(days=1)).pk for days in (1, 2, -1)
    )
    assert RELEASE_SWEEP_TIMER.run() == 1
    assert set(AuthorizationRelease.objects.values_list("pk", flat=True)) == {later, recent}
    assert RELEASE_SWEEP_TIMER.run() == 1
    assert RELEASE_SWEEP_TIMER.run() == 0
    assert not AuthorizationRelease.objects.filter(pk=oldest).exists()


def test_the_timers_run_when_the_first_is_due_and_by_real_time(due: dict[int | None, int]) -> None:
    [[earliest]] = execute_sql(TIMER.earliest_due, {})
    assert earliest == AuthorizationRelease.objects.get(pk=due[-3]).due_at
    assert RELEASE_SWEEP_TIMER.every_s == SWEEP_INTERVAL_S
    assert TIMER.run is authorization_releases.release_authorizations

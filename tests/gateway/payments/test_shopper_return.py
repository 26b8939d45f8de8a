"""When a suspended payment is ended, by whom, and where its shopper is sent: each condition by itself.

Source: decisions, section 5; Part A, States.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from gateway.connectors.port import NotFoundAtAcquirer, OutcomeUnknownError
from gateway.connectors.simulator.connector import SIMULATOR
from gateway.core import clock, identifiers
from gateway.models import AcquirerExchange, AuthenticationStep, Merchant, Payment, Status, Suspension
from gateway.payments import shopper_return, shopper_tokens
from gateway.payments.shopper_return import (
    build_resource_path,
    build_result_url,
    build_shopper_return_url,
    claim_due_suspensions,
    find_next_suspension_deadline,
    find_payment_by_token,
)
from gateway.payments.stored_answer import HeldPart, PrivateFacts
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationPending, AuthenticationRejected
from tests.support.fixtures import Shop
from tests.support.redirected_shopper import order
from tests.support.threeds import buy

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
PATH = "/v1/payments/abc"
PART = PrivateFacts(held_part=HeldPart(amount="46.00", granted_at="", code="000.100.110")).as_json()


def read(ident: Any) -> Payment:
    return Payment.objects.select_related("merchant", "channel").get(pk=ident)


def redirected(shop: Shop, deadline: datetime | None = None, **values: Any) -> Payment:
    """Its shopper is at a wallet, until then."""
    found = order(shop.api, "WEBWALLET").id
    if deadline is not None:
        Suspension.objects.filter(pk=found).update(deadline=deadline, **values)
    return read(found)


def challenged(shop: Shop) -> Payment:
    """Its shopper is at the issuer's challenge."""
    waiting = buy(shop.api_of(shop.open_channel(identifiers.row_id().hex, three_d_secure=True)))
    assert waiting.code == "000.200.000", waiting
    return read(waiting.id)


@pytest.fixture
def now() -> datetime:
    return clock.real_now()


# --- addresses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "back"),
    [
        ("https://shop.example", "https://shop.example?id=abc&resourcePath=%2Fv1%2Fpayments%2Fabc"),
        ("https://shop.example/r?a=1", "https://shop.example/r?a=1&id=abc&resourcePath=%2Fv1%2Fpayments%2Fabc"),
        ("https://shop.example/r#end", "https://shop.example/r?id=abc&resourcePath=%2Fv1%2Fpayments%2Fabc#end"),
        ("http://例え.jp:8080/", "http://xn--r8jz45g.jp:8080/?id=abc&resourcePath=%2Fv1%2Fpayments%2Fabc"),
        ("https://例え.jp/é", "https://xn--r8jz45g.jp/%C3%A9?id=abc&resourcePath=%2Fv1%2Fpayments%2Fabc"),
        ("https://me@例え.jp/", "https://me@xn--r8jz45g.jp/?id=abc&resourcePath=%2Fv1%2Fpayments%2Fabc"),
        ("app.example://öffnen/x", "app.example://%C3%B6ffnen/x?id=abc&resourcePath=%2Fv1%2Fpayments%2Fabc"),
    ],
)
def test_a_shopper_goes_back_to_the_merchants_address_with_the_payment(url: str, back: str) -> None:
    assert build_shopper_return_url(url, PATH) == back


@pytest.mark.parametrize(
    ("stored", "path"), [("", "/v1/payments/{}"), ("/v1/checkouts/c1/payment", "/v1/checkouts/c1/payment")]
)
def test_the_result_is_read_where_the_payment_was_begun(stored: str, path: str) -> None:
    row = Payment(resource_path=stored, request={"shopperResultUrl": "https://shop.example/r"})
    path = path.format(row.id.hex)
    assert build_resource_path(row) == path
    ident = path.split("/")[3]
    assert build_result_url(row) == f"https://shop.example/r?id={ident}&resourcePath={path.replace('/', '%2F')}"


def test_a_payment_without_an_address_has_no_way_back() -> None:
    assert build_result_url(Payment(request={})) is None


@pytest.mark.django_db
def test_a_payment_is_found_by_its_own_token_only(shop: Shop, django_assert_num_queries: Any) -> None:
    own, other = (Payment.objects.get(pk=shop.api.pay().id) for _ in range(2))
    token = shopper_tokens.build_shopper_token(own.pk)
    with django_assert_num_queries(1):
        found = find_payment_by_token(own.pk, token)
        assert found is not None
        assert (found.pk, found.merchant.pk, found.channel.pk) == (own.pk, shop.merchant.pk, shop.channel.pk)
    gone = identifiers.row_id()
    for ident, sent in (
        (None, token),
        (other.pk, token),
        (gone, token),
        (gone, shopper_tokens.build_shopper_token(gone)),
    ):
        assert find_payment_by_token(ident, sent) is None


# --- deadlines ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("ahead", [timedelta(0), 40 * DAY, -40 * DAY])
@pytest.mark.parametrize(("left", "due"), [(-SECOND, True), (timedelta(0), True), (SECOND, False)])
def test_a_payment_is_due_at_its_deadline_by_its_merchants_clock(
    shop: Shop, stranger: Shop, now: datetime, ahead: timedelta, left: timedelta, due: bool
) -> None:
    own, _other = redirected(shop, now + ahead + left), redirected(stranger, now + SECOND)
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    assert claim_due_suspensions(9, now) == ([own] if due else [])


@pytest.mark.django_db
def test_those_that_are_late_longest_are_taken_first_and_nobody_elses_twice(shop: Shop, now: datetime) -> None:
    """For as long as two calls of the acquirer may take."""
    rows = [redirected(shop, now - minutes * SECOND) for minutes in (1, 3, 2)]
    before = clock.real_now()
    assert claim_due_suspensions(2, now) == [rows[1], rows[2]]
    leases = Suspension.objects.exclude(lease_until=None).values_list("lease_until", flat=True)
    assert len(leases) == 2
    for lease in leases:
        assert before + 22 * SECOND <= lease < before + 60 * SECOND
    assert claim_due_suspensions(9, now) == [rows[0]]
    assert claim_due_suspensions(9, now) == []
    Suspension.objects.update(lease_until=now - SECOND)
    assert claim_due_suspensions(9, now) == rows


@pytest.mark.django_db
def test_the_payments_of_one_merchant_are_taken_or_those_of_all(shop: Shop, stranger: Shop, now: datetime) -> None:
    own, other = redirected(shop, now), redirected(stranger, now)
    assert claim_due_suspensions(9, now, stranger.merchant) == [other]
    assert claim_due_suspensions(9, now) == [own]


@pytest.mark.django_db
def test_a_payment_that_moved_on_is_not_ended(shop: Shop, now: datetime) -> None:
    row = redirected(shop, now)
    Payment.objects.filter(pk=row.pk).update(status=Status.IN_DOUBT)
    assert claim_due_suspensions(9, now) == []


@pytest.mark.django_db
def test_the_next_deadline_is_the_merchants_earliest(shop: Shop, stranger: Shop, now: datetime) -> None:
    assert find_next_suspension_deadline(shop.merchant) is None
    redirected(stranger, now)
    assert find_next_suspension_deadline(shop.merchant) is None
    for days in (3, 1, 2):
        redirected(shop, now + days * DAY)
    assert find_next_suspension_deadline(shop.merchant) == now + DAY


@pytest.mark.django_db
def test_one_payment_that_cannot_be_ended_does_not_keep_the_others(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [redirected(shop, now) for _ in range(3)]
    real = shopper_return._expire_payment

    def expire(payment: Payment, asking: Any) -> bool:
        if payment.pk == rows[0].pk:
            raise RuntimeError
        return real(payment, asking)

    monkeypatch.setattr(shopper_return, "_expire_payment", expire)
    assert shopper_return.expire_due_suspensions(now=now) == 2
    assert [read(row.pk).status for row in rows] == ["PENDING", "DECLINED", "DECLINED"]


# --- authentication -------------------------------------------------------------------------------------------------


def waiting(step: str, deadline: datetime) -> AuthenticationPending:
    return AuthenticationPending(authentication=identifiers.row_id(), step=step, deadline=deadline, shopper=True)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("step", "more", "moved"),
    [
        (AuthenticationStep.DECOUPLED, DAY, True),
        (AuthenticationStep.DECOUPLED, -SECOND, False),
        (AuthenticationStep.CHALLENGE, DAY, False),
    ],
)
def test_a_decoupled_authentication_may_take_longer_than_its_method_page(
    shop: Shop, step: str, more: timedelta, moved: bool
) -> None:
    row, other, elsewhere = challenged(shop), challenged(shop), redirected(shop)
    before = {one.pk: one.deadline for one in Suspension.objects.all()}
    deadline = before[row.pk] + more
    assert shopper_return.apply_authentication_outcome(row, waiting(step, deadline), None) is row
    after = {one.pk: one.deadline for one in Suspension.objects.all()}
    assert after == before | ({row.pk: deadline} if moved else {})
    assert {row.pk, other.pk, elsewhere.pk} == set(after)
    shopper_return.apply_authentication_outcome(elsewhere, waiting(step, before[elsewhere.pk] + DAY), None)
    assert Suspension.objects.get(pk=elsewhere.pk).deadline == before[elsewhere.pk]


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", [AuthenticationPassed, AuthenticationRejected])
def test_the_outcome_of_another_attempt_does_not_continue_the_payment(shop: Shop, outcome: Any) -> None:
    row = challenged(shop)
    values = {"code": "100.380.401"} if outcome is AuthenticationRejected else {}
    for stale in (row, read(row.pk)):
        found = shopper_return.apply_authentication_outcome(stale, outcome(attempt=2, **values), None)
        assert (found.status, read(row.pk).status) == ("PENDING", "PENDING")


@pytest.mark.django_db
def test_who_asks_late_sees_which_attempt_the_payment_is_at(shop: Shop) -> None:
    row = challenged(shop)
    Payment.objects.filter(pk=row.pk).update(answer=row.answer | PrivateFacts(attempt=2).as_json())
    rejected = AuthenticationRejected(code="100.380.401", facts={"risk": {"score": "7"}}, attempt=2)
    shopper_return.apply_authentication_outcome(row, rejected, None)
    found = read(row.pk)
    assert (found.status, found.result_code, found.answer["facts"]["risk"]) == (
        "DECLINED", "100.380.401", {"score": "7"},
    )  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("attempt", "proof", "code"),
    [
        (1, {}, "000.100.110"),
        (2, {"threeDSecure.authenticationStatus": "A", "threeDSecure.verificationId": "x"}, "300.100.100"),
        (2, {"threeDSecure.authenticationStatus": "Y"}, "300.100.100"),
    ],
)
def test_after_a_soft_decline_only_a_full_authentication_is_submitted(
    shop: Shop, attempt: int, proof: dict[str, str], code: str
) -> None:
    row = challenged(shop)
    row.answer = row.answer | PrivateFacts(attempt=attempt).as_json()
    shopper_return.apply_authentication_outcome(row, AuthenticationPassed(proof=proof, attempt=attempt), None)
    assert read(row.pk).result_code == code


CHANGES: dict[str, Any] = {
    "resume": lambda row: shopper_return.resume_authenticated_payment(row, {}, None),
    "decline": lambda row: shopper_return.decline_unauthenticated_payment(row, "100.380.401", None),
    "return": lambda row: shopper_return.complete_shopper_return(row, None),
    "withdraw": lambda row: shopper_return.withdraw_payment(row, None),
}


@pytest.mark.django_db
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("status", ["STARTED", "IN_DOUBT", "APPROVED", "DECLINED"])
def test_a_payment_that_does_not_wait_is_left_as_it_is(shop: Shop, change: str, status: str) -> None:
    row = challenged(shop)
    asked = AcquirerExchange.objects.count()
    row.status = status
    assert CHANGES[change](row) is row
    assert (row.status, read(row.pk).status, AcquirerExchange.objects.count()) == (status, "PENDING", asked)


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["decline", "return", "withdraw"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_payment_that_holds_a_part_is_left_as_it_is(shop: Shop, change: str, elsewhere: bool) -> None:
    row = redirected(shop) if elsewhere else challenged(shop)
    row.answer = row.answer | PART
    assert CHANGES[change](row) is row
    assert read(row.pk).status == "PENDING"


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["resume", "withdraw"])
def test_a_payment_that_waits_no_more_is_read_again(shop: Shop, change: str) -> None:
    row = challenged(shop)
    Suspension.objects.filter(pk=row.pk).delete()
    Payment.objects.filter(pk=row.pk).update(connector_tx_id="READ")
    found = CHANGES[change](row)
    assert (found.status, found.connector_tx_id) == ("PENDING", "READ")


@pytest.mark.django_db
def test_a_shopper_at_a_wallet_is_not_resumed_as_authenticated(shop: Shop) -> None:
    row = redirected(shop)
    assert CHANGES["resume"](row).status == "PENDING"
    assert read(row.pk).status == "PENDING"


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["decline", "withdraw"])
def test_who_comes_second_sees_how_the_payment_ended(shop: Shop, change: str) -> None:
    row, same = challenged(shop), None
    same = read(row.pk)
    assert CHANGES[change](same).status == "DECLINED"
    code = read(row.pk).result_code
    assert code == {"decline": "100.380.401", "withdraw": "100.396.101"}[change]
    again = shopper_return.decline_unauthenticated_payment(row, "100.390.124", None)
    assert (again.status, again.result_code) == ("DECLINED", code)
    assert read(row.pk).result_code == code


# --- at a bank or wallet --------------------------------------------------------------------------------------------


def fail(_self: Any, _request: Any) -> Any:
    raise OutcomeUnknownError("no answer", {"asked": "it"})


def exchanges(payment: Payment) -> list[tuple[str, Any]]:
    rows = AcquirerExchange.objects.filter(payment=payment.pk).order_by("id")
    return [(row.kind, row.sent) for row in rows][1:]


@pytest.mark.django_db
def test_a_wallet_that_does_not_answer_leaves_the_payment_open(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    row = redirected(shop)
    monkeypatch.setattr(type(SIMULATOR), "inquire", fail)
    assert CHANGES["return"](row).status == "PENDING"
    assert exchanges(row) == [("inquire", {"asked": "it"})]


@pytest.mark.django_db
def test_a_wallet_that_does_not_know_the_payment_leaves_it_open(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    row = redirected(shop)
    found = NotFoundAtAcquirer(sent={"asked": "it"}, received={"known": "no"})
    monkeypatch.setattr(type(SIMULATOR), "inquire", lambda _self, _request: found)
    assert CHANGES["return"](row).status == "PENDING"
    assert exchanges(row) == [("inquire", {"asked": "it"})]
    assert AcquirerExchange.objects.filter(payment=row.pk).latest("id").received == {"known": "no"}


@pytest.mark.django_db
@pytest.mark.parametrize("queued", [False, True])
def test_an_order_that_cannot_be_taken_back_stays_open_and_one_in_a_bank_file_for_a_day(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, queued: bool
) -> None:
    row, other = redirected(shop), redirected(shop)
    Suspension.objects.update(lease_until=clock.real_now() + DAY)
    before = {one.pk: one.deadline for one in Suspension.objects.all()}
    monkeypatch.setattr(type(SIMULATOR), "void", fail)
    monkeypatch.setattr(shopper_return, "is_locally_queued", lambda payment: queued and payment.pk == row.pk)
    started = clock.merchant_now(row.merchant)
    assert CHANGES["withdraw"](row).status == "PENDING"
    assert [kind for kind, _ in exchanges(row)] == ["inquire", "void"]
    after = {one.pk: one for one in Suspension.objects.all()}
    assert (after[other.pk].deadline, after[other.pk].lease_until is None) == (before[other.pk], False)
    if queued:
        assert started + DAY <= after[row.pk].deadline < started + DAY + 60 * SECOND
        assert after[row.pk].lease_until is None
    else:
        assert after[row.pk].deadline == before[row.pk]


@pytest.mark.django_db
def test_an_order_that_was_taken_back_is_cancelled_by_its_shopper(shop: Shop) -> None:
    row = redirected(shop)
    assert CHANGES["withdraw"](row).result_code == "100.396.101"
    assert [kind for kind, _ in exchanges(row)] == ["inquire", "void"]

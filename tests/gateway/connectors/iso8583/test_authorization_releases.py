"""When the release of an authorization is tried again, and what its row says at its end."""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal

import pytest

from gateway.core import clock
from gateway.models import AuthorizationRelease, Payment, Status
from gateway.payments.authorization_releases import (
    MAX_RELEASE_TRIES,
    RELEASE_LEASE,
    RELEASE_RETENTION,
    RELEASE_RETRIES,
    RELEASE_SWEEP_TIMER,
    TIMER,
    release_authorizations,
)
from gateway.timers.registry import MerchantTimer
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host

SLACK = timedelta(seconds=30)
"""What a slow machine takes for one round."""


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> IsoHost:
    account_at_host(shop.channel, iso_host)
    return iso_host


def close(shop: Shop, captured: str = "60.00") -> str:
    """An authorization of 100.00 that a FINAL capture closed; the rest is to be released."""
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    assert shop.api.follow(held, "CP", captured, sequence="FINAL").status == 200
    return held


def make_due() -> None:
    AuthorizationRelease.objects.filter(due_at__isnull=False).update(due_at="2020-01-01T00:00:00Z")


def wait_of(row: AuthorizationRelease) -> timedelta:
    row.refresh_from_db()
    assert row.due_at is not None
    return row.due_at - clock.real_now()


def test_each_try_waits_longer_than_the_one_before_and_none_comes_early(shop: Shop, host: IsoHost) -> None:
    close(shop)
    row = AuthorizationRelease.objects.get()
    waits = [*RELEASE_RETRIES, *[RELEASE_RETRIES[-1]] * (MAX_RELEASE_TRIES - 1 - len(RELEASE_RETRIES))]
    for number, wait in enumerate(waits, start=1):
        make_due()
        host.next("0400", de39="05")
        assert release_authorizations() == 1
        assert wait - SLACK < wait_of(row) <= wait, number
        assert (row.tries, row.state, row.result_code[:3]) == (number, "OPEN", "800")
        assert release_authorizations() == 0, "its time has not come"
        assert len(host.seen("0400")) == number
    make_due()
    host.next("0400", de39="05")
    assert release_authorizations() == 1
    row.refresh_from_db()
    assert (row.state, row.tries, row.due_at) == ("GIVEN_UP", MAX_RELEASE_TRIES, None)


def test_one_that_cannot_be_sent_yet_is_looked_at_again_after_its_lease(shop: Shop, host: IsoHost) -> None:
    """It is not counted as a try: nothing was sent."""
    held = close(shop)
    row = AuthorizationRelease.objects.get()
    Payment.objects.filter(chain=held, payment_type="CP").update(status=Status.IN_DOUBT)
    assert release_authorizations() == 1
    assert RELEASE_LEASE - SLACK < wait_of(row) <= RELEASE_LEASE
    assert (row.tries, row.state, host.seen("0400")) == (0, "OPEN", [])


@pytest.mark.parametrize(
    "status, state, amount",
    [(Status.APPROVED, "RELEASED", Decimal("40.00")), (Status.DECLINED, "NOTHING", None)],
)
def test_a_try_whose_answer_came_later_has_released_only_what_was_granted(
    shop: Shop, host: IsoHost, status: Status, state: str, amount: Decimal | None
) -> None:
    held = close(shop)
    host.next("0400", de39="05")
    assert release_authorizations() == 1
    row = AuthorizationRelease.objects.get()
    tried = Payment.objects.filter(pk=row.payment)
    tried.update(status=status, approved_amount=Decimal("40.00"))
    if status == Status.DECLINED:  # nothing is left for another reason
        Payment.objects.filter(chain=held, payment_type="CP").update(approved_amount=Decimal("100.00"))
    make_due()
    assert release_authorizations() == 1
    row.refresh_from_db()
    assert (row.state, row.amount) == (state, amount)
    assert len(host.seen("0400")) == 1


@pytest.mark.parametrize(("captured", "reversed_", "amount"), [("", "20.00", "80.00"), ("30.00", "20.00", "50.00")])
def test_of_what_a_renewal_replaced_only_the_rest_is_released(
    shop: Shop, iso_host: IsoHost, captured: str, reversed_: str, amount: str
) -> None:
    """Less what was captured of it, and less what was reversed before."""
    iso_host.renewals_apart = True
    account_at_host(shop.channel, iso_host, renewals="two")
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    if captured:
        assert shop.api.follow(held, "CP", captured).status == 200
    assert shop.api.follow(held, "RV", reversed_).status == 200
    practice = {"standingInstruction.industryPractice": "REAUTHORIZATION"}
    assert shop.api.follow(held, "PA", amount, **practice).status == 200
    assert release_authorizations() == 1
    row = AuthorizationRelease.objects.get()
    assert (row.cause, row.state, row.amount) == ("RENEWAL", "RELEASED", Decimal(amount))
    assert iso_host.holds == int(Decimal(amount) * 100)


def test_each_of_several_renewals_is_released_by_what_its_own_message_said(shop: Shop, iso_host: IsoHost) -> None:
    """The reference number of all is that of the first authorization."""
    iso_host.renewals_apart = True
    account_at_host(shop.channel, iso_host, renewals="two")
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    practice = {"standingInstruction.industryPractice": "REAUTHORIZATION"}
    for _ in range(2):
        assert shop.api.follow(held, "PA", "100.00", **practice).status == 200
    assert release_authorizations() == 2
    asked, voids = iso_host.seen("0100"), iso_host.seen("0420")
    assert {one["90"][:20] for one in voids} == {f"0100{one['11']}{one['7']}" for one in asked[:2]}
    assert {one["37"] for one in voids} == {one["37"] for one in asked}
    assert iso_host.holds == 10000


def test_a_release_days_later_is_transmitted_when_its_renewal_was_approved_also_when_it_is_repeated(
    shop: Shop, iso_host: IsoHost
) -> None:
    """DE7 of the void is its own, DE12 and DE13 are those of the authorization that it names."""
    iso_host.renewals_apart = True
    account_at_host(shop.channel, iso_host, renewals="two")
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    pass_time(shop.api, days=3)
    practice = {"standingInstruction.industryPractice": "REAUTHORIZATION"}
    assert shop.api.follow(held, "PA", "100.00", **practice).status == 200
    iso_host.next("0420", arrives=False)
    assert release_authorizations() == 1
    make_due()
    assert release_authorizations() == 1
    first, renewal = iso_host.seen("0100")
    voids = [*iso_host.seen("0420"), *iso_host.seen("0421")]
    assert len(voids) == 2
    row = AuthorizationRelease.objects.get()
    for void in voids:
        assert void["7"] == f"{row.created_at.astimezone(UTC):%m%d%H%M%S}" != first["7"]
        assert (void["12"], void["13"]) == (first["12"], first["13"]) != (renewal["12"], renewal["13"])
        assert void["90"][10:20] == first["7"]


def test_releases_run_by_real_time_only(shop: Shop, host: IsoHost) -> None:
    """A merchant's test clock that is moved on asks no acquirer about holds."""
    close(shop)
    assert not isinstance(TIMER, MerchantTimer)
    assert TIMER.run() == 1
    assert AuthorizationRelease.objects.get().state == "RELEASED"


def test_only_what_ended_long_ago_is_forgotten(shop: Shop, host: IsoHost) -> None:
    rows = [close(shop, amount) for amount in ("10.00", "20.00", "30.00")]
    assert release_authorizations() == 3
    now = clock.real_now()
    old, recent, still_open = (AuthorizationRelease.objects.get(authorization=row) for row in rows)
    AuthorizationRelease.objects.filter(pk=old.pk).update(ended_at=now - RELEASE_RETENTION - timedelta(minutes=1))
    AuthorizationRelease.objects.filter(pk=recent.pk).update(ended_at=now - RELEASE_RETENTION + timedelta(minutes=1))
    AuthorizationRelease.objects.filter(pk=still_open.pk).update(ended_at=None, due_at=now, state="OPEN")
    assert RELEASE_SWEEP_TIMER.run() == 1
    assert set(AuthorizationRelease.objects.values_list("pk", flat=True)) == {recent.pk, still_open.pk}

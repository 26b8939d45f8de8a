"""What becomes of an authorization whose end is looked at, condition by condition, and which ends are looked at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AuthorizationExpiry, Channel, Merchant, Payment, Status
from gateway.payments import authorization_expiry
from gateway.payments.authorization_expiry import (
    EXPIRY_RETRY_DELAY,
    RENEWAL_GRACE,
    TIMER,
    expire_authorizations,
    find_next_expiry,
)
from tests.support.chains import after, first
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

END = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
INSTANT, HOUR, DAY = timedelta(microseconds=1), timedelta(hours=1), timedelta(days=1)
LATER = END + HOUR
STARTED = {"status": Status.STARTED}

# A member of a chain: which one it follows (None: it is the first), its type, amount and values.
Member = tuple[int | None, str, str, dict[str, Any]]
HELD: Member = (None, "PA", "100.00", {"expires_at": END})
CAPTURED: Member = (0, "CP", "100.00", {})
REVERSED: Member = (0, "RV", "100.00", {})
CLOSED: Member = (0, "CP", "60.00", {"final": True})
REOPENED: Member = (1, "RV", "60.00", {"reopens_authorization": True})
RENEWED: Member = (0, "PA", "100.00", {"practice": "REAUTHORIZATION", "expires_at": END + DAY})


def of(member: Member, **values: Any) -> Member:
    followed, kind, amount, own = member
    return followed, kind, amount, {**own, **values}


def build_chain(members: list[Member]) -> list[Payment]:
    built: list[Payment] = []
    for number, (followed, kind, amount, values) in enumerate(members):
        values = {"connector": "simulator", "number": number, **values}
        built.append(
            first(kind, amount, **values) if followed is None else after(built[followed], kind, amount, **values)
        )
    return built


GONE, POSTPONED = ("gone", True), ("postponed", False)
EXPIRES = ("expire", {"release": True, "again_at": None})
EXPIRES_HERE = ("expire", {"release": False, "again_at": None})
WAITS_FOR_CAPTURE = ("expire", {"release": False, "again_at": END + RENEWAL_GRACE})
RELEASES, RELEASES_CLOSED = ("release", "EXPIRY"), ("release", "FINAL")
WAITS = ("waits", END + RENEWAL_GRACE)
ELSEWHERE = {"connector": "stripe"}


@pytest.mark.parametrize(
    ("members", "at", "becomes"),
    [
        ([], LATER, GONE),
        ([HELD], LATER, EXPIRES),
        ([HELD], END, EXPIRES),
        ([HELD], END - INSTANT, GONE),
        ([of(HELD, expires_at=None)], LATER, GONE),
        ([of(HELD, **ELSEWHERE)], LATER, EXPIRES_HERE),
        ([HELD, RENEWED], LATER, GONE),
        ([HELD, RENEWED], END + DAY, EXPIRES),
        ([HELD, of(RENEWED, status=Status.DECLINED)], LATER, EXPIRES),
        ([HELD, of(RENEWED, **STARTED)], LATER, POSTPONED),
        ([HELD, of(RENEWED, **STARTED)], END - DAY, POSTPONED),
        ([HELD, (0, "PA", "1.00", {"practice": "INCREMENTAL_AUTH", **STARTED})], LATER, POSTPONED),
        # Used up, or it may be.
        ([HELD, CAPTURED], LATER, GONE),
        ([HELD, of(CAPTURED, **STARTED)], LATER, POSTPONED),
        ([HELD, of(CAPTURED, status=Status.DECLINED)], LATER, EXPIRES),
        ([HELD, of(CAPTURED, **STARTED)], END - DAY, GONE),
        ([HELD, (0, "RC", "100.00", STARTED)], LATER, POSTPONED),
        ([HELD, (0, "CP", "99.99", STARTED)], LATER, EXPIRES),
        ([HELD, REVERSED], LATER, GONE),
        ([HELD, of(REVERSED, **STARTED)], LATER, POSTPONED),
        ([HELD, (0, "RV", "99.99", STARTED)], LATER, EXPIRES),
        ([HELD, CLOSED], LATER, GONE),
        ([HELD, of(CLOSED, **STARTED)], LATER, POSTPONED),
        ([HELD, of(CLOSED, **STARTED)], END - DAY, GONE),
        # A capture was reversed, and its amount is held again.
        ([HELD, CLOSED, REOPENED], LATER, RELEASES_CLOSED),
        ([HELD, CLOSED, REOPENED], END - DAY, RELEASES_CLOSED),
        ([of(HELD, **ELSEWHERE), CLOSED, REOPENED], LATER, GONE),
        ([HELD, CLOSED, REOPENED, REVERSED], LATER, GONE),
        ([HELD, CLOSED, REOPENED, (0, "RV", "99.99", {})], LATER, RELEASES_CLOSED),
        ([HELD, CLOSED, REOPENED, (0, "RV", "10.00", STARTED)], LATER, POSTPONED),
        ([HELD, CLOSED, (1, "RV", "60.00", {})], LATER, GONE),
        ([HELD, of(CLOSED, final=False), REOPENED], LATER, EXPIRES),
        # It was said before that it expired.
        ([of(HELD, expired_at=END)], LATER, RELEASES),
        ([of(HELD, expired_at=LATER)], LATER, RELEASES),
        ([of(HELD, expired_at=END - INSTANT)], LATER, EXPIRES),
    ],
)
def test_an_end_is_told_released_postponed_or_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, members: list[Member], at: datetime, becomes: tuple[str, Any]
) -> None:
    assert look_at_end(shop, monkeypatch, members, at) == becomes


@pytest.mark.parametrize(
    ("held", "at", "becomes"),
    [
        (HELD, LATER, WAITS_FOR_CAPTURE),
        (of(HELD, expired_at=LATER), LATER, WAITS),
        (of(HELD, expired_at=LATER), END + RENEWAL_GRACE - INSTANT, WAITS),
        (of(HELD, expired_at=LATER), END + RENEWAL_GRACE, RELEASES),
        (of(HELD, **ELSEWHERE), LATER, EXPIRES_HERE),
    ],
)
def test_where_a_late_capture_renews_the_rest_is_held_for_its_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, held: Member, at: datetime, becomes: tuple[str, Any]
) -> None:
    shop.channel.expired_captures = Channel.ExpiredCaptures.RENEW
    shop.channel.save()
    assert look_at_end(shop, monkeypatch, [held], at) == becomes


def look_at_end(shop: Shop, monkeypatch: pytest.MonkeyPatch, members: list[Member], at: datetime) -> tuple[str, Any]:
    """What became of the row that asked, another one beside it."""
    shop.open_channel(expired_captures=Channel.ExpiredCaptures.REFUSE)
    chain = build_chain(members)
    for one in chain:
        one.channel_id = shop.channel.pk
    authorization = chain[0].id if chain else UUID(int=7)
    mine, other = (
        AuthorizationExpiry.objects.create(authorization=authorization, merchant=shop.merchant, due_at=END).pk
        for _ in range(2)
    )
    calls: list[tuple[str, Any]] = []

    def expire(payment: Payment, end: datetime, *, at: datetime, expiry: int, **more: Any) -> bool:
        assert (payment, expiry) == (chain[0], mine)
        assert (end, at) == (
            max(one.expires_at for one in chain if one.expires_at and one.status == "APPROVED"),
            looked,
        )
        calls.append(("expire", more))
        return True

    def release(payment: Payment, cause: str, *, at: datetime, expiry: int) -> bool:
        assert (payment, at, expiry) == (chain[0], looked, mine)
        calls.append(("release", str(cause)))
        return True

    looked = at
    monkeypatch.setattr(
        authorization_expiry, "load_chain_members", lambda ident: chain if ident == authorization else None
    )
    monkeypatch.setattr(
        authorization_expiry, "store", SimpleNamespace(expire_authorization=expire, insert_release=release)
    )
    dealt_with = authorization_expiry._expire_authorization(mine, authorization, at)
    left = dict(AuthorizationExpiry.objects.values_list("pk", "due_at"))
    assert left.pop(other) == END
    if calls:
        assert (dealt_with, left) == (True, {mine: END})
        return calls[0]
    if not left:
        return "gone", dealt_with
    if left == {mine: at + EXPIRY_RETRY_DELAY}:
        return "postponed", dealt_with
    assert not dealt_with
    return "waits", left[mine]


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize(
    "members", [[HELD], [HELD, CLOSED, REOPENED], [of(HELD, expired_at=LATER)]], ids=["told", "closed", "released"]
)
def test_an_authorization_that_moved_meanwhile_is_not_dealt_with(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, members: list[Member], written: bool
) -> None:
    chain = build_chain(members)
    chain[0].channel_id = shop.channel.pk
    answers = SimpleNamespace(
        expire_authorization=lambda *call, **more: written, insert_release=lambda *call, **more: written
    )
    monkeypatch.setattr(authorization_expiry, "load_chain_members", lambda ident: chain)
    monkeypatch.setattr(authorization_expiry, "store", answers)
    assert authorization_expiry._expire_authorization(1, chain[0].id, LATER) is written


# Which ends are looked at.


@pytest.fixture
def ends(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> dict[str, Merchant]:
    """Three merchants, each with an end that is just due by their own clock and one that is not."""
    monkeypatch.setattr(clock, "real_now", lambda: END)
    division = shop.merchant.division
    merchants = {"now": shop.merchant}
    for name, days in (("ahead", 10), ("behind", -10)):
        merchants[name] = Merchant.objects.create(name=name, division=division, clock_offset=timedelta(days=days))
    for number, merchant in enumerate(merchants.values()):
        due = END + merchant.clock_offset
        for place, at in enumerate((due, due + INSTANT)):
            ident = UUID(int=10 * number + place)
            AuthorizationExpiry.objects.create(authorization=ident, merchant=merchant, due_at=at)
    return merchants


NOW_DUE, AHEAD_DUE, BEHIND_DUE = 0, 10, 20


@pytest.mark.parametrize(
    ("merchant", "limit", "looked_at"),
    [
        (None, 200, [BEHIND_DUE, NOW_DUE, AHEAD_DUE]),
        (None, 2, [BEHIND_DUE, NOW_DUE]),
        ("now", 200, [NOW_DUE]),
        ("ahead", 200, [AHEAD_DUE]),
        ("behind", 200, [BEHIND_DUE]),
    ],
)
def test_an_end_is_looked_at_when_its_merchants_clock_is_there(
    ends: dict[str, Merchant], monkeypatch: pytest.MonkeyPatch, merchant: str | None, limit: int, looked_at: list[int]
) -> None:
    seen: list[tuple[int, int, datetime]] = []

    def look(row: int, authorization: UUID, at: datetime) -> bool:
        seen.append((row, authorization.int, at))
        return authorization.int != NOW_DUE

    monkeypatch.setattr(authorization_expiry, "_expire_authorization", look)
    monkeypatch.setattr(authorization_expiry, "MAX_EXPIRIES_PER_TICK", limit)
    ended = expire_authorizations(ends[merchant] if merchant is not None else None)
    rows = {one.authorization.int: one for one in AuthorizationExpiry.objects.all()}
    assert seen == [(rows[one].pk, one, rows[one].due_at) for one in looked_at]
    assert ended == len([one for one in looked_at if one != NOW_DUE])


def test_one_that_fails_is_looked_at_an_hour_later_by_its_merchants_clock(
    ends: dict[str, Merchant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorization_expiry, "_expire_authorization", lambda row, authorization, at: 1 // 0)
    before = {one.authorization.int: one.due_at for one in AuthorizationExpiry.objects.all()}
    assert expire_authorizations() == 0
    for one in AuthorizationExpiry.objects.all():
        due = before[one.authorization.int]
        assert one.due_at == (due if one.authorization.int % 10 else due + HOUR)


def test_the_next_end_is_the_merchants_own_earliest(ends: dict[str, Merchant], stranger: Shop) -> None:
    for merchant in ends.values():
        assert find_next_expiry(merchant) == END + merchant.clock_offset
    assert find_next_expiry(stranger.merchant) is None
    assert (TIMER.run, TIMER.next_at, TIMER.every_s) == (expire_authorizations, find_next_expiry, 5)
    [[earliest]] = execute_sql(TIMER.earliest_due, {})
    assert earliest == END - 10 * DAY


def test_how_late_captures_are_taken_is_the_channels_own_word(shop: Shop) -> None:
    other = shop.open_channel(expired_captures=Channel.ExpiredCaptures.RENEW)
    for channel, mode in ((shop.channel, Channel.ExpiredCaptures.REFUSE), (other, Channel.ExpiredCaptures.RENEW)):
        payment = Payment(channel=channel, amount=Decimal(1))
        assert authorization_expiry._load_expired_captures(payment) == mode

"""Who closes which month, and when it is over: each condition by itself, beside other months, merchants and states.

Source: docs/decisions/0053, 0091 and 0098.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from gateway.access.permissions import Role
from gateway.core import clock
from gateway.models import Grant, Merchant, UserHandling
from reporting.models import ClearingInstitute, MonthClosing, SettlementFile
from reporting.month_end import bulk_closing, closing, package
from reporting.month_end.closed_months import hold_month, list_closed_days
from reporting.month_end.closing import Closer, ClosingRefusedError
from reporting.month_end.statement import MonthScope, is_month_over
from tests.support import books
from tests.support.fixtures import BY, Shop
from tests.support.office import person

pytestmark = pytest.mark.django_db
JANUARY, FEBRUARY, MARCH = date(2027, 1, 1), date(2027, 2, 1), date(2027, 3, 1)
CARD = "4200000000000000"


def close(merchant: Merchant, by: User, month: date = FEBRUARY, state: str = "PREPARED", **values: Any) -> MonthClosing:
    at = clock.real_now()
    return MonthClosing.objects.create(
        **{
            "merchant": merchant, "month": month, "state": state, "figures": {}, "digest": "", "prepared_by": by,
            "prepared_by_name": by.username, "prepared_at": at, **values,
        }
    )  # fmt: skip


@pytest.fixture
def fina(shop: Shop) -> User:
    return person("fina", Role.MANAGER, shop.merchant)


@pytest.fixture
def max_(shop: Shop) -> User:
    return person("max", Role.MANAGER, shop.merchant)


def closer(user: User) -> Closer:
    return Closer(user=user.pk, actor=BY)


# --- when it is over ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "of", "active", "ahead", "at", "over"),
    [
        ("UTC", None, True, 0, datetime(2027, 2, 28, 23, 59, 59), False),
        ("UTC", None, True, 0, datetime(2027, 3, 1), True),
        ("Asia/Tokyo", None, True, 0, datetime(2027, 2, 28, 14, 59, 59), False),
        ("Asia/Tokyo", None, True, 0, datetime(2027, 2, 28, 15), True),
        ("America/Los_Angeles", None, True, 0, datetime(2027, 3, 1, 7, 59, 59), False),
        ("America/Los_Angeles", None, True, 0, datetime(2027, 3, 1, 8), True),
        ("Asia/Tokyo", "America/Los_Angeles", True, 0, datetime(2027, 3, 1, 7), False),
        ("Asia/Tokyo", "America/Los_Angeles", True, 0, datetime(2027, 3, 1, 8), True),
        ("America/Los_Angeles", "Asia/Tokyo", True, 0, datetime(2027, 3, 1, 7), False),
        ("Asia/Tokyo", "America/Los_Angeles", False, 0, datetime(2027, 3, 1, 7), True),
        ("UTC", None, True, 1, datetime(2027, 2, 28), True),
        ("UTC", None, True, -1, datetime(2027, 3, 1), False),
    ],
)
def test_a_month_is_over_when_it_is_for_the_merchant_and_for_every_institute(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, zone: str, of: str | None, active: bool, ahead: int, at: datetime,
    over: bool,
) -> None:  # fmt: skip
    """``ahead``: days by which the merchant's clock is."""
    ClearingInstitute.objects.all().delete()
    if of is not None:
        books.institute(time_zone=of, active=active)
    shop.merchant.time_zone, shop.merchant.clock_offset = zone, timedelta(days=ahead)
    monkeypatch.setattr(clock, "real_now", lambda: at.replace(tzinfo=UTC))
    assert is_month_over(shop.merchant, FEBRUARY) is over


# --- which one it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", MonthClosing.State.values)
def test_a_closing_that_was_ended_or_is_of_another_month_or_merchant_is_not_found(
    shop: Shop, stranger: Shop, fina: User, state: str
) -> None:
    close(shop.merchant, fina, JANUARY)
    close(stranger.merchant, fina)
    row = close(shop.merchant, fina, state=state)
    expected = row if state in ("PREPARED", "SIGNED") else None
    assert closing.find_active_closing(shop.merchant, FEBRUARY) == expected


@pytest.mark.parametrize("state", MonthClosing.State.values)
def test_a_day_is_closed_by_the_signature_of_its_own_month_and_merchant(
    shop: Shop, stranger: Shop, fina: User, state: str
) -> None:
    close(shop.merchant, fina, state=state)
    asked = {
        (shop.merchant.pk, date(2027, 1, 31)), (shop.merchant.pk, date(2027, 2, 1)),
        (shop.merchant.pk, date(2027, 2, 28)), (shop.merchant.pk, date(2027, 3, 1)),
        (stranger.merchant.pk, date(2027, 2, 10)), (None, date(2027, 2, 10)),
    }  # fmt: skip
    closed = {(shop.merchant.pk, date(2027, 2, day)) for day in (1, 28)}
    assert list_closed_days(asked) == (closed if state == "SIGNED" else set())


def test_a_month_is_held_as_closed_by_its_own_signature_alone(shop: Shop, stranger: Shop, fina: User) -> None:
    def is_held_closed(merchant: UUID | None = shop.merchant.pk) -> bool:
        with hold_month(merchant, date(2027, 2, 10)) as closed:
            return closed

    close(stranger.merchant, fina, state="SIGNED")
    close(shop.merchant, fina, JANUARY, "SIGNED")
    close(shop.merchant, fina, state="REOPENED")
    assert not is_held_closed()
    assert not is_held_closed(None)
    close(shop.merchant, fina, state="SIGNED")
    assert is_held_closed()


def test_a_step_changes_its_own_closing_and_from_its_own_state_alone(
    shop: Shop, stranger: Shop, fina: User, max_: User
) -> None:
    row = close(shop.merchant, fina)
    others = [close(shop.merchant, fina, MARCH), close(stranger.merchant, fina), close(shop.merchant, fina, JANUARY)]
    assert closing.return_month(row, "look again", by=closer(max_)).state == "RETURNED"
    for step in (
        lambda: closing.return_month(row, "again", by=closer(max_)),
        lambda: closing.withdraw_month(row, "", by=closer(fina)),
        lambda: closing.reopen_month(row, "a reason", by=closer(max_)),
    ):
        with pytest.raises(ClosingRefusedError, match="Somebody else was faster"):
            step()
    assert [MonthClosing.objects.get(pk=one.pk).state for one in (row, *others)] == ["RETURNED"] + ["PREPARED"] * 3


def test_no_month_is_closed_while_a_file_is_being_read(shop: Shop, fina: User) -> None:
    """Whoever's it is: which merchants it is about is not known yet."""
    file = books.file_of(books.institute())
    statement = closing.build_statement(closing.scope_of_merchant(shop.merchant, date(2020, 1, 1)))
    for state, reading in (("RECEIVED", True), ("READING", True), ("MATCHING", True), ("DONE", False)):
        SettlementFile.objects.filter(pk=file.pk).update(state=state)
        why = closing.explain_not_closable(shop.merchant, date(2020, 1, 1), statement)
        assert ("is being read" in why) is reading, state
        assert bool(why) is reading


STEPS: dict[str, Callable[[MonthClosing, str, Closer], MonthClosing]] = {
    "answer of return": lambda row, text, by: closing.return_month(row, text, by=by),
    "answer of withdrawal": lambda row, text, by: closing.withdraw_month(row, text, by=by),
    "reason": lambda row, text, by: closing.reopen_month(row, text, by=by),
}


@pytest.mark.parametrize("step", STEPS)
def test_what_is_written_beside_a_month_keeps_no_card_number(shop: Shop, fina: User, step: str) -> None:
    signed = {"state": "SIGNED"} if step == "reason" else {}
    row = STEPS[step](close(shop.merchant, fina, **signed), f"paid with {CARD}", closer(fina))
    written = row.answer + row.reason
    assert written.startswith("paid with")
    assert CARD not in written


def test_the_note_of_a_month_that_is_prepared_keeps_no_card_number(shop: Shop, fina: User) -> None:
    row = closing.prepare_month(shop.merchant, date(2020, 1, 1), f"paid with {CARD}", by=closer(fina))
    assert row.note.startswith("paid with")
    assert CARD not in row.note


# --- two people -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "limited", "same"),
    [
        ([], True, False),
        ([("fina", "max")], True, True),
        ([("max", "fina")], True, True),
        ([("otto", "max"), ("otto", "fina")], True, True),
        ([("otto", "max"), ("otto", "fina")], False, False),
        ([("otto", "max"), ("fina", "otto")], True, True),
        ([("otto", "max")], True, False),
        ([("fina", "otto"), ("max", "otto")], True, False),
    ],
)
def test_who_signs_is_neither_behind_the_first_nor_made_by_the_same(
    shop: Shop, fina: User, max_: User, pairs: list[tuple[str, str]], limited: bool, same: bool
) -> None:
    """Whoever both have made is behind neither of them, nor who has no limit that two users would get around."""
    limit = {"four_eyes_above": Decimal(10)} if limited else {}
    users = {"fina": fina, "max": max_, "otto": person("otto", Role.CLERK, shop.merchant, **limit)}
    for one, made in pairs:
        UserHandling.objects.create(by=users[one], user=users[made], action="create", at=clock.real_now())
    why = closing.explain_signature_refusal(close(shop.merchant, fina), max_.pk)
    assert ("may be the same person" in why) is same
    assert bool(why) is same


# --- all months together --------------------------------------------------------------------------------------------


def test_what_is_offered_to_sign_is_of_the_month_of_others_and_within_the_right(
    shop: Shop, stranger: Shop, fina: User, max_: User
) -> None:
    close(shop.merchant, fina)
    close(stranger.merchant, fina)
    assert bulk_closing.list_months_to_close("sign", FEBRUARY, max_) == [shop.merchant.pk]
    assert bulk_closing.list_months_to_close("sign", FEBRUARY, fina) == [], "prepared by oneself"
    assert bulk_closing.list_months_to_close("sign", JANUARY, max_) == []
    MonthClosing.objects.update(state="SIGNED")
    assert bulk_closing.list_months_to_close("sign", FEBRUARY, max_) == []


@pytest.mark.parametrize(
    ("verb", "state", "by_oneself", "why"),
    [
        ("prepare", "PREPARED", True, ""),
        ("prepare", "PREPARED", False, "Somebody else has prepared"),
        ("sign", "SIGNED", True, ""),
        ("sign", "SIGNED", False, "Somebody else was faster"),
        ("sign", "RETURNED", True, "Somebody else was faster"),
    ],
)
def test_a_slice_that_is_done_again_takes_its_own_step_for_done_and_nobody_elses(
    shop: Shop, fina: User, max_: User, verb: str, state: str, by_oneself: bool, why: str
) -> None:
    one, other = (max_, fina) if by_oneself else (fina, max_)
    first, second = (one, other) if verb == "prepare" else (other, one)
    signed = {"signed_by": second} if state == "SIGNED" else {}
    close(shop.merchant, first, state=state, **signed)

    def step() -> None:
        bulk_closing._close_month(verb, FEBRUARY, shop.merchant.pk, max_, closer(max_))

    if why:
        with pytest.raises(ClosingRefusedError, match=why):
            step()
    else:
        step()
    assert MonthClosing.objects.get().state == state


def test_the_right_is_asked_for_at_the_merchant_whose_month_it_is(
    shop: Shop, stranger: Shop, fina: User, max_: User
) -> None:
    close(stranger.merchant, fina)
    with pytest.raises(ClosingRefusedError, match="may no longer close months of this merchant"):
        bulk_closing._close_month("sign", FEBRUARY, stranger.merchant.pk, max_, closer(max_))


# --- files ----------------------------------------------------------------------------------------------------------


def test_the_paper_tells_the_signature_of_its_own_month(shop: Shop, stranger: Shop, fina: User, max_: User) -> None:
    at = clock.real_now()
    signed = {"signed_by": max_, "signed_by_name": "max", "signed_at": at}
    close(shop.merchant, fina, JANUARY, "SIGNED", **signed)
    close(shop.merchant, fina, FEBRUARY, "REOPENED", **signed)
    scope = MonthScope(month=FEBRUARY, merchants=frozenset({shop.merchant.pk}))
    assert package._describe_closings(scope) == [(shop.merchant.name, "not closed")]
    close(shop.merchant, fina, FEBRUARY, "SIGNED", digest="d" * 64, **signed)
    ((name, told),) = package._describe_closings(scope)
    assert (name, told) == (
        shop.merchant.name,
        f"prepared by fina, signed by max, {at:%Y-%m-%d %H:%M} UTC, figures {'d' * 16}",
    )
    whole = package._describe_closings(MonthScope(month=FEBRUARY, merchants=None))
    assert (stranger.merchant.name, "not closed") in whole


def test_files_are_made_while_their_owner_has_the_right_on_all_of_them(shop: Shop, stranger: Shop, fina: User) -> None:
    def work(merchants: list[UUID] | None) -> Any:
        asked = None if merchants is None else [one.hex for one in merchants]
        return package.BackgroundWork(owner=fina, parameters={"month": "2027-02-01", "merchants": asked})

    own, both = [shop.merchant.pk], [shop.merchant.pk, stranger.merchant.pk]
    assert package.read_work_scope(work(own)) == MonthScope(month=FEBRUARY, merchants=frozenset(own))
    for more in (both, both[::-1], None):
        with pytest.raises(package.queue.WorkFailedError):
            package.read_work_scope(work(more))
    Grant.objects.create(user=fina, role=Role.MANAGER, merchant=stranger.merchant)
    package.permissions.clear_grant_cache(fina)
    assert package.read_work_scope(work(both)).merchants == frozenset(both)


def test_a_months_files_have_its_own_lines_and_no_others(shop: Shop, stranger: Shop) -> None:
    """From its first day to its last, of files that were read to their end. A payout of nobody may have a line of
    somebody."""
    of = books.institute()
    file, failed = books.file_of(of), books.file_of(of)
    SettlementFile.objects.filter(pk=failed.pk).update(state="FAILED")

    def put(day: date, owner: Shop | None = shop, payout: Shop | None = shop, into: SettlementFile = file) -> str:
        where = books.settlement(
            shop, of, date=day, merchant=payout.merchant if payout else None, account=None
        )  # fmt: skip
        values = {"merchant_id": owner.merchant.pk if owner else None, "account": None}
        return books.record(where, into, **values).pk.hex

    first, last = date(2027, 2, 1), date(2027, 2, 28)
    own = {put(first), put(last), put(first, payout=None)}
    put(first - timedelta(days=1)), put(last + timedelta(days=1)), put(first, into=failed)
    theirs, nobodys = {put(first, stranger, stranger)}, {put(first, None, None)}
    scopes = {
        None: sorted(["", shop.merchant.pk.hex, stranger.merchant.pk.hex]),
        frozenset({shop.merchant.pk}): [shop.merchant.pk.hex],
    }
    for merchants, groups in scopes.items():
        assert package._list_groups(MonthScope(month=FEBRUARY, merchants=merchants)) == groups
    for group, expected in ((shop.merchant.pk.hex, own), (stranger.merchant.pk.hex, theirs), ("", nobodys)):
        merchant, names = package._load_names(group)
        values = {
            "first": first, "last": last, "merchant": merchant.pk if merchant else None, "after": "0" * 32,
            "fetched": 99,
        }  # fmt: skip
        found = package.query_lines(package._CHOSEN, "r.id", values, as_of=clock.real_now(), names=names)
        assert {line.id for line in found} == expected


def test_money_that_goes_away_is_below_zero_in_the_workbook() -> None:
    assert [package._signed(SimpleNamespace(cashflow=way), "5.00") for way in ("POS", "NEG")] == [5, -5]

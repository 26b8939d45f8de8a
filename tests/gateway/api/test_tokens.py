"""Access tokens: what is stored of one, who may use it and how long, what its successor takes over, and its trail.

Source: Part A, Authentication, 2 and 7.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User

from gateway.access import tokens
from gateway.access.tokens import TOKEN_ROTATION_OVERLAP, TokenLimits
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AccessToken, AuditEntry
from tests.support.fixtures import BY, Shop

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("own_end", "overlap", "lasts"),
    [
        (None, TOKEN_ROTATION_OVERLAP, TOKEN_ROTATION_OVERLAP),
        (DAY, TOKEN_ROTATION_OVERLAP, DAY),
        (30 * DAY, TOKEN_ROTATION_OVERLAP, TOKEN_ROTATION_OVERLAP),
        (30 * DAY, timedelta(0), timedelta(0)),
        (DAY, 2 * DAY, DAY),
    ],
)
@pytest.mark.parametrize("approved", [True, False])
def test_the_old_one_ends_after_the_overlap_or_at_its_own_end_if_that_is_sooner(
    shop: Shop, own_end: timedelta | None, overlap: timedelta, lasts: timedelta, approved: bool
) -> None:
    now = clock.real_now()
    ends_at = now + own_end if own_end is not None else None
    old, _ = shop.issue(ends_at=ends_at)
    new, _ = tokens.rotate_token(old, by=BY, overlap=overlap, approved=approved)
    old.refresh_from_db()
    assert new.ends_at is None
    if approved:
        assert old.ends_at is not None
        assert abs(old.ends_at - now - lasts) < timedelta(minutes=1)
        return
    assert old.ends_at == ends_at, "it goes on until the successor is approved"
    assert tokens.approve_token(new, by=BY)
    old.refresh_from_db()
    assert old.ends_at is not None
    approved_lasts = min(own_end, TOKEN_ROTATION_OVERLAP) if own_end is not None else TOKEN_ROTATION_OVERLAP
    assert abs(old.ends_at - now - approved_lasts) < timedelta(minutes=1)


def test_the_successor_has_the_same_rights_and_no_more(shop: Shop) -> None:
    limits = TokenLimits(amount=Decimal("50.00"), day_amount=Decimal("80.00"), operations=["RF", "DB"])
    old, _ = shop.issue(name="till 7", channel=shop.channel, scopes=["payments"], limits=limits)
    ident = tokens.rotate_token(old, by=BY)[0].pk
    new = AccessToken.objects.get(pk=ident)
    for name in ("merchant_id", "channel_id", "name", "scopes", "max_amount", "max_day_amount", "operations"):
        assert getattr(new, name) == getattr(old, name), name
    assert (new.replaces_id, new.max_amount, new.max_day_amount) == (old.pk, Decimal("50.00"), Decimal("80.00"))
    assert (new.operations, new.lent, new.revoked_at) == (["DB", "RF"], False, None)


def entries(token: AccessToken, action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(subject="accesstoken", subject_id=str(token.pk), action=action))


def test_a_token_is_stored_as_it_was_asked_for_and_its_text_is_not(shop: Shop) -> None:
    user, old = User.objects.create_user("dev"), shop.token
    ends_at = clock.real_now() + DAY
    limits = TokenLimits(amount=Decimal("5.00"), day_amount=Decimal("9.00"), operations=["RF", "PA"])
    before = clock.real_now()
    ident, secret = tokens.issue_token(
        shop.merchant, name="till", by=BY, channel=shop.channel, scopes=["read"], ends_at=ends_at, limits=limits,
        replaces=old, requested_by=user.pk,
    )  # fmt: skip
    row = AccessToken.objects.get(pk=ident.pk)
    text = secret.reveal()
    assert (bytes(row.digest), row.hint) == (hashlib.sha256(text.encode()).digest(), text[-4:])
    assert (row.name, row.merchant, row.channel, row.scopes, row.ends_at) == (
        "till", shop.merchant, shop.channel, ["read"], ends_at,
    )  # fmt: skip
    assert (row.created_by, row.replaces, row.requested_by_id) == ("tests", old, user.pk)
    assert (row.max_amount, row.max_day_amount, row.operations) == (Decimal("5.00"), Decimal("9.00"), ["PA", "RF"])
    assert (row.lent, row.revoked_at) == (False, None)
    assert row.approved_at is not None
    assert before <= row.approved_at <= clock.real_now()
    assert all(text not in str(value) for value in row.__dict__.values())
    (entry,) = entries(row, "issue")
    assert (entry.actor, entry.merchant, entry.before) == ("tests", shop.merchant.pk, None)
    assert entry.after == {
        "name": "till", "hint": text[-4:], "merchant": shop.merchant.pk.hex, "channel": shop.channel.pk.hex,
        "scopes": ["read"], "at most": "5.00", "at most in 24 hours": "9.00", "operations": ["PA", "RF"],
        "approved_at": row.approved_at.isoformat(), "ends_at": ends_at.isoformat(), "revoked_at": None,
    }  # fmt: skip


def test_a_token_that_was_asked_for_without_more_has_all_scopes_and_no_limits(shop: Shop) -> None:
    row = AccessToken.objects.get(pk=tokens.issue_token(shop.merchant, name="all", by=BY, approved=False)[0].pk)
    assert (row.channel, row.ends_at, row.max_amount, row.max_day_amount, row.operations) == (
        None,
        None,
        None,
        None,
        [],
    )
    assert (row.approved_at, row.replaces, row.requested_by_id) == (None, None, None)
    assert set(row.scopes) == set(tokens.TOKEN_SCOPES)
    (entry,) = entries(row, "issue")
    assert entry.after is not None
    assert [entry.after[name] for name in ("channel", "at most", "at most in 24 hours", "approved_at", "ends_at")] == [
        None
    ] * 5


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"scopes": ["read", "nothing"]}, "unknown scope nothing"),
        ({"limits": TokenLimits(operations=["PA", "XX"])}, "unknown operation XX"),
        ({"channel": "a stranger's"}, "is not a channel of"),
    ],
)
def test_a_token_that_would_mean_something_else_is_not_issued(
    shop: Shop, stranger: Shop, values: dict[str, object], why: str
) -> None:
    count = AccessToken.objects.count()
    if "channel" in values:
        values = {"channel": stranger.channel}
    with pytest.raises(ValueError, match=why):
        shop.issue(**values)
    assert AccessToken.objects.count() == count


def test_each_token_is_another_one(shop: Shop) -> None:
    (first, one), (second, other) = shop.issue(), shop.issue()
    assert one != other
    assert bytes(first.digest) != bytes(second.digest)


@pytest.mark.parametrize("fails", [False, True])
def test_a_lent_token_works_within_its_block_alone(shop: Shop, fails: bool) -> None:
    now = clock.real_now()
    try:
        with tokens.lend_token(shop.channel, name="docs", by=BY, scopes=["read"]) as secret:
            row = AccessToken.objects.get(lent=True)
            assert (row.name, row.merchant, row.channel, row.scopes, row.created_by) == (
                "docs", shop.merchant, shop.channel, ["read"], "tests",
            )  # fmt: skip
            assert (bytes(row.digest), row.hint) == (tokens.hash_token(secret.reveal()), secret.reveal()[-4:])
            assert row.approved_at is not None
            assert row.ends_at is not None
            assert timedelta(0) <= row.approved_at - now < timedelta(seconds=30)
            assert row.ends_at - row.approved_at == tokens.MAX_LENT_TOKEN_AGE
            assert shop.api.with_token(secret.reveal()).get("/v1/query").status != 403
            if fails:
                raise RuntimeError
    except RuntimeError:
        assert fails
    assert not AccessToken.objects.filter(lent=True).exists()


def test_of_lent_tokens_those_that_were_left_are_deleted_and_no_other(shop: Shop) -> None:
    now, minute = clock.real_now(), timedelta(minutes=1)
    ended, _ = shop.issue(ends_at=now - minute)
    left, _ = shop.issue(ends_at=now - minute)
    still, _ = shop.issue(ends_at=now + minute)
    assert execute_sql(tokens.TIMER.earliest_due, ()) == [(None,)]
    AccessToken.objects.filter(pk__in=(left.pk, still.pk)).update(lent=True)
    assert execute_sql(tokens.TIMER.earliest_due, ()) == [(left.ends_at,)]
    assert tokens.TIMER.run() == 1
    assert set(AccessToken.objects.filter(pk__in=(ended.pk, left.pk, still.pk))) == {ended, still}


def test_a_token_is_approved_once_by_whom_the_trail_says(shop: Shop) -> None:
    waiting, _ = shop.issue(approved=False)
    beside, _ = shop.issue(approved=False)
    assert tokens.approve_token(waiting, by=BY)
    row = AccessToken.objects.get(pk=waiting.pk)
    assert row.approved_at is not None
    assert (row.approved_by, waiting.approved_at) == ("tests", row.approved_at)
    (entry,) = entries(waiting, "approve")
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["approved_at"], entry.after["approved_at"]) == (None, row.approved_at.isoformat())
    assert not tokens.approve_token(waiting, by=BY)
    assert len(entries(waiting, "approve")) == 1
    beside.refresh_from_db()
    assert beside.approved_at is None


def test_a_token_that_was_revoked_is_not_approved(shop: Shop) -> None:
    waiting, _ = shop.issue(approved=False)
    tokens.revoke_token(waiting, by=BY)
    assert not tokens.approve_token(waiting, by=BY)
    assert AccessToken.objects.get(pk=waiting.pk).approved_at is None
    assert not entries(waiting, "approve")


def test_an_approved_successor_of_a_revoked_token_leaves_that_one_as_it_was(shop: Shop) -> None:
    old, _ = shop.issue()
    new, _ = tokens.rotate_token(old, by=BY, approved=False)
    tokens.revoke_token(old, by=BY)
    assert tokens.approve_token(new, by=BY)
    assert AccessToken.objects.get(pk=old.pk).ends_at is None
    assert not entries(old, "rotate")


def test_a_rotation_is_in_the_trail_of_both(shop: Shop) -> None:
    user = User.objects.create_user("dev")
    old, _ = shop.issue()
    new, _ = tokens.rotate_token(old, by=BY, requested_by=user.pk)
    assert (new.requested_by_id, new.approved_at is not None) == (user.pk, True)
    (entry,) = entries(old, "rotate")
    old.refresh_from_db()
    assert old.ends_at is not None
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["ends_at"], entry.after["ends_at"]) == (None, old.ends_at.isoformat())
    assert len(entries(new, "issue")) == 1


def test_a_token_is_revoked_once(shop: Shop) -> None:
    token, text = shop.issue()
    beside, _ = shop.issue()
    tokens.revoke_token(token, by=BY)
    first = AccessToken.objects.get(pk=token.pk).revoked_at
    assert first is not None
    assert shop.api.with_token(text).pay().status == 403
    tokens.revoke_token(token, by=BY)
    assert AccessToken.objects.get(pk=token.pk).revoked_at == first
    (entry,) = entries(token, "revoke")
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["revoked_at"], entry.after["revoked_at"]) == (None, first.isoformat())
    assert AccessToken.objects.get(pk=beside.pk).revoked_at is None

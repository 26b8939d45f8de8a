"""Access tokens: the end of one whose successor works, and what the successor takes over."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from gateway.access import tokens
from gateway.access.tokens import TOKEN_ROTATION_OVERLAP, TokenLimits
from gateway.core import clock
from gateway.models import AccessToken
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

"""The limits of who approves: each thing that counts towards them alone, exactly at the limit and a cent beyond.

Source: docs/decisions/0043.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway.backoffice.follow_ups import approvals, manual_follow_up
from gateway.backoffice.follow_ups.clerk_limits import Clerk
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError, FollowUpOrder
from gateway.core import identifiers
from gateway.models import Approval, Payment
from tests.gateway.backoffice.test_approvals import asked, clerk
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db


def move(row: Approval, by: Clerk, amount: str) -> None:
    target = Payment.objects.select_related("merchant", "channel").get(pk=row.payment_id)
    manual_follow_up.send_follow_up(
        FollowUpOrder(target=target, code="RF", amount=Decimal(amount)), by, identifiers.row_id()
    )


@pytest.mark.parametrize(
    ("by_asker", "by_approver", "limit", "right"),
    [
        (None, None, "50.00", True),
        (None, None, "49.99", False),
        ("20.00", None, "70.00", True),
        ("20.00", None, "69.99", False),
        (None, "30.00", "80.00", True),
        (None, "30.00", "79.99", False),
        ("12.00", "30.00", "92.00", True),
        ("12.00", "30.00", "91.99", False),
    ],
)
def test_what_either_of_the_two_moved_on_the_payment_counts(
    shop: Shop, by_asker: str | None, by_approver: str | None, limit: str, right: bool
) -> None:
    clara, max_ = clerk("clara", "20.00"), clerk("max", limit)
    row = asked(shop, clara)
    if by_asker:
        move(row, clara, by_asker)
    if by_approver:
        move(row, max_, by_approver)
    if right:
        assert approvals.decide_approval(row.pk, approve=True, note="", by=max_).state == "DONE"
        return
    with pytest.raises(FollowUpNotPossibleError, match="above your own limit"):
        approvals.decide_approval(row.pk, approve=True, note="", by=max_)
    row.refresh_from_db()
    assert row.state == "ASKED"


def test_what_was_moved_on_another_payment_counts_for_the_day_and_not_for_the_payment(shop: Shop) -> None:
    clara = clerk("clara", "20.00")
    other, row = asked(shop, clara), asked(shop, clara)
    for by in (clerk("max", "50.00"), clerk("mia", None, "100.00")):
        move(other, by, "10.00")
    with pytest.raises(FollowUpNotPossibleError, match="24 hours"):
        approvals.decide_approval(row.pk, approve=True, note="", by=clerk("mia", None, "59.99"))
    assert approvals.decide_approval(row.pk, approve=True, note="", by=clerk("max", "50.00")).state == "DONE"


@pytest.mark.parametrize(("limit", "may"), [("55.00", True), ("49.99", False)])
def test_the_page_offers_to_approve_only_what_is_within_the_readers_own_limit(
    shop: Shop, limit: str, may: bool
) -> None:
    """Told before the press, not after it; rejecting needs no limit."""
    row = asked(shop, clerk("clara", "20.00"))
    reader = signed_in(person("max", "manager", shop.merchant, four_eyes_above=limit))
    page = reader.get(f"/admin/gateway/approval/{row.pk}/change/").content.decode()
    assert ('value="approve"' in page) is may
    assert ("above your own limit of 49.99 EUR" in page) is not may
    assert 'value="reject"' in page

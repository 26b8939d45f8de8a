"""The limits of who approves: each thing that counts towards them alone, exactly at the limit and a cent beyond.

Source: design, J4, steps 6 to 8; docs/decisions/0043.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway import identifiers
from gateway.desk import approvals, by_hand
from gateway.desk.by_hand import NotPossible, Order
from gateway.desk.limits import Clerk
from gateway.models import Approval, Payment
from tests.gateway.desk.test_approvals import asked, clerk
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


def move(row: Approval, by: Clerk, amount: str) -> None:
    target = Payment.objects.select_related("merchant", "channel").get(pk=row.payment_id)
    by_hand.send(Order(target=target, code="RF", amount=Decimal(amount)), by, identifiers.row_id())


@pytest.mark.parametrize(
    ("by_asker", "by_approver", "limit", "right"),
    [
        (None, None, "50.00", True), (None, None, "49.99", False),
        ("20.00", None, "70.00", True), ("20.00", None, "69.99", False),
        (None, "30.00", "80.00", True), (None, "30.00", "79.99", False),
        ("12.00", "30.00", "92.00", True), ("12.00", "30.00", "91.99", False),
    ],
)  # fmt: skip
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
        assert approvals.decide(row.pk, approve=True, note="", by=max_).state == "DONE"
        return
    with pytest.raises(NotPossible, match="above your own limit"):
        approvals.decide(row.pk, approve=True, note="", by=max_)
    row.refresh_from_db()
    assert row.state == "ASKED"


def test_what_was_moved_on_another_payment_counts_for_the_day_and_not_for_the_payment(shop: Shop) -> None:
    clara = clerk("clara", "20.00")
    other, row = asked(shop, clara), asked(shop, clara)
    for by in (clerk("max", "50.00"), clerk("mia", None, "100.00")):
        move(other, by, "10.00")
    with pytest.raises(NotPossible, match="24 hours"):
        approvals.decide(row.pk, approve=True, note="", by=clerk("mia", None, "59.99"))
    assert approvals.decide(row.pk, approve=True, note="", by=clerk("max", "50.00")).state == "DONE"

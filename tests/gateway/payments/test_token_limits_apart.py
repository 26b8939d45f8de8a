"""Each limit of an access token by itself, and what of a payment counts towards its 24 hours.

Source: docs/decisions/0053, docs/decisions/0129.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway.access.tokens import TokenLimits
from gateway.catalogue.errors import InvalidParametersError
from gateway.core import clock, identifiers
from gateway.models import Payment, TokenLimitUsage
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.store import IdempotencyKeyTakenError
from gateway.payments.stored_answer import HeldPart, PrivateFacts
from gateway.payments.token_limits import (
    TOKEN_LIMIT_WINDOW,
    TokenLimitError,
    check_subscription_allowed,
    check_token_limits,
    delete_old_token_moves,
    reserve_amount,
    sum_recent_moves,
)
from tests.support.fixtures import Shop

AMOUNT, DAY = TokenLimits(amount=Decimal(50)), TokenLimits(day_amount=Decimal(50))
TYPES = TokenLimits(operations=("DB", "RF"))
OVERRIDE = "overridePaymentType[VISA]"


@pytest.mark.parametrize(
    ("limits", "values", "later", "words"),
    [
        (None, {"paymentType": "CD", "amount": "99.00", "job.hour": "1"}, True, None),
        (TYPES, {"paymentType": "DB"}, False, None),
        (TYPES, {"paymentType": "CD"}, False, "makes DB, RF only, not CD"),
        (TYPES, {"paymentType": "DB", OVERRIDE: "PA"}, False, "not PA"),
        (TYPES, {"paymentType": "RV", OVERRIDE: "PA"}, False, "not PA, RV"),
        (TYPES, {"paymentType": "DB", "customParameters[paymentType]": "CD"}, False, None),
        (TYPES, {"paymentType": "RG"}, False, None),
        (TYPES, {"paymentType": "RI"}, False, None),
        (TYPES, {}, False, None),
        (AMOUNT, {"paymentType": "CD"}, True, None),
        (AMOUNT, {"amount": "50.00"}, False, None),
        (AMOUNT, {"amount": "50.01"}, False, "at most 50.00 with one payment"),
        (DAY, {"amount": "50.01"}, False, None),
        (DAY, {"paymentType": "CD"}, False, None),
        (DAY, {"paymentType": "CD"}, True, "prepares no payout"),
        (DAY, {"paymentType": "DB"}, True, None),
        (TYPES, {"paymentType": "DB", "job.hour": "1"}, False, "neither starts nor changes subscriptions"),
        (AMOUNT, {"paymentType": "DB", "jobless": "1"}, False, None),
    ],
)
def test_a_request_is_held_to_each_limit_of_its_token(
    limits: TokenLimits | None, values: dict[str, str], later: bool, words: str | None
) -> None:
    if words is None:
        check_token_limits(limits, values, pays_later=later)
        return
    with pytest.raises(TokenLimitError, match=words):
        check_token_limits(limits, values, pays_later=later)


def test_any_limit_forbids_subscriptions_and_none_does_not() -> None:
    check_subscription_allowed(None)
    with pytest.raises(TokenLimitError):
        check_subscription_allowed(TokenLimits())


# --- 24 hours -------------------------------------------------------------------------------------------------------


def moved(shop: Shop, amount: str, payment: UUID | None = None, **values: Any) -> TokenLimitUsage:
    given = {"currency": "EUR", "at": clock.real_now(), **values}
    return TokenLimitUsage.objects.create(token=shop.token, amount=Decimal(amount), payment=payment, **given)


PART = PrivateFacts(held_part=HeldPart(amount="46.00", granted_at="", code="000.100.110")).as_json()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "counted"),
    [
        ({"status": "STARTED"}, "92.00"),
        ({"status": "PENDING"}, "92.00"),
        ({"status": "IN_DOUBT"}, "92.00"),
        ({"status": "PENDING", "answer": PART}, "46.00"),
        ({"status": "IN_DOUBT", "answer": PART}, "46.00"),
        ({"status": "APPROVED", "approved_amount": Decimal("45.50")}, "45.50"),
        ({"status": "APPROVED", "approved_amount": Decimal("45.50"), "answer": PART}, "45.50"),
        ({"status": "DECLINED"}, "0.00"),
        ({"status": "DECLINED", "answer": PART}, "0.00"),
    ],
    ids=str,
)
def test_a_payment_counts_with_what_it_may_still_take(shop: Shop, values: dict[str, Any], counted: str) -> None:
    """One that was never begun with what was reserved for it, one that is gone too."""
    paid = Payment.objects.get(pk=shop.api.pay().id)
    Payment.objects.filter(pk=paid.pk).update(**values)
    moved(shop, "92.00", paid.pk)
    assert sum_recent_moves(shop.token.pk, "EUR") == Decimal(counted)
    moved(shop, "3.00")
    moved(shop, "4.00", identifiers.row_id())
    assert sum_recent_moves(shop.token.pk, "EUR") == Decimal(counted) + 7


@pytest.mark.django_db
def test_what_is_of_another_token_or_currency_or_a_day_ago_does_not_count(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.real_now()
    monkeypatch.setattr(clock, "real_now", lambda: now)
    assert sum_recent_moves(shop.token.pk, "EUR") == 0
    moved(stranger, "1.00")
    moved(shop, "2.00", currency="USD")
    moved(shop, "4.00", at=now - TOKEN_LIMIT_WINDOW)
    moved(shop, "8.00", at=now - TOKEN_LIMIT_WINDOW + timedelta(microseconds=1))
    moved(shop, "16.00", at=now - TOKEN_LIMIT_WINDOW - timedelta(microseconds=1))
    assert sum_recent_moves(shop.token.pk, "EUR") == 8
    assert delete_old_token_moves() == 1
    assert TokenLimitUsage.objects.count() == 4


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("limits", "amount", "currency"),
    [
        (None, Decimal(10), "EUR"),
        (AMOUNT, Decimal(10), "EUR"),
        (DAY, None, "EUR"),
        (DAY, Decimal(10), None),
        (DAY, Decimal(10), ""),
    ],
)
def test_without_a_limit_or_an_amount_nothing_is_reserved(
    shop: Shop, limits: TokenLimits | None, amount: Decimal | None, currency: str | None
) -> None:
    with reserve_amount(shop.token.pk, limits, amount, currency) as reservation:
        reservation.payment = identifiers.row_id()
        assert not TokenLimitUsage.objects.exists()
    assert not TokenLimitUsage.objects.exists()


@pytest.mark.django_db
def test_what_is_reserved_is_of_its_token_amount_and_payment(shop: Shop, stranger: Shop) -> None:
    before, payment = clock.real_now(), identifiers.row_id()
    other = moved(stranger, "5.00")
    with reserve_amount(shop.token.pk, DAY, Decimal("12.50"), "USD") as reservation:
        [row] = TokenLimitUsage.objects.filter(token=shop.token)
        assert (row.amount, row.currency, row.payment) == (Decimal("12.50"), "USD", None)
        assert before <= row.at < before + timedelta(minutes=1)
        reservation.payment = payment
    assert TokenLimitUsage.objects.get(pk=row.pk).payment == payment
    assert TokenLimitUsage.objects.get(pk=other.pk).payment is None


@pytest.mark.django_db
@pytest.mark.parametrize(("amount", "fits"), [("20.00", True), ("20.01", False)])
def test_what_is_reserved_and_what_moved_stay_within_the_limit(shop: Shop, amount: str, fits: bool) -> None:
    moved(shop, "30.00")
    if fits:
        with reserve_amount(shop.token.pk, DAY, Decimal(amount), "EUR"):
            pass
    else:
        with (
            pytest.raises(TokenLimitError, match=r"at most 50.00 EUR in 24 hours, and moved 30.00 of it"),
            reserve_amount(shop.token.pk, DAY, Decimal(amount), "EUR"),
        ):
            pytest.fail("it is over the limit")
    assert TokenLimitUsage.objects.count() == 1 + fits, "an amount without a payment stays reserved"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fault", "kept"),
    [
        (TokenLimitError(), 0),
        (InvalidParametersError([]), 0),
        (RequestRefusedError("800.110.100"), 0),
        (IdempotencyKeyTakenError(), 0),
        (RuntimeError(), 1),
        (KeyboardInterrupt(), 1),
    ],
    ids=repr,
)
def test_a_refusal_gives_back_its_own_reservation_only(shop: Shop, fault: BaseException, kept: int) -> None:
    moved(shop, "1.00")
    with pytest.raises(type(fault)), reserve_amount(shop.token.pk, DAY, Decimal(10), "EUR"):
        raise fault
    assert TokenLimitUsage.objects.count() == 1 + kept


@pytest.mark.django_db
@pytest.mark.parametrize("theirs", [False, True])
def test_a_repeat_of_a_payment_that_this_token_made_counts_once(shop: Shop, stranger: Shop, theirs: bool) -> None:
    payment = identifiers.row_id()
    moved(stranger if theirs else shop, "10.00", payment)
    moved(shop, "1.00", identifiers.row_id())
    with reserve_amount(shop.token.pk, DAY, Decimal(10), "EUR") as reservation:
        reservation.payment = payment
    assert TokenLimitUsage.objects.filter(token=shop.token, payment=payment).count() == 1
    assert TokenLimitUsage.objects.filter(token=shop.token).count() == 2

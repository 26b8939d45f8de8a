"""Limits of an access token's own: payment types, amount of one payment, and of all payments within 24 hours.

The amount of 24 hours is exact under any number of requests at once: each payment reserves its amount under a lock of
the token's row, in a short transaction before it begins, and gives it back when it was not begun. Declined payments do
not count. Only tokens with such a limit pay for this. Amounts are in the payment's own currency, each currency has a
sum of its own, and the hours are real ones that end now. Source: docs/decisions/0053.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db import models, transaction

from gateway.access.tokens import TOKEN_OPERATIONS, TokenLimits
from gateway.catalogue.errors import InvalidParametersError
from gateway.core import clock, identifiers
from gateway.core.money import format_amount
from gateway.models import AccessToken, Payment, Status, TokenMove
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.store import IdempotencyKeyTakenError

TOKEN_LIMIT_WINDOW: Final = timedelta(hours=24)
JOB_PARAMETER_PREFIX: Final = "job."
"""What parameters of a subscription job begin with."""


class TokenLimitError(Exception):
    """The request is above a limit of its access token; nothing was begun. The text names the limit."""


@dataclass(slots=True)
class AmountReservation:
    """An amount that counts towards the token's 24 hours. Set ``payment`` once it is there."""

    payment: UUID | None = None


def check_token_limits(limits: TokenLimits | None, values: Mapping[str, str], *, pays_later: bool = False) -> None:
    """Raises TokenLimitError when the token may not make such a payment at all. ``values``: parameters by name;
    ``pays_later``: the request prepares payments that are made without the token (checkouts, subscriptions)."""
    if limits is None:
        return
    types = {text for name, text in values.items() if name == "paymentType" or name.startswith("overridePaymentType[")}
    moving = types & set(TOKEN_OPERATIONS)
    if limits.operations and (wrong := moving - set(limits.operations)):
        allowed = ", ".join(limits.operations)
        raise TokenLimitError(f"this access token makes {allowed} only, not {', '.join(sorted(wrong))}")
    amount = values.get("amount")
    if limits.amount is not None and amount is not None and Decimal(amount) > limits.amount:
        raise TokenLimitError(f"this access token moves at most {format_amount(limits.amount)} with one payment")
    if any(name.startswith(JOB_PARAMETER_PREFIX) for name in values):
        check_subscription_allowed(limits)
    if limits.day_amount is not None and pays_later and "CD" in types:
        raise TokenLimitError("this access token has a limit of 24 hours, so it prepares no payout (CD)")


def check_subscription_allowed(limits: TokenLimits | None) -> None:
    """Raises TokenLimitError for a token with any limit: a job goes on charging without its token."""
    if limits is not None:
        raise TokenLimitError("this access token has limits of its own, so it neither starts nor changes subscriptions")


@contextmanager
def reserve_amount(
    token: UUID, limits: TokenLimits | None, amount: Decimal | None, currency: str | None
) -> Iterator[AmountReservation]:
    """Count ``amount`` towards the token's 24 hours while its payment is made. Raises TokenLimitError."""
    reservation = AmountReservation()
    if limits is None or limits.day_amount is None or amount is None or not currency:
        yield reservation
        return
    move = _reserve(token, limits.day_amount, amount, currency)
    try:
        yield reservation
    except (RequestRefusedError, InvalidParametersError, IdempotencyKeyTakenError, TokenLimitError):
        # Nothing was begun. After any other exception a payment may be under way, so the amount goes on counting.
        TokenMove.objects.filter(pk=move).delete()
        raise
    TokenMove.objects.filter(pk=move).update(payment=reservation.payment)


def _reserve(token: UUID, most: Decimal, amount: Decimal, currency: str) -> UUID:
    with transaction.atomic(durable=False):
        AccessToken.objects.select_for_update().only("pk").get(pk=token)
        moved = sum_recent_moves(token, currency)
        if moved + amount > most:
            raise TokenLimitError(
                f"this access token moves at most {format_amount(most)} {currency} in 24 hours,"
                f" and moved {format_amount(moved)} of it"
            )
        move = TokenMove.objects.create(
            id=identifiers.row_id(), token_id=token, amount=amount, currency=currency, at=clock.real_now()
        )
    return move.pk


def sum_recent_moves(token: UUID, currency: str) -> Decimal:
    """What the token moved within TOKEN_LIMIT_WINDOW in one currency, but for what was declined."""
    moves = TokenMove.objects.filter(token=token, currency=currency, at__gt=clock.real_now() - TOKEN_LIMIT_WINDOW)
    declined = Payment.objects.filter(pk=models.OuterRef("payment"), status=Status.DECLINED)
    found: Decimal | None = moves.exclude(models.Exists(declined)).aggregate(sum=models.Sum("amount"))["sum"]
    return found or Decimal(0)


def delete_old_token_moves() -> int:
    """Moves that no limit looks back to any more; how many were deleted."""
    return TokenMove.objects.filter(at__lt=clock.real_now() - TOKEN_LIMIT_WINDOW).delete()[0]

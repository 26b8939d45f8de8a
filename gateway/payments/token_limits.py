"""Limits of an access token: payment types, amount of one payment, total amount within 24 hours.

The 24-hour limit is exact under concurrency: each payment reserves its amount under a lock of the token's row, in a
short transaction before it begins, and releases it if it was not begun. A payment counts with what it may still take:
what it asked for, once it is approved what was granted, a held part with that part, nothing once it is declined. Tokens
without such a limit cost nothing. Amounts are summed per currency over the last 24 hours of real time.
Source: docs/decisions/0053, docs/decisions/0129.
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
from django.db.models.functions import Coalesce

from gateway.access.tokens import TOKEN_OPERATIONS, TokenLimits
from gateway.catalogue.errors import InvalidParametersError
from gateway.core import clock, identifiers
from gateway.core.money import format_amount
from gateway.models import AccessToken, Payment, Status, TokenLimitUsage
from gateway.payments.job_hooks import JOB_PREFIX
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.store import IdempotencyKeyTakenError
from gateway.payments.stored_answer import build_held_amount_column

TOKEN_LIMIT_WINDOW: Final = timedelta(hours=24)


class TokenLimitError(Exception):
    """The request exceeds a limit of its access token; no payment was begun. The text names the limit."""


@dataclass(slots=True)
class AmountReservation:
    """An amount reserved in the token's 24-hour limit. The caller sets ``payment`` once it exists."""

    payment: UUID | None = None


def check_token_limits(limits: TokenLimits | None, values: Mapping[str, str], *, pays_later: bool = False) -> None:
    """Raise TokenLimitError when the token's payment types or amount limit forbid the request. ``values``: parameters
    by name; ``pays_later``: the request prepares payments that are made without the token (checkouts, subscriptions).
    """
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
    if any(name.startswith(JOB_PREFIX) for name in values):
        check_subscription_allowed(limits)
    if limits.day_amount is not None and pays_later and "CD" in types:
        raise TokenLimitError("this access token has a limit of 24 hours, so it prepares no payout (CD)")


def check_subscription_allowed(limits: TokenLimits | None) -> None:
    """Raise TokenLimitError for a token with any limit: a job goes on charging without its token."""
    if limits is not None:
        raise TokenLimitError("this access token has limits of its own, so it neither starts nor changes subscriptions")


@contextmanager
def reserve_amount(
    token: UUID, limits: TokenLimits | None, amount: Decimal | None, currency: str | None
) -> Iterator[AmountReservation]:
    """Reserve ``amount`` in the token's 24-hour limit while its payment is made. Raises TokenLimitError."""
    reservation = AmountReservation()
    if limits is None or limits.day_amount is None or amount is None or not currency:
        yield reservation
        return
    move = _insert_move(token, limits.day_amount, amount, currency)
    try:
        yield reservation
    except (RequestRefusedError, InvalidParametersError, IdempotencyKeyTakenError, TokenLimitError):
        # No payment was begun. After any other exception one may be under way, so the amount stays reserved.
        TokenLimitUsage.objects.filter(pk=move).delete()
        raise
    if reservation.payment is None:
        return
    own = TokenLimitUsage.objects.filter(pk=move)
    counted = models.Exists(TokenLimitUsage.objects.filter(token=token, payment=reservation.payment))
    if not own.exclude(counted).update(payment=reservation.payment):
        own.delete()  # the request was answered with a payment that was made before


def _insert_move(token: UUID, most: Decimal, amount: Decimal, currency: str) -> UUID:
    with transaction.atomic(durable=False):
        AccessToken.objects.select_for_update().only("pk").get(pk=token)
        moved = sum_recent_moves(token, currency)
        if moved + amount > most:
            raise TokenLimitError(
                f"this access token moves at most {format_amount(most)} {currency} in 24 hours,"
                f" and moved {format_amount(moved)} of it"
            )
        move = TokenLimitUsage.objects.create(
            id=identifiers.row_id(), token_id=token, amount=amount, currency=currency, at=clock.real_now()
        )
    return move.pk


def sum_recent_moves(token: UUID, currency: str) -> Decimal:
    """The amount the token moved, or may still move, within TOKEN_LIMIT_WINDOW in one currency."""
    moves = TokenLimitUsage.objects.filter(token=token, currency=currency, at__gt=clock.real_now() - TOKEN_LIMIT_WINDOW)
    known = models.Case(
        models.When(status=Status.DECLINED, then=Decimal(0)),
        models.When(status=Status.APPROVED, then=models.F("approved_amount")),
        default=build_held_amount_column(),
    )
    of_payment = Payment.objects.filter(pk=models.OuterRef("payment")).values(known=known)
    taken = Coalesce(models.Subquery(of_payment), models.F("amount"))
    found: Decimal | None = moves.aggregate(sum=models.Sum(taken))["sum"]
    return found or Decimal(0)


def delete_old_token_moves() -> int:
    """Delete moves older than TOKEN_LIMIT_WINDOW; returns how many."""
    return TokenLimitUsage.objects.filter(at__lt=clock.real_now() - TOKEN_LIMIT_WINDOW).delete()[0]

"""Payment links: made, opened, counted and closed; and the guard that no link is paid more often than it may be.

A link opens a checkout of its own for each shopper. Whether a payment of it may begin is decided by the link's other
checkouts whose payment is approved or may still be: they are counted, and the payment begins in the statement that
increments the link's version as it was read before the count. Of two shoppers who count the same, one begins; the other
counts again and is refused before any acquirer is asked. Source: docs/decisions/0083.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Case, Count, DecimalField, Exists, F, Func, OuterRef, Q, QuerySet, Sum, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from checkout import session
from checkout.models import Checkout, PaymentLink
from gateway.catalogue.endpoints import CREATE_CHECKOUT_ENDPOINT, PAYMENT_LINK_ID_PARAMETER
from gateway.catalogue.parse import InvalidParametersError, ParameterError, Parameters, UnknownNamePolicy
from gateway.catalogue.typed_pairs import ParameterPairs
from gateway.core import clock
from gateway.core.money import currency_exponent, format_amount
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.db.statement import WriteStatement
from gateway.models import Channel, Merchant, Payment, Status
from gateway.payments import shopper_return
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.request_builder import build_condition_facts

MAX_LINK_REQUEST_CHARS: Final = 32_768
"""Characters of a link's parameters: each opening stores a copy of them."""
TAKING_STATUSES: Final = (Status.STARTED, Status.PENDING, Status.IN_DOUBT, Status.APPROVED)
"""Statuses of a payment that is or may become one of those that a link allows."""
_ID: Final = re.compile("[0-9a-f]{32}")
_OWN_PREFIX: Final = "link."
ACTIVE_STATE: Final = "ACTIVE"
PAID_STATE: Final = "PAID"
EXPIRED_STATE: Final = "EXPIRED"
DEACTIVATED_STATE: Final = "DEACTIVATED"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUse:
    """How often a link was paid, and how much, by approved payments."""

    count: int
    amount: Decimal


# --- making and closing ----------------------------------------------------------------------------------------------


def build_payment_link(
    parameters: Parameters, *, merchant: Merchant, channel: Channel, now: datetime
) -> tuple[PaymentLink, WriteStatement]:
    """A new link and the statement that inserts it. ``parameters``: by CREATE_PAYMENT_LINK_ENDPOINT. Raises
    InvalidParametersError for what depends on the channel or the clock."""
    values = dict(parameters.values)
    request = {name: text for name, text in values.items() if not name.startswith(_OWN_PREFIX) and name != "entityId"}
    row = PaymentLink(
        merchant=merchant,
        channel=channel,
        description=values.get("link.description", ""),
        request=request,
        currency=request["currency"],
        created_at=now,
        expires_at=clock.parse_time(values.get("link.expiresAt")),
        max_payments=_parse_max_payments(values),
    )
    if values.get("link.openAmount") == "true":
        smallest = Decimal(1) if currency_exponent(row.currency) == 0 else Decimal("0.01")
        row.min_amount = Decimal(values.get("link.minAmount") or smallest)
        row.max_amount = Decimal(values["link.maxAmount"])
    else:
        row.amount = Decimal(request["amount"])
    _check_payment_link(row, values)
    write = WriteStatement()
    write.insert(
        PaymentLink, **{field.attname: getattr(row, field.attname) for field in PaymentLink._meta.concrete_fields}
    )
    return row, write


def _parse_max_payments(values: Mapping[str, str]) -> int | None:
    if values.get("link.reusable") != "true":
        return 1
    return int(values["link.maxPayments"]) if "link.maxPayments" in values else None


def _check_payment_link(row: PaymentLink, values: Mapping[str, str]) -> None:
    errors = []
    if row.expires_at is not None and row.expires_at <= row.created_at:
        message = f"must be later than now, {row.created_at:%Y-%m-%d %H:%M:%S} UTC"
        errors.append(
            ParameterError(name="link.expiresAt", value=values["link.expiresAt"], message=message, known=True)
        )
    if row.max_amount is not None and row.min_amount is not None and row.max_amount < row.min_amount:
        message = f"must not be below the smallest amount, {format_amount(row.min_amount)}"
        errors.append(
            ParameterError(name="link.maxAmount", value=values["link.maxAmount"], message=message, known=True)
        )
    if row.max_payments != 1 and row.channel.refuse_duplicates and "merchantTransactionId" in values:
        message = "is not sent with link.reusable=true here: this channel takes each one once"
        errors.append(
            ParameterError(
                name="merchantTransactionId", value=values["merchantTransactionId"], message=message, known=True
            )
        )
    if (size := sum(len(name) + len(text) for name, text in row.request.items())) > MAX_LINK_REQUEST_CHARS:
        message = (
            f"has {size:,} characters with all other parameters of the link; {MAX_LINK_REQUEST_CHARS:,} are allowed"
        )
        longest = max(row.request, key=lambda name: len(row.request[name]))
        errors.append(ParameterError(name=longest, message=message, known=True))
    if errors:
        raise InvalidParametersError(errors)


def deactivate_payment_link(row: PaymentLink) -> bool:
    """Close a link, and refuse the payments that count on its version. False if it was closed before."""
    now = clock.merchant_now(row.merchant)
    closed = PaymentLink.objects.filter(pk=row.pk, deactivated_at=None).update(
        deactivated_at=now, version=F("version") + 1
    )
    row.refresh_from_db(fields=["deactivated_at", "version"])
    return bool(closed)


# --- finding and counting --------------------------------------------------------------------------------------------


def find_payment_link(public_id: str, **where: Any) -> PaymentLink | None:
    """The link of that id with its merchant and channel, both active; None for an unknown id."""
    if not _ID.fullmatch(public_id):
        return None
    rows = PaymentLink.objects.select_related("merchant", "channel")
    row = rows.filter(session.ACTIVE_MERCHANT_FILTER, pk=UUID(public_id), channel__active=True, **where).first()
    if row is not None:
        row.channel.merchant = row.merchant
    return row


def count_link_use(row: PaymentLink) -> LinkUse:
    """How often the link was paid, and how much."""
    paid = Checkout.objects.filter(link=row, payment__status=Status.APPROVED)
    found = paid.aggregate(count=Count("pk"), amount=Sum(_build_paid_amount(), default=Decimal(0)))
    return LinkUse(count=found["count"], amount=found["amount"])


def annotate_link_use(rows: QuerySet[PaymentLink]) -> QuerySet[PaymentLink]:
    """``rows`` with ``paid_count`` and ``paid_amount``."""
    paid = Q(checkouts__payment__status=Status.APPROVED)
    amount = _build_paid_amount("checkouts__")
    return rows.annotate(
        paid_count=Count("checkouts", filter=paid), paid_amount=Sum(amount, filter=paid, default=Decimal(0))
    )


def _build_paid_amount(prefix: str = "") -> Case:
    """What a paid checkout was paid with: of one that was paid in parts, its whole amount."""
    whole = Cast(KeyTextTransform("amount", f"{prefix}request"), DecimalField(max_digits=18, decimal_places=2))
    last = Coalesce(f"{prefix}payment__approved_amount", f"{prefix}payment__amount")
    return Case(When(**{f"{prefix}rest__isnull": False}, then=whole), default=last)


def resolve_link_state(row: PaymentLink, paid_count: int) -> str:
    """ACTIVE, or why the link is not opened: PAID (as often as it may be), EXPIRED, DEACTIVATED."""
    if row.max_payments is not None and paid_count >= row.max_payments:
        return PAID_STATE
    if row.deactivated_at is not None:
        return DEACTIVATED_STATE
    if row.expires_at is not None and clock.merchant_now(row.merchant) >= row.expires_at:
        return EXPIRED_STATE
    return ACTIVE_STATE


def find_link_state(row: PaymentLink) -> str:
    """The state of a link for its page, which counts no more payments than it has to."""
    if row.max_payments is None:
        return resolve_link_state(row, 0)
    paid = Checkout.objects.filter(link=row, payment__status=Status.APPROVED)
    return resolve_link_state(row, paid[: row.max_payments].count())


def build_payment_link_url(row: PaymentLink) -> str:
    """The address that shoppers get."""
    return f"{settings.GATEWAY_BASE_URL}/pay/{row.public_id}"


# --- opening and paying ----------------------------------------------------------------------------------------------


def open_link_checkout(row: PaymentLink, amount: Decimal | None = None) -> Checkout:
    """A checkout of an open link. ``amount``: the shopper's, for an open amount within its bounds. Raises
    InvalidParametersError where the channel does not take the link's parameters any more."""
    now = clock.merchant_now(row.merchant)
    values = {
        "entityId": row.channel.entity_id,
        **row.request,
        f"customParameters[{PAYMENT_LINK_ID_PARAMETER}]": row.public_id,
        "amount": format_amount(row.amount if row.amount is not None else amount or Decimal(0)),
    }
    parameters = CREATE_CHECKOUT_ENDPOINT.catalogue.parse(
        ParameterPairs(values.items()),
        facts=build_condition_facts(row.channel, now),
        policy=UnknownNamePolicy.LENIENT,
        masks=row.channel.mask_card_data,
    )
    checkout, write = session.create_checkout(parameters, merchant=row.merchant, channel=row.channel, now=now, link=row)
    write.run()
    return checkout


def claim_link_payment(row: Checkout) -> PaymentLink | None:
    """The link whose version the payment of ``row`` has to increment; None if no limit holds: the checkout has no link,
    or one without a limit. Raises RequestRefusedError if the link is closed, paid, or being paid by another shopper.
    """
    if row.link_id is None:
        return None
    link = PaymentLink.objects.get(pk=row.link_id)
    link.merchant = row.merchant
    if link.deactivated_at is not None:
        raise _end_checkout(row)
    if link.max_payments is None:
        return None
    # Where the last payment is declined, an earlier one may hold its part still, or is giving it back.
    earlier = Func(OuterRef("parts"), template="(SELECT unnest(%(expressions)s))")
    taking_part = Exists(Payment.objects.filter(pk__in=earlier, status__in=TAKING_STATUSES))
    taking = Q(payment__status__in=TAKING_STATUSES) | Q(taking_part)
    others = Checkout.objects.filter(taking, link=link).exclude(pk=row.pk)
    if others[: link.max_payments].count() < link.max_payments:
        return link
    if link.max_payments == 1:
        _withdraw_waiting_payments(others)
    if others.filter(payment__status=Status.APPROVED)[: link.max_payments].count() >= link.max_payments:
        raise _end_checkout(row)
    if others[: link.max_payments].count() < link.max_payments:
        return link
    raise RequestRefusedError(CONCURRENT_UPDATE_CODE, more="another payment of this link is being made; try again soon")


def _withdraw_waiting_payments(others: QuerySet[Checkout]) -> None:
    """End payments that wait for a shopper who opened the single-use link in another browser, as those of another tab
    are ended."""
    for other in others.filter(payment__status=Status.PENDING).select_related("payment__merchant", "payment__channel"):
        if other.payment is not None:
            shopper_return.withdraw_payment(other.payment, None)


def _end_checkout(row: Checkout) -> RequestRefusedError:
    """End a checkout that cannot be paid any more, and return its refusal (404)."""
    Checkout.objects.filter(pk=row.pk).update(expires_at=clock.merchant_now(row.merchant))
    return session.build_checkout_not_found()

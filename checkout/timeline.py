"""The back office's view of a checkout: its timeline, the hidden brands with reasons, and the prepared parameters.

Source: Part A, States and transitions; Events, 2.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from checkout.models import CallAttempt, Checkout, ResultCall
from checkout.session import hash_checkout_id
from gateway.backoffice.kit.formatting import build_state_pill, format_money
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.payments.timeline import TimelineEvent
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.models import Payment
from gateway.payments.risk_screening import PARTIAL_APPROVAL_DETAIL

MAX_SHOWN_CALLS: Final = 50


def build_checkout_page(checkout: UUID) -> dict[str, Any]:
    """Template context of the page of ``checkout``."""
    row = Checkout.objects.select_related("merchant", "channel", "payment").get(pk=checkout)
    over = row.expires_at <= clock.merchant_now(row.merchant)
    return {
        "title": _render_heading(row),
        "original": row,
        "checkout": row,
        "logged_as": hash_checkout_id(row.public_id),
        "over": over,
        "moments": _list_moments(row, over),
        "hidden": sorted(row.hidden_brands.items()),
        "sent": [(name, mask_text(value)) for name, value in sorted(row.request.items())],
        "secret": row.request_sealed is not None,
        "payment": row.payment,
        "parts": _list_parts(row),
        "pill": build_state_pill(row.payment.status) if row.payment else None,
        "payment_title": format_payment_title(row.payment) if row.payment else "",
        "payment_address": reverse("admin:gateway_payment_change", args=[row.payment.pk]) if row.payment else "",
    }


def format_checkout_amount(row: Checkout) -> str:
    """The amount that the merchant prepared, as a reader writes it; a dash for a registration."""
    amount, currency = row.request.get("amount"), row.request.get("currency") or ""
    return format_money(Decimal(amount), currency) if amount else "–"


def _render_heading(row: Checkout) -> str:
    if not row.request.get("amount"):
        return _("Checkout for a registration")
    return f"{_('Checkout')} {format_checkout_amount(row)}"


def _list_parts(row: Checkout) -> list[dict[str, str]]:
    """The payments that hold, or held, other parts of the amount than the last one."""
    parts = Payment.objects.filter(pk__in=row.parts).order_by("id") if row.parts else ()
    return [
        {
            "title": format_payment_title(one),
            "address": reverse("admin:gateway_payment_change", args=[one.pk]),
            "state": str(build_state_pill(one.status)["text"]),
            "told": one.answer.get("resultDetails", {}).get(PARTIAL_APPROVAL_DETAIL, ""),
        }
        for one in parts
    ]


def _list_moments(row: Checkout, over: bool) -> list[TimelineEvent]:
    """The events of a checkout, in order. Attempts before the last one are only counted."""
    found = [TimelineEvent(at=row.created_at, kind="checkout", title=_("Prepared by the merchant"))]
    payment: Payment | None = row.payment
    if payment is not None:
        lines = (_("Attempt %d") % row.attempts,) if row.attempts > 1 else ()
        found.append(TimelineEvent(at=payment.created_at, kind="payment", title=_("The shopper paid"), lines=lines))
        if payment.completed_at is not None:
            shown = build_state_pill(payment.status)
            found.append(
                TimelineEvent(
                    at=payment.completed_at, kind="payment", title=str(shown["text"]), tone=str(shown["tone"])
                )
            )
    for attempt in CallAttempt.objects.filter(payment=payment).order_by("id")[:MAX_SHOWN_CALLS] if payment else ():
        good = attempt.status is not None and 200 <= attempt.status < 300
        sentence = _("Nobody had fetched the result: the merchant was called, and answered %s")
        said = attempt.status or attempt.failure
        found.append(TimelineEvent(at=attempt.at, kind="call", title=sentence % said, tone="good" if good else "bad"))
    found += [
        TimelineEvent(at=call.due_at, kind="call", title=_("The merchant is called, if nobody fetches it"), tone="wait")
        for call in ResultCall.objects.filter(checkout=row)
    ]
    if row.fetched_at is not None:
        found.append(
            TimelineEvent(at=row.fetched_at, kind="fetched", title=_("The merchant fetched the result"), tone="good")
        )
    end = _("Expired") if over else _("Expires")
    found.append(TimelineEvent(at=row.expires_at, kind="end", title=end, tone="plain" if over else "wait"))
    return sorted(found, key=lambda moment: moment.at)

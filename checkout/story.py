"""What happened to a checkout, for the back office: its timeline, the brands it hid and why, what was prepared.

Source: Part A, States and transitions; Events, 2; design, look ("a clerk: who decided and why").
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from checkout.models import CallAttempt, Checkout, ResultCall
from checkout.session import hashed
from gateway import clock
from gateway.admin.showing import pill
from gateway.desk.story import Moment, title_of
from gateway.models import Payment

CALLS_AT_MOST: Final = 50


def told(checkout: UUID) -> dict[str, Any]:
    """Everything the page of ``checkout`` shows."""
    row = Checkout.objects.select_related("merchant", "channel", "payment").get(pk=checkout)
    over = row.expires_at <= clock.now(row.merchant)
    return {
        "title": _heading(row), "original": row, "checkout": row, "logged_as": hashed(row.public_id), "over": over,
        "moments": _moments(row, over), "hidden": sorted(row.hidden.items()), "sent": sorted(row.request.items()),
        "secret": row.request_sealed is not None, "payment": row.payment,
        "pill": pill(row.payment.status) if row.payment else None,
        "payment_title": title_of(row.payment) if row.payment else "",
        "payment_address": reverse("admin:gateway_payment_change", args=[row.payment.pk]) if row.payment else "",
    }  # fmt: skip


def _heading(row: Checkout) -> str:
    amount, currency = row.request.get("amount"), row.request.get("currency", "")
    return f"{_('Checkout')} {amount} {currency}" if amount else str(_("Checkout for a registration"))


def _moments(row: Checkout, over: bool) -> list[Moment]:
    """What happened to a checkout, in order. Attempts before the last one are counted."""
    found = [Moment(at=row.created_at, kind="checkout", title=_("Prepared by the merchant"))]
    payment: Payment | None = row.payment
    if payment is not None:
        lines = (_("Attempt %d") % row.attempts,) if row.attempts > 1 else ()
        found.append(Moment(at=payment.created_at, kind="payment", title=_("The shopper paid"), lines=lines))
        if payment.completed_at is not None:
            shown = pill(payment.status)
            found.append(
                Moment(at=payment.completed_at, kind="payment", title=str(shown["text"]), tone=str(shown["tone"]))
            )
    for attempt in CallAttempt.objects.filter(payment=payment).order_by("id")[:CALLS_AT_MOST] if payment else ():
        good = attempt.status is not None and 200 <= attempt.status < 300
        told = _("Nobody had fetched the result: the merchant was called, and answered %s")
        said = attempt.status or attempt.failure
        found.append(Moment(at=attempt.at, kind="call", title=told % said, tone="good" if good else "bad"))
    found += [
        Moment(at=call.due_at, kind="call", title=_("The merchant is called, if nobody fetches it"), tone="wait")
        for call in ResultCall.objects.filter(checkout=row)
    ]
    if row.fetched_at is not None:
        found.append(Moment(at=row.fetched_at, kind="fetched", title=_("The merchant fetched the result"), tone="good"))
    end = _("Expired") if over else _("Expires")
    found.append(Moment(at=row.expires_at, kind="end", title=end, tone="plain" if over else "wait"))
    return sorted(found, key=lambda moment: moment.at)

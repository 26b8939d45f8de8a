"""``{{ amount|money:currency }}``, ``{{ at|moment }}``: money and times as the reader writes them.

All pages of the back office show them by these filters, so that there is one place that knows how.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django import template
from django.utils.safestring import SafeString

from gateway.backoffice.kit import formatting
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.models import Payment

register = template.Library()


@register.filter("money")
def show_money(amount: Any, currency: str = "") -> str:
    """An amount in groups of three with its currency; text that is no number stays as it is."""
    try:
        return formatting.format_money(Decimal(str(amount)) if amount not in (None, "") else None, currency)
    except InvalidOperation:
        return f"{amount} {currency}".rstrip()


@register.filter("count")
def show_count(number: Any) -> str:
    """A whole number in groups of three; a dash for None."""
    return formatting.format_number(int(number)) if number is not None else "–"


@register.filter("figure")
def show_figure(value: Any) -> str:
    """A figure of a chart: a count, or an amount of money where it is a Decimal."""
    return formatting.format_money(value) if isinstance(value, Decimal) else formatting.format_number(value)


@register.filter("moment")
def show_moment(at: datetime | None, form: str = "seconds") -> SafeString:
    """A time with its zone. ``form``: seconds, minutes or short."""
    return formatting.render_moment(at if isinstance(at, datetime) else None, form)


@register.filter("clock")
def show_clock(at: datetime | None, form: str = "seconds") -> SafeString:
    """A time without its zone, for a column whose head names it."""
    return formatting.render_moment(at if isinstance(at, datetime) else None, form, named=False)


@register.filter("moment_text")
def show_moment_text(at: datetime, form: str = "minutes") -> str:
    """A time with its zone as plain text, for sentences and attributes."""
    return formatting.format_moment(at, form) if isinstance(at, datetime) else "–"


@register.filter("clock_text")
def show_clock_text(at: datetime, form: str = "seconds") -> str:
    """A time without its zone as plain text: in pictures."""
    return formatting.format_local(at, form) if isinstance(at, datetime) else "–"


@register.filter("payment_title")
def show_payment_title(payment: Payment) -> str:
    """What a payment is, in words: "Refund" in place of RF."""
    return format_payment_title(payment)


@register.simple_tag(name="zone")
def show_zone() -> str:
    """The name of the reader's zone, for the heads of columns."""
    return formatting.name_zone()

"""Template tags that name back-office pages in the words of the navigation (headings, browser titles)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django import template
from django.utils.translation import gettext as _

from chargebacks.models import Chargeback, DisputeAlert
from config import navigation
from gateway.backoffice.access.audit_sentences import describe_entries
from gateway.backoffice.follow_ups.approval_notice import describe_approval
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.schedules.schedule_details import name_schedule
from gateway.models import (
    Approval,
    AuditEntry,
    Authentication,
    BankOrder,
    BatchedCapture,
    Notification,
    Payment,
    Registration,
    WebhookEndpoint,
)
from gateway.scheduling.models import Job
from reporting.models import SettlementRecord
from reporting.templatetags.books import describe_line_kind

register = template.Library()

_NAMES: Final[Mapping[type, Callable[[Any], str]]] = {
    Payment: lambda row: f"{format_payment_title(row)} {format_money(row.amount, row.currency)}",
    Approval: describe_approval,
    Registration: lambda row: row.brand or _("Registration"),
    Job: name_schedule,
    Chargeback: lambda row: format_money(row.amount, row.currency),
    DisputeAlert: lambda row: format_money(row.amount, row.currency),
    SettlementRecord: lambda row: f"{describe_line_kind(row)} {format_money(row.amount, row.currency)}",
    BatchedCapture: lambda row: format_money(row.amount, row.currency),
    BankOrder: lambda row: format_money(row.amount, row.currency),
    Authentication: lambda row: f"{row.network} {format_money(row.amount, row.currency)}",
    AuditEntry: lambda row: describe_entries([row])[row.pk],
    Notification: lambda row: f"{row.kind} {row.action}",
    WebhookEndpoint: lambda row: _("Inspector") if row.url.startswith("inspector:") else row.url,
}
"""Models whose rows are shown by other names than their ``str``: codes, and a state that changes."""


@register.simple_tag(takes_context=True)
def placed(context: template.Context, parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The ``parts`` of a heading (title, link), which the theme fills with app and model, in the words of the
    navigation: group, page, and row."""
    known, here = navigation.list_page_titles(), context["request"].path
    if here in known:
        group, title = known[here]
        return [{"title": group}, {"title": title, "link": here}]
    found = [dict(part) for part in parts]
    if len(found) > 1 and str(found[1].get("link")) in known:
        group, title = known[str(found[1]["link"])]
        found[:2] = [{"title": group}, {"title": title, "link": found[1]["link"]}]
    match = context["request"].resolver_match
    page = getattr(match.func, "model_admin", None) if match is not None else None
    if page is not None and len(found) == 2 and str(match.url_name).endswith("_add"):
        found.append({"title": _("Add %(name)s") % {"name": page.opts.verbose_name}})
    for part in found[2:]:
        if (name := _NAMES.get(type(part["title"]))) is not None:
            part["title"] = name(part["title"])
    return found


@register.simple_tag
def environment_name() -> tuple[str, str]:
    """The environment's name and its tone, for pages before the sign-in, which have no header."""
    name, tone = navigation.environment(None)
    return name, {"danger": "bad", "info": "note"}[tone]


@register.simple_tag(takes_context=True)
def window_title(context: template.Context) -> str:
    """The browser tab's title: a list has its navigation name instead of "Select payment to view"."""
    known = navigation.list_page_titles().get(context["request"].path)
    if known is not None:
        return str(known[1])
    return " · ".join(str(context[name]) for name in ("subtitle", "title") if context.get(name))

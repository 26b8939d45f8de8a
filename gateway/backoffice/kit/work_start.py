"""Starting background work from a page: its own page shows how it goes, and a user has a limited number of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.background import queue
from gateway.backoffice.kit.base import actor_from_request
from gateway.models import BackgroundWork


def enqueue_page_work(
    request: HttpRequest, kind: queue.WorkKind, title: str, parameters: Mapping[str, Any], *, result_page: str = ""
) -> BackgroundWork | None:
    """Queue background work of the request's user; None, with a message, if they have too much running. The caller has
    checked the permission. ``result_page``: URL name of the page that shows what the work found."""
    try:
        row = queue.enqueue_work(
            kind, title, parameters, owner=int(request.user.pk or 0), by=actor_from_request(request)
        )
    except queue.TooMuchOpenWorkError:
        report_too_much_work(request)
        return None
    if result_page:
        row.parameters |= {"list": reverse(result_page, args=[row.pk])}
        BackgroundWork.objects.filter(pk=row.pk).update(parameters=row.parameters)
    return row


def start_page_work(
    request: HttpRequest, kind: queue.WorkKind, title: str, parameters: Mapping[str, Any], *, back: str = ""
) -> HttpResponse:
    """Queue background work and lead to its page; to ``back``, or to the user's list of work, if they have too much
    running."""
    row = enqueue_page_work(request, kind, title, parameters)
    return (
        lead_to_work(row) if row is not None else redirect(back or reverse("admin:gateway_backgroundwork_changelist"))
    )


def lead_to_work(row: BackgroundWork) -> HttpResponse:
    """A redirect to the page of background work."""
    return redirect(reverse("admin:gateway_backgroundwork_change", args=[row.pk]))


def report_too_much_work(request: HttpRequest) -> None:
    """Add the message that the user has as much background work running as is allowed."""
    messages.error(
        request,
        _("You have %d pieces of work running. Wait for one, or cancel one.") % queue.MAX_OPEN_WORK_PER_OWNER,
    )

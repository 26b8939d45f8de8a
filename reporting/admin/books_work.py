"""Starting background work of the books from a page: files of a month or a period."""

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


def start_books_work(
    request: HttpRequest, kind: queue.WorkKind, title: str, parameters: Mapping[str, Any], back: str
) -> HttpResponse:
    """Queue background work and lead to its page. The caller has checked the permission."""
    try:
        row = queue.enqueue_work(
            kind, title, parameters, owner=int(request.user.pk or 0), by=actor_from_request(request)
        )
    except queue.TooMuchOpenWorkError:
        messages.error(
            request,
            _("You have %d pieces of work running. Wait for one, or cancel one.") % queue.MAX_OPEN_WORK_PER_OWNER,
        )
        return redirect(back)
    return redirect(reverse("admin:gateway_backgroundwork_change", args=[row.pk]))

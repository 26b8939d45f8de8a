"""Pages that are read from a standby, with the time as of which: lists, searches and reports of the back office."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Final

from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse

from gateway.db import standby

WRITTEN_SESSION_KEY: Final = "written"
"""Session key: how far the primary had written after the user's last change. What they do they see in the next list."""


def serve_from_standby(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view, whose GET may be read from the standby, up to its rendered page. It must only read."""

    @wraps(view)
    def serve(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method != "GET" or not standby.has_standby():
            return view(request, *args, **kwargs)

        def find() -> HttpResponse:
            response = view(request, *args, **kwargs)
            return response.render() if isinstance(response, SimpleTemplateResponse) else response

        response, as_of = standby.read_elsewhere(find, written=request.session.get(WRITTEN_SESSION_KEY, 0))
        standby.add_as_of_header(response, as_of)
        return response

    return serve


def note_written(request: HttpRequest) -> None:
    """After a change by this user: their next lists are not older than now."""
    if request.method != "POST" or not standby.has_standby() or not request.user.is_authenticated:
        return
    with suppress(DatabaseError, InterfaceError):  # the change itself is done
        request.session[WRITTEN_SESSION_KEY] = standby.find_written_position()

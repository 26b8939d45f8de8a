"""The message on a page whose test call was refused because too many are running. Source: docs/decisions/0168."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from gateway.outbound.page_calls import TooManyPageCallsError


@contextmanager
def tell_of_too_many_calls(request: HttpRequest) -> Iterator[None]:
    """Run the block; if its call is refused, nothing was sent, and a message says so."""
    try:
        yield
    except TooManyPageCallsError:
        messages.error(request, _("Nothing was sent: other servers are being tried just now. Try again in a minute."))

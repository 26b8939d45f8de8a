"""Requests for approval that still can be decided. One that is too old stays as it was asked, and is none of them."""

from __future__ import annotations

from django.db.models import Q

from gateway.core import clock
from gateway.models import Approval


def build_open_condition() -> Q:
    """The condition of a request that nobody has decided or withdrawn, and that is not too old."""
    return Q(state=Approval.State.ASKED, expires_at__gt=clock.real_now())

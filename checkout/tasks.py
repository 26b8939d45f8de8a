"""What is forgotten in time."""

from __future__ import annotations

from celery import shared_task

from checkout.models import Checkout
from gateway import clock


@shared_task
def sweep() -> dict[str, int]:
    """Erase what was sealed in checkouts that have ended, by their merchants' clocks or the world's."""
    ended = Checkout.objects.filter(request_sealed__isnull=False, expires_at__lte=clock.real())
    return {"checkouts": ended.update(request_sealed=None)}

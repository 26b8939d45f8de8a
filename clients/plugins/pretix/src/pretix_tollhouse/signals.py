"""What pretix calls: the list of payment providers, and the periodic reading of open payments."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.dispatch import receiver
from django.utils.timezone import now
from django_scopes import scopes_disabled
from pretix.base.models import OrderPayment, OrderRefund
from pretix.base.signals import periodic_task, register_payment_providers
from pretix.helpers.periodic import minimum_interval

from pretix_tollhouse.payment import TollhouseProvider
from pretix_tollhouse.results import GatewayAwayError, read_result

log = logging.getLogger(__name__)

ABANDONED_AFTER = timedelta(days=1)
"""A payment page is open for 30 minutes: what was not begun on it by then cannot be paid any more."""
READ_FOR = timedelta(days=30)
"""How long payments that wait for a bank are read again."""
READING_S = 60.0
"""How long a run may read payments: pretix does all its periodic work in one task."""


@receiver(register_payment_providers, dispatch_uid="tollhouse_payment_provider")
def register_provider(sender: Any, **kwargs: Any) -> type[TollhouseProvider]:  # noqa: ARG001 - the signal's arguments
    """The provider."""
    return TollhouseProvider


@receiver(periodic_task, dispatch_uid="tollhouse_open_payments")
@minimum_interval(minutes_after_success=10)
def read_open_payments(sender: Any, **kwargs: Any) -> None:  # noqa: ARG001 - the signal's arguments
    """Read the results of open payments, for shops without webhooks and shoppers who did not come back. An event
    whose gateway is away waits for the next run."""
    until, away = time.monotonic() + READING_S, set()
    with scopes_disabled():
        for payment in _list_open_payments():
            event = payment.order.event
            if time.monotonic() > until:
                log.warning("not all open payments were read in %s seconds", READING_S)
                break
            if event.pk in away or TollhouseProvider.identifier not in event.get_payment_providers(cached=True):
                continue
            try:
                read_result(payment)
            except GatewayAwayError:
                log.exception("the gateway of event %s is away", event.slug)
                away.add(event.pk)
            except Exception:  # whatever is wrong with one, the others are read
                log.exception("the result of payment %s could not be read", payment.full_id)


def _list_open_payments() -> QuerySet[OrderPayment]:
    """By chance: what a run does not reach is not the same each time."""
    begun = Q(state=OrderPayment.PAYMENT_STATE_CREATED, created__gte=now() - ABANDONED_AFTER)
    waiting = Q(state=OrderPayment.PAYMENT_STATE_PENDING, created__gte=now() - READ_FOR)
    refunds = OrderRefund.objects.filter(state=OrderRefund.REFUND_STATE_TRANSIT, provider=TollhouseProvider.identifier)
    found = OrderPayment.objects.filter(
        begun | waiting | Q(pk__in=refunds.values("payment")),
        provider=TollhouseProvider.identifier,
        info__contains="checkout",
    )
    return found.select_related("order__event").order_by("?")

"""A merchant's account at the card API of tests.support.card_host, and that server's own names."""

from __future__ import annotations

from gateway.connectors.accounts import seal_connector_secrets
from gateway.core import identifiers
from gateway.models import AcquirerAccount, Channel, RoutingRule, RoutingTarget
from tests.support.card_host import AUTHENTICATES, CARD, KEY, OTHERS, ROTATED, SIGNING, WRONG_CVC, CardApi, card_api

__all__ = [
    "AUTHENTICATES",
    "CARD",
    "KEY",
    "OTHERS",
    "ROTATED",
    "SIGNING",
    "WRONG_CVC",
    "CardApi",
    "account_at",
    "card_api",
    "second_account_at",
]


def account_at(
    channel: Channel, url: str, key: str = KEY, *, merchant: str = "acct_1", **settings: str
) -> AcquirerAccount:
    """The merchant's account at the processor behind ``url``."""
    row = identifiers.row_id()
    sealed = seal_connector_secrets({"api_key": key, "webhook_secrets": SIGNING}, row)
    return AcquirerAccount.objects.create(
        id=row,
        channel=channel,
        connector="stripe",
        acquirer_merchant_id=merchant,
        secrets_sealed=sealed,
        settings={"url": url, **settings},
    )


def second_account_at(channel: Channel, url: str) -> AcquirerAccount:
    """Another account, asked after a decline at the channel's account or where that is not reached."""
    first = AcquirerAccount.objects.get(channel=channel, acquirer_merchant_id="acct_1")
    second = account_at(channel, url, merchant="acct_2")
    rule = RoutingRule.objects.create(channel=channel, name="all", max_cascades=1)
    for position, account in enumerate((first, second)):
        RoutingTarget.objects.create(rule=rule, account=account, weight=1 - position, position=position)
    return second

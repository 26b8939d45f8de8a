"""A merchant's account at the card API of tests.support.card_host, and that server's own names."""

from __future__ import annotations

from gateway.connectors.accounts import seal_connector_secrets
from gateway.core import identifiers
from gateway.models import AcquirerAccount, Channel
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
]


def account_at(channel: Channel, url: str, key: str = KEY, **settings: str) -> AcquirerAccount:
    """The merchant's account at the processor behind ``url``."""
    row = identifiers.row_id()
    sealed = seal_connector_secrets({"api_key": key, "webhook_secrets": SIGNING}, row)
    return AcquirerAccount.objects.create(
        id=row,
        channel=channel,
        connector="stripe",
        acquirer_merchant_id="acct_1",
        secrets_sealed=sealed,
        settings={"url": url, **settings},
    )

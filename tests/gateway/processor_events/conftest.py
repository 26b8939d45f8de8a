"""A shop with an account at a running processor, and its webhooks."""

from tests.gateway.connectors.card_api.conftest import card_shop, processor

__all__ = ["card_shop", "processor"]

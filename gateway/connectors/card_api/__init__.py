"""Connector to the card API processor: PaymentIntents over HTTPS (docs/connectors/card-api.md)."""

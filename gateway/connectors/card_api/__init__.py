"""The card API processor: PaymentIntents over HTTPS, mapped in pure functions (docs/connectors/card-api.md)."""

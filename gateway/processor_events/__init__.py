"""Webhooks of processors: stored once, then processed by querying the processor (docs/connectors/card-api.md)."""

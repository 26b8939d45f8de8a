"""What processors tell by themselves: taken in, kept once, acted on by asking them (docs/connectors/card-api.md)."""

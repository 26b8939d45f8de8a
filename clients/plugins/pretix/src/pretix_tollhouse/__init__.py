"""A payment provider for pretix: shoppers pay on the hosted payment page of a Tollhouse gateway."""

__version__ = "0.1.0"

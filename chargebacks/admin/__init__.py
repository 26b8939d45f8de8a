"""The back office's pages of disputes."""

from chargebacks.admin import disputes, home

__all__ = ["disputes", "home"]

"""The back office's pages of disputes."""

from chargebacks.admin import disputes

__all__ = ["disputes"]

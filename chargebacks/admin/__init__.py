"""Back-office pages of disputes."""

from chargebacks.admin import disputes, home_disputes

__all__ = ["disputes", "home_disputes"]

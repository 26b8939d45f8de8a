"""Back-office pages of disputes."""

from chargebacks.admin import dispute_search, disputes, home_disputes

__all__ = ["dispute_search", "disputes", "home_disputes"]

"""Shopper pages: the redirect after a payment, and the return to the merchant."""

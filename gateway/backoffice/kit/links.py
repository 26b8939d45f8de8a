"""Addresses of pages that several subjects link to."""

from __future__ import annotations

from uuid import UUID

from django.urls import reverse


def build_payment_page_url(payment: UUID) -> str:
    """Address of a payment's page."""
    return reverse("admin:gateway_payment_change", args=[payment])

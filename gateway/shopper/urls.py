"""The shopper's routes, below /shopper/. Each needs the token of its payment (gateway.payments.capability)."""

from __future__ import annotations

from django.urls import path

from gateway.shopper import threeds, views

urlpatterns = [
    path("method", threeds.method, name="shopper-method"),
    path("<str:target>", threeds.step, name="shopper"),
    path("<str:target>/return", views.comes_back, name="shopper-return"),
]

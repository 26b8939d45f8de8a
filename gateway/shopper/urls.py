"""The shopper's routes, below /shopper/. Each needs the token of its payment (gateway.payments.shopper_tokens)."""

from __future__ import annotations

from django.urls import path

from gateway.shopper import threeds, views

urlpatterns = [
    path("method", threeds.method_page_view, name="shopper-method"),
    path("<str:target>/challenged", threeds.challenge_return_view, name="shopper-challenged"),
    path("<str:target>", threeds.authentication_view, name="shopper"),
    path("<str:target>/return", views.return_view, name="shopper-return"),
]

"""The shopper's routes, below /shopper/. Each needs the token of its payment (gateway.payments.capability)."""

from __future__ import annotations

from django.urls import path

from gateway.shopper import views

urlpatterns = [
    path("<str:target>/return", views.comes_back, name="shopper-return"),
]

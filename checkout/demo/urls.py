"""The demo shop's routes, below /demo/."""

from __future__ import annotations

from django.urls import path

from checkout.demo import views

urlpatterns = [
    path("", views.demo_shop_view, name="demo"),
    path("checkout", views.prepare_checkout_view),
    path("result", views.checkout_result_view),
    path("forget", views.forget_cards_view),
]

"""The simulator's routes, below /simulator/. The secret part of the address is the access right."""

from __future__ import annotations

from django.urls import path

from gateway.connectors.simulator import views

urlpatterns = [
    path("<str:handle>", views.simulated_order_view, name="simulated-order"),
]

"""The demo shop's routes, below /demo/."""

from __future__ import annotations

from django.urls import path

from checkout.demo import views

urlpatterns = [
    path("", views.start, name="demo"),
    path("checkout", views.prepare),
    path("result", views.result),
    path("forget", views.forget),
]

"""The API's routes, below /v1/."""

from __future__ import annotations

from django.urls import path

from gateway.api import views

urlpatterns = [
    path("payments", views.PaymentsView.as_view()),
    path("payments/<str:target>", views.PaymentView.as_view()),
    path("resultcodes", views.ResultCodesView.as_view()),
    path("test/clock", views.ClockView.as_view()),
    path("test/acquirer/messages", views.MessagesView.as_view()),
]

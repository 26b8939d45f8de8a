"""The API's routes, below /v1/."""

from __future__ import annotations

from django.urls import path

from gateway.api import clock, payments, query, registrations, resultcodes, schedules, testing, threeds

scheduling = [
    path("schedules", schedules.SchedulesView.as_view()),
    path("schedules/<str:target>", schedules.OneScheduleView.as_view()),
    path("schedules/<str:target>/reschedule", schedules.RescheduleView.as_view()),
    path("schedules/<str:target>/deschedule", schedules.DescheduleView.as_view()),
]
"""Below /scheduling/v1/, too (D8)."""

urlpatterns = [
    path("payments", payments.PaymentsView.as_view()),
    path("payments/<str:target>", payments.PaymentView.as_view()),
    path("threeDSecure", threeds.ThreeDSecureView.as_view()),
    path("threeDSecure/<str:target>", threeds.OneThreeDSecureView.as_view()),
    path("registrations", registrations.RegistrationsView.as_view()),
    path("registrations/<str:target>", registrations.RegistrationView.as_view()),
    path("registrations/<str:target>/extend", registrations.ExtendView.as_view()),
    path("registrations/<str:target>/payments", registrations.OneClickView.as_view()),
    *scheduling,
    path("query", query.ListView.as_view()),
    path("query/<str:target>", query.OneView.as_view()),
    path("resultcodes", resultcodes.ResultCodesView.as_view()),
    path("test/clock", clock.ClockView.as_view()),
    path("test/transfers/<str:target>", testing.TransferView.as_view()),
    path("test/acquirer/messages", testing.MessagesView.as_view()),
    path("test/mails", testing.MailsView.as_view()),
    path("test/wallet-token", testing.WalletTokenView.as_view()),
]
version_3 = [
    path("query", query.RecordsView.as_view()),
    path("query/<str:target>", query.RecordView.as_view()),
]
"""Below /v3/."""

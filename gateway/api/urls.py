"""URL patterns of the API, under /v1/ and /v3/."""

from __future__ import annotations

from django.urls import path

from gateway.api import (
    card_facts,
    clock,
    developer,
    payments,
    query,
    registrations,
    result_codes,
    sandbox,
    schedules,
    standalone_authentication,
)

schedule_urlpatterns = [
    path("schedules", schedules.SchedulesView.as_view()),
    path("schedules/<str:target>", schedules.ScheduleView.as_view()),
    path("schedules/<str:target>/reschedule", schedules.RescheduleView.as_view()),
    path("schedules/<str:target>/deschedule", schedules.DescheduleView.as_view()),
]
"""Also under /scheduling/v1/ (ruling D8)."""

urlpatterns = [
    path("payments", payments.PaymentsView.as_view()),
    path("payments/<str:target>", payments.PaymentView.as_view()),
    path("threeDSecure", standalone_authentication.ThreeDSecureView.as_view()),
    path("threeDSecure/<str:target>", standalone_authentication.ThreeDSecureResultView.as_view()),
    path("registrations", registrations.RegistrationsView.as_view()),
    path("registrations/<str:target>", registrations.RegistrationView.as_view()),
    path("registrations/<str:target>/extend", registrations.ExtendRegistrationView.as_view()),
    path("registrations/<str:target>/payments", registrations.OneClickView.as_view()),
    *schedule_urlpatterns,
    path("query", query.QueryView.as_view()),
    path("query/<str:target>", query.TransactionView.as_view()),
    path("cardFacts", card_facts.CardFactsView.as_view()),
    path("resultcodes", result_codes.ResultCodesView.as_view()),
    path("test/clock", clock.ClockView.as_view()),
    path("test/network-tokens/<str:target>", sandbox.NetworkTokenView.as_view()),
    path("test/transfers/<str:target>", sandbox.TransferView.as_view()),
    path("test/acquirer/messages", sandbox.AcquirerMessagesView.as_view()),
    path("test/mails", sandbox.MailsView.as_view()),
    path("test/webhooks", developer.WebhooksView.as_view()),
    path("test/requests", developer.RequestsView.as_view()),
    path("test/wallet-token", sandbox.WalletTokenView.as_view()),
]
v3_urlpatterns = [
    path("query", query.QueryRecordsView.as_view()),
    path("query/<str:target>", query.TransactionRecordsView.as_view()),
]
"""Under /v3/."""

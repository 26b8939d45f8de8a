"""Payments, their events and messages, requests, and what is to be told: to be looked at."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from gateway import identifiers
from gateway.admin.kit import ReadOnly, Shown
from gateway.models import AcquirerExchange, Channel, Notification, Payment, PaymentEvent, RequestLog
from gateway.rights import Place, Scope, place_of


class EventInline(Shown):
    model = PaymentEvent
    fields = ("sequence", "event", "status", "result_code", "at")


class ExchangeInline(Shown):
    model = AcquirerExchange
    fields = ("connector", "kind", "sent", "received", "duration_ms", "at")


@admin.register(Payment)
class PaymentAdmin(ReadOnly):
    list_display = ("created_at", "payment_type", "money", "brand", "status", "result_code", "merchant", "id_hex")
    list_display_links = ("created_at", "id_hex")
    list_select_related = ("merchant",)
    list_filter = ("status", "payment_type")
    search_fields = ("id",)
    search_help_text = "Payment id, short id, merchantTransactionId or ndc"
    ordering = ("-id",)
    exclude = ("means_sealed", "means_fingerprint")
    readonly_fields = ("short_id", "ndc")
    inlines = (EventInline, ExchangeInline)

    @admin.display(description="id")
    def id_hex(self, payment: Payment) -> str:
        return payment.id.hex

    @admin.display(description="amount", ordering="amount")
    def money(self, payment: Payment) -> str:
        return f"{payment.amount} {payment.currency}"

    @admin.display(description="short id")
    def short_id(self, payment: Payment) -> str:
        return identifiers.short_id(payment.number)

    @admin.display(description="ndc")
    def ndc(self, payment: Payment) -> str:
        return identifiers.ndc(payment.request_id, payment.channel_id.hex)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Payment], search_term: str
    ) -> tuple[QuerySet[Payment], bool]:
        """By exact keys only: each of them has an index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if (number := identifiers.short_id_number(term)) is not None:
            return queryset.filter(number=number), False
        if (payment := identifiers.parse_id(term)) is not None:
            return queryset.filter(pk=payment), False
        if (asked := identifiers.request_of_ndc(term)) is not None:
            logged = RequestLog.objects.filter(pk=asked).values_list("payment", flat=True).first()
            return queryset.filter(pk=logged), False
        return queryset.filter(merchant_transaction_id=term), False


@admin.register(RequestLog)
class RequestLogAdmin(ReadOnly):
    list_display = ("ndc", "at", "method", "path", "status", "result_code", "duration_ms")
    search_fields = ("id",)
    search_help_text = "ndc"
    ordering = ("-id",)

    def reached(self, rows: QuerySet[RequestLog], scope: Scope) -> QuerySet[RequestLog]:
        """A request knows the entity that was named: a merchant or a channel, no more."""
        if scope.everything:
            return rows
        channels = Channel.objects.filter(scope.where("merchant", "pk")).values_list("pk", flat=True)
        return rows.filter(entity_id__in=[*scope.merchants, *channels])

    def place(self, row: RequestLog) -> Place:
        found = Channel.objects.filter(pk=row.entity_id).first() if row.entity_id else None
        return place_of(found) if found is not None else Place(merchant=row.entity_id)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[RequestLog], search_term: str
    ) -> tuple[QuerySet[RequestLog], bool]:
        term = search_term.strip()
        return (queryset.filter(pk=identifiers.request_of_ndc(term)) if term else queryset), False


@admin.register(Notification)
class NotificationAdmin(ReadOnly):
    list_display = ("id", "created_at", "merchant", "kind", "action", "payment_id", "sequence")
    list_select_related = ("merchant",)
    ordering = ("-id",)

"""Baseline (b): DRF with a ModelSerializer. Baseline (c): a Django view with one INSERT and no check at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from django.http import HttpRequest, HttpResponse, JsonResponse
from rest_framework.generics import CreateAPIView
from rest_framework.serializers import ModelSerializer

from tests.benchmarks.baseline.models import Payment

COLUMNS = tuple(field.name for field in Payment._meta.concrete_fields if not field.primary_key)


class PaymentSerializer(ModelSerializer):  # type: ignore[misc]  # DRF has no type hints
    class Meta:
        model = Payment
        exclude: ClassVar[list[str]] = []


class SerializerView(CreateAPIView):  # type: ignore[misc]
    """POST /serializer: validate every field, keep one row, answer with it."""

    queryset = Payment._default_manager.all()
    serializer_class = PaymentSerializer


def insert(request: HttpRequest) -> JsonResponse:
    """POST /insert: keep one row, answer with its id."""
    sent = request.POST
    payment = Payment._default_manager.create(**{name: sent[name] for name in COLUMNS})
    return JsonResponse({"id": payment.pk}, status=201)


def with_length(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware that says how long the body is."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["Content-Length"] = str(len(response.content))
        return response

    return answer

"""A shop with django-payments: settings, model and pages in one file. A program; arguments: port, folder, the
gateway's address, token, entityId, and webhook secrets as a JSON list.
"""

import json
import sys
from decimal import Decimal
from pathlib import Path

import django
from django.conf import settings
from django.core.servers.basehttp import run
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path

port, folder, base_url, token, entity_id, secrets = sys.argv[1:]
gateway = {
    "base_url": base_url,
    "token": token,
    "entity_id": entity_id,
    "webhook_secrets": json.loads(secrets),
    "client": {"max_retries": 0},
}
settings.configure(
    SECRET_KEY="shop",
    ROOT_URLCONF="__main__",
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["payments"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(Path(folder) / "shop.sqlite3"),
            # Two webhooks at a time wait for each other.
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 60},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    PAYMENT_HOST=f"127.0.0.1:{port}",
    PAYMENT_USES_SSL=False,
    PAYMENT_MODEL="shop.Payment",
    PAYMENT_VARIANTS={
        "card": ("tollhouse_django_payments.TollhouseProvider", gateway),
        "reserve": ("tollhouse_django_payments.TollhouseProvider", {**gateway, "capture": False}),
        "away": ("tollhouse_django_payments.TollhouseProvider", {**gateway, "base_url": "http://127.0.0.1:9"}),
    },
)
django.setup()

from django.apps import AppConfig, apps  # noqa: E402 - Django is set up above
from django.db import connection  # noqa: E402
from django.dispatch import receiver  # noqa: E402
from django.shortcuts import redirect  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402
from payments import PaymentError, RedirectNeeded  # noqa: E402
from payments.models import BasePayment  # noqa: E402
from payments.signals import status_changed  # noqa: E402


class Shop(AppConfig):
    name = label = "shop"
    path = folder


shop = Shop("shop", sys.modules["__main__"])
shop.apps = apps
shop.models = apps.all_models["shop"]
apps.app_configs["shop"] = shop
changes: list[tuple[int, str]] = []


class Payment(BasePayment):
    class Meta:
        app_label = "shop"

    def get_success_url(self) -> str:
        return f"/thanks/{self.pk}"

    def get_failure_url(self) -> str:
        return f"/again/{self.pk}"


@receiver(status_changed)
def note_change(sender: type, instance: Payment, **_: object) -> None:
    changes.append((instance.pk, str(instance.status)))


def show(payment: Payment, **more: object) -> JsonResponse:
    payment.refresh_from_db()
    fields = ("id", "token", "status", "message", "transaction_id", "fraud_status")
    shown = {name: getattr(payment, name) for name in fields}
    history = [status for pk, status in changes if pk == payment.pk]
    return JsonResponse({**shown, "captured": str(payment.captured_amount), "changes": history, **more})


@csrf_exempt
def orders(request: HttpRequest) -> HttpResponse:
    return show(Payment.objects.create(**json.loads(request.body)))


def pay(request: HttpRequest, pk: int) -> HttpResponse:
    try:
        return HttpResponse(str(Payment.objects.get(pk=pk).get_form()))
    except RedirectNeeded as needed:
        return redirect(str(needed))
    except PaymentError as error:
        return JsonResponse({"error": str(error)}, status=502)


def look(request: HttpRequest, pk: int) -> HttpResponse:
    return show(Payment.objects.get(pk=pk))


@csrf_exempt
def change(request: HttpRequest, pk: int, what: str) -> HttpResponse:
    """capture, refund, release, cancel; `amount` in the body. `stale` is a repetition after a crash: what the gateway
    did is done, and the row does not know."""
    payment = Payment.objects.get(pk=pk)
    asked = json.loads(request.body or b"{}")
    amount = [Decimal(asked["amount"])] if "amount" in asked else []
    kept = Payment.objects.filter(pk=pk).values("status", "captured_amount").get()
    try:
        getattr(payment, what)(*amount)
    except (PaymentError, ValueError) as error:
        return show(payment, error=str(error))
    payment.save()
    if asked.get("stale"):
        Payment.objects.filter(pk=pk).update(**kept)
    return show(payment)


def page(request: HttpRequest, pk: int) -> HttpResponse:
    return HttpResponse(request.path)


urlpatterns = [
    path("orders", orders),
    path("orders/<int:pk>", look),
    path("orders/<int:pk>/pay", pay),
    path("orders/<int:pk>/<str:what>", change),
    path("thanks/<int:pk>", page),
    path("again/<int:pk>", page),
    path("payments/", include("payments.urls")),
]

if __name__ == "__main__":
    with connection.schema_editor() as editor:
        editor.create_model(Payment)
    run("127.0.0.1", int(port), get_wsgi_application(), threading=True)

"""A ticket shop by pretix as it is published, with one event and some orders to pay. A program; arguments: port,
folder, the gateway's address, token, entityId, webhook secret. Writes shop.json into the folder; /_periodic runs
pretix's periodic task; /_forget/STATE leaves the refunds as after a crash; /_guard/URL tries to reach a gateway there.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

port, folder, base_url, token, entity_id, secret = sys.argv[1:]
SETTINGS = f"""
from pretix.testutils.settings import *
SITE_URL = "http://127.0.0.1:{port}"
ALLOWED_HOSTS = ["*"]
DEBUG_PROPAGATE_EXCEPTIONS = False
ALLOW_HTTP_TO_PRIVATE_NETWORKS = True
DATABASES["default"]["NAME"] = "{folder}/pretix.sqlite3"
DATABASES["default"]["OPTIONS"] = {{"transaction_mode": "IMMEDIATE", "timeout": 60}}
"""
(Path(folder) / "shop_settings.py").write_text(SETTINGS)
sys.path.insert(0, folder)
os.environ["DJANGO_SETTINGS_MODULE"] = "shop_settings"

import django  # noqa: E402 - the settings are written above

django.setup()

from django.core.management import call_command  # noqa: E402
from django.core.servers.basehttp import run  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import override_settings  # noqa: E402
from django.utils.timezone import now  # noqa: E402
from django_scopes import scopes_disabled  # noqa: E402
from pretix.base.i18n import language  # noqa: E402
from pretix.base.models import Event, Order, OrderPayment, OrderRefund, Organizer, Team  # noqa: E402
from pretix.base.payment import PaymentException  # noqa: E402
from pretix.base.signals import periodic_task  # noqa: E402
from pretix_tollhouse.results import read_records  # noqa: E402

ORDERS = 8


def open_event() -> dict[str, Any]:
    organizer = Organizer.objects.create(name="Organizer", slug="organizer")
    event = plan_event(organizer, "concert-26", base_url)
    team = Team.objects.create(
        organizer=organizer, name="API", all_events=True, all_event_permissions=True, all_organizer_permissions=True
    )
    orders = [place_order(event) for _ in range(ORDERS)]
    provider = event.get_payment_providers()["tollhouse"]
    with language("de"):
        name = str(provider.public_name)
    settings = list(provider.settings_form_fields)[:4]
    return {"token": team.tokens.create(name="tests").token, "orders": orders, "settings": settings, "name": name}


def plan_event(organizer: Organizer, slug: str, gateway: str) -> Event:
    event = Event.objects.create(
        organizer=organizer,
        name="Concert",
        slug=slug,
        date_from=now() + timedelta(days=30),
        currency="EUR",
        live=True,
        plugins="pretix_tollhouse",
    )
    values = {"_enabled": True, "base_url": gateway, "token": token, "entity_id": entity_id, "webhook_secret": secret}
    for name, value in values.items():
        event.settings.set(f"payment_tollhouse_{name}", value)
    event.items.create(name="Ticket", default_price=Decimal("92.00"))
    return event


def add_broken_events() -> None:
    """One whose gateway is away, and one that has switched the plug-in off, with open payments."""
    for slug, plugins in (("away-26", "pretix_tollhouse"), ("off-26", "")):
        event = plan_event(Organizer.objects.get(), slug, "http://127.0.0.1:9")
        event.plugins = plugins
        event.save()
        for _ in range(2):
            place_order(event)
        OrderPayment.objects.filter(order__event=event).update(info='{"checkout": {"id": "1", "page": "p"}}')


def place_order(event: Event) -> dict[str, Any]:
    order = Order.objects.create(
        event=event,
        email="jane@mail.example",
        locale="de",
        status=Order.STATUS_PENDING,
        datetime=now(),
        expires=now() + timedelta(days=10),
        total=Decimal("92.00"),
        sales_channel=event.organizer.sales_channels.get(identifier="web"),
    )
    order.positions.create(item=event.items.get(), price=Decimal("92.00"), positionid=1)
    order.create_transactions()
    payment = order.payments.create(
        provider="tollhouse", amount=Decimal("92.00"), state=OrderPayment.PAYMENT_STATE_CREATED
    )
    return {"code": order.code, "secret": order.secret, "payment": payment.pk}


def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    _, _, name = environ["PATH_INFO"].partition("/_")
    name, _, rest = name.partition("/")
    if name not in ROUTES:
        return pretix(environ, start)
    with scopes_disabled():
        told = ROUTES[name](rest)
    start("200 OK", [("Content-Type", "text/plain")])
    return [told.encode()]


def run_periodic_task(_rest: str) -> str:
    periodic_task.send(None)
    return "done"


def forget_refunds(state: str) -> str:
    OrderRefund.objects.update(state=state, info="{}")
    OrderPayment.objects.filter(state="refunded").update(state="confirmed")
    return "done"


@override_settings(ALLOW_HTTP_TO_PRIVATE_NETWORKS=False)
def try_gateway(address: str) -> str:
    """As in a pretix that is installed."""
    event = Event.objects.get(slug="concert-26")
    event.settings.set("payment_tollhouse_base_url", address)
    try:
        read_records(OrderPayment.objects.filter(order__event=event)[0])
    except PaymentException as error:
        return str(error)
    return "reached"


ROUTES = {"periodic": run_periodic_task, "forget": forget_refunds, "guard": try_gateway}


if __name__ == "__main__":
    call_command("migrate", run_syncdb=True, verbosity=0)
    with scopes_disabled(), transaction.atomic():
        (Path(folder) / "shop.json").write_text(json.dumps(open_event()))
        add_broken_events()
    pretix = get_wsgi_application()
    run("127.0.0.1", int(port), answer, threading=True)

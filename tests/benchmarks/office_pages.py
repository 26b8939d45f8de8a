"""What pages of the back office cost (goals, P16), on a database that load_payments has filled:

    python -m config.launcher exec -- python -m tests.benchmarks.office_pages

In one process, by Django's test client: no web server, network or browser. Prints for each page the median of wall
time, and of CPU time of this process and of its session at PostgreSQL, which a busy machine does not lengthen much.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import django

LIST: Final = "/admin/gateway/payment/"
MUST_MS: Final = 100
"""Goals, P16."""


def list_searches() -> Iterator[tuple[str, str]]:
    """Every kind of search by its name, with the facts of a payment that is there."""
    from gateway.models import Payment

    of = Payment.objects.filter(status="APPROVED", payment_type="DB").order_by("-id")[:1000]
    paid = next(each for each in reversed(of) if each.merchant_transaction_id)
    order, ndc = paid.merchant_transaction_id, paid.answer.get("ndc", "") if isinstance(paid.answer, dict) else ""
    yield "search: id", paid.pk.hex
    yield "search: order number", order
    yield "search: its beginning", order[:8]
    yield "search: last four", "0000"
    yield "search: e-mail", str((paid.request or {}).get("customer.email") or "jane@shop.example")
    yield "search: e-mail of nobody", "nobody@nowhere.example"
    yield "search: amount", f"{paid.amount}"
    yield "search: name", "Jane Jones"
    yield "search: nothing there", "no-such-order-4711"
    if ndc:
        yield "search: ndc", ndc


def list_pages() -> Iterator[tuple[str, str]]:
    """Name and address of every page that is measured."""
    from django.utils.http import urlencode

    from gateway.models import Payment

    yield "first page", "/admin/"
    yield "list", LIST
    for name, text in list_searches():
        yield name, f"{LIST}?{urlencode({'q': text})}"
    for name, narrowed in (("state", "state=captured"), ("currency", "currency=EUR"), ("amount", "least=100&most=200")):
        yield f"filter: {name}", f"{LIST}?{narrowed}"
    newest = Payment.objects.order_by("-id").values_list("pk", flat=True)[0]
    yield "payment", f"{LIST}{newest}/change/"
    yield "request log", "/admin/gateway/requestlog/"
    yield "live board", "/admin/live-board/"


def read_cpu_ms(pid: int) -> float:
    """CPU that a process has used, by the scheduler's own count."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def measure(rounds: int) -> Mapping[str, tuple[float, float, float]]:
    """Page → median of wall time, of own CPU and of PostgreSQL's, in ms. Kept figures are thrown away before each."""
    from django.contrib.auth.models import User
    from django.core.cache import cache
    from django.db import connection
    from django.test import Client

    user, _made = User.objects.get_or_create(username="bench", defaults={"is_superuser": True, "is_staff": True})
    client = Client()
    client.force_login(user)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        session = cursor.fetchone()[0]
    found = {}
    for name, address in list_pages():
        taken = []
        for number in range(rounds + 1):
            cache.clear()
            begun = time.perf_counter(), time.process_time(), read_cpu_ms(session)
            answer = client.get(address, follow=True)
            taken.append(
                (
                    (time.perf_counter() - begun[0]) * 1000,
                    (time.process_time() - begun[1]) * 1000,
                    read_cpu_ms(session) - begun[2],
                )
            )
            assert answer.status_code == 200, address
            if not number:
                taken.clear()  # plans and templates are read once
        wall, own, database = (statistics.median(each) for each in zip(*taken, strict=True))
        found[name] = (wall, own, database)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    rounds = options.parse_args().rounds
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.conf import settings

    settings.ALLOWED_HOSTS = ["*"]
    print("| page | wall, ms | CPU, ms | of it PostgreSQL |\n|---|---:|---:|---:|")  # noqa: T201
    for name, (wall, own, database) in measure(rounds).items():
        late = " (missed)" if own + database > MUST_MS else ""
        print(f"| {name} | {wall:.0f} | {own + database:.0f}{late} | {database:.0f} |")  # noqa: T201


if __name__ == "__main__":
    main()

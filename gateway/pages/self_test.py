"""The test data's self-test: the gateway pays with each of its own test cards and accounts once a day, and notes how
that went for the test-data page. Test environment only.

Each row is tried by a merchant of its own, through the whole API, in a transaction that is rolled back: it leaves no
payment, merchant or token behind, only its result. Source: Part A, What the service does, 5; decision 0049.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction

from gateway import audit, clock, tokens
from gateway.due import Timer
from gateway.models import Channel, Division, Merchant, Psp, SelfTest
from gateway.pages import testdata
from gateway.pages.promises import Promise, promises
from gateway.payments import resume

if TYPE_CHECKING:
    from django.test import Client

EVERY: Final = timedelta(days=1)
"""From one try of a row to its next."""
MAX_ROWS: Final = 8
"""Rows that one run tries: the first pass takes half an hour, and a day's pass never fills a worker."""
MAX_FAULT: Final = 500
"""Characters of a fault that are kept."""
_MERCHANT: Final = UUID("5e1f7e57-0000-4000-8000-000000000001")
_CHANNEL: Final = UUID("5e1f7e57-0000-4000-8000-000000000002")
_BY: Final = audit.Actor(name="self-test")
_FORM: Final = "application/x-www-form-urlencoded"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnGateway:
    """This gateway within this process, as gateway.pages.promises asks it."""

    http: Client
    merchant: Merchant
    channel: Channel
    token: str
    patience_s: float = 2.0
    secure: bool = field(default_factory=lambda: settings.GATEWAY_BASE_URL.startswith("https:"))

    def api(self, method: str, path: str, fields: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        pairs = urlencode({"entityId": self.channel.entity_id, **fields})
        address, body = (path, pairs.encode()) if method == "POST" else (f"{path}?{pairs}", b"")
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = self.http.generic(method, address, body, _FORM, secure=self.secure, headers=headers)
        found: dict[str, Any] = json.loads(answer.content)
        return answer.status_code, found

    def browse(self, path: str, fields: Mapping[str, str] | None) -> tuple[int, str]:
        method, body = ("GET", b"") if fields is None else ("POST", urlencode(fields).encode())
        answer = self.http.generic(method, path, body, _FORM, secure=self.secure)
        return answer.status_code, answer.headers.get("Location", "")

    def settle(self) -> None:
        self.merchant.refresh_from_db()
        resume.expire_due(merchant=self.merchant)


def run(merchant: Merchant | None = None) -> int:
    """Try the rows whose last try is a day old, a few at a time; how many."""
    if merchant is not None or settings.IS_LIVE or not settings.GATEWAY_SELF_TEST:
        return 0
    fresh = set(SelfTest.objects.filter(at__gt=clock.real() - EVERY).values_list("row", flat=True))
    return len(try_rows([promise for promise in _promises() if promise.key not in fresh][:MAX_ROWS]))


def try_all() -> list[SelfTest]:
    """Try every row now."""
    return try_rows(_promises())


def try_rows(rows: Iterable[Promise]) -> list[SelfTest]:
    """Try these rows and keep how each went."""
    results = [SelfTest(row=one.key, fault=_fault_of(one)[:MAX_FAULT], at=clock.real()) for one in rows]
    SelfTest.objects.bulk_create(
        results, update_conflicts=True, unique_fields=["row"], update_fields=["fault", "at"]
    )  # fmt: skip
    for one in results:
        if one.fault:
            log.error("self_test_failed", row=one.row, fault=one.fault)
    return results


def last_results() -> dict[str, SelfTest]:
    """Row → its last try."""
    return SelfTest.objects.in_bulk()


@cache
def _promises() -> tuple[Promise, ...]:
    return promises(testdata.rows())


def _fault_of(promise: Promise) -> str:
    """What is not as promised, '' for nothing. Whatever was written for it is gone."""
    try:
        with transaction.atomic():
            fault = "; ".join(promise.check(_open()))
            transaction.set_rollback(True)
    except Exception as error:  # a row that cannot be tried is a result, too, and the others are tried
        log.exception("self_test_broke", row=promise.key)
        return f"could not be tried: {type(error).__name__}"
    return fault


def _open() -> OwnGateway:
    """A merchant, a channel without limits, and a token, for as long as the transaction lasts."""
    from django.test import Client

    base = urlsplit(settings.GATEWAY_BASE_URL)
    division = Division.objects.create(name="Self-test", psp=Psp.objects.create(name="Self-test"))
    merchant = Merchant.objects.create(id=_MERCHANT, name="Self-test", division=division)
    channel = Channel.objects.create(id=_CHANNEL, name="Self-test", merchant=merchant, limits={"*": None})
    _, token = tokens.issue(merchant, name="self-test", by=_BY)
    host = {"HTTP_HOST": base.netloc, "SERVER_NAME": base.hostname or "localhost"}
    client = Client(raise_request_exception=False, **host)
    return OwnGateway(http=client, merchant=merchant, channel=channel, token=token.reveal())


TIMER: Final = Timer(
    name="self-test", run=run, every_s=60.0,
    about="Try each row of the test data once a day, a few at a time; not in live.",
)  # fmt: skip

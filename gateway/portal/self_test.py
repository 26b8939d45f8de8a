"""Self-test of the test data: pays with each test card and account once a day, and stores the result for the test data
page. Test environment only.

Each row is tested by its own merchant through the whole API, in a transaction that is rolled back: no payment, merchant
or token remains, only the result. Source: Part A, What the service does, 5; decision 0049.
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

from gateway.access import audit_log, tokens
from gateway.core import clock
from gateway.models import Channel, Division, Merchant, Psp, SelfTest
from gateway.payments import shopper_return
from gateway.portal import testdata
from gateway.portal.self_test_checks import SelfCheck, build_checks
from gateway.timers.registry import Timer

if TYPE_CHECKING:
    from django.test import Client

SELF_TEST_INTERVAL: Final = timedelta(days=1)
"""Time between two tests of a row."""
MAX_SELF_TESTS_PER_RUN: Final = 8
"""Rows tested by one run: the first pass takes half an hour, and a day's pass never occupies a worker."""
MAX_FAULT_CHARS: Final = 500
"""Characters stored of a fault."""
_MERCHANT: Final = UUID("5e1f7e57-0000-4000-8000-000000000001")
_CHANNEL: Final = UUID("5e1f7e57-0000-4000-8000-000000000002")
_BY: Final = audit_log.Actor(name="self-test")
_FORM: Final = "application/x-www-form-urlencoded"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessGateway:
    """This gateway called within the process, as a GatewayClient of gateway.portal.self_test_checks."""

    http: Client
    merchant: Merchant
    channel: Channel
    token: str
    max_wait_s: float = 2.0
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
        shopper_return.expire_due_suspensions(merchant=self.merchant)


def run_due_self_tests() -> int:
    """Test the rows whose last result is a day old, a few at a time. Returns how many."""
    if settings.IS_LIVE or not settings.GATEWAY_SELF_TEST:
        return 0
    fresh = set(SelfTest.objects.filter(at__gt=clock.real_now() - SELF_TEST_INTERVAL).values_list("row", flat=True))
    return len(
        run_self_tests([promise for promise in _list_checks() if promise.key not in fresh][:MAX_SELF_TESTS_PER_RUN])
    )


def run_all_self_tests() -> list[SelfTest]:
    """Test every row now."""
    return run_self_tests(_list_checks())


def run_self_tests(rows: Iterable[SelfCheck]) -> list[SelfTest]:
    """Test these rows and store the results."""
    results = [SelfTest(row=one.key, fault=_find_fault(one)[:MAX_FAULT_CHARS], at=clock.real_now()) for one in rows]
    SelfTest.objects.bulk_create(results, update_conflicts=True, unique_fields=["row"], update_fields=["fault", "at"])
    for one in results:
        if one.fault:
            log.error("self_test_failed", row=one.row, fault=one.fault)
    return results


def load_last_results() -> dict[str, SelfTest]:
    """Row → its last result."""
    return SelfTest.objects.in_bulk()


@cache
def _list_checks() -> tuple[SelfCheck, ...]:
    return build_checks(testdata.build_test_data())


def _find_fault(promise: SelfCheck) -> str:
    """The difference from the promised result, '' if there is none. Everything written for the test is rolled back."""
    try:
        with transaction.atomic():
            fault = "; ".join(promise.check(_open_gateway()))
            transaction.set_rollback(True)
    except Exception as error:  # a row that cannot be tested is a result, too, and must not stop the others
        log.exception("self_test_error", row=promise.key)
        return f"could not be tried: {type(error).__name__}"
    return fault


def _open_gateway() -> InProcessGateway:
    """A merchant, a channel without limits, and a token, which exist only within the transaction."""
    from django.test import Client

    base = urlsplit(settings.GATEWAY_BASE_URL)
    division = Division.objects.create(name="Self-test", psp=Psp.objects.create(name="Self-test"))
    merchant = Merchant.objects.create(id=_MERCHANT, name="Self-test", division=division)
    channel = Channel.objects.create(id=_CHANNEL, name="Self-test", merchant=merchant, limits={"*": None})
    _, token = tokens.issue_token(merchant, name="self-test", by=_BY)
    client = Client(raise_request_exception=False, HTTP_HOST=base.netloc, SERVER_NAME=base.hostname or "localhost")
    return InProcessGateway(http=client, merchant=merchant, channel=channel, token=token.reveal())


TIMER: Final = Timer(
    name="self-test",
    run=run_due_self_tests,
    every_s=60.0,
    about="Try each row of the test data once a day, a few at a time; not in live.",
)

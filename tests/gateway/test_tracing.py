"""A payment's way can be followed by its ndc, and nothing that was sent with it leaves in a trace or an error report.

Source: docs/decisions/0101. What a real server sends is searched by tests/canary.
"""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import sentry_sdk
import structlog
from django.core.checks import run_checks
from django.test import override_settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from config import error_reporting
from gateway import logs, tracing
from gateway.timers import registry
from tests.support.client import payment
from tests.support.fixtures import Shop
from tests.support.receivers import Receiver, answering, receiving


def flush_spans() -> None:
    """Send what waits, which otherwise is sent every few seconds."""
    if (made := tracing._process._made) is not None:
        made[2].force_flush(tracing.EXPORT_TIMEOUT_S * 1000)


@dataclass(frozen=True, slots=True)
class Collector:
    receiver: Receiver

    def spans(self) -> list[dict[str, Any]]:
        """Every span that came: its name, attributes, id, parent and status."""
        flush_spans()
        found = []
        for request in self.receiver.requests:
            sent = ExportTraceServiceRequest.FromString(request.partition(b"\r\n\r\n")[2])
            for one in (span for each in sent.resource_spans for scope in each.scope_spans for span in scope.spans):
                values = {pair.key: pair.value.string_value or pair.value.int_value for pair in one.attributes}
                about = {"name": one.name, "span": one.span_id, "parent": one.parent_span_id}
                found.append(values | about | {"fault": one.status.message})
        return found

    def named(self, name: str) -> dict[str, Any]:
        (found,) = [one for one in self.spans() if one["name"] == name]
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    with (
        receiving(answering(200, b"")) as receiver,
        override_settings(GATEWAY_TRACES_ENDPOINT=f"http://127.0.0.1:{receiver.port}/v1/traces"),
    ):
        yield Collector(receiver)
        flush_spans()


def test_a_payment_is_a_span_with_its_acquirer_within_and_both_have_its_ndc(shop: Shop, collector: Collector) -> None:
    paid = shop.api.pay()
    request, acquirer = collector.named("request payment"), collector.named("acquirer submit")
    assert request["ndc"] == acquirer["ndc"] == paid.body["ndc"]
    assert acquirer["parent"] == request["span"]
    assert (request["status"], request["operation"]) == (200, "payment")
    assert acquirer["payment"] == paid.id


def test_a_span_holds_what_is_listed_and_nothing_else(shop: Shop, collector: Collector) -> None:
    """A new attribute is decided on, not slipped in."""
    answer = shop.api.pay(merchantTransactionId="secret-of-a-merchant", merchantInvoiceId="invoice-77")
    assert answer.status == 200, answer
    own = {"name", "span", "parent", "fault"}
    held = {one["name"]: set(one) - own for one in collector.spans()}
    assert held == {
        "request payment": {"ndc", "operation", "status"},
        "acquirer submit": {"ndc", "connector", "operation", "payment"},
    }
    words = b"".join(collector.receiver.requests)
    for secret in (b"4200", b"Jane", b"invoice-77", b"secret-of-a-merchant", shop.api.token.encode()):
        assert secret not in words


def test_a_stranger_does_not_choose_the_trace(shop: Shop, collector: Collector) -> None:
    stranger = "0af7651916cd43dd8448eb211c80319c"
    shop.api.post("/v1/payments", payment(), traceparent=f"00-{stranger}-b7ad6b7169203331-01")
    assert bytes.fromhex(stranger) not in b"".join(collector.receiver.requests)


def test_a_timer_and_its_fault_are_told_without_the_faults_message(db: None, collector: Collector) -> None:
    def fail() -> int:
        raise ValueError("4200000000000000")

    timer = registry.Timer(name="trial", about="", run=fail)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._TIMERS, "trial", timer)
        registry.run_timer_now("trial")
    found = collector.named("timer trial")
    assert found["fault"] == "ValueError"
    assert b"4200000000" not in b"".join(collector.receiver.requests)


def test_without_a_collector_nothing_is_made(shop: Shop) -> None:
    with tracing.trace_span("x") as span:
        span.set(a=1)
    assert shop.api.pay().status == 200


def test_a_collector_that_is_away_holds_up_no_payment(shop: Shop) -> None:
    with override_settings(GATEWAY_TRACES_ENDPOINT="http://127.0.0.1:1/v1/traces"):
        assert shop.api.pay().status == 200


@contextmanager
def reporting() -> Iterator[list[bytes]]:
    """What a service of Sentry's protocol gets: the bodies, once the block is left."""
    got: list[bytes] = []
    with receiving(answering(200, b"{}")) as receiver:
        with override_settings(GATEWAY_SENTRY_DSN=f"http://key@127.0.0.1:{receiver.port}/1"):
            error_reporting.install_error_reporting()
        try:
            yield got
            sentry_sdk.flush(timeout=20)
        finally:
            logs.set_error_reporter(None)
            sentry_sdk.get_client().close()
        for head, _, body in (request.partition(b"\r\n\r\n") for request in receiver.requests):
            got.append(gzip.decompress(body) if b"content-encoding: gzip" in head.lower() else body)


def test_an_error_is_reported_by_its_kind_and_place_and_nothing_of_it_is_said() -> None:
    """Variables, messages and source lines are where card data would be."""
    log = structlog.get_logger("trial")
    with reporting() as got:
        number = "4200000000000000"
        try:
            raise ValueError(f"no {number} with 737 here")
        except ValueError:
            log.exception("trial_failed", ndc="abc-1", body=number)
        log.error("only_said", payment="p1")
        log.warning("not_an_error")
        logging.getLogger("celery.app.trace").error("Task x raised unexpected: %r", ValueError("jane@shop.example"))
    text = b"".join(got)
    for known in (b"ValueError", b"trial_failed", b"abc-1", b"test_tracing.py", b"only_said", b"celery.app.trace"):
        assert known in text
    for secret in (number.encode(), b"737", b"no 42", b"log.exception", b"not_an_error", b"jane"):
        assert secret not in text


def test_without_a_service_nothing_is_reported() -> None:
    with override_settings(GATEWAY_SENTRY_DSN=""):
        error_reporting.install_error_reporting()
    structlog.get_logger("trial").error("said")
    assert logs._reporter is None


def test_a_reporter_that_fails_keeps_no_line_from_being_written(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_event: object) -> None:
        raise RuntimeError

    logs.set_error_reporter(fail)
    try:
        structlog.get_logger("trial").error("written_all_the_same")
    finally:
        logs.set_error_reporter(None)
    assert "written_all_the_same" in caplog.text


@pytest.mark.parametrize("share, faults", [(0.5, []), (1.5, ["tollhouse.E043"]), (-0.1, ["tollhouse.E043"])])
def test_a_share_is_a_share(db: None, share: float, faults: list[str]) -> None:
    with override_settings(GATEWAY_TRACES_SHARE=share, GATEWAY_TRACES_ENDPOINT="http://127.0.0.1:1/v1/traces"):
        assert [one.id for one in run_checks() if one.id in ("tollhouse.E042", "tollhouse.E043")] == faults

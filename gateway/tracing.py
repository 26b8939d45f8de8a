"""Traces in OpenTelemetry's form: spans of API requests, acquirer calls, timers and webhooks, each with its ``ndc``.

Off unless GATEWAY_TRACES_ENDPOINT names a collector (OTLP over HTTP); then it needs the extra ``otel``. A span holds
what is given to it here and nothing else: no parameter, no address, no body, and of a fault its type alone. What
strangers send (``traceparent``) is not taken, and nothing of a trace is sent to acquirers and merchants. Source:
docs/decisions/0101.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Final

from django.conf import settings

from gateway.core.masking import mask_text

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

EXPORT_TIMEOUT_S: Final = 5
MAX_QUEUED_SPANS: Final = 4_096
"""More are dropped: a collector that is away costs no memory and holds up nothing."""

SpanValue = str | int | float | bool
NdcSource = Callable[[], str]

_ndc: ContextVar[NdcSource | None] = ContextVar("ndc", default=None)


class _TracerOfProcess:
    """The tracer of this process, made by its first span: a fork makes its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[int, str, TracerProvider, Tracer] | None = None

    def find(self, endpoint: str) -> Tracer:
        made = self._made
        if made is None or made[:2] != (os.getpid(), endpoint):
            with self._lock:
                made = self._made
                if made is None or made[:2] != (os.getpid(), endpoint):
                    provider = _build_provider(endpoint)
                    made = self._made = (os.getpid(), endpoint, provider, provider.get_tracer("tollhouse"))
        return made[3]


_process: Final = _TracerOfProcess()


def _build_provider(endpoint: str) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    about = {
        "service.name": "tollhouse",
        "service.version": settings.GATEWAY_BUILD_NUMBER,
        "deployment.environment.name": settings.GATEWAY_ENVIRONMENT,
    }
    provider = TracerProvider(
        resource=Resource.create(about), sampler=ParentBasedTraceIdRatio(settings.GATEWAY_TRACES_SHARE)
    )
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_TIMEOUT_S)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=MAX_QUEUED_SPANS))
    return provider


class TraceSpan:
    """A span as a context manager; without a tracer it does nothing."""

    __slots__ = ("_inner", "_ndc_token", "_own_ndc", "_scope", "_tracer", "_values", "name")

    def __init__(self, tracer: Tracer | None, name: str, ndc: NdcSource | None, values: dict[str, SpanValue]) -> None:
        self.name = name
        self._tracer, self._own_ndc, self._values = tracer, ndc, values
        self._inner: Span | None = None
        self._scope: object = None
        self._ndc_token: Token[NdcSource | None] | None = None

    def set(self, **values: SpanValue) -> None:
        """Add attributes; they are written as the span ends."""
        if self._tracer is not None:
            self._values.update(values)

    def __enter__(self) -> TraceSpan:
        if self._tracer is None:
            return self
        from opentelemetry import context, trace

        self._inner = self._tracer.start_span(self.name, record_exception=False, set_status_on_exception=False)
        self._scope = context.attach(trace.set_span_in_context(self._inner))
        if self._own_ndc is not None:
            self._ndc_token = _ndc.set(self._own_ndc)
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: object, trail: TracebackType | None) -> None:
        if self._inner is None:
            return
        from opentelemetry import context
        from opentelemetry.trace import StatusCode

        source = _ndc.get()
        if source is not None:
            self._inner.set_attribute("ndc", source())
        for name, value in self._values.items():
            self._inner.set_attribute(name, mask_text(value) if isinstance(value, str) else value)
        if kind is not None:
            self._inner.set_status(StatusCode.ERROR, kind.__qualname__)
        self._inner.end()
        context.detach(self._scope)  # type: ignore[arg-type]
        if self._ndc_token is not None:
            _ndc.reset(self._ndc_token)


NO_SPAN: Final = TraceSpan(None, "", None, {})
"""What is used while tracing is off: it keeps nothing, so all threads have the same one."""


def trace_span(name: str, *, ndc: NdcSource | None = None, **values: SpanValue) -> TraceSpan:
    """A span for a ``with`` block. ``ndc``: asked as the span ends, for it and the spans within; without it theirs is
    that of the span around."""
    endpoint: str = settings.GATEWAY_TRACES_ENDPOINT
    return TraceSpan(_process.find(endpoint), name, ndc, values) if endpoint else NO_SPAN

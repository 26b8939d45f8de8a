"""JSON logs, one object per line, with card numbers masked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.core.masking import mask_text

ErrorReporter = Callable[[EventDict], None]
Fault = tuple[type[BaseException], BaseException, TracebackType | None]
_reporter: ErrorReporter | None = None


def set_error_reporter(reporter: ErrorReporter | None) -> None:
    """Hand every event of level error or above to ``reporter``, before it is rendered; None: to nothing."""
    global _reporter
    _reporter = reporter


def _report_error(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """A processor. What a reporter does wrong keeps no line from being written."""
    if _reporter is not None and event.get("level") in ("error", "critical"):
        with suppress(Exception):
            _reporter(event)
    return event


REFUSALS_LOGGER: Final = "django.security."
MAX_REFUSAL_CHARS: Final = 200
_REFUSALS_MEMBERS: Final = ("logger", "timestamp", "_record", "_from_structlog")
_OWN_FAULTS: Final = frozenset({"DisallowedRedirect", "SuspiciousFileOperation"})
"""Kinds of what Django refuses that our own code did: to find it takes the stack."""


def _shorten_refusal(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """A processor. What Django refuses as suspicious (a foreign Host, a form without its token) is a stranger's to
    send: a warning with the reason, no error with a stack and the request, whose path may be all that lets somebody
    in."""
    name = str(event.get("logger", ""))
    if not name.startswith(REFUSALS_LOGGER):
        return event
    # "Forbidden (reason): path", or a sentence.
    why = str(event["event"]).removeprefix("Forbidden (").partition("): ")[0]
    kept = {member: event[member] for member in _REFUSALS_MEMBERS if member in event}
    kind = name.removeprefix(REFUSALS_LOGGER)
    told = {**kept, "event": "suspicious_request", "kind": kind, "why": why[:MAX_REFUSAL_CHARS]}
    if kind in _OWN_FAULTS:
        return {**told, "level": event["level"], "exc_info": event.get("exc_info")}
    return {**told, "level": "warning"}


REPEATS_S: Final = 10.0
MAX_TRACES: Final = 1_000
_traces: dict[int, float] = {}
"""When a stack was last written, by _hash_stack()."""


def find_fault(given: Any) -> Fault | None:
    """What ``exc_info`` of an event stands for, in each of the forms that it may have."""
    if isinstance(given, BaseException):
        return type(given), given, given.__traceback__
    found = sys.exc_info() if given is True else given
    if not isinstance(found, tuple) or len(found) != 3 or found[0] is None or found[1] is None:
        return None
    return found[0], found[1], found[2]


def _shorten_repeated_trace(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """A processor. A fault that comes again within ten seconds is written as its first line, without its stack: while
    the database is away every request has the same one of 9 KB, which filled disks that were full already."""
    fault = find_fault(event.get("exc_info"))
    if fault is None:
        return event
    stack, now = _hash_stack(fault), time.monotonic()
    if now - _traces.get(stack, float("-inf")) >= REPEATS_S:
        if len(_traces) >= MAX_TRACES:
            _traces.clear()
        _traces[stack] = now
        return event
    kind, value, _ = fault
    del event["exc_info"]
    first_line = str(value).partition("\n")[0]
    event["exception"] = f"{kind.__qualname__}: {first_line}"
    return event


def _hash_stack(fault: Fault) -> int:
    """A number for a fault's kind and stack. The line that raised it would not be enough: one line of a database's
    driver raises all of its faults, and one that comes often would hide the stacks of all others."""
    kind, _, trace = fault
    lines: list[tuple[str, int]] = []
    while trace is not None:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return hash((kind, *lines))


_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.ExtraAdder(),
    _shorten_refusal,
    _report_error,
    _shorten_repeated_trace,
    structlog.processors.format_exc_info,
]

# One list: loggers keep the one that they were first used with.
_PROCESSORS: list[Processor] = [*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter]


def _render(logger: WrappedLogger, name: str, event: EventDict) -> str:
    """The log line as written. Masking comes last, so that nothing rendered later can bypass it. Characters of other
    scripts stay unescaped, to be readable."""
    return mask_text(str(structlog.processors.JSONRenderer(default=repr, ensure_ascii=False)(logger, name, event)))


def build_logging_config(level: str) -> dict[str, Any]:
    """A dictConfig that sends everything to standard error as JSON. Request values never enter a log message."""
    structlog.configure(
        processors=_PROCESSORS,
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, _render],
                "foreign_pre_chain": _SHARED,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Its records contain whole requests; ours name the request by ndc instead.
            "django.request": {"handlers": ["stderr"], "level": "CRITICAL", "propagate": False},
            # A tick every second is noise; what a tick does is logged.
            **{name: {"level": "WARNING"} for name in ("celery.app.trace", "celery.worker.strategy", "celery.beat")},
            # Its counts at each sign-in are noise; a lockout is logged.
            "axes": {"level": "WARNING"},
            # It warns of malformed headers of a receiver, with the receiver's whole URL.
            "urllib3": {"level": "ERROR"},
            "django.server": {"handlers": ["stderr"], "level": level, "propagate": False},
        },
    }

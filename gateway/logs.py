"""JSON logs, one object a line, in which a card number is masked wherever it turns up."""

from __future__ import annotations

from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.core.masking import mask_text

_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.ExtraAdder(),
    structlog.processors.format_exc_info,
]


def _render(logger: WrappedLogger, name: str, event: EventDict) -> str:
    """The line as it is written: masked last, so that nothing rendered later can slip past. Letters and digits of other
    scripts stand in it as they are, for as escapes they would be read by nobody."""
    return mask_text(str(structlog.processors.JSONRenderer(default=repr, ensure_ascii=False)(logger, name, event)))


def build_logging_config(level: str) -> dict[str, Any]:
    """A dictConfig that sends everything to standard error as JSON. Request values never enter a log message."""
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
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
            # Its records carry whole requests; ours name the request by ndc instead.
            "django.request": {"handlers": ["stderr"], "level": "CRITICAL", "propagate": False},
            # A tick a second is no news; what a tick does is.
            **{name: {"level": "WARNING"} for name in ("celery.app.trace", "celery.worker.strategy", "celery.beat")},
            # What it counted at each sign-in is no news; that somebody is locked out is.
            "axes": {"level": "WARNING"},
            "django.server": {"handlers": ["stderr"], "level": level, "propagate": False},
        },
    }

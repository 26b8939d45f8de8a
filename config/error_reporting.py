"""Error reports to a service that speaks Sentry's protocol: what was logged as an error, its kind and where, no data.

Off unless GATEWAY_SENTRY_DSN is set; then it needs the extra ``sentry``. A report has the event's name, the ndc, the
fault's type and the places of its calls. It has no message of a fault, no variable, no source line, no request, no
user.
Source: docs/decisions/0101.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings

from gateway import logs
from gateway.core.masking import mask_text

REPORT_TAGS: Final = ("ndc", "logger", "timer", "payment", "part")
"""Members of a log event that go with its report."""
_EVENT_NAME: Final = re.compile("[a-z][a-z0-9_.]{0,63}")
_FRAME_MEMBERS: Final = frozenset({"filename", "function", "module", "lineno", "in_app"})


def install_error_reporting() -> None:
    """Report from now on what this process logs as an error, if the setting names a service."""
    if not settings.GATEWAY_SENTRY_DSN:
        return
    import sentry_sdk

    sentry_sdk.init(
        dsn=settings.GATEWAY_SENTRY_DSN,
        environment=settings.GATEWAY_ENVIRONMENT,
        release=settings.GATEWAY_BUILD_NUMBER.partition("@")[0],
        default_integrations=False,
        auto_enabling_integrations=False,
        include_local_variables=False,
        include_source_context=False,
        max_request_body_size="never",
        send_default_pii=False,
        max_breadcrumbs=0,
        server_name=settings.GATEWAY_NODE,
        before_send=_strip,
    )
    logs.set_error_reporter(_report)


def _report(event: Mapping[str, Any]) -> None:
    import sentry_sdk

    name = _name_event(event)
    with sentry_sdk.new_scope() as scope:
        for tag in REPORT_TAGS:
            if tag in event:
                scope.set_tag(tag, mask_text(str(event[tag])))
        scope.set_tag("event", name)
        fault = logs.find_fault(event.get("exc_info"))
        if fault is None:
            sentry_sdk.capture_message(name, level="error")
        else:
            sentry_sdk.capture_exception(fault)


def _name_event(event: Mapping[str, Any]) -> str:
    """The event's name. What a library logs is a sentence, which may hold a fault's message: of that, its logger."""
    text = str(event.get("event", ""))
    return text if _EVENT_NAME.fullmatch(text) else f"error of {event.get('logger', 'a library')}"


def _strip(event: Any, _hint: Any) -> Any:
    """What is left of a report before it is sent."""
    for fault in event.get("exception", {}).get("values", []):
        fault["value"] = ""
        for frame in (fault.get("stacktrace") or {}).get("frames", []):
            for name in set(frame) - _FRAME_MEMBERS:
                del frame[name]
    for name in ("request", "user", "extra", "breadcrumbs", "modules"):
        event.pop(name, None)
    return event

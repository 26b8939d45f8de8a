"""What the log has of requests that Django itself refuses: gateway/logs.py."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import structlog
from django.core.exceptions import DisallowedRedirect
from django.core.handlers.exception import response_for_exception
from django.http import HttpResponseRedirect
from django.test import Client, RequestFactory

from gateway.logs import MAX_REFUSAL_CHARS, build_logging_config

SECRET = "pq7x-4c0ffee"


def render(record: logging.LogRecord) -> dict[str, Any]:
    """The record's line as the product writes it."""
    made = dict(build_logging_config("INFO")["formatters"]["json"])
    line: dict[str, Any] = json.loads(made.pop("()")(**made).format(record))
    return line


@pytest.mark.django_db
def test_what_a_stranger_makes_django_refuse_is_a_warning_without_stack_or_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Two live nodes had a stack in their logs for each request with a foreign Host, and error reports of it."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    with caplog.at_level(logging.INFO):
        foreign = client.get(f"/pay/{SECRET}?q={SECRET}", headers={"host": f"evil.example{'x' * 1_000}"})
        forged = client.post(f"/admin/welcome/1/{SECRET}/")
    assert (foreign.status_code, forged.status_code) == (400, 403)
    lines = [render(record) for record in caplog.records if record.name.startswith("django.security.")]
    assert [(line["event"], line["kind"], line["level"]) for line in lines] == [
        ("suspicious_request", "DisallowedHost", "warning"),
        ("suspicious_request", "csrf", "warning"),
    ]
    assert "evil.example" in lines[0]["why"]
    assert "CSRF cookie not set" in lines[1]["why"]
    for line in lines:
        assert SECRET not in json.dumps(line)
        assert set(line) == {"event", "kind", "why", "level", "logger", "timestamp"}
        assert len(line["why"]) <= MAX_REFUSAL_CHARS


def test_what_django_refuses_of_our_own_code_keeps_its_stack(caplog: pytest.LogCaptureFixture) -> None:
    request = RequestFactory().get(f"/pay/{SECRET}")
    with pytest.raises(DisallowedRedirect) as refused:
        HttpResponseRedirect("ours:result")
    with caplog.at_level(logging.INFO):
        assert response_for_exception(request, refused.value).status_code == 400
    (line,) = [render(record) for record in caplog.records if record.name.startswith("django.security.")]
    assert (line["event"], line["kind"], line["level"]) == ("suspicious_request", "DisallowedRedirect", "error")
    assert "test_logs.py" in line["exception"]
    assert f"/pay/{SECRET}" not in json.dumps(line)


def test_a_logger_that_was_used_goes_by_what_is_configured_later() -> None:
    """A process that configures its logs twice has one way of writing them."""
    used = structlog.get_logger("used")
    used.warning("first")
    build_logging_config("INFO")
    with structlog.testing.capture_logs() as logged:
        used.warning("second")
    assert logged == [{"event": "second", "log_level": "warning"}]

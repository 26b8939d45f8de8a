"""What the log has of requests that Django itself refuses: gateway/logs.py."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
import structlog
from django.core.exceptions import DisallowedRedirect
from django.core.handlers.exception import response_for_exception
from django.http import HttpResponseRedirect
from django.test import Client, RequestFactory

from gateway import logs
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
    logs._traces.clear()  # its handler has written it
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


class FullDiskError(Exception):
    """A fault that each request has while something is away."""


def raise_it(fault: Exception) -> None:
    raise fault


def record_of(fault: Exception) -> logging.LogRecord:
    """The record of an error that was logged where its fault was caught."""
    record = logging.makeLogRecord({"name": "x", "levelname": "ERROR", "levelno": logging.ERROR, "msg": "failed"})
    try:
        raise_it(fault)
    except Exception:
        record.exc_info = sys.exc_info()
    return record


def line_of(fault: Exception) -> dict[str, Any]:
    return render(record_of(fault))


def test_a_fault_that_comes_again_at_once_is_written_without_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request had 9 KB of it in the log while the disk of the database was full: gateway/logs.py."""
    now = [1_000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(logs, "_traces", {})
    first, second = (line_of(FullDiskError(f"no space left\n{hint}")) for hint in ("a hint", "another hint"))
    assert "in raise_it" in first["exception"]
    assert "a hint" in first["exception"]
    assert second["exception"] == "FullDiskError: no space left"
    assert (second["event"], second["level"]) == ("failed", "error")
    assert "Traceback" in line_of(ValueError())["exception"]
    now[0] += logs.REPEATS_S
    assert "in raise_it" in line_of(FullDiskError("no space left"))["exception"]


def test_that_a_fault_comes_again_is_not_told_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is gone leaves its id to the next: in a loop each one was written with its stack."""
    monkeypatch.setattr(logs, "_traces", {})
    record = record_of(FullDiskError("no space left"))
    assert ["Traceback" in render(record)["exception"] for _ in range(3)] == [True, False, False]


def test_a_fault_of_the_same_line_that_came_another_way_has_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of a database's driver raises whatever is wrong anywhere: one fault often hid the stacks of others."""

    def elsewhere() -> dict[str, Any]:
        record = logging.makeLogRecord({"name": "x", "levelname": "ERROR", "levelno": logging.ERROR, "msg": "failed"})
        try:
            raise_it(FullDiskError("another table"))
        except FullDiskError:
            record.exc_info = sys.exc_info()
        return render(record)

    monkeypatch.setattr(logs, "_traces", {})
    assert "Traceback" in line_of(FullDiskError("no space left"))["exception"]
    assert "in elsewhere" in elsewhere()["exception"]
    assert "Traceback" not in elsewhere()["exception"]


def test_the_faults_that_are_remembered_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_traces", dict.fromkeys(range(logs.MAX_TRACES), 0.0))
    line_of(ValueError())
    assert len(logs._traces) == 1

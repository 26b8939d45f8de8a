"""An unexpected error, on a page of any kind: one line in the log, and its name on the page.

Found in use: a 500 of the back office left nothing in any log.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.test.utils import override_settings
from django.urls import path

import config.urls
from gateway.api.error_views import CAPABILITY_PATHS

handler500 = config.urls.handler500
SECRET_PATH = "/admin/4200000000000000/"


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("this page is broken")


urlpatterns = [
    path("admin/4200000000000000/", broken),
    path("docs/broken", broken),
    *(path(f"{begin[1:]}c4ffee", broken) for begin in CAPABILITY_PATHS),
]


@pytest.mark.django_db
@pytest.mark.parametrize("browser", [True, False])
@pytest.mark.parametrize("address", [SECRET_PATH, "/docs/broken"])
def test_an_unforeseen_fault_is_logged_once_and_named_on_the_page(
    caplog: pytest.LogCaptureFixture, address: str, browser: bool
) -> None:
    """Operators find it by the name that the page shows; the log holds the trace and no card number."""
    with override_settings(ROOT_URLCONF=__name__), caplog.at_level(logging.ERROR):
        client = Client(raise_request_exception=False, headers={"accept": "text/html" if browser else "*/*"})
        answer = client.get(address)
    assert answer.status_code == 500
    said: list[dict[str, Any]] = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    (line,) = [each for each in said if each["event"] == "unexpected_error"]
    assert line["method"] == "GET"
    assert "4200000000000000" not in line["path"]
    assert "this page is broken" in (line.get("exception") or str(line.get("exc_info")))
    assert line["ndc"] in answer.content.decode()
    assert ("<html" in answer.content.decode()) is browser


@pytest.mark.django_db
@pytest.mark.parametrize("begin", CAPABILITY_PATHS)
def test_the_log_has_no_path_that_lets_somebody_in(caplog: pytest.LogCaptureFixture, begin: str) -> None:
    with override_settings(ROOT_URLCONF=__name__), caplog.at_level(logging.ERROR):
        assert Client(raise_request_exception=False).get(f"{begin}c4ffee").status_code == 500
    (line,) = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert line["path"] == f"{begin}…"


def test_the_proxies_hide_the_same_paths() -> None:
    for name in ("haproxy.cfg", "nginx.conf"):
        assert f"^({'|'.join(CAPABILITY_PATHS)})" in (settings.BASE_DIR / "docs/running" / name).read_text(), name

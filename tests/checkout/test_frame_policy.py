"""Who may frame a hosted field: a page's origin, exactly; a page from disk in the test environment alone.

Source: docs/widget.md; Part A, What the service does, 8.
"""

from __future__ import annotations

import re

import pytest
from django.test import Client, override_settings

WRONG = (
    "", "javascript:alert(1)", "data:text/html,x", "ftp://shop.example", "https://", "https://shop.example/",
    "https://shop.example/path", "https://shop.example?x", "https://shop.example#x", "https://user@shop.example",
    "https://shop.example; script-src *", "https://shop.example https://evil.example", "https://*", "*",
    "https://*.example", "'self'", "NULL", "null ", "https://shop.example:", "https://shop.example\n",
)  # fmt: skip
RIGHT = ("https://shop.example", "https://shop.example:8443", "http://127.0.0.1:8000", "http://localhost:3000")


def ancestors(parent: str) -> tuple[int, str]:
    answer = Client().get("/v1/widget/frame.html", {"parent": parent}, secure=True)
    found = re.search(r"frame-ancestors ([^;]*)", answer.get("Content-Security-Policy", ""))
    return answer.status_code, found[1] if found else ""


@pytest.mark.parametrize("parent", RIGHT)
@pytest.mark.parametrize("environment", ["test", "live"])
def test_the_page_that_names_itself_may_frame_it_and_no_other(parent: str, environment: str) -> None:
    with override_settings(IS_LIVE=environment == "live"):
        assert ancestors(parent) == (200, parent)


@pytest.mark.parametrize("parent", WRONG)
@pytest.mark.parametrize("environment", ["test", "live"])
def test_what_is_no_origin_frames_nothing(parent: str, environment: str) -> None:
    with override_settings(IS_LIVE=environment == "live"):
        assert ancestors(parent) == (400, "")


@pytest.mark.parametrize("parent", ["null", "file://"])
def test_a_page_from_disk_tries_the_test_environment_only(live: None, parent: str) -> None:
    assert ancestors(parent) == (400, "")
    with override_settings(IS_LIVE=False):
        assert ancestors(parent) == (200, "file:")

"""Pages of the portal are sent as gzip to readers who are not signed in."""

from __future__ import annotations

import gzip

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.office import signed_in

pytestmark = pytest.mark.django_db
PAGES = ["/", "/docs", "/docs/reference/payment", "/testdata", "/v1/openapi.json"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_compressed_for_readers_who_accept_it(page: str) -> None:
    plain = Client().get(page)
    zipped = Client().get(page, headers={"Accept-Encoding": "br, gzip"})
    assert "Content-Encoding" not in plain.headers
    assert zipped["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in plain["Vary"]
    assert "Accept-Encoding" in zipped["Vary"]
    assert zipped["Content-Length"] == str(len(zipped.content))
    assert len(zipped.content) < len(plain.content) / 3
    assert len(gzip.decompress(zipped.content)) == len(plain.content)


def test_a_page_for_a_signed_in_user_is_not(admin_user: User) -> None:
    page = signed_in(admin_user).get("/docs", headers={"Accept-Encoding": "gzip"})
    assert (page.status_code, page.get("Content-Encoding")) == (200, None)


def test_a_missing_page_and_an_unchanged_one_are_not() -> None:
    assert "Content-Encoding" not in Client().get("/docs/nothing", headers={"Accept-Encoding": "gzip"}).headers
    etag = Client().get("/v1/openapi.json")["ETag"]
    unchanged = Client().get("/v1/openapi.json", headers={"Accept-Encoding": "gzip", "If-None-Match": etag})
    assert (unchanged.status_code, unchanged.get("Content-Encoding")) == (304, None)
    assert (unchanged["ETag"], unchanged["Vary"], unchanged["Cache-Control"]) == (
        etag,
        "Accept-Encoding",
        "public, no-cache",
    )


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [("gzip;q=0", False), ("gzip; q=0.0, br", False), ("br;q=0, gzip;q=0.5", True), ("identity", False), ("", False)],
)
def test_a_reader_may_refuse_it(accepted: str, zipped: bool) -> None:
    page = Client().get("/docs", headers={"Accept-Encoding": accepted})
    assert ("Content-Encoding" in page.headers) is zipped

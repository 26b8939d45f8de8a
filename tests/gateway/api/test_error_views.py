"""Pages for a browser that asks for what is not there, or what cannot be read: their statuses and their kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from gateway.api import error_views

BROWSER = "text/html,application/xhtml+xml;q=0.9"


def test_a_browser_gets_a_page_with_404() -> None:
    answer = Client().get("/nothing-here", headers={"accept": BROWSER})
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


def test_a_client_gets_json_with_404() -> None:
    answer = Client().get("/nothing-here")
    assert (answer.status_code, answer.json()["result"]["code"]) == (404, "200.300.404")


def test_a_browser_gets_a_page_with_400() -> None:
    answer = error_views.bad_request(RequestFactory().get("/", headers={"accept": BROWSER}))
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    ("sent", "shown", "offered"),
    [
        ("shop.example:8000", "shop.example:8000", "shop.example"),
        ("4200000000000000.example", "420000******0000", ""),
        ("a" * 254, "a" * 253, ""),
    ],
)
def test_a_host_that_is_not_allowed_is_shown_masked_with_the_line_that_allows_it(
    settings: Settings, sent: str, shown: str, offered: str
) -> None:
    settings.ALLOWED_HOSTS = ["pay.example"]
    page = Client(headers={"accept": BROWSER}).get("/", HTTP_HOST=sent)
    text = page.content.decode()
    assert page.status_code == 400
    assert f"<code>{shown}" in text
    assert "4200000000000000" not in text
    assert (f"&#x27;pay.example,{offered}&#x27;" in text or f"'pay.example,{offered}'" in text) is bool(offered)


def test_a_path_of_the_api_answers_json_with_400_to_everybody() -> None:
    answer = error_views.bad_request(RequestFactory().get("/v1/payments", headers={"accept": BROWSER}))
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/payment", "/v1/payments"),
        ("/v1/paymnets/8a82944a4cc25ebf014cc2c782423202", "/v1/payments"),
        ("/v1/Payments", "/v1/payments"),
        ("/v2/payments", "/v1/payments"),
        ("/v1/checkout", "/v1/checkouts"),
        ("/v1/registration", "/v1/registrations"),
        ("/v1/paymentLink", "/v1/paymentLinks"),
    ],
)
def test_a_misspelt_path_is_told_which_was_meant(path: str, meant: str) -> None:
    answer = error_views.not_found(RequestFactory().get(path))
    said = json.loads(answer.content)["result"]["description"]  # type: ignore[attr-defined]
    assert said.endswith(f"no such path or version - did you mean {meant}?"), said


@pytest.mark.parametrize(
    "path", ["/v1/payments/", f"/v1/payments/{'8' * 32}/", "/v1/paymentWidgets.js/", "/v1/query//"]
)
def test_a_path_that_ends_with_a_slash_is_told_so(path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 404
    assert answer.json()["result"]["description"].endswith("no such path or version - leave out the slash at its end")


@pytest.mark.parametrize(
    "path", ["/v1/payments/x/y/z", "/v1/nothing", "/v1/", "/v1/" + "a" * 5_000, "/v1/4200000000000000"]
)
def test_a_path_that_is_near_no_other_gets_no_hint(path: str) -> None:
    said = json.loads(error_views.not_found(RequestFactory().get(path)).content)["result"]["description"]  # type: ignore[attr-defined]
    assert said.endswith("no such path or version"), said


@pytest.mark.parametrize(("live", "hint"), [(False, " - did you mean /v1/test/clock?"), (True, "")])
def test_in_live_no_path_of_the_test_environment_is_meant(settings: Any, live: bool, hint: str) -> None:
    settings.IS_LIVE = live
    said = json.loads(error_views.not_found(RequestFactory().get("/v1/test/clok")).content)["result"]["description"]  # type: ignore[attr-defined]
    assert said.endswith(f"no such path or version{hint}"), said

"""Pages for a browser that asks for what is not there, or what cannot be read: their statuses and their kind."""

from __future__ import annotations

from django.test import Client, RequestFactory

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


def test_a_path_of_the_api_answers_json_with_400_to_everybody() -> None:
    answer = error_views.bad_request(RequestFactory().get("/v1/payments", headers={"accept": BROWSER}))
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("application/json")

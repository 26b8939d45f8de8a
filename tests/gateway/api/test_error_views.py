"""Pages for a browser that asks for what is not there, or what cannot be read: their statuses and their kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
import structlog
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from gateway.api import error_views
from gateway.models import Role
from tests.support.fixtures import Shop
from tests.support.office import person

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
        ("a" * 253, "a" * 253, "a" * 253),
        ("a b.example", "a b.example", ""),
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
    ("path", "hint"),
    [
        ("/v1/payments/", "leave out the slash at its end, or put an id behind it"),
        (f"/v1/payments/{'8' * 32}/", "leave out the slash at its end"),
        ("/v1/paymentWidgets.js/", "leave out the slash at its end"),
        ("/v1/query//", "leave out the slash at its end, or put an id behind it"),
        ("/v1/test/transfers/", "an id is missing at its end"),
        ("/v1/registrations//payments", "an id is missing between two of its slashes"),
        ("/v1/checkouts//payment", "an id is missing between two of its slashes"),
    ],
)
def test_a_path_with_a_slash_too_many_or_without_its_id_is_told_so(path: str, hint: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 404
    assert answer.json()["result"]["description"].endswith(f"no such path or version - {hint}")


@pytest.mark.parametrize(
    "path",
    ["/v1/payments/x/y/z", "/v1/nothing", "/v1/", "/v1/" + "a" * 5_000, "/v1/4200000000000000",
     # A path with a view, whose method raised 404, and one that has none without its slash either.
     "/v1/payments", f"/v1/payments/{'8' * 32}", "/v1/nothing/"],
)  # fmt: skip
def test_a_path_that_is_near_no_other_gets_no_hint(path: str) -> None:
    said = json.loads(error_views.not_found(RequestFactory().get(path)).content)["result"]["description"]  # type: ignore[attr-defined]
    assert said.endswith("no such path or version"), said


@pytest.mark.parametrize(("live", "hint"), [(False, " - did you mean /v1/test/clock?"), (True, "")])
def test_in_live_no_path_of_the_test_environment_is_meant(settings: Any, live: bool, hint: str) -> None:
    settings.IS_LIVE = live
    said = json.loads(error_views.not_found(RequestFactory().get("/v1/test/clok")).content)["result"]["description"]  # type: ignore[attr-defined]
    assert said.endswith(f"no such path or version{hint}"), said


# --- pages and JSON -----------------------------------------------------------------------------------------------


def asked(path: str, accept: str = "*/*", user: Any = None) -> HttpRequest:
    request = RequestFactory().get(path, headers={"accept": accept})
    request.user = user or AnonymousUser()
    return request


def kind(answer: HttpResponseBase) -> str:
    return answer["Content-Type"].partition(";")[0]


@pytest.mark.parametrize(
    ("path", "accept", "expected"),
    [
        ("/nothing", BROWSER, "text/html"),
        ("/nothing", "application/json", "application/json"),
        ("/nothing", "*/*", "application/json"),
        # A path of the API answers browsers, too, in JSON.
        ("/v1/nothing", BROWSER, "application/json"),
        ("/v1/nothing", "*/*", "application/json"),
        # Nobody who has not signed in sees the back office's frame.
        ("/admin/nothing", BROWSER, "text/html"),
        ("/admin/nothing", "*/*", "application/json"),
    ],
)
@pytest.mark.parametrize(
    ("view", "status", "code", "words"),
    [
        (error_views.not_found, 404, "200.300.404", "no such path or version"),
        (error_views.forbidden, 403, "800.900.300", ""),
        (error_views.csrf_failure, 403, "800.900.300", ""),
        (error_views.bad_request, 400, "200.300.404", "the request could not be read"),
        (error_views.server_error, 500, "999.999.999", ""),
    ],
)
def test_an_error_is_a_page_for_browsers_and_json_for_clients_and_on_the_apis_paths(
    view: Any, status: int, code: str, words: str, path: str, accept: str, expected: str
) -> None:
    answer = view(asked(path, accept))
    assert (answer.status_code, kind(answer)) == (status, expected)
    if expected == "application/json":
        result = json.loads(answer.content)["result"]
        assert result["code"] == code
        assert words in result["description"]
    else:
        assert b"<html" in answer.content


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/payments", "/v1/payments"),
        ("/payments?entityId=7&a=b", "/v1/payments?entityId=7&a=b"),
        ("/query/abc", "/v1/query/abc"),
        ("/nothing", None),
        ("/v1/nothing", None),
        # An address of the API is never one of another below it.
        ("/v1/v1/payments", None),
    ],
)
@pytest.mark.parametrize("accept", [BROWSER, "*/*"])
def test_a_path_that_lacks_its_version_is_sent_there_with_its_method_and_query(
    path: str, location: str | None, accept: str
) -> None:
    answer = error_views.not_found(asked(path, accept))
    if location is None:
        assert (answer.status_code, "Location" in answer) == (404, False)
    else:
        assert (answer.status_code, answer["Location"]) == (307, location)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("view", "status", "title"),
    [
        (error_views.not_found, 404, "There is nothing here"),
        (error_views.forbidden, 403, "This page is not for you"),
    ],
)
def test_users_of_the_back_office_see_an_error_in_its_frame(shop: Shop, view: Any, status: int, title: str) -> None:
    """Not customers elsewhere, not a user who is no clerk, and not one without their second factor."""
    clerk = person("clerk", Role.MANAGER, shop.merchant)

    def is_framed(answer: Any) -> bool:
        assert (answer.status_code, kind(answer)) == (status, "text/html")
        return 'class="ck-empty"' in answer.content.decode()

    framed = view(asked("/admin/nothing", BROWSER, clerk))
    assert is_framed(framed)
    assert f"<h2>{title}</h2>" in framed.content.decode()
    assert not is_framed(view(asked("/nothing", BROWSER, clerk)))
    assert not is_framed(view(asked("/admin/nothing", BROWSER, User.objects.create_user("shopper"))))
    waiting = asked("/admin/nothing", BROWSER, clerk)
    waiting.has_to_set_up = True  # type: ignore[attr-defined]
    assert not is_framed(view(waiting))
    waiting.has_to_set_up = False  # type: ignore[attr-defined]
    assert is_framed(view(waiting))
    without = asked("/admin/nothing", BROWSER)
    del without.user
    assert not is_framed(view(without))


# --- unhandled errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (ValueError("x"), 500),
        (OperationalError("away"), 503),
        (InterfaceError("away"), 503),
    ],
)
@pytest.mark.parametrize(("path", "accept"), [("/v1/payments", "*/*"), ("/nothing", BROWSER)])
def test_an_error_is_answered_with_the_number_it_is_logged_under(
    fault: Exception, status: int, path: str, accept: str
) -> None:
    """And when to come again, if the database was away."""
    with structlog.testing.capture_logs() as logged:
        try:
            raise fault
        except type(fault):
            answer: Any = error_views.server_error(asked(path, accept))
    assert answer.status_code == status
    assert answer.get("Retry-After") == (error_views.DATABASE_AWAY_RETRY_AFTER if status == 503 else None)
    (entry,) = logged
    assert (entry["event"], entry["log_level"], entry["method"], entry["path"], entry["exc_info"]) == (
        "unexpected_error", "error", "GET", path, True,
    )  # fmt: skip
    assert entry["ndc"]
    assert entry["ndc"] in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "logged"),
    [
        ("/v1/payments", "/v1/payments"),
        ("/v1/payments/4200000000000000", "/v1/payments/420000******0000"),
        ("/pay/secret", "/pay/…"),
        ("/shopper/secret/more", "/shopper/…"),
        ("/v1/checkouts/secret", "/v1/checkouts/…"),
        ("/v1/paymentLinks/secret", "/v1/paymentLinks/…"),
        ("/admin/welcome/secret", "/admin/welcome/…"),
        ("/admin/pay/open", "/admin/pay/open"),
    ],
)
def test_of_a_path_that_lets_in_no_log_has_more_than_its_beginning(path: str, logged: str) -> None:
    with structlog.testing.capture_logs() as entries:
        error_views.server_error(asked(path))
    assert [entry["path"] for entry in entries] == [logged]


# --- a host name that is not allowed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "live", "path", "names_the_setting"),
    [
        (DisallowedHost(), False, "/", True),
        (DisallowedHost(), False, "/v1/payments", False),
        (DisallowedHost(), True, "/", False),
        (ValueError(), False, "/", False),
        (None, False, "/", False),
    ],
)
@pytest.mark.parametrize("accept", [BROWSER, "*/*"])
def test_only_in_the_test_environment_a_page_names_the_setting_of_the_host(
    settings: Any, fault: Exception | None, live: bool, path: str, names_the_setting: bool, accept: str
) -> None:
    settings.IS_LIVE = live
    answer: Any = error_views.bad_request(asked(path, accept), fault)
    assert answer.status_code == 400
    assert (b"DJANGO_ALLOWED_HOSTS" in answer.content) is names_the_setting

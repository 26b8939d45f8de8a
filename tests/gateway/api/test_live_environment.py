"""What differs in the live environment: TLS only, no test mode, no test endpoints, no simulator.

Source: Part A, What the service does, 2 and 5; rulings D11, D18, D21.
"""

from __future__ import annotations

import pytest

from gateway.models import Payment
from tests.support.client import Api, payment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("live")]


@pytest.fixture
def secure(api: Api) -> Api:
    return api.over_tls()


def test_a_token_over_plain_http_is_refused(api: Api) -> None:
    """D11; A2.2: it has been read on the way already."""
    answer = api.pay()
    assert (answer.status, answer.code) == (403, "800.900.300")
    assert "https" in answer.description
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert Payment.objects.count() == 0


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/?next=%2Fadmin%2F", "/v1/resultcodes", "/v1/payments", "/"])
def test_a_page_over_plain_http_leads_to_https(api: Api, path: str) -> None:
    """A30.2, A2.2."""
    answer = api.with_token(None).call("GET", path)
    assert (answer.status, answer.headers["Location"]) == (307, f"https://testserver{path}")


def test_health_answers_over_plain_http(api: Api) -> None:
    """A load balancer asks from inside."""
    assert api.with_token(None).call("GET", "/health/live").status == 200


@pytest.mark.parametrize("path", ["/v1/resultcodes", "/admin/login/"])
def test_an_answer_over_tls_demands_tls_from_then_on(secure: Api, path: str) -> None:
    """A2.2: HSTS."""
    assert "max-age=31536000" in secure.with_token(None).call("GET", path).headers["Strict-Transport-Security"]


@pytest.mark.parametrize("mode", ["INTERNAL", "EXTERNAL"])
def test_test_mode_is_refused(secure: Api, mode: str) -> None:
    """D18."""
    answer = secure.pay(testMode=mode)
    assert (answer.status, answer.code, list(answer.errors)) == (400, "200.300.404", ["testMode"])
    follow = secure.follow("0" * 32, "RF", "1.00", testMode=mode)
    assert "testMode" in follow.errors


ADDRESSES = ("shopperResultUrl", "notificationUrl")


CARD = {name: value for name, value in payment().items() if name.startswith("card.")}
STARTS = {
    "/v1/payments": payment(),
    "/v1/checkouts": {name: value for name, value in payment().items() if name not in CARD},
    "/v1/registrations": CARD | {"paymentBrand": "VISA"},
}


@pytest.mark.parametrize("path", STARTS)
@pytest.mark.parametrize("address", ["http://shop.example/x", "HTTP://shop.example/x", "http%3A%2F%2Fshop.example%2Fx"])
@pytest.mark.parametrize("name", ADDRESSES)
def test_shoppers_and_notifications_go_to_no_address_without_tls(
    secure: Api, name: str, address: str, path: str
) -> None:
    """Part A, What the service does, 2; Part B, Asynchronous payment parameters."""
    answer = secure.post(path, STARTS[path] | {name: address})
    assert (answer.status, answer.code, list(answer.errors)) == (400, "200.300.404", [name])
    assert "https:" in answer.errors[name]
    assert Payment.objects.count() == 0


@pytest.mark.parametrize("path", STARTS)
def test_addresses_with_tls_are_taken(secure: Api, path: str) -> None:
    """A payment ends at the acquirer that is not set up, which comes after the parameters."""
    answer = secure.post(path, STARTS[path] | dict.fromkeys(ADDRESSES, "https://shop.example/result"))
    assert not answer.errors
    assert answer.code in ("600.200.700", "000.200.100"), answer


@pytest.mark.parametrize("kind", ["CP", "RF", "PA"])
def test_a_follow_up_takes_no_address_without_tls(secure: Api, kind: str) -> None:
    answer = secure.follow("0" * 32, kind, "1.00", **dict.fromkeys(ADDRESSES, "http://shop.example/result"))
    assert {*ADDRESSES} <= answer.errors.keys()


def test_no_payment_is_made_while_no_acquirer_is_set_up(secure: Api) -> None:
    """D18: never the simulator."""
    answer = secure.pay()
    assert (answer.status, answer.code) == (400, "600.200.700")
    assert Payment.objects.count() == 0


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/v1/test/clock"),
        ("POST", "/v1/test/clock"),
        ("DELETE", "/v1/test/clock"),
        ("GET", "/v1/test/acquirer/messages"),
        ("PUT", "/v1/test/clock"),
    ],
)
def test_the_test_environments_endpoints_do_not_exist(secure: Api, method: str, path: str) -> None:
    """D21: they look like any unknown path, with a token and without."""
    for api in (secure, secure.with_token(None)):
        answer = api.call(method, f"{path}?entityId={api.entity}")
        assert (answer.status, answer.code) == (404, "200.300.404")


def test_a_validation_error_over_tls_is_what_it_is_in_test(secure: Api) -> None:
    """D10."""
    answer = secure.post("/v1/payments", payment(amount="92.1"))
    assert (answer.status, list(answer.errors)) == (400, ["amount"])

"""Single sign-on with a provider whose answers are wrong: the sign-in is refused, and no page is a 500.

Source: OpenID Connect Core 1.0, 3.1.3.7 and 5.3.2; Discovery 1.0, 4.3.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from gateway.backoffice.sign_in import provider_session
from gateway.models import Role
from tests.support.fixtures import Shop
from tests.support.office import person
from tests.support.provider import CLIENT, apps

pytestmark = pytest.mark.django_db
START, BACK = "/admin/login/sso/", "/admin/login/sso/callback/"
PERSON = {"sub": "clara-1", "email": "clara@shop.example", "email_verified": True}


class Provider(BaseHTTPRequestHandler):
    """Answers what the test put there."""

    answers: dict[str, Any] = {}

    def do_GET(self) -> None:
        self._send(self.answers["userinfo" if self.path == "/userinfo" else "configuration"])

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(self.answers["token"])

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _send(self, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def clara(shop: Shop, issuer: str) -> Iterator[None]:
    User.objects.filter(pk=person("clara", Role.CLERK, shop.merchant).pk).update(email=PERSON["email"])
    provider_session._configurations.clear()
    with override_settings(**apps(issuer)):
        yield


def come(
    issuer: str, claims: dict[str, Any], userinfo: Any = None, token: Any = None, configuration: Any = None
) -> str:
    """The way to the provider and back, with these changes of its answers; a claim that is None is left out. Gives
    where it leads."""
    ends = {name: f"{issuer}/{name}" for name in ("token_endpoint", "authorization_endpoint", "jwks_uri")}
    found = {"issuer": issuer, "userinfo_endpoint": f"{issuer}/userinfo", **ends}
    Provider.answers["configuration"] = found if configuration is None else configuration(found)
    client = Client(raise_request_exception=False)
    begun = client.post(START)
    if "Refresh" not in begun:
        assert begun.status_code == 302
        return str(begun["Location"])
    asked = parse_qs(urlsplit(begun["Refresh"]).query)
    now = int(time.time())
    own = {"iss": issuer, "aud": CLIENT["GATEWAY_OIDC_CLIENT_ID"], "exp": now + 300, "auth_time": now, **PERSON}
    said = {name: value for name, value in {**own, "nonce": asked["nonce"][0], **claims}.items() if value is not None}
    # It comes over the provider's own TLS connection, which stands for a signature.
    given = {"access_token": "any", "token_type": "Bearer", "id_token": jwt.encode(said, key="", algorithm="none")}
    Provider.answers |= {"userinfo": PERSON if userinfo is None else userinfo, "token": {**given, **(token or {})}}
    answer = client.get(BACK, {"code": "any", "state": asked["state"][0]})
    assert answer.status_code == 302
    assert (client.get("/admin/").status_code == 200) is (answer["Location"] == "/admin/")
    return str(answer["Location"])


def test_a_right_answer_signs_in(issuer: str) -> None:
    assert come(issuer, {}) == "/admin/"
    assert come(issuer, {"aud": ["tollhouse", "another"], "azp": "tollhouse"}) == "/admin/"


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"}, {"iss": None}, {"aud": "another"}, {"aud": None}, {"exp": 1}, {"exp": None},
        {"nonce": "another"}, {"nonce": None}, {"aud": ["tollhouse", "another"], "azp": "another"},
        {"sub": "mallory"}, {"sub": None}, {"auth_time": float("inf")},
    ],
    ids=str,
)  # fmt: skip
def test_an_id_token_for_another_client_request_or_person_signs_nobody_in(issuer: str, claims: dict[str, Any]) -> None:
    assert come(issuer, claims) == "/admin/login/"


@pytest.mark.parametrize(
    "userinfo",
    [["clara-1"], "clara-1", {"email": "clara@shop.example"}, {**PERSON, "sub": {"a": 1}}, {**PERSON, "email": ["x"]}],
    ids=str,
)
def test_data_about_a_person_that_cannot_be_read_sign_nobody_in(issuer: str, userinfo: Any) -> None:
    assert come(issuer, {}, userinfo) == "/admin/login/"


@pytest.mark.parametrize("token", [{"expires_in": "soon"}, {"id_token": 5}, {"id_token": None}], ids=str)
def test_a_token_that_cannot_be_read_signs_nobody_in(issuer: str, token: Any) -> None:
    assert come(issuer, {}, token=token) == "/admin/login/"


def test_a_configuration_of_another_issuer_or_none_at_all_signs_nobody_in(issuer: str) -> None:
    evil = "https://evil.example"
    assert come(issuer, {"iss": evil}, configuration=lambda found: {**found, "issuer": evil}) == "/admin/login/"
    provider_session._configurations.clear()
    assert come(issuer, {}, configuration=lambda found: [found]) == "/admin/login/"

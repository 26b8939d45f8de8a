"""Calls to the provider of single sign-on, what is cached of its answers, and which user an identity belongs to.

Source: docs/decisions/0051.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import requests
from pytest_django.fixtures import Settings

from gateway.backoffice.sign_in import provider_session
from gateway.backoffice.sign_in.allauth_adapters import MAX_SUBJECT_CHARS, SingleSignOnAdapter, identity_of
from gateway.backoffice.sign_in.provider_session import CONFIGURATION_PATH, CONFIGURATION_RETENTION_S, ProviderSession

HERE, THERE = (f"https://{host}.example{CONFIGURATION_PATH}" for host in ("login", "another"))
Calls = list[tuple[str, str, dict[str, Any]]]


@pytest.fixture
def status() -> dict[str, int]:
    """What the provider answers with."""
    return {"code": 200}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, status: dict[str, int]) -> Calls:
    """Calls that reach a provider."""
    made: Calls = []

    def answer(self: requests.Session, method: str, url: str, **options: Any) -> requests.Response:
        made.append((method, url, options))
        if not status["code"]:
            raise requests.ConnectTimeout
        response = requests.Response()
        response.status_code, response.url = status["code"], url
        return response

    monkeypatch.setattr(requests.Session, "request", answer)
    monkeypatch.setattr(provider_session, "_configurations", {})
    return made


def get(url: str, *, verify: bool | str = True) -> requests.Response:
    session = ProviderSession()
    session.verify = verify
    return session.get(url)


def test_a_configuration_is_read_once_for_each_address_and_certificate(calls: Calls) -> None:
    found = [get(HERE), get(HERE), get(THERE), get(THERE), get(HERE, verify="ca.pem"), get(HERE)]
    assert [one.url for one in found] == [HERE, HERE, THERE, THERE, HERE, HERE]
    assert [url for _, url, _ in calls] == [HERE, THERE, HERE]


@pytest.mark.parametrize(("later", "asked"), [(CONFIGURATION_RETENTION_S - 1, 1), (CONFIGURATION_RETENTION_S, 2)])
def test_a_configuration_is_kept_for_its_time(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, later: float, asked: int
) -> None:
    get(HERE)
    now = time.monotonic()
    kept = {key: (now, answer) for key, (_, answer) in provider_session._configurations.items()}
    monkeypatch.setattr(provider_session, "_configurations", kept)
    monkeypatch.setattr(time, "monotonic", lambda: now + later)
    get(HERE)
    assert len(calls) == asked


def test_a_fault_is_not_kept_nor_what_is_no_configuration(calls: Calls, status: dict[str, int]) -> None:
    status["code"] = 503
    get(HERE)
    status["code"] = 200
    for _ in range(2):
        get(HERE)
        ProviderSession().post(THERE)
        get("https://login.example/keys")
    asked = [url for _, url, _ in calls]
    assert [asked.count(url) for url in (HERE, THERE, "https://login.example/keys")] == [2, 2, 2]


def test_a_call_that_fails_gives_its_place_back(calls: Calls, status: dict[str, int]) -> None:
    status["code"] = 0
    for _ in range(2 * provider_session.MAX_PROVIDER_CALLS):
        with pytest.raises(requests.ConnectTimeout):
            get(HERE)
    status["code"] = 200
    assert get(HERE).ok


def test_every_call_has_its_time(calls: Calls) -> None:
    asks: list[Callable[[], object]] = [
        lambda: get(HERE),
        lambda: ProviderSession().post("https://login.example/token"),
        lambda: ProviderSession().get(THERE, timeout=1.0),
    ]
    for ask in asks:
        ask()
    waits = [options["timeout"] for _, _, options in calls]
    assert waits == [provider_session.PROVIDER_TIMEOUT_S, provider_session.PROVIDER_TIMEOUT_S, 1.0]


def test_the_provider_is_verified_by_the_certificates_of_the_settings(settings: Settings) -> None:
    adapter = SingleSignOnAdapter()
    settings.GATEWAY_OUTBOUND_CA_FILE = ""
    assert adapter.get_requests_session().verify is True
    settings.GATEWAY_OUTBOUND_CA_FILE = "/etc/ours.pem"
    assert adapter.get_requests_session().verify == "/etc/ours.pem"


def test_two_people_are_two_however_alike_their_ids_begin() -> None:
    same = "x" * MAX_SUBJECT_CHARS
    people = [("a", same), ("b", same), ("a", f"{same}1"), ("a", f"{same}2"), ("a", "X" * MAX_SUBJECT_CHARS)]
    assert len({identity_of(*one) for one in people}) == len(people)
    assert max(len(identity_of(*one)) for one in people) <= 191

"""Many addresses together make a process check a bounded number of passwords; who is known there is not held up.

Source: docs/decisions/0062.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.hashers import get_hasher
from django.contrib.auth.models import User
from django.test import Client
from django.utils.translation import override
from pytest_django.fixtures import Settings

from gateway.models import AuditEntry, Role, SignIn
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db

MOST = 3
PASSWORD = "correct horse battery 7"
BUSY, WRONG = "Too many sign-ins", "Name or password is wrong"


@pytest.fixture
def clara(shop: Shop) -> User:
    user = person("clara", Role.CLERK, shop.merchant)
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> list[str]:
    """What was hashed, in order; the hasher does its work all the same."""
    settings.GATEWAY_PASSWORD_CHECKS_PER_MINUTE = MOST
    seen: list[str] = []
    hasher = type(get_hasher())
    real: Any = hasher.encode

    def encode(self: Any, password: str, *rest: Any) -> Any:
        seen.append(password)
        return real(self, password, *rest)

    monkeypatch.setattr(hasher, "encode", encode)
    return seen


def try_password(name: str, password: str, address: str) -> str:
    answer = Client().post("/admin/login/", {"username": name, "password": password}, REMOTE_ADDR=address)
    return answer.content.decode() if answer.status_code == 200 else f"to {answer['Location']}"


def flood(number: int = 2 * MOST + 4) -> list[str]:
    """Tries of as many names from as many addresses."""
    return [try_password(f"nobody {one}", "wrong", f"203.{one}.113.9") for one in range(number)]


def test_tries_of_many_addresses_are_refused_unhashed_above_the_budget(clara: User, hashed: list[str]) -> None:
    before = len(hashed)
    told = flood()
    # A second may pass meanwhile, in which a part of the next one is earned.
    assert MOST <= len(hashed) - before <= MOST + 2
    assert [WRONG in one for one in told[:MOST]] == [True] * MOST
    assert BUSY in told[-1] or BUSY in told[-2]
    assert all((BUSY in one) != (WRONG in one) for one in told)


def test_who_signed_in_from_there_lately_is_let_in_meanwhile(
    clara: User, hashed: list[str], settings: Settings
) -> None:
    settings.GATEWAY_PASSWORD_CHECKS_PER_MINUTE = 0
    assert try_password("clara", PASSWORD, "198.51.100.7") == "to /admin/"
    settings.GATEWAY_PASSWORD_CHECKS_PER_MINUTE = MOST
    flood()
    assert try_password("CLARA", "wrong", "198.51.100.7").count(WRONG) == 1
    assert try_password("clara", PASSWORD, "198.51.100.7") == "to /admin/"
    assert SignIn.objects.filter(user=clara).count() == 2


def test_what_was_refused_unhashed_counts_as_no_try(clara: User, hashed: list[str], settings: Settings) -> None:
    """A flood locks nobody out for half an hour."""
    flood()
    tries = [try_password("clara", PASSWORD, f"203.0.113.{one}") for one in range(12)]
    assert any(BUSY in one for one in tries)
    settings.GATEWAY_PASSWORD_CHECKS_PER_MINUTE = 0
    assert try_password("clara", PASSWORD, "203.0.113.77") == "to /admin/"
    assert not AuditEntry.objects.filter(action="refused", subject_id=str(clara.pk)).exists()


def test_who_is_signed_in_shows_again_who_they_are(clara: User, hashed: list[str]) -> None:
    flood()
    browser = signed_in(clara, fresh=False)
    answer = browser.post("/admin/again/password/", {"password": PASSWORD}, REMOTE_ADDR="192.0.2.200")
    assert answer.status_code == 302


def test_the_refusal_is_told_in_german(clara: User, hashed: list[str]) -> None:
    flood()
    with override("de"):
        browser = Client(headers={"accept-language": "de"})
        told = [
            browser.post("/admin/login/", {"username": "x", "password": "y"}, REMOTE_ADDR=f"203.0.113.{one}")
            for one in range(2)
        ]
    assert any("In einigen Sekunden" in one.content.decode() for one in told)

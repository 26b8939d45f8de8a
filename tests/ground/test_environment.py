"""config.environment: a setting that cannot be read is refused by its name, and never taken for another."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import Environment
from tests.ground.conftest import ROOT


def read(kind: str, text: str | None, **options: Any) -> Any:
    own = Environment()
    own.ENVIRON = {} if text is None else {"GATEWAY_X": text}
    return getattr(own, kind)("GATEWAY_X", **options)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        *(("bool", word, True) for word in ("true", "True", "on", "yes", "1", " true ")),
        *(("bool", word, False) for word in ("false", "FALSE", "off", "no", "0")),
        ("int", "12", 12),
        ("float", "2.5", 2.5),
        ("float", "10", 10.0),
        ("str", "$ecret", "$ecret"),
        ("str", "", ""),
        ("list", "a,b", ["a", "b"]),
        ("json", '{"a": 1}', {"a": 1}),
    ],
)
def test_what_is_set_is_read(kind: str, text: str, value: Any) -> None:
    assert read(kind, text, default=None if kind == "json" else "other" if kind == "str" else 7) == value


@pytest.mark.parametrize("kind", ["bool", "int", "float"])
def test_an_empty_switch_or_number_is_not_set(kind: str) -> None:
    assert read(kind, "", default=1) == read(kind, None, default=1) == 1
    with pytest.raises(ImproperlyConfigured, match="Set the GATEWAY_X"):
        read(kind, "")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bool", "maybe"),
        ("bool", "enabled"),
        ("bool", "ture"),
        ("bool", "2"),
        ("int", "ten"),
        ("int", "-1"),
        ("int", "1.5"),
        ("float", "10 min"),
        ("float", "1,5"),
        ("float", "nan"),
        ("float", "inf"),
        ("float", "-1"),
        ("json", "{"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_name(kind: str, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"GATEWAY_X.* must be"):
        read(kind, text, default=1)


def test_the_numbers_of_a_list_are_read_as_numbers() -> None:
    assert read("list", "80,443", cast=int, default=[]) == [80, 443]
    with pytest.raises(ImproperlyConfigured, match="GATEWAY_X"):
        read("list", "80,https", cast=int, default=[])


def test_a_mail_server_that_is_none_is_refused_without_its_password() -> None:
    own = Environment()
    own.ENVIRON = {"EMAIL_URL": "stmp://user:secret@host"}
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL is no address of a mail server") as fault:
        own.email("EMAIL_URL", default="consolemail://")
    assert "secret" not in str(fault.value)


def test_manage_says_it_in_a_line() -> None:
    environment = {**os.environ, "GATEWAY_CARD_TESTING_GUARD": "enabled"}
    ran = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("The settings: GATEWAY_CARD_TESTING_GUARD is 'enabled': it must be true or false.\n")
    assert "Traceback" not in ran.stderr

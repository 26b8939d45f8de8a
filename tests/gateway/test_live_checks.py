"""What `manage.py check` refuses in live, so that neither web server nor worker starts with it.

Source: PCI DSS 4.0.1, 8.2.8, 8.4; docs/decisions/0051.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings

pytestmark = pytest.mark.django_db

SAFE: dict[str, Any] = {
    "IS_LIVE": True, "GATEWAY_ENVIRONMENT": "live", "GATEWAY_BASE_URL": "https://pay.example", "DEBUG": False,
    "ALLOWED_HOSTS": ["pay.example"], "SECRET_KEY": secrets.token_urlsafe(48), "GATEWAY_OUTBOUND_LOOPBACK": False,
    "GATEWAY_VAULT_KEYSET": "{}", "GATEWAY_STUB_ACQUIRER": "", "GATEWAY_TOTP": "required",
    "GATEWAY_SESSION_IDLE_MINUTES": 15, "GATEWAY_SESSION_HOURS": 12,
}  # fmt: skip


def found(**changed: Any) -> list[str]:
    with override_settings(**(SAFE | changed)):
        return [str(fault.id) for fault in run_checks() if str(fault.id).startswith("tollhouse.E")]


def test_safe_settings_are_taken() -> None:
    assert found() == []


def test_a_random_key_is_taken() -> None:
    for hexadecimal in (secrets.token_hex(20) for _ in range(20)):
        assert found(SECRET_KEY=hexadecimal) == [], hexadecimal


@pytest.mark.parametrize(
    "changed, fault",
    [
        ({"GATEWAY_TOTP": "optional"}, "tollhouse.E022"),
        ({"GATEWAY_SESSION_IDLE_MINUTES": 16}, "tollhouse.E023"),
        ({"GATEWAY_SESSION_IDLE_MINUTES": 100_000}, "tollhouse.E023"),
        ({"GATEWAY_SESSION_IDLE_MINUTES": 0}, "tollhouse.E023"),
        ({"GATEWAY_SESSION_HOURS": 25}, "tollhouse.E024"),
        ({"GATEWAY_UNUSED_ACCOUNT_DAYS": 0}, "tollhouse.E027"),
        ({"GATEWAY_UNUSED_ACCOUNT_DAYS": 91}, "tollhouse.E027"),
        ({"GATEWAY_PASSWORD_CHECKS_PER_MINUTE": 0}, "tollhouse.E030"),
        ({"GATEWAY_STUB_ACQUIRER": "127.0.0.1:7000"}, "tollhouse.E021"),
        ({"SECRET_KEY": "a" * 40}, "tollhouse.E012"),
        ({"SECRET_KEY": "x" * 39}, "tollhouse.E012"),
        ({"SECRET_KEY": "abcdefghijklmnopqrst" * 2}, "tollhouse.E012"),
        ({"SECRET_KEY": "django-insecure-" + secrets.token_urlsafe(48)}, "tollhouse.E012"),
        (
            {
                "GATEWAY_OIDC_ISSUER": "http://id.example",
                "GATEWAY_OIDC_CLIENT_ID": "x",
                "GATEWAY_OIDC_CLIENT_SECRET": "y",
            },
            "tollhouse.E025",
        ),
        ({"GATEWAY_OIDC_ISSUER": "https://id.example"}, "tollhouse.E026"),
    ],
)
def test_what_is_less_safe_is_refused(changed: dict[str, Any], fault: str) -> None:
    assert found(**changed) == [fault]


@pytest.mark.processes
def test_live_is_safe_by_default(tmp_path: Path) -> None:
    """Nothing has to be set for it but what nobody else can know."""
    code = (
        "from config import settings as s; print(s.GATEWAY_TOTP, s.GATEWAY_SESSION_IDLE_MINUTES, s.AXES_FAILURE_LIMIT,"
        " s.AXES_COOLOFF_TIME, s.ACCOUNT_REAUTHENTICATION_TIMEOUT, s.GATEWAY_UNUSED_ACCOUNT_DAYS,"
        " s.SESSION_COOKIE_NAME, s.CSRF_COOKIE_NAME, s.LANGUAGE_COOKIE_NAME, s.MESSAGES_COOKIE_NAME)"
    )
    bare = {name: text for name, text in os.environ.items() if not name.startswith(("GATEWAY_", "DJANGO_", "DATABASE"))}
    live = bare | {
        "GATEWAY_ENVIRONMENT": "live",
        "DJANGO_SECRET_KEY": "x",
        "DATABASE_URL": "postgresql://x@127.0.0.1/x",
    }
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=live, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "required",
        "15",
        "10",
        "0:30:00",
        "300",
        "90",
        "__Host-sessionid",
        "__Host-csrftoken",
        "__Host-language",
        "__Host-messages",
    ]


@pytest.mark.processes
@pytest.mark.parametrize("name", ["DATABASE_URL", "GATEWAY_STANDBY_URL"])
def test_a_mistyped_address_of_a_database_is_named_and_its_password_is_not_shown(name: str) -> None:
    address = "postgresql://x@127.0.0.1/x"
    settings = {"DJANGO_SECRET_KEY": "x", "DATABASE_URL": address, name: "postgresql//user:geheim@host:5432/x"}
    done = subprocess.run(
        [sys.executable, "-c", "from config import settings"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"{name} is no address" in done.stderr
    assert "geheim" not in done.stderr + done.stdout

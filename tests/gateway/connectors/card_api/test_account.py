"""What an account may be. docs/connectors/card-api.md, An account."""

from __future__ import annotations

import pytest

from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.card_api.account import CARD_API_SETTINGS, parse_card_api_setup
from gateway.connectors.card_api.connector import CARD_API
from gateway.connectors.port import ConnectorAccount
from gateway.core.secret import Secret
from tests.support.card_api import KEY


def account(key: str = KEY, **settings: str) -> ConnectorAccount:
    return ConnectorAccount(merchant="acct_1", settings=settings, secrets={"api_key": Secret(key)} if key else {})


def test_without_settings_it_is_the_whole_api_over_tls() -> None:
    setup = parse_card_api_setup(account())
    assert (setup.url, setup.full, setup.multicapture) == ("https://api.stripe.com", True, False)
    assert parse_card_api_setup(account(url="https://api.example.com/")).url == "https://api.example.com"


@pytest.mark.parametrize("host", ["127.0.0.1:8420", "localhost:8420", "[::1]:8420"])
def test_plain_http_is_for_this_machine_itself_in_test_alone(host: str, request: pytest.FixtureRequest) -> None:
    assert parse_card_api_setup(account(url=f"http://{host}")).url == f"http://{host}"
    request.getfixturevalue("live")
    with pytest.raises(AccountSettingError, match="url must begin with https"):
        parse_card_api_setup(account(url=f"http://{host}"))


def test_live_refuses_the_core_profile(live: None) -> None:
    with pytest.raises(AccountSettingError, match="profile must be full"):
        parse_card_api_setup(account(profile="core"))


def test_what_cannot_work_is_refused_when_the_account_is_saved(request: pytest.FixtureRequest) -> None:
    """An account that is taken and then refuses every payment is found by shoppers."""
    assert CARD_API.faults_of({"profile": "core", "url": "http://127.0.0.1:8420"}) == ()
    assert [name for name, _ in CARD_API.faults_of({"url": "http://api.example.com"})] == ["url"]
    request.getfixturevalue("live")
    assert [name for name, _ in CARD_API.faults_of({"url": "http://127.0.0.1:8420"})] == ["url"]
    assert [name for name, _ in CARD_API.faults_of({"profile": "core"})] == ["profile"]
    assert CARD_API.faults_of({}) == ()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"url": "http://api.example.com"}, "must begin with https"),
        ({"url": "http://127.0.0.1.example.com"}, "must begin with https"),
        ({"url": "http://user@127.0.0.1"}, "url is not"),
        ({"url": "ftp://api.example.com"}, "url is not"),
        ({"profile": "half"}, "profile is not"),
        ({"api_version": "2024-06-20\r\nX-Other: 1"}, "api_version is not"),
        ({"key": ""}, "api_key is missing"),
        ({"key": "pk_test_public"}, "api_key is not"),
        ({"key": "sk_test_a\r\nX: 1"}, "api_key is not"),
    ],
)
def test_what_cannot_be_used_is_told_without_any_secret(settings: dict[str, str], why: str) -> None:
    with pytest.raises(AccountSettingError, match=why) as caught:
        parse_card_api_setup(account(**settings))
    assert not settings.get("key") or settings["key"] not in str(caught.value)


def test_multicapture_needs_the_whole_api() -> None:
    assert parse_card_api_setup(account(multicapture="if_available")).multicapture
    assert not parse_card_api_setup(account(multicapture="if_available", profile="core")).multicapture


def test_every_secret_is_marked_as_one() -> None:
    assert {one.name for one in CARD_API_SETTINGS if one.secret} == {"api_key", "webhook_secrets"}

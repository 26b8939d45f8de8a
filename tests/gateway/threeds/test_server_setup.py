"""In live, 3-D Secure needs a 3DS server: what cannot be saved, what does not start, what is declined.

Source: docs/decisions/0066.
"""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.test import Client

from gateway.access.permissions import Role
from gateway.models import AuditEntry, Authentication, Channel, ThreeDSecureConfiguration
from gateway.threeds.server_setup import open_threeds_server, set_server_secret
from gateway.vault.sealing import current_vault
from tests.support.card_api import account_at
from tests.support.card_host import card_api
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.threeds import FRICTIONLESS, NOT_ENROLLED, PASS, buy, fields

pytestmark = pytest.mark.django_db

SECRET = "0123456789abcdef0123456789abcdef"
SERVER = "https://threeds.example/api"
OWN_CARD = "4200001234567897"


@pytest.fixture(autouse=True)
def vault(db: None) -> None:
    """Made before the test turns live, where none is made by itself."""
    current_vault()


def configure(channel: Channel, folder: Path, section: dict[str, Any]) -> str:
    (folder / "secret").write_text(f"{SECRET}\n")
    (folder / "document.json").write_text(json.dumps({"threeDSecure": section}))
    out = StringIO()
    call_command("configure", "--entity", channel.entity_id, str(folder / "document.json"), stdout=out)
    return out.getvalue()


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("boss", Role.MANAGER, shop.merchant))


@pytest.fixture
def staff(shop: Shop) -> Client:
    return signed_in(person("staff", Role.PSP, shop.merchant.division.psp))


def test_a_document_cannot_switch_it_on_without_a_server(live: None, shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"threeDSecure\.enabled: cannot be on in the live environment"):
        configure(shop.channel, tmp_path, {"enabled": True})
    with pytest.raises(CommandError, match=r"threeDSecure\.enabled"):
        configure(shop.channel, tmp_path, {"enabled": True, "server": {"url": SERVER}})
    shop.channel.refresh_from_db()
    assert not shop.channel.three_d_secure


def test_a_document_with_a_server_is_taken_and_the_secret_is_sealed(live: None, shop: Shop, tmp_path: Path) -> None:
    section = {"enabled": True, "server": {"url": f"{SERVER}/", "secretFile": "secret"}}
    assert configure(shop.channel, tmp_path, section) == "Changed: threeDSecure.\n"
    row = ThreeDSecureConfiguration.objects.get()
    found = open_threeds_server(row)
    assert found is not None
    assert (found.url, found.secret.reveal()) == (SERVER, SECRET)
    assert places_of(SECRET) == set()
    assert "serverSecretSet" in AuditEntry.objects.get(action="configure").after["threeDSecure"]
    with pytest.raises(CommandError, match=r"threeDSecure\.enabled"):
        configure(shop.channel, tmp_path, {"server": {"url": ""}})
    assert configure(shop.channel, tmp_path, {"enabled": False, "server": {"url": ""}}) == "Changed: threeDSecure.\n"


@pytest.mark.parametrize(
    ("server", "fault"),
    [
        ({"url": "http://threeds.example"}, "must start with https://"),
        ({"url": "https://threeds.example/?a=1"}, "no query"),
        ({"url": "ftp://threeds.example"}, "only http and https"),
        ({"url": SERVER, "secretFile": "nowhere"}, "cannot be read as text"),
        ({"url": SERVER, "secretFile": "short"}, "must have 32 to 256"),
    ],
)
def test_a_server_that_cannot_be_called_is_refused(
    live: None, shop: Shop, tmp_path: Path, server: dict[str, str], fault: str
) -> None:
    (tmp_path / "short").write_text("short-and-private")
    with pytest.raises(CommandError, match=fault) as raised:
        configure(shop.channel, tmp_path, {"server": server})
    assert "short-and-private" not in str(raised.value)


def channel_form(shop: Shop) -> dict[str, str]:
    return {
        "name": "Shop: main",
        "merchant": str(shop.merchant.pk),
        "active": "on",
        "position": "100",
        "parameters": "normal",
        "agreement_ids": "none",
        "limits.*.mode": "none",
        "three_d_secure": "on",
        "authorization_kind": "ESTIMATED",
        "authorization_days": "",
        "expired_captures": "refuse",
        "partial_approvals": "accept",
        "retry_timing": "table",
        "reversal_hours": "24",
    }


def test_the_channels_page_cannot_switch_it_on_without_a_server(live: None, boss: Client, shop: Shop) -> None:
    path = f"/admin/gateway/channel/{shop.channel.pk}/change/"
    page = boss.post(path, channel_form(shop), secure=True)
    assert page.status_code == 200
    assert "only with a 3DS server" in page.content.decode()
    shop.channel.refresh_from_db()
    assert not shop.channel.three_d_secure
    served(shop.channel)
    assert boss.post(path, channel_form(shop), secure=True).status_code == 302
    shop.channel.refresh_from_db()
    assert shop.channel.three_d_secure


def served(channel: Channel) -> ThreeDSecureConfiguration:
    row = ThreeDSecureConfiguration(channel=channel, server_url=SERVER)
    set_server_secret(row, SECRET)
    row.save()
    return row


def threeds_form(shop: Shop, **changes: str) -> dict[str, str]:
    return {
        "channel": str(shop.channel.pk),
        "networks": "",
        "on_unavailable": "proceed",
        "on_attempt": "proceed",
        "on_soft_decline": "decline",
        "challenge_indicator": "",
        "challenge_minutes": "10",
    } | changes


def test_the_3ds_page_cannot_take_the_server_away(live: None, staff: Client, shop: Shop) -> None:
    served(shop.channel)
    Channel.objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    path = f"/admin/gateway/threedsecureconfiguration/{shop.channel.pk}/change/"
    page = staff.post(path, threeds_form(shop, server_url=""), secure=True)
    assert "only with a 3DS server" in page.content.decode()
    assert SECRET not in staff.get(path, secure=True).content.decode()
    other = "https://other.example"
    assert staff.post(path, threeds_form(shop, server_url=other), secure=True).status_code == 302
    row = ThreeDSecureConfiguration.objects.get()
    found = open_threeds_server(row)
    assert found is not None
    assert (found.url, found.secret.reveal()) == (other, SECRET)
    new = SECRET[::-1]
    assert staff.post(path, threeds_form(shop, server_url=other, server_secret=new), secure=True).status_code == 302
    row.refresh_from_db()
    found = open_threeds_server(row)
    assert found is not None
    assert found.secret.reveal() == new
    assert places_of(new) == set()
    assert AuditEntry.objects.filter(action="set secrets").count() == 1


def test_a_merchants_manager_cannot_choose_where_card_numbers_are_sent(boss: Client, shop: Shop) -> None:
    """An external 3DS server gets whole numbers: PSP staff name it, as they name acquirers. The rest of the page is the
    merchant's."""
    path = f"/admin/gateway/threedsecureconfiguration/{shop.channel.pk}/change/"
    own = {"server_url": "https://own.example", "server_secret": SECRET[::-1]}
    assert boss.post("/admin/gateway/threedsecureconfiguration/add/", threeds_form(shop, **own)).status_code == 302
    row = ThreeDSecureConfiguration.objects.get()
    assert (row.server_url, row.server_secret_sealed) == ("", None)
    row.delete()
    served(shop.channel)
    page = boss.get(path).content.decode()
    assert SERVER in page
    assert 'name="server_' not in page
    assert boss.post(path, threeds_form(shop, **own, challenge_minutes="7")).status_code == 302
    row = ThreeDSecureConfiguration.objects.get()
    found = open_threeds_server(row)
    assert found is not None
    assert (row.challenge_minutes, found.url, found.secret.reveal()) == (7, SERVER, SECRET)


def test_who_may_only_look_sees_the_server_and_no_field_for_its_secret(shop: Shop) -> None:
    served(shop.channel)
    looker = signed_in(person("looker", Role.AUDITOR, shop.merchant))
    page = looker.get(f"/admin/gateway/threedsecureconfiguration/{shop.channel.pk}/change/")
    assert page.status_code == 200
    assert SERVER in page.content.decode()
    assert "server_secret" not in page.content.decode()


def test_the_channels_page_says_that_its_payments_are_declined(live: None, boss: Client, shop: Shop) -> None:
    path = f"/admin/gateway/channel/{shop.channel.pk}/change/"
    assert "100.390.106" not in boss.get(path, secure=True).content.decode()
    Channel.objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    assert "100.390.106" in boss.get(path, secure=True).content.decode()
    served(shop.channel)
    assert "100.390.106" not in boss.get(path, secure=True).content.decode()


def faults_of_start() -> list[str]:
    return [fault.msg for fault in run_checks() if fault.id == "tollhouse.E029"]


def test_live_does_not_start_with_such_a_channel(live: None, shop: Shop) -> None:
    assert faults_of_start() == []
    channel = shop.open_channel("authenticating", three_d_secure=True)
    (fault,) = faults_of_start()
    assert channel.entity_id in fault
    served(channel)
    assert faults_of_start() == []


def test_the_test_environment_starts_with_the_simulated_directory(shop: Shop) -> None:
    shop.open_channel("authenticating", three_d_secure=True)
    assert faults_of_start() == []


@pytest.mark.parametrize("policy", ["proceed", "decline"])
@pytest.mark.parametrize("networks", [[], ["mastercard"]])
def test_in_live_every_payment_of_such_a_channel_is_declined(
    live: None, shop: Shop, policy: str, networks: list[str]
) -> None:
    """Never sent to the acquirer unauthenticated, whatever the channel's policy says."""
    channel = shop.open_channel("authenticating", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_unavailable=policy, networks=networks)
    api = shop.api_of(channel).over_tls()
    with card_api() as host:
        account_at(channel, host.url)
        answer = buy(api, OWN_CARD)
    assert (answer.status, answer.code) == (400, "100.390.106")
    assert Authentication.objects.get().code == "100.390.106"
    assert host.calls == []


def test_an_authentication_alone_is_refused_too(live: None, shop: Shop) -> None:
    channel = shop.open_channel("authenticating", three_d_secure=True)

    sent = {name: value for name, value in fields(OWN_CARD).items() if name != "paymentType"}
    answer = shop.api_of(channel).over_tls().post("/v1/threeDSecure", sent)
    assert answer.code == "000.400.104"


@pytest.mark.parametrize("card", [PASS, FRICTIONLESS, NOT_ENROLLED])
def test_the_test_environment_goes_on_as_before(shop: Shop, card: str) -> None:
    api = shop.api_of(shop.open_channel("authenticating", three_d_secure=True))
    assert buy(api, card).status == 200

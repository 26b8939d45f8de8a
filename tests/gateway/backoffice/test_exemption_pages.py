"""Exemption rules in the back office: the channel's form, the trial on past payments, the payment's page."""

from __future__ import annotations

import csv
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from gateway.access import permissions
from gateway.background import queue
from gateway.backoffice.entities import exemption_trial
from gateway.backoffice.payments.exemption_words import EXEMPTION_NAMES, STAGE_NAMES, STAGE_REASONS
from gateway.core import clock
from gateway.models import (
    BackgroundWork,
    Channel,
    ExemptionCount,
    ExemptionRequest,
    Grant,
    Payment,
    Role,
    ThreeDSecureConfiguration,
)
from gateway.threeds.exemption_rules import Exemption, ExemptionStage
from tests.gateway.backoffice.test_set_up import channel_form
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.threeds import FRICTIONLESS, PASS, Shopper, buy

pytestmark = pytest.mark.django_db
TRY = "/admin/gateway/channel/exemptions/"


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("boss", Role.MANAGER, shop.merchant))


def change(client: Client, shop: Shop, **changes: str) -> Any:
    return client.post(f"/admin/gateway/channel/{shop.channel.pk}/change/", channel_form(shop, **changes))


# --- the channel's form ---------------------------------------------------------------------------------------------


def test_a_clerk_sets_the_rules_and_reads_them_back(boss: Client, shop: Shop) -> None:
    answer = change(
        boss,
        shop,
        **{
            "exemptions.lowValue": "true",
            "exemptions.fraudRate": "0.05",
            "exemptions.maxScore": "20",
            "exemptions.trusted": "true",
            "exemptions.corporateBins": "400013, 520013",
            "exemptions.askedAt": "better",
            "exemptions.rates": "GBP=1.17, CHF=1.05",
        },
    )
    assert answer.status_code == 302, answer.content.decode()
    assert Channel.objects.get(pk=shop.channel.pk).exemptions == {
        "lowValue": True,
        "fraudRate": "0.05",
        "maxScore": 20,
        "trusted": True,
        "corporateBins": ["400013", "520013"],
        "askedAt": "better",
        "rates": {"GBP": "1.17", "CHF": "1.05"},
    }
    page = boss.get(f"/admin/gateway/channel/{shop.channel.pk}/change/").content.decode()
    assert "GBP=1.17, CHF=1.05" in page
    assert "400013, 520013" in page
    assert f"{TRY}?channel={shop.channel.pk.hex}" in page
    assert change(boss, shop).status_code == 302
    assert Channel.objects.get(pk=shop.channel.pk).exemptions == {}


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"exemptions.fraudRate": "0.14"}, "must be at most 0.13"),
        ({"exemptions.fraudRate": "5 bp"}, "a percentage as text"),
        ({"exemptions.maxScore": "high"}, "maxScore"),
        ({"exemptions.corporateBins": "4000"}, "6 to 11 leading digits"),
        ({"exemptions.askedAt": "nowhere"}, "must be one of"),
        ({"exemptions.rates": "EUR=1"}, "other than EUR"),
        ({"exemptions.rates": "GBP=0.00"}, "the EUR for one unit"),
        ({"exemptions.rates": "GBP"}, "the EUR for one unit"),
    ],
)
def test_what_no_rule_can_be_is_told_beside_the_input(
    boss: Client, shop: Shop, changes: dict[str, str], words: str
) -> None:
    page = change(boss, shop, **changes)
    assert page.status_code == 200
    assert words in page.content.decode()
    assert Channel.objects.get(pk=shop.channel.pk).exemptions == {}


def test_the_form_warns_of_soft_declines_that_no_challenge_follows(boss: Client, shop: Shop) -> None:
    rules = {"lowValue": True, "askedAt": "authorization"}
    channel = shop.open_channel("exempting", three_d_secure=True, exemptions=rules)
    path, words = f"/admin/gateway/channel/{channel.pk}/change/", "no challenge follows a soft decline"
    assert words in boss.get(path).content.decode()
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    assert words not in boss.get(path).content.decode()


# --- the trial ------------------------------------------------------------------------------------------------------


@pytest.fixture
def traded(shop: Shop) -> Channel:
    """Seven payments with a challenge of 20.00 and one of 92.00 without."""
    channel = shop.open_channel("traded", three_d_secure=True)
    api = shop.api_of(channel)
    for _ in range(7):
        Shopper.of(buy(api, PASS, amount="20.00")).enter()
    assert buy(api, FRICTIONLESS).code == "000.100.110"
    assert buy(api, FRICTIONLESS, amount="5.00", **{"threeDSecure.challengeIndicator": "02"}).status == 200
    return channel


def try_rules(client: Client, channel: Channel, **rules: str) -> BackgroundWork:
    day = clock.real_now().date()
    given = {"channel": str(channel.pk), "since": str(day - timedelta(days=1)), "until": str(day), "all": "on"}
    answer = client.post(TRY, given | {f"exemptions.{name}": value for name, value in rules.items()})
    assert answer.status_code == 302, answer.content.decode()
    queue.run_background_work()
    row = BackgroundWork.objects.order_by("-asked_at")[0]
    assert row.state == BackgroundWork.State.DONE, row.message
    return row


def test_a_trial_says_what_would_have_been_asked_and_what_it_would_have_cost(
    boss: Client, traded: Channel, tmp_path: Path
) -> None:
    """Five, then a challenge that begins the count anew, then one: the limits hold in a trial too."""
    before = list(Payment.objects.order_by("id").values())
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        work = try_rules(boss, traded, lowValue="true")
        path = queue.find_result_file(work)
        assert path is not None
        lines = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    (row,) = exemption_trial.summarize_exemptions(work.cursor)
    assert (row["exemption"], row["count"], row["challenges"]) == (Exemption.LOW_VALUE, 6, 6)
    assert (row["amount"], row["carried"]) == (Decimal(120), Decimal(120))
    assert [(line["exemption"], line["was challenged"], line["liability"]) for line in lines] == [
        ("LOW_VALUE", "yes", "issuer")
    ] * 6
    page = boss.get(work.parameters["list"]).content.decode()
    assert "6 of 9 payments" in page
    assert "At most 6 challenges fewer." in page
    assert "120.00 EUR" in page
    assert list(Payment.objects.order_by("id").values()) == before
    assert not ExemptionRequest.objects.exists()
    assert not ExemptionCount.objects.filter(payments__gt=0).exists()


def test_a_trial_goes_on_where_its_slice_ended(
    boss: Client, traded: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cards' counts go along, and a period that is too long says so."""
    monkeypatch.setattr(exemption_trial, "EXEMPTION_TRIAL_SLICE_PAYMENTS", 2)
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        (row,) = exemption_trial.summarize_exemptions(try_rules(boss, traded, lowValue="true").cursor)
        assert row["count"] == 6
        monkeypatch.setattr(exemption_trial, "MAX_EXEMPTION_TRIAL_PAYMENTS", 3)
        work = try_rules(boss, traded, lowValue="true")
    assert work.cursor["seen"] == 3
    assert "These are the first 3 payments of the period." in boss.get(work.parameters["list"]).content.decode()


def test_a_trial_compares_the_six_digits_that_payments_show(boss: Client, traded: Channel, tmp_path: Path) -> None:
    """Longer ones would tell the number of the card: right and wrong guesses read alike."""
    words = "8 payments may fit leading digits that are longer than six."
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        six = try_rules(boss, traded, corporateBins="420000")
        right = try_rules(boss, traded, corporateBins="42000000")
        wrong = try_rules(boss, traded, corporateBins="42000001")
        elsewhere = try_rules(boss, traded, corporateBins="43000000")
    (row,) = exemption_trial.summarize_exemptions(six.cursor)
    assert (row["exemption"], row["count"]) == (Exemption.SECURE_CORPORATE, 8)
    assert words not in boss.get(six.parameters["list"]).content.decode()
    for work in (right, wrong):
        assert exemption_trial.summarize_exemptions(work.cursor) == []
        assert words in boss.get(work.parameters["list"]).content.decode()
    assert elsewhere.cursor["undecided"] == 0


def test_a_trial_wants_a_rule(boss: Client, traded: Channel) -> None:
    form = {"channel": str(traded.pk), "since": "2026-01-01", "until": "2026-01-02"}
    page = boss.post(TRY, form)
    assert page.status_code == 200
    assert "Choose one exemption at least" in page.content.decode()
    page = boss.post(TRY, form | {"exemptions.fraudRate": "0.2"})
    assert "must be at most 0.13" in page.content.decode()
    assert not BackgroundWork.objects.exists()


def test_the_form_begins_with_the_channels_own_rules(boss: Client, traded: Channel) -> None:
    Channel.objects.filter(pk=traded.pk).update(exemptions={"fraudRate": "0.0123"})
    page = boss.get(TRY, {"channel": traded.pk.hex}).content.decode()
    assert "0.0123" in page
    assert boss.get(TRY, {"channel": "x"}).status_code == 200


@pytest.mark.parametrize("path", [TRY, "/admin/gateway/routingrule/try/"])
def test_the_days_are_filled_in_in_every_language(boss: Client, path: str) -> None:
    """A date input of a browser takes ISO 8601 alone."""
    today = clock.real_now().date().isoformat()
    for language in ("en", "de", "fr"):
        assert f'value="{today}"' in boss.get(path, headers={"accept-language": language}).content.decode(), language


@pytest.mark.parametrize("path", [TRY, "/admin/gateway/routingrule/try/", "/admin/scheduling/job/retries/"])
@pytest.mark.parametrize(
    ("since", "until", "bound"),
    [("9999-12-01", "9999-12-31", "2099-12-31"), ("0001-01-01", "0001-01-02", "2000-01-01")],
)
def test_days_of_no_payment_are_refused(
    boss: Client, traded: Channel, path: str, since: str, until: str, bound: str
) -> None:
    """The day after the last one has no date: it was a 500."""
    form = {"channel": str(traded.pk), "since": since, "until": until, "exemptions.lowValue": "true"}
    answer = boss.post(path, form)
    assert answer.status_code == 200
    assert answer.content.decode().count(f"equal to {bound}.") == 2
    assert not BackgroundWork.objects.exists()


def test_a_channel_of_somebody_else_is_not_tried(boss: Client, stranger: Shop) -> None:
    page = boss.get(TRY, {"channel": stranger.channel.pk.hex}).content.decode()
    assert stranger.channel.name not in page
    form = {"channel": str(stranger.channel.pk), "since": "2026-01-01", "until": "2026-01-02"}
    assert boss.post(TRY, form | {"exemptions.lowValue": "true"}).status_code == 200
    assert not BackgroundWork.objects.exists()


def test_a_result_is_its_owners(boss: Client, shop: Shop, traded: Channel, tmp_path: Path) -> None:
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        work = try_rules(boss, traded, lowValue="true")
    other = signed_in(person("other", Role.MANAGER, shop.merchant))
    assert other.get(work.parameters["list"]).status_code == 404


def test_the_file_of_a_trial_wants_the_right_to_export(shop: Shop, traded: Channel, tmp_path: Path) -> None:
    """It lists payments: a developer sees them and exports none."""
    for role, status in ((Role.CLERK, 200), (Role.DEVELOPER, 403)):
        client = signed_in(person(role, role, shop.merchant))
        with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
            work = try_rules(client, traded, lowValue="true")
            fetched = client.get(f"/admin/gateway/backgroundwork/{work.pk}/file/")
            shown = client.get(f"/admin/gateway/backgroundwork/{work.pk}/change/").content.decode()
        assert fetched.status_code == status
        assert (f"/{work.pk}/file/" in shown) == (status == 200)
        result = client.get(work.parameters["list"]).content.decode()
        assert "6 of 9 payments" in result
        assert ("Each of them, as a file" in result) == (status == 200)


def test_the_file_of_a_trial_wants_the_right_on_its_own_channel(shop: Shop, traded: Channel, tmp_path: Path) -> None:
    user = person("both", Role.DEVELOPER, shop.merchant)
    Grant.objects.create(user=user, role=Role.CLERK, channel=shop.channel)
    client = signed_in(user)
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        work = try_rules(client, traded, lowValue="true")
        assert client.get(f"/admin/gateway/backgroundwork/{work.pk}/file/").status_code == 403


def test_the_form_shows_the_channels_rules_to_those_who_may_see_channels(
    boss: Client, traded: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    Channel.objects.filter(pk=traded.pk).update(exemptions={"fraudRate": "0.0123"})
    without = {**permissions.ROLES_BY_PERMISSION, "gateway.view_channel": frozenset[Role]()}
    monkeypatch.setattr(permissions, "ROLES_BY_PERMISSION", without)
    page = boss.get(TRY, {"channel": traded.pk.hex}).content.decode()
    assert traded.name in page
    assert "0.0123" not in page


# --- the payment's page ---------------------------------------------------------------------------------------------


def test_the_payments_page_says_what_was_asked_and_why(boss: Client, shop: Shop) -> None:
    rules = {"lowValue": True, "askedAt": "authorization"}
    channel = shop.open_channel("exempting", three_d_secure=True, exemptions=rules)
    ThreeDSecureConfiguration.objects.create(channel=channel)
    answer = buy(shop.api_of(channel), PASS, amount="12.00")
    page = boss.get(f"/admin/gateway/payment/{answer.id}/change/").content.decode()
    asked = "Exemption asked for by rule: low value, at the authorization, without 3-D Secure"
    assert page.index("12.00 EUR begun") < page.index(asked)
    assert "12.00 EUR of at most 30.00 EUR" in page
    assert "Payment 1 of 5 and 12.00 EUR of 100.00 EUR" in page
    assert "There because the channel is set so." in page
    assert "Liability for fraud: you, the payment was exempted from authentication." in page


def test_every_exemption_stage_and_reason_has_words() -> None:
    assert set(EXEMPTION_NAMES) == set(Exemption)
    assert set(STAGE_NAMES) == set(ExemptionStage)
    assert set(STAGE_REASONS) == {"set", "list", "no claim", "no challenge", "measured", "better", "explored"}

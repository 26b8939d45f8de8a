"""Acquirer accounts, routing rules, their dry run and the acquirers' health in the back office.

Source: health and statistics per connector); docs/routing.md.
"""

from __future__ import annotations

import csv
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.test import Client, override_settings

from gateway.background import queue
from gateway.connectors.accounts import open_connector_secrets
from gateway.connectors.iso8583.link_state import LinkState
from gateway.connectors.port import ConnectorSetting
from gateway.connectors.routing import list_acquirers
from gateway.core import clock
from gateway.models import (
    AcquirerAccount,
    AcquirerExchange,
    AuditEntry,
    BackgroundWork,
    OpenPayment,
    Payment,
    Psp,
    Role,
    RoutingRule,
    RoutingTarget,
)
from tests.support.acquirers import Acquirer, account, known
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
ACCOUNTS, RULES = "/admin/gateway/acquireraccount/", "/admin/gateway/routingrule/"
TYPED = "sk_4711typed"
HOST = ConnectorSetting(
    name="host", about="Where it listens.", pattern="[a-z.]+", allowed="a host name", required=True, place=True
)
KEY = ConnectorSetting(
    name="key", about="The key.", pattern="sk_[a-z0-9_]+", allowed="sk_…", required=True, secret=True
)


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Acquirer:
    found = Acquirer("cards", settings=(HOST, KEY))
    known(monkeypatch, found, Acquirer("second"))
    return found


@pytest.fixture
def staff(shop: Shop) -> Client:
    return signed_in(person("staff", Role.PSP, Psp.objects.get()))


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("boss", Role.MANAGER, shop.merchant))


def form(shop: Shop, **changes: str) -> dict[str, str]:
    return {
        "channel": str(shop.channel.pk),
        "connector": "cards",
        "name": "Cards",
        "acquirer_merchant_id": "M-1",
        "brands": "",
        "currencies": "",
        "active": "on",
        "setting_host": "a.example",
        "secret_key": TYPED,
    } | changes


# --- accounts -----------------------------------------------------------------------------------------------------


def test_the_processor_is_chosen_first_and_its_settings_are_the_fields(staff: Client, cards: Acquirer) -> None:
    """Fields made from Connector.settings."""
    page = staff.get(f"{ACCOUNTS}add/").content.decode()
    assert "?connector=cards" in page
    assert "?connector=simulator" not in page
    page = staff.get(f"{ACCOUNTS}add/?connector=cards").content.decode()
    assert 'name="setting_host"' in page
    assert 'type="password" name="secret_key"' in page
    assert "Where it listens." in page


def test_every_connectors_settings_can_be_typed(staff: Client) -> None:
    """Fields made from Connector.settings; words to choose from are chosen."""
    for name, connector in list_acquirers().items():
        page = staff.get(f"{ACCOUNTS}add/?connector={name}").content.decode()
        for one in connector.settings:
            assert f'name="{"secret_" if one.secret else "setting_"}{one.name}"' in page, (name, one.name)
    page = staff.get(f"{ACCOUNTS}add/?connector=iso8583").content.decode()
    assert re.search(r'<select name="setting_sign_on".*?<option value="on" selected', page, re.DOTALL)
    assert re.search('<textarea name="setting_tls_ca"', page)
    assert re.search('<textarea name="secret_tls_key"', page)


def test_a_key_in_many_lines_is_typed_and_what_settings_are_together_is_told_beside_one(
    staff: Client, shop: Shop
) -> None:
    """A private key keeps its lines, and is not shown again beside a fault."""
    key = "-----BEGIN PRIVATE KEY-----\r\nAA==\r\n-----END PRIVATE KEY-----\r\n"
    values = {
        "channel": str(shop.channel.pk),
        "connector": "iso8583",
        "name": "Host",
        "acquirer_merchant_id": "M-1",
        "active": "on",
        "setting_host": "bank.example",
        "setting_port": "8583",
        "setting_terminal": "TERM0001",
        "secret_tls_key": key,
    }
    wrong = values | {"setting_port": "70000"}
    page = staff.post(f"{ACCOUNTS}add/?connector=iso8583", wrong).content.decode()
    assert "must be 1 to 65535" in page
    assert "PRIVATE KEY-----" not in page
    answer = staff.post(f"{ACCOUNTS}add/?connector=iso8583", values)
    assert answer.status_code == 302, answer.content.decode()
    kept = open_connector_secrets(AcquirerAccount.objects.get())["tls_key"].reveal()
    assert kept == key.replace("\r\n", "\n")


def test_an_account_is_made_and_its_secret_is_sealed_and_never_shown(
    staff: Client, shop: Shop, cards: Acquirer
) -> None:
    """Secrets write-only."""
    answer = staff.post(f"{ACCOUNTS}add/?connector=cards", form(shop))
    assert answer.status_code == 302, answer.content.decode()
    row = AcquirerAccount.objects.get()
    assert (row.settings, list(row.secrets_set)) == ({"host": "a.example"}, ["key"])
    assert not places_of(TYPED)
    page = staff.get(f"{ACCOUNTS}{row.pk}/change/").content.decode()
    assert TYPED not in page
    assert "leave empty to keep it" in page
    sealed = bytes(row.secrets_sealed or b"")
    assert (
        staff.post(f"{ACCOUNTS}{row.pk}/change/", form(shop, secret_key="", setting_host="b.example")).status_code
        == 302
    )
    row.refresh_from_db()
    assert (row.settings["host"], bytes(row.secrets_sealed or b"")) == ("b.example", sealed)
    staff.post(f"{ACCOUNTS}{row.pk}/change/", form(shop, secret_key="sk_other"))
    row.refresh_from_db()
    assert bytes(row.secrets_sealed or b"") != sealed
    assert [one.after for one in AuditEntry.objects.filter(action="set secrets")] == [{"secrets": ["key"]}] * 2
    shop.api.pay(testMode="EXTERNAL")
    assert cards.requests[-1].account.secrets["key"].reveal() == "sk_other"
    # The last form's, as everything of a form is.
    assert cards.requests[-1].account.settings["host"] == "a.example"


@pytest.mark.django_db(transaction=True)
def test_of_two_that_add_the_same_account_at_once_one_is_told_that_it_is_there(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Payments name their account by channel, connector and id; twins would share one name."""
    known(monkeypatch, Acquirer("cards", settings=(HOST, KEY)))
    both = [signed_in(person(name, Role.PSP, Psp.objects.get())) for name in ("one", "two")]
    answers = at_once(*[lambda by=by: by.post(f"{ACCOUNTS}add/?connector=cards", form(committed)) for by in both])
    assert sorted(answer.status_code for answer in answers) == [200, 302]
    [told] = [answer.content.decode() for answer in answers if answer.status_code == 200]
    assert "There is such an account already; change that one." in told
    assert AcquirerAccount.objects.count() == 1


def test_the_database_keeps_no_twin(shop: Shop) -> None:
    account(shop.channel, "stub", "M-1")
    with pytest.raises(IntegrityError), transaction.atomic():
        account(shop.channel, "stub", "M-1")


def test_an_account_stays_where_its_undecided_payments_are(staff: Client, shop: Shop, cards: Acquirer) -> None:
    """Another host knows nothing of a payment in doubt. A key may be rotated meanwhile."""
    staff.post(f"{ACCOUNTS}add/?connector=cards", form(shop))
    row = AcquirerAccount.objects.get()
    cards.behaviour = "silent after"
    shop.api.pay(testMode="EXTERNAL")
    page = staff.post(
        f"{ACCOUNTS}{row.pk}/change/", form(shop, setting_host="b.example", secret_key="")
    ).content.decode()
    assert "1 payments of this account have no answer yet" in page
    assert "Another place is another account." in page
    row.refresh_from_db()
    assert row.settings == {"host": "a.example"}
    sealed = bytes(row.secrets_sealed or b"")
    assert staff.post(f"{ACCOUNTS}{row.pk}/change/", form(shop, secret_key="sk_other")).status_code == 302
    row.refresh_from_db()
    assert bytes(row.secrets_sealed or b"") != sealed
    OpenPayment.objects.all().delete()
    assert staff.post(f"{ACCOUNTS}{row.pk}/change/", form(shop, setting_host="b.example")).status_code == 302


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"setting_host": "UPPER"}, "must be a host name"),
        ({"setting_host": ""}, "is required: Where it listens."),
        ({"secret_key": "no key"}, "must be sk_"),
        ({"secret_key": ""}, "is required: The key."),
        ({"brands": "VIZA"}, "did you mean VISA?"),
        ({"currencies": "EUX"}, "ISO 4217"),
    ],
)
def test_an_accounts_page_refuses_what_the_command_refuses(
    staff: Client, shop: Shop, cards: Acquirer, changes: dict[str, str], words: str
) -> None:
    """docs/configuration.md."""
    page = staff.post(f"{ACCOUNTS}add/?connector=cards", form(shop, **changes)).content.decode()
    assert words in page
    assert "no key" not in page
    assert TYPED not in page
    assert not AcquirerAccount.objects.exists()


def test_the_same_account_is_not_made_twice(staff: Client, shop: Shop, cards: Acquirer) -> None:
    """Payments name their account by connector and id."""
    assert staff.post(f"{ACCOUNTS}add/?connector=cards", form(shop)).status_code == 302
    assert (
        "There is such an account already" in staff.post(f"{ACCOUNTS}add/?connector=cards", form(shop)).content.decode()
    )


def test_whoever_changes_an_account_has_shown_who_they_are(shop: Shop, cards: Acquirer) -> None:
    """Re-authentication like tokens."""
    row = account(shop.channel, "cards")
    user = person("staff", Role.PSP, Psp.objects.get())
    stale = signed_in(user, fresh=False)
    for address in (f"{ACCOUNTS}add/?connector=cards", f"{ACCOUNTS}{row.pk}/change/"):
        assert "/admin/again" in stale.get(address)["Location"]
        assert "/admin/again" in stale.post(address, form(shop))["Location"]
    assert AcquirerAccount.objects.count() == 1


def test_a_manager_looks_and_changes_nothing(boss: Client, shop: Shop, cards: Acquirer) -> None:
    """Rights: accounts are the PSP's to change."""
    row = account(
        shop.channel, "cards", settings={"host": "a.example"}, secrets_set={"key": "2026-01-02T03:04:05+00:00"}
    )
    page = boss.get(f"{ACCOUNTS}{row.pk}/change/").content.decode()
    assert "a.example" in page
    assert "2026-01-02 03:04" in page
    assert 'name="setting_host"' not in page
    assert boss.post(f"{ACCOUNTS}{row.pk}/change/", form(shop)).status_code == 403
    assert boss.get(f"{ACCOUNTS}add/?connector=cards").status_code == 403


# --- rules --------------------------------------------------------------------------------------------------------


def rule_form(shop: Shop, *targets: tuple[AcquirerAccount, int], **changes: Any) -> dict[str, Any]:
    found = {
        "channel": str(shop.channel.pk),
        "name": "Euro",
        "position": "1",
        "active": "on",
        "brands": "VISA",
        "bins": "420000-429999\n510000",
        "currencies": "EUR",
        "amount_from": "1",
        "amount_to": "500",
        "amount_currency": "EUR",
        "countries": "DE,AT",
        "payment_types": ["DB", "PA"],
        "targets-TOTAL_FORMS": str(len(targets)),
        "targets-INITIAL_FORMS": "0",
        "targets-MIN_NUM_FORMS": "0",
        "targets-MAX_NUM_FORMS": "20",
    }
    for place, (one, weight) in enumerate(targets):
        found |= {
            f"targets-{place}-account": str(one.pk),
            f"targets-{place}-weight": str(weight),
            f"targets-{place}-position": str(place),
        }
    return found | changes


def test_a_rule_is_written_without_json_and_routes(boss: Client, shop: Shop, cards: Acquirer) -> None:
    """Per channel by brand, BIN range, currency, amount, country, type; weights."""
    first, second = account(shop.channel, "cards", settings={"host": "a"}), account(shop.channel, "second")
    answer = boss.post(f"{RULES}add/", rule_form(shop, (second, 3), (first, 0)))
    assert answer.status_code == 302, answer.content.decode()
    rule = RoutingRule.objects.get()
    assert rule.bins == ["420000-429999", "510000-510000"]
    assert rule.payment_types == ["DB", "PA"]
    paid = Payment.objects.get(pk=shop.api.pay(testMode="EXTERNAL", billing__country="DE").id)
    assert (paid.connector, paid.route["rule"]) == ("second", "Euro")
    paid = Payment.objects.get(pk=shop.api.pay(testMode="EXTERNAL", billing__country="FR").id)
    assert (paid.connector, "rule" in paid.route) == ("cards", False)
    page = boss.get(RULES).content.decode()
    assert "countries DE, AT" in page
    assert "after a decline" not in page
    page = boss.get(f"{RULES}{rule.pk}/change/").content.decode()
    assert "420000-429999" in page


def test_a_rule_is_about_the_cards_of_some_issuers(boss: Client, shop: Shop, cards: Acquirer) -> None:
    """By the table of BINs: country, kind and level."""
    first, second = account(shop.channel, "cards", settings={"host": "a"}), account(shop.channel, "second")
    facts = {"issuer_countries": "GB,FR", "card_types": ["CREDIT"], "card_levels": "CLASSIC"}
    answer = boss.post(f"{RULES}add/", rule_form(shop, (second, 1), countries="", **facts))
    assert answer.status_code == 302, answer.content.decode()
    rule = RoutingRule.objects.get()
    assert (rule.issuer_countries, rule.card_types, rule.card_levels) == (["GB", "FR"], ["CREDIT"], ["CLASSIC"])
    paid = [
        Payment.objects.get(pk=shop.api.pay(testMode="EXTERNAL", card__number=number).id) for number in BRITISH_AND_US
    ]
    assert [one.acquirer_merchant_id for one in paid] == [second.acquirer_merchant_id, first.acquirer_merchant_id]
    assert "issuer countries GB, FR; kinds of cards CREDIT; levels CLASSIC" in boss.get(RULES).content.decode()
    wrong = boss.post(f"{RULES}add/", rule_form(shop, (second, 1), name="Other", issuer_countries="de"))
    assert "two letters" in wrong.content.decode()


BRITISH_AND_US = ("4200000000000000", "4242424242424242")


def test_a_rule_says_to_how_many_accounts_a_declined_payment_goes_on(boss: Client, shop: Shop, cards: Acquirer) -> None:
    first, second = account(shop.channel, "cards", settings={"host": "a"}), account(shop.channel, "second")
    address = f"{RULES}add/"
    assert boss.post(address, rule_form(shop, (first, 1), (second, 0))).status_code == 302
    rule = RoutingRule.objects.get()
    assert rule.max_cascades == 0
    rule.delete()
    assert boss.post(address, rule_form(shop, (first, 1), (second, 0), max_cascades="2")).status_code == 302
    rule = RoutingRule.objects.get()
    assert rule.max_cascades == 2
    RoutingRule.objects.update(bins=[])
    bins = boss.get(f"{RULES}{rule.pk}/change/").context["adminform"].form["bins"].value()
    assert bins == "", "a rule without BINs can be saved as it is shown"
    assert "after a decline 2 more" in boss.get(RULES).content.decode()
    with pytest.raises(IntegrityError), transaction.atomic():
        RoutingRule.objects.update(max_cascades=3)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"max_cascades": "3"}, "3 is not one of the available choices"),
        ({"brands": "VIZA"}, "did you mean VISA?"),
        ({"bins": "4200"}, "6 to 11 leading digits"),
        ({"amount_currency": ""}, "is required with an amount"),
        ({"amount_to": "0.50"}, "must not be less"),
        ({"countries": "DEU"}, "2 characters"),
        ({"currencies": "EUX"}, "ISO 4217"),
        ({"targets-TOTAL_FORMS": "0"}, "Name one account at least."),
    ],
)
def test_a_rules_page_refuses_what_the_command_refuses(
    boss: Client, shop: Shop, changes: dict[str, str], words: str
) -> None:
    """docs/configuration.md."""
    page = boss.post(f"{RULES}add/", rule_form(shop, (account(shop.channel, "stub"), 1), **changes))
    assert words in page.content.decode()
    assert not RoutingRule.objects.exists()


def test_a_rule_names_accounts_of_its_own_channel_alone(boss: Client, shop: Shop, stranger: Shop) -> None:
    """Nobody sends payments to somebody else's account."""
    other = account(shop.open_channel(), "stub")
    theirs = account(stranger.channel, "stub")
    page = boss.post(f"{RULES}add/", rule_form(shop, (other, 1))).content.decode()
    assert "This is no account of the rule&#x27;s channel." in page
    page = boss.post(f"{RULES}add/", rule_form(shop, (theirs, 1))).content.decode()
    assert "Select a valid choice" in page
    assert not RoutingRule.objects.exists()


# --- the dry run --------------------------------------------------------------------------------------------------


def trial(client: Client, shop: Shop, **more: str) -> BackgroundWork:
    day = clock.real_now().date()
    given = {"channel": str(shop.channel.pk), "since": str(day - timedelta(days=1)), "until": str(day)} | more
    answer = client.post(f"{RULES}try/", given)
    assert answer.status_code == 302, answer.content.decode()
    queue.run_background_work()
    row = BackgroundWork.objects.order_by("-asked_at")[0]
    assert row.state == BackgroundWork.State.DONE, row.message
    return row


def test_past_payments_are_tried_and_nothing_changes(
    boss: Client, shop: Shop, cards: Acquirer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run over past payments in the back office."""
    first, second = account(shop.channel, "cards", settings={"host": "a"}), account(shop.channel, "second")
    for amount in ("10.00", "20.00", "700.00"):
        assert shop.api.pay(testMode="EXTERNAL", amount=amount).status == 200
    shop.api.pay(amount="1.00")
    rule = RoutingRule.objects.create(
        channel=shop.channel,
        name="Small ones",
        active=False,
        bins=["420000-420000"],
        amount_to=100,
        amount_currency="EUR",
    )
    RoutingTarget.objects.create(rule=rule, account=second)
    before = list(Payment.objects.order_by("id").values())
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        assert trial(boss, shop).cursor["changed"] == 0
        row = trial(boss, shop, drafts="on")
        assert (row.done, row.total, row.cursor["changed"]) == (3, 3, 2)
        path = queue.find_result_file(row)
        assert path is not None
        lines = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    assert [(line["took"], line["would take"], line["amount"]) for line in lines] == [
        ("cards at cards", "second at second", "10.00"),
        ("cards at cards", "second at second", "20.00"),
    ]
    page = boss.get(row.parameters["list"]).content.decode()
    assert "2 of 3 payments" in page
    assert "Small ones" in page
    assert "30.00 EUR" in page
    assert list(Payment.objects.order_by("id").values()) == before
    assert first.pk
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        assert trial(boss, shop, all="on").cursor["seen"] == 4
    somebody = signed_in(person("somebody", Role.MANAGER, shop.merchant))
    assert somebody.get(row.parameters["list"]).status_code == 404


def test_a_move_to_no_account_has_no_value(boss: Client, shop: Shop, cards: Acquirer, tmp_path: Any) -> None:
    """Nobody would have been asked: it costs nothing and nothing is approved."""
    own = account(shop.channel, "cards", settings={"host": "a"})
    assert shop.api.pay(testMode="EXTERNAL").status == 200
    AcquirerAccount.objects.filter(pk=own.pk).update(active=False)
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        nowhere = trial(boss, shop).cursor
        account(shop.channel, "second")
        elsewhere = trial(boss, shop).cursor
    assert (nowhere["changed"], nowhere.get("values")) == (1, None)
    assert (elsewhere["changed"], elsewhere["values"]["EUR"][0]) == (1, 1)


def test_a_dry_run_compares_the_six_digits_that_payments_show(
    boss: Client, shop: Shop, cards: Acquirer, tmp_path: Any
) -> None:
    """Longer ones would tell the number of the card: right and wrong guesses read alike."""
    account(shop.channel, "cards", settings={"host": "a"})
    assert shop.api.pay(testMode="EXTERNAL").status == 200
    rule = RoutingRule.objects.create(channel=shop.channel, name="Guess", active=False)
    RoutingTarget.objects.create(rule=rule, account=account(shop.channel, "second"))
    found = []
    for digits in ("42000000000-42000000000", "42000000001-42000000001", "43000000000-43000000000"):
        RoutingRule.objects.filter(pk=rule.pk).update(bins=[digits])
        with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
            row = trial(boss, shop, drafts="on")
        words = "1 payment may fit leading digits that are longer than six."
        found.append((row.cursor["changed"], words in boss.get(row.parameters["list"]).content.decode()))
    assert found == [(0, True), (0, True), (0, False)]


def test_a_channel_of_somebody_else_is_not_tried(boss: Client, stranger: Shop) -> None:
    """Rights by entity tree."""
    given = {"channel": str(stranger.channel.pk), "since": "2026-01-01", "until": "2026-01-02"}
    assert boss.post(f"{RULES}try/", given).status_code == 200
    assert boss.post(f"{RULES}try/", given | {"until": "2025-01-02"}).status_code == 200
    assert not BackgroundWork.objects.exists()


# --- health and the payment's page --------------------------------------------------------------------------------


def test_the_health_page_counts_own_accounts_and_tells_of_breakers_and_faults(
    boss: Client, shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Approval rate, latency, in doubt, breaker and last faults."""
    cache.clear()
    known(monkeypatch, down := Acquirer("down", "down"), up := Acquirer("up"), guard=True)
    link = LinkState(
        label="host.example:4711",
        merchant="at up",
        state="up",
        since=clock.real_now(),
        why="signed on",
        in_flight=0,
        strays={},
    )
    up.link_states = lambda: (link,)  # type: ignore[attr-defined]
    account(shop.channel, "down", name="Down there")
    account(shop.channel, "up", name="Up there")
    account(stranger.channel, "up", name="Not ours")
    with override_settings(GATEWAY_BREAKER_LEAST=2, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(3):
            assert shop.api.pay(testMode="EXTERNAL").status == 200
        down.behaviour = "silent"
    page = boss.get(f"{ACCOUNTS}health/").content.decode()
    assert "Down there" in page
    assert "Not ours" not in page
    assert "100.0 %" in page
    assert "open: left alone" in page
    assert "2 of 2 calls did not reach the acquirer" in page
    assert "no line" in page
    assert "host.example:4711" in page
    assert "signed on" in page
    assert signed_in(person("clerk", Role.CLERK, shop.merchant)).get(f"{ACCOUNTS}health/").status_code == 403


def test_faults_and_times_are_those_of_the_account_that_was_asked(
    boss: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health per account, of two at one processor as well; a payment that went on counts where it was."""
    cache.clear()
    known(monkeypatch, one := Acquirer("one"))
    fate = {"dead": "down", "well": "approves"}
    one.before = lambda: setattr(one, "behaviour", fate[one.requests[-1].account.merchant])
    for merchant in fate:
        account(shop.channel, "one", merchant, name=merchant)
    for _ in range(2):
        shop.api.pay(testMode="EXTERNAL")
    AcquirerExchange.objects.filter(received__has_key="unreachable").update(duration_ms=7_000)
    AcquirerExchange.objects.exclude(received__has_key="unreachable").update(duration_ms=3)
    shown = {own.name: own for own in boss.get(f"{ACCOUNTS}health/").context["accounts"]}
    dead, well = shown["dead"], shown["well"]
    assert (dead.left, dead.approved, dead.p95, [each["why"] for each in dead.faults]) == (2, 0, 7_000, ["no line"] * 2)
    assert (well.left, well.approved, well.p95, well.faults) == (0, 2, 3, [])


def test_a_payments_page_says_why_it_went_where_it_went(
    boss: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The choice and its reason shown on the payment's page and in the timeline."""
    known(monkeypatch, Acquirer("down", "down"), Acquirer("up"))
    rows = [
        account(shop.channel, "down", name="Down there"),
        account(shop.channel, "up", name="Up there"),
        account(shop.channel, "up", "dollars", name="Dollars", currencies=["USD"]),
    ]
    rule = RoutingRule.objects.create(channel=shop.channel, name="Everything")
    for row, weight in zip(rows, (1, 0, 1), strict=True):
        RoutingTarget.objects.create(rule=rule, account=row, weight=weight)
    paid = shop.api.pay(testMode="EXTERNAL").id
    page = boss.get(f"/admin/gateway/payment/{paid}/change/").content.decode()
    for words in (
        "Goes to Down there",
        "By the routing rule “Everything”",
        "Passed over Dollars: it does not take EUR",
        "Down there certainly did not accept it",
        "goes on to another acquirer",
        "Acquirer account: Up there",
    ):
        assert words in page, words


def test_a_payments_page_and_the_health_page_tell_of_a_decline_before_the_approval(
    boss: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked A: 05, then B: approved."""
    cache.clear()
    known(monkeypatch, first := Acquirer("first", "declines"), Acquirer("second"))
    first.decline_code, first.decline_details = "800.100.152", {"AcquirerResponse": "05"}
    rule = RoutingRule.objects.create(channel=shop.channel, name="Everything", max_cascades=1)
    for weight, name in ((1, "first"), (0, "second")):
        RoutingTarget.objects.create(rule=rule, account=account(shop.channel, name, name=f"At {name}"), weight=weight)
    paid = shop.api.pay(testMode="EXTERNAL").id
    page = boss.get(f"/admin/gateway/payment/{paid}/change/").content.decode()
    for words in (
        "Goes to At first",
        "After a decline 1 further account may be asked",
        "Asked At first first: declined (800.100.152, the acquirer&#x27;s own code 05)",
        "goes on to another acquirer, which may be approved",
        "Acquirer account: At second",
    ):
        assert words in page, words
    shown = {own.name: own for own in boss.get(f"{ACCOUNTS}health/").context["accounts"]}
    counted = {name: (own.approved, own.declined, own.left) for name, own in shown.items()}
    assert counted == {"At first": (0, 1, 0), "At second": (1, 0, 0)}

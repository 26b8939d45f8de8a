"""The sections acquirers and routing: every fault told, secrets out of files and never shown, rules in their order.

Source: docs/configuration.md; docs/routing.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, export_configuration, find_configuration_target
from gateway.configuration.section import ConfigurationTarget
from gateway.connectors.accounts import load_connector_account
from gateway.connectors.port import ConnectorSetting
from gateway.connectors.routing import load_routing_table
from gateway.core import document as d
from gateway.models import AcquirerAccount, AuditEntry, OpenPayment, RoutingRule
from gateway.payments import follow_ups
from tests.support.acquirers import Acquirer, known
from tests.support.database import places_of
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
SECRET = "sk_test_4711secret"
HOST = ConnectorSetting(
    name="host", about="Where it listens.", pattern="[a-z.]+", allowed="a host name", required=True, place=True
)
MODE = ConnectorSetting(name="mode", about="How.", pattern="fast|slow", allowed="fast or slow", default="fast")
KEY = ConnectorSetting(
    name="key", about="The key.", pattern="sk_[a-z0-9_]+", allowed="sk_…", required=True, secret=True
)


@pytest.fixture
def target(shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ConfigurationTarget:
    """A channel of an installation with a processor that wants settings, and a folder with its key."""
    known(monkeypatch, Acquirer("cards", settings=(HOST, MODE, KEY)))
    (tmp_path / "key").write_text(SECRET + "\n")
    (tmp_path / "bad").write_text("no key 4711")
    found = find_configuration_target(shop.channel.id)
    assert found is not None
    return ConfigurationTarget(merchant=found.merchant, channel=found.channel, folder=tmp_path)


def account(**values: Any) -> dict[str, Any]:
    return {
        "connector": "cards",
        "merchant": "M-1",
        "settings": {"host": "a.example"},
        "secretFiles": {"key": "key"},
        **values,
    }


def apply(target: ConfigurationTarget, **sections: Any) -> list[str]:
    return [change.section for change in apply_configuration(target, sections, by=audit_log.COMMAND_LINE_ACTOR)]


def faults(target: ConfigurationTarget, **sections: Any) -> dict[str, str]:
    with pytest.raises(d.InvalidDocumentError) as raised:
        apply(target, **sections)
    return {fault.path: fault.message for fault in raised.value.faults}


def test_every_fault_of_an_account_is_told_and_no_secret_is_repeated(target: ConfigurationTarget) -> None:
    """Bad input names the field, what was sent, what is allowed."""
    rows = [
        account(connector="card"),
        account(settings={"host": "UPPER", "port": "1"}, secretFiles={"key": "bad"}),
        account(merchant="M-2", settings={}, secretFiles={}),
        account(merchant="M-3", secretFiles={"key": "nowhere"}),
        account(merchant="M-3"),
    ]
    found = faults(target, acquirers={"accounts": rows})
    where = "acquirers.accounts"
    assert "did you mean cards?" in found[f"{where}[0].connector"]
    assert "UPPER" in found[f"{where}[1].settings.host"]
    assert "port" in " ".join(found)
    assert "is required" in found[f"{where}[2].settings.host"]
    assert "same account" in found[f"{where}[4]"]
    assert "4711" not in str(found)
    found = faults(target, acquirers={"accounts": [account(secretFiles={"key": "bad"})]})
    assert found == {f"{where}[0].secretFiles.key": "must be sk_…"}
    found = faults(target, acquirers={"accounts": [account(secretFiles={})]})
    assert found == {f"{where}[0].secretFiles.key": "is required: The key."}
    assert not AcquirerAccount.objects.exists()


def test_an_account_is_set_up_changed_and_shown_without_its_secrets(target: ConfigurationTarget) -> None:
    """What --show prints may be applied again."""
    assert apply(target, acquirers={"accounts": [account()]}) == ["acquirers"]
    row = AcquirerAccount.objects.get()
    assert (row.settings, list(row.secrets_set)) == ({"host": "a.example"}, ["key"])
    asked = load_connector_account(follow_ups.CONNECTORS["cards"], row.channel_id, "M-1")
    assert asked.settings == {"host": "a.example", "mode": "fast"}
    assert asked.secrets["key"].reveal() == SECRET
    printed = export_configuration(target)["acquirers"]
    assert SECRET not in str(printed)
    assert apply(target, acquirers=printed) == []
    printed["accounts"][0] |= {"active": False, "settings": {"host": "b.example", "mode": "slow"}}
    assert apply(target, acquirers=printed) == ["acquirers"]
    row.refresh_from_db()
    assert (row.active, row.settings["mode"], row.secrets_set != {}) == (False, "slow", True)
    assert not places_of(SECRET)
    assert all("secretsSet" in str(entry.after) for entry in AuditEntry.objects.filter(action="configure"))


def test_an_account_stays_where_its_undecided_payments_are(
    target: ConfigurationTarget, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host knows nothing of a payment in doubt. What does not say where it is may change."""
    apply(target, acquirers={"accounts": [account()]})
    known(monkeypatch, Acquirer("cards", "silent after", settings=(HOST, MODE, KEY)))
    assert shop.api.pay(testMode="EXTERNAL").code == "000.200.001"
    moved = {"accounts": [account(settings={"host": "b.example"})]}
    path, message = faults(target, acquirers=moved).popitem()
    assert path == "acquirers.accounts[0].settings.host"
    assert "1 payments of this account have no answer yet" in message
    assert AcquirerAccount.objects.get().settings == {"host": "a.example"}
    assert apply(target, acquirers={"accounts": [account(settings={"host": "a.example", "mode": "slow"})]})
    assert apply(target, acquirers={"accounts": [account(merchant="M-2", settings={"host": "b.example"})]})
    OpenPayment.objects.all().delete()
    assert apply(target, acquirers=moved) == ["acquirers"]


ISO = {"host": "93.184.216.34", "port": "8583", "terminal": "TERM0001"}


@pytest.mark.parametrize(
    "more, setting, words",
    [
        ({}, "tls", "must be on in the live environment"),
        ({"without_tls": "on"}, "host", "nor in a private network"),
        ({"tls": "on"}, "", ""),
        ({"host": "10.0.0.7", "without_tls": "on"}, "", ""),
    ],
)
def test_what_settings_are_together_is_the_connectors_to_judge(
    target: ConfigurationTarget, more: dict[str, str], setting: str, words: str
) -> None:
    """Live speaks ISO 8583 over TLS, or on a private line that is said to be one."""
    rows = [{"connector": "iso8583", "merchant": "M-1", "settings": ISO | more, "secretFiles": {}}]
    with override_settings(IS_LIVE=True):
        if not setting:
            assert apply(target, acquirers={"accounts": rows}) == ["acquirers"]
            return
        found = faults(target, acquirers={"accounts": rows})
    assert words in found[f"acquirers.accounts[0].settings.{setting}"]
    assert apply(target, acquirers={"accounts": rows}) == ["acquirers"]


RULE = {"name": "R", "to": [{"connector": "stub", "merchant": "M-9"}]}
STUB = {"connector": "stub", "merchant": "M-9"}


@pytest.mark.parametrize(
    "rule, path, words",
    [
        ({"when": {"brands": ["VIZA"]}}, "when.brands[0]", "did you mean VISA?"),
        ({"when": {"bins": ["42000"]}}, "when.bins[0]", "6 to 11 leading digits"),
        ({"when": {"bins": ["430000-420000"]}}, "when.bins[0]", "ends before it begins"),
        ({"when": {"currencies": ["EUX"]}}, "when.currencies[0]", "ISO 4217"),
        ({"when": {"amountFrom": "10"}}, "when.amountCurrency", "is required"),
        ({"when": {"amountFrom": "10", "amountTo": "9", "amountCurrency": "EUR"}}, "when.amountTo", "not be less"),
        ({"when": {"amountFrom": "ten", "amountCurrency": "EUR"}}, "when.amountFrom", "must be an amount"),
        ({"when": {"countries": ["DEU"]}}, "when.countries[0]", "two letters"),
        ({"when": {"issuerCountries": ["DEU"]}}, "when.issuerCountries[0]", "two letters"),
        ({"when": {"cardTypes": ["CHARGE"]}}, "when.cardTypes[0]", "must be one of CREDIT"),
        ({"when": {"cardLevels": [""]}}, "when.cardLevels[0]", "1 to 128"),
        ({"when": {"paymentTypes": ["RF"]}}, "when.paymentTypes[0]", "must be one of PA"),
        ({"when": {"brand": []}}, "when.brand", "did you mean brands?"),
        ({"to": []}, "to", "1 to 20 items"),
        ({"maxCascades": 3}, "maxCascades", "from 0 to 2"),
        ({"maxCascades": "1"}, "maxCascades", "must be"),
        ({"to": [STUB, STUB]}, "to[1]", "same account"),
        ({"to": [{**STUB, "weight": -1}]}, "to[0].weight", "from 0 to"),
        ({"to": [{**STUB, "merchant": "M-8"}]}, "to[0]", "no account of this channel"),
    ],
)
def test_a_rules_faults_are_told(target: ConfigurationTarget, rule: dict[str, Any], path: str, words: str) -> None:
    """docs/routing.md."""
    apply(target, acquirers={"accounts": [{"connector": "stub", "merchant": "M-9"}]})
    found = faults(target, routing={"rules": [RULE | rule]})
    assert words in found[f"routing.rules[0].{path}"], found


def test_accounts_and_rules_of_one_document_are_applied_together_and_shown(target: ConfigurationTarget) -> None:
    """The first set-up is one document; the rules that are named are all there are."""
    when = {
        "brands": ["VISA"],
        "bins": ["420000", "51000000000-51999999999"],
        "currencies": ["EUR"],
        "amountFrom": "1.00",
        "amountTo": "500.00",
        "amountCurrency": "EUR",
        "countries": ["DE"],
        "paymentTypes": ["DB", "PA"],
        "issuerCountries": ["DE", "AT"],
        "cardTypes": ["DEBIT"],
        "cardLevels": ["GOLD", "WORLD"],
    }
    rules = [{"name": "B", "when": when, "to": [{**STUB, "weight": 3}], "maxCascades": 2}, RULE]
    assert apply(target, acquirers={"accounts": [STUB]}, routing={"rules": rules}) == ["acquirers", "routing"]
    printed = export_configuration(target)["routing"]
    assert [rule["name"] for rule in printed["rules"]] == ["B", "R"]
    assert printed["rules"][0]["when"] == when | {"bins": ["420000-420000", "51000000000-51999999999"]}
    assert printed["rules"][0]["to"] == [{**STUB, "weight": 3}]
    assert [rule["maxCascades"] for rule in printed["rules"]] == [2, 0]
    assert apply(target, routing=printed) == []
    assert [rule.max_cascades for rule in load_routing_table(target.channel_there.pk).rules] == [2, 0]
    first, second = load_routing_table(target.channel_there.pk).rules
    assert (first.name, second.name) == ("B", "R")
    assert (first.issuer_countries, first.card_types, first.card_levels) == (
        frozenset({"DE", "AT"}), frozenset({"DEBIT"}), frozenset({"GOLD", "WORLD"}),
    )  # fmt: skip
    assert (second.issuer_countries, second.card_types, second.card_levels) == (frozenset(), frozenset(), frozenset())
    printed["rules"][0]["active"] = False
    apply(target, routing=printed)
    assert [rule.name for rule in load_routing_table(target.channel_there.pk).rules] == ["R"]
    apply(target, routing={"rules": []})
    assert not RoutingRule.objects.exists()

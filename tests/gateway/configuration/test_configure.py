"""manage.py configure: a document is validated wholly, applied at once, shown without secrets, and audited.

Source: docs/configuration.md.
"""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from gateway.configuration.sections import CONFIGURATION_SECTIONS
from gateway.core import clock
from gateway.management.commands.seed_demo import DEMO_CONFIGURATION
from gateway.models import AuditEntry, Channel, RiskList, RiskListEntry, RiskSet, ThreeDSecureConfiguration, WalletKey
from gateway.vault.sealing import current_vault
from gateway.wallets.token_factory import generate_wallet_key
from tests.support.database import places_of
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

RULE = {"name": "r", "when": {"kind": "list", "field": "customer.email", "list": "bad"}, "then": {"score": 1}}
BAD_LIST = {"name": "bad", "field": "customer.email", "entries": ["a@b.example", "c@d.example"]}


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("configure", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def file(document: Any) -> str:
        path = tmp_path / "configuration.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return str(path)

    return file


def faults(shop: Shop, file: str, entity: str | None = None) -> dict[str, str]:
    with pytest.raises(CommandError) as raised:
        run("--entity", entity or shop.channel.entity_id, file)
    first, *lines = str(raised.value).splitlines()
    assert first.startswith("Nothing was changed.")
    return dict(line.strip().split(": ", 1) for line in lines if ": " in line)


def shown(shop: Shop, entity: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("--entity", entity or shop.channel.entity_id, "--show"))
    return found


def test_every_fault_of_every_section_is_told_at_once_and_nothing_changes(shop: Shop, write: Any) -> None:
    """Validated wholly first, with JSON paths and suggestions."""
    before = shown(shop)
    found = faults(
        shop,
        write(
            {
                "chanel": {},
                "channel": {"brands": ["VIZA"], "currencies": ["EURO"], "cvvRequired": "yes"},
                "limits": {"payment": {"limit": 0, "window_s": 1}, "payments": None},
                "threeDSecure": {"networks": ["vissa"], "challengeMinutes": 1, "onAttempt": "ignore"},
                "wallets": {"wallet1": [{"name": "none"}]},
                "cardTesting": {"failures": -1, "windowSeconds": 7200},
                "risk": {"sets": [{"key": "K", "rules": [{"name": "r"}]}], "lists": [BAD_LIST | {"field": "card.bin"}]},
            }
        ),
    )
    assert set(found) == {
        "chanel",
        "channel.brands[0]",
        "channel.currencies[0]",
        "channel.cvvRequired",
        "limits.payment.limit",
        "limits.payments",
        "threeDSecure.networks[0]",
        "threeDSecure.challengeMinutes",
        "threeDSecure.onAttempt",
        "wallets.wallet1[0]",
        "cardTesting.failures",
        "cardTesting.windowSeconds",
        "risk.sets[0].rules[0].when",
        "risk.sets[0].rules[0].then",
        "risk.lists[0].entries[0]",
        "risk.lists[0].entries[1]",
    }
    assert "did you mean channel?" in found["chanel"]
    assert "did you mean VISA?" in found["channel.brands[0]"]
    assert shown(shop) == before
    assert not AuditEntry.objects.filter(action="configure").exists()


def test_what_only_the_database_knows_is_checked_before_anything_changes(
    shop: Shop, stranger: Shop, write: Any
) -> None:
    """Named sets, lists and payments must be there."""
    theirs = stranger.api.pay().id
    found = faults(
        shop,
        write(
            {
                "risk": {
                    "set": "SETT",
                    "sets": [{"key": "SET", "rules": [RULE]}, {"key": "OFF", "active": False}],
                    "lists": [
                        BAD_LIST | {"name": "bda"},
                        {"name": "cards", "field": "account", "entries": [theirs, "0" * 32]},
                    ],
                }
            }
        ),
    )
    assert set(found) == {
        "risk.set",
        "risk.sets[0].rules[0].when.list",
        "risk.lists[1].entries[0]",
        "risk.lists[1].entries[1]",
    }
    assert "did you mean SET?" in found["risk.set"]
    assert "did you mean bda?" in found["risk.sets[0].rules[0].when.list"]
    assert not RiskList.objects.exists()


def test_a_document_is_applied_shown_and_found_unchanged(shop: Shop, write: Any) -> None:
    """What --show prints may be applied again, and changes nothing."""
    assert run("--entity", shop.channel.entity_id, str(DEMO_CONFIGURATION)) == "Changed: cardTesting, risk.\n"
    assert shop.api.pay(customer__ip="203.0.113.1").code == "800.300.301"
    now = shown(shop)
    assert set(now) == set(CONFIGURATION_SECTIONS)
    assert now["risk"]["set"] == "RISKCHANNEL1"
    assert [one["key"] for one in now["risk"]["sets"]] == ["RISKCHANNEL1", "RISKSTRICT01"]
    again = run("--entity", shop.channel.entity_id, write(now))
    assert again == "Everything is as the file says already.\n"


def test_a_change_is_in_the_audit_trail_with_before_and_after(shop: Shop, write: Any) -> None:
    """The audit trail: who changed what."""
    run("--entity", shop.channel.entity_id, write({"limits": {"*": {"limit": 9, "window_s": 1}}}))
    entry = AuditEntry.objects.get(action="configure")
    assert (entry.actor, entry.subject, entry.subject_id) == ("command line", "channel", str(shop.channel.pk))
    assert entry.before == {"limits": {"*": None}}
    assert entry.after == {"limits": {"*": {"limit": 9, "window_s": 1}}}


def test_a_dry_run_says_what_would_change_and_changes_nothing(shop: Shop, write: Any) -> None:
    """--dry-run."""
    file = write({"channel": {"brands": ["VISA", "MASTER"], "cvvRequired": True}, "risk": {"lists": [BAD_LIST]}})
    assert run("--entity", shop.channel.entity_id, file, "--dry-run") == "Would change: channel, risk.\n"
    assert not RiskList.objects.exists()
    assert Channel.objects.get(pk=shop.channel.pk).brands == []
    assert not AuditEntry.objects.filter(action="configure").exists()
    assert run("--entity", shop.channel.entity_id, file) == "Changed: channel, risk.\n"
    assert shop.api.pay(paymentBrand="AMEX", card__number="377777777777770", card__cvv="1234").status == 400


def test_a_list_becomes_what_is_written_and_others_stay(shop: Shop, write: Any) -> None:
    """Lists are replaced one by one; a set's version counts its changes."""
    entity = shop.channel.entity_id
    other = {"name": "nets", "field": "customer.ip", "entries": ["192.0.2.9/24", "2001:db8::1"]}
    run("--entity", entity, write({"risk": {"lists": [BAD_LIST, other], "sets": [{"key": "SET", "rules": [RULE]}]}}))
    run("--entity", entity, write({"risk": {"lists": [BAD_LIST | {"entries": ["C@D.example"]}]}}))
    assert list(RiskListEntry.objects.order_by("value").values_list("value", flat=True)) == [
        "192.0.2.0/24",
        "2001:db8::1",
        "c@d.example",
    ]
    run("--entity", entity, write({"risk": {"sets": [{"key": "SET", "rules": []}]}}))
    run("--entity", entity, write({"risk": {"sets": [{"key": "SET", "rules": []}]}}))
    assert RiskSet.objects.get().version == 2


def test_sets_and_lists_belong_to_the_merchant_the_rest_to_a_channel(shop: Shop, write: Any) -> None:
    """--entity may name the merchant."""
    merchant = shop.merchant.entity_id
    assert run("--entity", merchant, write({"risk": {"sets": [{"key": "SET"}]}})) == "Changed: risk.\n"
    assert set(shown(shop, merchant)) == {"risk", "brands", "settlementSources"}
    found = faults(shop, write({"channel": {}, "risk": {"set": "SET"}}), merchant)
    assert set(found) == {"channel", "risk.set"}


def test_three_d_secure_is_configured_with_what_its_channel_does(shop: Shop, write: Any) -> None:
    """Part B, 3D Secure."""
    section = {
        "enabled": True,
        "networks": ["visa"],
        "requestors": {"visa": {"id": "R-1", "name": "Shop"}},
        "onUnavailable": "decline",
        "onSoftDecline": "challenge",
        "challengeMinutes": 7,
        "challengeIndicator": "04",
    }
    run("--entity", shop.channel.entity_id, write({"threeDSecure": section}))
    row = ThreeDSecureConfiguration.objects.get(pk=shop.channel.pk)
    assert (row.networks, row.on_unavailable, row.challenge_minutes, row.method) == (["visa"], "decline", 7, True)
    assert row.on_soft_decline == "challenge"
    assert Channel.objects.get(pk=shop.channel.pk).three_d_secure
    now = shown(shop)["threeDSecure"]
    shop_facts = {"website": "", "merchantCategoryCode": "", "merchantCountry": "", "server": {"url": ""}}
    assert now == section | {"onAttempt": "proceed", "method": True} | shop_facts


def test_wallet_keys_come_from_files_and_are_never_shown(shop: Shop, write: Any, tmp_path: Path) -> None:
    """Part A, Mobile wallets: private keys stand in no document."""
    made = generate_wallet_key("jwe", now=clock.real_now())
    pem = made.private.reveal()
    (tmp_path / "key.pem").write_text(pem)
    entity = shop.channel.entity_id
    entry = {"name": "spring", "keyFile": "key.pem", "facts": {"kid": "k-1"}}
    assert run("--entity", entity, write({"wallets": {"wallet3": [entry]}})) == "Changed: wallets.\n"
    row = WalletKey.objects.get()
    assert pem.splitlines()[1] in current_vault().open(row.key_sealed, row.pk).reveal()
    text = run("--entity", entity, "--show")
    assert pem.splitlines()[1] not in text
    assert places_of(pem.splitlines()[1]) == set()
    (one,) = json.loads(text)["wallets"]["wallet3"]
    assert (one["name"], one["active"], one["facts"]) == ("spring", True, {"kid": "k-1"})
    off = {"wallet3": [{"keyHash": one["keyHash"], "active": False}]}
    run("--entity", entity, write({"wallets": off}))
    assert not WalletKey.objects.get().active
    wrong = [entry | {"keyFile": "other.pem"}, {"keyHash": "x"}, {"name": "neither"}]
    assert set(faults(shop, write({"wallets": {"wallet3": wrong[:2]}}))) == {
        "wallets.wallet3[0].keyFile",
        "wallets.wallet3[1].keyHash",
    }
    assert set(faults(shop, write({"wallets": {"wallet3": wrong[2:]}}))) == {"wallets.wallet3[0]"}


@pytest.mark.parametrize(
    ("document", "says"),
    [("{", "no JSON"), ('{"risk": {}, "risk": {}}', "there twice"), ("[]", "must be an object"), ("nul", "no JSON")],
)
def test_what_is_no_document_is_said_to_be_none(shop: Shop, write: Any, document: str, says: str) -> None:
    """Never an exception of ours."""
    with pytest.raises(CommandError, match=says):
        run("--entity", shop.channel.entity_id, write(document))


@pytest.mark.parametrize("arguments", [[], ["x.json", "--show"], ["no-such-file.json"]])
def test_a_file_or_show_is_needed(shop: Shop, arguments: list[str]) -> None:
    """Exactly one of the two, and a file that is there."""
    with pytest.raises(CommandError):
        run("--entity", shop.channel.entity_id, *arguments)


@pytest.mark.parametrize("entity", ["0" * 32, "x", "8A8294174B7ECB28014B9699220015CA"])
def test_an_unknown_entity_is_refused(db: None, entity: str) -> None:
    """Channels and merchants only."""
    with pytest.raises(CommandError, match="--entity"):
        run("--entity", entity, "--show")


def test_a_listed_card_is_sealed_for_its_entry(shop: Shop, write: Any) -> None:
    """Goals, R9: so it is sealed and fingerprinted anew with everything else when the vault's keys rotate."""
    seen = shop.api.pay().id
    cards = {"name": "cards", "field": "account", "entries": [seen]}
    rule = {
        "name": "r",
        "when": {"kind": "list", "field": "account", "list": "cards"},
        "then": {"verdict": "decline"},
    }
    run(
        "--entity",
        shop.channel.entity_id,
        write({"risk": {"set": "SET", "sets": [{"key": "SET", "rules": [rule]}], "lists": [cards]}}),
    )
    entry = RiskListEntry.objects.get()
    assert entry.account_sealed is not None
    assert current_vault().open(entry.account_sealed, entry.pk).reveal() == "4200000000000000"
    assert shop.api.pay().code == "800.300.101"


def test_a_descriptor_is_set_shown_and_taken_back(shop: Shop, write: Any) -> None:
    """AN 1-127; empty: the merchant's name."""
    for value, answered in (("Shop of Jane", "Shop of Jane"), ("x" * 127, "x" * 127), ("", "Shop")):
        run("--entity", shop.channel.entity_id, write({"channel": {"descriptor": value}}))
        assert shown(shop)["channel"]["descriptor"] == value
        assert shop.api.pay().body["descriptor"] == answered
    for value in ("x" * 128, " ", "two\nlines", 7):
        assert "channel.descriptor" in faults(shop, write({"channel": {"descriptor": value}}))
    assert shown(shop)["channel"]["descriptor"] == ""

"""The sections that docs/configuration.md and docs/wallets.md show are taken as they stand there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.test import override_settings

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.configuration.section import ConfigurationTarget
from gateway.core import clock
from gateway.core.document import InvalidDocumentError
from gateway.wallets.token_factory import generate_wallet_key
from reporting.settlement.models import SftpSource
from tests.support.certificates import make_certificate
from tests.support.doc_blocks import DOCS
from tests.support.fixtures import Shop
from tests.support.settlement import institute

pytestmark = pytest.mark.django_db
INDENTED = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)


def list_sections(page: str) -> dict[str, Any]:
    """The JSON of a page by the name of its section, in the order of the page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    for block in INDENTED.findall(text):
        if block.lstrip().startswith(('"', "{")):
            found |= json.loads(block if block.lstrip().startswith("{") else f"{{{block}}}")
    return found


@pytest.fixture
def target(shop: Shop, tmp_path: Path) -> ConfigurationTarget:
    """A channel's document, with the files beside it that the pages name."""
    found = find_configuration_target(shop.channel.id)
    assert found is not None
    return ConfigurationTarget(merchant=found.merchant, channel=found.channel, folder=tmp_path)


def apply(target: ConfigurationTarget, document: dict[str, Any]) -> list[str]:
    changes = apply_configuration(target, document, by=audit_log.COMMAND_LINE_ACTOR)
    return [change.section for change in changes]


def test_the_page_shows_these_sections() -> None:
    assert list(list_sections("configuration.md")) == ["wallets", "acquirers", "routing", "settlementSources"]
    assert list(list_sections("wallets.md")) == ["walletProviders"]


def test_accounts_and_rules_are_applied(target: ConfigurationTarget) -> None:
    """The rule wants a second account, which the same document brings."""
    shown = list_sections("configuration.md")
    accounts = shown["acquirers"]["accounts"]
    document = {
        "acquirers": {"accounts": [*accounts, {**accounts[0], "merchant": "M-2"}]},
        "routing": shown["routing"],
    }
    assert apply(target, document) == ["acquirers", "routing"]
    assert apply(target, document) == []


def test_a_source_of_settlement_files_is_applied(target: ConfigurationTarget, tmp_path: Path) -> None:
    """With a key and a host key of its reader's."""
    institute(key="acme")
    key = Ed25519PrivateKey.generate()
    (tmp_path / "acme.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    (source,) = list_sections("configuration.md")["settlementSources"]["sources"]
    source["hostKey"] = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert apply(target, {"settlementSources": {"sources": [source]}}) == ["settlementSources"]
    row = SftpSource.objects.get()
    assert (row.host, row.pattern) == (source["host"], source["pattern"])


def test_keys_of_wallets_are_applied(target: ConfigurationTarget, tmp_path: Path) -> None:
    """What is named by a hash has to be here already."""
    shown = list_sections("configuration.md")["wallets"]
    made = generate_wallet_key("ec_v1", now=clock.real_now())
    (tmp_path / "processing.pem").write_text(made.private.reveal())
    (tmp_path / "root.pem").write_text(made.facts["roots"][0])
    assert apply(target, {"wallets": {"wallet1": shown["wallet1"]}}) == ["wallets"]
    with pytest.raises(InvalidDocumentError, match="keyHash"):
        apply(target, {"wallets": {"wallet3": shown["wallet3"]}})


def test_providers_of_wallets_are_applied(target: ConfigurationTarget, tmp_path: Path) -> None:
    """With the origins that stand above them."""
    _, certificate = make_certificate(tmp_path, "shop.example")
    (tmp_path / "identity.pem").write_bytes(certificate.read_bytes())
    (tmp_path / "identity-key.pem").write_bytes(certificate.with_suffix(".pem").read_bytes())
    text = (DOCS / "wallets.md").read_text(encoding="utf-8")
    (origins,) = re.findall(r"^ {4}GATEWAY_WALLET_ORIGINS='(.*)'$", text, re.MULTILINE)
    with override_settings(GATEWAY_WALLET_ORIGINS=json.loads(origins)):
        assert apply(target, list_sections("wallets.md")) == ["walletProviders"]

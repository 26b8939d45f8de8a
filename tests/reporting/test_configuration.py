"""The section settlementSources of a configuration. Source: docs/configuration.md; decision 0042."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, export_configuration, find_configuration_target
from gateway.configuration.section import ConfigurationTarget
from gateway.core import document as d
from gateway.models import AuditEntry
from gateway.vault.sealing import current_vault
from reporting.models import ClearingInstitute
from reporting.settlement.models import SftpSource
from tests.support.fixtures import Shop
from tests.support.settlement import institute

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 4711"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1v0pXfYy7cM5m1mX0rOqZC1pQZ0m8m1m2m3m4m5m6m"


@pytest.fixture
def acme(db: None) -> ClearingInstitute:
    return institute(key="acme")


@pytest.fixture
def target(shop: Shop, tmp_path: Path) -> ConfigurationTarget:
    """A merchant's document, with the secrets beside it."""
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    (tmp_path / "no-key").write_text("no key 4711")
    (tmp_path / "empty").write_text("\n")
    found = find_configuration_target(shop.channel.id)
    assert found is not None
    return ConfigurationTarget(merchant=found.merchant, channel=None, folder=tmp_path)


def source(**values: Any) -> dict[str, Any]:
    return {
        "institute": "acme",
        "host": "sftp.acme.example",
        "username": "shop",
        "passwordFile": "password",
        "hostKey": HOST_KEY,
        **values,
    }


def apply(target: ConfigurationTarget, *sources: dict[str, Any]) -> list[str]:
    document = {"settlementSources": {"sources": list(sources)}}
    return [change.section for change in apply_configuration(target, document, by=audit_log.COMMAND_LINE_ACTOR)]


def faults(target: ConfigurationTarget, *sources: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(d.InvalidDocumentError) as raised:
        apply(target, *sources)
    return {fault.path.removeprefix("settlementSources."): fault.message for fault in raised.value.faults}


def test_a_source_is_what_the_document_says_and_its_secret_is_sealed(
    target: ConfigurationTarget, acme: ClearingInstitute
) -> None:
    assert apply(target, source(folder="out", pattern="*.csv", moveTo="done", everySeconds=60)) == ["settlementSources"]
    row = SftpSource.objects.get()
    assert (row.institute, row.host, row.port, row.username) == (acme, "sftp.acme.example", 22, "shop")
    assert (row.folder, row.pattern, row.after_download, row.moved_to, row.every_s) == (
        "out",
        "*.csv",
        "move",
        "done",
        60,
    )
    assert current_vault().open(row.secret_sealed, row.id).reveal() == PASSWORD
    shown = export_configuration(target)["settlementSources"]
    assert PASSWORD not in str(shown)
    assert PASSWORD not in str(list(AuditEntry.objects.values()))
    assert apply_configuration(target, {"settlementSources": shown}, by=audit_log.COMMAND_LINE_ACTOR) == []
    row.refresh_from_db()
    assert current_vault().open(row.secret_sealed, row.id).reveal() == PASSWORD


def test_a_secret_is_kept_for_its_own_server_alone(target: ConfigurationTarget, acme: ClearingInstitute) -> None:
    """Or a slip of the pen would tell it to another one."""
    apply(target, source())
    silent = {name: value for name, value in source().items() if name != "passwordFile"}
    assert apply(target, {**silent, "folder": "out", "active": False}) == ["settlementSources"]
    assert SftpSource.objects.values_list("folder", "active").get() == ("out", False)
    for moved in ({"host": "other.example"}, {"port": 2222}, {"username": "other"}):
        found = faults(target, {**silent, **moved})
        assert list(found) == ["sources[0].passwordFile"]
        assert "is required" in found["sources[0].passwordFile"]


def test_every_fault_is_told_and_no_secret_is_repeated(target: ConfigurationTarget, acme: ClearingInstitute) -> None:
    institute(key="other", name="Other")
    found = faults(
        target,
        source(institute="acne"),
        source(port=0, everySeconds=1, hostKey="ssh-dss AAAA"),
        source(institute="other", keyFile="no-key"),
    )
    assert set(found) == {
        "sources[1].port",
        "sources[1].everySeconds",
        "sources[1].hostKey",
        "sources[2].keyFile",
    }
    found = faults(target, source(institute="acne"), source(institute="other", passwordFile="empty"))
    assert "did you mean acme?" in found["sources[0].institute"]
    assert "must hold" in found["sources[1].passwordFile"]
    silent = {name: value for name, value in source().items() if name != "passwordFile"}
    found = faults(target, {**silent, "keyFile": "no-key"}, source(institute="other", passwordFile="nowhere"))
    assert "no private key" in found["sources[0].keyFile"]
    assert "cannot be read" in found["sources[1].passwordFile"]
    assert "4711" not in str(found)
    assert "an institute has one" in faults(target, source(), source())["sources[1].institute"]
    assert not SftpSource.objects.exists()

"""The vault: sealed values open only where they belong, and keys are kept like keys.

Source: design goals R8, R9; Part A, Card account.
"""

from __future__ import annotations

import copy
import json
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings

from gateway.core.identifiers import row_id
from gateway.core.secret import Secret
from gateway.vault import keysets, sealing
from gateway.vault.keysets import KeysetLocation
from gateway.vault.sealing import (
    FINGERPRINT_BYTES,
    KEYSET_CHECK_INTERVAL_S,
    Vault,
    VaultError,
    current_vault,
    load_vault,
)

NUMBER = Secret("4200000000000000")


def create_keyset(path: Path) -> None:
    keysets.create_keyset_file(KeysetLocation(path=path))


def opened_at(path: Path) -> Vault:
    return load_vault(KeysetLocation(path=path))


@pytest.fixture
def keyset(tmp_path: Path) -> Path:
    path = tmp_path / "keys" / "vault.json"
    create_keyset(path)
    return path


@pytest.fixture
def opened(keyset: Path) -> Vault:
    return opened_at(keyset)


def test_what_was_sealed_for_a_row_opens_for_that_row(opened: Vault) -> None:
    """Goals R8."""
    row = row_id()
    assert opened.open(opened.seal(NUMBER, row), row) == NUMBER


def test_what_was_sealed_for_one_row_does_not_open_for_another(opened: Vault) -> None:
    """Goals R8: a value copied to another row is useless."""
    sealed = opened.seal(NUMBER, row_id())
    with pytest.raises(VaultError, match="it was altered, or it belongs to another row"):
        opened.open(sealed, row_id())


@pytest.mark.parametrize(
    ("at", "why"),
    [(0, "was altered"), (2, "the vault has no key"), (5, "was altered"), (20, "was altered"), (-1, "was altered")],
)
def test_a_sealed_value_that_was_changed_does_not_open(opened: Vault, at: int, why: str) -> None:
    """Goals R8: authenticated encryption. Bytes 1 to 4 name the key."""
    row = row_id()
    sealed = bytearray(opened.seal(NUMBER, row))
    sealed[at] ^= 1
    with pytest.raises(VaultError, match=why):
        opened.open(bytes(sealed), row)


@pytest.mark.parametrize("sealed", [b"", b"\0", b"x" * 100])
def test_bytes_that_were_never_sealed_do_not_open(opened: Vault, sealed: bytes) -> None:
    """Goals R8."""
    with pytest.raises(VaultError):
        opened.open(sealed, row_id())


def test_one_value_is_sealed_differently_each_time(opened: Vault) -> None:
    """Goals R8: nobody sees from outside that two cards are the same."""
    row = row_id()
    assert opened.seal(NUMBER, row) != opened.seal(NUMBER, row)


def test_a_sealed_value_does_not_hold_its_text(opened: Vault) -> None:
    """Goals R8."""
    assert NUMBER.reveal().encode() not in opened.seal(NUMBER, row_id())


def test_a_fingerprint_is_equal_for_equal_values_and_depends_on_the_key(opened: Vault, tmp_path: Path) -> None:
    """Goals R8: a plain hash of a card number can be guessed."""
    other = tmp_path / "other.json"
    create_keyset(other)
    prints = [opened.fingerprint("4200000000000000"), opened_at(other).fingerprint("4200000000000000")]
    assert opened.fingerprint("4200000000000000") == prints[0] != prints[1]
    assert opened.fingerprint("4200000000000018") != prints[0]
    assert len(prints[0]) == FINGERPRINT_BYTES


def test_what_one_keyset_sealed_another_does_not_open(opened: Vault, tmp_path: Path) -> None:
    """Goals R9."""
    other = tmp_path / "other.json"
    create_keyset(other)
    row = row_id()
    with pytest.raises(VaultError):
        opened_at(other).open(opened.seal(NUMBER, row), row)


def test_a_keyset_opened_again_opens_what_it_sealed(keyset: Path) -> None:
    """Goals R9: a restart loses nothing."""
    row = row_id()
    sealed = opened_at(keyset).seal(NUMBER, row)
    assert opened_at(keyset).open(sealed, row) == NUMBER


def test_the_keyset_file_is_for_its_owner_only(keyset: Path) -> None:
    """Goals R9: mode 0600, whatever the umask."""
    assert stat.S_IMODE(keyset.stat().st_mode) == 0o600
    before = os.umask(0)
    try:
        create_keyset(keyset.with_name("second.json"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(keyset.with_name("second.json").stat().st_mode) == 0o600


def test_a_keyset_is_never_written_over(keyset: Path) -> None:
    """Goals R9: an overwritten key is lost card data."""
    before = keyset.read_bytes()
    with pytest.raises(VaultError):
        create_keyset(keyset)
    assert keyset.read_bytes() == before
    assert list(keyset.parent.iterdir()) == [keyset]


def test_a_keyset_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    """Nobody may take a key for kept that is not: what it sealed would be lost."""
    (tmp_path / "file").touch()
    for change in (
        lambda place: keysets.create_keyset_file(place),
        lambda place: keysets.change_keyset_file(place, lambda document: document),
    ):
        with pytest.raises(VaultError, match=r"vault\.json.* cannot be written"):
            change(KeysetLocation(path=tmp_path / "file" / "below" / "vault.json"))


def test_of_several_that_make_the_keyset_at_once_one_makes_it(tmp_path: Path) -> None:
    """Goals R9: web workers and their threads start together."""
    path = tmp_path / "vault.json"
    gate = threading.Barrier(8)

    def attempt(_: int) -> bool:
        gate.wait(30)
        try:
            create_keyset(path)
        except VaultError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1
    assert list(tmp_path.iterdir()) == [path]
    assert opened_at(path).fingerprint("x")


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", "not json", '{"seal": {}, "fingerprint": {}}', "\0"])
def test_a_broken_keyset_is_a_vault_error_that_names_no_secret(tmp_path: Path, content: str) -> None:
    """Goals R9."""
    path = tmp_path / "vault.json"
    path.write_text(content)
    with pytest.raises(VaultError) as caught:
        opened_at(path)
    assert str(path) in str(caught.value)


def test_a_vault_error_repeats_no_key(keyset: Path) -> None:
    """Goals R9."""
    document = json.loads(keyset.read_text())
    secret = document["seal"]["key"][0]["keyData"]["value"]
    document["seal"]["key"][0]["keyData"]["typeUrl"] = "nonsense"
    keyset.write_text(json.dumps(document))
    with pytest.raises(VaultError) as caught:
        opened_at(keyset)
    assert secret not in f"{caught.value!r} {caught.value}"


def test_a_missing_keyset_in_live_is_an_error_and_none_is_made(tmp_path: Path) -> None:
    """Goals R9: cards sealed with a lost key would be lost in silence."""
    path = tmp_path / "vault.json"
    with override_settings(IS_LIVE=True, GATEWAY_VAULT_KEYSET_FILE=str(path)), pytest.raises(VaultError):
        current_vault()
    assert not path.exists()


def test_a_missing_keyset_in_test_is_made(tmp_path: Path) -> None:
    """Settings: made on first use in the test environment."""
    path = tmp_path / "vault.json"
    with override_settings(GATEWAY_VAULT_KEYSET_FILE=str(path)):
        assert current_vault().fingerprint("x")
    assert path.exists()


@pytest.mark.django_db
def test_health_says_that_the_vault_does_not_open(tmp_path: Path, client) -> None:  # type: ignore[no-untyped-def]
    """Issue: health; no payment can be taken without keys."""
    with override_settings(
        IS_LIVE=True, GATEWAY_ENVIRONMENT="live", GATEWAY_VAULT_KEYSET_FILE=str(tmp_path / "none.json")
    ):
        answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["checks"] == {"database": "ok", "clock": "ok", "vault": "does not open"}


def test_a_key_is_superseded_when_the_next_one_becomes_primary() -> None:
    """Not by one that is only added, and not by the one after the next."""
    document = keysets.build_keyset()
    first = document["seal"]["primaryKeyId"]
    assert keysets.find_superseded_at(document, first) is None
    keys = [first]
    for day in (2, 3):
        document, key = keysets.add_key_pair(document)
        assert keysets.find_superseded_at(document, keys[-1]) is None, "it is primary still"
        document = keysets.promote_key_pair(document, key)
        keys.append(key)
        document["since"] = {str(one): f"2026-01-0{at}T00:00:00+00:00" for at, one in enumerate(keys, 1)}
        assert keysets.find_superseded_at(document, keys[-2]) == datetime(2026, 1, day, tzinfo=UTC)
    assert keysets.find_superseded_at(document, first) == datetime(2026, 1, 2, tzinfo=UTC)


def test_of_a_keyset_without_dates_no_key_is_superseded() -> None:
    """The first kind of keyset had none."""
    document, key = keysets.add_key_pair(keysets.build_keyset())
    del document["since"]
    assert keysets.find_superseded_at(document, key) is None


@pytest.mark.parametrize("change", [keysets.promote_key_pair, keysets.remove_key_pair])
def test_a_key_that_the_vault_lacks_is_neither_promoted_nor_removed(change: Any) -> None:
    document = keysets.build_keyset()
    before = copy.deepcopy(document)
    known = keysets.list_key_pairs(document)[0].id
    with pytest.raises(VaultError, match=f"has no key {known + 1}; it has {known}"):
        change(document, known + 1)
    assert document == before


# --- keys that change while a process runs --------------------------------------------------------------------------


def rotate(path: Path) -> Vault:
    def promoted(document: keysets.KeysetDocument) -> keysets.KeysetDocument:
        return keysets.promote_key_pair(*keysets.add_key_pair(document))

    keysets.change_keyset_file(KeysetLocation(path=path), promoted)
    return opened_at(path)


@pytest.fixture
def running(keyset: Path, settings: Any) -> Vault:
    """The vault of a process that has not looked since."""
    settings.GATEWAY_VAULT_KEYSET_FILE = str(keyset)
    return current_vault()


def test_what_a_newer_key_made_opens_and_matches_at_once(running: Vault, keyset: Path) -> None:
    row, other = row_id(), row_id()
    newer = rotate(keyset)
    sealed = newer.seal(NUMBER, row)
    assert running.open(sealed, row) == NUMBER
    assert running.matches(NUMBER, newer.fingerprint(NUMBER))
    assert not running.matches("4111111111111111", newer.fingerprint(NUMBER))
    with pytest.raises(VaultError, match="belongs to another row"):
        running.open(sealed, other)
    assert newer.matches(NUMBER, running.fingerprint(NUMBER))


def test_without_a_newer_key_nothing_else_opens_or_matches(running: Vault, opened: Vault, tmp_path: Path) -> None:
    create_keyset(tmp_path / "other.json")
    stranger, row = opened_at(tmp_path / "other.json"), row_id()
    for vault in (running, opened):
        assert not vault.matches(NUMBER, stranger.fingerprint(NUMBER))
        assert not vault.matches("4111111111111111", vault.fingerprint(NUMBER))
        with pytest.raises(VaultError, match=f"the vault has no key {stranger.primary}. See manage.py"):
            vault.open(stranger.seal(NUMBER, row), row)
        with pytest.raises(VaultError, match="altered"):
            vault.open(b"never sealed", row)


def test_fingerprints_are_of_every_key_the_primary_ones_first(keyset: Path) -> None:
    first = opened_at(keyset)
    second = rotate(keyset)
    third = rotate(keyset)
    found = third.fingerprints(NUMBER)
    assert found[0] == third.fingerprint(NUMBER) == third.fingerprint(NUMBER.reveal())
    assert sorted(found) == sorted(one.fingerprint(NUMBER) for one in (first, second, third))
    assert {len(one) for one in found} == {FINGERPRINT_BYTES}


def test_a_vault_prints_its_keys_numbers_alone(opened: Vault) -> None:
    assert repr(opened) == f"Vault(primary={opened.primary}, keys=frozenset({{{opened.primary}}}))"


@pytest.fixture
def source(keyset: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[sealing._Source, list[float]]:
    """A keyset's source and its clock, which a test moves."""
    at = [1_000.0]
    monkeypatch.setattr(sealing, "time", SimpleNamespace(monotonic=lambda: at[0]))
    return sealing._Source(KeysetLocation(path=keyset)), at


def test_a_keyset_is_looked_at_once_a_second(source: tuple[sealing._Source, list[float]], keyset: Path) -> None:
    found, at = source
    first = found.current().primary
    second = rotate(keyset).primary
    at[0] += KEYSET_CHECK_INTERVAL_S
    assert found.current().primary == first
    at[0] += 0.25
    assert found.current().primary == second
    third = rotate(keyset).primary
    at[0] += KEYSET_CHECK_INTERVAL_S
    assert found.current().primary == second
    assert found.look().primary == third
    fourth = rotate(keyset).primary
    at[0] += KEYSET_CHECK_INTERVAL_S
    assert found.current().primary == third, "it looked a second ago"
    at[0] += 0.25
    assert found.current().primary == fourth
    assert not found._lock.locked()


def test_one_thread_looks_and_no_other_waits_for_it(
    source: tuple[sealing._Source, list[float]], keyset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, at = source
    asked: list[bool] = []

    def acquire(blocking: bool = True) -> bool:
        asked.append(blocking)
        return False

    first = found.current().primary
    rotate(keyset)
    monkeypatch.setattr(found, "_lock", SimpleNamespace(acquire=acquire))
    assert found.current().primary == first
    assert asked == []
    at[0] += 5
    assert found.current().primary == first
    assert asked == [False]


def test_an_unchanged_keyset_is_not_opened_again_and_a_broken_one_once(
    source: tuple[sealing._Source, list[float]],
    keyset: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    found, at = source
    kept = found.current()
    opens: list[KeysetLocation] = []

    def load(where: KeysetLocation, by: sealing._Source) -> Vault:
        opens.append(where)
        return load_vault(where, by)

    monkeypatch.setattr(sealing, "load_vault", load)
    at[0] += 5
    assert found.current() is found.look() is kept
    assert opens == []
    stored = keyset.read_text()
    keyset.write_text("{")
    for _ in range(2):
        at[0] += 5
        assert found.current() is kept
    assert len(opens) == 1
    assert caplog.text.count("vault_keyset_unreadable") == 1
    assert str(keyset) in caplog.text
    keyset.write_text(stored)
    assert found.look().primary == kept.primary
    assert len(opens) == 2


def test_the_settings_name_the_keysets_place(settings: Any, tmp_path: Path) -> None:
    document = keysets.build_keyset()
    settings.GATEWAY_VAULT_KEYSET_FILE = str(tmp_path / "vault.json")
    settings.GATEWAY_VAULT_KEYSET, settings.GATEWAY_VAULT_KMS = json.dumps(document), ""
    place = KeysetLocation(path=tmp_path / "vault.json", text=json.dumps(document))
    assert sealing.configured_keyset() == place
    assert current_vault().primary == document["seal"]["primaryKeyId"]
    assert not place.path.exists()
    settings.GATEWAY_VAULT_KMS = f"{__name__}:as_stored"
    assert sealing.configured_keyset() == replace(place, kms=f"{__name__}:as_stored")
    assert current_vault().primary == document["seal"]["primaryKeyId"]


def as_stored(stored: bytes) -> bytes:
    return stored

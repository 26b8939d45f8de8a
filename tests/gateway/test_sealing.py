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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from gateway.core.identifiers import row_id
from gateway.core.secret import Secret
from gateway.vault import keysets
from gateway.vault.keysets import KeysetLocation
from gateway.vault.sealing import FINGERPRINT_BYTES, Vault, VaultError, current_vault, load_vault

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

"""The vault's keyset as a document and as a file: what is added, promoted, removed and written, and what is refused.

Source: design goals R8, R9.
"""

from __future__ import annotations

import copy
import json
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.core import clock
from gateway.vault import keysets
from gateway.vault.keysets import KeysetDocument, KeysetLocation, KeysetPrimitives, VaultError

PARTS = ("seal", "fingerprint")
AT = datetime(2026, 1, 7, 12, 30, 15, 250_000, tzinfo=UTC)


def ids(document: KeysetDocument, part: str = "seal") -> list[int]:
    return [key["keyId"] for key in document[part]["key"]]


def primaries(document: KeysetDocument) -> list[int]:
    return [document[part]["primaryKeyId"] for part in PARTS]


def secrets(document: KeysetDocument) -> list[str]:
    return [key["keyData"]["value"] for part in PARTS for key in document[part]["key"]]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> tuple[KeysetDocument, int, int]:
    """A keyset of two pairs, and their ids; the first is the primary one."""
    monkeypatch.setattr(clock, "real_now", lambda: AT)
    first = keysets.build_keyset()
    both, added = keysets.add_key_pair(first)
    return both, first["seal"]["primaryKeyId"], added


# --- the document -------------------------------------------------------------------------------------------------


def test_a_new_keyset_has_one_pair_that_is_primary_from_now_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: AT)
    document = keysets.build_keyset()
    (pair,) = keysets.list_key_pairs(document)
    assert (pair.primary, pair.since) == (True, AT)
    assert primaries(document) == [pair.id, pair.id]
    assert ids(document, "fingerprint") == [pair.id]
    assert keysets.open_keyset(document)
    assert [document[part]["key"][0]["keyData"]["typeUrl"].rpartition(".")[2] for part in PARTS] == [
        "AesGcmKey", "HkdfPrfKey",
    ]  # fmt: skip


def test_an_added_pair_is_another_key_and_not_primary_yet(two: tuple[KeysetDocument, int, int]) -> None:
    both, first, added = two
    assert ids(both, "seal") == ids(both, "fingerprint") == [first, added]
    assert first != added
    assert len(set(secrets(both))) == 4
    assert primaries(both) == [first, first]
    assert [(pair.id, pair.primary, pair.since) for pair in keysets.list_key_pairs(both)] == [
        (first, True, AT), (added, False, None),
    ]  # fmt: skip


def test_an_id_that_is_taken_is_not_given_again(
    two: tuple[KeysetDocument, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are random: two keys of one id, and what one sealed would be tried with the other."""
    both, first, added = two
    make = keysets.tink.new_keyset_handle
    drawn: list[int] = []

    def draw(template: Any) -> Any:
        return make(template)

    def serialize(handle: Any, token: Any) -> str:
        text = json.loads(write(handle, token))
        drawn.append((first, 1, added, 2, 77, 3)[len(drawn)])
        text["key"][0]["keyId"] = drawn[-1]
        return json.dumps(text)

    write = keysets.json_proto_keyset_format.serialize
    monkeypatch.setattr(keysets.tink, "new_keyset_handle", draw)
    monkeypatch.setattr(keysets.json_proto_keyset_format, "serialize", serialize)
    third, key = keysets.add_key_pair(both)
    assert key == 77
    assert ids(third, "seal") == ids(third, "fingerprint") == [first, added, 77]


def test_a_promoted_pair_is_primary_in_both_parts_and_its_date_is_kept(
    two: tuple[KeysetDocument, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    both, first, added = two
    later = datetime(2026, 2, 1, tzinfo=UTC)
    monkeypatch.setattr(clock, "real_now", lambda: later)
    promoted = keysets.promote_key_pair(both, added)
    assert primaries(promoted) == [added, added]
    assert {pair.id: (pair.primary, pair.since) for pair in keysets.list_key_pairs(promoted)} == {
        first: (False, AT),
        added: (True, later),
    }
    assert keysets.find_superseded_at(promoted, first) == later
    assert keysets.find_superseded_at(promoted, added) is None


def test_a_removed_pair_leaves_both_parts_and_its_date(two: tuple[KeysetDocument, int, int]) -> None:
    both, first, added = two
    removed = keysets.remove_key_pair(keysets.promote_key_pair(both, added), first)
    assert ids(removed, "seal") == ids(removed, "fingerprint") == [added]
    assert set(removed["since"]) == {str(added)}
    assert keysets.open_keyset(removed)


@pytest.mark.parametrize("part", PARTS)
def test_a_key_that_is_primary_in_either_part_is_not_removed(two: tuple[KeysetDocument, int, int], part: str) -> None:
    both, first, added = two
    other = next(one for one in PARTS if one != part)
    both[other]["primaryKeyId"] = added
    with pytest.raises(VaultError, match=f"Key {first} is the primary key"):
        keysets.remove_key_pair(both, first)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("change", [keysets.promote_key_pair, keysets.remove_key_pair])
def test_a_key_that_one_part_lacks_is_unknown(
    two: tuple[KeysetDocument, int, int], part: str, change: Callable[[KeysetDocument, int], KeysetDocument]
) -> None:
    both, first, added = two
    del both[part]["key"][1]
    with pytest.raises(VaultError, match=f"has no key {added}; it has {first}"):
        change(both, added)


def test_what_is_made_of_a_keyset_leaves_that_one_as_it_was(two: tuple[KeysetDocument, int, int]) -> None:
    both, _, added = two
    before = copy.deepcopy(both)
    keysets.add_key_pair(both)
    keysets.promote_key_pair(both, added)
    keysets.remove_key_pair(both, added)
    assert both == before


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_no_library_reads_does_not_open(two: tuple[KeysetDocument, int, int], part: str) -> None:
    both, *_ = two
    both[part]["key"][0]["keyData"]["value"] = "AAAA"
    with pytest.raises(VaultError, match="does not open") as caught:
        keysets.open_keyset(both)
    assert caught.value.__suppress_context__


# --- where it is stored -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kms", "named", "changeable"),
    [
        ("", "", "/keys/vault.json", True),
        ("{}", "", "in GATEWAY_VAULT_KEYSET", False),
        ("", "our.kms:open", "/keys/vault.json, opened by our.kms:open", False),
        ("{}", "our.kms:open", "in GATEWAY_VAULT_KEYSET, opened by our.kms:open", False),
    ],
)
def test_only_a_plain_file_is_changed_from_here(text: str, kms: str, named: str, changeable: bool) -> None:
    place = KeysetLocation(path=Path("/keys/vault.json"), text=text, kms=kms)
    assert (str(place), place.is_changeable) == (named, changeable)
    if not changeable:
        for change in (lambda: keysets.create_keyset_file(place), lambda: keysets.change_keyset_file(place, dict)):
            with pytest.raises(VaultError, match="it is changed where it lives"):
                change()


def test_a_stamp_changes_with_the_file_and_with_nothing_else(tmp_path: Path) -> None:
    place = KeysetLocation(path=tmp_path / "vault.json")
    assert place.stamp() is None
    place.path.write_text("a")
    os.utime(place.path, ns=(1_000, 1_000))
    first = place.stamp()
    assert first == place.stamp()
    os.utime(place.path, ns=(2_000, 2_000))
    touched = place.stamp()
    place.path.write_text("ab")
    os.utime(place.path, ns=(2_000, 2_000))
    longer = place.stamp()
    other = tmp_path / "other"
    other.write_text("ab")
    os.utime(other, ns=(2_000, 2_000))
    other.replace(place.path)
    assert len({first, touched, longer, place.stamp()}) == 4
    held = KeysetLocation(path=tmp_path / "none", text="{}")
    assert held.stamp() == KeysetLocation(path=place.path, text="{}").stamp() is not None


def told(document: Any) -> KeysetLocation:
    return KeysetLocation(path=Path("/nowhere"), text=json.dumps(document))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda document, part: document.pop(part), "KeyError"),
        (lambda document, part: document[part].pop("primaryKeyId"), "KeyError"),
        (lambda document, part: document[part].update(primaryKeyId=7), "ValueError"),
        (lambda document, part: document[part].update(key=[]), "ValueError"),
        (lambda document, part: document[part].update(key=None), "TypeError"),
    ],
)
def test_a_part_without_its_primary_key_is_not_read(
    two: tuple[KeysetDocument, int, int], part: str, change: Callable[[KeysetDocument, str], Any], why: str
) -> None:
    both, *_ = two
    change(both, part)
    with pytest.raises(VaultError, match=f"cannot be read: {why}"):
        told(both).read()


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_several_keys_that_differ_are_not_paired_by_guess(
    two: tuple[KeysetDocument, int, int], part: str
) -> None:
    """What belongs together cannot be told: fingerprints name no key."""
    both, *_ = two
    del both[part]["key"][1]
    with pytest.raises(VaultError, match="do not have the same keys"):
        told(both).read()


def test_what_is_read_is_what_was_stored(two: tuple[KeysetDocument, int, int]) -> None:
    assert told(two[0]).read() == two[0]


# --- the file -----------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> KeysetLocation:
    found = KeysetLocation(path=tmp_path / "deep" / "below" / "vault.json")
    keysets.create_keyset_file(found)
    return found


def test_a_changed_file_is_what_was_made_of_it_and_nothing_lies_beside_it(place: KeysetLocation) -> None:
    before = place.read()
    made = keysets.change_keyset_file(place, lambda document: keysets.add_key_pair(document)[0])
    assert place.read() == made
    assert secrets(made)[0] == secrets(before)[0]
    assert len(ids(made)) == 2
    assert list(place.path.parent.iterdir()) == [place.path]
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("fault", [RuntimeError, VaultError])
def test_a_change_that_fails_leaves_the_file_and_nothing_beside_it(
    place: KeysetLocation, fault: type[Exception]
) -> None:
    before = place.path.read_bytes()

    def fail(_document: KeysetDocument) -> KeysetDocument:
        raise fault

    with pytest.raises(fault):
        keysets.change_keyset_file(place, fail)
    assert place.path.read_bytes() == before
    assert list(place.path.parent.iterdir()) == [place.path]
    keysets.change_keyset_file(place, dict)


def test_a_change_that_would_not_open_is_not_written(place: KeysetLocation) -> None:
    before = place.path.read_bytes()

    def spoil(document: KeysetDocument) -> KeysetDocument:
        document["seal"]["key"][0]["keyData"]["value"] = "AAAA"
        return document

    with pytest.raises(VaultError, match="does not open"):
        keysets.change_keyset_file(place, spoil)
    assert place.path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to somebody else")
def test_what_root_changes_stays_its_owners(place: KeysetLocation) -> None:
    os.chown(place.path, 12_345, 23_456)
    keysets.change_keyset_file(place, lambda document: keysets.add_key_pair(document)[0])
    found = place.path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12_345, 23_456, 0o600)


def test_a_keyset_is_on_the_disk_before_it_is_in_its_place(
    place: KeysetLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut between the two would leave an empty keyset; the name is synced after it."""
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        steps.append(f"{kind} {os.fstat(descriptor).st_size > 0}")
        sync(descriptor)

    def replaced(self: Path, target: Path) -> Path:
        steps.append("replaced")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    keysets.change_keyset_file(place, dict)
    assert steps == ["file True", "replaced", "folder True"]


def test_a_keyset_is_changed_by_one_at_a_time(place: KeysetLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read, changed and written under one lock of its folder, whichever link leads there."""
    link = place.path.parent.parent / "link.json"
    link.symlink_to(place.path)
    locked: list[tuple[int, int]] = []
    lock = keysets.fcntl.flock

    def take(descriptor: int, kind: int) -> None:
        locked.append((os.fstat(descriptor).st_ino, kind))
        lock(descriptor, kind)

    def edit(document: KeysetDocument) -> KeysetDocument:
        assert locked == [(place.path.parent.stat().st_ino, keysets.fcntl.LOCK_EX)]
        descriptor = os.open(place.path.parent, os.O_RDONLY)
        try:
            with pytest.raises(BlockingIOError):
                lock(descriptor, keysets.fcntl.LOCK_EX | keysets.fcntl.LOCK_NB)
        finally:
            os.close(descriptor)
        return document

    monkeypatch.setattr(keysets.fcntl, "flock", take)
    keysets.change_keyset_file(KeysetLocation(path=link), edit)
    assert link.is_symlink()


def opened(document: KeysetDocument) -> KeysetPrimitives:
    return keysets.open_keyset(document)


def test_each_part_is_opened_as_what_it_is(two: tuple[KeysetDocument, int, int]) -> None:
    seal, fingerprint = opened(two[0])
    assert seal.decrypt(seal.encrypt(b"number", b"row"), b"row") == b"number"
    assert len(fingerprint.primary().compute(b"number", 16)) == 16
    assert set(fingerprint.all()) == {two[1], two[2]}


# --- the add-on of a KMS ------------------------------------------------------------------------------------------


def unwrap(stored: bytes) -> bytes:
    return stored[::-1]


def test_a_kms_is_given_what_is_stored_and_its_answer_is_the_keyset(two: tuple[KeysetDocument, int, int]) -> None:
    text = json.dumps(two[0])[::-1]
    assert KeysetLocation(path=Path("/nowhere"), text=text, kms=f"{__name__}:unwrap").read() == two[0]

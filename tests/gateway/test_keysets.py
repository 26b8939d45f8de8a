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


# --- first, what would wait or draw for ever ----------------------------------------------------------------------


def test_a_pair_is_drawn_once_where_its_id_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    make = keysets.tink.new_keyset_handle
    drawn: list[Any] = []

    def draw(template: Any) -> Any:
        drawn.append(template)
        assert len(drawn) <= 4
        return make(template)

    monkeypatch.setattr(keysets.tink, "new_keyset_handle", draw)
    keysets.add_key_pair(keysets.build_keyset())
    assert len(drawn) == 4, "two keys for each of two pairs"


@pytest.mark.parametrize("fails", [False, True])
def test_a_changed_keysets_folder_is_free_again(tmp_path: Path, fails: bool) -> None:
    place = KeysetLocation(path=tmp_path / "vault.json")
    keysets.create_keyset_file(place)
    if fails:
        with pytest.raises(KeyError):
            keysets.change_keyset_file(place, lambda document: document["nothing"])
    else:
        keysets.change_keyset_file(place, dict)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        keysets.fcntl.flock(descriptor, keysets.fcntl.LOCK_EX | keysets.fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


# --- the document -------------------------------------------------------------------------------------------------


def a_document(*ids: int, primary: int, **since: str) -> KeysetDocument:
    """A keyset whose keys are nothing but their ids; ``since``: k7="2026-01-01"."""
    parts = {part: {"primaryKeyId": primary, "key": [{"keyId": key} for key in ids]} for part in PARTS}
    return {**parts, "since": {name[1:]: f"{day}T00:00:00+00:00" for name, day in since.items()}}


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def test_keys_are_listed_in_their_order_with_their_date_and_one_is_primary() -> None:
    document = a_document(300, 500, 900, primary=500, k500="2026-01-02", k300="2026-01-01")
    assert keysets.list_key_pairs(document) == [
        keysets.KeyPair(id=300, primary=False, since=day(1)),
        keysets.KeyPair(id=500, primary=True, since=day(2)),
        keysets.KeyPair(id=900, primary=False, since=None),
    ]
    del document["since"]
    assert {pair.since for pair in keysets.list_key_pairs(document)} == {None}


@pytest.mark.parametrize("key", [300, 900])
def test_a_key_is_found_by_its_number_on_either_side_of_the_primary_one(key: int) -> None:
    document = a_document(300, 500, 900, primary=500)
    asked = int(str(key))  # equal, and not the same object
    assert keysets.promote_key_pair(document, asked)["seal"]["primaryKeyId"] == key
    left = [one for one in (300, 500, 900) if one != key]
    assert [ids(keysets.remove_key_pair(document, asked), part) for part in PARTS] == [left, left]
    with pytest.raises(VaultError, match="Key 500 is the primary key"):
        keysets.remove_key_pair(document, int("500"))


@pytest.mark.parametrize(
    ("key", "superseded"), [(300, day(2)), (500, day(4)), (700, None), (900, day(1)), (999, day(1))]
)
def test_a_key_is_superseded_by_the_first_that_became_primary_after_it(key: int, superseded: datetime | None) -> None:
    """900 never was primary, or not since dates are kept."""
    document = a_document(300, 500, 700, 900, primary=700, k300="2026-01-01", k700="2026-01-04", k500="2026-01-02")
    assert keysets.find_superseded_at(document, key) == superseded


def test_a_date_is_kept_in_milliseconds(two: tuple[KeysetDocument, int, int]) -> None:
    both, first, added = two
    assert keysets.promote_key_pair(both, added)["since"] == {
        str(first): "2026-01-07T12:30:15.250+00:00", str(added): "2026-01-07T12:30:15.250+00:00",
    }  # fmt: skip


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


def test_a_keyset_in_the_environment_goes_before_the_file(tmp_path: Path, two: tuple[KeysetDocument, int, int]) -> None:
    keysets.create_keyset_file(KeysetLocation(path=tmp_path / "vault.json"))
    place = KeysetLocation(path=tmp_path / "vault.json", text=json.dumps(two[0]))
    assert place.read() == two[0]
    assert place.stamp() == (0, 0, 0)


def test_a_keyset_that_is_missing_is_told_apart_from_one_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(VaultError, match="is missing: sealed cards cannot be opened without it") as missing:
        KeysetLocation(path=tmp_path / "none.json").read()
    with pytest.raises(VaultError, match="cannot be read: Is a directory") as unreadable:
        KeysetLocation(path=tmp_path).read()
    assert missing.value.__suppress_context__
    assert unreadable.value.__suppress_context__


# --- the file -----------------------------------------------------------------------------------------------------


def test_a_keyset_is_made_in_a_folder_that_is_there_and_never_over_another(place: KeysetLocation) -> None:
    second = KeysetLocation(path=place.path.with_name("second.json"))
    keysets.create_keyset_file(second)
    assert second.read()["seal"]["primaryKeyId"]
    before = place.path.read_bytes()
    with pytest.raises(VaultError, match=r"There is a keyset at .* already"):
        keysets.create_keyset_file(place)
    assert place.path.read_bytes() == before
    (place.path.parent / "file").touch()
    for change in (keysets.create_keyset_file, lambda where: keysets.change_keyset_file(where, dict)):
        with pytest.raises(VaultError, match=r"cannot be written: (Not a directory|File exists)"):
            change(KeysetLocation(path=place.path.parent / "file" / "below" / "vault.json"))


@pytest.mark.parametrize(
    ("own", "given"),
    [((0, 0), False), ((1, 0), True), ((0, 1), True), ((-1, 0), True), ((0, -1), True)],
    ids=str,
)
def test_a_changed_file_is_given_to_its_owner_by_anybody_else_alone(
    place: KeysetLocation, monkeypatch: pytest.MonkeyPatch, own: tuple[int, int], given: bool
) -> None:
    """``own``: how far the user and group of the process are from the file's."""
    owner = place.path.stat()
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _, user, group: calls.append((user, group)))
    monkeypatch.setattr(os, "geteuid", lambda: owner.st_uid + own[0])
    monkeypatch.setattr(os, "getegid", lambda: owner.st_gid + own[1])
    keysets.change_keyset_file(place, dict)
    assert calls == ([(owner.st_uid, owner.st_gid)] if given else [])
    keysets.create_keyset_file(KeysetLocation(path=place.path.with_name("new.json")))
    assert len(calls) == int(given), "a new one is its maker's"


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


def refuse(stored: bytes) -> bytes:
    raise ValueError(stored.decode())


@pytest.mark.parametrize(("name", "why"), [("refuse", "failed: ValueError"), ("nowhere", "nowhere")])
def test_a_kms_that_fails_is_named_without_what_it_said(name: str, why: str) -> None:
    with pytest.raises(VaultError, match=f"{__name__}:{name}") as caught:
        KeysetLocation(path=Path("/nowhere"), text="wrapped", kms=f"{__name__}:{name}").read()
    assert why in str(caught.value)
    assert "wrapped" not in str(caught.value)
    assert caught.value.__suppress_context__

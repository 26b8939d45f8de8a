"""The vault's keys through their life: rotated while payments run, retired, lost, stored elsewhere.

Source: design goals R8, R9.
"""

from __future__ import annotations

import base64
import itertools
import json
import stat
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.test import override_settings

from gateway.core.identifiers import row_id
from gateway.core.secret import Secret
from gateway.models import AuditEntry, Payment, Status
from gateway.vault import keysets, rewrap
from gateway.vault.keysets import KeysetLocation
from gateway.vault.sealing import Vault, VaultError, configured_keyset, current_vault, load_vault, parse_key_id
from gateway.wallets import channel_tokens, sandbox_tokens
from tests.support.client import payment
from tests.support.doc_blocks import DOCS
from tests.support.fixtures import Shop
from tests.support.receivers import answering, receiving
from tests.support.threads import at_once, times

PAYERS = 3


@pytest.fixture(autouse=True)
def keyset(tmp_path: Path) -> Iterator[Path]:
    """A keyset file of the test's own."""
    path = tmp_path / "vault.json"
    with override_settings(GATEWAY_VAULT_KEYSET_FILE=str(path)):
        yield path


def command(*options: str) -> str:
    out = StringIO()
    call_command("vault_key", *options, stdout=out)
    return out.getvalue()


def primary() -> int:
    return next(key.id for key in keysets.list_key_pairs(configured_keyset().read()) if key.primary)


def ids() -> list[int]:
    return [key.id for key in keysets.list_key_pairs(configured_keyset().read())]


def in_own_thread(work: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


# --- while payments run -----------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_no_payment_fails_while_keys_are_rotated_resealed_and_retired(committed: Shop) -> None:
    """Goals R9: payments and rebills, which open the sealed card, go on through two rotations."""
    current_vault()
    first, over = ids()[0], threading.Event()
    answers: Counter[tuple[str, int, str]] = Counter()
    faults: list[object] = []

    def shopper() -> None:
        for number in itertools.count():
            if over.is_set():
                return
            try:
                paid = committed.api.pay(amount=f"{number % 90 + 10}.00")
                rebilled = committed.api.follow(paid.id, "RB", "5.00")
                oldest = committed.api.follow(oldest_id, "RB", "1.00")
                for what, answer in (("DB", paid), ("RB", rebilled), ("RB, oldest", oldest)):
                    answers[what, answer.status, answer.code] += 1
            except Exception as fault:
                faults.append(fault)
                return

    oldest_id = committed.api.pay().id
    threads = [in_own_thread(shopper) for _ in range(PAYERS)]
    try:
        for _ in range(2):
            before = ids()
            command("--rotate")
            command("--reseal")
            for key in before:
                command("--retire", str(key))
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not faults
    assert {(status, code) for _, status, code in answers} == {(200, "000.100.110")}
    assert min(answers[what, 200, "000.100.110"] for what in ("DB", "RB", "RB, oldest")) > 20
    assert not Payment.objects.exclude(status=Status.APPROVED).exists()
    assert first not in ids()
    assert len(ids()) == 1
    assert set(rewrap.count_sealed_by_key()) == {primary()}
    for row in Payment.objects.filter(means_sealed__isnull=False):
        assert row.means_fingerprint is not None
        assert current_vault().open(row.means_sealed, row.id).reveal() == "4200000000000000"
        assert current_vault().matches("4200000000000000", row.means_fingerprint)


@pytest.mark.django_db(transaction=True)
def test_an_idempotency_key_is_replayed_after_a_rotation(committed: Shop) -> None:
    """D20: the body is compared with any key of the vault; the key that made the fingerprint stays for 24 hours."""
    paid = committed.api.post("/v1/payments", _fields(), Idempotency_Key="k-1")
    old = primary()
    command("--rotate")
    again = committed.api.post("/v1/payments", _fields(), Idempotency_Key="k-1")
    assert again.text == paid.text
    command("--reseal")
    with pytest.raises(CommandError, match="idempotency keys"):
        command("--retire", str(old))
    command("--retire", str(old), "--force")
    assert committed.api.post("/v1/payments", _fields(), Idempotency_Key="k-1").status == 400
    assert Payment.objects.count() == 1


@pytest.mark.django_db
def test_a_running_process_opens_at_once_what_another_sealed_with_a_new_key() -> None:
    """Goals R9: two web workers, one of which has not looked at the file yet."""
    row = _row()
    one = current_vault()
    command("--rotate")
    other = load_vault(configured_keyset())
    assert other.primary != one.primary
    assert one.open(other.seal(Secret("4200000000000000"), row), row).reveal() == "4200000000000000"
    assert one.matches("body", other.fingerprint("body"))
    assert other.matches("body", one.fingerprint("body"))
    assert current_vault().primary == other.primary


@pytest.mark.django_db(transaction=True)
def test_two_rotations_at_once_lose_no_key() -> None:
    """Goals R9."""
    current_vault()
    at_once(*times(4, lambda: command("--rotate")))
    assert len(ids()) == len(set(ids())) == 5


def test_a_keyset_that_cannot_be_read_takes_no_keys_away(keyset: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Goals R9: a slip of the operator stops no payment; it is told once."""
    row = _row()
    running = current_vault()
    sealed = running.seal(Secret("4200000000000000"), row)
    kept = keyset.read_text()
    keyset.write_text("{")
    stray = load_of(kept_text=kept).seal(Secret("4200000000000000"), _row())
    for _ in range(2):
        with pytest.raises(VaultError):
            current_vault().open(stray[:-1], row)
    assert current_vault().open(sealed, row).reveal() == "4200000000000000"
    assert caplog.text.count("vault_keyset_unreadable") == 1
    keyset.write_text(kept)
    assert current_vault().open(sealed, row).reveal() == "4200000000000000"


def test_a_keyset_that_is_missing_is_told_apart_from_one_that_cannot_be_read(keyset: Path) -> None:
    place = configured_keyset()
    with pytest.raises(VaultError, match="is missing: sealed cards cannot be opened without it"):
        place.read()
    keyset.mkdir()
    with pytest.raises(VaultError, match="cannot be read: Is a directory"):
        place.read()


# --- making, showing, retiring ----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_keyset_is_its_owners_alone_also_after_a_rotation(keyset: Path) -> None:
    """Goals R8."""
    command("--create")
    made = keyset.stat()
    command("--rotate")
    assert stat.S_IMODE(made.st_mode) == stat.S_IMODE(keyset.stat().st_mode) == 0o600
    assert [path.name for path in keyset.parent.iterdir()] == [keyset.name]


def test_a_keyset_is_never_replaced_by_a_new_one(keyset: Path) -> None:
    """Goals R9."""
    command("--create")
    kept = keyset.read_bytes()
    with pytest.raises(CommandError, match="already"):
        command("--create")
    assert keyset.read_bytes() == kept


@pytest.mark.django_db
def test_a_rotation_keeps_the_link_through_which_the_keyset_is_found(keyset: Path, tmp_path: Path) -> None:
    """A mounted secret is often a link."""
    command("--create")
    keyset.rename(tmp_path / "real.json")
    keyset.symlink_to(tmp_path / "real.json")
    command("--rotate")
    assert keyset.is_symlink()
    assert len(ids()) == 2


@pytest.mark.django_db
def test_what_is_shown_tells_ids_and_numbers_and_no_key(shop: Shop, keyset: Path) -> None:
    """Goals R8."""
    shop.api.pay()
    old = primary()
    command("--rotate")
    load_of(kept_text=keyset.read_text())
    shown = command("--show")
    assert shown == command()
    assert any(str(old) in line and "older" in line and "1 value (payments 1)" in line for line in shown.splitlines())
    assert any(str(primary()) in line and "primary" in line and "0 values" in line for line in shown.splitlines())
    document = configured_keyset().read()
    for part in keysets.KEYSET_PARTS:
        for key in document[part]["key"]:
            assert key["keyData"]["value"][:12] not in shown


@pytest.mark.django_db
def test_every_change_of_keys_stands_in_the_audit_trail(shop: Shop) -> None:
    """Source: docs/back-office.md (audit trail). Keys are named by their ids, and nothing of them is told."""
    current_vault()
    first = primary()
    command("--rotate")
    second = primary()
    command("--add")
    third = next(key for key in ids() if key not in (first, second))
    command("--promote", str(third))
    command("--retire", str(first), "--force")
    entries = list(AuditEntry.objects.filter(subject="vaultkey").order_by("id"))
    assert [(entry.action, entry.subject_id) for entry in entries] == [
        ("rotate", str(second)),
        ("add", str(third)),
        ("promote", str(third)),
        ("retire", str(first)),
    ]
    assert entries[0].before == {"primary": first, "keys": [first]}
    assert entries[0].after == {"primary": second, "keys": sorted([first, second])}
    assert entries[3].after == {"primary": third, "keys": sorted([second, third]), "forced": True, "lost": 0}
    assert {entry.actor for entry in entries} == {"command line"}


def test_a_key_is_retired_only_when_no_card_needs_it(shop: Shop) -> None:
    """Goals R9."""
    shop.api.pay()
    old = primary()
    with pytest.raises(CommandError, match="primary key"):
        command("--retire", str(old))
    with pytest.raises(CommandError, match="no key 1;"):
        command("--retire", "1")
    command("--rotate")
    with pytest.raises(CommandError, match=f"Key {old} still holds 1 value"):
        command("--retire", str(old))
    assert command("--retire", str(old), "--force").endswith("Lost with it: 1 value.\n")
    assert old not in ids()


@pytest.mark.django_db
def test_a_lost_key_is_said_clearly_and_begins_no_payment(shop: Shop) -> None:
    """Goals R9: which key, how many rows, what to do."""
    paid = shop.api.pay()
    old = primary()
    command("--rotate")
    command("--retire", str(old), "--force")
    refused = shop.api.follow(paid.id, "RB", "5.00")
    assert (refused.status, refused.code) == (400, "900.100.205")
    assert "id" not in refused.body
    assert Payment.objects.count() == 1
    assert shop.api.follow(paid.id, "RF", "5.00").status == 200
    shown = command("--show")
    assert f"key {old:>10}  MISSING: 1 value (payments 1) cannot be opened" in shown
    with pytest.raises(CommandError, match="1 value did not open"):
        command("--reseal")
    with pytest.raises(VaultError, match=f"no key {old}"):
        _open(paid.id)


@pytest.mark.django_db
def test_a_card_copied_to_another_payment_does_not_open(shop: Shop) -> None:
    """Goals R8: a sealed value is bound to its row."""
    one, other = shop.api.pay(), shop.api.pay(card__number="4111111111111111")
    Payment.objects.filter(pk=one.id).update(means_sealed=Payment.objects.get(pk=other.id).means_sealed)
    assert shop.api.follow(one.id, "RB", "5.00").code == "900.100.205"
    with pytest.raises(VaultError, match="another row"):
        _open(one.id)


@pytest.mark.django_db
def test_an_interrupted_reseal_goes_on_where_it_was(shop: Shop) -> None:
    """Goals R9: in batches, each done for good."""
    for _ in range(5):
        shop.api.pay()
    old = primary()
    command("--rotate")
    run = rewrap.rewrap_sealed_values(load_vault(configured_keyset()), batch=2)
    assert next(run).resealed == 2
    run.close()
    assert rewrap.count_sealed_by_key() == {old: 3, primary(): 2}
    assert "3 values sealed anew" in command("--reseal")
    assert rewrap.count_sealed_by_key() == {primary(): 5}
    assert "0 values sealed anew" in command("--reseal")


@pytest.mark.django_db
def test_several_nodes_get_a_key_before_it_is_used(shop: Shop) -> None:
    """docs/vault.md, several nodes."""
    old = primary_of_new_vault()
    added = int(command("--add").split()[1])
    assert ids() == [old, added]
    assert primary() == old
    assert load_vault(configured_keyset()).primary == old
    command("--promote", str(added))
    assert primary() == added
    paid = shop.api.pay()
    assert parse_key_id(Payment.objects.get(pk=paid.id).means_sealed or b"") in ids()


def test_every_sealed_column_is_resealed() -> None:
    """Goals R9: none can be forgotten."""
    columns = {
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.BinaryField) and field.name.endswith("sealed")
    }
    assert columns == {(column.model, column.sealed) for column in rewrap.SEALED_COLUMNS}


# --- keys that live elsewhere -----------------------------------------------------------------------------------------


EMPTY = json.dumps({part: {"key": []} for part in keysets.KEYSET_PARTS})


def unwrap(stored: bytes) -> bytes:
    """A KMS of the test's: base64."""
    return base64.b64decode(stored, validate=True)


def broken(stored: bytes) -> bytes:
    raise RuntimeError(f"cannot unwrap {stored!r}")


def test_keys_come_from_the_environment(keyset: Path) -> None:
    """Goals R9: the JSON itself goes before the file."""
    text = json.dumps(keysets.build_keyset())
    with override_settings(GATEWAY_VAULT_KEYSET=text):
        row = _row()
        assert (
            current_vault().open(current_vault().seal(Secret("4200000000000000"), row), row).reveal()
            == "4200000000000000"
        )
        assert not keyset.exists()
        for option in (["--create"], ["--rotate"], ["--add"], ["--promote", "1"]):
            with pytest.raises(CommandError, match="GATEWAY_VAULT_KEYSET: it is changed where it lives"):
                command(*option)


@pytest.mark.parametrize("stored_in", ["file", "environment"])
def test_a_kms_makes_the_stored_keyset_plain(keyset: Path, stored_in: str) -> None:
    """Goals R9: the stored bytes go to an add-on, its answer is the keyset."""
    wrapped = base64.b64encode(json.dumps(keysets.build_keyset()).encode())
    text = wrapped.decode() if stored_in == "environment" else ""
    if not text:
        keyset.write_bytes(wrapped)
    with override_settings(GATEWAY_VAULT_KEYSET=text, GATEWAY_VAULT_KMS=f"{__name__}:unwrap"):
        row = _row()
        assert (
            current_vault().open(current_vault().seal(Secret("4200000000000000"), row), row).reveal()
            == "4200000000000000"
        )
        with pytest.raises(CommandError, match="it is changed where it lives"):
            command("--rotate")


def test_the_kms_that_the_documentation_shows_is_asked(
    keyset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/vault.md: a module of its reader's, with the reader's address and token."""
    text = (DOCS / "vault.md").read_text(encoding="utf-8")
    shown = textwrap.dedent(text[text.index("    # our_kms.py") :].partition("\n\nSuch a keyset")[0])
    keyset.write_bytes(b"wrapped")
    (tmp_path / "kms").write_text("token 4711\n")
    with receiving(answering(200, json.dumps(keysets.build_keyset()).encode())) as kms:
        shown = shown.replace("https://kms.internal", kms.url).replace("/run/secrets/kms", str(tmp_path / "kms"))
        (tmp_path / "our_kms.py").write_text(shown)
        monkeypatch.syspath_prepend(tmp_path)
        with override_settings(GATEWAY_VAULT_KMS="our_kms:unwrap"):
            assert current_vault().seal(Secret("4200000000000000"), _row())
    (asked,) = kms.requests
    assert b"Bearer token 4711" in asked
    assert asked.endswith(b"wrapped")


@pytest.mark.parametrize("name", ["broken", "nothing_there", ""])
def test_a_kms_that_fails_is_named_and_what_it_said_is_not(keyset: Path, name: str) -> None:
    """Goals R8: its message could hold the keyset."""
    keyset.write_text("wrapped")
    with override_settings(GATEWAY_VAULT_KMS=f"{__name__}:{name}"), pytest.raises(VaultError) as fault:
        current_vault()
    assert f"{__name__}:{name}" in str(fault.value)
    assert "wrapped" not in str(fault.value)
    assert fault.value.__suppress_context__


@pytest.mark.parametrize("text", ["", "{", "{}", '{"seal": 1, "fingerprint": 2}', "[]", EMPTY])
def test_what_is_no_keyset_is_refused(keyset: Path, text: str) -> None:
    keyset.write_text(text)
    with pytest.raises(VaultError, match="cannot be read"):
        configured_keyset().read()


def test_a_missing_keyset_is_an_error_in_live(live: None, keyset: Path) -> None:
    """Goals R9: a new one would hide that the old one is lost."""
    with pytest.raises(VaultError, match="is missing"):
        current_vault()
    assert not keyset.exists()


def test_a_keyset_of_the_first_kind_gets_one_id_for_its_two_keys() -> None:
    """Keysets whose two parts were made apart."""
    document: dict[str, Any] = keysets.build_keyset()
    document["fingerprint"]["primaryKeyId"] = document["fingerprint"]["key"][0]["keyId"] = 7
    del document["since"]
    where = KeysetLocation(path=Path("/nowhere"), text=json.dumps(document))
    paired = where.read()
    assert paired["fingerprint"]["primaryKeyId"] == paired["seal"]["primaryKeyId"]
    assert load_vault(where).matches("x", load_vault(where).fingerprint("x"))


def _fields() -> dict[str, str]:
    return payment()


def _row() -> UUID:
    return row_id()


def _open(ident: str) -> Secret:
    row = Payment.objects.get(pk=ident)
    assert row.means_sealed is not None
    return current_vault().open(row.means_sealed, row.id)


def primary_of_new_vault() -> int:
    current_vault()
    return primary()


def load_of(*, kept_text: str) -> Vault:
    return load_vault(KeysetLocation(path=Path("/nowhere"), text=kept_text))


@pytest.mark.django_db(transaction=True)
def test_a_wallets_key_is_resealed_and_goes_on_opening_tokens(committed: Shop) -> None:
    """Goals R9: a channel's keys for wallets lie in the vault too."""
    sandbox_tokens.generate_channel_keys(committed.channel, "ecv2")
    old = primary()
    command("--rotate")
    command("--reseal")
    assert set(rewrap.count_sealed_by_key()) == {primary()}
    command("--retire", str(old))
    assert len(channel_tokens.load_usable_keys(committed.channel, "wallet2")) == 1

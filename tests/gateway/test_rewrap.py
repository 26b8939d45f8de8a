"""Rewrapping: every value is counted and sealed anew whatever the order of its row, and none that changed meanwhile.

Source: design goals R8, R9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from django.db import connection

from gateway.core.secret import Secret
from gateway.models import Payment, WebhookEndpoint
from gateway.vault import keysets, rewrap
from gateway.vault.keysets import KeysetLocation
from gateway.vault.sealing import (
    Vault,
    VaultError,
    build_sealed_prefix,
    current_vault,
    load_vault,
    parse_key_id,
)
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
SECRET, PREVIOUS = Secret("11" * 32), Secret("22" * 32)


@pytest.fixture
def place(tmp_path: Path) -> KeysetLocation:
    found = KeysetLocation(path=tmp_path / "vault.json")
    keysets.create_keyset_file(found)
    return found


def rotate(place: KeysetLocation) -> Vault:
    def promoted(document: keysets.KeysetDocument) -> keysets.KeysetDocument:
        return keysets.promote_key_pair(*keysets.add_key_pair(document))

    keysets.change_keyset_file(place, promoted)
    return load_vault(place)


def make_endpoints(shop: Shop, vault: Vault, number: int) -> list[UUID]:
    """Endpoints with two secrets each. Their ids go down while they are made, so the table's order is not theirs."""
    ids = [UUID(int=(2**128 - 1) - at) for at in range(number)]
    for ident in ids:
        WebhookEndpoint.objects.create(
            id=ident,
            merchant=shop.merchant,
            url=f"https://shop.example/{ident.hex}",
            kinds=["PAYMENT"],
            secret_sealed=vault.seal(SECRET, ident),
            previous_sealed=vault.seal(PREVIOUS, ident),
        )
    return ids


PREVIOUS_COLUMN = next(one for one in rewrap.SEALED_COLUMNS if one.sealed == "previous_sealed")


def test_a_batch_is_what_follows_the_last_one(shop: Shop, place: KeysetLocation) -> None:
    """A row that cannot be opened must not come again for ever: this stands first."""
    old = load_vault(place)
    made = sorted(make_endpoints(shop, old, 4))
    vault = rotate(place)
    WebhookEndpoint.objects.filter(pk=made[0]).update(id=UUID(int=1))
    made[0] = UUID(int=1)
    sealed = {name: vault.seal(SECRET, made[0]) for name in ("secret_sealed", "previous_sealed")}
    WebhookEndpoint.objects.create(merchant=shop.merchant, url="https://x.example", kinds=["PAYMENT"], **sealed)
    WebhookEndpoint.objects.filter(pk=made[3]).update(previous_sealed=None)

    def batch(last: UUID, most: int) -> list[UUID]:
        return [row[0] for row in rewrap._read_batch(PREVIOUS_COLUMN, vault, last, most)]

    assert batch(UUID(int=0), 9) == made[:3]
    assert batch(UUID(int=0), 2) == made[:2]
    assert batch(made[0], 9) == made[1:3]
    assert batch(made[1], 1) == [made[2]]
    assert batch(made[2], 9) == []


def test_progress_is_told_after_each_batch(shop: Shop, place: KeysetLocation) -> None:
    """Of five rows the first and the fourth cannot be opened; each has one secret more, which can."""
    old = load_vault(place)
    made = sorted(make_endpoints(shop, old, 5))
    vault = rotate(place)
    for ident in (made[0], made[3]):
        WebhookEndpoint.objects.filter(pk=ident).update(secret_sealed=old.seal(SECRET, UUID(int=9)))
    run = rewrap.rewrap_sealed_values(vault, batch=2)
    told = [(one.resealed, one.unopened) for one in islice(run, 20)]
    assert told == [(1, 1), (2, 2), (3, 2), (5, 2), (7, 2), (8, 2)]
    for row in WebhookEndpoint.objects.all():
        assert row.previous_sealed is not None
        assert vault.open(row.previous_sealed, row.pk) == PREVIOUS
        assert parse_key_id(row.previous_sealed) == vault.primary
        assert row.secret_sealed is not None
        assert (parse_key_id(row.secret_sealed) == vault.primary) is (row.pk not in (made[0], made[3]))


def test_a_row_with_the_lowest_id_is_resealed_too(shop: Shop, place: KeysetLocation) -> None:
    (made,) = make_endpoints(shop, load_vault(place), 1)
    lowest = UUID(int=1)
    vault = load_vault(place)
    WebhookEndpoint.objects.filter(pk=made).update(
        id=lowest, secret_sealed=vault.seal(SECRET, lowest), previous_sealed=None
    )
    assert [one.resealed for one in islice(rewrap.rewrap_sealed_values(rotate(place)), 20)] == [1]


def test_a_fingerprint_is_renewed_with_its_value(shop: Shop, place: KeysetLocation) -> None:
    payment = Payment.objects.get(pk=shop.api.pay().id)
    old = load_vault(place)
    number = Secret("4111111111111111")
    Payment.objects.filter(pk=payment.pk).update(
        means_sealed=old.seal(number, payment.pk), means_fingerprint=old.fingerprint(number)
    )
    vault = rotate(place)
    assert [one.resealed for one in islice(rewrap.rewrap_sealed_values(vault), 20)] == [1]
    payment.refresh_from_db()
    assert vault.open(payment.means_sealed or b"", payment.pk) == number
    assert bytes(payment.means_fingerprint or b"") == vault.fingerprint(number)


def test_two_runs_at_a_time_are_one_too_many(shop: Shop, place: KeysetLocation) -> None:
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [rewrap._LOCK])
        with pytest.raises(rewrap.RewrapRunningError):
            next(rewrap.rewrap_sealed_values(load_vault(place)))
        assert count_advisory_locks() == 0
    finally:
        other.close()


def test_a_batch_follows_the_ids_and_not_the_order_in_which_rows_were_made(shop: Shop, place: KeysetLocation) -> None:
    before = load_vault(place)
    ids = make_endpoints(shop, before, 5)
    after = rotate(place)
    *_, last = rewrap.rewrap_sealed_values(after, batch=2)
    assert (last.resealed, last.unopened) == (10, 0)
    for row in WebhookEndpoint.objects.filter(pk__in=ids):
        assert row.secret_sealed is not None
        assert row.previous_sealed is not None
        assert {parse_key_id(row.secret_sealed), parse_key_id(row.previous_sealed)} == {after.primary}
        assert after.open(row.secret_sealed, row.pk).reveal() == SECRET.reveal()
        assert after.open(row.previous_sealed, row.pk).reveal() == PREVIOUS.reveal()


def test_two_columns_of_one_kind_are_counted_together(shop: Shop, place: KeysetLocation) -> None:
    """What ``--show`` says before a key is retired: a count that is too low loses secrets."""
    vault = load_vault(place)
    first, *_ = make_endpoints(shop, vault, 3)
    WebhookEndpoint.objects.filter(pk=first).update(previous_sealed=None)
    kind = str(WebhookEndpoint._meta.verbose_name_plural)
    assert rewrap.count_sealed_by_key_and_kind() == {vault.primary: Counter({kind: 5})}
    assert rewrap.count_sealed_by_key() == {vault.primary: 5}


def test_what_no_vault_sealed_is_counted_apart(shop: Shop, place: KeysetLocation) -> None:
    vault = load_vault(place)
    first, *_ = make_endpoints(shop, vault, 2)
    WebhookEndpoint.objects.filter(pk=first).update(secret_sealed=b"\x02" + vault.seal(SECRET, first)[1:])
    assert rewrap.count_sealed_by_key() == {None: 1, vault.primary: 3}
    *_, last = rewrap.rewrap_sealed_values(rotate(place))
    assert (last.resealed, last.unopened) == (3, 1)


class Interrupted:
    """A vault during whose sealing something else happens to the row."""

    def __init__(self, vault: Vault, meanwhile: Callable[[UUID], object]) -> None:
        self._vault, self._meanwhile = vault, meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vault, name)

    def seal(self, secret: Secret, row: UUID) -> bytes:
        self._meanwhile(row)
        return self._vault.seal(secret, row)


def test_a_value_that_was_changed_meanwhile_stays_as_it_was_changed(shop: Shop, place: KeysetLocation) -> None:
    """A merchant rotates an endpoint's secret while it is read: the old one must not come back."""
    first, second = make_endpoints(shop, load_vault(place), 2)
    after = rotate(place)
    newer = after.seal(Secret("33" * 32), first)

    def change(row: UUID) -> None:
        if row == first:
            WebhookEndpoint.objects.filter(pk=first).update(secret_sealed=newer)

    *_, last = rewrap.rewrap_sealed_values(cast("Vault", Interrupted(after, change)))
    assert last.resealed == 3
    row = WebhookEndpoint.objects.get(pk=first)
    assert row.secret_sealed is not None
    assert after.open(row.secret_sealed, first).reveal() == "33" * 32
    other = WebhookEndpoint.objects.get(pk=second)
    assert other.secret_sealed is not None
    assert parse_key_id(other.secret_sealed) == after.primary


def test_a_run_that_ended_or_was_left_lets_the_next_one_begin(shop: Shop, place: KeysetLocation) -> None:
    make_endpoints(shop, load_vault(place), 2)
    after = rotate(place)
    run = rewrap.rewrap_sealed_values(after, batch=1)
    next(run)
    assert count_advisory_locks() == 1
    run.close()
    assert count_advisory_locks() == 0
    list(rewrap.rewrap_sealed_values(after))
    assert count_advisory_locks() == 0


def count_advisory_locks() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_a_value_of_another_row_under_a_newer_key_is_no_missing_key(
    shop: Shop, place: KeysetLocation, settings: Any
) -> None:
    """The error names what to do: a key that another process has added is there."""
    settings.GATEWAY_VAULT_KEYSET_FILE = str(place.path)
    running = current_vault()
    one, other = make_endpoints(shop, running, 2)
    newer = rotate(place)
    with pytest.raises(VaultError, match="belongs to another row"):
        running.open(newer.seal(SECRET, one), other)


def test_a_removed_key_leaves_no_date_behind(place: KeysetLocation) -> None:
    """Its date would make the key before it look superseded by a key that is not there."""
    first = load_vault(place).primary
    rotate(place)
    document = place.read()
    assert set(document["since"]) == {str(key.id) for key in keysets.list_key_pairs(document)}
    removed = keysets.remove_key_pair(document, first)
    assert set(removed["since"]) == {str(key.id) for key in keysets.list_key_pairs(removed)}


@pytest.mark.parametrize("head", [b"", b"\x01", b"\x01\x00\x00\x00", b"\x00\x00\x00\x00\x07", b"\x02\x00\x00\x00\x07"])
def test_what_does_not_begin_like_a_sealed_value_has_no_key(head: bytes) -> None:
    assert parse_key_id(head) is None


@pytest.mark.parametrize("key", [1, 7, 256, 2**31, 2**32 - 1])
def test_a_sealed_value_names_its_key(key: int) -> None:
    assert parse_key_id(build_sealed_prefix(key) + b"more") == key

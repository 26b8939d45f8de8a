"""What an entry of the audit log holds, by each of the ways it is written."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.access import audit_log
from gateway.access.audit_log import Actor
from gateway.db.statement import WriteStatement
from gateway.models import AuditEntry, Channel
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
BY = Actor(name="b" * 200, ip="198.51.100.7")
OTHER = UUID(int=9)


def write_alone(row: Channel, **values: Any) -> None:
    audit_log.record_audit_entry(BY, "change", row, **values)


def write_with_a_statement(row: Channel, **values: Any) -> None:
    write = WriteStatement()
    audit_log.append_audit_entry(write, BY, "change", row, **values)
    assert write.run()


def write_of_no_row(row: Channel, **values: Any) -> None:
    audit_log.record_audit_entry_for(BY, "change", "channel", str(row.pk), merchant=row.merchant_id, **values)


def write_several(row: Channel, **values: Any) -> None:
    audited = (row, row.merchant_id, values.get("before"), values.get("after"))
    audit_log.record_audit_entries(BY, "change", [audited])


@pytest.mark.parametrize("write", [write_alone, write_with_a_statement, write_of_no_row, write_several])
@pytest.mark.parametrize("before", [None, {"name": "old"}])
@pytest.mark.parametrize("after", [None, {"name": "new"}])
def test_an_entry_says_who_from_where_did_what_to_which_row(
    shop: Shop, write: Any, before: dict[str, str] | None, after: dict[str, str] | None
) -> None:
    known = set(AuditEntry.objects.values_list("pk", flat=True))
    write(shop.channel, before=before, after=after)
    (entry,) = AuditEntry.objects.exclude(pk__in=known)
    assert (entry.actor, entry.ip, entry.action) == ("b" * 150, "198.51.100.7", "change")
    assert (entry.subject, entry.subject_id, entry.merchant) == ("channel", str(shop.channel.pk), shop.merchant.pk)
    assert (entry.before, entry.after) == (before, after)


def test_an_entry_is_of_the_merchant_that_is_given_where_the_row_says_another(shop: Shop) -> None:
    audit_log.record_audit_entry(BY, "given", shop.channel, merchant=OTHER)
    audit_log.record_audit_entry(BY, "own", shop.channel)
    audit_log.record_audit_entry_for(BY, "none", "key", "1")
    found = dict(AuditEntry.objects.filter(action__in=("given", "own", "none")).values_list("action", "merchant"))
    assert found == {"given": OTHER, "own": shop.merchant.pk, "none": None}


def test_what_was_nothing_before_is_not_what_was_not_looked_at(shop: Shop) -> None:
    audit_log.record_audit_entry(BY, "change", shop.channel, before={}, after={})
    audit_log.record_audit_entries(BY, "changes", [(shop.channel, None, {}, {})])
    for action in ("change", "changes"):
        entry = AuditEntry.objects.get(action=action)
        assert (entry.before, entry.after) == ({}, {})

"""Snapshots of the page inventory, stored when it changes, and users' reviews of the changes.

Source: PCI DSS 11.6.1 (changes are noticed and reviewed); docs/decisions/0054.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from checkout import page_inventory
from checkout.models import PageReview, PageSnapshot, WalletProvider
from gateway.access.permissions import AccessScope
from gateway.core import clock
from gateway.db.statement import execute_sql

SNAPSHOT_RETENTION: Final = timedelta(days=400)
"""Assessors ask for a year."""
_LOCK: Final = 0x50414745
"""Advisory lock: of two processes that compare at once, one writes."""
_NONCE: Final = re.compile(r"'nonce-[^']+'")


def refresh_page_snapshots() -> int:
    """Store what has changed, and purge old snapshots. Returns how many rows of both."""
    return store_changed_snapshots() + purge_page_snapshots()


def store_changed_snapshots() -> int:
    """Compare with the last snapshots, and store what differs. Returns how many."""
    now: dict[Any, dict[str, str]] = {None: page_inventory.inventory_installation()}
    rows: dict[Any, list[WalletProvider]] = {}
    for row in WalletProvider.objects.defer("identity_sealed").order_by("wallet"):
        rows.setdefault(row.channel_id, []).append(row)
    now |= {channel: page_inventory.inventory_channel(found) for channel, found in rows.items()}
    with transaction.atomic():
        execute_sql("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": _LOCK})
        newest = PageSnapshot.objects.order_by("channel_id", "-id").distinct("channel_id")
        latest = {row.channel_id: row for row in newest}
        made = [_build_snapshot(subject, latest.get(subject), now.get(subject, {})) for subject in {**now, **latest}]
        kept = PageSnapshot.objects.bulk_create([one for one in made if one is not None])
    return len(kept)


def _build_snapshot(channel: UUID | None, before: PageSnapshot | None, facts: dict[str, str]) -> PageSnapshot | None:
    """The snapshot to store; None if nothing has changed."""
    facts = {name: _NONCE.sub("'nonce-…'", value) for name, value in facts.items()}
    changes = compare_inventories(before.facts if before else {}, facts)
    if not changes:
        return None
    return PageSnapshot(at=clock.real_now(), channel_id=channel, facts=facts, changes=changes)


def compare_inventories(before: Mapping[str, str], after: Mapping[str, str]) -> list[dict[str, str | None]]:
    """The differences between two inventories: name, before and after."""
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]


def purge_page_snapshots() -> int:
    """Delete old snapshots, but never the last one of its kind."""
    newer = PageSnapshot.objects.filter(channel__isnull=True, id__gt=OuterRef("id"))
    newer_there = PageSnapshot.objects.filter(channel=OuterRef("channel"), id__gt=OuterRef("id"))
    old = PageSnapshot.objects.filter(at__lt=clock.real_now() - SNAPSHOT_RETENTION)
    replaced = Q(Exists(newer), channel__isnull=True) | Q(Exists(newer_there), channel__isnull=False)
    return old.filter(replaced).delete()[1].get("checkout.PageSnapshot", 0)


# --- reviews ---------------------------------------------------------------------------------------------------------


def list_snapshots(scope: AccessScope) -> QuerySet[PageSnapshot]:
    """The snapshots within a user's reach: the installation's, and those of their channels."""
    return PageSnapshot.objects.filter(Q(channel__isnull=True) | scope.where("channel__merchant", "channel"))


def list_unreviewed_snapshots(scope: AccessScope) -> QuerySet[PageSnapshot]:
    """Snapshots not reviewed for these merchants or, for users with access to everything, for the installation."""
    return list_snapshots(scope).exclude(Exists(list_page_reviews(scope).filter(snapshot=OuterRef("pk"))))


def list_page_reviews(scope: AccessScope) -> QuerySet[PageReview]:
    """Reviews that count for a user of this reach."""
    if scope.everything:
        return PageReview.objects.filter(merchant__isnull=True)
    return PageReview.objects.filter(merchant__in=scope.merchants)


def prefetch_reviews(scope: AccessScope) -> Prefetch[Any]:
    """Prefetch that a list of snapshots needs to name its reviewers."""
    return Prefetch("reviews", queryset=list_page_reviews(scope).order_by("id"))


def record_review(scope: AccessScope, last: int, *, by: str) -> Sequence[int]:
    """Record that ``by`` reviewed all changes up to snapshot ``last``. Returns the snapshots that were unreviewed."""
    found = list(list_unreviewed_snapshots(scope).filter(pk__lte=last).values_list("pk", flat=True))
    whose: Sequence[UUID | None] = (None,) if scope.everything else sorted(scope.merchants)
    at = clock.real_now()
    PageReview.objects.bulk_create(
        (PageReview(snapshot_id=one, merchant=merchant, by=by[:150], at=at) for one in found for merchant in whose),
        ignore_conflicts=True,
    )
    return found

"""Reading the audit trail is recorded in it. Source: PCI DSS 4.0.1, 10.2.1.3."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from gateway.models import AuditEntry
from tests.support.office import signed_in

pytestmark = pytest.mark.django_db
LIST = "/admin/gateway/auditentry/"


def test_a_look_at_the_trail_leaves_an_entry() -> None:
    """The list, and a single entry."""
    client = signed_in(User.objects.create_superuser("root"))
    entry = AuditEntry.objects.create(actor="x", action="change", subject="channel", subject_id="1")
    assert client.get(LIST).status_code == 200
    assert client.get(f"{LIST}{entry.pk}/change/").status_code == 200
    looks = AuditEntry.objects.filter(action="view", subject="auditentry").order_by("id")
    assert list(looks.values_list("actor", "subject_id")) == [("root", ""), ("root", str(entry.pk))]
    assert "auditentry" in client.get(LIST).content.decode()


def test_who_may_not_read_it_leaves_none() -> None:
    client = signed_in(User.objects.create_user("somebody", is_staff=True))
    assert client.get(LIST).status_code == 403
    assert not AuditEntry.objects.filter(subject="auditentry").exists()

"""Management command: Django's `createsuperuser`, which is in the audit log as well."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.signals import post_save

from gateway.access import audit_log


class Command(createsuperuser.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """The user and the entry together, or neither."""
        with transaction.atomic():
            post_save.connect(_record_user, sender=User)
            try:
                return super().handle(*args, **options)
            finally:
                post_save.disconnect(_record_user, sender=User)


def _record_user(instance: User, created: bool, **_: Any) -> None:
    if created:
        after = {"username": instance.get_username(), "is_superuser": instance.is_superuser}
        audit_log.record_audit_entry(audit_log.COMMAND_LINE_ACTOR, "create", instance, after=after)

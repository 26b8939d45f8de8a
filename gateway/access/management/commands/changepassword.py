"""Management command: Django's `changepassword`, which ends the user's sessions and is in the audit log as well."""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.contrib.auth.models import User
from django.db import transaction

from gateway.access import audit_log, signin
from gateway.models import SignIn


class Command(changepassword.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """As on the pages: password, ended sessions and entry together, or nothing of them."""
        by = audit_log.COMMAND_LINE_ACTOR
        with transaction.atomic():
            answer: str | None = super().handle(*args, **options)
            user = User.objects.get(username=options["username"] or getpass.getuser())
            signin.end_sessions(SignIn.objects.filter(user=user.pk), by=by.name)
            audit_log.record_audit_entry(by, "set password", user)
        return answer

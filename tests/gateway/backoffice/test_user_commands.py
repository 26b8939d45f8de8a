"""Users at the command line: changes are recorded like those on pages. Source: PCI DSS 4.0.1, 8.2.5, 10.2.1.5."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from gateway.access.signin import list_open_sessions
from gateway.models import AuditEntry, SignIn, UsedPassword
from tests.support.office import signed_in

pytestmark = pytest.mark.django_db
OLD, NEW = "correct horse battery 7", "purple lantern harbour 93 quiet"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets what is typed at the terminal, which no test has."""

    def types(password: str) -> None:
        monkeypatch.setattr("getpass.getpass", lambda prompt="": password)

    return types


def test_a_changed_password_ends_the_sessions_and_is_in_the_trail(typed: Callable[[str], None]) -> None:
    user, other = User.objects.create_superuser("root", password=OLD), User.objects.create_superuser("other")
    browser, others_browser = signed_in(user), signed_in(other)
    assert [each.get("/admin/").status_code for each in (browser, others_browser)] == [200, 200]
    typed(NEW)
    call_command("changepassword", "root")
    user.refresh_from_db()
    assert user.check_password(NEW)
    assert list_open_sessions(user) == []
    assert SignIn.objects.get(user=user).ended_by == "command line"
    entry = AuditEntry.objects.get(action="set password")
    assert (entry.actor, entry.subject, entry.subject_id) == ("command line", "user", str(user.pk))
    assert UsedPassword.objects.filter(user=user).exists()
    assert browser.get("/admin/").status_code == 302
    assert others_browser.get("/admin/").status_code == 200


def test_a_password_that_is_refused_changes_nothing(typed: Callable[[str], None]) -> None:
    user = User.objects.create_superuser("root", password=OLD)
    browser = signed_in(user)
    browser.get("/admin/")
    typed("short")
    with pytest.raises(CommandError):
        call_command("changepassword", "root")
    assert not AuditEntry.objects.filter(action="set password").exists()
    assert browser.get("/admin/").status_code == 200


def test_a_superuser_made_by_a_command_is_in_the_trail() -> None:
    call_command("createsuperuser", "--noinput", username="boss", email="boss@shop.example")
    made = User.objects.get(username="boss")
    entry = AuditEntry.objects.get(action="create", subject_id=str(made.pk))
    assert (entry.actor, entry.subject) == ("command line", "user")
    assert entry.after == {"username": "boss", "is_superuser": True}

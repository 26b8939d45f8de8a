"""A change of who may do what, of which no audit entry can be written, is not made. Source: PCI DSS 4.0.1, 10.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from gateway.access import audit_log, signin, tokens, unused_accounts
from gateway.models import AccessToken, Role
from tests.support.database import read_rows
from tests.support.fixtures import BY, Shop
from tests.support.office import app_of, person

pytestmark = pytest.mark.django_db


class NotWrittenError(Exception):
    pass


@pytest.fixture
def clara(shop: Shop) -> User:
    """A user with an app and recovery codes."""
    user = person("clara", Role.CLERK, shop.merchant)
    app_of(user)
    return user


@pytest.fixture
def waiting(shop: Shop) -> AccessToken:
    """A successor that waits for its second person."""
    return tokens.rotate_token(shop.token, by=BY, approved=False)[0]


Step = Callable[[AccessToken, AccessToken, User], object]
"""What is done with a token that works, its successor that waits, and a user."""
STEPS: dict[str, Step] = {
    "issue": lambda works, waiting, clara: tokens.issue_token(works.merchant, name="another", by=BY),
    "rotate": lambda works, waiting, clara: tokens.rotate_token(works, by=BY),
    "approve": lambda works, waiting, clara: tokens.approve_token(waiting, by=BY),
    "revoke": lambda works, waiting, clara: tokens.revoke_token(works, by=BY),
    "remove factors": lambda works, waiting, clara: signin.remove_second_factors(clara, by=BY),
    "switch off": lambda works, waiting, clara: unused_accounts._disable(clara, 90),
}


def do_with_a_fault(step: Callable[[], object], number: int) -> bool:
    """Do the step while its entry of this number cannot be written; False if it writes fewer."""
    left, write = number, audit_log.record_audit_entry

    def write_until_then(*args: Any, **values: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise NotWrittenError
        write(*args, **values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_log, "record_audit_entry", write_until_then)
        try:
            step()
        except NotWrittenError:
            return True
    return False


@pytest.mark.parametrize(("name", "entries"), [(name, 2 if name in ("rotate", "approve") else 1) for name in STEPS])
def test_what_cannot_be_entered_in_the_trail_is_not_done(
    shop: Shop, waiting: AccessToken, clara: User, name: str, entries: int
) -> None:
    def step() -> object:
        token = AccessToken.objects.select_related("merchant")
        return STEPS[name](token.get(pk=shop.token.pk), token.get(pk=waiting.pk), User.objects.get(pk=clara.pk))

    before = read_rows()
    for number in range(1, entries + 1):
        assert do_with_a_fault(step, number)
        assert read_rows() == before, f"entry {number}"
    assert not do_with_a_fault(step, entries + 1)
    assert read_rows() != before

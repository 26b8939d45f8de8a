"""A release that fails for a reason of ours: the others go on, and it is tried again, though not for ever."""

from __future__ import annotations

from uuid import UUID

import pytest

from gateway.models import AuthorizationRelease, Payment
from gateway.payments import authorization_releases
from gateway.payments.authorization_releases import MAX_RELEASE_TRIES, release_authorizations
from tests.support.fixtures import Shop


def close(shop: Shop) -> UUID:
    """An authorization of 100.00 that a FINAL capture closed; the rest is to be released."""
    held = shop.api.pay(paymentType="PA", amount="100.00").id
    assert shop.api.follow(held, "CP", "60.00", sequence="FINAL").status == 200
    return UUID(held)


@pytest.mark.parametrize("place", [0, 1])
def test_a_release_that_fails_keeps_no_other_waiting_and_is_given_up_after_its_tries(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    chains = [close(shop), close(shop)]
    failing, load = chains[place], authorization_releases.load_chain_members

    def fail_for_one(chain: UUID) -> list[Payment]:
        if chain == failing:
            raise RuntimeError
        return load(chain)

    monkeypatch.setattr(authorization_releases, "load_chain_members", fail_for_one)
    assert release_authorizations() == 2
    row = AuthorizationRelease.objects.get(authorization=failing)
    assert (row.state, row.tries) == (AuthorizationRelease.State.OPEN, 1)
    other = AuthorizationRelease.objects.get(authorization=chains[1 - place])
    assert other.state == AuthorizationRelease.State.RELEASED
    assert release_authorizations() == 0, "it waits"
    for _ in range(MAX_RELEASE_TRIES - 1):
        AuthorizationRelease.objects.filter(pk=row.pk).update(due_at="2020-01-01T00:00:00Z")
        assert release_authorizations() == 1
    row.refresh_from_db()
    assert (row.state, row.tries, row.due_at) == (AuthorizationRelease.State.GIVEN_UP, MAX_RELEASE_TRIES, None)
    assert Payment.objects.filter(payment_type="RV").count() == 1

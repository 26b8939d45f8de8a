"""Who may come in, and how often: each condition alone, exactly at its limit and a step beyond.

Source: Part A, Authentication; Limits; ruling D11.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from gateway.access.rate_limits import resolve_rate_limit
from gateway.access.tokens import TOKEN_SCOPES
from gateway.api import token_admission
from gateway.api.errors import ApiError
from gateway.core import clock
from gateway.models import AccessToken, Channel, Division, Merchant, Psp
from tests.support.fixtures import Shop

NOW = datetime(2026, 5, 14, 10, 2, 3, tzinfo=UTC)
STEP = timedelta(microseconds=1)
ENTITY = UUID(int=0xE)


def admitted(shop: Shop, entity: UUID | None, *, scope: str = "payments", token: str | None = None) -> bool:
    text = token or shop.api.token
    assert text is not None
    try:
        token_admission.admit_token(text, entity, scope, ip=None)
    except ApiError as turned:
        return turned.status != 403
    return True


@pytest.mark.django_db
@pytest.mark.parametrize(("ends_in", "let_in"), [(-STEP, False), (timedelta(0), False), (STEP, True), (None, True)])
def test_a_token_works_until_the_moment_it_ends(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, ends_in: timedelta | None, let_in: bool
) -> None:
    AccessToken.objects.update(ends_at=NOW + ends_in if ends_in is not None else None)
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    assert admitted(shop, shop.channel.pk) is let_in


@pytest.mark.django_db
@pytest.mark.parametrize("model", [Psp, Division, Merchant, Channel, AccessToken])
def test_each_thing_that_is_switched_off_alone_keeps_out(shop: Shop, model: type[Psp]) -> None:
    assert admitted(shop, shop.channel.pk)
    if model is AccessToken:
        AccessToken.objects.update(revoked_at=NOW)
    else:
        model.objects.update(active=False)
    assert not admitted(shop, shop.channel.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("lacking", TOKEN_SCOPES)
def test_each_scope_opens_itself_and_no_other(shop: Shop, lacking: str) -> None:
    _, but_one = shop.issue(scopes=[scope for scope in TOKEN_SCOPES if scope != lacking])
    _, only_one = shop.issue(scopes=[lacking])
    for scope in TOKEN_SCOPES:
        assert admitted(shop, shop.channel.pk, scope=scope, token=but_one) is (scope != lacking)
        assert admitted(shop, shop.channel.pk, scope=scope, token=only_one) is (scope == lacking)


@pytest.mark.django_db
@pytest.mark.parametrize("dispatching", [False, True])
@pytest.mark.parametrize("bound", [False, True])
def test_for_which_entities_a_token_speaks(shop: Shop, stranger: Shop, dispatching: bool, bound: bool) -> None:
    """Bound to a channel or not, of a merchant that dispatches or not; kinds of entity, one's own and others'."""
    Merchant.objects.update(dispatching=dispatching)
    other = shop.open_channel()
    _, text = shop.issue(channel=shop.channel if bound else None)
    told = {
        "own": admitted(shop, shop.channel.pk, token=text),
        "another": admitted(shop, other.pk, token=text),
        "merchant": admitted(shop, shop.merchant.pk, token=text),
        "none": admitted(shop, None, token=text),
        "stranger": admitted(shop, stranger.channel.pk, token=text),
        "strange merchant": admitted(shop, stranger.merchant.pk, token=text),
    }
    assert told == {
        "own": True,
        "another": not bound,
        "merchant": dispatching and not bound,
        "none": True,
        "stranger": False,
        "strange merchant": False,
    }


@pytest.mark.django_db
def test_the_last_use_is_kept_once_a_minute(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    for seconds in (0, 59, 60, 61, 122):
        monkeypatch.setattr(clock, "real_now", lambda seconds=seconds: NOW + timedelta(seconds=seconds))
        assert admitted(shop, shop.channel.pk)
        at = AccessToken.objects.get().last_used_at
        assert at is not None
        used.append((at - NOW).total_seconds())
    assert used == [0, 0, 0, 61, 122]


# --- throttling -----------------------------------------------------------------------------------------------------


def test_the_narrower_limit_goes_before_the_wider_and_none_means_none() -> None:
    limit, wide = {"limit": 1, "window_s": 10}, {"limit": 2, "window_s": 20}
    with override_settings(GATEWAY_THROTTLE_LIMIT=5, GATEWAY_THROTTLE_WINDOW_S=50):
        for limits, found in (
            ({}, (5, 50)),
            ({"*": wide}, (2, 20)),
            ({"payment": limit}, (1, 10)),
            ({"payment": limit, "*": wide}, (1, 10)),
            ({"payment": None, "*": wide}, None),
            ({"*": None}, None),
            ({"status": limit}, (5, 50)),
            ({"status": limit, "*": wide}, (2, 20)),
        ):
            assert resolve_rate_limit(Channel(limits=limits), "payment") == found, limits
        assert resolve_rate_limit(None, "payment") == (5, 50)
    with override_settings(GATEWAY_THROTTLE_LIMIT=0):
        assert resolve_rate_limit(None, "payment") is None
        assert resolve_rate_limit(Channel(limits={"payment": limit}), "payment") == (1, 10)


class Windows(TestCase):
    """A fresh set of counts for each example."""

    @given(st.integers(1, 4), st.integers(1, 3_600), st.floats(0, 0.999), st.integers(0, 10**6))
    @settings(max_examples=30)
    def test_a_window_takes_its_limit_and_tells_when_the_next_one_begins(
        self, limit: int, window_s: int, within: float, number: int
    ) -> None:
        channel = Channel(limits={"*": {"limit": limit, "window_s": window_s}})
        at = datetime.fromtimestamp((number + within) * window_s, tz=UTC)
        left = window_s * (1 - within)
        for asked in range(1, limit + 1):
            headers = token_admission.throttle_request(ENTITY, channel, "payment", at)
            assert (headers["RateLimit-Limit"], headers["RateLimit-Remaining"]) == (str(limit), str(limit - asked))
            assert left - 0.01 <= int(headers["RateLimit-Reset"]) <= max(left + 1.01, 1)
        with pytest.raises(ApiError) as turned:
            token_admission.throttle_request(ENTITY, channel, "payment", at)
        assert turned.value.headers["Retry-After"] == turned.value.headers["RateLimit-Reset"]
        for entity, operation in ((UUID(int=0xF), "payment"), (ENTITY, "status")):
            assert token_admission.throttle_request(entity, channel, operation, at)["RateLimit-Remaining"] == str(
                limit - 1
            )
        following = datetime.fromtimestamp((number + 1) * window_s, tz=UTC)
        assert token_admission.throttle_request(ENTITY, channel, "payment", following)["RateLimit-Remaining"] == str(
            limit - 1
        )

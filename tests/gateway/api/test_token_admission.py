"""Who may call, and how those who may not are told.

Source: Part A, Authentication; checklist A28; rulings D11, D15, D21.
"""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.db import InterfaceError, OperationalError

from checkout import session
from gateway.access import tokens
from gateway.api import token_admission
from gateway.core import clock
from gateway.models import AccessToken, Channel, Payment
from tests.support import shopper
from tests.support.client import Api, payment
from tests.support.fixtures import BY, Shop

pytestmark = pytest.mark.django_db
UNKNOWN_ENTITY = "f" * 32
VISA, MASTER, AMEX = "4200000000000000", "5454545454545454", "377777777777770"


# --- 401: no token, or none that can be read -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer  a",
        "Basic dXNlcjpwYXNz",
        "Token abc",
        "bearer",
        "a",
        "Bearer a,b",
        'Bearer "a"',
        "Bearer ä",
        "Bearera",
        "Bearer a\tb",
        f"Bearer {'a' * 600}",
    ],
)
@pytest.mark.parametrize("method, path", [("POST", "/v1/payments"), ("GET", f"/v1/payments/{'0' * 32}")])
def test_a_missing_or_malformed_authorization_is_401(api: Api, header: str | None, method: str, path: str) -> None:
    """A30.4, A28.7."""
    headers = {} if header is None else {"Authorization": header}
    answer = api.with_token(None).call(method, path, **headers)
    assert (answer.status, answer.code) == (401, "800.900.300")
    assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="')
    assert Payment.objects.count() == 0


def test_a_malformed_authorization_is_told_apart_from_a_missing_one(api: Api) -> None:
    """A28.7; RFC 6750, 3: no error code when there was no token at all."""
    stranger = api.with_token(None)
    missing, malformed = stranger.post("/v1/payments"), stranger.post("/v1/payments", Authorization="Bearer a b")
    assert "error" not in missing.headers["WWW-Authenticate"]
    assert 'error="invalid_request"' in malformed.headers["WWW-Authenticate"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_may_be_written_small(shop: Shop, scheme: str) -> None:
    """RFC 7235, 2.1: the scheme is case-insensitive."""
    answer = shop.api.with_token(None).post("/v1/payments", payment(), Authorization=f"{scheme} {shop.api.token}")
    assert answer.status == 200


def test_a_wrong_method_without_a_token_is_401(api: Api) -> None:
    """A28.1: on all requests."""
    assert api.with_token(None).call("PUT", "/v1/payments").status == 401


# --- 403: a token that does not open -------------------------------------------------------------------------------


def test_a_token_nobody_issued_is_403(api: Api) -> None:
    """A30.5, A28.8."""
    for token in ("x", "tollhouse_" + "A" * 43, api.token[:-1] if api.token else "", (api.token or "") + "A"):
        answer = api.with_token(token).pay()
        assert (answer.status, answer.code) == (403, "800.900.300")
        assert "WWW-Authenticate" not in answer.headers


def test_a_revoked_token_is_403_from_the_next_call(shop: Shop) -> None:
    """A28.8."""
    assert shop.api.pay().status == 200
    tokens.revoke_token(shop.token, by=BY)
    assert shop.api.pay().status == 403


def test_an_expired_token_is_403_from_its_end(shop: Shop) -> None:
    """A28.8."""
    _, before = shop.issue(ends_at=clock.real_now() + timedelta(hours=1))
    _, after = shop.issue(ends_at=clock.real_now() - timedelta(seconds=1))
    assert shop.api.with_token(before).pay().status == 200
    assert shop.api.with_token(after).pay().status == 403


def test_both_tokens_work_while_a_rotation_overlaps(shop: Shop) -> None:
    """Part A, Authentication."""
    _, secret = tokens.rotate_token(shop.token, by=BY)
    assert shop.api.pay().status == 200
    assert shop.api.with_token(secret.reveal()).pay().status == 200
    shop.token.refresh_from_db()
    assert shop.token.ends_at is not None
    assert shop.token.ends_at > clock.real_now() + timedelta(days=6)


def test_a_token_without_the_scope_is_403_and_told_which(shop: Shop) -> None:
    """Part A, Authentication."""
    _, reads = shop.issue(scopes=["read"])
    _, pays = shop.issue(scopes=["payments"])
    paid = shop.api.with_token(pays).pay()
    assert paid.status == 200
    refused = shop.api.with_token(reads).pay()
    assert (refused.status, refused.code) == (403, "800.900.300")
    assert "scope payments" in refused.description
    assert shop.api.with_token(reads).read(paid.id).status == 200
    assert shop.api.with_token(pays).read(paid.id).status == 403
    assert shop.api.with_token(pays).get("/v1/test/clock").status == 403


def test_a_token_of_one_channel_is_403_for_another(shop: Shop) -> None:
    """Part A, Authentication, 4."""
    other = shop.open_channel()
    shop.merchant.dispatching = True
    shop.merchant.save()
    _, token = shop.issue(channel=shop.channel)
    bound = shop.api.with_token(token)
    assert bound.pay().status == 200
    assert bound.as_entity(other.entity_id).pay().status == 403
    assert bound.as_entity(shop.merchant.entity_id).pay().status == 403


def test_a_foreign_entity_looks_exactly_like_an_unknown_one(shop: Shop, stranger: Shop) -> None:
    """D11: byte for byte, but for what names the request itself."""
    foreign = shop.api.as_entity(stranger.channel.entity_id).pay()
    unknown = shop.api.as_entity(UNKNOWN_ENTITY).pay()
    assert (foreign.status, unknown.status) == (403, 403)
    assert _without_its_own(foreign.body) == _without_its_own(unknown.body)
    assert _names(foreign.headers) == _names(unknown.headers)


def test_a_foreign_merchant_looks_exactly_like_an_unknown_one(shop: Shop, stranger: Shop) -> None:
    """D11: even where its dispatching is active."""
    stranger.merchant.dispatching = True
    stranger.merchant.save()
    foreign = shop.api.as_entity(stranger.merchant.entity_id).pay()
    assert foreign.status == 403
    assert _without_its_own(foreign.body) == _without_its_own(shop.api.as_entity(UNKNOWN_ENTITY).pay().body)


@pytest.mark.parametrize("what", ["channel", "merchant", "division", "psp"])
def test_an_inactive_entity_is_refused_like_an_unknown_one(shop: Shop, what: str) -> None:
    """D11: Entity.active, on every node above the request: calls, reads, and what a shopper has open."""
    paid, opened = shop.api.pay().id, shopper.create(shop.api).id
    row = {
        "channel": shop.channel,
        "merchant": shop.merchant,
        "division": shop.merchant.division,
        "psp": shop.merchant.division.psp,
    }[what]
    row.active = False
    row.save()
    for answer in (shop.api.pay(), shop.api.read(paid), shopper.create(shop.api)):
        assert (answer.status, answer.code) == (403, "800.900.300")
    assert session.find_checkout(opened) is None


def test_another_merchants_payment_looks_exactly_like_an_unknown_one(shop: Shop, stranger: Shop) -> None:
    """A30.6; D11."""
    foreign = stranger.api.pay().id
    for answer, unknown in (
        (shop.api.read(foreign), shop.api.read("0" * 32)),
        (shop.api.follow(foreign, "RF", "1.00"), shop.api.follow("0" * 32, "RF", "1.00")),
        (shop.api.follow(foreign, "CP", "1.00"), shop.api.follow("0" * 32, "CP", "1.00")),
        (shop.api.follow(foreign, "RV"), shop.api.follow("0" * 32, "RV")),
        (
            shop.api.get("/v1/test/acquirer/messages", {"id": foreign}),
            shop.api.get("/v1/test/acquirer/messages", {"id": "0" * 32}),
        ),
    ):
        assert answer.status == 404
        assert _without_its_own(answer.body) == _without_its_own(unknown.body)


def test_a_channel_does_not_see_the_payments_of_its_sister(shop: Shop) -> None:
    """Part A, Authentication, 4: the entity that asks is the scope."""
    sister = shop.api_of(shop.open_channel())
    paid = shop.api.pay().id
    assert sister.read(paid).status == 404
    assert sister.follow(paid, "RF", "1.00").status == 404
    assert shop.api.read(paid).status == 200


# --- entityId ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entity", ["8A8294174B7ECB28014B9699220015CA", "42", "x" * 32, "8a8294174b7ecb28014b969922001", "٣" * 32]
)
def test_an_entity_of_the_wrong_form_is_a_validation_error(api: Api, entity: str) -> None:
    """A28.5."""
    answer = api.as_entity(entity).pay()
    assert (answer.status, answer.code) == (400, "200.300.404")
    assert "entityId" in answer.errors


def test_an_upper_case_form_of_the_own_entity_is_a_validation_error(api: Api) -> None:
    """A28.5."""
    answer = api.as_entity((api.entity or "").upper()).pay()
    assert (answer.status, list(answer.errors)) == (400, ["entityId"])


def test_a_missing_entity_is_a_validation_error(api: Api) -> None:
    """A28.5."""
    for answer in (api.as_entity(None).pay(), api.as_entity(None).read("0" * 32)):
        assert (answer.status, list(answer.errors)) == (400, ["entityId"])


def test_the_entity_in_the_query_of_a_post_is_not_read(api: Api) -> None:
    """A28.4: all other data is sent in the body."""
    answer = api.as_entity(None).post(f"/v1/payments?entityId={api.entity}", payment())
    assert (answer.status, list(answer.errors)) == (400, ["entityId"])


def test_authentication_entity_id_is_an_accepted_alias(api: Api) -> None:
    """D15."""
    alias = {"authentication.entityId": api.entity or ""}
    paid = api.as_entity(None).post("/v1/payments", payment() | alias)
    assert paid.status == 200
    assert api.as_entity(None).get(f"/v1/payments/{paid.id}", alias).status == 200


@pytest.mark.parametrize("names", [("entityId", "authentication.entityId"), ("authentication.entityId", "entityId")])
def test_the_entity_and_its_alias_may_be_sent_together(api: Api, stranger: Shop, names: tuple[str, str]) -> None:
    """docs/decisions/0048: clients that learnt the older name send both."""
    own, other = api.entity or "", stranger.channel.entity_id
    paid = api.as_entity(None).post("/v1/payments", payment() | dict.fromkeys(names, own))
    assert paid.status == 200
    assert api.as_entity(None).get(f"/v1/payments/{paid.id}", dict.fromkeys(names, own)).status == 200
    refused = api.as_entity(None).post("/v1/payments", [(names[0], own), *payment().items(), (names[1], other)])
    assert (refused.status, list(refused.errors)) == (400, ["entityId"])
    assert "two values" in refused.errors["entityId"]


def test_two_entities_are_one_too_many(api: Api, stranger: Shop) -> None:
    """D16: one name is sent once."""
    pairs = [("entityId", api.entity or ""), *payment().items(), ("entityId", stranger.channel.entity_id)]
    answer = api.post("/v1/payments", pairs)
    assert (answer.status, list(answer.errors)) == (400, ["entityId"])


# --- dispatching ---------------------------------------------------------------------------------------------------


@pytest.fixture
def dispatching(shop: Shop) -> dict[str, Channel]:
    """The merchant's id stands for three channels: VISA in EUR, MASTER in anything, VISA in USD."""
    shop.channel.active = False
    shop.channel.save()
    shop.merchant.dispatching = True
    shop.merchant.save()
    return {
        "visa eur": shop.open_channel("visa eur", position=1, brands=["VISA"], currencies=["EUR"]),
        "master": shop.open_channel("master", position=2, brands=["MASTER"]),
        "visa usd": shop.open_channel("visa usd", position=3, brands=["VISA"], currencies=["USD"]),
    }


@pytest.mark.parametrize(
    "brand, number, currency, chosen",
    [
        ("VISA", VISA, "EUR", "visa eur"),
        ("VISA", VISA, "USD", "visa usd"),
        ("MASTER", MASTER, "CHF", "master"),
        (None, MASTER, "EUR", "master"),
        (None, VISA, "USD", "visa usd"),
    ],
)
def test_dispatching_chooses_the_channel_by_brand_and_currency(
    shop: Shop, dispatching: dict[str, Channel], brand: str | None, number: str, currency: str, chosen: str
) -> None:
    """Part A, Authentication, 4."""
    merchant = shop.api.as_entity(shop.merchant.entity_id)
    answer = merchant.pay(paymentBrand=brand, card__number=number, currency=currency)
    assert answer.status == 200, answer
    assert Payment.objects.get(pk=answer.id).channel_id == dispatching[chosen].id
    assert merchant.read(answer.id).status == 200
    assert shop.api_of(dispatching[chosen]).read(answer.id).status == 200
    assert merchant.follow(answer.id, "RF", "1.00", currency=currency).status == 200


def test_of_channels_that_take_a_payment_the_first_by_place_and_then_by_age_is_chosen(shop: Shop) -> None:
    """Part A, Authentication, 4."""
    Channel.objects.filter(pk=shop.channel.pk).update(position=9)
    shop.merchant.dispatching = True
    shop.merchant.save()
    older, younger = (shop.open_channel(name, position=5) for name in ("older", "younger"))
    first = shop.open_channel("first", position=4)
    merchant = shop.api.as_entity(shop.merchant.entity_id)
    for channel in (first, older, younger, shop.channel):
        assert Payment.objects.get(pk=merchant.pay().id).channel_id == channel.pk
        Channel.objects.filter(pk=channel.pk).update(active=False)


@pytest.mark.parametrize("brand, number, currency", [("VISA", VISA, "CHF"), ("AMEX", AMEX, "EUR")])
def test_dispatching_that_finds_no_channel_makes_no_payment(
    shop: Shop, dispatching: dict[str, Channel], brand: str, number: str, currency: str
) -> None:
    """Part A, Authentication, 4."""
    answer = shop.api.as_entity(shop.merchant.entity_id).pay(
        paymentBrand=brand, card__number=number, card__cvv=None, currency=currency
    )
    assert (answer.status, answer.code) == (400, "600.200.500")
    assert Payment.objects.count() == 0


def test_a_merchants_id_is_refused_where_dispatching_is_not_active(shop: Shop) -> None:
    """A28.5."""
    assert shop.api.as_entity(shop.merchant.entity_id).pay().status == 403


# --- what is kept of a use -----------------------------------------------------------------------------------------


def test_the_last_use_of_a_token_is_kept(shop: Shop) -> None:
    shop.api.pay()
    token = AccessToken.objects.get(pk=shop.token.pk)
    assert token.last_used_at is not None
    assert token.last_used_ip == "127.0.0.1"


def test_a_token_is_kept_as_a_hash_only(shop: Shop) -> None:
    """Part A, Authentication: shown once."""
    from tests.support.database import places_of

    assert shop.api.token is not None
    assert places_of(shop.api.token, shop.api.token.removeprefix("tollhouse_")) == set()


def _without_its_own(body: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in body.items() if name not in ("ndc", "timestamp")}


def _names(headers: object) -> set[str]:
    return {str(name) for name in dict(headers)}  # type: ignore[call-overload]


@pytest.mark.parametrize("fault", [OperationalError, InterfaceError])
@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_request_whose_connection_had_died_asks_once_more_on_another(
    monkeypatch: pytest.MonkeyPatch, fault: type[Exception], in_transaction: bool
) -> None:
    """Not within a transaction: what it did before would be gone unseen."""
    done: list[str] = []

    def execute(*_: object) -> list[tuple[object, ...]]:
        done.append("asked")
        if done.count("asked") == 1:
            raise fault
        return [("row",)]

    broken = SimpleNamespace(in_atomic_block=in_transaction, close=lambda: done.append("closed"))
    monkeypatch.setattr(token_admission, "connection", broken)
    monkeypatch.setattr(token_admission, "execute_sql", execute)
    if in_transaction:
        with pytest.raises(fault):
            token_admission._execute_with_reconnect("SELECT 1", {})
        assert done == ["asked"]
        return
    assert token_admission._execute_with_reconnect("SELECT 1", {}) == [("row",)]
    assert done == ["asked", "closed", "asked"]


def test_a_second_connection_that_dies_is_no_third_try(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def execute(*_: object) -> list[tuple[object, ...]]:
        asked.append(1)
        raise OperationalError

    monkeypatch.setattr(token_admission, "connection", SimpleNamespace(in_atomic_block=False, close=lambda: None))
    monkeypatch.setattr(token_admission, "execute_sql", execute)
    with pytest.raises(OperationalError):
        token_admission._execute_with_reconnect("SELECT 1", {})
    assert len(asked) == 2


@pytest.mark.parametrize("entity", ["channel", "merchant"])
def test_a_payment_that_is_not_there_any_more_is_looked_for_in_the_archive_of_its_owner(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, entity: str
) -> None:
    """Of the channel, or of the merchant that dispatches."""
    shop.merchant.dispatching = True
    shop.merchant.save()
    asked: list[object] = []
    monkeypatch.setattr(token_admission, "find_archived_payment", lambda *given: asked.append(given))
    api = shop.api if entity == "channel" else shop.api.as_entity(shop.merchant.entity_id)
    wanted = "01a1ff6d25f4754d8dc59d8d915307b2"
    assert api.get(f"/v1/payments/{wanted}").status == 404
    assert asked == [(UUID(wanted), shop.merchant.pk, shop.channel.pk if entity == "channel" else None)]
    paid = shop.api.pay().id
    assert (api.read(paid).id, len(asked)) == (paid, 1)
    assert api.get("/v1/payments/nonsense").status == 404
    assert len(asked) == 1

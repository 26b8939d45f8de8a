"""What the 3DS server is asked without a payment, whose the result is, and what is shown of it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.endpoints import STANDALONE_AUTHENTICATION_ENDPOINT
from gateway.catalogue.parse import ParameterError, Parameters
from gateway.core import identifiers
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Authentication, AuthenticationStep, Channel, Merchant
from gateway.payments import standalone_authentication
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.standalone_authentication import (
    begin_standalone_authentication,
    find_authentication,
    render_authentication,
    resolve_authentication_code,
)
from tests.support.fixtures import Shop
from tests.support.threeds import RESULT_URL, fields

NOW = datetime(2035, 11, 15, tzinfo=UTC)
MERCHANT, REQUEST = Merchant(name="m"), UUID(int=8)
STARTED = Authentication()


def channel(**values: Any) -> Channel:
    return Channel(**{"name": "c", "three_d_secure": True, **values})


def sent(**changes: str | None) -> Parameters:
    given = fields(**{"paymentType": None, "card__cvv": None, "card__holder": "Jane Jones", **changes})
    return STANDALONE_AUTHENTICATION_ENDPOINT.catalogue.parse(
        [("entityId", "0" * 32), *given.items()], facts=frozenset({"threeds", "alone"})
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the 3DS server was asked."""
    found: list[Any] = []

    def begin(request: Any) -> Any:
        found.append(request)
        return STARTED, None

    monkeypatch.setattr(standalone_authentication.server, "begin_authentication", begin)
    return found


def begin(parameters: Parameters, on: Channel | None = None) -> Authentication:
    return begin_standalone_authentication(
        parameters, merchant=MERCHANT, channel=on or channel(), now=NOW, request=REQUEST
    )


def test_the_server_is_asked_for_what_was_sent(asked: list[Any]) -> None:
    parameters, on = sent(), channel()
    assert begin(parameters, on) is STARTED
    [found] = asked
    assert (found.payment, found.merchant, found.channel, found.brand) == (None, MERCHANT, on, "VISA")
    assert found.number is parameters.secrets["card.number"]
    assert (found.expiry, found.holder) == (
        (parameters["card.expiryMonth"], parameters["card.expiryYear"]), "Jane Jones",
    )  # fmt: skip
    assert found.expiry[0] != found.expiry[1]
    assert (found.money, found.parameters) == (Money(Decimal(92), "EUR"), parameters.values)
    assert (found.now, found.request, found.return_url) == (NOW, REQUEST, RESULT_URL)
    assert (found.echo, found.answer) == (parameters.echo(), {"card": {"bin": "420000", "last4Digits": "0042"}})
    assert f"/shopper/{REQUEST.hex}/challenged?" in found.build_notification_url(REQUEST)


def test_what_was_not_sent_is_empty(asked: list[Any]) -> None:
    begin(sent(card__holder=None, shopperResultUrl=None, threeDSecure__channel="03"))
    assert (asked[0].holder, asked[0].return_url) == ("", "")


@pytest.mark.parametrize(
    ("mode", "live", "used"), [(None, False, "INTERNAL"), ("EXTERNAL", False, "EXTERNAL"), ("EXTERNAL", True, "")]
)
def test_the_test_mode_is_the_one_that_was_sent_and_none_in_live(
    asked: list[Any], settings: Any, mode: str | None, live: bool, used: str
) -> None:
    settings.IS_LIVE = live
    begin(sent(testMode=mode))
    assert asked[0].test_mode == used


def test_a_brand_that_was_detected_is_told(asked: list[Any]) -> None:
    begin(sent(paymentBrand=None))
    assert asked[0].answer == {"card": {"bin": "420000", "last4Digits": "0042"}, "brandResult": "VISA"}


@pytest.mark.parametrize(
    ("values", "changes", "code", "name", "value"),
    [
        ({"three_d_secure": False}, {}, "000.400.104", "entityId", None),
        (
            {}, {"card__number": "6200000000000005", "paymentBrand": "UNIONPAY"}, "000.400.101", "paymentBrand",
            "UNIONPAY",
        ),
        ({"currencies": ["USD"]}, {}, "600.200.500", "currency", "EUR"),
        ({"brands": ["MASTER"]}, {}, "600.200.201", "paymentBrand", "VISA"),
    ],
)  # fmt: skip
def test_what_cannot_be_authenticated_is_refused_by_its_parameter(
    asked: list[Any], values: dict[str, Any], changes: dict[str, str], code: str, name: str, value: str | None
) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        begin(sent(**changes), channel(**values))
    [error] = refused.value.errors
    assert (refused.value.code, error.code, error.name, error.value, asked) == (code, code, name, value, [])


def test_a_value_that_is_refused_is_refused_first(asked: list[Any]) -> None:
    parameters = sent()
    first, second = (ParameterError(name=code, message="m", code=code) for code in ("100.100.101", "100.100.303"))
    parameters.refusals = (first, second)
    with pytest.raises(RequestRefusedError) as refused:
        begin(parameters, channel(three_d_secure=False))
    assert (refused.value.code, refused.value.errors, asked) == ("100.100.101", (first, second), [])


# --- the result -----------------------------------------------------------------------------------------------------


def stored(shop: Shop, **values: Any) -> Authentication:
    given = {"channel": shop.channel, "brand": "VISA", "amount": Decimal(92), "currency": "EUR", **values}
    return Authentication.objects.create(merchant=shop.merchant, request_id=REQUEST, created_at=NOW, **given)


@pytest.mark.django_db
def test_a_result_is_its_merchants_and_channels(shop: Shop, stranger: Shop) -> None:
    row = stored(shop)
    for asker in (None, shop.channel):
        assert find_authentication(row.pk, shop.merchant, asker) == row
    assert find_authentication(row.pk, shop.merchant, shop.open_channel()) is None
    assert find_authentication(row.pk, stranger.merchant, None) is None
    assert find_authentication(row.pk, stranger.merchant, shop.channel) is None
    assert find_authentication(None, shop.merchant, None) is None
    assert find_authentication(identifiers.row_id(), shop.merchant, None) is None
    assert find_authentication(stored(shop, payment=REQUEST).pk, shop.merchant, None) is None


@pytest.mark.parametrize("step", AuthenticationStep.values)
def test_a_code_is_told_when_it_is_done(step: str) -> None:
    row = Authentication(step=step, code="000.400.110")
    assert resolve_authentication_code(row) == ("000.400.110" if step == "done" else "000.200.000")


def done(**values: Any) -> Authentication:
    given = {
        "id": UUID(int=3), "brand": "VISA", "amount": Decimal(92), "currency": "EUR", "step": "done",
        "code": "000.400.110", "answer": {"card": {"bin": "000000", "last4Digits": "0042"}}, "merchant": MERCHANT,
        "channel": channel(), "payment": None, "deadline": NOW,
        **values,
    }  # fmt: skip
    return Authentication(**given)


def test_a_result_shows_what_was_sent_and_the_card() -> None:
    echo = {"paymentBrand": "MASTER", "amount": "1.00", "merchantTransactionId": "m", "card": {"holder": "Jane"}}
    body = render_authentication(done(request=echo))
    assert (body["id"], body["paymentType"], body["paymentBrand"]) == (UUID(int=3).hex, "3D", "VISA")
    assert (body["amount"], body["currency"], body["merchantTransactionId"]) == ("92.00", "EUR", "m")
    assert body["card"] == {"bin": "000000", "last4Digits": "0042", "holder": "Jane"}
    assert body["result"]["code"] == "000.400.110"
    assert body["result"]["description"]
    for absent in ("redirect", "brandResult", "testMode", "threeDSecure"):
        assert absent not in body


@pytest.mark.parametrize("mode", ["INTERNAL", "EXTERNAL"])
def test_a_result_shows_its_test_mode_and_a_brand_that_was_detected(mode: str) -> None:
    answer = {"card": {"bin": "000000", "last4Digits": "0042"}, "brandResult": "VISA"}
    body = render_authentication(done(test_mode=mode, answer=answer))
    assert (body["testMode"], body["brandResult"]) == (mode, "VISA")


def test_a_result_shows_the_issuer_of_the_card() -> None:
    body = render_authentication(done(answer={"card": {"bin": "420000", "last4Digits": "0042"}}))
    assert {"issuer", "type", "bin"} <= set(body["card"])


@pytest.mark.parametrize(
    ("code", "proof", "shown"),
    [
        ("000.400.110", {"threeDSecure.verificationId": Secret("CAVV")}, "CAVV"),
        ("000.400.120", {"threeDSecure.verificationId": Secret("CAVV")}, "CAVV"),
        ("100.380.401", {"threeDSecure.verificationId": Secret("CAVV")}, None),
        ("000.400.110", {}, None),
    ],
)
def test_the_proof_is_shown_of_an_authentication_that_succeeded(
    monkeypatch: pytest.MonkeyPatch, code: str, proof: dict[str, Secret], shown: str | None
) -> None:
    source = standalone_authentication.authentications
    monkeypatch.setattr(source, "build_authentication_proof", lambda row: proof)
    monkeypatch.setattr(source, "build_authentication_facts", lambda row: {"eci": "05"})
    body = render_authentication(done(code=code, request={"threeDSecure": {"challengeIndicator": "01"}}))
    assert body["threeDSecure"].get("verificationId") == shown
    assert (body["threeDSecure"]["eci"], body["threeDSecure"]["challengeIndicator"]) == ("05", "01")


@pytest.mark.parametrize(("device", "redirected"), [("02", True), ("03", False)])
def test_one_that_waits_for_its_shopper_shows_where_to(device: str, redirected: bool) -> None:
    body = render_authentication(done(step="challenge", device_channel=device))
    assert ("redirect" in body) is redirected
    assert body["result"]["code"] == "000.200.000"
    if redirected:
        assert body["redirect"]["url"].endswith(UUID(int=3).hex)

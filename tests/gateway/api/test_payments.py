"""The payment endpoints: which channel, token, key and renderer a payment is made with, and what is answered.

Source: Part A, Endpoints; rulings D2, D11, D12, D20.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.access.tokens import TokenLimits
from gateway.api import payments
from gateway.api.base_view import RequestContext
from gateway.catalogue.parse import Parameters
from gateway.models import Payment, RequestLog, TokenLimitUsage
from gateway.payments.follow_ups import FollowUpRequest
from gateway.payments.idempotency import StoredResponse
from gateway.payments.payment_request import RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.responses import RenderedResponse
from gateway.payments.store import IdempotencyKeyTakenError
from gateway.payments.token_limits import TokenLimitError
from tests.support.client import Api, payment
from tests.support.fixtures import Shop

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = UUID(int=9)


def a_context(**admission: Any) -> RequestContext:
    usual = {"token": UUID(int=1), "merchant": "M", "channel": None, "entity": None, "payment": None,
             "idempotency_row": None, "limits": None}  # fmt: skip
    return RequestContext(
        admission=SimpleNamespace(**usual | admission),  # type: ignore[arg-type]
        pairs=[("a", "b")],
        trace=RequestTrace(request=UUID(int=2), method="POST", path="/", at=NOW),
        headers={"RateLimit-Limit": "7"},
        endpoint="createPayment",
    )


# --- the channel --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "entity", "chosen"),
    [("C", UUID(int=3), "C"), ("C", None, "C"), (None, UUID(int=3), "dispatched"), (None, None, None)],
)
def test_a_payment_is_of_the_channel_that_was_sent_or_is_dispatched_to_one(
    monkeypatch: pytest.MonkeyPatch, channel: str | None, entity: UUID | None, chosen: str | None
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(payments, "choose_channel", lambda *given: (asked.append(given), "dispatched")[1])
    assert payments.resolve_request_channel(a_context(channel=channel, entity=entity)) == chosen
    assert asked == ([("M", [("a", "b")])] if chosen == "dispatched" else [])


@pytest.mark.django_db
def test_a_request_that_no_channel_takes_is_refused() -> None:
    with pytest.raises(RequestRefusedError) as caught:
        payments.respond_to_first_payment(a_context(), None, Parameters({}), NOW, None)
    assert caught.value.code == payments.CHANNEL_NOT_CONFIGURED_CODE


# --- answers ------------------------------------------------------------------------------------------------------


def test_an_answer_is_json_with_the_rate_headers_and_told_when_it_is_one_from_before() -> None:
    context = a_context()
    fresh = payments._build_json_response(202, '{"a": "ü"}', context)
    assert (fresh.status_code, fresh.content.decode()) == (202, '{"a": "ü"}')
    assert (fresh["Content-Type"], fresh["RateLimit-Limit"]) == ("application/json; charset=utf-8", "7")
    assert "Idempotent-Replayed" not in fresh
    again = payments._build_json_response(200, "{}", context, replayed=True)
    assert (again["Idempotent-Replayed"], again["RateLimit-Limit"]) == ("true", "7")
    assert "Idempotent-Replayed" not in context.headers


@pytest.mark.parametrize("stored", [True, False])
def test_what_was_stored_under_the_key_is_what_is_answered(monkeypatch: pytest.MonkeyPatch, stored: bool) -> None:
    """Byte for byte: whoever asks again gets the same."""
    claim: Any = object()
    rendered: list[Any] = []

    def render(payment: Any, form: Any) -> RenderedResponse:
        rendered.append((payment, form.ndc, form.parameters, form.renderer, form.docs_url.rpartition("/")[2]))
        return RenderedResponse(status=201, text="rendered")

    monkeypatch.setattr(payments, "render_response", render)
    context, parameters, renderer = a_context(), Parameters({"a": "b"}), lambda _payment: {}
    responder = payments.PaymentResponder(context, parameters, claim, renderer)
    assert responder.idempotency is not None
    assert responder.idempotency.claim is claim
    if stored:
        responder.idempotency.stored = RenderedResponse(status=202, text="stored")
    payment: Any = object()
    answer = responder.build_response(payment)
    assert (answer.status_code, answer.content) == ((202, b"stored") if stored else (201, b"rendered"))
    assert rendered == ([] if stored else [(payment, context.trace.ndc, parameters, renderer, "createPayment")])
    assert payments.PaymentResponder(context, parameters, None).idempotency is None


@pytest.mark.django_db
def test_a_stored_answer_is_replayed_whole_or_made_of_the_payment(api: Api) -> None:
    """Whole where it is final, completed where the payment knows the rest, and the present state without one."""
    first = api.pay()
    payment = Payment.objects.get(pk=first.id)
    context = a_context()
    whole = payments.replay_response(
        StoredResponse(status=218, body='{"complete": 1, "result": {"code": "1"}}', payment=payment.pk), context, dict
    )
    assert (whole.status_code, whole.content) == (218, b'{"complete": 1, "result": {"code": "1"}}')
    assert whole["Idempotent-Replayed"] == "true"
    compact = '["2026-01-01 00:00:00+0000","b-1","n-1"]'
    completed = payments.replay_response(StoredResponse(status=217, body=compact, payment=payment.pk), context, dict)
    body = json.loads(completed.content)
    assert (completed.status_code, completed["Idempotent-Replayed"]) == (217, "true")
    assert (body["id"], body["timestamp"], body["buildNumber"], body["ndc"]) == (
        first.id, "2026-01-01 00:00:00+0000", "b-1", "n-1",
    )  # fmt: skip
    shown: list[Payment] = []

    def renderer(row: Payment) -> dict[str, Any]:
        shown.append(row)
        return {"result": {"code": "000.100.110"}, "own": "7"}

    present = payments.replay_response(StoredResponse(status=219, body=None, payment=payment.pk), context, renderer)
    assert (present.status_code, present["Idempotent-Replayed"]) == (200, "true")
    assert b'"own":"7"' in present.content
    assert shown == [payment]


# --- first payments and follow-ups --------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_payment_is_followed_by_its_path_or_by_its_name(api: Api) -> None:
    held, beside = api.pay(paymentType="PA"), api.pay(paymentType="PA")
    raised = {"paymentType": "PA", "amount": "5.00", "currency": "EUR", "referenceUuid": held.id}
    named = api.post("/v1/payments", {**raised, "standingInstruction.industryPractice": "INCREMENTAL_AUTH"})
    by_path = api.follow(held.id, "CP", "7.00")
    for answer, kind, amount in ((named, "PA", "5.00"), (by_path, "CP", "7.00")):
        assert answer.status == 200, answer
        row = Payment.objects.get(pk=answer.id)
        assert (row.referenced, row.payment_type, row.amount) == (UUID(held.id), kind, Decimal(amount))
    assert not Payment.objects.filter(referenced=beside.id).exists()


@pytest.mark.django_db
def test_a_brand_and_a_test_mode_that_are_not_the_chains_are_told_as_ignored(api: Api) -> None:
    """D2: both come from the chain."""
    paid = api.pay().id
    others = {"paymentBrand": "MASTER", "testMode": "EXTERNAL"}
    made = api.follow(paid, "RF", "1.00", **others)
    assert (made.status, made.body["paymentBrand"], made.body["testMode"]) == (200, "VISA", "INTERNAL")
    assert sorted(made.body["ignoredParameters"]) == sorted(others)
    [message] = api.get("/v1/test/acquirer/messages", {"id": made.id}).body["messages"]
    assert "testMode" not in message["sent"]
    same = api.follow(paid, "RF", "1.00", paymentBrand="VISA", testMode="INTERNAL")
    assert (same.status, "ignoredParameters" in same.body) == (200, False)


def test_a_read_tells_the_payment_its_rate_and_what_was_ignored(shop: Shop) -> None:
    channel = shop.open_channel(limits={"*": {"limit": 50, "window_s": 1_000_000}})
    api = shop.api_of(channel)
    paid = api.pay(amount="7.00")
    answer = api.get(f"/v1/payments/{paid.id}", {"colour": "red"})
    assert (answer.status, answer.id, answer.body["amount"]) == (200, paid.id, "7.00")
    assert answer.headers["RateLimit-Limit"] == "50"
    assert "colour" in answer.text
    missing = api.read("0" * 32)
    assert (missing.status, missing.code) == (404, "700.400.580")


def a_follow_up(chain: Any, amount: str | None = None, target: UUID | None = TARGET) -> FollowUpRequest:
    values = {"amount": amount} if amount is not None else {}
    return FollowUpRequest(
        payment=UUID(int=8), target=target, merchant="M", channel=None, parameters=Parameters(values),  # type: ignore[arg-type]
        now=NOW, trace=a_context().trace, chain=chain,
    )  # fmt: skip


def a_chain(kind: str, found: bool = True) -> Any:
    target = SimpleNamespace(payment_type=kind, amount=Decimal("20.00"), currency="USD")
    return SimpleNamespace(
        find=lambda ident: target if found and ident == TARGET else None,
        authorization=SimpleNamespace(authorized=Decimal("35.00")),
    )


@pytest.mark.parametrize(
    ("chain", "amount", "target", "moved"),
    [
        (None, "5.00", TARGET, (None, None)),
        (a_chain("DB", found=False), "5.00", TARGET, (None, None)),
        (a_chain("DB"), "5.00", None, (None, None)),
        (a_chain("DB"), "5.00", TARGET, (Decimal("5.00"), "USD")),
        (a_chain("DB"), None, TARGET, (Decimal("20.00"), "USD")),
        # Of an authorization with all that it was raised by.
        (a_chain("PA"), None, TARGET, (Decimal("35.00"), "USD")),
        (a_chain("PA"), "5.00", TARGET, (Decimal("5.00"), "USD")),
    ],
)
def test_a_follow_up_moves_its_amount_or_all_that_there_is(
    chain: Any, amount: str | None, target: UUID | None, moved: tuple[Decimal | None, str | None]
) -> None:
    assert payments._resolve_max_amount(a_follow_up(chain, amount, target), None) == moved


@pytest.mark.parametrize(
    ("kind", "most", "refused"), [("DB", "20.00", False), ("DB", "19.99", True), ("PA", "34.99", True)]
)
def test_a_reversal_of_all_is_held_to_what_the_token_may_move_at_once(kind: str, most: str, refused: bool) -> None:
    limits = TokenLimits(amount=Decimal(most))
    if not refused:
        assert payments._resolve_max_amount(a_follow_up(a_chain(kind)), limits)[1] == "USD"
        return
    with pytest.raises(TokenLimitError):
        payments._resolve_max_amount(a_follow_up(a_chain(kind)), limits)


@pytest.mark.django_db
def test_first_payments_and_follow_ups_count_towards_the_tokens_day(shop: Shop) -> None:
    token, text = shop.issue(limits=TokenLimits(day_amount=Decimal("100.00")))
    limited = shop.api.with_token(text)
    paid = limited.pay(amount="60.00")
    refund = limited.follow(paid.id, "RF", "40.00")
    assert (paid.status, refund.status) == (200, 200)
    used = {row.payment: (row.token_id, row.amount, row.currency) for row in TokenLimitUsage.objects.all()}
    assert used == {
        UUID(paid.id): (token.pk, Decimal("60.00"), "EUR"),
        UUID(refund.id): (token.pk, Decimal("40.00"), "EUR"),
    }
    over = limited.pay(amount="0.01")
    assert (over.status, over.code) == (403, "800.900.300")
    assert "24 hours" in over.description
    assert limited.follow(paid.id, "RF", "0.01").status == 403
    assert shop.api.pay(amount="500.00").status == 200


# --- keys -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_key_is_of_one_method_path_and_token_and_is_answered_as_the_first_time(shop: Shop) -> None:
    api = shop.api
    held = api.pay(paymentType="PA")
    other = shop.api.with_token(shop.issue()[1])
    capture = {"paymentType": "CP", "amount": "7.00", "currency": "EUR"}
    named = {"paymentType": "PA", "amount": "5.00", "currency": "EUR", "referenceUuid": held.id}
    named["standingInstruction.industryPractice"] = "INCREMENTAL_AUTH"
    path = f"/v1/payments/{held.id}"
    doors = (
        (api, path, capture),
        (api, "/v1/payments", named),
        (other, path, capture),
        (other, "/v1/payments", payment()),
    )
    made = {}
    for who, where, fields in doors:
        first, second = (who.post(where, fields, Idempotency_Key="key-1") for _ in range(2))
        assert (first.status, second.status, second.text) == (200, 200, first.text), first
        assert "Idempotent-Replayed" not in first.headers
        assert second.headers["Idempotent-Replayed"] == "true"
        made[first.id] = first
    assert Payment.objects.count() == 1 + len(made) == 5
    changed = api.post(path, capture | {"amount": "8.00"}, Idempotency_Key="key-1")
    assert (changed.status, list(changed.errors)) == (400, ["Idempotency-Key"])
    unnamed = [api.post(path, capture).id for _ in range(2)]
    assert len(set(unnamed)) == 2


@pytest.mark.django_db
def test_a_key_whose_payment_is_under_way_is_refused_as_such(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*_: Any) -> Any:
        raise IdempotencyKeyTakenError

    monkeypatch.setattr(payments.PaymentsView, "pay", taken)
    refused = api.post("/v1/payments", payment(), Idempotency_Key="key-1")
    assert (refused.status, refused.code) == (409, "800.120.402"), refused
    assert "key-1" in refused.text


@pytest.mark.django_db
def test_a_first_payment_and_a_follow_up_are_of_their_request(api: Api) -> None:
    """The one in the log of requests, whose number the answer has."""
    first = api.pay()
    followed = api.follow(first.id, "RF", "5.00")
    for answer in (first, followed):
        row, logged = Payment.objects.get(pk=answer.id), RequestLog.objects.get(payment=answer.id)
        assert row.request_id == logged.pk
        assert logged.ndc == answer.body["ndc"]


@pytest.mark.django_db
def test_an_address_that_is_no_id_names_no_payment_to_follow(api: Api, stranger: Shop) -> None:
    theirs = stranger.api.pay().id
    for target in ("x", "0" * 32, theirs):
        refused = api.follow(target, "RF", "5.00")
        assert (refused.status, refused.code) == (404, "600.200.500"), refused

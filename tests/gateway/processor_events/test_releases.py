"""What a processor lets go of an authorization is a refund there in older versions of its API, and gives no money back.

Source: https://docs.stripe.com/changelog/basil/2025-03-31/remove-refund-from-partial-capture-and-payment-cancellation-flow.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.core.result_codes import OUTCOME_UNKNOWN_CODE
from gateway.models import AcquirerAccount, Payment, ProcessorEvent, Status, ThreeDSecureConfiguration
from tests.gateway.processor_events.test_webhooks import APPROVED, Sender, intent_of, pay
from tests.support.card_api import AUTHENTICATES, CardApi, account_at
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.threeds import Shopper, buy

State = ProcessorEvent.State
RELEASED = "it let go of what was authorized and not captured"


@pytest.fixture
def sender(card_shop: Shop) -> Sender:
    return Sender(account=AcquirerAccount.objects.get(), http=Client(raise_request_exception=False))


def tell_of_refunds(processor: CardApi, sender: Sender) -> list[ProcessorEvent]:
    """The events that the processor sends of each refund: of the refund, and of its charge."""
    refunds = processor.of("refund")
    assert refunds
    kinds = ("refund.created", "charge.refund.updated")
    told = [sender.tell(kind, one["id"]) for one in refunds for kind in kinds]
    return [*told, *(sender.tell("charge.refunded", one["charge"]) for one in refunds)]


@pytest.mark.parametrize("captured", ["60.00", "46.00", "30.00"])
def test_the_rest_after_a_capture_is_no_refund(
    card_shop: Shop, processor: CardApi, sender: Sender, captured: str
) -> None:
    """All that was captured can be refunded, whether the rest is smaller, as large or larger."""
    held = pay(card_shop, "PA")
    taken = card_shop.api.follow(held.id, "CP", captured)
    told = tell_of_refunds(processor, sender)
    assert {(one.state, one.why, one.recorded) for one in told} == {(State.DONE, RELEASED, None)}
    assert {one.payment for one in told} == {Payment.objects.get(pk=held.id).pk}
    assert Payment.objects.count() == 2
    assert card_shop.api.follow(taken.id, "RF", captured).code == APPROVED


def test_the_rest_after_a_capture_without_an_answer_is_no_refund(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    """The processor's events are before our answer."""
    held = pay(card_shop, "PA")
    processor.fault("silent_after")
    taken = card_shop.api.follow(held.id, "CP", "60.00")
    assert taken.code == OUTCOME_UNKNOWN_CODE
    assert {(one.state, one.why) for one in tell_of_refunds(processor, sender)} == {(State.DONE, RELEASED)}
    assert recover_after(60).settled == 1
    assert not Payment.objects.filter(payment_type="RF").exists()
    assert card_shop.api.follow(taken.id, "RF", "60.00").code == APPROVED


def test_a_refund_made_in_the_processors_pages_after_a_release_of_as_much_is_one(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    held = pay(card_shop, "PA")
    taken = card_shop.api.follow(held.id, "CP", "52.00")
    intent = intent_of(processor, held)
    refund = processor.refund(intent, 4_000)
    (release,) = processor.releases
    assert processor.things[release]["amount"] == refund["amount"]
    assert sender.tell("refund.created", release).why == RELEASED
    row = sender.tell("refund.created", refund["id"])
    (made,) = Payment.objects.filter(payment_type="RF")
    assert (row.state, row.recorded, made.approved_amount) == (State.DONE, made.pk, Decimal("40.00"))
    again = sender.tell("charge.refunded", intent["latest_charge"]["id"])
    assert (again.state, Payment.objects.filter(payment_type="RF").count()) == (State.DONE, 1)
    assert card_shop.api.follow(taken.id, "RF", "12.01").code == "700.400.200"
    assert card_shop.api.follow(taken.id, "RF", "12.00").code == APPROVED


def test_the_release_after_several_captures_is_none_though_a_refund_of_as_much_came_before(
    shop: Shop, processor: CardApi
) -> None:
    """The refund was made in the processor's pages while a rest was still held, and is recorded."""
    account = account_at(shop.channel, processor.url, multicapture="if_available")
    sender = Sender(account=account, http=Client(raise_request_exception=False))
    held = pay(shop, "PA")
    taken = shop.api.follow(held.id, "CP", "72.00")
    refund = processor.refund(intent_of(processor, held), 2_000)
    assert sender.tell("refund.created", refund["id"]).state == State.DONE
    assert shop.api.follow(held.id, "RV").code == APPROVED
    (release,) = processor.releases
    assert processor.things[release]["amount"] == refund["amount"]
    row = sender.tell("refund.created", release)
    assert (row.state, row.why, row.recorded) == (State.DONE, RELEASED, None)
    (made,) = Payment.objects.filter(payment_type="RF")
    assert sender.tell("refund.created", refund["id"]).recorded == made.pk
    assert shop.api.follow(taken.id, "RF", "52.00").code == APPROVED


def test_a_refund_of_ours_as_large_as_the_rest_is_no_release(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    held = pay(card_shop, "PA")
    taken = card_shop.api.follow(held.id, "CP", "52.00")
    assert card_shop.api.follow(taken.id, "RF", "40.00").code == APPROVED
    (ours,) = processor.refunds_made()
    row = sender.tell("refund.created", ours["id"])
    assert (row.state, row.payment) == (State.DONE, Payment.objects.get(payment_type="RF").pk)


def test_a_version_that_makes_no_refund_of_the_rest_has_refunds_of_as_much(shop: Shop, processor: CardApi) -> None:
    """Half is captured, and given back in the processor's pages."""
    account = account_at(shop.channel, processor.url, api_version="2025-03-31.basil")
    sender = Sender(account=account, http=Client(raise_request_exception=False))
    held = pay(shop, "PA")
    assert shop.api.follow(held.id, "CP", "46.00").code == APPROVED
    assert not processor.of("refund")
    row = sender.tell("refund.created", processor.refund(intent_of(processor, held), 4_600)["id"])
    made = Payment.objects.get(payment_type="RF")
    assert (row.state, row.recorded, made.approved_amount) == (State.DONE, made.pk, Decimal("46.00"))


@pytest.mark.parametrize("by", ["us", "the processor's pages"])
@pytest.mark.parametrize("version", ["", "2025-03-31.basil"])
def test_an_authorization_that_is_given_up_is_no_refund(shop: Shop, processor: CardApi, by: str, version: str) -> None:
    """In its pages also with a later version: those have the account's own."""
    account = account_at(shop.channel, processor.url, **({"api_version": version} if version else {}))
    sender = Sender(account=account, http=Client(raise_request_exception=False))
    held = pay(shop, "PA")
    intent = intent_of(processor, held)
    if by == "us":
        assert shop.api.follow(held.id, "RV").code == APPROVED
        if version:
            assert not processor.of("refund")
            return
    else:
        processor.act(intent["id"], "cancel", {})
    assert {(one.state, one.why) for one in tell_of_refunds(processor, sender)} == {(State.DONE, RELEASED)}
    assert sender.tell("payment_intent.canceled", intent["id"]).state == State.DONE
    assert [one.payment_type for one in Payment.objects.order_by("id")] == ["PA", "RV"]


def test_an_approval_that_the_rule_set_refuses_is_given_up_without_a_refund(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    target = find_configuration_target(card_shop.channel.id)
    assert target is not None
    risk = {"set": "SET", "sets": [{"key": "SET", "avs": {"A": "decline"}, "start": 5}]}
    apply_configuration(target, {"risk": risk}, by=audit_log.COMMAND_LINE_ACTOR)
    refused = pay(card_shop, "PA", billing__street1="Example Street 1", billing__postcode="80331")
    assert Payment.objects.get(pk=refused.id).status == Status.DECLINED
    assert {(one.state, one.why) for one in tell_of_refunds(processor, sender)} == {(State.DONE, RELEASED)}
    assert Payment.objects.count() == 1


def test_the_release_of_an_earlier_attempt_is_of_no_concern(shop: Shop, processor: CardApi) -> None:
    """After a step-up the declined attempt's intent is cancelled; money that it gave back would be flagged."""
    channel = shop.open_channel("stepping up", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    account_at(channel, processor.url)
    sender = Sender(account=AcquirerAccount.objects.get(channel=channel), http=Client(raise_request_exception=False))
    exempted = {"testMode": "EXTERNAL", "paymentType": "PA", "threeDSecure.challengeIndicator": "06"}
    held = buy(shop.api_of(channel), AUTHENTICATES, **exempted)
    first = intent_of(processor, held)
    Shopper.of(held).enter()
    assert Payment.objects.get(pk=held.id).status == Status.APPROVED
    first |= {"status": "requires_capture", "amount_capturable": 9_200, "latest_charge": {"id": "ch_of_the_first"}}
    processor.act(first["id"], "cancel", {})
    assert {(one.state, one.why) for one in tell_of_refunds(processor, sender)} == {(State.DONE, RELEASED)}


def test_a_capture_in_the_processors_pages_is_recorded_and_its_rest_is_no_refund(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    held = pay(card_shop, "PA")
    intent = intent_of(processor, held)
    processor.act(intent["id"], "capture", {"amount_to_capture": "6000"})
    assert {(one.state, one.why) for one in tell_of_refunds(processor, sender)} == {(State.DONE, RELEASED)}
    assert sender.tell("payment_intent.succeeded", intent["id"]).recorded == Payment.objects.get(payment_type="CP").pk
    assert not Payment.objects.filter(payment_type="RF").exists()


def test_what_was_let_go_gives_back_nothing_of_what_stands_at_the_processor(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    """Declined here, captured in part and refunded in part in the processor's pages."""
    held = pay(card_shop, "PA")
    Payment.objects.update(status=Status.DECLINED, result_code="900.100.301")
    intent = intent_of(processor, held)
    processor.act(intent["id"], "capture", {"amount_to_capture": "6000"})
    processor.refund(intent, 3_000)
    assert sender.tell("payment_intent.succeeded", intent["id"]).state == State.FLAGGED
    processor.refund(intent, 3_000)
    assert sender.tell("payment_intent.succeeded", intent["id"]).state == State.DONE

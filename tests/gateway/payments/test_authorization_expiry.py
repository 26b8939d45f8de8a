"""Authorizations end: their validity by brand, a capture that comes too late, the release of the rest, renewals."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.models import AuthorizationExpiry, AuthorizationRelease, Channel, Merchant, Payment, PaymentEvent, Status
from gateway.payments import authorization_expiry, store
from gateway.payments.authorization_expiry import EXPIRY_RETRY_DELAY, RENEWAL_GRACE, expire_authorizations
from gateway.payments.authorization_releases import RELEASE_RETENTION, RELEASE_SWEEP_TIMER, release_authorizations
from gateway.payments.chain_amounts import Chain
from gateway.payments.chain_states import ChainStatus, resolve_chain_status
from tests.support.clock import jump, pass_time
from tests.support.fixtures import Shop
from tests.support.webhook_delivery import deliver, messages, register
from tests.support.webhooks import hooked

OK = "000.100.110"
TOO_LATE = "700.300.400"
RAISE = {"standingInstruction.industryPractice": "INCREMENTAL_AUTH"}
RENEW = {"standingInstruction.industryPractice": "REAUTHORIZATION"}
MASTERCARD = {"paymentBrand": "MASTER", "card.number": "5454545454545454"}
MIT = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}


def authorize(shop: Shop, amount: str = "100.00", **more: str) -> str:
    return shop.api.pay(paymentType="PA", amount=amount, **more).id


def days_of(shop: Shop, **more: str) -> int | None:
    made = shop.api.pay(paymentType="PA", **more)
    row = Payment.objects.get(pk=made.id)
    if row.expires_at is None:
        assert "authorizationExpiresAt" not in made.body.get("resultDetails", {})
        return None
    shown = datetime.strptime(made.body["resultDetails"]["authorizationExpiresAt"], "%Y-%m-%d %H:%M:%S%z")
    assert shown == row.expires_at.replace(microsecond=0)
    assert row.completed_at is not None
    length = row.expires_at - row.completed_at
    assert length == timedelta(days=length.days)
    return length.days


@pytest.mark.parametrize(
    "sent, days",
    [
        ({}, 10),
        ({"card.cvv": None, **MIT, "standingInstruction.type": "UNSCHEDULED"}, 5),
        ({"merchant.mcc": "7011"}, 30),
        (MASTERCARD, 30),
        ({"paymentBrand": "AMEX", "card.number": "377777777777770", "card.cvv": "1234"}, 7),
    ],
)
def test_an_answer_says_until_when_it_may_be_captured(shop: Shop, sent: dict[str, str], days: int) -> None:
    """docs/decisions/0069: by brand, initiator and category."""
    if MIT.items() <= sent.items():
        first = shop.api.pay(**{"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"})
        details = first.body["resultDetails"]
        sent = sent | {"standingInstruction.initialTransactionId": details["CardholderInitiatedTransactionID"]}
    assert days_of(shop, **sent) == days


def test_a_final_authorization_of_mastercard_is_shorter(shop: Shop) -> None:
    Channel.objects.update(authorization_kind=Channel.AuthorizationKind.FINAL)
    assert days_of(shop, **MASTERCARD) == 7


WALLET = {
    "paymentBrand": "WALLET1", "wallet1.source": "web", "card.cvv": None, "threeDSecure.eci": "02",
    "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
}  # fmt: skip


@pytest.mark.parametrize("number, days", [("5454545454545454", 30), ("4200000000000000", 10)])
def test_a_wallets_authorization_has_the_days_of_the_card_in_it(shop: Shop, number: str, days: int) -> None:
    """The networks' rules are the card's: of these, an increment prolongs Mastercard's."""
    sent = {**WALLET, "card.number": number}
    assert days_of(shop, **sent) == days
    held = authorize(shop, **sent)
    raised = shop.api.follow(held, "PA", "50.00", **RAISE)
    assert raised.code == OK
    assert ("authorizationExpiresAt" in raised.body["resultDetails"]) == (days == 30)
    Channel.objects.update(authorization_days={"WALLET1": 3, "VISA": 4, "MASTER": 4})
    assert days_of(shop, **sent) == 3


@pytest.mark.parametrize("days, found", [({"VISA": 3}, 3), ({"*": 4}, 4), ({"MASTER": 3}, 10), ({"VISA": None}, None)])
def test_a_channel_may_set_other_days(shop: Shop, days: dict[str, int | None], found: int | None) -> None:
    Channel.objects.update(authorization_days=days)
    assert days_of(shop) == found


def test_a_debit_a_decline_and_an_authorization_of_nothing_have_no_end(shop: Shop) -> None:
    shop.api.pay()
    shop.api.pay(paymentType="PA", card__number="4000015500000005")
    shop.api.pay(paymentType="PA", amount="0.00", createRegistration="true")
    assert not Payment.objects.filter(expires_at__isnull=False).exists()
    assert not AuthorizationExpiry.objects.exists()


def test_nothing_is_captured_raised_or_renewed_after_it(shop: Shop) -> None:
    """M10: refused with the catalogue's own code, before anybody is asked."""
    held = authorize(shop)
    jump(9.9 * 86_400)
    assert shop.api.follow(held, "CP", "10.00").code == OK
    jump(0.2 * 86_400)
    late = shop.api.follow(held, "CP", "10.00")
    assert (late.status, late.code) == (400, TOO_LATE)
    assert "authorize anew" in late.body["resultDetails"]["ExtendedDescription"]
    assert shop.api.follow(held, "PA", "10.00", **RAISE).code == TOO_LATE
    assert shop.api.follow(held, "PA", "10.00", **RENEW).code == TOO_LATE
    assert shop.api.follow(held, "RC", "10.00").code == TOO_LATE
    assert shop.api.follow(held, "RV").code == OK


def test_a_renewal_prolongs_it_and_an_increment_does_not(shop: Shop) -> None:
    held = authorize(shop)
    jump(9 * 86_400)
    renewed = shop.api.follow(held, "PA", "100.00", **RENEW)
    raised = shop.api.follow(held, "PA", "50.00", **RAISE)
    assert "authorizationExpiresAt" in renewed.body["resultDetails"]
    assert "authorizationExpiresAt" not in raised.body["resultDetails"]
    jump(2 * 86_400)
    assert expire_authorizations() == 1
    assert shop.api.follow(held, "CP", "10.00").code == OK
    jump(4 * 86_400)
    assert shop.api.follow(held, "CP", "10.00").code == TOO_LATE


def test_an_increment_of_a_preauthorization_at_mastercard_begins_its_days_anew(shop: Shop) -> None:
    """Mastercard Transaction Processing Rules, 2.9: it prolongs what it raises. A final authorization has none."""
    held = authorize(shop, **MASTERCARD)
    jump(29 * 86_400)
    raised = shop.api.follow(held, "PA", "50.00", **RAISE)
    assert "authorizationExpiresAt" in raised.body["resultDetails"]
    jump(10 * 86_400)
    expire_authorizations()
    assert shop.api.follow(held, "CP", "150.00").code == OK


@pytest.mark.parametrize("first", ["FINAL", "ESTIMATED"])
def test_only_an_estimated_authorization_is_raised_whatever_the_channel_says_by_now(shop: Shop, first: str) -> None:
    """Mastercard increments preauthorizations: a final amount is the amount of the capture."""
    kinds = {kind.name: kind for kind in Channel.AuthorizationKind}
    Channel.objects.update(authorization_kind=kinds.pop(first))
    held = authorize(shop, **MASTERCARD)
    Channel.objects.update(authorization_kind=kinds[next(name for name in ("ESTIMATED", "FINAL") if name != first)])
    answer = shop.api.follow(held, "PA", "50.00", **RAISE)
    details = answer.body["resultDetails"]
    assert ("authorizationExpiresAt" in details) == (answer.code == OK) == (first == "ESTIMATED")
    if first == "FINAL":
        assert (answer.status, answer.code) == (400, "700.300.100")
        assert "only an estimated amount is raised" in details["ExtendedDescription"]


def test_its_end_is_told_and_the_rest_is_released(shop: Shop) -> None:
    held = authorize(shop)
    assert shop.api.follow(held, "CP", "30.00").code == OK
    with hooked() as hook:
        _, secret = register(shop, hook)
        pass_time(shop.api, days=11)
        deliver()
        told = [message for message in messages(hook, secret) if message["payload"]["id"] == held]
    assert (told[-1]["type"], told[-1]["action"]) == ("PAYMENT", "UPDATED")
    payload = told[-1]["payload"]
    assert all("authorizationExpired" not in message["payload"]["resultDetails"] for message in told[:-1])
    assert payload["resultDetails"]["authorizationExpired"] == "true"
    assert (payload["result"]["code"], payload["paymentType"]) == (OK, "PA")
    assert shop.api.read(held).body["resultDetails"]["authorizationExpired"] == "true"
    assert PaymentEvent.objects.filter(payment=held, event="expire").count() == 1
    release = AuthorizationRelease.objects.get()
    assert (release.cause, release.state, release.amount) == ("EXPIRY", "RELEASED", Decimal("70.00"))
    released = Payment.objects.get(pk=release.payment)
    assert (released.payment_type, released.status, released.amount) == ("RV", Status.APPROVED, Decimal("70.00"))
    assert not AuthorizationExpiry.objects.exists()


def test_what_is_captured_whole_or_closed_ends_without_a_word(shop: Shop) -> None:
    whole, closed = authorize(shop), authorize(shop)
    shop.api.follow(whole, "CP", "100.00")
    shop.api.follow(closed, "CP", "10.00", sequence="FINAL")
    jump(11 * 86_400)
    assert expire_authorizations() == 2
    assert not PaymentEvent.objects.filter(event="expire").exists()
    assert not AuthorizationExpiry.objects.exists()


def test_it_ends_once_although_two_look_at_it(shop: Shop) -> None:
    authorize(shop)
    jump(11 * 86_400)
    row = AuthorizationExpiry.objects.get()
    assert expire_authorizations() == 1
    row.save(force_insert=True)
    assert expire_authorizations() == 1
    assert AuthorizationRelease.objects.filter(state="OPEN").count() >= 1
    assert release_authorizations() >= 1
    assert Payment.objects.filter(payment_type="RV").count() == 1


def test_an_authorization_that_cannot_be_ended_keeps_no_other_waiting_and_is_looked_at_an_hour_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, other = UUID(authorize(shop)), UUID(authorize(shop))
    jump(11 * 86_400)
    load = authorization_expiry.load_chain_members

    def fail_for_one(chain: UUID) -> list[Payment]:
        if chain == failing:
            raise RuntimeError
        return load(chain)

    before = clock.merchant_now(Merchant.objects.get(pk=shop.merchant.pk))
    with monkeypatch.context() as fault:
        fault.setattr(authorization_expiry, "load_chain_members", fail_for_one)
        assert expire_authorizations() == 1
        assert expire_authorizations() == 0, "its hour is not over"
    row = AuthorizationExpiry.objects.get()
    assert row.authorization == failing
    assert timedelta(0) <= row.due_at - before - EXPIRY_RETRY_DELAY < timedelta(minutes=1)
    expired = PaymentEvent.objects.filter(event="expire").order_by("at")
    assert list(expired.values_list("payment_id", flat=True)) == [other]
    jump(3_700)
    assert expire_authorizations() == 1
    assert list(expired.values_list("payment_id", flat=True)) == [other, failing]
    assert not AuthorizationExpiry.objects.exists()


def test_what_was_captured_after_it_was_read_is_not_released(shop: Shop) -> None:
    """The payment is compared by its move and by its follow-ups; a capture raises the second alone."""
    ident = authorize(shop)
    seen = Payment.objects.get(pk=ident)
    expiry = AuthorizationExpiry.objects.get()
    assert shop.api.follow(ident, "CP", "40.00").code == OK
    assert Payment.objects.get(pk=ident).sequence == seen.sequence
    assert seen.completed_at is not None
    assert (
        store.insert_release(seen, AuthorizationRelease.Cause.EXPIRY, at=seen.completed_at, expiry=expiry.pk) is False
    )
    assert not AuthorizationRelease.objects.exists()
    assert AuthorizationExpiry.objects.filter(pk=expiry.pk).exists()
    now = Payment.objects.get(pk=ident)
    assert store.insert_release(now, AuthorizationRelease.Cause.EXPIRY, at=seen.completed_at, expiry=expiry.pk) is True
    assert AuthorizationRelease.objects.count() == 1


def test_an_end_that_was_found_stays_when_the_clock_is_put_back(shop: Shop) -> None:
    Channel.objects.update(expired_captures=Channel.ExpiredCaptures.REFUSE)
    held = authorize(shop)
    jump(11 * 86_400)
    expire_authorizations()
    Merchant.objects.update(clock_offset=timedelta(0))
    assert shop.api.follow(held, "CP", "10.00").code == TOO_LATE


@pytest.fixture
def renewing(shop: Shop) -> Shop:
    Channel.objects.update(expired_captures=Channel.ExpiredCaptures.RENEW)
    return shop


def test_a_channel_may_renew_before_a_late_capture(renewing: Shop) -> None:
    held = authorize(renewing)
    pass_time(renewing.api, days=11)
    assert not AuthorizationRelease.objects.exists()
    captured = renewing.api.follow(held, "CP", "60.00")
    assert captured.code == OK
    chain = Chain(list(Payment.objects.filter(chain=held).order_by("id")))
    assert (chain.authorization.renewals, chain.authorization.capturable) == (1, Decimal("40.00"))
    assert renewing.api.follow(held, "CP", "10.00").code == OK
    assert Payment.objects.filter(chain=held, practice="REAUTHORIZATION").count() == 1


def test_a_capture_that_could_not_be_made_renews_nothing(renewing: Shop) -> None:
    held = authorize(renewing)
    jump(11 * 86_400)
    assert renewing.api.follow(held, "CP", "100.01").code == TOO_LATE
    assert renewing.api.follow(held, "CP", "1.00", currency="USD").code == "700.100.500"
    assert Payment.objects.filter(chain=held, payment_type="PA").count() == 1


def state_of_chain(first: str) -> ChainStatus:
    return resolve_chain_status(Payment.objects.select_related("standing").get(pk=first))


def test_the_state_of_the_chain_is_expired_until_a_renewal(renewing: Shop) -> None:
    """Lists and pages say it (docs/decisions/0076)."""
    held, drawn = authorize(renewing), authorize(renewing)
    assert renewing.api.follow(drawn, "CP", "30.00").code == OK
    assert state_of_chain(drawn) is ChainStatus.PARTLY_CAPTURED
    pass_time(renewing.api, days=11)
    assert (state_of_chain(held), state_of_chain(drawn)) == (ChainStatus.EXPIRED, ChainStatus.CAPTURED)
    assert renewing.api.follow(held, "PA", "100.00", **RENEW).code == OK
    assert renewing.api.follow(drawn, "CP", "20.00").code == OK
    assert (state_of_chain(held), state_of_chain(drawn)) == (ChainStatus.AUTHORIZED, ChainStatus.PARTLY_CAPTURED)


def test_a_renewed_authorization_expires_anew(renewing: Shop) -> None:
    held = authorize(renewing)
    ends = []
    for number in (1, 2):
        pass_time(renewing.api, days=11)
        first = Payment.objects.get(pk=held)
        assert PaymentEvent.objects.filter(payment=held, event="expire").count() == number
        assert first.expired_at is not None
        assert first.expires_at is not None
        assert first.expired_at >= first.expires_at
        ends.append(first.expires_at)
        assert renewing.api.follow(held, "CP", "10.00").code == OK
    assert ends[1] > ends[0]
    assert not AuthorizationRelease.objects.exists()


def test_there_the_rest_is_released_when_no_capture_may_come_any_more(renewing: Shop) -> None:
    held = authorize(renewing)
    end = Payment.objects.get(pk=held).expires_at
    assert end is not None
    begun = clock.merchant_now(renewing.merchant)
    jump((end - begun).total_seconds() + 60)
    assert expire_authorizations() == 1
    assert AuthorizationExpiry.objects.get().due_at == end + RENEWAL_GRACE
    # A row that is looked at too early waits until then.
    AuthorizationExpiry.objects.update(due_at=end)
    assert expire_authorizations() == 0
    assert AuthorizationExpiry.objects.get().due_at == end + RENEWAL_GRACE
    jump((RENEWAL_GRACE - timedelta(minutes=2)).total_seconds())
    assert (expire_authorizations(), AuthorizationRelease.objects.count()) == (0, 0)
    jump(120)
    assert expire_authorizations() == 1
    release = AuthorizationRelease.objects.get()
    assert (release.cause, release.state) == ("EXPIRY", "OPEN")
    assert not AuthorizationExpiry.objects.exists()


def test_what_was_renewed_before_its_release_was_sent_is_not_released(renewing: Shop) -> None:
    """A release is tried for a day and more; meanwhile a late capture may renew what it would reverse."""
    held = authorize(renewing)
    jump(11 * 86_400)
    assert expire_authorizations() == 1
    jump(RENEWAL_GRACE.total_seconds())
    assert expire_authorizations() == 1
    assert AuthorizationRelease.objects.get().state == "OPEN"
    assert renewing.api.follow(held, "CP", "60.00").code == OK
    assert release_authorizations() == 1
    assert AuthorizationRelease.objects.get().state == AuthorizationRelease.State.NOTHING_LEFT
    assert renewing.api.follow(held, "CP", "40.00").code == OK
    assert not Payment.objects.filter(chain=held, payment_type="RV").exists()


@pytest.mark.parametrize("practice", [RAISE, RENEW])
@pytest.mark.parametrize("status", [Status.STARTED, Status.PENDING, Status.IN_DOUBT])
def test_while_an_increment_or_a_renewal_has_no_answer_the_end_waits_for_an_hour(
    shop: Shop, practice: dict[str, str], status: Status
) -> None:
    held = authorize(shop)
    more = shop.api.follow(held, "PA", "10.00", **practice).id
    AuthorizationExpiry.objects.exclude(pk=AuthorizationExpiry.objects.earliest("pk").pk).delete()
    Payment.objects.filter(pk=more).update(status=status)
    jump(11 * 86_400)
    before = clock.merchant_now(Merchant.objects.get(pk=shop.merchant.pk))
    assert expire_authorizations() == 0
    waits = AuthorizationExpiry.objects.get().due_at - before
    assert timedelta(0) <= waits - EXPIRY_RETRY_DELAY < timedelta(minutes=1)
    assert not PaymentEvent.objects.filter(event="expire").exists()
    Payment.objects.filter(pk=more).update(status=Status.DECLINED)
    jump(3_700)
    assert expire_authorizations() == 1
    assert PaymentEvent.objects.filter(event="expire").count() == 1


def test_there_a_merchant_may_renew_late_too(renewing: Shop) -> None:
    held = authorize(renewing)
    jump(11 * 86_400)
    assert renewing.api.follow(held, "PA", "100.00", **RENEW).code == OK
    assert renewing.api.follow(held, "PA", "10.00", **RAISE).code == OK


def test_an_ended_release_is_forgotten_after_its_time(shop: Shop) -> None:
    authorize(shop)
    pass_time(shop.api, days=11)
    row = AuthorizationRelease.objects.get()
    assert row.ended_at is not None
    assert RELEASE_SWEEP_TIMER.run() == 0
    AuthorizationRelease.objects.update(ended_at=row.ended_at - RELEASE_RETENTION)
    assert RELEASE_SWEEP_TIMER.run() == 1

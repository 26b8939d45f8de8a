"""What timers claim: by whose clock, of which merchant, without a running lease, the longest due first.

One table of claims, so that each is asked every question. Source: docs/time.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import models

from checkout import expiry, receipts, result_calls
from checkout.models import Checkout, ReceiptMail, ResultCall
from gateway.core import clock, identifiers
from gateway.models import (
    Authentication,
    AuthenticationStep,
    AuthorizationExpiry,
    MandateMail,
    Merchant,
    OpenPayment,
    Payment,
    Registration,
    Status,
    Suspension,
)
from gateway.payments import (
    authorization_expiry,
    mandate_mails,
    recovery,
    registration_retention,
    shopper_return,
)
from gateway.threeds import authentications
from tests.support.fixtures import Shop
from tests.support.shopper import open_checkout

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
PASSPORT = {
    "customer__givenName": "Jane",
    "customer__surname": "Jones",
    "customer__identificationDocType": "PASSPORT",
    "customer__identificationDocId": "C01X00T47",
}
"""Values that a checkout keeps sealed."""
Taken = set[Hashable]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """``due``: the column of the moment, from which a row is due after ``delay``. ``leased``: the rows have a
    ``lease_until``. ``by_merchants_clock``: else real time. ``make``: one row of a shop that is not due yet; its key.
    ``take``: what is claimed now at most, of one merchant or all. ``next_at``: the moment of a merchant's next."""

    model: type[models.Model]
    due: str
    make: Callable[[Shop], Hashable]
    take: Callable[[Merchant | None, int], Taken]
    delay: timedelta = timedelta(0)
    leased: bool = False
    by_merchants_clock: bool = True
    of_one_merchant: bool = True
    next_at: Callable[[Merchant], datetime | None] | None = None

    def put(self, shop: Shop, moment: timedelta, **more: Any) -> Hashable:
        """A row that is due ``moment`` from now."""
        key = self.make(shop)
        values = {self.due: clock.real_now() - self.delay + moment, **more}
        assert self.model._default_manager.filter(pk=key).update(**values) == 1
        return key


def pay(shop: Shop, status: Status, **more: str) -> Payment:
    made = Payment.objects.filter(pk=shop.api.pay(**more).id)
    made.update(status=status)
    return made.get()


def make_suspension(shop: Shop) -> Hashable:
    stage = Suspension.Stage.REDIRECT
    return Suspension.objects.create(payment=pay(shop, Status.PENDING), stage=stage, deadline=clock.real_now()).pk


def make_open_payment(shop: Shop) -> Hashable:
    return OpenPayment.objects.create(payment=pay(shop, Status.IN_DOUBT), recover_at=clock.real_now()).pk


def make_mandate_mail(shop: Shop) -> Hashable:
    payment = pay(shop, Status.APPROVED)
    row = MandateMail(payment=payment, merchant=shop.merchant, mandate=payment.pk.hex, due_at=clock.real_now())
    row.save(force_insert=True)
    return row.pk


def make_expiry(shop: Shop) -> Hashable:
    held = shop.api.pay(paymentType="PA").id
    return AuthorizationExpiry.objects.get(authorization=held).pk


def make_registration(shop: Shop) -> Hashable:
    stored = shop.api.pay(createRegistration="true").body["registrationId"]
    return Registration.objects.get(pk=stored).pk


def make_checkout(shop: Shop) -> Hashable:
    open_checkout(shop.api, **PASSPORT)
    return Checkout.objects.latest("created_at").pk


def make_result_call(shop: Shop) -> Hashable:
    assert open_checkout(shop.api, shopperResultUrl="https://shop.example/result").pay().status == 200
    return ResultCall.objects.latest("payment").pk


def make_receipt_mail(shop: Shop) -> Hashable:
    open_checkout(shop.api)
    checkout = Checkout.objects.latest("created_at")
    return ReceiptMail.objects.create(checkout=checkout, to="a@b.example", language="en", due_at=clock.real_now()).pk


def make_authentication(shop: Shop) -> Hashable:
    """Alone, and waiting for its shopper."""
    return Authentication.objects.create(
        merchant=shop.merchant,
        channel=shop.channel,
        brand="VISA",
        amount=Decimal("92.00"),
        currency="EUR",
        step=AuthenticationStep.CHALLENGE,
        request_id=identifiers.row_id(),
        created_at=clock.real_now(),
        deadline=clock.real_now(),
    ).pk


def marked(model: type[models.Model], **mark: Any) -> Taken:
    return set(model._default_manager.filter(**mark).values_list("pk", flat=True))


def with_most(module: Any, names: dict[str, int], run: Callable[[], object]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in names.items():
            patch.setattr(module, name, value)
        run()


def take_mandate_mails(merchant: Merchant | None, most: int) -> Taken:
    size = {"MANDATE_MAIL_BATCH_SIZE": most}
    with_most(mandate_mails, size, lambda: mandate_mails.send_due_mandate_mails(merchant))
    return marked(MandateMail, tries__gt=0)


def take_receipt_mails(_merchant: Merchant | None, most: int) -> Taken:
    with_most(receipts, {"RECEIPT_MAIL_BATCH_SIZE": most}, receipts.send_due_receipt_mails)
    return marked(ReceiptMail, tries__gt=0)


def take_expiries(merchant: Merchant | None, most: int) -> Taken:
    before = marked(AuthorizationExpiry)
    size = {"MAX_EXPIRIES_PER_TICK": most}
    with_most(authorization_expiry, size, lambda: authorization_expiry.expire_authorizations(merchant))
    return before - marked(AuthorizationExpiry)


def take_registrations(_merchant: Merchant | None, most: int) -> Taken:
    size = {"ERASURE_BATCH_SIZE": most, "MAX_ERASURE_ROUNDS": 1}
    with_most(registration_retention, size, registration_retention.erase_expired_registrations)
    return marked(Registration, means_sealed__isnull=True)


def take_checkouts(merchant: Merchant | None, most: int) -> Taken:
    size = {"EXPIRY_BATCH_SIZE": most, "MAX_EXPIRY_BATCHES": 1}
    with_most(expiry, size, lambda: expiry.erase_expired_secrets(merchant))
    return marked(Checkout, request_sealed__isnull=True)


CLAIMS = {
    "suspensions": Claim(
        model=Suspension,
        due="deadline",
        make=make_suspension,
        take=lambda merchant, most: {
            one.pk for one in shopper_return.claim_due_suspensions(most, clock.real_now(), merchant)
        },
        leased=True,
        next_at=shopper_return.find_next_suspension_deadline,
    ),
    "inquiries": Claim(
        model=OpenPayment,
        due="recover_at",
        make=make_open_payment,
        take=lambda _merchant, most: {one.pk for one in recovery.claim_due_inquiries(most)},
        by_merchants_clock=False,
        of_one_merchant=False,
    ),
    "mandate mails": Claim(
        model=MandateMail,
        due="due_at",
        make=make_mandate_mail,
        take=take_mandate_mails,
        leased=True,
        next_at=mandate_mails.find_next_mandate_mail,
    ),
    "ends of authorizations": Claim(
        model=AuthorizationExpiry,
        due="due_at",
        make=make_expiry,
        take=take_expiries,
        next_at=authorization_expiry.find_next_expiry,
    ),
    "registrations": Claim(
        model=Registration,
        due="retain_until",
        make=make_registration,
        take=take_registrations,
        delay=registration_retention.ERASURE_DELAY,
        of_one_merchant=False,
    ),
    "checkouts": Claim(
        model=Checkout,
        due="expires_at",
        make=make_checkout,
        take=take_checkouts,
        next_at=expiry.next_checkout_expiry,
    ),
    "authentications": Claim(
        model=Authentication,
        due="deadline",
        make=make_authentication,
        take=lambda merchant, most: {
            one.pk for one in authentications.list_due_authentications(clock.real_now(), most, merchant)
        },
        next_at=authentications.next_authentication_due,
    ),
    "result calls": Claim(
        model=ResultCall,
        due="due_at",
        make=make_result_call,
        take=lambda merchant, most: {
            one.payment for one in result_calls.claim_due_result_calls(clock.real_now(), limit=most, merchant=merchant)
        },
        leased=True,
        next_at=result_calls.next_result_call_at,
    ),
    "receipt mails": Claim(
        model=ReceiptMail,
        due="due_at",
        make=make_receipt_mail,
        take=take_receipt_mails,
        leased=True,
        by_merchants_clock=False,
        of_one_merchant=False,
    ),
}
each_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))


def move_clock(shop: Shop, offset: timedelta) -> Merchant:
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=offset)
    return Merchant.objects.get(pk=shop.merchant.pk)


@each_claim
def test_what_is_due_is_taken_and_what_is_not_yet_is_left(shop: Shop, claim: Claim) -> None:
    due = claim.put(shop, -timedelta(seconds=1))
    claim.put(shop, timedelta(minutes=1))
    assert claim.take(None, 9) == {due}


@each_claim
@pytest.mark.parametrize(("offset", "moment"), [(2 * HOUR, HOUR), (-2 * HOUR, -HOUR)], ids=["ahead", "behind"])
def test_each_is_due_by_its_own_clock(
    shop: Shop, stranger: Shop, claim: Claim, offset: timedelta, moment: timedelta
) -> None:
    """The clock of the one is moved, that of the other is right."""
    moved, right = claim.put(shop, moment), claim.put(stranger, moment)
    move_clock(shop, offset)
    expected = {moved} if offset > timedelta(0) else {right}
    if not claim.by_merchants_clock:
        expected = {moved, right} if moment < timedelta(0) else set()
    assert claim.take(None, 9) == expected


@each_claim
def test_the_longest_due_are_taken_first(shop: Shop, claim: Claim) -> None:
    keys = {hours: claim.put(shop, -hours * HOUR) for hours in (2, 5, 3, 4)}
    assert claim.take(None, 2) == {keys[5], keys[4]}


@pytest.mark.parametrize(
    "claim",
    [claim for claim in CLAIMS.values() if claim.of_one_merchant],
    ids=[name for name, claim in CLAIMS.items() if claim.of_one_merchant],
)
def test_a_run_for_one_merchant_leaves_what_others_have_due(shop: Shop, stranger: Shop, claim: Claim) -> None:
    claim.put(shop, -HOUR)
    theirs = claim.put(stranger, -HOUR)
    assert claim.take(stranger.merchant, 9) == {theirs}


@pytest.mark.parametrize(
    "claim",
    [claim for claim in CLAIMS.values() if claim.leased],
    ids=[name for name, claim in CLAIMS.items() if claim.leased],
)
def test_what_another_worker_has_is_left_until_its_lease_ends(shop: Shop, claim: Claim) -> None:
    now = clock.real_now()
    claim.put(shop, -HOUR, lease_until=now + timedelta(minutes=1))
    freed = claim.put(shop, -HOUR, lease_until=now - timedelta(minutes=1))
    assert claim.take(None, 9) == {freed}
    row = claim.model._default_manager.filter(lease_until__gt=now)
    assert row.count() == 2, "the claim is a lease of its own"
    # A merchant's clock that is ahead ends no lease.
    move_clock(shop, timedelta(days=1))
    assert claim.take(None, 9) - {freed} == set()


@pytest.mark.parametrize("name", ["mandate mails", "receipt mails"])
@pytest.mark.parametrize(
    ("tries", "minutes"), [(0, 2), (1, 4), (2, 8), (3, 16), (7, 256), (8, 360), (9, 360), (14, 360)]
)
def test_a_mail_waits_twice_as_long_after_each_try_and_six_hours_at_most(
    shop: Shop, name: str, tries: int, minutes: int
) -> None:
    claim = CLAIMS[name]
    key = claim.put(shop, -HOUR, tries=tries)
    before = clock.real_now()
    assert claim.take(None, 1) == {key}
    row = claim.model._default_manager.values("tries", "lease_until").get(pk=key)
    assert row["tries"] == tries + 1
    assert timedelta(0) <= row["lease_until"] - before - timedelta(minutes=minutes) < timedelta(seconds=60)


@pytest.mark.parametrize(
    "claim",
    [claim for claim in CLAIMS.values() if claim.next_at is not None],
    ids=[name for name, claim in CLAIMS.items() if claim.next_at is not None],
)
def test_the_next_of_a_merchant_is_its_own_earliest(shop: Shop, stranger: Shop, claim: Claim) -> None:
    assert claim.next_at is not None
    claim.put(shop, -HOUR)
    assert claim.next_at(stranger.merchant) is None
    keys = {hours: claim.put(stranger, hours * HOUR) for hours in (3, 1, 2)}
    first = claim.model._default_manager.values_list(claim.due, flat=True).get(pk=keys[1])
    assert claim.next_at(stranger.merchant) == first

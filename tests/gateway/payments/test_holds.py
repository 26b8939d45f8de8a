"""After any sequence what an acquirer holds is what the ledger says, or nothing: at the stub and at the card API.

The holds of ISO 8583 hosts: tests/gateway/connectors/iso8583/test_authorizations.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest
from django.test import override_settings

from gateway.models import AuthorizationRelease, Channel, Payment, Status
from gateway.payments.authorization_expiry import expire_authorizations
from gateway.payments.authorization_releases import release_authorizations
from gateway.payments.chain_amounts import Authorization, Chain
from tests.support.card_api import account_at, card_api
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.stub import StubProcess, account_at_stub

pytestmark = pytest.mark.django_db(transaction=True)

PRACTICE = "standingInstruction.industryPractice"
DAY = 86_400
LOST = ("silent_before", "silent_after", "disconnect_before", "disconnect_after")
ODDS = ("INCREMENTAL_AUTH", "REAUTHORIZATION", "CP", "CP", "RV", "FINAL", "DAYS")
Held = Callable[[str], Decimal]
"""Authorization -> what its acquirer holds."""


@pytest.fixture
def at_stub(committed: Shop, acquirer: StubProcess) -> Iterator[Held]:
    account_at_stub(committed.channel)

    def held(first: str) -> Decimal:
        books = acquirer.control.books()
        own = {row["key"]: row for row in books["transactions"]}.get(first)
        return Decimal(books["pools"].get(f"hold:{own['transaction_id']}", "0")) if own is not None else Decimal(0)

    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=1.0):
        yield held


def authorization_of(first: str) -> Authorization:
    return Chain(list(Payment.objects.filter(chain=first).order_by("id"))).authorization


def settle() -> None:
    """Whatever is in doubt is asked about, what has expired ends, and the rest is released."""
    recover_after(120)
    expire_authorizations()
    AuthorizationRelease.objects.filter(due_at__isnull=False).update(due_at="2020-01-01T00:00:00Z")
    release_authorizations()
    recover_after(120)


@pytest.mark.parametrize("renews", [False, True], ids=["refuses", "renews"])
@pytest.mark.parametrize("seed", range(4))
def test_the_stub_holds_what_the_ledger_can_capture(committed: Shop, at_stub: Held, seed: int, renews: bool) -> None:
    """Answers and questions are lost, days pass. What is closed or has expired is not held any more."""
    mode = Channel.ExpiredCaptures.RENEW if renews else Channel.ExpiredCaptures.REFUSE
    Channel.objects.update(expired_captures=mode)
    dice = random.Random(seed)
    api = committed.api
    first = api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    ends = [first]
    for _ in range(8):
        kind, amount, named = dice.choice(ODDS), f"{dice.randint(1, 60)}.00", dice.choice(ends)
        lost = {"customParameters[STUB_behaviour]": dice.choice(LOST)} if dice.random() < 0.3 else {}
        if kind == "DAYS":
            jump(dice.randint(1, 6) * DAY)
        elif kind == "FINAL":
            api.follow(named, dice.choice(["CP", "RV"]), amount, sequence="FINAL", **lost)
        elif kind in ("CP", "RV"):
            api.follow(named, kind, amount, **lost)
        else:
            answer = api.follow(named, "PA", amount, **{PRACTICE: kind}, **lost)
            recover_after(120)
            if Payment.objects.filter(pk=answer.id, status=Status.APPROVED).exists():
                ends.append(answer.id)
        settle()
        held = authorization_of(first)
        assert at_stub(first) == held.uncaptured, (seed, kind, amount)
        if held.is_closed or (held.chain.first.expired_at is not None and not renews):
            assert at_stub(first) == 0, (seed, kind, amount)


@pytest.mark.parametrize("multicapture", [False, True], ids=["once", "in parts"])
@pytest.mark.parametrize("seed", range(4))
def test_the_card_api_holds_nothing_or_what_the_ledger_can_capture(
    committed: Shop, seed: int, multicapture: bool
) -> None:
    """It has no increments and no reversals in part, and without multicapture a capture lets go of the rest."""
    dice = random.Random(seed)
    api = committed.api
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=1.0), card_api() as processor:
        account_at(committed.channel, processor.url, **({"multicapture": "if_available"} if multicapture else {}))
        for _ in range(3):
            first = api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00", card__number="4242424242424242").id
            for _ in range(4):
                kind, amount = dice.choice(("CP", "CP", "RV", "FINAL", "DAYS")), f"{dice.randint(1, 60)}.00"
                if dice.random() < 0.3:
                    processor.fault(dice.choice(("silent_before", "silent_after")), r"/v1/payment_intents/")
                if kind == "DAYS":
                    jump(dice.randint(1, 6) * DAY)
                elif kind == "FINAL":
                    api.follow(first, "CP", amount, sequence="FINAL")
                else:
                    api.follow(first, kind, None if kind == "RV" else amount)
                processor.faults.clear()
                settle()
                (intent,) = [
                    one for one in processor.of("payment_intent") if one["metadata"].get("tollhouse_payment") == first
                ]
                held = Decimal(intent["amount_capturable"]) / 100
                left = authorization_of(first).capturable
                assert held in (Decimal(0), left), (seed, kind, amount)
                if multicapture and intent["status"] == "requires_capture":
                    assert held == left, (seed, kind, amount)

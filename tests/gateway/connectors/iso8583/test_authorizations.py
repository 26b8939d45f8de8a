"""Authorizations that are raised, renewed, captured and reversed: the host's holds are what can still be captured."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from gateway.models import AuthorizationRelease, Channel, Payment, Status
from gateway.payments import recovery
from gateway.payments.authorization_expiry import expire_authorizations
from gateway.payments.authorization_releases import MAX_RELEASE_TRIES, release_authorizations
from gateway.payments.chain_amounts import Authorization, Chain
from tests.support.client import Answer
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host
from tests.support.recovery import recover_after

OK = "000.100.112"
PRACTICE = "standingInstruction.industryPractice"
NOT_FINAL = "700.400.570"
TOO_LATE = "700.300.400"
DAY = 86_400


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> IsoHost:
    account_at_host(shop.channel, iso_host)
    return iso_host


def recover() -> recovery.RecoverySummary:
    return recover_after(120)


def authorize(shop: Shop, amount: str = "100.00") -> str:
    return shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount=amount).id


def again(shop: Shop, held: str, practice: str, amount: str) -> Answer:
    return shop.api.follow(held, "PA", amount, **{PRACTICE: practice})


def open_releases() -> int:
    return AuthorizationRelease.objects.filter(state=AuthorizationRelease.State.OPEN).count()


def make_due() -> None:
    AuthorizationRelease.objects.filter(due_at__isnull=False).update(due_at="2020-01-01T00:00:00Z")


def capturable(held: str) -> int:
    """What the ledger says can still be captured, in minor units."""
    return int(authorization_of(held).capturable * 100)


def authorization_of(held: str) -> Authorization:
    return Chain(list(Payment.objects.filter(chain=held).order_by("id"))).authorization


@pytest.mark.parametrize(
    "amount, left, held",
    [(None, "", 0), ("150.00", "", 0), ("60.00", "000000009000", 9000), ("120.00", "000000003000", 3000)],
)
@pytest.mark.parametrize("named", ["first", "increment"])
def test_a_reversal_after_an_increment_takes_back_from_all_that_was_authorized(
    shop: Shop, host: IsoHost, amount: str | None, left: str, held: int, named: str
) -> None:
    """docs/decisions/0068: one 0400 against the first message, with the cumulative amount."""
    first = authorize(shop)
    raised = again(shop, first, "INCREMENTAL_AUTH", "50.00")
    assert raised.code == OK
    assert shop.api.follow(first if named == "first" else raised.id, "RV", amount).code == OK
    (message,) = host.seen("0400")
    assert (message["4"], message.get("95", "")[:12]) == ("000000015000", left)
    asked = host.seen("0100")[0]
    assert message["90"][:20] == f"0100{asked['11']}{asked['7']}"
    assert (host.holds, capturable(first)) == (held, held)


def test_a_renewal_holds_nothing_more_and_is_reversed_with_what_it_renews(shop: Shop, host: IsoHost) -> None:
    first = authorize(shop)
    renewed = again(shop, first, "REAUTHORIZATION", "100.00")
    assert (renewed.code, host.holds) == (OK, 10000)
    assert shop.api.follow(renewed.id, "RV").code == OK
    assert (host.seen("0400")[0]["4"], host.holds, capturable(first)) == ("000000010000", 0, 0)


def test_increments_and_renewals_keep_the_reference_number_of_their_authorization(shop: Shop, host: IsoHost) -> None:
    first = authorize(shop)
    raised = again(shop, first, "INCREMENTAL_AUTH", "50.00")
    again(shop, raised.id, "REAUTHORIZATION", "100.00")
    assert len({message["37"] for message in host.seen("0100")}) == 1
    assert len({message["11"] for message in host.seen("0100")}) == 3


def test_a_reversal_after_an_increment_whose_answer_was_lost_is_repeated_with_the_same_amounts(
    shop: Shop, host: IsoHost
) -> None:
    first = authorize(shop)
    again(shop, first, "INCREMENTAL_AUTH", "50.00")
    host.next("0400", "lost", arrives=False)
    reversal = shop.api.follow(first, "RV", "60.00")
    assert recover().settled == 1
    (one,), (two,) = host.seen("0400"), host.seen("0401")
    assert {name: text for name, text in one.items() if name != "t"} == {
        name: text for name, text in two.items() if name != "t"
    }
    assert Payment.objects.get(pk=reversal.id).status == Status.APPROVED
    assert (host.holds, capturable(first)) == (9000, 9000)


def test_while_a_reversal_has_no_answer_nothing_else_changes_the_hold(shop: Shop, host: IsoHost) -> None:
    """A reversal says what is left: the later of two on their way would decide, and undo an increment."""
    first = authorize(shop)
    host.next("0400", "lost")
    shop.api.follow(first, "RV", "60.00")
    assert shop.api.follow(first, "RV", "10.00").code == NOT_FINAL
    assert again(shop, first, "INCREMENTAL_AUTH", "50.00").code == NOT_FINAL
    recover()
    assert again(shop, first, "INCREMENTAL_AUTH", "50.00").code == OK
    assert (host.holds, capturable(first)) == (9000, 9000)


def test_while_an_increment_has_no_answer_nothing_is_reversed(shop: Shop, host: IsoHost) -> None:
    first = authorize(shop)
    host.next("0100", "lost")
    again(shop, first, "INCREMENTAL_AUTH", "50.00")
    assert shop.api.follow(first, "RV", "10.00").code == NOT_FINAL
    recover()
    assert shop.api.follow(first, "RV", "10.00").code == OK
    assert (host.holds, capturable(first)) == (9000, 9000)


@pytest.mark.parametrize("kind, held", [("CP", 0), ("RV", 0)])
def test_what_a_final_follow_up_leaves_is_released_at_the_host(shop: Shop, host: IsoHost, kind: str, held: int) -> None:
    """Rulings, section 4: FINAL closes and releases the rest, raised or not."""
    first = authorize(shop)
    again(shop, first, "INCREMENTAL_AUTH", "50.00")
    assert shop.api.follow(first, kind, "60.00", sequence="FINAL").code == OK
    assert (host.holds, capturable(first)) == (9000, 0)
    assert release_authorizations() == 1
    assert (host.holds, host.of(first).captured) == (held, 6000 if kind == "CP" else 0)
    assert not open_releases()
    assert release_authorizations() == 0
    released = Payment.objects.filter(chain=first, payment_type="RV").order_by("id").last()
    assert released is not None
    assert (released.status, released.amount) == (Status.APPROVED, Decimal("90.00"))


def test_a_release_is_tried_until_the_host_has_answered(shop: Shop, host: IsoHost) -> None:
    first = authorize(shop)
    assert shop.api.follow(first, "CP", "60.00", sequence="FINAL").code == OK
    host.next("0400", de39="05")
    assert release_authorizations() == 1
    assert host.seen("0400")
    host.of(first).left = 10000  # the host refused: it has changed nothing
    host.next("0400", "lost", arrives=False)
    make_due()
    assert release_authorizations() == 1
    assert open_releases()
    recover()
    make_due()
    assert release_authorizations() == 1
    assert host.holds == 0
    assert not open_releases()


def test_a_release_that_the_host_never_grants_is_given_up(shop: Shop, host: IsoHost) -> None:
    """Each try is a reversal that the merchant sees; the hold ends by itself."""
    first = authorize(shop)
    assert shop.api.follow(first, "CP", "60.00", sequence="FINAL").code == OK
    for _ in range(MAX_RELEASE_TRIES):
        make_due()
        host.next("0400", de39="05")
        assert release_authorizations() == 1
    assert not open_releases()
    assert len(host.seen("0400")) == MAX_RELEASE_TRIES


def test_the_simulator_shows_the_same_release(shop: Shop) -> None:
    held = shop.api.pay(paymentType="PA", amount="100.00")
    assert shop.api.follow(held.id, "CP", "60.00", sequence="FINAL").status == 200
    assert release_authorizations() == 1
    released = Payment.objects.get(chain=held.id, payment_type="RV")
    assert (released.status, released.amount) == (Status.APPROVED, Decimal("40.00"))


def test_a_capture_of_all_that_is_final_releases_nothing(shop: Shop, host: IsoHost) -> None:
    first = authorize(shop)
    assert shop.api.follow(first, "CP", "100.00", sequence="FINAL").code == OK
    assert release_authorizations() == 1
    assert host.seen("0400") == []
    assert not open_releases()


def test_what_has_expired_is_released_at_the_host(shop: Shop, host: IsoHost) -> None:
    """M10: the whole rest, raised or not, less what was captured."""
    first = authorize(shop)
    again(shop, first, "INCREMENTAL_AUTH", "50.00")
    assert shop.api.follow(first, "CP", "60.00").code == OK
    jump(11 * DAY)
    assert shop.api.follow(first, "CP", "10.00").code == TOO_LATE
    assert (expire_authorizations(), release_authorizations()) == (1, 1)
    assert (host.holds, host.of(first).captured) == (0, 6000)
    (message,) = host.seen("0400")
    assert (message["4"], message["95"][:12]) == ("000000015000", "000000006000")


def test_a_release_waits_for_a_capture_without_an_answer(shop: Shop, host: IsoHost) -> None:
    """Declined, what it would have taken is left as well."""
    first = authorize(shop)
    host.next("0220", "lost", arrives=False)
    shop.api.follow(first, "CP", "60.00")
    jump(11 * DAY)
    assert (expire_authorizations(), release_authorizations()) == (1, 1)
    assert host.seen("0400") == []
    host.refuses[6000] = "05"
    recover()
    make_due()
    assert release_authorizations() == 1
    assert (host.holds, open_releases()) == (0, 0)


def test_a_declined_renewal_leaves_the_capture_refused(shop: Shop, host: IsoHost) -> None:
    Channel.objects.update(expired_captures=Channel.ExpiredCaptures.RENEW)
    first = authorize(shop)
    jump(11 * DAY)
    host.next("0100", de39="05")
    assert shop.api.follow(first, "CP", "60.00").code == TOO_LATE
    assert host.seen("0220") == []
    assert shop.api.follow(first, "CP", "60.00").code == OK
    assert [message["48"].count("33043903") for message in host.seen("0100")] == [0, 1, 1]


ODDS = ("INCREMENTAL_AUTH", "REAUTHORIZATION", "CP", "CP", "RV", "RV", "FINAL", "DAYS")


@pytest.mark.parametrize("renews", [False, True], ids=["refuses", "renews"])
@pytest.mark.parametrize("seed", range(8))
def test_after_any_sequence_the_holds_are_what_the_ledger_can_capture(
    shop: Shop, host: IsoHost, seed: int, renews: bool
) -> None:
    """Messages are lost before and after the host's books, and every one is cleared up; days pass in between. What is
    closed or has expired is not held any more."""
    mode = Channel.ExpiredCaptures.RENEW if renews else Channel.ExpiredCaptures.REFUSE
    Channel.objects.update(expired_captures=mode)
    dice = random.Random(seed)
    first = authorize(shop)
    ends = [first]
    for _ in range(10):
        kind = dice.choice(ODDS)
        amount = f"{dice.randint(1, 60)}.00"
        if dice.random() < 0.3:
            mti = {"CP": "0220", "FINAL": "0220", "RV": "0400"}.get(kind, "0100")
            host.next(mti, "lost", arrives=dice.random() < 0.5)
        named = dice.choice(ends)
        if kind == "DAYS":
            jump(dice.randint(1, 6) * DAY)
        elif kind == "FINAL":
            shop.api.follow(named, dice.choice(["CP", "RV"]), amount, sequence="FINAL")
        elif kind in ("CP", "RV"):
            shop.api.follow(named, kind, amount)
        else:
            answer = again(shop, named, kind, amount)
        recover()
        if kind in ("INCREMENTAL_AUTH", "REAUTHORIZATION") and (
            Payment.objects.get(pk=answer.id).status == Status.APPROVED
        ):
            ends.append(answer.id)
        host._plans.clear()
        expire_authorizations()
        make_due()
        release_authorizations()
        held = authorization_of(first)
        assert host.holds == int(held.uncaptured * 100), (seed, kind, amount)
        if held.is_closed or (held.chain.first.expired_at is not None and not renews):
            assert host.holds == 0, (seed, kind, amount)
    if capturable(first):
        assert shop.api.follow(first, "RV").code == OK
    assert host.holds == 0


def clearings(host: IsoHost) -> list[str]:
    return [message["48"][4:8] if message.get("48", "").startswith("3604") else "" for message in host.seen("0220")]


def test_a_capture_says_which_of_how_many_it_is(shop: Shop, host: IsoHost) -> None:
    """One that the host declined keeps its number, and a repeat has its own."""
    first = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00", numberOfCaptures="3").id
    host.refuses[2100] = "05"
    assert shop.api.follow(first, "CP", "20.00").code == OK
    assert shop.api.follow(first, "CP", "21.00").code != OK
    assert shop.api.follow(first, "CP", "90.00").status == 400
    host.next("0220", "lost", arrives=False)
    shop.api.follow(first, "CP", "22.00")
    recover()
    assert clearings(host) == ["0103", "0203", "0303"]
    assert [message["48"][:8] for message in host.seen("0221")] == ["36040303"]
    without = authorize(shop)
    assert shop.api.follow(without, "CP", "20.00").code == OK
    assert clearings(host)[-1] == ""


def test_a_final_authorization_of_mastercard_is_marked(shop: Shop, host: IsoHost) -> None:
    Channel.objects.update(authorization_kind=Channel.AuthorizationKind.FINAL)
    authorize(shop)
    shop.api.pay(testMode="EXTERNAL", paymentType="PA", paymentBrand="MASTER", card__number="5454545454545454")
    assert [message["48"].count("610500001") for message in host.seen("0100")] == [0, 1]

"""Authorizations that are raised, renewed, captured and reversed: the host's holds are what can still be captured."""

from __future__ import annotations

import random
from datetime import UTC, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from gateway.connectors.iso8583 import capture_records
from gateway.connectors.iso8583.private_field import parse_private_field
from gateway.connectors.iso8583.terminal import check_terminal_settings
from gateway.core import clock
from gateway.models import (
    AcquirerExchange,
    AuthorizationRelease,
    BatchedCapture,
    Channel,
    Notification,
    Payment,
    Status,
)
from gateway.payments import authorization_releases, recovery
from gateway.payments.authorization_expiry import expire_authorizations
from gateway.payments.authorization_releases import MAX_RELEASE_TRIES, release_authorizations
from gateway.payments.batched_captures import apply_capture_outcomes
from gateway.payments.chain_amounts import Authorization, Chain
from gateway.vault.sealing import VaultError
from tests.support.client import Answer
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host, settings_for
from tests.support.recovery import recover_after

OK = "000.100.112"
PRACTICE = "standingInstruction.industryPractice"
NOT_FINAL = "700.400.570"
TOO_LATE = "700.300.400"
WAITS = "800.400.500"
DAY = 86_400
VISA, MASTERCARD = "4200000000000000", "5454545454545454"


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


@pytest.mark.parametrize(("sent", "days"), [("", 30), ("5942", 10)])
def test_the_business_of_the_acquirer_account_decides_where_none_is_sent(
    shop: Shop, iso_host: IsoHost, sent: str, days: int
) -> None:
    """DE18 says the same: a hotel's authorization is valid for longer."""
    account_at_host(shop.channel, iso_host, mcc="7011")
    more = {"merchant.mcc": sent} if sent else {}
    made = Payment.objects.get(pk=shop.api.pay(testMode="EXTERNAL", paymentType="PA", **more).id)
    assert made.expires_at is not None
    assert made.completed_at is not None
    assert (made.expires_at - made.completed_at).days == days
    assert iso_host.seen("0100")[0]["18"] == (sent or "7011")


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


def renewing(host: IsoHost) -> None:
    """Two authorizations of the host that differ in their approval code and the network's reference."""
    Channel.objects.update(expired_captures=Channel.ExpiredCaptures.RENEW)
    host.next("0100", de38="AAAAAA", de48="6315111111111111111")
    host.next("0100", de38="BBBBBB", de48="6315222222222222222")


def named_by(message: dict[str, str], authorization: dict[str, str]) -> bool:
    """Whether a capture or reversal names this authorization: DE90, DE38 and the network's reference."""
    code, network = ("AAAAAA", "1" * 15) if "33043903" not in authorization["48"] else ("BBBBBB", "2" * 15)
    first = f"0100{authorization['11']}{authorization['7']}"
    return (message["90"][:20], message["38"]) == (first, code) and f"6315{network}" in message["48"]


@pytest.mark.parametrize("named", ["path", "referenceUuid", "renewal"])
@pytest.mark.parametrize("by", ["gateway", "merchant"])
def test_a_capture_names_the_newest_renewal(shop: Shop, host: IsoHost, by: str, named: str) -> None:
    """Visa 11.3: clearing carries the approval of the authorization that it uses, and an expired one is none."""
    renewing(host)
    first = authorize(shop)
    target = first
    if by == "merchant":
        if named == "referenceUuid":
            sent = {"paymentType": "PA", "amount": "100.00", "currency": "EUR", "referenceUuid": first}
            renewed = shop.api.post("/v1/payments", {**sent, PRACTICE: "REAUTHORIZATION"})
        else:
            renewed = again(shop, first, "REAUTHORIZATION", "100.00")
        target = renewed.id if named == "renewal" else first
    else:
        jump(11 * DAY)
    assert shop.api.follow(target, "CP", "60.00").code == OK
    old, new = host.seen("0100")
    (capture,) = host.seen("0220")
    assert (named_by(capture, new), named_by(capture, old)) == (True, False)
    assert shop.api.follow(first, "RV", "40.00").code == OK
    (reversal,) = host.seen("0400")
    assert named_by(reversal, new)
    assert (reversal["4"], reversal["95"][:12]) == ("000000010000", "000000006000")
    assert (host.holds, capturable(first)) == (0, 0)


def test_a_repeated_capture_names_the_same_renewal(shop: Shop, host: IsoHost) -> None:
    renewing(host)
    first = authorize(shop)
    again(shop, first, "REAUTHORIZATION", "100.00")
    host.next("0220", "lost", arrives=False)
    shop.api.follow(first, "CP", "60.00")
    assert again(shop, first, "REAUTHORIZATION", "40.00").code == OK
    assert recover().settled == 1
    (one,), (two,) = host.seen("0220"), host.seen("0221")
    assert {name: one[name] for name in one if name != "t"} == {name: two[name] for name in two if name != "t"}


def test_a_capture_by_batch_names_the_newest_renewal(shop: Shop, iso_host: IsoHost) -> None:
    account_at_host(shop.channel, iso_host, capture="batch")
    renewing(iso_host)
    first = authorize(shop)
    again(shop, first, "REAUTHORIZATION", "100.00")
    capture = shop.api.follow(first, "CP", "60.00").id
    row = BatchedCapture.objects.get(pk=capture)
    message = capture_records.load_capture_message(row)
    assert named_by(message, iso_host.seen("0100")[1])


@pytest.mark.parametrize("way", ["batch", "advice"])
@pytest.mark.parametrize("late", list(Channel.ExpiredCaptures))
def test_a_capture_has_to_reach_the_host_before_the_authorization_ends(
    shop: Shop, iso_host: IsoHost, late: str, way: str
) -> None:
    """A batch an hour ago, the next one in 23 hours, and an authorization of a day: what is captured after that batch
    arrives a day too late. Visa 11.3 goes by the day of the clearing record."""
    hour_ago = clock.merchant_now(shop.merchant) - timedelta(hours=1)
    account_at_host(shop.channel, iso_host, capture=way, batch_at=f"{hour_ago.astimezone(UTC):%H:%M}")
    Channel.objects.update(authorization_days={"VISA": 1}, expired_captures=late)
    held = authorize(shop)
    in_time = shop.api.follow(held, "CP", "10.00")
    assert in_time.code == (WAITS if way == "batch" else OK)
    jump(DAY - 1_800)
    answer = shop.api.follow(held, "CP", "20.00")
    renewed = Payment.objects.filter(chain=held, practice="REAUTHORIZATION")
    if way == "batch" and late == Channel.ExpiredCaptures.REFUSE:
        assert (answer.status, answer.code) == (400, TOO_LATE)
        assert "ends before that" in answer.body["resultDetails"]["ExtendedDescription"]
        assert again(shop, held, "REAUTHORIZATION", "90.00").code == OK
        assert shop.api.follow(held, "CP", "20.00").code == WAITS
        return
    assert answer.code == (WAITS if way == "batch" else OK)
    assert [one.status for one in renewed] == ([Status.APPROVED] if way == "batch" else [])


@pytest.mark.parametrize("counts", ["hours", "calendar"])
def test_an_authorization_ends_with_the_day_of_an_acquirer_that_counts_days(
    shop: Shop, iso_host: IsoHost, counts: str
) -> None:
    account_at_host(shop.channel, iso_host, authorization_days=counts, time_zone="Asia/Kathmandu")
    held = Payment.objects.get(pk=authorize(shop))
    assert held.expires_at is not None
    assert held.completed_at is not None
    there = ZoneInfo("Asia/Kathmandu")
    end, approved = held.expires_at.astimezone(there), held.completed_at.astimezone(there)
    if counts == "hours":
        assert end - approved == timedelta(days=10)
        return
    assert (end.time(), end.date()) == (time(), approved.date() + timedelta(days=11))


def test_an_increment_after_a_renewal_belongs_to_it(shop: Shop, host: IsoHost) -> None:
    renewing(host)
    first = authorize(shop)
    again(shop, first, "REAUTHORIZATION", "100.00")
    assert again(shop, first, "INCREMENTAL_AUTH", "50.00").code == OK
    assert "6315222222222222222" in host.seen("0100")[2]["48"]


def test_a_capture_waits_for_a_renewal_without_an_answer(shop: Shop, host: IsoHost) -> None:
    """Which of the two it clears is not known before."""
    first = authorize(shop)
    host.next("0100", "lost")
    again(shop, first, "REAUTHORIZATION", "100.00")
    assert shop.api.follow(first, "CP", "60.00").code == NOT_FINAL
    recover()
    assert shop.api.follow(first, "CP", "60.00").code == OK


@pytest.fixture
def apart(iso_host: IsoHost, shop: Shop) -> IsoHost:
    iso_host.renewals_apart = True
    account_at_host(shop.channel, iso_host, renewals="two")
    return iso_host


def test_what_a_renewal_replaces_is_reversed_where_the_host_holds_both(shop: Shop, apart: IsoHost) -> None:
    """Every approved authorization is cleared or reversed. What was captured of it stays."""
    renewing(apart)
    first = authorize(shop)
    assert shop.api.follow(first, "CP", "30.00").code == OK
    assert again(shop, first, "REAUTHORIZATION", "70.00").code == OK
    assert apart.holds == 14000
    assert release_authorizations() == 1
    (void,) = apart.seen("0420")
    assert named_by(void, apart.seen("0100")[0])
    assert (void["4"], void["95"][:12], void["39"]) == ("000000010000", "000000003000", "17")
    assert (apart.holds, capturable(first), open_releases()) == (7000, 7000, 0)
    assert shop.api.follow(first, "RV", "20.00").code == OK
    (reversal,) = apart.seen("0400")
    assert named_by(reversal, apart.seen("0100")[1])
    assert (reversal["4"], reversal["95"][:12]) == ("000000007000", "000000005000")
    assert shop.api.follow(first, "CP", "50.00").code == OK
    assert (apart.holds, capturable(first)) == (0, 0)
    row = AuthorizationRelease.objects.get()
    assert (row.cause, row.state, row.amount) == ("RENEWAL", "RELEASED", Decimal("70.00"))


def test_the_reversal_of_what_was_renewed_is_repeated_until_it_is_answered(shop: Shop, apart: IsoHost) -> None:
    first = authorize(shop)
    assert again(shop, first, "REAUTHORIZATION", "100.00").code == OK
    apart.next("0420", "lost")
    assert release_authorizations() == 1
    make_due()
    assert release_authorizations() == 1
    assert (len(apart.seen("0420")), len(apart.seen("0421"))) == (1, 1)
    assert (apart.holds, capturable(first), open_releases()) == (10000, 10000, 0)
    exchanges = AcquirerExchange.objects.filter(payment=first).order_by("id")
    assert [exchange.kind for exchange in exchanges] == ["submit", "void", "void"]


def test_a_release_that_fails_each_time_is_given_up(
    shop: Shop, apart: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only where the host is silent: a vault's key may be lost."""
    first = authorize(shop)
    assert again(shop, first, "REAUTHORIZATION", "100.00").code == OK

    def refuse(_chain: object) -> None:
        raise VaultError("no key opens this")

    monkeypatch.setattr(authorization_releases, "load_chain_means", refuse)
    assert release_authorizations() == 1
    row = AuthorizationRelease.objects.get()
    assert (row.tries, row.state, row.due_at is not None) == (1, "OPEN", True)
    AuthorizationRelease.objects.update(tries=MAX_RELEASE_TRIES - 1)
    make_due()
    assert release_authorizations() == 1
    assert AuthorizationRelease.objects.get().state == "GIVEN_UP"


def test_the_void_of_a_second_renewal_names_what_the_renewal_named(shop: Shop, host: IsoHost) -> None:
    renewing(host)
    first = authorize(shop)
    again(shop, first, "REAUTHORIZATION", "100.00")
    host.next("0100", "lost")
    again(shop, first, "REAUTHORIZATION", "100.00")
    assert recover().settled == 1
    (void,) = host.seen("0420")
    assert "6315111111111111111" in host.seen("0100")[2]["48"]
    assert "6315111111111111111" in void["48"]


def test_a_renewal_that_is_held_apart_renews_all_that_is_left(shop: Shop, apart: IsoHost) -> None:
    first = authorize(shop)
    answer = again(shop, first, "REAUTHORIZATION", "60.00")
    assert (answer.code, len(apart.seen("0100"))) == ("600.100.100", 1)
    apart.next("0100", de39="10", de4="000000004000")
    again(shop, first, "REAUTHORIZATION", "100.00")
    recover()
    assert (apart.holds, capturable(first), open_releases()) == (10000, 10000, 0)


@pytest.mark.parametrize(("number", "brand", "sent"), [(MASTERCARD, "MASTER", 1), (VISA, "VISA", 2)])
def test_mastercard_prolongs_all_that_is_left_and_no_other_amount(
    shop: Shop, host: IsoHost, number: str, brand: str, sent: int
) -> None:
    """docs/decisions/0156: it has no renewal of its own, and prolongs what it holds by an increment of nothing."""
    card = {"paymentBrand": brand, "card__number": number}
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00", **card).id
    answer = again(shop, held, "REAUTHORIZATION", "60.00")
    assert (answer.code, len(host.seen("0100"))) == ("600.100.100" if sent == 1 else OK, sent)
    assert shop.api.follow(held, "RV", "40.00").code == OK
    assert again(shop, held, "REAUTHORIZATION", "60.00").code == OK


@pytest.mark.parametrize("seed", range(4))
def test_two_holds_are_what_the_ledger_can_capture_after_any_sequence(shop: Shop, apart: IsoHost, seed: int) -> None:
    dice = random.Random(100 + seed)
    first = authorize(shop)
    for _ in range(10):
        kind = dice.choice(ODDS)
        amount = f"{dice.randint(1, 60)}.00"
        if dice.random() < 0.3:
            mti = {"CP": "0220", "FINAL": "0220", "RV": "0400"}.get(kind, "0100")
            apart.next(mti, "lost", arrives=dice.random() < 0.5)
        if kind == "REAUTHORIZATION":
            again(shop, first, kind, f"{authorization_of(first).capturable}")
        elif kind == "INCREMENTAL_AUTH":
            again(shop, first, kind, amount)
        elif kind in ("CP", "RV", "FINAL"):
            final = {"sequence": "FINAL"} if kind == "FINAL" else {}
            shop.api.follow(first, "CP" if kind == "FINAL" else kind, amount, **final)
        recover()
        apart._plans.clear()
        make_due()
        release_authorizations()
        assert apart.holds == int(authorization_of(first).uncaptured * 100), (seed, kind, amount)
    if capturable(first):
        assert shop.api.follow(first, "RV").code == OK
    assert apart.holds == 0


@pytest.fixture
def alone(iso_host: IsoHost, shop: Shop) -> IsoHost:
    iso_host.captures_alone = True
    account_at_host(shop.channel, iso_host, reversed_captures="alone")
    return iso_host


def test_the_reversal_of_a_capture_reopens_where_the_host_goes_on_holding(shop: Shop, alone: IsoHost) -> None:
    """docs/decisions/0096: a capture of the right amount may follow, and what is left is released when it expires."""
    first = authorize(shop)
    wrong = shop.api.follow(first, "CP", "60.00")
    part = shop.api.follow(wrong.id, "RV", "20.00")
    assert (part.code, part.body["resultDetails"]["AuthorizationReopened"]) == (OK, "true")
    assert (alone.holds, capturable(first)) == (6000, 6000)
    assert shop.api.follow(wrong.id, "RV").code == OK
    assert (alone.holds, capturable(first), int(authorization_of(first).captured)) == (10000, 10000, 0)
    assert shop.api.follow(wrong.id, "RV").code == "700.400.300"
    assert shop.api.follow(first, "CP", "100.01").code == "700.400.100"
    assert shop.api.follow(first, "CP", "70.00").code == OK
    assert (expire_authorizations(), release_authorizations()) == (2, 0)
    jump(11 * DAY)
    assert (expire_authorizations(), release_authorizations()) == (1, 1)
    assert (alone.holds, alone.of(first).captured) == (0, 7000)


def test_what_no_message_could_name_is_no_setting(iso_host: IsoHost) -> None:
    sent = settings_for(iso_host, renewals="two", reversed_captures="alone")
    ((name, why),) = check_terminal_settings(sent)
    assert (name, why[:29]) == ("reversed_captures", "must be whole with renewals=t")
    assert check_terminal_settings(sent | {"renewals": "one"}) == ()


def test_the_reversal_of_a_capture_ends_what_it_took_where_the_host_says_so(shop: Shop, host: IsoHost) -> None:
    first = authorize(shop)
    capture = shop.api.follow(first, "CP", "60.00")
    reversal = shop.api.follow(capture.id, "RV")
    assert "AuthorizationReopened" not in reversal.body["resultDetails"]
    assert (host.holds, capturable(first)) == (4000, 4000)
    assert not Payment.objects.filter(reopens_authorization=True).exists()


def test_a_reopening_whose_answer_was_lost_counts_with_its_repeat(shop: Shop, alone: IsoHost) -> None:
    first = authorize(shop)
    capture = shop.api.follow(first, "CP", "60.00")
    alone.next("0400", "lost")
    shop.api.follow(capture.id, "RV")
    assert (alone.holds, capturable(first)) == (10000, 4000)
    assert recover().settled == 1
    assert (alone.holds, capturable(first)) == (10000, 10000)


@pytest.mark.parametrize("sequence", ["", "FINAL"])
def test_what_a_reversal_reopens_of_a_closed_authorization_is_released(
    shop: Shop, alone: IsoHost, sequence: str
) -> None:
    first = authorize(shop)
    capture = shop.api.follow(first, "CP", "60.00", **({"sequence": sequence} if sequence else {}))
    if not sequence:
        shop.api.follow(first, "CP", "10.00", sequence="FINAL")
    release_authorizations()
    assert alone.holds == 0
    assert shop.api.follow(capture.id, "RV").code == OK
    assert (alone.holds, capturable(first)) == (6000, 0)
    assert (expire_authorizations(), release_authorizations()) == (1, 1)
    assert (alone.holds, int(authorization_of(first).uncaptured)) == (0, 0)
    assert (expire_authorizations(), release_authorizations(), open_releases()) == (0, 0, 0)


@pytest.mark.parametrize("amount", ["60.00", "100.00"])
def test_what_a_reversal_reopens_of_an_expired_authorization_is_released(
    shop: Shop, alone: IsoHost, amount: str
) -> None:
    """Also where nothing was left when it expired, so that it was not looked at again."""
    first = authorize(shop)
    jump(10 * DAY - 3600)
    capture = shop.api.follow(first, "CP", amount)
    jump(7200)
    expire_authorizations()
    release_authorizations()
    assert alone.holds == 0
    assert shop.api.follow(capture.id, "RV").code == OK
    assert alone.holds == int(float(amount) * 100)
    assert expire_authorizations() == 1
    assert Payment.objects.get(pk=first).expired_at is not None
    assert (release_authorizations(), alone.holds, open_releases()) == (1, 0, 0)
    assert Notification.objects.filter(payment=first, action="UPDATED").count() == 1


def test_a_batched_capture_is_reopened_before_and_after_its_batch(shop: Shop, iso_host: IsoHost) -> None:
    """One that was not sent yet is taken out, whatever the host would do."""
    account_at_host(shop.channel, iso_host, capture="batch")
    first = authorize(shop)
    capture = shop.api.follow(first, "CP", "60.00")
    assert shop.api.follow(capture.id, "RV").code == OK
    apply_capture_outcomes()
    assert (iso_host.holds, capturable(first)) == (10000, 10000)


@pytest.mark.parametrize("seed", range(6))
def test_holds_are_what_the_ledger_can_capture_where_captures_are_reversed_alone(
    shop: Shop, alone: IsoHost, seed: int
) -> None:
    dice = random.Random(200 + seed)
    first = authorize(shop)
    captures: list[str] = []
    for _ in range(14):
        kind = dice.choice((*ODDS, "VOID", "VOID", "VOID"))
        amount = f"{dice.randint(1, 40)}.00"
        if dice.random() < 0.3:
            mti = {"CP": "0220", "FINAL": "0220", "RV": "0400", "VOID": "0400"}.get(kind, "0100")
            alone.next(mti, "lost", arrives=dice.random() < 0.5)
        if kind == "DAYS":
            jump(dice.randint(1, 10) * DAY // 4)
        elif kind == "VOID" and captures:
            shop.api.follow(dice.choice(captures), "RV", dice.choice([amount, None]))
        elif kind in ("CP", "FINAL"):
            final = {"sequence": "FINAL"} if kind == "FINAL" and dice.random() < 0.3 else {}
            captures.append(shop.api.follow(first, "CP", amount, **final).id)
        elif kind == "RV":
            shop.api.follow(first, kind, amount)
        elif kind != "VOID":
            again(shop, first, kind, amount)
        recover()
        alone._plans.clear()
        expire_authorizations()
        make_due()
        release_authorizations()
        held = authorization_of(first)
        assert alone.holds == int(held.uncaptured * 100), (seed, kind, amount)
        if held.is_closed or held.chain.first.expired_at is not None:
            assert alone.holds == 0, (seed, kind, amount)
    for _ in range(8):
        recover()  # what the host does not know is asked about for a minute
    jump(40 * DAY)
    expire_authorizations()
    make_due()
    release_authorizations()
    assert alone.holds == 0


@pytest.mark.parametrize("kind", ["CP", "FINAL", "RV"])
def test_what_was_pending_at_the_end_and_is_declined_then_expires(shop: Shop, host: IsoHost, kind: str) -> None:
    """Docs/decisions/0069: a capture without an answer is no end of what it would have taken."""
    first = authorize(shop)
    mti, amount = ("0400", "100.00") if kind == "RV" else ("0220", "10.00" if kind == "FINAL" else "100.00")
    host.next(mti, "lost", arrives=False)
    more = {"sequence": "FINAL"} if kind == "FINAL" else {}
    shop.api.follow(first, "RV" if kind == "RV" else "CP", amount, **more)
    jump(11 * DAY)
    assert expire_authorizations() == 0
    host.next(f"{mti[:3]}1", de39="05", arrives=True)
    host.refuses[int(float(amount) * 100)] = "05"
    assert recover().settled == 1
    if kind == "RV":
        host.of(first).left, host.of(first).reversed = 10000, False  # the host refused: it has changed nothing
    jump(3600)
    assert expire_authorizations() == 1
    assert Payment.objects.get(pk=first).expired_at is not None
    make_due()
    assert release_authorizations() == 1
    assert (host.holds, open_releases()) == (0, 0)
    assert Notification.objects.filter(payment=first, action="UPDATED").exists()


def test_what_was_pending_at_the_end_and_is_approved_does_not_expire(shop: Shop, host: IsoHost) -> None:
    first = authorize(shop)
    host.next("0220", "lost")
    shop.api.follow(first, "CP", "100.00")
    jump(11 * DAY)
    assert expire_authorizations() == 0
    recover()
    jump(3600)
    assert expire_authorizations() == 1
    assert Payment.objects.get(pk=first).expired_at is None
    assert (host.holds, host.seen("0400")) == (0, [])


def test_what_is_renewed_late_is_released_after_a_time(shop: Shop, host: IsoHost) -> None:
    """Never captured, it would be neither cleared nor reversed."""
    Channel.objects.update(expired_captures=Channel.ExpiredCaptures.RENEW)
    first = authorize(shop)
    jump(11 * DAY)
    assert (expire_authorizations(), expire_authorizations(), release_authorizations()) == (1, 0, 0)
    jump(29 * DAY + 3600)
    assert (expire_authorizations(), release_authorizations()) == (1, 1)
    assert (host.holds, capturable(first), open_releases()) == (0, 0, 0)
    assert shop.api.follow(first, "CP", "60.00").status == 400
    assert Notification.objects.filter(payment=first, action="UPDATED").count() == 1


def test_what_was_renewed_late_has_its_time_from_the_renewal(shop: Shop, host: IsoHost) -> None:
    Channel.objects.update(expired_captures=Channel.ExpiredCaptures.RENEW)
    first = authorize(shop)
    jump(11 * DAY)
    expire_authorizations()
    assert shop.api.follow(first, "CP", "60.00").code == OK
    jump(29 * DAY + 3600)
    expire_authorizations()
    assert (release_authorizations(), host.seen("0400")) == (0, [])
    jump(12 * DAY)
    expire_authorizations()
    release_authorizations()
    assert (host.holds, len(host.seen("0400")), open_releases()) == (0, 1, 0)


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


@pytest.mark.parametrize("kind, marks", [("FINAL", ("", "00001")), ("ESTIMATED", ("4", ""))])
def test_a_renewal_is_marked_as_what_it_renews(shop: Shop, host: IsoHost, kind: str, marks: tuple[str, str]) -> None:
    """Mastercard: a final authorization has its seven days, and its fee, again after a renewal."""
    Channel.objects.update(authorization_kind=kind)
    card = {"paymentBrand": "MASTER", "card__number": "5454545454545454"}
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00", **card).id
    Channel.objects.update(authorization_kind=Channel.AuthorizationKind.ESTIMATED)
    assert again(shop, held, "REAUTHORIZATION", "100.00").code == OK
    sent = [parse_private_field(message["48"]) for message in host.seen("0100")]
    assert [(one.get("estimated", ""), one.get("finality", "")) for one in sent] == [marks, marks]

"""The schemes' retry rules: what is not sent to an acquirer again. docs/decisions/0067."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import Card, TokenAccount
from gateway.core import clock
from gateway.core.result_codes import ResultFamily, find_result_family
from gateway.core.secret import Secret
from gateway.db.statement import execute_sql
from gateway.models import CardDecline, Payment
from gateway.payments.risk_screening import plan_follow_up_screening
from gateway.risk.retry_rules import (
    ISSUER_STOPS,
    RETRY_LIMITS,
    STOP_CODES,
    RetryWatch,
    find_issuer_stop,
    is_retry_forbidden,
    resolve_network,
)
from gateway.risk.risk_store import TIMER, find_earliest_retry
from gateway.scheduling import dunning
from gateway.vault.sealing import current_vault
from tests.support.client import Answer
from tests.support.clock import jump
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host

OK = "000.100.112"
VISA, MASTERCARD = "4012888888881881", "5555555555554444"
MERCHANTS = {"standingInstruction__mode": "REPEATED", "standingInstruction__source": "MIT", "card__cvv": None}


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> IsoHost:
    account_at_host(shop.channel, iso_host)
    shop.channel.external_references = True
    shop.channel.card_testing = {"enabled": False}
    shop.channel.save()
    return iso_host


def pay(shop: Shop, number: str = VISA, **more: str | None) -> Answer:
    brand = "VISA" if number.startswith("4") else "MASTER"
    return shop.api.pay(testMode="EXTERNAL", paymentBrand=brand, card__number=number, **more)


def renew(shop: Shop, number: str = VISA) -> Answer:
    return pay(shop, number, standingInstruction__initialTransactionId="380912345678901", **MERCHANTS)


def advise(host: IsoHost, code: str, advice: str = "") -> None:
    host.next("0200", de39=code, **({"de48": f"84{len(advice):02}{advice}"} if advice else {}))


def count_decline(code: str, advice: str = "", response: str = "", **of: bool) -> list[dict[str, Any]]:
    """The rows that a decline of a card of Visa's writes."""
    written: list[dict[str, Any]] = []

    class Write:
        def insert(self, model: type[CardDecline], **row: Any) -> None:
            written.append(row)

    write: Any = Write()
    watch = RetryWatch(
        merchant=UUID(int=1), payment=UUID(int=2), key=b"K", network="Visa", merchant_initiated=False,
        now=clock.real_now(),
    )  # fmt: skip
    watch.count(write, code, advice, response, **of)
    return written


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        ("800.100.155", True),
        ("100.100.303", True),
        ("300.100.100", True),
        ("000.100.110", False),
        ("900.100.100", False),
        ("600.200.500", False),
        ("800.300.101", False),
        ("700.600.002", False),
    ],
)
def test_declines_that_an_issuer_gave_are_counted(code: str, counted: bool) -> None:
    """Of each family; what we or a processor refused is no issuer's word."""
    assert [row["payment"] for row in count_decline(code)] == ([UUID(int=2)] if counted else [])


def test_a_result_that_stands_for_an_earlier_decline_is_not_counted_again() -> None:
    """Another acquirer may be asked after it: what it was itself counts, and what it stands for was counted."""
    assert count_decline("800.100.155", response="91", of_issuer=False) == []
    assert len(count_decline("900.100.201", response="91", of_issuer=False)) == 1
    assert count_decline("900.100.201", response="90") == []
    assert count_decline("000.100.110", response="91") == []


@pytest.mark.parametrize("code", ["06", "91", "92", "96"])
def test_a_fault_on_the_way_to_the_issuer_is_no_decline_at_other_networks(shop: Shop, host: IsoHost, code: str) -> None:
    advise(host, code)
    declined = pay(shop, MASTERCARD)
    assert find_result_family(declined.code) is ResultFamily.REJECTED_COMMUNICATION
    assert not CardDecline.objects.exists()


@pytest.mark.parametrize(
    ("code", "advice", "stops", "hours"),
    [
        ("800.100.155", "", "", None),
        ("800.100.155", "24", "card", 1),
        ("800.100.155", "02", "merchant", 72),
        ("800.100.165", "", "card", None),
        ("800.100.165", "24", "card", None),
        ("800.100.155", "21", "merchant", None),
    ],
)
def test_a_stop_for_good_goes_before_a_wait(code: str, advice: str, stops: str, hours: int | None) -> None:
    (row,) = count_decline(code, advice)
    wait = row["retry_after"] - row["at"] if row["retry_after"] is not None else None
    assert (row["stops"], wait) == (stops, timedelta(hours=hours) if hours is not None else None)


def test_with_more_declines_than_a_limit_the_one_that_has_to_fall_out_decides(shop: Shop) -> None:
    """Sixteen in as many days: Visa's fifteenth newest, two weeks old, leaves its thirty days in sixteen."""
    now = clock.real_now()
    for days in range(16):
        CardDecline.objects.create(
            merchant=shop.merchant, key=b"K", payment=UUID(int=days), at=now - timedelta(days=days)
        )
    assert find_earliest_retry(shop.merchant.pk, b"K", "Visa", now) == now + timedelta(days=16)
    assert find_earliest_retry(shop.merchant.pk, b"K", "Mastercard", now) == now
    assert find_earliest_retry(shop.merchant.pk, b"L", "Visa", now) == now


@pytest.mark.parametrize(
    ("number", "code", "advice", "stopped"),
    [
        (VISA, "41", "", "700.601.003"),
        (VISA, "14", "", "700.601.003"),
        (VISA, "51", "", OK),
        (MASTERCARD, "14", "", OK),
        (MASTERCARD, "05", "03", "700.601.003"),
        (VISA, "05", "03", "700.601.003"),
    ],
)
def test_what_an_issuer_will_never_approve_is_not_sent_again(
    shop: Shop, host: IsoHost, number: str, code: str, advice: str, stopped: str
) -> None:
    """Visa's category 1, and advice code 03 of any network: by API and as a registration alike."""
    advise(host, code, advice)
    assert pay(shop, number).status == 400
    asked = len(host.log)
    answer = pay(shop, number)
    assert answer.code == stopped, answer
    assert len(host.log) == asked + (stopped == OK)
    card = {"card.number": number, "card.expiryMonth": "05", "card.expiryYear": "2034", "testMode": "EXTERNAL"}
    registered = shop.api.post("/v1/registrations", card)
    assert (registered.status == 200) == (stopped == OK), registered
    other = VISA if number == MASTERCARD else MASTERCARD
    assert pay(shop, other).code == OK


@pytest.mark.parametrize(("code", "advice", "number"), [("R1", "", VISA), ("R0", "", VISA), ("05", "21", MASTERCARD)])
def test_payments_that_the_cardholder_stopped_are_the_merchants_alone(
    shop: Shop, host: IsoHost, code: str, advice: str, number: str
) -> None:
    """The shopper may pay again; the merchant may not charge again."""
    advise(host, code, advice)
    assert renew(shop, number).status == 400
    assert renew(shop, number).code == "700.601.001"
    assert pay(shop, number).code == OK


@pytest.mark.parametrize(("number", "most", "window"), [(VISA, 15, 30), (MASTERCARD, 10, 1), (MASTERCARD, 35, 30)])
def test_too_many_declines_of_a_card_end_its_attempts_for_a_time(
    shop: Shop, host: IsoHost, number: str, most: int, window: int
) -> None:
    """15 in 30 days at Visa; 10 in a day and 35 in 30 days at Mastercard. Declines of other shops do not count."""
    advise(host, "51")
    assert pay(shop, number).code == "800.100.155"
    (row,) = CardDecline.objects.all()
    hours = 1 if window == 1 else 48
    spread = [row.at - timedelta(hours=hours, minutes=number) for number in range(most - 2)]
    same = {"merchant_id": row.merchant_id, "key": row.key, "payment": row.payment}
    CardDecline.objects.bulk_create(CardDecline(at=at, **same) for at in spread)
    assert pay(shop, number).code == OK
    CardDecline.objects.create(at=spread[0], **same)
    answer = pay(shop, number)
    assert (answer.code, CardDecline.objects.count()) == ("700.600.002", most)
    CardDecline.objects.update(at=row.at - timedelta(days=window, minutes=1))
    assert pay(shop, number).code == OK


@pytest.mark.parametrize(
    ("code", "family", "kept"),
    [
        ("51", ResultFamily.REJECTED_BANK, True),
        ("1A", ResultFamily.SOFT_DECLINE, True),
        ("03", ResultFamily.REJECTED_BANK, True),
        *((code, ResultFamily.REJECTED_COMMUNICATION, True) for code in ("06", "91", "92", "96")),
        ("90", ResultFamily.REJECTED_SYSTEM, False),
    ],
)
def test_declines_that_visa_counts_are_kept_and_no_others(
    shop: Shop, host: IsoHost, code: str, family: ResultFamily, kept: bool
) -> None:
    """One that wants the cardholder to authenticate is a decline; so is a fault on the way to the issuer, at Visa."""
    advise(host, code)
    declined = pay(shop)
    assert find_result_family(declined.code) is family, declined
    assert CardDecline.objects.exists() is kept


def test_what_another_merchants_payments_were_answered_stops_nothing(shop: Shop, stranger: Shop, host: IsoHost) -> None:
    """Declines and stops alike are a merchant's own, whatever the card."""
    advise(host, "41")
    assert pay(shop).code == "800.100.165"
    CardDecline.objects.update(merchant_id=stranger.merchant.pk)
    assert pay(shop).code == OK


def test_test_cards_of_the_simulator_keep_their_published_answer(shop: Shop, host: IsoHost) -> None:
    """Ruling D52."""
    advise(host, "41")
    assert pay(shop, "4200000000000000").code == "800.100.165"
    assert pay(shop, "4200000000000000").code == OK
    assert not CardDecline.objects.exists()


def test_the_simulator_has_no_scheme(shop: Shop) -> None:
    """Ruling D52: any number that it declines, it declines again."""
    sent = {"paymentBrand": "VISA", "card__number": "4000020000000000"}
    assert {shop.api.pay(**sent).code for _ in range(2)} == {"800.100.151"}
    assert not CardDecline.objects.exists()


def test_the_rules_cost_no_statement(shop: Shop, host: IsoHost) -> None:
    """Read with the begin, written with the end: as many as for a card that is left alone."""
    assert pay(shop).code == OK
    costs = []
    for number in ("4200000000000000", VISA):
        with statements() as seen:
            assert pay(shop, number).code == OK
        costs.append(len(seen))
    with statements() as seen:
        advise(host, "51")
        assert pay(shop).code == "800.100.155"
    assert CardDecline.objects.count() == 1
    assert {*costs, len(seen)} == {costs[0]}


def test_declines_are_kept_for_as_long_as_a_rule_looks(shop: Shop, host: IsoHost) -> None:
    advise(host, "51")
    pay(shop)
    TIMER.run()
    assert CardDecline.objects.count() == 1
    CardDecline.objects.update(at=clock.real_now() - timedelta(days=31))
    TIMER.run()
    assert not CardDecline.objects.exists()


def test_every_code_of_the_guard_is_one_that_dunning_leaves_alone() -> None:
    assert find_result_family("700.600.002") is ResultFamily.ADVICE_BLOCK
    for code in STOP_CODES.values():
        assert find_result_family(code) is ResultFamily.ADVICE_BLOCK
        assert isinstance(dunning.decide_dunning(code, ""), dunning.DunningStop)
    assert all(row.source for row in (*ISSUER_STOPS, *RETRY_LIMITS))
    assert find_issuer_stop("Visa", "800.100.155", "") == ""


def test_a_rebill_of_a_card_that_is_never_approved_again_is_not_sent(shop: Shop, host: IsoHost) -> None:
    """Fee for each authorization within 30 days after advice 03: https://developers.tabapay.com/docs/merchant-advice-code."""
    paid = pay(shop, MASTERCARD)
    advise(host, "05", "03")
    assert pay(shop, MASTERCARD).status == 400
    sent = len(host.log)
    answer = shop.api.follow(paid.id, "RB", "5.00")
    assert (answer.code, len(host.log)) == ("700.601.003", sent)


@pytest.mark.parametrize(("practice", "amount"), [("INCREMENTAL_AUTH", "5.00"), ("REAUTHORIZATION", "92.00")])
def test_increments_and_renewals_keep_the_rules_too(shop: Shop, host: IsoHost, practice: str, amount: str) -> None:
    """Merchant-initiated: what the cardholder stopped for the merchant holds for them."""
    named = {"standingInstruction.industryPractice": practice}
    held = pay(shop, MASTERCARD, paymentType="PA").id
    assert shop.api.follow(held, "PA", amount, **named).code == OK
    advise(host, "05", "21")
    assert renew(shop, MASTERCARD).status == 400
    sent = len(host.log)
    assert shop.api.follow(held, "PA", amount, **named).code == "700.601.001"
    assert shop.api.follow(held, "PA", amount, **named, **{"standingInstruction.source": "CIT"}).code == OK
    assert len(host.log) == sent + 1
    assert shop.api.follow(held, "CP", "5.00").code == OK


def test_what_follows_with_a_network_token_counts_as_its_cards(shop: Shop, host: IsoHost) -> None:
    """The token is another number of the same card, and what its issuer stopped is the card."""
    held = Payment.objects.get(pk=pay(shop, paymentType="PA").id)
    token = TokenAccount(account=Secret("4895370012003478"), type="NETWORK")
    for means in (token, Card(number=Secret(VISA), expiry_month="05", expiry_year="2034")):
        plan = plan_follow_up_screening(held, means, merchant_initiated=True)
        assert plan is not None
        assert plan.retries is not None
        assert (plan.retries.key, plan.retries.network) == (current_vault().fingerprint(Secret(VISA)), "Visa")


def test_the_renewal_of_a_late_capture_keeps_the_rules_too(shop: Shop, host: IsoHost) -> None:
    shop.channel.expired_captures = "renew"
    shop.channel.save()
    held = pay(shop, MASTERCARD, paymentType="PA").id
    advise(host, "05", "03")
    assert pay(shop, MASTERCARD).status == 400
    jump(31 * 86_400)
    advise(host, "05", "03")
    assert pay(shop, MASTERCARD).status == 400
    sent = len(host.log)
    assert shop.api.follow(held, "CP", "5.00").code == "700.300.400"
    assert len(host.log) == sent


def test_declines_of_rebills_are_counted(shop: Shop, host: IsoHost) -> None:
    paid = pay(shop, MASTERCARD)
    advise(host, "05", "03")
    assert shop.api.follow(paid.id, "RB", "5.00").status == 400
    assert pay(shop, MASTERCARD).code == "700.601.003"


@pytest.mark.parametrize(
    ("advice", "hours", "shoppers"),
    [("02", 72, OK), ("24", 1, "700.600.002"), ("25", 24, "700.600.002"), ("30", 240, "700.600.002")],
)
def test_an_issuers_wait_holds_for_the_api_too(
    shop: Shop, host: IsoHost, advice: str, hours: int, shoppers: str
) -> None:
    """Mastercard's advice 24 to 30; 02 is about what the merchant initiates."""
    advise(host, "51", advice)
    assert pay(shop, MASTERCARD).code == "800.100.155"
    sent = len(host.log)
    assert renew(shop, MASTERCARD).code == "700.600.002"
    assert len(host.log) == sent
    assert pay(shop, MASTERCARD).code == shoppers
    jump(hours * 3600 + 1)
    assert renew(shop, MASTERCARD).code == OK


def test_a_run_that_the_rules_stop_for_a_time_is_tried_again() -> None:
    assert dunning.decide_dunning("700.600.002", "") == dunning.DunningRetry()
    assert dunning.decide_dunning("800.100.155", "25") == dunning.DunningRetry(after=timedelta(hours=24))


@pytest.mark.parametrize(
    ("network", "code", "advice", "forbidden"),
    [
        ("Mastercard", "800.100.152", "", False),
        ("Mastercard", "800.100.152", "02", False),
        ("Mastercard", "800.100.152", "03", True),
        ("Mastercard", "800.100.152", "21", False),
        ("Mastercard", "800.100.152", "24", True),
        ("Mastercard", "800.100.152", "30", True),
        ("Mastercard", "800.100.152", "31", False),
        ("Visa", "800.100.159", "", True),
        ("Visa", "800.100.159", "02", True),
        ("Mastercard", "800.100.159", "", False),
        ("", "800.100.159", "", False),
        ("Visa", "800.100.500", "", False),
    ],
)
def test_the_cardholder_may_try_again_unless_the_issuer_said_never_or_later(
    network: str, code: str, advice: str, forbidden: bool
) -> None:
    """02, 21 and a stopped subscription are about what the merchant initiates."""
    assert is_retry_forbidden(network, code, advice) is forbidden


# --- one condition by itself ----------------------------------------------------------------------------------------

NEVER, HOLDER, LATER = "700.601.003", "700.601.001", "700.600.002"


def a_watch(network: str = "Visa", *, merchants: bool = False, **counts: Any) -> RetryWatch:
    fixed: dict[str, Any] = {"merchant": UUID(int=1), "payment": UUID(int=2), "key": b"K", "now": clock.real_now()}
    return RetryWatch(**fixed | counts, network=network, merchant_initiated=merchants)


@pytest.mark.parametrize(
    ("network", "counts", "merchants", "code"),
    [
        ("Visa", {}, False, None),
        ("Visa", {}, True, None),
        # The issuer's word goes before the counts, for good before for a time.
        ("Visa", {"never": 1, "not_by_merchant": 1, "waits": 1, "month": 99}, True, NEVER),
        ("", {"never": 1}, False, NEVER),
        ("Visa", {"not_by_merchant": 1, "waits": 1}, True, HOLDER),
        ("Visa", {"not_by_merchant": 1}, False, None),
        ("Visa", {"waits": 1}, False, LATER),
        ("Visa", {"waits": 1}, True, LATER),
        ("Visa", {"waits_of_merchant": 1}, True, LATER),
        ("Visa", {"waits_of_merchant": 1}, False, None),
        # Each network has its own counts.
        ("Visa", {"month": 14}, False, None),
        ("Visa", {"month": 15}, False, LATER),
        ("Visa", {"month": 16}, False, LATER),
        ("Visa", {"month": 14, "day": 14}, False, None),
        ("Mastercard", {"day": 9, "month": 34}, False, None),
        ("Mastercard", {"day": 10, "month": 10}, False, LATER),
        ("Mastercard", {"day": 0, "month": 35}, False, LATER),
        ("", {"day": 99, "month": 99}, True, None),
        ("Amex", {"day": 99, "month": 99}, True, None),
        ("Zetwork", {"day": 99, "month": 99}, True, None),
    ],
)
def test_an_attempt_is_declined_by_the_first_rule_that_forbids_it(
    network: str, counts: dict[str, int], merchants: bool, code: str | None
) -> None:
    verdict = a_watch(network, merchants=merchants, **counts).verdict()
    assert (verdict.code if verdict is not None else None) == code
    if verdict is not None:
        (reason,) = verdict.reasons
        assert (str(verdict.outcome), reason.rule, reason.verdict) == ("decline", "schemes' retry rules", "decline")
        assert reason.why


@pytest.mark.parametrize(
    ("network", "counts", "why"),
    [
        ("Visa", {"month": 17}, "17 declines of this card in 720 hours"),
        ("Mastercard", {"day": 11, "month": 12}, "11 declines of this card in 24 hours"),
        ("Mastercard", {"day": 3, "month": 36}, "36 declines of this card in 720 hours"),
    ],
)
def test_too_many_declines_are_told_with_their_number_and_their_hours(
    network: str, counts: dict[str, int], why: str
) -> None:
    verdict = a_watch(network, **counts).verdict()
    assert verdict is not None
    assert verdict.reasons[0].why == why


@pytest.mark.parametrize(
    ("network", "day", "month", "forbidden"),
    [
        ("Visa", 0, 13, False), ("Visa", 0, 14, True),
        ("Mastercard", 8, 8, False), ("Mastercard", 9, 9, True), ("Mastercard", 0, 33, False),
        ("Mastercard", 0, 34, True),
    ],
)  # fmt: skip
def test_one_more_attempt_counts_the_decline_of_the_one_before(
    network: str, day: int, month: int, forbidden: bool
) -> None:
    watch = a_watch(network, day=day, month=month)
    assert (watch.verdict_after_decline() is not None) is forbidden
    assert (watch.day, watch.month, watch.verdict()) == (day, month, None), "it is only asked"
    watch.add_decline()
    assert (watch.day, watch.month, watch.verdict() is not None) == (day + 1, month + 1, forbidden)


def test_counts_are_read_in_their_order_and_none_were_asked_for_without_an_answer() -> None:
    watch = a_watch()
    answer: Any = SimpleNamespace(returned={"declines": "1 2 3 4 5 6"})
    watch.read_counts(answer)
    found = (watch.day, watch.month, watch.never, watch.not_by_merchant, watch.waits, watch.waits_of_merchant)
    assert found == (1, 2, 3, 4, 5, 6)
    none: Any = SimpleNamespace(returned={"address": "7"})
    fresh = a_watch()
    fresh.read_counts(none)
    assert (fresh.day, fresh.month, fresh.never, fresh.verdict()) == (0, 0, 0, None)


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        # day, month, never, not by the merchant, waits, waits of the merchant
        ({}, (1, 1, 0, 0, 0, 0)),
        ({"ago": timedelta(0)}, (1, 1, 0, 0, 0, 0)),
        ({"ago": -MINUTE}, (0, 0, 0, 0, 0, 0)),
        ({"ago": timedelta(days=1) - MINUTE}, (1, 1, 0, 0, 0, 0)),
        ({"ago": timedelta(days=1)}, (0, 1, 0, 0, 0, 0)),
        ({"ago": timedelta(days=30) - MINUTE}, (0, 1, 0, 0, 0, 0)),
        ({"ago": timedelta(days=30)}, (0, 0, 0, 0, 0, 0)),
        ({"stops": "card"}, (1, 1, 1, 0, 0, 0)),
        ({"stops": "merchant"}, (1, 1, 0, 1, 0, 0)),
        ({"stops": "card", "until": MINUTE}, (1, 1, 0, 0, 1, 0)),
        ({"stops": "merchant", "until": MINUTE}, (1, 1, 0, 0, 0, 1)),
        ({"stops": "card", "until": timedelta(0)}, (1, 1, 0, 0, 0, 0)),
        ({"stops": "merchant", "until": timedelta(0)}, (1, 1, 0, 0, 0, 0)),
        ({"stops": "card", "until": -MINUTE}, (1, 1, 0, 0, 0, 0)),
        ({"until": MINUTE}, (1, 1, 0, 0, 0, 0)),
        ({"stops": "card", "key": b"L"}, (0, 0, 0, 0, 0, 0)),
        ({"stops": "card", "merchant": "another"}, (0, 0, 0, 0, 0, 0)),
    ],
)
def test_each_decline_is_counted_where_it_belongs(
    shop: Shop, stranger: Shop, row: dict[str, Any], counts: tuple[int, ...]
) -> None:
    now = clock.real_now()
    CardDecline.objects.create(
        merchant=(stranger if row.get("merchant") else shop).merchant,
        key=row.get("key", b"K"),
        payment=UUID(int=3),
        at=now - row.get("ago", MINUTE),
        stops=row.get("stops", ""),
        retry_after=now + row["until"] if "until" in row else None,
    )
    asked: list[Any] = []
    write: Any = SimpleNamespace(returning=lambda *given: asked.append(given))
    a_watch(merchant=shop.merchant.pk, now=now).add_count_query(write)
    ((name, sql, values),) = asked
    ((found,),) = execute_sql(sql, values)
    assert (name, tuple(map(int, found.split()))) == ("declines", counts)


def test_a_decline_is_kept_with_its_merchant_card_and_moment() -> None:
    (row,) = count_decline("800.100.155")
    assert (row["merchant_id"], row["key"], row["payment"]) == (UUID(int=1), b"K", UUID(int=2))
    assert clock.real_now() - row["at"] < timedelta(minutes=5)


@pytest.mark.parametrize(
    ("network", "code", "advice", "stop"),
    [
        ("Visa", "800.100.165", "", "card"),
        ("Mastercard", "800.100.165", "", ""),
        ("", "800.100.165", "", ""),
        ("Visa", "800.100.170", "", "merchant"),
        ("Visa", "800.100.170", "03", "card"),
        ("Visa", "800.100.165", "21", "card"),
        ("", "800.100.155", "03", "card"),
        ("", "800.100.155", "21", "merchant"),
        ("Amex", "800.100.500", "", "merchant"),
        ("Amex", "800.100.501", "", "merchant"),
        ("Visa", "800.100.155", "", ""),
        ("Visa", "800.100.155", "04", ""),
        ("Visa", "03", "", ""),
        ("Visa", "", "800.100.165", ""),
    ],
)
def test_an_issuers_stop_is_by_network_and_code_or_by_advice_and_for_good_first(
    network: str, code: str, advice: str, stop: str
) -> None:
    assert find_issuer_stop(network, code, advice) == stop


@pytest.mark.parametrize(
    ("brand", "network"),
    [("VISA", "Visa"), ("VPAY", "Visa"), ("MASTER", "Mastercard"), ("MAESTRO", "Mastercard"), ("AMEX", ""), ("", "")],
)
def test_a_brand_follows_the_rules_of_its_network(brand: str, network: str) -> None:
    assert resolve_network(brand) == network

"""The guard against card testing: what it counts, what it stops, and what it never stops.

Source: docs/risk.md.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import override_settings

from gateway.core import clock, result_codes
from gateway.db.statement import execute_sql
from gateway.models import CardTestingCount, Channel, Merchant, RiskDecision
from gateway.models.entities import CARD_TESTING_SETTINGS
from gateway.payments.risk_screening import _is_test_data
from gateway.risk.card_testing import (
    _DEVICES,
    _SELECT_COUNTS,
    ADDRESS_KEY,
    BIN_KEY,
    CARD_TESTING_CODES,
    DEVICE_KEY,
    CardTestingLimits,
    CardTestingWatch,
    build_card_testing_watch,
    resolve_card_testing_limits,
    resolve_shopper_network,
    weigh_outcome,
)
from gateway.timers import registry
from gateway.vault.sealing import current_vault
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.threads import at_once
from tests.support.threeds import Shopper, buy

pytestmark = pytest.mark.django_db

GOOD, BAD = "000.100.110", "800.100.151"
BAD_CARDS = ("4000020000000000", "4000020000000018", "4000020000000026", "4000020000000034")
"""Of GUESSED_BIN: declined, and on no page of test data."""
OWN_CARD = {"card__number": "4200001234567897"}
"""Approved, and on no page of test data."""
IP = {"customer__ip": "192.0.2.7", **OWN_CARD}
BURST = 10


def stopped_at(outcomes: list[str], limits: CardTestingLimits, kind: str) -> int | None:
    """The place at which one key's traffic is first stopped, one payment after another within one window; None: never.

    The arithmetic of guard.Watch without a database.
    """
    net = 0
    for place, code in enumerate(outcomes):
        if limits.reached(kind, net):
            return place
        failed, passed = weigh_outcome(code, net)
        net += failed - passed
    return None


@pytest.mark.parametrize("share", [0.05, 0.10, 0.15])
@pytest.mark.parametrize("kind", [ADDRESS_KEY, DEVICE_KEY, BIN_KEY])
def test_ten_thousand_payments_with_ordinary_declines_are_never_stopped(share: float, kind: str) -> None:
    """A merchant's server that sends many payments through one address or BIN_KEY; all of them in one window."""
    for seed in range(20):
        chance = Random(seed)
        outcomes = [BAD if chance.random() < share else GOOD for _ in range(10_000)]
        assert stopped_at(outcomes, CardTestingLimits(), kind) is None


@pytest.mark.parametrize(("share", "within"), [(1.0, 10), (0.9, 18), (0.8, 30)])
def test_a_burst_of_failing_cards_is_stopped_early(share: float, within: int) -> None:
    """Some of a thief's cards do work."""
    for seed in range(20):
        chance = Random(seed)
        outcomes = [BAD if chance.random() < share else GOOD for _ in range(1000)]
        place = stopped_at(outcomes, CardTestingLimits(), ADDRESS_KEY)
        assert place is not None
        assert place <= within * 2


def test_good_payments_before_a_burst_earn_it_nothing() -> None:
    """Approvals count against failures, never ahead of them."""
    assert stopped_at([GOOD] * 5000 + [BAD] * 20, CardTestingLimits(), ADDRESS_KEY) == 5000 + BURST


@pytest.mark.parametrize(
    "code", ["900.100.300", "900.100.600", "300.100.100", "000.200.000", "100.380.501", "800.120.102", "800.300.401"]
)
def test_what_says_nothing_about_the_card_is_no_failure_but_a_listed_card_is(code: str) -> None:
    """An outage must not lock shoppers out, and being stopped does not count as failing again."""
    blacklisted = result_codes.find_result_family(code) is result_codes.ResultFamily.REJECTED_BLACKLIST
    assert weigh_outcome(code, 5) == (int(blacklisted), 0)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        (" 192.0.2.7 ", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("not an address", "not an address"),
    ],
)
def test_a_shopper_has_one_address_or_a_whole_network(address: str, key: str) -> None:
    """Whoever has one address of a /64 has all of them."""
    assert resolve_shopper_network(address) == key


@pytest.mark.parametrize("code", CARD_TESTING_CODES.values())
def test_the_codes_are_declines_of_the_risk_families(code: str) -> None:
    """Decisions, section 3."""
    assert result_codes.find_result_family(code) in (
        result_codes.ResultFamily.REJECTED_RISK_VALIDATION,
        result_codes.ResultFamily.REJECTED_BLACKLIST,
    )


# --- the story ----------------------------------------------------------------------------------------------------


def burst(shop: Shop, number: int, **more: str) -> list[str]:
    return [shop.api.pay(**more | {"card__number": BAD_CARDS[n % 4]}).code for n in range(number)]


def test_a_burst_from_one_address_is_stopped_before_the_acquirer(shop: Shop) -> None:
    """On by default, nothing configured."""
    assert set(burst(shop, BURST, **IP)) == {BAD}
    stopped = shop.api.pay(**IP)
    assert (stopped.status, stopped.code) == (400, "800.120.102")
    assert "10 more failed than approved cards from this address" in stopped.body["resultDetails"]["RiskReason"]
    decision = RiskDecision.objects.get(pk=stopped.id)
    assert (decision.set_key, decision.outcome, decision.score) == ("", "decline", None)
    assert "risk" not in stopped.body
    assert shop.api.pay(customer__ip="192.0.2.8", **OWN_CARD).code == GOOD
    assert shop.api.pay(**OWN_CARD).code == GOOD


@pytest.mark.parametrize(
    "device",
    [
        {"customer__browserFingerprint__id": "fp-1"},
        {"customer__browser__deviceId": "d-1"},
        {"customer__app__deviceId": "d-2"},
    ],
)
def test_a_burst_from_one_device_is_stopped_although_its_address_changes(shop: Shop, device: dict[str, str]) -> None:
    """Addresses are cheap."""
    for n in range(BURST):
        assert shop.api.pay(card__number=BAD_CARDS[n % 4], customer__ip=f"192.0.2.{n}", **device).code != GOOD
    assert shop.api.pay(customer__ip="192.0.2.99", **OWN_CARD, **device).code == "800.120.101"


def test_a_burst_with_one_bin_is_stopped_although_everything_else_changes(shop: Shop) -> None:
    """Guessed numbers share their first digits. The BIN's limit is a setting; here it is small."""
    Channel.objects.filter(pk=shop.channel.pk).update(card_testing={"binFailures": 5})
    for n in range(5):
        assert shop.api.pay(card__number=BAD_CARDS[0], customer__ip=f"192.0.2.{n}").code == BAD
    assert shop.api.pay(card__number=BAD_CARDS[1]).code == "800.300.401"
    assert shop.api.pay(**OWN_CARD).code == GOOD


def test_a_stopped_address_is_free_again_when_the_window_has_passed(shop: Shop) -> None:
    """The window follows the merchant's clock; being stopped does not prolong it."""
    burst(shop, BURST, **IP)
    assert {shop.api.pay(**IP).code for _ in range(5)} == {"800.120.102"}
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(seconds=600 + 120))
    assert shop.api.pay(**IP).code == GOOD


@pytest.mark.parametrize("key", [{"customer__ip": "192.0.2.7"}, {"customer__browser__deviceId": "d-1"}, {}])
@pytest.mark.parametrize("ahead", [timedelta(minutes=11), timedelta(hours=2)])
def test_failures_that_lie_ahead_of_the_merchants_clock_stop_nothing(
    shop: Shop, key: dict[str, str], ahead: timedelta
) -> None:
    """The window ends at the moment of the payment on its merchant's clock, for the address, the device and the
    BIN_KEY."""
    Channel.objects.filter(pk=shop.channel.pk).update(card_testing={"binFailures": BURST})
    own = key | OWN_CARD if key else {"card__number": BAD_CARDS[3]}
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    burst(shop, BURST, **key)
    assert shop.api.pay(**own).code in CARD_TESTING_CODES.values()
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(0))
    assert shop.api.pay(**own).code not in CARD_TESTING_CODES.values()
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    assert shop.api.pay(**own).code in CARD_TESTING_CODES.values()


def test_published_cards_are_neither_counted_nor_stopped(shop: Shop) -> None:
    """Decision 0049: they always give their published code, and no other card suffers for them."""
    sent = {"customer__ip": "192.0.2.7", "customer__browser__deviceId": "d-1"}
    published = {"card__number": "4000015500000005"}
    Channel.objects.filter(pk=shop.channel.pk).update(card_testing={"failures": 3, "binFailures": 3})
    assert {shop.api.pay(**sent, **published).code for _ in range(8)} == {"800.100.155"}
    assert not CardTestingCount.objects.exists()
    assert shop.api.pay(**sent, **OWN_CARD).code == GOOD
    burst(shop, 3, **sent)
    assert shop.api.pay(**sent, **OWN_CARD).code in CARD_TESTING_CODES.values()
    assert shop.api.pay(**sent, **published).code == "800.100.155"
    assert shop.api.pay(**sent).code == GOOD


def test_published_cards_that_fail_after_a_challenge_are_not_counted(shop: Shop) -> None:
    """The count of a shopper who was away is made when they come back."""
    api = shop.api_of(shop.open_channel(three_d_secure=True))
    sent = {"customParameters[3DS2_flow]": "challenge", "customer.ip": "192.0.2.7"}
    answer = buy(api, "4000015500000005", **sent)
    shopper = Shopper.of(answer)
    shopper.follow(shopper.enter())
    assert api.get(f"/v1/payments/{answer.id}").code == "800.100.155"
    assert not CardTestingCount.objects.exists()


def test_in_live_there_are_no_published_cards(shop: Shop, settings: Any) -> None:
    """A number of the test data is in live a number like any other."""
    assert _is_test_data("400001", "0005")
    assert not _is_test_data("400001", "4321")
    settings.IS_LIVE = True
    assert not _is_test_data("400001", "0005")


def test_approvals_take_back_what_failures_added(shop: Shop) -> None:
    """An office, a family, a merchant's own server: many cards, one address."""
    for _ in range(4):
        burst(shop, 5, **IP)
        assert {shop.api.pay(**IP).code for _ in range(6)} == {GOOD}
    counted = CardTestingCount.objects.filter(kind=ADDRESS_KEY).values_list("failed", "passed")
    assert Counter({"failed": sum(f for f, _ in counted), "passed": sum(p for _, p in counted)}) == {
        "failed": 20,
        "passed": 20,
    }


def test_merchants_do_not_share_counts(shop: Shop, stranger: Shop) -> None:
    """R11."""
    burst(shop, BURST, **IP)
    assert stranger.api.pay(**IP).code == GOOD


@pytest.mark.parametrize("own", [{"enabled": False}, {"failures": 0, "binFailures": 0}])
def test_a_channel_can_switch_it_off(shop: Shop, own: dict[str, object]) -> None:
    """Channel override."""
    Channel.objects.filter(pk=shop.channel.pk).update(card_testing=own)
    burst(shop, BURST, **IP)
    assert shop.api.pay(**IP).code == GOOD


@override_settings(GATEWAY_CARD_TESTING_GUARD=False)
def test_an_installation_can_switch_it_off_and_a_channel_on_again(shop: Shop) -> None:
    """Settings, and what goes before them."""
    burst(shop, BURST, **IP)
    assert not CardTestingCount.objects.exists()
    Channel.objects.filter(pk=shop.channel.pk).update(card_testing={"enabled": True, "failures": 2})
    burst(shop, 2, **IP)
    assert shop.api.pay(**IP).code == "800.120.102"


def test_payments_that_are_approved_write_no_counts(shop: Shop) -> None:
    """Normal traffic pays nearly nothing: a look, and no row."""
    assert {shop.api.pay(**IP).code for _ in range(5)} == {GOOD}
    assert not CardTestingCount.objects.exists()


def test_what_is_kept_names_nobody(shop: Shop) -> None:
    """Privacy: keyed fingerprints."""
    burst(shop, 1, customer__ip="198.51.100.77", customer__browser__deviceId="device-4711")
    assert CardTestingCount.objects.count() == 3
    found = places_of("198.51.100.77", "device-4711")
    assert not any(place.startswith("gateway_cardtesting") for place in found)


def test_old_counts_are_swept_away(shop: Shop) -> None:
    """A limit on everything that can grow."""
    burst(shop, 1, **IP)
    assert registry.run_timer_now("card testing") == 0
    longest = timedelta(seconds=CARD_TESTING_SETTINGS["windowSeconds"][1])
    CardTestingCount.objects.update(at=clock.real_now() - longest * 1.5)
    assert registry.run_timer_now("card testing") == 0, "a slice of the longest window is still counted"
    CardTestingCount.objects.update(at=clock.real_now() - timedelta(hours=3))
    assert registry.run_timer_now("card testing") == 2


@pytest.mark.django_db(transaction=True)
def test_failures_at_once_are_all_counted_and_do_not_wait_in_a_circle(committed: Shop) -> None:
    """Counts of several keys are raised in one order."""
    sent = [IP | {"customer__browser__deviceId": "d-1"}, IP, {"customer__browser__deviceId": "d-1"}]
    at_once(*[lambda n=n: committed.api.pay(**sent[n % 3] | {"card__number": BAD_CARDS[0]}).code for n in range(12)])
    counted = CardTestingCount.objects.filter(kind=BIN_KEY).values_list("failed", flat=True)
    assert sum(counted) == 12


def test_the_look_reads_its_keys_and_no_others(shop: Shop) -> None:
    """Goals, P6: a merchant with many failing addresses pays no more for the look."""
    CardTestingCount.objects.bulk_create(
        CardTestingCount(
            merchant_id=shop.merchant.id,
            kind=ADDRESS_KEY,
            key=bytes([n % 256, n // 256]),
            bucket=1,
            shard=0,
            failed=1,
            passed=0,
            at=clock.real_now(),
        )
        for n in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("ANALYZE gateway_cardtestingcount")
        cursor.execute("EXPLAIN " + _SELECT_COUNTS, [shop.merchant.id, ADDRESS_KEY, b"a", 0, 5])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "Seq Scan" not in plan
    assert "(key = " in plan.split("Index Cond", 1)[1].splitlines()[0]


@pytest.mark.parametrize(
    "own", ["off", {"enabled": 1}, {"failures": -1}, {"failures": True}, {"windowSeconds": 10}, {"fails": 1}]
)
def test_limits_of_a_channel_that_mean_nothing_are_refused(shop: Shop, own: object) -> None:
    """The back office shows a field of JSON: what is kept there must not stop payments."""
    shop.channel.card_testing = own
    with pytest.raises(ValidationError):
        shop.channel.full_clean()


@pytest.mark.parametrize(("seconds", "window"), [(0, 60), (600, 600), (99_999, 3600)])
def test_a_window_has_its_limits(seconds: int, window: int) -> None:
    """A limit on everything, with its unit."""
    with override_settings(GATEWAY_CARD_TESTING_WINDOW_S=seconds):
        assert resolve_card_testing_limits({}).window_s == window


def test_an_empty_field_of_the_back_office_means_the_settings(shop: Shop) -> None:
    """Any empty JSON is blank to a form."""
    Channel.objects.filter(pk=shop.channel.pk).update(card_testing=[])
    assert shop.api.pay(**IP).code == GOOD


def test_cards_that_fail_after_their_challenge_are_counted_like_any_other(shop: Shop) -> None:
    """Issue: a burst of failing cards is stopped early, on a channel with 3-D Secure too."""
    api = shop.api_of(shop.open_channel(three_d_secure=True))
    sent = {"customParameters[3DS2_flow]": "challenge", "customer.ip": "192.0.2.7"}
    for _ in range(BURST):
        answer = buy(api, BAD_CARDS[0], **sent)
        shopper = Shopper.of(answer)
        shopper.follow(shopper.enter())
        assert api.get(f"/v1/payments/{answer.id}").code == BAD
    stopped = buy(api, OWN_CARD["card__number"], **sent)
    assert (stopped.status, stopped.code) == (400, CARD_TESTING_CODES[ADDRESS_KEY])
    assert "redirect" not in stopped.body


def test_storing_cards_is_watched_like_paying_with_them(shop: Shop) -> None:
    """A registration asks an acquirer about the card: without the guard it would be a free way to check stolen ones."""
    codes = []
    for place in range(BURST + 2):
        number = BAD_CARDS[place % len(BAD_CARDS)]
        card = {"card.number": number, "card.expiryMonth": "05", "card.expiryYear": "2034", "paymentBrand": "VISA"}
        codes.append(shop.api.post("/v1/registrations", card | {"customer.ip": "192.0.2.7"}).code)
    assert codes == [BAD] * BURST + [CARD_TESTING_CODES[ADDRESS_KEY]] * 2


# --- one condition by itself ----------------------------------------------------------------------------------------

NOW = datetime(2026, 5, 14, 10, 2, tzinfo=UTC)


def a_watch(shop: Shop | None = None, **values: Any) -> CardTestingWatch:
    usual: dict[str, Any] = {
        "merchant": shop.merchant.pk if shop is not None else UUID(int=1),
        "limits": CardTestingLimits(),
        "keys": {ADDRESS_KEY: b"A", BIN_KEY: b"B", DEVICE_KEY: b"D"},
        "bucket": 100,
        "shard": 2,
    }
    return CardTestingWatch(**usual | values)


@pytest.mark.parametrize(
    ("kind", "net", "limits", "expected"),
    [
        (ADDRESS_KEY, 9, {}, False),
        (ADDRESS_KEY, 10, {}, True),
        (ADDRESS_KEY, 11, {}, True),
        (DEVICE_KEY, 9, {}, False),
        (DEVICE_KEY, 10, {}, True),
        (BIN_KEY, 59, {}, False),
        (BIN_KEY, 60, {}, True),
        (ADDRESS_KEY, 1, {"failures": 1}, True),
        (ADDRESS_KEY, 0, {"failures": 1}, False),
        (ADDRESS_KEY, 99, {"failures": 0}, False),
        (ADDRESS_KEY, 0, {"failures": 0}, False),
        (BIN_KEY, 99, {"bin_failures": 0}, False),
    ],
)
def test_a_key_is_over_its_limit_from_it_on_and_never_without_one(
    kind: str, net: int, limits: dict[str, int], expected: bool
) -> None:
    assert CardTestingLimits(**limits).reached(kind, net) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("net", "window", "code", "why"),
    [
        ({}, 600, None, ""),
        ({ADDRESS_KEY: 9, DEVICE_KEY: 9, BIN_KEY: 59}, 600, None, ""),
        ({ADDRESS_KEY: 10}, 600, "800.120.102", "10 more failed than approved cards from this address in 10 min"),
        ({DEVICE_KEY: 12}, 3600, "800.120.101", "12 more failed than approved cards from this device in 60 min"),
        ({BIN_KEY: 60}, 60, "800.300.401", "60 more failed than approved cards with this BIN in 1 min"),
        ({BIN_KEY: 60}, 30, "800.300.401", "60 more failed than approved cards with this BIN in 1 min"),
        ({ADDRESS_KEY: 10, DEVICE_KEY: 10}, 600, "800.120.102", "10 more failed than approved cards from this address"),
    ],
)
def test_a_key_over_its_limit_declines_with_its_code_and_says_why(
    net: dict[str, int], window: int, code: str | None, why: str
) -> None:
    verdict = a_watch(limits=CardTestingLimits(window_s=window), net=net).verdict()
    assert (verdict.code if verdict is not None else None) == code
    if verdict is not None:
        (reason,) = verdict.reasons
        assert (str(verdict.outcome), reason.rule, reason.verdict) == ("decline", "card-testing guard", "decline")
        assert why in reason.why


@pytest.mark.parametrize(
    ("row", "counted"),
    [
        ({}, 7),
        ({"bucket": 96}, 7),
        ({"bucket": 95}, 0),
        ({"bucket": 101}, 0),
        ({"key": b"X"}, 0),
        ({"kind": DEVICE_KEY}, 0),
        ({"merchant_id": UUID(int=9)}, 0),
    ],
)
def test_a_count_is_of_its_merchant_its_key_and_the_last_five_slices(
    shop: Shop, row: dict[str, Any], counted: int
) -> None:
    usual = {"merchant_id": shop.merchant.pk, "kind": ADDRESS_KEY, "key": b"A", "bucket": 100, "failed": 10}
    for shard, passed in ((0, 4), (1, 9)):
        CardTestingCount.objects.create(**usual | row, shard=shard, passed=passed, at=NOW)
    asked: dict[str, Any] = {}
    write: Any = SimpleNamespace(returning=lambda name, sql, values: asked.update({name: (sql, values)}))
    a_watch(shop).add_count_query(write)
    found = {name: int(execute_sql(*given)[0][0]) for name, given in asked.items()}
    assert found == {ADDRESS_KEY: counted, BIN_KEY: 0, DEVICE_KEY: 0}


def test_counts_are_read_of_the_own_keys_alone() -> None:
    watch = a_watch(keys={ADDRESS_KEY: b"A", BIN_KEY: b"B"})
    answer: Any = SimpleNamespace(returned={ADDRESS_KEY: "3", DEVICE_KEY: "9", "declines": "1 2"})
    watch.read_counts(answer)
    assert watch.net == {ADDRESS_KEY: 3}


@pytest.mark.parametrize(
    ("code", "net", "written"),
    [
        (BAD, {}, [(ADDRESS_KEY, 1, 0), (BIN_KEY, 1, 0), (DEVICE_KEY, 1, 0)]),
        (GOOD, {}, []),
        (GOOD, {ADDRESS_KEY: 1}, [(ADDRESS_KEY, 0, 1)]),
        (GOOD, {ADDRESS_KEY: 0, BIN_KEY: -1, DEVICE_KEY: 2}, [(DEVICE_KEY, 0, 1)]),
        ("900.100.300", {ADDRESS_KEY: 5}, []),
    ],
)
def test_an_outcome_is_counted_for_each_key_in_its_slice(
    monkeypatch: pytest.MonkeyPatch, code: str, net: dict[str, int], written: list[tuple[str, int, int]]
) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    counted: list[Any] = []
    write: Any = SimpleNamespace(increment_counts=lambda model, by, **key: counted.append((model, by, key)))
    a_watch(net=net).count(write, code)
    keys = {ADDRESS_KEY: b"A", BIN_KEY: b"B", DEVICE_KEY: b"D"}
    assert counted == [
        (
            CardTestingCount,
            {"failed": failed, "passed": passed},
            {"merchant_id": UUID(int=1), "kind": kind, "key": keys[kind], "bucket": 100, "shard": 2, "at": NOW},
        )
        for kind, failed, passed in written
    ]


@pytest.mark.parametrize(
    ("code", "net", "weight"),
    [
        (BAD, 0, (1, 0)), (BAD, 9, (1, 0)), (BAD, -3, (1, 0)), (GOOD, 0, (0, 0)), (GOOD, 1, (0, 1)), (GOOD, 7, (0, 1)),
        (GOOD, -1, (0, 0)), ("000.200.000", 7, (0, 0)), ("100.100.101", 0, (1, 0)),
    ],
)  # fmt: skip
def test_an_approval_offsets_failures_that_were_before_it(code: str, net: int, weight: tuple[int, int]) -> None:
    assert weigh_outcome(code, net) == weight


def built(parameters: dict[str, str] | None = None, **more: Any) -> CardTestingWatch | None:
    usual: dict[str, Any] = {
        "merchant": UUID(int=1), "payment": UUID(int=7), "card_bin": "420000", "own": {}, "now": NOW,
    }  # fmt: skip
    return build_card_testing_watch(parameters or {}, **usual | more)


def test_a_watch_has_the_keys_of_what_was_sent() -> None:
    """Fingerprints of kind, value and window: a change of the window begins anew."""
    sent = {"customer.ip": "2001:db8:1:2::7", "customer.app.deviceId": "app", "customer.browser.deviceId": "browser"}
    watch = built(sent)
    assert watch is not None
    seal = current_vault().fingerprint
    assert watch.keys == {
        ADDRESS_KEY: seal("guard:600:address:2001:db8:1:2::/64"),
        BIN_KEY: seal("guard:600:bin:420000"),
        DEVICE_KEY: seal("guard:600:device:browser"),
    }
    assert list(watch.keys) == sorted(watch.keys)
    assert (watch.merchant, watch.shard, watch.bucket) == (UUID(int=1), 7 % 4, int(NOW.timestamp()) // 120)
    for lacking in ({}, {"customer.ip": "", "customer.app.deviceId": ""}):
        bare = built(lacking)
        assert bare is not None
        assert set(bare.keys) == {BIN_KEY}
    short = built(sent, own={"windowSeconds": 60})
    assert short is not None
    assert (short.bucket, short.limits.window_s) == (int(NOW.timestamp()) // 12, 60)
    assert not set(short.keys.values()) & set(watch.keys.values())


@pytest.mark.parametrize(("name", "place"), [(name, place) for place, name in enumerate(_DEVICES)])
def test_a_device_is_named_by_the_first_that_was_sent(name: str, place: int) -> None:
    sent = {each: each for each in _DEVICES[place:]} | dict.fromkeys(_DEVICES[:place], "")
    watch = built(sent)
    assert watch is not None
    assert watch.keys[DEVICE_KEY] == current_vault().fingerprint(f"guard:600:device:{name}")


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, (True, 11, 61, 700)),
        ({"enabled": False}, (False, 11, 61, 700)),
        ({"failures": 3}, (True, 3, 61, 700)),
        ({"failures": 0}, (True, 0, 61, 700)),
        ({"failures": None}, (True, 11, 61, 700)),
        ({"binFailures": 4}, (True, 11, 4, 700)),
        ({"windowSeconds": 90}, (True, 11, 61, 90)),
    ],
)
@override_settings(
    GATEWAY_CARD_TESTING_GUARD=True,
    GATEWAY_CARD_TESTING_FAILURES=11,
    GATEWAY_CARD_TESTING_BIN_FAILURES=61,
    GATEWAY_CARD_TESTING_WINDOW_S=700,
)
def test_a_channels_own_limit_goes_before_that_of_the_settings(
    own: dict[str, Any], expected: tuple[bool, int, int, int]
) -> None:
    found = resolve_card_testing_limits(own)
    assert (found.enabled, found.failures, found.bin_failures, found.window_s) == expected
    assert (built(own=own) is not None) is expected[0]


def test_the_limits_that_nobody_set_are_those_of_the_page() -> None:
    """docs/risk.md."""
    usual = CardTestingLimits()
    assert (usual.enabled, usual.failures, usual.bin_failures, usual.window_s) == (True, 10, 60, 600)

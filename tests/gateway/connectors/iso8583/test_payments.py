"""testMode=EXTERNAL over ISO 8583, as a merchant: every operation, declines, silence and how it is cleared up."""

from __future__ import annotations

import random
from functools import partial

import pytest
from django.test import override_settings

from gateway.connectors.iso8583.iso_request import OriginalMessage
from gateway.models import AcquirerExchange, Payment
from gateway.payments import recovery
from tests.support.database import leaves, places_of
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host
from tests.support.recovery import recover_after
from tests.support.threads import at_once

OK = "000.100.112"
PAN = "4200000000000000"


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> IsoHost:
    account_at_host(shop.channel, iso_host)
    return iso_host


def recover() -> recovery.RecoverySummary:
    return recover_after(120)


def status(payment: str) -> tuple[str, str]:
    row = Payment.objects.get(pk=payment)
    return row.status, row.result_code


def test_a_debit_is_a_financial_request(shop: Shop, host: IsoHost) -> None:
    """ISO 8583:1987: 0200 with processing code 00."""
    answer = shop.api.pay(testMode="EXTERNAL", billing__postcode="80331", billing__street1="Main Street 12")
    assert (answer.status, answer.code) == (200, OK)
    (message,) = host.seen("0200")
    assert (message["2"], message["3"], message["4"], message["49"]) == (PAN, "000000", "000000009200", "978")
    assert (message["14"], message["18"], message["22"], message["25"]) == ("3405", "5942", "812", "59")
    assert (message["41"], message["42"].strip()) == ("TERM0001", "MERCHANT-1")
    assert message["43"] == "Example Shop             Munich       DE"
    assert message["48"] == "420207" + "800580331" + "8114Main Street 12" + "9203123"
    assert host.of(answer.id).left == 9200


def test_an_authorization_is_captured_in_parts_refunded_and_the_rest_taken_back(shop: Shop, host: IsoHost) -> None:
    """0100, 0220 twice, 0200 with processing code 20, 0400 with what is left in DE95."""
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    first, second = shop.api.follow(pa, "CP", "60.00"), shop.api.follow(pa, "CP", "15.00")
    refund = shop.api.follow(first.id, "RF", "25.00")
    rest = shop.api.follow(pa, "RV")
    assert [answer.code for answer in (first, second, refund, rest)] == [OK] * 4
    asked = host.seen("0100")[0]
    for capture, amount in zip(host.seen("0220"), ("000000006000", "000000001500"), strict=True):
        assert (capture["4"], capture["2"], capture["37"]) == (amount, PAN, asked["37"])
        assert (capture["38"], capture["90"]) == (f"A{asked['11'][:5]}", _original("0100", asked))
        assert "92" not in capture.get("48", "")
    back = host.seen("0200")[0]
    assert (back["3"], back["4"], back["37"] != asked["37"]) == ("200000", "000000002500", True)
    reversal = host.seen("0400")[0]
    assert (reversal["4"], reversal["95"][:12]) == ("000000010000", "000000007500")
    assert (host.of(pa).captured, host.of(pa).left, host.of(pa).reversed) == (7500, 7500, False)


def _original(mti: str, message: dict[str, str]) -> str:
    return f"{mti}{message['11']}{message['7']}00000012345{'0' * 11}"


def test_a_debit_is_reversed_as_a_whole_without_replacement_amounts(shop: Shop, host: IsoHost) -> None:
    """ISO 8583:1987: DE95 stands in partial reversals only."""
    paid = shop.api.pay(testMode="EXTERNAL").id
    assert shop.api.follow(paid, "RV").code == OK
    assert "95" not in host.seen("0400")[0]
    assert host.of(paid).reversed


def test_reversals_in_parts_say_each_time_what_is_left(shop: Shop, host: IsoHost) -> None:
    """ISO 8583:1987: DE95 replaces the amount, so it counts what others took back, and waits for their answers."""
    paid = shop.api.pay(testMode="EXTERNAL", amount="100.00").id
    assert shop.api.follow(paid, "RV", "20.00").code == OK
    host.next("0400", "lost")
    second = shop.api.follow(paid, "RV", "30.00")
    early = shop.api.follow(paid, "RV", "50.00")
    assert recover().settled == 1
    third = shop.api.follow(paid, "RV", "50.00")
    assert (status(second.id)[0], early.code, third.code) == ("APPROVED", "700.400.570", OK)
    left = [message.get("95", "")[:12] for message in host.seen("0400") + host.seen("0401")]
    assert left == ["000000008000", "000000005000", "", "000000005000"]


def test_a_credit_and_a_rebill_are_requests_of_their_own(shop: Shop, host: IsoHost) -> None:
    """Part A, Basic payment."""
    assert shop.api.pay(testMode="EXTERNAL", paymentType="CD").code == OK
    paid = shop.api.pay(testMode="EXTERNAL").id
    assert shop.api.follow(paid, "RB", "5.00").code == OK
    assert [message["3"] for message in host.seen("0200")] == ["200000", "000000", "000000"]
    assert host.seen("0200")[2]["2"] == PAN


@pytest.mark.parametrize("code, result", [("05", "800.100.152"), ("51", "800.100.155"), ("ZZ", "800.100.100")])
def test_a_decline_says_why(shop: Shop, host: IsoHost, code: str, result: str) -> None:
    """Part B, Payment response."""
    host.declines[9200] = code
    answer = shop.api.pay(testMode="EXTERNAL")
    assert (answer.status, answer.code) == (400, result)
    assert answer.body["resultDetails"]["AcquirerResponse"] == code
    assert status(answer.id) == ("DECLINED", result)


def test_an_approval_in_part_grants_what_it_says(shop: Shop, host: IsoHost) -> None:
    """DE39 is 10 and DE4 the amount that was approved."""
    answer = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="10.00")
    assert (answer.code, Payment.objects.get().approved_amount) == (OK, 5)
    assert shop.api.follow(answer.id, "CP", "6.00").status == 400
    assert shop.api.follow(answer.id, "RV").code == OK
    reversal = host.seen("0400")[0]
    assert (reversal["4"], "95" in reversal) == ("000000000500", False)


def test_address_and_security_code_answers_are_told_in_our_letters(shop: Shop, host: IsoHost) -> None:
    """Part B, result.avsResponse and cvvResponse."""
    host.answers = {"44": " Y       N"}
    told = shop.api.pay(testMode="EXTERNAL").body["result"]
    assert (told["avsResponse"], told["cvvResponse"]) == ("F", "N")
    host.answers = {"48": "8301Z8701M840203", "44": " Y       N"}
    answer = shop.api.pay(testMode="EXTERNAL").body
    assert (answer["result"]["avsResponse"], answer["result"]["cvvResponse"]) == ("Z", "M")
    assert answer["resultDetails"]["MerchantAdviceCode"] == "03"


def test_nothing_is_listening_so_the_payment_is_declined_and_another_acquirer_may_be_asked(
    shop: Shop, host: IsoHost
) -> None:
    """Goals, R3: nothing was sent, so nothing can have been accepted."""
    host.stop()
    answer = shop.api.pay(testMode="EXTERNAL")
    assert (answer.status, answer.code) == (400, "900.100.600")
    assert "refused" in AcquirerExchange.objects.get().received["unreachable"]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_request_without_an_answer_is_taken_back_until_the_host_says_so(
    shop: Shop, host: IsoHost, arrives: bool
) -> None:
    """ISO 8583:1987: 0420, repeated as 0421, answered 0430. Goals, R3."""
    host.next("0200", "lost", arrives=arrives)
    host.next("0420", "lost", arrives=arrives)
    paid = shop.api.pay(testMode="EXTERNAL")
    assert (paid.code, status(paid.id)[0]) == ("000.200.001", "IN_DOUBT")
    assert recover().settled == 0
    assert status(paid.id)[0] == "IN_DOUBT"
    assert recover().settled == 1
    assert status(paid.id) == ("DECLINED", "900.100.301")
    asked, first, second = host.seen("0200")[0], host.seen("0420")[0], host.seen("0421")[0]
    assert {**first, "t": ""} == {**second, "t": ""}
    assert (first["90"], first["37"], first["4"]) == (_original("0200", asked), asked["37"], asked["4"])
    assert first["11"] != asked["11"]
    assert (first["48"], first["39"]) == ("420207", "68")
    if arrives:
        assert host.of(paid.id).reversed if len(host.booked) == 1 else host.booked[asked["11"], asked["37"]].reversed
    else:
        assert (asked["11"], asked["37"]) in host.gone


def test_a_capture_whose_answer_was_lost_is_repeated_and_booked_once(shop: Shop, host: IsoHost) -> None:
    """ISO 8583:1987: 0221 asks for the answer to the advice 0220 again."""
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    host.next("0220", "lost")
    capture = shop.api.follow(pa, "CP", "60.00")
    assert status(capture.id)[0] == "IN_DOUBT"
    assert recover().settled == 1
    assert status(capture.id) == ("APPROVED", OK)
    assert {**host.seen("0220")[0], "t": ""} == {**host.seen("0221")[0], "t": ""}
    assert host.of(pa).captured == 6000
    assert shop.api.follow(pa, "CP", "50.00").status == 400


def test_a_capture_that_never_arrived_arrives_by_its_repetition(shop: Shop, host: IsoHost) -> None:
    """The host takes a 0221 for what it is, also when the 0220 was lost."""
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA").id
    host.next("0220", "lost", arrives=False)
    capture = shop.api.follow(pa, "CP", "92.00")
    assert recover().settled == 1
    assert (status(capture.id)[0], host.of(pa).captured) == ("APPROVED", 9200)


def test_an_advice_that_the_host_cannot_take_in_now_stays_open(shop: Shop, host: IsoHost) -> None:
    """96 is no verdict on a capture: the money was authorized."""
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA").id
    host.next("0220", "sent", arrives=True, de39="96")
    capture = shop.api.follow(pa, "CP", "92.00")
    assert status(capture.id)[0] == "IN_DOUBT"
    assert recover().settled == 1
    assert status(capture.id)[0] == "APPROVED"


def test_a_reversal_whose_answer_was_lost_is_repeated(shop: Shop, host: IsoHost) -> None:
    """ISO 8583:1987: 0401."""
    paid = shop.api.pay(testMode="EXTERNAL").id
    host.next("0400", "lost")
    back = shop.api.follow(paid, "RV")
    assert status(back.id)[0] == "IN_DOUBT"
    assert recover().settled == 1
    assert (status(back.id)[0], len(host.seen("0401"))) == ("APPROVED", 1)


def test_a_refund_without_an_answer_is_taken_back_not_repeated(shop: Shop, host: IsoHost) -> None:
    """A 0200 sent twice could pay back twice."""
    paid = shop.api.pay(testMode="EXTERNAL").id
    host.next("0200", "lost")
    back = shop.api.follow(paid, "RF", "92.00")
    assert recover().settled == 1
    assert status(back.id) == ("DECLINED", "900.100.301")
    assert (len(host.seen("0200")), host.seen("0420")[0]["3"]) == (2, "200000")
    assert shop.api.follow(paid, "RF", "92.00").code == OK


@pytest.mark.parametrize(
    "change",
    [
        {"de39": None},
        {"de39": "94"},
        {"de39": "68"},
        {"de4": "000000009300"},
        {"de39": "10"},
        {"de49": "840"},
        {"de4": "000000000000"},
    ],
    ids=str,
)
def test_an_answer_that_contradicts_the_question_leaves_the_payment_in_doubt(
    shop: Shop, host: IsoHost, change: dict[str, str | None]
) -> None:
    """Goals, R1 and R3."""
    host.next("0200", **change)
    paid = shop.api.pay(testMode="EXTERNAL")
    assert status(paid.id)[0] == "IN_DOUBT"
    assert recover().settled == 1
    assert status(paid.id) == ("DECLINED", "900.100.301")


def test_the_proof_of_an_authentication_goes_along_and_is_kept_nowhere(shop: Shop, host: IsoHost) -> None:
    """Goals, R8; Part B, 3D Secure by an external server."""
    cavv, ds = "AAACAgSRBklmQCFgMpEGAAAAAAA=", "c75f23af-9454-43f6-ba17-130ed529507e"
    answer = shop.api.pay(
        testMode="EXTERNAL",
        card__cvv="951",
        threeDSecure__eci="05",
        threeDSecure__verificationId=cavv,
        threeDSecure__dsTransactionId=ds,
        threeDSecure__version="2.2.0",
    )
    assert answer.code == OK
    assert host.seen("0200")[0]["48"] == f"4202054328{cavv}66372{ds}9203951"
    kept = AcquirerExchange.objects.get()
    assert kept.sent["48"] == {"eci": "05", "cavv": "***", "dsTransaction": f"2{ds}", "cvv2": "***"}
    assert kept.sent["2"] == "420000******0000"
    assert not places_of(PAN)
    assert "951" not in leaves(kept.sent) + leaves(kept.received)
    assert cavv not in str(kept.sent) + str(kept.received)


def test_the_networks_reference_of_the_first_payment_goes_along_with_the_later_ones(shop: Shop, host: IsoHost) -> None:
    """Part B, Card on file; ruling D38."""
    first = {
        "standingInstruction__mode": "INITIAL",
        "standingInstruction__type": "RECURRING",
        "standingInstruction__source": "CIT",
    }
    host.answers = {"48": "6315483296210004567"}
    initial = shop.api.pay(testMode="EXTERNAL", **first)
    assert initial.code == OK, initial
    reference = initial.body["standingInstruction"]["initialTransactionId"]
    known = OriginalMessage.parse(reference)
    assert known is not None
    assert known.network == "483296210004567"
    again = shop.api.pay(
        testMode="EXTERNAL",
        standingInstruction__mode="REPEATED",
        standingInstruction__type="RECURRING",
        standingInstruction__source="MIT",
        standingInstruction__initialTransactionId=reference,
        card__cvv=None,
    )
    assert again.code == OK, again
    one, two = host.seen("0200")
    assert one["48"] == "2204C1034202079203123"
    assert two["48"] == "2204M1036315483296210004567"
    assert (one["22"], two["22"], two["25"]) == ("812", "102", "08")


def test_after_a_storm_of_faults_the_hosts_books_and_ours_agree(committed: Shop, iso_host: IsoHost) -> None:
    """Goals, R1: lost before and after, cut off, garbled, twice, out of time; every payment ends as the host has it."""
    account_at_host(committed.channel, iso_host)
    dice = random.Random(9)
    for mti, most in (("0200", 40), ("0420", 12), ("0421", 12)):
        for _ in range(most):
            how = dice.choice(["sent", "sent", "lost", "cut", "twice", "garbage", "split", "held"])
            iso_host.next(mti, how, arrives=dice.random() < 0.7)
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=0.4):
        for _ in range(5):
            calls = [partial(committed.api.pay, testMode="EXTERNAL", amount=f"{20 + place}.00") for place in range(10)]
            at_once(*calls)
        for _ in range(30):
            iso_host.release()
            if not Payment.objects.exclude(status__in=("APPROVED", "DECLINED")).exists():
                break
            recover()
    iso_host.release()
    booked = {row.payment: row for row in iso_host.booked.values() if row.mti == "0200"}
    kept = {row.id.hex: row for row in Payment.objects.all()}
    assert len(kept) == 50
    assert {row.status for row in kept.values()} == {"APPROVED", "DECLINED"}
    assert len(iso_host.seen("0420")) > 5
    for payment, row in kept.items():
        stands = booked[payment].left if payment in booked else 0
        assert stands == (int(row.amount * 100) if row.status == "APPROVED" else 0), payment


def test_an_account_whose_settings_do_not_do_declines_and_says_why(shop: Shop, iso_host: IsoHost) -> None:
    """Bad set-up is no 500 and no doubt."""
    account_at_host(shop.channel, iso_host, time_zone="Nowhere/Land")
    answer = shop.api.pay(testMode="EXTERNAL")
    assert (answer.status, answer.code) == (400, "500.100.401")
    assert "Nowhere/Land" in AcquirerExchange.objects.get().received["unsent"]

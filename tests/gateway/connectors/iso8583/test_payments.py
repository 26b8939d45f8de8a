"""testMode=EXTERNAL over ISO 8583, as a merchant: every operation, declines, silence and how it is cleared up."""

from __future__ import annotations

import random
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connection, transaction
from django.test import override_settings

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.connectors.iso8583 import trace_numbers
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.iso8583.iso_request import OriginalMessage
from gateway.connectors.iso8583.terminal import name_trace_sequence
from gateway.connectors.port import AcquirerReply, ConnectorAccount
from gateway.core import clock
from gateway.models import AcquirerExchange, OpenPayment, Payment, TraceSequence
from gateway.payments import recovery, store
from gateway.payments.outcomes import Approved
from tests.support.database import leaves, places_of, until_somebody_waits_for_a_lock
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


def test_an_answer_that_fills_its_fields_with_zero_octets_is_read(shop: Shop, host: IsoHost) -> None:
    """The database keeps no NUL: such an approval was answered with 500, and never settled."""
    host.next("0200", de38="\0" * 6)
    paid = shop.api.pay(testMode="EXTERNAL")
    assert (paid.status, paid.code, status(paid.id)[0]) == (200, OK, "APPROVED")


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


def test_the_void_of_a_refused_approval_is_repeated_with_its_reason(shop: Shop, host: IsoHost) -> None:
    """0420 and 0421 differ in their type alone, and the decline has the code of the policy."""
    target = find_configuration_target(shop.channel.id)
    assert target is not None
    risk = {"set": "S", "sets": [{"key": "S", "avs": {"N": "decline"}}]}
    apply_configuration(target, {"risk": risk}, by=audit_log.COMMAND_LINE_ACTOR)
    host.answers = {"44": " N"}
    host.next("0420", "lost")
    paid = shop.api.pay(testMode="EXTERNAL")
    assert paid.code == "000.200.001"
    assert recover().settled == 1
    (first,), (second,) = host.seen("0420"), host.seen("0421")
    assert {**first, "t": ""} == {**second, "t": ""}
    assert (first["39"], [one.reason for one in host.booked.values() if one.mti == "0200"]) == ("34", ["34"])
    assert status(paid.id) == ("DECLINED", "800.400.100")


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
    # What the host does not know may still be under way, for a minute.
    assert [recover().settled for _ in range(1 if arrives else 6)][-1] == 1
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


@pytest.mark.parametrize("kind", ["DB", "CP"])
@pytest.mark.parametrize("code", ["21", "25", "76", "79"])
def test_a_repeated_reversal_that_finds_nothing_left_is_not_declined(
    shop: Shop, host: IsoHost, code: str, kind: str
) -> None:
    """The first one, whose answer was lost, may have reversed it: declined, it would be given back once more."""
    paid = shop.api.pay(testMode="EXTERNAL", paymentType="DB" if kind == "DB" else "PA").id
    if kind == "CP":
        paid = shop.api.follow(paid, "CP", "92.00").id
    host.next("0400", "lost")
    host.next("0401", de39=code)
    back = shop.api.follow(paid, "RV")
    assert recover().settled == 0
    assert status(back.id)[0] == "IN_DOUBT"
    assert shop.api.follow(paid, "RF", "92.00").code == "700.400.200"
    assert recover().settled == 1
    assert status(back.id) == ("APPROVED", OK)


@pytest.mark.parametrize("code", ["21", "25", "76"])
def test_a_repeated_capture_that_finds_no_record_is_not_declined(shop: Shop, host: IsoHost, code: str) -> None:
    """The first one may have been booked: declined, it would be captured once more."""
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    host.next("0220", "lost")
    host.next("0221", de39=code)
    capture = shop.api.follow(pa, "CP", "60.00")
    assert recover().settled == 0
    assert status(capture.id)[0] == "IN_DOUBT"
    assert shop.api.follow(pa, "CP", "60.00").code == "700.400.100"
    assert recover().settled == 1
    assert (status(capture.id), host.of(pa).captured) == (("APPROVED", OK), 6000)


@pytest.mark.parametrize("code", ["21", "25", "76", "79"])
@pytest.mark.parametrize("kind", ["CP", "RV"])
def test_of_a_host_that_says_what_it_has_done_any_other_answer_is_about_the_repeat(
    shop: Shop, iso_host: IsoHost, kind: str, code: str
) -> None:
    account_at_host(shop.channel, iso_host, duplicate="done")
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA").id
    mti = "022" if kind == "CP" else "040"
    iso_host.next(f"{mti}0", "lost", arrives=False)
    iso_host.next(f"{mti}1", de39=code)
    made = shop.api.follow(pa, kind, "92.00")
    assert recover().settled == 1
    assert status(made.id)[0] == "DECLINED"


def test_a_reversal_that_is_answered_so_at_first_is_declined(shop: Shop, host: IsoHost) -> None:
    for code in ("21", "25", "76", "79"):
        paid = shop.api.pay(testMode="EXTERNAL").id
        host.next("0400", de39=code)
        back = shop.api.follow(paid, "RV")
        assert (back.status, status(back.id)[0]) == (400, "DECLINED")
        assert shop.api.follow(paid, "RF", "92.00").code == OK


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
    assert two["48"] == "2204M1034202076315483296210004567"
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


@pytest.mark.parametrize(
    ("says", "state", "captured"), [("unclear", "IN_DOUBT", 0), ("done", "APPROVED", 6000)], ids=["unclear", "done"]
)
def test_94_to_a_repeated_capture_is_what_the_account_says(
    shop: Shop, iso_host: IsoHost, says: str, state: str, captured: int
) -> None:
    """The host refused the capture, and the answer was lost: goods must not leave on "I know this message"."""
    account_at_host(shop.channel, iso_host, duplicate=says)
    held = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    if says == "unclear":
        iso_host.refuses[6000] = "05"
    iso_host.next("0220", "lost")
    capture = shop.api.follow(held, "CP", "60.00").id
    iso_host.next("0221", de39="94")
    recover()
    assert (status(capture)[0], iso_host.of(held).captured) == (state, captured)
    if says == "unclear":
        recover()
        assert status(capture) == ("DECLINED", "800.100.152")


def refuse_wrong_addresses(shop: Shop) -> None:
    target = find_configuration_target(shop.channel.id)
    assert target is not None
    risk = {"set": "SET", "sets": [{"key": "SET", "avs": {"N": "decline"}, "start": 5}]}
    apply_configuration(target, {"risk": risk}, by=audit_log.COMMAND_LINE_ACTOR)


@pytest.mark.parametrize("silent", [False, True])
def test_the_reversal_of_a_refused_approval_says_what_was_approved(shop: Shop, host: IsoHost, silent: bool) -> None:
    """Visa, "Authorization Reversals": fields 37, 38 and 62.2 match it; the amount is that of the answer."""
    refuse_wrong_addresses(shop)
    host.answers = {"44": " N", "48": "6315111111111111111"}
    if silent:
        host.next("0420", "lost", arrives=False)
    paid = shop.api.pay(testMode="EXTERNAL", amount="10.00").id  # the host grants half of it
    if silent:
        recover()
    asked = host.seen("0200")[0]
    for void in (*host.seen("0420"), *host.seen("0421")):
        assert (void["4"], void["38"], void["37"]) == ("000000000500", f"A{asked['11'][:5]}", asked["37"])
        assert (void["39"], "6315111111111111111" in void["48"]) == ("34", True)
    assert len(host.seen("0420")) + len(host.seen("0421")) == 1 + silent
    assert (status(paid)[0], host.of(paid).reversed) == ("DECLINED", True)


def test_the_reversal_after_silence_says_what_was_asked(shop: Shop, host: IsoHost) -> None:
    """Nothing of an answer is known."""
    host.next("0200", "lost")
    shop.api.pay(testMode="EXTERNAL", amount="10.00")
    recover()
    (void,) = host.seen("0420")
    assert (void["4"], "38" in void, void["39"]) == ("000000001000", False, "68")


def test_an_impossible_approval_is_taken_back_by_its_code(shop: Shop, host: IsoHost) -> None:
    host.next("0200", de38="ZZZZZZ", de49="840")
    paid = shop.api.pay(testMode="EXTERNAL").id
    recover()
    assert (host.seen("0420")[0]["38"], status(paid)[0]) == ("ZZZZZZ", "DECLINED")


def test_an_approval_that_comes_too_late_is_taken_back_by_its_code(shop: Shop, host: IsoHost) -> None:
    """Recovery has declined the payment while its process was stopped. The void names Mastercard's link, too."""
    paid = shop.api.pay(testMode="EXTERNAL", paymentBrand="MASTER", card__number="5454545454545454").id
    row = Payment.objects.select_related("merchant").get(pk=paid)
    reference = row.connector_tx_id
    Payment.objects.filter(pk=paid).update(
        status="DECLINED", result_code="900.100.301", connector_tx_id="", approved_amount=None
    )
    row.refresh_from_db()
    link = "Z0fE_2qV-3pWft4vHt7Ki6"
    reply = AcquirerReply(
        code=OK, approved=row.money, connector_tx_id=reference, transaction_link=link, sent={"mti": "0200"}
    )
    asked = store.get_attempt_columns(row)
    store.record_late_approval(row, Approved(reply=reply, at=clock.real_now()), asked=asked, trace=None)
    recover()
    (void,) = host.seen("0420")
    assert (void["38"], host.of(paid).reversed) == (f"A{host.seen('0200')[0]['11'][:5]}", True)
    assert f"6422{link}" in void["48"]


def test_trace_numbers_are_used_once_by_all_processes(shop: Shop, host: IsoHost) -> None:
    """First Data Rapid Connect, STAN: unique within a day per merchant id and terminal id."""
    for _ in range(3):
        shop.api.pay(testMode="EXTERNAL")
    trace_numbers.forget_trace_blocks()  # another process
    paid = shop.api.pay(testMode="EXTERNAL").id
    shop.api.follow(paid, "RF", "1.00")
    shop.api.follow(paid, "RV", "1.00")
    host.next("0200", "lost")
    shop.api.pay(testMode="EXTERNAL")
    recover()
    used = [message["11"] for message in host.log if message["t"][:2] != "08"]
    assert len(used) == len(set(used)) == 8
    assert all(message["37"][-6:] == message["11"] for message in host.seen("0200"))


@pytest.mark.django_db
def test_accounts_of_one_terminal_share_its_trace_numbers() -> None:
    numbers = {ISO8583.take_trace_number(ConnectorAccount(merchant="M", settings={"terminal": "T"})) for _ in range(70)}
    numbers |= {trace_numbers.take_trace_number(name_trace_sequence("M", "T")) for _ in range(70)}
    assert len(numbers) == 140
    assert {number % 2 for number in numbers} == {1}
    assert TraceSequence.objects.get(pk="M T").last >= max(numbers)


@pytest.mark.django_db
def test_trace_numbers_start_again_after_the_last() -> None:
    TraceSequence.objects.create(terminal="round", last=trace_numbers.MAX_TRACE_NUMBER)
    assert trace_numbers.take_trace_number("round") == 1
    assert trace_numbers.MAX_TRACE_NUMBER % (2 * trace_numbers.TRACE_BLOCK_PAYMENTS) == 0


@pytest.mark.django_db(transaction=True)
def test_trace_numbers_of_a_transaction_that_was_rolled_back_are_not_used_twice() -> None:
    """A scheduled run begins its payment in a transaction."""
    with transaction.atomic(durable=True):
        trace_numbers.take_trace_number("rolled back")
        transaction.set_rollback(True)
    mine = {trace_numbers.take_trace_number("rolled back") for _ in range(3)}
    trace_numbers.forget_trace_blocks()  # another process
    others = {trace_numbers.take_trace_number("rolled back") for _ in range(3)}
    assert not mine & others


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_holds_the_sequence_does_not_wait_for_a_thread_that_waits_for_it() -> None:
    """PostgreSQL does not see a lock of the process, so it would end neither."""
    trace_numbers.take_trace_number("two threads")
    trace_numbers.forget_trace_blocks()

    def take() -> int:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '10s'")  # without it a fault would hold the test for ever
            return trace_numbers.take_trace_number("two threads")
        finally:
            connection.close()

    def take_two() -> set[int]:
        try:
            with transaction.atomic(durable=True):
                first = trace_numbers.take_trace_number("two threads")
                waiting.append(pool.submit(take))
                until_somebody_waits_for_a_lock()
                return {first, trace_numbers.take_trace_number("two threads")}
        finally:
            connection.close()

    waiting: list[Future[int]] = []
    with ThreadPoolExecutor(2) as pool:
        both = pool.submit(take_two).result(30)
        numbers = {*both, waiting[0].result(30)}
    assert len(numbers) == 3


@pytest.mark.django_db(transaction=True)
def test_numbers_that_a_process_kept_for_long_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may have gone round meanwhile."""
    first = trace_numbers.take_trace_number("slow")
    monkeypatch.setattr(trace_numbers.time, "monotonic", lambda: 1e12)
    assert trace_numbers.take_trace_number("slow") == first + 2 * trace_numbers.TRACE_BLOCK_PAYMENTS


def test_a_payment_whose_process_died_is_taken_back_by_the_number_it_was_sent_with(shop: Shop, host: IsoHost) -> None:
    """The number is kept before anything is sent: its answer may never come."""
    paid = shop.api.pay(testMode="EXTERNAL").id
    sent = host.seen("0200")[0]["11"]
    numbers = iter([int(sent)])
    Payment.objects.filter(pk=paid).update(
        status="IN_DOUBT", result_code="000.400.999", connector_tx_id="", approved_amount=None, completed_at=None
    )
    OpenPayment.objects.create(payment_id=paid, recover_at=clock.real_now(), trace_number=next(numbers))
    recover()
    (void,) = host.seen("0420")
    assert (void["90"][4:10], int(void["11"])) == (sent, int(sent) + 1)
    assert status(paid) == ("DECLINED", "900.100.301")
    assert host.of(paid).reversed

"""DE39 10 on a channel that takes no approval in part: what the host has booked is reversed, with the amount granted.

The host answers 10.00 with an approval of half. Source: ISO 8583:1987, DE4, DE39; docs/decisions/0113.
"""

from __future__ import annotations

import pytest

from gateway.connectors.iso8583.private_field import split_parts
from gateway.models import CardDecline, Channel, Payment
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host
from tests.support.recovery import recover_after

OK = "000.100.112"
TOO_LITTLE = "800.100.155"
MASTERCARD = "5555555555554444"
VISA = "4012888888881881"  # not one of the published test cards, which the retry rules do not count


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> IsoHost:
    account_at_host(shop.channel, iso_host)
    shop.channel.partial_approvals = Channel.PartialApprovals.DECLINE
    shop.channel.save()
    return iso_host


def pay(shop: Shop, payment_type: str = "DB", **sent: str) -> Answer:
    return shop.api.pay(
        testMode="EXTERNAL", paymentType=payment_type, **{"amount": "10.00", "card__number": VISA} | sent
    )


@pytest.mark.parametrize(("setting", "told"), [("request", True), ("accept", False), ("decline", False)])
@pytest.mark.parametrize(("card", "payment_type", "part", "value"), [
    (VISA, "DB", "40", "1"), (VISA, "PA", "40", "3"),
    (MASTERCARD, "DB", "61", "10001"), (MASTERCARD, "PA", "61", "10000"),
])  # fmt: skip
def test_the_issuer_is_told_that_a_part_will_do_where_the_channel_asks_for_it(
    shop: Shop, host: IsoHost, card: str, payment_type: str, part: str, value: str, setting: str, told: bool
) -> None:
    """Visa's field 60.10, Mastercard's DE48 subelement 61; what is approved is then taken."""
    Channel.objects.update(partial_approvals=setting, authorization_kind="ESTIMATED")
    brand = "VISA" if card == VISA else "MASTER"
    answer = pay(shop, payment_type, card__number=card, paymentBrand=brand)
    (sent,) = host.seen("0100" if payment_type == "PA" else "0200")
    found = dict(split_parts(sent["48"])).get(part, "")
    assert (found == value) is told
    assert (answer.code == OK) is (setting != "decline")


@pytest.mark.parametrize("payment_type", ["DB", "PA"])
def test_the_reversal_names_the_approval_and_what_it_granted(shop: Shop, host: IsoHost, payment_type: str) -> None:
    """17: the merchant does not want it, nobody suspects fraud."""
    answer = pay(shop, payment_type)
    assert (answer.status, answer.code) == (400, TOO_LITTLE)
    assert answer.body["resultDetails"]["PartialApproval"].startswith("approved for 5.00 of 10.00 EUR")
    asked, (reversal,) = host.seen("0100" if payment_type == "PA" else "0200")[0], host.seen("0420")
    assert (reversal["4"], reversal["39"], reversal["37"]) == ("000000000500", "17", asked["37"])
    assert (host.of(answer.id).left, host.of(answer.id).reversed) == (0, True)


def test_a_reversal_without_an_answer_is_repeated_with_the_same_reason(shop: Shop, host: IsoHost) -> None:
    host.next("0420", "lost", arrives=False)
    answer = pay(shop, "PA")
    assert (answer.code, host.holds) == ("000.200.001", 500)
    assert recover_after(120).settled == 1
    row = Payment.objects.get(pk=answer.id)
    assert (row.status, row.result_code, row.approved_amount) == ("DECLINED", TOO_LITTLE, None)
    told = shop.api.read(answer.id).body["resultDetails"]
    assert told["PartialApproval"] == "approved for 5.00 of 10.00 EUR; the approval was reversed"
    assert told["AcquirerResponse"] == "10"
    assert (host.holds, {message["39"] for message in host.seen("0420") + host.seen("0421")}) == (0, {"17"})


def test_the_reversal_and_its_repeat_have_mastercards_link_to_the_approval(shop: Shop, host: IsoHost) -> None:
    """Mastercard Transaction Processing Rules, 2.11.1: of each 0400 and 0420."""
    link = "Z0fE_2qV-3pWft4vHt7Ki6"
    host.answers = {"48": f"6422{link}"}
    host.next("0420", "lost", arrives=False)
    pay(shop, "PA", card__number=MASTERCARD, paymentBrand="MASTER")
    assert recover_after(120).settled == 1
    sent = [dict(split_parts(message["48"])).get("64") for message in (*host.seen("0420"), *host.seen("0421"))]
    assert len(sent) > 1
    assert set(sent) == {link}


def test_a_rebill_in_part_is_refused_too(shop: Shop, host: IsoHost) -> None:
    paid = pay(shop, amount="40.00")
    rebill = shop.api.follow(paid.id, "RB", "10.00")
    assert (paid.code, rebill.code) == (OK, TOO_LITTLE)
    assert (host.of(paid.id).left, host.of(rebill.id).left) == (4000, 0)


def test_an_increment_raises_by_what_is_granted(shop: Shop, host: IsoHost) -> None:
    """The authorization that stands is not given up for it."""
    first = pay(shop, "PA", amount="40.00")
    raised = shop.api.follow(first.id, "PA", "10.00", standingInstruction__industryPractice="INCREMENTAL_AUTH")
    assert (first.code, raised.code, host.holds) == (OK, OK, 4500)


def test_what_we_take_back_is_no_decline_of_the_issuer(shop: Shop, host: IsoHost) -> None:
    """The schemes' retry rules count what issuers decline."""
    pay(shop)
    assert not CardDecline.objects.exists()
    pay(shop, amount="51.00")
    assert CardDecline.objects.count() == 1

"""What a follow-up repeats of the payment that it is about: each rule by itself. docs/decisions/0067, 0147."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.point_of_service import PointOfService
from gateway.models import Payment
from gateway.payments.chain_amounts import Chain
from gateway.payments.points_of_service import SERVICE_PARAMETERS, find_point_of_service
from tests.support.client import Api

REGISTRATION = UUID(int=99)
TOKEN = {"networkToken": "USED"}
SENT = {"transactionCategory": "MO", "lifecycleId": "L1", "threeDSecure": {"eci": "05"}}
"""A mail order whose card was authenticated, with a parameter that follow-ups repeat."""


def member(number: int, payment_type: str, *, follows: int | None = None, link: str = "", **values: Any) -> Payment:
    """A payment of the chain that began with number 1. ``link``: what Mastercard named it."""
    answer = values.pop("answer", {}) | ({"transactionLink": link} if link else {})
    given = {"status": "APPROVED", "means": "card", "request": {}, **values}
    referenced = UUID(int=follows) if follows is not None else None
    return Payment(
        id=UUID(int=number),
        number=number,
        chain=UUID(int=1),
        payment_type=payment_type,
        referenced=referenced,
        answer=answer,
        **given,
    )


def point_of(*members: Payment) -> PointOfService:
    """Of the last one."""
    return find_point_of_service(Chain(members), members[-1])


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, (False, False, False)),
        ({"registration": REGISTRATION}, (True, False, False)),
        ({"registration": REGISTRATION, "payment_type": "RG"}, (False, True, False)),
        ({"payment_type": "RG"}, (False, True, False)),
        ({"request": {"createRegistration": "true"}}, (False, True, False)),
        ({"request": {"createRegistration": "true"}, "registration": REGISTRATION}, (False, True, False)),
        ({"request": {"createRegistration": "false"}, "registration": REGISTRATION}, (True, False, False)),
        ({"means": "tokenAccount"}, (False, False, True)),
        ({"answer": TOKEN, "registration": REGISTRATION}, (True, False, True)),
        ({"answer": {"networkToken": "DECLINED"}}, (False, False, False)),
    ],
    ids=str,
)
def test_a_first_payment_stores_a_card_or_uses_a_stored_one_or_a_token(
    values: dict[str, Any], shown: tuple[bool, bool, bool]
) -> None:
    point = point_of(member(1, values.pop("payment_type", "DB"), link="LINK", **values))
    assert (point.stored, point.stores, point.token) == shown
    assert (point.link, point.related_link) == ("LINK", "")


@pytest.mark.parametrize(
    ("request_", "facts", "shown"),
    [
        ({"threeDSecure": {"eci": "05"}}, {}, ("05", "")),
        ({}, {"eci": "02"}, ("02", "")),
        ({"threeDSecure": {"eci": "07"}}, {"eci": "06", "exemptionFlag": "01"}, ("06", "LOW_VALUE")),
        ({"threeDSecure": {"exemptionFlag": "02"}}, {}, ("", "LOW_RISK")),
        ({}, {"exemptionFlag": "01"}, ("", "LOW_VALUE")),
        ({}, {"challengeIndicator": "08"}, ("", "TRUSTED_MERCHANT")),
        ({}, {"challengeIndicator": "08", "authenticationStatus": "Y"}, ("", "")),
        ({}, {"challengeIndicator": "08", "authenticationStatus": ""}, ("", "TRUSTED_MERCHANT")),
        ({"threeDSecure": {"eci": "05"}}, {"eci": ""}, ("05", "")),
    ],
)
def test_what_our_own_authentication_added_counts_like_what_was_sent(
    request_: dict[str, Any], facts: dict[str, str], shown: tuple[str, str]
) -> None:
    point = point_of(member(1, "DB", request=request_, answer={"facts": {"threeDSecure": facts}}))
    assert (point.eci, point.exemption) == shown


@pytest.mark.parametrize("payment_type", ["CP", "RV", "RF"])
def test_what_follows_repeats_what_its_payment_said(payment_type: str) -> None:
    first = member(1, "PA", request=SENT, link="FIRST", registration=REGISTRATION)
    point = point_of(first, member(2, payment_type, follows=1))
    assert (point.order, point.repeated, point.eci) == ("MO", {"lifecycleId": "L1"}, "05")
    assert (point.merchant_initiated, point.stored, point.link) == (False, True, "FIRST")


@pytest.mark.parametrize(
    ("payment_type", "own", "link"),
    [("CP", "OWN", "FIRST"), ("RV", "OWN", "FIRST"), ("RF", "OWN", "OWN"), ("RF", "", "FIRST"), ("RB", "OWN", "OWN")],
)
def test_a_refund_and_a_rebill_have_a_link_of_their_own(payment_type: str, own: str, link: str) -> None:
    first = member(1, "DB", link="FIRST")
    assert point_of(first, member(2, payment_type, follows=1, link=own)).link == link


@pytest.mark.parametrize(("own", "link"), [("OWN", "OWN"), ("", "FIRST")])
def test_an_increment_is_the_merchants_and_keeps_the_link_where_it_has_none(own: str, link: str) -> None:
    first = member(1, "PA", request=SENT, link="FIRST")
    point = point_of(first, member(2, "PA", follows=1, practice="INCREMENTAL_AUTH", link=own))
    assert (point.link, point.related_link) == (link, "")
    assert (point.merchant_initiated, point.stored, point.practice) == (True, True, "INCREMENTAL_AUTH")
    assert (point.order, point.eci, point.reason, point.repeated) == ("", "", "", {"lifecycleId": "L1"})


def test_an_increment_that_the_cardholder_asked_for_is_not_the_merchants() -> None:
    asked = {"standingInstruction": {"source": "CIT"}}
    point = point_of(
        member(1, "PA"), member(2, "PA", follows=1, practice="INCREMENTAL_AUTH", request=asked)
    )  # fmt: skip
    assert not point.merchant_initiated


def test_a_rebill_names_the_payment_that_it_charges_again_and_its_refund_does_not() -> None:
    rebill = member(2, "RB", follows=1, link="AGAIN")
    members = (member(1, "DB", request=SENT, link="FIRST"), rebill)
    point = point_of(*members)
    assert (point.link, point.related_link, point.reason) == ("AGAIN", "FIRST", "UNSCHEDULED")
    assert (point.merchant_initiated, point.stored, point.order) == (True, True, "")
    refund = point_of(*members, member(3, "RF", follows=2, link="BACK"))
    assert (refund.link, refund.related_link, refund.reason) == ("BACK", "", "UNSCHEDULED")


RENEWED = (
    member(1, "PA", request=SENT, link="FIRST"),
    member(2, "PA", follows=1, practice="INCREMENTAL_AUTH", link="MORE"),
    member(3, "PA", follows=2, practice="REAUTHORIZATION", link="AGAIN"),
)


def test_a_renewal_is_of_the_first_authorization() -> None:
    """Whichever member of the chain its path names."""
    again = member(3, "PA", follows=2, practice="REAUTHORIZATION")
    assert point_of(*RENEWED[:2], again).link == "FIRST"
    assert point_of(*RENEWED).link == "AGAIN"


@pytest.mark.parametrize(
    ("payment_type", "number", "link"),
    [("CP", 4, "AGAIN"), ("RV", 4, "AGAIN"), ("CP", 0, "FIRST"), ("RV", 0, "FIRST"), ("RC", 4, "FIRST")],
)
def test_a_capture_and_a_reversal_name_the_authorization_as_it_stood_when_they_began(
    payment_type: str, number: int, link: str
) -> None:
    """``number`` 0: it began before the renewal did."""
    follow_up = member(9, payment_type, follows=1)
    follow_up.number = number
    assert find_point_of_service(Chain([*RENEWED, follow_up]), follow_up).link == link


def test_one_that_is_not_stored_yet_names_the_authorization_as_it_stands() -> None:
    assert find_point_of_service(Chain(RENEWED), member(9, "CP", follows=1)).link == "AGAIN"


def test_the_reversal_of_a_capture_is_of_the_capture() -> None:
    members = (*RENEWED, member(4, "CP", follows=1), member(5, "RV", follows=4))
    members[3].number = 0
    assert point_of(*members).link == "FIRST"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "sent",
    [
        {"transactionCategory": "MO"},
        {"createRegistration": "true"},
        {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"},
        {
            "threeDSecure.eci": "05",
            "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
            "threeDSecure.dsTransactionId": "c5b808e7-1de1-4069-a17b-f70d3b3b1645",
        },
        {"lifecycleId": "L1", "transactionBai": "FT", "merchant.submerchantId": "S1"},
        {},
    ],
    ids=str,
)
def test_it_is_the_same_where_the_request_is_not_read_as_a_whole(api: Api, sent: dict[str, str]) -> None:
    answer = api.pay(**{name.replace(".", "__"): value for name, value in sent.items()})
    assert answer.status == 200, answer
    whole = Payment.objects.get(pk=answer.id)
    part = Payment.objects.defer("request").annotate(sent_service=SERVICE_PARAMETERS).get(pk=answer.id)
    assert point_of(part) == point_of(whole)
    assert part.get_deferred_fields() == {"request"}

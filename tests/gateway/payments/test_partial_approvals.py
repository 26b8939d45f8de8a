"""An approval for less than was asked for, on a channel that does not take it: reversed at once, and declined.

Cards 4000050000000007 (approved for half) at the stub acquirer, a process with its own books. Source: Part B, Payment
response (amount); goals, R1 and R3; docs/decisions/0113.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.models import AcquirerExchange, Channel, OpenPayment, Payment, Status
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.stub import StubProcess, account_at_stub

pytestmark = pytest.mark.django_db(transaction=True)

HALF = "4000050000000007"
TOO_LITTLE = "800.100.155"
PENDING = "000.200.001"
APPROVED = "000.100.112"


def refuse_parts(shop: Shop) -> None:
    target = find_configuration_target(shop.channel.id)
    assert target is not None
    apply_configuration(target, {"channel": {"partialApprovals": "decline"}}, by=audit_log.COMMAND_LINE_ACTOR)


@pytest.fixture
def shop(committed: Shop) -> Shop:
    account_at_stub(committed.channel)
    refuse_parts(committed)
    return committed


def pay(shop: Shop, behaviour: str = "", **sent: str) -> Payment:
    steering = {"customParameters[STUB_behaviour]": behaviour} if behaviour else {}
    answer = shop.api.pay(testMode="EXTERNAL", card__number=HALF, **steering, **sent)
    return Payment.objects.get(pk=answer.id)


def outcome(acquirer: StubProcess, payment: Payment) -> str:
    found: str = acquirer.control.transactions()[payment.id.hex]["outcome"]
    return found


@pytest.mark.parametrize("payment_type", ["DB", "PA"])
def test_it_is_reversed_at_the_acquirer_and_declined(shop: Shop, acquirer: StubProcess, payment_type: str) -> None:
    payment = pay(shop, paymentType=payment_type)
    assert (payment.status, payment.result_code, payment.approved_amount) == (Status.DECLINED, TOO_LITTLE, None)
    assert outcome(acquirer, payment) == "voided"
    assert not OpenPayment.objects.exists()
    told = shop.api.read(payment.id.hex).body["resultDetails"]
    assert told["PartialApproval"] == "approved for 46.00 of 92.00 EUR; the approval was reversed"
    assert told["AcquirerResponse"] == "10"
    assert "RiskReason" not in told
    assert shop.api.follow(payment.id.hex, "RF", "1.00").status == 400


def test_by_default_it_is_approved_with_what_was_granted(committed: Shop, acquirer: StubProcess) -> None:
    """Part B, Payment response: amount is the amount approved."""
    account_at_stub(committed.channel)
    payment = pay(committed)
    assert (payment.status, payment.result_code, payment.approved_amount) == (Status.APPROVED, APPROVED, Decimal(46))
    assert outcome(acquirer, payment) == "approved"


def test_a_whole_approval_is_none_of_its_business(shop: Shop, acquirer: StubProcess) -> None:
    answer = shop.api.pay(testMode="EXTERNAL")
    assert (answer.code, answer.body["amount"]) == (APPROVED, "92.00")


def test_without_a_word_for_the_reversal_it_is_in_doubt_until_there_is_one(shop: Shop, acquirer: StubProcess) -> None:
    """Nothing is declined without evidence, and nothing stays held."""
    acquirer.control.steer(kinds=["void"], silent_before=1)
    payment = pay(shop)
    assert (payment.status, payment.result_code) == (Status.IN_DOUBT, PENDING)
    assert recover_after(2.0).settled == 0
    acquirer.control.steer(kinds=["void"], silent_before=0)
    assert recover_after(60).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, TOO_LITTLE)
    assert outcome(acquirer, payment) == "voided"
    kinds = list(AcquirerExchange.objects.filter(payment=payment).order_by("id").values_list("kind", flat=True))
    assert kinds == ["submit", "inquire", "void", "inquire", "void"]


def test_one_that_was_lost_on_the_way_is_reversed_when_it_is_found(shop: Shop, acquirer: StubProcess) -> None:
    """By the setting that held as the payment began, whatever the channel says by then."""
    payment = pay(shop, "silent_after")
    assert (payment.status, outcome(acquirer, payment)) == (Status.IN_DOUBT, "approved")
    Channel.objects.update(partial_approvals=Channel.PartialApprovals.ACCEPT)
    assert recover_after(2.0).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, TOO_LITTLE)
    assert outcome(acquirer, payment) == "voided"


def test_a_reversal_whose_answer_was_lost_ends_declined(shop: Shop, acquirer: StubProcess) -> None:
    acquirer.control.steer(kinds=["void"], silent_after=1)
    payment = pay(shop)
    assert (payment.status, outcome(acquirer, payment)) == (Status.IN_DOUBT, "voided")
    assert recover_after(2.0).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.approved_amount) == (Status.DECLINED, None)


def test_the_address_check_decides_first(shop: Shop, acquirer: StubProcess) -> None:
    """A refusal by the risk rules is told as such; a review does not make a part acceptable."""
    target = find_configuration_target(shop.channel.id)
    assert target is not None
    sets = [{"key": "SET", "avs": {"N": "decline", "Z": "review"}}]
    apply_configuration(target, {"risk": {"set": "SET", "sets": sets}}, by=audit_log.COMMAND_LINE_ACTOR)
    refused, reviewed = pay(shop, billing__postcode="44444"), pay(shop, billing__postcode="33333")
    assert (refused.result_code, reviewed.result_code) == ("800.400.100", TOO_LITTLE)
    assert {outcome(acquirer, one) for one in (refused, reviewed)} == {"voided"}

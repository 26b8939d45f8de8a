"""AVS and CVV policy against a real acquirer: what a rule set refuses is reversed there, whatever happens in between.

The stub acquirer is a process of its own; its books are compared with ours. Source: Part B, Payment response
(avsResponse, cvvResponse); goals, R1 and R3.
"""

from __future__ import annotations

import pytest

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.models import AcquirerExchange, Payment, RiskDecision, Status
from gateway.payments import recovery
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.stub import StubProcess, account_at_stub

pytestmark = pytest.mark.django_db(transaction=True)

WRONG_ADDRESS = {"billing__postcode": "44444"}
REFUSED = "800.400.100"
PENDING = "000.200.001"


@pytest.fixture
def shop(committed: Shop) -> Shop:
    """A merchant at the stub acquirer who takes no card whose address does not match."""
    account_at_stub(committed.channel)
    target = find_configuration_target(committed.channel.id)
    assert target is not None
    risk = {"set": "SET", "sets": [{"key": "SET", "avs": {"N": "decline"}, "start": 5}]}
    apply_configuration(target, {"risk": risk}, by=audit_log.COMMAND_LINE_ACTOR)
    return committed


def pay(shop: Shop, behaviour: str = "") -> Payment:
    steering = {"customParameters[STUB_behaviour]": behaviour} if behaviour else {}
    answer = shop.api.pay(testMode="EXTERNAL", **WRONG_ADDRESS, **steering)
    assert answer.body["risk"]["score"] == "+00005"
    return Payment.objects.get(pk=answer.id)


def recover(after_s: float = 2.0) -> recovery.RecoverySummary:
    return recover_after(after_s)


def outcome(acquirer: StubProcess, payment: Payment) -> str:
    found: str = acquirer.control.transactions()[payment.id.hex]["outcome"]
    return found


def test_an_approval_that_the_policy_refuses_is_reversed_at_the_acquirer(shop: Shop, acquirer: StubProcess) -> None:
    """Declined here and approved there would be the shopper's money held for nothing."""
    payment = pay(shop)
    assert (payment.status, payment.result_code, payment.approved_amount) == (Status.DECLINED, REFUSED, None)
    assert outcome(acquirer, payment) == "voided"
    assert shop.api.read(payment.id.hex).body["result"]["avsResponse"] == "N"


def test_without_a_word_for_the_reversal_the_payment_is_in_doubt_until_there_is_one(
    shop: Shop, acquirer: StubProcess
) -> None:
    """Nothing is declined without evidence."""
    acquirer.control.steer(kinds=["void"], silent_before=1)
    payment = pay(shop)
    assert (payment.status, payment.result_code) == (Status.IN_DOUBT, PENDING)
    assert recover().settled == 0
    acquirer.control.steer(kinds=["void"], silent_before=0)
    assert recover(60).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, REFUSED)
    assert outcome(acquirer, payment) == "voided"
    kinds = list(AcquirerExchange.objects.filter(payment=payment).order_by("id").values_list("kind", flat=True))
    assert kinds == ["submit", "inquire", "void", "inquire", "void"]


def test_an_approval_that_was_lost_on_the_way_is_judged_when_it_is_found(shop: Shop, acquirer: StubProcess) -> None:
    """The policy is kept with the payment before the acquirer is asked."""
    payment = pay(shop, "silent_after")
    assert payment.status == Status.IN_DOUBT
    assert outcome(acquirer, payment) == "approved"
    assert recover().settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, REFUSED)
    assert outcome(acquirer, payment) == "voided"
    assert RiskDecision.objects.get(pk=payment.pk).set_key == "SET"


def test_a_reversal_whose_worker_died_ends_declined(shop: Shop, acquirer: StubProcess) -> None:
    """The reversal was booked, and nobody wrote it down: the acquirer's word is enough."""
    acquirer.control.steer(kinds=["void"], silent_after=1)
    payment = pay(shop)
    assert payment.status == Status.IN_DOUBT
    assert outcome(acquirer, payment) == "voided"
    assert recover().settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, "900.100.301")

"""The counts of low value payments and the statements that move them, asked directly: what is counted, what is given
back, and that a statement moves nothing whose payment it does not find as it was."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.core import clock, identifiers
from gateway.db.statement import WriteStatement
from gateway.models import Authentication, ExemptionCount, ExemptionRequest, Payment, Status
from gateway.payments import exemption_counts
from gateway.payments.stored_answer import PrivateFacts, merge_shown_facts
from gateway.threeds.exemption_rules import Exemption, ExemptionDecision, ExemptionStage, StageChoice, StageOutcome
from tests.support.client import Api
from tests.support.database import others_stay
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

KEY = b"k" * 16
CHOICE = StageChoice(stage=ExemptionStage.AUTHORIZATION, why="set")


@pytest.fixture
def payment(api: Api) -> Payment:
    """Begun, and nobody was asked yet; so is another one beside it."""
    paid = Payment.objects.select_related("channel", "merchant").get(pk=api.pay().id)
    api.pay()
    Payment.objects.update(status=Status.STARTED)
    paid.refresh_from_db()
    return paid


def ask(payment: Payment, euros: str = "10.00") -> bool:
    decision = ExemptionDecision(exemption=Exemption.LOW_VALUE, euros=Decimal(euros), limit=Decimal(30))
    return exemption_counts.record_counted_request(
        payment, decision, CHOICE, answer=payment.answer, key=KEY, at=payment.created_at
    )


def used(payment: Payment, payments: int, amount: str) -> ExemptionCount:
    return ExemptionCount.objects.create(
        merchant=payment.merchant, key=KEY, payments=payments, amount=Decimal(amount), authentications=0
    )


def test_a_payment_that_moved_on_since_it_was_read_is_not_counted(payment: Payment) -> None:
    payment.sequence += 1
    with others_stay():
        assert not ask(payment)
    payment.sequence -= 1
    Payment.objects.filter(pk=payment.pk).update(status=Status.DECLINED)
    with others_stay():
        assert not ask(payment)
    assert not ExemptionCount.objects.exists()
    assert not ExemptionRequest.objects.exists()
    Payment.objects.filter(pk=payment.pk).update(status=Status.STARTED)
    payment.answer = {**payment.answer, "asked": True}
    with others_stay(payment.id.hex):
        assert ask(payment)


@pytest.mark.parametrize(
    ("payments", "amount", "euros", "counted"),
    [
        (4, "50.00", "10.00", True),
        (5, "50.00", "10.00", False),
        (2, "90.00", "10.00", True),
        (2, "90.01", "10.00", False),
    ],
)
def test_a_payment_above_a_limit_of_its_card_leaves_nothing(
    payment: Payment, payments: int, amount: str, euros: str, counted: bool
) -> None:
    """Five payments or 100 EUR, both with this one."""
    used(payment, payments, amount)
    payment.answer = {**payment.answer, "asked": True}
    assert ask(payment, euros) is counted
    row = ExemptionCount.objects.get()
    assert (row.payments, row.amount) == (payments + counted, Decimal(amount) + counted * Decimal(euros))
    assert ExemptionRequest.objects.exists() is counted
    assert ("asked" in Payment.objects.get(pk=payment.pk).answer) is counted


def complete(payment: Payment, status: Status, shown: dict[str, str], *, sequence: int) -> bool:
    """The statement that completes a payment which a rule exempted, if it is found with that sequence."""
    answer = {**payment.answer, **PrivateFacts(exemption=Exemption.LOW_VALUE).as_json()}
    payment.answer = merge_shown_facts(answer, {"threeDSecure": shown})
    payment.status, payment.means_fingerprint = status, KEY
    write = WriteStatement()
    write.update(payment, {"status": status}, expecting={"status": Status.STARTED, "sequence": sequence})
    exemption_counts.add_completion_writes(write, payment)
    return write.run()


CHALLENGED = {"flow": "challenge", "authenticationStatus": "Y"}


@pytest.mark.parametrize(
    ("rules", "status", "shown", "after"),
    [
        ({"lowValue": True}, Status.DECLINED, {}, (0, 0)),
        ({"lowValue": True}, Status.APPROVED, {"exemptionFlag": "01"}, (1, 0)),
        ({"lowValue": True}, Status.APPROVED, {}, (0, 0)),
        ({"lowValue": True}, Status.APPROVED, CHALLENGED, (0, 1)),
        ({"trusted": True}, Status.APPROVED, CHALLENGED, (0, 1)),
    ],
)
def test_a_completion_moves_the_count_of_its_card_alone_and_one_that_comes_too_late_none(
    payment: Payment, api: Api, rules: dict[str, bool], status: Status, shown: dict[str, str], after: tuple[int, int]
) -> None:
    """Too late: recovery, or a second tab, has completed the payment. Others: a card of the same merchant, the same
    card at another merchant, and another payment with its own request."""
    elsewhere = uuid4()
    ExemptionCount.objects.create(merchant_id=elsewhere, key=KEY, payments=3, amount=30, authentications=0)
    ExemptionCount.objects.create(merchant=payment.merchant, key=b"o" * 16, payments=3, amount=30, authentications=0)
    assert ask(payment)
    request = ExemptionRequest.objects.get()
    ExemptionRequest.objects.filter(pk=request.pk).update(payment_id=UUID(api.pay().id), euros=20)
    request.save(force_insert=True)
    payment.channel.exemptions = rules
    own = payment.merchant_id.hex
    late = payment.sequence + 1
    with others_stay():
        assert not complete(payment, status, shown, sequence=late)
    with others_stay(payment.id.hex, KEY.hex()):
        assert complete(payment, status, shown, sequence=late - 1)
    rows = {
        row.merchant_id.hex: (row.payments, row.amount, row.authentications)
        for row in ExemptionCount.objects.filter(key=KEY)
    }
    assert rows == {own: (after[0], 10 * after[0], after[1]), elsewhere.hex: (3, 30, 0)}


def test_outcomes_are_of_one_channel_exemption_and_stage(shop: Shop, api: Api) -> None:
    """An approval with a challenge counts as lost; a payment without a result yet does not count."""

    def record(*, status: Status = Status.APPROVED, **values: Any) -> Payment:
        paid = Payment.objects.get(pk=api.pay().id)
        Payment.objects.filter(pk=paid.pk).update(status=status)
        fields = {
            "payment": paid, "channel": shop.channel, "exemption": Exemption.LOW_VALUE,
            "stage": ExemptionStage.AUTHORIZATION, "stage_why": "set", "at": paid.created_at,
        }  # fmt: skip
        ExemptionRequest.objects.create(**fields | values)
        return paid

    record(), record(status=Status.DECLINED), record(status=Status.PENDING)
    record(channel=shop.open_channel("other")), record(exemption=Exemption.LOW_RISK)
    record(stage=ExemptionStage.AUTHENTICATION, status=Status.DECLINED)
    for flow in ("challenge", "frictionless"):
        Authentication.objects.create(
            payment=record().id, flow=flow, merchant=shop.merchant, channel=shop.channel, brand="VISA", network="VISA",
            amount=Decimal(10), currency="EUR", created_at=clock.real_now(), request_id=identifiers.row_id(),
        )  # fmt: skip
    found = exemption_counts.read_stage_outcomes(shop.channel.id, Exemption.LOW_VALUE)
    assert found[ExemptionStage.AUTHORIZATION] == StageOutcome(asked=4, won=2)
    assert found[ExemptionStage.AUTHENTICATION] == StageOutcome(asked=1, won=0)

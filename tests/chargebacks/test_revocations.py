"""A chargeback for fraud or revocation stops the subscription and blocks merchant-initiated use of the stored means.

Source: docs/decisions/0065.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from chargebacks import cases, ledger, revocations
from chargebacks.models import Chargeback
from gateway.core import result_codes
from gateway.models import Notification, Payment, Registration
from gateway.scheduling import dunning
from gateway.scheduling.models import Job
from tests.support.fixtures import Shop
from tests.support.settlement import BY, csv, institute, line, take_in
from tests.support.subscriptions import PLAN, started, step, store_card

pytestmark = pytest.mark.django_db
_SI = "standingInstruction"
MIT = {f"{_SI}.mode": "REPEATED", f"{_SI}.source": "MIT", f"{_SI}.type": "RECURRING",
       f"{_SI}.recurringType": "SUBSCRIPTION"}  # fmt: skip
AGREED = {f"{_SI}__type": "RECURRING", f"{_SI}__recurringType": "SUBSCRIPTION"}
STOPPING = ["204", "205", "206", "220", "222", "230"]


@pytest.fixture
def job(shop: Shop) -> Job:
    """A monthly job that has charged once."""
    card = store_card(shop.api)
    made = started(shop.api, card)
    step(shop.merchant)
    assert Payment.objects.filter(payment_type="DB", registration=card).exists()
    return Job.objects.get(pk=made.id)


def charged(job: Job) -> Payment:
    return Payment.objects.filter(payment_type="DB", registration=job.registration).order_by("id")[0]


def state(job: Job) -> tuple[str, str]:
    found = Job.objects.get(pk=job.pk)
    return found.state, found.reason


@pytest.mark.parametrize("reason", STOPPING)
def test_a_line_with_such_a_reason_stops_the_job(shop: Shop, job: Job, reason: str) -> None:
    payment, before = charged(job), Payment.objects.filter(payment_type="DB", status="APPROVED").count()
    row = line(payment, ReconciliationType="CHARGEBACK", ReasonCode=f"000.100.{reason}", SettlementTxId="D-1")
    take_in(csv([row]), institute())
    assert state(job) == ("SUSPENDED", "DO_NOT_RETRY")
    told = Payment.objects.get(payment_type="RS", registration=job.registration)
    assert Notification.objects.filter(payment=told.pk).exists()
    assert not Chargeback.objects.get().stops_pending
    assert Job.objects.get(pk=job.pk).next_at is None
    assert shop.api.post(f"/v1/registrations/{job.registration.hex}/payments", {**PLAN, **MIT}).code in set(
        revocations.STOP_CODE_BY_CHARGEBACK_REASON.values()
    )
    assert Payment.objects.filter(payment_type="DB", status="APPROVED").count() == before


def test_another_reason_stops_nothing(shop: Shop, job: Job) -> None:
    ledger.record_chargeback(charged(job), Decimal("1.00"), reason="000.100.221", by=BY)
    assert state(job) == ("ACTIVE", "")


def test_what_a_worker_left_is_done_by_the_timer(shop: Shop, job: Job) -> None:
    case = ledger.record_chargeback(charged(job), Decimal("1.00"), reason="000.100.221", by=BY)
    Chargeback.objects.filter(pk=case.pk).update(reason_code="000.100.205", stops_pending=True)
    assert (revocations.stop_pending_credentials(), revocations.stop_pending_credentials()) == (1, 0)
    assert state(job) == ("SUSPENDED", "DO_NOT_RETRY")


def test_the_stored_card_is_its_holders_until_they_agree_again(shop: Shop) -> None:
    card = store_card(shop.api)

    def pay(**more: str) -> str:
        return shop.api.post(f"/v1/registrations/{card}/payments", {**PLAN, **more}).code

    initial = {**MIT, "standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}
    assert pay(**initial) == "000.100.110"
    assert pay(**MIT) == "000.100.110"
    paid = Payment.objects.filter(registration=card, payment_type="DB").order_by("-id")[0]
    shop.api.follow(paid.id.hex, "CB", "9.90", chargebackResultCode="000.100.220")
    cases.adopt_recent_payments()
    assert Registration.objects.get(pk=card).merchant_use_code == "700.601.003"
    assert pay(**MIT) == "700.601.003"
    assert pay(**initial) == "000.100.110"
    assert pay(**MIT) == "000.100.110"


def test_a_payment_without_a_registration_is_blocked_by_its_agreement(shop: Shop) -> None:
    """Named by initialTransactionId, with the card's data: the holder's new agreement is another one."""
    initial = shop.api.pay(**{f"{_SI}__mode": "INITIAL", f"{_SI}__source": "CIT", **AGREED})

    def pay(agreed: str, **more: str) -> str:
        named = {f"{_SI}__initialTransactionId": agreed, f"{_SI}__mode": "REPEATED", f"{_SI}__source": "MIT"}
        return shop.api.pay(card__cvv=None, **{**AGREED, **named, **more}).code

    assert pay(initial.id) == "000.100.110"
    drawn = Payment.objects.filter(payment_type="DB").order_by("-id")[0]
    shop.api.follow(drawn.id.hex, "CB", "92.00", chargebackResultCode="000.100.205")
    cases.adopt_recent_payments()
    assert not Chargeback.objects.get().stops_pending
    assert pay(initial.id) == "800.100.500"
    assert pay(initial.id, **{f"{_SI}__industryPractice": "NO_SHOW"}) == "800.100.500"
    assert pay(initial.id, **{f"{_SI}__source": "CIT"}) == "000.100.110"
    again = shop.api.pay(**{f"{_SI}__mode": "INITIAL", f"{_SI}__source": "CIT", **AGREED})
    assert pay(again.id) == "000.100.110"


def test_a_stored_cards_agreement_is_blocked_with_it(shop: Shop) -> None:
    """Also where the merchant sends the card's data instead of the registration."""
    card = store_card(shop.api)
    initial = {**MIT, f"{_SI}.mode": "INITIAL", f"{_SI}.source": "CIT"}
    agreed = shop.api.post(f"/v1/registrations/{card}/payments", {**PLAN, **initial})
    shop.api.follow(agreed.id, "CB", "9.90", chargebackResultCode="000.100.220")
    cases.adopt_recent_payments()
    named = {f"{_SI}__initialTransactionId": agreed.id, f"{_SI}__mode": "REPEATED", f"{_SI}__source": "MIT"}
    assert shop.api.pay(card__cvv=None, **{**AGREED, **named}).code == "700.601.003"
    renewed = shop.api.post(f"/v1/registrations/{card}/payments", {**PLAN, **initial})
    assert renewed.code == "000.100.110"
    assert shop.api.pay(card__cvv=None, **{**AGREED, **named}).code == "000.100.110"


@pytest.mark.parametrize(
    ("told", "reason", "stopped"),
    [
        ("", "206", False),
        ("Goods or Services Not Provided", "221", False),
        ("Cardholder Dispute of a Recurring Transaction", "205", True),
    ],
)
def test_mastercards_cardholder_dispute_stops_for_its_condition_alone(
    shop: Shop, job: Job, told: str, reason: str, stopped: bool
) -> None:
    """4853 joins many conditions; only one of them withdraws the permission to charge."""
    row = line(charged(job), ReconciliationType="CHARGEBACK", ReasonCode="4853", ReasonDesc=told, SettlementTxId="D-1")
    take_in(csv([row]), institute())
    assert Chargeback.objects.get().reason_code == f"000.100.{reason}"
    assert (state(job)[0] == "SUSPENDED") is stopped


def test_every_stop_has_a_code_that_dunning_never_retries() -> None:
    assert {code[-3:] for code in revocations.STOP_CODE_BY_CHARGEBACK_REASON} == set(STOPPING)
    for code in revocations.STOP_CODE_BY_CHARGEBACK_REASON.values():
        assert code in result_codes.RESULT_CODES
        assert dunning.decide_dunning(code, "") == dunning.DunningStop(reason=Job.Reason.DO_NOT_RETRY)

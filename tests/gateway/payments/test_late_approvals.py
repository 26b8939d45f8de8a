"""A process that is stopped between a payment's beginning and its sending, while recovery declines the payment.

The acquirer here keeps no memory of voids of what it never saw, as hosts of ISO 8583 may.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import override_settings

from gateway.connectors.circuit import GuardedConnector, get_account_circuit
from gateway.connectors.circuit_breaker import BreakerState
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorAccount,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
)
from gateway.core import clock
from gateway.models import AcquirerExchange, OpenPayment, Payment, Status
from gateway.payments import recovery, store
from tests.support.acquirers import Acquirer, account, known
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.threads import in_another_process

pytestmark = pytest.mark.django_db(transaction=True)

REVERSED = "900.100.301"


class StoppedProcess(GuardedConnector):
    """A connector whose process stops (``stopped``) before anything of a payment is checked or sent."""

    stopped: Callable[[], object]

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        self.stopped()
        return super().submit(request)


class ForgetfulAcquirer(Acquirer):
    """Requests cannot be asked about; ``silent_voids``: how many voids get no answer."""

    silent_voids = 0

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        return NotFoundAtAcquirer(sent={"mti": "0200"}, received={"inquiry": "a request cannot be asked about"})

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        if self.silent_voids:
            self.silent_voids -= 1
            raise OutcomeUnknownError("no answer", {})
        return replace(super().void(request), sent={"mti": "0420"})


@pytest.fixture
def acquirer(committed: Shop) -> ForgetfulAcquirer:
    account(committed.channel, "forgetful")
    return ForgetfulAcquirer("forgetful")


def pay(shop: Shop) -> Payment:
    return Payment.objects.get(pk=shop.api.pay(testMode="EXTERNAL").id)


def kinds(payment: Payment) -> list[str]:
    return list(AcquirerExchange.objects.filter(payment=payment.pk).order_by("id").values_list("kind", flat=True))


def test_what_is_sent_after_recoverys_deadline_is_not_sent(
    committed: Shop, acquirer: ForgetfulAcquirer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goals, R1: the payment is declined, so its acquirer is not asked; that says nothing about the acquirer."""
    stopped = StoppedProcess(acquirer)
    known(monkeypatch, stopped)  # type: ignore[arg-type]
    monkeypatch.setattr(store, "ANSWER_GRACE", timedelta(0))

    def outlast() -> None:
        in_another_process(lambda: recover_after(1))()
        while not Payment.objects.filter(status=Status.DECLINED).exists():
            time.sleep(0.01)
        deadline = clock.Deadline.after(0.3)
        while not deadline.has_passed():
            time.sleep(0.01)

    stopped.stopped = outlast
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=0.3):
        payment = pay(committed)
    assert (payment.status, payment.result_code) == (Status.DECLINED, REVERSED)
    assert "submit" not in acquirer.kinds
    assert acquirer.booked == {}
    assert not OpenPayment.objects.exists()
    circuit = get_account_circuit("forgetful", acquirer_account(payment))
    assert circuit.breaker.state is BreakerState.CLOSED
    assert circuit.waiting == 0


def acquirer_account(payment: Payment) -> ConnectorAccount:
    return ConnectorAccount(merchant=payment.acquirer_merchant_id, channel=payment.channel_id)


@pytest.mark.parametrize("silent", [0, 2])
def test_an_approval_of_a_payment_that_was_declined_meanwhile_is_voided(
    committed: Shop,
    acquirer: ForgetfulAcquirer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    silent: int,
) -> None:
    """Goals, R1: it is money. It stays in sight, as an open payment, until the void is answered."""
    known(monkeypatch, acquirer)
    acquirer.before = in_another_process(lambda: recover_after(60))
    payment = pay(committed)
    assert (payment.status, payment.result_code) == (Status.DECLINED, REVERSED)
    assert acquirer.booked
    assert "approved_after_decline" in caplog.text
    assert OpenPayment.objects.filter(pk=payment.pk).exists()
    acquirer.silent_voids = silent
    for _ in range(silent):
        assert recover_after(60) == recovery.RecoverySummary(claimed=1, settled=0)
        assert OpenPayment.objects.filter(pk=payment.pk).exists()
    assert recover_after(60) == recovery.RecoverySummary(claimed=1, settled=1)
    assert acquirer.booked == {}
    assert not OpenPayment.objects.exists()
    assert kinds(payment) == ["inquire", "void", "submit", *["void"] * (silent + 1)]
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, REVERSED)


@pytest.mark.parametrize("ahead", [timedelta(seconds=15), timedelta(seconds=-15)])
def test_a_machine_whose_clock_is_wrong_takes_no_payment_back(
    committed: Shop, acquirer: ForgetfulAcquirer, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    """Goals, R1: due times are the database's, whichever machine writes or reads them."""
    known(monkeypatch, acquirer)
    found: list[recovery.RecoverySummary] = []
    right = clock.real_now
    acquirer.before = in_another_process(lambda: found.append(recovery.recover_due_payments()))
    monkeypatch.setattr(clock, "real_now", lambda: right() + ahead)
    payment = pay(committed)
    assert payment.status == Status.APPROVED
    assert found == [recovery.RecoverySummary(claimed=0, settled=0)]

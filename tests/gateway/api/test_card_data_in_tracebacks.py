"""A fault in any phase of a payment: the traceback, with every local variable, holds no number and no code.

Source: PCI DSS 4.0.1, 3.3.1 and 10.3; docs/decisions/0052-card-data-in-free-text.md.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import RequestFactory
from django.views.debug import get_exception_reporter_class

from gateway.api import errors
from gateway.core.luhn import compute_check_digit
from tests.support.chance import strip_values_by_chance
from tests.support.client import payment
from tests.support.fixtures import Shop
from tests.support.threeds import BILLING, BROWSER, RESULT_URL

pytestmark = pytest.mark.django_db

NUMBER = "37828224631999"
NUMBER += compute_check_digit(NUMBER)
CODE = "7319"
RESULT = {"shopperResultUrl": RESULT_URL}
CARD = {"paymentBrand": "AMEX", "card__number": NUMBER, "card__cvv": CODE, "descriptor": "order 17"}
PHASES = {
    "parse": "gateway.catalogue.parse._RequestParser.finish",
    "conditions": "gateway.catalogue.parse._RequestParser._apply",
    "intake": "gateway.payments.request_builder.resolve_brand",
    "means": "gateway.payments.request_builder.means_from_parameters",
    "route": "gateway.payments.process.route_payment",
    "plan": "gateway.payments.risk_screening.plan_screening",
    "fingerprint": "gateway.vault.sealing.Vault.fingerprint",
    "seal": "gateway.vault.sealing.Vault.seal",
    "begin": "gateway.payments.store.insert_payment",
    "screen": "gateway.payments.risk_screening.screen_payment",
    "authenticate": "gateway.payments.shopper_authentication.authenticate_payment",
    "question": "gateway.payments.process.forwardable_parameters",
    "submit": "gateway.connectors.simulator.connector._reply",
    "complete": "gateway.payments.store.complete_payment",
    "keep": "gateway.payments.payment_request.render_stored_response",
    "respond": "gateway.api.payments.PaymentResponder.build_response",
}
THREEDS_PHASES = {
    "authentication": "gateway.threeds.server.begin_authentication",
    "request": "gateway.threeds_protocol.messages._merchant",
    "directory": "gateway.connectors.simulator.acs.build_ares",
}


@dataclass
class Log:
    """Stands in for the log of faults: keeps the exceptions themselves."""

    faults: list[BaseException] = field(default_factory=list)

    def error(self, event: str, *, exc_info: BaseException, **_: Any) -> None:
        self.faults.append(exc_info)

    def info(self, event: str, **_: Any) -> None: ...


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log()
    monkeypatch.setattr(errors, "log", made)
    return made


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a fault of ours")


def assert_hidden(text: str) -> None:
    assert "a fault of ours" in text
    assert NUMBER not in text
    assert NUMBER[6:-4] not in re.sub("[^0-9]", "", " ".join(re.findall("[0-9][0-9 .-]{10,}[0-9]", text)))
    assert not re.search(rf"(?<![0-9A-Za-z.]){CODE}(?![0-9A-Za-z])", strip_values_by_chance(text))


def assert_tells_nothing(fault: BaseException) -> None:
    """With locals, and in Django's own report of it."""
    assert_hidden("".join(traceback.TracebackException.from_exception(fault, capture_locals=True).format()))
    request = RequestFactory().get("/v1/payments", {"card.number": NUMBER, "card.cvv": CODE})
    reporter = get_exception_reporter_class(request)(request, type(fault), fault, fault.__traceback__)
    assert_hidden(reporter.get_traceback_text())
    assert_hidden(reporter.get_traceback_html())


@pytest.mark.parametrize("where", PHASES.values(), ids=PHASES)
def test_a_fault_in_any_phase_tells_no_number_and_no_code(
    shop: Shop, log: Log, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """PCI DSS 4.0.1, 3.3.1."""
    monkeypatch.setattr(where, broken)
    answer = shop.api.post("/v1/payments", payment(**CARD), Idempotency_Key="key-of-a-fault")
    assert answer.status == 500
    assert log.faults
    for fault in log.faults:
        assert_tells_nothing(fault)


@pytest.mark.parametrize("where", THREEDS_PHASES.values(), ids=THREEDS_PHASES)
def test_a_fault_of_the_authentication_tells_nothing_either(
    shop: Shop, log: Log, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """PCI DSS 4.0.1, 3.3.1."""
    monkeypatch.setattr(where, broken)
    api = shop.api_of(shop.open_channel(three_d_secure=True))
    assert api.post("/v1/payments", payment(**CARD) | BROWSER | BILLING | RESULT).status == 500
    for fault in log.faults:
        assert_tells_nothing(fault)
    assert log.faults


def test_a_fault_outside_of_a_request_is_reported_with_its_card_data_masked() -> None:
    """A timer's fault has no request: Django's report has no tables of what was sent then."""
    try:
        number = NUMBER
        raise RuntimeError(f"a fault of ours with {number}")
    except RuntimeError as fault:
        reporter = get_exception_reporter_class(None)(None, type(fault), fault, fault.__traceback__)
    assert_hidden(reporter.get_traceback_text())
    assert_hidden(reporter.get_traceback_html())

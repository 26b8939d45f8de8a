"""Which states of a row keep a person from being erased: each state of each kind of row, apart from the others.

Source: docs/decisions/0102.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db.models import IntegerField, Value

from gateway.payments.chain_states import ChainStatus
from gateway.personal_data import erasure

OPEN: dict[str, tuple[str, set[Any]]] = {
    "gateway.Payment": ("status", {"STARTED", "PENDING", "IN_DOUBT"}),
    "gateway.ChainState": ("state", {"authorized", "partly_captured"}),
    "gateway.Authentication": ("step", {"method", "asking", "challenge", "decoupled"}),
    "gateway.AuthorizationRelease": ("state", {"OPEN"}),
    "scheduling.Job": ("state", {"ACTIVE", "ENDING", "SUSPENDED"}),
    "chargebacks.Chargeback": ("state", {"OPEN", "SUBMITTED"}),
    "chargebacks.DisputeAlert": ("state", {"OPEN", "REFUNDING"}),
    "gateway.BankOrder": ("state", {"WAITING", "FILED"}),
    "gateway.BatchedCapture": ("applied", {False}),
    "gateway.MandateMail": ("state", {"DUE"}),
    "checkout.ReceiptMail": ("state", {"DUE"}),
}
"""Model → the column that tells, and its values of rows that are not finished."""
NOT_OPEN = Value(None, output_field=IntegerField())
RULES = {rule.model: rule for rule in erasure._OPEN_RULES}


def list_values(model: str, column: str) -> list[Any]:
    if column == "applied":
        return [True, False]
    if model == "gateway.ChainState":
        return [str(one.value) for one in ChainStatus]
    return [value for value, _ in apps.get_model(model)._meta.get_field(column).choices or ()]


def test_every_kind_of_row_that_may_be_open_is_asked_about() -> None:
    assert set(RULES) == set(OPEN)


@pytest.mark.django_db
@pytest.mark.parametrize("model", OPEN)
def test_of_each_kind_of_row_these_states_are_not_finished(model: str) -> None:
    column, unfinished = OPEN[model]
    values = list_values(model, column)
    assert unfinished < set(values), "there are finished ones, too"
    more = {"open": NOT_OPEN} if model == "gateway.Payment" else {}
    assert {value for value in values if RULES[model].only.check({column: value, **more})} == unfinished


@pytest.mark.django_db
def test_a_payment_that_recovery_still_looks_for_is_not_finished_whatever_its_state_says() -> None:
    only = RULES["gateway.Payment"].only
    assert only.check({"status": "DECLINED", "open": 1})
    assert not only.check({"status": "DECLINED", "open": NOT_OPEN})

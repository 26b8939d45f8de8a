"""No unique key that matters spans merchants, so that they can be spread over several databases. docs/capacity.md.

A key cannot meet another merchant's if a part of it is a UUID, the merchant, or a reference to a row of one merchant.
A row's number counts within one database. What else is unique is in SPANNING, with the reason why two
databases may have it twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import models

from gateway.models import Channel, Merchant, Payment

APPS = ("gateway", "chargebacks", "checkout", "reporting", "scheduling", "portal", "approvals", "simulator")
SPANNING = {
    "checkout.PolicyViolation(page, directive, blocked)": "what browsers report of this installation's pages",
    "gateway.AccessToken(digest)": "of a secret that is drawn",
    "gateway.AccountErasurePosition(id)": "the one row of a timer",
    "gateway.ArchivePosition(id)": "the one row of a timer",
    "gateway.AuditSeal(entry)": "the chain of this database's entries",
    "gateway.AuditSeal(number)": "the chain of this database's entries",
    "gateway.BankFile(message_id)": "a creditor's, who is one merchant's, at his bank",
    "gateway.BankMessage(sha256)": "a bank's file is taken in once where its orders are",
    "gateway.FanOutPosition(id)": "the one row of a timer",
    "gateway.NetworkToken(reference)": "the network's, which gives it once",
    "gateway.Payment(number)": "a short id is asked for with its merchant; payments are named by their UUIDs",
    "gateway.SavedView(owner, page, name)": "a user's of this installation",
    "gateway.SelfTest(row)": "the published test data, tried by each installation",
    "gateway.TimerRun(name)": "the timers of this installation",
    "gateway.TraceSequence(terminal)": "a terminal is one merchant's",
    "gateway.UserHandling(user, by)": "users of this installation",
    "gateway.UserPreference(user)": "a user's of this installation",
    "reporting.ClearingInstitute(key)": "an institute as this installation's operator named it",
    "reporting.ClearingInstitute(name)": "an institute as this installation's operator named it",
    "scheduling.RetryRate(issuer, cell, code, advice, value)": "what this installation's own payments have taught",
}
"""Key → why it may be there once in each of several databases."""


def list_unique_keys(model: type[models.Model]) -> Iterator[tuple[str, ...]]:
    """The fields of each unique key of a model, its primary key among them."""
    for field in model._meta.concrete_fields:
        if field.primary_key or field.unique:
            yield (field.name,)
    for constraint in model._meta.constraints:
        if isinstance(constraint, models.UniqueConstraint):
            yield tuple(constraint.fields)


def belongs_to_one_merchant(model: type[models.Model], seen: frozenset[type[models.Model]] = frozenset()) -> bool:
    """Whether each row of a model is of one merchant: it is one, or refers to what is."""
    if model in (Merchant, Channel):
        return True
    return model not in seen and any(
        not field.null and belongs_to_one_merchant(field.related_model, seen | {model})
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey) and isinstance(field.related_model, type)
    )


def is_of_one_merchant(field: Any) -> bool:
    """Whether the field's value cannot be another merchant's."""
    if isinstance(field, models.ForeignKey):
        target = field.related_model
        assert isinstance(target, type)
        return belongs_to_one_merchant(target) or isinstance(target._meta.pk, models.UUIDField)
    return isinstance(field, models.UUIDField)


def find_spanning_keys() -> list[str]:
    """Keys that could be two merchants', as model(fields)."""
    found = []
    for model in apps.get_models():
        if model._meta.app_label not in APPS or not model._meta.managed:
            continue
        for names in list_unique_keys(model):
            fields = [model._meta.get_field(name) for name in names]
            is_a_number = len(fields) == 1 and isinstance(fields[0], models.AutoField)
            if not is_a_number and not any(is_of_one_merchant(field) for field in fields):
                found.append(f"{model._meta.label}({', '.join(names)})")
    return found


def test_every_unique_key_that_spans_merchants_is_known() -> None:
    assert sorted(find_spanning_keys()) == sorted(SPANNING)


def test_the_guard_against_duplicates_is_a_channels() -> None:
    assert ("channel", "duplicate_guard") in set(list_unique_keys(Payment))
    assert [name for name in SPANNING if name.startswith("gateway.Payment(")] == ["gateway.Payment(number)"]

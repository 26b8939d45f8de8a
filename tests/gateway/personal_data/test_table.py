"""The table of personal data has every column and every parameter that can hold a shopper's data.

Source: docs/decisions/0102.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models

from gateway.catalogue import structures
from gateway.personal_data import parameters
from gateway.personal_data.table import OTHER_PLACES, PERSONAL_DATA, Erasing
from gateway.vault.rewrap import SEALED_COLUMNS

ROOT = Path(__file__).parents[3]
NOT_PERSONAL = Path(__file__).parent / "not_personal.txt"
APPS = ("gateway", "checkout", "reporting", "scheduling", "chargebacks")
HOLDS_TEXT = (
    models.CharField,
    models.TextField,
    models.JSONField,
    models.BinaryField,
    models.GenericIPAddressField,
    models.FileField,
    ArrayField,
)
KEYS = ("_key", "_keys")
"""Endings of search keys: numbers that stand for a value."""
BEGIN, END = "<!-- the table of personal data -->", "<!-- end of the table -->"


def text_columns() -> Iterator[tuple[str, str]]:
    for model in apps.get_models():
        if model._meta.app_label in APPS:
            for column in model._meta.concrete_fields:
                if isinstance(column, HOLDS_TEXT) or column.name.endswith(KEYS):
                    yield model._meta.label, column.name


def listed() -> set[tuple[str, str]]:
    return {(table.model, column.name) for table in PERSONAL_DATA for column in table.columns}


def said_to_be_free() -> set[tuple[str, str]]:
    lines = [line.split() for line in NOT_PERSONAL.read_text().splitlines() if line and not line.startswith("#")]
    return {(words[0], name) for words in lines for name in words[1:]}


def test_every_column_is_in_the_table_or_said_to_hold_nothing_personal() -> None:
    """A new column fails here: decide what it can hold."""
    columns, personal, free = set(text_columns()), listed(), said_to_be_free()
    assert columns - personal - free == set(), "in neither list"
    assert personal & free == set(), "in both lists"
    assert (personal | free) - columns == set(), "no such column"


def test_each_table_can_be_read() -> None:
    earlier: set[str] = set()
    for table in PERSONAL_DATA:
        model = apps.get_model(table.model)
        assert table.model not in earlier
        earlier.add(table.model)
        for lookup, label in table.links:
            assert label in earlier, f"{table.model} is found by {label}, which comes later"
            model._default_manager.filter(**{f"{lookup}__in": []}).query  # noqa: B018 - FieldError for a wrong lookup
        for column in table.columns:
            kept = column.erasing in (Erasing.KEEP, Erasing.EXPIRE)
            assert kept == (column.reason is not None), f"{table.model}.{column.name}: what is kept has a reason"
            assert kept or table.links, f"{table.model}.{column.name} is erased, but its rows are found by nothing"
        ways = {column.erasing for column in table.columns}
        assert Erasing.DELETE not in ways or ways == {Erasing.DELETE}, "a row is deleted as a whole"


def test_every_sealed_account_is_in_the_table() -> None:
    """What the vault seals of shoppers; keys and secrets of merchants are none of theirs."""
    of_merchants = {
        ("gateway.WalletKey", "key_sealed"),
        ("gateway.SigningKey", "private_sealed"),
        ("gateway.ThreeDSecureConfiguration", "server_secret_sealed"),
        ("gateway.WebhookEndpoint", "secret_sealed"),
        ("gateway.WebhookEndpoint", "previous_sealed"),
        ("gateway.FactorSecret", "sealed"),
        ("gateway.AcquirerAccount", "secrets_sealed"),
    }
    sealed = {(one.model._meta.label, one.sealed) for one in SEALED_COLUMNS if one.model._meta.app_label != "reporting"}
    own = {one for one in sealed - of_merchants if not one[0].endswith(("Server", "Source", "Target", "Provider"))}
    assert own <= listed()


def catalogue_names() -> list[str]:
    return sorted({one.full(row.name) for one in structures.KNOWN_STRUCTURES for row in one.rows})


@pytest.mark.parametrize("name", catalogue_names())
def test_every_parameter_is_in_one_of_the_two_lists(name: str) -> None:
    """A new parameter fails here: decide whether it can be a shopper's."""
    assert parameters.is_known_parameter(name)


@pytest.mark.parametrize(
    ("name", "personal"),
    [
        ("customer.email", True),
        ("customer.browser.userAgent", True),
        ("customers", False),
        ("card.holder", True),
        ("card.bin", False),
        ("cart.items[n].name", False),
        ("cart.items[3].recipient.street", True),
        ("merchant.billing.street1", False),
        ("customParameters[SHOPPER_name]", True),
        ("customParameters.paymentLinkId", False),
        ("threeDSecure.eci", False),
        ("threeDSecure.deviceInfo", True),
        ("risk.parameters[x]", True),
        ("airline.passengers[0].legs[1].flightNumber", True),
        ("airline.agentName", False),
    ],
)
def test_a_name_is_personal_by_its_longest_beginning(name: str, personal: bool) -> None:
    assert parameters.is_personal_parameter(name) is personal


def test_personal_members_are_taken_out_of_nested_documents() -> None:
    document = {
        "customer": {"email": "jane@shop.example", "browser": {"userAgent": "x"}},
        "card": {"bin": "420000", "last4Digits": "0091", "holder": "Jane Jones"},
        "cart": {"items": [{"name": "Shoes", "recipient": {"street": "Main 1"}}, {"giftMessage": "Hi"}]},
        "customParameters": {"paymentLinkId": "a1", "SHOPPER_x": "y"},
        "amount": "1.00",
    }
    assert parameters.remove_personal_values(document) == {
        "card": {"bin": "420000", "last4Digits": "0091"},
        "cart": {"items": [{"name": "Shoes"}, {}]},
        "customParameters": {"paymentLinkId": "a1"},
        "amount": "1.00",
    }
    assert parameters.select_personal_values(document) == {
        "customer": document["customer"],
        "card": {"holder": "Jane Jones"},
        "cart": {"items": [{"recipient": {"street": "Main 1"}}, {"giftMessage": "Hi"}]},
        "customParameters": {"SHOPPER_x": "y"},
    }
    logged = [["customer.email", "a@b"], ["amount", "1"], ["custmer.email", "a@b"]]
    assert parameters.remove_personal_values(logged) == [["amount", "1"]]
    assert parameters.select_personal_values(logged) == [["customer.email", "a@b"], ["custmer.email", "a@b"]]


def test_the_page_shows_the_table() -> None:
    """docs/personal-data.md is read by those who answer to a regulator; UPDATE_SNAPSHOTS=1 writes it."""
    path = ROOT / "docs" / "personal-data.md"
    rows = [
        f"| `{table.model}` | `{column.name}` | {column.about} | {table.why} | {table.kept} | {_erased(column)} |"
        for table in PERSONAL_DATA
        for column in table.columns
    ]
    head = ["| model | column | what | why | how long | when a person is forgotten |", "|---|---|---|---|---|---|"]
    other = ["", "| other place | what | how long | when a person is forgotten |", "|---|---|---|---|"]
    other += [f"| {one.name} | {one.about} | {one.kept} | {one.erasing} |" for one in OTHER_PLACES]
    text = path.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    written = text[:start] + "\n" + "\n".join([*head, *rows, *other]) + "\n" + text[end:]
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(written)
    assert path.read_text() == written


def _erased(column: object) -> str:
    erasing, reason = column.erasing, column.reason  # type: ignore[attr-defined]  # a PersonalColumn
    return str(erasing) if reason is None else f"{erasing}: {str(reason.value)[0].lower()}{str(reason.value)[1:-1]}"

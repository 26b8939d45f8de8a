"""Every table has an end of its rows, or a reason to keep them. docs/decisions/0133."""

from __future__ import annotations

from pathlib import Path

from django.apps import apps

from config.timers import TIMERS
from gateway.db.partitions import PARTITIONED_TABLES
from gateway.personal_data.payment_archiving import GOES_WITH_CHAIN

LIST = Path(__file__).with_name("table_growth.txt")
OWN_APPS = ("gateway", "checkout", "reporting", "chargebacks", "scheduling")
HOWS = {"settings", "state", "books", "retention", "payment"}


def rows() -> dict[str, tuple[str, str]]:
    lines = [line.split(" | ") for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return {model: (how, timer) for model, how, timer in lines}


def test_every_table_is_listed_once_with_what_ends_its_rows() -> None:
    """A new one fails here: decide how its rows end, and say so in docs/running.md, Tables that only grow."""
    listed = rows()
    models = {model._meta.label for model in apps.get_models() if model._meta.app_label in OWN_APPS}
    assert (models - set(listed), set(listed) - models) == (set(), set())
    assert {how for how, _ in listed.values()} == HOWS


def test_what_ends_rows_is_a_timer_of_the_product() -> None:
    names = {timer.name for timer in TIMERS}
    assert {timer for _, timer in rows().values()} - names == {"-"}


def test_what_goes_with_its_payment_is_taken_by_the_archive() -> None:
    listed = {model for model, (how, _) in rows().items() if how == "payment"}
    by_the_way = {"gateway.Payment", "gateway.PaymentEvent", "checkout.ReceiptMail"}
    assert listed - by_the_way <= {label for label, _ in GOES_WITH_CHAIN}


def test_partitioned_tables_are_dropped_by_their_timer_or_kept_as_books() -> None:
    tables = {model._meta.db_table: model._meta.label for model in apps.get_models()}
    for table in PARTITIONED_TABLES:
        expected = ("books", "-") if table.retention is None else ("retention", "table partitions")
        assert rows()[tables[table.name]] == expected

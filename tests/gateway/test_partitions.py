"""Tables in one partition a month: made ahead, dropped as a whole; a row always has a place. docs/decisions/0103."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from gateway import metrics
from gateway.api.developer import MAX_LISTED_REQUESTS
from gateway.backoffice.access import token_pages
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.db import partitions
from gateway.db.partitions import PartitionedTable, drop_partitions, list_partitions, make_partitions
from gateway.models import AcquirerExchange, RequestLog
from gateway.timers.table_partitions import TIMER, keep_partitions
from tests.gateway.test_statement import log_row
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.threads import at_once

TRIAL = PartitionedTable(name="trial", key="id", days_setting="GATEWAY_REQUEST_LOG_DAYS")
ALL = REQUESTS, MESSAGES, ARCHIVE = partitions.PARTITIONED_TABLES
NOW = datetime(2027, 3, 10, 12, tzinfo=UTC)


def run(sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def trial(db: None) -> Iterator[PartitionedTable]:
    """A table of the test's own, as the migration leaves one: everything in the first partition."""
    run("CREATE TABLE trial (id uuid PRIMARY KEY) PARTITION BY RANGE (id)")
    run("CREATE TABLE trial_first PARTITION OF trial FOR VALUES FROM (MINVALUE) TO (MAXVALUE)")
    yield TRIAL
    run("DROP TABLE trial")


def add(*times: datetime) -> None:
    for at in times:
        run("INSERT INTO trial (id) VALUES (%s)", first_id_at(at))


def bounds(table: PartitionedTable) -> list[str]:
    """``name until``, with the table's name left out."""
    return [
        f"{one.name[len(table.name) + 1 :]} {one.high and f'{one.high:%Y-%m-%d}'}" for one in list_partitions(table)
    ]


def rows() -> dict[str, int]:
    found = run("SELECT tableoid::regclass::text, count(*) FROM trial GROUP BY 1")
    return {name.removeprefix("trial_"): count for name, count in found}


def day(year: int, month: int, number: int = 1) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


# --- made ahead ----------------------------------------------------------------------------------------------------


def test_two_months_ahead_have_partitions_and_the_newest_has_no_end(trial: PartitionedTable) -> None:
    assert partitions.count_months_ahead(trial, NOW) == 0
    assert make_partitions(trial, NOW) == 3
    assert bounds(trial) == ["first 2027-04-01", "2027_04 2027-05-01", "2027_05 2027-06-01", "2027_06 None"]
    assert partitions.count_months_ahead(trial, NOW) == 2
    assert make_partitions(trial, NOW) == 0
    assert make_partitions(trial, day(2027, 4)) == 1
    assert bounds(trial)[-2:] == ["2027_06 2027-07-01", "2027_07 None"]


def test_a_month_that_is_nearly_over_is_not_ended_at_its_end(trial: PartitionedTable) -> None:
    """Rows of the next month may come while its check is there."""
    make_partitions(trial, day(2027, 12, 31))
    assert bounds(trial)[:2] == ["first 2028-02-01", "2028_02 2028-03-01"]


def test_every_row_has_a_place_of_its_own_month_and_of_any_other(trial: PartitionedTable) -> None:
    make_partitions(trial, NOW)
    add(day(1970, 1), day(2027, 3, 31), day(2027, 4), day(2027, 5, 31), day(2027, 6), day(2199, 1))
    assert rows() == {"first": 2, "2027_04": 1, "2027_05": 1, "2027_06": 2}


def test_a_timer_that_did_not_run_for_months_loses_nothing(trial: PartitionedTable) -> None:
    make_partitions(trial, NOW)
    late = day(2027, 9, 20)
    add(day(2027, 6, 2), day(2027, 8, 2), late)
    assert partitions.count_months_ahead(trial, late) == 0
    assert make_partitions(trial, late) == 2
    assert bounds(trial)[-3:] == ["2027_06 2027-11-01", "2027_11 2027-12-01", "2027_12 None"]
    assert rows() == {"2027_06": 3}


def test_rows_of_a_clock_that_ran_ahead_widen_their_partition(trial: PartitionedTable) -> None:
    make_partitions(trial, NOW)
    add(day(2027, 6, 2), day(2027, 10, 31))
    assert make_partitions(trial, day(2027, 4)) == 1
    assert bounds(trial)[-2:] == ["2027_06 2027-11-01", "2027_11 None"]


def test_a_run_that_died_leaves_a_check_that_the_next_one_takes_away(trial: PartitionedTable) -> None:
    run(f"ALTER TABLE trial_first ADD CONSTRAINT until_its_end CHECK (id < '{first_id_at(day(2027, 4))}') NOT VALID")
    make_partitions(trial, day(2027, 3, 30))
    assert bounds(trial)[0] == "first 2027-05-01"
    add(day(2027, 4, 2))
    assert run("SELECT conname FROM pg_constraint WHERE conname LIKE 'until%%'") == []


def test_a_check_that_was_left_goes_with_the_next_run_even_if_no_month_is_due(trial: PartitionedTable) -> None:
    make_partitions(trial, NOW)
    newest = partitions.list_partitions(trial)[-1].name
    run(f"ALTER TABLE {newest} ADD CONSTRAINT until_its_end CHECK (id < '{first_id_at(day(2030, 4))}') NOT VALID")
    assert partitions.list_left_checks(trial) == [newest]
    assert make_partitions(trial, NOW) == 0
    assert partitions.list_left_checks(trial) == []


# --- dropped -------------------------------------------------------------------------------------------------------


def test_months_are_dropped_once_their_last_row_is_past_its_days(trial: PartitionedTable, settings: Any) -> None:
    settings.GATEWAY_REQUEST_LOG_DAYS = 90
    make_partitions(trial, NOW)
    add(day(2027, 3, 2), day(2027, 4, 2), day(2027, 4, 30), day(2027, 5, 1))
    assert drop_partitions(trial, day(2027, 5) + timedelta(days=89)) == 1
    assert rows() == {"2027_04": 2, "2027_05": 1}, "March was in the first partition"
    assert drop_partitions(trial, day(2027, 5) + timedelta(days=90)) == 1
    assert rows() == {"2027_05": 1}
    assert bounds(trial) == ["first 2027-05-01", "2027_05 2027-06-01", "2027_06 None"]
    assert drop_partitions(trial, day(2027, 5) + timedelta(days=90)) == 0
    add(day(2027, 4, 3))
    assert rows() == {"first": 1, "2027_05": 1}, "a row that comes late still has a place"
    assert drop_partitions(trial, day(2027, 5) + timedelta(days=90)) == 1
    assert rows() == {"2027_05": 1}


def test_many_old_months_go_in_one_run_and_the_newest_never(trial: PartitionedTable, settings: Any) -> None:
    settings.GATEWAY_REQUEST_LOG_DAYS = 1
    make_partitions(trial, NOW)
    add(day(2027, 4, 2), day(2027, 6, 2))
    assert drop_partitions(trial, day(2037, 1)) == 2
    assert bounds(trial) == ["first 2027-06-01", "2027_06 None"]
    assert rows() == {"2027_06": 1}


def test_what_a_run_that_died_has_detached_is_dropped_by_the_next(trial: PartitionedTable) -> None:
    make_partitions(trial, NOW)
    run("ALTER TABLE trial DETACH PARTITION trial_2027_04")
    run("ALTER TABLE trial_2027_04 RENAME TO trial_2027_04_old")
    run("CREATE TABLE trial_next (name text)")
    run("CREATE TABLE trial_of_others_old (name text)")
    assert drop_partitions(trial, NOW) == 0
    assert make_partitions(trial, day(2027, 4)) == 1
    found = {
        name for (name,) in run("SELECT relname::text FROM pg_class WHERE relname LIKE 'trial%%' AND relkind = 'r'")
    }
    assert found == {"trial_first", "trial_2027_05", "trial_2027_06", "trial_2027_07", "trial_of_others_old"}


def test_who_reads_the_table_is_waited_for_a_moment_and_then_nothing_is_changed(
    transactional_db: None, trial: PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "LOCK_PAUSE_S", 0.0)
    add(NOW)

    def change() -> None:
        with pytest.raises(OperationalError, match="lock timeout"):
            make_partitions(trial, NOW)

    with transaction.atomic():
        run("SELECT count(*) FROM trial")
        at_once(change)
    assert bounds(trial) == ["first None"]
    assert run("SELECT conname FROM pg_constraint WHERE conname LIKE 'until%%'") == []
    assert make_partitions(trial, NOW) == 3


def test_a_first_partition_that_is_not_old_yet_keeps_its_rows(trial: PartitionedTable, settings: Any) -> None:
    settings.GATEWAY_REQUEST_LOG_DAYS = 90
    make_partitions(trial, NOW)
    add(day(2027, 3, 2))
    assert drop_partitions(trial, day(2027, 4) + timedelta(days=90) - timedelta(seconds=1)) == 0
    assert rows() == {"first": 1}
    assert drop_partitions(trial, day(2027, 4) + timedelta(days=90)) == 1
    assert rows() == {}


def test_a_month_that_is_nearly_over_and_holds_rows_is_not_ended_at_its_end(trial: PartitionedTable) -> None:
    add(day(2027, 12, 2))
    make_partitions(trial, day(2027, 12, 31))
    assert bounds(trial)[:2] == ["first 2028-02-01", "2028_02 2028-03-01"]


def test_what_is_called_like_something_detached_and_is_not_stays(trial: PartitionedTable) -> None:
    """A partition that is still one, and a table of another schema."""
    make_partitions(trial, NOW)
    run("ALTER TABLE trial_2027_04 RENAME TO trial_2027_04_old")
    run("CREATE SCHEMA of_others")
    run("CREATE TABLE of_others.trial_2027_05_old (name text)")
    add(day(2027, 4, 2))
    drop_partitions(trial, NOW)
    assert rows() == {"2027_04_old": 1}
    assert run("SELECT to_regclass('of_others.trial_2027_05_old') IS NOT NULL") == [(True,)]


def test_another_check_of_a_partition_is_none_that_was_left(trial: PartitionedTable) -> None:
    run("ALTER TABLE trial_first ADD CONSTRAINT of_the_operator CHECK (id IS NOT NULL)")
    assert partitions.list_left_checks(trial) == []


@pytest.mark.parametrize(
    ("at", "begins"),
    [
        (datetime(2027, 3, 31, 23, 30, tzinfo=timezone(timedelta(hours=-2))), day(2027, 5)),
        (datetime(2027, 4, 1, 1, 30, tzinfo=timezone(timedelta(hours=2))), day(2027, 4)),
        (datetime(2027, 12, 31, 12, tzinfo=UTC), day(2028, 1)),
    ],
)
def test_months_are_those_of_utc(trial: PartitionedTable, at: datetime, begins: datetime) -> None:
    assert partitions.next_month_start(at) == begins
    make_partitions(trial, NOW)
    assert partitions.count_months_ahead(trial, at) == partitions.count_months_ahead(trial, at.astimezone(UTC))


def test_each_table_has_its_own_days(settings: Any) -> None:
    settings.GATEWAY_REQUEST_LOG_DAYS, settings.GATEWAY_ACQUIRER_MESSAGE_DAYS = 7, 500
    assert [table.retention.days for table in (REQUESTS, MESSAGES)] == [7, 500]


def test_the_timer_makes_what_is_missing_and_drops_what_is_old(
    trial: PartitionedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "PARTITIONED_TABLES", (trial,))
    add(day(2020, 1))
    make_partitions(trial, day(2020, 1, 2))
    assert rows() == {"first": 1}
    assert keep_partitions() > 2
    assert (rows(), partitions.count_months_ahead(trial, clock.real_now())) == ({}, 2)


def test_a_tables_values_are_counted_once_a_day(transactional_db: None, trial: PartitionedTable) -> None:
    for counted in (True, False):
        with statements() as seen:
            partitions.analyze_partitioned_table(trial)
        assert any(sql.startswith("ANALYZE") for sql in seen) is counted


# --- locks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between tries."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def change_with_faults(faults: list[Exception]) -> list[tuple[Any, ...]]:
    """The lock timeouts under which a change that fails so is made."""
    seen: list[tuple[Any, ...]] = []

    def change() -> None:
        seen.extend(run("SHOW lock_timeout"))
        if faults:
            raise OperationalError from faults.pop(0)

    partitions._change_table(TRIAL, ["trial_first"], change)
    return seen


def test_a_lock_that_is_not_had_is_tried_for_again(trial: PartitionedTable, pauses: list[float]) -> None:
    assert change_with_faults([LockNotAvailable(), LockNotAvailable()]) == [("30ms",)] * 3
    assert pauses == [partitions.LOCK_PAUSE_S] * 2
    with pytest.raises(OperationalError):
        change_with_faults([LockNotAvailable() for _ in range(partitions.LOCK_TRIES)])
    assert len(pauses) == 2 + partitions.LOCK_TRIES - 1


def test_another_fault_is_not_tried_again(trial: PartitionedTable, pauses: list[float]) -> None:
    with pytest.raises(OperationalError):
        change_with_faults([ValueError("no lock")])
    assert pauses == []


def test_inserts_wait_for_a_moment_at_most_and_the_autovacuum_is_waited_for_before(trial: PartitionedTable) -> None:
    with statements() as seen:
        change_with_faults([])
    steps = [sql for sql in seen if sql.startswith(("LOCK", "SET LOCAL lock_timeout"))]
    assert steps == [
        "SET LOCAL lock_timeout = 5000",
        "LOCK TABLE trial_first IN SHARE UPDATE EXCLUSIVE MODE",
        "SET LOCAL lock_timeout = 30",
        "LOCK TABLE ONLY trial IN ACCESS EXCLUSIVE MODE",
        "LOCK TABLE trial_first IN ACCESS EXCLUSIVE MODE",
        "SET LOCAL lock_timeout TO DEFAULT",
    ]


# --- the product's own tables --------------------------------------------------------------------------------------


def test_the_timer_keeps_the_tables_and_counts_their_values(db: None) -> None:
    now = clock.real_now()
    assert [partitions.count_months_ahead(table, now) for table in partitions.PARTITIONED_TABLES] == [0, 0, 0]
    assert TIMER.run() in (6, 9), "fewer near the end of a month, which the first partition then holds as well"
    assert [partitions.count_months_ahead(table, now) for table in partitions.PARTITIONED_TABLES] == [2, 2, 2]
    with statements() as seen:
        assert keep_partitions() == 0
    assert not any("LOCK" in sql for sql in seen)


def test_the_archive_of_payments_keeps_every_month(db: None) -> None:
    keep_partitions()
    assert drop_partitions(ARCHIVE, clock.real_now() + timedelta(days=20 * 366)) == 0
    assert len(list_partitions(ARCHIVE)) > 1


def months_ahead_told() -> set[str]:
    """The figure of the metrics, by line."""
    lines = metrics.render_metrics().decode().splitlines()
    return {line for line in lines if line.startswith("tollhouse_partition_months_ahead{")}


def test_the_command_does_what_the_timer_does_and_the_figures_tell(db: None) -> None:
    told = StringIO()
    assert months_ahead_told() == {f'tollhouse_partition_months_ahead{{table="{one.name}"}} 0.0' for one in ALL}
    call_command("table_partitions", stdout=told)
    made, *tables = told.getvalue().splitlines()
    assert made in ("6 partitions made or dropped.", "9 partitions made or dropped.")
    assert [line.partition(": ")[0] for line in tables] == [one.name for one in ALL]
    assert all("2 months ahead" in line for line in tables)
    assert months_ahead_told() == {f'tollhouse_partition_months_ahead{{table="{one.name}"}} 2.0' for one in ALL}


def test_the_command_tells_who_has_to_run_it(db: None) -> None:
    run("CREATE ROLE of_the_application")
    with transaction.atomic():
        run("SET LOCAL ROLE of_the_application")
        with pytest.raises(CommandError, match="does not own gateway_requestlog: run it as the owner"):
            call_command("table_partitions")
        run("RESET ROLE")


def test_another_role_that_owns_the_tables_keeps_them_itself(db: None) -> None:
    """docs/running.md: the application's role may then read and write rows alone."""
    run("CREATE ROLE of_the_application")
    run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO of_the_application")
    with transaction.atomic():
        run("SET LOCAL ROLE of_the_application")
        assert keep_partitions() == 0
        run("RESET ROLE")
    assert keep_partitions() > 0
    run("SET LOCAL ROLE of_the_application")
    RequestLog.objects.create(**log_row())
    assert RequestLog.objects.count() == 1
    run("RESET ROLE")


def test_a_payment_of_a_moved_clock_is_a_row_of_the_present(shop: Shop) -> None:
    keep_partitions()
    far = {"entityId": shop.channel.pk.hex, "advance": str(5 * 366 * 86_400)}
    assert shop.api.post("/v1/test/clock", far).status == 200
    paid = shop.api.pay()
    assert paid.status == 200
    for table, key in (("gateway_requestlog", "payment"), ("gateway_acquirerexchange", "payment_id")):
        where = run(f"SELECT tableoid::regclass::text FROM {table} WHERE {key} = %s", UUID(paid.id))
        assert where == [(f"{table}_first",)]


# --- what pages read -----------------------------------------------------------------------------------------------


def read_tables(sql: str, *values: Any) -> set[str]:
    """The tables that running the statement reads."""

    ((plan,),) = run(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", *values)
    return tables_of(plan)


def tables_of(plan: Any) -> set[str]:
    def walk(node: dict[str, Any]) -> Iterator[str]:
        if node.get("Actual Loops") and "Relation Name" in node:
            yield node["Relation Name"]
        for child in node.get("Plans", ()):
            yield from walk(child)

    return set(walk((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))


@pytest.fixture
def years(shop: Shop) -> Shop:
    """A hundred requests of one channel in each of twelve months, the last in the present one."""
    now = clock.real_now()
    months = [now - timedelta(days=31 * back) for back in reversed(range(12))]
    for at in months:
        make_partitions(REQUESTS, at - timedelta(days=62))
        make_partitions(MESSAGES, at - timedelta(days=62))
    made = [
        log_row(id=UUID(int=first_id_at(at).int + number), at=at, entity_id=shop.channel.pk)
        for at in months
        for number in range(100)
    ]
    RequestLog.objects.bulk_create(RequestLog(**row) for row in made)
    assert len(list_partitions(REQUESTS)) > 12
    run("ANALYZE gateway_requestlog")  # else the plan depends on what ran in this database before
    return shop


def of_month(at: datetime) -> str:
    return f"gateway_requestlog_{at:%Y_%m}"


def test_a_request_is_found_by_its_ndc_in_its_own_month(years: Shop) -> None:
    old = clock.real_now() - timedelta(days=62)
    sql, values = RequestLog.objects.filter(pk=UUID(int=first_id_at(old).int + 50)).query.sql_with_params()
    assert read_tables(sql, *values) == {of_month(old)}


def test_the_newest_requests_of_an_entity_are_read_from_the_newest_months(years: Shop) -> None:
    answer = years.api.get("/v1/test/requests", entityId=years.channel.pk.hex)
    assert len(answer.body["requests"]) == MAX_LISTED_REQUESTS
    # What few rows in small tables would be sorted for, an index has in order.
    run("SET LOCAL enable_sort = off")
    run("SET LOCAL enable_seqscan = off")
    listed = "SELECT id FROM gateway_requestlog WHERE entity_id = %s ORDER BY id DESC LIMIT 50"
    assert of_month(clock.real_now() - timedelta(days=62)) not in read_tables(listed, years.channel.pk)


def test_the_messages_of_a_payment_are_in_one_partition(years: Shop) -> None:
    paid = UUID(years.api.pay().id)
    assert AcquirerExchange.objects.filter(payment=paid).count() == 1
    assert len(read_tables("SELECT * FROM gateway_acquirerexchange WHERE payment_id = %s", paid)) == 1


def test_a_days_calls_of_a_token_are_counted_in_its_month_alone(years: Shop) -> None:
    old = clock.real_now() - timedelta(days=62)
    values = {
        "entities": [years.channel.pk],
        "token": years.token.pk,
        "most": 10,
        "days": [old.date()],
        "lows": [first_id_at(old)],
        "highs": [first_id_at(old + timedelta(hours=1))],
    }
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {token_pages._CALLS}", values)
        plan = cursor.fetchone()[0]
    assert tables_of(plan) == {of_month(old)}

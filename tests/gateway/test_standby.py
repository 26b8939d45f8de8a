"""Reading from a standby: a real primary and a real standby that streams from it, on the loopback."""

from __future__ import annotations

import copy
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import structlog
from django.apps import apps
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import Client, override_settings
from django.urls import reverse

from config.doctor import standby_part
from config.doctor.findings import DoctorQuestion, FindingLevel
from config.launcher.schema_snapshot import apply_snapshot
from config.navigation import list_page_titles
from gateway.access import audit_log
from gateway.background import queue
from gateway.backoffice.kit.base import BackofficePage
from gateway.backoffice.payments import payment_export
from gateway.core import clock
from gateway.db import standby
from gateway.db.statement import WriteStatement, execute_sql, read_sql
from gateway.models import Division, Payment, Psp, RequestLog
from gateway.payments import transaction_query
from tests.running.servers import Cluster, Server, eventually
from tests.support import books
from tests.support.fixtures import Shop, open_shop
from tests.support.office import signed_in
from tests.support.ports import free_port

pytestmark = pytest.mark.processes
ROUTER = "gateway.db.standby.StandbyRouter"
READS_NOTHING = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET ", "SELECT pg_wal_lsn_diff")


def forget_standby() -> None:
    """Forget what this process knows of primary and standby."""
    with standby._lock:
        standby._known.samples.clear()
        standby._known.paused_until = 0.0


@dataclass(slots=True)
class Pair:
    """A primary, its standby, and the statements that each of them was sent."""

    primary: Server
    standby: Server
    shop: Shop
    elsewhere: dict[str, Any]
    """The settings of a connection to another cluster: that of all other tests."""
    sent: dict[str, list[str]] = field(default_factory=dict)

    @contextmanager
    def watch(self) -> Iterator[dict[str, list[str]]]:
        """Context in which the statements of both are noted: alias → statements that read or write rows."""
        self.sent = {DEFAULT_DB_ALIAS: [], standby.STANDBY_ALIAS: []}

        def note(alias: str) -> Callable[..., Any]:
            def wrapper(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
                if not str(sql).strip().startswith(READS_NOTHING):
                    self.sent[alias].append(str(sql))
                return execute(sql, params, many, context)

            return wrapper

        with ExitStack() as stack:
            for alias in self.sent:
                stack.enter_context(connections[alias].execute_wrapper(note(alias)))
            yield self.sent

    def catch_up(self) -> None:
        """Wait until the standby has replayed all that is committed."""
        eventually("the standby catches up", lambda: standby._ask_standby() >= standby.find_written_position())


def _build_connection(alias: str, server: Server, cluster: Cluster) -> Any:
    usual = connections[DEFAULT_DB_ALIAS]
    where = {"HOST": "127.0.0.1", "PORT": str(server.port), "NAME": "tollhouse", "USER": "tollhouse"}
    settings = copy.deepcopy(usual.settings_dict) | where | {"PASSWORD": cluster.passwords["tollhouse"]}
    if alias == standby.STANDBY_ALIAS:  # the primary's connection asks for a server that takes writes
        settings["OPTIONS"].pop("target_session_attrs", None)
    return type(usual)(settings, alias)


@pytest.fixture(scope="module")
def servers(django_db_blocker: Any) -> Iterator[Any]:
    folder = Path(tempfile.mkdtemp(prefix="tollhouse-standby-"))
    folder.chmod(0o711)  # under root the servers are another user and have to pass through
    cluster = Cluster(folder, ("pg1", "pg2"))
    with django_db_blocker.unblock():
        usual = connections[DEFAULT_DB_ALIAS]
        try:
            cluster.start()
            primary, follower = cluster.servers
            primary.configure(synchronous_standby_names="")  # one standby, which these tests stop and kill
            primary.ask("SELECT pg_reload_conf()")
            connections[DEFAULT_DB_ALIAS] = _build_connection(DEFAULT_DB_ALIAS, primary, cluster)
            connections[standby.STANDBY_ALIAS] = _build_connection(standby.STANDBY_ALIAS, follower, cluster)
            assert apply_snapshot(MigrationExecutor(connections[DEFAULT_DB_ALIAS]))
            emit_post_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)
            shop = open_shop(Division.objects.create(name="Division", psp=Psp.objects.create(name="PSP")), "Shop")
            shop.api.pay()
            yield Pair(primary=primary, standby=follower, shop=shop, elsewhere=usual.settings_dict)
        finally:
            if connections[DEFAULT_DB_ALIAS] is not usual:
                for alias in (DEFAULT_DB_ALIAS, standby.STANDBY_ALIAS):
                    connections[alias].close()
                connections[DEFAULT_DB_ALIAS] = usual
                del connections[standby.STANDBY_ALIAS]
            cluster.stop()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def pair(servers: Pair) -> Iterator[Pair]:
    """Both, with the setting: the standby has all that is committed, and this process knows how far the primary is."""
    with override_settings(GATEWAY_STANDBY_URL="set", GATEWAY_STANDBY_MAX_LAG_S=600.0, DATABASE_ROUTERS=[ROUTER]):
        forget_standby()
        standby._take_sample()
        servers.catch_up()
        yield servers
        forget_standby()


@pytest.fixture
def behind(pair: Pair) -> Iterator[Pair]:
    """The standby receives and no longer replays."""
    try:
        pair.standby.ask("SELECT pg_wal_replay_pause()")
        eventually("replay stops", lambda: pair.standby.ask("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])
        yield pair
    finally:
        pair.standby.ask("SELECT pg_wal_replay_resume()")
        pair.catch_up()


def find_superuser(name: str) -> User:
    """The superuser of this name; the database is one for all tests of this file."""
    return User.objects.filter(username=name).first() or User.objects.create_superuser(name)


@pytest.fixture
def office(pair: Pair) -> Client:
    return signed_in(find_superuser("root"))


PERIOD = {"date.from": "2000-01-01 00:00:00", "date.to": "2099-12-31 23:59:59", "limit": "100"}
DAYS = {"date.from": "2026-01-01", "date.to": "2026-01-31"}
API_LISTS = {
    "/v1/query": PERIOD, "/v3/query": PERIOD | {"pageNo": "1"}, "/v1/reports/reconciliations": DAYS,
    "/v1/reports/approvals": DAYS, "/v1/reports/approvals/waterfall": DAYS, "/v1/reports/approvals/gains": DAYS,
}  # fmt: skip
"""Routes of the API that may be read from the standby."""


def list_pages() -> list[str]:
    """The lists of the back office that may be, the search and the report."""
    pages = [page for page in site._registry.values() if isinstance(page, BackofficePage) and page.lists_from_standby]
    lists = [reverse(f"admin:{page.opts.app_label}_{page.opts.model_name}_changelist") for page in pages]
    return [*lists, "/admin/search/?s=Shop"]


def count_of_period(pair: Pair) -> int:
    return len(pair.shop.api.get("/v1/query", PERIOD).body["payments"])


# --- where statements go --------------------------------------------------------------------------------------------


def test_only_rows_of_the_books_are_read_from_the_standby() -> None:
    known = {model._meta.label_lower for model in apps.get_models()}
    assert known >= standby.STANDBY_MODELS
    never = {"gateway.accesstoken", "gateway.grant", "gateway.idempotencykey", "gateway.approval", "auth.user"}
    assert known >= never
    assert not never & standby.STANDBY_MODELS


def names_books(sql: str) -> bool:
    """Whether a statement reads rows that the standby has."""
    tables = [apps.get_model(label)._meta.db_table for label in standby.STANDBY_MODELS]
    if sql.startswith('SELECT "'):  # Django's own: a list of merchants may ask which of them have disputes
        sql = sql.partition(" WHERE ")[0]
    return sql.lstrip().startswith(("SELECT", "WITH")) and any(re.search(rf'FROM "?{name}\b', sql) for name in tables)


@pytest.mark.parametrize("path", API_LISTS)
def test_lists_and_reports_of_the_api_are_read_from_the_standby(pair: Pair, path: str) -> None:
    with pair.watch() as sent:
        answer = pair.shop.api.get(path, API_LISTS[path])
    assert answer.status == 200, answer.text
    assert sent["standby"]
    assert not [sql for sql in sent["default"] if names_books(sql)]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+0000", answer.headers["X-As-Of"])


ONE_SETTLEMENT = (
    "/v1/reports/reconciliations", "/reports/v1/reconciliations/aggregations",
    "/reports/v2/reconciliations/aggregations",
)  # fmt: skip


def settle(shop: Shop) -> str:
    """A settlement with one line; returns its id."""
    institute = books.institute()
    one = books.settlement(shop, institute)
    books.record(one, books.file_of(institute))
    return str(one.id.hex)


@pytest.mark.parametrize("path", ONE_SETTLEMENT)
def test_one_settlement_is_read_from_the_standby(pair: Pair, path: str) -> None:
    settled = settle(pair.shop)
    pair.catch_up()
    with pair.watch() as sent:
        answer = pair.shop.api.get(f"{path}/{settled}")
    assert answer.status == 200
    assert "X-As-Of" in answer.headers
    assert sent["standby"]
    assert not [sql for sql in sent["default"] if names_books(sql)]


@pytest.mark.parametrize("path", ONE_SETTLEMENT)
def test_a_settlement_that_the_standby_lacks_is_found_on_the_primary(behind: Pair, path: str) -> None:
    settled = settle(behind.shop)
    with behind.watch() as sent:
        answer = behind.shop.api.get(f"{path}/{settled}")
        none = behind.shop.api.get(f"{path}/{'0' * 32}")
    assert sent["standby"]
    assert (answer.status, answer.body["id"], none.status) == (200, settled, 404)
    assert "X-As-Of" not in answer.headers
    assert "X-As-Of" not in none.headers


def test_lists_and_searches_of_the_back_office_are_read_from_the_standby(pair: Pair, office: Client) -> None:
    pages = list_pages()
    assert len(pages) >= 10
    for address in pages:
        with pair.watch() as sent:
            answer = office.get(address)
        assert answer.status_code == 200, address
        assert sent["standby"], address
        assert [sql for sql in sent["default"] if names_books(sql)] == [], address
        assert "X-As-Of" in answer.headers, address
        assert "search" in address or "read from a standby" in answer.content.decode(), address


def test_the_list_of_archived_payments_is_read_from_the_standby(pair: Pair, office: Client, settings: Any) -> None:
    """Keys and rows of one database, and within the limit of its statements' time."""
    settings.GATEWAY_PAYMENT_HOT_DAYS = 1_095
    with pair.watch() as sent:
        answer = office.get("/admin/gateway/payment/", {"archived": "1"})
    assert answer.status_code == 200
    assert any('FROM "gateway_archivedpayment"' in one for one in sent[standby.STANDBY_ALIAS])
    assert not any('FROM "gateway_archivedpayment"' in one for one in sent[DEFAULT_DB_ALIAS])


def test_the_report_of_approval_rates_is_read_from_the_standby(pair: Pair, office: Client) -> None:
    cache.clear()
    address = reverse("admin:approval_rates")
    with pair.watch() as sent:
        answer = office.get(address)
    assert answer.status_code == 200
    assert sent["standby"]
    assert "read from a standby" in answer.content.decode()


def test_whatever_else_is_read_is_read_from_the_primary(pair: Pair, office: Client) -> None:
    """Every page of the navigation that is no such list, and every route of the API that tells what became of one
    payment, or makes or changes one."""
    elsewhere = {*list_pages(), reverse("admin:approval_rates")}
    for address in ["/admin/", *list_page_titles()]:
        if address in elsewhere:
            continue
        with pair.watch() as sent:
            answer = office.get(address)
        assert answer.status_code == 200, address
        assert sent["standby"] == [], address
        assert "X-As-Of" not in answer.headers, address
    api = pair.shop.api
    with pair.watch() as sent:
        paid = api.pay(merchantTransactionId="order-2026-one")
        api.follow(paid.id, "RF", "1.00")
        answers = [
            api.read(paid.id),
            api.get(f"/v1/query/{paid.id}"),
            api.get(f"/v1/query/{paid.id}", {"includeLinkedTransactions": "true"}),
            api.get(f"/v3/query/{paid.id}"),
            api.get("/v1/query", {"merchantTransactionId": "order-2026-one", "limit": "100"}),
            api.get("/v1/query", {"shortId": api.get(f"/v1/query/{paid.id}").body["shortId"], "limit": "100"}),
        ]
        page = office.get(f"/admin/gateway/payment/{UUID(paid.id)}/change/", follow=True)
    assert [answer.status for answer in answers] == [200] * len(answers)
    assert page.status_code == 200
    assert sent["standby"] == []
    assert not any("X-As-Of" in answer.headers for answer in answers)


def test_an_export_is_read_from_the_standby_and_lacks_nothing(
    behind: Pair, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the standby had not replayed when the export was asked for is read from the primary."""
    settings.GATEWAY_WORK_DIR = str(tmp_path)
    count = Payment.objects.count()
    behind.shop.api.pay()
    assert len(export_rows(behind)) == count + 1
    assert behind.sent["standby"] == []
    behind.standby.ask("SELECT pg_wal_replay_resume()")
    behind.catch_up()
    monkeypatch.setattr(standby, "STANDBY_PATIENCE_S", 60.0)
    assert len(export_rows(behind)) == count + 1
    assert behind.sent["standby"]


def export_rows(pair: Pair) -> list[str]:
    """The lines of an export, without its head; the statements of reading them stand in ``pair.sent``."""
    root = find_superuser("root")
    asked = {"format": "csv", "filters": {}, "asked": {"shape": "", "value": ""}}
    by = audit_log.Actor(name="tests")
    row = queue.enqueue_work(payment_export.PAYMENT_EXPORT, "payments", asked, owner=root.pk, by=by)
    with pair.watch():
        assert queue.run_background_work() > 0
    row.refresh_from_db()
    path = queue.find_result_file(row)
    assert path is not None, row.message
    return path.read_text().splitlines()[1:]


# --- lag, and a standby that is away --------------------------------------------------------------------------------


def test_a_list_is_as_old_as_it_says_and_a_single_payment_is_not(behind: Pair) -> None:
    before, at = count_of_period(behind), clock.real_now()
    paid = behind.shop.api.pay(merchantTransactionId="order-2026-late")
    answer = behind.shop.api.get("/v1/query", PERIOD)
    assert len(answer.body["payments"]) == before
    assert datetime.fromisoformat(answer.headers["X-As-Of"]) <= at
    # What decides whether a shopper pays again is never old.
    found = behind.shop.api.get("/v1/query", {"merchantTransactionId": "order-2026-late", "limit": "100"})
    assert [one["id"] for one in found.body["payments"]] == [paid.id]
    assert behind.shop.api.follow(paid.id, "RF", "1.00").code == "000.100.110"


@pytest.mark.parametrize("path", ["/v1/query", "/v3/query"])
def test_nothing_found_is_never_told_by_the_standby(behind: Pair, path: str) -> None:
    """A shop whose first payment the standby has not replayed."""
    division = Division.objects.create(name="New", psp=Psp.objects.create(name="New"))
    api = open_shop(division, "New").api
    with behind.watch() as sent:
        none = api.get(path, API_LISTS[path])
    assert none.body["result"]["code"] == "700.400.580"
    assert "X-As-Of" not in none.headers
    assert sent["standby"]
    assert [sql for sql in sent["default"] if names_books(sql)]
    paid = api.pay()
    found = api.get(path, API_LISTS[path])
    assert found.status == 200, found.text
    assert paid.id in found.text
    assert "X-As-Of" not in found.headers


def test_beyond_the_lag_the_primary_is_read(behind: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "STANDBY_PAUSE_S", 600.0)
    before = count_of_period(behind)
    behind.shop.api.pay()
    none = override_settings(GATEWAY_STANDBY_MAX_LAG_S=0.0)
    with none, structlog.testing.capture_logs() as logged, behind.watch() as sent:
        answer = behind.shop.api.get("/v1/query", PERIOD)
        behind.shop.api.get("/v1/query", PERIOD)
    assert len(answer.body["payments"]) == before + 1
    assert "X-As-Of" not in answer.headers
    assert sent["standby"] == []
    assert [one["why"] for one in logged if one["event"] == "standby_not_read"] == ["more than 0 s behind"]


def test_whoever_changed_something_sees_it_in_the_next_list(behind: Pair, office: Client) -> None:
    """The session remembers how far the primary had written: others are told the standby's."""
    address = "/admin/gateway/payment/"
    assert "X-As-Of" in office.get(address).headers
    other = signed_in(find_superuser("other"))
    behind.shop.api.pay()
    office.post(address)
    assert "X-As-Of" not in office.get(address).headers
    assert "X-As-Of" in other.get(address).headers


def test_a_standby_that_is_away_is_passed_over(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "STANDBY_PAUSE_S", 600.0)
    count = count_of_period(pair)
    pair.standby.kill()
    try:
        with structlog.testing.capture_logs() as logged:
            answers = [pair.shop.api.get("/v1/query", PERIOD) for _ in range(3)]
        assert [len(answer.body["payments"]) for answer in answers] == [count] * 3
        assert not any("X-As-Of" in answer.headers for answer in answers)
        # It is asked once, then left alone for some seconds.
        assert len([one for one in logged if one["event"] == "standby_not_read"]) == 1
    finally:
        pair.standby.start()
    forget_standby()
    standby._take_sample()
    pair.catch_up()
    assert "X-As-Of" in pair.shop.api.get("/v1/query", PERIOD).headers


def test_a_fault_on_the_standby_is_asked_of_the_primary(pair: Pair) -> None:
    """As when a statement is cancelled there because it conflicts with what is replayed."""
    asked: list[str] = []

    def find() -> int:
        asked.append(standby.choose_read_alias())
        return int(read_sql("SELECT 1 / (1 - pg_is_in_recovery()::int)", [])[0][0])

    assert standby.read_elsewhere(find) == (1, None)
    assert asked == ["standby", "default"]


def test_a_server_that_is_no_standby_is_not_read(pair: Pair) -> None:
    right = connections["standby"]
    connections["standby"] = type(right)(connections["default"].settings_dict, "standby")
    try:
        found, as_of = standby.read_elsewhere(Payment.objects.count)
        assert found > 0
        assert as_of is None
    finally:
        connections["standby"].close()
        connections["standby"] = right


# --- what the doctor says of it -------------------------------------------------------------------------------------


@contextmanager
def led_to(where: Any) -> Iterator[None]:
    """Context in which GATEWAY_STANDBY_URL leads to another connection's server."""
    right = connections["standby"]
    connections["standby"] = type(right)(where, "standby")
    try:
        yield
    finally:
        connections["standby"].close()
        connections["standby"] = right


def examine_standby() -> tuple[list[str], dict[str, str]]:
    """Returns (what is well, what is not → the line that mends it)."""
    found = list(standby_part.examine_standby(DoctorQuestion(network=False)))
    faults = {about: mend for level, about, mend in found if level is FindingLevel.WARNING}
    assert all(faults.values())
    return [about for level, about, _ in found if level is FindingLevel.OK], faults


def test_the_doctor_finds_a_standby_that_keeps_up(pair: Pair) -> None:
    well, faults = examine_standby()
    assert faults == {}
    assert well == [
        "The standby answers.", "It is a standby.", "It takes no writes.", "It follows this database.",
        "It keeps up: at most 600 s behind.",
    ]  # fmt: skip


def test_the_doctor_says_that_replay_is_paused(behind: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby_part, "MAX_REPLAY_WAIT_S", 0.0)
    behind.shop.api.pay()
    with override_settings(GATEWAY_STANDBY_MAX_LAG_S=0.0):
        _, faults = examine_standby()
    (about,) = faults
    assert "more than 0 s behind" in about
    assert faults[about] == "On the standby: SELECT pg_wal_replay_resume()."


def test_the_doctor_says_that_the_address_leads_to_the_primary(pair: Pair) -> None:
    with led_to(connections["default"].settings_dict):
        well, faults = examine_standby()
    assert well == ["The standby answers.", "It follows this database."]
    assert [about.rpartition(" ")[2] for about in faults] == ["it.", "writes."]
    assert all("target_session_attrs=standby" in mend for mend in faults.values())


def test_the_doctor_says_that_it_is_another_database_or_cluster(pair: Pair) -> None:
    with led_to({**connections["standby"].settings_dict, "NAME": "postgres"}):
        _, faults = examine_standby()
    assert faults == {
        "GATEWAY_STANDBY_URL names the database postgres, DATABASE_URL tollhouse.": "GATEWAY_STANDBY_URL: …/tollhouse"
    }
    with led_to(pair.elsewhere):
        _, faults = examine_standby()
    assert any(about.startswith("The standby is of another cluster") for about in faults)


def test_the_doctor_says_that_it_does_not_answer_and_tells_no_password(pair: Pair) -> None:
    secret = {"PORT": str(free_port()), "PASSWORD": "geheim"}
    with led_to({**connections["standby"].settings_dict, **secret}):
        well, faults = examine_standby()
    assert well == []
    (about,) = faults
    assert about.startswith("The standby does not answer: ConnectionTimeout") or "OperationalError" in about
    assert "geheim" not in str(faults)


def test_without_the_setting_the_doctor_looks_at_no_standby() -> None:
    with override_settings(GATEWAY_STANDBY_URL=""):
        ((level, _about, _mend),) = standby_part.examine_standby(DoctorQuestion())
    assert level is FindingLevel.SKIPPED


# --- what threads and processes share -------------------------------------------------------------------------------


@pytest.fixture
def forgotten() -> Iterator[None]:
    forget_standby()
    yield
    forget_standby()


def build_sample(since: float, position: int) -> standby._Sample:
    return standby._Sample(position=position, database="one", system=1, at=clock.real_now(), since=since)


def test_an_answer_of_the_primary_that_comes_late_is_left_out(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "SAMPLE_INTERVAL_S", 0.0)

    def take(since: float, position: int) -> list[tuple[float, int]]:
        monkeypatch.setattr(standby, "_sample_primary", lambda: build_sample(since, position))
        standby._take_sample()
        return [(one.since, one.position) for one in standby._known.samples]

    assert take(1.0, 10) == [(1.0, 10)]
    assert take(3.0, 30) == [(1.0, 10), (3.0, 30)]
    assert take(2.0, 20) == [(1.0, 10), (3.0, 30)]
    # A later answer that is lower comes from another primary.
    assert take(4.0, 25) == [(4.0, 25)]


def test_the_standby_is_compared_with_a_sample_under_the_lock(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread has cleared the samples and adds its own before it lets go of the lock."""

    class OtherThread:
        def __enter__(self) -> None:
            standby._known.samples.append(build_sample(1.0, 10))

        def __exit__(self, *fault: object) -> None:
            pass

    monkeypatch.setattr(standby, "_ask", lambda alias, sql: [(7, "one", 1)])
    monkeypatch.setattr(standby, "_lock", OtherThread())
    assert standby._ask_standby() == 7
    monkeypatch.undo()


def test_a_forked_process_has_a_lock_and_samples_of_its_own(forgotten: None, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Lock()
    held.acquire()
    monkeypatch.setattr(standby, "_lock", held)
    standby._known.samples.append(build_sample(1.0, 10))
    standby._known.paused_until = 1.0
    child = os.fork()
    if child == 0:
        is_new = not standby._lock.locked() and not standby._known.samples and standby._known.paused_until == 0.0
        os._exit(0 if is_new else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(standby._known.samples) == 1
    monkeypatch.undo()


# --- what can never happen ------------------------------------------------------------------------------------------


def test_nothing_is_written_while_reading_from_the_standby(pair: Pair) -> None:
    def write_statement() -> None:
        write = WriteStatement()
        write.insert(RequestLog)
        write.run()

    writes: list[Callable[[], Any]] = [
        write_statement,
        lambda: RequestLog.objects.create(),
        lambda: Payment.objects.update(status="APPROVED"),
        lambda: list(Payment.objects.select_for_update()),
    ]
    for write in writes:
        with pytest.raises(standby.StandbyWriteError):
            standby.read_elsewhere(write)
    # And the server itself refuses.
    with pytest.raises(DatabaseError, match="read-only"), connections["standby"].cursor() as cursor:
        cursor.execute("DELETE FROM gateway_paymentevent")


def test_a_row_of_the_standby_is_never_saved(pair: Pair) -> None:
    payment, as_of = standby.read_elsewhere(lambda: Payment.objects.earliest("created_at"))
    assert as_of is not None
    assert payment._state.db == "standby"
    with pytest.raises(standby.StandbyWriteError):
        payment.save()
    with pytest.raises(standby.StandbyWriteError):
        payment.delete()
    query = transaction_query.query_from_parameters({**PERIOD}, pair.shop.merchant, None)
    page, _ = standby.read_elsewhere(lambda: transaction_query.find_transactions(query))
    for row in (payment, page.payments[0]):
        with pytest.raises(standby.StandbyWriteError):
            WriteStatement().update(row, {"status": "APPROVED"})
    # What it leads to, and what is read again, comes from the primary.
    payment.refresh_from_db()
    assert payment._state.db == "default"
    assert payment.channel._state.db == "default"


def test_a_transaction_reads_where_it_writes(pair: Pair) -> None:
    with pair.watch() as sent:
        with transaction.atomic():
            assert standby.read_elsewhere(Payment.objects.count)[1] is None
        assert sent["standby"] == []

        def begin() -> None:
            with transaction.atomic(using="default"):
                Payment.objects.count()
                read_sql("SELECT 1", [])

        standby.read_elsewhere(begin)
        assert sent["standby"] == []


def test_statements_that_do_not_ask_for_it_stay_on_the_primary(pair: Pair) -> None:
    """Locks, and whatever is read by ``execute_sql``."""
    with pair.watch() as sent:
        standby.read_elsewhere(lambda: execute_sql("SELECT pg_try_advisory_xact_lock(7)", []))
    assert sent["standby"] == []
    assert len(sent["default"]) == 1


def test_without_the_setting_nothing_is_asked(pair: Pair) -> None:
    with override_settings(GATEWAY_STANDBY_URL="", DATABASE_ROUTERS=[]), pair.watch() as sent:
        assert standby.read_elsewhere(Payment.objects.count)[1] is None
        assert standby.build_as_of_header(None) == {}
    assert sent["standby"] == []
    assert len(sent["default"]) == 1

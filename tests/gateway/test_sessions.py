"""Threads share sessions of PostgreSQL: who has one, who waits, what happens to one that broke. Decision 0161."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, connections, transaction

from config import web_worker
from config.web_worker import RequestQueue
from gateway.api import token_admission
from gateway.db import sessions
from gateway.db.sessions import SessionPool, end_request, keep_session, pause_work, share_sessions
from gateway.db.statement import execute_sql

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0


class Shop:
    """Threads that share the sessions of one gate, at first two. Each runs the calls that it is given."""

    def __init__(self) -> None:
        self._threads: list[ThreadPoolExecutor] = []
        self.gate = RequestQueue(2)

    def thread(self) -> Callable[[Callable[[], Any]], Any]:
        """A new thread; call it with what is to be done there."""
        one = ThreadPoolExecutor(1, initializer=share_sessions, initargs=(self.gate,))
        self._threads.append(one)
        return lambda do: one.submit(do).result(PATIENCE_S)

    def end(self) -> None:
        for one in self._threads:
            one.submit(lambda: connection.close()).result(PATIENCE_S)
            one.shutdown()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(sessions, "_pools", {})
    found = Shop()
    yield found
    found.end()
    pool().close_idle()
    assert pool().open == 0


def pool() -> SessionPool:
    return sessions._pools.setdefault("default", SessionPool(2))


def pid() -> int:
    """The session's number at PostgreSQL."""
    number: int = execute_sql("SELECT pg_backend_pid()", [])[0][0]
    return number


def pid_and_pause() -> int:
    number = pid()
    pause_work()
    return number


def _end_sessions(numbers: list[int]) -> None:
    """As the server's end does; waits until they are gone."""
    for number in numbers:
        execute_sql("SELECT pg_terminate_backend(%s::int, 5000)", [number])


def test_a_thread_takes_the_session_that_came_back_last(shop: Shop) -> None:
    first, second, third = (shop.thread() for _ in range(3))
    one, two = first(pid), second(pid)
    assert one != two
    first(pause_work)
    second(pause_work)
    assert third(pid_and_pause) == two
    assert first(pid) == two
    assert third(pid) == one
    assert pool().open == 2


def test_no_more_sessions_are_open_than_the_threads_share(shop: Shop) -> None:
    threads = [shop.thread() for _ in range(8)]
    assert len({thread(pid_and_pause) for thread in threads for _ in range(3)}) == 1
    together = [ThreadPoolExecutor(1, initializer=share_sessions, initargs=(shop.gate,)) for _ in range(8)]

    def work() -> set[int]:
        found = set()
        for _ in range(20):
            found.add(pid())
            pause_work()
        return found

    seen = set().union(*(one.result(PATIENCE_S) for one in [each.submit(work) for each in together]))
    for each in together:
        each.shutdown()
    assert len(seen) <= 2
    assert pool().open <= 2


def test_who_may_not_work_waits_for_his_turn(shop: Shop) -> None:
    shop.gate = RequestQueue(1)
    first, second = shop.thread(), shop.thread()
    own = first(pid)
    waiting: list[int] = []
    other = threading.Thread(target=lambda: waiting.append(second(pid_and_pause)))
    other.start()
    time.sleep(0.2)
    assert waiting == []
    first(pause_work)
    other.join(PATIENCE_S)
    assert waiting == [own]


def test_who_waits_in_vain_opens_one_more(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds a session and hangs must not stop a process for good."""
    monkeypatch.setattr(web_worker, "RETURN_PATIENCE_S", 0.05)
    shop.gate = RequestQueue(1)
    first, second = shop.thread(), shop.thread()
    assert first(pid) != second(pid)
    assert pool().open == 2


def test_other_threads_keep_their_own(shop: Shop) -> None:
    thread = shop.thread()
    own = pid()
    pause_work()
    assert connection.connection is not None
    assert pid() == own
    assert thread(pid_and_pause) != own
    assert pool().open == 1


def test_a_session_in_a_transaction_is_not_given_back(shop: Shop) -> None:
    def within() -> bool:
        with transaction.atomic():
            before = pid()
            pause_work()
            return connection.connection is not None and pid() == before

    thread = shop.thread()
    assert thread(within)
    thread(pause_work)
    assert thread(lambda: connection.connection) is None


def test_a_session_with_a_lock_of_its_own_is_kept(shop: Shop) -> None:
    def within() -> tuple[bool, bool]:
        with keep_session():
            execute_sql("SELECT pg_advisory_lock(7, 7)", [])
            with keep_session():
                pass
            pause_work()
            held = connection.connection is not None
            return held, execute_sql("SELECT pg_advisory_unlock(7, 7)", [])[0][0]

    thread = shop.thread()
    assert thread(within) == (True, True)
    thread(pause_work)
    assert thread(lambda: connection.connection) is None


def test_what_outlives_its_transaction_is_used_in_a_kept_session() -> None:
    """A lock of a session that was given back would be somebody else's."""
    held = re.compile(r"pg_(?:try_)?advisory_lock(?:_shared)?\b")
    files = [path for app in ("gateway", "checkout", "reporting", "chargebacks") for path in (ROOT / app).rglob("*.py")]
    found = [path for path in files if held.search(path.read_text())]
    assert len(found) >= 6
    assert [path for path in found if "with keep_session():" not in path.read_text()] == []


def test_a_broken_session_takes_the_idle_ones_with_it(shop: Shop, django_db_blocker: Any) -> None:
    """After a restart of the server all are broken: the second try must not find the next broken one."""
    first, second = shop.thread(), shop.thread()
    ended = [first(pid), second(pid)]
    first(pause_work)
    for number in ended:
        execute_sql("SELECT pg_terminate_backend(%s::int)", [number])

    def fail_and_try_again() -> int:
        with pytest.raises(OperationalError):
            pid()
        connection.close()
        return pid()

    assert second(fail_and_try_again) not in ended
    assert pool().open == 1
    assert first(pid) not in ended


def test_a_fault_of_its_session_is_looked_at_as_the_request_ends(shop: Shop) -> None:
    """As before: what failed stays with its thread, and Django closes it where it is not usable."""
    thread = shop.thread()
    number = thread(pid)
    execute_sql("SELECT pg_terminate_backend(%s::int)", [number])

    def fail() -> bool:
        with pytest.raises(OperationalError):
            pid()
        pause_work()
        kept = connection.connection is not None
        connection.close_if_unusable_or_obsolete()
        pause_work()
        return kept

    assert thread(fail)
    assert pool().open == 0
    assert thread(pid) != number


def _first_statement() -> int:
    """As a request begins and ends."""
    try:
        number: int = token_admission._execute_with_reconnect("SELECT pg_backend_pid()", {})[0][0]
        return number
    finally:
        connection.close_if_unusable_or_obsolete()
        end_request()


@pytest.mark.parametrize("age_s", [-1_000, 1_000])
def test_every_request_recovers_by_one_retry_after_a_restart_of_the_server(shop: Shop, age_s: int) -> None:
    """Also where the sessions are too old: after a quiet half hour all are."""
    shop.gate = RequestQueue(4)
    threads = [shop.thread() for _ in range(4)]
    ended = [thread(pid) for thread in threads]
    for thread in threads:
        thread(lambda: setattr(connection, "close_at", time.monotonic() + age_s))
        thread(end_request)
        thread(pause_work)
    _end_sessions(ended)
    assert all(threads[0](_first_statement) not in ended for _ in range(4))


def test_a_session_of_the_time_of_a_broken_one_is_closed_as_it_comes_back(shop: Shop) -> None:
    first, second = shop.thread(), shop.thread()
    ended = [first(pid), second(pid)]
    _end_sessions(ended)

    def fail_and_try_again() -> int:
        with pytest.raises(OperationalError):
            pid()
        connection.close()
        second(pause_work)
        return pid()

    assert first(fail_and_try_again) not in ended
    assert pool().open == 1


def test_a_connection_for_a_moment_leaves_the_idle_ones(shop: Shop) -> None:
    """Django opens one to ask for the server's version."""
    shop.gate = RequestQueue(3)
    threads = [shop.thread() for _ in range(3)]
    sessions._pools["default"] = SessionPool(3)
    for thread in threads:
        thread(pid)
    for thread in threads:
        thread(pause_work)
    assert pool().open == 3

    def ask() -> None:
        with connection.temporary_connection() as cursor:
            cursor.execute("SELECT 1")

    threads[0](ask)
    assert pool().open == 2


def test_sessions_beyond_the_bound_are_closed_as_they_come_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a stall of the database, in which those that came back opened more."""
    monkeypatch.setattr(web_worker, "RETURN_PATIENCE_S", 0.05)
    threads = [shop.thread() for _ in range(4)]
    for thread in threads:
        thread(pid)
    assert pool().open == 4
    for thread in threads:
        thread(pause_work)
    assert pool().open == 2


def test_a_session_with_a_named_cursor_is_given_back_at_the_end_alone(shop: Shop) -> None:
    """The cursor of a long list that is written as it is read lives in its session."""

    def read() -> tuple[bool, list[int]]:
        with connection.chunked_cursor() as cursor:
            cursor.execute("SELECT generate_series(1, 300)")
            numbers = [row[0] for row in cursor.fetchmany(3)]
            pause_work()
            kept = connection.connection is not None
            return kept, numbers + [row[0] for row in cursor.fetchall()]

    thread = shop.thread()
    assert thread(read) == (True, list(range(1, 301)))
    thread(end_request)
    assert thread(lambda: connection.connection) is None


def test_health_checks_that_are_asked_for_are_made_on_sessions_that_were_taken(shop: Shop) -> None:
    first, second = shop.thread(), shop.thread()

    def ask() -> None:
        connection.settings_dict["CONN_HEALTH_CHECKS"] = True
        pid()
        pause_work()

    first(ask)
    second(ask)
    second(pid)
    assert second(lambda: (connection.health_check_enabled, connection.health_check_done)) == (True, False)


def test_a_session_that_is_too_old_is_closed_alone(shop: Shop) -> None:
    first, second = shop.thread(), shop.thread()
    old, young = first(pid), second(pid)
    second(pause_work)

    def grow_old() -> None:
        connection.close_at = time.monotonic() - 1
        connection.close_if_unusable_or_obsolete()
        pause_work()

    first(grow_old)
    assert pool().open == 1
    assert first(pid_and_pause) == young
    assert young != old


def test_the_time_of_a_session_goes_with_it(shop: Shop) -> None:
    first, second = shop.thread(), shop.thread()
    first(pid)
    first(lambda: setattr(connection, "close_at", 12.5))
    first(pause_work)
    second(pid)
    assert second(lambda: connection.close_at) == 12.5


def test_one_that_cannot_be_opened_is_not_counted(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise psycopg.OperationalError("too many clients")

    thread = shop.thread()
    with monkeypatch.context() as patched:
        patched.setattr(psycopg, "connect", refuse)
        for _ in range(3):
            with pytest.raises(OperationalError):
                thread(pid)
    assert pool().open == 0
    assert thread(pid)


def test_prepared_statements_go_with_their_session(shop: Shop) -> None:
    threads = [shop.thread() for _ in range(3)]

    def ask() -> tuple[int, int]:
        asked = execute_sql("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%shared %%'", [])[0][0]
        execute_sql("SELECT 'shared ' || %s::int", [1])
        pause_work()
        return connections.settings["default"]["CONN_MAX_AGE"], asked

    found = [thread(ask)[1] for thread in threads]
    assert found == [1, 2, 2]


def test_a_connection_of_another_backend_is_left_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = shop.thread()
    thread(pid)
    thread(lambda: monkeypatch.setattr(connections, "all", lambda initialized_only=False: [object()]))
    thread(pause_work)
    thread(end_request)
    monkeypatch.undo()
    thread(pause_work)
    assert thread(lambda: connection.connection) is None


def test_work_of_django_itself_takes_a_session_too(shop: Shop) -> None:
    """The ORM, a cursor and a transaction."""

    def work() -> list[Any]:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            found = cursor.fetchone()
        pause_work()
        return [found, connection.connection]

    thread = shop.thread()
    assert thread(work) == [(1,), None]
    assert thread(work) == [(1,), None]
    assert pool().open == 1

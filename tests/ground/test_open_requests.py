"""What a live server still answers when its test has ended is waited for."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any

import psycopg
import pytest
import requests
from django.db import connection, transaction

from gateway.models import Merchant
from tests.ground.conftest import eventually
from tests.support import emptying
from tests.support.fixtures import Shop, open_division
from tests.support.open_requests import OpenRequests, open_requests
from tests.support.threads import InThread


def test_a_request_is_open_until_its_answer_is_closed() -> None:
    seen = OpenRequests()
    closed: list[bool] = []

    class Body(list[bytes]):
        def close(self) -> None:
            closed.append(seen.wait(0))

    answer: Any = seen.counting(lambda environ, start: Body([b"one"]))({}, lambda *_: None)
    assert list(answer) == [b"one"]
    assert not seen.wait(0)
    answer.close()
    assert closed == [False]
    assert seen.wait(0)


def test_a_request_that_fails_is_not_open() -> None:
    seen = OpenRequests()

    def application(environ: dict[str, Any], start: Any) -> Any:
        raise LookupError

    with pytest.raises(LookupError):
        seen.counting(application)({}, lambda *_: None)
    assert seen.wait(0)


def test_a_request_of_the_live_server_is_waited_for(live_server: Any, committed: Shop) -> None:
    asked = threading.Thread(
        target=lambda: requests.get(
            f"{live_server.url}/v1/query/{'0' * 32}",
            params={"entityId": committed.channel.entity_id},
            headers={"Authorization": f"Bearer {committed.api.token}"},
            timeout=60,
        )
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE gateway_accesstoken IN ACCESS EXCLUSIVE MODE")
        asked.start()
        assert eventually(lambda: not open_requests.wait(0))
    assert open_requests.wait()
    asked.join()


def test_the_tables_are_emptied_though_a_late_request_stands_in_the_way(transactional_db: None) -> None:
    """It has locked what the emptying deletes later, and waits for what it has deleted: PostgreSQL ends the emptying's
    transaction or the request's."""
    one = emptying.Emptying()
    merchant = Merchant.objects.create(name="one", division=open_division())
    with psycopg.connect(os.environ["DATABASE_URL"], dbname=connection.settings_dict["NAME"]) as late:
        late.execute("UPDATE gateway_psp SET name = 'x'")  # after division and merchant by name
        ended = InThread(one.empty)
        ended.start()
        assert eventually(_emptying_waits)
        with contextlib.suppress(psycopg.errors.DeadlockDetected):
            late.execute("UPDATE gateway_merchant SET name = 'x'")
            late.rollback()
    assert ended.end() is None
    one.close()
    assert not Merchant.objects.filter(id=merchant.id).exists()


def _emptying_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'",
            [emptying.NAME],
        )
        return bool(cursor.fetchone()[0])

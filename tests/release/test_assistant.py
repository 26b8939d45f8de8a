"""The command line's MCP server: what an assistant may ask is answered by a running gateway, and nothing is changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.test import override_settings
from pytest_django.live_server_helper import LiveServer

from gateway.models import Payment, RequestLog
from gateway.portal.client_packages import CLIENTS_DIR
from tests.support.fixtures import Shop
from tests.support.threads import run_coroutine

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def assistant(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the package, from its sources."""
    monkeypatch.syspath_prepend(str(CLIENTS_DIR / "python" / "src"))
    return import_module("tollhouse.cli.assistant")


@pytest.fixture
def tools(assistant: Any, live_server: LiveServer, committed: Shop) -> Iterator[Any]:
    _, token = committed.issue(scopes=["read"])
    client = import_module("tollhouse").Tollhouse
    with (
        override_settings(GATEWAY_BASE_URL=live_server.url),
        client(live_server.url, token=token, entity_id=committed.channel.entity_id) as gateway,
    ):
        found = assistant.ReadingTools(gateway, live_server.url)
        yield found
        found.close()


def test_why_was_an_order_declined(tools: Any, committed: Shop) -> None:
    declined = committed.api.pay(**{"card.number": "4000015500000005", "merchantTransactionId": "order-4711"})
    before = (Payment.objects.count(), RequestLog.objects.count())
    told = tools.explain_order("order-4711")
    (payment,) = told["payments"]
    assert payment["id"] == declined.id
    assert told["resultCodes"]["800.100.155"]["family"] == "Declined by the bank"
    assert told["resultCodes"]["800.100.155"]["whatToDo"]
    assert "4000015500000005" not in str(told)
    assert tools.get_payment(declined.id)["result"]["code"] == "800.100.155"
    assert tools.explain_order("no-such-order")["payments"] == []
    assert (Payment.objects.count(), RequestLog.objects.count()) == before


def test_periods_settlements_and_documents_are_read(tools: Any, committed: Shop) -> None:
    paid = committed.api.pay()
    found = tools.find_payments("2026-01-01 00:00:00", "2099-01-01 00:00:00", "DB")
    assert paid.id in str(found)
    assert "result" in tools.list_settlements("2026-05-14", "2026-05-15")
    assert "result" in tools.list_settlement_records("0" * 32)
    assert tools.search_docs("refund")[0]["url"].startswith("/docs/")
    assert tools.read_document("/docs/follow-ups#refund").startswith("# Follow-ups")


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("get_payment", "../checkouts"),
        ("list_settlement_records", "x"),
        ("explain_result_code", "800"),
        ("explain_result_code", "999.999.998"),
        ("read_document", "../../etc/passwd"),
        ("read_document", "no-such-page"),
    ],
)
def test_what_is_no_name_is_refused(tools: Any, tool: str, words: str) -> None:
    with pytest.raises(import_module("tollhouse.errors").TollhouseError):
        getattr(tools, tool)(words)


def test_without_its_sdk_the_server_names_the_extra(assistant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(import_module("tollhouse.errors").TollhouseError, match=r"tollhouse-client\[mcp\]"):
        assistant.build_server(None)


def test_the_server_offers_the_tools_as_read_only(assistant: Any, tools: Any) -> None:
    mcp = pytest.importorskip("mcp", reason="the official SDK is an extra of the package")

    async def list_tools() -> list[Any]:
        async with mcp.Client(assistant.build_server(tools)) as client:
            return list((await client.list_tools()).tools)

    offered = run_coroutine(list_tools())
    assert [one.name for one in offered] == [one.__name__ for one in assistant.list_tools(tools)]
    assert all(one.annotations.read_only_hint for one in offered)

"""A read-only MCP server over one gateway, for assistants: payments, reports, result codes and the docs.

It asks with the token of the command line and sees what that token's scope `read` lets it see; only GET is ever sent.
The protocol is the official SDK's (`pip install "tollhouse-client[mcp]"`), over standard input and output.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from tollhouse._model import Answer
from tollhouse._sync.client import Tollhouse
from tollhouse.errors import ApiError, TollhouseError

INSTRUCTIONS = (
    "Reads a Tollhouse payment gateway and changes nothing. To say why an order was declined: explain_order with the "
    "merchant's order number. Amounts are texts with their currency. Card numbers are masked; ids are as the merchant "
    "sent them."
)
MAX_ROWS = 50
MAX_DOCUMENT_CHARS = 40_000
_ID = re.compile(r"[0-9a-f]{32}")
_CODE = re.compile(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}")
_DOCUMENT = re.compile(r"[a-z0-9][a-z0-9/-]{0,100}")
_MISSING_SDK = 'the MCP server needs its SDK: pip install "tollhouse-client[mcp]"'


class ReadingTools:
    """What an assistant may ask. Each method is one tool; its docstring is what the assistant reads."""

    def __init__(self, gateway: Tollhouse, base: str) -> None:
        self._gateway = gateway
        self._site = httpx.Client(base_url=base.rstrip("/"), timeout=30, follow_redirects=False)

    def explain_order(self, order: str) -> dict[str, Any]:
        """Why a merchant's order (merchantTransactionId) was paid or declined: its payments and captures, refunds and
        reversals linked to them, each with its result code explained."""
        found = self._read(
            "/v1/query",
            {"merchantTransactionId": order, "includeLinkedTransactions": "true"},
        )
        payments = found.get("payments") or []
        codes = {str((one.get("result") or {}).get("code", "")) for one in payments} - {""}
        meanings = {code: self.explain_result_code(code) for code in sorted(codes)}
        return {"order": order, "payments": payments[:MAX_ROWS], "resultCodes": meanings, "result": found.get("result")}

    def find_payments(self, date_from: str, date_to: str, payment_types: str = "", page: int = 1) -> dict[str, Any]:
        """Payments of a period, a hundred a page, the oldest first. date_from and date_to: 2026-05-01 00:00:00 (UTC).
        payment_types: DB,PA,CP,RF,RV,CB,CR, comma between."""
        wanted = {"date.from": date_from, "date.to": date_to, "pageNo": str(page)}
        return self._read("/v3/query", {**wanted, **({"paymentTypes": payment_types} if payment_types else {})})

    def get_payment(self, payment_id: str) -> dict[str, Any]:
        """One payment as it stands, by its id of 32 letters and digits."""
        if not _ID.fullmatch(payment_id):
            raise TollhouseError("payment_id has 32 letters and digits, as the API's id")
        return self._read(f"/v1/payments/{payment_id}", {})

    def list_settlements(self, date_from: str, date_to: str, page: int = 1) -> dict[str, Any]:
        """Settlements of a period with their sums: what institutes paid out. Dates: 2026-05-14."""
        wanted = {"date.from": date_from, "date.to": date_to, "pageNo": str(page)}
        return self._read("/reports/v2/reconciliations/aggregations", wanted)

    def list_settlement_records(self, settlement_id: str, page: int = 1) -> dict[str, Any]:
        """The records of one settlement: payments, chargebacks, fees."""
        if not _ID.fullmatch(settlement_id):
            raise TollhouseError("settlement_id has 32 letters and digits, as list_settlements gives it")
        return self._read(f"/reports/v2/reconciliations/aggregations/{settlement_id}", {"pageNo": str(page)})

    def explain_result_code(self, code: str) -> dict[str, Any]:
        """What a result code such as 800.100.155 means, what to do next, and what a shopper may be told."""
        if not _CODE.fullmatch(code):
            raise TollhouseError("a result code is three numbers of three digits: 800.100.155")
        found = self._ask_site("/docs/result-codes.json", {"code": code})
        return found if isinstance(found, dict) else {}

    def search_docs(self, query: str) -> list[dict[str, str]]:
        """Pages, sections, parameters and result codes of the gateway's documentation that contain these words."""
        found = self._ask_site("/docs/search.json", {"q": query})
        hits = found.get("found", []) if isinstance(found, dict) else []
        return [{name: str(one.get(name, "")) for name in ("title", "kind", "text", "url")} for one in hits]

    def read_document(self, name: str) -> str:
        """A page of the documentation as Markdown. Its name is the end of its address: follow-ups."""
        name = name.removeprefix("/docs/").partition("#")[0] or "quick-start"
        if not _DOCUMENT.fullmatch(name):
            raise TollhouseError("a document's name is the end of its address: follow-ups")
        answer = self._site.get(f"/docs/{name}.md")
        if answer.status_code != 200:
            raise TollhouseError(f"there is no document {name}")
        return answer.text[:MAX_DOCUMENT_CHARS]

    def close(self) -> None:
        """Close the connections."""
        self._site.close()

    def _read(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        """A GET of the API. A decline and a query that finds nothing are answers."""
        try:
            return self._gateway.request("GET", path, dict(parameters), answer=Answer).to_dict()
        except ApiError as error:
            if error.status in (400, 404):
                return dict(error.body)
            raise

    def _ask_site(self, path: str, parameters: Mapping[str, str]) -> Any:
        answer = self._site.get(path, params=dict(parameters))
        if answer.status_code == 404:
            raise TollhouseError("the gateway does not know that")
        answer.raise_for_status()
        return answer.json()


def list_tools(tools: ReadingTools) -> list[Callable[..., Any]]:
    """The methods that are offered to an assistant."""
    return [
        tools.explain_order,
        tools.find_payments,
        tools.get_payment,
        tools.list_settlements,
        tools.list_settlement_records,
        tools.explain_result_code,
        tools.search_docs,
        tools.read_document,
    ]


def build_server(tools: ReadingTools) -> Any:
    """The SDK's server with the tools, marked as read-only. Raises TollhouseError without the SDK."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ToolAnnotations
    except ImportError:
        raise TollhouseError(_MISSING_SDK) from None
    server = MCPServer("tollhouse", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in list_tools(tools):
        offered = _with_errors_told(tool, ToolError)
        server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))(offered)
    return server


def _with_errors_told(tool: Callable[..., Any], tool_error: type[Exception]) -> Callable[..., Any]:
    """``tool`` with our errors as the SDK's: others it hides from the assistant."""

    @functools.wraps(tool)
    def ask(*words: Any, **named: Any) -> Any:
        try:
            return tool(*words, **named)
        except (TollhouseError, httpx.HTTPError) as error:
            raise tool_error(str(error)) from None

    return ask


def serve(gateway: Tollhouse, base: str) -> int:
    """Answer an assistant over standard input and output until it hangs up."""
    tools = ReadingTools(gateway, base)
    try:
        build_server(tools).run("stdio")
    finally:
        tools.close()
    return 0

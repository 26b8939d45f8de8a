"""A processor of a few lines: its answers are given beforehand, and it records the requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.connectors.card_api.account import CardApiSetup
from gateway.connectors.card_api.operation import CardApiOperation
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse, CardApiSession, FormFields
from gateway.connectors.port import AcquirerRequest
from gateway.core.secret import Secret

Script = Mapping[str, Any]
"""``GET /path`` or ``POST /path`` → an object, a response, or a list of them, one for each call."""


class ScriptedSession:
    """Answers 404 to what is not in its script."""

    def __init__(self, script: Script) -> None:
        self._answers = {name: list(value) if isinstance(value, list) else value for name, value in script.items()}
        self.calls: list[tuple[str, dict[str, str]]] = []

    def get(self, path: str, fields: Sequence[tuple[str, str]] = ()) -> CardApiResponse:
        return self._answer(f"GET {path}", fields)

    def post(self, path: str, fields: FormFields, key: str) -> CardApiResponse:
        return self._answer(f"POST {path}", fields)

    def _answer(self, name: str, fields: FormFields) -> CardApiResponse:
        self.calls.append((name, {key: str(value) for key, value in fields}))
        found = self._answers.get(name)
        if isinstance(found, list):
            found = found.pop(0)
        if found is None:
            return CardApiResponse(kind=CallVerdict.REFUSED, status=404, body={"error": {"code": "resource_missing"}})
        if isinstance(found, CardApiResponse):
            return found
        return CardApiResponse(kind=CallVerdict.DONE, status=200, body=found)

    def asked(self, name: str) -> list[dict[str, str]]:
        """The fields of each call of that name."""
        return [fields for called, fields in self.calls if called == name]


def setup_of(**changes: Any) -> CardApiSetup:
    values: dict[str, Any] = {
        "url": "https://api.example",
        "key": Secret("sk_test_12345"),
        "version": "2025-02-24.acacia",
        "full": True,
        "multicapture": False,
        "mit_reference": True,
    }
    return CardApiSetup(**values | changes)


def operation_of(request: AcquirerRequest, script: Script | None = None, **setup: Any) -> CardApiOperation:
    session = cast("CardApiSession", ScriptedSession(script or {}))
    return CardApiOperation(request=request, setup=setup_of(**setup), session=session)


def calls_of(question: CardApiOperation) -> ScriptedSession:
    return cast("ScriptedSession", question.session)

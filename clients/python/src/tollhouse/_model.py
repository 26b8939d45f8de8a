"""Answers as objects: fields under the names of the API, sums as Decimal, new fields kept.

A model's fields are annotated in `tollhouse.models`; what the API sends besides is there, too: ``payment["customer"]``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Literal

from tollhouse._constants import OUTCOME_PATTERNS

Outcome = Literal["approved", "review", "pending", "chargeback", "declined"]


class Model:
    """An object of an answer. A field that was not sent is None. Its repr shows no content."""

    _TYPES: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in type(self).__annotations__:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        return _convert(self._data.get(name), self._TYPES.get(name))

    def __getitem__(self, name: str) -> Any:
        """A field as JSON has it, one that this version does not know, too. Raises KeyError."""
        return self._data[name]

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Model) and other._data == self._data

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def to_dict(self) -> dict[str, Any]:
        """A copy of the JSON object."""
        return copy.deepcopy(dict(self._data))


def _convert(value: Any, wanted: Any) -> Any:
    if value is None or wanted is None:
        return value
    if isinstance(value, list):
        return [_convert(one, wanted) for one in value]
    if wanted is Decimal:
        try:
            return Decimal(str(value))
        except InvalidOperation:
            return None
    return wanted(value) if isinstance(value, Mapping) else value


class Answer(Model):
    """An answer with a result. ``http_status``; ``idempotency_key``: the key it was asked with; ``replayed``: the
    answer to an earlier request with this key."""

    def __init__(
        self, data: Mapping[str, Any], *, http_status: int = 200, idempotency_key: str = "", replayed: bool = False
    ) -> None:
        super().__init__(data)
        self.http_status = http_status
        self.idempotency_key = idempotency_key
        self.replayed = replayed

    @property
    def code(self) -> str:
        """The result code: 000.100.110."""
        return str((self._data.get("result") or {}).get("code", ""))

    @property
    def outcome(self) -> Outcome:
        """The result code's family: approved, review (approved, to be looked at), pending, chargeback, or declined."""
        return classify_result_code(self.code)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self._data.get('id', '')!r}, code={self.code!r})"


def classify_result_code(code: str) -> Outcome:
    """The outcome that a result code stands for."""
    found: Any = next((name for name, pattern in OUTCOME_PATTERNS if pattern.match(code)), "declined")
    outcome: Outcome = found
    return outcome

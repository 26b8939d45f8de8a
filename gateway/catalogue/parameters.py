"""An accepted request: its values, and what the answer says about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.lookup import Row
from gateway.catalogue.nesting import mask_account, nest
from gateway.catalogue.structure import Echo


@dataclass(slots=True)
class Parameters:
    """The accepted request. ``values``: full name → value as sent. ``refusals``: well-formed values that are refused
    with a code of their own. ``ignored``: unknown names, as the answer reports them."""

    values: dict[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    refusals: tuple[ParameterError, ...] = ()
    items: list[tuple[Row, tuple[int, ...], str | None, str]] = field(default_factory=list, repr=False)

    def get(self, name: str) -> str | None:
        return self.values.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def map(self, base: str) -> dict[str, str]:
        """The entries of one map parameter, e.g. ``customParameters``."""
        start = base + "["
        return {n[len(start) : -1]: v for n, v in self.values.items() if n.startswith(start)}

    def echo(self) -> dict[str, Any]:
        """Every accepted structure, nested, sparse indexes compacted in order, secrets masked or left out (D17)."""
        return nest(
            (row.path, indexes, key, mask_account(value) if row.param.echo is Echo.MASK else value)
            for row, indexes, key, value in self.items
            if row.param.echo is not Echo.NEVER and not row.param.private
        )

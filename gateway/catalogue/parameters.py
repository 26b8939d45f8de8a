"""An accepted request: its parameters, and their echo in the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.lookup import CompiledParam
from gateway.catalogue.nesting import nest_entries
from gateway.catalogue.rules import RuleInput
from gateway.catalogue.structure import Echo
from gateway.core.secret import Secret


@dataclass(slots=True)
class Parameters:
    """The accepted request. ``values``: full name → value, of all that are not secret; ``secrets``: the others.
    ``refusals``: well-formed values that are refused with a code of their own. ``ignored``: unknown names, as the
    answer reports them. ``masked``: names of free-text parameters in which card data was masked."""

    values: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    refusals: tuple[ParameterError, ...] = ()
    items: list[tuple[CompiledParam, tuple[int, ...], str | None, str | Secret]] = field(
        default_factory=list, repr=False
    )

    def get(self, name: str) -> str | None:
        """The value of a non-secret parameter. LookupError for a secret: use :meth:`secret`."""
        if name in self.secrets:
            raise LookupError(f"{name} is a secret")
        return self.values.get(name)

    def secret(self, name: str) -> Secret | None:
        return self.secrets.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self.values or name in self.secrets

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    @property
    def names(self) -> Iterator[str]:
        """Every name that was sent, secrets included."""
        yield from self.values
        yield from self.secrets

    def sent(self, facts: frozenset[str] = frozenset()) -> RuleInput:
        """The input of rules."""
        return RuleInput(self.values, facts=facts, secrets=self.secrets)

    def drop(self, *names: str) -> None:
        """Remove parameters, as if they had not been sent."""
        for name in names:
            self.values.pop(name, None)
            self.secrets.pop(name, None)
        gone = frozenset(names)
        self.items = [item for item in self.items if item[0].structure.full(item[0].param.name) not in gone]

    def ignore(self, *names: str) -> None:
        """Act as if these parameters had not been sent and report them as ignored; the echo keeps them."""
        for name in names:
            if self.values.pop(name, None) is not None:
                self.ignored = (*self.ignored, name)

    def ignore_secret(self, name: str) -> bool:
        """Drop a secret, so that it goes nowhere, and report it as ignored; False if it was not sent."""
        if name not in self.secrets:
            return False
        self.drop(name)
        self.ignored = (*self.ignored, name)
        return True

    def map(self, base: str) -> dict[str, str]:
        """The entries of one map parameter, e.g. ``customParameters``."""
        start = base + "["
        return {n[len(start) : -1]: v for n, v in self.values.items() if n.startswith(start)}

    def echo(self) -> dict[str, Any]:
        """Every accepted structure, nested, sparse indexes compacted in order, secrets masked or left out (D17)."""
        return nest_entries(
            (row.path, indexes, key, value.reveal() if isinstance(value, Secret) else value)  # a call costs more
            for row, indexes, key, value in self.items
            if row.param.echo is not Echo.NEVER and not row.param.private
        )

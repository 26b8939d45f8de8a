"""A table of the specification as a value: Param rows, their Structure, and operations on it.

One value, many readers: the parser, the echo, masking, OpenAPI, the docs pages and the tests all read these rows.

    BILLING = structure("Billing address", "Part A", "billing",
        ("street1", AN(1, 100), C, "Mandatory for 3D Secure v2."),
        ("houseNumber2", AN(1, 100), O, "requires houseNumber1"),
        rules=[requires("houseNumber2", "houseNumber1")],
    )
    MERCHANT_BILLING = BILLING.at("merchant.billing", title="Merchant billing address", need=O)
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.catalogue.formats import Format, MapKey
from gateway.catalogue.rules import ParameterRule


class Need(enum.StrEnum):
    """The spec's Req column."""

    REQUIRED = "R"
    CONDITIONAL = "C"
    OPTIONAL = "O"


class Echo(enum.StrEnum):
    """Whether an accepted value is echoed: as sent, masked, or never (D17). All but YES are secrets in memory, and
    masked in errors and logs; PROOF is nevertheless echoed as sent."""

    YES = "yes"
    PROOF = "proof"
    MASK = "mask"
    NEVER = "never"


class Demand(enum.StrEnum):
    """When the R rows of a structure are required."""

    ALWAYS = "always"
    WHEN_USED = "when used"
    NEVER = "never"


R, C, O = Need.REQUIRED, Need.CONDITIONAL, Need.OPTIONAL  # noqa: E741 - the spec's own letters
ALWAYS, WHEN_USED, NEVER = Demand.ALWAYS, Demand.WHEN_USED, Demand.NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One row. ``name`` is relative to its structure; ``key`` makes it a map (``customParameters[name]``).

    ``private``: for the merchant's reports only, never echoed. ``forwarded``: may be sent on to an acquirer.
    ``secret``: card or account data that is masked in errors, logs and storage. ``filled``: the default is stored
    and echoed when nothing is sent.
    """

    name: str
    format: Format
    need: Need
    note: str = ""
    echo: Echo = Echo.YES
    key: MapKey | None = None
    default: str = ""
    filled: bool = False
    private: bool = False
    forwarded: bool = True
    deprecated: bool = False

    @property
    def secret(self) -> bool:
        return self.echo is not Echo.YES

    @property
    def base(self) -> str:
        """The name of a map without its ``[key]``."""
        return self.name[: self.name.rindex("[")] if self.key else self.name


StructureRow = tuple[Any, ...] | Param


def _build_param(row: StructureRow) -> Param:
    if isinstance(row, Param):
        return row
    name, form, need, *rest = row
    note = rest[0] if rest and isinstance(rest[0], str) else ""
    extra: dict[str, Any] = rest[-1] if rest and isinstance(rest[-1], dict) else {}
    return Param(name=name, format=form, need=need, note=note, **extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """One table: ``prefix`` is the part of the names before the dot (empty at top level, ``cart.items[n]`` for lists).

    ``demand`` and ``triggers`` say when R rows are required: WHEN_USED means that one of ``triggers`` (default: any
    row) was sent. ``max_items`` bounds the index, 0 to ``max_items - 1``.
    """

    title: str
    source: str
    prefix: str
    rows: tuple[Param, ...]
    rules: tuple[ParameterRule, ...] = ()
    demand: Demand = WHEN_USED
    triggers: frozenset[str] = frozenset()
    max_items: int = 1000
    note: str = ""
    names: dict[str, Param] = field(init=False, repr=False, compare=False)
    required: tuple[Param, ...] = field(init=False, repr=False, compare=False)
    defaults: tuple[Param, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = {row.name: row for row in self.rows}
        if len(named) != len(self.rows):
            raise ValueError(f"{self.title}: a row stands twice")
        object.__setattr__(self, "names", named)
        object.__setattr__(self, "required", tuple(row for row in self.rows if row.need is R))
        object.__setattr__(self, "defaults", tuple(row for row in self.rows if row.default and row.filled))

    def full(self, name: str) -> str:
        """The name as a merchant sends it, e.g. ``billing.street1``."""
        return f"{self.prefix}.{name}" if self.prefix else name

    def at(self, prefix: str, *, title: str, source: str = "", need: Need | None = None, note: str = "") -> Structure:
        """The same table under another prefix, optionally with one need for all rows."""
        rows = self.rows if need is None else tuple(replace(row, need=need) for row in self.rows)
        return replace(
            self,
            prefix=prefix,
            title=title,
            source=source or self.source,
            rows=rows,
            note=note,
            demand=NEVER if need is O else self.demand,
        )

    def without(self, *names: str) -> Structure:
        """The table without some rows, and without the rules that refer to them."""
        gone = frozenset(names)
        if missing := gone - self.names.keys():
            raise KeyError(f"{self.title} has no {', '.join(sorted(missing))}")
        return replace(
            self,
            rows=tuple(row for row in self.rows if row.name not in gone),
            rules=tuple(rule for rule in self.rules if not gone & set(rule.names)),
        )

    def plus(self, *rows: StructureRow) -> Structure:
        """The table with more rows at its end."""
        return replace(self, rows=(*self.rows, *map(_build_param, rows)))

    def demanding(self, demand: Demand) -> Structure:
        """The table with its R rows required always, when used, or never: that depends on the endpoint."""
        return replace(self, demand=demand)

    def needing(self, **needs: Need) -> Structure:
        """The table with the need of some rows changed, for an endpoint that requires more or less."""
        rows = tuple(replace(row, need=needs.get(row.name, row.need)) for row in self.rows)
        return replace(self, rows=rows)


def structure(
    title: str,
    source: str,
    prefix: str,
    *rows: StructureRow,
    rules: Iterable[ParameterRule] = (),
    demand: Demand = WHEN_USED,
    triggers: Iterable[str] = (),
    max_items: int = 1000,
    note: str = "",
) -> Structure:
    """Build one table; ``title``, ``source`` name the spec's heading. Rows: (name, format, need[, note][, {…}])."""
    return Structure(
        title=title,
        source=source,
        prefix=prefix,
        rows=tuple(map(_build_param, rows)),
        rules=tuple(rules),
        demand=demand,
        triggers=frozenset(triggers),
        max_items=max_items,
        note=note,
    )

"""Form pairs into Parameters, or every error at once.

Structures are compiled into one flat lookup: ``cart.items[3].name`` → ``cart.items[].name`` → one dict hit → one
precompiled test. Conditions (rules.py) run afterwards, on the values that were well-formed.
Source: Part A, What the service does, 3; Errors; rulings D10, D16, D17.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.catalogue.rules import Rule, Sent
from gateway.catalogue.structure import Demand, Echo, Param, Structure
from gateway.catalogue.suggest import closest
from gateway.masking import mask_pan, mask_text

INVALID = "200.300.404"
NEAR_MISS_LIMIT = 100
"""Unknown names that are compared with the known ones, per request: more cost time and help nobody."""
REPORTED_LENGTH = 100
"""Characters of a sent name or value that an error repeats."""
HIDDEN = "•••"
LONGEST_NAME = 300
"""Characters of a parameter name; the longest real ones stay below 150."""
MOST_UNKNOWN_ERRORS = 1_000
"""Unknown names reported one by one; a request with more has another problem, and its answer must stay readable."""
MOST_ALTERNATIVES = 15
"""Names an error lists as allowed; a longer list is left to the docs."""

_INDEX = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")


class Policy:
    """What happens to unknown names: a switch of the channel (D16)."""

    NORMAL = "normal"
    STRICT = "strict"
    LENIENT = "lenient"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterError:
    """One fault: ``value`` is what was sent, masked and shortened; None when nothing was sent. ``known``: the endpoint
    takes a parameter of this name, so its reference explains it."""

    name: str
    message: str
    value: str | None = None
    code: str = INVALID
    known: bool = False

    def as_json(self, docs: str = "") -> dict[str, str]:
        """As answers carry it; ``docs`` is the address of the endpoint's reference, for names it explains."""
        body = {"name": self.name}
        if self.value is not None:
            body["value"] = self.value
        body["message"] = self.message
        if docs and self.known:
            body["link"] = f"{docs}#{self.name}"
        return body


class Invalid(Exception):
    """At least one validation error; ``errors`` holds all of them, in the order sent, then what is missing."""

    def __init__(self, errors: Sequence[ParameterError]) -> None:
        super().__init__(", ".join(error.name for error in errors))
        self.errors = tuple(errors)


@dataclass(frozen=True, slots=True)
class Row:
    """A Param compiled: where it stands in the echo (None = an index, the map's key comes last)."""

    param: Param
    structure: Structure
    path: tuple[str | None, ...]


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


def mask_account(value: str) -> str:
    """An account number for its owner's eyes: the last four characters."""
    return "*" * max(len(value) - 4, 0) + value[-4:] if len(value) > 4 else HIDDEN


Entry = tuple[tuple[str | None, ...], tuple[int, ...], str | None, str]


def nest(entries: Iterable[Entry]) -> dict[str, Any]:
    """Build JSON out of flat entries; list positions follow the order of their indexes."""
    top: dict[str, Any] = {}
    lists = False
    for path, indexes, key, value in entries:
        node: Any = top
        position = 0
        steps: list[Any] = [step if step is not None else None for step in path]
        if key is not None:
            steps.append(key)
        last = len(steps) - 1
        for at, step in enumerate(steps):
            if step is None:
                step = indexes[position]
                position += 1
                lists = True
            if at == last:
                node[step] = value
            else:
                node = node.setdefault(step, {})
    return _compact(top) if lists else top


def _compact(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node and all(isinstance(key, int) for key in node):
        return [_compact(node[key]) for key in sorted(node)]
    return {key: _compact(child) for key, child in node.items()}


class Catalogue:
    """The compiled vocabulary of one endpoint.

    ``structures``: what it takes. ``rules``: conditions across structures, by full name. ``elsewhere``: everything
    that is known anywhere, to tell a misplaced parameter from an unknown one. ``aliases``: other names accepted.
    """

    def __init__(
        self,
        structures: Sequence[Structure],
        rules: Sequence[Rule] = (),
        *,
        elsewhere: Sequence[Structure] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.structures = tuple(structures)
        self.rules = tuple(rules)
        self.aliases = dict(aliases or {})
        self._exact, self._maps = _compile(self.structures)
        self._known, self._known_maps = _compile(elsewhere)
        self._roots = {re.split(r"[.\[]", name, maxsplit=1)[0] for name in (*self._exact, *self._known)
                       if "." in name or "[" in name} | self._maps.keys() | self._known_maps.keys()  # fmt: skip
        self._always = [s for s in self.structures if s.demand is Demand.ALWAYS]

    def parse(
        self, pairs: Iterable[tuple[str, str]], *, facts: frozenset[str] = frozenset(), policy: str = Policy.NORMAL
    ) -> Parameters:
        """Check ``pairs`` and return them as Parameters. Raises Invalid with every error at once."""
        run = _Run(self, facts, policy)
        for name, value in pairs:
            run.take(name, value)
        return run.finish()

    def find(self, name: str) -> tuple[Row, tuple[int, ...], str | None] | None:
        """The row a name speaks of, with its indexes and its map key."""
        return _find(name, self._exact, self._maps)

    def loggable(self, name: str, value: str) -> tuple[str, str]:
        """A sent pair as a log may keep it: shortened, secrets hidden, card numbers masked wherever they stand."""
        name = name[:LONGEST_NAME]
        found = self.find(self.aliases.get(name, name))
        shown_value = shown(found[0].param, value) if found else _hidden(name, value, None)
        return shorten(mask_text(name)).replace("\0", "�"), shown_value.replace("\0", "�")

    def is_known_elsewhere(self, name: str) -> bool:
        return _find(name, self._known, self._known_maps) is not None

    def is_inside_a_structure(self, name: str) -> bool:
        return ("." in name or "[" in name) and re.split(r"[.\[]", name, maxsplit=1)[0] in self._roots

    def alternatives(self, name: str) -> tuple[str, list[str]]:
        """The one word of a dotted name that is unknown, and the words that are known in its place, if not too many."""
        words = _INDEX.sub("[]", name).split(".")
        known = [found for found in (full.split(".") for full in self._exact) if len(found) == len(words)]
        for at in reversed(range(len(words))):
            rest = words[:at] + words[at + 1 :]
            fitting = {found[at]: None for found in known if found[:at] + found[at + 1 :] == rest}
            if fitting and len(words) > 1:
                return words[at], list(fitting) if len(fitting) <= MOST_ALTERNATIVES else []
        return "", []

    def meant_by(self, name: str) -> tuple[str, Row] | None:
        """The known name that was probably meant, with the indexes that were sent."""
        indexes = re.findall(r"\[[0-9]*\]", name)
        flat = _INDEX.sub("[]", name)
        found = closest(flat, self._exact)
        if found is None:
            return None
        row, meant = self._exact[found], found
        for index in indexes:
            meant = meant.replace("[]", index if _INDEX.fullmatch(index) else "[0]", 1)
        return meant.replace("[]", "[0]"), row


Compiled = tuple[dict[str, Row], dict[str, Row]]


def _compile(structures: Sequence[Structure]) -> Compiled:
    exact: dict[str, Row] = {}
    maps: dict[str, Row] = {}
    for structure in structures:
        for param in structure.rows:
            full = structure.full(param.base).replace("[n]", "[]")
            row = Row(param, structure, _path(full))
            (maps if param.key else exact)[full] = row
    return exact, maps


def _path(full: str) -> tuple[str | None, ...]:
    steps: list[str | None] = []
    for part in re.findall(r"\[\]|\[[^\]]+\]|[^.\[\]]+", full):
        steps.append(None if part == "[]" else part.strip("[]"))
    return tuple(steps)


def _find(
    name: str, exact: Mapping[str, Row], maps: Mapping[str, Row]
) -> tuple[Row, tuple[int, ...], str | None] | None:
    if row := exact.get(name):
        return (row, (), None) if "[]" not in name else None
    if "[" not in name:
        return None
    if row := exact.get(_INDEX.sub("[]", name)):
        indexes = tuple(int(digits) for digits in _INDEX.findall(name))
        return (row, indexes, None) if len(indexes) == row.path.count(None) else None
    base, _, key = name.partition("[")
    if (row := maps.get(base)) and key.endswith("]"):
        return row, (), key[:-1]
    return None


class _Run:
    """One request on its way through a Catalogue."""

    __slots__ = (
        "_catalogue",
        "_errors",
        "_facts",
        "_faulty",
        "_ignored",
        "_long_name_seen",
        "_policy",
        "_seen",
        "_unknown",
        "_used",
        "params",
    )

    def __init__(self, catalogue: Catalogue, facts: frozenset[str], policy: str) -> None:
        self._catalogue = catalogue
        self._facts = facts
        self._policy = policy
        self._errors: list[ParameterError] = []
        self._faulty: set[str] = set()
        self._ignored: list[str] = []
        self._seen: set[str] = set()
        self._unknown = 0
        self._long_name_seen = False
        self._used: dict[tuple[str, tuple[int, ...]], Structure] = {}
        self.params = Parameters()

    def fault(self, name: str, message: str, value: str | None = None, code: str = INVALID) -> None:
        known = self._catalogue.find(name) is not None
        shown_name = shorten(mask_text(name))
        self._errors.append(ParameterError(name=shown_name, message=message, value=value, code=code, known=known))
        self._faulty.add(name)

    def take(self, name: str, value: str) -> None:
        if len(name) > LONGEST_NAME:
            self._too_long(name, value)
            return
        name = self._catalogue.aliases.get(name, name)
        if name in self._seen:
            if name not in self._faulty:
                self.fault(name, "was sent more than once")
                self.params.values.pop(name, None)
            return
        found = self._catalogue.find(name)
        if not value and (found is None or not found[0].param.format.empty_is_value):
            return
        self._seen.add(name)
        if found is None:
            self._take_unknown(name, value)
            return
        row, indexes, key = found
        param = row.param
        if key is not None and param.key is not None and not param.key.fits(key):
            self.fault(name, f"has a key that must be {param.key.words}, e.g. {param.base}[{param.key.example}]")
            return
        if indexes and max(indexes) >= row.structure.max_items:
            self.fault(
                name, f"has an index above {row.structure.max_items - 1}: at most {row.structure.max_items:,} items"
            )
            return
        self._used[row.structure.prefix + row.structure.title, indexes] = row.structure
        if problem := param.format.problem(value):
            self.fault(name, problem, shown(param, value))
            return
        self.params.values[name] = value
        self.params.items.append((row, indexes, key, value))

    def _too_long(self, name: str, value: str) -> None:
        """No parameter has such a name: it is compared with none, and below our structures one is reported for all."""
        ours = self._policy == Policy.STRICT or self._catalogue.is_inside_a_structure(name)
        if not value or self._policy == Policy.LENIENT or not ours:
            self._ignored.append(name[:LONGEST_NAME])
        elif not self._long_name_seen:
            self._long_name_seen = True
            message = f"is not an allowed parameter: no name has more than {LONGEST_NAME} characters"
            self.fault(name[:LONGEST_NAME], message)

    def _take_unknown(self, name: str, value: str) -> None:
        if self._policy == Policy.LENIENT:
            self._ignored.append(name)
            return
        self._unknown += 1
        if self._unknown > MOST_UNKNOWN_ERRORS:
            if self._unknown == MOST_UNKNOWN_ERRORS + 1:
                self.fault(name, f"is not an allowed parameter; more than {MOST_UNKNOWN_ERRORS:,} are not")
            return
        if self._catalogue.is_known_elsewhere(name):
            self.fault(name, "is not an allowed parameter here: another endpoint takes it", _hidden(name, value, None))
            return
        meant = self._catalogue.meant_by(name) if self._unknown <= NEAR_MISS_LIMIT else None
        if meant or self._policy == Policy.STRICT or self._catalogue.is_inside_a_structure(name):
            hint = f" - did you mean {meant[0]}?" if meant else self._allowed_instead(name)
            self.fault(name, f"is not an allowed parameter{hint}", _hidden(name, value, meant and meant[1].param))
            return
        self._ignored.append(name)

    def _allowed_instead(self, name: str) -> str:
        """Which words may stand where an unknown one does, e.g. the networks of ``threeDSecure.v2.<net>``."""
        if self._unknown > NEAR_MISS_LIMIT:
            return ""
        word, allowed = self._catalogue.alternatives(name)
        return f": in place of {shorten(mask_text(word))} there may be {', '.join(allowed)}" if allowed else ""

    def finish(self) -> Parameters:
        for structure in self._catalogue._always:
            self._used.setdefault((structure.prefix + structure.title, ()), structure)
        for (_, indexes), structure in self._used.items():
            self._check(structure, indexes)
        sent = Sent(self.params.values, facts=self._facts, faulty=self._faulty)
        for rule in self._catalogue.rules:
            self._apply(rule, sent, "")
        if any(error.code == INVALID for error in self._errors):
            raise Invalid(self._errors)
        self.params.refusals = tuple(self._errors)
        self.params.ignored = tuple(shorten(mask_text(name)) for name in self._ignored[:NEAR_MISS_LIMIT])
        return self.params

    def _check(self, structure: Structure, indexes: tuple[int, ...]) -> None:
        prefix = structure.prefix
        for index in indexes:
            prefix = prefix.replace("[n]", f"[{index}]", 1)
        sent = Sent(self.params.values, prefix, self._facts, self._faulty)
        dotted = f"{prefix}." if prefix else ""
        if structure.demand is not Demand.NEVER and (
            structure.demand is Demand.ALWAYS or not structure.triggers or sent.any(*structure.triggers)
        ):
            for param in structure.required:
                name = dotted + param.name
                if name not in self.params.values and name not in self._faulty:
                    self.fault(name, f"is required, e.g. {param.format.example}")
        for param in structure.defaults:
            if (name := dotted + param.name) not in self._seen:
                row = self._catalogue._exact[structure.full(param.name).replace("[n]", "[]")]
                self.params.values[name] = param.default
                self.params.items.append((row, indexes, None, param.default))
        for rule in structure.rules:
            self._apply(rule, sent, dotted)

    def _apply(self, rule: Rule, sent: Sent, dotted: str) -> None:
        for name, message in rule.check(sent):
            full = dotted + name
            if full in self._faulty:
                continue
            value = sent.get(name)
            found = self._catalogue.find(full) if value is not None else None
            self.fault(full, message, shown(found[0].param, value) if found and value is not None else value, rule.code)


def masked(value: str) -> str:
    """A value for an error or a log: cut before it is searched for card numbers, since it may be megabytes."""
    return shorten(mask_text(value[:LONGEST_NAME]))


def shorten(text: str) -> str:
    return text if len(text) <= REPORTED_LENGTH else text[: REPORTED_LENGTH - 1] + "…"


def shown(param: Param, value: str) -> str:
    """A sent value as an error may repeat it: secrets masked, card numbers wherever they hide masked, shortened."""
    if param.name == "number" and value.isdecimal():
        return mask_pan(value)
    if param.secret:
        return HIDDEN
    return masked(value)


def _hidden(name: str, value: str, meant: Param | None) -> str:
    if meant is not None:
        return shown(meant, value)
    secretive = re.search(r"(?i)cvv|cvc|csc|cvn|security|pin|token|cryptogram|dtvc|number", name)
    return HIDDEN if secretive else masked(value)

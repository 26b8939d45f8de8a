"""Parses form pairs into Parameters, or reports every error at once.

Structures are compiled into one flat lookup: ``cart.items[3].name`` → ``cart.items[].name`` → one dict hit → one
precompiled test. Rules (gateway.catalogue.rules) run afterwards, on the values that were well-formed.
Source: Part A, What the service does, 3; Errors; rulings D10, D16, D17.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gateway.catalogue.errors import (
    HIDDEN_VALUE,
    INVALID_PARAMETER_CODE,
    MAX_ERROR_SEARCH_CHARS,
    MAX_LOG_SEARCH_CHARS,
    MAX_REPORTED_NAME_CHARS,
    InvalidParametersError,
    ParameterError,
    SearchBudget,
    hide_reported_value,
    mask_reported_value,
    render_reported_value,
    shorten_reported_value,
)
from gateway.catalogue.free_text_masking import (
    MIN_SEARCHED_DIGITS,
    find_names_holding,
    has_three_digits,
    mask_free_text,
    mask_split_number,
)
from gateway.catalogue.lookup import (
    BRACKETS_PATTERN,
    INDEX_PATTERN,
    CompiledParam,
    compile_structures,
    find_parameter,
    find_root,
)
from gateway.catalogue.nesting import mask_account_number, nest_entries
from gateway.catalogue.parameters import Parameters
from gateway.catalogue.rules import ParameterRule, RuleInput
from gateway.catalogue.structure import Demand, Echo, Structure
from gateway.catalogue.tolerated_names import TOLERATED_NAMES
from gateway.core.card_data_detection import contains_card_data, may_contain_card_number
from gateway.core.masking import mask_text
from gateway.core.secret import Secret, reveal_text
from gateway.core.spelling import find_closest_name

__all__ = [
    "HIDDEN_VALUE",
    "INVALID_PARAMETER_CODE",
    "MAX_REPORTED_NAME_CHARS",
    "Catalogue",
    "InvalidParametersError",
    "ParameterError",
    "Parameters",
    "UnknownNamePolicy",
    "mask_account_number",
    "mask_reported_value",
    "nest_entries",
    "render_reported_value",
    "shorten_reported_value",
]

MAX_NEAR_MISSES = 100
"""Unknown names compared with the known ones, per request: more would cost time and be of no help."""
MAX_UNKNOWN_NAME_ERRORS = 1_000
"""Unknown names reported one by one; a request with more has another problem, and its answer must stay readable."""
MAX_SEARCHED_CHARS = 256 * 1024
"""Characters of all values that may hold a card number: half a second of searching. A cart of 1,000 items with numbers
of twenty digits in a dozen parameters of each has as many."""
MAX_PARAMETER_ERRORS = 5_000
"""Most errors in one answer: five in each of 1,000 items. More of them made answers of megabytes."""
MAX_MAP_KEYS = 500
"""Most keys of one map, such as customParameters: 49,000 of them were once stored and returned with every read."""
MAX_ALTERNATIVES = 15
"""Names an error lists as allowed; a longer list is left to the docs."""


class UnknownNamePolicy:
    """What happens to unknown names: a setting of the channel (D16)."""

    NORMAL = "normal"
    STRICT = "strict"
    LENIENT = "lenient"


class Catalogue:
    """The compiled parameters of one endpoint.

    ``structures``: accepted ones. ``rules``: conditions across structures, by full name. ``elsewhere``: everything
    that is known anywhere, to tell a misplaced parameter from an unknown one. ``aliases``: other accepted names.
    """

    def __init__(
        self,
        structures: Sequence[Structure],
        rules: Sequence[ParameterRule] = (),
        *,
        elsewhere: Sequence[Structure] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.structures = tuple(structures)
        self.rules = tuple(rules)
        self.aliases = dict(aliases or {})
        self._exact, self._maps = compile_structures(self.structures)
        self._plain = {name: (row, (), None) for name, row in self._exact.items() if "[]" not in name}
        self._known, self._known_maps = compile_structures(elsewhere)
        self._roots = (
            {find_root(name) for name in (*self._exact, *self._known) if "." in name or "[" in name}
            | self._maps.keys()
            | self._known_maps.keys()
        )
        self._always = [s for s in self.structures if s.demand is Demand.ALWAYS]

    def parse(
        self,
        pairs: Iterable[tuple[str, str | Secret]],
        *,
        facts: frozenset[str] = frozenset(),
        policy: str = UnknownNamePolicy.NORMAL,
        literal: bool | None = None,
        masks: bool = True,
        budget: SearchBudget | None = None,
    ) -> Parameters:
        """Check ``pairs`` and return them as Parameters. Raises InvalidParametersError with every error at once.
        ``literal``: only the specification's spellings of values are accepted; by default that is what the strict
        ``policy`` does. ``masks``: card data in free text is masked, which a channel may switch off. ``budget``:
        of the searches for the errors, MAX_ERROR_SEARCH_CHARS by default."""
        literal = policy == UnknownNamePolicy.STRICT if literal is None else literal
        run = _RequestParser(self, facts, policy, literal=literal, masks=masks)
        run.budget = budget or run.budget
        run.take_all(pairs)
        return run.finish()

    def find(self, name: str) -> tuple[CompiledParam, tuple[int, ...], str | None] | None:
        """The row of a name, with its indexes and its map key."""
        return self._plain.get(name) or find_parameter(name, self._exact, self._maps)

    def mask_pairs_for_log(self, pairs: Sequence[tuple[str, str | Secret]], most: int) -> list[list[str]]:
        """The first ``most`` pairs as a log shows them. A pair that contains the request's own card number, in any
        notation, is hidden completely."""
        number = next((value for name, value in pairs if name == "card.number"), None)
        texts = [(name, value) for name, value in pairs[:most] if isinstance(value, str)]
        holders = (
            set(find_names_holding(number, texts))
            if isinstance(number, Secret) and len(number) >= MIN_SEARCHED_DIGITS
            else set()
        )
        budget = SearchBudget(MAX_LOG_SEARCH_CHARS)
        return [
            [self.mask_pair_for_log(name, "", budget)[0], HIDDEN_VALUE]
            if name in holders
            else list(self.mask_pair_for_log(name, value, budget))
            for name, value in pairs[:most]
        ]

    def mask_pair_for_log(self, name: str, value: str | Secret, budget: SearchBudget | None = None) -> tuple[str, str]:
        """A sent pair as a log shows it: shortened, secrets hidden, card numbers masked."""
        name = name[:MAX_REPORTED_NAME_CHARS]
        found = self.find(self.aliases.get(name, name))
        shown_value = (
            render_reported_value(found[0].param, value, budget)
            if found
            else hide_reported_value(name, value, None, budget)
        )
        return mask_reported_value(name, budget).replace("\0", "�"), shown_value.replace("\0", "�")

    def is_known_elsewhere(self, name: str) -> bool:
        return find_parameter(name, self._known, self._known_maps) is not None

    def find_map_key_hint(self, name: str) -> str:
        """An example key of the map ``name``; '' if it is not a map."""
        row = self._maps.get(name)
        return row.param.key.example if row is not None and row.param.key is not None else ""

    def find_ignoring_index(self, name: str) -> CompiledParam | None:
        """The row of a list's parameter whose brackets hold no valid index: ``cart.items[1e2].name``."""
        return self._exact.get(BRACKETS_PATTERN.sub("[]", name)) if "[" in name else None

    def is_inside_a_structure(self, name: str) -> bool:
        return ("." in name or "[" in name) and find_root(name) in self._roots

    def alternatives(self, name: str) -> tuple[str, list[str]]:
        """The unknown word of a dotted name, and the known words for its place, if not too many."""
        words = INDEX_PATTERN.sub("[]", name).split(".")
        known = [found for found in (full.split(".") for full in self._exact) if len(found) == len(words)]
        for at in reversed(range(len(words))):
            rest = words[:at] + words[at + 1 :]
            fitting = {found[at]: None for found in known if found[:at] + found[at + 1 :] == rest}
            if fitting and len(words) > 1:
                return words[at], list(fitting) if len(fitting) <= MAX_ALTERNATIVES else []
        return "", []

    def find_meant_parameter(self, name: str) -> tuple[str, CompiledParam] | None:
        """The known name that was probably meant, with the indexes that were sent."""
        indexes = re.findall(r"\[[0-9]*\]", name)
        flat = INDEX_PATTERN.sub("[]", name)
        found = find_closest_name(flat, self._exact)
        if found is None:
            return None
        row, meant = self._exact[found], found
        for index in indexes:
            meant = meant.replace("[]", index if INDEX_PATTERN.fullmatch(index) else "[0]", 1)
        return meant.replace("[]", "[0]"), row


class _RequestParser:
    """The state of parsing one request."""

    __slots__ = (
        "_catalogue",
        "_errors",
        "_facts",
        "_faulty",
        "_ignored",
        "_keys",
        "_literal",
        "_long_name_seen",
        "_masks",
        "_policy",
        "_present",
        "_seen",
        "_unknown",
        "_used",
        "budget",
        "params",
    )

    def __init__(self, catalogue: Catalogue, facts: frozenset[str], policy: str, *, literal: bool, masks: bool) -> None:
        self._catalogue = catalogue
        self._facts = facts
        self._policy = policy
        self._literal = literal
        self._masks = masks
        self._errors: list[ParameterError] = []
        self._faulty: set[str] = set()
        self._present: set[str] = set()  # names that conditions may ask for, and their first parts
        self._ignored: list[str] = []
        self._keys: dict[str, int] = {}
        self._seen: dict[str, str] = {}  # the name → the spelling that it was sent in
        self._unknown = 0
        self._long_name_seen = False
        self.budget = SearchBudget(MAX_ERROR_SEARCH_CHARS)
        self._used: dict[tuple[str, tuple[int, ...]], Structure] = {}
        self.params = Parameters()

    def fault(
        self, name: str, message: str, value: str | None = None, code: str = INVALID_PARAMETER_CODE, *, meant: str = ""
    ) -> None:
        self._faulty.add(name)
        self._present.update((name, name.partition(".")[0]))
        if len(self._errors) >= MAX_PARAMETER_ERRORS:
            if len(self._errors) == MAX_PARAMETER_ERRORS:
                message = f"is wrong, too: only the first {MAX_PARAMETER_ERRORS:,} errors are told"
                self._errors.append(ParameterError(name=shorten_reported_value(mask_text(name)), message=message))
            return
        known = self._catalogue.find(name) is not None
        shown_name = mask_reported_value(name, self.budget)
        self._errors.append(
            ParameterError(name=shown_name, message=message, value=value, code=code, known=known, meant=meant)
        )

    def take_all(self, pairs: Iterable[tuple[str, str | Secret]]) -> None:
        """A method of its own, so that no value is left in the frame that goes on to the rules."""
        for name, value in pairs:
            self.take(name, value)

    def take(self, name: str, value: str | Secret) -> None:
        if len(name) > MAX_REPORTED_NAME_CHARS:
            self._report_long_name(name, value)
            return
        spelt, name = name, self._catalogue.aliases.get(name, name)
        if name in self._seen:
            self._take_repeated(name, spelt, value)
            return
        found = self._catalogue.find(name)
        if not value and (found is None or not found[0].param.format.empty_is_value):
            return
        self._seen[name] = spelt
        if found is None:
            self._take_unknown(name, value)
            return
        row, indexes, key = found
        param = row.param
        if key is not None and param.key is not None and not param.key.fits(key):
            example = f"{name.partition('[')[0]}[{param.key.example}]"
            self.fault(name, f"has a key that must be {param.key.words}, e.g. {example}")
            return
        if key is not None and self._masks and contains_card_data(key):
            self.fault(name, f"has a key that holds card data; it is a name, e.g. {name.partition('[')[0]}[orderRef]")
            return
        if key is not None and self._is_one_key_too_many(row):
            return
        if indexes and max(indexes) >= row.structure.max_items:
            self.fault(
                name, f"has an index above {row.structure.max_items - 1}: at most {row.structure.max_items:,} items"
            )
            return
        self._used[row.structure.prefix + row.structure.title, indexes] = row.structure
        if param.secret:
            self._take_secret(name, value if isinstance(value, Secret) else Secret(value), row, indexes)
            return
        text = value.reveal() if isinstance(value, Secret) else value  # of each parameter: a call costs more
        if param.format.usual is not None and not self._literal:
            text = param.format.usual(text)
        if problem := param.format.problem(text):
            self.fault(name, problem, render_reported_value(param, value, self.budget))
            return
        self.params.values[name] = text
        self.params.items.append((row, indexes, key, text))

    def _take_repeated(self, name: str, spelt: str, value: str | Secret) -> None:
        """A repeated name: an error, unless it is another spelling of it with the same value or none."""
        message, first = "was sent more than once", self._seen[name]
        if first not in ("", spelt):
            self._seen[name] = ""  # Both are sent now: each of them once more is an error.
            if not value or self.params.values.get(name) == reveal_text(value):
                return
            message = f"was sent with two values: as {first} and as {spelt}"
        if name not in self._faulty:
            self.fault(name, message)
            self.params.values.pop(name, None)

    def _is_one_key_too_many(self, row: CompiledParam) -> bool:
        """Count a key of a map; only the first that is too many is reported."""
        base = row.structure.full(row.param.base)
        count = self._keys[base] = self._keys.get(base, 0) + 1
        if count == MAX_MAP_KEYS + 1:
            self.fault(base, f"has too many keys: at most {MAX_MAP_KEYS:,}")
        return count > MAX_MAP_KEYS

    def _take_secret(self, name: str, value: Secret, row: CompiledParam, indexes: tuple[int, ...]) -> None:
        if problem := row.param.format.problem(value.reveal()):
            self.fault(name, problem, render_reported_value(row.param, value, self.budget))
            return
        self.params.secrets[name] = value
        if row.param.echo is Echo.MASK:
            self.params.items.append((row, indexes, None, mask_account_number(value.reveal())))
        elif row.param.echo is Echo.PROOF:
            self.params.items.append((row, indexes, None, value))

    def _report_long_name(self, name: str, value: str | Secret) -> None:
        """Report a name longer than any parameter's: not compared with any, and reported once per structure."""
        ours = self._policy == UnknownNamePolicy.STRICT or self._catalogue.is_inside_a_structure(name)
        if not value or self._policy == UnknownNamePolicy.LENIENT or not ours:
            self._ignored.append(name[:MAX_REPORTED_NAME_CHARS])
        elif not self._long_name_seen:
            self._long_name_seen = True
            message = f"is not an allowed parameter: no name has more than {MAX_REPORTED_NAME_CHARS} characters"
            self.fault(name[:MAX_REPORTED_NAME_CHARS], message)

    def _take_unknown(self, name: str, value: str | Secret) -> None:
        if self._policy == UnknownNamePolicy.LENIENT or (
            name in TOLERATED_NAMES and self._policy != UnknownNamePolicy.STRICT
        ):
            self._ignored.append(name)
            return
        self._unknown += 1
        if self._unknown > MAX_UNKNOWN_NAME_ERRORS:
            if self._unknown == MAX_UNKNOWN_NAME_ERRORS + 1:
                self.fault(name, f"is not an allowed parameter; more than {MAX_UNKNOWN_NAME_ERRORS:,} are not")
            return
        if self._catalogue.is_known_elsewhere(name):
            self.fault(
                name,
                "is not an allowed parameter here: another endpoint takes it",
                hide_reported_value(name, value, None, self.budget),
            )
            return
        if example := self._catalogue.find_map_key_hint(name):
            self.fault(
                name, f"takes a key, e.g. {name}[{example}]", hide_reported_value(name, value, None, self.budget)
            )
            return
        if row := self._catalogue.find_ignoring_index(name):
            example = row.structure.full(row.param.name).replace("[n]", "[0]")
            most = row.structure.max_items - 1
            self.fault(name, f"is not an allowed parameter: an index is a number from 0 to {most}, e.g. {example}")
            return
        meant = self._catalogue.find_meant_parameter(name) if self._unknown <= MAX_NEAR_MISSES else None
        if meant or self._policy == UnknownNamePolicy.STRICT or self._catalogue.is_inside_a_structure(name):
            hint = f" - did you mean {meant[0]}?" if meant else self._allowed_instead(name)
            said = f"is not an allowed parameter{hint}"
            self.fault(
                name,
                said,
                hide_reported_value(name, value, meant and meant[1].param, self.budget),
                meant=meant[0] if meant else "",
            )
            return
        self._ignored.append(name)

    def _allowed_instead(self, name: str) -> str:
        """The words allowed in place of an unknown one, e.g. the networks of ``threeDSecure.v2.<net>``."""
        if self._unknown > MAX_NEAR_MISSES:
            return ""
        word, allowed = self._catalogue.alternatives(name)
        return (
            f": in place of {shorten_reported_value(mask_text(word))} there may be {', '.join(allowed)}"
            if allowed
            else ""
        )

    def finish(self) -> Parameters:
        for structure in self._catalogue._always:
            self._used.setdefault((structure.prefix + structure.title, ()), structure)
        for (_, indexes), structure in self._used.items():
            self._check(structure, indexes)
        self._limit_digit_text()
        sent = RuleInput(self.params.values, facts=self._facts, faulty=self._faulty, secrets=self.params.secrets)
        present = self._present
        present.update(self._seen, self.params.values)
        present.update([name.partition(".")[0] for name in present])
        for rule in self._catalogue.rules:
            if rule.is_applicable(present, self._facts):
                self._apply(rule, sent, "")
        if any(error.code == INVALID_PARAMETER_CODE for error in self._errors):
            raise InvalidParametersError(self._errors)
        if self._masks:
            self._mask_free_text()
        self.params.refusals = tuple(self._errors)
        self.params.ignored = tuple(shorten_reported_value(mask_text(name)) for name in self._ignored[:MAX_NEAR_MISSES])
        return self.params

    def _limit_digit_text(self) -> None:
        """Refuse more digit text than may be searched for card numbers, since that costs time per character.
        Raises InvalidParametersError, before any rule reads it."""
        if sum(map(len, self.params.values.values())) <= MAX_SEARCHED_CHARS:
            return
        left = MAX_SEARCHED_CHARS
        for name, value in self.params.values.items():
            if may_contain_card_number(value) and (left := left - len(value)) < 0:
                message = (
                    f"is too much: texts of long digit sequences may have {MAX_SEARCHED_CHARS:,} characters in all"
                )
                self.fault(name, message)
                raise InvalidParametersError(self._errors)

    def _check(self, structure: Structure, indexes: tuple[int, ...]) -> None:
        prefix = structure.prefix
        for index in indexes:
            prefix = prefix.replace("[n]", f"[{index}]", 1)
        sent = RuleInput(self.params.values, prefix, self._facts, self._faulty, self.params.secrets)
        dotted = f"{prefix}." if prefix else ""
        if structure.demand is not Demand.NEVER and (
            structure.demand is Demand.ALWAYS or not structure.triggers or sent.any(*structure.triggers)
        ):
            for param in structure.required:
                name = dotted + param.name
                if name not in self.params and name not in self._faulty:
                    self.fault(name, f"is required, e.g. {param.format.example}")
        for param in structure.defaults:
            if (name := dotted + param.name) not in self._seen:
                row = self._catalogue._exact[structure.full(param.name).replace("[n]", "[]")]
                self.params.values[name] = param.default
                self.params.items.append((row, indexes, None, param.default))
        for rule in structure.rules:
            self._apply(rule, sent, dotted)

    def _apply(self, rule: ParameterRule, sent: RuleInput, dotted: str) -> None:
        for name, message in rule.check(sent):
            full = dotted + name
            if full in self._faulty:
                continue
            self.fault(full, message, None if rule.silent else self._sent_value(full), rule.code)

    def _sent_value(self, full: str) -> str | None:
        """What was sent for a parameter, for an error; None if nothing was."""
        value = self.params.secrets.get(full) or self.params.values.get(full)
        if value is None:
            return None
        found = self._catalogue.find(full)
        if found is None:
            return hide_reported_value(full, value, None, self.budget)
        return render_reported_value(found[0].param, value, self.budget)

    def _mask_free_text(self) -> None:
        """Mask card data in stored values: in each value, then a number that is split over two values sent one after
        the other."""
        items, masked = self.params.items, []
        last = -1
        for at, (row, indexes, key, value) in enumerate(items):
            if not row.altered_from or isinstance(value, Secret) or not has_three_digits(value):
                continue
            text = mask_free_text(row.param, value, row.altered_from)
            if text is not value:
                items[at] = (row, indexes, key, text)
                masked.append(at)
            elif last == at - 1 >= 0 and (halves := mask_split_number(reveal_text(items[last][3]), text)) is not None:
                for place, half in zip((last, at), halves, strict=True):
                    items[place] = (*items[place][:3], half)
                    masked.append(place)
            last = at
        if masked:
            self._store_masked(masked)

    def _store_masked(self, places: list[int]) -> None:
        names = []
        for at in dict.fromkeys(places):
            row, indexes, key, text = self.params.items[at]
            name = row.structure.full(row.param.base)
            for index in indexes:
                name = name.replace("[n]", f"[{index}]", 1)
            name = f"{name}[{key}]" if key is not None else name
            self.params.values[name] = reveal_text(text)
            names.append(name)
        self.params.masked = tuple(names)

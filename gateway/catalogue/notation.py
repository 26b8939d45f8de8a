"""The specification's format notation as values: N, AN, classes of characters, ranges, value lists.

A :class:`Format` describes one cell of a "Format" column completely: its text for readers, the test a value must pass,
the error message, one valid and one invalid example, and its JSON Schema.
Source: Part A, "Resources and their fields"; rulings D22-D26.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

# Refused everywhere: control characters, line and paragraph separators, lone surrogates, and bidirectional controls
# that reorder text on a clerk's screen (D22 names control characters; the last group lets one name look like another).
UNPRINTABLE = "\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff"
PRINTABLE_CLASS = f"[^{UNPRINTABLE}]"

FormatTest = Callable[[str], object]
FormatExplanation = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format cell.

    - ``words``: the spec's notation.
    - ``expects``: the sentence of an error ("must be …").
    - ``fits``: truthy for a well-formed value.
    - ``explain``: a better sentence for one particular wrong value, or None.
    - ``example`` and ``counterexample``: one value that fits and one that does not.
    - ``values``: the closed list, if there is one.
    - ``empty_is_value``: the spec allows length 0, so an empty value is a value and not an absence (D16); a boolean's
      is checked, too, and fits none.
    - ``usual``: spellings that clients use → the spec's; a strict channel ignores it.
    - ``taken_too``: a sentence for the docs about values accepted besides ``words``.
    """

    words: str
    expects: str
    fits: FormatTest
    example: str
    counterexample: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    explain: FormatExplanation | None = None
    empty_is_value: bool = False
    usual: Callable[[str], str] | None = None
    taken_too: str = ""

    def problem(self, value: str) -> str | None:
        """None when ``value`` fits, else the error sentence."""
        if self.fits(value):
            return None
        if self.explain is not None and (better := self.explain(value)):
            return better
        return f"{self.expects}, e.g. {self.example}" if self.example and not self.values else self.expects

    def eg(self, example: str, counterexample: str | None = None) -> Format:
        """The same format with another example for the docs."""
        return replace(self, example=example, counterexample=counterexample or self.counterexample)


def compile_test(expression: str) -> FormatTest:
    """A test for values that match a regular expression as a whole."""
    return re.compile(expression).fullmatch


def _span(low: int, high: int) -> str:
    return f"{high}" if low == high else f"{low}-{high}" if low else f"up to {high}"


def describe_length(low: int, high: int, unit: str) -> str:
    """A range of lengths in words."""
    if low == high:
        return f"exactly {high} {unit}"
    return f"{low} to {high} {unit}" if low > 1 else f"at most {high} {unit}"


def _length_note(high: int, low: int, expects: str) -> FormatExplanation:
    def explain(value: str) -> str | None:
        if len(value) > high or len(value) < low:
            return f"{expects}; {len(value)} were sent"
        if re.search(f"[{UNPRINTABLE}]", value):
            return f"{expects}; control characters are not allowed"
        return None

    return explain


def AN(low: int, high: int, *, words: str = "") -> Format:
    """Any printable characters, ``low`` to ``high`` of them. With length 0 allowed an empty value is a value."""
    expects = f"must be {describe_length(low, high, 'characters')}"
    example = "Example text"[:high] if low <= 12 else "Example text".ljust(low, "x")
    return Format(
        words=words or f"AN {_span(low, high)}",
        expects=expects,
        fits=compile_test(f"{PRINTABLE_CLASS}{{{low},{high}}}"),
        example=example.strip().ljust(low, "x"),
        counterexample="x" * (high + 1),
        schema={"type": "string", "minLength": low, "maxLength": high},
        explain=_length_note(high, low, expects),
        empty_is_value=low == 0,
    )


def AN_UP_TO(high: int) -> Format:
    """ "AN up to n": at least one character, since an empty value counts as absent."""
    return AN(1, high, words=f"AN up to {high}")


def N(low: int, high: int, *, words: str = "") -> Format:
    """Digits 0-9 only; digits of other scripts are refused."""
    return Format(
        words=words or (f"N{high}" if low == high else f"N {_span(low, high)}"),
        expects=f"must be {describe_length(low, high, 'digits')}",
        fits=compile_test(f"[0-9]{{{low},{high}}}"),
        example="123456789012345678901234567890"[: max(low, min(high, 4))],
        counterexample="12a4"[: max(low, 3)],
        schema={"type": "string", "pattern": f"^[0-9]{{{low},{high}}}$"},
    )


def chars(what: str, one: str, low: int, high: int, *, example: str, bad: str = "!", words: str = "") -> Format:
    """A class of characters: ``what`` describes it, ``one`` is the regular expression of one character."""
    return Format(
        words=words or f"{what}, {_span(low, high)}",
        expects=f"must be {describe_length(low, high, 'characters')} out of {what}",
        fits=compile_test(f"{one}{{{low},{high}}}"),
        example=example,
        counterexample=bad,
        schema={"type": "string", "pattern": f"^{one}{{{low},{high}}}$"},
    )


def literal(words: str, expression: str, *, expects: str, example: str, bad: str) -> Format:
    """A format given as a regular expression."""
    return Format(
        words=words,
        expects=expects,
        fits=compile_test(expression),
        example=example,
        counterexample=bad,
        schema={"type": "string", "pattern": f"^(?:{expression})$"},
    )


def one_of(*values: str, words: str = "", also: tuple[str, ...] = ()) -> Format:
    """A closed list. ``also``: regular spellings accepted besides the spec's own odd ones (D25)."""
    allowed = frozenset(values) | frozenset(also)
    listed = ", ".join((*values, *also))
    written = {value.casefold(): value for value in (*also, *values)}

    def explain(value: str) -> str | None:
        meant = written.get(value.strip().casefold())
        return f"must be written {meant}" if meant else None

    return Format(
        words=words or " or ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values),
        expects=f"must be one of {listed}" if len(allowed) > 1 else f"must be {listed}",
        fits=allowed.__contains__,
        example=values[0],
        counterexample="NOT_IN_THE_LIST",
        schema={"type": "string", "enum": [*values, *also]},
        values=(*values, *also),
        explain=explain,
    )


def publish_values(form: Format, *values: str, taken_too: str) -> Format:
    """A closed list of which OpenAPI publishes ``values`` only. Generated clients make a name of each value, and two
    values that differ only in case or punctuation would be one name; ``taken_too`` describes the others."""
    return replace(form, schema={"type": "string", "enum": list(values)}, taken_too=taken_too)


def code_list(words: str, allowed: frozenset[str], *, kind: str, example: str, bad: str, ref: str) -> Format:
    """A code of a published list (ISO 4217, ISO 3166-1) that is too long to print in an error."""
    return Format(
        words=words,
        expects=f"must be {kind}",
        fits=allowed.__contains__,
        example=example,
        counterexample=bad,
        schema={"$ref": f"#/components/schemas/{ref}"},
    )


def number_between(low: int, high: int, *, words: str, width: int | None = None) -> Format:
    """An integer in a range. ``width`` fixes the number of digits ("01 to 12", D23); without it no leading zero."""
    shape = re.compile(f"[0-9]{{{width}}}" if width else "0|[1-9][0-9]*")
    low_text, high_text = (str(low).zfill(width or 1), str(high).zfill(width or 1))

    def fits(value: str) -> bool:
        return len(value) <= len(high_text) and bool(shape.fullmatch(value)) and low <= int(value) <= high

    return Format(
        words=words,
        expects=f"must be a number from {low_text} to {high_text}" + (f", {width} digits" if width else ""),
        fits=fits,
        example=low_text,
        counterexample=str(high + 1),
        schema={"type": "string", "pattern": _range_pattern(low, high, width)},
    )


def _range_pattern(low: int, high: int, width: int | None) -> str:
    if high - low > 100:
        return f"^[0-9]{{{width}}}$" if width else f"^[0-9]{{1,{len(str(high))}}}$"
    return "^(?:" + "|".join(str(n).zfill(width or 1) for n in range(low, high + 1)) + ")$"


def with_words(words: str, form: Format) -> Format:
    """The same format in the words of another cell of the spec."""
    return replace(form, words=words)


def comma_list(words: str, *allowed: str) -> Format:
    """Values of a closed list, separated by commas without spaces; at most as many elements as the list has."""
    known = frozenset(allowed)

    def fits(value: str) -> bool:
        return known.issuperset(value.split(",", len(allowed)))

    return Format(
        words=words,
        expects=f"must be a comma-separated list out of {', '.join(allowed)}",
        fits=fits,
        example=",".join(allowed[:2]),
        counterexample="QQ",
        schema={"type": "string", "pattern": f"^(?:{'|'.join(allowed)})(?:,(?:{'|'.join(allowed)}))*$"},
        values=allowed,
    )


def value_list(*values: str, also: tuple[str, ...] = ()) -> Format:
    """A closed list whose cell lists the values, separated by commas."""
    return one_of(*values, words=", ".join(values), also=also)

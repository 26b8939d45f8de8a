"""Mutations that cosmic-ray lacks: slips of a payment gateway are seldom an arithmetic sign, and often a condition, a
filter or a call that is missing, or two arguments of one type in the wrong order. SQL is changed, too."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import parso
from cosmic_ray.operators.operator import Example, Operator

Position = tuple[tuple[int, int], tuple[int, int]]


def _is_positional(node: Any) -> bool:
    return node.type not in ("argument", "operator")


class SwapArguments(Operator):
    """Two neighbouring positional arguments change places."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        for first, second in self._pairs(node):
            yield first.start_pos, second.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        first, second = self._pairs(node)[index]
        place, other = node.children.index(first), node.children.index(second)
        before, after = first.get_first_leaf(), second.get_first_leaf()
        before.prefix, after.prefix = after.prefix, before.prefix
        node.children[place], node.children[other] = second, first
        return node

    @staticmethod
    def _pairs(node: Any) -> list[tuple[Any, Any]]:
        if node.type != "arglist":
            return []
        positional = [child for child in node.children if _is_positional(child)]
        return list(itertools.pairwise(positional))

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("pay(a, b, c=1)", "pay(b, a, c=1)"), Example("f(a, g(b), c)", "f(a, c, g(b))", occurrence=1))


class DropKeyword(Operator):
    """A keyword argument is left out: a filter that no longer narrows, a default instead of what was asked for."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        for argument in self._keywords(node):
            yield argument.start_pos, argument.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        argument = self._keywords(node)[index]
        place = node.children.index(argument)
        if place + 1 < len(node.children):
            following = node.children[place + 2 : place + 3]
            if following:
                following[0].get_first_leaf().prefix = argument.get_first_leaf().prefix
            del node.children[place : place + 2]
        else:
            del node.children[place - 1 : place + 1]
        return node

    @staticmethod
    def _keywords(node: Any) -> list[Any]:
        if node.type != "arglist":
            return []
        return [child for child in node.children if child.type == "argument" and child.children[1] == "="]

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (
            Example("rows.filter(a=1, b=2)", "rows.filter(b=2)"),
            Example("rows.filter(a=1, b=2)", "rows.filter(a=1)", occurrence=1),
        )


class DropCondition(Operator):
    """One operand of ``and`` or ``or`` is left out: one belt of two."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type in ("and_test", "or_test"):
            for operand in node.children[::2]:
                yield operand.start_pos, operand.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        prefix = node.get_first_leaf().prefix
        if index:
            del node.children[2 * index - 1 : 2 * index + 1]
        else:
            del node.children[:2]
        node.get_first_leaf().prefix = prefix
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("x = a and b", "x = b"), Example("x = a or b or c", "x = a or c", occurrence=1))


class DropStatement(Operator):
    """A call for its effect, or a ``raise``, is left out."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if self._has_effect(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        first = node.children[0]
        nothing = parso.parse("pass").children[0]
        nothing.get_first_leaf().prefix = first.get_first_leaf().prefix
        node.children[0] = nothing
        return node

    @staticmethod
    def _has_effect(node: Any) -> bool:
        if node.type != "simple_stmt":
            return False
        first = node.children[0]
        return first.type in ("atom_expr", "raise_stmt") or (first.type == "keyword" and first.value == "raise")

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("tell(payment)\n", "pass\n"), Example("raise Closed(a)\n", "pass\n"))


_STATEMENT = re.compile(r"\b(SELECT|UPDATE|DELETE|INSERT)\b.*\b(FROM|SET|INTO)\b", re.DOTALL)
_BEFORE = re.compile(r"\b(?:WHERE|ON|WHEN|HAVING|AND)\s+(?=\S)")
_AND = re.compile(r"\s+AND\s+(?=\S)")
_END = re.compile(
    r"\s*(?:\b(?:AND|OR|ORDER|GROUP|HAVING|LIMIT|RETURNING|FOR|UNION|WINDOW|THEN|WHEN|ELSE|END|WHERE|JOIN|LEFT|CROSS|SET|OFFSET"
    r"|ON\s+CONFLICT|DO)\b|[,;]|\"\"\")"
)
_BORDER = re.compile(r"(?<![<>=!-])(<=|>=|<|>)(?![<>=@])")


class DropSqlCondition(Operator):
    """One of several conditions in a statement of SQL always holds: another merchant's rows, a row that moved on. Its
    parameters stay, so that the statement still takes as many."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        for start, end in self._conditions(node):
            yield _position(node, start), _position(node, end)

    def mutate(self, node: Any, index: int) -> Any:
        start, end = self._conditions(node)[index]
        node.value = f"{node.value[:start]}({node.value[start:end]} OR TRUE){node.value[end:]}"
        return node

    @staticmethod
    def _conditions(node: Any) -> list[tuple[int, int]]:
        if not _is_statement(node):
            return []
        text, found = node.value, set()
        for before in _BEFORE.finditer(text):
            end = _end_of_condition(text, before.end())
            following = _AND.match(text, end)
            condition = text[before.end() : end]
            goes_on = end == len(text) and _is_followed_by_value(node)
            if condition == "CASE" or condition.count("(") != condition.count(")") or goes_on:
                continue  # it goes on in another part of the text
            if following or (before[0].strip() == "AND" and not _is_between(text, before.start())):
                found.add((before.end(), end))
        return sorted(found)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        sql = 'x = "SELECT 1 FROM t WHERE a = (b AND c) AND d BETWEEN 1 AND 2 ORDER BY e"'
        return (
            Example(sql, sql.replace("a = (b AND c)", "(a = (b AND c) OR TRUE)")),
            Example(sql, sql.replace("AND c)", "AND (c OR TRUE))"), occurrence=1),
            Example(sql, sql.replace("d BETWEEN 1 AND 2", "(d BETWEEN 1 AND 2 OR TRUE)"), occurrence=2),
            Example(
                'x = f"SELECT 1 FROM {t} WHERE a AND b"',
                'x = f"SELECT 1 FROM {t} WHERE a AND (b OR TRUE)"',
                occurrence=1,
            ),
            Example(
                'x = f"SELECT 1 FROM t WHERE a AND b.{c} = d AND e"',
                'x = f"SELECT 1 FROM t WHERE a AND b.{c} = d AND (e OR TRUE)"',
                occurrence=1,
            ),
        )


class MoveSqlBorder(Operator):
    """``<`` for ``<=`` in a statement of SQL, and the other way round."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        for found in self._borders(node):
            yield _position(node, found.start()), _position(node, found.end())

    def mutate(self, node: Any, index: int) -> Any:
        found = self._borders(node)[index]
        other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}[found[1]]
        node.value = node.value[: found.start()] + other + node.value[found.end() :]
        return node

    @staticmethod
    def _borders(node: Any) -> list[re.Match[str]]:
        return list(_BORDER.finditer(node.value)) if _is_statement(node) else []

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        sql = 'x = "DELETE FROM t WHERE a <= b AND c > d AND e <> f"'
        return (
            Example(sql, sql.replace("<=", "<")),
            Example(sql, sql.replace("c >", "c >="), occurrence=1),
        )


def _is_statement(node: Any) -> bool:
    """A text, or a part of one that is put together, of a statement of SQL."""
    if node.type not in ("string", "fstring_string"):
        return False
    whole = node
    while whole.parent is not None and whole.parent.type in ("fstring", "strings"):
        whole = whole.parent
    return _STATEMENT.search(whole.get_code()) is not None


def _is_followed_by_value(part: Any) -> bool:
    """Whether a part of an f-string is followed by a value in braces."""
    following = part.get_next_sibling()
    return following is not None and following.type == "fstring_expr"


def _end_of_condition(text: str, start: int) -> int:
    """Where the condition that begins at ``start`` ends: before the next word or bracket of its own level."""
    level = 0
    for at in range(start, len(text)):
        ends = level == 0 and (text[at].isspace() or text[at] in ',;"') and _END.match(text, at)
        if ends and not (_AND.match(text, at) and _is_between(text, at)):
            return at
        level += {"(": 1, ")": -1}.get(text[at], 0)
        if level < 0:
            return at
    return len(text.rstrip("'\""))


def _is_between(text: str, start: int) -> bool:
    """Whether the AND at ``start`` belongs to a BETWEEN."""
    before = re.split(r"\b(?:AND|OR|WHERE|ON|WHEN)\b", text[:start])[-1]
    return re.search(r"\bBETWEEN\b", before) is not None


def _position(node: Any, offset: int) -> tuple[int, int]:
    line, column = node.start_pos
    before = node.value[:offset]
    lines = before.count("\n")
    return (line + lines, len(before) - before.rfind("\n") - 1) if lines else (line, column + offset)


OWN: tuple[type[Operator], ...] = (
    SwapArguments,
    DropKeyword,
    DropCondition,
    DropStatement,
    DropSqlCondition,
    MoveSqlBorder,
)

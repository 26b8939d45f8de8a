"""Mutations that cosmic-ray lacks: slips of a payment gateway are seldom an arithmetic sign, and often a condition, a
filter or a call that is missing, or two arguments of one type in the wrong order."""

from __future__ import annotations

import itertools
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


OWN: tuple[type[Operator], ...] = (SwapArguments, DropKeyword, DropCondition, DropStatement)

"""A mutant: one module with one place changed, and the choice of them by a seed."""

from __future__ import annotations

import ast
import difflib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators import boolean_replacer as boolean
from cosmic_ray.operators import break_continue, exception_replacer, number_replacer, remove_decorator
from cosmic_ray.operators import zero_iteration_for_loop as loops
from cosmic_ray.operators.binary_operator_replacement import operators as binary
from cosmic_ray.operators.comparison_operator_replacement import operators as comparisons
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.unary_operator_replacement import operators as unary

from tests.mutants.operators import OWN

OPERATORS: tuple[type[Operator], ...] = (
    *OWN, *comparisons(), *binary(), *unary(), boolean.AddNot, boolean.ReplaceTrueWithFalse,
    boolean.ReplaceFalseWithTrue, boolean.ReplaceAndWithOr, boolean.ReplaceOrWithAnd,
    break_continue.ReplaceBreakWithContinue, break_continue.ReplaceContinueWithBreak,
    exception_replacer.ExceptionReplacer, number_replacer.NumberReplacer, remove_decorator.RemoveDecorator,
    loops.ZeroIterationForLoop,
)  # fmt: skip
LEAST_OF_A_PART = 8
"""So many mutants of every part are tried at least, however small it is."""

Place = tuple[str, tuple[int, int]]
"""A module, line and column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    module: str
    part: str
    line: int
    operator: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.module}:{self.line} {self.operator}"

    @property
    def diff(self) -> str:
        """The changed lines only."""
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def choose(root: Path, modules: Mapping[str, str], number: int, seed: int) -> list[Mutant]:
    """``number`` mutants in random order, every place equally likely however many operators know a change for it."""
    dice = random.Random(seed)
    by_part: dict[str, list[Place]] = defaultdict(list)
    changes: dict[Place, list[tuple[type[Operator], int]]] = {}
    for module, part in sorted(modules.items()):
        known = _changes(module, (root / module).read_text())
        changes |= known
        by_part[part] += sorted(known)
    total = sum(map(len, by_part.values())) or 1
    chosen: list[Mutant] = []
    for part, places in sorted(by_part.items()):
        share = max(round(number * len(places) / total), min(LEAST_OF_A_PART, number))
        dice.shuffle(places)
        made = (_make(root, part, place, changes[place], dice) for place in places)
        chosen += [mutant for mutant, _ in zip((one for one in made if one), range(share), strict=False)]
    dice.shuffle(chosen)
    return chosen[:number]


def _changes(module: str, source: str) -> dict[Place, list[tuple[type[Operator], int]]]:
    idle = list(_without_effect(source))
    tree = get_ast(source)
    nodes = list(ast_nodes(tree))
    found: dict[Place, list[tuple[type[Operator], int]]] = defaultdict(list)
    for operator in OPERATORS:
        knows = operator()
        positions = (start for node in nodes for start, _ in knows.mutation_positions(node))
        for occurrence, start in enumerate(positions):
            if not any(first <= start < last for first, last in idle):
                found[module, start].append((operator, occurrence))
    return dict(found)


Position = tuple[int, int]
"""Line and column."""


def _without_effect(source: str) -> Iterator[tuple[Position, Position]]:
    """From where to where nothing stands that an example could show: types, the options of dataclasses (``frozen``,
    ``slots``, ``kw_only``), the star before parameters that go by name, ``strict`` of zip, and which of two digests is
    compared with the other. Columns of ASCII lines only."""
    for node in ast.walk(ast.parse(source)):
        options = getattr(node, "decorator_list", []) if isinstance(node, ast.ClassDef) else []
        found = [one for one in options if isinstance(one, ast.Call) and ast.unparse(one.func).endswith("dataclass")]
        for one in (getattr(node, "annotation", None), getattr(node, "returns", None), *found):
            if isinstance(one, ast.expr):
                yield (one.lineno, one.col_offset), _end(one)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwonlyargs:
            before = [*node.args.posonlyargs, *node.args.args, *node.args.defaults]
            first = node.args.kwonlyargs[0]
            yield max(map(_end, before), default=(node.lineno, node.col_offset)), (first.lineno, first.col_offset)
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.endswith("compare_digest"):
                yield _end(node.func), _end(node)
            for each in node.keywords:
                if called == "zip" and each.arg == "strict":
                    yield (each.lineno, each.col_offset), _end(each)


def _end(node: ast.expr | ast.arg | ast.keyword) -> Position:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _make(
    root: Path, part: str, place: Place, changes: list[tuple[type[Operator], int]], dice: random.Random
) -> Mutant | None:
    """None if no change of this place makes other code that compiles."""
    module, (line, _) = place
    before = (root / module).read_text()
    for operator, occurrence in dice.sample(changes, len(changes)):
        try:
            after = mutate_code(before, operator(), occurrence)
        except AttributeError:  # the tester counts a dotted name of an except, and cannot replace it
            continue
        if after is None:
            continue
        try:
            if ast.dump(ast.parse(after)) == ast.dump(ast.parse(before)):
                continue
        except SyntaxError:
            continue
        return Mutant(module=module, part=part, line=line, operator=operator.__name__, before=before, after=after)
    return None

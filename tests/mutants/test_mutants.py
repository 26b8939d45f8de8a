"""The mutation tester itself: its own changes, its sample, what it says of a mutant that dies and of one that lives."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator

from gateway.core.luhn import compute_check_digit
from tests.mutants import run as command
from tests.mutants import warm
from tests.mutants.mutant import Mutant, _changes, choose
from tests.mutants.operators import OWN
from tests.mutants.places import BEYOND, HEART, modules, stages
from tests.mutants.trial import Outcome, Trials

ROOT = Path(__file__).parents[2]
LUHN = "gateway/core/luhn.py"


@pytest.mark.parametrize(
    ("operator", "example"),
    [(operator, example) for operator in OWN for example in operator.examples()],
    ids=lambda one: one.__name__ if isinstance(one, type) else None,
)
def test_each_change_of_our_own_does_what_its_example_says(operator: type[Operator], example: Example) -> None:
    changed = mutate_code(example.pre_mutation_code, operator(), example.occurrence)
    assert changed == example.post_mutation_code


def test_a_seed_gives_the_same_sample_and_every_part_has_its_share() -> None:
    heart = modules(ROOT, {part: HEART[part] for part in ("signing", "matching")})
    first, again, other = (choose(ROOT, heart, 20, seed) for seed in (3, 3, 4))
    assert [one.name for one in first] == [one.name for one in again] != [one.name for one in other]
    assert len(first) == 20
    assert all(one.before != one.after for one in first)
    assert {one.part for one in first} == {"signing", "matching"}


def test_what_no_example_could_show_is_not_changed() -> None:
    """The star before parameters, ``strict`` of zip, which digest is compared with which, types, dataclass options."""
    source = """
@dataclass(frozen=True, kw_only=True)
class Row:
    made: int | None = None

def pair(rows: list[int], *, most: int = 3) -> int | None:
    return compare_digest(rows, most) or list(zip(rows, rows, strict=True))

def only(*, most):
    return most
"""
    names: dict[int, set[str]] = {}
    for (_, (line, _)), known in _changes("row.py", source).items():
        names.setdefault(line, set()).update(operator.__name__ for operator, _ in known)
    assert names == {
        2: {"RemoveDecorator"},
        6: {"NumberReplacer"},
        7: {"ReplaceOrWithAnd", "DropCondition", "SwapArguments"},
    }, "of line 7: the arguments of zip"


def test_every_module_of_the_heart_is_mirrored_by_tests_that_are_there() -> None:
    for module in modules(ROOT, HEART):
        near, far = stages(ROOT, module)
        found = [one for stage in (*near, *far) for one in stage]
        assert near, module
        assert all((ROOT / one).exists() for one in found)
    named = [one for _, tests in BEYOND for one in tests]
    assert [one for one in named if not (ROOT / one).exists()] == []


def made(after: str) -> Mutant:
    before = (ROOT / LUHN).read_text()
    assert before.count("% 10") == 1
    return Mutant(
        module=LUHN, part="planted", line=1, operator="Planted", before=before, after=before.replace("% 10", after)
    )


def test_a_planted_mutant_dies_and_one_that_changes_nothing_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy, a fork, a process of its own for what lived there, and the exit status."""
    monkeypatch.setattr("tests.mutants.trial.stages", lambda *_: ([["tests/gateway/test_brands.py"]], []))
    wrong, same = made("% 9"), made("%  10")
    out = io.StringIO()
    server, imports = os.environ["DATABASE_URL"], ["gateway.core.luhn", "tests.gateway.test_brands"]
    with Trials(ROOT, url=server, imports=imports) as trials:
        near = {mutant: trials.try_near(mutant) for mutant in (wrong, same)}
        outcomes = near | {same: trials.try_far(same, near[same])}
        monkeypatch.setattr("tests.mutants.trial.NEAR_LIMIT_S", 0.0)
        stopped = trials.try_near(wrong)
        assert trials.try_far(wrong, stopped).died, "near tests that were stopped are run again"
        folder = trials.copy
        assert (folder / LUHN).read_text() == wrong.before, "the copy is put back after each"
        assert trials.failing_without([outcomes[wrong].killer]) == set()
    assert not folder.exists()
    assert (outcomes[wrong].died, outcomes[same].died) == (True, False)
    assert (near[same].finished, outcomes[same].finished) == (False, True), "far tests were still to be tried"
    assert (stopped.died, stopped.finished) == (False, False)
    assert outcomes[wrong].killer.startswith("tests/gateway/test_brands.py::")
    assert command.report(outcomes, 2, out) == 1
    assert command.report({wrong: outcomes[wrong]}, 1, out) == 0
    assert f"| planted | `{LUHN}` | 2 | 1 | 1 |" in out.getvalue()


def test_a_sample_is_tried_by_as_many_at_a_time_as_asked_and_far_only_what_lived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = [replace(made("% 9"), line=number) for number in range(6)]
    both = threading.Barrier(2, timeout=10)
    far: list[int] = []

    class FakeTrials(contextlib.nullcontext[None]):
        def __init__(self, root: Path) -> None:
            super().__init__()

        def __enter__(self) -> FakeTrials:  # type: ignore[override]
            return self

        def try_near(self, mutant: Mutant) -> Outcome:
            both.wait()
            return Outcome(died=mutant.line < 4, killer="", seconds=1.0, finished=False, was_cut=mutant.line == 5)

        def try_far(self, mutant: Mutant, near: Outcome) -> Outcome:
            far.append(mutant.line)
            return Outcome(died=near.was_cut, killer="", seconds=1.0)

        def failing_without(self, _: list[str]) -> set[str]:
            return set()

    monkeypatch.setattr(command, "Trials", FakeTrials)
    monkeypatch.setattr(command, "choose", lambda *_: sample)
    out = io.StringIO()
    assert command.main(["--processes", "2"], out) == 1
    assert sorted(far) == [4, 5]
    assert "| | all | 6 | 5 | 1 |" in out.getvalue()
    out = io.StringIO()
    assert command.main(["--processes", "2", "--minutes", "-1"], out) == 0
    assert "6 of the sample were not tried" in out.getvalue()


TEMPLATE = "SELECT * FROM charges {join} WHERE NOT paid AND declined_at <= at {more} AND NOT refunded"
SWITCHED = TEMPLATE.replace("declined_at <= at", "(declined_at <= at OR TRUE)")


@pytest.mark.parametrize(
    ("old", "new", "part", "changed"),
    [
        (
            TEMPLATE,
            SWITCHED,
            " WHERE NOT paid AND declined_at <= at ",
            " WHERE NOT paid AND (declined_at <= at OR TRUE) ",
        ),
        (
            TEMPLATE,
            TEMPLATE.replace("<=", "<"),
            " WHERE NOT paid AND declined_at <= at ",
            " WHERE NOT paid AND declined_at < at ",
        ),
        ("a {x} b <= c", "a {x} b < c", "a {x} b <= c", "a {x} b < c"),
        (
            TEMPLATE,
            TEMPLATE.replace("{more}", "({more} OR TRUE)"),
            TEMPLATE,
            TEMPLATE.replace("{more}", "({more} OR TRUE)"),
        ),
        ("a <= b", "a < b", "a <= b", "a < b"),
    ],
)
def test_a_change_of_a_template_is_put_into_what_was_made_of_it(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str, part: str, changed: str
) -> None:
    monkeypatch.setattr(warm, "_MIN_PART_CHARS", 20)
    assert warm._cut_at_braces(old, new) == (part, changed)


def test_functions_are_found_although_the_project_has_frozen_what_it_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """config.wsgi does; without them every mutant is tried in a process of its own, which takes ten times as long."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(warm, "_FUNCTIONS", {})
    gc.freeze()
    try:
        warm._index_functions()
    finally:
        gc.unfreeze()
    place = (LUHN, compute_check_digit.__name__, compute_check_digit.__code__.co_firstlineno)
    assert warm._FUNCTIONS[place] == [compute_check_digit]


def test_a_second_run_of_a_sample_tries_what_lived(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What lived through the near tests and died by far ones is dead."""
    sample = [replace(made("% 9"), line=number) for number in (1, 2, 3, 4)]
    monkeypatch.setattr(command, "choose", lambda *_: sample)
    died = Outcome(died=True, killer="tests/x.py::test", seconds=123.4)
    earlier, out = io.StringIO(), io.StringIO()
    for mutant, outcome in [
        (sample[0], died),
        (sample[1], replace(died, died=False)),
        (sample[2], replace(died, died=False)),
        (sample[1], died),
    ]:
        command._say(mutant, outcome, earlier)
    (tmp_path / "earlier").write_text(earlier.getvalue())
    assert command.main(["--list", "--lived", str(tmp_path / "earlier")], out) == 0
    assert re.findall(rf"^{LUHN}:(\d) Planted$", out.getvalue(), re.MULTILINE) == ["3"]


def test_what_was_not_tried_for_want_of_time_is_said() -> None:
    out = io.StringIO()
    outcome = Outcome(died=True, killer="tests/x.py::test", seconds=1.0)
    assert command.report({made("% 9"): outcome}, 5, out) == 0
    assert "4 of the sample were not tried" in out.getvalue()

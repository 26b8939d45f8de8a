"""A process in which the whole project is imported, and that forks for every mutant: ``python -m tests.mutants.warm``;
with names of modules only those are.

One request a line on stdin, one answer a line on stdout, in JSON. In the fork the functions that the mutant changes get
their new code in place, wherever they were imported or decorated, and a changed text outside of functions (a statement
of SQL) is replaced in every text of a module that has it. What else changes outside of functions (a number, a table, a
class's attributes) is not tried here; nor does it show what a changed function computed at import. So whoever dies here
is dead, and whoever lives has to be tried again in a process that begins with the mutant.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from itertools import takewhile
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypedDict

LIMIT_S = 900
"""A run of tests that is not done by then is stopped; what it would have found is not known."""
LIMIT_CPU_S = 300
"""A mutant that makes the tests compute for longer than this died: they hang."""
OPTIONS = ("-p", "tests.mutants.ready", "-p", "no:cacheprovider", "-n", "0", "-rfE", "--tb=line")
PROJECT = ("chargebacks", "checkout", "gateway", "reporting", "config")


class Request(TypedDict):
    """``module``: its path; ``after``: its changed source; ``arguments``: of pytest; ``output``: of pytest, a file;
    ``limit_s``: when it is stopped."""

    module: str
    after: str
    arguments: list[str]
    output: str
    limit_s: float


class Answer(TypedDict):
    """``tried``: the mutant could be put in place. ``code``: pytest's exit status; None: it was stopped."""

    tried: bool
    code: int | None


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # _wait stops the fork
    var = _import(sys.argv[1:])
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        request: Request = json.loads(line)
        print(json.dumps(_answer(request, var)), file=answers, flush=True)


def _import(only: list[str]) -> Path | None:
    """Returns the folder that tests/conftest.py made, which the first run of pytest removes."""
    conftest = importlib.import_module("tests.conftest")
    names = [".".join(path.with_suffix("").parts) for root in PROJECT for path in sorted(Path(root).rglob("*.py"))]
    names += [".".join(path.with_suffix("").parts) for path in sorted(Path("tests").rglob("test_*.py"))]
    for name in only or names:
        if ".migrations." in name or name.split(".")[1] in ("browser", "external", "mutants"):
            continue
        with contextlib.suppress(BaseException):  # a script, or what wants a peer that is not here
            importlib.import_module(name.removesuffix(".__init__"))
    for plugin in entry_points(group="pytest11"):
        with contextlib.suppress(Exception):
            plugin.load()
    _index_functions()
    gc.freeze()  # a fork shares what is not looked through again
    found: Path | None = conftest._var
    return found


def _answer(request: Request, var: Path | None) -> Answer:
    before = compile(Path(request["module"]).read_text(), request["module"], "exec", dont_inherit=True)
    after = compile(request["after"], request["module"], "exec", dont_inherit=True)
    changed, texts = list(_changed(before, after)), _changed_texts(before, after)
    if not texts and (not changed or any(old is None for old, _ in changed)):
        return {"tried": False, "code": None}
    child = os.fork()
    if not child:
        _try(request, changed, texts, var)
    status = _wait(child, request["limit_s"])
    return {"tried": status != NOT_HERE, "code": status}


NOT_HERE = 97
"""The status of a fork that could not put its mutant in place."""


def _wait(child: int, limit_s: float) -> int | None:
    until, status = time.monotonic() + limit_s, None
    try:
        while status is None and time.monotonic() < until:
            time.sleep(0.02)
            done, found = os.waitpid(child, os.WNOHANG)
            status = os.waitstatus_to_exitcode(found) if done else None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return status


def _try(
    request: Request,
    changed: list[tuple[CodeType | None, CodeType]],
    texts: list[tuple[str, str]],
    var: Path | None,
) -> None:
    """Never returns."""
    status = 3
    try:
        os.setsid()
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_CPU_S, LIMIT_CPU_S))
        if var is not None:
            var.mkdir(mode=0o711, exist_ok=True)
        functions = (_put_in(old, new, request["module"]) for old, new in changed if old is not None)
        if all(functions) and all(_replace_text(*pair) for pair in texts):
            import pytest

            status = int(pytest.main([*OPTIONS, *request["arguments"]]))
        else:
            status = NOT_HERE
    finally:
        sys.stdout.flush()
        os._exit(status)


def _changed(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType | None, CodeType]]:
    """The outermost functions that differ, old and new; None as the old one for what differs outside of functions."""
    old, new = _parts(before), _parts(after)
    if len(old) != len(new) or _bare(before) != _bare(after):
        yield None, after
        return
    for one, other in zip(old, new, strict=True):
        if _same(one, other):
            continue
        if one.co_flags & 0x2:  # CO_NEWLOCALS: a function, not the body of a class
            yield one, other
        else:
            yield from _changed(one, other)


def _changed_texts(before: CodeType, after: CodeType) -> list[tuple[str, str]]:
    """The texts of a module that differ, old and new, where nothing else outside of functions does."""
    if (before.co_code, before.co_names) != (after.co_code, after.co_names):
        return []
    pairs = list(zip(before.co_consts, after.co_consts, strict=True))
    differing = [(old, new) for old, new in pairs if not isinstance(old, CodeType) and old != new]
    texts = [(old, new) for old, new in differing if isinstance(old, str) and isinstance(new, str)]
    return texts if len(texts) == len(differing) else []


def _replace_text(old: str, new: str) -> bool:
    """In every text of a module of the project: a statement may be a part of another. False if none has it."""
    old, new = _cut_at_braces(old, new)
    here, found = f"{os.getcwd()}/", False
    for module in list(sys.modules.values()):
        if not (getattr(module, "__file__", None) or "").startswith(here):
            continue
        for name, value in list(vars(module).items()):
            if type(value) is str and old in value:
                setattr(module, name, value.replace(old, new))
                found = True
    return found


def _cut_at_braces(old: str, new: str) -> tuple[str, str]:
    """The part of a text between braces that differs: a template whose values were put in when its module was imported
    stands elsewhere without them. The whole texts, if the difference has a brace or the part is a short one."""
    start = _count_same(old, new)
    end = len(old) - _count_same(old[start:][::-1], new[start:][::-1])
    before = max(old.rfind(brace, 0, start) for brace in "{}") + 1
    after = min((place for brace in "{}" if (place := old.find(brace, end)) >= 0), default=len(old))
    part, changed = old[before:after], new[before : len(new) - (len(old) - after)]
    if len(part) < _MIN_PART_CHARS or "{" in part or "}" in part:
        return old, new
    return part, changed


def _count_same(one: str, other: str) -> int:
    """How many characters two texts have in common from their beginning on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


_MIN_PART_CHARS = 40
"""A shorter part of a text may stand in another statement as well."""


def _parts(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _bare(code: CodeType) -> tuple[Any, ...]:
    """What a body does itself, without its functions, wherever its lines are."""
    consts = tuple((type(one), one) for one in code.co_consts if not isinstance(one, CodeType))
    return code.co_name, code.co_code, consts, code.co_names


def _same(one: CodeType, other: CodeType) -> bool:
    return (
        _bare(one) == _bare(other)
        and (one.co_varnames, one.co_freevars) == (other.co_varnames, other.co_freevars)
        and len(_parts(one)) == len(_parts(other))
        and all(_same(*pair) for pair in zip(_parts(one), _parts(other), strict=True))
    )


_FUNCTIONS: dict[tuple[str, str, int], list[FunctionType]] = {}
"""(file, name, first line) → the live functions that were made there."""


def _place(code: CodeType, file: str) -> tuple[str, str, int]:
    return file, code.co_qualname, code.co_firstlineno


def _index_functions() -> None:
    here = f"{os.getcwd()}/"
    gc.unfreeze()  # config.wsgi freezes what it has imported, and gc.get_objects() does not list that
    for function in gc.get_objects():
        # Not isinstance, which asks lazy objects of Django for their class and so evaluates them.
        if type(function) is FunctionType and function.__code__.co_filename.startswith(here):
            file = function.__code__.co_filename.removeprefix(here)
            _FUNCTIONS.setdefault(_place(function.__code__, file), []).append(function)


def _put_in(old: CodeType, new: CodeType, module: str) -> bool:
    """Give every live function with the old code the new one; False if there is none, or one that cannot take it."""
    functions = _FUNCTIONS.get(_place(old, module), [])
    for function in functions:
        if function.__code__.co_freevars != new.co_freevars:
            return False
        function.__code__ = new
    return bool(functions)


if __name__ == "__main__":
    main()

"""The guide's code, taken out of its page and put where it says: a tree of files beside ours, imported for a moment.

A block belongs to the file that its first line names. ``python`` is the whole file, ``diff`` a change of one of ours:
that one is written beside it under another name, so that nothing of ours is touched.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).parents[2]
GUIDE: Final = ROOT / "docs" / "adding-a-connector.md"
CHANGED: Final = "_as_the_guide_says"
_BLOCK: Final = re.compile(r"^```(python|diff)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANY_CODE: Final = re.compile(r"^```(?:python|diff)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """``path``: of the file, from the root of the repository; ``is_change``: a diff of a file that is there."""

    path: PurePosixPath
    text: str
    is_change: bool


def blocks() -> list[Block]:
    """The guide's blocks of code, in their order."""
    page = GUIDE.read_text(encoding="utf-8")
    found = [
        Block(path=PurePosixPath(path), text=text, is_change=kind == "diff")
        for kind, path, text in _BLOCK.findall(page)
    ]
    assert len(found) == len(_ANY_CODE.findall(page)), "a block of code does not say which file it is"
    return found


def write(folder: Path, found: Sequence[Block]) -> None:
    """The blocks as files below ``folder``."""
    for block in found:
        path = folder / block.path
        if block.is_change:
            path = path.with_stem(path.stem + CHANGED)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = changed((ROOT / block.path).read_text(encoding="utf-8"), block.text) if block.is_change else block.text
        path.write_text(text, encoding="utf-8")


def changed(text: str, diff: str) -> str:
    """``text`` with each hunk of ``diff`` (between lines ``@@``) made at the one place where it fits; as it is where
    somebody has followed the guide already."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old, new = (("".join(line[1:] for line in lines if line[0] in kept)) for kept in (" -", " +"))
        if text.count(new) == 1:
            continue
        assert text.count(old) == 1, f"the guide changes what is not there:\n{old}"
        text = text.replace(old, new)
    return text


def module_of(block: Block) -> str:
    """The name under which a block's file is imported."""
    path = block.path.with_stem(block.path.stem + CHANGED) if block.is_change else block.path
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """While it lasts, packages of ours hold the modules below ``folder`` too. Afterwards nobody finds them any more;
    what was imported goes on to work for whoever holds it."""
    before = set(sys.modules)
    packages: list[ModuleType] = []
    for path in sorted(one for one in folder.rglob("*") if one.is_dir()):
        if (ROOT / path.relative_to(folder) / "__init__.py").exists():
            package = importlib.import_module(".".join(path.relative_to(folder).parts))
            package.__path__.append(str(path))
            packages.append(package)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for package in packages:
            package.__path__.pop()
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]

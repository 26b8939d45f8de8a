"""The commands of README.md and docs/*.md: every block that begins with ```sh is run as it stands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ground.conftest import ROOT

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "--- end of block"
RUNS_ALREADY = ("make run", "make test")
"""What the tests cannot begin a second time: they ask a product that `make run` started, and are `make test`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Commands, and the answer that stands below them; None where the page shows none in JSON."""

    commands: str
    shown: Any


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that are for a shell, in their order."""
    found: list[Block] = []
    fences = BLOCK.findall(page.read_text(encoding="utf-8"))
    for (kind, text), (next_kind, next_text) in zip(fences, [*fences[1:], ("", "")], strict=True):
        if kind == "sh":
            found.append(Block(commands=text, shown=json.loads(next_text) if next_kind == "json" else None))
    return found


def run(page: Path, folder: Path, environment: Mapping[str, str]) -> list[tuple[Block, str]]:
    """Run a page's blocks in one shell of a reader who stands in `folder`; each block and what it printed."""
    found = blocks(page)
    python = Path(sys.executable).parent.parent
    # The reader's `make` is the repository's, with the Python that runs this test.
    script = [f'set -eu\nmake() {{ command make -C "{ROOT}" VENV="{python}" "$@"; }}\n']
    for block in found:
        lines = [line for line in block.commands.splitlines() if not line.startswith(RUNS_ALREADY)]
        script.append("\n".join([*lines, f"echo; echo '{MARK}'", ""]))
    done = subprocess.run(
        ["sh", "-c", "".join(script)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{page.name}: {done.stdout}\n{done.stderr}"
    return list(zip(found, done.stdout.split(MARK)[: len(found)], strict=True))


def differs(shown: Any, real: Any, where: str = "") -> list[str]:
    """Where an answer is not as a page shows it. The page may leave out fields; ids are any ids; … is any text."""
    if isinstance(shown, dict) and isinstance(real, dict):
        return [line for key, value in shown.items() for line in differs(value, real.get(key), f"{where}.{key}")]
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        pairs = zip(shown, real, strict=True)
        return [line for number, pair in enumerate(pairs) for line in differs(*pair, f"{where}[{number}]")]
    if isinstance(shown, str) and isinstance(real, str):
        form = re.escape(re.sub(r"\b[0-9a-f]{32}\b", "ID", shown)).replace("ID", "[0-9a-f]{32}").replace("…", ".*")
        return [] if re.fullmatch(form, real) else [f"{where}: {shown!r} is shown, {real!r} came"]
    return [] if shown == real else [f"{where}: {shown!r} is shown, {real!r} came"]

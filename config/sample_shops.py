"""`make shop`: writes the sample shops of docs/examples/shop with this installation's keys into var/shop.

The keys are those that `make run` keeps in var/demo.env, or of another file of that form.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[1]
SHOP_SOURCES: Final = _ROOT / "docs" / "examples" / "shop"
SHOP_COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {"shop.py": "python3 {path}", "shop.mjs": "node {path}", "shop.php": "php -S 127.0.0.1:9100 {path}"}
)
"""The shops' files and the command that starts each."""
SHOP_PLACEHOLDERS: Final[Mapping[str, str]] = MappingProxyType(
    {"BASE": "https://gateway.example", "TOKEN": "your access token", "ENTITY_ID": "your entityId"}
)
"""Name of a key -> what stands for it in the sources."""

_LINE: Final = re.compile(r"^(?:export )?([A-Z_]+)=(['\"]?)([A-Za-z0-9._~:/+=-]*)\2$")


class KeysError(Exception):
    """The keys of a shop cannot be read."""


def read_keys(path: Path) -> dict[str, str]:
    """BASE, TOKEN and ENTITY_ID of a file like var/demo.env. Raises KeysError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        words = f"{path} cannot be read: start `make run` first, or name a file with BASE, TOKEN, ENTITY_ID"
        raise KeysError(words) from None
    found = {part[1]: part[3] for line in lines if (part := _LINE.fullmatch(line.strip()))}
    if missing := [name for name in SHOP_PLACEHOLDERS if not found.get(name)]:
        raise KeysError(f"{path} does not set {', '.join(missing)}")
    return {name: found[name] for name in SHOP_PLACEHOLDERS}


def write_shops(keys: Mapping[str, str], folder: Path) -> list[Path]:
    """Write each shop with ``keys`` into ``folder``. Only its owner reads them: they hold the token."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in SHOP_COMMANDS:
        text = (SHOP_SOURCES / name).read_text(encoding="utf-8")
        for key, placeholder in SHOP_PLACEHOLDERS.items():
            text = text.replace(placeholder, keys[key])
        path = folder / name
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        written.append(path)
    return written


def main(words: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="make shop", description="Write a sample shop in three languages.")
    parser.add_argument("--env", type=Path, default=_ROOT / "var" / "demo.env", help="BASE, TOKEN and ENTITY_ID")
    parser.add_argument("--out", type=Path, default=_ROOT / "var" / "shop", help="the folder to write into")
    asked = parser.parse_args(words)
    try:
        written = write_shops(read_keys(asked.env), asked.out)
    except KeysError as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    sys.stdout.write("A shop in three languages, each a server and its pages in one file. Start one of them:\n\n")
    for path in written:
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        sys.stdout.write(f"  {SHOP_COMMANDS[path.name].format(path=shown)}\n")
    sys.stdout.write("\nThen open http://127.0.0.1:9100 and pay with 4200 0000 0000 0000.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

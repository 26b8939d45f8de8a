"""Writes the generated files of the client packages. Run by `make clients`."""

from __future__ import annotations

import sys
from pathlib import Path

from config.clients.render import render_generated_files

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2] / "clients"
    for name, text in render_generated_files(root).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"clients/{name}\n")

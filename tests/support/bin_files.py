"""A table of BINs for the time of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from django.test import override_settings

BIN_FILE_HEAD = "bin\tbinTo\tbank\tcountry\ttype\tlevel\tregulated\tbrands"


@contextmanager
def write_bin_file(folder: Path, *rows: str) -> Iterator[Path]:
    """Name a file of these rows by GATEWAY_BIN_FILE. Each has a name of its own, since tables are kept by name."""
    path = folder / f"bins-{uuid4().hex}.tsv"
    path.write_text("".join(f"{line}\n" for line in (BIN_FILE_HEAD, *rows)), encoding="utf-8")
    with override_settings(GATEWAY_BIN_FILE=str(path)):
        yield path

"""The compiled methods of dataclasses, kept between starts.

`dataclasses` writes the methods of each class as text and compiles them whenever the class is made: of five hundred
classes that is a sixth of what loading the code takes. Python's own cache holds modules only, so these are kept in a
file of `var/`, in marshal's format like those. A method is found by its whole text, and the file belongs to one version
of Python, so that it can be out of date without harm. docs/decisions/0164.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import hashlib
import importlib.util
import marshal
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

_KEY = f"{sys.version}\n{importlib.util.MAGIC_NUMBER.hex()}".encode()
_kept: list[dict[str, CodeType]] = []
"""What was read and used, never freed: it lies between what was loaded meanwhile, and each program that is forked would
write to those pages when it uses the gaps, several mebibytes of each."""
_DIGEST_BYTES = hashlib.sha256().digest_size


@contextlib.contextmanager
def keep_method_code(file: Path) -> Iterator[None]:
    """While the block imports modules, compile only methods that `file` does not have; then write it if it changed."""
    known, used = _read(file), dict[str, CodeType]()
    _kept.extend((known, used))

    def execute(text: str, *scopes: Any) -> None:
        code = used.get(text) or known.get(text)
        if code is None:
            code = compile(text, "<string>", "exec", dont_inherit=True)
        used[text] = code
        builtins.exec(code, *scopes)  # noqa: S102 - what dataclasses asks for

    # The module calls the built-in by its name, which a name of the module's own comes before.
    dataclasses.exec = execute  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del dataclasses.exec  # type: ignore[attr-defined]
    if used.keys() != known.keys():
        _write(file, used)


def _read(file: Path) -> dict[str, CodeType]:
    """What `file` holds; nothing where it is missing, damaged or of another version of Python."""
    try:
        content = file.read_bytes()
    except OSError:
        return {}
    digest, packed = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if digest != hashlib.sha256(_KEY + packed).digest():
        return {}
    found: dict[str, CodeType] = marshal.loads(packed)  # noqa: S302 - our own, and only its owner may write it
    return found


def _write(file: Path, used: dict[str, CodeType]) -> None:
    """Whole or not at all; where it cannot be written the next start compiles again."""
    packed = marshal.dumps(used)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            output.write(hashlib.sha256(_KEY + packed).digest() + packed)
        draft.replace(file)
    except OSError:
        draft.unlink(missing_ok=True)

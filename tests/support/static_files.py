"""WhiteNoise in tests: every Django test client builds the middleware anew, and would list all static files for it."""

from __future__ import annotations

from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import Redirect, StaticFile


def read_static_files_once() -> None:
    """Have each further middleware take the files that the first one of this process found."""
    read = WhiteNoiseMiddleware.add_files_from_finders
    found: dict[str, Redirect | StaticFile] = {}

    def add_files(self: Any) -> None:
        if not found:
            read(self)
            found.update(self.files)
        self.files.update(found)

    WhiteNoiseMiddleware.add_files_from_finders = add_files

"""Which gateway the command line talks to: the environment, or a file of `export NAME=value` lines."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import httpx

from tollhouse._sync.client import Tollhouse
from tollhouse.errors import TollhouseError

DEFAULT_ENV_FILE = Path("var/demo.env")
NAMES = ("BASE", "TOKEN", "ENTITY_ID")


class SettingsError(TollhouseError):
    """The gateway's address or the token is not known."""


def load_settings(file: str | None) -> Mapping[str, str]:
    """BASE, TOKEN and ENTITY_ID: of ``file``, else of the environment, else of var/demo.env. Raises SettingsError."""
    found = {name: os.environ[name] for name in NAMES if os.environ.get(name)}
    if file is not None:
        found = _read_env_file(Path(file))
    elif "TOKEN" not in found and DEFAULT_ENV_FILE.is_file():
        found = _read_env_file(DEFAULT_ENV_FILE)
    missing = [name for name in ("BASE", "TOKEN") if not found.get(name)]
    if missing:
        raise SettingsError(f"set {' and '.join(missing)}, or name a file: tollhouse --env var/demo.env …")
    for name, value in found.items():
        if name != "BASE" and not (value.isascii() and value.isprintable()):
            raise SettingsError(f"{name} has characters that it cannot have: is it another file's?")
    return found


def _read_env_file(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path} cannot be read: it is no text in UTF-8") from None
    pairs = (line.removeprefix("export ").partition("=") for line in lines if "=" in line)
    try:
        return {name.strip(): " ".join(shlex.split(value)) for name, _, value in pairs if name.strip() in NAMES}
    except ValueError:
        raise SettingsError(f"{path} cannot be read: a quotation mark has no end") from None


def connect(settings: Mapping[str, str]) -> Tollhouse:
    """A client of the gateway."""
    try:
        httpx.URL(settings["BASE"])
        return Tollhouse(settings["BASE"], token=settings["TOKEN"], entity_id=settings.get("ENTITY_ID", ""))
    except (ValueError, httpx.InvalidURL) as error:
        raise SettingsError(f"BASE: {error}") from None

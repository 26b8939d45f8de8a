"""Values of options that several commands take: days, numbers within bounds, files of text."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import date
from pathlib import Path

from django.core.management.base import CommandError
from django.db.models import Model


def parse_option_day(text: str) -> date:
    """A day, as an option's ``type``. Raises ArgumentTypeError."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a day yyyy-MM-dd, e.g. 2026-05-14, not {text!r}") from None


def build_number_parser(least: int, most: int) -> Callable[[str], int]:
    """An option's ``type`` for a whole number from ``least`` to ``most``."""

    def parse_number(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise ArgumentTypeError(f"must be a whole number from {least} to {most}, not {text!r}")
        return number

    return parse_number


def build_text_parser(model: type[Model], name: str) -> Callable[[str], str]:
    """An option's ``type`` for a text that is kept in the field ``name`` of a model."""
    most = int(getattr(model._meta.get_field(name), "max_length", None) or 0)

    def parse_text(text: str) -> str:
        if len(text) > most:
            raise ArgumentTypeError(f"must have at most {most} characters, not {len(text)}")
        return text

    return parse_text


def read_option_file(path: Path) -> str:
    """The text of a file that an option names. Raises CommandError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as fault:
        raise CommandError(f"{path} cannot be read: {fault.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is no text.") from None

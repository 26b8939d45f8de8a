"""What is wrong with a request, and how a sent value may be repeated: masked and shortened.

Source: Part A, Errors; ruling D10.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.catalogue.structure import Param
from gateway.masking import mask_pan, mask_text
from gateway.secret import Secret

INVALID: Final = "200.300.404"
REPORTED_LENGTH: Final = 100
"""Characters of a sent name or value that an error repeats."""
HIDDEN: Final = "•••"
LONGEST_NAME: Final = 300
"""Characters of a parameter name; the longest real ones stay below 150."""
_SECRETIVE: Final = re.compile(r"(?i)cvv|cvc|csc|cvn|security|pin|token|cryptogram|dtvc|number|passw|secret")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterError:
    """One fault: ``value`` is what was sent, masked and shortened; None when nothing was sent. ``known``: the endpoint
    takes a parameter of this name, so its reference explains it. ``meant``: the one that it takes instead."""

    name: str
    message: str
    value: str | None = None
    code: str = INVALID
    known: bool = False
    meant: str = ""

    def as_json(self, docs: str = "") -> dict[str, str]:
        """As answers carry it; ``docs`` is the address of the endpoint's reference, for names it explains."""
        body = {"name": self.name}
        if self.value is not None:
            body["value"] = self.value
        body["message"] = self.message
        if docs and (self.known or self.meant):
            body["link"] = f"{docs}#{self.meant or self.name}"
        return body


class Invalid(Exception):
    """At least one validation error; ``errors`` holds all of them, in the order sent, then what is missing."""

    def __init__(self, errors: Sequence[ParameterError]) -> None:
        super().__init__(", ".join(error.name for error in errors))
        self.errors = tuple(errors)


def masked(value: str) -> str:
    """A value for an error or a log: cut before it is searched for card numbers, since it may be megabytes."""
    return shorten(mask_text(value[:LONGEST_NAME]))


def shorten(text: str) -> str:
    return text if len(text) <= REPORTED_LENGTH else text[: REPORTED_LENGTH - 1] + "…"


def shown(param: Param, value: str | Secret) -> str:
    """A sent value as an error may repeat it: secrets masked, card numbers wherever they hide masked, shortened."""
    if param.name == "number" and (number := _number_shown(value)):
        return number
    if isinstance(value, Secret) or param.secret:
        return HIDDEN
    return masked(value)


def hidden(name: str, value: str | Secret, meant: Param | None) -> str:
    """A value sent under a name that is not known, or that probably meant ``meant``."""
    if meant is not None:
        return shown(meant, value)
    return HIDDEN if isinstance(value, Secret) or is_secretive(name) else masked(value)


def is_secretive(name: str) -> bool:
    """Whether a name that is not known sounds like a secret's."""
    return bool(_SECRETIVE.search(name))


def _number_shown(value: str | Secret) -> str:
    """An account's number: its first six and last four digits; '' where it is not digits alone."""
    text = value.reveal() if isinstance(value, Secret) else value
    return mask_pan(text) if text.isdecimal() and len(text) <= REPORTED_LENGTH else ""

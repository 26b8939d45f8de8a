"""Errors of a request, and how a sent value may appear in one: masked and shortened.

Source: Part A, Errors; ruling D10.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.catalogue.structure import Param
from gateway.core.card_data_detection import may_contain_card_number
from gateway.core.masking import mask_pan, mask_text
from gateway.core.secret import Secret, reveal_text

INVALID_PARAMETER_CODE: Final = "200.300.404"
MAX_REPORTED_CHARS: Final = 100
"""Most characters of a sent name or value that an error repeats."""
HIDDEN_VALUE: Final = "•••"
MAX_REPORTED_NAME_CHARS: Final = 300
"""Most characters of a parameter name; the longest real ones stay below 150."""
_SECRETIVE: Final = re.compile(r"(?i)cvv|cvc|csc|cvn|security|pin|token|cryptogram|dtvc|number|passw|secret")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterError:
    """One error: ``value`` is what was sent, masked and shortened; None when nothing was sent. ``known``: the endpoint
    takes a parameter of this name, so its reference explains it. ``meant``: the parameter it takes instead."""

    name: str
    message: str
    value: str | None = None
    code: str = INVALID_PARAMETER_CODE
    known: bool = False
    meant: str = ""

    def as_json(self, docs: str = "") -> dict[str, str]:
        """As in answers; ``docs`` is the address of the endpoint's reference, for names it explains."""
        body = {"name": self.name}
        if self.value is not None:
            body["value"] = self.value
        body["message"] = self.message
        if docs and (self.known or self.meant):
            body["link"] = f"{docs}#{self.meant or self.name}"
        return body


@dataclass(slots=True)
class SearchBudget:
    """How much of one request's values is still searched for card numbers, for its errors or its log. Searching digit
    text costs some 1 µs a character; what is beyond is not shown at all. ``left``: characters."""

    left: int

    def mask(self, text: str) -> str:
        """``text`` with card data masked; HIDDEN_VALUE when too much was searched before."""
        if may_contain_card_number(text):
            self.left -= len(text)
            if self.left < 0:
                return HIDDEN_VALUE
        return mask_text(text)


MAX_ERROR_SEARCH_CHARS: Final = 100_000
"""Characters searched for the errors of a request with a token."""
MAX_LOG_SEARCH_CHARS: Final = 1_500
"""Characters searched for the log row of a refused request, which may be a shopper's."""


class InvalidParametersError(Exception):
    """The request has errors; ``errors`` holds all of them: in the order sent, then what is missing."""

    def __init__(self, errors: Sequence[ParameterError]) -> None:
        super().__init__(", ".join(error.name for error in errors))
        self.errors = tuple(errors)


def mask_reported_value(value: str, budget: SearchBudget | None = None) -> str:
    """A value for an error or a log: cut before it is searched for card numbers, since it may be megabytes."""
    cut = value[:MAX_REPORTED_NAME_CHARS]
    return shorten_reported_value(mask_text(cut) if budget is None else budget.mask(cut))


def shorten_reported_value(text: str) -> str:
    """A sent value cut to MAX_REPORTED_CHARS."""
    return text if len(text) <= MAX_REPORTED_CHARS else text[: MAX_REPORTED_CHARS - 1] + "…"


def render_reported_value(param: Param, value: str | Secret, budget: SearchBudget | None) -> str:
    """A sent value for an error: secrets and any card numbers masked, shortened."""
    if param.name == "number" and (number := _mask_number(value)):
        return number
    if isinstance(value, Secret) or param.secret:
        return HIDDEN_VALUE
    return mask_reported_value(value, budget)


def hide_reported_value(name: str, value: str | Secret, meant: Param | None, budget: SearchBudget | None = None) -> str:
    """The value of an unknown name, or of one that probably meant ``meant``, for an error."""
    if meant is not None:
        return render_reported_value(meant, value, budget)
    return HIDDEN_VALUE if isinstance(value, Secret) or is_secret_name(name) else mask_reported_value(value, budget)


def is_secret_name(name: str) -> bool:
    """True if an unknown name sounds like a secret's."""
    return bool(_SECRETIVE.search(name))


def _mask_number(value: str | Secret) -> str:
    """An account number: its first six and last four digits; '' unless it is digits only."""
    text = reveal_text(value)
    return mask_pan(text) if text.isdecimal() and len(text) <= MAX_REPORTED_CHARS else ""

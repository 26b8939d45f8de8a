"""application/x-www-form-urlencoded bodies and query strings into (name, value) pairs.

Order and repetition are kept: the parser says what is wrong with them. Source: Part A, What the service does, 3.
"""

from __future__ import annotations

from urllib.parse import unquote

MAX_FIELDS = 50_000
"""Fields a body may hold: a 1,000-item cart with all of its 45 parameters per item passes (D41)."""


class UnreadableForm(Exception):
    """The body is no form: ``name`` is the parameter at fault ('' for the whole), ``message`` says why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}" if name else message)
        self.name = name
        self.message = message


def pairs(body: bytes) -> list[tuple[str, str]]:
    """Decode ``body`` (UTF-8, percent-encoded or raw). Empty parts are skipped; a part without ``=`` has value ''.

    Raises UnreadableForm for bytes that are not UTF-8 and for more than MAX_FIELDS fields.
    """
    if body.count(b"&") >= MAX_FIELDS:
        raise UnreadableForm("", f"The body has more than {MAX_FIELDS:,} fields")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise UnreadableForm(_name_at(body, fault.start), "is not valid UTF-8") from None
    found: list[tuple[str, str]] = []
    for part in text.split("&"):
        if not part:
            continue
        name, _, value = part.partition("=")
        try:
            if "%" in name or "+" in name:
                name = unquote(name.replace("+", " "), errors="strict")
            if "%" in value or "+" in value:
                value = unquote(value.replace("+", " "), errors="strict")
        except UnicodeDecodeError:
            raise UnreadableForm(unquote(name.replace("+", " ")), "is not valid UTF-8") from None
        found.append((name, value))
    return found


def _name_at(body: bytes, position: int) -> str:
    start = body.rfind(b"&", 0, position) + 1
    return body[start : body.find(b"=", start)].decode("utf-8", "replace") if b"=" in body[start:] else ""

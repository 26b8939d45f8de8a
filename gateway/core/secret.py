"""Secret values as a type: a `Secret` prints as "•••", and only `.reveal()` returns the text.

For card numbers, CVVs, PINs, passwords, tokens and keys. No Django and no I/O here.
"""

import hmac
from typing import Any, Final, NoReturn, final

SECRET_MASK: Final = "•••"  # noqa: S105 - a name or a mask, no password


class _Hidden:
    """Base of both types: printing, pickling and byte-wise comparison do not disclose the value."""

    __slots__ = ()

    def _bytes(self) -> bytes:
        raise NotImplementedError

    def __repr__(self) -> str:
        return SECRET_MASK

    def __str__(self) -> str:
        return SECRET_MASK

    def __format__(self, spec: str) -> str:
        return format(SECRET_MASK, spec)

    def __eq__(self, other: object) -> bool:
        """Constant-time, and only with the same type: a secret never equals a plain string."""
        if type(other) is not type(self):
            return NotImplemented
        return hmac.compare_digest(self._bytes(), other._bytes())

    # A hash would let a secret be a dictionary key, which compares and may be printed in bulk.
    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not pickled")

    def __copy__(self) -> "_Hidden":
        return self

    def __deepcopy__(self, memo: object) -> "_Hidden":
        return self

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a secret is not changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a secret is not changed")


@final
class Secret(_Hidden):
    """A secret text. Empty text is false, like any string."""

    __slots__ = ("_text",)
    _text: str

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError("a Secret holds a str")
        object.__setattr__(self, "_text", text)

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __len__(self) -> int:
        return len(self._text)

    def _bytes(self) -> bytes:
        return self._text.encode("utf-8", "surrogatepass")


def reveal_text(value: str | Secret) -> str:
    """The text of a value that may be a secret."""
    return value.reveal() if isinstance(value, Secret) else value


@final
class SecretBytes(_Hidden):
    """Secret bytes: key material."""

    __slots__ = ("_octets",)
    _octets: bytes

    def __init__(self, octets: bytes) -> None:
        if not isinstance(octets, bytes):
            raise TypeError("a SecretBytes holds bytes")
        object.__setattr__(self, "_octets", octets)

    def reveal(self) -> bytes:
        return self._octets

    def __bool__(self) -> bool:
        return bool(self._octets)

    def _bytes(self) -> bytes:
        return self._octets


class RedactedDict(dict[str, Any]):
    """An outgoing message that holds secrets in clear: equal to any dictionary, and never printed."""

    def __repr__(self) -> str:
        return f"<{len(self)} fields>"

    __str__ = __repr__

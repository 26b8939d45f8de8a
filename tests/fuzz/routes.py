"""Every route there is, from the URL table itself: a new one is fuzzed without being named here."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RoutePattern

HOSTILE: Final = (
    "0", "-1", "0" * 32, "f" * 32, "x", "é", "%00", "%2e%2e%2f", "..", "%ff", "1e9", "'", "<x>", "9" * 400, "a" * 2_000,
    "4200000000000000", "00000000-0000-0000-0000-000000000000", "%F0%9F%92%A9", "_", "add", "null", "%0d%0aX:y",
)  # fmt: skip
_PARAMETER: Final = re.compile(r"<(?:(?P<kind>\w+):)?(?P<name>\w+)>")


def unused(chance: random.Random) -> str:
    """A text that no request had before: what keeps something for each value it meets grows by it."""
    return f"u{chance.getrandbits(64):016x}"


@dataclass(frozen=True, slots=True)
class Route:
    """A route as the table writes it: ``/v1/payments/<str:target>``."""

    text: str

    def path(self, chance: random.Random, known: Mapping[str, Sequence[str]]) -> str:
        """An address of it; ``known``: ids that there are, by kind of converter."""

        def value(found: re.Match[str]) -> str:
            own = known.get(found["kind"] or "str") or known["str"]
            kind = chance.random()
            if kind < 0.6:
                return chance.choice(own)
            return chance.choice(HOSTILE) if kind < 0.9 else unused(chance)

        return _PARAMETER.sub(value, self.text)


def routes() -> list[Route]:
    """All of them, and one that there is not."""
    return [*dict.fromkeys(_walked(get_resolver().url_patterns, "/")), Route("/no/such/<str:path>")]


def _walked(patterns: Sequence[Any], prefix: str) -> Iterator[Route]:
    for one in patterns:
        pattern = one.pattern
        own = str(pattern) if isinstance(pattern, RoutePattern) else _plain(pattern.regex.pattern)
        if isinstance(one, URLResolver):
            yield from _walked(one.url_patterns, prefix + own)
        elif isinstance(one, URLPattern):
            yield Route(prefix + own)


def _plain(regex: str) -> str:
    """An address for a route that is written as a regular expression."""
    return re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<str:\1>", regex).replace("^", "").replace("$", "").replace("\\", "")

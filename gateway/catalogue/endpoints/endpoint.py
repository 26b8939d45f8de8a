"""The Endpoint class, and the rules that every endpoint shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.catalogue import structures as s
from gateway.catalogue.parse import Catalogue
from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import ALWAYS, R, Structure


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One method of one path. ``operation``: the name that throttling counts; ``scope``: the token scope required.
    ``keyed``: a POST that accepts an Idempotency-Key."""

    name: str
    method: str
    path: str
    title: str
    about: str
    operation: str
    scope: str
    structures: tuple[Structure, ...]
    rules: tuple[ParameterRule, ...] = ()
    answers: tuple[int, ...] = (200, 400, 401, 403, 404, 429)
    test_only: bool = False
    keyed: bool = True
    catalogue: Catalogue = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        catalogue = Catalogue(
            self.structures, self.rules, elsewhere=s.KNOWN_STRUCTURES, aliases={"authentication.entityId": "entityId"}
        )
        object.__setattr__(self, "catalogue", catalogue)


REQUIRED_ENTITY = s.ENTITY.needing(entityId=R).demanding(ALWAYS)


def _live_has_no_test_mode(sent: RuleInput) -> Iterator[RuleBreach]:
    if "live" in sent.facts and "testMode" in sent:
        yield "testMode", "is not allowed in the live environment"


NO_TEST_MODE_IN_LIVE = build_rule(
    "testMode is refused in the live environment",
    ("testMode",),
    _live_has_no_test_mode,
    when=("testMode",),
    keeps={"amount": "92.00"},
    breaks={"testMode": "INTERNAL"},
    facts=frozenset({"live"}),
)

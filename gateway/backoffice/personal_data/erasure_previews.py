"""What an erasure would do, also where looking through all of a merchant's rows takes longer than a page may.

The statements that may read all rows of a merchant are given a time each; one that takes longer looks through the
newest rows alone, or is left out. Its numbers are then "at least". Source: docs/decisions/0117.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.backoffice.kit.time_limit import PageTooSlowError, limit_page_time
from gateway.core import clock
from gateway.personal_data.erasure import check_nothing_is_open, report_found_rows
from gateway.personal_data.people import KeyFinder, PersonSelector, find_person

MAX_PREVIEW_S: Final = 10.0
"""The time of all look-ups of a preview; what a page did before has taken up to 50 s of the 75 s that a proxy waits."""
MAX_PREVIEW_LOOKUPS_S: Final = 6.0
MAX_PREVIEW_LOOKUP_S: Final = 2.0


@dataclass(slots=True)
class BoundedLookup:
    """Carries out the statements of find_person with a time for each and for all of them. ``cut``: labels of the models
    that were not looked through to the end."""

    until: float
    cut: list[str] = field(default_factory=list)

    def __call__(self, label: str, find: KeyFinder, *fewer: KeyFinder) -> set[Any]:
        for finder in (find, *fewer):
            left = self.until - time.monotonic()
            if left > 0:
                try:
                    with limit_page_time(min(MAX_PREVIEW_LOOKUP_S, left)):
                        return finder()
                except PageTooSlowError:
                    pass
            if label not in self.cut:
                self.cut.append(label)
        return set()


def preview_erasure_in_part(selector: PersonSelector) -> dict[str, Any]:
    """The report of what was found in a page's time, with ``atLeast`` and the labels of models that were ``cut``.

    Raises PersonNotFoundError for a person of too many payments, and PersonStillActiveError where something is open.
    """
    lookup = BoundedLookup(until=time.monotonic() + MAX_PREVIEW_LOOKUPS_S)
    report: dict[str, Any] = {
        "at": clock.format_timestamp(clock.real_now()),
        "lines": [],
        "erasedRows": 0,
        "keptRows": 0,
    }
    try:
        with limit_page_time(MAX_PREVIEW_S):
            person = find_person(selector, lookup)
            check_nothing_is_open(person)
            report = report_found_rows(person, lookup)
    except PageTooSlowError:
        pass  # not even that: the page says that nothing was counted
    return {**report, "atLeast": True, "cut": lookup.cut}

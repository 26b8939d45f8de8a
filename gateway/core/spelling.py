"""Finds the known name that an unknown one probably meant, by edit distance (D16)."""

from __future__ import annotations

from collections.abc import Iterable

MAX_NAME_EDITS = 2


def find_closest_name(name: str, known: Iterable[str]) -> str | None:
    """The nearest known name within `MAX_NAME_EDITS` insertions, deletions, replacements or swaps of neighbours."""
    best, best_edits = None, MAX_NAME_EDITS + 1
    for candidate in known:
        if abs(len(candidate) - len(name)) >= best_edits:
            continue
        edits = edit_distance(name, candidate, best_edits - 1)
        if edits < best_edits:
            best, best_edits = candidate, edits
            if edits <= 1:
                break
    return best


def edit_distance(a: str, b: str, limit: int) -> int:
    """Edits between two names, or ``limit + 1`` as soon as there must be more."""
    if a == b:
        return 0
    # A common start and end cost nothing; names of one structure share long starts.
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    if not a or not b:
        return min(max(len(a), len(b)), limit + 1)
    if abs(len(a) - len(b)) > limit or len(a) > 4 * limit + 4:
        return limit + 1
    before: list[int] = []
    previous = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        current = [i]
        for j, cb in enumerate(b, 1):
            cost = min(previous[j] + 1, current[-1] + 1, previous[j - 1] + (ca != cb))
            if i > 1 and j > 1 and ca == b[j - 2] and a[i - 2] == cb:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return limit + 1
        before, previous = previous, current
    return min(previous[-1], limit + 1)

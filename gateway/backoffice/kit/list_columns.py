"""A user's own columns of a list: which they are, in their order, and where they are kept.

An address or a saved view names its columns in ``cols`` and wins over the user's own, which are kept with their
preferences. A list is named by the label of its model. Source: docs/decisions/0098.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.models import UserPreference

COLUMNS_PARAMETER: Final = "cols"


def parse_columns(text: str, known: Sequence[str], first: str) -> list[str]:
    """The known columns of a text, each once and in their order there; ``first``, which links to the row's page, is
    always one. Empty: the text names none."""
    found = list(dict.fromkeys(name for name in text.split(",") if name in known))
    return found if not found or first in found else [first, *found]


def choose_columns(user: Any, page: str, asked: str, known: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The columns of a list: those of its address, else the user's own, else the usual ones."""
    if found := parse_columns(asked, known, usual[0]):
        return found
    kept = UserPreference.objects.filter(user=user.pk).values_list("columns", flat=True).first() or {}
    own = kept.get(page)
    return (parse_columns(",".join(map(str, own)), known, usual[0]) if isinstance(own, list) else []) or list(usual)


def save_columns(user: Any, page: str, names: Sequence[str]) -> None:
    """Save the user's own columns of a list; none: the usual ones again."""
    row, _new = UserPreference.objects.get_or_create(user=user)
    others = {name: kept for name, kept in row.columns.items() if name != page}
    row.columns = others | ({page: list(names)} if names else {})
    row.save(update_fields=["columns"])


def list_column_choices(chosen: Sequence[str], titles: Mapping[str, Any], first: str) -> list[dict[str, Any]]:
    """Every column for the form that chooses them, the chosen ones first, in their order."""
    names = [*chosen, *(name for name in titles if name not in chosen)]
    return [{"name": name, "title": titles[name], "chosen": name in chosen, "fixed": name == first} for name in names]

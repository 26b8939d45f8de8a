"""Small pictures of figures, as SVG made here: no script, no third party, and the same figures as a table beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

WIDTH: Final = 480
HEIGHT: Final = 140
FOOT: Final = 18
HEAD: Final = 14
MOST_LABELS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One column of a picture: parts stacked from the bottom up, as (class, x, y, width, height, words)."""

    label: str
    shown: bool
    middle: float
    parts: tuple[tuple[str, float, float, float, float, str], ...]
    link: str = ""


def stacked(
    rows: Sequence[tuple[str, Sequence[int | Decimal], str]], kinds: Sequence[tuple[str, str]], *, title: str
) -> SafeString:
    """Columns of several parts. ``rows``: label, figures, address of the list behind it ('' for none); ``kinds``: class
    and name of each part. A table with the same figures goes along, folded."""
    top = max((sum(figures) for _, figures, _ in rows), default=0)
    step = WIDTH / max(1, len(rows))
    every = max(1, -(-len(rows) // MOST_LABELS))
    scale = (HEIGHT - FOOT - HEAD) / float(top) if top else 0.0
    columns = []
    for place, (label, figures, link) in enumerate(rows):
        floor, parts = float(HEIGHT - FOOT), []
        for (kind, name), figure in zip(kinds, figures, strict=True):
            high = float(figure) * scale
            floor -= high
            box = (round(place * step + step * 0.12, 2), round(floor, 2), round(step * 0.76, 2), round(high, 2))
            parts.append((kind, *box, f"{label}: {name} {figure:,}"))
        columns.append(
            Bar(
                label=label, shown=place % every == 0, middle=round((place + 0.5) * step, 2), parts=tuple(parts),
                link=link,
            )
        )  # fmt: skip
    context = {
        "columns": columns, "rows": rows, "kinds": kinds, "title": title, "top": top, "width": WIDTH, "height": HEIGHT,
        "floor": HEIGHT - FOOT, "label_at": HEIGHT - 4, "empty": top == 0,
    }  # fmt: skip
    return SafeString(render_to_string("admin/plot.html", context))


def bars(rows: Sequence[tuple[str, int]], *, title: str) -> SafeString:
    """Columns of one part."""
    return stacked([(label, (figure,), "") for label, figure in rows], (("good", ""),), title=title)

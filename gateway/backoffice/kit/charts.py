"""Bar charts as SVG, drawn on the server without scripts or third parties. A table with the same figures goes with
each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from gateway.backoffice.kit.formatting import format_money, format_number

CHART_WIDTH: Final = 480
CHART_HEIGHT: Final = 140
CHART_FOOT: Final = 18
CHART_HEAD: Final = 14
MAX_CHART_LABELS: Final = 8
LABEL_CHARACTER_WIDTH: Final = 9
"""Width of a label's character on a phone, in units of the chart. Longer labels are cut; the table has them whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBar:
    """One column of a chart: parts stacked from the bottom up, as (class, x, y, width, height, text)."""

    label: str
    shown: bool
    middle: float
    parts: tuple[tuple[str, float, float, float, float, str], ...]
    link: str = ""


def draw_stacked_bars(
    rows: Sequence[tuple[str, Sequence[int | Decimal], str]], kinds: Sequence[tuple[str, str]], *, title: str
) -> SafeString:
    """A chart of stacked columns, with its table folded below. ``rows``: label, figures, address of the list behind it
    ('' for none); ``kinds``: class and name of each part. Positive figures stand on the zero line, negative ones hang
    from it."""
    top = max((sum(figure for figure in figures if figure > 0) for _, figures, _ in rows), default=0)
    low = min((sum(figure for figure in figures if figure < 0) for _, figures, _ in rows), default=0)
    step = CHART_WIDTH / max(1, len(rows))
    every = max(1, -(-len(rows) // MAX_CHART_LABELS))
    room = max(3, int(step * every / LABEL_CHARACTER_WIDTH))
    # The lowest figure is written below the columns, as the highest one is above them.
    base = CHART_HEIGHT - CHART_FOOT - (CHART_HEAD if low else 0)
    scale = (base - CHART_HEAD) / float(top - low) if top > low else 0.0
    zero = round(CHART_HEAD + float(top) * scale, 2) if low else float(base)
    columns = []
    for place, (label, figures, link) in enumerate(rows):
        above, below, parts = zero, zero, []
        for (kind, name), figure in zip(kinds, figures, strict=True):
            high = abs(float(figure)) * scale
            above -= high if figure > 0 else 0.0
            begins = above if figure > 0 else below
            below += high if figure < 0 else 0.0
            box = (round(place * step + step * 0.12, 2), round(begins, 2), round(step * 0.76, 2), round(high, 2))
            parts.append((kind, *box, f"{label}: {name} {_format_figure(figure)}"))
        written = label if len(label) <= room else f"{label[: room - 1]}…"
        # A label wider than its column stays inside the chart, and clear of its neighbour.
        half = min(len(written) * LABEL_CHARACTER_WIDTH, (every + 0.5) * step / 1.5) / 2
        columns.append(
            ChartBar(
                label=written,
                shown=place % every == 0,
                middle=round(min(max((place + 0.5) * step, half), CHART_WIDTH - half), 2),
                parts=tuple(parts),
                link=link,
            )
        )
    context = {
        "columns": columns,
        "rows": rows,
        "kinds": kinds,
        "title": title,
        "top": top,
        "width": CHART_WIDTH,
        "height": CHART_HEIGHT,
        "floor": zero,
        "label_at": CHART_HEIGHT - 4,
        "low": low,
        "low_at": CHART_HEIGHT - CHART_FOOT - 2,
        "empty": top == low,
    }
    return SafeString(render_to_string("admin/plot.html", context))


def _format_figure(figure: int | Decimal) -> str:
    return format_money(figure) if isinstance(figure, Decimal) else format_number(figure)


def draw_bars(rows: Sequence[tuple[str, int]], *, title: str) -> SafeString:
    """A chart with one figure per column."""
    return draw_stacked_bars([(label, (figure,), "") for label, figure in rows], (("good", ""),), title=title)

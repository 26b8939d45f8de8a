"""Bar charts as SVG, drawn on the server without scripts or third parties. A table with the same figures goes with
each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from gateway.backoffice.kit.formatting import format_labelled, format_money, format_number

CHART_WIDTH: Final = 480
"""Units across in which columns and labels are laid out; the picture itself is as wide as its place."""
CHART_HEIGHT: Final = 140
CHART_FOOT: Final = 18
CHART_HEAD: Final = 14
MAX_CHART_LABELS: Final = 6
LABEL_CHARACTER_WIDTH: Final = 9
"""Width of a label's character on a phone, in units of the chart. Longer labels are cut; the table has them whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartBar:
    """One column of a chart: parts stacked from the bottom up, as (class, x, y, width, height, text). Across, all is in
    percent of the chart's width, so that labels keep their size on every screen; ``before``: where the week before
    was."""

    label: str
    shown: bool
    start: float
    wide: float
    middle: float
    parts: tuple[tuple[str, float, float, float, float, str], ...]
    link: str = ""
    before: float | None = None
    marked: bool = False


def draw_stacked_bars(
    rows: Sequence[tuple[str, Sequence[int | Decimal], str]],
    kinds: Sequence[tuple[str, str]],
    *,
    title: str,
    before: Sequence[int | Decimal] = (),
    marks: Sequence[tuple[int, str]] = (),
) -> SafeString:
    """A chart of stacked columns, with its table folded below. ``rows``: label, figures, address of the list behind it
    ('' for none); ``kinds``: class and name of each part. Positive figures stand on the zero line, negative ones hang
    from it. ``before``: the sum of each column a week before, drawn as a line across it. ``marks``: place of a column
    and what happened then, in words; they are listed below."""
    top = max((sum(figure for figure in figures if figure > 0) for _, figures, _ in rows), default=0)
    top = max(top, *before) if before else top
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
            box = (_percent(place * step + step * 0.12), round(begins, 2), _percent(step * 0.76), round(high, 2))
            parts.append((kind, *box, format_labelled(label, f"{name} {_format_figure(figure)}")))
        written = label if len(label) <= room else f"{label[: room - 1]}…"
        # A label wider than its column stays inside the chart, and clear of its neighbour.
        half = min(len(written) * LABEL_CHARACTER_WIDTH, (every + 0.5) * step / 1.5) / 2
        columns.append(
            ChartBar(
                label=written,
                shown=place % every == 0,
                start=_percent(place * step),
                wide=_percent(step),
                middle=_percent(min(max((place + 0.5) * step, half), CHART_WIDTH - half)),
                parts=tuple(parts),
                link=link,
                before=round(zero - float(before[place]) * scale, 2) if before else None,
                marked=any(at == place for at, _words in marks),
            )
        )
    context = {
        "columns": columns,
        "rows": [(*row, before[place] if before else None) for place, row in enumerate(rows)],
        "compared": bool(before),
        "marks": [words for _place, words in marks],
        "kinds": kinds,
        "title": title,
        "top": top,
        "height": CHART_HEIGHT,
        "floor": zero,
        "label_at": CHART_HEIGHT - 4,
        "low": low,
        "low_at": CHART_HEIGHT - CHART_FOOT - 2,
        "empty": top == low,
    }
    return SafeString(render_to_string("admin/plot.html", context))


def _percent(across: float) -> float:
    return round(100 * across / CHART_WIDTH, 3)


def _format_figure(figure: int | Decimal) -> str:
    return format_money(figure) if isinstance(figure, Decimal) else format_number(figure)


def draw_bars(rows: Sequence[tuple[str, int]], *, title: str) -> SafeString:
    """A chart with one figure per column."""
    return draw_stacked_bars([(label, (figure,), "") for label, figure in rows], (("good", ""),), title=title)

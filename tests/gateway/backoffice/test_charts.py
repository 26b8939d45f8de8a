"""Small pictures of figures: what is above zero stands on the line, what is below hangs from it."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal

from gateway.backoffice.kit import charts

KINDS = (("good", "paid out"), ("note", "fees"), ("bad", "taken back"))
PART = re.compile(r'<rect class="(\w+)" x="[\d.-]+%" y="([\d.-]+)" width="[\d.-]+%" height="([\d.-]+)">')


def drawn(*figures: tuple[str, str, str]) -> tuple[list[tuple[str, float, float]], float, str]:
    """(class, top, height) of every part, where the line of zero is, and the picture."""
    rows = [("01.01.", [Decimal(one) for one in row], "") for row in figures]
    picture = charts.draw_stacked_bars(rows, KINDS, title="Payouts")
    parts = [(kind, float(y), float(high)) for kind, y, high in PART.findall(picture)]
    line = re.search(r'class="axis"[^>]* y1="([\d.]+)"', picture)
    assert line
    return parts, float(line[1]), picture


def test_what_is_below_zero_hangs_from_the_line_in_its_own_colour() -> None:
    parts, zero, picture = drawn(("100.00", "10.00", "0.00"), ("0.00", "5.00", "-55.00"))
    assert [kind for kind, _y, _high in parts] == ["good", "note", "bad"] * 2
    (_, paid_at, paid), (_, fee_at, fee), _none, _nothing, (_, second_at, _), (_, back_at, back) = parts
    assert paid_at + paid == zero == back_at
    assert round(fee_at + fee, 2) == paid_at
    assert second_at < zero
    assert round(paid / back, 2) == round(100 / 55, 2)
    assert back_at + back <= charts.CHART_HEIGHT - charts.CHART_FOOT
    assert '<td class="th-num">-55.00</td>' in picture
    assert ">-55.00</text>" in picture


def test_a_picture_of_nothing_but_what_was_taken_back_is_not_empty() -> None:
    parts, zero, picture = drawn(("0.00", "0.00", "-91.50"))
    assert "Nothing in this time." not in picture
    assert parts[-1][1] == zero
    assert parts[-1][2] > 0
    assert "Nothing in this time." in drawn(("0.00", "0.00", "0.00"))[2]


def test_labels_at_the_edge_stay_on_the_picture() -> None:
    """ "05:00" was cut to "5:00" by the edge, which is another hour."""
    hours = [(f"{hour:02}:00", [1], "") for hour in range(24)]
    picture = charts.draw_stacked_bars(hours, KINDS[:1], title="Attempts")
    found = re.findall(r'<text x="([0-9.]+)%" y="[0-9.]+" text-anchor="middle">', picture)
    places = [float(one) * charts.CHART_WIDTH / 100 for one in found]
    half = len("00:00") * charts.LABEL_CHARACTER_WIDTH / 2
    assert len(places) == charts.MAX_CHART_LABELS
    rounding = 0.01
    assert min(places) >= half - rounding
    assert max(places) <= charts.CHART_WIDTH - half + rounding
    assert all(after - before >= 2 * half - rounding for before, after in itertools.pairwise(places))


def test_labels_do_not_run_into_each_other_and_are_whole_in_the_table() -> None:
    labels = [f"20{number} customer disputed or revoked" for number in range(charts.MAX_CHART_LABELS)]
    picture = charts.draw_stacked_bars([(label, [1], "") for label in labels], KINDS[:1], title="Reasons")
    shown = re.findall(r'text-anchor="middle">([^<]*)</text>', picture)
    assert shown == [f"{label[:7]}…" for label in labels]
    assert all(f'<th scope="row">{label}</th>' in picture for label in labels)


def test_labels_have_room_on_a_phone_too_where_letters_are_larger() -> None:
    """There the picture's text is 15 of its units high, and a letter 9 wide."""
    for many in range(1, charts.MAX_CHART_LABELS + 1):
        picture = charts.draw_stacked_bars(
            [(f"20{number} " + "m" * 40, [1], "") for number in range(many)], KINDS[:1], title="R"
        )
        shown = re.findall(r'text-anchor="middle">([^<]*)</text>', picture)
        assert all(len(label) * 9 <= charts.CHART_WIDTH / many for label in shown), many


def test_without_anything_below_zero_the_line_is_at_the_foot() -> None:
    parts, zero, _picture = drawn(("100.00", "10.00", "0.00"))
    assert zero == charts.CHART_HEIGHT - charts.CHART_FOOT
    assert all(high >= 0 and y + high <= zero for _kind, y, high in parts)


def test_the_week_before_stands_across_each_column_and_in_the_table() -> None:
    rows = [("10", [4], ""), ("11", [8], "")]
    picture = charts.draw_stacked_bars(rows, KINDS[:1], title="Payments", before=[16, 0], marks=[(1, "11:05: a rule")])
    lines = [float(one) for one in re.findall(r'x2="100%" y1="([\d.]+)" y2="[\d.]+" /></svg>', picture)]
    zero = charts.CHART_HEIGHT - charts.CHART_FOOT
    assert lines == [charts.CHART_HEAD, zero]
    assert "the week before" in picture
    assert re.findall(r'<td class="th-num">(\d+)</td>', picture) == ["4", "16", "8", "0"]
    assert picture.count('class="mark"') == 1
    assert "<li>11:05: a rule</li>" in picture


def test_a_chart_without_a_comparison_has_none() -> None:
    assert "the week before" not in charts.draw_stacked_bars([("10", [4], "")], KINDS[:1], title="Payments")

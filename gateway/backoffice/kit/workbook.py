"""XLSX workbooks of any length: rows are appended to sheets slice by slice, and assembled at the end.

Sheets are kept as XML in gzip members, which can be concatenated (gateway.background.files). Times and days are real
ones, times in UTC. A full sheet is continued on the next.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final
from xml.sax.saxutils import escape

from gateway.background.files import AttemptFolder, FilePart
from gateway.core.spreadsheet_cells import escape_formula

SheetCell = str | int | Decimal | datetime | date | None
MAX_SHEET_ROWS: Final = 1_048_576
"""Rows of one sheet with its heading; the format's limit."""
_SHEET_EPOCH: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - sheets know no zones; the column's head says UTC
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STYLES: Final = (
    f'<?xml version="1.0" encoding="UTF-8"?><styleSheet xmlns="{_MAIN}">'
    '<numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
    '<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="3"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="165" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
"""Style 1 is that of times, style 2 that of days."""
_HEAD: Final = f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{_MAIN}"><sheetData>'
_FOOT: Final = "</sheetData></worksheet>"
_CONTROL: Final = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
    if code not in (9, 10, 13)
}
"""Characters that XML does not allow."""


def append_sheet_rows(
    folder: AttemptFolder,
    kept: Sequence[Sequence[FilePart]],
    name: str,
    written: int,
    head: Sequence[str],
    rows: Sequence[Sequence[SheetCell]],
) -> list[list[FilePart]]:
    """Append rows to the sheets ``kept``, which have ``written`` rows without their headings; returns the new sheets.
    Without rows the first sheet has its heading alone."""
    sheets = [list(parts) for parts in kept]
    per_sheet = MAX_SHEET_ROWS - 1
    while True:
        sheet = written // per_sheet
        room = per_sheet - written % per_sheet
        now, rows = rows[:room], rows[room:]
        if sheet == len(sheets):
            sheets.append([])
        text = "".join(_build_row(cells) for cells in now)
        if not sheets[sheet]:
            text = _HEAD + _build_row(head) + text
        if text:
            compressed = gzip.compress(text.encode(), 1)
            sheets[sheet] = folder.append(sheets[sheet], f"{name}{sheet + 1}.gz", compressed)
        written += len(now)
        if not rows:
            return sheets


def _build_row(cells: Iterable[SheetCell]) -> str:
    return f"<row>{''.join(_build_cell(cell) for cell in cells)}</row>"


def _build_cell(cell: SheetCell) -> str:
    if cell is None or cell == "":
        return "<c/>"
    if isinstance(cell, Decimal):
        return f"<c><v>{cell if cell.as_tuple().exponent < -2 else format(cell, '.2f')}</v></c>"  # type: ignore[operator]  # finite
    if isinstance(cell, int):
        return f"<c><v>{cell}</v></c>"
    if isinstance(cell, datetime):
        return f'<c s="1"><v>{_count_sheet_days(cell)}</v></c>'
    if isinstance(cell, date):
        return f'<c s="2"><v>{(cell - _SHEET_EPOCH.date()).days}</v></c>'
    text = escape(escape_formula(cell).translate(_CONTROL))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _count_sheet_days(at: datetime) -> str:
    """A time as a spreadsheet counts it: days since 1899-12-30, to the second, in UTC."""
    seconds = (at.astimezone(UTC).replace(tzinfo=None, microsecond=0) - _SHEET_EPOCH).total_seconds()
    return f"{seconds / 86_400:.9f}"


def assemble_workbook(
    folder: AttemptFolder, name: str, sheets: Sequence[tuple[str, Sequence[FilePart]]], alive: Callable[[], None]
) -> str:
    """Assemble sheets, each with its title, into one workbook of this attempt; returns its file's name."""
    whole = folder.own(name)
    with zipfile.ZipFile(folder.path / whole, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as book:
        for part, text in _build_workbook_parts([title for title, _parts in sheets]):
            book.writestr(part, text)
        for number, (_title, parts) in enumerate(sheets, start=1):
            with (
                book.open(f"xl/worksheets/sheet{number}.xml", "w", force_zip64=True) as sheet,
                gzip.open(folder.reading(parts)) as rows,
            ):
                while piece := rows.read(4 * 1024 * 1024):
                    sheet.write(piece)
                    alive()
                sheet.write(_FOOT.encode())
    return whole


def _build_workbook_parts(titles: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The workbook's files apart from its sheets."""
    numbers = range(1, len(titles) + 1)
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for n in numbers
    )
    yield (
        "[Content_Types].xml",
        (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/xl/workbook.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
            '<Override PartName="/xl/styles.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>'
            f"{types}</Types>"
        ),
    )
    yield "_rels/.rels", _build_relations([("officeDocument", "xl/workbook.xml")])
    yield (
        "xl/_rels/workbook.xml.rels",
        _build_relations([*(("worksheet", f"worksheets/sheet{n}.xml") for n in numbers), ("styles", "styles.xml")]),
    )
    yield "xl/styles.xml", _STYLES
    named = "".join(
        f'<sheet name="{escape(title, {chr(34): "&quot;"})}" sheetId="{n}" r:id="r{n}"/>'
        for n, title in zip(numbers, titles, strict=True)
    )
    yield (
        "xl/workbook.xml",
        (
            f'<?xml version="1.0" encoding="UTF-8"?><workbook xmlns="{_MAIN}" xmlns:r="{_REL}">'
            f"<sheets>{named}</sheets></workbook>"
        ),
    )


def _build_relations(targets: Sequence[tuple[str, str]]) -> str:
    lines = "".join(
        f'<Relationship Id="r{n}" Type="{_REL}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, start=1)
    )
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="{package}">{lines}</Relationships>'

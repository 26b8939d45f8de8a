"""Exports of payments as CSV or XLSX of any length, written slice by slice.

An export has the payments of the list at the time it was requested, oldest first, as far as its owner may see them at
the time of each slice. Cells that a spreadsheet would take for a formula begin with an apostrophe. A full XLSX sheet is
continued on the next. Source: docs/background-work.md, docs/decisions/0025.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID
from xml.sax.saxutils import escape

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from gateway.access import permissions
from gateway.background import queue
from gateway.background.files import AttemptFolder, FilePart
from gateway.backoffice.kit.real_time import first_id_at
from gateway.backoffice.payments import payment_search
from gateway.backoffice.payments.payment_filters import parse_payment_filters
from gateway.backoffice.payments.timeline import format_payment_title
from gateway.core import clock, identifiers, result_codes
from gateway.core.masking import mask_text
from gateway.core.spreadsheet_cells import escape_csv_formula, escape_formula
from gateway.models import BackgroundWork, Payment
from gateway.payments.chain_states import resolve_chain_status

EXPORT_PAYMENT_PERMISSION: Final = "gateway.export_payment"
EXPORT_SLICE_ROWS: Final = 2_000
"""Payments of one slice."""
MAX_SHEET_ROWS: Final = 1_048_576
"""Rows of one sheet with its heading; the format's limit."""
EXPORT_FORMATS: Final = ("csv", "xlsx")
ExportCell = str | Decimal | datetime | None
EXPORT_COLUMNS: Final[tuple[tuple[str, Callable[[Payment], ExportCell]], ...]] = (
    ("id", lambda p: p.id.hex),
    ("shortId", lambda p: identifiers.format_short_id(p.number)),
    ("created (UTC)", lambda p: p.created_at),
    ("completed (UTC)", lambda p: p.completed_at),
    ("merchant", lambda p: p.merchant.name),
    ("channel", lambda p: p.channel.name),
    ("entityId", lambda p: p.channel.entity_id),
    ("type", lambda p: p.payment_type),
    ("operation", format_payment_title),
    ("status", lambda p: str(p.status)),
    ("state of the whole payment", lambda p: str(resolve_chain_status(p)).replace("_", " ") if p.chain == p.pk else ""),
    ("amount", lambda p: p.amount),
    ("approved", lambda p: p.approved_amount),
    ("currency", lambda p: p.currency),
    ("brand", lambda p: p.brand),
    ("method", lambda p: p.method),
    ("card", lambda p: _describe_card(p)),
    ("holder", lambda p: _read_text(p.request, "card", "holder") or _read_text(p.request, "bankAccount", "holder")),
    ("result code", lambda p: p.result_code),
    ("result", lambda p: result_codes.find_result_code(p.result_code).description if p.result_code else ""),
    ("merchantTransactionId", lambda p: p.merchant_transaction_id),
    ("merchantInvoiceId", lambda p: p.merchant_invoice_id),
    ("merchantMemo", lambda p: p.merchant_memo),
    ("e-mail", lambda p: _read_text(p.request, "customer", "email")),
    ("first payment", lambda p: p.chain.hex),
    ("referencedId", lambda p: p.referenced.hex if p.referenced else ""),
    ("registrationId", lambda p: p.registration.hex if p.registration else ""),
    ("testMode", lambda p: p.test_mode),
)
_READ: Final = (
    "id", "number", "created_at", "completed_at", "payment_type", "practice", "status", "amount", "approved_amount",
    "currency", "brand", "method", "result_code", "merchant_transaction_id", "merchant_invoice_id", "merchant_memo",
    "request", "answer", "chain", "referenced", "registration", "test_mode", "merchant__name", "channel__name",
    "standing__state",
)  # fmt: skip


def _read_text(sent: Mapping[str, Any], structure: str, name: str) -> str:
    part = sent.get(structure)
    return str(part.get(name, "")) if isinstance(part, Mapping) else ""


def _describe_card(payment: Payment) -> str:
    card = payment.answer.get("card")
    return f"{card['bin']}******{card['last4Digits']}" if isinstance(card, Mapping) and "last4Digits" in card else ""


def _build_cells(payment: Payment) -> list[ExportCell]:
    """A row's cells, with card numbers masked: people type them into free-text fields (decision 0052)."""
    return [
        mask_text(cell) if isinstance(cell, str) else cell for cell in (read(payment) for _, read in EXPORT_COLUMNS)
    ]


# --- one slice ----------------------------------------------------------------------------------------------------


def export_payments_slice(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Write the next EXPORT_SLICE_ROWS payments; after the last, assemble the file. The cursor's ``sheets``: the parts
    of each sheet."""
    as_ = row.parameters["format"]
    cursor: dict[str, Any] = dict(row.cursor)
    scope, rows = _select_payments(row)
    if "sheets" not in cursor:
        cursor = {
            "until": first_id_at(clock.real_now()).hex,
            "after": "",
            "sheets": [[]],
            "rows": 0,
            "scopes": [],
        }
        total = rows.filter(pk__lt=UUID(cursor["until"])).count()
    else:
        total = None
    rows = rows.filter(pk__lt=UUID(cursor["until"]))
    if permissions.serialize_access_scope(scope) not in cursor.setdefault("scopes", []):
        # The scope of the file: who fetches it must still have the permission on all of it.
        cursor["scopes"] = [*cursor["scopes"], permissions.serialize_access_scope(scope)]
    if cursor["after"]:
        rows = rows.filter(pk__gt=UUID(cursor["after"]))
    found = list(rows.order_by("pk")[:EXPORT_SLICE_ROWS])
    writer = _write_csv if as_ == "csv" else _write_xlsx
    if found or not cursor["rows"]:
        cursor["sheets"] = writer(folder, cursor, [_build_cells(payment) for payment in found])
    if found:
        cursor |= {"after": found[-1].pk.hex, "rows": cursor["rows"] + len(found)}
    done = int(cursor["rows"])
    if len(found) == EXPORT_SLICE_ROWS:
        return queue.SliceResult(done=done, cursor=cursor, total=total)
    if as_ == "csv":
        name = folder.joined(cursor["sheets"][0], EXPORT_CSV_NAME, alive)
    else:
        name = _finish_xlsx(folder, cursor["sheets"], alive)
    return queue.SliceResult(done=done, cursor=cursor, total=done, finished=True, file=name)


def _select_payments(row: BackgroundWork) -> tuple[permissions.AccessScope, QuerySet[Payment]]:
    """The owner's current access scope, and the requested payments within it. Raises WorkFailedError."""
    owner = get_user_model().objects.get(pk=row.owner_id)
    scope = permissions.find_access_scope(owner, EXPORT_PAYMENT_PERMISSION)
    if not scope:
        raise queue.WorkFailedError("Your right to export payments was taken away.")
    asked = row.parameters.get("asked", {})
    filters, _ = parse_payment_filters(row.parameters.get("filters", {}))
    where = payment_search.build_search_condition(scope, payment_search.SearchTerm(**asked), filters)
    return scope, Payment.objects.filter(where).select_related("merchant", "channel", "standing").only(*_READ)


# --- CSV ----------------------------------------------------------------------------------------------------------

EXPORT_CSV_NAME: Final = "payments.csv"


def _write_csv(
    folder: AttemptFolder, cursor: Mapping[str, Any], rows: Sequence[Sequence[ExportCell]]
) -> list[list[FilePart]]:
    (parts,) = cursor["sheets"]
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\r\n")
    if not parts:
        # Without the byte order mark, spreadsheets assume a local encoding.
        lines.write("\ufeff")
        writer.writerow([name for name, _ in EXPORT_COLUMNS])
    writer.writerows([escape_cell(cell) for cell in row] for row in rows)
    return [folder.append(parts, EXPORT_CSV_NAME, lines.getvalue().encode())]


def escape_cell(cell: ExportCell) -> str:
    """A cell as text that no spreadsheet runs as a formula."""
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return f"{cell.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    return f"{cell:.2f}" if isinstance(cell, Decimal) else escape_csv_formula(cell)


# --- XLSX ---------------------------------------------------------------------------------------------------------

EXPORT_XLSX_NAME: Final = "payments.xlsx"
_SHEET_EPOCH: Final = datetime(1899, 12, 30)  # noqa: DTZ001 - sheets know no zones; the column's head says UTC
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_STYLES: Final = (
    f'<?xml version="1.0" encoding="UTF-8"?><styleSheet xmlns="{_MAIN}">'
    '<numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>'
    '<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="2"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)
"""Style 1 is that of times."""
_HEAD: Final = f'<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="{_MAIN}"><sheetData>'
_FOOT: Final = "</sheetData></worksheet>"
_CONTROL: Final = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
    if code not in (9, 10, 13)
}
"""Characters that XML does not allow."""


def _write_xlsx(
    folder: AttemptFolder, cursor: Mapping[str, Any], rows: Sequence[Sequence[ExportCell]]
) -> list[list[FilePart]]:
    """Append rows to the sheets: XML in gzip members, which can be concatenated."""
    sheets: list[list[FilePart]] = list(cursor["sheets"])
    written, per_sheet = int(cursor["rows"]), MAX_SHEET_ROWS - 1
    while True:
        sheet = written // per_sheet
        room = per_sheet - written % per_sheet
        now, rows = rows[:room], rows[room:]
        if sheet == len(sheets):
            sheets.append([])
        text = "".join(_build_xlsx_row(cells) for cells in now)
        if not sheets[sheet]:
            text = _HEAD + _build_xlsx_row([name for name, _ in EXPORT_COLUMNS]) + text
        sheets[sheet] = folder.append(sheets[sheet], f"sheet{sheet + 1}.gz", gzip.compress(text.encode(), 1))
        written += len(now)
        if not rows:
            return sheets


def _build_xlsx_row(cells: Iterable[ExportCell]) -> str:
    return f"<row>{''.join(_build_xlsx_cell(cell) for cell in cells)}</row>"


def _build_xlsx_cell(cell: ExportCell) -> str:
    if cell is None or cell == "":
        return "<c/>"
    if isinstance(cell, Decimal):
        return f"<c><v>{cell:.2f}</v></c>"
    if isinstance(cell, datetime):
        return f'<c s="1"><v>{_count_sheet_days(cell)}</v></c>'
    text = escape(escape_formula(cell).translate(_CONTROL))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _count_sheet_days(at: datetime) -> str:
    """A time as a spreadsheet counts it: days since 1899-12-30, to the second, in UTC."""
    seconds = (at.astimezone(UTC).replace(tzinfo=None, microsecond=0) - _SHEET_EPOCH).total_seconds()
    return f"{seconds / 86_400:.9f}"


def _finish_xlsx(folder: AttemptFolder, sheets: Sequence[Sequence[FilePart]], alive: Callable[[], None]) -> str:
    """Assemble the sheets into one workbook."""
    whole = folder.own(EXPORT_XLSX_NAME)
    with zipfile.ZipFile(folder.path / whole, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as book:
        for name, text in _build_workbook_parts(len(sheets)):
            book.writestr(name, text)
        for number, parts in enumerate(sheets, start=1):
            with (
                book.open(f"xl/worksheets/sheet{number}.xml", "w", force_zip64=True) as sheet,
                gzip.open(folder.reading(parts)) as rows,
            ):
                while piece := rows.read(4 * 1024 * 1024):
                    sheet.write(piece)
                    alive()
                sheet.write(_FOOT.encode())
    return whole


def _build_workbook_parts(sheets: int) -> Iterator[tuple[str, str]]:
    """The workbook's files apart from its sheets."""
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for n in range(1, sheets + 1)
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
        _build_relations(
            [*(("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, sheets + 1)), ("styles", "styles.xml")]
        ),
    )
    yield "xl/styles.xml", _STYLES
    named = "".join(f'<sheet name="Payments {n}" sheetId="{n}" r:id="r{n}"/>' for n in range(1, sheets + 1))
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


PAYMENT_EXPORT: Final = queue.register_work_kind(
    queue.WorkKind(
        name="payments export",
        about="payments as CSV or XLSX",
        right=EXPORT_PAYMENT_PERMISSION,
        step=export_payments_slice,
    )
)

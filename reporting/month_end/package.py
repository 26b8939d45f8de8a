"""The files of a month as one ZIP: lines as CSV by currency, a workbook, a PDF with the statement and checksums.

Written slice by slice as background work (docs/background-work.md). Lines are those with a settlement date in the
month, matched as they were when the work began. Source: decision 0091.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.utils import translation
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.access.permissions import AccessScope, RowOwner
from gateway.background import queue
from gateway.background.files import COPY_CHUNK_BYTES, AttemptFolder
from gateway.backoffice.kit import workbook
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.kit.workbook import SheetCell
from gateway.core import clock
from gateway.core.spreadsheet_cells import escape_csv_formula
from gateway.db.database_clock import read_database_time
from gateway.models import BackgroundWork, Merchant
from reporting.models import ClearingInstitute, MonthClosing, SettlementRecord
from reporting.month_end.statement import (
    MISSING_PART,
    CurrencyFigures,
    MonthScope,
    MonthStatement,
    build_statement,
    last_of_month,
)
from reporting.reconciliation.file_columns import render_csv_blocks
from reporting.settlement.record_queries import (
    FETCH_SIZE,
    DisplayNames,
    SettlementLine,
    load_display_names,
    query_lines,
)

EXPORT_BOOKS_PERMISSION: Final = "reporting.export_reconciliationfile"
_CHOSEN: Final = (
    "r.settlement_id IN (SELECT s.id FROM reporting_settlement s WHERE s.date >= %(first)s AND s.date <= %(last)s"
    " AND (s.merchant_id = %(merchant)s OR s.merchant_id IS NULL))"
    " AND r.merchant_id IS NOT DISTINCT FROM %(merchant)s"
    " AND r.file_id IN (SELECT d.id FROM reporting_settlementfile d WHERE d.state = 'DONE')"
    " AND r.id > %(after)s::uuid ORDER BY r.id LIMIT %(fetched)s"
)
_LINE_COLUMNS: Final[tuple[tuple[str, Callable[[SettlementLine], SheetCell]], ...]] = (
    ("settled", lambda line: date.fromisoformat(line.settlement_date)),
    ("recorded (UTC)", lambda line: datetime.fromisoformat(line.recorded_at)),
    ("record type", lambda line: line.record_type),
    ("transaction type", lambda line: line.transaction_type),
    ("amount", lambda line: _signed(line, line.amount)),
    ("currency", lambda line: line.currency),
    ("settlement amount", lambda line: _signed(line, line.settlement_amount)),
    ("settlement currency", lambda line: line.settlement_currency),
    ("fee", lambda line: Decimal(line.settlement_fee) if line.settlement_fee is not None else None),
    ("rate", lambda line: Decimal(line.fx_rate)),
    ("status", lambda line: line.settlement_status),
    ("matching", lambda line: line.matching),
    ("payment", lambda line: line.payment or ""),
    ("merchantTransactionId", lambda line: line.paid_transaction_id or line.merchant_transaction_id),
    ("merchantInvoiceId", lambda line: line.paid_invoice_id or line.merchant_invoice_id),
    ("brand", lambda line: line.brand or line.paid_brand),
    ("institute", lambda line: line.institute_name),
    ("institute's account", lambda line: line.institute_merchant_id),
    ("reason", lambda line: line.reason_code),
)


def _signed(line: SettlementLine, amount: str) -> Decimal:
    return Decimal(amount) if line.cashflow == "POS" else -Decimal(amount)


# --- slices -------------------------------------------------------------------------------------------------------


def build_month_slice(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Write the next FETCH_SIZE lines; after the last, assemble the ZIP. The cursor's ``groups``: the merchants with
    lines ('' for lines of no known merchant), of which ``group`` is being written after the line ``after``; ``csv``:
    the parts of each CSV file; ``lines``: those of the workbook's sheets."""
    scope = read_work_scope(row)
    cursor: dict[str, Any] = dict(row.cursor)
    if "groups" not in cursor:
        cursor = {
            "as_of": read_database_time().isoformat(),
            "groups": _list_groups(scope),
            "group": 0,
            "after": "0" * 32,
            "csv": {},
            "lines": [],
            "rows": 0,
            "scopes": [],
        }
    owned = permissions.serialize_access_scope(_owned_scope(scope))
    if owned not in cursor["scopes"]:
        # Who fetches the file must still have the permission on all of it.
        cursor["scopes"] = [*cursor["scopes"], owned]
    if cursor["group"] < len(cursor["groups"]):
        _write_lines(scope, folder, cursor)
        return queue.SliceResult(done=cursor["rows"], cursor=cursor)
    with translation.override(row.parameters.get("language", "en")):
        name = _assemble_zip(scope, folder, cursor, alive)
    return queue.SliceResult(done=cursor["rows"], total=cursor["rows"], cursor=cursor, finished=True, file=name)


def read_work_scope(row: BackgroundWork) -> MonthScope:
    """Month and merchants of the work. Raises WorkFailedError if its owner no longer has access to all of them."""
    asked = row.parameters["merchants"]
    merchants = None if asked is None else frozenset(UUID(text) for text in asked)
    scope = permissions.find_access_scope(get_user_model().objects.get(pk=row.owner_id), EXPORT_BOOKS_PERMISSION)
    reached = scope.everything or (
        merchants is not None and all(scope.covers(RowOwner(merchant=one)) for one in merchants)
    )
    if not reached:
        raise queue.WorkFailedError("Your right to export reconciliation files was taken away.")
    return MonthScope(month=date.fromisoformat(row.parameters["month"]), merchants=merchants)


def _owned_scope(scope: MonthScope) -> AccessScope:
    return AccessScope(everything=scope.merchants is None, merchants=scope.merchants or frozenset())


def _list_groups(scope: MonthScope) -> list[str]:
    lines = SettlementRecord.objects.filter(
        settlement__date__range=(scope.month, last_of_month(scope.month)), file__state="DONE"
    )
    if scope.merchants is not None:
        lines = lines.filter(merchant__in=scope.merchants)
    found = lines.order_by().values_list("merchant", flat=True).distinct()
    return sorted(one.hex if one is not None else "" for one in found)


def _write_lines(scope: MonthScope, folder: AttemptFolder, cursor: dict[str, Any]) -> None:
    merchant, names = _load_names(cursor["groups"][cursor["group"]])
    lines = query_lines(
        _CHOSEN,
        "r.id",
        {
            "first": scope.month,
            "last": last_of_month(scope.month),
            "merchant": merchant.pk if merchant is not None else None,
            "after": cursor["after"],
            "fetched": FETCH_SIZE,
        },
        as_of=datetime.fromisoformat(cursor["as_of"]),
        names=names,
    )
    if merchant is None:
        lines, place = [line._replace(merchant="") for line in lines], "no-merchant/"
    else:
        place = f"{merchant.pk.hex}/" if scope.merchants is None or len(scope.merchants) > 1 else ""
    for currency in sorted({line.settlement_currency for line in lines}):
        name = f"{place}lines-{scope.month:%Y-%m}-{currency}.csv"
        parts = cursor["csv"].get(name, [])
        own = [line for line in lines if line.settlement_currency == currency]
        blocks = list(render_csv_blocks(own, escape=escape_csv_formula))
        written = b"".join(blocks[1:] if parts else blocks)
        cursor["csv"] = {**cursor["csv"], name: folder.append(parts, name.replace("/", "-"), written)}
    called = merchant.name if merchant is not None else ""
    cells = [[called, *(read(line) for _name, read in _LINE_COLUMNS)] for line in lines]
    head = ["merchant", *(name for name, _read in _LINE_COLUMNS)]
    cursor["lines"] = workbook.append_sheet_rows(folder, cursor["lines"], "lines", cursor["rows"], head, cells)
    cursor["rows"] += len(lines)
    if len(lines) < FETCH_SIZE:
        cursor |= {"group": cursor["group"] + 1, "after": "0" * 32}
    else:
        cursor["after"] = lines[-1].id


def _load_names(group: str) -> tuple[Merchant | None, DisplayNames]:
    if not group:
        institutes = {key.hex: name for key, name in ClearingInstitute.objects.values_list("id", "name")}
        return None, DisplayNames(psp="", division="", accounts={}, institutes=institutes)
    merchant = Merchant.objects.select_related("division").get(pk=UUID(group))
    return merchant, load_display_names(merchant)


# --- the ZIP ------------------------------------------------------------------------------------------------------


def _assemble_zip(
    scope: MonthScope, folder: AttemptFolder, cursor: Mapping[str, Any], alive: Callable[[], None]
) -> str:
    statement = build_statement(scope)
    stem = f"month-{scope.month:%Y-%m}"
    book = _assemble_book(statement, folder, cursor, stem, alive)
    name = folder.own(f"{stem}.zip")
    sums: list[tuple[str, str]] = []
    with zipfile.ZipFile(folder.path / name, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as packed:
        for one, parts in sorted(cursor["csv"].items()):
            sums.append((one, _pack(packed, one, folder.reading(parts), alive)))
        with (folder.path / book).open("rb") as opened:
            sums.append((f"{stem}.xlsx", _pack(packed, f"{stem}.xlsx", opened, alive)))
        paper = _render_summary(scope, statement, sums)
        packed.writestr(f"{stem}.pdf", paper)
        sums.append((f"{stem}.pdf", hashlib.sha256(paper).hexdigest()))
        packed.writestr("SHA256SUMS", "".join(f"{digest}  {one}\n" for one, digest in sums))
    return name


def _pack(packed: zipfile.ZipFile, name: str, source: IO[bytes], alive: Callable[[], None]) -> str:
    """Copy ``source`` into the ZIP; returns its SHA-256."""
    digest = hashlib.sha256()
    with packed.open(name, "w", force_zip64=True) as target:
        while piece := source.read(COPY_CHUNK_BYTES):
            digest.update(piece)
            target.write(piece)
            alive()
    return digest.hexdigest()


def _assemble_book(
    statement: MonthStatement,
    folder: AttemptFolder,
    cursor: Mapping[str, Any],
    stem: str,
    alive: Callable[[], None],
) -> str:
    head = ["currency", "part", "amount", "lines"]
    rows = {
        "payouts": [*_statement_rows(statement.payouts, _("Paid out"))],
        "balance": [*_statement_rows(statement.balances, _("Balance"))],
    }
    sheets = [
        (name.capitalize(), workbook.append_sheet_rows(folder, [], name, 0, head, cells)[0])
        for name, cells in rows.items()
    ]
    sheets += [(f"Lines {number}", parts) for number, parts in enumerate(cursor["lines"], start=1)]
    return workbook.assemble_workbook(folder, f"{stem}.xlsx", sheets, alive)


def _statement_rows(figures: Sequence[CurrencyFigures], total: str) -> Iterator[list[SheetCell]]:
    for one in figures:
        for part in one.parts:
            yield [one.currency, str(part.title), part.amount, part.count]
        yield [one.currency, total, one.total, None]
        for part in one.open:
            if part.name != MISSING_PART:
                yield [one.currency, f"{_('Open')}: {part.title}", part.amount, part.count]


def _render_summary(scope: MonthScope, statement: MonthStatement, sums: Sequence[tuple[str, str]]) -> bytes:
    """The statement, who signed it, and the checksums of the other files, as PDF."""
    from gateway.backoffice.kit.pdf_paper import PdfPaper  # a hundred modules that nothing else needs

    title = f"{_('Month end')} {scope.month:%Y-%m}"
    paper = PdfPaper(title)
    paper.add_page()
    paper.write_(title, 17, 2)
    paper.write_(f"{_('made')} {clock.real_now():%Y-%m-%d %H:%M} UTC", 10)
    paper.rows(_("Merchants"), _describe_closings(scope))
    for one in statement.payouts:
        rows = [(str(part.title), format_money(part.amount, one.currency)) for part in one.parts]
        paper.rows(f"{_('Payouts')} {one.currency}", [*rows, (_("Paid out"), format_money(one.total, one.currency))])
    for one in statement.balances:
        rows = [(str(part.title), format_money(part.amount, one.currency)) for part in one.parts]
        rows.append((_("Balance"), format_money(one.total, one.currency)))
        rows += [(f"{_('Open')}: {part.title}", f"{part.count}") for part in one.open]
        paper.rows(f"{_('Balance')} {one.currency}", rows)
    # In two lines of half a digest each: the whole one is wider than the column.
    paper.rows("SHA-256", [(Path(name).name, f"{digest[:32]}\n{digest[32:]}") for name, digest in sums])
    return bytes(paper.output())


def _describe_closings(scope: MonthScope) -> list[tuple[str, str]]:
    merchants = Merchant.objects.order_by("name")
    if scope.merchants is not None:
        merchants = merchants.filter(pk__in=scope.merchants)
    signed = {
        row.merchant_id: row for row in MonthClosing.objects.filter(month=scope.month, state=MonthClosing.State.SIGNED)
    }
    return [(one.name, _describe_closing(signed.get(one.pk))) for one in merchants]


def _describe_closing(row: MonthClosing | None) -> str:
    if row is None or row.signed_at is None:
        return _("not closed")
    return _("prepared by %(first)s, signed by %(second)s, %(at)s UTC, figures %(digest)s") % {
        "first": row.prepared_by_name,
        "second": row.signed_by_name,
        "at": f"{row.signed_at:%Y-%m-%d %H:%M}",
        "digest": row.digest[:16],
    }


MONTH_PACKAGE: Final = queue.WorkKind(
    name="month package", about="the files of a month as ZIP", right=EXPORT_BOOKS_PERMISSION, step=build_month_slice
)

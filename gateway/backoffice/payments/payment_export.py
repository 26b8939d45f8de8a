"""Exports of payments as CSV or XLSX of any length, written slice by slice.

An export has the payments of the list at the time it was requested, oldest first, as far as its owner may see them at
the time of each slice. Cells that a spreadsheet would take for a formula begin with an apostrophe. A full XLSX sheet is
continued on the next. Source: docs/background-work.md, docs/decisions/0025.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import QuerySet

from gateway.access import permissions
from gateway.background import queue
from gateway.background.files import AttemptFolder, FilePart
from gateway.backoffice.kit import workbook
from gateway.backoffice.payments import payment_search, search_terms
from gateway.backoffice.payments.payment_filters import parse_payment_filters
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.core import clock, identifiers, result_codes
from gateway.core.identifiers import first_id_at
from gateway.core.masking import mask_text
from gateway.core.spreadsheet_cells import escape_csv_formula
from gateway.db.standby import find_written_position, has_standby, read_elsewhere
from gateway.models import BackgroundWork, Payment
from gateway.payments.chain_states import resolve_chain_status

EXPORT_PAYMENT_PERMISSION: Final = "gateway.export_payment"
EXPORT_SLICE_ROWS: Final = 2_000
"""Payments of one slice."""
SHOPPER_NAMES: Final = ("givenName", "surname")
EXPORT_FORMATS: Final = ("csv", "xlsx")
ExportCell = str | Decimal | datetime | None
ExportColumns = Sequence[tuple[str, Callable[[Payment], ExportCell]]]
EXPORT_COLUMNS: Final[ExportColumns] = (
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
    ("shopper", lambda p: _read_shopper(p)),
    ("connector", lambda p: p.connector),
    ("acquirer's reference", lambda p: p.connector_tx_id),
    ("first payment", lambda p: p.chain.hex),
    ("referencedId", lambda p: p.referenced.hex if p.referenced else ""),
    ("registrationId", lambda p: p.registration.hex if p.registration else ""),
    ("testMode", lambda p: p.test_mode),
)
_READ: Final = (
    "id", "number", "created_at", "completed_at", "payment_type", "practice", "status", "amount", "approved_amount",
    "currency", "brand", "method", "result_code", "merchant_transaction_id", "merchant_invoice_id", "merchant_memo",
    "request", "answer", "chain", "referenced", "registration", "test_mode", "connector", "connector_tx_id",
    "merchant__name", "channel__name", "standing__state",
)  # fmt: skip


def _read_text(sent: Mapping[str, Any], structure: str, name: str) -> str:
    part = sent.get(structure)
    return str(part.get(name, "")) if isinstance(part, Mapping) else ""


def _read_shopper(payment: Payment) -> str:
    return " ".join(filter(None, (_read_text(payment.request, "customer", name) for name in SHOPPER_NAMES)))


def _describe_card(payment: Payment) -> str:
    card = payment.answer.get("card")
    return f"{card['bin']}******{card['last4Digits']}" if isinstance(card, Mapping) and "last4Digits" in card else ""


LIST_EXPORT_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    "when": ("created (UTC)",), "what": ("operation",), "amount": ("amount", "currency"),
    "state": ("status", "state of the whole payment"), "means": ("brand", "card"), "order": ("merchantTransactionId",),
    "merchant": ("merchant",), "channel": ("channel",), "approved": ("approved", "currency"),
    "invoice": ("merchantInvoiceId",), "memo": ("merchantMemo",), "shopper": ("shopper",), "email": ("e-mail",),
    "holder": ("holder",), "result": ("result code", "result"), "shortId": ("shortId",), "id": ("id",),
    "acquirer": ("connector",), "reference": ("acquirer's reference",), "completed": ("completed (UTC)",),
})  # fmt: skip
"""Column of the list → its columns in an export. A test asks for every column of the list."""


def select_export_columns(shown: Sequence[str]) -> ExportColumns:
    """The columns of an export, in their order; ``shown``: columns of the list, none for all."""
    wanted = {name for column in shown for name in LIST_EXPORT_COLUMNS.get(column, ())}
    return [column for column in EXPORT_COLUMNS if not wanted or column[0] in wanted]


def _build_cells(payment: Payment, columns: ExportColumns) -> list[ExportCell]:
    """A row's cells, with card numbers masked: people type them into free-text fields (decision 0052)."""
    cells = (read(payment) for _, read in columns)
    return [mask_text(cell) if isinstance(cell, str) else cell for cell in cells]


def scope_to_channel(channel: UUID) -> dict[str, Any]:
    """The ``scopes`` entry of a cursor whose file has payments of one channel alone."""
    return permissions.serialize_access_scope(permissions.AccessScope(channels=frozenset({channel})))


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
            # A standby that has not come so far would leave out payments of the list.
            "written": find_written_position() if has_standby() else 0,
            "after": "",
            "sheets": [[]],
            "rows": 0,
            "scopes": [],
        }
        total, _ = read_elsewhere(rows.filter(pk__lt=UUID(cursor["until"])).count, written=cursor["written"])
    else:
        total = None
    rows = rows.filter(pk__lt=UUID(cursor["until"]))
    if permissions.serialize_access_scope(scope) not in cursor.setdefault("scopes", []):
        # The scope of the file: who fetches it must still have the permission on all of it.
        cursor["scopes"] = [*cursor["scopes"], permissions.serialize_access_scope(scope)]
    if cursor["after"]:
        rows = rows.filter(pk__gt=UUID(cursor["after"]))
    found, _ = read_elsewhere(lambda: list(rows.order_by("pk")[:EXPORT_SLICE_ROWS]), written=cursor.get("written", 0))
    writer = _write_csv if as_ == "csv" else _write_xlsx
    columns = select_export_columns(row.parameters.get("columns", ()))
    head = [name for name, _ in columns]
    if found or not cursor["rows"]:
        cursor["sheets"] = writer(folder, cursor, head, [_build_cells(payment, columns) for payment in found])
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
    chosen = Payment.objects.select_related("merchant", "channel", "standing").only(*_READ)
    if ids := row.parameters.get("ids"):
        return scope, chosen.filter(scope.where(), pk__in=[UUID(ident) for ident in ids])
    asked = row.parameters.get("asked", {})
    filters, _ = parse_payment_filters(row.parameters.get("filters", {}))
    where = payment_search.build_search_condition(scope, search_terms.SearchTerm(**asked), filters)
    return scope, chosen.filter(where)


# --- CSV ----------------------------------------------------------------------------------------------------------

EXPORT_CSV_NAME: Final = "payments.csv"


def _write_csv(
    folder: AttemptFolder, cursor: Mapping[str, Any], head: Sequence[str], rows: Sequence[Sequence[ExportCell]]
) -> list[list[FilePart]]:
    (parts,) = cursor["sheets"]
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\r\n")
    if not parts:
        # Without the byte order mark, spreadsheets assume a local encoding.
        lines.write("\ufeff")
        writer.writerow(head)
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


def _write_xlsx(
    folder: AttemptFolder, cursor: Mapping[str, Any], head: Sequence[str], rows: Sequence[Sequence[ExportCell]]
) -> list[list[FilePart]]:
    return workbook.append_sheet_rows(folder, cursor["sheets"], "sheet", int(cursor["rows"]), head, rows)


def _finish_xlsx(folder: AttemptFolder, sheets: Sequence[Sequence[FilePart]], alive: Callable[[], None]) -> str:
    """Assemble the sheets into one workbook."""
    named = [(f"Payments {number}", parts) for number, parts in enumerate(sheets, start=1)]
    return workbook.assemble_workbook(folder, EXPORT_XLSX_NAME, named, alive)


PAYMENT_EXPORT: Final = queue.WorkKind(
    name="payments export",
    about="payments as CSV or XLSX",
    right=EXPORT_PAYMENT_PERMISSION,
    step=export_payments_slice,
)

"""The back office's pages of settlement: files, exceptions, payouts, reconciliation files."""

from reporting.admin import (
    book_search,
    exception_queue,
    home_reconciliation,
    home_settlements,
    month_end,
    payouts,
    reconciliation_files,
    settlement_files,
)

__all__ = [
    "book_search",
    "exception_queue",
    "home_reconciliation",
    "home_settlements",
    "month_end",
    "payouts",
    "reconciliation_files",
    "settlement_files",
]

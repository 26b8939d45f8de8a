"""The back office's pages of settlement: files, exceptions, payouts, reconciliation files."""

from reporting.admin import (
    exception_queue,
    home_reconciliation,
    home_settlements,
    payouts,
    reconciliation_files,
    settlement_files,
)

__all__ = [
    "exception_queue",
    "home_reconciliation",
    "home_settlements",
    "payouts",
    "reconciliation_files",
    "settlement_files",
]

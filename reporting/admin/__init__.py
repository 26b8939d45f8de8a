"""The back office's pages of settlement: files, exceptions, payouts, reconciliation files."""

from reporting.admin import exceptions, files, outgoing, payouts

__all__ = ["exceptions", "files", "outgoing", "payouts"]

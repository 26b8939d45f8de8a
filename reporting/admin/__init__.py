"""The back office's pages of settlement: files, exceptions, payouts, reconciliation files."""

from reporting.admin import exceptions, files, home, home_sending, outgoing, payouts

__all__ = ["exceptions", "files", "home", "home_sending", "outgoing", "payouts"]

"""Fixtures of the tests of payments."""

from tests.support.account_updater import updater, updating
from tests.support.iso_host import iso_host

__all__ = ["iso_host", "updater", "updating"]

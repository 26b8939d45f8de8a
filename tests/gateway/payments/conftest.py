"""Fixtures of the tests of payments."""

from tests.support.iso_host import iso_host

__all__ = ["iso_host"]

"""Fixtures of the tests of wallet payments."""

from tests.support.iso_host import iso_host

__all__ = ["iso_host"]

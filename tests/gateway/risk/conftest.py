"""The host of these tests."""

from tests.support.iso_host import iso_host

__all__ = ["iso_host"]

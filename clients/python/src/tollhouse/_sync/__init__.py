# Derived from _async/__init__.py by `make clients`. Do not edit.
"""The synchronous client."""

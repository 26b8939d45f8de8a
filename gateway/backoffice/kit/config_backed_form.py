"""Validation of forms by the sections of the configuration document, as ``manage.py configure`` does it.

A form names the section its fields belong to and which field shows the error of which path. The page therefore refuses
what the command refuses, with the same messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from gateway.configuration.section import ConfigurationTarget
from gateway.configuration.sections import CONFIGURATION_SECTIONS
from gateway.core import document as d


def validate_section(target: ConfigurationTarget | None, section: str, value: Any) -> d.DocumentFaults:
    """The errors that a section finds in ``value``. Without a target, checks that need the database are left out."""
    faults = d.DocumentFaults()
    found = CONFIGURATION_SECTIONS[section].shape(value, "", faults)
    if not faults and target is not None:
        CONFIGURATION_SECTIONS[section].check(target, found, "", faults)
    return faults


def add_section_errors(form: forms.BaseForm, faults: d.DocumentFaults, fields: Mapping[str, str]) -> None:
    """Add a section's errors to a form. ``fields``: first name of a path → field; others stand above the form."""
    for fault in faults:
        first = fault.path.lstrip(".").partition(".")[0].partition("[")[0]
        field = fields.get(first)
        path = fault.path.lstrip(".")
        words = fault.message if path == first else f"{path}: {fault.message}"
        form.add_error(field if field in form.fields else None, words)

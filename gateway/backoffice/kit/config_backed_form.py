"""Forms that agree with ``manage.py configure``: what they hold is read by the same sections (gateway.configuration).

A form says which section its fields belong to and how a fault's path leads back to a field. What the command refuses,
the page refuses, in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from gateway.configuration.section import ConfigurationTarget
from gateway.configuration.sections import CONFIGURATION_SECTIONS
from gateway.core import document as d


def validate_section(target: ConfigurationTarget | None, section: str, value: Any) -> d.DocumentFaults:
    """What the section finds wrong; without a target only what needs no database is looked at."""
    faults = d.DocumentFaults()
    found = CONFIGURATION_SECTIONS[section].shape(value, "", faults)
    if not faults and target is not None:
        CONFIGURATION_SECTIONS[section].check(target, found, "", faults)
    return faults


def add_section_errors(
    form: forms.BaseForm, faults: d.DocumentFaults, fields: Mapping[str, str], rest: str | None = None
) -> None:
    """Put faults beside their fields: ``fields`` leads from the first name of a path to a field; ``rest`` takes what
    no field does, None: above the form."""
    for fault in faults:
        first = fault.path.lstrip(".").partition(".")[0].partition("[")[0]
        field = fields.get(first, rest)
        path = fault.path.lstrip(".")
        words = fault.message if path == first else f"{path}: {fault.message}"
        form.add_error(field if field in form.fields else None, words)

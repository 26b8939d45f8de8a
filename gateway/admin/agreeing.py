"""Forms that agree with ``manage.py configure``: what they hold is read by the same sections (gateway.configuration).

A form says which section its fields belong to and how a fault's path leads back to a field. What the command refuses,
the page refuses, in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from gateway import document as d
from gateway.configuration.section import Target
from gateway.configuration.sections import SECTIONS


def faults_of(target: Target | None, section: str, value: Any) -> d.Faults:
    """What the section finds wrong; without a target only what needs no database is looked at."""
    faults = d.Faults()
    found = SECTIONS[section].shape(value, "", faults)
    if not faults and target is not None:
        SECTIONS[section].check(target, found, "", faults)
    return faults


def tell(form: forms.BaseForm, faults: d.Faults, fields: Mapping[str, str], rest: str | None = None) -> None:
    """Put faults beside their fields: ``fields`` leads from the first name of a path to a field; ``rest`` takes what
    no field does, None: above the form."""
    for fault in faults:
        first = fault.path.lstrip(".").partition(".")[0].partition("[")[0]
        field = fields.get(first, rest)
        path = fault.path.lstrip(".")
        words = fault.message if path == first else f"{path}: {fault.message}"
        form.add_error(field if field in form.fields else None, words)

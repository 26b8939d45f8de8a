"""Composite form fields: several inputs that hold one part of a configuration document, with errors beside each input.

A widget names its inputs for a value (:class:`CompositeInput`) and reads them back. The section of the configuration
validates the value (gateway.backoffice.kit.config_backed_form). Empty inputs are left out of the value, so that the
clerk reads the section's own message about what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Final

from django import forms
from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminTextInputWidget

from gateway.backoffice.kit.formatting import format_labelled
from gateway.core import document as d

InputText = str | Promise
_WHOLE: Final = re.compile("-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class CompositeInput:
    """One input of a composite field. ``kind``: text, number, time, select, lines (a list, one a line), commas (a list,
    with commas), flag (true or absent), flags (a list out of ``choices``). ``unit`` is shown behind it; ``known``
    values are suggested while typing."""

    name: str
    label: InputText
    _: KW_ONLY
    kind: str = "text"
    help: InputText = ""
    unit: InputText = ""
    choices: Sequence[tuple[str, InputText]] = ()
    known: Sequence[str] = ()
    wide: bool = False
    value: Any = None
    faults: tuple[str, ...] = field(default=())

    @property
    def ident(self) -> str:
        return "id_" + re.sub("[^A-Za-z0-9]+", "_", self.name)

    @property
    def list_id(self) -> str:
        return f"{self.ident}_known"

    @property
    def text(self) -> str:
        """The value as the text of the input."""
        if self.value is None:
            return ""
        if isinstance(self.value, list | tuple):
            return ("\n" if self.kind == "lines" else ", ").join(str(each) for each in self.value)
        return str(self.value)

    @property
    def chosen(self) -> list[tuple[str, InputText, bool]]:
        """The choices as (value, text, selected)."""
        taken = self.value if isinstance(self.value, list | tuple) else [self.value]
        values = [str(each) for each in taken if each is not None]
        found = [(value, words, value in values or (value == "" and not values)) for value, words in self.choices]
        # A value that is no choice stays in the form, so that its section can report it.
        strange = [value for value in values if value and value not in dict(self.choices)]
        return found + ([(value, value, True) for value in strange] if self.kind in ("select", "flags") else [])

    def put(self, prefix: str, value: Any, faults: Iterable[str] = ()) -> CompositeInput:
        """A copy of this input for a form, with its full name, its value and its errors."""
        return replace(self, name=f"{prefix}.{self.name}", value=value, faults=tuple(faults))

    def read(self, data: Any, prefix: str) -> Any:
        """The value that was typed or chosen; None for an empty input."""
        name = f"{prefix}.{self.name}"
        if self.kind == "flags":
            return list(data.getlist(name)) or None
        if self.kind == "flag":
            return True if data.get(name) else None
        typed = data.get(name, "").strip()
        if not typed:
            return None
        if self.kind == "lines":
            return [line.strip() for line in typed.splitlines() if line.strip()] or None
        if self.kind == "commas":
            return [part.strip() for part in typed.replace("\n", ",").split(",") if part.strip()] or None
        return int(typed) if self.kind == "number" and _WHOLE.fullmatch(typed) else typed


def read_inputs(inputs: Iterable[CompositeInput], data: Any, prefix: str) -> dict[str, Any]:
    """Name → value of the inputs that are filled in."""
    return {one.name: value for one in inputs if (value := one.read(data, prefix)) is not None}


class CompositeWidget(forms.Widget):
    """A widget of several inputs. ``faults``: path within the value → errors, set when the form is validated."""

    template: ClassVar[str] = "admin/composed/group.html"
    use_fieldset = True

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__(attrs)
        self.faults: dict[str, list[str]] = {}

    def shown(self, name: str, value: Any) -> dict[str, Any]:
        """The template's context for a value."""
        raise NotImplementedError

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        return SafeString(render_to_string(self.template, {"name": name, **self.shown(name, value)}))

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return False

    def id_for_label(self, id_: str) -> str:
        return ""


class CompositeField(forms.Field):
    """A field whose value comes from several inputs. It validates nothing itself."""

    def __init__(self, widget: CompositeWidget, **kwargs: Any) -> None:
        super().__init__(**{"required": False, **kwargs, "widget": widget})

    def clean(self, value: Any) -> Any:
        return value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(initial != data)


def add_input_errors(form: forms.BaseForm, name: str, faults: Iterable[d.DocumentFault], root: str = "") -> None:
    """Show errors of a composite field beside its inputs. ``root``: the path of the field's value in the document."""
    found: dict[str, list[str]] = {}
    for fault in faults:
        path = fault.path.lstrip(".")
        found.setdefault(path.removeprefix(root).lstrip("."), []).append(fault.message)
    if not found:
        return
    widget = form.fields[name].widget
    assert isinstance(widget, CompositeWidget)
    widget.faults = found
    words = [format_labelled(path or _("Here"), each) for path, several in found.items() for each in several]
    form.add_error(name, words)


class GroupWidget(CompositeWidget):
    """A flat object with one input per member. Members without an input are left as they are."""

    def __init__(self, inputs: Sequence[CompositeInput]) -> None:
        super().__init__()
        self.inputs = list(inputs)

    def shown(self, name: str, value: Any) -> dict[str, Any]:
        found = value if isinstance(value, Mapping) else {}
        return {"inputs": [one.put(name, found.get(one.name), self.faults.get(one.name, ())) for one in self.inputs]}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, Any]:
        return read_inputs(self.inputs, data, name)


def use_one_line_inputs(form: forms.BaseForm, *names: str) -> None:
    """Give lists of codes a one-line input, written with commas; the theme's default is a box of ten lines."""
    for name in names:
        if name in form.fields:
            form.fields[name].widget = UnfoldAdminTextInputWidget()

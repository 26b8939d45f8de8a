"""Inputs of a channel's rate limits, of its card-testing guard, and of how long its authorizations are valid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from gateway.backoffice.kit.composite_field import CompositeInput, CompositeWidget, GroupWidget, read_inputs
from gateway.models import THROTTLED_OPERATIONS

NO_END: Final = "none"
LIMIT_INHERITED, LIMIT_CUSTOM, LIMIT_UNLIMITED = "", "own", "none"
_WORDS: Final = {
    "*": gettext_lazy("every other request"), "payment": gettext_lazy("payments"),
    "follow-up": gettext_lazy("captures, refunds, reversals"), "registration": gettext_lazy("registrations"),
    "status": gettext_lazy("status of a checkout"), "checkout": gettext_lazy("checkouts"),
    "widget": gettext_lazy("payment form"), "query": gettext_lazy("queries"), "report": gettext_lazy("reports"),
    "test": gettext_lazy("test helpers"),
}  # fmt: skip
_USUAL: Final = gettext_lazy("as every other request")
_INSTALLATION: Final = format_lazy(
    "{} ({} / {} s)",
    gettext_lazy("as the installation"),
    settings.GATEWAY_THROTTLE_LIMIT,
    settings.GATEWAY_THROTTLE_WINDOW_S,
)
_LIMIT: Final = CompositeInput("limit", gettext_lazy("at most"), kind="number", unit=gettext_lazy("requests"))
_WINDOW: Final = CompositeInput("window_s", gettext_lazy("within"), kind="number", unit=gettext_lazy("seconds"))


def _build_mode_input(operation: str) -> CompositeInput:
    usual = _INSTALLATION if operation == "*" else _USUAL
    return CompositeInput(
        "mode",
        _WORDS.get(operation, operation),
        kind="select",
        choices=[
            (LIMIT_INHERITED, usual),
            (LIMIT_CUSTOM, gettext_lazy("a limit of its own")),
            (LIMIT_UNLIMITED, gettext_lazy("no limit")),
        ],
    )


class RequestLimitsWidget(CompositeWidget):
    """Operation → {limit, window_s}, None for no limit. An absent operation has the limit of "*", and that one the
    settings'."""

    template = "admin/composed/limits.html"

    def shown(self, name: str, value: Any) -> dict[str, Any]:
        found = value if isinstance(value, Mapping) else {}
        rows = []
        for operation in (*THROTTLED_OPERATIONS, *(one for one in found if one not in THROTTLED_OPERATIONS)):
            own, prefix = found.get(operation), f"{name}.{operation}"
            mode = LIMIT_INHERITED if operation not in found else LIMIT_UNLIMITED if own is None else LIMIT_CUSTOM
            held = own if isinstance(own, Mapping) else {}
            path = '["*"]' if operation == "*" else operation
            rows.append(
                [
                    _build_mode_input(operation).put(prefix, mode, self.faults.get(path, ())),
                    _LIMIT.put(prefix, held.get("limit"), self.faults.get(f"{path}.limit", ())),
                    _WINDOW.put(prefix, held.get("window_s"), self.faults.get(f"{path}.window_s", ())),
                ]
            )
        return {"rows": rows}

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        prefix = f"{name}."
        sent = dict.fromkeys(key[len(prefix) :].rpartition(".")[0] for key in data if key.startswith(prefix))
        for operation in sent:
            mode = data.get(f"{prefix}{operation}.mode", LIMIT_INHERITED)
            if mode == LIMIT_CUSTOM:
                found[operation] = read_inputs((_LIMIT, _WINDOW), data, f"{prefix}{operation}")
            elif mode == LIMIT_UNLIMITED:
                found[operation] = None
        return found


def _describe_default(value: Any) -> Any:
    return format_lazy("{} {}", gettext_lazy("Empty: as the installation has it,"), value)


CARD_TESTING_INPUTS: Final = (
    CompositeInput(
        "enabled",
        gettext_lazy("the guard"),
        kind="select",
        choices=[
            ("", gettext_lazy("as the installation")),
            ("true", gettext_lazy("on")),
            ("false", gettext_lazy("off")),
        ],
    ),
    CompositeInput(
        "failures",
        gettext_lazy("stops one address or device after"),
        kind="number",
        unit=gettext_lazy("failures"),
        help=_describe_default(settings.GATEWAY_CARD_TESTING_FAILURES),
    ),
    CompositeInput(
        "binFailures",
        gettext_lazy("stops one BIN after"),
        kind="number",
        unit=gettext_lazy("failures"),
        help=_describe_default(settings.GATEWAY_CARD_TESTING_BIN_FAILURES),
    ),
    CompositeInput(
        "windowSeconds",
        gettext_lazy("counted within"),
        kind="number",
        unit=gettext_lazy("seconds"),
        help=_describe_default(settings.GATEWAY_CARD_TESTING_WINDOW_S),
    ),
)


class CardTestingWidget(GroupWidget):
    """Figures in which a channel's card-testing guard differs from the settings."""

    def __init__(self) -> None:
        super().__init__(CARD_TESTING_INPUTS)

    def shown(self, name: str, value: Any) -> dict[str, Any]:
        found = dict(value) if isinstance(value, Mapping) else {}
        if isinstance(found.get("enabled"), bool):
            found["enabled"] = "true" if found["enabled"] else "false"
        return super().shown(name, found)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, Any]:
        found = super().value_from_datadict(data, files, name)
        if found.get("enabled") in ("true", "false"):
            found["enabled"] = found["enabled"] == "true"
        return found


class AuthorizationDaysField(forms.CharField):
    """Brand → days, None without an end, as one line: ``VISA=7, MASTER=none``."""

    widget = UnfoldAdminTextInputWidget

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return ", ".join(f"{brand}={NO_END if days is None else days}" for brand, days in value.items())

    def to_python(self, value: Any) -> Any:
        """The pairs as they were written: the section of the configuration says what is wrong with one."""
        found: dict[str, Any] = {}
        for pair in str(value or "").split(","):
            brand, _equals, days = (text.strip() for text in pair.partition("="))
            if brand:
                found[brand] = None if days == NO_END else int(days) if days.isascii() and days.isdecimal() else days
        return found

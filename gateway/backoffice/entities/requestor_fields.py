"""Inputs of a channel's 3-D Secure requestors: per network, what it and the acquirer assigned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.composite_field import CompositeInput, CompositeWidget, read_inputs
from gateway.catalogue.structures import NETWORK_KEYS

_ID: Final = CompositeInput("id", gettext_lazy("requestor's id"))
_NAME: Final = CompositeInput("name", gettext_lazy("requestor's name"))
_ACQUIRER_BIN: Final = CompositeInput("acquirerBin", gettext_lazy("acquirer's BIN"))
_ACQUIRER_MERCHANT: Final = CompositeInput("acquirerMerchantId", gettext_lazy("merchant id at the acquirer"))
_NETWORK_NAMES: Final = {"amex": "American Express", "cb": "Cartes Bancaires", "diners": "Diners Club", "jcb": "JCB"}
_INPUTS: Final = (_ID, _NAME, _ACQUIRER_BIN, _ACQUIRER_MERCHANT)


class RequestorsWidget(CompositeWidget):
    """Network → {id, name, acquirerBin, acquirerMerchantId}; networks whose inputs are empty are left out."""

    template = "admin/composed/limits.html"

    def shown(self, name: str, value: Any) -> dict[str, Any]:
        found = value if isinstance(value, Mapping) else {}
        return {"rows": [self._build_row(name, network, found.get(network)) for network in NETWORK_KEYS]}

    def _build_row(self, name: str, network: str, held: Any) -> list[CompositeInput]:
        held = held if isinstance(held, Mapping) else {}
        return [
            replace(one, label=format_lazy("{}: {}", _NETWORK_NAMES.get(network, network), one.label)).put(
                f"{name}.{network}", held.get(one.name), self._list_errors(network, one.name)
            )
            for one in _INPUTS
        ]

    def _list_errors(self, network: str, name: str) -> list[str]:
        return [*(self.faults.get(network, ()) if name == _ID.name else ()), *self.faults.get(f"{network}.{name}", ())]

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, Any]:
        rows = {network: read_inputs(_INPUTS, data, f"{name}.{network}") for network in NETWORK_KEYS}
        return {network: row for network, row in rows.items() if row}

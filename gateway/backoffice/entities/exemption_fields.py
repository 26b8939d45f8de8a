"""Inputs of a channel's exemption rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.composite_field import CompositeInput, GroupWidget
from gateway.threeds.exemption_rules import BETTER_STAGE, ExemptionStage

_RATES: Final = "rates"
EXEMPTION_INPUTS: Final = (
    CompositeInput(
        "lowValue",
        gettext_lazy("low value"),
        kind="select",
        choices=[("", gettext_lazy("do not ask")), ("true", gettext_lazy("ask up to 30 EUR"))],
        help=gettext_lazy("At most 5 payments and 100 EUR of a card since its last strong authentication here."),
    ),
    CompositeInput(
        "fraudRate",
        gettext_lazy("low risk: fraud rate of the acquirer"),
        unit="%",
        help=gettext_lazy(
            "As it reports the rate of remote card payments; of several acquirers the highest. Up to 0.13: 100 EUR, "
            "0.06: 250 EUR, 0.01: 500 EUR. Empty: do not ask."
        ),
    ),
    CompositeInput(
        "maxScore",
        gettext_lazy("low risk: highest risk score"),
        kind="number",
        help=gettext_lazy("Only payments that a rule set screened and accepted. Empty: 0."),
    ),
    CompositeInput(
        "trusted",
        gettext_lazy("trusted merchant"),
        kind="select",
        choices=[("", gettext_lazy("do not ask")), ("true", gettext_lazy("ask the bank for its list"))],
        help=gettext_lazy(
            "For cards that were authenticated here before; the bank knows whether the shopper lists you."
        ),
    ),
    CompositeInput(
        "corporateBins",
        gettext_lazy("secure corporate cards"),
        kind="commas",
        help=gettext_lazy("First digits of lodged or virtual corporate cards, with commas. Empty: do not ask."),
    ),
    CompositeInput(
        "delegatedBins",
        gettext_lazy("delegated authentication"),
        kind="commas",
        help=gettext_lazy(
            "First digits of cards for which you authenticate shoppers by an agreement with the network; stored cards "
            "only. Empty: do not ask."
        ),
    ),
    CompositeInput(
        "askedAt",
        gettext_lazy("where it is asked"),
        kind="select",
        wide=True,
        choices=[
            ("", gettext_lazy("at the authentication: the bank may still take the liability")),
            (ExemptionStage.AUTHORIZATION, gettext_lazy("at the authorization: no 3-D Secure before it")),
            (BETTER_STAGE, gettext_lazy("where more payments go through without a challenge")),
        ],
        help=gettext_lazy(
            "At the authorization a bank may decline softly: then the payment is lost unless a challenge follows (3-D "
            "Secure, when the bank wants an authentication)."
        ),
    ),
    CompositeInput(
        _RATES,
        gettext_lazy("other currencies"),
        help=gettext_lazy("EUR for one unit: GBP=1.17, CHF=1.05. A currency without a rate is exempted by no amount."),
    ),
)


class ExemptionsWidget(GroupWidget):
    """Which exemptions a channel asks for, as the section ``exemptions`` of the configuration has them."""

    def __init__(self) -> None:
        super().__init__(EXEMPTION_INPUTS)

    def shown(self, name: str, value: Any) -> dict[str, Any]:
        found = dict(value) if isinstance(value, Mapping) else {}
        found |= {flag: "true" for flag in ("lowValue", "trusted") if found.get(flag) is True}
        if found.get("askedAt") == ExemptionStage.AUTHENTICATION:
            found.pop("askedAt")
        if isinstance(rates := found.get(_RATES), Mapping):
            found[_RATES] = ", ".join(f"{currency}={rate}" for currency, rate in rates.items())
        under = [words for path, several in self.faults.items() if path.startswith(f"{_RATES}.") for words in several]
        if under:
            self.faults = {**self.faults, _RATES: under}
        return super().shown(name, found)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> dict[str, Any]:
        found = super().value_from_datadict(data, files, name)
        found |= {flag: True for flag in ("lowValue", "trusted") if found.get(flag) == "true"}
        if _RATES in found:
            found[_RATES] = _read_rates(found[_RATES])
        return found


def _read_rates(typed: str) -> dict[str, str]:
    """Currency → rate as they were typed: the section says what is wrong with one."""
    pairs = (pair.partition("=") for pair in typed.split(",") if pair.strip())
    return {currency.strip(): rate.strip() for currency, _equals, rate in pairs}

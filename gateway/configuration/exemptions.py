"""Section ``exemptions``: which exemptions from strong customer authentication a channel asks for."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.connectors.routing_rules import MIN_BIN_DIGITS, ROUTING_BIN_DIGITS
from gateway.core import document as d
from gateway.core.money import CURRENCY_CODES
from gateway.threeds.exemption_rules import (
    BETTER_STAGE,
    FRAUD_RATE_BANDS,
    LIMITS_CURRENCY,
    ExemptionStage,
    find_fraud_rate_band,
)

MAX_EXEMPTION_BINS: Final = 200
MAX_EXEMPTION_SCORE: Final = 99_999
_HIGHEST_RATE: Final = max(band.fraud_rate for band in FRAUD_RATE_BANDS)
_BIN: Final = d.text_shape(
    MIN_BIN_DIGITS,
    ROUTING_BIN_DIGITS,
    f"[0-9]{{{MIN_BIN_DIGITS},{ROUTING_BIN_DIGITS}}}",
    says=f"{MIN_BIN_DIGITS} to {ROUTING_BIN_DIGITS} leading digits of cards, e.g. 420000",
)
_BINS: Final = d.list_shape(_BIN, most=MAX_EXEMPTION_BINS, distinct=True)
_PERCENT: Final = d.text_shape(
    1, 6, r"0(\.[0-9]{1,4})?", says=f"a percentage as text, from 0 to {_HIGHEST_RATE}, e.g. 0.05"
)
_RATE: Final = d.text_shape(
    1, 13, r"(?=.*[1-9])[0-9]{1,6}(\.[0-9]{1,6})?", says=f"the {LIMITS_CURRENCY} for one unit as text, e.g. 1.17"
)


def _fraud_rate(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """The acquirer's fraud rate in percent; above the last band the law knows no low risk."""
    before = len(faults)
    _PERCENT(value, path, faults)
    if len(faults) == before and find_fraud_rate_band(Decimal(value)) is None:
        faults.add(path, f"must be at most {_HIGHEST_RATE}: above it no payment may be exempted, not {value}")
    return value


def _rates(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """Currency → EUR for one unit."""
    if not isinstance(value, Mapping):
        faults.add(path, f"must be an object: a currency → {LIMITS_CURRENCY} for one unit as text")
        return {}
    known = sorted(CURRENCY_CODES - {LIMITS_CURRENCY})
    for currency, rate in value.items():
        where = d.member_path(path, str(currency))
        if currency not in known:
            faults.add(where, f"must be a currency of ISO 4217 other than {LIMITS_CURRENCY}, e.g. GBP")
        else:
            _RATE(rate, where, faults)
    return dict(value)


_SHAPE: Final = d.object_shape(
    lowValue=d.optional_member(d.boolean_shape),
    fraudRate=d.optional_member(_fraud_rate),
    maxScore=d.optional_member(d.integer_shape(-MAX_EXEMPTION_SCORE, MAX_EXEMPTION_SCORE)),
    trusted=d.optional_member(d.boolean_shape),
    corporateBins=d.optional_member(_BINS),
    delegatedBins=d.optional_member(_BINS),
    askedAt=d.optional_member(d.choice_shape(*ExemptionStage, BETTER_STAGE)),
    rates=d.optional_member(_rates),
)


def list_stored_members(value: Mapping[str, Any]) -> dict[str, Any]:
    """``Channel.exemptions`` of a validated section: what is named."""
    named = {name: found for name, found in value.items() if found is not None}
    return {name: list(found) if isinstance(found, tuple) else found for name, found in named.items()}


def _apply(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    target.channel_there.exemptions = list_stored_members(value)
    target.channel_there.save(update_fields=["exemptions"])


EXEMPTIONS_SECTION: Final = ConfigurationSection(
    name="exemptions",
    shape=_SHAPE,
    apply=_apply,
    show=lambda target: target.channel_there.exemptions,
    about="Exemptions from strong customer authentication that the channel asks for. Replaces what was there; empty: "
    "none.",
)

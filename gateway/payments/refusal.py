"""Requests that end before a payment exists: wrong set-up, nothing behind an id, or something not offered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.brands import BRANDS, Brand, is_card
from gateway.card_number import detected_brand
from gateway.catalogue.parse import ParameterError, Parameters
from gateway.catalogue.suggest import closest
from gateway.connectors.means import Card
from gateway.models import Channel
from gateway.payments.endings import REGISTER
from gateway.payments.means import SENT
from gateway.payments.methods import TYPE_NOT_WITH_METHOD, fits, takes, types_of
from gateway.payments.operations import FIRST

NOT_SUPPORTED: Final = "600.200.400"
UNKNOWN_BRAND: Final = "600.200.200"
WRONG_MEANS: Final = "600.200.100"
BRAND_NOT_SET_UP: Final = "600.200.201"
NOT_SET_UP: Final = "600.200.500"
MODE_NOT_SET_UP: Final = "600.200.700"


class Refused(Exception):
    """No payment is made. ``code`` answers; ``errors`` name the parameters at fault; ``status`` is HTTP's; ``more``
    is added to the code's text."""

    def __init__(self, code: str, errors: Sequence[ParameterError] = (), *, status: int = 400, more: str = "") -> None:
        super().__init__(code)
        self.more = more
        self.code = code
        self.errors = tuple(errors)
        self.status = status


def refuse_what_begins_nothing(payment_type: str, *, stored: bool, name: str = "paymentType") -> None:
    """Raise Refused (600.200.400) for types that begin no chain. ``stored``: a stored means is paid with, which is not
    stored again; ``name``: the parameter it stands in."""
    offered = FIRST if stored else FIRST | {REGISTER}
    if payment_type not in offered:
        message = f"is not offered here; {', '.join(sorted(offered))} are"
        error = ParameterError(name=name, value=payment_type, code=NOT_SUPPORTED, message=message)
        raise Refused(NOT_SUPPORTED, [error])


def brand_of(parameters: Parameters, channel: Channel) -> tuple[str, bool]:
    """The brand, and whether it was detected from the number (D30). Raises Refused for one that cannot be served."""
    brand, detected = parameters.get("paymentBrand"), False
    if brand is None:
        brand, detected = detected_brand(parameters.secret("card.number")), True
    if brand is None:
        raise Refused(
            "200.300.404",
            [ParameterError(name="paymentBrand", message="is required: no card brand is known for this number")],
        )
    refuse_unknown_brand(brand)
    for name, kind in SENT:
        if name in parameters and not _pays_with(parameters, BRANDS[brand], kind):
            raise Refused(WRONG_MEANS, [_brand_error(brand, f"is not paid with {name}, which was sent", WRONG_MEANS)])
    if channel.brands and brand not in channel.brands:
        allowed = ", ".join(channel.brands)
        raise Refused(
            BRAND_NOT_SET_UP,
            [_brand_error(brand, f"is not set up for this channel, which takes {allowed}", BRAND_NOT_SET_UP)],
        )
    return brand, detected


def refuse_unknown_brand(brand: str, name: str = "paymentBrand") -> None:
    """Raise Refused for a brand that nobody knows. ``name``: the parameter it stands in."""
    if brand in BRANDS:
        return
    meant = closest(brand.upper(), BRANDS)
    hint = f" - did you mean {meant}?" if meant else ", which takes VISA, MASTER, DIRECTDEBIT_SEPA and others"
    message = f"is not a brand of this gateway{hint}"
    raise Refused(UNKNOWN_BRAND, [ParameterError(name=name, value=brand, message=message, code=UNKNOWN_BRAND)])


def refuse_type(kind: str, brand: str, name: str = "paymentType") -> None:
    """Raise Refused when payments of the brand cannot be of this type. What may be stored is said by conditions."""
    if kind != REGISTER and not takes(brand, kind):
        message = f"does not go with {brand}, which takes {', '.join(types_of(brand))}"
        error = ParameterError(name=name, value=kind, message=message, code=TYPE_NOT_WITH_METHOD)
        raise Refused(TYPE_NOT_WITH_METHOD, [error])


def _pays_with(parameters: Parameters, brand: Brand, kind: str) -> bool:
    """Whether a means of ``kind`` pays with ``brand``; with a wallet's brand, only what came out of that wallet."""
    return fits(brand, kind) and (is_card(brand.code) or kind != Card.kind or brand.means in _wallets(parameters))


def _wallets(parameters: Parameters) -> frozenset[str]:
    """The wallets whose token or decrypted data was sent: their brands pay by card."""
    return frozenset(name.partition(".")[0] for name in parameters.names if name.startswith("wallet"))


def refuse_currency(parameters: Parameters, channel: Channel) -> None:
    """Raise Refused when the channel does not take the currency."""
    currency = parameters.get("currency")
    if currency is not None and channel.currencies and currency not in channel.currencies:
        message = f"is not set up for this channel, which takes {', '.join(channel.currencies)}"
        raise Refused(NOT_SET_UP, [ParameterError(name="currency", value=currency, message=message, code=NOT_SET_UP)])


def _brand_error(brand: str, message: str, code: str) -> ParameterError:
    return ParameterError(name="paymentBrand", value=brand, message=message, code=code)

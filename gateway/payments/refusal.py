"""Refusals before a payment exists: a brand, type or currency that is unknown, not offered or not configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.catalogue.parse import ParameterError, Parameters
from gateway.connectors.means import Card
from gateway.core.brands import PAYMENT_BRANDS, Brand, is_card_brand
from gateway.core.card_number import detect_brand_of_number
from gateway.core.spelling import find_closest_name
from gateway.models import Channel
from gateway.payments.operation_table import CHAIN_START_TYPES
from gateway.payments.payment_means import ACCOUNT_PARAMETERS
from gateway.payments.payment_methods import (
    TYPE_NOT_WITH_METHOD_CODE,
    is_means_accepted,
    is_type_supported,
    list_payment_types,
)
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE

ACCOUNT_ERASED_CODE: Final = "700.500.004"
"""The account of an earlier payment is no longer stored (gateway.personal_data)."""
TYPE_NOT_OFFERED_CODE: Final = "600.200.400"
UNKNOWN_BRAND_CODE: Final = "600.200.200"
MEANS_MISMATCH_CODE: Final = "600.200.100"
BRAND_NOT_CONFIGURED_CODE: Final = "600.200.201"
CHANNEL_NOT_CONFIGURED_CODE: Final = "600.200.500"
MODE_NOT_CONFIGURED_CODE: Final = "600.200.700"


class RequestRefusedError(Exception):
    """The request is refused and no payment is made. ``code``: the result code; ``errors``: the parameters at fault;
    ``status``: HTTP; ``more``: added to the code's description."""

    def __init__(self, code: str, errors: Sequence[ParameterError] = (), *, status: int = 400, more: str = "") -> None:
        super().__init__(code)
        self.more = more
        self.code = code
        self.errors = tuple(errors)
        self.status = status


def build_parameter_refusal(
    code: str, name: str, message: str, *, value: str | None = None, known: bool = False, status: int = 400
) -> RequestRefusedError:
    """The refusal of a request for one parameter (ParameterError)."""
    error = ParameterError(name=name, message=message, value=value, code=code, known=known)
    return RequestRefusedError(code, [error], status=status)


def build_unsendable_refusal(names: Sequence[str], parameters: Parameters) -> RequestRefusedError:
    """The refusal (600.200.400) of a payment whose parameters ``names`` its acquirers cannot be sent: without them it
    would be another payment. Source: docs/decisions/0070."""
    message = "cannot be sent to any acquirer that could take this payment, which would be another one without it"
    errors = [
        ParameterError(name=name, value=parameters.get(name), message=message, code=TYPE_NOT_OFFERED_CODE, known=True)
        for name in names
    ]
    return RequestRefusedError(TYPE_NOT_OFFERED_CODE, errors)


def check_first_payment_type(payment_type: str, *, stored: bool, name: str = "paymentType") -> None:
    """Raise RequestRefusedError (600.200.400) for types that no chain begins with. ``stored``: the payment uses a
    registration, so registering (RG) is not offered; ``name``: the parameter that holds the type."""
    offered = CHAIN_START_TYPES if stored else CHAIN_START_TYPES | {REGISTRATION_PAYMENT_TYPE}
    if payment_type not in offered:
        message = f"is not offered here; {', '.join(sorted(offered))} are"
        raise build_parameter_refusal(TYPE_NOT_OFFERED_CODE, name, message, value=payment_type)


def resolve_brand(parameters: Parameters, channel: Channel) -> tuple[str, bool]:
    """Returns (brand, detected): the brand, and whether it was detected from the card number (ruling D30). Raises
    RequestRefusedError for one that is unknown, not configured, or does not fit the sent means."""
    brand, detected = parameters.get("paymentBrand"), False
    if brand is None:
        number = parameters.secret("card.number")
        brand, detected = detect_brand_of_number(number, channel.accepted_brand_order, channel.brands), True
    if brand is None:
        raise build_parameter_refusal(
            "200.300.404", "paymentBrand", "is required: no card brand is known for this number"
        )
    check_brand_known(brand)
    for name, kind in ACCOUNT_PARAMETERS:
        if name in parameters and not _can_pay_with(parameters, PAYMENT_BRANDS[brand], kind):
            raise build_parameter_refusal(
                MEANS_MISMATCH_CODE, "paymentBrand", f"is not paid with {name}, which was sent", value=brand
            )
    if channel.brands and brand not in channel.brands:
        allowed = ", ".join(channel.brands)
        raise build_parameter_refusal(
            BRAND_NOT_CONFIGURED_CODE,
            "paymentBrand",
            f"is not set up for this channel, which takes {allowed}",
            value=brand,
        )
    return brand, detected


def check_brand_known(brand: str, name: str = "paymentBrand") -> None:
    """Raise RequestRefusedError for an unknown brand. ``name``: the parameter that holds it."""
    if brand in PAYMENT_BRANDS:
        return
    meant = find_closest_name(brand.upper(), PAYMENT_BRANDS)
    hint = f" - did you mean {meant}?" if meant else ", which takes VISA, MASTER, DIRECTDEBIT_SEPA and others"
    message = f"is not a brand of this gateway{hint}"
    raise build_parameter_refusal(UNKNOWN_BRAND_CODE, name, message, value=brand)


def check_brand_takes_type(kind: str, brand: str, name: str = "paymentType") -> None:
    """Raise RequestRefusedError when the brand does not support the payment type. Which brands can be registered is a
    condition of the catalogue."""
    if kind != REGISTRATION_PAYMENT_TYPE and not is_type_supported(brand, kind):
        message = f"does not go with {brand}, which takes {', '.join(list_payment_types(brand))}"
        raise build_parameter_refusal(TYPE_NOT_WITH_METHOD_CODE, name, message, value=kind)


def _can_pay_with(parameters: Parameters, brand: Brand, kind: str) -> bool:
    """Whether a means of ``kind`` pays with ``brand``; a wallet's brand takes cards from that wallet only."""
    return is_means_accepted(brand, kind) and (
        is_card_brand(brand.code) or kind != Card.kind or brand.means in _list_sent_wallets(parameters)
    )


def _list_sent_wallets(parameters: Parameters) -> frozenset[str]:
    """The wallets whose token or decrypted data was sent; their brands are paid by card."""
    return frozenset(name.partition(".")[0] for name in parameters.names if name.startswith("wallet"))


def check_currency(parameters: Parameters, channel: Channel) -> None:
    """Raise RequestRefusedError when the channel does not take the currency."""
    currency = parameters.get("currency")
    if currency is not None and channel.currencies and currency not in channel.currencies:
        message = f"is not set up for this channel, which takes {', '.join(channel.currencies)}"
        raise build_parameter_refusal(CHANNEL_NOT_CONFIGURED_CODE, "currency", message, value=currency)

"""Maps requests to the processor's forms, and its objects to values. Pure.

Source: the processor's public API reference; Part A, Basic payment, 3D Secure; Part B, Card on file, Response
parameters; docs/connectors/card-api.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway.connectors.acquirer_message import (
    parse_scheme_reference,
    parse_transaction_link,
    resolve_initial_reference,
)
from gateway.connectors.card_api import result_mapping
from gateway.connectors.card_api.account import DEFAULT_3DS_VERSION, choose_3ds_version
from gateway.connectors.card_api.transport import FormFields
from gateway.connectors.means import Card
from gateway.connectors.point_of_service import PointOfService
from gateway.connectors.port import AcquirerRequest
from gateway.core.compact_json import get_json_object
from gateway.core.masking import mask_pan
from gateway.core.money import Money, currency_exponent
from gateway.core.secret import Secret

PAYMENT_MARK: Final = "tollhouse_payment"
"""Metadata: id of the payment that made an object."""
ATTEMPT_MARK: Final = "tollhouse_attempt"
"""Metadata: which authorization of the payment it is; only from the second on."""
CLOSED_MARK: Final = "tollhouse_closed"
"""Metadata: the object only uses up a payment's idempotency key, so that its request cannot be accepted later."""
ORDER_MARK: Final = "order"
CARDS_ONLY: Final = ("payment_method_types[]", "card")
"""Since the API's version of 2023-08-16 an intent without types takes every payment method of the account, and is
refused when it is confirmed without a return_url, because some of them redirect. Source:
https://docs.stripe.com/upgrades/manage-payment-methods."""
VERIFICATION_TYPES: Final = frozenset({"RG"})
_EXPONENTS: Final[Mapping[str, int]] = {"ISK": 2, "MGA": 0, "UGX": 2}
"""Currencies whose minor unit at the processor differs from ISO 4217."""
_METADATA_CHARS: Final = 500
_DESCRIPTOR: Final = re.compile(r"[<>\\'\"*]|[^\x20-\x7e]")
MAX_DESCRIPTOR_SUFFIX_CHARS: Final = 22
HIDDEN_SECRET: Final = "•••"  # noqa: S105 - a name or a mask, no password
DO_NOT_TRY_AGAIN: Final = "03"
"""Mastercard's merchant advice code for it."""
_MAX_VALIDITY_S: Final = 366 * 86_400
_ID: Final = re.compile(r"[A-Za-z0-9_]{1,255}")


class UnsupportedRequestError(Exception):
    """The processor cannot do this; ``code``: the result code of the decline."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


# --- money ----------------------------------------------------------------------------------------------------------


def units_from_money(money: Money) -> int:
    """Amount in the processor's minor unit. Raises UnsupportedRequestError for a fraction of it."""
    units = money.amount.scaleb(_EXPONENTS.get(money.currency, currency_exponent(money.currency)))
    if units != units.to_integral_value():
        raise UnsupportedRequestError(
            result_mapping.AMOUNT_TOO_FINE, f"{money} is finer than the processor's smallest unit"
        )
    return int(units)


def money_from_units(units: object, currency: str) -> Money | None:
    """The amount of a processor's integer in minor units; None for an invalid one."""
    if not isinstance(units, int) or isinstance(units, bool) or units < 0:
        return None
    try:
        return Money(Decimal(units).scaleb(-_EXPONENTS.get(currency, currency_exponent(currency))), currency)
    except ValueError:
        return None


# --- requests -------------------------------------------------------------------------------------------------------


def is_verification(request: AcquirerRequest) -> bool:
    """True for a registration or an authorization of zero: the card is checked without money."""
    return request.operation in VERIFICATION_TYPES or not request.money


def build_intent(
    request: AcquirerRequest, *, full: bool, multicapture: bool, mit_reference: bool = True, method: str = ""
) -> FormFields:
    """A payment intent that is confirmed at once. ``mit_reference``: whether it names the scheme's reference of the
    agreement's first payment; ``method``: id of a card object made before."""
    manual = request.operation == "PA"
    fields = [
        ("amount", str(units_from_money(request.money))),
        ("currency", request.money.currency.lower()),
        ("capture_method", "manual" if manual else "automatic"),
        ("confirm", "true"),
        *_means_fields(request, method),
        *_metadata_fields(request),
        *_authentication_fields(request),
        *_exemption_fields(request),
        *_initiator(request.point_of_service),
    ]
    if not full:
        return fields
    fields += [
        CARDS_ONLY,
        ("error_on_requires_action", "true"),
        ("expand[]", "latest_charge"),
        *_descriptor_fields(request.parameters),
    ]
    if mit_reference:
        fields += _network_reference_fields(request)
    if request.point_of_service.stores:
        fields.append(("setup_future_usage", "off_session"))
    if manual and multicapture:
        fields.append(("payment_method_options[card][request_multicapture]", "if_available"))
    return fields


def build_verification(request: AcquirerRequest, *, confirm: bool = True) -> FormFields:
    """A setup intent: checks the card without money. Unconfirmed it has no card yet."""
    fields = [("usage", "off_session"), CARDS_ONLY, *_metadata_fields(request)]
    if not confirm:
        return fields
    return [
        *fields,
        ("confirm", "true"),
        ("expand[]", "latest_attempt"),
        *_means_fields(request),
        *_authentication_fields(request),
        *_order_fields(request.point_of_service),
    ]


def build_card_object(request: AcquirerRequest) -> FormFields:
    """The card alone, as servers of the core profile require it: number, expiry and code."""
    card = _required_card(request)
    if card.cvv is None:
        raise UnsupportedRequestError(
            result_mapping.CVV_MISSING, "servers of the core profile take no card without its code"
        )
    return [
        ("type", "card"),
        ("card[number]", card.number),
        ("card[exp_month]", str(int(card.expiry_month))),
        ("card[exp_year]", card.expiry_year),
        ("card[cvc]", card.cvv),
    ]


def is_last_capture(request: AcquirerRequest) -> bool:
    """Whether the merchant captures no more of the authorization after this."""
    number, most = request.clearing
    return request.parameters.get("sequence") == "FINAL" or 0 < number == most


def build_capture(request: AcquirerRequest, *, full: bool, multicapture: bool) -> FormFields:
    """A capture, marked with its payment. ``multicapture``: the authorization can be captured again."""
    fields: list[tuple[str, str | Secret]] = [("amount_to_capture", str(units_from_money(request.money)))]
    if full:
        fields += [*build_capture_mark(request), ("expand[]", "latest_charge")]
    if multicapture:
        fields.append(("final_capture", "true" if is_last_capture(request) else "false"))
    return fields


def build_capture_mark(request: AcquirerRequest) -> FormFields:
    """A capture's mark on its intent: our payment, and its amount."""
    return [(f"metadata[{capture_mark_name(request.payment)}]", str(units_from_money(request.money)))]


def capture_mark_name(payment: UUID) -> str:
    """Name of the mark, 40 characters at most, as for all metadata."""
    return f"capture_{payment.hex}"


def build_refund(request: AcquirerRequest, **more: str) -> FormFields:
    """A refund of the charge or intent that the request refers to."""
    return [
        ("charge" if request.reference.startswith("ch_") else "payment_intent", request.reference),
        ("amount", str(units_from_money(request.money))),
        (f"metadata[{PAYMENT_MARK}]", request.payment.hex),
        *((f"metadata[{name}]", value) for name, value in more.items()),
    ]


def build_closing_request(request: AcquirerRequest) -> FormFields:
    """Uses up a first payment's idempotency key without moving money: an intent without a card."""
    marked: list[tuple[str, str | Secret]] = [*_metadata_fields(request), (f"metadata[{CLOSED_MARK}]", "1")]
    if is_verification(request):
        return [("usage", "off_session"), CARDS_ONLY, *marked]
    money = [("amount", str(units_from_money(request.money))), ("currency", request.money.currency.lower())]
    return [*money, CARDS_ONLY, *marked]


def build_closing_mark(payment: UUID) -> FormFields:
    """A follow-up's mark on the object that it refers to: our payment, and its amount."""
    return [(f"metadata[closed_{payment.hex}]", "1")]


def _required_card(request: AcquirerRequest) -> Card:
    card = request.card
    if card is None:
        raise UnsupportedRequestError(result_mapping.CARD_MISSING, "the processor takes cards only")
    if card.number_type == "DPAN":
        raise UnsupportedRequestError(
            result_mapping.MEANS_NOT_ACCEPTED, "device numbers of wallets cannot be handed on to this processor"
        )
    return card


def _means_fields(request: AcquirerRequest, method: str = "") -> Iterator[tuple[str, str | Secret]]:
    if method:
        yield "payment_method", method
        return
    card, name = _required_card(request), "payment_method_data"
    yield f"{name}[type]", "card"
    yield f"{name}[card][number]", card.number
    yield f"{name}[card][exp_month]", str(int(card.expiry_month))
    yield f"{name}[card][exp_year]", card.expiry_year
    if card.cvv is not None and not request.point_of_service.merchant_initiated:
        yield f"{name}[card][cvc]", card.cvv
    sent = request.parameters
    details = {
        "name": card.holder,
        "email": sent.get("customer.email", ""),
        "phone": sent.get("customer.phone", ""),
        "address][line1": " ".join(filter(None, (sent.get("billing.street1"), sent.get("billing.houseNumber1")))),
        "address][line2": sent.get("billing.street2", ""),
        "address][city": sent.get("billing.city", ""),
        "address][state": sent.get("billing.state", ""),
        "address][postal_code": sent.get("billing.postcode", ""),
        "address][country": sent.get("billing.country", ""),
    }
    yield from ((f"{name}[billing_details][{each}]", value) for each, value in details.items() if value)


def _metadata_fields(request: AcquirerRequest) -> Iterator[tuple[str, str]]:
    yield f"metadata[{PAYMENT_MARK}]", request.payment.hex
    if request.attempt > 1:
        yield f"metadata[{ATTEMPT_MARK}]", str(request.attempt)
    if order := request.parameters.get("merchantTransactionId"):
        yield f"metadata[{ORDER_MARK}]", order[:_METADATA_CHARS]


_PROOF: Final[Mapping[str, str]] = {
    "threeDSecure.version": "version",
    "threeDSecure.dsTransactionId": "transaction_id",
    "threeDSecure.eci": "electronic_commerce_indicator",
    "threeDSecure.authenticationStatus": "ares_trans_status",
}
_SENT_VALUES: Final[Mapping[str, frozenset[str]]] = {
    "electronic_commerce_indicator": frozenset({"01", "02", "05", "06", "07"}),
    "ares_trans_status": frozenset({"I"}),
}
"""Optional fields that are left out with any other value: an ECI that the processor does not know (Mastercard's 04,
data shared only) would have the payment refused; and ares_trans_status is that of the first answer, which after a
challenge was C. Of I there is no challenge."""
_PROVED: Final = "payment_method_options[card][three_d_secure]"


def _authentication_fields(request: AcquirerRequest) -> Iterator[tuple[str, str | Secret]]:
    """The proof of an external authentication, complete or not at all (D32)."""
    sent = request.parameters
    if request.cryptogram is None or "threeDSecure.dsTransactionId" not in sent:
        return
    version = choose_3ds_version(request.account, sent.get("threeDSecure.version") or DEFAULT_3DS_VERSION)
    whole = {**sent, "threeDSecure.version": version}
    for name, theirs in _PROOF.items():
        value = whole.get(name)
        if value and value in _SENT_VALUES.get(theirs, {value}):
            yield f"{_PROVED}[{theirs}]", value
    yield f"{_PROVED}[cryptogram]", request.cryptogram


def _exemption_fields(request: AcquirerRequest) -> Iterator[tuple[str, str]]:
    """The exemption an issuer accepted, sent with the proof of 3-D Secure; never for a card verified without money."""
    proved = request.cryptogram is not None and "threeDSecure.dsTransactionId" in request.parameters
    if proved and (exemption := request.point_of_service.exemption):
        yield f"{_PROVED}[exemption_indicator]", "low_risk" if exemption == "LOW_RISK" else "none"


def _initiator(point: PointOfService) -> Iterator[tuple[str, str]]:
    """Who initiates the payment: the merchant off-session, or a shopper by mail or telephone."""
    if point.merchant_initiated:
        yield "off_session", "true"
    else:
        yield from _order_fields(point)


def _order_fields(point: PointOfService) -> Iterator[tuple[str, str]]:
    if point.order and not point.merchant_initiated:
        yield "payment_method_options[card][moto]", "true"


def _network_reference_fields(request: AcquirerRequest) -> Iterator[tuple[str, str]]:
    reference = resolve_initial_reference(request.parameters)
    if request.point_of_service.merchant_initiated and reference:
        yield "payment_method_options[card][mit_exemption][network_transaction_id]", reference


def _descriptor_fields(sent: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The suffix after the account's own name on the shopper's statement; it must contain a letter."""
    text = " ".join(_DESCRIPTOR.sub(" ", sent.get("descriptor", "")).split())[:MAX_DESCRIPTOR_SUFFIX_CHARS].strip()
    if re.search("[A-Za-z]", text):
        yield "statement_descriptor_suffix", text


# --- masking --------------------------------------------------------------------------------------------------------


def mask_form(fields: FormFields) -> dict[str, str]:
    """A form for the stored exchange: masked number, code and cryptogram as presence flags."""
    return {name: _mask_field(name, value) for name, value in fields}


def _mask_field(name: str, value: str | Secret) -> str:
    if isinstance(value, str):
        return value
    return mask_pan(value.reveal()) if name.endswith("[number]") else HIDDEN_SECRET


# --- responses ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeDetails:
    """Contents of a charge: id, address and CVV checks, the scheme's reference, Mastercard's transaction link.
    ``valid_for``: the time in which an authorization can be captured at the processor; None where it does not say."""

    id: str = ""
    avs: str = ""
    cvv: str = ""
    network_id: str = ""
    transaction_link: str = ""
    valid_for: timedelta | None = None


def parse_charge(intent_object: Mapping[str, Any]) -> ChargeDetails:
    """The last charge of an intent (or attempt of a setup), which may be an id only."""
    found = intent_object.get("latest_charge") or intent_object.get("latest_attempt")
    if isinstance(found, str):
        return ChargeDetails(id=parse_object_id(found))
    if not isinstance(found, dict):
        return ChargeDetails()
    card = get_json_object(get_json_object(found, "payment_method_details"), "card")
    checks = get_json_object(card, "checks")
    return ChargeDetails(
        id=parse_object_id(found.get("id")),
        avs=result_mapping.map_address_checks(
            _text_member(checks, "address_line1_check"), _text_member(checks, "address_postal_code_check")
        ),
        cvv=result_mapping.CVV_RESPONSE_BY_CHECK.get(_text_member(checks, "cvc_check"), ""),
        network_id=parse_scheme_reference(parse_object_id(card.get("network_transaction_id"))),
        transaction_link=parse_transaction_link(_text_member(card, "transaction_link_id")),
        valid_for=_parse_validity(found.get("created"), card.get("capture_before")),
    )


def _parse_validity(created: object, capture_before: object) -> timedelta | None:
    """How long an authorization is valid, from two times in seconds since 1970."""
    if type(created) is not int or type(capture_before) is not int or not 0 < created < capture_before:
        return None
    return timedelta(seconds=min(capture_before - created, _MAX_VALIDITY_S))


def is_multicapture_available(intent: Mapping[str, Any]) -> bool:
    """Whether the card of an authorization can be captured in several parts."""
    charge = get_json_object(intent, "latest_charge")
    card = get_json_object(get_json_object(charge, "payment_method_details"), "card")
    return _text_member(get_json_object(card, "multicapture"), "status") == "available"


def read_released_units(intent: Mapping[str, Any]) -> int:
    """What of an intent's authorization was let go, in the processor's minor unit: neither taken nor held any more. 0
    where the intent does not say."""
    amounts = [intent.get(name) for name in ("amount", "amount_received", "amount_capturable")]
    whole, received, capturable = (units if type(units) is int else None for units in amounts)
    if whole is None or received is None or capturable is None:
        return 0
    return max(whole - received - capturable, 0)


def read_mark(resource: Mapping[str, Any], name: str) -> str:
    """A metadata value, or ''."""
    found = get_json_object(resource, "metadata").get(name)
    return found if isinstance(found, str) else ""


def read_attempt(resource: Mapping[str, Any]) -> int:
    """Which attempt of its payment made the object: from 1; 0 for a mark that is none of ours."""
    mark = read_mark(resource, ATTEMPT_MARK) or "1"
    return int(mark) if mark.isascii() and mark.isdigit() and len(mark) < 4 else 0


def is_made_by_request(resource: Mapping[str, Any], request: AcquirerRequest) -> bool:
    """True if this attempt of a payment of ours made the object, and not to use up its key."""
    return (
        read_mark(resource, PAYMENT_MARK) == request.payment.hex
        and read_attempt(resource) == request.attempt
        and not read_mark(resource, CLOSED_MARK)
    )


def result_code_from_error(error: Mapping[str, Any], operation: str) -> str:
    """The result code of an error, or of an intent's ``last_payment_error``."""
    return result_mapping.map_decline(_text_member(error, "decline_code"), _text_member(error, "code"), operation)


def parse_advice_code(error: Mapping[str, Any]) -> str:
    """The merchant advice code of an error: the network's own, else 03 where the processor says not to try again."""
    code = _text_member(error, "network_advice_code")
    if len(code) == 2 and code.isascii() and code.isdecimal():
        return code
    return DO_NOT_TRY_AGAIN if _text_member(error, "advice_code") == "do_not_try_again" else ""


def has_own_advice(error: Mapping[str, Any]) -> bool:
    """Whether the processor says in its own words what to do after a decline (``confirm_card_data``,
    ``do_not_try_again``, ``try_again_later``)."""
    return bool(_text_member(error, "advice_code"))


def summarize_error(error: Mapping[str, Any]) -> dict[str, str]:
    """An error for storage: its codes, but no free text, which may quote the request."""
    names = ("type", "code", "decline_code", "param", "network_decline_code", "network_advice_code", "advice_code")
    return {name: word for name in names if (word := _text_member(error, name))}


def summarize_object(resource: Mapping[str, Any]) -> dict[str, str]:
    """An object for storage."""
    names = ("object", "id", "status", "capture_method", "currency", "amount", "amount_capturable", "amount_received")
    kept = {name: str(resource[name]) for name in names if isinstance(resource.get(name), str | int)}
    if charge := parse_charge(resource).id:
        kept["charge"] = charge
    return {name: text[:255] for name, text in kept.items()} | summarize_error(
        get_json_object(resource, "last_payment_error")
    )


def parse_object_id(value: object) -> str:
    """An id, or '' if it is not one."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def _text_member(resource: Mapping[str, Any], name: str) -> str:
    found = resource.get(name)
    return found if isinstance(found, str) and len(found) <= 64 else ""

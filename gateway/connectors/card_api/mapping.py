"""Requests as the processor's forms, and its objects as replies. Pure: nothing here asks anybody.

Source: the processor's public API reference; Part A, Basic payment, 3D Secure; Part B, Card on file, Response
parameters; docs/connectors/card-api.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway.connectors.acquirer_message import parse_scheme_reference, resolve_initial_reference
from gateway.connectors.card_api import result_mapping
from gateway.connectors.card_api.transport import FormFields
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerRequest
from gateway.core.masking import mask_pan
from gateway.core.money import Money, currency_exponent
from gateway.core.secret import Secret

PAYMENT_MARK: Final = "tollhouse_payment"
"""Metadata: the id of our payment that made an object."""
CLOSED_MARK: Final = "tollhouse_closed"
"""Metadata: an object that only holds a payment's idempotency key, so that its request cannot be accepted later."""
ORDER_MARK: Final = "order"
VERIFICATION_TYPES: Final = frozenset({"RG"})
_EXPONENTS: Final[Mapping[str, int]] = {"ISK": 2, "MGA": 0, "UGX": 2}
"""Currencies whose smallest unit the processor sees differently from ISO 4217."""
_METADATA_CHARS: Final = 500
_DESCRIPTOR: Final = re.compile(r"[<>\\'\"*]|[^\x20-\x7e]")
MAX_DESCRIPTOR_SUFFIX_CHARS: Final = 22
HIDDEN_SECRET: Final = "•••"  # noqa: S105
_ID: Final = re.compile(r"[A-Za-z0-9_]{1,255}")


class UnsupportedRequestError(Exception):
    """What cannot be said to this processor; ``code`` is the result code that says so."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


# --- money --------------------------------------------------------------------------------------------------------


def units_from_money(money: Money) -> int:
    """In the processor's smallest unit. Raises UnsupportedRequestError for a fraction of it."""
    units = money.amount.scaleb(_EXPONENTS.get(money.currency, currency_exponent(money.currency)))
    if units != units.to_integral_value():
        raise UnsupportedRequestError(
            result_mapping.AMOUNT_TOO_FINE, f"{money} is finer than the processor's smallest unit"
        )
    return int(units)


def money_from_units(units: object, currency: str) -> Money | None:
    """The way back; None for what is no amount."""
    if not isinstance(units, int) or isinstance(units, bool) or units < 0:
        return None
    try:
        return Money(Decimal(units).scaleb(-_EXPONENTS.get(currency, currency_exponent(currency))), currency)
    except ValueError:
        return None


# --- what is asked ------------------------------------------------------------------------------------------------


def is_verification(request: AcquirerRequest) -> bool:
    """A registration, or an authorization of nothing: the card is looked at, and no money is held."""
    return request.operation in VERIFICATION_TYPES or not request.money


def build_intent(request: AcquirerRequest, *, full: bool, multicapture: bool, method: str = "") -> FormFields:
    """A payment intent, confirmed as it is made. ``method``: the card as an object that was made before."""
    manual = request.operation == "PA"
    fields = [
        ("amount", str(units_from_money(request.money))),
        ("currency", request.money.currency.lower()),
        ("capture_method", "manual" if manual else "automatic"),
        ("confirm", "true"),
        *_means(request, method),
        *_metadata(request),
        *_proof(request),
        *_initiator(request.parameters),
    ]
    if not full:
        return fields
    fields += [("error_on_requires_action", "true"), ("expand[]", "latest_charge"), *_descriptor(request.parameters)]
    fields += _network_reference(request.parameters)
    if manual and multicapture:
        fields.append(("payment_method_options[card][request_multicapture]", "if_available"))
    return fields


def build_verification(request: AcquirerRequest, *, method: str = "", confirm: bool = True) -> FormFields:
    """A setup intent: what the card is asked without any money. Unconfirmed it has no card yet."""
    fields = [("usage", "off_session"), ("payment_method_types[]", "card"), *_metadata(request)]
    if not confirm:
        return fields
    return [*fields, ("confirm", "true"), ("expand[]", "latest_attempt"), *_means(request, method), *_proof(request)]


def build_card_object(request: AcquirerRequest) -> FormFields:
    """The card alone, as servers of the core profile want it: number, expiry and code, all of them."""
    card = _card(request)
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


def build_capture(request: AcquirerRequest, *, full: bool, multicapture: bool) -> FormFields:
    """A capture, with the mark that tells whose it was."""
    fields: list[tuple[str, str | Secret]] = [("amount_to_capture", str(units_from_money(request.money)))]
    if full:
        fields += [*build_capture_mark(request), ("expand[]", "latest_charge")]
    if multicapture:
        final = request.parameters.get("sequence") == "FINAL"
        fields.append(("final_capture", "true" if final else "false"))
    return fields


def build_capture_mark(request: AcquirerRequest) -> FormFields:
    """The mark of a capture on its intent: which payment of ours, and how much."""
    return [(f"metadata[{capture_mark_name(request.payment)}]", str(units_from_money(request.money)))]


def capture_mark_name(payment: UUID) -> str:
    """At most 40 characters, as names of metadata are."""
    return f"capture_{payment.hex}"


def build_refund(request: AcquirerRequest, *, money: Money | None = None, **more: str) -> FormFields:
    """A refund of ``money`` (all of the request's when not given) of the charge or intent the request refers to."""
    return [
        ("charge" if request.reference.startswith("ch_") else "payment_intent", request.reference),
        ("amount", str(units_from_money(money or request.money))),
        (f"metadata[{PAYMENT_MARK}]", request.payment.hex),
        *((f"metadata[{name}]", value) for name, value in more.items()),
    ]


def build_closing_request(request: AcquirerRequest) -> FormFields:
    """What takes a first payment's idempotency key without moving anything: an intent that has no card."""
    marked: list[tuple[str, str | Secret]] = [*_metadata(request), (f"metadata[{CLOSED_MARK}]", "1")]
    if is_verification(request):
        return [("usage", "off_session"), ("payment_method_types[]", "card"), *marked]
    money = [("amount", str(units_from_money(request.money))), ("currency", request.money.currency.lower())]
    return [*money, ("payment_method_types[]", "card"), *marked]


def build_closing_mark(payment: UUID) -> FormFields:
    """The same for a follow-up: a mark on the object that it refers to."""
    return [(f"metadata[closed_{payment.hex}]", "1")]


def _card(request: AcquirerRequest) -> Card:
    card = request.card
    if card is None:
        raise UnsupportedRequestError(result_mapping.CARD_MISSING, "the processor takes cards only")
    if card.number_type == "DPAN":
        raise UnsupportedRequestError(
            result_mapping.MEANS_NOT_ACCEPTED, "device numbers of wallets cannot be handed on to this processor"
        )
    return card


def _means(request: AcquirerRequest, method: str) -> Iterator[tuple[str, str | Secret]]:
    if method:
        yield "payment_method", method
        return
    card, name = _card(request), "payment_method_data"
    yield f"{name}[type]", "card"
    yield f"{name}[card][number]", card.number
    yield f"{name}[card][exp_month]", str(int(card.expiry_month))
    yield f"{name}[card][exp_year]", card.expiry_year
    if card.cvv is not None:
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


def _metadata(request: AcquirerRequest) -> Iterator[tuple[str, str]]:
    yield f"metadata[{PAYMENT_MARK}]", request.payment.hex
    if order := request.parameters.get("merchantTransactionId"):
        yield f"metadata[{ORDER_MARK}]", order[:_METADATA_CHARS]


_PROOF: Final[Mapping[str, str]] = {
    "threeDSecure.version": "version",
    "threeDSecure.dsTransactionId": "transaction_id",
    "threeDSecure.eci": "electronic_commerce_indicator",
}
_PROVED: Final = "payment_method_options[card][three_d_secure]"
DEFAULT_3DS_VERSION: Final = "2.2.0"


def _proof(request: AcquirerRequest) -> Iterator[tuple[str, str | Secret]]:
    """The proof of an authentication that was made elsewhere, whole or not at all (D32)."""
    sent = request.parameters
    if request.cryptogram is None or "threeDSecure.dsTransactionId" not in sent:
        return
    whole = {"threeDSecure.version": DEFAULT_3DS_VERSION, **sent}
    for name, theirs in _PROOF.items():
        if value := whole.get(name):
            yield f"{_PROVED}[{theirs}]", value
    yield f"{_PROVED}[cryptogram]", request.cryptogram


def _initiator(sent: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Who starts the payment: the merchant, while the shopper is away, or a shopper on the telephone."""
    if sent.get("standingInstruction.source") == "MIT":
        yield "off_session", "true"
    elif sent.get("transactionCategory") in ("MO", "TO"):
        yield "payment_method_options[card][moto]", "true"


def _network_reference(sent: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    reference = resolve_initial_reference(sent)
    if sent.get("standingInstruction.source") == "MIT" and reference:
        yield "payment_method_options[card][mit_exemption][network_transaction_id]", reference


def _descriptor(sent: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What stands behind the account's own name on the shopper's statement; it has to have a letter in it."""
    text = " ".join(_DESCRIPTOR.sub(" ", sent.get("descriptor", "")).split())[:MAX_DESCRIPTOR_SUFFIX_CHARS].strip()
    if re.search("[A-Za-z]", text):
        yield "statement_descriptor_suffix", text


# --- what is kept of it -------------------------------------------------------------------------------------------


def mask_form(fields: FormFields) -> dict[str, str]:
    """A form as exchanges keep it: the number masked, code and cryptogram said to be there."""
    return {name: _masked(name, value) for name, value in fields}


def _masked(name: str, value: str | Secret) -> str:
    if isinstance(value, str):
        return value
    return mask_pan(value.reveal()) if name.endswith("[number]") else HIDDEN_SECRET


# --- what is answered ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeDetails:
    """What a charge tells: its id, the checks of address and code, the schemes' own reference."""

    id: str = ""
    avs: str = ""
    cvv: str = ""
    network_id: str = ""
    decline_code: str = ""


def parse_charge(intent_object: Mapping[str, Any]) -> ChargeDetails:
    """The last charge of an intent (or attempt of a setup), which may be an id alone."""
    found = intent_object.get("latest_charge") or intent_object.get("latest_attempt")
    if isinstance(found, str):
        return ChargeDetails(id=parse_object_id(found))
    if not isinstance(found, dict):
        return ChargeDetails()
    card = _inner(_inner(found, "payment_method_details"), "card")
    checks, outcome = _inner(card, "checks"), _inner(found, "outcome")
    return ChargeDetails(
        id=parse_object_id(found.get("id")),
        avs=result_mapping.map_address_checks(
            _word(checks, "address_line1_check"), _word(checks, "address_postal_code_check")
        ),
        cvv=result_mapping.CVV_RESPONSE_BY_CHECK.get(_word(checks, "cvc_check"), ""),
        network_id=parse_scheme_reference(parse_object_id(card.get("network_transaction_id"))),
        decline_code=_word(outcome, "reason"),
    )


def read_mark(thing: Mapping[str, Any], name: str) -> str:
    """A value of its metadata, or ''."""
    found = _inner(thing, "metadata").get(name)
    return found if isinstance(found, str) else ""


def is_made_by_payment(thing: Mapping[str, Any], payment: UUID) -> bool:
    """Whether a payment of ours made it, and not in order to hold its key."""
    return read_mark(thing, PAYMENT_MARK) == payment.hex and not read_mark(thing, CLOSED_MARK)


def result_code_from_error(error: Mapping[str, Any], operation: str) -> str:
    """The result code of an error, or of the ``last_payment_error`` of an intent."""
    return result_mapping.map_decline(_word(error, "decline_code"), _word(error, "code"), operation)


def summarize_error(error: Mapping[str, Any]) -> dict[str, str]:
    """What is kept of an error: its words, and no text, which may quote what was sent."""
    names = ("type", "code", "decline_code", "param", "network_decline_code", "advice_code")
    return {name: word for name in names if (word := _word(error, name))}


def summarize_object(thing: Mapping[str, Any]) -> dict[str, str]:
    """What is kept of an object."""
    names = ("object", "id", "status", "capture_method", "currency", "amount", "amount_capturable", "amount_received")
    kept = {name: str(thing[name]) for name in names if isinstance(thing.get(name), str | int)}
    if charge := parse_charge(thing).id:
        kept["charge"] = charge
    return {name: text[:255] for name, text in kept.items()} | summarize_error(_inner(thing, "last_payment_error"))


def parse_object_id(value: object) -> str:
    """An id, or '' for what is none."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def _inner(thing: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = thing.get(name)
    return found if isinstance(found, dict) else {}


def _word(thing: Mapping[str, Any], name: str) -> str:
    found = thing.get(name)
    return found if isinstance(found, str) and len(found) <= 64 else ""

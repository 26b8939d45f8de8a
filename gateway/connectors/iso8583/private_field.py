"""The private field: 3-D Secure, stored credentials, address and CVV checks, as numbered parts of DE48 (or DE126).

A part has two digits of number, two of length, and its text, as the networks define it. One table says what each number
holds; it uses the networks' own numbers where there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from text_unidecode import unidecode  # type: ignore[import-untyped]

from gateway.connectors.acquirer_message import LINK_PARAMETER, parse_transaction_link
from gateway.connectors.capabilities import SentParameter
from gateway.connectors.iso8583.exemptions import NETWORK_BY_BRAND, map_exemption
from gateway.connectors.point_of_service import PointOfService
from gateway.connectors.port import AcquirerRequest
from gateway.core.authorization_validity import ESTIMATED_AUTHORIZATION, FINAL_AUTHORIZATION
from gateway.core.brands import MASTERCARD_BRANDS
from gateway.core.secret import RedactedDict

MAX_PART_CHARS: Final = 99
MAX_PRIVATE_FIELD_CHARS: Final = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFieldPart:
    """``way``: ``>`` sent, ``<`` received. ``hidden``: only its presence is stored."""

    number: str
    name: str
    about: str
    way: str = ">"
    hidden: bool = False


PRIVATE_FIELD_PARTS: Final = (
    PrivateFieldPart(number="22", name="initiator", about="who initiates and why: C101 … C104, M101 … M208"),
    PrivateFieldPart(number="33", name="reason", about="why the merchant charges again: 3900 … 3904"),
    PrivateFieldPart(number="34", name="exemption", about="the exemption from authentication, in the network's code"),
    PrivateFieldPart(number="35", name="lifecycle", about="lifecycleId, a link to what follows"),
    PrivateFieldPart(number="36", name="clearing", about="of a capture, which of numberOfCaptures: 0102, one of two"),
    PrivateFieldPart(number="37", name="payFac", about="merchant.payFacId, the payment facilitator"),
    PrivateFieldPart(number="38", name="iso", about="merchant.isoId, the independent sales organisation"),
    PrivateFieldPart(number="39", name="subMerchant", about="merchant.submerchantId; Mastercard only"),
    PrivateFieldPart(
        number="40",
        name="estimated",
        about="Visa's field 60.10: 1 a part will do, 2 the amount may still change, 3 both; Mastercard's DE61.7: 4 it "
        "may still change, 8 the account is only verified",
    ),
    PrivateFieldPart(number="41", name="marketplace", about="merchant.marketplaceId"),
    PrivateFieldPart(number="42", name="eci", about="electronic commerce indicator, two digits"),
    PrivateFieldPart(number="43", name="cavv", about="the authentication's value, base64", hidden=True),
    PrivateFieldPart(number="60", name="advice", about="merchant's advice code, two digits", way="<"),
    PrivateFieldPart(
        number="61", name="finality", about="Mastercard: 10000 a part will do, 00001 a final authorization, 10001 both"
    ),
    PrivateFieldPart(
        number="63",
        name="network",
        about="the network's reference: of the initial payment; its own in an answer",
        way="<>",
    ),
    PrivateFieldPart(
        number="64",
        name="link",
        about="Mastercard's DE105, subelement 1: the transaction link of the payment it follows; its own in an answer",
        way="<>",
    ),
    PrivateFieldPart(
        number="65",
        name="relatedLink",
        about="Mastercard's link to an economically related payment: the first one of its agreement, or the one that "
        "is charged again",
    ),
    PrivateFieldPart(
        number="66", name="dsTransaction", about="3DS protocol (1 or 2) and the directory server's transaction id"
    ),
    PrivateFieldPart(number="80", name="postcode", about="billing postcode for the address check"),
    PrivateFieldPart(number="81", name="street", about="billing street for the address check"),
    PrivateFieldPart(number="83", name="avs", about="the address check's answer, one letter", way="<"),
    PrivateFieldPart(
        number="84", name="merchantAdvice", about="the issuer's advice to the merchant, two digits", way="<"
    ),
    PrivateFieldPart(number="87", name="cvv", about="the security code's answer, one letter", way="<"),
    PrivateFieldPart(number="88", name="cryptogram", about="a network token's cryptogram, base64", hidden=True),
    PrivateFieldPart(number="89", name="tokenRequestor", about="a stored card's network token: token requestor id"),
    PrivateFieldPart(number="92", name="cvv2", about="the security code", hidden=True),
)
PRIVATE_FIELD_PARTS_BY_NUMBER: Final[Mapping[str, PrivateFieldPart]] = MappingProxyType(
    {part.number: part for part in PRIVATE_FIELD_PARTS}
)

# (type or recurringType, practice) as the merchant sends them → the networks' codes.
_OF_TYPE: Final[Mapping[str, str]] = MappingProxyType(
    {"UNSCHEDULED": "01", "STANDING_ORDER": "02", "SUBSCRIPTION": "03", "RECURRING": "03", "INSTALLMENT": "04"}
)
INITIATOR_BY_PRACTICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "REAUTHORIZATION": "M205",
        "DELAYED_CHARGES": "M206",
        "INCREMENTAL_AUTH": "M206",
        "NO_SHOW": "M207",
        "RESUBMISSION": "M208",
    }
)
"""industryPractice → Mastercard's DE48 subelement 22. Mastercard has M205 for a partial shipment, the nearest to a
renewed authorization, and no code of its own for an increment: M206, a related charge (uncertain: ask the acquirer)."""
REASON_BY_PRACTICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "INCREMENTAL_AUTH": "3900",
        "RESUBMISSION": "3901",
        "DELAYED_CHARGES": "3902",
        "REAUTHORIZATION": "3903",
        "NO_SHOW": "3904",
    }
)
"""industryPractice → Visa's message reason code (field 63.3), which the other networks do not have."""


def map_initiator(point: PointOfService) -> str:
    """C101 … M208 for a payment that uses or makes a stored credential; '' for any other."""
    if point.merchant_initiated and point.practice in INITIATOR_BY_PRACTICE:
        return INITIATOR_BY_PRACTICE[point.practice]
    if not point.marked:
        return ""
    return ("M1" if point.merchant_initiated else "C1") + _OF_TYPE.get(point.reason, "01")


SPECIAL_PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "lifecycle": "lifecycleId",
        "payFac": "merchant.payFacId",
        "iso": "merchant.isoId",
        "subMerchant": "merchant.submerchantId",
        "marketplace": "merchant.marketplaceId",
    }
)
_SPECIAL_ROOM: Final[Mapping[str, int]] = MappingProxyType(
    {"lifecycle": 35, "payFac": 11, "iso": 11, "subMerchant": 15, "marketplace": 11}
)
"""As in Mastercard's DE48, subelement 37; a longer value is left out, since cut off it would name another party."""
_SUBMERCHANT_BRANDS: Final = frozenset(brand for brand, network in NETWORK_BY_BRAND.items() if network == "Mastercard")
PRIVATE_CAPABILITIES: Final = tuple(
    SentParameter(
        name=parameter,
        place=f"DE48 part {next(part.number for part in PRIVATE_FIELD_PARTS if part.name == name)}",
        brands=_SUBMERCHANT_BRANDS if name == "subMerchant" else frozenset(),
        max_chars=_SPECIAL_ROOM[name],
    )
    for name, parameter in SPECIAL_PARTS.items()
)


# The networks' manuals (Visa, V.I.P. System, field 60.8; Mastercard, Customer Interface Specification, DE48 subelement
# 42) were not at hand. The values of online payments are quoted by https://developer.cybersource.com/docs/cybs/en-us/
# credentials/developer/smartfdc/rest/credentials/credentials-ref-info-payerauth.html.
UNAUTHENTICATED_ECI: Final = "07"
MASTERCARD_UNAUTHENTICATED_ECI: Final = "00"
MASTERCARD_EXEMPT_ECI: Final = "06"
"""Mastercard: an exemption from authentication, or a network token without 3-D Secure."""
VISA_ORDER_ECI: Final = "01"
"""Visa: one mail or telephone order. Source: Visa, V.I.P. System, field 60.8, quoted by
https://developer.hipay.com/payment-fundamentals/essentials/eci. Mastercard has no value for it."""


VISA_RECURRING_ECI: Final = "02"
VISA_RECURRING_COUNTRIES: Final = frozenset({"US", "CA"})
"""Countries in which a recurring Visa payment has the ECI 02; in all others 07, as for online payments. Source: Visa's
field 60.8, quoted by https://developer.cybersource.com/docs/cybs/en-us/platform/relnote/all/na/rn-2026-06-12/
rn-fixed-issues.html. Of other payments that a merchant initiates no value was found."""


def _map_recurring(request: AcquirerRequest) -> str:
    """The ECI of a payment that the merchant initiates; '' for none, and where the account does not say its country."""
    point, country = request.point_of_service, request.account.settings.get("country", "")
    recurring = not point.practice and _OF_TYPE.get(point.reason) == _OF_TYPE["RECURRING"]
    if not recurring or not country or NETWORK_BY_BRAND.get(request.network_brand) != "Visa":
        return ""
    return VISA_RECURRING_ECI if country in VISA_RECURRING_COUNTRIES else UNAUTHENTICATED_ECI


def _map_unauthenticated(request: AcquirerRequest) -> str:
    """The ECI of a card payment without an authentication; '' for none."""
    point, network = request.point_of_service, NETWORK_BY_BRAND.get(request.network_brand, "")
    if request.operation == "CD":
        return ""
    if point.merchant_initiated:
        return _map_recurring(request)
    if point.order:
        return VISA_ORDER_ECI if network == "Visa" else ""
    if network == "Mastercard":
        return MASTERCARD_EXEMPT_ECI if point.token or point.exemption else MASTERCARD_UNAUTHENTICATED_ECI
    return UNAUTHENTICATED_ECI


def _read_special_parts(request: AcquirerRequest) -> Iterator[tuple[str, str]]:
    for name, parameter in SPECIAL_PARTS.items():
        text = request.get_repeated(parameter)
        if name == "subMerchant" and request.network_brand not in _SUBMERCHANT_BRANDS:
            continue
        if len(text) <= _SPECIAL_ROOM[name]:
            yield name, text
        elif name == "payFac":
            raise ValueError("merchant.payFacId is too long")


def build_repeated_parts(request: AcquirerRequest, network: str) -> RedactedDict:
    """Name → text of the parts that a follow-up or a reversal repeats: who initiates, the ECI, the exemption, the
    facilitator and its merchant, the network's reference and link. ``network``: of the payment it follows, or of the
    agreement's first one."""
    point = request.point_of_service
    number, most = request.clearing
    found = {
        "finality": _map_finality(request) if request.operation == "RF" else "",
        "clearing": f"{number:02}{most:02}" if most else "",
        "eci": point.eci or _map_unauthenticated(request),
        "exemption": map_exemption(point.exemption, request.network_brand),
        # A reference that does not fit is left out: cut off, it would name another transaction.
        **dict(_read_special_parts(request)),
        "network": network if len(network) <= MAX_PART_CHARS and transliterate(network) == network else "",
        **_resolve_links(request),
    }
    if request.operation != "CD":
        found |= {
            "initiator": map_initiator(point),
            "reason": REASON_BY_PRACTICE.get(point.practice, "") if point.merchant_initiated else "",
        }
    return _encodable(found)


def _resolve_links(request: AcquirerRequest) -> dict[str, str]:
    """Mastercard's links, by part: to the payment of whose lifecycle this message is, and of a payment that the
    merchant initiates to an earlier one, mandatory since 23 October 2026. The two are told apart: the second begins a
    lifecycle of its own. Source: Mastercard Transaction Processing Rules, 2.9 to 2.11 (the first, DE105 subelement
    1); AN 7102, quoted by https://developerhub.ppro.com/global-api/docs/mastercard-tlid and https://docs.solidgate.com/
    payments/card-payments/card-payments-insights/mastercard-transaction-link-identifier (the second, of no number that
    is public)."""
    point = request.point_of_service
    if NETWORK_BY_BRAND.get(request.network_brand) != "Mastercard":
        return {}
    agreed = request.parameters.get(LINK_PARAMETER, "") if point.merchant_initiated and not request.reference else ""
    return {"link": point.link, "relatedLink": point.related_link or parse_transaction_link(agreed)}


def build_private_parts(request: AcquirerRequest, network: str) -> RedactedDict:
    """Name → text of the parts of a first message. ``network``: the initial payment's reference at the network."""
    given, card, means = request.parameters, request.card, request.means
    cryptogram = getattr(means, "cryptogram", None)
    ds = given.get("threeDSecure.dsTransactionId", "")
    code = card.cvv if card is not None else getattr(means, "dtvc", None)
    if request.point_of_service.merchant_initiated or request.operation == "CD":
        code = None  # none may have been kept, and money that is sent to a card needs no proof of it
    house = given.get("billing.houseNumber1", "")
    street = " ".join(text for text in (given.get("billing.street1", ""), house) if text)
    return RedactedDict(
        build_repeated_parts(request, network)
        | _encodable(
            {
                "finality": _map_finality(request),
                "estimated": _map_estimate(request),
                "cavv": request.cryptogram.reveal() if request.cryptogram is not None else "",
                "dsTransaction": (given.get("threeDSecure.version", "2")[:1] or "2") + ds if ds else "",
                "postcode": transliterate(given.get("billing.postcode", ""))[:9],
                "street": transliterate(street)[:20],
                "cryptogram": cryptogram.reveal() if cryptogram is not None else "",
                "tokenRequestor": getattr(means, "requestor", ""),
                "cvv2": code.reveal() if code is not None else "",
            }
        )
    )


VISA_AMOUNT_INDICATORS: Final[Mapping[tuple[bool, bool], str]] = MappingProxyType(
    {(False, True): "1", (True, False): "2", (True, True): "3"}
)
"""(estimated, a part will do) → Visa's field 60.10, of which 2 says that parts are not taken. The manual was not at
hand; quoted by Thredd, External Host Interface, Visa_POS_Data_DE60, position 12."""
MASTERCARD_ESTIMATED: Final = "4"
"""Mastercard's DE61, subfield 7 (preauthorized request)."""
MASTERCARD_VERIFICATION: Final = "8"
"""Mastercard's DE61, subfield 7 (account status inquiry), which with an amount of zero and DE3 00 makes a verification:
Mastercard Transaction Processing Rules, "Account Status Inquiry (ASI) Requests". DE25 says the same to Visa (51)."""


_ON_AUTHORIZATIONS: Final = frozenset({"INCREMENTAL_AUTH", "REAUTHORIZATION"})


def _map_estimate(request: AcquirerRequest) -> str:
    """What marks an authorization whose amount may still change, without which an issuer lets it lapse as if the amount
    were final, at Visa one that may be approved in part, and at Mastercard a verification. That both mark it is quoted
    by https://developer.cybersource.com/docs/cybs/en-us/api-fields/reference/all/so/api-fields/
    auth-indicator-reply.html."""
    network = NETWORK_BY_BRAND.get(request.network_brand, "")
    if not request.money:
        return MASTERCARD_VERIFICATION if network == "Mastercard" else ""
    kind = request.authorization_kind
    # An increment or a renewal is one more preauthorization (Mastercard Transaction Processing Rules, 2.9).
    more = request.operation == "PA" and request.point_of_service.practice in _ON_AUTHORIZATIONS
    if network == "Visa":
        estimated = kind == ESTIMATED_AUTHORIZATION and not more
        return VISA_AMOUNT_INDICATORS.get((estimated, request.asks_for_part), "")
    estimated = kind == ESTIMATED_AUTHORIZATION or (more and kind != FINAL_AUTHORIZATION)
    return MASTERCARD_ESTIMATED if estimated and network == "Mastercard" else ""


def _map_finality(request: AcquirerRequest) -> str:
    """Mastercard's DE48 subelement 61: position 1, a part will do; 5, the authorization is final, as that of a debit
    and of a refund always is. In Europe each has to be marked as final or as a preauthorization. Source: Mastercard
    Transaction Processing Rules, 2.7, 2.12, 2.13.1, Europe Region 2.1; docs/decisions/0131, 0137."""
    if request.network_brand not in MASTERCARD_BRANDS:
        return ""
    part = request.asks_for_part and bool(request.money)
    gives_back = request.operation in ("RF", "CD") and not request.point_of_service.transfer
    is_debit = request.operation in ("DB", "RB")
    final = gives_back or is_debit or (request.authorization_kind == FINAL_AUTHORIZATION and bool(request.money))
    return f"{part:d}000{final:d}" if part or final else ""


def _encodable(parts: Mapping[str, str]) -> RedactedDict:
    return RedactedDict((name, written) for name, text in parts.items() if (written := transliterate(text)))


def write_private_field(parts: Mapping[str, str]) -> str:
    """Encode the parts. Raises ValueError if they do not fit."""
    rows = [(part.number, parts[part.name]) for part in PRIVATE_FIELD_PARTS if part.name in parts]
    if any(len(text) > MAX_PART_CHARS for _, text in rows):
        raise ValueError("a part of the private field is too long")
    text = "".join(encode_part(number, text) for number, text in rows)
    if len(text) > MAX_PRIVATE_FIELD_CHARS:
        raise ValueError("the private field is too long")
    return text


def encode_part(number: str, text: str) -> str:
    """Two digits of number, two of length, the text."""
    return f"{number}{len(text):02}{text}"


def parse_private_field(text: str) -> dict[str, str]:
    """Parts of an answer's field by name; unknown numbers and an incomplete tail are left out."""
    return {
        PRIVATE_FIELD_PARTS_BY_NUMBER[number].name: part
        for number, part in split_parts(text)
        if number in PRIVATE_FIELD_PARTS_BY_NUMBER
    }


def mask_private_parts(parts: Mapping[str, str]) -> dict[str, str]:
    """The parts for storage."""
    hidden = {part.name for part in PRIVATE_FIELD_PARTS if part.hidden}
    return {name: "***" if name in hidden else text for name, text in parts.items()}


def transliterate(text: str) -> str:
    """The text in the characters that every encoding has: other letters by their like in English, what has none left
    out. Visa takes no question mark for a letter of a name: https://developers.tabapay.com/docs/bulletins-20250616."""
    if text.isascii() and text.isprintable():
        return text
    return " ".join("".join(map(_transliterate_char, text)).split())


def _transliterate_char(char: str) -> str:
    if " " <= char <= "~":
        return char
    return plain if (plain := unidecode(char)).isprintable() and "?" not in plain else " "


def split_parts(text: str) -> Iterator[tuple[str, str]]:
    """Number and text of each part; an incomplete tail is left out."""
    place = 0
    while place + 4 <= len(text):
        number, length = text[place : place + 2], text[place + 2 : place + 4]
        if not (number.isascii() and number.isdigit() and length.isascii() and length.isdigit()):
            return
        end = place + 4 + int(length)
        if end > len(text):
            return
        yield number, text[place + 4 : end]
        place = end

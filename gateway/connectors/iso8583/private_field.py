"""The private field: 3-D Secure, stored credentials, address and CVV checks, as numbered parts of DE48 (or DE126).

A part has two digits of number, two of length, and its text, as the networks define it. One table says what each number
holds; it uses the networks' own numbers where there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.connectors.port import AcquirerRequest
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
    PrivateFieldPart(number="42", name="eci", about="electronic commerce indicator, two digits"),
    PrivateFieldPart(number="43", name="cavv", about="the authentication's value, base64", hidden=True),
    PrivateFieldPart(number="60", name="advice", about="merchant's advice code, two digits", way="<"),
    PrivateFieldPart(
        number="63",
        name="network",
        about="the network's reference: of the initial payment; its own in an answer",
        way="<>",
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
    PrivateFieldPart(number="92", name="cvv2", about="the security code", hidden=True),
)
PRIVATE_FIELD_PARTS_BY_NUMBER: Final[Mapping[str, PrivateFieldPart]] = MappingProxyType(
    {part.number: part for part in PRIVATE_FIELD_PARTS}
)

# (type or recurringType, practice) as the merchant sends them → the networks' codes.
_OF_TYPE: Final[Mapping[str, str]] = MappingProxyType(
    {"UNSCHEDULED": "01", "STANDING_ORDER": "02", "SUBSCRIPTION": "03", "RECURRING": "03", "INSTALLMENT": "04"}
)
_OF_PRACTICE: Final[Mapping[str, str]] = MappingProxyType(
    {"DELAYED_CHARGES": "M206", "NO_SHOW": "M207", "RESUBMISSION": "M208"}
)
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


def map_initiator(parameters: Mapping[str, str]) -> str:
    """C101 … M208 for a payment with stored credentials; '' for any other."""
    said = {name: parameters.get(f"standingInstruction.{name}", "") for name in ("mode", "source", "type")}
    kind = parameters.get("standingInstruction.recurringType") or said["type"]
    practice = parameters.get("standingInstruction.industryPractice", "")
    if practice in _OF_PRACTICE:
        return _OF_PRACTICE[practice]
    if not any(said.values()):
        return ""
    merchants = said["source"] == "MIT" or (said["mode"] == "REPEATED" and said["source"] != "CIT")
    return ("M1" if merchants else "C1") + _OF_TYPE.get(kind, "01")


def build_private_parts(request: AcquirerRequest, network: str) -> RedactedDict:
    """Name → text of the parts of a first message. ``network``: the initial payment's reference at the network."""
    given, card, means = request.parameters, request.card, request.means
    cryptogram = getattr(means, "cryptogram", None)
    ds = given.get("threeDSecure.dsTransactionId", "")
    code = card.cvv if card is not None else getattr(means, "dtvc", None)
    house = given.get("billing.houseNumber1", "")
    street = " ".join(text for text in (given.get("billing.street1", ""), house) if text)
    found = RedactedDict(
        {
            "initiator": map_initiator(given),
            "reason": REASON_BY_PRACTICE.get(given.get("standingInstruction.industryPractice", ""), ""),
            "eci": given.get("threeDSecure.eci", ""),
            "cavv": request.cryptogram.reveal() if request.cryptogram is not None else "",
            # A reference that does not fit is left out: cut off, it would name another transaction.
            "network": network if len(network) <= MAX_PART_CHARS and replace_unencodable(network) == network else "",
            "dsTransaction": (given.get("threeDSecure.version", "2")[:1] or "2") + ds if ds else "",
            "postcode": given.get("billing.postcode", "")[:9],
            "street": street[:20],
            "cryptogram": cryptogram.reveal() if cryptogram is not None else "",
            "cvv2": code.reveal() if code is not None else "",
        }
    )
    return RedactedDict((name, replace_unencodable(text)) for name, text in found.items() if text)


def write_private_field(parts: Mapping[str, str]) -> str:
    """Encode the parts. Raises ValueError if they do not fit."""
    rows = [(part.number, parts[part.name]) for part in PRIVATE_FIELD_PARTS if part.name in parts]
    if any(len(text) > MAX_PART_CHARS for _, text in rows):
        raise ValueError("a part of the private field is too long")
    text = "".join(f"{number}{len(text):02}{text}" for number, text in rows)
    if len(text) > MAX_PRIVATE_FIELD_CHARS:
        raise ValueError("the private field is too long")
    return text


def parse_private_field(text: str) -> dict[str, str]:
    """Parts of an answer's field by name; unknown numbers and an incomplete tail are left out."""
    return {
        PRIVATE_FIELD_PARTS_BY_NUMBER[number].name: part
        for number, part in _parts(text)
        if number in PRIVATE_FIELD_PARTS_BY_NUMBER
    }


def mask_private_parts(parts: Mapping[str, str]) -> dict[str, str]:
    """The parts for storage."""
    hidden = {part.name for part in PRIVATE_FIELD_PARTS if part.hidden}
    return {name: "***" if name in hidden else text for name, text in parts.items()}


def replace_unencodable(text: str) -> str:
    """Replace characters that not every encoding has by question marks."""
    return "".join(char if " " <= char <= "~" else "?" for char in text)


def _parts(text: str) -> Iterator[tuple[str, str]]:
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

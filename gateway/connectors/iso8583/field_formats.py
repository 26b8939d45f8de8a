"""Formats of all data elements that we send or understand, in the notation of ISO 8583:1987.

An acquirer's dialect may differ: an account's setting ``fields`` overrides formats in the same notation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

FIELD_MAP: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "2": ("n..19", "Primary account number"),
        "3": ("n6", "Processing code"),
        "4": ("n12", "Amount, transaction"),
        "5": ("n12", "Amount, settlement"),
        "6": ("n12", "Amount, cardholder billing"),
        "7": ("n10", "Transmission date and time, MMDDhhmmss UTC"),
        "9": ("n8", "Conversion rate, settlement"),
        "10": ("n8", "Conversion rate, cardholder billing"),
        "11": ("n6", "System trace audit number"),
        "12": ("n6", "Time, local transaction, hhmmss"),
        "13": ("n4", "Date, local transaction, MMDD"),
        "14": ("n4", "Date, expiration, YYMM"),
        "15": ("n4", "Date, settlement, MMDD"),
        "16": ("n4", "Date, conversion, MMDD"),
        "17": ("n4", "Date, capture, MMDD"),
        "18": ("n4", "Merchant type"),
        "19": ("n3", "Acquiring institution country code"),
        "22": ("n3", "Point of service entry mode"),
        "23": ("n3", "Card sequence number"),
        "24": ("n3", "Network international identifier"),
        "25": ("n2", "Point of service condition code"),
        "28": ("an9", "Amount, transaction fee"),
        "32": ("n..11", "Acquiring institution identification code"),
        "33": ("n..11", "Forwarding institution identification code"),
        "37": ("an12", "Retrieval reference number"),
        "38": ("an6", "Authorization identification response"),
        "39": ("an2", "Response code"),
        "41": ("ans8", "Card acceptor terminal identification"),
        "42": ("ans15", "Card acceptor identification code"),
        "43": ("ans40", "Card acceptor name and location"),
        "44": ("ans..25", "Additional response data"),
        "48": ("ans...999", "Additional data, private"),
        "49": ("n3", "Currency code, transaction"),
        "50": ("n3", "Currency code, settlement"),
        "51": ("n3", "Currency code, cardholder billing"),
        "54": ("ans...120", "Additional amounts"),
        "55": ("b...255", "Chip data"),
        "60": ("ans...999", "Reserved, national"),
        "61": ("ans...999", "Reserved, private"),
        "62": ("ans...999", "Reserved, private"),
        "63": ("ans...999", "Reserved, private"),
        "64": ("b8", "Message authentication code"),
        "66": ("n1", "Settlement code"),
        "70": ("n3", "Network management information code"),
        "74": ("n10", "Credits, number"),
        "75": ("n10", "Credits, reversal number"),
        "76": ("n10", "Debits, number"),
        "77": ("n10", "Debits, reversal number"),
        "86": ("n16", "Credits, amount"),
        "87": ("n16", "Credits, reversal amount"),
        "88": ("n16", "Debits, amount"),
        "89": ("n16", "Debits, reversal amount"),
        "90": ("n42", "Original data elements"),
        "95": ("an42", "Replacement amounts"),
        "97": ("an17", "Amount, net settlement"),
        "100": ("n..11", "Receiving institution identification code"),
        "102": ("ans..28", "Account identification 1"),
        "103": ("ans..28", "Account identification 2"),
        "104": ("ans...999", "Transaction description"),
        "120": ("ans...999", "Reserved, private"),
        "121": ("ans...999", "Reserved, private"),
        "123": ("ans...999", "Reserved, private"),
        "126": ("ans...999", "Reserved, private"),
        "127": ("ans...999", "Reserved, private"),
        "128": ("b8", "Message authentication code"),
    }
)
"""Number → format, name. n: digits; an, ans: text; b: bytes, shown as hex; ``..`` and ``...``: up to, with a length of
two or three digits before it."""

FIELD_FORMAT_PATTERN: Final = r"[0-9]{1,3}=(?:n|an|ans|b)(?:\.{2,3})?[0-9]{1,3}"
FIELD_FORMATS_PATTERN: Final = rf"(?:{FIELD_FORMAT_PATTERN}(?: +{FIELD_FORMAT_PATTERN}){{0,63}})?"
"""The setting ``fields``, such as ``39=n2 54=ans...255``."""
_FORMAT: Final = re.compile(r"(n|ans?|b)(\.{2,3})?([0-9]{1,3})")

# (text, numbers, lengths, bitmap) of each encoding; "b" packs digits two a byte, or sends bytes as they are.
FIELD_ENCODINGS: Final[Mapping[str, tuple[str, str, str, str]]] = MappingProxyType(
    {
        "ascii": ("ascii", "ascii", "ascii", "b"),
        "ascii-hex": ("ascii", "ascii", "ascii", "ascii"),
        "bcd": ("ascii", "b", "bcd", "b"),
        "ebcdic": ("cp037", "cp037", "cp037", "b"),
    }
)

FieldSpec = Mapping[str, Mapping[str, Any]]


@lru_cache(maxsize=64)
def build_field_spec(encoding: str, formats: str = "") -> FieldSpec:
    """The pyiso8583 specification for an encoding and an account's own ``formats``. Raises ValueError."""
    if encoding not in FIELD_ENCODINGS:
        raise ValueError(f"no encoding {encoding!r}")
    if re.fullmatch(FIELD_FORMATS_PATTERN, formats) is None:
        raise ValueError("fields: number=format, e.g. 39=n2 54=ans...255")
    text, numbers, _, bitmap = FIELD_ENCODINGS[encoding]
    own = dict(one.split("=") for one in formats.split())
    spec: dict[str, Mapping[str, Any]] = {
        "h": _fixed("ascii", 0, "none"),
        "t": _fixed(numbers if numbers == "b" else text, 4 if numbers != "b" else 2, "Message type"),
        "p": _fixed(bitmap if bitmap == "b" else text, 8 if bitmap == "b" else 16, "Bitmap"),
        "1": _fixed(bitmap if bitmap == "b" else text, 8 if bitmap == "b" else 16, "Bitmap, secondary"),
    }
    for number in range(2, 129):
        described = FIELD_MAP.get(str(number), ("", ""))
        shape = own.get(str(number), described[0])
        if shape:
            spec[str(number)] = _field(shape, described[1], encoding)
    return MappingProxyType(spec)


def _field(shape: str, name: str, encoding: str) -> dict[str, Any]:
    found = _FORMAT.fullmatch(shape)
    if found is None:
        raise ValueError(f"no format {shape!r}")
    kind, dots, most = found[1], found[2] or "", int(found[3])
    text, numbers, lengths, bitmap = FIELD_ENCODINGS[encoding]
    hexed = kind == "b" and bitmap != "b"
    row: dict[str, Any] = {"data_enc": text, "len_enc": lengths, "len_type": len(dots), "max_len": most, "desc": name}
    if kind == "b":
        row |= {"data_enc": text if hexed else "b", "max_len": 2 * most if hexed else most}
    elif kind == "n" and numbers == "b":
        row |= {"data_enc": "b", "len_count": "nibbles", "left_pad": "0"}
    if lengths == "bcd":
        row["len_type"] = (len(dots) + 1) // 2
    return row


def _fixed(encoding: str, most: int, name: str) -> dict[str, Any]:
    return {"data_enc": encoding, "len_enc": "ascii", "len_type": 0, "max_len": most, "desc": name}

"""Questions as messages: pure functions around the table of data elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.connectors.iso8583.data_elements import DATA_ELEMENTS
from gateway.connectors.iso8583.iso_request import MESSAGE_KINDS, IsoRequest
from gateway.connectors.iso8583.private_field import mask_private_parts
from gateway.core.masking import mask_pan
from gateway.core.secret import RedactedDict


def build_iso_message(asked: IsoRequest, *, repeat: bool = False) -> RedactedDict:
    """The message itself, card number and all: DE number → text."""
    mti = MESSAGE_KINDS[asked.kind].mti
    found = RedactedDict(t=mti[:3] + "1" if repeat else mti)
    for row in DATA_ELEMENTS:
        if asked.kind in row.kinds.split():
            number = asked.terminal.private_field if row.number == "48" else row.number
            found[number] = row.fill(asked)
    for number in [number for number in found if not found[number]]:
        del found[number]
    return found


def mask_iso_message(message: Mapping[str, str], asked: IsoRequest) -> dict[str, Any]:
    """The message as the exchange keeps it."""
    kept: dict[str, Any] = {"mti": message["t"]}
    kept |= {number: text for number, text in message.items() if number != "t"}
    if "2" in kept:
        kept["2"] = mask_pan(kept["2"])
    if asked.terminal.private_field in kept:
        kept[asked.terminal.private_field] = mask_private_parts(asked.parts)
    return kept


def build_message_key(
    message: Mapping[str, str], *, answer: bool = False, terminal: str = ""
) -> tuple[str, str, str, str]:
    """What a message and its answer share: what kind of answer it is, DE11, DE37, and DE41 where it is told.

    Of the answer's type three digits count: to a repeat (0421) some hosts answer 0430, as the standard lists it, some
    repeat the last digit.
    """
    mti = message["t"]
    kind = mti[:3] if answer else f"{mti[:2]}{int(mti[2]) + 1}"
    return kind, message.get("11", ""), message.get("37", "").strip(), message.get("41", terminal).strip()

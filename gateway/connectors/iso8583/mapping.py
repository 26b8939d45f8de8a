"""Builds and masks ISO 8583 messages from the table of data elements. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.connectors.iso8583.addenda import mask_addendum
from gateway.connectors.iso8583.data_elements import DATA_ELEMENTS
from gateway.connectors.iso8583.iso_request import MESSAGE_KINDS, IsoRequest
from gateway.connectors.iso8583.private_field import mask_private_parts
from gateway.core.masking import mask_pan
from gateway.core.secret import RedactedDict


def build_iso_message(asked: IsoRequest, *, repeat: bool = False) -> RedactedDict:
    """The message with the card number in clear: data element number → text."""
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
    """The message for the stored exchange."""
    masked: dict[str, Any] = {"mti": message["t"]}
    masked |= {number: text for number, text in message.items() if number != "t"}
    if "2" in masked:
        masked["2"] = mask_pan(masked["2"])
    if asked.terminal.private_field in masked:
        masked[asked.terminal.private_field] = mask_private_parts(asked.parts)
    masked |= {element: mask_addendum(parts) for element, parts in asked.addenda.items()}
    return masked


def build_message_key(
    message: Mapping[str, str], *, answer: bool = False, terminal: str = ""
) -> tuple[str, str, str, str]:
    """The fields that match an answer to its message: answer type, DE11, DE37, and DE41 where it is sent.

    Only three digits of the answer's type count: to a repeat (0421) some hosts answer 0430, as the standard lists it,
    others repeat the last digit.
    """
    mti = message["t"]
    kind = mti[:3] if answer else f"{mti[:2]}{int(mti[2]) + 1}"
    return kind, message.get("11", ""), message.get("37", "").strip(), message.get("41", terminal).strip()

"""The contents of an ISO 8583 message before encoding: its kind, its identifying numbers, and the message it refers to.

Everything follows from the request and the account, nothing from a clock, so a repeat or a reversal can build the same
message again: the number that a terminal may use once a day comes with the request (trace_numbers.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from gateway.connectors.acquirer_message import INITIAL_REFERENCE, resolve_initial_reference
from gateway.connectors.iso8583.addenda import build_addenda
from gateway.connectors.iso8583.private_field import (
    build_private_parts,
    build_repeated_parts,
    write_private_field,
)
from gateway.connectors.iso8583.processing_codes import find_transfer_code
from gateway.connectors.iso8583.terminal import Terminal
from gateway.connectors.port import AcquirerRequest
from gateway.core.brands import MASTERCARD_BRANDS
from gateway.core.money import Money

MAX_MINOR_UNITS: Final = 10**12 - 1
"""DE4 has twelve digits."""
VOID_KIND: Final = "V"
_ORIGINAL: Final = re.compile(r"([A-Z]{2})([0-9]{6})([0-9]{10})([0-9]{12})([!-~]{6})([0-9]{1,12})\.([!-~]{0,15})")
_NETWORK_CHARS: Final = 15
_YEARS_TO_A_LEAP_DAY: Final = 9


class UnsendableRequestError(Exception):
    """The request cannot be expressed as a message; nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageKind:
    """``mti`` of the first message; a repeat ends with 1. ``code``: DE3, '' for the original's. ``advice``: it reports
    what is already done (or undoes it), so it is repeated until it is answered."""

    mti: str
    code: str
    advice: bool = False


MESSAGE_KINDS: Final[Mapping[str, MessageKind]] = MappingProxyType(
    {
        "RG": MessageKind(mti="0100", code="000000"),
        "PA": MessageKind(mti="0100", code="000000"),
        "DB": MessageKind(mti="0200", code="000000"),
        "RB": MessageKind(mti="0200", code="000000"),
        "CD": MessageKind(mti="0200", code="200000"),
        "RF": MessageKind(mti="0200", code="200000"),
        "CP": MessageKind(mti="0220", code="000000", advice=True),
        "RV": MessageKind(mti="0400", code="", advice=True),
        VOID_KIND: MessageKind(mti="0420", code="", advice=True),
    }
)
"""Payment type → its message; VOID_KIND reverses one of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalMessage:
    """Identifying numbers of an earlier message (DE90), and what its answer added. ``amount`` in minor units."""

    operation: str
    stan: str
    sent_at: str
    rrn: str
    auth: str = ""
    amount: int = 0
    network: str = ""

    def find_sent_time(self, by: datetime) -> datetime:
        """When it was sent, UTC. ``sent_at`` has no year: it is the latest such time that is not after ``by``."""
        for year in range(by.year, by.year - _YEARS_TO_A_LEAP_DAY, -1):
            with suppress(ValueError):  # 29 February
                found = datetime.strptime(f"{year}{self.sent_at}+0000", "%Y%m%d%H%M%S%z")
                if found <= by:
                    return found
        return by

    def text(self) -> str:
        """As stored in the payment's connector_tx_id, 64 characters at most."""
        auth = self.auth.replace(" ", "")[:6]
        network = "".join(self.network.split())
        # Cut off it would name another transaction. Agreements keep the whole one (AcquirerReply.network_reference).
        network = network if len(network) <= _NETWORK_CHARS else ""
        return f"{self.operation}{self.stan}{self.sent_at}{self.rrn}{auth:.<6}{self.amount}.{network}"

    @classmethod
    def parse(cls, text: str) -> OriginalMessage | None:
        """Parse what :meth:`text` wrote; None for anything else."""
        found = _ORIGINAL.fullmatch(text)
        if found is None or found[1] not in MESSAGE_KINDS:
            return None
        operation, stan, sent_at, rrn, auth, amount, network = found.groups()
        return cls(
            operation=operation,
            stan=stan,
            sent_at=sent_at,
            rrn=rrn,
            auth=auth.rstrip("."),
            amount=int(amount),
            network=network,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IsoRequest:
    """A message to be built. ``own``: its identifying numbers; ``original``: those of the message it refers to, None
    for a first message; ``processing``: DE3; ``addenda``: element → its parts; ``amount_already_reversed``: of the
    original, in minor units."""

    request: AcquirerRequest
    terminal: Terminal
    kind: str
    own: OriginalMessage
    original: OriginalMessage | None
    parts: Mapping[str, str]
    processing: str = ""
    addenda: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    amount_already_reversed: int = 0

    def given(self, name: str) -> str:
        """A parameter's value; '' if it was not sent."""
        return self.request.parameters.get(name, "")

    @property
    def country(self) -> str:
        """The merchant's country in two letters: that of the request, else the account's; '' if neither says it."""
        return (self.given("merchant.country") or self.terminal.country)[:2]

    @property
    def is_renewal(self) -> bool:
        """Whether it renews an authorization."""
        return self.request.operation == "PA" and self.request.point_of_service.practice == "REAUTHORIZATION"

    @property
    def at(self) -> datetime:
        """When the payment, or what reverses it, began, UTC."""
        return self.request.at.astimezone(UTC)

    @property
    def local(self) -> datetime:
        """When the transaction took place, in the terminal's time zone. A reversal is none: it has its original's."""
        taken_back = self.original if self.kind in ("RV", VOID_KIND) else None
        at = taken_back.find_sent_time(self.at) if taken_back is not None else self.at
        return at.astimezone(ZoneInfo(self.terminal.time_zone))


def build_iso_request(request: AcquirerRequest, terminal: Terminal, *, void: bool = False) -> IsoRequest:
    """Build the message for ``request``, or with ``void`` the reversal of it. Raises UnsendableRequestError."""
    if request.operation not in MESSAGE_KINDS or (void and request.operation == "RV"):
        raise UnsendableRequestError(f"{request.operation} has no message")
    earlier = OriginalMessage.parse(request.reference)
    if request.operation in ("CP", "RF", "RV") and earlier is None:
        raise UnsendableRequestError("the payment it follows is not of this connector")
    taken = request.amount_already_reversed
    if earlier is not None and request.authorized_amount:
        # What is reversed is the authorization with its increments, not its first message: docs/decisions/0068.
        whole = request.authorized_amount
        if terminal.renewals_apart and request.renewed_amount:
            whole, taken = request.renewed_amount, request.reversed_since_renewal
        earlier = replace(earlier, amount=Money(whole, request.money.currency).minor_units())
    first = request.operation not in ("CP", "RF", "RV")
    other = request.renewable_amount and request.money.amount != request.renewable_amount
    if other and not void:  # what was sent is taken back, whatever is left by now
        if terminal.renewals_apart:
            raise UnsendableRequestError("the host holds a renewal apart, so it renews all that is left")
        if request.network_brand in MASTERCARD_BRANDS:
            # It prolongs what is held, by an increment of nothing, and has no renewal of another amount: 0156.
            raise UnsendableRequestError("Mastercard prolongs an authorization as it is, so it renews all that is left")
    own = _identify_message(request, earlier, void=void)
    network = _resolve_network_reference(request, earlier)
    if void and own.auth:
        network = own.network
    original = own if void else None if first else earlier
    try:
        processing = _resolve_processing_code(request, VOID_KIND if void else request.operation, original)
        parts = (build_private_parts if first and not void else build_repeated_parts)(request, network)
        write_private_field(parts)
        addenda = {} if void else build_addenda(request)
    except ValueError as fault:
        raise UnsendableRequestError(str(fault)) from None
    return IsoRequest(
        request=request,
        terminal=terminal,
        kind=VOID_KIND if void else request.operation,
        own=own,
        original=original,
        parts=parts,
        processing=processing,
        addenda=addenda,
        amount_already_reversed=Money(taken, request.money.currency).minor_units(),
    )


def _identify_message(request: AcquirerRequest, earlier: OriginalMessage | None, *, void: bool) -> OriginalMessage:
    """The message's identifying numbers: as it was sent before, with what its answer added, else new ones. Raises
    UnsendableRequestError."""
    amount = _minor_units(request)
    sent = OriginalMessage.parse(request.known_transaction_id)
    if sent is not None and sent.operation == request.operation:
        # A reversal has the approval code and the granted amount of what it takes back.
        if not void:
            return replace(sent, auth="", amount=amount)
        whole = Money(request.authorized_amount, request.money.currency).minor_units()
        return replace(sent, amount=whole) if whole else sent
    if not request.trace_number:
        raise UnsendableRequestError("the payment has no trace number")
    # A follow-up keeps the reference number of its original, so increments and renewals are one authorization with it;
    # a refund is a payment of its own.
    keeps_rrn = earlier is not None and request.operation in ("CP", "RV", "PA")
    return OriginalMessage(
        operation=request.operation,
        stan=f"{request.trace_number:06}",
        sent_at=f"{request.at.astimezone(UTC):%m%d%H%M%S}",
        rrn=earlier.rrn if earlier is not None and keeps_rrn else build_rrn(request.trace_number, request.at),
        amount=amount,
        network=earlier.network if earlier is not None else "",
    )


def _resolve_network_reference(request: AcquirerRequest, earlier: OriginalMessage | None) -> str:
    """The network's reference of the payment that this one follows, or of its agreement's first one."""
    if earlier is not None:
        return earlier.network
    # Older agreements refer to our own message instead of the scheme reference, and the message carries it.
    initial = OriginalMessage.parse(request.parameters.get(INITIAL_REFERENCE, ""))
    return initial.network if initial is not None else resolve_initial_reference(request.parameters)


def _resolve_processing_code(request: AcquirerRequest, kind: str, original: OriginalMessage | None) -> str:
    """DE3: that of the payment type, by network for transfers; of RV and reversals the original's. Raises
    ValueError."""
    code = MESSAGE_KINDS[kind].code
    operation = request.operation if code or original is None else original.operation
    transfer = find_transfer_code(operation, request.point_of_service.transfer, request.network_brand)
    return transfer or MESSAGE_KINDS[operation].code or "000000"


def build_rrn(trace_number: int, at: datetime) -> str:
    """DE37 as hosts have it: last digit of the year, day of the year, hour, and the trace number, UTC."""
    hour = at.astimezone(UTC)
    return f"{hour.year % 10}{hour:%j}{hour:%H}{trace_number:06}"


def _minor_units(request: AcquirerRequest) -> int:
    try:
        units = 0 if request.operation == "RG" else request.money.minor_units()
    except ValueError as fault:
        raise UnsendableRequestError(str(fault)) from None
    if not 0 <= units <= MAX_MINOR_UNITS:
        raise UnsendableRequestError("the amount has more digits than DE4")
    return units

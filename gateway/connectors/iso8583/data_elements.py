"""Table of data elements: in which messages each one is sent, and how it is filled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.connectors.iso8583.addenda import write_addendum
from gateway.connectors.iso8583.iso_request import MESSAGE_KINDS, VOID_KIND, IsoRequest
from gateway.connectors.iso8583.private_field import transliterate, write_private_field
from gateway.connectors.port import ReversalReason
from gateway.core.money import Money, currency_number


def _account(asked: IsoRequest) -> str:
    return asked.request.means.account.reveal() if asked.request.means is not None else ""


def _expiry(asked: IsoRequest) -> str:
    means = asked.request.means
    month, year = getattr(means, "expiry_month", ""), getattr(means, "expiry_year", "")
    return year[-2:] + month if month and year else ""


def _amount(asked: IsoRequest) -> str:
    """DE4; for a reversal, the original's amount: of an authorization, with its increments."""
    whole = asked.original if asked.kind == "RV" and asked.original is not None else asked.own
    return f"{whole.amount:012}"


def _trace(asked: IsoRequest) -> str:
    # The reversal of a message has the number after its own (trace_numbers.py), or after a newer one that was taken for
    # another reversal of it.
    newest = asked.request.trace_number or int(asked.own.stan)
    return f"{newest + 1:06}" if asked.kind == VOID_KIND else asked.own.stan


def _entry(asked: IsoRequest) -> str:
    point = asked.request.point_of_service
    if point.stored:
        return "102"
    return "012" if point.order else "812"


def _condition(asked: IsoRequest) -> str:
    point = asked.request.point_of_service
    if asked.request.operation in ("RG", "PA") and not asked.own.amount:
        return "51"
    return "08" if point.merchant_initiated or point.order else "59"


def _where(asked: IsoRequest) -> str:
    name = asked.given("descriptor") or asked.terminal.name
    city = asked.given("merchant.city") or asked.terminal.city
    country = asked.country
    if not (name or city or country):
        return ""
    return f"{transliterate(name)[:25]:25}{transliterate(city)[:13]:13}{country:2}"


def _original(asked: IsoRequest) -> str:
    first = asked.original
    if first is None:
        return ""
    institution = asked.terminal.institution or "0"
    return f"{MESSAGE_KINDS[first.operation].mti}{first.stan}{first.sent_at}{institution:0>11}{'0' * 11}"


def _replacement(asked: IsoRequest) -> str:
    """DE95: what is left of the original after a partial reversal; '' after a full one."""
    if asked.kind == VOID_KIND:
        kept = Money(asked.request.kept_amount, asked.request.money.currency).minor_units()
        return f"{kept:012}{'0' * 12}{'0' * 18}" if kept else ""
    if asked.original is None or asked.amount_already_reversed + asked.own.amount >= asked.original.amount:
        return ""
    left = asked.original.amount - asked.amount_already_reversed - asked.own.amount
    return f"{left:012}{'0' * 12}{'0' * 18}"


@dataclass(frozen=True, slots=True)
class DataElement:
    """One data element: the messages (MESSAGE_KINDS) it is sent in, and how it is filled; '' leaves it out."""

    number: str
    kinds: str
    about: str
    fill: Callable[[IsoRequest], str]


_FIRST: Final = "RG PA DB RB CD"
_MONEY: Final = f"{_FIRST} CP RF"
_ALL: Final = f"{_MONEY} RV V"
_ADDENDA: Final = "PA DB CD CP RB"

REASON_CODES: Final[Mapping[ReversalReason, str]] = MappingProxyType(
    {ReversalReason.CUSTOMER: "17", ReversalReason.TIMEOUT: "68", ReversalReason.SUSPECTED_FRAUD: "34"}
)
"""Source: ISO 8583:1987, response codes (17 customer cancellation, 34 suspected fraud, 68 response received too late),
as Mastercard has them in DE39 of a reversal; not checked against its Customer Interface Specification."""

DATA_ELEMENTS: Final = (
    DataElement("2", _ALL, "card number, or the network token's", _account),
    DataElement("3", _ALL, "processing code; of RV and reversals the original's", lambda q: q.processing),
    DataElement("4", _ALL, "amount in minor units; of RV the original's, with increments", _amount),
    DataElement("7", _ALL, "when this authorization attempt or reversal began, UTC", lambda q: f"{q.at:%m%d%H%M%S}"),
    DataElement("11", _ALL, "trace number, once a day on a terminal", _trace),
    DataElement("12", _ALL, "the same time, local; of RV and reversals the original's", lambda q: f"{q.local:%H%M%S}"),
    DataElement("13", _ALL, "the day of DE12", lambda q: f"{q.local:%m%d}"),
    DataElement("14", _ALL, "card.expiryYear, card.expiryMonth", _expiry),
    DataElement(
        "18",
        _ALL,
        "merchant.mcc, else the account's mcc",
        lambda q: mcc if len(mcc := q.given("merchant.mcc")) == 4 and mcc.isdecimal() else q.terminal.mcc,
    ),
    DataElement("22", _ALL, "812 e-commerce, 102 credential on file, 012 mail or telephone order", _entry),
    DataElement("24", _ALL, "the account's nii", lambda q: q.terminal.nii),
    DataElement(
        "25", _ALL, "59 e-commerce, 08 merchant-initiated or by mail or telephone, 51 verification", _condition
    ),
    DataElement("32", _ALL, "the account's institution", lambda q: q.terminal.institution),
    DataElement(
        "37",
        _ALL,
        "reference number, ydddhh and the trace number; of CP, RV, increments and renewals the original's",
        lambda q: q.own.rrn,
    ),
    DataElement(
        "38",
        "CP RF RV V",
        "authorization code of the original, where it was approved",
        lambda q: f"{q.original.auth:6}" if q.original is not None and q.original.auth else "",
    ),
    DataElement(
        "39",
        "RV V",
        "why it is reversed: 17 the merchant asked, 68 no answer in time, 34 suspected fraud",
        lambda q: REASON_CODES[q.request.reversal_reason],
    ),
    DataElement("41", _ALL, "the account's terminal", lambda q: f"{q.terminal.terminal:8}"),
    DataElement(
        "42", _ALL, "the merchant's id at the acquirer", lambda q: f"{transliterate(q.terminal.merchant)[:15]:15}"
    ),
    DataElement("43", _MONEY, "descriptor, merchant.city, merchant.country, else the account's", _where),
    DataElement("48", _ALL, "the private field's parts (or DE126)", lambda q: write_private_field(q.parts)),
    DataElement("49", _ALL, "currency, ISO 4217 number", lambda q: currency_number(q.request.money.currency)),
    DataElement("63", _ALL, "the payment's id", lambda q: q.request.payment.hex),
    DataElement("90", "CP RF RV V", "the original's type, DE11, DE7, DE32", _original),
    DataElement("95", "RV V", "what is left of the original, when it is less than all", _replacement),
    DataElement(
        "104",
        _ADDENDA,
        "a transfer's kind, sender and recipient",
        lambda q: write_addendum("104", q.addenda.get("104", {})),
    ),
    DataElement(
        "120", _ADDENDA, "level 3 data: lines of the cart", lambda q: write_addendum("120", q.addenda.get("120", {}))
    ),
    DataElement("121", _ADDENDA, "flight: ticket and legs", lambda q: write_addendum("121", q.addenda.get("121", {}))),
)
"""The mapping. Not sent: DE23 and DE55 (chip), DE35 and DE45 (track), DE52 (PIN), which do not exist in e-commerce;
DE54, DE61, DE62, whose contents differ by acquirer; DE60 is sent in batches only (batch_totals.py)."""

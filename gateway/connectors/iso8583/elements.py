"""The mapping of data elements, as a table: in which messages each stands, and what fills it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.connectors.iso8583.private import plain, written
from gateway.connectors.iso8583.question import KINDS, VOID, Question, currency_number, stan


def _account(asked: Question) -> str:
    return asked.request.means.account.reveal() if asked.request.means is not None else ""


def _expiry(asked: Question) -> str:
    means = asked.request.means
    month, year = getattr(means, "expiry_month", ""), getattr(means, "expiry_year", "")
    return year[-2:] + month if month and year else ""


def _processing(asked: Question) -> str:
    kind = KINDS[asked.kind]
    if kind.code or asked.original is None:
        return kind.code
    return KINDS[asked.original.operation].code or "000000"


def _amount(asked: Question) -> str:
    """Of a reversal: what the original was for."""
    whole = asked.original if asked.kind == "RV" and asked.original is not None else asked.own
    return f"{whole.amount:012}"


def _trace(asked: Question) -> str:
    return stan(asked.request.payment, VOID if asked.kind == VOID else "")


def _entry(asked: Question) -> str:
    stored = asked.parts.get("initiator", "")
    again = stored.startswith("M") or asked.given("standingInstruction.mode") == "REPEATED"
    return "102" if again else "812"


def _condition(asked: Question) -> str:
    if asked.kind == "RG":
        return "51"
    return "08" if asked.parts.get("initiator", "").startswith("M") else "59"


def _where(asked: Question) -> str:
    name = asked.given("descriptor") or asked.terminal.name
    city = asked.given("merchant.city") or asked.terminal.city
    country = asked.given("merchant.country") or asked.terminal.country
    if not (name or city or country):
        return ""
    return f"{plain(name)[:25]:25}{plain(city)[:13]:13}{country[:2]:2}"


def _original(asked: Question) -> str:
    first = asked.original
    if first is None:
        return ""
    institution = asked.terminal.institution or "0"
    return f"{KINDS[first.operation].mti}{first.stan}{first.sent_at}{institution:0>11}{'0' * 11}"


def _replacement(asked: Question) -> str:
    """What is left of the original when only part of it is taken back; nothing when all of it is."""
    if asked.original is None or asked.reversed_besides + asked.own.amount >= asked.original.amount:
        return ""
    left = asked.original.amount - asked.reversed_besides - asked.own.amount
    return f"{left:012}{'0' * 12}{'0' * 18}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One data element: in which messages (KINDS) it stands, and what fills it; '' leaves it out."""

    number: str
    kinds: str
    about: str
    fill: Callable[[Question], str]


_FIRST: Final = "RG PA DB RB CD"
_MONEY: Final = f"{_FIRST} CP RF"
_ALL: Final = f"{_MONEY} RV V"

ELEMENTS: Final = (
    Element(number="2", kinds=_ALL, about="card number, or the network token's", fill=_account),
    Element(number="3", kinds=_ALL, about="processing code; of RV and reversals the original's", fill=_processing),
    Element(number="4", kinds=_ALL, about="amount in minor units; of RV the original's", fill=_amount),
    Element(number="7", kinds=_ALL, about="when the payment began, UTC", fill=lambda q: f"{q.at:%m%d%H%M%S}"),
    Element(number="11", kinds=_ALL, about="trace number, out of the payment's id", fill=_trace),
    Element(number="12", kinds=_ALL, about="the same time, local", fill=lambda q: f"{q.local:%H%M%S}"),
    Element(number="13", kinds=_ALL, about="its day, local", fill=lambda q: f"{q.local:%m%d}"),
    Element(number="14", kinds=_ALL, about="card.expiryYear, card.expiryMonth", fill=_expiry),
    Element(number="18", kinds=_ALL, about="merchant.mcc, else the account's mcc",
            fill=lambda q: mcc if len(mcc := q.given("merchant.mcc")) == 4 and mcc.isdecimal() else q.terminal.mcc),
    Element(number="22", kinds=_ALL, about="812 e-commerce, 102 credential on file", fill=_entry),
    Element(number="24", kinds=_ALL, about="the account's nii", fill=lambda q: q.terminal.nii),
    Element(number="25", kinds=_MONEY, about="59 e-commerce, 08 merchant-initiated, 51 verification", fill=_condition),
    Element(number="32", kinds=_ALL, about="the account's institution", fill=lambda q: q.terminal.institution),
    Element(number="37", kinds=_ALL, about="reference number, out of the payment's id; of CP and RV the original's",
            fill=lambda q: q.own.rrn),
    Element(number="38", kinds="CP RF RV", about="authorization code of the original",
            fill=lambda q: f"{q.original.auth:6}" if q.original is not None and q.original.auth else ""),
    Element(number="41", kinds=_ALL, about="the account's terminal", fill=lambda q: f"{q.terminal.terminal:8}"),
    Element(number="42", kinds=_ALL, about="the merchant's id at the acquirer",
            fill=lambda q: f"{plain(q.terminal.merchant)[:15]:15}"),
    Element(number="43", kinds=_MONEY, about="descriptor, merchant.city, merchant.country, else the account's",
            fill=_where),
    Element(number="48", kinds=_MONEY, about="the private field's parts (or DE126)", fill=lambda q: written(q.parts)),
    Element(number="49", kinds=_ALL, about="currency, ISO 4217 number",
            fill=lambda q: currency_number(q.request.money.currency)),
    Element(number="63", kinds=_ALL, about="the payment's id", fill=lambda q: q.request.payment.hex),
    Element(number="90", kinds="CP RF RV V", about="the original's type, DE11, DE7, DE32", fill=_original),
    Element(number="95", kinds="RV", about="what is left of the original, when it is less than all", fill=_replacement),
)  # fmt: skip
"""The mapping. Not sent: DE23 and DE55 (chip), DE35 and DE45 (track), DE52 (PIN): none of them exists in e-commerce;
DE54, DE61, DE62: their contents differ by acquirer, none asks for them in general; DE60 only in batches (totals.py)."""

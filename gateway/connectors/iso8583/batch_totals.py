"""Reconciliation of a batch: builds the request (0500) and judges its answer (0510). Pure functions.

Captures are debits of the cardholder; a batch holds nothing else, and no reversals. Source: ISO 8583:1987,
reconciliation; docs/decisions/0040.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from gateway.connectors.iso8583.iso_request import build_rrn
from gateway.connectors.iso8583.private_field import transliterate
from gateway.connectors.iso8583.terminal import Terminal
from gateway.core.money import Money, currency_number

RECONCILIATION_MTI, RECONCILIATION_REPEAT_MTI, UPLOAD_MTI = "0500", "0501", "0320"
RECONCILE_ADVICES, RECONCILE_UPLOADS = "920000", "960000"
"""DE3: totals of advices; totals after the captures were uploaded."""
MAX_BATCH_NUMBER: Final = 999_999
IN_BALANCE, OUT_OF_BALANCE = "1", "2"
"""DE66, the settlement code."""
RECONCILE_ERROR: Final = "95"
ALREADY_RECONCILED: Final = "94"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSums:
    """Totals of a batch. ``count`` captures sum up to ``total``; ``round``: uploads so far; ``opened_at``: the
    merchant's clock; ``number``: the batch's number at the host; ``trace_number``: of this round's request."""

    trace_number: int
    number: int
    opened_at: datetime
    round: int
    count: int
    total: Money


class TotalsVerdict(enum.Enum):
    """The host's verdict on the totals. AGAIN: none yet, the request is repeated."""

    BALANCED = enum.auto()
    DIFFERS = enum.auto()
    AGAIN = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsElement:
    """One data element of a reconciliation request; '' leaves it out. ``compared``: it is compared with the host's
    value."""

    number: str
    about: str
    fill: Callable[[BatchSums, Terminal], str]
    compared: bool = False


def _local_time(sums: BatchSums, terminal: Terminal) -> datetime:
    return sums.opened_at.astimezone(ZoneInfo(terminal.time_zone))


def _zeros(digits: int) -> Callable[[BatchSums, Terminal], str]:
    return lambda _sums, _terminal: "0" * digits


TOTALS_ELEMENTS: Final = (
    TotalsElement(
        number="3",
        about="920000; 960000 after an upload",
        fill=lambda s, _t: RECONCILE_UPLOADS if s.round else RECONCILE_ADVICES,
    ),
    TotalsElement(
        number="7",
        about="when the batch was decided, UTC",
        fill=lambda s, _t: f"{s.opened_at.astimezone(ZoneInfo('UTC')):%m%d%H%M%S}",
    ),
    TotalsElement(
        number="11",
        about="trace number, one for each round of sums",
        fill=lambda s, _t: f"{s.trace_number:06}",
    ),
    TotalsElement(number="12", about="the same time, local", fill=lambda s, t: f"{_local_time(s, t):%H%M%S}"),
    TotalsElement(number="13", about="its day, local", fill=lambda s, t: f"{_local_time(s, t):%m%d}"),
    TotalsElement(number="15", about="the same day", fill=lambda s, t: f"{_local_time(s, t):%m%d}"),
    TotalsElement(number="24", about="the account's nii", fill=lambda _s, t: t.nii),
    TotalsElement(number="32", about="the account's institution", fill=lambda _s, t: t.institution),
    TotalsElement(
        number="37",
        about="reference number, ydddhh and the trace number",
        fill=lambda s, _t: build_rrn(s.trace_number, s.opened_at),
    ),
    TotalsElement(number="41", about="the account's terminal", fill=lambda _s, t: f"{t.terminal:8}"),
    TotalsElement(
        number="42",
        about="the merchant's id at the acquirer",
        fill=lambda _s, t: f"{transliterate(t.merchant)[:15]:15}",
    ),
    TotalsElement(number="50", about="currency, ISO 4217 number", fill=lambda s, _t: currency_number(s.total.currency)),
    TotalsElement(
        number="60",
        about="batch number, six digits; every message of the batch has it",
        fill=lambda s, _t: format_batch_number(s.number),
    ),
    TotalsElement(number="74", about="0: refunds go as they are made", fill=_zeros(10), compared=True),
    TotalsElement(number="75", about="0", fill=_zeros(10), compared=True),
    TotalsElement(
        number="76", about="captures that the host has granted", fill=lambda s, _t: f"{s.count:010}", compared=True
    ),
    TotalsElement(number="77", about="0: reversals go as they are made", fill=_zeros(10), compared=True),
    TotalsElement(number="86", about="0", fill=_zeros(16), compared=True),
    TotalsElement(number="87", about="0", fill=_zeros(16), compared=True),
    TotalsElement(
        number="88", about="their sum in minor units", fill=lambda s, _t: f"{s.total.minor_units():016}", compared=True
    ),
    TotalsElement(number="89", about="0", fill=_zeros(16), compared=True),
    TotalsElement(
        number="97", about="D and the same sum", fill=lambda s, _t: f"D{s.total.minor_units():016}", compared=True
    ),
)


def build_reconciliation_request(sums: BatchSums, terminal: Terminal, *, repeat: bool) -> dict[str, str]:
    """Build the request. The same batch and round always give the same message numbers."""
    found = {"t": RECONCILIATION_REPEAT_MTI if repeat else RECONCILIATION_MTI}
    return found | {row.number: text for row in TOTALS_ELEMENTS if (text := row.fill(sums, terminal))}


def format_batch_number(number: int) -> str:
    """DE60 of a batch: 000001 to 999999, then from the start again."""
    return f"{(number - 1) % MAX_BATCH_NUMBER + 1:06}"


def summarize_totals_answer(answer: Mapping[str, str]) -> dict[str, Any]:
    """The answer as it is stored."""
    names = ("39", "66", *(row.number for row in TOTALS_ELEMENTS if row.compared))
    return {"mti": answer.get("t", "")} | {name: answer[name][:40] for name in names if name in answer}


def find_total_differences(message: Mapping[str, str], answer: Mapping[str, str]) -> list[str]:
    """The differences between the host's totals and ours, in words. Totals that the host does not send are not
    compared."""
    return [
        f"DE{row.number}: ours {message[row.number].lstrip('0') or '0'}, theirs {answer[row.number].lstrip('0') or '0'}"
        for row in TOTALS_ELEMENTS
        if row.compared and row.number in answer and not _is_same_total(message[row.number], answer[row.number])
    ]


def judge_totals(message: Mapping[str, str], answer: Mapping[str, str]) -> TotalsVerdict:
    """Judge the answer: by the host's totals, or by DE39 and DE66 alone where it sends none."""
    code, settled = answer.get("39", ""), answer.get("66", "")
    differs = bool(find_total_differences(message, answer))
    if code == RECONCILE_ERROR or (code in ("00", ALREADY_RECONCILED) and (settled == OUT_OF_BALANCE or differs)):
        return TotalsVerdict.DIFFERS
    if code == "00":
        return TotalsVerdict.BALANCED
    # The host has had the request before and reports that outcome; without it the outcome is unknown.
    compared = settled == IN_BALANCE or any(row.compared and row.number in answer for row in TOTALS_ELEMENTS)
    return TotalsVerdict.BALANCED if code == ALREADY_RECONCILED and compared else TotalsVerdict.AGAIN


def _is_same_total(ours: str, theirs: str) -> bool:
    """Compares digits as numbers; a net sum of zero has no sign."""
    sides, amounts = zip(
        *((text.strip()[:1].upper(), text.strip().lstrip("CD")) for text in (ours, theirs)), strict=True
    )
    if not all(amount.isascii() and amount.isdecimal() for amount in amounts):
        return False
    first, second = (int(amount) for amount in amounts)
    return first == second and (first == 0 or {"C", "D"}.isdisjoint(sides) or sides[0] == sides[1])

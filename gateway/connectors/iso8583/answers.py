"""Messages as answers: what a DE39 and its amount come to. Pure functions.

An answer that contradicts itself or the question is no answer: the payment is in doubt, and is taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gateway.connectors.iso8583 import codes
from gateway.connectors.iso8583.private import read, shown
from gateway.connectors.iso8583.question import KINDS, Question, currency_number
from gateway.connectors.message import scheme_reference, success_code
from gateway.connectors.port import AcquirerReply, Silence
from gateway.money import Money

REVERSED: Final = "900.100.301"
_KEPT: Final = ("4", "7", "11", "15", "37", "38", "39", "41", "44", "49", "54")
_LONGEST: Final = 120
_IN_PART: Final = frozenset({"PA", "DB", "RB", "CD"})
_AVS_PLACE, _CVV_PLACE = 1, 9
"""Of the two letters in DE44, where the networks put them when the private field does not tell."""


def received(answer: Mapping[str, str], asked: Question) -> dict[str, Any]:
    """The answer as the exchange keeps it: the fields that tell something, no account."""
    kept: dict[str, Any] = {"mti": answer.get("t", "")}
    kept |= {number: answer[number][:_LONGEST] for number in _KEPT if number in answer}
    if parts := read(answer.get(asked.terminal.private_field, "")):
        kept[asked.terminal.private_field] = shown(parts)
    return kept


def reply_to(
    asked: Question, answer: Mapping[str, str], sent: Mapping[str, Any], *, repeat: bool = False
) -> AcquirerReply:
    """What the answer means. ``repeat``: of a message sent again. Raises Silence for one that means nothing."""
    code = answer.get("39", "")
    own = asked.own.text()
    if not code.strip():
        raise Silence("the host's answer has no response code", sent, connector_tx_id=own)
    known_already = repeat and code == codes.DUPLICATE
    if not known_already and (code in codes.UNCLEAR or (KINDS[asked.kind].advice and code in codes.AGAIN)):
        raise Silence(f"the host answered {code}: no verdict", sent, connector_tx_id=own)
    checked = code == codes.NOTHING_AGAINST and asked.own.amount == 0
    grants = code in codes.GRANTS or checked or known_already
    granted = _granted(asked, answer, code, sent) if grants else None
    parts = read(answer.get(asked.terminal.private_field, ""))
    details = {"AcquirerResponse": code[:2], "MerchantAdviceCode": parts.get("merchantAdvice", "")[:2]}
    known = replace(
        asked.own, auth=answer.get("38", ""), network=parts.get("network", "") or asked.own.network,
        amount=int(answer["4"]) if grants and asked.kind in _IN_PART and "4" in answer else asked.own.amount,
    )  # fmt: skip
    return AcquirerReply(
        code=success_code() if grants else codes.declined(code, asked.request.brand),
        approved=granted,
        connector_tx_id=known.text(),
        network_reference=scheme_reference(parts.get("network", "")) if grants else "",
        details={name: text for name, text in details.items() if text},
        avs=codes.avs_of(_letter(parts.get("avs", ""), answer, _AVS_PLACE)),
        cvv=codes.cvv_of(_letter(parts.get("cvv", ""), answer, _CVV_PLACE)),
        sent=sent,
        received=received(answer, asked),
        elsewhere=not grants and code in codes.ELSEWHERE,
    )


def _letter(part: str, answer: Mapping[str, str], place: int) -> str:
    return part[:1] or answer.get("44", "")[place : place + 1]


def word_of(asked: Question, answer: Mapping[str, str], sent: Mapping[str, Any]) -> AcquirerReply:
    """What the answer to a reversal means. Raises Silence unless nothing of the payment stands."""
    code = answer.get("39", "")
    if code not in codes.TAKEN_BACK:
        raise Silence(f"the host did not take it back: {code or 'no response code'}", sent)
    return AcquirerReply(
        code=REVERSED, connector_tx_id=asked.own.text(), details={"AcquirerResponse": code},
        sent=sent, received=received(answer, asked),
    )  # fmt: skip


def _granted(asked: Question, answer: Mapping[str, str], code: str, sent: Mapping[str, Any]) -> Money:
    """The amount an approval grants. Raises Silence for one that cannot be."""
    own, money = asked.own, asked.request.money

    def nonsense(why: str) -> Silence:
        return Silence(f"the host's approval {why}", sent, connector_tx_id=own.text())

    if answer.get("49", "").strip() not in ("", currency_number(money.currency)):
        raise nonsense("is in another currency")
    if asked.kind == "RV" or "4" not in answer:
        # What a reversal's DE4 repeats is the original's amount.
        if code == codes.PARTIAL:
            raise nonsense("in part tells no amount")
        return money
    units = _units(answer)
    in_part = 0 < units < own.amount
    if units == own.amount and code != codes.PARTIAL:
        return money
    if not in_part or asked.kind not in _IN_PART:
        raise nonsense("is for another amount")
    try:
        return Money.from_minor_units(units, money.currency)
    except ValueError:
        raise nonsense("is for an amount nobody can write") from None


def _units(answer: Mapping[str, str]) -> int:
    text = answer["4"]
    return int(text) if text.isascii() and text.isdecimal() else -1

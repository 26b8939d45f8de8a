"""What the steps of one question share: request, account and calls; and how a call's outcome becomes a reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.connectors.port import AcquirerReply, AcquirerRequest, Silence
from gateway.connectors.stripe import mapping, table
from gateway.connectors.stripe.account import Setup
from gateway.connectors.stripe.wire import Fields, Heard, Kind, Talk

FIRST: Final = frozenset({"RG", "PA", "DB", "RB"})
"""Payment types that make an intent of their own."""
INTENTS: Final = "/v1/payment_intents"
SETUPS: Final = "/v1/setup_intents"
REFUNDS: Final = "/v1/refunds"
TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request to the processor. ``talk`` ends all its calls at one deadline."""

    request: AcquirerRequest
    setup: Setup
    talk: Talk

    @property
    def makes_intent(self) -> bool:
        return self.request.operation in FIRST

    @property
    def home(self) -> str:
        """Where its own object lies."""
        return SETUPS if mapping.is_verification(self.request) else INTENTS

    def key(self, step: str = "") -> str:
        """The idempotency key: our payment's id and its type, and the step where there are several."""
        return "-".join(filter(None, (self.request.payment.hex, self.request.operation, step)))

    def post(self, path: str, fields: Fields, step: str = "") -> tuple[Heard, dict[str, Any]]:
        """What came back, and what was sent as exchanges keep it."""
        key = self.key(step)
        sent: dict[str, Any] = {"post": path, "form": mapping.masked(fields)}
        if self.setup.full:
            sent["idempotencyKey"] = key
        return self.talk.post(path, fields, key), sent


def received(heard: Heard) -> dict[str, Any]:
    """What is kept of an answer."""
    kept: dict[str, Any] = {"http": heard.status} if heard.status else {}
    if heard.error:
        return kept | mapping.words_of(heard.error)
    return kept | (mapping.facts_of(heard.body) if heard.body else {"fault": heard.why})


def turned_away(question: Question, heard: Heard, sent: Mapping[str, Any], *, moves: bool = True) -> AcquirerReply:
    """The reply to anything but DONE. Raises Silence for what may have been accepted; what ``moves`` no money cannot.

    Another acquirer may be asked where nobody judged a first payment.
    """
    operation, error = question.request.operation, heard.error
    kept = received(heard)
    if heard.kind in (Kind.DECLINED, Kind.REFUSED):
        made = error.get("payment_intent") or error.get("setup_intent")
        ident = mapping.text_of(made.get("id")) if isinstance(made, dict) else ""
        word = kept.get("decline_code") or kept.get("code") or kept.get("type", "")
        advice = error.get("network_advice_code")
        details = {"AcquirerResponse": str(word)}
        if isinstance(advice, str) and len(advice) == 2 and advice.isdecimal():
            details["MerchantAdviceCode"] = advice
        charge = mapping.charge_of(made) if isinstance(made, dict) else mapping.Charge()
        return AcquirerReply(
            code=mapping.refusal_code(error, operation), connector_tx_id=ident, avs=charge.avs, cvv=charge.cvv,
            details={name: value for name, value in details.items() if value}, sent=sent, received=kept,
        )  # fmt: skip
    if moves and heard.kind in (Kind.UNCLEAR, Kind.TAKEN):
        raise Silence(f"the processor's answer is not clear: {heard.why}", sent)
    shut = heard.kind is Kind.SHUT and heard.status != TOO_MANY
    return AcquirerReply(
        code=table.ERROR if shut else table.DOWN, sent=sent, received=kept, elsewhere=question.makes_intent
    )

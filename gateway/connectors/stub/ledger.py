"""The stub acquirer's ledger: its transactions and the amounts they moved.

Deciding a message changes nothing; ``apply`` books a decision. The acquirer's log holds the decisions, so replaying it
rebuilds the ledger. Nothing here knows the gateway's database: a reconciliation compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from gateway.catalogue.parse import mask_account_number
from gateway.connectors.simulator.accounts import CONFIRMED_LATER, ClearAccount, simulate_account_answer
from gateway.connectors.simulator.cards import SIMULATED_SUCCESS, build_network_reference, simulate_card_answer
from gateway.connectors.simulator.token_service import find_token_decline, find_tokenized_card
from gateway.core.money import Money
from gateway.core.result_codes import CHARGEBACK_CODE, CHARGEBACK_WITHOUT_REASON, TIMEOUT_REVERSED_CODE

StubMessage = Mapping[str, Any]
LedgerEntry = dict[str, Any]
PoolMoves = tuple[tuple[str, Decimal], ...]

NO_SUCH_REFERENCE: Final = "800.100.167"
RESULT_WHEN_EXCEEDED: Final[Mapping[str, str]] = {
    "CP": "700.400.100", "RC": "700.400.100", "RF": "700.400.200", "RV": "700.400.300", "CB": "700.400.400",
    "CR": "700.400.410", "PA": "700.400.100",
}  # fmt: skip
"""The code of a follow-up that exceeds the available amount, by operation."""
PAYMENT_ID_DIGITS: Final = 32
"""A key begins with the payment's id (AcquirerRequest.attempt_key)."""
STUB_FOLLOW_UPS: Final = frozenset({"CP", "RF", "RV", "RB", "RC", "CB", "CR"})


@dataclass(slots=True, kw_only=True)
class StubTransaction:
    """One key at the acquirer. ``outcome``: approved, declined or voided. ``moves``: (pool, change) of an approved one.
    ``account``: the pool that its refunds are taken from. ``answer``: repeated for repeated requests."""

    key: str
    operation: str
    amount: str
    currency: str
    outcome: str
    approved: str
    transaction_id: str
    account: str
    moves: PoolMoves
    answer: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Booking:
    """The pools that an operation moves, or the code of its decline."""

    moves: PoolMoves = ()
    account: str = ""
    code: str = ""


class StubLedger:
    """All transactions by key and by the acquirer's own id, the balance of every pool, and the tombstones.

    Pools: ``hold:X`` authorized and not captured, ``taken:X`` captured and not refunded, ``disputed:X`` charged back; X
    is the transaction that opened the pool.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, StubTransaction] = {}
        self.by_id: dict[str, StubTransaction] = {}
        self.pools: dict[str, Decimal] = {}
        self.tombstones: set[str] = set()

    # --- deciding -----------------------------------------------------------------------------------------------

    def submit(self, message: StubMessage) -> LedgerEntry:
        """Decide a submission. ``outcome``: approved, declined, duplicate (answered as before, booked once) or
        tombstoned (it was voided before it arrived)."""
        key = str(message["key"])
        entry: LedgerEntry = {"kind": "submit", "key": key, **_facts(message)}
        known = self.by_key.get(key)
        if known is not None:
            same = (known.operation, known.amount) == (entry["operation"], entry["amount"])
            return entry | {"outcome": "duplicate", "differs": not same, "answer": self._told(known)}
        if key in self.tombstones:
            return entry | {"outcome": "tombstoned", "answer": _answer(key, "declined", TIMEOUT_REVERSED_CODE, "")}
        booking = self._book(message, key)
        answer = _answer(key, "declined", booking.code, "") if booking.code else _outcome(message, key)
        if answer["outcome"] != "approved":
            return entry | {
                "outcome": "declined",
                "exceeds": booking.code in RESULT_WHEN_EXCEEDED.values(),
                "answer": answer,
            }
        # Approved in part: every move has the approved amount.
        approved = Decimal(answer["approvedAmount"])
        moves = [[pool, str(approved.copy_sign(change))] for pool, change in booking.moves]
        return entry | {"outcome": "approved", "answer": answer, "account": booking.account, "moves": moves}

    def inquire(self, message: StubMessage) -> LedgerEntry:
        """Outcome of a key: the answer of its submission, voided, or unknown."""
        key = str(message["key"])
        known = self.by_key.get(key)
        if known is not None:
            answer = self._told(known)
        elif key in self.tombstones:
            answer = _answer(key, "voided", TIMEOUT_REVERSED_CODE, "")
        else:
            answer = {"key": key, "outcome": "unknown"}
        return {"kind": "inquire", "key": key, "outcome": answer["outcome"], "answer": answer}

    def void(self, message: StubMessage) -> LedgerEntry:
        """Void a key: its moves are undone; an unknown one is refused when it arrives. Repeatable. ``kept``: follow-ups
        have used it, so it is not voided."""
        key = str(message["key"])
        known = self.by_key.get(key)
        entry: LedgerEntry = {"kind": "void", "key": key}
        if known is not None and known.outcome == "approved":
            undone = [(pool, -change) for pool, change in known.moves]
            if self._short_of(undone):
                return entry | {"outcome": "kept", "answer": {"key": key, "outcome": "kept"}}
            return entry | {
                "outcome": "reversed",
                "answer": _answer(key, "voided", TIMEOUT_REVERSED_CODE, known.transaction_id),
            }
        outcome = "nothing to reverse" if known is not None else "tombstone"
        return entry | {"outcome": outcome, "answer": _answer(key, "voided", TIMEOUT_REVERSED_CODE, "")}

    # --- booking ------------------------------------------------------------------------------------------------

    def apply(self, entry: Mapping[str, Any]) -> None:
        """Book one decision. Applying the log's entries in order rebuilds the ledger."""
        kind, key, outcome = entry["kind"], entry.get("key", ""), entry.get("outcome", "")
        if kind == "submit" and outcome in ("approved", "declined"):
            answer = entry["answer"]
            transaction = StubTransaction(
                key=key,
                operation=entry["operation"],
                amount=entry["amount"],
                currency=entry["currency"],
                outcome=outcome,
                approved=answer.get("approvedAmount", ""),
                account=entry.get("account", ""),
                transaction_id=answer.get("transactionId", ""),
                answer=answer,
                moves=tuple((pool, Decimal(change)) for pool, change in entry.get("moves", ())),
            )
            self.by_key[key] = transaction
            if transaction.transaction_id:
                self.by_id[transaction.transaction_id] = transaction
            self._move(transaction.moves)
        elif kind == "void" and outcome == "tombstone":
            self.tombstones.add(key)
        elif kind == "void" and outcome == "reversed":
            transaction = self.by_key[key]
            transaction.outcome = "voided"
            self._move(tuple((pool, -change) for pool, change in transaction.moves))

    def _move(self, moves: PoolMoves) -> None:
        for pool, change in moves:
            self.pools[pool] = self.pools.get(pool, Decimal(0)) + change

    def _short_of(self, moves: PoolMoves | list[tuple[str, Decimal]]) -> bool:
        return any(self.pools.get(pool, Decimal(0)) + change < 0 for pool, change in moves)

    def _told(self, transaction: StubTransaction) -> dict[str, Any]:
        if transaction.outcome == "voided":
            return _answer(transaction.key, "voided", TIMEOUT_REVERSED_CODE, transaction.transaction_id)
        return dict(transaction.answer)

    def _book(self, message: StubMessage, key: str) -> _Booking:
        """The pools that an operation moves, or a code if the reference is wrong or the balance too low."""
        operation, amount = str(message["operation"]), Decimal(str(message["amount"]))
        reference = str(message.get("reference") or "")
        own = build_transaction_id(key)
        if operation == "RG":
            return _Booking()
        if not reference and operation not in STUB_FOLLOW_UPS:
            pool = f"hold:{own}" if operation == "PA" else f"taken:{own}"
            return _Booking(moves=((pool, amount),), account=pool)
        behind = self.by_id.get(reference)
        if behind is None or behind.outcome != "approved" or behind.currency != message["currency"]:
            return _Booking(code=NO_SUCH_REFERENCE)
        booking = _follow(operation, _practice(message), amount, own, behind)
        return _Booking(code=RESULT_WHEN_EXCEEDED[operation]) if self._short_of(booking.moves) else booking


def _follow(operation: str, practice: str, amount: Decimal, own: str, behind: StubTransaction) -> _Booking:
    """The moves of a follow-up. On a hold: captures and receipts take from it, a reversal releases it."""
    account, taken = behind.account, f"taken:{own}"
    held = account.startswith("hold:")
    if operation == "PA":
        return _Booking(moves=((account, amount),) if practice == "INCREMENTAL_AUTH" else (), account=account)
    if operation in ("CP", "RC") and held:
        return _Booking(moves=((account, -amount), (taken, amount)), account=taken)
    if operation == "RC":
        return _Booking(account=account)
    if operation == "RB":
        return _Booking(moves=((taken, amount),), account=taken)
    disputed = account.replace("taken:", "disputed:")
    if operation == "CB":
        return _Booking(moves=((account, -amount), (disputed, amount)), account=account)
    if operation == "CR":
        return _Booking(moves=((account, amount), (disputed, -amount)), account=account)
    return _Booking(moves=((account, -amount),), account=account)


def build_transaction_id(key: str) -> str:
    """The acquirer's own id of a transaction, which its follow-ups refer to."""
    return f"STB{key[-20:].upper()}"


def read_attempt_number(key: str) -> int:
    """Which authorization attempt of its payment a key names (AcquirerRequest.attempt_key)."""
    number = key.rpartition("-")[2] if "-" in key else ""
    return int(number) if number.isdecimal() else 1


def _practice(message: StubMessage) -> str:
    instruction = message.get("standingInstruction")
    return str(instruction.get("industryPractice", "")) if isinstance(instruction, Mapping) else ""


def _facts(message: StubMessage) -> LedgerEntry:
    """What the log stores of a submission: the merchant id that it came for, the masked account and the exemption from
    strong authentication, nothing else of the means or the shopper."""
    facts: LedgerEntry = {
        name: message.get(name, "") for name in ("operation", "amount", "currency", "brand", "reference", "merchant")
    }
    authentication = message.get("threeDSecure")
    if isinstance(authentication, Mapping) and authentication.get("exemptionFlag"):
        facts |= {name: str(authentication.get(name) or "") for name in ("exemptionFlag", "authenticationStatus")}
    card = message.get("card")
    if isinstance(card, Mapping) and card.get("number"):
        number = str(card["number"])
        facts["card"] = number[:6] + "*" * max(0, len(number) - 10) + number[-4:]
    account = _account(message)
    if account is not None:
        facts[account.kind] = mask_account_number(account.account)
    return facts


def _account(message: StubMessage) -> ClearAccount | None:
    """The means of a message, if it is not a card."""
    for kind, names in _ACCOUNTS.items():
        part = message.get(kind)
        # Besides a card there may be a gift card that pays nothing: its number is masked, and the PIN is absent.
        if not isinstance(part, Mapping) or (kind == "giftCard" and "pinPresent" not in part):
            continue
        sent = {name: str(part.get(name) or "") for name in ("expiryMonth", "expiryYear", *_PROOFS, *names)}
        account = next((sent[name] for name in names if sent[name]), "")
        expiry = f"{sent['expiryYear']}-{sent['expiryMonth']}" if sent["expiryYear"] else ""
        if account:
            return ClearAccount(kind=kind, account=account, expiry=expiry, **{name: sent[name] for name in _PROOFS})
    return None


_ACCOUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "bankAccount": ("iban", "number"), "virtualAccount": ("accountId",), "tokenAccount": ("number",),
    "giftCard": ("number",),
}  # fmt: skip
_PROOFS: Final = ("cryptogram", "dtvc", "pin")


def _outcome(message: StubMessage, key: str) -> dict[str, Any]:
    """The issuer's decision: by the table of test cards; approved without a card."""
    amount = Money.parse(str(message["amount"]), str(message["currency"]))
    card = message.get("card")
    if message["operation"] == "CB":
        asked = str(message.get("chargebackResultCode") or "")
        reason = asked if CHARGEBACK_CODE.fullmatch(asked) else CHARGEBACK_WITHOUT_REASON
        return _answer(key, "approved", reason, build_transaction_id(key), response="00", approvedAmount=amount.text())
    account = _account(message)
    tokenized = find_tokenized_card(account.account) if account is not None and account.kind == "tokenAccount" else None
    if account is not None and tokenized is not None:
        month = f"{datetime.now(UTC):%Y-%m}"
        refused = find_token_decline(tokenized, account, key[:PAYMENT_ID_DIGITS], month)
        if refused is not None and not message.get("reference"):
            return _answer(key, "declined", refused[0], build_transaction_id(key), response=refused[1])
        card = {"number": tokenized.number, "cvv": account.dtvc}
    elif account is not None:
        return _account_outcome(account, amount, key)
    if not isinstance(card, Mapping) or not card.get("number"):
        return _answer(
            key, "approved", SIMULATED_SUCCESS, build_transaction_id(key), response="00", approvedAmount=amount.text()
        )
    billing, proof = message.get("billing"), message.get("threeDSecure")
    answer = simulate_card_answer(
        str(card["number"]),
        amount=amount,
        cvv=str(card.get("cvv") or "") or None,
        postcode=str(billing.get("postcode") or "") if isinstance(billing, Mapping) else None,
        authenticated=isinstance(proof, Mapping) and bool(proof.get("verificationId")),
        attempt=read_attempt_number(key),
    )
    more = {"response": answer.acquirer_response, "avs": answer.avs, "cvv": answer.cvv}
    more["advice"] = answer.merchant_advice_code
    details = {name: value for name, value in more.items() if value}
    if answer.approved is None:
        return _answer(key, "declined", answer.code, build_transaction_id(key), **details)
    return _answer(
        key, "approved", answer.code, build_transaction_id(key), approvedAmount=answer.approved.text(), **details
    )


def _account_outcome(account: ClearAccount, amount: Money, key: str) -> dict[str, Any]:
    """The outcome by the table of test accounts. What would be confirmed days later is approved at once here."""
    answer = simulate_account_answer(account, amount, month=f"{datetime.now(UTC):%Y-%m}")
    if answer.approved is None and answer.code != CONFIRMED_LATER:
        return _answer(key, "declined", answer.code, build_transaction_id(key), response=answer.response)
    approved = (answer.approved or amount).text()
    return _answer(
        key, "approved", SIMULATED_SUCCESS, build_transaction_id(key), response=answer.response, approvedAmount=approved
    )


def _answer(key: str, outcome: str, code: str, transaction: str, **more: str) -> dict[str, Any]:
    if outcome == "approved":
        more["networkReference"] = build_network_reference(key)
    return {"key": key, "outcome": outcome, "code": code, "transactionId": transaction, **more}

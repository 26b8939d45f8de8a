"""The two sides of the comparison, as plain values: our books out of PostgreSQL, the acquirer's out of its own log.

The acquirer's side is computed anew from the log's lines, with none of the acquirer's own code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg

ZERO = Decimal(0)
NO_MONEY = frozenset({"RG", "RR", "TE", "DR", "RI", "SD", "RS", "DS"})
"""Payment types that move none: registrations, schedules and what becomes of them, risk checks."""
LOW_VALUE_FLAG = "01"
"""threeDSecure.exemptionFlag of a payment of low value."""
ISSUER_AUTHENTICATED = frozenset({"Y", "A"})
"""transStatus of an issuer that authenticated, so that an exemption was not applied."""
RENEWS = "REAUTHORIZATION"
"""The practice of a PA that adds no amount."""
FURTHER_ATTEMPT = frozenset({"step_up", "cascade", "token_fallback"})
"""Events after which a declined payment is authorized again: with a proof, at another account, with the card number."""
REDIRECTED = frozenset({"ONLINETRANSFER", "WEBWALLET", "SHOPWALLET", "INVOICE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question to the acquirer as our books keep it. ``asked``: when it went out, seconds since 1970."""

    kind: str
    received: Mapping[str, Any]
    asked: float
    answered: float
    written: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One event of a payment, seconds since 1970."""

    event: str
    status: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """One payment of our books. ``order``: the merchantTransactionId, which the clients use once for each intent.
    ``keeps_number``: its sealed account is still there. ``clock_moved``: its times are not those of the world.
    ``entity``: its channel's id; ``practice``: what a further PA does to its authorization; ``account``: the
    merchant id at its acquirer."""

    id: str
    order: str
    chain: str
    referenced: str
    kind: str
    status: str
    amount: Decimal
    approved: Decimal | None
    connector: str
    code: str
    created: float
    completed: float | None
    is_due: bool
    moves: tuple[Move, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    brand: str = ""
    keeps_number: bool = False
    clock_moved: bool = False
    entity: str = ""
    practice: str = ""
    account: str = ""

    @property
    def attempt(self) -> str:
        """The acquirer's key of its last authorization attempt: each decline that led on began another."""
        further = sum(move.event in FURTHER_ATTEMPT for move in self.moves)
        return f"{self.id}-{further + 1}" if further else self.id

    @property
    def is_open(self) -> bool:
        return self.status in ("STARTED", "PENDING", "IN_DOUBT")

    @property
    def is_redirected(self) -> bool:
        """Its shopper decides at a bank or wallet."""
        return self.brand in REDIRECTED and not self.referenced


@dataclass(frozen=True, slots=True, kw_only=True)
class Exempted:
    """A payment that asked for an exemption by rule. ``card``: merchant and the card's fingerprint; ``euros``: its
    amount; ``payments``, ``amount``: what the card had used then, this payment too, None where no limit counts it;
    ``authentications``: how many the card had had."""

    payment: str
    card: str
    exemption: str
    euros: Decimal | None = None
    payments: int | None = None
    amount: Decimal | None = None
    authentications: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardUse:
    """What our books say a card has used of the limits of low value since its last authentication."""

    payments: int
    amount: Decimal
    authentications: int


NO_USE = CardUse(payments=0, amount=ZERO, authentications=0)


@dataclass(slots=True, kw_only=True)
class Aside:
    """What stands beside the payments, by payment id. ``orders``: the simulated bank's own state and amount;
    ``authentications``: of the last one, step, transStatus and the code that ended the payment ('' where it goes on);
    ``registrations``: those that the payment made; ``waiting``: suspensions, ``secrets``: those that hold a sealed
    security code; ``numbers``: authentications that hold a sealed card number; ``exempted``: payments that asked for an
    exemption; ``used``: by card, what is counted; ``challenged``: by card, how many challenges were passed."""

    orders: dict[str, tuple[str, Decimal]] = field(default_factory=dict)
    authentications: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    registrations: dict[str, list[str]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    secrets: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    exempted: list[Exempted] = field(default_factory=list)
    used: dict[str, CardUse] = field(default_factory=dict)
    challenged: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Acquirer:
    """The acquirer's side by payment id. ``standing``: approved and not voided, with the amount; ``twice``: booked
    more than once; ``short``: pools that went below zero; ``first_seen``: when its first submission came;
    ``submissions``: how many of each attempt of a payment were sent, by the acquirer's key, those that got lost among
    them; ``holds``: what is held for an authorization, neither captured nor released; ``booked``: payment → attempts
    that stand, with the merchant id of each; ``early``: attempts that came although the one before was not declined;
    ``exempted``: payments that stand with the low value exemption, whose issuer did not authenticate instead."""

    standing: dict[str, Decimal] = field(default_factory=dict)
    approved: set[str] = field(default_factory=set)
    declined: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    refused_later: set[str] = field(default_factory=set)
    twice: list[str] = field(default_factory=list)
    short: list[str] = field(default_factory=list)
    first_seen: dict[str, float] = field(default_factory=dict)
    submissions: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    holds: dict[str, Decimal] = field(default_factory=dict)
    booked: dict[str, dict[str, str]] = field(default_factory=dict)
    early: list[str] = field(default_factory=list)
    exempted: set[str] = field(default_factory=set)


def hold(first: Payment, members: Iterable[Payment]) -> Decimal:
    """What the acquirer has to hold by our books: all that the chain authorized, less what was captured and reversed of
    it. ``members``: the payments of its chain."""
    done = [one for one in members if one.status == "APPROVED"]
    held = {one.id for one in done if one.kind == "PA"}
    if first.id not in held:
        return ZERO
    taken = [one for one in done if one.kind in ("CP", "RC", "RV") and one.referenced in held]
    return authorized(done) - sum((one.approved or ZERO for one in taken), ZERO)


def authorized(members: Iterable[Payment]) -> Decimal:
    """All that the authorizations of a chain were approved for; a renewal adds nothing."""
    granted = (one for one in members if one.kind == "PA" and one.practice != RENEWS and one.status == "APPROVED")
    return sum((one.approved or ZERO for one in granted), ZERO)


def chains(payments: Iterable[Payment]) -> dict[str, list[Payment]]:
    """Chain → its payments."""
    found: dict[str, list[Payment]] = {}
    for payment in payments:
        found.setdefault(payment.chain, []).append(payment)
    return found


def acquirer(entries: Iterable[Mapping[str, Any]]) -> Acquirer:
    """The acquirer's books out of its log, oldest line first."""
    books = Acquirer()
    pools: dict[str, Decimal] = {}
    pool_of: dict[str, str] = {}
    moves: dict[str, list[tuple[str, Decimal]]] = {}
    refused: set[str] = set()  # attempts

    def move(key: str, sign: int) -> None:
        for pool, change in moves.get(key, []):
            pools[pool] = pools.get(pool, ZERO) + sign * change
            if pools[pool] < 0:
                books.short.append(f"{pool} at {pools[pool]} after {key}")

    for entry in entries:
        kind, outcome, attempt = entry["kind"], entry.get("outcome"), str(entry.get("key"))
        key = attempt.partition("-")[0]  # a payment that is authorized again has a key per attempt
        if fault := entry.get("fault"):
            books.faults[fault] = books.faults.get(fault, 0) + 1
        # The fault "duplicate" is the network's: one message, which comes twice.
        if kind == "submit" and not (fault == "duplicate" and outcome == "duplicate"):
            books.submissions[attempt] = books.submissions.get(attempt, 0) + 1
        if kind == "submit" and outcome != "lost":
            if (before := _attempt_before(attempt)) and before not in refused and attempt not in books.early:
                books.early.append(attempt)
            books.first_seen.setdefault(key, datetime.fromisoformat(entry["at"]).timestamp())
        if (kind, outcome) == ("submit", "approved"):
            if key in books.approved:
                books.twice.append(key)
            books.approved.add(key)
            books.standing[key] = Decimal(entry["answer"]["approvedAmount"])
            books.booked.setdefault(key, {})[attempt] = entry.get("merchant", "")
            if (
                entry.get("exemptionFlag") == LOW_VALUE_FLAG
                and entry["authenticationStatus"] not in ISSUER_AUTHENTICATED
            ):
                books.exempted.add(key)
            moves[key] = [(pool, Decimal(change)) for pool, change in entry.get("moves", [])]
            move(key, +1)
            if entry.get("operation") == "PA" and not entry.get("reference"):
                pool_of[key] = moves[key][0][0]
        elif (kind, outcome) == ("submit", "declined"):
            books.declined.add(key)
            refused.add(attempt)
        elif (kind, outcome) == ("void", "reversed"):
            books.standing.pop(key, None)
            books.booked.get(key, {}).pop(attempt, None)
            books.exempted.discard(key)
            books.voided.add(key)
            move(key, -1)
        elif (kind, outcome) == ("void", "tombstone"):
            books.refused_later.add(key)
    books.holds = {key: pools.get(pool, ZERO) for key, pool in pool_of.items()}
    return books


def _attempt_before(attempt: str) -> str:
    """The key of the attempt before this one of the same payment; empty for the first."""
    payment, _, number = attempt.partition("-")
    if not number:
        return ""
    return payment if number == "2" else f"{payment}-{int(number) - 1}"


def ours(connection: psycopg.Connection[Any]) -> dict[str, Payment]:
    """Every payment with its events and exchanges, by id."""
    moves: dict[str, list[Move]] = {}
    for payment, event, status, at in connection.execute(
        "SELECT payment_id, event, status, at FROM gateway_paymentevent ORDER BY payment_id, sequence"
    ):
        moves.setdefault(payment.hex, []).append(Move(event=event, status=status, at=at.timestamp()))
    exchanges: dict[str, list[Exchange]] = {}
    # Last first: a question and the void that followed it are written together, when the second one has its answer.
    for payment, kind, received, duration_ms, at in connection.execute(
        "SELECT payment_id, kind, received, duration_ms, at FROM gateway_acquirerexchange ORDER BY id DESC"
    ):
        later = exchanges.setdefault(payment.hex, [])
        answered = at.timestamp()
        if later and later[0].kind == "void" and later[0].written == at.timestamp():
            answered = later[0].asked
        asked = answered - duration_ms / 1000
        exchange = Exchange(kind=kind, received=received or {}, asked=asked, answered=answered, written=at.timestamp())
        later.insert(0, exchange)
    rows = connection.execute(
        "SELECT p.id, merchant_transaction_id, chain, referenced, payment_type, status, amount, approved_amount,"
        " connector, result_code, p.created_at, completed_at, "
        "EXISTS (SELECT FROM gateway_openpayment o WHERE o.payment_id = p.id),"
        " brand, means_sealed IS NOT NULL, clock_offset <> interval '0', channel_id, practice,"
        " acquirer_merchant_id"
        " FROM gateway_payment p JOIN gateway_merchant m ON m.id = p.merchant_id"
    )
    return {
        row[0].hex: Payment(
            id=row[0].hex,
            order=row[1],
            chain=row[2].hex,
            referenced=row[3].hex if row[3] else "",
            kind=row[4],
            status=row[5],
            amount=row[6],
            approved=row[7],
            connector=row[8],
            code=row[9],
            created=row[10].timestamp(),
            completed=row[11].timestamp() if row[11] else None,
            is_due=row[12],
            brand=row[13],
            keeps_number=row[14],
            clock_moved=row[15],
            entity=row[16].hex if row[16] else "",
            practice=row[17],
            account=row[18],
            moves=tuple(moves.get(row[0].hex, ())),
            exchanges=tuple(exchanges.get(row[0].hex, ())),
        )
        for row in rows
    }


def aside(connection: psycopg.Connection[Any]) -> Aside:
    """Load the rows besides the payments: orders, authentications, jobs."""
    found = Aside()
    run = connection.execute
    for payment, state, amount in run("SELECT payment, state, amount FROM gateway_simulatedorder"):
        found.orders[payment.hex] = (state, amount)
    for payment, step, status, code, holds in run(
        "SELECT payment, step, trans_status, code, number_sealed IS NOT NULL FROM gateway_authentication"
        " WHERE payment IS NOT NULL ORDER BY attempt"
    ):
        found.authentications[payment.hex] = (step, status, code)
        if holds:
            found.numbers.add(payment.hex)
    for payment, ident in run("SELECT payment, id FROM gateway_registration"):
        found.registrations.setdefault(payment.hex, []).append(ident.hex)
    for payment, holds in run("SELECT payment_id, secrets_sealed IS NOT NULL FROM gateway_suspension"):
        found.waiting.add(payment.hex)
        if holds:
            found.secrets.add(payment.hex)
    _add_exemptions(connection, found)
    return found


def _add_exemptions(connection: psycopg.Connection[Any], found: Aside) -> None:
    run = connection.execute
    for payment, merchant, card, *rest in run(
        "SELECT r.payment_id, p.merchant_id, p.means_fingerprint, exemption, euros, payments, r.amount, authentications"
        " FROM gateway_exemptionrequest r JOIN gateway_payment p ON p.id = r.payment_id"
    ):
        names = ("exemption", "euros", "payments", "amount", "authentications")
        facts = dict(zip(names, rest, strict=True))
        found.exempted.append(Exempted(payment=payment.hex, card=_card(merchant, card), **facts))
    for merchant, card, payments, amount, authentications in run(
        "SELECT merchant_id, key, payments, amount, authentications FROM gateway_exemptioncount"
    ):
        use = CardUse(payments=payments, amount=amount, authentications=authentications)
        found.used[_card(merchant, card)] = use
    for merchant, card, passed in run(
        "SELECT p.merchant_id, p.means_fingerprint, count(DISTINCT a.payment)"
        " FROM gateway_authentication a JOIN gateway_payment p ON p.id = a.payment"
        " WHERE a.flow IN ('challenge', 'decoupled') AND a.trans_status = 'Y' GROUP BY 1, 2"
    ):
        found.challenged[_card(merchant, card)] = passed


def _card(merchant: UUID, fingerprint: bytes | None) -> str:
    return f"{merchant.hex} {bytes(fingerprint or b'').hex()}"


def keys(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Idempotency key and the payment it belongs to."""
    rows = connection.execute("SELECT key, payment FROM gateway_idempotencykey")
    return [(key, payment.hex) for key, payment in rows]


def journal(files: Iterable[Path]) -> list[dict[str, Any]]:
    """All lines of the clients' journals, each client's in their order."""
    return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]

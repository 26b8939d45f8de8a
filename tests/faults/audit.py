"""The comparison: our books against the acquirer's, both against what the clients heard. Pure; finds, never repairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from tests.faults import audit_accounts, audit_exemptions, audit_shoppers
from tests.faults.books import (
    FURTHER_ATTEMPT,
    NO_MONEY,
    ZERO,
    Acquirer,
    Aside,
    Exchange,
    Payment,
    authorized,
    chains,
    hold,
)
from tests.faults.client import is_approved, is_pending
from tests.faults.finding import DOUBLED, LOST, NO_EVIDENCE, OPEN, OVER, REPLAY, SERVER_ERROR, UNANSWERED, Finding

STUB: Final = "stub"
BANK: Final = "sepa"
TOO_MANY_DECLINES: Final = "700.600.002"
"""The schemes' bound on declines of one card (gateway.risk.retry_rules): a rule of ours stops a begun payment."""

Books = Mapping[str, Payment]
Lines = Sequence[Mapping[str, Any]]


def find_all(
    books: Books,
    acquirer: Acquirer,
    journal: Lines,
    keys: Iterable[tuple[str, str]],
    replays: Lines,
    aside: Aside | None = None,
) -> list[Finding]:
    """Every finding of every check."""
    keys, aside = list(keys), aside or Aside()
    return [
        *against_acquirer(books, acquirer),
        *holds(books, acquirer),
        *against_journal(books, journal),
        *doubles(books, acquirer, keys),
        *limits(books, acquirer),
        *unfounded(books, acquirer, aside),
        *still_open(books),
        *replayed(replays, last_answers(journal)),
        *unanswered(journal),
        *server_errors(journal),
        *audit_shoppers.find_all(books, acquirer, journal, keys, aside),
        *audit_accounts.find_all(books, acquirer),
        *audit_exemptions.find_all(books, acquirer, aside),
    ]


def against_acquirer(books: Books, acquirer: Acquirer) -> list[Finding]:
    """What the acquirer booked and did not void is exactly one approved payment of the same amount, and the reverse."""
    found = []
    for key, amount in acquirer.standing.items():
        payment = books.get(key)
        if payment is None:
            found.append(Finding(kind=LOST, what=f"the acquirer booked {amount}, we know nothing of it", payment=key))
        elif payment.status != "APPROVED":
            what = f"the acquirer booked {amount}, here it is {payment.status} {payment.code}"
            found.append(Finding(kind=LOST, what=what, payment=key))
        elif payment.approved != amount and payment.kind not in NO_MONEY:
            what = f"the acquirer booked {amount}, here it is {payment.approved}"
            found.append(Finding(kind=LOST, what=what, payment=key))
    for payment in books.values():
        if payment.connector == STUB and payment.status == "APPROVED" and payment.id not in acquirer.standing:
            why = "voided it" if payment.id in acquirer.voided else "never booked it"
            found.append(Finding(kind=LOST, what=f"approved here, but the acquirer {why}", payment=payment.id))
    return found


def holds(books: Books, acquirer: Acquirer) -> list[Finding]:
    """What the acquirer holds for an authorization is what our books say is neither captured nor reversed."""
    members = chains(books.values())
    return [
        Finding(kind=LOST, what=f"the acquirer holds {held}, here it is {here}", payment=key)
        for key, held in acquirer.holds.items()
        if (first := books.get(key)) is not None and held != (here := hold(first, members[first.chain]))
    ]


def against_journal(books: Books, journal: Lines) -> list[Finding]:
    """Nothing that a client was told is lost: approved stays approved, for the same amount; declined stays declined."""
    found: dict[tuple[str, str], Finding] = {}
    for line in journal:
        ident, code = line.get("id"), line.get("code", "")
        if not ident or line.get("status", 500) >= 500 or is_pending(code):
            continue
        payment, told = books.get(ident), is_approved(code)
        if payment is None:
            what = f"the client was told {code}, we know nothing of it"
        elif told and payment.status != "APPROVED":
            what = f"the client was told {code}, here it is {payment.status} {payment.code}"
        elif told and payment.kind not in NO_MONEY and payment.approved != Decimal(line["amount"]):
            what = f"the client was told {line['amount']}, here it is {payment.approved}"
        elif not told and payment.status != "DECLINED":
            what = f"the client was told {code}, here it is {payment.status}"
        else:
            continue
        found[ident, what] = Finding(kind=LOST, what=what, payment=ident)
    return list(found.values())


def doubles(books: Books, acquirer: Acquirer, keys: Iterable[tuple[str, str]]) -> list[Finding]:
    """One key, one payment; one intent of a client, one payment; one payment, one booking at the acquirer."""
    found = [Finding(kind=DOUBLED, what="booked twice by the acquirer", payment=key) for key in acquirer.twice]
    for what, pairs in (
        ("key", keys),
        ("order", ((payment.order, payment.id) for payment in books.values() if payment.order)),
    ):
        payments: dict[str, set[str]] = defaultdict(set)
        for name, payment in pairs:
            payments[name].add(payment)
        for name, several in payments.items():
            if len(several) > 1:
                states = ", ".join(f"{one} {books[one].status if one in books else '?'}" for one in sorted(several))
                found.append(Finding(kind=DOUBLED, what=f"{what} {name} has {len(several)} payments: {states}"))
    return found


def limits(books: Books, acquirer: Acquirer) -> list[Finding]:
    """No chain gave more than it had: by our books, and by the acquirer's pools."""
    found = [Finding(kind=OVER, what=f"at the acquirer: {pool}") for pool in acquirer.short]
    after: dict[str, list[Payment]] = defaultdict(list)
    members = chains(books.values())
    for payment in books.values():
        # A further authorization takes nothing of the one it follows.
        if payment.referenced and payment.status == "APPROVED" and payment.kind != "PA" and not _takes_out(payment):
            after[payment.referenced].append(payment)
    for ident, followers in after.items():
        behind = books.get(ident)
        granted = behind.approved or ZERO if behind is not None and behind.status == "APPROVED" else ZERO
        if behind is not None and behind.kind == "PA":
            granted = authorized(members[behind.chain])
        used = sum((one.approved or ZERO for one in followers), ZERO)
        if used > granted:
            kinds = "+".join(f"{one.kind} {one.approved}" for one in followers)
            found.append(Finding(kind=OVER, what=f"{kinds} of {granted}", payment=ident))
    return found


def _takes_out(payment: Payment) -> bool:
    """A reversal of a direct debit: it takes an order out before the bank has it, and the debit ends declined."""
    return payment.connector == BANK and payment.kind == "RV"


def unfounded(books: Books, acquirer: Acquirer, aside: Aside) -> list[Finding]:
    """Each decline has its evidence: a rule of ours, an answer, a void, or certain non-delivery. Believed only when
    the acquirer's log says the same."""
    found = []
    for payment in books.values():
        if payment.status == "DECLINED" and (what := _unfounded(payment, acquirer, aside)):
            found.append(Finding(kind=NO_EVIDENCE, what=f"{payment.code}: {what}", payment=payment.id))
    return found


def _unfounded(payment: Payment, acquirer: Acquirer, aside: Aside) -> str:
    ident = payment.id
    void_attempted = ident in acquirer.voided or ident in acquirer.refused_later
    if payment.moves and payment.moves[-1].event == "refuse":
        return "refused by our rules, yet the acquirer was asked" if ident in acquirer.first_seen else ""
    last = _last_word(payment.exchanges)
    authentication = aside.authentications.get(ident)
    if (
        last is None
        and authentication is not None
        and not (audit_shoppers.passed(authentication) and payment.code == audit_shoppers.UNREACHABLE)
    ):
        step, _, code = authentication
        return "" if step == "done" and code == payment.code else f"the authentication says {step} {code or 'go on'}"
    if last is None and payment.code == TOO_MANY_DECLINES:
        return "stopped by our rules, yet the acquirer was asked" if ident in acquirer.first_seen else ""
    if last is None and payment.code == audit_shoppers.UNREACHABLE:
        # The account's breaker was open, or it was full: nothing was sent, so there is no exchange. Others' books are
        # asked by tests.faults.peers.
        return "never sent, we say, yet the acquirer has it" if ident in acquirer.first_seen else ""
    if last is None:
        return "no exchange with an answer"
    if (order := aside.orders.get(ident)) is not None:
        return "" if order[0] in ("DECLINED", "CANCELLED", "EXPIRED") else f"the bank says {order[0]}"
    if payment.connector != STUB:
        return ""
    if any(one.event in FURTHER_ATTEMPT for one in payment.moves) and ident in acquirer.declined:
        return ""  # the first attempt was declined, and the second did not arrive
    if "unreachable" in last.received:
        return "not delivered, we say, yet the acquirer has it" if ident in acquirer.first_seen else ""
    if void_attempted or ident in acquirer.declined:
        # Declined and then voided, too: a submission that came after we asked left the void nothing to take back.
        return ""
    if last.received.get("outcome") == "voided" or last.kind == "void":
        return "taken back, we say, and the acquirer knows of no void"
    return "the acquirer did not decline it"


def _last_word(exchanges: Sequence[Exchange]) -> Exchange | None:
    """The last exchange that the acquirer, or the certain lack of a line to it, answered."""
    answered = [one for one in exchanges if one.received and not {"silence", "undecided"} & set(one.received)]
    return answered[-1] if answered else None


def still_open(books: Books) -> list[Finding]:
    return [
        Finding(kind=OPEN, what=f"{one.status}, {'due' if one.is_due else 'and nobody will ask'}", payment=one.id)
        for one in books.values()
        if one.is_open or one.is_due
    ]


def last_answers(journal: Lines) -> dict[str, Mapping[str, Any]]:
    """Key → the answer that its client took for final: the last one below 500 that was not "still being made"."""
    return {
        line["key"]: line
        for line in journal
        if line["kind"] == "POST" and line["key"] and line.get("status", 500) < 500 and line["status"] != 409
    }


def replayed(replays: Lines, heard: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Each key's last replay says what its client heard; one that was told "pending" may hear the end of it."""
    found = []
    for line in replays:
        before = heard[line["key"]]
        same = all(line.get(name) == before.get(name) for name in ("status", "code", "id", "amount"))
        went_on = is_pending(before["code"]) and line.get("id") == before["id"]
        if not (same or went_on) or not line.get("replayed"):
            mark = "" if line.get("replayed") else ", not marked as a replay"
            what = f"key {line['key']}: heard {_short(before)}, then {_short(line)}{mark}"
            found.append(Finding(kind=REPLAY, what=what, payment=before["id"]))
    return found


def _short(line: Mapping[str, Any]) -> str:
    return " ".join(str(line.get(name)) for name in ("status", "code", "id", "amount"))


def unanswered(journal: Lines) -> list[Finding]:
    """Requests whose client gave up without an answer."""
    heard = last_answers(journal)
    asked = dict.fromkeys(line["key"] for line in journal if line["kind"] == "asks")
    return [Finding(kind=UNANSWERED, what=f"key {key}") for key in asked if key not in heard]


def server_errors(journal: Lines) -> list[Finding]:
    """HTTP 500 answers. While a part is down the product answers 503 with Retry-After."""
    return [
        Finding(kind=SERVER_ERROR, what=f"{line['kind']} at {line['at']:.1f}, key {line['key']}: {line.get('code')}")
        for line in journal
        if line["kind"] in ("POST", "GET") and line.get("status") == 500
    ]

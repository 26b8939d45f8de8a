"""The comparison of what shoppers decided with our books: the acquirer's log, the simulated bank's orders and the
authentications are one side, payments, registrations and what is sealed the other. Pure; finds, never repairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tests.faults.books import FURTHER_ATTEMPT, NO_MONEY, Acquirer, Aside, Payment
from tests.faults.finding import DECIDED, REGISTRATION, SECRET, TWICE, Finding
from tests.faults.shoppers import NEVER_PASSED, PASSED

_MOST_CASCADES: Final = 2
STUB: Final = "stub"
AUTHENTICATED: Final = frozenset({"Y", "A", "U", "I"})
UNREACHABLE: Final = "900.100.600"
"""Nothing was sent: there was no line to the acquirer, its breaker was open, or its account was full."""

Books = Mapping[str, Payment]
Lines = Sequence[Mapping[str, Any]]


def find_all(
    books: Books, acquirer: Acquirer, journal: Lines, keys: Iterable[tuple[str, str]], aside: Aside
) -> list[Finding]:
    """Every finding of every check."""
    return [
        *asked_twice(books, acquirer),
        *against_bank(books, aside),
        *authenticated(books, acquirer, aside),
        *as_decided(books, acquirer, journal),
        *registered(books, journal, dict(keys), aside),
        *sealed(books, aside),
    ]


def asked_twice(books: Books, acquirer: Acquirer) -> list[Finding]:
    """A payment goes to its acquirer once, by the acquirer's log and by our own events, however often its shopper
    answers; to another one, or once more after a decline, only by an event that says so."""
    found = [
        Finding(kind=TWICE, what=f"the acquirer got it {count} times", payment=key)
        for key, count in acquirer.submissions.items()
        if count > 1
    ]
    for payment in books.values():
        events = Counter(move.event for move in payment.moves)
        sent = sum(one.kind == "submit" for one in payment.exchanges)
        if events["step_up"] > 1:
            found.append(Finding(kind=TWICE, what=f"stepped up {events['step_up']} times", payment=payment.id))
        if events["cascade"] > _MOST_CASCADES:
            found.append(Finding(kind=TWICE, what=f"sent on {events['cascade']} times", payment=payment.id))
        if events["resume"] > 1 + events["step_up"]:
            found.append(Finding(kind=TWICE, what=f"resumed {events['resume']} times", payment=payment.id))
        if sent > 1 + events["reroute"] + sum(events[name] for name in FURTHER_ATTEMPT):
            found.append(Finding(kind=TWICE, what=f"{sent} exchanges submit it", payment=payment.id))
        if sum(move.status in ("APPROVED", "DECLINED") for move in payment.moves) > 1:
            found.append(Finding(kind=TWICE, what="it ended twice", payment=payment.id))
    return found


def against_bank(books: Books, aside: Aside) -> list[Finding]:
    """Approved at the bank is approved here, for the same amount, and nothing else is; no order is left open."""
    found = []
    for ident, (state, amount) in aside.orders.items():
        payment = books.get(ident)
        if payment is None:
            what = f"the bank has an order of {amount}, we know nothing of it"
        elif (state == "APPROVED") is not (payment.status == "APPROVED"):
            what = f"the bank says {state}, here it is {payment.status} {payment.code}"
        elif state == "APPROVED" and payment.approved != amount:
            what = f"the bank approved {amount}, here it is {payment.approved}"
        elif state == "OPEN":
            what = "the bank still waits"
        else:
            continue
        found.append(Finding(kind=DECIDED, what=what, payment=ident))
    for payment in books.values():
        if payment.is_redirected and payment.status == "APPROVED" and payment.id not in aside.orders:
            found.append(Finding(kind=DECIDED, what="approved here, the bank has no order", payment=payment.id))
    return found


def is_stepped_up(payment: Payment) -> bool:
    """Whether it was declined for want of an authentication, and goes on with one."""
    return any(move.event == "step_up" for move in payment.moves)


def was_asked(payment: Payment, acquirer: Acquirer) -> bool:
    """Whether the acquirer got the payment after its last authentication."""
    again = is_stepped_up(payment)
    key = f"{payment.id}-2" if again else payment.id
    return key in acquirer.submissions or sum(one.kind == "submit" for one in payment.exchanges) > again


def passed(authentication: tuple[str, str, str]) -> bool:
    """Whether an authentication (step, status, code) lets its payment go on to the acquirer."""
    step, _, code = authentication
    return step == "done" and not code


def authenticated(books: Books, acquirer: Acquirer, aside: Aside) -> list[Finding]:
    """No acquirer is asked without an authentication, and an authenticated payment is not declined for want of one."""
    found = []
    for ident, (step, status, code) in aside.authentications.items():
        payment = books.get(ident)
        if payment is None:
            found.append(Finding(kind=DECIDED, what="an authentication of no payment", payment=ident))
            continue
        goes_on = passed((step, status, code))
        if was_asked(payment, acquirer) and not goes_on:
            found.append(Finding(kind=DECIDED, what=f"asked without proof: {step} {status} {code}", payment=ident))
        if goes_on and status not in AUTHENTICATED:
            found.append(Finding(kind=DECIDED, what=f"went on with status {status!r}", payment=ident))
        if step != "done":
            found.append(Finding(kind=DECIDED, what=f"the authentication still stands at {step}", payment=ident))
    return found


def as_decided(books: Books, acquirer: Acquirer, journal: Lines) -> list[Finding]:
    """What a shopper did is what came of it: no answer, or a failed one, asks no acquirer; a challenge that was passed
    asks it, if there is a line to it; that there was none is for audit.unfounded to believe."""
    found = []
    for line in journal:
        if line["kind"] != "shopper" or (payment := books.get(line["id"])) is None:
            continue
        went = was_asked(payment, acquirer) or (not is_stepped_up(payment) and bool(payment.exchanges))
        what = ""
        if line["what"] in NEVER_PASSED and (went or payment.status != "DECLINED"):
            what = f"{line['what']}, and it is {payment.status} {payment.code}"
        turned_away = payment.status == "DECLINED" and payment.code != UNREACHABLE
        if line["what"] in PASSED and line["landed"] and not went and turned_away:
            what = f"{line['what']}, and nobody was asked: {payment.code}"
        if what:
            found.append(Finding(kind=DECIDED, what=what, payment=payment.id))
    return found


def registered(books: Books, journal: Lines, payment_of: Mapping[str, str], aside: Aside) -> list[Finding]:
    """Each approved payment that was asked to register has made exactly one registration; no other has any."""
    wished = {
        payment_of.get(line["key"], "")
        for line in journal
        if line["kind"] == "asks"
        and (line.get("fields", {}).get("createRegistration") == "true" or line.get("path") == "/v1/registrations")
    }
    found = []
    for payment in books.values():
        due = int(payment.id in wished and payment.status == "APPROVED")
        made = len(aside.registrations.get(payment.id, ()))
        if made != due:
            what = f"{made} registrations of a payment that is {payment.status} and was to make {due}"
            found.append(Finding(kind=REGISTRATION, what=what, payment=payment.id))
    found += [
        Finding(kind=REGISTRATION, what="a registration of no payment", payment=ident)
        for ident in aside.registrations
        if ident not in books
    ]
    return found


def sealed(books: Books, aside: Aside) -> list[Finding]:
    """No one-time secret outlives its payment, and no number its authentication or a registration that was not made."""
    found = [Finding(kind=SECRET, what="a security code is still sealed", payment=one) for one in aside.secrets]
    found += [
        Finding(kind=SECRET, what="a number is still sealed for 3-D Secure", payment=one) for one in aside.numbers
    ]
    for ident in aside.waiting:
        if ident not in books or not books[ident].is_open:
            found.append(Finding(kind=SECRET, what="answered, and its suspension is still there", payment=ident))
    found += [
        Finding(kind=SECRET, what=f"a {one.kind} that ended keeps its number", payment=one.id)
        for one in books.values()
        if one.kind in NO_MONEY and not one.is_open and one.keeps_number
    ]
    return found

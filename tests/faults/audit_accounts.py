"""The comparison of accounts: at which of a merchant's accounts, and by which authorization attempt, the acquirer has
the money, held against our books. Pure; finds, never repairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.faults.books import Acquirer, Payment
from tests.faults.finding import DOUBLED, LOST, TWICE, Finding

STUB: Final = "stub"

Books = Mapping[str, Payment]


def find_all(books: Books, acquirer: Acquirer) -> list[Finding]:
    """Every finding of every check."""
    return [*charged_twice(acquirer), *sent_early(acquirer), *at_its_account(books, acquirer), *followed(books)]


def charged_twice(acquirer: Acquirer) -> list[Finding]:
    """No payment is booked by two attempts, at one account or at two."""
    return [
        Finding(kind=DOUBLED, what=f"charged by {len(there)} attempts, at {_list_accounts(there)}", payment=key)
        for key, there in acquirer.booked.items()
        if len(there) > 1
    ]


def sent_early(acquirer: Acquirer) -> list[Finding]:
    """A further attempt comes only after the acquirer declined the one before it."""
    return [
        Finding(kind=TWICE, what=f"{attempt} came, and the attempt before it was not declined", payment=attempt[:32])
        for attempt in acquirer.early
    ]


def at_its_account(books: Books, acquirer: Acquirer) -> list[Finding]:
    """An approved payment is booked by its last attempt, at the account that its row names, where follow-ups go."""
    found = []
    for key, there in acquirer.booked.items():
        payment = books.get(key)
        if payment is None or payment.status != "APPROVED" or len(there) != 1:
            continue  # others are found as lost, or as charged twice
        [(attempt, account)] = there.items()
        if (attempt, account) != (payment.attempt, payment.account):
            what = f"it stands at {account} as {attempt}, here at {payment.account} as {payment.attempt}"
            found.append(Finding(kind=LOST, what=what, payment=key))
    return found


def followed(books: Books) -> list[Finding]:
    """A follow-up is of the account that its payment was approved at."""
    return [
        Finding(kind=LOST, what=f"{one.kind} at {one.account} of a payment at {behind.account}", payment=one.id)
        for one in books.values()
        if one.connector == STUB
        and one.status == "APPROVED"
        and (behind := books.get(one.referenced)) is not None
        and behind.account != one.account
    ]


def count_second_acquirers(books: Books) -> str:
    """How many payments went on after a decline, and how many of them were approved, for a run's table."""
    gone_on = [one for one in books.values() if any(move.event == "cascade" for move in one.moves)]
    return f"{len(gone_on)}, {sum(one.status == 'APPROVED' for one in gone_on)} approved"


def _list_accounts(there: Mapping[str, str]) -> str:
    return ", ".join(f"{account} as {attempt}" for attempt, account in there.items())

"""The comparison of exemptions: what cards used of the limits of low value, by the acquirer's log and by the payments,
held against what our books counted. The limits are written here anew. Pure; finds, never repairs.

Source: EU 2018/389, article 16; docs/decisions/0105.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from tests.faults.books import ISSUER_AUTHENTICATED, NO_USE, ZERO, Acquirer, Aside, Exempted, Payment
from tests.faults.finding import EXEMPTION, OVER, Finding

STUB: Final = "stub"
LOW_VALUE: Final = "LOW_VALUE"
MAX_EACH: Final = Decimal(30)
MAX_TOGETHER: Final = Decimal(100)
MAX_PAYMENTS: Final = 5

Books = Mapping[str, Payment]


def find_all(books: Books, acquirer: Acquirer, aside: Aside) -> list[Finding]:
    """Every finding of every check."""
    return [*asked(books, aside), *used(books, aside), *told(books, acquirer, aside), *authenticated(aside)]


def asked(books: Books, aside: Aside) -> list[Finding]:
    """Each payment that asked was within the limits by the figures that were recorded with it."""
    found = []
    for one in _of_low_value(aside):
        payment = books.get(one.payment)
        if payment is None or one.euros is None or one.payments is None or one.amount is None:
            found.append(Finding(kind=EXEMPTION, what="asked for low value, and not counted", payment=one.payment))
        elif one.euros != payment.amount:
            what = f"counted with {one.euros} EUR, it is of {payment.amount}"
            found.append(Finding(kind=EXEMPTION, what=what, payment=one.payment))
        elif one.euros > MAX_EACH or one.payments > MAX_PAYMENTS or one.amount > MAX_TOGETHER:
            what = f"low value: {one.euros} EUR, payment {one.payments}, {one.amount} EUR together"
            found.append(Finding(kind=OVER, what=what, payment=one.payment))
    return found


def used(books: Books, aside: Aside) -> list[Finding]:
    """Between two strong authentications of a card, what was exempted is within the limits; since the last one it is
    what our books have counted."""
    applied: dict[tuple[str, int | None], list[Decimal]] = defaultdict(list)
    for one in _of_low_value(aside):
        if is_applied(one, books, aside):
            applied[one.card, one.authentications].append(one.euros or ZERO)
    found = [
        Finding(kind=OVER, what=f"low value: {len(euros)} payments of {sum(euros)} EUR since authentication {since}")
        for (_, since), euros in applied.items()
        if len(euros) > MAX_PAYMENTS or sum(euros) > MAX_TOGETHER
    ]
    for card in {one.card for one in _of_low_value(aside)} | set(aside.used):
        use = aside.used.get(card, NO_USE)
        euros = applied.get((card, use.authentications), [])
        if (use.payments, use.amount) != (len(euros), sum(euros, ZERO)):
            what = f"a card counts {use.payments} of {use.amount} EUR, exempted were {len(euros)} of {sum(euros)}"
            found.append(Finding(kind=EXEMPTION, what=what))
    return found


def told(books: Books, acquirer: Acquirer, aside: Aside) -> list[Finding]:
    """What the acquirer has as a payment of low value was counted here, and the reverse."""
    ours = {one.payment for one in _of_low_value(aside) if is_applied(one, books, aside)}
    at_stub = {ident for ident in ours if books[ident].connector == STUB}
    return [
        *(
            Finding(kind=EXEMPTION, what="exempted at the acquirer, not counted here", payment=ident)
            for ident in acquirer.exempted - at_stub
        ),
        *(
            Finding(kind=EXEMPTION, what="counted here, the acquirer knows of no exemption", payment=ident)
            for ident in at_stub - acquirer.exempted
        ),
    ]


def authenticated(aside: Aside) -> list[Finding]:
    """A count goes back to nothing only by a challenge that was passed."""
    return [
        Finding(kind=EXEMPTION, what=f"back to nothing {use.authentications} times, challenges passed: {passed}")
        for card, use in aside.used.items()
        if use.authentications > (passed := aside.challenged.get(card, 0))
    ]


def is_applied(one: Exempted, books: Books, aside: Aside) -> bool:
    """Whether the payment was approved by its exemption: its issuer did not authenticate instead, nor decline first."""
    payment = books.get(one.payment)
    if payment is None or payment.status != "APPROVED":
        return False
    _, status, _ = aside.authentications.get(one.payment, ("", "", ""))
    stepped_up = any(move.event == "step_up" for move in payment.moves)
    return status not in ISSUER_AUTHENTICATED and not stepped_up


def count_exemptions(books: Books, aside: Aside) -> str:
    """How many payments asked for an exemption, and how many were approved by it, for a run's table."""
    applied = sum(is_applied(one, books, aside) for one in aside.exempted)
    most = max((one.payments or 0 for one in aside.exempted), default=0)
    return f"{len(aside.exempted)} asked, {applied} applied; at most {most} of a card, {len(aside.used)} cards"


def _of_low_value(aside: Aside) -> Sequence[Exempted]:
    return [one for one in aside.exempted if one.exemption == LOW_VALUE]

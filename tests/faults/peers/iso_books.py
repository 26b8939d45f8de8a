"""What an ISO 8583 host was told and said, out of the tap's journal, held against our books. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from tests.faults.books import Payment
from tests.faults.finding import DOUBLED, LOST, NO_EVIDENCE, OVER, TWICE, Finding
from tests.faults.peers.iso_tap import ANSWERED, HANDED
from tests.faults.peers.iso_tap import LOST as ANSWER_LOST

APPROVES: Final = "00"
UNDOES: Final = "042"
FOLLOWS: Final = ("CP", "RF")


@dataclass(slots=True, kw_only=True)
class Story:
    """All that the host heard and said of one payment. ``asked``: its first messages, ``repeats`` those that say that
    they are; ``said``: DE39 of the answers to either; ``undone``: of the answers to reversal advices (0420, 0421);
    ``units``: DE4, minor units; ``about``: DE11 of the payment that it follows."""

    stan: str = ""
    asked: int = 0
    repeats: int = 0
    units: int = 0
    about: str = ""
    said: list[str] = field(default_factory=list)
    undoing: int = 0
    undone: list[str] = field(default_factory=list)

    @property
    def stands(self) -> bool:
        """The host granted it, and did not take it back."""
        return APPROVES in self.said and APPROVES not in self.undone


def stories(lines: Iterable[Mapping[str, Any]]) -> dict[str, Story]:
    """Payment → what the host knows of it, out of the journal, oldest line first."""
    found: dict[str, Story] = {}
    for line in lines:
        payment, kind = line.get("63", ""), line.get("t", "")
        if not payment or line["what"] not in (HANDED, ANSWERED, ANSWER_LOST):
            continue
        story = found.setdefault(payment, Story())
        undoes = kind.startswith((UNDOES, "043"))
        if line["what"] != HANDED:
            (story.undone if undoes else story.said).append(line.get("39", ""))
        elif undoes:
            story.undoing += 1
        else:
            again = kind.endswith("1")
            story.repeats += again
            story.asked += not again
            story.stan, story.units = line.get("11", ""), int(line.get("4", "0"))
            story.about = line.get("90", "")[4:10]
    return found


def compare(payments: Mapping[str, Payment], told: Mapping[str, Story]) -> list[Finding]:
    """``payments``: those that this host alone may hold. Our approvals stand there and nothing else does; each was sent
    once; a decline has the host's own word for it, or nothing was sent; and no payment gave more than it had."""
    found = [
        Finding(kind=LOST, what="stands at the ISO 8583 host, we know nothing of it", payment=ident)
        for ident, story in told.items()
        if story.stands and ident not in payments
    ]
    for ident, payment in payments.items():
        found += [
            Finding(kind=kind, what=f"{payment.kind} {payment.status} {payment.code}: {what}", payment=ident)
            for kind, what in _faults(payment, told.get(ident, Story()))
        ]
    return [*found, *_over(payments, told)]


def _faults(payment: Payment, story: Story) -> Iterable[tuple[str, str]]:
    if story.asked > 1:
        yield TWICE, f"the host got it {story.asked} times"
    if payment.status == "APPROVED":
        if not story.stands:
            yield LOST, "approved here, and it does not stand at the host"
        elif story.undoing:
            yield LOST, "approved here, and it was taken back at the host"
        elif payment.kind != "RV" and payment.approved != Decimal(story.units).scaleb(-2):
            yield LOST, f"the host granted {story.units} minor units, here it is {payment.approved}"
    elif story.stands:
        yield LOST, "it stands at the host"
    elif payment.status == "DECLINED" and (story.asked or story.repeats):
        refused = any(code != APPROVES for code in story.said)
        if not refused and APPROVES not in story.undone:
            yield NO_EVIDENCE, "the host neither declined it nor took it back"


def _over(payments: Mapping[str, Payment], told: Mapping[str, Story]) -> Iterable[Finding]:
    of_stan = {story.stan: ident for ident, story in told.items() if story.stan}
    moved: dict[str, int] = {}
    for ident, story in told.items():
        payment = payments.get(ident)
        if payment is not None and payment.kind in FOLLOWS and story.stands:
            first = of_stan.get(story.about, "")
            moved[first] = moved.get(first, 0) + story.units
    for first, units in moved.items():
        if first not in told:
            yield Finding(kind=DOUBLED, what=f"{units} minor units moved of a payment that the host does not have")
        elif units > told[first].units:
            yield Finding(kind=OVER, what=f"at the host: {units} of {told[first].units} minor units", payment=first)

"""Compares the messages of an ISO 8583 host, from the journal of its tap, with our payments. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from tests.faults.books import RENEWS as HOLDS_AGAIN
from tests.faults.books import Payment, chains, hold
from tests.faults.finding import DOUBLED, LOST, NO_EVIDENCE, OVER, TWICE, Finding
from tests.faults.peers.iso_tap import ANSWERED, HANDED
from tests.faults.peers.iso_tap import LOST as ANSWER_LOST

APPROVES: Final = "00"
UNDOES: Final = "042"
RAISES: Final = "3900"
RENEWS: Final = "3903"
"""Part 33 of DE48: an increment, and a renewal, of the authorization that has the same DE37."""
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


def holds(lines: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """First authorization → what a host that answered so holds of it, in minor units: granted and raised, less what was
    captured; after a reversal, what DE95 left. ``lines``: the journal, oldest first."""
    asked: dict[tuple[str, str], Mapping[str, Any]] = {}
    first_by_reference: dict[str, str] = {}
    first_by_number: dict[str, str] = {}
    granted: dict[str, int] = {}
    captured: dict[str, int] = {}
    moved: dict[str, tuple[dict[str, int], str, int]] = {}
    for line in lines:
        kind, payment = line.get("t", ""), line.get("63", "")
        if line["what"] == HANDED:
            asked[f"{kind[:2]}{int(kind[2]) + 1}", payment] = line
        if line["what"] == HANDED or line.get("39") != APPROVES or (kind[:3], payment) not in asked:
            continue
        # A second answer to one question finds nothing: the first one took it.
        question = asked.pop((kind[:3], payment))
        units, reason = int(question.get("4", "0")), question.get("48.33", "")
        # Two payments of a run may share DE11; with the time of DE7 they do not, and DE90 has both.
        number, about = question["11"] + question.get("7", ""), question.get("90", "")[4:20]
        if kind.startswith("011") and number not in moved:
            first = first_by_reference.setdefault(question.get("37", ""), payment)
            first_by_number[number] = first
            units = 0 if reason == RENEWS else units
            granted[first] = granted.get(first, 0) + units
            moved[number] = (granted, first, units)
        elif kind.startswith("023") and about in first_by_number and number not in moved:
            first = first_by_number[about]
            captured[first] = captured.get(first, 0) + units
            moved[number] = (captured, first, units)
        elif kind.startswith("041") and about in first_by_number:
            granted[first_by_number[about]] = int(question["95"][:12]) if "95" in question else 0
        elif kind.startswith("043") and about in moved:
            pot, first, units = moved.pop(about)
            pot[first] -= units
    return {first: units - captured.get(first, 0) for first, units in granted.items()}


def compare_holds(payments: Mapping[str, Payment], held: Mapping[str, int]) -> list[Finding]:
    """What the host holds of an authorization is what our books say is neither captured nor reversed."""
    members = chains(payments.values())
    return [
        Finding(kind=LOST, what=f"the host holds {there} minor units, here it is {here}", payment=ident)
        for ident, there in held.items()
        if (first := payments.get(ident)) is not None
        and Decimal(there).scaleb(-2) != (here := hold(first, members[first.chain]))
    ]


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
            named = of_stan.get(story.about, "")
            # A refund gives back what it names, a debit or a capture. After a renewal a capture names the renewal
            # (docs/decisions/0093): it is of the same authorization.
            source = payments[named].chain if payment.kind == "CP" and named in payments else named
            moved[source] = moved.get(source, 0) + story.units
    for source, units in moved.items():
        if source not in told:
            yield Finding(kind=DOUBLED, what=f"{units} minor units moved of a payment that the host does not have")
        elif units > (most := told[source].units + _raised(source, payments, told)):
            yield Finding(kind=OVER, what=f"at the host: {units} of {most} minor units", payment=source)


def _raised(first: str, payments: Mapping[str, Payment], told: Mapping[str, Story]) -> int:
    """What the host granted of an authorization's increments."""
    more = (one for one in payments.values() if one.chain == first and one.referenced and one.kind == "PA")
    return sum(
        told[one.id].units for one in more if one.practice != HOLDS_AGAIN and one.id in told and told[one.id].stands
    )

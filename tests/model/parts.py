"""A checkout that is paid in parts: a model of what is held, and the machine that compares the form's API with it.

Source: docs/decisions/0129.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import ClassVar

from django.db.models import QuerySet
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.core import clock
from gateway.models import Merchant, OpenPayment, Payment, Status
from gateway.payments import held_parts
from gateway.payments.shopper_return import expire_due_suspensions
from tests.model.books import APPROVED, OVER
from tests.model.machine import AMOUNTS, CARDS, DECLINED, SIZES, text
from tests.support.client import Answer, Api
from tests.support.clock import jump
from tests.support.recovery import recover_after
from tests.support.shopper import Browser, open_checkout

HELD, NOT_FOUND = "000.200.000", "200.300.404"
NO_AMOUNT, MAX_CENTS = "200.300.404", 999_999_999_999
IN_DOUBT, BUSY = "000.200.001", "800.120.402"
MOST_PARTS = 3
HELD_MINUTES, OPEN_MINUTES = 15, 30
FOLLOWED_BY = {"DB": "RF", "PA": "CP"}


@dataclass(slots=True, kw_only=True)
class PartBooks:
    """What a careful bookkeeper knows of one checkout, in cents. ``held``: what each card holds, by its name;
    ``returning``: places of the parts, oldest first, that are being given back and not confirmed; ``last``: the place
    of the last of them; ``paid``: what of each payment may still be captured or refunded; ``touched``: the minute of
    the last attempt."""

    total: int
    held: list[tuple[str, int]] = field(default_factory=list)
    returning: list[int] = field(default_factory=list)
    last: int = 0
    paid: list[int] = field(default_factory=list)
    minute: int = 0
    touched: int = 0

    @property
    def rest(self) -> int:
        return self.total - sum(cents for _, cents in self.held)

    @property
    def state(self) -> str:
        if self.paid:
            return "done"
        if self.returning or (self.held and self.minute >= OPEN_MINUTES):
            return "processing"
        return "expired" if self.minute >= OPEN_MINUTES else "open"

    def pay(self, card: str) -> str:
        """The code that an attempt with ``card`` is answered with; '' where there is no checkout any more."""
        if self.minute >= OPEN_MINUTES:
            return ""
        if self.paid:
            return APPROVED
        if self.returning:
            return IN_DOUBT if self.last in self.returning else BUSY
        if card in dict(self.held):
            return HELD
        self.touched = self.minute
        granted = max(1, self.rest // 2) if card == "half" else self.rest
        if card == "declined" or (granted < self.rest and len(self.held) == MOST_PARTS):
            return DECLINED
        if granted < self.rest:
            self.held.append((card, granted))
            return HELD
        self.paid, self.held = [*(cents for _, cents in self.held), granted], []
        return APPROVED

    def forget_cards(self) -> None:
        """Each card counts as another one from now on."""
        self.held = [("", cents) for _, cents in self.held]

    def give_back(self) -> None:
        self.returning = list(range(len(self.held)))
        self.last, self.held = len(self.held) - 1, []

    def confirm(self, place: int | None = None) -> None:
        """The acquirer has taken back the part at ``place``, or all of them."""
        self.returning = [one for one in self.returning if place is not None and one != place]

    def pass_time(self, minutes: int, *, timer: bool) -> None:
        self.minute += minutes
        if timer and not self.paid and self.minute >= min(self.touched + HELD_MINUTES, OPEN_MINUTES):
            self.give_back()
        if timer:
            self.confirm()


class PartMachine(RuleBasedStateMachine):
    """One checkout of one merchant, in EUR."""

    api: ClassVar[Api]
    tally: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        type(self).tally["sequences"] += 1

    @initialize(kind=st.sampled_from(["DB", "PA"]), cents=AMOUNTS)
    def begin(self, kind: str, cents: int) -> None:
        Merchant.objects.update(clock_offset=timedelta(0))
        recover_after(3_600.0)  # what the sequence before has left
        self.kind, self.books = kind, PartBooks(total=cents)
        self.browser: Browser = open_checkout(self.api, paymentType=kind, amount=text(cents))

    @rule(
        card=st.sampled_from(["half", "half", "half", "plain", "declined"]),
        is_another=st.sampled_from([True, True, True, False]),
    )
    def pay(self, card: str, is_another: bool) -> None:
        if is_another:
            self._made().update(means_fingerprint=None)
            self.books.forget_cards()
        code = self.books.pay(card)
        answer = self.browser.pay(card__number=CARDS[card])
        self._note(f"pay {card}", answer, code)
        assert answer.code == (code or NOT_FOUND), "\n".join(self.told)
        if code:
            self._compare(answer)
        else:
            assert answer.body["state"] == "expired", "\n".join(self.told)

    @rule(is_confirmed=st.sampled_from([True, True, False]))
    def release(self, is_confirmed: bool) -> None:
        answer = self.browser.release()
        is_open = self.books.minute < OPEN_MINUTES
        self._note("release", answer, "")
        assert answer.status == (200 if is_open else 404), "\n".join(self.told)
        if not (is_open and self.books.held):
            return
        assert answer.body["state"] == "processing", "\n".join(self.told)
        self.books.give_back()
        self.returned = list(OpenPayment.objects.order_by("payment__created_at", "pk").values_list("pk", flat=True))
        if is_confirmed:
            assert recover_after(2.0).settled == len(self.books.returning), "\n".join(self.told)
            self.books.confirm()

    @precondition(lambda self: hasattr(self, "books") and self.books.returning)
    @rule(which=st.integers(0, 9))
    def confirm(self, which: int) -> None:
        """The acquirer answers about one of the parts that are being given back."""
        place = self.books.returning[which % len(self.books.returning)]
        OpenPayment.objects.exclude(pk=self.returned[place]).update(recover_at=clock.real_now() + timedelta(hours=1))
        assert recover_after(2.0).settled == 1, "\n".join(self.told)
        OpenPayment.objects.update(recover_at=clock.real_now())
        self.books.confirm(place)
        self.told.append(f"part {place} is taken back")

    @rule(minutes=st.sampled_from([1, 5, 10, 14, 16]), timer=st.booleans())
    def pass_time(self, minutes: int, timer: bool) -> None:
        jump(60 * minutes)
        if timer:
            expire_due_suspensions()
            recover_after(2.0)
        self.books.pass_time(minutes, timer=timer)
        self.told.append(f"{minutes} minutes later{', timers' if timer else ''}")

    @rule(which=st.integers(0, 9), size=st.sampled_from(sorted(SIZES)))
    def follow(self, which: int, size: str) -> None:
        """A refund or capture of one of the payments; before the whole amount is there, none."""
        made = list(self._made().exclude(status=Status.DECLINED).order_by("created_at", "id"))
        if not made:
            return
        place, kind = which % len(made), FOLLOWED_BY[self.kind]
        left = self.books.paid[place] if self.books.paid else 0
        cents = max(1, SIZES[size](left))
        answer = self.api.follow(made[place].id.hex, kind, text(cents))
        code = (APPROVED if cents <= left else OVER[kind]) if self.books.paid else "700.400.570"
        if cents > MAX_CENTS:
            code = NO_AMOUNT
        self._note(f"{kind} {cents} of {left}", answer, code)
        assert answer.code == code, "\n".join(self.told)
        if code == APPROVED:
            self.books.paid[place] -= cents

    @invariant()
    def all_or_nothing(self) -> None:
        """Never more than the amount is held or taken; nothing is success before all of it is there."""
        if not hasattr(self, "books"):
            return
        made = list(self._made())
        approved = [one for one in made if one.status == Status.APPROVED]
        taken = sum((one.approved_amount or Decimal(0) for one in approved), Decimal(0))
        held = held_parts.sum_held([one for one in made if held_parts.is_held(one)])
        assert taken in (0, Decimal(self.books.total) / 100), "\n".join(self.told)
        assert held == sum(Decimal(cents) / 100 for _, cents in self.books.held), "\n".join(self.told)
        assert not (taken and held), "\n".join(self.told)
        state = self.browser.state().body
        assert state["state"] == self.books.state, "\n".join(self.told)

    def _made(self) -> QuerySet[Payment]:
        path = f"/v1/checkouts/{self.browser.checkout}/payment"
        return Payment.objects.filter(resource_path=path, referenced=None)

    def _compare(self, answer: Answer) -> None:
        """The answer's state, and what it says is held."""
        assert answer.body["state"] == self.books.state, "\n".join(self.told)
        if self.books.state != "open":
            assert "held" not in answer.body, "\n".join(self.told)
            return
        told = answer.body.get("held", {"parts": [], "rest": text(self.books.total)})
        amounts = [one["amount"] for one in told["parts"]]
        assert amounts == [text(cents) for _, cents in self.books.held], "\n".join(self.told)
        assert told["rest"] == text(self.books.rest), "\n".join(self.told)

    def _note(self, what: str, answer: Answer, code: str) -> None:
        type(self).tally["steps"] += 1
        type(self).tally[f"{what.split()[0]} {code}"] += 1
        self.told.append(f"{what}: {answer.code} {answer.body.get('state')}; the model says {code} {self.books}")

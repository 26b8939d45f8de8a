"""The machine: random sequences of operations, sent to the real API and asked of the model; they have to agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.models import Merchant
from tests.model.books import APPROVED, CHARGED_BACK, MAY_FOLLOW, Books, Entry, broken_rules
from tests.support.client import Answer, Api
from tests.support.clock import jump

CARDS = {
    "plain": "4200000000000000",
    "half": "4000050000000007",
    "declined": "4000015500000005",
    "silent": "4000090003000000",
}
DECLINED, SILENT = "800.100.155", "000.200.001"
FOLLOW_UPS = ("CP", "CP", "CP", "RF", "RF", "RV", "RB", "RC", "CB", "CB", "CR", "INC", "REN")
DAY_S = 86_400
NUMBERS = st.integers(min_value=0, max_value=999)
PRACTICE = {"INC": "INCREMENTAL_AUTH", "REN": "REAUTHORIZATION"}
Size = Callable[[int], int]
SIZES: dict[str, Size] = {
    "all": lambda most: most,
    "a cent more": lambda most: most + 1,
    "a cent less": lambda most: most - 1,
    "half": lambda most: most // 2,
    "a third": lambda most: most // 3,
    "a cent": lambda most: 1,
    "much more": lambda most: most * 2 + 100,
}
"""Amounts around the boundary, from the most that the model would allow."""
AMOUNTS = st.one_of(
    st.sampled_from([1, 2, 99, 100, 101, 10_000, 999_999_999_999]), st.integers(min_value=1, max_value=20_000)
)


class ChainMachine(RuleBasedStateMachine):
    """One chain of one merchant, in EUR."""

    api: ClassVar[Api]
    tally: ClassVar[Counter[str]] = Counter()
    """What happened in all runs: "sequences", "steps", "kind code"."""

    def __init__(self) -> None:
        super().__init__()
        self.books = Books()
        self.told: list[str] = []
        type(self).tally["sequences"] += 1

    @initialize(
        kind=st.sampled_from(["PA", "PA", "PA", "DB", "DB", "CD"]),
        cents=AMOUNTS,
        card=st.sampled_from([*["plain"] * 9, "half", "half", "declined", "silent"]),
        captures=st.sampled_from([None, None, None, 1, 2, 3]),
        final=st.sampled_from([False] * 5 + [True]),
    )
    def begin(self, kind: str, cents: int, card: str, captures: int | None, final: bool) -> None:
        fields: dict[str, str] = {"numberOfCaptures": str(captures)} if captures and kind == "PA" else {}
        fields |= {"sequence": "FINAL"} if final else {}
        Merchant.objects.update(clock_offset=timedelta(0))
        answer = self.api.pay(paymentType=kind, amount=text(cents), card__number=CARDS[card], **fields)
        state, moved = self.books.open(kind, cents, card=card, captures=captures)
        self._compare(kind, answer, {"done": APPROVED, "failed": DECLINED, "open": SILENT}[state], moved or cents)
        self.books.enter_first(answer.id, kind, state, moved, captures)

    @rule(
        what=NUMBERS,
        whom=NUMBERS,
        wild=st.sampled_from([False] * 9 + [True]),
        size=st.sampled_from(sorted(SIZES)),
        final=st.sampled_from([False] * 9 + [True]),
        currency=st.sampled_from(["EUR"] * 12 + [None, "USD"]),
        by_reference=st.booleans(),
        days=st.sampled_from([0] * 12 + [1, 2, 5, 6]),
    )
    def follow(
        self,
        what: int,
        whom: int,
        wild: bool,
        size: str,
        final: bool,
        currency: str | None,
        by_reference: bool,
        days: int,
    ) -> None:
        """Mostly what may follow something, by the types alone; when ``wild``, anything after anything. ``days``: so
        much later."""
        if days:
            jump(days * DAY_S)
            self.books.day += days
            self.told.append(f"{days} days later")
        kinds = list(FOLLOW_UPS) if wild else [kind for kind in FOLLOW_UPS if self._fitting(kind)]
        if not kinds:
            return
        kind = kinds[what % len(kinds)]
        fitting = self.books.entries if wild else self._fitting(kind)
        behind = fitting[-1 - whom % len(fitting)]
        if kind in PRACTICE:
            self._follow(behind, kind, self._cents(kind, behind, size), False, "EUR", by_reference=by_reference)
        elif kind == "RV" and by_reference:
            self._follow(behind, kind, None, final, None)
        else:
            self._follow(behind, kind, self._cents(kind, behind, size), final, currency)

    def _fitting(self, kind: str) -> list[Entry]:
        return [entry for entry in self.books.entries if entry.type in MAY_FOLLOW[kind] and entry.state != "failed"]

    @invariant()
    def nothing_is_given_twice(self) -> None:
        assert broken_rules(self.books.entries) == [], self.told

    def _cents(self, kind: str, behind: Entry, size: str) -> int:
        most = self.books.most(kind, behind)
        return min(max(SIZES[size](5_000 if most is None else max(most, 0)), 1), 999_999_999_999)

    def _follow(
        self,
        behind: Entry,
        kind: str,
        cents: int | None,
        final: bool,
        currency: str | None,
        *,
        by_reference: bool = False,
    ) -> None:
        fields = {"paymentType": "PA" if kind in PRACTICE else kind}
        if kind in PRACTICE:
            fields["standingInstruction.industryPractice"] = PRACTICE[kind]
        if cents is not None:
            fields["amount"] = text(cents)
        if currency is not None:
            fields["currency"] = currency
        if final:
            fields["sequence"] = "FINAL"
        if by_reference:
            answer = self.api.post("/v1/payments", {**fields, "referenceUuid": behind.id})
        else:
            answer = self.api.post(f"/v1/payments/{behind.id}", fields)
        code = self.books.refusal(kind, behind, cents, currency)
        most = self.books.most(kind, behind)
        granted = code or (CHARGED_BACK if kind == "CB" else APPROVED)
        entry = self.books.enter(answer.body.get("id", ""), kind, behind, cents, code=code, final=final)
        self._compare(f"{kind} on {behind}, at most {most}", answer, granted, None if code else entry.moved)

    def _compare(self, what: str, answer: Answer, code: str, moved: int | None) -> None:
        kind = what[:3].strip()
        type(self).tally["steps"] += 1
        type(self).tally[f"{kind} {code}"] += 1
        self.told.append(f"{what}: {answer.code} {answer.body.get('amount')}; the model says {code} {moved}")
        assert answer.code == code, "\n".join(self.told)
        assert answer.status == (200 if code in (APPROVED, CHARGED_BACK, SILENT) else 400), answer
        if moved is not None:
            assert answer.body["amount"] == text(moved), "\n".join(self.told)


def text(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"

"""Subscription jobs under fire: plans that charge every few seconds, and one payment for each due time.

The runs are paid at the acquirer that keeps a log of its own, so that what it was asked is compared with the books like
any other payment. Here the plans are compared with their runs: between a plan's beginning and its end every due time
was charged once, or is one of those that came too late to be made up for.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.faults.client import Client, Journal
from tests.faults.faults import Strike
from tests.faults.faults_away import JOURNAL
from tests.faults.finding import DOUBLED, LOST, Finding
from tests.faults.races import Shop
from tests.faults.stack import Stack

PLANS: Final = 4
EVERY_S: Final = 5
MAX_TRIES: Final = 10
"""To store a card for a plan."""
_CARD: Final = {
    "paymentBrand": "VISA", "card.number": "4200000000000000", "card.holder": "Jane Jones", "card.expiryMonth": "05",
    "card.expiryYear": "2034", "card.cvv": "123", "testMode": "EXTERNAL",
}  # fmt: skip
_PLAN: Final = {
    "amount": "9.90", "currency": "EUR", "paymentType": "DB", "testMode": "EXTERNAL",
    "job.expression": f"0/{EVERY_S} * * * * ?",
}  # fmt: skip
_OWED: Final = """
SELECT (SELECT count(*) FROM scheduling_jobrun WHERE state = 'OPEN')
    + (SELECT count(*) FROM scheduling_job WHERE next_at <= %s)
"""
_SEE_AGAIN: Final = "UPDATE scheduling_jobrun SET next_at = at WHERE state = 'OPEN' AND next_at > %s"
_RUNS: Final = """
SELECT replace(job_id::text, '-', ''), due_at, missed_until, state, replace(payment::text, '-', '')
FROM scheduling_jobrun ORDER BY job_id, due_at
"""
_PAID: Final = """
SELECT replace(id::text, '-', ''), answer #>> '{facts,schedule,id}', answer #>> '{facts,schedule,dueAt}', status
FROM gateway_payment WHERE answer #> '{facts,schedule,dueAt}' IS NOT NULL
"""


class Jobs:
    """See the module. ``plans``: id of a job → when it was made and when it was ended, seconds since 1970."""

    name = "subscription jobs"

    def __init__(self, stack: Stack, shop: Shop, seed: int) -> None:
        self.broken: list[str] = []
        self.plans: dict[str, tuple[float, float]] = {}
        self._stack, self._shop, self._seed = stack, shop, seed
        self._counts: dict[str, int] = defaultdict(int)

    def start(self) -> None:
        client = self._client()
        for number in range(PLANS):
            # The acquirer may be struck already: a card without an answer is let go, and another one stored.
            for turn in range(MAX_TRIES):
                card = client.pay(f"job-card-{self._seed}-{number}-{turn}", _CARD, path="/v1/registrations")
                if card is not None and card.is_approved:
                    break
            else:
                self.broken.append(f"{self.name}: no registration: {card and card.code}")
                continue
            fields = {**_PLAN, "registrationId": card.id}
            made = client.pay(f"job-plan-{self._seed}-{number}", fields, path="/v1/schedules")
            if made is None or not made.is_approved:
                self.broken.append(f"{self.name}: no plan: {made and made.body}")
                continue
            self.plans[made.id] = (time.time(), 0.0)
        client.close()

    def stop(self) -> bool:
        """Every plan is ended; it charges no more from then on."""
        client = self._client()
        for ident, (began, _) in self.plans.items():
            ended = client.pay(f"job-end-{ident}", {}, path=f"/v1/schedules/{ident}/deschedule")
            if ended is None or not ended.is_approved:
                self.broken.append(f"{self.name}: {ident} did not end: {ended and ended.body}")
            self.plans[ident] = (began, time.time())
        client.close()
        return True

    def owed(self) -> int:
        """Runs whose payment is not answered yet are looked at again at once, so that nobody waits for their minute."""
        now = datetime.now(UTC)
        with self._stack.connect() as connection:
            connection.execute(_SEE_AGAIN, (now,))
            row = connection.execute(_OWED, (now,)).fetchone()
        return int(row[0]) if row else -1

    def findings(self, strikes: Sequence[Strike]) -> list[Finding]:
        with self._stack.connect() as connection:
            runs = connection.execute(_RUNS).fetchall()
            paid = connection.execute(_PAID).fetchall()
        of_plan: dict[str, list[Any]] = defaultdict(list)
        for run in runs:
            of_plan[run[0]].append(run)
            self._counts[run[3]] += 1
        found = [one for ident, times in self.plans.items() for one in _gaps(ident, times, of_plan[ident])]
        granted: dict[tuple[str, str], list[str]] = defaultdict(list)
        for payment, job, due, status in paid:
            if status == "APPROVED":
                granted[job, due].append(payment)
        found += [
            Finding(kind=DOUBLED, what=f"{job} was charged {len(several)} times for {due}", payment=several[0])
            for (job, due), several in granted.items()
            if len(several) > 1
        ]
        known = {run[4] for run in runs}
        found += [
            Finding(kind=LOST, what=f"a payment of {job} that no run knows", payment=payment)
            for payment, job, _, status in paid
            if status == "APPROVED" and payment not in known
        ]
        return found

    def told(self) -> str:
        states = ", ".join(f"{number} {state}" for state, number in sorted(self._counts.items()))
        return f"{len(self.plans)} plans, every {EVERY_S} s: {states or 'no run'}"

    def _client(self) -> Client:
        return self._shop.client(Journal(path=self._stack.folder / JOURNAL))


def _gaps(ident: str, times: tuple[float, float], runs: Sequence[Any]) -> list[Finding]:
    """Due times between a plan's beginning and its end that no run is about."""
    began, ended = times
    step = timedelta(seconds=EVERY_S)
    first = datetime.fromtimestamp((int(began) // EVERY_S + 1) * EVERY_S, UTC)
    last = datetime.fromtimestamp(ended, UTC) - 2 * step
    stood_for = set()
    for _, due, missed_until, _, _ in runs:
        until = missed_until or due
        while due <= until:
            stood_for.add(due)
            due += step
    found, due = [], first
    while due < last:
        if due not in stood_for:
            found.append(Finding(kind=LOST, what=f"{ident} was not charged for {due:%H:%M:%S}, and nothing says why"))
        due += step
    return found

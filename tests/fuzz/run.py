"""One process of the fuzz: requests from a seed through the WSGI application, each under the meter."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from django.contrib.auth.models import User
from django.test import Client

from gateway.api.api_paths import is_api_path
from gateway.api.wsgi_handler import build_wsgi_application
from gateway.models import Division, Psp
from tests.fuzz.hostile import EDGES, Request, made
from tests.fuzz.meter import Cost, Kept, kept, measured, traced
from tests.fuzz.routes import routes
from tests.support.client import payment
from tests.support.fixtures import Shop, open_shop
from tests.support.office import signed_in

MB: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a request may cost. Source: goals, P17 and P18."""

    cpu_s: float
    memory: int
    files: bool


REFUSED: Final = Bound(cpu_s=0.005, memory=2 * MB, files=False)
"""A stranger's request that is turned away."""
ADMITTED: Final = Bound(cpu_s=1.0, memory=64 * MB, files=True)
"""A request of a token, a session or a checkout, and a public page."""
STRANGERS: Final = 0.75
"""Of all requests. The others of an API route carry a token, those of a page the session of a superuser."""
API_ROUNDS: Final = 4
"""The routes of the API are a tenth of all, and have the most to parse: they come so often in a round."""
EXACT_ROUNDS: Final = 16
"""In the first of so many rounds of all routes memory is counted exactly, and more bodies are large."""
EXACT_EDGES: Final = 0.4
KEPT_EVERY: Final = 10_000
"""After so many requests, at a round's end: what does the process hold?"""
CHECKED_AGAIN: Final = 8
"""A request that took too much is sent again up to so often, and the least counts: the first loads what all need, and
on a busy machine the thread's CPU includes what others cost it (caches, interrupts)."""
REPORT_EVERY_S: Final = 15.0


@dataclass(slots=True)
class Row:
    """What the requests of one kind of caller and one kind of answer took at most."""

    number: int = 0
    exact: int = 0
    cpu_s: float = 0.0
    cpu_of: str = ""
    memory: int = 0
    memory_of: str = ""
    files: int = 0


@dataclass(slots=True)
class Found:
    """The result of a run. ``faults``: requests that were answered 5xx or cost more than they may."""

    number: int = 0
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    touched: Counter[str] = field(default_factory=Counter)
    rows: dict[str, Row] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Take the result of another process in."""
        self.number += other.number
        self.seconds = max(self.seconds, other.seconds)
        self.statuses += other.statuses
        self.touched += other.touched
        self.faults += other.faults
        self.kept += other.kept
        for name, row in other.rows.items():
            own = self.rows.setdefault(name, Row())
            own.number += row.number
            own.exact += row.exact
            own.files += row.files
            if row.cpu_s > own.cpu_s:
                own.cpu_s, own.cpu_of = row.cpu_s, row.cpu_of
            if row.memory > own.memory:
                own.memory, own.memory_of = row.memory, row.memory_of


class Fuzz:
    """A merchant, a clerk, and requests to every route."""

    def __init__(self, seed: int, *, judges_cpu: bool = True) -> None:
        self._chance = random.Random(seed)
        self._judges_cpu = judges_cpu
        self._application = build_wsgi_application()
        self._routes = routes()
        division = Division.objects.create(name=f"Fuzz {seed}", psp=Psp.objects.create(name=f"Fuzz {seed}"))
        self._shop: Shop = open_shop(division, f"Fuzz {seed}")
        self._user = User.objects.create_superuser(f"fuzz-{seed}")
        self._client = self._signed_in()
        self._known = self._ids()
        self.found = Found()
        self._stopped = False

    def _signed_in(self) -> Client:
        return signed_in(User.objects.filter(pk=self._user.pk).first() or User.objects.create_superuser("again"))

    def _ids(self) -> dict[str, list[str]]:
        api = self._shop.api
        paid = api.pay().id
        checkout = api.post("/v1/checkouts", {"amount": "1.00", "currency": "EUR", "paymentType": "DB"}).id
        self._checkout = checkout
        asked = api.post("/v1/payments", payment(paymentBrand="PAYPAL", card__number=None)).body
        texts = [paid, checkout, self._shop.channel.entity_id, str(asked.get("id") or paid), "en", "payment", "gateway"]
        ids = [paid, self._shop.merchant.pk.hex, self._shop.channel.pk.hex]
        uuids = [f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}" for one in ids]
        return {
            "str": texts,
            "uuid": uuids,
            "int": ["1", str(self._user.pk)],
            "slug": ["payment", "guide"],
            "path": [*uuids, str(self._user.pk), "1"],
        }

    def go(self, *, number: int, seconds: float, report: Callable[[Found], None] = lambda found: None) -> Found:
        """``number`` requests, or fewer when the time is over or :meth:`stop` was called. ``report``: is called with
        what was found so far, every few seconds and at the end."""
        started = reported = time.monotonic()
        with closing(self._requests()) as requests:
            for request in requests:
                now = time.monotonic()
                self.found.seconds = now - started
                if self.found.number >= number or now - started > seconds or self._stopped:
                    break
                if now - reported > REPORT_EVERY_S:
                    reported = now
                    report(self.found)
                self._judge(request)
        report(self.found)
        return self.found

    def stop(self) -> None:
        """End after the request that is being made."""
        self._stopped = True

    def _requests(self) -> Generator[Request, None, None]:
        for round_number in itertools.count():
            exactly = round_number % EXACT_ROUNDS == 0
            with traced(exactly):
                yield from self._round(edges=EXACT_EDGES if exactly else EDGES)
            if self.found.number // KEPT_EVERY > len(self.found.kept):
                self.found.kept.append(kept(self.found.number))

    def _round(self, edges: float) -> Iterator[Request]:
        """A request to each route, several to those of the API, in any order."""
        order = [route for route in self._routes for _ in range(API_ROUNDS if is_api_path(route.text) else 1)]
        self._chance.shuffle(order)
        for route in order:
            request = made(self._chance, route, self._known, self._shop.channel.entity_id, edges)
            self.found.touched[route.text] += 1
            insider = "token" if is_api_path(route.text) else "clerk"
            yield self._as(request, "stranger" if self._chance.random() < STRANGERS else insider)

    def _as(self, request: Request, who: str) -> Request:
        if who == "token":
            return replace(request, who=who, sent={"Authorization": f"Bearer {self._shop.api.token}"})
        if who == "clerk":
            token = "t" * 32
            cookies = {name: found.value for name, found in self._client.cookies.items()} | {"csrftoken": token}
            cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
            return replace(
                request, who=who, sent={"Cookie": cookie, "X-CSRFToken": token, "Origin": "http://testserver"}
            )
        # The id of an open checkout is what lets a shopper in; no stranger can guess its 128 bits.
        return replace(request, who="shopper") if self._checkout in request.path else request

    def _answered(self, request: Request) -> tuple[int, int]:
        """The status, and how many bytes the answer has."""
        got: list[str] = []
        answer = self._application(request.environ(), lambda status, _headers, _fault=None: got.append(status))
        try:
            length = sum(len(piece) for piece in answer)
        finally:
            getattr(answer, "close", lambda: None)()  # an answer to HEAD has none
        return int(got[0].split()[0]), length

    def _judge(self, request: Request) -> None:
        (status, _), cost = measured(lambda: self._answered(request))
        bound = REFUSED if request.who == "stranger" and status >= 300 else ADMITTED
        if self._is_over(cost, bound):
            cost = self._least(request, cost, bound)
        self._keep(request, status, cost, bound)
        if request.who == "clerk" and (status in (302, 403)):
            self._client = self._signed_in()

    def _is_over(self, cost: Cost, bound: Bound) -> bool:
        # The process grows by whole arenas and by what others leave behind: only Python's own count is exact to 2 MB.
        memory = cost.memory > bound.memory and (cost.exact or bound is ADMITTED)
        return (self._judges_cpu and cost.cpu_s > bound.cpu_s) or memory or (bool(cost.files) and not bound.files)

    def _least(self, request: Request, cost: Cost, bound: Bound) -> Cost:
        for _ in range(CHECKED_AGAIN):
            again = measured(lambda: self._answered(request))[1]
            cost = replace(
                cost,
                cpu_s=min(cost.cpu_s, again.cpu_s),
                memory=min(cost.memory, again.memory),
                files=cost.files or again.files,
            )
            if not self._is_over(cost, bound):
                break
        return cost

    def _keep(self, request: Request, status: int, cost: Cost, bound: Bound) -> None:
        found, name = self.found, f"{request.who}: {'turned away' if bound is REFUSED else 'answered'}"
        found.number += 1
        found.statuses[status] += 1
        row = found.rows.setdefault(name, Row())
        row.number += 1
        row.exact += cost.exact
        row.files += bool(cost.files)
        told = f"{request.method} {request.path[:80]} ({request.about}, {len(request.body):,} bytes) → {status}"
        if cost.cpu_s > row.cpu_s:
            row.cpu_s, row.cpu_of = cost.cpu_s, told
        if cost.exact and cost.memory > row.memory:
            row.memory, row.memory_of = cost.memory, told
        if (status >= 500 and status != 501) or self._is_over(cost, bound):
            headers = {key: f"{value[:40]} ({len(value):,})" for key, value in request.headers.items()}
            found.faults.append(
                f"{told}, by a {request.who}: {cost.cpu_s * 1000:.1f} ms, {cost.memory / MB:.1f} MB, "
                f"{list(cost.files)[:3]}, query {request.query[:200]!r} ({len(request.query):,}), headers {headers}"
            )

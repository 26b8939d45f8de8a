"""Stored cards under fire: their network tokens, the account updater, and the number that each payment was sent with.

Clients store cards, charge them by click and on the merchant's initiative, and are the network of some tokens. The
account updater is asked before charges and by file; the program that writes and reads its files is killed again and
again. The comparison is of what our books say of each payment with the number that the acquirer's log has, and of what
the updater said with what became of the card. That money is not lost or doubled is the comparison of all payments.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import psycopg

from tests.faults.client import Answer, Client, Journal, follow_up
from tests.faults.faults import Strike
from tests.faults.finding import DOUBLED, LOST, OPEN, OTHER_NUMBER, Finding
from tests.faults.peers.opening import Opened, open_shops
from tests.faults.peers.opening import Shop as OpenedShop
from tests.faults.races import Shop
from tests.faults.stack import NotUpError, Stack

CLIENTS: Final = 2
PAUSE_S: Final = (0.02, 0.12)
SETTLED_WITHIN_S: Final = 25.0
ASK_EVERY_S: Final = 0.5
FILES_EVERY_S: Final = 15.0
KILLED_AFTER_S: Final = (1.0, 4.0)
"""The program of the files is killed so long after its start, every other time: while it starts, asks or applies."""
FILES_WITHIN_S: Final = 60.0
PLAIN: Final = "4200000000000000"
NEW_NUMBER, NEW_EXPIRY, CLOSED, HOLDER = (
    f"42000002{rest}" for rest in ("01000007", "03000005", "04000004", "05000003")
)
# Card → how often: renewed or closed by the updater; tokens that work, are declined, get no cryptogram, are refused.
CARDS: Final = (
    (NEW_NUMBER, 20), (NEW_EXPIRY, 10), (CLOSED, 8), (HOLDER, 8), (PLAIN, 24), ("4200000103000006", 14),
    ("4200000102000007", 8), ("4200000101000008", 8),
)  # fmt: skip
SAID: Final = {NEW_NUMBER: "NEW_NUMBER", NEW_EXPIRY: "NEW_EXPIRY", CLOSED: "CLOSED", HOLDER: "CONTACT_HOLDER"}
RENEWED_LAST4: Final = "0006"
"""Of the number that the simulated updater gives in place of NEW_NUMBER."""
BLOCKING: Final = frozenset({"CLOSED", "CONTACT_HOLDER"})
CHANGING: Final = frozenset(SAID.values())
OWN_SHARE: Final = 0.6
FOLLOWED_SHARE: Final = 0.4
BY_FILE_SHARE: Final = 0.4
"""Stored cards that the merchant does not charge on its own, so that a file asks about them first."""
NETWORK_SHARE: Final = 0.5
AFTER_EVENT: Final = {"SUSPENDED": "SUSPENDED", "RESUMED": "ACTIVE", "REPLACED": "ACTIVE"}
USED, DECLINED_TOKEN = "USED", "DECLINED"
DOCUMENT: Final = {
    "acquirers": {"accounts": [{"connector": "stub", "merchant": "STUB-stored"}]},
    "channel": {"networkTokens": True, "accountUpdater": True},
}
_NAME: Final = "Stored cards"
_CIT: Final = {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}
_MIT: Final = {
    "standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT",
    "standingInstruction.type": "UNSCHEDULED",
}  # fmt: skip
# Both timers, as beat would wake them at their hour.
_FILES: Final = """
from gateway.timers.registry import run_timer_now
for name in ("account updater questions", "account updater"):
    run_timer_now(name)
"""
_AT_ONCE: Final = (
    "UPDATE gateway_networktoken SET due_at = %(now)s WHERE due_at > %(now)s",
    "UPDATE gateway_accountupdatefile SET due_at = %(now)s WHERE state IN ('UNSENT', 'SENT') AND due_at > %(now)s",
)
_OWED: Final = """
SELECT (SELECT count(*) FROM gateway_networktoken WHERE due_at IS NOT NULL),
    (SELECT count(*) FROM gateway_accountupdatefile WHERE state IN ('UNSENT', 'SENT'))
"""
_PAYMENTS: Final = """
SELECT replace(p.id::text, '-', ''), coalesce(replace(p.referenced::text, '-', ''), ''), p.payment_type, p.status,
    coalesce(p.answer ->> 'networkToken', ''), coalesce(p.answer #>> '{card,last4Digits}', ''),
    coalesce(replace(p.registration::text, '-', ''), ''), p.created_at,
    p.request #>> '{standingInstruction,source}' = 'MIT'
FROM gateway_payment p WHERE p.channel_id = %s::uuid
"""
_CARDS: Final = """
SELECT replace(r.id::text, '-', ''), r.sequence, r.account_update, r.details #>> '{card,last4Digits}',
    coalesce(t.status, ''),
    (SELECT count(*) FROM gateway_payment c WHERE c.referenced = r.id AND c.payment_type = 'RR'),
    (SELECT count(*) FROM gateway_notification n JOIN gateway_payment c ON c.id = n.payment_id
        WHERE c.referenced = r.id AND c.payment_type = 'RR')
FROM gateway_registration r LEFT JOIN gateway_networktoken t ON t.registration_id = r.id
WHERE r.channel_id = %s::uuid
"""
_UPDATES: Final = """
SELECT replace(u.registration_id::text, '-', ''), u.status, u.answered_at, u.file_id IS NOT NULL
FROM gateway_accountupdate u JOIN gateway_registration r ON r.id = u.registration_id WHERE r.channel_id = %s::uuid
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The number of a submission in the acquirer's log: a card's or a token's, masked."""

    is_token: bool
    number: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A payment of the channel in our books. ``use``: of its card's network token, '' where it has none that works;
    ``last4``: of the card; ``is_own``: on the merchant's initiative."""

    id: str
    referenced: str = ""
    kind: str = "DB"
    status: str = "APPROVED"
    use: str = ""
    last4: str = ""
    registration: str = ""
    at: float = 0.0
    is_own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A question to the updater, and its answer. ``by_file``: or in real time."""

    registration: str
    status: str
    answered: float = 0.0
    by_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCard:
    """A registration in our books. ``changes``: the records of its changes; ``told``: their webhooks."""

    id: str
    sequence: int = 1
    said: str = ""
    last4: str = ""
    token: str = ""
    changes: int = 0
    told: int = 0


@dataclass(slots=True, kw_only=True)
class Facts:
    """Both sides. ``stored``: registration → the card that the client stored; ``events``: registration → the last thing
    that the network was heard to tell of its token."""

    sent: Mapping[str, Sent] = field(default_factory=dict)
    charges: Sequence[Charge] = ()
    cards: Sequence[StoredCard] = ()
    updates: Sequence[Update] = ()
    stored: dict[str, str] = field(default_factory=dict)
    events: dict[str, str] = field(default_factory=dict)


class Shopper:
    """Stores cards, charges them, and is the network of some tokens. ``stored`` and ``events`` as in Facts."""

    def __init__(self, client: Client, dice: random.Random, ended: threading.Event) -> None:
        self.stored: dict[str, str] = {}
        self.events: dict[str, str] = {}
        self._client, self._dice, self._ended = client, dice, ended

    def use_card(self, order: str, card: str = "") -> None:
        """A card is stored, and charged some times; what was taken is given back now and then."""
        dice, client = self._dice, self._client
        card = card or dice.choices([row[0] for row in CARDS], [row[1] for row in CARDS])[0]
        fields = {"paymentBrand": "VISA", "card.number": card, "card.holder": "Jane Jones", "card.expiryMonth": "05"}
        fields |= {"card.expiryYear": "2034", "testMode": "EXTERNAL", **_CIT}
        stored = client.pay(order, fields, path="/v1/registrations")
        if stored is None or not stored.is_approved:
            return
        self.stored[stored.id] = card
        waits_for_file = dice.random() < BY_FILE_SHARE
        for turn in range(dice.randint(3, 6)):
            if self._ended.is_set():
                return
            if turn == 1 and card == PLAIN and dice.random() < NETWORK_SHARE:
                self._tell_of_token(stored.id)
            time.sleep(dice.uniform(*PAUSE_S))
            kind, name = dice.choice(("DB", "PA")), f"{order}-{turn}"
            asked = {"amount": f"{dice.randint(1_000, 9_000) / 100:.2f}", "currency": "EUR", "paymentType": kind}
            asked |= {"testMode": "EXTERNAL", "merchantTransactionId": name}
            if not waits_for_file and dice.random() < OWN_SHARE:
                asked |= _MIT
            taken = self._settle(client.pay(name, asked, path=f"/v1/registrations/{stored.id}/payments"))
            if taken is not None and dice.random() < FOLLOWED_SHARE:
                what = "CP" if kind == "PA" else "RF"
                client.pay(f"{name}-{what}", follow_up(what, taken.amount, order=f"{name}-{what}"), taken.id)

    def _settle(self, told: Answer | None) -> Answer | None:
        end = time.monotonic() + SETTLED_WITHIN_S
        while told is not None and told.is_open and told.id and not self._ended.is_set() and time.monotonic() < end:
            time.sleep(ASK_EVERY_S)
            again = self._client.read(told.id)
            told = again if again is not None and again.id else told
        return told if told is not None and told.is_approved else None

    def _tell_of_token(self, registration: str) -> None:
        """Be the network: until the event is heard, or the card turns out to have no token yet."""
        event = self._dice.choice(tuple(AFTER_EVENT))
        for told in ("SUSPENDED", event) if event == "RESUMED" else (event,):
            end = time.monotonic() + SETTLED_WITHIN_S
            while not self._ended.is_set() and time.monotonic() < end:
                answer = self._client.once(f"/v1/test/network-tokens/{registration}", {"event": told})
                if answer is not None and answer.status == 200:
                    self.events[registration] = told
                    break
                time.sleep(ASK_EVERY_S)
            else:
                return


class StoredCards:
    """See the module."""

    name = "stored cards"

    def __init__(self, stack: Stack, shop: Shop, seed: int) -> None:
        self.broken: list[str] = []
        self.journals = [stack.folder / f"journal-stored-{number}.jsonl" for number in range(CLIENTS)]
        self._stack, self._port, self._seed = stack, shop.port, seed
        self._opened: Opened | None = None
        self._ended = threading.Event()
        self._shoppers: dict[int, Shopper] = {}
        self._threads: list[threading.Thread] = []
        self._runs = self._killed = 0
        self._facts = Facts()

    # --- a duty ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._opened = open_shops(self._stack, [OpenedShop(name=_NAME, channels={_NAME: DOCUMENT})], {})[_NAME]
        works: list[threading.Thread] = [
            threading.Thread(target=self._work, args=(number, random.Random(self._seed + number)), daemon=True)
            for number in range(CLIENTS)
        ]
        files = threading.Thread(target=self._ask_by_file, args=(random.Random(self._seed),), daemon=True)
        self._threads = [*works, files]
        for thread in self._threads:
            thread.start()

    def stop(self) -> bool:
        self._ended.set()
        for thread in self._threads:
            thread.join(240)
        return not any(thread.is_alive() for thread in self._threads)

    def owed(self) -> int:
        """What waits for its time is made due at once, and the files are seen to."""
        now = datetime.now(UTC)
        with self._stack.connect() as connection:
            for statement in _AT_ONCE:
                connection.execute(statement, {"now": now})
            row = connection.execute(_OWED).fetchone()
        tokens, files = row or (0, 0)
        if files:
            self._run_files(0.0)
        return int(tokens + files)

    def findings(self, strikes: Sequence[Strike]) -> list[Finding]:
        assert self._opened is not None
        with self._stack.connect() as connection:
            self._facts = load_facts(connection, self._opened.entity, self._stack.acquirer_log())
        for shopper in self._shoppers.values():
            self._facts.stored |= shopper.stored
            self._facts.events |= shopper.events
        return find_all(self._facts)

    def told(self) -> str:
        facts = self._facts
        uses = Counter(one.use or "none" for one in facts.charges if one.registration)
        said = Counter(f"{one.status}{' by file' if one.by_file else ''}" for one in facts.updates)
        return (
            f"{len(facts.cards)} cards; tokens: {_count(uses)}; {len(facts.events)} told by the network; "
            f"updater: {_count(said)}; files: {self._runs} runs, {self._killed} killed"
        )

    def clients(self, journal: Journal) -> list[Client]:
        """One, to ask everything once more with."""
        return [self._client(journal)]

    # --- its load -------------------------------------------------------------------------------------------------

    def _client(self, journal: Journal | None = None) -> Client:
        assert self._opened is not None
        return Client(
            port=self._port, entity=self._opened.entity, token=self._opened.token, name=_NAME, journal=journal
        )

    def _work(self, number: int, dice: random.Random) -> None:
        client, count = self._client(Journal(path=self.journals[number])), 0
        shopper = self._shoppers[number] = Shopper(client, dice, self._ended)
        try:
            while not self._ended.is_set():
                count += 1
                shopper.use_card(f"stored-{self._seed}-{number}-{count}")
        except Exception as fault:
            self.broken.append(f"{self.name}, client {number}: {type(fault).__name__}: {fault}")
        finally:
            client.close()

    def _ask_by_file(self, dice: random.Random) -> None:
        while not self._ended.wait(FILES_EVERY_S):
            self._run_files(dice.uniform(*KILLED_AFTER_S) if self._runs % 2 else 0.0)

    def _run_files(self, killed_after_s: float) -> None:
        """Ask about the cards that are due and read the answers, in a program of its own, which is killed after
        ``killed_after_s``; 0: it comes to its end, if what it needs is there."""
        with contextlib.suppress(NotUpError, KeyError, OSError, psycopg.Error):
            self._runs += 1
            running = self._stack.run_beside("files.log", ("manage", "shell", "--no-imports", "-c", _FILES))
            try:
                running.wait(killed_after_s or FILES_WITHIN_S)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
                running.wait()
                self._killed += 1


# --- reading ------------------------------------------------------------------------------------------------------


def load_facts(connection: psycopg.Connection[Any], entity: str, log: Iterable[Mapping[str, Any]]) -> Facts:
    """What our books and the acquirer's ``log`` say of the channel ``entity``."""
    rows = [connection.execute(statement, (entity,)).fetchall() for statement in (_PAYMENTS, _CARDS, _UPDATES)]
    return read_facts(*rows, sent=read_sent(log))


def read_sent(log: Iterable[Mapping[str, Any]]) -> dict[str, Sent]:
    """The acquirer's key of an attempt → the number that it came with."""
    found = {}
    for line in log:
        number = line.get("tokenAccount") or line.get("card")
        if line.get("kind") == "submit" and number:
            found[str(line["key"])] = Sent(is_token="tokenAccount" in line, number=str(number))
    return found


def read_facts(
    payments: Iterable[Any], cards: Iterable[Any], updates: Iterable[Any], *, sent: Mapping[str, Sent]
) -> Facts:
    """The rows of the statements above."""
    charges = [
        Charge(
            id=row[0],
            referenced=row[1],
            kind=row[2],
            status=row[3],
            use=row[4],
            last4=row[5],
            registration=row[6],
            at=row[7].timestamp(),
            is_own=bool(row[8]),
        )
        for row in payments
    ]
    stored = [
        StoredCard(id=row[0], sequence=row[1], said=row[2], last4=row[3], token=row[4], changes=row[5], told=row[6])
        for row in cards
    ]
    answers = [
        Update(registration=row[0], status=row[1], answered=row[2].timestamp() if row[2] else 0.0, by_file=row[3])
        for row in updates
    ]
    return Facts(sent=sent, charges=charges, cards=stored, updates=answers)


def _count(counted: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counted.items())) or "none"


# --- comparing: pure ----------------------------------------------------------------------------------------------


def find_all(facts: Facts) -> list[Finding]:
    """Every finding of every check."""
    return [*sent_otherwise(facts), *charged_though_closed(facts), *changed_otherwise(facts), *tokens_otherwise(facts)]


def sent_otherwise(facts: Facts) -> list[Finding]:
    """Each attempt came with the number that our books name, and what follows a payment with the payment's own."""
    found = []
    numbers: dict[str, Sent] = {}
    for one in facts.charges:
        attempts = [one.id, f"{one.id}-2"] if one.use == DECLINED_TOKEN else [one.id]
        by_token = {one.id: one.use in (USED, DECLINED_TOKEN), f"{one.id}-2": False}
        for attempt in attempts:
            sent = facts.sent.get(attempt)
            if sent is None or one.referenced or not one.registration:
                continue
            numbers[one.id] = sent
            if sent.is_token != by_token[attempt]:
                what = f"{attempt} came with a {'token' if sent.is_token else 'card number'}, here it is {one.use}"
                found.append(Finding(kind=OTHER_NUMBER, what=what, payment=one.id))
            elif not sent.is_token and not sent.number.endswith(one.last4):
                what = f"{attempt} came with {sent.number}, here it is {one.last4}"
                found.append(Finding(kind=OTHER_NUMBER, what=what, payment=one.id))
        if one.use != DECLINED_TOKEN and f"{one.id}-2" in facts.sent:
            found.append(Finding(kind=DOUBLED, what="a second attempt that our books do not know", payment=one.id))
    for one in facts.charges:
        behind, sent = numbers.get(one.referenced), facts.sent.get(one.id)
        if behind is not None and sent is not None and sent != behind:
            what = f"a {one.kind} came with {sent.number}, its payment with {behind.number}"
            found.append(Finding(kind=OTHER_NUMBER, what=what, payment=one.id))
    return found


def charged_though_closed(facts: Facts) -> list[Finding]:
    """Nothing of the merchant's own is sent of a card after the updater's word that it is closed, or that its holder is
    to be asked."""
    since: dict[str, float] = {}
    for one in facts.updates:
        if one.status in BLOCKING:
            since[one.registration] = min(since.get(one.registration, one.answered), one.answered)
    return [
        Finding(kind=OTHER_NUMBER, what="sent, though its card is closed", payment=one.id)
        for one in facts.charges
        if one.is_own and one.id in facts.sent and one.at > since.get(one.registration, one.at)
    ]


def changed_otherwise(facts: Facts) -> list[Finding]:
    """Each stored card was changed by the updater's word for it and by nothing else, once, with one record and one
    webhook; and no question is left without an end."""
    found = []
    said: dict[str, list[str]] = {}
    for one in facts.updates:
        if one.status == "WAITING":
            found.append(Finding(kind=OPEN, what=f"a question about {one.registration} waits", payment=""))
        if one.status in CHANGING:
            said.setdefault(one.registration, []).append(one.status)
    for card in facts.cards:
        number, answers = facts.stored.get(card.id), said.get(card.id, [])
        if number is None:
            continue  # its client never heard of it
        expected = SAID.get(number, "")
        if len(answers) > 1 and set(answers) & {"NEW_NUMBER", "NEW_EXPIRY"}:
            found.append(Finding(kind=DOUBLED, what=f"{card.id} was renewed {len(answers)} times"))
        if set(answers) - {expected} or card.said != (expected if answers else ""):
            found.append(Finding(kind=LOST, what=f"{card.id}: {answers} of a card {expected or 'without news'}"))
        last4 = RENEWED_LAST4 if "NEW_NUMBER" in answers else number[-4:]
        if card.last4 != last4:
            found.append(Finding(kind=LOST, what=f"{card.id} ends with {card.last4}, it was told {last4}"))
        if not card.sequence - 1 == card.changes == card.told:
            what = f"{card.id} was changed {card.sequence - 1} times: {card.changes} records, {card.told} webhooks"
            found.append(Finding(kind=LOST, what=what))
    return found


def tokens_otherwise(facts: Facts) -> list[Finding]:
    """A token is in the state of the last event that its network was heard to tell."""
    return [
        Finding(kind=LOST, what=f"the token of {card.id} is {card.token}, its network told {event}")
        for card in facts.cards
        if (event := facts.events.get(card.id)) and card.token != AFTER_EVENT[event]
    ]

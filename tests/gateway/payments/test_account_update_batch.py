"""Files of the account updater: which stored cards they ask about, and what becomes of them, each condition by itself.

Source: docs/decisions/0135.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import Model

from gateway.connectors.account_update_files import AccountUpdateFileError, build_answer_file, parse_question_file
from gateway.connectors.account_updater import AccountUpdaterUnavailableError, CardUpdate, UpdaterAnswer
from gateway.core import clock, identifiers
from gateway.models import AccountUpdate, AccountUpdateFile, Agreement, Channel, Merchant, Registration
from gateway.payments import account_update_batch
from gateway.payments.account_update_batch import (
    ANSWER_LIMIT,
    ANSWER_POLL_INTERVAL,
    FILE_LEASE,
    FILE_RETRIES,
    UPDATE_RETENTION,
    ask_about_due_cards,
    list_due_cards,
    postpone_looks,
    run_account_updater,
)
from gateway.timers.registry import MerchantTimer
from tests.support.account_updater import Updater
from tests.support.client import Api
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
NOW = datetime(2033, 11, 15, tzinfo=UTC)
"""The time of these tests. In EXPIRING_BEFORE it is 2034-01-14, in an interval more 2034-02-13."""
CARD = {
    "paymentBrand": "VISA", "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2094",
    "card.holder": "Jane Jones",
}  # fmt: skip
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)
TICK = timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: NOW)


def store(api: Api, **more: str) -> Registration:
    stored = api.post("/v1/registrations", CARD | {name.replace("__", "."): value for name, value in more.items()})
    assert stored.status == 200, stored
    return Registration.objects.get(pk=stored.id)


def change(row: Model, **values: Any) -> None:
    type(row)._default_manager.filter(pk=row.pk).update(**values)


@pytest.fixture
def card(shop: Shop, stranger: Shop) -> Registration:
    """A stored card that is due, alone: others are of channels without the updater, of both merchants."""
    Channel.objects.filter(pk=shop.channel.pk).update(account_updater=True)
    for other in (shop.api_of(shop.open_channel("without")), stranger.api):
        store(other)
    return store(shop.api)


def is_due(card: Registration) -> bool:
    found = list_due_cards()
    assert found in ([], [card.pk]), "another one is due"
    return found == [card.pk]


def now_of(card: Registration) -> datetime:
    return clock.merchant_now(Merchant.objects.get(pk=card.merchant_id))


@pytest.mark.parametrize(
    ("values", "due"),
    [
        ({}, True),
        ({"means": "bankAccount"}, False),
        ({"means_sealed": None}, False),
        ({"means_sealed": None, "status": "DELETED"}, False),
        ({"account_update": "CLOSED"}, False),
        ({"account_update": "CONTACT_HOLDER"}, True),
        ({"request": {"accountUpdater": "false"}}, False),
        ({"request": {"accountUpdater": "true"}}, True),
        ({"details": {"card": {"numberType": "DPAN"}}}, False),
        ({"details": {"card": {"numberType": "FPAN"}}}, True),
        ({"details": {"card": {}, "wallet1": {}}}, False),
        ({"details": {"card": {}, "wallet2": {}}}, False),
        ({"details": {"card": {}, "wallet3": {}}}, False),
    ],
    ids=str,
)
def test_what_is_no_card_to_ask_about_is_not_asked_about(card: Registration, values: dict[str, Any], due: bool) -> None:
    assert is_due(card)
    change(card, **values)
    assert is_due(card) is due


@pytest.mark.parametrize("values", [{"active": False}, {"account_updater": False}], ids=str)
def test_a_channel_that_is_off_or_wants_no_updates_has_none(card: Registration, values: dict[str, bool]) -> None:
    change(card.channel, **values)
    assert not is_due(card)


@pytest.mark.parametrize(("left", "due"), [(-HOUR, False), (0 * DAY, False), (TICK, True), (None, True)])
def test_a_card_past_its_retention_is_left_alone(card: Registration, left: timedelta | None, due: bool) -> None:
    change(card, retain_until=None if left is None else now_of(card) + left)
    assert is_due(card) is due


@pytest.mark.parametrize(
    ("created", "updated", "agreement", "due"),
    [
        (399 * DAY, None, False, True),
        (401 * DAY, None, False, False),
        (400 * DAY, None, False, False),
        (400 * DAY - TICK, None, False, True),
        (900 * DAY, 399 * DAY, False, True),
        (900 * DAY, 401 * DAY, False, False),
        (900 * DAY, None, True, True),
    ],
)
def test_a_card_that_nobody_charges_is_asked_about_for_400_days(
    card: Registration, created: timedelta, updated: timedelta | None, agreement: bool, due: bool
) -> None:
    """An agreement of another card says nothing of this one."""
    now = now_of(card)
    change(card, created_at=now - created, updated_at=None if updated is None else now - updated)
    other = Registration.objects.exclude(pk=card.pk).first()
    assert other is not None
    for one in (other, card)[: 1 + agreement]:
        Agreement.objects.create(
            id=one.payment,
            merchant=one.merchant,
            channel=one.channel,
            reference="r",
            registration=one.pk,
            created_at=now,
        )
    assert is_due(card) is due


@pytest.mark.parametrize("ahead", [timedelta(0), 50 * DAY, -50 * DAY])
@pytest.mark.parametrize(
    ("status", "in_file", "ago", "due"),
    [
        ("WAITING", True, 90 * DAY, False),
        ("WAITING", False, 31 * DAY, True),
        ("WAITING", False, 29 * DAY, False),
        ("NO_CHANGE", True, 29 * DAY, False),
        ("NO_CHANGE", True, 31 * DAY, True),
        ("NO_CHANGE", True, 30 * DAY - TICK, False),
        ("NO_CHANGE", True, 30 * DAY, True),
        ("UNANSWERED", True, 23 * HOUR, False),
        ("UNANSWERED", True, 25 * HOUR, True),
        ("SUPERSEDED", True, HOUR, True),
    ],
)
def test_a_card_is_asked_about_again_after_its_time_by_the_merchants_clock(
    card: Registration, ahead: timedelta, status: str, in_file: bool, ago: timedelta, due: bool
) -> None:
    change(card.merchant, clock_offset=ahead)
    now = now_of(card)
    change(card, created_at=now - DAY)
    ask(card, status, now - ago, in_file=in_file)
    assert is_due(card) is due


@pytest.mark.parametrize(
    ("expires_in", "ago", "due"),
    [
        (30 * DAY, 6 * DAY, False),
        (30 * DAY, 8 * DAY, True),
        (60 * DAY, 7 * DAY - TICK, False),
        (60 * DAY, 7 * DAY, True),
        (80 * DAY, 8 * DAY, False),
        (80 * DAY, 31 * DAY, True),
        (-90 * DAY, 7 * DAY, True),
    ],
)
def test_a_card_that_expires_soon_is_asked_about_every_week(
    card: Registration, expires_in: timedelta, ago: timedelta, due: bool
) -> None:
    now = now_of(card)
    end = now + expires_in
    change(card, details={"card": {"expiryMonth": f"{end:%m}", "expiryYear": f"{end:%Y}"}})
    ask(card, "NO_CHANGE", now - ago, in_file=True)
    assert is_due(card) is due


def test_a_question_about_another_card_keeps_none_back(card: Registration, shop: Shop) -> None:
    other = store(shop.api)
    ask(other, "WAITING", now_of(card), in_file=True)
    assert is_due(card)


@pytest.mark.parametrize(
    ("questions", "due"),
    [
        ([("NO_CHANGE", 40 * DAY), ("UNANSWERED", 2 * DAY)], True),
        ([("NO_CHANGE", 20 * DAY), ("UNANSWERED", 2 * DAY)], False),
        ([("UNANSWERED", HOUR), ("NO_CHANGE", 40 * DAY)], False),
        ([("WAITING", 40 * DAY), ("SUPERSEDED", HOUR)], False),
        ([("SUPERSEDED", 2 * HOUR), ("SUPERSEDED", HOUR)], True),
    ],
    ids=str,
)
def test_of_several_questions_the_one_that_holds_longest_counts(
    card: Registration, questions: list[tuple[str, timedelta]], due: bool
) -> None:
    for status, ago in questions:
        ask(card, status, NOW - ago, in_file=True)
    assert is_due(card) is due


@pytest.mark.parametrize(("ahead", "due"), [(TICK, False), (0 * DAY, True), (-DAY, True)])
@pytest.mark.parametrize("field", ["account_update_due_at", "created_at"])
def test_a_card_is_looked_at_from_its_time_on_or_since_it_was_made(
    card: Registration, field: str, ahead: timedelta, due: bool
) -> None:
    """The time to look at it counts where it has one, whenever it was made."""
    change(card, **{"created_at": NOW + DAY, field: NOW + ahead})
    assert is_due(card) is due


def set_expiry(card: Registration, year: int, month: int) -> None:
    change(card, details={"card": {"expiryMonth": f"{month:02}", "expiryYear": f"{year}"}})


def test_what_expires_first_is_asked_about_first_whatever_its_channel(
    card: Registration, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shop.open_channel("updating", account_updater=True)
    cards = [card, store(shop.api), store(shop.api_of(other)), store(shop.api_of(other))]
    for one, (year, month) in zip(cards, ((2035, 2), (2036, 1), (2034, 12), (2035, 2)), strict=True):
        set_expiry(one, year, month)
    expected = [cards[2].pk, card.pk, cards[3].pk, cards[1].pk]
    assert list_due_cards() == expected
    monkeypatch.setattr(account_update_batch, "MAX_FILES_PER_RUN", 1)
    for most in (1, 2, 3):
        monkeypatch.setattr(account_update_batch, "MAX_FILE_CARDS", most)
        assert list_due_cards() == expected[:most]


# --- cards that are not due ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expiry", "asked", "ahead"),
    [
        # What is asked about again, when it may be.
        ({}, (2094, 5), ("NO_CHANGE", 10 * DAY), 20 * DAY),
        ({}, (2094, 5), ("UNANSWERED", HOUR), 23 * HOUR),
        ({}, (2094, 5), ("WAITING", 10 * DAY), DAY),
        ({}, (2034, 1), ("NO_CHANGE", 2 * DAY), 5 * DAY),
        # What may expire soon before that, each week.
        ({}, (2034, 2), ("NO_CHANGE", 10 * DAY), 7 * DAY),
        ({}, (2034, 2), ("NO_CHANGE", 25 * DAY), 5 * DAY),
        ({}, (2034, 3), ("NO_CHANGE", 10 * DAY), 20 * DAY),
        # What is not asked about, by its date alone.
        ({"request": {"accountUpdater": "false"}}, (2094, 5), None, 30 * DAY),
        ({"request": {"accountUpdater": "false"}}, (2094, 5), ("NO_CHANGE", 10 * DAY), 30 * DAY),
        ({"request": {"accountUpdater": "false"}}, (2034, 3), None, 30 * DAY),
        ({"request": {"accountUpdater": "false"}}, (2034, 2), None, 7 * DAY),
        ({"account_update": "CLOSED"}, (2033, 12), None, 7 * DAY),
        ({"account_update": "CLOSED"}, (2031, 12), None, 7 * DAY),
        # What is due, and what is not looked at.
        ({}, (2094, 5), None, None),
        ({"status": "DELETED", "means_sealed": None}, (2094, 5), None, None),
        ({"means": "bankAccount", "means_sealed": None}, (2094, 5), None, None),
    ],
    ids=str,
)
def test_a_card_that_is_not_due_is_looked_at_again_by_its_question_or_its_date(
    card: Registration,
    values: dict[str, Any],
    expiry: tuple[int, int],
    asked: tuple[str, timedelta] | None,
    ahead: timedelta | None,
) -> None:
    set_expiry(card, *expiry)
    change(card, **values)
    if asked is not None:
        ask(card, asked[0], NOW - asked[1], in_file=True)
    assert postpone_looks() == (ahead is not None)
    card.refresh_from_db()
    assert card.account_update_due_at == (NOW + ahead if ahead is not None else None)
    assert not Registration.objects.exclude(pk=card.pk).exclude(account_update_due_at=None).exists()
    assert postpone_looks() == 0


def test_a_look_is_postponed_of_the_card_as_it_was_read_and_of_no_other(card: Registration, shop: Shop) -> None:
    changed, other = store(shop.api), store(shop.api)
    rows = [(card.pk, card.sequence, NOW + DAY), (changed.pk, changed.sequence + 1, NOW + 2 * DAY)]
    assert account_update_batch._postpone(rows) == 1
    looks = dict(Registration.objects.values_list("pk", "account_update_due_at"))
    assert [looks[one.pk] for one in (card, changed, other)] == [NOW + DAY, None, None]


@pytest.mark.parametrize(("cards", "files", "postponed"), [(2, 9, 5), (2, 2, 4), (5, 1, 5), (3, 1, 3)])
def test_looks_are_postponed_of_as_many_cards_as_a_run_asks_about(
    card: Registration, shop: Shop, monkeypatch: pytest.MonkeyPatch, cards: int, files: int, postponed: int
) -> None:
    for _ in range(4):
        store(shop.api)
    Registration.objects.update(account_update="CLOSED")
    monkeypatch.setattr(account_update_batch, "MAX_FILE_CARDS", cards)
    monkeypatch.setattr(account_update_batch, "MAX_FILES_PER_RUN", files)
    assert postpone_looks() == postponed
    assert Registration.objects.exclude(account_update_due_at=None).count() == postponed


# --- questions -------------------------------------------------------------------------------------------------------


def read_questions(updater: Updater, file: AccountUpdateFile) -> list[tuple[UUID, str, str]]:
    """A file's questions: key, entity, number."""
    ident, inquiries = parse_question_file(bytes(file.content or b""), updater.get_file_key())
    assert ident == file.pk
    return [(one.key, one.entity, one.number.reveal()) for one in inquiries]


def test_a_file_is_written_with_its_questions(updater: Updater, updating: Shop, stranger: Shop) -> None:
    """Each has its card's sequence and the moment by its merchant's clock."""
    change(stranger.channel, account_updater=True)
    change(stranger.merchant, clock_offset=9 * HOUR)
    mine, theirs = store(updating.api, card__expiryYear="2040"), store(stranger.api, card__expiryYear="2041")
    change(mine, sequence=7)
    assert ask_about_due_cards() == 1
    file = AccountUpdateFile.objects.get()
    assert (file.state, file.cards, file.tries, file.due_at, file.created_at) == ("UNSENT", 2, 0, NOW, NOW)
    one, two = AccountUpdate.objects.get(registration=mine), AccountUpdate.objects.get(registration=theirs)
    assert (one.file, one.sequence, one.status, one.asked_at, one.answered_at) == (file, 7, "WAITING", NOW, None)
    assert (two.file, two.sequence, two.asked_at) == (file, 1, NOW + 9 * HOUR)
    number = CARD["card.number"]
    assert read_questions(updater, file) == [
        (one.pk, updating.channel.entity_id, number), (two.pk, stranger.channel.entity_id, number),
    ]  # fmt: skip
    assert ask_about_due_cards() == 0


def test_a_card_whose_number_does_not_open_is_in_no_file(updater: Updater, updating: Shop) -> None:
    """It is asked about again tomorrow. A run in which nothing else is due writes no file."""
    change(updating.merchant, clock_offset=9 * HOUR)
    unread = store(updating.api, card__expiryYear="2040")
    change(unread, means_sealed=b"broken")
    assert ask_about_due_cards() == 0
    assert not AccountUpdateFile.objects.exists()
    row = AccountUpdate.objects.get()
    at = NOW + 9 * HOUR
    assert (row.registration_id, row.file, row.status) == (unread.pk, None, "UNANSWERED")
    assert (row.asked_at, row.answered_at) == (at, at)
    row.delete()
    change(unread, account_update_due_at=None)
    fine = store(updating.api)
    assert ask_about_due_cards() == 1
    file = AccountUpdateFile.objects.get()
    assert file.cards == 1
    assert {one.registration_id: one.file for one in AccountUpdate.objects.all()} == {unread.pk: None, fine.pk: file}


def test_cards_that_are_due_no_more_are_in_no_file(updater: Updater, updating: Shop) -> None:
    gone, fine = store(updating.api), store(updating.api)
    change(gone, request={"accountUpdater": "false"})
    assert account_update_batch._write_question_file(updater, [gone.pk]) is False
    assert not AccountUpdateFile.objects.exists()
    assert account_update_batch._write_question_file(updater, [gone.pk, fine.pk]) is True
    assert (AccountUpdateFile.objects.get().cards, AccountUpdate.objects.get().registration_id) == (1, fine.pk)


def test_cards_are_shared_out_to_files_and_looked_at_again(
    updater: Updater, updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = [store(updating.api, card__expiryYear=f"{year}") for year in range(2040, 2045)]
    monkeypatch.setattr(account_update_batch, "MAX_FILE_CARDS", 2)
    assert ask_about_due_cards() == 3
    files = AccountUpdateFile.objects.order_by("id")
    assert [file.cards for file in files] == [2, 2, 1]
    asked = [set(AccountUpdate.objects.filter(file=file).values_list("registration", flat=True)) for file in files]
    assert asked == [{one.pk for one in cards[first : first + 2]} for first in (0, 2, 4)]
    assert set(Registration.objects.values_list("account_update_due_at", flat=True)) == {NOW + DAY}


def test_without_an_updater_nothing_is_done(updating: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = store(updating.api)
    file = AccountUpdateFile.objects.create(cards=1, due_at=NOW, created_at=NOW, content=b"asks")
    ask(stored, "NO_CHANGE", NOW - 2 * UPDATE_RETENTION, in_file=False)
    monkeypatch.setattr(account_update_batch, "load_account_updater", lambda: None)
    assert (ask_about_due_cards(), run_account_updater()) == (0, 0)
    assert [timer.is_off() for timer in account_update_batch.TIMERS] == [True, True]
    assert AccountUpdateFile.objects.get() == file
    assert AccountUpdate.objects.count() == 1
    assert Registration.objects.get().account_update_due_at is None


def test_what_a_tick_asks_about_is_sent_by_the_same_one(updater: Updater) -> None:
    timers = account_update_batch.TIMERS
    assert [(one.run, one.every_s, one.is_off()) for one in timers] == [
        (ask_about_due_cards, 3600.0, False), (run_account_updater, 600.0, False),
    ]  # fmt: skip
    assert not any(isinstance(one, MerchantTimer) for one in timers), "real time"


# --- files -----------------------------------------------------------------------------------------------------------


class Line(Updater):
    """An updater that keeps what it was sent and asked for, and answers nothing unless a test says so."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(**answers)
        self.fetched: list[tuple[str, bytes]] = []

    def send_file(self, name: str, content: bytes) -> None:
        if (then := self.answers.get("then")) is not None:
            then(name)
        super().send_file(name, content)

    def fetch_answer(self, name: str, content: bytes) -> bytes | None:
        self.fetched.append((name, content))
        if (fault := self.answers.get("fault")) is not None:
            raise fault
        found: bytes | None = self.answers.get("answer")
        return found


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    found = Line()
    monkeypatch.setattr(account_update_batch, "load_account_updater", lambda: found)
    return found


def file_of(state: str = "UNSENT", **values: Any) -> AccountUpdateFile:
    return AccountUpdateFile.objects.create(
        state=state, **{"cards": 1, "due_at": NOW, "created_at": NOW, "content": b"asks", **values}
    )


def fresh(file: AccountUpdateFile) -> AccountUpdateFile:
    return AccountUpdateFile.objects.get(pk=file.pk)


@pytest.mark.parametrize("state", AccountUpdateFile.State.values)
@pytest.mark.parametrize(("ahead", "due"), [(-DAY, True), (0 * DAY, True), (TICK, False)])
def test_a_file_goes_by_its_state_from_its_time_on(
    line: Line, db: None, state: str, ahead: timedelta, due: bool
) -> None:
    """One that is sent is asked for in the same run."""
    file = file_of(state, due_at=NOW + ahead)
    moves = due and state in ("UNSENT", "SENT")
    sent = state == "UNSENT" and due
    assert run_account_updater() == int(sent)
    assert line.sent == [(file.pk.hex, b"asks")] * sent
    assert line.fetched == [(file.pk.hex, b"asks")] * moves
    found = fresh(file)
    assert (found.state, found.due_at) == (
        "SENT" if sent else state, NOW + (ANSWER_POLL_INTERVAL if moves else ahead),
    )  # fmt: skip


@pytest.mark.parametrize("state", ["UNSENT", "SENT"])
def test_a_file_without_its_content_is_an_empty_one(line: Line, state: str) -> None:
    file_of(state, content=None)
    run_account_updater()
    assert [content for _, content in line.sent + line.fetched] == [b""] * (2 if state == "UNSENT" else 1)


@pytest.mark.parametrize("state", ["UNSENT", "SENT"])
def test_the_file_that_waits_longest_goes_first(line: Line, state: str) -> None:
    files = [file_of(state, due_at=NOW - ago) for ago in (HOUR, 3 * HOUR, 2 * HOUR)]
    run_account_updater()
    names = [name for name, _ in (line.sent if state == "UNSENT" else line.fetched)]
    assert names == [files[number].pk.hex for number in (1, 2, 0)]


def test_a_file_is_sent_under_a_lease_and_another_worker_s_is_left_to_it(line: Line) -> None:
    first, second, other = (file_of(due_at=NOW - ago, tries=2, fault="down") for ago in (3 * HOUR, 2 * HOUR, HOUR))
    leases = []

    def take_second(name: str) -> None:
        leases.append(AccountUpdateFile.objects.get(pk=name).due_at)
        AccountUpdateFile.objects.filter(pk=second.pk).update(due_at=NOW + 9 * HOUR)

    line.answers["then"] = take_second
    assert run_account_updater() == 2
    assert [name for name, _ in line.sent] == [first.pk.hex, other.pk.hex]
    assert leases == [NOW + FILE_LEASE] * 2
    left = fresh(second)
    assert (left.state, left.due_at, left.tries, left.fault) == ("UNSENT", NOW + 9 * HOUR, 2, "down")
    sent = fresh(first)
    assert (sent.state, sent.tries, sent.fault) == ("SENT", 1, "")


def test_a_file_whose_lease_was_lost_is_not_written(line: Line) -> None:
    """As after a run that took longer than its lease: the other worker says what becomes of the file."""
    file = file_of(due_at=NOW)
    line.answers["then"] = lambda name: AccountUpdateFile.objects.update(due_at=NOW + HOUR)
    assert run_account_updater() == 0
    assert (fresh(file).state, fresh(file).due_at) == ("UNSENT", NOW + HOUR)


@pytest.mark.parametrize(
    ("state", "fault", "told"),
    [
        ("UNSENT", AccountUpdaterUnavailableError("the line is down"), "the line is down"),
        ("SENT", AccountUpdaterUnavailableError("the line is down"), "the line is down"),
        ("SENT", AccountUpdateFileError("line 2: is none"), "line 2: is none"),
        ("UNSENT", ValueError("4200000000000000"), "ValueError"),
        ("SENT", ValueError("4200000000000000"), "ValueError"),
        ("UNSENT", AccountUpdaterUnavailableError("x" * 201), "x" * 200),
    ],
    ids=["not sent", "not there", "not readable", "broken at sending", "broken at fetching", "a long word"],
)
def test_a_fault_is_told_and_the_file_is_tried_again(line: Line, state: str, fault: Exception, told: str) -> None:
    """Of a fault that is not the port's only the type, since its text could hold a number. Other files go on."""
    line.answers["send" if state == "UNSENT" else "fault"] = fault
    files = [file_of(state, tries=tries) for tries in (1, 2)]
    assert run_account_updater() == 0
    for file, tries in zip(files, (1, 2), strict=True):
        found = fresh(file)
        delay = FILE_RETRIES[tries] if state == "UNSENT" else HOUR
        assert (found.state, found.tries, found.fault) == (state, tries + 1, told)
        assert (found.due_at, found.content) == (NOW + delay, b"asks")


@pytest.mark.parametrize(
    ("state", "tries", "delay"),
    [
        *(("UNSENT", tries, delay) for tries, delay in enumerate(FILE_RETRIES)),
        ("UNSENT", len(FILE_RETRIES), None),
        ("UNSENT", len(FILE_RETRIES) + 1, None),
        ("SENT", 0, FILE_RETRIES[1]),
        ("SENT", 99, FILE_RETRIES[1]),
    ],
)
def test_a_file_is_sent_again_by_the_table_and_its_answer_is_asked_for_each_hour(
    state: str, tries: int, delay: timedelta | None
) -> None:
    assert account_update_batch._get_delay(AccountUpdateFile(state=state, tries=tries)) == delay


def test_a_file_whose_answer_is_not_there_yet_keeps_its_fault(line: Line) -> None:
    file = file_of("SENT", tries=3, fault="line 2: is none")
    assert run_account_updater() == 0
    found = fresh(file)
    assert (found.tries, found.fault, found.due_at) == (4, "line 2: is none", NOW + ANSWER_POLL_INTERVAL)


@pytest.mark.parametrize(
    ("delay", "age", "fault", "told"),
    [
        (HOUR, ANSWER_LIMIT - HOUR - TICK, "down", None),
        (HOUR, ANSWER_LIMIT - HOUR, "down", "down"),
        (None, 0 * DAY, "down", "down"),
        (None, 0 * DAY, "", "no answer came"),
        (None, 0 * DAY, "x" * 201, "x" * 200),
    ],
)
def test_a_file_is_given_up_without_another_try_or_at_its_limit(
    updating: Shop, delay: timedelta | None, age: timedelta, fault: str, told: str | None
) -> None:
    file, other = file_of("SENT", created_at=NOW - age, tries=4), file_of("SENT")
    stored = store(updating.api)
    questions = [AccountUpdate.objects.create(registration=stored, file=one, sequence=1, asked_at=NOW)
                 for one in (file, other)]  # fmt: skip
    account_update_batch._postpone_file(file, delay, fault)
    found = fresh(file)
    if told is None:
        assert (found.state, found.tries, found.fault) == ("SENT", 5, "down")
        assert (found.due_at, found.content) == (NOW + HOUR, b"asks")
    else:
        assert (found.state, found.tries, found.fault) == ("GIVEN_UP", 4, told)
        assert (found.due_at, found.content) == (None, None)
    for question in questions:
        question.refresh_from_db()
    assert [one.status for one in questions] == ["WAITING" if told is None else "UNANSWERED", "WAITING"]
    assert fresh(other).state == "SENT"


def test_a_file_that_another_worker_took_is_not_given_up(updating: Shop) -> None:
    file = file_of("SENT")
    question = AccountUpdate.objects.create(registration=store(updating.api), file=file, sequence=1, asked_at=NOW)
    AccountUpdateFile.objects.update(due_at=NOW + HOUR)
    account_update_batch._postpone_file(file, None, "down")
    question.refresh_from_db()
    assert (fresh(file).state, question.status) == ("SENT", "WAITING")


def test_questions_without_an_answer_are_closed_by_their_merchants_clock(
    updating: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was answered since it was read stays as it was answered."""
    change(stranger.merchant, clock_offset=9 * HOUR)
    mine, theirs, late = store(updating.api), store(stranger.api), store(updating.api)
    file, other = file_of("SENT"), file_of("SENT")
    rows = {
        name: AccountUpdate.objects.create(registration=of, file=of_file, sequence=1, asked_at=NOW, status=status)
        for name, of, of_file, status in (
            ("mine", mine, file, "WAITING"), ("theirs", theirs, file, "WAITING"), ("known", mine, file, "NO_CHANGE"),
            ("other", mine, other, "WAITING"), ("late", late, file, "WAITING"),
        )
    }  # fmt: skip
    tell = clock.merchant_now

    def answer_late(merchant: Merchant) -> datetime:
        AccountUpdate.objects.filter(pk=rows["late"].pk).update(status="CLOSED")
        return tell(merchant)

    monkeypatch.setattr(clock, "merchant_now", answer_late)
    account_update_batch._close_questions(file)
    for row in rows.values():
        row.refresh_from_db()
    assert {name: (row.status, row.answered_at) for name, row in rows.items()} == {
        "mine": ("UNANSWERED", NOW), "theirs": ("UNANSWERED", NOW + 9 * HOUR), "known": ("NO_CHANGE", None),
        "other": ("WAITING", None), "late": ("CLOSED", None),
    }  # fmt: skip


# --- answers ---------------------------------------------------------------------------------------------------------

CLOSED, UNCHANGED = CardUpdate(answer=UpdaterAnswer.CLOSED), CardUpdate(answer=UpdaterAnswer.NO_CHANGE)


@pytest.fixture
def asked(updating: Shop) -> tuple[AccountUpdateFile, list[AccountUpdate]]:
    """A file that was sent, and its three questions."""
    file = file_of("SENT", fault="line 2: is none")
    rows = [AccountUpdate.objects.create(registration=store(updating.api), file=file, sequence=1, asked_at=NOW)
            for _ in range(3)]  # fmt: skip
    return file, rows


def statuses(rows: list[AccountUpdate]) -> list[str]:
    return [AccountUpdate.objects.get(pk=row.pk).status for row in rows]


Asked = tuple[AccountUpdateFile, list[AccountUpdate]]


def test_an_answer_closes_its_file_and_what_it_does_not_tell(asked: Asked) -> None:
    """A question that was answered before keeps its answer. Other files are left alone."""
    file, rows = asked
    other = file_of("SENT")
    AccountUpdate.objects.filter(pk=rows[1].pk).update(status="NO_CHANGE")
    account_update_batch._apply_answer(file, {rows[0].pk: CLOSED, rows[1].pk: CLOSED})
    assert statuses(rows) == ["CLOSED", "NO_CHANGE", "UNANSWERED"]
    closed = [Registration.objects.get(pk=row.registration_id).account_update for row in rows]
    assert closed == ["CLOSED", "", ""]
    found = fresh(file)
    assert (found.state, found.content, found.due_at, found.fault, found.answered_at) == (
        "ANSWERED", None, None, "", NOW,
    )  # fmt: skip
    assert fresh(other).state == "SENT"


def test_an_answer_to_each_question_is_taken_and_one_to_another_is_refused_as_a_whole(asked: Asked) -> None:
    file, rows = asked
    [theirs] = [AccountUpdate.objects.create(registration=rows[0].registration, file=file_of("SENT"), sequence=1,
                                             asked_at=NOW)]  # fmt: skip
    for foreign in (theirs.pk, identifiers.row_id()):
        with pytest.raises(AccountUpdateFileError, match="not asked"):
            account_update_batch._apply_answer(file, {rows[0].pk: CLOSED, foreign: CLOSED})
    assert statuses(rows) == ["WAITING"] * 3
    assert fresh(file).state == "SENT"
    account_update_batch._apply_answer(file, {row.pk: UNCHANGED for row in rows})
    assert statuses(rows) == ["NO_CHANGE"] * 3


def test_an_answer_to_a_file_that_was_given_up_leaves_it_so(asked: Asked) -> None:
    file, rows = asked
    AccountUpdateFile.objects.filter(pk=file.pk).update(state="GIVEN_UP")
    account_update_batch._apply_answer(file, {rows[0].pk: UNCHANGED})
    assert (fresh(file).state, fresh(file).answered_at) == ("GIVEN_UP", None)


def test_an_answer_is_read_with_the_key_of_the_updater_for_its_own_file(line: Line, asked: Asked) -> None:
    file, rows = asked
    for about, state, fault in ((identifiers.row_id(), "SENT", "line 1: answers another file"),
                                (file.pk, "ANSWERED", "")):  # fmt: skip
        line.answers["answer"] = build_answer_file(about, NOW, {rows[0].pk: CLOSED}, line.get_file_key())
        AccountUpdateFile.objects.update(due_at=NOW)
        assert run_account_updater() == int(state == "ANSWERED")
        assert (fresh(file).state, fresh(file).fault) == (state, fault)
    assert statuses(rows) == ["CLOSED", "UNANSWERED", "UNANSWERED"]


# --- how long questions are kept -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "age", "stays"),
    [
        ("NO_CHANGE", UPDATE_RETENTION, True),
        ("NO_CHANGE", UPDATE_RETENTION + TICK, False),
        ("UNANSWERED", UPDATE_RETENTION + TICK, False),
        ("WAITING", UPDATE_RETENTION + TICK, True),
        ("NEW_NUMBER", UPDATE_RETENTION + TICK, True),
        ("NEW_EXPIRY", UPDATE_RETENTION + TICK, True),
        ("CLOSED", UPDATE_RETENTION + TICK, True),
        ("CONTACT_HOLDER", UPDATE_RETENTION + TICK, True),
    ],
)
def test_old_questions_that_changed_nothing_go(
    line: Line, updating: Shop, status: str, age: timedelta, stays: bool
) -> None:
    ask(store(updating.api), status, NOW - age, in_file=False)
    run_account_updater()
    assert AccountUpdate.objects.exists() is stays


def test_the_oldest_questions_go_first_and_a_bounded_number_of_them(
    line: Line, updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_update_batch, "MAX_SWEPT_ROWS", 2)
    stored = store(updating.api)
    for days in (1, 3, 2):
        ask(stored, "UNKNOWN", NOW - UPDATE_RETENTION - days * DAY, in_file=False)
    run_account_updater()
    assert AccountUpdate.objects.get().asked_at == NOW - UPDATE_RETENTION - DAY
    run_account_updater()
    assert not AccountUpdate.objects.exists()


def ask(card: Registration, status: str, at: datetime, *, in_file: bool) -> None:
    real = clock.real_now()
    file = AccountUpdateFile.objects.create(cards=1, created_at=real, due_at=real) if in_file else None
    AccountUpdate.objects.create(registration=card, file=file, sequence=1, status=status, asked_at=at)

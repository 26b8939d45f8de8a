"""Each condition of the account updater's questions in real time and of its answers by itself, and its files' times.

Source: docs/decisions/0135.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway import metrics
from gateway.connectors.account_updater import AccountUpdaterUnavailableError, CardInquiry, CardUpdate, UpdaterAnswer
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import AccountUpdate, AccountUpdateFile, Merchant, Notification, Payment, Registration
from gateway.payments import account_update_batch, account_updates, registrations
from gateway.payments.account_update_batch import ANSWER_LIMIT
from gateway.payments.account_updates import MAX_ANSWER_TRIES, UPDATER_PAUSE_S
from gateway.vault.sealing import current_vault
from tests.gateway.payments.test_account_updates import PLAIN, charge, store
from tests.support.account_updater import Places, Updater
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = datetime(2035, 11, 15, tzinfo=UTC)
TODAY = datetime(2033, 11, 15, tzinfo=UTC)
"""The time of tests that stop the clock: PLAIN is valid."""


def read(stored: str) -> Registration:
    return Registration.objects.select_related("channel", "merchant", "network_token").get(pk=stored)


def judge(owner: Registration, answer: str, **values: Any) -> tuple[str, dict[str, Any]]:
    """What an answer about a stored card changes at NOW."""
    row = AccountUpdate(registration=owner, sequence=owner.sequence, asked_at=NOW)
    update = account_updates.CardUpdate(answer=account_updates.UpdaterAnswer(answer), **values)
    return account_updates._list_changes(owner, row, update, NOW)


# --- in real time ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "ago", "asked"),
    [
        ("NO_CHANGE", 23 * HOUR, 0),
        ("NO_CHANGE", 25 * HOUR, 1),
        ("UNKNOWN", 23 * HOUR, 0),
        ("NEW_EXPIRY", 23 * HOUR, 0),
        ("CONTACT_HOLDER", 23 * HOUR, 0),
        ("WAITING", HOUR, 1),
        ("UNANSWERED", HOUR, 1),
        ("SUPERSEDED", HOUR, 1),
    ],
)
def test_an_answer_of_the_last_day_spares_a_question(
    updater: Updater, updating: Shop, status: str, ago: timedelta, asked: int
) -> None:
    stored, other = store(updating.api, PLAIN), store(updating.api, "4111111111111111")
    for one, at in ((stored, ago), (other, HOUR)):
        AccountUpdate.objects.create(
            registration_id=one,
            sequence=1,
            status=status if one == stored else "NO_CHANGE",
            asked_at=clock.merchant_now(read(one).merchant) - at,
        )
    assert charge(updating.api, stored).status == 200
    assert updater.asked == asked


@pytest.mark.parametrize(("said", "asked"), [("", 1), ("CONTACT_HOLDER", 1), ("CLOSED", 0)])
def test_a_closed_card_is_not_asked_about_again(updater: Updater, updating: Shop, said: str, asked: int) -> None:
    stored = store(updating.api, PLAIN)
    Registration.objects.filter(pk=stored).update(account_update=said)
    account_updates.refresh_stored_card(read(stored))
    assert updater.asked == asked


@pytest.mark.parametrize(
    "values",
    [
        {"status": "DELETED"},
        {"means": "bankAccount"},
        {"means_sealed": None},
        {"brand": "PAYPAL"},
        {"request": {"accountUpdater": "false"}},
        {"details": {"card": {"numberType": "DPAN"}}},
        *({"details": {"card": {}, wallet: {}}} for wallet in ("wallet1", "wallet2", "wallet3")),
    ],
    ids=str,
)
def test_what_is_no_card_to_ask_about_is_not_updatable(updating: Shop, values: dict[str, Any]) -> None:
    row = read(store(updating.api, PLAIN))
    assert account_updates.is_updatable(row)
    for name, value in values.items():
        setattr(row, name, value)
    assert not account_updates.is_updatable(row)


def test_a_card_of_a_channel_without_updates_is_not_updatable(updating: Shop) -> None:
    row = read(store(updating.api, PLAIN))
    row.channel.account_updater = False
    assert not account_updates.is_updatable(row)


class Asked(Updater):
    """An updater that keeps what it was asked."""

    def __init__(self, update: CardUpdate | Exception) -> None:
        super().__init__(ask=update)
        self.questions: list[tuple[CardInquiry, float]] = []

    def ask(self, inquiry: CardInquiry, *, deadline_s: float) -> CardUpdate:
        self.questions.append((inquiry, deadline_s))
        return super().ask(inquiry, deadline_s=deadline_s)


NO_CHANGE = CardUpdate(answer=UpdaterAnswer.NO_CHANGE)
NEW_DATE = CardUpdate(answer=UpdaterAnswer.NEW_EXPIRY, expiry_month="06", expiry_year="2036")
RENEWED = CardUpdate(
    answer=UpdaterAnswer.NEW_NUMBER, number=Secret("5454545454545454"), expiry_month="06", expiry_year="2036"
)
INQUIRY = CardInquiry(
    key=UUID(int=1), entity="e", brand="VISA", number=Secret(PLAIN), expiry_month="05", expiry_year="2034"
)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    monkeypatch.setattr(clock, "real_now", lambda: TODAY)
    return TODAY


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """How questions were counted."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(metrics, "count_account_update", lambda how, answer: found.append((how, answer)))
    return found


def install(monkeypatch: pytest.MonkeyPatch, updater: Updater | None) -> None:
    monkeypatch.setattr(account_updates, "load_account_updater", lambda: updater)


def test_a_question_names_the_card_as_it_is_stored_and_its_channel(
    updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    updater = Asked(NO_CHANGE)
    install(monkeypatch, updater)
    owner = read(store(updating.api, PLAIN))
    store(updating.api, "4111111111111111")
    assert account_updates.refresh_stored_card(owner) is owner
    row = AccountUpdate.objects.get()
    expected = CardInquiry(
        key=row.pk, entity=updating.channel.entity_id, brand="VISA", number=Secret(PLAIN), expiry_month="05",
        expiry_year="2034",
    )  # fmt: skip
    assert updater.questions == [(expected, account_updates.REAL_TIME_DEADLINE_S)]
    assert (row.registration_id, row.sequence, row.file_id) == (owner.pk, owner.sequence, None)


@pytest.mark.parametrize(
    "why", ["no updater", "channel without", "opted out", "pause", "an unreadable number", "all places taken"]
)
def test_what_is_not_asked_about_leaves_no_question_and_no_pause(
    updating: Shop, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    updater = Asked(NO_CHANGE)
    install(monkeypatch, updater if why != "no updater" else None)
    owner = read(store(updating.api, PLAIN))
    if why == "channel without":
        owner.channel.account_updater = False
    if why == "opted out":
        owner.request = {"accountUpdater": "false"}
    if why == "pause":
        account_updates._pause.begin()
    if why == "an unreadable number":
        owner.means_sealed = b"broken"
    if why == "all places taken":
        monkeypatch.setattr(account_updates, "_places", Places(1))
        account_updates._places.acquire(blocking=False)
    assert account_updates.refresh_stored_card(owner) is owner
    assert (updater.questions, AccountUpdate.objects.exists()) == ([], False)
    assert account_updates._pause.is_on() is (why == "pause")


@pytest.mark.parametrize("ago", [account_updates.REAL_TIME_INTERVAL, account_updates.REAL_TIME_INTERVAL - HOUR])
def test_an_answer_is_of_the_last_day_until_it_is_over(
    updating: Shop, monkeypatch: pytest.MonkeyPatch, now: datetime, ago: timedelta
) -> None:
    """By the merchant's clock."""
    updater = Asked(NO_CHANGE)
    install(monkeypatch, updater)
    Merchant.objects.filter(pk=updating.merchant.pk).update(clock_offset=9 * HOUR)
    owner = read(store(updating.api, PLAIN))
    at = now + 9 * HOUR
    AccountUpdate.objects.create(registration=owner, sequence=1, status="NO_CHANGE", asked_at=at - ago)
    account_updates.refresh_stored_card(owner)
    assert len(updater.questions) == int(ago == account_updates.REAL_TIME_INTERVAL)
    assert AccountUpdate.objects.filter(asked_at=at).count() == len(updater.questions)


@pytest.mark.parametrize(
    "fault", [AccountUpdaterUnavailableError("down"), ValueError("broken"), CardUpdate(answer=UpdaterAnswer.NEW_NUMBER)]
)
def test_a_question_without_an_answer_is_kept_counted_and_followed_by_a_pause(
    updating: Shop,
    monkeypatch: pytest.MonkeyPatch,
    now: datetime,
    counted: list[tuple[str, str]],
    fault: CardUpdate | Exception,
) -> None:
    install(monkeypatch, Asked(fault))
    Merchant.objects.filter(pk=updating.merchant.pk).update(clock_offset=9 * HOUR)
    owner = read(store(updating.api, PLAIN))
    assert account_updates.refresh_stored_card(owner) is owner
    row = AccountUpdate.objects.get()
    at = now + 9 * HOUR
    assert (row.status, row.answered_at, row.asked_at, row.sequence) == ("UNANSWERED", at, at, owner.sequence)
    assert counted == [("real time", "UNANSWERED")]
    assert account_updates._pause.is_on()


@pytest.mark.parametrize(
    ("update", "changes"),
    [
        (NO_CHANGE, False),
        (CardUpdate(answer=UpdaterAnswer.UNKNOWN), False),
        (NEW_DATE, True),
        (CardUpdate(answer=UpdaterAnswer.CLOSED), True),
        (CardUpdate(answer=UpdaterAnswer.CONTACT_HOLDER), True),
    ],
    ids=lambda value: value.answer.value if isinstance(value, CardUpdate) else None,
)
def test_a_card_that_changed_is_read_again(
    updating: Shop,
    monkeypatch: pytest.MonkeyPatch,
    counted: list[tuple[str, str]],
    update: CardUpdate,
    changes: bool,
) -> None:
    install(monkeypatch, Asked(update))
    owner = read(store(updating.api, PLAIN))
    found = account_updates.refresh_stored_card(owner)
    assert (found is owner) is not changes
    assert (found.pk, found.account_update) == (owner.pk, update.answer.value if changes else "")
    assert counted == [("real time", update.answer.value)]
    assert not account_updates._pause.is_on()


def test_a_pause_ends_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at = 1_000.0
    monkeypatch.setattr(account_updates.time, "monotonic", lambda: at)
    pause = account_updates._Pause()
    assert not pause.is_on()
    pause.begin()
    for at, is_on in ((1_000.0, True), (1_000.0 + UPDATER_PAUSE_S - 1, True), (1_000.0 + UPDATER_PAUSE_S, False)):  # noqa: B007
        assert pause.is_on() is is_on
    pause.begin()
    pause.end()
    at = 0.5
    assert not pause.is_on()
    assert not account_updates._Pause().is_on(), "on a machine that has just begun"


@pytest.mark.parametrize(
    ("fault", "text"), [(AccountUpdaterUnavailableError("down"), "down"), (ValueError(PLAIN), "ValueError")]
)
def test_a_foreign_faults_text_is_not_told(fault: Exception, text: str) -> None:
    assert account_updates._describe_fault(fault) == text


@pytest.fixture
def one_place(monkeypatch: pytest.MonkeyPatch) -> Places:
    place = Places(1)
    monkeypatch.setattr(account_updates, "_places", place)
    return place


@pytest.mark.parametrize("said", [NO_CHANGE, ValueError("broken")], ids=["an answer", "a fault"])
def test_a_question_gives_its_place_back(updating: Shop, one_place: Places, said: CardUpdate | Exception) -> None:
    for _ in range(2):
        if isinstance(said, Exception):
            with pytest.raises(ValueError, match="broken"):
                account_updates._ask_within(Asked(said), INQUIRY, 60)
        else:
            assert account_updates._ask_within(Asked(said), INQUIRY, 60) == said
        assert one_place.acquire(timeout=60), "the thread gives it back after its answer"
        one_place.release()


def test_a_question_that_hangs_keeps_its_place_until_it_ends(one_place: Places) -> None:
    released, ended = threading.Event(), threading.Event()

    class Hanging(Updater):
        def ask(self, inquiry: CardInquiry, *, deadline_s: float) -> CardUpdate:
            released.wait(20)
            ended.set()
            return NO_CHANGE

    with pytest.raises(AccountUpdaterUnavailableError, match=r"no answer within 0\.05 s"):
        account_updates._ask_within(Hanging(), INQUIRY, 0.05)
    assert not ended.is_set()
    assert account_updates._ask_within(Hanging(), INQUIRY, 0.05) is None
    released.set()
    assert one_place.acquire(timeout=60)


def test_without_a_thread_nothing_is_asked_and_the_place_is_free(
    one_place: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(AccountUpdaterUnavailableError, match="no thread"):
            account_updates._ask_within(Asked(NO_CHANGE), INQUIRY, 60)
    assert one_place.acquire(blocking=False)


# --- answers ---------------------------------------------------------------------------------------------------------


def ask_by_file(owner: Registration) -> AccountUpdate:
    file = AccountUpdateFile.objects.create(state="SENT", cards=1, due_at=TODAY, created_at=TODAY)
    return AccountUpdate.objects.create(registration=owner, file=file, sequence=owner.sequence, asked_at=TODAY - HOUR)


@pytest.mark.parametrize("update", [NO_CHANGE, NEW_DATE], ids=["no change", "new date"])
@pytest.mark.parametrize("added", [False, True], ids=["by file", "in real time"])
def test_an_answer_is_written_once_with_its_moment_for_its_question_alone(
    updating: Shop, now: datetime, counted: list[tuple[str, str]], update: CardUpdate, added: bool
) -> None:
    Merchant.objects.filter(pk=updating.merchant.pk).update(clock_offset=9 * HOUR)
    owner, other = read(store(updating.api, PLAIN)), read(store(updating.api, "4111111111111111"))
    untouched = ask_by_file(other)
    if added:
        row = AccountUpdate(registration_id=owner.pk, sequence=owner.sequence, asked_at=now - HOUR)
    else:
        row = ask_by_file(owner)
    said = update.answer.value
    assert account_updates.apply_card_update(row, update, added=added) == said
    found = AccountUpdate.objects.get(pk=row.pk)
    at = now + 9 * HOUR
    assert (found.status, found.answered_at, found.asked_at) == (said, at, now - HOUR)
    assert counted == [("real time" if added else "file", said)]
    after = read(owner.pk.hex)
    changed = update is NEW_DATE
    assert (after.sequence, after.account_updated_at) == (owner.sequence + int(changed), at if changed else None)
    assert Notification.objects.filter(registration=owner.pk).count() == int(changed)
    if changed:
        shown = Payment.objects.filter(referenced=owner.pk).latest("id").answer["facts"]["accountUpdate"]
        assert shown["answer"] == said
    assert AccountUpdate.objects.get(pk=untouched.pk).status == "WAITING"
    if not added:
        assert account_updates.apply_card_update(row, update) == ""
        assert len(counted) == 1


def test_an_answer_that_is_overtaken_each_time_is_given_up(
    updating: Shop, monkeypatch: pytest.MonkeyPatch, counted: list[tuple[str, str]]
) -> None:
    row, other = (ask_by_file(read(store(updating.api, number))) for number in (PLAIN, "4111111111111111"))
    tries: list[Any] = []
    monkeypatch.setattr(registrations, "record_registration_change", lambda *given, **_: bool(tries.append(given)))
    assert account_updates.apply_card_update(row, NEW_DATE) == ""
    assert (len(tries), counted) == (MAX_ANSWER_TRIES, [])
    tries.clear()
    AccountUpdate.objects.exclude(pk=other.pk).update(status="UNANSWERED")
    assert account_updates.apply_card_update(row, NEW_DATE) == ""
    assert len(tries) == 1, "it was answered meanwhile, though another one waits"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, "NEW_EXPIRY"),
        ({"sequence": 2}, "SUPERSEDED"),
        ({"status": "DELETED"}, "SUPERSEDED"),
        ({"request": {"accountUpdater": "false"}}, "SUPERSEDED"),
    ],
    ids=str,
)
def test_an_answer_is_about_the_card_as_it_was_asked_about(
    updating: Shop, changed: dict[str, Any], status: str
) -> None:
    owner = read(store(updating.api, PLAIN))
    row = AccountUpdate(registration=owner, sequence=1, asked_at=NOW)
    for name, value in changed.items():
        setattr(owner, name, value)
    found, changes = account_updates._list_changes(owner, row, NEW_DATE, NOW)
    assert (found, bool(changes)) == (status, not changed)


@pytest.mark.parametrize(("said", "expected"), [("NO_CHANGE", "NO_CHANGE"), ("UNKNOWN", "UNKNOWN")])
def test_an_answer_that_says_nothing_new_changes_nothing(updating: Shop, said: str, expected: str) -> None:
    assert judge(read(store(updating.api, PLAIN)), said) == (expected, {})


def test_a_new_date_leaves_all_else_of_the_card(updating: Shop) -> None:
    owner = read(store(updating.api, PLAIN))
    before = owner.details["card"]
    found, changes = judge(owner, "NEW_EXPIRY", expiry_month="06", expiry_year="2036")
    assert found == "NEW_EXPIRY"
    assert changes == {
        "account_update": "NEW_EXPIRY", "account_updated_at": NOW,
        "details": {**owner.details, "card": {**before, "expiryMonth": "06", "expiryYear": "2036"}},
    }  # fmt: skip
    owner.details = changes["details"]
    assert judge(owner, "NEW_EXPIRY", expiry_month="06", expiry_year="2036") == ("NO_CHANGE", {})
    assert judge(owner, "NEW_NUMBER", number=Secret(PLAIN), expiry_month="06", expiry_year="2036") == ("NO_CHANGE", {})


def test_a_new_number_is_sealed_for_its_registration(updating: Shop) -> None:
    owner = read(store(updating.api, PLAIN))
    _, changes = judge(owner, "NEW_NUMBER", number=RENEWED.number, expiry_month="06", expiry_year="2036")
    assert current_vault().open(changes["means_sealed"], owner.id) == RENEWED.number
    assert changes["account_update"] == "NEW_NUMBER"


def test_a_number_that_does_not_open_is_not_replaced(updating: Shop) -> None:
    owner = read(store(updating.api, PLAIN))
    owner.means_sealed = b"broken"
    found = judge(owner, "NEW_NUMBER", number=RENEWED.number, expiry_month="06", expiry_year="2036")
    assert found == ("UNANSWERED", {})


@pytest.mark.parametrize(
    ("month", "year", "status"),
    [
        ("10", "2035", "UNANSWERED"),
        ("11", "2035", "NEW_EXPIRY"),
        ("12", "2034", "UNANSWERED"),
        ("01", "2036", "NEW_EXPIRY"),
    ],
)
def test_a_date_is_one_that_has_not_passed(updating: Shop, month: str, year: str, status: str) -> None:
    owner = read(store(updating.api, PLAIN))
    found, changes = judge(owner, "NEW_EXPIRY", expiry_month=month, expiry_year=year)
    assert (found, bool(changes)) == (status, status == "NEW_EXPIRY")


@pytest.mark.parametrize("said", ["CLOSED", "CONTACT_HOLDER"])
def test_the_same_word_twice_changes_nothing(updating: Shop, said: str) -> None:
    owner = read(store(updating.api, PLAIN))
    assert judge(owner, said) == (said, {"account_update": said, "account_updated_at": NOW})
    owner.account_update = said
    assert judge(owner, said) == (said, {})


@pytest.mark.parametrize(
    ("brand", "number", "changed"),
    [
        ("VISA", "4111111111111111", {}),
        ("VISADEBIT", "4111111111111111", {}),
        ("VISA", "5454545454545454", {"brand": "MASTER"}),
        ("VISA", "9999999999999995", {}),
    ],
)
def test_a_new_number_brings_its_digits_and_another_networks_brand(
    updating: Shop, brand: str, number: str, changed: dict[str, str]
) -> None:
    owner = read(store(updating.api, PLAIN))
    owner.brand = brand
    status, changes = judge(owner, "NEW_NUMBER", number=Secret(number), expiry_month="06", expiry_year="2036")
    assert status == "NEW_NUMBER"
    card = changes["details"]["card"]
    assert (card["bin"], card["last4Digits"]) == (number[:6], number[-4:])
    assert (card["expiryMonth"], card["expiryYear"]) == ("06", "2036")
    assert {name: value for name, value in changes.items() if name == "brand"} == changed


def test_the_number_that_is_stored_already_is_a_new_date(updating: Shop) -> None:
    owner = read(store(updating.api, PLAIN))
    status, changes = judge(owner, "NEW_NUMBER", number=Secret(PLAIN), expiry_month="06", expiry_year="2036")
    assert (status, changes["account_update"]) == ("NEW_EXPIRY", "NEW_EXPIRY")
    assert "means_sealed" not in changes


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_due_yet_waits(updater: Updater, updating: Shop) -> None:
    store(updating.api, PLAIN)
    assert account_update_batch.ask_about_due_cards() == 1
    AccountUpdateFile.objects.update(due_at=clock.real_now() + timedelta(minutes=1))
    assert account_update_batch.run_account_updater() == 0
    assert updater.sent == []


@pytest.mark.parametrize(
    ("left", "state"), [(HOUR + timedelta(minutes=1), "SENT"), (HOUR - timedelta(minutes=1), "GIVEN_UP")]
)
def test_a_file_is_not_asked_for_past_its_limit(updater: Updater, updating: Shop, left: timedelta, state: str) -> None:
    """Another file's questions are left as they are."""
    now = clock.real_now()
    files = [
        AccountUpdateFile.objects.create(state="SENT", cards=1, due_at=now, created_at=now - ANSWER_LIMIT + left)
        for _ in range(2)
    ]
    stored = store(updating.api, PLAIN)
    questions = [
        AccountUpdate.objects.create(registration_id=stored, file=file, sequence=1, asked_at=now) for file in files
    ]
    account_update_batch._postpone_file(files[0], HOUR, "down")
    found = AccountUpdateFile.objects.get(pk=files[0].pk)
    assert (found.state, found.fault) == (state, "down")
    status = {one.pk: AccountUpdate.objects.get(pk=one.pk).status for one in questions}
    assert status == {questions[0].pk: "WAITING" if state == "SENT" else "UNANSWERED", questions[1].pk: "WAITING"}


def test_a_file_that_was_sent_at_last_has_all_its_tries_again(updater: Updater, updating: Shop) -> None:
    store(updating.api, PLAIN)
    account_update_batch.ask_about_due_cards()
    AccountUpdateFile.objects.update(tries=4, fault="down")
    updater.answers["fetch"] = lambda content: None
    account_update_batch.run_account_updater()
    assert AccountUpdateFile.objects.values_list("state", "tries", "fault").get() == ("SENT", 1, "")

"""Each condition of the account updater's questions in real time and of its answers by itself, and its files' times.

Source: docs/decisions/0135.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import AccountUpdate, AccountUpdateFile, Channel, Registration
from gateway.payments import account_update_batch, account_updates
from gateway.payments.account_update_batch import ANSWER_LIMIT, FILE_RETRIES, UPDATE_RETENTION
from tests.gateway.payments.test_account_updates import NEW_NUMBER, PLAIN, charge, store
from tests.support.account_updater import Updater
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = datetime(2035, 11, 15, tzinfo=UTC)


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


# --- answers ---------------------------------------------------------------------------------------------------------


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
    ("state", "tries", "delay"),
    [
        *(("UNSENT", tries, delay) for tries, delay in enumerate(FILE_RETRIES)),
        ("UNSENT", len(FILE_RETRIES), None),
        ("SENT", 0, FILE_RETRIES[1]),
        ("SENT", 99, FILE_RETRIES[1]),
    ],
)
def test_a_file_is_sent_again_by_the_table_and_its_answer_is_asked_for_each_hour(
    state: str, tries: int, delay: timedelta | None
) -> None:
    assert account_update_batch._get_delay(AccountUpdateFile(state=state, tries=tries)) == delay


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


@pytest.mark.parametrize(
    ("status", "age", "stays"),
    [
        ("NO_CHANGE", UPDATE_RETENTION + HOUR, False),
        ("NO_CHANGE", UPDATE_RETENTION - HOUR, True),
        ("UNANSWERED", UPDATE_RETENTION + HOUR, False),
        ("WAITING", UPDATE_RETENTION + HOUR, True),
        ("NEW_NUMBER", UPDATE_RETENTION + HOUR, True),
        ("NEW_EXPIRY", UPDATE_RETENTION + HOUR, True),
        ("CLOSED", UPDATE_RETENTION + HOUR, True),
        ("CONTACT_HOLDER", UPDATE_RETENTION + HOUR, True),
    ],
)
def test_old_questions_that_changed_nothing_go(
    updater: Updater, updating: Shop, status: str, age: timedelta, stays: bool
) -> None:
    stored = store(updating.api, NEW_NUMBER)
    Channel.objects.update(account_updater=False)
    AccountUpdate.objects.create(registration_id=stored, sequence=1, status=status, asked_at=clock.real_now() - age)
    account_update_batch.run_account_updater()
    assert AccountUpdate.objects.exists() is stays

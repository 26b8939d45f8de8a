"""The account updater: what it is asked, how its answers are applied, and what becomes of payments and schedules.

Source: docs/decisions/0135; docs/account-updater.md.
"""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import override_settings
from django.urls import reverse
from jwcrypto.jwe import JWE
from jwcrypto.jwk import JWK

from gateway import metrics
from gateway.configuration.channel import CHANNEL_SECTION
from gateway.connectors.account_update_files import (
    AccountUpdateFileError,
    _open_lines,
    _seal_lines,
    build_answer_file,
    parse_answer_file,
    parse_question_file,
)
from gateway.connectors.account_updater import (
    AccountUpdaterUnavailableError,
    CardInquiry,
    CardUpdate,
    UpdaterAnswer,
)
from gateway.connectors.account_updaters import load_account_updater
from gateway.connectors.simulator.account_updater import (
    RENEWED_NUMBERS,
    SIMULATED_ACCOUNT_UPDATER,
    SimulatedAccountUpdater,
)
from gateway.connectors.simulator.cards import SIMULATED_CARDS
from gateway.core import clock
from gateway.core import document as d
from gateway.core.secret import Secret
from gateway.models import (
    AccountUpdate,
    AccountUpdateFile,
    Agreement,
    AuditEntry,
    Channel,
    NetworkToken,
    Notification,
    Payment,
    Registration,
    Role,
)
from gateway.payments import account_update_batch, account_updates, registrations, webhook_payloads
from gateway.payments.account_update_batch import ask_about_due_cards, list_due_cards
from gateway.payments.network_tokens import call_token_service_when_due
from gateway.scheduling.models import Job
from gateway.vault.sealing import current_vault
from tests.support.account_updater import Places, Updater
from tests.support.client import Answer, Api
from tests.support.clock import pass_time
from tests.support.database import places_of
from tests.support.doc_blocks import read_block
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.threads import PATIENCE_S

pytestmark = pytest.mark.django_db

NEW_NUMBER, NEW_EXPIRY, CLOSED, CONTACT_HOLDER, SILENT = (
    next(card.number for card in SIMULATED_CARDS if card.updating == how)
    for how in ("new number", "new expiry", "closed", "contact holder", "silent")
)
PLAIN = "4200000000000000"
CLICK = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
INITIAL = {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}
MIT = {
    "standingInstruction.mode": "REPEATED",
    "standingInstruction.source": "MIT",
    "standingInstruction.type": "UNSCHEDULED",
}


def run_account_updater() -> int:
    """Both of its timers, as a tick runs them."""
    return ask_about_due_cards() + account_update_batch.run_account_updater()


def store(api: Api, number: str, year: str = "2034", **more: str) -> str:
    """A stored card with an agreement, under which the merchant may charge it."""
    fields = {"card.number": number, "card.expiryMonth": "05", "card.expiryYear": year, "card.holder": "Jane Jones"}
    brand = "MASTER" if number.startswith("5") else "VISA"
    stored = api.post("/v1/registrations", {"paymentBrand": brand, **fields, **INITIAL, **more})
    assert stored.status == 200, stored
    Notification.objects.all().delete()
    return stored.id


def charge(api: Api, registration: str, **more: str) -> Answer:
    return api.post(f"/v1/registrations/{registration}/payments", CLICK | MIT | more)


def card_of(registration: str) -> tuple[str, str]:
    """The stored number and date."""
    row = Registration.objects.get(pk=registration)
    number = current_vault().open(row.means_sealed or b"", row.id).reveal()
    return number, f"{row.details['card']['expiryMonth']}/{row.details['card']['expiryYear']}"


def statuses(registration: str) -> list[str]:
    rows = AccountUpdate.objects.filter(registration=registration).order_by("id")
    return list(rows.values_list("status", flat=True))


def told(registration: str) -> list[str]:
    """Actions of the webhooks about a registration."""
    rows = Notification.objects.filter(kind="REGISTRATION", registration=registration).order_by("id")
    return list(rows.values_list("action", flat=True))


# --- before a merchant's payment -------------------------------------------------------------------------------------


def test_a_merchants_payment_is_made_with_the_new_number_of_the_same_registration(updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER)
    agreement = Agreement.objects.get(registration=stored)
    paid = charge(updating.api, stored)
    assert (paid.code, paid.body["card"]["last4Digits"]) == ("000.100.110", RENEWED_NUMBERS["VISA"][-4:])
    assert card_of(stored) == (RENEWED_NUMBERS["VISA"], "12/2040")
    assert (statuses(stored), told(stored)) == (["NEW_NUMBER"], ["UPDATED"])
    kept = Agreement.objects.get(pk=agreement.pk)
    assert (kept.registration, kept.reference, kept.network_reference) == (
        agreement.registration, agreement.reference, agreement.network_reference,
    )  # fmt: skip
    read = updating.api.get(f"/v1/registrations/{stored}").body
    assert read["accountUpdate"]["answer"] == "NEW_NUMBER"
    assert read["card"]["last4Digits"] == RENEWED_NUMBERS["VISA"][-4:]
    assert places_of(RENEWED_NUMBERS["VISA"]) == places_of(NEW_NUMBER) == set()


def test_the_webhook_shows_the_card_as_it_is_then(updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER)
    charge(updating.api, stored)
    row = Notification.objects.get(kind="REGISTRATION", registration=stored)
    text = webhook_payloads.build_webhook_payloads([row], {row.pk})[row.pk].text
    assert RENEWED_NUMBERS["VISA"] not in text
    assert '"NEW_NUMBER"' in text
    assert RENEWED_NUMBERS["VISA"][-4:] in text


def test_a_card_that_has_expired_is_charged_with_its_new_date(updating: Shop) -> None:
    stored = store(updating.api, NEW_EXPIRY, year=f"{clock.real_now().year + 1}")
    pass_time(updating.api, days=700)
    paid = charge(updating.api, stored)
    assert (paid.code, card_of(stored)) == ("000.100.110", (NEW_EXPIRY, "12/2040"))


def test_a_network_token_is_not_touched_by_a_new_number(updating: Shop) -> None:
    Channel.objects.filter(pk=updating.channel.pk).update(network_tokens=True)
    stored = store(updating.api, NEW_NUMBER)
    call_token_service_when_due()
    before = NetworkToken.objects.filter(registration=stored).values().get()
    charge(updating.api, stored)
    assert NetworkToken.objects.filter(registration=stored).values().get() == before
    assert before["status"] == "ACTIVE"


def test_a_card_of_another_network_gets_another_token(updating: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old network's would be sent with the new network's marks."""
    Channel.objects.filter(pk=updating.channel.pk).update(network_tokens=True)
    stored = store(updating.api, NEW_NUMBER)
    call_token_service_when_due()
    before = NetworkToken.objects.get(registration=stored)
    monkeypatch.setitem(RENEWED_NUMBERS, "VISA", "5454545454545454")
    charged = charge(updating.api, stored)
    assert (Registration.objects.get(pk=stored).brand, charged.code) == ("MASTER", "000.100.110")
    assert "NetworkToken" not in charged.body["resultDetails"]
    after = NetworkToken.objects.get(registration=stored)
    assert (before.status, after.status, after.number_sealed) == ("ACTIVE", "REQUESTED", None)


@pytest.mark.parametrize(
    ("number", "code"), [(CLOSED, "700.601.003"), (CONTACT_HOLDER, "700.601.001")], ids=["closed", "contact holder"]
)
def test_a_card_that_is_closed_or_unclear_is_not_charged_until_its_holder_acts(
    updating: Shop, number: str, code: str
) -> None:
    stored = store(updating.api, number)
    for _ in range(2):
        declined = charge(updating.api, stored)
        assert (declined.code, declined.body["result"]["parameterErrors"][0]["name"]) == (code, "registrationId")
    assert told(stored) == ["UPDATED"]
    by_shopper = updating.api.post(f"/v1/registrations/{stored}/payments", CLICK)
    assert by_shopper.code == "000.100.110"
    renewed = updating.api.post(f"/v1/registrations/{stored}", {"card.number": PLAIN})
    assert renewed.status == 200
    assert "accountUpdate" not in updating.api.get(f"/v1/registrations/{stored}").body
    assert charge(updating.api, stored).code == "000.100.110"


def test_a_new_agreement_of_the_holder_lifts_the_block(updating: Shop) -> None:
    stored = store(updating.api, CONTACT_HOLDER)
    assert charge(updating.api, stored).code == "700.601.001"
    pass_time(updating.api, minutes=60)
    assert updating.api.post(f"/v1/registrations/{stored}/payments", CLICK | INITIAL).code == "000.100.110"
    assert charge(updating.api, stored).code == "000.100.110"


def test_a_card_that_is_closed_after_its_holder_agreed_again_over_a_chargeback_is_not_charged(updating: Shop) -> None:
    """Each block is lifted by an agreement that is younger than itself."""
    stored = store(updating.api, CLOSED)
    before = clock.real_now() - timedelta(days=9)
    Registration.objects.filter(pk=stored).update(merchant_use_blocked_at=before, merchant_use_code="800.100.171")
    assert charge(updating.api, stored).code == "700.601.003"


def test_a_shoppers_own_payment_asks_nothing(updater: Updater, updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER)
    updating.api.post(f"/v1/registrations/{stored}/payments", CLICK)
    assert (updater.asked, card_of(stored)[0]) == (0, NEW_NUMBER)


def test_a_card_is_asked_about_once_a_day(updater: Updater, updating: Shop) -> None:
    stored = store(updating.api, PLAIN)
    charge(updating.api, stored)
    charge(updating.api, stored)
    assert updater.asked == 1
    pass_time(updating.api, days=2)
    charge(updating.api, stored)
    assert (updater.asked, statuses(stored)) == (2, ["NO_CHANGE", "NO_CHANGE"])


def test_without_the_setting_nothing_is_asked(shop: Shop) -> None:
    stored = store(shop.api, NEW_NUMBER)
    assert charge(shop.api, stored).code == "000.100.110"
    assert run_account_updater() == 0
    assert (card_of(stored)[0], AccountUpdate.objects.exists()) == (NEW_NUMBER, False)


@pytest.mark.parametrize(
    "fault",
    [
        AccountUpdaterUnavailableError("down"),
        ValueError("broken"),
        CardUpdate(answer=UpdaterAnswer.NEW_NUMBER, number=Secret("4200000000000001"), expiry_month="05",
                   expiry_year="2031"),
        CardUpdate(answer=UpdaterAnswer.NEW_EXPIRY, expiry_month="13", expiry_year="2031"),
        CardUpdate(answer=UpdaterAnswer.CLOSED, number=Secret(PLAIN)),
    ],
    ids=["unavailable", "broken", "wrong number", "wrong date", "closed with a number"],
)  # fmt: skip
def test_an_updater_that_is_down_or_talks_nonsense_costs_no_payment_and_is_left_alone_for_a_while(
    updater: Updater, updating: Shop, fault: Any
) -> None:
    stored = store(updating.api, PLAIN)
    updater.answers["ask"] = fault
    assert charge(updating.api, stored).code == "000.100.110"
    assert charge(updating.api, stored).code == "000.100.110"
    assert (updater.asked, statuses(stored), card_of(stored)) == (1, ["UNANSWERED"], (PLAIN, "05/2034"))
    account_updates._pause.end()
    del updater.answers["ask"]
    charge(updating.api, stored)
    assert statuses(stored) == ["UNANSWERED", "NO_CHANGE"]


def test_an_updater_that_hangs_holds_a_payment_up_to_its_deadline(
    updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, released = store(updating.api, PLAIN), threading.Event()

    class Hanging(Updater):
        def ask(self, inquiry: CardInquiry, *, deadline_s: float) -> CardUpdate:
            released.wait(60)
            return CardUpdate(answer=UpdaterAnswer.CLOSED)

    monkeypatch.setattr(account_updates, "load_account_updater", Hanging)
    monkeypatch.setattr(account_updates, "REAL_TIME_DEADLINE_S", 0.05)
    paid = charge(updating.api, stored)
    released.set()
    assert (paid.code, statuses(stored)) == ("000.100.110", ["UNANSWERED"])


def test_a_connection_that_an_updater_opens_in_its_thread_is_closed(
    updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, opened, threads = store(updating.api, PLAIN), [], []

    class Reading(Updater):
        def ask(self, inquiry: CardInquiry, *, deadline_s: float) -> CardUpdate:
            connection.ensure_connection()
            opened.append(connection.connection)
            threads.append(threading.current_thread())
            return super().ask(inquiry, deadline_s=deadline_s)

    monkeypatch.setattr(account_updates, "load_account_updater", Reading)
    charge(updating.api, stored)
    threads[0].join(60)
    assert [each.closed for each in opened] == [True]


def test_too_many_questions_at_a_time_hold_no_payment_up(
    updater: Updater, updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = store(updating.api, PLAIN)
    monkeypatch.setattr(account_updates, "_places", Places(1))
    account_updates._places.acquire(blocking=False)
    assert charge(updating.api, stored).code == "000.100.110"
    assert (updater.asked, statuses(stored)) == (0, [])
    account_updates._places.release()
    charge(updating.api, stored)
    assert statuses(stored) == ["NO_CHANGE"], "it was not at fault, so it is asked again at once"


def test_a_card_that_changes_while_it_is_asked_about_stays_as_it_was_changed(
    updater: Updater, updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = store(updating.api, NEW_NUMBER)
    original = registrations.record_registration_change

    def losing(owner: Registration, *given: Any, **more: Any) -> bool:
        Registration.objects.filter(pk=owner.pk).update(sequence=owner.sequence + 1)
        return original(owner, *given, **more)

    monkeypatch.setattr(registrations, "record_registration_change", losing)
    assert charge(updating.api, stored).code == "000.100.110"
    assert (statuses(stored), card_of(stored)[0], told(stored)) == (["SUPERSEDED"], NEW_NUMBER, [])


def test_a_schedules_run_is_charged_to_the_new_number(updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER)
    job = _schedule(updating.api, stored)
    pass_time(updating.api, days=2)
    assert Job.objects.get(pk=job).state == "ACTIVE"
    assert card_of(stored)[0] == RENEWED_NUMBERS["VISA"]
    charged = Payment.objects.filter(registration=stored, payment_type="DB").latest("id")
    assert charged.answer["card"]["last4Digits"] == RENEWED_NUMBERS["VISA"][-4:]


@pytest.mark.parametrize(
    ("number", "reason"),
    [(CLOSED, "DO_NOT_RETRY"), (CONTACT_HOLDER, "AUTHENTICATION_NEEDED")],
    ids=["closed", "contact holder"],
)
def test_a_schedule_of_a_closed_card_stops(updating: Shop, number: str, reason: str) -> None:
    stored = store(updating.api, number)
    job = _schedule(updating.api, stored)
    pass_time(updating.api, days=2)
    row = Job.objects.get(pk=job)
    assert (row.state, row.reason) == ("SUSPENDED", reason)


def _schedule(api: Api, registration: str) -> str:
    made = api.post(
        "/v1/schedules",
        {
            "registrationId": registration,
            "amount": "9.00",
            "currency": "EUR",
            "paymentType": "DB",
            "job.expression": "0 0 6 * * ?",
            **{name: value for name, value in MIT.items() if name != "standingInstruction.type"},
            "standingInstruction.type": "RECURRING",
        },
    )
    assert made.status == 200, made
    return made.id


# --- opting out ------------------------------------------------------------------------------------------------------


def test_a_holder_who_opted_out_is_not_asked_about(updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER, accountUpdater="false")
    assert updating.api.get(f"/v1/registrations/{stored}").body["accountUpdater"] == "false"
    charge(updating.api, stored)
    assert (list_due_cards(), statuses(stored), card_of(stored)[0]) == ([], [], NEW_NUMBER)
    updating.api.post(f"/v1/registrations/{stored}", {"accountUpdater": "true"})
    assert list_due_cards() == [UUID(stored)]
    updating.api.post(f"/v1/registrations/{stored}", {"accountUpdater": "false"})
    assert list_due_cards() == []


def test_a_card_that_a_payment_stores_is_kept_out_from_the_first_moment(updating: Shop) -> None:
    fields = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "paymentBrand": "VISA"}
    card = {"card.number": NEW_NUMBER, "card.expiryMonth": "05", "card.expiryYear": "2034", "card.holder": "Jane Jones"}
    sent = fields | card | INITIAL | {"createRegistration": "true"}
    out, asked = (updating.api.post("/v1/payments", sent | more) for more in ({"accountUpdater": "false"}, {}))
    stored, other = out.body["registrationId"], asked.body["registrationId"]
    assert (out.code, out.body["accountUpdater"]) == ("000.100.110", "false")
    assert updating.api.get(f"/v1/registrations/{stored}").body["accountUpdater"] == "false"
    assert list_due_cards() == [UUID(other)]
    charge(updating.api, stored)
    assert (statuses(stored), card_of(stored)[0]) == ([], NEW_NUMBER)


@pytest.mark.parametrize("kind", [{"amount": "92.00", "currency": "EUR", "paymentType": "DB"}, {}])
def test_a_card_that_a_checkout_stores_is_kept_out_from_the_first_moment(updating: Shop, kind: dict[str, str]) -> None:
    checkout = updating.api.post("/v1/checkouts", {**kind, "createRegistration": "true", "accountUpdater": "false"}).id
    card = {"card.number": NEW_NUMBER, "card.expiryMonth": "05", "card.expiryYear": "2034", "card.holder": "Jane Jones"}
    path = f"/v1/checkouts/{checkout}/{'payment' if kind else 'registration'}"
    paid = updating.api.post(path, {"paymentBrand": "VISA", **card, "shopperResultUrl": "https://shop.example/done"})
    assert paid.status == 200, paid
    stored = Registration.objects.get()
    assert stored.request["accountUpdater"] == "false"
    assert list_due_cards() == []


def test_the_samples_of_the_page_are_what_is_taken_and_shown(updating: Shop) -> None:
    page = "account-updater.md"
    sent = read_block(page, "Opt out", "bash")
    shown = json.loads("{" + read_block(page, "What comes of it", "json") + "}")["accountUpdate"]
    stored = store(updating.api, NEW_NUMBER)
    charge(updating.api, stored)
    told_there = updating.api.get(f"/v1/registrations/{stored}").body["accountUpdate"]
    assert (told_there.keys(), told_there["answer"]) == (shown.keys(), shown["answer"])
    path = sent.partition("gateway.example")[2].partition('"')[0].replace("$REGISTRATION_ID", stored)
    [value] = [part.split("=")[1].strip() for part in sent.split("-d ") if part.startswith("accountUpdater=")]
    assert updating.api.post(path, {"accountUpdater": value}).status == 200
    assert Registration.objects.get(pk=stored).request["accountUpdater"] == value


def test_a_wrong_value_is_named(updating: Shop) -> None:
    stored = store(updating.api, PLAIN)
    refused = updating.api.post(f"/v1/registrations/{stored}", {"accountUpdater": "no"})
    assert (refused.status, refused.body["result"]["parameterErrors"][0]["name"]) == (400, "accountUpdater")


def test_an_answer_that_comes_after_the_holder_opted_out_changes_nothing(updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER)
    assert ask_about_due_cards() == 1
    updating.api.post(f"/v1/registrations/{stored}", {"accountUpdater": "false"})
    run_account_updater()
    assert (statuses(stored), card_of(stored)[0]) == (["SUPERSEDED"], NEW_NUMBER)


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_asks_about_the_due_cards_and_its_answer_is_applied(updating: Shop) -> None:
    numbers = (NEW_NUMBER, NEW_EXPIRY, CLOSED, CONTACT_HOLDER, SILENT, PLAIN)
    stored = [store(updating.api, number) for number in numbers]
    before = metrics.ACCOUNT_UPDATES.labels("file", "CLOSED")._value.get()
    assert run_account_updater() == 3  # made, sent, answered
    assert [statuses(one) for one in stored] == [
        ["NEW_NUMBER"], ["NEW_EXPIRY"], ["CLOSED"], ["CONTACT_HOLDER"], ["UNANSWERED"], ["NO_CHANGE"],
    ]  # fmt: skip
    assert [told(one) for one in stored] == [["UPDATED"], ["UPDATED"], ["UPDATED"], ["UPDATED"], [], []]
    file = AccountUpdateFile.objects.get()
    assert (file.state, file.cards, file.content, file.due_at) == ("ANSWERED", 6, None, None)
    assert metrics.ACCOUNT_UPDATES.labels("file", "CLOSED")._value.get() == before + 1
    assert run_account_updater() == 0
    for number in (*numbers, *RENEWED_NUMBERS.values()):
        assert places_of(number) == set()


def test_cards_that_expire_first_are_asked_about_first_and_more_often(updating: Shop) -> None:
    year = clock.real_now().year
    late, soon = store(updating.api, PLAIN, year=f"{year + 8}"), store(updating.api, "4111111111111111", f"{year + 1}")
    assert list_due_cards() == [UUID(soon), UUID(late)]
    run_account_updater()
    assert list_due_cards() == []
    pass_time(updating.api, days=31)  # which runs the timers
    assert (statuses(soon), statuses(late)) == (["NO_CHANGE"] * 2, ["NO_CHANGE"] * 2)
    month = clock.merchant_now(Registration.objects.get(pk=soon).merchant) + timedelta(days=30)
    Registration.objects.filter(pk=soon).update(
        account_update_due_at=None,  # as a change by the API has it
        details={"card": {"bin": "411111", "expiryMonth": f"{month:%m}", "expiryYear": f"{month:%Y}"}},
    )
    pass_time(updating.api, days=8)
    assert (statuses(soon), statuses(late)) == (["NO_CHANGE"] * 3, ["NO_CHANGE"] * 2)


def test_cards_of_no_use_are_not_asked_about(updating: Shop) -> None:
    store(updating.api, CLOSED)
    run_account_updater()
    pass_time(updating.api, days=60)
    assert list_due_cards() == []  # closed
    without = store(updating.api, PLAIN)
    Agreement.objects.all().delete()
    assert list_due_cards() == [UUID(without)]
    Registration.objects.filter(pk=without).update(created_at=clock.real_now() - timedelta(days=500), updated_at=None)
    assert list_due_cards() == []  # long ago, under no agreement
    gone = store(updating.api, PLAIN)
    updating.api.delete(f"/v1/registrations/{gone}")
    assert list_due_cards() == []


@pytest.mark.django_db(transaction=True)
def test_due_cards_are_found_by_a_prepared_statement(committed: Shop) -> None:
    """As a running node asks, outside of a transaction: the database has to know the type of each value."""
    Channel.objects.filter(pk=committed.channel.pk).update(account_updater=True)
    stored = store(committed.api, PLAIN)
    assert list_due_cards() == [UUID(stored)]
    assert run_account_updater() == 3
    assert statuses(stored) == ["NO_CHANGE"]


def look_at(registration: str) -> timedelta:
    """In how long the files look at a card again."""
    row = Registration.objects.select_related("merchant").get(pk=registration)
    assert row.account_update_due_at is not None
    return row.account_update_due_at - clock.merchant_now(row.merchant)


def is_about(found: timedelta, days: int) -> bool:
    return abs(found - timedelta(days=days)) < timedelta(minutes=5)


def test_a_card_that_is_not_due_is_looked_at_again_when_it_may_be(updating: Shop) -> None:
    year = clock.real_now().year
    late, out = (
        store(updating.api, PLAIN, f"{year + 8}"),
        store(updating.api, "4111111111111111", accountUpdater="false"),
    )
    month = clock.real_now() + timedelta(days=30)
    soon = store(updating.api, "4242424242424242", f"{month:%Y}", **{"card.expiryMonth": f"{month:%m}"})
    assert run_account_updater() == 3
    assert is_about(look_at(late), 1)  # whether there was an answer
    assert is_about(look_at(out), 30)
    pass_time(updating.api, days=2)  # which runs the timers
    assert is_about(look_at(late), 28)
    assert is_about(look_at(soon), 5)
    assert [statuses(one) for one in (late, out, soon)] == [["NO_CHANGE"], [], ["NO_CHANGE"]]


@pytest.mark.parametrize(
    "change",
    [
        {"accountUpdater": "true"},
        {"card.number": "4111111111111111"},
        {"card.expiryMonth": "06", "card.expiryYear": "2033"},
    ],
    ids=["opted in", "number", "date"],
)
def test_a_card_that_changes_is_looked_at_anew(updating: Shop, change: dict[str, str]) -> None:
    stored = store(updating.api, PLAIN, accountUpdater="false")
    ask_about_due_cards()
    assert is_about(look_at(stored), 30)
    updating.api.post(f"/v1/registrations/{stored}", change)
    assert Registration.objects.get(pk=stored).account_update_due_at is None
    assert list_due_cards() == ([UUID(stored)] if "accountUpdater" in change else [])


def test_the_cards_that_are_looked_at_are_found_by_an_index(updating: Shop) -> None:
    """EXPLAIN: a run costs what is due, however many cards are stored."""
    stored = Registration.objects.get(pk=store(updating.api, PLAIN))
    later = clock.real_now() + timedelta(days=20)
    for number in range(3_000):
        stored.pk, stored.account_update_due_at = uuid4(), later if number else None
        stored._state.adding = True
        stored.save(force_insert=True)
    [values] = account_update_batch._list_look_values()
    for statement in (account_update_batch._DUE, account_update_batch._NOT_DUE):
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE gateway_registration, gateway_accountupdate, gateway_agreement")
            cursor.execute(f"EXPLAIN {statement}", values)
            plan = "\n".join(row[0] for row in cursor.fetchall())
        assert "registration_account_update" in plan, plan
        assert "Seq Scan on gateway_registration" not in plan, plan
    assert len(list_due_cards()) == 2


@pytest.mark.django_db(transaction=True)
def test_a_card_that_somebody_changes_is_left_for_the_next_run(committed: Shop) -> None:
    """Nothing waits for a row, so no two transactions wait for each other; what the other one says is not lost."""
    Channel.objects.filter(pk=committed.channel.pk).update(account_updater=True)
    held, free = (store(committed.api, number, accountUpdater="false") for number in (PLAIN, "4111111111111111"))
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        Registration.objects.filter(pk=held).update(sequence=7, account_update_due_at=None)
        assert pool.submit(_postpone_elsewhere).result(PATIENCE_S) == 1
    assert Registration.objects.get(pk=held).account_update_due_at is None
    assert is_about(look_at(free), 30)
    assert account_update_batch.postpone_looks() == 1


def test_a_card_that_changes_while_it_is_looked_at_is_looked_at_again(
    updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = store(updating.api, PLAIN, accountUpdater="false")
    postpone = account_update_batch._postpone

    def opt_in_before(rows: list[tuple[Any, ...]]) -> int:
        updating.api.post(f"/v1/registrations/{stored}", {"accountUpdater": "true"})
        return postpone(rows)

    monkeypatch.setattr(account_update_batch, "_postpone", opt_in_before)
    assert account_update_batch.postpone_looks() == 0
    assert list_due_cards() == [UUID(stored)]


def _postpone_elsewhere() -> int:
    try:
        return account_update_batch.postpone_looks()
    finally:
        connection.close()


def test_the_cards_are_looked_for_once_and_shared_out_to_files(updating: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_update_batch, "MAX_FILE_CARDS", 2)
    monkeypatch.setattr(account_update_batch, "MAX_FILES_PER_RUN", 2)
    stored = [store(updating.api, PLAIN) for _ in range(5)]
    looks: list[list[UUID]] = []
    monkeypatch.setattr(account_update_batch, "list_due_cards", lambda: looks.append(list_due_cards()) or looks[-1])
    assert ask_about_due_cards() == 2
    assert [len(each) for each in looks] == [4]
    assert sorted(AccountUpdateFile.objects.values_list("cards", flat=True)) == [2, 2]
    assert sum(statuses(one) == ["WAITING"] for one in stored) == 4
    assert ask_about_due_cards() == 1
    assert [statuses(one) for one in stored] == [["WAITING"]] * 5


def test_a_card_that_changes_before_its_file_is_written_is_in_none(
    updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, other = store(updating.api, PLAIN), store(updating.api, NEW_NUMBER)
    due = list_due_cards()
    updating.api.delete(f"/v1/registrations/{stored}")
    monkeypatch.setattr(account_update_batch, "list_due_cards", lambda: due)
    assert ask_about_due_cards() == 1
    assert (statuses(stored), statuses(other)) == ([], ["WAITING"])


def test_the_same_file_twice_changes_nothing_twice(updater: Updater, updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER)
    kept: list[bytes] = []

    def fetch(content: bytes) -> bytes:
        kept.append(SimulatedAccountUpdater.fetch_answer(updater, "", content) or b"")
        return kept[0]

    updater.answers["fetch"] = fetch
    run_account_updater()
    file = AccountUpdateFile.objects.get()
    AccountUpdateFile.objects.update(state="SENT", due_at=clock.real_now(), content=updater.sent[0][1])
    run_account_updater()
    assert (len(kept), statuses(stored), told(stored)) == (2, ["NEW_NUMBER"], ["UPDATED"])
    assert AccountUpdateFile.objects.get().pk == file.pk


def test_a_card_that_has_expired_is_no_new_one(updater: Updater, updating: Shop) -> None:
    """What is stored stays, is asked about again, and the file's other answers count."""
    stored = [store(updating.api, number) for number in (NEW_NUMBER, CLOSED)]
    updater.answers["fetch"] = lambda content: _rewrite(
        content, lambda lines: [re.sub(r"(NEW_NUMBER,[0-9]+),.*", r"\1,05,2021", line) for line in lines]
    )
    run_account_updater()
    assert AccountUpdateFile.objects.get().state == "ANSWERED"
    assert [statuses(one) for one in stored] == [["UNANSWERED"], ["CLOSED"]]
    assert card_of(stored[0]) == (NEW_NUMBER, "05/2034")
    assert told(stored[0]) == []


def test_a_run_that_is_cut_off_within_an_answer_goes_on_where_it_was(
    updating: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = [store(updating.api, number) for number in (NEW_NUMBER, NEW_EXPIRY)]
    apply, applied = account_update_batch.apply_card_update, []

    def dying(row: AccountUpdate, update: CardUpdate) -> str:
        if applied:
            raise MemoryError
        applied.append(row.pk)
        return apply(row, update)

    monkeypatch.setattr(account_update_batch, "apply_card_update", dying)
    run_account_updater()
    assert sorted(told(stored[0]) + told(stored[1])) == ["UPDATED"]
    file = AccountUpdateFile.objects.get()
    assert (file.state, file.fault) == ("SENT", "MemoryError")
    monkeypatch.setattr(account_update_batch, "apply_card_update", apply)
    AccountUpdateFile.objects.update(due_at=clock.real_now())
    run_account_updater()
    assert [told(one) for one in stored] == [["UPDATED"], ["UPDATED"]]
    assert AccountUpdateFile.objects.get().state == "ANSWERED"


def _rewrite(content: bytes, change: Any) -> bytes:
    """The simulator's answer with its lines changed, in an envelope that opens."""
    key = SIMULATED_ACCOUNT_UPDATER.get_file_key()
    answer = SIMULATED_ACCOUNT_UPDATER.fetch_answer("", content) or b""
    file, lines = _open_lines(answer, key)
    return _seal_lines(file, clock.real_now(), change([",".join(fields) for _, fields in lines]), key)


def _other_file(content: bytes) -> bytes:
    return build_answer_file(uuid4(), clock.real_now(), {}, SIMULATED_ACCOUNT_UPDATER.get_file_key())


def _compressed(content: bytes) -> bytes:
    """The simulator's answer, compressed before it is encrypted."""
    key = JWK(kty="oct", k=SIMULATED_ACCOUNT_UPDATER.get_file_key().reveal())
    opened = JWE()
    opened.deserialize((SIMULATED_ACCOUNT_UPDATER.fetch_answer("", content) or b"").decode(), key)
    sealed = JWE(opened.payload, protected='{"alg":"dir","enc":"A256GCM","zip":"DEF"}')
    sealed.add_recipient(key)
    return str(sealed.serialize(compact=True)).encode()


@pytest.mark.parametrize(
    ("fetch", "fault"),
    [
        (_compressed, "is not encrypted with the key"),
        (lambda content: b"", "is not encrypted with the key"),
        (lambda content: b"D,1,NEW_NUMBER", "is not encrypted with the key"),
        (lambda content: _rewrite(content, lambda lines: lines)[:-20], "is not encrypted with the key"),
        (_other_file, "line 1: answers another file"),
        (lambda content: _rewrite(content, lambda lines: [*lines, lines[0]]), "line 4: answers a question for the"),
        (lambda content: _rewrite(content, lambda lines: [*lines, f"D,{uuid4().hex},CLOSED,,,"]), "was not asked"),
        (lambda content: _rewrite(content, lambda lines: [*lines, "D,1"]), "line 4: has not the fields"),
        (lambda content: _rewrite(content, lambda lines: [*lines, "X"]), "line 4: is no line D"),
        (lambda content: _rewrite(content, lambda lines: ["\n".join(lines)]), "ends before its line T"),
        (lambda content: _rewrite(content, lambda lines: [lines[0], lines[1].replace("CLOSED", "SHUT")]), "line 3"),
        (lambda content: _rewrite(content, lambda lines: [f"{lines[0][:-4]}", lines[1]]), "line 2: the expiry date"),
    ],
    ids=["compressed", "empty", "clear", "cut off", "of another", "twice", "not asked", "no fields", "no line",
         "count", "answer", "date"],
)  # fmt: skip
def test_an_answer_that_is_damaged_is_refused_as_a_whole_and_read_again(
    updater: Updater, updating: Shop, fetch: Any, fault: str
) -> None:
    stored = [store(updating.api, number, year) for number, year in ((NEW_NUMBER, "2033"), (CLOSED, "2034"))]
    updater.answers["fetch"] = fetch
    run_account_updater()
    file = AccountUpdateFile.objects.get()
    assert file.state == "SENT"
    assert fault in file.fault
    assert [statuses(one) for one in stored] == [["WAITING"], ["WAITING"]]
    assert [told(one) for one in stored] == [[], []]
    del updater.answers["fetch"]
    AccountUpdateFile.objects.update(due_at=clock.real_now())
    run_account_updater()
    assert [statuses(one) for one in stored] == [["NEW_NUMBER"], ["CLOSED"]]


def test_a_file_that_is_sent_after_a_fault_is_the_same_and_one_that_cannot_be_is_given_up(
    updater: Updater, updating: Shop
) -> None:
    stored = store(updating.api, NEW_NUMBER)
    updater.answers["send"] = AccountUpdaterUnavailableError("down")
    for _ in range(len(account_update_batch.FILE_RETRIES) + 1):
        run_account_updater()
        AccountUpdateFile.objects.filter(state="UNSENT").update(due_at=clock.real_now())
    file = AccountUpdateFile.objects.get()
    assert (len(updater.sent), len(set(updater.sent))) == (5, 1)
    assert (file.state, file.fault, file.content, statuses(stored)) == ("GIVEN_UP", "down", None, ["UNANSWERED"])
    assert list_due_cards() == []
    pass_time(updating.api, days=2)  # which runs the timers
    assert statuses(stored) == ["UNANSWERED", "WAITING"]


def test_a_file_without_an_answer_is_given_up_after_ten_days(updater: Updater, updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER)
    updater.answers["fetch"] = lambda content: None
    run_account_updater()
    assert AccountUpdateFile.objects.get().state == "SENT"
    now = clock.real_now()
    AccountUpdateFile.objects.update(created_at=now - timedelta(days=10), due_at=now)
    run_account_updater()
    file = AccountUpdateFile.objects.get()
    assert (file.state, file.fault, statuses(stored)) == ("GIVEN_UP", "no answer came", ["UNANSWERED"])


def test_a_file_is_encrypted_with_the_key_of_its_updater_alone(updating: Shop) -> None:
    store(updating.api, PLAIN)
    ask_about_due_cards()
    file = AccountUpdateFile.objects.get()
    content = bytes(file.content or b"")
    assert PLAIN.encode() not in content
    ident, inquiries = parse_question_file(content, SIMULATED_ACCOUNT_UPDATER.get_file_key())
    assert (ident, [one.number.reveal() for one in inquiries]) == (file.id, [PLAIN])
    with pytest.raises(AccountUpdateFileError):
        parse_question_file(content, Secret("A" * 43))
    with pytest.raises(AccountUpdateFileError, match="fields of an answer"):
        parse_answer_file(content, SIMULATED_ACCOUNT_UPDATER.get_file_key(), file=file.id)


def test_an_erased_card_is_not_written_back(updating: Shop) -> None:
    stored = store(updating.api, NEW_NUMBER)
    ask_about_due_cards()
    updating.api.delete(f"/v1/registrations/{stored}")
    run_account_updater()
    row = Registration.objects.get(pk=stored)
    assert (row.means_sealed, statuses(stored), told(stored)) == (None, ["SUPERSEDED"], ["DELETED"])


# --- set up ----------------------------------------------------------------------------------------------------------


@override_settings(IS_LIVE=True)
def test_a_live_channel_has_updates_only_with_an_updater() -> None:
    faults = d.DocumentFaults()
    CHANNEL_SECTION.shape({"accountUpdater": True}, "channel", faults)
    assert "GATEWAY_ACCOUNT_UPDATER" in str(faults)
    name = "gateway.connectors.simulator.account_updater:SIMULATED_ACCOUNT_UPDATER"
    with override_settings(GATEWAY_ACCOUNT_UPDATER=name):
        assert load_account_updater() is SIMULATED_ACCOUNT_UPDATER
    with override_settings(GATEWAY_ACCOUNT_UPDATER="nowhere:NAME"), pytest.raises(ImproperlyConfigured):
        load_account_updater()


# --- back office -----------------------------------------------------------------------------------------------------


def test_the_registrations_page_shows_what_was_asked_and_keeps_a_card_out(updating: Shop, stranger: Shop) -> None:
    stored = store(updating.api, CONTACT_HOLDER)
    charge(updating.api, stored)
    office = signed_in(person("clerk", Role.CLERK, updating.merchant))
    page = reverse("admin:gateway_registration_change", args=[UUID(stored)])
    shown = office.get(page).content.decode()
    assert "the holder has to be asked" in shown
    assert "700.601.001" in shown
    assert "before a payment" in shown
    switch = reverse("admin:gateway_registration_updates", args=[UUID(stored)])
    assert office.get(switch).status_code == 403
    for wanted, said in (("false", "false"), ("true", "true")):
        assert office.post(switch, {"wanted": wanted}).status_code == 302
        assert Registration.objects.get(pk=stored).request["accountUpdater"] == said
        entry = AuditEntry.objects.latest("id")
        assert (entry.action, (entry.after or {})["accountUpdater"]) == ("change", said)
    assert "Do not ask any more" in office.get(page).content.decode()
    auditor = signed_in(person("auditor", Role.AUDITOR, updating.merchant))
    assert auditor.post(switch, {"wanted": "false"}).status_code == 403
    other = signed_in(person("other", Role.CLERK, stranger.merchant))
    assert other.post(switch, {"wanted": "false"}).status_code == 404
    assert Registration.objects.get(pk=stored).request["accountUpdater"] == "true"


def test_files_are_listed_for_those_who_run_the_installation(updating: Shop) -> None:
    store(updating.api, PLAIN)
    run_account_updater()
    name = AccountUpdateFile.objects.get().id.hex
    address = reverse("admin:gateway_accountupdatefile_changelist")
    root = User.objects.create_superuser("root")
    assert name in signed_in(root).get(address).content.decode()
    assert signed_in(person("clerk", Role.CLERK, updating.merchant)).get(address).status_code == 403


# --- how long questions are kept -------------------------------------------------------------------------------------


def test_old_questions_go_but_those_that_changed_a_card(updating: Shop) -> None:
    changed, unchanged = store(updating.api, NEW_NUMBER), store(updating.api, PLAIN)
    run_account_updater()
    AccountUpdate.objects.update(asked_at=clock.real_now() - timedelta(days=401))
    Channel.objects.update(account_updater=False)
    run_account_updater()
    assert (statuses(changed), statuses(unchanged)) == (["NEW_NUMBER"], [])


def test_a_number_that_does_not_open_any_more_holds_no_file_up(updating: Shop) -> None:
    stored, other = store(updating.api, NEW_NUMBER), store(updating.api, NEW_EXPIRY)
    ask_about_due_cards()
    Registration.objects.filter(pk=stored).update(means_sealed=b"broken")
    run_account_updater()
    assert (statuses(stored), statuses(other)) == (["UNANSWERED"], ["NEW_EXPIRY"])
    Registration.objects.filter(pk=other).update(means_sealed=b"broken", account_update="")
    Registration.objects.update(account_update_due_at=None)
    AccountUpdate.objects.all().delete()
    run_account_updater()
    assert (statuses(stored), statuses(other)) == (["UNANSWERED"], ["UNANSWERED"])
    assert charge(updating.api, stored).status == 400

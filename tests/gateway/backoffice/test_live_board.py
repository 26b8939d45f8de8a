"""The live board: the last hour beside the week before, what waits, who changed what, and the way to the payments."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client

from config.beat import sync_periodic_tasks
from gateway.access import audit_log, permissions
from gateway.backoffice.operations import live_board
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.models import BreakerChange, OpenPayment, Payment, Role
from gateway.timers import due_times
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
PAGE = "/admin/live-board/"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    cache.clear()


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(User.objects.create_superuser("boss"))


def all_of(user: str = "boss") -> permissions.AccessScope:
    scope = permissions.find_access_scope(User.objects.get(username=user), live_board.VIEW_BOARD_PERMISSION)
    assert scope
    return scope


def copy_to_last_week(shop: Shop, status: str, count: int) -> None:
    """Payments like the newest one, made in the same hour a week before."""
    payment = Payment.objects.filter(merchant=shop.merchant).latest("created_at")
    low = first_id_at(clock.real_now() - live_board.WEEK - timedelta(minutes=30)).int
    for _number in range(count):
        payment.pk = payment.chain = type(payment.pk)(int=low | uuid4().int & 0xFFFFFFFFFFFF)
        payment.status = status
        payment.duplicate_guard = None
        payment.approved_amount = payment.amount if status == "APPROVED" else None
        payment.number = None  # type: ignore[assignment]  # drawn anew
        fields = [one for one in Payment._meta.concrete_fields if one.attname != "number"]
        columns = ", ".join(f'"{one.column}"' for one in fields)
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO gateway_payment ({columns}) VALUES ({', '.join(['%s'] * len(fields))})",
                [one.get_db_prep_save(getattr(payment, one.attname), connection) for one in fields],
            )


def page_of(client: Client) -> str:
    answer = client.get(PAGE)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_an_account_stands_beside_itself_a_week_before(shop: Shop, boss: Client) -> None:
    shop.api.pay()
    shop.api.pay(card__number="4000015500000005")
    copy_to_last_week(shop, "APPROVED", 4)
    rows = live_board.compare_accounts(all_of(), clock.real_now())
    assert [(row["now"].decided, row["before"].rate) for row in rows] == [(2, 100.0)]
    assert rows[0]["drop"] == 100.0 - rows[0]["now"].rate
    assert rows[0]["tone"] == "", "two payments move by chance"
    page = page_of(boss)
    assert "Approval rate by acquirer" in page
    assert "100.0 %" in page


def test_a_drop_of_many_payments_is_an_alarm(shop: Shop, boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_board, "MIN_COMPARED_PAYMENTS", 1)
    shop.api.pay(card__number="4000015500000005")
    assert Payment.objects.get(merchant=shop.merchant).status == "DECLINED"
    copy_to_last_week(shop, "APPROVED", 2)
    (row,) = live_board.compare_accounts(all_of(), clock.real_now())
    assert (row["tone"], row["change"]) == ("bad", "-100.0")


def test_each_figure_leads_to_as_many_payments(shop: Shop, boss: Client) -> None:
    """From each spike to its payments: the list behind a column has as many rows as it counts."""
    for _number in range(3):
        shop.api.pay()
    shop.api.pay(card__number="4000015500000005")
    (row,) = live_board.compare_accounts(all_of(), clock.real_now())
    for address, count in ((row["link"], 4), (row["declined_link"], row["now"].declined)):
        assert count_rows(boss, address) == count, address
    other = row["link"].replace("connector=", "connector=no")
    assert count_rows(boss, other) == 0
    columns = re.findall(
        r'<tr><th scope="row"><a href="([^"]+real_from[^"]+)">[^<]*</a></th>((?:<td[^>]*>[^<]*</td>)+)', page_of(boss)
    )
    counted = [(address, sum(map(int, re.findall(r">(\d+)<", cells)[:3]))) for address, cells in columns]
    assert sum(count for _address, count in counted) == 4
    for address, count in counted:
        if count:
            assert count_rows(boss, address) == count


def test_an_account_without_a_merchant_id_leads_to_its_own_payments(shop: Shop, boss: Client) -> None:
    """Its list had those of every account at the same connector."""
    paid = [shop.api.pay().id for _number in range(3)]
    Payment.objects.filter(pk=paid[0]).update(acquirer_merchant_id="M-1")
    rows = live_board.compare_accounts(all_of(), clock.real_now())
    listed = {row["name"]: (row["now"].decided, count_rows(boss, row["link"])) for row in rows}
    assert listed == {"simulator": (2, 2), "M-1": (1, 1)}


def count_rows(client: Client, address: str) -> int:
    page = client.get(address).content.decode()
    return len(set(re.findall(r"/admin/gateway/payment/([0-9a-f-]{36})/change/", page)))


def test_who_changed_what_is_marked(shop: Shop, boss: Client) -> None:
    audit_log.record_audit_entry(BY, "change", shop.merchant, after={"name": "Shop"})
    audit_log.record_audit_entry(BY, "view", shop.merchant)
    found = live_board.list_changes(all_of(), clock.real_now())
    mine = [one for one in found if one["words"].endswith(" Shop") and "Shop:" not in one["words"]]
    assert len(mine) == 1
    page = page_of(boss)
    assert page.count(mine[0]["words"]) == 2, "in the list and at the chart"
    assert boss.get(mine[0]["link"]).status_code == 200


def test_breakers_that_are_open_are_shown_until_they_close(shop: Shop, boss: Client) -> None:
    told: dict[str, Any] = {
        "process": "web:1", "connector": "stub", "channel": shop.channel.pk, "acquirer_merchant_id": "4711",
        "since": clock.real_now(),
    }  # fmt: skip
    BreakerChange.objects.create(state="open", why="too many failed", **told)
    assert "too many failed" in page_of(boss)
    BreakerChange.objects.create(state="closed", **told)
    cache.clear()
    assert "too many failed" not in page_of(boss)


@pytest.mark.parametrize("whole", [True, False], ids=["merchant", "channel"])
def test_an_open_breaker_is_shown_to_who_manages_its_merchant_or_channel(
    shop: Shop, stranger: Shop, whole: bool
) -> None:
    """However many breakers of others changed since."""
    told: dict[str, Any] = {"process": "web:1", "connector": "stub", "state": "open", "since": clock.real_now()}
    BreakerChange.objects.create(channel=shop.channel.pk, why="too many failed", **told)
    for number in range(live_board.MAX_CHANGES_SHOWN * 25):
        BreakerChange.objects.create(
            channel=stranger.channel.pk, acquirer_merchant_id=str(number), why="theirs", **told
        )
    page = page_of(signed_in(person("max", Role.MANAGER, shop.merchant if whole else shop.channel)))
    assert "too many failed" in page
    assert "theirs" not in page


def test_changes_are_told_to_readers_of_the_audit_trail_only(shop: Shop, boss: Client) -> None:
    audit_log.record_audit_entry(BY, "change", shop.merchant, after={"name": "Shop"})
    words = live_board.list_changes(all_of(), clock.real_now())[0]["words"]
    assert permissions.ROLES_BY_PERMISSION[live_board.VIEW_BOARD_PERMISSION] >= {Role.DEVELOPER}
    assert Role.DEVELOPER not in permissions.ROLES_BY_PERMISSION[live_board.VIEW_CHANGES_PERMISSION]
    assert words in page_of(signed_in(person("max", Role.MANAGER, shop.merchant)))
    page = page_of(signed_in(person("dora", Role.DEVELOPER, shop.merchant)))
    assert words not in page
    assert "Changed within a day" not in page


def test_every_queue_has_an_age_and_the_database_answers(shop: Shop, boss: Client) -> None:
    ages = due_times.measure_queue_ages()
    assert len(ages) > 15
    page = page_of(boss)
    assert "connections" in page
    assert "recovery" in page


def test_a_timer_says_in_the_readers_language_what_it_does(boss: Client) -> None:
    """On the live board and on the page of ticks: the timer's name, such as "bank days", is for logs and commands."""
    boss.post("/admin/language", {"language": "de", "next": "/admin/"})
    sync_periodic_tasks()
    ticks = boss.get("/admin/django_celery_beat/periodictask/").content.decode()
    for page in (page_of(boss), unescape(ticks)):
        assert "Fragt den Acquirer nach Zahlungen ohne Antwort." in page
        assert "Ask the acquirer" not in page


def test_each_cell_of_the_wide_tables_is_labelled_for_a_phone(shop: Shop, boss: Client) -> None:
    """There the cells of a row stand below one another, and nothing is pushed aside."""
    shop.api.pay()
    for title in ("Approval rate by acquirer", "Queues"):
        section = page_of(boss).partition(f"<h2>{title}</h2>")[2].partition("</section>")[0]
        assert "th-scroll" not in section
        assert "th-rows" in section
        names = re.findall('<th scope="col"[^>]*>([^<]+)</th>', section)
        row = section.partition("<tbody><tr>")[2].partition("</tr>")[0]
        assert re.findall('<td class="th-num" data-label="([^"]+)"', row) == names[1:]
        assert row.count("<td") == len(names) - 1


def test_only_the_board_is_renewed(boss: Client) -> None:
    part = boss.get(f"{PAGE}?part=board").content.decode()
    assert "<html" not in part
    assert "Approval rate by acquirer" in part


def test_the_oldest_of_each_status_is_told_of_however_many_are_open(
    shop: Shop, boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever order the table has them in, and whatever else is open."""
    monkeypatch.setattr(live_board, "MAX_OPEN_COUNTED", 2)
    ids = [Payment.objects.get(pk=shop.api.pay().id).pk for _number in range(5)]
    low = first_id_at(clock.real_now() - timedelta(hours=5)).int
    oldest = UUID(int=low | uuid4().int & 0xFFFFFFFFFFFF)
    for pk in ids[1:]:
        OpenPayment.objects.create(payment_id=pk, recover_at=clock.real_now())
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE gateway_payment SET id = %s, chain = %s WHERE id = %s", [oldest, oldest, ids[0]])
        cursor.execute("UPDATE gateway_payment SET status = 'PENDING' WHERE id <> %s", [ids[-1]])
        cursor.execute("UPDATE gateway_payment SET status = 'IN_DOUBT' WHERE id = %s", [ids[-1]])
    OpenPayment.objects.create(payment_id=oldest, recover_at=clock.real_now())
    rows = {row["name"]: row for row in live_board.build_board(all_of(), all_of())["open"]}
    assert {name: (row["count"], row["more"]) for name, row in rows.items()} == {
        "waiting for shoppers": (2, True), "in doubt": (1, False),
    }  # fmt: skip
    assert rows["waiting for shoppers"]["age"].startswith("5")
    assert "2+</td>" in page_of(boss)


def test_others_see_their_own_merchants_and_no_queues(shop: Shop, stranger: Shop, boss: Client) -> None:
    shop.api.pay()
    audit_log.record_audit_entry(BY, "change", shop.merchant, after={"name": "Shop"})
    own, foreign = (
        signed_in(person(f"max{at}", Role.MANAGER, one.merchant)) for at, one in enumerate((shop, stranger))
    )
    assert "Shop" in page_of(own)
    page = page_of(foreign)
    assert "No payment in the last hour" in page
    words = live_board.list_changes(all_of(), clock.real_now())[0]["words"]
    assert words not in page
    assert words in page_of(own)
    assert "connections" not in page
    clerk = signed_in(person("clara", Role.CLERK, shop.merchant))
    assert clerk.get(PAGE).status_code == (200 if "live-board" in clerk.get("/admin/").content.decode() else 403)


def test_a_part_that_takes_too_long_is_left_out(shop: Shop, boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_board, "_DATABASE", "SELECT pg_sleep(10)")
    monkeypatch.setattr("gateway.backoffice.kit.time_limit.SEARCH_TIMEOUT_MS", 50)
    assert "took too long" in page_of(boss)

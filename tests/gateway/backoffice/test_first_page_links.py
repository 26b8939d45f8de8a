"""The first page's panels lead to lists that hold what they count, and nobody to a closed door."""

from __future__ import annotations

import html
import random
import re
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from chargebacks import ledger
from chargebacks.models import Chargeback
from gateway.backoffice.webhooks import webhook_forms
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.models import AcquirerAccount, Authentication, OpenPayment, Payment, Role, WebhookAttempt, WebhookDelivery
from gateway.models.webhooks import INSPECTOR_URL_PREFIX
from gateway.notifications import endpoints
from reporting.models import Delivery, DeliveryAttempt, SettlementFile
from reporting.reconciliation.models import ReconciliationFile
from tests.gateway.backoffice.test_rights import furnish
from tests.support import settlement
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.settlement import payment_of
from tests.support.threeds import buy

pytestmark = pytest.mark.django_db
DISPUTES = "/admin/chargebacks/chargeback/"


def panel_of(client: Client, title: str) -> str:
    """The HTML of one panel of the first page."""
    cache.clear()
    page = client.get("/admin/").content.decode()
    found = page[page.index(f"<h2>{title}</h2>") :]
    return html.unescape(found[: found.index("</section>")])


def disputes_of(client: Client, link: str) -> set[str]:
    """Ids of the disputes that a list shows."""
    page = client.get(link).content.decode()
    listed = page[page.index("data-rows") :] if "data-rows" in page else ""
    return set(re.findall(r"/chargebacks/chargeback/([0-9a-f-]{36})/change/", listed))


def columns_of(panel: str) -> list[tuple[str, list[int]]]:
    """(address, figures) of the rows of a chart's table that lead somewhere."""
    rows = re.findall(r'<tr><th scope="row"><a href="([^"]+)">[^<]*</a></th>(.*?)</tr>', panel)
    return [(link, [int(each) for each in re.findall(r"<td[^>]*>([0-9]+)</td>", row)]) for link, row in rows]


@pytest.mark.parametrize("role", [Role.PSP, Role.MANAGER, Role.CLERK, Role.AUDITOR, Role.DEVELOPER])
def test_no_link_of_the_first_page_is_a_closed_door(shop: Shop, stranger: Shop, role: Role) -> None:
    """Settlement files are of the whole installation: a manager was led to a page that is not theirs."""
    furnish(shop)
    node = shop.merchant.division.psp if role == Role.PSP else shop.merchant
    client = signed_in(person("somebody", role, node))
    cache.clear()
    page = client.get("/admin/").content.decode()
    content = page[page.index('id="content"') :]
    links = {html.unescape(link).partition("#")[0] for link in re.findall(r'href="(/admin/[^"]+)"', content)}
    assert not re.findall(r'href="(?!/admin/)[^"]*"', content)
    assert links or role == Role.DEVELOPER
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)


@pytest.mark.parametrize("seed", range(3))
def test_disputes_are_listed_by_the_days_that_are_left(shop: Shop, stranger: Shop, seed: int) -> None:
    """In two time zones, one of them at a clock that was moved: each column is its list, and the money its sum."""
    chance = random.Random(seed)
    shop.merchant.time_zone = "Pacific/Auckland"
    shop.merchant.clock_offset = timedelta(days=2, hours=5)
    shop.merchant.save()
    for _ in range(6):
        where = chance.choice((shop, stranger))
        paid = payment_of(where.api.pay().id)
        case = ledger.record_chargeback(paid, Decimal(chance.randrange(1, 92)), reason="000.100.221", by=BY)
        due = clock.merchant_now(where.merchant) + timedelta(hours=chance.randrange(1, 24 * 20))
        Chargeback.objects.filter(pk=case.pk).update(due_at=due)
    client = signed_in(person("boss", Role.PSP, shop.merchant.division.psp))
    panel = panel_of(client, "Disputes")
    columns = columns_of(panel)
    assert sum(figures[0] for _link, figures in columns) == 6
    for link, (number,) in columns:
        assert len(disputes_of(client, link)) == number, link
    shown = dict(re.findall(r'<dt>([^<]+)</dt><dd class="[^"]*"><a href="[^"]+">([^<]+)</a>', panel))
    urgent = re.search(r'href="([^"]+left=-3)"', panel)
    assert urgent
    assert len(disputes_of(client, urgent[1])) == int(shown["within 3 days"])
    sums = client.get(f"{DISPUTES}?list=open").content.decode()
    total, number = re.findall(r"<dt>([^<]+)</dt><dd>([0-9.,]+) <small>EUR", sums)[0][::-1]
    assert (f"{total} EUR", number) == (shown["at stake"], "6 disputes")


def test_a_reasons_column_is_of_the_time_of_its_chart(shop: Shop) -> None:
    """The chart counts 90 days; its columns led to the disputes of all times."""
    old, new = (
        ledger.record_chargeback(payment_of(shop.api.pay().id), Decimal("5.00"), reason="000.100.221", by=BY)
        for _ in range(2)
    )
    Chargeback.objects.filter(pk=old.pk).update(opened_at=clock.real_now() - timedelta(days=100))
    client = signed_in(person("boss", Role.MANAGER, shop.merchant))
    page = html.unescape(client.get(DISPUTES).content.decode())
    ((link, figures),) = columns_of(page)
    assert disputes_of(client, f"{DISPUTES}{link}") == {str(new.pk)}
    assert sum(figures) == 1
    assert "opened within 90 days" in client.get(f"{DISPUTES}{link}").content.decode()


@pytest.mark.parametrize(("left", "words"), [("-3", "≤ 3"), ("15-", "≥ 15"), ("4-7", "4–7")])
def test_the_days_that_are_left_are_told_with_the_end_that_is_open(shop: Shop, left: str, words: str) -> None:
    client = signed_in(person("boss", Role.MANAGER, shop.merchant))
    assert f"days left: {words}" in client.get(f"{DISPUTES}?left={left}").content.decode()


@pytest.mark.parametrize("odd", ["left=soon", "left=99999-", "left=-", "opened=0", "opened=x", "left=5-2"])
def test_a_filter_that_cannot_be_read_narrows_nothing_or_finds_nothing(shop: Shop, odd: str) -> None:
    ledger.record_chargeback(payment_of(shop.api.pay().id), Decimal("5.00"), by=BY)
    client = signed_in(person("boss", Role.MANAGER, shop.merchant))
    assert client.get(f"{DISPUTES}?{odd}").status_code == 200
    assert len(disputes_of(client, f"{DISPUTES}?{odd}")) == (0 if odd == "left=5-2" else 1)


def test_authentications_are_those_of_the_figure_after_the_clock_was_moved(shop: Shop) -> None:
    """One of the day before, at a clock that was a month ahead, looked as if it were of today."""
    authenticating = shop.open_channel("authenticating", three_d_secure=True)
    for _ in range(2):
        assert buy(shop.api_of(authenticating), "4200000000000091").status == 200
    first = Authentication.objects.order_by("id")[0]
    long_ago = clock.real_now() - timedelta(days=3)
    Authentication.objects.filter(pk=first.pk).update(
        id=f"{int(long_ago.timestamp() * 1000):012x}7{first.pk.hex[13:]}",
        created_at=clock.real_now() + timedelta(days=30),
    )
    client = signed_in(person("boss", Role.MANAGER, shop.merchant))
    panel = panel_of(client, "3-D Secure")
    link, number = re.findall(r'<td class="th-num"><a href="([^"]+)">([0-9]+)</a></td>', panel)[0]
    assert int(number) == 1
    assert client.get(link).context["cl"].result_count == 1


def test_endpoints_that_fail_are_those_of_the_figure(shop: Shop) -> None:
    good, bad = (
        endpoints.create_endpoint(shop.merchant, address, by=BY)[0]
        for address in (INSPECTOR_URL_PREFIX, "https://shop.example/hook")
    )
    for row in (good, bad):
        endpoints.activate_endpoint(row, by=BY)
    shop.api.pay()
    now = clock.real_now()
    counted = Counter[bool]()
    for delivery in WebhookDelivery.objects.filter(endpoint__in=[good, bad]):
        failed = delivery.endpoint_id == bad.pk
        counted[failed] += 1
        WebhookAttempt.objects.create(delivery=delivery, number=1, at=now, status=500 if failed else 200, duration_ms=1)
    assert counted[True]
    client = signed_in(person("boss", Role.MANAGER, shop.merchant))
    panel = panel_of(client, "Webhooks")
    link = re.search(r'href="([^"]+last=failed)">1</a>', panel)
    assert link
    page = client.get(link[1]).content.decode()
    assert f"/webhookendpoint/{bad.pk}/change/" in page
    assert f"/webhookendpoint/{good.pk}/change/" not in page


def test_endpoints_that_fail_are_found_beyond_those_that_fit_on_the_page(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_forms, "MAX_SHOWN_ENDPOINTS", 1)
    bad, _newer = (endpoints.create_endpoint(shop.merchant, f"https://shop.example/{n}", by=BY)[0] for n in range(2))
    endpoints.activate_endpoint(bad, by=BY)
    shop.api.pay()
    delivery = WebhookDelivery.objects.filter(endpoint=bad).earliest("id")
    WebhookAttempt.objects.create(delivery=delivery, number=1, at=clock.real_now(), status=500, duration_ms=1)
    page = signed_in(person("boss", Role.MANAGER, shop.merchant)).get("/admin/gateway/webhookendpoint/?last=failed")
    assert f"/webhookendpoint/{bad.pk}/change/" in page.content.decode()


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "2026-02-30", "20260514", "x"])
def test_a_day_that_is_none_or_at_the_end_of_time_narrows_nothing(day: str) -> None:
    institute = settlement.institute(time_zone="Pacific/Auckland")
    settlement.take_in(settlement.csv([settlement.line()]), institute, "1.csv")
    page = signed_in(User.objects.create_superuser("boss")).get(f"/admin/reporting/settlementfile/?day={day}")
    assert page.status_code == 200
    assert page.content.decode().count('/change/">') == 1


def test_a_day_without_settlement_files_is_no_installation_without_any() -> None:
    institute = settlement.institute(time_zone="Pacific/Auckland")
    settlement.take_in(settlement.csv([settlement.line()]), institute, "1.csv")
    page = signed_in(User.objects.create_superuser("boss")).get("/admin/reporting/settlementfile/?day=2001-01-01")
    assert "Nothing in this time." in page.content.decode()
    assert "No settlement file yet" not in page.content.decode()


def test_a_days_settlement_files_are_those_of_its_column(shop: Shop) -> None:
    """By the institute's day; a file that could not be read is in neither."""
    institute = settlement.institute(time_zone="Pacific/Auckland")
    row = settlement.line(ClearingInstituteMerchantId=shop.channel.pk.hex, ConnectorTxId1="unknown", Amount="7.77")
    files = [settlement.take_in(settlement.csv([row, row][:number]), institute, f"{number}.csv") for number in (1, 2)]
    SettlementFile.objects.filter(pk=files[0].pk).update(received_at=clock.real_now() - timedelta(days=2))
    client = signed_in(User.objects.create_superuser("boss"))
    columns = columns_of(panel_of(client, "Due settlements"))
    assert sum(came for _link, (came, _missing) in columns) == 2
    for link, (came, _missing) in columns:
        page = client.get(link).content.decode()
        assert page.count('/change/">') == came, link


@pytest.mark.parametrize("odd", ["9999-12-31", "0001-01-01", "20260514x", "soon"])
def test_a_day_that_has_no_files_narrows_nothing(shop: Shop, odd: str) -> None:
    settlement.institute(time_zone="Pacific/Auckland")
    client = signed_in(User.objects.create_superuser("boss"))
    answer = client.get(f"/admin/reporting/settlementfile/?day={odd}")
    assert (answer.status_code, answer.context["day"]) == (200, None)


def test_files_that_were_not_delivered_are_those_of_the_figure(shop: Shop) -> None:
    now = clock.real_now()
    for number, state in enumerate(("WAITING", "WAITING", "FAILED", "DONE")):
        file = ReconciliationFile.objects.create(
            merchant=shop.merchant, day=now.date() - timedelta(days=number), begins_at=now, ends_at=now, names={},
            offset=timedelta(),
        )  # fmt: skip
        tried = Delivery.objects.create(file=file, state=state, attempts=min(number, 1), due_at=now)
        if number:
            why = "" if state == "DONE" else "no answer"
            DeliveryAttempt.objects.create(delivery=tried, number=1, target="t", at=now, duration_ms=1, why=why)
    client = signed_in(person("boss", Role.MANAGER, shop.merchant))

    def count(query: str) -> int:
        page = client.get(f"/admin/reporting/reconciliationfile/?{query}").content.decode()
        return page.count('/change/">')

    found = [count(each) for each in ("sent=again", "sent=lost", f"tried={now:%Y-%m-%d}", "tried=never", "sent=x")]
    assert found == [1, 1, 3, 4, 4]


def test_each_figure_of_an_accounts_health_is_its_list(shop: Shop) -> None:
    """Declines at an account that the payment left are in no list of it, so that figure leads nowhere."""
    AcquirerAccount.objects.create(channel=shop.channel, connector="stub", acquirer_merchant_id="4711")
    now = first_id_at(clock.real_now()).int
    with_tries = {"tried": [{"connector": "stub", "account": "4711", "declined": "800.100.155"}]}
    for number, (status, account, route) in enumerate(
        [
            ("APPROVED", "4711", {}),
            ("DECLINED", "4711", {}),
            ("IN_DOUBT", "4711", {}),
            ("APPROVED", "other", with_tries),
        ]
    ):
        paid = payment_of(shop.api.pay().id)
        ident = UUID(int=now + number)
        Payment.objects.filter(pk=paid.pk).update(
            id=ident, chain=ident, status=status, connector="stub", acquirer_merchant_id=account, route=route
        )
        if status == "IN_DOUBT":
            OpenPayment.objects.create(payment_id=ident, recover_at=clock.real_now())
    refund = _leave_refund_in_doubt(shop)
    Payment.objects.filter(pk=refund.pk).update(connector="stub", acquirer_merchant_id="4711")
    client = signed_in(person("boss", Role.MANAGER, shop.merchant))
    cache.clear()
    page = html.unescape(client.get("/admin/gateway/acquireraccount/health/").content.decode())
    row = page[page.index("stub 4711") :]
    cell = r'<td class="th-num"[^>]*>(?:<a href="([^"]+)">)?([0-9]+)(?:</a>)?</td>'
    figures = re.findall(cell, row[: row.index("</tr>")])
    (approved, ones), (declined, twos), *_rest, (doubt, doubts) = figures
    assert (ones, twos, doubts) == ("1", "2", "2"), "a refund of an earlier day is in doubt, too"
    assert declined == "", "one of the two went on to another account"
    for link, rows in ((approved, 1), (doubt, 2)):
        answer = client.get(link)
        assert answer.status_code == 200
        assert answer.content.decode().count('name="pick"') == rows


def _leave_refund_in_doubt(shop: Shop) -> Payment:
    """A refund that was sent two days ago and has no outcome."""
    row = payment_of(shop.api.follow(shop.api.pay().id, "RF", "1.00").id)
    ident = first_id_at(clock.real_now() - timedelta(days=2))
    Payment.objects.filter(pk=row.pk).update(id=ident, status="IN_DOUBT")
    OpenPayment.objects.create(payment_id=ident, recover_at=clock.real_now())
    return Payment.objects.get(pk=ident)


def test_the_first_page_counts_all_that_is_in_doubt(shop: Shop, stranger: Shop) -> None:
    """A refund of an earlier day among them; nothing of another merchant."""
    _leave_refund_in_doubt(shop)
    _leave_refund_in_doubt(stranger)
    client = signed_in(person("boss", Role.MANAGER, shop.merchant))
    cache.clear()
    page = html.unescape(client.get("/admin/").content.decode())
    found = re.search(r'in doubt, all days</dt><dd class="th-big th-warn-ink"><a href="([^"]+)">([0-9]+)</a>', page)
    assert found
    assert found[2] == "1"
    assert client.get(found[1]).content.decode().count('name="pick"') == 1

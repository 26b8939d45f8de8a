"""The journeys of a back office's people, each from the sign-in to what it leaves behind, with nothing done by hand.

J11, the close of a month, is in test_month_end.py.
"""

from __future__ import annotations

import csv as tables
import json
import math
import re
import subprocess
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.db import connection
from django.test import override_settings
from PIL import Image
from playwright.sync_api import Page, expect

from chargebacks import ledger
from chargebacks.models import Chargeback
from gateway.background import queue
from gateway.backoffice.sign_in.time_zones import store_zone
from gateway.core import clock
from gateway.models import AccessToken, AuditEntry, Division, Payment, Psp
from gateway.timers import registry
from tests.browser.conftest import picture
from tests.browser.patience import follow
from tests.browser.test_clerks import PASSWORD, fits, serious, sign_in, somebody
from tests.support.client import Api
from tests.support.clock import pass_time
from tests.support.fixtures import BY, Shop, open_shop
from tests.support.office import app_of, code_of
from tests.support.settlement import csv, institute, line, payment_of, take_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Open = Callable[..., Page]
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


def sign_in_with_app(page: Page, site: str, user: User, secret: str, ahead: int = 0) -> None:
    """Password, then the code that the app shows, ``ahead`` codes later: none is taken twice."""
    page.goto(f"{site}/admin/login/")
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    follow(page, page.get_by_role("button", name="Sign in", exact=True))
    page.get_by_label("Code").fill(code_of(secret, ahead))
    with page.expect_navigation(url=f"{site}/admin/"):
        page.get_by_role("button", name="Go on").click()


def search_everywhere(page: Page, text: str, hit: str, key: str = "Control+k") -> None:
    """Ctrl-K or a slash, the text, and the result that names ``hit``."""
    page.reload()
    page.keyboard.press(key)
    box = page.locator("#search-input-command")
    expect(box).to_be_focused()
    with page.expect_response(lambda answer: parse_qs(urlsplit(answer.url).query).get("s") == [text]):
        box.press_sequentially(text)
    expect(page.locator("#command-results-list a.th-hit", has_text=hit).first).to_be_visible()
    picture(page, f"journey-refund-search-{text}")


def test_a_refund_above_a_clerks_limit_is_found_asked_for_and_decided(shop: Shop, site: str, open_page: Open) -> None:
    """J4: sign in with a code, home, search, payment, a refund above the limit, a manager, the note, the trail."""
    clara = somebody("clara", "clerk", shop, four_eyes_above="50.00")
    max_ = somebody("max", "manager", shop)
    somebody("mia", "manager", shop, four_eyes_above="55.00")
    app, managers_app = app_of(clara), app_of(max_)
    paid = shop.api.pay(
        merchantTransactionId="order-4711",
        customer__email="jane@shop.example",
        customer__givenName="Jane",
        customer__surname="Jones",
        customer__language="DE",
    )
    shop.api.pay(amount="15.00", merchantTransactionId="order-4712", card__number="4000015500000005")
    other = payment_of(shop.api.pay(amount="33.00", merchantTransactionId="order-0815").id)
    take_in(csv([line(other)]), institute(), "yesterday.csv")
    ledger.record_chargeback(other, Decimal("33.00"), reason="000.100.221", by=BY)
    page = open_page(permissions=CLIPBOARD)
    sign_in_with_app(page, site, clara, app)
    expect(page.get_by_text("This is your first sign-in.")).to_be_visible()

    # Home: what the day was like, what is due, every plot with its table, and the ways to the lists behind them.
    for title in ("The last 24 hours", "Approval rate by brand", "Due settlements", "Disputes"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(page.locator("section", has_text="Disputes to answer")).to_contain_text(
        re.compile(r"33\.00 EUR, \d+ days left")
    )
    figures = page.locator("figure")
    assert figures.count() > 2
    for figure in figures.all():
        figure.get_by_text("As a table").click()
        expect(figure.locator("tbody tr").first).to_be_visible()
    hours = figures.first.locator("tbody tr", has=page.get_by_role("link"))
    expect(hours).to_have_count(24)
    picture(page, "journey-refund-home")
    counts = [int(each) for each in hours.locator("td:nth-child(2)").all_inner_texts()]
    assert sum(counts) == 2
    busy = next(place for place, number in enumerate(counts) if number)
    follow(page, hours.nth(busy).get_by_role("link"))
    listed = page.locator("[data-rows] tbody tr")
    expect(listed.filter(has_text="92.00").or_(listed.filter(has_text="33.00"))).to_have_count(counts[busy])
    page.go_back()
    follow(page, page.locator("section", has_text="Why payments were declined").locator("tbody a").first)
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text("15.00")

    for text in ("0000", "jane@shop.example", "order-4711", "92.00", paid.id):
        search_everywhere(page, text, "92.00 EUR", "/")
    with page.expect_navigation():
        page.locator("#command-results-list a.th-hit", has_text="92.00 EUR").first.click()
    expect(page.get_by_role("heading", name="Why")).to_be_visible()
    expect(page.locator(".ck-picture a")).to_have_text(re.compile("92.00 EUR.*Approved", re.DOTALL))
    expect(page.locator(".ck-timeline li").first).to_be_visible()
    short = page.locator("dt", has_text="shortId").locator("xpath=../dd/span").inner_text()
    search_everywhere(page, short, "92.00 EUR")
    page.keyboard.press("Escape")  # empties the field
    page.keyboard.press("Escape")
    expect(page.locator("#search-input-command")).to_be_hidden()

    follow(page, page.get_by_role("link", name="Refund…"))
    for name, amount in (("Charged", "92.00"), ("Refunded", "0.00"), ("Still to refund", "92.00")):
        expect(page.locator(".ck-sum", has_text=name).first).to_contain_text(amount)
    page.get_by_label("Amount in EUR").fill("92.01")
    expect(page.get_by_text("That is more than is possible.")).to_be_visible()
    expect(page.locator("[data-submit]")).to_be_disabled()
    page.get_by_label("Amount in EUR").fill("60.00")
    page.get_by_label("Reason").select_option("requested")
    page.get_by_label("Note for the manager").fill("the lamp came back broken")
    assert serious(page) == []
    page.get_by_role("button", name="Ask for approval").evaluate("(one) => { one.click(); one.click() }")
    expect(page.get_by_text("A manager has been asked; nothing was sent yet.")).to_be_visible()

    # Nobody decides an own request, nor one above an own limit.
    queue = f"{site}/admin/gateway/approval/"
    page.goto(queue)
    follow(page, page.locator("tbody a").first)
    expect(page.get_by_text("You asked for this, so somebody else decides it.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve and send")).to_have_count(0)
    limited = open_page()
    sign_in(limited, site, "mia")
    limited.goto(queue)
    follow(limited, limited.locator("tbody a").first)
    expect(limited.get_by_text("This is above your own limit of 55.00 EUR")).to_be_visible()
    expect(limited.get_by_role("button", name="Reject")).to_be_visible()
    expect(limited.get_by_role("button", name="Approve and send")).to_have_count(0)
    picture(limited, "journey-refund-limited")
    assert serious(limited) == []

    manager = open_page(390, 844)
    sign_in_with_app(manager, site, max_, managers_app)
    manager.goto(queue)
    assert fits(manager)
    follow(manager, manager.locator("tbody a").first)
    expect(manager.get_by_text("the lamp came back broken").first).to_be_visible()
    manager.get_by_role("button", name="Approve and send").evaluate("(one) => { one.click(); one.click() }")
    expect(manager.get_by_text("Carried out as")).to_be_visible()
    refunds = Payment.objects.filter(payment_type="RF", referenced=paid.id)
    assert [row.amount for row in refunds] == [Decimal("60.00")]

    # The clerk is told, and has the words for the shopper, in the shopper's language.
    page.goto(f"{site}/admin/")
    expect(page.get_by_role("status").filter(has_text="60.00")).to_contain_text("max")
    picture(page, "journey-refund-home-decided")
    page.goto(f"{site}/admin/gateway/payment/{paid.id}/change/")
    expect(page.locator(".ck-sum", has_text="Still to refund")).to_contain_text("32.00")
    expect(page.locator(".ck-picture a")).to_have_text([re.compile("92.00 EUR"), re.compile("60.00 EUR")])
    page.locator(".ck-mail summary").click()
    page.locator(".ck-mail button").click()
    words = page.locator("#mail").inner_text()
    assert "Jones" in words
    page.wait_for_function("async (words) => await navigator.clipboard.readText() === words", arg=words)
    picture(page, "journey-refund-mail")

    # The trail names who asked, who approved and what was done, from where.
    manager.goto(f"{site}/admin/gateway/auditentry/")
    rows = manager.locator("#result_list tbody tr")
    for who, what in (("clara", "asked"), ("max", "approved")):
        row = rows.filter(has_text=who).filter(has_text=re.compile(what)).first
        expect(row).to_contain_text("127.0.0.1")
    picture(manager, "journey-refund-trail")
    for who, action in (("clara", "approval asked"), ("max", "approval given"), ("max", "refund sent")):
        assert AuditEntry.objects.get(actor=who, action=action).ip == "127.0.0.1"
    made = AuditEntry.objects.get(action="refund made")
    manager.goto(f"{site}/admin/gateway/auditentry/{made.pk}/change/")
    expect(manager.locator("tr", has_text="Still to refund")).to_contain_text("32.00")
    sent = AuditEntry.objects.get(action="refund sent")
    assert (sent.before or {})["Still to refund"] == "92.00"

    # The next sign-in says when and where the last one was.
    again = open_page()
    sign_in_with_app(again, site, clara, app, ahead=1)
    expect(again.get_by_text(re.compile(r"Your last sign-in: .* from 127\.0\.0\.1"))).to_be_visible()


def test_a_token_is_issued_rotated_and_revoked(
    shop: Shop, site: str, open_page: Open, caplog: pytest.LogCaptureFixture
) -> None:
    """J7: who may not is told whom to ask; shown once, used by its own curl, rotated, revoked, nowhere to be read."""
    somebody("clara", "clerk", shop)
    maja = somebody("maja", "manager", shop)
    clerk = open_page()
    sign_in(clerk, site, "clara")
    expect(clerk.get_by_role("link", name="Access tokens")).to_have_count(0)
    for address in ("", "add/"):
        refused = clerk.request.get(f"{site}/admin/gateway/accesstoken/{address}")
        assert refused.status == 403
        assert "maja" in refused.text()

    page = open_page(permissions=CLIPBOARD)
    sign_in(page, site, "maja")
    group = page.locator("details.th-fold", has=page.get_by_text("Account data", exact=True))
    follow(page, group.get_by_role("link", name="Access tokens"))
    follow(page, page.get_by_role("link", name="Add access token"))
    page.get_by_label("Name").fill("Web shop")
    page.locator("select[name=channel]").select_option(str(shop.channel.pk))
    page.get_by_label("test", exact=True).uncheck()
    ends = clock.real_now().replace(microsecond=0) + timedelta(days=30)
    page.locator("input[name=ends_at_0]").fill(f"{ends:%Y-%m-%d}")
    page.locator("input[name=ends_at_1]").fill(f"{ends:%H:%M:%S}")
    follow(page, page.get_by_role("button", name="Save", exact=True))
    token = page.get_by_label("Access token").input_value()
    page.get_by_role("button", name="Copy the token").click()
    page.wait_for_function("async (text) => await navigator.clipboard.readText() === text", arg=token)
    page.get_by_role("button", name="Copy the example").click()
    command = page.locator("#curl-1").inner_text()
    page.wait_for_function("async (text) => await navigator.clipboard.readText() === text", arg=command)
    picture(page, "journey-token-shown")
    issued = AccessToken.objects.exclude(pk=shop.token.pk).get()
    assert (issued.scopes, issued.ends_at) == (["payments", "read"], ends)
    paid = run(command)
    assert paid["result"]["code"] == "000.100.110", paid

    follow(page, page.get_by_role("link", name="Back to the list"))
    row = page.locator("#result_list tbody tr", has_text="Web shop")
    expect(row).to_contain_text("127.0.0.1")
    follow(page, row.get_by_role("link", name="Web shop"))
    calls = page.locator("figure", has_text="As a table")
    calls.get_by_text("As a table").click()
    expect(calls.locator("tbody tr").last.locator("td")).to_have_text("1")
    picture(page, "journey-token")
    follow(page, page.get_by_role("button", name="Rotate"))
    second = page.get_by_label("Access token").input_value()
    after = page.locator("#curl-1").inner_text()
    assert second != token
    follow(page, page.get_by_role("link", name="Back to the list"))
    expect(page.locator("#result_list tbody tr", has_text=token[-4:])).to_contain_text("ends in 7 days")
    for each in (command, after):
        assert run(each)["result"]["code"] == "000.100.110"

    follow(page, page.locator("#result_list tbody tr", has_text=second[-4:]).get_by_role("link", name="Web shop"))
    follow(page, page.get_by_role("button", name="Revoke…"))
    page.locator("#confirm").fill("yes")
    follow(page, page.get_by_role("button", name="Revoke"))
    expect(page.get_by_role("alert")).to_contain_text("Nothing was revoked")
    page.locator("#confirm").fill("revoke")
    follow(page, page.get_by_role("button", name="Revoke"))
    stopped = Api(token=second, entity=shop.channel.entity_id).pay()
    assert (stopped.status, stopped.code) == (403, "800.900.300"), stopped
    assert "revoked" in stopped.description
    trail = AuditEntry.objects.filter(actor=maja.username).exclude(action__in=("view", "sign in")).order_by("id")
    assert list(trail.values_list("action", flat=True)) == ["issue", "rotate", "issue", "revoke"]

    # Neither text is in a page, a table or a line of the log.
    assert not [text for text in (token, second) if text in caplog.text]
    page.goto(f"{site}/admin/gateway/accesstoken/")
    assert not [text for text in (token, second) if text in page.content()]
    page.goto(f"{site}/admin/gateway/requestlog/")
    assert not [text for text in (token, second) if text in page.content()]
    assert not [table for table in list_tables() for text in (token, second) if holds(table, text)]


def run(command: str) -> dict[str, Any]:
    """What the copied lines print in a shell."""
    done = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, timeout=60, check=True)
    return dict(json.loads(done.stdout))


def list_tables() -> list[str]:
    return connection.introspection.table_names()


def holds(table: str, text: str) -> bool:
    """Whether any column of any row of ``table`` has ``text`` in it."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT EXISTS (SELECT 1 FROM "{table}" AS one WHERE strpos(one::text, %s) > 0)', [text])
        return bool(cursor.fetchone()[0])


def pass_days_until(shop: Shop, days: int) -> None:
    """The merchant's clock stands a minute after the moment so many days before the deadline of its disputes."""
    shop.merchant.refresh_from_db()
    due = Chargeback.objects.latest("due_at").due_at - timedelta(days=days)
    pass_time(shop.api, minutes=1, seconds=math.ceil((due - clock.merchant_now(shop.merchant)).total_seconds()))


def test_a_dispute_is_answered_and_won_and_another_runs_out(
    shop: Shop, site: str, open_page: Open, tmp_path: Path, mailoutbox: list[EmailMessage], settings: Any
) -> None:
    """J6: the badge, what is there and missing, files, the packet, submitted once, reminded, decided, in the books."""
    settings.GATEWAY_OUTBOX = str(tmp_path / "outbox")
    store_zone(somebody("max", "manager", shop), "Asia/Tokyo")
    institute()
    answer_by = clock.real_now() + timedelta(days=12)
    shopper = {
        "customer__email": "jane@shop.example",
        "customer__givenName": "Jane",
        "customer__surname": "Jones",
        "merchantTransactionId": "order-4711",
    }
    sent = {
        "threeDSecure__eci": "05",
        "threeDSecure__verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
        "threeDSecure__dsTransactionId": "f25084f0-5b16-4c0a-ae5d-b24808a95e4b",
        "threeDSecure__version": "2.2.0",
        "shipping__trackingNumber": "TRACK-77",
        "shipping__logisticsProvider": "Example Parcel",
    }
    paid = [shop.api.pay(**shopper, **sent).id, shop.api.pay(amount="50.00", **shopper).id]
    (tmp_path / "delivery.pdf").write_bytes(PDF)
    Image.new("RGB", (600, 400), "teal").save(tmp_path / "photo.png")
    page = open_page()
    sign_in(page, site, "max")
    page.goto(f"{site}/admin/chargebacks/chargeback/contacts/")
    page.get_by_label("Merchant", exact=True).fill("Shop")
    page.get_by_label("E-mail").fill("disputes@shop.example")
    follow(page, page.get_by_role("button", name="Add", exact=True))
    for payment in paid:
        page.goto(f"{site}/admin/gateway/payment/{payment}/change/")
        follow(page, page.get_by_role("link", name="Enter a chargeback…"))
        page.get_by_label("Reason", exact=True).select_option("000.100.221")
        page.get_by_label("Answer by").fill(f"{answer_by:%Y-%m-%d}")
        follow(page, page.get_by_role("button", name="Enter the chargeback"))
    registry.run_all_timers()
    cache.clear()  # figures stand for half a minute

    page.goto(f"{site}/admin/")
    there = answer_by + timedelta(days=1)
    due = f"2 disputes, the first to answer by {answer_by:%Y-%m-%d} 17:00 (UTC) = {there:%Y-%m-%d} 02:00 JST"
    expect(page.locator("section", has_text="Disputes to answer")).to_contain_text(due)
    follow(page, page.get_by_role("link", name="Disputes to answer"))
    expect(page.locator("[data-rows] tbody tr")).to_have_count(2)
    picture(page, "journey-dispute-list")
    follow(page, page.locator("[data-rows] tbody tr", has_text="92.00 EUR").get_by_role("link").first)
    address = page.url
    for part in ("order-4711", "jane@shop.example", "missing", "How strong the answer is", "TRACK-77"):
        expect(page.get_by_text(part).first).to_be_visible()
    for proof in ("3-D Secure", "Address check (AVS)", "Security code (CVV)"):
        expect(page.locator("dt", has_text=proof).first).to_be_visible()
    expect(page.get_by_text("ECI 05").first).to_be_visible()
    assert serious(page) == []
    expect(page.locator("#limits")).to_contain_text("MB")
    missing = page.locator(".ck-pill.bad", has_text="missing")
    wanted = missing.count()
    for name in ("delivery.pdf", "photo.png"):
        page.get_by_label("File", exact=True).set_input_files(tmp_path / name)
        follow(page, page.get_by_role("button", name="Add it"))
        expect(page.get_by_role("link", name=name)).to_be_visible()
    expect(missing).to_have_count(wanted - 2)
    expect(page.locator("img.ck-small")).to_have_js_property("naturalWidth", 160)
    picture(page, "journey-dispute")

    with override_settings(GATEWAY_WORK_DIR=str(tmp_path / "work")):
        follow(page, page.get_by_role("button", name="Packet as PDF"))
        queue.run_background_work()
        with page.expect_download() as packet:
            page.locator("a.ck-button.primary").click()
    assert Path(packet.value.path()).read_bytes().startswith(b"%PDF-")

    # Reminded of both 7 days before; then one is answered, and the other runs out.
    def reminders() -> list[EmailMessage]:
        return [mail for mail in mailoutbox if str(mail.subject).startswith("Dispute of")]

    assert not reminders()
    pass_days_until(shop, 7)
    assert len(reminders()) == 2
    assert all(mail.bcc == ["disputes@shop.example"] for mail in reminders())
    page.goto(address)
    page.get_by_label("I have looked at every file").check()
    page.get_by_role("button", name="Submit the evidence").evaluate("(one) => { one.click(); one.click() }")
    expect(page.get_by_role("button", name="For the merchant")).to_be_visible()
    expect(page.get_by_role("button", name="Add it")).to_have_count(0)
    for days, mails in ((3, 3), (1, 4)):
        pass_days_until(shop, days)
        assert len(reminders()) == mails
    cache.clear()
    page.goto(f"{site}/admin/")
    expect(page.get_by_role("link", name="Disputes").first).to_contain_text("1")  # the badge
    picture(page, "journey-dispute-badge")
    page.goto(address)
    follow(page, page.get_by_role("button", name="For the merchant"))
    expect(page.get_by_text("Won", exact=True).first).to_be_visible()
    pass_days_until(shop, -1)
    page.goto(f"{site}/admin/chargebacks/chargeback/?list=all")
    follow(page, page.locator("[data-rows] tbody tr", has_text="50.00 EUR").get_by_role("link").first)
    expect(page.get_by_text("Lost", exact=True).first).to_be_visible()
    expect(page.get_by_text("No evidence was submitted").first).to_be_visible()
    picture(page, "journey-dispute-lost")
    assert len(reminders()) == 4

    # Both are in the books, and the money that came back as well.
    for payment, state, amount in ((paid[0], "Won back", ""), (paid[1], "Charged back", "50.00")):
        page.goto(f"{site}/admin/gateway/payment/{payment}/change/")
        expect(page.locator(".ck-head .ck-pill").first).to_have_text(state)
        expect(page.locator(".ck-sum", has_text="Charged back")).to_have_text([re.compile(amount)] if amount else [])
        expect(page.locator(".ck-picture a")).to_have_count(2 if amount else 3)
    page.goto(f"{site}/admin/reporting/reconciliationfile/")
    rows: list[tuple[str, str, str]] = []
    for link in page.get_by_role("link", name="Download", exact=True).all():
        with page.expect_download() as day:
            link.click()
        read = tables.DictReader(day.value.path().read_text("utf-8-sig").splitlines(), delimiter=";")
        rows += [(row["ReconciliationType"], row["Amount"], row["Cashflow"]) for row in read]
    assert sorted(rows) == [
        ("CHARGEBACK", "50.00", "NEG"), ("CHARGEBACK", "92.00", "NEG"), ("CHARGEBACK REVERSAL", "92.00", "POS"),
    ]  # fmt: skip

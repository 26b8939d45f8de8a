"""Webhooks without a tunnel, in a real browser: inspector, a receiver that stops, replay, rotation, verify; and a
payment that failed, found out and told again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from gateway.background import queue
from gateway.models import Division, Psp, WebhookDelivery, WebhookEndpoint
from tests.browser.conftest import picture
from tests.browser.patience import follow, resize
from tests.browser.test_clerks import find, fits, serious, sign_in, somebody
from tests.support.fixtures import Shop, open_shop
from tests.support.webhook_delivery import deliver
from tests.support.webhooks import Hook, hooked, verified

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Open = Callable[..., Page]
KINDS = ("PAYMENT", "REGISTRATION", "SCHEDULE", "RISK")


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


def make_endpoint(page: Page, site: str, hook: Hook) -> str:
    """A signed endpoint at the receiver, activated; its secret, which is shown once."""
    page.goto(f"{site}/admin/gateway/webhookendpoint/")
    follow(page, page.get_by_role("link", name="New endpoint"))
    page.get_by_label("Address").fill(hook.url)
    page.get_by_label("How it is protected").select_option("signed")
    follow(page, page.locator("form button.primary"))
    secret = page.locator("#standard").input_value()
    follow(page, page.get_by_role("link", name="I have kept it"))
    follow(page, page.get_by_role("button", name="Activate: send the test message"))
    expect(page.get_by_text("Active", exact=True).first).to_be_visible()
    return secret


def test_a_developer_sees_webhooks_without_a_tunnel(shop: Shop, site: str, open_page: Open) -> None:
    """The inspector is made, an event appears by itself with its headers, bodies and verdict."""
    somebody("dora", "developer", shop)
    page = open_page()
    sign_in(page, site, "dora")
    page.goto(f"{site}/admin/gateway/webhookendpoint/")
    follow(page, page.get_by_role("link", name="Use the built-in inspector"))
    page.get_by_label("How it is protected").select_option("encrypted")
    follow(page, page.locator("form[data-once] button"))
    page.goto(f"{site}/admin/gateway/webhookendpoint/{WebhookEndpoint.objects.get().pk}/inspect/")
    shown = page.locator(".ck-inspected")
    before = shown.count()
    paid = shop.api.pay()
    deliver(shop)
    expect(shown).to_have_count(before + 1)
    newest = shown.first
    expect(newest.get_by_text("PAYMENT CREATED")).to_be_visible()
    expect(newest.locator(".ck-pill")).to_have_text("Right")
    for part in ("Headers", "Raw body", "Decoded body"):
        newest.get_by_text(part, exact=True).click()
    expect(newest.locator("pre").first).to_contain_text("X-Initialization-Vector", ignore_case=True)
    expect(newest.locator("pre").last).to_contain_text(paid.id)
    for kind in KINDS:
        follow(page, page.get_by_role("button", name=kind, exact=True))
        expect(page.locator(".ck-inspected").first).to_contain_text(kind)
    picture(page, "inspector")
    assert serious(page) == []


def test_a_receiver_that_stopped_is_told_again_by_replay(shop: Shop, site: str, open_page: Open) -> None:
    """And why a payment failed, with its webhook sent once more."""
    somebody("dora", "developer", shop)
    page = open_page()
    with hooked() as hook:
        sign_in(page, site, "dora")
        secret = make_endpoint(page, site, hook)
        hook.always = 503
        for _ in range(3):
            shop.api.pay()
        failed = shop.api.pay(card__number="4000015500000005", merchantTransactionId="order-4711")
        deliver(shop)
        find(page, site, "order-4711")
        follow(page, page.locator("tbody a").first)
        expect(page.get_by_text("The card has not enough credit.").first).to_be_visible()
        expect(page.get_by_text("attempt 1: 503")).to_be_visible()
        follow(page, page.get_by_role("link", name="delivery").first)
        expect(page.get_by_text("503").first).to_be_visible()
        expect(page.get_by_text(re.compile("It is tried next at .*, and given up at"))).to_be_visible()
        picture(page, "delivery-waits")
        assert serious(page) == []
        told = len(hook.told)
        hook.always = 200
        follow(page, page.get_by_role("button", name="Try now"))
        expect(page.get_by_text("It is due again")).to_be_visible()
        deliver(shop)
        page.reload()
        expect(page.get_by_text("Delivered").first).to_be_visible()
        assert len(hook.told) == told + 1
        assert verified(hook.told[-1], secret)["payload"]["id"] == failed.id
        # The others by filter: first what it would be, then the work, found again by its bar.
        page.goto(f"{site}/admin/gateway/webhookdelivery/?state=waiting")
        assert WebhookDelivery.objects.filter(state="waiting").count() == 3
        follow(page, page.get_by_role("button", name=re.compile("Replay")))
        expect(page.get_by_text(re.compile("3 events"))).to_be_visible()
        expect(page.get_by_text(re.compile(r"3 payments, oldest .*\d\d:\d\d, newest .*\d\d:\d\d"))).to_be_visible()
        picture(page, "replay-dry-run")
        assert serious(page) == []
        follow(page, page.get_by_role("button", name="Replay 3"))
        expect(page.get_by_role("progressbar")).to_be_visible()
        queue.run_background_work()
        deliver(shop)
        expect(page.locator("[data-ended] [data-state]")).to_have_text("Done")
        follow(page, page.get_by_role("link", name="See each of them"))
        expect(page.locator("tbody .ck-pill", has_text="Delivered").first).to_be_visible()
        assert not WebhookDelivery.objects.filter(state="waiting").exists()
        assert {verified(one, secret)["type"] for one in hook.told[1:]} == {"PAYMENT"}
        rotate_and_verify(page, site, shop, hook, secret)
        resize(page, 390, 844)
        assert fits(page)


def rotate_and_verify(page: Page, site: str, shop: Shop, hook: Hook, before: str) -> None:
    """For a day both secrets sign; the tool says right, wrong, or that the body is another."""
    row = WebhookEndpoint.objects.get()
    page.goto(f"{site}/admin/gateway/webhookendpoint/{row.pk}/change/")
    plot = page.locator(".ck-card", has_text="Attempts by hour")
    expect(plot.locator("svg").first).to_be_visible()
    for name in ("answered 2xx", "failed"):
        expect(plot.get_by_text(name, exact=True).first).to_be_attached()
    follow(page, page.get_by_role("link", name="Rotate the secret…"))
    page.locator("#confirm").fill("rotate")
    follow(page, page.locator("form[data-once] button.primary"))
    after = page.locator("#standard").input_value()
    assert after != before
    shop.api.pay()
    deliver(shop)
    told = hook.told[-1]
    for secret in (before, after):
        assert verified(told, secret)["type"] == "PAYMENT"
    headers = "\n".join(f"{name}: {value}" for name, value in told.headers.items())
    body = told.body.decode()
    for pasted, tone, words in (
        (body, "good", "Right"),
        (json.dumps(json.loads(body), indent=2), "bad", "Wrong encoding"),
        (body.replace("92.00", "1.00"), "bad", "Wrong key"),
    ):
        page.goto(f"{site}/admin/gateway/webhookendpoint/verify/?endpoint={row.pk.hex}")
        page.get_by_label("Headers", exact=True).fill(headers)
        page.get_by_label("Body", exact=True).fill(pasted)
        follow(page, page.get_by_role("button", name="Verify", exact=True))
        expect(page.locator(f".ck-why.{tone}")).to_contain_text(words)

"""A developer's first hour in a real browser and a real shell: what the pages show is copied and run, word for word."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect

from gateway.core.languages import LANGUAGE_CODES, iso_language_code, load_texts, text_direction
from gateway.models import Payment, Role
from tests.browser.conftest import picture
from tests.browser.patience import follow
from tests.browser.test_clerks import find
from tests.browser.test_docs_pages import find_sample, sign_in
from tests.browser.test_widget import fill_address
from tests.browser.widget import DECLINED_AT_THE_BANK, Widget
from tests.support.demo import demo_shop
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.shopfront import NONCE, Shopfront
from tests.support.threeds import CODE, PASS

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("browser-2"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here"),
]
Open = Callable[..., Page]


def run(command: str, shop: Shop, **variables: str) -> Any:
    """The answer to a command of the pages, run by a shell that has the token as ``$TOKEN``."""
    where = {"PATH": os.environ["PATH"], "TOKEN": shop.api.token or "", **variables}
    done = subprocess.run(["sh", "-c", command], env=where, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


def show_sample(page: Page, name: str) -> str:
    """A sample as it stands once the entityId of who is signed in has come."""
    expect(find_sample(page, name).locator('[data-variable="ENTITY_ID"]')).to_have_text(re.compile("^[0-9a-f]{32}$"))
    return find_sample(page, name).locator("pre").first.inner_text()


def test_a_first_payment_is_made_broken_declined_captured_and_refunded(
    site: str, open_page: Open, committed: Shop
) -> None:
    """From the start page to a refund by what is copied; faults lead to the parameter's own lines."""
    page = open_page()
    page.goto(site)
    for card in ("Demo shop", "API docs", "Test data", "Back office"):
        expect(page.locator(".card").get_by_role("link", name=card)).to_be_visible()
    sign_in(page, site, signed_in(person("dev", Role.DEVELOPER, committed.merchant)))
    follow(page, page.locator(".card").get_by_role("link", name="API docs"))
    entity = find_sample(page, "pay").locator('[data-variable="ENTITY_ID"]')
    expect(entity).to_have_text(committed.channel.entity_id)
    command = show_sample(page, "pay")
    assert str(committed.api.token) not in page.content()
    paid = run(command, committed, BASE=site)
    assert paid["result"]["code"] == "000.100.110"

    broken = run(command.replace("paymentBrand", "paymentBrnad").replace("92.00", "92.1"), committed, BASE=site)
    faults = {one["name"]: one for one in broken["result"]["parameterErrors"]}
    assert "paymentBrand" in faults["paymentBrnad"]["message"]
    assert "two decimals" in faults["amount"]["message"]
    for name, meant in (("amount", "amount"), ("paymentBrnad", "paymentBrand")):
        page.goto(faults[name]["link"])
        expect(page.locator(f'[id="{meant}"]')).to_be_visible()

    page.goto(f"{site}/testdata")
    row = page.locator(f'#declined [id="{DECLINED_AT_THE_BANK}"]')
    promised = row.locator("td").nth(3).locator("code").inner_text()
    declined = run(command.replace("4200000000000000", DECLINED_AT_THE_BANK), committed, BASE=site)
    assert declined["result"]["code"] == promised
    page.goto(f"{site}/docs/result-codes#{promised}")
    family = page.locator(".family", has=page.locator(f'[id="{promised}"]'))
    expect(family).to_contain_text("another card")

    find(page, site, paid["ndc"])
    expect(page.locator(".ck-timeline").first).to_contain_text("approved")
    picture(page, "first-payment")
    held = committed.api.pay(paymentType="PA")
    captured = run(copy_curl(page, site, held.id, "CP"), committed)
    refunded = run(copy_curl(page, site, captured["id"], "RF"), committed)
    assert refunded["referencedId"] == captured["id"]
    made = Payment.objects.filter(chain=held.id).order_by("created_at")
    assert list(made.values_list("payment_type", flat=True)) == ["PA", "CP", "RF"]
    take_clients_away(page, site)


def copy_curl(page: Page, site: str, payment: str, payment_type: str) -> str:
    """The command beside a payment that makes this follow-up, with the payment's own id in it."""
    page.goto(f"{site}/admin/gateway/payment/{payment}/change/")
    shown = page.locator("pre[id^=curl-]").evaluate_all("(all) => all.map((one) => one.textContent)")
    return next(text for text in shown if f"paymentType={payment_type}" in text and payment in text)


def take_clients_away(page: Page, site: str) -> None:
    """The document of the API, and a package for each language, are a link away."""
    with urlopen(f"{site}/v1/openapi.json") as answer:
        assert json.load(answer)["openapi"].startswith("3.1")
    page.goto(f"{site}/docs/clients")
    links = page.locator('main a[href*="/docs/clients/"]').evaluate_all("(all) => all.map((one) => one.href)")
    for ending in (".whl", ".tgz", ".zip"):
        package = next(link for link in links if link.endswith(ending))
        with urlopen(package) as answer:
            assert len(answer.read()) > 10_000, package


def test_fifteen_lines_take_a_payment_through_the_banks_page(
    site: str, shop_site: Shopfront, open_page: Open, open_widget: Callable[..., Widget], committed: Shop
) -> None:
    """The page's lines, the checkout's curl, the generator's policy, a challenge, the result's curl; one byte of
    the hash changed; the lines inside another form."""
    secure = committed.open_channel("secure", three_d_secure=True)
    docs = open_page()
    sign_in(docs, site, signed_in(person("dev", Role.DEVELOPER, committed.merchant)))
    docs.goto(f"{site}/docs/widget?brand=VISA&brand=MASTER#csp")
    shown = docs.get_by_label("Content-Security-Policy", exact=True).inner_text()
    header = " ".join(shown.removeprefix("Content-Security-Policy:").split())
    policy = re.sub("nonce-{[^}]*}", f"nonce-{NONCE}", header)
    lines = docs.get_by_label("pay.html", exact=True).inner_text()
    assert len(lines.splitlines()) == 15
    command = show_sample(docs, "checkout").replace(committed.channel.entity_id, secure.entity_id)
    made = run(command, committed, BASE=site)
    text = lines.replace("{checkout id}", made["id"]).replace("{integrity}", made["integrity"])
    widget = open_widget(400, 800)
    page = widget.page
    page.goto(shop_site.show("/pay.html", text, policy))
    widget.ready().fill(PASS)
    fill_address(page)
    widget.press()
    bank = page.frame_locator(".wpwl-sheet-frame")
    bank.get_by_label("Code").fill(CODE)
    bank.get_by_role("button", name="Confirm").click()
    page.wait_for_url(f"{site}/docs/result?*")
    command_there = page.get_by_label("Read the result", exact=True).inner_text()
    final = run(command_there, committed, BASE=site, ENTITY_ID=secure.entity_id)
    assert final["result"]["code"] == "000.100.110"
    assert not widget.faults

    made = run(command, committed, BASE=site)
    changed = made["integrity"][:-1] + ("A" if made["integrity"][-1] != "A" else "B")
    wrong = open_widget()
    text = lines.replace("{checkout id}", made["id"]).replace("{integrity}", changed)
    wrong.page.goto(shop_site.show("/changed.html", text, policy))
    assert wrong.says("error", "integrity")
    docs.goto(f"{site}/docs/widget#errors")
    expect(docs.locator("main")).to_contain_text("integrity")

    nested = open_widget()
    inside = lines.replace("{checkout id}", made["id"]).replace("{integrity}", made["integrity"])
    inside = inside.replace("<form", '<form action="/order"><form', 1)
    nested.page.goto(shop_site.show("/nested.html", inside, policy))
    expect(nested.page.locator(".wpwl-banner")).to_contain_text("Move the widget out of the outer form")
    assert nested.says("error", "A <form> stands around")


def test_the_demo_shop_speaks_every_language(site: str, open_page: Open, committed: Shop, tmp_path: Path) -> None:
    """The form that is open changes with the switch, through all of them and back; Arabic runs from right to left."""
    page = open_page(375, 800)
    with demo_shop(committed, tmp_path):
        page.goto(f"{site}/demo/")
        switch = page.get_by_label("Language")
        offered = switch.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
        assert offered == list(LANGUAGE_CODES)
        page.get_by_role("button", name="Go to payment").click()
        form = Widget(page=page)
        for code in [*LANGUAGE_CODES, LANGUAGE_CODES[0]]:
            switch.select_option(code)
            expect(form.root).to_have_attribute("lang", iso_language_code(code))
            expect(form.root).to_have_attribute("dir", text_direction(code))
            expect(form.root).to_contain_text(load_texts(code)["cardNumber"])
            assert page.evaluate("document.documentElement.scrollWidth") <= 375, code
        picture(page, "demo-languages")
        form.ready().fill().press()
        page.wait_for_url(f"{site}/demo/result?*")

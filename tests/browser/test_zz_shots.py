from __future__ import annotations
import os
from decimal import Decimal
from collections.abc import Callable
import pytest
from playwright.sync_api import Page
from django.contrib.auth.models import User
from chargebacks import ledger
from gateway.models import Payment
from tests.browser.test_clerks import PASSWORD, shop, sign_in, somebody  # noqa
from axe_playwright_python.sync_playwright import Axe
from tests.support.settlement import BY, payment_of
pytestmark = [pytest.mark.django_db(transaction=True)]
OUT='/tmp/shots'
def test_shots(shop, site, open_page):
    os.makedirs(OUT, exist_ok=True)
    user = somebody("boss", "manager", shop); user.is_superuser=True; user.save()
    held = shop.api.pay(paymentType="PA", amount="1234.00", merchantTransactionId="shop-2026-40393", customer__email="jane@shop.example", customer__givenName="Jane", customer__surname="Jones").id
    cap = shop.api.follow(held, "CP", "1000.00").id
    shop.api.follow(cap, "RF", "250.00")
    shop.api.pay(card__number="4000015500000005")
    shop.api.pay(paymentType="PA")
    full = shop.api.pay().id; shop.api.follow(full, "RF", "92.00")
    case = ledger.record_chargeback(payment_of(shop.api.pay(amount="3000.00").id), Decimal("3000.00"), reason="000.100.221", by=BY)
    pk = payment_of(held).pk; cp=payment_of(cap).pk
    pages = {"payment": f"/admin/gateway/payment/{pk}/change/", "capture": f"/admin/gateway/payment/{cp}/change/", "list": "/admin/gateway/payment/", "refund": f"/admin/gateway/payment/{pk}/do/RF/", "home": "/admin/", "account": "/admin/account/", "dispute": f"/admin/chargebacks/chargeback/{case.pk}/change/", "disputes": "/admin/chargebacks/chargeback/", "contacts": "/admin/chargebacks/chargeback/contacts/", "missing": "/admin/gateway/payment/019a0000-0000-7000-8000-000000000000/change/", "users": f"/admin/auth/user/{user.pk}/change/"}
    page = open_page()
    sign_in(page, site, "boss")
    for name, path in pages.items():
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(site + path); page.screenshot(path=f"{OUT}/{name}-1280.png", full_page=True)
        if name in ("payment", "list", "home", "contacts"):
            found = Axe().run(page)
            print(name, [(v["id"], v["impact"], len(v["nodes"]), [n["target"] for n in v["nodes"]][:3]) for v in found.response["violations"]])
        page.set_viewport_size({"width": 390, "height": 800})
        page.screenshot(path=f"{OUT}/{name}-390.png", full_page=True)
        print(name, "fits", page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(site + "/admin/"); page.keyboard.press("/"); page.wait_for_timeout(500)
    page.keyboard.type("shop-2026", delay=20); page.wait_for_timeout(3000)
    page.screenshot(path=f"{OUT}/search.png")
    page.emulate_media(color_scheme="dark")
    page.context.add_cookies([{"name": "django_language", "value": "de", "url": site}])
    for name in ("payment", "list", "home", "refund", "disputes"):
        page.goto(site + pages[name]); page.screenshot(path=f"{OUT}/{name}-de-dark.png", full_page=True)

"""Every page of the back office in a real browser: nothing that axe finds, nothing cut off or outside the screen.

The pages come from the admin's registry and the URL table, with rows on all of them. A usual run opens one page of
every third kind, in one of the twelve variants (language, colours, width): which ones goes by the day, so that each
kind has had its turn after three days, and all of its variants after 36. `OFFICE_TURN=number` repeats the run of a day,
whose number a failure names. `OFFICE_ROUNDS=0,1,2` makes three rounds over all pages, each page in three variants;
`OFFICE_ROUNDS=all` makes all twelve, which takes half an hour and more. `-o log_cli=true` tells of a fault as soon as
it is found, `SCREENSHOTS=folder` keeps a picture of each.
"""

from __future__ import annotations

import io
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client, override_settings
from playwright.sync_api import Page

from chargebacks import evidence, ledger
from gateway.core import clock
from gateway.models import Approval, Payment, RiskSet, Role
from reporting.models import ClearingInstitute
from tests.browser.conftest import picture
from tests.browser.patience import resize
from tests.chargebacks.test_alerts import alerted
from tests.gateway.backoffice.test_isolation import PARAMETER
from tests.gateway.backoffice.test_no_english import pages as read_pages
from tests.gateway.backoffice.test_rights import addresses, furnish
from tests.gateway.backoffice.test_rule_trials import run as run_trial
from tests.support import settlement
from tests.support.fixtures import BY, Shop
from tests.support.office import person, prove, signed_in
from tests.support.settlement import payment_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-3")]
Open = Callable[..., Page]
log = logging.getLogger(__name__)
LANGUAGES: Final = ("en", "de", "fr")
WIDTHS: Final = {1440: 900, 375: 812}
TURNS: Final = 3
"""Runs after which each kind of page has been looked at."""
MAX_ROWS: Final = 2
"""Rows of a model whose pages are opened: the first and the last."""


class Variant(NamedTuple):
    """How a page is looked at."""

    language: str
    scheme: str
    width: int


VARIANTS: Final = [Variant(*each) for each in product(LANGUAGES, ("light", "dark"), WIDTHS)]

# What is cut or beside the screen: text that ends outside of the window, or outside of the box that hides the rest.
# What scrolls within its own box is reached, and what is hidden on purpose is not looked at.
FIND_CUT: Final = """() => {
  const found = new Set();
  const root = document.documentElement;
  const wide = root.clientWidth;
  if (root.scrollWidth > wide) found.add(`the page is ${root.scrollWidth} px wide`);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const shown = { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true };
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.textContent.trim();
    const own = node.parentElement;
    if (!text || own.closest("script, style, option, svg, [class*=material-symbols]")) continue;
    if (!own.checkVisibility(shown)) continue;
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    let cut = box.right > wide + 1 || box.left < -1 ? "the window" : "";
    for (let above = own; above && above !== document.body; above = above.parentElement) {
      const style = getComputedStyle(above);
      // A list on a phone has its cells below one another: nobody pushes it aside.
      const stacked = wide < 1024 && own.closest("#result_list, [data-rows], .th-rows");
      const scrolls = /^(auto|scroll)$/.test(style.overflowX) && !stacked;
      if (scrolls || style.clipPath !== "none" || style.position === "fixed" || style.textOverflow === "ellipsis") {
        cut = "";
        break;
      }
      const edge = above.getBoundingClientRect();
      const outside = box.right > edge.right + 1 || box.left < edge.left - 1;
      if (style.overflowX !== "visible" && outside) cut ||= `${above.tagName}.${above.className}`;
    }
    if (cut) found.add(`"${text.slice(0, 40)}" is cut by ${cut}`);
  }
  // Below one another, the cells of a row still have places of their own.
  for (const row of wide < 1024 ? document.querySelectorAll("[data-rows] tbody tr, .th-rows tbody tr") : []) {
    const boxes = [...row.children].filter((cell) => cell.checkVisibility(shown)).map((cell) => {
      range.selectNodeContents(cell);
      return range.getBoundingClientRect();
    });
    boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => {
      const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (across > 1 && down > 4) found.add(`cells of "${row.textContent.trim().slice(0, 40)}" lie upon one another`);
    }));
  }
  // A table on a phone stands below one another, or is narrow enough: nobody knows that there is more beside it.
  for (const box of wide < 640 ? document.querySelectorAll(".ck-scroll, .th-scroll") : []) {
    const over = box.scrollWidth - box.clientWidth;
    if (over > 1 && box.checkVisibility(shown)) found.add(`"${box.textContent.trim().slice(0, 40)}" scrolls aside`);
  }
  for (const button of document.querySelectorAll("button, input, select, a.ck-button, a.th-button")) {
    const box = button.getBoundingClientRect();
    if (!box.width || !button.checkVisibility(shown) || box.right <= wide + 1) continue;
    let above = button.parentElement;
    while (above && !/^(auto|scroll)$/.test(getComputedStyle(above).overflowX)) above = above.parentElement;
    if (!above || above === root) found.add(`"${button.textContent.trim() || button.name}" ends at ${box.right} px`);
  }
  return [...found].slice(0, 5);
}"""


def fill_pages(shop: Shop, boss: User) -> None:
    """What lists and pages have to show beside one row each: chains of every state, questions, work, a trial."""
    client = signed_in(boss)
    shopper = {"customer__email": "jane@shop.example", "customer__givenName": "Jane", "customer__surname": "Jones"}
    debit = shop.api.pay(merchantTransactionId="order-2026-000017", **shopper)
    assert shop.api.follow(debit.id, "RF", "12.00").status == 200
    reserved = shop.api.pay(paymentType="PA", amount="1250.00", merchantTransactionId="order-2026-000018", **shopper)
    assert shop.api.follow(reserved.id, "CP", "800.00").status == 200
    assert shop.api.follow(shop.api.pay(paymentType="PA").id, "RV", "92.00").status == 200
    shop.api.pay(card__number="4000015500000005", **shopper)
    disputed = payment_of(shop.api.pay(merchantTransactionId="order-2026-000019", **shopper).id)
    case = ledger.record_chargeback(disputed, Decimal("92.00"), reason="000.100.221", by=BY)
    evidence.add_evidence(case, "delivery", "delivery.pdf", io.BytesIO(b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"), BY)
    alerted(payment_of(shop.api.pay(**shopper).id))
    now = clock.real_now()
    Approval.objects.create(
        merchant=shop.merchant,
        payment=payment_of(debit.id),
        payment_type="RF",
        amount=Decimal("30.00"),
        currency="EUR",
        asked_by=person("clara", Role.CLERK, shop.merchant, four_eyes_above="20.00"),
        asked_by_name="clara",
        asked_at=now,
        expires_at=now + timedelta(days=7),
    )
    rules = [
        {"name": "large", "when": {"kind": "amount", "currency": "EUR", "over": "100.00"}, "then": {"score": 60}},
        {"name": "throw-away", "when": {"kind": "disposable-email"}, "then": {"verdict": "decline"}},
    ]
    document = {"key": "EVERYDAY", "declineFrom": 50, "rules": rules}
    RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document=document)
    day = now.date()
    payments, period = "/admin/gateway/payment/", {"since": f"{day - timedelta(days=1)}", "until": f"{day}"}
    for path, given in (
        (f"{payments}export/", {"format": "csv", "which": "all"}),
        (f"{payments}bulk/", {"do": "RF", "reason": "requested", "which": "picked", "pick": [debit.id]}),
        ("/admin/gateway/routingrule/try/", {"channel": str(shop.channel.pk), **period}),
        (f"{payments}views/save/", {"page": "gateway.payment", "name": "Large ones", "query": "min=1000"}),
    ):
        assert client.post(path, given).status_code == 302, path
    run_trial(shop, boss, document)
    # A line that several payments may be meant by, with the buttons to choose one of them.
    for _ in range(2):
        shop.api.pay(merchantTransactionId="order-twin")
    several = settlement.line(
        ClearingInstituteMerchantId=shop.channel.pk.hex, ConnectorTxId1="", TransactionId="order-twin"
    )
    institute = ClearingInstitute.objects.get(key="simulated")
    assert settlement.take_in(settlement.csv([several]), institute, "several.csv").multiple == 1


def list_all_addresses(shop: Shop) -> list[str]:
    """Addresses of every page: each pattern of the URL table with the rows of its model, and what reads in other tests
    have found worth a look (lists with a filter, pages with two keys)."""
    found = {address for pattern in addresses() for address in list_addresses(pattern, shop)}
    return sorted(found | set(read_pages(shop)))


def list_addresses(pattern: str, shop: Shop) -> Iterator[str]:
    """A pattern's addresses, one for each row; those whose keys belong to no model here are of other pages."""
    plain = re.sub(r"\\|\^|\$|\?$", "", pattern)
    names = [first or second for first, second in PARAMETER.findall(plain)]
    if plain.startswith(("/admin/logout", "/admin/language", "/admin/jsi18n")):
        return
    if not names:
        yield plain
        return
    for keys in list_keys(plain):
        path = plain
        for value in (keys, *(OTHER_KEYS.get(name, "") for name in names[1:])):
            path = PARAMETER.sub(str(value), path, count=1)
        yield path


OTHER_KEYS: Final = {"code": "RF", "verb": "revoke"}
"""What stands for the second key of an address."""
KEYS_OF: Final = {"by-hand": "gateway.Payment", "alert-entry": "gateway.Payment", "target": "gateway.Merchant"}
MORE_KEYS_OF: Final = {
    "source": "reporting.ClearingInstitute",
    "missing": "reporting.ClearingInstitute",
    "alerts": "chargebacks.DisputeAlert",
    "contacts": "gateway.Merchant",
    "tried": "gateway.BackgroundWork",
    "exemptions": "gateway.BackgroundWork",
    "retries": "gateway.BackgroundWork",
    "bulk": "gateway.BulkAction",
}
"""Whose rows an address names where they are not its own page's."""


def list_keys(path: str) -> list[Any]:
    """Keys of the first and the last row that an address may name."""
    parts = path.split("/")
    label = next((name for part, name in (KEYS_OF | MORE_KEYS_OF).items() if part in parts), ".".join(parts[2:4]))
    with suppress(LookupError, ValueError):
        keys = list(apps.get_model(label)._default_manager.order_by("pk").values_list("pk", flat=True))
        return list(dict.fromkeys([*keys[:1], *keys[-1:]]))[:MAX_ROWS]
    return []


def sort_by_kind(paths: list[str]) -> list[list[str]]:
    """The addresses of each kind: pages of the same kind differ by their row; those of history are all made by one
    template, as are those that ask before a row is deleted."""
    kinds: dict[str, list[str]] = {}
    for path in paths:
        kind = re.sub(r"/(?:[0-9a-f-]{32,36}|[0-9]+)/", "/row/", path)
        verb = kind.rstrip("/").rpartition("/")[2]
        kinds.setdefault(verb if verb in ("history", "delete") else kind, []).append(path)
    return list(kinds.values())


def choose_pages(client: Client, paths: list[str], turn: int) -> list[str]:
    """A page of each kind whose turn it is. Addresses that answer with no page are of a kind, too, so that whose turn
    it is takes no request."""
    kinds = sort_by_kind(paths)[turn % TURNS :: TURNS]
    found = (next((path for path in kind if is_page(client, path)), None) for kind in kinds)
    return [path for path in found if path is not None]


def is_page(client: Client, path: str) -> bool:
    """Whether an address answers with a page, and not with a file, a part of a page or a way elsewhere."""
    answer = client.get(path)
    assert answer.status_code < 500, path
    html = answer.headers.get("Content-Type", "").startswith("text/html")
    return answer.status_code == 200 and html and b"<html" in answer.content


def find_faults(page: Page) -> list[str]:
    """What axe finds, of any weight, and what is cut."""
    faults = Axe().run(page).response["violations"]
    return [f"{fault['id']}: {fault['nodes'][0]['target']} (of {len(fault['nodes'])})" for fault in faults] + list(
        page.evaluate(FIND_CUT)
    )


def open_as(open_page: Open, site: str, client: Client | None, language: str) -> Page:
    """A browser with the session of ``client`` and a language."""
    page = open_page(reduced_motion="reduce")
    page.set_default_timeout(60_000)
    cookies = {settings.LANGUAGE_COOKIE_NAME: language}
    if client is not None:
        cookies[settings.SESSION_COOKIE_NAME] = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": name, "value": value, "url": site} for name, value in cookies.items()])
    return page


def look(page: Page, address: str, variant: Variant, *, again: bool) -> list[str]:
    """The faults of an address in a variant. ``again``: the page stands there already, in another one."""
    page.emulate_media(color_scheme=variant.scheme, reduced_motion="reduce")
    resize(page, variant.width, WIDTHS[variant.width])
    if not again:
        page.goto(address, wait_until="load")
    picture(page, re.sub(r"[^a-z0-9]+", "-", f"{address.partition('/admin/')[2]}-{'-'.join(map(str, variant))}"))
    found = [f"{address} {'/'.join(map(str, variant))}: {fault}" for fault in find_faults(page)]
    for fault in found:
        log.warning(fault)
    return found


def test_no_page_has_a_fault_in_any_language_colour_or_width(
    committed: Shop, site: str, open_page: Open, tmp_path: Path
) -> None:
    """Pages below /admin/ that open for a superuser who has signed in: not the sign-in, and no refusal."""
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        furnish(committed)
        boss = person("boss", Role.PSP, committed.merchant.division.psp)
        boss.is_superuser = True
        boss.save()
        fill_pages(committed, boss)
        client = signed_in(boss)
        paths = list_all_addresses(committed)
        rounds = os.environ.get("OFFICE_ROUNDS", "")
        turn = int(os.environ.get("OFFICE_TURN") or clock.real_now().toordinal())
        if rounds:
            pages = [path for path in paths if is_page(client, path)]
            chosen = list(range(len(VARIANTS))) if rounds == "all" else [int(each) for each in rounds.split(",")]
        else:
            pages, chosen = choose_pages(client, paths, turn), [turn // TURNS]
        faults: list[str] = []
        browsers = {language: open_as(open_page, site, client, language) for language in LANGUAGES}
        for number, path in enumerate(pages):
            last = ""
            prove(client, boss)
            for variant in sorted(VARIANTS[(number * 5 + each) % len(VARIANTS)] for each in chosen):
                faults += look(browsers[variant.language], site + path, variant, again=variant.language == last)
                last = variant.language
    assert len(pages) > (100 if rounds else 100 // TURNS)
    assert faults == [], "\n".join([f"OFFICE_TURN={turn} repeats this run", *faults])


def test_a_long_label_leaves_its_value_room_on_a_phone(committed: Shop, site: str, open_page: Open) -> None:
    """In German, the labels of 3-D Secure settings are longer than the screen is wide."""
    furnish(committed)
    boss = person("boss", Role.PSP, committed.merchant.division.psp)
    page = open_as(open_page, site, signed_in(boss), "de")
    address = f"{site}/admin/gateway/threedsecureconfiguration/"
    assert look(page, address, Variant("de", "dark", 375), again=False) == []
    assert page.locator("#result_list td").count() > 5


def test_a_long_brand_leaves_its_figures_room_on_a_phone(committed: Shop, site: str, open_page: Open) -> None:
    """The first page was wider than the screen: a brand's name is one word."""
    committed.api.pay()
    Payment.objects.update(brand="CREDITTRANSFER_SEPA")
    cache.clear()
    boss = person("boss", Role.PSP, committed.merchant.division.psp)
    page = open_as(open_page, site, signed_in(boss), "de")
    assert look(page, f"{site}/admin/", Variant("de", "light", 375), again=False) == []
    assert page.get_by_text("CREDITTRANSFER_SEPA").count() == 1

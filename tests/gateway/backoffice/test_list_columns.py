"""Columns of lists that pages draw themselves: one's own, those of a view, and what a phone shows of them."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from chargebacks import ledger
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import BackofficePage
from gateway.backoffice.payments.payment_columns import describe_decline
from gateway.models import Authentication, Payment, Registration, SavedView
from reporting.models import ClearingInstitute
from tests.gateway.backoffice.test_rights import furnish
from tests.support import settlement
from tests.support.fixtures import BY, Shop, open_division, open_shop
from tests.support.office import person, signed_in
from tests.support.settlement import payment_of

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def furnished(module_db: None) -> Shop:
    shop = open_shop(open_division(), "Shop")
    furnish(shop)
    return shop


OWN_LISTS = {
    "chargebacks.chargeback": ("/admin/chargebacks/chargeback/?list=all", ["amount", "arn", "case"], "opened"),
    "scheduling.job": ("/admin/scheduling/job/", ["amount", "expression", "ends"], "schedule"),
    "gateway.webhookdelivery": ("/admin/gateway/webhookdelivery/", ["merchant", "attempts"], "event"),
    "reporting.settlementrecord": ("/admin/reporting/settlementrecord/", ["paid", "fee", "card"], "settled"),
}
"""List → its address, columns to choose, and the one that is always shown."""


def heads(reader: Client, address: str, **asked: str) -> list[str]:
    """The titles of a list's columns, which its head shows and its rows fill."""
    answer = reader.get(address, {**dict(parse_qsl(urlsplit(address).query)), **asked})
    table = answer.context["table"]
    titles = [each["title"] for each in table["head"]]
    cells = re.findall(r"<th scope=\"col\"[^>]*>(.*?)</th>", answer.content.decode())
    shown = [unescape(re.sub(r"<[^>]+>| [↑↓]", "", each)) for each in cells]
    assert [each for each in shown if each][: len(titles)] == titles
    assert table["rows"]
    assert all(len(row["cells"]) == len(titles) for row in table["rows"])
    return titles


@pytest.mark.parametrize("label", OWN_LISTS)
def test_lists_that_pages_draw_have_ones_own_columns(furnished: Shop, label: str) -> None:
    """Disputes, schedules, deliveries and lines of settlement files had the same columns for everybody."""
    address, chosen, first = OWN_LISTS[label]
    own: BackofficePage = admin.site._registry[apps.get_model(label)]  # type: ignore[assignment]  # every page is one
    client, other = (signed_in(person(name, "manager", furnished.merchant)) for name in ("max", "mia"))
    usual = heads(client, address)
    assert usual == [own.columns[name].head for name in own.usual_columns]
    form = {"page": label, "query": urlsplit(address).query}
    assert client.post("/admin/views/columns/", {**form, "column": [*chosen, "nothing"]}).url == address
    mine = [own.columns[name].head for name in (first, *chosen)]
    assert heads(client, address) == mine
    assert heads(other, address) == usual
    assert heads(client, address, cols="id,line")[0] == usual[0]
    assert len(heads(client, address, cols=",".join(own.columns))) == len(own.columns)

    nothing = client.get(address, {**dict(parse_qsl(urlsplit(address).query)), "cols": "nothing"})
    assert dict(parse_qsl(nothing.context["views"]["query"]))["cols"] == ",".join((first, *chosen))

    # What is kept as a view has its columns, whatever those of its reader are.
    kept = client.get(address).context["views"]["query"]
    client.post("/admin/views/save/", {"page": label, "name": "mine", "query": kept, "shared": "1"})
    opened = other.get(f"/admin/views/{SavedView.objects.get().pk}/").url
    assert heads(other, opened) == mine
    client.post("/admin/views/columns/", {**form, "usual": "1"})
    assert heads(client, address) == usual


def test_a_column_that_is_not_usual_says_what_it_is_where_the_table_has_no_head(furnished: Shop) -> None:
    client = signed_in(person("columns-3", "manager", furnished.merchant))
    for address in ("/admin/gateway/payment/", *(each for each, _chosen, _first in OWN_LISTS.values())):
        page = client.get(address, {**dict(parse_qsl(urlsplit(address).query)), "cols": "amount,id,line"})
        labels = set(re.findall(r'data-label="([^"]+)"', page.content.decode()))
        assert labels in ({"id"}, {"Line"}), address


def follow_order(client: Client, address: str, column: str) -> str:
    """The address that a click on a column's head leads to."""
    head = client.get(address).context["table"]["head"]
    return urlsplit(address).path + next(each["address"] for each in head if each["title"] == column)


def test_disputes_are_put_in_order_page_after_page(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """By amount, largest first and then smallest first; the order is kept by what leads on, and by a view."""
    monkeypatch.setattr(keyset, "KEYSET_PAGE_ROWS", 2)
    amounts = [Decimal(text) for text in ("7.00", "92.00", "7.00", "30.50", "0.01")]
    for amount in amounts:
        ledger.record_chargeback(payment_of(shop.api.pay().id), amount, reason="000.100.221", by=BY)
    client = signed_in(person("max", "manager", shop.merchant))
    address = "/admin/chargebacks/chargeback/?list=all&cols=amount"
    for wanted in (sorted(amounts, reverse=True), sorted(amounts)):
        address = follow_order(client, address, "Amount")
        assert dict(parse_qsl(urlsplit(address).query))["cols"] == "amount"
        found: list[Decimal] = []
        page = address
        while page:
            context = client.get(page).context
            found += [row.amount for row in context["pages"].rows]
            page = urlsplit(address).path + context["pages"].next if context["pages"].next else ""
        assert found == wanted
        assert client.get(address).context["table"]["head"][1]["sorted"]
        assert 'rel="next"' in (text := client.get(address).content.decode())
        assert "Next page" in text, "the largest is not the newest"
    assert "order" in dict(parse_qsl(client.get(address).context["views"]["query"]))
    oldest = follow_order(client, "/admin/chargebacks/chargeback/?list=all", "Opened (UTC)")
    times = [row.opened_at for row in client.get(oldest).context["pages"].rows]
    assert times == sorted(times)
    for wrong in ("nothing", "-", "reason", "--amount"):
        assert client.get(f"/admin/chargebacks/chargeback/?list=all&order={wrong}&after=5-x").status_code == 200


def test_settlement_lines_are_put_in_order_and_findings_are_not(
    furnished: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = furnished.channel.pk.hex
    rows = [
        settlement.line(ClearingInstituteMerchantId=own, ConnectorTxId1=f"more-{amount}", Amount=amount)
        for amount in ("3.00", "12.50", "9.10")
    ]
    settlement.take_in(settlement.csv(rows), ClearingInstitute.objects.get(key="simulated"), "more.csv")
    monkeypatch.setattr(keyset, "KEYSET_PAGE_ROWS", 2)
    client = signed_in(person("max", "manager", furnished.merchant))
    address = follow_order(client, "/admin/reporting/settlementrecord/", "Amount")
    assert client.get(address).context["table"]["head"][2]["sorted"] == "descending"
    amounts: list[Decimal] = []
    page = address
    while page:
        context = client.get(page).context
        amounts += [each["row"].amount for each in context["rows"]]
        page = urlsplit(address).path + context["pages"].next if context["pages"].next else ""
    assert amounts == [Decimal(text) for text in ("12.50", "9.10", "7.77", "3.00")]
    findings = client.get("/admin/reporting/settlementrecord/", {"list": "findings", "order": "-amount"})
    assert findings.status_code == 200
    assert not any(each.get("address") for each in findings.context["table"]["head"])


def test_a_declined_payment_is_not_said_to_be_declined_twice() -> None:
    """Found in use: "Declined", and beside it "Declined: amount is over the available credit"."""
    row = Payment(status="DECLINED", result_code="800.100.155")
    shown = {"en": "amount is over the available credit", "de": "Betrag übersteigt den verfügbaren Rahmen"}
    shown["fr"] = "le montant dépasse le crédit disponible"
    for language, words in shown.items():
        with translation.override(language):
            assert describe_decline(row) == words
    assert describe_decline(Payment(status="DECLINED", result_code="100.396.101")) == "Shopper cancelled"
    assert describe_decline(Payment(status="APPROVED", result_code="000.100.110")) == ""


def test_pages_name_what_they_show_in_words_and_link_payments(furnished: Shop) -> None:
    """Found in pictures: PA, DB, CD to choose from, expiryMonth and last4Digits, a payment that was an id alone."""
    boss = signed_in(User.objects.create_superuser("root"))
    rule = boss.get("/admin/gateway/routingrule/add/").content.decode()
    assert all(name in rule for name in ("PA: Preauthorization", "RG: Registration"))
    stored = Registration.objects.filter(details__card__isnull=False).first()
    assert stored is not None
    page = boss.get(f"/admin/gateway/registration/{stored.pk}/change/").content.decode()
    assert "<dt>Expiry month</dt>" in page
    assert "last4Digits" not in page
    proved = Authentication.objects.exclude(payment=None).first()
    assert proved is not None
    page = boss.get(f"/admin/gateway/authentication/{proved.pk}/change/").content.decode()
    assert page.count(f'href="/admin/gateway/payment/{proved.payment}/change/"') == 1

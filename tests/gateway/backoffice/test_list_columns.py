"""Columns of lists that pages draw themselves: one's own, those of a view, and what a phone shows of them."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client

from gateway.backoffice.kit.base import BackofficePage
from gateway.models import SavedView
from tests.gateway.backoffice.test_rights import furnish
from tests.support.fixtures import Shop, open_division, open_shop
from tests.support.office import person, signed_in

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
    shown = re.findall(r"<th scope=\"col\"[^>]*>([^<]+)</th>", answer.content.decode())
    assert [unescape(each) for each in shown][: len(titles)] == titles
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

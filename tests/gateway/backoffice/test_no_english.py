"""In German and French, no English of our own stays on the clerk's pages and the pages of the books.

Every page is read in all languages: a text that is the same in English and is English was forgotten. What people and
machines have typed, names of parameters and the published words of result codes stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import translation

from chargebacks.models import Chargeback
from checkout.models import PaymentLink
from gateway.core import clock, result_codes
from gateway.models import (
    Payment,
    RequestLog,
    RiskSet,
    Role,
    WebhookDelivery,
    WebhookEndpoint,
)
from gateway.models.webhooks import DEFAULT_WEBHOOK_KINDS, WEBHOOK_KINDS
from reporting.models import ClearingInstitute, MonthClosing, Settlement, SettlementFile, SettlementRecord
from reporting.reconciliation.models import ReconciliationFile
from tests.gateway.backoffice.test_languages import TRANSLATED, written
from tests.gateway.backoffice.test_rights import furnish
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
ENGLISH = re.compile(
    r"\b(the|is|of|was|were|and|not|with|it|by|for|are|this|that|nothing|from|has|have|its|be|or|as|you|your|yet|"
    r"until|amount|payment|made|sent|asked|answered|here|there)\b",
    re.IGNORECASE,
)
QUIET = frozenset({"script", "style", "pre", "code", "option", "template", "title"})
SPOKEN = ("aria-label", "placeholder", "title", "alt")
VOID = frozenset({"input", "br", "img", "meta", "link", "hr", "path", "rect", "line", "circle"})
PUBLISHED = frozenset(each.description for each in result_codes.RESULT_CODES.values())
"""Words of result codes: the API's own, the same in every language."""
WIRE = frozenset(
    {
        "amount",
        "bic",
        "currency",
        "holder",
        "key",
        "chargeback by hand",
        ", ".join(DEFAULT_WEBHOOK_KINDS),
        *WEBHOOK_KINDS,
    }
)
"""Names of the API, and what requests were logged as."""


class Words(HTMLParser):
    """The texts of a page that people read, and the attributes that are read to them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Icons are written as their English names, in a font of their own.
        icon = any(name == "class" and value and "material-symbols" in value for name, value in attrs)
        # What a bank reads, such as a dispute's packet, says that it is English.
        foreign = tag != "html" and ("lang", "en") in attrs
        if tag not in VOID:
            self.open.append("code" if icon or foreign else tag)
        self.found += [value.strip() for name, value in attrs if name in SPOKEN and value and value.strip()]

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and self.open:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and not QUIET.intersection(self.open):
            self.found.append(" ".join(data.split()))


def words_of(client: Client, path: str) -> set[str]:
    answer = client.get(path)
    assert answer.status_code == 200, path
    page = Words()
    page.feed(answer.content.decode())
    return set(page.found)


def month_pages(shop: Shop) -> Iterator[str]:
    yield "/admin/reporting/monthclosing/"
    for row in MonthClosing.objects.filter(merchant=shop.merchant):
        yield f"/admin/reporting/monthclosing/{row.pk}/change/"
    month = f"/admin/reporting/monthclosing/month/{shop.merchant.pk.hex}/{clock.real_now():%Y-%m}/"
    yield month
    for part in ("unmatched", "settled", "missing", "findings"):
        yield f"{month}lines/?part={part}&currency=EUR"


def pages(shop: Shop) -> Iterator[str]:
    base = "/admin/gateway/"
    for name in (
        "payment",
        "approval",
        "backgroundwork",
        "registration",
        "requestlog",
        "riskset",
        "risktrial",
        "webhookdelivery",
        "webhookendpoint",
    ):
        yield f"{base}{name}/"
    yield "/admin/"
    yield "/admin/live-board/"
    yield "/admin/chargebacks/chargeback/strength/"
    yield f"{base}riskset/add/"
    yield f"{base}channel/{shop.channel.pk}/change/"
    yield "/admin/checkout/offerrule/add/"
    yield "/admin/checkout/paymentlink/"
    yield "/admin/checkout/paymentlink/add/"
    for link in PaymentLink.objects.filter(merchant=shop.merchant):
        yield f"/admin/checkout/paymentlink/{link.pk}/change/"
    yield "/admin/checkout/paymentpagestyle/"
    yield f"/admin/checkout/paymentpagestyle/{shop.channel.pk}/change/"
    yield f"/admin/checkout/paymentpagestyle/{shop.channel.pk}/logo/"
    yield f"{base}payment/?q=47.11"
    yield f"{base}threedsecureconfiguration/add/"
    for payment in Payment.objects.filter(merchant=shop.merchant):
        yield f"{base}payment/{payment.pk}/change/"
    paid = Payment.objects.filter(merchant=shop.merchant, status="APPROVED", payment_type="DB").earliest("id")
    yield f"{base}payment/{paid.pk}/do/RF/"
    yield f"/admin/chargebacks/chargeback/by-hand/{paid.pk}/"
    for log in RequestLog.objects.all()[:2]:
        yield f"{base}requestlog/{log.pk}/change/"
    for name in ("settlement", "settlementfile", "settlementrecord", "reconciliationfile"):
        yield f"/admin/reporting/{name}/"
    yield "/admin/reporting/settlementfile/upload/"
    yield "/admin/reporting/reconciliationfile/daily/"
    yield from month_pages(shop)
    for institute in ClearingInstitute.objects.all():
        for name in ("missing", "source"):
            yield f"/admin/reporting/settlementfile/{name}/{institute.pk}/"
    yield f"/admin/reporting/reconciliationfile/target/{shop.merchant.pk}/"
    for listed in ("multiple", "unmatched", "findings", "missing", "marked"):
        yield f"/admin/reporting/settlementrecord/?list={listed}"
    for listed in ("open", "submitted", "closed", "all"):
        yield f"/admin/chargebacks/chargeback/?list={listed}"
    for model in (
        Settlement,
        SettlementFile,
        SettlementRecord,
        ReconciliationFile,
        Chargeback,
        WebhookEndpoint,
        WebhookDelivery,
        RiskSet,
    ):
        for row in model._default_manager.all()[:2]:
            yield f"/admin/{model._meta.app_label}/{model._meta.model_name}/{row.pk}/change/"


def test_no_english_of_our_own_stays_on_a_page_in_another_language(shop: Shop) -> None:
    furnish(shop)
    shop.api.pay(card__number="4000015500000005")
    RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document={"key": "EVERYDAY", "rules": []})
    client = signed_in(person("boss", Role.PSP, shop.merchant.division.psp))
    translated = {
        language: {english for english, word in written(language).items() if english and word != english}
        for language in TRANSLATED
    }
    forgotten: dict[str, str] = {}
    for path in pages(shop):
        found = {}
        for language in ("en", *TRANSLATED):
            cache.clear()
            client.post("/admin/language", {"language": language, "next": "/admin/"})
            found[language] = words_of(client, path)
        for language in TRANSLATED:
            for text in found["en"] & found[language]:
                if text in WIRE or text.partition(" ")[2] in PUBLISHED or text in PUBLISHED:
                    continue
                if text in translated[language] or ENGLISH.search(text):
                    forgotten.setdefault(f"{language}: {text}", path)
    # A request's language stays with the thread, and the next test is in English.
    translation.activate("en")
    assert forgotten == {}


def test_a_closed_door_and_a_page_that_is_not_there_speak_german(shop: Shop) -> None:
    """In English and German at least, also where something went wrong."""
    clerk = signed_in(person("clara", Role.CLERK, shop.merchant))
    for path, words in (("/admin/gateway/riskset/add/", "nicht freigegeben"), ("/admin/nowhere/", "Hier ist nichts")):
        page = clerk.get(path, headers={"accept-language": "de", "accept": "text/html"}).content.decode()
        assert words in page, path
        assert '<html lang="de"' in page
    translation.activate("en")

"""Lists: what they are called, what an empty one says, how they write moments, and in whose language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten, flatten_fieldsets, label_for_field
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver
from django.utils import translation

from config import navigation
from gateway.backoffice.kit import base
from gateway.backoffice.kit.base import BackofficePage
from gateway.backoffice.kit.formatting import format_labelled
from gateway.backoffice.sign_in import time_zones
from gateway.models import AuditEntry, Notification, RequestLog, Role
from tests.gateway.backoffice.test_rights import furnish
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

SAME = frozenset(
    {"3-D Secure", "Name", "PSP", "PSPs", "SHA-256", "Task Name", "BIC", "dispatching", "entityId", "id", "ndc"}
)
"""Names that are the same in both languages, and those of another project's table that our pages do not show."""


def office() -> list[tuple[type, Any]]:
    """Every model with a page, and its page, once all of them are loaded."""
    assert get_resolver().url_patterns
    return [(model, page) for model, page in admin.site._registry.items() if isinstance(page, BackofficePage)]


def named() -> Iterator[tuple[str, str]]:
    """(model, words) of every column, field and hint of every page, in the language that is switched on."""
    for model, page in office():
        shown = flatten_fieldsets(page.fieldsets) if page.fieldsets else flatten(page.fields or ())
        typed = page.form.declared_fields
        words = [
            typed[each].label if each in typed and typed[each].label else label_for_field(each, model, page)
            for each in (*page.list_display, *shown)
        ]
        own = (model._meta.verbose_name, page.search_help_text, page.nothing)
        for each in (*words, *own):
            if each:
                yield model.__name__, str(each)


def test_columns_fields_and_hints_have_german_names() -> None:
    """In English and German. A name that is the same in both was forgotten."""
    with translation.override("en"):
        english = list(named())
    with translation.override("de"):
        german = list(named())
    assert len(english) == len(german) > 200
    same = {pair for pair, other in zip(english, german, strict=True) if pair == other and pair[1] not in SAME}
    own = {("Division", "division"), ("Merchant", "division")}
    codes = {"code", "connector", "flow", "text", "checkout", "wallet"}
    assert not {pair for pair in same - own if pair[1].casefold() not in codes}


def test_every_list_that_the_theme_draws_says_what_fills_it() -> None:
    """Look: the theme's own words tell everybody to create an item, also where nobody can."""
    drawn = [page for _model, page in office() if not _draws_its_own(page)]
    assert len(drawn) > 20
    assert not {type(page).__name__ for page in drawn if not page.nothing}


def _draws_its_own(page: BackofficePage) -> bool:
    """Whether the page has a list of its own making, which has its own words for an empty one."""
    found = next(one for one in type(page).__mro__ if "changelist_view" in vars(one))
    return "TemplateResponse" in found.changelist_view.__code__.co_names  # type: ignore[attr-defined]


@pytest.mark.django_db
def test_pages_are_called_what_the_navigation_calls_them() -> None:
    """The page behind "Schedules" was headed "Scheduling, Jobs", and its tab "Select job to view"."""
    client = signed_in(User.objects.create_superuser("boss"))
    places = navigation.list_page_titles()
    assert len(places) > 40
    for address in (
        "/admin/scheduling/job/",
        "/admin/gateway/capturebatch/",
        "/admin/auth/user/",
        "/admin/vault-keys/",
        "/admin/gateway/acquireraccount/health/",
        "/admin/gateway/riskset/",
    ):
        group, title = places[address]
        page = client.get(address).content.decode()
        assert re.search(rf"<title>\s*{title} · Tollhouse\s*</title>", page.replace("&#x27;", "'")), address
        heading = re.sub(r"<[^>]+>|\s+", " ", page[page.index('id="header-inner"') :][:4000]).replace("&#x27;", "'")
        assert re.search(rf"{group} +chevron_right +{title}", re.sub(r" +", " ", heading)), address


@pytest.mark.django_db
def test_an_empty_list_offers_what_its_reader_may_do(shop: Shop) -> None:
    """Nobody makes a batch by hand; a manager makes a rule; a search that finds nothing leads back to all rows."""
    manager = signed_in(person("max", Role.MANAGER, shop.merchant))
    batches = manager.get("/admin/gateway/capturebatch/").content.decode()
    assert "Only accounts that present captures by batch have them" in batches
    assert "Create a new item" not in batches
    assert "/admin/gateway/capturebatch/add/" not in batches
    rules = manager.get("/admin/gateway/routingrule/").content.decode()
    assert "Without a rule a payment goes to the first account" in rules
    assert "Add routing rule" in rules
    auditor = signed_in(person("ada", Role.AUDITOR, shop.merchant))
    assert "Add routing rule" not in auditor.get("/admin/gateway/routingrule/").content.decode()
    sought = manager.get("/admin/gateway/routingrule/", {"q": "nowhere"}).content.decode()
    assert "Nothing fits" in sought
    assert 'href="?"' in sought


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["en", "de"])
def test_lists_write_moments_to_the_second_with_their_zone(shop: Shop, language: str) -> None:
    """Two changes within a minute are told apart, and nobody has to guess whose midnight it was."""
    shop.api.pay()
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    client.post("/admin/language", {"language": language, "next": "/admin/"})
    log = RequestLog.objects.latest("at")
    assert f"{log.at:%Y-%m-%d %H:%M:%S} UTC" in client.get("/admin/gateway/requestlog/").content.decode()
    told = Notification.objects.latest("created_at")
    page = client.get("/admin/gateway/notification/").content.decode()
    assert f"{told.created_at:%Y-%m-%d %H:%M:%S} UTC" in page
    assert told.payment_id is not None
    assert told.payment_id.hex in page, "as merchants log it"


@pytest.mark.django_db
def test_the_audit_trail_leads_to_what_it_tells_of(shop: Shop) -> None:
    """Who looked at what; the page of it is one click away, and its id as the API writes it."""
    paid = shop.api.pay()
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    listed = client.get("/admin/gateway/payment/", {"q": paid.id}, follow=True)
    assert listed.status_code == 200
    seen = AuditEntry.objects.filter(action="view", subject="payment").latest("id")
    trail = client.get("/admin/gateway/auditentry/", {"looks": "all"}).content.decode()
    assert f'href="/admin/gateway/payment/{seen.subject_id}/change/">payment {paid.id}</a>' in trail
    gone = SimpleNamespace(subject="something that was", subject_id="7")
    page = admin.site._registry[AuditEntry]
    assert page.subject_link(gone) == "something that was 7"


@pytest.mark.django_db
def test_who_is_signed_in_is_not_told_to_sign_in(shop: Shop) -> None:
    """A page that one's roles do not reach says so, and leads back; a stranger is led to the sign-in."""
    clerk = signed_in(person("clara", Role.CLERK, shop.merchant))
    refused = clerk.get("/admin/auth/user/", headers={"accept": "text/html"})
    page = refused.content.decode()
    assert refused.status_code == 403
    assert "You are signed in as clara" in page
    assert "Sign in<" not in page
    assert "Sign in" in Client(raise_request_exception=False).get("/admin/auth/user/", follow=True).content.decode()


@pytest.mark.django_db
def test_the_list_of_tokens_says_who_can_grant_the_right_to_see_it(shop: Shop) -> None:
    """The URL says who can grant it; the list's as well as the form's."""
    person("max", Role.MANAGER, shop.merchant)
    clerk = signed_in(person("clara", Role.CLERK, shop.merchant))
    for address in ("/admin/gateway/accesstoken/", "/admin/gateway/accesstoken/add/"):
        refused = clerk.get(address)
        assert refused.status_code == 403
        assert "<li>max</li>" in refused.content.decode()


@pytest.mark.django_db
def test_a_form_begins_with_the_only_merchant_there_is(shop: Shop, stranger: Shop) -> None:
    """Who has one shop is not asked which; who has two is."""
    one = signed_in(person("max", Role.MANAGER, shop.merchant))
    chosen = f'<option value="{shop.merchant.pk}" selected>'
    assert chosen in one.get("/admin/gateway/accesstoken/add/").content.decode()
    both = signed_in(person("mia", Role.MANAGER, shop.merchant, stranger.merchant))
    assert chosen not in both.get("/admin/gateway/accesstoken/add/").content.decode()


@pytest.mark.django_db
def test_a_page_that_adds_says_so_and_names_the_zone_of_its_times(shop: Shop) -> None:
    """A plus beside it led to the page itself, and a warning sign told that the browser's clock is another one."""
    user = person("max", Role.MANAGER, shop.merchant)
    manager = signed_in(user)
    page = manager.get("/admin/gateway/accesstoken/add/").content.decode()
    heading = re.sub(r"<[^>]+>|\s+", " ", page[page.index('id="header-inner"') :][:5000])
    assert "Add access token" in heading
    assert 'class="addlink' not in page
    assert 'class="addlink' in manager.get("/admin/gateway/accesstoken/").content.decode()
    assert "Time zone: UTC." in page
    time_zones.store_zone(user, "Asia/Tokyo")
    assert "Time zone: Asia/Tokyo." in manager.get("/admin/gateway/accesstoken/add/").content.decode()


# --- small words ----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", ("New: grant", "Only active users can sign in.", ">choose<")),
        ("de", ("Neu: Berechtigung", "Nur wer aktiv ist, kann sich anmelden.", ">bitte wählen<")),
        (
            "fr",
            (
                "À ajouter\u00a0: attribution",
                ">Ajouter\u00a0: Attribution<",
                "Seul un utilisateur actif peut se connecter.",
                ">Choisissez une",
            ),
        ),
    ],
)
def test_the_form_of_a_user_says_what_it_asks_for(language: str, words: tuple[str, ...]) -> None:
    """Its rows were "Grant: #1", its choices "Select value", and its help was that of another project."""
    client = signed_in(User.objects.create_superuser("boss"))
    client.post("/admin/language", {"language": language, "next": "/admin/"})
    page = client.get("/admin/auth/user/add/").content.decode()
    for each in words:
        assert each in page
    assert not re.search(r": #<|Designates|Select value", page)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "one", "several", "most"),
    [
        ("en", "1 row", "2 rows", "3 rows or more"),
        ("de", "1 Zeile", "2 Zeilen", "3 Zeilen oder mehr"),
        ("fr", "1 ligne", "2 lignes", "3 lignes ou plus"),
    ],
)
def test_a_list_counts_its_rows(
    language: str, one: str, several: str, most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "31 audit trail" counted nothing, and a list that is counted up to a limit did not say so at its foot."""
    monkeypatch.setattr(base, "MAX_COUNTED_LIST_ROWS", 3)
    monkeypatch.setattr(base.BoundedPaginator, "most_counted", 3)
    client = signed_in(User.objects.create_superuser("boss"))
    client.post("/admin/language", {"language": language, "next": "/admin/"})
    for name in ("anna", "berta", "bertram"):
        User.objects.create_user(name)
    for sought, words in (("anna", one), ("bert", several), ("a", most)):
        foot = re.sub(r"\s+", " ", client.get("/admin/auth/user/", {"q": sought}).content.decode())
        assert f'<div class="py-4"> {words} </div>' in foot


def test_french_has_a_space_before_a_colon() -> None:
    """ "AVS: F" is English; sentences of the catalogue had the space, and what code puts together had none."""
    assert format_labelled("MS03", "no reason") == "MS03: no reason"
    with translation.override("fr"):
        assert format_labelled("MS03", "sans raison") == "MS03\u00a0: sans raison"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "language", "words", "not_words"),
    [
        ("bankfile/", "en", r">\s*92\.00 EUR\s*<", r"92\.00\s*<"),
        ("authentication/", "en", r'<a class="th-link" href="/admin/gateway/payment/[^"]+">[0-9a-f]{32}<', "Jcb"),
        ("batchedcapture/{}/change/", "en", "M-1", r">\s*{}\s*<"),
        ("threedsecureconfiguration/add/", "en", "JCB: requestor", "Jcb: "),
        ("webhookendpoint/", "de", r"Inspektor \(verschlüsselt\)", r"\(encrypted\)"),
        ("webhookdelivery/{}/change/", "de", "Zugestellt", r"\(delivered\)"),
    ],
)
def test_what_pictures_of_every_page_showed(
    shop: Shop, address: str, language: str, words: str, not_words: str
) -> None:
    """A sum without its currency, an id that led nowhere, a code for an empty answer, English words in German."""
    furnish(shop)
    client = signed_in(User.objects.create_superuser("boss"))
    client.post("/admin/language", {"language": language, "next": "/admin/"})
    if "{}" in address:
        row = apps.get_model("gateway", address.partition("/")[0])._default_manager.order_by("pk").first()
        address = address.format(row.pk)
    page = unescape(client.get(f"/admin/gateway/{address}").content.decode())
    translation.activate("en")
    assert re.search(words, page)
    assert not re.search(not_words, page)

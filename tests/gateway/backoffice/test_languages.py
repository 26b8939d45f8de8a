"""The back office speaks English, German and French; another language is a folder of texts and a row in LANGUAGES."""

from __future__ import annotations

import ast
import gettext
import re
from decimal import Decimal
from functools import cache
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.utils import translation

from config.model_names import TRANSLATED_APPS
from gateway.api.envelope import build_result
from gateway.backoffice.kit.formatting import format_money, read_typed_amount
from gateway.backoffice.kit.result_words import describe_result
from gateway.core.result_codes import RESULT_CODES, ResultFamily, is_chargeback
from gateway.timers.registry import TIMERS
from tests.support.office import signed_in

ROOT = Path(__file__).parents[3]
LOCALE = ROOT / "config" / "locale"
TRANSLATED = tuple(code for code, _name in settings.LANGUAGES if code != "en")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_ENTRY = re.compile(
    rf"msgid (?P<id>{_QUOTED})\n(?:msgid_plural (?P<plural>{_QUOTED})\n)?(?P<texts>(?:msgstr(?:\[\d\])? {_QUOTED}\n?)+)"
)
_HOLES = re.compile(r"%\([a-z_]+\)[sd]|%[sd]")
_CALL_NAMES = frozenset({"_", "gettext", "gettext_lazy", "gettext_noop", "lazy", "noop", "ngettext", "ngettext_lazy"})
_TAG = re.compile(r"""{% (?:translate|trans) ("[^"]*"|'[^']*')""")
_BLOCK = re.compile(r"{% blocktranslate[^%]*%}(.*?){% endblocktranslate %}", re.DOTALL)


class Entry(NamedTuple):
    """Words of one language; two of them for a plural."""

    plural: str
    texts: tuple[str, ...]


@cache
def catalogue(language: str) -> dict[str, Entry]:
    """English → the words, as the .po file has them."""
    text = (LOCALE / language / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8")
    found = {}
    for row in _ENTRY.finditer(text):
        words = tuple(ast.literal_eval(one) for one in re.findall(_QUOTED, row["texts"]))
        found[ast.literal_eval(row["id"])] = Entry(ast.literal_eval(row["plural"] or '""'), words)
    return found


def written(language: str = "de") -> dict[str, str]:
    """English → the words of a language; of a plural the first."""
    return {english: entry.texts[0] for english, entry in catalogue(language).items()}


def test_every_folder_of_texts_is_a_language_that_can_be_chosen() -> None:
    assert {one.name for one in LOCALE.iterdir() if one.is_dir()} == {code for code, _name in settings.LANGUAGES}
    for language in TRANSLATED:
        assert import_module(f"config.formats.{language}.formats").DATE_FORMAT == "Y-m-d"


@pytest.mark.parametrize("language", TRANSLATED)
def test_the_compiled_words_are_those_of_the_file(language: str) -> None:
    """A clone without gettext speaks it too: the compiled file is kept, and equal."""
    with (LOCALE / language / "LC_MESSAGES" / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    words = {english: entry for english, entry in catalogue(language).items() if english}
    assert len(words) > 2500
    for english, entry in words.items():
        if entry.plural:
            for count, text in zip((1, 2), entry.texts, strict=True):
                assert compiled.ngettext(english, entry.plural, count) == text, english
        else:
            assert compiled.gettext(english) == entry.texts[0], english


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_word_has_its_translation(language: str) -> None:
    """Placeholders are the same, and nothing is fuzzy."""
    text = (LOCALE / language / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8")
    assert "fuzzy" not in text
    assert text.count("\nmsgid ") == len(catalogue(language)), "an entry is there twice, or was not read"
    for english, entry in catalogue(language).items():
        if not english:
            continue
        assert len(entry.texts) == (2 if entry.plural else 1), english
        for words in entry.texts:
            assert words.strip(), english
            assert sorted(_HOLES.findall(english)) == sorted(_HOLES.findall(words)), english
            assert (english[0] == " ") == (words[0] == " "), english


def test_all_languages_have_the_same_words() -> None:
    """A text that is added has to be added to every language."""
    for language in TRANSLATED[1:]:
        assert catalogue(language).keys() == catalogue(TRANSLATED[0]).keys(), language
        for english, entry in catalogue(language).items():
            assert entry.plural == catalogue(TRANSLATED[0])[english].plural, english


def texts_of_code() -> set[str]:
    """What the code and the templates of the back office give to gettext, word for word."""
    found = set()
    for app in ("chargebacks", "checkout", "config", "gateway", "reporting"):
        for path in (ROOT / app).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "gettext" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALL_NAMES:
                    match node.args[:1]:
                        case [ast.Constant(value=str(words))]:
                            found.add(words)
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        found |= {ast.literal_eval(one) for one in _TAG.findall(text)}
        for words in _BLOCK.findall(text):
            found.add(re.sub(r"{{ (\w+) }}", r"%(\1)s", words.partition("{% plural %}")[0]))
    return {one for one in found if one}


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_text_of_the_code_is_in_the_catalogue(language: str) -> None:
    """Django's and the theme's own words stand in their catalogues."""
    with translation.override(language):
        known = set(translation.trans_real.catalog()._catalog.keys())  # type: ignore[attr-defined]
    plurals = {key[0] for key in known if isinstance(key, tuple)}
    assert sorted(texts_of_code() - known - plurals) == []


_OWN_COLON = re.compile(r"(?:}}|%}|</\w+>): ?(?:{[{%]|<)[^}]*")


def test_a_colon_between_two_values_is_that_of_the_language() -> None:
    """French has a space before it. Names of channels, prefixes of a search and headers of HTTP are no sentences."""
    found = []
    for folder in ("admin", "account", "mfa"):
        for path in sorted((ROOT / "templates" / folder).rglob("*.html")):
            text = _BLOCK.sub("", path.read_text(encoding="utf-8"))
            found += [(path.name, each) for each in _OWN_COLON.findall(text) if "channel.name" not in each]
    assert found == [("payments.html", "}}:{{ shape.example "), ("inspected.html", "}}: {{ value ")]


_COUNTED = re.compile(r"%(?:\(\w+\))?d \w+s\b")


def test_a_text_that_begins_with_a_number_of_things_has_a_singular() -> None:
    """Found in use: "1 findings are closed with your note."."""
    wrong = []
    for app in ("chargebacks", "checkout", "config", "gateway", "reporting"):
        for path in (ROOT / app).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "gettext" in text else ():
                match node:
                    case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(words)), *_rest]):
                        if name in _CALL_NAMES and not name.startswith("ngettext") and _COUNTED.match(words):
                            wrong.append(f"{path.relative_to(ROOT)}: {words}")
    assert wrong == []


def test_amounts_are_written_and_read_in_the_readers_language() -> None:
    shown = {"en": "1,234.50 EUR", "de": "1.234,50 EUR", "fr": "1\u00a0234,50 EUR"}
    for language, text in shown.items():
        with translation.override(language):
            assert format_money(Decimal("1234.5"), "EUR") == text
            assert read_typed_amount(text.removesuffix(" EUR")) == "1234.50"
    with translation.override("fr"):
        assert read_typed_amount("1\u202f234,50") == "1234.50"
        assert read_typed_amount("12,5") == "12.5"


@pytest.mark.django_db
def test_the_language_is_switched_and_kept() -> None:
    """A language switch."""
    client = signed_in(User.objects.create_superuser("boss"))
    assert "Access tokens" in client.get("/admin/").content.decode()
    assert client.post("/admin/language", {"language": "de", "next": "/admin/"})["Location"] == "/admin/"
    page = client.get("/admin/").content.decode()
    assert '<html lang="de"' in page
    assert "Zugriffstoken" in page
    assert "Letzten 24 Stunden" in page or "letzten 24 Stunden" in page


@pytest.mark.django_db
def test_a_browser_that_asks_for_german_gets_it() -> None:
    client = Client(headers={"accept-language": "de-AT,de;q=0.9"})
    assert '<html lang="de"' in client.get("/admin/login/").content.decode()


@pytest.mark.django_db
def test_a_browser_that_asks_for_french_gets_it_and_the_switch_offers_all() -> None:
    page = Client(headers={"accept-language": "fr-CA,fr;q=0.9"}).get("/admin/login/").content.decode()
    assert '<html lang="fr"' in page
    client = signed_in(User.objects.create_superuser("boss"))
    client.post("/admin/language", {"language": "fr", "next": "/admin/"})
    page = client.get("/admin/").content.decode()
    assert "Jetons d'accès" in unescape(page)
    for _code, name in settings.LANGUAGES:
        assert name.lower() in unescape(page).lower()


def test_names_of_fields_are_kept_as_people_write_them_in_english() -> None:
    """The compiled words are those of the file: "IP address" for the column ip, in every clone."""
    folder = ROOT / "config" / "locale" / "en" / "LC_MESSAGES"
    text = (folder / "django.po").read_text(encoding="utf-8")
    words = {
        ast.literal_eval(one["id"]): ast.literal_eval(one["texts"].removeprefix("msgstr "))
        for one in _ENTRY.finditer(text)
    }
    with (folder / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert words.pop("", None) is not None
    assert {name: compiled.gettext(name) for name in words} == words
    assert words["ip"] == "IP address"


def names_on_pages() -> set[str]:
    """Names, help texts and choices of the fields that forms, lists and filters of the back office show."""
    shown: dict[type[Model], set[str]] = {}
    for model, page in admin.site._registry.items():
        for one in (page, *page.inlines):
            listed = [getattr(one, name, None) or () for name in ("list_display", "list_filter", "fields")]
            listed += [options["fields"] for _title, options in one.fieldsets or ()]
            named = [name for names in listed for name in names]
            flat = {name for part in named for name in (part if isinstance(part, tuple) else (part,))}
            shown.setdefault(getattr(one, "model", None) or model, set()).update(n for n in flat if isinstance(n, str))
    found: set[str] = set()
    with translation.override("en"):
        for model, names in shown.items():
            if model._meta.app_label in TRANSLATED_APPS:
                for field in model._meta.local_fields:
                    if field.name in names:
                        found |= {str(field.verbose_name), str(field.help_text)}
                        found |= {str(words) for _value, words in field.flatchoices}
    return {one for one in found if re.search("[A-Za-z]", one)}


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_field_on_a_page_has_its_name_in_the_catalogue(language: str) -> None:
    """Names that the English catalogue writes in another way count as they stand there."""
    with translation.override(language):
        known = set(translation.trans_real.catalog()._catalog.keys())  # type: ignore[attr-defined]
    english = {entry.texts[0] for entry in catalogue("en").values()}
    assert sorted(names_on_pages() - known - english) == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_family_of_results_has_its_words(language: str) -> None:
    """The filter of payments names the families."""
    assert sorted({family.value.replace("-", " ") for family in ResultFamily} - catalogue(language).keys()) == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_timer_has_its_words(language: str) -> None:
    """The live board and the page of ticks say what a timer does."""
    assert len(TIMERS) > 60
    assert sorted({timer.about for timer in TIMERS.values()} - catalogue(language).keys()) == []


_CODE = re.compile(r"(?<![0-9.])[0-9]{3}\.[0-9]{3}\.[0-9]{3}(?![0-9.])")
_PARTS = ("chargebacks", "checkout", "config", "gateway", "reporting")


def codes_of_sources() -> set[str]:
    """The result codes that the product names in its sources: those it gives itself, and those it makes of acquirers'
    and banks' own codes. Of chargebacks all, since files bring any."""
    texts = [path.read_text(encoding="utf-8") for part in _PARTS for path in (ROOT / part).rglob("*.py")]
    named = {code for text in texts for code in _CODE.findall(text)} & RESULT_CODES.keys()
    return named | {code for code in RESULT_CODES if is_chargeback(code)}


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_result_code_that_the_product_gives_has_its_words(language: str) -> None:
    codes = codes_of_sources()
    assert len(codes) > 250
    known = catalogue(language).keys()
    assert sorted(code for code in codes if RESULT_CODES[code].description not in known) == []


def test_a_result_is_described_in_the_readers_language_and_for_the_api_in_english() -> None:
    with translation.override("de"):
        assert describe_result("800.100.155") == "Abgelehnt: Betrag übersteigt den verfügbaren Rahmen"
        assert describe_result("000.100.277") == "Rückbuchung: ohne Angabe von Gründen", "one that the table lacks"
        assert build_result("800.100.155")["description"] == "Declined: amount is over the available credit"
    assert describe_result("T2-17") == "T2-17"
    assert describe_result("") == ""

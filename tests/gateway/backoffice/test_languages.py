"""The back office speaks English and German."""

from __future__ import annotations

import ast
import gettext
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.office import signed_in

ROOT = Path(__file__).parents[3]
WORDS = ROOT / "config" / "locale" / "de" / "LC_MESSAGES"
_ENTRY = re.compile(
    r'msgid (?P<id>"(?:[^"\\]|\\.)*")\n(?:msgid_plural "(?:[^"\\]|\\.)*"\n)?'
    r'msgstr(?:\[0\])? (?P<text>"(?:[^"\\]|\\.)*")'
)


def written() -> dict[str, str]:
    """English → German, as the .po file has it."""
    text = (WORDS / "django.po").read_text(encoding="utf-8")
    return {ast.literal_eval(found["id"]): ast.literal_eval(found["text"]) for found in _ENTRY.finditer(text)} | {}


def test_the_compiled_words_are_those_of_the_file() -> None:
    """A clone without gettext speaks German too: the compiled file is kept, and equal."""
    with (WORDS / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    words = {english: german for english, german in written().items() if english}
    assert len(words) > 250
    plural = re.findall(r'msgid ("(?:[^"\\]|\\.)*")\nmsgid_plural', (WORDS / "django.po").read_text(encoding="utf-8"))
    plurals = {ast.literal_eval(each) for each in plural}
    for english, german in words.items():
        found = compiled.ngettext(english, english, 1) if english in plurals else compiled.gettext(english)
        assert found == german, english


def test_every_word_has_its_german() -> None:
    """In English and German at least. Placeholders are the same."""
    holes = re.compile(r"%\([a-z_]+\)[sd]|%[sd]")
    for english, german in written().items():
        if english:
            assert german, english
            assert sorted(holes.findall(english)) == sorted(holes.findall(german)), english


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


def test_names_of_fields_are_kept_as_people_write_them_in_english() -> None:
    """The compiled words are those of the file: "IP address" for the column ip, in every clone."""
    folder = ROOT / "config" / "locale" / "en" / "LC_MESSAGES"
    text = (folder / "django.po").read_text(encoding="utf-8")
    words = {ast.literal_eval(found["id"]): ast.literal_eval(found["text"]) for found in _ENTRY.finditer(text)}
    with (folder / "django.mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert words.pop("", None) is not None
    assert {name: compiled.gettext(name) for name in words} == words
    assert words["ip"] == "IP address"

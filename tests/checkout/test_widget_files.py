"""The widget's committed files: built from their sources as they stand, in 25 complete languages.

Source: Part A, What the service does, 8 and 10; decisions, section 7.
"""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from django.core.management import call_command

from checkout.public import own_hash
from checkout.widget import build
from gateway.languages import LOCALES

FOLDER = build.HERE / "locales"
PLACEHOLDER = re.compile(r"\{\w+\}")
# Words that are the same in English: by locale, the keys.
SAME_WORDS = {
    "iban": set(LOCALES),
    "total": {"es", "fr", "pt", "ro"},
    "card": {"ro"},
    "postcode": {"nl"},
    "page.code": {"de", "fr", "nl"},
}


def texts(locale: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FOLDER / f"{locale}.json").read_text(encoding="utf-8"))
    return found


def test_the_committed_files_are_what_the_sources_give() -> None:
    """Same sources, same bytes: a page's integrity attribute holds."""
    call_command("widget_build", "--check")
    assert build.build() == build.build()


def test_releases_are_named_by_their_hash() -> None:
    """A page's hash leads to the very bytes it is of."""
    for path in build.BUILDS.glob("*.js"):
        assert hashlib.sha384(path.read_bytes()).hexdigest() == path.stem


def test_the_frame_s_policy_lets_its_own_script_and_style_run() -> None:
    """Two inline blocks, two hashes; nothing else is in the document."""
    document = build.build().frame.decode()
    assert own_hash(document, "script") != own_hash(document, "style")
    assert document.count("<script") == document.count("<style") == 1
    assert not re.search(r"\s(on\w+|style|src|href)=", document.partition("<script>")[0])


def test_the_script_asks_nobody_else() -> None:
    """A8.11, P12: no third party: no address but the one of SVG's names stands in it."""
    found = set(re.findall(r"https?://[a-z0-9.]+", build.build().script.decode()))
    assert found == {"http://www.w3.org"}
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", build.build().script.decode()
    )


def test_there_are_25_languages() -> None:
    """A8.8, and no file beside them."""
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(LOCALES)
    assert len(LOCALES) == 25


@pytest.mark.parametrize("locale", LOCALES)
def test_every_language_is_complete(locale: str) -> None:
    """A8.8: every key, in order, no English left, the same placeholders, no stray space."""
    english, own = texts("en"), texts(locale)
    assert list(own) == list(english)
    for key, text in own.items():
        assert text.strip() == text, key
        assert text, key
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(english[key])), key
        if locale != "en":
            assert text != english[key] or locale in SAME_WORDS.get(key, ()), key


def test_every_text_that_the_script_asks_for_exists() -> None:
    """A key that nobody wrote would show as itself."""
    source = "\n".join((build.SOURCES / f"{name}.js").read_text(encoding="utf-8") for name in build.ORDER)
    asked = set(re.findall(r"""\bt\("([A-Za-z.]+)"[,)]""", source))
    asked |= set(
        re.findall(r'"((?:declined|card|expiry|iban|account|field)\w*(?:Error|Missing|Brand|Past|Bank))"', source)
    )
    assert len(asked) > 60
    assert asked <= set(texts("en"))


VENDORS = re.compile(
    r"(apple|google|samsung)[ _-]?pay|pay ?pal|amazon|klarna|oppwa|aciworldwide|hyperpay|peach ?payments", re.IGNORECASE
)


def test_the_script_names_wallets_by_number_and_nobody_s_product() -> None:
    """A0.1: widgetOptions is the options' name, wpwlOptions its alias (decisions, section 7)."""
    script = (build.HERE / "dist" / "paymentWidgets.js").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", script))
    assert {"widgetOptions", "wpwlOptions"} <= words
    assert {"wallet1", "wallet2", "wallet3"} <= {word.lower() for word in words}
    shown = script + "".join((FOLDER / f"{locale}.json").read_text(encoding="utf-8") for locale in LOCALES)
    assert VENDORS.search(shown) is None

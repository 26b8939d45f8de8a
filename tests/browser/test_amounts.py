"""Amounts in 25 languages: pages and mails of the server write them as the form's browser does."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from gateway.core import languages
from gateway.core.local_amounts import AMOUNT_FORMATS_FILE, format_local_amount
from gateway.core.money import CURRENCY_CODES, currency_exponent

pytestmark = pytest.mark.xdist_group("browser")

AMOUNTS = ("0.50", "1.00", "12.34", "999.00", "1234.56", "1000.00", "12345.67", "1234567.89")
# As the form does it (checkout/widget/src/texts.js): decimals that an amount has are never rounded away.
WRITTEN = """([tags, currencies, amounts]) => tags.map((tag) => currencies.map((currency) => amounts.map((amount) => {
  const form = { style: "currency", currency };
  let written = new Intl.NumberFormat(tag, form);
  if (amount % 1 && written.resolvedOptions().maximumFractionDigits < 2 && !WHOLE.includes(currency)) {
    written = new Intl.NumberFormat(tag, { ...form, minimumFractionDigits: 2 });
  }
  return written.format(amount);
})))"""
PARTS = """([tags, currencies]) => tags.map((tag) => currencies.map((currency) => {
  const form = new Intl.NumberFormat(tag, { style: "currency", currency });
  return form.formatToParts(1234567).map(({ type, value }) => [type, value]);
}))"""
DIGITS = """(currencies) => currencies.map((currency) =>
  new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits)"""
GROUPED = """(tags) => tags.map((tag) => new Intl.NumberFormat(tag).format(1234) !== "1234")"""
CURRENCIES = sorted(CURRENCY_CODES)
TAGS = [f"{languages.iso_language_code(code)}-u-nu-latn" for code in languages.LANGUAGE_CODES]


@pytest.fixture
def page(chromium: Browser) -> Any:
    page = chromium.new_page()
    yield page
    page.close()


def read_formats(page: Page) -> dict[str, Any]:
    """The table as this Chromium has it."""
    digits = dict(zip(CURRENCIES, page.evaluate(DIGITS, CURRENCIES), strict=True))
    grouped = page.evaluate(GROUPED, TAGS)
    forms = {}
    for code, rows, four in zip(
        languages.LANGUAGE_CODES, page.evaluate(PARTS, [TAGS, CURRENCIES]), grouped, strict=True
    ):
        symbols = {currency: read_symbol(parts) for currency, parts in zip(CURRENCIES, rows, strict=True)}
        euro = rows[CURRENCIES.index("EUR")]
        forms[code] = {
            "pattern": read_pattern(euro),
            "decimal": next(value for kind, value in euro if kind == "decimal"),
            "group": next(value for kind, value in euro if kind == "group"),
            "groupsFrom": 4 if four else 5,
            "symbols": {currency: symbol for currency, symbol in symbols.items() if symbol != currency},
        }
    whole = [currency for currency in CURRENCIES if digits[currency] == 0 != currency_exponent(currency)]
    return {"whole": whole, "languages": forms}


def read_symbol(parts: list[list[str]]) -> str:
    """With the mark of its direction, which follows some of the Arabic ones."""
    at = next(at for at, (kind, _) in enumerate(parts) if kind == "currency")
    after = parts[at + 1][1] if at + 1 < len(parts) and parts[at + 1][0] == "literal" else ""
    return parts[at][1] + (after if after == "\u200f" else "")


def read_pattern(parts: list[list[str]]) -> str:
    number = ("integer", "group", "decimal", "fraction")
    marked = ["#" if kind in number else "¤" if kind == "currency" else value for kind, value in parts]
    return "".join(one for at, one in enumerate(marked) if one != "#" or marked[at - 1] != "#" or at == 0)


def test_the_table_of_amounts_is_the_browsers(page: Page) -> None:
    """Unicode changes symbols now and then: UPDATE_SNAPSHOTS=1 writes the table anew."""
    text = json.dumps(read_formats(page), ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        AMOUNT_FORMATS_FILE.write_text(text, encoding="utf-8")
    assert AMOUNT_FORMATS_FILE.read_text(encoding="utf-8") == text


def test_every_amount_is_written_as_the_form_writes_it(page: Page) -> None:
    """25 languages, every currency, with and without decimals and groups."""
    whole = [currency for currency in CURRENCIES if currency_exponent(currency) == 0]
    script = WRITTEN.replace("WHOLE", json.dumps(whole))
    shown = page.evaluate(script, [TAGS, CURRENCIES, AMOUNTS])
    wrong = [
        (code, currency, amount, ours, theirs)
        for code, rows in zip(languages.LANGUAGE_CODES, shown, strict=True)
        for currency, texts in zip(CURRENCIES, rows, strict=True)
        for amount, theirs in zip(AMOUNTS, texts, strict=True)
        if not (currency in whole and not amount.endswith(".00"))
        and (ours := format_local_amount(Decimal(amount), currency, code)) != theirs
    ]
    assert wrong == []

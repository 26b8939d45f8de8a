"""Amounts with their currency as a language writes them: ``1.234,50 €`` in German, ``€1,234.50`` in English.

Payment pages, receipts and mails write them as the payment form does, whose browser formats them by Unicode CLDR. The
table of that, amount_formats.json, is written and compared by tests/browser/test_amounts.py.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from gateway.core.languages import DEFAULT_LANGUAGE
from gateway.core.money import currency_exponent

AMOUNT_FORMATS_FILE: Final = Path(__file__).with_name("amount_formats.json")
"""``whole``: currencies that are written without decimals unless an amount has some. ``languages``: code → ``pattern``
(¤ for the symbol, # for the number), ``decimal`` and ``group`` separators, ``groupsFrom``: the fewest digits that are
grouped, ``symbols``: currency → symbol, where that is not its code."""
_NO_BREAK_SPACE: Final = "\u00a0"
_CENTS: Final = 2


def format_local_amount(amount: Decimal, currency: str, language: str) -> str:
    """An amount of at least 0 as ``language``, one of LANGUAGE_CODES, writes it, in Western digits."""
    formats = _load_formats()
    form = formats["languages"].get(language) or formats["languages"][DEFAULT_LANGUAGE]
    decimals = currency_exponent(currency)
    if currency in formats["whole"]:
        decimals = 0 if amount == amount.to_integral_value() else _CENTS
    text = f"{amount.quantize(Decimal(1).scaleb(-decimals)):f}"
    whole, _, rest = text.partition(".")
    if len(whole) >= form["groupsFrom"]:
        whole = f"{int(whole):,}".replace(",", form["group"])
    symbol, pattern = form["symbols"].get(currency, currency), form["pattern"]
    if pattern.startswith("¤#") and symbol[-1].isalpha():
        pattern = pattern.replace("¤#", f"¤{_NO_BREAK_SPACE}#")
    found: str = pattern.replace("#", whole + (form["decimal"] + rest if rest else "")).replace("¤", symbol)
    return found


@lru_cache(maxsize=1)
def _load_formats() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(AMOUNT_FORMATS_FILE.read_text(encoding="utf-8"))
    return found

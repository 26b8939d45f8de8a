"""The 25 languages of the form and the shopper's pages: the spec's codes, their ISO names, and the texts of each.

Source: Part A, What the service does, 8; decisions, section 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

LOCALES: Final = (
    "en", "de", "fr", "es", "it", "nl", "dk", "fi", "se", "tr", "ja", "sl", "pt",
    "pl", "cz", "hu", "bg", "ro", "ru", "cn", "gr", "no", "sk", "ar", "ko",
)  # fmt: skip
DEFAULT: Final = "en"
RIGHT_TO_LEFT: Final = frozenset({"ar"})
ISO: Final[Mapping[str, str]] = {"dk": "da", "se": "sv", "cz": "cs", "cn": "zh", "gr": "el", "no": "nb"}
"""Spec code → ISO 639-1, where they differ: what a page's ``lang`` attribute says."""
ALIASES: Final[Mapping[str, str]] = {iso: code for code, iso in ISO.items()} | {"nn": "no"}
_FOLDER: Final = Path(__file__).parents[1] / "checkout" / "widget" / "locales"


def known(text: str) -> str | None:
    """The spec's code for what was asked for (``da``, ``de_AT``, ``zh-CN`` …), None for a language there is not."""
    code = text.replace("_", "-").partition("-")[0].lower()
    code = ALIASES.get(code, code)
    return code if code in LOCALES else None


def of_header(accept_language: str) -> str:
    """The first language of an Accept-Language header that there is; English otherwise. Weights come in order."""
    for part in accept_language[:500].split(","):
        if (code := known(part.partition(";")[0].strip())) is not None:
            return code
    return DEFAULT


def iso(code: str) -> str:
    return ISO.get(code, code)


def direction(code: str) -> str:
    return "rtl" if code in RIGHT_TO_LEFT else "ltr"


@lru_cache(maxsize=len(LOCALES))
def texts(code: str) -> Mapping[str, str]:
    """Every text of a language, by key; English ones where a language has none."""
    found = _read(code)
    return {**texts(DEFAULT), **found} if code != DEFAULT else found


@lru_cache(maxsize=len(LOCALES))
def form_texts(code: str) -> Mapping[str, str]:
    """The texts of a form, without those of pages (``page.``), mails (``mail.``) and the simulated bank (``bank.``)."""
    return {key: text for key, text in texts(code).items() if not key.startswith(("page.", "mail.", "bank."))}


@lru_cache(maxsize=len(LOCALES))
def page_texts(code: str) -> Mapping[str, str]:
    """The texts of the shopper's pages by key, without ``page.``; the form's beside them."""
    return {key.removeprefix("page."): text for key, text in texts(code).items()}


@lru_cache(maxsize=len(LOCALES))
def mail_texts(code: str) -> Mapping[str, str]:
    """The texts of mails by key, without ``mail.``; those of pages and forms beside them."""
    own = {key.removeprefix("mail."): text for key, text in texts(code).items() if key.startswith("mail.")}
    return {**page_texts(code), **own}


@lru_cache(maxsize=len(LOCALES))
def bank_texts(code: str) -> Mapping[str, str]:
    """The texts of the simulated bank's and wallets' pages by key, without ``bank.``."""
    return {key.removeprefix("bank."): text for key, text in texts(code).items() if key.startswith("bank.")}


def _read(code: str) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads((_FOLDER / f"{code}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found

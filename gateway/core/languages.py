"""The 25 languages of the payment form and the shopper pages: the spec's codes, their ISO 639-1 codes, and the texts.

Source: Part A, What the service does, 8; rulings, section 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

LANGUAGE_CODES: Final = (
    "en", "de", "fr", "es", "it", "nl", "dk", "fi", "se", "tr", "ja", "sl", "pt",
    "pl", "cz", "hu", "bg", "ro", "ru", "cn", "gr", "no", "sk", "ar", "ko",
)  # fmt: skip
DEFAULT_LANGUAGE: Final = "en"
RIGHT_TO_LEFT_LANGUAGES: Final = frozenset({"ar"})
ISO_LANGUAGE_CODES: Final[Mapping[str, str]] = {"dk": "da", "se": "sv", "cz": "cs", "cn": "zh", "gr": "el", "no": "nb"}
"""Spec code → ISO 639-1 code, where they differ; used in a page's ``lang`` attribute."""
LANGUAGE_ALIASES: Final[Mapping[str, str]] = {iso: code for code, iso in ISO_LANGUAGE_CODES.items()} | {"nn": "no"}
TEXTS_DIR: Final = Path(__file__).with_name("locales")
"""One JSON file for each language, key → text."""


def resolve_language(text: str) -> str | None:
    """The spec's code for a requested language (``da``, ``de_AT``, ``zh-CN`` …); None if it is not supported."""
    code = text.replace("_", "-").partition("-")[0].lower()
    code = LANGUAGE_ALIASES.get(code, code)
    return code if code in LANGUAGE_CODES else None


def negotiate_language(accept_language: str) -> str:
    """The first supported language of an Accept-Language header, else English. Weights are expected in order."""
    for part in accept_language[:500].split(","):
        if (code := resolve_language(part.partition(";")[0].strip())) is not None:
            return code
    return DEFAULT_LANGUAGE


def iso_language_code(code: str) -> str:
    """The ISO 639-1 code of the specification's language code."""
    return ISO_LANGUAGE_CODES.get(code, code)


def text_direction(code: str) -> str:
    """``rtl`` or ``ltr``, for a page's ``dir`` attribute."""
    return "rtl" if code in RIGHT_TO_LEFT_LANGUAGES else "ltr"


@lru_cache(maxsize=len(LANGUAGE_CODES))
def load_texts(code: str) -> Mapping[str, str]:
    """Every text of a language, by key; English where a text is missing."""
    texts = _read_texts(code)
    return {**load_texts(DEFAULT_LANGUAGE), **texts} if code != DEFAULT_LANGUAGE else texts


@lru_cache(maxsize=len(LANGUAGE_CODES))
def load_form_texts(code: str) -> Mapping[str, str]:
    """The texts of a form, without those of pages (``page.``), mails (``mail.``) and the simulated bank (``bank.``)."""
    return {key: text for key, text in load_texts(code).items() if not key.startswith(("page.", "mail.", "bank."))}


@lru_cache(maxsize=len(LANGUAGE_CODES))
def load_page_texts(code: str) -> Mapping[str, str]:
    """The texts of the shopper pages by key, without ``page.``, and those of the form."""
    return {key.removeprefix("page."): text for key, text in load_texts(code).items()}


@lru_cache(maxsize=len(LANGUAGE_CODES))
def load_mail_texts(code: str) -> Mapping[str, str]:
    """The texts of mails by key, without ``mail.``, and those of pages and form."""
    own = {key.removeprefix("mail."): text for key, text in load_texts(code).items() if key.startswith("mail.")}
    return {**load_page_texts(code), **own}


@lru_cache(maxsize=len(LANGUAGE_CODES))
def load_bank_texts(code: str) -> Mapping[str, str]:
    """The texts of the simulated bank's and wallets' pages by key, without ``bank.``."""
    return {key.removeprefix("bank."): text for key, text in load_texts(code).items() if key.startswith("bank.")}


def _read_texts(code: str) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads((TEXTS_DIR / f"{code}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found

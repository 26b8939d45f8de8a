"""32-bit search keys of payments for the back office: by e-mail, names, and the last four characters of an account.

A key hashes merchant and value; a partial index on it finds the few candidates, which the reader compares with the
value itself. An index on the value would be five times as large, and one on an expression of ``answer`` would make
every completion rewrite all indexes of the table.

Names have a key per word, so that they are found whether or not the names themselves are still kept or sealed. Nothing
is compared then: of a merchant's payments one in 350 million is found by a word that is not among its names (twelve
keys of 32 bits). With the keys of many merchants in one query it would be as many times more; match_own_key leaves only
the keys of a row's own merchant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from hashlib import md5
from typing import Final
from uuid import UUID

from django.db.models import F, Func, IntegerField, TextField, Value

from gateway.core.secret import Secret, reveal_text

EMAIL_KEY_KIND, LAST4_KEY_KIND, NAME_KEY_KIND = "email", "account", "name"
ACCOUNT_SUFFIX_CHARS: Final = 4
"""Characters of an account that are printed on receipts and statements."""
MAX_NAME_KEYS: Final = 12
"""Words of a payment's names that can be searched."""
MIN_NAME_WORD_CHARS: Final = 2
NAME_PARAMETERS: Final = (
    "customer.givenName", "customer.middleName", "customer.surname", "customer.companyName", "card.holder",
    "bankAccount.holder",
)  # fmt: skip
"""Parameters with names of a shopper or a holder."""
_NAME_WORD: Final = re.compile(r"[^\W\d_]+")
_GERMAN: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "æ": "ae", "å": "aa"})


def build_email_key(merchant: UUID, email: str) -> int:
    """The search key of an e-mail address, case-insensitive."""
    return _hash_key(merchant, EMAIL_KEY_KIND, email.lower())


def build_last4_key(merchant: UUID, account: str | Secret) -> int:
    """The search key of an account. ``account``: the whole account, or its last four characters."""
    return _hash_key(merchant, LAST4_KEY_KIND, reveal_text(account)[-ACCOUNT_SUFFIX_CHARS:])


def list_name_words(texts: Iterable[str]) -> list[str]:
    """The words of names as they are compared: lower case, without accents (Müller, Mueller and MÜLLER are one), each
    once, at most MAX_NAME_KEYS."""
    found: dict[str, None] = {}
    for text in texts:
        plain = text.lower() if text.isascii() else _strip_accents(text)
        found |= dict.fromkeys([word for word in _NAME_WORD.findall(plain) if len(word) >= MIN_NAME_WORD_CHARS])
    return list(found)[:MAX_NAME_KEYS]


def _strip_accents(text: str) -> str:
    plain = unicodedata.normalize("NFC", text).casefold().translate(_GERMAN)
    return "".join(one for one in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(one))


def match_own_key(kind: str, value: str) -> Func:
    """The search key of a value at a row's own merchant, as an expression on payments. One query asks for the keys of
    all merchants that are searched, and another merchant's key may be that of another value here."""
    text = Value(f":{kind}:{value}", output_field=TextField())
    sql = "('x' || left(md5(replace(%(expressions)s), 8))::bit(32)::int"
    return Func(F("merchant_id"), text, template=sql, arg_joiner="::text, '-', '') || ", output_field=IntegerField())


def build_name_keys(merchant: UUID, texts: Iterable[str]) -> list[int]:
    """The search keys of the words of names."""
    return [_hash_key(merchant, NAME_KEY_KIND, word) for word in list_name_words(texts)]


def _hash_key(merchant: UUID, kind: str, value: str) -> int:
    text = f"{merchant.hex}:{kind}:{value}".encode()
    return int.from_bytes(md5(text, usedforsecurity=False).digest()[:4], "big", signed=True)

"""32-bit search keys of payments for the back office: by e-mail, and by the last four characters of an account.

A key hashes merchant and value; a partial index on it finds the few candidates, which the reader compares with the
value itself. An index on the value would be five times as large, and one on an expression of ``answer`` would make
every completion rewrite all indexes of the table.
"""

from __future__ import annotations

from hashlib import md5
from typing import Final
from uuid import UUID

from gateway.core.secret import Secret

EMAIL_KEY_KIND, LAST4_KEY_KIND = "email", "account"
ACCOUNT_SUFFIX_CHARS: Final = 4
"""Characters of an account that are printed on receipts and statements."""


def build_email_key(merchant: UUID, email: str) -> int:
    """The search key of an e-mail address, case-insensitive."""
    return _hash_key(merchant, EMAIL_KEY_KIND, email.lower())


def build_last4_key(merchant: UUID, account: str | Secret) -> int:
    """The search key of an account. ``account``: the whole account, or its last four characters."""
    return _hash_key(
        merchant,
        LAST4_KEY_KIND,
        (account.reveal() if isinstance(account, Secret) else account)[-ACCOUNT_SUFFIX_CHARS:],
    )


def _hash_key(merchant: UUID, kind: str, value: str) -> int:
    text = f"{merchant.hex}:{kind}:{value}".encode()
    return int.from_bytes(md5(text, usedforsecurity=False).digest()[:4], "big", signed=True)

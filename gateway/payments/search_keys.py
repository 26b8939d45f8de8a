"""Small keys that clerks find payments by: the e-mail, and the last four characters of an account.

A key is 32 bits of the merchant and the value, so that one number in a partial index finds the few payments of one
merchant that may be meant; the reader compares them with the value itself. An index on the value would be five times
as large, and one on an expression of ``answer`` would make every payment's end rewrite every index of the table.
"""

from __future__ import annotations

from hashlib import md5
from typing import Final
from uuid import UUID

from gateway.core.secret import Secret

EMAIL_KEY_KIND, ACCOUNT_KEY_KIND = "email", "account"
ACCOUNT_SUFFIX_CHARS: Final = 4
"""Characters of an account that people read off a card or a statement."""


def build_email_key(merchant: UUID, email: str) -> int:
    return _key(merchant, EMAIL_KEY_KIND, email.lower())


def build_account_key(merchant: UUID, account: str | Secret) -> int:
    """``account``: a whole account, or its last four characters."""
    return _key(
        merchant,
        ACCOUNT_KEY_KIND,
        (account.reveal() if isinstance(account, Secret) else account)[-ACCOUNT_SUFFIX_CHARS:],
    )


def _key(merchant: UUID, kind: str, value: str) -> int:
    text = f"{merchant.hex}:{kind}:{value}".encode()
    return int.from_bytes(md5(text, usedforsecurity=False).digest()[:4], "big", signed=True)

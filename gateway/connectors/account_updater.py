"""The account updater port: what the card networks' updater is asked about a stored card, and how it answers.

An updater receives values, never models. It is asked in files, and in real time before a payment, which waits for it:
such a call has to end within ``deadline_s``, with an answer or with AccountUpdaterUnavailableError. Layout and
protection of the files: gateway.connectors.account_update_files. The configured updater is loaded by
gateway.connectors.account_updaters. Source: docs/decisions/0135; docs/account-updater.md.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from gateway.core.secret import Secret


class UpdaterAnswer(enum.StrEnum):
    """What an updater says of a card. CONTACT_HOLDER: the issuer tells nothing, the holder has to be asked. UNKNOWN:
    its issuer takes no part."""

    NO_CHANGE = "NO_CHANGE"
    NEW_NUMBER = "NEW_NUMBER"
    NEW_EXPIRY = "NEW_EXPIRY"
    CLOSED = "CLOSED"
    CONTACT_HOLDER = "CONTACT_HOLDER"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardInquiry:
    """A question about one stored card. ``key``: the question's id; ``entity``: the channel's entityId, by which the
    networks know the merchant; ``expiry_year``: four digits."""

    key: UUID
    entity: str
    brand: str
    number: Secret
    expiry_month: str
    expiry_year: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardUpdate:
    """The answer about one card. ``number``: of NEW_NUMBER; ``expiry_month``, ``expiry_year``: of NEW_NUMBER and
    NEW_EXPIRY."""

    answer: UpdaterAnswer
    number: Secret | None = None
    expiry_month: str = ""
    expiry_year: str = ""


class AccountUpdaterUnavailableError(Exception):
    """The updater gave no answer, or one that means nothing; it may be asked again."""


class AccountUpdater(Protocol):
    """The interface of an account updater. All calls raise AccountUpdaterUnavailableError."""

    def get_file_key(self) -> Secret:
        """The key that both sides encrypt files with: 32 bytes, base64url."""
        ...

    def ask(self, inquiry: CardInquiry, *, deadline_s: float) -> CardUpdate:
        """Ask about one card in real time."""
        ...

    def send_file(self, name: str, content: bytes) -> None:
        """Hand over a file of questions. The same ``name`` again is the same file, and is answered once."""
        ...

    def fetch_answer(self, name: str, content: bytes) -> bytes | None:
        """The answer to the file ``name``, which was sent with ``content``; None while there is none. Asked again after
        it was read, it is the same."""
        ...

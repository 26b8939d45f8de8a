"""The token service port: what a card network's token service is asked for, and how it answers.

A service receives values, never models. A payment waits for its cryptogram, so a call has to end within seconds, with
an answer or with TokenServiceUnavailableError. The configured one is loaded by gateway.connectors.token_services.
Source: EMV Payment Tokenisation Specification, Technical Framework; docs/decisions/0126.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from gateway.connectors.means import Card
from gateway.core.money import Money
from gateway.core.secret import Secret


class TokenEvent(enum.StrEnum):
    """An event in a token's life, as its network reports it. REPLACED: it has a new expiry date."""

    SUSPENDED = "SUSPENDED"
    RESUMED = "RESUMED"
    REPLACED = "REPLACED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionRequest:
    """A request for the token of a stored card. ``key``: the same in a repeated request, which gets the same token."""

    key: UUID
    card: Card
    brand: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionedToken:
    """A token as its service gives it. ``reference``: the service's id of it, up to 64 characters; ``requestor``: the
    token requestor id, eleven digits, empty where acquirers need none."""

    reference: str
    number: Secret
    expiry_month: str
    expiry_year: str
    requestor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CryptogramRequest:
    """A request for the proof of one use of a token. ``payment``, ``money``: what it is used for."""

    reference: str
    number: Secret
    payment: UUID
    money: Money


class TokenServiceUnavailableError(Exception):
    """The service gave no answer, or one that means nothing; it may be asked again."""


class TokenRefusedError(Exception):
    """The network gives no token for this card."""


class TokenNotUsableError(Exception):
    """The network gives no cryptogram, because the token is suspended or deleted: ``event``."""

    def __init__(self, event: TokenEvent) -> None:
        super().__init__(str(event))
        self.event = event


class TokenService(Protocol):
    """The interface of a token service. All calls raise TokenServiceUnavailableError."""

    def provision(self, request: ProvisionRequest) -> ProvisionedToken:
        """The token of a card. Raises TokenRefusedError."""
        ...

    def fetch_cryptogram(self, request: CryptogramRequest) -> Secret:
        """The cryptogram for one payment, base64 of 20 bytes. Raises TokenNotUsableError."""
        ...

    def delete(self, reference: str) -> None:
        """Delete a token at the network. A token that is gone already is no error."""
        ...

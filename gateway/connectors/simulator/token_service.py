"""The simulated token service: network tokens of test cards, by rules instead of a store.

A token has the first two digits of its card, SIMULATED_MARK, and digits by which the simulator and the stub acquirer
find the card again: for a card of a simulated issuer its own digits, for a published test card a hash that a table
resolves. Any other card's token is approved like any other number. A cryptogram is a hash of token and payment: that of
another payment does not verify. How a published card's token behaves is its ``tokenization`` (cards.py). Pure.
Source: docs/decisions/0126.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Final

from gateway.connectors.simulator.accounts import NOT_VERIFIED, TOKEN_EXPIRED, ClearAccount
from gateway.connectors.simulator.cards import SIMULATED_CARDS, SimulatedCard
from gateway.connectors.simulator.issuers import SIMULATED_ISSUERS, find_simulated_issuer
from gateway.connectors.token_service import (
    CryptogramRequest,
    ProvisionedToken,
    ProvisionRequest,
    TokenEvent,
    TokenNotUsableError,
    TokenRefusedError,
    TokenServiceUnavailableError,
)
from gateway.core.luhn import compute_check_digit, is_luhn_valid
from gateway.core.secret import Secret

SIMULATED_MARK: Final = "89"
"""Third and fourth digit of a simulated token."""
SIMULATED_REQUESTOR: Final = "40010030273"
TOKENIZED_BRANDS: Final = frozenset({"VISA", "VISADEBIT", "MASTER", "MASTERDEBIT", "AMEX"})
TOKEN_STATE_REFUSED: Final = "800.100.307"  # noqa: S105 - a result code
TOKEN_YEARS: Final = 3
"""A token is valid so many years longer than its card."""
_ANY_CARD: Final = "00"
_CRYPTOGRAM_BYTES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizedCard:
    """The card behind a simulated token. ``number``: '' for a card of no table, which is approved; ``card``: its row
    on the test data page, None for any other."""

    number: str = ""
    card: SimulatedCard | None = None


def build_simulated_token(number: str) -> str:
    """The token of a card number without spaces."""
    if find_simulated_issuer(number) is not None:
        body = f"{number[:2]}{SIMULATED_MARK}{number[4:-1]}"
    else:
        digits = len(number) - 7
        hashed = int.from_bytes(hashlib.sha256(number.encode()).digest()[:8], "big") % 10**digits
        body = f"{number[:2]}{SIMULATED_MARK}{_ANY_CARD}{hashed:0{digits}d}"
    return body + compute_check_digit(body)


def find_tokenized_card(token: str) -> TokenizedCard | None:
    """The card behind a token of this service; None for any other number."""
    if token in _PUBLISHED:
        return TokenizedCard(number=_PUBLISHED[token].number, card=_PUBLISHED[token])
    if token[2:4] != SIMULATED_MARK or not is_luhn_valid(token):
        return None
    if token[:6] in _ISSUERS:
        body = f"{_ISSUERS[token[:6]]}{token[6:-1]}"
        return TokenizedCard(number=body + compute_check_digit(body))
    return TokenizedCard() if token[4:6] == _ANY_CARD else None


def build_simulated_cryptogram(token: str, payment: str) -> str:
    """The cryptogram of a token for a payment, whose id has 32 hexadecimal digits."""
    digest = hashlib.blake2b(f"{token}|{payment}".encode(), digest_size=_CRYPTOGRAM_BYTES).digest()
    return base64.b64encode(digest).decode()


def find_token_decline(found: TokenizedCard, account: ClearAccount, payment: str, month: str) -> tuple[str, str] | None:
    """Why the issuer declines a token, not its card: result code and response code; None where it does not.

    ``found``: the card behind it; ``account``: the token as it was sent, without a cryptogram for what the merchant
    initiates; ``payment``: the payment's id, 32 hexadecimal digits; ``month``: the present one, yyyy-MM.
    """
    if account.expiry and account.expiry < month:
        return TOKEN_EXPIRED, "54"
    if account.cryptogram and account.cryptogram != build_simulated_cryptogram(account.account, payment):
        return NOT_VERIFIED, "N7"
    if found.card is not None and found.card.tokenization == "declined":
        return TOKEN_STATE_REFUSED, "N7"
    return None


class SimulatedTokenService:
    """The token service of the test environment. It has no state: later events of a token are made by
    POST /v1/test/network-tokens/{id}."""

    def provision(self, request: ProvisionRequest) -> ProvisionedToken:
        """A token, but for cards of other networks and the published card without one."""
        number = request.card.number.reveal()
        token = build_simulated_token(number)
        known = find_tokenized_card(token)
        if request.brand not in TOKENIZED_BRANDS or (
            known is not None and known.card is not None and known.card.tokenization == "refused"
        ):
            raise TokenRefusedError("the simulated network gives no token for this card")
        return ProvisionedToken(
            reference=f"SIMT{request.key.hex.upper()}",
            number=Secret(token),
            expiry_month=request.card.expiry_month or "12",
            expiry_year=str(int(request.card.expiry_year or "2030") + TOKEN_YEARS),
            requestor=SIMULATED_REQUESTOR,
        )

    def fetch_cryptogram(self, request: CryptogramRequest) -> Secret:
        """The cryptogram; the published cards with a silent service or a suspended token get none."""
        token = request.number.reveal()
        known = find_tokenized_card(token)
        behaviour = known.card.tokenization if known is not None and known.card is not None else ""
        if behaviour == "silent":
            raise TokenServiceUnavailableError("the simulated token service gives no answer")
        if behaviour == "suspended":
            raise TokenNotUsableError(TokenEvent.SUSPENDED)
        return Secret(build_simulated_cryptogram(token, request.payment.hex))

    def delete(self, reference: str) -> None:
        """Nothing is stored, so nothing is deleted."""


SIMULATED_TOKEN_SERVICE: Final = SimulatedTokenService()

_PUBLISHED: Final = {build_simulated_token(card.number): card for card in SIMULATED_CARDS}
_ISSUERS: Final = {f"{one.bin[:2]}{SIMULATED_MARK}{one.bin[4:]}": one.bin for one in SIMULATED_ISSUERS}

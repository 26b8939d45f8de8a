"""Test data page: the simulator's own tables. Source: Part A, What the service does, 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Final

from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.connectors.simulator import orders
from gateway.connectors.simulator.accounts import (
    BANK_ACCOUNTS,
    CONFIRMED_LATER,
    GIFT_CARDS,
    TOKEN_ACCOUNTS,
    VIRTUAL_ACCOUNTS,
    SimulatedAccount,
)
from gateway.connectors.simulator.acs import ONE_TIME_CODE
from gateway.connectors.simulator.cards import (
    ADVICE_MEANING,
    AVS_BY_POSTCODE,
    AVS_MEANING,
    CVV_ANSWERS,
    CVV_MEANING,
    GUESSED_BIN,
    GUESSED_CODE,
    INVALID_NUMBER,
    SIMULATED_CARDS,
    SIMULATED_SUCCESS,
    SimulatedCard,
)
from gateway.connectors.simulator.token_service import TOKEN_STATE_REFUSED
from gateway.core import advice, brands, result_codes
from gateway.core.result_codes import OUTCOME_UNKNOWN_CODE, SHOPPER_TIMEOUT_CODE, ResultFamily
from gateway.wallets.formats import WALLET_FORMATS

THREEDS_OUTCOME_TEXTS: Final = {
    "frictionless": "authenticated without a challenge",
    "attempt": "attempted, not authenticated",
    "unavailable": "authentication is not available",
    "not_enrolled": "the card is not enrolled",
    "challenge_pass": "a challenge that can be passed",
    "challenge_fail": "a challenge that fails",
    "method": "the issuer's method page in the browser, then authenticated without a challenge",
    "method_challenge": "the issuer's method page in the browser, then a challenge that can be passed",
    "rejected": "rejected by the issuer",
    "when_mandated": "authentication is not available, unless a challenge is asked for: that can be passed",
    "exempted": "an exemption is accepted (status I), without one a challenge that can be passed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardGroup:
    """Test cards with a common purpose."""

    anchor: str
    title: str
    about: str
    cards: tuple[SimulatedCard, ...]


def _family(*families: ResultFamily) -> Callable[[SimulatedCard], bool]:
    return lambda card: result_codes.find_result_family(card.code) in families


_GROUPS: Final[tuple[tuple[str, str, str, Callable[[SimulatedCard], bool]], ...]] = (
    ("3ds", "3-D Secure",
     "Approved as they stand. On a channel with 3-D Secure the authentication goes as told; other cards authenticate "
     f"without a challenge. The code of every challenge is {ONE_TIME_CODE}.",
     lambda card: card.threeds is not None and card.code != SOFT_DECLINE),
    ("partial", "Approved for a part", "amount in the answer is what was approved.",
     lambda card: card.approved_share != 1),
    ("tokens", "Network tokens of stored cards",
     "Approved as they stand. Stored on a channel with networkTokens, each goes its own way: the network gives no "
     "token, its service gives no cryptogram, it is suspended, or the issuer declines it with "
     f"{TOKEN_STATE_REFUSED}; the card number is sent then. Tokens of all other VISA, MASTER and AMEX cards work.",
     lambda card: bool(card.tokenization)),
    ("updates", "Stored cards that are renewed or closed",
     "Approved as they stand. Stored on a channel with accountUpdater, each gets the answer of its title: before the "
     "merchant's next payment with it, or by file within hours. Of all other cards nothing has changed.",
     lambda card: bool(card.updating)),
    ("approved", "Approved",
     f"Every other number with a right check digit is approved, too, but those that begin with {GUESSED_BIN}: they are "
     f"declined with {GUESSED_CODE}, to try the card-testing guard with, which does not count the cards of this page. "
     "Cards of the simulated issuers (docs/market.md) are answered by rate, hour and amount.",
     _family(ResultFamily.SUCCESS)),
    ("review", "Approved, to be looked at", "A success of the family “review”.", _family(ResultFamily.REVIEW)),
    ("refused", "Refused before the acquirer", "The check digit is wrong, so nobody is asked.",
     lambda card: card.code == INVALID_NUMBER),
    ("soft", "Soft decline",
     "The issuer wants the shopper to authenticate, and approves with a proof. Cards that authenticate only if a "
     "challenge is asked for are declined on a channel with 3-D Secure, too; where it answers a soft decline with a "
     f"challenge (code {ONE_TIME_CODE}), they are approved after it.",
     lambda card: card.code == SOFT_DECLINE),
    ("cascade", "A second acquirer after a decline",
     "Declined with 05 and without an advice. With testMode=EXTERNAL, a channel with two accounts at the stub acquirer "
     "and a routing rule that lets declined payments go on (docs/routing.md), the second account is asked, too: "
     "one card is approved there, one is declined again, and the answer to one is lost, which recovery finds approved.",
     lambda card: bool(card.second_acquirer)),
    ("blocked", "Not to be tried again", "The issuer forbids further tries.", _family(ResultFamily.ADVICE_BLOCK)),
    ("silence", "No word from the acquirer", "Errors, timeouts, silence. Read the payment again before you repeat it.",
     lambda card: card.behaviour != "answer"),
    ("declined", "Declined", "The digits after 4000 0 are the end of the result code.", lambda _card: True),
)  # fmt: skip
_ORDER: Final = (
    "approved", "declined", "partial", "review", "3ds", "soft", "cascade", "tokens", "updates", "blocked",
    "silence", "refused",
)  # fmt: skip


@cache
def list_card_groups() -> tuple[CardGroup, ...]:
    """Every card once, in the first group that matches it."""
    found: dict[str, list[SimulatedCard]] = {anchor: [] for anchor, *_ in _GROUPS}
    for card in SIMULATED_CARDS:
        found[next(anchor for anchor, _, _, takes in _GROUPS if takes(card))].append(card)
    groups = {anchor: (title, about) for anchor, title, about, _ in _GROUPS}
    return tuple(
        CardGroup(anchor=anchor, title=groups[anchor][0], about=groups[anchor][1], cards=tuple(found[anchor]))
        for anchor in _ORDER
    )


def render_card_row(card: SimulatedCard) -> dict[str, Any]:
    """One card for the page and for the JSON."""
    mac = card.merchant_advice_code
    return {
        "number": card.number,
        "spaced": card.spaced,
        "brand": card.brand,
        "title": card.title,
        "cvvDigits": get_cvv_length(card.brand),
        "resultCode": card.code,
        "firstResultCode": OUTCOME_UNKNOWN_CODE if card.behaviour == "silence" else card.code,
        "description": result_codes.find_result_code(card.code).description,
        "httpStatus": result_codes.http_status(card.code),
        "approvedShare": str(card.approved_share),
        # A number with a wrong check digit is refused by the gateway: no acquirer is called.
        "acquirerResponse": None if card.code == INVALID_NUMBER else card.acquirer_response or None,
        "merchantAdviceCode": mac,
        "merchantAdvice": ADVICE_MEANING[mac] if mac else None,
        "threeDSecure": THREEDS_OUTCOME_TEXTS[card.threeds] if card.threeds else None,
        "behaviour": card.behaviour,
        "secondAcquirer": card.second_acquirer or None,
        "networkToken": card.tokenization or None,
        "accountUpdater": card.updating or None,
        "next": advice.get_developer_advice(card.code),
    }


def get_cvv_length(brand: str) -> int:
    """Digits of a card's CVV; 3 if the brand has no fixed length."""
    known = brands.CARD_BRANDS.get(brand)
    return max(known.cvv_lengths, default=3) or 3 if known else 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountGroup:
    """Test accounts of one payment means."""

    anchor: str
    title: str
    about: str
    rows: tuple[dict[str, Any], ...]


_ACCOUNT_GROUPS: Final[tuple[tuple[str, str, str, tuple[SimulatedAccount, ...]], ...]] = (
    ("bankAccounts", "Bank accounts",
     "The last nine digits are the result code. Every other account with right check digits is approved.",
     BANK_ACCOUNTS),
    ("tokenAccounts", "Token accounts",
     "489537, the nine digits of the result code, a check digit. Every other token is approved.", TOKEN_ACCOUNTS),
    ("virtualAccounts", "Virtual accounts", "Every other account id is approved.", VIRTUAL_ACCOUNTS),
    ("giftCards", "Gift cards", "Every other number is approved, with any PIN but 0000.", GIFT_CARDS),
)  # fmt: skip


@cache
def list_account_groups() -> tuple[AccountGroup, ...]:
    """Every account that is no card, by payment means."""
    return tuple(
        AccountGroup(anchor=anchor, title=title, about=about, rows=tuple(render_account_row(row) for row in table))
        for anchor, title, about, table in _ACCOUNT_GROUPS
    )


def render_account_row(row: SimulatedAccount) -> dict[str, Any]:
    """One account: the fields to send and the promised result."""
    brand, fields = row.fields["paymentBrand"], dict(row.fields)
    approved = row.balance if row.balance and row.balance < _AMOUNT else None
    return {
        "title": row.title,
        "brand": brand,
        "account": row.account,
        "request": fields,
        "shown": [(name, value) for name, value in fields.items() if name.rpartition(".")[2] in _TELLING],
        "behaviour": row.behaviour,
        **_result(_promised_code(row)),
        "approvedAmount": str(approved) if approved else None,
    }


def _promised_code(row: SimulatedAccount) -> str:
    """A payment whose answer was lost is pending until the acquirer is asked."""
    return OUTCOME_UNKNOWN_CODE if row.behaviour == "silence" else row.code


def _result(code: str) -> dict[str, Any]:
    return {
        "resultCode": code,
        "description": result_codes.find_result_code(code).description,
        "httpStatus": result_codes.http_status(code),
        "next": advice.get_developer_advice(code),
    }


@cache
def list_redirect_rows() -> tuple[dict[str, Any], ...]:
    """Every redirect brand × every decision of the shopper there."""
    return tuple(
        {
            "brand": brand,
            "party": kind.party,
            "outcome": outcome,
            "firstResultCode": kind.pending,
            "request": {"paymentBrand": brand, "shopperResultUrl": "https://shop.example/result"},
            **_result(code),
        }
        for brand, kind in orders.ORDER_KIND_BY_BRAND.items()
        if kind.has_page
        for outcome, code in (
            *((outcome, kind.code(state)) for outcome, state in orders.ORDER_OUTCOMES.items()),
            ("leave", SHOPPER_TIMEOUT_CODE),
        )
    )


@cache
def list_transfer_rows() -> tuple[dict[str, Any], ...]:
    """Payments that wait for a bank transfer, and the effect of POST /v1/test/transfers/{id} on them."""
    debit = next(row for row in BANK_ACCOUNTS if row.code == CONFIRMED_LATER)
    waiting = ((orders.TRANSFER_ORDER, {"paymentBrand": "PREPAYMENT"}), (orders.DEBIT_ORDER, dict(debit.fields)))
    return tuple(
        {
            "brand": request["paymentBrand"],
            "account": request.get("bankAccount.iban"),
            "outcome": outcome,
            "firstResultCode": kind.pending,
            "request": request,
            **_result(code),
        }
        for kind, request in waiting
        for outcome, code in (("arrived", SIMULATED_SUCCESS), ("returned", kind.declined))
    )


_AMOUNT: Final = Decimal("92.00")
"""The amount that the promised results are for: 92.00 EUR."""
_TELLING: Final = ("iban", "number", "bankCode", "accountId", "cryptogram", "dtvc", "pin", "expiryYear", "type")


@cache
def build_test_data() -> dict[str, Any]:
    """All content of the page, as data."""
    return {
        "amount": str(_AMOUNT),
        "currency": "EUR",
        "cards": [
            {"group": group.anchor, **render_card_row(card)} for group in list_card_groups() for card in group.cards
        ],
        **{
            group.anchor: [{name: value for name, value in row.items() if name != "shown"} for row in group.rows]
            for group in list_account_groups()
        },
        "redirects": list(list_redirect_rows()),
        "transfers": list(list_transfer_rows()),
        "cvv": [
            {"cvv": cvv, "cvvResponse": answer, "meaning": CVV_MEANING[answer]} for cvv, answer in CVV_ANSWERS.items()
        ],
        "postcodes": [
            {"postcode": code, "avsResponse": answer, "meaning": AVS_MEANING[answer]}
            for code, answer in AVS_BY_POSTCODE.items()
        ],
        "wallets": [
            {"wallet": wallet, "brand": wallet.upper(), "formats": list(forms)}
            for wallet, forms in WALLET_FORMATS.items()
        ],
    }

"""Test cards: which card, CVV and postcode gives which answer.

One table for the simulator, the test-data page and the tests. A decline card carries its result code in its number:
4000 0155 … answers 800.100.155. Cards of the simulated issuers (issuers.py) are answered by their rates. Other numbers
that pass Luhn are approved, except those of GUESSED_BIN. Pure. Source:
Part A, What the service does, 5 (test modes); Part B, Payment response (avsResponse, cvvResponse, AcquirerResponse,
MerchantAdviceCode).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from types import MappingProxyType
from typing import Final, Literal

from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.connectors.simulator.issuers import IssuerAnswer
from gateway.core.luhn import is_luhn_valid
from gateway.core.money import Money, currency_exponent
from gateway.core.result_codes import is_approved
from gateway.core.secret import Secret, reveal_text

SIMULATED_SUCCESS: Final = "000.100.110"
INVALID_NUMBER: Final = "100.100.101"

ThreeDS = Literal[
    "frictionless",
    "attempt",
    "unavailable",
    "not_enrolled",
    "challenge_pass",
    "challenge_fail",
    "method",
    "method_challenge",
    "rejected",
    "when_mandated",
    "exempted",
]
# "silence": no answer, so the outcome is unknown; "error": the acquirer answers that it is out of order.
SimulatedBehavior = Literal["answer", "silence", "error"]
# What a second acquirer answers after a decline: "": the same; "silence": it approves, and its answer is lost.
SecondAcquirer = Literal["", "approves", "declines", "silence"]
# What becomes of a stored card's network token: the network gives none; its service gives no cryptogram; it is
# suspended; the issuer declines it, and approves the card number.
TokenBehavior = Literal["", "refused", "silent", "suspended", "declined"]
# What the account updater says of a stored card; "silent": nothing.
UpdateBehavior = Literal["", "new number", "new expiry", "closed", "contact holder", "silent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCard:
    """One test card and its answer in the test mode INTERNAL.

    `number` has no spaces. `code` is the result code without 3-D Secure. `acquirer_response` is the two-character
    response code of ISO 8583 field 39, `merchant_advice_code` two digits or None. `approved_share` is the approved part
    of the amount, 1 for all of it. `second_acquirer`: what the stub acquirer answers to a cascade; `tokenization`: how
    its network token behaves (token_service.py); `updating`: what the account updater says of it (account_updater.py).
    """

    number: str = field(repr=False)
    brand: str
    title: str
    code: str
    threeds: ThreeDS | None
    acquirer_response: str
    merchant_advice_code: str | None
    approved_share: Decimal
    behaviour: SimulatedBehavior
    second_acquirer: SecondAcquirer = ""
    tokenization: TokenBehavior = ""
    updating: UpdateBehavior = ""

    @property
    def spaced(self) -> str:
        """The number as printed on a card: 4-4-4-4, or 4-6-5 and 4-6-4 for shorter ones."""
        number = self.number
        if len(number) < 16:
            return f"{number[:4]} {number[4:10]} {number[10:]}"
        return " ".join(number[place : place + 4] for place in range(0, len(number), 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAnswer:
    """The simulated acquirer's answer. `approved` is None on a decline or without an amount."""

    code: str
    acquirer_response: str
    merchant_advice_code: str | None
    avs: str | None
    cvv: str | None
    approved: Money | None
    behaviour: SimulatedBehavior
    card: SimulatedCard | None


def _card(
    number: str,
    brand: str,
    title: str,
    code: str = SIMULATED_SUCCESS,
    *,
    threeds: ThreeDS | None = None,
    acquirer: str = "00",
    mac: str | None = None,
    share: str = "1",
    behaviour: SimulatedBehavior = "answer",
    second: SecondAcquirer = "",
    tokenization: TokenBehavior = "",
    updating: UpdateBehavior = "",
) -> SimulatedCard:
    return SimulatedCard(
        number=number.replace(" ", ""),
        brand=brand,
        title=title,
        code=code,
        threeds=threeds,
        acquirer_response=acquirer,
        merchant_advice_code=mac,
        approved_share=Decimal(share),
        behaviour=behaviour,
        second_acquirer=second,
        tokenization=tokenization,
        updating=updating,
    )


SIMULATED_CARDS: Final[tuple[SimulatedCard, ...]] = (
    # Approved.
    _card("4200 0000 0000 0000", "VISA", "Approved"),
    _card("4242 4242 4242 4242", "VISA", "Approved"),
    _card("4111 1111 1111 1111", "VISA", "Approved"),
    _card("5454 5454 5454 5454", "MASTER", "Approved"),
    _card("5105 1051 0510 5100", "MASTER", "Approved"),
    _card("3777 777777 77770", "AMEX", "Approved"),
    _card("3008 224640 3846", "DINERS", "Approved"),
    # Approved; on a channel with network tokens the stored card's token goes another way.
    _card("4200 0001 0100 0008", "VISA", "Token: refused by the network", tokenization="refused"),
    _card("4200 0001 0200 0007", "VISA", "Token: no cryptogram", tokenization="silent"),
    _card("4200 0001 0300 0006", "VISA", "Token: declined by the issuer", tokenization="declined"),
    _card("5200 0001 0300 0003", "MASTER", "Token: declined by the issuer", tokenization="declined"),
    _card("4200 0001 0400 0005", "VISA", "Token: suspended", tokenization="suspended"),
    # Approved; on a channel with the account updater the stored card is renewed or closed.
    _card("4200 0002 0100 0007", "VISA", "Updater: new number", updating="new number"),
    _card("5200 0002 0100 0004", "MASTER", "Updater: new number", updating="new number"),
    _card("4200 0002 0300 0005", "VISA", "Updater: new expiry date", updating="new expiry"),
    _card("4200 0002 0400 0004", "VISA", "Updater: account closed", updating="closed"),
    _card("4200 0002 0500 0003", "VISA", "Updater: contact the holder", updating="contact holder"),
    _card("4200 0002 0600 0002", "VISA", "Updater: no answer", updating="silent"),
    # Approved in part, or approved with a review.
    _card("4000 0500 0000 0007", "VISA", "Approved for half of the amount", share="0.5", acquirer="10"),
    _card("5200 0500 0000 0002", "MASTER", "Approved for half of the amount", share="0.5", acquirer="10"),
    _card("4000 0400 0000 0008", "VISA", "Approved, review: possible fraud", "000.400.000"),
    _card("4000 0400 0100 0007", "VISA", "Approved, review: address check", "000.400.010"),
    # Approved without 3-D Secure; with it, the authentication goes as the column says.
    _card("4200 0000 0000 0091", "VISA", "3DS: frictionless", threeds="frictionless"),
    _card("5200 0000 0000 0007", "MASTER", "3DS: frictionless", threeds="frictionless"),
    _card("4200 0000 0000 0109", "VISA", "3DS: attempt", threeds="attempt"),
    _card("4012 0010 3746 1114", "VISA", "3DS: unavailable", threeds="unavailable"),
    _card("4012 0010 3714 1112", "VISA", "3DS: not enrolled", threeds="not_enrolled"),
    _card("4200 0000 0000 0042", "VISA", "3DS: challenge, can pass", threeds="challenge_pass"),
    _card("5200 0000 0000 0015", "MASTER", "3DS: challenge, can pass", threeds="challenge_pass"),
    _card("4200 0000 0000 0018", "VISA", "3DS: challenge, fails", threeds="challenge_fail"),
    _card("5200 0000 0000 0064", "MASTER", "3DS: challenge, fails", threeds="challenge_fail"),
    _card("4200 0000 0000 0026", "VISA", "3DS: method page, then frictionless", threeds="method"),
    _card("4200 0000 0000 0034", "VISA", "3DS: method page, then a challenge", threeds="method_challenge"),
    _card("4200 0000 0000 0059", "VISA", "3DS: rejected by the issuer", threeds="rejected"),
    _card("4200 0000 0000 0067", "VISA", "3DS: accepts exemptions, else a challenge", threeds="exempted"),
    _card("5200 0000 0000 0049", "MASTER", "3DS: accepts exemptions, else a challenge", threeds="exempted"),
    # Rejected before routing: the check digit is wrong.
    _card("4444 4444 4444 4444", "VISA", "Fails the Luhn check", INVALID_NUMBER, acquirer="14"),
    # The issuer wants the shopper to authenticate; approved once the payment carries a proof.
    _card("4000 0300 0100 0008", "VISA", "Soft decline", SOFT_DECLINE, acquirer="1A"),
    _card("5200 0300 0100 0003", "MASTER", "Soft decline", SOFT_DECLINE, acquirer="65"),
    # It is not authenticated unless a challenge is asked for: on a channel with 3-D Secure the soft decline comes, too.
    _card(
        "4000 0300 0200 0007",
        "VISA",
        "Soft decline, 3DS only if asked",
        SOFT_DECLINE,
        threeds="when_mandated",
        acquirer="1A",
    ),
    _card(
        "5200 0300 0200 0002",
        "MASTER",
        "Soft decline, 3DS only if asked",
        SOFT_DECLINE,
        threeds="when_mandated",
        acquirer="65",
    ),
    # Declined without a reason; on a route with a cascade (docs/routing.md) a second acquirer is asked.
    _card(
        "4000 0183 0100 0000",
        "VISA",
        "Declined, approved by a second acquirer",
        "800.100.183",
        acquirer="05",
        second="approves",
    ),
    _card(
        "5200 0183 0100 0005",
        "MASTER",
        "Declined, approved by a second acquirer",
        "800.100.183",
        acquirer="05",
        second="approves",
    ),
    _card("4000 0183 0200 0009", "VISA", "Declined by every acquirer", "800.100.183", acquirer="05", second="declines"),
    _card(
        "4000 0183 0300 0008",
        "VISA",
        "Declined, no answer by a second acquirer",
        "800.100.183",
        acquirer="05",
        second="silence",
    ),
    # The issuer forbids further tries.
    _card("4000 0600 0200 0004", "VISA", "Blocked for 72 hours", "700.600.002", acquirer="05", mac="02"),
    _card("4000 0601 0100 0004", "VISA", "Blocked until updated", "700.601.001", acquirer="54", mac="01"),
    _card("4000 0601 0300 0002", "VISA", "Account closed or fraud", "700.601.003", acquirer="46", mac="03"),
    _card("5200 0601 0300 0007", "MASTER", "Account closed or fraud", "700.601.003", acquirer="05", mac="03"),
    # The acquirer cannot be reached.
    _card("4000 0900 0100 0002", "VISA", "Line fault", "900.100.100", acquirer="96", behaviour="error"),
    _card("4000 0900 0200 0001", "VISA", "Acquirer error", "900.100.200", acquirer="96", behaviour="error"),
    _card("4000 0900 0300 0000", "VISA", "No answer", "900.100.300", acquirer="", behaviour="silence"),
    _card("4000 0900 0400 0009", "VISA", "Acquirer timeout", "900.100.400", acquirer="68", behaviour="error"),
    _card("4000 0900 0600 0007", "VISA", "Acquirer is down", "900.100.600", acquirer="91", behaviour="error"),
    # Declined: the digits after 4000 0 are the end of the code.
    _card("4000 0150 0000 0000", "VISA", "Gambling, no refund", "800.100.150", acquirer="57", mac="03"),
    _card("4000 0151 0000 0009", "VISA", "Card not valid", "800.100.151", acquirer="14", mac="03"),
    _card("4000 0152 0000 0008", "VISA", "Declined, no reason", "800.100.152", acquirer="05", mac="02"),
    _card("4000 0153 0000 0007", "VISA", "CVV wrong", "800.100.153", acquirer="N7", mac="01"),
    _card("4000 0154 0000 0006", "VISA", "Marked invalid", "800.100.154", acquirer="78", mac="03"),
    _card("4000 0155 0000 0005", "VISA", "Over the credit limit", "800.100.155", acquirer="51", mac="02"),
    _card("4000 0156 0000 0004", "VISA", "Format fault", "800.100.156", acquirer="30"),
    _card("4000 0157 0000 0003", "VISA", "Expiry wrong", "800.100.157", acquirer="54", mac="01"),
    _card("4000 0158 0000 0002", "VISA", "Tampering suspected", "800.100.158", acquirer="59", mac="03"),
    _card("4000 0159 0000 0001", "VISA", "Card stolen", "800.100.159", acquirer="43", mac="03"),
    _card("4000 0160 0000 0008", "VISA", "Card blocked", "800.100.160", acquirer="62", mac="03"),
    _card("4000 0161 0000 0007", "VISA", "Too many failed tries", "800.100.161", acquirer="75", mac="02"),
    _card("4000 0162 0000 0006", "VISA", "Over a card limit", "800.100.162", acquirer="61", mac="02"),
    _card("4000 0163 0000 0005", "VISA", "Card used too often", "800.100.163", acquirer="65", mac="02"),
    _card("4000 0164 0000 0004", "VISA", "Amount over the merchant's limit", "800.100.164", acquirer="13"),
    _card("4000 0165 0000 0003", "VISA", "Card lost", "800.100.165", acquirer="41", mac="03"),
    _card("4000 0166 0000 0002", "VISA", "PIN wrong", "800.100.166", acquirer="55"),
    _card("4000 0167 0000 0001", "VISA", "Reference does not match", "800.100.167", acquirer="12"),
    _card("4000 0168 0000 0000", "VISA", "Card restricted", "800.100.168", acquirer="62", mac="03"),
    _card("4000 0169 0000 0009", "VISA", "Card type not processed", "800.100.169", acquirer="57", mac="03"),
    _card("4000 0170 0000 0006", "VISA", "Payment not permitted", "800.100.170", acquirer="57", mac="03"),
    _card("4000 0171 0000 0005", "VISA", "Retain the card", "800.100.171", acquirer="04", mac="03"),
    _card("4000 0172 0000 0004", "VISA", "Account blocked", "800.100.172", acquirer="46", mac="03"),
    _card("4000 0173 0000 0003", "VISA", "Currency not processed", "800.100.173", acquirer="12"),
    _card("4000 0174 0000 0002", "VISA", "Amount not valid", "800.100.174", acquirer="13"),
    _card("4000 0175 0000 0001", "VISA", "Brand not valid", "800.100.175", acquirer="12"),
    _card("4000 0176 0000 0000", "VISA", "Account not available now", "800.100.176", acquirer="91", mac="02"),
    _card("4000 0177 0000 0009", "VISA", "Amount empty", "800.100.177", acquirer="13"),
    _card("4000 0178 0000 0008", "VISA", "PIN tried too often", "800.100.178", acquirer="75", mac="02"),
    _card("4000 0179 0000 0007", "VISA", "Too many withdrawals", "800.100.179", acquirer="65", mac="02"),
    _card("5200 0151 0000 0004", "MASTER", "Card not valid", "800.100.151", acquirer="14", mac="03"),
    _card("5200 0153 0000 0002", "MASTER", "CVV wrong", "800.100.153", acquirer="N7", mac="01"),
    _card("5200 0155 0000 0000", "MASTER", "Over the credit limit", "800.100.155", acquirer="51", mac="02"),
    _card("5200 0157 0000 0008", "MASTER", "Expiry wrong", "800.100.157", acquirer="54", mac="01"),
    _card("5200 0159 0000 0006", "MASTER", "Card stolen", "800.100.159", acquirer="43", mac="03"),
    _card("5200 0160 0000 0003", "MASTER", "Card blocked", "800.100.160", acquirer="62", mac="03"),
    _card("5200 0162 0000 0001", "MASTER", "Over a card limit", "800.100.162", acquirer="61", mac="02"),
    _card("5200 0165 0000 0008", "MASTER", "Card lost", "800.100.165", acquirer="41", mac="03"),
    _card("5200 0171 0000 0000", "MASTER", "Retain the card", "800.100.171", acquirer="04", mac="03"),
    _card("3700 015300 00009", "AMEX", "CVV wrong", "800.100.153", acquirer="N7", mac="01"),
    _card("3700 015500 00004", "AMEX", "Over the credit limit", "800.100.155", acquirer="51", mac="02"),
)

APPROVING_SECOND_ACQUIRERS: Final = frozenset({"approves", "silence"})
CARDS_BY_NUMBER: Final[Mapping[str, SimulatedCard]] = MappingProxyType({card.number: card for card in SIMULATED_CARDS})
_PUBLISHED: Final = frozenset((card.number[:6], card.number[-4:]) for card in SIMULATED_CARDS)

GUESSED_BIN: Final = "400002"
"""Numbers with this BIN and a valid check digit are declined with GUESSED_CODE. They are not published test cards, so
the card-testing guard counts them: merchants try the guard with them."""
GUESSED_CODE: Final = "800.100.151"

# Postcode of the billing address -> avsResponse. Asked only when an address is sent; others are not checked.
AVS_BY_POSTCODE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "11111": "F",  # address and postcode match
        "22222": "A",  # address matches, postcode does not
        "33333": "Z",  # postcode matches, address does not
        "44444": "N",  # neither matches
        "55555": "U",  # the check was not possible
    }
)
AVS_MEANING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "F": "Address and postcode match",
        "A": "The address matches, the postcode does not",
        "Z": "The postcode matches, the address does not",
        "N": "Neither matches",
        "U": "The check was not possible",
    }
)

# CVV -> cvvResponse; any other CVV matches. A mismatch alone does not decline: 4000 0153 … does that.
CVV_ANSWERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "123": "M",
        "1234": "M",
        "999": "N",
        "9999": "N",
        "000": "P",
        "0000": "P",
        "111": "S",
        "1111": "S",
        "222": "U",
        "2222": "U",
    }
)
CVV_MEANING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "M": "The security code matches",
        "N": "The security code does not match",
        "P": "The security code was not processed",
        "S": "The card should have a security code",
        "U": "The issuer does not check security codes",
    }
)
_OTHER_CVV: Final = "M"

ADVICE_MEANING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "01": "New account data may be had: update the card before you try again",
        "02": "Try again later",
        "03": "Do not try again",
    }
)


def build_network_reference(key: str) -> str:
    """A scheme's transaction id, 15 digits, always the same for the same key."""
    return f"{int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], 'big') % 10**15:015}"


def is_published_test_card(card_bin: str, last4: str) -> bool:
    """True if a card of the table has these first six and last four digits."""
    return (card_bin, last4) in _PUBLISHED


def find_simulated_card(number: str) -> SimulatedCard | None:
    """The table's row for a number without spaces."""
    return CARDS_BY_NUMBER.get(number)


def simulate_avs(postcode: str | None) -> str | None:
    """avsResponse for the billing postcode; None without one, or if it is not checked."""
    return AVS_BY_POSTCODE.get(postcode) if postcode else None


def simulate_cvv(cvv: str | None) -> str | None:
    """cvvResponse for the security code; None if none was sent."""
    return CVV_ANSWERS.get(cvv, _OTHER_CVV) if cvv else None


def compute_approved_part(amount: Money, share: Decimal) -> Money:
    """`share` of `amount`, rounded down to the currency's minor unit, and at least one of it."""
    if share == 1:
        return amount
    unit = Decimal(1) if currency_exponent(amount.currency) == 0 else Decimal("0.01")
    part = (amount.amount * share).quantize(unit, rounding=ROUND_DOWN)
    return Money(min(amount.amount, max(unit, part)), amount.currency)


def _of_unknown(number: str) -> tuple[str, str]:
    """(result code, acquirer's response code) for a number that is not in the table."""
    if not is_luhn_valid(number):
        return INVALID_NUMBER, "14"
    return (GUESSED_CODE, "14") if number.startswith(GUESSED_BIN) else (SIMULATED_SUCCESS, "00")


def simulate_card_answer(
    number: str | Secret,
    *,
    amount: Money | None = None,
    cvv: str | Secret | None = None,
    postcode: str | None = None,
    authenticated: bool = False,
    issuer: IssuerAnswer | None = None,
    attempt: int = 1,
) -> SimulatedAnswer:
    """The simulated acquirer's answer for a card. A pure look-up.

    `number` has no spaces; `postcode` is the billing address's; `authenticated`: the payment has a proof of 3-D Secure,
    which turns the soft decline into an approval; `issuer`: what the card's simulated issuer answers, for a card that
    is not in the table; `attempt`: of the payment at acquirers, more than 1 after a cascade.
    """
    card = CARDS_BY_NUMBER.get(reveal_text(number))
    advice = card.merchant_advice_code if card else None
    if card is None and issuer is not None:
        code, acquirer, share, advice = issuer.code, issuer.response, Decimal(1), issuer.advice or None
    elif card is None:
        code, acquirer = _of_unknown(reveal_text(number))
        share = Decimal(1)
    elif (card.code == SOFT_DECLINE and authenticated) or (
        attempt > 1 and card.second_acquirer in APPROVING_SECOND_ACQUIRERS
    ):
        code, acquirer, share = SIMULATED_SUCCESS, "00", Decimal(1)
    else:
        code, acquirer, share = card.code, card.acquirer_response, card.approved_share
    approved = is_approved(code)
    return SimulatedAnswer(
        code=code,
        acquirer_response=acquirer,
        merchant_advice_code=advice,
        avs=simulate_avs(postcode),
        cvv=simulate_cvv(reveal_text(cvv) if cvv is not None else None),
        approved=compute_approved_part(amount, share) if approved and amount is not None else None,
        behaviour=card.behaviour if card else "answer",
        card=card,
    )

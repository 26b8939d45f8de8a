"""Maps acquirer response codes: DE39 to result codes, address and CVV checks to our letters.

A DE39 answers three questions: is it an approval, is it conclusive at all, and may another acquirer be tried. Reasons
in docs/decisions/0033-iso-8583.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.core.brands import MASTERCARD_BRANDS
from gateway.core.strong_authentication import SCA_COUNTRIES

DE39_PARTIAL: Final = "10"
GRANTING_CODES: Final = frozenset({"00", "08", "10", "11", "16"})
"""Approved; with identification; in part; VIP; update track 3."""
NO_REASON_TO_DECLINE: Final = "85"
"""Approval of an account verification without money, and of money that is given back; otherwise a decline."""
CREDITING_TYPES: Final = frozenset({"RF", "CD"})
"""Payment types that an issuer approves with 00 or NO_REASON_TO_DECLINE. Source: Visa, approve codes of credit vouchers
and merchandise returns, quoted by https://www.jpmorgan.com/payments/client-resource-center/pbi/apac-payment-brand-changes;
of Mastercard's, too: https://csipay.com/vesta/purchasereturnauthorization/."""
DUPLICATE_MESSAGE: Final = "94"
"""On a repeat: the host knows the message, whether it granted it or not. On a first message: another message with these
numbers is there, and the outcome of ours is unknown."""
UNCLEAR_CODES: Final = frozenset({"09", "68", "94"})
"""In progress, answer came too late, duplicate: not conclusive. The payment is in doubt, and is voided; a
payout to a card waits for a person."""
RETRYABLE_CODES: Final = frozenset({"90", "91", "92"})
"""Cut-off in process, issuer or switch inoperative, no route to the issuer: a payment that takes money was neither
judged nor booked. 96 (system malfunction) and 06 (error) are not among them: a host that failed half-way may have asked
the issuer."""
UNDECIDED_CREDIT_CODES: Final = frozenset({"06", "20", "22", "90", "91", "96"})
"""Error, invalid response, suspected malfunction, cut-off, issuer or switch inoperative, system malfunction: of money
that is given (CREDITING_TYPES) no verdict, unless the account's ``credit_declines`` says so. Whoever answers may have
handed it on, and no network takes back by itself what it has given. 92 is not among them: there was no way to hand it
on. Source: docs/decisions/0138."""
NOT_FOUND_CODES: Final = frozenset({"25", "76"})
"""No such record, no such message: nothing of what is still under way to the host."""
REVERSAL_DONE_CODES: Final = NOT_FOUND_CODES | {"00"}
"""Answers to a reversal that prove nothing is booked, once what it reverses can no longer arrive. Not 94, where the
account does not say otherwise (duplicate: the host knows the reversal, and may have refused it), and not 21 (no action
taken), which also says that something could not be backed out."""
ALREADY_REVERSED_CODES: Final = frozenset({"21", DUPLICATE_MESSAGE})
"""No action taken, duplicate: to the reversal of an approval, that there is nothing left to reverse, where the host has
answered 00 to an earlier one. They are no proof, and its last word. At Visa ALREADY_REVERSED_AT_VISA, too."""
ALREADY_REVERSED_AT_VISA: Final = "79"
REPEAT_CODES: Final = frozenset({"06", "19", "22", "28", "90", "91", "92", "95", "96"})
"""An advice or reversal was not accepted now: not conclusive, so it is repeated."""

UNKNOWN_DECLINE: Final = "800.100.100"
ACQUIRER_ERROR: Final = "900.100.200"

RESULT_BY_DE39: Final[Mapping[str, str]] = MappingProxyType(
    {
        "01": "800.100.209",  # refer to card issuer
        "02": "800.100.209",  # the same, special conditions
        "03": "800.100.190",  # invalid merchant
        "04": "800.100.171",  # pick up
        "05": "800.100.152",  # do not honour
        "06": ACQUIRER_ERROR,  # error
        "07": "800.100.171",  # pick up, special condition
        "12": "800.100.170",  # invalid transaction
        "13": "800.100.174",  # invalid amount
        "14": "800.100.151",  # no such number
        "15": "800.100.151",  # no such issuer
        "17": "800.100.152",  # customer cancellation
        "19": "800.100.176",  # re-enter transaction
        "20": ACQUIRER_ERROR,  # invalid response
        "21": "800.100.167",  # no action taken
        "22": ACQUIRER_ERROR,  # suspected malfunction
        "25": "800.100.167",  # unable to locate record
        "28": "800.100.176",  # file temporarily not available
        "30": "800.100.156",  # format error
        "31": "800.100.169",  # bank not supported by switch
        "33": "800.100.157",  # expired card, pick up
        "34": "800.100.158",  # suspected fraud, pick up
        "36": "800.100.168",  # restricted card, pick up
        "38": "800.100.178",  # PIN tries exceeded, pick up
        "39": "800.100.151",  # no credit account
        "40": "800.100.180",  # function not supported
        "41": "800.100.165",  # lost card
        "42": "800.100.151",  # no universal account
        "43": "800.100.159",  # stolen card
        "46": "800.100.172",  # closed account
        "51": "800.100.155",  # not sufficient funds
        "52": "800.100.151",  # no chequing account
        "53": "800.100.151",  # no savings account
        "54": "800.100.157",  # expired card
        "55": "800.100.166",  # incorrect PIN
        "56": "800.100.151",  # no card record
        "57": "800.100.170",  # not permitted to cardholder
        "58": "800.100.170",  # not permitted to terminal
        "59": "800.100.158",  # suspected fraud
        "60": "800.100.182",  # contact acquirer
        "61": "800.100.162",  # exceeds amount limit
        "62": "800.100.168",  # restricted card
        "63": "800.100.158",  # security violation
        "64": "800.100.174",  # original amount incorrect
        "65": "800.100.163",  # exceeds frequency limit
        "66": "800.100.182",  # call acquirer's security
        "67": "800.100.171",  # hard capture
        "75": "800.100.178",  # PIN tries exceeded
        "76": "800.100.167",  # unable to locate previous message
        "77": "800.100.167",  # inconsistent with previous message
        "78": "800.100.154",  # blocked, first use
        "80": "800.100.174",  # invalid date
        "82": "800.100.153",  # negative CVV2 result
        "83": "800.100.154",  # unable to verify
        "85": "800.100.152",  # no reason to decline, where money was taken
        "90": "800.800.400",  # cut-off in process
        "91": "900.100.201",  # issuer or switch inoperative
        "92": "900.100.201",  # no way to the issuer
        "93": "800.100.170",  # violation of law
        "95": ACQUIRER_ERROR,  # reconcile error
        "96": ACQUIRER_ERROR,  # system malfunction
        "1A": SOFT_DECLINE,  # the cardholder must authenticate
        "70": "800.100.209",  # contact card issuer
        "N7": "800.100.153",  # CVV2 failure
        "R0": "800.100.500",  # stop this payment order
        "R1": "800.100.501",  # revocation of authorization
        "R3": "800.100.501",  # revocation of all authorizations
    }
)
"""DE39 of a decline → our result code; UNKNOWN_DECLINE for one that is not listed."""

_VISA_BRANDS: Final = ("VISA", "VISADEBIT", "VISAELECTRON", "VPAY")
_VISA: Final = "Visa, V.I.P. System, field 39"
_VISA_2025: Final = (
    "Visa since April 2025, decline category 2; quoted by "
    "https://docs.cielo.com.br/ecommerce-cielo-en/changelog/new-retry-codes-for-visa-5c-e-9g"
)
_VISA_2026: Final = (
    "Visa since 25 October 2026, decline category 2; quoted by "
    "https://developers.tabapay.com/docs/visa-response-code-updates"
)
_VISA_CATEGORIES: Final = "https://www.checkout.com/docs/developer-resources/codes/visa-response-codes"
_VISA_CATEGORY_2: Final = f"Visa, decline category 2, the issuer cannot approve now; quoted by {_VISA_CATEGORIES}"
_VISA_CATEGORY_4: Final = (
    f"Visa, decline category 4, all codes that are not of 1 to 3; those quoted by {_VISA_CATEGORIES}"
)
_MASTERCARD: Final = "Mastercard, Customer Interface Specification, DE39"
_AMEX: Final = "American Express, Global Credit Authorization Guide, data field 39"
_CARTES_BANCAIRES: Final = "Cartes Bancaires, CB2A Autorisation, field 39"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandResponseCode:
    """A DE39 that means something else with some brands. ``uncertain``: not read in the network's own manual, only in
    what acquirers publish of it; ``only_in``: countries of merchants outside which it means what it does elsewhere."""

    brands: tuple[str, ...]
    code: str
    result: str
    about: str
    source: str
    uncertain: bool = False
    only_in: frozenset[str] = frozenset()


BRAND_RESPONSE_CODES: Final = (
    BrandResponseCode(
        brands=MASTERCARD_BRANDS, code="65", result=SOFT_DECLINE,
        about="the cardholder must authenticate; of merchants outside the EEA and the United Kingdom as elsewhere",
        source="Mastercard, Authentication Guide for Europe, 3.4; of other regions https://retries.com/codes/65",
        only_in=SCA_COUNTRIES,
    ),
    BrandResponseCode(
        brands=MASTERCARD_BRANDS, code="70", result="800.100.209", about="contact the issuer", source=_MASTERCARD
    ),
    BrandResponseCode(
        brands=MASTERCARD_BRANDS, code="79", result="800.100.151", about="lifecycle: the account data are old",
        source=_MASTERCARD,
    ),
    BrandResponseCode(
        brands=MASTERCARD_BRANDS, code="82", result="800.100.170", about="policy of the issuer", source=_MASTERCARD
    ),
    BrandResponseCode(
        brands=MASTERCARD_BRANDS, code="83", result="800.100.158", about="fraud or security", source=_MASTERCARD
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="39", result="800.100.152", about="no credit account", source=_VISA_CATEGORY_4
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="52", result="800.100.152", about="no current account", source=_VISA_CATEGORY_4
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="53", result="800.100.152", about="no savings account", source=_VISA_CATEGORY_4
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="56", result="800.100.152", about="no card record", source=_VISA_CATEGORY_4
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="58", result="800.100.190", about="not permitted to the terminal",
        source=_VISA_CATEGORY_4,
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="5C", result="800.100.180", about="blocked by the issuer for this kind of card",
        source=_VISA_2025,
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="64", result="800.100.182", about="rules against money laundering",
        source="https://durangomerchantservices.com/glossary/"
        "decline-code-64-transaction-does-not-fulfill-aml-requirement/",
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="70", result="800.100.166", about="PIN data required",
        source="quoted by https://docs.paymentplatform.dev/payengine-api-v2.5/error-and-response-codes/"
        "response-codes-from-credit-card-networks",
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="78", result="800.100.176", about="a new card that its holder has not unblocked yet",
        source=_VISA_CATEGORY_2,
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="79", result="800.100.152", about="already reversed, by the switch", source=_VISA,
        uncertain=True,
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="83", result="800.100.158", about="fraud or security, by Visa's own network",
        source=_VISA_2026,
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="93", result="800.100.152", about="cannot be completed", source=_VISA_CATEGORY_2
    ),
    BrandResponseCode(
        brands=_VISA_BRANDS, code="9G", result="800.100.181", about="blocked by the cardholder", source=_VISA_2025
    ),
    BrandResponseCode(
        brands=("AMEX",), code="78", result="800.100.151", about="card not effective yet", source=_AMEX, uncertain=True
    ),
    BrandResponseCode(
        brands=("CARTEBANCAIRE",), code="A1", result=SOFT_DECLINE, about="the cardholder must authenticate",
        source=_CARTES_BANCAIRES, uncertain=True,
    ),
    BrandResponseCode(
        brands=("CARTEBANCAIRE",), code="A4", result="800.100.170", about="misuse of an exemption",
        source=_CARTES_BANCAIRES, uncertain=True,
    ),
)  # fmt: skip
"""Mastercard's 79, 82 and 83 are those of 2020 on: the reason category of a decline, refined by the advice code."""
RESULT_BY_BRAND_AND_DE39: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {(brand, row.code): row.result for row in BRAND_RESPONSE_CODES for brand in row.brands}
)
_ONLY_IN: Final[Mapping[tuple[str, str], frozenset[str]]] = MappingProxyType(
    {(brand, row.code): row.only_in for row in BRAND_RESPONSE_CODES for brand in row.brands if row.only_in}
)

AVS_BY_NETWORK_LETTER: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys("YXDMF", "F") | dict.fromkeys("AB", "A") | dict.fromkeys("ZWP", "Z") | {"N": "N"}
)
"""The networks' letters → full, address only, postcode only, neither; U (not checked) for one that is not listed."""
AVS_BY_DISCOVER_LETTER: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys("AX", "F") | {"Y": "A"} | dict.fromkeys("TZ", "Z") | {"N": "N"}
)
"""Discover's letters, of which A, Y and W (no data) are not those of the others. Source: Discover, quoted by
https://help.globalmerchantportal.com/en/code-glossary/avs-response-codes."""
AVS_BY_AMEX_LETTER: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys("YME", "F") | dict.fromkeys("AOF", "A") | dict.fromkeys("ZLD", "Z") | dict.fromkeys("NWK", "N")
)
"""American Express' letters, and JCB's: it checks the holder's name, too (M, O, L and K: it matches; E, F, D and W: it
does not), which says nothing of the address. Its D and F are a full match at Visa. Source: American Express, quoted by
https://developer.moneris.com/hosted-solutions/reference/references."""
AVS_BY_BRAND: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    dict.fromkeys(("DISCOVER", "DINERS"), AVS_BY_DISCOVER_LETTER) | dict.fromkeys(("AMEX", "JCB"), AVS_BY_AMEX_LETTER)
)
"""Brands whose networks have letters of their own; the others have AVS_BY_NETWORK_LETTER."""
AVS_NOT_CHECKED: Final = "U"
CVV_LETTERS: Final = frozenset("MNPSU")
"""Match, no match, not processed, should be present, issuer unable; U for any other letter."""
AMEX_CVV_MATCH: Final = "Y"
"""Source: American Express, quoted by https://developers.tabapay.com/reference/cvv2-response-codes."""


def map_declined_code(code: str, brand: str, country: str = "") -> str:
    """The result code of a DE39 that is no approval. ``country``: the merchant's, in two letters; '' if not known."""
    of_brand = RESULT_BY_BRAND_AND_DE39.get((brand, code))
    if of_brand and country and country not in _ONLY_IN.get((brand, code), (country,)):
        of_brand = None
    return of_brand or RESULT_BY_DE39.get(code, UNKNOWN_DECLINE)


def is_already_reversed(code: str, brand: str) -> bool:
    """Whether a DE39 to a reversal says that there is nothing left to reverse, of what the host has reversed before."""
    return code in ALREADY_REVERSED_CODES or (code == ALREADY_REVERSED_AT_VISA and brand in _VISA_BRANDS)


def leaves_first_open(code: str, brand: str) -> bool:
    """Whether a DE39 to the repeat of a capture or of a merchant's reversal leaves open what became of the first one:
    nothing is left to do, or there is no such record, since that was carried out, or it cannot be any more."""
    return code in NOT_FOUND_CODES or is_already_reversed(code, brand)


def map_avs_letter(letter: str, brand: str) -> str:
    """Our letter for the address check; '' where there was none."""
    letters = AVS_BY_BRAND.get(brand, AVS_BY_NETWORK_LETTER)
    return letters.get(letter, AVS_NOT_CHECKED) if letter.strip() else ""


def map_cvv_letter(letter: str, brand: str) -> str:
    """Our letter for the CVV check; '' where there was none."""
    if not letter.strip():
        return ""
    if brand == "AMEX" and letter == AMEX_CVV_MATCH:
        return "M"
    return letter if letter in CVV_LETTERS else AVS_NOT_CHECKED

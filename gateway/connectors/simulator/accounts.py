"""Test accounts other than cards: which bank account, token, virtual account or gift card gives which answer.

One table for the simulator, the stub acquirer, the test-data page and the tests. Accounts not listed are approved. A
bank account carries its result code in its number: account 0800100203 at bank code 10000000 answers 800.100.203, and so
does a token with these nine digits. Pure. Source: Part A, What the service does, 5; Bank account, Virtual account,
Token account; Part B, Gift card; ruling D40.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from gateway.connectors.means import BankAccount, Card, GiftCard, Means, TokenAccount, VirtualAccount
from gateway.connectors.simulator.cards import SIMULATED_SUCCESS, SimulatedBehavior
from gateway.core.luhn import compute_check_digit
from gateway.core.money import Money

WRONG_IBAN: Final = "100.100.101"
CONFIRMED_LATER: Final = "800.400.501"
TOKEN_EXPIRED: Final = "800.100.330"  # noqa: S105 - a result code
NOT_VERIFIED: Final = "800.100.308"
WRONG_PIN: Final = "800.100.166"
CARD_EXPIRED: Final = "100.100.303"
NO_FUNDS: Final = "800.100.203"

TEST_BANK_CODE: Final = "10000000"
TEST_BIC: Final = "MARKDEF1100"
BAD_CRYPTOGRAM: Final = "AAAAAAAAAAAAAAAAAAAAAAAAAAA="
GOOD_CRYPTOGRAM: Final = "AgAAAAAAAIR8CQrXcIhbQAAAAAA="
BAD_DTVC: Final = frozenset({"999", "9999"})
BAD_PIN: Final = "0000"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAccount:
    """One test account and its answer. ``fields``: the request's, by full name, including the brand. ``response``: the
    acquirer's own code. ``balance``: a gift card's, in the payment's currency; None for accounts without a limit."""

    kind: str
    account: str
    title: str
    code: str
    response: str
    fields: Mapping[str, str]
    behaviour: SimulatedBehavior = "answer"
    balance: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAccountAnswer:
    """The acquirer's answer. ``approved`` is None on a decline."""

    code: str
    response: str
    approved: Money | None = None
    behaviour: SimulatedBehavior = "answer"


def build_iban(country: str, bban: str) -> str:
    """The IBAN of a national account number, with check digits by ISO 7064, MOD 97-10."""
    digits = "".join(str(int(letter, 36)) for letter in f"{bban}{country}00")
    return f"{country}{98 - int(digits) % 97:02d}{bban}"


def _digits(code: str) -> str:
    return code.replace(".", "")


def _bank(
    iban: str,
    title: str,
    code: str = SIMULATED_SUCCESS,
    *,
    response: str = "00",
    brand: str = "DIRECTDEBIT_SEPA",
    behaviour: SimulatedBehavior = "answer",
) -> SimulatedAccount:
    fields = {
        "paymentBrand": brand,
        "bankAccount.holder": "Jane Jones",
        "bankAccount.iban": iban,
        "bankAccount.bic": TEST_BIC,
        "bankAccount.country": iban[:2],
    }
    return SimulatedAccount(
        kind=BankAccount.kind,
        account=iban,
        title=title,
        code=code,
        response=response,
        fields=fields,
        behaviour=behaviour,
    )


def _coded(code: str, title: str, response: str, *, behaviour: SimulatedBehavior = "answer") -> SimulatedAccount:
    """A German account whose number is the result code."""
    return _bank(
        build_iban("DE", f"{TEST_BANK_CODE}0{_digits(code)}"), title, code, response=response, behaviour=behaviour
    )


def _local(
    number: str, title: str, code: str = SIMULATED_SUCCESS, response: str = "00", *, brand: str
) -> SimulatedAccount:
    """An account by number and bank code."""
    fields = {
        "paymentBrand": brand,
        "bankAccount.holder": "Jane Jones",
        "bankAccount.number": number,
        "bankAccount.bankCode": TEST_BANK_CODE,
        "bankAccount.country": "DE",
    }
    return SimulatedAccount(
        kind=BankAccount.kind, account=number, title=title, code=code, response=response, fields=fields
    )


BANK_ACCOUNTS: Final[tuple[SimulatedAccount, ...]] = (
    _bank("DE23100000001234567890", "Approved"),
    _bank("DE89370400440532013000", "Approved"),
    _bank("AT611904300234573201", "Approved"),
    _bank("NL91ABNA0417164300", "Approved"),
    _bank("FR1420041010050500013M02606", "Approved"),
    _bank("GB29NWBK60161331926819", "Approved", brand="CREDITTRANSFER"),
    _bank("ES9121000418450200051332", "Approved", brand="CREDITTRANSFER_SEPA"),
    _local("1234567890", "Approved, by number and bank code", brand="DIRECTDEBIT"),
    _local("0800100203", "Not enough funds, by number and bank code", NO_FUNDS, "AM04", brand="DIRECTDEBIT"),
    _bank("DE24100000001234567890", "Check digits wrong: nobody is asked", WRONG_IBAN, response=""),
    _coded("100.200.103", "Bank code and number do not fit together", "RC01"),
    _coded("800.100.172", "Account blocked", "AC06"),
    _coded("800.100.200", "Refer to payer", "MS03"),
    _coded("800.100.201", "Account or bank details wrong", "AC01"),
    _coded("800.100.202", "Account closed", "AC04"),
    _coded("800.100.203", "Not enough funds", "AM04"),
    _coded("800.100.204", "Mandate ran out", "MD01"),
    _coded("800.100.205", "Mandate dropped", "MD01"),
    _coded("800.100.206", "An authorized payment is wanted back", "MD06"),
    _coded("800.100.207", "A refund was asked for", "MD06"),
    _coded("800.100.208", "Direct debit not possible", "AG01"),
    _coded("800.100.213", "Problem with the account", "MS02"),
    _coded("800.100.402", "Holder not valid", "BE01"),
    _coded("800.100.403", "Authorization order revoked", "MD01"),
    _coded("800.200.202", "Blacklisted: account closed", "AC04"),
    _coded(CONFIRMED_LATER, "Confirmed or sent back days later", "PDNG"),
    _coded("900.100.300", "No answer: the outcome is unknown", "", behaviour="silence"),
    _coded("900.100.600", "The bank is down", "AB05", behaviour="error"),
)


def build_test_token(code: str) -> str:
    """The test token of a result code: 489537, its nine digits, a check digit."""
    digits = f"489537{_digits(code)}"
    return digits + compute_check_digit(digits)


def _token(
    code: str, title: str, response: str, *, number: str = "", behaviour: SimulatedBehavior = "answer", **more: str
) -> SimulatedAccount:
    number = number or build_test_token(code)
    fields = {
        "paymentBrand": "VISA",
        "tokenAccount.number": number,
        "tokenAccount.type": "NETWORK",
        "tokenAccount.expiryMonth": "05",
        "tokenAccount.expiryYear": "2034",
        "tokenAccount.cryptogram": GOOD_CRYPTOGRAM,
    }
    for name, value in more.items():
        fields.pop(f"tokenAccount.{name}", None)
        if value:
            fields[f"tokenAccount.{name}"] = value
    return SimulatedAccount(
        kind=TokenAccount.kind,
        account=number,
        title=title,
        code=code,
        response=response,
        fields=fields,
        behaviour=behaviour,
    )


_FINE: Final = build_test_token(SIMULATED_SUCCESS)
TOKEN_ACCOUNTS: Final[tuple[SimulatedAccount, ...]] = (
    _token(SIMULATED_SUCCESS, "Approved, with a cryptogram", "00"),
    _token(SIMULATED_SUCCESS, "Approved, with a dtvc", "00", cryptogram="", dtvc="123"),
    _token(SIMULATED_SUCCESS, "Approved, of an external provider", "00", number="4200000000000000", type="EXTERNAL",
           cryptogram=""),
    _token(NOT_VERIFIED, "The cryptogram does not verify", "N7", number=_FINE, cryptogram=BAD_CRYPTOGRAM),
    _token(NOT_VERIFIED, "The dtvc does not verify", "N7", number=_FINE, cryptogram="", dtvc="999"),
    _token(TOKEN_EXPIRED, "The token has expired", "54", number=_FINE, expiryMonth="01", expiryYear="2024"),
    _token("800.100.155", "Over the credit limit", "51"),
    _token("800.100.300", "Card number data bad", "14"),
    _token("800.100.301", "Card unsuitable", "57"),
    _token("800.100.302", "Issuer refused", "05"),
    _token("800.100.304", "Scheme unknown or unsupported", "12"),
    _token("800.100.306", "Data not decryptable", "30"),
    _token("800.100.307", "State does not allow this", "12"),
    _token("800.100.317", "Token suspended", "62"),
    _token("800.100.320", "Provider fault, do not retry", "96"),
    _token("800.100.321", "Provider fault, retry possible", "96"),
    _token("800.100.325", "Not authorized", "57"),
    _token("800.100.326", "No token found", "14"),
    _token("900.100.300", "No answer: the outcome is unknown", "", behaviour="silence"),
)  # fmt: skip


def _virtual(
    account: str, title: str, code: str = SIMULATED_SUCCESS, response: str = "00", *, brand: str = "VIRTUALACCOUNT"
) -> SimulatedAccount:
    return SimulatedAccount(
        kind=VirtualAccount.kind,
        account=account,
        title=title,
        code=code,
        response=response,
        fields={"paymentBrand": brand, "virtualAccount.accountId": account},
    )


VIRTUAL_ACCOUNTS: Final[tuple[SimulatedAccount, ...]] = (
    _virtual("shopper@mail.example", "Approved"),
    _virtual("shopper-1001", "Approved", brand="USERACCOUNT"),
    _virtual("unknown@mail.example", "Account unknown", "800.100.195", "UNKNOWN"),
    _virtual("blocked@mail.example", "Account blocked", "800.100.172", "BLOCKED"),
    _virtual("empty@mail.example", "Not enough funds", NO_FUNDS, "FUNDS"),
    _virtual("limit@mail.example", "Over a limit", "800.100.162", "LIMIT"),
    _virtual("later@mail.example", "Not available now", "800.100.176", "LATER"),
    _virtual("listed@mail.example", "Blacklisted", "800.300.101", "LISTED"),
    _virtual("invalid@mail.example", "Account id not valid", "100.210.101", "INVALID"),
)


def _gift(
    number: str,
    title: str,
    code: str = SIMULATED_SUCCESS,
    response: str = "00",
    *,
    pin: str = "4711",
    balance: str = "",
) -> SimulatedAccount:
    return SimulatedAccount(
        kind=GiftCard.kind,
        account=number,
        title=title,
        code=code,
        response=response,
        balance=Decimal(balance) if balance else None,
        fields={"paymentBrand": "GIFTCARD", "giftCard.number": number, "giftCard.pin": pin},
    )


GIFT_CARDS: Final[tuple[SimulatedAccount, ...]] = (
    _gift("GC-10042", "Approved"),
    _gift("GC-10500", "Holds 500.00", balance="500.00"),
    _gift("GC-10020", "Holds 20.00: more is approved for a part", "000.100.110", "10", balance="20.00"),
    _gift("GC-10000", "Empty", NO_FUNDS, "51", balance="0.00"),
    _gift("GC-10042", "PIN wrong", WRONG_PIN, "55", pin=BAD_PIN),
    _gift("GC-20001", "PIN wrong too often", "800.100.178", "75"),
    _gift("GC-20002", "Expired", CARD_EXPIRED, "54"),
    _gift("GC-20003", "Blocked", "800.100.160", "62"),
    _gift("GC-20004", "Not known", "800.100.151", "14"),
)

SIMULATED_ACCOUNTS: Final = (*BANK_ACCOUNTS, *TOKEN_ACCOUNTS, *VIRTUAL_ACCOUNTS, *GIFT_CARDS)

# The first row of an account is for its number alone; later rows also depend on another field.
_BY_ACCOUNT: Final[Mapping[tuple[str, str], SimulatedAccount]] = MappingProxyType(
    {(row.kind, row.account): row for row in reversed(SIMULATED_ACCOUNTS)}
)
_BANK_BY_NUMBER: Final[Mapping[str, SimulatedAccount]] = MappingProxyType(
    {row.account[-10:]: row for row in BANK_ACCOUNTS if row.account[-10:].isdecimal() and row.code != WRONG_IBAN}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearAccount:
    """An account as the acquirer sees it: ``account`` in clear, ``expiry`` yyyy-MM or empty, one-time secrets."""

    kind: str
    account: str
    expiry: str = ""
    cryptogram: str = ""
    dtvc: str = ""
    pin: str = ""


def clear_account_from_means(means: Means) -> ClearAccount:
    """A means as the acquirer sees it."""
    month, year = getattr(means, "expiry_month", ""), getattr(means, "expiry_year", "")
    secrets = {
        name: secret.reveal()
        for name in ("cryptogram", "dtvc", "pin")
        if (secret := getattr(means, name, None)) is not None
    }
    return ClearAccount(
        kind=means.kind, account=means.account.reveal(), expiry=f"{year}-{month}" if month and year else "", **secrets
    )


def simulate_account_answer(account: ClearAccount, amount: Money, *, month: str) -> SimulatedAccountAnswer:
    """The answer for an account. ``month``: the present one, yyyy-MM. A pure look-up; cards are in cards.py."""
    assert account.kind != Card.kind
    row = _row(account)
    if account.kind == TokenAccount.kind and account.expiry and account.expiry < month:
        return SimulatedAccountAnswer(code=TOKEN_EXPIRED, response="54")
    if account.cryptogram == BAD_CRYPTOGRAM or account.dtvc in BAD_DTVC:
        return SimulatedAccountAnswer(code=NOT_VERIFIED, response="N7")
    if account.kind == GiftCard.kind and account.pin == BAD_PIN:
        return SimulatedAccountAnswer(code=WRONG_PIN, response="55")
    if row is None:
        return SimulatedAccountAnswer(code=SIMULATED_SUCCESS, response="00", approved=amount)
    if row.balance is not None and row.balance > 0:
        part = Money(min(row.balance, amount.amount), amount.currency)
        return SimulatedAccountAnswer(code=SIMULATED_SUCCESS, response="00" if part == amount else "10", approved=part)
    return SimulatedAccountAnswer(
        code=row.code,
        response=row.response,
        behaviour=row.behaviour,
        approved=amount if row.code == SIMULATED_SUCCESS else None,
    )


def _row(account: ClearAccount) -> SimulatedAccount | None:
    if account.kind == BankAccount.kind:
        return _BANK_BY_NUMBER.get(account.account[-10:])
    return _BY_ACCOUNT.get((account.kind, account.account))

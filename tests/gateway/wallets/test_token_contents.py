"""What stands inside a token, part by part: signed and encrypted rightly, and still not to be taken as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwcrypto import jwe, jwk

from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.wallets import strict_parsing, token_factory
from gateway.wallets.formats import decrypt_wallet_token
from gateway.wallets.keys import UnusableKeyError, WalletKeys, parse_wallet_keys
from gateway.wallets.strict_parsing import check_freshness, money_from_minor_units, parse_expiry, parse_moment
from gateway.wallets.token import DecryptedToken, TokenRefusalReason, WalletTokenRefusedError
from tests.gateway.wallets.test_refusals import NOW, SHEET, made

R = TokenRefusalReason
MARKS = {
    "wallet1": "applicationPrimaryAccountNumber", "wallet2": "paymentMethodDetails", "wallet3": "tokenPAN",
}  # fmt: skip
FORMS = {"wallet1": "ec_v1", "wallet2": "ecv2", "wallet3": "jwe"}


@pytest.fixture
def saying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A wallet's token whose contents were changed before they were encrypted and signed."""

    def build(wallet: str, changes: dict[str, Any], inner: str = "") -> str:
        def dumps(value: Any, **how: Any) -> str:
            if isinstance(value, dict) and MARKS[wallet] in value:
                target = value[inner] if inner else value
                target.update(changes)
                for name in [name for name, one in changes.items() if one is None]:
                    del target[name]
            return json.dumps(value, **how)

        key, keys, _ = made(wallet, FORMS[wallet])  # before the change: it is kept for all tests
        monkeypatch.setattr(token_factory, "json", SimpleNamespace(dumps=dumps))
        return token_factory.build_wallet_token(FORMS[wallet], SHEET, keys, key.maker, now=NOW)

    return build


def answer(wallet: str, token: str, keys: WalletKeys | None = None) -> DecryptedToken | TokenRefusalReason:
    try:
        return decrypt_wallet_token(wallet, token, [keys or made(wallet, FORMS[wallet])[1]], now=NOW, money=SHEET.money)
    except WalletTokenRefusedError as refused:
        return refused.reason


@pytest.mark.parametrize(
    ("wallet", "changes", "inner", "reason"),
    [
        ("wallet1", {"paymentDataType": "EMV"}, "", R.INCOMPLETE),
        ("wallet1", {"applicationExpirationDate": "3012"}, "", R.INCOMPLETE),
        ("wallet1", {"applicationExpirationDate": "301328"}, "", R.INCOMPLETE),
        ("wallet1", {"applicationPrimaryAccountNumber": "4" * 11}, "", R.INCOMPLETE),
        ("wallet1", {"applicationPrimaryAccountNumber": "4" * 20}, "", R.INCOMPLETE),
        ("wallet1", {"currencyCode": "999999"}, "", R.INCOMPLETE),
        ("wallet1", {"currencyCode": "840"}, "", R.AMOUNT_DIFFERS),
        ("wallet1", {"transactionAmount": 9201}, "", R.AMOUNT_DIFFERS),
        ("wallet1", {"transactionAmount": True}, "", R.INCOMPLETE),
        ("wallet1", {"onlinePaymentCryptogram": "short"}, "paymentData", R.INCOMPLETE),
        ("wallet2", {"gatewayMerchantId": "another"}, "", R.OTHER_RECIPIENT),
        ("wallet2", {"gatewayMerchantId": None}, "", R.OTHER_RECIPIENT),
        ("wallet2", {"messageExpiration": None}, "", R.INCOMPLETE),
        ("wallet2", {"messageExpiration": True}, "", R.INCOMPLETE),
        ("wallet2", {"messageExpiration": str(int(NOW.timestamp() * 1000))}, "", R.EXPIRED),
        ("wallet2", {"paymentMethod": "BANK"}, "", R.UNKNOWN_FORMAT),
        ("wallet2", {"paymentMethod": None}, "", R.UNKNOWN_FORMAT),
        ("wallet2", {"authMethod": "PIN"}, "paymentMethodDetails", R.UNKNOWN_FORMAT),
        ("wallet2", {"authMethod": None}, "paymentMethodDetails", R.UNKNOWN_FORMAT),
        ("wallet2", {"cryptogram": None}, "paymentMethodDetails", R.INCOMPLETE),
        ("wallet2", {"pan": "4", "dpan": "4200000000000000"}, "paymentMethodDetails", R.INCOMPLETE),
        ("wallet3", {"cryptogram": None}, "", R.INCOMPLETE),
        ("wallet3", {"tokenPanExpiration": "12030"}, "", R.INCOMPLETE),
        ("wallet3", {"tokenPanExpiration": "0030"}, "", R.INCOMPLETE),
        ("wallet3", {"utc": None}, "", R.INCOMPLETE),
        ("wallet3", {"currency_code": "USD"}, "", R.AMOUNT_DIFFERS),
        ("wallet3", {"currency_code": None}, "", R.INCOMPLETE),
    ],
)
def test_a_token_that_lacks_or_contradicts_a_part_is_refused(
    saying: Callable[..., str], wallet: str, changes: dict[str, Any], inner: str, reason: TokenRefusalReason
) -> None:
    assert answer(wallet, saying(wallet, changes, inner)) is reason


@pytest.mark.parametrize(
    ("wallet", "changes", "inner", "name", "value"),
    [
        ("wallet1", {"applicationExpirationDate": "310228"}, "", "expiry_month", "02"),
        ("wallet1", {"applicationExpirationDate": "310228"}, "", "expiry_year", "2031"),
        ("wallet1", {"eciIndicator": "7"}, "paymentData", "eci", "07"),
        ("wallet1", {"eciIndicator": "007"}, "paymentData", "eci", None),
        ("wallet1", {"cardholderName": "Al"}, "", "holder", ""),
        ("wallet1", {"cardholderName": "x" * 129}, "", "holder", ""),
        ("wallet1", {"cardholderName": "x" * 128}, "", "holder", "x" * 128),
        ("wallet1", {"cardholderName": " Jane \n Jones "}, "", "holder", "Jane Jones"),
        ("wallet1", {"cardholderName": "Jane\u0000Jones"}, "", "holder", ""),
        ("wallet1", {"cardholderName": 7}, "", "holder", ""),
        ("wallet2", {"expirationMonth": 2, "expirationYear": 31}, "paymentMethodDetails", "expiry_month", "02"),
        ("wallet2", {"expirationMonth": "02", "expirationYear": 31}, "paymentMethodDetails", "expiry_year", "2031"),
        ("wallet2", {"authMethod": "PAN_ONLY"}, "paymentMethodDetails", "kind", "PAN"),
        ("wallet2", {"authMethod": "PAN_ONLY"}, "paymentMethodDetails", "cryptogram", None),
        ("wallet2", {"authMethod": "PAN_ONLY"}, "paymentMethodDetails", "eci", None),
        ("wallet2", {"authMethod": "3DS"}, "paymentMethodDetails", "kind", "DPAN"),
        ("wallet2", {"paymentMethod": "TOKENIZED_CARD"}, "", "kind", "DPAN"),
        ("wallet3", {"tokenPanExpiration": "0231"}, "", "expiry_month", "02"),
        ("wallet3", {"tokenPanExpiration": "0231"}, "", "expiry_year", "2031"),
        ("wallet3", {"eci_indicator": "5"}, "", "eci", "05"),
        ("wallet3", {"amount": 9200}, "", "money", SHEET.money),
    ],
)
def test_a_part_of_a_token_is_read_as_it_is_written(
    saying: Callable[..., str], wallet: str, changes: dict[str, Any], inner: str, name: str, value: Any
) -> None:
    found = answer(wallet, saying(wallet, changes, inner))
    assert isinstance(found, DecryptedToken), found
    assert getattr(found, name) == value


def test_a_currency_of_two_digits_is_read_with_its_zero(saying: Callable[..., str]) -> None:
    """ISO 4217: 036 is AUD, and a number loses its zero."""
    token, money = saying("wallet1", {"currencyCode": 36}), Money.parse("92.00", "AUD")
    found = decrypt_wallet_token("wallet1", token, [made("wallet1", "ec_v1")[1]], now=NOW, money=money)
    assert found.money == money


def test_a_token_of_wallet_3_is_itself_by_its_number_its_cryptogram_and_its_time(saying: Callable[..., str]) -> None:
    ms = int(NOW.timestamp() * 1000)
    changes = [{}, {}, {"utc": str(ms - 1)}, {"tokenPAN": "4200000000000042"}, {"cryptogram": "B" * 28}]
    idents = [getattr(answer("wallet3", saying("wallet3", one)), "token_id", None) for one in changes]
    assert idents[0] == idents[1]
    assert len(set(idents)) == 4
    assert None not in idents


@pytest.mark.parametrize("wallet", ["wallet1", "wallet2"])
def test_a_whole_payment_object_or_its_token_is_taken(wallet: str) -> None:
    token = made(wallet, FORMS[wallet])[2]
    whole = json.dumps({"paymentData": json.loads(token), "paymentMethod": {}})
    assert isinstance(answer(wallet, token), DecryptedToken)
    assert isinstance(answer(wallet, whole), DecryptedToken) is (wallet == "wallet1")
    if wallet == "wallet1":
        both = json.dumps({**json.loads(token), "paymentData": "beside it"})
        assert isinstance(answer(wallet, both), DecryptedToken)


# --- signers of wallet 1 ----------------------------------------------------------------------------------------------

SIGNER, MIDDLE = "Tollhouse test signer", "Tollhouse test intermediate"


@pytest.mark.parametrize(
    ("changed", "how"),
    [
        (SIGNER, {"marker": None}),
        (SIGNER, {"authority": True}),
        (SIGNER, {"now": NOW - timedelta(days=4_000)}),
        (MIDDLE, {"marker": None}),
        (MIDDLE, {"authority": False}),
        (MIDDLE, {"now": NOW - timedelta(days=4_000)}),
    ],
)
def test_a_chain_with_one_certificate_that_is_not_for_it_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, changed: str, how: dict[str, Any]
) -> None:
    issue = token_factory._certificate

    def issued(name: str, *values: Any, **more: Any) -> Any:
        return issue(name, *values, **(more | how if name == changed else more))

    key, keys, _ = made("wallet1", "ec_v1")  # before the change: it is kept for all tests
    monkeypatch.setattr(token_factory, "_certificate", issued)
    token = token_factory.build_wallet_token("ec_v1", SHEET, keys, key.maker, now=NOW)
    assert answer("wallet1", token) is R.UNTRUSTED


# --- senders of wallet 2 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "ends", "opens"),
    [
        ("ECv2", NOW - timedelta(seconds=1), False),
        ("ECv2", NOW, False),
        ("ECv2", NOW + timedelta(seconds=1), True),
        ("ECv1", None, False),
    ],
)
def test_a_root_key_signs_by_its_own_protocol_until_it_ends(protocol: str, ends: datetime | None, opens: bool) -> None:
    _, keys, token = made("wallet2", "ecv2")
    senders = tuple(replace(one, expires=ends) for one in keys.senders if one.protocol == protocol)
    found = answer("wallet2", token, replace(keys, senders=senders))
    assert (isinstance(found, DecryptedToken), found is R.UNTRUSTED) == (opens, not opens)


@pytest.mark.parametrize(("count", "kind"), [(1, "DPAN"), (8, "DPAN"), (9, R.MALFORMED), (0, R.MALFORMED)])
def test_an_intermediate_key_has_one_to_eight_signatures(count: int, kind: Any) -> None:
    sent = json.loads(made("wallet2", "ecv2")[2])
    (signature,) = sent["intermediateSigningKey"]["signatures"]
    sent["intermediateSigningKey"]["signatures"] = [signature] * count
    found = answer("wallet2", json.dumps(sent))
    assert (found.kind if isinstance(found, DecryptedToken) else found) == kind


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("month", "year", "found"),
    [
        ("1", "30", ("01", "2030")),
        ("09", "2030", ("09", "2030")),
        (12, 2030, ("12", "2030")),
        (10, 30, ("10", "2030")),
        ("0", "30", None),
        ("00", "30", None),
        ("13", "30", None),
        ("012", "30", None),
        ("12", "1999", None),
        ("12", "2100", None),
        ("12", "3", None),
        ("12", None, None),
        (None, "30", None),
        (1.0, "30", None),
    ],
)
def test_an_expiry_is_a_month_and_a_year_of_this_century(month: Any, year: Any, found: tuple[str, str] | None) -> None:
    if found is not None:
        assert parse_expiry(month, year) == found
        return
    with pytest.raises(WalletTokenRefusedError):
        parse_expiry(month, year)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("[" * 63 + "]" * 63, True),
        ("[" * 64 + "]" * 64, False),
        ('{"b":{}}', True),
        ('{"a":1,"a":1}', False),
        ('{"b":{"a":1,"a":2}}', False),
        ("NaN", False),
        ("-Infinity", False),
        ("[]", True),
    ],
)
def test_json_has_few_brackets_no_name_twice_and_numbers_only(text: str, good: bool) -> None:
    parse = partial(strict_parsing.parse_json_object, f'{{"a":{text}}}', "it")
    if good:
        assert "a" in parse()
        return
    with pytest.raises(WalletTokenRefusedError) as refused:
        parse()
    assert refused.value.reason is R.MALFORMED


@pytest.mark.parametrize(
    ("value", "good"), [("QQ==", True), ("QR==", False), ("QQ", False), ("QQ==\n", False), ("", True)]
)
def test_base64_has_one_spelling(value: str, good: bool) -> None:
    if good:
        assert strict_parsing.decode_base64(value, "it") in (b"A", b"")
        return
    with pytest.raises(WalletTokenRefusedError):
        strict_parsing.decode_base64(value, "it")


@pytest.mark.parametrize(
    ("made_s", "reason"),
    [
        (300, None),
        (301, R.FROM_THE_FUTURE),
        (0, None),
        (-900, None),
        (-901, R.EXPIRED),
    ],
)
def test_a_time_is_fresh_from_five_minutes_ahead_to_a_quarter_of_an_hour(
    made_s: int, reason: TokenRefusalReason | None
) -> None:
    moment = NOW + timedelta(seconds=made_s)
    if reason is None:
        assert check_freshness(moment, NOW) == moment + timedelta(minutes=15)
        return
    with pytest.raises(WalletTokenRefusedError) as refused:
        check_freshness(moment, NOW)
    assert refused.value.reason is reason


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("1000", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (1_795_000_000_123, datetime(2026, 11, 18, 11, 6, 40, 123_000, tzinfo=UTC)),
        ("9" * 15, datetime(9999, 12, 31, tzinfo=UTC)),
        ("9" * 16, None),
        (True, None),
        (1.5, None),
        ("-1", None),
    ],
)
def test_a_moment_is_in_milliseconds_and_ends_with_the_calendar(value: Any, moment: datetime | None) -> None:
    if moment is not None:
        assert parse_moment(value, "it") == moment
        return
    with pytest.raises(WalletTokenRefusedError):
        parse_moment(value, "it")


@pytest.mark.parametrize(
    ("units", "currency"), [(True, "EUR"), (None, "EUR"), ("9" * 13, "EUR"), ("-1", "EUR"), ("1", None), (1.0, "EUR")]
)
def test_what_is_no_amount_of_minor_units_is_refused(units: Any, currency: str | None) -> None:
    with pytest.raises(WalletTokenRefusedError) as refused:
        money_from_minor_units(units, currency)
    assert refused.value.reason is R.INCOMPLETE


@pytest.mark.parametrize("merchant", ["merchant.example", "a" * 63, "A1" * 32])
def test_a_merchant_is_known_by_its_name_or_by_its_hash(merchant: str) -> None:
    key = made("wallet1", "ec_v1")[0]
    found = parse_wallet_keys("wallet1", key.private, {**key.facts, "merchantId": merchant}).merchant
    assert len(found) == 32
    assert (found == bytes.fromhex(merchant)) if len(merchant) == 64 else (found.hex() != merchant)


# --- keys -------------------------------------------------------------------------------------------------------------


def pem_of(key: Any) -> Secret:
    return Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


@pytest.mark.parametrize(
    ("wallet", "generate", "good"),
    [
        ("wallet2", lambda: ec.generate_private_key(ec.SECP256R1()), True),
        ("wallet2", lambda: ec.generate_private_key(ec.SECP384R1()), False),
        ("wallet2", lambda: ec.generate_private_key(ec.SECP256K1()), False),
        ("wallet3", lambda: rsa.generate_private_key(65537, 2048), True),
        ("wallet3", lambda: rsa.generate_private_key(65537, 2040), False),
        ("wallet3", lambda: ec.generate_private_key(ec.SECP256R1()), False),
        ("wallet2", lambda: rsa.generate_private_key(65537, 2048), False),
    ],
)
def test_a_key_is_of_p256_or_has_2048_bits_and_fits_its_wallet(
    wallet: str, generate: Callable[[], Any], good: bool
) -> None:
    facts = made(wallet, FORMS[wallet])[0].facts
    if good:
        assert parse_wallet_keys(wallet, pem_of(generate()), facts).key_hash
        return
    with pytest.raises(UnusableKeyError):
        parse_wallet_keys(wallet, pem_of(generate()), facts)


@pytest.mark.parametrize(("form", "good"), [("ec_v1", False), ("rsa_v1", True)])
def test_a_merchants_name_is_needed_where_the_key_is_derived_from_it(form: str, good: bool) -> None:
    key = made("wallet1", form)[0]
    facts = {**key.facts, "merchantId": ""}
    if good:
        assert parse_wallet_keys("wallet1", key.private, facts).merchant == b""
        return
    with pytest.raises(UnusableKeyError, match="merchantId"):
        parse_wallet_keys("wallet1", key.private, facts)


@pytest.mark.parametrize(
    ("protocol", "ends", "good"),
    [("ECv1", None, True), ("ECv2", None, False), ("ECv2", "1", True), ("ECv3", "1", False)],
)
def test_a_root_key_of_the_newer_protocol_says_when_it_ends(protocol: str, ends: str | None, good: bool) -> None:
    key = made("wallet2", "ecv2")[0]
    sender = {**key.facts["senders"][0], "protocolVersion": protocol, "keyExpiration": ends}
    if good:
        assert len(parse_wallet_keys("wallet2", key.private, {**key.facts, "senders": [sender]}).senders) == 1
        return
    with pytest.raises(UnusableKeyError):
        parse_wallet_keys("wallet2", key.private, {**key.facts, "senders": [sender]})


@pytest.mark.parametrize(
    ("kid", "reason"), [("", None), ("its name", None), ("another", R.WRONG_KEY)], ids=["none", "name", "another"]
)
def test_a_jwe_is_opened_by_the_key_that_it_names(kid: str, reason: TokenRefusalReason | None) -> None:
    _, keys, token = made("wallet3", "jwe")
    key = jwk.JWK()
    key.import_from_pyca(keys.private.public_key())
    opened = jwe.JWE(algs=["RSA1_5", "A128GCM"])
    own = jwk.JWK()
    own.import_from_pyca(keys.private)
    opened.deserialize(token, own)
    header = {"alg": "RSA1_5", "enc": "A128GCM"} | ({"kid": kid} if kid else {})
    box = jwe.JWE(opened.payload, json.dumps(header), algs=["RSA1_5", "A128GCM"])
    box.add_recipient(key)
    found = answer("wallet3", box.serialize(compact=True), replace(keys, kid="its name"))
    assert (found if isinstance(found, TokenRefusalReason) else None) is reason


def test_a_tokenized_card_of_the_older_protocol_is_a_device_number(saying: Callable[..., str]) -> None:
    """Marked by paymentMethod alone."""
    details = {
        "dpan": "4200000000000000", "expirationMonth": 12, "expirationYear": 2030,
        "3dsCryptogram": SHEET.cryptogram.reveal(), "3dsEciIndicator": "5",
    }  # fmt: skip
    found = answer("wallet2", saying("wallet2", {"paymentMethod": "TOKENIZED_CARD", "paymentMethodDetails": details}))
    assert isinstance(found, DecryptedToken), found
    assert (found.kind, found.eci, found.cryptogram is not None) == ("DPAN", "05", True)

"""Whatever is sent as a token is opened or refused with a reason; nothing else happens, and nothing is repeated."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jwcrypto import jwe, jwk

from gateway.core import result_codes
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.wallets import token_factory
from gateway.wallets.formats import WALLET_FORMATS, decrypt_wallet_token
from gateway.wallets.keys import UnusableKeyError, WalletKeys, parse_wallet_keys
from gateway.wallets.token import MAX_TOKEN_CHARS, DecryptedToken, TokenRefusalReason, WalletTokenRefusedError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FORMS = [(wallet, form) for wallet, forms in WALLET_FORMATS.items() for form in forms]
SHEET = token_factory.PaymentSheet(
    number=Secret("4200000000000000"),
    money=Money.parse("92.00", "EUR"),
    cryptogram=Secret("AAACAgSRBklmQCFgMpEGAAAAAAA="),
)


@lru_cache
def made(wallet: str, form: str) -> tuple[token_factory.GeneratedKey, WalletKeys, str]:
    """One key and one token of each format for all tests: making RSA keys takes long."""
    key = token_factory.generate_wallet_key(form, now=NOW)
    keys = parse_wallet_keys(wallet, key.private, key.facts)
    return key, keys, token_factory.build_wallet_token(form, SHEET, keys, key.maker, now=NOW)


def opened(wallet: str, form: str, token: str, **more: Any) -> DecryptedToken:
    return decrypt_wallet_token(wallet, token, [made(wallet, form)[1]], **{"now": NOW, "money": SHEET.money, **more})


def reason_of(wallet: str, form: str, token: str, **more: Any) -> TokenRefusalReason:
    with pytest.raises(WalletTokenRefusedError) as refused:
        opened(wallet, form, token, **more)
    return refused.value.reason


def contents(token: DecryptedToken) -> tuple[Any, ...]:
    proof = token.cryptogram.reveal() if token.cryptogram else None
    return token.number.reveal(), token.expiry_month, token.expiry_year, proof, token.eci, token.token_id


@pytest.mark.parametrize(("wallet", "form"), FORMS)
def test_a_made_token_opens_with_its_key(wallet: str, form: str) -> None:
    """Mobile wallets: a token to try with is like a wallet's."""
    found = opened(wallet, form, made(wallet, form)[2])
    assert contents(found)[:5] == ("4200000000000000", "12", "2030", SHEET.cryptogram.reveal(), "05")
    assert found.kind == "DPAN"
    assert found.money in (None, SHEET.money)
    assert "4200000000" not in repr(found)


@pytest.mark.parametrize(("wallet", "form"), FORMS)
def test_an_expired_token_and_an_altered_one_are_refused(wallet: str, form: str) -> None:
    """Mobile wallets."""
    key, keys, token = made(wallet, form)
    old = token_factory.build_wallet_token(form, SHEET, keys, key.maker, now=NOW, expired=True)
    assert reason_of(wallet, form, old) is TokenRefusalReason.EXPIRED
    altered = {
        "wallet1": TokenRefusalReason.TAMPERED,
        "wallet2": TokenRefusalReason.TAMPERED,
        "wallet3": TokenRefusalReason.UNDECIPHERABLE,
    }[wallet]
    assert reason_of(wallet, form, token_factory.tamper_token(token)) is altered


@pytest.mark.parametrize(("wallet", "form"), FORMS)
def test_a_token_for_another_key_is_refused(wallet: str, form: str) -> None:
    """Mobile wallets: keys per channel."""
    key, _, token = made(wallet, form)
    other = parse_wallet_keys(wallet, token_factory.generate_wallet_key(form, now=NOW).private, key.facts)
    with pytest.raises(WalletTokenRefusedError) as refused:
        decrypt_wallet_token(wallet, token, [other], now=NOW)
    assert refused.value.reason is TokenRefusalReason.WRONG_KEY
    # While keys rotate, either opens.
    assert decrypt_wallet_token(wallet, token, [other, made(wallet, form)[1]], now=NOW).number == SHEET.number


@pytest.mark.parametrize(("wallet", "form"), [pair for pair in FORMS if pair[0] != "wallet3"])
def test_a_token_signed_by_somebody_else_is_refused(wallet: str, form: str) -> None:
    """Mobile wallets: the signature leads to a configured root."""
    keys = made(wallet, form)[1]
    forger = token_factory.generate_wallet_key(form, now=NOW)
    token = token_factory.build_wallet_token(form, SHEET, keys, forger.maker, now=NOW)
    expected = TokenRefusalReason.TAMPERED if form == "ecv1" else TokenRefusalReason.UNTRUSTED
    assert reason_of(wallet, form, token) is expected


@pytest.mark.parametrize(("wallet", "form"), [pair for pair in FORMS if pair[0] != "wallet2"])
def test_a_token_for_another_amount_is_refused(wallet: str, form: str) -> None:
    """Mobile wallets: what the shopper agreed to is what is paid."""
    token = made(wallet, form)[2]
    for text, currency in (("92.01", "EUR"), ("92.00", "USD")):
        assert reason_of(wallet, form, token, money=Money.parse(text, currency)) is TokenRefusalReason.AMOUNT_DIFFERS


def test_a_card_without_proof_is_told_apart() -> None:
    """Mobile wallets, wallet 2: PAN_ONLY."""
    key, keys, _ = made("wallet2", "ecv2")
    token = token_factory.build_wallet_token("ecv2", replace(SHEET, card_only=True), keys, key.maker, now=NOW)
    found = opened("wallet2", "ecv2", token)
    assert (found.kind, found.cryptogram, found.eci) == ("PAN", None, None)


@pytest.mark.parametrize(("wallet", "form"), FORMS)
@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_token_with_any_character_changed_is_refused_or_says_the_same(
    wallet: str, form: str, data: st.DataObject
) -> None:
    """Mobile wallets: nothing that a token says can be altered. Some wrapping can, as the case of a hex digit."""
    token = made(wallet, form)[2]
    place = data.draw(st.integers(0, len(token) - 1))
    char = data.draw(st.one_of(st.sampled_from('AZaz09+/=-_.{}[]",:\\ \n'), st.characters(codec="utf-8")))
    changed = token[:place] + char + token[place + 1 :]
    try:
        found = opened(wallet, form, changed)
    except WalletTokenRefusedError:
        return
    assert contents(found) == contents(opened(wallet, form, token))


@pytest.mark.parametrize("form", WALLET_FORMATS["wallet1"])
@settings(max_examples=200, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_signature_with_any_byte_changed_is_refused_or_says_the_same(form: str, data: st.DataObject) -> None:
    """Mobile wallets, wallet 1: a CMS message is a large thing to parse."""
    sent = json.loads(made("wallet1", form)[2])
    octets = bytearray(b64decode(sent["signature"]))
    octets[data.draw(st.integers(0, len(octets) - 1))] ^= data.draw(st.integers(1, 255))
    sent["signature"] = b64encode(octets).decode()
    try:
        found = opened("wallet1", form, json.dumps(sent))
    except WalletTokenRefusedError:
        return
    assert contents(found) == contents(opened("wallet1", form, made("wallet1", form)[2]))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_token_with_any_member_replaced_is_refused(data: st.DataObject) -> None:
    """Mobile wallets: wrong types, missing parts, other shapes."""
    wallet, form = data.draw(st.sampled_from([pair for pair in FORMS if pair[0] != "wallet3"]))
    sent = json.loads(made(wallet, form)[2])
    name = data.draw(st.sampled_from(sorted(sent)))
    inner = sent[name] if isinstance(sent[name], dict) and data.draw(st.booleans()) else sent
    name = data.draw(st.sampled_from(sorted(inner))) if inner is not sent else name
    inner[name] = data.draw(_JSON)
    assert reason_of(wallet, form, json.dumps(sent)).code in result_codes.RESULT_CODES


@pytest.mark.parametrize("wallet", WALLET_FORMATS)
@pytest.mark.parametrize(
    "token",
    [
        "",
        "garbage",
        "{}",
        "[]",
        "null",
        '"text"',
        "1e999",
        "{" * 9000,
        '{"a":' * 2000 + "1" + "}" * 2000,
        '{"version":"EC_v1","version":"EC_v1"}',
        '{"version":NaN}',
        '{"version":"\\ud800"}',
        "a.b.c.d.e",
        "....",
        "x" * (MAX_TOKEN_CHARS + 1),
        '{"n":' + "9" * 5000 + "}",
        "\0",
        '{"3DS":{"data":"a.b.c.d.e"}}',
    ],
)
def test_what_is_no_token_is_refused_as_malformed(wallet: str, token: str) -> None:
    """Mobile wallets; Errors."""
    assert reason_of(wallet, WALLET_FORMATS[wallet][0], token).code in ("200.300.404", "200.100.602")


def test_a_signature_of_endless_nesting_is_refused() -> None:
    """Mobile wallets, wallet 1."""
    sent = json.loads(made("wallet1", "ec_v1")[2])
    sent["signature"] = b64encode(b"\x30\x80" * 4000).decode()
    assert reason_of("wallet1", "ec_v1", json.dumps(sent)) is TokenRefusalReason.MALFORMED


def test_other_formats_are_named_and_refused() -> None:
    """Mobile wallets: three published formats, and no others."""
    sent = json.loads(made("wallet1", "ec_v1")[2])
    assert reason_of("wallet1", "ec_v1", json.dumps(sent | {"version": "EC_v2"})) is TokenRefusalReason.UNKNOWN_FORMAT
    sent = json.loads(made("wallet2", "ecv2")[2])
    assert (
        reason_of("wallet2", "ecv2", json.dumps(sent | {"protocolVersion": "ECv0"}))
        is TokenRefusalReason.UNKNOWN_FORMAT
    )
    # Signed as ECv2, it is no ECv1 token by being called so.
    assert reason_of("wallet2", "ecv2", json.dumps(sent | {"protocolVersion": "ECv1"})) is TokenRefusalReason.TAMPERED


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "RSA1_5", "enc": "A128CBC-HS256"},
        {"alg": "RSA-OAEP", "enc": "A192GCM"},
        {"alg": "RSA1_5", "enc": "A128GCM", "zip": "DEF"},
    ],
)
def test_a_jwe_of_other_algorithms_is_refused(header: dict[str, str]) -> None:
    """Mobile wallets, wallet 3: algorithms are on a list."""
    key = jwk.JWK()
    key.import_from_pyca(made("wallet3", "jwe")[1].private.public_key())
    box = jwe.JWE(b"{}", json.dumps(header), algs=[header["alg"], header["enc"]])
    box.add_recipient(key)
    assert reason_of("wallet3", "jwe", box.serialize(compact=True)) is TokenRefusalReason.UNKNOWN_FORMAT


@pytest.mark.parametrize("alg", ["RSA1_5", "RSA-OAEP", "RSA-OAEP-256"])
@pytest.mark.parametrize("enc", ["A128GCM", "A256GCM"])
def test_a_jwe_is_taken_in_every_algorithm_of_the_list_alone_or_in_its_3ds_object(alg: str, enc: str) -> None:
    """Mobile wallets, wallet 3."""
    key = jwk.JWK()
    key.import_from_pyca(made("wallet3", "jwe")[1].private.public_key())
    ms = str(int(NOW.timestamp() * 1000))
    plain = {
        "amount": "9200",
        "currency_code": "EUR",
        "utc": ms,
        "tokenPAN": "4200000000000000",
        "tokenPanExpiration": "1230",
        "cryptogram": SHEET.cryptogram.reveal(),
    }
    box = jwe.JWE(json.dumps(plain).encode(), json.dumps({"alg": alg, "enc": enc}), algs=[alg, enc])
    box.add_recipient(key)
    compact = box.serialize(compact=True)
    credential = json.dumps({"method": "3DS", "3DS": {"data": compact, "type": "S", "version": "100"}})
    first, second = opened("wallet3", "jwe", compact), opened("wallet3", "jwe", credential)
    assert contents(first) == contents(second)
    assert first.eci is None


def test_tokens_from_the_future_are_refused() -> None:
    """Mobile wallets: clocks differ by minutes, not more."""
    for wallet, form in (("wallet1", "ec_v1"), ("wallet3", "jwe")):
        token = made(wallet, form)[2]
        assert opened(wallet, form, token, now=NOW - timedelta(minutes=4)).kind == "DPAN"
        assert reason_of(wallet, form, token, now=NOW - timedelta(minutes=6)) is TokenRefusalReason.FROM_THE_FUTURE


def test_without_keys_the_answer_says_so() -> None:
    """Mobile wallets: keys per channel."""
    with pytest.raises(WalletTokenRefusedError) as refused:
        decrypt_wallet_token("wallet1", "{}", [], now=NOW)
    assert refused.value.reason is TokenRefusalReason.NO_KEYS


def test_every_reason_has_a_code_of_the_table_and_words() -> None:
    """Mobile wallets; Errors."""
    for reason in TokenRefusalReason:
        assert result_codes.http_status(reason.code) == 400
        assert reason.words


@pytest.mark.parametrize(
    ("wallet", "change"),
    [
        ("wallet1", {"roots": []}),
        ("wallet1", {"merchantId": ""}),
        ("wallet1", {"roots": ["no certificate"]}),
        ("wallet2", {"senders": []}),
        ("wallet2", {"recipients": []}),
        ("wallet2", {"senders": [{"keyValue": "x"}]}),
    ],
)
def test_a_key_that_could_open_nothing_is_not_kept(wallet: str, change: dict[str, Any]) -> None:
    """Mobile wallets: keys per channel."""
    key = made(wallet, WALLET_FORMATS[wallet][0])[0]
    with pytest.raises(UnusableKeyError):
        parse_wallet_keys(wallet, key.private, {**key.facts, **change}, check=True)


def test_a_key_of_the_wrong_kind_is_not_kept() -> None:
    """Mobile wallets: keys per channel."""
    ec_key, rsa_key = made("wallet2", "ecv2")[0], made("wallet3", "jwe")[0]
    for wallet, private, facts in (
        ("wallet2", rsa_key.private, ec_key.facts),
        ("wallet3", ec_key.private, {}),
        ("wallet3", Secret("no key"), {}),
    ):
        with pytest.raises(UnusableKeyError):
            parse_wallet_keys(wallet, private, facts, check=True)

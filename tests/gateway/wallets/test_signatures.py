"""The parts of a wallet's signature and the texts of its token, each alone: what stands before it or behind it would
refuse most of these, too.

Source: RFC 5652, 5 and 11; docs/wallets.md.
"""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from asn1crypto import cms as asn1

from gateway.wallets import cms, strict_parsing
from gateway.wallets.token import TokenRefusalReason, WalletTokenRefusedError
from tests.gateway.wallets.test_refusals import NOW, made

R = TokenRefusalReason


def take_apart() -> tuple[Any, bytes]:
    """The signature of a good token, to be changed, and what it signs."""
    sent = json.loads(made("wallet1", "ec_v1")[2])
    header = sent["header"]
    content = b64decode(header["ephemeralPublicKey"]) + b64decode(sent["data"]) + bytes.fromhex(header["transactionId"])
    return asn1.ContentInfo.load(b64decode(sent["signature"])), content


def verify(outer: Any, content: bytes) -> datetime | TokenRefusalReason:
    try:
        return cms.verify_cms_signature(outer.dump(force=True), content, made("wallet1", "ec_v1")[1].roots)
    except WalletTokenRefusedError as refused:
        return refused.reason


def test_the_signature_of_a_made_token_holds_and_of_no_other_content() -> None:
    outer, content = take_apart()
    assert verify(outer, content) == NOW
    assert verify(outer, content + b"x") is R.TAMPERED


def change_content(signed: Any) -> None:
    signed["encap_content_info"]["content"] = b"content of its own"


def change_content_type(signed: Any) -> None:
    signed["encap_content_info"]["content_type"] = "signed_data"


def add_signer(signed: Any) -> None:
    signed["signer_infos"].append(signed["signer_infos"][0].copy())


def take_signer(signed: Any) -> None:
    signed["signer_infos"] = asn1.SignerInfos([])


def add_certificates(signed: Any) -> None:
    for _ in range(cms.MAX_CERTIFICATES):
        signed["certificates"].append(signed["certificates"][0].copy())


@pytest.mark.parametrize("change", [change_content, change_content_type, add_signer, take_signer, add_certificates])
def test_a_signature_is_detached_and_has_one_signer_and_a_few_certificates(change: Any) -> None:
    outer, content = take_apart()
    change(outer["content"])
    assert verify(outer, content) is R.MALFORMED


# --- attributes -----------------------------------------------------------------------------------------------------


def build_signer(content: bytes, *left_out: str, digest: str = "sha256", **changed: Any) -> Any:
    """Signed attributes without those of ``left_out``, and with others in their place."""
    values = {
        "content_type": "data",
        "message_digest": sha256(content).digest(),
        "signing_time": asn1.Time({"utc_time": NOW}),
        **changed,
    }
    attributes = [{"type": name, "values": [value]} for name, value in values.items() if name not in left_out]
    return asn1.SignerInfo({"digest_algorithm": {"algorithm": digest}, "signed_attrs": attributes})


def test_attributes_tell_when_their_own_content_was_signed() -> None:
    assert cms._attributes(build_signer(b"content"), b"content") == NOW.astimezone(UTC)
    with pytest.raises(WalletTokenRefusedError) as refused:
        cms._attributes(build_signer(b"content"), b"other content")
    assert refused.value.reason is R.TAMPERED


@pytest.mark.parametrize(
    ("left_out", "changes"),
    [
        (("content_type",), {}),
        (("message_digest",), {}),
        (("signing_time",), {}),
        ((), {"content_type": "signed_data"}),
        ((), {"digest": "sha1"}),
        ((), {"digest": "sha512"}),
    ],
)
def test_attributes_of_another_kind_or_too_few_are_refused(left_out: tuple[str, ...], changes: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError)):
        cms._attributes(build_signer(b"content", *left_out, **changes), b"content")


@pytest.mark.parametrize("name", ["content_type", "message_digest", "signing_time"])
def test_an_attribute_that_stands_twice_or_has_two_values_is_refused(name: str) -> None:
    """The one that is read might not be the one that a reader of the log saw."""
    signer = build_signer(b"content")
    (index,) = (number for number, one in enumerate(signer["signed_attrs"]) if one["type"].native == name)
    twice = build_signer(b"content")
    twice["signed_attrs"].append(twice["signed_attrs"][index].copy())
    signer["signed_attrs"][index]["values"].append(signer["signed_attrs"][index]["values"][0].copy())
    for one in (twice, signer):
        with pytest.raises(ValueError, match="stands twice"):
            cms._attributes(one, b"content")


# --- texts ----------------------------------------------------------------------------------------------------------

LONE = "half \ud800 of a pair"


@pytest.mark.parametrize(
    ("value", "good"), [("text", True), ("😀", True), ("", False), (7, False), (None, False), (LONE, False)]
)
def test_a_text_is_not_empty_and_can_be_encoded(value: Any, good: bool) -> None:
    """JSON may hold half of a surrogate pair, which no database and no log takes."""
    assert strict_parsing.read_optional_text({"name": value}, "name") == (value if good else "")
    if good:
        assert strict_parsing.read_text({"name": value}, "name") == value
        return
    with pytest.raises(WalletTokenRefusedError):
        strict_parsing.read_text({"name": value}, "name")


@pytest.mark.parametrize(
    ("code", "good"),
    [(0xD7FF, True), (0xD800, False), (0xDBFF, False), (0xDC00, False), (0xDFFF, False), (0xE000, True)],
)
def test_every_half_of_a_pair_is_refused_and_its_neighbours_are_not(code: int, good: bool) -> None:
    assert bool(strict_parsing.read_optional_text({"name": chr(code)}, "name")) == good


@pytest.mark.parametrize(("digits", "good"), [(11, False), (12, True), (19, True), (20, False)])
def test_a_number_has_12_to_19_digits_and_the_first_name_that_is_there_counts(digits: int, good: bool) -> None:
    values = {"second": "4" * digits, "third": "5" * 16}
    if good:
        assert strict_parsing.read_account_number(values, "first", "second", "third").reveal() == "4" * digits
        return
    with pytest.raises(WalletTokenRefusedError):
        strict_parsing.read_account_number(values, "first", "second", "third")


@pytest.mark.parametrize(("length", "good"), [(15, False), (16, True), (88, True), (89, False)])
def test_a_cryptogram_has_16_to_88_characters_of_base64(length: int, good: bool) -> None:
    if good:
        assert strict_parsing.read_cryptogram({"proof": "A" * length}, "proof").reveal() == "A" * length
        return
    with pytest.raises(WalletTokenRefusedError):
        strict_parsing.read_cryptogram({"proof": "A" * length}, "proof")


@pytest.mark.parametrize(("value", "good"), [("00ff", True), ("00FF", True), ("0", False), ("0g", False), ("", False)])
def test_hexadecimal_digits_come_in_pairs(value: str, good: bool) -> None:
    if good:
        assert strict_parsing.decode_hexadecimal(value, "it") == bytes.fromhex(value)
        return
    with pytest.raises(WalletTokenRefusedError):
        strict_parsing.decode_hexadecimal(value, "it")

"""Secrets are typed: nothing but reveal() gives the text."""

import copy
import json
import logging
import pickle

import pytest

from gateway.core.secret import RedactedDict, Secret, SecretBytes

HIDDEN = [Secret("4200000000000000"), SecretBytes(b"4200000000000000")]


@pytest.mark.parametrize("secret", HIDDEN, ids=["text", "bytes"])
def test_a_secret_prints_three_dots_wherever_it_is_printed(secret: Secret | SecretBytes) -> None:
    """Style, habit 9."""
    printed = [repr(secret), str(secret), f"{secret}", f"{secret:>5}", f"{secret!r}", repr({"n": [secret]})]
    printed.append(logging.makeLogRecord({"msg": "%s %r", "args": (secret, secret)}).getMessage())
    for text in printed:
        assert "•••" in text
        assert "4200" not in text


@pytest.mark.parametrize("secret", HIDDEN, ids=["text", "bytes"])
def test_a_secret_goes_into_no_json_and_no_pickle(secret: Secret | SecretBytes) -> None:
    """Style, habit 9."""
    with pytest.raises(TypeError):
        json.dumps({"a": secret})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError):
            pickle.dumps(secret, protocol=protocol)
    with pytest.raises(TypeError):
        hash(secret)
    with pytest.raises(AttributeError):
        secret._text = "x"
    assert not hasattr(secret, "__dict__")
    assert copy.deepcopy([secret])[0] is secret


def test_only_reveal_gives_the_text_and_only_secrets_are_equal() -> None:
    """Style, habit 9."""
    assert Secret("a").reveal() == "a"
    assert SecretBytes(b"a").reveal() == b"a"
    assert Secret("é") == Secret("é")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert Secret("a") != SecretBytes(b"a")
    assert not Secret("")
    with pytest.raises(TypeError):
        Secret(b"a")  # type: ignore[arg-type]


@pytest.mark.parametrize("secret", HIDDEN, ids=["text", "bytes"])
def test_a_secret_is_neither_changed_nor_emptied_and_its_copy_is_itself(secret: Secret | SecretBytes) -> None:
    name = "_text" if isinstance(secret, Secret) else "_octets"
    with pytest.raises(AttributeError):
        setattr(secret, name, "x")
    with pytest.raises(AttributeError):
        delattr(secret, name)
    assert copy.copy(secret) is secret
    assert copy.deepcopy(secret) is secret
    assert len(secret.reveal()) == 16


def test_an_empty_secret_is_none_and_another_kind_of_value_is_no_secret() -> None:
    assert (bool(Secret("0")), bool(Secret("")), bool(SecretBytes(b"\0")), bool(SecretBytes(b""))) == (
        True, False, True, False,
    )  # fmt: skip
    assert (len(Secret("")), len(Secret("é")), len(Secret("4711"))) == (0, 1, 4)
    for wrong in (b"a", None, 7):
        with pytest.raises(TypeError):
            Secret(wrong)  # type: ignore[arg-type]
    for other in ("a", None, bytearray(b"a")):
        with pytest.raises(TypeError):
            SecretBytes(other)  # type: ignore[arg-type]


def test_bytes_are_equal_to_the_same_bytes_alone() -> None:
    assert SecretBytes(b"a") == SecretBytes(b"a")
    assert SecretBytes(b"a") != SecretBytes(b"b")
    assert SecretBytes(b"a") != b"a"
    assert Secret("\ud800") == Secret("\ud800")
    assert Secret("\ud800") != Secret("\ud801")


def test_a_message_with_secrets_in_clear_tells_how_many_fields_it_has() -> None:
    message = RedactedDict(number="4200000000000000", month="05")
    assert repr(message) == str(message) == f"{message}" == "<2 fields>"
    assert message == {"number": "4200000000000000", "month": "05"}

"""Secrets are typed: nothing but reveal() gives the text."""

import copy
import json
import logging
import pickle

import pytest

from gateway.core.secret import Secret, SecretBytes

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

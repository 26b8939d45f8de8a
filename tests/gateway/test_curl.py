"""Commands to paste: a shell passes on what was sent, and runs none of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from gateway.core.curl import format_curl_command

HOSTILE = [
    "$(touch ran)", "`touch ran`", '"; touch ran; "', "'; touch ran; '", "a\\", "!!", "$HOME", "${HOME}", "$HOME x",
    "a&b=c", "Jane Jones", "Zoë", "50%", "a\nb", "#", "*", "~", "", "92.00", "\\$(touch ran)", "x' $(touch ran) '",
]  # fmt: skip


def _words(command: str, folder: Path) -> list[str]:
    """The words that curl gets from a shell. $ENTITY_ID is set, as a reader sets it."""
    script = f"ENTITY_ID=e1; TOKEN=t1; curl() {{ printf '%s\\0' \"$@\"; }}\n{command}\n"
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert not (folder / "ran").exists()
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", ["merchantMemo", "customParameters[a b]", "x$(touch ran)", "y'z\"`touch ran`"])
def test_a_pasted_post_sends_what_was_sent(tmp_path: Path, name: str, value: str) -> None:
    words = _words(format_curl_command("POST", "http://localhost/v1/payments", {name: value}), tmp_path)
    assert words[:5] == ["http://localhost/v1/payments", "-H", "Authorization: Bearer t1", "-d", "entityId=e1"]
    kind, pair = words[5:]
    if value == "$HOME" and "$" not in name and "`" not in name:
        return  # a name in capitals behind a $ is a variable for the reader to fill in
    assert pair == f"{name}={value}"
    assert kind == "--data-urlencode" or value.replace(".", "").isalnum() or value == ""


@pytest.mark.parametrize("value", [value for value in HOSTILE if value != "$HOME"])
def test_a_pasted_get_asks_for_what_was_asked(tmp_path: Path, value: str) -> None:
    address = "http://localhost/v1/query/$(touch ran)/a b/$ENTITY_ID"
    url, *_ = _words(format_curl_command("GET", address, {"x$(touch ran)": value}), tmp_path)
    parts = urlsplit(url)
    assert parts.path == "/v1/query/%24%28touch%20ran%29/a%20b/e1"
    assert parse_qsl(parts.query, keep_blank_values=True) == [("entityId", "e1"), ("x$(touch ran)", value)]


def test_a_header_is_one_word(tmp_path: Path) -> None:
    command = format_curl_command("DELETE", "http://localhost/v1/x", {}, headers={"Idempotency-Key": 'a"$(touch ran)'})
    assert 'Idempotency-Key: a"$(touch ran)' in _words(command, tmp_path)

"""Mail addresses that this gateway sends to."""

from __future__ import annotations

import pytest

from gateway.core.mail_address import parse_mail_address


@pytest.mark.parametrize(
    "text",
    [
        "", "jane", "a@b", "jane@localhost", "jane@[127.0.0.1]", "jane@[IPv6:::1]", "jane@[10.0.0.5]", "jane@127.0.0.1",
        '"\x0b"@mail.example', "jane@mail.example\nBcc: all@mail.example", "jane@mail.example,all@mail.example",
        "jane@mail.example>", f"jane@{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 20}.example",
    ],
)  # fmt: skip
def test_what_no_mail_is_sent_to(text: str) -> None:
    """Among it addresses and names of machines inside: the mail server would open a connection to them."""
    assert parse_mail_address(text) == ""


@pytest.mark.parametrize("text", ["jane@mail.example", " jane.o'neill+shop@mail.example\n", "jane@müller.example"])
def test_an_address_is_taken_without_blanks_around_it(text: str) -> None:
    assert parse_mail_address(text) == text.strip()

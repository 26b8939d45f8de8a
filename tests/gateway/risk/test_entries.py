"""The entries that a risk list may have, field by field, from both sides of each rule. Source: docs/risk.md."""

from __future__ import annotations

import pytest

from gateway.risk.fields import find_entry_fault, normalize_entry

RIGHT = [
    ("customer.ip", "192.0.2.7"), ("customer.ip", "192.0.2.0/24"), ("customer.ip", "2001:db8::/32"),
    ("card.bin", "420000"), ("account", "0123456789abcdef0123456789abcdef"), ("billing.country", "DE"),
    ("customer.email", "a@b"), ("customer.emailDomain", "mail.example"), ("customer.emailDomain", "a.b"),
]  # fmt: skip
WRONG = [
    ("customer.ip", "192.0.2"), ("customer.ip", "192.0.2.256"), ("customer.ip", "shop.example"),
    ("card.bin", "42000"), ("card.bin", "4200000"), ("card.bin", "42000a"), ("account", "0123456789abcdef"),
    ("account", "0123456789ABCDEF0123456789ABCDEF"), ("billing.country", "de"), ("billing.country", "DEU"),
    ("customer.email", "@mail.example"), ("customer.email", "mail.example"), ("customer.emailDomain", "mail"),
    ("customer.emailDomain", "jane@mail.example"), ("customer.emailDomain", "@mail.example"),
    ("customer.emailDomain", ".example"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_what_may_stand_in_a_list(name: str, value: str) -> None:
    assert find_entry_fault(name, value) is None


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_may_not(name: str, value: str) -> None:
    assert find_entry_fault(name, value)


def test_an_entry_is_kept_as_it_is_looked_for() -> None:
    assert normalize_entry("customer.ip", "192.0.2.7/32") == normalize_entry("customer.ip", "192.0.2.7")
    assert normalize_entry("customer.email", "JANE@Mail.Example") == normalize_entry(
        "customer.email", "jane@mail.example"
    )

"""What a payment's request says to risk rules: each field's values in their comparable form. Pure.

Source: Part A, Bank account, Customer, Billing address; Part B, Risk; docs/risk.md.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.core import brands
from gateway.core.money import Money
from gateway.risk.fields import (
    MAX_VALUE_CHARS,
    RISK_FIELDS,
    VELOCITY_FIELDS,
    RiskSubject,
    build_risk_subject,
    find_entry_fault,
    is_risk_field,
    list_entry_candidates,
    normalize_entry,
    normalize_value,
    parse_ip_address,
    parse_risk_parameter,
)

NOW = datetime(2026, 1, 7, 12, tzinfo=UTC)


def subject(sent: dict[str, str] | None = None, **more: Any) -> RiskSubject:
    given: dict[str, Any] = {"money": Money.parse("92.00", "EUR"), "brand": "VISA", "payment_type": "DB", "now": NOW}
    return build_risk_subject(sent or {}, **given | more)


@pytest.mark.parametrize(
    ("sent", "values"),
    [
        ({"customer.email": " Jane@Mail.Example "}, {"customer.email": "jane@mail.example",
                                                       "customer.emailDomain": "mail.example"}),
        ({"customer.email": "odd@one@Mail.Example"}, {"customer.email": "odd@one@mail.example",
                                                      "customer.emailDomain": "mail.example"}),
        ({"customer.ip": "::FFFF:192.0.2.7"}, {"customer.ip": "192.0.2.7"}),
        ({"customer.ip": "2001:DB8::0:1"}, {"customer.ip": "2001:db8::1"}),
        ({"customer.ip": " Not-One "}, {"customer.ip": "not-one"}),
        ({"customer.phone": "+49 (0) 89-1"}, {"customer.phone": "490891"}),
        ({"customer.phone": "0049 89 1"}, {"customer.phone": "49891"}),
        ({"customer.mobile": "170"}, {"customer.phone": "170"}),
        ({"customer.workPhone": "180"}, {"customer.phone": "180"}),
        ({"customer.phone": "none"}, {}),
        ({"customer.merchantCustomerId": " c-1 "}, {"customer.merchantCustomerId": "c-1"}),
        ({"customer.browser.deviceId": "d1"}, {"customer.deviceId": "d1"}),
        ({"customer.app.deviceId": "d2"}, {"customer.deviceId": "d2"}),
        ({"customer.browserFingerprint.id": "f1"}, {"customer.browserFingerprint": "f1"}),
        ({"customer.browserFingerprint.value": "f2"}, {"customer.browserFingerprint": "f2"}),
        ({"customer.status": "NEW"}, {"customer.status": "NEW"}),
        ({"customer.category": "COMPANY"}, {"customer.category": "COMPANY"}),
        ({"billing.country": "DE"}, {"billing.country": "DE"}),
        ({"billing.postcode": "80331"}, {"billing.postcode": "80331"}),
        ({"shipping.country": "FR"}, {"shipping.country": "FR"}),
        ({"shipping.method": "OVERNIGHT"}, {"shipping.method": "OVERNIGHT"}),
        ({"bankAccount.country": "AT"}, {"bankAccount.country": "AT"}),
        ({"risk.merchantWebsite": "https://shop.example"}, {"risk.merchantWebsite": "https://shop.example"}),
        ({"risk.accountToken": "t"}, {"risk.accountToken": "t"}),
        ({"risk.serviceId": "s"}, {"risk.serviceId": "s"}),
        ({"risk.parameters[loyalty]": " Gold "}, {"risk.parameters[loyalty]": " Gold "}),
        ({"billing.country": ""}, {}),
        ({"billing.city": "Munich"}, {}),
    ],
    ids=str,
)  # fmt: skip
def test_each_parameter_is_a_value_of_its_field_alone(sent: dict[str, str], values: dict[str, str]) -> None:
    own = {"brand": ("VISA",), "currency": ("EUR",), "paymentType": ("DB",)}
    assert subject(sent).values == {**own, **{name: (value,) for name, value in values.items()}}


def test_several_numbers_are_each_a_value_and_the_same_one_is_one() -> None:
    sent = {"customer.workPhone": "3", "customer.phone": "+1", "customer.mobile": "001"}
    assert subject(sent).of("customer.phone") == ("1", "3")


@pytest.mark.parametrize("name", ["customer.merchantCustomerId", "risk.parameters[loyalty]"])
@pytest.mark.parametrize(("length", "kept"), [(511, 511), (512, 512), (513, 512)])
def test_a_long_value_is_compared_by_its_first_characters(name: str, length: int, kept: int) -> None:
    value = "".join(str(place % 10) for place in range(length))
    assert MAX_VALUE_CHARS == 512
    assert subject({name: value}).of(name) == (value[:kept],)
    assert normalize_value(name, value) == value[:kept]


@pytest.mark.parametrize(
    ("sent", "money", "brand", "at"),
    [
        ({}, "92.00", "VISA", NOW),
        ({"risk.amount": "5.00"}, "5.00", "VISA", NOW),
        ({"risk.brand": "MASTER"}, "92.00", "MASTER", NOW),
        ({"risk.orderTimestamp": "2026-02-03 04:05:06"}, "92.00", "VISA", datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)),
    ],
)
def test_what_the_merchant_says_of_the_order_goes_before_the_payments_own(
    sent: dict[str, str], money: str, brand: str, at: datetime
) -> None:
    found = subject(sent)
    assert (found.money, found.of("brand"), found.at) == (Money.parse(money, "EUR"), (brand,), at)
    assert (found.of("currency"), found.of("paymentType")) == (("EUR",), ("DB",))


def test_a_cards_issuer_is_known_by_its_first_digits() -> None:
    known = brands.find_issuer("420000")
    found = subject(card_bin="42000000", accounts=("aa", "bb"))
    assert found.of("card.bin") == ("420000",)
    assert found.of("account") == ("aa", "bb")
    assert known is not None
    assert known.country != known.type
    assert [found.of(f"card.{name}") for name in ("issuerCountry", "type", "level")] == [
        (value,) if value else () for value in (known.country, known.type, known.level)
    ]
    plain = subject()
    assert not any(plain.of(name) for name in ("card.bin", "card.issuerCountry", "card.type", "card.level", "account"))


def test_velocities_count_by_who_pays_and_never_by_what_many_share() -> None:
    assert set(VELOCITY_FIELDS) == {
        "customer.email", "customer.emailDomain", "customer.ip", "customer.phone", "customer.merchantCustomerId",
        "customer.deviceId", "customer.browserFingerprint", "account", "card.bin", "risk.accountToken",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("risk.parameters[abc]", "abc"),
        ("risk.parameters[ab]", None),
        (f"risk.parameters[{'a' * 64}]", "a" * 64),
        (f"risk.parameters[{'a' * 65}]", None),
        ("risk.parameters[a.b_C9]", "a.b_C9"),
        ("risk.parameters[a-b]", None),
        ("risk.parameters[abc", None),
        ("xrisk.parameters[abc]", None),
        ("risk.amount", None),
    ],
)
def test_a_custom_parameter_has_a_key_of_3_to_64_characters(name: str, key: str | None) -> None:
    assert parse_risk_parameter(name) == key
    assert is_risk_field(name) is (key is not None)


@pytest.mark.parametrize("name", sorted(RISK_FIELDS))
def test_every_field_of_the_table_may_be_used(name: str) -> None:
    assert is_risk_field(name)


@pytest.mark.parametrize("name", ["", "card.number", "customer", "bankAccount.mandate.id", "transactionDueDate"])
def test_no_other_field_may(name: str) -> None:
    assert not is_risk_field(name)


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        (" 192.0.2.7 ", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:0::7", "2001:db8::7"),
        ("192.0.2.256", None),
        ("192.0.2.0/24", None),
        ("", None),
    ],
)
def test_an_address_is_read_in_any_notation_and_nothing_else_is_one(written: str, address: str | None) -> None:
    found = parse_ip_address(written)
    assert (str(found) if found is not None else None) == address


def test_an_address_is_in_every_network_around_it_and_in_no_other() -> None:
    found = list_entry_candidates("customer.ip", "192.0.2.7")
    assert len(found) == len(set(found)) == 33
    assert found[0] == "192.0.2.7"
    assert {"0.0.0.0/0", "192.0.0.0/8", "192.0.2.0/24", "192.0.2.6/31"} < set(found)
    assert not {"192.0.2.7/32", "192.0.3.0/24"} & set(found)
    wide = list_entry_candidates("customer.ip", "2001:db8::1")
    assert len(wide) == 129
    assert {"2001:db8::1", "::/0", "2001:db8::/32", "2001:db8::/127"} < set(wide)
    assert list_entry_candidates("customer.ip", "not-one") == ("not-one",)
    assert list_entry_candidates("customer.email", "192.0.2.7") == ("192.0.2.7",)


@pytest.mark.parametrize(
    ("name", "written", "stored"),
    [
        ("customer.ip", "192.0.2.9/24", "192.0.2.0/24"),
        ("customer.ip", "192.0.2.9/32", "192.0.2.9"),
        ("customer.ip", "192.0.2.9", "192.0.2.9"),
        ("customer.ip", "::ffff:192.0.2.9", "192.0.2.9"),
        ("customer.ip", "2001:DB8::7/32", "2001:db8::/32"),
        ("customer.ip", "2001:DB8::7/128", "2001:db8::7"),
        ("customer.ip", "192.0.2.8/31", "192.0.2.8/31"),
        ("customer.email", " Jane@Mail.Example", "jane@mail.example"),
        ("customer.emailDomain", "Mail.Example", "mail.example"),
        ("customer.phone", "+49 170-1", "491701"),
        ("billing.postcode", " 80331 ", "80331"),
        ("risk.parameters[loyalty]", " Gold ", " Gold "),
    ],
)
def test_an_entry_is_stored_as_it_is_looked_for(name: str, written: str, stored: str) -> None:
    assert normalize_entry(name, written) == stored


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("customer.ip", "192.0.2.0/24", "192.0.2.0/33"),
        ("card.bin", "420000", "4200001"),
        ("account", "0" * 32, "0" * 33),
        ("billing.country", "DE", "D"),
        ("shipping.country", "FR", "FRA"),
        ("bankAccount.country", "AT", "at"),
        ("card.issuerCountry", "CH", "Swiss"),
        ("customer.email", "a@b", "@b"),
        ("customer.emailDomain", "a.b", ".b"),
    ],
)
def test_each_field_has_its_own_notation_of_entries(name: str, right: str, wrong: str) -> None:
    """What is wrong for one field may be right for another: only the field's own rule is asked."""
    assert find_entry_fault(name, right) is None
    assert find_entry_fault(name, wrong)
    assert find_entry_fault("customer.merchantCustomerId", wrong) is None

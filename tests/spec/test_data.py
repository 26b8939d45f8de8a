"""The data of this folder agrees with itself: counts, names, examples. It reads no product code."""

import re
from collections import Counter

import pytest

from . import (
    KINDS,
    PLACES,
    SpecCondition,
    SpecParameter,
    conditions,
    decode,
    parameters,
    reconciliation_columns,
    reconciliation_header,
    response_fields,
)

PARAMETERS = parameters()
CONDITIONS = conditions()

# Structure -> number of parameters, repeated structures fully expanded.
COUNTS = {
    "What the service does": 1,
    "Authentication": 1,
    "Basic payment": 24,
    "Forex": 2,
    "Card account": 6,
    "Mobile wallets": 8,
    "Virtual account": 1,
    "Bank account": 10,
    "Token account": 6,
    "Customer": 32,
    "Shipping customer": 28,
    "Billing address": 10,
    "Merchant billing address": 18,
    "Shipping address": 26,
    "Merchant shipping address": 26,
    "Corporate": 13,
    "Sender": 17,
    "Recipient": 19,
    "Merchant": 30,
    "Cart items": 45,
    "Cart payments": 7,
    "Marketplace": 2,
    "Airline": 46,
    "Tokenization and registration": 2,
    "Recurring migration": 6,
    "3D Secure": 25,
    "Custom parameters and scheme data": 4,
    "Asynchronous payment parameters": 2,
    "Reporting parameters": 4,
    "Gift card": 5,
    "Risk": 8,
    "Scheduling": 16,
    "Card on file": 10,
    "Chargeback": 1,
    "Query": 8,
}
NOT_IN_A_PAYMENT = {"Query", "Reporting parameters"}

# What a value of these kinds looks like, bounds apart. No bad value of the kind fits it and the bounds.
SHAPES = {
    "text": r"[^\x00-\x1f\x7f-\x9f]*",
    "name": r"[^\x00-\x1f\x7f-\x9f@_<>]*",
    "digits": r"[0-9]+",
    "alnum": r"[A-Za-z0-9]+",
    "letters": r"[A-Za-z ]+",
    "countryN": r"[0-9]+",
    "bool": r"true|false",
    "decimal": r"[0-9]+(\.[0-9]{1,3})?",
    "date": r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    "datetime": r"(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2} ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]",
    "range": r"[0-9]+",
    "currency": r"[A-Z]{3}",
    "country2": r"[A-Z]{2}",
    "country3": r"[A-Z]+",
    "phone": r"[A-Z0-9+ ().\-/]+",
    "url": r"[A-Za-z][A-Za-z0-9+.-]*:/[^\x00-\x20]+",
}
# Kinds in which the shape and the bounds say everything, so that a bad value must break one of them.
DECISIVE = {"text", "digits", "alnum", "countryN", "bool"}


def row_id(row: SpecParameter) -> str:
    return f"{row.structure}: {row.name}"


def fits(row: SpecParameter, value: str) -> bool:
    return (row.min or 0) <= len(value) <= (len(value) if row.max is None else row.max)


def known_name(name: str) -> str:
    """The row's spelling of a sent name: indexes become [n], a map's key its placeholder."""
    name = re.sub(r"\[[0-9]+\]", "[n]", name)
    name = re.sub(r"\A(customParameters|risk\.parameters)\[.+\]\Z", r"\1[name]", name)
    name = re.sub(r"\Amerchant\.data\[.+\]\Z", "merchant.data[key]", name)
    return re.sub(r"\AoverridePaymentType\[.+\]\Z", "overridePaymentType[brand]", name)


def test_every_structure_has_as_many_parameters_as_the_specification() -> None:
    """Parts A and B, all request tables."""
    assert Counter(row.structure for row in PARAMETERS) == COUNTS


def test_no_name_is_listed_twice_for_one_endpoint() -> None:
    """Parts A and B: a query shares names with a payment, nothing else does."""
    payment = Counter(row.name for row in PARAMETERS if row.structure not in NOT_IN_A_PAYMENT)
    assert [name for name, times in payment.items() if times > 1] == []
    per_structure = Counter((row.structure, row.name) for row in PARAMETERS)
    assert [key for key, times in per_structure.items() if times > 1] == []


def test_repeated_structures_have_the_formats_of_their_models() -> None:
    """Part A, Shipping customer, Merchant billing address, Merchant shipping address."""
    rows = {row.name: row for row in PARAMETERS if row.structure not in NOT_IN_A_PAYMENT}
    own = {"givenName", "surname", "middleName", "companyName", "phone", "workPhone", "mobile", "email"}
    compared = 0
    for prefix, model in (
        ("shipping.customer.", "customer."),
        ("merchant.billing.", "billing."),
        ("merchant.shipping.", "shipping."),
    ):
        for name, row in rows.items():
            field = name.removeprefix(prefix)
            if not name.startswith(prefix) or (prefix == "merchant.billing." and field in own):
                continue
            twin = rows[model + field]
            assert (row.req, row.format, row.kind, row.ok, row.bad) == ("O", twin.format, twin.kind, twin.ok, twin.bad)
            compared += 1
    assert compared == 28 + 10 + 26


@pytest.mark.parametrize("row", PARAMETERS, ids=row_id)
def test_a_row_has_a_kind_a_format_and_examples_of_both_sorts(row: SpecParameter) -> None:
    """Parts A and B, all request tables."""
    assert row.kind in KINDS
    assert row.format
    assert row.ok
    assert row.bad
    assert "" not in row.bad, "an empty value counts as absent"
    assert len(set(row.ok)) == len(row.ok)
    assert len(set(row.bad)) == len(row.bad)
    assert not set(row.ok) & set(row.bad)
    assert [value for value in (*row.ok, *row.bad) if "¦" in value or "*}" in value] == []


@pytest.mark.parametrize("row", PARAMETERS, ids=row_id)
def test_good_values_keep_the_bounds_and_reach_the_longest(row: SpecParameter) -> None:
    """Part A, Resources and their fields: a range a-b is the minimum to the maximum length."""
    assert [value for value in row.ok if not fits(row, value)] == []
    if row.max is not None and row.kind != "cron":
        assert max(len(value) for value in row.ok) == row.max
        assert max(len(value) for value in row.bad) > row.max
    if row.min is not None and row.min > 1:
        assert min(len(value) for value in row.bad) < row.min


@pytest.mark.parametrize("row", [row for row in PARAMETERS if row.kind in SHAPES], ids=row_id)
def test_values_have_the_shape_of_their_kind(row: SpecParameter) -> None:
    """Part A, Resources and their fields."""
    if row.kind not in ("name", "letters"):
        assert [value for value in row.ok if not re.fullmatch(SHAPES[row.kind], value)] == []
    if row.kind in DECISIVE and not row.name.endswith("bic"):
        fitting = [value for value in row.bad if re.fullmatch(SHAPES[row.kind], value) and fits(row, value)]
        assert fitting == []


def test_card_numbers_of_the_good_examples_pass_the_luhn_check() -> None:
    """Part A, Card account: a failing number is well-formed, but refused for another reason."""
    (row,) = [row for row in PARAMETERS if row.name == "card.number"]
    for number in row.ok:
        doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(number))]
        assert sum(sum(divmod(value, 10)) for value in doubled) % 10 == 0, number


def test_value_lists_have_the_stated_number_of_values() -> None:
    """Part A, Shipping address; Part B, 3D Secure, Gift card, Query."""
    rows = {(row.structure, row.name): row for row in PARAMETERS}
    assert len(rows["Shipping address", "shipping.method"].ok) == 15
    assert len(rows["Gift card", "giftCard.type"].ok) == 29
    assert len(rows["3D Secure", "threeDSecure.authenticationInd"].ok) == 10 + 1
    assert len([v for v in rows["Query", "paymentTypes"].ok if len(v) == 2]) == 62
    assert len([v for v in rows["Query", "paymentMethods"].ok if len(v) == 2]) == 14


def test_written_values_are_decoded() -> None:
    """README.md beside this file."""
    assert decode("{A*3}b") == "AAAb"
    assert decode("A\\u0007") == "A\x07"
    assert decode("{A*0}") == ""
    assert decode('{"a":"*/*"}') == '{"a":"*/*"}'


def test_conditions_have_an_id_each() -> None:
    """Parts A and B, all stated conditions."""
    assert [key for key, times in Counter(row.id for row in CONDITIONS).items() if times > 1] == []
    assert len(CONDITIONS) > 200


@pytest.mark.parametrize("row", CONDITIONS, ids=lambda row: row.id)
def test_a_condition_is_sent_with_known_names_only(row: SpecCondition) -> None:
    """Parts A and B: a misspelt name in an example would prove nothing."""
    known = {parameter.name for parameter in PARAMETERS}
    accused = {name for group in row.names for name in group}
    assert row.where in PLACES
    assert row.statement
    assert row.source
    assert row.keeps or row.breaks
    assert row.keeps != row.breaks
    assert accused
    assert [name for name, _ in row.keeps if known_name(name) not in known] == []
    assert [name for name, _ in row.breaks if known_name(name) not in known | accused] == []
    sent = {name for name, _ in row.breaks}
    assert [name for name in accused if known_name(name) not in known and name not in sent] == []


@pytest.mark.parametrize("row", CONDITIONS, ids=lambda row: row.id)
def test_a_condition_breaks_by_the_condition_and_not_by_a_format(row: SpecCondition) -> None:
    """Parts A and B: the values themselves are no values that the format refuses."""
    bad = {
        (parameter.name, value)
        for parameter in PARAMETERS
        for value in parameter.bad
        if parameter.structure not in NOT_IN_A_PAYMENT
    }
    if row.where in ("query", "reports") or row.id.startswith("D26"):
        return
    assert [pair for pair in (*row.keeps, *row.breaks) if (known_name(pair[0]), pair[1]) in bad] == []


def test_the_response_table_has_31_rows_of_35_names_and_the_redirect() -> None:
    """Part B, Payment response, Asynchronous payment parameters."""
    rows = response_fields()
    assert Counter(row.structure for row in rows) == {
        "Payment response": 35,
        "Asynchronous payment parameters": 3,
    }
    assert [row.field for row in rows if not row.regex] == ["(request structures)"]
    fields = {row.field: row for row in rows}
    for field, good, wrong in (
        ("result.code", "000.100.110", "000-100"),
        ("id (payment)", "8ac7a4a08f1b2c3d018f1b2c3d4e5f60", "8ac7"),
        ("timestamp", "2024-01-31 12:00:00+0000", "2024-01-31T12:00:00Z"),
        ("amount", "92.00", "92"),
        ("risk.score", "-99999", "+100000"),
        ("ndc", "8a82-1", "8a82_1"),
        ("merchant.bankAccount.bic", "COBADEFF", "COBADEFFX"),
    ):
        assert re.fullmatch(fields[field].regex, good)
        assert not re.fullmatch(fields[field].regex, wrong)


def test_the_reconciliation_table_has_the_36_columns_of_the_header_and_two_more() -> None:
    """Part B, Reconciliation file."""
    header = reconciliation_header().split(";")
    columns = [row.column for row in reconciliation_columns()]
    assert len(header) == 36
    assert len(columns) == 38
    assert sorted(columns) == sorted([*header, "TransactionId", "InvoiceId"])
    assert sum(row.req == "R" for row in reconciliation_columns()) == 17

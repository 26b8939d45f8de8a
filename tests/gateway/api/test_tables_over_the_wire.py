"""The specification's tables over the wire: what they allow is taken, kept, and comes back as it was sent; what they do
not allow is named, every parameter at once, and makes nothing.

The values are those of tests/spec, which were read from the specification apart from the product's catalogue. Of a
payment's own fields only those are left out here that another field of the same request would contradict.
Source: Parts A and B, Resources and their fields; Part B, Payment response (request structures); rulings D10, D16, D17.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from gateway.catalogue.structures import NETWORK_KEYS
from gateway.models import Payment
from tests import spec
from tests.spec import SpecParameter
from tests.support.client import Api, payment

pytestmark = pytest.mark.django_db

ELSEWHERE: Final = ("Query", "Reporting parameters")
OTHER_MEANS: Final = ("Mobile wallets", "Virtual account", "Bank account", "Token account")
OTHER_OPERATIONS: Final = ("Scheduling", "Card on file")
"""Schedules and agreements have rules among their fields, and tests of their own."""
LEFT_OUT: Final = {
    "entityId", "testMode", "amount", "currency", "paymentBrand", "paymentType", "card.number", "card.expiryMonth",
    "card.expiryYear", "card.cvv", "card.numberType", "overridePaymentType[brand]", "referenceUuid", "integrity",
    "cart.items[n].sellerId", "marketPlace.sellers[n].id", "marketPlace.sellers[n].amount",
}  # fmt: skip
PLACES: Final = {
    "cart.items[n]": ("cart.items[0]", "cart.items[999]"),
    "cart.payments[n]": ("cart.payments[0]",),
    "marketPlace.sellers[n]": ("marketPlace.sellers[0]",),
    "airline.passengers[n].legs[n]": ("airline.passengers[0].legs[0]", "airline.passengers[1].legs[3]"),
    "airline.passengers[n]": ("airline.passengers[0]", "airline.passengers[1]"),
}
"""Where the rows of a list are sent: its first place, and one far off."""
KEYS: Final = {
    "customParameters[name]": "customParameters[order.ref_7]",
    "risk.parameters[name]": "risk.parameters[loyalty]",
    "merchant.data[key]": "merchant.data[till.no]",
}
SHOWN_BY_ITS_END: Final = (".identificationDocId", ".identificationValue", ".accountNumber", "giftCard.number")
NEVER_SHOWN: Final = {"merchantMemo", "giftCard.pin"}
OLD_VERSION: Final = re.compile(r"1\.|2\.[01]\.")

ROWS = [row for row in spec.parameters() if row.structure not in ELSEWHERE]
SENT_TOGETHER = [
    row for row in ROWS if row.structure not in (*OTHER_MEANS, *OTHER_OPERATIONS) and row.name not in LEFT_OUT
]
MOST_GOOD = max(len(row.ok) for row in SENT_TOGETHER)
MOST_BAD = max(len(row.bad) for row in ROWS)


def names_of(row: SpecParameter) -> Iterator[str]:
    """The names under which a row is sent, e.g. at the first and at the last index of its list."""
    if row.name in KEYS:
        yield KEYS[row.name]
    elif "<net>" in row.name:
        yield from (row.name.replace("<net>", net) for net in NETWORK_KEYS)
    elif prefix := next((one for one in PLACES if row.name.startswith(f"{one}.")), None):
        yield from (place + row.name.removeprefix(prefix) for place in PLACES[prefix])
    else:
        yield row.name


def round_of(number: int) -> dict[str, str]:
    """A payment with one good value of every parameter: over all rounds, each value has been sent."""
    fields = payment() | {"marketPlace.sellers[0].id": "potter", "marketPlace.sellers[0].amount": "92.00"}
    for row in SENT_TOGETHER:
        for shift, name in enumerate(names_of(row)):
            fields[name] = row.ok[(number + shift) % len(row.ok)]
    fields["cart.items[0].sellerId"] = "potter"
    if OLD_VERSION.match(fields["threeDSecure.version"]):
        fields["threeDSecure.version"] = "2.2.0"
    return fields


def told(body: Any, name: str) -> Any:
    """What the answer says at a sent name. Lists come back without the gaps between their indexes."""
    for key, word in re.findall(r"\[([^\]]+)\]|([^.\[]+)", name):
        step = word or (min(int(key), len(body) - 1) if key.isdigit() else key)
        body = body[step]
    return body


def expected(name: str, value: str) -> str:
    if not name.endswith(SHOWN_BY_ITS_END):
        return value
    return "*" * (len(value) - 4) + value[-4:] if len(value) > 4 else "•••"


@pytest.mark.parametrize("number", range(MOST_GOOD))
def test_what_the_tables_allow_is_taken_and_comes_back_as_it_was_sent(api: Api, number: int) -> None:
    """B1.1, B1.2, B2.1, B2.2, B3.1, B3.2, B4.1, B4.4, B4.5, B5.1, B5.3, B5.4, B5.7, B5.9, B5.11, B6.1, B6.2, B8.1,
    B11.1, B11.2, B11.3, B11.9, B11.10, B12.1, B16.1, B18.12, A26.4, A26.5, A31.7; D17."""
    sent = round_of(number)
    answer = api.post("/v1/payments", sent)
    assert (answer.status, answer.errors, answer.code) == (200, {}, "000.100.110")
    whole = {name: value for name, value in sent.items() if name not in NEVER_SHOWN | {"card.number", "card.cvv"}}
    for body in (answer.body, api.read(answer.id).body):
        assert {name: told(body, name) for name in whole} == {
            name: expected(name, value) for name, value in whole.items()
        }
        assert "pin" not in body["giftCard"]
        assert "merchantMemo" not in body
        assert not {"number", "cvv"} & body["card"].keys()


@pytest.mark.parametrize("number", range(MOST_BAD))
def test_what_the_tables_do_not_allow_is_named_every_parameter_at_once(api: Api, number: int) -> None:
    """B1.2, B2.2, B3.2, B4.5, B5.3, B5.4, B5.5, B5.6, B5.7, B5.9, B6.2, B11.9, B11.10,
    B12.3, B16.1, B21.1, A31.4, A31.7; D10."""
    wrong = {name: row.bad[number % len(row.bad)] for row in ROWS for name in names_of(row)}
    wrong.pop("entityId")
    answer = api.post("/v1/payments", payment() | wrong)
    assert (answer.status, answer.code) == (400, "200.300.404")
    assert wrong.keys() - answer.errors.keys() == set()
    assert not Payment.objects.exists()

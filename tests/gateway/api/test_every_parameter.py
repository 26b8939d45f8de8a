"""Every row of the specification's tables over HTTP: what is wrong is named, all at once; what is right comes back.

Source: Part A, Resources and their fields; Errors; tests/spec holds the rows and their values.
"""

from __future__ import annotations

import pytest

from gateway.models import Payment
from tests import spec
from tests.spec import SpecParameter
from tests.support.client import Api

pytestmark = pytest.mark.django_db

NOT_IN_A_PAYMENT = {"Query", "Reporting parameters", "Authentication"}
MOST_VALUES = 17
"""As many wrong values has the longest row."""
WAYS = {
    "/v1/payments": frozenset({"overridePaymentType[brand]"}),
    "/v1/checkouts": frozenset({
        "referenceUuid", "card.number", "card.expiryMonth", "card.expiryYear", "card.cvv", "card.numberType",
        "wallet1.paymentToken", "wallet1.cardNetwork", "wallet1.cardType", "wallet1.source", "wallet2.paymentToken",
        "wallet2.source", "wallet3.paymentToken", "wallet3.source", "virtualAccount.accountId", "bankAccount.number",
        "bankAccount.iban", "bankAccount.bankCode", "bankAccount.bic", "tokenAccount.number", "tokenAccount.type",
        "tokenAccount.expiryMonth", "tokenAccount.expiryYear", "tokenAccount.cryptogram", "tokenAccount.dtvc",
        "giftCard.number", "giftCard.pin",
    }),
}  # fmt: skip
"""Where payments are made → another endpoint's names (A13.9; a checkout's means comes from its shopper, D29)."""


def sent_name(row: SpecParameter) -> str:
    """A name as a merchant writes it: an index, a key, a network."""
    name = row.name.replace("[n]", "[3]").replace("<net>", "visa")
    return name.replace("[name]", "[abc]").replace("[key]", "[abc]").replace("[brand]", "[VISA]")


ROWS = [row for row in spec.parameters() if row.structure not in NOT_IN_A_PAYMENT]


@pytest.mark.parametrize("path", WAYS)
def test_a_wrong_value_of_any_parameter_is_named_and_so_are_all_others(api: Api, path: str) -> None:
    """A11.1, A11.2, A11.3, A13.1, A13.14, A13.20, A13.21, A15.1, A18.1, A20.1, A21.1, A22.1,
    A23.1, A24.1, A24.4, A24.5, A25.1, A26.4, A26.5; D10."""
    assert max(len(row.bad) for row in ROWS) == MOST_VALUES
    for turn in range(MOST_VALUES):
        fields = {sent_name(row): row.bad[turn] for row in ROWS if turn < len(row.bad)}
        answer = api.post(path, fields)
        assert (answer.status, answer.code) == (400, "200.300.404")
        assert fields.keys() - answer.errors.keys() == set()
    assert not Payment.objects.exists()


@pytest.mark.parametrize("path", WAYS)
def test_a_name_is_known_wherever_payments_are_made_or_is_another_endpoints(api: Api, path: str) -> None:
    """A11.1; D16."""
    answer = api.post(path, {sent_name(row): row.bad[0] for row in ROWS})
    strange = {name for name, message in answer.errors.items() if "is not an allowed parameter" in message}
    assert strange == {sent_name(row) for row in ROWS if row.name in WAYS[path]}


PLAIN = {
    "Customer",
    "Shipping customer",
    "Billing address",
    "Merchant billing address",
    "Shipping address",
    "Merchant shipping address",
}
MASKED = {"customer.identificationDocId", "shipping.customer.identificationDocId"}


@pytest.mark.parametrize("longest", [False, True])
def test_people_and_addresses_come_back_as_they_were_sent(api: Api, longest: bool) -> None:
    """A3.3, A20.1, A20.4, A21.1, A22.1, A23.1, A24.1, A25.1: 140 parameters in one payment, the longest values there
    may be."""
    rows = [row for row in ROWS if row.structure in PLAIN]
    fields = {row.name: max(row.ok, key=len) if longest else row.ok[0] for row in rows}
    for prefix in ("billing", "merchant.billing"):
        fields[f"{prefix}.street1"] = "Main Street"
    answer = api.pay(**{name.replace(".", "__"): value for name, value in fields.items()})
    assert answer.status == 200, answer
    for name, value in fields.items():
        node = answer.body
        for step in name.split("."):
            node = node[step]
        assert node == value or name in MASKED, name
    assert len(fields) == 140
    assert {str(answer.body["customer"]["identificationDocId"])[:4]} == {"****"}

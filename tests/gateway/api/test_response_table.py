"""The payment response table of the specification, laid over what the gateway answers.

Every field of the table is seen in one answer at least, wherever it is seen it has the form its row states, and every
answer is what the OpenAPI document says. The forms are those of tests/spec, read apart from the product.
Source: Part B, Payment response, Asynchronous payment parameters (response).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import jsonschema_rs
import pytest

from gateway.catalogue.openapi import build_openapi
from gateway.core import identifiers
from tests import spec
from tests.support.client import Answer, Api
from tests.support.shopper import create

pytestmark = pytest.mark.django_db

ENVELOPE: Final = ("result.code", "result.description", "buildNumber", "timestamp", "ndc")
FORMS: Final = {row.field: row.regex for row in spec.response_fields()}
ECHO: Final = "(request structures)"
"""Its own test: test_tables_over_the_wire."""
WHOLE: Final = {
    "paymentBrand": None, "descriptor": "Shop order 4711", "billing__postcode": "11111",
    "merchantTransactionId": "order-4711",
}  # fmt: skip
STORED: Final = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
AWAY: Final = {
    "card__number": None,
    "card__expiryMonth": None,
    "card__expiryYear": None,
    "card__cvv": None,
    "card__holder": None,
}
BACK: Final = "https://shop.example/result"

ANSWERS: Final[dict[str, tuple[str, Callable[[Api], Answer]]]] = {
    "an approval": ("Payment", lambda api: api.pay(**WHOLE)),
    "a part that is approved": ("Payment", lambda api: api.pay(card__number="4000050000000007")),
    "a decline": ("Payment", lambda api: api.pay(card__number="4000015500000005")),
    "a number that fails its check": ("Payment", lambda api: api.pay(card__number="4444444444444444")),
    "an acquirer that is silent": ("Payment", lambda api: api.pay(card__number="4000090003000000")),
    "a read": ("Payment", lambda api: api.read(api.pay(**WHOLE).id)),
    "a follow-up": ("Payment", lambda api: api.follow(api.pay().id, "RF", "1.00")),
    "a payment that stores its card": ("Payment", lambda api: api.pay(createRegistration="true")),
    "a risk check": ("Payment", lambda api: api.pay(paymentType="RI")),
    "a shopper sent away": ("Payment", lambda api: api.pay(paymentBrand="WEBWALLET", shopperResultUrl=BACK, **AWAY)),
    "a prepayment": ("Payment", lambda api: api.pay(paymentBrand="PREPAYMENT", **AWAY)),
    "a registration": ("Registration", lambda api: api.post("/v1/registrations", STORED)),
    "a checkout": ("Checkout", lambda api: create(api)),
}
IDS: Final = {"Payment": "id (payment)", "Registration": "id (registration)", "Checkout": "id (checkout)"}


def values_at(node: Any, path: str) -> Iterator[str]:
    """Every value a body has at ``path``; ``[n]`` stands for each index."""
    step, _, rest = path.partition(".")
    name, indexed, _ = step.partition("[n]")
    if not isinstance(node, dict) or name not in node:
        return
    for one in node[name] if indexed else [node[name]]:
        if rest:
            yield from values_at(one, rest)
        elif isinstance(one, dict):
            yield from one.values()
        else:
            yield one


def seen_in(kind: str, body: dict[str, Any]) -> dict[str, list[str]]:
    paths = {field: field for field in FORMS if not field.startswith(("id (", ECHO))}
    found = {field: list(values_at(body, path)) for field, path in paths.items()}
    return {field: values for field, values in found.items() if values} | {IDS[kind]: [body["id"]]}


def fits(field: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(FORMS[field], value) is not None


def test_every_field_of_the_response_table_is_seen_and_has_its_form(api: Api) -> None:
    """B18.1, B18.2, B18.3, B18.5, B18.6, B18.7, B18.8, B18.9, B18.10, B18.11, B18.13, B13.3, A30.7."""
    whole = build_openapi("https://pay.example", "test")
    seen: set[str] = set()
    faults: dict[str, list[str]] = {}
    for what, (kind, ask) in ANSWERS.items():
        body = ask(api).body
        fields = seen_in(kind, body)
        schema = {"$ref": f"#/components/schemas/{kind}", "components": whole["components"]}
        found = [
            *(f"{field}: {value}" for field, values in fields.items() for value in values if not fits(field, value)),
            *(f"{field}: missing" for field in ENVELOPE if field not in fields),
            *(fault.message for fault in jsonschema_rs.Draft202012Validator(schema).iter_errors(body)),
        ]
        faults |= {what: found} if found else {}
        seen |= fields.keys()
    assert faults == {}
    assert {field for field in FORMS if not field.startswith(ECHO)} - seen == set()


def test_a_thousand_requests_have_a_thousand_numbers(api: Api) -> None:
    """B18.4: 1-69 letters, digits, hyphen, also with an entity's id in front."""
    numbers = {identifiers.format_ndc(identifiers.row_id(), api.entity or "") for _ in range(1000)}
    assert len(numbers) == 1000
    assert all(re.fullmatch(FORMS["ndc"], number) for number in numbers)


@pytest.mark.parametrize(
    "postcode, letter", [("11111", "F"), ("22222", "A"), ("33333", "Z"), ("44444", "N"), ("55555", "U")]
)
def test_five_addresses_give_the_five_answers_of_the_address_check(api: Api, postcode: str, letter: str) -> None:
    """B18.6."""
    assert api.pay(billing__postcode=postcode).body["result"]["avsResponse"] == letter


@pytest.mark.parametrize("cvv, letter", [("123", "M"), ("999", "N"), ("000", "P"), ("111", "S"), ("222", "U")])
def test_a_security_code_gives_the_answer_of_its_check(api: Api, cvv: str, letter: str) -> None:
    """B18.7."""
    assert api.pay(card__cvv=cvv).body["result"]["cvvResponse"] == letter


def test_the_issuer_s_advice_comes_with_a_decline(api: Api) -> None:
    """B18.8: the acquirer's own code, and what to do next, two digits."""
    told = {
        number: api.pay(card__number=number).body["resultDetails"]
        for number in ("4000015500000005", "4000060002000004", "4000015900000001")
    }
    assert all(details.pop("ExtendedDescription") for details in told.values())
    assert list(told.values()) == [
        {"AcquirerResponse": "51", "MerchantAdviceCode": "02"},
        {"AcquirerResponse": "05", "MerchantAdviceCode": "02"},
        {"AcquirerResponse": "43", "MerchantAdviceCode": "03"},
    ]


def test_risk_score_is_told_where_risk_was_checked_and_nowhere_else(api: Api) -> None:
    """B18.11. Payments with a rule set: tests/scenarios/test_risk.py."""
    assert "risk" not in api.pay().body
    assert "score" in api.pay(paymentType="RI").body["risk"]

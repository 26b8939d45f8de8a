"""Names that are not the specification's: those of known clients, and where ignored ones are named.

Source: Part A, What the service does, 3; docs/decisions/0048-readings-of-names-booleans-and-pages.md.
"""

from __future__ import annotations

import pytest

from gateway.catalogue.endpoints import ENDPOINTS, Endpoint
from gateway.catalogue.openapi import REQUEST_EXAMPLES
from gateway.catalogue.parse import InvalidParametersError, UnknownNamePolicy
from gateway.catalogue.structures import KNOWN_STRUCTURES
from gateway.catalogue.tolerated_names import TOLERATED_NAMES
from gateway.core import clock
from gateway.models import NetworkToken
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.shopper import create, open_checkout

pytestmark = pytest.mark.django_db
NAMES = list(TOLERATED_NAMES)
OUR_OWN = {"ourOwnTracking": "7"}


def test_the_table_has_no_name_of_the_specification() -> None:
    known = {structure.full(row.name) for structure in KNOWN_STRUCTURES for row in structure.rows}
    assert {"shipping.givenName", "shipping.surname", "threeDSecure.xid", "recurringType"} <= set(NAMES)
    assert not known & set(NAMES)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_endpoint_takes_them_and_a_strict_channel_none(endpoint: Endpoint) -> None:
    for policy, refused in (
        (UnknownNamePolicy.NORMAL, set()),
        (UnknownNamePolicy.LENIENT, set()),
        (UnknownNamePolicy.STRICT, set(NAMES)),
    ):
        with pytest.raises(InvalidParametersError) as caught:  # of entityId at least
            endpoint.catalogue.parse([(name, "x") for name in (*NAMES, "entityId")], policy=policy)
        assert {error.name for error in caught.value.errors} & set(NAMES) == refused


def test_a_payment_with_them_is_paid_and_keeps_nothing_of_them(api: Api, shop: Shop) -> None:
    sent = dict.fromkeys(NAMES, "Fortinbras")
    answer = api.pay(**sent, **{"shipping.city": "Munich"})
    assert answer.status == 200, answer
    assert sorted(answer.body["ignoredParameters"]) == sorted(NAMES)
    assert answer.body["shipping"] == {"city": "Munich"}
    assert "Fortinbras" not in api.get("/v1/test/acquirer/messages", {"id": answer.id}).text
    strict = shop.api_of(shop.open_channel(parameters="strict"))
    assert sorted(strict.pay(**sent).errors) == sorted(NAMES)
    made = create(api, **sent)
    assert sorted(made.body["ignoredParameters"]) == sorted(NAMES)
    assert sorted(api.post(f"/v1/checkouts/{made.id}", sent).body["ignoredParameters"]) == sorted(NAMES)


def test_a_browser_sends_none_of_them(api: Api) -> None:
    """A form takes what is offered, whatever a merchant's server may send."""
    assert list(open_checkout(api).pay(**{"shipping.givenName": "Jane"}).errors) == ["shipping.givenName"]


@pytest.mark.parametrize("name", ["shipping.middlename", "merchant.shipping.givenName", "threeDSecure.xids"])
def test_others_inside_a_structure_stay_errors(api: Api, name: str) -> None:
    assert list(api.pay(**{name: "x"}).errors) == [name]


def test_the_page_about_requests_shows_them() -> None:
    page = Api(token=None, entity=None).call("GET", "/docs/requests").text
    assert [name for name in NAMES if f"<code>{name}</code>" not in page] == []


# --- every answer tells what it passed over ------------------------------------------------------------------------


def _of_links(api: Api) -> dict[str, Answer]:
    made = api.post("/v1/paymentLinks", REQUEST_EXAMPLES["payment-link"] | OUR_OWN)
    path = f"/v1/paymentLinks/{made.id}"
    return {
        "payment-link": made,
        "payment-links": api.get("/v1/paymentLinks", OUR_OWN),
        "read-payment-link": api.get(path, OUR_OWN),
        "deactivate-payment-link": api.post(f"{path}/deactivate", OUR_OWN),
        "delete-payment-link": api.delete(path, OUR_OWN),
    }


MAY = {"date.from": "2026-05-01", "date.to": "2026-05-31"}


def _each(shop: Shop) -> dict[str, Answer]:
    """One request of every endpoint that works, with a name that nothing knows."""
    api, found = shop.api, {}
    paid = api.pay(createRegistration="true")
    card = {**REQUEST_EXAMPLES["registration"]}
    stored, spare = api.post("/v1/registrations", card).id, api.post("/v1/registrations", card).id
    made, storing = create(api).id, api.post("/v1/checkouts", {"createRegistration": "true"}).id
    plan = {**REQUEST_EXAMPLES["schedule"], "registrationId": paid.body["registrationId"]}
    job, other = api.post("/v1/schedules", plan).id, api.post("/v1/schedules", plan).id
    alone = shop.api_of(shop.open_channel(three_d_secure=True))
    proof = alone.post("/v1/threeDSecure", REQUEST_EXAMPLES["three-d-secure"]).id
    waits = api.post(
        "/v1/payments",
        {
            "amount": "5.00",
            "currency": "EUR",
            "paymentType": "DB",
            "paymentBrand": "PREPAYMENT",
            "shopperResultUrl": "https://shop.example/",
        },
    ).id
    period = MAY | {"testMode": "INTERNAL"}
    settled = api.get("/v1/reports/reconciliations", period).body["aggregations"][0]["id"]
    gets = {
        "status": f"payments/{paid.id}",
        "read-registration": f"registrations/{stored}",
        "read-schedule": f"schedules/{job}",
        "query-one": f"query/{paid.id}",
        "read-clock": "test/clock",
        "checkout-status": f"checkouts/{made}/payment",
        "checkout-registration": f"checkouts/{storing}/registration",
    }
    for name, path in gets.items():
        found[name] = api.get(f"/v1/{path}", OUR_OWN)
    found["query"] = api.get("/v1/query", OUR_OWN)
    found["query-records"] = api.get("/v3/query", OUR_OWN)
    found["query-record"] = api.get(f"/v3/query/{paid.id}", OUR_OWN)
    found["read-three-d-secure"] = alone.get(f"/v1/threeDSecure/{proof}", OUR_OWN)
    for name, path in (
        ("settlements", "/v1/reports/reconciliations"),
        ("aggregations", "/reports/v1/reconciliations/aggregations"),
        ("aggregations-page", "/reports/v2/reconciliations/aggregations"),
    ):
        found[name] = api.get(path, period | OUR_OWN)
        one = {"settlements": "settlement"}.get(name) or name.replace("aggregations", "aggregation")
        found[one] = api.get(f"{path}/{settled}", {"testMode": "INTERNAL"} | OUR_OWN)
    for name in ("approvals", "approvals-waterfall", "approvals-gains"):
        found[name] = api.get(f"/v1/reports/{name.replace('-', '/')}", MAY | OUR_OWN)
    found["card-facts"] = api.get("/v1/cardFacts", {"card.bin": "420000"} | OUR_OWN)
    found["acquirer-messages"] = api.get("/v1/test/acquirer/messages", {"id": paid.id} | OUR_OWN)
    found["open-inspector"] = api.post("/v1/test/webhooks", OUR_OWN)
    found["read-webhooks"] = api.get("/v1/test/webhooks", OUR_OWN)
    found["read-requests"] = api.get("/v1/test/requests", OUR_OWN)
    found["mails"] = api.get("/v1/test/mails", {"id": paid.id} | OUR_OWN)
    found["decide-transfer"] = api.post(f"/v1/test/transfers/{waits}", {"outcome": "arrived"} | OUR_OWN)
    NetworkToken.objects.create(
        registration_id=stored,
        reference="T-1",
        status="ACTIVE",
        expiry_month="05",
        expiry_year="2034",
        changed_at=clock.real_now(),
    )
    found["change-network-token"] = api.post(f"/v1/test/network-tokens/{stored}", {"event": "SUSPENDED"} | OUR_OWN)
    found["make-wallet-token"] = api.post("/v1/test/wallet-token", REQUEST_EXAMPLES["make-wallet-token"] | OUR_OWN)
    found["reset-clock"] = api.delete("/v1/test/clock", OUR_OWN)
    found["move-clock"] = api.post("/v1/test/clock", {"advance": "1"} | OUR_OWN)
    found["payment"] = api.pay(**OUR_OWN)
    found["follow-up"] = api.follow(paid.id, "RF", "1.00", **OUR_OWN)
    found["checkout"] = create(api, **OUR_OWN)
    found |= _of_links(api)
    found["update-checkout"] = api.post(f"/v1/checkouts/{made}", {"amount": "80.00"} | OUR_OWN)
    found["registration"] = api.post("/v1/registrations", card | OUR_OWN)
    found["update-registration"] = api.post(
        f"/v1/registrations/{stored}", REQUEST_EXAMPLES["update-registration"] | OUR_OWN
    )
    found["extend-registration"] = api.post(f"/v1/registrations/{stored}/extend", OUR_OWN)
    found["one-click"] = api.post(f"/v1/registrations/{stored}/payments", REQUEST_EXAMPLES["one-click"] | OUR_OWN)
    found["delete-registration"] = api.delete(f"/v1/registrations/{spare}", OUR_OWN)
    found["schedule"] = api.post("/v1/schedules", plan | OUR_OWN)
    found["reschedule"] = api.post(f"/v1/schedules/{job}/reschedule", REQUEST_EXAMPLES["reschedule"] | OUR_OWN)
    found["deschedule"] = api.post(f"/v1/schedules/{job}/deschedule", OUR_OWN)
    found["delete-schedule"] = api.delete(f"/v1/schedules/{other}", OUR_OWN)
    found["three-d-secure"] = alone.post("/v1/threeDSecure", REQUEST_EXAMPLES["three-d-secure"] | OUR_OWN)
    return found


FORMS = {"pay-checkout", "store-checkout"}
"""What a page may send is a closed list: any other name is an error."""


def test_every_answer_tells_the_names_it_passed_over(shop: Shop) -> None:
    answers = _each(shop)
    assert answers.keys() | FORMS == {endpoint.name for endpoint in ENDPOINTS}
    assert {name: answer for name, answer in answers.items() if answer.status != 200} == {}
    silent = [name for name, answer in answers.items() if answer.body.get("ignoredParameters") != list(OUR_OWN)]
    assert silent == []
    read = shop.api.get(f"/v1/payments/{answers['payment'].id}").body
    assert "ignoredParameters" not in read
    # A payment that a checkout made, and one that was declined.
    browser = open_checkout(shop.api)
    browser.pay(card__number="4000015500000005")
    told = shop.api.get(f"/v1/checkouts/{browser.checkout}/payment", OUR_OWN)
    assert (told.status, told.body["ignoredParameters"]) == (400, list(OUR_OWN))

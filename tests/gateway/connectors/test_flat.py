"""A kept echo as parameters again: what a payment that waited for its shopper is submitted with."""

from __future__ import annotations

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.structure import Echo
from gateway.connectors.acquirer_message import flatten_body

_BASE = {"entityId": "8a8294174b7ecb28014b9699220015ca", "amount": "92.00", "currency": "EUR", "paymentType": "DB"}
_MORE = {
    "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034", "card.holder": "Jane Jones",
    "paymentBrand": "VISA", "customParameters[SHOPPER_x.y]": "7", "threeDSecure.schemeData[CB-USECASE]": "01",
    "threeDSecure.v2.visa.requestorId": "1234", "risk.parameters[a_b]": "c", "merchant.data[k.1]": "v",
    "cart.items[0].name": "Pen", "cart.items[1].name": "Ink", "cart.items[1].recipient.city": "Bonn",
    "airline.passengers[0].legs[0].flightNumber": "17", "airline.passengers[0].legs[1].flightNumber": "18",
    "customer.browser.userAgent": "x", "customer.givenName": "Jane", "customer.surname": "Jones",
}  # fmt: skip


def test_a_nested_echo_is_flat_again_name_for_name() -> None:
    """Decisions, section 5: after the shopper is back the acquirer gets what the merchant sent."""
    parameters = PAYMENT_ENDPOINT.catalogue.parse((_BASE | _MORE).items())
    told = {}
    for name, value in parameters.values.items():
        found = PAYMENT_ENDPOINT.catalogue.find(name)
        assert found is not None
        if found[0].param.echo is Echo.YES and not found[0].param.private:
            told[name] = value
    assert flatten_body(parameters.echo()) == told

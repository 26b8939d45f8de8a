"""Each half of a condition that has several: what asks for an authentication, a code, a proof or a name."""

from __future__ import annotations

import pytest

from gateway.catalogue import conditions
from gateway.catalogue.conditions import authentication, request_facts
from gateway.catalogue.rules import ParameterRule, RuleInput
from gateway.catalogue.structures import CUSTOMER
from gateway.core.secret import Secret

CARD = {"card.number": "4200000000000000"}
THREEDS = frozenset({"threeds"})


def sent(values: dict[str, str], facts: frozenset[str] = frozenset()) -> RuleInput:
    plain = {name: value for name, value in values.items() if name != "card.number"}
    secrets = {name: Secret(value) for name, value in values.items() if name == "card.number"}
    return RuleInput(plain, "", facts, set(), secrets)


def named(rules: tuple[ParameterRule, ...], values: dict[str, str], *facts: str) -> set[str]:
    return {name for rule in rules for name, _ in rule.check(sent(values, frozenset(facts)))}


@pytest.mark.parametrize(
    ("kind", "authenticates"),
    [("PA", True), ("DB", True), ("RG", True), ("CD", False), ("RI", False), ("RF", False)],
)
def test_which_payment_types_are_authenticated_in_a_browser(kind: str, authenticates: bool) -> None:
    values = CARD | {"paymentType": kind}
    assert authentication.is_browser_authentication(sent(values, THREEDS)) is authenticates
    assert authentication.is_browser_authentication(sent(values)) is False
    assert authentication.is_browser_authentication(sent(values, THREEDS | {"alone"})) is True
    for name in ("threeDSecure.deviceInfo", "threeDSecure.channel"):
        assert authentication.is_browser_authentication(sent(values | {name: "x"}, THREEDS)) is False


@pytest.mark.parametrize(
    ("values", "merchant"),
    [
        ({}, False),
        ({"source": "MIT"}, True),
        ({"source": "CIT", "mode": "REPEATED"}, False),
        ({"mode": "REPEATED"}, True),
        ({"mode": "INITIAL"}, False),
        ({"industryPractice": "RESUBMISSION"}, True),
        ({"industryPractice": "DELAYED_CHARGES"}, True),
        ({"industryPractice": "NO_SHOW"}, True),
        ({"industryPractice": "INCREMENTAL_AUTH"}, False),
        ({"source": "CIT", "industryPractice": "NO_SHOW"}, False),
    ],
)
def test_who_initiates_a_payment(values: dict[str, str], merchant: bool) -> None:
    given = {f"standingInstruction.{name}": value for name, value in values.items()}
    assert request_facts.is_merchant_initiated(sent(given)) is merchant


@pytest.mark.parametrize(
    ("values", "facts", "regional"),
    [
        ({"paymentBrand": "CARTEBANCAIRE"}, (), True),
        ({}, ("registration: CARTEBANCAIRE",), True),
        ({"paymentBrand": "VISA"}, ("registration: VISA",), False),
    ],
)
def test_the_regional_scheme_is_known_by_its_brand_and_by_its_stored_card(
    values: dict[str, str], facts: tuple[str, ...], regional: bool
) -> None:
    assert authentication.is_regional_scheme_payment(sent(values, frozenset(facts))) is regional


PROVED = {"threeDSecure.eci": "05", "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA="}


@pytest.mark.parametrize(
    ("more", "asks"),
    [
        ({}, True),
        ({"card.numberType": "PAN"}, True),
        ({"card.numberType": "DPAN"}, False),
        ({"tokenAccount.type": "NETWORK"}, False),
        ({"tokenAccount.type": "VAULT"}, True),
        ({"wallet2.source": "app"}, False),
        ({"wallet3.paymentToken": "{}"}, False),
    ],
)
def test_a_proof_of_a_device_or_wallet_needs_no_directory_server(more: dict[str, str], asks: bool) -> None:
    wanted = {"threeDSecure.dsTransactionId"} if asks else set()
    assert named(conditions.THREEDS_PROOF, PROVED | more) == wanted


@pytest.mark.parametrize(
    ("more", "asks"),
    [
        ({}, True),
        ({"paymentType": "CD"}, False),
        ({"paymentType": "PA"}, True),
        ({"card.numberType": "DPAN"}, False),
        ({"wallet1.source": "web"}, False),
        ({"standingInstruction.source": "MIT"}, False),
        ({"paymentBrand": "MAESTRO"}, False),
    ],
)
def test_a_channel_that_wants_the_code_asks_for_it_where_a_shopper_can_read_it(
    more: dict[str, str], asks: bool
) -> None:
    values = CARD | {"paymentType": "DB", **more}
    assert named(conditions.CVV_REQUIRED, values, "cvv") == ({"card.cvv"} if asks else set())
    assert named(conditions.CVV_REQUIRED, values) == set()


@pytest.mark.parametrize("proof", ["tokenAccount.cryptogram", "tokenAccount.dtvc"])
def test_a_network_token_has_one_proof_or_the_other(proof: str) -> None:
    token = {"tokenAccount.type": "NETWORK"}
    assert named(conditions.NETWORK_TOKEN_PROOF, token) == {"tokenAccount.cryptogram"}
    assert named(conditions.NETWORK_TOKEN_PROOF, token | {proof: "x"}) == set()


@pytest.mark.parametrize("country", ["ARG", "BGD", "CHL", "COL", "EGY", "IND", "DEU"])
@pytest.mark.parametrize("code", ["FUNDING", "PAYMENT", "OTHER"])
def test_a_money_transfer_to_some_countries_needs_its_purpose(code: str, country: str) -> None:
    values = {"transactionProcessingCode": code, "recipient.country": country}
    asks = code != "OTHER" and country != "DEU"
    assert named(conditions.PURPOSE_CODE, values) == ({"transactionPurposeCode"} if asks else set())


@pytest.mark.parametrize("mode", [None, "REPEATED"])
@pytest.mark.parametrize("practice", ["RESUBMISSION", "DELAYED_CHARGES", "NO_SHOW"])
def test_a_practice_of_the_merchants_is_not_the_cardholders(practice: str, mode: str | None) -> None:
    values = {"standingInstruction.industryPractice": practice, "standingInstruction.source": "CIT"}
    more = {"standingInstruction.mode": mode} if mode else {}
    assert named(conditions.CARD_ON_FILE[1:2], values | more) == {"standingInstruction.source"}


@pytest.mark.parametrize("primary", [2, 3])
def test_every_further_primary_payment_of_a_cart_is_named(primary: int) -> None:
    values = {f"cart.payments[{at}].primary": "true" for at in range(primary)}
    expected = {f"cart.payments[{at}].primary" for at in range(1, primary)}
    assert named(conditions.ONE_PRIMARY, values | {"cart.payments[7].primary": "false"}) == expected


@pytest.mark.parametrize("row", [row.name for row in CUSTOMER.rows])
def test_a_customer_needs_a_name_but_not_for_what_a_device_tells(row: str) -> None:
    """D28: the address, the browser and the number of a device; what else an app sends is the shopper's."""
    tells = row in ("ip", "app.deviceId") or row.startswith(("browser.", "browserFingerprint."))
    names = {"customer.givenName", "customer.surname"} - {f"customer.{row}"}
    assert named(conditions.CUSTOMER_NAMES, {f"customer.{row}": "x"}) == (set() if tells else names)


@pytest.mark.parametrize(("brand", "refused"), [("VISA", False), (None, False), ("GIFTCARD", True)])
def test_a_gift_card_is_not_stored_where_it_pays_and_may_be_bought(brand: str | None, refused: bool) -> None:
    values = {"createRegistration": "true", "giftCard.number": "6006491286999929"}
    found = named(conditions.NOT_STORABLE, values | ({"paymentBrand": brand} if brand else {}))
    assert found == ({"giftCard.number"} if refused else set())

"""The EMV messages: every parameter of the specification's table ends in the field that carries it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.structures import NETWORK_KEYS, three_d_secure
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.threeds_protocol.messages import (
    APP_CHANNEL,
    AUTHENTICATION_IND,
    BROWSER_CHANNEL,
    NON_PAYMENT_CATEGORY,
    PAYMENT_CATEGORY,
    REQUESTOR_CHANNEL,
    THREE_RI_IND,
    AuthenticationSubject,
    PriorAuthentication,
    build_areq,
    is_requestor_kind_known,
    mask_threeds_message,
    resolve_authenticated_amount,
    resolve_device_channel,
    resolve_message_category,
)
from gateway.threeds_protocol.networks import (
    EXEMPTED,
    THREEDS_NETWORK_BY_KEY,
    THREEDS_NETWORKS,
    find_network_eci,
    find_threeds_network,
    list_informed_reasons,
)
from gateway.threeds_protocol.required_fields import AREQ_FIELDS, find_areq_faults

PAID = Money(Decimal("92.00"), "EUR")
NUMBER = "4200000000000042"


def ask(given: dict[str, str] | None = None, **more: Any) -> AuthenticationSubject:
    values: dict[str, Any] = {
        "id": UUID(int=7),
        "brand": "VISA",
        "network": "visa",
        "number": Secret(NUMBER),
        "expiry": ("05", "2034"),
        "holder": "Jane Jones",
        "money": PAID,
        "parameters": given or {},
        "merchant": "Shop",
        "at": datetime(2026, 11, 21, 9, 8, 7, tzinfo=UTC),
    }
    return AuthenticationSubject(**(values | more))


@pytest.mark.parametrize(
    ("given", "amount"),
    [
        ({}, "92.00 EUR"),
        ({"threeDSecure.amount": "50.00"}, "50.00 EUR"),
        ({"risk.amount": "70.00"}, "70.00 EUR"),
        ({"risk.amount": "70.00", "threeDSecure.amount": "50.00"}, "70.00 EUR"),
        ({"threeDSecure.amount": "50.00", "threeDSecure.currency": "USD"}, "50.00 USD"),
        ({"threeDSecure.currency": "USD"}, "92.00 USD"),
    ],
)
def test_the_amount_to_authenticate_is_the_risk_amount_else_its_own_else_the_payments(
    given: dict[str, str], amount: str
) -> None:
    """D33; B16.4."""
    assert str(resolve_authenticated_amount(given, PAID)) == amount


@pytest.mark.parametrize(
    ("given", "channel"),
    [
        ({}, BROWSER_CHANNEL),
        ({"threeDSecure.deviceInfo": "eyJ..."}, APP_CHANNEL),
        ({"threeDSecure.channel": "03"}, REQUESTOR_CHANNEL),
        ({"threeDSecure.threeRIInd": "RECURRING"}, REQUESTOR_CHANNEL),
        ({"threeDSecure.channel": "03", "threeDSecure.deviceInfo": "eyJ..."}, REQUESTOR_CHANNEL),
    ],
)
def test_the_device_channel_follows_from_what_was_sent(given: dict[str, str], channel: str) -> None:
    """B11.5, B11.8."""
    assert resolve_device_channel(given) == channel
    assert build_areq(ask(given))["deviceChannel"] == channel


def test_npa_makes_it_a_non_payment_authentication() -> None:
    """Part B, 3D Secure, npa."""
    assert resolve_message_category({"threeDSecure.npa": "true"}) == NON_PAYMENT_CATEGORY
    assert resolve_message_category({"threeDSecure.npa": "false"}) == resolve_message_category({}) == PAYMENT_CATEGORY


def test_a_plain_request_names_card_amount_and_time() -> None:
    """EMV 3DS, AReq."""
    message = build_areq(ask())
    assert (
        message
        | {
            "messageType": "AReq",
            "messageVersion": "2.2.0",
            "acctNumber": Secret(NUMBER),
            "cardExpiryDate": "3405",
            "cardholderName": "Jane Jones",
            "purchaseAmount": "9200",
            "purchaseCurrency": "978",
            "purchaseExponent": "2",
            "purchaseDate": "20261121090807",
            "merchantName": "Shop",
            "threeDSRequestorAuthenticationInd": "01",
            "threeDSServerTransID": "00000000-0000-0000-0000-000000000007",
            "threeDSCompInd": "U",
        }
        == message
    )


@pytest.mark.parametrize(
    ("amount", "currency", "units", "exponent"),
    [("92.00", "JPY", "92", "0"), ("1.25", "BHD", "1250", "3"), ("0.00", "EUR", "0", "2"), ("1.50", "JPY", "1", "0")],
)
def test_amounts_are_in_the_currencys_smallest_unit(amount: str, currency: str, units: str, exponent: str) -> None:
    """ISO 4217; a fraction that the currency does not have is cut."""
    message = build_areq(ask(money=Money(Decimal(amount), currency)))
    assert (message["purchaseAmount"], message["purchaseExponent"]) == (units, exponent)


BROWSER_FIELDS = {
    "customer.browser.acceptHeader": "browserAcceptHeader",
    "customer.browser.language": "browserLanguage",
    "customer.browser.screenHeight": "browserScreenHeight",
    "customer.browser.screenWidth": "browserScreenWidth",
    "customer.browser.timezone": "browserTZ",
    "customer.browser.userAgent": "browserUserAgent",
    "customer.browser.screenColorDepth": "browserColorDepth",
}
ELSEWHERE = {
    "billing.street1": "billAddrLine1",
    "billing.city": "billAddrCity",
    "billing.postcode": "billAddrPostCode",
    "shipping.street1": "shipAddrLine1",
    "customer.email": "email",
    "threeDSecure.merchant.name": "merchantName",
    "threeDSecure.merchant.url": "threeDSRequestorURL",
    "threeDSecure.challengeIndicator": "threeDSRequestorChallengeInd",
    "standingInstruction.frequency": "recurringFrequency",
}


@pytest.mark.parametrize(("name", "emv"), [*BROWSER_FIELDS.items(), *ELSEWHERE.items()])
def test_a_parameter_goes_into_its_field(name: str, emv: str) -> None:
    """Part A, Customer, Billing address; Part B, 3D Secure, Card on file."""
    assert build_areq(ask({name: "16"}))[emv] == "16"


COMPLETE = {
    "customer.browser.acceptHeader": "text/html",
    "customer.browser.language": "en-GB",
    "customer.browser.screenHeight": "1080",
    "customer.browser.screenWidth": "1920",
    "customer.browser.timezone": "-60",
    "customer.browser.userAgent": "Mozilla/5.0",
    "customer.browser.javaEnabled": "false",
    "customer.browser.screenColorDepth": "24",
    "customer.ip": "192.0.2.7",
}
SDK = {
    "sdkAppID": "c5b808e7-1de1-4069-a17b-f70d3b3b1645",
    "sdkTransID": "c5b808e7-1de1-4069-a17b-f70d3b3b1646",
    "sdkEncData": "eyJ...",
    "sdkEphemPubKey": {"kty": "EC"},
    "sdkMaxTimeout": "05",
    "sdkReferenceNumber": "3DS_LOA_SDK",
    "deviceRenderOptions": {"sdkInterface": "03", "sdkUiType": ["01"]},
}
CHANNELS = {
    "browser": COMPLETE,
    "app": {"threeDSecure.deviceInfo": json.dumps(SDK)},
    "requestor": {
        "threeDSecure.threeRIInd": "RECURRING",
        "standingInstruction.expiry": "2028-05-14",
        "standingInstruction.frequency": "30",
    },
}


AGREED = {
    "standingInstruction.expiry": "2028-05-14",
    "standingInstruction.frequency": "30",
    "standingInstruction.numberOfInstallments": "12",
}


def complete(given: dict[str, str], **more: Any) -> dict[str, Any]:
    """An AReq with all that a channel's configuration adds, as it goes out."""
    values: dict[str, Any] = {
        "requestor": {"id": "R-1", "name": "Shop", "acquirerBin": "400000", "acquirerMerchantId": "M-1"},
        "website": "https://shop.example",
        "merchant_category_code": "5411",
        "merchant_country": "DE",
        "notification_url": "https://pay.example/back",
        "server": {"threeDSServerRefNumber": "3DS_LOA_SER", "threeDSServerURL": "https://threeds.example"},
    }
    return build_areq(ask(given, **(values | more))) | {"acctNumber": NUMBER}


@pytest.mark.parametrize("npa", [{}, {"threeDSecure.npa": "true"}], ids=["PA", "NPA"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_a_request_with_all_its_data_is_complete(channel: str, npa: dict[str, str]) -> None:
    """EMV 3-D Secure v2.2.0, table A.1, per device channel and message category."""
    assert find_areq_faults(complete(CHANNELS[channel] | npa)) == []


def test_the_older_version_is_complete_without_what_it_does_not_have() -> None:
    """EMV 3-D Secure v2.1.0."""
    sent = complete(COMPLETE, version="2.1.0")
    assert "browserJavascriptEnabled" not in sent
    assert find_areq_faults(sent) == []


@pytest.mark.parametrize("channel", CHANNELS)
def test_each_required_element_is_missed(channel: str) -> None:
    """201 names the element."""
    sent = complete(CHANNELS[channel])
    column = f"{sent['deviceChannel']}-{sent['messageCategory']}"
    required = [name for name, row in AREQ_FIELDS.items() if row.need[column] == "R"]
    assert len(required) > 20
    for name in required:
        if name not in ("deviceChannel", "messageCategory"):
            assert ("201", name) in find_areq_faults({key: value for key, value in sent.items() if key != name}), name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exemptionFlag", "01"),
        ("threeRIInd", "03"),
        ("sdkTransID", "c5b808e7-1de1-4069-a17b-f70d3b3b1645"),
        ("billAddrState", "Bavaria"),
        ("mobilePhone", "+49 151 234"),
        ("messageExtension", [{"name": "x", "criticalityIndicator": False, "data": {}}]),
        ("browserJavascriptEnabled", "true"),
        ("purchaseAmount", "92.00"),
        ("threeDSRequestorDecMaxTime", "60"),
    ],
)
def test_an_element_in_a_wrong_form_or_place_is_found(name: str, value: Any) -> None:
    """203 names the element."""
    assert find_areq_faults(complete(COMPLETE) | {name: value}) == [("203", name)]


def test_the_merchant_alone_sends_no_indicator_of_a_cardholders_request() -> None:
    """Table A.1: threeDSRequestorAuthenticationInd is for APP and BRW."""
    sent = complete(CHANNELS["requestor"])
    assert "threeDSRequestorAuthenticationInd" not in sent
    assert sent["threeRIInd"] == "01"


PRIOR_ACS = "5a8b7c2f-25c3-4b3e-9b1a-0d7c9f2f1e11"


@pytest.mark.parametrize(
    ("flow", "method"), [("frictionless", "01"), ("challenge", "02"), ("decoupled", "04"), ("method", None)]
)
def test_the_merchant_alone_names_how_the_cardholder_authenticated(flow: str, method: str | None) -> None:
    """EMV 3-D Secure v2.2.0, table A.10; only 3RI builds on an earlier authentication."""
    at = datetime(2026, 3, 1, 11, 22, 33, tzinfo=UTC)
    prior = PriorAuthentication(acs_transaction=PRIOR_ACS, flow=flow, at=at)
    message = complete(CHANNELS["requestor"], prior=prior)
    told = {"threeDSReqPriorAuthTimestamp": "202603011122", "threeDSReqPriorRef": PRIOR_ACS}
    told |= {"threeDSReqPriorAuthMethod": method} if method else {}
    assert message["threeDSRequestorPriorAuthenticationInfo"] == told
    assert find_areq_faults(message) == []
    wrong = message | {"threeDSRequestorPriorAuthenticationInfo": told | {"threeDSReqPriorRef": "7"}}
    assert find_areq_faults(wrong) == [("203", "threeDSRequestorPriorAuthenticationInfo")]
    assert "threeDSRequestorPriorAuthenticationInfo" not in complete(COMPLETE, prior=prior)


def test_an_id_that_is_none_of_the_protocols_does_not_make_a_request_incomplete() -> None:
    """An answer of an issuer's server may have any text of 36 characters there."""
    at = datetime(2026, 3, 1, 11, 22, 33, tzinfo=UTC)
    prior = PriorAuthentication(acs_transaction="acs-4711", flow="challenge", at=at)
    message = complete(CHANNELS["requestor"], prior=prior)
    assert find_areq_faults(message) == []
    assert message["threeDSRequestorPriorAuthenticationInfo"] == {
        "threeDSReqPriorAuthMethod": "02",
        "threeDSReqPriorAuthTimestamp": "202603011122",
    }


@pytest.mark.parametrize(
    ("depth", "sent"),
    [("30", "24"), ("24", "24"), ("08", "8"), ("36", "32"), ("99", "48"), ("2", "1"), ("0", "1"), ("10", "8")],
)
def test_a_screens_colour_depth_is_sent_as_a_value_that_the_protocol_has(depth: str, sent: str) -> None:
    """Chromium tells 30 on most Apple screens; a directory server answers it with 203."""
    message = complete(COMPLETE | {"customer.browser.screenColorDepth": depth})
    assert message["browserColorDepth"] == sent
    assert find_areq_faults(message) == []


def test_texts_that_are_longer_than_the_protocols_do_not_make_a_request_incomplete() -> None:
    """Table A.1 has shorter ones than our parameters: a shopper with a long street is not declined for it."""
    address = {"street1": "S" * 100, "street2": "T" * 100, "city": "C" * 80, "postcode": "9" * 30}
    long = {f"{kind}.{name}": text for kind in ("billing", "shipping") for name, text in address.items()}
    long |= {"customer.email": f"{'e' * 250}@shop.example", "threeDSecure.merchant.name": "M" * 100}
    language = {"customer.browser.language": "zh-Hans-"}
    message = complete(COMPLETE | long | language, holder="H" * 44 + " " + "I" * 83)
    assert find_areq_faults(message) == []
    assert (message["cardholderName"], message["browserLanguage"]) == ("H" * 44, "zh-Hans")
    assert (message["merchantName"], message["billAddrLine2"]) == ("M" * 40, "T" * 50)
    assert not {"email", "billAddrPostCode", "shipAddrPostCode"} & set(message)


@pytest.mark.parametrize("kind", ["RECURRING", "INSTALLMENT"])
@pytest.mark.parametrize("lacks", ["expiry", "frequency", "numberOfInstallments", ""])
def test_an_agreement_that_lacks_what_its_indicator_requires_is_begun_by_a_payment(kind: str, lacks: str) -> None:
    """Table A.1: 02 and 03 require an end and a frequency, which no merchant has to send."""
    given = {name: text for name, text in AGREED.items() if name != f"standingInstruction.{lacks}"}
    message = complete(COMPLETE | given | {"standingInstruction.type": kind})
    whole = not lacks or (kind, lacks) == ("RECURRING", "numberOfInstallments")
    own = AUTHENTICATION_IND[kind]
    assert message["threeDSRequestorAuthenticationInd"] == (own if whole else "01")
    assert find_areq_faults(message) == []


@pytest.mark.parametrize(
    ("number", "sent", "indicator"), [("12", "12", "03"), ("002", "2", "03"), ("1", None, "01"), ("001", None, "01")]
)
def test_a_number_of_instalments_is_sent_as_far_as_the_protocol_takes_it(
    number: str, sent: str | None, indicator: str
) -> None:
    """Table A.1: greater than 1. Our parameter has 1 and leading zeros."""
    given = AGREED | {"standingInstruction.type": "INSTALLMENT", "standingInstruction.numberOfInstallments": number}
    message = complete(COMPLETE | given)
    assert (message.get("purchaseInstalData"), message["threeDSRequestorAuthenticationInd"]) == (sent, indicator)
    assert find_areq_faults(message) == []


@pytest.mark.parametrize("kind", ["RECURRING", "UNSCHEDULED", ""])
def test_only_instalments_have_a_number_of_instalments(kind: str) -> None:
    """EMV 3-D Secure v2.2.0, table A.1, Instalment Payment Data: left out of any other authentication."""
    for channel in ("browser", "requestor"):
        given = CHANNELS[channel] | AGREED | ({"standingInstruction.type": kind} if kind else {})
        assert "purchaseInstalData" not in complete(given)


@pytest.mark.parametrize(
    ("phone", "written"),
    [
        ("+49 151 23456789", {"cc": "49", "subscriber": "15123456789"}),
        ("0049 (30) 123", {"cc": "49", "subscriber": "30123"}),
        ("+1-202-555-0100", {"cc": "1", "subscriber": "2025550100"}),
        ("+353 1 234 5678", {"cc": "353", "subscriber": "12345678"}),
        ("030 123456", None),
        ("+49", None),
    ],
)
def test_a_phone_is_country_code_and_subscriber(phone: str, written: dict[str, str] | None) -> None:
    """One without a country code is left out."""
    assert build_areq(ask({"customer.mobile": phone})).get("mobilePhone") == written


@pytest.mark.parametrize(
    ("country", "state", "written"),
    [
        ("DE", "BY", "BY"), ("DE", "Bayern", "BY"), ("USA", "california", "CA"), ("US", "US-CA", "CA"),
        ("DE", "Somewhere", None), ("", "BY", None),
    ],
)  # fmt: skip
def test_a_state_is_its_iso_code_or_left_out(country: str, state: str, written: str | None) -> None:
    """ISO 3166-2."""
    given = {"billing.state": state} | ({"billing.country": country} if country else {})
    assert build_areq(ask(given)).get("billAddrState") == written


@pytest.mark.parametrize(("address", "emv"), [("billing", "billAddr"), ("shipping", "shipAddr")])
def test_beside_a_house_number_the_second_line_is_ignored(address: str, emv: str) -> None:
    """A22.4, A24.2: street1 is only the street's name then."""
    street = {f"{address}.street1": "Main Street", f"{address}.street2": "Rear"}
    plain = build_areq(ask(street))
    assert (plain[f"{emv}Line1"], plain[f"{emv}Line2"]) == ("Main Street", "Rear")
    numbered = build_areq(ask(street | {f"{address}.houseNumber1": "12"}))
    assert (numbered[f"{emv}Line1"], numbered.get(f"{emv}Line2", "")) == ("Main Street 12", "")
    both = build_areq(ask(street | {f"{address}.houseNumber1": "12", f"{address}.houseNumber2": "b"}))
    assert (both[f"{emv}Line1"], both[f"{emv}Line2"]) == ("Main Street 12", "b")


def test_no_browser_field_is_sent_for_an_app_or_the_merchant_alone() -> None:
    """EMV 3DS: each channel has its own fields."""
    given = dict.fromkeys(BROWSER_FIELDS, "x")
    for marked in ({"threeDSecure.deviceInfo": "eyJ..."}, {"threeDSecure.channel": "03"}):
        message = build_areq(ask(given | marked))
        assert not {name for name in message if name.startswith("browser")}
        assert "threeDSCompInd" not in message
    assert build_areq(ask({"threeDSecure.deviceInfo": "eyJ..."}))["sdkEncData"] == "eyJ..."


def test_countries_and_dates_are_written_as_emv_does() -> None:
    """ISO 3166-1 numeric; yyyyMMdd."""
    message = build_areq(
        ask(
            {
                "billing.country": "DE",
                "threeDSecure.merchant.country": "GBR",
                "standingInstruction.expiry": "2028-05-14",
            }
        )
    )
    assert message["billAddrCountry"] == "276"
    assert message["merchantCountryCode"] == "826"
    assert message["recurringExpiry"] == "20280514"


@pytest.mark.parametrize("word", AUTHENTICATION_IND)
def test_every_authentication_indicator_has_its_number(word: str) -> None:
    """B11.9, B11.12. 2.2.0 has 01 to 06; a directory server would answer 203, and the payment be declined for it."""
    for version in ("2.1.0", "2.2.0"):
        sent = complete(COMPLETE | AGREED | {"threeDSecure.authenticationInd": word}, version=version)
        assert sent["threeDSRequestorAuthenticationInd"] == AUTHENTICATION_IND[word]
        assert find_areq_faults(sent) == []
    for newer in ("07", "08", "09", "10"):
        wrong = complete(COMPLETE) | {"threeDSRequestorAuthenticationInd": newer}
        assert find_areq_faults(wrong) == [("203", "threeDSRequestorAuthenticationInd")]


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("Zoë Łukasz", "Zoe Lukasz"),
        ("Jose\u0301 Müller-O’Neill", "Jose Muller-O'Neill"),
        ("李小龙", "Li Xiao Long"),
        ("J.", "J."),
        ("\U0001f600\U0001f600\U0001f600", None),
        ("", None),
    ],
)
def test_a_holders_name_is_sent_in_the_characters_that_the_protocol_takes(name: str, sent: str | None) -> None:
    """Table A.1, Cardholder Name: directory servers answer others with 203, and the shopper was declined for it."""
    message = complete(COMPLETE, holder=name)
    assert message.get("cardholderName") == sent
    assert find_areq_faults(message) == []
    assert find_areq_faults(message | {"cardholderName": "Zoë"}) == [("203", "cardholderName")]


@pytest.mark.parametrize(
    ("address", "sent"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:0db8:0000:0000:0000:0000:0000:0001"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("unknown", None),
        ("192.0.2.7, 198.51.100.1", None),
    ],
)
def test_a_browsers_address_is_written_as_the_protocol_has_it_or_left_out(address: str, sent: str | None) -> None:
    """Table A.1, Browser IP Address: eight groups of IPv6. Our parameter takes any text."""
    message = complete(COMPLETE | {"customer.ip": address})
    assert message.get("browserIP") == sent
    assert find_areq_faults(message) == []


@pytest.mark.parametrize("word", THREE_RI_IND)
def test_every_requestor_initiated_kind_has_its_number(word: str) -> None:
    """B11.9."""
    assert build_areq(ask(AGREED | {"threeDSecure.threeRIInd": word}))["threeRIInd"] == THREE_RI_IND[word]


@pytest.mark.parametrize("version", ["2.1.0", "2.2.0"])
@pytest.mark.parametrize(
    ("number", "indicator"), [("12", "02"), ("1", "11"), ("", "11")], ids=["whole", "of one", "without a number"]
)
def test_a_requestors_own_of_an_instalment_has_its_own_kind(number: str, indicator: str, version: str) -> None:
    """Table A.1, 3RI Indicator: 02, which needs what 03 of a cardholder's own needs."""
    given = CHANNELS["requestor"] | {"standingInstruction.type": "INSTALLMENT", "threeDSecure.npa": "true"}
    given |= {"standingInstruction.numberOfInstallments": number} if number else {}
    sent = complete(given, version=version)
    assert sent["threeRIInd"] == indicator
    assert sent.get("purchaseInstalData") == (number if indicator == "02" else None)
    known = is_requestor_kind_known(version, given)
    assert known is (version == "2.2.0" or indicator == "02")
    assert (find_areq_faults(sent) == []) is known


def test_the_merchant_alone_wishes_for_no_challenge_and_none_away() -> None:
    """Table A.1: threeDSRequestorChallengeInd is for APP and BRW."""
    asked = complete(CHANNELS["requestor"] | {"threeDSecure.challengeIndicator": "02"}, challenge_indicator="04")
    assert "threeDSRequestorChallengeInd" not in asked
    assert find_areq_faults(asked | {"threeDSRequestorChallengeInd": "02"}) == [("203", "threeDSRequestorChallengeInd")]


@pytest.mark.parametrize("npa", [{}, {"threeDSecure.npa": "true"}], ids=["PA", "NPA"])
@pytest.mark.parametrize("kind", [{"threeDSecure.threeRIInd": "RECURRING"}, {"threeDSecure.channel": "03"}])
@pytest.mark.parametrize("lacking", ["expiry", "frequency", "expiry frequency"])
def test_a_requestors_own_of_an_agreement_without_end_or_frequency_is_another_payment(
    lacking: str, kind: dict[str, str], npa: dict[str, str]
) -> None:
    """The specification does not require them, and 01 does: 201, and the payment was declined. Source: EMV 3-D Secure
    v2.2.0, table A.1, 3RI Indicator, Recurring Expiry, Recurring Frequency."""
    absent = {f"standingInstruction.{name}" for name in lacking.split()}
    sent = complete({name: text for name, text in AGREED.items() if name not in absent} | kind | npa)
    assert (sent["threeRIInd"], find_areq_faults(sent)) == ("11", [])


def test_the_standing_instruction_says_the_indicator_where_none_is_sent() -> None:
    """Part B, Card on file, type."""
    for kind, indicator in (("RECURRING", "02"), ("INSTALLMENT", "03"), ("UNSCHEDULED", "01")):
        sent = build_areq(ask(AGREED | {"standingInstruction.type": kind}))
        assert sent["threeDSRequestorAuthenticationInd"] == indicator


@pytest.mark.parametrize("network", NETWORK_KEYS)
def test_requestor_data_are_the_requests_own_else_the_channels(network: str) -> None:
    """Part B, threeDSecure.v2.<net>; D35."""
    of_channel = {"id": "channel-id", "name": "Channel"}
    message = build_areq(ask(network=network, requestor=of_channel))
    assert (message["threeDSRequestorID"], message["threeDSRequestorName"]) == ("channel-id", "Channel")
    other = next(key for key in NETWORK_KEYS if key != network)
    given = {f"threeDSecure.v2.{network}.requestorId": "own-id", f"threeDSecure.v2.{other}.requestorName": "Other"}
    message = build_areq(ask(given, network=network, requestor=of_channel))
    assert (message["threeDSRequestorID"], message["threeDSRequestorName"]) == ("own-id", "Channel")


def test_decoupled_scheme_data_and_the_channels_default_indicator_are_sent() -> None:
    """B11.9, B12."""
    message = build_areq(
        ask({"threeDSecure.decoupled": "true", "threeDSecure.schemeData[CB-USECASE]": "01"}, challenge_indicator="02")
    )
    assert message["threeDSRequestorDecReqInd"] == "Y"
    assert message["threeDSRequestorDecMaxTime"] == "00060"
    assert message["messageExtension"][0]["data"] == {"CB-USECASE": "01"}
    assert message["threeDSRequestorChallengeInd"] == "02"


def test_the_timeline_keeps_no_number_no_proof_no_code_and_no_device_data() -> None:
    """Goals, R8."""
    message = build_areq(ask({"threeDSecure.deviceInfo": "eyJ..."})) | {
        "authenticationValue": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
        "challengeDataEntry": "123456",
    }
    kept = mask_threeds_message(message)
    assert kept["acctNumber"] == "420000******0042"
    assert {kept[name] for name in ("sdkEncData", "authenticationValue", "challengeDataEntry")} == {"•••"}
    assert message["acctNumber"] == Secret(NUMBER)


def test_every_parameter_of_the_message_group_is_used_or_named_here() -> None:
    """Part B, 3D Secure: nothing of the authentication message's table is silently dropped."""
    message_group = three_d_secure()[0]
    example = {row.name: row.format.example for row in message_group.rows}
    decides = {
        "amount",
        "currency",
        "npa",
        "disable",
        "decoupled",
        "deviceInfo",
        "channel",
        "threeRIInd",
        "authenticationInd",
    }
    for row in message_group.rows:
        network = row.name.split(".")[1] if row.name.startswith("v2.") else "visa"
        with_it = build_areq(ask({f"threeDSecure.{row.name}": example[row.name]}, network=network))
        assert row.name in decides or with_it != build_areq(ask(network=network)), row.name


def test_networks_are_six_and_know_their_brands() -> None:
    """D35: the six keys are a setting."""
    assert tuple(THREEDS_NETWORK_BY_KEY) == NETWORK_KEYS == tuple(network.key for network in THREEDS_NETWORKS)
    assert {brand: network.key for network in THREEDS_NETWORKS for brand in network.brands}["MAESTRO"] == NETWORK_KEYS[
        1
    ]
    assert find_threeds_network("DIRECTDEBIT_SEPA") is None
    assert (
        find_network_eci("visa", "Y"),
        find_network_eci("visa", "A"),
        find_network_eci("mastercard", "Y"),
        find_network_eci("mastercard", "A"),
    ) == (
        "05",
        "06",
        "02",
        "01",
    )
    assert find_network_eci("mastercard", "U") == find_network_eci("nobody", "Y") == ""


@pytest.mark.parametrize(
    ("version", "indicator", "sent"),
    [
        ("2.1.0", "01", "01"),
        ("2.1.0", "04", "04"),
        ("2.1.0", "05", "02"),
        ("2.1.0", "06", "02"),
        ("2.1.0", "08", "02"),
        ("2.1.0", "09", "03"),
        ("2.2.0", "05", "05"),
        ("2.2.0", "09", "09"),
    ],
)
def test_an_older_protocol_gets_the_nearest_challenge_indicator_that_it_has(
    version: str, indicator: str, sent: str
) -> None:
    """2.2.0 added 05 to 09: https://docs.3dsecure.io/3dsv2/differences.html."""
    for asked in (
        ask({"threeDSecure.challengeIndicator": indicator}, version=version),
        ask(challenge_indicator=indicator, version=version),
    ):
        areq = build_areq(asked)
        assert areq["threeDSRequestorChallengeInd"] == sent
        assert ("203", "threeDSRequestorChallengeInd") not in find_areq_faults(areq)


@pytest.mark.parametrize(
    ("version", "sent", "known"),
    [
        ("2.1.0", {}, True),
        ("2.1.0", {"threeDSecure.npa": "true"}, True),
        ("2.1.0", {"threeDSecure.threeRIInd": "RECURRING"}, False),
        ("2.1.0", {"threeDSecure.channel": "03"}, False),
        ("2.1.0", AGREED | {"threeDSecure.threeRIInd": "RECURRING"}, False),
        ("2.1.0", AGREED | {"threeDSecure.threeRIInd": "RECURRING", "threeDSecure.npa": "true"}, True),
        ("2.1.0", {"threeDSecure.threeRIInd": "RECURRING", "threeDSecure.npa": "true"}, False),
        ("2.2.0", {"threeDSecure.threeRIInd": "RECURRING", "threeDSecure.npa": "true"}, True),
        ("2.1.0", {"threeDSecure.threeRIInd": "SPLIT_SHIPMENT", "threeDSecure.npa": "true"}, False),
        ("2.2.0", {"threeDSecure.threeRIInd": "DELAYED_SHIPMENT"}, True),
    ],
)
def test_2_1_has_3ri_without_a_payment_only_and_no_shipments_or_other_payments(
    version: str, sent: dict[str, str], known: bool
) -> None:
    assert is_requestor_kind_known(version, sent) is known


@pytest.mark.parametrize(("kind", "fits"), [("RECURRING", True), ("SPLIT_SHIPMENT", False)])
def test_what_2_1_cannot_say_of_a_requestors_own_authentication_is_not_sent(kind: str, fits: bool) -> None:
    """2.1.0 has threeRIInd 01 to 05; a directory server would answer 203."""
    for version in ("2.1.0", "2.2.0"):
        areq = build_areq(ask(AGREED | {"threeDSecure.threeRIInd": kind}, version=version))
        faults = find_areq_faults(areq)
        assert (("203", "threeRIInd") not in faults) == (fits or version == "2.2.0")
    areq = build_areq(ask(version="2.1.0")) | {"threeDSRequestorChallengeInd": "05"}
    assert ("203", "threeDSRequestorChallengeInd") in find_areq_faults(areq)


def test_what_2_1_does_not_have_is_left_out_of_its_request() -> None:
    """2.1.0 has no decoupled authentication: a directory server would answer 203, and the payment be declined for it.
    https://docs.3dsecure.io/3dsv2/differences.html."""
    wishes = {"threeDSecure.decoupled": "true"}
    sent = complete(COMPLETE | wishes, version="2.1.0")
    assert find_areq_faults(sent) == []
    assert "threeDSRequestorDecReqInd" not in sent
    newer = complete(COMPLETE | wishes)
    assert find_areq_faults(newer) == []
    assert newer["threeDSRequestorDecReqInd"] == "Y"


def test_an_accepted_exemption_has_the_indicator_of_its_network() -> None:
    """Mastercard 06, and 04 for data that were only shared; the others 07."""
    mastercard = find_threeds_network("MASTER")
    assert mastercard is not None
    found = {network.key: find_network_eci(network.key, EXEMPTED) for network in THREEDS_NETWORKS}
    assert found.pop(mastercard.key) == "06"
    assert set(found.values()) == {"07"}
    assert find_network_eci(mastercard.key, "I") == "04"
    told = {network.key: list_informed_reasons(network.key) for network in THREEDS_NETWORKS}
    assert told.pop(mastercard.key) == {"N": "81", "U": "80"}
    assert not any(told.values())

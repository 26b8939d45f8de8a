"""Requests as forms, objects as replies: pure functions. docs/connectors/card-api.md."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.connectors.card_api import authorize, mapping
from gateway.connectors.point_of_service import PointOfService, continue_point_of_service
from gateway.connectors.port import OutcomeUnknownError
from gateway.core.secret import Secret
from tests.gateway.connectors.card_api.asking import CARD, PAYMENT, asked

CRYPTOGRAM = Secret("AAACAgSRBklmQCFgMpEGAAAAAAA=")
PROOF = {
    "threeDSecure.eci": "05",
    "threeDSecure.dsTransactionId": "f25084f0-5b16-4c0a-ae5d-b24808a95e4b",
    "threeDSecure.version": "2.2.0",
}
OPTIONS = "payment_method_options[card]"


def form(operation: str = "DB", *, full: bool = True, multicapture: bool = False, **changes: Any) -> dict[str, Any]:
    return dict(mapping.build_intent(asked(operation, **changes), full=full, multicapture=multicapture))


def test_a_debit_is_captured_at_once_and_an_authorization_by_hand() -> None:
    assert form("DB")["capture_method"] == "automatic"
    assert form("PA")["capture_method"] == "manual"
    assert form("DB")["confirm"] == "true"


@pytest.mark.parametrize(
    ("amount", "currency", "units"),
    [
        ("92.00", "EUR", 9200),
        ("0.01", "USD", 1),
        ("92.00", "JPY", 92),
        ("1.25", "KWD", 1250),
        ("5.00", "ISK", 500),
        ("5.00", "UGX", 500),
        ("3.00", "MGA", 3),
        ("7.00", "CLP", 7),
        ("7.50", "HUF", 750),
    ],
)
def test_amounts_are_in_the_processors_own_smallest_unit_and_come_back(amount: str, currency: str, units: int) -> None:
    request = asked(amount=amount, currency=currency)
    assert mapping.units_from_money(request.money) == units
    assert mapping.money_from_units(units, currency) == request.money


def test_a_fraction_of_the_smallest_unit_is_refused() -> None:
    with pytest.raises(mapping.UnsupportedRequestError) as caught:
        form(amount="3.50", currency="MGA")
    assert caught.value.code == "100.550.303"


@pytest.mark.parametrize("units", [None, "92", 9.2, True, -1, 10**30])
def test_what_is_no_amount_is_none(units: object) -> None:
    assert mapping.money_from_units(units, "EUR") is None


def test_the_card_goes_as_raw_data_with_its_holder_and_address() -> None:
    sent = form(
        parameters={
            "billing.street1": "Main St",
            "billing.houseNumber1": "7",
            "billing.country": "DE",
            "customer.email": "jane@example.com",
        }
    )
    data = {name: value for name, value in sent.items() if name.startswith("payment_method_data")}
    assert data == {
        "payment_method_data[type]": "card",
        "payment_method_data[card][number]": CARD.number,
        "payment_method_data[card][exp_month]": "5",
        "payment_method_data[card][exp_year]": "2034",
        "payment_method_data[card][cvc]": CARD.cvv,
        "payment_method_data[billing_details][name]": "Jane Jones",
        "payment_method_data[billing_details][email]": "jane@example.com",
        "payment_method_data[billing_details][address][line1]": "Main St 7",
        "payment_method_data[billing_details][address][country]": "DE",
    }


def test_a_stored_card_has_no_code_and_none_is_made_up() -> None:
    assert "payment_method_data[card][cvc]" not in form(means=replace(CARD, cvv=None))


def test_the_proof_of_an_authentication_is_passed_through() -> None:
    """D32."""
    name = f"{OPTIONS}[three_d_secure]"
    sent = form(parameters=PROOF, cryptogram=CRYPTOGRAM)
    assert {key: value for key, value in sent.items() if key.startswith(name)} == {
        f"{name}[version]": "2.2.0",
        f"{name}[cryptogram]": CRYPTOGRAM,
        f"{name}[transaction_id]": PROOF["threeDSecure.dsTransactionId"],
        f"{name}[electronic_commerce_indicator]": "05",
    }
    half = {key: value for key, value in PROOF.items() if key != "threeDSecure.dsTransactionId"}
    assert not any(key.startswith(name) for key in form(parameters=half, cryptogram=CRYPTOGRAM))


def test_a_payment_of_the_merchants_own_is_off_session_and_names_the_schemes_reference() -> None:
    reference = {"standingInstruction.source": "MIT", "standingInstruction.initialTransactionId": "016153570198200"}
    sent = form(parameters=reference)
    assert sent["off_session"] == "true"
    assert sent[f"{OPTIONS}[mit_exemption][network_transaction_id]"] == "016153570198200"
    ours = form(parameters={**reference, "standingInstruction.initialTransactionId": "pi_3MtwBwLkdIwHu7ix28a3tqPa"})
    assert f"{OPTIONS}[mit_exemption][network_transaction_id]" not in ours
    assert "off_session" not in form()


@pytest.mark.parametrize(
    "words",
    [
        {"source": "MIT"},
        {"mode": "REPEATED", "type": "RECURRING"},
        {"industryPractice": "RESUBMISSION"},
        {"industryPractice": "NO_SHOW"},
    ],
    ids=str,
)
def test_a_payment_without_a_source_is_the_merchants_where_the_gateway_takes_it_for_one(words: dict[str, str]) -> None:
    """Without off_session issuers ask for an authentication."""
    instruction = {f"standingInstruction.{name}": value for name, value in words.items()}
    sent = form(parameters={**instruction, "standingInstruction.initialTransactionId": "016153570198200"})
    assert sent["off_session"] == "true"
    assert sent[f"{OPTIONS}[mit_exemption][network_transaction_id]"] == "016153570198200"
    assert "payment_method_data[card][cvc]" not in sent


def test_a_payment_that_stores_the_card_says_what_for() -> None:
    """The first use is marked, so that later ones have something to refer to."""
    assert form(stores=True)["setup_future_usage"] == "off_session"
    assert form(parameters={"standingInstruction.mode": "INITIAL"})["setup_future_usage"] == "off_session"
    assert "setup_future_usage" not in form()
    assert "setup_future_usage" not in form(stored=True)
    assert "setup_future_usage" not in form(stores=True, full=False)


def test_an_increment_or_rebill_is_the_merchants() -> None:
    original = continue_point_of_service(PointOfService(), "")
    assert form("RB", original=original)["off_session"] == "true"


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ({"threeDSecure.exemptionFlag": "02", "threeDSecure.challengeIndicator": "02"}, "low_risk"),
        ({"threeDSecure.challengeIndicator": "05"}, "low_risk"),
        ({"threeDSecure.exemptionFlag": "01", "threeDSecure.challengeIndicator": "02"}, "none"),
        ({"threeDSecure.challengeIndicator": "01"}, None),
    ],
)
def test_an_exemption_goes_with_the_proof_of_the_authentication_that_asked_for_it(
    sent: dict[str, str], wanted: str | None
) -> None:
    """The processor knows low_risk alone, and takes it within three_d_secure."""
    accepted = {"threeDSecure.authenticationStatus": "I", "threeDSecure.eci": "07"}
    found = form(parameters=PROOF | sent | accepted, cryptogram=CRYPTOGRAM)
    assert found.get(f"{OPTIONS}[three_d_secure][exemption_indicator]") == wanted
    assert found[f"{OPTIONS}[three_d_secure][ares_trans_status]"] == "I"
    verified = dict(mapping.build_verification(asked("RG", parameters=PROOF | sent | accepted, cryptogram=CRYPTOGRAM)))
    assert f"{OPTIONS}[three_d_secure][cryptogram]" in verified
    assert f"{OPTIONS}[three_d_secure][exemption_indicator]" not in verified, "a setup intent has no such field"
    for authenticated in ({"threeDSecure.authenticationStatus": "Y"}, {"threeDSecure.eci": "02"}):
        found = form(parameters=PROOF | sent | authenticated, cryptogram=CRYPTOGRAM)
        assert f"{OPTIONS}[three_d_secure][exemption_indicator]" not in found
    assert not any("three_d_secure" in name for name in form(parameters=sent))


@pytest.mark.parametrize(("eci", "sent"), [("04", None), ("00", None), ("06", "06"), ("02", "02"), ("07", "07")])
def test_an_indicator_that_the_processor_does_not_know_is_left_out(eci: str, sent: str | None) -> None:
    """01, 02, 05, 06 and 07 are allowed; Mastercard's 04 would have the payment refused."""
    found = form(parameters=PROOF | {"threeDSecure.eci": eci}, cryptogram=CRYPTOGRAM)
    assert found.get(f"{OPTIONS}[three_d_secure][electronic_commerce_indicator]") == sent
    assert f"{OPTIONS}[three_d_secure][cryptogram]" in found


@pytest.mark.parametrize(
    ("descriptor", "wanted"),
    [
        ("Order 4711", "Order 4711"),
        ('<Order> "4711" *\'', "Order 4711"),
        ("4711", None),
        ("", None),
        ("Käse und Brot", "K se und Brot"),
        ("A" * 30, "A" * 22),
    ],
)
def test_the_descriptor_is_cut_to_what_statements_take(descriptor: str, wanted: str | None) -> None:
    assert form(parameters={"descriptor": descriptor}).get("statement_descriptor_suffix") == wanted


def test_metadata_names_our_payment_and_the_merchants_order() -> None:
    sent = form(parameters={"merchantTransactionId": "order-4711"})
    assert sent["metadata[tollhouse_payment]"] == PAYMENT.hex
    assert sent["metadata[order]"] == "order-4711"


def test_an_intent_takes_cards_alone() -> None:
    """Without the types it takes what may redirect, and the processor refuses it without a return_url."""
    assert form()["payment_method_types[]"] == "card"
    assert "payment_method_types[]" not in form(full=False), "servers of the core profile do not know it"


def test_the_schemes_reference_is_left_out_where_the_processor_does_not_allow_it() -> None:
    later = asked(
        parameters={
            "standingInstruction.mode": "REPEATED",
            "standingInstruction.source": "MIT",
            "standingInstruction.initialTransactionId": "016153570198200",
        }
    )
    name = f"{OPTIONS}[mit_exemption][network_transaction_id]"
    for allowed in (True, False):
        sent = dict(mapping.build_intent(later, full=True, multicapture=False, mit_reference=allowed))
        assert (name in sent, sent["off_session"]) == (allowed, "true")


def test_names_of_metadata_keep_to_forty_characters() -> None:
    names = [name for name, _ in (*mapping.build_capture_mark(asked("CP")), *mapping.build_closing_mark(PAYMENT))]
    assert all(len(name.removeprefix("metadata[").removesuffix("]")) <= 40 for name in names)


def test_a_card_that_came_by_mail_or_telephone_is_verified_as_such() -> None:
    request = asked("RG", amount="0.00", parameters={"transactionCategory": "TO"})
    assert ("payment_method_options[card][moto]", "true") in mapping.build_verification(request)
    assert not [name for name, _ in mapping.build_verification(asked("RG", amount="0.00")) if "moto" in name]


@pytest.mark.parametrize(("operation", "amount"), [("RG", "0.00"), ("PA", "0.00")])
def test_nothing_to_pay_is_a_verification(operation: str, amount: str) -> None:
    """D27."""
    request = asked(operation, amount=amount)
    assert mapping.is_verification(request)
    sent = dict(mapping.build_verification(request))
    assert "amount" not in sent
    assert sent["usage"] == "off_session"


@pytest.mark.parametrize(
    ("multicapture", "final", "wanted"), [(True, "", "false"), (True, "FINAL", "true"), (False, "", None)]
)
def test_the_rest_is_kept_for_another_capture_only_with_multicapture(
    multicapture: bool, final: str, wanted: str | None
) -> None:
    request = asked("CP", amount="40.00", reference="pi_1", parameters={"sequence": final} if final else {})
    sent = dict(mapping.build_capture(request, full=True, multicapture=multicapture))
    assert sent["amount_to_capture"] == "4000"
    assert sent.get("final_capture") == wanted
    assert sent[f"metadata[capture_{PAYMENT.hex}]"] == "4000"


def test_a_device_number_of_a_wallet_is_refused() -> None:
    with pytest.raises(mapping.UnsupportedRequestError) as caught:
        form(means=replace(CARD, number_type="DPAN"))
    assert caught.value.code == "600.200.200"


def test_what_is_kept_of_a_form_shows_no_number_code_or_cryptogram() -> None:
    kept = mapping.mask_form(
        mapping.build_intent(asked(parameters=PROOF, cryptogram=CRYPTOGRAM), full=True, multicapture=False)
    )
    text = json.dumps(kept)
    assert "4242424242424242" not in text
    assert CRYPTOGRAM.reveal() not in text
    assert kept["payment_method_data[card][number]"] == "424242******4242"
    assert kept["payment_method_data[card][cvc]"] == mapping.HIDDEN_SECRET
    core = mapping.mask_form(mapping.build_card_object(asked()))
    assert (core["card[number]"], core["card[cvc]"]) == ("424242******4242", mapping.HIDDEN_SECRET)


def made(**changes: Any) -> dict[str, Any]:
    values = {
        "object": "payment_intent",
        "id": "pi_1",
        "status": "succeeded",
        "amount": 9200,
        "currency": "eur",
        "amount_received": 9200,
        "capture_method": "automatic",
        "metadata": {"tollhouse_payment": PAYMENT.hex},
    }
    return values | changes


def test_a_paid_intent_grants_its_amount_and_tells_the_checks() -> None:
    card = {"checks": {"address_line1_check": "pass", "address_postal_code_check": "pass", "cvc_check": "fail"}}
    charge = {"id": "ch_1", "payment_method_details": {"card": card}}
    reply = authorize.reply_from_intent(asked(), made(latest_charge=charge), {})
    assert reply.approved == asked().money
    assert (reply.connector_tx_id, reply.avs, reply.cvv) == ("pi_1", "F", "N")
    assert reply.details["ConnectorTxID2"] == "ch_1"


@pytest.mark.parametrize(
    "thing",
    [
        made(amount_received=9300),
        made(amount_received=0),
        made(amount_received="9200"),
        made(currency="usd"),
        made(status="requires_capture"),
        made(status="processing"),
        made(status="a_word_of_tomorrow"),
        made(status=None),
        made(status="requires_payment_method"),
        made(metadata={}),
        made(metadata={"tollhouse_payment": "f" * 32}),
        made(metadata={"tollhouse_payment": PAYMENT.hex, "tollhouse_closed": "1"}),
        made(metadata=["tollhouse_payment"]),
        made(id=None),
        made(id="pi 1"),
    ],
)
def test_an_object_that_contradicts_the_question_is_silence(thing: dict[str, Any]) -> None:
    with pytest.raises(OutcomeUnknownError):
        authorize.reply_from_intent(asked(), thing, {})


@pytest.mark.parametrize(
    ("thing", "code"),
    [
        (made(status="canceled"), "900.100.301"),
        (made(status="requires_action"), "300.100.100"),
        (
            made(
                status="requires_payment_method",
                last_payment_error={"code": "card_declined", "decline_code": "stolen_card"},
            ),
            "800.100.159",
        ),
        (made(status="requires_payment_method", last_payment_error={"code": "card_declined"}), "800.100.152"),
    ],
)
def test_an_intent_that_was_not_paid_is_a_decline(thing: dict[str, Any], code: str) -> None:
    reply = authorize.reply_from_intent(asked(), thing, {})
    assert (reply.code, reply.approved) == (code, None)

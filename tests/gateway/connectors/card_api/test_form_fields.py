"""Fields of forms and objects one by one, at their borders: pure functions. docs/connectors/card-api.md."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.operation import CardApiOperation, reply_from_failure
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse
from gateway.connectors.port import AcquirerReply, ConnectorAccount, OutcomeUnknownError
from gateway.core.secret import Secret
from tests.gateway.connectors.card_api.asking import PAYMENT, asked
from tests.gateway.connectors.card_api.scripted import operation_of

OPTIONS = "payment_method_options[card]"
DETAILS = "payment_method_data[billing_details]"
PROOF = {"threeDSecure.eci": "05", "threeDSecure.dsTransactionId": "f25084f0-5b16-4c0a-ae5d-b24808a95e4b"}
REFERENCE = {"standingInstruction.initialTransactionId": "016153570198200"}


def form(operation: str = "DB", *, full: bool = True, multicapture: bool = False, **changes: Any) -> dict[str, Any]:
    return dict(mapping.build_intent(asked(operation, **changes), full=full, multicapture=multicapture))


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("customer.email", "[email]"),
        ("customer.phone", "[phone]"),
        ("billing.street1", "[address][line1]"),
        ("billing.houseNumber1", "[address][line1]"),
        ("billing.street2", "[address][line2]"),
        ("billing.city", "[address][city]"),
        ("billing.state", "[address][state]"),
        ("billing.postcode", "[address][postal_code]"),
        ("billing.country", "[address][country]"),
    ],
)
def test_each_part_of_an_address_has_its_own_field(name: str, field: str) -> None:
    sent = {key: value for key, value in form(parameters={name: "value"}).items() if key.startswith(DETAILS)}
    assert sent == {f"{DETAILS}[name]": "Jane Jones", f"{DETAILS}{field}": "value"}


@pytest.mark.parametrize(
    ("sequence", "clearing", "last"),
    [
        ("", (0, 0), False),
        ("", (1, 3), False),
        ("", (2, 3), False),
        ("", (3, 3), True),
        ("", (1, 1), True),
        ("FINAL", (0, 0), True),
        ("FINAL", (1, 3), True),
        ("PARTIAL", (1, 3), False),
    ],
)
def test_the_last_capture_is_the_last_of_its_number_or_the_final_one(
    sequence: str, clearing: tuple[int, int], last: bool
) -> None:
    request = asked("CP", reference="pi_1", clearing=clearing, parameters={"sequence": sequence})
    assert mapping.is_last_capture(request) is last
    sent = dict(mapping.build_capture(request, full=True, multicapture=True))
    assert sent["final_capture"] == ("true" if last else "false")


@pytest.mark.parametrize(("attempt", "mark"), [(1, None), (2, "2"), (3, "3")])
def test_a_second_attempt_is_marked_and_a_first_is_not(attempt: int, mark: str | None) -> None:
    assert form(attempt=attempt).get("metadata[tollhouse_attempt]") == mark


@pytest.mark.parametrize(
    ("metadata", "made"),
    [
        ({}, 1),
        ({"tollhouse_attempt": "2"}, 2),
        ({"tollhouse_attempt": "999"}, 999),
        ({"tollhouse_attempt": "1000"}, 0),
        ({"tollhouse_attempt": "two"}, 0),
        ({"tollhouse_attempt": "٢"}, 0),
        ({"tollhouse_attempt": 2}, 1),
    ],
)
def test_an_object_is_of_the_attempt_that_its_mark_names(metadata: dict[str, Any], made: int) -> None:
    resource = {"metadata": {"tollhouse_payment": PAYMENT.hex, **metadata}}
    assert mapping.read_attempt(resource) == made
    assert [number for number in (1, 2, 999) if mapping.is_made_by_request(resource, asked(attempt=number))] == (
        [made] if made else []
    )


@pytest.mark.parametrize("length", [1, 499, 500, 501, 2_000])
def test_a_merchants_order_fits_into_metadata(length: int) -> None:
    assert form(parameters={"merchantTransactionId": "x" * length})["metadata[order]"] == "x" * min(length, 500)


def test_a_shopper_who_pays_names_no_reference_of_the_schemes() -> None:
    """It belongs to payments of the merchant's own."""
    for source in ({}, {"standingInstruction.source": "CIT", "standingInstruction.mode": "REPEATED"}):
        sent = form(parameters=REFERENCE | source, stored=True)
        assert not [name for name in sent if "mit_exemption" in name], source
        assert "off_session" not in sent


@pytest.mark.parametrize(
    ("version", "api_version", "sent"),
    [
        (None, "", "2.2.0"),
        ("1.0.2", "", "1.0.2"),
        ("1.0.3", "", "1.0.2"),
        ("2.1.0", "", "2.1.0"),
        ("2.2.1", "", "2.2.0"),
        ("2.3.1", "", "2.2.0"),
        ("2.3.1", "2025-12-15.clover", "2.2.0"),
        ("2.3.1", "2026-01-28.clover", "2.3.1"),
        ("2.3.0", "2026-06-24.dahlia", "2.3.0"),
        ("2.3.2", "2026-06-24.dahlia", "2.2.0"),
    ],
)
def test_a_proof_has_its_own_version_or_one_that_the_api_knows(
    version: str | None, api_version: str, sent: str
) -> None:
    """One that it does not know would have the payment refused, after the shopper's challenge."""
    proof = PROOF | ({"threeDSecure.version": version} if version else {})
    account = ConnectorAccount(settings={"api_version": api_version} if api_version else {})
    found = form(parameters=proof, cryptogram=Secret("AAACAgSRBklmQCFgMpEGAAAAAAA="), account=account)
    assert found[f"{OPTIONS}[three_d_secure][version]"] == sent


@pytest.mark.parametrize(("status", "sent"), [("Y", None), ("A", None), ("I", "I"), (None, None)])
def test_the_status_of_the_first_answer_is_told_where_it_is_known(status: str | None, sent: str | None) -> None:
    """Y may be the end of a challenge, whose first answer was C."""
    proof = PROOF | ({"threeDSecure.authenticationStatus": status} if status else {})
    found = form(parameters=proof, cryptogram=Secret("AAACAgSRBklmQCFgMpEGAAAAAAA="))
    assert found.get(f"{OPTIONS}[three_d_secure][ares_trans_status]") == sent


@pytest.mark.parametrize(
    ("descriptor", "wanted"),
    [
        ("A" * 21 + " BC", "A" * 21),
        ("A" * 22, "A" * 22),
        ("A" * 23, "A" * 22),
        ("1" * 22 + "A", None),
        ("  two   spaces  ", "two spaces"),
        ("z", "z"),
    ],
)
def test_a_descriptor_ends_in_no_space_and_has_a_letter_in_what_is_left(descriptor: str, wanted: str | None) -> None:
    assert form(parameters={"descriptor": descriptor}).get("statement_descriptor_suffix") == wanted


@pytest.mark.parametrize(
    ("operation", "multicapture", "asks"), [("PA", True, True), ("PA", False, False), ("DB", True, False)]
)
def test_several_captures_are_asked_for_an_authorization_only(operation: str, multicapture: bool, asks: bool) -> None:
    assert (f"{OPTIONS}[request_multicapture]" in form(operation, multicapture=multicapture)) is asks
    assert f"{OPTIONS}[request_multicapture]" not in form(operation, multicapture=multicapture, full=False)


@pytest.mark.parametrize(("reference", "name"), [("pi_1", "payment_intent"), ("ch_1", "charge")])
def test_a_refund_names_what_it_refers_to_its_amount_and_our_payment(reference: str, name: str) -> None:
    assert dict(mapping.build_refund(asked("RF", amount="12.34", reference=reference))) == {
        name: reference,
        "amount": "1234",
        "metadata[tollhouse_payment]": PAYMENT.hex,
    }


@pytest.mark.parametrize(
    ("operation", "amount", "moves"), [("DB", "92.00", True), ("PA", "0.00", False), ("RG", "0.00", False)]
)
def test_a_key_is_used_up_by_an_object_of_the_same_kind_without_a_card(
    operation: str, amount: str, moves: bool
) -> None:
    sent = dict(mapping.build_closing_request(asked(operation, amount=amount)))
    assert (sent.get("amount"), sent.get("currency")) == (("9200", "eur") if moves else (None, None))
    assert ("usage" in sent) is not moves
    assert sent["metadata[tollhouse_closed]"] == "1"
    assert not [name for name in sent if "card]" in name]


@pytest.mark.parametrize(
    ("created", "before", "seconds"),
    [
        (1_000, 1_001, 1),
        (1_000, 605_800, 604_800),
        (1_000, 1_000 + 366 * 86_400, 366 * 86_400),
        (1_000, 1_000 + 367 * 86_400, 366 * 86_400),
        (1_000, 1_000, None),
        (1_000, 999, None),
        (0, 1_000, None),
        (-1, 1_000, None),
        (True, 1_000, None),
        ("1000", 2_000, None),
        (1_000, None, None),
    ],
)
def test_an_authorization_is_valid_until_the_processors_time_a_year_at_most(
    created: object, before: object, seconds: int | None
) -> None:
    charge = {"id": "ch_1", "created": created, "payment_method_details": {"card": {"capture_before": before}}}
    wanted = timedelta(seconds=seconds) if seconds is not None else None
    assert mapping.parse_charge({"latest_charge": charge}).valid_for == wanted


@pytest.mark.parametrize(
    ("resource", "ident"),
    [
        ({"latest_charge": "ch_1"}, "ch_1"),
        ({"latest_charge": {"id": "ch_1"}}, "ch_1"),
        ({"latest_attempt": "setatt_1"}, "setatt_1"),
        ({"latest_charge": None, "latest_attempt": {"id": "setatt_1"}}, "setatt_1"),
        ({"latest_charge": ["ch_1"]}, ""),
        ({"latest_charge": "ch 1"}, ""),
        ({}, ""),
    ],
)
def test_the_charge_is_an_id_or_an_object_of_an_intent_or_a_setup(resource: dict[str, Any], ident: str) -> None:
    assert mapping.parse_charge(resource).id == ident


@pytest.mark.parametrize(
    ("error", "advice", "own"),
    [
        ({"network_advice_code": "24"}, "24", False),
        ({"network_advice_code": "02", "advice_code": "do_not_try_again"}, "02", True),
        ({"network_advice_code": "2", "advice_code": "do_not_try_again"}, "03", True),
        ({"network_advice_code": "240"}, "", False),
        ({"network_advice_code": "2A"}, "", False),
        ({"network_advice_code": "٢٢"}, "", False),
        ({"advice_code": "do_not_try_again"}, "03", True),
        ({"advice_code": "try_again_later"}, "", True),
        ({}, "", False),
    ],
)
def test_an_advice_is_the_networks_two_digits_or_the_processors_words(
    error: dict[str, Any], advice: str, own: bool
) -> None:
    assert (mapping.parse_advice_code(error), mapping.has_own_advice(error)) == (advice, own)


# --- what failed ------------------------------------------------------------------------------------------------------


def failed(operation: str, kind: CallVerdict, **more: Any) -> AcquirerReply:
    response = CardApiResponse(kind=kind, **more)
    question: CardApiOperation = operation_of(asked(operation, reference="pi_1"))
    return reply_from_failure(question, response, {})


@pytest.mark.parametrize("made", ["payment_intent", "setup_intent"])
def test_a_decline_keeps_the_checks_and_the_id_of_what_was_made(made: str) -> None:
    card = {"checks": {"address_line1_check": "fail", "address_postal_code_check": "pass", "cvc_check": "pass"}}
    charge = {"id": "ch_1", "payment_method_details": {"card": card}}
    error = {
        "code": "card_declined",
        "decline_code": "do_not_honor",
        "advice_code": "do_not_try_again",
        made: {"id": "xi_1", "latest_charge": charge},
    }
    reply = failed("DB", CallVerdict.DECLINED, status=402, body={"error": error})
    assert (reply.code, reply.approved, reply.connector_tx_id) == ("800.100.183", None, "xi_1")
    assert (reply.avs, reply.cvv, reply.has_own_advice) == ("Z", "M", True)
    assert reply.details == {"AcquirerResponse": "do_not_honor", "MerchantAdviceCode": "03"}


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        (CallVerdict.SHUT, 401, "900.100.200"),
        (CallVerdict.SHUT, 413, "900.100.200"),
        (CallVerdict.SHUT, 429, "900.100.600"),
        (CallVerdict.UNSENT, 0, "900.100.600"),
    ],
)
@pytest.mark.parametrize(("operation", "elsewhere"), [("DB", True), ("RB", True), ("RG", True), ("CP", False)])
def test_what_was_not_judged_goes_elsewhere_if_it_is_a_first_payment(
    kind: CallVerdict, status: int, code: str, operation: str, elsewhere: bool
) -> None:
    reply = failed(operation, kind, status=status)
    assert (reply.code, reply.retryable_elsewhere) == (code, elsewhere)


@pytest.mark.parametrize("kind", [CallVerdict.UNCLEAR, CallVerdict.TAKEN])
def test_what_may_have_been_taken_is_not_known(kind: CallVerdict) -> None:
    with pytest.raises(OutcomeUnknownError):
        failed("DB", kind, status=409)
    question = operation_of(asked("DB"))
    reply = reply_from_failure(question, CardApiResponse(kind=kind), {}, moves_money=False)
    assert (reply.code, reply.approved) == ("900.100.600", None)


def test_a_card_object_needs_the_cards_code() -> None:
    card = asked().means
    assert card is not None
    with pytest.raises(mapping.UnsupportedRequestError) as caught:
        mapping.build_card_object(asked(means=replace(card, cvv=None)))
    assert caught.value.code == "100.100.600"

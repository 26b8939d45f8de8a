"""ISO 8583 messages as pure functions: encodings, amounts, numbers, the tables of codes, what is kept."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.iso8583 import private_field, response_codes
from gateway.connectors.iso8583.codec import BadFrameError, BadMessageError, MessageCodec
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.iso8583.data_elements import DATA_ELEMENTS
from gateway.connectors.iso8583.field_formats import FIELD_ENCODINGS, FIELD_MAP, build_field_spec
from gateway.connectors.iso8583.iso_request import (
    MESSAGE_KINDS,
    OriginalMessage,
    UnsendableRequestError,
    build_iso_request,
    build_rrn,
)
from gateway.connectors.iso8583.mapping import build_iso_message, build_message_key, mask_iso_message
from gateway.connectors.iso8583.replies import prepare_late_reply, reply_from_answer, reply_from_reversal
from gateway.connectors.iso8583.terminal import (
    ISO8583_SETTINGS,
    Terminal,
    check_terminal_settings,
    is_private_address,
    parse_terminal,
)
from gateway.connectors.means import Card, TokenAccount
from gateway.connectors.point_of_service import build_point_of_service
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorAccount,
    NotFoundAtAcquirer,
    NotFoundYetError,
    OutcomeUnknownError,
)
from gateway.core import result_codes
from gateway.core.money import CURRENCY_CODES, Money, currency_exponent
from gateway.core.secret import Secret
from gateway.risk.retry_rules import find_issuer_stop
from gateway.scheduling.dunning import DunningRetry, decide_dunning

PAN = "4200000000000000"
HOST = {"host": "127.0.0.1", "port": "8583", "terminal": "TERM0001"}
TERMINAL = parse_terminal(ConnectorAccount(merchant="M-1", settings=HOST))
CARD = Card(number=Secret(PAN), expiry_month="05", expiry_year="2034", cvv=Secret("987"))
REFERENCE = OriginalMessage(
    operation="PA",
    stan="000042",
    sent_at="0301115959",
    rrn="606012345678",
    auth="A00042",
    amount=10_000,
    network="483296210004567",
)


def request(operation: str = "DB", amount: str = "10.00", currency: str = "EUR", **more: Any) -> AcquirerRequest:
    return AcquirerRequest(
        **{
            "payment": UUID(int=7),
            "trace_number": 4711,
            "operation": operation,
            "money": Money.parse(amount, currency),
            "brand": "VISA",
            "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
            "means": CARD,
            "account": ConnectorAccount(merchant="M-1", settings=HOST),
            "reference": REFERENCE.text() if operation in ("CP", "RF", "RV") else "",
            **more,
        }
    )


def written(asked: AcquirerRequest, terminal: Terminal = TERMINAL, *, void: bool = False) -> dict[str, str]:
    return build_iso_message(build_iso_request(asked, terminal, void=void))


def answer(asked: AcquirerRequest, repeat: bool = False, terminal: Terminal = TERMINAL, **changes: str | None) -> Any:
    put = build_iso_request(asked, terminal)
    told = {"t": "0210", "39": "00", "38": "A1B2C3", "4": build_iso_message(put)["4"]}
    told |= {name.removeprefix("de"): value for name, value in changes.items()}  # type: ignore[misc]
    return reply_from_answer(put, {name: value for name, value in told.items() if value is not None}, {}, repeat=repeat)


@pytest.mark.parametrize("encoding", list(FIELD_ENCODINGS))
@pytest.mark.parametrize("operation", [kind for kind in MESSAGE_KINDS if kind != "V"])
def test_every_message_comes_back_out_of_its_frame_as_it_went_in(operation: str, encoding: str) -> None:
    """ISO 8583:1987, in every encoding."""
    wire = MessageCodec(encoding=encoding, tpdu="6000010000")
    for void in (False, operation != "RV"):
        message = written(request(operation), replace(TERMINAL, wire=wire), void=void)
        (frame,), rest = wire.split_frames(wire.frame(message))
        assert wire.message(frame) == message
        assert rest == b""


def test_a_known_message_has_known_octets() -> None:
    """By hand: type, bitmap, PAN with its length, packed digits with a zero before an odd number of them."""
    message = {"t": "0100", "2": "378282246310005", "3": "000000", "39": "05", "49": "978"}
    packed = MessageCodec(encoding="bcd").frame(message)
    assert packed.hex() == "001a0100600000000200800015037828224631000500000030350978"
    plain = MessageCodec(encoding="ascii-hex").frame(message)
    assert plain[2:] == b"010060000000020080001537828224631000500000005978"


@pytest.mark.parametrize("currency", sorted(CURRENCY_CODES))
def test_amounts_go_in_the_minor_unit_of_their_currency_and_come_back(currency: str) -> None:
    """ISO 4217: exponents; DE4 and DE49."""
    text = "92" if currency_exponent(currency) == 0 else "92.50"
    message = written(request(amount=text, currency=currency))
    assert int(message["4"]) == Money.parse(text, currency).minor_units()
    assert re.fullmatch("[0-9]{12}", message["4"]) and re.fullmatch("[0-9]{3}", message["49"])  # noqa: PT018
    granted = answer(request("PA", amount=text, currency=currency), de39="10", de4="000000000010").approved
    assert granted == Money.from_minor_units(10, currency)


def test_exponents_of_the_currencies_that_trip_people_up() -> None:
    """JPY has none, KWD has three."""
    sent = {currency: written(request(amount="92.00", currency=currency))["4"] for currency in ("EUR", "JPY", "KWD")}
    assert sent == {"EUR": "000000009200", "JPY": "000000000092", "KWD": "000000092000"}
    with pytest.raises(OutcomeUnknownError):
        answer(request("PA", currency="KWD"), de39="10", de4="000000000001")


def test_an_amount_of_more_digits_than_the_field_is_not_sent() -> None:
    """DE4 is n12."""
    assert written(request(amount="9999999999.00"))["4"] == "999999999900"
    with pytest.raises(UnsendableRequestError):
        written(request(amount="9999999999.00", currency="KWD"))


def test_numbers_come_with_the_payment() -> None:
    """So whoever repeats a message or takes it back builds the same again; a reversal has the number after."""
    message = written(request())
    assert (message["11"], message["37"]) == ("004711", "606012004711")
    assert written(request(), void=True)["11"] == "004712"
    assert written(request(), void=True)["90"][4:10] == "004711"
    assert build_rrn(999_899, datetime(2026, 12, 31, 23, 59, tzinfo=UTC)) == "636523999899"
    assert written(request()) == message
    sent_before = replace(REFERENCE, operation="DB", auth="").text()
    assert written(request(known_transaction_id=sent_before))["11"] == "000042"
    with pytest.raises(UnsendableRequestError):
        written(request(trace_number=0))


def test_a_renewal_held_apart_is_taken_back_whatever_is_left_by_now() -> None:
    """It was sent for all that was left then."""
    apart = replace(TERMINAL, renewals_apart=True)
    renewal = request("PA", "100.00", reference=REFERENCE.text(), renewable_amount=Decimal("80.00"))
    with pytest.raises(UnsendableRequestError):
        written(renewal, apart)
    void = written(renewal, apart, void=True)
    assert (void["t"], void["4"]) == ("0420", "000000010000")


@settings(max_examples=40)
@given(st.text(max_size=64))
def test_a_reference_of_anybody_else_is_none(text: str) -> None:
    """Follow-ups need an original of this connector."""
    assert OriginalMessage.parse(text) is None or OriginalMessage.parse(text).text() == text  # type: ignore[union-attr]


def test_a_reference_fits_its_column_and_comes_back() -> None:
    """connector_tx_id has 64 characters."""
    longest = replace(REFERENCE, amount=10**12 - 1, network="9" * 15)
    assert len(longest.text()) == 64
    assert OriginalMessage.parse(REFERENCE.text()) == REFERENCE
    assert OriginalMessage.parse(replace(REFERENCE, auth="", network="").text()) == replace(
        REFERENCE, auth="", network=""
    )


def test_a_networks_reference_that_does_not_fit_is_left_out() -> None:
    """Cut off it would name another transaction: Mastercard's transaction link id has 22 characters."""
    linked = replace(REFERENCE, network="MTLI567890123456789012")
    assert OriginalMessage.parse(linked.text()) == replace(REFERENCE, network="")


@pytest.mark.parametrize("operation", ["CP", "RF", "RV"])
def test_what_follows_a_payment_of_another_connector_is_not_sent(operation: str) -> None:
    """There is nothing that DE90 could name."""
    with pytest.raises(UnsendableRequestError):
        written(request(operation, reference="SIM1234"))


def test_every_element_is_in_the_field_map_and_fits_it() -> None:
    """The mapping table and the field map belong together."""
    assert {row.number for row in DATA_ELEMENTS} <= set(FIELD_MAP)
    assert {kind for row in DATA_ELEMENTS for kind in row.kinds.split()} == set(MESSAGE_KINDS)
    for number in FIELD_MAP:
        assert number in build_field_spec("ascii")


def test_an_account_may_have_a_field_in_another_format() -> None:
    """Dialects differ."""
    wire = MessageCodec(encoding="bcd", formats="39=n2 54=ans...255")
    assert wire.frame({"t": "0110", "39": "05"}).hex() == "000b0110000000000200000005"
    with pytest.raises(ValueError, match="number=format"):
        build_field_spec("ascii", "39=x")


@pytest.mark.parametrize(
    "header, octets",
    [("2a", b"x1"), ("4a", b"00 1"), ("2b", b"\xff\xff"), ("4b", b"\x7f\xff\xff\xff"), ("4a", b"9999")],
)
def test_a_length_that_cannot_be_is_a_bad_frame(header: str, octets: bytes) -> None:
    """MAX_FRAME_BYTES bounds what is read."""
    with pytest.raises(BadFrameError):
        MessageCodec(header=header).split_frames(octets)
    with pytest.raises(BadFrameError):
        MessageCodec(header="2b", counts_itself=True).split_frames(b"\x00\x01")


@settings(max_examples=40)
@given(st.binary(max_size=80))
def test_no_octets_whatever_are_more_than_a_bad_message(octets: bytes) -> None:
    """Goals, R4: garbage ends in one exception."""
    for encoding in FIELD_ENCODINGS:
        try:
            MessageCodec(encoding=encoding).message(octets)
        except BadMessageError as fault:
            assert str(fault)  # noqa: PT017


def test_a_message_that_does_not_fit_tells_the_field_and_nothing_else() -> None:
    """Goals, R8."""
    with pytest.raises(BadMessageError) as fault:
        MessageCodec().frame({"t": "0200", "2": PAN * 2})
    assert str(fault.value) == "does not fit field 2"
    assert fault.value.__suppress_context__


def test_what_is_kept_shows_no_account_and_no_secret() -> None:
    """Goals, R8."""
    token = TokenAccount(
        account=Secret(PAN),
        type="NETWORK",
        expiry_month="05",
        expiry_year="2034",
        cryptogram=Secret("AgAAAAAAAIR8CQrXcIhbQAAAAAA="),
        dtvc=Secret("951"),
    )
    for means, secrets in ((CARD, ["987"]), (token, ["AgAAAAAAAIR8CQrXcIhbQAAAAAA=", "951"])):
        put = build_iso_request(request(means=means), TERMINAL)
        message = build_iso_message(put)
        kept = mask_iso_message(message, put)
        assert message["2"] == PAN
        assert all(secret in message["48"] for secret in secrets)
        assert kept["2"] == "420000******0000"
        assert not [secret for secret in secrets if secret in kept["48"].values()]
        assert {**kept["48"]} == {"eci": "07"} | dict.fromkeys(kept["48"].keys() - {"eci"}, "***")
    put = build_iso_request(request(), replace(TERMINAL, private_field="126"))
    assert mask_iso_message(build_iso_message(put), put)["126"] == {"eci": "07", "cvv2": "***"}
    assert "48" not in build_iso_message(put)


def test_a_stored_cards_token_goes_with_its_date_its_cryptogram_and_its_requestor() -> None:
    """docs/decisions/0126."""
    token = TokenAccount(
        account=Secret("4289000000000008"),
        type="NETWORK",
        expiry_month="05",
        expiry_year="2037",
        cryptogram=Secret("AgAAAAAAAIR8CQrXcIhbQAAAAAA="),
        requestor="40010030273",
    )
    message = build_iso_message(build_iso_request(request(means=token), TERMINAL))
    assert (message["2"], message["14"]) == ("4289000000000008", "3705")
    parts = private_field.parse_private_field(message["48"])
    assert (parts["cryptogram"], parts["tokenRequestor"]) == ("AgAAAAAAAIR8CQrXcIhbQAAAAAA=", "40010030273")
    assert "tokenRequestor" not in build_iso_request(request(), TERMINAL).parts


def test_parts_of_the_private_field_come_back() -> None:
    """Two digits of number, two of length."""
    parts = {part.name: f"value of {part.name}"[:20] for part in private_field.PRIVATE_FIELD_PARTS}
    assert private_field.parse_private_field(private_field.write_private_field(parts)) == parts
    assert private_field.parse_private_field("8301Z99") == {"avs": "Z"}
    assert (
        private_field.parse_private_field("8399Z")
        == private_field.parse_private_field("xx")
        == private_field.parse_private_field("0502xx")
        == {}
    )
    with pytest.raises(ValueError, match="too long"):
        private_field.write_private_field({"cavv": "x" * 100})


@pytest.mark.parametrize(
    "words, code",
    [
        ({}, ""),
        ({"mode": "INITIAL", "type": "RECURRING", "source": "CIT"}, "C103"),
        ({"mode": "INITIAL", "type": "UNSCHEDULED"}, "C101"),
        ({"mode": "INITIAL", "type": "RECURRING", "recurringType": "STANDING_ORDER"}, "C102"),
        ({"mode": "REPEATED", "type": "INSTALLMENT", "source": "MIT"}, "M104"),
        ({"mode": "REPEATED", "type": "UNSCHEDULED", "source": "CIT"}, "C101"),
        ({"mode": "REPEATED", "type": "UNSCHEDULED"}, "M101"),
        ({"source": "MIT", "industryPractice": "NO_SHOW"}, "M207"),
        ({"source": "MIT", "industryPractice": "DELAYED_CHARGES"}, "M206"),
        ({"source": "MIT", "industryPractice": "RESUBMISSION"}, "M208"),
    ],
    ids=str,
)
def test_who_initiates_a_payment_is_told_in_the_networks_words(words: dict[str, str], code: str) -> None:
    """Part B, Card on file."""
    point = build_point_of_service({f"standingInstruction.{name}": value for name, value in words.items()})
    assert private_field.map_initiator(point) == code


# --- answers ------------------------------------------------------------------------------------------------------


def test_every_code_of_the_tables_is_one_of_ours_and_approves_nothing() -> None:
    """Result codes come from data; grants are not in the table of declines."""
    every = {
        *response_codes.RESULT_BY_DE39.values(),
        *response_codes.RESULT_BY_BRAND_AND_DE39.values(),
        response_codes.UNKNOWN_DECLINE,
    }
    assert every <= set(result_codes.RESULT_CODES)
    assert not [code for code in every if result_codes.is_approved(code) or result_codes.is_pending(code)]
    assert not response_codes.GRANTING_CODES & set(response_codes.RESULT_BY_DE39)
    assert set(response_codes.RESULT_BY_DE39) >= response_codes.RETRYABLE_CODES


@pytest.mark.parametrize("code", [f"{number:02}" for number in range(100)] + ["1A", "N7", "R0", "ZZ", "A", "é1"])
def test_every_response_code_has_a_defined_answer(code: str) -> None:
    """Approved, declined or in doubt: never an exception of another kind, never an approval that is none."""
    try:
        found = answer(request(), de39=code, de4="000000000500" if code == "10" else "000000001000")
    except OutcomeUnknownError:
        assert code in response_codes.UNCLEAR_CODES
        return
    assert (
        (found.approved is not None) is (code in response_codes.GRANTING_CODES) is result_codes.is_approved(found.code)
    )
    assert found.retryable_elsewhere is (code in {"90", "91", "92"})


@pytest.mark.parametrize("code", [f"{number:02}" for number in range(100)])
@pytest.mark.parametrize("kind", ["CD", "RF"])
def test_every_answer_to_a_credit_that_leaves_it_open_is_none(kind: str, code: str) -> None:
    """Whoever answers may have handed it on: only what the issuer, or a host without a way to it, says is a decline."""
    asked = request(kind)
    open_ones = response_codes.UNCLEAR_CODES | {"06", "20", "22", "90", "91", "96"}
    try:
        found = answer(asked, de39=code, de4="000000000500" if code == "10" else "000000001000")
    except OutcomeUnknownError:
        assert code in open_ones or (kind, code) == ("RF", "10")
        return
    assert code not in open_ones
    assert found.retryable_elsewhere is (code == "92")


def test_an_account_may_say_which_answers_decline_a_credit() -> None:
    sure = parse_terminal(ConnectorAccount(merchant="M-1", settings=HOST | {"credit_declines": "91 96"}))
    found = {code: answer(request("CD"), terminal=sure, de39=code) for code in ("91", "96")}
    assert {code: (one.code, one.retryable_elsewhere) for code, one in found.items()} == {
        "91": ("900.100.201", True), "96": ("900.100.200", False),
    }  # fmt: skip
    for code in ("06", "90", "94"):
        with pytest.raises(OutcomeUnknownError, match="no verdict"):
            answer(request("CD"), terminal=sure, de39=code)


@pytest.mark.parametrize(
    ("codes", "fits"),
    [("", True), ("91", True), ("90 91 96", True), ("05", False), ("92", False), ("91  96", False), ("91 ", False)],
)
def test_only_answers_that_leave_a_credit_open_can_be_said_to_decline_it(codes: str, fits: bool) -> None:
    (setting,) = [one for one in ISO8583_SETTINGS if one.name == "credit_declines"]
    assert (re.fullmatch(setting.pattern, codes) is not None) is fits


def test_a_soft_decline_is_told_by_the_brand() -> None:
    """65 asks Mastercard's cardholders to authenticate, and is a limit elsewhere."""
    assert answer(request(brand="MASTER"), de39="65").code == "300.100.100"
    assert answer(request(), de39="65").code == "800.100.163"


@pytest.mark.parametrize("brand", ["MASTER", "MASTERDEBIT", "MAESTRO"])
def test_mastercards_brands_have_its_codes_of_now(brand: str) -> None:
    """Lifecycle, policy, security: none of them says that a security code was wrong."""
    found = {code: answer(request(brand=brand), de39=code).code for code in ("65", "79", "82", "83")}
    assert found == {"65": "300.100.100", "79": "800.100.151", "82": "800.100.170", "83": "800.100.158"}
    assert answer(request(brand="AMEX"), de39="82").code == "800.100.153"


@pytest.mark.parametrize("brand", ["VISA", "VISADEBIT", "VISAELECTRON", "VPAY"])
def test_codes_that_only_visa_has_are_declines_that_may_be_tried_again(brand: str) -> None:
    """Category 2 of Visa's declines: the issuer cannot approve now; none of them is "never again"."""
    found = {code: answer(request(brand=brand), de39=code).code for code in ("5C", "9G", "83")}
    assert found == {"5C": "800.100.180", "9G": "800.100.181", "83": "800.100.158"}
    assert {find_issuer_stop("Visa", code, "") for code in found.values()} == {""}
    assert answer(request(brand="MASTER"), de39="9G").code == "800.100.100"


VISA_NEVER = ("04", "07", "14", "15", "41", "43", "46")
"""Visa's category 1 without 12 and 57, which stop the merchant's own payments alone, and the stops R0 to R3."""
VISA_LATER = (
    "03", "05", "19", "39", "51", "52", "53", "54", "55", "56", "58", "59", "5C", "61", "62", "65", "75", "78", "82",
    "83", "91", "93", "96", "9G", "N7",
)  # fmt: skip
"""Codes of the categories 2 to 4."""


@pytest.mark.parametrize("code", [*VISA_NEVER, *VISA_LATER])
def test_only_what_visa_calls_never_again_stops_a_card(code: str) -> None:
    """docs/decisions/0156, with the source of the categories."""
    found = answer(request(), de39=code).code
    assert find_issuer_stop("Visa", found, "") == ("card" if code in VISA_NEVER else "")


@pytest.mark.parametrize("code", ["39", "52", "53", "56", "78", "93"])
def test_a_subscription_goes_on_after_a_code_that_visa_lets_be_tried_again(code: str) -> None:
    assert isinstance(decide_dunning(answer(request(), de39=code).code, ""), DunningRetry)


def test_a_wallet_has_the_codes_of_the_card_in_it() -> None:
    card = Card(number=Secret("5454545454545454"), expiry_month="05", expiry_year="2034", wallet="wallet1")
    assert answer(request(brand="WALLET1", means=card), de39="65").code == "300.100.100"


MIT = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}


@pytest.mark.parametrize(
    "country, brand, kind, eci",
    [
        ("US", "VISA", "RECURRING", "02"),
        ("CA", "VISADEBIT", "RECURRING", "02"),
        ("DE", "VISA", "RECURRING", "07"),
        ("", "VISA", "RECURRING", None),
        ("DE", "VISA", "UNSCHEDULED", None),
        ("US", "MASTER", "RECURRING", None),
    ],
)
def test_visas_recurring_payments_have_the_indicator_of_the_merchants_country(
    country: str, brand: str, kind: str, eci: str | None
) -> None:
    """60.8: 02 in the United States and Canada, 07 elsewhere; clearing says the same."""
    account = ConnectorAccount(merchant="M-1", settings=HOST | {"country": country})
    paid = request(brand=brand, account=account, parameters=MIT | {"standingInstruction.type": kind})
    captured = request("CP", brand=brand, account=account, original=paid.point_of_service)
    for one in (paid, captured):
        assert private_field.parse_private_field(written(one)["48"]).get("eci") == eci


def test_an_account_check_is_granted_without_money() -> None:
    """RG is a 0100 over nothing; 85 says that nothing speaks against the account."""
    assert (written(request("RG"))["4"], written(request("RG"))["25"]) == ("0" * 12, "51")
    assert answer(request("RG"), de39="85").approved == Money.parse("10.00", "EUR")
    assert answer(request("DB"), de39="85").approved is None


@pytest.mark.parametrize("operation", ["RF", "CD"])
def test_a_credit_is_granted_where_nothing_speaks_against_it(operation: str) -> None:
    """Visa and Mastercard: 85 approves a refund; a merchant who took it for a decline would refund twice."""
    assert answer(request(operation), de39="85").approved == Money.parse("10.00", "EUR")
    assert answer(request(operation), de39="05").approved is None


@pytest.mark.parametrize("operation", ["CP", "RV"])
def test_94_to_a_repeat_is_an_approval_where_the_account_says_so(operation: str) -> None:
    """ISO 8583:1987, code 94: duplicate transmission. The host knows the message, and may have refused it."""
    for repeat in (False, True):
        with pytest.raises(OutcomeUnknownError):
            answer(request(operation), de39="94", repeat=repeat)
    says = parse_terminal(ConnectorAccount(merchant="M-1", settings=HOST | {"duplicate": "done"}))
    put = build_iso_request(request(operation), says)
    told = {"t": "0230", "39": "94"}
    assert reply_from_answer(put, told, {}, repeat=True).approved == Money.parse("10.00", "EUR")
    with pytest.raises(OutcomeUnknownError):
        reply_from_answer(put, told, {})


def test_94_to_the_reversal_of_our_own_is_no_proof_where_the_account_does_not_say_so() -> None:
    says = parse_terminal(ConnectorAccount(merchant="M-1", settings=HOST | {"duplicate": "done"}))
    told = {"t": "0430", "39": "94"}
    with pytest.raises(OutcomeUnknownError):
        reply_from_reversal(build_iso_request(request(), TERMINAL, void=True), told, {})
    assert reply_from_reversal(build_iso_request(request(), says, void=True), told, {}).code == "900.100.301"


def test_an_unanswered_question_tells_the_id_it_went_by() -> None:
    """So that a silence can be asked about."""
    with pytest.raises(OutcomeUnknownError) as silence:
        answer(request(), de39=None)
    known = OriginalMessage.parse(silence.value.connector_tx_id)
    assert known is not None
    assert (known.stan, known.amount) == (written(request())["11"], 1000)


@pytest.mark.parametrize("code", ["00", "25", "76"])
def test_a_reversal_is_done_when_nothing_stands(code: str) -> None:
    """0430."""
    put = build_iso_request(request(), TERMINAL, void=True)
    assert reply_from_reversal(put, {"t": "0430", "39": code}, {}).code == "900.100.301"


@pytest.mark.parametrize(
    ("asked_for", "auth", "proves"), [(0, "", False), (59, "", False), (60, "", True), (0, "A1", True)]
)
def test_what_a_host_does_not_know_may_still_be_under_way(asked_for: int, auth: str, proves: bool) -> None:
    """25 says that no record was found. What was answered has arrived, and after a minute nothing arrives any more."""
    known = replace(build_iso_request(request(), TERMINAL).own, auth=auth).text()
    asked = request(known_transaction_id=known, asked_for=timedelta(seconds=asked_for))
    put = build_iso_request(asked, TERMINAL, void=True)
    if proves:
        assert reply_from_reversal(put, {"t": "0430", "39": "25"}, {}).code == "900.100.301"
        return
    with pytest.raises(NotFoundYetError) as not_yet:
        reply_from_reversal(put, {"t": "0430", "39": "25"}, {})
    assert not_yet.value.connector_tx_id == known


def test_what_waits_for_a_late_answer_knows_no_card() -> None:
    """It waits in memory for as long as its link lives."""
    asked = build_iso_request(request(cryptogram=Secret("AAACAgSRBklmQCFgMpEGAAAAAAA=")), TERMINAL)
    taken: list[AcquirerReply] = []
    late = prepare_late_reply(asked, {"mti": "0200", "2": "420000******0000"}, taken.append)
    kept, sent, _ = late.take.args  # type: ignore[attr-defined]
    assert (late.payment, kept.request.means, kept.request.cryptogram) == (asked.request.payment, None, None)
    assert dict(kept.request.parameters) == {"merchant.country": ""}
    assert (kept.parts, kept.addenda, sent) == ({}, {}, {"mti": "0200"})
    for code in ("68", "", "00"):
        late.take({"t": "0210", "39": code, "38": "A12345"})
    *undecided, reply = taken
    # What decides nothing is kept for whoever asks the acquirer.
    assert [(one.code, one.received["39"]) for one in undecided] == [("000.200.001", "68"), ("000.200.001", "")]
    known = OriginalMessage.parse(reply.connector_tx_id)
    assert known is not None
    assert (reply.approved, known.auth) == (asked.request.money, "A12345")


@pytest.mark.parametrize(("country", "code"), [("US", "800.100.163"), ("DE", "300.100.100")])
def test_a_late_decline_means_what_it_means_in_time(country: str, code: str) -> None:
    """Mastercard's 65 by the country of the merchant, which the request names."""
    asked = build_iso_request(
        request(brand="MASTER", parameters={"merchant.country": country}), replace(TERMINAL, country="")
    )
    said = {"t": "0210", "39": "65"}
    taken: list[AcquirerReply] = []
    prepare_late_reply(asked, {}, taken.append).take(said)
    assert [reply.code for reply in (*taken, reply_from_answer(asked, said, {}))] == [code, code]


@pytest.mark.parametrize(
    ("code", "brand", "before", "auth", "asked_for", "ends"),
    [
        *((code, "VISA", "00", "A1", 9, True) for code in ("21", "94", "79")),
        *((code, "VISA", "00", "", None, True) for code in ("21", "94", "79")),
        ("79", "MASTER", "00", "A1", 9, False),
        ("05", "VISA", "00", "A1", 9, False),
        *((code, "VISA", before, "A1", 9, False) for code in ("21", "94", "79") for before in ("", "25", "76")),
        ("94", "VISA", "00", "", 9, False),
    ],
)
def test_a_second_reversal_ends_without_proof_where_the_host_has_acknowledged_one_before(
    code: str, brand: str, before: str, auth: str, asked_for: int | None, ends: bool
) -> None:
    """Of an approval that came late, with or without a code of its own. A host that knew of no such message before may
    have booked it since; so may one that acknowledged, since hosts acknowledge what they can do nothing about."""
    known = replace(build_iso_request(request(), TERMINAL).own, auth=auth).text()
    answered = [{"39": before}] if before else []
    asked = request(
        brand=brand,
        known_transaction_id=known,
        earlier_void_answers=answered,
        asked_for=timedelta(minutes=asked_for) if asked_for is not None else None,
    )
    put, told = build_iso_request(asked, TERMINAL, void=True), {"t": "0430", "39": code}
    if ends:
        reply = reply_from_reversal(put, told, {})
        assert (reply.code, reply.may_stand, reply.details) == ("900.100.301", True, {"AcquirerResponse": code})
        done = replace(put, terminal=replace(TERMINAL, duplicates_done=True))
        assert reply_from_reversal(done, told, {}).may_stand is (code != "94")
        assert not reply_from_reversal(put, {"t": "0430", "39": "00"}, {}).may_stand
        credit = build_iso_request(replace(asked, operation="CD"), TERMINAL, void=True)
        if asked_for is None:
            assert reply_from_reversal(credit, told, {}).may_stand
        else:
            with pytest.raises(OutcomeUnknownError):  # it could be made twice
                reply_from_reversal(credit, told, {})
        return
    with pytest.raises(OutcomeUnknownError):
        reply_from_reversal(put, told, {})


@pytest.mark.parametrize("code", ["05", "12", "21", "68", "91", "96", ""])
def test_any_other_answer_to_a_reversal_is_no_word(code: str) -> None:
    """Nothing declined without evidence."""
    put = build_iso_request(request(), TERMINAL, void=True)
    with pytest.raises(OutcomeUnknownError):
        reply_from_reversal(put, {"t": "0430", "39": code}, {})


@pytest.mark.parametrize(
    ("account", "sent", "code"),
    [
        ("DE", "", "300.100.100"),
        ("", "GB", "300.100.100"),
        ("", "", "300.100.100"),
        ("US", "", "800.100.163"),
        ("DE", "BR", "800.100.163"),
    ],
)
def test_mastercards_65_asks_for_an_authentication_in_europe_alone(account: str, sent: str, code: str) -> None:
    """Elsewhere it is a card that was used too often, which no challenge helps. Unknown: the payment may be saved."""
    asked = request(brand="MASTER", parameters={"merchant.country": sent} if sent else {})
    put = build_iso_request(asked, replace(TERMINAL, country=account))
    assert reply_from_answer(put, {"t": "0210", "39": "65"}, {}).code == code
    visa = build_iso_request(request(), replace(TERMINAL, country=account))
    assert reply_from_answer(visa, {"t": "0210", "39": "65"}, {}).code == "800.100.163"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Müller/Straße 1", "Muller/Strasse 1"),
        ("Łukasz Żółć", "Lukasz Zolc"),
        ("Ольга Кузнецова", "Ol'ga Kuznetsova"),
        ("Zoë  O'Neil", "Zoe O'Neil"),
        ("王小明", "Wang Xiao Ming"),
        ("What? ¿Qué?", "What? Que?"),
        ("a\nb\x7f", "a b"),
        ("😀", ""),
        ("plain  text", "plain  text"),
    ],
)
def test_letters_are_told_by_their_like(text: str, told: str) -> None:
    """Visa, Visa Direct: a name in English letters; a question mark is none."""
    assert private_field.transliterate(text) == told


@given(st.text(max_size=30))
def test_no_letter_becomes_a_question_mark(text: str) -> None:
    told = private_field.transliterate(text)
    assert told.isascii()
    assert told.isprintable()
    assert "?" in text or "?" not in told


def test_names_and_addresses_are_told_in_letters_that_a_host_has() -> None:
    parameters = {
        "transactionProcessingCode": "FUNDING", "transactionBai": "AA", "recipient.givenName": "Jürgen",
        "recipient.surname": "Łuczak", "sender.city": "Ærøskøbing", "descriptor": "Müller & Söhne",
        "billing.street1": "Weißstraßengäßchen", "billing.houseNumber1": "17",
    }  # fmt: skip
    asked = request(parameters=parameters)
    message, put = written(asked), build_iso_request(asked, TERMINAL)
    assert put.addenda["104"]["recipient.givenName"] == "Jurgen"
    assert (put.addenda["104"]["recipient.surname"], put.addenda["104"]["sender.city"]) == ("Luczak", "AEroskobing")
    assert message["43"].startswith("Muller & Sohne")
    assert put.parts["street"] == "Weissstrassengassche"
    for name in ("recipient.surname", "sender.givenName"):
        with pytest.raises(UnsendableRequestError, match=f"{name} has no letter"):
            build_iso_request(request(parameters={**parameters, name: "😀"}), TERMINAL)
    without_city = build_iso_request(request(parameters={**parameters, "sender.city": "😀"}), TERMINAL)
    assert "sender.city" not in without_city.addenda["104"]


def test_the_letters_of_the_address_check_and_the_security_code() -> None:
    """Part B, avsResponse: A, Z, N, U, F."""
    letters = "YXDMABZWPNUGRSE? "
    assert [response_codes.map_avs_letter(letter, "VISA") for letter in letters] == [*"FFFFAAZZZNUUUUUU", ""]


@pytest.mark.parametrize("brand", ["DISCOVER", "DINERS"])
def test_discover_has_letters_of_its_own_for_the_address(brand: str) -> None:
    """Y is a street whose postcode does not match, which an address policy must not take for a match of both."""
    found = {letter: answer(request(brand=brand), de48=f"8301{letter}").avs for letter in "AXYTZNWGUS"}
    assert found == dict(zip("AXYTZNWGUS", "FFAZZNUUUU", strict=True))
    assert answer(request(), de48="8301Y").avs == "F"


def test_64_is_no_amount_at_visa() -> None:
    """It is a rule against money laundering, and no stop of the merchant's later payments."""
    found = {brand: answer(request(brand=brand), de39="64", de38=None).code for brand in ("VISA", "MASTER")}
    assert found == {"VISA": "800.100.182", "MASTER": "800.100.174"}
    assert not find_issuer_stop("Visa", found["VISA"], "")


@pytest.mark.parametrize("brand", ["AMEX", "JCB"])
def test_american_express_has_letters_of_its_own_for_the_address(brand: str) -> None:
    """D and F say that the name is wrong and half of the address right, which are full matches at Visa."""
    found = {letter: answer(request(brand=brand), de48=f"8301{letter}").avs for letter in "YMEAOFZLDNWKUSR"}
    assert found == dict(zip("YMEAOFZLDNWKUSR", "FFFAAAZZZNNNUUU", strict=True))
    assert [answer(request(), de48=f"8301{letter}").avs for letter in "DF"] == ["F", "F"]


def test_the_security_codes_letters() -> None:
    """American Express says Y for a match."""
    assert [response_codes.map_cvv_letter(letter, "VISA") for letter in "MNPSUYX "] == [*"MNPSUUU", ""]
    assert [answer(request(brand="AMEX"), de48=f"8701{letter}").cvv for letter in "YNU"] == ["M", "N", "U"]


def test_what_an_answer_repeats_is_what_its_question_said() -> None:
    """A repeat's answer may end with 0 or 1."""
    asked = {"t": "0421", "11": "000042", "37": "606012345678", "41": "TERM0001"}
    for mti in ("0430", "0431"):
        assert build_message_key({**asked, "t": mti}, answer=True) == build_message_key(asked)
    assert build_message_key({**asked, "t": "0410"}, answer=True) != build_message_key(asked)


def test_a_request_cannot_be_asked_about_and_a_reversal_is_not_reversed() -> None:
    """ISO 8583:1987 has no inquiry."""
    assert isinstance(ISO8583.inquire(request()), NotFoundAtAcquirer)
    with pytest.raises(OutcomeUnknownError):
        ISO8583.void(request("RV"))
    not_sent = ISO8583.submit(request("CB"))
    assert (not_sent.code, not_sent.retryable_elsewhere) == ("600.100.100", True)


def test_settings_default_to_what_their_own_patterns_allow() -> None:
    """The back office checks with the patterns."""
    for one in ISO8583_SETTINGS:
        assert one.required or one.secret or re.fullmatch(one.pattern, one.default)
    assert set(HOST) == {one.name for one in ISO8583_SETTINGS if one.required}


@pytest.mark.parametrize(
    "change",
    [
        {"host": ""},
        {"port": "x"},
        {"port": "70000"},
        {"header": "3b"},
        {"encoding": "utf-8"},
        {"fields": "x"},
        {"time_zone": "Nowhere/Land"},
        {"tpdu": "60"[:1]},
        {"echo_s": "often"},
    ],
    ids=str,
)
def test_settings_that_do_not_do_are_refused_in_words(change: dict[str, str]) -> None:
    """Bad set-up is one exception, which names the setting."""
    with pytest.raises(AccountSettingError) as raised:
        parse_terminal(ConnectorAccount(settings=HOST | change))
    assert raised.value.setting in {*change, "fields"}
    assert check_terminal_settings(HOST | change) == ((raised.value.setting, raised.value.why),)
    assert check_terminal_settings(HOST) == ()


def test_a_certificate_of_ours_needs_its_key() -> None:
    """Kept apart: the key is sealed, and not typed again with every change."""
    certificate = {"tls_certificate": "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"}
    with pytest.raises(AccountSettingError, match="tls_key"):
        parse_terminal(ConnectorAccount(settings=HOST | certificate))
    assert check_terminal_settings(HOST | certificate) == ()


@pytest.mark.parametrize(
    "pem, fits",
    [
        ("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n", True),
        ("-----BEGIN EC PRIVATE KEY-----\r\nAA==\r\n-----END EC PRIVATE KEY-----", True),
        ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----", False),
        ("-----BEGIN RSA PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----", False),
        ("AA==", False),
    ],
)
def test_a_key_is_one_in_pem_that_needs_no_passphrase(pem: str, fits: bool) -> None:
    (setting,) = [one for one in ISO8583_SETTINGS if one.name == "tls_key"]
    assert (re.fullmatch(setting.pattern, pem) is not None) == fits


@pytest.mark.parametrize(
    "change, setting",
    [
        ({}, "tls"),
        ({"tls": "on"}, ""),
        ({"without_tls": "on"}, ""),
        ({"without_tls": "on", "host": "10.1.2.3"}, ""),
        ({"without_tls": "on", "host": "fd00::1"}, ""),
        ({"without_tls": "on", "host": "bank.example"}, ""),
        ({"without_tls": "on", "host": "93.184.216.34"}, "host"),
        ({"without_tls": "on", "host": "2001:db8::1"}, "host"),
        ({"without_tls": "on", "host": "169.254.169.254"}, "host"),
        ({"host": "10.1.2.3"}, "tls"),
    ],
    ids=str,
)
def test_live_wants_tls_unless_a_private_line_is_said_to_be_one(change: dict[str, str], setting: str) -> None:
    """Card numbers cross no open network in clear. The test environment may do as it likes."""
    assert check_terminal_settings(HOST | change) == ()
    with override_settings(IS_LIVE=True):
        assert [name for name, _ in check_terminal_settings(HOST | change)] == ([setting] if setting else [])
        if setting:
            reply = ISO8583.submit(replace(request("DB"), account=ConnectorAccount(settings=HOST | change)))
            assert (reply.code, reply.retryable_elsewhere) == ("500.100.401", True)


@pytest.mark.parametrize(
    "address, private",
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("10.0.0.1", True),
        ("172.31.255.255", True),
        ("192.168.1.1", True),
        ("fd12::1", True),
        ("::ffff:10.0.0.1", True),
        ("172.32.0.1", False),
        ("8.8.8.8", False),
        ("100.64.0.1", False),
        ("169.254.1.1", False),
        ("fe80::1%eth0", False),
        ("::ffff:8.8.8.8", False),
        ("bank.example", False),
        ("", False),
    ],
)
def test_what_a_private_address_is(address: str, private: bool) -> None:
    """Loopback, RFC 1918 and RFC 4193; not link-local, not a provider's shared space."""
    assert is_private_address(address) == private

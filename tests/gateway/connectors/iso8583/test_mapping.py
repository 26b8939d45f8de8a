"""ISO 8583 messages as pure functions: encodings, amounts, numbers, the tables of codes, what is kept."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import results
from gateway.connectors.iso8583 import codes, private
from gateway.connectors.iso8583.answers import reply_to, word_of
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.iso8583.elements import ELEMENTS
from gateway.connectors.iso8583.fields import ENCODINGS, FIELDS, format_of, spec_of
from gateway.connectors.iso8583.mapping import key_of, masked, message_of
from gateway.connectors.iso8583.question import KINDS, Original, Unsendable, question, rrn, stan
from gateway.connectors.iso8583.terminal import SETTINGS, NotSetUp, Terminal, faults_of, is_private, terminal_of
from gateway.connectors.iso8583.wire import BadFrame, BadMessage, Wire
from gateway.connectors.means import Card, TokenAccount
from gateway.connectors.port import Account, AcquirerRequest, NeverArrived, Silence
from gateway.money import CURRENCIES, Money, exponent
from gateway.secret import Secret

PAN = "4200000000000000"
HOST = {"host": "127.0.0.1", "port": "8583", "terminal": "TERM0001"}
TERMINAL = terminal_of(Account(merchant="M-1", settings=HOST))
CARD = Card(number=Secret(PAN), expiry_month="05", expiry_year="2034", cvv=Secret("987"))
REFERENCE = Original(operation="PA", stan="000042", sent_at="0301115959", rrn="606012345678", auth="A00042",
                     amount=10_000, network="483296210004567")  # fmt: skip


def request(operation: str = "DB", amount: str = "10.00", currency: str = "EUR", **more: Any) -> AcquirerRequest:
    return AcquirerRequest(**{
        "payment": UUID(int=7), "operation": operation, "money": Money.parse(amount, currency), "brand": "VISA",
        "at": datetime(2026, 3, 1, 12, tzinfo=UTC), "means": CARD, "account": Account(merchant="M-1", settings=HOST),
        "reference": REFERENCE.text() if operation in ("CP", "RF", "RV") else "", **more,
    })  # fmt: skip


def written(asked: AcquirerRequest, terminal: Terminal = TERMINAL, *, void: bool = False) -> dict[str, str]:
    return message_of(question(asked, terminal, void=void))


def answer(asked: AcquirerRequest, repeat: bool = False, **changes: str | None) -> Any:
    put = question(asked, TERMINAL)
    told = {"t": "0210", "39": "00", "38": "A1B2C3", "4": message_of(put)["4"]}
    told |= {name.removeprefix("de"): value for name, value in changes.items()}  # type: ignore[misc]
    return reply_to(put, {name: value for name, value in told.items() if value is not None}, {}, repeat=repeat)


@pytest.mark.parametrize("encoding", list(ENCODINGS))
@pytest.mark.parametrize("operation", [kind for kind in KINDS if kind != "V"])
def test_every_message_comes_back_out_of_its_frame_as_it_went_in(operation: str, encoding: str) -> None:
    """ISO 8583:1987, in every encoding."""
    wire = Wire(encoding=encoding, tpdu="6000010000")
    for void in (False, operation != "RV"):
        message = written(request(operation), replace(TERMINAL, wire=wire), void=void)
        (frame,), rest = wire.cut(wire.frame(message))
        assert wire.message(frame) == message
        assert rest == b""


def test_a_known_message_has_known_octets() -> None:
    """By hand: type, bitmap, PAN with its length, packed digits with a zero before an odd number of them."""
    message = {"t": "0100", "2": "378282246310005", "3": "000000", "39": "05", "49": "978"}
    packed = Wire(encoding="bcd").frame(message)
    assert packed.hex() == "001a0100600000000200800015037828224631000500000030350978"
    plain = Wire(encoding="ascii-hex").frame(message)
    assert plain[2:] == b"010060000000020080001537828224631000500000005978"


@pytest.mark.parametrize("currency", sorted(CURRENCIES))
def test_amounts_go_in_the_minor_unit_of_their_currency_and_come_back(currency: str) -> None:
    """ISO 4217: exponents; DE4 and DE49."""
    text = "92" if exponent(currency) == 0 else "92.50"
    message = written(request(amount=text, currency=currency))
    assert int(message["4"]) == Money.parse(text, currency).minor_units()
    assert re.fullmatch("[0-9]{12}", message["4"]) and re.fullmatch("[0-9]{3}", message["49"])  # noqa: PT018
    granted = answer(request("PA", amount=text, currency=currency), de39="10", de4="000000000010").approved
    assert granted == Money.from_minor_units(10, currency)


def test_exponents_of_the_currencies_that_trip_people_up() -> None:
    """JPY has none, KWD has three."""
    sent = {currency: written(request(amount="92.00", currency=currency))["4"] for currency in ("EUR", "JPY", "KWD")}
    assert sent == {"EUR": "000000009200", "JPY": "000000000092", "KWD": "000000092000"}
    with pytest.raises(Silence):
        answer(request("PA", currency="KWD"), de39="10", de4="000000000001")


def test_an_amount_of_more_digits_than_the_field_is_not_sent() -> None:
    """DE4 is n12."""
    assert written(request(amount="9999999999.00"))["4"] == "999999999900"
    with pytest.raises(Unsendable):
        written(request(amount="9999999999.00", currency="KWD"))


def test_numbers_come_out_of_the_payments_id() -> None:
    """So whoever repeats a message or takes it back needs no memory of it."""
    many = {stan(UUID(int=number)) for number in range(2_000)}
    assert len(many) > 1_990
    assert all(re.fullmatch("[0-9]{6}", one) and one != "000000" for one in many)
    assert rrn(UUID(int=1), datetime(2026, 12, 31, 23, 59, tzinfo=UTC))[:4] == "6365"
    assert stan(UUID(int=1), "V") != stan(UUID(int=1))
    assert written(request()) == written(request())


@settings(max_examples=40)
@given(st.text(max_size=64))
def test_a_reference_of_anybody_else_is_none(text: str) -> None:
    """Follow-ups need an original of this connector."""
    assert Original.parse(text) is None or Original.parse(text).text() == text  # type: ignore[union-attr]


def test_a_reference_fits_its_column_and_comes_back() -> None:
    """connector_tx_id has 64 characters."""
    longest = replace(REFERENCE, amount=10**12 - 1, network="9" * 40)
    assert len(longest.text()) == 64
    assert Original.parse(REFERENCE.text()) == REFERENCE
    assert Original.parse(replace(REFERENCE, auth="", network="").text()) == replace(REFERENCE, auth="", network="")


@pytest.mark.parametrize("operation", ["CP", "RF", "RV"])
def test_what_follows_a_payment_of_another_connector_is_not_sent(operation: str) -> None:
    """There is nothing that DE90 could name."""
    with pytest.raises(Unsendable):
        written(request(operation, reference="SIM1234"))


def test_every_element_is_in_the_field_map_and_fits_it() -> None:
    """The mapping table and the field map belong together."""
    assert {row.number for row in ELEMENTS} <= set(FIELDS)
    assert {kind for row in ELEMENTS for kind in row.kinds.split()} == set(KINDS)
    for number in FIELDS:
        assert number in spec_of("ascii")


def test_an_account_may_have_a_field_in_another_format() -> None:
    """Dialects differ."""
    wire = Wire(encoding="bcd", formats="39=n2 54=ans...255")
    assert wire.frame({"t": "0110", "39": "05"}).hex() == "000b0110000000000200000005"
    assert (format_of("39", "39=n2"), format_of("39"), format_of("99")) == ("n2", "an2", "")
    with pytest.raises(ValueError, match="number=format"):
        spec_of("ascii", "39=x")


@pytest.mark.parametrize(
    "header, octets",
    [("2a", b"x1"), ("4a", b"00 1"), ("2b", b"\xff\xff"), ("4b", b"\x7f\xff\xff\xff"), ("4a", b"9999")],
)
def test_a_length_that_cannot_be_is_a_bad_frame(header: str, octets: bytes) -> None:
    """MAX_FRAME_BYTES bounds what is read."""
    with pytest.raises(BadFrame):
        Wire(header=header).cut(octets)
    with pytest.raises(BadFrame):
        Wire(header="2b", counts_itself=True).cut(b"\x00\x01")


@settings(max_examples=40)
@given(st.binary(max_size=80))
def test_no_octets_whatever_are_more_than_a_bad_message(octets: bytes) -> None:
    """Goals, R4: garbage ends in one exception."""
    for encoding in ENCODINGS:
        try:
            Wire(encoding=encoding).message(octets)
        except BadMessage as fault:
            assert str(fault)  # noqa: PT017


def test_a_message_that_does_not_fit_tells_the_field_and_nothing_else() -> None:
    """Goals, R8."""
    with pytest.raises(BadMessage) as fault:
        Wire().frame({"t": "0200", "2": PAN * 2})
    assert str(fault.value) == "does not fit field 2"
    assert fault.value.__suppress_context__


def test_what_is_kept_shows_no_account_and_no_secret() -> None:
    """Goals, R8."""
    token = TokenAccount(account=Secret(PAN), type="NETWORK", expiry_month="05", expiry_year="2034",
                         cryptogram=Secret("AgAAAAAAAIR8CQrXcIhbQAAAAAA="), dtvc=Secret("951"))  # fmt: skip
    for means, secrets in ((CARD, ["987"]), (token, ["AgAAAAAAAIR8CQrXcIhbQAAAAAA=", "951"])):
        put = question(request(means=means), TERMINAL)
        message = message_of(put)
        kept = masked(message, put)
        assert message["2"] == PAN
        assert all(secret in message["48"] for secret in secrets)
        assert kept["2"] == "420000******0000"
        assert not [secret for secret in secrets if secret in kept["48"].values()]
        assert set(kept["48"].values()) == {"***"}
    put = question(request(), replace(TERMINAL, private_field="126"))
    assert masked(message_of(put), put)["126"] == {"cvv2": "***"}
    assert "48" not in message_of(put)


def test_parts_of_the_private_field_come_back() -> None:
    """Two digits of number, two of length."""
    parts = {part.name: f"value of {part.name}"[:20] for part in private.PARTS}
    assert private.read(private.written(parts)) == parts
    assert private.read("8301Z99") == {"avs": "Z"}
    assert private.read("8399Z") == private.read("xx") == private.read("0502xx") == {}
    with pytest.raises(ValueError, match="too long"):
        private.written({"cavv": "x" * 100})


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
    assert private.initiator({f"standingInstruction.{name}": value for name, value in words.items()}) == code


# --- answers ------------------------------------------------------------------------------------------------------


def test_every_code_of_the_tables_is_one_of_ours_and_approves_nothing() -> None:
    """Result codes come from data; grants are not in the table of declines."""
    every = {*codes.RESULTS.values(), *codes.OF_BRAND.values(), codes.UNKNOWN_DECLINE}
    assert every <= set(results.RESULT_CODES)
    assert not [code for code in every if results.is_approved(code) or results.is_pending(code)]
    assert not codes.GRANTS & set(codes.RESULTS)
    assert set(codes.RESULTS) >= codes.ELSEWHERE


@pytest.mark.parametrize("code", [f"{number:02}" for number in range(100)] + ["1A", "N7", "R0", "ZZ", "A", "é1"])
def test_every_response_code_has_a_defined_answer(code: str) -> None:
    """Approved, declined or in doubt: never an exception of another kind, never an approval that is none."""
    try:
        found = answer(request(), de39=code, de4="000000000500" if code == "10" else "000000001000")
    except Silence:
        assert code in codes.UNCLEAR
        return
    assert (found.approved is not None) is (code in codes.GRANTS) is results.is_approved(found.code)
    assert found.elsewhere is (code in {"90", "91", "92"})


def test_a_soft_decline_is_told_by_the_brand() -> None:
    """65 asks Mastercard's cardholders to authenticate, and is a limit elsewhere."""
    assert answer(request(brand="MASTER"), de39="65").code == "300.100.100"
    assert answer(request(), de39="65").code == "800.100.163"


def test_an_account_check_is_granted_without_money() -> None:
    """RG is a 0100 over nothing; 85 says that nothing speaks against the account."""
    assert (written(request("RG"))["4"], written(request("RG"))["25"]) == ("0" * 12, "51")
    assert answer(request("RG"), de39="85").approved == Money.parse("10.00", "EUR")
    assert answer(request("DB"), de39="85").approved is None


@pytest.mark.parametrize("operation", ["CP", "RV"])
def test_a_repeat_that_the_host_has_had_is_done(operation: str) -> None:
    """94 on 0221 and 0401."""
    assert answer(request(operation), de39="94", repeat=True).approved == Money.parse("10.00", "EUR")
    with pytest.raises(Silence):
        answer(request(operation), de39="94")


def test_an_unanswered_question_tells_the_id_it_went_by() -> None:
    """So that a silence can be asked about."""
    with pytest.raises(Silence) as silence:
        answer(request(), de39=None)
    known = Original.parse(silence.value.connector_tx_id)
    assert known is not None
    assert (known.stan, known.amount) == (written(request())["11"], 1000)


@pytest.mark.parametrize("code", ["00", "25", "76", "94"])
def test_a_reversal_is_done_when_nothing_stands(code: str) -> None:
    """0430."""
    put = question(request(), TERMINAL, void=True)
    assert word_of(put, {"t": "0430", "39": code}, {}).code == "900.100.301"


@pytest.mark.parametrize("code", ["05", "12", "21", "68", "91", "96", ""])
def test_any_other_answer_to_a_reversal_is_no_word(code: str) -> None:
    """Nothing declined without evidence."""
    put = question(request(), TERMINAL, void=True)
    with pytest.raises(Silence):
        word_of(put, {"t": "0430", "39": code}, {})


def test_the_letters_of_the_address_check_and_the_security_code() -> None:
    """Part B, avsResponse: A, Z, N, U, F."""
    assert [codes.avs_of(letter) for letter in "YXDMABZWPNUGRSE? "] == [*"FFFFAAZZZNUUUUUU", ""]
    assert [codes.cvv_of(letter) for letter in "MNPSUYX "] == [*"MNPSUUU", ""]


def test_what_an_answer_repeats_is_what_its_question_said() -> None:
    """A repeat's answer may end with 0 or 1."""
    asked = {"t": "0421", "11": "000042", "37": "606012345678", "41": "TERM0001"}
    for mti in ("0430", "0431"):
        assert key_of({**asked, "t": mti}, answer=True) == key_of(asked)
    assert key_of({**asked, "t": "0410"}, answer=True) != key_of(asked)


def test_a_request_cannot_be_asked_about_and_a_reversal_is_not_reversed() -> None:
    """ISO 8583:1987 has no inquiry."""
    assert isinstance(ISO8583.inquire(request()), NeverArrived)
    with pytest.raises(Silence):
        ISO8583.void(request("RV"))
    unsent = ISO8583.submit(request("CB"))
    assert (unsent.code, unsent.elsewhere) == ("600.100.100", True)


def test_settings_default_to_what_their_own_patterns_allow() -> None:
    """The back office checks with the patterns."""
    for one in SETTINGS:
        assert one.required or one.secret or re.fullmatch(one.pattern, one.default)
    assert set(HOST) == {one.name for one in SETTINGS if one.required}


@pytest.mark.parametrize(
    "change",
    [{"host": ""}, {"port": "x"}, {"port": "70000"}, {"header": "3b"}, {"encoding": "utf-8"}, {"fields": "x"},
     {"time_zone": "Nowhere/Land"}, {"tpdu": "60"[:1]}, {"echo_s": "often"}],
    ids=str,
)  # fmt: skip
def test_settings_that_do_not_do_are_refused_in_words(change: dict[str, str]) -> None:
    """Bad set-up is one exception, which names the setting."""
    with pytest.raises(NotSetUp) as raised:
        terminal_of(Account(settings=HOST | change))
    assert raised.value.setting in {*change, "fields"}
    assert faults_of(HOST | change) == ((raised.value.setting, raised.value.why),)
    assert faults_of(HOST) == ()


def test_a_certificate_of_ours_needs_its_key() -> None:
    """Kept apart: the key is sealed, and not typed again with every change."""
    certificate = {"tls_certificate": "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"}
    with pytest.raises(NotSetUp, match="tls_key"):
        terminal_of(Account(settings=HOST | certificate))
    assert faults_of(HOST | certificate) == ()


@pytest.mark.parametrize(
    "pem, fits",
    [("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n", True),
     ("-----BEGIN EC PRIVATE KEY-----\r\nAA==\r\n-----END EC PRIVATE KEY-----", True),
     ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----", False),
     ("-----BEGIN RSA PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----", False), ("AA==", False)],
)  # fmt: skip
def test_a_key_is_one_in_pem_that_needs_no_passphrase(pem: str, fits: bool) -> None:
    (setting,) = [one for one in SETTINGS if one.name == "tls_key"]
    assert (re.fullmatch(setting.pattern, pem) is not None) == fits


@pytest.mark.parametrize(
    "change, setting",
    [({}, "tls"), ({"tls": "on"}, ""), ({"without_tls": "on"}, ""), ({"without_tls": "on", "host": "10.1.2.3"}, ""),
     ({"without_tls": "on", "host": "fd00::1"}, ""), ({"without_tls": "on", "host": "bank.example"}, ""),
     ({"without_tls": "on", "host": "93.184.216.34"}, "host"), ({"without_tls": "on", "host": "2001:db8::1"}, "host"),
     ({"without_tls": "on", "host": "169.254.169.254"}, "host"), ({"host": "10.1.2.3"}, "tls")],
    ids=str,
)  # fmt: skip
def test_live_wants_tls_unless_a_private_line_is_said_to_be_one(change: dict[str, str], setting: str) -> None:
    """Card numbers cross no open network in clear. The test environment may do as it likes."""
    assert faults_of(HOST | change) == ()
    with override_settings(IS_LIVE=True):
        assert [name for name, _ in faults_of(HOST | change)] == ([setting] if setting else [])
        if setting:
            reply = ISO8583.submit(replace(request("DB"), account=Account(settings=HOST | change)))
            assert (reply.code, reply.elsewhere) == ("500.100.401", True)


@pytest.mark.parametrize(
    "address, private",
    [("127.0.0.1", True), ("::1", True), ("10.0.0.1", True), ("172.31.255.255", True), ("192.168.1.1", True),
     ("fd12::1", True), ("::ffff:10.0.0.1", True), ("172.32.0.1", False), ("8.8.8.8", False), ("100.64.0.1", False),
     ("169.254.1.1", False), ("fe80::1%eth0", False), ("::ffff:8.8.8.8", False), ("bank.example", False), ("", False)],
)  # fmt: skip
def test_what_a_private_address_is(address: str, private: bool) -> None:
    """Loopback, RFC 1918 and RFC 4193; not link-local, not a provider's shared space."""
    assert is_private(address) == private

"""From form pairs to Parameters, or every error at once.

Source: Part A, What the service does, 3; Errors; rulings D10, D16, D17, D31.
"""

from __future__ import annotations

import contextlib
import tracemalloc
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gateway.catalogue.endpoints import FOLLOW_UP_ENDPOINT, PAYMENT_ENDPOINT, STATUS_ENDPOINT, Endpoint
from gateway.catalogue.forms import MAX_FORM_FIELDS, UnreadableFormError, parse_form
from gateway.catalogue.parse import (
    MAX_PARAMETER_ERRORS,
    MAX_REPORTED_NAME_CHARS,
    InvalidParametersError,
    ParameterError,
    Parameters,
    UnknownNamePolicy,
    _RequestParser,
)
from gateway.catalogue.structure import Echo
from gateway.catalogue.structures import REQUEST_STRUCTURES

PAN, CVV = "5454545454545454", "731"  # not the number that messages give as an example
GOOD = {
    "entityId": "8a8294174b7ecb28014b9699220015ca",
    "amount": "92.00",
    "currency": "EUR",
    "paymentType": "DB",
    "card.number": PAN,
    "card.expiryMonth": "05",
    "card.expiryYear": "2034",
}
FACTS = frozenset({"today:2026-07"})
PERSON = {"customer.givenName": "Jane", "customer.surname": "Jones"}


def parse(*more: tuple[str, str], policy: str = UnknownNamePolicy.NORMAL, **changes: str) -> Parameters:
    """GOOD with ``changes`` (``card__cvv`` names card.cvv) and ``more`` pairs at its end."""
    fields = GOOD | {name.replace("__", "."): value for name, value in changes.items()}
    return PAYMENT_ENDPOINT.catalogue.parse([*fields.items(), *more], facts=FACTS, policy=policy)


def errors(*more: tuple[str, str], policy: str = UnknownNamePolicy.NORMAL, **changes: str) -> dict[str, ParameterError]:
    with pytest.raises(InvalidParametersError) as caught:
        parse(*more, policy=policy, **changes)
    return {error.name: error for error in caught.value.errors}


def test_a_map_without_a_key_is_told_to_take_one() -> None:
    """D16: what it says would be lost otherwise."""
    assert "takes a key, e.g. customParameters[" in errors(("customParameters", "7"))["customParameters"].message


# --- one name, one value -------------------------------------------------------------------------------------------


def test_what_was_accepted_is_found_by_its_full_name() -> None:
    """Part A, What the service does, 3."""
    found = parse(("cart.items[3].name", "Shirt"), ("customParameters[orderRef]", "7"))
    assert (found["amount"], found["cart.items[3].name"]) == ("92.00", "Shirt")
    assert found.map("customParameters") == {"orderRef": "7"}
    assert found.get("descriptor") is None


@pytest.mark.parametrize("second", ["92.00", "93.00"])
def test_a_name_sent_twice_is_an_error_whatever_it_carries(second: str) -> None:
    """D16."""
    assert "more than once" in errors(("amount", second))["amount"].message


def test_a_name_sent_three_times_is_one_error() -> None:
    """D16."""
    with pytest.raises(InvalidParametersError) as caught:
        parse(("amount", "1.00"), ("amount", "2.00"))
    assert [error.name for error in caught.value.errors] == ["amount"]


def test_the_entity_and_its_alias_are_one_name() -> None:
    """D15, D16."""
    assert parse()["entityId"] == GOOD["entityId"]
    assert parse(("authentication.entityId", GOOD["entityId"]))["entityId"] == GOOD["entityId"]
    assert parse(("authentication.entityId", ""))["entityId"] == GOOD["entityId"]


def test_two_spellings_of_a_name_with_two_values_are_an_error() -> None:
    """docs/decisions/0048."""
    said = errors(("authentication.entityId", "0" * 32))["entityId"].message
    assert said == "was sent with two values: as entityId and as authentication.entityId"


def test_one_spelling_is_sent_once_even_beside_another() -> None:
    """D16."""
    twice = [("authentication.entityId", GOOD["entityId"])] * 2
    assert "was sent more than once" in errors(*twice)["entityId"].message


def test_an_empty_value_is_an_absent_parameter() -> None:
    """D16."""
    assert "descriptor" not in parse(descriptor="")
    assert "is required" in errors(amount="")["amount"].message
    assert parse(("descriptor", "Shop"), descriptor="")["descriptor"] == "Shop"


@pytest.mark.parametrize("name", ["corporate.vatId", "merchant.websiteId", "threeDSecure.merchant.url"])
def test_an_empty_value_is_a_value_where_the_specification_allows_length_0(name: str) -> None:
    """D16; Part B, Corporate, Merchant, 3D Secure."""
    # Sent twice, it is not ignored like an empty value that is an absence.
    assert "more than once" in errors((name, ""), (name, ""))[name].message
    with pytest.raises(InvalidParametersError) as caught:
        parse((name, ""), amount="x")
    assert name not in {error.name for error in caught.value.errors}


def test_names_are_case_sensitive() -> None:
    """Part A, Resources: contract spellings."""
    assert "did you mean amount" in errors(("Amount", "92.00"))["Amount"].message


# --- indexes and keys ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "cart.items[].name",
        "cart.items[x].name",
        "cart.items[-1].name",
        "cart.items[01].name",
        "cart.items[1.0].name",
        "cart.items[1][2].name",
        "cart.items[ 1].name",
        "cart.items[1]name",
        "cart.items1.name",
        "cart.items.1.name",
        "cart.items[١].name",
        "cart.items[1e1].name",
        "cart.items[999999999999].name",
        "cart.items[0]",
        "cart[0].name",
        "cart.items[0].name[0]",
        "cart..items[0].name",
        ".amount",
        "card.",
        "card..number",
        "card[number]",
    ],
)
def test_bracket_and_dot_nonsense_inside_a_structure_is_named(name: str) -> None:
    """A3.4, D16; Part A, What the service does, 3."""
    if name in (".amount",):
        # No structure of that name and a near miss of amount.
        assert "did you mean amount" in errors((name, "x"))[name].message
    else:
        assert "not an allowed parameter" in errors((name, "x"))[name].message


@pytest.mark.parametrize("index", ["", "x", "-1", "01", "1.0", " 1", "١", "1e2", "999999999999"])
def test_what_is_no_index_is_told_what_one_is(index: str) -> None:
    """Found in use: cart.items[1e2].name was told that there is cart.payments, too."""
    name = f"cart.items[{index}].name"
    said = "is not an allowed parameter: an index is a number from 0 to 999, e.g. cart.items[0].name"
    assert errors((name, "x"))[name].message == said


def test_of_many_errors_the_first_are_told_and_that_there_are_more() -> None:
    """A body within its limits made an answer of eight megabytes."""
    with pytest.raises(InvalidParametersError) as caught:
        parse(*[(f"cart.items[{1000 + number}].name", "x") for number in range(MAX_PARAMETER_ERRORS + 500)])
    found = caught.value.errors
    assert len(found) == MAX_PARAMETER_ERRORS + 1
    assert found[0].name == "cart.items[1000].name"
    assert found[-1].name == f"cart.items[{1000 + MAX_PARAMETER_ERRORS}].name"
    assert found[-1].message == "is wrong, too: only the first 5,000 errors are told"


def test_refused_values_before_many_errors_make_no_payment() -> None:
    """D10: what is not well-formed is no declined payment, however late it stands."""
    many = [(f"cart.items[{1000 + number}].name", "x") for number in range(MAX_PARAMETER_ERRORS)]
    with pytest.raises(InvalidParametersError):
        parse(*many, card__number="4444444444444444")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (
            "javascript:alert(1)",
            "must not begin with javascript: - https:, http: and apps named like com.example.app: are allowed",
        ),
        ("JavaScript:alert(1)", "must not begin with javascript:"),
        ("data:text/html,x", "must not begin with data:"),
        ("file:///etc/passwd", "must not begin with file:"),
        ("http:///x", "must name a host"),
        ("https://shop.example:99999/", "a port only from 1 to 65535"),
        ("/result", "must be an absolute address"),
        ("https://shop.example/a b", "without spaces"),
    ],
)
def test_an_address_is_told_what_is_wrong_with_it(value: str, says: str) -> None:
    """Decisions, section 7; it spoke of the length, whatever it was."""
    assert says in errors(shopperResultUrl=value)["shopperResultUrl"].message


def test_only_addresses_that_can_be_called_are_taken_where_we_call() -> None:
    """Decisions, section 7: app schemes are redirected to, never called by us."""
    assert parse(shopperResultUrl="com.example.app://paid").get("shopperResultUrl") == "com.example.app://paid"
    said = errors(notificationUrl="com.example.app://paid")["notificationUrl"].message
    assert said.startswith("must not begin with com.example.app: - https: and http: are allowed")


def test_a_comma_is_answered_with_an_amount_that_fits() -> None:
    """Found in use: 1,5 was told to be 1.5, which is none."""
    assert errors(amount="1,5")["amount"].message == "takes a dot as the decimal separator, e.g. 1.50"
    assert errors(amount="12,34")["amount"].message == "takes a dot as the decimal separator, e.g. 12.34"


@pytest.mark.parametrize("name", ["[", "]", "[]", "[0]", "]]][[[", "%", "=", " ", "a" * 5000])
def test_nonsense_outside_every_structure_is_ignored_and_reported(name: str) -> None:
    """D16."""
    found = parse((name, "x"))
    assert len(found.ignored) == 1
    assert len(found.ignored[0]) <= 100


def test_item_999_is_the_last_one() -> None:
    """D31."""
    assert parse(("cart.items[999].name", "Shirt"))["cart.items[999].name"] == "Shirt"
    assert "999" in errors(("cart.items[1000].name", "Shirt"))["cart.items[1000].name"].message


def test_sparse_indexes_are_compacted_in_order() -> None:
    """A3.4, D17."""
    found = parse(("cart.items[7].name", "seven"), ("cart.items[2].name", "two"), ("cart.items[40].name", "forty"))
    assert [item["name"] for item in found.echo()["cart"]["items"]] == ["two", "seven", "forty"]


def test_lists_in_lists_are_compacted_at_every_level() -> None:
    """D17; Part B, Airline."""
    leg = "airline.passengers[5].legs[{}].departureAirport"
    echo = parse((leg.format(9), "MUC"), (leg.format(3), "LHR")).echo()
    assert echo["airline"]["passengers"] == [{"legs": [{"departureAirport": "LHR"}, {"departureAirport": "MUC"}]}]


@pytest.mark.parametrize("key", ["ab", "a" * 65, "with space", "ключ", "a-b-c", "", "a]b"])
def test_a_key_of_the_wrong_form_is_named(key: str) -> None:
    """Part B, Custom parameters: 3 to 64 letters, digits, dots, underscores."""
    assert f"customParameters[{key}]" in errors((f"customParameters[{key}]", "7"))


def test_the_example_of_a_key_has_the_maps_whole_name() -> None:
    """Part B, Merchant (merchant.data[key])."""
    assert "e.g. merchant.data[orderRef]" in errors(("merchant.data[ab]", "7"))["merchant.data[ab]"].message


@pytest.mark.parametrize("key", ["abc", "a" * 64, "SHOPPER_a.b", "123"])
def test_a_key_of_the_right_form_comes_back_in_an_object(key: str) -> None:
    """A3.5; Part B, Custom parameters; D17."""
    assert parse((f"customParameters[{key}]", "7")).echo()["customParameters"] == {key: "7"}


# --- unknown names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent, meant",
    [
        ("paymentBrnad", "paymentBrand"),
        ("amonut", "amount"),
        ("currncy", "currency"),
        ("curencyy", "currency"),
        ("card.expirymonth", "card.expiryMonth"),
        ("cart.items[3].nmae", "cart.items[3].name"),
        ("customer.givenNam", "customer.givenName"),
    ],
)
def test_a_near_miss_is_an_error_with_the_name_that_was_meant(sent: str, meant: str) -> None:
    """D16."""
    assert f"did you mean {meant}?" in errors((sent, "x"))[sent].message


def test_an_unknown_name_far_from_every_known_one_is_ignored_and_reported() -> None:
    """D16."""
    found = parse(("ourOwnTrackingField", "1"), ("zz", "2"))
    assert found.ignored == ("ourOwnTrackingField", "zz")
    assert "ourOwnTrackingField" not in found


@pytest.mark.parametrize("name", ["wallet2.cardNetwork", "shipping.customer.app.deviceId", "airline.bookingType"])
def test_an_unknown_name_inside_a_known_structure_is_an_error(name: str) -> None:
    """D16."""
    assert "not an allowed parameter" in errors((name, "Visa"), **PERSON_FIELDS)[name].message


PERSON_FIELDS = {name.replace(".", "__"): value for name, value in PERSON.items()}


def test_a_known_name_that_another_endpoint_takes_is_an_error() -> None:
    """D16; A13.9."""
    assert "another endpoint" in errors(("overridePaymentType[VISA]", "PA"))["overridePaymentType[VISA]"].message
    with pytest.raises(InvalidParametersError) as caught:
        STATUS_ENDPOINT.catalogue.parse([("entityId", GOOD["entityId"]), ("amount", "92.00")])
    assert [error.name for error in caught.value.errors] == ["amount"]


def test_a_strict_channel_refuses_every_unknown_name() -> None:
    """D16."""
    assert "ourOwnTrackingField" in errors(("ourOwnTrackingField", "1"), policy=UnknownNamePolicy.STRICT)


def test_a_lenient_channel_refuses_no_unknown_name() -> None:
    """D16."""
    found = parse(
        ("ourOwnTrackingField", "1"), ("amonut", "1"), ("airline.bookingType", "x"), policy=UnknownNamePolicy.LENIENT
    )
    assert found.ignored == ("ourOwnTrackingField", "amonut", "airline.bookingType")


def test_a_lenient_channel_still_refuses_wrong_values_and_repeated_names() -> None:
    """D16: the switch speaks of unknown names only."""
    assert set(errors(("amount", "1.00"), currency="eur", policy=UnknownNamePolicy.LENIENT)) == {"amount", "currency"}


# --- errors --------------------------------------------------------------------------------------------------------


def test_every_error_is_told_at_once() -> None:
    """D10; Errors."""
    found = errors(
        ("paymentBrnad", "VISA"),
        ("cart.items[1000].name", "x"),
        amount="92.1",
        currency="eur",
        card__expiryMonth="13",
        paymentType="",
    )
    assert set(found) == {
        "paymentBrnad",
        "cart.items[1000].name",
        "amount",
        "currency",
        "card.expiryMonth",
        "paymentType",
    }


def test_a_parameter_is_told_off_once() -> None:
    """D10."""
    with pytest.raises(InvalidParametersError) as caught:
        parse(card__number="12", card__expiryMonth="1", card__expiryYear="34", amount="x")
    names = [error.name for error in caught.value.errors]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "sent, hint",
    [
        ("92.1", "92.10"),
        ("92.123", "92.12"),
        ("92,00", "dot"),
        ("-1", "sign"),
        ("+1", "sign"),
        ("1e3", "10 digits"),
        ("NaN", "10 digits"),
        ("٩٢", "10 digits"),
        ("12345678901", "10 digits"),
    ],
)
def test_an_amount_of_the_wrong_form_is_answered_with_what_is_allowed(sent: str, hint: str) -> None:
    """D26."""
    assert hint in errors(amount=sent)["amount"].message


def test_a_wrong_value_comes_back_in_its_error() -> None:
    """D10."""
    assert errors(currency="eur")["currency"].value == "eur"


def test_a_long_value_is_shortened_in_its_error() -> None:
    """D10: 100 characters are enough to recognise it."""
    value = errors(descriptor="y" * 10_000)["descriptor"].value
    assert value is not None
    assert len(value) <= 100


@pytest.mark.parametrize(
    "more, changes",
    [
        ((), {"card__number": PAN + "x"}),
        ((), {"card__number": "54545454 54545454"}),
        ((), {"card__cvv": f"{CVV}{CVV}"}),
        ((("card.nunber", PAN),), {}),
        ((("card.cvvv", CVV),), {}),
        ((("card.cvc", CVV),), {}),
        ((("descriptor", f"card {PAN} " + "x" * 120),), {}),
        (((f"card.number={PAN}", "x"), ("amount", "1")), {}),
        (((f"card.{PAN}", "x"),), {}),
        ((("card.number", PAN),), {}),
        ((("card.cvv", CVV), ("card.cvv", CVV)), {}),
        ((("tokenAccount.number", PAN),), {}),
        ((("wallet4.paymentToken", PAN),), {"amount": "x"}),
    ],
)
def test_an_error_never_repeats_a_card_number_or_cvv(
    more: tuple[tuple[str, str], ...], changes: dict[str, str]
) -> None:
    """D10, D17."""
    with pytest.raises(InvalidParametersError) as caught:
        parse(*more, **changes)
    told = "".join(f"{error.name} {error.value} {error.message}" for error in caught.value.errors)
    assert PAN not in told
    assert CVV not in told
    assert "54545454 54545454" not in told


def test_an_ignored_name_that_holds_a_card_number_is_masked() -> None:
    """D10, D17."""
    assert PAN not in "".join(parse((f"my {PAN} field", "x")).ignored)


@pytest.mark.parametrize(
    "changes, code",
    [({"card__number": "4444444444444444"}, "100.100.101"), ({"card__expiryYear": "2020"}, "100.100.303")],
)
def test_a_well_formed_value_that_is_refused_has_a_code_of_its_own(changes: dict[str, str], code: str) -> None:
    """D10: a failed Luhn check, a past expiry."""
    assert [refusal.code for refusal in parse(**changes).refusals] == [code]


def test_a_fault_of_form_outweighs_a_refusal() -> None:
    """D10: all errors are told, and the answer is the validation error."""
    found = errors(card__number="4444444444444444", amount="x")
    assert set(found) == {"card.number", "amount"}


# --- echo ----------------------------------------------------------------------------------------------------------


def test_secrets_and_the_memo_are_never_echoed() -> None:
    """D17."""
    for one in REQUEST_STRUCTURES:
        for row in one.rows:
            if row.echo is Echo.NEVER or row.private:
                name = one.full(row.name)
                found = PAYMENT_ENDPOINT.catalogue.find(name)
                assert found is not None, name
                held = Parameters(items=[(found[0], (), None, "123456789")])
                assert held.echo() == {}, name
    echo = parse(card__cvv=CVV, merchantMemo="for our eyes only").echo()
    assert "for our eyes only" not in str(echo)
    assert PAN not in str(echo)
    assert CVV not in str(echo)
    assert echo["card"] == {"expiryMonth": "05", "expiryYear": "2034"}


@pytest.mark.parametrize("name", ["bankAccount.iban", "bankAccount.number", "virtualAccount.accountId"])
def test_an_account_number_is_echoed_masked(name: str) -> None:
    """D17."""
    found = PAYMENT_ENDPOINT.catalogue.find(name)
    assert found is not None
    if found[0].param.echo is Echo.MASK:
        sent = _RequestParser(
            PAYMENT_ENDPOINT.catalogue, frozenset(), UnknownNamePolicy.NORMAL, literal=False, masks=True
        )
        sent.take(name, "DE23100000001234567890")
        text = str(sent.params.echo())
        assert "100000001234" not in text
        assert "7890" in text


def test_text_of_any_script_is_echoed_as_it_was_sent() -> None:
    """Part A, What the service does, 3; A3.1."""
    echo = parse(("customer.givenName", "Zoë Łukasz 李"), ("customer.surname", "O'Neil")).echo()
    assert echo["customer"] == {"givenName": "Zoë Łukasz 李", "surname": "O'Neil"}


def test_a_default_that_is_stored_comes_back() -> None:
    """A13.22."""
    assert parse().echo()["transactionProcessingCode"] == "PURCHASE"


# --- forms ---------------------------------------------------------------------------------------------------------


def test_a_form_keeps_order_and_repetition() -> None:
    """Part A, What the service does, 3."""
    assert parse_form(b"b=1&a=2&b=3&&c&d=&e=f=g") == [
        ("b", "1"),
        ("a", "2"),
        ("b", "3"),
        ("c", ""),
        ("d", ""),
        ("e", "f=g"),
    ]


def test_a_form_is_utf_8_percent_encoded_or_raw() -> None:
    """Part A, What the service does, 3."""
    assert parse_form("n=Zo%C3%AB+Ł%20李".encode()) == [("n", "Zoë Ł 李")]
    assert parse_form(b"%6e%5B0%5D=%26%3D%2B") == [("n[0]", "&=+")]


@pytest.mark.parametrize("value", [b"\xff\xfe", b"%FF%FE", b"%C3", b"a%ED%A0%80"])
def test_bytes_that_are_no_utf_8_are_refused_and_the_parameter_is_named(value: bytes) -> None:
    """Part A, What the service does, 3; Errors."""
    with pytest.raises(UnreadableFormError) as caught:
        parse_form(b"ok=1&customer.givenName=" + value)
    assert caught.value.name == "customer.givenName"


def test_fifty_thousand_fields_are_the_limit() -> None:
    """D41."""
    assert len(parse_form(b"&".join([b"a=1"] * MAX_FORM_FIELDS))) == 50_000
    with pytest.raises(UnreadableFormError, match="50,000"):
        parse_form(b"&".join([b"a=1"] * (MAX_FORM_FIELDS + 1)))


def test_a_map_has_at_most_five_hundred_keys() -> None:
    """Decision 0050."""
    kept = [("amount", "1.00"), *((f"customParameters[key{at}]", "x") for at in range(500))]
    with pytest.raises(InvalidParametersError) as caught:
        PAYMENT_ENDPOINT.catalogue.parse([*kept, ("customParameters[more]", "x"), ("customParameters[others]", "x")])
    told = {error.name: error.message for error in caught.value.errors}
    assert told["customParameters"] == "has too many keys: at most 500"
    with pytest.raises(InvalidParametersError) as caught:
        PAYMENT_ENDPOINT.catalogue.parse(kept)
    assert "customParameters" not in {error.name for error in caught.value.errors}


@pytest.mark.parametrize("sent", [b"4112 " * 200_000 + b"=\xff", b"%41" * 400_000 + b"=1", b"n=" + b"%41" * 70_000])
def test_what_is_longer_than_any_parameter_is_refused_before_it_is_decoded(sent: bytes) -> None:
    """Decision 0050: a name of 1 MB took 2 seconds, a value of 30 MB 4 seconds and 2.4 GB."""
    with pytest.raises(UnreadableFormError) as caught:
        parse_form(b"ok=1&" + sent)
    assert len(caught.value.name) <= MAX_REPORTED_NAME_CHARS
    tracemalloc.start()
    with pytest.raises(UnreadableFormError):
        parse_form(b"ok=1&" + sent)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * len(sent)


@pytest.mark.parametrize("text", ["é" * 20_000, "€" * 21_845, "a%b+c" * 3_000, "\U0001f4a9" * 16_384])
def test_a_long_value_is_decoded_as_a_short_one_is(text: str) -> None:
    """Part A, What the service does, 3: decoded piece by piece, at no place between the bytes of a character."""
    assert parse_form(f"n={quote(text)}".encode()) == [("n", text)]
    assert parse_form(b"n=" + "".join(f"%{octet:02x}" for octet in text.encode()).encode()) == [("n", text)]


# --- every parse is total ------------------------------------------------------------------------------------------

KNOWN = [one.full(row.name).replace("[n]", "[3]") for one in REQUEST_STRUCTURES for row in one.rows]
names = some.one_of(
    some.sampled_from(KNOWN),
    some.text(alphabet="abN.[]019=-\0 é", max_size=30),
    some.builds(lambda name, at, mark: name[:at] + mark + name[at:], some.sampled_from(KNOWN),
                some.integers(0, 40), some.sampled_from([".", "[", "]", "[0]", "x", "\0", "\ud800", "٣"])),
)  # fmt: skip
VALUES = [
    "", "x", "true", "92.00", "4444444444444444", "-1", "1e3", "NaN", "٣", "\0", "\r\nSet-Cookie: a=b", "9" * 4301,
    "é" * 300, "javascript:alert(1)", "http://[::1", "https://\ud800", "2026-02-30", "0 0 0 ? * * *", "0 0 0 1/0 * ?",
    "EUR", "[", "1" * 5000, "PA", "DB", "MIT", "REPEATED", "INITIAL", "INSTALLMENT", "05", "2034", "DE",
]  # fmt: skip
values = some.one_of(some.sampled_from(VALUES), some.text(max_size=40))


@settings(deadline=None)
@given(
    sent=some.lists(some.tuples(names, values), max_size=25),
    policy=some.sampled_from([UnknownNamePolicy.NORMAL, UnknownNamePolicy.STRICT, UnknownNamePolicy.LENIENT]),
    facts=some.sets(some.sampled_from(["threeds", "cvv", "live"])),
    endpoint=some.sampled_from([PAYMENT_ENDPOINT, FOLLOW_UP_ENDPOINT]),
    whole=some.booleans(),
)
def test_any_form_is_parsed_or_told_what_is_wrong(
    sent: list[tuple[str, str]], policy: str, facts: set[str], endpoint: Endpoint, whole: bool
) -> None:
    """Errors: never a fault of ours, whatever is sent."""
    catalogue = endpoint.catalogue
    everything = [*(GOOD.items() if whole else ()), *sent]
    faults: tuple[ParameterError, ...] = ()
    try:
        catalogue.parse(everything, facts=FACTS | facts, policy=policy).echo()
    except InvalidParametersError as invalid:
        faults = invalid.errors
    for fault in faults:
        assert fault.message
        assert len(fault.name) <= 100
    for pair in everything:
        catalogue.mask_pair_for_log(*pair)


@given(body=some.binary(max_size=200))
def test_any_bytes_are_a_form_or_are_refused(body: bytes) -> None:
    """Errors: never a fault of ours, whatever is sent."""
    found: list[tuple[str, str]] = []
    with contextlib.suppress(UnreadableFormError):
        found = parse_form(body)
    assert all(isinstance(part, str) for pair in found for part in pair)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("https%3A%2F%2Fshop.example%2Fpay%3Fa%3D1%26b%3D%2520", "https://shop.example/pay?a=1&b=%20"),
        ("https%3a%2f%2fshop.example%2fr%c3%a9sultat", "https://shop.example/résultat"),
        ("com.example.shop%3A%2F%2Freturn%2F4711", "com.example.shop://return/4711"),
        ("https%3A//shop.example/pay", "https://shop.example/pay"),
        (
            "https://shop.example/r%C3%A9sultat?to=https%3A%2F%2Fa",
            "https://shop.example/r%C3%A9sultat?to=https%3A%2F%2Fa",
        ),
    ],
)
def test_an_address_that_is_encoded_once_more_is_decoded(sent: str, kept: str) -> None:
    """Part B, Asynchronous payment parameters; docs/decisions/0048."""
    assert parse(shopperResultUrl=sent)["shopperResultUrl"] == kept


@pytest.mark.parametrize(
    "sent",
    [
        "https%253A%252F%252Fshop.example%252F",
        "javascript%3Aalert(1)",
        "data%3Atext/html,x",
        "https%3A%2F%2F",
        "https%3A%2F%2Fshop.example%2Fa%0Ab",
        "https%3A%2F%2Fshop.example%2F%ff",
        "%68ttps%3A%2F%2Fshop.example%2F",
        "https%3A%2F%2Fshop.example%2F" + "a" * 2028,
    ],
)
def test_what_decodes_to_no_address_is_refused(sent: str) -> None:
    assert "shopperResultUrl" in errors(shopperResultUrl=sent)


def test_a_strict_channel_takes_addresses_as_they_are_alone() -> None:
    with pytest.raises(InvalidParametersError) as caught:
        parse(shopperResultUrl="https%3A%2F%2Fshop.example%2F", policy=UnknownNamePolicy.STRICT)
    assert "shopperResultUrl" in {error.name for error in caught.value.errors}

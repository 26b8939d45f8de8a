"""Masking: no card number, security code or token survives; ids, times and amounts do."""

import uuid

import pytest

from gateway.connectors.simulator.cards import INVALID_NUMBER, SIMULATED_CARDS
from gateway.core.luhn import compute_check_digit, is_luhn_valid
from gateway.core.masking import (
    contains_card_number,
    looks_like_pan,
    mask_iban,
    mask_note,
    mask_pan,
    mask_text,
)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("4200000000000000", "420000******0000"),
        ("377777777777770", "377777*****7770"),
        ("30082246403846", "300822****3846"),
        ("5000000000611", "500000***0611"),
        ("500000000611", "********0611"),
        ("1234567890", "******7890"),
        ("123456789", "*********"),
        ("", ""),
    ],
)
def test_a_card_number_shows_six_and_four_digits_a_short_one_fewer(number: str, shown: str) -> None:
    """Issue: mask_pan."""
    assert mask_pan(number) == shown


def test_an_iban_shows_country_check_digits_and_the_last_four() -> None:
    """Issue: mask_iban."""
    assert mask_iban("DE89370400440532013000") == "DE89**************3000"
    assert mask_iban("DE89370") == "*******"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("4200000000000000", "420000******0000"),
        ("pan 4200 0000 0000 0000.", "pan 4200 00** **** 0000."),
        ("4200-0000-0000-0000", "4200-00**-****-0000"),
        ("3777 777777 77770", "3777 77**** *7770"),
        ("a4200000000000000b", "a420000******0000b"),
        ("two 4200000000000000,4111111111111111", "two 420000******0000,411111******1111"),
        ("4200000000000000 4111111111111111", "420000******0000 411111******1111"),
        ("id 123 4200000000000000 99", "id 123 420000******0000 99"),
        ("12:00:00+0000 4200000000000000", "12:00:00+0000 420000******0000"),
        ("/pay/4200000000000000?x=1", "/pay/420000******0000?x=1"),
        ("n%3D4200000000000000%26a", "n%3D420000******0000%26a"),
        ("n:%204200000000000000", "n:%20420000******0000"),
        ("4200%200000%200000%200000", "4200%2000**%20****%200000"),
        ("4200+0000+0000+0000", "4200+00**+****+0000"),
        ('{"holder":"4200000000000000"}', '{"holder":"420000******0000"}'),
        ("\\u003d4200000000000000", "\\u003d420000******0000"),
        ("4200000000000000/12/2030", "420000******0000/12/2030"),
        ("4200000000000000=30121010000", "420000******0000=***********"),
        ("4200000000000000.00", "420000******0000.00"),
        ("6304000000000000", "630400******0000"),
    ],
)
def test_a_card_number_is_masked_wherever_it_turns_up(text: str, shown: str) -> None:
    """Issue: JSON logs in which a PAN is masked wherever it turns up."""
    assert mask_text(text) == shown


@pytest.mark.parametrize("length", [12, 13, 14, 15, 16, 17, 18, 19])
def test_every_card_length_is_masked(length: int) -> None:
    """Maestro has 12 to 19 digits."""
    payload = "5012345678901234567"[: length - 1]
    number = payload + compute_check_digit(payload)
    assert number not in mask_text(f"x={number};")
    assert looks_like_pan(number)


def test_no_card_of_the_simulator_survives_a_log_line() -> None:
    """Issue: masking, on the table of test cards."""
    for card in SIMULATED_CARDS:
        if card.code != INVALID_NUMBER:
            for text in (card.number, card.spaced, card.spaced.replace(" ", "-"), f'"n":"{card.number}"'):
                assert "*" in mask_text(text)
        assert card.number not in mask_text(f'{{"card.number": "{card.number}"}}')
        assert card.number not in mask_text(f"card.number={card.number}&amount=92.00")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing at all",
        "4200000000000001",
        "42000000000000000000",
        "0000000000000000",
        "8ac7a4a19c5d4f0e019c5d4200000000",
        "0190a3b2-4567-1234-8765-123456789abc",
        "42000000-0000-0000-4200-000000000000",
        "8AC7A4A19C5D4F0E019C5D4200000000-node1",
        "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3",
        "2026-11-21 12:13:45.123456+0000",
        "2026-11-21T12:13:45Z",
        "2026-11-21 121345",
        "1763727600124",
        "1763727600000007",
        "0.4200000000000000",
        "9999999999.99",
        "amount=92.00&currency=EUR",
        "4532.1234.1234",
        "+49 170 1234567",
        "cvvResponse=M result.cvvResponse: M",
        "pinned=1 shopping=2",
        '"number": "A-17"',
        "card.cvv=null",
    ],
)
def test_ids_times_and_amounts_stay_and_the_text_is_the_same_object(text: str) -> None:
    """Issue: masking must not eat ids, timestamps and amounts."""
    assert mask_text(text) is text


def test_a_compact_time_is_a_time_even_when_it_passes_luhn() -> None:
    """Issue: masking must not eat timestamps."""
    time = next(f"202611211213{second:02}" for second in range(60) if is_luhn_valid(f"202611211213{second:02}"))
    epoch = next(str(moment) for moment in range(1763727600000, 1763727600020) if is_luhn_valid(str(moment)))
    assert mask_text(time) is time
    assert mask_text(epoch) is epoch


def test_no_time_ordered_id_is_masked() -> None:
    """D14: ids are 32 lower-case hex digits."""
    for number in range(2000):
        text = f"/v1/payments/{uuid.uuid5(uuid.NAMESPACE_OID, str(number)).hex}"
        assert mask_text(text) is text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("card.cvv=123&card.holder=Jane", "card.cvv=***&card.holder=Jane"),
        ('{"card.cvv": "123", "a": 1}', '{"card.cvv": "***", "a": 1}'),
        ('{"card":{"cvv":"123"}}', '{"card":{"cvv":"***"}}'),
        ('"{\\"cvv\\":\\"123\\"}"', '"{\\"cvv\\":\\"***\\"}"'),
        ("{'card.cvv': '123'}", "{'card.cvv': '***'}"),
        ("[('card.cvv', '123'), ('a', 'b')]", "[('card.cvv', '***'), ('a', 'b')]"),
        ("card[cvv]=123", "card[cvv]=***"),
        ("card.cvv%3D123", "card.cvv%3D***"),
        ("CARD.CVV=123", "CARD.CVV=***"),
        ("tokenAccount.dtvc=1234", "tokenAccount.dtvc=***"),
        ("giftCard.pin=ab12", "giftCard.pin=***"),
        ('"pin": "12 34"', '"pin": "***"'),
        ("bankAccount.iban=DE89370400440532013000", "bankAccount.iban=DE89**************3000"),
        ("card.number=4200000000000001&a=b", "card.number=420000******0001&a=b"),
        ('"number":"4200 0000 0000 0001"', '"number":"420000******0001"'),
        ("Authorization: Bearer OGE4Mjk0MTc0|abc==", "Authorization: Bearer ***"),
        ("'authorization': 'bearer abcdefgh12345678'", "'authorization': 'bearer ***'"),
    ],
)
def test_codes_pins_and_tokens_are_masked_by_their_name(text: str, shown: str) -> None:
    """Issue: values of card.cvv, tokenAccount.dtvc, giftCard.pin and bearer tokens."""
    assert mask_text(text) == shown


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("4200000000000000", True),
        ("4200 0000 0000 0000", True),
        ("4200.0000.0000.0000", True),
        ("paid with 4200000000000000 today", True),
        ("card.number=4200000000000000", True),
        ("cvv 123", True),
        ("4200000000000001", False),
        ("order 4711", False),
        ("0000", False),
        (uuid.UUID(int=4200000000000000).hex, False),
        (f"4200000000000000-{'ab' * 16}", True),
        (f"4200000000000001-{'ab' * 16}", False),
        (f"2026-11-29T10:00:00+00:00-{'ab' * 16}", False),
    ],
)
def test_a_typed_text_with_a_card_number_or_a_code_is_known_in_any_notation(text: str, found: bool) -> None:
    assert contains_card_number(text) is found


@pytest.mark.parametrize(
    ("iban", "shown"),
    [("12345678901", "***********"), ("123456789012", "1234****9012"), ("1234567890123", "1234*****0123"), ("", "")],
)
def test_an_iban_that_is_too_short_shows_nothing(iban: str, shown: str) -> None:
    assert mask_iban(iban) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("123456789012", "********9012"),
        ("1234567890123", "123456***0123"),
        ("12345678901", "*******8901"),
        ("1" * 19, "111111*********1111"),
    ],
)
def test_a_number_is_masked_as_its_length_allows(number: str, shown: str) -> None:
    assert mask_pan(number) == shown


@pytest.mark.parametrize(
    ("digits", "like"),
    [
        ("4200000000000000", True),
        ("4200000000000001", False),
        ("0000000000000000", False),
        ("1234567812345670", False),
        ("4242", False),
    ],
)
def test_a_card_number_has_its_brands_range_and_the_check_digit(digits: str, like: bool) -> None:
    assert looks_like_pan(digits) is like


@pytest.mark.parametrize(
    ("text", "most", "note"),
    [
        (" seen \n", 10, "seen"),
        ("two\nlines\tand\0more", 40, "two lines and more"),
        ("paid with 4200000000000000", 100, "paid with 420000******0000"),
        ("paid with 4200000000000000", 20, "paid with 420000****"),
        ("x" * 12, 12, "x" * 12),
        ("x" * 13, 12, "x" * 12),
    ],
)
def test_a_note_is_one_line_of_its_length_and_masked_before_it_is_cut(text: str, most: int, note: str) -> None:
    """A number that is cut off in the middle would not be known as one."""
    assert mask_note(text, most) == note


FOUR = "4200000000000000"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # Ids, whose digits mean nothing, in each form that is one.
        (FOUR * 2, False),
        (f"{FOUR * 2}-{FOUR * 2}", False),
        ("42000000-0000-0000-4200-000000000000", False),
        (f"VISA:{FOUR}4200", False),
        # And what only looks like one.
        (f"{FOUR * 2}-{FOUR}", True),
        (f"{FOUR} {FOUR}", True),
        (f"x{FOUR * 2}", False),
        ("42000000.00000000", True),
        ("4200000000000000x", True),
        ("420000000000000", False),
        ("12:00-" + "ab" * 16, False),
        # Of twelve digits, among words too.
        ("500000000611", True),
        ("paid with 500000000611 today", True),
        ("paid with 500000000612 today", False),
        ("4200.0000.0000.0000", True),
        ("٤٢٠٠٠٠٠٠٠٠٠٠٠٠٠٠", True),
        ("4200000000000000:-" + "ab" * 16, True),
    ],
)
def test_an_id_is_no_card_number_whatever_its_digits(text: str, found: bool) -> None:
    assert contains_card_number(text) is found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=x1&a=b", "password=***&a=b"),
        ("secret: 'x y'", "secret: '***'"),
        ("cryptogram=AAAB==&a=b", "cryptogram=***&a=b"),
        ('"paymentToken": "abc"', '"paymentToken": "***"'),
        ("number=12345678", "number=********"),
        ("number=1234567", "number=1234567"),
        ("number=4200-0000-0000-0001", "number=420000******0001"),
        ("number=42%2D00%2D0000%2D0000%2D0001", "number=420000******0001"),
        ("xcvv=123", "xcvv=123"),
        ("password=None", "password=None"),
        ("Bearer short", "Bearer short"),
        ("Bearer 12345678", "Bearer ***"),
        ("Bearer+12345678", "Bearer+***"),
        ("bearer%2012345678 rest", "bearer%20*** rest"),
    ],
)
def test_what_stands_behind_the_name_of_a_secret_is_masked_by_its_kind(text: str, shown: str) -> None:
    assert mask_text(text) == shown

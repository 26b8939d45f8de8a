"""The one detector of card data in free text: what it finds in every writing, and what it leaves alone."""

from __future__ import annotations

import itertools
import random
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core import card_data_detection
from gateway.core.brands import CARD_BRANDS
from gateway.core.luhn import compute_check_digit
from gateway.core.masking import mask_text

NUMBER = "4929123456789014"[:15]
NUMBER += compute_check_digit(NUMBER)
AMEX = "37828224631000"
AMEX += compute_check_digit(AMEX)
BLANKS = {"blank": " ", "no-break": "\u00a0", "thin": "\u2009", "narrow": "\u202f", "ideographic": "\u3000",
          "tab": "\t", "zero-width": "\u200b", "newline": "\n", "two blanks": "  ", "entity": "&nbsp;",
          "escaped": "\\u00a0", "url": "%20", "plus": "+", "utf-8 in a url": "%C2%A0"}  # fmt: skip
MARKS = {"dot": ".", "hyphen": "-", "soft hyphen": "\u00ad", "non-breaking hyphen": "\u2011", "en dash": "\u2013",
         "em dash": "\u2014", "minus": "\u2212", "full-width hyphen": "\uff0d", "slash": "/", "division": "\u2215",
         "underscore": "_", "colon": ":", "full-width colon": "\uff1a", "middle dot": "\u00b7", "bullet": "\u2022",
         "full-width dot": "\uff0e", "blank hyphen blank": " - "}  # fmt: skip
ZEROS = {
    "arabic": 0x660,
    "persian": 0x6F0,
    "devanagari": 0x966,
    "bengali": 0x9E6,
    "thai": 0xE50,
    "full-width": 0xFF10,
    "mathematical": 0x1D7CE,
}


def grouped(number: str, size: int, between: str) -> str:
    return between.join(number[at : at + size] for at in range(0, len(number), size))


def shows(text: str, number: str) -> bool:
    """Whether more of the number than its first six and last four digits is left, however it is written."""
    return number[6:-4] in card_data_detection.fold_digits(text)


@pytest.mark.parametrize("between", [*BLANKS.values(), *MARKS.values()], ids=[*BLANKS, *MARKS])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_a_number_is_found_whatever_stands_between_its_groups(size: int, between: str) -> None:
    """PCI DSS 4.0.1, 3.4.1; docs/decisions/0052."""
    for number in (NUMBER, AMEX):
        text = f"paid with {grouped(number, size, between)}, thank you"
        assert not shows(mask_text(text), number)
        assert mask_text(text).startswith("paid with ")


@pytest.mark.parametrize("between", [",", ", ", ";", "|", "'", "’", "=", " = ", "#", " #", "*", " * ", "\\", "##"])
def test_signs_of_lists_count_between_the_groups_of_a_card(between: str) -> None:
    assert not shows(mask_text(grouped(NUMBER, 4, between)), NUMBER)
    assert mask_text("12, 4929, 123, 4567, 8901, 4") == "12, 4929, 123, 4567, 8901, 4"


@pytest.mark.parametrize(
    "written",
    [
        "({})({})({})({})",
        "({}) {} {} {}",
        "{} ({}) {} ({})",
        "[{}] [{}] [{}] [{}]",
        "{{{}}}{{{}}}{{{}}}{{{}}}",
        "<{}><{}><{}><{}>",
        "({}-{})-{}-{}",
        "({} {}) ({} {})",
        "[{}, {}, {}, {}]",
    ],
)
def test_a_number_is_found_with_its_groups_in_brackets(written: str) -> None:
    """docs/decisions/0052."""
    text = written.format(*(NUMBER[at : at + 4] for at in range(0, 16, 4)))
    assert not shows(mask_text(text), NUMBER)
    assert mask_text(mask_text(text)) == mask_text(text)


@pytest.mark.parametrize("zeros", ["0", "00", "000"])
def test_a_number_is_found_behind_the_zeros_of_a_fixed_width(zeros: str) -> None:
    """docs/decisions/0052: lists of old systems fill numbers up to nineteen digits."""
    assert mask_text(f"paid with {zeros}{NUMBER}") == f"paid with {zeros}{NUMBER[:6]}******{NUMBER[-4:]}"
    assert not shows(mask_text(f"card={zeros}0{AMEX}&x=1"), AMEX)
    articles = [f"{zeros}{ean}" for ean in ordinary()["ean of Germany"]]
    assert [text for text in articles if mask_text(text) is not text] == []


@pytest.mark.parametrize(
    "text",
    [
        "492912******9014",
        "492912***9014",
        "4929 12** **** 9014",
        "4929 **** **** 9014",
        "(4929) ****-9014",
        "492 * 912 = 345 * 6789 014",
        "(49291) 23456 (789014)",
        "[492, 912, 345, 678, 901, 4]",
        "#4929 #123 #4567",
        "C:\\4929\\123\\45678",
        "+49 (30) 4929 1234 56",
        "x = 4929 * 12 = 59148",
    ],
)
def test_masks_sums_and_lists_are_left_alone(text: str) -> None:
    """docs/decisions/0052: signs of lists and brackets count around the groups of a card alone."""
    assert card_data_detection.mask_card_data(text) is text


@pytest.mark.parametrize("zero", ZEROS.values(), ids=ZEROS)
def test_a_number_is_found_in_the_digits_of_every_script(zero: int) -> None:
    """docs/decisions/0052."""
    for text in (NUMBER, grouped(NUMBER, 4, " "), grouped(NUMBER, 4, "\u00a0")):
        other = "".join(chr(zero + int(char)) if char.isdigit() else char for char in text)
        assert mask_text(other).count("*") == 6


@pytest.mark.parametrize("text", ["4929 123456 789014", "492912 3456789014", "4929-1234 5678.9014", "4 9 2 9"])
def test_groups_may_be_unequal(text: str) -> None:
    digits = card_data_detection.fold_digits(text)
    if len(digits) < 12:
        text = grouped(NUMBER, 1, " ")
        digits = NUMBER
    number = digits[:-1] + compute_check_digit(digits[:-1])
    text = text[:-1] + number[-1]
    assert not shows(mask_text(text), number)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cvv 737", "cvv ***"),
        ("CVC2=737", "CVC2=***"),
        ("cvv737", "cvv***"),
        ("security code: 737", "security code: ***"),
        ("Security-Code is 7373", "Security-Code is ****"),
        ("the cvv is 737.", "the cvv is ***."),
        ("CVN (7 3 7)", "CVN (* * *)"),
        ("Prüfziffer 737", "Prüfziffer ***"),
        ("Kartenprüfnummer: 737", "Kartenprüfnummer: ***"),
        ("Sicherheitscode lautet 737", "Sicherheitscode lautet ***"),
        ("code de sécurité 737", "code de sécurité ***"),
        ("código de seguridad: 737", "código de seguridad: ***"),
        ("737 (CVV)", "*** (CVV)"),
        ("exp 12/2030 cvv 737", "exp 12/2030 cvv ***"),
        ("cvv ٧٣٧", "cvv ***"),
        ("CID 7371", "CID ****"),
        ("CID: 737", "CID: ***"),
        ("737 (CID)", "*** (CID)"),
        ("card code: 737", "card code: ***"),
        ("Card-Code is 737", "Card-Code is ***"),
        ("cvv\n737", "cvv\n***"),
        ("CVC:\r\n737", "CVC:\r\n***"),
        ("CVC:\n  737 exp 12/30", "CVC:\n  *** exp 12/30"),
        ("Security code\n\n7 3 7\nThank you", "Security code\n\n* * *\nThank you"),
        ("737 (CVV)\n2026", "*** (CVV)\n2026"),
    ],
)
def test_a_security_code_is_found_beside_a_word_for_it(text: str, shown: str) -> None:
    """PCI DSS 4.0.1, 3.3.1.2."""
    assert mask_text(text) == shown
    assert card_data_detection.mask_card_data(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "cvvResponse=M",
        "cvv: none",
        "no cvv, order 47110815",
        "the cvv of order 2026",
        "cid=4711",
        "acid 1234",
        "CID4711",
        "CIDER 1234",
        "postcard code 1234",
        "card code: 12345",
        "without cvv\n2026-05-01",
        "paid without a security code\n1234 Main Street",
        "CVV:\n2026-05-01",
        "order 4711\ncvv checked",
    ],
)
def test_a_word_for_a_code_alone_is_none(text: str) -> None:
    assert card_data_detection.mask_card_data(text) is text


def test_what_follows_a_number_on_a_magnetic_stripe_goes_too() -> None:
    """PCI DSS 4.0.1, 3.3.1.1."""
    assert "30121010000" not in mask_text(f";{NUMBER}=30121010000012300001?")
    assert "30121010000" not in mask_text(f"%B{NUMBER}^DOE/JANE^30121010000000123?")


def ordinary() -> dict[str, list[str]]:
    """Ids and numbers of ordinary requests, 2,000 of a kind, the same in every run."""
    chance = random.Random("ordinary")
    moments = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(10**9)) for _ in range(2_000)]

    def digits(length: int) -> str:
        return "".join(chance.choices("0123456789", k=length))

    def ean(start: str) -> str:
        payload = start + digits(12 - len(start))
        total = sum(int(char) * (3 if at % 2 else 1) for at, char in enumerate(payload))
        return payload + str(-total % 10)

    def iban() -> str:
        account = digits(18)
        return f"DE{98 - int(f'{account}131400') % 97:02}{account}"

    return {
        "uuid": [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in moments],
        "hex id": [f"{chance.getrandbits(128):032x}" for _ in moments],
        "iso time": [f"{at:%Y-%m-%d %H:%M:%S.%f+0000}" for at in moments],
        "compact time": [f"{at:%Y%m%d%H%M%S}" for at in moments],
        "milliseconds": [str(int(at.timestamp() * 1000)) for at in moments],
        "short id": [f"{digits(4)}.{digits(4)}.{digits(4)}" for _ in moments],
        "amounts": [f"{digits(7)}.{digits(2)} EUR" for _ in moments],
        "fraction": [repr(chance.random() * 100) for _ in moments],
        "telephone": [f"+{chance.choice(('49', '44', '48', '33'))} {digits(3)} {digits(8)}" for _ in moments],
        "ean of Germany": [ean("40") for _ in moments],
        "iban": [iban() for _ in moments],
        "iban in groups": [grouped(iban(), 4, " ") for _ in moments],
        "order of ten": [digits(10) for _ in moments],
        "year and order": [f"2026-{digits(8)}" for _ in moments],
        "dated order": [f"{at:%Y%m%d}-{digits(6)}" for at in moments],
    }


@pytest.mark.parametrize("kind", ordinary())
def test_ordinary_ids_and_numbers_are_left_alone(kind: str) -> None:
    """docs/decisions/0052: what false alarms cost is bounded."""
    assert [text for text in ordinary()[kind] if card_data_detection.mask_card_data(text) is not text] == []


@pytest.mark.parametrize(("length", "percent"), [(13, 2.5), (14, 1.5), (15, 1.5), (16, 5.0), (17, 3.0), (19, 4.0)])
def test_of_random_digits_few_pass_for_a_card(length: int, percent: float) -> None:
    """One in ten passes the check digit alone; the ranges and the lengths of the brands leave fewer."""
    chance = random.Random(length)
    texts = ["".join(chance.choices("0123456789", k=length)) for _ in range(4_000)]
    found = sum(card_data_detection.mask_card_data(text) is not text for text in texts)
    assert found * 100 / len(texts) < percent


def test_a_chain_breaks_where_no_card_goes_on() -> None:
    """More than nineteen digits in a row are no card's, and do not tie their neighbours together."""
    assert card_data_detection.mask_card_data("1" * 40 + " " + NUMBER).endswith(f"{NUMBER[:6]}******{NUMBER[-4:]}")
    assert card_data_detection.mask_card_data(NUMBER * 2) == NUMBER * 2


def numbers_of_every_brand() -> list[str]:
    """Three numbers of every range and length of every brand, the same in every run."""
    chance = random.Random("brands")
    found = []
    for brand in CARD_BRANDS.values():
        for (low, high), length in itertools.product(brand.ranges, sorted(brand.lengths)):
            for _ in range(3):
                start = str(chance.randint(int(low), int(high))).zfill(len(low))
                payload = start + "".join(chance.choices("0123456789", k=length - 1 - len(start)))
                found.append(payload + compute_check_digit(payload))
    return found


def is_ean(number: str) -> bool:
    return len(number) == 13 and sum(int(char) * (3 if at % 2 else 1) for at, char in enumerate(number)) % 10 == 0


AROUND = ("{}", "order {} of today", "77 {}", "{} 20", "card={}&x=1", "({})", "\u00e4{}\u00e4", "{}\n{}", "{}, {}",
          "12345678901234567890 {}", "{} 12345678901234567890", "{}/123456789012345678901234567890")  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
def test_a_number_of_every_brand_and_length_is_masked_within_any_text(around: str) -> None:
    """Thirteen digits that an EAN's check digit ends, too, are one in a text of their own only."""
    for number in numbers_of_every_brand():
        writings = [grouped(number, 4, between) for between in (" ", "-", "\u00a0", "_", "  ", "%20")]
        if not is_ean(number):
            writings.append(number)
        for written in writings:
            text = around.replace("{}", written)
            assert number not in card_data_detection.fold_digits(mask_text(text)), text


def test_thirteen_digits_before_a_longer_number_are_masked_though_an_ean_ends_alike() -> None:
    number = next(each for each in numbers_of_every_brand() if is_ean(each))
    assert mask_text(number) == number
    assert number not in mask_text(f"{number} 12345678901234567890")

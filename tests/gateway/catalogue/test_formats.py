"""Formats at their borders: one character less and one more, a space at each end, a letter of several bytes."""

from __future__ import annotations

import pytest

from gateway.catalogue import conditions, formats
from gateway.catalogue.formats import Format
from gateway.catalogue.rules import RuleInput

NAME = formats.person_name(2, 5, words="a name")
HOUSE = formats.person_name(1, 5, words="a house", digits=True)
PHONE = formats.phone(3, 6, words="a telephone number")
MOBILE = formats.phone(3, 6, words="a mobile number", slash=False)
URL = formats.url(6, 30, words="an address")
WEB = formats.url(6, 40, words="an address", web_only=True)


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (NAME, ["Jo", "Joe B", "Zoë", "Ωμέγα", "O'Ne-", "a’b", "Zoe\u0301", "a b c"], ["J", "Joe Bo", "Ωμέγαα", ""]),
        (NAME, ["J.-P."], [" Jo", "Jo ", "  ", " ", "J0", "Jo<", "Jo\n", "\tJo", "Jo\u00a0", "Ωμ ", " Ωμ"]),
        (HOUSE, ["7", "7a", "12/3", "Ω7"], ["", " 7", "7 ", "123456", "7#", "\u0667"]),
        (PHONE, ["+49", "030", "+49/12", "0(3).1", "1 2-34"], ["+4", "+49/123", "/49", " 49", "-49", "+4a", "(49"]),
        (MOBILE, ["+49 12", "030123"], ["+49/12", "+4"]),
        (formats.AMOUNT, ["0", "92", "92.00", "9999999999", "9999999999.99"], ["", ".50", "92.", "92.0", "92.000"]),
        (formats.AMOUNT, ["1.00"], ["10000000000", "10000000000.00", "-1.00", "+1.00", "1,00", "1.00 ", "1e3", "٣"]),
        (formats.AMOUNT_WITH_DOT, ["0.00", "9999999999.99"], ["92", "10000000000.00", "92.1", "92.001"]),
        (formats.DATE, ["2024-02-29", "1900-01-01", "2099-12-31"], ["2026-02-29", "2100-01-01", "1899-12-31"]),
        (formats.DATE_TIME, ["2026-05-14 00:00:00"], ["2026-05-14 24:00:00", "2026-05-14 23:60:00"]),
        (formats.DATE_TIME, ["2024-02-29 23:59:59"], ["2026-02-29 12:00:00", "2026-05-14", "2026-05-14 23:59:59Z"]),
        (formats.MONTH_NUMBER, ["01", "09", "10", "12"], ["00", "13", "1", "012", "1a"]),
        (formats.YEAR_NUMBER, ["1900", "2099", "1999"], ["1899", "2100", "34", "02034"]),
        (URL, ["a.b://x", "https://shop.example/", f"https://x.example/{'a' * 12}"], [f"https://x.example/{'a' * 13}"]),
        (URL, ["http://[::1]:8080/", "https://user:pw@x.example/"], ["https://[::1", "https://x.example:0/", "https:///x"]),
        (URL, ["https://x.example:65535/"], ["https://x.example:65536/", "https://x .example", "/result"]),
        (WEB, ["https://shop.example", "http://user@[2001:db8::1]/"], ["com.example.app://done", "ftp://shop.example/"]),
        (WEB, ["https://x.example/?a=b#c"], ["https://user@[2001:db8::zz]/", "https://a..example/"]),
    ],
)  # fmt: skip
def test_a_value_at_the_border_is_taken_and_one_beyond_it_is_not(form: Format, good: list[str], bad: list[str]) -> None:
    assert [value for value in good if form.problem(value)] == []
    assert [value for value in bad if not form.problem(value)] == []


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        (formats.CUSTOM_PARAMETER_KEY, ["abc", "a.b_9", "x" * 64], ["ab", "x" * 65, "a-b-c", "a b c", "äbc"]),
        (formats.BRAND_KEY, ["V", "VISA_1", "x" * 32], ["", "x" * 33, "VI-SA", "VI.SA"]),
    ],
)
def test_a_key_at_the_border_is_taken_and_one_beyond_it_is_not(
    key: formats.MapKey, good: list[str], bad: list[str]
) -> None:
    assert [value for value in good if not key.fits(value)] == []
    assert [value for value in bad if key.fits(value)] == []


@pytest.mark.parametrize("zero", ["0", "0.00", "0000000000.00"])
@pytest.mark.parametrize("stores", [None, "true", "false"])
@pytest.mark.parametrize("kind", [None, "PA", "DB", "CD", "CP", "RF", "RV", "RB", "RC", "RG", "RI"])
def test_nothing_moves_nothing_but_what_stores_a_card(kind: str | None, stores: str | None, zero: str) -> None:
    """Of every payment type: only a registration, and an authorization that creates one, is of 0.00."""
    (rule,) = conditions.AMOUNT_ZERO
    sent = {"amount": zero, "paymentType": kind, "createRegistration": stores}
    found = [name for name, _ in rule.check(RuleInput({name: text for name, text in sent.items() if text}))]
    allowed = kind in (None, "RG") or (kind == "PA" and stores == "true")
    assert found == ([] if allowed else ["amount"])
    assert list(rule.check(RuleInput({"amount": "0.01", "paymentType": kind or "DB"}))) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("DB", None),
        ("db", "must be written DB"),
        (" DB", "must be written DB"),
        ("pa ", "must be written PA"),
        ("DBB", "must be one of DB, PA"),
        ("", "must be one of DB, PA"),
    ],
)
def test_a_value_of_a_list_in_other_letters_is_told_as_it_is_written(value: str, problem: str | None) -> None:
    assert formats.one_of("DB", "PA").problem(value) == problem

"""The table of BINs: what a file may say, what is refused, and what some digits tell. Source: docs/card-facts.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import override_settings

from config.checks import check_bin_file
from gateway.core.bin_table import BinTable, BinTableError, Issuer, parse_bin_table, read_bin_table
from gateway.core.brands import (
    CARD_BRANDS,
    are_brands_in_bin_table,
    detect_brand,
    detect_carried_brands,
    find_issuer,
    order_brands,
)
from gateway.core.card_number import CardNumber
from gateway.core.secret import Secret
from tests.support.bin_files import write_bin_file

HEAD = "bin\tbinTo\tbank\tcountry\ttype\tlevel\tregulated\tbrands"


def table(*rows: str, head: str = HEAD) -> BinTable:
    return parse_bin_table([f"{line}\n" for line in (head, *rows)], CARD_BRANDS)


def test_a_row_tells_the_facts_of_its_cards() -> None:
    found = table("420000\t420099\tBank\tDE\tDEBIT\tGOLD\ttrue\tVISA CARTEBANCAIRE").find_issuer("42005012")
    assert found == Issuer(
        bin="420000", bank="Bank", country="DE", type="DEBIT", level="GOLD", regulated=True,
        brands=("VISA", "CARTEBANCAIRE"),
    )  # fmt: skip


def test_what_a_table_leaves_out_is_not_known() -> None:
    assert table("42000000", head="bin").find_issuer("42000000") == Issuer(bin="42000000")
    assert table("420000\t\t\t\t\t\t\t").find_issuer("420000") == Issuer(bin="420000")


@pytest.mark.parametrize(
    ("digits", "found"),
    [
        ("420000", "420000"), ("4200000", "420000"), ("42000099", "420000"), ("4200009999999999", "420000"),
        ("420001", None), ("419999", None), ("42000", None), ("", None), ("42000x", None), ("٤٢٠٠٠٠", None),
    ],
)  # fmt: skip
def test_digits_are_found_from_six_on_and_the_ninth_is_never_looked_at(digits: str, found: str | None) -> None:
    one = table("420000\t\tBank\t\t\t\t\t").find_issuer(digits)
    assert (one.bin if one else None) == found


def test_of_digits_that_several_banks_share_only_what_all_have_is_told() -> None:
    shared = table(
        "42000000\t42000049\tA\tDE\tCREDIT\tGOLD\ttrue\tVISA",
        "42000050\t42000099\tB\tDE\tCREDIT\tCLASSIC\tfalse\tVISA",
    )
    assert shared.find_issuer("420000") == Issuer(bin="420000", country="DE", type="CREDIT", brands=("VISA",))
    assert [one.bank for digits in ("42000049", "42000050") if (one := shared.find_issuer(digits))] == ["A", "B"]


@pytest.mark.parametrize(
    "rows",
    [("42000001\t42000099",), ("42000000\t42000098",), ("42000000\t42000049", "42000051\t42000099")],
    ids=["begin", "end", "middle"],
)
def test_digits_that_are_known_in_part_only_are_not_known(rows: tuple[str, ...]) -> None:
    found = table(*rows, head="bin\tbinTo")
    assert found.find_issuer("420000") is None
    assert found.find_issuer("42000001") is not None


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (["42000\t\t\t\t\t\t\t"], "line 2: bin must be 6 to 8 digits, never more"),
        (["4200000000000000\t\t\t\t\t\t\t"], "line 2: bin must be 6 to 8 digits, never more"),
        (["420000\t4200009\t\t\t\t\t\t"], "line 2: binTo must have as many digits as bin, and not be less"),
        (["420001\t420000\t\t\t\t\t\t"], "line 2: binTo must have as many digits as bin, and not be less"),
        (["420000\t\t\tDEU\t\t\t\t"], "line 2: country must be two letters, e.g. DE, or empty"),
        (["420000\t\t\t\tCHARGE\t\t\t"], "line 2: type must be one of CREDIT, DEBIT, PREPAID, or empty"),
        (["420000\t\t\t\t\t\tyes\t"], "line 2: regulated must be true or false, or empty"),
        (["420000\t\t\t\t\t\t\tVISA,MASTER"], "line 2: brands must be codes of card brands with spaces between"),
        (["420000\t\t\t\t\t\t\t", "420001\t"], "line 3: has 2 columns instead of 8"),
        ([f"420000\t\t{'x' * 129}\t\t\t\t\t"], "line 2: bank has more than 128 characters"),
        (["420000\t420009\t\t\t\t\t\t", "42000950\t\t\t\t\t\t\t"], "that begin with 420000 and 42000950 overlap"),
        (["420000\t\t\t\t\t\t\t", "420000\t\t\t\t\t\t\t"], "that begin with 420000 and 420000 overlap"),
    ],
)
def test_a_wrong_line_is_named_with_what_is_wrong(rows: list[str], fault: str) -> None:
    with pytest.raises(BinTableError, match=fault):
        table(*rows)


@pytest.mark.parametrize("head", ["", "bank", "bin\tbin", "bin\tcountries", "bin,bank"])
def test_a_file_names_columns_that_there_are(head: str) -> None:
    with pytest.raises(BinTableError, match="line 1: must name the columns"):
        table(head=head)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(BinTableError, match="cannot be read: No such file"):
        read_bin_table(tmp_path / "none", CARD_BRANDS)
    (tmp_path / "table").write_bytes(b"bin\n\xff")
    with pytest.raises(BinTableError, match="is not UTF-8"):
        read_bin_table(tmp_path / "table", CARD_BRANDS)


def test_an_empty_table_and_empty_lines_are_no_fault() -> None:
    assert len(table()) == 0
    assert len(table("", "420000\t\t\t\t\t\t\t", "")) == 1


# --- the operator's table -------------------------------------------------------------------------------------------


def test_in_live_nothing_is_known_but_the_operators_table(tmp_path: Path, live: None) -> None:
    assert find_issuer("420000") is None
    with write_bin_file(tmp_path, "420000\t\tBank\tDE\tDEBIT\tGOLD\ttrue\t"):
        found = find_issuer("420000")
        assert (found.bank if found else "") == "Bank"
        assert find_issuer("424242") is None


def test_in_test_the_operators_table_goes_first(tmp_path: Path) -> None:
    with write_bin_file(tmp_path, "420000\t\tBank\tDE\tDEBIT\tGOLD\ttrue\t"):
        assert [one.bank for digits in ("420000", "424242") if (one := find_issuer(digits))] == [
            "Bank",
            "Tollhouse Test Bank",
        ]


def test_a_table_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    assert check_bin_file(None) == []
    with write_bin_file(tmp_path, "42\t\t\t\t\t\t\t"):
        [fault] = check_bin_file(None)
    assert fault.id == "tollhouse.E052"
    assert "line 2: bin must be 6 to 8 digits" in fault.msg
    with override_settings(GATEWAY_BIN_FILE=str(tmp_path / "none")):
        assert "cannot be read" in check_bin_file(None)[0].msg


# --- brands ---------------------------------------------------------------------------------------------------------


def test_the_table_says_which_brands_a_card_carries(tmp_path: Path) -> None:
    assert detect_carried_brands("4200000000000000") == ("VISA",)
    with write_bin_file(
        tmp_path,
        "420000\t\t\t\t\t\t\tVISA CARTEBANCAIRE",
        "497010\t\t\t\t\t\t\tVISA",
        "420001\t\t\t\t\t\t\tMASTER",
        "420002\t\tBank\t\t\t\t\t",
    ):
        assert are_brands_in_bin_table()
        assert detect_carried_brands("4200000000000000") == ("VISA", "CARTEBANCAIRE")
        assert detect_carried_brands("420000") == ("VISA", "CARTEBANCAIRE")
        assert detect_carried_brands("4200000000000000000") == ("VISA",), "no Carte Bancaire has 19 digits"
        assert detect_carried_brands("4970100000000154") == ("VISA",), "the built-in ranges know two"
        assert detect_carried_brands("4200010000000000") == ("VISA",), "no table makes a Visa a Mastercard"
        assert detect_carried_brands("4200020000000000") == ("VISA",), "this row says nothing of brands"
        assert detect_brand("4200000000000000", ["CARTEBANCAIRE"]) == "CARTEBANCAIRE"
        assert detect_brand("4200000000000000") == "VISA"
        assert detect_brand("4970100000000154", ["CARTEBANCAIRE"]) == "VISA", "this card carries no Carte Bancaire"


def test_the_brand_of_a_number_is_one_that_the_table_says_it_carries(tmp_path: Path) -> None:
    """The ranges say Visa and Mastercard of the first two: a payment without a brand would be routed and priced so."""
    numbers = ["4200000000000000", "5454545454545454", "4970100000000154", "4111111111111111"]
    assert [detect_brand(number) for number in numbers] == ["VISA", "MASTER", "VISA", "VISA"]
    with write_bin_file(
        tmp_path,
        "420000\t\t\t\t\t\t\tVISAELECTRON",
        "545454\t\t\t\t\t\t\tMASTERDEBIT",
        "497010\t\t\t\t\t\t\tCARTEBANCAIRE VISA",
    ):
        found = ["VISAELECTRON", "MASTERDEBIT", "VISA", "VISA"]
        assert [detect_brand(number) for number in numbers] == found, "of several, the scheme as before"
        assert [CardNumber.of(Secret(number)).brand for number in numbers] == found
        assert detect_brand("4970100000000154", ["CARTEBANCAIRE"]) == "CARTEBANCAIRE"


def test_a_card_of_a_kind_that_is_not_taken_is_one_of_its_scheme(tmp_path: Path) -> None:
    """Who takes Mastercard took these cards before the table named their kind. Another scheme's are none."""
    electron, debit, bancaire = "4200000000000000", "5454545454545454", "4970100000000154"
    with write_bin_file(
        tmp_path,
        "420000\t\t\t\t\t\t\tVISAELECTRON",
        "545454\t\t\t\t\t\t\tMASTERDEBIT",
        "497010\t\t\t\t\t\t\tCARTEBANCAIRE",
    ):

        def detect(*taken: str) -> list[str | None]:
            return [detect_brand(number, taken=taken) for number in (electron, debit, bancaire)]

        assert detect() == ["VISAELECTRON", "MASTERDEBIT", "CARTEBANCAIRE"]
        assert detect("VISA", "MASTER") == ["VISA", "MASTER", "CARTEBANCAIRE"]
        assert detect("VISA", "MASTER", "MASTERDEBIT") == ["VISA", "MASTERDEBIT", "CARTEBANCAIRE"]
        assert detect("AMEX") == ["VISAELECTRON", "MASTERDEBIT", "CARTEBANCAIRE"], "a refusal names what it is"


def test_a_brand_that_a_row_names_twice_is_carried_once(tmp_path: Path) -> None:
    with write_bin_file(tmp_path, "497010\t\t\t\t\t\t\tVISA CARTEBANCAIRE VISA"):
        assert detect_carried_brands("4970100000000154") == ("VISA", "CARTEBANCAIRE")


def test_brands_of_the_merchants_order_go_first() -> None:
    assert order_brands(("VISA", "CARTEBANCAIRE"), []) == ["VISA", "CARTEBANCAIRE"]
    assert order_brands(("VISA", "CARTEBANCAIRE"), ["MASTER", "CARTEBANCAIRE"]) == ["CARTEBANCAIRE", "VISA"]


def test_without_brands_in_the_table_nobody_is_asked_for_them(tmp_path: Path) -> None:
    assert not are_brands_in_bin_table()
    with write_bin_file(tmp_path, "420000\t\tBank\t\t\t\t\t"):
        assert not are_brands_in_bin_table()

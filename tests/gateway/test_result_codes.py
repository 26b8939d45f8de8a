"""Result codes: the table, the families clients match, the HTTP status, the words."""

import re
from pathlib import Path

import pytest

from gateway.core import result_codes
from gateway.core.advice import DEVELOPER_ADVICE, get_developer_advice, get_shopper_message
from gateway.core.result_codes import (
    CHARGEBACK_WITHOUT_REASON,
    FAMILY_PATTERNS,
    RESULT_CODES,
    ResultCode,
    ResultFamily,
    find_result_code,
    find_result_family,
    http_status,
    is_approved,
    is_chargeback,
    is_pending,
    is_review,
    is_success,
)

EXAMPLES = [
    (
        ResultFamily.SUCCESS,
        ["000.000.000", "000.000.100", "000.100.110", "000.100.112", "000.300.000", "000.600.000"],
    ),
    (ResultFamily.SUCCESS, ["000.310.110", "000.400.110", "000.400.120"]),
    (ResultFamily.REVIEW, ["000.400.000", "000.400.010", "000.400.090", "000.400.100"]),
    (ResultFamily.PENDING, ["000.200.000", "000.200.100", "000.200.999"]),
    (ResultFamily.PENDING_LONG, ["800.400.500", "800.400.502", "100.400.500"]),
    (ResultFamily.REJECTED_3DS, ["000.400.101", "000.400.109", "000.400.111", "000.400.200"]),
    (ResultFamily.REJECTED_BANK, ["800.100.100", "800.100.155", "800.700.201", "800.800.102", "800.800.302"]),
    (ResultFamily.REJECTED_COMMUNICATION, ["900.100.300", "900.200.100", "900.400.100", "000.400.030"]),
    (
        ResultFamily.REJECTED_SYSTEM,
        ["800.500.100", "800.600.100", "999.999.999", "600.100.100", "800.800.400", "800.800.801"],
    ),
    (ResultFamily.REJECTED_ASYNC, ["100.395.101", "100.396.101", "100.397.102"]),
    (ResultFamily.SOFT_DECLINE, ["300.100.100"]),
    (
        ResultFamily.REJECTED_EXTERNAL_RISK,
        ["100.400.000", "100.400.328", "100.380.100", "100.380.110", "100.380.401"],
    ),
    (ResultFamily.REJECTED_EXTERNAL_RISK, ["100.380.501"]),
    (ResultFamily.REJECTED_ADDRESS_RISK, ["800.400.100", "800.400.151"]),
    (ResultFamily.REJECTED_3DS_RISK, ["800.400.200", "100.390.100", "100.390.124"]),
    (ResultFamily.REJECTED_BLACKLIST, ["800.200.159", "800.300.401", "800.310.200"]),
    (ResultFamily.REJECTED_RISK_VALIDATION, ["800.110.100", "800.120.100", "800.130.100", "800.160.130"]),
    (ResultFamily.CONFIGURATION, ["600.200.500", "600.300.101", "500.100.201", "500.200.101", "800.121.100"]),
    (ResultFamily.REGISTRATION, ["100.150.200", "100.350.100"]),
    (ResultFamily.JOB, ["100.250.100", "100.360.201"]),
    (ResultFamily.REFERENCE, ["700.100.100", "700.300.100", "700.400.580", "700.450.001", "700.500.001"]),
    (
        ResultFamily.FORMAT,
        ["200.100.101", "200.300.404", "100.300.101", "100.500.101", "100.370.121", "800.900.300"],
    ),
    (ResultFamily.FORMAT, ["100.600.500", "100.900.500"]),
    (ResultFamily.ADDRESS, ["100.800.100"]),
    (ResultFamily.CONTACT, ["100.700.100", "100.900.100"]),
    (ResultFamily.ACCOUNT, ["100.100.101", "100.200.100", "100.212.101"]),
    (ResultFamily.AMOUNT, ["100.550.300", "100.550.702"]),
    (ResultFamily.RISK_MANAGEMENT, ["100.380.201", "100.380.305", "100.380.101"]),
    (ResultFamily.CHARGEBACK, ["000.100.200", "000.100.299"]),
    # No prefix takes these: the group column speaks.
    (ResultFamily.ADVICE_BLOCK, ["700.600.002", "700.601.003"]),
    (ResultFamily.ACCOUNT_UPDATER, ["100.310.401"]),
    (ResultFamily.RATING, ["000.500.000"]),
]

FRAGMENTS = [
    ("000.100.110", r"Request successfully processed"),
    ("000.100.112", r"Request successfully processed"),
    ("100.100.101", r".*invalid creditcard"),
    ("700.400.510", r".*capture needs at least one successful transaction"),
    ("700.400.530", r".*reversal needs at least one successful transaction"),
    ("600.200.500", r".*Invalid payment data"),
    ("000.200.100", r".*successfully created checkout"),
    ("000.200.000", r".*transaction pending"),
    ("700.400.580", r".*cannot find transaction"),
    ("000.000.100", r".*successful request"),
    ("200.300.404", r".*invalid or missing parameter"),
    ("800.120.100", r".*too many requests"),
]


@pytest.mark.parametrize(("expected", "code"), [(name, code) for name, codes in EXAMPLES for code in codes], ids=str)
def test_the_first_matching_family_takes_a_code(expected: ResultFamily, code: str) -> None:
    """Decisions, section 3."""
    assert find_result_family(find_result_code(code).code) is expected


def test_every_family_has_an_example_and_every_code_a_family() -> None:
    """Decisions, section 3."""
    assert {name for name, _ in EXAMPLES} == set(ResultFamily)
    assert {name for name, _ in FAMILY_PATTERNS} < set(ResultFamily)
    for code in RESULT_CODES:
        find_result_family(code)


def test_a_chargeback_code_of_two_free_digits_is_a_chargeback() -> None:
    """Part B, Chargebacks: 000.100.2 and two digits; the code need not be in the table."""
    assert is_chargeback("000.100.277")
    assert not is_chargeback("000.100.110")


@pytest.mark.parametrize("code", ["", "1", "000.999.999", "123.456.789"])
def test_a_code_nobody_knows_is_refused(code: str) -> None:
    """Our own code never makes one up."""
    with pytest.raises(KeyError):
        find_result_code(code)
    with pytest.raises(KeyError):
        find_result_family(code)


def test_every_code_and_description_has_the_form_of_the_response_table() -> None:
    """A30.7, B18.2; Part B, Payment response: result.code AN 2-11 digits and dots, result.description AN 0-255."""
    assert len(RESULT_CODES) > 600
    for code, row in RESULT_CODES.items():
        assert re.fullmatch(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}", code)
        assert row.code == code
        assert row.description.strip() == row.description != ""
        assert len(row.description) <= 255
        assert row.description.isprintable()


@pytest.mark.parametrize(("code", "pattern"), FRAGMENTS)
def test_the_texts_hold_the_fragments_that_clients_match(code: str, pattern: str) -> None:
    """Decisions, section 3."""
    assert re.match(pattern, find_result_code(code).description)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("000.000.000", 200),
        ("000.000.100", 200),
        ("000.100.110", 200),
        ("000.200.000", 200),
        ("000.200.100", 200),
        ("000.400.060", 200),
        ("000.400.100", 200),
        ("800.400.500", 200),
        ("000.100.206", 200),
        ("000.400.030", 400),
        ("000.400.101", 400),
        ("100.100.101", 400),
        ("200.300.404", 400),
        ("300.100.100", 400),
        ("700.400.510", 400),
        ("800.100.155", 400),
        ("900.100.300", 400),
        ("999.999.999", 400),
    ],
)
def test_success_review_and_pending_answer_200_all_else_400(code: str, status: int) -> None:
    """D11."""
    assert http_status(code) == status


def test_approved_is_success_or_review_and_nothing_is_two_things() -> None:
    """Decisions, section 3."""
    for code in RESULT_CODES:
        assert is_approved(code) == (is_success(code) or is_review(code))
        assert is_success(code) + is_review(code) + is_pending(code) <= 1
    assert is_success("000.100.110")
    assert is_review("000.400.000")
    assert is_pending("000.200.000")
    assert is_pending("800.400.500")
    assert not is_approved("000.200.000")


def test_every_code_tells_a_developer_what_to_do_next() -> None:
    """Every family has an advice, and no text is empty."""
    assert set(DEVELOPER_ADVICE) == set(ResultFamily)
    for code in RESULT_CODES:
        assert get_developer_advice(code)
        assert get_shopper_message(code) != ""


def test_the_shopper_is_told_about_credit_but_never_about_theft_or_fraud() -> None:
    """The person at the screen may be the thief."""
    assert get_shopper_message("800.100.155") == "The card has not enough credit. Please use another card."
    assert get_shopper_message("800.100.174") is None
    assert get_shopper_message("600.200.500") is None
    for code in ("800.100.158", "800.100.159", "800.100.160", "800.100.165", "800.100.171", "700.601.003"):
        assert get_shopper_message(code) == get_shopper_message("800.100.152")


def test_a_row_of_the_table_is_read_column_by_column(tmp_path: Path) -> None:
    """Quotation marks belong to the text."""
    table = tmp_path / "codes.tsv"
    table.write_text('code\tgroup\tmeaning\n1.2.3\tsuccess\ta "quoted", café\n4.5.6\tpending\t"x\n', encoding="utf-8")
    assert result_codes._load(table) == {
        "1.2.3": ResultCode(code="1.2.3", group="success", description='a "quoted", café'),
        "4.5.6": ResultCode(code="4.5.6", group="pending", description='"x'),
    }


@pytest.mark.parametrize(
    ("code", "of"),
    [
        ("000.100.277", CHARGEBACK_WITHOUT_REASON),
        ("000.100.200", "000.100.200"),
        ("000.100.206", "000.100.206"),
        ("800.100.155", "800.100.155"),
    ],
)
def test_a_code_has_its_own_row_and_an_unlisted_chargeback_its_own_code(code: str, of: str) -> None:
    found, row = find_result_code(code), RESULT_CODES[of]
    assert found == ResultCode(code=code, group=row.group, description=row.description)
    assert (found.description == RESULT_CODES[CHARGEBACK_WITHOUT_REASON].description) is (of == "000.100.200")


@pytest.mark.parametrize("code", ["000.100.2", "000.100.2770", "000.100.2x7", "000.100.377"])
def test_only_two_digits_make_a_chargeback_of_any_reason(code: str) -> None:
    with pytest.raises(KeyError):
        find_result_code(code)


def test_each_question_about_a_code_is_answered_by_its_families() -> None:
    """For every code of the table."""
    asked = {
        is_success: {ResultFamily.SUCCESS},
        is_review: {ResultFamily.REVIEW},
        is_pending: {ResultFamily.PENDING, ResultFamily.PENDING_LONG},
        is_approved: {ResultFamily.SUCCESS, ResultFamily.REVIEW},
        is_chargeback: {ResultFamily.CHARGEBACK},
    }
    for code in RESULT_CODES:
        for ask, families in asked.items():
            assert ask(code) is (find_result_family(code) in families), (ask, code)

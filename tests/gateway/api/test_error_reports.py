"""Django's own report of a fault: what was sent stands in it masked, by its name and by its look. Pure."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from django.test import RequestFactory, override_settings

from gateway.api.error_reports import MaskedReporter

NUMBER, CODE = "4200000000000000", "737"


def report(sent: dict[str, str], *, method: str = "POST", cookies: dict[str, str] | None = None) -> MaskedReporter:
    make = RequestFactory()
    make.cookies.load(cookies or {})
    request = make.post("/v1/payments", sent) if method == "POST" else make.get("/v1/payments", sent)
    try:
        raise RuntimeError(f"no such {NUMBER}")
    except RuntimeError:
        return MaskedReporter(request, *sys.exc_info())


def values(reporter: MaskedReporter, table: str) -> dict[str, Any]:
    return {name: str(value) for name, value in reporter.get_traceback_data()[table]}


@pytest.mark.parametrize(("method", "table"), [("POST", "filtered_POST_items"), ("GET", "request_GET_items")])
def test_each_sent_parameter_is_shown_masked_by_its_name(method: str, table: str) -> None:
    with override_settings(DEBUG=True):
        shown = values(report({"card.cvv": CODE, "card.number": NUMBER, "amount": "9.00"}, method=method), table)
    assert set(shown) == {"card.cvv", "card.number", "amount"}
    assert CODE not in shown["card.cvv"]
    assert NUMBER not in shown["card.number"]
    assert "9.00" in shown["amount"]


def test_a_card_number_in_a_name_or_a_cookie_is_masked_too() -> None:
    with override_settings(DEBUG=True):
        reporter = report({NUMBER: "x"}, cookies={"basket": NUMBER})
        assert NUMBER not in str(reporter.get_traceback_data()["filtered_POST_items"])
        assert len(values(reporter, "filtered_POST_items")) == 1
        cookies = values(reporter, "request_COOKIES_items")
    assert set(cookies) == {"basket"}
    assert NUMBER not in cookies["basket"]


@pytest.mark.parametrize("debug", [True, False])
def test_no_form_of_the_report_has_the_number_that_is_in_the_fault(debug: bool) -> None:
    with override_settings(DEBUG=debug):
        reporter = report({"note": "x"})
        for text in (reporter.get_traceback_html(), reporter.get_traceback_text()):
            assert "RuntimeError" in text
            assert NUMBER not in text
            assert "420000" in text


def test_a_fault_without_a_request_has_empty_tables() -> None:
    try:
        raise RuntimeError
    except RuntimeError:
        data = MaskedReporter(None, *sys.exc_info()).get_traceback_data()
    assert [data[name] for name in ("request_GET_items", "filtered_POST_items", "request_COOKIES_items")] == [
        [],
        [],
        [],
    ]

"""Settlement reports. Source: Part A, Endpoints; Part B, Reporting parameters; ruling D7."""

from __future__ import annotations

from dataclasses import replace

from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import NO_TEST_MODE_IN_LIVE, REQUIRED_ENTITY, Endpoint
from gateway.catalogue.formats import one_of
from gateway.catalogue.structure import NEVER, O, Structure, structure

_TRYING = structure(
    "Test modes", "ruling D7", "",
    ("testMode", one_of("EXTERNAL", "INTERNAL"), O, "INTERNAL: made-up settlements, always the same. Else: yours."),
    demand=NEVER,
)  # fmt: skip
_PERIOD = s.REPORTING.without("sortValue", "sortOrder")
# A settlement is identified by its id: a period only narrows.
_DETAIL = replace(s.REPORTING.needing(**{"date.from": O, "date.to": O}), demand=NEVER)
_RULES = (NO_TEST_MODE_IN_LIVE,)

_SUMS = "What each settlement of a period paid out, its sums by kind of record, and how many of them are matched."
_RECORDS = "Every line of one settlement, under the API names of the reconciliation file's columns."


def _endpoint(
    name: str, path: str, title: str, about: str, *structures: Structure, takes_test_mode: bool = True
) -> Endpoint:
    return Endpoint(
        name=name,
        method="GET",
        path=path,
        title=title,
        about=about,
        operation="report",
        scope="read",
        structures=(REQUIRED_ENTITY, *structures, *((_TRYING,) if takes_test_mode else ())),
        rules=_RULES if takes_test_mode else (),
        answers=(200, 400, 401, 403, 404, 429) if "{id}" in path else (200, 400, 401, 403, 429),
    )


SETTLEMENTS_ENDPOINT = _endpoint(
    "settlements", "/v1/reports/reconciliations", "Sum settlements up", _SUMS, _PERIOD, s.SETTLEMENT_FILTER
)
SETTLEMENT_ENDPOINT = _endpoint(
    "settlement", "/v1/reports/reconciliations/{id}", "Read a settlement's records", _RECORDS, _DETAIL
)
AGGREGATIONS_ENDPOINT = _endpoint(
    "aggregations",
    "/reports/v1/reconciliations/aggregations",
    "Sum settlements up (other path)",
    "The same as /v1/reports/reconciliations.",
    _PERIOD,
    s.SETTLEMENT_FILTER,
)
AGGREGATION_ENDPOINT = _endpoint(
    "aggregation", "/reports/v1/reconciliations/aggregations/{id}", "Read a settlement's records (other path)",
    "The same as /v1/reports/reconciliations/{id}.", _DETAIL,
)  # fmt: skip
AGGREGATIONS_PAGE_ENDPOINT = _endpoint(
    "aggregations-page",
    "/reports/v2/reconciliations/aggregations",
    "Sum settlements up, page by page",
    "The same in pages of 100 settlements.",
    _PERIOD,
    s.SETTLEMENT_FILTER,
    s.SETTLEMENT_PAGES,
)
AGGREGATION_PAGE_ENDPOINT = _endpoint(
    "aggregation-page", "/reports/v2/reconciliations/aggregations/{id}", "Read a settlement's records, page by page",
    "The same in pages of 100 records.", _DETAIL, s.SETTLEMENT_PAGES,
)  # fmt: skip


_WATERFALL = "From what shoppers wanted to pay to what is settled: what is left at each step, what was lost, and why."
_GAINS = "What would bring most: each way with the money lost, what it may bring, what was counted, and its switch."
APPROVALS_ENDPOINT = _endpoint(
    "approvals",
    "/v1/reports/approvals",
    "Read approval rates",
    "How many attempts and purchases of a period were approved, with intervals of 95 %, as a whole or divided.",
    s.APPROVALS,
    takes_test_mode=False,
)
APPROVAL_WATERFALL_ENDPOINT = _endpoint(
    "approvals-waterfall",
    "/v1/reports/approvals/waterfall",
    "Read where money is lost",
    _WATERFALL,
    s.APPROVALS.without("groupBy"),
    takes_test_mode=False,
)
APPROVAL_GAINS_ENDPOINT = _endpoint(
    "approvals-gains",
    "/v1/reports/approvals/gains",
    "Read what would bring most",
    _GAINS,
    s.APPROVALS.without("groupBy"),
    takes_test_mode=False,
)

REPORTS = (
    SETTLEMENTS_ENDPOINT,
    SETTLEMENT_ENDPOINT,
    AGGREGATIONS_ENDPOINT,
    AGGREGATION_ENDPOINT,
    AGGREGATIONS_PAGE_ENDPOINT,
    AGGREGATION_PAGE_ENDPOINT,
    APPROVALS_ENDPOINT,
    APPROVAL_WATERFALL_ENDPOINT,
    APPROVAL_GAINS_ENDPOINT,
)

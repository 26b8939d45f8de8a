"""The endpoint of the result codes: the whole table, for everybody. Source: ruling D9."""

from __future__ import annotations

import pytest
from django.test import Client

from gateway.core import result_codes
from tests.support.client import Api

PATH = "/v1/resultcodes"
STRANGER = Api(token=None, entity=None)


@pytest.mark.django_db
def test_the_table_is_told_without_a_token() -> None:
    answer = STRANGER.get(PATH)
    assert (answer.status, answer.code) == (200, "000.000.100")
    assert {"buildNumber", "timestamp", "ndc"} <= answer.body.keys()
    assert answer.body["ndc"] != STRANGER.get(PATH).body["ndc"]
    listed = {row["code"]: (row["description"], row["family"]) for row in answer.body["resultCodes"]}
    assert listed == {
        code: (row.description, result_codes.find_result_family(code).value)
        for code, row in result_codes.RESULT_CODES.items()
    }
    assert len(answer.body["resultCodes"]) == len(listed)


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "OPTIONS"])
def test_the_table_is_only_read(method: str) -> None:
    refused = STRANGER.call(method, PATH)
    assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.django_db
def test_the_headers_of_the_table_may_be_asked_for_alone() -> None:
    assert Client().head(PATH).status_code == 200

"""The envelope of every response body: result, buildNumber, timestamp, ndc (ruling D13).

Source: Part B, Payment response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.http import HttpResponse

from gateway.catalogue.parse import ParameterError
from gateway.core import identifiers, result_codes
from gateway.core.compact_json import encode_json
from gateway.payments.responses import build_envelope_fields

JSON_CONTENT_TYPE: Final = "application/json; charset=utf-8"


def build_docs_url(endpoint: str) -> str:
    """The URL of an endpoint's reference page."""
    return f"{settings.GATEWAY_BASE_URL}/docs/reference/{endpoint}"


def build_result(code: str, errors: Sequence[ParameterError] = (), more: str = "", docs: str = "") -> dict[str, Any]:
    """The ``result`` object of a code, with its description from the table; ``errors`` become parameterErrors, with
    links into ``docs``; ``more`` is added to the description."""
    description = result_codes.find_result_code(code).description
    body: dict[str, Any] = {"code": code, "description": f"{description}: {more}"[:255] if more else description}
    if errors:
        body["parameterErrors"] = [error.as_json(docs) for error in errors]
    return body


def build_envelope(
    code: str, ndc: str, *, errors: Sequence[ParameterError] = (), more: str = "", docs: str = "", **fields: Any
) -> dict[str, Any]:
    """The body of a response: ``fields``, the result and the envelope's fields."""
    return {**fields, "result": build_result(code, errors, more, docs), **build_envelope_fields(ndc)}


def build_plain_response(status: int, code: str, more: str = "", *, ndc: str = "") -> HttpResponse:
    """An envelope response outside DRF: unknown path, plain HTTP in live, internal error. ``ndc``: the one logged."""
    body = build_envelope(code, ndc or identifiers.format_ndc(identifiers.row_id()), more=more)
    answer = HttpResponse(encode_json(body), status=status, content_type=JSON_CONTENT_TYPE)
    answer["Cache-Control"] = "no-store"
    return answer

"""The endpoint of the result code table."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import ApiView
from gateway.api.envelope import build_envelope
from gateway.core import result_codes


class ResultCodesView(ApiView):
    """GET /v1/resultcodes: the table of result codes (ruling D9). Public, without a token."""

    http_method_names: ClassVar[list[str]] = ["get"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """No token is required."""

    def get(self, request: Request) -> Response:
        codes = [
            {
                "code": row.code,
                "description": row.description,
                "family": result_codes.find_result_family(row.code).value,
            }
            for row in result_codes.RESULT_CODES.values()
        ]
        return Response(build_envelope("000.000.100", self.trace.ndc, resultCodes=codes))

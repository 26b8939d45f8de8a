"""The published table of result codes."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from gateway import results
from gateway.api.door import Door
from gateway.api.envelope import envelope


class ResultCodesView(Door):
    """GET /v1/resultcodes: our table of result codes (D9). Public: it tells nothing of anybody."""

    http_method_names: ClassVar[list[str]] = ["get"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """No token is asked for."""

    @property
    def allowed_methods(self) -> list[str]:
        return ["GET"]

    def get(self, request: Request) -> Response:
        codes = [
            {"code": row.code, "description": row.description, "family": results.family(row.code).value}
            for row in results.RESULT_CODES.values()
        ]
        return Response(envelope("000.000.100", self.trace.ndc, resultCodes=codes))

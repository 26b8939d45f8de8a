# Derived from _async/client.py by `make clients`. Do not edit.
"""The synchronous client of a payment gateway."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeVar

import httpx

from tollhouse._sync.resources import (
    Authentications,
    Checkouts,
    PaymentLinks,
    Payments,
    Registrations,
    Reports,
    Schedules,
    TestTools,
    Transactions,
)
from tollhouse._model import Answer
from tollhouse._requests import BoundedAnswer, Connection, prepare_request, read_answer
from tollhouse.errors import NoAnswerError
from tollhouse.models import ResultCodes

T = TypeVar("T", bound=Answer)


class Tollhouse:
    """A gateway. ``token`` and ``entity_id`` (the channel's) as its back office shows them; ``timeout``: seconds for
    one try; ``max_retries``: further tries of what is safe to repeat; ``transport``: of httpx, for proxies and tests.

    Its tokens must never reach a browser.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str,
        entity_id: str = "",
        timeout: float = 60.0,
        max_retries: int = 2,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = Connection(base_url, token, entity_id, timeout, max_retries)
        self._http = httpx.Client(timeout=timeout, transport=transport, follow_redirects=False)
        self.payments = Payments(self)
        self.checkouts = Checkouts(self)
        self.payment_links = PaymentLinks(self)
        self.registrations = Registrations(self)
        self.schedules = Schedules(self)
        self.authentications = Authentications(self)
        self.transactions = Transactions(self)
        self.reports = Reports(self)
        self.test = TestTools(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.base_url!r})"

    def __enter__(self) -> Tollhouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def list_result_codes(self) -> ResultCodes:
        """List every result code of this gateway, with its description and family."""
        return self.request("GET", "/v1/resultcodes", answer=ResultCodes, entity=False)

    def request(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        answer: type[T],
        entity: bool = True,
        key: str | None = None,
    ) -> T:
        """Send any request, for endpoints without a method here. ``key``: None sends no idempotency key, '' a
        new one. Raises ApiError, NoAnswerError, and TypeError for a parameter that cannot be sent."""
        request = prepare_request(self._connection, method, path, parameters, entity=entity, key=key)
        while True:
            got, fault, unsent = None, "", False
            try:
                with self._http.stream(
                    request.method, request.url, content=request.content, headers=request.headers
                ) as answered:
                    body = BoundedAnswer(answered, self._connection.timeout)
                    # Encoded answers are refused, so nothing is decoded here. httpx's raw iterators would be the same,
                    # but refuse the answers of transports that hold them whole, as those of tests do.
                    for piece in answered.iter_bytes():
                        body.add(piece)
                    got = body.build()
            except httpx.RequestError as error:
                fault = f"{type(error).__name__}: {error}"
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
            pause = request.find_pause(got, unsent=unsent)
            if pause is not None:
                time.sleep(pause)
            elif got is None:
                raise NoAnswerError(fault, request.idempotency_key)
            else:
                return read_answer(got, request, answer)

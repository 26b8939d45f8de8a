"""Errors of the client. None of them holds what was sent: no card data, no token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class TollhouseError(Exception):
    """Any error of this package."""


class NoAnswerError(TollhouseError):
    """The gateway could not be reached, or did not answer in time. A payment may have been made: send the same request
    with the same ``idempotency_key``, and it is made once."""

    def __init__(self, message: str, idempotency_key: str = "") -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key


class WebhookVerificationError(TollhouseError):
    """A webhook that was not made with one of your secrets, is too old, or cannot be read. Answer 400."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one parameter. ``value``: what was sent, masked by the gateway."""

    name: str
    message: str
    value: str | None = None


class ApiError(TollhouseError):
    """A request that was refused. ``status``: of HTTP; ``code``: the result code; ``ndc``: names the request to the
    gateway's staff; ``body``: the answer."""

    def __init__(self, status: int, body: Mapping[str, Any], retry_after: float | None = None) -> None:
        result = body.get("result") or {}
        self.status, self.body, self.retry_after = status, body, retry_after
        self.code, self.description = str(result.get("code", "")), str(result.get("description", ""))
        self.ndc = str(body.get("ndc", ""))
        self.errors = [
            FieldError(str(one.get("name", "")), str(one.get("message", "")), one.get("value"))
            for one in result.get("parameterErrors") or ()
        ]
        told = "; ".join(f"{one.name}: {one.message}" for one in self.errors)
        message = f"HTTP {status} {self.code} {self.description}".rstrip()
        super().__init__(f"{message}: {told}" if told else message)

    def __reduce__(self) -> Any:
        return type(self), (self.status, self.body, self.retry_after)


class ParameterErrors(ApiError):  # noqa: N818 - several, each in `errors`
    """400: parameters are missing or wrong; all of them are in ``errors``. Nothing was made."""


class AuthenticationError(ApiError):
    """401 or 403: the token is missing, wrong, or may not do this for this entityId."""


class NotFoundError(ApiError):
    """404: no such id for this entityId."""


class ConflictError(ApiError):
    """409: a request with this idempotency key is still being made."""


class RateLimitError(ApiError):
    """429: too many requests; ask again after ``retry_after`` seconds."""


class ServerError(ApiError):
    """5xx: the gateway's fault. Read the payment before you repeat it, or repeat it with the same key."""


_BY_STATUS = {401: AuthenticationError, 403: AuthenticationError, 404: NotFoundError, 409: ConflictError}


def build_api_error(status: int, body: Mapping[str, Any], retry_after: float | None = None) -> ApiError:
    """The error for an answer that is none of a payment."""
    kind: type[ApiError] = _BY_STATUS.get(status, ApiError)
    if status == 429:
        kind = RateLimitError
    elif status >= 500:
        kind = ServerError
    elif (body.get("result") or {}).get("parameterErrors"):
        kind = ParameterErrors
    return kind(status, body, retry_after)

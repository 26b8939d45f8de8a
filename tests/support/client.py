"""A merchant's HTTP client for tests: form bodies out, envelopes in. It goes through Django's test client, so the
whole stack of middleware runs, and it knows nothing of the product's own code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote_plus, urlencode

from django.http import HttpResponse
from django.test import Client

FORM = "application/x-www-form-urlencoded; charset=UTF-8"
Fields = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One response. ``errors``: parameter name → message, of ``result.parameterErrors``."""

    http: HttpResponse

    @property
    def status(self) -> int:
        return self.http.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self.http.headers

    @property
    def text(self) -> str:
        return self.http.content.decode("utf-8")

    @property
    def body(self) -> dict[str, Any]:
        found = json.loads(self.http.content)
        assert isinstance(found, dict)
        return found

    @property
    def code(self) -> str:
        return str(self.body["result"]["code"])

    @property
    def description(self) -> str:
        return str(self.body["result"]["description"])

    @property
    def id(self) -> str:
        return str(self.body["id"])

    @property
    def errors(self) -> dict[str, str]:
        return {error["name"]: error["message"] for error in self.body["result"].get("parameterErrors", [])}

    def __repr__(self) -> str:
        return f"<{self.status} {self.text[:2000]}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Speaks for one entity with one token. ``entity`` and ``token`` None leave them out."""

    token: str | None
    entity: str | None
    secure: bool = False
    http: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def as_entity(self, entity: str | None) -> Api:
        return replace(self, entity=entity)

    def with_token(self, token: str | None) -> Api:
        return replace(self, token=token)

    def over_tls(self) -> Api:
        return replace(self, secure=True)

    def post(self, path: str, fields: Fields = (), **headers: str) -> Answer:
        return self.send(path, form(self._with_entity(fields)), **headers)

    def get(self, path: str, fields: Fields = (), **headers: str) -> Answer:
        return self.call("GET", path, self._with_entity(fields), **headers)

    def delete(self, path: str, fields: Fields = (), **headers: str) -> Answer:
        return self.call("DELETE", path, self._with_entity(fields), **headers)

    def pay(self, **changes: str | None) -> Answer:
        """A debit of 92.00 EUR by a card that is approved, with ``changes``; None leaves a field out."""
        return self.post("/v1/payments", payment(**changes))

    def follow(self, payment: str, kind: str, amount: str | None = None, **more: str) -> Answer:
        fields = {"paymentType": kind, **({"amount": amount} if amount else {}), **_dotted(more)}
        if amount:
            fields.setdefault("currency", "EUR")
        return self.post(f"/v1/payments/{payment}", fields)

    def read(self, payment: str) -> Answer:
        return self.get(f"/v1/payments/{payment}")

    def send(self, path: str, body: bytes, *, content_type: str = FORM, method: str = "POST", **headers: str) -> Answer:
        """Any bytes as a body."""
        sent = self._headers(headers)
        return Answer(self.http.generic(method, path, body, content_type, secure=self.secure, headers=sent))

    def call(self, method: str, path: str, fields: Fields = (), **headers: str) -> Answer:
        """Any method; ``fields`` go into the query string."""
        pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
        if pairs:
            path += ("&" if "?" in path else "?") + urlencode(pairs)
        return Answer(self.http.generic(method, path, secure=self.secure, headers=self._headers(headers)))

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        return own | {name.replace("_", "-"): value for name, value in more.items()}

    def _with_entity(self, fields: Fields) -> list[tuple[str, str]]:
        pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
        if self.entity is not None and "entityId" not in dict(pairs):
            pairs.insert(0, ("entityId", self.entity))
        return pairs


def form(pairs: Iterable[tuple[str, str]]) -> bytes:
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs).encode()


def payment(**changes: str | None) -> dict[str, str]:
    """The fields of an ordinary card payment; ``card__number`` names ``card.number``, None leaves a field out."""
    fields: dict[str, str | None] = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentBrand": "VISA",
        "paymentType": "DB",
        "card.number": "4200000000000000",
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "card.cvv": "123",
        "card.holder": "Jane Jones",
    }
    return {name: value for name, value in (fields | _dotted(changes)).items() if value is not None}


def _dotted(names: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "."): value for name, value in names.items()}

"""The docs' check of an old client's request: what the catalogue takes of it, ignores and refuses, and why.

The request is read by the parser of the API and goes no further: no token is needed, nothing is stored or paid. What
needs the channel (brands, accounts, limits) shows when the request is sent; `tollhouse migrate-check` does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gateway.api.base_view import decode_form
from gateway.api.errors import ApiError
from gateway.catalogue.endpoints import ENDPOINTS, Endpoint
from gateway.catalogue.parse import InvalidParametersError, ParameterError, UnknownNamePolicy
from gateway.catalogue.tolerated_names import TOLERATED_NAMES
from gateway.catalogue.typed_pairs import ParameterPairs
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.core.spelling import find_closest_name
from gateway.portal.pasted_request import PastedRequest, UnreadableRequestError, parse_pasted_request

MAX_CHECKED_CHARS: Final = 6_000
"""Characters of a pasted request; a form without sign-in has a few more bytes."""
MAX_CHECKED_PARAMETERS: Final = 200

_CREDENTIALS: Final = {
    "authentication.userId": "leave it out: an access token says who you are",
    "authentication.password": "leave it out: an access token says who you are",
}
_ID: Final = re.compile("[0-9a-f]{32}|[0-9A-F]{32}-[0-9A-Za-z]{1,15}")
_SECRET: Final = re.compile(
    r"""
    (?: (?P<number>card\.number=)
      | (?P<code>(?:cvv2?|cvc2?|dtvc|(?:verification|security)(?:Code|Value))=)
      | (?P<login>(?:password|userId|pin)=)
      | (?P<token>bearer[ ]) )
    [^&\s'"\\]*
    # Groups of digits of a card number with spaces between.
    (?(number) (?:[^\S\n]+[0-9*][^&\s'"\\]*)* )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SHOWN: Final = {"number": "4200000000000000", "code": "123", "login": "…", "token": "$TOKEN"}
"""What the form shows instead of a secret of this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedParameter:
    """What becomes of one parameter. ``anchor``: of the reference, "" for none."""

    name: str
    why: str
    sent: str = ""
    anchor: str = ""


@dataclass(slots=True, kw_only=True)
class MigrationReport:
    """What becomes of a request. ``endpoint`` None: there is no such path here."""

    request: PastedRequest
    endpoint: Endpoint | None = None
    taken: list[CheckedParameter] = field(default_factory=list)
    ignored: list[CheckedParameter] = field(default_factory=list)
    refused: list[CheckedParameter] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def read_pasted_request(text: str) -> PastedRequest:
    """Read what was pasted into the form. Raises UnreadableRequestError."""
    if len(text) > MAX_CHECKED_CHARS:
        raise UnreadableRequestError(f"it has {len(text):,} characters; {MAX_CHECKED_CHARS:,} are read")
    return parse_pasted_request(text)


def check_request(request: PastedRequest, *, strict: bool = False, threeds: bool = False) -> MigrationReport:
    """Say what becomes of each parameter. ``strict``: on a channel that refuses unknown names; ``threeds``: on one with
    3-D Secure. Raises UnreadableRequestError for a form that cannot be decoded."""
    report = MigrationReport(request=request, endpoint=find_called_endpoint(request.method, request.path))
    try:
        pairs = decode_form(request.body.encode())
    except ApiError as fault:
        raise UnreadableRequestError(f"its form cannot be read: {fault.more}") from None
    except InvalidParametersError as fault:
        raise UnreadableRequestError(f"{fault.errors[0].name}: {fault.errors[0].message}") from None
    if len(pairs) > MAX_CHECKED_PARAMETERS:
        raise UnreadableRequestError(f"it has {len(pairs):,} parameters; {MAX_CHECKED_PARAMETERS} are read")
    _list_changes(report, pairs)
    if report.endpoint is None:
        return report
    errors, ignored = _ask_catalogue(report.endpoint, pairs, strict=strict, threeds=threeds)
    _sort_parameters(report, report.endpoint, pairs, errors, ignored)
    return report


def find_called_endpoint(method: str, path: str) -> Endpoint | None:
    """The endpoint that a method and a path call, with ids in it or with the ``{id}`` of a document."""
    segments = path.rstrip("/").split("/")
    for endpoint in ENDPOINTS:
        known = endpoint.path.split("/")
        if endpoint.method == method and len(known) == len(segments) and all(map(_fits, known, segments)):
            return endpoint
    return None


def _fits(known: str, sent: str) -> bool:
    return known == sent or (known == "{id}" and (sent[:1] in ("{", "$") or _ID.fullmatch(sent) is not None))


def _list_changes(report: MigrationReport, pairs: ParameterPairs) -> None:
    request = report.request
    if request.host:
        report.changes.append(f"The address {mask_text(request.host)[:100]} becomes this gateway's.")
    if not request.has_token:
        report.changes.append("The header Authorization: Bearer with an access token of this gateway is added.")
    if any(name in ("entityId", "authentication.entityId") for name, _ in pairs):
        report.changes.append("The entityId becomes that of a channel here.")
    if report.endpoint is None:
        paths = {f"{one.method} {one.path}": None for one in ENDPOINTS if not one.test_only}
        shown = re.sub(_ID, "{id}", f"{request.method} {request.path}")[:200]
        near = find_closest_name(shown, paths)
        report.changes.append(
            f"There is no {mask_text(shown)} here." + (f" Did you mean {near}?" if near is not None else "")
        )


def _ask_catalogue(
    endpoint: Endpoint, pairs: ParameterPairs, *, strict: bool, threeds: bool
) -> tuple[list[ParameterError], set[str]]:
    facts = {f"today:{clock.real_now():%Y-%m}"} | ({"threeds"} if threeds else set())
    policy = UnknownNamePolicy.STRICT if strict else UnknownNamePolicy.NORMAL
    rest = ParameterPairs((name, value) for name, value in pairs if name not in _CREDENTIALS)
    try:
        return [], set(endpoint.catalogue.parse(rest, facts=frozenset(facts), policy=policy).ignored)
    except InvalidParametersError as fault:
        # What is ignored shows only in a request that is taken: the rest of it is asked by name.
        catalogue = endpoint.catalogue
        known = {name for name, _ in rest if catalogue.find(catalogue.aliases.get(name, name)) is not None}
        return list(fault.errors), {name for name, _ in rest} - known


def _sort_parameters(
    report: MigrationReport,
    endpoint: Endpoint,
    pairs: ParameterPairs,
    errors: Iterable[ParameterError],
    ignored: set[str],
) -> None:
    faulty = set()
    for error in errors:
        faulty.add(error.name)
        anchor = error.meant or (error.name if error.known else "")
        report.refused.append(
            CheckedParameter(name=error.name, why=error.message, sent=error.value or "", anchor=anchor)
        )
    for name in dict.fromkeys(name for name, _ in pairs):
        shown = endpoint.catalogue.mask_pair_for_log(name, "")[0]
        if name in _CREDENTIALS:
            report.ignored.append(CheckedParameter(name=shown, why=_CREDENTIALS[name]))
        elif name in ignored and shown not in faulty:
            why = TOLERATED_NAMES.get(name, "Not a parameter of this endpoint: it changes nothing.")
            report.ignored.append(CheckedParameter(name=shown, why=why))
        elif shown not in faulty:
            report.taken.append(CheckedParameter(name=shown, why="", anchor=shown))


def hide_pasted_secrets(text: str) -> str:
    """``text`` for the form again: with a test card, and without credentials."""
    # Masked first: what is put in after it is a test card's.
    return _SECRET.sub(lambda found: found[found.lastgroup or 0] + _SHOWN[found.lastgroup or ""], mask_text(text))

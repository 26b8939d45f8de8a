"""What an external 3DS server may answer, and what is signed: docs/connectors/threeds-server.md. No server, no
database."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.core.secret import Secret
from gateway.outbound import CallFailure, CallOutcome
from gateway.threeds import external_server
from gateway.threeds.external_server import (
    DirectoryUnreachableError,
    ExternalThreeDSServer,
    IncompleteAReqError,
    MalformedDirectoryAnswerError,
    is_signed_by_server,
    sign_threeds_message,
)
from gateway.threeds.server_setup import ThreeDSServerAccess
from tests.gateway.threeds_protocol.test_messages import CHANNELS, complete

SECRET = Secret("fake-3ds-server-secret-0123456789abcdef")
IDENT = UUID("0193f5c8-7a00-7000-8000-000000000003")
BODY = b'{"messageType":"RReq"}'
AT = 1_800_000_000


class Wire:
    """What the server answers, one after another, and what it was asked."""

    def __init__(self, *outcomes: CallOutcome) -> None:
        self.outcomes, self.calls = list(outcomes), list[dict[str, Any]]()

    def __call__(self, method: str, url: str, **call: Any) -> CallOutcome:
        self.calls.append({"url": url, **call})
        return self.outcomes.pop(0)


def said(body: Any, status: int = 200, **more: Any) -> CallOutcome:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return CallOutcome(status=status, body=text, sent=True, **more)


GONE = CallOutcome(failure=CallFailure.TIMED_OUT, reason="late", sent=True)


@pytest.fixture
def server() -> ExternalThreeDSServer:
    return ExternalThreeDSServer(ThreeDSServerAccess(url="https://threeds.example", secret=SECRET))


def answering(monkeypatch: pytest.MonkeyPatch, *outcomes: CallOutcome) -> Wire:
    wire = Wire(*outcomes)
    monkeypatch.setattr(external_server, "call_url", wire)
    return wire


# --- signatures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "holds"),
    [(AT, True), (AT + 300, True), (AT + 301, False), (AT - 300, True), (AT - 301, False), (AT + 86_400, False)],
)
def test_a_signature_holds_for_five_minutes_before_and_after_its_time(now: int, holds: bool) -> None:
    assert is_signed_by_server(SECRET, BODY, sign_threeds_message(SECRET, BODY, AT), now) is holds


@pytest.mark.parametrize(
    "header",
    [
        "",
        sign_threeds_message(Secret("x" * 40), BODY, AT),
        sign_threeds_message(SECRET, BODY + b" ", AT),
        sign_threeds_message(SECRET, BODY, AT).replace(str(AT), str(AT + 1)),
        sign_threeds_message(SECRET, BODY, AT).upper(),
        sign_threeds_message(SECRET, BODY, AT) + " ",
        sign_threeds_message(SECRET, BODY, AT).partition(",")[2],
    ],
)
def test_a_signature_of_anything_else_does_not_hold(header: str) -> None:
    assert not is_signed_by_server(SECRET, BODY, header, AT)


# --- versioning -------------------------------------------------------------------------------------------------------

RANGE = {"enrolled": True, "acsStartProtocolVersion": "2.1.0", "acsEndProtocolVersion": "2.2.0"}


def look_up(server: ExternalThreeDSServer) -> Any:
    return server.look_up(Secret("4200000000000091"), {}, IDENT)[1]


@pytest.mark.parametrize(
    ("lowest", "highest", "version"),
    [
        ("2.1.0", "2.1.0", "2.1.0"),
        ("2.1.0", "2.2.0", "2.2.0"),
        ("2.2.0", "2.2.0", "2.2.0"),
        ("2.2.0", "2.3.1", "2.2.0"),
        ("2.3.1", "2.3.1", None),
        ("2.0.0", "2.0.0", None),
    ],
)
def test_the_newest_version_that_both_write_is_used(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, lowest: str, highest: str, version: str | None
) -> None:
    answering(monkeypatch, said(RANGE | {"acsStartProtocolVersion": lowest, "acsEndProtocolVersion": highest}))
    found = look_up(server)
    assert (found.version if found is not None else None) == version


@pytest.mark.parametrize(
    "changes",
    [
        {"enrolled": None},
        {"enrolled": 1},
        {"enrolled": "true"},
        {"acsStartProtocolVersion": None},
        {"acsEndProtocolVersion": 2.2},
        {"threeDSServerRefNumber": 7},
        {"threeDSServerURL": ["https://threeds.example"]},
        {"threeDSMethodURL": "javascript:alert(1)"},
        {"threeDSMethodURL": 'https://acs.example/"onload='},
        {"threeDSMethodURL": 7},
    ],
)
def test_a_versioning_answer_that_is_not_as_agreed_is_malformed(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, changes: dict[str, Any]
) -> None:
    answering(monkeypatch, said(RANGE | changes))
    with pytest.raises(MalformedDirectoryAnswerError):
        look_up(server)


@pytest.mark.parametrize(
    ("changes", "method", "named"),
    [
        ({}, "", {}),
        ({"threeDSMethodURL": None, "threeDSServerRefNumber": None}, "", {}),
        ({"threeDSMethodURL": "https://acs.example/m"}, "https://acs.example/m", {}),
        ({"threeDSServerOperatorID": "op"}, "", {"threeDSServerOperatorID": "op"}),
    ],
)
def test_a_card_range_has_its_method_page_and_what_the_server_calls_itself(
    monkeypatch: pytest.MonkeyPatch,
    server: ExternalThreeDSServer,
    changes: dict[str, Any],
    method: str,
    named: Mapping[str, str],
) -> None:
    answering(monkeypatch, said(RANGE | changes))
    found = look_up(server)
    assert (found.method, found.method_url, found.server) == (bool(method), method, named)


# --- authentication ---------------------------------------------------------------------------------------------------

AREQ = complete(CHANNELS["browser"])
APP = complete(CHANNELS["app"])
REQUESTOR = complete(CHANNELS["requestor"])
DECOUPLED = complete(CHANNELS["requestor"] | {"threeDSecure.decoupled": "true"})
ARES = {
    "messageType": "ARes",
    "threeDSServerTransID": AREQ["threeDSServerTransID"],
    "transStatus": "Y",
    "dsTransID": "f25084f0-5b16-4c0a-ae5d-b24808a95e4b",
    "acsTransID": "d7c1ee99-9478-44a6-b1f2-391e29c6b340",
    "eci": "05",
    "authenticationValue": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
}
CHALLENGE = {"transStatus": "C", "acsURL": "https://acs.example/challenge", "authenticationValue": ""}


@pytest.mark.parametrize(
    "changes",
    [
        {"messageType": "RReq"},
        {"messageType": None},
        {"threeDSServerTransID": str(IDENT)},
        {"threeDSServerTransID": None},
        {"transStatus": "Q"},
        {"transStatus": ""},
        {"transStatus": "YA"},
        {"transStatus": None},
        {"dsTransID": "x" * 37},
        {"acsTransID": "x" * 37},
        {"acsTransID": 7},
        {"eci": "005"},
        {"transStatusReason": "123"},
        {"authenticationValue": "x" * 65},
        {"authenticationValue": ""},
        {"transStatus": "A", "authenticationValue": ""},
        {"transStatus": "A", "authenticationValue": "x" * 65},
        CHALLENGE | {"acsTransID": ""},
        CHALLENGE | {"acsURL": None},
        CHALLENGE | {"acsURL": "javascript:alert(1)"},
        CHALLENGE | {"acsURL": 'https://acs.example/"><script>'},
        CHALLENGE | {"acsURL": "https://acs.example/a b"},
        {"transStatus": "D"},
    ],
)
def test_an_ares_that_is_not_as_agreed_is_malformed(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, changes: dict[str, Any]
) -> None:
    answering(monkeypatch, said(ARES | changes))
    with pytest.raises(MalformedDirectoryAnswerError):
        server.authenticate(AREQ, "", "visa")


@pytest.mark.parametrize(
    ("areq", "changes"),
    [
        (AREQ, {}),
        (AREQ, {"transStatus": "A"}),
        (AREQ, {"transStatus": "N", "authenticationValue": ""}),
        (AREQ, {"dsTransID": "x" * 36, "eci": "", "authenticationValue": "x" * 64}),
        (AREQ, CHALLENGE),
        (APP, CHALLENGE | {"acsURL": None}),
        (DECOUPLED, {"transStatus": "D"}),
    ],
)
def test_an_ares_that_is_as_agreed_is_taken(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, areq: dict[str, Any], changes: dict[str, Any]
) -> None:
    """Without a browser there is no page to go to."""
    answer = ARES | {"threeDSServerTransID": areq["threeDSServerTransID"]} | changes
    answering(monkeypatch, said(answer))
    assert server.authenticate(areq, "", "visa") == answer


@pytest.mark.parametrize("changes", [CHALLENGE, {"transStatus": "D"}])
def test_3ri_has_no_challenge_and_nothing_decoupled_that_was_not_asked_for(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, changes: dict[str, Any]
) -> None:
    """EMV 3-D Secure v2.2.0, table A.1, Transaction Status: a payment would wait for nobody."""
    answering(monkeypatch, said(ARES | {"threeDSServerTransID": REQUESTOR["threeDSServerTransID"]} | changes))
    with pytest.raises(MalformedDirectoryAnswerError):
        server.authenticate(REQUESTOR, "", "visa")


def test_a_request_that_is_not_complete_is_not_sent(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer
) -> None:
    wire = answering(monkeypatch)
    with pytest.raises(IncompleteAReqError) as caught:
        server.authenticate({name: value for name, value in AREQ.items() if name != "mcc"}, "", "visa")
    assert (caught.value.faults, wire.calls) == ((("201", "mcc"),), [])


@pytest.mark.parametrize(
    ("answer", "found"), [({"messageType": "RReq"}, True), ({"pending": True}, False), ({"messageType": "CRes"}, False)]
)
def test_a_result_is_an_rreq_and_each_question_is_its_own(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, answer: dict[str, Any], found: bool
) -> None:
    wire = answering(monkeypatch, said(answer), said(answer))
    assert [server.fetch_result(IDENT) is not None for _ in range(2)] == [found, found]
    first, second = (call["headers"]["Idempotency-Key"] for call in wire.calls)
    assert first != second, "an answer of before would be given again"


# --- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [GONE, said({}, 500), said({}, 503)], ids=["gone", "500", "503"])
def test_a_call_without_an_answer_is_made_once_more_under_its_key_within_the_time_left(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, settings: Any, first: CallOutcome
) -> None:
    settings.GATEWAY_ACQUIRER_TIMEOUT_S = 10.0
    moments = iter((100.0, 101.0, 105.0))
    steps = SimpleNamespace(monotonic=lambda: next(moments), time=time.time, time_ns=time.time_ns)
    monkeypatch.setattr(external_server, "time", steps)
    wire = answering(monkeypatch, first, said(RANGE))
    assert look_up(server) is not None
    assert [call["timeout_s"] for call in wire.calls] == [9.0, 5.0]
    assert len({call["headers"]["Idempotency-Key"] for call in wire.calls}) == 1


def test_no_call_is_made_when_no_time_is_left(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, settings: Any
) -> None:
    settings.GATEWAY_ACQUIRER_TIMEOUT_S = 10.0
    moments = iter((100.0, 101.0, 110.0))
    steps = SimpleNamespace(monotonic=lambda: next(moments), time=time.time, time_ns=time.time_ns)
    monkeypatch.setattr(external_server, "time", steps)
    wire = answering(monkeypatch, GONE, said(RANGE))
    with pytest.raises(DirectoryUnreachableError):
        look_up(server)
    assert len(wire.calls) == 1


def test_half_an_answer_is_none(monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer) -> None:
    answering(monkeypatch, said(RANGE, truncated=True))
    with pytest.raises(MalformedDirectoryAnswerError):
        look_up(server)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 499])
def test_a_call_that_was_refused_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, status: int
) -> None:
    wire = answering(monkeypatch, said({}, status), said(RANGE))
    with pytest.raises(MalformedDirectoryAnswerError):
        look_up(server)
    assert len(wire.calls) == 1


def test_after_two_calls_without_an_answer_the_server_is_not_reached(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer
) -> None:
    answering(monkeypatch, GONE, said({}, 500))
    with pytest.raises(DirectoryUnreachableError) as caught:
        look_up(server)
    assert not isinstance(caught.value, MalformedDirectoryAnswerError)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"text"', b"[" * 60_000, b'{"messageType": "Erro"}', b"\xff"])
def test_what_is_no_object_of_the_protocol_is_malformed(
    monkeypatch: pytest.MonkeyPatch, server: ExternalThreeDSServer, body: bytes
) -> None:
    answering(monkeypatch, said(body))
    with pytest.raises(MalformedDirectoryAnswerError):
        server.fetch_result(IDENT)

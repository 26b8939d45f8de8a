"""Whatever goes wrong at an external 3DS server: the traceback with every local variable holds no card number.

Source: PCI DSS 4.0.1, 3.3.1 and 10.3; the 3DS server is sent whole numbers (docs/decisions/0066).
"""

from __future__ import annotations

import traceback
from typing import Any
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from gateway.core.luhn import compute_check_digit
from gateway.core.secret import Secret
from gateway.threeds import external_server
from gateway.threeds.external_server import (
    DirectoryUnreachableError,
    ExternalThreeDSServer,
    IncompleteAReqError,
    MalformedDirectoryAnswerError,
)
from gateway.threeds.server_setup import ThreeDSServerAccess
from tests.support.receivers import Behaviour, answering, receiving

NUMBER = "491612345678901"
NUMBER += compute_check_digit(NUMBER)
SHARED = "0123456789abcdef0123456789abcdef"
IDENT = UUID(int=7)
ANSWERS: dict[str, tuple[Behaviour, type[Exception]]] = {
    "refused": (answering(400), MalformedDirectoryAnswerError),
    "no JSON": (answering(200, b"<html>"), MalformedDirectoryAnswerError),
    "no object": (answering(200, b"[]"), MalformedDirectoryAnswerError),
    "an error": (answering(200, b'{"messageType": "Erro", "errorCode": "203"}'), MalformedDirectoryAnswerError),
    "not as agreed": (answering(200, b"{}"), MalformedDirectoryAnswerError),
    "down": (answering(503), DirectoryUnreachableError),
}


def server(url: str) -> ExternalThreeDSServer:
    return ExternalThreeDSServer(ThreeDSServerAccess(url=url, secret=Secret(SHARED)))


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a fault of ours")


def assert_hidden(fault: BaseException) -> None:
    """But for the first frame, which is the test's own."""
    assert fault.__traceback__ is not None
    below = fault.__traceback__.tb_next
    text = "".join(traceback.TracebackException(type(fault), fault, below, capture_locals=True).format())
    assert NUMBER not in text
    assert SHARED not in text


@pytest.mark.parametrize(("behave", "kind"), ANSWERS.values(), ids=ANSWERS)
def test_a_server_that_does_not_answer_as_agreed(behave: Behaviour, kind: type[Exception], settings: Settings) -> None:
    settings.GATEWAY_OUTBOUND_LOOPBACK = True
    with receiving(behave) as receiver, pytest.raises(kind) as told:
        server(f"http://127.0.0.1:{receiver.port}").look_up(Secret(NUMBER), {}, IDENT)
    assert receiver.requests
    assert NUMBER.encode() in receiver.requests[0]
    assert_hidden(told.value)


@pytest.mark.parametrize("where", ["call_url", "sign_threeds_message"])
def test_a_fault_of_ours_while_a_message_is_sent(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external_server, where, broken)
    with pytest.raises(RuntimeError) as told:
        server("http://threeds.example").look_up(Secret(NUMBER), {}, IDENT)
    assert_hidden(told.value)


@pytest.mark.parametrize("where", ["gateway.threeds_protocol.required_fields._fits", ""])
def test_a_message_that_is_not_complete(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = {"messageVersion": "2.2.0", "deviceChannel": "02", "messageCategory": "01", "acctNumber": Secret(NUMBER)}
    if where:
        monkeypatch.setattr(where, broken)
    with pytest.raises(RuntimeError if where else IncompleteAReqError) as told:
        server("http://threeds.example").authenticate(sent, "", "visa")
    assert_hidden(told.value)


@pytest.mark.parametrize(("number", "fits"), [(NUMBER, True), ("4916", False), (f"{NUMBER}x", False)])
def test_a_secret_elements_format_is_checked_without_opening_it(number: str, fits: bool) -> None:
    sent = {"messageVersion": "2.2.0", "deviceChannel": "02", "messageCategory": "01", "acctNumber": Secret(number)}
    with pytest.raises(IncompleteAReqError) as told:
        server("http://threeds.example").authenticate(sent, "", "visa")
    assert (("203", "acctNumber") not in told.value.faults) is fits

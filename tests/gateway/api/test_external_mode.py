"""testMode EXTERNAL goes to a processor's own test system, INTERNAL to the simulator.

Source: Part A, What the service does, 5; ruling D18.
"""

from __future__ import annotations

import socket

import pytest

from gateway.models import Payment
from tests.support.client import Api, payment

pytestmark = pytest.mark.django_db


def test_external_is_refused_while_no_acquirer_is_set_up(api: Api) -> None:
    """A5.2: never answered by the simulator."""
    answer = api.pay(testMode="EXTERNAL")
    assert (answer.status, answer.code) == (400, "600.200.700")
    assert Payment.objects.count() == 0


def test_internal_is_the_mode_when_none_is_sent(api: Api) -> None:
    """A5.4."""
    for answer in (api.pay(), api.pay(testMode="INTERNAL")):
        assert (answer.status, answer.code, answer.body["testMode"]) == (200, "000.100.110", "INTERNAL")


def test_internal_works_with_the_network_unplugged(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A1.9, A5.3: whoever would ask anybody is found out. (The database is asked below Python's sockets.)"""

    def unplugged(*_: object) -> None:
        raise OSError("Network is unreachable")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, unplugged)
    paid = api.pay()
    assert (paid.status, paid.code) == (200, "000.100.110")
    assert api.follow(paid.id, "RF", "10.00").status == 200
    card = {name: value for name, value in payment().items() if name.startswith("card.")}
    assert api.post("/v1/registrations", card).status == 200


@pytest.mark.parametrize("mode", ["FOO", "internal", "External"])
def test_there_are_exactly_two_modes(api: Api, mode: str) -> None:
    """A5.1."""
    assert list(api.pay(testMode=mode).errors) == ["testMode"]

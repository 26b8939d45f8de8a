"""Whose address counts, and what is no address."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from django.test import RequestFactory, override_settings

from gateway.core.client_address import network_of, resolve_client_ip
from gateway.models import RequestLog
from tests.support.client import Api


@pytest.mark.parametrize(
    "forwarded, address",
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("unknown", None),
        ("", "127.0.0.1"),
        ("a:b:c", None),
    ],
)
def test_the_last_entry_a_proxy_of_ours_wrote_is_the_caller(forwarded: str, address: str | None) -> None:
    request = RequestFactory().get("/", headers={"X-Forwarded-For": forwarded})
    with override_settings(GATEWAY_BEHIND_PROXY=True):
        assert resolve_client_ip(request) == address
    assert resolve_client_ip(request) == "127.0.0.1", "without a proxy nobody may say who he is"


@pytest.mark.django_db
@override_settings(GATEWAY_BEHIND_PROXY=True)
def test_an_address_that_is_none_stops_no_payment(api: Api) -> None:
    assert api.post("/v1/payments", {}, X_Forwarded_For="unknown").status == 400
    assert RequestLog.objects.get().ip is None


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::", "2001:db8:1:2::"),
        ("::ffff:192.0.2.7", str(ip_address("::ffff:192.0.2.7"))),
        (None, None),
        ("", None),
    ],
)
def test_a_line_is_counted_by_its_address_or_its_network(address: str | None, counted: str | None) -> None:
    """IPv4 addresses within IPv6 are of many lines: they have one /64 together."""
    assert network_of(address) == counted

"""An acquirer account at an ISO 8583 host: its settings, parsed and checked."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.conf import settings

from gateway.connectors.account_settings import (
    AccountSettingError,
    SettingFaults,
    collect_setting_faults,
    parse_time_of_day,
    parse_time_zone,
    read_account_settings,
)
from gateway.connectors.iso8583.codec import LENGTH_HEADERS, MessageCodec
from gateway.connectors.iso8583.field_formats import FIELD_FORMATS_PATTERN, build_field_spec
from gateway.connectors.iso8583.response_codes import UNDECIDED_CREDIT_CODES
from gateway.connectors.port import ConnectorAccount, ConnectorSetting
from gateway.core.secret import Secret

ADVICE_CAPTURES, BATCH_CAPTURES = "advice", "batch"
DUPLICATE_UNCLEAR, DUPLICATE_DONE = "unclear", "done"
RENEWALS_TOGETHER, RENEWALS_APART = "one", "two"
DAYS_OF_HOURS, CALENDAR_DAYS = "hours", "calendar"
REVERSED_WHOLE, REVERSED_ALONE = "whole", "alone"
_ON_OFF: Final = "on|off"
_CREDIT_CODE: Final = f"(?:{'|'.join(sorted(UNDECIDED_CREDIT_CODES))})"
_PEM_KEY: Final = (
    r"\s*-----BEGIN (?P<kind>(?:EC |RSA )?PRIVATE KEY)-----[A-Za-z0-9+/=\s]{1,16000}-----END (?P=kind)-----\s*"
)
_PEM: Final = r"(?:-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]{1,8000}-----END CERTIFICATE-----\s*){0,8}"

ISO8583_SETTINGS: Final = (
    ConnectorSetting("host", "name or address of the acquirer's host",
        r"[A-Za-z0-9._:-]{1,253}", "a host name or an IP address", required=True, place=True),
    ConnectorSetting("port", "its TCP port", r"[1-9][0-9]{0,4}", "1 to 65535", required=True, place=True),
    ConnectorSetting("terminal", "DE41, the terminal the acquirer gave out",
        r"[!-~]{1,8}", "1 to 8 characters without spaces", required=True, place=True),
    ConnectorSetting("header", "length header: 2 or 4 octets, binary or ASCII digits",
        "|".join(LENGTH_HEADERS), ", ".join(LENGTH_HEADERS), default="2b"),
    ConnectorSetting("header_counts_itself", "the length includes the header", _ON_OFF, "on or off", default="off"),
    ConnectorSetting("tpdu", "a TPDU before every message",
        r"(?:[0-9A-Fa-f]{10})?", "10 hexadecimal digits, or nothing"),
    ConnectorSetting("encoding", "how messages are written",
        "ascii|ascii-hex|bcd|ebcdic", "ascii, ascii-hex, bcd or ebcdic", default="ascii"),
    ConnectorSetting("fields", "fields this host has in another format, in ISO notation",
        FIELD_FORMATS_PATTERN, "number=format, separated by spaces: 39=n2 54=ans...255"),
    ConnectorSetting("private_field", "the field with 3DS, address and security code data",
        "48|126", "48 or 126", default="48"),
    ConnectorSetting("institution", "DE32, the acquiring institution", r"[0-9]{0,11}", "up to 11 digits", place=True),
    ConnectorSetting("nii", "DE24, network international identifier", r"(?:[0-9]{3})?", "3 digits, or nothing"),
    ConnectorSetting("mcc", "DE18 where a payment names no merchant.mcc", r"(?:[0-9]{4})?", "4 digits, or nothing"),
    ConnectorSetting("name", "DE43, the merchant's name", r"[ -~]{0,25}", "up to 25 printable ASCII characters"),
    ConnectorSetting("city", "DE43, the merchant's city", r"[ -~]{0,13}", "up to 13 printable ASCII characters"),
    ConnectorSetting("country", "DE43, the merchant's country", r"(?:[A-Z]{2})?", "two capital letters, or nothing"),
    ConnectorSetting("capture", "how captures go: each at once as an advice, or collected in a batch",
        f"{ADVICE_CAPTURES}|{BATCH_CAPTURES}", "advice or batch", default=ADVICE_CAPTURES, place=True),
    ConnectorSetting("batch_at", "when the day's batch of captures is sent, in time_zone",
        r"(?:[01][0-9]|2[0-3]):[0-5][0-9]", "a time of day such as 22:30", default="22:30"),
    ConnectorSetting("time_zone", "of DE12 and DE13, of batch_at, and of the days of authorization_days",
        r"[A-Za-z0-9_+/-]{1,64}", "an IANA time zone", default="UTC"),
    ConnectorSetting("authorization_days",
        "what a day of an authorization's validity is: 24 hours from its approval, or one of the calendar in time_zone",
        f"{DAYS_OF_HOURS}|{CALENDAR_DAYS}", "hours or calendar", default=DAYS_OF_HOURS),
    ConnectorSetting("duplicate",
        "what 94 to a repeated message says: that the first was done, or only that it is known",
        f"{DUPLICATE_UNCLEAR}|{DUPLICATE_DONE}", "unclear or done", default=DUPLICATE_UNCLEAR),
    ConnectorSetting("credit_declines",
        "answers (DE39) to a refund, credit or payout that mean that it was certainly not booked",
        f"(?:{_CREDIT_CODE}(?: {_CREDIT_CODE}){{0,{len(UNDECIDED_CREDIT_CODES) - 1}}})?",
        f"of {', '.join(sorted(UNDECIDED_CREDIT_CODES))}, separated by spaces, or nothing"),
    ConnectorSetting("renewals",
        "how the host holds a renewed authorization: as one amount with its renewal, or as two",
        f"{RENEWALS_TOGETHER}|{RENEWALS_APART}", "one or two", default=RENEWALS_TOGETHER),
    ConnectorSetting("reversed_captures",
        "what the reversal of a capture ends: the capture with what it took of the authorization, or it alone",
        f"{REVERSED_WHOLE}|{REVERSED_ALONE}", "whole or alone", default=REVERSED_WHOLE),
    ConnectorSetting("sign_on", "say who we are (0800) after connecting", _ON_OFF, "on or off", default="on"),
    ConnectorSetting("echo_s", "seconds of quiet before an echo; 0 for a host that knows none",
        r"[0-9]{1,4}", "0 to 9999", default="60"),
    ConnectorSetting("tls", "speak TLS", _ON_OFF, "on or off", default="off"),
    ConnectorSetting("tls_name", "name in the host's certificate, where it is not the host's",
        r"[A-Za-z0-9.-]{0,253}", "a host name, or nothing"),
    ConnectorSetting("tls_ca", "certificates to trust instead of the system's, PEM",
        _PEM, "PEM certificates, or nothing"),
    ConnectorSetting("tls_certificate", "our own certificate where the host wants one, with its chain, PEM",
        _PEM, "PEM certificates, or nothing"),
    ConnectorSetting("tls_key", "the key of tls_certificate, PEM without a passphrase",
        _PEM_KEY, "a private key in PEM, not encrypted", secret=True),
    ConnectorSetting("without_tls", "live: speak in clear all the same, on loopback or in a private network",
        _ON_OFF, "on or off", default="off"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """A parsed account. Hashable: one terminal has one link per process, so fields that do not affect the link are not
    compared; ``key_digest`` stands for the key, which has no hash of its own."""

    merchant: str
    host: str
    port: int
    terminal: str
    wire: MessageCodec
    private_field: str = "48"
    institution: str = ""
    nii: str = ""
    mcc: str = ""
    name: str = ""
    city: str = ""
    country: str = ""
    time_zone: str = "UTC"
    sign_on: bool = True
    echo_s: int = 60
    tls: bool = False
    tls_name: str = ""
    tls_ca: str = ""
    tls_certificate: str = ""
    key_digest: str = ""
    tls_key: Secret | None = field(default=None, compare=False)
    batch_at: time = field(default=time(22, 30), compare=False)
    duplicates_done: bool = field(default=False, compare=False)
    credit_declines: frozenset[str] = field(default=frozenset(), compare=False)
    renewals_apart: bool = field(default=False, compare=False)
    captures_reversed_alone: bool = field(default=False, compare=False)

    @property
    def label(self) -> str:
        """The link's name in metrics and logs."""
        return f"{self.host}:{self.port} {self.terminal}"

    @property
    def sequence(self) -> str:
        """The name of its trace numbers, which other accounts of the same terminal share."""
        return name_trace_sequence(self.merchant, self.terminal)

    def next_batch(self, now: datetime) -> datetime:
        """The first batch time after ``now``."""
        zone = ZoneInfo(self.time_zone)
        day = now.astimezone(zone).date()
        while (at := datetime.combine(day, self.batch_at, zone)) <= now:
            day += timedelta(days=1)
        return at


def name_trace_sequence(merchant: str, terminal: str) -> str:
    """The name of a terminal's trace numbers (gateway.connectors.iso8583.trace_numbers)."""
    return f"{merchant} {terminal}"


def parse_terminal(account: ConnectorAccount) -> Terminal:
    """Parse an account's settings. Raises AccountSettingError."""
    given = read_account_settings(account, ISO8583_SETTINGS)
    if given["header"] not in LENGTH_HEADERS:
        raise AccountSettingError("header", f"must be one of {', '.join(LENGTH_HEADERS)}")
    key = account.secrets.get("tls_key")
    if given["tls_certificate"] and key is None:
        raise AccountSettingError("tls_certificate", "needs its key, tls_key")
    _check_encryption(given)
    if (given["renewals"], given["reversed_captures"]) == (RENEWALS_APART, REVERSED_ALONE):
        why = "must be whole with renewals=two: what the host holds again of an authorization that was renewed, no "
        raise AccountSettingError("reversed_captures", why + "later message would name")
    return Terminal(
        merchant=account.merchant,
        host=given["host"],
        port=_number(given, "port", 1, 65_535),
        terminal=given["terminal"],
        wire=_build_codec(given),
        private_field=given["private_field"],
        institution=given["institution"],
        nii=given["nii"],
        mcc=given["mcc"],
        name=given["name"],
        city=given["city"],
        country=given["country"],
        time_zone=parse_time_zone(given, "time_zone").key,
        sign_on=given["sign_on"] == "on",
        echo_s=_number(given, "echo_s", 0, 9_999),
        tls=given["tls"] == "on",
        tls_name=given["tls_name"],
        tls_ca=given["tls_ca"],
        tls_certificate=given["tls_certificate"],
        tls_key=key,
        key_digest=hashlib.sha256(key.reveal().encode()).hexdigest() if key is not None else "",
        batch_at=parse_time_of_day(given, "batch_at"),
        duplicates_done=given["duplicate"] == DUPLICATE_DONE,
        credit_declines=frozenset(given["credit_declines"].split()),
        renewals_apart=given["renewals"] == RENEWALS_APART,
        captures_reversed_alone=given["reversed_captures"] == REVERSED_ALONE,
    )


def check_terminal_settings(given: Mapping[str, str]) -> SettingFaults:
    """Errors in an account's settings beyond each one's own pattern: (setting, reason)."""
    certificate = {"tls_certificate": ""}  # its key is encrypted, and not entered again with every change
    return collect_setting_faults(lambda: parse_terminal(ConnectorAccount(settings={**given, **certificate})))


def is_private_address(address: str) -> bool:
    """True for an IP address of loopback or a private network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_loopback or any(found in network for network in _PRIVATE if network.version == found.version)


_PRIVATE: Final = tuple(
    ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)


def _check_encryption(given: Mapping[str, str]) -> None:
    """Card numbers must not cross an open network in clear. A host name is resolved and checked when the link
    connects."""
    if not settings.IS_LIVE or given["tls"] == "on":
        return
    if given["without_tls"] != "on":
        why = "must be on in the live environment: card numbers would cross the network in clear. Only a host on "
        why += "loopback or in a private network may do without; then say without_tls=on"
        raise AccountSettingError("tls", why)
    if _is_address(given["host"]) and not is_private_address(given["host"]):
        why = "is neither on loopback nor in a private network (10/8, 172.16/12, 192.168/16, fc00::/7), so without_tls "
        why += "does not do: set tls=on"
        raise AccountSettingError("host", why)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _number(given: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = given[name]
    if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
        raise AccountSettingError(name, f"must be {least} to {most}")
    return int(text)


def _build_codec(given: Mapping[str, str]) -> MessageCodec:
    try:
        build_field_spec(given["encoding"], given["fields"])
    except ValueError as fault:
        raise AccountSettingError("fields", f"do not do: {fault}") from None
    try:
        bytes.fromhex(given["tpdu"])
    except ValueError:
        raise AccountSettingError("tpdu", "must be hexadecimal digits") from None
    return MessageCodec(
        header=given["header"],
        counts_itself=given["header_counts_itself"] == "on",
        tpdu=given["tpdu"],
        encoding=given["encoding"],
        formats=given["fields"],
    )

"""An account at an ISO 8583 host: what its settings say, and the link they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.connectors.iso8583.fields import FORMATS, spec_of
from gateway.connectors.iso8583.wire import HEADERS, Wire
from gateway.connectors.port import Account, Setting

_ON_OFF: Final = "on|off"
_PEM: Final = r"(?:-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]{1,8000}-----END CERTIFICATE-----\s*){0,8}"

SETTINGS: Final = (
    Setting(name="host", about="name or address of the acquirer's host", pattern=r"[A-Za-z0-9._:-]{1,253}",
            allowed="a host name or an IP address", required=True, place=True),
    Setting(name="port", about="its TCP port", pattern=r"[1-9][0-9]{0,4}", allowed="1 to 65535", required=True,
            place=True),
    Setting(name="terminal", about="DE41, the terminal the acquirer gave out", pattern=r"[!-~]{1,8}",
            allowed="1 to 8 characters without spaces", required=True, place=True),
    Setting(name="header", about="length header: 2 or 4 octets, binary or ASCII digits", pattern="|".join(HEADERS),
            allowed=", ".join(HEADERS), default="2b"),
    Setting(name="header_counts_itself", about="the length includes the header", pattern=_ON_OFF, allowed="on or off",
            default="off"),
    Setting(name="tpdu", about="a TPDU before every message", pattern=r"(?:[0-9A-Fa-f]{10})?",
            allowed="10 hexadecimal digits, or nothing"),
    Setting(name="encoding", about="how messages are written", pattern="ascii|ascii-hex|bcd|ebcdic",
            allowed="ascii, ascii-hex, bcd or ebcdic", default="ascii"),
    Setting(name="fields", about="fields this host has in another format, in ISO notation", pattern=FORMATS,
            allowed="number=format, separated by spaces: 39=n2 54=ans...255"),
    Setting(name="private_field", about="the field with 3DS, address and security code data", pattern="48|126",
            allowed="48 or 126", default="48"),
    Setting(name="institution", about="DE32, the acquiring institution", pattern=r"[0-9]{0,11}",
            allowed="up to 11 digits", place=True),
    Setting(name="nii", about="DE24, network international identifier", pattern=r"(?:[0-9]{3})?",
            allowed="3 digits, or nothing"),
    Setting(name="mcc", about="DE18 where a payment names no merchant.mcc", pattern=r"(?:[0-9]{4})?",
            allowed="4 digits, or nothing"),
    Setting(name="name", about="DE43, the merchant's name", pattern=r"[ -~]{0,25}",
            allowed="up to 25 printable ASCII characters"),
    Setting(name="city", about="DE43, the merchant's city", pattern=r"[ -~]{0,13}",
            allowed="up to 13 printable ASCII characters"),
    Setting(name="country", about="DE43, the merchant's country", pattern=r"(?:[A-Z]{2})?",
            allowed="two capital letters, or nothing"),
    Setting(name="time_zone", about="of DE12 and DE13", pattern=r"[A-Za-z0-9_+/-]{1,64}",
            allowed="an IANA time zone", default="UTC"),
    Setting(name="sign_on", about="say who we are (0800) after connecting", pattern=_ON_OFF, allowed="on or off",
            default="on"),
    Setting(name="echo_s", about="seconds of quiet before an echo; 0 for a host that knows none", pattern=r"[0-9]{1,4}",
            allowed="0 to 9999", default="60"),
    Setting(name="tls", about="speak TLS", pattern=_ON_OFF, allowed="on or off", default="off"),
    Setting(name="tls_name", about="name in the host's certificate, where it is not the host's",
            pattern=r"[A-Za-z0-9.-]{0,253}", allowed="a host name, or nothing"),
    Setting(name="tls_ca", about="certificates to trust instead of the system's, PEM", pattern=_PEM,
            allowed="PEM certificates, or nothing"),
)  # fmt: skip


class NotSetUp(Exception):
    """The account lacks what a link needs, or says it wrongly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """An account, parsed. It is hashable: one terminal has one link in a process."""

    merchant: str
    host: str
    port: int
    terminal: str
    wire: Wire
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

    @property
    def label(self) -> str:
        """What the link is called in figures and logs."""
        return f"{self.host}:{self.port} {self.terminal}"


def terminal_of(account: Account) -> Terminal:
    """The account's terminal. Raises NotSetUp."""
    given = {one.name: one.default for one in SETTINGS} | dict(account.settings)
    missing = [one.name for one in SETTINGS if one.required and not given[one.name]]
    if missing:
        raise NotSetUp(f"the account has no {', '.join(missing)}")
    try:
        spec_of(given["encoding"], given["fields"])
        ZoneInfo(given["time_zone"])
        port, echo_s = int(given["port"]), int(given["echo_s"])
        bytes.fromhex(given["tpdu"])
    except (ValueError, OSError, ZoneInfoNotFoundError) as fault:
        raise NotSetUp(f"the account's settings do not do: {fault}") from None
    if given["header"] not in HEADERS or not 0 < port < 65_536:
        raise NotSetUp("the account's settings do not do: header or port")
    return Terminal(
        merchant=account.merchant, host=given["host"], port=port, terminal=given["terminal"],
        wire=Wire(header=given["header"], counts_itself=given["header_counts_itself"] == "on", tpdu=given["tpdu"],
                  encoding=given["encoding"], formats=given["fields"]),
        private_field=given["private_field"], institution=given["institution"], nii=given["nii"], mcc=given["mcc"],
        name=given["name"], city=given["city"], country=given["country"], time_zone=given["time_zone"],
        sign_on=given["sign_on"] == "on", echo_s=echo_s, tls=given["tls"] == "on", tls_name=given["tls_name"],
        tls_ca=given["tls_ca"],
    )  # fmt: skip

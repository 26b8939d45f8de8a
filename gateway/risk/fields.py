"""The fields that risk rules may use, as one table, and the RiskSubject with their values for one screening.

The mandate's fields and transactionDueDate are not in the table, so no rule can use them. Values are normalized here
and nowhere else: e-mails in lower case, phone numbers as digits, IP addresses in Python's notation.
Source: Part A, Bank account, Customer, Billing address; Part B, Risk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from types import MappingProxyType
from typing import Final

from gateway.core import brands, clock
from gateway.core.money import Money

_PARAMETER: Final = re.compile(r"risk\.parameters\[([A-Za-z0-9._]{3,64})\]")
_CUSTOM: Final = "risk.parameters["
_NOT_DIGITS: Final = re.compile("[^0-9]")
MAX_VALUE_CHARS: Final = 512
"""Longer values (browser fingerprints) are compared by their first so many characters."""


def _normalize_text(value: str) -> str:
    return value.strip()


def _normalize_email(value: str) -> str:
    return value.strip().lower()


def _extract_domain(value: str) -> str:
    return value.strip().lower().rpartition("@")[2]


def _normalize_phone(value: str) -> str:
    """Digits only: +49 (0) 89 1 and +490891 are equal; a leading 00 stands for the plus."""
    digits = _NOT_DIGITS.sub("", value)
    return digits.removeprefix("00")


def parse_ip_address(value: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address; None for anything else. An IPv4-mapped IPv6 address (::ffff:192.0.2.7), as dual-stack
    servers see it, becomes the IPv4 address."""
    try:
        address = ip_address(value.strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _normalize_ip(value: str) -> str:
    return str(parse_ip_address(value) or value.strip().lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskField:
    """A field that rules may use. ``sources``: its parameters; several give several values, and a rule holds when it
    holds for one of them. ``about``: a line for the docs. ``listed``: the notation of list entries, '' for the plain
    value. ``counted``: velocities may count by it."""

    name: str
    about: str
    sources: tuple[str, ...] = ()
    normal: Callable[[str], str] = _normalize_text
    counted: bool = False
    listed: str = ""


_ROWS: Final[tuple[RiskField, ...]] = (
    RiskField(
        name="customer.email",
        about="the e-mail, in lower case",
        sources=("customer.email",),
        normal=_normalize_email,
        counted=True,
    ),
    RiskField(
        name="customer.emailDomain",
        about="what stands behind its @",
        sources=("customer.email",),
        normal=_extract_domain,
        counted=True,
    ),
    RiskField(
        name="customer.ip",
        about="the shopper's address",
        sources=("customer.ip",),
        normal=_normalize_ip,
        counted=True,
        listed="an address or a network such as 192.0.2.0/24",
    ),
    RiskField(
        name="customer.phone",
        about="phone, mobile and workPhone, digits only",
        sources=("customer.phone", "customer.mobile", "customer.workPhone"),
        normal=_normalize_phone,
        counted=True,
        listed="a number; everything but its digits is left out",
    ),
    RiskField(
        name="customer.merchantCustomerId",
        about="the shopper's id in your system",
        sources=("customer.merchantCustomerId",),
        counted=True,
    ),
    RiskField(
        name="customer.deviceId",
        about="browser.deviceId and app.deviceId",
        sources=("customer.browser.deviceId", "customer.app.deviceId"),
        counted=True,
    ),
    RiskField(
        name="customer.browserFingerprint",
        about="browserFingerprint.id and .value",
        sources=("customer.browserFingerprint.id", "customer.browserFingerprint.value"),
        counted=True,
    ),
    RiskField(name="customer.status", about="NEW or EXISTING", sources=("customer.status",)),
    RiskField(name="customer.category", about="INDIVIDUAL or COMPANY", sources=("customer.category",)),
    RiskField(name="billing.country", about="ISO 3166-1, two letters", sources=("billing.country",)),
    RiskField(name="billing.postcode", about="the postcode", sources=("billing.postcode",)),
    RiskField(name="shipping.country", about="ISO 3166-1, two letters", sources=("shipping.country",)),
    RiskField(name="shipping.method", about="how it is sent", sources=("shipping.method",)),
    RiskField(name="bankAccount.country", about="ISO 3166-1, two letters", sources=("bankAccount.country",)),
    RiskField(
        name="account",
        about="the card, bank account or other means, by its keyed fingerprint",
        counted=True,
        listed="the id of a payment made with it",
    ),
    RiskField(name="card.bin", about="the card's first six digits", counted=True, listed="six digits"),
    RiskField(name="card.issuerCountry", about="where the card was issued, if the BIN is known"),
    RiskField(name="card.type", about="CREDIT, DEBIT or PREPAID, if the BIN is known"),
    RiskField(name="card.level", about="CLASSIC, GOLD …, if the BIN is known"),
    RiskField(name="brand", about="risk.brand, else the payment's brand"),
    RiskField(name="currency", about="the payment's currency"),
    RiskField(name="paymentType", about="PA, DB, RI …"),
    RiskField(name="risk.merchantWebsite", about="as sent", sources=("risk.merchantWebsite",)),
    RiskField(name="risk.accountToken", about="as sent", sources=("risk.accountToken",), counted=True),
    RiskField(name="risk.serviceId", about="as sent", sources=("risk.serviceId",)),
)
RISK_FIELDS: Final[Mapping[str, RiskField]] = MappingProxyType({row.name: row for row in _ROWS})
VELOCITY_FIELDS: Final[tuple[str, ...]] = tuple(row.name for row in _ROWS if row.counted)
COUNTRY_FIELDS: Final = ("billing.country", "shipping.country", "bankAccount.country", "card.issuerCountry")
IP_FIELD: Final = "customer.ip"
EXCLUDED_FIELDS: Final = ("bankAccount.mandate.id", "bankAccount.mandate.dateOfSignature", "transactionDueDate")
"""Part A, Bank account: excluded from risk checks."""


def parse_risk_parameter(name: str) -> str | None:
    """``risk.parameters[loyalty]`` → loyalty; None for other names."""
    found = _PARAMETER.fullmatch(name)
    return found[1] if found else None


def is_risk_field(name: str) -> bool:
    """Whether rules may use the field ``name``."""
    return name in RISK_FIELDS or parse_risk_parameter(name) is not None


def normalize_value(name: str, value: str) -> str:
    """A field's value in its comparable form."""
    row = RISK_FIELDS.get(name)
    return (row.normal(value) if row else value)[:MAX_VALUE_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskSubject:
    """What is screened: the values of the fields that were sent, the amount and the time. Has no card number.

    ``money``: risk.amount, else the payment's amount. ``at``: risk.orderTimestamp, else now, in UTC.
    """

    money: Money
    at: datetime
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, name: str) -> tuple[str, ...]:
        """The field's values; empty when it was not sent."""
        return self.values.get(name, ())


def build_risk_subject(
    parameters: Mapping[str, str],
    *,
    money: Money,
    brand: str,
    payment_type: str,
    now: datetime,
    card_bin: str = "",
    accounts: tuple[str, ...] = (),
) -> RiskSubject:
    """Build the subject of a request. ``parameters``: validated ones by full name. ``accounts``: the keyed fingerprints
    of the means in hex, the primary key's first. ``card_bin``: the card's first digits, '' without a card."""
    values: dict[str, tuple[str, ...]] = {}
    for row in _ROWS:
        field_values = _deduplicate(
            normalize_value(row.name, parameters[name]) for name in row.sources if parameters.get(name)
        )
        if field_values:
            values[row.name] = field_values
    for name, value in parameters.items():
        if name.startswith(_CUSTOM):
            values[name] = (value[:MAX_VALUE_CHARS],)
    issuer = brands.find_issuer(card_bin) if card_bin else None
    ours = {
        "card.bin": card_bin[: brands.ISSUER_BIN_DIGITS],
        "card.issuerCountry": issuer.country if issuer else "",
        "card.type": issuer.type if issuer else "",
        "card.level": issuer.level if issuer else "",
        "brand": parameters.get("risk.brand") or brand,
        "currency": money.currency,
        "paymentType": payment_type,
    }
    values |= {name: (value,) for name, value in ours.items() if value}
    if accounts:
        values["account"] = accounts
    risk_amount = parameters.get("risk.amount")
    return RiskSubject(
        money=Money(Decimal(risk_amount), money.currency) if risk_amount else money,
        at=clock.parse_time(parameters.get("risk.orderTimestamp")) or now,
        values=MappingProxyType(values),
    )


def list_entry_candidates(name: str, value: str) -> tuple[str, ...]:
    """The list entries that would match ``value``: the value itself, and for an IP address every network around it."""
    if name != IP_FIELD:
        return (value,)
    try:
        address = ip_address(value)
    except ValueError:
        return (value,)
    networks = (ip_network((address, bits), strict=False) for bits in range(address.max_prefixlen))
    return (value, *(str(network) for network in networks))


def find_entry_fault(name: str, value: str) -> str | None:
    """The error of a list entry for this field, or None for a valid one."""
    if name == IP_FIELD and _normalize_network(value) is None:
        return "must be an address or a network such as 192.0.2.0/24 or 2001:db8::/32"
    if name == "card.bin" and not re.fullmatch("[0-9]{6}", value):
        return "must be the first six digits of a card, never more"
    if name == "account" and not re.fullmatch("[0-9a-f]{32}", value):
        return "must be the id of a payment made with that card or account, 32 digits or letters a to f"
    if name in COUNTRY_FIELDS and not re.fullmatch("[A-Z]{2}", value):
        return "must be a country of ISO 3166-1, two capital letters"
    if name == "customer.email" and "@" not in value[1:]:
        return "must be an e-mail address; for a whole domain make a list of customer.emailDomain"
    if name == "customer.emailDomain" and ("@" in value or "." not in value[1:]):
        return "must be a domain such as mail.example, without @"
    return None


def normalize_entry(name: str, value: str) -> str:
    """A list entry in its stored, comparable form."""
    return (_normalize_network(value) or value) if name == IP_FIELD else normalize_value(name, value)


def _normalize_network(value: str) -> str | None:
    """An IP address, or a network with its host part cleared; None for neither."""
    try:
        network = ip_network(value, strict=False)
    except ValueError:
        return None
    if network.num_addresses == 1:
        return str(parse_ip_address(str(network.network_address)))
    return str(network)


def _deduplicate(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))

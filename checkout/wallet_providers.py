"""Configuration section walletProviders: what a page needs to open a wallet provider's own sheet.

There are three ways, one for each wallet: a session from merchant validation (wallet 1), a client from the provider's
script (wallet 2), the browser's own PaymentRequest (wallet 3). Nothing about a provider is built in: the names of its
script and of what that script offers are configured, and the operator's setting GATEWAY_WALLET_ORIGINS limits the hosts
that may be named. Source: Part A, What the service does, 8 and 9.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings

from checkout.models import WalletProvider
from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.core import document as d
from gateway.core import identifiers
from gateway.core.secret import Secret
from gateway.models import Channel
from gateway.vault.sealing import current_vault
from gateway.wallets.keys import WALLET_NAMES, UnusableKeyError, parse_private_key

PROVIDER_API_BY_WALLET: Final[Mapping[str, str]] = {"wallet1": "session", "wallet2": "client", "wallet3": "request"}
"""Wallet → the kind of its provider's API, as the script names it."""
MAX_IDENTITY_FILE_BYTES: Final = 65_536
MAX_TOKENIZATION_PARAMETERS: Final = 20
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_PRIVATE: Final = frozenset({"domains", "validationHosts"})
"""Settings that are not sent to the page."""
_ADDRESSES: Final = ("script", "method")
_PATH: Final = d.text_shape(
    1, 100, r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*", says="the name of something in the page, e.g. provider.Client"
)
_WORDS: Final = d.list_shape(
    d.text_shape(1, 40, r"\w+", says="a word of letters and digits"), least=1, most=30, distinct=True
)
_COUNTRY: Final = d.text_shape(2, 2, "[A-Z]{2}", says="a country of ISO 3166, e.g. DE")


def parse_origin(address: str) -> str:
    """Scheme, host and port of an address as browsers write them; '' for anything else. Port 443 is omitted."""
    try:
        parts = urlsplit(address)
        port, host = parts.port, (parts.hostname or "").lower()
    except ValueError:
        return ""
    if not host or parts.username is not None or parts.password is not None:
        return ""
    safe = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK and not settings.IS_LIVE)
    if not safe:
        return ""
    host = f"[{host}]" if ":" in host else host
    shown = "" if port in (None, {"https": 443, "http": 80}[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown}"


def _address(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, str) or not value.isprintable() or len(value) > 500 or not parse_origin(value):
        faults.add(path, f"must be an https address of at most 500 characters, not {d.abbreviate_value(value)}")
    return value


def _origin(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, str) or parse_origin(value) != value:
        faults.add(path, f"must be an origin, e.g. https://pay.provider.example, not {d.abbreviate_value(value)}")
    return value


def _host(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, str) or value != value.lower() or urlsplit(f"//{value}").hostname != value:
        faults.add(path, f"must be a host in lower case, e.g. shop.example, not {d.abbreviate_value(value)}")
    return value


def _parse_texts(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    """An object of texts, as in a provider's guide."""
    fine = isinstance(value, Mapping) and 0 < len(value) <= MAX_TOKENIZATION_PARAMETERS
    if not fine or not all(isinstance(one, str) and 0 < len(one) <= 500 for one in value.values()):
        faults.add(path, f"must be an object of 1 to {MAX_TOKENIZATION_PARAMETERS} texts of at most 500 characters")
    return value


def _parse_object(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    if not isinstance(value, Mapping) or len(json.dumps(value)) > 4_096:
        faults.add(path, "must be an object of at most 4,096 characters")
    return value


_TOKENIZATION: Final = d.object_shape(
    type=d.required_member(d.choice_shape("PAYMENT_GATEWAY", "DIRECT")), parameters=d.required_member(_parse_texts)
)
_SHAPES: Final[Mapping[str, d.DocumentShape]] = {
    "wallet1": d.object_shape(
        name=d.required_member(_PATH),
        version=d.optional_member(d.integer_shape(1, 30), 3),
        script=d.optional_member(_address),
        merchantId=d.required_member(d.text_shape(1, 255)),
        displayName=d.required_member(d.text_shape(1, 64)),
        domains=d.required_member(d.list_shape(_host, least=1, most=99, distinct=True)),
        countryCode=d.required_member(_COUNTRY),
        networks=d.required_member(_WORDS),
        capabilities=d.optional_member(_WORDS, ("supports3DS",)),
        validationHosts=d.required_member(d.list_shape(_origin, least=1, most=20, distinct=True)),
        certificateFile=d.optional_member(d.text_shape(1, 1024)),
        keyFile=d.optional_member(d.text_shape(1, 1024)),
    ),
    "wallet2": d.object_shape(
        name=d.required_member(_PATH),
        script=d.required_member(_address),
        environment=d.optional_member(d.choice_shape("TEST", "PRODUCTION"), "TEST"),
        tokenization=d.required_member(_TOKENIZATION),
        merchantId=d.optional_member(d.text_shape(1, 255)),
        merchantName=d.optional_member(d.text_shape(1, 64)),
        countryCode=d.optional_member(_COUNTRY),
        networks=d.required_member(_WORDS),
        authMethods=d.optional_member(_WORDS, ("PAN_ONLY", "CRYPTOGRAM_3DS")),
    ),
    "wallet3": d.object_shape(
        method=d.required_member(_address),
        data=d.optional_member(_parse_object),
        token=d.optional_member(_PATH, "token"),
    ),
}


def _or_none(shape: d.DocumentShape) -> d.DocumentShape:
    def nothing(value: Any, path: str, faults: d.DocumentFaults) -> Any:
        return {} if value is None else shape(value, path, faults)

    return nothing


_SHAPE: Final = d.object_shape(**{wallet: d.optional_member(_or_none(shape)) for wallet, shape in _SHAPES.items()})


def find_wallet_provider(channel: Channel, wallet: str) -> WalletProvider | None:
    """The provider of one wallet of the channel, or None."""
    return WalletProvider.objects.filter(channel=channel, wallet=wallet).first()


def map_wallet_providers(channel: Channel) -> dict[str, WalletProvider]:
    """Wallet → its provider, for the wallets that have one."""
    return {row.wallet: row for row in WalletProvider.objects.filter(channel=channel).defer("identity_sealed")}


def render_wallet_provider(row: WalletProvider) -> dict[str, Any]:
    """The values with which the script opens the provider's sheet."""
    return {
        "api": PROVIDER_API_BY_WALLET[row.wallet],
        **{name: value for name, value in row.settings.items() if name not in _PRIVATE},
    }


def list_allowed_origins(wallet: str) -> list[str]:
    """The hosts that the operator allows for a wallet's provider."""
    return [parse_origin(one) for one in settings.GATEWAY_WALLET_ORIGINS.get(wallet.upper(), [])]


def _check_section(target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    for wallet in WALLET_NAMES:
        found = value[wallet]
        if not found:
            continue
        where, allowed = d.member_path(path, wallet), list_allowed_origins(wallet)
        named = [(d.member_path(where, name), found[name]) for name in _ADDRESSES if found.get(name)]
        named += [(f"{where}.validationHosts[{n}]", one) for n, one in enumerate(found.get("validationHosts") or ())]
        for place, address in named:
            if parse_origin(address) not in allowed:
                there = ", ".join(allowed) or "none"
                faults.add(place, f"is no host that GATEWAY_WALLET_ORIGINS has for {wallet.upper()}; there are {there}")
        if wallet == "wallet1":
            _check_identity(target, found, where, faults)


def _check_identity(target: ConfigurationTarget, found: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    if (found["certificateFile"] is None) != (found["keyFile"] is None):
        faults.add(path, "give both certificateFile and keyFile, or neither to keep those that are here")
    elif found["certificateFile"] is not None:
        _load_identity(target, found, path, faults)
    elif (
        settings.IS_LIVE
        and getattr(find_wallet_provider(target.channel_there, "wallet1"), "identity_sealed", None) is None
    ):
        faults.add(d.member_path(path, "certificateFile"), "is required: the provider knows the merchant by it")


def _load_identity(
    target: ConfigurationTarget, found: Mapping[str, Any], path: str, faults: d.DocumentFaults
) -> dict[str, str] | None:
    """Certificate and key as PEM; None after adding a fault. The files' content is never shown."""
    texts = {}
    for name, file in (("certificate", found["certificateFile"]), ("key", found["keyFile"])):
        try:
            text = Path(target.folder, file).read_bytes()[: MAX_IDENTITY_FILE_BYTES + 1].decode()
        except (OSError, UnicodeDecodeError):
            faults.add(d.member_path(path, f"{name}File"), f"{d.abbreviate_value(file)} cannot be read as text")
            return None
        texts[name] = text
    try:
        held = parse_private_key(Secret(texts["key"]), check=True)
        certificate = x509.load_pem_x509_certificate(texts["certificate"].encode())
    except UnusableKeyError as fault:
        faults.add(d.member_path(path, "keyFile"), str(fault))
        return None
    except ValueError:
        faults.add(d.member_path(path, "certificateFile"), "is no certificate in PEM")
        return None
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if certificate.public_key().public_bytes(*form) != held.public_key().public_bytes(*form):
        faults.add(d.member_path(path, "keyFile"), "is not the key of the certificate")
        return None
    return texts


def _apply_section(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    for wallet in WALLET_NAMES:
        found = value[wallet]
        if found is None:
            continue
        row = find_wallet_provider(target.channel_there, wallet)
        if not found:
            if row is not None:
                row.delete()
            continue
        row = row or WalletProvider(id=identifiers.row_id(), channel=target.channel_there, wallet=wallet)
        row.settings = {
            name: list(one) if isinstance(one, tuple) else one
            for name, one in found.items()
            if one is not None and not name.endswith("File")
        }
        if found.get("certificateFile"):
            held = _load_identity(target, found, "", d.DocumentFaults())
            row.identity_sealed = current_vault().seal(Secret(json.dumps(held)), row.id)
        row.save()


def _render_section(target: ConfigurationTarget) -> Any:
    rows = map_wallet_providers(target.channel_there)
    return {wallet: rows[wallet].settings if wallet in rows else None for wallet in WALLET_NAMES}


WALLET_PROVIDERS_SECTION: Final = ConfigurationSection(
    name="walletProviders",
    shape=_SHAPE,
    check=_check_section,
    apply=_apply_section,
    show=_render_section,
    about="Who opens the real sheet of a wallet in pages; null: nobody, then the test environment shows ours. A "
    "wallet that is not named stays.",
)

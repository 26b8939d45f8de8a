"""Channels with accounts at the peers, made by the product's own commands and configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from tests.faults.stack import Stack

# Read by `manage.py shell`: every name that the product gives to what a clerk does in its pages.
_SCRIPT: Final = """
import json, sys
from datetime import timedelta
from pathlib import Path
from gateway.access import audit_log, tokens
from gateway.configuration.apply import apply_configuration
from gateway.configuration.section import ConfigurationTarget
from gateway.models import Channel, Division, Merchant

asked = json.loads({asked!r})
division, told = Division.objects.get(name="Demo"), {{}}
for shop in asked["shops"]:
    merchant = Merchant.objects.create(
        name=shop["name"], division=division, clock_offset=timedelta(seconds=shop["ahead_s"])
    )
    token = tokens.issue_token(merchant, name="faults", by=audit_log.COMMAND_LINE_ACTOR)[1].reveal()
    for name, document in shop["channels"].items():
        channel = Channel.objects.create(name=name, merchant=merchant, limits={{"*": None}})
        target = ConfigurationTarget(merchant=merchant, channel=channel, folder=Path(asked["folder"]))
        apply_configuration(target, document, by=audit_log.COMMAND_LINE_ACTOR)
        told[name] = {{"entity": channel.entity_id, "token": token}}
print(json.dumps(told))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A channel to pay with."""

    entity: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A merchant with channels, each by its name and its configuration. ``ahead_s``: of its clock."""

    name: str
    channels: Mapping[str, Any]
    ahead_s: float = 0.0


def open_shops(stack: Stack, shops: Sequence[Shop], secrets: Mapping[str, str]) -> dict[str, Opened]:
    """Channel → how to pay with it. ``secrets``: file name → what stands in it. Raises NotUp."""
    for name, text in secrets.items():
        path = stack.folder / name
        path.write_text(text)
        path.chmod(0o600)
    asked = {
        "folder": str(stack.folder),
        "shops": [{"name": one.name, "ahead_s": one.ahead_s, "channels": one.channels} for one in shops],
    }
    told = stack.command("shell", "--no-imports", text=_SCRIPT.format(asked=json.dumps(asked)))
    return {name: Opened(**facts) for name, facts in json.loads(told.splitlines()[-1]).items()}


def iso_account(port: int, merchant: str = "PEERISO") -> dict[str, Any]:
    """An account at an ISO 8583 host of this machine."""
    return {
        "connector": "iso8583",
        "merchant": merchant,
        "settings": {
            "host": "127.0.0.1",
            "port": str(port),
            "terminal": "TERM0001",
            "institution": "12345",
            "mcc": "5942",
            "name": "Example Shop",
            "city": "Munich",
            "country": "DE",
            "echo_s": "5",
        },
    }


def card_account(port: int, *, keyed: bool, merchant: str = "PEERCARDS") -> dict[str, Any]:
    """An account at a card API of this machine. ``keyed``: it knows idempotency keys."""
    return {
        "connector": "stripe",
        "merchant": merchant,
        "secretFiles": {"api_key": "card-api.key"},
        "settings": {"url": f"http://127.0.0.1:{port}", "profile": "full" if keyed else "core"},
    }


def bank_account(url: str, user: str) -> dict[str, Any]:
    """A creditor's account at the bank, files by upload."""
    return {
        "connector": "sepa",
        "merchant": "peer-bank",
        "secretFiles": {"uploadPassword": "bank.password"},
        "settings": {
            "creditorName": "Shop Ltd",
            "creditorId": "DE98ZZZ09999999999",
            "noticeDays": "0",
            "creditorIban": "NL41MOCK0000000001",
            "delivery": "http",
            "uploadUrl": url,
            "uploadUser": user,
        },
    }


def monday_at_seven(now: datetime) -> datetime:
    """The first Monday after ``now``, 07:00 UTC."""
    day = now + timedelta(days=7 - now.weekday())
    return day.replace(hour=7, minute=0, second=0, microsecond=0)

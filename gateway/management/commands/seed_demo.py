"""Create the demo merchants, their channels, tokens and a back-office user, and write them to a file; also a file of
shell variables for the samples of the README and of /docs (`. var/demo.env`).

Running it again keeps existing data: the tokens of the file go on working. It refuses the live environment.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from gateway.access import audit_log, tokens
from gateway.configuration.apply import apply_configuration
from gateway.configuration.section import ConfigurationTarget
from gateway.connectors.stub.connector import STUB
from gateway.models import AccessToken, AcquirerAccount, Channel, Division, Merchant, Psp
from gateway.wallets import sandbox_tokens

_DemoEntity = TypeVar("_DemoEntity", Psp, Division, Merchant, Channel)
NO_THROTTLE = {"*": None}
DEMO_CHANNELS: dict[str, dict[str, Any]] = {
    "plain": {"limits": NO_THROTTLE, "position": 10},
    "3ds": {"limits": NO_THROTTLE, "position": 40, "three_d_secure": True},
    "strict": {"limits": NO_THROTTLE, "position": 30, "parameters": Channel.Parameters.STRICT},
    "risk": {"limits": NO_THROTTLE, "position": 50},
    "limited": {"limits": {"*": {"limit": 5, "window_s": 1}}, "position": 20},
}
# testMode=EXTERNAL_DEMO_CHANNELS goes to the bundled stub acquirer; "strict" has no account there and answers
# 600.200.700.
EXTERNAL_DEMO_CHANNELS = ("plain", "3ds", "risk", "limited")
DEMO_USER = "demo"
# Configuration of the channel "risk"; also the example of docs/configuration.md.
DEMO_CONFIGURATION = Path(settings.BASE_DIR) / "docs" / "examples" / "demo-configuration.json"


class Command(BaseCommand):
    help = "Make demo merchants, channels, tokens and a back-office user (test environment only)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--base-url", default=settings.GATEWAY_BASE_URL, help="the address that the file names")
        parser.add_argument("--out", type=Path, required=True, help="the file to write, mode 0600")

    def handle(self, *args: Any, base_url: str, out: Path, **options: Any) -> None:
        if settings.IS_LIVE:
            raise CommandError("seed_demo refuses the live environment.")
        facts = seed_demo_data(_read(out), base_url)
        _write(out, json.dumps(facts, indent=2) + "\n")
        _write(out.with_suffix(".env"), format_shell_variables(facts))
        self.stdout.write(f"Demo data is in {out}")


@transaction.atomic
def seed_demo_data(known: dict[str, Any], base_url: str) -> dict[str, Any]:
    """Create or find everything and return the facts. ``known``: the facts of an earlier run: its secrets that still
    work are kept, others are made anew."""
    psp = _find_or_create(Psp, name="Tollhouse Demo PSP")
    division = _find_or_create(Division, name="Demo", psp=psp)
    merchant = _find_or_create(Merchant, {"dispatching": True}, name="Demo shop", division=division)
    channels = {
        name: _find_or_create(Channel, values, name=name, merchant=merchant) for name, values in DEMO_CHANNELS.items()
    }
    if not channels["risk"].risk_set:
        document = json.loads(DEMO_CONFIGURATION.read_text(encoding="utf-8"))
        apply_configuration(
            ConfigurationTarget(merchant=merchant, channel=channels["risk"]), document, by=audit_log.COMMAND_LINE_ACTOR
        )
    stranger = _find_or_create(Merchant, name="Other shop", division=division)
    other = _find_or_create(Channel, {"limits": NO_THROTTLE}, name="other", merchant=stranger)
    for channel in [*(channels[name] for name in EXTERNAL_DEMO_CHANNELS), other]:
        if not AcquirerAccount.objects.filter(channel=channel, connector=STUB.name).exists():
            AcquirerAccount.objects.create(
                channel=channel,
                connector=STUB.name,
                name=f"Stub acquirer, {channel.name}",
                acquirer_merchant_id=f"STUB-{channel.name}",
            )
    sandbox_tokens.generate_channel_keys(channels["plain"])
    return {
        "base_url": base_url,
        "entity_id": channels["plain"].entity_id,
        "access_token": _token(merchant, known.get("access_token")),
        "admin_user": DEMO_USER,
        "admin_password": _password(known.get("admin_password")),
        "channels": {name: row.entity_id for name, row in channels.items()} | {"merchant": merchant.entity_id},
        "other": {
            "entity_id": other.entity_id,
            "access_token": _token(stranger, known.get("other", {}).get("access_token")),
        },
    }


def _find_or_create(model: type[_DemoEntity], more: Mapping[str, Any] | None = None, /, **known: Any) -> _DemoEntity:
    """The oldest row of ``known``, or a new one with ``more``: who tries the demo may have made others of its name."""
    row = model._default_manager.filter(**known).order_by("created_at", "pk").first()
    return row if row is not None else model._default_manager.create(**known, **(more or {}))


def format_shell_variables(facts: dict[str, Any]) -> str:
    """The variables that every sample uses, as a file for a shell."""
    values = {"BASE": facts["base_url"], "TOKEN": facts["access_token"], "ENTITY_ID": facts["entity_id"]}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


def _token(merchant: Merchant, text: str | None) -> str:
    usable = AccessToken.objects.filter(merchant=merchant, revoked_at__isnull=True, ends_at__isnull=True)
    if text and usable.filter(digest=tokens.hash_token(text)).exists():
        return text
    return tokens.issue_token(merchant, name="demo", by=audit_log.COMMAND_LINE_ACTOR)[1].reveal()


def _password(text: str | None) -> str:
    users = get_user_model()._default_manager
    user = users.filter(username=DEMO_USER).first()
    if user is None:
        text = secrets.token_urlsafe(12)
        users.create_superuser(DEMO_USER, "demo@shop.example", text)
        return text
    if not text or not user.check_password(text):
        text = secrets.token_urlsafe(12)
        user.set_password(text)
        user.save()
    return text


def _read(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)

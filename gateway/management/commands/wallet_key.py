"""Store a merchant's key for a wallet, list a channel's keys, or deactivate one. Private keys are never printed."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from gateway.access import audit_log
from gateway.core.secret import Secret
from gateway.management.option_rows import find_option_channel, find_option_row
from gateway.management.option_values import build_text_parser, read_option_file
from gateway.models import Channel, WalletKey
from gateway.wallets.channel_tokens import store_wallet_key
from gateway.wallets.keys import UnusableKeyError

_SENDERS = 'wallet 2: the provider\'s root signing keys, JSON as published ({"keys": […]})'


class Command(BaseCommand):
    help = "Keep, list (default) or switch off the keys that open a channel's wallet tokens."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--entity", help="entityId of a channel, 32 hex digits")
        parser.add_argument("--wallet", type=int, choices=(1, 2, 3), help="whose tokens the key opens")
        parser.add_argument("--private-key", type=Path, help="PEM, not encrypted: P-256, or RSA of 2,048 bits or more")
        parser.add_argument(
            "--name",
            default="",
            type=build_text_parser(WalletKey, "name"),
            help="a name of yours for the key",
        )
        parser.add_argument("--merchant-id", help="wallet 1: the merchant identifier, or its SHA-256 in hex")
        parser.add_argument("--root", type=Path, action="append", help="wallet 1: the provider's root certificate, PEM")
        parser.add_argument("--senders", type=Path, help=_SENDERS)
        parser.add_argument("--recipient", action="append", help="wallet 2: gateway:… or merchant:…, repeatable")
        parser.add_argument("--gateway-merchant-id", help="wallet 2: refuse tokens made for another one")
        parser.add_argument("--kid", help="wallet 3: the key's id in the token's header, if not its hash")
        parser.add_argument("--deactivate", metavar="KEY_ID", help="tokens for this key are refused from now on")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["deactivate"]:
            _deactivate(options["deactivate"])
            return
        channel = find_option_channel(options["entity"])
        if options["private_key"] is not None:
            self._add(channel, options)
        for row in WalletKey.objects.filter(channel=channel):
            facts = {
                "id": row.pk.hex,
                "wallet": row.wallet,
                "name": row.name,
                "key_hash": row.key_hash,
                "active": row.active,
                "made": row.is_test_key,
            }
            self.stdout.write(json.dumps(facts))

    def _add(self, channel: Channel, options: dict[str, Any]) -> None:
        if options["wallet"] is None:
            raise CommandError("--wallet says which wallet the key is for.")
        try:
            private = Secret(read_option_file(options["private_key"]))
            row = store_wallet_key(
                channel, f"wallet{options['wallet']}", private, _facts(options), name=options["name"]
            )
        except UnusableKeyError as fault:
            raise CommandError(str(fault)) from None
        after = {"wallet": row.wallet, "key_hash": row.key_hash, "channel": channel.entity_id}
        audit_log.record_audit_entry(audit_log.COMMAND_LINE_ACTOR, "add", row, after=after)


@transaction.atomic
def _deactivate(text: str) -> None:
    fault = "There is no such key; the id is the 32 hex digits that the list prints."
    row = find_option_row(WalletKey.objects.select_for_update(), text, fault)
    audit_log.record_audit_entry(
        audit_log.COMMAND_LINE_ACTOR, "deactivate", row, before={"active": row.active}, after={"active": False}
    )
    row.active = False
    row.save(update_fields=["active"])


def _facts(options: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "merchantId": options["merchant_id"],
        "roots": [read_option_file(path) for path in options["root"] or ()],
        "senders": _senders(options["senders"]) if options["senders"] else [],
        "recipients": options["recipient"] or [],
        "gatewayMerchantId": options["gateway_merchant_id"],
        "kid": options["kid"],
    }
    return {name: value for name, value in found.items() if value}


def _senders(path: Path) -> list[dict[str, Any]]:
    """The published list of senders; versions that are not offered are left out."""
    try:
        keys = json.loads(read_option_file(path))["keys"]
        return [dict(key) for key in keys if key["protocolVersion"] in ("ECv1", "ECv2")]
    except (ValueError, KeyError, TypeError):
        raise UnusableKeyError('--senders is no JSON of the form {"keys": […]}.') from None

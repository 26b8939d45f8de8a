"""Create, list (default), activate, rotate or deactivate webhook endpoints. A new secret is printed once, as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.access import audit_log
from gateway.core.secret import Secret
from gateway.management.option_rows import find_option_entity, find_option_row
from gateway.models import WebhookEndpoint
from gateway.models.webhooks import DEFAULT_WEBHOOK_KINDS, WEBHOOK_KINDS
from gateway.notifications import endpoints, signing
from gateway.notifications.endpoints import InvalidEndpointError

MAX_WEBHOOK_SECRET_BYTES = 1_024


class Command(BaseCommand):
    help = "Make, list (default), activate, rotate or switch off webhook endpoints. docs/webhooks.md"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--entity", help="entityId of a channel, or of a merchant for all its channels")
        parser.add_argument("--url", help="make an endpoint with this address")
        parser.add_argument("--mode", choices=("encrypted", "signed"), default="encrypted", help="default: encrypted")
        parser.add_argument("--wrapper", choices=("none", "json"), default="none", help="encrypted: the body's form")
        parser.add_argument(
            "--kinds",
            default=",".join(DEFAULT_WEBHOOK_KINDS),
            help=f"of {','.join(WEBHOOK_KINDS)}; all but ALERT unless told",
        )
        parser.add_argument("--secret-file", type=Path, help="64 hex digits or whsec_…; one is made without it")
        parser.add_argument("--endpoint", help="the id that the list prints, for what follows")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--activate", action="store_true", help="send the test message; with --url, right after")
        what.add_argument("--rotate", action="store_true", help="a new secret; the old one is honoured for 24 hours")
        what.add_argument("--off", action="store_true", help="nothing more is sent to it")
        what.add_argument("--list", action="store_true", help="list the endpoints (default)")
        parser.add_argument("--no-overlap", action="store_true", help="with --rotate: the old secret ends at once")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["url"]:
            self._make(options)
        elif options["activate"]:
            self._activate(_find_endpoint(options))
        elif options["rotate"]:
            endpoint = _find_endpoint(options)
            overlap = timedelta(0) if options["no_overlap"] else endpoints.SECRET_OVERLAP
            secret = endpoints.rotate_secret(
                endpoint, by=audit_log.COMMAND_LINE_ACTOR, secret=_read_secret(options), overlap=overlap
            )
            self._show(endpoint, secret, made=options["secret_file"] is None)
        elif options["off"]:
            endpoint = _find_endpoint(options)
            endpoints.deactivate_endpoint(endpoint, by=audit_log.COMMAND_LINE_ACTOR)
            self._show(endpoint)
        else:
            for endpoint in _list_endpoints(options):
                self._show(endpoint)

    def _make(self, options: dict[str, Any]) -> None:
        merchant, channel = find_option_entity(options["entity"])
        kinds = [kind.strip() for kind in options["kinds"].split(",") if kind.strip()]
        try:
            endpoint, secret = endpoints.create_endpoint(
                merchant,
                options["url"],
                by=audit_log.COMMAND_LINE_ACTOR,
                channel=channel,
                mode=options["mode"],
                wrapper=options["wrapper"],
                kinds=kinds,
                secret=_read_secret(options),
            )
        except InvalidEndpointError as fault:
            raise CommandError(f"{str(fault)[:1].upper()}{str(fault)[1:]}.") from None
        self._show(endpoint, secret, made=options["secret_file"] is None)
        if options["activate"]:
            self._activate(endpoint)

    def _activate(self, endpoint: WebhookEndpoint) -> None:
        done = endpoints.activate_endpoint(endpoint, by=audit_log.COMMAND_LINE_ACTOR)
        if not done.active:
            raise CommandError(f"Not activated: {endpoint.url} {done.words}.")
        self._show(endpoint)

    def _show(self, endpoint: WebhookEndpoint, secret: Secret | None = None, *, made: bool = False) -> None:
        """Print one JSON object per line; a new secret is in it, and never shown again."""
        facts = endpoints.describe_endpoint(endpoint)
        if secret is not None and made:
            facts |= {"secret": secret.reveal(), "standard_secret": signing.format_standard_secret(secret).reveal()}
        self.stdout.write(json.dumps(facts, ensure_ascii=False))


def _find_endpoint(options: dict[str, Any]) -> WebhookEndpoint:
    if options["endpoint"]:
        known = WebhookEndpoint.objects.select_related("merchant").exclude(mode=WebhookEndpoint.Mode.RETURN)
        fault = "There is no such endpoint; the id is the 32 hex digits that the list prints."
        return find_option_row(known, options["endpoint"], fault)
    listed = _list_endpoints(options) if options["entity"] else []
    candidates = [endpoint for endpoint in listed if endpoint.state != WebhookEndpoint.State.OFF]
    if len(candidates) != 1:
        raise CommandError("Say which: --endpoint with the id that the list prints.")
    return candidates[0]


def _list_endpoints(options: dict[str, Any]) -> list[WebhookEndpoint]:
    every = WebhookEndpoint.objects.select_related("merchant").exclude(mode=WebhookEndpoint.Mode.RETURN)
    if not options["entity"]:
        return list(every)
    merchant, channel = find_option_entity(options["entity"])
    return list(every.filter(channel=channel) if channel is not None else every.filter(merchant=merchant))


def _read_secret(options: dict[str, Any]) -> Secret | None:
    path: Path | None = options["secret_file"]
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return signing.parse_webhook_secret(file.read(MAX_WEBHOOK_SECRET_BYTES).decode())
    except OSError as fault:
        raise CommandError(f"{path} cannot be read: {fault.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is no text.") from None
    except ValueError as fault:
        raise CommandError(f"{path}: {fault}.") from None

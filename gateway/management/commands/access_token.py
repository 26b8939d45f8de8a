"""Issue, rotate or revoke an access token. The token is printed once, as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from gateway.access import audit_log, tokens
from gateway.core import clock
from gateway.management.option_rows import find_option_entity, find_option_row
from gateway.models import TOKEN_SCOPES, AccessToken


class Command(BaseCommand):
    help = "Issue (default), rotate or revoke an access token."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--entity", help="entityId of a merchant or a channel, 32 hex digits")
        parser.add_argument("--name", default="made on the command line")
        parser.add_argument("--scope", action="append", choices=TOKEN_SCOPES, help="repeatable; default: all")
        parser.add_argument("--days", type=int, help="days until it expires; default: never")
        parser.add_argument("--rotate", metavar="TOKEN_ID", help="issue a successor; the old one ends in 7 days")
        parser.add_argument("--revoke", metavar="TOKEN_ID", help="end it at once")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["revoke"]:
            token = _find_token(options["revoke"])
            tokens.revoke_token(token, by=audit_log.COMMAND_LINE_ACTOR)
            self._print({"id": token.pk.hex, "revoked": True})
            return
        if options["rotate"]:
            made, secret = tokens.rotate_token(_find_token(options["rotate"]), by=audit_log.COMMAND_LINE_ACTOR)
        else:
            merchant, channel = find_option_entity(options["entity"])
            ends = clock.real_now() + timedelta(days=options["days"]) if options["days"] else None
            made, secret = tokens.issue_token(
                merchant,
                name=options["name"],
                by=audit_log.COMMAND_LINE_ACTOR,
                channel=channel,
                scopes=options["scope"] or TOKEN_SCOPES,
                ends_at=ends,
            )
        self._print({"id": made.pk.hex, "access_token": secret.reveal(), "scopes": made.scopes})

    def _print(self, facts: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(facts))


def _find_token(text: str) -> AccessToken:
    fault = "There is no such token; the id is the 32 hex digits that issuing printed."
    return find_option_row(AccessToken.objects.all(), text, fault)

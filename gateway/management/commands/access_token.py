"""Issue, rotate or revoke an access token. The token is printed once, as JSON."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from gateway.access import audit_log, tokens
from gateway.core import clock
from gateway.management.option_rows import find_option_entity, find_option_row
from gateway.management.option_values import build_number_parser, build_text_parser
from gateway.models import TOKEN_SCOPES, AccessToken

MAX_TOKEN_DAYS: Final = 3_650


class Command(BaseCommand):
    help = "Issue (default), rotate or revoke an access token."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--entity", help="entityId of a merchant or a channel, 32 hex digits")
        parser.add_argument(
            "--name",
            type=build_text_parser(AccessToken, "name"),
            default="made on the command line",
            help="as the back office shows it",
        )
        parser.add_argument("--scope", action="append", choices=TOKEN_SCOPES, help="repeatable; default: all")
        parser.add_argument(
            "--days", type=build_number_parser(1, MAX_TOKEN_DAYS), help="days until it expires; default: never"
        )
        parser.add_argument("--rotate", metavar="TOKEN_ID", help="issue a successor; the old one ends in 7 days")
        parser.add_argument("--revoke", metavar="TOKEN_ID", help="end it at once")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["revoke"]:
            token = _find_token(options["revoke"])
            tokens.revoke_token(token, by=audit_log.COMMAND_LINE_ACTOR)
            self._print({"id": token.pk.hex, "revoked": True})
            return
        if options["rotate"]:
            token = _find_token(options["rotate"])
            if token.revoked_at is not None:
                raise CommandError("This token was revoked: issue a new one.")
            made, secret = tokens.rotate_token(token, by=audit_log.COMMAND_LINE_ACTOR)
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

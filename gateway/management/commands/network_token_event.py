"""manage.py network_token_event REFERENCE EVENT: what a card network tells of a stored card's token.

Source: docs/decisions/0126.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.connectors.token_service import TokenEvent
from gateway.payments.network_tokens import apply_token_event


class Command(BaseCommand):
    help = "Apply what a card network tells of the token of a stored card; the merchant is told by a webhook."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("reference", help="the token service's id of the token")
        parser.add_argument("event", choices=[str(event) for event in TokenEvent], help="what became of it")
        parser.add_argument("--expiry", default="", help="MM/YYYY, the token's new date; with REPLACED")

    def handle(self, *args: Any, **options: Any) -> None:
        event, expiry = TokenEvent(options["event"]), options["expiry"]
        if bool(expiry) != (event is TokenEvent.REPLACED):
            raise CommandError("--expiry goes with REPLACED, which needs it")
        if expiry and not re.fullmatch(r"(?:0[1-9]|1[0-2])/20[0-9]{2}", expiry):
            raise CommandError("--expiry: give a month and a year, MM/YYYY")
        month, _, year = expiry.partition("/")
        done = apply_token_event(options["reference"], event, expiry_month=month, expiry_year=year)
        self.stdout.write("Applied." if done else "Nothing changed: no such token, or it was told before.")

"""Make a wallet token for tests: encrypted and signed like a wallet's, for test keys of a channel."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.management.option_rows import find_option_channel
from gateway.wallets import sandbox_tokens
from gateway.wallets.formats import WALLET_FORMATS
from gateway.wallets.token_factory import PaymentSheet, tamper_token

_ALL = tuple(form for forms in WALLET_FORMATS.values() for form in forms)


class Command(BaseCommand):
    help = "Make a wallet token to try with (test environment only): walletn.paymentToken, ready to be sent."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--entity", required=True, help="entityId of a channel, 32 hex digits")
        parser.add_argument("--wallet", type=int, choices=(1, 2, 3), default=1, help="whose token; default: 1")
        parser.add_argument("--format", choices=_ALL, help="default: the wallet's first one, " + _first())
        parser.add_argument("--card", default="4200000000000000", help="the number in the token; see /testdata")
        parser.add_argument("--expiry", default="12/2030", help="MM/YYYY")
        parser.add_argument("--holder", default="Jane Jones", help="the cardholder in the token")
        parser.add_argument("--amount", default="92.00", help="what the shopper agreed to pay (wallets 1 and 3)")
        parser.add_argument("--currency", default="EUR", help="of --amount")
        parser.add_argument("--card-only", action="store_true", help="wallet 2: PAN_ONLY, the card's number, no proof")
        parser.add_argument("--expired", action="store_true", help="rightly signed, but a day too old")
        parser.add_argument("--tampered", action="store_true", help="with one character changed")
        parser.add_argument("--make-keys", action="store_true", help="make test keys where the channel has none")

    def handle(self, *args: Any, **options: Any) -> None:
        channel = find_option_channel(options["entity"])
        wallet = f"wallet{options['wallet']}"
        form = options["format"] or WALLET_FORMATS[wallet][0]
        try:
            if options["make_keys"]:
                sandbox_tokens.generate_channel_keys(channel, form)
            token = sandbox_tokens.build_channel_token(
                channel, wallet, form, _sheet(options), expired=options["expired"]
            )
        except sandbox_tokens.SampleTokenUnavailableError as fault:
            raise CommandError(str(fault)) from None
        self.stdout.write(tamper_token(token) if options["tampered"] else token)


def _sheet(options: dict[str, Any]) -> PaymentSheet:
    month, _, year = options["expiry"].partition("/")
    if not (len(month) == 2 and len(year) == 4 and (month + year).isdecimal()):
        raise CommandError("--expiry has the form MM/YYYY.")
    if not options["card"].isdecimal():
        raise CommandError("--card is a number without spaces.")
    try:
        money = Money.parse(options["amount"], options["currency"])
        money.minor_units()
    except ValueError as fault:
        raise CommandError(f"--amount, --currency: {fault}.") from None
    return PaymentSheet(
        number=Secret(options["card"]),
        money=money,
        expiry_month=month,
        expiry_year=year,
        holder=options["holder"],
        card_only=options["card_only"],
    )


def _first() -> str:
    return ", ".join(forms[0] for forms in WALLET_FORMATS.values())

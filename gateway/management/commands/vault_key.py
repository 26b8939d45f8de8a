"""Make the vault's keyset file."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from gateway.vault import VaultError, create_keyset, load


class Command(BaseCommand):
    help = "Make the vault's keyset file (--create) or check that it opens."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--create", action="store_true", help="make a new keyset; never replaces one")

    def handle(self, *args: Any, create: bool, **options: Any) -> None:
        path = Path(settings.GATEWAY_VAULT_KEYSET_FILE)
        try:
            if create:
                create_keyset(path)
            load(path)
        except VaultError as fault:
            raise CommandError(str(fault)) from None
        self.stdout.write(f"The vault keyset {path} {'was made' if create else 'opens'}.")

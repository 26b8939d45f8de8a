"""manage.py reconciliation_target: set the SFTP server that receives a merchant's reconciliation files, and test it."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.access import audit_log
from gateway.core import identifiers
from gateway.core.secret import Secret
from gateway.models import Merchant
from reporting.models import SftpTarget
from reporting.reconciliation import deliveries
from reporting.sftp import SftpUnreachableError


class Command(BaseCommand):
    help = "Send a merchant's reconciliation files to an SFTP server from now on. Without --host: try what is set up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--merchant", required=True, help="the merchant's entity id")
        parser.add_argument("--host")
        parser.add_argument("--port", type=int, default=22)
        parser.add_argument("--user")
        parser.add_argument("--key-file", help="a private key of OpenSSH; without it a password is asked for")
        parser.add_argument("--host-key", help="the server's public key, as ssh-keyscan shows it, without the host")
        parser.add_argument("--folder", default=".")
        parser.add_argument("--off", action="store_true", help="send nothing any more")

    def handle(self, *args: Any, merchant: str, **options: Any) -> None:
        key = identifiers.parse_id(merchant)
        found = Merchant.objects.filter(pk=key).first() if key is not None else None
        if found is None:
            raise CommandError(f"There is no merchant {merchant}.")
        if options["off"]:
            SftpTarget.objects.filter(merchant=found).update(active=False)
            self.stdout.write("Off.")
            return
        target = self._point(found, options) if options["host"] else SftpTarget.objects.filter(merchant=found).first()
        if target is None:
            raise CommandError("Nothing is set up: give --host, --user and --host-key.")
        try:
            deliveries.probe_sftp_target(target)
        except SftpUnreachableError as fault:
            raise CommandError(f"{target}: {fault}.") from None
        self.stdout.write(f"{target}: logged in, the folder is there.")

    def _point(self, merchant: Merchant, options: dict[str, Any]) -> SftpTarget:
        if not options["user"] or not options["host_key"]:
            raise CommandError("Give --user and --host-key, too.")
        if options["key_file"]:
            kind, secret = SftpTarget.Secrets.KEY, Secret(Path(options["key_file"]).read_text(encoding="utf-8"))
        else:
            kind, secret = SftpTarget.Secrets.PASSWORD, Secret(getpass.getpass("Password: "))
        try:
            return deliveries.set_sftp_target(
                merchant,
                host=options["host"],
                port=options["port"],
                username=options["user"],
                kind=kind,
                secret=secret,
                host_key=options["host_key"],
                folder=options["folder"],
                by=audit_log.COMMAND_LINE_ACTOR,
            )
        except ValueError as fault:
            raise CommandError(f"{fault}.") from None

"""manage.py reconciliation_target: set the SFTP server that receives a merchant's reconciliation files, and test it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.management.option_rows import find_option_row
from gateway.models import Merchant
from reporting.management.sftp_options import add_sftp_options, read_sftp_options
from reporting.models import SftpTarget
from reporting.reconciliation import deliveries
from reporting.sftp import SftpUnreachableError


class Command(BaseCommand):
    help = "Send a merchant's reconciliation files to an SFTP server from now on. Without --host: try what is set up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--merchant", required=True, help="the merchant's entity id")
        add_sftp_options(parser)
        parser.add_argument("--off", action="store_true", help="send nothing any more")

    def handle(self, *args: Any, merchant: str, **options: Any) -> None:
        found = find_option_row(Merchant.objects.all(), merchant, f"There is no merchant {merchant}.")
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
        login = read_sftp_options(options)
        try:
            return deliveries.set_sftp_target(merchant, **login)
        except ValueError as fault:
            raise CommandError(f"{fault}.") from None

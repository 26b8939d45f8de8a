"""manage.py settlement_source: set the SFTP server from which an institute's files are fetched, and test it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reporting.management.sftp_options import add_sftp_options, read_sftp_options
from reporting.models import ClearingInstitute, SftpSource
from reporting.settlement import institutes, sftp_fetch
from reporting.sftp import SftpUnreachableError


class Command(BaseCommand):
    help = "Fetch an institute's settlement files from an SFTP server from now on. Without --host: try what is set up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--institute", help="its key; not needed when there is one only")
        add_sftp_options(parser)
        parser.add_argument("--pattern", default="*", help="which files, e.g. settlement_*.csv")
        parser.add_argument("--move-to", help="a folder below, for files that were taken in; without it they stay")
        parser.add_argument("--every", type=int, default=300, help="seconds between two looks")
        parser.add_argument("--off", action="store_true", help="fetch nothing any more")

    def handle(self, *args: Any, institute: str | None, **options: Any) -> None:
        try:
            found = institutes.find_institute(institute)
        except institutes.UnknownInstituteError as fault:
            raise CommandError(str(fault)) from None
        if options["off"]:
            SftpSource.objects.filter(institute=found).update(active=False)
            self.stdout.write("Off.")
            return
        own = SftpSource.objects.filter(institute=found)
        source = self._set_up(found, options) if options["host"] else own.first()
        if source is None:
            raise CommandError("Nothing is set up: give --host, --user and --host-key.")
        try:
            number = sftp_fetch.probe_sftp_source(source)
        except SftpUnreachableError as fault:
            raise CommandError(f"{source}: {fault}.") from None
        self.stdout.write(f"{source}: logged in, {number} files lie there.")

    def _set_up(self, institute: ClearingInstitute, options: dict[str, Any]) -> SftpSource:
        login = read_sftp_options(options)
        moved_to = options["move_to"]
        try:
            return sftp_fetch.configure_source(
                institute,
                **login,
                pattern=options["pattern"],
                after_download=SftpSource.AfterDownload.MOVE if moved_to else SftpSource.AfterDownload.LEAVE,
                moved_to=moved_to or "done",
                every_s=options["every"],
            )
        except ValueError as fault:
            raise CommandError(f"{fault}.") from None

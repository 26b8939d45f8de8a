"""manage.py clearing_institute: create a clearing institute, or list all of them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from chargebacks.evidence_checklist import is_chargeback_reason
from gateway.access import audit_log
from reporting.models import ClearingInstitute
from reporting.settlement import institutes


class Command(BaseCommand):
    help = "Make a clearing institute whose settlement files are taken in; without --key, list them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--key", help="its folder and its name on the command line: letters, digits, hyphen")
        parser.add_argument("--name", default="", help="as reports show it, up to 64 characters")
        parser.add_argument("--connector", action="append", default=[], help="whose payments it settles; repeatable")
        parser.add_argument("--time-zone", default="UTC", help="of the dates and times in its files")
        parser.add_argument("--format", default="", help="of its files; told from each file without it")
        parser.add_argument("--fee-percent", help="the agreed fee of a payment, to check against")
        parser.add_argument("--fee-fixed", help="the same, a fixed part in the settlement currency")
        parser.add_argument("--settles-within-days", type=int, default=5, help="after that a payment is missing")
        parser.add_argument(
            "--reason-code",
            action="append",
            default=[],
            metavar="CODE=000.100.2nn",
            help="a chargeback reason of its own and what it means; repeatable. Those of the schemes are known",
        )
        parser.add_argument("--expects-on", default="", help="weekdays with a file: 1,2,3,4,5 (1 = Monday)")

    def handle(self, *args: Any, key: str | None, **options: Any) -> None:
        if key is None:
            for one in ClearingInstitute.objects.all():
                self.stdout.write(f"{one.key:<20} {one.name}  {one.time_zone}  {', '.join(one.connectors)}")
            return
        try:
            days = [int(day) for day in options["expects_on"].split(",") if day.strip()]
            row = institutes.create_institute(
                audit_log.COMMAND_LINE_ACTOR,
                key=key,
                name=options["name"] or key,
                connectors=options["connector"],
                time_zone=options["time_zone"],
                format=options["format"],
                fee_percent=options["fee_percent"],
                fee_fixed=options["fee_fixed"],
                reason_codes=_read_reason_codes(options["reason_code"]),
                settles_within_days=options["settles_within_days"],
                expects_files_on=days,
            )
        except ValidationError as fault:
            messages = fault.message_dict if hasattr(fault, "error_dict") else {"": fault.messages}
            raise CommandError("; ".join(f"{name}: {' '.join(texts)}" for name, texts in messages.items())) from None
        except ValueError:
            raise CommandError("--expects-on: weekdays from 1 (Monday) to 7, separated by commas") from None
        self.stdout.write(f"{row.key} is there, id {row.id.hex}")


def _read_reason_codes(pairs: list[str]) -> dict[str, str]:
    """The table of ``CODE=000.100.2nn`` options. Raises CommandError."""
    found = {}
    for pair in pairs:
        code, _, result = pair.partition("=")
        if not code or not is_chargeback_reason(result):
            raise CommandError(f"--reason-code: {pair!r} is not CODE=000.100.2 and two digits, e.g. F1=000.100.220")
        found[code] = result
    return found

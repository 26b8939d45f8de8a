"""What is wrong with this installation, and what mends it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.doctor.examination import examine_installation
from config.doctor.findings import DoctorQuestion, FindingLevel, format_findings


class Command(BaseCommand):
    help = (
        "Look at this installation for all that can be wrong, and say how each fault is mended. Changes nothing. "
        "Exit code 1 if anything puts payments, money or card data at risk."
    )
    requires_system_checks = []  # their faults are findings

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON document, for programs")
        parser.add_argument("--quiet", action="store_true", help="what is well is not named")
        parser.add_argument("--offline", action="store_true", help="ask no machine but database and broker")
        parser.add_argument("--no-web", action="store_true", help="this machine has no web server")
        parser.add_argument("--backups", type=Path, metavar="FOLDER", help="where base-backup.sh or pgBackRest writes")

    def handle(self, *args: Any, **options: Any) -> None:
        question = DoctorQuestion(backups=options["backups"], network=not options["offline"], web=not options["no_web"])
        found = list(examine_installation(question))
        numbers = {level: sum(one.level is level for one in found) for level in FindingLevel}
        if options["json"]:
            document = {
                "environment": settings.GATEWAY_ENVIRONMENT,
                "counts": {level.value: number for level, number in numbers.items()},
                "findings": [one.as_document() for one in found],
            }
            self.stdout.write(json.dumps(document, indent=1, ensure_ascii=False))
        else:
            for line in format_findings(found, quiet=options["quiet"]):
                self.stdout.write(line)
            counted = ", ".join(f"{number} {level.value}" for level, number in numbers.items())
            self.stdout.write(f"{settings.GATEWAY_ENVIRONMENT}: {counted}.")
        if numbers[FindingLevel.ERROR]:
            raise SystemExit(1)

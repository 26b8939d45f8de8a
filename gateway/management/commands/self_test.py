"""Run the self-test now: try every row of the test data."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from gateway.portal import self_test


class Command(BaseCommand):
    help = "Try every row of the test data now, and note it for the test-data page. Exits 1 if a promise is broken."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.IS_LIVE:
            raise CommandError("There are no test data in the live environment.")
        results = self_test.run_all_self_tests()
        faults = [one for one in results if one.fault]
        for one in faults:
            self.stdout.write(f"{one.row}: {one.fault}")
        if faults:
            raise CommandError(f"{len(faults)} of {len(results)} rows are not as promised", returncode=1)
        self.stdout.write(f"{len(results)} rows, all as promised")

"""manage.py simulate_market: months of trade of a made-up merchant in minutes (test environment only)."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, date, datetime, time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.connectors.simulator.issuers import ISSUER_SEED
from gateway.management.option_values import parse_option_day
from reporting.simulator import market_rows
from reporting.simulator.market import DAYS_PER_MONTH, MAX_MARKET_MONTHS, MAX_MARKET_PAYMENTS, MarketPlan


class Command(BaseCommand):
    help = "Make months of trade with the simulated issuers on a merchant of their own (test environment only)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=ISSUER_SEED, help="the same seed makes the same market")
        parser.add_argument(
            "--payments",
            type=int,
            default=20_000,
            help=f"attempts to pay, 1 to {MAX_MARKET_PAYMENTS}; without it 20000",
        )
        parser.add_argument(
            "--months", type=int, default=3, help=f"of {DAYS_PER_MONTH} days, 1 to {MAX_MARKET_MONTHS}; without it 3"
        )
        parser.add_argument(
            "--start", type=parse_option_day, help="yyyy-MM-dd on the merchant's clock; without it its next day"
        )

    def handle(self, *args: Any, seed: int, payments: int, months: int, start: date | None, **options: Any) -> None:
        try:
            channel = market_rows.find_market_channel()
            begins = (
                datetime.combine(start, time(), UTC)
                if start is not None
                else market_rows.next_market_start(channel.merchant)
            )
            made = market_rows.write_market(channel, MarketPlan(seed=seed, count=payments, months=months, start=begins))
        except (market_rows.MarketRefusedError, ValueError, OverflowError) as fault:
            raise CommandError(str(fault)) from None
        self.stdout.write(
            f"{made.merchant.name}: {made.attempts:,} attempts, {made.approved:,} approved "
            f"({100 * made.approved / made.attempts:.1f} %), {made.follow_ups:,} captures and refunds, "
            f"{made.checkouts:,} checkouts, {made.start:%Y-%m-%d} to {made.end:%Y-%m-%d} on its clock.\n"
            f"entityId {made.channel.entity_id}, seed {seed}"
        )

"""Send webhooks again: count with --dry-run first. Delivered, given up and cancelled ones can be replayed."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from gateway.access import audit_log
from gateway.core import clock, identifiers
from gateway.management.option_rows import find_option_entity, find_option_row
from gateway.models import Merchant, WebhookDelivery, WebhookEndpoint
from gateway.models.webhooks import WEBHOOK_KINDS
from gateway.notifications import replay
from gateway.payments.webhook_payloads import build_webhook_payloads


class Command(BaseCommand):
    help = "Send webhooks once more, one or many; --dry-run says how many. docs/webhooks.md"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--entity", required=True, help="entityId of the merchant or of one of its channels")
        parser.add_argument("--endpoint", help="id of an endpoint; all of the merchant's without it")
        parser.add_argument("--delivery", help="id of one delivery, the webhook-id without msg_")
        parser.add_argument("--payment", help="id of a payment")
        parser.add_argument("--kinds", default="", help=f"of {','.join(WEBHOOK_KINDS)}; all unless told")
        parser.add_argument(
            "--states", default=",".join(replay.ENDED_DELIVERY_STATES), help="of delivered,given_up,cancelled,waiting"
        )
        parser.add_argument("--from", dest="since", help="made at this time or later: yyyy-MM-dd HH:mm:ss, UTC")
        parser.add_argument("--to", dest="until", help="made at this time or earlier")
        parser.add_argument(
            "--missed", action="store_true", help="events that --endpoint was never told of; needs --from"
        )
        parser.add_argument("--dry-run", action="store_true", help="count, send nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        merchant = find_option_entity(options["entity"])[0]
        endpoint = _find_endpoint(merchant, options["endpoint"])
        since, until = _parse_time(options, "since", "--from"), _parse_time(options, "until", "--to")
        if options["missed"]:
            self._replay_missed(merchant, endpoint, since, until, dry_run=options["dry_run"])
            return
        selection = replay.ReplaySelection(
            merchant=merchant,
            endpoint=endpoint,
            delivery=_parse_option_id(options, "delivery"),
            payment=_parse_option_id(options, "payment"),
            kinds=_parse_words(options, "kinds", WEBHOOK_KINDS),
            states=_parse_words(options, "states", WebhookDelivery.State.values),
            since=since,
            until=until,
        )
        preview = replay.preview_replay(selection)
        facts = {
            "events": preview.events,
            "payments": preview.payments,
            "off": preview.off,
            "oldest": clock.format_timestamp(preview.oldest) if preview.oldest else None,
            "newest": clock.format_timestamp(preview.newest) if preview.newest else None,
        }
        if not options["dry_run"]:
            facts["replayed"] = sum(replay.replay_deliveries(selection))
            audit_log.record_audit_entry(audit_log.COMMAND_LINE_ACTOR, "replay", merchant, after=facts)
        self.stdout.write(json.dumps(facts))

    def _replay_missed(
        self,
        merchant: Merchant,
        endpoint: WebhookEndpoint | None,
        since: datetime | None,
        until: datetime | None,
        *,
        dry_run: bool,
    ) -> None:
        if endpoint is None or since is None:
            raise CommandError("--missed needs --endpoint and --from.")
        if endpoint.state not in (WebhookEndpoint.State.ACTIVE, WebhookEndpoint.State.PAUSED):
            raise CommandError("The endpoint is not active: activate it first.")
        until = until or clock.merchant_now(merchant)
        facts = {"events": replay.count_missed_events(endpoint, since, until)}
        if not dry_run:
            facts["replayed"] = sum(replay.deliver_missed_events(endpoint, since, until, build_webhook_payloads))
            audit_log.record_audit_entry(audit_log.COMMAND_LINE_ACTOR, "replay", endpoint, after=facts)
        self.stdout.write(json.dumps(facts))


def _find_endpoint(merchant: Merchant, text: str | None) -> WebhookEndpoint | None:
    if text is None:
        return None
    known = WebhookEndpoint.objects.select_related("merchant").filter(merchant=merchant)
    fault = "This merchant has no such endpoint; webhook_endpoint --list prints the ids."
    return find_option_row(known, text.replace("-", ""), fault)


def _parse_option_id(options: dict[str, Any], name: str) -> UUID | None:
    text = options[name]
    if text is None:
        return None
    found = identifiers.parse_id(text.removeprefix("msg_").replace("-", ""))
    if found is None:
        raise CommandError(f"--{name} is an id of 32 lower-case hex digits.")
    return found


def _parse_words(options: dict[str, Any], name: str, known: Any) -> tuple[str, ...]:
    words = tuple(word.strip() for word in options[name].split(",") if word.strip())
    wrong = [word for word in words if word not in known]
    if wrong:
        raise CommandError(f"--{name}: {wrong[0]!r} is none of {', '.join(known)}.")
    return words


def _parse_time(options: dict[str, Any], name: str, option: str) -> datetime | None:
    if options[name] is None:
        return None
    try:
        moment = datetime.fromisoformat(options[name])
    except ValueError:
        raise CommandError(f"{option} is a time such as 2026-11-21 18:07:00, UTC unless it says otherwise.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

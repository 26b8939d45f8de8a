"""Acquirer health: approvals, latencies, circuit breakers, links and the last faults of 24 hours, and what is in doubt.

Figures cover only accounts that the user sees. They are aggregates over a bounded window, read by an index on ids, and
over all that is in doubt, and cached for half a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from gateway.access import permissions
from gateway.backoffice.acquirers import capture_batch_pages
from gateway.backoffice.kit import charts
from gateway.backoffice.kit.entity_names import label_channel
from gateway.backoffice.kit.formatting import name_zone
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.real_time import ROW_TIME_SQL
from gateway.backoffice.operations.dashboard import (
    DASHBOARD_HOURS,
    IN_DOUBT_SQL,
    SCOPE_CONDITION,
    build_first_payments_url,
    build_hour_url,
    build_payments_url,
    query_dashboard,
)
from gateway.backoffice.payments.payment_filters import NO_MERCHANT_ID
from gateway.connectors.routing import list_acquirers
from gateway.core import clock
from gateway.models import AcquirerAccount, BreakerChange, Status
from gateway.models.payments import UNDECIDED
from gateway.payments.states import LifecycleEvent

VIEW_ACQUIRER_PERMISSION: Final = "gateway.view_acquireraccount"
MAX_HEALTH_PAYMENTS: Final = 50_000
"""The newest payments of the window that figures are computed from."""
MAX_SHOWN_ACCOUNTS: Final = 100
MAX_FAULTS_PER_ACCOUNT: Final = 5
"""Faults listed for one account."""
MAX_FAULTS_READ: Final = 500
MAX_CIRCUIT_CHANGES_READ: Final = 500

FAILED_OVER: Final = "LEFT"
"""The status counted at an account whose payment was sent to another account after a failure. An account that declined
before a cascade counts a decline instead."""
_DECLINED_BEFORE: Final = "DECLINED_BEFORE"
"""The status counted at an account that declined a payment which then went to another account."""
_VOIDED: Final = "VOIDED"
"""The status counted at an account whose attempt was voided, so that the payment is the account's again that had
declined it: the attempt was not decided there."""

_RECENT: Final = f"""
WITH recent AS MATERIALIZED (
    SELECT p.id, p.connector, p.acquirer_merchant_id AS account, p.channel_id, p.status,
           {ROW_TIME_SQL.format(id="p.id")} AS at, p.route -> 'tried' AS tried
    FROM gateway_payment p
    WHERE p.id >= %(since)s::uuid AND p.chain = p.id AND p.connector NOT IN ('simulator', 'nobody', '')
      AND {SCOPE_CONDITION.format(table="p")}
    ORDER BY p.id DESC LIMIT {MAX_HEALTH_PAYMENTS}
)
"""  # noqa: S608 - put together out of the constants above
_PAYMENTS: Final = f"""{_RECENT}
SELECT connector, account, channel_id, date_trunc('hour', at, 'UTC'), status, count(*) FROM recent
GROUP BY 1, 2, 3, 4, 5
UNION ALL
SELECT way ->> 'connector', way ->> 'account', channel_id, date_trunc('hour', at, 'UTC'),
    CASE WHEN way ? 'declined' THEN '{_DECLINED_BEFORE}' WHEN way ? 'voided' THEN '{_VOIDED}'
        ELSE '{FAILED_OVER}' END, count(*)
FROM recent, jsonb_array_elements(tried) AS way
WHERE (way ->> 'connector', way ->> 'account') <> (connector, account)
GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 - put together out of the constants above
# The account that was called. Each move to another account is an event, and ends an attempt that is kept in order: as
# many moves as there were before a message, so many attempts. A message has the time of the move that it led to. After
# the last move the payment's own account was called, unless the payment has left it, which keeps that attempt as well.
_ASKED: Final = f"""
CASE WHEN r.tried IS NULL THEN r.account ELSE coalesce(r.tried -> (
    SELECT count(*) FROM gateway_paymentevent v
    WHERE v.payment_id = e.payment_id AND v.event IN ('{LifecycleEvent.REROUTE}', '{LifecycleEvent.CASCADE}')
        AND v.at < e.at
)::integer ->> 'account', r.account) END
"""  # noqa: S608 - put together out of constants
_LATENCIES: Final = f"""{_RECENT}
SELECT e.connector, {_ASKED} AS asked, r.channel_id,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY e.duration_ms),
       percentile_disc(0.95) WITHIN GROUP (ORDER BY e.duration_ms), count(*)
FROM recent r JOIN gateway_acquirerexchange e ON e.payment_id = r.id
WHERE e.kind = 'submit' GROUP BY 1, 2, 3
"""  # noqa: S608 - put together out of the constants above
_FAULTS: Final = f"""{_RECENT}
SELECT e.connector, {_ASKED} AS asked, r.channel_id, r.id, e.at,
       coalesce(e.received ->> 'silence', e.received ->> '{UNDECIDED}', e.received ->> 'unreachable', '')
FROM recent r JOIN gateway_acquirerexchange e ON e.payment_id = r.id
WHERE e.received IS NULL OR e.received ?| ARRAY['silence', '{UNDECIDED}', 'unreachable']
ORDER BY e.id DESC LIMIT {MAX_FAULTS_READ}
"""  # noqa: S608 - put together out of the constants above

AcquirerAccountKey = tuple[str, UUID, str]
"""Connector, channel, merchant id at the acquirer."""


@dataclass(slots=True, kw_only=True)
class AcquirerHealth:
    """Figures of one account. ``hours``: hour → [approved, declined, not decided, failed over]."""

    name: str
    channel: str
    connector: str
    active: bool
    address: str
    link: str
    hours: dict[datetime, list[int]] = field(default_factory=dict)
    p50: int | None = None
    p95: int | None = None
    doubt: int = 0
    breakers: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    batches: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    picture: SafeString = field(default_factory=SafeString)
    decided_here: dict[str, str] = field(default_factory=dict)
    """Filters of the list of payments whose last account this is."""
    moved_on: int = 0
    """Declines here of payments that another account decided in the end: they are in that account's list."""
    shared_hours: set[datetime] = field(default_factory=set)
    """Hours that count payments which are in another account's list."""

    @property
    def approved_link(self) -> str:
        return build_first_payments_url(**self.decided_here, status=Status.APPROVED)

    @property
    def declined_link(self) -> str:
        """Empty where the list would have fewer payments than were declined here."""
        return "" if self.moved_on else build_first_payments_url(**self.decided_here, status=Status.DECLINED)

    @property
    def doubt_link(self) -> str:
        return build_payments_url(**self.decided_here, status=Status.IN_DOUBT)

    def sum(self, place: int) -> int:
        return sum(each[place] for each in self.hours.values())

    @property
    def approved(self) -> int:
        return self.sum(0)

    @property
    def declined(self) -> int:
        return self.sum(1)

    @property
    def left(self) -> int:
        """Number of payments that failed over to another account."""
        return self.sum(3)

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to show but its line in the table."""
        return not (self.hours or self.doubt or self.breakers or self.links or self.batches or self.faults)

    @property
    def rate(self) -> float | None:
        """Approval rate in percent; None if no payment was decided."""
        asked = self.approved + self.declined
        return round(100 * self.approved / asked, 1) if asked else None


def build_health_context(request: HttpRequest) -> dict[str, Any]:
    """The template context of the health page for this user."""
    scope = permissions.find_access_scope(request.user, VIEW_ACQUIRER_PERMISSION)
    rows = AcquirerAccount.objects.filter(scope.where("channel__merchant", "channel")).select_related(
        "channel__merchant"
    )
    listed = list(rows.order_by("-active", "channel__merchant__name", "channel__name", "id")[: MAX_SHOWN_ACCOUNTS + 1])
    found: dict[AcquirerAccountKey, AcquirerHealth] = {
        (row.connector, row.channel_id, row.acquirer_merchant_id): _build_health(row)
        for row in listed[:MAX_SHOWN_ACCOUNTS]
    }
    _add_counts(found, query_dashboard("acquirers", scope, _PAYMENTS))
    for connector, account, channel, count in query_dashboard("in-doubt", scope, IN_DOUBT_SQL):
        if (own := found.get((connector, channel, account))) is not None:
            own.doubt = count
    for connector, account, channel, p50, p95, _n in query_dashboard("acquirer-times", scope, _LATENCIES):
        if (own := found.get((connector, channel, account))) is not None:
            own.p50, own.p95 = int(p50), int(p95)
    _add_faults(found, query_dashboard("acquirer-faults", scope, _FAULTS))
    _add_breakers(found)
    _add_links(found)
    mine = permissions.find_access_scope(request.user, capture_batch_pages.VIEW_CAPTURE_BATCH_PERMISSION)
    for (channel, account), latest in capture_batch_pages.list_latest_batches((key[1] for key in found), mine).items():
        if (own := found.get(("iso8583", channel, account))) is not None:
            own.batches = latest
    accounts = sorted(found.values(), key=lambda own: -sum(own.sum(place) for place in range(4)))
    for own in accounts:
        own.picture = _chart_by_hour(own)
    return {
        "accounts": accounts,
        "latencies": _chart_latencies(accounts),
        "most": MAX_HEALTH_PAYMENTS,
        "cut": MAX_SHOWN_ACCOUNTS if len(listed) > MAX_SHOWN_ACCOUNTS else 0,
        "rules": reverse("admin:gateway_routingrule_changelist"),
    }


def _build_health(row: AcquirerAccount) -> AcquirerHealth:
    return AcquirerHealth(
        name=str(row),
        channel=label_channel(row.channel),
        connector=row.connector,
        active=row.active,
        address=reverse("admin:gateway_acquireraccount_change", args=[row.pk]),
        link=build_payments_url(channel=row.channel.entity_id),
        decided_here={
            "channel": row.channel.entity_id,
            "connector": row.connector,
            "account": row.acquirer_merchant_id or NO_MERCHANT_ID,
        },
    )


_PLACES: Final[Mapping[str, int]] = {
    Status.APPROVED: 0, Status.DECLINED: 1, _DECLINED_BEFORE: 1, FAILED_OVER: 3,
}  # fmt: skip


def _add_counts(found: Mapping[AcquirerAccountKey, AcquirerHealth], rows: Iterable[tuple[Any, ...]]) -> None:
    for connector, account, channel, hour, status, count in rows:
        if (own := found.get((connector, channel, account))) is None:
            continue
        own.hours.setdefault(hour, [0, 0, 0, 0])[_PLACES.get(status, 2)] += count
        own.moved_on += count if status == _DECLINED_BEFORE else 0
        if status in (FAILED_OVER, _DECLINED_BEFORE, _VOIDED):
            own.shared_hours.add(hour)


def _chart_by_hour(own: AcquirerHealth) -> SafeString:
    now = clock.real_now().replace(minute=0, second=0, microsecond=0)
    hours = [now - timedelta(hours=back) for back in range(DASHBOARD_HOURS - 1, -1, -1)]
    rows = [
        (
            f"{timezone.localtime(hour):%H}",
            tuple(own.hours.get(hour, [0, 0, 0, 0])),
            "" if hour in own.shared_hours else build_hour_url(hour, **own.decided_here),
        )
        for hour in hours
    ]
    kinds = (("good", _("approved")), ("bad", _("declined")), ("note", _("not decided")), ("gone", _("went on")))
    return charts.draw_stacked_bars(
        rows, kinds, title=_("%(name)s by hour (%(zone)s)") % {"name": own.name, "zone": name_zone()}
    )


def _chart_latencies(accounts: Sequence[AcquirerHealth]) -> SafeString:
    """Median and 95th percentile of answer times."""
    rows = [
        (own.name, (own.p50, max(0, (own.p95 or 0) - own.p50)), own.address) for own in accounts if own.p50 is not None
    ]
    kinds = (("good", _("half of them, ms")), ("note", _("from there to 95 of 100, ms")))
    return charts.draw_stacked_bars(rows, kinds, title=_("How long answers took"))


def _add_faults(found: Mapping[AcquirerAccountKey, AcquirerHealth], rows: Iterable[tuple[Any, ...]]) -> None:
    for connector, account, channel, payment, at, why in rows:
        own = found.get((connector, channel, account))
        if own is not None and len(own.faults) < MAX_FAULTS_PER_ACCOUNT:
            address = build_payment_page_url(payment)
            own.faults.append({"at": at, "why": why or _("no answer"), "address": address})


def _add_breakers(found: Mapping[AcquirerAccountKey, AcquirerHealth]) -> None:
    """Circuit breakers: each process's newest report about each account."""
    since = clock.real_now() - timedelta(hours=DASHBOARD_HOURS)
    channels = {key[1] for key in found}
    rows = BreakerChange.objects.filter(since__gte=since, channel__in=channels).order_by("-id")[
        :MAX_CIRCUIT_CHANGES_READ
    ]
    seen: set[tuple[str, AcquirerAccountKey]] = set()
    for row in rows:
        if row.channel is None:
            continue
        key = (row.connector, row.channel, row.acquirer_merchant_id)
        if key in found and (row.process, key) not in seen:
            tone = {"closed": "good", "half-open": "warn"}.get(row.state, "bad")
            found[key].breakers.append({"row": row, "tone": tone, "words": _(_WORDS[row.state])})
        seen.add((row.process, key))


_WORDS: Final = {
    "closed": gettext_noop("closed again"),
    "half-open": gettext_noop("half open: single payments try it"),
    "open": gettext_noop("open: left alone"),
}


def _add_links(found: Mapping[AcquirerAccountKey, AcquirerHealth]) -> None:
    """Lasting links of this process's connectors (``link_states``: label, merchant, state, since, why)."""
    for name, connector in list_acquirers().items():
        states = getattr(connector, "link_states", None)
        for one in states() if states is not None else ():
            for key, own in found.items():
                if key[0] == name and key[2] == one.merchant:
                    tone = {"up": "good", "down": "bad"}.get(one.state, "warn")
                    own.links.append(
                        {"label": one.label, "state": one.state, "tone": tone, "why": one.why, "since": one.since}
                    )

"""The card-testing guard: declines a burst of failing cards from one address, device or BIN.

Card thieves try stolen or guessed numbers one after another; most fail. The guard counts failures minus approvals per
key within a window, so ordinary declines never add up: with one decline in seven, the chance that traffic ever reaches
ten failures more than approvals is about 3 in 10⁸. Approvals are counted only while a key has more failures than
approvals, so successful traffic writes nothing and builds up no credit.

It costs no round trip: the counts are read in the statement that begins the payment and written in the one that
completes it. Parallel attempts are not counted yet: a burst is stopped by the attempts completed before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_network
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.core import clock, result_codes
from gateway.core import document as d
from gateway.core.result_codes import ResultFamily
from gateway.db.statement import WriteStatement
from gateway.models import CardTestingCount
from gateway.models.entities import CARD_TESTING_SETTINGS
from gateway.risk.evaluation import RiskOutcome, RiskReason, RiskVerdict
from gateway.risk.fields import parse_ip_address
from gateway.timers.registry import SWEEP_INTERVAL_S, Timer
from gateway.vault.sealing import current_vault

WINDOW_SLICES: Final = 5
"""Slices in which a window is counted: its length is exact to one slice."""
COUNTER_SHARDS: Final = 4
ADDRESS_KEY, BIN_KEY, DEVICE_KEY = "address", "bin", "device"
CARD_TESTING_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {ADDRESS_KEY: "800.120.102", DEVICE_KEY: "800.120.101", BIN_KEY: "800.300.401"}
)
"""Key → the result code of a payment that the guard declines."""
_WORDS: Final = {ADDRESS_KEY: "from this address", DEVICE_KEY: "from this device", BIN_KEY: "with this BIN"}
_DEVICES: Final = (
    "customer.browserFingerprint.id", "customer.browser.deviceId", "customer.app.deviceId",
    "customer.browserFingerprint.value",
)  # fmt: skip
CARD_FAILURE_FAMILIES: Final = frozenset(
    {ResultFamily.REJECTED_BANK, ResultFamily.REJECTED_BLACKLIST, ResultFamily.ACCOUNT, ResultFamily.ADVICE_BLOCK}
)
"""Declines that count as a card failure. Others (acquirer unreachable, soft decline, missing authentication, our own
rules) say nothing about the card, and an outage must not lock shoppers out."""

# One query per key, with scalar parameters: with arrays the planner makes a new plan each time.
_SELECT_COUNTS: Final = """
SELECT coalesce(sum(failed - passed), 0) FROM gateway_cardtestingcount
WHERE merchant_id = %s::uuid AND kind = %s::varchar AND key = %s::bytea AND bucket > %s::bigint
    AND bucket <= %s::bigint
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTestingLimits:
    """The guard's limits. ``failures``: failed minus approved cards of one address or device that stop it;
    ``bin_failures``: the same of one BIN, which many shoppers share. 0 switches a limit off. ``window_s``: seconds."""

    enabled: bool = True
    failures: int = 10
    bin_failures: int = 60
    window_s: int = 600

    def reached(self, kind: str, net: int) -> bool:
        """Whether a key with ``net`` failures minus approvals is over its limit."""
        limit = self.bin_failures if kind == BIN_KEY else self.failures
        return 0 < limit <= net


CARD_TESTING_SHAPE: Final = d.object_shape(
    enabled=d.optional_member(d.boolean_shape),
    **{name: d.optional_member(d.integer_shape(*limits)) for name, limits in CARD_TESTING_SETTINGS.items()},
)
_NAMES: Final = {
    "enabled": "enabled", "failures": "failures", "binFailures": "bin_failures", "windowSeconds": "window_s",
}  # fmt: skip


def resolve_card_testing_limits(own: Mapping[str, Any]) -> CardTestingLimits:
    """A channel's limits: its own, else those of the settings. ``own``: as parsed by CARD_TESTING_SHAPE."""
    found = {ours: own[name] for name, ours in _NAMES.items() if own.get(name) is not None}
    shortest, longest = CARD_TESTING_SETTINGS["windowSeconds"]
    return CardTestingLimits(
        **{
            "enabled": settings.GATEWAY_CARD_TESTING_GUARD,
            "failures": settings.GATEWAY_CARD_TESTING_FAILURES,
            "bin_failures": settings.GATEWAY_CARD_TESTING_BIN_FAILURES,
            "window_s": min(longest, max(shortest, settings.GATEWAY_CARD_TESTING_WINDOW_S)),
            **found,
        }
    )


@dataclass(slots=True, kw_only=True)
class CardTestingWatch:
    """One card payment watched by the guard: its keys, and their counts when it began."""

    merchant: UUID
    limits: CardTestingLimits
    keys: Mapping[str, bytes]
    bucket: int
    shard: int
    net: Mapping[str, int] = field(default_factory=dict)

    def add_count_query(self, write: WriteStatement) -> None:
        """Query the counts of the window that ends now, in the statement that begins the payment. Counts of later
        slices, made while the merchant's test clock was ahead, are left out."""
        for kind, key in self.keys.items():
            write.returning(kind, _SELECT_COUNTS, (self.merchant, kind, key, self.bucket - WINDOW_SLICES, self.bucket))

    def read_counts(self, write: WriteStatement) -> None:
        """Read the counts that the begin statement returned."""
        self.net = {kind: int(write.returned[kind]) for kind in self.keys if kind in write.returned}

    def verdict(self) -> RiskVerdict | None:
        """The decline for a key over its limit, or None."""
        for kind in self.keys:
            net = self.net.get(kind, 0)
            if self.limits.reached(kind, net):
                minutes = max(1, self.limits.window_s // 60)
                why = f"card testing suspected: {net} more failed than approved cards {_WORDS[kind]} in {minutes} min"
                reason = RiskReason(rule="card-testing guard", why=why, verdict="decline")
                return RiskVerdict(outcome=RiskOutcome.DECLINE, code=CARD_TESTING_CODES[kind], reasons=(reason,))
        return None

    def count(self, write: WriteStatement, code: str) -> None:
        """Count the outcome in the statement that completes the payment with ``code``."""
        for kind, key in self.keys.items():
            failed, passed = weigh_outcome(code, self.net.get(kind, 0))
            if failed or passed:
                write.increment_counts(
                    CardTestingCount,
                    {"failed": failed, "passed": passed},
                    merchant_id=self.merchant,
                    kind=kind,
                    key=key,
                    bucket=self.bucket,
                    shard=self.shard,
                    at=clock.real_now(),
                )


def weigh_outcome(code: str, net: int) -> tuple[int, int]:
    """(failed, passed): what a payment with result ``code`` adds to a key with ``net`` failures minus approvals. An
    approval offsets earlier failures only, never later ones."""
    if result_codes.find_result_family(code) in CARD_FAILURE_FAMILIES:
        return 1, 0
    return 0, int(net > 0 and result_codes.is_approved(code))


def build_card_testing_watch(
    parameters: Mapping[str, str],
    *,
    merchant: UUID,
    payment: UUID,
    card_bin: str,
    own: Mapping[str, Any],
    now: datetime,
) -> CardTestingWatch | None:
    """Build the watch of a card that a shopper entered; None if the channel has switched the guard off.

    ``parameters``: by full name; ``own``: the channel's limits; ``now``: the merchant's clock.
    """
    limits = resolve_card_testing_limits(own)
    if not limits.enabled:
        return None
    sent = {
        ADDRESS_KEY: resolve_shopper_network(parameters.get("customer.ip", "")),
        BIN_KEY: card_bin,
        DEVICE_KEY: next((parameters[name] for name in _DEVICES if parameters.get(name)), ""),
    }
    vault = current_vault()
    return CardTestingWatch(
        merchant=merchant,
        limits=limits,
        # Always in one order, so that statements that raise several counts cannot deadlock.
        keys={
            kind: vault.fingerprint(f"guard:{limits.window_s}:{kind}:{value}")
            for kind, value in sorted(sent.items())
            if value
        },
        bucket=int(now.timestamp() // (limits.window_s / WINDOW_SLICES)),
        shard=payment.int % COUNTER_SHARDS,
    )


def resolve_shopper_network(address: str) -> str:
    """The network of one shopper: an IPv4 address, or the /64 of an IPv6 address."""
    ip = parse_ip_address(address)
    if ip is None:
        return address.strip().lower()
    return str(ip if ip.version == 4 else ip_network((ip, 64), strict=False))


_COUNT_RETENTION: Final = timedelta(hours=2)


def _delete_old_counts() -> int:
    return CardTestingCount.objects.filter(at__lt=clock.real_now() - _COUNT_RETENTION).delete()[0]


TIMER: Final = Timer(
    name="card testing",
    run=_delete_old_counts,
    every_s=SWEEP_INTERVAL_S,
    about="Forget the guard's counters.",
    # Due while there is any: which is the oldest is in no index.
    earliest_due="""
        SELECT statement_timestamp() FROM gateway_cardtestingcount
        ORDER BY merchant_id, kind, key, bucket, shard LIMIT 1""",
)

"""The guard against card testing: a burst of failing cards from one address, device or BIN is stopped early.

Thieves try stolen or guessed numbers one after another; most fail. What the guard counts is failures minus approvals,
per key, within a window, so ordinary declines never add up: with one decline in seven, the chance that a stretch of
traffic ever reaches ten failures more than approvals is about 3 in 10⁸. Approvals are only counted while a key has
more failures than approvals, so traffic that succeeds is never written about, and nothing of it is held in its favour.

It costs no round trip: the look rides in the statement that begins the payment, the counting in the one that ends it.
Attempts that are under way at the same time are not counted yet: a burst is stopped by those that came before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_network
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway import clock, results
from gateway import document as d
from gateway.models import CardTestingCount
from gateway.models.entities import CARD_TESTING
from gateway.results import Family
from gateway.risk.fields import address_of
from gateway.risk.screening import Outcome, Reason, Verdict
from gateway.rows import Write
from gateway.vault import vault

SLICES: Final = 5
"""A window is counted in so many slices, so it is exact to a fifth."""
SHARDS: Final = 4
ADDRESS, BIN, DEVICE = "address", "bin", "device"
CODES: Final[Mapping[str, str]] = MappingProxyType({ADDRESS: "800.120.102", DEVICE: "800.120.101", BIN: "800.300.401"})
"""Key → the code of a payment that is stopped."""
_WORDS: Final = {ADDRESS: "from this address", DEVICE: "from this device", BIN: "with this BIN"}
_DEVICES: Final = (
    "customer.browserFingerprint.id", "customer.browser.deviceId", "customer.app.deviceId",
    "customer.browserFingerprint.value",
)  # fmt: skip
FAILURES: Final = frozenset({Family.REJECTED_BANK, Family.REJECTED_BLACKLIST, Family.ACCOUNT, Family.ADVICE_BLOCK})
"""Declines that say something about the card. Others (an acquirer that is down, a soft decline, a missing
authentication, our own rules) say nothing, and an outage must not lock shoppers out."""

# One question for each key, in scalars: with arrays the planner hopes for a better plan each time, and plans anew.
_LOOK: Final = """
SELECT coalesce(sum(failed - passed), 0) FROM gateway_cardtestingcount
WHERE merchant_id = %s::uuid AND kind = %s::varchar AND key = %s::bytea AND bucket > %s::bigint
    AND bucket <= %s::bigint
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``failures``: so many more failed than approved cards from one address or device; ``bin_failures`` with one
    BIN, which many shoppers share. 0 switches one off. ``window_s``: seconds."""

    enabled: bool = True
    failures: int = 10
    bin_failures: int = 60
    window_s: int = 600

    def reached(self, kind: str, net: int) -> bool:
        """Whether a key that stands at ``net`` is stopped."""
        limit = self.bin_failures if kind == BIN else self.failures
        return 0 < limit <= net


SHAPE: Final = d.record(
    enabled=d.may(d.flag), **{name: d.may(d.whole(*limits)) for name, limits in CARD_TESTING.items()}
)
_NAMES: Final = {
    "enabled": "enabled", "failures": "failures", "binFailures": "bin_failures", "windowSeconds": "window_s",
}  # fmt: skip


def limits_of(own: Mapping[str, Any]) -> Limits:
    """A channel's limits: its own, else the settings'. ``own`` as SHAPE reads it."""
    found = {ours: own[name] for name, ours in _NAMES.items() if own.get(name) is not None}
    shortest, longest = CARD_TESTING["windowSeconds"]
    return Limits(
        **{
            "enabled": settings.GATEWAY_CARD_TESTING_GUARD,
            "failures": settings.GATEWAY_CARD_TESTING_FAILURES,
            "bin_failures": settings.GATEWAY_CARD_TESTING_BIN_FAILURES,
            "window_s": min(longest, max(shortest, settings.GATEWAY_CARD_TESTING_WINDOW_S)),
            **found,
        }
    )


@dataclass(slots=True, kw_only=True)
class Watch:
    """One card payment under the guard: its keys, and what was counted for them when it began."""

    merchant: UUID
    limits: Limits
    keys: Mapping[str, bytes]
    bucket: int
    shard: int
    net: Mapping[str, int] = field(default_factory=dict)

    def look(self, write: Write) -> None:
        """Ask for the counts of the window that ends now, in the statement that begins the payment. What was counted
        later, while the merchant's clock stood ahead, is not part of it."""
        for kind, key in self.keys.items():
            write.bring(kind, _LOOK, (self.merchant, kind, key, self.bucket - SLICES, self.bucket))

    def looked(self, write: Write) -> None:
        self.net = {kind: int(write.brought[kind]) for kind in self.keys if kind in write.brought}

    def verdict(self) -> Verdict | None:
        """A decline for a key that is over its limit; None lets the payment go on."""
        for kind in self.keys:
            net = self.net.get(kind, 0)
            if self.limits.reached(kind, net):
                minutes = max(1, self.limits.window_s // 60)
                why = f"card testing suspected: {net} more failed than approved cards {_WORDS[kind]} in {minutes} min"
                reason = Reason(rule="card-testing guard", why=why, verdict="decline")
                return Verdict(outcome=Outcome.DECLINE, code=CODES[kind], reasons=(reason,))
        return None

    def count(self, write: Write, code: str) -> None:
        """Count how the payment ended, in the statement that ends it."""
        for kind, key in self.keys.items():
            failed, passed = weight(code, self.net.get(kind, 0))
            if failed or passed:
                write.raise_counts(
                    CardTestingCount, {"failed": failed, "passed": passed}, merchant_id=self.merchant, kind=kind,
                    key=key, bucket=self.bucket, shard=self.shard, at=clock.real(),
                )  # fmt: skip


def weight(code: str, net: int) -> tuple[int, int]:
    """(failed, passed): what a payment that ended with ``code`` adds to a key that stood at ``net`` failures more than
    approvals. An approval counts only against failures, never ahead of them."""
    if results.family(code) in FAILURES:
        return 1, 0
    return 0, int(net > 0 and results.is_approved(code))


def watch(
    parameters: Mapping[str, str],
    *,
    merchant: UUID,
    payment: UUID,
    card_bin: str,
    own: Mapping[str, Any],
    now: datetime,
) -> Watch | None:
    """The watch over a card that a shopper has just sent; None where the channel has switched the guard off.

    ``own``: the channel's limits; ``now``: the merchant's clock.
    """
    limits = limits_of(own)
    if not limits.enabled:
        return None
    sent = {
        ADDRESS: network_of(parameters.get("customer.ip", "")),
        BIN: card_bin,
        DEVICE: next((parameters[name] for name in _DEVICES if parameters.get(name)), ""),
    }
    keys = vault()
    return Watch(
        merchant=merchant,
        limits=limits,
        # Always in one order: statements that raise several counts must not wait for each other in a circle.
        keys={
            kind: keys.fingerprint(f"guard:{limits.window_s}:{kind}:{value}")
            for kind, value in sorted(sent.items())
            if value
        },
        bucket=int(now.timestamp() // (limits.window_s / SLICES)),
        shard=payment.int % SHARDS,
    )


def network_of(address: str) -> str:
    """What one shopper has: an IPv4 address, or the /64 of an IPv6 one, whose every address is theirs."""
    ip = address_of(address)
    if ip is None:
        return address.strip().lower()
    return str(ip if ip.version == 4 else ip_network((ip, 64), strict=False))

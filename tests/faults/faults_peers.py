"""What is done to the lines to other processors and to these themselves, and to us while we wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from tests.faults.faults import (
    BACK_WITHIN_S,
    BEHAVIOUR_ODDS,
    Fault,
    Seen,
    Stage,
    kill_child,
    kill_role,
    serves,
)
from tests.faults.peers.duty import Peers
from tests.faults.peers.misdeeds import CUT_AFTER, WAYS
from tests.faults.peers.sides import HELD_S, Side, hold
from tests.faults.processes import eventually

SLOW_S: Final = 0.3
AWAY_S: Final = 3.0
LINES_AT_MOST_S: Final = 30.0
"""For a misdeed on every line: a client of one that is waited for asks nothing meanwhile."""
MISDEEDS_EACH: Final = 3
"""On every line, for one fault; one of them is enough for the fault to have fired."""


def _peers(stage: Stage) -> Peers:
    assert isinstance(stage.peers, Peers)
    return stage.peers


def _pay_again(stage: Stage) -> bool:
    """Every peer approves payments, and payments in doubt are asked about."""
    peers = _peers(stage)
    peers.steer({})
    return all(peers.pays(side, BACK_WITHIN_S) for side in peers.sides)


def _misbehave(stage: Stage, way: str) -> Seen:
    """Every line misbehaves in this one way for a while; seen when each of them did."""
    peers = _peers(stage)
    before = peers.seen(way)

    def since() -> dict[str, int]:
        return {name: count - before[name] for name, count in peers.seen(way).items()}

    peers.steer({way: BEHAVIOUR_ODDS})
    # The bank hears of us once in a while only: whether it did is told, and not waited for.
    lively = [side.name for side in peers.sides if side is not peers.bank]
    eventually(lambda: all(since()[name] >= MISDEEDS_EACH for name in lively if name in before), LINES_AT_MOST_S, 0.3)
    back = _pay_again(stage)
    told = since()
    fired = bool(told) and all(told[name] for name in lively if name in told)
    return Seen(fired, back, ", ".join(f"{name} {count}" for name, count in told.items()))


def _away(
    stage: Stage, side: Callable[[Peers], Side], go: Callable[[Peers], bool], back: Callable[[Peers], None]
) -> Seen:
    """Stop one peer for a while, and start it again on its stored data."""
    peers = _peers(stage)
    if (chosen := side(peers)) not in peers.sides:
        return Seen(False, True, chosen.missing)
    moment = time.time()
    fired = go(peers)
    time.sleep(AWAY_S)
    back(peers)
    return Seen(fired, _pay_again(stage), f"for {AWAY_S:g} s", moment)


def _held(stage: Stage, side: Callable[[Peers], Side], pid: Callable[[Peers], int]) -> Seen:
    peers = _peers(stage)
    if (chosen := side(peers)) not in peers.sides:
        return Seen(False, True, chosen.missing)
    fired = hold(pid(peers))
    return Seen(fired, _pay_again(stage), f"for {HELD_S:g} s")


def _while_slow(stage: Stage, strike: Callable[[Stage], Seen]) -> Seen:
    """Part of us dies while the peers take their time, so that it has questions under way there."""
    peers = _peers(stage)
    peers.steer({}, delay_s=SLOW_S)
    time.sleep(2 * SLOW_S)
    seen = strike(stage)
    return Seen(seen.fired, seen.back and _pay_again(stage), seen.note, seen.moment)


def _while_in_doubt(stage: Stage, strike: Callable[[Stage], Seen]) -> Seen:
    """Part of us dies while it asks about payments whose answers were lost."""
    peers = _peers(stage)
    before = peers.seen(CUT_AFTER)
    peers.steer({CUT_AFTER: 2 * BEHAVIOUR_ODDS})
    lost = eventually(lambda: sum(peers.seen(CUT_AFTER).values()) > sum(before.values()) + 2, LINES_AT_MOST_S, 0.1)
    seen = strike(stage)
    return Seen(seen.fired and lost, seen.back and _pay_again(stage), seen.note, seen.moment)


def _recovers(stage: Stage) -> bool:
    return stage.recovers()


def _kill_bank(peers: Peers) -> bool:
    peers.bank.kill()
    return True


def _kill_first(peers: Peers) -> bool:
    peers.pair.first.kill()
    return True


def _shut_keyed(peers: Peers) -> bool:
    peers.keyed.tap.shut()
    return True


PEERS: Final = (
    *(
        Fault(name=f"peers: {way}", group="peers", stops_acquirer=True, strike=partial(_misbehave, way=way))
        for way in WAYS
    ),
    Fault(name="iso8583sim: SIGSTOP 3 s", group="peers", stops_acquirer=True,
          strike=partial(_held, side=lambda peers: peers.iso, pid=lambda peers: peers.iso.host.peer.pid)),
    Fault(name="localstripe: SIGSTOP 3 s", group="peers", stops_acquirer=True,
          strike=partial(_held, side=lambda peers: peers.core, pid=lambda peers: peers.core.peer.pid)),
    Fault(name="localstripe: kill -9", group="peers", stops_acquirer=True,
          strike=partial(_away, side=lambda peers: peers.core, go=lambda peers: peers.core.kill(),
                         back=lambda peers: peers.core.up())),
    Fault(name="own card API: gone", group="peers", stops_acquirer=True,
          strike=partial(_away, side=lambda peers: peers.keyed, go=_shut_keyed,
                         back=lambda peers: peers.keyed.tap.open())),
    Fault(name="mock-bank: kill -9", group="peers", stops_acquirer=True,
          strike=partial(_away, side=lambda peers: peers.bank, go=_kill_bank, back=lambda peers: peers.bank.up())),
    Fault(name="first of two acquirers: kill -9", group="peers", stops_acquirer=True,
          strike=partial(_away, side=lambda peers: peers.pair, go=_kill_first,
                         back=lambda peers: peers.pair.first.back())),
    Fault(name="web worker, peers slow: kill -9", group="peers",
          strike=partial(_while_slow, strike=partial(kill_child, role="web", works=serves))),
    Fault(name="Celery worker, peers in doubt: kill -9", group="peers", stops_ticks=True, stops_acquirer=True,
          strike=partial(_while_in_doubt, strike=partial(kill_role, role="worker", works=_recovers))),
)  # fmt: skip
"""Faults of group "peers": not tested where their programs are not installed (``make external`` installs them)."""

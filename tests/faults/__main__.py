"""`python -m tests.faults [--seconds N] [--quick] [--only web,postgres] [--seed N]`: kill what runs and compare.

Exit code 0: every fault fired and nothing is wrong. 1: something is lost, doubled, over a limit, declined without
evidence, still open or too late. 2: nothing is wrong, and some fault never fired ("not tested").
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.faults import audit, audit_accounts, audit_exemptions, books, duties, phases, races, report, shoppers, timing
from tests.faults import faults as on_parts
from tests.faults.client import Journal
from tests.faults.demo_shop import count_open, open_demo_shop
from tests.faults.faults import BACK_WITHIN_S, Fault, Stage, Strike
from tests.faults.faults_away import AWAY, JOURNAL
from tests.faults.faults_peers import PEERS
from tests.faults.held_parts import HeldParts
from tests.faults.load import CLIENTS, Load
from tests.faults.peers.duty import Peers
from tests.faults.processes import eventually
from tests.faults.report import say
from tests.faults.stack import NotUpError, Stack
from tests.faults.stored_cards import StoredCards

FAULTS: Final = (*on_parts.FAULTS, *AWAY, *PEERS)
GROUPS: Final = tuple(dict.fromkeys(fault.group for fault in FAULTS))
ACQUIRER_TIMEOUT_S: Final = 2
"""The product's default is 10: with 2 there are more payments in doubt in the same time."""
LATE_MS: Final = 3_500
FULL_S: Final = 210.0
SETTLED_WITHIN_S: Final = 120.0
CALM_S: Final = (1.0, 3.0)
RACES: Final = 4


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seconds", type=float, default=FULL_S, help=f"of faults under load, {FULL_S:g} unless told")
    parser.add_argument("--quick", action="store_true", help="each fault once")
    parser.add_argument("--only", default="", help=f"groups of faults: {', '.join(GROUPS)}")
    parser.add_argument("--seed", type=int, default=None, help="of the order and the load; printed by each run")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    parser.add_argument("--broker", default="", help="URL of a broker that something else starts, and starts again")
    parser.add_argument("--broker-pid", type=Path, help="the file with its process id; without it, it is not killed")
    parser.add_argument("--worker-processes", type=int, default=1, help="1: a worker with threads; more: a pool")
    options = parser.parse_args(arguments)
    groups = {name.strip() for name in options.only.split(",") if name.strip()} or set(GROUPS)
    if unknown := groups - set(GROUPS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    seed = options.seed if options.seed is not None else secrets.randbelow(1_000_000)
    faults = [fault for fault in FAULTS if fault.group in groups and _fits(fault, options.broker, options.broker_pid)]
    if options.worker_processes == 1:
        faults = [fault for fault in faults if fault.name != on_parts.POOL_CHILD_KILLED]
    # The load's declines all come from one test card: the guard would rightly stop them before the acquirer.
    stack = Stack(
        broker=options.broker,
        broker_pid=options.broker_pid,
        GATEWAY_ACQUIRER_TIMEOUT_S=str(ACQUIRER_TIMEOUT_S),
        GATEWAY_CARD_TESTING_GUARD="false",
        GATEWAY_SHOPPER_DEADLINE_S=str(shoppers.SHOPPER_DEADLINE_S),
        GATEWAY_WORKER_PROCESSES=str(options.worker_processes),
    )
    code = 1
    try:
        code = run(stack, faults, seconds=0.0 if options.quick else options.seconds, seed=seed)
    finally:
        stack.stop()
        if options.keep or code == 1:
            say(f"The folder of the run is kept: {stack.folder}")
        else:
            stack.remove()
    return code


def _fits(fault: Fault, broker: str, pid: Path | None) -> bool:
    """Whether a fault can strike this broker: our own, or one of which we know less."""
    return not broker or fault.group != "broker" or (pid is not None and fault.name not in on_parts.VALKEY_ONLY)


def run(stack: Stack, faults: Sequence[Fault], *, seconds: float, seed: int) -> int:
    """One run on a fresh installation; the exit code."""
    stack.start()
    shop = open_demo_shop(stack)
    say(f"seed {seed}; the product runs on port {stack.port}")
    raced = races.run(shop, RACES)
    stage = Stage(stack=stack, shop=shop, late_ms=LATE_MS, dice=random.Random(seed))
    stage.steer()
    if not stage.recovers():
        raise NotUpError("payments in doubt are not asked about, before anything was done to the product")
    load = Load(stack.folder, shop=shop, seed=seed)
    owing = [duty(stack, shop, seed) for duty in duties.DUTIES]
    peers = next(duty for duty in owing if isinstance(duty, Peers))
    stored = next(duty for duty in owing if isinstance(duty, StoredCards))
    parts = next(duty for duty in owing if isinstance(duty, HeldParts))
    stage.peers = peers
    peers.spread(seconds)
    if peers.missing:
        say(f"not tested: {', '.join(peers.missing)}")
    began = time.time()
    load.start()
    for duty in owing:
        duty.start()
    try:
        strikes, hurt = strike(stage, faults, load, seconds)
    finally:
        ended = [load.stop(), *(duty.stop() for duty in owing)]
    took_s = time.time() - began
    stage.quiet()
    say("load and faults have stopped; waiting until no payment is open")
    shoppers.move_clock(shop.late_client())  # nobody comes any more
    waited = time.monotonic()
    eventually(lambda: sum(duty.owed() for duty in owing) == 0 == count_open(stack), SETTLED_WITHIN_S, 0.5)
    waited_s = time.monotonic() - waited
    journal = books.journal(
        [*load.journals, *peers.journals, *stored.journals, *parts.journals, stack.folder / JOURNAL]
    )
    replays = replay(shop, (peers, stored, parts), stack.folder, journal)
    return judge(
        stack,
        faults,
        strikes,
        hurt,
        raced,
        journal,
        replays,
        owing,
        seed=seed,
        began=began,
        took_s=took_s,
        waited_s=waited_s,
        broken=[
            *load.broken,
            *(text for duty in owing for text in duty.broken),
            *([] if all(ended) else ["a client did not end"]),
        ],
    )


def strike(stage: Stage, faults: Sequence[Fault], load: Load, seconds: float) -> tuple[list[Strike], dict[str, int]]:
    """Every fault once, in an order of chance, and again until ``seconds`` are over."""
    end = time.monotonic() + seconds
    strikes: list[Strike] = []
    hurt: dict[str, int] = {}
    first = True
    while first or time.monotonic() < end:
        order = list(faults)
        stage.dice.shuffle(order)
        for fault in order:
            if not first and time.monotonic() > end:
                break
            time.sleep(stage.dice.uniform(*CALM_S))
            before = load.hurt
            done = fault.fire(stage)
            hurt[fault.name] = hurt.get(fault.name, 0) + load.hurt - before
            strikes.append(done)
            mark = "fired" if done.fired else "did not fire"
            back = f"back after {done.back - done.at:.1f} s" if done.back else f"not back within {BACK_WITHIN_S:g} s"
            say(f"  {fault.name:<38} {mark}, {back} {done.note}")
        first = False
    return strikes, hurt


def replay(
    shop: races.Shop,
    others: Sequence[Peers | StoredCards | HeldParts],
    folder: Path,
    journal: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Every key that was answered, once more with the same request; what came back. ``others``: duties with shops of
    their own."""
    heard = audit.last_answers(journal)
    asked = {line["key"]: line for line in journal if line["kind"] == "asks" and line["key"] in heard}
    todo = list(asked.values())
    files = [folder / f"replay-{number}.jsonl" for number in range(CLIENTS)]

    def work(number: int) -> None:
        note = Journal(path=files[number])
        own = [client for duty in others for client in duty.clients(note)]
        clients = {one.name: one for one in (shop.client(note), shop.late_client(note), *own)}
        for line in todo[number::CLIENTS]:
            clients[line["shop"]].pay(line["key"], line["fields"], path=line["path"])
        for client in clients.values():
            client.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [line for line in books.journal(files) if line["kind"] == "POST" and line.get("status", 500) < 500]


def windows(
    faults: Sequence[Fault], strikes: Sequence[Strike], began: float
) -> tuple[list[timing.Window], list[timing.Window]]:
    """When nobody could ask, and when asking was of no use: the first, and the first with the acquirer's absences.
    Until the load ``began``, the worker may not have been up yet. What was not seen to come back is told as such, and
    excuses no more than the time it was waited for."""
    by_name = {fault.name: fault for fault in faults}
    down, away = [(0.0, began)], []
    for one in strikes:
        fault, end = by_name[one.fault], (one.back or one.at + BACK_WITHIN_S) + 1
        if fault.stops_ticks:
            down.append((one.at, end))
        if fault.stops_acquirer:
            away.append((one.at, end))
    return down, [*down, *away]


def judge(
    stack: Stack,
    faults: Sequence[Fault],
    strikes: Sequence[Strike],
    hurt: Mapping[str, int],
    raced: Sequence[races.RaceResult],
    journal: Sequence[Mapping[str, Any]],
    replays: Sequence[Mapping[str, Any]],
    owing: Sequence[duties.Duty],
    *,
    seed: int,
    began: float,
    took_s: float,
    waited_s: float,
    broken: Sequence[str],
) -> int:
    """Compare, print and write down."""
    with stack.connect() as connection:
        payments, keys, aside = books.ours(connection), books.keys(connection), books.aside(connection)
    acquirer = books.acquirer(stack.acquirer_log())
    findings = audit.find_all(payments, acquirer, journal, keys, replays, aside)
    stopping = {fault.name for fault in faults if fault.stops_ticks}
    for duty in owing:
        findings += duty.findings([one for one in strikes if one.fault in stopping])
    visits = shoppers.done(journal)
    down, away = windows(faults, strikes, began)
    first, settled = timing.first_inquiries(payments, down), timing.settlements(payments, away)
    tries = [line for line in journal if line["kind"] in ("POST", "GET")]
    killed = phases.of_kills(strikes, journal, payments, acquirer, keys)
    statuses: dict[str, int] = {}
    for line in tries:
        name = str(line.get("status", "none"))
        statuses[name] = statuses.get(name, 0) + 1
    counts = {
        "seconds of load": f"{took_s:.0f}, then {waited_s:.0f} until nothing was open",
        "payments in our books": len(payments),
        "standing at the acquirer": len(acquirer.standing),
        "once in doubt": sum(timing.in_doubt_at(one) is not None for one in payments.values()),
        "taken back at the acquirer": f"{len(acquirer.voided)} booked, {len(acquirer.refused_later)} not yet",
        "3-D Secure, at a bank, registrations": f"{len(aside.authentications)}, {len(aside.orders)}, "
        f"{sum(len(made) for made in aside.registrations.values())}",
        "went on to a second acquirer": audit_accounts.count_second_acquirers(payments),
        "exemptions": audit_exemptions.count_exemptions(payments, aside),
        "keys asked, replayed": f"{len(audit.last_answers(journal))}, {len(replays)}",
        "tries by HTTP status": ", ".join(f"{name}: {statuses[name]}" for name in sorted(statuses)),
        "requests in killed web workers": phases.told(killed),
        **{duty.name: duty.told() for duty in owing},
    }
    say(
        "\n"
        + report.table(faults, strikes, hurt, acquirer.faults, visits, raced, findings, first, settled, counts)
        + "\n"
    )
    odd = [line for race in raced for line in race.odd]
    for text in [*(f"{one.kind}: {one.what} {one.payment}" for one in findings), *odd, *broken, *first.worst][:40]:
        say(f"  ! {text}")
    path = report.write(
        seed=seed,
        strikes=strikes,
        hurt=hurt,
        shoppers=visits,
        races=raced,
        findings=findings,
        first_inquiry=first,
        settled=settled,
        counts=counts,
        broken=broken,
    )
    say(f"The raw facts are in {path}")
    late = first.over + settled.over + sum(one.back is None for one in strikes)
    if findings or odd or broken or late or any(race.over for race in raced):
        return 1
    fired = {one.fault for one in strikes if one.fired}
    return 2 if any(fault.name not in fired for fault in faults) or not all(visits.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

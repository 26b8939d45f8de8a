"""The table of a run and its verdict, out of the lines that it has written so far. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.soak.samples import LOAD, POSTGRES, SORTING, STUB, TEMPORARY

SETTLED_AFTER_S: Final = 1_800.0
SAYS_LITTLE_BELOW_S: Final = 3_600.0
WINDOW: Final = 10
"""Samples whose medians are compared."""
MOST_GROWTH: Final = 0.05
"""Goals, R6."""
SMALLEST_KIB: Final = 256
"""Growth of less is a few pages of an allocator."""
MOST_MORE: Final = 2
"""Connections, descriptors or files that may be more at the end: what is open differs from sample to sample."""
OLDEST_AT_REST_S: Final = 5.0
MOST_TABLES: Final = 12
MEMORY_BY_DESIGN: Final = {
    STUB: "keeps its books in memory; it is the tests', no part of the product",
    LOAD: "remembers what it was told, no part of the product either",
}
SESSIONS_OF: Final = {"worker": "tollhouse worker", "beat": "tollhouse beat"}
"""Roles of one process → what their sessions of PostgreSQL are called. Sessions are compared by themselves: a thread
of the worker opens its own when it first has something to do, which may be hours after the others."""
DESCRIPTORS_BY_DESIGN: Final = {POSTGRES: "each session keeps the files of tables that it has read open"}
FILES_BY_DESIGN: Final = {
    "postgres": "a file for each table, index and gigabyte; WAL",
    "acquirer": "the stub acquirer's log",
    "outbox": "a reconciliation file for each merchant and day",
    "work": "exports, until their time is over",
}

Line = Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Verdict:
    """``rows``: the table; ``grown``: what is not flat or was left; ``wrong``: errors and differing books; ``remarks``:
    what has to be known to read it."""

    rows: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def is_flat(self) -> bool:
        return not self.grown and not self.wrong

    def text(self) -> str:
        marks = [*(f"  ! {one}" for one in [*self.wrong, *self.grown]), *(f"  ({one})" for one in self.remarks)]
        end = "flat, nothing left, no errors" if self.is_flat else "not flat, or something is wrong"
        return "\n".join([*self.rows, "", *marks, end])


def judge(lines: Sequence[Line]) -> Verdict:
    """The verdict over the lines of a run: its beginning, samples, and its end where it came to it."""
    begin = next((line for line in lines if line["kind"] == "begin"), {})
    end = next((line for line in lines if line["kind"] == "end"), None)
    load = [line for line in lines if line["kind"] == "sample" and line["phase"] == "load"]
    rest = [line for line in lines if line["kind"] == "sample" and line["phase"] == "rest"]
    verdict = Verdict()
    if len(load) < 2:
        verdict.wrong.append("fewer than two samples: nothing can be said")
        return verdict
    ran_s = load[-1]["seconds"]
    settled_s = SETTLED_AFTER_S if ran_s >= SAYS_LITTLE_BELOW_S else ran_s / 2
    before = [line for line in load if line["seconds"] <= settled_s][-WINDOW:] or load[:1]
    after = [line for line in load if line["seconds"] > settled_s][-WINDOW:]
    count = min(len(before), len(after))
    before, after = before[-count:], after[-count:]
    verdict.rows.append(
        f"{ran_s / 60:.0f} minutes of load, seed {begin.get('seed')}, {begin.get('rate')} payments a second; medians "
        f"of {count} samples up to minute {settled_s / 60:.0f} and of the last {count}"
    )
    if ran_s < SAYS_LITTLE_BELOW_S:
        verdict.remarks.append("less than an hour: processes still settle, so this says little")
    if end is None:
        verdict.remarks.append("not at its end: the books are not compared yet")
    _processes(verdict, load, before, after, rest)
    _connections(verdict, load, before, after, rest)
    _files(verdict, before, after, rest)
    _tables(verdict, before, after)
    _work(verdict, load, end)
    return verdict


def _processes(
    verdict: Verdict, load: Sequence[Line], before: Sequence[Line], after: Sequence[Line], rest: Sequence[Line]
) -> None:
    verdict.rows += ["", f"{'process':<16}{'memory, MB':>11}{'then':>8}{'growth':>8}{'whole, MB':>11}{'then':>8}"
                     f"{'threads':>9}{'then':>6}{'descriptors':>13}{'then':>6}{'at rest':>9}{'CPU, %':>8}"]  # fmt: skip
    seconds = load[-1]["seconds"] - load[0]["seconds"]
    verdict.wrong += [f"{role}: is gone" for role in load[0]["roles"] if role not in after[-1]["roles"]]
    for role in after[-1]["roles"]:
        if not all(role in line["roles"] for line in (load[0], before[-1])):
            verdict.grown.append(f"{role}: was not there at first")
            continue

        def middle(lines: Sequence[Line], name: str, role: str = role) -> float:
            return _median(lines, lambda one: one["roles"].get(role, {}).get(name))

        first, last = middle(before, "memory_kib"), middle(after, "memory_kib")
        grown = (last - first) / first if first else 0.0
        opened, open_now = _count_open(before, role), _count_open(after, role)
        at_rest = _count_open(rest, role) if rest else None
        cpu = (after[-1]["roles"][role]["cpu_s"] - load[0]["roles"][role]["cpu_s"]) / seconds
        verdict.rows.append(
            f"{role:<16}{first / 1024:>11.1f}{last / 1024:>8.1f}{100 * grown:>+7.1f}%"
            f"{middle(before, 'pss_kib') / 1024:>11.1f}{middle(after, 'pss_kib') / 1024:>8.1f}"
            f"{middle(before, 'threads'):>9.0f}{middle(after, 'threads'):>6.0f}"
            f"{opened:>13.0f}{open_now:>6.0f}{'' if at_rest is None else f'{at_rest:.0f}':>9}{100 * cpu:>8.1f}"
        )
        if role in MEMORY_BY_DESIGN:
            verdict.remarks.append(f"{role}: {MEMORY_BY_DESIGN[role]}")
        elif grown > MOST_GROWTH and last - first >= SMALLEST_KIB:
            verdict.grown.append(f"{role}: memory grew by {100 * grown:.1f} %")
        most = max(open_now, at_rest or 0.0)
        if role in DESCRIPTORS_BY_DESIGN:
            verdict.remarks.append(f"{role}, descriptors: {DESCRIPTORS_BY_DESIGN[role]}")
        elif most > opened + MOST_MORE:
            verdict.grown.append(f"{role}: {most:.0f} descriptors after {opened:.0f}")
        if middle(after, "threads") > middle(before, "threads") + MOST_MORE and role != POSTGRES:
            verdict.grown.append(
                f"{role}: {middle(after, 'threads'):.0f} threads after {middle(before, 'threads'):.0f}"
            )
        # Its sessions come and go; every other role is one process with what it started at first.
        if role != POSTGRES and (first_pid := load[0]["roles"][role]["pids"][0]) != after[-1]["roles"][role]["pids"][0]:
            verdict.wrong.append(f"{role}: process {first_pid} was replaced")


def _count_open(lines: Sequence[Line], role: str) -> float:
    """The descriptors of a role, without its sessions of PostgreSQL where those are known by name."""

    def count(line: Line) -> float | None:
        if role not in line["roles"] or not line["database"]:
            return None
        sessions: int = line["database"].get("sessions_of", {}).get(SESSIONS_OF.get(role), 0)
        return float(line["roles"][role]["descriptors"] - sessions)

    return _median(lines, count)


def _connections(
    verdict: Verdict, load: Sequence[Line], before: Sequence[Line], after: Sequence[Line], rest: Sequence[Line]
) -> None:
    lines = [*load, *rest]
    known = [line["database"] for line in lines if line.get("database")]
    if not known:
        verdict.wrong.append("PostgreSQL answered no sample")
        return
    if len(known) < len(lines):
        verdict.remarks.append(f"PostgreSQL did not answer {len(lines) - len(known)} samples")

    def sessions(lines: Sequence[Line]) -> float:
        return _median(lines, lambda line: sum(line["database"]["connections"].values()) if line["database"] else None)

    first, last = sessions(before), sessions(after)
    at_rest = sessions(rest) if rest else None
    most = {
        state: max(one["connections"].get(state, 0) for one in known)
        for state in sorted({each for one in known for each in one["connections"]})
    }
    verdict.rows += [
        "",
        f"connections to PostgreSQL: {first:.0f}, then {last:.0f}" + (f", at rest {at_rest:.0f}" if rest else "")
        + "; most: " + ", ".join(f"{state} {count}" for state, count in most.items()),
        f"oldest transaction of any sample: {max(one['oldest_transaction_s'] for one in known):.1f} s; deadlocks: "
        f"{known[-1]['deadlocks'] - known[0]['deadlocks']}",
        f"PostgreSQL's temporary files: {known[-1]['temp_files'] - known[0]['temp_files']} written, "
        f"{(known[-1]['temp_bytes'] - known[0]['temp_bytes']) / 1e6:.1f} MB",
    ]  # fmt: skip
    if max(last, at_rest or 0.0) > first + MOST_MORE:
        verdict.grown.append(f"{max(last, at_rest or 0.0):.0f} connections to PostgreSQL after {first:.0f}")
    oldest_s = max((line["database"]["oldest_transaction_s"] for line in rest if line["database"]), default=0.0)
    if oldest_s > OLDEST_AT_REST_S:
        verdict.grown.append(f"a transaction of {oldest_s:.0f} s, at rest")
    if known[-1]["deadlocks"] > known[0]["deadlocks"]:
        verdict.wrong.append(f"{known[-1]['deadlocks'] - known[0]['deadlocks']} deadlocks")


def _files(verdict: Verdict, before: Sequence[Line], after: Sequence[Line], rest: Sequence[Line]) -> None:
    verdict.rows += ["", f"{'folder':<22}{'files':>8}{'then':>8}{'at rest':>9}{'MB':>10}{'then':>10}"]
    for name in after[-1]["files"]:

        def middle(lines: Sequence[Line], place: int, name: str = name) -> float:
            return _median(lines, lambda line: line["files"].get(name, [0, 0])[place])

        first, last = middle(before, 0), middle(after, 0)
        at_rest = middle(rest, 0) if rest else None
        verdict.rows.append(
            f"{name:<22}{first:>8.0f}{last:>8.0f}{'' if at_rest is None else f'{at_rest:.0f}':>9}"
            f"{middle(before, 1) / 1e6:>10.2f}{middle(after, 1) / 1e6:>10.2f}"
        )
        most = max(last, at_rest or 0.0) if name not in (TEMPORARY, SORTING) or at_rest is None else at_rest
        allowed = first if name in (TEMPORARY, SORTING) else first + MOST_MORE
        if name in FILES_BY_DESIGN:
            if most > first:
                verdict.remarks.append(f"files in {name}: {FILES_BY_DESIGN[name]}")
        elif most > allowed:
            verdict.grown.append(f"{name}: {most:.0f} files after {first:.0f}")


def _tables(verdict: Verdict, before: Sequence[Line], after: Sequence[Line]) -> None:
    one, two = (
        next((line["database"] for line in reversed(lines) if line["database"]), None) for lines in (before, after)
    )
    if one is None or two is None:
        return
    verdict.rows += [
        "",
        f"{'table':<36}{'MB':>9}{'then':>9}{'rows':>11}{'then':>11}{'dead':>9}{'then':>9}",
        f"{'the whole database':<36}{one['database_bytes'] / 1e6:>9.1f}{two['database_bytes'] / 1e6:>9.1f}",
    ]
    for name in list(two["tables"])[:MOST_TABLES]:
        (size, live, dead), (later, live_later, dead_later) = one["tables"].get(name, [0, 0, 0]), two["tables"][name]
        verdict.rows.append(
            f"{name:<36}{size / 1e6:>9.1f}{later / 1e6:>9.1f}{live:>11}{live_later:>11}{dead:>9}{dead_later:>9}"
        )


def _work(verdict: Verdict, load: Sequence[Line], end: Line | None) -> None:
    last = load[-1] if end is None else end
    loads = [line["load"] for line in load]
    verdict.rows += [
        "",
        f"payments: {last['payments']}; answers with a 5xx: {last['server_errors']}, requests without an answer: "
        f"{last['unanswered']}",
        f"load average of the machine: {min(loads):.1f} to {max(loads):.1f}, median {statistics.median(loads):.1f}",
    ]
    if last["server_errors"]:
        verdict.wrong.append(f"{last['server_errors']} answers with a 5xx")
    if last["unanswered"]:
        verdict.wrong.append(f"{last['unanswered']} requests without an answer")
    if end is None:
        return
    verdict.rows += [f"{name}: {value}" for name, value in end["counts"].items()]
    if end["open"]:
        verdict.wrong.append(f"{end['open']} payments or duties still open")
    verdict.wrong += [*end["findings"], *end["broken"]]


def _median(lines: Sequence[Line], value: Callable[[Line], float | None]) -> float:
    """The middle one of what is known; 0 for nothing."""
    found = [each for line in lines if (each := value(line)) is not None]
    return float(statistics.median(found)) if found else 0.0

"""The verdict over made-up samples: what grows is said, what is steady is not."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.soak.report import judge

Change = Callable[[dict[str, Any], float], None]
"""Changes a sample; the share of the run that is over by then."""


def sample(minute: float, phase: str = "load") -> dict[str, Any]:
    def usage(pid: int, cpu_s: float) -> dict[str, Any]:
        return {
            "pids": [pid], "memory_kib": 60_000, "pss_kib": 80_000, "threads": 9, "descriptors": 30, "cpu_s": cpu_s
        }  # fmt: skip

    return {
        "kind": "sample",
        "phase": phase,
        "seconds": 60.0 * minute,
        "roles": {
            "web worker 1": usage(11, 3 * minute),
            "worker": usage(14, minute),
            "PostgreSQL": usage(12, minute),
            "stub acquirer": usage(13, minute),
        },
        "database": {
            "connections": {"idle": 20, "active": 1},
            "sessions_of": {"tollhouse web": 12, "tollhouse worker": 6},
            "oldest_transaction_s": 0.1,
            "tables": {"gateway_payment": [1_000_000 + int(minute), 1_000, 10]},
            "database_bytes": 5_000_000,
            "temp_files": 0,
            "temp_bytes": 0,
            "deadlocks": 0,
        },
        "files": {"temporary folder": [0, 0], "postgres, temporary": [0, 0], "log": [8, 1_000], "postgres": [900, 1]},
        "payments": int(240 * minute),
        "server_errors": 0,
        "unanswered": 0,
        "load": 0.7,
    }


def run(change: Change | None = None, minutes: int = 480, rest: Change | None = None) -> list[dict[str, Any]]:
    """A steady run with a sample a minute, each changed by ``change``, and those at rest by ``rest``."""
    lines = [sample(minute) for minute in range(minutes + 1)]
    for minute, line in enumerate(lines):
        if change is not None:
            change(line, minute / minutes)
    after = [sample(minutes, "rest") for _ in range(3)]
    for line in after:
        line["database"]["connections"] = {"idle": 20}
        if rest is not None:
            rest(line, 1.0)
    end = {
        "kind": "end", "open": 0, "findings": [], "broken": [], "payments": 240 * minutes, "server_errors": 0,
        "unanswered": 0, "counts": {"webhooks": "9 events heard"},
    }  # fmt: skip
    return [{"kind": "begin", "seed": 7, "rate": 4.0}, *lines, *after, end]


def grow(role: str, name: str, share: float) -> Change:
    """``name`` of ``role`` grows by ``share``, evenly over the run."""

    def change(line: dict[str, Any], over: float) -> None:
        line["roles"][role][name] = int(line["roles"][role][name] * (1 + share * over))

    return change


def test_a_steady_run_is_flat() -> None:
    verdict = judge(run())
    assert (verdict.grown, verdict.wrong) == ([], [])
    assert verdict.is_flat
    assert "480 minutes of load, seed 7" in verdict.text()
    assert "webhooks: 9 events heard" in verdict.text()


@pytest.mark.parametrize(("share", "is_flat"), [(0.04, True), (0.08, False)])
def test_memory_may_grow_by_five_percent_after_the_first_half_hour(share: float, is_flat: bool) -> None:
    assert judge(run(grow("web worker 1", "memory_kib", share))).is_flat is is_flat


def test_what_grows_in_the_first_half_hour_is_no_growth() -> None:
    def change(line: dict[str, Any], over: float) -> None:
        line["roles"]["web worker 1"]["memory_kib"] += 200_000 if line["seconds"] > 600 else 0

    assert judge(run(change)).is_flat


def test_one_sample_alone_is_no_growth() -> None:
    lines = run()
    lines[481]["roles"]["PostgreSQL"]["memory_kib"] *= 3
    assert judge(lines).is_flat


def test_the_stub_acquirer_may_keep_its_books() -> None:
    verdict = judge(run(grow("stub acquirer", "memory_kib", 4.0)))
    assert verdict.is_flat
    assert any(remark.startswith("stub acquirer: ") for remark in verdict.remarks)


def _open_more(line: dict[str, Any], over: float) -> None:
    line["database"]["connections"]["idle"] += int(20 * over)


def _leave_files(line: dict[str, Any], over: float) -> None:
    line["files"]["log"][0] += int(50 * over)


def _leave_temporary(line: dict[str, Any], over: float) -> None:
    line["files"]["temporary folder"][0] = 1


def _start_threads(line: dict[str, Any], over: float) -> None:
    line["roles"]["web worker 1"]["threads"] += int(30 * over)


def _keep_transaction(line: dict[str, Any], over: float) -> None:
    line["database"]["oldest_transaction_s"] = 400.0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (run(_open_more), "connections to PostgreSQL after 2"),
        (run(rest=_open_more), "connections to PostgreSQL after 21"),
        (run(grow("web worker 1", "descriptors", 0.5)), "descriptors after 30"),
        (run(_start_threads), "threads after 10"),
        (run(_leave_files), "log: "),
        (run(rest=_leave_temporary), "temporary folder: 1 files after 0"),
        (run(rest=_keep_transaction), "a transaction of 400 s, at rest"),
    ],
    ids=["connections", "connections at rest", "descriptors", "threads", "files", "temporary files", "transaction"],
)
def test_what_is_left_is_said(lines: list[dict[str, Any]], said: str) -> None:
    verdict = judge(lines)
    assert len(verdict.grown) == 1
    assert said in verdict.grown[0]


@pytest.mark.parametrize(("of_sessions", "is_flat"), [(True, True), (False, False)])
def test_a_worker_may_open_further_sessions_but_nothing_else(of_sessions: bool, is_flat: bool) -> None:
    """Sessions are compared by themselves."""

    def change(line: dict[str, Any], over: float) -> None:
        line["roles"]["worker"]["descriptors"] += int(6 * over)
        line["database"]["sessions_of"]["tollhouse worker"] += int(6 * over) * of_sessions

    assert judge(run(change)).is_flat is is_flat


def test_a_run_that_does_not_know_sessions_by_name_counts_all_descriptors() -> None:
    lines = run(grow("worker", "descriptors", 0.5))
    for line in lines:
        line.get("database", {}).pop("sessions_of", None)
    assert [one.split(" descriptors after ")[1] for one in judge(lines).grown] == ["30"]


def test_temporary_files_that_go_again_and_tables_are_nothing_left() -> None:
    def change(line: dict[str, Any], over: float) -> None:
        line["files"]["temporary folder"][0] = 3 if over > 0.5 else 0
        line["files"]["postgres"][0] += int(100 * over)
        line["roles"]["PostgreSQL"]["descriptors"] += int(300 * over)

    assert judge(run(change)).is_flat


@pytest.mark.parametrize(
    "changed",
    [
        {"server_errors": 1},
        {"open": 2},
        {"findings": ["lost: the acquirer booked 9.90, we know nothing of it"]},
        {"broken": ["client 1: ValueError"]},
    ],
    ids=str,
)
def test_errors_and_differing_books_are_wrong(changed: Mapping[str, Any]) -> None:
    lines = run()
    lines[-1] |= changed
    verdict = judge(lines)
    assert len(verdict.wrong) == 1
    assert not verdict.is_flat


def test_a_process_that_was_replaced_is_not_flat() -> None:
    def change(line: dict[str, Any], over: float) -> None:
        line["roles"]["web worker 1"]["pids"] = [11 if over < 0.5 else 99]

    assert judge(run(change)).wrong == ["web worker 1: process 11 was replaced"]


def test_less_than_an_hour_says_little() -> None:
    verdict = judge(run(minutes=20))
    assert verdict.is_flat
    assert any("says little" in remark for remark in verdict.remarks)


def test_a_run_that_still_goes_on_has_a_table() -> None:
    lines = [line for line in run() if line["kind"] != "end" and line.get("phase") != "rest"]
    verdict = judge(lines)
    assert verdict.is_flat
    assert any("not at its end" in remark for remark in verdict.remarks)


def test_a_sample_without_an_answer_of_postgresql_is_left_out() -> None:
    lines = copy.deepcopy(run())
    lines[470]["database"] = None
    verdict = judge(lines)
    assert verdict.is_flat
    assert "PostgreSQL did not answer 1 samples" in verdict.remarks


def test_a_run_that_never_came_up_is_wrong() -> None:
    assert judge([]).wrong


def test_requests_without_an_answer_and_a_role_that_is_gone_are_wrong() -> None:
    lines = run()
    lines[-1]["unanswered"] = 3
    del lines[480 + 1]["roles"]["web worker 1"]
    assert judge(lines).wrong == ["web worker 1: is gone", "3 requests without an answer"]

"""What is read off: this very process, folders made for it, and figures as the product writes them."""

from __future__ import annotations

import os
from pathlib import Path

from tests.faults.processes import read
from tests.soak.samples import SORTING, TEMPORARY, count_5xx, measure, read_files

METRICS = """# HELP tollhouse_requests_total API requests answered
tollhouse_requests_total{operation="pay",status="200"} 41.0
tollhouse_requests_total{operation="pay",status="503"} 2.0
tollhouse_requests_total{operation="read",status="500"} 1.0
tollhouse_request_seconds_count{operation="5"} 500.0
"""


def test_answers_with_a_5xx_are_counted_over_all_operations() -> None:
    assert count_5xx(METRICS) == 3


def test_a_process_has_memory_threads_and_descriptors() -> None:
    own = read(os.getpid())
    assert own is not None
    before = measure([own])
    assert before.pids == [os.getpid()]
    assert min(before.memory_kib, before.pss_kib, before.threads, before.descriptors) > 0
    reading, writing = os.pipe()
    after = measure([own])
    os.close(reading)
    os.close(writing)
    assert after.descriptors == before.descriptors + 2


def test_files_are_counted_by_folder_and_those_of_sorts_apart(tmp_path: Path) -> None:
    var, temporary = tmp_path / "var", tmp_path / "tmp"
    sorts = var / "postgres" / "base" / "pgsql_tmp"
    for folder in (sorts, var / "log", temporary):
        folder.mkdir(parents=True)
    (var / "run.json").write_text("{}")
    (var / "log" / "web.log").write_text("line\n")
    (var / "postgres" / "base" / "1").write_text("123")
    (sorts / "pgsql_tmp1.0").write_text("12345")
    assert read_files(var, temporary) == {
        TEMPORARY: [0, 0], "var itself": [1, 2], SORTING: [1, 5], "log": [1, 5], "postgres": [1, 3]
    }  # fmt: skip

"""Alarms and the board name figures that the product has, and each alarm has a section that says what to do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client.core import CollectorRegistry, Metric

from config.launcher.var_folder import PROJECT_ROOT
from gateway import metrics
from gateway.connectors.iso8583 import link_metrics  # noqa: F401 - importing registers its figures
from gateway.portal.documents import load_document
from tests.running.files import EXAMPLES

RULES: Final = EXAMPLES / "prometheus-rules.yml"
BOARD: Final = EXAMPLES / "grafana-board.json"
NAME: Final = re.compile(r"\btollhouse_[a-z0-9_]+")
ENDINGS: Final = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


OTHERS: Final = {
    ("card-api.md", "tollhouse_attempt"),
    ("card-api.md", "tollhouse_payment"),
    ("card-api.md", "tollhouse_closed"),
    ("upgrading.md", "tollhouse_client"),
}
"""Fields of a processor's records, and a package, which begin alike."""


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(BOARD.read_text())["panels"]
    return found


def families() -> Iterator[Metric]:
    """Every figure of a node, with what the database knows."""
    yield from metrics.PROCESS_REGISTRY.collect()
    database = CollectorRegistry()
    for collector in metrics._DATABASE_COLLECTORS:
        database.register(collector())
    yield from database.collect()


def existing() -> set[str]:
    """Names as Prometheus sees them."""
    return {family.name + ending for family in families() for ending in ENDINGS[family.type]}


def labels() -> set[str]:
    """Labels of our figures, and those that Prometheus adds."""
    own = {name for sample in (s for family in families() for s in family.samples) for name in sample.labels}
    declared = {
        name for one in metrics.PROCESS_REGISTRY._collector_to_names for name in getattr(one, "_labelnames", ())
    }
    return own | declared | {"le", "instance", "job", "status"}


def expressions() -> list[str]:
    return [rule["expr"] for rule in rules()] + [each["expr"] for panel in panels() for each in panel["targets"]]


def test_every_figure_that_is_named_exists(db: None) -> None:
    named = {name for text in expressions() for name in NAME.findall(text)}
    assert len(named) > 12
    assert named - existing() == set()


def test_every_figure_in_the_docs_exists(db: None) -> None:
    """Found in use: docs/time.md named three that never were."""
    known = existing() | {family.name for family in families()}
    wrong = {
        (path.name, name)
        for path in (PROJECT_ROOT / "docs").rglob("*.md")
        for name in re.findall(r"`(tollhouse_[a-z0-9_]+)", path.read_text())
        if name not in known and (path.name, name) not in OTHERS
    }
    assert wrong == set()


def test_every_label_that_is_named_exists(db: None) -> None:
    grouped = [
        name for text in expressions() for names in re.findall(r"\bby \(([^)]*)\)", text) for name in names.split(", ")
    ]
    picked = [
        name
        for text in expressions()
        for names in re.findall(r"\{([^}]*)\}", text)
        for name in re.findall(r"(\w+)[=!~]", names)
    ]
    shown = [name for rule in rules() for name in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])]
    assert {*grouped, *picked, *shown} - labels() == set()


def test_every_figure_is_on_the_board(db: None) -> None:
    """Who watches sees all there is; overlaps of timers mean nothing by themselves."""
    shown = {name for panel in panels() for each in panel["targets"] for name in NAME.findall(each["expr"])}
    roots = {family.name for family in families()} - {"tollhouse_timer_overlaps", "tollhouse_link_state_changes"}
    assert {root for root in roots if not any(name.startswith(root) for name in shown)} == set()


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_each_alarm_has_a_section_that_says_what_to_do(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["page"].partition("#")
    assert page == "https://gateway.example/docs/running/alarms"
    document = load_document("running/alarms", live=True)
    assert anchor in {section.anchor for section in document.sections}
    assert anchor.replace("-", "") == rule["alert"].lower()
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["for"]


def test_no_section_is_left_without_its_alarm() -> None:
    document = load_document("running/alarms", live=True)
    assert len(document.sections) == len(rules())


def test_the_board_is_one_that_grafana_loads() -> None:
    """Every panel has its own number, a place of its own, a description, and the data source that is asked for."""
    board = json.loads(BOARD.read_text())
    assert board["templating"]["list"][0]["name"] == "source"
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["description"].endswith(".")
        assert all(each["datasource"]["uid"] == "${source}" for each in panel["targets"])
    assert max(x for x, _ in taken) < 24
    assert len({panel["id"] for panel in panels()}) == len(panels())


# Series per minute: an alarm sounds where its fault lasts, and does not while all is well.
WELL: Final = {
    'up{job="tollhouse", instance="n1"}': "1x60",
    'up{job="tollhouse", instance="n2"}': "1x60",
    'tollhouse_requests_total{operation="payment", status="200"}': "0+600x60",
    'tollhouse_requests_total{operation="payment", status="500"}': "0x60",
    'tollhouse_request_seconds_bucket{operation="payment", le="0.5"}': "0+600x60",
    'tollhouse_request_seconds_bucket{operation="payment", le="30"}': "0+600x60",
    'tollhouse_request_seconds_bucket{operation="payment", le="+Inf"}': "0+600x60",
    'tollhouse_acquirer_seconds_bucket{connector="card-api", outcome="approved", le="0.5"}': "0+600x60",
    'tollhouse_acquirer_seconds_bucket{connector="card-api", outcome="approved", le="30"}': "0+600x60",
    'tollhouse_acquirer_seconds_bucket{connector="card-api", outcome="approved", le="+Inf"}': "0+600x60",
    "tollhouse_in_doubt_oldest_seconds": "20x60",
    "tollhouse_payouts_undecided": "0x60",
    'tollhouse_payments_open{status="IN_DOUBT"}': "2x60",
    'tollhouse_circuit_breaker_state{connector="card-api", account="a"}': "0x60",
    'tollhouse_payments_not_sent_total{connector="card-api", by="breaker"}': "0x60",
    'tollhouse_link_up{link="host"}': "1x60",
    'tollhouse_link_state_changes_total{link="host", state="down"}': "0x60",
    'tollhouse_clock_difference_seconds{instance="n1"}': "-0.01x60",
    'tollhouse_timer_lag_seconds{timer="webhooks"}': "0x60",
    'tollhouse_timer_runs_total{timer="recovery"}': "40x60",
    'tollhouse_timer_runs_total{timer="reconciliation files"}': "40+1x60",
    'tollhouse_timer_failures_total{timer="recovery"}': "3x60",
    'tollhouse_queue_age_seconds{timer="webhooks"}': "1x60",
    'tollhouse_partition_months_ahead{table="gateway_requestlog"}': "2x60",
    'tollhouse_approval_falls{kind="brand"}': "0x60",
}
FAULTS: Final = {
    "NoNodeAnswers": {'up{job="tollhouse", instance="n1"}': "0x60", 'up{job="tollhouse", instance="n2"}': "0x60"},
    "NodeDown": {'up{job="tollhouse", instance="n2"}': "0x60"},
    "ServerErrors": {'tollhouse_requests_total{operation="payment", status="500"}': "0+12x60"},
    "SlowAnswers": {'tollhouse_request_seconds_bucket{operation="payment", le="0.5"}': "0+300x60"},
    "PaymentsInDoubt": {"tollhouse_in_doubt_oldest_seconds": "400x60"},
    "PayoutUndecided": {"tollhouse_payouts_undecided": "1x60"},
    "InDoubtRises": {'tollhouse_payments_open{status="IN_DOUBT"}': "10+2x60"},
    "CircuitOpen": {'tollhouse_circuit_breaker_state{connector="card-api", account="a"}': "2x60"},
    "PaymentsNotSent": {'tollhouse_payments_not_sent_total{connector="card-api", by="breaker"}': "0+1x60"},
    "AcquirerSlow": {
        'tollhouse_acquirer_seconds_bucket{connector="card-api", outcome="approved", le="0.5"}': "0+300x60"
    },
    "LinkDown": {
        'tollhouse_link_up{link="host"}': "1x50 0x10",
        'tollhouse_link_state_changes_total{link="host", state="down"}': "0x50 1x10",
    },
    "ClockDiffers": {'tollhouse_clock_difference_seconds{instance="n1"}': "-0.7x60"},
    "NoTimerRuns": {'tollhouse_timer_runs_total{timer="reconciliation files"}': "40x60"},
    "TimerLate": {'tollhouse_timer_lag_seconds{timer="webhooks"}': "400x60"},
    "TimerFails": {'tollhouse_timer_failures_total{timer="recovery"}': "3+1x60"},
    "PartitionMissing": {'tollhouse_partition_months_ahead{table="gateway_requestlog"}': "0x60"},
    "ApprovalFall": {'tollhouse_approval_falls{kind="brand"}': "1x60"},
    "QueueOld": {'tollhouse_queue_age_seconds{timer="webhooks"}': "700x60"},
}


@pytest.mark.processes
def test_each_alarm_sounds_when_its_fault_lasts_and_not_before(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian's package prometheus)")
    (tmp_path / RULES.name).write_bytes(RULES.read_bytes())

    def case(series: dict[str, str], at: str, sounding: dict[str, bool]) -> dict[str, Any]:
        return {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) > 0 or vector(0)',
                    "eval_time": at,
                    "exp_samples": [{"labels": "{}", "value": 1.0 * count}],
                }
                for name, count in sounding.items()
            ],
        }

    names = [rule["alert"] for rule in rules()]
    quiet = case(WELL, "59m", dict.fromkeys(names, False))
    loud = [case(WELL | changed, "59m", {name: True}) for name, changed in FAULTS.items()]
    silence = {**WELL, 'tollhouse_requests_total{operation="payment", status="200"}': "0+60x1430 85800x120"}
    absent = case(silence, "1470m", {"NoPayments": True})
    assert {*FAULTS, "NoPayments"} == set(names)
    tests = {"rule_files": [RULES.name], "evaluation_interval": "1m", "tests": [quiet, *loud, absent]}
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump(tests))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr

"""The examples of docs/running stay true to the code. What they promise is tried by `python -m tests.running`."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import environ
import pytest
import yaml
from django.db.backends.postgresql.base import DatabaseWrapper

from config.launcher.programs import WebServer, build_beat_command, build_worker_command
from config.launcher.var_folder import PROJECT_ROOT
from tests.running.files import EXAMPLES
from tests.running.patroni import own_lines

UNITS = EXAMPLES / "systemd"


def started(unit: str) -> list[str]:
    """The words of a unit's ExecStart, without the folder of the program."""
    text = (UNITS / unit).read_text().replace("\\\n", " ")
    found = re.search("^ExecStart=(.*)$", text, re.MULTILINE)
    assert found
    program, *rest = shlex.split(found[1])
    return [Path(program).name, *rest]


def variables() -> dict[str, str]:
    lines = (UNITS / "tollhouse.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_the_web_unit_starts_gunicorn_as_the_launcher_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/running.md, The web nodes: other flags would be other behaviour than the tests have seen."""
    for name, value in variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOST", "0.0.0.0")
    words = [
        re.sub(r"\$\{(\w+)\}", lambda name: variables()[name[1]], word) for word in started("tollhouse-web.service")
    ]
    assert sorted(words) == sorted(WebServer.from_environment().command())


@pytest.mark.parametrize(
    "unit,command",
    [("tollhouse-worker.service", build_worker_command()), ("tollhouse-beat.service", build_beat_command())],
)
def test_the_units_start_celery_as_the_launcher_does(unit: str, command: list[str]) -> None:
    """docs/running.md, The web nodes."""
    words = [re.sub(r"\$\{(\w+)\}", lambda name: variables()[name[1]], word) for word in started(unit)]
    assert words == command


def test_no_proxy_logs_queries_or_whole_requests() -> None:
    """Found in use: a card number that was pasted into a search box stood in the proxy's log (PCI DSS 3.3, 3.5)."""
    formats = [
        line
        for name in ("haproxy.cfg", "nginx.conf")
        for line in (EXAMPLES / name).read_text().splitlines()
        if re.match(r"\s*(option httplog|log-format|log_format|access_log|error_log|')", line)
    ]
    assert len(formats) == 5
    for line in formats:
        query = r"httplog|%r\b|%HU\b|%HQ\b|\$request[ '\"]|request_uri|args|referer|\bcombined\b"
        # Paths, too, are shown without the ids in them (test_limits.py tries it).
        path = r"%HP|%\[(?!var\(txn\.logged_path\))|\$uri"
        assert not re.search(f"{query}|{path}", line), line
    assert any("access_log " in line and line.endswith(" paths;") for line in formats)
    assert any("error_log " in line and line.endswith(" crit;") for line in formats)


def test_every_name_of_the_example_environment_is_a_setting() -> None:
    """docs/settings.md."""
    known = set(re.findall("`([A-Z][A-Z_]+)`", (PROJECT_ROOT / "docs" / "settings.md").read_text()))
    known |= set(re.findall(r'"(GATEWAY_[A-Z_]+)"', (PROJECT_ROOT / "config" / "settings.py").read_text()))
    assert set(variables()) - known == set()


def test_database_url_may_name_several_hosts_and_asks_for_the_one_that_takes_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """docs/running.md, PostgreSQL: hosts, ports and libpq's own options reach the driver as they were written."""
    monkeypatch.setenv("DATABASE_URL", variables()["DATABASE_URL"].replace("PASSWORD", "p%40ss"))
    settings = environ.Env().db_url("DATABASE_URL")
    settings |= {"TIME_ZONE": None, "OPTIONS": settings["OPTIONS"]}
    sent = DatabaseWrapper(settings).get_connection_params()
    assert sent["host"] == "10.0.0.21,10.0.0.22,10.0.0.23"
    assert str(sent["port"]) == "5432,5432,5432"
    assert (sent["password"], sent["dbname"]) == ("p@ss", "tollhouse")
    assert sent["target_session_attrs"] == "read-write"
    assert (sent["connect_timeout"], sent["tcp_user_timeout"]) == (2, 8000)


def test_an_archived_segment_is_never_overwritten_by_another(tmp_path: Path) -> None:
    """docs/running.md, Back-up and restore: the same segment twice is fine, another one of its name is not."""
    kept, same, other = tmp_path / "kept", tmp_path / "same", tmp_path / "other"
    same.write_bytes(b"segment")
    other.write_bytes(b"another")

    def archive(source: Path) -> int:
        return subprocess.run(["sh", EXAMPLES / "archive-wal.sh", source, kept], check=False).returncode

    assert archive(same) == 0
    assert archive(same) == 0
    assert archive(other) != 0
    assert kept.read_bytes() == b"segment"
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "same", "other"}


def test_patroni_sets_what_the_example_of_postgresql_does() -> None:
    """docs/running.md, Fail-over by Patroni. The rest is Patroni's own: who is waited for, what a standby follows."""
    lines = [line.partition("#")[0] for line in (EXAMPLES / "postgresql.conf").read_text().splitlines()]
    plain = {
        name.strip(): value.strip().strip("'") for name, found, value in (x.partition("=") for x in lines) if found
    }
    parameters = patroni()["bootstrap"]["dcs"]["postgresql"]["parameters"]
    own = {"synchronous_standby_names", "recovery_target_timeline", "restore_command"}
    assert {name: str(value) for name, value in parameters.items()} == {
        name: value for name, value in plain.items() if name not in own
    }
    assert patroni()["postgresql"]["recovery_conf"] == {"restore_command": plain["restore_command"]}


def test_patroni_loses_no_acknowledged_commit_and_gives_up_a_silent_machine_in_time() -> None:
    """docs/decisions/0124."""
    settings = patroni()["bootstrap"]["dcs"]
    assert (settings["synchronous_mode"], settings["synchronous_mode_strict"]) == (True, True)
    assert settings["loop_wait"] + 2 * settings["retry_timeout"] <= settings["ttl"]


def test_patroni_etcd_and_the_database_proxy_name_the_same_servers() -> None:
    servers = {f"pg{number}": f"10.0.0.2{number}" for number in (1, 2, 3)}
    assert patroni()["etcd3"]["hosts"] == [f"{address}:2379" for address in servers.values()]
    etcd = (EXAMPLES / "etcd.env").read_text()
    assert ",".join(f"{name}=http://{address}:2380" for name, address in servers.items()) in etcd
    proxy = re.findall(r"^\s+server (\S+) (\S+)$", (EXAMPLES / "haproxy-database.cfg").read_text(), re.MULTILINE)
    assert proxy == [(name, f"{address}:5432") for name, address in servers.items()] * 2


@pytest.mark.parametrize("machine", ["pg1", "pg2", "pg3"])
def test_a_trials_machine_gets_its_own_addresses_and_the_list_of_all(machine: str) -> None:
    own = own_lines((EXAMPLES / "patroni.yml").read_text(), machine, f"10.0.0.2{machine[2]}")
    found = yaml.safe_load(own)
    assert (found["name"], found["etcd3"]) == (machine, patroni()["etcd3"])
    sections = (found["restapi"], found["postgresql"])
    assert {section[key].partition(":")[0] for section in sections for key in ("listen", "connect_address")} == {
        f"10.0.0.2{machine[2]}"
    }


def patroni() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / "patroni.yml").read_text())
    return found


def test_the_patroni_of_the_examples_loses_no_lock_and_takes_their_ttl() -> None:
    """docs/running.md, Fail-over by Patroni: 3.0.2 lost acknowledged payments, 3.2 takes no ttl below 20."""
    pinned = re.search(r"^patroni\[etcd3\]==(\d+)\.(\d+)\.", (EXAMPLES / "patroni.txt").read_text(), re.MULTILINE)
    ttl = re.search(r"^ +ttl: (\d+)$", (EXAMPLES / "patroni.yml").read_text(), re.MULTILINE)
    assert pinned is not None
    assert ttl is not None
    version = (int(pinned[1]), int(pinned[2]))
    assert version >= (3, 1)
    assert int(ttl[1]) >= 20 or version < (3, 2)

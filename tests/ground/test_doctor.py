"""The doctor names what is wrong with an installation and what mends it, and finds nothing where all is well."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from django_celery_beat.models import PeriodicTask

from config import beat
from config.doctor import examination
from config.doctor.backup_part import examine_backups
from config.doctor.findings import DoctorFinding, DoctorPart, DoctorQuestion, FindingLevel
from config.doctor.machine_part import examine_units
from gateway.core import clock
from gateway.models import AcquirerAccount, ErasureRequest, OpenPayment, Payment, Status, TimerRun, WebhookEndpoint
from gateway.portal import guides
from gateway.timers import registry
from gateway.timers.table_partitions import keep_partitions
from tests.ground.conftest import ROOT, Stack, eventually
from tests.support.certificates import make_certificate
from tests.support.fixtures import Shop
from tests.support.ports import free_port
from tests.support.receivers import answering, receiving

ALONE = DoctorQuestion(network=False, web=False)


def examine(part: str, question: DoctorQuestion = ALONE) -> list[DoctorFinding]:
    """What the doctor says of one part."""
    guides._cached_status = None
    return [one for one in examination.examine_installation(question) if one.part == part]


def faults(part: str, question: DoctorQuestion = ALONE) -> dict[str, FindingLevel]:
    """Its faults, each with a line that mends it."""
    found = [one for one in examine(part, question) if one.level in (FindingLevel.WARNING, FindingLevel.ERROR)]
    assert all(one.mend for one in found)
    return {one.about: one.level for one in found}


@pytest.fixture
def running(db: None) -> None:
    """Every timer ran just now."""
    TimerRun.objects.all().delete()
    TimerRun.objects.bulk_create([TimerRun(name=name, last_at=clock.real_now(), last_ms=1) for name in registry.TIMERS])


@pytest.mark.xdist_group("whole-stack")
@pytest.mark.timeout(900)
def test_a_product_that_runs_is_well(stack: Stack) -> None:
    """`make run` as it comes, asked as an operator asks: no fault, and every part was looked at."""
    command = [sys.executable, "-m", "config.launcher", "exec", "--", sys.executable, "manage.py", "doctor", "--json"]

    def ask() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=ROOT, env=stack.environment, capture_output=True, text=True, timeout=300)

    # The first timers run some seconds after the web server is ready.
    eventually(lambda: ask().returncode == 0)
    done = ask()
    told = json.loads(done.stdout)
    assert (done.returncode, [one for one in told["findings"] if one["level"] == "error"]) == (0, []), done.stderr
    assert {one["part"] for one in told["findings"]} == {part.name for part in examination.PARTS}
    words = " ".join(one["about"] for one in told["findings"])
    for good in ("Beat and worker are alive", "The web server at", "It throws nothing away", "The vault is ready"):
        assert good in words


@pytest.mark.django_db
def test_a_month_without_a_partition_is_told_until_the_timer_has_made_it() -> None:
    words = "No partition of the next month: gateway_requestlog, gateway_acquirerexchange, gateway_archivedpayment."
    (about,) = (one for one in faults("database") if one.startswith("No partition"))
    assert about.startswith(words)
    keep_partitions()
    assert not any("partition" in one for one in faults("database"))


@pytest.mark.processes
def test_an_installation_where_nothing_is_right_is_told_all_of_it(tmp_path: Path) -> None:
    """One run, no database and no broker: each fault has its own line, and the exit code is 1."""
    closed = free_port()
    bare = {name: text for name, text in os.environ.items() if not name.startswith(("GATEWAY_", "DJANGO_", "CELERY"))}
    wrong = bare | {
        "DATABASE_URL": f"postgresql://x:geheim@127.0.0.1:{closed}/x",
        "CELERY_BROKER_URL": f"redis://:geheim@127.0.0.1:{closed}/0",
        "EMAIL_URL": f"smtp://user:geheim@127.0.0.1:{closed}",
        "DJANGO_SECRET_KEY": "short",
        "GATEWAY_ENVIRONMENT": "live",
        "GATEWAY_BASE_URL": f"https://127.0.0.1:{closed}",
        "GATEWAY_VAULT_KEYSET_FILE": str(tmp_path / "none.json"),
        "TOLLHOUSE_VAR": str(tmp_path / "var"),
        "PORT": str(closed),
    }
    command = [sys.executable, "manage.py", "doctor", "--json", "--backups", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=wrong, capture_output=True, text=True, timeout=120)
    told = json.loads(done.stdout)
    assert done.returncode == 1
    found = {(one["part"], one["level"]): one for one in told["findings"]}
    for part in ("settings", "this process", "broker", "web server", "mail", "back-ups"):
        assert found[part, "error"]["mend"], part
    assert ("public address", "warning") in found
    assert ("database", "skipped") in found
    words = json.dumps(told)
    assert "tollhouse.E012" in words
    assert "tollhouse.E014" in words
    assert "geheim" not in words + done.stderr


def test_a_check_of_django_is_a_finding_with_its_hint(db: None) -> None:
    with override_settings(GATEWAY_ENVIRONMENT="neither"):
        assert "tollhouse.E001" in " ".join(faults("settings"))
    assert faults("settings") == {}


def test_the_other_environments_database_is_named(db: None, live: None) -> None:
    (about,) = faults("environment")
    assert "belongs to the test environment" in about


def test_a_table_that_a_crash_empties_is_named(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE UNLOGGED TABLE money (amount numeric)")
    assert faults("database")["Empty after a crash: money."] is FindingLevel.ERROR
    assert "ALTER TABLE money SET LOGGED" in {one.mend for one in examine("database")}


def test_in_live_role_and_standbys_are_looked_at(db: None, live: None) -> None:
    """The tests' own server has neither a role of its own nor a standby."""
    found = faults("database")
    assert found["The role is a superuser."] is FindingLevel.ERROR
    assert any(about.startswith("Commits wait for no standby") for about in found)


def test_beat_and_worker_are_alive_when_timers_run(running: None) -> None:
    assert faults("beat and worker") == {}


def test_a_dead_beat_is_told_from_a_timer_that_is_late(running: None) -> None:
    before = clock.real_now() - timedelta(hours=2)
    name = next(name for name, timer in registry.TIMERS.items() if not timer.is_off())
    TimerRun.objects.filter(name=name).update(last_at=before)
    assert faults("beat and worker") == {f"Timers that are late: {name}.": FindingLevel.WARNING}
    TimerRun.objects.update(last_at=clock.real_now() - timedelta(minutes=6))
    assert faults("beat and worker") == {"No timer runs: beat, worker or broker is dead.": FindingLevel.ERROR}
    TimerRun.objects.all().delete()
    assert [*faults("beat and worker")] == ["No timer has run yet: beat or worker is missing."]


def test_a_timer_that_fails_or_is_switched_off_is_named(running: None) -> None:
    TimerRun.objects.filter(name="recovery").update(failed_at=clock.real_now(), last_failure="builtins.ValueError")
    beat.sync_periodic_tasks()
    PeriodicTask.objects.filter(name="idempotency keys").update(enabled=False)
    assert faults("beat and worker") == {
        "The timer recovery failed within the hour: builtins.ValueError.": FindingLevel.WARNING,
        "Timers that are switched off: idempotency keys.": FindingLevel.WARNING,
    }


def test_a_payment_that_stays_in_doubt_is_an_error(shop: Shop) -> None:
    payment = Payment.objects.get(pk=shop.api.pay().id)
    old = clock.real_now() - timedelta(minutes=7)
    Payment.objects.filter(pk=payment.pk).update(status=Status.IN_DOUBT, created_at=old)
    OpenPayment.objects.create(payment=payment, recover_at=old)
    assert [about for about in faults("queues") if "in doubt for 7 minutes" in about]


def test_a_request_to_be_forgotten_that_waits_is_told_with_its_command(shop: Shop) -> None:
    def ask(state: str, days: int) -> ErasureRequest:
        asked_at = clock.real_now() - timedelta(days=days, hours=1)
        return ErasureRequest.objects.create(
            merchant=shop.merchant, kind="payment", value="", shown="x", reason="r", state=state, asked_at=asked_at
        )

    ask("ASKED", 6), ask("REJECTED", 30)
    assert faults("queues") == {}
    ask("ASKED", 9)
    about = "1 requests to erase a shopper's data wait, the oldest for 9 days."
    assert faults("queues") == {about: FindingLevel.WARNING}
    assert "a second person" in next(one.mend for one in examine("queues") if one.about == about)
    approved = ask("APPROVED", 8)
    (one,) = (one for one in examine("queues") if one.about.startswith("2 requests"))
    assert one.mend == f"tollhouse manage forget_shopper --request {approved.pk.hex}"


def test_a_receiver_that_is_paused_is_counted(shop: Shop) -> None:
    WebhookEndpoint.objects.create(merchant=shop.merchant, url="https://x.example", secret_sealed=b"x", state="paused")
    assert [*faults("webhooks")] == ["1 webhook endpoints are paused: their receivers fail, or a user paused them."]


def test_folders_with_personal_data_are_closed_to_others(db: None, tmp_path: Path) -> None:
    outbox, full = tmp_path / "sepa", tmp_path / "var"
    outbox.mkdir(mode=0o755)
    full.mkdir()
    with override_settings(VAR_DIR=full, GATEWAY_WORK_DIR=str(tmp_path / "none"), GATEWAY_SEPA_OUTBOX=str(outbox)):
        assert faults("folders") == {f"GATEWAY_SEPA_OUTBOX {outbox} is open to other users (755).": FindingLevel.ERROR}
        outbox.chmod(stat.S_IRWXU)
        assert faults("folders") == {}


@pytest.mark.parametrize("days, level", [(1, FindingLevel.ERROR), (10, FindingLevel.WARNING), (40, FindingLevel.OK)])
def test_the_end_of_an_acquirers_certificate_is_told(
    shop: Shop, tmp_path: Path, days: int, level: FindingLevel
) -> None:
    context, trusted = make_certificate(tmp_path, "localhost", days=days)
    with receiving(answering(), tls=context) as receiver:
        url = f"https://localhost:{receiver.port}/v1"
        AcquirerAccount.objects.create(
            channel=shop.channel, connector="card-api", acquirer_merchant_id="m", settings={"url": url}
        )
        with override_settings(GATEWAY_OUTBOUND_CA_FILE=str(trusted)):
            found = examine("ways out", DoctorQuestion(web=False))
        assert found[-1].level is level
        assert f"https://localhost:{receiver.port}: its certificate ends on" in found[-1].about
        stranger = examine("ways out", DoctorQuestion(web=False))[-1]
    assert (stranger.level, "is not trusted" in stranger.about) == (FindingLevel.ERROR, True)
    gone = examine("ways out", DoctorQuestion(web=False))[-1]
    assert (gone.level, "cannot be reached" in gone.about) == (FindingLevel.ERROR, True)


def test_the_public_address_is_asked_as_a_merchant_does(db: None, tmp_path: Path) -> None:
    context, trusted = make_certificate(tmp_path, "localhost", days=40)
    with receiving(answering(200, b"tollhouse_requests_total 1"), tls=context) as receiver:
        base = f"https://localhost:{receiver.port}"
        with override_settings(GATEWAY_BASE_URL=base, GATEWAY_OUTBOUND_CA_FILE=str(trusted)):
            found = faults("public address", DoctorQuestion(web=False))
    assert found == {"The proxy passes /metrics on.": FindingLevel.ERROR}


@pytest.mark.parametrize(
    "name, hours, fault",
    [
        ("{:%Y%m%dT%H%M%SZ}", 2, ""),
        ("{:%Y%m%d-%H%M%SF}", 29, ""),
        ("20250101-020000F_{:%Y%m%d-%H%M%SI}", 3, ""),
        ("{:%Y%m%dT%H%M%SZ}", 31, "31 hours old"),
        ("{:%Y%m%dT%H%M%SZ}.draft", 1, "holds no back-up"),
        ("2025", 1, "holds no back-up"),
        ("99999999T999999Z", 1, "holds no back-up"),
    ],
)
def test_the_newest_backup_tells_its_age(tmp_path: Path, name: str, hours: int, fault: str) -> None:
    at = clock.real_now() - timedelta(hours=hours, minutes=1)
    (tmp_path / name.format(at)).mkdir()
    ((level, about, _mend),) = examine_backups(DoctorQuestion(backups=tmp_path))
    assert (level, fault in about) == (FindingLevel.ERROR if fault else FindingLevel.OK, True)


UNIT = """#!/bin/sh
case "$2" in
*web*) echo Id=$2; echo LoadState=loaded; echo ActiveState=failed; echo Restart=no; echo LimitCORE=0 ;;
*) echo Id=$2; echo LoadState=not-found ;;
esac
"""


@pytest.mark.processes
def test_a_unit_that_failed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd does not run where tests do: a program of its name says what it would."""
    program = tmp_path / "systemctl"
    program.write_text(UNIT)
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert [about for level, about, _ in examine_units(ALONE) if level is not FindingLevel.OK] == [
        "tollhouse-web.service is failed.",
        "tollhouse-web.service has Restart=no.",
    ]


def test_a_part_that_fails_itself_does_not_hide_the_others(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_question: DoctorQuestion) -> Iterator[Any]:
        raise ZeroDivisionError

    parts = (
        DoctorPart(name="first", examine=fail),
        DoctorPart(name="last", examine=lambda _: [(FindingLevel.OK, "", "")]),
    )
    monkeypatch.setattr(examination, "PARTS", parts)
    found = list(examination.examine_installation(ALONE))
    assert [(one.part, one.level) for one in found] == [("first", FindingLevel.ERROR), ("last", FindingLevel.OK)]
    assert "ZeroDivisionError" in found[0].about


def test_quiet_shows_faults_alone(running: None) -> None:
    told = StringIO()
    with override_settings(GATEWAY_ENVIRONMENT="neither"), pytest.raises(SystemExit, match="1"):
        call_command("doctor", quiet=True, offline=True, no_web=True, stdout=told)
    lines = told.getvalue().splitlines()
    assert not any(line.startswith("  ok") for line in lines)
    assert any("tollhouse.E001" in line for line in lines)
    assert any(line.startswith("           → ") for line in lines)

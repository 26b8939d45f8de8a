"""Reconciliation files by SFTP, against a real sshd. Source: Part B, Reconciliation file; B19.3; decision 0026."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from gateway.access import permissions
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import AuditEntry, Merchant
from gateway.outbound import address_guard
from gateway.outbound.page_calls import TooManyPageCallsError, count_page_call
from gateway.vault import rewrap
from reporting import sftp
from reporting.admin import home_reconciliation
from reporting.reconciliation import daily_files, deliveries
from reporting.reconciliation.models import Delivery, DeliveryAttempt, ReconciliationFile, SftpTarget
from tests.support import books, sshd
from tests.support.database import places_of
from tests.support.fixtures import BY, Shop

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("sshd")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Server]:
    sshd.needed()
    with sshd.serving(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def server(served: sshd.Server, tmp_path: Path) -> sshd.Server:
    """The server with an empty folder for this test."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return replace(served, inbox=inbox)


@pytest.fixture(autouse=True)
def outbox(settings: Any, tmp_path: Path) -> None:
    settings.GATEWAY_OUTBOX = str(tmp_path / "outbox")


def point(shop: Shop, server: sshd.Server, **changes: Any) -> SftpTarget:
    usual = {
        "host": "127.0.0.1",
        "port": server.port,
        "username": server.user,
        "kind": "key",
        "secret": Secret(server.private_key),
        "host_key": server.host_key,
        "folder": str(server.inbox),
        "by": BY,
    }
    return deliveries.set_sftp_target(books.merchant_of(shop), **{**usual, **changes})


def written(shop: Shop) -> ReconciliationFile:
    """A file that is written, when its day is over."""
    institute = books.institute()
    books.record(books.settlement(shop, institute), books.file_of(institute))
    assert daily_files.write_due_daily_files(books.overnight(shop)) == 1
    return ReconciliationFile.objects.select_related("merchant").get(merchant=shop.merchant)


def forward(shop: Shop, **by: float) -> Merchant:
    merchant = books.merchant_of(shop)
    merchant.clock_offset += timedelta(**by)
    merchant.save(update_fields=["clock_offset"])
    return merchant


def attempts(file: ReconciliationFile) -> list[str]:
    tries = DeliveryAttempt.objects.filter(delivery__file=file).order_by("number")
    assert [one.number for one in tries] == list(range(1, len(tries) + 1))
    return [one.why for one in tries]


def test_a_written_file_is_sent_whole_under_its_name(shop: Shop, server: sshd.Server) -> None:
    """B19.3."""
    point(shop, server)
    file = written(shop)
    merchant = books.merchant_of(shop)
    assert deliveries.next_delivery_at(merchant) is not None
    assert deliveries.send_due_deliveries(None) == 1
    assert [path.name for path in server.inbox.iterdir()] == [file.name]
    assert (server.inbox / file.name).read_bytes() == daily_files.build_outbox_path(file).read_bytes()
    assert (file.delivery.state, file.delivery.attempts, attempts(file)) == (Delivery.State.DONE, 1, [""])
    assert deliveries.send_due_deliveries(None) == 0
    assert deliveries.next_delivery_at(merchant) is None


def test_a_host_with_another_key_gets_nothing(shop: Shop, server: sshd.Server) -> None:
    """Issue: host key checked."""
    point(shop, server, host_key=sshd.new_key()[1])
    file = written(shop)
    assert deliveries.send_due_deliveries(None) == 1
    assert "another key" in attempts(file)[0]
    assert list(server.inbox.iterdir()) == []


def test_what_went_wrong_is_kept_and_tried_again(shop: Shop, server: sshd.Server) -> None:
    """Issue: retried by rows with due times, every attempt kept."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        point(shop, server, port=closed.getsockname()[1])
    file = written(shop)
    assert deliveries.send_due_deliveries(None) == 1
    assert deliveries.send_due_deliveries(None) == 0
    point(shop, server, secret=Secret(sshd.new_key()[0]))
    forward(shop, minutes=1, seconds=1)
    assert deliveries.send_due_deliveries(None) == 1
    point(shop, server, folder=str(server.inbox / "missing"))
    forward(shop, minutes=2, seconds=1)
    assert deliveries.send_due_deliveries(None) == 1
    point(shop, server)
    daily_files.build_outbox_path(file).unlink()
    forward(shop, minutes=5, seconds=1)
    assert deliveries.send_due_deliveries(books.merchant_of(shop)) == 1
    refused, stranger, missing, sent = attempts(file)
    assert "connecting failed" in refused
    assert stranger == "logging in was refused"
    assert "sending failed" in missing
    assert sent == ""
    assert (server.inbox / file.name).read_bytes() == daily_files.build_outbox_path(file).read_bytes()


def told(shop: Shop, server: sshd.Server, **changes: Any) -> str:
    with pytest.raises(deliveries.SftpUnreachableError) as fault:
        deliveries.probe_sftp_target(point(shop, server, **changes))
    return str(fault.value)


def test_trying_a_target_tells_nothing_of_our_network(shop: Shop, server: sshd.Server, settings: Any) -> None:
    """Found in use: the words told which ports of this machine and its network are open."""
    with socket.socket() as mute, socket.socket() as closed:
        for line in (mute, closed):
            line.bind(("127.0.0.1", 0))
        mute.listen()
        Thread(target=lambda: mute.accept()[0].close(), daemon=True).start()
        words = {told(shop, server, port=line.getsockname()[1]) for line in (mute, closed)}
    assert words == {"connecting failed: no SSH server answers there"}
    database = int(settings.DATABASES["default"]["PORT"])
    assert "gateway's own" in told(shop, server, port=database)
    assert "from 1024" in told(shop, server, port=22)
    for host in ("10.0.0.1", "192.168.1.1", "169.254.169.254", "::ffff:10.0.0.1", "100.64.0.1"):
        assert "private" in (words := told(shop, server, host=host)) or "disguise" in words, host
    settings.GATEWAY_OUTBOUND_LOOPBACK = False
    assert "this machine itself" in told(shop, server)


def test_a_trial_leaves_its_session_to_others_and_few_run_at_a_time(
    shop: Shop, server: sshd.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by trying: sixteen trials of a server that hangs had all sessions of a node, and no payment went on."""
    pauses: list[int] = []
    monkeypatch.setattr(sftp, "pause_work", lambda: pauses.append(1))
    deliveries.probe_sftp_target(point(shop, server))
    assert pauses == [1]
    with count_page_call(shop.merchant.pk), count_page_call(shop.merchant.pk), pytest.raises(TooManyPageCallsError):
        deliveries.probe_sftp_target(point(shop, server))
    deliveries.probe_sftp_target(point(shop, server))


def test_a_network_of_ones_own_is_named_in_the_settings(settings: Any) -> None:
    """A bank's server behind a private line is called where the operator says so, and on ports for files alone."""
    with pytest.raises(address_guard.ForbiddenAddressError, match="private"):
        address_guard.resolve_sftp_address("10.1.2.3", 22, 1.0)
    settings.GATEWAY_SFTP_NETWORKS = ["10.1.2.0/24"]
    assert address_guard.resolve_sftp_address("10.1.2.3", 22, 1.0)[0][1][:2] == ("10.1.2.3", 22)
    for host, port in (("10.1.3.3", 22), ("10.1.2.3", 25)):
        with pytest.raises(address_guard.ForbiddenAddressError):
            address_guard.resolve_sftp_address(host, port, 1.0)


def test_it_is_given_up_at_last(shop: Shop, server: sshd.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MAX_DELIVERY_ATTEMPTS", 2)
    point(shop, server, host_key=sshd.new_key()[1])
    file = written(shop)
    for _ in range(3):
        deliveries.send_due_deliveries(None)
        forward(shop, hours=2)
    file.delivery.refresh_from_db()
    assert (file.delivery.state, file.delivery.attempts) == (Delivery.State.FAILED, 2)
    told = home_reconciliation.build_delivery_panel(permissions.AccessScope(everything=True))
    assert told is not None, "the first page tells of it"
    assert [(one.value, one.tone) for one in told.figures] == [("0", ""), ("1", "bad")]
    page = f"/admin/reporting/reconciliationfile/{file.pk}/change/"
    assert told.facts == [(f"{file.merchant.name} {file.day:%Y-%m-%d}", attempts(file)[-1], page)]


def test_a_target_that_was_switched_off_gets_nothing_any_more(shop: Shop, server: sshd.Server) -> None:
    """Neither what waited for it nor files that are written later."""
    point(shop, server)
    file = written(shop)
    SftpTarget.objects.update(active=False)
    assert deliveries.send_due_deliveries(None) == 1
    file.delivery.refresh_from_db()
    assert (file.delivery.state, attempts(file)) == (Delivery.State.FAILED, ["there is no target any more"])
    assert list(server.inbox.iterdir()) == []
    assert daily_files.write_due_daily_files(forward(shop, days=1)) == 1
    assert Delivery.objects.count() == 1


def test_who_named_no_server_is_told_nothing_of_sending(shop: Shop) -> None:
    assert home_reconciliation.build_delivery_panel(permissions.AccessScope(everything=True)) is None


def test_a_file_is_sent_by_one_at_a_time_and_a_dead_ones_lease_runs_out(shop: Shop, server: sshd.Server) -> None:
    point(shop, server)
    file = written(shop)
    Delivery.objects.update(lease_until=clock.real_now() + timedelta(minutes=1))
    assert deliveries.send_due_deliveries(None) == 0
    Delivery.objects.update(lease_until=clock.real_now() - timedelta(seconds=1))
    assert deliveries.send_due_deliveries(None) == 1
    assert attempts(file) == [""]


def test_a_file_takes_the_place_of_an_older_one(shop: Shop, server: sshd.Server) -> None:
    """A temporary name, then a rename: whoever looks sees one or the other, never half of one."""
    point(shop, server)
    file = written(shop)
    (server.inbox / file.name).write_text("older")
    (server.inbox / f".{file.name}.part").write_text("left behind by one that died" * 10_000)
    assert deliveries.send_due_deliveries(None) == 1
    assert [path.name for path in server.inbox.iterdir()] == [file.name]
    assert (server.inbox / file.name).read_bytes() == daily_files.build_outbox_path(file).read_bytes()


def test_the_secret_is_sealed_and_the_change_is_in_the_audit_trail(shop: Shop) -> None:
    private, public = sshd.new_key()
    values = {"host": "sftp.example", "port": 22, "username": "shop", "folder": "in", "by": BY, "host_key": public}
    target = deliveries.set_sftp_target(books.merchant_of(shop), kind="key", secret=Secret(private), **values)
    assert places_of(private.splitlines()[2]) == set()
    entry = AuditEntry.objects.get(action="point")
    assert (entry.subject_id, entry.after) == (
        str(target.pk),
        {"merchant": shop.merchant.name, "target": "sftp://shop@sftp.example:22/in"},
    )
    assert any(column.model is SftpTarget for column in rewrap.SEALED_COLUMNS)
    for wrong in ({"host_key": "AAAA"}, {"secret": Secret("not a key")}):
        with pytest.raises(ValueError, match="key"):
            deliveries.set_sftp_target(
                books.merchant_of(shop), **{"kind": "key", "secret": Secret(private), **values, **wrong}
            )


def test_the_command_sets_a_target_up_and_tries_it(shop: Shop, server: sshd.Server, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(server.private_key)
    own = {"merchant": shop.merchant.entity_id}
    told = {
        "host": "127.0.0.1",
        "port": server.port,
        "user": server.user,
        "key_file": str(key),
        "host_key": server.host_key,
        "folder": str(server.inbox),
    }
    out = io.StringIO()
    call_command("reconciliation_target", **own, **told, stdout=out)
    call_command("reconciliation_target", **own, stdout=out)
    assert out.getvalue().count("logged in") == 2
    for wrong, words in (
        ({"folder": str(server.inbox / "missing")}, "looking into the folder failed"),
        ({"host_key": "AAAA"}, "two words"),
        ({"user": None}, "--user"),
    ):
        with pytest.raises(CommandError, match=words):
            call_command("reconciliation_target", **own, **{**told, **wrong})
    call_command("reconciliation_target", **own, off=True, stdout=out)
    file = written(shop)
    assert not Delivery.objects.filter(file=file).exists()

"""Settlement files fetched by SFTP, from a real sshd. Source: decision 0032."""

from __future__ import annotations

import contextlib
import io
import math
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import AuditEntry
from gateway.outbound.page_calls import count_page_call
from gateway.vault import rewrap
from reporting import sftp
from reporting.models import ClearingInstitute, MatchState, SettlementFile, SettlementRecord
from reporting.settlement import files, intake, sftp_fetch
from reporting.settlement.models import RemoteFile, SftpSource
from tests.support import sshd
from tests.support.database import database_ahead, places_of
from tests.support.fixtures import BY, Shop
from tests.support.office import Moving, person, signed_in
from tests.support.ports import free_port
from tests.support.settlement import csv, institute, line, payment_of

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("sshd")]
PAN = "4200000000000000"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Server]:
    sshd.needed()
    with sshd.serving(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def server(served: sshd.Server, tmp_path: Path, settings: Any) -> sshd.Server:
    """The server with an empty folder for this test."""
    settings.GATEWAY_WORK_DIR = str(tmp_path / "work")
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return replace(served, inbox=inbox)


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> Moving:
    """Real time, moved by hand."""
    moving = Moving(clock.real_now())
    monkeypatch.setattr(clock, "real_now", moving.real)
    return moving


@pytest.fixture
def of(db: None) -> ClearingInstitute:
    return institute()


def fetch(of: ClearingInstitute, server: sshd.Server, **changes: Any) -> SftpSource:
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
    return sftp_fetch.configure_source(of, **{**usual, **changes})


def one_line(shop: Shop, **changes: str) -> bytes:
    return csv([line(ClearingInstituteMerchantId=shop.channel.pk.hex, ConnectorTxId1="unknown", **changes)])


def looked(moving: Moving, **by: float) -> int:
    """What a look takes in, after a while."""
    moving.shift(timedelta(**(by or {"minutes": 10})))
    return sftp_fetch.fetch_due_sources()


def states(source: SftpSource) -> dict[str, str]:
    return dict(RemoteFile.objects.filter(source=source).values_list("name", "state"))


def in_clear(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_file_that_lies_still_is_fetched_read_and_matched(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving, tmp_path: Path
) -> None:
    """Issue: intake by SFTP. Card numbers in it are never on a disk in clear."""
    source = fetch(of, server)
    payment = payment_of(shop.api.pay().id)
    (server.inbox / "may.csv").write_bytes(csv([line(payment, Descriptor=f"card {PAN}")]))
    assert looked(moving, seconds=1) == 0
    assert states(source) == {"may.csv": "SEEN"}
    assert looked(moving, seconds=1) == 0  # not due yet
    assert looked(moving, seconds=11) == 1
    file = SettlementFile.objects.get()
    assert (file.name, file.source, file.received_by) == ("may.csv", "sftp", "SFTP")
    assert RemoteFile.objects.get().file == file
    assert in_clear(tmp_path / "work", PAN) == []
    assert intake.process_file(file.pk)
    assert SettlementRecord.objects.get().state == MatchState.MATCHED
    assert looked(moving) == 0
    assert (server.inbox / "may.csv").exists()
    source.refresh_from_db()
    assert (source.failures, source.why, source.lease_until) == (0, "", None)


def test_a_file_that_grows_or_says_that_it_is_being_written_is_waited_for(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving
) -> None:
    source = fetch(of, server, pattern="*.csv")
    whole = one_line(shop)
    growing = server.inbox / "may.csv"
    for name in ("a.csv.part", ".b.csv", "c.csv.tmp", "d.csv.filepart", "e.txt"):
        (server.inbox / name).write_bytes(whole)
    (server.inbox / "f.csv").symlink_to(server.inbox / "e.txt")
    (server.inbox / "g.csv").mkdir()
    for number in range(1, 4):
        growing.write_bytes(whole[: len(whole) * number // 3])
        assert looked(moving) == 0
    assert states(source) == {"may.csv": "SEEN"}
    assert looked(moving) == 1
    assert SettlementFile.objects.get().size == len(whole)


def test_the_same_file_twice_is_refused_and_a_new_one_of_the_same_name_taken_in(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving
) -> None:
    source = fetch(of, server)
    (server.inbox / "may.csv").write_bytes(one_line(shop))
    assert [looked(moving) for _ in range(2)] == [0, 1]
    (server.inbox / "again.csv").write_bytes(one_line(shop))
    (server.inbox / "letter.csv").write_bytes(b"Dear Sirs")
    assert [looked(moving) for _ in range(3)] == [0, 0, 0]
    assert states(source) == {"may.csv": "TAKEN", "again.csv": "REFUSED", "letter.csv": "REFUSED"}
    assert "has the same content" in RemoteFile.objects.get(name="again.csv").why
    newer = server.inbox / "may.csv"
    newer.write_bytes(one_line(shop, Amount="93.00"))
    # As large as before: by SFTP only its time, in whole seconds, tells it from the old one.
    os.utime(newer, (time.time() + 5, time.time() + 5))
    assert [looked(moving) for _ in range(3)] == [0, 1, 0]
    assert SettlementFile.objects.count() == 2
    source.refresh_from_db()
    assert source.failures == 0


def test_what_was_taken_in_is_moved_where_that_is_wanted(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving
) -> None:
    source = fetch(of, server, after_download="move", moved_to="read")
    done = server.inbox / "read"
    for amount in ("92.00", "93.00"):
        (server.inbox / "daily.csv").write_bytes(one_line(shop, Amount=amount))
        assert [looked(moving) for _ in range(2)] == [0, 1]
        assert not (server.inbox / "daily.csv").exists()
    assert sorted(path.name.rpartition("-")[2] for path in done.iterdir()) == ["daily.csv", "daily.csv"]
    # Somebody lays it back: its content is known, so it is refused and stays.
    (done / "daily.csv").rename(server.inbox / "daily.csv")
    assert [looked(moving) for _ in range(3)] == [0, 0, 0]
    assert states(source) == {"daily.csv": "REFUSED"}
    assert (server.inbox / "daily.csv").exists()


def test_a_look_that_died_after_receiving_goes_on_where_it_was(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving
) -> None:
    source = fetch(of, server)
    (server.inbox / "may.csv").write_bytes(one_line(shop))
    assert [looked(moving) for _ in range(2)] == [0, 1]
    # As it stood when the file was received and its row not written yet.
    RemoteFile.objects.update(state="SEEN", file=None)
    SftpSource.objects.update(lease_until=Now() + sftp.session_lease())
    assert looked(moving) == 0
    with database_ahead(timedelta(hours=1)):
        assert looked(moving, hours=1) == 1
    assert states(source) == {"may.csv": "TAKEN"}
    assert RemoteFile.objects.get().file == SettlementFile.objects.get()


def test_what_goes_wrong_is_seen_and_tried_again_less_and_less_often(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving
) -> None:
    (server.inbox / "may.csv").write_bytes(one_line(shop))
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"port": free_port()}, "connecting failed"),
        ({"host_key": sshd.new_key()[1]}, "another key"),
        ({"secret": Secret(sshd.new_key()[0])}, "logging in was refused"),
        ({"folder": str(server.inbox / "missing")}, "looking into the folder failed"),
    )
    for changes, words in wrong:
        source = fetch(of, server, **changes)
        assert looked(moving) == 0
        source.refresh_from_db()
        assert words in source.why
        assert source.failures == 1
    waits = []
    for _ in range(7):
        at = moving.at = source.due_at
        sftp_fetch.fetch_due_sources()
        source.refresh_from_db()
        waits.append(int((source.due_at - at).total_seconds() / 60))
    assert waits == [2, 5, 15, 30, 60, 60, 60]
    max_ = signed_in(person("max", "manager", shop.merchant))
    assert "8 looks failed" in max_.get("/admin/reporting/settlementfile/").content.decode()
    fetch(of, server)
    assert [looked(moving) for _ in range(2)] == [0, 1]


def test_a_file_that_cannot_be_moved_is_told_of_and_keeps_no_other_waiting(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving
) -> None:
    source = fetch(of, server, pattern="*.csv", after_download="move")
    in_the_way = server.inbox / "done"
    in_the_way.write_text("no folder")
    for number, name in enumerate(("a.csv", "b.csv"), 1):
        (server.inbox / name).write_bytes(one_line(shop, Amount=f"{number}.00"))
    for _ in range(2):
        looked(moving)
    assert SettlementFile.objects.count() == 2
    source.refresh_from_db()
    assert (source.failures, source.why[:5]) == (1, "a.csv")
    in_the_way.unlink()
    assert looked(moving) == 2
    assert sorted(path.name for path in in_the_way.iterdir()) == ["a.csv", "b.csv"]
    source.refresh_from_db()
    assert (source.failures, source.why) == (0, "")


def test_a_file_above_the_limit_is_not_even_fetched(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving, settings: Any
) -> None:
    settings.GATEWAY_SETTLEMENT_MAX_BYTES = 100
    source = fetch(of, server)
    (server.inbox / "may.csv").write_bytes(one_line(shop))
    assert [looked(moving) for _ in range(2)] == [0, 0]
    assert states(source) == {"may.csv": "REFUSED"}
    assert "larger than 100 bytes" in RemoteFile.objects.get().why


def test_a_large_file_comes_whole(of: ClearingInstitute, server: sshd.Server) -> None:
    """Piece by piece, several of them asked for at once."""
    octets = os.urandom(files.FILE_PIECE_BYTES * 3 + 4711)
    (server.inbox / "large").write_bytes(octets)
    source = fetch(of, server)
    with sftp.open_sftp_session(source) as client, client.open(str(server.inbox / "large")) as opened:
        coming = sftp_fetch._Download(opened, sftp_fetch.RemoteFileInfo(name="large", size=len(octets), modified=0))
        assert b"".join(iter(lambda: coming.read(files.FILE_PIECE_BYTES), b"")) == octets


def test_the_secret_is_sealed_and_every_change_is_in_the_audit_trail(of: ClearingInstitute) -> None:
    private, public = sshd.new_key()
    values = {"host": "sftp.example", "port": 22, "username": "shop", "folder": "out", "by": BY, "host_key": public}
    sftp_fetch.configure_source(of, kind="key", secret=Secret(private), **values)
    assert places_of(private.splitlines()[2]) == set()
    assert AuditEntry.objects.get(action="fetch from").after["source"] == "sftp://shop@sftp.example:22/out"
    assert any(column.model is SftpSource for column in rewrap.SEALED_COLUMNS)
    for wrong in (
        {"host_key": "ssh-new AAAA"},
        {"secret": Secret("x")},
        {"after_download": "move", "moved_to": "../.."},
        {"every_s": 1},
    ):
        with pytest.raises(ValueError, match=r"key|moved to|looks"):
            sftp_fetch.configure_source(of, **{"kind": "key", "secret": Secret(private), **values, **wrong})


def test_the_page_sets_a_source_up_tries_it_and_switches_it_off_and_on(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving
) -> None:
    page = f"/admin/reporting/settlementfile/source/{of.pk}/"
    max_ = signed_in(person("max", "manager", shop.merchant))
    form = {
        "host": "127.0.0.1",
        "port": str(server.port),
        "username": server.user,
        "folder": str(server.inbox),
        "host_key": server.host_key,
        "kind": "key",
        "secret": server.private_key.replace("\n", "\r\n"),
        "pattern": "*.csv",
        "after_download": "leave",
        "moved_to": "",
        "every_s": "300",
        "verb": "save",
    }
    for name, value in (
        ("host_key", "AAAA"),
        ("secret", "none"),
        ("every_s", "1"),
        ("after_download", "eat"),
        ("host", ""),
    ):
        answer = max_.post(page, {**form, name: value})
        assert (answer.status_code, 'role="alert"' in answer.content.decode()) == (400, True), name
    assert max_.post(page, {**form, "after_download": "move"}).status_code == 400
    assert not SftpSource.objects.exists()
    assert max_.post(page, form).status_code == 302
    (server.inbox / "may.csv").write_bytes(one_line(shop))
    assert "Logged in; 1 file lies there." in max_.post(page, {"verb": "try"}, follow=True).content.decode()
    source = SftpSource.objects.get().pk
    with count_page_call(source), count_page_call(source):
        refused = max_.post(page, {"verb": "try"}, follow=True).content.decode()
    assert "Nothing was sent: other servers are being tried just now." in refused
    max_.post(page, {"verb": "off"})
    assert [looked(moving) for _ in range(2)] == [0, 0]
    max_.post(page, {"verb": "on"})
    assert looked(moving) == 0
    max_.post(page, {"verb": "look"})
    assert looked(moving, seconds=11) == 1
    shown = max_.get(page).content.decode()
    assert "may.csv" in shown
    assert str(SettlementFile.objects.get().pk) in shown
    assert server.private_key.splitlines()[2] not in shown
    server.inbox.rename(server.inbox.with_name("gone"))
    assert "It does not work" in max_.post(page, {"verb": "try"}, follow=True).content.decode()
    assert list(AuditEntry.objects.filter(subject="sftpsource").order_by("at").values_list("action", flat=True)) == [
        "fetch from",
        "off",
        "on",
    ]
    for role, status in (("auditor", 200), ("clerk", 403), ("developer", 403)):
        other = signed_in(person(role, role, shop.merchant))
        assert (other.get(page).status_code, other.post(page, {"verb": "try"}).status_code) == (status, 403)


def test_the_command_sets_a_source_up_and_tries_it(of: ClearingInstitute, server: sshd.Server, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(server.private_key)
    told = {
        "host": "127.0.0.1",
        "port": server.port,
        "user": server.user,
        "key_file": str(key),
        "host_key": server.host_key,
        "folder": str(server.inbox),
        "move_to": "done",
    }
    out = io.StringIO()
    with pytest.raises(CommandError, match="Nothing is set up"):
        call_command("settlement_source")
    call_command("settlement_source", **told, stdout=out)
    call_command("settlement_source", institute=of.key, stdout=out)
    assert out.getvalue().count("logged in, 0 files") == 2
    for wrong, words in (
        ({"folder": str(server.inbox / "missing")}, "looking into the folder failed"),
        ({"host_key": "AAAA"}, "two words"),
        ({"user": None}, "--user"),
        ({"every": 1}, "between two looks"),
        ({"institute": "nobody"}, "no clearing institute"),
    ):
        with pytest.raises(CommandError, match=words):
            call_command("settlement_source", **{**told, **wrong})
    call_command("settlement_source", off=True, stdout=out)
    assert not SftpSource.objects.get().active


@contextlib.contextmanager
def trickling(upstream: int, after: int) -> Iterator[int]:
    """A port in front of ``upstream`` whose answers come byte by byte from the ``after``-th of a connection on."""
    over = threading.Event()

    def pump(source: socket.socket, sink: socket.socket, free: float) -> None:
        with contextlib.suppress(OSError):
            while octets := source.recv(65_536 if free > 0 else 1):
                free -= len(octets)
                sink.sendall(octets)
                if free <= 0:
                    over.wait(0.1)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def accept(door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = door.accept()
                behind = socket.create_connection(("127.0.0.1", upstream))
                threading.Thread(target=pump, args=(client, behind, math.inf), daemon=True).start()
                threading.Thread(target=pump, args=(behind, client, after), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=accept, args=(door,), daemon=True).start()
        yield door.getsockname()[1]
        over.set()


def test_a_server_that_sends_a_byte_now_and_then_does_not_hold_up_the_others(
    shop: Shop, of: ClearingInstitute, server: sshd.Server, moving: Moving, settings: Any
) -> None:
    """Each byte comes in time. The session is ended before the run is, counts as a failure, and the next is begun."""
    settings.GATEWAY_TIMER_LIMIT_S = 20
    folder = server.inbox / "other"
    folder.mkdir()
    (folder / "may.csv").write_bytes(one_line(shop))
    (server.inbox / "large.csv").write_bytes(one_line(shop) + b"#" * 300_000)
    with trickling(server.port, after=60_000) as port:
        slow = fetch(of, server, port=port)
        other = fetch(institute(key="other", name="Other Clearing"), server, folder=str(folder))
        SftpSource.objects.filter(pk=other.pk).update(due_at=slow.due_at + timedelta(milliseconds=1))
        assert looked(moving) == 0
        assert (states(slow), states(other)) == ({"large.csv": "SEEN"}, {"may.csv": "SEEN"})
        moving.shift(timedelta(minutes=10))
        assert sftp_fetch.fetch_due_sources() + sftp_fetch.fetch_due_sources() == 1
    slow.refresh_from_db()
    assert (slow.failures, slow.lease_until) == (1, None)
    assert "large.csv" in slow.why
    assert states(other) == {"may.csv": "TAKEN"}

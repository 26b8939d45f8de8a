"""Links to ISO 8583 hosts: frames, correlation, sign-on, echo, reconnecting, and messages that no request waits for."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.test import override_settings

from gateway.connectors.iso8583 import link_registry
from gateway.connectors.iso8583.connection import HostConnection
from gateway.connectors.iso8583.iso_request import build_iso_request
from gateway.connectors.iso8583.link import LINK_TICK_S, HostLink
from gateway.connectors.iso8583.link_registry import LinkUnansweredError, LinkUnreachableError, get_link
from gateway.connectors.iso8583.mapping import build_iso_message
from gateway.connectors.iso8583.pending_requests import PendingRequestTable
from gateway.connectors.iso8583.terminal import Terminal, parse_terminal
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerRequest, ConnectorAccount
from gateway.core.money import Money
from gateway.core.secret import Secret
from tests.support.iso_host import PATIENCE_S, IsoHost, settings_for


def terminal(host: IsoHost, **more: str) -> Terminal:
    return parse_terminal(ConnectorAccount(merchant="M-1", settings=settings_for(host, **more)))


def debit(of: Terminal, payment: UUID | None = None, amount: str = "92.00") -> dict[str, str]:
    request = AcquirerRequest(
        payment=payment or uuid4(),
        trace_number=2 * secrets.randbelow(499_950) + 1,  # another one in a forked process
        operation="DB",
        money=Money.parse(amount, "EUR"),
        brand="VISA",
        at=datetime(2026, 3, 1, 12, tzinfo=UTC),
        means=Card(number=Secret("4200000000000000"), expiry_month="05", expiry_year="2034"),
    )
    return build_iso_message(build_iso_request(request, of))


def ask(of: Terminal, message: dict[str, str] | None = None, within_s: float = PATIENCE_S) -> dict[str, str]:
    return get_link(of).exchange(message or debit(of), time.monotonic() + within_s)


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.005)


def strays(kind: str) -> int:
    return link_registry.list_link_states()[0].strays.get(kind, 0)


def test_a_link_signs_on_says_how_it_is_and_signs_off(iso_host: IsoHost) -> None:
    """0800 with DE70 001 and 002."""
    to = terminal(iso_host)
    assert link_registry.list_link_states() == ()
    assert ask(to)["39"] == "00"
    (state,) = link_registry.list_link_states()
    assert (state.state, state.why, state.in_flight, state.merchant) == ("up", "", 0, "M-1")
    assert state.label == f"127.0.0.1:{iso_host.port} TERM0001"
    link_registry.close_all_links()
    iso_host.wait(lambda: len(iso_host.seen("0800")) == 2, "the sign-off")
    assert [message["70"] for message in iso_host.seen("0800")] == ["001", "002"]
    assert link_registry.list_link_states() == ()


def test_a_link_signs_off_once(iso_host: IsoHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """close() and the link's own thread both notice the end; the host gets one 0800 with DE70 002."""
    signing_off = HostLink._sign_off

    def slowly(self: HostLink, connection: HostConnection) -> None:
        signing_off(self, connection)
        time.sleep(LINK_TICK_S * 2)

    monkeypatch.setattr(HostLink, "_sign_off", slowly)
    assert ask(terminal(iso_host))["39"] == "00"
    link_registry.close_all_links()
    iso_host.wait(lambda: len(iso_host.seen("0800")) >= 2, "the sign-off")
    time.sleep(LINK_TICK_S * 2)
    assert [message["70"] for message in iso_host.seen("0800")] == ["001", "002"]


@pytest.mark.parametrize("network", ["05", ""])
def test_without_a_sign_on_nothing_is_asked(iso_host: IsoHost, network: str) -> None:
    """A host that refuses it, or says nothing: nobody can have accepted a payment."""
    iso_host.network = network
    with pytest.raises(LinkUnreachableError):
        ask(terminal(iso_host), within_s=1.0)
    assert not iso_host.seen("0200")


def test_where_no_sign_on_is_wanted_none_is_sent(iso_host: IsoHost) -> None:
    """The account's setting."""
    iso_host.network = ""
    assert ask(terminal(iso_host, sign_on="off"))["39"] == "00"
    assert not iso_host.seen("0800")


@pytest.mark.parametrize("header", ["2b", "4b", "4a"])
@pytest.mark.parametrize("itself", ["on", "off"])
def test_answers_in_pieces_and_twice_in_one_packet_are_read(header: str, itself: str, iso_host: IsoHost) -> None:
    """TCP keeps no borders."""
    to = terminal(iso_host, header=header, header_counts_itself=itself)
    iso_host.wire = to.wire
    iso_host.next("0200", "split")
    iso_host.next("0200", "twice")
    assert ask(to)["39"] == "00"
    assert ask(to)["39"] == "00"
    until(lambda: strays("duplicate") == 1, "the second answer is counted")
    assert ask(to)["39"] == "00"
    assert iso_host.connections == 1


def test_answers_out_of_order_find_their_questions(iso_host: IsoHost) -> None:
    """Correlation by DE11 and DE37."""
    to = terminal(iso_host)
    iso_host.next("0200", "held", times=8)
    messages = [debit(to, amount=f"{number}.00") for number in range(20, 28)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        futures: list[Future[dict[str, str]]] = [pool.submit(ask, to, message) for message in messages]
        iso_host.wait(lambda: iso_host.held == 8, "all eight are there")
        assert link_registry.list_link_states()[0].in_flight == 8
        iso_host.release(backwards=True)
        answers = [future.result(PATIENCE_S) for future in futures]
    assert [answer["4"] for answer in answers] == [message["4"] for message in messages]


def test_fifty_questions_share_one_connection(iso_host: IsoHost) -> None:
    """Goals, P5."""
    to = terminal(iso_host)
    messages = [debit(to, amount=f"{number}.00") for number in range(100, 150)]
    with ThreadPoolExecutor(max_workers=50) as pool:
        answers = list(pool.map(lambda message: ask(to, message), messages))
    assert [answer["4"] for answer in answers] == [message["4"] for message in messages]
    assert iso_host.connections == 1
    assert link_registry.list_link_states()[0].in_flight == 0


def test_a_late_answer_is_counted_and_given_to_nobody(iso_host: IsoHost) -> None:
    """Goals, R1: the acquirer answers late."""
    to = terminal(iso_host)
    assert ask(to)["39"] == "00"
    iso_host.next("0200", "held")
    with pytest.raises(LinkUnansweredError):
        ask(to, within_s=1.0)
    iso_host.release()
    until(lambda: strays("late") == 1, "the late answer is counted")
    assert ask(to)["39"] == "00"


@pytest.mark.parametrize("change", [{"de11": "000000"}, {"de37": "999999999999"}, {"de41": "OTHER   "}, {"de37": None}])
def test_an_answer_with_other_numbers_is_given_to_nobody(iso_host: IsoHost, change: dict[str, str | None]) -> None:
    """DE11, DE37 and DE41 belong together."""
    to = terminal(iso_host)
    assert ask(to)["39"] == "00"
    iso_host.next("0200", **change)
    with pytest.raises(LinkUnansweredError):
        ask(to, within_s=1.0)
    until(lambda: strays("unknown") == 1, "it is counted")


def test_a_host_that_does_not_repeat_the_terminal_is_understood(iso_host: IsoHost) -> None:
    """DE41 counts where it is told."""
    iso_host.next("0200", de41=None)
    assert ask(terminal(iso_host))["39"] == "00"


def test_a_link_over_tls_trusts_the_accounts_certificate_and_no_other(iso_host: IsoHost, tmp_path: Path) -> None:
    """The settings tls, tls_ca and tls_name."""
    own, other = certificate(tmp_path / "own"), certificate(tmp_path / "other")
    iso_host.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    iso_host.tls.load_cert_chain(own)
    iso_host.next("0200", "split", times=2)
    to = terminal(iso_host, tls="on", tls_name="host.example", tls_ca=own.read_text().partition("-----BEGIN PRIV")[0])
    with ThreadPoolExecutor(max_workers=8) as pool:
        assert {answer["39"] for answer in pool.map(lambda _: ask(to), range(24))} == {"00"}
    assert iso_host.connections == 1
    for wrong in ({"tls_ca": other.read_text().partition("-----BEGIN PRIV")[0]}, {"tls_name": "another.example"}):
        refused = replace(to, **wrong)
        with pytest.raises(LinkUnreachableError, match="certificate"):
            ask(refused)


@pytest.mark.parametrize("closes", [HostConnection.close, HostConnection.abort])
def test_nothing_goes_in_clear_while_a_link_over_tls_is_closed(
    iso_host: IsoHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closes: Callable[[HostConnection], None]
) -> None:
    """A payment that is sent at that moment has its card number in it."""
    own = certificate(tmp_path / "own")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    read: list[bytes] = []
    shut_down = socket.socket.shutdown
    errors: list[OSError] = []

    def read_records(server: socket.socket) -> None:
        line = context.wrap_socket(server.accept()[0], server_side=True)
        with line, contextlib.suppress(OSError):
            while octets := socket.socket.recv(line, 65_536):
                read.append(octets)

    def send() -> None:
        try:
            connection.send(b"4200000000000000", time.monotonic() + PATIENCE_S)
        except OSError as fault:
            errors.append(fault)

    sending = threading.Thread(target=send)

    def shut_down_slowly(line: socket.socket, how: int) -> None:
        if sending.ident is None:
            sending.start()
            sending.join(0.5)  # it waits until the connection is closed
        shut_down(line, how)

    with socket.create_server(("127.0.0.1", 0)) as server:
        reading = threading.Thread(target=read_records, args=(server,))
        reading.start()
        settings = {"tls": "on", "tls_name": "host.example", "tls_ca": halves(own)[0]}
        to = replace(terminal(iso_host, **settings), port=server.getsockname()[1])
        connection = HostConnection(to, time.monotonic() + PATIENCE_S)
        monkeypatch.setattr(socket.socket, "shutdown", shut_down_slowly)
        closes(connection)
        sending.join(PATIENCE_S)
        reading.join(PATIENCE_S)
    assert b"4200000000000000" not in b"".join(read)
    assert errors


def test_a_host_that_wants_a_certificate_of_ours_gets_it(iso_host: IsoHost, tmp_path: Path) -> None:
    """The settings tls_certificate and tls_key."""
    theirs, ours, other = (certificate(tmp_path / name) for name in ("theirs", "ours", "other"))
    iso_host.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    iso_host.tls.load_cert_chain(theirs)
    iso_host.tls.verify_mode = ssl.CERT_REQUIRED
    iso_host.tls.load_verify_locations(ours)

    def of(own: Path, key: Path) -> Terminal:
        more = {"tls": "on", "tls_name": "host.example", "tls_ca": halves(theirs)[0], "tls_certificate": halves(own)[0]}
        secrets = {"tls_key": Secret(halves(key)[1])}
        return parse_terminal(
            ConnectorAccount(merchant="M-1", settings=settings_for(iso_host, **more), secrets=secrets)
        )

    assert ask(of(ours, ours))["39"] == "00"
    with pytest.raises(LinkUnreachableError):
        ask(of(other, other), within_s=2.0)
    with pytest.raises(LinkUnreachableError, match="tls_certificate and tls_key do not do"):
        ask(of(ours, other), within_s=2.0)
    assert "PRIVATE" not in repr(of(ours, ours))


def test_another_key_is_another_link(iso_host: IsoHost) -> None:
    """A changed key is used by the next question, and what says nothing of the line leaves the link alone."""
    keys = [
        ConnectorAccount(merchant="M-1", settings=settings_for(iso_host), secrets={"tls_key": Secret(f"key {number}")})
        for number in (1, 2)
    ]
    assert parse_terminal(keys[0]) != parse_terminal(keys[1])
    assert terminal(iso_host, capture="batch", batch_at="01:00") == terminal(iso_host)


def halves(path: Path) -> tuple[str, str]:
    """The certificate and the key of a file that holds both."""
    certificate, mark, key = path.read_text().partition("-----BEGIN PRIVATE KEY-----")
    return certificate, mark + key


def test_live_says_nothing_in_clear_to_a_host_whose_address_is_not_private(
    iso_host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name may lead anywhere: where it led to is looked at before anything is sent."""
    with override_settings(IS_LIVE=True):
        to = replace(terminal(iso_host, without_tls="on"), host="localhost")
        assert ask(to)["39"] == "00"
        link_registry.close_all_links()
        seen = len(iso_host.log)
        monkeypatch.setattr("gateway.connectors.iso8583.connection.is_private_address", lambda address: False)
        with pytest.raises(LinkUnreachableError, match="not private"):
            ask(to, within_s=2.0)
    assert iso_host.log[seen:] == [message for message in iso_host.log[seen:] if message.get("70") == "002"]


def certificate(path: Path) -> Path:
    """A certificate of host.example with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "host.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("host.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    held = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(made.public_bytes(Encoding.PEM) + held)
    return path


def test_a_frame_that_is_no_message_is_passed_over(iso_host: IsoHost) -> None:
    """The length says where the next one begins."""
    iso_host.next("0200", "garbage")
    assert ask(terminal(iso_host))["39"] == "00"
    assert strays("unreadable") == 1


@pytest.mark.parametrize("octets", [b"\xff\xff", b"\x20\x01"], ids=["longest", "one too long"])
def test_a_length_that_cannot_be_takes_the_link_down(iso_host: IsoHost, octets: bytes) -> None:
    """Nothing after it can be told apart; a new connection can."""
    to = terminal(iso_host)
    assert ask(to)["39"] == "00"
    iso_host.push(octets)
    until(lambda: "length header" in link_registry.list_link_states()[0].why, "the link says why")
    assert ask(to)["39"] == "00"
    assert iso_host.connections == 2


def test_a_fault_of_ours_takes_the_link_down_and_not_for_good(
    iso_host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is handed the connection of a thread that has ended."""
    to = terminal(iso_host)
    assert ask(to)["39"] == "00"

    def fail(self: PendingRequestTable, kind: str, what: str) -> None:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(PendingRequestTable, "stray", fail)
        iso_host.next("0200", "twice")
        assert ask(to)["39"] == "00"
        until(lambda: link_registry.list_link_states()[0].why == "RuntimeError", "it is down")
    assert ask(to)["39"] == "00"
    assert iso_host.connections == 2


def test_a_host_that_hangs_up_in_the_middle_of_an_answer_leaves_it_unanswered(iso_host: IsoHost) -> None:
    """Goals, R1; and the next question connects again."""
    to = terminal(iso_host)
    iso_host.next("0200", "cut")
    with pytest.raises(LinkUnansweredError, match="hung up"):
        ask(to)
    assert ask(to)["39"] == "00"
    assert iso_host.connections == 2


def test_all_open_questions_are_told_when_the_link_goes_down(iso_host: IsoHost) -> None:
    """Nobody waits for the whole timeout when the line is gone."""
    to = terminal(iso_host)
    iso_host.next("0200", "lost", times=5)
    with ThreadPoolExecutor(max_workers=5) as pool:
        futures = [pool.submit(ask, to, None, 60.0) for _ in range(5)]
        iso_host.wait(lambda: len(iso_host.seen("0200")) == 5, "all five are there")
        iso_host.hang_up()
        for future in futures:
            assert isinstance(future.exception(PATIENCE_S), LinkUnansweredError)


def test_nothing_is_sent_beyond_the_limit_and_nothing_twice_at_once(iso_host: IsoHost) -> None:
    """A named limit on everything that can wait."""
    to = terminal(iso_host)
    iso_host.next("0200", "held", times=2)
    message = debit(to)
    with ThreadPoolExecutor(max_workers=2) as pool, override_settings(GATEWAY_ACQUIRER_MAX_ON_LINE=2):
        first = pool.submit(ask, to, message)
        iso_host.wait(lambda: iso_host.held == 1, "the first")
        with pytest.raises(LinkUnreachableError, match="same numbers"):
            ask(to, message)
        second = pool.submit(ask, to)
        iso_host.wait(lambda: iso_host.held == 2, "the second")
        with pytest.raises(LinkUnreachableError, match="too many"):
            ask(to)
        iso_host.release()
        assert first.result(PATIENCE_S)["39"] == second.result(PATIENCE_S)["39"] == "00"
    assert len(iso_host.seen("0200")) == 2


def test_a_host_that_comes_back_is_used_at_once(iso_host: IsoHost) -> None:
    """Somebody who waits for the link shortens the pause."""
    to = terminal(iso_host)
    assert ask(to)["39"] == "00"
    iso_host.stop()
    until(lambda: link_registry.list_link_states()[0].state != "up", "the link is down")
    for _ in range(3):
        with pytest.raises(LinkUnreachableError):
            ask(to)
    assert "refused" in link_registry.list_link_states()[0].why
    iso_host.start()
    assert ask(to)["39"] == "00"


def test_a_quiet_link_sends_echoes_and_goes_down_when_they_are_not_answered(iso_host: IsoHost) -> None:
    """0800 with DE70 301."""
    to = terminal(iso_host, echo_s="1")
    assert ask(to)["39"] == "00"
    iso_host.wait(lambda: any(message["70"] == "301" for message in iso_host.seen("0800")), "an echo")
    iso_host.network = ""
    until(lambda: link_registry.list_link_states()[0].state != "up", "the link is down")
    assert "echo" in link_registry.list_link_states()[0].why


def test_a_host_without_echoes_is_left_after_questions_without_an_answer(iso_host: IsoHost) -> None:
    """echo_s=0 switches off the echo, not the doubt about a line that takes everything and says nothing."""
    to = terminal(iso_host, echo_s="0")
    assert ask(to)["39"] == "00"
    iso_host.next("0200", "lost", times=2)
    for _ in range(2):
        with pytest.raises(LinkUnansweredError):
            ask(to, within_s=1.0)
    # An answer in between: the line is well.
    assert ask(to)["39"] == "00"
    iso_host.next("0200", "lost", times=3)
    for _ in range(3):
        with pytest.raises(LinkUnansweredError):
            ask(to, within_s=1.0)
    until(
        lambda: link_registry.list_link_states()[0].why == "the host left 3 questions without an answer",
        "the link is taken down",
    )
    assert ask(to)["39"] == "00"
    assert iso_host.connections == 2
    assert not [message for message in iso_host.seen("0800") if message["70"] == "301"]


def test_what_the_host_asks_itself_is_answered(iso_host: IsoHost) -> None:
    """An unsolicited 0800; and a host that signs off is asked nothing until it signs on."""
    to = terminal(iso_host)
    assert ask(to)["39"] == "00"
    asked = {"t": "0800", "7": "0301120000", "11": "000777", "70": "301"}
    iso_host.push(to.wire.frame(asked) + to.wire.framed(b""))
    iso_host.wait(lambda: iso_host.seen("0810"), "the answer")
    assert iso_host.seen("0810")[0] == {**asked, "t": "0810", "39": "00"}
    iso_host.next("0200", "held")
    with ThreadPoolExecutor(max_workers=1) as pool:
        open_one = pool.submit(ask, to)
        iso_host.wait(lambda: iso_host.held == 1, "a question is open")
        iso_host.push(to.wire.frame({**asked, "11": "000778", "70": "002"}))
        until(lambda: link_registry.list_link_states()[0].why == "the host signed off", "it has signed off")
        with pytest.raises(LinkUnreachableError, match="signed off"):
            ask(to)
        iso_host.push(to.wire.frame({**asked, "11": "000779", "70": "001"}))
        until(lambda: link_registry.list_link_states()[0].state == "up", "it has signed on")
        iso_host.release()
        assert open_one.result(PATIENCE_S)["39"] == "00"
    assert iso_host.connections == 1


def test_every_account_has_a_link_of_its_own(iso_host: IsoHost) -> None:
    """Several accounts of one connector stand side by side."""
    for name in ("TERM0001", "TERM0002"):
        assert ask(terminal(iso_host, terminal=name))["41"].strip() == name
    assert [state.label[-8:] for state in link_registry.list_link_states()] == ["TERM0001", "TERM0002"]
    assert iso_host.connections == 2


def test_a_forked_process_does_not_talk_on_its_parents_link(iso_host: IsoHost) -> None:
    """Celery forks its workers."""
    to = terminal(iso_host)
    assert ask(to)["39"] == "00"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            fresh = link_registry.list_link_states() == ()
            os.write(writer, b"1" if fresh and ask(to)["39"] == "00" else b"0")
        finally:
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 1) == b"1"
    os.close(reader)
    os.waitpid(child, 0)
    assert ask(to)["39"] == "00"
    assert iso_host.connections == 2


def test_a_link_nobody_uses_signs_off_and_the_next_question_connects_again(
    iso_host: IsoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IDLE_S."""
    monkeypatch.setattr("gateway.connectors.iso8583.link.LINK_IDLE_S", 0.1)
    to = terminal(iso_host)
    assert ask(to)["39"] == "00"
    until(lambda: link_registry.list_link_states()[0].state == "idle", "it is idle")
    monkeypatch.setattr("gateway.connectors.iso8583.link.LINK_IDLE_S", 900.0)
    assert ask(to)["39"] == "00"
    assert iso_host.connections == 2


def test_closing_tells_those_who_wait_and_leaves_no_thread(iso_host: IsoHost) -> None:
    """Bounded waits, also at the end."""
    own = HostLink(terminal(iso_host))
    iso_host.next("0200", "lost")
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(own.exchange, debit(own.terminal), time.monotonic() + 60)
        iso_host.wait(lambda: iso_host.seen("0200"), "the question")
        own.close()
        assert isinstance(future.exception(PATIENCE_S), LinkUnansweredError)
    until(lambda: all(not one.name.startswith("link ") for one in threading.enumerate()), "the thread has ended")

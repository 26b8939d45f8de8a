"""The ISO 8583 connector against a host that is none of ours: iso8583sim, a process of its own, with its own codec.

The host answers by rules and keeps no books, but it counts what it got, answered and dropped; and what goes over the
line is written down between the two, so that both ends can be compared at the end.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from gateway.connectors.accounts import clear_account_cache
from gateway.connectors.iso8583 import batch_planning, batch_run, link_registry
from gateway.connectors.iso8583.codec import MessageCodec
from gateway.connectors.iso8583.connector import ISO8583
from gateway.core import clock
from gateway.models import AcquirerAccount, CaptureBatch, Payment
from gateway.payments import batched_captures
from tests.external.peers import PATIENCE_S, Peer, program
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.ports import free_port
from tests.support.recovery import recover_after
from tests.support.threads import at_once

OK = "000.100.112"
# The peer holds DE39 for a number, which shows in BCD; ISO 8583:1987 says an2. (It also holds the DE95 of Mastercard's
# numbers for 28 octets, where the standard says an42: reversals in part are tried with a Visa number here.)
DIALECTS = {
    "ascii-binary": ("ascii", ""),
    "ascii-hex": ("ascii-hex", ""),
    "bcd": ("bcd", "39=n2"),
    "ebcdic": ("ebcdic", ""),
}


def rule(respond: str = "00", *, action: str = "respond", delay_ms: int = 0, **match: Any) -> dict[str, Any]:
    return {"match": match, "respond": respond, "action": action, "delay_ms": delay_ms}


class Host(Peer):
    """One run of the host, by rules."""

    def __init__(
        self,
        folder: Path,
        rules: list[dict[str, Any]],
        *,
        format: str = "ascii-binary",
        header: str = "2b",
        tpdu: str = "",
        port: int = 0,
    ) -> None:
        path, port = folder / "rules.json", port or free_port()
        path.write_text(json.dumps({"rules": rules}))
        command = [
            program("iso8583sim"),
            "serve",
            "--port",
            str(port),
            "--rules",
            path,
            "--format",
            format,
            "--header",
            header,
            *(["--tpdu", tpdu] if tpdu else []),
        ]
        super().__init__(command, port=port, folder=folder, environ={})
        self.start()

    def counts(self) -> Counter[str]:
        """Stop it and return what it says it did: received, answered, dropped, errors, and its response codes."""
        self.stop()
        told = " ".join(self.log.read_text().split())
        found = re.findall(r"(Received|answered|dropped|errors) ([0-9]+)", told) + re.findall(
            r"'(\w\w)': ([0-9]+)", told
        )
        return Counter({name.lower(): int(number) for name, number in found})


class Tap:
    """Stands between the connector and the host and writes down every frame of either way."""

    def __init__(self, wire: MessageCodec, to: int) -> None:
        self.wire, self._to = wire, to
        self.sent: list[dict[str, str]] = []
        self.answered: list[dict[str, str]] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._to), timeout=PATIENCE_S)
            except OSError:
                return
            far.settimeout(None)
            self._open += [near, far]
            for ends in ((near, far, self.sent), (far, near, self.answered)):
                threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, seen: list[dict[str, str]]) -> None:
        rest = b""
        try:
            while octets := source.recv(65_536):
                frames, rest = self.wire.split_frames(rest + octets)
                seen += [self.wire.message(frame) for frame in frames]
                target.sendall(octets)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self) -> None:
        self._server.close()
        for end in self._open:
            end.close()

    def count(self, mti: str) -> int:
        return sum(message["t"] == mti for message in self.sent)


def _until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=2.0):
        yield
        link_registry.close_all_links()


def account(shop: Shop, port: int, **more: str) -> None:
    AcquirerAccount.objects.filter(channel=shop.channel).delete()
    AcquirerAccount.objects.create(
        channel=shop.channel,
        connector="iso8583",
        acquirer_merchant_id="MERCHANT1",
        settings={
            "host": "127.0.0.1",
            "port": str(port),
            "terminal": "TERM0001",
            "institution": "12345",
            "mcc": "5942",
            "name": "Example Shop",
            "city": "Munich",
            "country": "DE",
            "nii": "001",
            **more,
        },
    )
    clear_account_cache()


def recover() -> int:
    return recover_after(120).settled


def state(payment: str) -> tuple[str, str]:
    row = Payment.objects.get(pk=payment)
    return row.status, row.result_code


@pytest.mark.parametrize("format", list(DIALECTS))
@pytest.mark.parametrize("header, tpdu", [("2b", ""), ("4a", "6000010000")])
def test_every_operation_is_understood_in_every_encoding(
    shop: Shop, tmp_path: Path, format: str, header: str, tpdu: str
) -> None:
    """PA, CP, RF, RV, DB, CD, RB: the host reads each message and we read each answer."""
    encoding, fields = DIALECTS[format]
    peer = Host(tmp_path, [rule()], format=format, header=header, tpdu=tpdu)
    tap = Tap(MessageCodec(header=header, tpdu=tpdu, encoding=encoding, formats=fields), peer.port)
    account(shop, tap.port, encoding=encoding, fields=fields, header=header, tpdu=tpdu)
    pay, follow = shop.api.pay, shop.api.follow
    more = {
        "billing__postcode": "80331",
        "threeDSecure__eci": "05",
        "threeDSecure__verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
        "threeDSecure__dsTransactionId": "c75f23af-9454-43f6-ba17-130ed529507e",
    }
    pa = pay(testMode="EXTERNAL", paymentType="PA", amount="100.00", **more)
    capture = follow(pa.id, "CP", "60.00")
    answers = [
        pa,
        capture,
        follow(capture.id, "RF", "25.00"),
        follow(pa.id, "RV"),
        debit := pay(testMode="EXTERNAL"),
        follow(debit.id, "RB", "5.00"),
        follow(debit.id, "RV"),
        pay(testMode="EXTERNAL", paymentType="CD"),
        pay(testMode="EXTERNAL", amount="92", currency="JPY"),
        pay(testMode="EXTERNAL", amount="1.25", currency="KWD"),
    ]
    assert [answer.code for answer in answers] == [OK] * 10
    assert [(m["4"], m["49"]) for m in tap.sent[-2:]] == [("000000000092", "392"), ("000000001250", "414")]
    for sent, answered in zip(tap.sent, tap.answered, strict=True):
        assert [sent[number] for number in ("11", "7")] == [answered[number] for number in ("11", "7")]
    approvals = {message["38"] for message in tap.answered if message["t"] in ("0110", "0210")}
    assert all(code[0] == "A" for code in approvals)
    assert tap.sent[2]["38"] == tap.answered[1]["38"]
    link_registry.close_all_links()
    _until(lambda: tap.sent[-1].get("70") == "002", "the sign-off")
    counts = peer.counts()
    tap.close()
    assert (counts["received"], counts["errors"]) == (len(tap.sent), 0)
    # All was understood; the answer to the sign-off may find nobody there.
    assert counts["answered"] >= len(tap.sent) - 1


@pytest.mark.parametrize(
    "code, result",
    [("05", "800.100.152"), ("51", "800.100.155"), ("54", "800.100.157"), ("91", "900.100.201"), ("96", "900.100.200")],
)
def test_declines_say_why(shop: Shop, tmp_path: Path, code: str, result: str) -> None:
    peer = Host(tmp_path, [rule(code, mti="0200")])
    account(shop, peer.port)
    answer = shop.api.pay(testMode="EXTERNAL")
    assert (answer.status, answer.code, state(answer.id)) == (400, result, ("DECLINED", result))
    link_registry.close_all_links()
    assert peer.counts()[code] == 1


def test_dropped_answers_hang_ups_and_slow_answers_leave_nothing_in_doubt(shop: Shop, tmp_path: Path) -> None:
    """Silence, then recovery by 0420/0421; a lost answer to a capture by 0221; at the end both sides agree."""
    rules = [
        rule(mti="0200", amount_gt=1099, amount_lt=1101, action="drop"),
        rule(mti="0200", amount_gt=1199, amount_lt=1201, action="close"),
        rule(mti="0200", amount_gt=1299, amount_lt=1301, delay_ms=3_000),
        rule(mti="0220", action="drop"),
        rule(mti="0400", action="close"),
        rule(mti="0420", amount_gt=1099, amount_lt=1101, action="drop"),
        rule("25", mti="0420", amount_gt=1199, amount_lt=1201),
        rule(),
    ]
    peer = Host(tmp_path, rules)
    tap = Tap(MessageCodec(), peer.port)
    account(shop, tap.port)
    lost, broken, slow = (shop.api.pay(testMode="EXTERNAL", amount=f"{ten}.00").id for ten in (11, 12, 13))
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="20.00").id
    capture = shop.api.follow(pa, "CP", "15.00").id
    rest = shop.api.follow(pa, "RV").id
    assert {state(payment)[0] for payment in (lost, broken, slow, capture, rest)} == {"IN_DOUBT"}
    for _ in range(2):
        recover()
    assert [state(payment) for payment in (lost, broken, slow, capture, rest)] == [
        ("DECLINED", "900.100.301"),
        ("DECLINED", "900.100.301"),
        ("DECLINED", "900.100.301"),
        ("APPROVED", OK),
        ("APPROVED", OK),
    ]
    assert (tap.count("0221"), tap.count("0401")) == (1, 1)
    assert shop.api.pay(testMode="EXTERNAL").code == OK
    link_registry.close_all_links()
    _until(lambda: tap.sent[-1].get("70") == "002", "the sign-off")
    counts = peer.counts()
    tap.close()
    assert (counts["received"], counts["errors"]) == (len(tap.sent), 0)
    # What the two ends say of each payment: a reversal answered 00 or 25 for each that is declined, none for others.
    voided = {message["90"][4:10] for message in tap.sent if message["t"] in ("0420", "0421")}
    stans = {message["63"]: message["11"] for message in tap.sent if message["t"] == "0200"}
    ours = {stans[payment.hex] for payment in Payment.objects.filter(status="DECLINED").values_list("id", flat=True)}
    assert voided == ours


# The peer holds DE97 for 17 octets, where the standard says x + n16: in hexadecimal ASCII it cannot read our 0500.
@pytest.mark.parametrize("format", [name for name in DIALECTS if name != "ascii-hex"])
def test_captures_go_by_batch_and_the_host_reads_every_message_of_it(shop: Shop, tmp_path: Path, format: str) -> None:
    """0220, 0500, 0320, 0500. The host keeps no sums: that it says 95 first, and 00 after the upload, is a rule."""
    encoding, fields = DIALECTS[format]
    rules = [
        rule("95", mti="0500", fields={"3": "920000"}),
        rule("05", mti="0220", amount_gt=1499, amount_lt=1501),
        rule(),
    ]
    peer = Host(tmp_path, rules, format=format)
    tap = Tap(MessageCodec(encoding=encoding, formats=fields), peer.port)
    account(shop, tap.port, encoding=encoding, fields=fields, capture="batch")
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00")
    made = [shop.api.follow(pa.id, "CP", amount) for amount in ("60.00", "15.00", "2.50")]
    assert [answer.code for answer in made] == ["800.400.500"] * 3
    jump(24 * 3600.0)
    assert batch_planning.plan_due_batches() == 3
    assert batch_run.send_due_batches(ISO8583) == 1
    batched_captures.apply_capture_outcomes()
    assert [state(answer.id) for answer in made] == [("APPROVED", OK), ("DECLINED", "800.100.152"), ("APPROVED", OK)]
    assert [tap.count(mti) for mti in ("0220", "0320", "0500")] == [3, 2, 2]
    before, after = (message for message in tap.sent if message["t"] == "0500")
    assert (before["76"], after["76"], after["88"]) == ("0000000002", "0000000002", "0000000000006250")
    link_registry.close_all_links()
    _until(lambda: tap.sent[-1].get("70") == "002", "the sign-off")
    counts = peer.counts()
    tap.close()
    assert (counts["received"], counts["errors"]) == (len(tap.sent), 0)


def test_a_batch_whose_answers_are_dropped_is_repeated_until_the_host_has_answered_all_of_it(
    shop: Shop, tmp_path: Path
) -> None:
    """0221 and 0501, with the numbers of the first."""
    rules = [
        rule(mti="0220", action="drop"),
        rule(mti="0500", action="close"),
        rule("94", mti="0221"),
        rule(),
    ]
    peer = Host(tmp_path, rules)
    tap = Tap(MessageCodec(), peer.port)
    account(shop, tap.port, capture="batch")
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    capture = shop.api.follow(pa, "CP", "60.00").id
    jump(24 * 3600.0)
    batch_planning.plan_due_batches()
    for ended in (0, 0, 1):
        CaptureBatch.objects.update(due_at=clock.real_now(), lease_until=None)
        assert batch_run.send_due_batches(ISO8583) == ended
    batched_captures.apply_capture_outcomes()
    assert state(capture) == ("APPROVED", OK)
    assert [tap.count(mti) for mti in ("0220", "0221", "0500", "0501")] == [1, 1, 1, 1]
    link_registry.close_all_links()
    counts = peer.counts()
    tap.close()
    assert counts["errors"] == 0


def test_the_host_goes_away_and_comes_back(shop: Shop, tmp_path: Path) -> None:
    """Refused while it is away, and used again as soon as it is there."""
    peer = Host(tmp_path, [rule()])
    account(shop, peer.port)
    assert shop.api.pay(testMode="EXTERNAL").code == OK
    peer.kill()
    _until(lambda: link_registry.list_link_states()[0].state != "up", "the link is down")
    assert shop.api.pay(testMode="EXTERNAL").code == "900.100.600"
    peer = Host(tmp_path, [rule()], port=peer.port)
    assert shop.api.pay(testMode="EXTERNAL").code == OK
    link_registry.close_all_links()
    counts = peer.counts()
    assert counts["errors"] == 0


def test_many_payments_share_one_link_and_get_their_own_answers(committed: Shop, tmp_path: Path) -> None:
    """Slow and fast answers overtake each other."""
    peer = Host(tmp_path, [rule(pan_prefix="4111", delay_ms=300), rule("51", pan_prefix="4242"), rule()])
    tap = Tap(MessageCodec(), peer.port)
    account(committed, tap.port)
    cards = {"4111111111111111": OK, "4242424242424242": "800.100.155", "4200000000000000": OK}
    numbers = [number for number in cards for _ in range(16)]
    calls = [lambda number=number: committed.api.pay(testMode="EXTERNAL", card__number=number) for number in numbers]
    answers = at_once(*calls)
    assert [answer.code for answer in answers] == [cards[number] for number in numbers]
    link_registry.close_all_links()
    counts = peer.counts()
    tap.close()
    ours = Counter(Payment.objects.values_list("result_code", flat=True))
    assert (counts["51"], counts["errors"]) == (ours["800.100.155"], 0)
    assert ours[OK] == 32
    assert len({(m["11"], m["37"]) for m in tap.sent if m["t"] == "0200"}) == 48


def test_a_network_echo_is_answered(shop: Shop, tmp_path: Path) -> None:
    peer = Host(tmp_path, [rule()])
    tap = Tap(MessageCodec(), peer.port)
    account(shop, tap.port, echo_s="1")
    assert shop.api.pay(testMode="EXTERNAL").code == OK
    _until(lambda: any(message.get("70") == "301" for message in tap.answered), "the echo")
    assert link_registry.list_link_states()[0].state == "up"
    link_registry.close_all_links()
    peer.stop()
    tap.close()

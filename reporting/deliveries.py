"""Reconciliation files by SFTP: under a temporary name first, to a host whose key is known, again until it is there.

Each file's delivery is a row with a due time, and every attempt is kept. Source: Part B, Reconciliation file;
decision 0026.
"""

from __future__ import annotations

import hmac
import io
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Final
from uuid import UUID

import paramiko
from django.db import transaction

from gateway import audit, clock
from gateway.models import Merchant
from gateway.rows import execute
from gateway.secret import Secret
from gateway.vault import vault
from reporting import days
from reporting.outgoing import Delivery, DeliveryAttempt, SftpTarget

RETRIES: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 15, 30, 60))
"""After a failed attempt, until the next; the last one goes on."""
MOST_ATTEMPTS: Final = 170
"""About a week."""
CONNECT_S: Final = 10.0
"""For each step until files can be sent: connecting, greeting, keys, logging in."""
SILENCE_S: Final = 60.0
"""Longest without an answer while a file is sent."""
LEASE: Final = timedelta(minutes=30)
AT_ONCE: Final = 20
_RSA: Final = ("rsa-sha2-512", "rsa-sha2-256")
_CLAIM: Final = """
UPDATE reporting_delivery SET lease_until = %(lease)s::timestamptz WHERE id IN (
    SELECT d.id FROM reporting_delivery d
    JOIN reporting_reconciliationfile f ON f.id = d.file_id JOIN gateway_merchant m ON m.id = f.merchant_id
    WHERE d.state = 'WAITING' AND d.due_at <= %(now)s::timestamptz + m.clock_offset
        AND (d.lease_until IS NULL OR d.lease_until < %(now)s::timestamptz)
        AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid)
    ORDER BY d.due_at LIMIT %(most)s::int FOR UPDATE OF d SKIP LOCKED
) RETURNING id
"""


class Unreachable(Exception):
    """The file did not arrive, and why, in words without secrets."""


def point_to(
    merchant: Merchant, *, host: str, port: int, username: str, kind: str, secret: Secret, host_key: str, folder: str,
    by: audit.Actor,
) -> SftpTarget:  # fmt: skip
    """Send the merchant's files there from now on, with an entry in the audit trail. Raises ValueError."""
    _key_of(host_key)
    if kind == SftpTarget.Secrets.KEY:
        _private(secret)
    with transaction.atomic():
        target = SftpTarget.objects.filter(merchant=merchant).first() or SftpTarget(merchant=merchant)
        target.host, target.port, target.username, target.folder = host, port, username, folder
        target.secret_kind, target.secret_sealed = kind, vault().seal(secret, target.id)
        target.host_key, target.active = " ".join(host_key.split()[:2]), True
        target.save()
        audit.record(by, "point", target, after={"merchant": merchant.name, "target": str(target)})
    return target


def next_at(merchant: Merchant) -> datetime | None:
    waiting = Delivery.objects.filter(state=Delivery.State.WAITING, file__merchant=merchant)
    found: datetime | None = waiting.order_by("due_at").values_list("due_at", flat=True).first()
    return found


def run(merchant: Merchant | None) -> int:
    """Send what is due. Returns how many were tried."""
    now = clock.real()
    who = merchant.pk if merchant is not None else None
    claimed: list[UUID] = [
        row[0] for row in execute(_CLAIM, {"now": now, "lease": now + LEASE, "merchant": who, "most": AT_ONCE})
    ]
    for one in Delivery.objects.filter(pk__in=claimed).select_related("file__merchant").order_by("due_at"):
        attempt(one)
    return len(claimed)


def attempt(delivery: Delivery) -> str:
    """Try once, and keep how it went. Returns what went wrong, or ''. The caller holds the lease."""
    file = delivery.file
    at, began = clock.real(), time.monotonic()
    target = SftpTarget.objects.filter(merchant=file.merchant_id, active=True).first()
    why = "there is no target any more"
    if target is not None:
        why = ""
        try:
            source = days.path_of(file)
            send(target, source if source.exists() else days.again(file), file.name)
        except (Unreachable, days.Changed, OSError) as fault:
            why = str(fault)[:255] or type(fault).__name__
    number = delivery.attempts + 1
    state = Delivery.State.WAITING
    if not why:
        state = Delivery.State.DONE
    elif number >= MOST_ATTEMPTS or target is None:
        state = Delivery.State.FAILED
    wait = RETRIES[min(number, len(RETRIES)) - 1]
    with transaction.atomic():
        DeliveryAttempt.objects.create(
            delivery=delivery, number=number, target=str(target or ""), at=at, why=why,
            duration_ms=int((time.monotonic() - began) * 1000),
        )  # fmt: skip
        Delivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts).update(
            state=state, attempts=number, due_at=clock.now(file.merchant) + wait, lease_until=None
        )
    return why


def send(target: SftpTarget, source: Path, name: str) -> None:
    """Put a file there under ``name``, whole or not at all. Raises Unreachable."""
    folder = PurePosixPath(target.folder)
    part, final = str(folder / f".{name}.part"), str(folder / name)
    size = source.stat().st_size
    with _session(target) as sftp, _told("sending"):
        with source.open("rb") as opened:
            sftp.putfo(opened, part, file_size=size, confirm=True)
        sftp.posix_rename(part, final)


def try_out(target: SftpTarget) -> None:
    """Log in and look into the folder. Raises Unreachable."""
    with _session(target) as sftp, _told("looking into the folder"):
        sftp.stat(target.folder)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """paramiko's faults as ours."""
    try:
        yield
    except paramiko.AuthenticationException:
        raise Unreachable("logging in was refused") from None
    except (paramiko.SSHException, EOFError, OSError) as fault:
        raise Unreachable(f"{what} failed: {fault or type(fault).__name__}") from None


@contextmanager
def _session(target: SftpTarget) -> Iterator[paramiko.SFTPClient]:
    expected = _key_of(target.host_key)
    with _told("connecting"):
        line = socket.create_connection((target.host, target.port), timeout=CONNECT_S)
        transport = paramiko.Transport(line)
    try:
        with _told("logging in"):
            transport.banner_timeout = transport.auth_timeout = CONNECT_S
            transport.get_security_options().key_types = _RSA if expected[0] == "ssh-rsa" else (expected[0],)
            transport.start_client(timeout=CONNECT_S)
            shown = transport.get_remote_server_key()
            if not hmac.compare_digest(shown.get_base64().encode(), expected[1].encode()):
                raise Unreachable("the host shows another key than the one that is known: nothing was sent")
            _log_in(transport, target)
            sftp = paramiko.SFTPClient.from_transport(transport)
            if sftp is None:
                raise Unreachable("the host offers no SFTP")
        channel: Any = sftp.get_channel()
        channel.settimeout(SILENCE_S)
        yield sftp
    finally:
        transport.close()


def _log_in(transport: paramiko.Transport, target: SftpTarget) -> None:
    secret = vault().open(target.secret_sealed, target.id)
    if target.secret_kind == SftpTarget.Secrets.KEY:
        transport.auth_publickey(target.username, _private(secret))
    else:
        transport.auth_password(target.username, secret.reveal())


def _key_of(host_key: str) -> tuple[str, str]:
    """Type and base64 of a line of known_hosts without its host. Raises ValueError."""
    words = host_key.split()
    if len(words) < 2 or not words[0].startswith(("ssh-", "ecdsa-")):
        raise ValueError("a host key has two words, e.g. ssh-ed25519 AAAA…; ssh-keyscan shows it")
    return words[0], words[1]


def _private(secret: Secret) -> paramiko.PKey:
    """A private key out of its text. Raises ValueError."""
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(secret.reveal()))
        except paramiko.SSHException:
            continue
    raise ValueError("this is no private key of OpenSSH without a passphrase")

"""Sessions with SFTP servers: a host whose key is known, somebody who logs in, and faults as words without secrets.

Source: Part B, Reconciliation file (delivered by file transfer); decisions 0026, 0032.
"""

from __future__ import annotations

import hmac
import io
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

import paramiko

from gateway.outbound import guard
from gateway.secret import Secret
from gateway.vault import vault

CONNECT_S: Final = 10.0
"""For each step until files can move: connecting, greeting, keys, logging in."""
SILENCE_S: Final = 60.0
"""Longest without an answer while a file moves."""
NOBODY: Final = "connecting failed: nobody who speaks SSH answers there"
KEY: Final = "key"
"""A secret of this kind is a private key; any other is a password."""
KEY_TYPES: Final = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
_RSA: Final = ("rsa-sha2-512", "rsa-sha2-256")


class Unreachable(Exception):
    """It did not work, and why, in words without secrets."""


class Place(Protocol):
    """A row that says where and as whom. ``secret_sealed`` is sealed for its ``id``; ``host_key``: type and base64."""

    id: Any
    host: Any
    port: Any
    username: Any
    secret_kind: Any
    secret_sealed: Any
    host_key: Any


@contextmanager
def told(what: str) -> Iterator[None]:
    """paramiko's faults as ours."""
    try:
        yield
    except paramiko.AuthenticationException:
        raise Unreachable("logging in was refused") from None
    except (paramiko.SSHException, EOFError, OSError, ValueError) as fault:
        # ValueError: of names that no resolver takes.
        raise Unreachable(f"{what} failed: {fault or type(fault).__name__}") from None


@contextmanager
def session(place: Place) -> Iterator[paramiko.SFTPClient]:
    """Log in at ``place`` for the time of the block. Raises Unreachable; nothing is told to a host of another key."""
    expected = key_of(place.host_key)
    with told("connecting"):
        transport = paramiko.Transport(_line(str(place.host), int(place.port)))
    try:
        with _greeted():
            transport.banner_timeout = transport.auth_timeout = CONNECT_S
            transport.get_security_options().key_types = _RSA if expected[0] == "ssh-rsa" else (expected[0],)
            transport.start_client(timeout=CONNECT_S)
        with told("logging in"):
            shown = transport.get_remote_server_key()
            if not hmac.compare_digest(shown.get_base64().encode(), expected[1].encode()):
                raise Unreachable("the host shows another key than the one that is known: nothing was sent")
            _log_in(transport, place)
            sftp = paramiko.SFTPClient.from_transport(transport)
            if sftp is None:
                raise Unreachable("the host offers no SFTP")
        channel: Any = sftp.get_channel()
        channel.settimeout(SILENCE_S)
        yield sftp
    finally:
        transport.close()


def _line(host: str, port: int) -> socket.socket:
    """A line to an address that may be called. Raises Unreachable: whatever is wrong below SSH is told in one way, so
    that nobody learns from us which ports of a network are open."""
    try:
        addresses = guard.reach(host, port, CONNECT_S)
    except guard.Forbidden as fault:
        raise Unreachable(f"connecting failed: {fault}") from None
    except (guard.Unreachable, OSError):
        raise Unreachable(NOBODY) from None
    for family, address in addresses:
        line = socket.socket(family, socket.SOCK_STREAM)
        try:
            line.settimeout(CONNECT_S)
            line.connect(address)
        except OSError:
            line.close()
        else:
            return line
    raise Unreachable(NOBODY)


@contextmanager
def _greeted() -> Iterator[None]:
    try:
        yield
    except paramiko.ssh_exception.IncompatiblePeer:
        raise Unreachable("the host has no key of the type that is known, or no cipher of ours") from None
    except (paramiko.SSHException, EOFError, OSError):
        raise Unreachable(NOBODY) from None


def _log_in(transport: paramiko.Transport, place: Place) -> None:
    secret = vault().open(place.secret_sealed, place.id)
    if place.secret_kind == KEY:
        transport.auth_publickey(place.username, private(secret))
    else:
        transport.auth_password(place.username, secret.reveal())


def key_of(host_key: str) -> tuple[str, str]:
    """Type and base64 of a line of known_hosts without its host. Raises ValueError."""
    words = host_key.split()
    if len(words) < 2 or words[0] not in KEY_TYPES:
        raise ValueError(
            f"a host key has two words, e.g. ssh-ed25519 AAAA…; ssh-keyscan shows it; types: {', '.join(KEY_TYPES)}"
        )
    return words[0], words[1]


def private(secret: Secret) -> paramiko.PKey:
    """A private key out of its text. Raises ValueError."""
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(secret.reveal()))
        except (paramiko.SSHException, ValueError):
            continue
    raise ValueError("this is no private key of OpenSSH without a passphrase")

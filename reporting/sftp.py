"""SFTP sessions: pinned host key, login, and errors in words without secrets.

Source: Part B, Reconciliation file (delivered by file transfer); decisions 0026, 0032.
"""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from gateway.core.secret import Secret
from gateway.db.sessions import pause_work
from gateway.outbound import address_guard
from gateway.vault.sealing import current_vault
from reporting.sftp_server import SftpServer

if TYPE_CHECKING:
    # A hundred modules that every process would load: each function that uses it imports it.
    import paramiko

SFTP_CONNECT_TIMEOUT_S: Final = 10.0
"""The time of each step before files can move: connecting, greeting, keys, login."""
SFTP_IDLE_TIMEOUT_S: Final = 60.0
"""Longest time without an answer during a transfer."""
CLAIMING_SHARE: Final = 0.25
MAX_SESSION_SHARE: Final = 0.65
"""Parts of GATEWAY_TIMER_LIMIT_S: beginning sessions, and the longest of them."""
CONNECTION_REFUSED: Final = "connecting failed: no SSH server answers there"
PRIVATE_KEY_KIND: Final = "key"
"""A secret of this kind is a private key; any other is a password."""
HOST_KEY_TYPES: Final = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
_RSA: Final = ("rsa-sha2-512", "rsa-sha2-256")


class SftpUnreachableError(Exception):
    """The server could not be used; the text says why, without secrets."""


@contextmanager
def translate_sftp_errors(what: str) -> Iterator[None]:
    """Turn paramiko's and socket errors into SftpUnreachableError."""
    import paramiko

    try:
        yield
    except paramiko.AuthenticationException:
        raise SftpUnreachableError("logging in was refused") from None
    except (paramiko.SSHException, EOFError, OSError, ValueError) as fault:
        # ValueError: for names that no resolver accepts.
        raise SftpUnreachableError(f"{what} failed: {fault or type(fault).__name__}") from None


def max_claiming_s() -> float:
    """How long a run of a timer begins sessions. Together with MAX_SESSION_SHARE it ends before the run is killed, so a
    slow server takes its turn, and never those of the others."""
    return settings.GATEWAY_TIMER_LIMIT_S * CLAIMING_SHARE


def session_lease() -> timedelta:
    """Lease of a claimed row: after that the process that claimed it is dead."""
    return timedelta(seconds=settings.GATEWAY_TIMER_LIMIT_S)


@contextmanager
def open_sftp_session(place: SftpServer) -> Iterator[paramiko.SFTPClient]:
    """Log in at ``place`` for the time of the block, and leave session and place to other requests meanwhile. Raises
    SftpUnreachableError; a host with another key gets no credentials. After MAX_SESSION_SHARE of a timer's run the
    connection is closed, whatever it is doing: a server that sends a byte now and then passes every other limit."""
    import paramiko

    known = paramiko.HostKeys()
    expected = parse_host_key(place.host_key)
    known.add(str(place.host), expected.get_name(), expected)
    pause_work()
    with translate_sftp_errors("connecting"):
        transport = paramiko.Transport(_open_socket(str(place.host), int(place.port)))
    watchdog = threading.Timer(settings.GATEWAY_TIMER_LIMIT_S * MAX_SESSION_SHARE, transport.close)
    watchdog.daemon = True
    watchdog.start()
    try:
        with _translate_handshake_errors():
            transport.banner_timeout = transport.auth_timeout = SFTP_CONNECT_TIMEOUT_S
            transport.get_security_options().key_types = (
                _RSA if expected.get_name() == "ssh-rsa" else (expected.get_name(),)
            )
            transport.start_client(timeout=SFTP_CONNECT_TIMEOUT_S)
        with translate_sftp_errors("logging in"):
            if not known.check(str(place.host), transport.get_remote_server_key()):
                raise SftpUnreachableError("the host shows another key than the one that is known: nothing was sent")
            _log_in(transport, place)
            sftp = paramiko.SFTPClient.from_transport(transport)
            if sftp is None:
                raise SftpUnreachableError("the host offers no SFTP")
        channel: Any = sftp.get_channel()
        channel.settimeout(SFTP_IDLE_TIMEOUT_S)
        yield sftp
    finally:
        watchdog.cancel()
        transport.close()


def sync_file(client: paramiko.SFTPClient, path: str) -> None:
    """Have the server write a file to its disk, by OpenSSH's extension; a server without it answers an error, and has
    the file all the same."""
    from paramiko.sftp import CMD_EXTENDED

    with client.open(path, "r+") as opened, suppress(OSError):
        client._request(CMD_EXTENDED, "fsync@openssh.com", opened.handle)


def _open_socket(host: str, port: int) -> socket.socket:
    """Connect to an allowed address. Raises SftpUnreachableError with the same text for anything below SSH, so that our
    answers do not reveal which ports of a network are open."""
    try:
        addresses = address_guard.resolve_sftp_address(host, port, SFTP_CONNECT_TIMEOUT_S)
    except address_guard.ForbiddenAddressError as fault:
        raise SftpUnreachableError(f"connecting failed: {fault}") from None
    except (address_guard.AddressUnreachableError, OSError):
        raise SftpUnreachableError(CONNECTION_REFUSED) from None
    for family, address in addresses:
        line = socket.socket(family, socket.SOCK_STREAM)
        try:
            line.settimeout(SFTP_CONNECT_TIMEOUT_S)
            line.connect(address)
        except OSError:
            line.close()
        else:
            return line
    raise SftpUnreachableError(CONNECTION_REFUSED)


@contextmanager
def _translate_handshake_errors() -> Iterator[None]:
    import paramiko

    try:
        yield
    except paramiko.ssh_exception.IncompatiblePeer:
        raise SftpUnreachableError("the host has no key of the type that is known, or no cipher of ours") from None
    except (paramiko.SSHException, EOFError, OSError):
        raise SftpUnreachableError(CONNECTION_REFUSED) from None


def _log_in(transport: paramiko.Transport, place: SftpServer) -> None:
    secret = current_vault().open(place.secret_sealed, place.id)
    if place.secret_kind == PRIVATE_KEY_KIND:
        transport.auth_publickey(place.username, load_private_key(secret))
    else:
        transport.auth_password(place.username, secret.reveal())


def parse_host_key(host_key: str) -> paramiko.PKey:
    """Parse a known_hosts line without its host. Raises ValueError."""
    import paramiko
    from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

    words = host_key.split()
    with suppress(InvalidHostKey, paramiko.SSHException, ValueError):
        if len(words) >= 2 and words[0] in HOST_KEY_TYPES:
            entry = HostKeyEntry.from_line(f"host {words[0]} {words[1]}")
            return entry.key
    raise ValueError(
        f"a host key has two words, e.g. ssh-ed25519 AAAA…; ssh-keyscan shows it; types: {', '.join(HOST_KEY_TYPES)}"
    )


def load_private_key(secret: Secret) -> paramiko.PKey:
    """Parse a private key. Raises ValueError."""
    import paramiko

    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(secret.reveal()))
        except (paramiko.SSHException, ValueError):
            continue
    raise ValueError("this is no private key of OpenSSH without a passphrase")

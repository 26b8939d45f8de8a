"""The options of commands that set up an SFTP server: where it is, and the login there."""

from __future__ import annotations

import getpass
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from gateway.access import audit_log
from gateway.core.secret import Secret
from gateway.management.option_values import build_number_parser, read_option_file
from reporting.sftp_server import SftpServer


def add_sftp_options(parser: ArgumentParser) -> None:
    """Add the options of the server, the login and the folder."""
    parser.add_argument("--host", help="name or address of the server")
    parser.add_argument("--port", type=build_number_parser(1, 65_535), default=22, help="its port; without it 22")
    parser.add_argument("--user", help="the name to log in with")
    parser.add_argument("--key-file", help="a private key of OpenSSH; without it a password is asked for")
    parser.add_argument("--host-key", help="the server's public key, as ssh-keyscan shows it, without the host")
    parser.add_argument("--folder", default=".", help="the folder there; without it the one that the login leads to")


def read_sftp_options(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments that sources and targets are set up with. Asks for the password where no key file is given. Raises
    CommandError."""
    if not options["user"] or not options["host_key"]:
        raise CommandError("Give --user and --host-key, too.")
    if options["key_file"]:
        kind, secret = SftpServer.SecretKind.KEY, Secret(read_option_file(Path(options["key_file"])))
    else:
        kind, secret = SftpServer.SecretKind.PASSWORD, Secret(getpass.getpass("Password: "))
    return {
        "host": options["host"],
        "port": options["port"],
        "username": options["user"],
        "kind": kind,
        "secret": secret,
        "host_key": options["host_key"],
        "folder": options["folder"],
        "by": audit_log.COMMAND_LINE_ACTOR,
    }

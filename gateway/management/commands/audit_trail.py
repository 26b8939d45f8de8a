"""Check the hash chain of the audit trail, or a signed export of it."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.core.management.base import BaseCommand, CommandError

from gateway.backoffice.access import audit_seals
from gateway.backoffice.access.audit_work import ENTRIES_FILE, MANIFEST_FILE, SIGNATURE_FILE
from gateway.core import clock
from gateway.models import SigningKey

COMMIT_TIME: Final = timedelta(minutes=1)
"""An entry is in the chain at the latest so long after it was written."""


class Command(BaseCommand):
    help = "Check that the audit trail is as it was sealed, or that an export is one of this installation."

    def add_arguments(self, parser: ArgumentParser) -> None:
        steps = parser.add_subparsers(dest="step", required=True)
        check = steps.add_parser("check", help="check the whole hash chain")
        check.add_argument("--noted", default="", metavar="DIGEST", help="a digest noted earlier, which has to occur")
        export = steps.add_parser("verify", help="check the signature and the checksum of an export")
        export.add_argument("file", type=Path, help="the export, a ZIP file")

    def handle(self, *args: Any, step: str, **options: Any) -> None:
        if step == "check":
            self._check(options["noted"])
        else:
            self._verify(options["file"])

    def _check(self, noted: str) -> None:
        # What is written while the chain is read, or commits late, has its seal in the next seconds.
        until = clock.real_now() - COMMIT_TIME
        while audit_seals.seal_new_entries():
            pass
        number, digest, fault = audit_seals.check_chain(noted)
        if fault is not None:
            raise CommandError(f"broken at seal {fault.number}: {fault.why}")
        if left := audit_seals.count_unsealed_entries(until=until):
            raise CommandError(f"{left} entries have no seal")
        self.stdout.write(f"{number} entries are as they were sealed. Last digest: {digest}")

    def _verify(self, file: Path) -> None:
        try:
            with zipfile.ZipFile(file) as packed:
                manifest, signature = packed.read(MANIFEST_FILE), packed.read(SIGNATURE_FILE)
                digest = hashlib.sha256()
                with packed.open(ENTRIES_FILE) as entries:
                    while piece := entries.read(1024 * 1024):
                        digest.update(piece)
            said = json.loads(manifest)
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["publicKey"]))
            key.verify(base64.b64decode(signature), manifest)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as fault:
            raise CommandError(f"{file} is no export of an audit trail: {fault}") from None
        except InvalidSignature:
            raise CommandError(f"{file}: the signature is wrong") from None
        if said["sha256"] != digest.hexdigest():
            raise CommandError(f"{file}: {ENTRIES_FILE} is not what was signed")
        if not SigningKey.objects.filter(public=said["publicKey"]).exists():
            raise CommandError(f"{file}: signed by the key {said['publicKey']}, which is none of this installation's")
        self.stdout.write(f"{said['entries']} entries, signed {said['madeAt']}, last digest {said['lastDigest']}")

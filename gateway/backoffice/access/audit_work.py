"""Background work on the audit trail: checking its hash chain, and the signed export (docs/background-work.md).

The export is a ZIP of entries.jsonl (each entry with its seal and the digest before it), manifest.json (what it has,
its SHA-256, the last digest) and manifest.sig, an Ed25519 signature of the manifest by the installation's key. Source:
decision 0092.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.contrib.auth import get_user_model
from django.utils import translation
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.background import queue
from gateway.background.files import COPY_CHUNK_BYTES, AttemptFolder
from gateway.backoffice.access import audit_seals
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import AuditEntry, AuditSeal, BackgroundWork, SigningKey
from gateway.vault.sealing import current_vault

VIEW_AUDIT_PERMISSION: Final = "gateway.view_auditentry"
AUDIT_SLICE_ENTRIES: Final = 2_000
ENTRIES_FILE: Final = "entries.jsonl"
MANIFEST_FILE: Final = "manifest.json"
SIGNATURE_FILE: Final = "manifest.sig"


def check_chain_slice(row: BackgroundWork, _folder: AttemptFolder, _alive: Callable[[], None]) -> queue.SliceResult:
    """Check the next seals; after the last, say what was found."""
    cursor = {"number": 0, "digest": audit_seals.CHAIN_START, **row.cursor}
    total = None if row.cursor else audit_seals.count_seals()
    seals, fault = audit_seals.check_seals(cursor["number"], cursor["digest"], AUDIT_SLICE_ENTRIES)
    with translation.override(row.parameters.get("language", "en")):
        if fault is not None:
            words = _("The chain is broken at seal %(n)d: %(why)s.")
            raise queue.WorkFailedError(words % {"n": fault.number, "why": fault.why})
        if seals:
            cursor = {"number": seals[-1].number, "digest": seals[-1].digest}
            return queue.SliceResult(done=cursor["number"], cursor=cursor, total=total)
        words = _("All %(n)d sealed entries are as they were sealed; %(rest)d have none yet. Last digest: %(digest)s")
        rest = audit_seals.count_unsealed_entries()
        said = words % {"n": cursor["number"], "rest": rest, "digest": cursor["digest"]}
    return queue.SliceResult(done=cursor["number"], cursor=cursor, total=cursor["number"], finished=True, message=said)


def export_audit_slice(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Write the next entries that the owner may see, oldest first; after the last, sign and assemble the file."""
    scope = permissions.find_access_scope(get_user_model().objects.get(pk=row.owner_id), VIEW_AUDIT_PERMISSION)
    if not scope:
        raise queue.WorkFailedError("Your right to see the audit trail was taken away.")
    rows = AuditEntry.objects.filter(scope.where("merchant", None))
    cursor: dict[str, Any] = dict(row.cursor)
    total = None
    if "until" not in cursor:
        last = rows.order_by("-pk").first()
        cursor = {"until": last.pk if last is not None else 0, "after": 0, "parts": [], "rows": 0, "scopes": []}
        total = rows.filter(pk__lte=cursor["until"]).count()
    if (serialized := permissions.serialize_access_scope(scope)) not in cursor["scopes"]:
        cursor["scopes"] = [*cursor["scopes"], serialized]
    found = list(rows.filter(pk__gt=cursor["after"], pk__lte=cursor["until"]).order_by("pk")[:AUDIT_SLICE_ENTRIES])
    lines = [
        json.dumps(_render_entry(entry, seal, before, scope.everything), sort_keys=True, ensure_ascii=False)
        for entry, seal, before in audit_seals.list_sealed_entries(found)
    ]
    cursor["parts"] = folder.append(cursor["parts"], ENTRIES_FILE, "".join(f"{line}\n" for line in lines).encode())
    if found:
        cursor |= {"after": found[-1].pk, "rows": cursor["rows"] + len(found)}
    if len(found) == AUDIT_SLICE_ENTRIES:
        return queue.SliceResult(done=cursor["rows"], cursor=cursor, total=total)
    name = _assemble_export(row, folder, cursor, alive)
    return queue.SliceResult(done=cursor["rows"], cursor=cursor, total=cursor["rows"], finished=True, file=name)


def _render_entry(entry: AuditEntry, seal: AuditSeal | None, before: str, whole: bool) -> dict[str, Any]:
    """An entry with its seal; the seal's number, which tells how many entries others have, only in an export of all."""
    sealed: dict[str, Any] | None = None
    if seal is not None:
        sealed = {"digestBefore": before, "digest": seal.digest} | ({"number": seal.number} if whole else {})
    return {
        "id": entry.pk,
        "at": entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": entry.actor,
        "ip": entry.ip,
        "action": entry.action,
        "subject": entry.subject,
        "subjectId": entry.subject_id,
        "before": entry.before,
        "after": entry.after,
        "merchant": entry.merchant.hex if entry.merchant is not None else None,
        "seal": sealed,
    }


def _assemble_export(
    row: BackgroundWork, folder: AttemptFolder, cursor: Mapping[str, Any], alive: Callable[[], None]
) -> str:
    name = folder.own("audit-trail.zip")
    digest = hashlib.sha256()
    with zipfile.ZipFile(folder.path / name, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as packed:
        with folder.reading(cursor["parts"]) as source, packed.open(ENTRIES_FILE, "w", force_zip64=True) as target:
            while piece := source.read(COPY_CHUNK_BYTES):
                digest.update(piece)
                target.write(piece)
                alive()
        manifest, signature = _sign_manifest(row, cursor, digest.hexdigest())
        packed.writestr(MANIFEST_FILE, manifest)
        packed.writestr(SIGNATURE_FILE, signature)
    return name


def _sign_manifest(row: BackgroundWork, cursor: Mapping[str, Any], digest: str) -> tuple[bytes, str]:
    whole = all(scope["everything"] for scope in cursor["scopes"])
    key, private = load_signing_key()
    last = AuditSeal.objects.order_by("-number").first()
    manifest = {
        "entries": cursor["rows"],
        "sha256": digest,
        "madeAt": clock.real_now().isoformat(timespec="seconds"),
        "madeBy": row.owner.get_username(),
        **({"lastSeal": last.number if last is not None else 0} if whole else {}),
        "lastDigest": last.digest if last is not None else audit_seals.CHAIN_START,
        "publicKey": key.public,
    }
    text = json.dumps(manifest, sort_keys=True, indent=1).encode()
    return text, base64.b64encode(private.sign(text)).decode()


def load_signing_key() -> tuple[SigningKey, Ed25519PrivateKey]:
    """The installation's signing key, made when it is needed first. Of two made at once the first is used."""
    row = SigningKey.objects.order_by("pk").first()
    if row is None:
        made = Ed25519PrivateKey.generate()
        raw = made.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        public = made.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        row = SigningKey(public=public, created_at=clock.real_now())
        row.private_sealed = current_vault().seal(Secret(raw.hex()), row.pk)
        row.save(force_insert=True)
        row = SigningKey.objects.order_by("pk")[0]
    opened = current_vault().open(row.private_sealed, row.pk)
    return row, Ed25519PrivateKey.from_private_bytes(bytes.fromhex(opened.reveal()))


AUDIT_CHECK: Final = queue.WorkKind(
    name="audit trail check",
    about="the hash chain of the audit trail, checked",
    right=VIEW_AUDIT_PERMISSION,
    step=check_chain_slice,
)
AUDIT_EXPORT: Final = queue.WorkKind(
    name="audit trail export",
    about="the audit trail with seals, signed",
    right=VIEW_AUDIT_PERMISSION,
    step=export_audit_slice,
)

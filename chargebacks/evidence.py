"""Files of evidence for a dispute: limits, sealed storage, download. The content type is detected from the bytes, not
the name.

Bytes are sealed like a card number: delivery notes and letters contain names and addresses. They are stored in the
database, in pieces; none of their paths or names ever reaches a file system or a web root.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import BinaryIO, Final

from django.db import IntegrityError, transaction
from django.db.models import Q, Sum
from django.utils.translation import gettext as _

from chargebacks.evidence_checklist import CHECKLIST_ITEMS, ChecklistItem, list_wanted_items
from chargebacks.models import Chargeback, Evidence, EvidencePiece
from chargebacks.states import DisputeState, DisputeTransitionError
from gateway.access import audit_log
from gateway.core import clock, image_limits
from gateway.core.masking import mask_text
from gateway.core.secret import Secret
from gateway.models import Payment
from gateway.vault.sealing import current_vault

MAX_EVIDENCE_FILE_BYTES: Final = 5 * 1024 * 1024
MAX_EVIDENCE_CASE_BYTES: Final = 20 * 1024 * 1024
MAX_EVIDENCE_FILES: Final = 20
EVIDENCE_PIECE_BYTES: Final = 128 * 1024
THUMBNAIL_PIECE_NUMBER: Final = -1
"""The number of the piece that holds the thumbnail, not a part of the file."""
EXTENSIONS_BY_CONTENT_TYPE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"application/pdf": (".pdf",), "image/png": (".png",), "image/jpeg": (".jpg", ".jpeg")}
)
"""Content type → allowed file name extensions."""
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class EvidenceRejectedError(Exception):
    """The file is refused; the text says why and what is allowed."""


def describe_evidence_limits() -> str:
    """Allowed types and sizes, in words, shown before a file is chosen."""
    return _("%(types)s, up to %(each)s MB each, %(files)s files and %(all)s MB in all") % {
        "types": "PDF, PNG, JPEG",
        "each": MAX_EVIDENCE_FILE_BYTES // 1024**2,
        "files": MAX_EVIDENCE_FILES,
        "all": MAX_EVIDENCE_CASE_BYTES // 1024**2,
    }


def add_evidence(case: Chargeback, item: str, name: str, stream: BinaryIO, by: audit_log.Actor) -> Evidence:
    """Add a file to the case. Raises EvidenceRejectedError, and DisputeTransitionError once the case is not open."""
    if item not in CHECKLIST_ITEMS:
        raise EvidenceRejectedError(_("Choose what the file shows."))
    octets = stream.read(MAX_EVIDENCE_FILE_BYTES + 1)
    if len(octets) > MAX_EVIDENCE_FILE_BYTES:
        raise EvidenceRejectedError(
            _("The file is larger than %(most)s MB; allowed are %(limits)s.")
            % {"most": MAX_EVIDENCE_FILE_BYTES // 1024**2, "limits": describe_evidence_limits()}
        )
    kind = detect_content_type(octets)
    plain = _sanitize_name(name)
    if kind is None or not plain.lower().endswith(EXTENSIONS_BY_CONTENT_TYPE[kind]):
        message = (
            _("%(name)s is %(kind)s by its content, and named as something else; allowed are %(limits)s.")
            if kind
            else _("%(name)s is no PDF, PNG or JPEG by its content; allowed are %(limits)s.")
        )
        raise EvidenceRejectedError(message % {"name": plain, "kind": kind, "limits": describe_evidence_limits()})
    if kind != "application/pdf" and image_limits.count_pixels(octets) > image_limits.MAX_IMAGE_PIXELS:
        raise EvidenceRejectedError(
            _("%(name)s has more than %(most)s million pixels; make it smaller.")
            % {"name": plain, "most": image_limits.MAX_IMAGE_PIXELS // 1_000_000}
        )
    with transaction.atomic():
        # The row of the case is locked: it cannot be submitted between this check and the insert.
        held = Chargeback.objects.select_for_update(of=("self",)).select_related("merchant").get(pk=case.pk)
        _check_limits(held, len(octets))
        evidence = Evidence(
            case=held,
            item=item,
            name=plain,
            content_type=kind,
            size=len(octets),
            sha256=hashlib.sha256(octets).hexdigest(),
            by=by.name[:150],
            added_at=clock.merchant_now(held.merchant),
        )
        try:
            with transaction.atomic():
                evidence.save(force_insert=True)
        except IntegrityError:
            raise EvidenceRejectedError(_("%(name)s is there already.") % {"name": plain}) from None
        for number, start in enumerate(range(0, len(octets), EVIDENCE_PIECE_BYTES)):
            _seal_piece(evidence, number, octets[start : start + EVIDENCE_PIECE_BYTES])
        audit_log.record_audit_entry(by, "add evidence", held, after={"name": plain, "item": item, "size": len(octets)})
    return evidence


def remove_evidence(evidence: Evidence, by: audit_log.Actor) -> None:
    """Remove a file before the case is submitted. Raises DisputeTransitionError."""
    with transaction.atomic():
        held = Chargeback.objects.select_for_update(of=("self",)).select_related("merchant").get(pk=evidence.case_id)
        _check_case_open(held)
        audit_log.record_audit_entry(by, "remove evidence", held, before={"name": evidence.name, "item": evidence.item})
        evidence.delete()


def stream_evidence(evidence: Evidence) -> Iterator[bytes]:
    """The bytes of a file, piece by piece, each read by itself: a cursor would keep its session of the database from
    other requests for as long as a client takes to read (docs/decisions/0161)."""
    for number in list(evidence.pieces.filter(number__gte=0).order_by("number").values_list("number", flat=True)):
        yield _unseal_piece(evidence.pieces.get(number=number))


def load_thumbnail(evidence: Evidence) -> bytes | None:
    """The stored thumbnail; b"" if none can be made, None if none was tried yet."""
    piece = evidence.pieces.filter(number=THUMBNAIL_PIECE_NUMBER).first()
    return None if piece is None else _unseal_piece(piece)


def store_thumbnail(evidence: Evidence, octets: bytes) -> None:
    """Store the thumbnail, sealed like the file itself; does nothing if one is stored already."""
    with contextlib.suppress(IntegrityError), transaction.atomic():
        _seal_piece(evidence, THUMBNAIL_PIECE_NUMBER, octets)


def _seal_piece(evidence: Evidence, number: int, octets: bytes) -> None:
    piece = EvidencePiece(evidence=evidence, number=number)
    piece.sealed = current_vault().seal(Secret(base64.b64encode(octets).decode()), piece.id)
    piece.save(force_insert=True)


def _unseal_piece(piece: EvidencePiece) -> bytes:
    return base64.b64decode(current_vault().open(piece.sealed, piece.id).reveal())


def list_case_items(case: Chargeback) -> tuple[ChecklistItem, ...]:
    """The checklist of a case: by its reason and the means of the payment, and the proof of the refund first if there
    was one before it."""
    return list_wanted_items(case.reason_code, refunded=case.refunded_before > 0, means=_find_means(case))


def _find_means(case: Chargeback) -> str:
    """The means of the disputed payment, or of its chain's first one: a capture has none of its own."""
    chain = Payment.objects.filter(pk=case.disputed).values("chain")
    found = Payment.objects.filter(Q(pk=case.disputed) | Q(pk__in=chain)).exclude(means="")
    return found.values_list("means", flat=True).first() or ""


def list_missing_evidence(case: Chargeback) -> tuple[ChecklistItem, ...]:
    """Checklist items of the case without a file."""
    shown = frozenset(case.evidence.values_list("item", flat=True))
    return tuple(item for item in list_case_items(case) if item.key not in shown)


def detect_content_type(octets: bytes) -> str | None:
    """The content type by first and last bytes; None for a type that is not allowed."""
    if re.match(rb"%PDF-[12]\.[0-9]", octets[:16]) and b"%%EOF" in octets[-1024:]:
        return "application/pdf"
    if octets.startswith(_PNG) and octets[12:16] == b"IHDR" and b"IEND" in octets[-16:]:
        return "image/png"
    if octets.startswith(b"\xff\xd8\xff") and octets.rstrip(b"\0").endswith(b"\xff\xd9"):
        return "image/jpeg"
    return None


def _check_case_open(case: Chargeback) -> None:
    if case.state != DisputeState.OPEN:
        raise DisputeTransitionError(_("Evidence cannot be changed any more."))
    if clock.merchant_now(case.merchant) >= case.due_at:
        raise DisputeTransitionError(_("The deadline was %s UTC.") % f"{case.due_at:%Y-%m-%d %H:%M}")


def _check_limits(case: Chargeback, size: int) -> None:
    _check_case_open(case)
    held = case.evidence.aggregate(size=Sum("size"))["size"] or 0
    if case.evidence.count() >= MAX_EVIDENCE_FILES:
        raise EvidenceRejectedError(_("There are %d files already, which is the most.") % MAX_EVIDENCE_FILES)
    if held + size > MAX_EVIDENCE_CASE_BYTES:
        raise EvidenceRejectedError(
            _("All files together would be larger than %d MB.") % (MAX_EVIDENCE_CASE_BYTES // 1024**2)
        )


def _sanitize_name(name: str) -> str:
    """The base name of a file: without folders, masked, printable."""
    last = PurePath(name.replace("\\", "/")).name
    text = mask_text("".join(char if char.isprintable() else "�" for char in last))
    stem, dot, ending = text.rpartition(".")
    return f"{stem[:120]}{dot}{ending[:7]}" or "file"

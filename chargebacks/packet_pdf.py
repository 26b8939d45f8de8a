"""Builds the packet of a dispute: facts, checklist and evidence as one PDF, for the bank that decides.

Images are re-encoded, pages of PDFs are copied without active content (scripts, links, forms). A file that cannot be
included is listed with the reason; the original is on the dispute's page. The text is English: the reader is a bank.
"""

from __future__ import annotations

import io
from typing import Any, Final

from django.utils import translation
from fpdf import FPDF
from pypdf import PageObject, PdfReader, PdfWriter

from chargebacks import evidence_images
from chargebacks.compelling_evidence import find_earlier_payments
from chargebacks.evidence import list_case_items, stream_evidence
from chargebacks.gathered_evidence import RecordedProof
from chargebacks.models import Chargeback, Evidence
from chargebacks.packet_facts import PacketSection, gather_packet_proofs, list_checklist_rows, list_packet_sections
from gateway.backoffice.kit.pdf_paper import PdfPaper
from gateway.core import clock
from gateway.core.money import format_amount
from gateway.models import Payment

MAX_EVIDENCE_PAGES: Final = 100
"""Pages included of one file of evidence; the packet says how many were cut off."""
_SHOWN: Final = frozenset({
    "/Type", "/Parent", "/Resources", "/Contents", "/MediaBox", "/CropBox", "/BleedBox", "/TrimBox", "/ArtBox",
    "/Rotate", "/UserUnit", "/Group",
})  # fmt: skip
"""Entries copied of a page: everything needed to draw it; no scripts, links, forms and attached files."""


def build_packet(case: Chargeback) -> bytes:
    """The packet of the case as it is now."""
    with translation.override("en"):
        disputed = Payment.objects.select_related("merchant", "channel").get(pk=case.disputed)
        files = list(case.evidence.order_by("added_at", "id"))
        paper = PdfPaper(f"Dispute {case.pk.hex}")
        paper.add_page()
        sections, proofs = _gather_sections(case, disputed)
        _write_facts(paper, case, sections)
        shown = [(file, _read_pages(file)) for file in files]
        _write_checklist(paper, case, proofs, [(file, why) for file, (_pages_of_it, why) in shown])
        written = PdfWriter(clone_from=io.BytesIO(bytes(paper.output())))
        for number, (file, (pages, _why)) in enumerate(shown, 1):
            if pages:
                _append_pages(written, _write_caption(case, file, number))
                for page in pages:
                    written.add_page(page)
        written.add_metadata({"/Title": f"Dispute {case.pk.hex}", "/Author": case.merchant.name})
        out = io.BytesIO()
        written.write(out)
    return out.getvalue()


def _gather_sections(case: Chargeback, disputed: Payment) -> tuple[list[PacketSection], list[RecordedProof]]:
    """The packet's sections, and what was recorded: gathered once."""
    earlier = find_earlier_payments(case)
    proofs = gather_packet_proofs(case, earlier)
    return list_packet_sections(case, disputed, earlier=earlier, proofs=proofs), proofs


def _write_facts(paper: PdfPaper, case: Chargeback, sections: list[PacketSection]) -> None:
    paper.write_(f"Answer to a chargeback of {format_amount(case.amount)} {case.currency}", 17, 2)
    paper.write_(f"{case.merchant.name} · made {clock.merchant_now(case.merchant):%Y-%m-%d %H:%M} UTC", 10)
    for heading, rows in sections:
        paper.rows(heading, list(rows))


def build_gathered_pdf(case: Chargeback) -> bytes:
    """What the gateway recorded about the disputed payment, as one PDF that can be submitted as evidence."""
    disputed = Payment.objects.select_related("merchant", "channel").get(pk=case.disputed)
    paper = PdfPaper(f"Dispute {case.pk.hex} · recorded by the gateway")
    paper.add_page()
    paper.write_("What the payment gateway recorded", 17, 2)
    paper.write_(f"{case.merchant.name} · made {clock.merchant_now(case.merchant):%Y-%m-%d %H:%M:%S} UTC", 10)
    for heading, rows in _gather_sections(case, disputed)[0][1:]:
        paper.rows(heading, list(rows))
    return bytes(paper.output())


def _write_checklist(
    paper: PdfPaper, case: Chargeback, proofs: list[RecordedProof], files: list[tuple[Evidence, str]]
) -> None:
    items = list_case_items(case)
    wanted = {item.key for item in items}
    paper.rows("What this reason asks for", list_checklist_rows(case, proofs))
    listed = []
    for number, (file, why) in enumerate(files, 1):
        kind = next((item.text for item in items if item.key == file.item), "Further evidence")
        details = [file.name or "erased", kind if file.item in wanted else "Further evidence", f"SHA-256 {file.sha256}"]
        listed.append((f"{number}", "\n".join([*details, *([why] if why else [])])))
    paper.rows("Evidence", listed or [("none", "No file was added.")])


def _read_pages(file: Evidence) -> tuple[list[PageObject], str]:
    """The file's pages, and what of it is not included, in words."""
    if file.is_erased:
        return [], "The file was erased with the shopper's data."
    if file.content_type != "application/pdf":
        octets = evidence_images.render_packet_image(file)
        if octets is None:
            return [], "The picture cannot be opened; the original is with the merchant."
        paper = FPDF(format="A4")
        paper.add_page()
        paper.image(io.BytesIO(octets), x=15, y=15, w=180, h=267, keep_aspect_ratio=True)
        return list(PdfReader(io.BytesIO(bytes(paper.output()))).pages), ""
    try:
        reader = PdfReader(io.BytesIO(b"".join(stream_evidence(file))))
        if reader.is_encrypted:
            return [], "The PDF is encrypted; the original is with the merchant."
        pages = [_sanitize_page(reader.pages[number]) for number in range(min(len(reader.pages), MAX_EVIDENCE_PAGES))]
        cut = len(reader.pages) > MAX_EVIDENCE_PAGES
        # Copied once on trial: a page that is broken deep inside fails here and not in the packet.
        trial = PdfWriter()
        for page in pages:
            trial.add_page(page)
        trial.write(io.BytesIO())
    except Exception:  # anything may be wrong with an uploaded PDF: the packet names the fault and is built
        return [], "The PDF cannot be opened; the original is with the merchant."
    if not pages:
        return [], "The PDF has no pages; the original is with the merchant."
    return pages, f"The first {MAX_EVIDENCE_PAGES} pages; the original is with the merchant." if cut else ""


def _sanitize_page(page: PageObject) -> PageObject:
    for name in [name for name in page if name not in _SHOWN]:
        del page[name]
    return page


def _write_caption(case: Chargeback, file: Evidence, number: int) -> bytes:
    paper = PdfPaper(f"Dispute {case.pk.hex} · evidence {number}")
    paper.add_page()
    paper.write_(f"Evidence {number}: {file.name}", 15, 2)
    text = next((item.text for item in list_case_items(case) if item.key == file.item), "Further evidence")
    paper.write_(text)
    return bytes(paper.output())


def _append_pages(written: PdfWriter, octets: bytes) -> None:
    pages: Any = PdfReader(io.BytesIO(octets)).pages
    for page in pages:
        written.add_page(page)

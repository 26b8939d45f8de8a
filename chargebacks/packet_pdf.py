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
from chargebacks.evidence_checklist import describe_reason
from chargebacks.models import Chargeback, Evidence
from chargebacks.payment_details import describe_disputed_payment
from chargebacks.stages import DisputeStage, describe_scheme_reason, find_stage_rule
from gateway.backoffice.kit.pdf_paper import PdfPaper
from gateway.core import clock, identifiers
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
        _write_facts(paper, case, disputed)
        shown = [(file, _read_pages(file)) for file in files]
        _write_checklist(paper, case, [(file, why) for file, (_pages_of_it, why) in shown])
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


def _write_facts(paper: PdfPaper, case: Chargeback, disputed: Payment) -> None:
    paper.write_(f"Answer to a chargeback of {format_amount(case.amount)} {case.currency}", 17, 2)
    paper.write_(f"{case.merchant.name} · made {clock.merchant_now(case.merchant):%Y-%m-%d %H:%M} UTC", 10)
    paper.rows(
        "The chargeback",
        [
            ("Reason", f"{case.reason_code} {describe_reason(case.reason_code)}"),
            ("Reference", case.reference or "none"),
            ("Stage", DisputeStage(case.stage).label),
            ("Filed as", find_stage_rule(case.brand, case.scheme_reason, case.stage).answer),
            ("Scheme's reason", describe_scheme_reason(case.scheme_reason) or "none"),
            ("Scheme's case", case.scheme_case or "none"),
            ("ARN", case.arn or "none"),
            ("Answer by", f"{case.due_at:%Y-%m-%d %H:%M} UTC"),
            *(
                [("Refunded before", f"{format_amount(case.refunded_before)} {case.currency}")]
                if case.refunded_before
                else []
            ),
            ("Came", f"{case.opened_at:%Y-%m-%d %H:%M} UTC"),
            ("Our id", case.pk.hex),
            ("State", case.get_state_display()),
        ],
    )
    card = disputed.answer.get("card", {})
    first = disputed if disputed.chain == disputed.id else Payment.objects.get(pk=disputed.chain)
    card = card or first.answer.get("card", {})
    paper.rows(
        "The payment",
        [
            ("Amount", f"{format_amount(disputed.amount)} {disputed.currency}"),
            ("When", f"{disputed.created_at:%Y-%m-%d %H:%M:%S} UTC"),
            ("Brand", disputed.brand),
            ("Card", f"ending in {card['last4Digits']}" if card.get("last4Digits") else "none"),
            ("Order", first.merchant_transaction_id or "none"),
            ("Invoice", first.merchant_invoice_id or "none"),
            ("Our id", disputed.id.hex),
            ("Short id", identifiers.format_short_id(disputed.number)),
            ("Acquirer's id", disputed.connector_tx_id or first.connector_tx_id or "none"),
        ],
    )
    paper.rows("What was known when it was made", describe_disputed_payment(disputed))
    if earlier := find_earlier_payments(case):
        paper.rows(
            "Earlier undisputed payments with the same card",
            [
                (
                    f"{one.payment.created_at:%Y-%m-%d}",
                    f"{format_amount(one.payment.amount)} {one.payment.currency}, {one.payment.id.hex}; the same "
                    + ", ".join(one.shared),
                )
                for one in earlier
            ],
        )


def _write_checklist(paper: PdfPaper, case: Chargeback, files: list[tuple[Evidence, str]]) -> None:
    items = list_case_items(case)
    wanted = {item.key for item in items}
    rows = [("there" if any(file.item == item.key for file, _ in files) else "missing", item.text) for item in items]
    paper.rows("What this reason asks for", rows)
    listed = []
    for number, (file, why) in enumerate(files, 1):
        kind = next((item.text for item in items if item.key == file.item), "Further evidence")
        details = [file.name, kind if file.item in wanted else "Further evidence", f"SHA-256 {file.sha256}"]
        listed.append((f"{number}", "\n".join([*details, *([why] if why else [])])))
    paper.rows("Evidence", listed or [("none", "No file was added.")])


def _read_pages(file: Evidence) -> tuple[list[PageObject], str]:
    """The file's pages, and what of it is not included, in words."""
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

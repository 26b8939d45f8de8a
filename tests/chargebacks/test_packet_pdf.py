"""The packet of a dispute as one PDF, and evidence as pictures."""

from __future__ import annotations

import gc
import io
import os
import re
import resource
import signal
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from fpdf import FPDF
from PIL import Image
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, StreamObject, TextStringObject

from chargebacks import evidence, evidence_images, ledger, packet_job, packet_pdf, packet_process
from chargebacks.models import Chargeback, Evidence, EvidencePiece
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.backoffice.kit import pdf_paper
from gateway.core import clock
from gateway.models import AuditEntry, Authentication, BackgroundWork
from gateway.personal_data.erasure import erase_person
from gateway.personal_data.people import parse_person
from tests.fuzz.meter import measured
from tests.support import threeds
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.settlement import payment_of

pytestmark = pytest.mark.django_db
LIST = "/admin/chargebacks/chargeback/"
BROKEN_PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


@pytest.fixture
def clara(shop: Shop) -> Client:
    return signed_in(person("clara", "clerk", shop.merchant))


@pytest.fixture
def case(shop: Shop) -> Chargeback:
    answer = shop.api.pay(
        merchantTransactionId="order-4711",
        **{
            "customer.givenName": "Łucja",
            "customer.surname": "Żak",
            "customer.email": "lucja@example.org",
            "shipping.street1": "Main Street 1",
            "shipping.city": "Kraków",
            "shipping.country": "PL",
            "shipping.trackingNumber": "TRACK-77",
            "shipping.logisticsProvider": "Example Parcel",
        },
    )
    return ledger.record_chargeback(
        payment_of(answer.id), Decimal("40.00"), reason="000.100.221", by=BY, reference="L-7"
    )


def picture(kind: str = "PNG", size: tuple[int, int] = (400, 200), **more: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGBA" if kind == "PNG" else "RGB", size, (200, 30, 30)).save(out, kind, **more)
    return out.getvalue()


def pdf(pages: int = 2, text: str = "Delivery note", script: bool = False, password: str = "") -> bytes:
    paper = FPDF()
    for number in range(1, pages + 1):
        paper.add_page()
        paper.set_font("helvetica", size=20)
        paper.cell(text=f"{text} {number}", link="https://shop.example/")
    written = PdfWriter(clone_from=io.BytesIO(bytes(paper.output())))
    if script:
        action = {NameObject("/S"): NameObject("/JavaScript"), NameObject("/JS"): TextStringObject("app.alert(1)")}
        written.pages[0][NameObject("/AA")] = DictionaryObject({NameObject("/O"): DictionaryObject(action)})
    if password:
        written.encrypt(password)
    out = io.BytesIO()
    written.write(out)
    return out.getvalue() + b"\n"


def with_a_file_inside() -> bytes:
    """A PDF whose page has another file attached (PDF 2.0), and an editor's own data."""
    written = PdfWriter(clone_from=io.BytesIO(pdf(1)))
    attached = StreamObject()
    attached.set_data(b"MZ-a-program")
    page = written.pages[0]
    page[NameObject("/AF")] = ArrayObject(
        [
            DictionaryObject(
                {
                    NameObject("/Type"): NameObject("/Filespec"),
                    NameObject("/F"): TextStringObject("invoice.exe"),
                    NameObject("/EF"): DictionaryObject({NameObject("/F"): written._add_object(attached)}),
                }
            )
        ]
    )
    page[NameObject("/PieceInfo")] = DictionaryObject({NameObject("/Editor"): TextStringObject("hiddenwords")})
    out = io.BytesIO()
    written.write(out)
    return out.getvalue() + b"\n"


def added(case: Chargeback, item: str, name: str, octets: bytes) -> Evidence:
    return evidence.add_evidence(case, item, name, io.BytesIO(octets), BY)


def pages_of(octets: bytes) -> list[str]:
    return [page.extract_text() for page in PdfReader(io.BytesIO(octets)).pages]


def packet_made(client: Client, case: Chargeback) -> Any:
    """Ask for the packet, let a worker make it, and fetch it from the page that tells so."""
    page = client.post(f"{LIST}{case.pk}/packet/")["Location"]
    assert "Packet as PDF" in client.get(page).content.decode()
    queue.run_background_work()
    found = re.search(r'href="([^"]+/file/)"', client.get(page).content.decode())
    assert found
    return client.get(found[1])


def test_the_packet_has_the_facts_the_checklist_and_every_file(case: Chargeback, clara: Client) -> None:
    """Preview of the packet as PDF."""
    scripted = pdf(script=True)
    assert b"/JavaScript" in scripted
    assert b"/URI" in scripted
    added(case, "delivery", "note.pdf", scripted)
    added(case, "messages", "mail.png", picture())
    added(case, "other", "photo.jpg", picture("JPEG"))
    answer = packet_made(clara, case)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/pdf")
    octets = b"".join(answer.streaming_content)
    pages = pages_of(octets)
    first, *rest = pages
    for words in (
        "40.00 EUR",
        "000.100.221",
        "order-4711",
        "Łucja Żak",
        "Kraków",
        "TRACK-77",
        "L-7",
        "missing",
        "note.pdf",
        "not asked for this payment",
    ):
        assert words in "\n".join(pages), words
    assert "Answer to a chargeback" in first
    assert [text.split("\n")[0] for text in rest if "Delivery note" in text] == ["Delivery note 1", "Delivery note 2"]
    assert sum("Evidence " in text for text in rest) >= 3
    for acting in (b"/JavaScript", b"/URI", b"/Annots"):
        assert acting not in octets
    assert AuditEntry.objects.filter(action="packet asked", actor="clara").count() == 1
    assert f"{LIST}{case.pk}/packet/" in clara.get(f"{LIST}{case.pk}/change/").content.decode()


@pytest.mark.parametrize(
    "name, octets, why",
    [
        ("broken.pdf", BROKEN_PDF, "The PDF cannot be opened"),
        ("locked.pdf", pdf(password="secret"), "The PDF is encrypted"),
        ("broken.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0IEND\xaeB`\x82", "The picture cannot be opened"),
        ("long.pdf", pdf(packet_pdf.MAX_EVIDENCE_PAGES + 1), f"The first {packet_pdf.MAX_EVIDENCE_PAGES} pages"),
    ],
)
def test_what_cannot_be_shown_is_told_and_the_packet_is_made(
    case: Chargeback, name: str, octets: bytes, why: str
) -> None:
    added(case, "delivery", name, octets)
    made = pages_of(packet_pdf.build_packet(case))
    assert why in "\n".join(made).replace("\n", " ")
    assert len(made) <= packet_pdf.MAX_EVIDENCE_PAGES + 4


def test_without_a_font_the_packet_is_made_with_what_latin_1_has(
    case: Chargeback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_paper, "PDF_FONT_PATHS", ())
    with override_settings(GATEWAY_PDF_FONT="/nowhere.ttf"):
        assert "?ucja ?ak" in "\n".join(pages_of(packet_pdf.build_packet(case)))


def test_pictures_are_shown_small_and_made_anew(case: Chargeback, clara: Client, shop: Shop) -> None:
    """Thumbnails."""
    photo = added(case, "delivery", "photo.jpg", picture("JPEG", comment=b"4200000000000000"))
    note = added(case, "delivery", "note.pdf", pdf())
    large = added(case, "messages", "large.png", picture(size=(4_000, 2_500)))
    page = clara.get(f"{LIST}{case.pk}/change/").content.decode()
    small = f"{LIST}{case.pk}/evidence/{photo.pk}/small/"
    assert small in page
    answer = clara.get(small)
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("image/jpeg", "nosniff")
    assert Image.open(io.BytesIO(answer.content)).size == (160, 80)
    assert b"4200000000000000" not in answer.content
    for file in (note, large):
        assert clara.get(f"{LIST}{case.pk}/evidence/{file.pk}/small/").status_code == 404
    assert evidence_images.render_thumbnail(large) is None
    # Made once and kept: what the file holds is not decoded again.
    photo.pieces.filter(number__gte=0).delete()
    assert clara.get(small).content == answer.content
    stranger = signed_in(person("dora", "developer", shop.merchant))
    assert stranger.get(small).status_code == stranger.get(f"{LIST}{case.pk}/packet/").status_code == 403


@pytest.mark.parametrize(("width", "height"), [(10_000, 5_001), (60_000, 60_000)])
def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded(
    case: Chargeback, width: int, height: int
) -> None:
    """Decision 0050: a file of 200 KB took 574 MB each time it was shown. Pillow opens none above 179 million."""
    with pytest.raises(evidence.EvidenceRejectedError, match="more than 50 million pixels"):
        added(case, "messages", "huge.png", head_of_a_png(width=width, height=height))


@pytest.mark.parametrize("size", [(2_400, 2_500), (4_000, 2_500)])
def test_showing_a_picture_takes_less_memory_than_a_request_may(case: Chargeback, size: tuple[int, int]) -> None:
    """Decision 0050, P18: at most 64 MB, whether it is shown or is too large for that."""
    file = added(case, "messages", "large.png", picture(size=size))
    _, cost = measured(lambda: evidence_images.render_thumbnail(file))
    assert cost.memory < 64_000_000


def head_of_a_png(*, width: int, height: int) -> bytes:
    """A PNG that says how large it is, and has nothing in it."""

    def chunk(kind: bytes, octets: bytes) -> bytes:
        return struct.pack(">I", len(octets)) + kind + octets + struct.pack(">I", zlib.crc32(kind + octets))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_the_proof_of_3_d_secure_stands_on_the_page_and_in_the_packet(shop: Shop, clara: Client) -> None:
    """Of a payment that was authenticated, and of the capture of one."""
    api = shop.api_of(shop.open_channel("authenticating", three_d_secure=True))
    paid = threeds.buy(api, threeds.FRICTIONLESS)
    held = threeds.buy(api, threeds.FRICTIONLESS, paymentType="PA")
    captured = api.follow(held.id, "CP", "92.00")
    for ident in (paid.id, captured.id):
        case = ledger.record_chargeback(payment_of(ident), Decimal("5.00"), reason="000.100.220", by=BY)
        page = clara.get(f"{LIST}{case.pk}/change/").content.decode()
        made = "\n".join(pages_of(packet_pdf.build_packet(case)))
        proof = payment_of(ident).chain
        eci, directory = threeds_of(proof)
        for told in (page, made):
            assert "3-D Secure" in told
            assert f"ECI {eci}" in told.replace('</dt><dd class="ck-break">', " ").replace("\n", " ")
            assert directory in told.replace("\n", "")
            assert "not asked for this payment" not in told


def test_an_erased_file_says_so_everywhere(case: Chargeback, clara: Client, shop: Shop) -> None:
    """The page, the download, the thumbnail and the packet, in three languages."""
    photo = added(case, "delivery", "lucja.png", picture())
    letter = added(case, "delivery", "lucja.pdf", pdf())
    Chargeback.objects.update(state="LOST", closed_at=clock.real_now())
    erase_person(parse_person(shop.merchant, "email", "lucja@example.org"), by=BY)
    assert not EvidencePiece.objects.exists()
    for language, word in (("en", ": erased"), ("de", ": gelöscht"), ("fr", " : effacé")):
        page = clara.get(f"{LIST}{case.pk}/change/", headers={"accept-language": language}).content.decode()
        for one, kind in ((photo, "image/png"), (letter, "application/pdf")):
            assert f"{kind}{word}" in page.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
            assert f"evidence/{one.pk}/" not in page
    assert clara.get(f"{LIST}{case.pk}/evidence/{letter.pk}/").status_code == 410
    assert clara.get(f"{LIST}{case.pk}/evidence/{photo.pk}/small/").status_code == 410
    assert evidence_images.render_thumbnail(Evidence.objects.get(pk=photo.pk)) is None
    assert not EvidencePiece.objects.exists(), "no thumbnail of nothing is stored"
    made = "".join(one.extract_text() for one in PdfReader(io.BytesIO(packet_pdf.build_packet(case))).pages)
    assert made.count("The file was erased with the shopper's data.") == 2
    assert "cannot be opened" not in made


def threeds_of(chain: Any) -> tuple[str, str]:
    proof = Authentication.objects.get(payment=chain)
    return proof.eci, proof.ds_transaction


def test_a_file_inside_a_pdf_goes_to_no_bank(case: Chargeback) -> None:
    """A page is taken over with what it is drawn with, and with nothing else."""
    hidden = (b"MZ-a-program", b"/Filespec", b"/PieceInfo", b"hiddenwords")
    sent = with_a_file_inside()
    assert all(part in sent for part in hidden)
    added(case, "delivery", "note.pdf", sent)
    made = packet_pdf.build_packet(case)
    assert "Delivery note 1" in "".join(page.extract_text() for page in PdfReader(io.BytesIO(made)).pages)
    for part in hidden:
        assert part not in made


def test_work_within_a_bound_ends_when_its_cpu_or_its_memory_is_used_up() -> None:
    """Decision 0050: packets are made in the background, and there with a bound."""
    with pytest.raises(packet_job.CpuTimeExceededError), packet_job.limit_resources(memory=10**9, cpu_s=0.05):
        busy_for_ever()
    with pytest.raises(MemoryError), packet_job.limit_resources(memory=50_000_000, cpu_s=10):
        bytearray(500_000_000)


def busy_for_ever() -> None:
    while True:
        sum(range(1_000))


def test_the_bound_is_taken_away_again_even_where_the_last_signal_comes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker lives on: one that kept a packet's bound would fail at the next thing that it does. The last signal may
    come while the timer is stopped."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with packet_job.limit_resources(memory=10**9, cpu_s=10):
        assert resource.getrlimit(resource.RLIMIT_AS)[0] not in (before[0], resource.RLIM_INFINITY)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    real = signal.setitimer

    def late(which: int, seconds: float, interval: float = 0.0) -> Any:
        found = real(which, seconds, interval)
        if not seconds:
            raise packet_job.CpuTimeExceededError
        return found

    monkeypatch.setattr(signal, "setitimer", late)
    with pytest.raises(packet_job.CpuTimeExceededError), packet_job.limit_resources(memory=10**9, cpu_s=10):
        pass
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_packet_beyond_its_bound_is_given_up_with_a_reason(case: Chargeback, clara: Client, tmp_path: Path) -> None:
    """And the worker's own bound is as it was."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    row = BackgroundWork(owner=User.objects.get(username="clara"), parameters={"case": str(case.pk)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packet_job, "MAX_PACKET_CPU_S", 0.001)
        gc.disable()  # what is raised within a callback of the collector is lost; the next signal comes a second later
        try:
            with pytest.raises(queue.WorkFailedError, match="take too much"):
                packet_job.build_packet_slice(row, AttemptFolder(path=tmp_path, attempt=1), lambda: None)
        finally:
            gc.enable()
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.django_db(transaction=True)
def test_in_a_worker_with_threads_a_packet_is_made_by_a_process_of_its_own(
    case: Chargeback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits hold for a whole process, and only a main thread hears that its time is up."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    monkeypatch.setenv("DATABASE_URL", urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}")))
    before = resource.getrlimit(resource.RLIMIT_AS)
    with ThreadPoolExecutor(max_workers=1) as pool:
        made = pool.submit(packet_job._write_packet, case, tmp_path / "packet.pdf").result()
    assert made
    assert PdfReader(tmp_path / "packet.pdf").pages
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    with pytest.raises(packet_process.PacketProcessError, match="exit code"):
        packet_process.build_packet_in_process(uuid4().hex, tmp_path / "none.pdf")

"""Payment links and the payment page's looks in the back office: permissions and audit entries.

Source: docs/decisions/0083.
"""

from __future__ import annotations

import io
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from checkout.models import PaymentLink, PaymentPageStyle
from checkout.page_style import MAX_LOGO_FILE_BYTES, choose_text_colour, measure_contrast
from gateway.models import AuditEntry, Role
from tests.checkout.test_payment_links import create, pay_link
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
BASE = "/admin/checkout/paymentlink/"
STYLE = "/admin/checkout/paymentpagestyle/"


def fields(shop: Shop, **more: str) -> dict[str, str]:
    return {"channel": str(shop.channel.pk), "amount": "92.00", "currency": "EUR", "payment_type": "DB", **more}


@pytest.fixture
def clerk(shop: Shop) -> Client:
    return signed_in(person("clara", Role.CLERK, shop.merchant))


def test_a_clerk_makes_a_link_and_sees_its_address_and_qr_code(clerk: Client, shop: Shop) -> None:
    made = clerk.post(f"{BASE}add/", fields(shop, description="Deposit", reference="order-4711", reusable="on"))
    assert made.status_code == 302, re.findall(r"errorlist.*?</ul>", made.content.decode())
    row = PaymentLink.objects.get()
    assert (row.description, str(row.amount), row.max_payments, row.created_by) == ("Deposit", "92.00", None, "clara")
    assert row.request["merchantTransactionId"] == "order-4711"
    page = clerk.get(made["Location"]).content.decode()
    assert f"http://testserver/pay/{row.public_id}" in page
    assert "<svg" in page
    assert "Close this link" in page
    entry = AuditEntry.objects.get(subject="paymentlink", action="create")
    assert (entry.subject_id, row.public_id in str(entry.after)) == (str(row.pk), False)
    pay_link(row.public_id)
    listed = clerk.get(BASE).content.decode()
    assert "1 ×" in listed
    assert "92.00" in listed


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"amount": "92.1"}, "exactly two decimals"),
        ({"amount": ""}, "is required"),
        ({"currency": "eur"}, "ISO 4217"),
        ({"open_amount": "on", "max_amount": "5.00"}, "is not sent with"),
        ({"max_payments": "5"}, "goes with"),
        ({"expires_at": "2001-01-01 00:00:00"}, "later than now"),
        ({"reference": "short"}, "8"),
    ],
)
def test_the_form_refuses_what_the_api_refuses(clerk: Client, shop: Shop, wrong: dict[str, str], words: str) -> None:
    page = clerk.post(f"{BASE}add/", fields(shop, **wrong))
    assert (page.status_code, words in page.content.decode()) == (200, True)
    assert not PaymentLink.objects.exists()


def test_a_link_is_closed_once_and_the_trail_says_by_whom(clerk: Client, shop: Shop) -> None:
    create(shop.api)
    row = PaymentLink.objects.get()
    for _ in range(2):
        assert clerk.post(f"{BASE}{row.pk}/close/").status_code == 302
    assert AuditEntry.objects.filter(subject="paymentlink", action="change", actor="clara").count() == 1
    assert clerk.get(f"{BASE}{row.pk}/close/").status_code == 403
    assert "Closed" in clerk.get(f"{BASE}{row.pk}/change/").content.decode()


@pytest.mark.parametrize(
    ("role", "may"), [(Role.CLERK, True), (Role.MANAGER, True), (Role.DEVELOPER, False), (Role.AUDITOR, False)]
)
def test_who_may_make_and_close_links(shop: Shop, role: Role, may: bool) -> None:
    create(shop.api)
    row = PaymentLink.objects.get()
    client = signed_in(person("somebody", role, shop.merchant))
    assert client.get(f"{BASE}{row.pk}/change/").status_code == 200
    assert client.get(f"{BASE}add/").status_code == (200 if may else 403)
    assert client.post(f"{BASE}{row.pk}/close/").status_code == (302 if may else 403)
    row.refresh_from_db()
    assert (row.deactivated_at is not None) == may


def test_nobody_reaches_the_links_of_others(shop: Shop, stranger: Shop) -> None:
    create(shop.api, link__description="Theirs alone")
    row = PaymentLink.objects.get()
    for node in (stranger.merchant, shop.open_channel("elsewhere")):
        client = signed_in(person(f"boss of {node}", Role.MANAGER, node))
        assert "Theirs alone" not in client.get(BASE).content.decode()
        assert client.get(f"{BASE}{row.pk}/change/").status_code == 404
        assert client.post(f"{BASE}{row.pk}/close/").status_code == 404
        assert client.post(f"{BASE}add/", fields(shop)).status_code == 200, "the channel is none of theirs"
    assert PaymentLink.objects.get().deactivated_at is None


# --- looks ------------------------------------------------------------------------------------------------------------


def png(width: int, height: int, kind: str = "PNG") -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (width, height), "#aa3300").save(written, kind)
    return written.getvalue()


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("maria", Role.MANAGER, shop.merchant))


def upload(client: Client, shop: Shop, content: bytes) -> str:
    """What the page says to an uploaded logo."""
    path = f"{STYLE}{shop.channel.pk}/logo/"
    page = client.get(path).content.decode()
    found = re.search(r'action="([^"]*upload=[^"]*)"', page)
    assert found is not None
    client.post(found[1].replace("&amp;", "&"), {"file": SimpleUploadedFile("logo.png", content, "image/png")})
    return str(client.get(path).content.decode())


def test_a_merchants_colours_and_logo_are_on_the_page(boss: Client, shop: Shop) -> None:
    style = {"channel": str(shop.channel.pk), "accent": "#AA3300", "header": "#ffee00"}
    assert boss.post(f"{STYLE}add/", style).status_code == 302
    assert "The logo was replaced." in upload(boss, shop, png(2000, 1000))
    kept = bytes(PaymentPageStyle.objects.get().logo or b"")
    with Image.open(io.BytesIO(kept)) as logo:
        assert (logo.size, logo.format) == ((320, 160), "PNG")
    opened = Client().get(f"/pay/{create(shop.api).id}")
    page = Client().get(opened["Location"])
    text = page.content.decode()
    assert "--pay-accent:#AA3300;--pay-on-accent:#ffffff;--pay-header:#ffee00;--pay-on-header:#000000;" in text
    assert 'src="data:image/png;base64,' in text
    nonce = re.search(r'nonce="([^"]+)"', text)
    assert nonce is not None
    assert f"'nonce-{nonce[1]}'" in page["Content-Security-Policy"]
    assert "unsafe-inline" not in page["Content-Security-Policy"]
    assert [entry.after for entry in AuditEntry.objects.filter(subject="paymentpagestyle", action="change")] == [
        {"logo": True}
    ]


@pytest.mark.parametrize("colour", ["red", "#fff", "#12345g", "#123456;}", "url(x)"])
def test_a_colour_is_six_hex_digits(boss: Client, shop: Shop, colour: str) -> None:
    answer = boss.post(f"{STYLE}add/", {"channel": str(shop.channel.pk), "accent": colour, "header": ""})
    assert (answer.status_code, PaymentPageStyle.objects.exists()) == (200, False)


def test_words_on_any_colour_have_the_contrast_that_readers_need() -> None:
    """WCAG 2.2, 1.4.3: at least 4.5."""
    steps = range(0, 256, 17)
    colours = [f"#{red:02x}{green:02x}{blue:02x}" for red in steps for green in steps for blue in steps]
    assert min(measure_contrast(colour, choose_text_colour(colour)) for colour in colours) >= 4.5


@pytest.mark.parametrize(
    "content", [b"", b"no picture", b"<svg xmlns='http://www.w3.org/2000/svg'/>", png(40, 40)[:60], png(40, 40, "GIF")]
)
def test_what_is_no_picture_is_no_logo(boss: Client, shop: Shop, content: bytes) -> None:
    PaymentPageStyle.objects.create(channel=shop.channel)
    upload(boss, shop, content)
    assert PaymentPageStyle.objects.get().logo is None


def test_a_picture_is_measured_before_it_is_decoded(boss: Client, shop: Shop) -> None:
    """Decision 0050: a small file may hold a great many pixels."""
    PaymentPageStyle.objects.create(channel=shop.channel)
    bomb = png(6_000, 3_000)
    assert len(bomb) < MAX_LOGO_FILE_BYTES
    assert "too many pixels" in upload(boss, shop, bomb)
    assert PaymentPageStyle.objects.get().logo is None


def test_a_logo_is_removed_and_only_managers_set_one(boss: Client, shop: Shop, stranger: Shop) -> None:
    PaymentPageStyle.objects.create(channel=shop.channel, logo=png(10, 10))
    path = f"{STYLE}{shop.channel.pk}/logo/"
    assert signed_in(person("dev", Role.DEVELOPER, shop.merchant)).get(path).status_code == 403
    assert signed_in(person("other", Role.MANAGER, stranger.merchant)).post(path, {"remove": "yes"}).status_code == 404
    assert boss.post(path, {"remove": "yes"}).status_code == 302
    assert PaymentPageStyle.objects.get().logo is None

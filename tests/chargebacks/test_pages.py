"""The pages of disputes: what is left to do, evidence, one submission, the outcome, entries by hand."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chargebacks import ledger
from chargebacks.admin.disputes import count_urgent_disputes
from chargebacks.models import Chargeback, Contact
from chargebacks.processor_disputes import move_reported_case
from chargebacks.states import DisputeState
from gateway.backoffice.sign_in import time_zones
from gateway.core import clock
from gateway.models import AuditEntry, Payment
from tests.support.browser import send_file
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, payment_of
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
LIST = "/admin/chargebacks/chargeback/"
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


@pytest.fixture
def clara(shop: Shop) -> Client:
    return signed_in(person("clara", "clerk", shop.merchant))


@pytest.fixture
def max_(shop: Shop) -> Client:
    return signed_in(person("max", "manager", shop.merchant))


@pytest.fixture
def case(shop: Shop) -> Chargeback:
    paid = payment_of(shop.api.pay(merchant__country="DE").id)
    return ledger.record_chargeback(paid, Decimal("92.00"), reason="000.100.221", by=BY)


def text(answer: Any) -> str:
    found: str = answer.content.decode()
    return found


def do(client: Client, case: Chargeback, verb: str, **more: Any) -> str:
    if "file" in more:
        return text(send_file(client, f"{LIST}{case.pk}/change/", {"verb": verb, **more}, follow=True))
    return text(client.post(f"{LIST}{case.pk}/do/", {"verb": verb, **more}, follow=True))


def state(case: Chargeback) -> str:
    return Chargeback.objects.get(pk=case.pk).state


def test_a_dispute_tells_how_long_is_left_and_what_is_missing(clara: Client, case: Chargeback, shop: Shop) -> None:
    shop.merchant.clock_offset = case.due_at - case.opened_at - timedelta(hours=54)
    shop.merchant.save(update_fields=["clock_offset"])
    listed = text(clara.get(LIST))
    assert "2 days left" in listed
    assert "As a table" in listed
    page = text(clara.get(f"{LIST}{case.pk}/change/"))
    for told in (
        "✗ missing",
        "Proof of delivery",
        "PDF, PNG, JPEG, up to 5 MB each",
        "Address check (AVS)",
        "3-D Secure",
    ):
        assert told in page, told
    assert str(case.disputed) in page
    assert AuditEntry.objects.filter(action="view", subject="chargeback", actor="clara").count() == 1
    shop.merchant.clock_offset += timedelta(days=3)
    shop.merchant.save(update_fields=["clock_offset"])
    assert "too late" in text(clara.get(LIST))
    assert 'value="submit"' not in text(clara.get(f"{LIST}{case.pk}/change/"))


def test_a_deadline_is_told_in_the_merchants_zone_and_in_the_readers(
    clara: Client, case: Chargeback, shop: Shop
) -> None:
    """Found in use: readers in another time zone took the deadline for an hour later than it was."""
    cache.clear()
    own = f"{case.due_at:%Y-%m-%d} 17:00 (UTC)"
    addresses = ("/admin/", LIST, f"{LIST}{case.pk}/change/")
    for address in addresses:
        assert own in text(clara.get(address))
        assert f"{own} =" not in text(clara.get(address))
    time_zones.store_zone(User.objects.get(username="clara"), "Asia/Tokyo")
    day_after = case.due_at.astimezone(ZoneInfo("Asia/Tokyo"))
    for address in addresses:
        assert f"{own} = {day_after:%Y-%m-%d} 02:00 JST" in text(clara.get(address))


def dispute_of(shop: Shop, order: str, **more: str) -> Chargeback:
    payment = payment_of(shop.api.pay(merchantTransactionId=order, **more).id)
    return ledger.record_chargeback(payment, Decimal("92.00"), reason="000.100.221", by=BY)


def test_a_dispute_shows_the_order_number_of_its_payment_and_is_found_by_it(clara: Client, shop: Shop) -> None:
    wanted = dispute_of(shop, "order-4711", merchantInvoiceId="R-2030-17")
    other = dispute_of(shop, "sale-9000")
    page = text(clara.get(f"{LIST}{wanted.pk}/change/"))
    assert "order-4711" in page
    listed = text(clara.get(LIST))
    assert "order-4711" in listed
    assert "sale-9000" in listed
    for asked in ("order-4711", "order-47", "R-2030-17", wanted.pk.hex, str(wanted.disputed)):
        found = text(clara.get(LIST, {"q": asked}))
        assert str(wanted.pk) in found, asked
        assert str(other.pk) not in found, asked
    # Below four characters the whole number is meant.
    assert "No dispute found" in text(clara.get(LIST, {"q": "ord"}))
    # A case that is over is found too.
    do(clara, wanted, "accept", sure="yes")
    assert str(wanted.pk) in text(clara.get(LIST, {"q": "order-4711"}))
    assert "No dispute found" in text(clara.get(LIST, {"q": "order-4711", "list": "open"}))


def test_the_order_number_of_a_disputed_capture_is_that_of_its_authorization(clara: Client, shop: Shop) -> None:
    first = shop.api.pay(paymentType="PA", merchantTransactionId="order-4712")
    capture = shop.api.follow(first.id, "CP", "92.00")
    case = ledger.record_chargeback(payment_of(capture.id), Decimal("92.00"), reason="000.100.221", by=BY)
    assert "order-4712" in text(clara.get(LIST))
    assert "order-4712" in text(clara.get(f"{LIST}{case.pk}/change/"))
    assert str(case.pk) in text(clara.get(LIST, {"q": "order-4712"}))


def test_the_header_search_finds_a_dispute_by_the_order_number_for_those_who_may_see_it(
    clara: Client, shop: Shop, stranger: Shop
) -> None:
    case = dispute_of(shop, "order-4711")
    found = clara.get("/admin/search/", {"s": "order-4711", "extended": "1"})
    assert str(case.pk) in text(found)
    otto = signed_in(person("otto", "clerk", stranger.merchant))
    for answer in (
        otto.get(LIST, {"q": "order-4711"}),
        otto.get("/admin/search/", {"s": "order-4711", "extended": "1"}),
    ):
        assert str(case.pk) not in text(answer)


def test_a_card_number_is_not_looked_for_among_disputes(clara: Client, case: Chargeback) -> None:
    refused = clara.get(LIST, {"q": "4200000000000000"}, follow=True)
    assert "whole card number" in text(refused)
    assert "4200000000000000" not in text(refused)


def test_a_long_list_of_disputes_asks_for_the_order_numbers_at_once(clara: Client, shop: Shop) -> None:
    def count_statements() -> int:
        clara.get(LIST)  # caches
        with CaptureQueriesContext(connection) as sent:
            assert clara.get(LIST).status_code == 200
        return len(sent)

    dispute_of(shop, "order-number-1")
    one = count_statements()
    for number in range(2, 6):
        dispute_of(shop, f"order-number-{number}")
    assert count_statements() == one


def test_evidence_is_added_submitted_once_and_decided(clara: Client, case: Chargeback) -> None:
    assert "Add at least one file first." in text(clara.get(f"{LIST}{case.pk}/change/"))
    refused = do(clara, case, "add", item="delivery", file=SimpleUploadedFile("a.pdf", b"<script>"))
    assert "a.pdf is no PDF, PNG or JPEG by its content" in refused
    page = do(clara, case, "add", item="delivery", file=SimpleUploadedFile("a.pdf", PDF))
    assert "✓ there" in page
    file = case.evidence.get()
    address = f"{LIST}{case.pk}/evidence/{file.pk}/"
    fetched = clara.get(address)
    assert b"".join(fetched.streaming_content) == PDF  # type: ignore[attr-defined]
    assert fetched["Content-Disposition"].startswith("attachment")
    assert "say that you are sure" in do(clara, case, "submit")
    assert "there is no evidence" not in do(clara, case, "win")
    assert state(case) == DisputeState.OPEN
    do(clara, case, "submit", sure="yes")
    assert state(case) == DisputeState.SUBMITTED
    again = do(clara, case, "submit", sure="yes")
    assert "is not possible" in again
    do(clara, case, "remove", evidence=file.pk.hex)
    do(clara, case, "add", item="order", file=SimpleUploadedFile("b.pdf", PDF + b"\n"))
    assert case.evidence.count() == 1
    with override_settings(IS_LIVE=True):
        assert "For the merchant" not in text(clara.get(f"{LIST}{case.pk}/change/"))
    assert "For the merchant" in text(clara.get(f"{LIST}{case.pk}/change/"))
    do(clara, case, "win")
    assert state(case) == DisputeState.WON
    assert Payment.objects.filter(payment_type="CR", referenced=case.pk).count() == 1
    for verb in ("win", "lose", "accept", "nonsense", ""):
        do(clara, case, verb, sure="yes")
    assert state(case) == DisputeState.WON


@pytest.mark.parametrize("verb", ["accept", "submit", "escalate", "decided_won", "decided_lost"])
def test_who_decides_whose_the_money_is_says_who_they_are(case: Chargeback, shop: Shop, verb: str) -> None:
    stale = signed_in(person("moe", "clerk", shop.merchant), fresh=False)
    asked = stale.post(f"{LIST}{case.pk}/do/", {"verb": verb, "sure": "yes"})
    assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert state(case) == DisputeState.OPEN


def test_who_enters_a_chargeback_by_hand_says_who_they_are(shop: Shop) -> None:
    stale = signed_in(person("mia", "manager", shop.merchant), fresh=False)
    page = f"{LIST}by-hand/{payment_of(shop.api.pay().id).pk}/"
    for asked in (stale.get(page), stale.post(page, {"seen": "0", "amount": "40.00", "reason": "000.100.221"})):
        assert asked["Location"].startswith(reverse("account_reauthenticate"))
    assert not Chargeback.objects.exists()


def test_nobody_else_sees_or_moves_it(case: Chargeback, shop: Shop, stranger: Shop) -> None:
    otto = signed_in(person("otto", "manager", stranger.merchant))
    for path in ("change/", "do/", f"evidence/{case.pk}/"):
        assert otto.get(f"{LIST}{case.pk}/{path}").status_code == 404, path
    assert otto.post(f"{LIST}{case.pk}/do/", {"verb": "accept", "sure": "yes"}).status_code == 404
    assert otto.get(f"{LIST}by-hand/{case.disputed}/").status_code == 404
    assert otto.post(f"{LIST}contacts/{shop.merchant.pk}/", {"email": "o@o.example"}).status_code == 404
    ada = signed_in(person("ada", "auditor", shop.merchant))
    assert ada.get(f"{LIST}{case.pk}/change/").status_code == 200
    assert ada.post(f"{LIST}{case.pk}/do/", {"verb": "accept", "sure": "yes"}).status_code == 403
    assert state(case) == DisputeState.OPEN


def test_a_chargeback_is_entered_by_hand_from_its_payment(max_: Client, clara: Client, shop: Shop) -> None:
    """A30.10."""
    payment = payment_of(shop.api.pay().id)
    page, own = f"{LIST}by-hand/{payment.pk}/", f"/admin/gateway/payment/{payment.pk}/change/"
    assert page in text(max_.get(own))
    assert page not in text(clara.get(own))
    assert clara.get(page).status_code == 403
    day = f"{clock.real_now() + timedelta(days=30):%Y-%m-%d}"
    form = {"seen": "0", "amount": "40,00", "reason": "000.100.221", "respond_by": day, "reference": "A-1"}
    wrong = (
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "1e3"},
        {"amount": "٣"},
        {"amount": "12.345"},
        {"amount": "93.00"},
        {"reason": "000.100.110"},
        {"respond_by": "soon"},
        {"seen": "1"},
        {"amount": ""},
    )
    for change in wrong:
        assert max_.post(page, {**form, **change}).status_code == 400, change
    assert not Chargeback.objects.exists()
    assert max_.post(page, form).status_code == 302
    # The same form once more, by the back button: it was entered, and nothing is entered twice.
    assert max_.post(page, form).status_code == 400
    case = Chargeback.objects.get()
    assert (case.amount, case.reference, f"{case.due_at:%Y-%m-%d}") == (Decimal("40.00"), "A-1", day)
    assert AuditEntry.objects.filter(action="chargeback", actor="max").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_who_send_the_same_form_at_once_one_enters_it(committed: Shop) -> None:
    """Partly: the ceiling alone would let both pass."""
    payment = payment_of(committed.api.pay().id)
    page = f"{LIST}by-hand/{payment.pk}/"
    clients = [signed_in(person(f"max {number}", "manager", committed.merchant)) for number in range(4)]
    form = {"seen": "0", "amount": "10.00", "reason": "000.100.221", "respond_by": "", "reference": ""}
    answers = at_once(*(partial(client.post, page, form) for client in clients))
    assert sorted(answer.status_code for answer in answers) == [302, 400, 400, 400]
    assert [case.amount for case in Chargeback.objects.all()] == [Decimal("10.00")]
    # Whoever looks again may enter another one.
    seen = re.findall(r'name="seen" value="([0-9]+)"', text(clients[0].get(page)))[0]
    assert clients[0].post(page, {**form, "seen": seen}).status_code == 302
    assert Chargeback.objects.count() == 2


def test_contacts_are_added_and_removed(max_: Client, clara: Client, shop: Shop) -> None:
    address = f"{LIST}contacts/{shop.merchant.pk}/"
    assert clara.post(address, {"verb": "add", "email": "a@shop.example"}).status_code == 404
    max_.post(address, {"verb": "add", "email": "nonsense"})
    for _ in range(2):
        max_.post(address, {"verb": "add", "email": "A@shop.example"})
    assert [row.email for row in Contact.objects.all()] == ["a@shop.example"]
    assert "a@shop.example" in text(clara.get(f"{LIST}contacts/"))
    max_.post(address, {"verb": "remove", "email": "a@shop.example"})
    assert not Contact.objects.exists()
    actions = AuditEntry.objects.filter(subject="contact", actor="max").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["create", "delete"]


def test_disputes_that_nobody_is_reminded_of_are_named_until_somebody_is(
    max_: Client, clara: Client, shop: Shop
) -> None:
    """A deadline must not pass because no address was registered."""
    warning = "nobody is reminded"
    assert warning not in text(max_.get(LIST))
    case = ledger.record_chargeback(payment_of(shop.api.pay().id), Decimal("92.00"), by=BY)
    assert warning in text(max_.get(LIST))
    assert "no mail will be sent" in text(max_.get(f"{LIST}{case.pk}/change/"))
    assert warning not in text(clara.get(LIST)), "who cannot add an address is not asked to"
    page = f"{LIST}contacts/"
    max_.post(page, {"verb": "add", "merchant": "Nobody Ltd", "email": "a@shop.example"})
    assert not Contact.objects.exists()
    max_.post(page, {"verb": "add", "merchant": shop.merchant.entity_id, "email": "a@shop.example"})
    max_.post(page, {"verb": "add", "merchant": shop.merchant.name, "email": "b@shop.example"})
    assert sorted(row.email for row in Contact.objects.all()) == ["a@shop.example", "b@shop.example"]
    assert warning not in text(max_.get(LIST))
    assert "no mail will be sent" not in text(max_.get(f"{LIST}{case.pk}/change/"))


@pytest.mark.parametrize(
    "change", [{"respond_by": "2020-01-01"}, {"respond_by": "0001-01-01"}, {"amount": "999999999999"}]
)
def test_what_no_chargeback_can_be_by_hand_is_told_and_nothing_is_entered(
    max_: Client, shop: Shop, change: dict[str, str]
) -> None:
    payment = payment_of(shop.api.pay().id)
    page = f"{LIST}by-hand/{payment.pk}/"
    form = {"seen": _seen(max_, page), "amount": "40.00", "reason": "000.100.221", "reference": "A-1"}
    assert max_.post(page, {**form, **change}).status_code == 400
    assert not Chargeback.objects.exists()


def test_a_reference_by_hand_keeps_no_card_number(max_: Client, shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    page = f"{LIST}by-hand/{payment.pk}/"
    form = {"seen": _seen(max_, page), "amount": "40.00", "reason": "000.100.221", "reference": "4200000000000000"}
    assert max_.post(page, {**form, "reference": "4200000000000000\x00"}).status_code == 400
    assert max_.post(page, form).status_code == 302
    assert "4200000000000000" not in Chargeback.objects.get().reference
    assert "4200000000000000" not in str(shop.api.read(Chargeback.objects.get().id.hex).body)
    assert max_.get(LIST, {"reason": "\x00"}, follow=True).status_code == 200


def _seen(client: Client, page: str) -> str:
    found = re.search(r'name="seen" value="(\d+)"', text(client.get(page)))
    assert found is not None
    return found[1]


def test_a_red_badge_tells_of_disputes_that_must_be_answered_soon(
    clara: Client, case: Chargeback, shop: Shop, stranger: Shop
) -> None:
    others = payment_of(stranger.api.pay(merchant__country="DE").id)
    ledger.record_chargeback(others, Decimal("92.00"), by=BY)
    user = User.objects.get(username="clara")
    assert count_urgent_disputes(user) == 0
    badge = r"gavel.{0,900}?Disputes.{0,900}?>\s*1\s*<"
    assert re.search(badge, text(clara.get("/admin/")), re.S) is None
    for moved in (shop.merchant, stranger.merchant):
        moved.clock_offset += timedelta(days=10)
        moved.save(update_fields=["clock_offset"])
    assert count_urgent_disputes(user) == 1
    assert re.search(badge, text(clara.get("/admin/")), re.S)
    assert "2 days left" in text(clara.get(LIST))
    assert count_urgent_disputes(person("root", "psp", shop.merchant.division.psp)) == 2


def test_the_first_page_says_until_when_the_first_dispute_has_to_be_answered(
    clara: Client, case: Chargeback, shop: Shop
) -> None:
    """In the merchant's own time, and counted in days as the dispute's page counts them."""
    shop.merchant.time_zone = "Asia/Tokyo"
    shop.merchant.save(update_fields=["time_zone"])
    Chargeback.objects.update(due_at=datetime(2031, 5, 14, 8, tzinfo=UTC))
    # 03:00 in Tokyo, fourteen days before the deadline's day: fourteen days, and some hours.
    shop.merchant.clock_offset = datetime(2031, 4, 29, 18, tzinfo=UTC) - clock.real_now()
    shop.merchant.save(update_fields=["clock_offset"])
    cache.clear()
    page = text(clara.get("/admin/"))
    assert "1 dispute, answer by 2031-05-14 17:00 (Asia/Tokyo)" in page
    assert "92.00 EUR, 14 days left" in page
    assert f"{LIST}{case.pk}/change/" in page
    row = r'<th scope="row">(?:<a[^>]*>)?8–14 days(?:</a>)?</th><td class="th-num">1</td>'
    assert re.search(row, page)
    sooner = ledger.record_chargeback(payment_of(shop.api.pay().id), Decimal("10.00"), by=BY)
    Chargeback.objects.filter(pk=sooner.pk).update(due_at=datetime(2031, 5, 13, 8, tzinfo=UTC))
    cache.clear()
    assert "2 disputes, the first to answer by 2031-05-13 17:00 (Asia/Tokyo)" in text(clara.get("/admin/"))


def test_a_dispute_in_german_tells_reason_events_reminders_and_refusals_in_german(
    clara: Client, case: Chargeback, shop: Shop
) -> None:
    """What a clerk reads is in the clerk's language, and a bank's letters come with their words."""
    Contact.objects.create(merchant=shop.merchant, email="disputes@shop.example")
    clara.cookies["django_language"] = "de"
    pass_time(shop.api, days=6)
    moved = ledger.record_chargeback(payment_of(shop.api.pay().id), Decimal("92.00"), by=BY)
    assert move_reported_case(moved.pk, lost=True)
    page = text(clara.get(f"{LIST}{moved.pk}/change/"))
    assert page.count("Der Prozessor sagt, dass der Streitfall verloren ist.") == 2
    assert ("· der Prozessor" in page, "The processor" in page) == (True, False)
    page = text(clara.get(f"{LIST}{case.pk}/change/"))
    for told in (
        "Ware kam nie an",
        "Die Rückbuchung kam",
        "Erinnerung, 7 Tage vorher",
        "UTC, disputes@shop.example",
        "Erinnerung, 3 Tage vorher",
        "fällig",
        "M: stimmt",
    ):
        assert told in page, told
    assert "open →" not in page
    assert "Ware kam nie an" in text(clara.get(LIST))
    refused = do(clara, case, "add", item="delivery", file=SimpleUploadedFile("a.pdf", b"<script>"))
    assert "a.pdf ist dem Inhalt nach weder PDF noch PNG noch JPEG" in refused
    assert "Wählen Sie, was die Datei zeigt." in do(clara, case, "add", item="", file=SimpleUploadedFile("a.pdf", PDF))
    do(clara, case, "add", item="order", file=SimpleUploadedFile("a.pdf", PDF))
    assert 'value="delivery" selected' in text(clara.get(f"{LIST}{case.pk}/change/"))
    do(clara, case, "submit", sure="yes")
    assert "Das ist nicht möglich: Belege wurden eingereicht." in do(clara, case, "accept", sure="yes")

"""Evidence that the gateway has itself is shown on the dispute, counts by its reason, and can be submitted as a
file."""

from __future__ import annotations

import io
from datetime import timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pypdf import PdfReader

from chargebacks import evidence, ledger, packet_pdf
from chargebacks.dispute_strength import (
    FILE_PREFIX,
    KIND_TEXTS,
    PROOFS,
    STRENGTH_TABLE,
    gather_counted,
    measure_strength,
)
from chargebacks.evidence_checklist import CHECKLIST_ITEMS, find_reason_kind, list_wanted_items
from chargebacks.gathered_evidence import gather_evidence
from chargebacks.models import Chargeback
from chargebacks.payment_details import describe_disputed_payment
from checkout import receipts
from checkout.models import Checkout
from gateway.access.permissions import FULL_ACCESS
from gateway.models import Authentication, Payment
from reporting.approvals.figures import ApprovalPeriod, compute_figures
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, payment_of
from tests.support.shopper import open_checkout

pytestmark = pytest.mark.django_db
LIST = "/admin/chargebacks/chargeback/"
PARCEL = {"shipping.trackingNumber": "TRACK-77", "shipping.logisticsProvider": "Example Parcel"}
HOME = {"street1": "Main Street 1", "postcode": "1000", "city": "Vienna", "country": "AT"}


def dispute(payment: Payment, reason: str) -> Chargeback:
    return ledger.record_chargeback(payment, payment.amount, reason=reason, by=BY)


def strength_of(case: Chargeback) -> tuple[int, str]:
    items = {item.key for item in evidence.list_case_items(case)}
    found = measure_strength(case, possible_items=items, findings=gather_counted(case))
    return found.points, found.level


def test_every_reason_has_rows_and_every_row_a_text_and_a_source() -> None:
    assert set(STRENGTH_TABLE) == set(KIND_TEXTS)
    assert {find_reason_kind(f"000.100.2{number:02d}") for number in range(100)} == set(STRENGTH_TABLE)
    for kind, rows in STRENGTH_TABLE.items():
        assert len({row.proof for row in rows}) == len(rows), kind
        for row in rows:
            known = CHECKLIST_ITEMS if row.is_file else PROOFS
            assert row.proof.removeprefix(FILE_PREFIX) in known, row
            assert row.text
            assert row.source.startswith("https://"), row
    assert all(item in CHECKLIST_ITEMS for item, _text in PROOFS.values())


def test_every_item_of_a_checklist_counts_for_its_reason() -> None:
    """Nothing is asked for that would not make the answer stronger."""
    for number in range(100):
        code = f"000.100.2{number:02d}"
        rows = STRENGTH_TABLE[find_reason_kind(code)]
        counted = {row.proof.removeprefix(FILE_PREFIX) for row in rows if row.is_file}
        assert {item.key for item in list_wanted_items(code)} <= counted, code


def test_a_delivery_with_tracking_is_found_and_a_file_of_it_decides(shop: Shop) -> None:
    same = {f"{group}.{name}": value for group in ("billing", "shipping") for name, value in HOME.items()}
    paid = payment_of(shop.api.pay(merchantTransactionId="order-4711", **PARCEL, **same).id)
    case = dispute(paid, "000.100.221")
    assert {one.proof: one.value for one in gather_counted(case)} == {
        "order": "order-4711",
        "tracking": "Example Parcel TRACK-77",
        "same_address": "they are the same: Main Street 1, 1000, Vienna, AT",
    }
    assert strength_of(case) == (8, "fair")
    evidence.add_evidence(case, "delivery", "proof.pdf", io.BytesIO(b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"), BY)
    assert strength_of(case) == (10, "strong")


def read_packet(case: Chargeback) -> str:
    pages = PdfReader(io.BytesIO(packet_pdf.build_packet(case))).pages
    return "\n".join(page.extract_text() for page in pages)


def test_the_receipt_of_the_payment_page_is_evidence(shop: Shop) -> None:
    cart = {"cart.items[0].name": "Tea", "cart.items[0].quantity": "2", "cart.items[0].price": "46.00"}
    browser = open_checkout(shop.api, paymentPage="true", merchantTransactionId="order-4711", **cart)
    assert browser.pay().status == 200
    row = Checkout.objects.select_related("payment").get()
    assert row.payment is not None
    case = dispute(row.payment, "000.100.221")
    assert {one.proof: one.value for one in gather_counted(case)}["receipt"] == "there for 24 hours after the payment"
    for _number in range(2):
        assert receipts.request_receipt_mail(row, "jane@mail.example", "de")
    # Mails that were not sent are no evidence.
    assert {one.proof: one.value for one in gather_counted(case)}["receipt"] == "there for 24 hours after the payment"
    assert receipts.send_due_receipt_mails() == 2
    found = {one.proof: one.value for one in gather_counted(case)}
    assert found["receipt"] == "there for 24 hours after the payment, 2 mails, as the shopper asked"
    packet = read_packet(case)
    for words in (
        "Receipts",
        "order-4711",
        "2 × Tea",
        "mails that the shopper asked for: 2",
        "The receipt of the payment page",
    ):
        assert words in " ".join(packet.split()), words
    page = signed_in(person("clara", "clerk", shop.merchant)).get(f"{LIST}{case.pk}/change/").content.decode()
    assert "2 mails, as the shopper asked" in page
    assert "2 × Tea" in page


def test_a_checkout_without_the_payment_page_had_no_receipt(shop: Shop) -> None:
    assert open_checkout(shop.api, merchantTransactionId="order-4711").pay().status == 200
    payment = Payment.objects.get()
    case = dispute(payment, "000.100.221")
    assert [one.proof for one in gather_counted(case)] == ["order"]
    assert "Receipts" not in read_packet(case)


def test_money_that_came_in_is_told_in_the_packet(shop: Shop) -> None:
    first = shop.api.pay()
    received = shop.api.follow(first.id, "RC", "92.00")
    assert received.body["result"]["code"].startswith("000.100.1"), received
    packet = read_packet(dispute(payment_of(first.id), "000.100.221"))
    assert "Money received" in packet
    assert payment_of(received.id).pk.hex in packet.replace("\n", "")


def test_what_counts_for_one_reason_does_not_for_another(shop: Shop) -> None:
    paid = payment_of(shop.api.pay(merchantTransactionId="order-4711", **PARCEL).id)
    assert strength_of(dispute(paid, "000.100.224")) == (6, "fair")
    other = payment_of(shop.api.pay(**PARCEL).id)
    assert strength_of(dispute(other, "000.100.223")) == (0, "weak")


def test_an_authenticated_payment_is_strong_against_fraud(shop: Shop) -> None:
    paid = payment_of(shop.api.pay().id)
    Authentication.objects.create(
        payment=paid.pk,
        merchant=paid.merchant,
        channel=paid.channel,
        brand="VISA",
        network="VISA",
        version="2.2.0",
        amount=paid.amount,
        currency="EUR",
        trans_status="Y",
        eci="05",
        flow="challenge",
        ds_transaction="ds-1",
        request_id=paid.request_id,
        created_at=paid.created_at,
    )
    case = dispute(paid, "000.100.220")
    found = {one.proof: one.value for one in gather_counted(case)}
    assert found["authenticated"] == "3-D Secure 2.2.0, transStatus Y, challenge, ECI 05, ds-1"
    assert strength_of(case)[1] == "strong"


def test_of_two_authentications_the_newest_is_the_one_that_is_told(shop: Shop) -> None:
    """A soft decline led to a challenge: every part of the packet tells of that one. Ids are not in their order."""
    paid = payment_of(shop.api.pay().id)
    ids = sorted((uuid4(), uuid4()), reverse=True)
    tried = (("N", "07", "frictionless"), ("Y", "05", "challenge"))
    for attempt, (ident, (status, eci, flow)) in enumerate(zip(ids, tried, strict=True), start=1):
        Authentication.objects.create(
            id=ident,
            payment=paid.pk,
            attempt=attempt,
            merchant=paid.merchant,
            channel=paid.channel,
            brand="VISA",
            network="VISA",
            version="2.2.0",
            amount=paid.amount,
            currency="EUR",
            trans_status=status,
            eci=eci,
            flow=flow,
            ds_transaction=f"ds-{attempt}",
            request_id=paid.request_id,
            created_at=paid.created_at,
        )
    found = {one.proof: one.value for one in gather_counted(dispute(paid, "000.100.220"))}
    assert found["authenticated"] == "3-D Secure 2.2.0, transStatus Y, challenge, ECI 05, ds-2"
    facts = dict(describe_disputed_payment(paid))
    assert (facts["Result"], facts["Flow"], facts["ECI"]) == ("Y", "challenge", "05")
    (path,) = compute_figures(
        ApprovalPeriod(scope=FULL_ACCESS, since=paid.created_at, until=paid.created_at + timedelta(days=1)),
        "threeDSecure",
    )
    assert (path.name, path.attempts) == ("challenge", 1), "no payment counts twice"


def test_a_wrong_code_speaks_for_the_shopper_and_does_not_count(shop: Shop) -> None:
    paid = payment_of(shop.api.pay().id)
    Payment.objects.filter(pk=paid.pk).update(answer={**paid.answer, "cvv": "N", "avs": "Z"})
    case = dispute(paid, "000.100.220")
    found = {one.proof: one.supports for one in gather_evidence(case)}
    assert (found["cvv"], found["avs_part"]) == (False, True)
    items = {item.key for item in evidence.list_case_items(case)}
    strength = measure_strength(case, possible_items=items, findings=gather_counted(case))
    assert [one.proof for one in strength.against] == ["cvv"]
    assert "cvv" not in [row.proof for row, _value in strength.there]


def test_earlier_undisputed_payments_of_the_card_are_counted(shop: Shop) -> None:
    first = payment_of(shop.api.pay().id)
    shop.api.pay()
    shop.api.pay(card__number="4111111111111111")
    case = dispute(payment_of(shop.api.pay().id), "000.100.220")
    assert {one.proof: one.value for one in gather_counted(case)}["earlier"].startswith("2, ")
    dispute(first, "000.100.220")
    assert {one.proof: one.value for one in gather_counted(case)}["earlier"].startswith("1, ")


@pytest.mark.parametrize(
    ("other", "supports"),
    [({"merchantTransactionId": "order-0002"}, True), ({"merchantTransactionId": "order-0001"}, False), ({}, False)],
)
def test_a_duplicate_is_told_apart_by_its_order_number(shop: Shop, other: dict[str, str], supports: bool) -> None:
    shop.api.pay(**other)
    case = dispute(payment_of(shop.api.pay(merchantTransactionId="order-0001").id), "000.100.224")
    found = {one.proof: one.supports for one in gather_counted(case)}
    assert found["separate"] is supports


def test_a_disputed_payment_of_the_same_amount_is_not_left_out(shop: Shop) -> None:
    """Where both of two equal payments are disputed, the packet does not say that there was only one payment."""
    cases = [dispute(payment_of(shop.api.pay().id), "000.100.224") for _number in range(2)]
    for case in cases:
        found = {one.proof: (one.supports, one.value) for one in gather_counted(case)}
        assert found["separate"] == (
            False,
            "1 other payment has the amount, and its order number does not tell them apart",
        )
        assert strength_of(case) == (0, "weak")


def test_many_payments_of_the_same_amount_are_not_counted_to_an_end(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chargebacks.gathered_evidence.MAX_SAME_AMOUNT_READ", 2)
    for number in range(3):
        shop.api.pay(merchantTransactionId=f"order-000{number}")
    case = dispute(payment_of(shop.api.pay(merchantTransactionId="order-0009").id), "000.100.224")
    found = {one.proof: one.value for one in gather_counted(case)}
    assert found["separate"].startswith("2 or more other payments have the amount, each with an order number")


def test_a_refund_before_the_chargeback_decides_every_reason(shop: Shop) -> None:
    for reason in ("000.100.220", "000.100.221", "000.100.203", "000.100.299"):
        case = dispute(payment_of(shop.api.pay().id), reason)
        Chargeback.objects.filter(pk=case.pk).update(refunded_before=case.amount)
        assert strength_of(Chargeback.objects.get(pk=case.pk)) == (10, "strong"), reason
        Chargeback.objects.filter(pk=case.pk).update(refunded_before=Decimal("1.00"))
        assert strength_of(Chargeback.objects.get(pk=case.pk))[0] < 10, reason


def test_a_clerk_sees_the_strength_beside_the_packet_and_adds_what_was_recorded(shop: Shop) -> None:
    clara = signed_in(person("clara", "clerk", shop.merchant))
    case = dispute(payment_of(shop.api.pay(merchantTransactionId="order-4711", **PARCEL).id), "000.100.221")
    page = clara.get(f"{LIST}{case.pk}/change/").content.decode()
    for words in (
        "How strong the answer is",
        "6 of 10 points",
        "The packet, as the bank reads it",
        "TRACK-77",
        "✓ on record",
    ):
        assert words in page, words
    table = clara.get(f"{LIST}strength/").content.decode()
    assert "docs.stripe.com" in table
    said = clara.post(f"{LIST}{case.pk}/do/", {"verb": "keep_recorded"}, follow=True).content.decode()
    assert "What the gateway recorded was added as a file." in said
    kept = case.evidence.get()
    assert kept.item == "recorded"
    text = PdfReader(io.BytesIO(b"".join(evidence.stream_evidence(kept)))).pages[0].extract_text()
    assert "TRACK-77" in text
    assert "What the payment gateway recorded" in text


def test_nothing_recorded_is_not_added_and_a_stranger_adds_nothing(shop: Shop, stranger: Shop) -> None:
    case = dispute(payment_of(shop.api.pay().id), "000.100.223")
    clara = signed_in(person("clara", "clerk", shop.merchant))
    said = clara.post(f"{LIST}{case.pk}/do/", {"verb": "keep_recorded"}, follow=True).content.decode()
    assert "The gateway has recorded nothing that counts for this reason." in said
    other = signed_in(person("otto", "clerk", stranger.merchant))
    assert other.post(f"{LIST}{case.pk}/do/", {"verb": "keep_recorded"}).status_code in (403, 404)
    assert not case.evidence.exists()


def test_what_only_helps_is_weak_however_much_there_is(shop: Shop) -> None:
    shopper = {"customer.email": "a@shop.example", "customer.ip": "203.0.113.7", "customer.givenName": "A",
               "customer.surname": "B"}  # fmt: skip
    case = dispute(payment_of(shop.api.pay(merchantTransactionId="order-4711", **PARCEL, **shopper).id), "000.100.220")
    assert len(gather_counted(case)) > 3
    assert strength_of(case) == (4, "weak")


@pytest.mark.parametrize(("language", "times"), [("en", 1), ("de", 2)])
def test_the_page_gathers_evidence_once_and_once_more_for_a_packet_in_another_language(
    shop: Shop, language: str, times: int
) -> None:
    case = dispute(payment_of(shop.api.pay(**PARCEL).id), "000.100.221")
    browser = signed_in(person("nora", "clerk", shop.merchant))
    with CaptureQueriesContext(connection) as sent:
        browser.get(f"{LIST}{case.pk}/change/", HTTP_ACCEPT_LANGUAGE=language)
    statements = [one["sql"] for one in sent.captured_queries]
    assert sum('FROM "gateway_mandatemail"' in sql for sql in statements) == times

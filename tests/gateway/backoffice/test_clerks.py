"""The clerk's pages over HTTP: one's own rows alone, forms that send once, four eyes, exports, registrations."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings

from gateway.background import queue
from gateway.backoffice.follow_ups import approval_pages
from gateway.core import clock
from gateway.models import Approval, AuditEntry, BackgroundWork, Grant, Payment, Registration, RequestLog
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST = "/admin/gateway/payment/"
PAN = "4200000000000000"


@pytest.fixture
def clara(shop: Shop) -> Client:
    """A clerk who moves up to 50 by herself."""
    return signed_in(person("clara", "clerk", shop.merchant, four_eyes_above="50.00"))


@pytest.fixture
def max_(shop: Shop) -> Client:
    return signed_in(person("max", "manager", shop.merchant))


@pytest.fixture
def outsider(stranger: Shop) -> Client:
    return signed_in(person("otto", "manager", stranger.merchant))


def page_of(ident: str) -> str:
    return f"{LIST}{Payment.objects.get(pk=ident).pk}/change/"


def form_of(ident: str, code: str) -> str:
    return f"{LIST}{Payment.objects.get(pk=ident).pk}/do/{code}/"


def key_in(answer: Any) -> str:
    found = re.search(r'name="key" value="([^"]+)"', answer.content.decode())
    assert found
    return found[1]


def refunds() -> int:
    return Payment.objects.filter(payment_type="RF").count()


def test_a_whole_card_number_leaves_no_trace_in_address_or_page(clara: Client, shop: Shop) -> None:
    """Brief: full PAN is never accepted: explain."""
    answer = clara.get(LIST, {"q": PAN}, follow=True)
    assert answer.redirect_chain == [(LIST, 302)]
    assert PAN not in answer.content.decode()
    assert "last four" in answer.content.decode()


def test_a_search_that_names_one_payment_opens_it_and_a_foreign_one_looks_unknown(
    clara: Client, outsider: Client, shop: Shop
) -> None:
    """Issue: nobody sees another merchant's rows, by list, search or address."""
    paid = shop.api.pay(
        merchantTransactionId="order-4711",
        customer__email="j@shop.example",
        customer__givenName="J",
        customer__surname="J",
    )
    assert clara.get(LIST, {"q": paid.id})["Location"] == page_of(paid.id)
    for term in ("order-4711", "j@shop.example", "0000", "92.00", ""):
        assert page_of(paid.id) in clara.get(LIST, {"q": term}).content.decode(), term
        assert page_of(paid.id) not in outsider.get(LIST, {"q": term}).content.decode(), term
    unknown = f"{LIST}{'0' * 32}/change/"
    for address in (page_of(paid.id), form_of(paid.id, "RF"), unknown):
        assert outsider.get(address).status_code == 404, address
    assert outsider.get(LIST, {"q": paid.id}).status_code == 200


def test_a_payments_page_tells_why_and_shows_no_card(clara: Client, shop: Shop) -> None:
    """R8."""
    declined = shop.api.pay(card__number="4000015500000005", card__cvv="731")
    text = clara.get(page_of(declined.id)).content.decode()
    for told in ("the shopper&#x27;s bank", "No money moved.", "800.100.155", "$TOKEN", declined.id, "Messages, "):
        assert told in text, told
    assert "4000015500000005" not in text
    assert "731" not in re.findall(r'"(\d{3})"', text)


def test_a_refund_shows_what_is_possible_sends_once_and_no_more_than_that(clara: Client, shop: Shop) -> None:
    paid = shop.api.pay(amount="40.00")
    form = form_of(paid.id, "RF")
    opened = clara.get(form)
    assert "At most 40.00 EUR" in opened.content.decode()
    key = key_in(opened)
    over = clara.post(form, {"key": key, "amount": "40.01"})
    assert over.status_code == 400
    assert "At most 40.00 EUR can still be moved" in over.content.decode()
    assert refunds() == 0
    for _ in range(3):
        assert clara.post(form, {"key": key, "amount": "15,00"})["Location"] == page_of(paid.id)
    assert refunds() == 1
    again = clara.get(page_of(paid.id)).content.decode()
    assert "Nothing was sent twice" in again
    assert "Refund 15.00 EUR was accepted." in again
    assert clara.post(form, {"key": "forged", "amount": "1.00"}).status_code == 400
    assert clara.post(form, {"amount": "1.00"}).status_code == 400
    assert refunds() == 1


def test_over_the_limit_somebody_else_has_to_approve(clara: Client, max_: Client, outsider: Client, shop: Shop) -> None:
    paid = shop.api.pay()
    form = form_of(paid.id, "RF")
    key = key_in(clara.get(form))
    for _ in range(2):
        assert clara.post(form, {"key": key, "amount": "92.00", "note": "sent back"}).status_code == 302
    row = Approval.objects.get()
    assert refunds() == 0
    change, decide = f"/admin/gateway/approval/{row.pk}/change/", f"/admin/gateway/approval/{row.pk}/decide/"
    assert clara.post(decide, {"verb": "approve"}).status_code == 403
    assert outsider.post(decide, {"verb": "approve"}).status_code == 404
    assert outsider.get(change).status_code == 404
    assert change in max_.get("/admin/gateway/approval/").content.decode()
    assert "1 request waits for your decision" in max_.get(LIST).content.decode()
    assert "Approve and send" not in clara.get(change).content.decode()
    assert "Approve and send" in max_.get(change).content.decode()
    for _ in range(2):
        max_.post(decide, {"verb": "approve", "note": "fine"})
    assert refunds() == 1
    row.refresh_from_db()
    assert row.state == Approval.State.DONE
    told = clara.get(LIST).content.decode()
    assert "carried out" in told
    actions = AuditEntry.objects.filter(subject="approval").order_by("id").values_list("action", "actor")
    assert list(actions) == [("approval asked", "clara"), ("approval given", "max"), ("approval carried out", "max")]


def test_the_pages_tell_which_limit_was_met(max_: Client, shop: Shop) -> None:
    """The clerk before sending, the manager before deciding."""
    carla = signed_in(person("carla", "clerk", shop.merchant, four_eyes_day="100.00"))
    first, second = shop.api.pay().id, shop.api.pay().id
    carla.post(form_of(first, "RF"), {"key": key_in(carla.get(form_of(first, "RF"))), "amount": "92.00"})
    assert refunds() == 1
    opened = carla.get(form_of(second, "RF"))
    text = " ".join(opened.content.decode().split())
    assert "Above 8.00 EUR it needs approval" in text
    assert "the limit for 24 hours: 100.00 EUR, of which 92.00 are used" in text
    sent = carla.post(form_of(second, "RF"), {"key": key_in(opened), "amount": "92.00"}, follow=True)
    assert "Refund of 92.00 EUR is over the limit for 24 hours." in sent.content.decode()
    row = Approval.objects.get()
    page = max_.get(f"/admin/gateway/approval/{row.pk}/change/").content.decode()
    assert "the limit for 24 hours: 100.00 EUR, of which 92.00 were used" in page
    assert "the limit for 24 hours" in max_.get("/admin/gateway/approval/").content.decode()


def test_a_manager_cannot_approve_an_own_request(shop: Shop) -> None:
    mia = signed_in(person("mia", "manager", shop.merchant, four_eyes_above="10.00"))
    paid = shop.api.pay()
    form = form_of(paid.id, "RF")
    mia.post(form, {"key": key_in(mia.get(form)), "amount": "11.00"})
    row = Approval.objects.get()
    answer = mia.post(f"/admin/gateway/approval/{row.pk}/decide/", {"verb": "approve"}, follow=True)
    assert "somebody else has to decide it" in answer.content.decode()
    assert refunds() == 0


@pytest.mark.parametrize("role", ["auditor", "developer"])
def test_who_may_only_look_finds_no_button_and_a_closed_door(shop: Shop, role: str) -> None:
    """Issue: rights."""
    looker = signed_in(person("looker", role, shop.merchant))
    paid = shop.api.pay()
    assert "/do/RF/" not in looker.get(page_of(paid.id)).content.decode()
    assert looker.get(form_of(paid.id, "RF")).status_code == 403
    assert looker.post(form_of(paid.id, "RF"), {"amount": "1.00"}).status_code == 403


def test_an_export_is_fetched_by_its_owner_alone(clara: Client, max_: Client, shop: Shop, tmp_path: Path) -> None:
    """Brief: download only by the owner with the right."""
    shop.api.pay()
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        address = clara.post(f"{LIST}export/", {"format": "csv", "status": "APPROVED"})["Location"]
        row = BackgroundWork.objects.get()
        base = f"/admin/gateway/backgroundwork/{row.pk}"
        assert clara.get(address).status_code == 200
        assert clara.get(f"{base}/file/").status_code == 404
        queue.run_background_work()
        assert clara.get(f"{base}/state/").json()["share"] == 100
        file = b"".join(clara.get(f"{base}/file/").streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
        assert file.count("\r\n") == 2
        for path in (f"{base}/file/", f"{base}/state/", f"{base}/change/"):
            assert max_.get(path).status_code == 404, path
        assert str(row.pk) not in max_.get("/admin/gateway/backgroundwork/").content.decode()
        assert AuditEntry.objects.filter(action="export fetched", actor="clara").count() == 1
        developer = signed_in(person("dora", "developer", shop.merchant))
        assert developer.post(f"{LIST}export/", {"format": "csv"}).status_code == 403


def test_a_registration_is_deleted_after_a_question_as_the_api_deletes_it(
    clara: Client, outsider: Client, shop: Shop
) -> None:
    """Brief: delete with confirmation through the same service as the API."""
    made = shop.api.pay(createRegistration="true").body["registrationId"]
    row = Registration.objects.get(pk=made)
    base = f"/admin/gateway/registration/{row.pk}"
    assert outsider.get(f"{base}/change/").status_code == outsider.post(f"{base}/delete/").status_code == 404
    assert "Delete…" in clara.get(f"{base}/change/").content.decode()
    assert "erased for good" in clara.get(f"{base}/delete/").content.decode()
    assert Registration.objects.get(pk=made).status == "ACTIVE"
    for _ in range(2):
        assert clara.post(f"{base}/delete/").status_code == 302
    row.refresh_from_db()
    assert (row.status, row.means_sealed) == ("DELETED", None)
    assert Payment.objects.filter(payment_type="DR", referenced=row.pk).count() == 1
    assert AuditEntry.objects.filter(action="delete", subject="registration", actor="clara").count() == 1


def test_a_failed_request_is_found_by_its_ndc_with_what_was_sent_masked(
    clara: Client, outsider: Client, shop: Shop
) -> None:
    """Brief: request log by ndc, masked parameters, copy as curl with placeholders."""
    failed = shop.api.pay(amount="92.1", card__number=PAN, card__cvv="731")
    row = RequestLog.objects.get(payment=None)
    found = clara.get("/admin/gateway/requestlog/", {"q": failed.body["ndc"]}).content.decode()
    for end in (failed.body["ndc"][-12:], f"…{failed.body['ndc'][-12:]}"):
        assert clara.get("/admin/gateway/requestlog/", {"q": end}).content.decode().count("/change/") == found.count(
            "/change/"
        ), "as the list shows it"
    assert str(row.pk) in found
    text = clara.get(f"/admin/gateway/requestlog/{row.pk}/change/").content.decode()
    assert "$TOKEN" in text
    assert "$CARD_NUMBER" in text
    assert "92.1" in text
    assert PAN not in text
    assert outsider.get(f"/admin/gateway/requestlog/{row.pk}/change/").status_code == 404


def test_the_request_log_is_filtered_by_status_and_method_without_being_read_whole(shop: Shop, clara: Client) -> None:
    """Issue: fast on a million payments. What a filter offers is known, and not looked for in all rows."""
    shop.api.pay()
    refused = shop.api.pay(amount="92.1.0")
    with statements() as seen:
        everything = clara.get("/admin/gateway/requestlog/").content.decode()
    assert not [text for text in seen if "DISTINCT" in text]
    assert "status=400" in everything
    assert "method=POST" in everything
    some = clara.get("/admin/gateway/requestlog/", {"status": "400", "method": "POST"}).content.decode()
    assert refused.body["ndc"] in some
    found = RequestLog.objects.filter(status=400, method="POST")
    assert [row.ndc in some for row in found] == [True]
    assert [row.ndc in some for row in RequestLog.objects.filter(status=200)] == [False]


def test_a_card_number_that_a_merchant_wrote_into_free_text_is_read_by_nobody(
    clara: Client, shop: Shop, tmp_path: Path
) -> None:
    """Found in use: it stood in the memo, the order number and a parameter, on the page, in the list and the export."""
    other = "5454545454545454"
    paid = shop.api.pay(
        merchantTransactionId=f"order {other}",
        merchantMemo="memo 4111 1111 1111 1111",
        merchantInvoiceId=other,
        customer__companyName=other,
        customer__givenName="J",
        customer__surname="J",
        customer__email="j@shop.example",
        **{"customParameters[note]": other},
    )
    assert paid.status == 200, paid.body
    for address in (LIST, page_of(paid.id), form_of(paid.id, "RF")):
        text = clara.get(address, {"status": "APPROVED"}).content.decode()
        assert "545454******5454" in text, address
        for number in (other, "4111 1111 1111 1111", "4111111111111111"):
            assert number not in text, address
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        clara.post(f"{LIST}export/", {"format": "csv"})
        queue.run_background_work()
        base = f"/admin/gateway/backgroundwork/{BackgroundWork.objects.get().pk}"
        file = b"".join(clara.get(f"{base}/file/").streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    assert "order 545454******5454" in file
    assert "memo 4111 11** **** 1111" in file
    assert other not in file


def test_looking_at_what_is_sensitive_leaves_an_entry(clara: Client, shop: Shop) -> None:
    """Found in use: docs/back-office.md promised every look, and most left none."""
    paid = shop.api.pay(createRegistration="true")
    logged = RequestLog.objects.get(payment=paid.id)
    pages = {
        "payment": page_of(paid.id),
        "requestlog": f"/admin/gateway/requestlog/{logged.pk}/change/",
        "registration": f"/admin/gateway/registration/{paid.body['registrationId']}/change/",
    }
    for address in pages.values():
        assert clara.get(address).status_code == 200, address
    developer = signed_in(person("dora", "developer", shop.merchant))
    assert developer.get(f"/admin/gateway/accesstoken/{shop.token.pk}/change/").status_code == 200
    seen = AuditEntry.objects.filter(action="view").values_list("subject", "actor")
    assert set(seen) == {(subject, "clara") for subject in pages} | {("accesstoken", "dora")}
    assert not AuditEntry.objects.filter(action="view", merchant=None).exists()


def test_a_file_is_not_fetched_once_the_right_to_its_rows_is_gone(shop: Shop, stranger: Shop, tmp_path: Path) -> None:
    """Found in use: who had lost a merchant still fetched that merchant's payments."""
    user = person("both", "clerk", shop.merchant, stranger.merchant)
    both = signed_in(user)
    shop.api.pay()
    stranger.api.pay()
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        both.post(f"{LIST}export/", {"format": "csv"})
        queue.run_background_work()
        file = f"/admin/gateway/backgroundwork/{BackgroundWork.objects.get().pk}/file/"
        assert both.get(file).status_code == 200
        lost = Grant.objects.get(user=user, merchant=stranger.merchant)
        lost.delete()
        assert both.get(file).status_code == 403
        Grant.objects.create(user=user, role="manager", division=shop.merchant.division)
        assert both.get(file).status_code == 200


def test_a_request_that_nobody_decided_in_time_waits_no_more(clara: Client, max_: Client, shop: Shop) -> None:
    """Found in use: the banner counted it for ever, and the list was empty."""
    form = form_of(shop.api.pay().id, "RF")
    clara.post(form, {"key": key_in(clara.get(form)), "amount": "92.00"})
    waits = "1 request waits for your decision"
    assert waits in max_.get(LIST).content.decode()
    Approval.objects.update(expires_at=clock.real_now())
    assert waits not in max_.get(LIST).content.decode()


def test_a_form_that_was_refused_is_the_same_form(clara: Client, shop: Shop) -> None:
    """Found by reading: the page that refused an amount had another key, so that going back to the page before it and
    pressing there made a second capture."""
    held = shop.api.pay(paymentType="PA", amount="10.00")
    form = form_of(held.id, "CP")
    first = key_in(clara.get(form))
    refused = clara.post(form, {"key": first, "amount": "10.01"})
    assert refused.status_code == 400
    assert key_in(refused) == first
    assert clara.post(form, {"key": key_in(refused), "amount": "4.00"}).status_code == 302
    again = clara.post(form, {"key": first, "amount": "6.00"}, follow=True)
    assert "Capture 4.00 EUR was sent by this form before. Nothing was sent twice." in again.content.decode()
    assert [row.amount for row in Payment.objects.filter(payment_type="CP")] == [Decimal("4.00")]
    forged = clara.post(form, {"key": "forged", "amount": "6.00"})
    assert key_in(forged) not in ("forged", first)


def test_a_rebill_above_the_payment_itself_is_sent_twice_or_not_at_all(clara: Client, shop: Shop) -> None:
    """Found in use: 99,999.00 on a payment of 40.00 asked nothing. What is meant is sent once more."""
    paid = shop.api.pay(amount="10.00")
    form = form_of(paid.id, "RB")
    page = clara.post(form, {"key": key_in(clara.get(form)), "amount": "10.01"})
    assert page.status_code == 400
    assert "is more than the payment itself" in page.content.decode()
    assert Payment.objects.filter(payment_type="RB").count() == 0
    assert 'name="above" value="10.01"' in page.content.decode()
    other = clara.post(form, {"key": key_in(page), "amount": "10.02", "above": "10.01"})
    assert other.status_code == 400
    assert clara.post(form, {"key": key_in(page), "amount": "10.01", "above": "10.01"}).status_code == 302
    assert Payment.objects.get(payment_type="RB").amount == Decimal("10.01")


def test_the_navigation_counts_what_waits_for_a_second_person(clara: Client, max_: Client, shop: Shop) -> None:
    """The manager sees the queue, from every page; who asked cannot decide, and is not called."""
    paid = shop.api.pay()
    form = clara.get(form_of(paid.id, "RF"))
    assert "<h1" in form.content.decode(), "a form that moves money says in large letters which way"
    assert "of which 0.00 are used" in form.content.decode()
    assert approval_pages.count_waiting_approvals(User.objects.get(username="max")) == 0
    clara.post(form_of(paid.id, "RF"), {"amount": "60.00", "key": key_in(form)})
    assert approval_pages.count_waiting_approvals(User.objects.get(username="max")) == 1
    assert approval_pages.count_waiting_approvals(User.objects.get(username="clara")) == 0
    badge = re.compile(r"Approvals\s*</span>\s*<span[^>]*>\s*1\s*</span>")
    assert badge.search(max_.get("/admin/").content.decode())
    assert not badge.search(clara.get("/admin/").content.decode())

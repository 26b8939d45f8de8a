"""Lists: own columns, order, sums, saved views, and follow-ups for many payments with a dry run first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import reverse

from gateway.access import permissions
from gateway.background import queue
from gateway.backoffice.follow_ups import bulk_follow_ups, clerk_limits
from gateway.backoffice.kit import saved_views
from gateway.backoffice.payments import payment_search
from gateway.core import clock
from gateway.models import Approval, AuditEntry, BackgroundWork, BulkAction, BulkItem, Payment, SavedView
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.subscriptions import store_card

pytestmark = pytest.mark.django_db
LIST = "/admin/gateway/payment/"
State = BulkItem.State


@pytest.fixture(autouse=True)
def place(tmp_path: Path) -> Iterator[Path]:
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        yield tmp_path


@pytest.fixture
def clara(shop: Shop) -> Client:
    """A clerk who moves up to 50 on a payment, and up to 100 a day, by herself."""
    return signed_in(person("clara", "clerk", shop.merchant, four_eyes_above="50.00", four_eyes_day="100.00"))


def begin(client: Client, code: str, **values: Any) -> BulkAction:
    answer = client.post(f"{LIST}bulk/", {"do": code, "reason": "requested", "which": "picked", **values})
    assert answer.status_code == 302
    assert "/bulk/" in answer.url
    queue.run_background_work()
    action = BulkAction.objects.select_related("work").latest("asked_at")
    return action


def confirm(client: Client, action: BulkAction) -> BulkAction:
    client.post(f"{LIST}bulk/{action.pk}/confirm/")
    queue.run_background_work()
    action.refresh_from_db()
    return action


def states(action: BulkAction) -> list[tuple[str, str, str]]:
    """Order, amount and state of each item, in the order of the list."""
    order = dict(Payment.objects.values_list("pk", "merchant_transaction_id"))
    return [(order[item.payment], str(item.amount), str(item.state)) for item in action.items.order_by("payment", "id")]


def refunds() -> int:
    return Payment.objects.filter(payment_type="RF").count()


# --- many at once -------------------------------------------------------------------------------------------------


def test_a_dry_run_says_what_would_be_done_with_each_and_why_not_and_sends_nothing(shop: Shop, clara: Client) -> None:
    """Limits hold for each payment, and that of a day for all together."""
    small = shop.api.pay(amount="20.00", merchantTransactionId="order-small").id
    large = shop.api.pay(amount="60.00", merchantTransactionId="order-large").id
    held = shop.api.pay(amount="10.00", paymentType="PA", merchantTransactionId="order-held").id
    more = [shop.api.pay(amount="45.00", merchantTransactionId=f"order-more-{n}").id for n in (1, 2)]
    action = begin(clara, "RF", pick=[small, large, held, *more])
    assert states(action) == [
        ("order-small", "20.00", State.READY), ("order-large", "60.00", State.OVER_LIMIT),
        ("order-held", "0.00", State.IMPOSSIBLE),
        ("order-more-1", "45.00", State.READY), ("order-more-2", "45.00", State.OVER_LIMIT),
    ]  # fmt: skip
    assert refunds() == 0
    page = clara.get(f"{LIST}bulk/{action.pk}/").content.decode()
    assert "the payment is: Authorized" in page
    assert "the limit for 24 hours" in page


@pytest.mark.parametrize("size", [1, 50])
def test_a_dry_runs_day_is_of_each_merchant_and_currency(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """In whatever slices it is made; what is over the limit takes nothing of it."""
    monkeypatch.setattr(bulk_follow_ups, "CHECK_SLICE_PAYMENTS", size)
    both = signed_in(person("bea", "clerk", shop.merchant, stranger.merchant, four_eyes_day="100.00"))
    paid = [
        one.api.pay(amount=amount, currency=currency).id
        for amount in ("100.01", "50.00", "50.00", "0.01")
        for one in (shop, stranger)
        for currency in ("EUR", "USD")
    ]
    found = begin(both, "RF", pick=paid).items
    while queue.run_background_work():
        pass
    for one in (shop, stranger):
        for currency in ("EUR", "USD"):
            rows = found.filter(merchant=one.merchant, currency=currency).order_by("payment")
            assert [row.state for row in rows] == [State.OVER_LIMIT, State.READY, State.READY, State.OVER_LIMIT]


def test_all_items_of_one_payment_are_under_its_limit_together(shop: Shop, clara: Client) -> None:
    held = shop.api.pay(amount="80.00", paymentType="PA", merchantTransactionId="order-held").id
    for amount in ("30.00", "20.01", "20.00"):
        shop.api.follow(held, "CP", amount)
    other = shop.api.pay(amount="50.00", merchantTransactionId="order-other").id
    assert states(begin(clara, "RF", pick=[held, other])) == [
        ("order-held", "30.00", State.READY), ("order-held", "20.01", State.OVER_LIMIT),
        ("order-held", "20.00", State.READY), ("order-other", "50.00", State.READY),
    ]  # fmt: skip


def test_what_is_confirmed_is_sent_once_and_what_is_over_a_limit_is_asked_for(shop: Shop, clara: Client) -> None:
    small = shop.api.pay(amount="20.00", merchantTransactionId="order-small").id
    large = shop.api.pay(amount="60.00", merchantTransactionId="order-large").id
    action = begin(clara, "RF", pick=[small, large], note="the fair was cancelled")
    confirm(clara, action)
    assert states(action) == [("order-small", "20.00", State.DONE), ("order-large", "60.00", State.ASKED)]
    assert action.state == BulkAction.State.DONE
    (made,) = Payment.objects.filter(payment_type="RF")
    assert (made.referenced, made.amount) == (Payment.objects.get(pk=small).pk, Decimal("20.00"))
    asked = Approval.objects.get()
    assert (asked.amount, asked.reason, asked.note) == (Decimal("60.00"), "requested", "the fair was cancelled")
    entry = AuditEntry.objects.get(action="refund sent")
    assert (entry.actor, entry.after["reason"], entry.after["alone"]) == ("clara", "requested", True)
    confirm(clara, action)
    assert (refunds(), Approval.objects.count()) == (1, 1)


def test_a_slice_that_died_after_sending_sends_nothing_twice(shop: Shop, clara: Client) -> None:
    """The follow-up has its id from the dry run: whoever runs the item again finds it."""
    ids = [shop.api.pay(amount="20.00").id for _ in range(2)]
    action = begin(clara, "RF", pick=ids)
    confirm(clara, action)
    action.items.update(state=State.READY, why="")
    BulkAction.objects.update(state=BulkAction.State.RUNNING)
    BackgroundWork.objects.filter(pk=action.work_id).update(state="FAILED")
    confirm(clara, BulkAction.objects.get(pk=action.pk))
    assert refunds() == 2
    assert {item.state for item in action.items.all()} == {State.DONE}


def test_nothing_is_sent_beyond_what_the_dry_run_showed(shop: Shop, clara: Client) -> None:
    """What changed meanwhile is refused for that payment alone."""
    first, second = (
        shop.api.pay(amount="20.00", merchantTransactionId=name).id for name in ("order-first", "order-second")
    )
    action = begin(clara, "RF", pick=[first, second])
    shop.api.follow(first, "RF", "5.00")
    confirm(clara, action)
    assert states(action) == [("order-first", "20.00", State.REFUSED), ("order-second", "20.00", State.DONE)]
    assert "15.00 EUR" in action.items.get(state=State.REFUSED).why


def test_all_of_a_filtered_list_is_chosen_and_nothing_of_another_merchant(
    shop: Shop, stranger: Shop, clara: Client
) -> None:
    """A first payment stands for its chain: two captures are two refunds, and no payment is done twice."""
    held = shop.api.pay(amount="30.00", paymentType="PA", merchantTransactionId="order-held").id
    for amount in ("10.00", "5.00"):
        shop.api.follow(held, "CP", amount)
    foreign = stranger.api.pay(amount="30.00").id
    shop.api.pay(amount="9.00", currency="USD")
    action = begin(clara, "RF", which="all", currency="EUR", pick=[foreign])
    assert sorted(str(item.amount) for item in action.items.exclude(state=State.IMPOSSIBLE)) == ["10.00", "5.00"]
    assert {item.merchant_id for item in action.items.all()} == {shop.merchant.pk}
    other = begin(clara, "RF", pick=[foreign])
    assert list(other.items.all()) == []


def test_captures_are_taken_back_and_refunds_are_not(shop: Shop) -> None:
    """Where the books allow it: a capture that is not settled is reversed, by a dry run of its own."""
    office = signed_in(person("max", "manager", shop.merchant))
    held = [shop.api.pay(amount="30.00", paymentType="PA").id for _ in range(2)]
    action = confirm(office, begin(office, "CP", pick=held))
    assert Payment.objects.filter(payment_type="CP", status="APPROVED").count() == 2
    office.post(f"{LIST}bulk/{action.pk}/undo/")
    queue.run_background_work()
    undo = BulkAction.objects.get(undo_of=action)
    assert Payment.objects.filter(payment_type="RV").count() == 0
    confirm(office, undo)
    assert Payment.objects.filter(payment_type="RV", status="APPROVED").count() == 2
    refund = confirm(office, begin(office, "RF", pick=[shop.api.pay(amount="3.00").id]))
    office.post(f"{LIST}bulk/{refund.pk}/undo/")
    assert not BulkAction.objects.filter(undo_of=refund).exists()


def test_requests_for_approval_are_withdrawn_together(shop: Shop, clara: Client) -> None:
    ids = [shop.api.pay(amount="60.00").id for _ in range(2)]
    action = confirm(clara, begin(clara, "RF", pick=ids))
    clara.post(f"{LIST}bulk/{action.pk}/withdraw/")
    assert {row.state for row in Approval.objects.all()} == {Approval.State.WITHDRAWN}


def test_a_list_that_is_too_long_is_narrowed_first(shop: Shop, clara: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(bulk_follow_ups, "MAX_BULK_PAYMENTS", 1)
    for _ in range(2):
        shop.api.pay()
    action = begin(clara, "RF", which="all")
    assert action.work is not None
    assert action.work.state == "FAILED"
    assert "more than 1 payments" in clara.get(f"{LIST}bulk/{action.pk}/").content.decode()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"do": "RF", "which": "picked"}, "Select payments first"),
        ({"do": "RF", "which": "all"}, "Choose a reason"),
        ({"do": "XX", "which": "all", "reason": "other"}, "Choose what to do"),
        ({"do": "CP", "which": "all", "currency": "ZZZ"}, "A filter cannot be read"),
        ({"do": "CP", "which": "all", "account": "4111111111111111"}, "A filter cannot be read"),
        ({"do": "CP", "which": "picked", "pick": "or 1=1"}, "Select payments first"),
    ],
)
def test_what_cannot_be_begun_says_why(shop: Shop, clara: Client, values: dict[str, str], said: str) -> None:
    shop.api.pay()
    page = clara.post(f"{LIST}bulk/", values, follow=True)
    assert said in page.content.decode()
    assert BulkAction.objects.count() == 0


def test_nobody_else_sees_confirms_or_takes_back_an_action(shop: Shop, clara: Client) -> None:
    action = begin(clara, "RF", pick=[shop.api.pay(amount="20.00").id])
    max_, auditor = (
        signed_in(person(name, role, shop.merchant)) for name, role in (("max", "manager"), ("ann", "auditor"))
    )
    for verb in ("confirm", "undo", "withdraw"):
        assert max_.post(f"{LIST}bulk/{action.pk}/{verb}/").status_code == 404
    assert max_.get(f"{LIST}bulk/{action.pk}/").status_code == 404
    assert auditor.post(f"{LIST}bulk/", {"do": "RF"}).status_code == 403
    assert refunds() == 0


def test_confirming_asks_who_it_is(shop: Shop) -> None:
    office = signed_in(person("clara", "clerk", shop.merchant), fresh=False)
    action = begin(office, "RF", pick=[shop.api.pay(amount="20.00").id])
    assert "/admin/again/" in office.post(f"{LIST}bulk/{action.pk}/confirm/").url
    assert refunds() == 0


def test_a_right_that_is_taken_away_ends_the_sending(shop: Shop, clara: Client) -> None:
    action = begin(clara, "RF", pick=[shop.api.pay(amount="20.00").id])
    clara.post(f"{LIST}bulk/{action.pk}/confirm/")
    action.owner.grants.all().delete()
    queue.run_background_work()
    assert refunds() == 0
    assert BackgroundWork.objects.latest("asked_at").state == "FAILED"


@pytest.mark.parametrize("name", ["account", "connector"])
def test_a_card_number_in_a_filter_is_kept_with_no_export(shop: Shop, clara: Client, name: str) -> None:
    """A list drops it from its address; a form's fields come another way."""
    answer = clara.post(f"{LIST}export/", {"format": "csv", "which": "all", name: "4111-1111-1111-1111"}, follow=True)
    assert "is a whole card number" in answer.content.decode()
    assert "1111-1111" not in answer.content.decode()
    assert BackgroundWork.objects.count() == 0


def test_selected_payments_alone_are_exported(shop: Shop, clara: Client) -> None:
    chosen, _other = shop.api.pay().id, shop.api.pay().id
    clara.post(
        f"{LIST}export/", {"format": "csv", "which": "picked", "pick": [chosen], "cols": "when,amount", "shown": "1"}
    )
    queue.run_background_work()
    path = queue.find_result_file(BackgroundWork.objects.latest("asked_at"))
    assert path is not None
    head, row = path.read_text("utf-8-sig").splitlines()
    assert head.split(",") == ["created (UTC)", "amount", "currency"]
    assert row.endswith(",EUR")


def test_money_that_two_members_of_a_chain_stand_for_is_one_item(shop: Shop) -> None:
    """An authorization with its increments is one sum, and so is a payment with its receipt, chosen alone or not."""
    office = signed_in(person("max", "manager", shop.merchant))
    held = shop.api.pay(amount="100.00", paymentType="PA").id
    raised = shop.api.follow(held, "PA", "50.00", **{"standingInstruction.industryPractice": "INCREMENTAL_AUTH"}).id
    for code in ("CP", "RV"):
        for chosen in ([held], [held, raised]):
            (item,) = begin(office, code, pick=chosen).items.all()
            assert (item.amount, item.state) == (Decimal("150.00"), State.READY)
    paid = shop.api.pay(amount="100.00").id
    receipt = shop.api.follow(paid, "RC", "100.00").id
    for chosen in ([paid], [paid, receipt]):
        (item,) = begin(office, "RF", pick=chosen).items.all()
        assert (item.target.hex, item.amount) == (paid, Decimal("100.00"))


def test_money_that_has_an_item_does_not_count_against_a_limit_again(shop: Shop, clara: Client) -> None:
    paid = shop.api.pay(amount="45.00").id
    receipt = shop.api.follow(paid, "RC", "45.00").id
    other = shop.api.pay(amount="45.00").id
    action = begin(clara, "RF", pick=[paid, receipt, other])
    assert [(item.target.hex, item.state) for item in action.items.order_by("target")] == [
        (paid, State.READY), (other, State.READY),
    ]  # fmt: skip


@pytest.mark.parametrize("code", ["RF", "RV"])
def test_a_rebill_is_moved_only_where_it_is_chosen_itself(shop: Shop, code: str) -> None:
    office = signed_in(person("max", "manager", shop.merchant))
    paid = shop.api.pay(amount="100.00").id
    again = shop.api.follow(paid, "RB", "40.00").id
    assert [str(item.amount) for item in begin(office, code, pick=[paid]).items.all()] == ["100.00"]
    both = begin(office, code, pick=[paid, again])
    assert sorted(str(item.amount) for item in both.items.all()) == ["100.00", "40.00"]


@pytest.mark.parametrize("fault", ["not possible", "over limit"])
def test_an_item_that_another_worker_sends_at_the_same_moment_is_what_that_one_made_of_it(
    shop: Shop, clara: Client, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    action = begin(clara, "RF", pick=[shop.api.pay(amount="20.00").id])
    execute = bulk_follow_ups.manual_follow_up.execute_follow_up

    def lose(order: Any, *args: Any, **kwargs: Any) -> Payment:
        execute(order, *args, **kwargs)
        if fault == "not possible":
            raise bulk_follow_ups.FollowUpNotPossibleError("nothing is left")
        raise bulk_follow_ups.ClerkLimitExceededError(
            clerk_limits.LimitUse(over=clerk_limits.LimitScope.DAY, limit=Decimal(1), moved=Decimal(1))
        )

    monkeypatch.setattr(bulk_follow_ups.manual_follow_up, "execute_follow_up", lose)
    confirm(clara, action)
    assert {item.state for item in action.items.all()} == {State.DONE}
    assert (refunds(), Approval.objects.count()) == (1, 0)


def test_a_worker_that_comes_late_changes_no_item_that_is_done(
    shop: Shop, clara: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = begin(clara, "RF", pick=[shop.api.pay(amount="20.00").id])

    def be_late(*_args: Any) -> Any:
        action.items.update(state=State.DONE)
        raise bulk_follow_ups.FollowUpNotPossibleError("too late")

    monkeypatch.setattr(bulk_follow_ups, "_send_item", be_late)
    confirm(clara, action)
    assert {item.state for item in action.items.all()} == {State.DONE}


def test_a_dry_run_grows_old_while_it_is_carried_out_too(shop: Shop, clara: Client) -> None:
    action = begin(clara, "RF", pick=[shop.api.pay(amount="20.00").id])
    clara.post(f"{LIST}bulk/{action.pk}/confirm/")
    BulkAction.objects.update(checked_at=clock.real_now() - bulk_follow_ups.MAX_DRY_RUN_AGE - timedelta(minutes=1))
    queue.run_background_work()
    assert refunds() == 0
    said = "part of this may have been sent"
    assert said in BackgroundWork.objects.latest("asked_at").message
    page = clara.post(f"{LIST}bulk/{action.pk}/confirm/", follow=True).content.decode()
    assert said in page
    assert "nothing was sent" not in page


@pytest.mark.parametrize("began", [False, True])
def test_what_is_too_old_offers_no_button_that_would_be_refused(shop: Shop, clara: Client, began: bool) -> None:
    action = begin(clara, "RF", pick=[shop.api.pay(amount="20.00").id])
    if began:
        clara.post(f"{LIST}bulk/{action.pk}/confirm/")
        BackgroundWork.objects.update(state=BackgroundWork.State.CANCELLED)
    address = f"{LIST}bulk/{action.pk}/"
    assert f'action="{address}confirm/"' in clara.get(address).content.decode()
    BulkAction.objects.update(checked_at=clock.real_now() - bulk_follow_ups.MAX_DRY_RUN_AGE - timedelta(minutes=1))
    page = clara.get(address).content.decode()
    assert "confirm/" not in page
    assert "The dry run is too old. Begin again from the list" in page


CARD_IN_WORDS = "4111 1111 1111 1111"


def test_a_card_number_in_a_note_is_stored_nowhere(shop: Shop, clara: Client) -> None:
    """In the note of a bulk action, of its follow-ups, and of a request for approval and its decision."""
    ids = [shop.api.pay(amount=amount).id for amount in ("20.00", "60.00")]
    action = confirm(clara, begin(clara, "RF", pick=ids, note=f"paid with {CARD_IN_WORDS}"))
    asked = Approval.objects.get()
    root = signed_in(person("rita", "manager", shop.merchant))
    root.post(f"/admin/gateway/approval/{asked.pk}/decide/", {"verb": "reject", "note": f"not {CARD_IN_WORDS}"})
    asked.refresh_from_db()
    kept = [action.note, asked.note, asked.decision_note]
    kept += [f"{row.before} {row.after}" for row in AuditEntry.objects.all()]
    kept += [str(row.request) for row in Payment.objects.filter(payment_type="RF")]
    assert "paid with" in action.note
    assert "paid with" in asked.note
    assert [text for text in kept if CARD_IN_WORDS in text] == []


def test_an_action_shows_only_payments_that_its_owner_still_reaches(shop: Shop, stranger: Shop, clara: Client) -> None:
    action = begin(clara, "RF", pick=[shop.api.pay(amount="47.11", merchantTransactionId="order-secret").id])
    assert "47.11" in clara.get(f"{LIST}bulk/{action.pk}/").content.decode()
    action.owner.grants.update(merchant=stranger.merchant)
    page = clara.get(f"{LIST}bulk/{action.pk}/").content.decode()
    assert "47.11" not in page
    assert "order-secret" not in page


def test_nothing_is_chosen_before_something_is_picked(shop: Shop, clara: Client) -> None:
    shop.api.pay()
    page = clara.get(LIST).content.decode()
    assert re.findall(r'name="which" value="(\w+)"[^>]* checked', page) == ["picked"]


# --- columns, order, sums -----------------------------------------------------------------------------------------


def rows_of(page: str) -> list[list[str]]:
    body = page.split("<tbody>")[1].split("</tbody>")[0]
    return [
        [re.sub(r"<[^>]+>", " ", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]
        for row in body.split("<tr>")[1:]
    ]


def test_columns_are_ones_own_and_stay_chosen(shop: Shop, clara: Client) -> None:
    shop.api.pay(customer__givenName="Jane", customer__surname="Jones", merchantInvoiceId="invoice-1")
    clara.post(
        "/admin/views/columns/",
        {"page": "gateway.payment", "column": ["shopper", "invoice", "nothing"], "query": "currency=EUR"},
    )
    (row,) = rows_of(clara.get(LIST).content.decode())
    assert row[2:] == ["Jane Jones", "invoice-1"]
    (row,) = rows_of(clara.get(LIST, {"cols": "amount"}).content.decode())
    assert len(row) == 3
    clara.post("/admin/views/columns/", {"page": "gateway.payment", "usual": "1"})
    assert len(rows_of(clara.get(LIST).content.decode())[0]) == 8


def test_every_column_can_be_shown(shop: Shop, clara: Client) -> None:
    from gateway.backoffice.payments.payment_columns import PAYMENT_COLUMNS

    shop.api.pay()
    page = clara.get(LIST, {"cols": ",".join(PAYMENT_COLUMNS)}).content.decode()
    assert len(rows_of(page)[0]) == len(PAYMENT_COLUMNS) + 1


def test_a_list_is_put_in_order_by_a_column_page_after_page(shop: Shop, clara: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr(payment_search, "SEARCH_PAGE_ROWS", 2)
    for amount in ("5.00", "30.00", "1.00"):
        shop.api.pay(amount=amount)
    first = clara.get(LIST, {"cols": "amount", "order": "-amount"}).content.decode()
    assert [row[2] for row in rows_of(first)] == ["30.00 EUR", "5.00 EUR"]
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following
    second = clara.get(LIST + following[1].replace("&amp;", "&")).content.decode()
    assert [row[2] for row in rows_of(second)] == ["1.00 EUR"]
    monkeypatch.setattr(payment_search, "MAX_SORTED_PAYMENTS", 2)
    assert "Too many payments to put in this order" in clara.get(LIST, {"order": "amount"}).content.decode()
    for wrong in ("nothing", "-", "when'", "shopper"):
        assert clara.get(LIST, {"order": wrong, "after": "9" * 40}).status_code == 200


def test_a_list_is_summed_by_currency(shop: Shop, stranger: Shop, clara: Client, monkeypatch: Any) -> None:
    for amount, currency in (("5.00", "EUR"), ("30.50", "EUR"), ("7.00", "USD")):
        shop.api.pay(amount=amount, currency=currency)
    stranger.api.pay(amount="1000.00")
    page = clara.get(LIST)
    assert [(row.currency, row.number, row.amount) for row in page.context["totals"]["rows"]] == [
        ("EUR", 2, Decimal("35.50")), ("USD", 1, Decimal("7.00")),
    ]  # fmt: skip
    monkeypatch.setattr(payment_search, "SEARCH_PAGE_ROWS", 1)
    assert "rows" not in clara.get(LIST, {"currency": "EUR"}).context["totals"]
    (one,) = clara.get(LIST, {"currency": "EUR", "sums": "1"}).context["totals"]["rows"]
    assert one.amount == Decimal("35.50")


@pytest.mark.parametrize("size", [1, 50])
def test_sums_say_what_went_to_shoppers(shop: Shop, clara: Client, monkeypatch: Any, size: int) -> None:
    """Found in use: a refund stood in the sum as if it were income."""
    paid = shop.api.pay(amount="30.00")
    assert "of which to shoppers" not in clara.get(LIST).content.decode()
    shop.api.follow(paid.id, "RF", "12.00")
    monkeypatch.setattr(payment_search, "SEARCH_PAGE_ROWS", size)
    page = clara.get(LIST, {"sums": "1"})
    (one,) = page.context["totals"]["rows"]
    assert (one.approved, one.to_shoppers) == (Decimal("42.00"), Decimal("12.00"))
    assert "of which to shoppers (refunds, credits, chargebacks): 12.00 EUR" in page.content.decode()


# --- saved views --------------------------------------------------------------------------------------------------


def test_a_view_opens_the_list_as_it_was_and_is_ones_own_until_it_is_shared(shop: Shop, clara: Client) -> None:
    max_ = signed_in(person("max", "manager", shop.merchant))
    query = "state=captured&cols=when%2Camount&order=-amount&after=1"
    clara.post("/admin/views/save/", {"page": "gateway.payment", "name": "Big ones", "query": query})
    row = SavedView.objects.get()
    opened = urlsplit(clara.get(f"/admin/views/{row.pk}/").url)
    kept = {"state": "captured", "cols": "when,amount", "order": "-amount"}
    assert (opened.path, dict(parse_qsl(opened.query))) == (LIST, kept)
    assert "Big ones" in clara.get(LIST).content.decode()
    assert "Big ones" not in max_.get(LIST).content.decode()
    assert max_.get(f"/admin/views/{row.pk}/").status_code == 404
    clara.post("/admin/views/save/", {"page": "gateway.payment", "name": "Big ones", "query": query, "shared": "1"})
    assert SavedView.objects.count() == 1
    assert "Big ones" in max_.get(LIST).content.decode()
    assert max_.post(f"/admin/views/{row.pk}/delete/").status_code == 403
    clara.post(f"/admin/views/{row.pk}/delete/")
    assert SavedView.objects.count() == 0


def test_a_shared_view_is_seen_only_where_ones_rights_reach_as_far(shop: Shop, stranger: Shop) -> None:
    """Its name and its search may speak of a merchant."""
    psp = signed_in(person("pia", "psp", shop.merchant.division.psp))
    clara, otto = (
        signed_in(person(name, "clerk", one.merchant)) for name, one in (("clara", shop), ("otto", stranger))
    )
    psp.post("/admin/views/save/", {"page": "gateway.payment", "name": "of all", "query": "", "shared": "1"})
    clara.post(
        "/admin/views/save/", {"page": "gateway.payment", "name": "of the shop", "query": "q=order:x", "shared": "1"}
    )
    seen = [re.findall("of all|of the shop", one.get(LIST).content.decode()) for one in (psp, clara, otto)]
    assert [sorted(set(names)) for names in seen] == [["of all", "of the shop"], ["of the shop"], []]


def test_many_shared_views_of_others_hide_none_of_ones_own_merchant(shop: Shop, stranger: Shop) -> None:
    """Whether the one who shared has a grant of the merchant or of one channel."""
    told: dict[str, Any] = {"page": "gateway.payment", "shared": True, "saved_at": clock.real_now(), "query": {}}
    for at, node in enumerate((stranger.merchant, stranger.channel)):
        owner = person(f"otto{at}", "clerk", node)
        scope = permissions.serialize_access_scope(permissions.find_access_scope(owner, "gateway.view_payment"))
        SavedView.objects.bulk_create(
            SavedView(owner=owner, name=f"aa {number}", scope=scope, **told)
            for number in range(4 * saved_views.MAX_SHARED_VIEWS)
        )
    for name, node in (("carl", shop.merchant), ("clea", shop.channel)):
        saved_views.save_view(person(name, "clerk", node), "gateway.payment", f"zz {name}", {}, shared=True)
    for node, seen in ((shop.merchant, ["zz carl", "zz clea"]), (shop.channel, ["zz clea"])):
        reader = person(f"reader of {type(node).__name__}", "clerk", node)
        assert [row.name for row in saved_views.list_views(reader, "gateway.payment")] == seen


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": " "}, "Give the view a name"),
        ({"name": "x" * 61}, "Give the view a name"),
        ({"name": "4200000000000000"}, "A whole card number is not kept"),
        ({"name": "x", "query": "q=4200000000000000"}, "A whole card number is not kept"),
        ({"name": "x", "query": "4200000000000000=b"}, "A whole card number is not kept"),
        ({"name": "x", "query": f"q={'y' * 3000}"}, "are too long"),
        ({"name": "x", "query": "q=a%00b"}, "cannot be kept"),
        ({"name": "x", "query": "a%00b=q"}, "cannot be kept"),
    ],
)
def test_a_view_that_cannot_be_kept_says_why(shop: Shop, clara: Client, values: dict[str, str], said: str) -> None:
    page = clara.post("/admin/views/save/", {"page": "gateway.payment", "query": "", **values}, follow=True)
    assert said in page.content.decode()
    assert SavedView.objects.count() == 0


def test_every_list_with_views_offers_them(shop: Shop) -> None:
    office = signed_in(User.objects.create_superuser("boss"))
    shop.api.pay()
    for model, page in admin.site._registry.items():
        label = model._meta.label_lower
        answer = office.post("/admin/views/save/", {"page": label, "name": f"of {label}", "query": "q=x"})
        if not page.has_views:
            assert answer.status_code == 404, label
            continue
        row = SavedView.objects.get(name=f"of {label}")
        assert f'href="/admin/views/{row.pk}/"' in office.get(answer.url, follow=True).content.decode(), label
    for unknown in ("payments", "gateway.Payment", "gateway.nothing", "x", "", "gateway.savedview"):
        assert office.post("/admin/views/save/", {"page": unknown, "name": "x"}).status_code == 404, unknown


# --- columns of every other list ----------------------------------------------------------------------------------

REGISTRATIONS = "/admin/gateway/registration/"


def test_a_list_of_any_page_has_ones_own_columns(shop: Shop, clara: Client) -> None:
    """Kept for one user and one list; what is no column is left out, and the first one stays."""
    store_card(shop.api)
    usual = clara.get(REGISTRATIONS).context["cl"].list_display
    form = {"page": "gateway.registration", "query": "status__exact=ACTIVE&cols=brand&o=2&p=1"}
    answer = clara.post(
        "/admin/views/columns/", {**form, "column": ["holder", "method", "means_sealed", "holder", "x"]}
    )
    assert answer.url == f"{REGISTRATIONS}?status__exact=ACTIVE&p=1"
    listed = clara.get(REGISTRATIONS)
    assert listed.context["cl"].list_display == ["created_at", "holder", "method"]
    assert "Jane" not in listed.content.decode()
    max_ = signed_in(person("max", "manager", shop.merchant))
    assert max_.get(REGISTRATIONS).context["cl"].list_display == usual
    by_address = clara.get(REGISTRATIONS, {"cols": "brand,created_at,request", "o": "-1"})
    assert by_address.context["cl"].list_display == ["brand", "created_at"]
    assert by_address.status_code == 200
    assert clara.get(REGISTRATIONS, {"cols": "request,means_sealed"}).context["cl"].list_display[0] == "created_at"
    clara.post("/admin/views/columns/", form)
    assert clara.get(REGISTRATIONS).context["cl"].list_display == ["created_at"], "every other box was emptied"
    clara.post("/admin/views/columns/", {**form, "usual": "1", "column": ["holder"]})
    assert clara.get(REGISTRATIONS).context["cl"].list_display == usual


def test_a_view_of_a_list_keeps_the_columns_that_its_order_counts(shop: Shop, clara: Client) -> None:
    """The order names a column by its place: a colleague with other columns would see another order."""
    store_card(shop.api)
    panel = clara.get(REGISTRATIONS, {"o": "2"}).context["views"]
    assert dict(parse_qsl(panel["query"])) == {
        "o": "2", "cols": "created_at,brand,account,holder,state,merchant,channel,id_hex",
    }  # fmt: skip
    assert "cols" not in clara.get(REGISTRATIONS).context["views"]["query"]


def test_columns_are_for_those_who_may_see_the_list(shop: Shop, clara: Client) -> None:
    for page, status in (("auth.user", 403), ("gateway.nothing", 404), ("", 404), ("gateway.payment", 302)):
        answer = clara.post("/admin/views/columns/", {"page": page, "query": "", "column": ["username"]})
        assert answer.status_code == status, page


def test_every_list_can_show_every_column_it_offers(shop: Shop) -> None:
    office = signed_in(User.objects.create_superuser("boss"))
    shop.api.pay()
    store_card(shop.api)
    for model, page in admin.site._registry.items():
        address = reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist")
        if page.has_views and (shown := office.get(address).context) is not None:
            known = [one["name"] for one in shown.get("columns") or ()]
            assert office.get(address, {"cols": ",".join(known)}).status_code == 200, address

"""Exports for people: whole, safe in a spreadsheet, within one's rights. Source: rulings, section 8."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from django.test import override_settings

from gateway.background import queue
from gateway.backoffice.kit import workbook
from gateway.backoffice.payments import payment_export
from gateway.core import clock
from gateway.models import BackgroundWork, Grant, Payment
from tests.support.fixtures import BY, Shop
from tests.support.office import person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def place(tmp_path: Path) -> Iterator[Path]:
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        yield tmp_path


def exported(shop: Shop, as_: str, **filters: str) -> BackgroundWork:
    owner = person(f"clara {as_} {len(filters)}", "clerk", shop.merchant)
    parameters = {"format": as_, "filters": filters, "asked": {"shape": "", "value": ""}}
    row = queue.enqueue_work(payment_export.PAYMENT_EXPORT, "payments", parameters, owner=owner.pk, by=BY)
    queue.run_background_work()
    row.refresh_from_db()
    return row


def cells(row: BackgroundWork) -> list[dict[str, Any]]:
    path = queue.find_result_file(row)
    assert path is not None, row.message
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return list(csv.DictReader(lines))
    found = []
    for sheet in openpyxl.load_workbook(path, read_only=True).worksheets:
        head, *rows = sheet.iter_rows(values_only=True)
        found += [dict(zip(head, each, strict=True)) for each in rows]
    return found


@pytest.mark.parametrize("as_", payment_export.EXPORT_FORMATS)
def test_an_export_holds_every_payment_of_ones_own_and_none_of_anothers(
    shop: Shop, stranger: Shop, as_: str, monkeypatch: Any
) -> None:
    """Brief: exports without a limit, within one's rights; across slices and sheets."""
    monkeypatch.setattr(payment_export, "EXPORT_SLICE_ROWS", 2)
    monkeypatch.setattr(workbook, "MAX_SHEET_ROWS", 4)
    made = [shop.api.pay(amount=f"{n}.00").id for n in range(1, 8)]
    stranger.api.pay()
    row = exported(shop, as_)
    assert [each["id"] for each in cells(row)] == made
    assert (row.done, row.total) == (7, 7)
    assert [float(each["amount"]) for each in cells(row)] == [1, 2, 3, 4, 5, 6, 7]


def test_of_payments_that_were_picked_the_export_has_those_that_one_may_see(shop: Shop, stranger: Shop) -> None:
    """Whoever writes another merchant's id into the request gets a file without it."""
    first, second, third = (shop.api.pay().id for _ in range(3))
    theirs = stranger.api.pay().id
    owner = person("clara", "clerk", shop.merchant)
    asked = {"format": "csv", "ids": [third, theirs, first]}
    row = queue.enqueue_work(payment_export.PAYMENT_EXPORT, "payments", asked, owner=owner.pk, by=BY)
    queue.run_background_work()
    row.refresh_from_db()
    assert [each["id"] for each in cells(row)] == [first, third]
    assert second not in str(cells(row))


def test_a_payment_that_is_made_while_the_file_is_written_is_not_in_it(shop: Shop, monkeypatch: Any) -> None:
    """The list as it was when the export was asked for: its sums are compared with that list."""
    monkeypatch.setattr(payment_export, "EXPORT_SLICE_ROWS", 1)
    monkeypatch.setattr(queue, "MAX_TURN_S", 0.0)
    monkeypatch.setattr(queue, "MAX_BACKGROUND_RUN_S", 0.0)
    made = [shop.api.pay().id for _ in range(2)]
    row = exported(shop, "csv")
    shop.api.pay()
    for _ in range(4):
        queue.run_background_work()
    row.refresh_from_db()
    assert [each["id"] for each in cells(row)] == made


def test_a_card_number_that_is_stored_in_a_text_is_masked_in_the_file(shop: Shop) -> None:
    """docs/decisions/0052: whatever put it there."""
    paid = shop.api.pay()
    Payment.objects.filter(pk=paid.id).update(merchant_memo="paid with 4200 0000 0000 0000")
    (row,) = cells(exported(shop, "csv"))
    assert row["merchantMemo"] == "paid with 4200 00** **** 0000"


@pytest.mark.parametrize("as_", payment_export.EXPORT_FORMATS)
def test_a_cell_is_never_a_formula(shop: Shop, as_: str) -> None:
    """Decisions, section 8: formula characters at the start of a cell are escaped."""
    shop.api.pay(merchantTransactionId="=cmd|'/c calc'!A1", merchantMemo='@SUM(1+1)*cmd|" /C"')
    shop.api.pay(merchantTransactionId="+49 30 1234567", merchantMemo="-2+3+cmd|' /C'")
    shop.api.pay(merchantTransactionId="＝1+2", merchantMemo="＠SUM(1)")
    for each in cells(exported(shop, as_)):
        for cell in each.values():
            assert not str(cell or "").startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")), cell
    assert "'=cmd|'/c calc'!A1" in [
        each["merchantTransactionId"] for each in cells(exported(shop, as_, status="APPROVED"))
    ]


def test_no_part_of_a_csv_cell_is_a_formula_where_a_spreadsheet_splits_at_semicolons(shop: Shop) -> None:
    """OWASP, CSV Injection. A German Excel does, and quotes within its line do not keep it from that."""
    for sent in ("mug;=1+1", 'mug; "=1+1', "mug;  @SUM(1)"):
        shop.api.pay(merchantMemo=sent)
    memos = [each["merchantMemo"] for each in cells(exported(shop, "csv"))]
    assert memos == ["mug;'=1+1", "mug; \"'=1+1", "mug;  '@SUM(1)"]


@pytest.mark.parametrize("as_", payment_export.EXPORT_FORMATS)
def test_one_odd_character_spoils_nobodys_file(shop: Shop, as_: str) -> None:
    """Found in use: one merchant's U+FFFE made the workbook of all merchants unreadable."""
    shop.api.pay(merchantTransactionId="odd-\ufffe-\uffff-x")
    (row,) = cells(exported(shop, as_))
    assert row["merchantTransactionId"].startswith("odd-")
    assert row["merchantTransactionId"].endswith("-x")


@pytest.mark.parametrize("as_", payment_export.EXPORT_FORMATS)
def test_no_card_number_and_an_empty_list_is_a_table_with_a_heading(shop: Shop, as_: str) -> None:
    """Goals R8."""
    shop.api.pay(card__number="5454545454545454", paymentBrand="MASTER")
    (only,) = cells(exported(shop, as_))
    assert only["card"] == "545454******5454"
    assert cells(exported(shop, as_, status="IN_DOUBT", brand="AMEX")) == []


def test_what_a_dead_worker_wrote_behind_the_cursor_is_cut_off(shop: Shop, monkeypatch: Any) -> None:
    """Brief: survives a restart."""
    monkeypatch.setattr(payment_export, "EXPORT_SLICE_ROWS", 2)
    monkeypatch.setattr(queue, "MAX_TURN_S", 0.0)
    monkeypatch.setattr(queue, "MAX_BACKGROUND_RUN_S", 0.0)
    for n in range(1, 6):
        shop.api.pay(amount=f"{n}.00")
    row = exported(shop, "csv")
    assert row.done == 2
    ((name, _),) = row.cursor["sheets"][0]
    with (queue.work_folder(row.pk) / name).open("a") as file:
        file.write("half a li")
    queue.run_background_work()
    queue.run_background_work()
    row.refresh_from_db()
    assert [each["id"] for each in cells(row)] == [
        p.hex for p in Payment.objects.order_by("pk").values_list("pk", flat=True)
    ]


def test_without_the_right_the_export_ends(shop: Shop, monkeypatch: Any) -> None:
    """Brief: as far as its owner may see."""
    monkeypatch.setattr(payment_export, "EXPORT_SLICE_ROWS", 1)
    monkeypatch.setattr(queue, "MAX_TURN_S", 0.0)
    monkeypatch.setattr(queue, "MAX_BACKGROUND_RUN_S", 0.0)
    shop.api.pay()
    shop.api.pay()
    row = exported(shop, "csv")
    Grant.objects.all().delete()
    queue.run_background_work()
    row.refresh_from_db()
    assert row.state == BackgroundWork.State.FAILED
    assert "right" in row.message


@pytest.mark.parametrize("as_", payment_export.EXPORT_FORMATS)
@pytest.mark.parametrize(("stalled_at", "wakes_after"), [(0, 1), (0, 3), (1, 1), (1, 2), (2, 0), (2, 1)])
def test_a_worker_that_stalls_and_wakes_late_damages_nothing(
    shop: Shop, as_: str, stalled_at: int, wakes_after: int, monkeypatch: Any
) -> None:
    """Found in review: its lease lost, it wrote into the file of its successor, or threw the parts of that away."""
    monkeypatch.setattr(payment_export, "EXPORT_SLICE_ROWS", 2)
    monkeypatch.setattr(queue, "MAX_TURN_S", 0.0)
    monkeypatch.setattr(queue, "MAX_BACKGROUND_RUN_S", 0.0)
    made = [shop.api.pay(amount=f"{n}.00").id for n in range(1, 6)]
    owner = person("clara", "clerk", shop.merchant)
    parameters = {"format": as_, "filters": {}, "asked": {"shape": "", "value": ""}}
    row = queue.enqueue_work(payment_export.PAYMENT_EXPORT, "payments", parameters, owner=owner.pk, by=BY)
    for _ in range(stalled_at):
        queue.run_background_work()
    stalled = queue._claim_work(set(), {})
    assert stalled is not None
    BackgroundWork.objects.update(lease_until=clock.real_now())
    for _ in range(wakes_after):
        queue.run_background_work()
    queue._run_turn(stalled)
    while queue.run_background_work():
        pass
    row.refresh_from_db()
    assert row.state == BackgroundWork.State.DONE
    assert [each["id"] for each in cells(row)] == made


def test_a_time_in_a_sheet_is_a_time(shop: Shop) -> None:
    """Month end filters and pivots by date; a text would not be one."""
    paid = Payment.objects.get(pk=shop.api.pay().id)
    (row,) = cells(exported(shop, "xlsx"))
    assert row["created (UTC)"] == paid.created_at.replace(tzinfo=None, microsecond=0)
    assert row["state of the whole payment"] == "captured"

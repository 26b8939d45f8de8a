"""The pages of the books: upload with a look before, exceptions, payouts, reconciliation files."""

from __future__ import annotations

import random
import re
import stat
from datetime import timedelta
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from gateway.access.permissions import FULL_ACCESS
from gateway.backoffice.kit import time_limit
from gateway.core import clock
from gateway.models import AuditEntry, Payment
from gateway.outbound.page_calls import count_page_call
from reporting.admin import exception_queue as exceptions_page
from reporting.admin import home_settlements
from reporting.models import (
    ClearingInstitute,
    Finding,
    LineError,
    Match,
    MatchState,
    Settlement,
    SettlementFile,
    SettlementRecord,
)
from reporting.reconciliation import daily_files
from reporting.reconciliation.models import ReconciliationFile, SftpTarget
from reporting.settlement import exception_queue, intake, missing_settlements, pending_uploads
from tests.support.books import merchant_of
from tests.support.browser import send_file
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db
FILES, LINES = "/admin/reporting/settlementfile/", "/admin/reporting/settlementrecord/"
OUTGOING = "/admin/reporting/reconciliationfile/"
PAN = "4200000000000000"


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> Path:
    settings.GATEWAY_WORK_DIR, settings.GATEWAY_OUTBOX = str(tmp_path / "work"), str(tmp_path / "outbox")
    return tmp_path


@pytest.fixture
def of(db: None) -> ClearingInstitute:
    return institute()


@pytest.fixture
def max_(shop: Shop) -> Client:
    """The manager of the only merchant: reaches all that a file can speak of."""
    return signed_in(person("max", "manager", shop.merchant))


@pytest.fixture
def clara(shop: Shop) -> Client:
    return signed_in(person("clara", "clerk", shop.merchant))


def upload(client: Client, octets: bytes, name: str = "march.csv") -> Any:
    return send_file(client, f"{FILES}upload/", {"institute": "simulated", "file": SimpleUploadedFile(name, octets)})


def text(answer: Any) -> str:
    found: str = answer.content.decode()
    return found


def paid_line(shop: Shop, **changes: str) -> tuple[Payment, dict[str, str]]:
    payment = payment_of(shop.api.pay(merchantTransactionId="order-4711").id)
    return payment, line(payment, **changes)


def waiting(shop: Shop, of: ClearingInstitute, **changes: str) -> SettlementRecord:
    """A line that names an id nobody has."""
    row = {"ClearingInstituteMerchantId": shop.channel.pk.hex, "ConnectorTxId1": "unknown-1", **changes}
    take_in(csv([line(**row)]), of)
    return SettlementRecord.objects.get(tx_id1=row["ConnectorTxId1"])


def test_a_file_is_looked_at_before_it_is_read_and_read_in_the_background(
    max_: Client, shop: Shop, of: ClearingInstitute, places: Path
) -> None:
    _payment, good = paid_line(shop)
    answer = upload(max_, csv([good, {**good, "Amount": "much"}, {**good, "Descriptor": f"card {PAN}"}]))
    preview = text(max_.get(answer["Location"]))
    assert not SettlementFile.objects.exists()
    assert "much" in preview
    assert "<dd>CSV</dd>" in preview
    assert PAN not in preview
    assert all(PAN.encode() not in path.read_bytes() for path in places.rglob("*") if path.is_file())
    location = max_.post(answer["Location"], {"verb": "read"})["Location"]
    file = SettlementFile.objects.get()
    assert (file.state, file.received_by) == (SettlementFile.State.RECEIVED, "max")
    assert max_.get(f"{FILES}{file.pk}/state/").json()["ended"] is False
    assert "data-work" in text(max_.get(location))
    assert intake.process_file(file.pk)
    told = max_.get(f"{FILES}{file.pk}/state/").json()
    assert (told["ended"], told["share"], told["done"]) == (True, 100, 3)
    page = text(max_.get(location))
    assert "<strong>184.00</strong>" in page
    assert "TWICE" in page
    assert LineError.objects.get().message in page.replace("&#x27;", "'").replace("&quot;", '"')
    assert not [path for path in places.rglob("*") if path.is_file()]
    assert AuditEntry.objects.filter(action="receive", actor="max").count() == 1


def test_a_file_s_figures_make_all_its_lines_and_follow_what_a_clerk_does(
    max_: Client, shop: Shop, of: ClearingInstitute, places: Path
) -> None:
    """The picture; and step 5: what was marked is not waited for any more."""
    _payment, good = paid_line(shop)
    nobody = {**good, "ConnectorTxId1": "unknown-1", "TransactionId": ""}
    fee = {
        **good,
        "ReconciliationType": "FEE",
        "PaymentType": "MONTHLY",
        "Cashflow": "NEG",
        "ConnectorTxId1": "",
        "TransactionId": "",
    }
    octets = csv([good, nobody, fee, {**good, "Amount": "much"}])
    preview = text(max_.get(upload(max_, octets)["Location"]))
    assert '<th scope="col">Amount</th>' in preview
    assert '<th scope="col">BankCode</th>' not in preview
    file = take_in(octets, of)

    def shown() -> list[str]:
        page = text(max_.get(f"{FILES}{file.pk}/change/"))
        assert "Lines by what they are" in page
        return re.findall(r'<div class="ck-sum.*?<dd>(?:<a [^>]*>)?(\d+)', page)

    assert shown() == ["4", "1", "0", "1", "1", "1"]
    # On a phone an error is a card with all of its words: nothing has to be pushed aside to read what is wrong.
    assert '<td data-label="What is wrong">must be ' in text(max_.get(f"{FILES}{file.pk}/change/"))
    exception_queue.mark_without_payment(SettlementRecord.objects.get(tx_id1="unknown-1"), BY, "not ours")
    assert shown() == ["4", "1", "0", "0", "2", "1"]


def test_the_same_file_twice_is_seen_and_a_thrown_away_one_leaves_nothing(
    max_: Client, shop: Shop, of: ClearingInstitute, places: Path
) -> None:
    _payment, good = paid_line(shop)
    known = take_in(csv([good]), of)
    again = upload(max_, csv([good]))["Location"]
    answer = max_.post(again, {"verb": "read"}, follow=True)
    assert answer.redirect_chain[-1][0] == f"{FILES}{known.pk}/change/"
    assert "Nothing was read twice" in text(answer)
    other = upload(max_, csv([good, good]))["Location"]
    max_.post(other, {"verb": "drop"})
    assert max_.get(other).status_code == 404
    assert SettlementFile.objects.count() == 1
    assert not [path for path in places.rglob("*") if path.is_file()]


@pytest.mark.parametrize("octets", [b"", b"hello", b"%PDF-1.4", b"<?xml version='1.0'?><a/>", b"\x00\xff" * 50])
def test_what_is_no_settlement_file_is_refused_in_words(
    max_: Client, shop: Shop, of: ClearingInstitute, places: Path, octets: bytes
) -> None:
    answer = upload(max_, octets)
    assert answer.status_code == 400
    assert "ck-note bad" in text(answer)
    assert max_.post(f"{FILES}upload/", {"institute": "simulated"}).status_code == 400
    assert not [path for path in places.rglob("*") if path.is_file()]


def test_an_upload_is_for_whoever_uploaded_it_and_reaches_all_merchants(
    max_: Client, clara: Client, shop: Shop, of: ClearingInstitute, request: pytest.FixtureRequest
) -> None:
    _payment, good = paid_line(shop)
    kept = upload(max_, csv([good]))["Location"]
    assert clara.get(kept).status_code == clara.get(FILES).status_code == 403
    colleague = signed_in(person("mia", "manager", shop.merchant))
    assert colleague.get(kept).status_code == 404
    request.getfixturevalue("stranger")
    # Now the file could speak of a merchant that max does not reach.
    assert max_.get(FILES).status_code == max_.get(kept).status_code == upload(max_, b"x").status_code == 403


def test_of_several_candidates_one_is_chosen_and_the_choice_taken_back(
    clara: Client, shop: Shop, of: ClearingInstitute
) -> None:
    payments = [payment_of(shop.api.pay(merchantTransactionId="twin-4711").id) for _ in range(2)]
    take_in(csv([line(payments[0], ConnectorTxId1="", TransactionId="twin-4711")]), of)
    record = SettlementRecord.objects.get()
    assert record.state == MatchState.MULTIPLE_MATCHES
    page = text(clara.get(f"{LINES}{record.pk}/change/"))
    assert all(payment.pk.hex in page for payment in payments)
    assert str(record.pk) in text(clara.get(LINES, {"list": "multiple"}))
    back = clara.post(f"{LINES}{record.pk}/do/", {"verb": "link", "payment": payments[1].pk.hex})["Location"]
    record.refresh_from_db()
    assert record.state == MatchState.MATCHED
    assert Match.objects.get(chosen=True).payment == payments[1].pk
    assert 'value="undo"' in text(clara.get(back))
    clara.post(f"{LINES}{record.pk}/do/", {"verb": "undo"})
    record.refresh_from_db()
    assert record.state == MatchState.MULTIPLE_MATCHES
    done = AuditEntry.objects.filter(subject="settlementrecord", actor="clara").order_by("id")
    assert list(done.values_list("action", flat=True)) == ["link", "undo"]


def test_a_line_without_payment_is_searched_for_and_linked_or_marked(
    clara: Client, shop: Shop, stranger: Shop, of: ClearingInstitute
) -> None:
    mine, theirs = (one.api.pay(merchantTransactionId="lost-4711").id for one in (shop, stranger))
    record = waiting(shop, of, Amount="50.00")
    page = f"{LINES}{record.pk}/change/"
    found = text(clara.get(page, {"q": "lost-4711"}))
    assert payment_of(mine).pk.hex in found
    assert payment_of(theirs).pk.hex not in found
    for ident in (payment_of(theirs).pk.hex, "nonsense", "0" * 32, ""):
        answer = clara.post(f"{LINES}{record.pk}/do/", {"verb": "link", "payment": ident}, follow=True)
        assert "there is no such payment" in text(answer)
    asked = clara.get(page, {"q": PAN}, follow=True)
    assert asked.status_code == 200
    assert PAN not in text(asked)
    clara.post(f"{LINES}{record.pk}/do/", {"verb": "mark"})
    record.refresh_from_db()
    assert record.without_payment is False
    clara.post(f"{LINES}{record.pk}/do/", {"verb": "mark", "note": "a test of the bank's"})
    record.refresh_from_db()
    assert record.without_payment is True
    assert str(record.pk) not in text(clara.get(LINES))
    assert str(record.pk) in text(clara.get(LINES, {"list": "marked"}))
    clara.post(f"{LINES}{record.pk}/do/", {"verb": "undo"})
    clara.post(f"{LINES}{record.pk}/do/", {"verb": "link", "payment": payment_of(mine).pk.hex})
    record.refresh_from_db()
    assert record.state == MatchState.MATCHED
    # The amounts differ, and that is found and closed with a word.
    finding = record.findings.get(kind="AMOUNT")
    assert "AMOUNT" in text(clara.get(LINES, {"list": "findings"}))
    clara.post(f"{LINES}{record.pk}/finding/{finding.pk}/", {"note": ""})
    finding.refresh_from_db()
    assert finding.closed_at is None
    clara.post(f"{LINES}{record.pk}/finding/{finding.pk}/", {"note": "agreed with the bank"})
    finding.refresh_from_db()
    assert finding.closed_by == "clara"


def test_an_auditor_looks_and_changes_nothing(shop: Shop, of: ClearingInstitute) -> None:
    record = waiting(shop, of)
    auditor = signed_in(person("ada", "auditor", shop.merchant))
    assert "Mark it" not in text(auditor.get(f"{LINES}{record.pk}/change/"))
    assert auditor.post(f"{LINES}{record.pk}/do/", {"verb": "mark", "note": "x"}).status_code == 403
    developer = signed_in(person("dora", "developer", shop.merchant))
    assert developer.get(LINES).status_code == developer.get("/admin/reporting/settlement/").status_code == 403


def test_payouts_show_the_sums_of_their_lines(clara: Client, shop: Shop, of: ClearingInstitute) -> None:
    """Sums on screen are those of the rows."""
    _one, first = paid_line(shop, SettlementAmount="90.50", SettlementFee="1.50")
    _two, second = paid_line(shop, SettlementAmount="90.25", SettlementFee="1.75")
    take_in(csv([first, second]), of)
    page = text(clara.get("/admin/reporting/settlement/"))
    assert ">180.75</a></dd>" in page
    assert ">3.25</a></dd>" in page
    assert "As a table" in page
    address = re.search(r"/admin/reporting/settlement/[0-9a-f-]{36}/change/", page)
    assert address
    inside = text(clara.get(address[0]))
    assert "180.75 EUR" in inside
    assert inside.count("/admin/reporting/settlementrecord/") >= 2
    for odd in ("?day=x", "?to=9999-99-99", "?to=0001-01-01", "?day=2030-01-01", "?to=9999-12-31"):
        assert clara.get(f"/admin/reporting/settlement/{odd}").status_code == 200, odd


_NUMBER_LINK = re.compile(r'<a href="([^"]*list=[^"]*|\?currency[^"]*)">(?:<strong>)?([0-9,.-]+)(?: [A-Z]{3})?<')
_LISTED_SUM = re.compile(r"<dd>(-?[0-9,.]+)(?: [A-Z]{3})?</dd>")


def linked_numbers(page: str) -> list[tuple[str, str]]:
    """Address and number of each number that leads to a list of lines."""
    return [(unescape(address), number) for address, number in _NUMBER_LINK.findall(page)]


def test_the_list_behind_a_sum_of_a_file_or_a_payout_sums_to_it(
    clara: Client, max_: Client, shop: Shop, of: ClearingInstitute
) -> None:
    """In and out, failed lines and fees, of two currencies: what is listed has the number that was clicked."""
    chance = random.Random(29)
    lines = []
    for _each in range(12):
        amount = f"{chance.randint(100, 99_999) / 100:.2f}"
        _payment, made = paid_line(
            shop,
            SettlementAmount=amount,
            SettlementFee=f"{chance.randint(0, 99) / 100:.2f}",
            Cashflow=chance.choice(("POS", "NEG")),
            SettlementCurrency=chance.choice(("EUR", "GBP")),
            SettlementStatus=chance.choice(("SUCCESS", "SUCCESS", "FAILED")),
            SettlementFxRate="1.1",
        )
        lines.append(made)
    file = take_in(csv(lines), of)
    pages = [f"{FILES}{file.pk}/change/", "/admin/reporting/settlement/"]
    pages += [f"/admin/reporting/settlement/{one}/change/" for one in Settlement.objects.values_list("pk", flat=True)]
    for address in pages:
        client = max_ if address.startswith(FILES) else clara
        found = linked_numbers(text(client.get(address)))
        assert len(found) >= 5, address
        for target, number in found:
            target = f"{address}{target}" if target.startswith("?") else target
            behind = client.get(target)
            assert behind.status_code == 200
            if "currency=" in target and target.startswith(LINES):
                assert number in _LISTED_SUM.findall(text(behind)), (address, target, number)
            elif target.startswith(LINES):
                assert text(behind).count(f'href="{LINES}') >= int(number), (address, target, number)


def test_lines_are_listed_by_file_or_by_at_most_a_month(clara: Client, shop: Shop, of: ClearingInstitute) -> None:
    """Bad addresses list what is to be done, and never every line there is."""
    _payment, first = paid_line(shop, SettlementDate="2030-01-02")
    take_in(csv([first]), of)
    for query, listed in (
        ("from=2030-01-01&to=2030-01-31", True),
        ("from=2030-01-02&to=2030-01-02&matched=yes&currency=EUR&flow=POS&failed=no", True),
        ("from=2030-01-03&to=2030-01-31", False),
        ("from=2030-01-01&to=2030-01-31&currency=GBP", False),
        ("from=2029-01-01&to=2030-01-31", False),
        ("from=2030-01-31&to=2030-01-01", False),
        ("from=x&to=2030-01-31", False),
        ("from=2030-01-01", False),
        ("from=2030-01-01&to=2030-01-31&flow=x&failed=y&currency=eur", True),
    ):
        page = text(clara.get(f"{LINES}?list=lines&{query}"))
        assert (re.search(f'href="{LINES}[0-9a-f-]+/change/"', page) is not None) is listed, query


def test_a_payout_below_zero_is_pictured_and_fees_have_no_idle_decimals(
    clara: Client, shop: Shop, of: ClearingInstitute
) -> None:
    """What an institute takes back is no empty picture; a finer fee keeps what says something."""
    _payment, paid = paid_line(shop, SettlementAmount="90.4945", SettlementFee="1.5055")
    paid["SettlementAmount"] = "90.49"
    taken = line(
        ClearingInstituteMerchantId=shop.channel.pk.hex,
        ConnectorTxId1="unknown-1",
        PaymentType="REFUND",
        Amount="91.50",
        Currency="USD",
        SettlementCurrency="USD",
        SettlementDate=paid["SettlementDate"],
    )
    file = take_in(csv([paid, taken]), of, "f1.csv")
    page = text(clara.get("/admin/reporting/settlement/"))
    assert "Nothing in this time." not in page
    assert ">-91.50</a></dd>" in page
    assert '<td class="th-num">-91.50</td>' in page
    assert "taken back" in page
    assert ">1.5055</a></dd>" in page
    assert ">0.00</a></dd>" in page
    earlier = text(clara.get("/admin/reporting/settlement/?to=2020-01-01"))
    assert "Nothing was settled in these days." in earlier
    assert "Later" in earlier
    title = text(signed_in(person("mona", "manager", shop.merchant)).get(f"{FILES}{file.pk}/change/"))
    assert "f1.csv" in title
    assert "F1.csv" not in title


def test_a_days_file_is_fetched_and_made_again(
    max_: Client, clara: Client, shop: Shop, of: ClearingInstitute, places: Path
) -> None:
    _payment, good = paid_line(shop)
    take_in(csv([good]), of)
    assert f"<td>{shop.merchant.time_zone}</td>" in text(clara.get(f"{OUTGOING}daily/"))
    merchant = merchant_of(shop)
    merchant.clock_offset = (
        daily_files.compute_day_end(merchant, daily_files.find_next_day(merchant))
        + daily_files.DAY_END_GRACE
        - daily_files.clock.real_now()
    )  # type: ignore[arg-type]
    merchant.save(update_fields=["clock_offset"])
    assert daily_files.write_due_daily_files(merchant) == 1
    file = ReconciliationFile.objects.get()
    kept = daily_files.build_outbox_path(file).read_bytes()
    fetched = clara.get(f"{OUTGOING}{file.pk}/download/")
    assert b"".join(fetched.streaming_content) == kept  # type: ignore[attr-defined]
    assert AuditEntry.objects.filter(action="export fetched", subject="reconciliationfile", actor="clara").exists()
    daily_files.build_outbox_path(file).unlink()
    again = clara.get(f"{OUTGOING}{file.pk}/download/")
    assert b"".join(again.streaming_content) == kept  # type: ignore[attr-defined]
    assert clara.post(f"{OUTGOING}{file.pk}/again/").status_code == 403
    assert "byte for byte" in text(max_.post(f"{OUTGOING}{file.pk}/again/", follow=True))


def test_a_target_is_set_up_and_tried_and_its_secret_never_shown(
    max_: Client, clara: Client, shop: Shop, stranger: Shop
) -> None:
    page = f"{OUTGOING}target/{shop.merchant.pk}/"
    form = {
        "verb": "save",
        "host": "127.0.0.1",
        "port": "1",
        "username": "u",
        "folder": ".",
        "kind": "password",
        "secret": "correct-horse",
        "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1v0pXfYy7cM5m1mX0rOqZC1pQZ0m8m1m2m3m4m5m6m",
    }
    assert clara.get(page).status_code == 404
    assert max_.get(f"{OUTGOING}target/{stranger.merchant.pk}/").status_code == 404
    assert max_.post(page, {**form, "host_key": "nonsense"}).status_code == 400
    assert max_.post(page, {**form, "host_key": "ssh-ed25519 AAAAC3Nza"}).status_code == 400  # cut off while copying
    assert max_.post(page, {**form, "kind": "key"}).status_code == 400
    assert max_.post(page, {**form, "port": "0"}).status_code == 400
    assert not SftpTarget.objects.exists()
    assert max_.post(page, form).status_code == 302
    assert "correct-horse" not in text(max_.get(page))
    assert "It does not work: connecting failed" in text(max_.post(page, {"verb": "try"}, follow=True))
    with count_page_call(shop.merchant.pk), count_page_call(shop.merchant.pk):
        assert "Nothing was sent: other servers" in text(max_.post(page, {"verb": "try"}, follow=True))
    max_.post(page, {"verb": "off"})
    assert SftpTarget.objects.get().active is False
    assert "correct-horse" not in str(list(AuditEntry.objects.values_list("before", "after")))


def test_the_navigation_counts_what_waits_for_somebody(clara: Client, shop: Shop, of: ClearingInstitute) -> None:
    """Lines and findings, and nobody else's."""
    user = User.objects.get(username="clara")
    assert exceptions_page.count_open_exceptions(user) == 0
    waiting(shop, of)
    waiting(shop, of, ConnectorTxId1="unknown-2", Cashflow="NEG")
    waiting(shop, of, ConnectorTxId1="unknown-3", ClearingInstituteMerchantId="nobody")
    assert exceptions_page.count_open_exceptions(user) == 3
    assert re.search(r"rule_folder.{0,900}?Exceptions.{0,900}?>\s*3\s*<", text(clara.get("/admin/")), re.S)


def test_a_large_upload_lies_in_a_private_file_for_its_request_alone(
    max_: Client, shop: Shop, of: ClearingInstitute, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes may have card numbers in it."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    settings.FILE_UPLOAD_TEMP_DIR = str(temporary)
    seen: list[int] = []
    keep = pending_uploads.store_upload

    def watched(*told: Any, **named: Any) -> pending_uploads.PendingUpload:
        seen.extend(stat.S_IMODE(path.stat().st_mode) for path in temporary.iterdir())
        return keep(*told, **named)

    monkeypatch.setattr(pending_uploads, "store_upload", watched)
    _payment, good = paid_line(shop, Descriptor="x" * 100)
    content = csv([good] * 12_000)
    assert len(content) > settings.FILE_UPLOAD_MAX_MEMORY_SIZE
    assert upload(max_, content).status_code == 302
    assert seen == [0o600]
    assert list(temporary.iterdir()) == []


def test_payments_that_are_overdue_are_shown_to_their_merchant_and_told_by_the_command(
    clara: Client, shop: Shop, stranger: Shop
) -> None:
    """settles_within_days: by the merchant's clock; what was settled meanwhile is missing no more."""
    of = institute(settles_within_days=2, created_at=clock.real_now())
    late, settled = payment_of(shop.api.pay(merchantTransactionId="order-late").id), payment_of(shop.api.pay().id)
    take_in(csv([line(settled)]), of)
    assert "order-late" not in text(clara.get(LINES, {"list": "missing"}))
    out = StringIO()
    call_command("settlement_missing", stdout=out)
    assert out.getvalue() == "nothing is missing\n"
    jump(4 * 86_400)
    shown = text(clara.get(LINES, {"list": "missing"}))
    assert "order-late" in shown
    assert settled.connector_tx_id not in shown
    assert late.connector_tx_id not in text(
        signed_in(person("otto", "clerk", stranger.merchant)).get(LINES, {"list": "missing"})
    )
    with pytest.raises(CommandError, match="1 missing"):
        call_command("settlement_missing", "--institute", of.key, stdout=out)
    assert f"{late.id.hex} DB 92.00 EUR" in out.getvalue()
    take_in(csv([line(late)]), of, "late.csv")
    assert "order-late" not in text(clara.get(LINES, {"list": "missing"}))


def test_a_day_without_its_file_is_told_by_the_command(db: None) -> None:
    of = institute(expects_files_on=[1, 2, 3, 4, 5, 6, 7])
    first = clock.real_now() - timedelta(days=3)
    ClearingInstitute.objects.update(created_at=first)
    out = StringIO()
    with pytest.raises(CommandError, match=r"[34] missing"):  # midnight may pass in between
        call_command("settlement_missing", stdout=out)
    assert f"{of.key}: no file came on {first:%A, %Y-%m-%d}" in out.getvalue()


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_the_first_page_misses_files_by_the_day_of_their_institute(db: None, zone: str) -> None:
    """At any hour it is another day in one of the two than in UTC: neither a day that still runs is missed, nor one
    from before the institute was set up, and what came today stands on today."""
    of = institute(expects_files_on=[1, 2, 3, 4, 5, 6, 7], time_zone=zone)
    ClearingInstitute.objects.update(created_at=clock.real_now() - timedelta(days=1))
    take_in(csv([line()]), of)
    came = SettlementFile.objects.get().received_at.astimezone(of.zone)
    shown = home_settlements.build_settlement_panel(FULL_ACCESS)
    assert shown is not None
    missed = [
        f"{day:%Y-%m-%d}" for day in missing_settlements.list_recent_days_without_file(ClearingInstitute.objects.get())
    ]
    assert missed
    assert [name for name, *_ in shown.facts] == missed
    assert f"{came:%m-%d}" in shown.chart


def test_the_preview_says_what_the_file_makes_before_it_is_read(
    max_: Client, shop: Shop, of: ClearingInstitute, places: Path
) -> None:
    """By currency, as the page of the file says it afterwards; faulty lines are left out."""
    _payment, good = paid_line(shop, SettlementFee="1.50", SettlementAmount="90.50")
    back = {**good, "PaymentType": "REFUND", "SettlementAmount": "10.00", "SettlementFee": ""}
    pounds = {**good, "SettlementCurrency": "GBP", "SettlementFxRate": "1"}
    failed = {**good, "SettlementStatus": "FAILED"}
    octets = csv([good, back, pounds, failed, {**good, "Amount": "much"}])
    preview = text(max_.get(upload(max_, octets)["Location"]))
    sums = re.compile(r'<th scope="row">([A-Z]{3})</th>((?:<td class="num"[^>]*>.*?</td>){6})')

    def cells(page: str) -> list[list[str]]:
        return [[name, *re.findall(r">([^<>]+)<", row)] for name, row in sums.findall(page)]

    assert cells(preview) == [
        ["EUR", "3", "90.50", "10.00", "80.50", "1.50", "1"],
        ["GBP", "1", "90.50", "0.00", "90.50", "1.50", "0"],
    ]
    file = take_in(octets, of)
    assert cells(text(max_.get(f"{FILES}{file.pk}/change/"))) == cells(preview)


def test_many_lines_are_marked_and_many_findings_accepted_by_a_fixed_number_of_statements(
    clara: Client, shop: Shop, stranger: Shop, of: ClearingInstitute
) -> None:
    """What was picked, and of one's own merchants; undone as it was done."""
    paid = [payment_of(shop.api.pay(amount="92.00").id) for _ in range(3)]
    theirs = payment_of(stranger.api.pay(amount="20.00").id)
    rows = [line(one, Amount=f"{one.amount - number}") for number, one in enumerate(paid, start=1)]
    unknown = {"ClearingInstituteMerchantId": shop.channel.pk.hex, "Amount": "7.77"}
    rows += [line(**unknown, ConnectorTxId1=f"unknown-{number}") for number in (1, 2)]
    take_in(csv([*rows, line(theirs, Amount="19.00")]), of)
    findings = Finding.objects.filter(kind="AMOUNT", record__merchant=shop.merchant)
    foreign = Finding.objects.get(kind="AMOUNT", record__merchant=stranger.merchant)
    picked = {"list": "findings", "pick": [*findings.values_list("pk", flat=True), foreign.pk, "x"]}
    assert "say why this is accepted" in text(clara.post(f"{LINES}many/", {**picked, "note": " "}, follow=True))
    answer = clara.post(f"{LINES}many/", {**picked, "note": "agreed fees"}, follow=True)
    assert "3 findings were closed with your note." in text(answer)
    foreign.refresh_from_db()
    assert foreign.closed_at is None
    clara.post(f"{LINES}accept/", {"accepted": answer.redirect_chain[-1][0].split("accepted=")[1]})
    assert findings.filter(closed_at=None).count() == 3
    lines = SettlementRecord.objects.filter(state=MatchState.NOT_MATCHED, merchant=shop.merchant)
    keys = [one.hex for one in lines.values_list("pk", flat=True)]
    assert len(keys) == 2
    clara.post(f"{LINES}many/", {"list": "unmatched", "pick": keys, "note": "a test of the bank"})
    assert lines.filter(without_payment=True).count() == 2
    assert AuditEntry.objects.filter(action="mark", actor="clara").count() == 2
    clara.post(f"{LINES}many/", {"list": "marked", "pick": keys})
    assert lines.filter(without_payment=True).count() == 0
    assert "Select lines first" in text(clara.post(f"{LINES}many/", {"list": "open", "note": "x"}, follow=True))


def test_what_is_accepted_or_picked_is_of_the_days_of_the_list(
    clara: Client, shop: Shop, of: ClearingInstitute
) -> None:
    """The list was narrowed by days, so the form below it is, too; days that are none narrow nothing away."""
    days = ("2030-01-02", "2030-01-02", "2030-01-20")
    paid = [payment_of(shop.api.pay(amount="92.00").id) for _ in days]
    rows = [line(one, Amount="91.00", SettlementDate=day) for one, day in zip(paid, days, strict=True)]
    take_in(csv(rows), of)
    findings = Finding.objects.filter(kind="AMOUNT", closed_at=None)
    assert findings.count() == 3
    place = {"from": "2030-01-01", "to": "2030-01-05"}
    page = text(clara.get(LINES, {"list": "findings", **place}))
    assert "2 lines differ by the same -1.00 EUR" in page
    (card,) = re.findall(r'<form[^>]*/accept/".*?</form>', page, re.DOTALL)
    for name, value in place.items():
        assert f'<input type="hidden" name="{name}" value="{value}">' in card
        assert page.count(f'<input type="hidden" name="{name}" value="{value}">') == 2, "the picked ones' form, too"
    form = {"currency": "EUR", "difference": "-1.00", "note": "a fee of one euro"}
    for odd in ({"from": "2030-01-01"}, {"from": "x", "to": "y"}, {"from": "2029-01-01", "to": "2030-01-31"}):
        assert "from, to: two days" in text(clara.post(f"{LINES}accept/", {**form, **odd}, follow=True))
    assert "there is no such file" in text(clara.post(f"{LINES}accept/", {**form, "file": "x"}, follow=True))
    assert findings.all().count() == 3
    answer = clara.post(f"{LINES}accept/", {**form, **place}, follow=True)
    assert "2 findings were closed with your note." in text(answer)
    assert "from=2030-01-01&to=2030-01-05" in answer.redirect_chain[-1][0]
    left = findings.get()
    assert left.record.settlement_date.isoformat() == "2030-01-20"
    picked = {"list": "findings", "pick": [left.pk], "note": "agreed"}
    clara.post(f"{LINES}many/", {**picked, **place})
    assert findings.count() == 1, "not of these days"
    answer = clara.post(f"{LINES}many/", {**picked, "from": "2030-01-20", "to": "2030-01-20"})
    assert "from=2030-01-20&to=2030-01-20" in answer["Location"]
    assert findings.count() == 0


def test_a_list_of_too_many_lines_says_so(
    clara: Client, shop: Shop, of: ClearingInstitute, monkeypatch: pytest.MonkeyPatch
) -> None:
    _payment, made = paid_line(shop, SettlementDate="2030-01-02")
    take_in(csv([made]), of)
    monkeypatch.setattr(time_limit, "SEARCH_TIMEOUT_MS", 50)

    def sleep_first(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if '"date" BETWEEN' in sql:
            execute("SELECT pg_sleep(10)", None, False, context)
        return execute(sql, params, many, context)

    for name in ("lines", "findings", "open"):
        with connection.execute_wrapper(sleep_first):
            page = text(clara.get(LINES, {"list": name, "from": "2030-01-01", "to": "2030-01-31"}))
        assert "Choose fewer days, or one file." in page
        assert "Nothing to do" not in page


def test_equal_differences_are_accepted_together_and_taken_back(
    clara: Client, shop: Shop, stranger: Shop, of: ClearingInstitute
) -> None:
    """Lines that differ by the same amount; no other line, and nobody else's."""
    payments = [payment_of(shop.api.pay(amount=amount).id) for amount in ("92.00", "50.00", "10.00")]
    theirs = payment_of(stranger.api.pay(amount="20.00").id)
    rows = [line(one, Amount=f"{one.amount - by}") for one, by in zip(payments, (1, 1, 2), strict=True)]
    take_in(csv([*rows, line(theirs, Amount="19.00")]), of)
    page = text(clara.get(LINES, {"list": "findings"}))
    assert "2 lines differ by the same -1.00 EUR. Why is that right?" in page
    form = {"currency": "EUR", "difference": "-1.00"}
    answer = clara.post(f"{LINES}accept/", {**form, "note": ""}, follow=True)
    assert "say why this is accepted" in text(answer)
    answer = clara.post(f"{LINES}accept/", {**form, "note": "a fee of one euro"}, follow=True)
    closed = Finding.objects.filter(kind="AMOUNT", closed_by="clara", note="a fee of one euro")
    assert {one.payment for one in closed} == {one.pk for one in payments[:2]}
    assert "2 findings were closed with your note." in text(answer)
    assert AuditEntry.objects.filter(action="close", actor="clara").count() == 2
    stamp = answer.redirect_chain[-1][0].split("accepted=")[1]
    mia = signed_in(person("mia", "clerk", shop.merchant))
    mia.post(f"{LINES}accept/", {"accepted": stamp})
    assert closed.all().count() == 2, "one's own acceptance alone is taken back"
    undone = clara.post(f"{LINES}accept/", {"accepted": stamp}, follow=True)
    assert "2 findings are open again." in text(undone)
    assert closed.all().count() == 0
    assert Finding.objects.filter(kind="AMOUNT", closed_at=None).count() == 4
    for odd in ("x", "NaN", "1e999999", ""):
        assert clara.post(f"{LINES}accept/", {**form, "difference": odd, "note": "x"}).status_code == 302
    for odd in ("9" * 17, "9" * 40, "-1", "٣"):
        assert clara.get(LINES, {"list": "findings", "accepted": odd}).status_code == 200

"""Long lists of the books are read page by page: every row is reached once, and a page stands still while rows
arrive."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.test import Client

from chargebacks.models import Chargeback
from gateway.backoffice.kit import keyset
from gateway.core import clock, identifiers
from reporting.models import ClearingInstitute, Settlement, SettlementFile
from reporting.reconciliation.models import ReconciliationFile
from reporting.settlement.models import RemoteFile, SftpSource
from tests.support.books import merchant_of
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import csv, institute, line, take_in

pytestmark = pytest.mark.django_db
SIZE = 5
"""Rows of a page here, but where the real number is tried."""
ROWS = re.compile(r"<tbody>(.*?)</tbody>", re.S)
NEXT = re.compile(r'rel="next" href="([^"]*)"')
ODD = (
    "", "x", "-", "--", "-1", f"{'9' * 19}-{'f' * 32}", "9" * 400, f"1-{'f' * 31}", "²-1", "1-1-1-1",
    "٣-1", "after", "1e3-1",
)  # fmt: skip
"""Names of no row of any list, as they stand in an address."""
Made = Callable[[int], None]


@pytest.fixture(autouse=True)
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """One row more than a page has."""
    if "really" not in request.node.name:
        monkeypatch.setattr(keyset, "KEYSET_PAGE_ROWS", SIZE)
    return keyset.KEYSET_PAGE_ROWS + 1


@pytest.fixture
def of(db: None) -> ClearingInstitute:
    return institute()


@pytest.fixture
def max_(shop: Shop) -> Client:
    return signed_in(person("max", "manager", shop.merchant))


def listed(page: str, mark: str) -> list[str]:
    """What ``mark`` finds in the tables of a page, in their order."""
    return [found for table in ROWS.findall(page) for found in re.findall(mark, table)]


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return str(answer.content.decode())


def walked(client: Client, base: str, query: str, mark: str) -> Iterator[tuple[str, list[str]]]:
    """(address, rows) of every page from the first one on."""
    while True:
        page = text(client, f"{base}{query}")
        yield query, listed(page, mark)
        if not (found := NEXT.search(page)):
            return
        query = html.unescape(found[1]).partition("#")[0]


def goes_page_by_page(client: Client, base: str, query: str, mark: str, make: Made) -> None:
    """There is one row more than a page has; ``make(n)`` adds n, which stand where new rows of this list stand."""
    (_first, top), (second, rest) = list(walked(client, base, query, mark))
    assert (len(top), len(rest)) == (keyset.KEYSET_PAGE_ROWS, 1)
    assert len({*top, *rest}) == keyset.KEYSET_PAGE_ROWS + 1
    parameters = dict(part.partition("=")[::2] for part in query[1:].split("&") if part)
    assert all(f"{name}={value}" in second for name, value in parameters.items())
    make(2)
    again = listed(text(client, f"{base}{second}"), mark)
    assert again[:1] == rest
    assert not set(again) & set(top)
    pages = [rows for _query, rows in walked(client, base, query, mark)]
    assert len(set().union(*pages)) == sum(map(len, pages)) == keyset.KEYSET_PAGE_ROWS + 3
    odd = [text(client, f"{base}?{query[1:]}&after={one}") for one in ODD]
    assert all(listed(page, mark) == pages[0] for page in odd)


def lines(shop: Shop, of: ClearingInstitute, many: int, name: str = "lines.csv", **changes: str) -> SettlementFile:
    """Lines about payments that nobody has made."""
    own = shop.channel.pk.hex
    return take_in(
        csv(
            line(**{"ClearingInstituteMerchantId": own, "ConnectorTxId1": f"unknown-{name}-{number:04d}", **changes})
            for number in range(many)
        ),
        of,
        name,
    )


def files(of: ClearingInstitute, many: int) -> list[SettlementFile]:
    return SettlementFile.objects.bulk_create(
        SettlementFile(
            institute=of,
            name=f"{number}.csv",
            sha256=identifiers.row_id().hex,
            size=1,
            format="CSV",
            time_zone="UTC",
            source=SettlementFile.Source.COMMAND,
            received_by="tests",
            received_at=clock.real_now(),
            lines=1,
            state=SettlementFile.State.DONE,
        )
        for number in range(many)
    )


def settlements(shop: Shop, of: ClearingInstitute, many: int) -> None:
    Settlement.objects.bulk_create(
        Settlement(
            institute=of,
            institute_merchant_id=shop.channel.pk.hex,
            reference=f"payout-{identifiers.row_id().hex}",
            date=date(2030, 1, 2),
            currency="EUR",
            merchant=merchant_of(shop),
            created_at=clock.real_now(),
        )
        for _number in range(many)
    )


def disputes(shop: Shop, many: int) -> None:
    """Cases of payments that are not looked at here; what is new is due later."""
    now = clock.real_now()
    Chargeback.objects.bulk_create(
        Chargeback(
            id=identifiers.row_id(),
            merchant=merchant_of(shop),
            channel=shop.channel,
            disputed=UUID(int=1),
            chain=UUID(int=1),
            state=Chargeback.State.OPEN,
            source=Chargeback.Source.HAND,
            reason_code="000.100.206",
            amount=Decimal(10),
            currency="EUR",
            brand="VISA",
            opened_at=now,
            due_at=now + timedelta(days=9),
        )
        for _number in range(many)
    )


LINES = "/admin/reporting/settlementrecord/"
LINE = LINES + r"([0-9a-f-]{36})/change/"


def test_the_hundred_and_first_exception_is_really_reached(
    max_: Client, shop: Shop, of: ClearingInstitute, many: int
) -> None:
    assert many == 101
    lines(shop, of, many)
    assert [len(rows) for _query, rows in walked(max_, LINES, "", LINE)] == [100, 1]


def test_exceptions_and_the_lines_of_a_file(max_: Client, shop: Shop, of: ClearingInstitute, many: int) -> None:
    file = lines(shop, of, many, Cashflow="NEG")
    assert file.unmatched == many
    more = iter(range(99))

    def make(number: int) -> None:
        lines(shop, of, number, f"more-{next(more)}.csv", Cashflow="NEG")

    goes_page_by_page(max_, LINES, "?list=unmatched", LINE, make)
    # A file's own lines stand still whatever other files bring.
    pages = [rows for _query, rows in walked(max_, LINES, f"?list=lines&file={file.pk.hex}", LINE)]
    assert [len(rows) for rows in pages] == [keyset.KEYSET_PAGE_ROWS, 1]
    assert len(set(pages[0] + pages[1])) == many
    assert f"list=lines&amp;file={file.pk}" in text(max_, f"/admin/reporting/settlementfile/{file.pk}/change/")
    assert "list=lines" not in text(max_, LINES)


def test_findings(max_: Client, shop: Shop, of: ClearingInstitute, many: int) -> None:
    lines(shop, of, many, Cashflow="NEG")
    goes_page_by_page(
        max_, LINES, "?list=findings&kind=DIRECTION", LINE, lambda n: lines(shop, of, n, "n.csv", Cashflow="NEG")
    )


def test_payouts_and_the_lines_of_one(max_: Client, shop: Shop, of: ClearingInstitute, many: int) -> None:
    lines(shop, of, many)
    base = "/admin/reporting/settlement/"
    payout = Settlement.objects.get()
    goes_page_by_page(max_, f"{base}{payout.pk}/change/", "", LINE, lambda n: lines(shop, of, n, "new.csv"))
    settlements(shop, of, many - 1)
    mark = base + r"([0-9a-f-]{36})/change/\">\d{4}-"  # by its day; what is to do links there, too
    goes_page_by_page(max_, base, "?to=2030-01-02", mark, lambda n: settlements(shop, of, n))


def test_settlement_files_and_what_was_faulty_in_one(
    max_: Client, shop: Shop, of: ClearingInstitute, many: int
) -> None:
    base = "/admin/reporting/settlementfile/"
    file = lines(shop, of, many, "faulty.csv", Amount="much")
    mark = r'<th scope="row" class="num">(\d+)</th>'
    pages = [rows for _query, rows in walked(max_, f"{base}{file.pk}/change/", "", mark)]
    # A file's faults are what they are; only that each is reached once can be asked.
    faulty = [row for rows in pages for row in rows]
    assert len(pages) > 1
    assert len(set(faulty)) == many
    files(of, many - 1)
    goes_page_by_page(max_, base, "", base + r"([0-9a-f-]{36})/change/", lambda n: files(of, n) and None)


def test_disputes(max_: Client, shop: Shop, many: int) -> None:
    base = "/admin/chargebacks/chargeback/"
    disputes(shop, many)
    mark = base + r"([0-9a-f-]{36})/change/"
    goes_page_by_page(max_, base, "?list=all&reason=000.100.206", mark, lambda n: disputes(shop, n))
    Chargeback.objects.all().delete()
    disputes(shop, many)
    goes_page_by_page(max_, base, "?list=open", mark, lambda n: disputes(shop, n))


def test_reconciliation_files(max_: Client, shop: Shop, many: int) -> None:
    merchant, now, days = merchant_of(shop), clock.real_now(), iter(range(999))

    def make(number: int) -> None:
        ReconciliationFile.objects.bulk_create(
            ReconciliationFile(
                merchant=merchant,
                day=date(2026, 1, 1) + timedelta(days=next(days)),
                begins_at=now,
                ends_at=now,
                names={},
                offset=timedelta(),
            )
            for _place in range(number)
        )

    make(many)
    base = "/admin/reporting/reconciliationfile/"
    goes_page_by_page(max_, base, "", base + r"([0-9a-f-]{36})/change/", make)


def test_files_that_were_seen_at_a_source(shop: Shop, of: ClearingInstitute, many: int) -> None:
    boss = signed_in(person("boss", "psp", shop.merchant.division.psp))
    source = SftpSource.objects.create(
        institute=of,
        host="127.0.0.1",
        port=22,
        username="u",
        folder=".",
        host_key="k",
        secret_kind="password",
        secret_sealed=b"x",
        due_at=clock.real_now(),
        active=False,
    )
    numbers = iter(range(999))

    def make(number: int) -> None:
        RemoteFile.objects.bulk_create(
            RemoteFile(source=source, name=f"n{next(numbers)}.csv", size=1, modified=1, seen_at=clock.real_now())
            for _place in range(number)
        )

    make(many)
    goes_page_by_page(boss, f"/admin/reporting/settlementfile/source/{of.pk}/", "", r">(n\d+\.csv)<", make)


@pytest.mark.parametrize(
    "odd",
    [
        f"{'9' * 18}-{'f' * 32}",
        f"0-{'0' * 32}",
        f"{'9' * 18}-{'9' * 18}",
        "0-0",
        "9" * 18,
        "0",
        "f" * 32,
        "0" * 32,
    ],
)
def test_a_row_that_cannot_be_is_no_fault_of_ours(max_: Client, shop: Shop, of: ClearingInstitute, odd: str) -> None:
    """Names of the right form: a page behind no row."""
    file = lines(shop, of, 1, "one.csv")
    payout = Settlement.objects.get()
    for address in (
        LINES,
        f"{LINES}?list=findings&",
        f"{LINES}?list=lines&file={file.pk.hex}&",
        "/admin/reporting/settlement/",
        f"/admin/reporting/settlement/{payout.pk}/change/",
        "/admin/reporting/settlementfile/",
        f"/admin/reporting/settlementfile/{file.pk}/change/",
        "/admin/reporting/reconciliationfile/",
        "/admin/chargebacks/chargeback/",
        "/admin/chargebacks/chargeback/?list=all&",
    ):
        assert max_.get(f"{address}{'' if '?' in address else '?'}after={odd}").status_code == 200, address

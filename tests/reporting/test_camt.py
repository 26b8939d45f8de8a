"""camt.053: a bank's statement in XML. Source: docs/settlement-files.md."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest

from chargebacks.models import Chargeback
from gateway.models import Payment
from reporting.models import Match, SettlementFile, SettlementRecord
from reporting.settlement import files, intake
from reporting.settlement.formats.camt053 import CAMT053_FORMAT
from reporting.settlement.formats.port import UnreadableFileError
from reporting.settlement.layout import COLUMN_NAMES
from tests.support.fixtures import Shop
from tests.support.settlement import BY, institute, payment_of, take_in

pytestmark = pytest.mark.django_db
SPACE = "urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"


def statement(
    *entries: str, account: str = "DE02120300000000202051", count: int | None = None, head: str = ""
) -> bytes:
    summary = f"<TxsSummry><TtlNtries><NbOfNtries>{count}</NbOfNtries></TtlNtries></TxsSummry>" if count else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>{head}<Document xmlns="{SPACE}"><BkToCstmrStmt>'
        f"<GrpHdr><MsgId>M1</MsgId></GrpHdr><Stmt><Id>STMT-1</Id><Acct><Id><IBAN>{account}</IBAN></Id><Ccy>EUR</Ccy></Acct>{summary}"
        f"{''.join(entries)}</Stmt></BkToCstmrStmt></Document>"
    ).encode()


def entry(
    amount: str,
    *details: str,
    flow: str = "CRDT",
    status: str = "<Cd>BOOK</Cd>",
    code: str = "",
    day: str = "2030-01-02",
) -> str:
    return (
        f'<Ntry><NtryRef>N1</NtryRef><Amt Ccy="EUR">{amount}</Amt><CdtDbtInd>{flow}</CdtDbtInd><Sts>{status}</Sts>'
        f"<BookgDt><Dt>{day}</Dt></BookgDt><AcctSvcrRef>BANK-REF</AcctSvcrRef>"
        f"<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RDDT</Cd><SubFmlyCd>{code or 'ESDD'}</SubFmlyCd></Fmly></Domn></BkTxCd>"
        f"<NtryDtls>{''.join(details)}</NtryDtls></Ntry>"
    )


def details(end_to_end: str, amount: str = "92.00", more: str = "", tx: str = "") -> str:
    tx = f"<TxId>{tx}</TxId>" if tx else ""
    return (
        f'<TxDtls><Refs><EndToEndId>{end_to_end}</EndToEndId>{tx}</Refs><Amt Ccy="EUR">{amount}</Amt>{more}'
        "<RltdPties><Dbtr><Pty><Nm>Jane Jones</Nm></Pty></Dbtr>"
        "<DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct></RltdPties></TxDtls>"
    )


def test_a_batch_of_collections_a_return_and_a_charge_are_lines_of_their_own(shop: Shop) -> None:
    one, two = payment_of(shop.api.pay().id), payment_of(shop.api.pay().id)
    returned = "<RtrInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>Account closed</AddtlInf></RtrInf>"
    content = statement(
        entry("184.00", details(one.id.hex), details("order-2", tx=two.connector_tx_id)),
        entry("92.00", details(one.id.hex, more=returned), flow="DBIT"),
        entry("3.50", flow="DBIT", code="CHRG"),
        entry("1.00", details("pending"), status="<Cd>PDNG</Cd>"),
        count=4,
        account=shop.channel.id.hex,
    )
    file = take_in(content, institute(), "statement.xml")
    rows = list(SettlementRecord.objects.order_by("line"))
    told = [(row.record_type, row.transaction_type, row.cashflow, row.state) for row in rows]
    assert told == [
        ("SETTLED", "DEBIT", "POS", "MATCHED"),
        ("SETTLED", "DEBIT", "POS", "MATCHED"),
        ("CHARGEBACK", "DEBIT", "NEG", "MATCHED"),
        ("FEE", "MONTHLY", "NEG", ""),
    ]
    assert [match.payment for match in Match.objects.order_by("record__line")] == [one.id, two.id, one.id]
    assert (rows[0].settlement.reference, rows[0].last4, rows[0].account_holder) == ("STMT-1", "3000", "Jane Jones")
    assert (rows[1].merchant_transaction_id, rows[2].reason_code) == ("order-2", "000.100.202")
    assert (file.format, file.totals["said"], file.totals["pending"]) == ("CAMT.053", 4, 1)
    case = Chargeback.objects.get()
    assert (case.disputed, case.reason_code, Payment.objects.filter(payment_type="CB").count()) == (
        one.id,
        "000.100.202",
        1,
    )


def test_another_currency_and_charges_are_told_apart(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    more = (
        '<AmtDtls><InstdAmt><Amt Ccy="USD">100.00</Amt></InstdAmt></AmtDtls>'
        '<Chrgs><Rcrd><Amt Ccy="EUR">0.30</Amt></Rcrd><Rcrd><Amt Ccy="EUR">0.20</Amt></Rcrd></Chrgs>'
    )
    content = statement(entry("92.00", details(payment.id.hex, more=more)), account=shop.channel.id.hex)
    take_in(content, institute(), "fx.xml")
    row = SettlementRecord.objects.get()
    assert (row.amount, row.currency, row.settlement_amount, row.settlement_currency) == (
        Decimal("100.00"),
        "USD",
        Decimal("92.00"),
        "EUR",
    )
    assert (row.settlement_fee, row.fx_rate) == (Decimal("0.5"), Decimal("0.92"))


def test_a_return_with_charges_is_a_chargeback_of_the_payment_and_a_fee(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    more = (
        '<AmtDtls><InstdAmt><Amt Ccy="EUR">92.00</Amt></InstdAmt></AmtDtls>'
        '<Chrgs><Rcrd><Amt Ccy="EUR">3.00</Amt><ChrgInclInd>true</ChrgInclInd></Rcrd></Chrgs>'
        "<RtrInf><Rsn><Cd>MD01</Cd></Rsn></RtrInf>"
    )
    content = statement(
        entry("95.00", details(payment.id.hex, amount="95.00", more=more), flow="DBIT"), account=shop.channel.id.hex
    )
    take_in(content, institute(), "returned.xml")
    row = SettlementRecord.objects.get()
    assert (row.amount, row.settlement_amount, row.settlement_fee) == (Decimal("92"), Decimal("95"), Decimal("3"))
    case = Chargeback.objects.get()
    assert (Payment.objects.get(pk=case.pk).amount, case.reason_code) == (Decimal("92.00"), "000.100.204")


@pytest.mark.parametrize(
    "content, why",
    [
        (statement(head='<!DOCTYPE a [<!ENTITY b "c">]>'), "document type"),
        (statement(head='<!DOCTYPE a SYSTEM "file:///etc/passwd">'), "document type"),
        (b"<Document xmlns='" + SPACE.encode() + b"'>" + b"<a>" * 100, "nested deeper"),
        (statement(entry("1.00"))[:-20], "broken at line"),
        (statement().replace(b"camt.053", b"camt.054") + b"<!-- camt.053 -->", "no camt.053"),
        (b"<?xml version='1.0'?><?evil camt.053?><Document/>", "processing instruction"),
    ],
)
def test_hostile_and_broken_xml_is_refused_before_anything_is_kept(db: None, content: bytes, why: str) -> None:
    with pytest.raises(UnreadableFileError, match=why):
        files.receive_file(io.BytesIO(content), name="x.xml", institute=institute(), by=BY, source="upload")
    assert not SettlementFile.objects.exists()


def test_reading_a_statement_goes_on_behind_the_last_batch(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "INTAKE_BATCH_LINES", 3)
    content = statement(*(entry("1.00", details(f"order-{number:04d}", "1.00")) for number in range(10)))
    file = files.receive_file(io.BytesIO(content), name="x.xml", institute=institute(), by=BY, source="upload")
    write, left = intake._write_batch, [2]

    class KilledError(Exception):
        pass

    def dies(*arguments: object) -> None:
        if left[0] == 0:
            raise KilledError
        left[0] -= 1
        write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(intake, "_write_batch", dies)
    assert intake.process_file(file.pk) is False
    assert SettlementRecord.objects.count() == 6
    SettlementFile.objects.update(lease_until=None)
    monkeypatch.setattr(intake, "_write_batch", write)
    assert intake.process_file(file.pk)
    kept = SettlementRecord.objects.order_by("line").values_list("merchant_transaction_id", flat=True)
    assert list(kept) == [f"order-{number:04d}" for number in range(10)]


def test_a_line_of_a_statement_without_an_amount_is_faulty_and_the_others_are_read(shop: Shop) -> None:
    content = statement(entry("x", details("order-0001", "x")), entry("1.00", details("order-0002", "1.00")))
    file = take_in(content, institute(), "x.xml")
    assert (file.lines, file.records, file.faults) == (2, 1, 1)


def test_numbers_that_nobody_can_reckon_with_are_errors_of_their_line(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    more = '<AmtDtls><InstdAmt><Amt Ccy="USD">1E-999999</Amt></InstdAmt></AmtDtls>'
    file = take_in(
        statement(entry("1.00", details("NOTPROVIDED", "1E999999", more)), entry("92.00", details(payment.id.hex))),
        institute(),
    )
    assert (file.state, file.records, file.faults) == ("DONE", 1, 1)


def test_a_batch_whose_transactions_have_no_amounts_is_not_counted_for_each_of_them(shop: Shop) -> None:
    one = "<TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs></TxDtls>"
    file = take_in(statement(entry("30.00", one, one, one), entry("12.00", one)), institute())
    assert (file.state, file.records, file.faults) == ("DONE", 1, 3)
    assert SettlementRecord.objects.get().settlement_amount == Decimal("12.00")


def test_a_collection_that_is_booked_back_without_a_reason_is_a_chargeback(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    back = entry("92.00", details(payment.id.hex), flow="DBIT").replace("<Sts>", "<RvslInd>true</RvslInd><Sts>")
    take_in(statement(back), institute())
    assert SettlementRecord.objects.get().record_type == "CHARGEBACK"
    assert Chargeback.objects.get().reason_code == "000.100.200"


def test_a_return_that_was_won_back_reverses_its_chargeback(shop: Shop) -> None:
    payment, bank = payment_of(shop.api.pay().id), institute()
    for flow, day in (("DBIT", "2030-01-08"), ("CRDT", "2030-01-20")):
        more = "<RtrInf><Rsn><Cd>MD06</Cd></Rsn></RtrInf>" if flow == "DBIT" else REVERSED
        one = entry("92.00", details(payment.id.hex, more=more + coded("UPDD")), flow=flow, day=day)
        file = take_in(statement(one, account=shop.channel.id.hex), bank, f"{flow}.xml")
        assert (file.records, file.faults) == (1, 0)
    kinds = SettlementRecord.objects.order_by("id").values_list("record_type", "state", "settlement_status")
    assert list(kinds) == [("CHARGEBACK", "MATCHED", "SUCCESS"), ("CHARGEBACK REVERSAL", "MATCHED", "SUCCESS")]
    assert sorted(Payment.objects.exclude(pk=payment.id).values_list("payment_type", flat=True)) == ["CB", "CR"]


# --- one entry after the other, in the columns of the layout --------------------------------------------------------


def lines(content: bytes, after: int = 0) -> list[dict[str, str]]:
    """What the adapter reads of a statement: the columns of each line that have a value."""
    opened = CAMT053_FORMAT.open(io.BytesIO(content), after, 0)
    return [
        {name: text for name, text in zip(COLUMN_NAMES, one.values or (), strict=True) if text} for one in opened.lines
    ]


PARTIES = (
    "<RltdPties><Dbtr><Nm>Debtor</Nm></Dbtr><DbtrAcct><Id><IBAN>DE00000000000000001111</IBAN></Id></DbtrAcct>"
    "<Cdtr><Pty><Nm>Creditor</Nm></Pty></Cdtr><CdtrAcct><Id><IBAN>DE00000000000000002222</IBAN></Id></CdtrAcct>"
    "</RltdPties><RltdAgts><DbtrAgt><FinInstnId><BIC>DEBTDEFF</BIC></FinInstnId></DbtrAgt>"
    "<CdtrAgt><FinInstnId><BICFI>CREDDEFF</BICFI></FinInstnId></CdtrAgt></RltdAgts>"
)
DEBTOR = {"AccountHolder": "Debtor", "AccountNumberLast4": "1111", "BankCode": "DEBTDEFF"}
CREDITOR = {"AccountHolder": "Creditor", "AccountNumberLast4": "2222", "BankCode": "CREDDEFF"}
RETURN = "<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>"
MANDATE = "<Refs><MndtId>M</MndtId></Refs>"
REVERSED = "<RvslInd>true</RvslInd>"


def coded(family: str) -> str:
    """A bank transaction code of the transaction itself."""
    return f"<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>IDDT</Cd><SubFmlyCd>{family}</SubFmlyCd></Fmly></Domn></BkTxCd>"


@pytest.mark.parametrize(
    ("flow", "more", "expected"),
    [
        ("CRDT", "", {"ReconciliationType": "SETTLED", "PaymentType": "DEBIT", "Cashflow": "POS", **DEBTOR}),
        ("DBIT", "", {"ReconciliationType": "SETTLED", "PaymentType": "REFUND", "Cashflow": "NEG", **CREDITOR}),
        (
            "DBIT",
            RETURN,
            {
                "ReconciliationType": "CHARGEBACK", "PaymentType": "DEBIT", "Cashflow": "NEG",
                "ReasonCode": "000.100.202", "ReasonDesc": "AC04", **DEBTOR,
            },
        ),
        (
            "DBIT",
            REVERSED,
            {
                "ReconciliationType": "CHARGEBACK", "PaymentType": "DEBIT", "Cashflow": "NEG",
                "ReasonCode": "000.100.200", **DEBTOR,
            },
        ),
        *(
            (
                "DBIT",
                coded(family),
                {
                    "ReconciliationType": "CHARGEBACK", "PaymentType": "DEBIT", "Cashflow": "NEG",
                    "ReasonCode": "000.100.200", **DEBTOR,
                },
            )
            for family in ("UPDD", "RCDD")
        ),
        # The creditor's own reversal of a collection is a refund.
        (
            "DBIT",
            coded("PRDD"),
            {"ReconciliationType": "SETTLED", "PaymentType": "REFUND", "Cashflow": "NEG", **CREDITOR},
        ),
        (
            "CRDT",
            coded("RRTN"),
            {
                "ReconciliationType": "SETTLED", "PaymentType": "REFUND", "Cashflow": "POS",
                "SettlementStatus": "FAILED", **DEBTOR,
            },
        ),
        # A return that the debtor's bank paid back; the creditor's own reversal that came back is a refund that failed.
        *(
            (
                "CRDT",
                more,
                {"ReconciliationType": "CHARGEBACK REVERSAL", "PaymentType": "DEBIT", "Cashflow": "POS", **DEBTOR},
            )
            for more in (coded("UPDD"), coded("RCDD"), REVERSED + coded("PMDD"), f"{MANDATE}{RETURN}")
        ),
        (
            "CRDT",
            REVERSED + coded("PRDD"),
            {
                "ReconciliationType": "SETTLED", "PaymentType": "REFUND", "Cashflow": "POS",
                "SettlementStatus": "FAILED", **DEBTOR,
            },
        ),
        (
            "CRDT",
            RETURN,
            {
                "ReconciliationType": "SETTLED", "PaymentType": "REFUND", "Cashflow": "POS",
                "SettlementStatus": "FAILED", **DEBTOR,
            },
        ),
        (
            "CRDT",
            REVERSED,
            {
                "ReconciliationType": "SETTLED", "PaymentType": "REFUND", "Cashflow": "POS",
                "SettlementStatus": "FAILED", **DEBTOR,
            },
        ),
    ],
)  # fmt: skip
def test_direction_and_return_say_what_a_line_is_and_who_stood_on_the_other_side(
    flow: str, more: str, expected: dict[str, str]
) -> None:
    one = f"<TxDtls><Amt Ccy='EUR'>5.00</Amt>{more}{PARTIES}</TxDtls>"
    (line,) = lines(statement(entry("5.00", one, flow=flow)))
    names = {"ReconciliationType", "PaymentType", "Cashflow", "SettlementStatus", "ReasonCode", "ReasonDesc", *DEBTOR}
    assert {name: text for name, text in line.items() if name in names} == expected


def test_a_transaction_that_says_its_own_direction_goes_before_its_entry() -> None:
    own = "<TxDtls><Amt Ccy='EUR'>5.00</Amt><CdtDbtInd>DBIT</CdtDbtInd></TxDtls>"
    assert [line["Cashflow"] for line in lines(statement(entry("5.00", own, details("a"))))] == ["NEG", "POS"]


@pytest.mark.parametrize(
    ("days", "day"),
    [
        ("<BookgDt><Dt>2030-01-02</Dt></BookgDt><ValDt><Dt>2030-01-05</Dt></ValDt>", "2030-01-02"),
        ("<BookgDt><DtTm>2030-01-03T23:59:00</DtTm></BookgDt><ValDt><Dt>2030-01-05</Dt></ValDt>", "2030-01-03"),
        ("<ValDt><Dt>2030-01-05</Dt></ValDt>", "2030-01-05"),
        ("<ValDt><DtTm>2030-01-06T00:00:00</DtTm></ValDt>", "2030-01-06"),
    ],
)
def test_the_day_of_a_line_is_that_of_its_booking_else_of_its_value(days: str, day: str) -> None:
    (line,) = lines(statement(entry("5.00").replace("<BookgDt><Dt>2030-01-02</Dt></BookgDt>", days)))
    assert line["SettlementDate"] == day


@pytest.mark.parametrize(
    ("refs", "expected"),
    [
        ("<EndToEndId>0123456789abcdef0123456789abcdef</EndToEndId>", {"UniqueID": "0123456789abcdef" * 2}),
        ("<EndToEndId>order-1</EndToEndId>", {"TransactionId": "order-1"}),
        ("<EndToEndId>NOTPROVIDED</EndToEndId>", {}),
        (
            "<TxId>T</TxId><InstrId>I</InstrId><PmtInfId>P</PmtInfId><MndtId>M</MndtId><AcctSvcrRef>R</AcctSvcrRef>",
            {"ConnectorTxId1": "T", "ConnectorTxId2": "I", "ConnectorTxId3": "P", "SettlementTxId": "R"},
        ),
        ("<MndtId>M</MndtId>", {"ConnectorTxId3": "M"}),
    ],
)
def test_references_have_their_columns(refs: str, expected: dict[str, str]) -> None:
    one = f"<TxDtls><Refs>{refs}</Refs><Amt Ccy='EUR'>5.00</Amt></TxDtls>"
    (line,) = lines(statement(entry("5.00", one)))
    names = {"UniqueID", "TransactionId", "ConnectorTxId1", "ConnectorTxId2", "ConnectorTxId3", "SettlementTxId"}
    assert {name: text for name, text in line.items() if name in names} == {"SettlementTxId": "BANK-REF", **expected}


@pytest.mark.parametrize(
    ("status", "read"),
    [("<Cd>BOOK</Cd>", 1), ("BOOK", 1), ("", 1), ("<Cd>PDNG</Cd>", 0), ("PDNG", 0), ("<Cd>INFO</Cd>", 0)],
)
def test_only_what_is_booked_is_read(status: str, read: int) -> None:
    assert len(lines(statement(entry("5.00", details("a"), status=status)))) == read


def test_each_statement_of_a_file_has_its_own_account_and_their_counts_add_up() -> None:
    first, second = statement(entry("1.00"), count=1), statement(entry("2.00"), entry("3.00"), account="X-2", count=2)
    inner = second[second.index(b"<Stmt>") : second.index(b"</BkToCstmrStmt>")].replace(b"STMT-1", b"STMT-2")
    content = first.replace(b"</BkToCstmrStmt>", inner + b"</BkToCstmrStmt>")
    found = [(line["ClearingInstituteMerchantId"], line["SettlementReference"]) for line in lines(content)]
    assert found == [("DE02120300000000202051", "STMT-1"), ("X-2", "STMT-2"), ("X-2", "STMT-2")]
    opened = CAMT053_FORMAT.open(io.BytesIO(content), 1, 0)
    assert [one.number for one in opened.lines] == [2, 3]
    assert opened.totals == {"entries": 3, "said": 3, "read": 3}


@pytest.mark.parametrize(
    ("booked", "ordered", "rate", "expected"),
    [
        ("92.00", "100.00", "", "0.9200000000"),
        ("50.00", "100.00", "0.5001", "0.5001"),
        ("150.00", "100.00", "", "1.5000000000"),
        ("92.00", "0.00", "", None),
    ],
)
def test_the_rate_is_the_banks_else_what_was_booked_for_one_of_the_order(
    booked: str, ordered: str, rate: str, expected: str | None
) -> None:
    told = f"<CcyXchg><XchgRate>{rate}</XchgRate></CcyXchg>" if rate else ""
    more = f"<AmtDtls><InstdAmt><Amt Ccy='USD'>{ordered}</Amt>{told}</InstdAmt></AmtDtls>"
    (line,) = lines(statement(entry(booked, details("a", booked, more))))
    assert (line.get("SettlementFxRate"), line["Amount"], line["Currency"], line["SettlementAmount"]) == (
        expected, ordered, "USD", booked,
    )  # fmt: skip

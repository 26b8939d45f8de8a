"""A bank for tests: takes our collection files, and answers with status reports, notifications and statements.

It keeps nothing and knows nothing of the product's own code: it reads the XML that was laid out for it, and writes XML.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from gateway.connectors.sepa import bank_message_intake
from gateway.models import AcquirerAccount, BankFile, BankMessage, BankOrder, Channel
from tests.support.client import Answer, Api
from tests.support.clock import pass_time

DEBTOR = "DE89370400440532013000"
OTHER_DEBTOR = "NL91ABNA0417164300"
CREDITOR = "NL41MOCK0000000001"
A_RUN = 6
"""Days in which a file is made, whatever the day: from the Thursday before Easter to the Tuesday after, none is."""
SETTINGS = {
    "creditorName": "Shop Ltd", "creditorId": "DE98ZZZ09999999999", "creditorIban": "DE23100000001234567890",
    "creditorBic": "MARKDEF1100", "noticeDays": "0",
}  # fmt: skip
JANE: Mapping[str, str | None] = {
    "paymentBrand": "DIRECTDEBIT_SEPA", "bankAccount__holder": "Jane Jones", "bankAccount__iban": DEBTOR,
    "bankAccount__bic": "COBADEFFXXX", "bankAccount__country": "DE", "card__number": None, "card__expiryMonth": None,
    "card__expiryYear": None, "card__cvv": None, "card__holder": None, "customer__givenName": "Jane",
    "customer__surname": "Jones", "testMode": "EXTERNAL",
}  # fmt: skip


def account_at_bank(channel: Channel, merchant: str = "shop-bank", **settings: str) -> AcquirerAccount:
    """The channel's account for direct debits."""
    return AcquirerAccount.objects.create(
        channel=channel, connector="sepa", acquirer_merchant_id=merchant, settings=SETTINGS | settings
    )


def pass_to_file(api: Api) -> None:
    """Days pass until what waits is in a file."""
    pass_time(api, days=A_RUN)


def debit(api: Api, amount: str = "92.00", **more: str | None) -> Answer:
    """A direct debit that the bank has to answer."""
    answer = api.pay(**{**JANE, "amount": amount, **more})
    assert answer.status == 200, answer
    return answer


@dataclass(frozen=True, slots=True)
class File:
    """A file as the bank reads it."""

    xml: bytes
    tree: ElementTree.Element

    def texts(self, path: str) -> list[str]:
        """The texts of every element at the end of ``path``, in order."""
        steps = "/".join(f"{{*}}{part}" for part in path.split("/"))
        return [one.text or "" for one in self.tree.iterfind(f".//{steps}")]

    def text(self, path: str) -> str:
        (found,) = self.texts(path)
        return found

    @property
    def message(self) -> str:
        return self.text("GrpHdr/MsgId")


def files_in(outbox: Path) -> list[File]:
    """What lies in the outbox for banks, oldest name first; what is still being written is none of it."""
    paths = [path for path in sorted(outbox.rglob("*.xml")) if not path.name.startswith(".")]
    return [File(path.read_bytes(), ElementTree.fromstring(path.read_bytes())) for path in paths]


def take(xml: bytes | str, name: str = "bank.xml") -> BankMessage:
    """The gateway takes in what a bank wrote."""
    content = xml.encode() if isinstance(xml, str) else xml
    return bank_message_intake.import_bank_message(io.BytesIO(content), name, BankMessage.Source.COMMAND)


def status(
    file: str,
    *,
    group: str = "PART",
    reason: str = "",
    orders: Mapping[str, tuple[str, str]] | None = None,
    batches: Mapping[str, tuple[str, str]] | None = None,
    number: int = 1,
    made_on: str = "2026-01-05",
) -> str:
    """A pain.002. ``orders``, ``batches``: id → (status, reason)."""

    def because(code: str) -> str:
        return f"<StsRsnInf><Rsn><Cd>{code}</Cd></Rsn></StsRsnInf>" if code else ""

    lines = "".join(
        f"<TxInfAndSts><OrgnlEndToEndId>{one}</OrgnlEndToEndId><TxSts>{said}</TxSts>{because(code)}</TxInfAndSts>"
        for one, (said, code) in (orders or {}).items()
    )
    parts = "".join(
        f"<OrgnlPmtInfAndSts><OrgnlPmtInfId>{one}</OrgnlPmtInfId><PmtInfSts>{said}</PmtInfSts>{because(code)}"
        "</OrgnlPmtInfAndSts>"
        for one, (said, code) in (batches or {}).items()
    )
    if lines:
        parts += f"<OrgnlPmtInfAndSts><OrgnlPmtInfId>{file}-1</OrgnlPmtInfId>{lines}</OrgnlPmtInfAndSts>"
    return (
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"><CstmrPmtStsRpt>'
        f"<GrpHdr><MsgId>STATUS-{number}</MsgId><CreDtTm>{made_on}T10:00:00</CreDtTm></GrpHdr>"
        f"<OrgnlGrpInfAndSts><OrgnlMsgId>{file}</OrgnlMsgId><OrgnlMsgNmId>pain.008</OrgnlMsgNmId>"
        f"<GrpSts>{group}</GrpSts>{because(reason)}</OrgnlGrpInfAndSts>{parts}</CstmrPmtStsRpt></Document>"
    )


def resolution(file: BankFile, order: BankOrder, *, status: str, reason: str = "", at: str = "order") -> str:
    """A camt.029: the answer to the request to cancel the collection ``order`` of ``file``. ``at``: where the status
    stands: of the order, its batch, its file, the message with the order named below it, or with nothing named."""
    because = f"<CxlStsRsnInf><Rsn><Cd>{reason}</Cd></Rsn></CxlStsRsnInf>" if reason else ""
    named = f"<OrgnlPmtInfId>{order.batch}</OrgnlPmtInfId>"
    end = f"<OrgnlEndToEndId>{order.pk.hex}</OrgnlEndToEndId>"
    details = {
        "order": f"<OrgnlPmtInfAndSts>{named}<TxInfAndSts>{end}<TxCxlSts>{status}</TxCxlSts>{because}</TxInfAndSts>"
        "</OrgnlPmtInfAndSts>",
        "batch": f"<OrgnlPmtInfAndSts>{named}<PmtInfCxlSts>{status}</PmtInfCxlSts>{because}</OrgnlPmtInfAndSts>",
        "file": f"<OrgnlGrpInfAndSts><OrgnlMsgId>{file.message_id}</OrgnlMsgId><OrgnlMsgNmId>pain.008</OrgnlMsgNmId>"
        f"<GrpCxlSts>{status}</GrpCxlSts>{because}</OrgnlGrpInfAndSts>",
        "message": f"<OrgnlPmtInfAndSts>{named}<TxInfAndSts>{end}{because}</TxInfAndSts></OrgnlPmtInfAndSts>",
        "nothing": "",
    }[at]
    overall = {"ACCR": "CNCL"}.get(status, status)
    party = "<Pty><Nm>Bank</Nm></Pty>"
    return (
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.029.001.09"><RsltnOfInvstgtn>'
        f"<Assgnmt><Id>RESOLUTION-1</Id><Assgnr>{party}</Assgnr><Assgne>{party}</Assgne>"
        f"<CreDtTm>2026-01-05T10:00:00</CreDtTm></Assgnmt><Sts><Conf>{overall}</Conf></Sts>"
        + (f"<CxlDtls>{details}</CxlDtls>" if details else "")
        + "</RsltnOfInvstgtn></Document>"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A booking. ``order``: its EndToEndId, '' where the bank books a batch in one sum."""

    order: str = ""
    amount: str = "92.00"
    into: bool = True
    reason: str = ""
    batch: str = ""
    reversal: bool = False
    on: str = "2026-01-05"
    booked: str = "BOOK"
    currency: str = "EUR"
    more: str = ""
    alone: bool = False
    """The amount stands in the entry alone, not in its transaction."""

    def xml(self) -> str:
        way = "CRDT" if self.into else "DBIT"
        amount = f'<Amt Ccy="{self.currency}">{self.amount}</Amt><CdtDbtInd>{way}</CdtDbtInd>'
        returned = f"<RtrInf><Rsn><Cd>{self.reason}</Cd></Rsn></RtrInf>" if self.reason else ""
        references = f"<Refs><EndToEndId>{self.order}</EndToEndId></Refs>"
        own = "" if self.alone else amount
        details = f"<TxDtls>{references}{own}{self.more}{returned}</TxDtls>" if self.order else ""
        batch = f"<Btch><PmtInfId>{self.batch}</PmtInfId></Btch>" if self.batch else ""
        return (
            f"<Ntry>{amount}{'<RvslInd>true</RvslInd>' if self.reversal else ''}<Sts><Cd>{self.booked}</Cd></Sts>"
            f"<BookgDt><Dt>{self.on}</Dt></BookgDt><NtryDtls>{batch}{details}</NtryDtls></Ntry>"
        )


def statement(entries: Iterable[Entry], *, account: str = SETTINGS["creditorIban"], number: int = 1) -> str:
    """A camt.053 of one account."""
    return _camt("camt.053.001.08", "BkToCstmrStmt", "Stmt", entries, account, number)


def notification(entries: Iterable[Entry], *, account: str = SETTINGS["creditorIban"], number: int = 1) -> str:
    """A camt.054 of one account."""
    return _camt("camt.054.001.08", "BkToCstmrDbtCdtNtfctn", "Ntfctn", entries, account, number)


def _camt(kind: str, root: str, report: str, entries: Iterable[Entry], account: str, number: Any) -> str:
    body = "".join(entry.xml() for entry in entries)
    return (
        f'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:{kind}"><{root}>'
        f"<GrpHdr><MsgId>{report.upper()}-{number}</MsgId><CreDtTm>2026-01-05T20:00:00</CreDtTm></GrpHdr>"
        f"<{report}><Id>{number}</Id><Acct><Id><IBAN>{account}</IBAN></Id></Acct>{body}</{report}></{root}></Document>"
    )

"""Plants faults into a simulated settlement file, one of each kind, and records where.

Intake must find exactly these: the proof of matching and of reporting.settlement.findings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from gateway.core.money import format_amount
from gateway.models import Channel, Payment
from reporting.models import ClearingInstitute
from reporting.simulator.settlement_files import SimulatedFile, SimulatedLine, build_payment_line

MISSING_LINE: Final = "MISSING"
"""Found by reporting.settlement.missing_settlements: the payment has no line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededFault:
    """How to spoil a good line, and the finding it must cause. ``loses``: its payment has no line any more."""

    name: str
    finds: str
    spoil: Callable[[SimulatedLine], None]
    loses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededFinding:
    """An expected finding. ``finds``: its kind, for the line with this SettlementTxId or, for MISSING_LINE, for
    ``payment``."""

    fault: str
    finds: str
    settlement_tx_id: str = ""
    payment: Payment | None = None


def _change_amount(line: SimulatedLine, name: str, by: str) -> None:
    line[name] = format_amount(Decimal(line[name]) + Decimal(by))


def _wrong_amount(line: SimulatedLine) -> None:
    """Change the amount by one cent; the agreed fee stays."""
    _change_amount(line, "Amount", "0.01")
    _change_amount(line, "SettlementAmount", "0.01")


def _wrong_fee(line: SimulatedLine) -> None:
    line["SettlementFee"] = f"{Decimal(line['SettlementFee']) + Decimal('0.50'):.4f}"
    _change_amount(line, "SettlementAmount", "-0.50")


def _wrong_date(line: SimulatedLine) -> None:
    day = date.fromisoformat(line["TxRequestTime"][:10]) - timedelta(days=40)
    line["TxRequestTime"] = f"{day} 12:00:00"


def _wrong_type(line: SimulatedLine) -> None:
    line.update(PaymentType="CREDIT", Cashflow="NEG")
    line["SettlementAmount"] = format_amount(Decimal(line["Amount"]) + Decimal(line["SettlementFee"]))


def _wrong_direction(line: SimulatedLine) -> None:
    line["Cashflow"] = "NEG"
    line["SettlementAmount"] = format_amount(Decimal(line["Amount"]) + Decimal(line["SettlementFee"]))


def _set(**values: str) -> Callable[[SimulatedLine], None]:
    return lambda line: line.update(values)


def build_seeded_faults(other: Channel) -> tuple[SeededFault, ...]:
    """The table of faults. ``other``: another channel of the same merchant, whose account is not the payment's."""
    return (
        SeededFault(name="wrong amount", finds="AMOUNT", spoil=_wrong_amount),
        SeededFault(name="wrong currency", finds="CURRENCY", spoil=_set(Currency="USD", SettlementCurrency="USD")),
        SeededFault(name="unknown id", finds="NOT_MATCHED", spoil=_set(ConnectorTxId1="SIM-NOBODY"), loses=True),
        SeededFault(name="wrong fee", finds="FEE", spoil=_wrong_fee),
        SeededFault(
            name="wrong sum", finds="ARITHMETIC", spoil=lambda line: _change_amount(line, "SettlementAmount", "0.10")
        ),
        SeededFault(name="wrong date", finds="DATE", spoil=_wrong_date),
        SeededFault(
            name="unknown account", finds="UNKNOWN_ACCOUNT", spoil=_set(ClearingInstituteMerchantId="nobody-0001")
        ),
        SeededFault(name="wrong account", finds="OTHER_ACCOUNT", spoil=_set(ClearingInstituteMerchantId=other.id.hex)),
        SeededFault(name="wrong type", finds="TYPE", spoil=_wrong_type),
        SeededFault(name="wrong direction", finds="DIRECTION", spoil=_wrong_direction),
        SeededFault(name="not settled", finds="FAILED", spoil=_set(SettlementStatus="FAILED")),
    )


@dataclass(slots=True, kw_only=True)
class FaultSeeder:
    """Plants faults into ``book``, each into a debit of its own. Raises ValueError if there are too few debits."""

    book: SimulatedFile
    institute: ClearingInstitute
    paid_on: date
    planted: list[SeededFinding] = field(default_factory=list)

    def spoil(self, all_of: tuple[SeededFault, ...]) -> None:
        debits = self._debits()
        if len(debits) < len(all_of) + 2:
            raise ValueError(f"{len(all_of) + 2} debits are needed for one fault each; there are {len(debits)}")
        for fault, (line, payment) in zip(all_of, debits, strict=False):
            fault.spoil(line)
            self._note(fault.name, fault.finds, line)
            if fault.loses:
                self.planted.append(SeededFinding(fault=fault.name, finds=MISSING_LINE, payment=payment))
        line, payment = debits[len(all_of)]
        again = {**line, "SettlementTxId": f"{line['SettlementTxId']}-2"}
        self.book.lines.append((again, payment))
        self._note("doubled line", "TWICE", again)
        lost = debits[len(all_of) + 1]
        self.book.lines.remove(lost)
        self.planted.append(SeededFinding(fault="missing line", finds=MISSING_LINE, payment=lost[1]))

    def settle_declined(self, declined: Payment) -> None:
        line = build_payment_line(self.institute, declined, "SETTLED", declined.amount, self.paid_on)
        self.book.lines.append((line, None))
        self._note("declined payment", "STATUS", line)

    def charge_back_unknown(self, like: Payment) -> None:
        """Add a chargeback of an unknown payment, on the account of ``like``."""
        line = build_payment_line(self.institute, like, "CHARGEBACK", Decimal("10.00"), self.paid_on)
        line.update(
            ConnectorTxId1="SIM-STRANGE", TransactionId="", SettlementTxId="STL-STRANGE", ReasonCode="000.100.220"
        )
        self.book.lines.append((line, None))
        self._note("chargeback of unknown", "NOT_MATCHED", line)

    def reverse_undisputed(self, payment: Payment) -> None:
        """Add the reversal of a chargeback that never happened."""
        line = build_payment_line(self.institute, payment, "CHARGEBACK REVERSAL", Decimal("10.00"), self.paid_on)
        line.update(SettlementTxId="STL-UNDISPUTED")
        self.book.lines.append((line, None))
        self._note("reversal without chargeback", "NOT_BOOKED", line)

    def hide_ids(self, *twins: Payment) -> None:
        """Remove every id from the lines of payments that are otherwise identical."""
        hidden = {payment.id for payment in twins}
        for line, payment in self.book.lines:
            if payment is not None and payment.id in hidden:
                line.update(ConnectorTxId1="", TransactionId="")
                self._note("no id", "MULTIPLE_MATCHES", line)
                self.planted.append(SeededFinding(fault="no id", finds=MISSING_LINE, payment=payment))

    def _debits(self) -> list[tuple[SimulatedLine, Payment | None]]:
        return [
            (line, payment)
            for line, payment in self.book.lines
            if payment is not None
            and line["ReconciliationType"] == "SETTLED"
            and line["PaymentType"] == "DEBIT"
            and line["ConnectorTxId1"]
            and Decimal(line["Amount"]) > 5
        ]

    def _note(self, fault: str, finds: str, line: SimulatedLine) -> None:
        self.planted.append(SeededFinding(fault=fault, finds=finds, settlement_tx_id=line["SettlementTxId"]))


def build_dispute_line(
    institute: ClearingInstitute,
    payment: Payment,
    amount: Decimal,
    paid_on: date,
    *,
    reason: str = "",
    reversal: bool = False,
) -> SimulatedLine:
    """The line of a chargeback that is not in our ledger yet, or of its reversal."""
    line = build_payment_line(institute, payment, "CHARGEBACK REVERSAL" if reversal else "CHARGEBACK", amount, paid_on)
    return {**line, "ReasonCode": "" if reversal else reason or "000.100.206"}

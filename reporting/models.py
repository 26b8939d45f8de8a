"""The tables of reporting, for Django and for other rooms; each room's own code imports from its own ``models``."""

from reporting.approvals.models import RateAlarm
from reporting.month_end.models import MonthClosing
from reporting.reconciliation.models import (
    Delivery,
    DeliveryAttempt,
    ReconciliationFile,
    ReconciliationStart,
    SftpTarget,
)
from reporting.settlement.models import (
    IS_ACTIVE_MATCH,
    Cashflow,
    ClearingInstitute,
    FilePiece,
    Finding,
    LineError,
    Match,
    MatchState,
    MissingSettlement,
    RecordType,
    RemoteFile,
    Settlement,
    SettlementFile,
    SettlementRecord,
    SftpSource,
    TransactionType,
)

__all__ = [
    "IS_ACTIVE_MATCH",
    "Cashflow",
    "ClearingInstitute",
    "Delivery",
    "DeliveryAttempt",
    "FilePiece",
    "Finding",
    "LineError",
    "Match",
    "MatchState",
    "MissingSettlement",
    "MonthClosing",
    "RateAlarm",
    "ReconciliationFile",
    "ReconciliationStart",
    "RecordType",
    "RemoteFile",
    "Settlement",
    "SettlementFile",
    "SettlementRecord",
    "SftpSource",
    "SftpTarget",
    "TransactionType",
]

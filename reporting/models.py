"""The tables of reporting, for Django and for other rooms; each room's own code imports from its own ``models``.

``_zone`` is named by migration 0001.
"""

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
    Owed,
    RecordType,
    RemoteFile,
    Settlement,
    SettlementFile,
    SettlementRecord,
    SftpSource,
    TransactionType,
    _zone,
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
    "Owed",
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
    "_zone",
]

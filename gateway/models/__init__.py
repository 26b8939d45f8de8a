"""Database models: columns and constraints. Functions on them are in modules named after the model."""

from gateway.models.access import TOKEN_SCOPES, AccessToken, ThrottleWindow, TokenLimitUsage
from gateway.models.approvals import Approval, BackgroundWork, ClerkLimitCounter, ClerkLimitUsage
from gateway.models.batches import BatchedCapture, CaptureBatch
from gateway.models.entities import (
    MAX_DESCRIPTOR_CHARS,
    THROTTLED_OPERATIONS,
    AcquirerAccount,
    Channel,
    Division,
    Merchant,
    Psp,
)
from gateway.models.journal import AuditEntry, IdempotencyKey, Notification, RequestLog
from gateway.models.mandates import MandateMail
from gateway.models.payments import (
    AcquirerExchange,
    AuthorizationRelease,
    ChainState,
    OpenPayment,
    Payment,
    PaymentEvent,
    Status,
    Suspension,
)
from gateway.models.processor_events import ProcessorEvent, ProcessorReportedPayment
from gateway.models.registrations import Agreement, Registration
from gateway.models.risk import (
    CardDecline,
    CardTestingCount,
    RiskDecision,
    RiskList,
    RiskListEntry,
    RiskObservation,
    RiskSet,
    RiskTrial,
    RiskTrialObservation,
    RiskTrialPayment,
)
from gateway.models.routing import BreakerChange, RoutingRule, RoutingTarget
from gateway.models.sepa import (
    BankFile,
    BankMessage,
    BankOrder,
    BankOrderEvent,
    BankOrderFollowUp,
    SepaMandate,
)
from gateway.models.simulator import SelfTest, SimulatedOrder
from gateway.models.threeds import Authentication, AuthenticationStep, ThreeDSecureConfiguration
from gateway.models.timers import TimerRun
from gateway.models.users import (
    ENTITY_LEVELS,
    FactorSecret,
    Grant,
    Role,
    SignIn,
    UsedPassword,
    UserHandling,
    UserPreference,
)
from gateway.models.wallets import UsedWalletToken, WalletKey
from gateway.models.webhooks import FanOutPosition, InspectedWebhook, WebhookAttempt, WebhookDelivery, WebhookEndpoint

__all__ = [
    "ENTITY_LEVELS",
    "MAX_DESCRIPTOR_CHARS",
    "THROTTLED_OPERATIONS",
    "TOKEN_SCOPES",
    "AccessToken",
    "AcquirerAccount",
    "AcquirerExchange",
    "Agreement",
    "Approval",
    "AuditEntry",
    "Authentication",
    "AuthenticationStep",
    "AuthorizationRelease",
    "BackgroundWork",
    "BankFile",
    "BankMessage",
    "BankOrder",
    "BankOrderEvent",
    "BankOrderFollowUp",
    "BatchedCapture",
    "BreakerChange",
    "CaptureBatch",
    "CardDecline",
    "CardTestingCount",
    "ChainState",
    "Channel",
    "ClerkLimitCounter",
    "ClerkLimitUsage",
    "Division",
    "FactorSecret",
    "FanOutPosition",
    "Grant",
    "IdempotencyKey",
    "InspectedWebhook",
    "MandateMail",
    "Merchant",
    "Notification",
    "OpenPayment",
    "Payment",
    "PaymentEvent",
    "ProcessorEvent",
    "ProcessorReportedPayment",
    "Psp",
    "Registration",
    "RequestLog",
    "RiskDecision",
    "RiskList",
    "RiskListEntry",
    "RiskObservation",
    "RiskSet",
    "RiskTrial",
    "RiskTrialObservation",
    "RiskTrialPayment",
    "Role",
    "RoutingRule",
    "RoutingTarget",
    "SelfTest",
    "SepaMandate",
    "SignIn",
    "SimulatedOrder",
    "Status",
    "Suspension",
    "ThreeDSecureConfiguration",
    "ThrottleWindow",
    "TimerRun",
    "TokenLimitUsage",
    "UsedPassword",
    "UsedWalletToken",
    "UserHandling",
    "UserPreference",
    "WalletKey",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEndpoint",
]

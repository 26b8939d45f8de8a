"""What the API answers. Generated from the OpenAPI document by `make clients`. Do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

from tollhouse._model import Answer, Model


class ParameterError(Model):
    """One fault. All faults of a request are told at once."""

    name: str
    value: str | None
    message: str


class Result(Model):
    """What came of the request."""

    code: str
    description: str
    avsResponse: str | None
    cvvResponse: str | None
    parameterErrors: list[ParameterError] | None

    _TYPES: ClassVar[Mapping[str, Any]] = {"parameterErrors": ParameterError}


class Card(Model):
    """What is known of the card. Number and CVV never come back."""

    bin: str | None
    last4Digits: str | None
    holder: str | None
    expiryMonth: str | None
    expiryYear: str | None
    issuer: Any
    type: str | None
    level: str | None
    regulatedFlag: str | None


class PaymentResultDetails(Model):
    """The acquirer's own words; other names may stand here too, with texts."""

    AcquirerResponse: str
    ExtendedDescription: str
    MerchantAdviceCode: str | None
    authorizationExpiresAt: str | None
    authorizationExpired: str | None
    archivedAt: str | None
    NetworkToken: str | None
    transferReturned: str | None
    transferReturnReason: str | None


class Payment(Answer):
    """A payment. Every accepted structure of the request comes back beside these fields, nested."""

    id: str
    referencedId: str | None
    paymentType: str
    paymentBrand: str
    amount: Decimal
    currency: str
    descriptor: str
    resultDetails: PaymentResultDetails | None
    card: Card | None
    brandResult: str | None
    risk: Any
    customParameters: Any
    registrationId: str | None
    registration: Any
    testMode: str | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"amount": Decimal, "resultDetails": PaymentResultDetails, "card": Card, "result": Result}


class Authentication(Answer):
    """An authentication without a payment."""

    id: str
    paymentType: str
    paymentBrand: str
    amount: Decimal
    currency: str
    card: Card | None
    threeDSecure: Any
    redirect: Any
    testMode: str | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"amount": Decimal, "card": Card, "result": Result}


class Registration(Answer):
    """A stored means of payment. It has no paymentType."""

    id: str
    paymentBrand: str
    card: Card | None
    bankAccount: Any
    virtualAccount: Any
    networkToken: Any
    accountUpdate: Any
    testMode: str | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"card": Card, "result": Result}


class SchedulePlan(Model):
    """The plan as it stands."""

    active: bool
    state: str
    reason: str | None
    expression: str
    timeZone: str
    endsAt: str | None
    nextRuns: list[str]


class ScheduleRuns(Model):
    """ScheduleRuns."""

    dueAt: str
    state: str
    attempt: int
    id: str | None
    code: str | None
    retryAt: str | None
    retryChance: str | None
    missedUntil: str | None


class Schedule(Answer):
    """A subscription job."""

    id: str
    paymentType: str
    paymentBrand: str | None
    amount: Decimal
    currency: str
    descriptor: str
    registrationId: str
    job: Any
    plan: SchedulePlan
    runs: list[ScheduleRuns] | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"amount": Decimal, "plan": SchedulePlan, "runs": ScheduleRuns, "result": Result}


class Checkout(Answer):
    """A checkout that was created or updated. Its ndc is its id."""

    id: str
    integrity: str | None
    paymentPage: str | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"result": Result}


class PaymentLink(Answer):
    """A payment link as it stands."""

    id: str
    url: str
    state: str
    amount: Decimal | None
    currency: str
    paymentType: str
    merchantTransactionId: str | None
    link: Any
    paidCount: int
    paidAmount: Decimal
    createdAt: str
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"amount": Decimal, "paidAmount": Decimal, "result": Result}


class PaymentLinksPaymentLinks(Model):
    """A payment link as it stands."""

    id: str
    url: str
    state: str
    amount: Decimal | None
    currency: str
    paymentType: str
    merchantTransactionId: str | None
    link: Any
    paidCount: int
    paidAmount: Decimal
    createdAt: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"amount": Decimal, "paidAmount": Decimal}


class PaymentLinks(Answer):
    """Payment links, the newest first."""

    paymentLinks: list[PaymentLinksPaymentLinks]
    pages: int
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"paymentLinks": PaymentLinksPaymentLinks, "result": Result}


class CheckoutResult(Answer):
    """The payment object (see Payment) or the registration, once there is one; the envelope alone until then."""

    id: str | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"result": Result}


class Clock(Answer):
    """The merchant's clock."""

    now: str
    offsetSeconds: int
    complete: bool | None
    remainingSeconds: int | None
    ran: Any
    waiting: list[str] | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"result": Result}


class WalletToken(Answer):
    """A token to try with."""

    wallet: str
    format: str
    paymentToken: str
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"result": Result}


class AcquirerMessagesMessages(Model):
    """AcquirerMessagesMessages."""

    connector: str
    kind: str
    sent: Any
    received: Any
    durationMs: int | None
    at: str | None


class AcquirerMessages(Answer):
    """What was said to the acquirer, masked."""

    id: str
    messages: list[AcquirerMessagesMessages]
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"messages": AcquirerMessagesMessages, "result": Result}


class MailsMails(Model):
    """MailsMails."""

    kind: str
    state: str
    mandate: str | None
    to: str
    language: str | None
    subject: str
    text: str
    tries: int | None
    failure: str | None
    at: str | None


class Mails(Answer):
    """What a payment's shopper was sent by mail."""

    id: str
    mails: list[MailsMails]
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"mails": MailsMails, "result": Result}


class Inspector(Answer):
    """The built-in webhook inspector."""

    mode: str
    state: str
    secret: str
    newest: int
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"result": Result}


class KeptWebhooksWebhooks(Model):
    """KeptWebhooksWebhooks."""

    number: int
    at: str
    headers: Any
    body: str


class KeptWebhooks(Answer):
    """Webhooks that the inspector has kept."""

    webhooks: list[KeptWebhooksWebhooks]
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"webhooks": KeptWebhooksWebhooks, "result": Result}


class RequestLogRequests(Model):
    """RequestLogRequests."""

    ndc: str
    at: str
    method: str
    path: str
    status: int
    resultCode: str
    durationMs: int
    payment: str | None


class RequestLog(Answer):
    """The newest requests."""

    requests: list[RequestLogRequests]
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"requests": RequestLogRequests, "result": Result}


class ListedResultDetails(Model):
    """The acquirer's own words; other names may stand here too, with texts."""

    AcquirerResponse: str
    ExtendedDescription: str
    MerchantAdviceCode: str | None
    authorizationExpiresAt: str | None
    authorizationExpired: str | None
    archivedAt: str | None
    NetworkToken: str | None
    transferReturned: str | None
    transferReturnReason: str | None


class Listed(Answer):
    """A transaction in a list: the payment object, its own time and number with it."""

    id: str
    shortId: str | None
    paymentType: str | None
    paymentMethod: str | None
    paymentBrand: str | None
    amount: Decimal | None
    currency: str | None
    descriptor: str | None
    result: Result
    resultDetails: ListedResultDetails | None
    requestTimestamp: str | None
    timestamp: str | None
    ndc: str | None

    _TYPES: ClassVar[Mapping[str, Any]] = {"amount": Decimal, "result": Result, "resultDetails": ListedResultDetails}


class PaymentList(Answer):
    """Transactions, the newest first."""

    payments: list[Listed]
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"payments": Listed, "result": Result}


class RecordList(Answer):
    """Transactions."""

    records: list[Listed]
    pages: int | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"records": Listed, "result": Result}


class Settlement(Model):
    """What an institute paid out at once."""

    id: str
    reference: str | None
    date: str
    currency: str
    amount: Decimal
    fee: Decimal
    count: int
    clearingInstitute: Any
    merchantAccount: Any
    records: list[Any]
    matchedTransactions: Any

    _TYPES: ClassVar[Mapping[str, Any]] = {"amount": Decimal, "fee": Decimal}


class Settlements(Answer):
    """Settlements, the earliest first."""

    aggregations: list[Settlement]
    pages: int | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"aggregations": Settlement, "result": Result}


class CardFacts(Model):
    """What the table of BINs knows of the cards that begin so. A fact that is missing is not known."""

    bin: str
    brands: list[str]
    issuer: Any
    issuerCountry: str | None
    type: str | None
    level: str | None
    regulatedFlag: str | None


class CardFactsAnswer(Answer):
    """What is known of a card."""

    card: CardFacts
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"card": CardFacts, "result": Result}


class RateInterval(Model):
    """A share with its interval; missing where nothing was counted."""

    rate: Decimal
    low: Decimal
    high: Decimal

    _TYPES: ClassVar[Mapping[str, Any]] = {"rate": Decimal, "low": Decimal, "high": Decimal}


class ApprovalRateAmounts(Model):
    """Purchases' money in one currency."""

    currency: str
    asked: Decimal
    approved: Decimal

    _TYPES: ClassVar[Mapping[str, Any]] = {"asked": Decimal, "approved": Decimal}


class ApprovalRate(Model):
    """One part of the payments."""

    segment: str
    attempts: int
    approvedAttempts: int
    attemptRate: RateInterval | None
    purchases: int
    approvedPurchases: int
    purchaseRate: RateInterval | None
    amounts: list[ApprovalRateAmounts]

    _TYPES: ClassVar[Mapping[str, Any]] = {"attemptRate": RateInterval, "purchaseRate": RateInterval, "amounts": ApprovalRateAmounts}


class ApprovalRates(Answer):
    """Approval rates of a period."""

    groupBy: str
    approvals: list[ApprovalRate]
    complete: bool
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"approvals": ApprovalRate, "result": Result}


class ApprovalWaterfallSteps(Model):
    """A step."""

    step: str
    description: str
    lost: bool
    purchases: int
    amount: Decimal
    share: Decimal

    _TYPES: ClassVar[Mapping[str, Any]] = {"amount": Decimal, "share": Decimal}


class ApprovalWaterfall(Model):
    """From what shoppers wanted to pay to what is settled, in one currency. What is lost adds up."""

    currency: str
    checkouts: int
    steps: list[ApprovalWaterfallSteps]

    _TYPES: ClassVar[Mapping[str, Any]] = {"steps": ApprovalWaterfallSteps}


class ApprovalWaterfalls(Answer):
    """Where a period's money is lost, by currency, the largest first."""

    waterfalls: list[ApprovalWaterfall]
    complete: bool
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"waterfalls": ApprovalWaterfall, "result": Result}


class ApprovalGainMayBring(Model):
    """How much of it the switch may bring; missing where too few payments can be compared."""

    low: Decimal
    high: Decimal

    _TYPES: ClassVar[Mapping[str, Any]] = {"low": Decimal, "high": Decimal}


class ApprovalGainSwitch(Model):
    """Where to switch it on, or to try it."""

    name: str
    page: str


class ApprovalGain(Model):
    """A way to more approvals."""

    way: str
    title: str
    currency: str
    lost: Decimal
    mayBring: ApprovalGainMayBring | None
    evidence: str
    switch: ApprovalGainSwitch

    _TYPES: ClassVar[Mapping[str, Any]] = {"lost": Decimal, "mayBring": ApprovalGainMayBring, "switch": ApprovalGainSwitch}


class ApprovalGains(Answer):
    """What would bring most: of each currency what surely brings most first."""

    gains: list[ApprovalGain]
    complete: bool
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"gains": ApprovalGain, "result": Result}


class SettlementRecords(Answer):
    """A settlement with its records."""

    id: str
    aggregation: Settlement | None
    reconciliations: list[Any]
    pages: int | None
    ignoredParameters: list[str] | None
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"aggregation": Settlement, "result": Result}


class ResultCodesResultCodes(Model):
    """ResultCodesResultCodes."""

    code: str
    description: str
    family: str


class ResultCodes(Answer):
    """Every result code of this gateway."""

    resultCodes: list[ResultCodesResultCodes]
    result: Result
    buildNumber: str
    timestamp: str
    ndc: str

    _TYPES: ClassVar[Mapping[str, Any]] = {"resultCodes": ResultCodesResultCodes, "result": Result}

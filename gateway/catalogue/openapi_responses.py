"""The API's responses as OpenAPI values: headers, the envelope, the payment object, and the content of each status.

Source: Part A, Errors; Part B, Payment response; rulings D9, D11, D13, D17.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.catalogue.endpoints import Endpoint

ResponseSchema = dict[str, Any]

CHECKOUTS_TAG: Final = "Checkouts"
"""The tag of the endpoints that checkouts and the widget use."""
PAYMENT_LINKS_TAG: Final = "Payment links"
"""The tag of the endpoints of payment links."""
QUERIES_TAG: Final = "Queries and reports"
"""The tag of the endpoints that only read."""


def _text(description: str, pattern: str = "", **more: Any) -> ResponseSchema:
    schema: ResponseSchema = {"type": "string", "description": description, **more}
    return {**schema, "pattern": pattern} if pattern else schema


def _map(description: str, values: ResponseSchema | bool = True) -> ResponseSchema:
    return {"type": "object", "description": description, "additionalProperties": values}


def _ref(kind: str, name: str) -> ResponseSchema:
    return {"$ref": f"#/components/{kind}/{name}"}


_ID = "^[0-9a-f]{32}$"
_CHECKOUT = "^[0-9A-F]{32}-[0-9A-Za-z]{1,15}$"
_AMOUNT = r"^[0-9]{1,12}\.[0-9]{2}$"
_WIRE_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\+0000$"
_SIGNED = r"^-?[0-9]{1,18}\.[0-9]{2,10}$"
_PERCENT = r"^[0-9]{1,3}\.[0-9]{2}$"
_COMPLETE: Final[ResponseSchema] = {
    "type": "boolean",
    "description": "false: the period has more payments than are counted; only the newest are.",
}
_ENVELOPE: Final[ResponseSchema] = {
    "result": _ref("schemas", "Result"),
    "buildNumber": _text("Which build answered.", r"^[0-9a-f]{40}@[0-9: -]{19} \+0000$"),
    "timestamp": _text("When, in UTC.", _WIRE_TIME),
    "ndc": _text("The request's own number: quote it when you ask us.", "^[0-9A-Za-z-]{1,69}$"),
}
_IGNORED: Final[ResponseSchema] = {
    "ignoredParameters": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Names that were sent and that nothing knows; they changed nothing.",
    }
}
_ENVELOPE_REQUIRED: Final = list(_ENVELOPE)


def _envelope(
    properties: ResponseSchema, required: list[str], description: str, *, ignores: bool = True
) -> ResponseSchema:
    """A schema with the envelope's fields. ``ignores``: unknown request names are ignored and reported."""
    return {
        "type": "object",
        "description": description,
        "properties": {**properties, **(_IGNORED if ignores else {}), **_ENVELOPE},
        "required": [*required, *_ENVELOPE_REQUIRED],
        "additionalProperties": True,
    }


def _object(properties: ResponseSchema, required: list[str], description: str = "") -> ResponseSchema:
    schema: ResponseSchema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": True,
    }
    return {**schema, "description": description} if description else schema


_DESCRIPTOR: Final = "What the shopper's statement says: as sent, else the chain's, else the channel's own."

# Not "additionalProperties": string: TypeScript takes no optional property beside an index of strings, so what some
# generators make of it does not compile.
_RESULT_DETAILS: Final[ResponseSchema] = _object(
    {
        "AcquirerResponse": _text("The acquirer's original code; empty where none was told.", maxLength=2048),
        "ExtendedDescription": _text("The acquirer's words, else ours.", maxLength=2048),
        "MerchantAdviceCode": _text("Why it was declined and what to do next.", "^[0-9]{2}$"),
        "authorizationExpiresAt": _text("Of a PA: until when it may be captured, UTC.", _WIRE_TIME),
        "authorizationExpired": _text("Of a PA whose time has passed uncaptured.", "^true$"),
        "archivedAt": _text("Of an archived payment: since when; what was personal is gone.", _WIRE_TIME),
        "NetworkToken": _text(
            "Of a stored card with a network token: the token was sent; the card number was, since no cryptogram came; "
            "the card number was, after the token had been declined.",
            "^(?:USED|UNAVAILABLE|DECLINED)$",
        ),
        "transferReturned": _text("Of a refund, reversal or payout that came back, or failed after all.", "^true$"),
        "transferReturnReason": _text("The reason: the bank's, of ISO 20022, or the processor's word.", maxLength=35),
    },
    ["AcquirerResponse", "ExtendedDescription"],
    "The acquirer's own words; other names may stand here too, with texts.",
)

_PAYMENT_LINK: Final[ResponseSchema] = {
    "id": _text("The link's id. It is a capability: it lets its holder pay.", _ID),
    "url": _text("The address that shoppers get."),
    "state": _text("ACTIVE, PAID (as often as it may be), EXPIRED or DEACTIVATED."),
    "amount": _text("What each payment takes; missing where the shopper enters it.", _AMOUNT),
    "currency": _ref("schemas", "Currency"),
    "paymentType": _text("What each payment is.", "^(?:DB|PA)$"),
    "merchantTransactionId": _text("As sent; the payments carry it."),
    "link": _map("How it is paid, as sent, with the values that were left out.", {"type": "string"}),
    "paidCount": {"type": "integer", "description": "How often it was paid."},
    "paidAmount": _text("How much was paid, in the link's currency.", r"^[0-9]{1,16}\.[0-9]{2}$"),
    "createdAt": _text("When it was made, in UTC.", _WIRE_TIME),
}
_PAYMENT_LINK_REQUIRED: Final = (
    "id", "url", "state", "currency", "paymentType", "link", "paidCount", "paidAmount", "createdAt",
)  # fmt: skip

RESPONSE_SCHEMAS: Final[Mapping[str, ResponseSchema]] = {
    "ParameterError": _object(
        {
            "name": _text("The parameter at fault."),
            "value": _text("What was sent, masked and shortened; missing when nothing was."),
            "message": _text("What is allowed, with an example."),
        },
        ["name", "message"],
        "One fault. All faults of a request are told at once.",
    ),
    "Result": _object(
        {
            "code": _text("The result code; /v1/resultcodes lists them.", r"^[0-9.]{2,11}$"),
            "description": _text("The code in words.", maxLength=255),
            "avsResponse": _text("The address check's answer.", "^[A-Z]$"),
            "cvvResponse": _text("The security code check's answer.", "^[A-Z]$"),
            "parameterErrors": {"type": "array", "items": _ref("schemas", "ParameterError")},
        },
        ["code", "description"],
        "What came of the request.",
    ),
    "Error": _envelope({}, [], "A request that made no payment.", ignores=False),
    "Throttled": _envelope(
        {"id": _text("The refused request's id.", _ID)}, ["id"], "Too many requests.", ignores=False
    ),
    "Card": _object(
        {
            "bin": _text("The first six digits.", "^[0-9]{6}$"),
            "last4Digits": _text("The last four digits.", "^[0-9]{4}$"),
            "holder": _text("As sent."),
            "expiryMonth": _text("As sent.", "^[0-9]{2}$"),
            "expiryYear": _text("As sent.", "^[0-9]{4}$"),
            "issuer": _map("Who issued the card: bank, phone, website.", {"type": "string"}),
            "type": _text("CREDIT, DEBIT or PREPAID."),
            "level": _text("E.g. CLASSIC."),
            "regulatedFlag": _text("Whether its interchange is regulated.", "^(?:true|false)$"),
        },
        [],
        "What is known of the card. Number and CVV never come back.",
    ),
    "Payment": _envelope(
        {
            "id": _text("The payment's id: follow-ups refer to it.", _ID),
            "referencedId": _text("The payment a follow-up refers to.", _ID),
            "paymentType": _text("The operation, e.g. DB.", "^[A-Z0-9]{2}$"),
            "paymentBrand": _text("The brand, as sent or detected."),
            "amount": _text("What was approved; on a decline, what was asked for.", _AMOUNT),
            "currency": _ref("schemas", "Currency"),
            "descriptor": _text(_DESCRIPTOR, minLength=1, maxLength=127),
            "resultDetails": _RESULT_DETAILS,
            "card": _ref("schemas", "Card"),
            "brandResult": _text("The brand that was detected.", "^[A-Z]{1,16}$"),
            "risk": _map("As sent, with score where a rule set screened: a sign and five digits, -99999 to +99999."),
            "customParameters": _map("As sent.", {"type": "string"}),
            "registrationId": _text("The registration that was paid with, or made.", _ID),
            "registration": _map("Its id once more.", {"type": "string"}),
            "testMode": _text("Test environment only.", "^(?:INTERNAL|EXTERNAL)$"),
        },
        ["id", "paymentType", "paymentBrand", "amount", "currency", "descriptor"],
        "A payment. Every accepted structure of the request comes back beside these fields, nested.",
    ),
    "Authentication": _envelope(
        {
            "id": _text("The authentication's id.", _ID),
            "paymentType": _text("3D.", "^3D$"),
            "paymentBrand": _text("The brand, as sent or detected."),
            "amount": _text("What was authenticated.", _AMOUNT),
            "currency": _ref("schemas", "Currency"),
            "card": _ref("schemas", "Card"),
            "threeDSecure": _map("How it went: flow, version, authenticationStatus; the proof once there is one."),
            "redirect": _map("Where the shopper is sent to while the answer is pending."),
            "testMode": _text("Test environment only.", "^(?:INTERNAL|EXTERNAL)$"),
        },
        ["id", "paymentType", "paymentBrand", "amount", "currency"],
        "An authentication without a payment.",
    ),
    "Registration": _envelope(
        {
            "id": _text("The registration's id: one-click payments name it.", _ID),
            "paymentBrand": _text("The brand, as sent or detected."),
            "card": _ref("schemas", "Card"),
            "bankAccount": _map("What is stored of a bank account; its number is masked."),
            "virtualAccount": _map("What is stored of a virtual account."),
            "networkToken": _map("The card's network token, if it has one: status, last4Digits, expiry date."),
            "accountUpdate": _map("What the account updater last changed of the card: answer, at."),
            "testMode": _text("Test environment only.", "^(?:INTERNAL|EXTERNAL)$"),
        },
        ["id", "paymentBrand"],
        "A stored means of payment. It has no paymentType.",
    ),
    "Schedule": _envelope(
        {
            "id": _text("The job's id.", _ID),
            "paymentType": _text("What each run makes.", "^(?:DB|PA)$"),
            "paymentBrand": _text("The registration's brand."),
            "amount": _text("What each run takes.", _AMOUNT),
            "currency": _ref("schemas", "Currency"),
            "descriptor": _text(_DESCRIPTOR, minLength=1, maxLength=127),
            "registrationId": _text("The registration that is charged.", _ID),
            "job": _map("As sent.", {"type": "string"}),
            "plan": _object(
                {
                    "active": {"type": "boolean", "description": "Whether it runs."},
                    "state": _text("ACTIVE, ENDING, SUSPENDED or ENDED."),
                    "reason": _text("Why it is not ACTIVE."),
                    "expression": _text("Its times: second minute hour dayOfMonth month dayOfWeek year."),
                    "timeZone": _text("The zone of these times."),
                    "endsAt": _text("No run then or later."),
                    "nextRuns": {"type": "array", "items": _text("When, in UTC.")},
                },
                ["active", "state", "expression", "timeZone", "nextRuns"],
                "The plan as it stands.",
            ),
            "runs": {
                "type": "array",
                "items": _object(
                    {
                        "dueAt": _text("When it was due."),
                        "state": _text("OPEN, PAID, RETRYING, FAILED, SKIPPED or MISSED."),
                        "attempt": {"type": "integer", "description": "How often it was tried."},
                        "id": _text("The payment of the last try.", _ID),
                        "code": _text("Its result."),
                        "retryAt": _text("When it is tried again."),
                        "retryChance": _text(
                            "The chance that this retry is approved, 0.00 to 1.00, where the channel's retries are "
                            "timed by outcomes."
                        ),
                        "missedUntil": _text("Up to when runs were left out."),
                    },
                    ["dueAt", "state", "attempt"],
                ),
                "description": "The last runs, the newest first (GET only).",
            },
        },
        ["id", "paymentType", "amount", "currency", "descriptor", "registrationId", "plan"],
        "A subscription job.",
    ),
    "Checkout": _envelope(
        {
            "id": _text("The checkout's id, for the widget and for what follows.", _CHECKOUT),
            "integrity": _text("The script's hash, when integrity=true was sent.", "^sha384-[A-Za-z0-9+/]+=*$"),
            "paymentPage": _text("The address of the page that has the form, when paymentPage=true was sent."),
        },
        ["id"],
        "A checkout that was created or updated. Its ndc is its id.",
    ),
    "PaymentLink": _envelope(_PAYMENT_LINK, list(_PAYMENT_LINK_REQUIRED), "A payment link as it stands."),
    "PaymentLinks": _envelope(
        {
            "paymentLinks": {
                "type": "array",
                "items": _object(_PAYMENT_LINK, list(_PAYMENT_LINK_REQUIRED), "A payment link as it stands."),
            },
            "pages": {"type": "integer", "description": "How many pages there are."},
        },
        ["paymentLinks", "pages"],
        "Payment links, the newest first.",
    ),
    "CheckoutResult": _envelope(
        {"id": _text("The payment's or registration's id; missing until the shopper has paid.", _ID)},
        [],
        "The payment object (see Payment) or the registration, once there is one; the envelope alone until then.",
    ),
    "Submitted": _envelope(
        {
            "state": _text("open, processing, action, done or expired; a browser's answer."),
            "attempts": {"type": "integer", "description": "Payments that were begun in it; a browser's answer."},
            "redirect": {"type": ["object", "null"], "description": "Where the shopper has to go.",
                         "additionalProperties": True},
            "returnTo": {"type": ["string", "null"], "description": "The shop's address, with id and resourcePath."},
            "held": _map("Of an amount that is paid in part: currency, rest and the parts that are held."),
        },
        [],
        "What a browser learns: the result's code and words, the state. A merchant's token gets the payment object.",
        ignores=False,
    ),
    "CheckoutState": _envelope(
        {
            "state": _text("open, processing, action, done or expired."),
            "secondsLeft": {"type": "integer", "description": "Until the checkout ends."},
            "attempts": {"type": "integer", "description": "Payments that were begun in it."},
            "redirect": {"type": ["object", "null"], "additionalProperties": True},
            "returnTo": {"type": ["string", "null"]},
            "held": _map("Of an amount that is paid in part: currency, rest and the parts that are held."),
        },
        ["state", "secondsLeft"],
        "How a checkout stands. No payment object.",
        ignores=False,
    ),
    "WalletSession": _envelope(
        {"session": {"type": "object", "additionalProperties": True}}, ["session"],
        "What the provider gave; for its sheet alone.",
        ignores=False,
    ),
    "WidgetConfig": _envelope(
        {
            "checkout": _map("Id, kind, amount, currency, secondsLeft."),
            "brands": {"type": "array", "items": {"type": "object", "additionalProperties": True}},
            "texts": _map("Every text of the form.", {"type": "string"}),
            "held": _map("Of an amount that is paid in part: currency, rest and the parts that are held."),
        },
        ["checkout", "brands", "texts"],
        "How to draw the form.",
        ignores=False,
    ),
    "Integrity": _object({"integrity": _text("For the script tag.", "^sha384-[A-Za-z0-9+/]+=*$")}, ["integrity"]),
    "Clock": _envelope(
        {
            "now": _text("The merchant's time."),
            "offsetSeconds": {"type": "integer", "description": "How far it is ahead of the real time."},
            "complete": {"type": "boolean", "description": "After a move: it is where it was to go. If not, repeat."},
            "remainingSeconds": {"type": "integer", "description": "After a move: how far it still has to go."},
            "ran": _map("After a move: what it did on the way, by timer.", {"type": "integer"}),
            "waiting": {
                "type": "array", "items": {"type": "string"},
                "description": "After a move: timers with something due that nobody could do yet.",
            },
        },
        ["now", "offsetSeconds"],
        "The merchant's clock.",
    ),
    "WalletToken": _envelope(
        {
            "wallet": _text("The wallet that the token is for."),
            "format": _text("The format it is in."),
            "paymentToken": _text("To be sent as walletn.paymentToken, unchanged."),
        },
        ["wallet", "format", "paymentToken"],
        "A token to try with.",
    ),
    "AcquirerMessages": _envelope(
        {
            "id": _text("The payment.", _ID),
            "messages": {
                "type": "array",
                "items": _object(
                    {
                        "connector": _text("Which connector spoke."),
                        "kind": _text("submit, or inquire for a question asked again."),
                        "sent": {"type": ["object", "null"], "additionalProperties": True},
                        "received": {"type": ["object", "null"], "additionalProperties": True},
                        "durationMs": {"type": ["integer", "null"]},
                        "at": _text("When."),
                    },
                    ["connector", "kind"],
                ),
            },
        },
        ["id", "messages"],
        "What was said to the acquirer, masked.",
    ),
    "Mails": _envelope(
        {
            "id": _text("The payment.", _ID),
            "mails": {
                "type": "array",
                "items": _object(
                    {
                        "kind": _text("MANDATE: a direct debit's mandate. NOTICE: the notice of a later collection."),
                        "state": _text("DUE, SENT, KNOWN (the mandate was mailed before) or GIVEN_UP."),
                        "mandate": _text("The mandate's id."),
                        "to": _text("To whom."),
                        "language": _text("A language code of the form."),
                        "subject": _text("The subject."),
                        "text": _text("The mail, as it was sent or will be."),
                        "tries": {"type": "integer"},
                        "failure": {"type": ["string", "null"], "description": "Why the last try did not succeed."},
                        "at": {"type": ["string", "null"], "description": "When it was sent."},
                    },
                    ["kind", "state", "to", "subject", "text"],
                ),
            },
        },
        ["id", "mails"],
        "What a payment's shopper was sent by mail.",
    ),
    "Inspector": _envelope(
        {
            "mode": _text("signed or encrypted."),
            "state": _text("active: messages are kept."),
            "secret": _text("What messages are signed or encrypted with: 64 hex digits.", "^[0-9a-f]{64}$"),
            "newest": {"type": "integer", "description": "The number of the newest message; 0 for none."},
        },
        ["mode", "state", "secret", "newest"],
        "The built-in webhook inspector.",
    ),
    "KeptWebhooks": _envelope(
        {
            "webhooks": {
                "type": "array",
                "items": _object(
                    {
                        "number": {"type": "integer", "description": "Rises from message to message."},
                        "at": _text("When it was made."),
                        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                        "body": _text("As it would have been sent."),
                    },
                    ["number", "at", "headers", "body"],
                ),
            },
        },
        ["webhooks"],
        "Webhooks that the inspector has kept.",
    ),
    "RequestLog": _envelope(
        {
            "requests": {
                "type": "array",
                "items": _object(
                    {
                        "ndc": _text("The request's number."),
                        "at": _text("When."),
                        "method": _text("The method."),
                        "path": _text("The path."),
                        "status": {"type": "integer", "description": "Of the answer."},
                        "resultCode": _text("Of the answer."),
                        "durationMs": {"type": "integer"},
                        "payment": _text("The payment it made or read, if any."),
                    },
                    ["ndc", "at", "method", "path", "status", "resultCode", "durationMs"],
                ),
            },
        },
        ["requests"],
        "The newest requests.",
    ),
    "Found": {
        "description": "A payment, or a registration that a payment left.",
        "anyOf": [_ref("schemas", "Payment"), _ref("schemas", "Registration")],
    },
    "PaymentList": _envelope(
        {"payments": {"type": "array", "items": _ref("schemas", "Listed")}},
        ["payments"],
        "Transactions, the newest first.",
    ),
    "RecordList": _envelope(
        {
            "records": {"type": "array", "items": _ref("schemas", "Listed")},
            "pages": {"type": "integer", "minimum": 1, "description": "How many pages; where pageNo is sent."},
        },
        ["records"],
        "Transactions.",
    ),
    "Listed": _object(
        {
            "id": _text("The transaction's id.", _ID),
            "shortId": _text("The same, to say on the phone.", r"^[0-9]{4}\.[0-9]{4}\.[0-9]{4}$"),
            "paymentType": _text("E.g. DB.", "^[A-Z0-9]{2}$"),
            "paymentMethod": _text("E.g. CC.", "^[A-Z]{2}$"),
            "paymentBrand": _text("The brand, as sent or detected."),
            "amount": _text("What was approved; on a decline, what was asked for.", _AMOUNT),
            "currency": _ref("schemas", "Currency"),
            "descriptor": _text(_DESCRIPTOR, minLength=1, maxLength=127),
            "result": _ref("schemas", "Result"),
            "resultDetails": _RESULT_DETAILS,
            "requestTimestamp": _text("When it was made, UTC.", _WIRE_TIME),
            "timestamp": _text("The same.", _WIRE_TIME),
            "ndc": _text("The number of the request that made it."),
        },
        ["id", "result"],
        "A transaction in a list: the payment object, its own time and number with it.",
    ),
    "Settlements": _envelope(
        {
            "aggregations": {"type": "array", "items": _ref("schemas", "Settlement")},
            "pages": {"type": "integer", "minimum": 0, "description": "How many pages; on /reports/v2/… only."},
        },
        ["aggregations"],
        "Settlements, the earliest first.",
    ),
    "Settlement": _object(
        {
            "id": _text("The settlement's id, for its records.", _ID),
            "reference": _text("The institute's name of the payout."),
            "date": _text("When it was paid.", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
            "currency": _ref("schemas", "Currency"),
            "amount": _text("Paid out: POS less NEG, of the records that succeeded.", _SIGNED),
            "fee": _text("Fees among it, of the same records.", _SIGNED),
            "count": {"type": "integer", "description": "Its records."},
            "clearingInstitute": _map("name, merchantId."),
            "merchantAccount": _map("id, name; missing where it is not known.", {"type": "string"}),
            "records": {"type": "array", "items": {"type": "object", "additionalProperties": True},
                        "description": "Count and sums by recordType, transactionType, cashflow and status."},
            "matchedTransactions": _map("How many are MATCHED, MULTIPLE_MATCHES, NOT_MATCHED.", {"type": "integer"}),
        },
        ["id", "date", "currency", "amount", "fee", "count", "records"],
        "What an institute paid out at once.",
    ),
    "CardFactsAnswer": _envelope({"card": _ref("schemas", "CardFacts")}, ["card"], "What is known of a card."),
    "CardFacts": _object(
        {
            "bin": _text("The first six digits.", "^[0-9]{6}$"),
            "brands": {
                "type": "array",
                "items": _text("A brand."),
                "description": "What one card carries; the first is the one you prefer. Empty: no brand is known.",
            },
            "issuer": _map("Who issued the card: bank, phone, website.", {"type": "string"}),
            "issuerCountry": _text("Where.", "^[A-Z]{2}$"),
            "type": _text("CREDIT, DEBIT or PREPAID."),
            "level": _text("E.g. CLASSIC."),
            "regulatedFlag": _text("Whether its interchange is regulated.", "^(?:true|false)$"),
        },
        ["bin", "brands"],
        "What the table of BINs knows of the cards that begin so. A fact that is missing is not known.",
    ),
    "ApprovalRates": _envelope(
        {
            "groupBy": _text("What the figures are divided by."),
            "approvals": {"type": "array", "items": _ref("schemas", "ApprovalRate")},
            "complete": _COMPLETE,
        },
        ["groupBy", "approvals", "complete"],
        "Approval rates of a period.",
    ),
    "ApprovalRate": _object(
        {
            "segment": _text("Which part: a brand, BIN, day …; all without groupBy."),
            "attempts": {"type": "integer", "minimum": 0, "description": "Attempts that an acquirer answered."},
            "approvedAttempts": {"type": "integer", "minimum": 0, "description": "Approved ones among them."},
            "attemptRate": _ref("schemas", "RateInterval"),
            "purchases": {"type": "integer", "minimum": 0, "description": "What shoppers wanted, each counted once."},
            "approvedPurchases": {"type": "integer", "minimum": 0, "description": "Those with an approved attempt."},
            "purchaseRate": _ref("schemas", "RateInterval"),
            "amounts": {
                "type": "array",
                "items": _object(
                    {
                        "currency": _ref("schemas", "Currency"),
                        "asked": _text("Of all purchases.", _SIGNED),
                        "approved": _text("Of the approved ones.", _SIGNED),
                    },
                    ["currency", "asked", "approved"],
                    "Purchases' money in one currency.",
                ),
            },
        },
        ["segment", "attempts", "approvedAttempts", "purchases", "approvedPurchases", "amounts"],
        "One part of the payments.",
    ),
    "RateInterval": _object(
        {
            "rate": _text("Percent.", _PERCENT),
            "low": _text("Lower end of Wilson's interval of 95 %.", _PERCENT),
            "high": _text("Upper end.", _PERCENT),
        },
        ["rate", "low", "high"],
        "A share with its interval; missing where nothing was counted.",
    ),
    "ApprovalWaterfalls": _envelope(
        {"waterfalls": {"type": "array", "items": _ref("schemas", "ApprovalWaterfall")}, "complete": _COMPLETE},
        ["waterfalls", "complete"],
        "Where a period's money is lost, by currency, the largest first.",
    ),
    "ApprovalWaterfall": _object(
        {
            "currency": _ref("schemas", "Currency"),
            "checkouts": {"type": "integer", "minimum": 0, "description": "Checkouts opened."},
            "steps": {
                "type": "array",
                "items": _object(
                    {
                        "step": _text("wanted, sent, approved, settled; or why purchases were lost, e.g. funds."),
                        "description": _text("The same in words."),
                        "lost": {"type": "boolean", "description": "Whether it was lost here, or left up to here."},
                        "purchases": {"type": "integer", "minimum": 0, "description": "How many."},
                        "amount": _text("Their money.", _SIGNED),
                        "share": _text("Percent of the first step's money.", _PERCENT),
                    },
                    ["step", "description", "lost", "purchases", "amount", "share"],
                    "A step.",
                ),
            },
        },
        ["currency", "checkouts", "steps"],
        "From what shoppers wanted to pay to what is settled, in one currency. What is lost adds up.",
    ),
    "ApprovalGains": _envelope(
        {"gains": {"type": "array", "items": _ref("schemas", "ApprovalGain")}, "complete": _COMPLETE},
        ["gains", "complete"],
        "What would bring most: of each currency what surely brings most first.",
    ),
    "ApprovalGain": _object(
        {
            "way": _text("Which way, e.g. soft, updater, second."),
            "title": _text("What to do."),
            "currency": _ref("schemas", "Currency"),
            "lost": _text("The money lost.", _SIGNED),
            "mayBring": _object(
                {"low": _text("At least.", _SIGNED), "high": _text("At most.", _SIGNED)},
                ["low", "high"],
                "How much of it the switch may bring; missing where too few payments can be compared.",
            ),
            "evidence": _text("What was counted."),
            "switch": _object(
                {
                    "name": _text("What the page, or the link to it, is called."),
                    "page": _text("Its address in the back office."),
                },
                ["name", "page"],
                "Where to switch it on, or to try it.",
            ),
        },
        ["way", "title", "currency", "lost", "evidence", "switch"],
        "A way to more approvals.",
    ),
    "SettlementRecords": _envelope(
        {
            "id": _text("The settlement's id.", _ID),
            "aggregation": _ref("schemas", "Settlement"),
            "reconciliations": {"type": "array", "items": {"type": "object", "additionalProperties": True},
                                "description": "Each under the API names of the reconciliation file's columns."},
            "pages": {"type": "integer", "minimum": 0, "description": "How many pages; on /reports/v2/… only."},
        },
        ["id", "reconciliations"],
        "A settlement with its records.",
    ),
    "ResultCodes": _envelope(
        {
            "resultCodes": {
                "type": "array",
                "items": _object(
                    {"code": _text(""), "description": _text(""), "family": _text("See the docs for what to do next.")},
                    ["code", "description", "family"],
                ),
            }
        },
        ["resultCodes"],
        "Every result code of this gateway.",
        ignores=False,
    ),
    "Health": _object(
        {
            "status": _text("ok or unavailable."),
            "environment": _text("test or live. For those who may read the figures."),
            "checks": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        ["status"],
    ),
}  # fmt: skip


def _header(description: str, kind: str = "string") -> ResponseSchema:
    return {"description": description, "schema": {"type": kind}}


RESPONSE_HEADERS: Final[Mapping[str, ResponseSchema]] = {
    "RateLimit-Limit": _header("Requests allowed per window. Missing where nothing is limited.", "integer"),
    "RateLimit-Remaining": _header("Requests left in this window.", "integer"),
    "RateLimit-Reset": _header("Seconds until the window ends.", "integer"),
    "Retry-After": _header("Seconds to wait before the next try.", "integer"),
    "WWW-Authenticate": _header('E.g. Bearer realm="Tollhouse".'),
    "Allow": _header("The methods that this path takes."),
    "Idempotent-Replayed": _header("true when a stored answer was sent again."),
}
_RATES = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


def _response(description: str, *schemas: str, headers: tuple[str, ...] = ()) -> ResponseSchema:
    schema = _ref("schemas", schemas[0]) if len(schemas) == 1 else {"anyOf": [_ref("schemas", s) for s in schemas]}
    response: ResponseSchema = {"description": description, "content": {"application/json": {"schema": schema}}}
    if headers:
        response["headers"] = {name: _ref("headers", name) for name in headers}
    return response


ERROR_RESPONSES: Final[Mapping[str, ResponseSchema]] = {
    "401": _response(
        "The Authorization header is missing or malformed (800.900.300).", "Error", headers=("WWW-Authenticate",)
    ),
    "403": _response("The token is not valid, or not for this entityId (800.900.300).", "Error"),
    "404": _response("Nothing has that id, or there is no such path.", "Error", headers=_RATES),
    "405": _response("The path does not take this method (200.300.403).", "Error", headers=("Allow",)),
    "409": _response(
        "The first request with this Idempotency-Key is still being made, or another moves this clock (800.120.402).",
        "Error",
    ),
    "429": _response(
        "Too many requests (800.120.100). Clients that know no 429 may be answered 400 instead.",
        "Throttled",
        headers=(*_RATES, "Retry-After"),
    ),
}

_BODIES: Final[Mapping[str, str]] = {
    "payment": "Payment",
    "follow-up": "Payment",
    "status": "Payment",
    "checkout": "Checkout",
    "update-checkout": "Checkout",
    "pay-checkout": "Submitted",
    "checkout-status": "CheckoutResult",
    "store-checkout": "Submitted",
    "checkout-registration": "CheckoutResult",
    "payment-link": "PaymentLink",
    "payment-links": "PaymentLinks",
    "read-payment-link": "PaymentLink",
    "deactivate-payment-link": "PaymentLink",
    "delete-payment-link": "PaymentLink",
    "three-d-secure": "Authentication",
    "read-three-d-secure": "Authentication",
    "one-click": "Payment",
    "registration": "Registration",
    "read-registration": "Registration",
    "update-registration": "Registration",
    "delete-registration": "Registration",
    "extend-registration": "Registration",
    "schedule": "Schedule",
    "read-schedule": "Schedule",
    "delete-schedule": "Schedule",
    "reschedule": "Schedule",
    "deschedule": "Schedule",
    "query": "PaymentList",
    "query-one": "Found",
    "query-records": "RecordList",
    "query-record": "RecordList",
    "settlements": "Settlements",
    "settlement": "SettlementRecords",
    "approvals": "ApprovalRates",
    "approvals-waterfall": "ApprovalWaterfalls",
    "approvals-gains": "ApprovalGains",
    "card-facts": "CardFactsAnswer",
    "aggregations": "Settlements",
    "aggregation": "SettlementRecords",
    "aggregations-page": "Settlements",
    "aggregation-page": "SettlementRecords",
    "acquirer-messages": "AcquirerMessages",
    "mails": "Mails",
    "open-inspector": "Inspector",
    "read-webhooks": "KeptWebhooks",
    "read-requests": "RequestLog",
    "make-wallet-token": "WalletToken",
    "change-network-token": "Registration",
    "decide-transfer": "Payment",
}
_REPLAYED: Final = ("Payment", "Registration", "Schedule", "Checkout", "Submitted", "PaymentLink")
_MAY_DECLINE: Final = ("Payment", "Registration", "Authentication", "Submitted", "CheckoutResult")


def build_responses(endpoint: Endpoint) -> ResponseSchema:
    """Every status of an endpoint, 405 of its path included."""
    body = _BODIES.get(endpoint.name, "Clock")
    replays = ("Idempotent-Replayed",) if endpoint.method == "POST" and endpoint.keyed and body in _REPLAYED else ()
    found: ResponseSchema = {
        "200": _response("Processed: success, review or pending.", body, headers=(*_RATES, *replays))
    }
    if body in _MAY_DECLINE:
        found["400"] = _response(
            "One that was declined, or a request that is not valid: parameterErrors names every fault.",
            body,
            "Error",
            "Throttled",
            headers=(*_RATES, *replays),
        )
    else:
        found["400"] = _response("The request is not valid.", "Error", "Throttled", headers=_RATES)
    more = {*endpoint.answers, 405} | ({409} if replays else set())
    for status in sorted(more - {200, 400}):
        found[str(status)] = _ref("responses", str(status))
    return found


def _public_operation(
    operation: str,
    summary: str,
    about: str,
    responses: ResponseSchema,
    *,
    tag: str = "Service",
    parameters: Sequence[ResponseSchema] = (),
) -> ResponseSchema:
    found: ResponseSchema = {
        "operationId": operation,
        "summary": summary,
        "description": about,
        "tags": [tag],
        "security": [],
        "responses": responses,
    }
    return {"get": {**found, "parameters": list(parameters)} if parameters else found}


def _param(name: str, where: str, about: str, **schema: Any) -> ResponseSchema:
    return {
        "name": name,
        "in": where,
        "required": where == "path",
        "description": about,
        "schema": {"type": "string", **schema},
    }


CHECKOUT_ID_PARAMETER: Final = _param("id", "path", "The checkout's id.", pattern=_CHECKOUT)
LINK_ID_PARAMETER: Final = _param("id", "path", "The payment link's id.", pattern=_ID)


_WRONG_METHOD: Final = {"405": _ref("responses", "405")}
_OPENAPI_BODY: Final[ResponseSchema] = {
    "description": "This document.",
    "headers": {"ETag": _header("Changes with the document.")},
    "content": {"application/json": {"schema": {"type": "object", "required": ["openapi", "paths"]}}},
}
PUBLIC_PATHS: Final[Mapping[str, ResponseSchema]] = {
    "/v1/resultcodes": _public_operation(
        "resultcodes", "List the result codes", "The whole table, with the family of each code. Public.",
        {"200": _response("The table.", "ResultCodes"), **_WRONG_METHOD},
    ),
    "/v1/openapi.json": _public_operation(
        "openapi", "Read this document", "The API as OpenAPI 3.1. Public.",
        {"200": _OPENAPI_BODY, "304": {"description": "It has not changed since the ETag you sent."}, **_WRONG_METHOD},
    ),
    "/v1/checkouts/{id}/config": _public_operation(
        "checkout-config", "Read how to draw the form", "For the widget: brands, texts, stored cards. Public.",
        {"200": _response("The configuration.", "WidgetConfig", headers=_RATES), "404": _ref("responses", "404"),
         "429": _ref("responses", "429"), **_WRONG_METHOD},
        tag=CHECKOUTS_TAG,
        parameters=[
            CHECKOUT_ID_PARAMETER,
            _param("brands", "query", "Brand codes separated by spaces, in the order of the page.", maxLength=2000),
            _param("locale", "query", "A language, e.g. de.", maxLength=10),
            _param("billing", "query", "true: the page asks for an address where the channel does not.", maxLength=5),
        ],
    ),
    "/v1/checkouts/{id}/state": _public_operation(
        "checkout-state", "Read how a checkout stands", "For the widget. Public.",
        {"200": _response("The state.", "CheckoutState", headers=_RATES), "404": _ref("responses", "404"),
         "429": _ref("responses", "429"), **_WRONG_METHOD},
        tag=CHECKOUTS_TAG, parameters=[CHECKOUT_ID_PARAMETER],
    ),
    "/v1/checkouts/{id}/release": {
        "post": {
            "operationId": "release-parts", "summary": "Give held parts of the amount back",
            "description": "For the widget: what is held until the rest is paid is reversed. Public.",
            "tags": [CHECKOUTS_TAG], "security": [], "parameters": [CHECKOUT_ID_PARAMETER],
            "responses": {
                "200": _response("The state.", "CheckoutState", headers=_RATES),
                "404": _ref("responses", "404"), "429": _ref("responses", "429"), **_WRONG_METHOD,
            },
        }
    },
    "/v1/checkouts/{id}/wallet-session": {
        "post": {
            "operationId": "wallet-session", "summary": "Have a page's wallet sheet vouched for",
            "description": "For the widget: asks wallet 1's provider, at a configured host, for a session. Public.",
            "tags": [CHECKOUTS_TAG], "security": [], "parameters": [CHECKOUT_ID_PARAMETER],
            "requestBody": {"required": True, "content": {"application/x-www-form-urlencoded": {"schema": {
                "type": "object",
                "properties": {
                    "paymentBrand": _text("WALLET1."), "validationUrl": _text("As the provider's sheet gave it."),
                },
                "required": ["paymentBrand", "validationUrl"],
            }}}},
            "responses": {
                "200": _response("The provider's session.", "WalletSession", headers=_RATES),
                "400": _response("Not at a configured host, not for this page, or the provider gave none.", "Error"),
                "404": _ref("responses", "404"), "429": _ref("responses", "429"), **_WRONG_METHOD,
            },
        }
    },
    "/v1/fastcheckout/integrity": _public_operation(
        "integrity", "Read the script's hash", "For the integrity attribute of the script tag. Public, one field.",
        {"200": _response("The hash.", "Integrity"), **_WRONG_METHOD}, tag=CHECKOUTS_TAG,
    ),
    "/health/live": _public_operation(
        "health-live", "Is the process alive?", "Public.", {"200": _response("It is.", "Health")}
    ),
    "/health/ready": _public_operation(
        "health-ready", "Can it take payments?", "Public. Asks the database and the vault, and compares clocks.",
        {
            "200": _response("It can.", "Health"),
            "503": _response("It cannot; those who may read the figures are told why.", "Health"),
        },
    ),
}  # fmt: skip

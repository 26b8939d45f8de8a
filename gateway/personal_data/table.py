"""The table of personal data: which columns can hold a shopper's data, why and how long, and what erasing does to each.

The tables stand in the order in which rows are found: each names by which ids its rows are a person's, and later ones
use the ids of earlier ones. Models are named by label, because some belong to apps above this one. A test compares the
table with all columns of all models, so that a new column is either listed here or said to hold nothing personal.
docs/personal-data.md shows the table. Source: docs/decisions/0102.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Erasing(enum.StrEnum):
    """What erasing a person's data does to a column."""

    ERASE = "erased"
    FILTER = "personal members erased"
    DELETE = "rows deleted"
    KEEP = "kept"
    EXPIRE = "goes by itself"


class KeepReason(enum.Enum):
    """Why a column is kept although a person asked to be forgotten."""

    BOOKS = _("The law on bookkeeping asks for it.")
    MANDATE = _("The creditor has to prove the mandate and each collection for 14 months.")
    PSEUDONYM = _(
        "It identifies no one without the vault's key; disputes, limits and the schemes' retry rules compare it."
    )
    FRAUD = _("It keeps a known fraud from being repeated; the merchant edits the list.")
    SOON = _("A timer deletes it within its retention.")
    REFERENCE = _("It is the merchant's own reference, by which the books are kept.")
    PROOF = _("It proves who bears a dispute, and identifies no one.")
    WRITTEN = _("Staff wrote it: look at it yourself.")
    TRAIL = _("The audit trail may not be changed.")


MANDATE_PROOF_RETENTION: Final = timedelta(days=430)
"""SEPA: an unauthorised collection is refundable for 13 months, and the proof is asked for within a month more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalColumn:
    """One column. ``about``: what of a shopper it can hold. ``reason``: of what is kept."""

    name: str
    about: str
    erasing: Erasing
    reason: KeepReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalTable:
    """One model with its columns.

    ``title``: what its rows are; translated where a report shows it. ``links``: (lookup on the model, label of an
    earlier table whose ids it is compared with); any of them makes a row the person's. Without links rows are found by
    none: they are listed for the reader, and none of them is erased for one person. ``only``: further conditions on
    rows. ``why``: why it is kept at all, ``kept``: how long. ``held_since``: time columns, of which the first that is
    set counts, of rows that are held for ``MANDATE_PROOF_RETENTION``: younger rows are kept and reported.
    """

    model: str
    title: str | Promise
    columns: tuple[PersonalColumn, ...]
    why: str
    kept: str
    links: tuple[tuple[str, str], ...] = ()
    only: Mapping[str, Any] = field(default_factory=dict)
    held_since: tuple[str, ...] = ()


def _erased(name: str, about: str) -> PersonalColumn:
    return PersonalColumn(name=name, about=about, erasing=Erasing.ERASE)


def _filtered(name: str, about: str) -> PersonalColumn:
    return PersonalColumn(name=name, about=about, erasing=Erasing.FILTER)


def _deleted(name: str, about: str) -> PersonalColumn:
    return PersonalColumn(name=name, about=about, erasing=Erasing.DELETE)


def _kept(name: str, about: str, reason: KeepReason) -> PersonalColumn:
    erasing = Erasing.EXPIRE if reason is KeepReason.SOON else Erasing.KEEP
    return PersonalColumn(name=name, about=about, erasing=erasing, reason=reason)


PAYMENTS: Final = "gateway.Payment"
REGISTRATIONS: Final = "gateway.Registration"
CHECKOUTS: Final = "checkout.Checkout"
PAYMENT_LINKS: Final = "checkout.PaymentLink"
JOBS: Final = "scheduling.Job"
JOB_RUNS: Final = "scheduling.JobRun"
DELIVERIES: Final = "gateway.WebhookDelivery"
CASES: Final = "chargebacks.Chargeback"
EVIDENCE: Final = "chargebacks.Evidence"
REQUESTS: Final = "gateway.RequestLog"
AUTHENTICATIONS: Final = "gateway.Authentication"
MANDATES: Final = "gateway.SepaMandate"

_ECHO = "name, e-mail, telephone, addresses, birth date, address and features of the device, holder of the account"

PERSONAL_DATA: Final[tuple[PersonalTable, ...]] = (
    PersonalTable(
        model=PAYMENTS,
        title=_("Payments"),
        why="to make, follow up and account for the payment",
        kept="payments for good; sealed account numbers for GATEWAY_PAYMENT_ACCOUNT_DAYS",
        links=(("pk", PAYMENTS),),
        columns=(
            _filtered("request", f"what the merchant sent: {_ECHO}"),
            _filtered("answer", "holder and expiry of the card, account of a bank, fields of a redirect"),
            _erased("merchant_memo", "the merchant's text"),
            _erased("means_sealed", "card number or IBAN, sealed"),
            _erased("email_key", "search key of the e-mail address"),
            _erased("name_keys", "search keys of names"),
            _kept("means_fingerprint", "keyed fingerprint of the account", KeepReason.PSEUDONYM),
            _kept("last4_key", "search key of the account's last four characters", KeepReason.PSEUDONYM),
            _kept("merchant_transaction_id", "the merchant's reference", KeepReason.REFERENCE),
            _kept("merchant_invoice_id", "the merchant's invoice", KeepReason.REFERENCE),
            _kept("duplicate_guard", "the merchant's reference", KeepReason.REFERENCE),
        ),
    ),
    PersonalTable(
        model="gateway.ArchivedPayment",
        title=_("Archived payments"),
        why="to account for the payment",
        kept="for good, as part of the books",
        columns=(
            _kept("row", "amounts, references, six and four digits of the card, fingerprint", KeepReason.BOOKS),
            _kept("merchant_transaction_id", "the merchant's reference", KeepReason.REFERENCE),
            _kept("merchant_invoice_id", "the merchant's invoice", KeepReason.REFERENCE),
        ),
    ),
    PersonalTable(
        model=REGISTRATIONS,
        title=_("Registrations"),
        why="to charge the stored account again",
        kept="as long as the channel's registration days say, or until it is deleted",
        links=(("pk", REGISTRATIONS),),
        columns=(
            _erased("means_sealed", "card number or IBAN, sealed"),
            _filtered("details", "holder and expiry of the card, account of a bank"),
            _filtered("request", f"what the merchant sent: {_ECHO}"),
        ),
    ),
    PersonalTable(
        model="gateway.NetworkToken",
        title=_("Network tokens"),
        why="to charge the stored card by its network's token",
        kept="as long as the registration",
        links=(("registration", REGISTRATIONS),),
        columns=(
            _erased("number_sealed", "the network token, sealed"),
            _kept("reference", "the token service's id, until the token is deleted there", KeepReason.SOON),
            _kept("last4", "last four digits of the token", KeepReason.PSEUDONYM),
        ),
    ),
    PersonalTable(
        model="gateway.AccountUpdateFile",
        title=_("Files of the account updater"),
        why="to ask the card networks what became of stored cards",
        kept="the file itself until it is answered, ten days at most; that there was one for good",
        columns=(_kept("content", "card numbers, encrypted for the account updater", KeepReason.SOON),),
    ),
    PersonalTable(
        model="gateway.PaymentToken",
        title=_("Network tokens of payments"),
        why="to capture, refund and reverse a payment that was sent with a network token",
        kept="for GATEWAY_PAYMENT_ACCOUNT_DAYS, like the card number",
        links=(("payment", PAYMENTS),),
        columns=(_deleted("number_sealed", "the network token, sealed"),),
    ),
    PersonalTable(
        model="gateway.Agreement",
        title=_("Agreements"),
        why="to charge under the shopper's agreement",
        kept="for good, as part of the books",
        links=(("registration", REGISTRATIONS), ("pk", PAYMENTS)),
        columns=(
            _kept("reference", "the processor's id of the first payment", KeepReason.PSEUDONYM),
            _kept("network_reference", "the scheme's id of the first payment", KeepReason.PSEUDONYM),
            _kept("agreement_id", "a network's id of the agreement", KeepReason.PSEUDONYM),
            _kept("transaction_link", "a network's id of the first payment", KeepReason.PSEUDONYM),
        ),
    ),
    PersonalTable(
        model=JOBS,
        title=_("Schedules"),
        why="to make the payments of a subscription",
        kept="for good, as part of the books",
        links=(("pk", JOBS), ("registration", REGISTRATIONS)),
        columns=(
            _filtered("request", f"what each payment sends: {_ECHO}"),
            _erased("merchant_memo", "the merchant's text"),
            _kept("name", "the merchant's name of the plan", KeepReason.REFERENCE),
        ),
    ),
    PersonalTable(
        model=CHECKOUTS,
        title=_("Checkouts"),
        why="to show the shopper the form and what was paid",
        kept="for good; sealed values until the checkout ends; a payment link's unused ones for a day",
        links=(("pk", CHECKOUTS), ("payment", PAYMENTS)),
        columns=(
            _filtered("request", f"what the merchant knew beforehand: {_ECHO}"),
            _erased("request_sealed", "number of an identity document, sealed"),
        ),
    ),
    PersonalTable(
        model=PAYMENT_LINKS,
        title=_("Payment links"),
        why="to fill the form in that the link opens",
        kept="for good",
        links=(("pk", PAYMENT_LINKS), ("checkouts", CHECKOUTS)),
        only={"max_payments": 1},
        columns=(
            _filtered("request", f"what the merchant knew beforehand: {_ECHO}"),
            _erased("description", "the merchant's text"),
        ),
    ),
    PersonalTable(
        model="checkout.ReceiptMail",
        title=_("Receipts by mail"),
        why="to send the receipt that the shopper asked for",
        kept="until it was sent or given up",
        links=(("checkout", CHECKOUTS),),
        columns=(_kept("to", "e-mail address, empty once it was sent", KeepReason.SOON),),
    ),
    PersonalTable(
        model="gateway.Suspension",
        title=_("Payments that wait for their shopper"),
        why="to send the security code on when the shopper comes back",
        kept="until the payment is answered",
        links=(("pk", PAYMENTS),),
        columns=(_kept("secrets_sealed", "security code, sealed", KeepReason.SOON),),
    ),
    PersonalTable(
        model=REQUESTS,
        title=_("Request log"),
        why="to find a request by its ndc",
        kept="GATEWAY_REQUEST_LOG_DAYS",
        links=(("payment", PAYMENTS), ("pk", REQUESTS)),
        columns=(
            _erased("ip", "address of the caller: of a form, the shopper's"),
            _filtered("parameters", f"what was sent, masked: {_ECHO}"),
        ),
    ),
    PersonalTable(
        model="gateway.IdempotencyKey",
        title=_("Idempotency keys"),
        why="to answer a repeated request the same",
        kept="24 hours",
        links=(("payment", PAYMENTS),),
        columns=(
            _kept("key", "the merchant's name of the request", KeepReason.SOON),
            _kept("fingerprint", "keyed fingerprint of the request", KeepReason.SOON),
            _kept("answer", f"the stored answer: {_ECHO}", KeepReason.SOON),
        ),
    ),
    PersonalTable(
        model="gateway.AcquirerExchange",
        title=_("Acquirer messages"),
        why="to settle with the acquirer what was said",
        kept="GATEWAY_ACQUIRER_MESSAGE_DAYS",
        links=(("payment", PAYMENTS),),
        columns=(
            _erased("sent", f"the message, masked: {_ECHO}"),
            _erased("received", "the acquirer's answer, masked"),
        ),
    ),
    PersonalTable(
        model=AUTHENTICATIONS,
        title=_("Authentications"),
        why="to prove that the shopper was authenticated",
        kept="for good; number and codes until the directory server was asked",
        links=(("pk", AUTHENTICATIONS), ("payment", PAYMENTS)),
        columns=(
            _erased("ask", f"the question to the directory server: {_ECHO}"),
            _erased("messages", "EMV messages, masked"),
            _filtered("request", f"what the merchant sent: {_ECHO}"),
            _filtered("answer", "holder and expiry of the card"),
            _erased("return_url", "address to which the shopper returned"),
            _erased("number_sealed", "card number, sealed"),
            _kept("card", "first six and last four digits", KeepReason.BOOKS),
            _kept("proof_sealed", "proof of authentication, sealed", KeepReason.PROOF),
            _kept("ds_transaction", "id of the directory server", KeepReason.PROOF),
            _kept("acs_transaction", "id of the issuer's server", KeepReason.PROOF),
        ),
    ),
    PersonalTable(
        model="gateway.RiskDecision",
        title=_("Risk decisions"),
        why="to explain why a payment was declined",
        kept="for good",
        links=(("pk", PAYMENTS),),
        columns=(_erased("reasons", "rules that held, with the value that they compared"),),
    ),
    PersonalTable(
        model="gateway.RiskObservation",
        title=_("Velocity counts"),
        why="to count payments of one person, device or account",
        kept="as long as the longest velocity window",
        links=(("payment", PAYMENTS),),
        columns=(_kept("key", "keyed fingerprint of e-mail, address, device or account", KeepReason.SOON),),
    ),
    PersonalTable(
        model="gateway.CardDecline",
        title=_("Declines that stop a card"),
        why="the schemes forbid to try such a card again",
        kept="as long as the longest retry rule",
        links=(("payment", PAYMENTS),),
        columns=(_kept("key", "keyed fingerprint of the card", KeepReason.SOON),),
    ),
    PersonalTable(
        model="gateway.ExemptionCount",
        title=_("Cards exempted from strong authentication"),
        why="the law limits how much of a card may be exempted in a row",
        kept="three years after its last use",
        columns=(_kept("key", "keyed fingerprint of the card", KeepReason.PSEUDONYM),),
    ),
    PersonalTable(
        model="gateway.CardTestingCount",
        title="Counts of failing cards",
        why="to stop a burst of failing cards",
        kept="two hours",
        columns=(_kept("key", "keyed fingerprint of address, device or BIN", KeepReason.SOON),),
    ),
    PersonalTable(
        model="gateway.RiskListEntry",
        title="Entries of risk lists",
        why="to block or to trust somebody known",
        kept="until the merchant removes the entry",
        columns=(
            _kept("value", "e-mail, name, address or device", KeepReason.FRAUD),
            _kept("account_sealed", "card number or IBAN, sealed", KeepReason.FRAUD),
            _kept("fingerprint", "keyed fingerprint of the account", KeepReason.FRAUD),
        ),
    ),
    PersonalTable(
        model="gateway.RiskSet",
        title="Rule sets",
        why="to decide about payments",
        kept="until the merchant changes it",
        columns=(_kept("document", "a rule may name an e-mail, an address or a device", KeepReason.FRAUD),),
    ),
    PersonalTable(
        model="gateway.RiskTrial",
        title="Risk trials",
        why="to try rules before they are saved",
        kept="for good",
        columns=(
            _kept("document", "a rule may name an e-mail, an address or a device", KeepReason.FRAUD),
            _kept("lists", "lists as tried: e-mail, name, address or device", KeepReason.FRAUD),
        ),
    ),
    PersonalTable(
        model="gateway.RiskTrialObservation",
        title=_("Counts of a risk trial"),
        why="to count as velocities do",
        kept="until the trial ends",
        links=(("payment", PAYMENTS),),
        columns=(_kept("key", "keyed fingerprint of e-mail, address, device or account", KeepReason.SOON),),
    ),
    PersonalTable(
        model="gateway.RiskTrialPayment",
        title=_("Payments of a risk trial"),
        why="to show what a trial would have decided",
        kept="for good",
        links=(("payment", PAYMENTS),),
        columns=(_erased("undecided_rules", "rules that stored data cannot decide, with their field"),),
    ),
    PersonalTable(
        model="gateway.UsedWalletToken",
        title=_("Used wallet tokens"),
        why="a token begins one payment only",
        kept="until the token is too old to be used",
        links=(("payment", PAYMENTS),),
        columns=(_kept("digest", "hash of the wallet's token id", KeepReason.SOON),),
    ),
    PersonalTable(
        model=DELIVERIES,
        title=_("Webhooks"),
        why="to send it again",
        kept="GATEWAY_WEBHOOK_DAYS after the delivery ended",
        links=(("payment", PAYMENTS),),
        columns=(
            _filtered("body", f"the event: {_ECHO}"),
            _kept("url", "the address that the payment named", KeepReason.SOON),
        ),
    ),
    PersonalTable(
        model="gateway.WebhookAttempt",
        title=_("Attempts to deliver webhooks"),
        why="to show why a delivery failed",
        kept="with the webhook",
        links=(("delivery", DELIVERIES),),
        columns=(_erased("answer", "first bytes of the receiver's answer"),),
    ),
    PersonalTable(
        model="gateway.InspectedWebhook",
        title=_("Messages in the inspector"),
        why="to show a developer what would be sent",
        kept="the newest of each endpoint",
        links=(("delivery", DELIVERIES),),
        columns=(
            _deleted("headers", "headers with a signature"),
            _deleted("body", f"the event: {_ECHO}"),
        ),
    ),
    PersonalTable(
        model="gateway.MandateMail",
        title=_("Mandate mails"),
        why="it proves that the shopper was notified",
        kept="for good",
        links=(("pk", PAYMENTS),),
        held_since=("due_at",),
        columns=(
            _erased("sent_to", "e-mail address"),
            _erased("subject", "subject of the mail"),
            _erased("body", "name, address and account in the mail"),
            _erased("failure", "the mail server's answer"),
            _kept("mandate", "the mandate's reference", KeepReason.REFERENCE),
        ),
    ),
    PersonalTable(
        model=MANDATES,
        title=_("Mandates"),
        why="to collect under it, and to prove it",
        kept="for good; name and account until its payments are archived",
        links=(("pk", MANDATES), ("orders", PAYMENTS)),
        held_since=("used_on", "signed_on"),
        columns=(
            _erased("iban_sealed", "IBAN, sealed"),
            _kept("iban_fingerprint", "keyed fingerprint of the IBAN", KeepReason.PSEUDONYM),
            _erased("address", "address"),
            _erased("amendment", "what changed: name or account"),
            _kept("mandate", "the mandate's reference", KeepReason.REFERENCE),
        ),
    ),
    PersonalTable(
        model="gateway.BankOrder",
        title=_("Bank orders"),
        why="to collect, pay out and give back",
        kept="for good; name and account until its payment is archived",
        links=(("pk", PAYMENTS),),
        held_since=("created_at",),
        columns=(
            _erased("name", "name of the account's holder"),
            _erased("iban_sealed", "IBAN, sealed"),
            _erased("iban_shown", "IBAN, masked"),
            _erased("bic", "bank"),
            _erased("text", "what the holder reads on the statement"),
            _erased("amendment", "what changed: name or account"),
            _erased("address", "address"),
            _kept("mandate_reference", "the mandate's reference", KeepReason.REFERENCE),
        ),
    ),
    PersonalTable(
        model="gateway.BankMessage",
        title="Messages of banks",
        why="to take each message in once",
        kept="for good",
        columns=(_kept("findings", "what could not be used of it", KeepReason.BOOKS),),
    ),
    PersonalTable(
        model="gateway.BatchedCapture",
        title=_("Captures by batch"),
        why="to send the capture with the day's batch",
        kept="for good; the sealed message until the capture has ended",
        links=(("pk", PAYMENTS),),
        columns=(
            _erased("message_sealed", "the message with the card number, sealed"),
            _erased("answer", "the host's fields, masked"),
            _kept("reference", "the message's reference at the host", KeepReason.BOOKS),
        ),
    ),
    PersonalTable(
        model="gateway.SimulatedOrder",
        title=_("Orders at the simulator"),
        why="the test environment's bank",
        kept="90 days",
        links=(("pk", PAYMENTS),),
        columns=(
            _kept("reference", "the merchant's reference", KeepReason.SOON),
            _kept("return_url", "address to which the shopper returned", KeepReason.SOON),
        ),
    ),
    PersonalTable(
        model=CASES,
        title=_("Disputes"),
        why="to answer the dispute",
        kept="for good, as part of the books",
        links=(("disputed", PAYMENTS), ("pk", PAYMENTS)),
        columns=(
            _kept("note", "why it was closed", KeepReason.WRITTEN),
            _kept("arn", "the acquirer's reference of the payment", KeepReason.BOOKS),
            _kept("reference", "the acquirer's id of the dispute", KeepReason.BOOKS),
            _kept("scheme_case", "the scheme's id of the dispute", KeepReason.BOOKS),
        ),
    ),
    PersonalTable(
        model="chargebacks.CaseEvent",
        title=_("Moves of disputes"),
        why="to show how the dispute went",
        kept="for good; the database refuses a change",
        links=(("case", CASES),),
        columns=(_kept("note", "what staff wrote", KeepReason.WRITTEN),),
    ),
    PersonalTable(
        model="chargebacks.DisputeAlert",
        title=_("Dispute alerts"),
        why="to answer before a dispute comes",
        kept="for good",
        links=(("disputed", PAYMENTS),),
        columns=(_kept("note", "what staff wrote", KeepReason.WRITTEN),),
    ),
    PersonalTable(
        model=EVIDENCE,
        title=_("Evidence"),
        why="to contest the dispute",
        kept="for good",
        links=(("case", CASES),),
        columns=(_erased("name", "name of the file"),),
    ),
    PersonalTable(
        model="chargebacks.EvidencePiece",
        title=_("Files of evidence"),
        why="to contest the dispute",
        kept="for good",
        links=(("evidence", EVIDENCE),),
        columns=(_deleted("sealed", "invoices, letters, proofs of delivery, sealed"),),
    ),
    PersonalTable(
        model="reporting.Match",
        title=_("Matches of settlement lines"),
        why="to tell which line settled which payment",
        kept="for good, as part of the books",
        links=(("payment", PAYMENTS),),
        columns=(_kept("note", "what staff wrote", KeepReason.WRITTEN),),
    ),
    PersonalTable(
        model="reporting.SettlementRecord",
        title=_("Settlement lines"),
        why="to prove what was settled",
        kept="for good, as part of the books",
        links=(("matches__payment", PAYMENTS),),
        columns=(
            _erased("account_holder", "holder of the account"),
            _erased("bank_code", "bank"),
            _kept("last4", "last four characters of the account", KeepReason.BOOKS),
            _kept("merchant_transaction_id", "the merchant's reference", KeepReason.REFERENCE),
            _kept("merchant_invoice_id", "the merchant's invoice", KeepReason.REFERENCE),
            _kept("arn", "the acquirer's reference of the payment", KeepReason.BOOKS),
            _kept("scheme_case", "the scheme's id of the dispute", KeepReason.BOOKS),
        ),
    ),
    PersonalTable(
        model="reporting.FilePiece",
        title="Settlement files as they came",
        why="to prove what was settled",
        kept="for good, as part of the books",
        columns=(_kept("sealed", "lines of many people: holders, masked accounts; sealed", KeepReason.BOOKS),),
    ),
    PersonalTable(
        model="reporting.LineError",
        title="Faulty settlement lines",
        why="to show what could not be read",
        kept="for good, as part of the books",
        columns=(_kept("value", "the faulty value, masked and shortened", KeepReason.BOOKS),),
    ),
    PersonalTable(
        model="reporting.Finding",
        title=_("Findings about settlement lines"),
        why="to show what differs",
        kept="for good, as part of the books",
        links=(("payment", PAYMENTS),),
        columns=(_kept("note", "what staff wrote", KeepReason.WRITTEN),),
    ),
    PersonalTable(
        model="gateway.Approval",
        title=_("Approvals"),
        why="to show who moved money",
        kept="for good",
        links=(("payment", PAYMENTS),),
        columns=(
            _kept("note", "what staff wrote", KeepReason.WRITTEN),
            _kept("decision_note", "what staff wrote", KeepReason.WRITTEN),
        ),
    ),
    PersonalTable(
        model="gateway.BulkAction",
        title="Actions on many payments",
        why="to show who moved money",
        kept="for good",
        columns=(
            _kept("note", "what staff wrote", KeepReason.WRITTEN),
            _kept("selection", "what staff searched for", KeepReason.WRITTEN),
        ),
    ),
    PersonalTable(
        model="gateway.BackgroundWork",
        title="Exports and other long work",
        why="to find its file again",
        kept="the file for 7 days, the line for good",
        columns=(
            _kept("title", "what staff asked for", KeepReason.WRITTEN),
            _kept("parameters", "what staff searched for", KeepReason.WRITTEN),
            _kept("cursor", "how far it came", KeepReason.WRITTEN),
            _kept("file", "the name of its file, which has names and masked accounts", KeepReason.SOON),
            _kept("message", "how it ended", KeepReason.WRITTEN),
        ),
    ),
    PersonalTable(
        model="gateway.SavedView",
        title="Saved views",
        why="a user's own search",
        kept="until the user deletes it",
        columns=(_kept("query", "what staff searched for", KeepReason.WRITTEN),),
    ),
    PersonalTable(
        model="gateway.ErasureRequest",
        title="Erasure requests",
        why="to carry the request out, and to prove that it was",
        kept="the value until it was decided, the report for good",
        columns=(
            _kept("value", "e-mail, telephone or id of the person, until it was decided", KeepReason.SOON),
            _kept("shown", "the same, masked", KeepReason.TRAIL),
            _kept("reason", "what staff wrote", KeepReason.WRITTEN),
            _kept("report", "ids of payments, numbers of rows", KeepReason.PSEUDONYM),
        ),
    ),
    PersonalTable(
        model="gateway.AuditEntry",
        title="Audit trail",
        why="who changed or looked at what (PCI DSS 10.2)",
        kept="for good; the database refuses a change",
        columns=(
            _kept("before", "values before a change", KeepReason.TRAIL),
            _kept("after", "values after a change", KeepReason.TRAIL),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPlace:
    """A place outside of the database. ``kept``: how long; ``erasing``: what an operator does."""

    name: str
    about: str
    kept: str
    erasing: str


OTHER_PLACES: Final[tuple[OtherPlace, ...]] = (
    OtherPlace(
        name="Log files",
        about="ids and result codes; no names, no addresses, no card data",
        kept="as the machine's log rotation says",
        erasing="nothing",
    ),
    OtherPlace(
        name="GATEWAY_WORK_DIR",
        about="files of exports: names, masked accounts",
        kept="7 days after the work ended",
        erasing="go by themselves",
    ),
    OtherPlace(
        name="Files of banks (GATEWAY_SEPA_… folders)",
        about="names and IBANs of direct debits",
        kept="GATEWAY_SEPA_OUTBOX_DAYS after delivery; the bank's folder is the operator's",
        erasing="go by themselves; the bank's are the bank's",
    ),
    OtherPlace(
        name="Reconciliation files, exports and webhooks that were sent",
        about="names, masked accounts",
        kept="at the merchant",
        erasing="the merchant erases their own",
    ),
    OtherPlace(
        name="Mails that were sent",
        about="mandates, notices and receipts",
        kept="at the mail server and the shopper",
        erasing="the operator's mail server forgets them",
    ),
    OtherPlace(
        name="Backups and write-ahead log",
        about="all of the above as it was",
        kept="as repo1-retention-full says: five weeks in the sample",
        erasing="go with their retention; after a restore, `forget_shopper --again` with the reports made since",
    ),
)

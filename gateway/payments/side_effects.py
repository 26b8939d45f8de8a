"""Side effects of completing a payment: registration, agreement, mandate mail, subscription job.

They are written in the statement that completes the payment, however it is completed: at once, after the shopper
returned, or by recovery hours later. gateway.payments.store calls :func:`build_completion_effects` for all of them.
Only an approval has them; a mandate mail may be due before.
Source: Part B, Tokenization and registration, Recurring migration, Card on file; decisions, section 4, D38.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import models

from gateway.connectors.accounts import find_day_zone, holds_renewals_apart, load_connector_account
from gateway.connectors.acquirer_message import (
    LINK_PARAMETER,
    flatten_body,
    parse_scheme_reference,
    parse_transaction_link,
)
from gateway.connectors.means import Card
from gateway.connectors.point_of_service import is_initiated_by_merchant
from gateway.connectors.port import AcquirerReply
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock, identifiers
from gateway.core.authorization_validity import (
    ESTIMATED_AUTHORIZATION,
    compute_authorization_end,
    resolve_authorization_validity,
)
from gateway.core.brands import MASTERCARD_BRANDS
from gateway.db.statement import DatabaseTime
from gateway.models import (
    Agreement,
    AuthorizationExpiry,
    AuthorizationRelease,
    Channel,
    MandateMail,
    NetworkToken,
    Notification,
    Payment,
    Registration,
    Status,
)
from gateway.payments import mandate_mails
from gateway.payments.chain_amounts import INCREMENTAL_AUTHORIZATION, REAUTHORIZATION
from gateway.payments.job_hooks import JOB_HOOKS
from gateway.payments.nested_values import deep_merge
from gateway.payments.network_brands import find_network_brand
from gateway.payments.operation_table import RELEASED_BY_REVERSAL
from gateway.payments.payment_means import STORABLE_MEANS
from gateway.payments.states import FINAL_STATUSES
from gateway.payments.stored_answer import PrivateFacts, read_private_facts
from gateway.payments.stored_tokens import build_token_row, is_tokenizable, wants_network_tokens
from gateway.vault.sealing import VaultError, current_vault

REGISTRATION_PAYMENT_TYPE: Final = "RG"
INITIAL_MODE: Final = "INITIAL"
RENEWED_FIELDS: Final = ("expiryMonth", "expiryYear")
"""What a shopper may renew of a stored card while paying with it."""
OPT_OUT_PARAMETER: Final = "accountUpdater"
"""The parameter by which the account updater is not asked about a stored card (false), or is again (true)."""
LOOK_AT_CARD: Final[Mapping[str, Any]] = {"account_update_due_at": None}
"""Columns of a registration that the account updater's files are to look at anew."""
FORGET_ACCOUNT_UPDATE: Final[Mapping[str, Any]] = {"account_update": "", "account_updated_at": None, **LOOK_AT_CARD}
"""Columns of a registration whose card has a new number or date: what the account updater said was of the old one."""
_AGREEMENT_PAYMENT_TYPES: Final = frozenset({"PA", "DB", REGISTRATION_PAYMENT_TYPE})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionEffects:
    """``changes``: columns of the payment itself; ``answer``: merged into its answer; ``rows``: to insert; ``updates``:
    model, columns to change and which rows."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[tuple[type[models.Model], Mapping[str, Any]]] = ()
    updates: Sequence[tuple[type[models.Model], Mapping[str, Any], Mapping[str, Any]]] = ()


NO_EFFECTS: Final = CompletionEffects()


def build_completion_effects(
    payment: Payment, status: Status, reply: AcquirerReply, *, at: datetime, sequence: int
) -> CompletionEffects:
    """The side effects of moving ``payment`` to ``status``. ``sequence``: the number of that move."""
    final = status in FINAL_STATUSES
    # The account of a direct registration is stored in the registration only, or not at all.
    changes: dict[str, Any] = (
        {"means_sealed": None} if final and payment.payment_type == REGISTRATION_PAYMENT_TYPE else {}
    )
    mail = mandate_mails.build_mandate_mail_row(payment, at) if mandate_mails.is_mandate_used(payment, status) else None
    rows: list[tuple[type[models.Model], Mapping[str, Any]]] = [(MandateMail, mail)] if mail is not None else []
    if status != Status.APPROVED:
        return CompletionEffects(changes=changes, rows=rows) if changes or rows else NO_EFFECTS
    if payment.final and payment.payment_type in ("CP", "RV") and payment.connector in RELEASED_BY_REVERSAL:
        rows.append((AuthorizationRelease, build_release_row(payment, AuthorizationRelease.Cause.FINAL, at)))
    if payment.practice == REAUTHORIZATION and _is_held_apart(payment):
        replaced = build_release_row(payment, AuthorizationRelease.Cause.RENEWAL, at) | {"payment": payment.id}
        rows.append((AuthorizationRelease, replaced))
    if payment.payment_type == "RV" and reply.reopens_authorization:
        # The authorization may be closed or have expired meanwhile: then the rest is released.
        changes["reopens_authorization"] = True
        rows.append((AuthorizationExpiry, _build_expiry_row(payment, at)))
    if (expires_at := _resolve_authorization_end(payment, reply, at)) is not None:
        changes["expires_at"] = expires_at
        rows.append((AuthorizationExpiry, _build_expiry_row(payment, expires_at)))
    registered = _build_registration(payment, at)
    registration = payment.registration
    if registered is not None:
        registration = registered["id"]
        changes["registration"] = registration
        rows += [
            (Registration, registered),
            (Notification, build_registration_notification(payment, registration, "CREATED", sequence, at)),
            *_build_token_rows(payment, registered["id"], at),
        ]
    renewed = _build_renewal(payment, at)
    if renewed is not None:
        rows.append((Notification, build_registration_notification(payment, renewed[2]["id"], "UPDATED", sequence, at)))
    answer: dict[str, Any] = {}
    agreed = _build_agreement(payment, reply, registration, at)
    if agreed is not None:
        rows.append((Agreement, agreed))
        answer = _build_agreement_references(payment, agreed)
    if reply.network_reference or reply.transaction_link:
        answer |= _build_kept_references(reply, stores=registered is not None and agreed is None)
    updates = [one for one in (renewed, _build_linking(payment, reply)) if one is not None]
    if registration is not None and "job" in payment.request:
        agreement = agreed["id"] if agreed is not None else None
        started = JOB_HOOKS.get().start(payment, reply, registration, agreement, at)
        rows += started.rows
        answer = deep_merge(answer, started.answer)
    if not (changes or rows or answer):
        return NO_EFFECTS
    return CompletionEffects(changes=changes, answer=answer, rows=rows, updates=updates)


def build_release_row(payment: Payment, cause: AuthorizationRelease.Cause, at: datetime) -> dict[str, Any]:
    """The columns of the row by which the rest of the authorization of ``payment``'s chain is released."""
    return {
        "authorization": payment.chain,
        "merchant_id": payment.merchant_id,
        "channel_id": payment.channel_id,
        "cause": cause,
        "state": AuthorizationRelease.State.OPEN,
        "currency": payment.currency,
        "due_at": DatabaseTime(timedelta(0)),
        "created_at": at,
    }


def _build_expiry_row(payment: Payment, due_at: datetime) -> dict[str, Any]:
    """The columns of the row by which the authorization of ``payment``'s chain is looked at."""
    return {"authorization": payment.chain, "merchant_id": payment.merchant_id, "due_at": due_at}


def _is_held_apart(renewal: Payment) -> bool:
    """Whether the acquirer of a renewal goes on holding what it renews."""
    connector = CONNECTORS.get(renewal.connector)
    try:
        return holds_renewals_apart(connector, renewal.channel_id, renewal.acquirer_merchant_id)
    except VaultError:  # the release asks again
        return True


def _resolve_authorization_end(payment: Payment, reply: AcquirerReply, at: datetime) -> datetime | None:
    """The time until which an authorization or its renewal, approved at ``at``, may be captured: by the table, or by
    the acquirer if that is earlier; None without an end. Of increments, only one of a preauthorization at Mastercard
    begins the days anew; one of 0.00 holds nothing. Source: Mastercard Transaction Processing Rules, 2.9;
    docs/decisions/0142."""
    if payment.payment_type != "PA" or reply.approved is None or not reply.approved:
        return None
    channel = payment.channel
    raises = payment.practice == INCREMENTAL_AUTHORIZATION
    network_brand = find_network_brand(payment)
    if raises and network_brand not in MASTERCARD_BRANDS:
        return None
    brand = payment.brand if payment.brand in channel.authorization_days else network_brand
    kind = payment.authorization_kind or _find_first_kind(payment)
    if raises and kind != ESTIMATED_AUTHORIZATION:
        return None
    country, mcc = _resolve_business(payment)
    instruction = flatten_body({"standingInstruction": payment.request.get("standingInstruction") or {}})
    validity = resolve_authorization_validity(
        brand,
        payment.method,
        channel.authorization_days,
        kind=kind,
        merchant_initiated=is_initiated_by_merchant(instruction, follows=bool(payment.practice)),
        country=country,
        mcc=mcc,
    )
    zone = find_day_zone(CONNECTORS.get(payment.connector), payment.channel_id, payment.acquirer_merchant_id)
    ends = [compute_authorization_end(at, validity, zone)] if validity is not None else []
    if reply.valid_for is not None:
        ends.append(at + reply.valid_for)
    return min(ends, default=None)


def _find_first_kind(payment: Payment) -> str:
    """The kind that the chain's first authorization was sent with, of a follow-up that does not have it: the channel
    may have another one by now."""
    first = Payment.objects.filter(pk=payment.chain).values_list("authorization_kind", flat=True).first()
    return first or payment.channel.authorization_kind


def _resolve_business(payment: Payment) -> tuple[str, str]:
    """The merchant's country and category code (MCC): those of the request, else those of the acquirer account."""
    merchant: Mapping[str, str] = payment.request.get("merchant") or {}
    country, mcc = merchant.get("country", ""), merchant.get("mcc", "")
    connector = CONNECTORS.get(payment.connector)
    if (country and mcc) or connector is None:
        return country, mcc
    try:
        account = load_connector_account(connector, payment.channel_id, payment.acquirer_merchant_id)
    except VaultError:  # the payment is approved, whatever its account's secrets
        return country, mcc
    return country or account.settings.get("country", ""), mcc or account.settings.get("mcc", "")


def build_registration_notification(
    payment: Payment, registration: UUID, action: str, sequence: int, at: datetime
) -> dict[str, Any]:
    """The columns of a notification about a registration, written with a move of ``payment``."""
    return {
        "merchant_id": payment.merchant_id,
        "channel_id": payment.channel_id,
        "kind": "REGISTRATION",
        "action": action,
        "payment_id": payment.id,
        "registration": registration,
        "sequence": sequence,
        "created_at": at,
    }


def creates_registration(payment: Payment) -> bool:
    """Whether the payment creates a registration when it is approved."""
    if payment.payment_type == REGISTRATION_PAYMENT_TYPE:
        return True
    return payment.registration is None and payment.request.get("createRegistration") == "true"


def _build_token_rows(
    payment: Payment, registration: UUID, at: datetime
) -> list[tuple[type[models.Model], Mapping[str, Any]]]:
    """The row by which the card that an approved payment stores gets a network token, where it does."""
    if payment.means != Card.kind or not wants_network_tokens(payment.channel):
        return []
    details = build_registration_details(payment)
    wallet = any(name.startswith("wallet") for name in details)
    if not is_tokenizable(payment.brand, details.get(Card.kind, {}), wallet=wallet):
        return []
    return [(NetworkToken, build_token_row(registration, at))]


def _build_registration(payment: Payment, at: datetime) -> dict[str, Any] | None:
    """The columns of the registration that an approved payment creates, or None."""
    if not creates_registration(payment) or payment.means not in STORABLE_MEANS or payment.means_sealed is None:
        return None
    direct = payment.payment_type == REGISTRATION_PAYMENT_TYPE
    ident = payment.id if direct else identifiers.row_id()
    keys = current_vault()
    try:
        account = keys.open(payment.means_sealed, payment.id)
    except VaultError as fault:
        # The money has moved: the approval must be written even without the registration.
        log.error("registration_not_created", payment=payment.id.hex, why=str(fault))
        return None
    return {
        "id": ident,
        "merchant_id": payment.merchant_id,
        "channel_id": payment.channel_id,
        "status": Registration.Status.ACTIVE,
        "brand": payment.brand,
        "method": payment.method,
        "means": payment.means,
        "means_sealed": keys.seal(account, ident),
        "details": build_registration_details(payment),
        "request": _echo_direct_registration(payment.request) if direct else _echo_stored_means(payment.request),
        "payment": payment.id,
        "test_mode": payment.test_mode,
        "sequence": 1,
        "retain_until": resolve_retention_end(payment.channel, at),
        "created_at": at,
    }


def build_registration_details(payment: Payment) -> dict[str, Any]:
    """The public details of a payment's means, by structure; a card from a wallet includes the wallet."""
    means = {name: deep_merge(payment.answer.get(name, {}), payment.request.get(name, {})) for name in STORABLE_MEANS}
    wallets = {name: payment.request[name] for name in ("wallet1", "wallet2", "wallet3") if name in payment.request}
    return {name: value for name, value in {**means, **wallets}.items() if value}


def _build_renewal(
    payment: Payment, at: datetime
) -> tuple[type[models.Model], Mapping[str, Any], Mapping[str, Any]] | None:
    """The update of the registration whose card was paid with under a new expiry date; None for any other payment, and
    where the registration is gone. A registration that was changed since it was read here stays as it was changed; its
    webhook ("UPDATED") is sent all the same, since the statement inserts its row whether or not this update found one:
    it shows the registration as it was changed."""
    if payment.registration is None or not read_private_facts(payment.answer).renews_card:
        return None
    row = Registration.objects.filter(pk=payment.registration, status=Registration.Status.ACTIVE).first()
    if row is None:
        return None
    sent = {name: value for name, value in payment.answer.get("card", {}).items() if name in RENEWED_FIELDS}
    changes = {
        "details": deep_merge(row.details, {"card": sent}),
        "updated_at": at,
        "sequence": row.sequence + 1,
        **FORGET_ACCOUNT_UPDATE,
    }
    return Registration, changes, {"id": row.id, "sequence": row.sequence}


_UNSTORED_PARAMETERS: Final = frozenset(
    {
        *STORABLE_MEANS,
        "paymentType",
        "paymentBrand",
        "amount",
        "currency",
        "testMode",
        "createRegistration",
        "transactionProcessingCode",
    }
)


def _echo_direct_registration(request: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a direct registration that the registration echoes: without means and payment."""
    return {name: value for name, value in request.items() if name not in _UNSTORED_PARAMETERS}


def _echo_stored_means(request: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a payment that the registration made with it echoes: only what is about the stored means."""
    return {name: value for name, value in request.items() if name == OPT_OUT_PARAMETER}


def resolve_retention_end(channel: Channel, at: datetime) -> datetime | None:
    """The end of the retention period of a registration created or extended at ``at``; None without one."""
    return None if channel.registration_days is None else at + timedelta(days=channel.registration_days)


def _build_agreement(
    payment: Payment, reply: AcquirerReply, registration: UUID | None, at: datetime
) -> dict[str, Any] | None:
    """The columns of the agreement that an approved payment makes: one with mode INITIAL, or a migrated registration;
    None for any other."""
    instruction: Mapping[str, str] = payment.request.get("standingInstruction", {})
    migration: Mapping[str, str] = payment.request.get("recurringMigration", {}) if registration is not None else {}
    initial = instruction.get("mode") == INITIAL_MODE and instruction.get("source") != "MIT"
    if (
        payment.payment_type not in _AGREEMENT_PAYMENT_TYPES
        or payment.referenced is not None
        or not (initial or migration)
    ):
        return None
    migrated_reference = next((migration[name] for name in _MIGRATED_REFERENCE_NAMES if name in migration), "")
    expiry, frequency, most = (instruction.get(name) for name in ("expiry", "frequency", "numberOfInstallments"))
    first_at = at if payment.amount > 0 and payment.payment_type != REGISTRATION_PAYMENT_TYPE else None
    if migration:
        first_at = clock.parse_time(migration.get("requestTimestamp")) or first_at
    link = "" if migration else reply.transaction_link
    return {
        "id": payment.id,
        "merchant_id": payment.merchant_id,
        "channel_id": payment.channel_id,
        # A migrated agreement is sent to acquirers with the reference it came with, or with none: our own account
        # check is not the transaction in which the cardholder agreed.
        "reference": migrated_reference or ("" if migration else reply.connector_tx_id) or payment.id.hex,
        "network_reference": migrated_reference if migration else parse_scheme_reference(reply.network_reference),
        "agreement_id": _resolve_agreement_id(payment, instruction, link),
        "transaction_link": link,
        "registration": registration,
        "brand": find_network_brand(payment),
        "type": instruction.get("type", ""),
        "expiry": date.fromisoformat(expiry) if expiry else None,
        "frequency": int(frequency or 0) or None,
        "max_payments": int(most or 0) or None,
        "first_at": first_at,
        "follow_ups": 0,
        "created_at": at,
    }


_MIGRATED_REFERENCE_NAMES: Final = ("connectorTxId1", "connectorTxId2", "connectorTxId3")


def _resolve_agreement_id(payment: Payment, instruction: Mapping[str, str], link: str) -> str:
    """The agreementId: the one that was sent, else, on channels that use them, the network's ``link`` or a generated
    one (AN35)."""
    if sent := instruction.get("agreementId"):
        return sent
    return "" if payment.channel.agreement_ids == Channel.AgreementIds.NONE else link or f"A{payment.id.hex.upper()}"


def _build_kept_references(reply: AcquirerReply, *, stores: bool) -> dict[str, Any]:
    """The network's names of an approved payment that it keeps for what comes later. ``stores``: it stores its means,
    and makes no agreement, which would keep the reference."""
    reference = parse_scheme_reference(reply.network_reference) if stores else ""
    return PrivateFacts(network_reference=reference, transaction_link=reply.transaction_link).as_json()


def _build_linking(
    payment: Payment, reply: AcquirerReply
) -> tuple[type[models.Model], Mapping[str, Any], Mapping[str, Any]] | None:
    """The update of an agreement without a transaction link, because its first payment was told none or was made
    elsewhere: Mastercard wants that of the first payment after it to be named instead. None for any other payment.

    Source: https://docs.stripe.com/payments/cards/mastercard-tlid (the earliest authorized MIT).
    """
    if payment.agreement is None or not reply.transaction_link:
        return None
    if parse_transaction_link(read_private_facts(payment.answer).agreement_references.get(LINK_PARAMETER, "")):
        return None
    return Agreement, {"transaction_link": reply.transaction_link}, {"id": payment.agreement, "transaction_link": ""}


def _build_agreement_references(payment: Payment, agreed: Mapping[str, Any]) -> dict[str, Any]:
    """The ids that an INITIAL payment's answer shows for later payments (ruling D38), by the channel's setting."""
    ids = Channel.AgreementIds(payment.channel.agreement_ids)
    instruction: dict[str, str] = {}
    details: dict[str, str] = {}
    if ids != Channel.AgreementIds.ONLY:
        instruction["initialTransactionId"] = agreed["reference"]
        details["CardholderInitiatedTransactionID"] = agreed["reference"]
    if agreed["agreement_id"]:
        instruction["agreementId"] = agreed["agreement_id"]
    return {"resultDetails": details, "facts": {"standingInstruction": instruction}}

"""Registrations (stored means of payment): find, pay with, update, extend, delete.

A direct registration is a payment of type RG processed like any other; its approval writes the registration
(gateway.payments.side_effects) under the same id. Updating (RR), extending (TE) and deleting (DR) call no acquirer:
each is one statement that changes the registration as it was read and inserts a record-only payment.
Source: Part A, Endpoints (registration); Part B, Tokenization and registration; ruling D5; decisions, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import Model

from gateway.catalogue.endpoints import FOLLOW_UP_ENDPOINT, UPDATE_REGISTRATION_ENDPOINT, Endpoint
from gateway.catalogue.parse import ParameterError, Parameters
from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.means import Card, Means
from gateway.connectors.sepa.mandates import end_stored_mandate_write
from gateway.core import brands, clock, identifiers
from gateway.core.card_number import CardNumber, is_card_expired
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE, VAULT_ERROR_CODE
from gateway.db.statement import DatabaseTime, WriteStatement
from gateway.models import (
    AccountUpdate,
    Agreement,
    Channel,
    Merchant,
    NetworkToken,
    Payment,
    Registration,
    SepaMandate,
    Status,
)
from gateway.payments import store
from gateway.payments.agreements import MERCHANT_INITIATED_USES, classify_agreement_use
from gateway.payments.descriptors import DESCRIPTOR, resolve_default_descriptor
from gateway.payments.nested_values import deep_merge
from gateway.payments.payment_means import STORABLE_MEANS, find_sent_account, means_from_account
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.record_only_payments import resolve_success_code
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError, build_parameter_refusal
from gateway.payments.request_builder import StoredMeans
from gateway.payments.side_effects import (
    FORGET_ACCOUNT_UPDATE,
    LOOK_AT_CARD,
    OPT_OUT_PARAMETER,
    REGISTRATION_PAYMENT_TYPE,
    RENEWED_FIELDS,
    build_registration_notification,
    resolve_retention_end,
)
from gateway.payments.stored_answer import merge_shown_facts
from gateway.payments.stored_request import build_stored_request
from gateway.payments.stored_tokens import has_usable_token
from gateway.vault.sealing import VaultError, current_vault

REGISTRATION_UNCONFIRMED_CODE: Final = "100.150.201"
UNKNOWN_REGISTRATION_CODE: Final = "100.150.200"
REGISTRATION_DELETED_CODE: Final = "100.150.202"
REGISTRATION_DECLINED_CODE: Final = "100.150.203"
NOT_A_REGISTRATION_CODE: Final = "100.150.204"
RETENTION_ENDED_CODE: Final = "100.150.206"
NOT_REGISTERED_CODE: Final = "100.350.316"
"""Answer to extending a deleted registration."""
CARD_EXPIRED_CODE: Final = "100.100.303"
WRONG_CVV_CODE: Final = "100.100.601"
ACCOUNT_BLOCKS: Final[Mapping[str, tuple[str, str]]] = {
    AccountUpdate.Status.CLOSED: ("700.601.003", "is of an account that is closed, says the account updater"),
    AccountUpdate.Status.CONTACT_HOLDER: ("700.601.001", "is to be renewed by its holder, says the account updater"),
}
"""What the account updater said of a card → why the merchant's payments with it are declined: result code, message."""
UPDATE_REGISTRATION_TYPE, EXTEND_REGISTRATION_TYPE, DELETE_REGISTRATION_TYPE = "RR", "TE", "DR"
REGISTRATION_NOTIFICATION_ACTIONS: Final[Mapping[str, str]] = {
    UPDATE_REGISTRATION_TYPE: "UPDATED",
    EXTEND_REGISTRATION_TYPE: "UPDATED",
    DELETE_REGISTRATION_TYPE: "DELETED",
}
"""Payment type of a change → the action of its notification."""
_HOLDERS: Final = ("card", "bankAccount")
_ACCOUNT_PARAMETER_NAMES: Final = ("card.number", "bankAccount.iban", "bankAccount.number", "virtualAccount.accountId")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """A request to change a registration or a subscription job. ``now``: the merchant's clock."""

    merchant: Merchant
    now: datetime
    trace: RequestTrace
    parameters: Parameters
    idempotency: IdempotencyContext | None = None


def find_registration(target: UUID | None, merchant: Merchant, channel: Channel | None) -> Registration:
    """Find an active registration of this merchant (and channel). Raises RequestRefusedError: 404 for an unknown id;
    400 with its own code for a payment's id, a declined or unconfirmed registration, and a deleted one."""
    if target is None:
        raise RequestRefusedError(UNKNOWN_REGISTRATION_CODE, status=404)
    own = {"pk": target, "merchant": merchant.pk} | ({"channel": channel.pk} if channel is not None else {})
    found = Registration.objects.filter(**own).select_related("channel", "network_token").first()
    if found is None:
        raise _build_registration_refusal(Payment.objects.filter(**own).only("payment_type", "status").first())
    found.merchant = merchant
    found.channel.merchant = merchant
    if found.status == Registration.Status.DELETED:
        raise RequestRefusedError(REGISTRATION_DELETED_CODE)
    return found


def _build_registration_refusal(payment: Payment | None) -> RequestRefusedError:
    if payment is None:
        return RequestRefusedError(UNKNOWN_REGISTRATION_CODE, status=404)
    if payment.payment_type != REGISTRATION_PAYMENT_TYPE:
        return RequestRefusedError(NOT_A_REGISTRATION_CODE)
    return RequestRefusedError(
        REGISTRATION_DECLINED_CODE if payment.status == Status.DECLINED else REGISTRATION_UNCONFIRMED_CODE
    )


def check_registration_retention(registration: Registration, now: datetime) -> None:
    """Raise RequestRefusedError (100.150.206) for a registration past its retention period."""
    if registration.retain_until is not None and now > registration.retain_until:
        raise RequestRefusedError(RETENTION_ENDED_CODE)


# --- paying -------------------------------------------------------------------------------------------------------


def load_stored_means(
    registration: Registration, parameters: Parameters, now: datetime, renewed: Mapping[str, str] | None = None
) -> StoredMeans:
    """Load the means of a one-click payment. Adds to ``parameters.refusals`` what declines the payment: an expired
    card, a security code of the wrong length. ``renewed``: expiryMonth and expiryYear to pay with in place of the
    stored ones. Raises RequestRefusedError when no payment is possible at all."""
    check_registration_retention(registration, now)
    if not registration.channel.active:
        raise RequestRefusedError(CHANNEL_NOT_CONFIGURED_CODE)
    brand = parameters.get("paymentBrand")
    if brand is not None and brand != registration.brand:
        message = f"is not the brand of this registration, which is {registration.brand}"
        raise build_parameter_refusal("600.200.800", "paymentBrand", message, value=brand[:32])
    details = deep_merge(registration.details, {"card": dict(renewed)} if renewed else {})
    _resolve_holder(details, parameters)
    values = flatten_body(details) | {
        name: value for name, value in parameters.values.items() if name.endswith(".holder")
    }
    means = open_registration_means(registration, values)
    parameters.refusals = (
        *parameters.refusals,
        *_list_block_refusals(registration, parameters),
        *_list_card_refusals(registration, details, parameters, now),
    )
    return StoredMeans(
        registration=registration.id,
        brand=registration.brand,
        means=means,
        details=details,
        renewed=details != registration.details,
    )


def open_registration_means(registration: Registration, values: Mapping[str, str]) -> Means:
    """The means of a registration from the vault. Raises RequestRefusedError when it does not open."""
    if registration.means_sealed is None:
        raise RequestRefusedError(REGISTRATION_DELETED_CODE)
    try:
        account = current_vault().open(registration.means_sealed, registration.id)
    except VaultError:
        # Read once more: it may have been rewrapped, and its old key retired, since it was read.
        registration.refresh_from_db(fields=["means_sealed"])
        try:
            account = current_vault().open(registration.means_sealed or b"", registration.id)
        except VaultError:
            raise RequestRefusedError(VAULT_ERROR_CODE) from None
    return means_from_account(registration.means, account, values)


def _resolve_holder(details: Mapping[str, Any], parameters: Parameters) -> None:
    """Drop a sent holder and report it as ignored, unless overrideHolder=true is sent and the registration has none; a
    sent holder is never stored. Source: Part B, Tokenization and registration (overrideHolder)."""
    for structure in _HOLDERS:
        name = f"{structure}.holder"
        if name not in parameters:
            continue
        empty = structure in details and not details[structure].get("holder")
        if parameters.get("overrideHolder") != "true" or not empty:
            parameters.drop(name)
            parameters.ignored = (*parameters.ignored, name)


def _list_block_refusals(registration: Registration, parameters: Parameters) -> list[ParameterError]:
    """What declines a merchant-initiated payment after a chargeback for fraud or revocation, or after what the account
    updater said, unless the holder agreed again since: with a new INITIAL payment."""
    if classify_agreement_use(parameters) not in MERCHANT_INITIATED_USES:
        return []
    message = "is charged back as fraud or revoked: only its holder can pay with it, or agree again"
    blocks = [(registration.merchant_use_blocked_at, registration.merchant_use_code, message)]
    if registration.account_update in ACCOUNT_BLOCKS:
        blocks.append((registration.account_updated_at, *ACCOUNT_BLOCKS[registration.account_update]))
    for since, code, words in blocks:
        if since is None or Agreement.objects.filter(registration=registration.pk, created_at__gt=since).exists():
            continue
        return [ParameterError(name="registrationId", message=words, code=code, known=True)]
    return []


def _list_card_refusals(
    registration: Registration, details: Mapping[str, Any], parameters: Parameters, now: datetime
) -> list[ParameterError]:
    card = details.get("card")
    if card is None:
        return []
    found = []
    if is_card_expired(card.get("expiryMonth"), card.get("expiryYear"), now) and not has_usable_token(
        registration, now
    ):
        found.append(
            ParameterError(
                name="card.expiryMonth", message="the stored card is past its expiry", code=CARD_EXPIRED_CODE
            )
        )
    cvv = parameters.secret("card.cvv")
    if cvv is not None and not brands.is_valid_cvv_length(registration.brand, len(cvv)):
        message = f"has not as many digits as {registration.brand} prints"
        found.append(ParameterError(name="card.cvv", message=message, value="•••", code=WRONG_CVV_CODE, known=True))
    return found


# --- changing -----------------------------------------------------------------------------------------------------


def delete_registration(registration: Registration, change: ChangeRequest) -> Payment:
    """Erase the stored account irrevocably, and end the mandate that was given with it. Payments made with it are not
    changed."""
    erased = {
        "status": Registration.Status.DELETED,
        "means_sealed": None,
        "deleted_at": change.now,
    }
    return _write_registration_change(registration, DELETE_REGISTRATION_TYPE, erased, change)


def delete_registration_by_hand(registration: Registration, *, path: str, ip: str | None) -> Payment:
    """Delete as the API does, without a request of the API. ``path``: what the request log shows. Raises
    RequestRefusedError."""
    return delete_registration(
        *_prepare_change_by_hand(registration, FOLLOW_UP_ENDPOINT, {"paymentType": "RV"}, path, ip)
    )


def set_account_updates_by_hand(registration: Registration, *, wanted: bool, path: str, ip: str | None) -> Payment:
    """Let the account updater be asked about a stored card, or not, as the API does by ``accountUpdater``. Raises
    RequestRefusedError."""
    sent = {OPT_OUT_PARAMETER: "true" if wanted else "false"}
    return update_registration(*_prepare_change_by_hand(registration, UPDATE_REGISTRATION_ENDPOINT, sent, path, ip))


def _prepare_change_by_hand(
    registration: Registration, endpoint: Endpoint, sent: Mapping[str, str], path: str, ip: str | None
) -> tuple[Registration, ChangeRequest]:
    """The registration as it is now, and a change of it that no request of the API asked for."""
    trace = RequestTrace(method="POST", path=path, ip=ip, entity=registration.channel_id)
    channel = registration.channel
    parameters = endpoint.catalogue.parse([("entityId", channel.entity_id), *sent.items()])
    found = find_registration(registration.pk, registration.merchant, channel)
    now = clock.merchant_now(registration.merchant)
    return found, ChangeRequest(merchant=registration.merchant, now=now, trace=trace, parameters=parameters)


def extend_registration(registration: Registration, change: ChangeRequest) -> Payment:
    """Restart the retention period; on channels without one the registration does not expire."""
    check_registration_retention(registration, change.now)
    return _write_registration_change(
        registration,
        EXTEND_REGISTRATION_TYPE,
        {"retain_until": resolve_retention_end(registration.channel, change.now)},
        change,
    )


def update_registration(registration: Registration, change: ChangeRequest) -> Payment:
    """Replace the stored values that were sent and leave the others. No acquirer is called: the next payment shows
    whether the account is valid. Raises RequestRefusedError for another kind of means than the stored one."""
    check_registration_retention(registration, change.now)
    parameters = change.parameters
    for name in parameters.names:
        structure = name.partition(".")[0]
        if structure in STORABLE_MEANS and structure != registration.means:
            message = f"cannot be stored here: the registration holds a {registration.means}"
            raise build_parameter_refusal("200.300.404", name, message, known=True)
    echo = {name: value for name, value in parameters.echo().items() if name not in ("paymentBrand", "entityId")}
    sent = echo.pop(registration.means, {})
    sealed, brand = _resolve_new_account(registration, parameters)
    stored = registration.details
    if (number := parameters.secret("card.number")) is not None:
        known = CardNumber.of(number)
        sent |= {"bin": known.bin6, "last4Digits": known.last4}
        stored = _drop_wallet(stored)
    details = deep_merge(stored, {registration.means: sent} if sent else {})
    card = details.get("card", {})
    if is_card_expired(card.get("expiryMonth"), card.get("expiryYear"), change.now) and sent:
        raise build_parameter_refusal(CARD_EXPIRED_CODE, "card.expiryMonth", "the card is past its expiry", known=True)
    changes = {"details": details, "request": deep_merge(registration.request, echo), "brand": brand, **sealed}
    if sealed or any(name in sent for name in RENEWED_FIELDS):
        changes |= FORGET_ACCOUNT_UPDATE
    if OPT_OUT_PARAMETER in parameters:
        changes |= LOOK_AT_CARD
    return _write_registration_change(
        registration, UPDATE_REGISTRATION_TYPE, {**changes, "updated_at": change.now}, change
    )


def _drop_wallet(details: Mapping[str, Any]) -> dict[str, Any]:
    """Stored details without what says that the number is a wallet's: of a new number that would leave out its 3-D
    Secure and its network token."""
    kept = {name: value for name, value in details.items() if not name.startswith("wallet")}
    card = {name: value for name, value in details.get(Card.kind, {}).items() if name != "numberType"}
    return {**kept, Card.kind: card}


def _resolve_new_account(registration: Registration, parameters: Parameters) -> tuple[dict[str, Any], str]:
    """Returns (columns, brand): the sealed new account if one was sent, and its brand. Raises RequestRefusedError when
    number and brand do not fit."""
    if parameters.refusals:
        raise RequestRefusedError(parameters.refusals[0].code, parameters.refusals)
    sent = next(
        (account for name in _ACCOUNT_PARAMETER_NAMES if (account := find_sent_account(parameters, name)) is not None),
        None,
    )
    brand = parameters.get("paymentBrand") or registration.brand
    if sent is None:
        if brand != registration.brand:
            message = f"can be changed together with the number only; it is {registration.brand}"
            raise build_parameter_refusal("600.200.800", "paymentBrand", message, value=brand)
        return {}, brand
    if "card.number" in parameters:
        known = CardNumber.of(sent)
        if "paymentBrand" not in parameters and not known.fits(brand):
            brand = known.brand or brand
        if not brands.is_card_brand(brand) or not known.fits(brand):
            raise build_parameter_refusal("100.100.700", "card.number", f"is not a number of {brand}", known=True)
    return {"means_sealed": current_vault().seal(sent, registration.id)}, brand


def _write_registration_change(
    registration: Registration, kind: str, changes: Mapping[str, Any], change: ChangeRequest
) -> Payment:
    """Change the registration and insert the record-only payment in one statement. Raises RequestRefusedError (409)
    when the registration was changed since it was read."""
    for name, value in changes.items():
        setattr(registration, name, value)
    payment = _build_change_record(registration, kind, change)
    before = registration.sequence

    def changing(write: WriteStatement) -> None:
        write.update(registration, {**changes, "sequence": before + 1}, expecting={"sequence": before})
        if registration.means == Card.kind and (kind == DELETE_REGISTRATION_TYPE or "means_sealed" in changes):
            write.update_related(
                NetworkToken, _list_token_changes(kind, change.now), {"registration_id": registration.id}
            )
        if kind == DELETE_REGISTRATION_TYPE and registration.means == "bankAccount":
            columns, which = end_stored_mandate_write(registration, change.now)
            write.update_related(SepaMandate, columns, which)

    notification = build_registration_notification(
        payment, registration.id, REGISTRATION_NOTIFICATION_ACTIONS[kind], 2, change.now
    )
    if not store.insert_record_only_payment(
        payment, changing, notification, trace=change.trace, idempotency=change.idempotency
    ):
        raise RequestRefusedError(CONCURRENT_UPDATE_CODE, status=409)
    return payment


def _list_token_changes(kind: str, now: datetime) -> dict[str, Any]:
    """What becomes of the network token of a card that is deleted, or has another number: the old one is deleted at its
    network."""
    states = NetworkToken.Status
    status = states.DELETED if kind == DELETE_REGISTRATION_TYPE else states.REQUESTED
    return {
        "status": status,
        "number_sealed": None,
        "due_at": DatabaseTime(timedelta(0)),
        "tries": 0,
        "changed_at": now,
    }


def record_registration_change(
    registration: Registration,
    changes: Mapping[str, Any],
    now: datetime,
    *,
    shown: Mapping[str, Any],
    related_change: tuple[Model, Mapping[str, Any], Mapping[str, Any]] | None = None,
    added: Model | None = None,
) -> bool:
    """Change a registration as its card network reported, with the record-only payment (RR) and the webhook (UPDATED)
    of a merchant's own update. ``shown``: members that these show besides the registration's means; ``related_change``:
    another row to change in the same statement, its changes, and the values that it must still have; ``added``: a row
    to insert in it.

    Returns False if either was changed since it was read: nothing was written.
    """
    before = registration.sequence
    own = {**changes, "updated_at": now, "sequence": before + 1}
    for name, value in own.items():
        setattr(registration, name, value)
    trace = RequestTrace(method="", path="")
    parameters = FOLLOW_UP_ENDPOINT.catalogue.parse(
        [("entityId", registration.channel.entity_id), ("paymentType", "RV")]
    )
    change = ChangeRequest(merchant=registration.merchant, now=now, trace=trace, parameters=parameters)
    payment = _build_change_record(registration, UPDATE_REGISTRATION_TYPE, change)
    payment.request = {}
    payment.answer = merge_shown_facts(payment.answer, shown)

    def changing(write: WriteStatement) -> None:
        write.update(registration, own, expecting={"sequence": before})
        if "brand" in changes:
            # A token is its network's, and the card is another network's now.
            token = _list_token_changes(UPDATE_REGISTRATION_TYPE, now)
            write.update_related(NetworkToken, token, {"registration_id": registration.id})
        if related_change is not None:
            row, others, expected = related_change
            write.update(row, others, expecting=expected)
        if added is not None:
            names = [field.attname for field in added._meta.concrete_fields]
            write.insert(type(added), **{name: getattr(added, name) for name in names})

    notification = build_registration_notification(
        payment, registration.id, REGISTRATION_NOTIFICATION_ACTIONS[UPDATE_REGISTRATION_TYPE], 2, now
    )
    return store.insert_record_only_payment(payment, changing, notification, trace=None)


def _build_change_record(registration: Registration, kind: str, change: ChangeRequest) -> Payment:
    ident = identifiers.row_id()
    parameters = change.parameters
    return Payment(
        id=ident,
        merchant_id=registration.merchant_id,
        channel_id=registration.channel_id,
        chain=ident,
        referenced=registration.id,
        payment_type=kind,
        brand=registration.brand,
        method=registration.method,
        amount=Decimal(0),
        approved_amount=Decimal(0),
        currency=next(iter(registration.channel.currencies), "EUR"),
        test_mode=registration.test_mode,
        result_code=resolve_success_code(registration.test_mode),
        request=build_stored_request(parameters) if kind == UPDATE_REGISTRATION_TYPE else {},
        answer={name: registration.details[name] for name in STORABLE_MEANS if name in registration.details}
        | {DESCRIPTOR: resolve_default_descriptor(registration.channel, change.merchant)},
        means=registration.means,
        registration=registration.id,
        request_id=change.trace.request,
        created_at=change.now,
        completed_at=change.now,
    )

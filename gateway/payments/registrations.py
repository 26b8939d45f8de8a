"""Stored means of payment: found, paid with, updated, extended, deleted.

A direct registration is a payment of the type RG that goes down the straight line; when it is approved its end writes
the registration (gateway.payments.endings), which has its id. Updating (RR), extending (TE) and deleting (DR) ask
nobody: each is one statement that changes the registration as it was read, and leaves a payment row as its trace.
Source: Part A, Endpoints (registration); Part B, Tokenization and registration; ruling D5; decisions, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway import brands, identifiers
from gateway.card_number import CardNumber
from gateway.catalogue.parse import ParameterError, Parameters
from gateway.connectors.means import Means
from gateway.connectors.message import flat
from gateway.models import Channel, Merchant, Payment, Registration, Status
from gateway.payments import store
from gateway.payments.descriptors import DESCRIPTOR, own_descriptor
from gateway.payments.endings import REGISTER, retained_until, told
from gateway.payments.intake import Stored
from gateway.payments.jobs import TOLD
from gateway.payments.means import account_sent, sealed_means
from gateway.payments.recorded import success_code
from gateway.payments.refusal import NOT_SET_UP, Refused
from gateway.payments.request import Idempotency, Trace
from gateway.payments.values import merged
from gateway.rows import Write
from gateway.vault import VaultError, vault

UNCONFIRMED: Final = "100.150.201"
UNKNOWN: Final = "100.150.200"
REMOVED: Final = "100.150.202"
REFUSED_AT_THE_START: Final = "100.150.203"
NO_REGISTRATION: Final = "100.150.204"
RETENTION_ENDED: Final = "100.150.206"
NOT_REGISTERED: Final = "100.350.316"
"""Only what is registered can be extended."""
EXPIRED: Final = "100.100.303"
WRONG_CVV: Final = "100.100.601"
BUSY: Final = "800.120.402"
VAULT_FAILED: Final = "900.100.205"
UPDATE, EXTEND, DELETE = "RR", "TE", "DR"
ACTIONS: Final[Mapping[str, str]] = {UPDATE: "UPDATED", EXTEND: "UPDATED", DELETE: "DELETED"}
"""What a change's notification calls it."""
_HOLDERS: Final = ("card", "bankAccount")
_SENT: Final = ("card.number", "bankAccount.iban", "bankAccount.number", "virtualAccount.accountId")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Who changes a registration, when (the merchant's clock), and by which request."""

    merchant: Merchant
    now: datetime
    trace: Trace
    parameters: Parameters
    idempotency: Idempotency | None = None


def find(target: UUID | None, merchant: Merchant, channel: Channel | None) -> Registration:
    """The registration of this merchant (and channel). Raises Refused: 404 for one there is not, 400 with its code for
    a payment's id, one that was refused or is not answered yet, and one that was deleted."""
    if target is None:
        raise Refused(UNKNOWN, status=404)
    own = {"pk": target, "merchant": merchant.pk} | ({"channel": channel.pk} if channel is not None else {})
    found = Registration.objects.filter(**own).select_related("channel").first()
    if found is None:
        raise _not_found(Payment.objects.filter(**own).only("payment_type", "status").first())
    found.merchant = merchant
    found.channel.merchant = merchant
    if found.status == Registration.Status.DELETED:
        raise Refused(REMOVED)
    return found


def _not_found(payment: Payment | None) -> Refused:
    if payment is None:
        return Refused(UNKNOWN, status=404)
    if payment.payment_type != REGISTER:
        return Refused(NO_REGISTRATION)
    return Refused(REFUSED_AT_THE_START if payment.status == Status.DECLINED else UNCONFIRMED)


def refuse_what_has_ended(registration: Registration, now: datetime) -> None:
    """Raise Refused (100.150.206) for a registration past its retention period."""
    if registration.retain_until is not None and now > registration.retain_until:
        raise Refused(RETENTION_ENDED)


# --- paying -------------------------------------------------------------------------------------------------------


def stored_means(registration: Registration, parameters: Parameters, now: datetime) -> Stored:
    """The means of a one-click payment. Adds to ``parameters.refusals`` what makes it a refused payment: an expired
    card, a security code that is none of its brand. Raises Refused when it cannot be paid with at all."""
    refuse_what_has_ended(registration, now)
    if not registration.channel.active:
        raise Refused(NOT_SET_UP)
    brand = parameters.get("paymentBrand")
    if brand is not None and brand != registration.brand:
        message = f"is not the brand of this registration, which is {registration.brand}"
        raise Refused("600.200.800", [ParameterError(name="paymentBrand", value=brand[:32], message=message)])
    details = dict(registration.details)
    _settle_holder(details, parameters)
    values = flat(details) | {name: value for name, value in parameters.values.items() if name.endswith(".holder")}
    means = opened(registration, values)
    parameters.refusals = (*parameters.refusals, *_refusals(registration, details, parameters, now))
    return Stored(registration=registration.id, brand=registration.brand, means=means, details=details)


def opened(registration: Registration, values: Mapping[str, str]) -> Means:
    """The means, out of the vault. Raises Refused when it does not open."""
    if registration.means_sealed is None:
        raise Refused(REMOVED)
    try:
        account = vault().open(registration.means_sealed, registration.id)
    except VaultError:
        # Read again: it may have been sealed anew, and its old key retired, since it was read.
        registration.refresh_from_db(fields=["means_sealed"])
        try:
            account = vault().open(registration.means_sealed or b"", registration.id)
        except VaultError:
            raise Refused(VAULT_FAILED) from None
    return sealed_means(registration.means, account, values)


def _settle_holder(details: Mapping[str, Any], parameters: Parameters) -> None:
    """A sent holder counts with overrideHolder=true, and only where the registration has none; it is never stored.
    Any other one is left out of the payment, and told as ignored. Source: Part B, Tokenization (overrideHolder)."""
    for structure in _HOLDERS:
        name = f"{structure}.holder"
        if name not in parameters:
            continue
        empty = structure in details and not details[structure].get("holder")
        if parameters.get("overrideHolder") != "true" or not empty:
            parameters.drop(name)
            parameters.ignored = (*parameters.ignored, name)


def _refusals(
    registration: Registration, details: Mapping[str, Any], parameters: Parameters, now: datetime
) -> list[ParameterError]:
    card = details.get("card")
    if card is None:
        return []
    found = []
    if is_past(card.get("expiryMonth"), card.get("expiryYear"), now):
        found.append(
            ParameterError(name="card.expiryMonth", message="the stored card is past its expiry", code=EXPIRED)
        )
    cvv = parameters.secret("card.cvv")
    if cvv is not None and not brands.cvv_ok(registration.brand, len(cvv)):
        message = f"has not as many digits as {registration.brand} prints"
        found.append(ParameterError(name="card.cvv", message=message, value="•••", code=WRONG_CVV, known=True))
    return found


def is_past(month: str | None, year: str | None, now: datetime) -> bool:
    """Whether a card is past its expiry: it is good until the end of its month."""
    return month is not None and year is not None and f"{year}-{month}" < f"{now:%Y-%m}"


# --- changing -----------------------------------------------------------------------------------------------------


def delete(registration: Registration, change: Change) -> Payment:
    """Erase the stored account for good. Payments that were made with it stay as they are."""
    erased = {
        "status": Registration.Status.DELETED, "means_sealed": None, "deleted_at": change.now,
    }  # fmt: skip
    return _change(registration, DELETE, erased, change)


def extend(registration: Registration, change: Change) -> Payment:
    """Begin the retention period anew; where the channel has none, nothing ends."""
    refuse_what_has_ended(registration, change.now)
    return _change(
        registration, EXTEND, {"retain_until": retained_until(registration.channel, change.now)}, change
    )  # fmt: skip


def update(registration: Registration, change: Change) -> Payment:
    """Put what was sent in the place of what is stored; what was not sent stays. Nobody is asked: the next payment
    tells whether the account is good. Raises Refused for another kind of means than the one that is stored."""
    refuse_what_has_ended(registration, change.now)
    parameters = change.parameters
    for name in parameters.names:
        structure = name.partition(".")[0]
        if structure in ("card", "bankAccount", "virtualAccount") and structure != registration.means:
            message = f"cannot be stored here: the registration holds a {registration.means}"
            raise Refused("200.300.404", [ParameterError(name=name, message=message, known=True)])
    echo = {name: value for name, value in parameters.echo().items() if name not in ("paymentBrand", "entityId")}
    sent = echo.pop(registration.means, {})
    sealed, brand = _account(registration, parameters)
    if (number := parameters.secret("card.number")) is not None:
        known = CardNumber.of(number)
        sent |= {"bin": known.bin6, "last4Digits": known.last4}
    details = merged(registration.details, {registration.means: sent} if sent else {})
    card = details.get("card", {})
    if is_past(card.get("expiryMonth"), card.get("expiryYear"), change.now) and sent:
        error = ParameterError(name="card.expiryMonth", message="the card is past its expiry", code=EXPIRED, known=True)
        raise Refused(EXPIRED, [error])
    changes = {"details": details, "request": merged(registration.request, echo), "brand": brand, **sealed}
    return _change(registration, UPDATE, {**changes, "updated_at": change.now}, change)


def _account(registration: Registration, parameters: Parameters) -> tuple[dict[str, Any], str]:
    """The columns of a new account, if one was sent, and the brand it has. Raises Refused for what does not fit."""
    if parameters.refusals:
        raise Refused(parameters.refusals[0].code, parameters.refusals)
    sent = next((account for name in _SENT if (account := account_sent(parameters, name)) is not None), None)
    brand = parameters.get("paymentBrand") or registration.brand
    if sent is None:
        if brand != registration.brand:
            message = f"can be changed together with the number only; it is {registration.brand}"
            raise Refused("600.200.800", [ParameterError(name="paymentBrand", value=brand, message=message)])
        return {}, brand
    if "card.number" in parameters:
        known = CardNumber.of(sent)
        if "paymentBrand" not in parameters and not known.fits(brand):
            brand = known.brand or brand
        if not brands.is_card(brand) or not known.fits(brand):
            error = ParameterError(name="card.number", message=f"is not a number of {brand}", known=True)
            raise Refused("100.100.700", [error])
    return {"means_sealed": vault().seal(sent, registration.id)}, brand


def _change(registration: Registration, kind: str, changes: Mapping[str, Any], change: Change) -> Payment:
    """One statement: the registration as it was read is changed, with a payment that tells of it. Raises Refused when
    somebody else changed it meanwhile."""
    for name, value in changes.items():
        setattr(registration, name, value)
    payment = _trace(registration, kind, change)
    before = registration.sequence

    def changing(write: Write) -> None:
        write.update(registration, {**changes, "sequence": before + 1}, expecting={"sequence": before})

    notification = told(payment, registration.id, ACTIONS[kind], 2, change.now)
    if not store.record_change(
        payment, changing, notification, trace=change.trace, idempotency=change.idempotency
    ):  # fmt: skip
        raise Refused(BUSY, status=409)
    return payment


def _trace(registration: Registration, kind: str, change: Change) -> Payment:
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
        approved=Decimal(0),
        currency=next(iter(registration.channel.currencies), "EUR"),
        test_mode=registration.test_mode,
        result_code=success_code(registration.test_mode),
        request=parameters.echo() if kind == UPDATE else {},
        answer={name: registration.details[name] for name in TOLD if name in registration.details}
        | {DESCRIPTOR: own_descriptor(registration.channel, change.merchant)},
        means=registration.means,
        registration=registration.id,
        request_id=change.trace.request,
        created_at=change.now,
        completed_at=change.now,
    )

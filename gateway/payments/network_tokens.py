"""Network tokens of stored cards: provisioned in the background, sent instead of the card number, updated by events.

A payment with a registration is sent with the registration's token where the channel wants tokens, the token is active
and the connector takes one; with a cryptogram where the shopper initiates it. Where the token service gives none the
card number is sent; where the issuer declines the token for a reason of the token's own, the payment is authorized once
more with the card number, like a cascade: one payment, the next attempt written before it is sent. Payments keep the
number that was sent (PaymentToken), because captures, reversals and recovery have to repeat it.
Source: docs/decisions/0126; docs/network-tokens.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID, uuid5

import structlog

from gateway.connectors.means import Card, Means, TokenAccount
from gateway.connectors.port import AcquirerRequest, Connector
from gateway.connectors.token_service import (
    CryptogramRequest,
    ProvisionedToken,
    ProvisionRequest,
    TokenEvent,
    TokenNotUsableError,
    TokenRefusedError,
    TokenService,
    TokenServiceUnavailableError,
)
from gateway.connectors.token_services import load_token_service
from gateway.core import clock
from gateway.core.card_number import is_card_expired
from gateway.core.secret import Secret
from gateway.models import NetworkToken, Payment, PaymentToken, Registration, Status
from gateway.payments import failover, registrations, store
from gateway.payments.cascade import CASCADED_TYPES, is_next_attempt_forbidden
from gateway.payments.outcomes import Declined, PaymentOutcome
from gateway.payments.payment_means import means_from_account
from gateway.payments.risk_screening import ScreeningPlan
from gateway.payments.stored_answer import TokenUse, read_token_use, set_token_use, was_sent_with_token
from gateway.payments.stored_tokens import (
    build_token_row,
    is_token_usable,
    is_tokenizable,
    render_network_token,
)
from gateway.timers import wakeup
from gateway.timers.registry import Timer
from gateway.vault.sealing import VaultError, current_vault

TOKEN_DECLINES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "800.100.300", "800.100.303", "800.100.304", "800.100.306", "800.100.307", "800.100.308", "800.100.309",
                "800.100.311", "800.100.312", "800.100.313", "800.100.315", "800.100.316", "800.100.317", "800.100.318",
                "800.100.320", "800.100.321", "800.100.322", "800.100.323", "800.100.324", "800.100.325", "800.100.326",
                "800.100.327", "800.100.330",
            ),
            frozenset[str](),
        ),
        "800.100.153": frozenset({"82", "N7"}),
        "800.100.157": frozenset({"54"}),
    }
)  # fmt: skip
"""Declines of a token for a reason of its own: result code → the acquirer's own codes, none for any. The catalogue's
network token codes, but not 301 and 302 (the issuer judged the card), 305 (the merchant) and 310 (no reason). At ISO
8583: a failed check of a code, where no security code was sent, is the cryptogram's; an expired card is the token's."""
PROVISION_RETRIES: Final = (
    timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6), timedelta(days=1)
)  # fmt: skip
"""Delays between calls of a token service that gives no answer; after the last one the next payment asks again."""
PROVISION_LEASE: Final = timedelta(minutes=2)
PROVISION_BATCH: Final = 50
MAX_TOKEN_EVENT_TRIES: Final = 5
"""How often an event reads its token again that another change, of the registration or the token, was faster to."""
MAX_TOKEN_HISTORY: Final = 20

log = structlog.get_logger(__name__)


# --- paying -------------------------------------------------------------------------------------------------------


def attach_network_token(payment: Payment, connector: Connector, asked: AcquirerRequest) -> AcquirerRequest:
    """``asked`` with the network token of the stored card in place of its number, where it is to be sent; the payment
    keeps which of the two was sent."""
    service = load_token_service() if _is_token_wanted(payment, asked) else None
    if service is None or not isinstance(asked.means, Card):
        if was_sent_with_token(payment.answer):  # by an earlier attempt, before tokens were switched off
            _send_number(payment, None)
        return asked
    row = NetworkToken.objects.filter(registration=payment.registration).first()
    if row is None or (row.status == NetworkToken.Status.REQUESTED and row.due_at is None):
        _request_token(payment)
    token = None
    if row is not None and TokenAccount.kind in connector.takes and is_token_usable(row, asked.at):
        token = _open_token(row)
    if token is None:
        _send_number(payment, None)
        return asked
    assert row is not None
    if not asked.point_of_service.merchant_initiated:
        cryptogram = _fetch_cryptogram(service, row, token, asked)
        if cryptogram is None:
            _send_number(payment, TokenUse.UNAVAILABLE)
            return asked
        token = replace(token, cryptogram=cryptogram)
    _keep_sent_token(payment, token)
    return replace(asked, means=token)


def fall_back_to_number(
    payment: Payment,
    connector: Connector,
    outcome: PaymentOutcome,
    asked: AcquirerRequest,
    plan: ScreeningPlan | None,
    *,
    since: float,
) -> Connector | None:
    """Record that the issuer declined the network token, so that the payment is authorized again with the card number;
    returns the connector of that attempt, None where the outcome stands.

    ``asked``: the request before the token was attached; ``since``: time.perf_counter() when the first acquirer was
    called.
    """
    if not isinstance(outcome, Declined) or not was_sent_with_token(payment.answer):
        return None
    reply, card = outcome.reply, asked.card
    if payment.status != Status.STARTED or not reply.sent or card is None:
        return None
    if not is_token_decline(reply.code, reply.details.get("AcquirerResponse", "")):
        return None
    if is_card_expired(card.expiry_month, card.expiry_year, asked.at) or failover.is_time_over(since):
        return None
    if is_next_attempt_forbidden(reply, asked, plan):
        return None
    if not store.record_token_fallback(payment, outcome, plan=plan):
        log.warning("token_fallback_overtaken", payment=payment.id.hex)
        return None
    return connector


def is_token_decline(code: str, response: str) -> bool:
    """Whether an issuer declined a network token, not its card, by our result code and the acquirer's own code."""
    responses = TOKEN_DECLINES.get(code)
    return responses is not None and (not responses or response in responses)


def replace_sent_means(means: Means | None, payment: UUID) -> Means | None:
    """What the authorization ``payment`` was sent with: ``means``, or the network token in its place. Raises
    VaultError."""
    if not isinstance(means, Card):
        return means
    row = PaymentToken.objects.filter(pk=payment).first()
    if row is None:
        return means
    return TokenAccount(
        account=current_vault().open(row.number_sealed, payment),
        type="NETWORK",
        expiry_month=row.expiry_month,
        expiry_year=row.expiry_year,
        requestor=row.requestor,
    )


def restore_token_use(payment: Payment) -> None:
    """What a worker that died had not written of its payment: that it was sent with a network token."""
    if PaymentToken.objects.filter(pk=payment.pk).exists():
        payment.answer = set_token_use(payment.answer, TokenUse.USED)
    elif was_sent_with_token(payment.answer):  # by an earlier attempt: the last one had the number
        payment.answer = set_token_use(payment.answer, None)


def _is_token_wanted(payment: Payment, asked: AcquirerRequest) -> bool:
    """Whether the payment is one that is made with a stored card's network token."""
    card = asked.card
    return (
        payment.registration is not None
        and payment.referenced is None
        and payment.payment_type in CASCADED_TYPES
        and card is not None
        and payment.channel.network_tokens
        and read_token_use(payment.answer) != TokenUse.DECLINED
        and is_tokenizable(payment.brand, {"numberType": card.number_type}, wallet=bool(card.wallet))
    )


def _open_token(row: NetworkToken) -> TokenAccount | None:
    assert row.number_sealed is not None
    try:
        number = current_vault().open(row.number_sealed, row.id)
    except VaultError as fault:
        log.error("network_token_unreadable", token=row.id.hex, why=str(fault))
        return None
    return TokenAccount(
        account=number,
        type="NETWORK",
        expiry_month=row.expiry_month,
        expiry_year=row.expiry_year,
        requestor=row.requestor,
    )


def _fetch_cryptogram(
    service: TokenService, row: NetworkToken, token: TokenAccount, asked: AcquirerRequest
) -> Secret | None:
    """The cryptogram for a payment; None where the service gives none: the card number is sent then."""
    request = CryptogramRequest(reference=row.reference, number=token.account, payment=asked.payment, money=asked.money)
    try:
        return service.fetch_cryptogram(request)
    except TokenNotUsableError as fault:
        event = fault.event
    except TokenServiceUnavailableError as fault:
        log.warning("token_service_unavailable", payment=asked.payment.hex, why=str(fault))
        return None
    except Exception:  # an add-on's fault must not cost the payment
        log.exception("token_service_failed", payment=asked.payment.hex)
        return None
    try:
        apply_token_event(row.reference, event)
    except Exception:  # nor may what only keeps the token's state: the service says it again at the next payment
        log.exception("network_token_event_not_applied", token=row.id.hex)
    return None


def _keep_sent_token(payment: Payment, token: TokenAccount) -> None:
    """Write what the next attempt is sent with, before it is sent."""
    row = PaymentToken(
        payment_id=payment.id,
        number_sealed=current_vault().seal(token.account, payment.id),
        expiry_month=token.expiry_month,
        expiry_year=token.expiry_year,
        requestor=token.requestor,
    )
    changing = ["number_sealed", "expiry_month", "expiry_year", "requestor"]
    PaymentToken.objects.bulk_create([row], update_conflicts=True, unique_fields=["payment"], update_fields=changing)
    payment.answer = set_token_use(payment.answer, TokenUse.USED)


def _send_number(payment: Payment, why: TokenUse | None) -> None:
    """The next attempt is sent with the card number. ``why``: as the answer gives it."""
    if was_sent_with_token(payment.answer):
        PaymentToken.objects.filter(pk=payment.pk).delete()
    payment.answer = set_token_use(payment.answer, why)


def _request_token(payment: Payment) -> None:
    """Have a token provisioned for the stored card of a payment, which has none yet."""
    assert payment.registration is not None
    now = clock.real_now()
    row = build_token_row(payment.registration, payment.created_at)
    NetworkToken.objects.bulk_create([NetworkToken(**row)], ignore_conflicts=True)
    idle = NetworkToken.objects.filter(registration=payment.registration, status=NetworkToken.Status.REQUESTED)
    idle.filter(due_at=None).update(due_at=now, tries=0)
    wakeup.notify_timer(TIMER.name)


# --- the life of a token ------------------------------------------------------------------------------------------


def apply_token_event(reference: str, event: TokenEvent, *, expiry_month: str = "", expiry_year: str = "") -> bool:
    """Apply a card network's event about a token, and notify the merchant. ``expiry_month``, ``expiry_year``: two and
    four digits, of the event REPLACED. Returns False where the token is not known, or the event changes nothing: it
    came before, or does not fit its state."""
    for _ in range(MAX_TOKEN_EVENT_TRIES):
        row = NetworkToken.objects.filter(reference=reference).exclude(reference="").first()
        changes = _list_event_changes(row, event, expiry_month, expiry_year) if row is not None else {}
        if row is None or not changes:
            return False
        if _write_event(row, changes):
            return True
    log.warning("network_token_event_overtaken", reference=reference, token_event=str(event))
    return False


def _write_event(row: NetworkToken, changes: dict[str, Any]) -> bool:
    """Write what an event changes. False where the token or its registration was changed since it was read."""
    owner = Registration.objects.select_related("channel", "merchant").get(pk=row.registration_id)
    now = clock.merchant_now(owner.merchant)
    # The history is written whole: what an event added since the row was read must not be lost.
    read = {"status": row.status, "changed_at": row.changed_at}
    changes["changed_at"] = now
    changes["history"] = _add_to_history(row, changes)
    for name, value in changes.items():
        setattr(row, name, value)
    if owner.status != Registration.Status.ACTIVE:
        return bool(NetworkToken.objects.filter(pk=row.pk, **read).update(**changes))
    return registrations.record_registration_change(
        owner,
        {},
        now,
        shown={"networkToken": render_network_token(row)},
        related_change=(row, changes, read),
    )


def _add_to_history(row: NetworkToken, changes: Mapping[str, Any]) -> list[dict[str, str]]:
    """The token's history with what ``changes`` make of it, the newest MAX_TOKEN_HISTORY entries."""
    status = changes.get("status", row.status)
    month, year = (changes.get(name, getattr(row, name)) for name in ("expiry_month", "expiry_year"))
    is_there = status in (NetworkToken.Status.ACTIVE, NetworkToken.Status.SUSPENDED)
    entry = {
        "at": changes["changed_at"].isoformat(),
        "status": str(status),
        "expiry": f"{month}/{year}" if is_there else "",
    }
    return [*row.history, entry][-MAX_TOKEN_HISTORY:]


def _list_event_changes(row: NetworkToken, event: TokenEvent, month: str, year: str) -> dict[str, Any]:
    states = NetworkToken.Status
    match event, row.status:
        case TokenEvent.SUSPENDED, states.ACTIVE:
            return {"status": states.SUSPENDED}
        case TokenEvent.RESUMED, states.SUSPENDED:
            return {"status": states.ACTIVE}
        case TokenEvent.REPLACED, (states.ACTIVE | states.SUSPENDED) if month and year:
            changed = (row.expiry_month, row.expiry_year) != (month, year)
            return {"expiry_month": month, "expiry_year": year} if changed else {}
        case TokenEvent.DELETED, (states.ACTIVE | states.SUSPENDED):
            return {"status": states.DELETED, "number_sealed": None, "reference": "", "due_at": None}
    return {}


def call_token_service_when_due() -> int:
    """Provision tokens that are asked for, and delete those whose card is no longer stored; returns how many calls were
    answered."""
    service = load_token_service()
    if service is None:
        return 0
    answered = 0
    due = NetworkToken.objects.filter(due_at__lte=clock.real_now()).order_by("due_at")
    for row in due.select_related("registration__channel", "registration__merchant")[:PROVISION_BATCH]:
        lease = clock.real_now() + PROVISION_LEASE
        # Compare-and-set: another worker, or a change of the card, may have taken it since it was read.
        if NetworkToken.objects.filter(pk=row.pk, due_at=row.due_at).update(due_at=lease):
            row.due_at = lease
            answered += _call_service(service, row)
    return answered


def _call_service(service: TokenService, row: NetworkToken) -> bool:
    """Do what the row waits for. False where the service gave no answer: it is asked again later."""
    try:
        changes = _do_due_work(service, row)
    except TokenServiceUnavailableError as fault:
        log.warning("token_service_unavailable", token=row.id.hex, why=str(fault))
        changes = None
    except Exception:  # an add-on's fault must not stop the others
        log.exception("token_service_failed", token=row.id.hex)
        changes = None
    if changes is None:
        again = PROVISION_RETRIES[row.tries] if row.tries < len(PROVISION_RETRIES) else None
        NetworkToken.objects.filter(pk=row.pk, due_at=row.due_at).update(
            tries=row.tries + 1, due_at=clock.real_now() + again if again is not None else None
        )
        return False
    if row.reference:  # it was deleted at its network, since its card is stored no longer or has another number
        gone = {"status": NetworkToken.Status.DELETED, "changed_at": clock.merchant_now(row.registration.merchant)}
        row.history = changes["history"] = _add_to_history(row, gone)
    if "status" in changes:
        changes["history"] = _add_to_history(row, changes)
    written = NetworkToken.objects.filter(pk=row.pk, status=row.status, due_at=row.due_at).update(
        due_at=None, tries=0, **changes
    )
    if not written and changes.get("reference"):
        _delete_unowned_token(service, row, changes["reference"])
    return True


def _delete_unowned_token(service: TokenService, row: NetworkToken, reference: str) -> None:
    """Delete a token whose card was changed or erased while it was provisioned; later, if the service fails."""
    try:
        service.delete(reference)
    except Exception:  # the others of the batch go on
        log.exception("network_token_not_deleted", token=row.id.hex)
        NetworkToken.objects.filter(pk=row.pk, reference="").update(reference=reference, due_at=clock.real_now())


def _do_due_work(service: TokenService, row: NetworkToken) -> dict[str, Any]:
    """Call the service; returns the columns that its answer changes."""
    if row.reference:
        service.delete(row.reference)
    owner = row.registration
    nothing = {"reference": "", "number_sealed": None}
    if row.status == NetworkToken.Status.DELETED or owner.means_sealed is None:
        return nothing
    if not owner.channel.network_tokens:
        return nothing
    details: Mapping[str, str] = owner.details.get("card", {})
    number = current_vault().open(owner.means_sealed, owner.id)
    card = means_from_account(Card.kind, number, {f"card.{name}": value for name, value in details.items()})
    assert isinstance(card, Card)
    now = clock.merchant_now(owner.merchant)
    try:
        given = service.provision(ProvisionRequest(key=_build_provision_key(row, number), card=card, brand=owner.brand))
    except TokenRefusedError:
        return {**nothing, "status": NetworkToken.Status.REFUSED, "changed_at": now}
    return _list_token_columns(row, given) | {"changed_at": now}


def _build_provision_key(row: NetworkToken, number: Secret) -> UUID:
    """The idempotency key of a provisioning, the same for each try of one, so that a try whose answer was lost leaves
    no second token."""
    return uuid5(row.id, f"{row.changed_at.isoformat()} {current_vault().fingerprint(number).hex()}")


def _list_token_columns(row: NetworkToken, given: ProvisionedToken) -> dict[str, Any]:
    return {
        "status": NetworkToken.Status.ACTIVE,
        "reference": given.reference,
        "number_sealed": current_vault().seal(given.number, row.id),
        "last4": given.number.reveal()[-4:],
        "expiry_month": given.expiry_month,
        "expiry_year": given.expiry_year,
        "requestor": given.requestor,
    }


TIMER: Final = Timer(
    name="network tokens",
    run=call_token_service_when_due,
    earliest_due="SELECT min(due_at) FROM gateway_networktoken",
    about="Ask the token service for tokens of stored cards, and delete those of erased ones.",
    is_off=lambda: load_token_service() is None,
)
"""Real time: a merchant's clock has no effect on a network."""

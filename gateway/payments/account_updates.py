"""The account updater's answers: stored cards get new numbers and dates, or are marked as closed.

Cards are asked about in real time before a merchant's payment with them (:func:`refresh_stored_card`), and in files
(gateway.payments.account_update_batch). An answer is applied to the registration as it was asked about, by
compare-and-set, in the statement that writes the record of the change and its webhook: once, however often it comes.
The registration keeps its id, its agreements and its network token. Source: docs/decisions/0135.
"""

from __future__ import annotations

import queue
import threading
import time
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import connection

from gateway import metrics
from gateway.connectors.account_update_files import find_update_fault
from gateway.connectors.account_updater import (
    AccountUpdater,
    AccountUpdaterUnavailableError,
    CardInquiry,
    CardUpdate,
    UpdaterAnswer,
)
from gateway.connectors.account_updaters import load_account_updater
from gateway.connectors.means import Card
from gateway.core import brands, clock
from gateway.core.card_number import CardNumber
from gateway.db.sessions import pause_work
from gateway.models import AccountUpdate, Registration
from gateway.payments import registrations
from gateway.payments.nested_values import deep_merge
from gateway.payments.rendering import render_account_update
from gateway.payments.side_effects import OPT_OUT_PARAMETER
from gateway.payments.stored_tokens import is_tokenizable
from gateway.vault.sealing import VaultError, current_vault

REAL_TIME_DEADLINE_S: Final = 2.0
"""How long a payment waits for the updater at most."""
REAL_TIME_INTERVAL: Final = timedelta(days=1)
"""A card that was answered about in this time is not asked about in real time."""
UPDATER_PAUSE_S: Final = 60.0
"""How long a process asks nothing in real time after the updater gave it no answer."""
MAX_REAL_TIME_QUESTIONS: Final = 16
"""Real-time questions of one process at a time; with more the payment goes on unasked."""
MAX_ANSWER_TRIES: Final = 5
CHANGING_ANSWERS: Final = frozenset(
    {
        AccountUpdate.Status.NEW_NUMBER,
        AccountUpdate.Status.NEW_EXPIRY,
        AccountUpdate.Status.CLOSED,
        AccountUpdate.Status.CONTACT_HOLDER,
    }
)

log = structlog.get_logger(__name__)


def is_updatable(registration: Registration) -> bool:
    """Whether the updater may be asked about a registration: it holds a card whose holder did not opt out, of a channel
    that wants it. A wallet's number is renewed by the wallet's network."""
    details = registration.details
    wallet = any(name.startswith("wallet") for name in details)
    return (
        registration.channel.account_updater
        and registration.status == Registration.Status.ACTIVE
        and registration.means == Card.kind
        and registration.means_sealed is not None
        and not is_opted_out(registration)
        and is_tokenizable(registration.brand, details.get(Card.kind, {}), wallet=wallet)
    )


def is_opted_out(registration: Registration) -> bool:
    """Whether its holder, or the merchant, wants no updates of this stored card."""
    return bool(registration.request.get(OPT_OUT_PARAMETER) == "false")


def build_card_inquiry(row: AccountUpdate, registration: Registration) -> CardInquiry | None:
    """The question about a registration's card; None where its number does not open."""
    try:
        number = current_vault().open(registration.means_sealed or b"", registration.id)
    except VaultError as fault:
        log.error("account_update_unreadable", registration=registration.id.hex, why=str(fault))
        return None
    card = registration.details.get(Card.kind, {})
    return CardInquiry(
        key=row.id,
        entity=registration.channel.entity_id,
        brand=registration.brand,
        number=number,
        expiry_month=card.get("expiryMonth", ""),
        expiry_year=card.get("expiryYear", ""),
    )


# --- in real time -------------------------------------------------------------------------------------------------


def refresh_stored_card(registration: Registration) -> Registration:
    """The registration as the updater knows it, before a merchant's payment with it: asked about where it was not
    lately. Whatever the updater does, the payment goes on with what is stored."""
    updater = load_account_updater() if registration.channel.account_updater else None
    if updater is None or not is_updatable(registration) or _pause.is_on():
        return registration
    if registration.account_update == AccountUpdate.Status.CLOSED:
        return registration
    now = clock.merchant_now(registration.merchant)
    lately = AccountUpdate.objects.filter(registration=registration.pk, asked_at__gt=now - REAL_TIME_INTERVAL)
    answered = [each for each in AccountUpdate.Status.values if each not in _UNSAID]
    if lately.filter(status__in=answered).exists():
        return registration
    row = AccountUpdate(registration_id=registration.pk, sequence=registration.sequence, asked_at=now)
    try:
        inquiry = build_card_inquiry(row, registration)
        if inquiry is None:
            return registration
        update = _ask_within(updater, inquiry, REAL_TIME_DEADLINE_S)
        if update is None:
            log.warning("account_updater_busy", registration=registration.id.hex)
            return registration
        if fault := find_update_fault(update):
            raise AccountUpdaterUnavailableError(fault)
    except Exception as fault:  # an add-on's fault must not cost the payment
        log.warning("account_updater_unavailable", registration=registration.id.hex, why=_describe_fault(fault))
        _pause.begin()
        row.status, row.answered_at = AccountUpdate.Status.UNANSWERED, now
        row.save(force_insert=True)
        metrics.count_account_update("real time", row.status)
        return registration
    if apply_card_update(row, update, added=True) in (AccountUpdate.Status.NO_CHANGE, AccountUpdate.Status.UNKNOWN):
        return registration
    return registrations.find_registration(registration.pk, registration.merchant, registration.channel)


_UNSAID: Final = frozenset(
    {AccountUpdate.Status.WAITING, AccountUpdate.Status.UNANSWERED, AccountUpdate.Status.SUPERSEDED}
)


def _describe_fault(fault: Exception) -> str:
    """Its text, where it is one of the port; of any other only the type, since its text could hold a number."""
    return str(fault) if isinstance(fault, AccountUpdaterUnavailableError) else type(fault).__name__


class _Pause:
    """After a question without an answer this process asks none for a while, so that not every payment waits."""

    def __init__(self) -> None:
        self._until = 0.0

    def begin(self) -> None:
        self._until = time.monotonic() + UPDATER_PAUSE_S

    def end(self) -> None:
        self._until = 0.0

    def is_on(self) -> bool:
        return time.monotonic() < self._until


_pause: Final = _Pause()
_places: Final = threading.BoundedSemaphore(MAX_REAL_TIME_QUESTIONS)


def _ask_within(updater: AccountUpdater, inquiry: CardInquiry, seconds: float) -> CardUpdate | None:
    """Ask in a thread of its own, which an updater that hangs keeps, so that the payment does not. None where this
    process asks as much as it may already: the updater has done nothing wrong. Raises AccountUpdaterUnavailableError,
    and what the updater raises."""
    if not _places.acquire(blocking=False):
        return None
    answers: queue.SimpleQueue[CardUpdate | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(updater.ask(inquiry, deadline_s=seconds))
        except Exception as fault:
            answers.put(fault)
        finally:
            connection.close()  # one that the updater may have used
            _places.release()

    try:
        threading.Thread(target=ask, name="account updater", daemon=True).start()
    except RuntimeError:  # no thread to be had
        _places.release()
        raise AccountUpdaterUnavailableError("no thread to ask it in") from None
    pause_work()
    try:
        found = answers.get(timeout=seconds)
    except queue.Empty:
        raise AccountUpdaterUnavailableError(f"no answer within {seconds} s") from None
    if isinstance(found, Exception):
        raise found
    return found


# --- an answer ----------------------------------------------------------------------------------------------------


def apply_card_update(row: AccountUpdate, update: CardUpdate, *, added: bool = False) -> str:
    """Write what the updater reports about a card, and notify the merchant where it changes something. ``added``: the
    row is not in the database yet. Returns the question's status; '' where it was answered before."""
    for _ in range(MAX_ANSWER_TRIES):
        owner = Registration.objects.select_related("channel", "merchant", "network_token").get(pk=row.registration_id)
        now = clock.merchant_now(owner.merchant)
        status, changes = _list_changes(owner, row, update, now)
        answer = {"status": status, "answered_at": now}
        if _write_answer(owner, row, changes, answer, added=added):
            metrics.count_account_update("file" if row.file_id else "real time", status)
            return status
        if not added and not AccountUpdate.objects.filter(pk=row.pk, status=AccountUpdate.Status.WAITING).exists():
            return ""
    log.warning("account_update_overtaken", registration=row.registration_id.hex)
    return ""


def _write_answer(
    owner: Registration, row: AccountUpdate, changes: dict[str, Any], answer: dict[str, Any], *, added: bool
) -> bool:
    """Write an answer once. False where the question, or the registration, was changed since it was read."""
    waiting = {"status": AccountUpdate.Status.WAITING}
    for name, value in answer.items():
        setattr(row, name, value)
    if not changes:
        if added:
            row.save(force_insert=True)
            return True
        return bool(AccountUpdate.objects.filter(pk=row.pk, **waiting).update(**answer))
    for name, value in changes.items():
        setattr(owner, name, value)
    return registrations.record_registration_change(
        owner,
        changes,
        answer["answered_at"],
        shown=render_account_update(owner),
        related_change=None if added else (row, answer, waiting),
        added=row if added else None,
    )


def _list_changes(
    owner: Registration, row: AccountUpdate, update: CardUpdate, now: datetime
) -> tuple[str, dict[str, Any]]:
    """The status of an answer, and the columns of the registration that it changes."""
    said = AccountUpdate.Status(update.answer)
    if not is_updatable(owner) or owner.sequence != row.sequence:
        return AccountUpdate.Status.SUPERSEDED, {}
    if said not in CHANGING_ANSWERS:
        return said, {}
    changes: dict[str, Any] = {"account_update": said, "account_updated_at": now}
    if update.answer in (UpdaterAnswer.CLOSED, UpdaterAnswer.CONTACT_HOLDER):
        return said, changes if owner.account_update != said else {}
    if (update.expiry_year, update.expiry_month) < (f"{now:%Y}", f"{now:%m}"):
        # A card that has expired is no new one; what is stored may still be right.
        log.warning("account_update_expired", registration=owner.id.hex)
        return AccountUpdate.Status.UNANSWERED, {}
    card = {"expiryMonth": update.expiry_month, "expiryYear": update.expiry_year}
    if update.number is not None:
        try:
            same = update.number == current_vault().open(owner.means_sealed or b"", owner.id)
        except VaultError as fault:
            log.error("account_update_unreadable", registration=owner.id.hex, why=str(fault))
            return AccountUpdate.Status.UNANSWERED, {}
        if same:
            said = changes["account_update"] = AccountUpdate.Status.NEW_EXPIRY
        else:
            known = CardNumber.of(update.number)
            changes |= _list_number_changes(owner, known)
            changes["means_sealed"] = current_vault().seal(update.number, owner.id)
            card |= {"bin": known.bin6, "last4Digits": known.last4}
    details = deep_merge(owner.details, {Card.kind: card})
    if details == owner.details:
        return AccountUpdate.Status.NO_CHANGE, {}
    return said, changes | {"details": details}


def _list_number_changes(owner: Registration, known: CardNumber) -> dict[str, Any]:
    """The brand, where the issuer moved the card to another network."""
    if known.fits(owner.brand) or known.brand is None or not brands.is_card_brand(known.brand):
        return {}
    return {"brand": known.brand}

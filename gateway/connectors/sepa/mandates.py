"""SEPA mandates: found or created for a debit, amended, blocked, ended, lapsed.

A collection needs a mandate that is ACTIVE and was used within 36 months before its day. The merchant ends a
mandate; a bank's reason of a rejection or return blocks or ends it (bank_reasons.py). A blocked one is taken up again
when the merchant amends the account, or releases it. What was amended goes with the next collection (AmdmntInf).
Source: EPC 016-06 (SDD Core rulebook, 4.1 The mandate, 4.6.1 DS-01, 4.6.4 Amendment of the mandate); EPC 130-08.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from gateway.connectors.means import BankAccount
from gateway.connectors.port import AcquirerRequest
from gateway.connectors.sepa import target_calendar
from gateway.connectors.sepa.bank_reasons import MandateEffect, find_bank_reason
from gateway.connectors.sepa.creditor import Creditor, is_outside_eea
from gateway.connectors.sepa.postal_addresses import (
    ADDRESS_PARAMETERS,
    UnwritableAddressError,
    build_postal_address,
    is_writable_address,
)
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import BankOrder, Merchant, Payment, Registration, SepaMandate
from gateway.vault.sealing import current_vault

MAX_MANDATE_CHARS: Final = 35
MANDATE_LAPSE_MONTHS: Final = 36
"""Months without a collection after which a creditor has to cancel a mandate (EPC 016-06, 4.1)."""
SAME_MANDATE_NEW_ACCOUNT: Final = "SMNDA"
NEW_ACCOUNT_PARAMETER: Final = "customParameters[SEPA_newAccount]"
"""The merchant's word (true) that the debtor has a new account under the same mandate."""
FORMER_MANDATE_PARAMETER: Final = "customParameters[SEPA_formerMandateId]"
"""The id that the mandate of this debit had before."""
MANDATE_LAPSED: Final = "800.100.204"
MANDATE_ENDED: Final = "800.100.205"

State = SepaMandate.State
# SepaMandate.amendment, as JSON: "account": SMNDA; "mandate", "creditor", "creditorName": what it was before.


class MandateError(Exception):
    """A debit cannot be collected under its mandate. ``code``: result code; the text says why."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class MandateAccountError(MandateError):
    """The mandate belongs to another bank account."""

    def __init__(self) -> None:
        super().__init__(
            "600.200.500", f"the mandate was given for another account; {NEW_ACCOUNT_PARAMETER}=true amends it"
        )


class MandateSchemeError(MandateError):
    """The mandate was given for the other scheme of direct debits. Source: EPC 222-07 (SDD B2B rulebook, 4.1 The
    mandate): the debtor of a business debit gives up the refund and has the bank confirm that very mandate; what
    matches none is rejected (https://support.ibanfirst.com/en/articles/23222-registering-a-b2b-sepa-direct-debit-mandate)."""

    def __init__(self, given: str, wanted: str) -> None:
        super().__init__(
            "600.200.500", f"the mandate was given for {given} debits, and the account makes {wanted} ones"
        )


def resolve_mandate(
    request: AcquirerRequest, means: BankAccount, creditor: Creditor, payment: Payment, now: datetime
) -> SepaMandate:
    """The mandate of a request: the merchant's, the one of the stored account, or one for this payment only. Call it
    within a transaction. Raises MandateError."""
    sent, account = request.parameters, means.account
    name = build_mandate_id(means.mandate_id)
    found = None
    amends = sent.get(NEW_ACCOUNT_PARAMETER) == "true"
    if name:
        found = _find_mandate(payment.merchant, creditor, mandate=name)
        former = build_mandate_id(sent.get(FORMER_MANDATE_PARAMETER, ""))
        if found is None and former:
            found = _find_mandate(payment.merchant, creditor, mandate=former)
            if found is None or found.state == State.ENDED:
                raise MandateError(MANDATE_ENDED, f"{FORMER_MANDATE_PARAMETER}: there is no such mandate any more")
            if not amend_mandate(found, reference=name):
                raise MandateError(MANDATE_ENDED, "bankAccount.mandate.id: another mandate has that id")
            found.refresh_from_db()
    elif _uses_stored_account(request, payment):
        found = _find_stored_mandate(payment, account, creditor)
        amends = True  # the merchant changed the stored account itself
    if found is None:
        found = _create_mandate(request, means, creditor, payment, now, name or name_stored_mandate(request.payment))
    if not is_of_instrument(found, creditor.instrument):
        raise MandateSchemeError(found.instrument, creditor.instrument)
    if not current_vault().matches(account.reveal(), found.iban_fingerprint):
        if not amends or not amend_mandate(found, iban=account):
            raise MandateAccountError
        found.refresh_from_db()
    return found


def check_mandate_usable(mandate: SepaMandate, due: date) -> None:
    """Raise MandateError unless a collection of the day ``due`` may be made under the mandate."""
    if mandate.state == State.BLOCKED:
        meaning = find_bank_reason(mandate.state_reason).meaning
        raise MandateError(MANDATE_ENDED, f"the mandate is blocked: {mandate.state_reason}, {meaning}")
    if mandate.state == State.ENDED:
        raise MandateError(MANDATE_ENDED, f"the mandate has ended: {mandate.state_reason}")
    last = mandate_lapses_on(mandate)
    if last is not None and due > last:
        why = f"the mandate has lapsed: {MANDATE_LAPSE_MONTHS} months without a collection"
        raise MandateError(MANDATE_LAPSED, why)


def is_of_instrument(mandate: SepaMandate, instrument: str) -> bool:
    """Whether a mandate was given for collections of ``instrument`` (CORE, B2B)."""
    return mandate.instrument in ("", instrument)


def mandate_lapses_on(mandate: SepaMandate) -> date | None:
    """The last day of a collection under a mandate that is not used meanwhile. None for a merchant's own that was not
    used here: it may have been used elsewhere since it was signed."""
    since = mandate.used_on or (None if mandate.named_by_merchant else mandate.signed_on)
    if since is None:
        return None
    return target_calendar.add_months(since, MANDATE_LAPSE_MONTHS)


def list_usable_mandates(today: date) -> QuerySet[SepaMandate]:
    """The mandates under which a collection may be made today or later (check_mandate_usable, mandate_lapses_on), a
    blocked one too, for it may be released. Months are counted as of 31 days: some that lapsed a few weeks ago are
    among them."""
    since = today - timedelta(days=31 * MANDATE_LAPSE_MONTHS)
    unused = Q(used_on=None) & (Q(named_by_merchant=True) | Q(signed_on__gte=since))
    return SepaMandate.objects.filter(Q(used_on__gte=since) | unused).exclude(state=State.ENDED)


def resolve_debtor_address(request: AcquirerRequest, means: BankAccount, mandate: SepaMandate) -> dict[str, str]:
    """The debtor's address where the file has to have it: as sent, else as stored with the mandate; else empty.

    A stored one that banks do not take, such as one without a town or a country, counts as none. Raises MandateError,
    which names the parameter that is missing or cannot be written.
    """
    country = means.account.reveal()[:2]
    if not is_outside_eea(country):
        return {}
    sent = request.parameters
    is_sent = any(name in sent for name, _ in ADDRESS_PARAMETERS.values())
    if not is_sent and is_writable_address(mandate.address):
        return dict(mandate.address)
    number = " ".join(part for part in (sent.get("billing.houseNumber1"), sent.get("billing.houseNumber2")) if part)
    found = {
        "street": sent.get("billing.street1", ""),
        "number": number,
        "postcode": sent.get("billing.postcode", ""),
        "city": sent.get("billing.city", ""),
        "country": sent.get("billing.country", ""),
    }
    try:
        build_postal_address(found)
    except UnwritableAddressError as fault:
        why = f"{fault}: the account's bank is in {country}, outside the EEA"
        raise MandateError(fault.code, why) from None
    return {name: value for name, value in found.items() if value}


def build_mandate_id(text: str) -> str:
    """A mandate's id for files, 35 characters at most; a longer one is cut and made unique."""
    if len(text) <= MAX_MANDATE_CHARS:
        return text
    return f"{text[:22]}-{hashlib.sha256(text.encode()).hexdigest()[:12].upper()}"


def name_stored_mandate(made_by: UUID) -> str:
    """The id of the mandate that we name for an account that the payment ``made_by`` stores."""
    return made_by.hex.upper()


# --- changes ------------------------------------------------------------------------------------------------------


def end_mandate(mandate: SepaMandate, reason: str = SepaMandate.StateReason.MERCHANT) -> bool:
    """End a mandate for good. Collections that wait for a file are rejected when the file is made (MD01). False if it
    had ended."""
    rows = SepaMandate.objects.filter(pk=mandate.pk).exclude(state=State.ENDED)
    return bool(rows.update(state=State.ENDED, state_reason=reason, state_at=clock.merchant_now(mandate.merchant)))


def end_stored_mandate_write(registration: Registration, now: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
    """(changes, conditions) that end the mandate of a stored account with the account. Collections that wait for a file
    are still made: they were asked for before."""
    changes = {"state": State.ENDED, "state_reason": SepaMandate.StateReason.DELETED, "state_at": now}
    name = name_stored_mandate(registration.payment)
    return changes, {
        "merchant_id": registration.merchant_id,
        "mandate": name,
        "named_by_merchant": False,
        "state": State.ACTIVE,
    }


def release_mandate(mandate: SepaMandate) -> bool:
    """Take up a blocked mandate again: the merchant has spoken with the debtor. False if it is not blocked."""
    rows = SepaMandate.objects.filter(pk=mandate.pk, state=State.BLOCKED)
    return bool(rows.update(state=State.ACTIVE, state_reason="", state_at=clock.merchant_now(mandate.merchant)))


def amend_to_creditor(mandate: SepaMandate, creditor: Creditor) -> bool:
    """Whether a mandate, whose row is locked, is the creditor's. One of the creditor's former identifier is amended to
    the present one, unless another mandate has its id there: it is then left as it was."""
    if _drop_business_code(mandate.creditor) == _drop_business_code(creditor.ident):
        return True
    if mandate.creditor != creditor.former_ident:
        return False
    before = mandate.creditor, mandate.creditor_name, mandate.amendment
    _note_amendment(mandate, creditor=mandate.creditor, creditorName=mandate.creditor_name)
    mandate.creditor, mandate.creditor_name = creditor.ident, creditor.name
    if _save_unless_taken(mandate):
        return True
    mandate.creditor, mandate.creditor_name, mandate.amendment = before
    return False


def _drop_business_code(ident: str) -> str:
    """A creditor identifier without its business code, which identifies nobody. Source: EPC 262-08."""
    return ident[:4] + ident[7:]


@transaction.atomic
def amend_mandate(mandate: SepaMandate, *, iban: Secret | None = None, reference: str = "") -> bool:
    """Change a mandate's account or id; the next collection says so. Also takes up a blocked mandate whose account is
    changed. False if it has ended, or another mandate of the creditor has that id."""
    row = SepaMandate.objects.select_for_update().get(pk=mandate.pk)
    if row.state == State.ENDED:
        return False
    if reference and reference != row.mandate:
        _note_amendment(row, mandate=row.mandate)
        row.mandate = reference
    if iban is not None and not current_vault().matches(iban.reveal(), row.iban_fingerprint):
        _note_amendment(row, account=SAME_MANDATE_NEW_ACCOUNT)
        row.iban_sealed = current_vault().seal(iban, row.pk)
        row.iban_fingerprint = current_vault().fingerprint(iban.reveal())
        row.state, row.state_reason = State.ACTIVE, ""
    return _save_unless_taken(row)


def take_amendment(mandate: SepaMandate, order: BankOrder) -> None:
    """Move what was amended from the mandate, whose row is locked, to the order that is being filed, unless that order
    was made before the account changed."""
    if not mandate.amendment:
        return
    if "account" in mandate.amendment:
        assert order.iban_sealed is not None
        iban = current_vault().open(order.iban_sealed, order.payment)
        if not current_vault().matches(iban.reveal(), mandate.iban_fingerprint):
            return
    order.amendment, mandate.amendment = mandate.amendment, {}


def update_rejected_mandates(orders: Mapping[UUID, Iterable[BankOrder]]) -> None:
    """Update mandates whose collections were rejected, returned or cancelled: block or end them for the bank's reason;
    what a collection was the first to say that was never settled has not been said, unless it was booked afterwards. A
    block stays: a person looks at what the bank said. ``orders``: by mandate id.

    Call it last in a transaction: the rows are locked in the order of their ids, and whoever plans a file holds orders
    and then waits for mandates.
    """
    held = SepaMandate.objects.filter(pk__in=list(orders)).select_related("merchant").order_by("pk")
    for mandate in held.select_for_update(of=("self",)):
        for order in orders[mandate.pk]:
            if order.state == BankOrder.State.BOOKED:
                mandate.first_payment = mandate.first_payment or order.pk
                continue
            if order.state != BankOrder.State.RETURNED:
                _take_back(mandate, order)
            _apply_reason(mandate, order.reason)
        mandate.save()


def _take_back(mandate: SepaMandate, order: BankOrder) -> None:
    """The bank never settled the order: its sequence and amendment belong to the next one. What the mandate was before
    that amendment is what the bank knows, also where it was amended again since, unless the order before it was never
    settled either."""
    if mandate.first_payment == order.pk:
        mandate.first_payment = None
    if order.amendment:
        older, newer = order.amendment, mandate.amendment
        if _follows_unsettled_amendment(order):
            older, newer = newer, older
        mandate.amendment = {**newer, **older}
    if order.last and mandate.state_reason == SepaMandate.StateReason.FINAL:
        mandate.state, mandate.state_reason = State.ACTIVE, ""


def _follows_unsettled_amendment(order: BankOrder) -> bool:
    """Whether the bank has refused an amendment before this order's and settled nothing of the mandate since: the
    mandate has that one again, and it is the older one."""
    states = BankOrder.State
    settled = Q(state__in=(states.BOOKED, states.RETURNED, states.WON_BACK))
    refused = Q(state__in=(states.REJECTED, states.WITHDRAWN)) & ~Q(amendment={})
    before = BankOrder.objects.filter(mandate=order.mandate_id, kind=order.kind, file__lt=order.file_id)
    last = before.filter(settled | refused).order_by("-file", "-pk").values_list("state", flat=True).first()
    return last in (states.REJECTED, states.WITHDRAWN)


def _apply_reason(mandate: SepaMandate, reason: str) -> None:
    effect = find_bank_reason(reason).mandate
    if effect is MandateEffect.NONE or mandate.state == State.ENDED:
        return
    mandate.state = State.ENDED if effect is MandateEffect.END else State.BLOCKED
    mandate.state_reason, mandate.state_at = reason, clock.merchant_now(mandate.merchant)


def _save_unless_taken(mandate: SepaMandate) -> bool:
    """Save the mandate. False if another one of the creditor has its id, or is given it at this moment: the constraint
    decides."""
    try:
        with transaction.atomic():
            mandate.save()
    except IntegrityError:
        return False
    return True


def _note_amendment(mandate: SepaMandate, /, **before: str) -> None:
    """Note what a mandate was before: banks know it as of its last collection. Without one, nothing is amended."""
    if mandate.first_payment is not None:
        mandate.amendment = {**before, **mandate.amendment}


# --- finding ------------------------------------------------------------------------------------------------------


def _uses_stored_account(request: AcquirerRequest, payment: Payment) -> bool:
    """True for a payment with a stored account, or a later one of an agreement: these carry no mandate of their own. A
    payment that stores an account is given a mandate of its own."""
    if request.operation == "RG" or request.parameters.get("createRegistration") == "true":
        return False
    return payment.registration is not None or request.parameters.get("standingInstruction.mode") == "REPEATED"


def _is_recurring(request: AcquirerRequest, payment: Payment) -> bool:
    """True if a mandate that we name will be used again."""
    sent = request.parameters
    agreed = sent.get("createRegistration") == "true" or any(name.startswith("standingInstruction.") for name in sent)
    return agreed or payment.registration is not None or request.operation == "RG"


def _find_stored_mandate(payment: Payment, account: Secret, creditor: Creditor) -> SepaMandate | None:
    """The mandate that was given with the stored account; of a repeated instruction, the newest of the account."""
    if payment.registration is not None:
        made_by = Registration.objects.values_list("payment", flat=True).get(pk=payment.registration)
        found = _find_mandate(payment.merchant, creditor, mandate=name_stored_mandate(made_by), named_by_merchant=False)
        if found is not None:
            return found
    prints = current_vault().fingerprints(account.reveal())
    which = {"named_by_merchant": False, "recurring": True, "iban_fingerprint__in": prints}
    of_scheme = _find_mandate(payment.merchant, creditor, instrument__in=("", creditor.instrument), **which)
    return of_scheme or _find_mandate(payment.merchant, creditor, **which)


def _find_mandate(merchant: Merchant, creditor: Creditor, **which: Any) -> SepaMandate | None:
    """A mandate of the creditor, or of its former identifier, which is amended to the present one unless another one
    has its id there."""
    found = SepaMandate.objects.filter(merchant=merchant, creditor=creditor.ident, **which).order_by("-id").first()
    if found is not None or not creditor.former_ident:
        return found
    rows = SepaMandate.objects.filter(merchant=merchant, creditor=creditor.former_ident, **which)
    former = rows.order_by("-id").select_for_update().first()
    return former if former is not None and amend_to_creditor(former, creditor) else None


def _create_mandate(
    request: AcquirerRequest, means: BankAccount, creditor: Creditor, payment: Payment, now: datetime, name: str
) -> SepaMandate:
    """A new mandate. A concurrent request for the same one gets the same row."""
    row = SepaMandate(
        merchant=payment.merchant,
        creditor=creditor.ident,
        mandate=name,
        named_by_merchant=bool(means.mandate_id),
        recurring=bool(means.mandate_id) or _is_recurring(request, payment),
        signed_on=parse_date(means.mandate_signed) or now.astimezone(creditor.zone).date(),
        creditor_name=creditor.name,
        instrument=creditor.instrument,
    )
    row.iban_sealed = current_vault().seal(means.account, row.pk)
    row.iban_fingerprint = current_vault().fingerprint(means.account.reveal())
    row.address = resolve_debtor_address(request, means, row)
    SepaMandate.objects.bulk_create([row], ignore_conflicts=True)
    return SepaMandate.objects.get(merchant=payment.merchant, creditor=creditor.ident, mandate=name)


def parse_date(text: str) -> date | None:
    """A date that the catalogue has validated; None for ''."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None

"""Back-office form to enter a chargeback of a payment by hand (from an acquirer's letter), and the merchant's reminder
contacts."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from chargebacks import ledger
from chargebacks.cases import SchemeFacts, compute_refunded_before
from chargebacks.deadlines import compute_response_deadline
from chargebacks.evidence_checklist import OTHER_CHARGEBACK_REASON, describe_reason, is_explained_reason
from chargebacks.models import Chargeback, Contact
from chargebacks.stages import SCHEME_REASONS, DisputeStage
from gateway.access import audit_log
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.kit.formatting import format_money, format_typed_amount, read_typed_amount
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.sign_in import session
from gateway.catalogue.errors import InvalidParametersError
from gateway.core import clock, result_codes
from gateway.core.mail_address import parse_mail_address
from gateway.core.masking import mask_note
from gateway.models import Merchant, Payment
from gateway.payments.chain_amounts import ZERO_AMOUNT, compute_refundable_amount
from gateway.payments.follow_ups import load_chain
from gateway.payments.refusal import RequestRefusedError

MAX_CONTACTS: Final = 20
SELECTABLE_REASONS: Final = tuple(
    sorted(
        (code for code in result_codes.RESULT_CODES if is_explained_reason(code)),
        key=lambda code: (code != OTHER_CHARGEBACK_REASON, code),
    )
)


MAX_RESPONSE_PERIOD: Final = timedelta(days=730)
"""Longest time that an acquirer may give to respond."""


class ManualEntryError(Exception):
    """A field holds a value that cannot be entered; the text may be shown."""


class UnconfirmedEntryError(ManualEntryError):
    """The amount is above what is left of the payment, and the user has not confirmed that the acquirer says so."""


def manual_entry_view(page: ModelAdmin[Chargeback], request: HttpRequest, payment: Payment) -> HttpResponse:
    """The form, for a user who authenticated recently. The caller has checked the right."""
    if (ask := session.require_reauthentication(request)) is not None:
        return ask
    fault, above = "", False
    if request.method == "POST":
        try:
            case = _record_from_form(request, payment)
        except ManualEntryError as refused:
            fault, above = str(refused), isinstance(refused, UnconfirmedEntryError)
        except ledger.ChainChangedError:
            fault = _("Something of this payment was changed meanwhile. Look at it before you enter another.")
        except InvalidParametersError as invalid:
            fault = "; ".join(f"{one.name} {one.message}" for one in invalid.errors)
        except RequestRefusedError as refused:
            fault = f"{describe_result(refused.code)} ({refused.code})"
        else:
            messages.success(request, _("Entered. The dispute can be answered until its deadline."))
            return redirect(reverse("admin:chargebacks_chargeback_change", args=[case.pk]))
    context = {
        **page.admin_site.each_context(request),
        "title": _("Enter a chargeback"),
        "opts": page.opts,
        "payment": payment,
        "fault": fault,
        "above": above or request.POST.get("above") == "yes",
        "refunded": _compute_refunded(payment),
        "seen": Payment.objects.get(pk=payment.chain).follow_ups,
        "reasons": [(code, _(describe_reason(code))) for code in SELECTABLE_REASONS],
        "amount": request.POST.get("amount", format_typed_amount(payment.approved_amount or payment.amount)),
        "reason": request.POST.get("reason", OTHER_CHARGEBACK_REASON),
        "respond_by": request.POST.get("respond_by", ""),
        "reference": request.POST.get("reference", ""),
        "stages": [(stage.value, _(stage.label)) for stage in DisputeStage],
        "stage": request.POST.get("stage", ""),
        **{name: request.POST.get(name, "") for name in ("scheme_reason", "scheme_case", "arn")},
    }
    return TemplateResponse(request, "admin/books/by_hand.html", context, status=400 if fault else 200)


def _record_from_form(request: HttpRequest, payment: Payment) -> Chargeback:
    """Record the chargeback of the form. Raises ManualEntryError, ChainChangedError, InvalidParametersError and
    RequestRefusedError."""
    seen = request.POST.get("seen", "")
    if not (seen.isascii() and seen.isdigit() and len(seen) < 10):
        raise ManualEntryError(_("The form is not whole. Open it again."))
    text = read_typed_amount(request.POST.get("amount", ""))
    whole, dot, cents = text.partition(".")
    if not (
        whole.isascii()
        and whole.isdigit()
        and len(whole) <= 12
        and (not dot or (cents.isascii() and cents.isdigit() and len(cents) <= 2))
    ) or not Decimal(text):
        raise ManualEntryError(_("Amount: a number above 0 with two places, such as 12.50."))
    reason = request.POST.get("reason", "")
    known = SCHEME_REASONS.get(request.POST.get("scheme_reason", "").strip())
    if known is not None and reason == OTHER_CHARGEBACK_REASON:
        reason = known.result
    if reason not in SELECTABLE_REASONS:
        raise ManualEntryError(_("Reason: choose one of the list."))
    respond_by = None
    if given := request.POST.get("respond_by", ""):
        try:
            respond_by = date.fromisoformat(given)
        except ValueError:
            raise ManualEntryError(_("Answer by: a day, such as 2030-01-31, or empty.")) from None
        now = clock.merchant_now(payment.merchant)
        today = now.astimezone(ZoneInfo(payment.merchant.time_zone)).date()
        if (
            not today <= respond_by <= today + MAX_RESPONSE_PERIOD
            or compute_response_deadline(payment.merchant, now, respond_by) <= now
        ):
            raise ManualEntryError(
                _("Answer by: a day whose deadline is still to come, within %d days.") % MAX_RESPONSE_PERIOD.days
            )
    amount = Decimal(text).quantize(Decimal("0.01"))
    chain = load_chain(payment.id, payment.merchant, None)
    left = max(compute_refundable_amount(chain, payment), ZERO_AMOUNT) if chain is not None else ZERO_AMOUNT
    if amount > left and request.POST.get("above") != "yes":
        raise UnconfirmedEntryError(
            _(
                "Only %(left)s of this payment has not been given back or charged back. Look at the acquirer's letter"
                " again. If it says so, confirm it below."
            )
            % {"left": format_money(left, payment.currency)}
        )
    return ledger.record_chargeback(
        payment,
        amount,
        reason=reason,
        by=actor_from_request(request),
        respond_by=respond_by,
        reference=mask_note(request.POST.get("reference", ""), 64),
        seen=int(seen),
        scheme=_read_scheme_facts(request),
    )


def _read_scheme_facts(request: HttpRequest) -> SchemeFacts:
    """The optional fields of the scheme's side. Raises ManualEntryError."""
    sent = {name: request.POST.get(name, "").strip() for name in ("scheme_reason", "scheme_case", "arn", "stage")}
    if not re.fullmatch(r"[0-9A-Za-z.]{0,16}", sent["scheme_reason"]):
        raise ManualEntryError(_("Scheme's reason code: up to 16 letters, digits and dots, such as 13.1."))
    if not re.fullmatch(r"([0-9A-Za-z]{11,24})?", sent["arn"]):
        raise ManualEntryError(_("ARN: 11 to 24 letters and digits, as the acquirer's letter has it."))
    if sent["stage"] not in ("", *DisputeStage.values):
        raise ManualEntryError(_("Stage: choose one of the list."))
    return SchemeFacts(
        reason=sent["scheme_reason"],
        case=mask_note(sent["scheme_case"], 64),
        arn=sent["arn"],
        stage=DisputeStage(sent["stage"]) if sent["stage"] else None,
    )


def _compute_refunded(payment: Payment) -> Decimal:
    """What was refunded and reversed of the payment until now."""
    chain = load_chain(payment.id, payment.merchant, None)
    return compute_refunded_before(chain, payment) if chain is not None else ZERO_AMOUNT


def change_contact(request: HttpRequest, merchant: Merchant) -> None:
    """Add or remove an address that receives reminders. Returns the message for the user."""
    email, by = parse_mail_address(request.POST.get("email", "").lower()), actor_from_request(request)
    if not email:
        messages.error(request, _("That is no e-mail address."))
        return
    with transaction.atomic():
        if request.POST.get("verb") == "remove":
            row = Contact.objects.filter(merchant=merchant, email=email).first()
            if row is not None:
                _audit_contact(by, "delete", row, before={"email": email})
                row.delete()
            return
        # The merchant's row is locked, so that two users adding at once do not exceed the limit.
        Merchant.objects.select_for_update().get(pk=merchant.pk)
        if Contact.objects.filter(merchant=merchant).count() >= MAX_CONTACTS:
            messages.error(request, _("There are %d addresses already, which is the most.") % MAX_CONTACTS)
            return
        row, made = Contact.objects.get_or_create(merchant=merchant, email=email)
        if made:
            _audit_contact(by, "create", row, after={"email": email})
    messages.success(request, _("Reminders go to %s, too.") % email)


def _audit_contact(by: audit_log.Actor, action: str, row: Contact, **change: Any) -> None:
    audit_log.record_audit_entry(by, action, row, **change)

"""What a letter of the acquirer says is entered by hand: a chargeback of a payment; and who is told of deadlines."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from chargebacks import ledger
from chargebacks.cases import deadline
from chargebacks.checklist import NO_REASON, is_explained, words
from chargebacks.models import Chargeback, Contact
from gateway import audit, clock, results
from gateway.admin.kit import actor
from gateway.catalogue.errors import Invalid
from gateway.masking import kept_note
from gateway.models import Merchant, Payment
from gateway.money import amount_text
from gateway.payments.refusal import Refused

CONTACTS_AT_MOST: Final = 20
REASONS: Final = tuple(
    sorted((code for code in results.RESULT_CODES if is_explained(code)), key=lambda code: (code != NO_REASON, code))
)  # fmt: skip


LONGEST: Final = timedelta(days=730)
"""Until when somebody may answer, at most."""


class NotEntered(Exception):
    """A field says what cannot be entered; the text may be shown."""


def view(page: ModelAdmin[Chargeback], request: HttpRequest, payment: Payment) -> HttpResponse:
    """The form; the right was asked for."""
    fault = ""
    if request.method == "POST":
        try:
            case = _entered(request, payment)
        except NotEntered as refused:
            fault = str(refused)
        except ledger.Overtaken:
            fault = _("Something of this payment was changed meanwhile. Look at it before you enter another.")
        except Invalid as invalid:
            fault = "; ".join(f"{one.name} {one.message}" for one in invalid.errors)
        except Refused as refused:
            fault = f"{results.result(refused.code).description} ({refused.code})"
        else:
            messages.success(request, _("Entered. The dispute can be answered until its deadline."))
            return redirect(reverse("admin:chargebacks_chargeback_change", args=[case.pk]))
    context = {
        **page.admin_site.each_context(request), "title": _("Enter a chargeback"), "opts": page.opts,
        "payment": payment, "fault": fault, "seen": Payment.objects.get(pk=payment.chain).follow_ups,
        "reasons": [(code, _(words(code))) for code in REASONS],
        "amount": request.POST.get("amount", amount_text(payment.approved or payment.amount)),
        "reason": request.POST.get("reason", NO_REASON), "respond_by": request.POST.get("respond_by", ""),
        "reference": request.POST.get("reference", ""),
    }  # fmt: skip
    return TemplateResponse(request, "admin/books/by_hand.html", context, status=400 if fault else 200)


def _entered(request: HttpRequest, payment: Payment) -> Chargeback:
    """Raises NotEntered, Overtaken, Invalid and Refused."""
    seen = request.POST.get("seen", "")
    if not (seen.isascii() and seen.isdigit() and len(seen) < 10):
        raise NotEntered(_("The form is not whole. Open it again."))
    text = request.POST.get("amount", "").strip().replace(",", ".")
    whole, dot, cents = text.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= 12 and (not dot or (cents.isascii() and
            cents.isdigit() and len(cents) <= 2))) or not Decimal(text):  # fmt: skip
        raise NotEntered(_("Amount: a number above 0 with two places, such as 12.50."))
    reason = request.POST.get("reason", "")
    if reason not in REASONS:
        raise NotEntered(_("Reason: choose one of the list."))
    respond_by = None
    if given := request.POST.get("respond_by", ""):
        try:
            respond_by = date.fromisoformat(given)
        except ValueError:
            raise NotEntered(_("Answer by: a day, such as 2030-01-31, or empty.")) from None
        now = clock.now(payment.merchant)
        today = now.astimezone(ZoneInfo(payment.merchant.time_zone)).date()
        if not today <= respond_by <= today + LONGEST or deadline(payment.merchant, now, respond_by) <= now:
            raise NotEntered(_("Answer by: a day whose deadline is still to come, within %d days.") % LONGEST.days)
    return ledger.charge_back(
        payment, Decimal(text).quantize(Decimal("0.01")), reason=reason, by=actor(request), respond_by=respond_by,
        reference=kept_note(request.POST.get("reference", ""), 64), seen=int(seen),
    )  # fmt: skip


def contact(request: HttpRequest, merchant: Merchant) -> None:
    """Add or remove an address that reminders go to, and say what was done."""
    email, by = request.POST.get("email", "").strip().lower(), actor(request)
    try:
        validate_email(email)
    except ValidationError:
        messages.error(request, _("That is no e-mail address."))
        return
    with transaction.atomic():
        if request.POST.get("verb") == "remove":
            row = Contact.objects.filter(merchant=merchant, email=email).first()
            if row is not None:
                _told(by, "delete", row, before={"email": email})
                row.delete()
            return
        # The merchant's row is locked, so that two that add at once do not go over the limit.
        Merchant.objects.select_for_update().get(pk=merchant.pk)
        if Contact.objects.filter(merchant=merchant).count() >= CONTACTS_AT_MOST:
            messages.error(request, _("There are %d addresses already, which is the most.") % CONTACTS_AT_MOST)
            return
        row, made = Contact.objects.get_or_create(merchant=merchant, email=email)
        if made:
            _told(by, "create", row, after={"email": email})
    messages.success(request, _("Reminders go to %s, too.") % email)


def _told(by: audit.Actor, action: str, row: Contact, **told: Any) -> None:
    audit.record(by, action, row, **told)

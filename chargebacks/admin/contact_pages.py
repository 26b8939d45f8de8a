"""Back-office page of the addresses that receive dispute reminders, of all merchants."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from chargebacks.admin import manual_entry
from chargebacks.models import Chargeback, Contact
from chargebacks.states import DisputeState
from gateway.access import permissions
from gateway.core import identifiers
from gateway.models import Merchant

CHANGE_CONTACT_PERMISSION: Final = "chargebacks.change_contact"
MAX_SHOWN_CONTACTS: Final = 200
MAX_NAMED_MERCHANTS: Final = 100
"""Merchants that the box names; any other one is typed, or its entityId."""
MAX_UNREMINDED_MERCHANTS: Final = 10


def build_contacts_context(request: HttpRequest) -> dict[str, Any]:
    """The addresses of the user's merchants, and the form that adds one. ``text``: narrows the list by merchant or
    address."""
    seen = permissions.list_permitted_merchants(request.user, "chargebacks.view_chargeback")
    changed = permissions.list_permitted_merchants(request.user, CHANGE_CONTACT_PERMISSION)
    rows = Contact.objects.filter(merchant__in=seen).select_related("merchant").order_by("merchant__name", "email")
    if text := request.GET.get("q", "").strip()[:100].replace("\0", ""):
        rows = rows.filter(merchant__name__icontains=text) | rows.filter(email__icontains=text)
    shown = list(rows[: MAX_SHOWN_CONTACTS + 1])
    may = set(changed.filter(pk__in={row.merchant_id for row in shown}).values_list("pk", flat=True))
    return {
        "rows": [(row, row.merchant_id in may) for row in shown[:MAX_SHOWN_CONTACTS]],
        "more": len(shown) > MAX_SHOWN_CONTACTS,
        "text": text,
        "merchants": changed.order_by("name")[:MAX_NAMED_MERCHANTS],
        "chosen": request.GET.get("merchant", "")[:100],
        "may_add": changed.exists(),
        "unreminded": list_unreminded_merchants(request),
    }


def list_unreminded_merchants(request: HttpRequest) -> list[Merchant]:
    """Merchants with a dispute to answer and no address that is reminded of it, for users who can add one."""
    own = permissions.list_permitted_merchants(request.user, CHANGE_CONTACT_PERMISSION)
    open_ = Chargeback.objects.filter(merchant=OuterRef("pk"), state=DisputeState.OPEN)
    named = Contact.objects.filter(merchant=OuterRef("pk"))
    return list(own.filter(Exists(open_), ~Exists(named)).order_by("name")[:MAX_UNREMINDED_MERCHANTS])


def add_contact(request: HttpRequest) -> None:
    """Add the form's address to the merchant that it names by name or entityId."""
    own = permissions.list_permitted_merchants(request.user, CHANGE_CONTACT_PERMISSION)
    found = _find_named_merchants(own, request.POST.get("merchant", "").strip()[:200].replace("\0", ""))
    if len(found) == 1:
        manual_entry.change_contact(request, found[0])
    elif found:
        messages.error(request, _("Several merchants have this name: give the entityId."))
    else:
        messages.error(request, _("No merchant of yours has this name or entityId."))


def _find_named_merchants(own: QuerySet[Merchant], text: str) -> list[Merchant]:
    ident = identifiers.parse_id(text.replace("-", "").lower())
    return list(own.filter(Q(pk=ident) if ident is not None else Q(name=text))[:2])

"""Disputes in the search of the back office: by the acquirer's reference, the scheme's case or the ARN."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from chargebacks.models import Chargeback
from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.operations import office_search
from gateway.backoffice.operations.office_search import OfficeHit, SearchSource
from gateway.core import identifiers


def find_disputes(scope: AccessScope, text: str) -> Iterable[OfficeHit]:
    """The disputes that ``text`` names, newest first."""
    ident = identifiers.parse_id(text.replace("-", "").lower())
    named = Q(reference=text) | Q(scheme_case=text) | Q(arn=text)
    if ident is not None:
        named = Q(pk=ident) | Q(disputed=ident)
    rows = Chargeback.objects.filter(scope.where()).filter(named).select_related("merchant").order_by("-opened_at")
    for row in rows[: office_search.MAX_ROWS_PER_KIND]:
        yield OfficeHit(
            title=_("Dispute of %s") % format_money(row.amount, row.currency),
            description=f"{_(str(row.get_state_display()))} · {row.reason_code} · {row.merchant.name}",
            link=reverse("admin:chargebacks_chargeback_change", args=[row.pk]),
            icon="gavel",
        )


DISPUTE_SEARCH: Final = office_search.register_search_source(
    SearchSource(right="chargebacks.view_chargeback", find=find_disputes)
)

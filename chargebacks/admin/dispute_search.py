"""Disputes in the search of the back office, by all that chargebacks.disputed_orders.match_disputes reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

from chargebacks.disputed_orders import find_order_numbers, match_disputes
from chargebacks.models import Chargeback
from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.operations import office_search
from gateway.backoffice.operations.office_search import OfficeHit, SearchSource
from gateway.core.masking import mask_text


def find_disputes(scope: AccessScope, text: str) -> Iterable[OfficeHit]:
    """The disputes that ``text`` names, newest first."""
    rows = Chargeback.objects.filter(scope.where(), match_disputes(text)).select_related("merchant")
    listed = list(rows.order_by("-opened_at")[: office_search.MAX_ROWS_PER_KIND])
    orders = find_order_numbers(listed)
    for row in listed:
        parts = (_(str(row.get_state_display())), row.reason_code, mask_text(orders.get(row.pk, "")), row.merchant.name)
        yield OfficeHit(
            title=_("Dispute of %s") % format_money(row.amount, row.currency),
            description=" · ".join(part for part in parts if part),
            link=reverse("admin:chargebacks_chargeback_change", args=[row.pk]),
            icon="gavel",
        )


DISPUTE_SEARCH: Final = office_search.register_search_source(
    SearchSource(right="chargebacks.view_chargeback", find=find_disputes)
)

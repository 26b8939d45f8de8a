"""Payouts and settlement files in the search of the back office: by reference, and by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.operations import office_search
from gateway.backoffice.operations.office_search import OfficeHit, SearchSource
from reporting.models import Settlement, SettlementFile, SettlementRecord
from reporting.templatetags.books import describe_line_kind

MIN_REFERENCE_CHARS: Final = 6


def find_payouts(scope: AccessScope, text: str) -> Iterable[OfficeHit]:
    """Payouts with this reference, newest first."""
    rows = Settlement.objects.filter(scope.where("merchant", None), reference=text).select_related("institute")
    for row in rows.order_by("-date")[: office_search.MAX_ROWS_PER_KIND]:
        yield OfficeHit(
            title=f"{_('Payout')} {row.date:%Y-%m-%d} {row.currency}",
            description=f"{row.reference} · {row.institute.name}",
            link=reverse("admin:reporting_settlement_change", args=[row.pk]),
            icon="account_balance_wallet",
        )


def find_settlement_files(scope: AccessScope, text: str) -> Iterable[OfficeHit]:
    """Settlement files whose name begins so, for users who see every merchant: a file has lines of several."""
    if not scope.everything or len(text) < office_search.MIN_NAME_CHARS:
        return
    rows = SettlementFile.objects.filter(name__istartswith=text).order_by("-received_at")
    for row in rows[: office_search.MAX_ROWS_PER_KIND]:
        yield OfficeHit(
            title=row.name,
            description=_("Settlement file"),
            link=reverse("admin:reporting_settlementfile_change", args=[row.pk]),
            icon="upload_file",
        )


def find_settlement_lines(scope: AccessScope, text: str) -> Iterable[OfficeHit]:
    """Lines of settlement files by the institute's id of the transaction or its ARN, newest first."""
    if len(text) < MIN_REFERENCE_CHARS:
        return
    named = Q(arn=text) & ~Q(arn="") | Q(tx_id1=text) & ~Q(tx_id1="")
    rows = SettlementRecord.objects.filter(scope.where("merchant", None)).filter(named).select_related("institute")
    for row in rows.order_by("-id")[: office_search.MAX_ROWS_PER_KIND]:
        yield OfficeHit(
            title=f"{describe_line_kind(row)} {format_money(row.amount, row.currency)}",
            description=f"{_('Settled')} {row.settlement_date:%Y-%m-%d} · {row.institute.name}",
            link=reverse("admin:reporting_settlementrecord_change", args=[row.pk]),
            icon="receipt_long",
        )


BOOK_SEARCHES: Final = (
    office_search.register_search_source(SearchSource(right="reporting.view_settlement", find=find_payouts)),
    office_search.register_search_source(
        SearchSource(right="reporting.view_settlementfile", find=find_settlement_files)
    ),
    office_search.register_search_source(
        SearchSource(right="reporting.view_settlementrecord", find=find_settlement_lines)
    ),
)

"""The list of payments with its search, and the page of one payment.

Manual follow-ups are in gateway.backoffice.follow_ups.follow_up_form. Source: docs/back-office-payments.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.access import permissions
from gateway.access.permissions import RowOwner
from gateway.backoffice.follow_ups import bulk_pages, follow_up_form, payout_decisions, payout_form
from gateway.backoffice.follow_ups.bulk_follow_ups import BULK_TYPES
from gateway.backoffice.follow_ups.manual_follow_up import MAX_FOLLOW_UP_NOTE_CHARS
from gateway.backoffice.follow_ups.open_approvals import build_open_condition
from gateway.backoffice.follow_ups.reasons import FOLLOW_UP_REASONS, name_request
from gateway.backoffice.kit import entity_names, saved_views
from gateway.backoffice.kit.base import ReadOnlyPage
from gateway.backoffice.kit.formatting import (
    build_state_pill,
    format_masked_json,
    format_money,
    name_zone,
    normalize_tone,
)
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.list_columns import (
    COLUMNS_PARAMETER,
    ORDER_PARAMETER,
    list_column_choices,
    list_view_values,
)
from gateway.backoffice.kit.periods import PERIODS
from gateway.backoffice.kit.time_limit import SearchTooBroadError
from gateway.backoffice.operations import background_work_pages
from gateway.backoffice.payments import archived_search, chain_diagram, payment_columns, payment_search, search_terms
from gateway.backoffice.payments.archived_payment_page import (
    MAX_SHOWN_ARCHIVED,
    build_archived_page,
    render_archived_rows,
)
from gateway.backoffice.payments.archived_search import ARCHIVED_SHAPES
from gateway.backoffice.payments.chain_words import CHAIN_WORDS, build_chain_pill
from gateway.backoffice.payments.curl_commands import build_payment_curls
from gateway.backoffice.payments.follow_up_offers import FollowUpOffer
from gateway.backoffice.payments.payment_filters import (
    CHAIN_PARTS,
    FILTER_PAYMENT_TYPES,
    FILTER_TEST_MODES,
    PAYMENT_FILTER_NAMES,
    PaymentFilters,
    parse_payment_filters,
)
from gateway.backoffice.payments.payment_search import TooManyToSortError
from gateway.backoffice.payments.payment_titles import PAYMENT_TYPE_TITLES, format_payment_title
from gateway.backoffice.payments.request_details import build_request_details
from gateway.backoffice.payments.search_terms import SEARCH_SHAPES, FullCardNumberError, SearchTerm, parse_search_term
from gateway.backoffice.payments.shopper_mail import build_shopper_mail
from gateway.backoffice.payments.timeline import PaymentStory, TimelineEvent, build_payment_story
from gateway.core import brands, identifiers
from gateway.core.masking import mask_text
from gateway.core.result_codes import ResultFamily
from gateway.models import Approval, Channel, Merchant, Payment, RequestLog, Status, WebhookDelivery
from gateway.payments.chain_states import ChainStatus
from gateway.payments.operation_table import OPERATIONS
from gateway.payments.payment_archive import bring_chain_back, find_archived_payment, has_archive
from gateway.payments.rendering import render_issuer, render_payment
from gateway.scheduling.models import JobRun

ARCHIVED_PARAMETER = "archived"
"""The list is of archived payments."""
LIST_PARAMETERS = (*PAYMENT_FILTER_NAMES, "q", COLUMNS_PARAMETER, ORDER_PARAMETER, ARCHIVED_PARAMETER)
"""Parameters of the list's address that its forms and links keep."""
QUICK_FILTERS = (
    *(
        (CHAIN_WORDS[state].name, {"state": state.value})
        for state in (
            ChainStatus.AUTHORIZED,
            ChainStatus.PARTLY_CAPTURED,
            ChainStatus.PARTLY_REFUNDED,
            ChainStatus.REFUNDED,
            ChainStatus.DISPUTED,
            ChainStatus.DECLINED,
        )
    ),
    # Of each part: a refund in doubt leaves the payment as a whole in the state that it has.
    (CHAIN_WORDS[ChainStatus.IN_DOUBT].name, {"status": Status.IN_DOUBT.value}),
    (gettext_lazy("Refunds"), {"type": "RF"}),
    (gettext_lazy("To review"), {"family": ResultFamily.REVIEW.value}),
)


@admin.register(Payment)
class PaymentAdmin(ReadOnlyPage):
    """Payments. The list and the page are our own views; the base class gives the access scope."""

    lists_from_standby = True
    columns = payment_columns.PAYMENT_COLUMNS
    usual_columns = payment_columns.USUAL_COLUMNS

    def get_urls(self) -> list[URLPattern]:
        name = "gateway_payment_"
        own = [
            path("export/", self.admin_site.admin_view(self.export_view), name=f"{name}export"),
            path("<uuid:payment>/timeline/", self.admin_site.admin_view(self.timeline_view), name=f"{name}timeline"),
            path("bulk/", self.admin_site.admin_view(self.bulk_begin_view), name=f"{name}bulk_begin"),
            path("bulk/<uuid:action>/", self.admin_site.admin_view(self.bulk_view), name=f"{name}bulk"),
            path(
                "bulk/<uuid:action>/<str:verb>/", self.admin_site.admin_view(self.bulk_do_view), name=f"{name}bulk_do"
            ),
            path("<uuid:payment>/payout/", self.admin_site.admin_view(self.payout_view), name=f"{name}payout"),
            path("<uuid:payment>/do/<str:code>/", self.admin_site.admin_view(self.follow_up_view), name=f"{name}do"),
        ]
        return own + super().get_urls()

    # --- the list ----------------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "GET":
            return redirect(reverse("admin:gateway_payment_changelist"))
        try:
            asked = parse_search_term(request.GET.get("q", ""))
        except FullCardNumberError:
            # Neither the page nor its address may repeat the number.
            messages.warning(request, _(search_terms.FULL_CARD_NUMBER_TEXT))
            return redirect(reverse("admin:gateway_payment_changelist"))
        values, unknown = _resolve_entities(request.user, request.GET)
        filters, wrong = parse_payment_filters(values)
        wrong |= unknown
        columns = payment_columns.choose_payment_columns(request.user, request.GET.get(COLUMNS_PARAMETER, ""))
        if request.GET.get(ARCHIVED_PARAMETER) and not asked.shape and not asked.wrong:
            return self._archived_list_view(request, values, filters, wrong, columns)
        order = payment_columns.parse_order(request.GET.get(ORDER_PARAMETER, ""))
        typed = asked
        page, too_much, unsorted = payment_search.SearchPage(rows=[]), False, False
        if not wrong and not asked.wrong:
            try:
                asked, page = self._find_listed(request, asked, filters, order)
            except SearchTooBroadError:
                too_much = True
            except TooManyToSortError:
                unsorted = True
        if page.sure and not request.GET.get("after"):
            return HttpResponseRedirect(build_payment_page_url(page.rows[0].id))
        archived: list[Payment] = []
        if not wrong and not request.GET.get("after"):
            archived = archived_search.find_archived_payments(self.scope(request), typed, filters)
        if len(archived) == 1 and not page.rows:
            return HttpResponseRedirect(build_payment_page_url(archived[0].pk))
        # What leads on from here, to another page, an export or a bulk action, is read as this list was.
        reading = {"q": asked.typed if asked != typed else request.GET.get("q", "")}
        listed = {**request.GET.dict(), **reading, ARCHIVED_PARAMETER: ""}
        ended = not (page.after or too_much or unsorted or wrong or asked.wrong)
        context = {
            **self._build_list_context(request, filters, wrong, columns),
            "asked": asked,
            "readings": _list_other_readings(request.GET.get("q", ""), asked),
            "too_much": too_much,
            "rows": page.rows,
            "table": payment_columns.build_payment_table(page.rows, columns, dict(_list_passed_filters(listed))),
            "archived": render_archived_rows(archived[:MAX_SHOWN_ARCHIVED]),
            "archived_number": len(archived),
            "columns": list_column_choices(columns, self.list_column_titles(request), "when"),
            "unsorted": unsorted,
            "max_sorted": payment_search.MAX_SORTED_PAYMENTS,
            "totals": self._sum_listed(request, listed, asked, filters, page),
            "may_operate": self.may(request, "gateway.operate_payment"),
            "bulk_types": [(code, _(OPERATIONS[code].title)) for code in BULK_TYPES],
            "reasons": list(FOLLOW_UP_REASONS.items()),
            "note_max": MAX_FOLLOW_UP_NOTE_CHARS,
            "next": _build_list_query(listed, after=page.after),
            "may_export": self.may(request, "gateway.export_payment"),
            "passed_on": _list_passed_filters({**values, **reading, ARCHIVED_PARAMETER: ""}),
            "older": _build_archive_link(values, filters) if ended and asked.shape not in ARCHIVED_SHAPES else None,
            "waiting": _count_waiting(request),
            "own_outcomes": _list_outcomes(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/payments.html", context)

    def _build_list_context(
        self, request: HttpRequest, filters: PaymentFilters, wrong: Mapping[str, str], columns: Sequence[str]
    ) -> dict[str, Any]:
        """What the lists of payments and of archived payments both show."""
        return {
            **self.admin_site.each_context(request),
            "title": _("Payments"),
            "opts": self.opts,
            "cl": None,
            "q": request.GET.get("q", ""),
            "wrong": wrong,
            "views": saved_views.build_view_panel(
                request.user,
                payment_columns.PAYMENT_LIST,
                list_view_values(request.GET, columns, payment_columns.USUAL_COLUMNS),
            ),
            "paged": bool(request.GET.get("after")),
            "filters": self._render_filters(request, filters),
            "narrowed": [name for name in PAYMENT_FILTER_NAMES if request.GET.get(name)],
            "shapes": SEARCH_SHAPES,
            "quick": [(title, f"?{urlencode(values)}") for title, values in _list_quick_filters()],
        }

    def _archived_list_view(
        self,
        request: HttpRequest,
        values: Mapping[str, str],
        filters: PaymentFilters,
        wrong: dict[str, str],
        columns: Sequence[str],
    ) -> HttpResponse:
        """The archived payments of the filters, newest first."""
        if filters.state:
            wrong["state"] = _("is not kept of archived payments: choose a single step instead")
        page, too_much = payment_search.SearchPage(rows=[]), False
        if not wrong:
            try:
                page = archived_search.find_archived_page(
                    self.scope(request), filters, after=request.GET.get("after", "")
                )
            except SearchTooBroadError:
                too_much = True
        context = {
            **self._build_list_context(request, filters, wrong, columns),
            "lists_archive": True,
            "too_much": too_much,
            "archived": render_archived_rows(page.rows),
            "next": _build_list_query(request.GET.dict(), after=page.after),
            "passed_on": _list_passed_filters(values),
            "everyday": _build_list_query({**values, ARCHIVED_PARAMETER: ""}),
        }
        return TemplateResponse(request, "admin/clerk/payments.html", context)

    def _find_listed(
        self, request: HttpRequest, asked: SearchTerm, filters: PaymentFilters, order: str
    ) -> tuple[SearchTerm, payment_search.SearchPage]:
        scope, after = self.scope(request), request.GET.get("after", "")
        size = payment_search.SEARCH_PAGE_ROWS

        def find(term: SearchTerm) -> payment_search.SearchPage:
            if not order:
                return payment_search.find_payments_page(scope, term, filters, after=after, size=size)
            place = int(after) if re.fullmatch("[0-9]{1,6}", after) else 0
            return payment_search.find_sorted_page(scope, term, filters, order, place=place, size=size)

        page = find(asked)
        if asked.shape == "order" and not page.rows and not after:
            # A text that is no order number may be the beginning of one, a name, or a reference.
            for other in search_terms.list_fallback_terms(asked.value):
                found = find(other)
                if found.rows:
                    return other, found
        return asked, page

    def _sum_listed(
        self,
        request: HttpRequest,
        listed: Mapping[str, str],
        asked: SearchTerm,
        filters: PaymentFilters,
        page: payment_search.SearchPage,
    ) -> dict[str, Any]:
        """What the list sums to by currency: at once where it has one page, else where the page asks for it."""
        whole = not page.after and not request.GET.get("after")
        if page.rows and whole:
            return {"rows": payment_search.sum_rows(page.rows), "complete": True}
        if not page.rows or "sums" not in request.GET:
            return {"offer": f"{_build_list_query(listed) or '?'}&sums=1" if page.rows else ""}
        try:
            sums, complete = payment_search.sum_payments(self.scope(request), asked, filters)
        except SearchTooBroadError:
            return {"broad": True}
        return {"rows": sums, "complete": complete, "most": payment_search.MAX_SUMMED_PAYMENTS}

    def _check_operator(self, request: HttpRequest) -> None:
        if not self.may(request, "gateway.operate_payment"):
            raise PermissionDenied

    def bulk_begin_view(self, request: HttpRequest) -> HttpResponse:
        self._check_operator(request)
        return bulk_pages.begin_bulk(request)

    def bulk_view(self, request: HttpRequest, action: UUID) -> HttpResponse:
        self._check_operator(request)
        return bulk_pages.show_bulk(self, request, action)

    def bulk_do_view(self, request: HttpRequest, action: UUID, verb: str) -> HttpResponse:
        self._check_operator(request)
        return bulk_pages.change_bulk(request, action, verb)

    def _render_filters(self, request: HttpRequest, filters: PaymentFilters) -> list[dict[str, Any]]:
        """The filters for the template: name, label, kind, choices."""
        chosen: dict[str, tuple[str, list[tuple[str, str]]]] = {
            "state": (_("State"), [(state.value, str(words.name)) for state, words in CHAIN_WORDS.items()]),
            "part": (_("Part of the chain"), [(value, _(title)) for value, title in CHAIN_PARTS.items()]),
            "status": (_("Single step"), [(value, build_state_pill(value)["text"]) for value in Status.values]),
            "period": (_("Period"), [(value, _(title)) for value, title in PERIODS.items()]),
            "type": (_("Type"), [(code, f"{code} {_format_type_title(code)}") for code in FILTER_PAYMENT_TYPES]),
            "family": (_("Result"), [(family.value, _(family.value.replace("-", " "))) for family in ResultFamily]),
            "brand": (_("Brand"), [(code, code) for code in sorted(brands.PAYMENT_BRANDS)]),
            "method": (
                _("Method"),
                [(code, code) for code in sorted({b.method for b in brands.PAYMENT_BRANDS.values()})],
            ),
            "mode": (_("Test mode"), [(code, code) for code in FILTER_TEST_MODES]),
        }
        entities = {"merchant": _("Merchant"), "channel": _("Channel")}
        typed = {
            "from": (_("From (%s)") % name_zone(), "date"),
            "to": (_("To"), "date"),
            "currency": (_("Currency"), "text"),
            "least": (_("Amount from"), "text"),
            "most": (_("Amount to"), "text"),
            "code": (_("Result code"), "text"),
        }
        found: list[dict[str, Any]] = []
        for name in (
            "period",
            "from",
            "to",
            "state",
            "type",
            "least",
            "most",
            "currency",
            "brand",
            "method",
            "family",
            "code",
            "channel",
            "merchant",
            "mode",
            "part",
            "status",
        ):
            value = request.GET.get(name, "")
            if name in entities:
                # Suggestions while one types: there may be thousands.
                names = entity_names.build_suggestion_address(name)
                found.append({"name": name, "label": entities[name], "kind": "text", "value": value, "names": names})
            elif name in chosen:
                label, choices = chosen[name]
                found.append({"name": name, "label": label, "choices": choices, "value": value})
            else:
                label, kind = typed[name]
                kind = "datetime-local" if kind == "date" and "T" in value else kind
                found.append({"name": name, "label": label, "kind": kind, "value": value})
        return found

    # --- the page ----------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        try:
            payment = self._find_payment(request, object_id)
        except Http404:
            archived = self._find_archived(
                request, find_archived_payment(identifiers.parse_id(unquote(object_id).replace("-", "")), None)
            )
            if archived is None:
                raise
            return self._archived_view(request, archived)
        if request.method != "GET":
            raise PermissionDenied
        self.record(request, "view", payment)
        story = build_payment_story(payment, with_prices=self.may(request, "gateway.view_acquirercost", payment))
        rendered = render_payment(payment)
        rendered.pop("redirect", None)
        context = {
            **self.admin_site.each_context(request),
            "title": _format_heading(payment),
            "opts": self.opts,
            "payment": payment,
            "original": payment,
            "story": story,
            "pill": build_chain_pill(story.status) if story.is_first else build_state_pill(payment.status),
            "whole_pill": None if story.is_first else build_chain_pill(story.status),
            "first_address": build_payment_page_url(payment.chain),
            "moments": [_render_event(moment, story) for moment in story.moments],
            "picture": chain_diagram.draw_chain(story.nodes),
            "particulars": build_request_details(payment),
            "card": _render_means(payment),
            "told": format_masked_json(rendered),
            "offers": [_render_offer(payment, offer) for offer in story.offers]
            if self.may(request, "gateway.operate_payment", payment)
            else [],
            "payout_address": reverse("admin:gateway_payment_payout", args=[payment.pk])
            if payout_decisions.is_decidable(payment) and self.may(request, "gateway.operate_payment", payment)
            else "",
            "curls": build_payment_curls(payment, story.offers),
            "ids": _list_ids(payment),
            "title_of": format_payment_title(payment),
            "see_deliveries": self.scope(request).covers(RowOwner(merchant=payment.merchant_id)),
            "approvals": story.approvals,
            "mail": build_shopper_mail(payment, story.chain, story.status) if story.why.shopper else None,
            "back": request.GET.get("back", ""),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/payment.html", context)

    def _find_archived(self, request: HttpRequest, payment: Payment | None) -> Payment | None:
        """The archived payment, if it is in the user's scope."""
        return payment if payment is not None and self.may(request, "view", payment) else None

    def _archived_view(self, request: HttpRequest, payment: Payment) -> HttpResponse:
        may_bring_back = self.may(request, "gateway.operate_payment", payment)
        if request.method == "POST":
            if not may_bring_back:
                raise PermissionDenied
            with transaction.atomic():
                bring_chain_back(payment.pk, payment.merchant_id)
                self.record(request, "bring back", payment)
            messages.success(request, _("The chain is among the payments again."))
            return redirect(build_payment_page_url(payment.pk))
        self.record(request, "view", payment)
        context = {
            **self.admin_site.each_context(request),
            **build_archived_page(payment, self.scope(request)),
            "opts": self.opts,
            "card": _render_means(payment),
            "may_bring_back": may_bring_back,
        }
        return TemplateResponse(request, "admin/clerk/archived_payment.html", context)

    def timeline_view(self, request: HttpRequest, payment: Any) -> HttpResponse:
        """The timeline alone with the text of each webhook, as a fragment: the docs show it below a run sample."""
        row = self._find_payment(request, payment)
        if request.method != "GET":
            raise PermissionDenied
        self.record(request, "view", row)
        story = build_payment_story(row, with_prices=self.may(request, "gateway.view_acquirercost", row))
        deliveries = [moment.delivery for moment in story.moments if moment.delivery is not None]
        bodies: Mapping[UUID | None, str] = dict(
            WebhookDelivery.objects.filter(pk__in=deliveries).values_list("pk", "body")
        )
        context = {
            "moments": [
                {**_render_event(moment, story), "webhook": _format_webhook(bodies.get(moment.delivery, ""))}
                for moment in story.moments
            ],
            # Their pages belong to the merchant as a whole; a webhook's text says no more than the payment does.
            "see_deliveries": self.scope(request).covers(RowOwner(merchant=row.merchant_id)),
        }
        response = TemplateResponse(request, "admin/clerk/timeline.html", context)
        response["Cache-Control"] = "no-store"
        return response

    def _find_payment(self, request: HttpRequest, ident: object, verb: str = "view") -> Payment:
        """A payment in the user's scope with everything its page reads; 404 outside it."""
        row: Payment = self.find_row(request, ident, "merchant", "channel")
        if verb != "view" and not self.may(request, verb, row):
            raise PermissionDenied
        return row

    def follow_up_view(self, request: HttpRequest, payment: Any, code: str) -> HttpResponse:
        if code not in OPERATIONS:
            raise Http404
        row = self._find_payment(request, payment, "gateway.operate_payment")
        return follow_up_form.handle_follow_up_form(self, request, row, code)

    def payout_view(self, request: HttpRequest, payment: Any) -> HttpResponse:
        row = self._find_payment(request, payment, "gateway.operate_payment")
        return payout_form.handle_payout_form(self, request, row)

    def export_view(self, request: HttpRequest) -> HttpResponse:
        if not self.may(request, "gateway.export_payment"):
            raise PermissionDenied
        # An export moves nothing: where no payment is selected, it has all of the list.
        ids = bulk_pages.read_picked(request)
        shown = request.POST.get(COLUMNS_PARAMETER, "")
        columns = payment_columns.choose_payment_columns(request.user, shown) if "shown" in request.POST else []
        return background_work_pages.start_payment_export(request, ids=ids, columns=columns)


def _list_other_readings(text: str, asked: SearchTerm) -> list[SearchTerm]:
    """What else a text may have meant than what it was read as."""
    return [one for one in search_terms.list_search_readings(text) if one.shape != asked.shape] if text else []


# --- what the pages are given -----------------------------------------------------------------------------------------


def _build_list_query(listed: Mapping[str, str], **changes: str) -> str:
    """A list's query string with changes; '' if ``after`` is empty, as there is no next page."""
    if "after" in changes and not changes["after"]:
        return ""
    kept = dict(_list_passed_filters(listed))
    return f"?{urlencode({**kept, **changes})}"


def _build_archive_link(values: Mapping[str, str], filters: PaymentFilters) -> dict[str, Any] | None:
    """Before when payments of the list may be archived, and the address that lists those of its filters; None if none
    of them can be."""
    since = archived_search.find_archived_since(filters)
    if since is None:
        return None
    kept = {name: text for name, text in values.items() if name in PAYMENT_FILTER_NAMES and name != "state"}
    return {"since": since, "address": _build_list_query({**kept, ARCHIVED_PARAMETER: "1"})}


def _list_quick_filters() -> list[tuple[Any, Mapping[str, str]]]:
    """QUICK_FILTERS, and the archive where one is kept."""
    archive = [(_("Archived payments"), {ARCHIVED_PARAMETER: "1"})] if has_archive() else []
    return [*QUICK_FILTERS, *archive]


def _resolve_entities(user: Any, values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The filters with the ids of the typed merchant and channel, and the names that match none."""
    found, wrong = dict(values.items()), {}
    for name in entity_names.ENTITY_KINDS:
        text = found.get(name, "").strip()
        if not text or identifiers.parse_id(text.replace("-", "")) is not None:
            continue
        rows = entity_names.list_permitted_entities(user, name, "gateway.view_payment")
        try:
            found[name] = entity_names.find_typed_entity(rows, text).pk.hex
        except entity_names.EntityNameError as fault:
            found.pop(name)
            wrong[name] = str(fault)
    return found, wrong


def _list_passed_filters(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Parameters of a list's address that its forms and links keep."""
    return [(name, str(values[name])) for name in LIST_PARAMETERS if values.get(name)]


def _render_offer(payment: Payment, offer: FollowUpOffer) -> dict[str, str]:
    """A button of the payment's page; the form finds the member of the chain that it is for."""
    address = reverse("admin:gateway_payment_do", args=[payment.pk, offer.code])
    return {"title": offer.title, "address": address}


def _format_type_title(code: str) -> str:
    operation = OPERATIONS.get(code)
    title = operation.title if operation is not None else PAYMENT_TYPE_TITLES.get(code, "")
    return _(title) if title else ""


def _format_heading(payment: Payment) -> str:
    amount = f" {format_money(payment.amount, payment.currency)}" if payment.amount else ""
    return f"{format_payment_title(payment)}{amount}"


def _count_waiting(request: HttpRequest) -> int:
    """Number of approvals that wait for this user, counted up to a hundred."""
    scope = permissions.find_access_scope(request.user, "gateway.approve_payment")
    if not scope:
        return 0
    rows = Approval.objects.filter(build_open_condition()).exclude(asked_by=request.user.pk)
    return rows.filter(scope.where("merchant", "payment__channel"))[:100].count()


def _list_outcomes(request: HttpRequest) -> list[dict[str, Any]]:
    """Decisions about this user's own latest requests."""
    mine = Approval.objects.filter(asked_by=request.user.pk).exclude(state=Approval.State.WITHDRAWN)
    return [
        {
            "row": row,
            "what": name_request(row.payment_type, row.payment.payment_type),
            "pill": build_state_pill(row.state),
        }
        for row in mine.order_by("-asked_at").select_related("payment")[:3]
    ]


def _render_event(moment: TimelineEvent, story: PaymentStory) -> dict[str, Any]:
    """A timeline event for the template: ``sent`` and ``received`` as text, with structures that equal the request's
    put back by name."""
    other = moment.payment is not None and moment.payment.id != story.payment.id
    return {
        "moment": moment,
        "other": moment.payment if other else None,
        "other_address": build_payment_page_url(moment.payment.id) if other and moment.payment else "",
        "sent": format_masked_json(moment.sent) if moment.sent else "",
        "received": format_masked_json(moment.received) if moment.received else "",
        "tone": normalize_tone(moment.tone),
    }


def _format_webhook(body: str) -> str:
    """The text of a webhook, indented and masked; "" for none."""
    return format_masked_json(json.loads(body)) if body else ""


def _render_means(payment: Payment) -> dict[str, Any]:
    """The payment means as far as stored, with links to other payments by it."""
    card = payment.answer.get("card", {})
    sent = payment.request.get("card", {})
    found: dict[str, Any] = {"facts": []}
    if last := card.get("last4Digits"):
        found["number"] = f"{card['bin']} •••• {last}"
        facts = render_issuer(card["bin"])
        issuer = facts.get("issuer", {})
        month, year = (
            sent.get("expiryMonth") or card.get("expiryMonth"),
            sent.get("expiryYear") or card.get("expiryYear"),
        )
        named = (
            (_("Holder"), sent.get("holder") or card.get("holder")),
            (_("Expires"), f"{month}/{year}" if month else ""),
            (_("Bank"), issuer.get("bank")),
            (_("Bank's phone"), issuer.get("phone")),
            (_("Kind"), facts.get("type")),
            (_("Level"), facts.get("level")),
        )
        found["facts"] = [(name, mask_text(str(value))) for name, value in named if value]
        if payment.means_fingerprint:
            found["fingerprint"] = f"{last}:{bytes(payment.means_fingerprint).hex()}"
    account = payment.request.get("bankAccount", {})
    if isinstance(account, dict) and account:
        found["facts"] = [(name, mask_text(value)) for name, value in account.items() if isinstance(value, str)]
    return found


def _list_ids(payment: Payment) -> list[tuple[str, str, str]]:
    """(name, value, address of its page)."""
    request_log = reverse("admin:gateway_requestlog_change", args=[payment.request_id])
    schedule = _find_schedule(payment)
    logged = RequestLog.objects.filter(pk=payment.request_id).exists()
    named = [
        ("id", payment.id.hex, ""),
        ("shortId", identifiers.format_short_id(payment.number), ""),
        ("ndc", identifiers.format_ndc(payment.request_id, payment.channel_id.hex), request_log if logged else ""),
        ("entityId", payment.channel.entity_id, ""),
        (_("Merchant"), str(payment.merchant), ""),
        (_("Channel"), str(payment.channel), ""),
        (
            "referencedId",
            payment.referenced.hex if payment.referenced else "",
            build_payment_page_url(payment.referenced) if payment.referenced else "",
        ),
        (
            _("Schedule"),
            schedule.hex if schedule else "",
            reverse("admin:scheduling_job_change", args=[schedule]) if schedule else "",
        ),
        (
            "registrationId",
            payment.registration.hex if payment.registration else "",
            reverse("admin:gateway_registration_change", args=[payment.registration]) if payment.registration else "",
        ),
        (_("Connector"), payment.connector, ""),
        (_("Acquirer's reference"), payment.connector_tx_id, ""),
        (_("Acquirer account"), payment.acquirer_merchant_id, ""),
        ("testMode", payment.test_mode, ""),
    ]
    return [each for each in named if each[1]]


def _find_schedule(payment: Payment) -> UUID | None:
    """The schedule of which a payment is a run or a record."""
    if payment.payment_type in ("SD", "RS", "DS"):
        return payment.chain
    return JobRun.objects.filter(payment=payment.pk).values_list("job", flat=True).first()


__all__ = ["Channel", "Merchant", "PaymentAdmin", "SearchTerm"]

"""Back-office pages of reconciliation files: download, rewriting, deliveries, and the merchant's SFTP target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.access import audit_log, permissions
from gateway.access.permissions import RowOwner
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.waiting_calls import tell_of_too_many_calls
from gateway.backoffice.kit.work_start import start_page_work
from gateway.backoffice.sign_in import session
from gateway.core import identifiers
from gateway.core.money import CURRENCY_CODES
from gateway.core.secret import Secret
from gateway.models import Merchant
from reporting.models import Delivery, DeliveryAttempt, ReconciliationFile, SftpTarget
from reporting.reconciliation import daily_files, deliveries, period_files
from reporting.sftp import SftpUnreachableError

RECONCILIATION_FILE_ORDER: Final = keyset.KeysetOrder(columns=(("day", date), ("id", UUID)), newest_first=True)
MAX_MERCHANT_FILTER_CHOICES: Final = 500
"""Merchants that the box of the period offers; any other is found by its whole name or its entityId."""
MAX_SHOWN_SCHEDULES: Final = 100
EXPORT_PERMISSION: Final = "reporting.export_reconciliationfile"
_STATES: Final = {
    Delivery.State.WAITING: ("wait", lazy("Waits, or is tried again")),
    Delivery.State.DONE: ("good", lazy("Sent")),
    Delivery.State.FAILED: ("bad", lazy("Given up")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """A filter of the list that the first page links to. ``words``: shown above the list; empty for none."""

    where: Q = field(default_factory=Q)
    words: str = ""
    parameters: list[tuple[str, str]] = field(default_factory=list)


def _narrow_by_delivery(sent: QueryDict) -> DeliveryFilter:
    """Files that are tried again or given up (``sent``), or were tried on a day (``tried``)."""
    match sent.get("sent"):
        case "again":
            where = Q(delivery__state=Delivery.State.WAITING, delivery__attempts__gt=0)
            return DeliveryFilter(where=where, words=_("tried again"), parameters=[("sent", "again")])
        case "lost":
            where = Q(delivery__state=Delivery.State.FAILED)
            return DeliveryFilter(where=where, words=_("given up"), parameters=[("sent", "lost")])
    try:
        day = date.fromisoformat(sent.get("tried", ""))
    except ValueError:
        return DeliveryFilter()
    tries = DeliveryAttempt.objects.filter(delivery__file=OuterRef("pk"), at__date=day)
    return DeliveryFilter(
        where=Q(Exists(tries)), words=_("tried on %s") % f"{day:%Y-%m-%d}", parameters=[("tried", f"{day:%Y-%m-%d}")]
    )


class PeriodRefusedError(Exception):
    """The period cannot be exported; the text names the field and may be shown."""


class SftpTargetForm(forms.Form):
    """A merchant's SFTP target. The secret is never shown and must be entered again with every change."""

    host = forms.CharField(max_length=255, label=lazy("Host"))
    port = forms.IntegerField(min_value=1, max_value=65535, initial=22, label=lazy("Port"))
    username = forms.CharField(max_length=64, label=lazy("User name"))
    folder = forms.CharField(max_length=255, initial=".", label=lazy("Folder"))
    host_key = forms.CharField(
        max_length=1024,
        label=lazy("Host key"),
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=lazy("As ssh-keyscan shows it, without the host: ssh-ed25519 AAAA… Any other key is refused."),
    )
    kind = forms.ChoiceField(
        choices=[(SftpTarget.SecretKind.PASSWORD, lazy("Password")), (SftpTarget.SecretKind.KEY, lazy("Private key"))],
        label=lazy("Kind of secret"),
    )
    secret = forms.CharField(
        max_length=16_384,
        strip=False,
        label=lazy("Password or private key"),
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
        help_text=lazy("A private key of OpenSSH without a passphrase, or a password. It is kept sealed."),
    )

    def read_server(self) -> dict[str, Any]:
        """Server and login of the valid form, as sources and targets are set up with them."""
        value = self.cleaned_data
        names = ("host", "port", "username", "kind", "host_key", "folder")
        return {name: value[name] for name in names} | {"secret": Secret(value["secret"].replace("\r\n", "\n"))}


PERIOD_FIELDS: Final = ("from", "to", "currency", "merchant")
"""Fields of the form of a period's file; what was typed is there again when it is refused."""


@admin.register(ReconciliationFile)
class ReconciliationFileAdmin(ReadOnlyPage):
    """The list of reconciliation files, the download and the SFTP target of a merchant."""

    has_views = False
    channel_path = None

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "reporting_reconciliationfile_", self.admin_site.admin_view
        own = [
            path("<uuid:file>/download/", wrap(self.download_view), name=f"{name}download"),
            path("<uuid:file>/again/", wrap(self.again_view), name=f"{name}again"),
            path("period/", wrap(self.period_view), name=f"{name}period"),
            path("daily/", wrap(self.schedules_view), name=f"{name}daily"),
            path("target/<uuid:merchant>/", wrap(self.target_view), name=f"{name}target"),
        ]
        inherited: list[URLPattern] = super().get_urls()
        return own + inherited

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        narrowed = _narrow_by_delivery(request.GET)
        rows = self.get_queryset(request).select_related("merchant", "delivery").filter(narrowed.where)
        pages = keyset.read_keyset_page(rows, RECONCILIATION_FILE_ORDER, request.GET, narrowed.parameters)
        may_export = self.may(request, EXPORT_PERMISSION)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Reconciliation files"),
            "opts": self.opts,
            "rows": [{"row": row, "sent": _render_delivery(row)} for row in pages.rows],
            "pages": pages,
            "narrowed": narrowed.words,
            "may_export": may_export,
            "merchants": self._exportable_merchants(request)[:MAX_MERCHANT_FILTER_CHOICES] if may_export else (),
            "days": period_files.MAX_PERIOD_DAYS,
            "typed": {name: request.GET.get(f"period_{name}", "") for name in PERIOD_FIELDS},
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/outgoing.html", context)

    def _exportable_merchants(self, request: HttpRequest) -> QuerySet[Merchant]:
        return permissions.list_permitted_merchants(request.user, EXPORT_PERMISSION).order_by("name", "pk")

    def period_view(self, request: HttpRequest) -> HttpResponse:
        """Start the work that makes one file of a period's daily files."""
        if not self.may(request, EXPORT_PERMISSION):
            raise PermissionDenied
        back = reverse("admin:reporting_reconciliationfile_changelist")
        if request.method != "POST":
            return redirect(back)
        try:
            period = _read_period(request.POST, self._exportable_merchants(request))
        except PeriodRefusedError as refused:
            messages.error(request, str(refused))
            typed = {f"period_{name}": request.POST.get(name, "")[:200] for name in PERIOD_FIELDS}
            return redirect(f"{back}?{urlencode(typed)}#period")
        currency = f", {period['currency']}" if period["currency"] else ""
        title = f"{_('Reconciliation file')} {period['from']} – {period['to']}{currency}"
        return start_page_work(request, period_files.PERIOD_FILE, title, period, back=back)

    def schedules_view(self, request: HttpRequest) -> HttpResponse:
        """Which merchant's next daily file is written when, and where it is sent."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        text = request.GET.get("q", "").replace("\0", "").strip()[:100]
        merchants = permissions.list_permitted_merchants(request.user, self.right("view")).order_by("name", "pk")
        if text:
            merchants = merchants.filter(name__icontains=text)
        found = list(merchants[: MAX_SHOWN_SCHEDULES + 1])
        context = {
            **self.admin_site.each_context(request),
            "title": _("Written daily"),
            "opts": self.opts,
            "text": text,
            "schedules": self._render_schedules(request, found[:MAX_SHOWN_SCHEDULES]),
            "more": len(found) > MAX_SHOWN_SCHEDULES,
        }
        return TemplateResponse(request, "admin/books/schedules.html", context)

    def _render_schedules(self, request: HttpRequest, merchants: list[Merchant]) -> list[dict[str, Any]]:
        sees = permissions.find_access_scope(request.user, "reporting.view_sftptarget")
        changes = permissions.find_access_scope(request.user, "reporting.change_sftptarget")
        targets = {one.merchant_id: one for one in SftpTarget.objects.filter(merchant__in=merchants)}
        days = daily_files.find_next_days(merchants)
        return [
            {
                "merchant": one,
                "next_day": day,
                "next_at": daily_files.daily_file_due_at(one, day) if day is not None else None,
                "target": targets.get(one.pk) if sees.covers(RowOwner(merchant=one.pk)) else None,
                "may_change": changes.covers(RowOwner(merchant=one.pk)),
            }
            for one, day in ((one, days[one.pk]) for one in merchants)
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        row = self._file(request, object_id)
        delivery = Delivery.objects.filter(file=row).first()
        context = {
            **self.admin_site.each_context(request),
            "title": row.name,
            "opts": self.opts,
            "original": row,
            "row": row,
            "sent": _render_delivery(row),
            "tries": list(delivery.tries.order_by("-number")[:50]) if delivery else [],
            "may_export": self.may(request, EXPORT_PERMISSION, row),
            "may_change": self.may(request, "change", row),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/outgoing_file.html", context)

    def download_view(self, request: HttpRequest, file: Any) -> HttpResponse | FileResponse:
        row = self._file(request, file)
        if not self.may(request, EXPORT_PERMISSION, row):
            raise PermissionDenied
        if row.written_at is None:
            raise Http404
        try:
            source = daily_files.ensure_outbox_file(row)
        except daily_files.FileContentChangedError as fault:
            messages.error(request, str(fault))
            return redirect(reverse("admin:reporting_reconciliationfile_change", args=[row.pk]))
        self.record(request, "export fetched", row, after={"file": row.name})
        answer = FileResponse(source.open("rb"), as_attachment=True, filename=row.name, content_type="text/csv")
        answer["Cache-Control"] = "no-store"
        return answer

    def again_view(self, request: HttpRequest, file: Any) -> HttpResponse:
        row = self._file(request, file)
        if not self.may(request, "change", row):
            raise PermissionDenied
        if request.method == "POST" and row.written_at is not None:
            try:
                daily_files.rewrite_daily_file(row)
            except daily_files.FileContentChangedError as fault:
                messages.error(request, _("Not replaced: made again it has other bytes. %s") % fault)
            else:
                self.record(request, "made again", row, after={"sha256": row.sha256})
                messages.success(request, _("Made again, byte for byte the same."))
        return redirect(reverse("admin:reporting_reconciliationfile_change", args=[row.pk]))

    def target_view(self, request: HttpRequest, merchant: Any) -> HttpResponse:
        found = (
            permissions.list_permitted_merchants(request.user, "reporting.view_sftptarget").filter(pk=merchant).first()
        )
        if found is None:
            raise Http404
        target = SftpTarget.objects.filter(merchant=found).first()
        may_change = permissions.has_permission(
            request.user, "reporting.change_sftptarget", RowOwner(merchant=found.pk)
        )
        form = SftpTargetForm(initial=_target_initial_values(target))
        if request.method == "POST":
            if not may_change:
                raise PermissionDenied
            verb = request.POST.get("verb", "")
            if verb == "save":
                if (ask := session.require_reauthentication(request)) is not None:
                    return ask
                form = SftpTargetForm(request.POST)
                if form.is_valid() and _save_target(form, found, actor_from_request(request)):
                    messages.success(request, _("Saved. Try it now."))
                    return redirect(request.path)
            elif target is not None:
                self._try_or_stop(request, target, verb)
                return redirect(request.path)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Where files are sent"),
            "opts": self.opts,
            "merchant": found,
            "target": target,
            "form": form,
            "may_change": may_change,
        }
        return TemplateResponse(request, "admin/books/target.html", context, status=400 if form.errors else 200)

    def _try_or_stop(self, request: HttpRequest, target: SftpTarget, verb: str) -> None:
        if verb == "try":
            with tell_of_too_many_calls(request):
                self._try_target(request, target)
        elif verb in ("off", "on"):
            changed = SftpTarget.objects.filter(pk=target.pk, active=verb == "off").update(active=verb == "on")
            if changed:
                self.record(request, verb, target, after={"active": verb == "on"})

    def _try_target(self, request: HttpRequest, target: SftpTarget) -> None:
        try:
            deliveries.probe_sftp_target(target)
            messages.success(request, _("Logged in; the folder is there."))
        except SftpUnreachableError as fault:
            messages.error(request, _("It does not work: %s.") % fault)

    def _file(self, request: HttpRequest, ident: object) -> ReconciliationFile:
        row: ReconciliationFile = self.find_row(request, ident, "merchant", "delivery")
        return row


def _read_period(asked: Mapping[str, str], permitted: QuerySet[Merchant]) -> dict[str, Any]:
    """The period that was asked for, as parameters of its work. Raises PeriodRefusedError."""
    try:
        first, last = date.fromisoformat(asked.get("from", "")), date.fromisoformat(asked.get("to", ""))
    except ValueError:
        raise PeriodRefusedError(_("from, to: write days as 2026-11-30")) from None
    if not 0 <= (last - first).days < period_files.MAX_PERIOD_DAYS:
        raise PeriodRefusedError(_("from, to: at most %d days, the first one first") % period_files.MAX_PERIOD_DAYS)
    currency = asked.get("currency", "").strip().upper()
    if currency and currency not in CURRENCY_CODES:
        raise PeriodRefusedError(_("currency: must be a currency of ISO 4217, e.g. EUR, or empty"))
    named = asked.get("merchant", "").strip()
    if named:
        ident = identifiers.parse_id(named)
        permitted = permitted.filter(Q(name=named) | Q(pk=ident) if ident else Q(name=named))
    merchants = list(permitted.values_list("pk", flat=True))
    if not merchants:
        raise PeriodRefusedError(_("merchant: there is none of this name or entityId"))
    if not period_files.list_period_files(merchants, first, last).exists():
        raise PeriodRefusedError(_("from, to: there is no daily file of these days"))
    return {
        "merchants": sorted(one.hex for one in merchants),
        "from": first.isoformat(),
        "to": last.isoformat(),
        "currency": currency,
    }


def _render_delivery(row: ReconciliationFile) -> dict[str, str]:
    delivery = getattr(row, "delivery", None)
    if delivery is None:
        return {"tone": "plain", "text": "–"}
    tone, text = _STATES[delivery.state]
    return {"tone": tone, "text": str(text)}


def _target_initial_values(target: SftpTarget | None) -> dict[str, Any]:
    if target is None:
        return {}
    names = ("host", "port", "username", "folder", "host_key")
    return {name: getattr(target, name) for name in names} | {"kind": target.secret_kind}


def _save_target(form: SftpTargetForm, merchant: Merchant, by: audit_log.Actor) -> bool:
    """Save the target. An invalid key becomes an error of its form field."""
    try:
        deliveries.set_sftp_target(merchant, **form.read_server(), by=by)
    except ValueError as fault:
        form.add_error("host_key" if "host key" in str(fault) else "secret", str(fault))
        return False
    return True

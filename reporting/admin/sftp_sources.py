"""Back-office page of an institute's SFTP source: set up, test, fetch now, switch off, and the files seen there."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from gateway.access import audit_log
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import BackofficePage, actor_from_request
from gateway.backoffice.kit.waiting_calls import tell_of_too_many_calls
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.timers import wakeup
from reporting.admin.reconciliation_files import SftpTargetForm
from reporting.models import ClearingInstitute, RemoteFile, SftpSource
from reporting.settlement import sftp_fetch
from reporting.settlement.sftp_fetch import MAX_FETCH_INTERVAL_S, MIN_FETCH_INTERVAL_S
from reporting.sftp import SftpUnreachableError

REMOTE_FILE_ORDER: Final = keyset.KeysetOrder(columns=(("seen_at", datetime), ("id", UUID)), newest_first=True)
FETCH_TIMER_NAME: Final = "settlement sources"
VIEW_SOURCE_PERMISSION: Final = "reporting.view_sftpsource"
CHANGE_SOURCE_PERMISSION: Final = "reporting.change_sftpsource"
_STATES: Final[dict[str, tuple[str, Any]]] = {
    RemoteFile.State.SEEN: ("wait", lazy("Waits until it is whole")),
    RemoteFile.State.TAKEN: ("good", lazy("Taken in")),
    RemoteFile.State.REFUSED: ("bad", lazy("Refused")),
}


class SftpSourceForm(SftpTargetForm):
    """An institute's SFTP source: server, file name pattern, and what to do with files after fetching."""

    pattern = forms.CharField(
        max_length=64,
        initial="*",
        label=lazy("File names"),
        help_text=lazy("* stands for any characters: settlement_*.csv"),
    )
    after_download = forms.ChoiceField(
        choices=[
            (SftpSource.AfterDownload.LEAVE, lazy("leave it there")),
            (SftpSource.AfterDownload.MOVE, lazy("move it to another folder")),
        ],
        label=lazy("A file that was taken in"),
    )
    moved_to = forms.CharField(
        max_length=64,
        initial="done",
        required=False,
        label=lazy("The other folder"),
        help_text=lazy("Below the folder that is looked into."),
    )
    every_s = forms.IntegerField(
        min_value=MIN_FETCH_INTERVAL_S,
        max_value=MAX_FETCH_INTERVAL_S,
        initial=300,
        label=lazy("Seconds between two looks"),
    )


def list_institutes_with_sources() -> list[dict[str, Any]]:
    """Every active institute with the state of its SFTP source."""
    institutes = ClearingInstitute.objects.filter(active=True).select_related("sftp_source")
    return [
        {"institute": one, "source": (source := find_source(one)), "pill": source_pill(source)} for one in institutes
    ]


def find_source(institute: ClearingInstitute) -> SftpSource | None:
    """The institute's SFTP source, or None."""
    return getattr(institute, "sftp_source", None)


def source_pill(source: SftpSource | None) -> dict[str, str]:
    """The state of a source as a coloured pill: tone and text."""
    if source is None:
        return {"tone": "plain", "text": "–"}
    if not source.active:
        return {"tone": "plain", "text": _("off")}
    if source.why:
        return {"tone": "bad", "text": ngettext("%d look failed", "%d looks failed", source.failures) % source.failures}
    if source.polled_at is None:
        return {"tone": "wait", "text": _("not looked at yet")}
    return {"tone": "good", "text": _("works")}


def sftp_source_view(
    page: BackofficePage, request: HttpRequest, institute: ClearingInstitute, may_change: bool
) -> HttpResponse:
    """The page of one institute's source. The caller has checked the right to see it."""
    source = find_source(institute)
    form = SftpSourceForm(initial=_source_initial_values(source))
    if request.method == "POST":
        if not may_change:
            raise PermissionDenied
        verb = request.POST.get("verb", "")
        if verb == "save":
            if (ask := session.require_reauthentication(request)) is not None:
                return ask
            form = SftpSourceForm(request.POST)
            if form.is_valid() and _save_source(form, institute, actor_from_request(request)):
                messages.success(request, _("Saved. Try it now."))
                wakeup.notify_timer(FETCH_TIMER_NAME)
                return redirect(request.path)
        elif source is None:
            raise Http404
        else:
            _perform_action(page, request, source, verb)
            return redirect(request.path)
    files = (
        keyset.read_keyset_page(source.files.select_related("file"), REMOTE_FILE_ORDER, request.GET, at="#seen")
        if source
        else None
    )
    context = {
        **page.admin_site.each_context(request),
        "title": _("Files by SFTP"),
        "opts": page.opts,
        "source": source,
        "institute": institute,
        "form": form,
        "may_change": may_change,
        "pill": source_pill(source),
        "files": [
            (row, {"tone": _STATES[row.state][0], "text": str(_STATES[row.state][1])})
            for row in (files.rows if files else ())
        ],
        "pages": files,
    }
    return TemplateResponse(request, "admin/books/source.html", context, status=400 if form.errors else 200)


def _try_source(request: HttpRequest, source: SftpSource) -> None:
    try:
        found = sftp_fetch.probe_sftp_source(source)
    except SftpUnreachableError as fault:
        messages.error(request, _("It does not work: %s.") % fault)
    else:
        text = ngettext("Logged in; %d file lies there.", "Logged in; %d files lie there.", found)
        messages.success(request, text % found)


def _perform_action(page: BackofficePage, request: HttpRequest, source: SftpSource, verb: str) -> None:
    """Run the button's action (test, fetch now, on, off) and report its result as a message."""
    own = SftpSource.objects.filter(pk=source.pk)
    if verb == "try":
        with tell_of_too_many_calls(request):
            _try_source(request, source)
    elif verb == "look":
        own.update(due_at=clock.real_now())
        wakeup.notify_timer(FETCH_TIMER_NAME)
        messages.success(request, _("It is looked at within seconds."))
    elif verb in ("off", "on") and own.filter(active=verb == "off").update(
        active=verb == "on", due_at=clock.real_now()
    ):
        page.record(request, verb, source, after={"active": verb == "on"})


def _source_initial_values(source: SftpSource | None) -> dict[str, Any]:
    if source is None:
        return {}
    names = ("host", "port", "username", "folder", "host_key", "pattern", "after_download", "moved_to", "every_s")
    return {name: getattr(source, name) for name in names} | {"kind": source.secret_kind}


def _save_source(form: SftpSourceForm, institute: ClearingInstitute, by: audit_log.Actor) -> bool:
    """Save the source. Invalid values become errors of their form fields."""
    value = form.cleaned_data
    try:
        sftp_fetch.configure_source(
            institute,
            **form.read_server(),
            pattern=value["pattern"],
            after_download=value["after_download"],
            moved_to=value["moved_to"],
            every_s=value["every_s"],
            by=by,
        )
    except ValueError as fault:
        text = str(fault)
        field = "host_key" if "host key" in text else "moved_to" if "moved to" in text else "secret"
        form.add_error(field, text)
        return False
    return True

"""Edit conflicts: a form that was opened before somebody else changed the row does not overwrite it unasked.

A form carries a fingerprint of the row it was opened with. On submit it is compared with the row, which stays locked
until the form is saved. If they differ, the form is shown once more with who changed the row; submitting it again saves
it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from django import forms
from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest
from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import format_moment
from gateway.models import AuditEntry

_WORDS: Final = "_changed_meanwhile"
_OF_TRIALS: Final = "trial_"
"""Fields of this prefix do not belong to the row; some have today's date as their initial value."""


def fingerprint_form(page: ModelAdmin[Any], request: HttpRequest, object_id: str | None) -> str:
    """A hash of what the page's form would show of the row now; "" if there is no row. A POST also locks the row."""
    found = page.get_object(request, unquote(object_id)) if object_id is not None else None
    if found is None or not page.has_change_permission(request, found):
        return ""
    rows = page.model._default_manager
    row = rows.select_for_update(of=("self",)).get(pk=found.pk) if request.method == "POST" else found
    form = page.get_form(request, row, change=True)(instance=row)
    shown = {
        name: str(form.get_initial_for_field(field, name))
        for name, field in form.fields.items()
        if not name.startswith(_OF_TRIALS)
    }
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:32]


def refuse_stale_form(page: ModelAdmin[Any], request: HttpRequest, object_id: str | None) -> None:
    """Make the form of this request invalid, with a message that names who changed the row last."""
    entries = AuditEntry.objects.filter(subject=page.opts.model_name, subject_id=unquote(object_id or ""))
    last = entries.exclude(action="view").order_by("-id").first()
    who = f"{last.actor}, {format_moment(last.at)}" if last is not None else _("somebody")
    words = (
        _("Changed meanwhile (%s): nothing was saved. Look at the history; saving again replaces that change.") % who
    )
    setattr(request, _WORDS, words)


def refuse_taken_form(request: HttpRequest) -> None:
    """Make the form of this request invalid: another one with the same name was saved after this one was checked."""
    setattr(request, _WORDS, _("The same was saved at this moment by another request: nothing was saved here."))


def guard_form_class(kind: type[forms.ModelForm[Any]], request: HttpRequest) -> type[forms.ModelForm[Any]]:
    """``kind``; or, of a request whose form is refused, a subclass of it whose clean() always fails with the reason."""
    words = getattr(request, _WORDS, "")
    if not words:
        return kind

    def clean(self: forms.ModelForm[Any]) -> dict[str, Any] | None:
        cleaned = kind.clean(self)
        self.add_error(None, words)
        return cleaned

    return type(kind.__name__, (kind,), {"clean": clean})

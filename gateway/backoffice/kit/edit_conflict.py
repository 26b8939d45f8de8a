"""Forms that were opened before somebody else changed the row: they overwrite nothing unasked.

A form carries a mark of what it was opened with. It is compared with the row as it is now, locked until the form is
saved; where they differ the form is shown once more with who changed the row, and sending it again is a decision.
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

from gateway.models import AuditEntry

_WORDS: Final = "_changed_meanwhile"
_OF_TRIALS: Final = "trial_"
"""Fields of this prefix are no part of the row; some begin with today."""


def fingerprint_form(page: ModelAdmin[Any], request: HttpRequest, object_id: str | None) -> str:
    """What the page's form would show of the row now; "" where there is none. Sending locks the row."""
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
    """Have the form that is read next refused, with who changed the row last."""
    entries = AuditEntry.objects.filter(subject=page.opts.model_name, subject_id=unquote(object_id or ""))
    last = entries.exclude(action="view").order_by("-id").first()
    who = f"{last.actor}, {last.at:%H:%M:%S} UTC" if last is not None else _("somebody")
    words = (
        _("Changed meanwhile (%s): nothing was saved. Look at the history; saving again replaces that change.") % who
    )
    setattr(request, _WORDS, words)


def guard_form_class(kind: type[forms.ModelForm], request: HttpRequest) -> type[forms.ModelForm]:
    """``kind``, refused where :func:`refuse_stale_form` said so."""
    words = getattr(request, _WORDS, "")
    if not words:
        return kind

    def clean(self: Any) -> Any:
        found = super(refused, self).clean()
        self.add_error(None, words)
        return found

    refused = type(kind.__name__, (kind,), {"clean": clean})
    return refused

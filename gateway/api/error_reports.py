"""Django's report of an unforeseen fault, in which card data is masked: the page of DEBUG and the mail to ADMINS.

It prints local variables, headers and the query. What ours holds is typed (gateway.core.secret); this is for what is
not.
"""

from __future__ import annotations

from typing import Any, Final

from django.views.debug import ExceptionReporter

from gateway.catalogue.errors import hide_reported_value
from gateway.core.masking import mask_text

_SENT: Final = ("request_GET_items", "filtered_POST_items", "request_COOKIES_items")


class MaskedReporter(ExceptionReporter):
    """The setting DEFAULT_EXCEPTION_REPORTER."""

    def get_traceback_data(self) -> dict[str, Any]:
        """What was sent stands in a table there, name and value apart."""
        data: dict[str, Any] = super().get_traceback_data()
        for kind in _SENT:
            items = data.get(kind) or ()
            data[kind] = [
                (mask_text(str(name)), hide_reported_value(str(name), str(value), None)) for name, value in items
            ]
        return data

    def get_traceback_html(self) -> str:
        return mask_text(super().get_traceback_html())

    def get_traceback_text(self) -> str:
        return mask_text(super().get_traceback_text())

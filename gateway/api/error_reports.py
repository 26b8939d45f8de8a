"""Django's error report with card data masked: the DEBUG page and the mail to ADMINS.

The report prints local variables, headers and the query. Our own card data is typed as Secret (gateway.core.secret);
this masks what is not typed.
"""

from __future__ import annotations

from typing import Any, Final

from django.utils.safestring import SafeString
from django.views.debug import ExceptionReporter

from gateway.catalogue.errors import hide_reported_value
from gateway.core.masking import mask_text

_SENT: Final = ("request_GET_items", "filtered_POST_items", "request_COOKIES_items")


class MaskedReporter(ExceptionReporter):
    """The exception reporter of the setting DEFAULT_EXCEPTION_REPORTER."""

    def get_traceback_data(self) -> dict[str, Any]:
        """The report's data, with the tables of sent parameters and cookies masked by name and value."""
        data: dict[str, Any] = super().get_traceback_data()
        for kind in _SENT:
            items = data.get(kind) or ()
            data[kind] = [
                (mask_text(str(name)), hide_reported_value(str(name), str(value), None)) for name, value in items
            ]
        return data

    def get_traceback_html(self) -> SafeString:
        return SafeString(mask_text(super().get_traceback_html()))

    def get_traceback_text(self) -> SafeString:
        return SafeString(mask_text(super().get_traceback_text()))

"""Django's report of an unforeseen fault, in which card data is masked: the page of DEBUG and the mail to ADMINS.

It prints local variables, headers and the query. What ours holds is typed (gateway.secret); this is for what is not.
"""

from __future__ import annotations

from django.views.debug import ExceptionReporter

from gateway.masking import mask_text


class MaskedReporter(ExceptionReporter):
    """The setting DEFAULT_EXCEPTION_REPORTER."""

    def get_traceback_html(self) -> str:
        return mask_text(super().get_traceback_html())

    def get_traceback_text(self) -> str:
        return mask_text(super().get_traceback_text())

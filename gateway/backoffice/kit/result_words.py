"""Descriptions of result codes in the reader's language.

The English ones are the table's, which the API gives. Those of codes that the gateway itself gives are translated; of
any other code, which an acquirer may give, the description is English.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from gateway.core import result_codes


def describe_result(code: str) -> str:
    """What a result code says; a code that is not in the table, as it is. '' for none."""
    try:
        return _(result_codes.find_result_code(code).description)
    except KeyError:
        return code

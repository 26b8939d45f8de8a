"""Notes that the gateway writes on cases and alerts. They are kept in English, and told in the reader's language."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as noop

DECIDED_STAGE_NOTE: Final = noop("The money of the stage that was lost before.")
RETURN_NOTE: Final = noop("A return of the debtor's bank: the scheme has no answer to it.")
NOT_ANSWERED_NOTE: Final = noop("No evidence was submitted by %(due)s: the dispute is lost.")
CAME_BACK_NOTE: Final = noop("%(recovered)s of %(amount)s came back.")
SUBMITTED_NOTE: Final = noop("Evidence was submitted at the processor.")
LOST_NOTE: Final = noop("The processor says that the dispute is lost.")
INQUIRY_ANSWERED_NOTE: Final = noop("Documents were submitted at the processor.")
INQUIRY_CLOSED_NOTE: Final = noop("The processor has closed the inquiry.")
REFUNDED_BEFORE_NOTE: Final = noop("The payment was refunded before.")
REFUNDED_NOTE: Final = noop("The payment was refunded.")
REFUND_DECLINED_NOTE: Final = noop("The refund was declined: %(code)s")
NO_RIGHT_TO_REFUND_NOTE: Final = noop("Who asked for the refund may not refund any more. Nothing was sent.")
ABOVE_LIMIT_NOTE: Final = noop(
    "This is above your limit. Ask for it on the payment's page: the refund closes the alert."
)
NOTES: Final = (
    DECIDED_STAGE_NOTE, RETURN_NOTE, NOT_ANSWERED_NOTE, CAME_BACK_NOTE, SUBMITTED_NOTE, LOST_NOTE,
    INQUIRY_ANSWERED_NOTE, INQUIRY_CLOSED_NOTE, REFUNDED_BEFORE_NOTE, REFUNDED_NOTE, REFUND_DECLINED_NOTE,
    NO_RIGHT_TO_REFUND_NOTE, ABOVE_LIMIT_NOTE,
)  # fmt: skip


@cache
def _compile(note: str) -> re.Pattern[str]:
    """The texts that ``note`` becomes, with its values."""
    return re.compile(re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>.+)", re.escape(note)))


def translate_note(text: str) -> str:
    """A note of the gateway in the reader's language, with its values; what a person wrote stays as it is."""
    for note in NOTES:
        if (found := _compile(note).fullmatch(text)) is not None:
            return gettext(note) % found.groupdict()
    return text

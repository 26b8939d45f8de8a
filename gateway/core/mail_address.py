"""Mail addresses that shoppers, merchants and clerks give, and whether this gateway's mails reach anybody."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator

MAX_EMAIL_CHARS: Final = 254
UNDELIVERED_MAIL_BACKENDS: Final = ("console", "dummy", "filebased")
"""Django's mail backends that deliver to no recipient."""
_check_address: Final = EmailValidator(allowlist=())


def parse_mail_address(text: str) -> str:
    """A mail address without blanks around it; '' if it is none.

    Its host is a domain of at least two labels, never an IP address or ``localhost``: the mail server would open a
    connection within its own network for a stranger.
    """
    address = text.strip()
    try:
        _check_address(address)
    except ValidationError:
        return ""
    return address if address.isprintable() and not address.endswith("]") and len(address) <= MAX_EMAIL_CHARS else ""


def are_mails_delivered() -> bool:
    """Whether a mail server is set up."""
    return not any(name in settings.EMAIL_BACKEND for name in UNDELIVERED_MAIL_BACKENDS)

"""``{{ text|masked }}``: what a merchant wrote, with a card number in it masked before a person reads it.

Ids are stored and returned to the merchant as they were sent (docs/decisions/0052).
"""

from __future__ import annotations

from typing import Any

from django import template

from gateway.core.masking import mask_text

register = template.Library()


@register.filter
def masked(value: Any) -> str:
    """A value as text, masked by `mask_text`; nothing for None."""
    return "" if value is None else mask_text(str(value))

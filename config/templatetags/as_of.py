"""``{% as_of_note %}``: the time as of which a page was read, if it was read from a standby."""

from __future__ import annotations

from typing import Any

from django import template

from gateway.db import standby

register = template.Library()


@register.inclusion_tag("admin/as_of.html", takes_context=True)
def as_of_note(context: Any) -> dict[str, Any]:
    """The page's own ``as_of``, else that of the list that is being read; nothing for the primary."""
    return {"as_of": context.get("as_of") or standby.get_as_of()}

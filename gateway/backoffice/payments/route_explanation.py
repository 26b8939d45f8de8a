"""Explanations of routing, from a payment's stored route (gateway.connectors.routing_rules)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def find_first_account(route: Mapping[str, Any]) -> str:
    """The account that the payment was first sent to."""
    tried = route.get("tried") or ()
    return str(tried[0]["name"] if tried else route.get("name", ""))


def explain_route(route: Mapping[str, Any]) -> list[str]:
    """Rule, weighted draw, accounts that were skipped and why, and the ones that would have been next; one a line."""
    rule = route.get("rule")
    by = _("By the routing rule “%s”") % rule if rule else _("No routing rule fits: the accounts in their order")
    found = [by]
    if (draw := route.get("draw")) is not None:
        weights = ", ".join(f"{name} {weight}" for name, weight in route.get("weights", {}).items())
        values = {"draw": f"{draw:.4f}", "weights": weights}
        found.append(_("Drawn by the payment's id: %(draw)s of the weights %(weights)s") % values)
    found += [_("Passed over %(name)s: %(why)s") % {"name": name, "why": why} for name, why in route.get("over", ())]
    if later := [way[-1] for way in route.get("next", ())]:
        found.append(_("Next, if nobody can be reached there: %s") % ", ".join(later))
    if (most := route.get("maxCascades", 0)) > 0:
        words = ngettext(
            "After a decline %d further account may be asked", "After a decline %d further accounts may be asked", most
        )
        found.append(words % most)
    return found


def explain_failover(route: Mapping[str, Any]) -> list[str]:
    """Accounts that the payment failed over from or was declined at before, and why; one a line."""
    return [
        (
            _("Asked %(name)s first: declined (%(code)s, the acquirer's own code %(why)s)")
            if one.get("declined")
            else _("%(name)s certainly did not accept it (%(code)s, %(why)s)")
        )
        % {"name": one["name"], "code": one["code"], "why": one["why"]}
        for one in route.get("tried", ())
    ]

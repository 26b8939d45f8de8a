"""Explanations of routing, from a payment's stored route (gateway.connectors.routing_rules)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from gateway.connectors.account_choice import MIN_RATE_ATTEMPTS, compute_approval_interval

_UNDECIDED: Final = ("measured", "unpriced")
"""Reasons of a choice that left it to the weights."""


def find_first_account(route: Mapping[str, Any]) -> str:
    """The account that the payment was first sent to."""
    tried = route.get("tried") or ()
    return str(tried[0]["name"] if tried else route.get("name", ""))


def explain_route(route: Mapping[str, Any], *, with_prices: bool) -> list[str]:
    """Rule, weighted draw, accounts that were skipped and why, and the ones that would have been next; one a line.
    ``with_prices``: whether the reader may see what accounts cost."""
    rule = route.get("rule")
    by = _("By the routing rule “%s”") % rule if rule else _("No routing rule fits: the accounts in their order")
    found = [by]
    choice = route.get("choice")
    by_weight = choice is None or choice["why"] in _UNDECIDED
    if by_weight and (draw := route.get("draw")) is not None:
        weights = ", ".join(f"{name} {weight}" for name, weight in route.get("weights", {}).items())
        values = {"draw": f"{draw:.4f}", "weights": weights}
        found.append(_("Drawn by the payment's id: %(draw)s of the weights %(weights)s") % values)
    if choice is not None:
        found += _explain_choice(choice, with_prices=with_prices)
    found += [_("Passed over %(name)s: %(why)s") % {"name": name, "why": why} for name, why in route.get("over", ())]
    if later := [way[-1] for way in route.get("next", ())]:
        found.append(_("Next, if nobody can be reached there: %s") % ", ".join(later))
    if (most := route.get("maxCascades", 0)) > 0:
        words = ngettext(
            "After a decline %d further account may be asked", "After a decline %d further accounts may be asked", most
        )
        found.append(words % most)
    return found


def _explain_choice(choice: Mapping[str, Any], *, with_prices: bool) -> list[str]:
    """Why this account by costs and rates, then the figures of each."""
    words = {
        "best": _("Chosen for the best approval rate (%(segment)s)"),
        "cheapest": _("Chosen as the cheapest whose approval rate is at most %(points)s points below the best one's, "
                      "with 95 %% certainty (%(segment)s)"),
        "explored": _("Chosen to keep its rate known, as %(share)s of 100 payments are (%(segment)s)"),
        "measured": _("Costs and rates do not decide yet: an account has fewer than %(least)s judged payments"),
        "unpriced": _("Costs do not decide: an account has no price for this payment"),
    }  # fmt: skip
    values = {
        "segment": choice["segment"] or _("all payments"),
        "points": choice["maxRateLoss"],
        "share": choice["exploredPercent"],
        "least": MIN_RATE_ATTEMPTS,
    }
    found = [words[choice["why"]] % values]
    for name, (cost, approved, asked) in choice["accounts"].items():
        rate = compute_approval_interval((approved, asked))
        shown = f"{approved} / {asked}"
        if rate is not None:
            shown = f"{shown}, {rate.rate:.1f} % ({rate.low:.1f} – {rate.high:.1f})"
        if not with_prices:
            found.append(_("%(name)s: approved %(rate)s") % {"name": name, "rate": shown})
            continue
        price = _("no price") if cost is None else f"{cost} {choice['currency']}"
        found.append(_("%(name)s: costs %(price)s, approved %(rate)s") % {"name": name, "price": price, "rate": shown})
    return found


def explain_failover(route: Mapping[str, Any]) -> list[str]:
    """Accounts that the payment failed over from or was declined at before, and why; one a line."""
    return [
        _get_attempt_text(one) % {"name": one["name"], "code": one["code"], "why": one["why"]}
        for one in route.get("tried", ())
    ]


def _get_attempt_text(attempt: Mapping[str, Any]) -> str:
    """The sentence about one attempt, with places for name, code and why."""
    if attempt.get("declined"):
        return _("Asked %(name)s first: declined (%(code)s, the acquirer's own code %(why)s)")
    if attempt.get("voided"):
        return _("No answer of %(name)s: taken back there, so the decline before it is the answer")
    return _("%(name)s certainly did not accept it (%(code)s, %(why)s)")

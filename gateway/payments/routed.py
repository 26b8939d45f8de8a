"""Why a payment went to its acquirer, in words: what the payment's route keeps (gateway.connectors.rules)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sent_to(route: Mapping[str, Any]) -> str:
    """The account it was sent to first."""
    tried = route.get("tried") or ()
    return str(tried[0]["name"] if tried else route.get("name", ""))


def reasons(route: Mapping[str, Any]) -> list[str]:
    """Rule, draw, who was passed over and why, and who would have been next; one a line."""
    rule = route.get("rule")
    found = [f"By the routing rule “{rule}”" if rule else "No routing rule fits: the accounts in their order"]
    if (draw := route.get("draw")) is not None:
        weights = ", ".join(f"{name} {weight}" for name, weight in route.get("weights", {}).items())
        found.append(f"Drawn by the payment's id: {draw:.4f} of the weights {weights}")
    found += [f"Passed over {name}: {why}" for name, why in route.get("over", ())]
    if later := [way[-1] for way in route.get("next", ())]:
        found.append(f"Next, if nobody can be reached there: {', '.join(later)}")
    return found


def tried(route: Mapping[str, Any]) -> list[str]:
    """Where it was before, and why it did not stay; one a line."""
    return [
        f"{one['name']} certainly did not accept it ({one['code']}, {one['why']})" for one in route.get("tried", ())
    ]

"""What the Warning header of an answer tells a merchant's developer: what is deprecated, what is recommended.

A remark is never an error. Source: Part B, Asynchronous payment parameters, Recurring migration, Custom parameters and
scheme data.
"""

from __future__ import annotations

from typing import Final

from gateway.catalogue.conditions.authentication import CARTEBANCAIRE, of_the_regional_scheme
from gateway.catalogue.conditions.situation import authentication_starts
from gateway.catalogue.parse import Parameters

DEPRECATED: Final = {
    "notificationUrl": "notificationUrl is deprecated: use webhooks",
    "recurringMigration.paymentType": "recurringMigration is deprecated",
}
"""A parameter that is always there when something deprecated is used → what is said of it."""
RECOMMENDED: Final = ("threeDSecure.schemeData[CB-ITEMSNB]", "threeDSecure.schemeData[CB-SCORE_MERCHANT]")
"""What the regional scheme wants to know of an authentication, and goes without."""

MOST_MASKED: Final = 10
"""Parameters that the header names whose card data was masked."""


def remarks(parameters: Parameters, facts: frozenset[str]) -> str:
    """The header's value; '' where there is nothing to say. ``facts``: of the channel, as conditions ask for them."""
    said = [text for name, text in DEPRECATED.items() if name in parameters.values]
    if "threeds" in facts:
        sent = parameters.sent(facts)
        if of_the_regional_scheme(sent) and authentication_starts(sent):
            lacking = sent.missing(*RECOMMENDED)
            said += [f"{name} is recommended with paymentBrand {CARTEBANCAIRE}" for name in lacking]
    said += [f"{_printable(name)} held card data, which is masked" for name in parameters.masked[:MOST_MASKED]]
    if (more := len(parameters.masked) - MOST_MASKED) > 0:
        said.append(f"{more} more parameters held card data, which is masked")
    return ", ".join(f'299 Tollhouse "{text}"' for text in said)


def _printable(name: str) -> str:
    """A name as a header may carry it."""
    return "".join(char if " " < char < "~" and char not in '"\\' else "?" for char in name)

"""What the Warning header of an answer tells a merchant's developer: what is deprecated, what is recommended.

A remark is never an error. Source: Part B, Asynchronous payment parameters, Recurring migration, Custom parameters and
scheme data.
"""

from __future__ import annotations

from typing import Final

from gateway.catalogue.conditions.authentication import CARTEBANCAIRE, is_regional_scheme_payment
from gateway.catalogue.conditions.request_facts import will_authenticate
from gateway.catalogue.parse import Parameters

DEPRECATION_WARNINGS: Final = {
    "notificationUrl": "notificationUrl is deprecated: use webhooks",
    "recurringMigration.paymentType": "recurringMigration is deprecated",
}
"""A parameter that is always there when something deprecated is used → what is said of it."""
RECOMMENDED_PARAMETERS: Final = ("threeDSecure.schemeData[CB-ITEMSNB]", "threeDSecure.schemeData[CB-SCORE_MERCHANT]")
"""What the regional scheme wants to know of an authentication, and goes without."""

MAX_MASKED_NAMES: Final = 10
"""Parameters that the header names whose card data was masked."""


def build_warning_header(parameters: Parameters, facts: frozenset[str]) -> str:
    """The header's value; '' where there is nothing to say. ``facts``: of the channel, as conditions ask for them."""
    said = [text for name, text in DEPRECATION_WARNINGS.items() if name in parameters.values]
    if "threeds" in facts:
        sent = parameters.sent(facts)
        if is_regional_scheme_payment(sent) and will_authenticate(sent):
            lacking = sent.missing(*RECOMMENDED_PARAMETERS)
            said += [f"{name} is recommended with paymentBrand {CARTEBANCAIRE}" for name in lacking]
    said += [f"{_printable(name)} held card data, which is masked" for name in parameters.masked[:MAX_MASKED_NAMES]]
    if (more := len(parameters.masked) - MAX_MASKED_NAMES) > 0:
        said.append(f"{more} more parameters held card data, which is masked")
    return ", ".join(f'299 Tollhouse "{text}"' for text in said)


def _printable(name: str) -> str:
    """A name as a header may carry it."""
    return "".join(char if " " < char < "~" and char not in '"\\' else "?" for char in name)

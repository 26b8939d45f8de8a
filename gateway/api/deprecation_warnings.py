"""The Warning header of responses: deprecated, recommended and masked parameters of the request.

A warning is never an error. Source: Part B, Asynchronous payment parameters, Recurring migration, Custom parameters and
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
"""A parameter that is always sent with a deprecated feature → the warning."""
RECOMMENDED_PARAMETERS: Final = ("threeDSecure.schemeData[CB-ITEMSNB]", "threeDSecure.schemeData[CB-SCORE_MERCHANT]")
"""Parameters that the regional scheme recommends for an authentication but does not require."""

MAX_MASKED_NAMES: Final = 10
"""Masked parameters that the header names at most."""


def build_warning_header(parameters: Parameters, facts: frozenset[str]) -> str:
    """The header's value (RFC 7234, warn-code 299), '' without warnings. ``facts``: of build_condition_facts."""
    warnings = [text for name, text in DEPRECATION_WARNINGS.items() if name in parameters.values]
    if "threeds" in facts:
        sent = parameters.sent(facts)
        if is_regional_scheme_payment(sent) and will_authenticate(sent):
            lacking = sent.missing(*RECOMMENDED_PARAMETERS)
            warnings += [f"{name} is recommended with paymentBrand {CARTEBANCAIRE}" for name in lacking]
    warnings += [
        f"{_replace_unprintable(name)} held card data, which is masked" for name in parameters.masked[:MAX_MASKED_NAMES]
    ]
    if (more := len(parameters.masked) - MAX_MASKED_NAMES) > 0:
        warnings.append(f"{more} more parameters held card data, which is masked")
    return ", ".join(f'299 Tollhouse "{text}"' for text in warnings)


def _replace_unprintable(name: str) -> str:
    """The name in the characters that a quoted header value may contain."""
    return "".join(char if " " < char < "~" and char not in '"\\' else "?" for char in name)

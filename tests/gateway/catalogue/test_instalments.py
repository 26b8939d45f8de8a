"""When numberOfInstallments is demanded: each condition of the rule alone. Source: Part B, Card on file."""

from __future__ import annotations

import pytest

from gateway.catalogue import conditions
from tests.gateway.catalogue.test_rules import breaches

INSTALLMENT = {"standingInstruction.type": "INSTALLMENT"}
NUMBER = "standingInstruction.numberOfInstallments"


@pytest.mark.parametrize(
    ("more", "facts", "wanted"),
    [
        ({}, ["threeds"], True),
        ({}, ["cvv"], False),
        ({NUMBER: "12"}, ["threeds"], False),
        ({"standingInstruction.type": "RECURRING"}, ["threeds"], False),
        ({"threeDSecure.disable": "true"}, ["threeds"], False),
        ({"threeDSecure.disable": "false"}, ["threeds"], True),
        ({"standingInstruction.source": "MIT"}, ["threeds"], False),
        ({"standingInstruction.source": "CIT"}, ["threeds"], True),
        ({"standingInstruction.mode": "REPEATED"}, ["threeds"], False),
        ({"standingInstruction.mode": "REPEATED", "standingInstruction.source": "CIT"}, ["threeds"], True),
        ({"standingInstruction.mode": "INITIAL"}, ["threeds"], True),
        ({"standingInstruction.industryPractice": "NO_SHOW"}, ["threeds"], False),
    ],
)
def test_the_number_is_wanted_where_the_channel_will_authenticate_the_shopper(
    more: dict[str, str], facts: list[str], wanted: bool
) -> None:
    (rule,) = conditions.INSTALMENTS
    assert breaches(rule, INSTALLMENT | more, *facts) == ([NUMBER] if wanted else [])

"""Well-formed account data that is refused nevertheless (D10, D40).

Source: Part A, Bank account.
"""

from __future__ import annotations

from collections.abc import Iterator

from schwifty import IBAN

from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule


def _no_iban(sent: RuleInput) -> Iterator[RuleBreach]:
    iban = sent.secret("bankAccount.iban")
    if iban is not None and not IBAN(iban.reveal(), allow_invalid=True).is_valid:
        yield "bankAccount.iban", "is no IBAN: its check digits, its length or its country are wrong"


IBAN_CHECK: tuple[ParameterRule, ...] = (
    build_rule(
        "bankAccount.iban has the right check digits, and the length of its country", ("bankAccount.iban",), _no_iban,
        code="100.100.101", when=("bankAccount.iban",),
        keeps={"bankAccount.iban": "DE23100000001234567890"}, breaks={"bankAccount.iban": "DE24100000001234567890"},
    ),
)  # fmt: skip
ACCOUNT_CHECKS: tuple[ParameterRule, ...] = (*IBAN_CHECK,)

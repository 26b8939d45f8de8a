"""Card on file: which mode, initiator and industry practice go together.

Source: Part B, Card on file (standing instruction).
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.conditions.request_facts import MERCHANT_INITIATED_PRACTICES
from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule, required_when

_MODE, _SOURCE = "standingInstruction.mode", "standingInstruction.source"
_PRACTICE = "standingInstruction.industryPractice"


def _merchant_begins(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get(_MODE) == "INITIAL" and sent.get(_SOURCE) == "MIT":
        yield _SOURCE, "must be CIT with mode INITIAL: the cardholder begins an agreement"


def _practice_of_the_merchant(sent: RuleInput) -> Iterator[RuleBreach]:
    practice = sent.get(_PRACTICE)
    if practice not in MERCHANT_INITIATED_PRACTICES:
        return
    if sent.get(_MODE) == "INITIAL":
        yield _MODE, f"must be REPEATED with industryPractice {practice}, which follows an INITIAL payment"
    if sent.get(_SOURCE) == "CIT":
        yield _SOURCE, f"must be MIT with industryPractice {practice}: the merchant initiates it"


CARD_ON_FILE: tuple[ParameterRule, ...] = (
    build_rule(
        "standingInstruction.mode INITIAL is initiated by the cardholder (CIT)", (_MODE, _SOURCE), _merchant_begins,
        when=(_MODE,),
        keeps={_MODE: "INITIAL", _SOURCE: "CIT"}, breaks={_MODE: "INITIAL", _SOURCE: "MIT"},
    ),
    build_rule(
        "industryPractice RESUBMISSION, DELAYED_CHARGES and NO_SHOW are REPEATED and initiated by the merchant (MIT)",
        (_PRACTICE, _MODE, _SOURCE), _practice_of_the_merchant,
        when=(_PRACTICE,),
        keeps={_PRACTICE: "NO_SHOW", _SOURCE: "MIT"}, breaks={_PRACTICE: "NO_SHOW", _SOURCE: "CIT"},
    ),
    required_when(
        "with industryPractice INCREMENTAL_AUTH or REAUTHORIZATION, which follow an authorization",
        lambda sent: sent.get(_PRACTICE) in ("INCREMENTAL_AUTH", "REAUTHORIZATION"), "referenceUuid",
        when=(_PRACTICE,),
        keeps={_PRACTICE: "REAUTHORIZATION", "referenceUuid": "8a829449515d198b01517d5601df5584"},
        breaks={_PRACTICE: "REAUTHORIZATION"},
    ),
)  # fmt: skip

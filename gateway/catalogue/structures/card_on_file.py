"""Card on file: who initiates a payment, under which agreement.

Source: Part B, Card on file (standing instruction). All rows are conditional except agreementId.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.formats import AN, DATE, N, value_list, with_words
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import NEVER, C, O, structure

_NEVER_NONE = ("numberOfInstallments", "frequency")


def _not_zero(sent: RuleInput) -> Iterator[RuleBreach]:
    for name in _NEVER_NONE:
        if (value := sent.get(name)) is not None and not value.strip("0"):
            yield name, "must be 1 or more; leave it out for no limit"


STANDING_INSTRUCTION = structure(
    "Card on file (standing instruction)", "Part B", "standingInstruction",
    ("type", value_list("UNSCHEDULED", "INSTALLMENT", "RECURRING"), C,
     "Category of the transaction."),
    ("recurringType", value_list("STANDING_ORDER", "SUBSCRIPTION"), C,
     "Kind of recurring agreement."),
    ("mode", value_list("INITIAL", "REPEATED"), C),
    ("source", value_list("CIT", "MIT"), C, "Who initiates: the customer or the merchant."),
    ("initialTransactionId", AN(1, 255, words="AN or N, no fixed format").eg("380912345678901"), C,
     "The scheme's reference, returned with the customer-initiated transaction."),
    ("industryPractice", value_list(
        "INCREMENTAL_AUTH", "RESUBMISSION", "REAUTHORIZATION", "DELAYED_CHARGES", "NO_SHOW",
    ), C, "A follow-up that business practice allows."),
    ("expiry", with_words("yyyy-mm-dd", DATE).eg("2028-05-14"), C, "No authorizations after this date."),
    ("frequency", N(1, 4, words="N4").eg("30", "monthly"), C, "Minimum days between authorizations."),
    ("numberOfInstallments", N(1, 3, words="N3").eg("12", "twelve"), C,
     "Most authorizations; mandatory for 3D Secure with type INSTALLMENT."),
    ("agreementId", AN(1, 35, words="AN35, optional").eg("AGREEMENT1"), O,
     "One network's link between transactions of the same agreement."),
    rules=[
        build_rule(
            "numberOfInstallments and frequency are 1 or more", _NEVER_NONE, _not_zero,
            keeps={"numberOfInstallments": "1", "frequency": "0028"}, breaks={"numberOfInstallments": "000"},
        ),
    ],
    demand=NEVER,
)  # fmt: skip

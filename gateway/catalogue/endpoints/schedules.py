"""Subscription jobs: create, read, change, end. Source: Part B, Scheduling; ruling D8."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue import conditions as c
from gateway.catalogue import structures as s
from gateway.catalogue.endpoints.endpoint import NO_TEST_MODE_IN_LIVE, REQUIRED_ENTITY, Endpoint
from gateway.catalogue.formats import literal
from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import ALWAYS, NEVER, C, O, R, structure

SCHEDULABLE_TYPES = ("DB", "PA")
"""Payment types that a run may make."""
_ID = literal(
    "AN 32", "[0-9a-f]{32}", expects="must be the id of a registration, 32 hexadecimal digits",
    example="8a829449515d198b01517d5601df5584", bad="8a82-9449",
)  # fmt: skip
_REGISTRATION = structure("Registration", "Part B", "", ("registrationId", _ID, R, "The stored means that is charged."))
_BASIC = s.BASIC_PAYMENT.without(
    "overridePaymentType[brand]", "referenceUuid", "sequence", "numberOfCaptures", "integrity"
)


def _type_is(*records: str) -> ParameterRule:
    """The types of runs, and ``records``: those of the endpoint's own records, which some clients send."""
    allowed = (*SCHEDULABLE_TYPES, *records)
    words = " or ".join(allowed)

    def check(sent: RuleInput) -> Iterator[RuleBreach]:
        if sent.get("paymentType") not in (None, *allowed):
            yield "paymentType", f"must be {words} here"

    return build_rule(
        f"paymentType is {words}",
        ("paymentType",),
        check,
        keeps={"paymentType": SCHEDULABLE_TYPES[0]},
        breaks={"paymentType": "CD"},
    )


def _not_zero(sent: RuleInput) -> Iterator[RuleBreach]:
    if (amount := sent.get("amount")) is not None and not amount.strip("0."):
        yield "amount", "must be above 0: each run takes it"


AMOUNT_ABOVE_ZERO = build_rule(
    "amount is above 0", ("amount",), _not_zero, keeps={"amount": "9.90"}, breaks={"amount": "0.00"}
)


def _currency_with_amount(sent: RuleInput) -> Iterator[RuleBreach]:
    if "currency" in sent and "amount" not in sent:
        yield "amount", "is required with currency"


CURRENCY_WITH_AMOUNT = build_rule(
    "amount is sent with currency", ("amount", "currency"), _currency_with_amount,
    keeps={"amount": "9.90", "currency": "EUR"}, breaks={"currency": "EUR"},
)  # fmt: skip
SCHEDULE_STRUCTURES = (
    s.CUSTOMER.without("identificationDocId"),
    s.BILLING,
    s.SHIPPING,
    s.MERCHANT,
    s.CART_ITEMS,
    s.CUSTOM_PARAMETERS,
    s.RISK,
    s.STANDING_INSTRUCTION,
)
"""Parameters that each run sends as they were sent here: none that is masked when stored."""
_RULES = (NO_TEST_MODE_IN_LIVE, AMOUNT_ABOVE_ZERO, *c.CURRENCY_FITS)

CREATE_SCHEDULE_ENDPOINT = Endpoint(
    name="schedule",
    method="POST",
    path="/v1/schedules",
    title="Start a subscription job",
    about="Charge a registration by a plan: each run makes one payment (DB or PA), and tells you by webhook.",
    operation="payment",
    scope="payments",
    structures=(
        REQUIRED_ENTITY,
        _REGISTRATION.demanding(ALWAYS),
        _BASIC.demanding(ALWAYS),
        s.TEST_MODE,
        s.JOB,
        *SCHEDULE_STRUCTURES,
    ),
    rules=(*_RULES, _type_is(), *c.CARD_ON_FILE[:2], *c.CUSTOMER_NAMES),
)
READ_SCHEDULE_ENDPOINT = Endpoint(
    name="read-schedule",
    method="GET",
    path="/v1/schedules/{id}",
    title="Read a subscription job",
    about="The job as it stands: whether its plan is active, its next runs, and how the last ones went.",
    operation="status",
    scope="read",
    structures=(REQUIRED_ENTITY,),
)
RESCHEDULE_ENDPOINT = Endpoint(
    name="reschedule",
    method="POST",
    path="/v1/schedules/{id}/reschedule",
    title="Change a subscription job",
    about="Another amount, another plan, another registration; takes up again what was suspended or given notice. "
    "If one of the job's times is sent, all times are as sent here; what is not sent stays.",
    operation="payment",
    scope="payments",
    structures=(
        REQUIRED_ENTITY,
        _REGISTRATION.needing(registrationId=O).demanding(NEVER),
        structure(
            "Basic payment", "Part A", "",
            *(_BASIC.needing(amount=C, currency=C, paymentType=C).names[name] for name in (
                "amount", "currency", "paymentType", "descriptor", "merchantTransactionId", "merchantInvoiceId",
            )), demand=NEVER,
        ),
        s.TEST_MODE,
        s.JOB,
        s.CUSTOM_PARAMETERS,
    ),
    rules=(*_RULES, CURRENCY_WITH_AMOUNT, _type_is("RS")),
)  # fmt: skip
_END = structure("Basic payment", "Part A", "", _BASIC.needing(paymentType=O).names["paymentType"], demand=NEVER)


def _type_is_ds(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("paymentType") not in (None, "DS"):
        yield "paymentType", "must be DS here, or be left out"


CANCEL_SCHEDULE_ENDPOINT = Endpoint(
    name="deschedule",
    method="POST",
    path="/v1/schedules/{id}/deschedule",
    title="Give a subscription job notice",
    about="The job ends after its notice period, or at once without one; plan.endsAt tells when.",
    operation="payment",
    scope="payments",
    structures=(REQUIRED_ENTITY, _END, s.TEST_MODE),
    rules=(
        NO_TEST_MODE_IN_LIVE,
        build_rule(
            "paymentType is DS, or left out", ("paymentType",), _type_is_ds,
            keeps={"paymentType": "DS"}, breaks={"paymentType": "DB"},
        ),
    ),
)  # fmt: skip
DELETE_SCHEDULE_ENDPOINT = Endpoint(
    name="delete-schedule",
    method="DELETE",
    path="/v1/schedules/{id}",
    title="Give notice, by DELETE",
    about="The same as deschedule.",
    operation="payment",
    scope="payments",
    structures=(REQUIRED_ENTITY,),
)

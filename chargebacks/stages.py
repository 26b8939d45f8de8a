"""The stages of a dispute by scheme, and the schemes' reason codes, as data: deadlines, fees, what a code means here.

A stage is opened against the merchant: the first chargeback, the issuer's pre-arbitration, the arbitration. The
merchant's answers (representment, which Mastercard calls second presentment; the response to a pre-arbitration) are the
state SUBMITTED of that stage.

Sources: Visa, "Dispute Management Guidelines for Visa Merchants" (dispute conditions 10 to 13, allocation and
collaboration flow) and Visa Core Rules, section 11; Mastercard, "Chargeback Guide Merchant Edition", chapters 2 and 5
(second presentment, pre-arbitration and arbitration case filing); American Express, "Merchant Regulations", chapter 11
(fraud programmes and inquiries quoted by https://www.chargebackexpertz.com/american-express-reason-codes/ and
https://chosenpayments.com/american-express-chargeback-codes/); Discover, "Dispute Rules Manual", which was not at hand:
pages that quote it contradict each other, and the shorter time stands. Schemes change days and fees twice a year: the
acquirer's own date in the file or letter decides, and these stand where it names none.
Source: docs/decisions/0065.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from django.conf import settings

from chargebacks.models import Chargeback
from gateway.core.brands import DIRECT_DEBIT_METHOD

DisputeStage = Chargeback.Stage
VISA, MASTERCARD, AMEX, DISCOVER, SEPA_SCHEME = "visa", "mastercard", "amex", "discover", "sepa"
ALLOCATION, COLLABORATION = "allocation", "collaboration"
DEFAULT_ANSWER_DAYS: Final = 14
"""Days to answer at schemes without a rule of their own; shorter than what any of them gives."""
SCHEME_BY_BRAND: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("VISA", "VISADEBIT", "VISAELECTRON", "VPAY"), VISA),
        **dict.fromkeys(("MASTER", "MASTERDEBIT", "MAESTRO"), MASTERCARD),
        "AMEX": AMEX,
        **dict.fromkeys(("DISCOVER", "DINERS"), DISCOVER),
        "DIRECTDEBIT_SEPA": SEPA_SCHEME,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRule:
    """One stage of one scheme. ``name``: what the scheme calls it. ``scheme_days``: calendar days that the acquirer has
    to answer; ``answer_days``: what is left for the merchant. ``answer``: what the merchant's answer is filed as.
    ``fee``: what the scheme charges the side that loses the stage, if anything; acquirers add their own."""

    name: str
    answer: str
    scheme_days: int
    answer_days: int
    fee: Decimal = Decimal(0)
    fee_currency: str = ""
    source: str = ""


_VISA_RULES = "Visa Core Rules, 11.4 to 11.9"
VISA_DAYS: Final = 18
"""Days to answer a Visa dispute. Public pages contradict each other: 30 days until July 2025, 18 since then, and 9 for
merchants in the United States and Canada. The shorter one stands where the merchant's country is not known: a late
answer is a lost dispute. Where an acquirer gives fewer, its own date in the file decides, or
GATEWAY_CHARGEBACK_ANSWER_DAYS. https://proofreturn.com/blog/visa-chargeback-response-deadlines-2025,
https://representments.com/chargeback-index/chargeback-deadline-7-day-clock"""
VISA_ANSWER_DAYS: Final = 12
VISA_SHORT_COUNTRIES: Final = frozenset({"US", "CA"})
VISA_SHORT_DAYS: Final = 9
VISA_SHORT_ANSWER_DAYS: Final = 6
_MASTERCARD_RULES = "Mastercard Chargeback Guide, chapters 2 and 5"
_SEPA_RULES = "EPC 016-06, SEPA Direct Debit Core Rulebook, 4.3.4 and 4.6.4"
MANDATE_COPY_DAYS: Final = 7
"""Calendar days to send the copy of a mandate. The rulebook's own times were not at hand, and a late answer is a lost
claim; the bank's day in its letter decides."""
CONTESTABLE_RETURNS: Final = frozenset({"000.100.204", "000.100.230"})
"""Codes of a direct debit's chargeback that the creditor can answer: the debtor says that there is no mandate (MD01,
until 13 months after), and the creditor sends its copy. All others are final: the bank's own return (no money, account
closed), and the debtor's refund within 8 weeks (MD06), which the rulebook gives without a question. Source: EPC 016-06,
4.3.4; https://help.bankline.ulsterbank.co.uk/help/support/other_services/sepaddo/eur_dd_refund"""
_FIRST, _PRE, _LAST = DisputeStage.FIRST, DisputeStage.PRE_ARBITRATION, DisputeStage.ARBITRATION
_VISA_LAST = StageRule(
    name="arbitration",
    answer="arbitration case",
    scheme_days=10,
    answer_days=5,
    fee=Decimal(500),
    fee_currency="USD",
    source=_VISA_RULES,
)
STAGE_RULES: Final[Mapping[tuple[str, str, str], StageRule]] = MappingProxyType(
    {
        # Allocation (fraud, authorization): liability is allotted by Visa, and the merchant's answer to the dispute is
        # filed by the acquirer as a pre-arbitration; the issuer answers that, so no second one comes to the merchant.
        # https://www.servicenow.com/docs/r/financial-services-operations/dispute-management/allocation-workflow.html
        (VISA, ALLOCATION, _FIRST): StageRule(
            name="dispute",
            answer="pre-arbitration",
            scheme_days=VISA_DAYS,
            answer_days=VISA_ANSWER_DAYS,
            source=_VISA_RULES,
        ),
        # The issuer has declined that pre-arbitration: the merchant's side files the arbitration, or ends it.
        (VISA, ALLOCATION, _LAST): replace(_VISA_LAST, name="pre-arbitration declined by the issuer"),
        (VISA, COLLABORATION, _FIRST): StageRule(
            name="dispute",
            answer="dispute response",
            scheme_days=VISA_DAYS,
            answer_days=VISA_ANSWER_DAYS,
            source=_VISA_RULES,
        ),
        (VISA, COLLABORATION, _PRE): StageRule(
            name="pre-arbitration",
            answer="pre-arbitration response",
            scheme_days=VISA_DAYS,
            answer_days=VISA_ANSWER_DAYS,
            source=_VISA_RULES,
        ),
        (VISA, COLLABORATION, _LAST): _VISA_LAST,
        (MASTERCARD, "", _FIRST): StageRule(
            name="first chargeback",
            answer="second presentment",
            scheme_days=45,
            answer_days=30,
            source=_MASTERCARD_RULES,
        ),
        (MASTERCARD, "", _PRE): StageRule(
            name="pre-arbitration case",
            answer="rebuttal of the pre-arbitration",
            scheme_days=30,
            answer_days=20,
            source=_MASTERCARD_RULES,
        ),
        (MASTERCARD, "", _LAST): StageRule(
            name="arbitration case",
            answer="rebuttal of the arbitration case",
            scheme_days=10,
            answer_days=5,
            fee=Decimal(400),
            fee_currency="USD",
            source=_MASTERCARD_RULES,
        ),
        (AMEX, "", _FIRST): StageRule(
            name="chargeback",
            answer="answer to the chargeback",
            scheme_days=20,
            answer_days=14,
            source="American Express Merchant Regulations, 11.5",
        ),
        # 20 days and 30 are quoted; arbitration has no number that two pages agree on, so it has the default's.
        (DISCOVER, "", _FIRST): StageRule(
            name="chargeback",
            answer="representment",
            scheme_days=20,
            answer_days=14,
            source="https://justt.ai/blog/discover-merchant-chargeback",
        ),
        (DISCOVER, "", _PRE): StageRule(
            name="pre-arbitration",
            answer="answer to the pre-arbitration",
            scheme_days=30,
            answer_days=20,
            source="https://docs.chargeflow.io/docs/reference/concepts/network-timelines",
        ),
        (SEPA_SCHEME, "", _FIRST): StageRule(
            name="claim of an unauthorised collection",
            answer="copy of the mandate",
            scheme_days=DEFAULT_ANSWER_DAYS,
            answer_days=MANDATE_COPY_DAYS,
            source=_SEPA_RULES,
        ),
    }
)
"""(scheme, flow, stage) → its rule."""
INQUIRY_DAYS: Final = 14
DISCOVER_INQUIRY_DAYS: Final = 5
"""Days to answer a ticket retrieval request: https://justt.ai/blog/discover-merchant-chargeback"""
_OTHER_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {_FIRST: "chargeback", _PRE: "second chargeback", _LAST: "arbitration"}
)
NEXT_STAGE: Final[Mapping[str, DisputeStage]] = MappingProxyType({_FIRST: _PRE, _PRE: _LAST, _LAST: _LAST})


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeReason:
    """A scheme's reason code. ``result``: the result code of its chargebacks. ``flow``: Visa's flow of the dispute."""

    scheme: str
    result: str
    text: str
    flow: str = ""


def _reasons(scheme: str, table: str) -> dict[str, SchemeReason]:
    """Rows of ``code result text``; Visa's conditions 10 and 11 are allocated, 12 and 13 collaborate."""
    found = {}
    for row in table.strip().splitlines():
        code, result, text = row.split(maxsplit=2)
        flow = "" if scheme != VISA else ALLOCATION if code.startswith(("10.", "11.")) else COLLABORATION
        found[code] = SchemeReason(scheme=scheme, result=f"000.100.{result}", text=text, flow=flow)
    return found


SCHEME_REASONS: Final[Mapping[str, SchemeReason]] = MappingProxyType(
    {
        **_reasons(
            VISA,
            """
            10.1 220 EMV liability shift, counterfeit fraud
            10.2 220 EMV liability shift, non-counterfeit fraud
            10.3 220 Other fraud, card present
            10.4 220 Other fraud, card absent
            10.5 220 Visa fraud monitoring programme
            11.1 233 Card recovery bulletin
            11.2 233 Declined authorization
            11.3 233 No authorization
            12.1 231 Late presentment
            12.2 229 Incorrect transaction code
            12.3 210 Incorrect currency
            12.4 201 Incorrect account number
            12.5 210 Incorrect amount
            12.6 224 Duplicate processing or paid by other means
            12.6.1 224 Duplicate processing
            12.6.2 224 Paid by other means
            12.7 299 Invalid data
            13.1 221 Merchandise or services not received
            13.2 205 Cancelled recurring transaction
            13.3 223 Not as described or defective
            13.4 223 Counterfeit merchandise
            13.5 223 Misrepresentation
            13.6 225 Credit not processed
            13.7 225 Cancelled merchandise or services
            13.8 226 Original credit transaction not accepted
            13.9 223 Non-receipt of cash or load value
            """,
        ),
        **_reasons(
            MASTERCARD,
            """
            4807 233 Warning bulletin file
            4808 233 Authorization-related chargeback
            4812 201 Account number not on file
            4831 210 Transaction amount differs
            4834 224 Point-of-interaction error
            4837 220 No cardholder authorization
            4840 220 Fraudulent processing of transactions
            4841 205 Cancelled recurring transaction
            4842 231 Late presentment
            4846 210 Correct currency code not provided
            4849 220 Questionable merchant activity
            4853 206 Cardholder dispute
            4854 206 Cardholder dispute, not classified elsewhere
            4855 221 Goods or services not provided
            4859 223 Addendum, no-show or ATM dispute
            4860 225 Credit not processed
            4863 222 Cardholder does not recognise, potential fraud
            4870 232 Chip liability shift
            4871 232 Chip liability shift, lost, stolen or never received
            """,
        ),
        **_reasons(
            AMEX,
            """
            A01 233 Charge amount exceeds authorization
            A02 233 No valid authorization
            A08 233 Authorization approval expired
            C02 225 Credit not processed
            C04 225 Goods or services returned or refused
            C05 225 Goods or services cancelled
            C08 221 Goods or services not received
            C14 224 Paid by other means
            C18 225 No-show or card deposit cancelled
            C28 205 Cancelled recurring billing
            C31 223 Goods or services not as described
            C32 223 Goods or services damaged or defective
            F10 220 Missing imprint
            F14 220 Missing signature
            F22 233 Expired or not yet valid card
            F24 230 No cardholder authorization
            F29 220 Card not present
            F30 232 EMV counterfeit
            F31 232 EMV lost, stolen or not received
            FR2 220 Fraud full recourse programme
            FR4 200 Immediate chargeback programme
            FR6 200 Partial immediate chargeback programme
            M01 200 Chargeback authorized by the merchant
            M10 210 Vehicle rental, capital damages
            M49 210 Vehicle rental, theft or loss of use
            P01 201 Unassigned card number
            P03 229 Credit processed as charge
            P04 229 Charge processed as credit
            P05 210 Incorrect charge amount
            P07 231 Late submission
            P08 224 Duplicate charge
            P22 201 Non-matching card number
            P23 210 Currency discrepancy
            R03 200 Insufficient reply to an inquiry
            R13 200 No reply to an inquiry
            """,
        ),
        **_reasons(
            DISCOVER,
            """
            AA 222 Cardholder does not recognise
            AP 205 Recurring payments
            AT 233 Authorization non-compliance
            AW 210 Altered amount
            CD 229 Credit posted as card sale
            DC 200 Dispute compliance
            DP 224 Duplicate processing
            IN 201 Invalid card number
            LP 231 Late presentment
            NF 223 Non-receipt of cash from an ATM
            PM 224 Paid by other means
            RG 221 Non-receipt of goods or services
            RM 223 Quality of goods or services
            RN2 225 Credit not processed
            UA01 220 Fraud, card present
            UA02 220 Fraud, card not present
            UA05 232 Fraud, chip counterfeit
            UA06 232 Fraud, chip and PIN
            """,
        ),
    }
)
"""A scheme's reason code → what it means here. 4853 joins several conditions: see CARDHOLDER_DISPUTE_CONDITIONS."""
CARDHOLDER_DISPUTE_CODES: Final = frozenset({"4853", "4854"})
CARDHOLDER_DISPUTE_CONDITIONS: Final[tuple[tuple[str, str], ...]] = (
    ("recurring", "205"),  # Visa 13.2
    ("not provided", "221"),  # 13.1
    ("not received", "221"),
    ("did not complete", "221"),
    ("not as described", "223"),  # 13.3
    ("defective", "223"),
    ("counterfeit", "223"),  # 13.4
    ("credit not processed", "225"),  # 13.6
    ("timeshare", "225"),  # 13.7: cancelled, and not credited
    ("credit posted", "229"),  # 12.2
    ("addendum", "223"),  # as 4859, which it was
    ("no-show", "223"),
)
"""Words of a condition of Mastercard's 4853 → result code as of the Visa condition that is named. The scheme has no
codes of its own for them; institutes tell them in words. Conditions: https://docs.antom.com/ac/dispute/mastercard.md;
Visa's: https://docs.y.uno/docs/providers-reason-codes."""


def resolve_scheme_reason(code: str, description: str) -> SchemeReason | None:
    """What a scheme's reason code means here; of Mastercard's cardholder disputes, what the institute's description of
    the condition says. None for a code that the table does not have."""
    reason = SCHEME_REASONS.get(code)
    if reason is None or code not in CARDHOLDER_DISPUTE_CODES:
        return reason
    text = description.lower()
    result = next((result for words, result in CARDHOLDER_DISPUTE_CONDITIONS if words in text), "")
    return replace(reason, result=f"000.100.{result}") if result else reason


def find_stage_rule(brand: str, scheme_reason: str, stage: str, country: str = "") -> StageRule:
    """The rule of a stage; the default one for schemes and stages that the table does not have. ``country``: the
    merchant's, in two letters, by which Visa's days differ; '' if not known."""
    scheme, reason = SCHEME_BY_BRAND.get(brand, ""), SCHEME_REASONS.get(scheme_reason)
    # Without the scheme's code the flow is not known: the collaboration flow has all stages.
    flow = "" if scheme != VISA else reason.flow if reason is not None and reason.flow else COLLABORATION
    rule = STAGE_RULES.get((scheme, flow, stage))
    own = settings.GATEWAY_CHARGEBACK_ANSWER_DAYS
    if rule is None or (own and stage == DisputeStage.FIRST):
        days = own or DEFAULT_ANSWER_DAYS
        name, answer = (rule.name, rule.answer) if rule else (_OTHER_NAMES[stage], "representment")
        return StageRule(name=name, answer=answer, scheme_days=days, answer_days=days)
    if rule.scheme_days == VISA_DAYS and scheme == VISA and (not country or country in VISA_SHORT_COUNTRIES):
        return replace(rule, scheme_days=VISA_SHORT_DAYS, answer_days=VISA_SHORT_ANSWER_DAYS)
    return rule


def find_inquiry_days(brand: str) -> int:
    """Days to answer an inquiry (retrieval request) that names no day."""
    return DISCOVER_INQUIRY_DAYS if SCHEME_BY_BRAND.get(brand) == DISCOVER else INQUIRY_DAYS


def is_final_return(method: str, code: str) -> bool:
    """Whether a chargeback is the return of a direct debit that its creditor cannot contest (docs/decisions/0097).
    ``method``: of the payment; ``code``: of the chargeback."""
    return method == DIRECT_DEBIT_METHOD and code not in CONTESTABLE_RETURNS


def choose_next_stage(brand: str, scheme_reason: str, stage: str) -> DisputeStage:
    """The stage that may follow. Visa's allocated disputes have no pre-arbitration against the merchant."""
    reason = SCHEME_REASONS.get(scheme_reason)
    if SCHEME_BY_BRAND.get(brand) == VISA and reason is not None and reason.flow == ALLOCATION:
        return _LAST
    return NEXT_STAGE[stage]


def describe_scheme_reason(code: str) -> str:
    """The scheme's code with its own words; the code alone if the table does not have it, '' without one."""
    known = SCHEME_REASONS.get(code)
    return f"{code} {known.text}" if known is not None else code

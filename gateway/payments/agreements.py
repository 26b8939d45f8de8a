"""Card on file: finds the agreement a payment is made under and checks its instalment, frequency and expiry limits.

A merchant-initiated payment (MIT) names its agreement by initialTransactionId (the scheme's reference, or the id of our
INITIAL payment), by agreementId, or by the registration the agreement was made with. Limits are exact under
concurrency: beginning a payment raises the agreement's counter by compare-and-set, so the later of two reads again.
Source: Part B, Card on file; ruling D38.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from types import MappingProxyType
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Count, Max

from gateway.catalogue.parse import INVALID_PARAMETER_CODE, ParameterError, Parameters, mask_reported_value
from gateway.connectors.acquirer_message import MIGRATED_REFERENCES, parse_scheme_reference
from gateway.core import brands, identifiers
from gateway.models import Agreement, Channel, Merchant, Payment, Registration, Status
from gateway.payments.network_brands import resolve_network_brand
from gateway.payments.refusal import RequestRefusedError, build_parameter_refusal
from gateway.payments.stored_answer import read_private_facts
from gateway.risk.retry_rules import resolve_network

UNKNOWN_REFERENCE_CODE: Final = "700.100.100"
NOT_INITIAL_PAYMENT_CODE: Final = "700.400.590"
AGREEMENT_USED_UP_CODE: Final = "700.500.001"
"""numberOfInstallments is used up, or the days of frequency have not passed yet."""
AGREEMENT_EXPIRED_CODE: Final = "700.500.002"
INITIAL_TRANSACTION_ID: Final = "standingInstruction.initialTransactionId"
AGREEMENT_ID: Final = "standingInstruction.agreementId"
_AUTHORIZING: Final = frozenset({"PA", "DB"})


class AgreementUseType(enum.Enum):
    """How a payment relates to a card-on-file agreement. PLAIN: not at all. CARDHOLDER_INITIATED: the shopper pays
    again with the stored card. MERCHANT_INITIATED payments count towards the agreement's instalment and frequency
    limits; INDUSTRY_PRACTICE ones (delayed charge, no-show) do not."""

    PLAIN = "plain"
    INITIAL = "initial"
    CARDHOLDER_INITIATED = "cardholder"
    MERCHANT_INITIATED = "draw"
    INDUSTRY_PRACTICE = "extra"


MERCHANT_INITIATED_USES: Final = (AgreementUseType.MERCHANT_INITIATED, AgreementUseType.INDUSTRY_PRACTICE)
_USE_BY_PRACTICE: Final = {
    "RESUBMISSION": AgreementUseType.MERCHANT_INITIATED,  # it counts like the declined one that is tried again
    "DELAYED_CHARGES": AgreementUseType.INDUSTRY_PRACTICE,
    "NO_SHOW": AgreementUseType.INDUSTRY_PRACTICE,
}
_ON_CHAINS: Final = ("INCREMENTAL_AUTH", "REAUTHORIZATION")
AGREEMENT_USE_TYPES: Final[Mapping[tuple[str, str, str], AgreementUseType]] = MappingProxyType(
    {
        ("", "", ""): AgreementUseType.PLAIN,
        ("", "CIT", ""): AgreementUseType.PLAIN,
        ("", "MIT", ""): AgreementUseType.MERCHANT_INITIATED,
        ("INITIAL", "", ""): AgreementUseType.INITIAL,
        ("INITIAL", "CIT", ""): AgreementUseType.INITIAL,
        ("REPEATED", "CIT", ""): AgreementUseType.CARDHOLDER_INITIATED,
        ("REPEATED", "", ""): AgreementUseType.MERCHANT_INITIATED,
        ("REPEATED", "MIT", ""): AgreementUseType.MERCHANT_INITIATED,
        **{
            (mode, source, practice): use
            for practice, use in _USE_BY_PRACTICE.items()
            for mode in ("", "REPEATED")
            for source in ("", "MIT")
        },
        # These follow an authorization, by path or referenceUuid: their chain allows them, not an agreement.
        **{
            (mode, source, practice): AgreementUseType.PLAIN
            for mode in ("", "INITIAL", "REPEATED")
            for source in ("", "CIT", "MIT")
            for practice in _ON_CHAINS
        },
    }
)
"""(mode, source, industryPractice) → use. The catalogue refuses all other combinations (conditions.card_on_file)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementUse:
    """The agreement of one request. ``agreement``: the row as it was read; None for a reference of another processor.
    ``counts_towards_limits``: the payment counts towards its limits. ``merchant_initiated``: the shopper takes no part.
    ``expiry``: the request's own standingInstruction.expiry.
    ``scheme_references``: the references for the acquirer, by parameter name; ``brand``: of the card whose network they
    are of, '' where that is unknown."""

    agreement: Agreement | None
    counts_towards_limits: bool
    expiry: date | None
    scheme_references: Mapping[str, str]
    merchant_initiated: bool = False
    brand: str = ""


def classify_agreement_use(parameters: Parameters) -> AgreementUseType:
    """The use that the request's standingInstruction parameters describe."""
    names = ("mode", "source", "industryPractice")
    mode, source, practice = (parameters.get(f"standingInstruction.{name}") or "" for name in names)
    return AGREEMENT_USE_TYPES.get((mode, source, practice), AgreementUseType.PLAIN)


def resolve_agreement(
    parameters: Parameters, payment_type: str, channel: Channel, registration: UUID | None
) -> AgreementUse | None:
    """Find the agreement that a first payment is made under; None for a payment without one.

    Raises RequestRefusedError for a merchant-initiated payment that names none, or one of another channel.
    """
    use = classify_agreement_use(parameters)
    own = parameters.get("standingInstruction.expiry")
    expiry = date.fromisoformat(own) if own else None
    named = AGREEMENT_ID in parameters or (
        INITIAL_TRANSACTION_ID in parameters
        # A channel that goes by agreementId alone reads no other id; a registration leads to its agreement without one.
        and (registration is None or channel.agreement_ids != Channel.AgreementIds.ONLY)
    )
    merchant_initiated = use in MERCHANT_INITIATED_USES and payment_type in _AUTHORIZING
    if not merchant_initiated and not (use is AgreementUseType.CARDHOLDER_INITIATED and named):
        return (
            AgreementUse(agreement=None, counts_towards_limits=False, expiry=expiry, scheme_references={})
            if expiry
            else None
        )
    if named or registration is None:
        if registration is None:
            _check_required_ids(parameters, channel)
        agreement = _find_named_agreement(parameters, channel)
    else:
        agreement = Agreement.objects.filter(registration=registration).order_by("-id").first()
    references: Mapping[str, str] = {}
    brand = ""
    if agreement is not None:
        references, brand = _build_scheme_references(agreement), agreement.brand
    elif registration is not None and not named:
        references, brand = _find_first_scheme_reference(registration)
    return AgreementUse(
        agreement=agreement,
        counts_towards_limits=use is AgreementUseType.MERCHANT_INITIATED and agreement is not None,
        expiry=expiry,
        scheme_references=references,
        merchant_initiated=merchant_initiated,
        brand=brand,
    )


def use_agreement(agreement: Agreement, parameters: Parameters) -> AgreementUse:
    """Agreement use for a caller that already loaded the agreement (a subscription run): it counts towards limits."""
    own = parameters.get("standingInstruction.expiry")
    expiry = date.fromisoformat(own) if own else None
    return AgreementUse(
        agreement=agreement,
        counts_towards_limits=True,
        expiry=expiry,
        scheme_references=_build_scheme_references(agreement),
        merchant_initiated=True,
        brand=agreement.brand,
    )


def drop_references_of_other_network(agreement_use: AgreementUse | None, brand: str) -> AgreementUse | None:
    """The use without its scheme references, if the agreement began with a card of another network than ``brand``'s: a
    stored card was replaced, or its issuer moved it. Each network names its transactions by ids of its own. Mastercard
    is told the link that a payment with a card of its own has brought since.

    https://developer.paypal.com/sdk/orders/v2/definitions/network_transaction has the network beside such an id.
    """
    if agreement_use is None or not agreement_use.scheme_references or not brands.is_card_brand(brand):
        return agreement_use
    began = agreement_use.brand
    if not brands.is_card_brand(began) or _resolve_network_or_brand(began) == _resolve_network_or_brand(brand):
        return agreement_use
    references = dict.fromkeys(agreement_use.scheme_references, "")
    agreement = agreement_use.agreement
    if agreement is not None and agreement.transaction_link and brand in brands.MASTERCARD_BRANDS:
        references[AGREEMENT_ID] = agreement.transaction_link
    return replace(agreement_use, scheme_references=references)


def _resolve_network_or_brand(brand: str) -> str:
    return resolve_network(brand) or brand


def find_agreement_violation(
    agreement_use: AgreementUse | None, merchant: Merchant, now: datetime
) -> ParameterError | None:
    """The error of the limit or block that a payment now would break, or None. Days are those of the merchant's time
    zone."""
    if agreement_use is None:
        return None
    zone = ZoneInfo(merchant.time_zone)
    today, agreement = now.astimezone(zone).date(), agreement_use.agreement
    ends = [day for day in (agreement_use.expiry, agreement.expiry if agreement else None) if day is not None]
    if ends and today > min(ends):
        message = f"is past: no authorization after {min(ends)}"
        return ParameterError(
            name="standingInstruction.expiry", message=message, code=AGREEMENT_EXPIRED_CODE, known=True
        )
    if agreement is None:
        return None
    if agreement_use.merchant_initiated and is_agreement_blocked(agreement):
        message = "is of an agreement that is charged back as fraud or revoked: its holder has to agree again"
        return ParameterError(
            name=INITIAL_TRANSACTION_ID, message=message, code=agreement.merchant_use_code, known=True
        )
    if not agreement_use.counts_towards_limits or not has_agreement_limits(agreement):
        return None
    made, last = _count_authorizations(agreement)
    if agreement.max_payments is not None and made >= agreement.max_payments:
        message = f"are used up: {made} of {agreement.max_payments} authorizations were made"
        name = "standingInstruction.numberOfInstallments"
        return ParameterError(name=name, message=message, code=AGREEMENT_USED_UP_CODE, known=True)
    if agreement.frequency is None or last is None:
        return None
    passed = (today - last.astimezone(zone).date()).days
    if passed < agreement.frequency:
        message = f"asks for {agreement.frequency} days between authorizations: {passed} have passed"
        return ParameterError(
            name="standingInstruction.frequency", message=message, code=AGREEMENT_USED_UP_CODE, known=True
        )
    return None


def is_agreement_blocked(agreement: Agreement) -> bool:
    """Whether a chargeback for fraud or revocation stopped merchant-initiated payments under the agreement, and the
    holder of its stored means, if any, has not agreed again since."""
    since = agreement.merchant_use_blocked_at
    if since is None:
        return False
    newer = Agreement.objects.filter(registration=agreement.registration, created_at__gt=since)
    return agreement.registration is None or not newer.exists()


def has_agreement_limits(agreement: Agreement) -> bool:
    """Whether the agreement limits the number or the frequency of its payments, so that they are counted."""
    return agreement.max_payments is not None or agreement.frequency is not None


def reload_agreement_use(agreement_use: AgreementUse) -> AgreementUse:
    """The same use with its agreement read again, after another payment was counted on it."""
    assert agreement_use.agreement is not None
    agreement = Agreement.objects.get(pk=agreement_use.agreement.pk)
    return replace(agreement_use, agreement=agreement, counts_towards_limits=True)


def _count_authorizations(agreement: Agreement) -> tuple[int, datetime | None]:
    """The number and the latest time of the agreement's payments that were not declined, the initial one included."""
    counted = Payment.objects.filter(agreement=agreement.pk).exclude(status=Status.DECLINED)
    totals = counted.aggregate(number=Count("id"), last=Max("created_at"))
    first = agreement.first_at
    return totals["number"] + (first is not None), totals["last"] or first


def _check_required_ids(parameters: Parameters, channel: Channel) -> None:
    """Raise RequestRefusedError when an id is missing that this channel requires of merchant-initiated payments."""
    wanted = {
        Channel.AgreementIds.NONE: () if AGREEMENT_ID in parameters else (INITIAL_TRANSACTION_ID,),
        Channel.AgreementIds.BOTH: (INITIAL_TRANSACTION_ID, AGREEMENT_ID),
        Channel.AgreementIds.ONLY: (AGREEMENT_ID,),
    }[Channel.AgreementIds(channel.agreement_ids)]
    missing = [name for name in wanted if name not in parameters]
    if missing:
        message = "is required when the merchant initiates the payment: the INITIAL payment's answer carries it"
        raise RequestRefusedError(
            INVALID_PARAMETER_CODE, [ParameterError(name=name, message=message, known=True) for name in missing]
        )


def _find_named_agreement(parameters: Parameters, channel: Channel) -> Agreement | None:
    """Find the agreement by its ids. Raises RequestRefusedError when this channel has none; returns None instead on
    channels that accept references of other processors."""
    agreements = Agreement.objects.filter(channel=channel.pk).order_by("-id")
    reference, linking = parameters.get(INITIAL_TRANSACTION_ID), parameters.get(AGREEMENT_ID)
    if channel.agreement_ids == Channel.AgreementIds.ONLY:
        reference = None
    if reference is None:
        found = agreements.filter(agreement_id=linking).first()
        if found is None:
            _refuse_unknown_reference(AGREEMENT_ID, linking or "", channel)
        return found
    payment = identifiers.parse_id(reference)
    found = agreements.filter(pk=payment).first() if payment is not None else None
    found = found or agreements.filter(reference=reference).first()
    if found is None:
        if payment is not None and Payment.objects.filter(pk=payment, channel=channel.pk).exists():
            message = "names a payment that is not an approved INITIAL one"
            raise build_parameter_refusal(
                NOT_INITIAL_PAYMENT_CODE,
                INITIAL_TRANSACTION_ID,
                message,
                value=mask_reported_value(reference),
                known=True,
            )
        _refuse_unknown_reference(INITIAL_TRANSACTION_ID, reference, channel)
        return None
    if linking is not None and found.agreement_id and linking != found.agreement_id:
        message = "is of another agreement than initialTransactionId"
        raise build_parameter_refusal(
            UNKNOWN_REFERENCE_CODE, AGREEMENT_ID, message, value=mask_reported_value(linking), known=True
        )
    return found


def _refuse_unknown_reference(name: str, value: str, channel: Channel) -> None:
    """Raise RequestRefusedError, unless the channel accepts references of other processors."""
    if channel.external_references:
        return
    message = "names no agreement of this entity: make an INITIAL payment first"
    raise build_parameter_refusal(UNKNOWN_REFERENCE_CODE, name, message, value=mask_reported_value(value), known=True)


def _find_first_scheme_reference(registration: UUID) -> tuple[dict[str, str], str]:
    """The scheme references in place of an agreement that was never made: those of the payment that created the
    registration, as parameters, empty if it has none; and that payment's brand."""
    made = Registration.objects.filter(pk=registration).values("payment")[:1]
    answer, brand = Payment.objects.filter(pk__in=made).values_list("answer", "brand").first() or ({}, "")
    kept, brand = read_private_facts(answer), resolve_network_brand(brand, answer)
    references = {INITIAL_TRANSACTION_ID: kept.network_reference, AGREEMENT_ID: kept.transaction_link}
    return {name: text for name, text in references.items() if text}, brand


def _build_scheme_references(agreement: Agreement) -> dict[str, str]:
    """The agreement's references for the acquirer, by parameter name: the scheme's own, whichever id the merchant sent;
    for an agreement begun without one, the processor's transaction id, which only that processor understands. The
    merchant's setting of ids says nothing about the networks, which want the first transaction's reference."""
    linking = agreement.transaction_link or agreement.agreement_id
    ids = {AGREEMENT_ID: linking} if linking else {}
    if agreement.network_reference and not parse_scheme_reference(agreement.network_reference):
        # It began at another processor and was migrated: connectors send the reference as it is.
        ids |= {MIGRATED_REFERENCES[0]: agreement.network_reference}
    return {INITIAL_TRANSACTION_ID: agreement.network_reference or agreement.reference} | ids

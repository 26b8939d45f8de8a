"""Card on file: under which agreement a payment is made, and whether the agreement still allows it.

A payment of the merchant's own (MIT) names its agreement by initialTransactionId (the scheme's reference, or the id of
our INITIAL payment), by agreementId, or by the registration that was agreed on. What an agreement limits is kept to
exactly: a payment begins by raising the agreement's count, so of two that read the same count one reads again.
Source: Part B, Card on file; ruling D38.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Count, Max

from gateway.catalogue.parse import INVALID_PARAMETER_CODE, ParameterError, Parameters, mask_reported_value
from gateway.connectors.acquirer_message import MIGRATED_REFERENCES, parse_scheme_reference
from gateway.core import identifiers
from gateway.models import Agreement, Channel, Merchant, Payment, Registration, Status
from gateway.payments.nested_values import NETWORK_REFERENCE_KEY
from gateway.payments.refusal import RequestRefusedError

UNKNOWN_REFERENCE_CODE: Final = "700.100.100"
NOT_INITIAL_PAYMENT_CODE: Final = "700.400.590"
AGREEMENT_USED_UP_CODE: Final = "700.500.001"
"""No more authorizations, or none yet: numberOfInstallments and frequency."""
AGREEMENT_EXPIRED_CODE: Final = "700.500.002"
INITIAL_TRANSACTION_ID: Final = "standingInstruction.initialTransactionId"
AGREEMENT_ID: Final = "standingInstruction.agreementId"
_AUTHORIZING: Final = frozenset({"PA", "DB"})


class AgreementUseType(enum.Enum):
    """What a payment is to its agreement. ``PLAIN``: nothing. ``CARDHOLDER``: the shopper pays again by what is on
    file. ``DRAW``: an authorization of the agreement, which its limits count. ``EXTRA``: one beside it."""

    PLAIN = "plain"
    INITIAL = "initial"
    CARDHOLDER_INITIATED = "cardholder"
    MERCHANT_INITIATED = "draw"
    INDUSTRY_PRACTICE = "extra"


_ANY_MODE: Final = ("", "REPEATED")
_ANY_SOURCE: Final = ("", "MIT")
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
        # A declined authorization is tried again: it counts like the one it stands for.
        **{
            (mode, source, "RESUBMISSION"): AgreementUseType.MERCHANT_INITIATED
            for mode in _ANY_MODE
            for source in _ANY_SOURCE
        },
        **{
            (mode, source, "DELAYED_CHARGES"): AgreementUseType.INDUSTRY_PRACTICE
            for mode in _ANY_MODE
            for source in _ANY_SOURCE
        },
        **{
            (mode, source, "NO_SHOW"): AgreementUseType.INDUSTRY_PRACTICE
            for mode in _ANY_MODE
            for source in _ANY_SOURCE
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
"""(mode, source, industryPractice) → use. What is not here the catalogue refuses (conditions.card_on_file)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementUse:
    """The agreement of one request. ``agreement`` as it was read, None when there is none here (a reference of another
    processor). ``counts``: its limits count this payment. ``expiry``: the request's own. ``onwards``: the references
    as the acquirer gets them."""

    agreement: Agreement | None
    counts: bool
    expiry: date | None
    scheme_references: Mapping[str, str]


def classify_agreement_use(parameters: Parameters) -> AgreementUseType:
    """What the request's standing instruction makes it."""
    words = (parameters.get(f"standingInstruction.{name}") or "" for name in ("mode", "source", "industryPractice"))
    mode, source, practice = words
    return AGREEMENT_USE_TYPES.get((mode, source, practice), AgreementUseType.PLAIN)


def resolve_agreement(
    parameters: Parameters, payment_type: str, channel: Channel, registration: UUID | None
) -> AgreementUse | None:
    """The agreement a first payment is made under; None for a payment without one.

    Raises RequestRefusedError for a payment of the merchant's own that names none, or one that is not this channel's.
    """
    use = classify_agreement_use(parameters)
    own = parameters.get("standingInstruction.expiry")
    expiry = date.fromisoformat(own) if own else None
    named = AGREEMENT_ID in parameters or (
        INITIAL_TRANSACTION_ID in parameters
        # A channel that goes by agreementId alone reads no other id; what was stored needs none.
        and (registration is None or channel.agreement_ids != Channel.AgreementIds.ONLY)
    )
    merchants = (
        use in (AgreementUseType.MERCHANT_INITIATED, AgreementUseType.INDUSTRY_PRACTICE)
        and payment_type in _AUTHORIZING
    )
    if not merchants and not (use is AgreementUseType.CARDHOLDER_INITIATED and named):
        return AgreementUse(agreement=None, counts=False, expiry=expiry, scheme_references={}) if expiry else None
    if named or registration is None:
        if registration is None:
            _check_required_ids(parameters, channel)
        agreement = _find_named_agreement(parameters, channel)
    else:
        agreement = Agreement.objects.filter(registration=registration).order_by("-id").first()
    if agreement is not None:
        references = _build_scheme_references(agreement, channel)
    else:
        references = {} if named or registration is None else _find_first_scheme_reference(registration)
    return AgreementUse(
        agreement=agreement,
        counts=use is AgreementUseType.MERCHANT_INITIATED and agreement is not None,
        expiry=expiry,
        scheme_references=references,
    )


def use_agreement(agreement: Agreement, parameters: Parameters, channel: Channel) -> AgreementUse:
    """The standing of a payment whose door knows the agreement: an authorization that its limits count."""
    own = parameters.get("standingInstruction.expiry")
    expiry = date.fromisoformat(own) if own else None
    return AgreementUse(
        agreement=agreement, counts=True, expiry=expiry, scheme_references=_build_scheme_references(agreement, channel)
    )


def find_agreement_violation(
    agreement_use: AgreementUse | None, merchant: Merchant, now: datetime
) -> ParameterError | None:
    """Why the agreement does not allow a payment now, or None. Days are those of the merchant's time zone."""
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
    if agreement is None or not agreement_use.counts or not has_agreement_limits(agreement):
        return None
    made, last = _authorizations(agreement)
    if agreement.most is not None and made >= agreement.most:
        message = f"are used up: {made} of {agreement.most} authorizations were made"
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


def has_agreement_limits(agreement: Agreement) -> bool:
    """Whether the agreement's authorizations are counted."""
    return agreement.most is not None or agreement.frequency is not None


def reload_agreement_use(agreement_use: AgreementUse) -> AgreementUse:
    """The same with its agreement as it is now: somebody else drew on it."""
    assert agreement_use.agreement is not None
    agreement = Agreement.objects.get(pk=agreement_use.agreement.pk)
    return AgreementUse(
        agreement=agreement, counts=True, expiry=agreement_use.expiry, scheme_references=agreement_use.scheme_references
    )


def _authorizations(agreement: Agreement) -> tuple[int, datetime | None]:
    """How many were made, and when the last: every one that was not declined, the initial one among them."""
    drawn = Payment.objects.filter(agreement=agreement.pk).exclude(status=Status.DECLINED)
    found = drawn.aggregate(number=Count("id"), last=Max("created_at"))
    first = agreement.first_at
    return found["number"] + (first is not None), found["last"] or first


def _check_required_ids(parameters: Parameters, channel: Channel) -> None:
    """Raise RequestRefusedError when an id is missing that payments of the merchant's own carry on this channel."""
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
    """The agreement the ids name. Raises RequestRefusedError when they name none of this channel's; None where the
    channel takes references of other processors."""
    agreements = Agreement.objects.filter(channel=channel.pk).order_by("-id")
    reference, linking = parameters.get(INITIAL_TRANSACTION_ID), parameters.get(AGREEMENT_ID)
    if channel.agreement_ids == Channel.AgreementIds.ONLY:
        reference = None
    if reference is None:
        found = agreements.filter(agreement_id=linking).first()
        if found is None:
            _refuse_unknown(AGREEMENT_ID, linking or "", channel)
        return found
    payment = identifiers.parse_id(reference)
    found = agreements.filter(pk=payment).first() if payment is not None else None
    found = found or agreements.filter(reference=reference).first()
    if found is None:
        if payment is not None and Payment.objects.filter(pk=payment, channel=channel.pk).exists():
            message = "names a payment that is not an approved INITIAL one"
            raise RequestRefusedError(
                NOT_INITIAL_PAYMENT_CODE, [_error(INITIAL_TRANSACTION_ID, reference, message, NOT_INITIAL_PAYMENT_CODE)]
            )
        _refuse_unknown(INITIAL_TRANSACTION_ID, reference, channel)
        return None
    if linking is not None and found.agreement_id and linking != found.agreement_id:
        message = "is of another agreement than initialTransactionId"
        raise RequestRefusedError(
            UNKNOWN_REFERENCE_CODE, [_error(AGREEMENT_ID, linking, message, UNKNOWN_REFERENCE_CODE)]
        )
    return found


def _refuse_unknown(name: str, value: str, channel: Channel) -> None:
    """Raise RequestRefusedError, unless the channel takes references of other processors."""
    if channel.strange_references:
        return
    message = "names no agreement of this entity: make an INITIAL payment first"
    raise RequestRefusedError(UNKNOWN_REFERENCE_CODE, [_error(name, value, message, UNKNOWN_REFERENCE_CODE)])


def _error(name: str, value: str, message: str, code: str) -> ParameterError:
    return ParameterError(name=name, value=mask_reported_value(value), message=message, code=code, known=True)


def _find_first_scheme_reference(registration: UUID) -> dict[str, str]:
    """What stands in for an agreement that was never made: the network's reference of the payment that made the
    registration, where it has one."""
    made = Registration.objects.filter(pk=registration).values("payment")[:1]
    answer = Payment.objects.filter(pk__in=made).values_list("answer", flat=True).first() or {}
    return {INITIAL_TRANSACTION_ID: answer[NETWORK_REFERENCE_KEY]} if answer.get(NETWORK_REFERENCE_KEY) else {}


def _build_scheme_references(agreement: Agreement, channel: Channel) -> dict[str, str]:
    """The references for the acquirer: the scheme's own, whichever way the merchant named the agreement. One that was
    begun without it has its processor's id, which that processor alone may make something of."""
    ids = {AGREEMENT_ID: agreement.agreement_id} if agreement.agreement_id else {}
    if channel.agreement_ids == Channel.AgreementIds.ONLY and ids:
        return ids
    if agreement.network_reference and not parse_scheme_reference(agreement.network_reference):
        # It began at another processor, and was brought along: connectors send it as it is.
        ids |= {MIGRATED_REFERENCES[0]: agreement.network_reference}
    return {INITIAL_TRANSACTION_ID: agreement.network_reference or agreement.reference} | ids

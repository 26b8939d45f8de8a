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

from gateway import identifiers
from gateway.catalogue.parse import INVALID, ParameterError, Parameters, masked
from gateway.connectors.message import BROUGHT, scheme_reference
from gateway.models import Agreement, Channel, Merchant, Payment, Registration, Status
from gateway.payments.refusal import Refused
from gateway.payments.values import NETWORK

UNKNOWN_REFERENCE: Final = "700.100.100"
NOT_INITIAL: Final = "700.400.590"
USED_UP: Final = "700.500.001"
"""No more authorizations, or none yet: numberOfInstallments and frequency."""
TOO_LATE: Final = "700.500.002"
REFERENCE: Final = "standingInstruction.initialTransactionId"
AGREEMENT_ID: Final = "standingInstruction.agreementId"
_AUTHORIZING: Final = frozenset({"PA", "DB"})


class Use(enum.Enum):
    """What a payment is to its agreement. ``PLAIN``: nothing. ``CARDHOLDER``: the shopper pays again by what is on
    file. ``DRAW``: an authorization of the agreement, which its limits count. ``EXTRA``: one beside it."""

    PLAIN = "plain"
    INITIAL = "initial"
    CARDHOLDER = "cardholder"
    DRAW = "draw"
    EXTRA = "extra"


_ANY_MODE: Final = ("", "REPEATED")
_ANY_SOURCE: Final = ("", "MIT")
_ON_CHAINS: Final = ("INCREMENTAL_AUTH", "REAUTHORIZATION")
USES: Final[Mapping[tuple[str, str, str], Use]] = MappingProxyType(
    {
        ("", "", ""): Use.PLAIN,
        ("", "CIT", ""): Use.PLAIN,
        ("", "MIT", ""): Use.DRAW,
        ("INITIAL", "", ""): Use.INITIAL,
        ("INITIAL", "CIT", ""): Use.INITIAL,
        ("REPEATED", "CIT", ""): Use.CARDHOLDER,
        ("REPEATED", "", ""): Use.DRAW,
        ("REPEATED", "MIT", ""): Use.DRAW,
        # A declined authorization is tried again: it counts like the one it stands for.
        **{(mode, source, "RESUBMISSION"): Use.DRAW for mode in _ANY_MODE for source in _ANY_SOURCE},
        **{(mode, source, "DELAYED_CHARGES"): Use.EXTRA for mode in _ANY_MODE for source in _ANY_SOURCE},
        **{(mode, source, "NO_SHOW"): Use.EXTRA for mode in _ANY_MODE for source in _ANY_SOURCE},
        # These follow an authorization, by path or referenceUuid: their chain allows them, not an agreement.
        **{(mode, source, practice): Use.PLAIN
           for mode in ("", "INITIAL", "REPEATED") for source in ("", "CIT", "MIT") for practice in _ON_CHAINS},
    }
)  # fmt: skip
"""(mode, source, industryPractice) → use. What is not here the catalogue refuses (conditions.card_on_file)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The agreement of one request. ``agreement`` as it was read, None when there is none here (a reference of another
    processor). ``counts``: its limits count this payment. ``expiry``: the request's own. ``onwards``: the references
    as the acquirer gets them."""

    agreement: Agreement | None
    counts: bool
    expiry: date | None
    onwards: Mapping[str, str]


def use_of(parameters: Parameters) -> Use:
    """What the request's standing instruction makes it."""
    words = (parameters.get(f"standingInstruction.{name}") or "" for name in ("mode", "source", "industryPractice"))
    mode, source, practice = words
    return USES.get((mode, source, practice), Use.PLAIN)


def standing_of(
    parameters: Parameters, payment_type: str, channel: Channel, registration: UUID | None
) -> Standing | None:
    """The agreement a first payment is made under; None for a payment without one.

    Raises Refused for a payment of the merchant's own that names none, or one that is not this channel's.
    """
    use = use_of(parameters)
    own = parameters.get("standingInstruction.expiry")
    expiry = date.fromisoformat(own) if own else None
    named = AGREEMENT_ID in parameters or (
        REFERENCE in parameters
        # A channel that goes by agreementId alone reads no other id; what was stored needs none.
        and (registration is None or channel.agreement_ids != Channel.AgreementIds.ONLY)
    )
    merchants = use in (Use.DRAW, Use.EXTRA) and payment_type in _AUTHORIZING
    if not merchants and not (use is Use.CARDHOLDER and named):
        return Standing(agreement=None, counts=False, expiry=expiry, onwards={}) if expiry else None
    if named or registration is None:
        if registration is None:
            _expect_ids(parameters, channel)
        agreement = _named(parameters, channel)
    else:
        agreement = Agreement.objects.filter(registration=registration).order_by("-id").first()
    if agreement is not None:
        references = _onwards(agreement, channel)
    else:
        references = {} if named or registration is None else _first_of(registration)
    return Standing(
        agreement=agreement, counts=use is Use.DRAW and agreement is not None, expiry=expiry, onwards=references
    )


def drawing_on(agreement: Agreement, parameters: Parameters, channel: Channel) -> Standing:
    """The standing of a payment whose door knows the agreement: an authorization that its limits count."""
    own = parameters.get("standingInstruction.expiry")
    expiry = date.fromisoformat(own) if own else None
    return Standing(agreement=agreement, counts=True, expiry=expiry, onwards=_onwards(agreement, channel))


def refusal_of(standing: Standing | None, merchant: Merchant, now: datetime) -> ParameterError | None:
    """Why the agreement does not allow a payment now, or None. Days are those of the merchant's time zone."""
    if standing is None:
        return None
    zone = ZoneInfo(merchant.time_zone)
    today, agreement = now.astimezone(zone).date(), standing.agreement
    ends = [day for day in (standing.expiry, agreement.expiry if agreement else None) if day is not None]
    if ends and today > min(ends):
        message = f"is past: no authorization after {min(ends)}"
        return ParameterError(name="standingInstruction.expiry", message=message, code=TOO_LATE, known=True)
    if agreement is None or not standing.counts or not is_limited(agreement):
        return None
    made, last = _authorizations(agreement)
    if agreement.most is not None and made >= agreement.most:
        message = f"are used up: {made} of {agreement.most} authorizations were made"
        name = "standingInstruction.numberOfInstallments"
        return ParameterError(name=name, message=message, code=USED_UP, known=True)
    if agreement.frequency is None or last is None:
        return None
    passed = (today - last.astimezone(zone).date()).days
    if passed < agreement.frequency:
        message = f"asks for {agreement.frequency} days between authorizations: {passed} have passed"
        return ParameterError(name="standingInstruction.frequency", message=message, code=USED_UP, known=True)
    return None


def is_limited(agreement: Agreement) -> bool:
    """Whether the agreement's authorizations are counted."""
    return agreement.most is not None or agreement.frequency is not None


def again(standing: Standing) -> Standing:
    """The same with its agreement as it is now: somebody else drew on it."""
    assert standing.agreement is not None
    agreement = Agreement.objects.get(pk=standing.agreement.pk)
    return Standing(agreement=agreement, counts=True, expiry=standing.expiry, onwards=standing.onwards)


def _authorizations(agreement: Agreement) -> tuple[int, datetime | None]:
    """How many were made, and when the last: every one that was not declined, the initial one among them."""
    drawn = Payment.objects.filter(agreement=agreement.pk).exclude(status=Status.DECLINED)
    found = drawn.aggregate(number=Count("id"), last=Max("created_at"))
    first = agreement.first_at
    return found["number"] + (first is not None), found["last"] or first


def _expect_ids(parameters: Parameters, channel: Channel) -> None:
    """Raise Refused when an id is missing that payments of the merchant's own carry on this channel."""
    wanted = {
        Channel.AgreementIds.NONE: () if AGREEMENT_ID in parameters else (REFERENCE,),
        Channel.AgreementIds.BOTH: (REFERENCE, AGREEMENT_ID),
        Channel.AgreementIds.ONLY: (AGREEMENT_ID,),
    }[Channel.AgreementIds(channel.agreement_ids)]
    missing = [name for name in wanted if name not in parameters]
    if missing:
        message = "is required when the merchant initiates the payment: the INITIAL payment's answer carries it"
        raise Refused(INVALID, [ParameterError(name=name, message=message, known=True) for name in missing])


def _named(parameters: Parameters, channel: Channel) -> Agreement | None:
    """The agreement the ids name. Raises Refused when they name none of this channel's; None where the channel takes
    references of other processors."""
    agreements = Agreement.objects.filter(channel=channel.pk).order_by("-id")
    reference, linking = parameters.get(REFERENCE), parameters.get(AGREEMENT_ID)
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
            raise Refused(NOT_INITIAL, [_error(REFERENCE, reference, message, NOT_INITIAL)])
        _refuse_unknown(REFERENCE, reference, channel)
        return None
    if linking is not None and found.agreement_id and linking != found.agreement_id:
        message = "is of another agreement than initialTransactionId"
        raise Refused(UNKNOWN_REFERENCE, [_error(AGREEMENT_ID, linking, message, UNKNOWN_REFERENCE)])
    return found


def _refuse_unknown(name: str, value: str, channel: Channel) -> None:
    """Raise Refused, unless the channel takes references of other processors."""
    if channel.strange_references:
        return
    message = "names no agreement of this entity: make an INITIAL payment first"
    raise Refused(UNKNOWN_REFERENCE, [_error(name, value, message, UNKNOWN_REFERENCE)])


def _error(name: str, value: str, message: str, code: str) -> ParameterError:
    return ParameterError(name=name, value=masked(value), message=message, code=code, known=True)


def _first_of(registration: UUID) -> dict[str, str]:
    """What stands in for an agreement that was never made: the network's reference of the payment that made the
    registration, where it has one."""
    made = Registration.objects.filter(pk=registration).values("payment")[:1]
    answer = Payment.objects.filter(pk__in=made).values_list("answer", flat=True).first() or {}
    return {REFERENCE: answer[NETWORK]} if answer.get(NETWORK) else {}


def _onwards(agreement: Agreement, channel: Channel) -> dict[str, str]:
    """The references for the acquirer: the scheme's own, whichever way the merchant named the agreement. One that was
    begun without it has its processor's id, which that processor alone may make something of."""
    ids = {AGREEMENT_ID: agreement.agreement_id} if agreement.agreement_id else {}
    if channel.agreement_ids == Channel.AgreementIds.ONLY and ids:
        return ids
    if agreement.network_reference and not scheme_reference(agreement.network_reference):
        # It began at another processor, and was brought along: connectors send it as it is.
        ids |= {BROUGHT[0]: agreement.network_reference}
    return {REFERENCE: agreement.network_reference or agreement.reference} | ids

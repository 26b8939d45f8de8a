"""Merges what a page's form sent with what the merchant prepared into the parameters of one payment.

The merchant determines amount, purpose and recipient; a browser adds the payment means and its own data, nothing else
(decisions, section 7). Parameters it must not send are refused by name, and reported together with everything missing
or invalid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from gateway.catalogue import conditions, structures
from gateway.catalogue.conditions.request_facts import STORED_CARD_FACT
from gateway.catalogue.endpoints import PAY_CHECKOUT_ENDPOINT, PAYMENT_ENDPOINT, REFUSE_FOLLOW_UP_TYPES
from gateway.catalogue.errors import (
    MAX_ERROR_SEARCH_CHARS,
    SearchBudget,
    hide_reported_value,
    mask_reported_value,
)
from gateway.catalogue.errors import render_reported_value as shown_value
from gateway.catalogue.parse import Catalogue, InvalidParametersError, ParameterError, Parameters, UnknownNamePolicy
from gateway.catalogue.typed_pairs import ParameterPairs, ParameterValue
from gateway.core.brands import SCHEME_BY_VARIANT
from gateway.core.card_number import detect_brand_of_number
from gateway.core.secret import Secret, reveal_text
from gateway.payments.side_effects import RENEWED_FIELDS

PreparedValues = Mapping[str, ParameterValue]
"""The merchant's prepared parameters, by full name."""
PAGE_PARAMETER_PREFIX: Final = "SHOPPER_"
CUSTOM_PARAMETER_PREFIX: Final = "customParameters["
MAX_FORM_SEARCH_CHARS: Final = 1_500
"""Characters searched for card numbers to show a browser's refused values."""
REGISTRATION_ID_FIELD: Final = "registrationId"
SHOWN_REST_FIELD: Final = "held.rest"
"""What a form sends that shows a part of the amount as held: the rest that it shows. It is no parameter."""
OVERRIDE_TYPE_PREFIX: Final = "overridePaymentType["
_SHOWN_AMOUNT: Final = re.compile(r"[0-9]{1,12}\.[0-9]{2}")
_OWN: Final = ("registrations[", OVERRIDE_TYPE_PREFIX, "paymentPage")
_PAYMENT: Final = Catalogue(
    PAYMENT_ENDPOINT.structures[1:],
    (REFUSE_FOLLOW_UP_TYPES, *conditions.FOR_CHECKOUT_PAYMENTS),
    elsewhere=structures.KNOWN_STRUCTURES,
)
_RENEWED: Final = tuple(f"card.{name}" for name in RENEWED_FIELDS)
_RENEWAL: Final = Catalogue(
    (structures.CARD.without(*(row.name for row in structures.CARD.rows if row.name not in RENEWED_FIELDS)),)
)
"""The expiry date of a stored card that the shopper renews: both halves."""
_SUPPLIED: Final = (
    ("customer.ip", 255),
    ("customer.browser.acceptHeader", 2048),
    ("customer.browser.userAgent", 2048),
)
"""Browser data that the server observes itself, and the most characters used of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedForm:
    """A submitted form. ``trusted``: sent by the merchant's server, with its token. ``supplied``: browser data observed
    by the server, by parameter name; used where neither merchant nor page sent it. ``literal``: values are accepted
    only as the specification writes them."""

    pairs: Sequence[tuple[str, ParameterValue]] = field(repr=False)
    trusted: bool = False
    literal: bool = False
    supplied: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedForm:
    """One payment's parameters, the chosen registration ('' for none), and the new expiry date of its card by
    RENEWED_FIELDS, if the shopper gave one."""

    parameters: Parameters
    registration: str = ""
    renewed: Mapping[str, str] = field(default_factory=dict)


def list_offered_registration_ids(prepared: Mapping[str, Any]) -> list[str]:
    """Registrations that the merchant offers, in order, each once."""
    names = sorted((name for name in prepared if name.startswith("registrations[")), key=lambda name: (len(name), name))
    return list(dict.fromkeys(reveal_text(prepared[name]) for name in names))


def may_offer_storing(prepared: Mapping[str, Any]) -> bool:
    """True if the form may offer to store the card: the merchant identified the shopper and has not decided it."""
    known = "customer.merchantCustomerId" in prepared or bool(list_offered_registration_ids(prepared))
    return known and "createRegistration" not in prepared


def merge_form_parameters(
    prepared: PreparedValues,
    form: SubmittedForm,
    facts: frozenset[str],
    *,
    catalogue: Catalogue | None = None,
    masks: bool,
) -> MergedForm:
    """Merge ``prepared`` and ``form`` by the ``catalogue`` endpoint of a checkout's payment or another. ``masks``: mask
    card data in free text. Raises InvalidParametersError with every error at once."""
    budget = SearchBudget(MAX_ERROR_SEARCH_CHARS if form.trusted else MAX_FORM_SEARCH_CHARS)
    taken, errors = _filter_pairs(prepared, form, budget)
    names = {name for name, _ in taken}
    registration = next((reveal_text(value) for name, value in taken if name == REGISTRATION_ID_FIELD), "")
    pairs = ParameterPairs(
        (name, value) for name, value in prepared.items() if name not in names and not name.startswith(_OWN)
    )
    pairs += [(name, value) for name, value in taken if name != REGISTRATION_ID_FIELD]
    known = names | prepared.keys()
    pairs += [
        (name, form.supplied[name][:most]) for name, most in _SUPPLIED if name not in known and form.supplied.get(name)
    ]
    if registration:
        pairs = ParameterPairs(pair for pair in pairs if pair[0] != "createRegistration")
        facts = facts | {"registration"}
    pairs = _apply_type_override(pairs, prepared)
    dates = ParameterPairs()
    if registration and "card.number" not in names:
        dates = ParameterPairs(pair for pair in pairs if pair[0] in _RENEWED)
        pairs = ParameterPairs(pair for pair in pairs if pair[0] not in _RENEWED)
    renewed = _parse_renewal(dates, facts, errors, literal=form.literal)
    try:
        parameters = (catalogue or _PAYMENT).parse(
            pairs, facts=facts, policy=UnknownNamePolicy.LENIENT, literal=form.literal, masks=masks, budget=budget
        )
    except InvalidParametersError as fault:
        raise InvalidParametersError([*errors, *fault.errors]) from None
    if errors:
        raise InvalidParametersError(errors)
    return MergedForm(parameters=parameters, registration=registration, renewed=renewed)


def _parse_renewal(
    dates: ParameterPairs, facts: frozenset[str], errors: list[ParameterError], *, literal: bool
) -> dict[str, str]:
    """The new expiry date of the chosen stored card, by RENEWED_FIELDS. Adds to ``errors`` what is wrong with it."""
    if not dates:
        return {}
    if STORED_CARD_FACT not in facts:
        message = "cannot be sent with this registration: it holds no card"
        errors += [ParameterError(name=name, message=message, known=True) for name, _ in dates]
        return {}
    try:
        found = _RENEWAL.parse(dates, facts=facts, literal=literal)
    except InvalidParametersError as fault:
        errors += fault.errors
        return {}
    return {name: found[f"card.{name}"] for name in RENEWED_FIELDS}


def split_shown_rest(pairs: ParameterPairs) -> tuple[ParameterPairs, Decimal | None]:
    """The pairs of a form, and apart from them the rest that it shows, None for a form that shows none. Raises
    InvalidParametersError."""
    sent = [reveal_text(value) for name, value in pairs if name == SHOWN_REST_FIELD]
    if not sent:
        return pairs, None
    if len(sent) > 1 or not _SHOWN_AMOUNT.fullmatch(sent[0]):
        message = "must be the rest of the amount as the checkout's state has it, once"
        raise InvalidParametersError([ParameterError(name=SHOWN_REST_FIELD, message=message, known=True)])
    return ParameterPairs(pair for pair in pairs if pair[0] != SHOWN_REST_FIELD), Decimal(sent[0])


def find_chosen_registration_id(form: SubmittedForm) -> str:
    """The registration that the form names, '' for none."""
    return next((reveal_text(value) for name, value in form.pairs if name == REGISTRATION_ID_FIELD and value), "")


def _apply_type_override(pairs: ParameterPairs, prepared: PreparedValues) -> ParameterPairs:
    """Apply overridePaymentType[brand], which replaces paymentType for the brand that is paid with."""
    sent = dict(pairs)
    number = sent.get("card.number")
    brand = sent.get("paymentBrand")
    names = [brand]
    if not brand:
        brand = detect_brand_of_number(number if isinstance(number, Secret) else None)
        # A table of BINs may name a debit brand that no override names: the override of its scheme's brand counts then.
        names = [brand, SCHEME_BY_VARIANT.get(brand or "")]
    overrides = (prepared.get(f"{OVERRIDE_TYPE_PREFIX}{name}]") for name in names)
    override = next((one for one in overrides if one), None)
    return ParameterPairs((name, override if override and name == "paymentType" else value) for name, value in pairs)


def _filter_pairs(
    prepared: PreparedValues, form: SubmittedForm, budget: SearchBudget
) -> tuple[ParameterPairs, list[ParameterError]]:
    """The accepted pairs of the form, and the refused ones by name."""
    taken = ParameterPairs()
    errors: list[ParameterError] = []
    catalogue = PAY_CHECKOUT_ENDPOINT.catalogue
    for sent, value in form.pairs:
        name = catalogue.aliases.get(sent, sent)
        found = catalogue.find(name)
        if not value and (found is None or not found[0].param.format.empty_is_value):
            continue
        if name == "entityId" and form.trusted:
            continue
        usual = found[0].param.format.usual if found is not None and not form.literal else None
        if usual is not None and isinstance(value, str):
            value = usual(value)
        why = _UNKNOWN if found is None or name == "entityId" else _find_refusal(name, value, prepared, form)
        if why is None:
            continue
        if why:
            shown = (
                shown_value(found[0].param, value, budget)
                if found is not None
                else hide_reported_value(name, value, None, budget)
            )
            errors.append(ParameterError(name=mask_reported_value(name, budget), value=shown, message=why))
        else:
            taken.append((name, value))
    return taken, errors


_UNKNOWN: Final = "is not an allowed parameter of a checkout's form: the merchant's server sets it"
_Refuse = Callable[[str, ParameterValue, PreparedValues], str | None]


def _find_refusal(name: str, value: ParameterValue, prepared: PreparedValues, form: SubmittedForm) -> str | None:
    """Why a known parameter is refused; '' if it is accepted, None if it is ignored."""
    if name.startswith(CUSTOM_PARAMETER_PREFIX):
        if not form.trusted and not name.startswith(CUSTOM_PARAMETER_PREFIX + PAGE_PARAMETER_PREFIX):
            return f"must have a name that starts with {PAGE_PARAMETER_PREFIX} when it comes from a browser"
        # Pages repeat what their server has sent: that changes nothing.
        return None if prepared.get(name) == value else _check_merchant_value(name, value, prepared)
    start = name.partition(".")[0]
    return _REFUSALS.get(start, _accept_value)(name, value, prepared)


def _accept_value(_name: str, _value: ParameterValue, _prepared: PreparedValues) -> str | None:
    return ""


def _check_merchant_value(name: str, _value: ParameterValue, prepared: PreparedValues) -> str | None:
    return "was set by the merchant and cannot be changed here" if name in prepared else ""


def _check_brand(name: str, value: ParameterValue, prepared: PreparedValues) -> str | None:
    merchants = prepared.get(name, value)
    return "" if merchants == value else f"cannot be changed here: this checkout is for {reveal_text(merchants)}"


def _check_storing(name: str, value: ParameterValue, prepared: PreparedValues) -> str | None:
    if value == "false" or may_offer_storing(prepared):
        return "" if "createRegistration" not in prepared else None
    return None if prepared.get(name) == value else "is not offered in this checkout"


def _check_registration(_name: str, value: ParameterValue, prepared: PreparedValues) -> str | None:
    return "" if value in list_offered_registration_ids(prepared) else "is not offered in this checkout"


def _check_result_url(name: str, _value: ParameterValue, prepared: PreparedValues) -> str | None:
    """shopperResultUrl: the page's form may send one; the merchant's own takes precedence."""
    return None if name in prepared else ""


_REFUSALS: Final[Mapping[str, _Refuse]] = {
    "billing": _check_merchant_value,
    "paymentBrand": _check_brand,
    "createRegistration": _check_storing,
    REGISTRATION_ID_FIELD: _check_registration,
    "shopperResultUrl": _check_result_url,
}

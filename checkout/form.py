"""What a page's form sends, put together with what the merchant prepared: the parameters of one payment.

The merchant says how much, how and to whom; a browser adds the means, its own data, and no more (decisions, section 7).
What it may not send is refused and named; what is missing or wrong in the whole is told beside it, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.card_number import detected_brand
from gateway.catalogue import conditions, structures
from gateway.catalogue.endpoints import FIRST_PAYMENT, PAY_CHECKOUT, PAYMENTS
from gateway.catalogue.errors import hidden, shorten
from gateway.catalogue.errors import shown as shown_value
from gateway.catalogue.parse import Catalogue, Invalid, ParameterError, Parameters, Policy
from gateway.catalogue.sent import Pairs, Value, text_of
from gateway.masking import mask_text
from gateway.secret import Secret

Prepared = Mapping[str, Value]
"""What the merchant prepared, by full name."""
FROM_A_PAGE: Final = "SHOPPER_"
CUSTOM: Final = "customParameters["
REGISTRATION: Final = "registrationId"
OVERRIDE: Final = "overridePaymentType["
_OWN: Final = ("registrations[", OVERRIDE)
_PAYMENT: Final = Catalogue(
    PAYMENTS.structures[1:], (FIRST_PAYMENT, *conditions.FOR_CHECKOUT_PAYMENTS),
    elsewhere=structures.KNOWN_STRUCTURES,
)  # fmt: skip
_SUPPLIED: Final = (
    ("customer.ip", 255),
    ("customer.browser.acceptHeader", 2048),
    ("customer.browser.userAgent", 2048),
)
"""What the server sees of a browser itself, and the most characters of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What was sent. ``trusted``: by the merchant's server, with its token. ``supplied``: what we see of the browser,
    by parameter name; it stands in where neither merchant nor page said it. ``literal``: values are taken as the
    specification writes them only."""

    pairs: Sequence[tuple[str, Value]] = field(repr=False)
    trusted: bool = False
    literal: bool = False
    supplied: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """One payment's parameters, and the stored means that was chosen ('' for none)."""

    parameters: Parameters
    registration: str = ""


def offered(prepared: Mapping[str, Any]) -> list[str]:
    """The registrations that the merchant offers, in order, each once."""
    names = sorted((name for name in prepared if name.startswith("registrations[")), key=lambda name: (len(name), name))
    return list(dict.fromkeys(text_of(prepared[name]) for name in names))


def may_store(prepared: Mapping[str, Any]) -> bool:
    """Whether the shopper may be asked to store the card: the merchant knows the shopper and has not said anything."""
    known = "customer.merchantCustomerId" in prepared or bool(offered(prepared))
    return known and "createRegistration" not in prepared


def put_together(
    prepared: Prepared,
    form: Form,
    facts: frozenset[str],
    *,
    catalogue: Catalogue | None = None,
    masks: bool = True,
) -> Whole:
    """The whole of ``prepared`` and ``form``, by the ``catalogue`` of a checkout's payment or another. ``masks``: card
    data in free text is masked. Raises Invalid with every error at once."""
    taken, errors = _taken(prepared, form)
    names = {name for name, _ in taken}
    registration = next((text_of(value) for name, value in taken if name == REGISTRATION), "")
    pairs = Pairs((name, value) for name, value in prepared.items() if name not in names and not name.startswith(_OWN))
    pairs += [(name, value) for name, value in taken if name != REGISTRATION]
    known = names | prepared.keys()
    pairs += [(name, form.supplied[name][:most]) for name, most in _SUPPLIED
              if name not in known and form.supplied.get(name)]  # fmt: skip
    if registration:
        pairs = Pairs(pair for pair in pairs if pair[0] != "createRegistration")
        facts = facts | {"registration"}
    pairs = _with_type(pairs, prepared)
    try:
        parameters = (catalogue or _PAYMENT).parse(
            pairs, facts=facts, policy=Policy.LENIENT, literal=form.literal, masks=masks
        )  # fmt: skip
    except Invalid as fault:
        raise Invalid([*errors, *fault.errors]) from None
    if errors:
        raise Invalid(errors)
    return Whole(parameters=parameters, registration=registration)


def chosen(form: Form) -> str:
    """The registration that the form names, '' for none."""
    return next((text_of(value) for name, value in form.pairs if name == REGISTRATION and value), "")


def _with_type(pairs: Pairs, prepared: Prepared) -> Pairs:
    """overridePaymentType[brand] replaces paymentType for the brand that is paid with."""
    sent = dict(pairs)
    number = sent.get("card.number")
    brand = sent.get("paymentBrand") or detected_brand(number if isinstance(number, Secret) else None)
    override = prepared.get(f"{OVERRIDE}{brand}]")
    return Pairs((name, override if override and name == "paymentType" else value) for name, value in pairs)


def _taken(prepared: Prepared, form: Form) -> tuple[Pairs, list[ParameterError]]:
    """What of the form counts, and what is refused by name."""
    taken = Pairs()
    errors: list[ParameterError] = []
    catalogue = PAY_CHECKOUT.catalogue
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
        why = _UNKNOWN if found is None or name == "entityId" else _refusal(name, value, prepared, form)
        if why is None:
            continue
        if why:
            shown = shown_value(found[0].param, value) if found is not None else hidden(name, value, None)
            errors.append(ParameterError(name=shorten(mask_text(name)), value=shown, message=why))
        else:
            taken.append((name, value))
    return taken, errors


_UNKNOWN: Final = "is not an allowed parameter of a checkout's form: the merchant's server sets it"
_Refuse = Callable[[str, Value, Prepared], str | None]


def _refusal(name: str, value: Value, prepared: Prepared, form: Form) -> str | None:
    """Why a known name is refused, '' when it is taken, None when it is passed over."""
    if name.startswith(CUSTOM):
        if not form.trusted and not name.startswith(CUSTOM + FROM_A_PAGE):
            return f"must have a name that starts with {FROM_A_PAGE} when it comes from a browser"
        return _is_the_merchants(name, value, prepared)
    start = name.partition(".")[0]
    return _REFUSALS.get(start, _takes)(name, value, prepared)


def _takes(name: str, value: Value, prepared: Prepared) -> str | None:
    return ""


def _is_the_merchants(name: str, value: Value, prepared: Prepared) -> str | None:
    return "was set by the merchant and cannot be changed here" if name in prepared else ""


def _brand(name: str, value: Value, prepared: Prepared) -> str | None:
    merchants = prepared.get(name, value)
    return "" if merchants == value else f"cannot be changed here: this checkout is for {text_of(merchants)}"


def _store(name: str, value: Value, prepared: Prepared) -> str | None:
    if value == "false" or may_store(prepared):
        return "" if "createRegistration" not in prepared else None
    return None if prepared.get(name) == value else "is not offered in this checkout"


def _stored(name: str, value: Value, prepared: Prepared) -> str | None:
    return "" if value in offered(prepared) else "is not offered in this checkout"


def _result_url(name: str, value: Value, prepared: Prepared) -> str | None:
    """The page's form has one; the merchant's own wins."""
    return None if name in prepared else ""


_REFUSALS: Final[Mapping[str, _Refuse]] = {
    "billing": _is_the_merchants,
    "paymentBrand": _brand,
    "createRegistration": _store,
    REGISTRATION: _stored,
    "shopperResultUrl": _result_url,
}

"""What may be typed into the search for payments: a text is recognised by its shape, and each shape reads one index.

Full card numbers are neither searched nor stored: see FULL_CARD_NUMBER_TEXT. Source: docs/decisions/0025.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db.models import Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Replace
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as lazy

from gateway.backoffice.kit.formatting import read_typed_amount
from gateway.core import identifiers
from gateway.core.masking import contains_card_number
from gateway.models import Authentication, Payment, Registration, RequestLog
from gateway.payments import search_keys
from gateway.vault.sealing import current_vault

MAX_ENDED_REQUESTS: Final = 100_000
"""The newest requests, among which the end of an ndc is looked for."""
MAX_FOUND_REQUESTS: Final = 20


class FullCardNumberError(Exception):
    """A full card number was typed. It is not searched, and nothing may repeat it."""


FULL_CARD_NUMBER_TEXT: Final = (
    "That is a whole card number, which is neither looked for nor kept. Search for its last four digits instead."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTerm:
    """A parsed search: ``shape`` names a row of SEARCH_SHAPES ('' for none), ``value`` is the text as that row reads
    it. ``wrong``: a prefix whose value is not of its kind; then nothing is searched."""

    shape: str = ""
    value: str = ""
    wrong: str = ""

    @property
    def typed(self) -> str:
        """What to type for this reading alone."""
        return f"{self.shape}:{'…' if self.shape == 'ibanEnd' else ''}{self.value}"

    @property
    def about(self) -> str:
        return next((str(shape.about) for shape in SEARCH_SHAPES if shape.name == self.shape), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchShape:
    """A kind of text that may be typed.

    - ``parse_value``: the value, or None if the text is not of this kind.
    - ``where``: the condition on payments.
    - ``one``: it names a single payment.
    - ``automatic``: a text is taken for it without a prefix.
    - ``older``: the condition on older rows, for kinds with a time window.
    - ``shared``: any number of payments may have it.
    - ``recent_only``: no index has it, so it is looked for among the newest MAX_RECENT_ROWS or in the chosen days.
    """

    name: str
    about: str | Promise
    example: str
    parse_value: Callable[[str], str | None]
    where: Callable[[str, Sequence[UUID]], Q]
    one: bool = False
    automatic: bool = True
    older: Callable[[str], Q] | None = None
    shared: bool = False
    recent_only: bool = False

    @property
    def has_time_window(self) -> bool:
        return self.older is not None


def _match_pattern(pattern: str) -> Callable[[str], str | None]:
    compiled = re.compile(pattern)
    return lambda text: text if compiled.fullmatch(text) else None


def _by_id(value: str, _merchants: Sequence[UUID]) -> Q:
    """A payment by its own id, else by its registration's or its authentication's."""
    ident = UUID(value)
    if Payment.objects.filter(pk=ident).exists():
        return Q(pk=ident)
    registration = Registration.objects.filter(pk=ident).first()
    if registration is not None:
        return _by_registration(registration)
    behind = Authentication.objects.filter(pk=ident).values_list("payment", flat=True).first()
    return Q(pk=behind) if behind is not None else Q(pk__in=[])


def _by_registration(registration: Registration) -> Q:
    """Payments made with a registration, found by the last four digits of its account; at least the one that made
    it."""
    made = Q(pk=registration.payment)
    card = registration.details.get("card", {})
    if last := card.get("last4Digits"):
        key = search_keys.build_last4_key(registration.merchant_id, last)
        return made | Q(last4_key=key, registration=registration.pk)
    return made


def _by_ndc(value: str, _merchants: Sequence[UUID]) -> Q:
    asked = identifiers.parse_ndc(value)
    if asked is None:
        return Q(pk__in=[])
    logged = RequestLog.objects.filter(pk=asked).values_list("payment", flat=True).first()
    return Q(pk=logged) if logged is not None else Q(pk__in=[])


def _by_short_id(value: str, _merchants: Sequence[UUID]) -> Q:
    return Q(number=identifiers.parse_short_id(value))


def _by_email(value: str, merchants: Sequence[UUID]) -> Q:
    keys = [search_keys.build_email_key(merchant, value) for merchant in merchants]
    return Q(email_key__in=keys, request__customer__email__iexact=value)


def _by_name(value: str, merchants: Sequence[UUID]) -> Q:
    """Payments with all words of a name; each word by its key in each merchant."""
    found = Q()
    for word in search_keys.list_name_words([value]):
        keys = [key for merchant in merchants for key in search_keys.build_name_keys(merchant, [word])]
        found &= Q(name_keys__overlap=keys)
        if len(merchants) > 1:
            found &= Q(name_keys__contains=[search_keys.match_own_key(search_keys.NAME_KEY_KIND, word)])
    return found


def _parse_name(text: str) -> str | None:
    """One or more words of letters, as in Jones, or O'Neill-Smith, Mary."""
    return text if _NAME.fullmatch(text) and search_keys.list_name_words([text]) else None


def _parse_full_name(text: str) -> str | None:
    """At least two words: one alone may be an order number."""
    return text if " " in text and _parse_name(text) is not None else None


_NAME: Final = re.compile(r"[^\W\d_][^\d_@:/]{1,99}")


def _parse_iban(text: str) -> str | None:
    plain = text.replace(" ", "").upper()
    return plain if re.fullmatch(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", plain) else None


def _by_iban(value: str, merchants: Sequence[UUID]) -> Q:
    keys = [search_keys.build_last4_key(merchant, value) for merchant in merchants]
    return Q(last4_key__in=keys, means_fingerprint__in=current_vault().fingerprints(value))


def _parse_iban_end(text: str) -> str | None:
    """The end that a key is made of; behind a … that alone, as SearchTerm.typed has it."""
    if kept := re.fullmatch(rf"…([0-9]{{{search_keys.ACCOUNT_SUFFIX_CHARS}}})", text):
        return kept[1]
    plain = text.replace(" ", "").upper().lstrip("…•*.X")
    return plain[-search_keys.ACCOUNT_SUFFIX_CHARS :] if re.fullmatch(r"[A-Z0-9]{0,8}[0-9]{5,10}", plain) else None


def _by_iban_end(value: str, merchants: Sequence[UUID]) -> Q:
    return _by_last4_key(value, merchants) & Q(means="bankAccount")


def _by_last4_key(value: str, merchants: Sequence[UUID]) -> Q:
    """Payments with an account of this end."""
    found = Q(last4_key__in=[search_keys.build_last4_key(merchant, value) for merchant in merchants])
    if len(merchants) > 1:
        found &= Q(last4_key=search_keys.match_own_key(search_keys.LAST4_KEY_KIND, value))
    return found


def _by_acquirer_reference(value: str, _merchants: Sequence[UUID]) -> Q:
    return Q(connector_tx_id=value)


def _by_descriptor(value: str, _merchants: Sequence[UUID]) -> Q:
    return Q(request__descriptor__istartswith=value)


def parse_ndc_end(text: str) -> str | None:
    """The end of an ndc as lists show it, or more of it; None for any other text."""
    found = re.fullmatch(r"(?:…|\.\.\.)?([0-9a-f]{8,31})", text.lower())
    return found[1] if found else None


def _by_ndc_end(value: str, _merchants: Sequence[UUID]) -> Q:
    found = filter_by_ndc_end(RequestLog.objects.exclude(payment=None), value)
    return Q(pk__in=list(found.order_by("-pk").values_list("payment", flat=True)[:MAX_FOUND_REQUESTS]))


def filter_by_ndc_end(rows: QuerySet[RequestLog], end: str) -> QuerySet[RequestLog]:
    """The rows among the newest MAX_ENDED_REQUESTS of ``rows`` whose id ends like this: the ends have no index, which
    each request would pay for."""
    newest = RequestLog.objects.filter(pk__in=rows.order_by("-pk").values("pk")[:MAX_ENDED_REQUESTS])
    text = Replace(Cast("pk", TextField()), Value("-"), Value(""), output_field=TextField())
    return rows.filter(pk__in=newest.annotate(hex=text).filter(hex__endswith=end).values("pk"))


def _by_last_four(value: str, merchants: Sequence[UUID]) -> Q:
    # Only cards store digits in clear; other accounts match by the key alone.
    return _by_last4_key(value, merchants) & (Q(answer__card__last4Digits=value) | ~Q(answer__has_key="card"))


def _by_fingerprint(value: str, merchants: Sequence[UUID]) -> Q:
    last, _, digest = value.partition(":")
    keys = [search_keys.build_last4_key(merchant, last) for merchant in merchants]
    return Q(last4_key__in=keys, means_fingerprint=bytes.fromhex(digest))


def _by_reference(value: str, merchants: Sequence[UUID]) -> Q:
    return Q(merchant_id__in=merchants) & (Q(merchant_transaction_id=value) | Q(merchant_invoice_id=value))


def _by_reference_start(value: str, merchants: Sequence[UUID]) -> Q:
    # The condition on empty columns is that of the indexes.
    order = Q(merchant_transaction_id__startswith=value) & ~Q(merchant_transaction_id="")
    invoice = Q(merchant_invoice_id__startswith=value) & ~Q(merchant_invoice_id="")
    return Q(merchant_id__in=merchants) & (order | invoice)


_AMOUNT: Final = re.compile(r"([0-9]{1,10})(?:[.,]([0-9]{2}))?(?: ?([A-Z]{3}))?")


def _parse_search_amount(text: str) -> str | None:
    """An amount with its decimals or its currency: a number alone may be the end of a card, too."""
    return found if (found := _parse_any_amount(text)) and not text.isdecimal() else None


def _parse_any_amount(text: str) -> str | None:
    number, _, currency = text.upper().rpartition(" ") if text[-3:].isalpha() else (text, "", "")
    plain = " ".join(part for part in (read_typed_amount(number or text), currency) if part)
    found = _AMOUNT.fullmatch(plain.upper())
    if found is None:
        return None
    return " ".join(part for part in (f"{found[1]}.{found[2] or '00'}", found[3]) if part)


def _by_amount(value: str, _merchants: Sequence[UUID]) -> Q:
    amount, _, currency = value.partition(" ")
    asked = Q(amount=Decimal(amount)) | Q(approved_amount=Decimal(amount))
    return asked & Q(currency=currency) if currency else asked


def _by_asked_amount(value: str) -> Q:
    amount, _, currency = value.partition(" ")
    return Q(amount=Decimal(amount), currency=currency) if currency else Q(amount=Decimal(amount))


def _parse_search_id(text: str) -> str | None:
    plain = text.replace("-", "").lower() if len(text) in (32, 36) else ""
    return plain if identifiers.parse_id(plain) is not None else None


SEARCH_SHAPES: Final[tuple[SearchShape, ...]] = (
    SearchShape(
        name="id", about=lazy("the id of a payment, a registration or an authentication"), one=True,
        example="0190f3c4a1b27c3d9e4f5a6b7c8d9e0f", parse_value=_parse_search_id, where=_by_id,
    ),
    SearchShape(
        name="shortId", about=lazy("a shortId"), one=True, example="1234.5678.9012",
        parse_value=_match_pattern(r"[0-9]{4}\.[0-9]{4}\.[0-9]{4}"), where=_by_short_id,
    ),
    SearchShape(
        name="ndc", about=lazy("the ndc of a request"), one=True, example="8a82…-0190…",
        parse_value=_match_pattern(r"[0-9a-f]{32}-[0-9a-f]{32}"), where=_by_ndc,
    ),
    SearchShape(
        name="iban", about=lazy("a whole IBAN"), example="DE89 3704 0044 0532 0130 00", parse_value=_parse_iban,
        where=_by_iban, shared=True,
    ),
    SearchShape(
        name="fingerprint", about=lazy("the fingerprint of a card"), example="4242:9f86d081884c7d659a2feaa0c55ad015",
        parse_value=_match_pattern(r".{4}:(?:[0-9a-f]{2}){10,32}"), where=_by_fingerprint, shared=True,
    ),
    SearchShape(
        name="email", about=lazy("the shopper's e-mail address"), example="jane@shop.example",
        parse_value=_match_pattern(r"[^@\s]+@[^@\s]+"), where=_by_email, shared=True,
    ),
    SearchShape(
        name="lastFour", about=lazy("the last four digits of a card or account"), example="4242",
        parse_value=_match_pattern(r"[0-9]{4}"), where=_by_last_four, shared=True,
    ),
    SearchShape(
        name="amount", about=lazy("an amount"), example="92.00 EUR", parse_value=_parse_search_amount, where=_by_amount,
        older=_by_asked_amount,
    ),
    SearchShape(
        name="amountOnly", about=lazy("an amount"), example="1500", parse_value=_parse_any_amount, where=_by_amount,
        older=_by_asked_amount, automatic=False,
    ),
    SearchShape(
        name="name", about=lazy("the name of a shopper or holder"), example="Jane Jones", parse_value=_parse_full_name,
        where=_by_name, shared=True,
    ),
    SearchShape(
        name="order", about=lazy("the order or invoice number"), example="order-4711",
        parse_value=_match_pattern(r"[^\0]{1,255}"), where=_by_reference,
    ),
    SearchShape(
        name="orderStart", about=lazy("the beginning of an order or invoice number"), example="order-47",
        parse_value=_match_pattern(r"[^\0]{4,255}"), where=_by_reference_start, automatic=False, shared=True,
    ),
    SearchShape(
        name="nameOnly", about=lazy("a word of the name of a shopper or holder"), example="Jones",
        parse_value=_parse_name, where=_by_name, automatic=False, shared=True,
    ),
    SearchShape(
        name="ibanEnd", about=lazy("the end of an IBAN or account number"), example="0130 00",
        parse_value=_parse_iban_end, where=_by_iban_end, automatic=False, shared=True,
    ),
    SearchShape(
        name="reference", about=lazy("the reference of the acquirer or bank"), example="ch_3Pq8s2",
        parse_value=_match_pattern(r"[A-Za-z0-9_.:/+=-]{6,64}"), where=_by_acquirer_reference, automatic=False,
        recent_only=True,
    ),
    SearchShape(
        name="ndcEnd", about=lazy("the end of an ndc"), example="…ff34c4218419", parse_value=parse_ndc_end,
        where=_by_ndc_end, automatic=False,
    ),
    SearchShape(
        name="descriptor", about=lazy("the beginning of the text on the statement (descriptor)"),
        example="Tea shop 4711", parse_value=_match_pattern(r"[^\0]{3,127}"), where=_by_descriptor,
        automatic=False, recent_only=True,
    ),
)  # fmt: skip
"""In the order in which a text is tried; the last automatic one accepts every text."""
SHAPE_BY_NAME: Final[Mapping[str, SearchShape]] = {shape.name: shape for shape in SEARCH_SHAPES}
_PREFIXES: Final[Mapping[str, str]] = MappingProxyType({"amount": "amountOnly", "name": "nameOnly"})
"""Prefix → the shape that reads what follows it, where that is not the one of the same name."""
MAX_SEARCH_CHARS: Final = 255
MAX_PREFIX_CHARS: Final = 20
"""Characters before a text of MAX_SEARCH_CHARS: the name of its shape and a colon."""


def parse_search_term(text: str) -> SearchTerm:
    """Recognise the shape of a text; a prefix such as ``email:`` chooses it, and a wrong value behind one is ``wrong``.
    Raises FullCardNumberError."""
    text = text.strip()[: MAX_SEARCH_CHARS + MAX_PREFIX_CHARS].replace("\0", "")
    if contains_card_number(text):
        raise FullCardNumberError
    if not text:
        return SearchTerm()
    name, colon, rest = text.partition(":")
    chosen = SHAPE_BY_NAME.get(_PREFIXES.get(name, name)) if colon else None
    text, rest = text[:MAX_SEARCH_CHARS], rest[:MAX_SEARCH_CHARS]
    if chosen is not None:
        value = chosen.parse_value(rest.strip())
        return SearchTerm(shape=chosen.name, value=value) if value is not None else SearchTerm(wrong=name, value=rest)
    for shape in SEARCH_SHAPES:
        if shape.automatic and (value := shape.parse_value(text)) is not None:
            return SearchTerm(shape=shape.name, value=value)
    return SearchTerm(shape="order", value=text)


def list_search_readings(text: str) -> list[SearchTerm]:
    """All that a text may be, the likeliest first: 1500 is the end of a card, an amount and an order number. Raises
    FullCardNumberError."""
    first = parse_search_term(text)
    if not first.shape or ":" in text or SHAPE_BY_NAME[first.shape].one:
        return [first] if first.shape else []
    text, found = text.strip()[:MAX_SEARCH_CHARS].replace("\0", ""), [first]
    for shape in SEARCH_SHAPES:
        value = shape.parse_value(text)
        known = {(shape, one.value) for one in found for shape in (one.shape, _PREFIXES.get(one.shape))}
        if value is not None and (shape.name, value) not in known:
            found.append(SearchTerm(shape=shape.name, value=value))
    return found


FALLBACK_SHAPES: Final = ("orderStart", "nameOnly", "ndcEnd", "ibanEnd", "reference")
"""What a text may be that no payment has as its order or invoice number, by rising cost."""


def list_fallback_terms(text: str) -> list[SearchTerm]:
    """Readings of a text that no order or invoice number equals."""
    read = ((name, SHAPE_BY_NAME[name].parse_value(text)) for name in FALLBACK_SHAPES)
    return [SearchTerm(shape=name, value=value) for name, value in read if value is not None]


def is_costly(term: SearchTerm) -> bool:
    """Whether the newest rows are read one by one for it, so that it is tried where nothing else was found."""
    return bool(term.shape) and (SHAPE_BY_NAME[term.shape].recent_only or term.shape == "ndcEnd")

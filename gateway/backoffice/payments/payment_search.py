"""Payment search: by id, order number, card digits, amount, e-mail and more, in keyset pages without counting.

There is one box: a text is recognised by its shape (SEARCH_SHAPES), and each shape reads one index. PaymentFilters
narrow a list. Every page costs the same; a query over SEARCH_TIMEOUT_MS is cancelled with a hint. Full card numbers are
neither searched nor stored: see FULL_CARD_NUMBER_TEXT. Source: docs/decisions/0025.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.db import OperationalError, connections, models, transaction
from django.db.models import Q, QuerySet, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Replace
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as lazy
from psycopg.errors import QueryCanceled

from gateway.access.permissions import AccessScope, RowOwner
from gateway.backoffice.kit.formatting import read_typed_amount
from gateway.backoffice.kit.periods import CLOCK_TOLERANCE
from gateway.backoffice.payments.payment_filters import PaymentFilters
from gateway.core import clock, identifiers
from gateway.core.identifiers import first_id_at
from gateway.core.masking import contains_card_number
from gateway.db.standby import choose_read_alias
from gateway.models import ArchivedPayment, Authentication, Channel, Merchant, Payment, Registration, RequestLog
from gateway.payments import search_keys
from gateway.payments.chain_amounts import ZERO_AMOUNT
from gateway.payments.chain_states import has_stored_state
from gateway.payments.payment_archive import (
    MIN_PAYMENT_HOT_DAYS,
    find_archived_number,
    find_archived_payment,
    has_archive,
    list_archived_payments,
    list_archived_references,
)
from gateway.vault.sealing import current_vault

SEARCH_PAGE_ROWS: Final = 50
"""Rows of one page."""
MAX_MERGED_MERCHANTS: Final = 20
"""Up to so many merchants are read by one index each and merged; with more, the newest rows of all are read."""
MAX_SEARCHED_MERCHANTS: Final = 10_000
"""Merchants that one search by a search key covers."""
SEARCH_TIMEOUT_MS: Final = 3_000
"""Statement timeout of a search, in milliseconds."""
MAX_SHARED_VALUE_ROWS: Final = 5_000
"""A value that many payments share is first searched among so many of the newest."""
AMOUNT_SEARCH_WINDOW: Final = timedelta(days=366)
"""How far back an amount is searched if no dates are chosen."""
MAX_RECENT_ROWS: Final = 20_000
"""Among so many of the newest payments a value without an index is looked for."""
MAX_ENDED_REQUESTS: Final = 100_000
"""The newest requests, among which the end of an ndc is looked for."""
MAX_FOUND_REQUESTS: Final = 20
MAX_SORTED_PAYMENTS: Final = 10_000
"""Payments of a list that may be ordered by any column."""
MAX_SUMMED_PAYMENTS: Final = 100_000
"""Payments of a list that are summed on its page."""
MAX_AMOUNT_ROWS: Final = 20_000
"""Among so many of the newest rows an amount is compared one by one, with requested and approved amounts; among older
ones by the index payment_amount (BRIN), which has requested amounts only."""


class SearchTooBroadError(Exception):
    """The query ran into SEARCH_TIMEOUT_MS; the dates have to be narrowed."""


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
class SearchPage:
    """Payments, newest first. ``after``: cursor of the next page, '' on the last one. ``sure``: the search names
    exactly one payment."""

    rows: Sequence[Payment]
    after: str = ""
    sure: bool = False


# --- the one box --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchShape:
    """A kind of text that may be typed. ``parse_value``: the value, or None if the text is not of this kind; ``where``:
    the condition on payments; ``one``: it names a single payment; ``automatic``: a text is taken for it without a
    prefix; ``older``: the condition on older rows, for kinds with a time window; ``shared``: any number of payments may
    have it; ``recent_only``: no index has it, so it is looked for among the newest MAX_RECENT_ROWS or in the
    chosen days."""

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
        parse_value=_match_pattern(r"[^\0]{4,255}"), where=_by_reference_start, automatic=False,
    ),
    SearchShape(
        name="nameOnly", about=lazy("the name of a shopper or holder"), example="Jones", parse_value=_parse_name,
        where=_by_name, automatic=False, shared=True,
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
_BY_NAME: Final[Mapping[str, SearchShape]] = {shape.name: shape for shape in SEARCH_SHAPES}
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
    chosen = _BY_NAME.get(_PREFIXES.get(name, name)) if colon else None
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
    if not first.shape or ":" in text or _BY_NAME[first.shape].one:
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
    read = ((name, _BY_NAME[name].parse_value(text)) for name in FALLBACK_SHAPES)
    return [SearchTerm(shape=name, value=value) for name, value in read if value is not None]


def is_costly(term: SearchTerm) -> bool:
    """Whether the newest rows are read one by one for it, so that it is tried where nothing else was found."""
    return bool(term.shape) and (_BY_NAME[term.shape].recent_only or term.shape == "ndcEnd")


# --- the whole list -----------------------------------------------------------------------------------------------


class TooManyToSortError(Exception):
    """The list has more than MAX_SORTED_PAYMENTS payments: it has to be narrowed before it can be ordered."""


TO_SHOPPER_TYPES: Final = frozenset({"RF", "CD", "CB"})
"""Payments whose money goes to the shopper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrencySum:
    """What a list has in one currency: number of payments, what was asked for, and what was approved; ``to_shoppers``:
    what of it went to shoppers, which a reader would take for income."""

    currency: str
    number: int
    amount: Decimal
    approved: Decimal
    to_shoppers: Decimal


def sum_payments(scope: AccessScope, asked: SearchTerm, filters: PaymentFilters) -> tuple[list[CurrencySum], bool]:
    """What the list sums to by currency, and whether that is all of it: of more than MAX_SUMMED_PAYMENTS, the newest
    are summed. Raises SearchTooBroadError."""
    found: dict[str, tuple[Any, ...]] = {}
    with limit_search_time():
        for rows in _select_whole_list(scope, asked, filters):
            listed = rows.values("currency", "amount", "approved_amount", "payment_type")[:MAX_SUMMED_PAYMENTS]
            sql, bound = listed.query.sql_with_params()
            with connections[choose_read_alias()].cursor() as cursor:
                cursor.execute(
                    "SELECT currency, count(*), sum(amount), coalesce(sum(approved_amount), 0), "  # noqa: S608 - Django's own SQL
                    "coalesce(sum(approved_amount) FILTER (WHERE payment_type = ANY(%s)), 0) "
                    f"FROM ({sql}) AS listed GROUP BY currency",
                    [sorted(TO_SHOPPER_TYPES), *bound],
                )
                for currency, *values in cursor.fetchall():
                    before = found.get(currency, (0, ZERO_AMOUNT, ZERO_AMOUNT, ZERO_AMOUNT))
                    found[currency] = tuple(old + new for old, new in zip(before, values, strict=True))
    sums = [
        CurrencySum(currency=currency, number=number, amount=amount, approved=approved, to_shoppers=back)
        for currency, (number, amount, approved, back) in sorted(found.items())
    ]
    return sums, sum(one.number for one in sums) < MAX_SUMMED_PAYMENTS


def sum_rows(rows: Sequence[Payment]) -> list[CurrencySum]:
    """What some payments sum to by currency."""
    found: dict[str, list[Payment]] = {}
    for row in rows:
        found.setdefault(row.currency, []).append(row)
    return [
        CurrencySum(
            currency=currency,
            number=len(own),
            amount=sum((row.amount for row in own), ZERO_AMOUNT),
            approved=sum((row.approved_amount or ZERO_AMOUNT for row in own), ZERO_AMOUNT),
            to_shoppers=sum(
                (row.approved_amount or ZERO_AMOUNT for row in own if row.payment_type in TO_SHOPPER_TYPES), ZERO_AMOUNT
            ),
        )
        for currency, own in sorted(found.items())
    ]


def find_sorted_page(
    scope: AccessScope, asked: SearchTerm, filters: PaymentFilters, order: str, *, place: int, size: int
) -> SearchPage:
    """The page of ``size`` payments from number ``place`` on, in the order of a column (``-`` before it: descending).
    ``after`` is the number of the next page's first. Raises SearchTooBroadError and TooManyToSortError."""
    column = order.removeprefix("-")
    with limit_search_time():
        keys: list[tuple[UUID, Any]] = []
        for rows in _select_whole_list(scope, asked, filters):
            keys += rows.values_list("pk", column)[: MAX_SORTED_PAYMENTS + 1]
            if len(keys) > MAX_SORTED_PAYMENTS:
                raise TooManyToSortError
        chosen = sorted((key for key in keys if key[1] is not None), key=_sort_key, reverse=order.startswith("-"))
        chosen += [key for key in keys if key[1] is None]
        page = _load_in_order([pk for pk, _value in chosen[place : place + size]])
    return SearchPage(rows=page, after=str(place + size) if len(chosen) > place + size else "")


def _sort_key(key: tuple[UUID, Any]) -> tuple[Any, UUID]:
    pk, value = key
    return (value.casefold() if isinstance(value, str) else value, pk)


def _select_whole_list(scope: AccessScope, asked: SearchTerm, filters: PaymentFilters) -> list[QuerySet[Payment]]:
    """All rows of a list, newest first, as queries that an index answers in that order."""
    if asked.shape:
        found = Payment.objects.filter(build_search_condition(scope, asked, filters))
        return [found.order_by("-created_at", "-id")]
    merchants = _list_few_merchants(scope, filters)
    if merchants is not None:
        return [_select_of_merchant(scope, filters.where(), filters, merchant) for merchant in merchants]
    rows = Payment.objects.filter(scope.where()).filter(filters.where())
    if filters.since is not None:
        rows = rows.filter(pk__gte=first_id_at(filters.since - _find_largest_clock_offset()))
    if filters.until is not None:
        rows = rows.filter(pk__lt=first_id_at(filters.until))
    return [rows.order_by("-standing__chain" if has_stored_state(filters.state) else "-id")]


# --- a page -------------------------------------------------------------------------------------------------------


def find_payments_page(
    scope: AccessScope, asked: SearchTerm, filters: PaymentFilters, *, after: str = "", size: int = SEARCH_PAGE_ROWS
) -> SearchPage:
    """One page of the payments in ``scope``. ``after``: the cursor; an invalid one gives the first page. Raises
    SearchTooBroadError."""
    place = PageCursor.read(after)
    with limit_search_time():
        if asked.shape:
            return _find_by_shape(scope, asked, filters, place, size)
        return _list_newest(scope, filters, place, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCursor:
    """Cursor of a page: time and id of the last row before it."""

    at: datetime
    id: UUID

    @classmethod
    def read(cls, text: str) -> PageCursor | None:
        at, _, ident = text.partition("_")
        found = identifiers.parse_id(ident)
        try:
            return cls(at=datetime.fromisoformat(at).astimezone(UTC), id=found) if found is not None else None
        except (ValueError, OverflowError):
            return None

    @classmethod
    def of(cls, row: Payment) -> PageCursor:
        return cls(at=row.created_at, id=row.id)

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id.hex}"

    def time_condition(self) -> Q:
        """The condition on rows after the cursor."""
        return Q(created_at__lte=self.at) & (Q(created_at__lt=self.at) | Q(pk__lt=self.id))


def build_search_condition(scope: AccessScope, asked: SearchTerm, filters: PaymentFilters) -> Q:
    """The condition on all rows of a list, in any order: for exports."""
    found = scope.where() & filters.where()
    if asked.shape:
        found &= _BY_NAME[asked.shape].where(asked.value, _list_searched_merchants(scope, filters))
        if _BY_NAME[asked.shape].has_time_window and filters.since is None:
            found &= Q(created_at__gte=clock.real_now() - AMOUNT_SEARCH_WINDOW)
        if _BY_NAME[asked.shape].recent_only and (since := _find_searched_start(scope, filters)) is not None:
            found &= Q(created_at__gte=since)
    return found


ARCHIVED_SHAPES: Final = ("id", "shortId", "order")
"""Shapes of texts that find archived payments, too."""


def find_archived_payments(scope: AccessScope, asked: SearchTerm, filters: PaymentFilters) -> list[Payment]:
    """The archived payments in ``scope`` with the id, short id, order or invoice number that is asked for, newest
    first."""
    found: list[Payment | None] = []
    if asked.shape == "id":
        found = [find_archived_payment(identifiers.parse_id(asked.value), None)]
    elif asked.shape == "shortId":
        found = [find_archived_number(None, None, identifiers.parse_short_id(asked.value) or 0)]
    elif asked.shape == "order" and has_archive():
        found = [*list_archived_references(_list_searched_merchants(scope, filters), asked.value)]
    return [
        one
        for one in found
        if one is not None and scope.covers(RowOwner(merchant=one.merchant_id, channel=one.channel_id))
    ]


def find_archived_since(filters: PaymentFilters) -> datetime | None:
    """Before when payments of a list may be archived; None if none of its days can be, or no archive is kept."""
    if not has_archive():
        return None
    hot_since = clock.real_now() - timedelta(days=MIN_PAYMENT_HOT_DAYS)
    since = filters.since or filters.real_since
    return hot_since if since is None or since < hot_since + _find_largest_clock_offset() else None


def find_archived_page(
    scope: AccessScope, filters: PaymentFilters, *, after: str = "", size: int = SEARCH_PAGE_ROWS
) -> SearchPage:
    """One page of the archived payments in ``scope``, newest first, as :func:`find_payments_page`. The filters are
    without a chain's state, which the archive does not have. Raises SearchTooBroadError."""
    place = PageCursor.read(after)
    with limit_search_time():
        rows = _select_archived(scope, filters)
        if place is not None:
            rows = rows.filter(place.time_condition())
        channels = _list_few_channels(scope, filters)
        # An index has each channel's in this order; of many channels the newest of all are read.
        each = [rows] if channels is None else [rows.filter(channel=channel) for channel in channels]
        keys = [
            key
            for query in each
            for key in query.order_by("-created_at", "-id").values_list("created_at", "pk")[: size + 1]
        ]
        chosen = sorted(keys, reverse=True)[: size + 1]
        by_key = {row.pk: row for row in list_archived_payments([pk for _at, pk in chosen])}
    # A payment that was brought back meanwhile is missing from the page; those after it are not.
    last = PageCursor(at=chosen[size - 1][0], id=chosen[size - 1][1]) if len(chosen) > size else None
    rows_shown = [by_key[pk] for _at, pk in chosen[:size] if pk in by_key]
    return SearchPage(rows=rows_shown, after=str(last) if last is not None else "")


_ARCHIVED_VALUES: Final = (
    "status", "brand", "currency", "test_mode", "connector", "acquirer_merchant_id", "result_code",
)  # fmt: skip
"""What filters ask for that the archive has in ``row`` alone."""


def _select_archived(scope: AccessScope, filters: PaymentFilters) -> QuerySet[ArchivedPayment]:
    """The archived payments of the filters, with what they ask for under the names that it has among payments."""
    rows = ArchivedPayment.objects.using(choose_read_alias()).annotate(
        **{name: KT(f"row__{name}") for name in _ARCHIVED_VALUES},
        amount=Cast(KT("row__amount"), models.DecimalField(max_digits=14, decimal_places=2)),
    )
    # Partitions are by ids, which follow real time.
    if filters.since is not None:
        rows = rows.filter(pk__gte=first_id_at(filters.since - _find_largest_clock_offset()))
    if filters.until is not None:
        rows = rows.filter(pk__lt=first_id_at(filters.until + CLOCK_TOLERANCE))
    return rows.filter(scope.where()).filter(filters.where())


def _list_few_channels(scope: AccessScope, filters: PaymentFilters) -> list[UUID] | None:
    """The channels of the list, if they are at most MAX_MERGED_MERCHANTS."""
    rows = Channel.objects.filter(scope.where("merchant", "pk"))
    if filters.merchant is not None:
        rows = rows.filter(merchant=filters.merchant)
    if filters.channel is not None:
        rows = rows.filter(pk=filters.channel)
    found = list(rows.values_list("pk", flat=True)[: MAX_MERGED_MERCHANTS + 1])
    return found if len(found) <= MAX_MERGED_MERCHANTS else None


def _find_by_shape(
    scope: AccessScope, asked: SearchTerm, filters: PaymentFilters, place: PageCursor | None, size: int
) -> SearchPage:
    shape = _BY_NAME[asked.shape]
    if shape.older is not None:
        return _find_over_time(scope, shape.where(asked.value, ()), shape.older(asked.value), filters, place, size)
    where = shape.where(asked.value, _list_searched_merchants(scope, filters))
    if shape.recent_only:
        return _list_newest(scope, filters, place, size, since=_find_searched_start(scope, filters), also=where)
    if (
        shape.shared
        and (since := _find_recent_start(_list_few_merchants(scope, filters), place, MAX_SHARED_VALUE_ROWS)) is not None
    ):
        newest = _list_newest(scope, filters, place, size, since=since, also=where)
        if newest.after:
            return newest
    rows = _select_shown().filter(scope.where()).filter(where).filter(filters.where())
    if place is not None:
        rows = rows.filter(place.time_condition())
    found = list(rows.order_by("-created_at", "-id")[: size + 1])
    cut = _build_page(found, size)
    return SearchPage(rows=cut.rows, after=cut.after, sure=shape.one and len(found) == 1)


def _find_searched_start(scope: AccessScope, filters: PaymentFilters) -> datetime | None:
    """Since when a value without an index is looked for; None: among all payments, which are few, or the chosen
    days."""
    if filters.since is not None or filters.real_since is not None:
        return None
    merchants = _list_few_merchants(scope, filters)
    return _find_recent_start(merchants, None, MAX_RECENT_ROWS // max(1, len(merchants or ())))


def _find_over_time(
    scope: AccessScope, where: Q, older: Q, filters: PaymentFilters, place: PageCursor | None, size: int
) -> SearchPage:
    """Rows with an amount: the newest compared one by one along the index of times, older ones by ``older`` and the
    index payment_amount. That index has no order, so its rows are sorted; an amount that many payments share fills its
    page from the newest and does not get there."""
    within = filters.since or clock.real_now() - AMOUNT_SEARCH_WINDOW
    merchants = _list_few_merchants(scope, filters)
    recently = _find_recent_start(merchants, place, MAX_AMOUNT_ROWS // max(1, len(merchants or ())))
    newest = _list_newest(scope, filters, place, size, since=max(within, recently or within), also=where)
    if newest.after or recently is None or recently <= within:
        return newest
    rows = Payment.objects.filter(scope.where()).filter(filters.where()).filter(older)
    rows = rows.filter(created_at__gte=within, created_at__lt=recently)
    if place is not None:
        rows = rows.filter(place.time_condition())
    # An order that no index has; otherwise the planner walks one of them over all payments of a merchant.
    at = models.ExpressionWrapper(models.F("created_at") + timedelta(0), models.DateTimeField())
    keys = list(rows.order_by(at.desc(), "-id").values_list("pk", flat=True)[: size + 1 - len(newest.rows)])
    return _build_page([*newest.rows, *_load_in_order(keys)], size)


def _list_newest(
    scope: AccessScope,
    filters: PaymentFilters,
    place: PageCursor | None,
    size: int,
    *,
    since: datetime | None = None,
    also: Q | None = None,
) -> SearchPage:
    """The newest rows, by an index in that order."""
    where = filters.where()
    if since is not None:
        where &= Q(created_at__gte=since)
    if also is not None:
        where &= also
    merchants = _list_few_merchants(scope, filters)
    if merchants is None:
        return _list_newest_of_all(scope, where, filters, since, place, size)
    if place is not None:
        where &= place.time_condition()
    each = [
        _select_of_merchant(scope, where, filters, merchant).values_list("pk", "created_at")[: size + 1]
        for merchant in merchants
    ]
    if not each:
        return SearchPage(rows=[])
    keys = [key for query in each for key in query]
    chosen = [pk for pk, _ in sorted(keys, key=lambda key: (key[1], key[0]), reverse=True)[: size + 1]]
    return _build_page(_load_in_order(chosen), size)


def _select_of_merchant(scope: AccessScope, where: Q, filters: PaymentFilters, merchant: UUID) -> QuerySet[Payment]:
    """The payments of one merchant, newest first, by an index in that order."""
    by_row = has_stored_state(filters.state)
    rows = Payment.objects.filter(merchant=merchant, **({"standing__merchant": merchant} if by_row else {}))
    order = ("-standing__created_at", "-standing__chain") if by_row else ("-created_at", "-id")
    return rows.filter(scope.where()).filter(where).order_by(*order)


def _list_newest_of_all(
    scope: AccessScope, where: Q, filters: PaymentFilters, since: datetime | None, place: PageCursor | None, size: int
) -> SearchPage:
    """The newest rows of more merchants than MAX_MERGED_MERCHANTS: by id, which follows real time."""
    rows = _select_shown().filter(scope.where()).filter(where)
    since = filters.since or since
    if since is not None:
        rows = rows.filter(pk__gte=first_id_at(since - _find_largest_clock_offset()))
    if filters.until is not None:
        rows = rows.filter(pk__lt=first_id_at(filters.until))
    if place is not None:
        rows = rows.filter(pk__lt=place.id)
    by_row = has_stored_state(filters.state)
    return _build_page(list(rows.order_by("-standing__chain" if by_row else "-id")[: size + 1]), size)


def _find_recent_start(merchants: Sequence[UUID] | None, place: PageCursor | None, count: int) -> datetime | None:
    """The time since which one of ``merchants`` (None: all together) has ``count`` payments before ``place``; None if
    they have fewer."""
    rows = Payment.objects.filter(created_at__lte=place.at) if place is not None else Payment.objects.all()
    if merchants is None:
        if place is not None:
            rows = Payment.objects.filter(pk__lt=place.id)
        return rows.order_by("-id").values_list("created_at", flat=True)[count : count + 1].first()
    found = [
        rows.filter(merchant=merchant)
        .order_by("-created_at")
        .values_list("created_at", flat=True)[count : count + 1]
        .first()
        for merchant in merchants
    ]
    return max((at for at in found if at is not None), default=None)


def _find_largest_clock_offset() -> timedelta:
    """The largest clock offset of a merchant in the test environment; ids follow real time."""
    found = Merchant.objects.aggregate(most=models.Max("clock_offset"))["most"]
    return max(found or timedelta(0), timedelta(0))


def _list_few_merchants(scope: AccessScope, filters: PaymentFilters) -> list[UUID] | None:
    """The merchants of the list, if they are at most MAX_MERGED_MERCHANTS."""
    if filters.merchant is not None:
        return [filters.merchant]
    if filters.channel is not None:
        return list(Merchant.objects.filter(channels=filters.channel).values_list("pk", flat=True))
    found = list(_select_reached_merchants(scope)[: MAX_MERGED_MERCHANTS + 1])
    return found if len(found) <= MAX_MERGED_MERCHANTS else None


def _list_searched_merchants(scope: AccessScope, filters: PaymentFilters) -> list[UUID]:
    few = _list_few_merchants(scope, filters)
    return few if few is not None else list(_select_reached_merchants(scope)[:MAX_SEARCHED_MERCHANTS])


def _select_reached_merchants(scope: AccessScope) -> QuerySet[Merchant, UUID]:
    return Merchant.objects.filter(scope.where("pk", "channels")).order_by("pk").distinct().values_list("pk", flat=True)


def _select_shown() -> QuerySet[Payment]:
    rows = Payment.objects.select_related("merchant", "channel", "standing")
    return rows.defer("request", "merchant_memo", "means_sealed", "means_fingerprint")


def _load_in_order(keys: Sequence[UUID]) -> list[Payment]:
    by_key = {row.pk: row for row in _select_shown().filter(pk__in=keys)}
    return [by_key[key] for key in keys if key in by_key]


def _build_page(found: list[Payment], size: int) -> SearchPage:
    return SearchPage(rows=found[:size], after=str(PageCursor.of(found[size - 1])) if len(found) > size else "")


@contextmanager
def limit_search_time() -> Iterator[None]:
    """Context in which statements are cancelled after SEARCH_TIMEOUT_MS. Raises SearchTooBroadError."""
    alias = choose_read_alias()
    try:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {SEARCH_TIMEOUT_MS}")
            yield
            cursor.execute("SET LOCAL statement_timeout = DEFAULT")
    except OperationalError as fault:
        if isinstance(fault.__cause__, QueryCanceled):
            raise SearchTooBroadError from None
        raise

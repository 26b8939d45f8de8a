"""Payment search: payments by whatever a clerk has in hand, by keyset pages without counting.

There is one box: a text is recognised by its shape (SEARCH_SHAPES), and each shape reads one index. PaymentFilters
narrow a list. Every page costs the same; a query over SEARCH_TIMEOUT_MS is cancelled with a hint. Full card numbers are
neither searched nor stored: see FULL_CARD_NUMBER_TEXT. Source: docs/decisions/0025.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db import OperationalError, connection, models, transaction
from django.db.models import Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as lazy
from psycopg.errors import QueryCanceled

from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.formatting import read_typed_amount
from gateway.backoffice.kit.real_time import first_id_at
from gateway.backoffice.payments.payment_filters import PaymentFilters
from gateway.core import clock, identifiers
from gateway.core.masking import contains_card_number
from gateway.models import Authentication, Merchant, Payment, Registration, RequestLog
from gateway.payments import search_keys
from gateway.payments.chain_states import is_found_by_row

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
        return f"{self.shape}:{self.value}"

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
    have it."""

    name: str
    about: str | Promise
    example: str
    parse_value: Callable[[str], str | None]
    where: Callable[[str, Sequence[UUID]], Q]
    one: bool = False
    automatic: bool = True
    older: Callable[[str], Q] | None = None
    shared: bool = False

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


def _by_last_four(value: str, merchants: Sequence[UUID]) -> Q:
    # Only cards store digits in clear; other accounts match by the key alone.
    keys = [search_keys.build_last4_key(merchant, value) for merchant in merchants]
    return Q(last4_key__in=keys) & (Q(answer__card__last4Digits=value) | ~Q(answer__has_key="card"))


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
        name="order", about=lazy("the order or invoice number"), example="order-4711",
        parse_value=_match_pattern(r"[^\0]{1,255}"), where=_by_reference,
    ),
    SearchShape(
        name="orderStart", about=lazy("the beginning of an order or invoice number"), example="order-47",
        parse_value=_match_pattern(r"[^\0]{4,255}"), where=_by_reference_start, automatic=False,
    ),
)  # fmt: skip
"""In the order in which a text is tried; the last automatic one accepts every text."""
_BY_NAME: Final[Mapping[str, SearchShape]] = {shape.name: shape for shape in SEARCH_SHAPES}
_PREFIXES: Final[Mapping[str, str]] = MappingProxyType({"amount": "amountOnly"})
"""Prefix → the shape that reads what follows it, where that is not the one of the same name."""
MAX_SEARCH_CHARS: Final = 255


def parse_search_term(text: str) -> SearchTerm:
    """Recognise the shape of a text; a prefix such as ``email:`` chooses it, and a wrong value behind one is ``wrong``.
    Raises FullCardNumberError."""
    text = text.strip()[:MAX_SEARCH_CHARS].replace("\0", "")
    if contains_card_number(text):
        raise FullCardNumberError
    if not text:
        return SearchTerm()
    name, colon, rest = text.partition(":")
    chosen = _BY_NAME.get(_PREFIXES.get(name, name)) if colon else None
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
        known = {(one.shape, one.value) for one in found} | {("amountOnly", one.value) for one in found}
        if value is not None and (shape.name, value) not in known:
            found.append(SearchTerm(shape=shape.name, value=value))
    return found


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
            return cls(at=datetime.fromisoformat(at), id=found) if found is not None else None
        except ValueError:
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
    return found


def _find_by_shape(
    scope: AccessScope, asked: SearchTerm, filters: PaymentFilters, place: PageCursor | None, size: int
) -> SearchPage:
    shape = _BY_NAME[asked.shape]
    if shape.older is not None:
        return _find_over_time(scope, shape.where(asked.value, ()), shape.older(asked.value), filters, place, size)
    where = shape.where(asked.value, _list_searched_merchants(scope, filters))
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
    by_row = is_found_by_row(filters.state)
    order = ("-standing__created_at", "-standing__chain") if by_row else ("-created_at", "-id")
    each = [
        Payment.objects.filter(merchant=merchant, **({"standing__merchant": merchant} if by_row else {}))
        .filter(scope.where())
        .filter(where)
        .order_by(*order)
        .values_list("pk", "created_at")[: size + 1]
        for merchant in merchants
    ]
    if not each:
        return SearchPage(rows=[])
    keys = [key for query in each for key in query]
    chosen = [pk for pk, _ in sorted(keys, key=lambda key: (key[1], key[0]), reverse=True)[: size + 1]]
    return _build_page(_load_in_order(chosen), size)


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
    by_row = is_found_by_row(filters.state)
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
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {SEARCH_TIMEOUT_MS}")
            yield
            cursor.execute("SET LOCAL statement_timeout = DEFAULT")
    except OperationalError as fault:
        if isinstance(fault.__cause__, QueryCanceled):
            raise SearchTooBroadError from None
        raise

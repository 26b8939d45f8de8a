"""Payments found by what a clerk has in hand, page by page, without counting.

One box: what was typed is recognised by its shape (SHAPES), each shape asks one index. Filters narrow a list. A list is
read by keyset: a page costs the same wherever it is, and what takes longer than PATIENCE_MS is given up with a hint.
A full card number is never looked for, nor kept: see FULL_NUMBER. Source: design, J4; docs/decisions/0025.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db import OperationalError, connection, models, transaction
from django.db.models import Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as lazy
from psycopg.errors import QueryCanceled

from gateway import clock, identifiers
from gateway.desk.filters import Filters
from gateway.masking import looks_like_pan, mask_text
from gateway.models import Authentication, Merchant, Payment, Registration, RequestLog
from gateway.payments import finding
from gateway.rights import Scope

PAGE: Final = 50
"""Rows of one page."""
EACH_AT_MOST: Final = 20
"""Merchants whose rows are read one index each and merged; more are read off the newest rows of all."""
MERCHANTS_AT_MOST: Final = 10_000
"""Merchants that one search by a key goes over."""
PATIENCE_MS: Final = 3_000
"""How long the database may look, milliseconds."""
NEWEST_FIRST: Final = 5_000
"""A value that many payments share is looked for among so many of the newest first."""
AMOUNT_WITHIN: Final = timedelta(days=366)
"""How far back an amount is looked for when no dates are chosen."""
AMOUNT_NEWEST: Final = 20_000
"""An amount is looked for among so many of the newest one by one, what was approved of it as well; among older ones by
the summaries of payment_amount, which know what was asked for."""


class TooMuch(Exception):
    """The database had to look at too many rows: narrow the dates."""


class FullNumber(Exception):
    """A whole card number was typed. It is not looked for, and nothing may repeat it."""


FULL_NUMBER: Final = (
    "That is a whole card number, which is neither looked for nor kept. Search for its last four digits instead."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to look for: ``shape`` names a row of SHAPES ('' for none), ``value`` what was typed, as that row reads
    it."""

    shape: str = ""
    value: str = ""

    @property
    def about(self) -> str:
        return next((str(shape.about) for shape in SHAPES if shape.name == self.shape), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Payments, newest first. ``after``: what the next page is asked with; '' on the last one. ``sure``: what was
    asked for names one payment, so that there is nothing to choose."""

    rows: Sequence[Payment]
    after: str = ""
    sure: bool = False


# --- the one box --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of thing that may be typed. ``reads``: the value, or None when the text is none of this kind.
    ``where``: which payments are meant. ``one``: it names one payment. ``over_time``: it is looked for within some
    time, among older ones by ``older``. ``shared``: any number of payments may have it."""

    name: str
    about: str | Promise
    example: str
    reads: Callable[[str], str | None]
    where: Callable[[str, Sequence[UUID]], Q]
    one: bool = False
    older: Callable[[str], Q] | None = None
    shared: bool = False

    @property
    def over_time(self) -> bool:
        return self.older is not None


def _matching(pattern: str) -> Callable[[str], str | None]:
    compiled = re.compile(pattern)
    return lambda text: text if compiled.fullmatch(text) else None


def _by_id(value: str, merchants: Sequence[UUID]) -> Q:
    """A payment's id; else a registration's or an authentication's."""
    ident = UUID(value)
    if Payment.objects.filter(pk=ident).exists():
        return Q(pk=ident)
    registration = Registration.objects.filter(pk=ident).first()
    if registration is not None:
        return _by_registration(registration)
    behind = Authentication.objects.filter(pk=ident).values_list("payment", flat=True).first()
    return Q(pk=behind) if behind is not None else Q(pk__in=[])


def _by_registration(registration: Registration) -> Q:
    """What was paid with a registration, found through the last four of its account; at least what made it."""
    made = Q(pk=registration.payment)
    card = registration.details.get("card", {})
    if last := card.get("last4Digits"):
        key = finding.account_key(registration.merchant_id, last)
        return made | Q(account_key=key, registration=registration.pk)
    return made


def _by_ndc(value: str, merchants: Sequence[UUID]) -> Q:
    asked = identifiers.request_of_ndc(value)
    if asked is None:
        return Q(pk__in=[])
    logged = RequestLog.objects.filter(pk=asked).values_list("payment", flat=True).first()
    return Q(pk=logged) if logged is not None else Q(pk__in=[])


def _by_short_id(value: str, merchants: Sequence[UUID]) -> Q:
    return Q(number=identifiers.short_id_number(value))


def _by_email(value: str, merchants: Sequence[UUID]) -> Q:
    keys = [finding.email_key(merchant, value) for merchant in merchants]
    return Q(email_key__in=keys, request__customer__email__iexact=value)


def _by_last_four(value: str, merchants: Sequence[UUID]) -> Q:
    # Accounts other than cards keep no digits in clear; the key alone tells of those.
    keys = [finding.account_key(merchant, value) for merchant in merchants]
    return Q(account_key__in=keys) & (Q(answer__card__last4Digits=value) | ~Q(answer__has_key="card"))


def _by_fingerprint(value: str, merchants: Sequence[UUID]) -> Q:
    last, _, digest = value.partition(":")
    keys = [finding.account_key(merchant, last) for merchant in merchants]
    return Q(account_key__in=keys, means_fingerprint=bytes.fromhex(digest))


def _by_reference(value: str, merchants: Sequence[UUID]) -> Q:
    return Q(merchant_id__in=merchants) & (Q(merchant_transaction_id=value) | Q(merchant_invoice_id=value))


_AMOUNT: Final = re.compile(r"([0-9]{1,10})(?:[.,]([0-9]{2}))?(?: ?([A-Z]{3}))?")


def _amount(text: str) -> str | None:
    found = _AMOUNT.fullmatch(text.upper())
    if found is None or not (found[2] or found[3]):
        return None
    return " ".join(part for part in (f"{found[1]}.{found[2] or '00'}", found[3]) if part)


def _by_amount(value: str, merchants: Sequence[UUID]) -> Q:
    amount, _, currency = value.partition(" ")
    asked = Q(amount=Decimal(amount)) | Q(approved=Decimal(amount))
    return asked & Q(currency=currency) if currency else asked


def _by_asked_amount(value: str) -> Q:
    amount, _, currency = value.partition(" ")
    return Q(amount=Decimal(amount), currency=currency) if currency else Q(amount=Decimal(amount))


def _uuid(text: str) -> str | None:
    plain = text.replace("-", "").lower() if len(text) in (32, 36) else ""
    return plain if identifiers.parse_id(plain) is not None else None


SHAPES: Final[tuple[Shape, ...]] = (
    Shape(
        name="id", about=lazy("the id of a payment, a registration or an authentication"), one=True,
        example="0190f3c4a1b27c3d9e4f5a6b7c8d9e0f", reads=_uuid, where=_by_id,
    ),
    Shape(
        name="shortId", about=lazy("a shortId"), one=True, example="1234.5678.9012",
        reads=_matching(r"[0-9]{4}\.[0-9]{4}\.[0-9]{4}"), where=_by_short_id,
    ),
    Shape(
        name="ndc", about=lazy("the ndc of a request"), one=True, example="8a82…-0190…",
        reads=_matching(r"[0-9a-f]{32}-[0-9a-f]{32}"), where=_by_ndc,
    ),
    Shape(
        name="fingerprint", about=lazy("the fingerprint of a card"), example="4242:9f86d081884c7d659a2feaa0c55ad015",
        reads=_matching(r".{4}:(?:[0-9a-f]{2}){8,32}"), where=_by_fingerprint, shared=True,
    ),
    Shape(
        name="email", about=lazy("the shopper's e-mail address"), example="jane@shop.example",
        reads=_matching(r"[^@\s]+@[^@\s]+"), where=_by_email, shared=True,
    ),
    Shape(
        name="lastFour", about=lazy("the last four digits of a card or account"), example="4242",
        reads=_matching(r"[0-9]{4}"), where=_by_last_four, shared=True,
    ),
    Shape(
        name="amount", about=lazy("an amount"), example="92.00 EUR", reads=_amount, where=_by_amount,
        older=_by_asked_amount,
    ),
    Shape(
        name="order", about=lazy("the order or invoice number"), example="order-4711",
        reads=_matching(r"[^\0]{1,255}"), where=_by_reference,
    ),
)  # fmt: skip
"""In the order in which a text is tried; the last one takes what no other did."""
_BY_NAME: Final[Mapping[str, Shape]] = {shape.name: shape for shape in SHAPES}
TEXT_MAX_CHARS: Final = 255


def asked_for(text: str) -> Asked:
    """What was typed. A shape's name and a colon before it says which is meant. Raises FullNumber."""
    text = text.strip()[:TEXT_MAX_CHARS].replace("\0", "")
    if holds_full_number(text):
        raise FullNumber
    if not text:
        return Asked()
    name, colon, rest = text.partition(":")
    chosen = _BY_NAME.get(name) if colon else None
    if chosen is not None and (value := chosen.reads(rest.strip())) is not None:
        return Asked(shape=name, value=value)
    for shape in SHAPES:
        if (value := shape.reads(text)) is not None:
            return Asked(shape=shape.name, value=value)
    return Asked(shape="order", value=text)


def holds_full_number(text: str) -> bool:
    """Whether a whole card number stands in ``text``. Ids are none, whatever their digits."""
    if _uuid(text) is not None or _BY_NAME["ndc"].reads(text) is not None or _BY_NAME["fingerprint"].reads(text):
        return False
    plain = re.sub(r"[ \-.]", "", text)
    return (plain.isascii() and plain.isdecimal() and looks_like_pan(plain)) or mask_text(text) != text


# --- a page -------------------------------------------------------------------------------------------------------


def page(scope: Scope, asked: Asked, filters: Filters, *, after: str = "", size: int = PAGE) -> Page:
    """One page of what ``scope`` reaches. ``after``: where the page before ended; what is no such place begins anew.
    Raises TooMuch."""
    place = Place.read(after)
    with patience():
        if asked.shape:
            return _found(scope, asked, filters, place, size)
        return _listed(scope, filters, place, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page ended: the time and id of its last row."""

    at: datetime
    id: UUID

    @classmethod
    def read(cls, text: str) -> Place | None:
        at, _, ident = text.partition("_")
        found = identifiers.parse_id(ident)
        try:
            return cls(at=datetime.fromisoformat(at), id=found) if found is not None else None
        except ValueError:
            return None

    @classmethod
    def of(cls, row: Payment) -> Place:
        return cls(at=row.created_at, id=row.id)

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id.hex}"

    def by_time(self) -> Q:
        return Q(created_at__lte=self.at) & (Q(created_at__lt=self.at) | Q(pk__lt=self.id))


def meant(scope: Scope, asked: Asked, filters: Filters) -> Q:
    """The condition on every row of a list, whatever its order: for exports."""
    found = scope.where() & filters.where()
    if asked.shape:
        found &= _BY_NAME[asked.shape].where(asked.value, _merchants(scope, filters))
        if _BY_NAME[asked.shape].over_time and filters.since is None:
            found &= Q(created_at__gte=clock.real() - AMOUNT_WITHIN)
    return found


def _found(scope: Scope, asked: Asked, filters: Filters, place: Place | None, size: int) -> Page:
    shape = _BY_NAME[asked.shape]
    if shape.older is not None:
        return _over_time(scope, shape.where(asked.value, ()), shape.older(asked.value), filters, place, size)
    where = shape.where(asked.value, _merchants(scope, filters))
    if shape.shared and (since := _recently(_few(scope, filters), place, NEWEST_FIRST)) is not None:
        newest = _listed(scope, filters, place, size, since=since, also=where)
        if newest.after:
            return newest
    rows = _shown().filter(scope.where()).filter(where).filter(filters.where())
    if place is not None:
        rows = rows.filter(place.by_time())
    found = list(rows.order_by("-created_at", "-id")[: size + 1])
    cut = _cut(found, size)
    return Page(rows=cut.rows, after=cut.after, sure=shape.one and len(found) == 1)


def _over_time(scope: Scope, where: Q, older: Q, filters: Filters, place: Place | None, size: int) -> Page:
    """The newest one by one, off the index of times; behind them by ``older``, off the summaries of the table's pages:
    they give no order, so what they find is sorted, and what many payments share does not come to them."""
    within = filters.since or clock.real() - AMOUNT_WITHIN
    merchants = _few(scope, filters)
    recently = _recently(merchants, place, AMOUNT_NEWEST // max(1, len(merchants or ())))
    newest = _listed(scope, filters, place, size, since=max(within, recently or within), also=where)
    if newest.after or recently is None or recently <= within:
        return newest
    rows = Payment.objects.filter(scope.where()).filter(filters.where()).filter(older)
    rows = rows.filter(created_at__gte=within, created_at__lt=recently)
    if place is not None:
        rows = rows.filter(place.by_time())
    # An order that no index has: else the database walks one of them, for all payments of a merchant.
    at = models.ExpressionWrapper(models.F("created_at") + timedelta(0), models.DateTimeField())
    keys = list(rows.order_by(at.desc(), "-id").values_list("pk", flat=True)[: size + 1 - len(newest.rows)])
    return _cut([*newest.rows, *_in_order(keys)], size)


def _listed(
    scope: Scope,
    filters: Filters,
    place: Place | None,
    size: int,
    *,
    since: datetime | None = None,
    also: Q | None = None,
) -> Page:
    """The newest rows, off an index that has them in that order."""
    where = filters.where()
    if since is not None:
        where &= Q(created_at__gte=since)
    if also is not None:
        where &= also
    merchants = _few(scope, filters)
    if merchants is None:
        return _newest_of_all(scope, where, filters, since, place, size)
    if place is not None:
        where &= place.by_time()
    each = [
        Payment.objects.filter(merchant=merchant).filter(scope.where()).filter(where)
        .order_by("-created_at", "-id").values_list("pk", "created_at")[: size + 1]
        for merchant in merchants
    ]  # fmt: skip
    if not each:
        return Page(rows=[])
    keys = [key for query in each for key in query]
    chosen = [pk for pk, _ in sorted(keys, key=lambda key: (key[1], key[0]), reverse=True)[: size + 1]]
    return _cut(_in_order(chosen), size)


def _newest_of_all(
    scope: Scope, where: Q, filters: Filters, since: datetime | None, place: Place | None, size: int
) -> Page:
    """Of more merchants than are read one by one: by id, which follows the time of the world."""
    rows = _shown().filter(scope.where()).filter(where)
    since = filters.since or since
    if since is not None:
        rows = rows.filter(pk__gte=first_id(since - _furthest_ahead()))
    if filters.until is not None:
        rows = rows.filter(pk__lt=first_id(filters.until))
    if place is not None:
        rows = rows.filter(pk__lt=place.id)
    return _cut(list(rows.order_by("-id")[: size + 1]), size)


def _recently(merchants: Sequence[UUID] | None, place: Place | None, count: int) -> datetime | None:
    """Since when one of ``merchants``, None: all together, has ``count`` payments before ``place``; None where they
    have fewer."""
    rows = Payment.objects.filter(created_at__lte=place.at) if place is not None else Payment.objects.all()
    if merchants is None:
        if place is not None:
            rows = Payment.objects.filter(pk__lt=place.id)
        return rows.order_by("-id").values_list("created_at", flat=True)[count : count + 1].first()
    found = [
        rows.filter(merchant=merchant).order_by("-created_at").values_list("created_at", flat=True)
        [count : count + 1].first()
        for merchant in merchants
    ]  # fmt: skip
    return max((at for at in found if at is not None), default=None)


def first_id(at: datetime) -> UUID:
    """The smallest id that a row made at ``at``, real time, may have."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def _furthest_ahead() -> timedelta:
    """How far the test environment has moved the clock that is furthest ahead: rows have ids by real time."""
    found = Merchant.objects.aggregate(most=models.Max("clock_offset"))["most"]
    return max(found or timedelta(0), timedelta(0))


def _few(scope: Scope, filters: Filters) -> list[UUID] | None:
    """The merchants that are meant, if they are few."""
    if filters.merchant is not None:
        return [filters.merchant]
    if filters.channel is not None:
        return list(Merchant.objects.filter(channels=filters.channel).values_list("pk", flat=True))
    found = list(_reached(scope)[: EACH_AT_MOST + 1])
    return found if len(found) <= EACH_AT_MOST else None


def _merchants(scope: Scope, filters: Filters) -> list[UUID]:
    few = _few(scope, filters)
    return few if few is not None else list(_reached(scope)[:MERCHANTS_AT_MOST])


def _reached(scope: Scope) -> QuerySet[Merchant, UUID]:
    return Merchant.objects.filter(scope.where("pk", "channels")).order_by("pk").distinct().values_list("pk", flat=True)


def _shown() -> QuerySet[Payment]:
    rows = Payment.objects.select_related("merchant", "channel")
    return rows.defer("request", "merchant_memo", "means_sealed", "means_fingerprint")


def _in_order(keys: Sequence[UUID]) -> list[Payment]:
    by_key = {row.pk: row for row in _shown().filter(pk__in=keys)}
    return [by_key[key] for key in keys if key in by_key]


def _cut(found: list[Payment], size: int) -> Page:
    return Page(rows=found[:size], after=str(Place.of(found[size - 1])) if len(found) > size else "")


@contextmanager
def patience() -> Iterator[None]:
    """Statements inside are given up after PATIENCE_MS. Raises TooMuch."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {PATIENCE_MS}")
            yield
            cursor.execute("SET LOCAL statement_timeout = DEFAULT")
    except OperationalError as fault:
        if isinstance(fault.__cause__, QueryCanceled):
            raise TooMuch from None
        raise

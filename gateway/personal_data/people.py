"""Finds what is stored of one shopper of one merchant: by e-mail, customer id, telephone, registration or payment.

Nothing here joins people by a card or a name: families share both. An erasure takes what the merchant's own words name,
with the chains, registrations, schedules, checkouts and webhooks that hang on it. E-mail addresses have a search key;
telephone numbers and customer ids are looked for in all payments of the merchant, which may take minutes.
Source: docs/decisions/0102.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.db import models
from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.connectors.sepa.mandates import build_mandate_id, name_stored_mandate
from gateway.core import identifiers
from gateway.db.statement import execute_sql
from gateway.models import ErasureRequest, Merchant, Payment, Registration, SepaMandate, Status
from gateway.payments.mandate_mails import SEPA_DEBIT_BRAND, resolve_mandate_id
from gateway.payments.payment_archive import find_archived_payment
from gateway.payments.search_keys import build_email_key
from gateway.personal_data.table import (
    AUTHENTICATIONS,
    CHECKOUTS,
    JOB_RUNS,
    JOBS,
    MANDATES,
    PAYMENT_LINKS,
    PAYMENTS,
    PERSONAL_DATA,
    REGISTRATIONS,
    REQUESTS,
    PersonalTable,
)

PersonKind = ErasureRequest.Kind
MAX_PERSON_PAYMENTS: Final = 10_000
"""More than one shopper makes: an address that a shop gives everybody, for example."""
MAX_PERSON_VALUE_CHARS: Final = 128
MAX_PREVIEWED_ROWS: Final = 20_000
"""How many of the merchant's newest rows are looked through where all of them take too long for a page."""
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    PersonKind.EMAIL: ("customer.email", "shipping.customer.email", "shipping.email"),
    PersonKind.PHONE: (
        "customer.phone", "customer.mobile", "customer.workPhone", "shipping.phone", "shipping.mobile",
        "shipping.workPhone", "shipping.customer.phone", "shipping.customer.mobile", "shipping.customer.workPhone",
    ),
    PersonKind.CUSTOMER: ("customer.merchantCustomerId", "shipping.customer.merchantCustomerId"),
}  # fmt: skip
"""Parameters that name a person."""
_SHAPES: Final[Mapping[str, tuple[re.Pattern[str], str | Promise]]] = {
    PersonKind.EMAIL: (re.compile(r"[^@\s]+@[^@\s]+"), lazy("an e-mail address such as jane@shop.example")),
    PersonKind.PHONE: (re.compile(r"[+0-9][0-9 ()/.-]{4,24}"), lazy("a telephone number as it was sent")),
    PersonKind.CUSTOMER: (re.compile(r"\S.*"), lazy("a customer.merchantCustomerId")),
    PersonKind.REGISTRATION: (re.compile("[0-9a-f]{32}"), lazy("32 lower-case hex digits")),
    PersonKind.PAYMENT: (re.compile("[0-9a-f]{32}"), lazy("32 lower-case hex digits")),
}
_DOCUMENTS: Final[Mapping[str, str]] = {
    REGISTRATIONS: "request", JOBS: "request", CHECKOUTS: "request", PAYMENT_LINKS: "request",
    AUTHENTICATIONS: "request",
}  # fmt: skip
"""Models below payments whose own document can name the person, and that document."""
_FLAT: Final = frozenset({CHECKOUTS, PAYMENT_LINKS})
"""Models whose document has parameters by full name; the others are nested."""

_LOGGED: Final = """
SELECT r.id FROM gateway_requestlog r
WHERE r.entity_id = ANY(%(entities)s::uuid[]) AND jsonb_typeof(r.parameters) = 'array' AND EXISTS (
    SELECT 1 FROM jsonb_array_elements(r.parameters) AS sent(pair)
    WHERE sent.pair ->> 0 = ANY(%(parameters)s::text[]) AND lower(sent.pair ->> 1) = ANY(%(names)s::text[])
)
"""


KeyFinder = Callable[[], set[Any]]
KeyLookup = Callable[..., set[Any]]
"""Carries out a statement that may read all rows of a merchant: ``lookup(label, find, *fewer)`` with the label of the
model and what finds its keys; each of ``fewer`` (KeyFinder) finds some of them with less work. Returns the keys."""


def find_all_keys(_label: str, find: KeyFinder, *_fewer: KeyFinder) -> set[Any]:
    """The lookup of an erasure: however long it takes."""
    return find()


class PersonNotFoundError(Exception):
    """Nothing is stored of such a person, the value has a wrong form, or it is not one person. The text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSelector:
    """What a person is found by. ``kind``: one of PersonKind."""

    merchant: Merchant
    kind: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPerson:
    """The rows of one person: label of a model → keys."""

    merchant: Merchant
    rows: Mapping[str, frozenset[Any]]

    def ids(self, label: str) -> frozenset[Any]:
        """The keys of the person's rows of one model."""
        return self.rows.get(label, frozenset())


def parse_person(merchant: Merchant, kind: str, value: str) -> PersonSelector:
    """The selector of a person. Raises PersonNotFoundError for a value of a wrong form."""
    value = value.strip()
    shape, words = _SHAPES[kind]
    if len(value) > MAX_PERSON_VALUE_CHARS or not shape.fullmatch(value):
        fields = {"value": mask_person_value(value[:MAX_PERSON_VALUE_CHARS]), "words": words}
        raise PersonNotFoundError(_("“%(value)s” is not %(words)s.") % fields)
    return PersonSelector(merchant=merchant, kind=kind, value=value)


def mask_person_value(value: str) -> str:
    """The value as logs and reports may show it: its first character and its domain."""
    if identifiers.parse_id(value) is not None:
        return value
    local, at, domain = value.rpartition("@")
    return f"{local[:1]}•••{at}{domain}" if at else f"{value[:1]}•••"


def find_person(selector: PersonSelector, lookup: KeyLookup = find_all_keys) -> FoundPerson:
    """All rows of the table of personal data that are the person's; with another ``lookup`` those that it finds.
    Raises PersonNotFoundError."""
    seeds = _find_seeds(selector, lookup)
    payments = seeds[PAYMENTS] | _find_job_payments(seeds.get(JOBS, set()))
    payments = _expand_payments(selector.merchant, payments, seeds[REGISTRATIONS])
    _check_one_person(payments)
    made = Registration.objects.filter(merchant=selector.merchant, payment__in=payments)
    registrations = seeds[REGISTRATIONS] | set(made.values_list("pk", flat=True))
    registrations |= _find_used_registrations(selector, payments, seeds.get(JOBS, set()), registrations)
    payments = _expand_payments(selector.merchant, payments, registrations)
    _check_one_person(payments)
    named = {selector.kind: {selector.value.lower()}} if selector.kind in _PARAMETERS else {}
    return find_rows(selector.merchant, {**seeds, PAYMENTS: payments, REGISTRATIONS: registrations}, named, lookup)


def find_rows(
    merchant: Merchant,
    seeds: Mapping[str, set[Any]],
    named: Mapping[str, set[str]] = MappingProxyType({}),
    lookup: KeyLookup = find_all_keys,
) -> FoundPerson:
    """The rows that hang on ``seeds`` (label → keys) by the links of the table. ``named``: kind → the person's values,
    in lower case, by which requests without a payment are found; without an e-mail address in it, the addresses of the
    seeds count too. Raises PersonNotFoundError for none."""
    if PersonKind.EMAIL not in named:
        named = {**named, PersonKind.EMAIL: _read_emails(seeds)}
    found: dict[str, frozenset[Any]] = {label: frozenset(keys) for label, keys in seeds.items()}
    found[REQUESTS] = frozenset(lookup(REQUESTS, lambda: _find_logged_requests(merchant, named)))
    found[MANDATES] = frozenset(find_mandates(merchant.pk, seeds.get(PAYMENTS, set()), seeds.get(REGISTRATIONS, set())))
    for table in PERSONAL_DATA:
        if table.links:
            linked = _linked_rows(table, found).values_list("pk", flat=True)
            known: KeyFinder = partial(set, found.get(table.model, frozenset()))
            found[table.model] = frozenset(lookup(table.model, partial(set, linked), known))
    if not any(found.values()) and lookup is find_all_keys:
        raise PersonNotFoundError(_("Nothing is stored of this person at this merchant."))
    return FoundPerson(merchant=merchant, rows=found)


def load_rows(person: FoundPerson, table: PersonalTable) -> models.QuerySet[Any]:
    """The person's rows of one table."""
    rows: models.QuerySet[Any] = apps.get_model(table.model)._default_manager.filter(
        pk__in=list(person.ids(table.model))
    )
    return rows


def _find_seeds(selector: PersonSelector, lookup: KeyLookup) -> dict[str, set[Any]]:
    seeds: dict[str, set[Any]] = {PAYMENTS: set(), REGISTRATIONS: set()}
    if selector.kind in (PersonKind.PAYMENT, PersonKind.REGISTRATION):
        model, label = (Payment, PAYMENTS) if selector.kind == PersonKind.PAYMENT else (Registration, REGISTRATIONS)
        rows = model._default_manager.filter(pk=UUID(selector.value), merchant=selector.merchant)
        seeds[label] = set(rows.values_list("pk", flat=True))
        if not seeds[label]:
            if find_archived_payment(UUID(selector.value), selector.merchant.pk) is not None:
                raise PersonNotFoundError(_("Payment %s is archived: nothing personal is left of it.") % selector.value)
            raise PersonNotFoundError(_("This merchant has none with the id %s.") % selector.value)
        return seeds
    named = _names_in(selector, "request")
    payments = Payment.objects.filter(merchant=selector.merchant)
    if selector.kind == PersonKind.EMAIL:
        # Follow-ups have no key, but hang on the first payments. Those have it of customer.email only: to look for
        # an address of shipping would read all payments of the merchant.
        payments = payments.filter(email_key=build_email_key(selector.merchant.pk, selector.value))
    seeds[PAYMENTS] = lookup(PAYMENTS, *_list_seed_finders(payments, named, MAX_PERSON_PAYMENTS + 1))
    for label, document in _DOCUMENTS.items():
        rows = apps.get_model(label)._default_manager.filter(merchant=selector.merchant)
        named = _names_in(selector, document, flat=label in _FLAT)
        seeds[label] = lookup(label, *_list_seed_finders(rows, named))
    return seeds


def _list_seed_finders(rows: models.QuerySet[Any], named: Q, most: int | None = None) -> tuple[KeyFinder, KeyFinder]:
    """What finds those of the merchant's rows that name the person, and what finds them among the newest alone."""
    newest = rows.model._default_manager.filter(pk__in=rows.order_by("-pk").values("pk")[:MAX_PREVIEWED_ROWS])
    return partial(_load_keys, rows.filter(named), most), partial(_load_keys, newest.filter(named), most)


def _load_keys(rows: models.QuerySet[Any], most: int | None) -> set[Any]:
    return set(rows.values_list("pk", flat=True)[:most])


def _names_in(selector: PersonSelector, document: str, *, flat: bool = False) -> Q:
    """Whether a document names the person, in any of the parameters of the selector's kind."""
    asked = Q()
    for name in _PARAMETERS[selector.kind]:
        key = name if flat else name.replace(".", "__")
        asked |= Q(**{f"{document}__{key}__iexact": selector.value})
    return asked


def _expand_payments(merchant: Merchant, payments: set[UUID], registrations: set[UUID]) -> set[UUID]:
    """The payments with their whole chains, and those that were made with the registrations or changed them."""
    chains = set(Payment.objects.filter(pk__in=payments).values_list("chain", flat=True))
    if registrations:
        own = Payment.objects.filter(merchant=merchant).filter(
            Q(registration__in=registrations) | Q(referenced__in=registrations) | Q(pk__in=registrations)
        )
        chains |= set(own.values_list("chain", flat=True))
    return set(Payment.objects.filter(chain__in=chains).values_list("pk", flat=True)) if chains else set()


def _check_one_person(payments: set[UUID]) -> None:
    if len(payments) > MAX_PERSON_PAYMENTS:
        raise PersonNotFoundError(_("More than %d payments have it, so it is not one person.") % MAX_PERSON_PAYMENTS)


def _find_job_payments(jobs: set[UUID]) -> set[UUID]:
    """The payments that began the schedules, which have their ids, and those of their runs."""
    payments = set(jobs)
    for run in apps.get_model(JOB_RUNS)._default_manager.filter(job__in=jobs).only("payment", "earlier"):
        payments |= {run.payment, *run.earlier} - {None}
    return payments


def _find_used_registrations(
    selector: PersonSelector, payments: set[UUID], jobs: set[UUID], known: set[UUID]
) -> set[UUID]:
    """The registrations with which the payments and schedules were made, without those that another person uses too:
    where the registration, a payment or a schedule with it has another customer by the selector's kind (by e-mail
    address, where the selector names a row). Goods may be shipped to anybody."""
    merchant, job = selector.merchant, apps.get_model(JOBS)
    made_with = Payment.objects.filter(pk__in=payments, registration__isnull=False)
    asked: set[Any] = {*made_with.values_list("registration", flat=True)}
    asked |= {*job._default_manager.filter(pk__in=jobs).values_list("registration", flat=True)}
    used = set(Registration.objects.filter(merchant=merchant, pk__in=asked - known).values_list("pk", flat=True))
    if not used:
        return used
    kind = selector.kind if selector.kind in _PARAMETERS else PersonKind.EMAIL
    parameters = [name for name in _PARAMETERS[kind] if name.startswith("customer.")]
    if selector.kind in _PARAMETERS:
        own = {selector.value.lower()}
    else:
        documents = Payment.objects.filter(pk__in=payments).values_list("request", flat=True)
        own = {name for one in documents for name in _list_names(one, parameters)}
    others: set[UUID] = set()
    for rows, key in (
        (Registration.objects.filter(pk__in=used), "pk"),
        (Payment.objects.filter(merchant=merchant, registration__in=used), "registration"),
        (job._default_manager.filter(merchant=merchant, registration__in=used), "registration"),
    ):
        for registration, document in rows.values_list(key, "request").iterator():
            names = set(_list_names(document, parameters))
            if names and not names & own:
                others.add(registration)
    return used - others


def find_mandates(merchant: UUID, payments: set[UUID], registrations: set[UUID]) -> set[UUID]:
    """The mandates of the payments and registrations by their ids: one of an account that was only stored has no bank
    order. Of mandates with the same id at different creditors, those of the payments' accounts."""
    makers = Registration.objects.filter(pk__in=registrations).values_list("payment", flat=True)
    debits = Payment.objects.filter(
        pk__in=payments, brand=SEPA_DEBIT_BRAND, referenced__isnull=True, status=Status.APPROVED
    )
    names = {name_stored_mandate(maker) for maker in makers}
    accounts = set()
    for debit in debits:
        names.add(build_mandate_id(resolve_mandate_id(debit)))
        accounts.add(bytes(debit.means_fingerprint or b""))
    rows: dict[str, list[SepaMandate]] = {}
    for mandate in SepaMandate.objects.filter(merchant=merchant, mandate__in=names) if names else ():
        rows.setdefault(mandate.mandate, []).append(mandate)
    return {
        mandate.pk
        for same in rows.values()
        for mandate in same
        if len(same) == 1 or bytes(mandate.iban_fingerprint) in accounts
    }


def _read_emails(seeds: Mapping[str, set[Any]]) -> set[str]:
    """The e-mail addresses of the customers of the rows; those of ``shipping`` may be another person's."""
    emails: set[str] = set()
    for label, keys in seeds.items():
        rows = apps.get_model(label)._default_manager.filter(pk__in=keys).values_list("request", flat=True)
        for document in rows if keys else ():
            emails |= set(_list_names(document, ("customer.email",)))
    return emails


def _list_names(document: Mapping[str, Any], parameters: Iterable[str]) -> Iterator[str]:
    """The values of the parameters in a document, nested or by full name, in lower case."""
    for name in parameters:
        value: Any = document.get(name, document)
        for part in name.split(".") if name not in document else ():
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, str) and value:
            yield value.lower()


def _find_logged_requests(merchant: Merchant, named: Mapping[str, set[str]]) -> set[Any]:
    """Requests without a payment whose logged parameters name the person: a refused one, or that of a checkout."""
    entities = [merchant.pk, *merchant.channels.values_list("pk", flat=True)]
    found: set[Any] = set()
    for kind, names in named.items():
        if names:
            asked = {"entities": entities, "parameters": list(_PARAMETERS[kind]), "names": sorted(names)}
            found |= {key for (key,) in execute_sql(_LOGGED, asked)}
    return found


def _linked_rows(table: PersonalTable, found: Mapping[str, frozenset[Any]]) -> models.QuerySet[Any]:
    model = apps.get_model(table.model)
    asked = Q(pk__in=())
    for lookup, label in table.links:
        keys = found.get(label, frozenset())
        if keys:
            own = Q(**{f"{lookup}__in": keys})
            # Found by its own document, it is the person's whatever else it is.
            asked |= own if label == table.model else own & Q(**table.only)
    rows: models.QuerySet[Any] = model._default_manager.filter(asked).distinct()
    return rows

"""Erases what is stored of one shopper, as the table of personal data says, and reports what stayed and why.

All of it is one transaction. Nothing is erased while something of the person is open: a payment without a result, an
authorization that may be captured, a schedule, a dispute; the refusal names each. Registrations are deleted as
``DELETE /v1/registrations/{id}`` does, so the merchant is sent the webhook of that. Source: docs/decisions/0102
and 0110.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.core.signing import BadSignature, Signer
from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.db.models.lookups import LessThan
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gateway.access import audit_log
from gateway.core import clock
from gateway.models import AuthorizationExpiry, Merchant, Payment, Registration, Status
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import load_chain_members
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.registrations import delete_registration_by_hand
from gateway.personal_data.parameters import remove_personal_values
from gateway.personal_data.people import (
    FoundPerson,
    KeyLookup,
    PersonSelector,
    find_person,
    find_rows,
    load_rows,
    mask_person_value,
)
from gateway.personal_data.table import (
    AUTHENTICATIONS,
    CASES,
    CHECKOUTS,
    JOBS,
    MANDATE_PROOF_RETENTION,
    PAYMENT_LINKS,
    PAYMENTS,
    PERSONAL_DATA,
    REGISTRATIONS,
    Erasing,
    PersonalTable,
)

MAX_REPORTED_ROWS: Final = 20
"""Ids of open matters that a refusal names."""
REPEATED_MODELS: Final = (PAYMENTS, REGISTRATIONS, CHECKOUTS, PAYMENT_LINKS, JOBS, AUTHENTICATIONS)
"""Models whose ids a report holds, so that the same can be erased again: what else is erased hangs on these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenMatter:
    """Something that is not finished: ``ids`` of at most MAX_REPORTED_ROWS rows."""

    title: str | Promise
    ids: tuple[str, ...]


class PersonStillActiveError(Exception):
    """Something of the person is open, so nothing was erased."""

    def __init__(self, matters: Iterable[OpenMatter]) -> None:
        self.matters = tuple(matters)
        super().__init__("; ".join(f"{one.title}: {', '.join(one.ids)}" for one in self.matters))


class ErasureConflictError(Exception):
    """Something of the person changed meanwhile. Nothing was erased; a repetition may succeed."""


@dataclass(frozen=True, slots=True)
class _OpenRule:
    """Rows of ``model`` that are ``only``, whose ``link`` is a key of the person's rows in the table ``of``."""

    title: str | Promise
    model: str
    only: Q
    _: KW_ONLY
    link: str = "pk"
    of: str = PAYMENTS


_CAPTURABLE_STATES: Final = ("authorized", "partly_captured")
_OPEN_RULES: Final = (
    _OpenRule(
        _("Payments without a result"),
        PAYMENTS,
        Q(status__in=["STARTED", "PENDING", "IN_DOUBT"]) | Q(open__isnull=False),
    ),
    _OpenRule(
        _("Authorizations that may still be captured: capture or reverse them"),
        "gateway.ChainState",
        Q(state__in=_CAPTURABLE_STATES),
    ),
    _OpenRule(
        _("Authentications that are not finished: they end by themselves"),
        AUTHENTICATIONS,
        ~Q(step="done"),
        of=AUTHENTICATIONS,
    ),
    _OpenRule(
        _("Authorizations that are being released"),
        "gateway.AuthorizationRelease",
        Q(state="OPEN"),
        link="authorization",
    ),
    _OpenRule(_("Schedules that are not ended: cancel them"), JOBS, ~Q(state="ENDED"), of=JOBS),
    _OpenRule(_("Open disputes"), CASES, Q(state__in=["OPEN", "SUBMITTED"]), of=CASES),
    _OpenRule(
        _("Open dispute alerts"), "chargebacks.DisputeAlert", Q(state__in=["OPEN", "REFUNDING"]), link="disputed"
    ),
    _OpenRule(_("Bank orders on their way"), "gateway.BankOrder", Q(state__in=["WAITING", "FILED"])),
    _OpenRule(_("Captures that wait for their batch"), "gateway.BatchedCapture", Q(applied=False)),
    _OpenRule(_("Mails that are still to be sent"), "gateway.MandateMail", Q(state="DUE")),
    _OpenRule(
        _("Receipts that are still to be sent"), "checkout.ReceiptMail", Q(state="DUE"), link="checkout", of=CHECKOUTS
    ),
)


def list_open_matters(person: FoundPerson) -> list[OpenMatter]:
    """What of the person is not finished."""
    found = []
    for rule in (*_OPEN_RULES, _build_checkout_rule(person.merchant)):
        keys = person.ids(rule.of)
        rows = apps.get_model(rule.model)._default_manager.filter(rule.only, **{f"{rule.link}__in": keys})
        ids = [_format_key(key) for key in rows.values_list(rule.link, flat=True)[:MAX_REPORTED_ROWS]] if keys else []
        if ids:
            found.append(OpenMatter(title=rule.title, ids=tuple(ids)))
    if held := _list_held_authorizations(person.ids(PAYMENTS)):
        title = _("Authorizations of which a rest is still held: capture or reverse it, or wait for its release")
        found.append(OpenMatter(title=title, ids=tuple(_format_key(key) for key in held[:MAX_REPORTED_ROWS])))
    return found


def find_open_payments(payments: Collection[UUID]) -> set[UUID]:
    """The payments among ``payments`` of which something is not finished."""
    found = set(_list_held_authorizations(payments))
    for rule in _OPEN_RULES:
        if rule.of == PAYMENTS:
            rows = apps.get_model(rule.model)._default_manager.filter(rule.only, **{f"{rule.link}__in": payments})
            found.update(rows.values_list(rule.link, flat=True))
    return found


def _list_held_authorizations(payments: Collection[UUID]) -> list[UUID]:
    """Authorizations that may be captured or have to be released although their chain's state does not show it:
    expired ones that a late capture renews, and the rest of those that were captured and refunded in part."""
    waiting = AuthorizationExpiry.objects.filter(authorization__in=payments).values("authorization")
    rows = (
        Payment.objects.filter(pk__in=payments, chain=F("pk"), payment_type="PA", status=Status.APPROVED, amount__gt=0)
        .filter(Q(pk__in=waiting) | Q(expires_at__isnull=True))
        .exclude(standing__state__in=_CAPTURABLE_STATES)
    )
    held = []
    for key in rows.order_by("pk").values_list("pk", flat=True):
        authorization = Chain(load_chain_members(key)).authorization
        if authorization.uncaptured > 0 and (not authorization.is_closed or authorization.is_reopened):
            held.append(key)
    return held


def erase_person(
    selector: PersonSelector, *, by: audit_log.Actor, dry_run: bool = False, alone: str = ""
) -> dict[str, Any]:
    """Erase what the table allows and return the report. ``dry_run``: only report what would be done; ``alone``: why no
    second person approved it, for the audit trail.

    Raises PersonNotFoundError, PersonStillActiveError, ErasureConflictError.
    """
    person = find_person(selector)
    check_nothing_is_open(person)
    with transaction.atomic():
        if not dry_run:
            _delete_registrations(person, by)
            person = find_person(selector)  # with the payments that record the deletions
            check_nothing_is_open(person)  # and with those that began meanwhile
        report = _erase_rows(person, dry_run=dry_run)
        if not dry_run:
            _check_nothing_began(person, person.ids(PAYMENTS))
        report |= {
            "merchant": selector.merchant.pk.hex,
            "kind": selector.kind,
            "shown": mask_person_value(selector.value),
        }
        if not dry_run:
            report["seal"] = seal_report(selector.merchant, report["ids"])
            facts = {name: report[name] for name in ("kind", "shown", "erasedRows", "keptRows")}
            facts |= {"alone": alone} if alone else {}
            audit_log.record_audit_entry(by, "forget shopper", selector.merchant, after=facts)
    return report


def seal_report(merchant: Merchant, keys: Mapping[str, list[str]]) -> str:
    """What shows that a report's ids are those that were erased here: the file itself can be edited."""
    return _SEAL.signature(_describe_erased_rows(merchant, keys))


def is_report_sealed(merchant: Merchant, keys: Mapping[str, list[str]], seal: str) -> bool:
    """Whether the ids of a report are as this installation wrote them, also with a secret key that is being changed."""
    try:
        _SEAL.unsign(f"{_describe_erased_rows(merchant, keys)}{_SEAL.sep}{seal}")
    except BadSignature:
        return False
    return True


_SEAL: Final = Signer(salt="gateway.personal_data.erasure")


def _describe_erased_rows(merchant: Merchant, keys: Mapping[str, list[str]]) -> str:
    return json.dumps([merchant.pk.hex, keys], sort_keys=True)


def repeat_erasure(
    merchant: Merchant, keys: Mapping[str, list[str]], *, by: audit_log.Actor, alone: str = ""
) -> dict[str, Any]:
    """Erase the rows of an earlier report once more, after an older backup was restored. ``keys``: its ``ids``.
    Raises PersonNotFoundError, PersonStillActiveError, ErasureConflictError."""
    seeds = {
        label: set(
            apps.get_model(label)._default_manager.filter(merchant=merchant, pk__in=ids).values_list("pk", flat=True)
        )
        for label, ids in keys.items()
    }
    with transaction.atomic():
        person = find_rows(merchant, seeds)
        check_nothing_is_open(person)
        _delete_registrations(person, by)
        person = find_rows(merchant, seeds)
        # A report has no follow-ups that were made after it: what is there now does not count as begun meanwhile.
        listed = set(_list_chain_payments(person).values_list("pk", flat=True))
        check_nothing_is_open(person)
        report = _erase_rows(person, dry_run=False)
        _check_nothing_began(person, listed)
        report["seal"] = seal_report(merchant, report["ids"])
        facts = {name: report[name] for name in ("erasedRows", "keptRows")}
        facts |= {"alone": alone} if alone else {}
        audit_log.record_audit_entry(by, "forget shopper", merchant, after=facts)
    return report | {"merchant": merchant.pk.hex, "kind": "again", "shown": ""}


def check_nothing_is_open(person: FoundPerson) -> None:
    """Raises PersonStillActiveError where something of the person is not finished."""
    if matters := list_open_matters(person):
        raise PersonStillActiveError(matters)


def _list_chain_payments(person: FoundPerson) -> models.QuerySet[Payment]:
    return Payment.objects.filter(chain__in=person.ids(PAYMENTS))


def _check_nothing_began(person: FoundPerson, listed: Collection[UUID]) -> None:
    """Raises ErasureConflictError where a follow-up began after the person's payments were ``listed``: it has copied
    from them. Called when they are erased: their locked rows keep further ones waiting until that is committed."""
    began = _list_chain_payments(person).exclude(pk__in=listed).order_by("pk").first()
    if began is not None:
        raise ErasureConflictError(f"payment {began.pk.hex} began meanwhile")


def _build_checkout_rule(merchant: Merchant) -> _OpenRule:
    return _OpenRule(
        _("Checkouts that are still open: they end by themselves within 30 minutes"),
        CHECKOUTS,
        Q(expires_at__gt=clock.merchant_now(merchant)),
        of=CHECKOUTS,
    )


def _delete_registrations(person: FoundPerson, by: audit_log.Actor) -> None:
    rows = Registration.objects.filter(pk__in=person.ids(REGISTRATIONS), status=Registration.Status.ACTIVE)
    for row in rows.select_related("merchant", "channel"):
        try:
            delete_registration_by_hand(row, path="/forget-shopper", ip=by.ip)
        except RequestRefusedError as fault:
            raise ErasureConflictError(f"registration {row.pk.hex}: {fault.code}") from None


# --- rows -------------------------------------------------------------------------------------------------------


def _erase_rows(person: FoundPerson, *, dry_run: bool) -> dict[str, Any]:
    limit = clock.merchant_now(person.merchant) - MANDATE_PROOF_RETENTION
    lines: list[dict[str, Any]] = []
    for table in reversed(PERSONAL_DATA):  # a row goes before what it was found by
        if not table.links or not person.ids(table.model):
            continue
        rows = load_rows(person, table)
        held = _count_held(rows, table, limit)
        free = select_free(rows, table, limit) if table.held_since else rows
        lines += _report_table(table, free.count(), held)
        if not dry_run:
            erase_table(table, free)
    lines.reverse()
    ids = {
        label: sorted(_format_key(key) for key in person.ids(label)) for label in REPEATED_MODELS if person.ids(label)
    }
    return {**_sum_lines(lines), "ids": ids}


def report_found_rows(person: FoundPerson, lookup: KeyLookup) -> dict[str, Any]:
    """The report of what was found of a person so far, without ids; changes nothing."""
    limit = clock.merchant_now(person.merchant) - MANDATE_PROOF_RETENTION
    lines: list[dict[str, Any]] = []
    for table in PERSONAL_DATA:
        number, held = len(person.ids(table.model)), 0
        if not table.links or not number:
            continue
        if table.held_since:
            free = select_free(load_rows(person, table), table, limit)
            number = len(lookup(table.model, lambda free=free: set(free.values_list("pk", flat=True))))
            held = len(person.ids(table.model)) - number
        lines += _report_table(table, number, held)
    return _sum_lines(lines)


def _sum_lines(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "at": clock.format_timestamp(clock.real_now()),
        "lines": lines,
        "erasedRows": sum(line["rows"] for line in lines if line["done"] in _ERASES),
        "keptRows": sum(line["rows"] for line in lines if line["done"] not in _ERASES),
    }


_ERASES: Final = frozenset({Erasing.ERASE.name, Erasing.FILTER.name, Erasing.DELETE.name})


def _report_table(table: PersonalTable, number: int, held: int) -> list[dict[str, Any]]:
    """One line per column: rows, what was done, and the reason of what stayed."""
    lines = []
    for column in table.columns:
        line = {"model": table.model, "column": column.name, "done": column.erasing.name}
        if column.reason is not None:
            if number + held:
                lines.append({**line, "rows": number + held, "reason": column.reason.name})
            continue
        if number:
            lines.append({**line, "rows": number})
        if held:
            lines.append({**line, "done": Erasing.KEEP.name, "rows": held, "reason": "MANDATE"})
    return lines


def select_free(rows: models.QuerySet[Any], table: PersonalTable, limit: datetime) -> models.QuerySet[Any]:
    """The rows whose time of proof is over: which is ``held_since`` of ``table`` before ``limit``."""
    column = rows.model._meta.get_field(table.held_since[0])
    value: Any = limit if isinstance(column, models.DateTimeField) else limit.date()
    since = Coalesce(*table.held_since) if len(table.held_since) > 1 else F(*table.held_since)
    return rows.filter(LessThan(since, value))


def _count_held(rows: models.QuerySet[Any], table: PersonalTable, limit: datetime) -> int:
    if not table.held_since:
        return 0
    return rows.exclude(pk__in=select_free(rows, table, limit).values("pk")).count()


def erase_table(table: PersonalTable, rows: models.QuerySet[Any]) -> None:
    """Do to each column of ``rows`` what ``table`` says. Raises ErasureConflictError."""
    if any(column.erasing is Erasing.DELETE for column in table.columns):
        rows.delete()
        return
    blanks = {
        column.name: blank_value(rows.model._meta.get_field(column.name))
        for column in table.columns
        if column.erasing is Erasing.ERASE
    }
    filtered = [column for column in table.columns if column.erasing is Erasing.FILTER]
    if not filtered:
        if blanks:
            rows.update(**blanks)
        return
    for row in rows.only("pk", *(column.name for column in filtered)):
        before = {column.name: getattr(row, column.name) for column in filtered}
        after = {column.name: _filter_value(before[column.name]) for column in filtered}
        # Only as it was read: an answer may come in meanwhile.
        if not _unchanged(rows.model, row.pk, before).update(**after, **blanks):
            raise ErasureConflictError(f"{table.model} {_format_key(row.pk)} was changed meanwhile")


def _unchanged(model: type[models.Model], key: Any, before: Mapping[str, Any]) -> models.QuerySet[Any]:
    rows = model._default_manager.filter(pk=key)
    for name, value in before.items():
        rows = rows.filter(**({f"{name}__isnull": True} if value is None else {name: value}))
    return rows


def _filter_value(value: Any) -> Any:
    """``value`` without its personal members; a text is JSON, and one that is not is emptied."""
    if not isinstance(value, str):
        return remove_personal_values(value)
    try:
        return json.dumps(_remove_from_event(json.loads(value)), separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        return ""


def _remove_from_event(event: Any) -> Any:
    """An event of a webhook has the payment below ``payload``."""
    if isinstance(event, Mapping) and isinstance(event.get("payload"), Mapping):
        return {**event, "payload": remove_personal_values(event["payload"])}
    return remove_personal_values(event)


def blank_value(column: Any) -> Any:
    """What an erased column holds: NULL where it may, else the empty value of its type."""
    if column.null:
        return None
    if isinstance(column, models.JSONField):
        return [] if column.default is list else {}
    if isinstance(column, models.BinaryField):
        return b""
    return ""


def _format_key(key: Any) -> str:
    if isinstance(key, tuple):
        return "/".join(_format_key(one) for one in key)
    return key.hex if isinstance(key, UUID) else str(key)

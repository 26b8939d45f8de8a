"""Files of the account updater: which stored cards are due, the files that ask about them, and their answers.

A file's questions are written with it, encrypted, in one transaction; then it is sent, and its answer asked for, until
there is one. An answer is read as a whole before anything of it is applied; then each line is applied once, so a run
that is cut off goes on where it was. Source: docs/decisions/0135.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction

from gateway.connectors.account_update_files import (
    AccountUpdateFileError,
    build_question_file,
    parse_answer_file,
)
from gateway.connectors.account_updater import AccountUpdater, AccountUpdaterUnavailableError, CardUpdate
from gateway.connectors.account_updaters import load_account_updater
from gateway.core import clock, identifiers
from gateway.db.statement import execute_sql
from gateway.models import AccountUpdate, AccountUpdateFile, Channel, Registration
from gateway.payments.account_updates import (
    CHANGING_ANSWERS,
    apply_card_update,
    build_card_inquiry,
    is_updatable,
)
from gateway.payments.side_effects import OPT_OUT_PARAMETER
from gateway.timers.registry import MAX_SWEPT_ROWS, Timer

UPDATE_INTERVAL: Final = timedelta(days=30)
"""A stored card is asked about so often,"""
EXPIRING_UPDATE_INTERVAL: Final = timedelta(days=7)
"""and so often from EXPIRING_BEFORE before the end of its month."""
EXPIRING_BEFORE: Final = timedelta(days=60)
UNANSWERED_UPDATE_INTERVAL: Final = timedelta(days=1)
STORED_LATELY: Final = timedelta(days=400)
"""A card under no agreement is asked about for so long after it was stored or changed."""
MAX_FILE_CARDS: Final = 1_000
MAX_FILES_PER_RUN: Final = 50
FILE_RETRIES: Final = (
    timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6), timedelta(days=1)
)  # fmt: skip
"""Delays between tries to send a file; after the last one it is given up, and its cards are asked about anew."""
FILE_LEASE: Final = timedelta(minutes=5)
ANSWER_POLL_INTERVAL: Final = timedelta(minutes=10)
UPDATE_RETENTION: Final = timedelta(days=400)
"""How long questions that changed nothing are kept."""
ANSWER_LIMIT: Final = timedelta(days=10)
"""A file without an answer that can be read is given up so long after it was made."""
MAX_FILE_FAULT_CHARS: Final = 200

log = structlog.get_logger(__name__)

_LOOKED: Final = """
WITH looked AS MATERIALIZED (
    SELECT r.id, r.sequence, card.expiry, asked.free_at,
        r.means_sealed IS NOT NULL AND r.account_update <> 'CLOSED'
            AND coalesce(r.request->>%(opt_out)s::text, '') <> 'false'
            AND coalesce(r.details->'card'->>'numberType', '') <> 'DPAN'
            AND NOT jsonb_exists_any(r.details, ARRAY['wallet1', 'wallet2', 'wallet3'])
            AND (r.retain_until IS NULL OR r.retain_until > %(now)s::timestamptz)
            AND (
                greatest(r.created_at, r.updated_at) > %(now)s::timestamptz - %(lately)s::interval
                OR EXISTS (SELECT FROM gateway_agreement a WHERE a.registration = r.id)
            ) AS wanted
    FROM gateway_registration r
    CROSS JOIN LATERAL (
        SELECT concat(r.details->'card'->>'expiryYear', '-', r.details->'card'->>'expiryMonth') AS expiry
    ) card
    CROSS JOIN LATERAL (
        SELECT max(CASE
            WHEN u.status = 'WAITING' AND u.file_id IS NOT NULL THEN %(now)s::timestamptz + %(unanswered)s::interval
            ELSE u.asked_at + CASE
                WHEN u.status = 'SUPERSEDED' THEN interval '0'
                WHEN u.status = 'UNANSWERED' THEN %(unanswered)s::interval
                WHEN card.expiry <= to_char(%(now)s::timestamptz + %(before)s::interval, 'YYYY-MM')
                    THEN %(expiring)s::interval
                ELSE %(every)s::interval END
        END) AS free_at
        FROM gateway_accountupdate u WHERE u.registration_id = r.id
    ) asked
    WHERE r.channel_id = %(channel)s::uuid AND r.status = 'ACTIVE' AND r.means = 'card'
        AND coalesce(r.account_update_due_at, r.created_at) <= %(now)s::timestamptz
)
"""
"""The stored cards of a channel that are to be looked at. ``wanted``: the updater may be asked about it; ``free_at``:
when it may be again, by what was asked before."""
_IS_DUE: Final = "wanted AND coalesce(free_at <= %(now)s::timestamptz, true)"
_DUE: Final = f"{_LOOKED} SELECT expiry, id FROM looked WHERE {_IS_DUE} ORDER BY expiry, id LIMIT %(most)s::int"  # noqa: S608
_NOT_DUE: Final = f"""{_LOOKED}
SELECT id, sequence, least(
    CASE WHEN wanted THEN free_at END,
    %(now)s::timestamptz + CASE
        WHEN expiry <= to_char(%(now)s::timestamptz + %(before)s::interval + %(every)s::interval, 'YYYY-MM')
            THEN %(expiring)s::interval
        ELSE %(every)s::interval END
) FROM looked WHERE NOT ({_IS_DUE}) LIMIT %(most)s::int
"""  # noqa: S608 - texts of this module
"""Cards that are not due, and when they are looked at again: for one that is near its last months, each week."""
# A card that another transaction changes is left for the next run, and so is one that was changed since it was read.
_POSTPONE: Final = """
UPDATE gateway_registration r SET account_update_due_at = t.look_at FROM (
    SELECT o.id, l.look_at
    FROM unnest(%(ids)s::uuid[], %(sequences)s::int[], %(looks)s::timestamptz[]) AS l(id, sequence, look_at)
    JOIN gateway_registration o ON o.id = l.id AND o.sequence = l.sequence
    FOR NO KEY UPDATE OF o SKIP LOCKED
) t WHERE r.id = t.id RETURNING r.id
"""


def run_account_updater() -> int:
    """Send the files that wait, and apply the answers that are there; returns how many files were sent or answered."""
    updater = load_account_updater()
    if updater is None:
        return 0
    _purge_questions()
    done = 0
    for state in (AccountUpdateFile.State.UNSENT, AccountUpdateFile.State.SENT):
        due = AccountUpdateFile.objects.filter(state=state, due_at__lte=clock.real_now())
        for row in due.order_by("due_at"):
            lease = clock.real_now() + FILE_LEASE
            # Compare-and-set: another worker may have taken it since it was read.
            if AccountUpdateFile.objects.filter(pk=row.pk, due_at=row.due_at).update(due_at=lease):
                row.due_at = lease
                done += _advance_file(updater, row)
    return done


def _purge_questions() -> None:
    """Delete old questions that changed nothing; what changed a card is its history."""
    old = AccountUpdate.objects.filter(asked_at__lt=clock.real_now() - UPDATE_RETENTION)
    rows = old.exclude(status__in=[*CHANGING_ANSWERS, AccountUpdate.Status.WAITING]).order_by("asked_at")
    AccountUpdate.objects.filter(pk__in=list(rows.values_list("pk", flat=True)[:MAX_SWEPT_ROWS])).delete()


def _list_look_values() -> list[dict[str, Any]]:
    """The values of the statements above, for each channel that has updates. Times are compared by the merchant's
    clock, whose offset can be moved in the test environment."""
    channels = Channel.objects.filter(account_updater=True, active=True).select_related("merchant").order_by("pk")
    return [
        {
            "channel": channel.pk,
            "now": clock.merchant_now(channel.merchant),
            "opt_out": OPT_OUT_PARAMETER,
            "lately": STORED_LATELY,
            "unanswered": UNANSWERED_UPDATE_INTERVAL,
            "before": EXPIRING_BEFORE,
            "expiring": EXPIRING_UPDATE_INTERVAL,
            "every": UPDATE_INTERVAL,
            "most": MAX_FILE_CARDS * MAX_FILES_PER_RUN,
        }
        for channel in channels
    ]


def list_due_cards() -> list[UUID]:
    """Ids of the registrations to ask about next, the ones that expire first at the front; as many as fit into the
    files of a run. It reads the cards whose ``account_update_due_at`` has come."""
    found = [row for values in _list_look_values() for row in execute_sql(_DUE, values)]
    return [ident for _, ident in sorted(found)[: MAX_FILE_CARDS * MAX_FILES_PER_RUN]]


def postpone_looks() -> int:
    """Note of the cards that were looked at and are not due when they are looked at again; returns how many."""
    found = [row for values in _list_look_values() for row in execute_sql(_NOT_DUE, values)]
    return sum(_postpone(found[first : first + MAX_FILE_CARDS]) for first in range(0, len(found), MAX_FILE_CARDS))


def _postpone(rows: list[tuple[Any, ...]]) -> int:
    ids, sequences, looks = (list(column) for column in zip(*rows, strict=True))
    return len(execute_sql(_POSTPONE, {"ids": ids, "sequences": sequences, "looks": looks}))


def ask_about_due_cards() -> int:
    """Write the files that ask about the stored cards that are due; returns how many there are."""
    updater = load_account_updater()
    if updater is None:
        return 0
    due = list_due_cards()
    parts = (due[first : first + MAX_FILE_CARDS] for first in range(0, len(due), MAX_FILE_CARDS))
    written = sum(_write_question_file(updater, part) for part in parts)
    postpone_looks()
    return written


def _write_question_file(updater: AccountUpdater, due: list[UUID]) -> bool:
    """Write a file and its questions. False where there is nothing to ask about any more."""
    owners = Registration.objects.select_related("channel", "merchant").in_bulk(due)
    now = clock.real_now()
    file = AccountUpdateFile(id=identifiers.row_id(), cards=0, due_at=now, created_at=now)
    rows, inquiries = [], []
    for owner in (owners[ident] for ident in due):
        if not is_updatable(owner):
            continue  # changed since it was found
        row = AccountUpdate(
            registration=owner,
            file=file,
            sequence=owner.sequence,
            asked_at=clock.merchant_now(owner.merchant),
        )
        inquiry = build_card_inquiry(row, owner)
        if inquiry is None:  # logged; it is asked about again tomorrow
            row.file, row.status, row.answered_at = None, AccountUpdate.Status.UNANSWERED, row.asked_at
        else:
            inquiries.append(inquiry)
        rows.append(row)
    file.cards = len(inquiries)
    with transaction.atomic():
        if inquiries:
            file.content = build_question_file(file.id, now, inquiries, updater.get_file_key())
            file.save(force_insert=True)
        AccountUpdate.objects.bulk_create(rows)
    return bool(inquiries)


def _advance_file(updater: AccountUpdater, row: AccountUpdateFile) -> bool:
    """Send a file, or read its answer. False where the updater gave none: it is asked again later."""
    try:
        if row.state == AccountUpdateFile.State.UNSENT:
            updater.send_file(row.id.hex, bytes(row.content or b""))
            return _write_file(row, state=AccountUpdateFile.State.SENT, tries=0, fault="", due_at=clock.real_now())
        answer = updater.fetch_answer(row.id.hex, bytes(row.content or b""))
        if answer is not None:
            _apply_answer(row, parse_answer_file(answer, updater.get_file_key(), file=row.id))
            return True
        _postpone_file(row, ANSWER_POLL_INTERVAL, row.fault)
    except (AccountUpdaterUnavailableError, AccountUpdateFileError) as fault:
        log.warning("account_update_file_failed", file=row.id.hex, why=str(fault))
        _postpone_file(row, _get_delay(row), str(fault))
    except Exception as fault:  # an add-on's fault must not stop the others
        log.exception("account_update_file_failed", file=row.id.hex)
        _postpone_file(row, _get_delay(row), type(fault).__name__)
    return False


def _get_delay(row: AccountUpdateFile) -> timedelta | None:
    if row.state == AccountUpdateFile.State.SENT:
        return FILE_RETRIES[1]
    return FILE_RETRIES[row.tries] if row.tries < len(FILE_RETRIES) else None


def _postpone_file(row: AccountUpdateFile, delay: timedelta | None, fault: str) -> None:
    """Try again after ``delay``; give the file up where that is None, or it has waited too long."""
    now = clock.real_now()
    if delay is not None and now + delay < row.created_at + ANSWER_LIMIT:
        _write_file(row, tries=row.tries + 1, due_at=now + delay, fault=fault[:MAX_FILE_FAULT_CHARS])
        return
    with transaction.atomic():
        if _write_file(
            row,
            state=AccountUpdateFile.State.GIVEN_UP,
            content=None,
            due_at=None,
            fault=fault[:MAX_FILE_FAULT_CHARS] or "no answer came",
        ):
            _close_questions(row)


def _write_file(row: AccountUpdateFile, **changes: Any) -> bool:
    """Change a file that is leased to this worker."""
    return bool(AccountUpdateFile.objects.filter(pk=row.pk, due_at=row.due_at).update(**changes))


def _close_questions(row: AccountUpdateFile) -> None:
    """Questions of a file that are not answered by it never are."""
    waiting = AccountUpdate.objects.filter(file=row, status=AccountUpdate.Status.WAITING)
    for each in waiting.select_related("registration__merchant"):
        now = clock.merchant_now(each.registration.merchant)
        AccountUpdate.objects.filter(pk=each.pk, status=AccountUpdate.Status.WAITING).update(
            status=AccountUpdate.Status.UNANSWERED, answered_at=now
        )


def _apply_answer(row: AccountUpdateFile, answers: dict[UUID, CardUpdate]) -> None:
    """Apply a file's answers. Raises AccountUpdateFileError for one to a question that the file did not ask."""
    asked = {each.id: each for each in AccountUpdate.objects.filter(file=row)}
    if not answers.keys() <= asked.keys():
        raise AccountUpdateFileError("answers a question that was not asked")
    for ident, update in answers.items():
        if asked[ident].status == AccountUpdate.Status.WAITING:
            apply_card_update(asked[ident], update)
    _close_questions(row)
    now = clock.real_now()
    AccountUpdateFile.objects.filter(pk=row.pk, state=AccountUpdateFile.State.SENT).update(
        state=AccountUpdateFile.State.ANSWERED, content=None, due_at=None, fault="", answered_at=now
    )


TIMERS: Final = (
    # First, so that what a tick asks about is sent by the same one.
    Timer(
        name="account updater questions",
        run=ask_about_due_cards,
        every_s=3600.0,
        about="Find the stored cards that the card networks are asked about, and write the files that ask.",
        is_off=lambda: load_account_updater() is None,
    ),
    Timer(
        name="account updater",
        run=run_account_updater,
        every_s=600.0,
        about="Send the files of the account updater, and apply their answers.",
        is_off=lambda: load_account_updater() is None,
    ),
)
"""Real time: a merchant's clock has no effect on a network. Which cards are due is read by the merchant's clock."""

"""Files of the account updater: their lines, and their encryption. Pure.

Lines end with a line feed, fields are separated by commas. A file begins with a line H, has a line D for each card, and
ends with a line T that counts them: a file that was cut off is not read. Each file is one compact JWE (RFC 7516, dir
and A256GCM) with the key that both sides have, so no card number is on a disk or a wire in clear.

    question   H,1,file,time                               D,id,entityId,brand,number,MM,YYYY       T,count
    answer     H,1,file,time                               D,id,answer,number,MM,YYYY               T,count

Source: docs/account-updater.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from jwcrypto import jwe, jwk
from jwcrypto.common import JWException

from gateway.connectors.account_updater import CardInquiry, CardUpdate, UpdaterAnswer
from gateway.core import clock, identifiers
from gateway.core.card_number import CardNumber
from gateway.core.secret import Secret

UPDATE_FILE_VERSION: Final = "1"
_HEADER: Final = json.dumps({"alg": "dir", "enc": "A256GCM"})
_NUMBER: Final = re.compile(r"[0-9]{12,19}")
_EXPIRY: Final = re.compile(r"(?:0[1-9]|1[0-2]),20[0-9]{2}")


class AccountUpdateFileError(Exception):
    """A file that is not read: it is cut off, not encrypted with our key, or says what no answer says. The text names
    the line, and holds nothing of a card."""


def build_question_file(file: UUID, at: datetime, inquiries: Sequence[CardInquiry], key: Secret) -> bytes:
    """The file that asks about cards, encrypted."""
    lines = [
        f"D,{one.key.hex},{one.entity},{one.brand},{one.number.reveal()},{one.expiry_month},{one.expiry_year}"
        for one in inquiries
    ]
    return _seal_lines(file, at, lines, key)


def parse_question_file(content: bytes, key: Secret) -> tuple[UUID, list[CardInquiry]]:
    """The file's id and its questions, as an updater reads them. Raises AccountUpdateFileError."""
    file, lines = _open_lines(content, key)
    found = []
    for place, fields in lines:
        if len(fields) != 7 or (ident := identifiers.parse_id(fields[1])) is None:
            raise AccountUpdateFileError(f"line {place}: has not the fields of a question")
        _, _, entity, brand, number, month, year = fields
        found.append(
            CardInquiry(
                key=ident, entity=entity, brand=brand, number=Secret(number), expiry_month=month, expiry_year=year
            )
        )
    return file, found


def build_answer_file(file: UUID, at: datetime, updates: Mapping[UUID, CardUpdate], key: Secret) -> bytes:
    """The file that answers another, encrypted."""
    lines = [
        f"D,{ident.hex},{one.answer},{one.number.reveal() if one.number else ''},{one.expiry_month},{one.expiry_year}"
        for ident, one in updates.items()
    ]
    return _seal_lines(file, at, lines, key)


def parse_answer_file(content: bytes, key: Secret, *, file: UUID) -> dict[UUID, CardUpdate]:
    """Answers by the id of their question. ``file``: the one that they have to answer. Raises
    AccountUpdateFileError: then nothing of the file may be applied."""
    answered, lines = _open_lines(content, key)
    if answered != file:
        raise AccountUpdateFileError("line 1: answers another file")
    found: dict[UUID, CardUpdate] = {}
    for place, fields in lines:
        ident = identifiers.parse_id(fields[1]) if len(fields) == 6 else None
        if ident is None:
            raise AccountUpdateFileError(f"line {place}: has not the fields of an answer")
        if ident in found:
            raise AccountUpdateFileError(f"line {place}: answers a question for the second time")
        found[ident] = _parse_update(place, fields)
    return found


def _parse_update(place: int, fields: Sequence[str]) -> CardUpdate:
    _, _, answer, number, month, year = fields
    if answer not in UpdaterAnswer.__members__:
        raise AccountUpdateFileError(f"line {place}: says an answer that there is not")
    update = CardUpdate(
        answer=UpdaterAnswer(answer),
        number=Secret(number) if number else None,
        expiry_month=month,
        expiry_year=year,
    )
    if fault := find_update_fault(update):
        raise AccountUpdateFileError(f"line {place}: {fault}")
    return update


def find_update_fault(update: CardUpdate) -> str:
    """Why an answer means nothing, '' where it does: a number that is none, a date that is missing or too much."""
    wants_number = update.answer is UpdaterAnswer.NEW_NUMBER
    wants_date = wants_number or update.answer is UpdaterAnswer.NEW_EXPIRY
    if wants_number != (update.number is not None):
        return "has a number where none belongs, or none where one does"
    if update.number is not None:
        known = CardNumber.of(update.number)
        if not _NUMBER.fullmatch(update.number.reveal()) or not known.has_right_check_digit(known.brand):
            return "the number is no card number"
    date = f"{update.expiry_month},{update.expiry_year}"
    if wants_date and not _EXPIRY.fullmatch(date):
        return "the expiry date is no month and year"
    return "" if wants_date or date == "," else "has an expiry date where none belongs"


def _seal_lines(file: UUID, at: datetime, lines: Sequence[str], key: Secret) -> bytes:
    header = f"H,{UPDATE_FILE_VERSION},{file.hex},{clock.format_timestamp(at)}"
    text = "".join(f"{line}\n" for line in (header, *lines, f"T,{len(lines)}"))
    sealed = jwe.JWE(text.encode(), protected=_HEADER)
    sealed.add_recipient(_load_key(key))
    return str(sealed.serialize(compact=True)).encode()


def _open_lines(content: bytes, key: Secret) -> tuple[UUID, list[tuple[int, list[str]]]]:
    """The id of a file, and its lines D with their places. Raises AccountUpdateFileError."""
    try:
        sealed = jwe.JWE(algs=["dir", "A256GCM"])
        sealed.deserialize(content.decode("ascii").strip())
        if sealed.jose_header != json.loads(_HEADER):  # compressed, say, which may hold a thousand times as much
            raise ValueError
        sealed.decrypt(_load_key(key))
        text = sealed.payload.decode("ascii")
    except (JWException, ValueError):
        raise AccountUpdateFileError("is not encrypted with the key of this account updater, or damaged") from None
    lines = text.split("\n")
    if lines[-1] != "" or len(lines) < 3 or lines[-2] != f"T,{len(lines) - 3}":
        raise AccountUpdateFileError(f"line {len(lines)}: the file ends before its line T, or T counts other lines")
    header = lines[0].split(",")
    file = identifiers.parse_id(header[2]) if len(header) == 4 else None
    if header[:2] != ["H", UPDATE_FILE_VERSION] or file is None:
        raise AccountUpdateFileError("line 1: is no line H of version 1")
    rows = [(place, line.split(",")) for place, line in enumerate(lines[1:-2], start=2)]
    if other := next((place for place, fields in rows if fields[0] != "D"), None):
        raise AccountUpdateFileError(f"line {other}: is no line D")
    return file, rows


def _load_key(key: Secret) -> jwk.JWK:
    return jwk.JWK(kty="oct", k=key.reveal())

"""A creditor: the settings of a SEPA account, parsed and checked.

Source: EPC 130-08 (customer-to-bank guidelines of direct debits); docs/connectors/sepa.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings
from schwifty import BIC, IBAN

from gateway.connectors.account_settings import (
    AccountSettingError,
    SettingFaults,
    collect_setting_faults,
    parse_time_of_day,
    parse_time_zone,
    read_account_settings,
)
from gateway.connectors.port import ConnectorAccount, ConnectorSetting
from gateway.connectors.sepa import target_calendar

FOLDER_DELIVERY: Final = "folder"
HTTP_DELIVERY: Final = "http"
NOTICE_BY_MAIL: Final = "mail"
COLLECTION_SCHEMAS: Final = ("pain.008.001.08", "pain.008.001.02")
TRANSFER_SCHEMAS: Final = {"pain.008.001.08": "pain.001.001.09", "pain.008.001.02": "pain.001.001.03"}
"""Schema of collections → the transfer schema that the same banks accept."""
REQUEST_SCHEMAS: Final = ("camt.055.001.08", "camt.055.001.05", "camt.055.001.01")

_CREDITOR_ID: Final = r"[A-Z]{2}[0-9]{2}[A-Za-z0-9]{3}[A-Za-z0-9+?/:().,'-]{1,28}"

SEPA_SETTINGS: Final[tuple[ConnectorSetting, ...]] = (
    ConnectorSetting("creditorName", "Name of the creditor, as it stands in files and on statements.",
        r"[^\x00-\x1f]{1,70}", "1 to 70 characters", required=True),
    ConnectorSetting("creditorId", "Creditor identifier, as the scheme gave it.",
        _CREDITOR_ID, "a SEPA creditor identifier, e.g. DE98ZZZ09999999999", required=True),
    ConnectorSetting("formerCreditorId",
        "Creditor identifier before a change: mandates given to it go on, amended, under the present one.",
        _CREDITOR_ID, "a SEPA creditor identifier, e.g. DE98ZZZ09999999999"),
    ConnectorSetting("creditorIban", "Account that is credited.",
        r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", "an IBAN without spaces", required=True),
    ConnectorSetting("creditorBic", "BIC of that account's bank; needed by pain.008.001.02.",
        r"[A-Z0-9]{8}([A-Z0-9]{3})?", "a BIC of 8 or 11 characters"),
    ConnectorSetting("instrument", "Scheme: CORE, or B2B between businesses.",
        r"CORE|B2B", "CORE, B2B", default="CORE"),
    ConnectorSetting("schema", "Version of the collection file that the bank takes.",
        r"pain\.008\.001\.0[28]", ", ".join(COLLECTION_SCHEMAS), default=COLLECTION_SCHEMAS[0]),
    ConnectorSetting("leadDays",
        "TARGET days between the file and the day of collection. More than 9 may be more than 14 calendar days, "
        "before which a bank passes no collection on: ask whether yours takes it.",
        r"[1-9]|1[0-4]", "1 to 14", default="1"),
    ConnectorSetting("fileAt", "Time of the day at which the day's file is made, before the bank's cut-off.",
        r"([01][0-9]|2[0-3]):[0-5][0-9]", "a time, HH:MM", default="10:00"),
    ConnectorSetting("timeZone", "The bank's time zone.",
        r"[A-Za-z]+(/[A-Za-z_+-]+[0-9]*)*", "a zone such as Europe/Berlin", default="Europe/Berlin"),
    ConnectorSetting("finalAfter",
        "TARGET days after the day of collection from which a collection without a word of"
        " the bank counts as paid; empty: it is paid when a statement books it.",
        r"[1-9]|[1-5][0-9]|60", "1 to 60, or nothing"),
    ConnectorSetting("noticeDays",
        "Calendar days between the pre-notification of a collection and its day, as the merchant's terms say"
        " (the rulebook's 14 hold where they say nothing); 0: the merchant notifies its shoppers itself.",
        r"[0-9]|[12][0-9]|30", "0 to 30", default="1"),
    ConnectorSetting("noticeBy",
        "Who is notified of a collection before its day: the shopper by mail, or the merchant by the webhook of"
        " the pending payment.",
        r"mail|webhook", "mail, webhook", default=NOTICE_BY_MAIL),
    ConnectorSetting("refundBy",
        "How a whole collection is given back within 4 TARGET days after its day: by a transfer (pain.001), or by"
        " the creditor's reversal of the very debit (pain.007). Later, and in part: by a transfer.",
        r"transfer|reversal", "transfer, reversal", default="transfer"),
    ConnectorSetting("cancelBy",
        "How a collection whose file has left is taken back before its day, and a transfer recalled: not at all,"
        " or by a cancellation request (camt.055), where the bank takes them; its answer (camt.029) decides.",
        r"none|request", "none, request", default="none"),
    ConnectorSetting("cancelSchema",
        "Version of that request, where the bank takes another one than goes with its collection files: German"
        " banks take camt.055.001.05.",
        r"camt\.055\.001\.0[158]", f"{', '.join(REQUEST_SCHEMAS)}, or nothing"),
    ConnectorSetting("delivery", "How files reach the bank: laid into the outbox folder, or uploaded.",
        r"folder|http", "folder, http", default=FOLDER_DELIVERY),
    ConnectorSetting("uploadUrl", "Where files are uploaded to (POST, application/xml).",
        r"https?://[\x21-\x7e]{1,500}", "an http or https address"),
    ConnectorSetting("uploadUser", "User name of the upload.",
        r"[^\x00-\x1f:]{1,128}", "1 to 128 characters without a colon"),
    ConnectorSetting("uploadPassword", "Password of the upload.",
        r"[^\x00-\x1f]{1,256}", "1 to 256 characters", secret=True),
)  # fmt: skip

_COUNTRIES: Final = """
AD AL AT BE BG CH CY CZ DE DK EE ES FI FR GB GI GR HR HU IE IS IT LI LT LU LV MC MD ME MK MT NL NO PL PT RO RS SE SI SK
SM VA"""
_SCHEME: Final = frozenset(_COUNTRIES.split())
"""Countries of the SEPA scheme (EPC 409-09)."""
_OUTSIDE_EEA: Final = frozenset({"AD", "AL", "CH", "GB", "GI", "MC", "MD", "ME", "MK", "RS", "SM", "VA"})
"""Countries of the scheme outside the European Economic Area: their banks must be given the debtor's address (EPC
130-08, Debtor, Postal Address; Regulation (EU) 2023/1113) and are named by their BIC (EPC 130-08 and 132-08, Debtor
Agent and Creditor Agent; "BIC optional except for destination entities that do not belong to EEA SEPA",
https://caixabank.es/empresa/sepa/domiciliadosb2b_en.html). IBAN alone suffices inside by Regulation (EU) 260/2012."""


_BIC: Final = re.compile(r"[A-Z]{6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3})?")
"""The common form of all versions of the schemas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creditor:
    """An account's parsed settings. ``final_after`` None: collections become final only by a booking."""

    name: str
    ident: str
    iban: str
    bic: str
    instrument: str
    schema: str
    lead_days: int
    file_at: time
    zone: ZoneInfo
    final_after: int | None
    delivery: str
    former_ident: str = ""
    notice_days: int = 0
    notice_by: str = NOTICE_BY_MAIL
    reverses: bool = False
    cancels: bool = False
    cancel_schema: str = ""

    def run_on(self, day: date) -> datetime:
        """When the file of ``day`` is made."""
        return datetime.combine(day, self.file_at, self.zone)

    def next_run(self, now: datetime) -> datetime:
        """The first run after ``now``: one on each day on which payments settle."""
        day = target_calendar.roll_to_target_day(now.astimezone(self.zone).date())
        while self.run_on(day) <= now:
            day = target_calendar.target_day_after(day, 1)
        return self.run_on(day)

    def plan(self, now: datetime, wanted: date | None) -> tuple[date, datetime]:
        """The collection day and the run that files it: as wanted, moved to an open day, or the earliest day that lead
        time and pre-notification leave."""
        first = self.next_run(now)
        first_day = target_calendar.target_day_after(first.astimezone(self.zone).date(), self.lead_days)
        noticed = now.astimezone(self.zone).date() + timedelta(days=self.notice_days)
        earliest = max(first_day, target_calendar.roll_to_target_day(noticed))
        due = max(target_calendar.roll_to_target_day(wanted), earliest) if wanted is not None else earliest
        if due <= first_day:
            return first_day, first
        return due, max(first, self.run_on(target_calendar.target_day_before(due, self.lead_days)))

    def final_at(self, due: date) -> datetime | None:
        """When a collection due on ``due`` becomes final without a bank message: that day's midnight."""
        if self.final_after is None:
            return None
        day = target_calendar.target_day_after(due, self.final_after) + timedelta(days=1)
        return datetime.combine(day, time(0), self.zone)

    def as_file_json(self) -> dict[str, Any]:
        """The fields that appear in a file, as JSON: the file can be rendered again after the settings have changed."""
        return {
            "name": self.name,
            "id": self.ident,
            "iban": self.iban,
            "bic": self.bic,
            "instrument": self.instrument,
            "schema": self.schema,
            "delivery": self.delivery,
            "zone": self.zone.key,
        }


def parse_creditor(account: ConnectorAccount) -> Creditor:
    """Parse an account's settings. Raises AccountSettingError."""
    have = read_account_settings(account, SEPA_SETTINGS)
    for name in ("creditorId", "formerCreditorId"):
        if have[name] and not is_creditor_identifier(have[name]):
            raise AccountSettingError(name, "is no creditor identifier: its check digits are wrong")
    if not is_valid_iban(have["creditorIban"]):
        raise AccountSettingError("creditorIban", "is no IBAN")
    if have["creditorBic"] and not (is_bic(have["creditorBic"]) and is_writable_bic(have["creditorBic"])):
        raise AccountSettingError("creditorBic", "is no BIC")
    if have["schema"] == COLLECTION_SCHEMAS[1] and not have["creditorBic"]:
        raise AccountSettingError("creditorBic", f"is needed by {have['schema']}")
    if have["delivery"] == HTTP_DELIVERY and not have["uploadUrl"]:
        raise AccountSettingError("uploadUrl", "is needed by delivery http")
    if settings.IS_LIVE and have["delivery"] == HTTP_DELIVERY and not have["uploadUrl"].startswith("https://"):
        why = "must begin with https:// in the live environment: accounts and the password would cross the network in"
        raise AccountSettingError("uploadUrl", f"{why} clear")
    return Creditor(
        name=have["creditorName"],
        ident=have["creditorId"],
        iban=have["creditorIban"],
        bic=have["creditorBic"],
        instrument=have["instrument"],
        schema=have["schema"],
        lead_days=_parse_number(have, "leadDays"),
        file_at=parse_time_of_day(have, "fileAt"),
        zone=parse_time_zone(have, "timeZone"),
        final_after=_parse_number(have, "finalAfter") if have["finalAfter"] else None,
        delivery=have["delivery"],
        former_ident=have["formerCreditorId"],
        notice_days=_parse_number(have, "noticeDays"),
        notice_by=have["noticeBy"],
        reverses=have["refundBy"] == "reversal",
        cancels=have["cancelBy"] == "request",
        cancel_schema=have["cancelSchema"],
    )


def check_creditor_settings(given: Mapping[str, str]) -> SettingFaults:
    """Errors in an account's settings beyond each one's own pattern: (setting, reason)."""
    return collect_setting_faults(lambda: parse_creditor(ConnectorAccount(settings=given)))


def _parse_number(have: Mapping[str, str], name: str) -> int:
    try:
        return int(have[name])
    except ValueError:
        raise AccountSettingError(name, "is no number") from None


def is_creditor_identifier(text: str) -> bool:
    """True if the check digits are valid. The business code (characters 5 to 7) does not count, nor do signs. Source:
    EPC 262-08, Creditor Identifier Overview; ISO 7064, modulus 97-10."""
    digits = "".join(str(int(char, 36)) for char in text[7:] + text[:4] if char.isascii() and char.isalnum())
    return digits.isdecimal() and int(digits) % 97 == 1


def is_valid_iban(text: str) -> bool:
    """True if check digits, length and country are valid."""
    return IBAN(text, allow_invalid=True).is_valid


def is_writable_bic(text: str) -> bool:
    """True if a file can carry it."""
    return _BIC.fullmatch(text) is not None


def is_bic(text: str) -> bool:
    """True for a text with the form of a BIC."""
    return BIC(text, allow_invalid=True).is_valid


def is_outside_eea(iban: str) -> bool:
    """True if the account's bank is outside the European Economic Area: it is given the debtor's address, and its BIC
    is named."""
    return iban[:2] in _OUTSIDE_EEA


def find_bic(iban: str) -> str:
    """The BIC of an IBAN's bank, where the library's registers have it; else ''."""
    return str(IBAN(iban, allow_invalid=True).bic or "")


def is_sepa_reachable(iban: str) -> bool:
    """True if the account's country takes part in the scheme."""
    return iban[:2] in _SCHEME

"""Reading the settings of a merchant's account at a processor, which each connector declares (ConnectorSetting)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import time
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.connectors.port import ConnectorAccount, ConnectorSetting

SettingFaults = tuple[tuple[str, str], ...]
"""(setting, why)."""


class AccountSettingError(Exception):
    """A setting is missing or wrong: ``setting``, and ``why``, without secrets."""

    def __init__(self, setting: str, why: str) -> None:
        super().__init__(f"{setting} {why}")
        self.setting, self.why = setting, why


def read_account_settings(account: ConnectorAccount, rows: Iterable[ConnectorSetting]) -> dict[str, str]:
    """The account's settings with the defaults of ``rows``. Raises AccountSettingError for a missing one."""
    given = {row.name: row.default for row in rows if not row.secret} | dict(account.settings)
    for row in rows:
        if row.required and not given.get(row.name):
            raise AccountSettingError(row.name, "is not set")
    return given


def collect_setting_faults(parse: Callable[[], object]) -> SettingFaults:
    """What ``parse`` refuses, if it raises AccountSettingError."""
    try:
        parse()
    except AccountSettingError as fault:
        return ((fault.setting, fault.why),)
    return ()


def parse_time_of_day(given: Mapping[str, str], name: str) -> time:
    """The time of day, such as 22:30, of a setting."""
    try:
        return time.fromisoformat(given[name])
    except ValueError:
        raise AccountSettingError(name, "must be a time of day such as 22:30") from None


def parse_time_zone(given: Mapping[str, str], name: str) -> ZoneInfo:
    """The time zone of a setting."""
    try:
        return ZoneInfo(given[name])
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise AccountSettingError(name, f"{given[name][:40]!r} is no IANA time zone") from None

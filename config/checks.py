"""Start-up checks: unsafe settings are refused before the first request."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from chargebacks.alert_intake import parse_provider_secrets
from config.launcher.errors import LaunchError
from config.launcher.programs import WEB_TIMEOUT_S, max_threads_per_account, read_web_sessions, read_web_threads
from gateway.core.bin_table import BinTableError
from gateway.core.brands import load_bin_tables
from gateway.db.environment import find_history_fault
from gateway.notifications.retry_schedule import WEBHOOK_GIVE_UP_AFTER
from gateway.payments.payment_archive import MIN_PAYMENT_HOT_DAYS
from gateway.portal.documents import list_documents
from gateway.threeds.server_setup import find_channels_without_server

_PORTS = re.compile("[0-9]{1,5}(-[0-9]{1,5})?")


@register()
def check_environment(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """GATEWAY_ENVIRONMENT is test or live."""
    if settings.GATEWAY_ENVIRONMENT in ("test", "live"):
        return []
    return [
        Error(f"GATEWAY_ENVIRONMENT is {settings.GATEWAY_ENVIRONMENT!r}; it must be test or live.", id="tollhouse.E001")
    ]


@register()
def check_outbound_ports(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Ports that outbound calls may use are numbers or ranges."""
    wrong = [word for word in settings.GATEWAY_OUTBOUND_PORTS if not _PORTS.fullmatch(word)]
    if not wrong:
        return []
    return [
        Error(f"GATEWAY_OUTBOUND_PORTS holds {wrong[0]!r}: give ports or ranges, 443,8000-9999.", id="tollhouse.E017")
    ]


@register()
def check_webhook_retention(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """A webhook deleted too early would look as if it had never been delivered, and be sent again."""
    days: int = settings.GATEWAY_WEBHOOK_DAYS
    if days > WEBHOOK_GIVE_UP_AFTER.days:
        return []
    words = f"GATEWAY_WEBHOOK_DAYS is {days}; it must be above {WEBHOOK_GIVE_UP_AFTER.days}, the days"
    return [Error(f"{words} for which a webhook is tried.", id="tollhouse.E018")]


MIN_REQUEST_LOG_DAYS = 1
MIN_ACQUIRER_MESSAGE_DAYS = 540
"""So long schemes let a payment be disputed: the messages are its evidence."""
MIN_PAYMENT_ACCOUNT_DAYS, MAX_PAYMENT_ACCOUNT_DAYS = 400, 1_095
"""At least: MAX_AUTHORIZATION_DAYS, RENEWAL_GRACE and some days for the release, since a capture, a renewal and a
reversal may need the account. At most: PCI DSS 3.2.1 asks for a reason."""


@register()
def check_retention_days(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """A retention of 0 or less would delete what is needed at once; account numbers are not kept without an end."""
    faults: list[CheckMessage] = []
    days: int = settings.GATEWAY_REQUEST_LOG_DAYS
    if days < MIN_REQUEST_LOG_DAYS:
        words = f"GATEWAY_REQUEST_LOG_DAYS is {days}; it must be {MIN_REQUEST_LOG_DAYS} or more."
        faults.append(Error(words, id="tollhouse.E044"))
    days = settings.GATEWAY_ACQUIRER_MESSAGE_DAYS
    if days < MIN_ACQUIRER_MESSAGE_DAYS:
        words = f"GATEWAY_ACQUIRER_MESSAGE_DAYS is {days}; it must be {MIN_ACQUIRER_MESSAGE_DAYS} or more."
        faults.append(Error(words, id="tollhouse.E050"))
    days = settings.GATEWAY_PAYMENT_ACCOUNT_DAYS
    if not MIN_PAYMENT_ACCOUNT_DAYS <= days <= MAX_PAYMENT_ACCOUNT_DAYS:
        words = f"GATEWAY_PAYMENT_ACCOUNT_DAYS is {days}; it must be {MIN_PAYMENT_ACCOUNT_DAYS} to"
        faults.append(Error(f"{words} {MAX_PAYMENT_ACCOUNT_DAYS}.", id="tollhouse.E045"))
    days = settings.GATEWAY_PAYMENT_HOT_DAYS
    if days and days < MIN_PAYMENT_HOT_DAYS:
        words = (
            f"GATEWAY_PAYMENT_HOT_DAYS is {days}; it must be 0 (payments are not archived) or {MIN_PAYMENT_HOT_DAYS}"
        )
        faults.append(Error(f"{words} or more.", id="tollhouse.E051"))
    return faults


@register()
def check_payment_time_budget(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The authentication (two calls of a 3DS server), the last acquirer of a failover or step-up, and the void of a
    refused approval must end before the worker is replaced."""
    web: str = os.environ.get("GATEWAY_WEB_TIMEOUT_S", "")
    limit = float(web) if web.isdecimal() else float(WEB_TIMEOUT_S)
    longest = settings.GATEWAY_FAILOVER_WITHIN_S + 4 * settings.GATEWAY_ACQUIRER_TIMEOUT_S
    if longest < limit:
        return []
    words = f"GATEWAY_FAILOVER_WITHIN_S and four times GATEWAY_ACQUIRER_TIMEOUT_S are {longest:g} s together; they"
    return [Error(f"{words} must be less than GATEWAY_WEB_TIMEOUT_S ({limit:g} s).", id="tollhouse.E019")]


@register()
def check_threads_per_account(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """A slow acquirer that may hold every thread of a web process blocks all other payments. Without the setting it
    cannot (config/wsgi.py); defaults of a process that serves no requests do not matter."""
    try:
        threads, share = read_web_threads(), max_threads_per_account()
        read_web_sessions()
    except LaunchError as fault:
        return [Error(str(fault), id="tollhouse.E020")]
    if not os.environ.get("GATEWAY_ACQUIRER_MAX_IN_FLIGHT"):
        return []
    most = settings.GATEWAY_ACQUIRER_MAX_IN_FLIGHT
    if most < threads or threads == 1:
        return []
    words = f"GATEWAY_ACQUIRER_MAX_IN_FLIGHT is {most} and GATEWAY_WEB_THREADS {threads}: one slow acquirer may hold"
    return [
        Warning(
            f"{words} every thread of a web process.",
            hint=f"Set it below the threads; not set, it is {share}.",
            id="tollhouse.W020",
        )
    ]


@register()
def check_bin_file(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The operator's table of BINs can be read: a payment is not where a wrong line should be found."""
    try:
        load_bin_tables(settings.GATEWAY_BIN_FILE, settings.IS_LIVE)
    except BinTableError as fault:
        return [Error(f"GATEWAY_BIN_FILE, {settings.GATEWAY_BIN_FILE}: {fault}.", id="tollhouse.E052")]
    return []


@register()
def check_atomic_requests(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """With ATOMIC_REQUESTS the acquirer would be called inside a transaction."""
    if not settings.DATABASES["default"]["ATOMIC_REQUESTS"]:
        return []
    return [Error("ATOMIC_REQUESTS must stay False.", id="tollhouse.E002")]


@register(Tags.database)
def check_database_history(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Run by `manage.py migrate` before it looks at the migrations, and by `manage.py check --database default`."""
    fault = find_history_fault() if kwargs.get("databases") else None
    return [Error(fault, id="tollhouse.E028")] if fault else []


@register()
def check_second_factor(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The rule for second factors is one of two words."""
    if settings.GATEWAY_TOTP in ("required", "optional"):
        return []
    return [Error(f"GATEWAY_TOTP is {settings.GATEWAY_TOTP!r}; it must be required or optional.", id="tollhouse.E003")]


@register()
def check_alert_providers(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The list of alert providers can be read."""
    try:
        parse_provider_secrets(settings.GATEWAY_ALERT_PROVIDERS)
    except ValueError as fault:
        return [Error(f"GATEWAY_ALERT_PROVIDERS, {fault}.", id="tollhouse.E041")]
    return []


@register()
def check_live_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """What a live environment must not start with."""
    if not settings.IS_LIVE:
        return []
    faults: list[CheckMessage] = []
    if settings.DEBUG:
        faults.append(Error("DJANGO_DEBUG must be off in the live environment.", id="tollhouse.E010"))
    if not settings.GATEWAY_BASE_URL.startswith("https://"):
        faults.append(Error("GATEWAY_BASE_URL must start with https:// in the live environment.", id="tollhouse.E011"))
    if why := _find_key_weakness(settings.SECRET_KEY):
        faults.append(Error(f"DJANGO_SECRET_KEY {why}.", hint=_A_KEY, id="tollhouse.E012"))
    if "*" in settings.ALLOWED_HOSTS:
        faults.append(Error("DJANGO_ALLOWED_HOSTS must name hosts in the live environment.", id="tollhouse.E013"))
    if settings.GATEWAY_OUTBOUND_LOOPBACK:
        faults.append(Error("GATEWAY_OUTBOUND_LOOPBACK must be off in the live environment.", id="tollhouse.E016"))
    if settings.GATEWAY_STUB_ACQUIRER:
        faults.append(Error("GATEWAY_STUB_ACQUIRER must be empty in the live environment.", id="tollhouse.E021"))
    faults += _check_sign_in()
    if settings.GATEWAY_VAULT_KEYSET:
        return faults
    return faults + _check_keyset_mode(Path(settings.GATEWAY_VAULT_KEYSET_FILE))


_A_KEY = "python -c 'import secrets; print(secrets.token_urlsafe(48))' makes one."
MIN_SECRET_KEY_CHARS = 40
MIN_SECRET_KEY_DISTINCT_CHARS = 10
"""Fewest different characters of a secret key: 40 random hexadecimal digits have fewer once in a million."""


def _find_key_weakness(key: str) -> str:
    """Why a secret key is weak; empty if no reason is found."""
    if len(key) < MIN_SECRET_KEY_CHARS:
        return f"must have {MIN_SECRET_KEY_CHARS} characters or more"
    if len(set(key)) < MIN_SECRET_KEY_DISTINCT_CHARS or (key + key).find(key, 1) < len(key):
        return "repeats itself: it must be random"
    return "is Django's own proposal: it must be yours" if key.startswith("django-insecure-") else ""


MAX_SESSION_IDLE_MINUTES = 15
"""PCI DSS 8.2.8."""
MAX_SESSION_HOURS = 24
MAX_UNUSED_DAYS = 90
"""PCI DSS 8.2.6."""


def _check_sign_in() -> list[CheckMessage]:
    """PCI DSS requirements on user access, which settings may relax in the test environment only."""
    faults: list[CheckMessage] = []
    if settings.GATEWAY_TOTP != "required":
        faults.append(Error("GATEWAY_TOTP must be required in the live environment.", id="tollhouse.E022"))
    if not 0 < settings.GATEWAY_SESSION_IDLE_MINUTES <= MAX_SESSION_IDLE_MINUTES:
        words = f"GATEWAY_SESSION_IDLE_MINUTES must be 1 to {MAX_SESSION_IDLE_MINUTES} in the live environment."
        faults.append(Error(words, id="tollhouse.E023"))
    if not 0 < settings.GATEWAY_SESSION_HOURS <= MAX_SESSION_HOURS:
        words = f"GATEWAY_SESSION_HOURS must be 1 to {MAX_SESSION_HOURS} in the live environment."
        faults.append(Error(words, id="tollhouse.E024"))
    if not 0 < settings.GATEWAY_UNUSED_ACCOUNT_DAYS <= MAX_UNUSED_DAYS:
        words = f"GATEWAY_UNUSED_ACCOUNT_DAYS must be 1 to {MAX_UNUSED_DAYS} in the live environment."
        faults.append(Error(words, id="tollhouse.E027"))
    if settings.GATEWAY_PASSWORD_CHECKS_PER_MINUTE < 1:
        words = "GATEWAY_PASSWORD_CHECKS_PER_MINUTE must be 1 or more in the live environment."
        faults.append(Error(words, id="tollhouse.E030"))
    if settings.GATEWAY_OIDC_ISSUER and not settings.GATEWAY_OIDC_ISSUER.startswith("https://"):
        words = "GATEWAY_OIDC_ISSUER must start with https:// in the live environment."
        faults.append(Error(words, id="tollhouse.E025"))
    return faults


MAX_NAMED_CHANNELS = 5


@register()
def check_threeds_servers(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """In live, a channel with 3-D Secure needs a 3DS server: without one all its payments are declined. A database that
    cannot be read, or has not the columns yet, is left to other checks."""
    try:
        lacking = find_channels_without_server()
    except DatabaseError:
        return []
    if not lacking:
        return []
    named = ", ".join(f"{one.name} ({one.entity_id})" for one in lacking[:MAX_NAMED_CHANNELS])
    more = f" and {len(lacking) - MAX_NAMED_CHANNELS} more" if len(lacking) > MAX_NAMED_CHANNELS else ""
    return [
        Error(
            f"3-D Secure is on without a 3DS server behind it: {named}{more}.",
            hint="Give threeDSecure.server, or switch threeDSecure.enabled off, with `manage.py configure`.",
            id="tollhouse.E029",
        )
    ]


@register()
def check_single_sign_on(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Single sign-on has all of its settings or none."""
    names = ("GATEWAY_OIDC_ISSUER", "GATEWAY_OIDC_CLIENT_ID", "GATEWAY_OIDC_CLIENT_SECRET")
    given = [name for name in names if getattr(settings, name)]
    if not given or len(given) == len(names):
        return []
    lacking = ", ".join(name for name in names if name not in given)
    return [Error(f"Single sign-on lacks {lacking}: give all three, or none.", id="tollhouse.E026")]


@register()
def check_watching(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Traces and error reports have their packages, and a share that is one."""
    wanted = (("GATEWAY_TRACES_ENDPOINT", "opentelemetry", "otel"), ("GATEWAY_SENTRY_DSN", "sentry_sdk", "sentry"))
    faults: list[CheckMessage] = [
        Error(f"{name} is set and {package} is missing.", hint=f"pip install 'tollhouse[{extra}]'", id=_NO_PACKAGE)
        for name, package, extra in wanted
        if getattr(settings, name) and find_spec(package) is None
    ]
    if not 0 <= settings.GATEWAY_TRACES_SHARE <= 1:
        words = f"GATEWAY_TRACES_SHARE is {settings.GATEWAY_TRACES_SHARE:g}; it must be 0 to 1."
        faults.append(Error(words, id="tollhouse.E043"))
    return faults


_NO_PACKAGE = "tollhouse.E042"


@register()
def check_documents(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The folder docs/, of which the pages under /docs are made."""
    try:
        list_documents()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="tollhouse.E040")]
    return []


def _check_keyset_mode(path: Path) -> list[CheckMessage]:
    if not path.is_file():
        return [
            Error(
                f"The vault keyset {path} is missing.",
                hint="Make one with `manage.py vault_key --create`, or restore the old one: "
                "without it sealed cards are lost.",
                id="tollhouse.E014",
            )
        ]
    if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        return [Error(f"The vault keyset {path} is readable by others: chmod 600.", id="tollhouse.E015")]
    return []

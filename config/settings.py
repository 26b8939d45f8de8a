"""Settings, all from the environment: each is defined once, with its unit and its default.

Run `python -m config.launcher` (or `make run`) for embedded defaults; docs/settings.md lists the same names.
"""

import contextlib
import os
import warnings
from datetime import timedelta
from pathlib import Path

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured

from config.admin_theme import ADMIN_THEME
from config.environment import Environment
from gateway.logs import build_logging_config

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(os.environ.get("TOLLHOUSE_VAR") or BASE_DIR / "var").absolute()
env = Environment()

# --- environment and addresses ------------------------------------------------------------------------------------
# test | live. Two environments are two databases; tokens and ids of one mean nothing to the other.
GATEWAY_ENVIRONMENT: str = env.str("GATEWAY_ENVIRONMENT", default="test")
IS_LIVE = GATEWAY_ENVIRONMENT == "live"
# Public base address of this installation; no slash at the end.
GATEWAY_BASE_URL: str = env.str("GATEWAY_BASE_URL", default="http://127.0.0.1:8000").rstrip("/")
# <40 hex>@<yyyy-MM-dd HH:mm:ss> +0000, in every answer.
GATEWAY_BUILD_NUMBER: str = env.str("GATEWAY_BUILD_NUMBER", default=f"{'0' * 40}@1970-01-01 00:00:00 +0000")
SECRET_KEY: str = env.str("DJANGO_SECRET_KEY")
DEBUG: bool = env.bool("DJANGO_DEBUG", default=False)
ALLOWED_HOSTS: list[str] = env.list("DJANGO_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
# True behind a proxy that sets X-Forwarded-Proto and X-Forwarded-For itself and drops what clients send.
GATEWAY_BEHIND_PROXY: bool = env.bool("GATEWAY_BEHIND_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if GATEWAY_BEHIND_PROXY else None

# A token for GET /metrics; without one only this machine may read the metrics.
GATEWAY_METRICS_TOKEN: str = env.str("GATEWAY_METRICS_TOKEN", default="")

# Where spans are sent, OTLP over HTTP (http://127.0.0.1:4318/v1/traces); empty: there are none. Needs tollhouse[otel].
GATEWAY_TRACES_ENDPOINT: str = env.str("GATEWAY_TRACES_ENDPOINT", default="")
# Which share of the traces, 0 to 1.
GATEWAY_TRACES_SHARE: float = env.float("GATEWAY_TRACES_SHARE", default=1.0)
# Where error reports are sent, an address in Sentry's form (DSN); empty: nowhere. Needs tollhouse[sentry].
GATEWAY_SENTRY_DSN: str = env.str("GATEWAY_SENTRY_DSN", default="")

# --- the vault --------------------------------------------------------------------------------------------------
# A JSON keyset file (mode 0600); created on first use in the test environment, must exist in live.
GATEWAY_VAULT_KEYSET_FILE: str = env.str("GATEWAY_VAULT_KEYSET_FILE", default=str(VAR_DIR / "vault.json"))
# The keyset itself, JSON, instead of the file (docs/vault.md).
GATEWAY_VAULT_KEYSET: str = env.str("GATEWAY_VAULT_KEYSET", default="")
# A callable of yours, package.module:function, that decrypts the stored keyset: bytes -> JSON. Empty: not encrypted.
GATEWAY_VAULT_KMS: str = env.str("GATEWAY_VAULT_KMS", default="")

# --- network tokens ---------------------------------------------------------------------------------------------
# The token service of the card networks, package.module:NAME. Empty: the simulated one, and none in live.
GATEWAY_TOKEN_SERVICE: str = env.str("GATEWAY_TOKEN_SERVICE", default="")

# --- account updater --------------------------------------------------------------------------------------------
# The account updater of the card networks, package.module:NAME. Empty: the simulated one, and none in live.
GATEWAY_ACCOUNT_UPDATER: str = env.str("GATEWAY_ACCOUNT_UPDATER", default="")

# --- card facts -------------------------------------------------------------------------------------------------
# The table of BINs: issuers, countries, kinds and levels of cards (docs/card-facts.md). Empty: none in live, and in the
# test environment invented banks alone, which a file adds to.
GATEWAY_BIN_FILE: str = env.str("GATEWAY_BIN_FILE", default="")

# --- limits -----------------------------------------------------------------------------------------------------
# Largest body, bytes: twice a cart of 1,000 items with every field.
GATEWAY_MAX_BODY_BYTES: int = env.int("GATEWAY_MAX_BODY_BYTES", default=4 * 1024 * 1024)
# Requests per window of one entity and operation, if the channel sets no limit; 0 = unlimited.
GATEWAY_THROTTLE_LIMIT: int = env.int("GATEWAY_THROTTLE_LIMIT", default=600)
# Length of that window, seconds.
GATEWAY_THROTTLE_WINDOW_S: int = env.int("GATEWAY_THROTTLE_WINDOW_S", default=1)
# HTTP status of a throttled request: 429, or 400 for clients that cannot handle it (D11).
GATEWAY_THROTTLE_STATUS: int = env.int("GATEWAY_THROTTLE_STATUS", default=429)
# Retention of the request log (found by ndc), days; whole months are dropped. PCI DSS 10.5.1: twelve months.
GATEWAY_REQUEST_LOG_DAYS: int = env.int("GATEWAY_REQUEST_LOG_DAYS", default=366)
# Retention of the messages to acquirers and their answers, days since their payment was made; whole months are dropped.
# Records of payment services are kept for five years (Directive (EU) 2015/2366, article 21).
GATEWAY_ACQUIRER_MESSAGE_DAYS: int = env.int("GATEWAY_ACQUIRER_MESSAGE_DAYS", default=1_827)
# Days after which the sealed account number of a payment (card number, IBAN) is erased; its fingerprint stays. Schemes
# let a payment be disputed, and refunded, for up to 540 days.
GATEWAY_PAYMENT_ACCOUNT_DAYS: int = env.int("GATEWAY_PAYMENT_ACCOUNT_DAYS", default=540)
# Days after which a payment is archived without its shopper's data; 0 = never. At least 1,095: see config/checks.py.
GATEWAY_PAYMENT_HOT_DAYS: int = env.int("GATEWAY_PAYMENT_HOT_DAYS", default=0)
# Django's own limits are a second line behind ours (gateway.api.body_limits), which apply before anything is read.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000
DATA_UPLOAD_MAX_NUMBER_FILES = 1

# Whether the test environment tries each row of its test data once a day and shows the results on /testdata.
GATEWAY_SELF_TEST: bool = env.bool("GATEWAY_SELF_TEST", default=not IS_LIVE)

# --- risk -------------------------------------------------------------------------------------------------------
# The card-testing guard, for channels without a setting of their own (docs/risk.md).
GATEWAY_CARD_TESTING_GUARD: bool = env.bool("GATEWAY_CARD_TESTING_GUARD", default=True)
# How many more failed than approved cards from one address or device stop the next; 0 = never.
GATEWAY_CARD_TESTING_FAILURES: int = env.int("GATEWAY_CARD_TESTING_FAILURES", default=10)
# The same for one BIN, which many shoppers share.
GATEWAY_CARD_TESTING_BIN_FAILURES: int = env.int("GATEWAY_CARD_TESTING_BIN_FAILURES", default=60)
# Period of these counts, seconds, 60 to 3,600.
GATEWAY_CARD_TESTING_WINDOW_S: int = env.int("GATEWAY_CARD_TESTING_WINDOW_S", default=600)

# --- shoppers ---------------------------------------------------------------------------------------------------
# Seconds a shopper may stay at a bank or wallet, or with an authentication, before the payment ends.
GATEWAY_SHOPPER_DEADLINE_S: int = env.int("GATEWAY_SHOPPER_DEADLINE_S", default=1_800)
# How long money is awaited that a bank has not confirmed, seconds: a prepayment, a debit that may be returned.
GATEWAY_TRANSFER_DEADLINE_S: int = env.int("GATEWAY_TRANSFER_DEADLINE_S", default=1_209_600)

# The folder of the built widget script, and of the builds before it.
GATEWAY_WIDGET_DIST: str = env.str("GATEWAY_WIDGET_DIST", default=str(BASE_DIR / "checkout" / "widget" / "dist"))
# The file that seed_demo writes: the demo shop at /demo/ belongs to that merchant (test environment).
GATEWAY_DEMO_FILE: str = env.str("GATEWAY_DEMO_FILE", default=str(VAR_DIR / "demo.json"))
# Allowed origins of wallet providers by brand, JSON: {"WALLET2": ["https://pay.provider.example"]}. They bound what a
# channel's configuration may name (walletProviders).
GATEWAY_WALLET_ORIGINS: dict[str, list[str]] = env.json("GATEWAY_WALLET_ORIGINS", default={})
# The name of this node in checkout ids: 1 to 15 letters and digits.
GATEWAY_NODE: str = env.str("GATEWAY_NODE", default="node01")

# --- the back office --------------------------------------------------------------------------------------------
# The folder of exports and imports while they run and for a week after; web servers and workers share it.
GATEWAY_WORK_DIR: str = env.str("GATEWAY_WORK_DIR", default=str(VAR_DIR / "work"))

# --- acquirers --------------------------------------------------------------------------------------------------
# Acquirer timeout, seconds, connecting included; after it the payment is in doubt and recovery inquires.
GATEWAY_ACQUIRER_TIMEOUT_S: float = env.float("GATEWAY_ACQUIRER_TIMEOUT_S", default=10.0)
# Most payments of one process that wait for one acquirer account at a time; one more is sent elsewhere. A web
# process without this setting uses half of its threads (config/wsgi.py).
GATEWAY_ACQUIRER_MAX_IN_FLIGHT: int = env.int("GATEWAY_ACQUIRER_MAX_IN_FLIGHT", default=64)
# Most open requests on one persistent connection to an acquirer: payments, inquiries and voids of all its accounts.
GATEWAY_ACQUIRER_MAX_ON_LINE: int = env.int(
    "GATEWAY_ACQUIRER_MAX_ON_LINE", default=max(64, GATEWAY_ACQUIRER_MAX_IN_FLIGHT)
)
# Subscription runs that one worker makes in parallel; each has a database connection of its own.
GATEWAY_JOB_LANES: int = env.int("GATEWAY_JOB_LANES", default=4)
# Circuit breaker of an account: it opens when this share of at least so many requests within so many seconds got no
# connection, and stays open for so many seconds; then single payments try it.
GATEWAY_BREAKER_SHARE: float = env.float("GATEWAY_BREAKER_SHARE", default=0.5)
GATEWAY_BREAKER_LEAST: int = env.int("GATEWAY_BREAKER_LEAST", default=10)
GATEWAY_BREAKER_WINDOW_S: float = env.float("GATEWAY_BREAKER_WINDOW_S", default=30.0)
GATEWAY_BREAKER_PAUSE_S: float = env.float("GATEWAY_BREAKER_PAUSE_S", default=10.0)
# Failover: to how many further acquirers a payment may go if the one before certainly did not accept it, and until how
# many seconds after the first request another one is begun.
GATEWAY_FAILOVER_MOST: int = env.int("GATEWAY_FAILOVER_MOST", default=2)
GATEWAY_FAILOVER_WITHIN_S: float = env.float("GATEWAY_FAILOVER_WITHIN_S", default=10.0)
# host:port of the bundled stub acquirer, for channels with an account at the connector "stub"; empty: none.
GATEWAY_STUB_ACQUIRER: str = env.str("GATEWAY_STUB_ACQUIRER", default="")

# --- bank direct debits (docs/connectors/sepa.md) -----------------------------------------------------------------
# The folder of collection files for banks, one subfolder per merchant and account; clear IBANs, mode 0600.
GATEWAY_SEPA_OUTBOX: str = env.str("GATEWAY_SEPA_OUTBOX", default=str(VAR_DIR / "sepa"))
# Days after which a delivered file is deleted there.
GATEWAY_SEPA_OUTBOX_DAYS: int = env.int("GATEWAY_SEPA_OUTBOX_DAYS", default=14)
# The folder of banks' answers (pain.002, camt.052 to 054, pacs.004); empty: none is watched.
GATEWAY_SEPA_INBOX: str = env.str("GATEWAY_SEPA_INBOX", default="")
# Largest message from a bank, bytes.
GATEWAY_SEPA_MAX_BYTES: int = env.int("GATEWAY_SEPA_MAX_BYTES", default=256 * 1024 * 1024)
# Days after the collection date to wait for the bank's answer, before the payment is treated as overdue.
GATEWAY_SEPA_ANSWER_DAYS: int = env.int("GATEWAY_SEPA_ANSWER_DAYS", default=60)

# --- outbound calls: webhooks, result URLs ------------------------------------------------------------------------
# Whether addresses of this machine may be called: for trying webhooks. Refused in live.
GATEWAY_OUTBOUND_LOOPBACK: bool = env.bool("GATEWAY_OUTBOUND_LOOPBACK", default=not IS_LIVE)
# Allowed ports on the public internet, numbers and ranges.
GATEWAY_OUTBOUND_PORTS: list[str] = env.list("GATEWAY_OUTBOUND_PORTS", default=["80", "443", "8000-9999"])
# Further ports of this machine that are never called, if it runs more than the gateway; and the web server's own, which
# the base address does not have behind a proxy.
GATEWAY_OUTBOUND_NEVER_PORTS: list[int] = env.list("GATEWAY_OUTBOUND_NEVER_PORTS", cast=int, default=[])
GATEWAY_OUTBOUND_NEVER_PORTS += [int(port) for port in (env.str("PORT", default="8000"),) if port.isdecimal()]
# Allowed ports of SFTP servers, numbers and ranges.
GATEWAY_SFTP_PORTS: list[str] = env.list("GATEWAY_SFTP_PORTS", default=["22", "1024-65535"])
# Private networks, such as 10.1.2.0/24, in which SFTP servers may be called in addition to the public internet.
GATEWAY_SFTP_NETWORKS: list[str] = env.list("GATEWAY_SFTP_NETWORKS", default=[])
# A PEM file of certificate authorities that are trusted in addition to the system's.
GATEWAY_OUTBOUND_CA_FILE: str = env.str("GATEWAY_OUTBOUND_CA_FILE", default="")

# Retention of a webhook with its attempts after its delivery ended, days; it can be replayed until then. At least 31.
GATEWAY_WEBHOOK_DAYS: int = env.int("GATEWAY_WEBHOOK_DAYS", default=90)

# --- settlement and disputes --------------------------------------------------------------------------------------
# The folder of settlement files: <folder>/<key of the institution>/ is scanned; empty: no folder is watched.
GATEWAY_SETTLEMENT_FOLDER: str = env.str("GATEWAY_SETTLEMENT_FOLDER", default="")
# Largest settlement file, bytes.
GATEWAY_SETTLEMENT_MAX_BYTES: int = env.int("GATEWAY_SETTLEMENT_MAX_BYTES", default=2 * 1024 * 1024 * 1024)
# Days a merchant has to answer a chargeback, if the acquirer's file gives no date.
GATEWAY_CHARGEBACK_ANSWER_DAYS: int = env.int("GATEWAY_CHARGEBACK_ANSWER_DAYS", default=0)
# Alert providers that may report alerts before disputes: name=secret,… A name comes twice while its secret changes.
GATEWAY_ALERT_PROVIDERS: list[str] = env.list("GATEWAY_ALERT_PROVIDERS", default=[])
# A TrueType font for dispute packets; empty: the usual places are searched.
GATEWAY_PDF_FONT: str = env.str("GATEWAY_PDF_FONT", default="")
# Sender of mails, and the server that sends them: smtp://user:password@host:587, smtps://…, consolemail://
# (written to the log; the default).
GATEWAY_MAIL_FROM: str = env.str("GATEWAY_MAIL_FROM", default="tollhouse@localhost")
vars().update(env.email("EMAIL_URL", default="consolemail://"))
# Timeout of the mail server, seconds; Django would wait for ever.
EMAIL_TIMEOUT = 10

# --- reconciliation files ---------------------------------------------------------------------------------------
# The folder of merchants' daily reconciliation files, one subfolder per merchant.
GATEWAY_OUTBOX: str = env.str("GATEWAY_OUTBOX", default=str(VAR_DIR / "outbox"))

# --- PostgreSQL -------------------------------------------------------------------------------------------------
for _name in ("DATABASE_URL", "GATEWAY_STANDBY_URL"):
    # What is no address would be repeated, with its password, by a warning of the library that reads it.
    if (_text := env.str(_name, default="")) and "://" not in _text:
        raise ImproperlyConfigured(f"{_name} is no address: postgresql://user:password@host:5432/name.")
# A session is given up at the end of the request or task in which it becomes so old, seconds: what PostgreSQL keeps in
# it (plans, catalogues of partitions) grows with everything that it is asked.
_SESSION_MAX_AGE_S = 1_800
DATABASES = {"default": env.db_url("DATABASE_URL")}
# postgresql://user:password@/name?host=/folder&port=5432 names a unix socket.
for _name in ("host", "port"):
    if _found := DATABASES["default"].get("OPTIONS", {}).pop(_name, None):
        DATABASES["default"][_name.upper()] = str(_found)
DATABASES["default"].update(
    {
        "ENGINE": "gateway.db.postgresql",
        "CONN_MAX_AGE": _SESSION_MAX_AGE_S,
        "ATOMIC_REQUESTS": False,
        # A server that refuses writes is none to connect to: a standby behind a name or proxy that has not noticed a
        # fail-over yet would be kept. The address's own options win.
        "OPTIONS": {
            "target_session_attrs": "read-write",
            **DATABASES["default"].get("OPTIONS", {}),
            "prepare_threshold": 3,
        },
        "TEST": {"NAME": env.str("TEST_DATABASE_NAME", default=None)},
    }
)
# A standby of the same database, or several, in DATABASE_URL's form: lists, searches, reports and exports are read from
# it (docs/running.md); empty: from the primary, as everything else always is.
GATEWAY_STANDBY_URL: str = env.str("GATEWAY_STANDBY_URL", default="")
# How far the standby may be behind, seconds; beyond that the primary is read.
GATEWAY_STANDBY_MAX_LAG_S: float = env.float("GATEWAY_STANDBY_MAX_LAG_S", default=5.0)
if GATEWAY_STANDBY_URL:
    DATABASES["standby"] = {
        **env.db_url("GATEWAY_STANDBY_URL"),
        "ENGINE": "gateway.db.postgresql",
        "CONN_MAX_AGE": _SESSION_MAX_AGE_S,
        "ATOMIC_REQUESTS": False,
        "TEST": {"MIRROR": "default"},
    }
    # A standby that falls silent is given up within seconds; by default TCP would wait for minutes. The address's own
    # options win.
    DATABASES["standby"]["OPTIONS"] = {
        "connect_timeout": 2,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 8000,
    } | DATABASES["standby"].get("OPTIONS", {})
    DATABASE_ROUTERS = ["gateway.db.standby.StandbyRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Celery -----------------------------------------------------------------------------------------------------
# The broker only wakes: every due time is a row in PostgreSQL (docs/time.md).
CELERY_BROKER_URL: str = env.str("CELERY_BROKER_URL", default="redis://127.0.0.1:6379/0")
_ON_RABBITMQ = CELERY_BROKER_URL.startswith(("amqp", "pyamqp"))
# Wake a worker when a payment has a notification to send, rather than at the next tick; off where no worker runs.
GATEWAY_WAKE_UPS: bool = env.bool("GATEWAY_WAKE_UPS", default=not CELERY_BROKER_URL.startswith("memory:"))
# Time limit of a timer's run, seconds: its process is killed, and what it had claimed is done by the next run.
GATEWAY_TIMER_LIMIT_S: int = env.int("GATEWAY_TIMER_LIMIT_S", default=900)
# Difference between this machine's clock and the database's from which it runs no timers and is not ready; 0: any.
GATEWAY_MAX_CLOCK_DIFFERENCE_S: float = env.float("GATEWAY_MAX_CLOCK_DIFFERENCE_S", default=1.0)
if _ON_RABBITMQ:
    # Replicated queues that survive the loss of a node; a silent connection is noticed in seconds.
    CELERY_TASK_DEFAULT_QUEUE_TYPE = "quorum"
    CELERY_BROKER_HEARTBEAT = 10
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, bool | int] = {"confirm_publish": True}
else:
    # Redis and Valkey. Tasks of a killed worker come back after at most 5 s (default of kombu: 100), and a broker that
    # does not answer is given up rather than waited for. The visibility timeout exceeds GATEWAY_TIMER_LIMIT_S.
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "visibility_timeout": 3600,
        "unacked_restore_interval": 5,
        "socket_connect_timeout": 5,
        "socket_timeout": 10,
        "socket_keepalive": True,
        "health_check_interval": 10,
    }
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# None: without end.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_TIMEOUT = 4
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
# A task is acknowledged when done: if its process died, another worker gets it. It expires soon, so it cannot loop.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = GATEWAY_TIMER_LIMIT_S
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# No remote control over the broker, so workers need no queues of their own for it.
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_MAX_TASKS_PER_CHILD = 20_000
# Tasks for which a worker reuses its database connection; config.celery checks that it is alive before each.
CELERY_DB_REUSE_MAX = 1_000
# A worker that takes no task for so many seconds, although tasks wait and a process is free, ends, and its supervisor
# starts it again; 0: never.
GATEWAY_WORKER_STALLED_S: float = env.float("GATEWAY_WORKER_STALLED_S", default=15.0)
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "config.beat:TimerScheduler"
CELERY_TIMEZONE = "UTC"

# --- Django -----------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "config.apps.TollhouseAdminConfig",
    "gateway.access.apps.AccessConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_celery_beat",
    "pgtrigger",
    "csp",
    "config.apps.AccountsConfig",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "axes",
    "config.apps.CompositionConfig",
    "gateway",
    "gateway.scheduling.apps.SchedulingConfig",
    "checkout",
    "reporting",
    "chargebacks",
]
# API requests pass the middleware of gateway.api.middleware untouched: they have no session, form or page.
MIDDLEWARE = [
    "gateway.api.middleware.TlsOnlyMiddleware",
    "gateway.api.middleware.NullByteMiddleware",
    "gateway.api.middleware.OpenerPolicyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "gateway.api.middleware.ApiShortcutMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "gateway.api.middleware.PagePolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "gateway.api.body_limits.BodyLimitMiddleware",
    "gateway.api.middleware.PagesCsrfMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "gateway.api.middleware.SignInContextMiddleware",
    "gateway.backoffice.sign_in.session.BackofficeSessionMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
CSRF_FAILURE_VIEW = "gateway.api.error_views.csrf_failure"
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
LANGUAGE_CODE = "en"
# Of the back office; the payment form has 25 of its own.
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("fr", "Français")]
LOCALE_PATHS = [BASE_DIR / "config" / "locale"]
FORMAT_MODULE_PATH = ["config.formats"]
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
with contextlib.suppress(OSError):  # in a read-only installation
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)
STATICFILES_DIRS = [BASE_DIR / "static"]
# The finders serve what is in the tree; nothing has to be collected before the first start.
WHITENOISE_USE_FINDERS = True
# WhiteNoise's, of a STATIC_ROOT that is not there: a read-only installation has none, and needs none.
warnings.filterwarnings("ignore", "No directory at", UserWarning)
WHITENOISE_MAX_AGE = 3600
# --- the back office --------------------------------------------------------------------------------------------
# Permissions come from grants (gateway.access.permissions); axes locks out after too many tries, passwords are
# Django's.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "gateway.access.permissions.GrantBackend"]
UNFOLD = ADMIN_THEME
# required | optional: whether all users sign in with a second factor, or only those who set one up. Required in live.
GATEWAY_TOTP: str = env.str("GATEWAY_TOTP", default="required" if IS_LIVE else "optional")
# A session ends after so many hours, and after so many minutes without a page (PCI DSS 8.2.8: 15, the most in live).
GATEWAY_SESSION_HOURS: int = env.int("GATEWAY_SESSION_HOURS", default=12)
GATEWAY_SESSION_IDLE_MINUTES: int = env.int("GATEWAY_SESSION_IDLE_MINUTES", default=15 if IS_LIVE else 60)
SESSION_COOKIE_AGE = GATEWAY_SESSION_HOURS * 3600
# A row after a password was shown, a signed cookie before: visitors write no rows.
SESSION_ENGINE = "gateway.access.sessions"
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
# Days without use after which an account is disabled (PCI DSS 8.2.6: 90, the most in live); 0: never.
GATEWAY_UNUSED_ACCOUNT_DAYS: int = env.int("GATEWAY_UNUSED_ACCOUNT_DAYS", default=90)
# Passwords that one process checks in a minute for addresses without a recent sign-in (0.3 s of CPU each); 0:
# no bound.
GATEWAY_PASSWORD_CHECKS_PER_MINUTE: int = env.int("GATEWAY_PASSWORD_CHECKS_PER_MINUTE", default=30)
# Single sign-on: the address of an OpenID Connect provider (below it lies /.well-known/openid-configuration), and the
# client that it knows this installation as; empty: there is none. How the button names it.
GATEWAY_OIDC_ISSUER: str = env.str("GATEWAY_OIDC_ISSUER", default="").rstrip("/")
GATEWAY_OIDC_CLIENT_ID: str = env.str("GATEWAY_OIDC_CLIENT_ID", default="")
GATEWAY_OIDC_CLIENT_SECRET: str = env.str("GATEWAY_OIDC_CLIENT_SECRET", default="")
GATEWAY_OIDC_NAME: str = env.str("GATEWAY_OIDC_NAME", default="Single sign-on")
# The provider must show by a fresh auth_time that it asked the user anew; False for one that sends none.
GATEWAY_OIDC_REQUIRE_AUTH_TIME: bool = env.bool("GATEWAY_OIDC_REQUIRE_AUTH_TIME", default=True)

# Lifetime of a new user's link to choose a password, seconds.
PASSWORD_RESET_TIMEOUT = 3 * 24 * 3600
# PCI DSS 8.3.6 and 8.3.7; decision 0051.
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "gateway.access.passwords.LettersAndDigitsValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "gateway.access.passwords.GuessabilityValidator"},
    {"NAME": "gateway.access.passwords.PasswordHistoryValidator"},
]

# django-allauth: its pages are below /admin/ (gateway.backoffice.sign_in.sign_in_views); no sign-up, no mails.
LOGIN_URL = "/admin/login/"
LOGIN_REDIRECT_URL = ACCOUNT_LOGOUT_REDIRECT_URL = "/admin/"
ACCOUNT_ADAPTER = "gateway.backoffice.sign_in.allauth_adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = False
# Seconds between password and second factor; and for which a re-authentication is valid for money, keys and secrets.
ACCOUNT_LOGIN_TIMEOUT = 600
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
# Its limits are kept in each process's cache; axes counts in the database.
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False
ACCOUNT_FORMS = {
    "login": "gateway.backoffice.sign_in.sign_in_views.PasswordForm",
    "reauthenticate": "gateway.backoffice.sign_in.sign_in_views.PasswordReauthenticationForm",
}
MFA_ADAPTER = "gateway.backoffice.sign_in.allauth_adapters.FactorAdapter"
MFA_FORMS = {
    "authenticate": "gateway.backoffice.sign_in.sign_in_views.CodeForm",
    "reauthenticate": "gateway.backoffice.sign_in.sign_in_views.CodeReauthenticationForm",
    "activate_totp": "gateway.backoffice.sign_in.sign_in_views.TotpSetupForm",
    "add_webauthn": "gateway.backoffice.sign_in.sign_in_views.AddPasskeyForm",
    "edit_webauthn": "gateway.backoffice.sign_in.sign_in_views.RenamePasskeyForm",
    "login_webauthn": "gateway.backoffice.sign_in.sign_in_views.PasskeySignInForm",
    "reauthenticate_webauthn": "gateway.backoffice.sign_in.sign_in_views.PasskeyReauthenticationForm",
    "authenticate_webauthn": "gateway.backoffice.sign_in.sign_in_views.PasskeyFactorForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# Browsers make passkeys over plain HTTP for localhost alone.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not IS_LIVE
MFA_TOTP_ISSUER = "Tollhouse"
# A phone's clock may be half a minute off.
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODE_DIGITS = 16
MFA_RECOVERY_CODES_SHOW_ONCE = True
SOCIALACCOUNT_ADAPTER = "gateway.backoffice.sign_in.allauth_adapters.SingleSignOnAdapter"
SOCIALACCOUNT_STORE_TOKENS = False
# Started by a form of ours (gateway.backoffice.sign_in.sign_in_views.to_provider), never by a link of another site.
SOCIALACCOUNT_LOGIN_ON_GET = False
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        # For re-authentication the provider must ask the user again, not only recognise them. It says when it did
        # (auth_time), which it has to where max_age is sent (OpenID Connect Core 1.0, 3.1.2.1).
        "AUTH_PARAMS": {"prompt": "login", "max_age": "0"},
        "APPS": [
            {
                "provider_id": "sso", "name": GATEWAY_OIDC_NAME, "client_id": GATEWAY_OIDC_CLIENT_ID,
                "secret": GATEWAY_OIDC_CLIENT_SECRET, "settings": {"server_url": GATEWAY_OIDC_ISSUER},
            }
        ] if GATEWAY_OIDC_ISSUER else [],
    }
}  # fmt: skip

# django-axes (PCI DSS 8.3.4): ten wrong tries, then half an hour from the last one. What is counted together, and who
# cannot be locked out by others: gateway.backoffice.sign_in.lockout.
AXES_HANDLER = "gateway.backoffice.sign_in.lockout.LockoutHandler"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=30)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = True
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_PARAMETERS = "gateway.backoffice.sign_in.lockout.choose_lockout_parameters"
AXES_USERNAME_CALLABLE = "gateway.backoffice.sign_in.lockout.digest_attempt_name"
AXES_CLIENT_IP_CALLABLE = "gateway.backoffice.sign_in.lockout.resolve_attempt_address"
# Sign-ins are rows of our own, which its log would repeat.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
# Forms say themselves that there were too many tries.
SILENCED_SYSTEM_CHECKS = ["axes.W002"]

# --- safety -----------------------------------------------------------------------------------------------------
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = IS_LIVE
if IS_LIVE:
    # Browsers take such a cookie from this host alone, over TLS: no neighbour of the domain sets it.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    LANGUAGE_COOKIE_NAME = "__Host-language"
MESSAGE_STORAGE = "gateway.access.message_storage.HostMessageStorage"
MESSAGES_COOKIE_NAME = "__Host-messages" if IS_LIVE else "messages"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_HSTS_SECONDS = 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = IS_LIVE
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Where browsers report what these policies stopped (checkout/csp_reports.py).
POLICY_REPORTS_PATH = "/v1/widget/policy-reports"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "report-uri": [POLICY_REPORTS_PATH],
    }
}
# Only below /admin/: the theme's expressions are evaluated, its colours stand in a style element.
BACK_OFFICE_POLICY = {"script-src": [UNSAFE_EVAL], "style-src": [UNSAFE_INLINE]}

# --- DRF: the edge of the API, nothing else -----------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["gateway.api.renderers.EnvelopeRenderer"],
    "DEFAULT_PARSER_CLASSES": [],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "gateway.api.renderers.JsonOnlyNegotiation",
    "EXCEPTION_HANDLER": "gateway.api.errors.handle_api_exception",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}

# --- logs -------------------------------------------------------------------------------------------------------
LOGGING_CONFIG = "logging.config.dictConfig"
DEFAULT_EXCEPTION_REPORTER = "gateway.api.error_reports.MaskedReporter"
LOGGING = build_logging_config(env.str("GATEWAY_LOG_LEVEL", default="INFO"))

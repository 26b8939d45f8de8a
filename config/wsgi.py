"""The WSGI application that gunicorn serves.

Loaded objects stay for good: they are frozen for the garbage collector, which would otherwise scan all of them from
time to time while payments wait. Only here do payments wait in threads that others need: without the setting, one
acquirer account gets half of them.
"""

import gc
import os

from django.conf import settings
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries
from django.urls import get_resolver

from config.launcher.programs import max_threads_per_account
from gateway.api.wsgi_handler import build_wsgi_application
from gateway.core.brands import load_bin_tables
from gateway.db.environment import require_usable_database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = build_wsgi_application()
if "GATEWAY_ACQUIRER_MAX_IN_FLIGHT" not in os.environ:  # the settings may have been loaded before the fork
    settings.GATEWAY_ACQUIRER_MAX_IN_FLIGHT = max_threads_per_account()
    if "GATEWAY_ACQUIRER_MAX_ON_LINE" not in os.environ:
        settings.GATEWAY_ACQUIRER_MAX_ON_LINE = max(64, settings.GATEWAY_ACQUIRER_MAX_IN_FLIGHT)
require_usable_database()
load_bin_tables(settings.GATEWAY_BIN_FILE, settings.IS_LIVE)  # a large one takes seconds, which no payment should wait
# Nothing to do at a request's start: state and age of its connection are looked at as it ends.
request_started.disconnect(close_old_connections)
if not settings.DEBUG:
    request_started.disconnect(reset_queries)
get_resolver().url_patterns  # noqa: B018 - views are loaded on first use: better now than in a payment
gc.collect()
gc.freeze()
# A payment makes some thousand short-lived objects: looking for cycles every 700 of them finds nothing.
gc.set_threshold(20_000)

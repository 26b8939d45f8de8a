"""The WSGI application that gunicorn serves.

What is loaded once stays: the collector is told so, or every now and then it would look through all of it while
payments wait. Here alone payments wait in threads that others need: where nothing is set, one acquirer account holds
half of them.
"""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.launcher.programs import max_threads_per_account
from gateway.db.environment import require_own_environment

os.environ.setdefault("GATEWAY_ACQUIRER_MAX_IN_FLIGHT", str(max_threads_per_account()))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
require_own_environment()
get_resolver().url_patterns  # noqa: B018 - the views are loaded by the first who asks: better now than in a payment
gc.collect()
gc.freeze()
# A payment makes some thousand short-lived objects: looking every 700 of them for rings finds nothing.
gc.set_threshold(20_000)

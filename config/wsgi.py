"""The WSGI application that gunicorn serves.

What is loaded once stays: the collector is told so, or every now and then it would look through all of it while
payments wait. Here alone payments wait in threads that others need: where nothing is set, one acquirer account holds
half of them.
"""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.launcher.programs import threads_of_one_account
from gateway.environment import refuse_another

os.environ.setdefault("GATEWAY_ACQUIRER_MAX_IN_FLIGHT", str(threads_of_one_account()))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
refuse_another()
get_resolver().url_patterns  # noqa: B018 - the views are loaded by the first who asks: better now than in a payment
gc.collect()
gc.freeze()
# A payment makes some thousand short-lived objects: looking every 700 of them for rings finds nothing.
gc.set_threshold(20_000)

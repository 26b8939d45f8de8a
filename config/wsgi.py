"""The WSGI application that gunicorn serves.

Here alone payments wait in threads that others need: where nothing is set, one acquirer account holds half of them.
"""

import os

from django.core.wsgi import get_wsgi_application

from config.launcher.programs import threads_of_one_account

os.environ.setdefault("GATEWAY_ACQUIRER_MAX_IN_FLIGHT", str(threads_of_one_account()))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()

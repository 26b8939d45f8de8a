"""Tuned like the product: connections and prepared plans are kept, nothing is debugged, nothing needless runs."""

import environ

env = environ.Env()

SECRET_KEY: str = env.str("DJANGO_SECRET_KEY")
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = ["rest_framework", "tests.benchmarks.baseline"]
# One middleware, as in the product: without a Content-Length gunicorn sends chunks, which costs a packet more.
MIDDLEWARE = ["tests.benchmarks.baseline.views.with_length"]
ROOT_URLCONF = "tests.benchmarks.baseline.urls"
WSGI_APPLICATION = "tests.benchmarks.baseline.wsgi.application"
DATABASES = {"default": env.db_url("DATABASE_URL")}
DATABASES["default"].update(
    {
        "ENGINE": "django.db.backends.postgresql",
        "CONN_MAX_AGE": None,
        # Parameters bound by the server, so that it keeps the INSERT's plan: Django binds in the client by default.
        "OPTIONS": {**DATABASES["default"].get("OPTIONS", {}), "server_side_binding": True, "prepare_threshold": 3},
    }
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.FormParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
}

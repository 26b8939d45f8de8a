"""The Celery application. Beat ticks, workers run timers; PostgreSQL holds every due time."""

import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, task_prerun

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("tollhouse")
# Also for threads of the web server: without it they would find a Celery application of its own, and no broker.
app.set_default()
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def install_worker_watchdog(**_: Any) -> None:
    """Install the watchdog of config.worker, in worker processes only; imported once the settings are loaded."""
    from config.worker import install_watchdog

    install_watchdog(app)


@task_prerun.connect  # type: ignore[untyped-decorator]  # celery has no types
def close_dead_connections(**_: Any) -> None:
    """Close a connection before a task that is dead or too old: a worker reuses it (CELERY_DB_REUSE_MAX), but
    PostgreSQL may be gone, and Celery does not look at its age (CONN_MAX_AGE)."""
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        if connection.connection is None or connection.in_atomic_block:
            continue
        if connection.is_usable():
            connection.close_if_unusable_or_obsolete()
        else:
            connection.close()

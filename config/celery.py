"""The Celery application. Beat ticks, workers act, PostgreSQL owns every due time."""

import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, task_prerun

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("tollhouse")
# The threads of the web server, too: without it they would find an application of Celery's own, and no broker.
app.set_default()
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_init.connect
def install_worker_watchdog(**_: Any) -> None:
    """In worker processes only, and imported when the settings are there."""
    from config.worker import install_watchdog

    install_watchdog(app)


@task_prerun.connect
def close_dead_connections(**_: Any) -> None:
    """A worker keeps its connection from task to task (CELERY_DB_REUSE_MAX); PostgreSQL may have gone meanwhile."""
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        if connection.connection is not None and not connection.in_atomic_block and not connection.is_usable():
            connection.close()

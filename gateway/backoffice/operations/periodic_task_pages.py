"""Periodic tasks (ticks of Celery beat) that wake due work. They run at intervals only."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)

from gateway.backoffice.kit.base import InstallationPage
from gateway.timers.registry import TIMERS

admin.site.unregister([ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule])


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(InstallationPage):
    """Whether and how often a task runs can be changed; which one is code."""

    nothing = gettext_lazy("Ticks are made when the service starts.")
    list_display = ("name", "about", "interval_text", "enabled", "last_run_at", "total_run_count")
    list_select_related = ("interval",)
    list_per_page = 100
    fields = ("name", "about", "task", "interval", "enabled", "last_run_at", "total_run_count")
    readonly_fields = ("name", "about", "task", "interval", "last_run_at", "total_run_count")
    changeable = True

    @admin.display(description=gettext_lazy("what it does"))
    def about(self, task: PeriodicTask) -> str:
        timer = TIMERS.get(task.name)
        return _(timer.about) if timer is not None else task.description

    @admin.display(description=gettext_lazy("how often"), ordering="interval__every")
    def interval_text(self, task: PeriodicTask) -> str:
        return str(task.interval)

    def has_add_permission(self, request: object) -> bool:
        return False

"""The back office: a plain admin for now. Payments are read here, entities are changed, tokens are issued."""

from django.contrib import admin
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, SolarSchedule

from gateway.admin import access, entities, payments, threeds

# Ticks come at intervals; nobody pays at sunset.
admin.site.unregister([ClockedSchedule, CrontabSchedule, SolarSchedule])

__all__ = ["access", "entities", "payments", "threeds"]

from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """Subscription jobs: when they run, what each run made, and what is tried again."""

    name = "gateway.scheduling"
    label = "scheduling"
    default_auto_field = "django.db.models.BigAutoField"

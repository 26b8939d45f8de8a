from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """Subscription jobs: their plans, runs and retries of declined runs."""

    name = "gateway.scheduling"
    label = "scheduling"
    default_auto_field = "django.db.models.BigAutoField"

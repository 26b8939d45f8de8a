from django.apps import AppConfig


class GatewayConfig(AppConfig):
    """Payments: the catalogue, the vault, connectors, the API and the back office."""

    name = "gateway"
    default_auto_field = "django.db.models.BigAutoField"

from django.apps import AppConfig


class CheckoutConfig(AppConfig):
    """Checkouts and the hosted widget."""

    name = "checkout"

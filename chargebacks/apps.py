from django.apps import AppConfig


class ChargebacksConfig(AppConfig):
    """Disputes: the case file of a chargeback."""

    name = "chargebacks"

from django.apps import AppConfig


class ReportingConfig(AppConfig):
    """Settlement intake, matching, reports and the reconciliation file."""

    name = "reporting"
